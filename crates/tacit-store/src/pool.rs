//! Correlations made ahead of time, kept in an encrypted file, each used at most once.
//!
//! [`make_sender`] and [`make_receiver`] fill two files with the two halves of correlated OTs over a channel;
//! [`PoolSender`] and [`PoolReceiver`] hand them out again, after comparing over a channel that the files
//! belong together and stand at the same position. From then on no message is needed.
//!
//! **Once and never again.** The position is moved on and forced to the disk *before* anything is handed out,
//! so a crash at any moment loses correlations and never repeats one. It is stored twice, one copy forced out
//! before the other is touched: if one copy is torn or damaged, the other still stands at what was handed
//! out. Two processes cannot open a file at the same time. What no file can notice is being replaced by an
//! older copy of itself. An honest peer notices: its position is ahead of ours. A cheating one says our old
//! position again, and then correlations that protected one thing protect another, which opens both: never
//! put an old copy back.
//!
//! **A failed check burns the pool.** All its correlations share Δ and were made with one peer. Where a
//! protocol runs on them and a check of it fails, the peer may have learnt bits of Δ or of choices, so
//! nothing of the pool may serve again, and restarting must not help: a [`Fuse`] overwrites the header with a
//! mark and forgets the salt of the file's keys and Δ, on the disk, before the failure is reported. A pool
//! whose making fails is never a file that opens: its header comes last.
//!
//! **File.** A header (magic, version, role, security, mark of a burnt pool, what made it, count, pool id, salt, check of
//! the key, Δ of the sender sealed, digest), two copies of the position at offsets of their own, then chunks
//! of [`CHUNK`] correlations, each sealed with AES-256-GCM under a key of this file alone (BLAKE3 of key and
//! salt), bound to pool id, role and number. All integers are little-endian. A chunk can be opened without
//! the others.

use crate::sealed::{FileError, Keys, Locked, Purpose, TAG, array, io_fault};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use subtle::ConstantTimeEq;
use tacit_crypto::text::counted;
use tacit_crypto::transcript::Transcript;
use tacit_crypto::{Block, Prg};
use tacit_net::Channel;
use tacit_ot::{CotReceiver, CotSender, Error, Result, Security};
use zeroize::{Zeroize, Zeroizing};

pub use crate::sealed::FileKey as PoolKey;

/// Version of the file format; a file of any other is refused.
pub const VERSION: u32 = 2;
/// Correlations of a chunk.
pub const CHUNK: usize = 4096;

const MAGIC: [u8; 8] = *b"TACITPOL";
const SEALED_CHUNK: usize = CHUNK * 16 + TAG;
/// Header without its digest.
const BODY: usize = 8 + 4 + 4 + 8 + 32 + 32 + 32 + 16 + TAG;
const DIGEST: usize = 32;
/// Of a header's body: the mark of a burnt pool, and what it keeps of the rest.
const BURNT: usize = 14;
const MAKER: usize = 15;
const PUBLIC: usize = 56;
const SLOT: usize = 8 + 32;
/// Where the copies of the position stand: in blocks of the disk of their own.
const SLOTS: [u64; 2] = [4096, 8192];
const CHUNKS: u64 = 12_288;
// proof: pools 5.1
const MOST: u64 = 1 << 40;
const PURPOSE: Purpose = Purpose {
    sealing: "tacit 1 pool: sealing",
    mac: "tacit 1 pool: position",
    check: "tacit 1 pool: check of the key",
};
/// Nonce domains.
const CORRELATIONS: u32 = 0;
const DELTA: u32 = 1;

/// What can be wrong with a pool.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PoolError {
    /// The file cannot be used.
    #[error(transparent)]
    File(#[from] FileError),
    /// A check failed in what the pool served.
    #[error(
        "the pool is invalidated: a check failed in a run that used it, which can reveal to the peer bits of what \
         all of it shares; make a new one on both sides with tacit ot pool make"
    )]
    Burnt,
    /// Fewer correlations are left than asked for.
    #[error(
        "the pool is exhausted: {} wanted, {left} left; make a new one on both sides",
        counted(wanted, "correlation")
    )]
    Exhausted {
        /// Correlations asked for.
        wanted: u64,
        /// Correlations left.
        left: u64,
    },
    /// The file holds the other half.
    #[error("the pool is the {found}'s half; give the {wanted}'s")]
    Role {
        /// The file's role.
        found: &'static str,
        /// The role needed.
        wanted: &'static str,
    },
    /// The peer's pool was made on another occasion, or with another peer.
    #[error(
        "the two sides' pools do not belong together (yours {ours}, peer's {theirs}); name the right files"
    )]
    OtherPool {
        /// The short form of our pool's id.
        ours: String,
        /// The short form of the peer's.
        theirs: String,
    },
    /// The peer's pool stands elsewhere: one side crashed or put an old copy back. That this shows rests on
    /// the peer's honesty.
    #[error(
        "the two sides' pools are at different positions (yours {ours}, peer's {theirs}): one side crashed, or \
         restored an old copy, which a cheating peer would not reveal; the lower one has to skip to {}", ours.max(theirs)
    )]
    Position {
        /// Our position.
        ours: u64,
        /// The peer's.
        theirs: u64,
    },
    /// A position that cannot be skipped to.
    #[error("a pool only moves forward, and this one is at {position} of {count}")]
    Backward {
        /// Where it stands.
        position: u64,
        /// How many it was made with.
        count: u64,
    },
}

impl PoolError {
    /// The fault of a pool, or of a file, that `error` is, if it is one.
    pub fn of(error: &Error) -> Option<&PoolError> {
        match error {
            Error::Store(fault) => fault.downcast_ref(),
            _ => None,
        }
    }
}

impl From<PoolError> for Error {
    fn from(error: PoolError) -> Self {
        Error::Store(Box::new(error))
    }
}

impl From<FileError> for Error {
    fn from(error: FileError) -> Self {
        PoolError::from(error).into()
    }
}

/// A side of the transfers, and which half of the correlations it holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// Both messages, or Δ and v.
    Sender,
    /// The choices, in the lowest bits of w.
    Receiver,
}

impl Role {
    /// `sender` or `receiver`.
    pub const fn name(self) -> &'static str {
        match self {
            Role::Sender => "sender",
            Role::Receiver => "receiver",
        }
    }
}

/// What a pool says about itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Header {
    /// Which half it holds.
    pub role: Role,
    /// Against what the protocol protected that made it.
    pub security: Security,
    /// What made it, as a number of the caller's; 0 where that was not recorded.
    pub maker: u8,
    /// How many correlations were made.
    pub count: u64,
    /// What both halves have in common and no other pool has.
    pub id: [u8; 32],
    salt: [u8; 32],
}

impl Header {
    /// The first 6 bytes of the id in hexadecimal digits, for people.
    pub fn short_id(&self) -> String {
        short(&self.id)
    }

    /// What of a header is public, marked or not.
    fn public(&self, burnt: bool) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        out.extend_from_slice(&VERSION.to_le_bytes());
        let security = u8::from(self.security == Security::Malicious);
        out.extend_from_slice(&[
            u8::from(self.role == Role::Receiver),
            security,
            u8::from(burnt),
            self.maker,
        ]);
        out.extend_from_slice(&self.count.to_le_bytes());
        out.extend_from_slice(&self.id);
        debug_assert_eq!(out.len(), PUBLIC);
        out
    }

    /// The header of this pool once it is burnt: without salt, check of the key and Δ.
    fn burnt(&self) -> Vec<u8> {
        let mut out = self.public(true);
        out.resize(BODY, 0);
        let digest = blake3::hash(&out);
        out.extend_from_slice(digest.as_bytes());
        out
    }

    fn encode(&self, keys: &Keys, delta: Block) -> Result<Vec<u8>> {
        let mut out = self.public(false);
        out.extend_from_slice(&self.salt);
        out.extend_from_slice(&keys.check);
        let mut sealed = Zeroizing::new(delta.to_bytes());
        let tag = keys.seal(DELTA, 0, &out, sealed.as_mut_slice())?;
        out.extend_from_slice(sealed.as_slice());
        out.extend_from_slice(&tag);
        debug_assert_eq!(out.len(), BODY);
        let digest = blake3::hash(&out);
        out.extend_from_slice(digest.as_bytes());
        Ok(out)
    }

    /// Everything of a header that needs no key: itself, the check of the key, the sealed Δ.
    fn parse(bytes: &[u8; BODY + DIGEST]) -> Result<Self> {
        let (body, digest) = bytes.split_at(BODY);
        if body[..8] != MAGIC {
            return Err(not_a_pool().into());
        }
        let found = u32::from_le_bytes(array(&body[8..12]));
        if found != VERSION {
            return Err(FileError::Version { found, known: VERSION }.into());
        }
        if body[BURNT] != 0 {
            return Err(PoolError::Burnt.into());
        }
        let role = [Role::Sender, Role::Receiver].get(usize::from(body[12])).copied();
        let security = [Security::SemiHonest, Security::Malicious].get(usize::from(body[13])).copied();
        let count = u64::from_le_bytes(array(&body[16..24]));
        match (role, security) {
            (Some(role), Some(security)) if blake3::hash(body).as_bytes() == digest && count <= MOST => {
                let (id, salt) = (array(&body[24..56]), array(&body[56..88]));
                Ok(Header { role, security, maker: body[MAKER], count, id, salt })
            }
            _ => Err(FileError::Damaged { what: "header" }.into()),
        }
    }

    fn file_length(&self) -> u64 {
        file_length(self.count)
    }
}

/// Bytes of a pool of `count` correlations.
pub fn file_length(count: u64) -> u64 {
    CHUNKS + count.div_ceil(CHUNK as u64) * SEALED_CHUNK as u64
}

fn short(id: &[u8; 32]) -> String {
    tacit_crypto::hex(&id[..6])
}

fn not_a_pool() -> FileError {
    FileError::Other { wanted: "pool of correlations", command: "tacit ot pool make" }
}

/// A copy of the position, authenticated.
fn slot(keys: &Keys, id: &[u8; 32], copy: usize, position: u64) -> [u8; SLOT] {
    let mut hasher = blake3::Hasher::new_keyed(&keys.mac);
    hasher.update(id).update(&[copy as u8]).update(&position.to_le_bytes());
    let mut out = [0; SLOT];
    out[..8].copy_from_slice(&position.to_le_bytes());
    out[8..].copy_from_slice(hasher.finalize().as_bytes());
    out
}

fn chunk_context(id: &[u8; 32], role: Role, number: u64) -> [u8; 41] {
    let mut out = [0; 41];
    out[..32].copy_from_slice(id);
    out[32] = u8::from(role == Role::Receiver);
    out[33..].copy_from_slice(&number.to_le_bytes());
    out
}

/// Writes a new pool to `out`, which starts empty.
struct Writer<'a, W> {
    out: &'a mut W,
    header: Header,
    /// Everything in front of the chunks.
    start: Zeroizing<Vec<u8>>,
    keys: Keys,
    chunk: Zeroizing<Vec<Block>>,
    number: u64,
}

impl<'a, W: Write + Seek> Writer<'a, W> {
    fn new(out: &'a mut W, key: &PoolKey, header: Header, delta: Block) -> Result<Self> {
        let keys = Keys::new(key, &header.salt, &PURPOSE)?;
        let mut start = Zeroizing::new(header.encode(&keys, delta)?);
        start.resize(CHUNKS as usize, 0);
        for (copy, at) in SLOTS.into_iter().enumerate() {
            start[at as usize..][..SLOT].copy_from_slice(&slot(&keys, &header.id, copy, 0));
        }
        // Not a header before every check has passed and all is written.
        // proof: pools 2.1
        out.write_all(&[0; CHUNKS as usize]).map_err(io_fault("written"))?;
        let chunk = Zeroizing::new(Vec::with_capacity(CHUNK));
        Ok(Writer { out, header, start, keys, chunk, number: 0 })
    }

    fn append(&mut self, mut blocks: &[Block]) -> Result<()> {
        while !blocks.is_empty() {
            let (now, later) = blocks.split_at(blocks.len().min(CHUNK - self.chunk.len()));
            self.chunk.extend_from_slice(now);
            blocks = later;
            if self.chunk.len() == CHUNK {
                self.flush()?;
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        self.chunk.resize(CHUNK, Block::ZERO);
        let context = chunk_context(&self.header.id, self.header.role, self.number);
        let bytes = Block::as_bytes_mut(&mut self.chunk);
        let tag = self.keys.seal(CORRELATIONS, self.number, &context, bytes)?;
        self.out.write_all(bytes).and_then(|()| self.out.write_all(&tag)).map_err(io_fault("written"))?;
        self.chunk.zeroize();
        self.number += 1;
        Ok(())
    }

    fn finish(mut self) -> Result<Header> {
        if !self.chunk.is_empty() {
            self.flush()?;
        }
        let mut begin = || {
            self.out.seek(SeekFrom::Start(0))?;
            self.out.write_all(&self.start)?;
            self.out.flush()
        };
        begin().map_err(io_fault("written"))?;
        Ok(self.header)
    }
}

/// An id that neither side chose alone, and a salt for this file's keys.
fn new_header(
    channel: &mut Channel,
    prg: &mut Prg,
    role: Role,
    Made { security, maker }: Made,
    count: u64,
) -> Result<Header> {
    if count > MOST {
        return Err(Error::Usage { protocol: "pool", what: "a pool holds at most 2^40 correlations" });
    }
    let mine = prg.block();
    channel.send_block(mine)?;
    let theirs = channel.recv_block()?;
    let pair = if role == Role::Sender { [mine, theirs] } else { [theirs, mine] };
    let mut transcript = Transcript::new("tacit pool v2");
    transcript.append("session", &channel.session_id().0);
    transcript.append_blocks("nonces", &pair);
    transcript.append_u64("count", count);
    transcript.append_u64("malicious", u64::from(security == Security::Malicious));
    let mut id = [0; 32];
    transcript.challenge_bytes("id", &mut id);
    let mut salt = [0; 32];
    prg.fill_bytes(&mut salt);
    Ok(Header { role, security, maker, count, id, salt })
}

/// How correlations are made, which a pool's header keeps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Made {
    /// What the source protects against.
    pub security: Security,
    /// What the source is, as a number of the caller's; 0: not recorded.
    pub maker: u8,
}

impl From<Security> for Made {
    fn from(security: Security) -> Self {
        Made { security, maker: 0 }
    }
}

/// Makes `count` correlations with `source` and writes the sender's half to `out`, an empty file that the
/// caller gives its name only after success. `progress` hears how many are done.
///
/// `made` says what `source` protects against and is. Errors: more than 2^40 correlations, and those of the link,
/// of `source` and of the file.
pub fn make_sender<W: Write + Seek>(
    channel: &mut Channel,
    prg: &mut Prg,
    source: &mut dyn CotSender,
    made: impl Into<Made>,
    count: u64,
    key: &PoolKey,
    out: &mut W,
    progress: &mut dyn FnMut(u64),
) -> Result<Header> {
    let header = new_header(channel, prg, Role::Sender, made.into(), count)?;
    let mut writer = Writer::new(out, key, header, source.delta())?;
    in_pieces(count, progress, |piece| {
        source.extend(channel, piece)?;
        writer.append(piece)
    })?;
    writer.finish()
}

/// The receiver's counterpart of [`make_sender`].
pub fn make_receiver<W: Write + Seek>(
    channel: &mut Channel,
    prg: &mut Prg,
    source: &mut dyn CotReceiver,
    made: impl Into<Made>,
    count: u64,
    key: &PoolKey,
    out: &mut W,
    progress: &mut dyn FnMut(u64),
) -> Result<Header> {
    let header = new_header(channel, prg, Role::Receiver, made.into(), count)?;
    let mut writer = Writer::new(out, key, header, Block::ZERO)?;
    in_pieces(count, progress, |piece| {
        source.extend(channel, piece)?;
        writer.append(piece)
    })?;
    writer.finish()
}

fn in_pieces(
    count: u64,
    progress: &mut dyn FnMut(u64),
    mut make: impl FnMut(&mut [Block]) -> Result<()>,
) -> Result<()> {
    const PIECE: u64 = 1 << 20;
    let mut rows = Zeroizing::new(vec![Block::ZERO; count.min(PIECE) as usize]);
    let mut done = 0;
    while done < count {
        let now = PIECE.min(count - done);
        make(&mut rows[..now as usize])?;
        done += now;
        progress(done);
    }
    Ok(())
}

/// Burns a pool. Whoever runs a protocol on a pool's correlations holds one, because the protocol owns the
/// pool.
///
/// A pool serves one protocol at a time: begin the next when [`watch`](Fuse::watch) has had the end of the one before.
/// A second one that is on its way when a check of the first fails has sent what rests on the same Δ by then.
#[derive(Clone)]
pub struct Fuse(Arc<Shared>);

struct Shared {
    file: Locked,
    header: Vec<u8>,
    blown: AtomicBool,
}

impl std::fmt::Debug for Fuse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Fuse(blown: {})", self.0.blown.load(Ordering::Acquire))
    }
}

impl Fuse {
    /// Makes the pool useless: in this process at once, and on the disk when this returns.
    ///
    /// Errors: the file's, which must be deleted then.
    pub fn burn(&self) -> Result<()> {
        // proof: pools 2.4
        self.0.blown.store(true, Ordering::Release);
        let file = &self.0.file;
        let fault =
            "marked as invalid: a check failed in a run that used it, delete the file and make a new pool";
        file.burn(0, &self.0.header).map_err(io_fault(fault))?;
        // The mark is enough: without the salt, what lies behind it cannot be opened.
        let _ = file.set_len(CHUNKS);
        Ok(())
    }

    /// Hands on what a protocol on the pool's correlations ended with; a failed check burns the pool first,
    /// and where one of another protocol has burnt it meanwhile, a success is none.
    pub fn watch<T>(&self, result: Result<T>) -> Result<T> {
        match &result {
            Err(error) if error.is_failed_check() => self.burn()?,
            Ok(_) if self.0.blown.load(Ordering::Acquire) => return Err(PoolError::Burnt.into()),
            _ => {}
        }
        result
    }
}

/// An open pool. No other process can open it meanwhile.
pub struct Pool {
    shared: Arc<Shared>,
    header: Header,
    keys: Keys,
    delta: Zeroizing<Block>,
    position: u64,
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Pool({} at {} of {}, [secret])", self.header.short_id(), self.position, self.header.count)
    }
}

impl Pool {
    /// Opens the pool at `path` with the key that it was made with.
    ///
    /// Errors: [`PoolError`], which names what is wrong with the file or the key, or that it is in use.
    pub fn open(path: &Path, key: &PoolKey) -> Result<Self> {
        let file = Locked::open(path)?;
        let mut start = [0; BODY + DIGEST];
        file.read_at(0, &mut start).map_err(|e| match e.kind() {
            io::ErrorKind::UnexpectedEof => not_a_pool(),
            _ => io_fault("read")(e),
        })?;
        let header = Header::parse(&start)?;
        let (found, expected) = (file.metadata().map_err(io_fault("read"))?.len(), header.file_length());
        if found != expected {
            return Err(FileError::Length { found, expected }.into());
        }
        let keys = Keys::new(key, &header.salt, &PURPOSE)?;
        if !bool::from(keys.check.as_slice().ct_eq(&start[88..120])) {
            return Err(FileError::WrongKey.into());
        }
        let mut sealed = Zeroizing::new(start[120..BODY].to_vec());
        let delta = keys.open(DELTA, 0, &start[..120], &mut sealed, "header")?;
        let delta = Zeroizing::new(Block::from_bytes(array(delta)));
        let position = stored_position(&file, &header, &keys)?;
        let shared = Arc::new(Shared { file, header: header.burnt(), blown: AtomicBool::new(false) });
        Ok(Pool { shared, header, keys, delta, position })
    }

    /// What burns this pool when a check fails in what it serves.
    pub fn fuse(&self) -> Fuse {
        Fuse(self.shared.clone())
    }

    /// What the file says about itself.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// How many correlations are used up.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// How many are left.
    pub fn left(&self) -> u64 {
        self.header.count - self.position
    }

    /// Gives up all correlations before `position`, so that a pool that is behind its peer's catches up.
    ///
    /// Errors: a position before the pool's own or beyond its end, and those of the file.
    pub fn skip_to(&mut self, position: u64) -> Result<()> {
        if !(self.position..=self.header.count).contains(&position) {
            return Err(PoolError::Backward { position: self.position, count: self.header.count }.into());
        }
        self.store_position(position)
    }

    /// Moves the position on; only when this has returned may anything before it be handed out.
    fn store_position(&mut self, position: u64) -> Result<()> {
        // Whatever happens from here on, this process never goes back.
        self.position = position;
        for (copy, at) in SLOTS.into_iter().enumerate() {
            let slot = slot(&self.keys, &self.header.id, copy, position);
            self.shared.file.write_at(at, &slot).map_err(io_fault("moved on"))?;
        }
        Ok(())
    }

    /// Takes the next correlations out of the pool.
    fn take(&mut self, out: &mut [Block]) -> Result<()> {
        let (start, wanted) = (self.position, out.len() as u64);
        if self.shared.blown.load(Ordering::Acquire) {
            out.zeroize();
            return Err(PoolError::Burnt.into());
        }
        if wanted > self.left() {
            out.zeroize();
            return Err(PoolError::Exhausted { wanted, left: self.left() }.into());
        }
        if wanted == 0 {
            return Ok(());
        }
        // proof: pools 2.3
        self.store_position(start + wanted)
            .and_then(|()| self.read(start, out))
            .inspect_err(|_| out.zeroize())
    }

    fn read(&self, mut position: u64, mut out: &mut [Block]) -> Result<()> {
        let mut chunk = Zeroizing::new(vec![0; SEALED_CHUNK]);
        while !out.is_empty() {
            let (number, within) = (position / CHUNK as u64, (position % CHUNK as u64) as usize);
            let at = CHUNKS + number * SEALED_CHUNK as u64;
            self.shared.file.read_at(at, &mut chunk).map_err(io_fault("read"))?;
            let context = chunk_context(&self.header.id, self.header.role, number);
            let opened =
                self.keys.open(CORRELATIONS, number, &context, &mut chunk, "a chunk of correlations")?;
            let (now, later) = out.split_at_mut(out.len().min(CHUNK - within));
            let bytes = &opened[within * 16..][..now.len() * 16];
            Block::as_bytes_mut(now).copy_from_slice(bytes);
            position += now.len() as u64;
            out = later;
        }
        Ok(())
    }

    /// Compares with the peer that both files belong together and stand at the same place.
    fn greet(&self, channel: &mut Channel, wanted: Role) -> Result<()> {
        if self.header.role != wanted {
            return Err(PoolError::Role { found: self.header.role.name(), wanted: wanted.name() }.into());
        }
        channel.send(&self.header.id)?;
        channel.send_u64(self.position)?;
        channel.flush()?;
        let mut theirs = [0; 32];
        channel.recv(&mut theirs)?;
        let position = channel.recv_u64()?;
        // proof: pools 2.2
        if theirs != self.header.id {
            return Err(PoolError::OtherPool { ours: self.header.short_id(), theirs: short(&theirs) }.into());
        }
        if position != self.position {
            return Err(PoolError::Position { ours: self.position, theirs: position }.into());
        }
        Ok(())
    }
}

/// The greater of the two copies that are whole.
fn stored_position(file: &Locked, header: &Header, keys: &Keys) -> Result<u64> {
    let mut best = None;
    for (copy, at) in SLOTS.into_iter().enumerate() {
        let mut stored = [0; SLOT];
        file.read_at(at, &mut stored).map_err(io_fault("read"))?;
        let position = u64::from_le_bytes(array(&stored[..8]));
        let whole = bool::from(stored.as_slice().ct_eq(&slot(keys, &header.id, copy, position)));
        if whole && position <= header.count {
            best = best.max(Some(position));
        }
    }
    best.ok_or_else(|| FileError::Damaged { what: "both copies of the position" }.into())
}

/// The sender of correlated OT out of a pool.
#[derive(Debug)]
pub struct PoolSender(Pool);

/// The receiver of correlated OT out of a pool.
#[derive(Debug)]
pub struct PoolReceiver(Pool);

impl PoolSender {
    /// Compares the pools over `channel`; nothing is sent after that.
    ///
    /// Errors: those of the link; [`PoolError`] when the two pools differ or this is the receiver's half.
    pub fn setup(channel: &mut Channel, pool: Pool) -> Result<Self> {
        pool.greet(channel, Role::Sender)?;
        Ok(PoolSender(pool))
    }

    /// The pool.
    pub fn pool(&self) -> &Pool {
        &self.0
    }
}

impl PoolReceiver {
    /// The receiver's counterpart of [`PoolSender::setup`].
    pub fn setup(channel: &mut Channel, pool: Pool) -> Result<Self> {
        pool.greet(channel, Role::Receiver)?;
        Ok(PoolReceiver(pool))
    }

    /// The pool.
    pub fn pool(&self) -> &Pool {
        &self.0
    }
}

impl CotSender for PoolSender {
    fn delta(&self) -> Block {
        *self.0.delta
    }

    fn extend(&mut self, _: &mut Channel, out: &mut [Block]) -> Result<()> {
        self.0.take(out)
    }
}

impl CotReceiver for PoolReceiver {
    fn extend(&mut self, _: &mut Channel, out: &mut [Block]) -> Result<()> {
        self.0.take(out)
    }
}
