//! The file of tags: a large set, published once for clients that look up a few elements each.
//!
//! A tag is the beginning of F(k, x), as a number. The tags are sorted and their differences Rice-coded in
//! blocks of [`BLOCK`], so that a look-up reads one block. At 2^24 elements and a lifetime of 2^10 queries a
//! tag has 74 bits and takes 6.6 bytes; every doubling of the lifetime adds one bit.
//!
//! Layout, little-endian: the header ([`Publication`]); for each block its first tag (16), the offset of its
//! end in the body (8) and its BLAKE3 hash (32); the file's digest (32); the blocks. The digest covers header
//! and index, and with them everything: a block is checked against its hash before it is read. Who has the
//! digest from the server, in the handshake, has the file that the server published.
//!
//! # A publisher that chooses the blocks
//!
//! What is in a block, and which tags fall into it, is the publisher's choice: a block that cannot be read, or
//! takes long, for the tag of one key alone would tell whether a client asks for that key. So a client reads all
//! blocks once before it makes a query ([`TagFile::checked`]), a block has one encoding and a greatest length,
//! and tags are looked up when the peer waits for nothing more.
//!
//! # How long a tag is
//!
//! A query that is not in the set matches one of n tags of b bits by chance with probability n / 2^b at most.
//! Over all Q queries that the key ever answers, b = 40 + ⌈log2 n⌉ + ⌈log2 Q⌉ bits make it 2^-40 for the
//! key's whole lifetime.

use super::rfc9497::{Mode, Output, ServerKey, Suite};
pub use crate::error::TagsError;
use crate::{Error, Result, work};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::num::NonZeroUsize;
use tacit_crypto::group::{Encoding, Points, is_identity_encoding};
use tacit_crypto::{Prg, RHO};
use zeroize::Zeroizing;

/// Tags of a block.
pub const BLOCK: usize = 512;
/// The most elements of a publication.
pub const MAX_ELEMENTS: u64 = 1 << 32;
/// The most queries of a key's lifetime.
pub(crate) const MAX_LIFETIME: u64 = 1 << 40;
/// Bytes of a publication's header.
pub const HEADER: usize = 368;
/// Longest text of what makes a key.
const TEXT: usize = HEADER - 114;
const MAGIC: [u8; 8] = *b"tacittag";
const VERSION: u32 = 1;
const ENTRY: usize = 56;
const DIGEST: usize = 32;
/// The most ones in the quotients of a block: of uniform tags a block has some 1,050 at most on average, and
/// this many with less than 2^-1000.
const MOST_ONES: u64 = 4096;
/// Elements evaluated at a time.
const STEP: usize = 1024;

fn fault(what: &'static str) -> impl Fn(io::Error) -> TagsError {
    move |source| match source.kind() {
        io::ErrorKind::UnexpectedEof => TagsError::Damaged { what: "it ends too early" },
        _ => TagsError::Io { what, source },
    }
}

const fn damaged(what: &'static str) -> TagsError {
    TagsError::Damaged { what }
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut out = [0; N];
    out.copy_from_slice(&bytes[at..at + N]);
    out
}

fn number(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(array(bytes, at))
}

/// The least k with n ≤ 2^k.
fn ceil_log2(n: u64) -> u32 {
    n.max(1).next_power_of_two().ilog2()
}

/// What a publisher lays down for a key's lifetime.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Terms {
    /// The most queries that the key answers, of all clients together: it decides how long a tag is.
    pub lifetime: u64,
    /// The most queries that the key answers for one client.
    pub per_client: u64,
    /// What makes a key, as `KeySpec::agreement` of `tacit-data` says it.
    pub key: String,
}

/// The public facts on a publication: everything of its header.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Publication {
    /// What no other publication has.
    pub id: [u8; 32],
    /// The public key with which clients check the server's proofs.
    pub public: Encoding,
    /// How many elements the set has.
    pub count: u64,
    /// Bits of a tag.
    pub bits: u32,
    /// What the publisher laid down.
    pub terms: Terms,
    rice: u32,
    body: u64,
}

impl Publication {
    fn new(id: [u8; 32], public: Encoding, count: u64, terms: Terms) -> Result<Self> {
        if count > MAX_ELEMENTS {
            return Err(Error::TooManyElements { count, allowed: MAX_ELEMENTS });
        }
        if !(1..=MAX_LIFETIME).contains(&terms.lifetime) || !(1..=terms.lifetime).contains(&terms.per_client)
        {
            return Err(Error::Usage(
                "a key answers 1 to 2^40 queries, and for one client 1 to as many as for all",
            ));
        }
        if terms.key.len() > TEXT {
            return Err(Error::Usage("what makes a key is named by 254 bytes at most"));
        }
        let bits = tag_bits(count, terms.lifetime);
        Ok(Self::with_bits(id, public, count, terms, bits))
    }

    fn with_bits(id: [u8; 32], public: Encoding, count: u64, terms: Terms, bits: u32) -> Self {
        Publication { id, public, count, bits, terms, rice: rice(bits, count), body: 0 }
    }

    /// The header's bytes.
    pub fn to_bytes(&self) -> [u8; HEADER] {
        let mut out = [0; HEADER];
        out[..8].copy_from_slice(&MAGIC);
        out[8..12].copy_from_slice(&VERSION.to_le_bytes());
        (out[12], out[13]) = (self.bits as u8, self.rice as u8);
        out[16..24].copy_from_slice(&self.count.to_le_bytes());
        out[24..32].copy_from_slice(&self.terms.lifetime.to_le_bytes());
        out[32..40].copy_from_slice(&self.terms.per_client.to_le_bytes());
        out[40..72].copy_from_slice(&self.id);
        out[72..104].copy_from_slice(&self.public);
        out[104..112].copy_from_slice(&self.body.to_le_bytes());
        out[112] = self.terms.key.len() as u8;
        out[114..114 + self.terms.key.len()].copy_from_slice(self.terms.key.as_bytes());
        out
    }

    /// Reads a header. Errors: every value that [`to_bytes`](Self::to_bytes) cannot have written.
    pub fn parse(bytes: &[u8; HEADER]) -> std::result::Result<Self, TagsError> {
        if bytes[..8] != MAGIC {
            return Err(TagsError::Other);
        }
        let found = u32::from_le_bytes(array(bytes, 8));
        if found != VERSION {
            return Err(TagsError::Version { found, known: VERSION });
        }
        let text = bytes[114..].get(..usize::from(bytes[112])).ok_or(damaged("header"))?;
        let key = String::from_utf8(text.to_vec()).map_err(|_| damaged("header"))?;
        let publication = Publication {
            id: array(bytes, 40),
            public: array(bytes, 72),
            count: number(bytes, 16),
            bits: bytes[12].into(),
            terms: Terms { lifetime: number(bytes, 24), per_client: number(bytes, 32), key },
            rice: bytes[13].into(),
            body: number(bytes, 104),
        };
        let Publication { count, bits, ref terms, rice: parameter, .. } = publication;
        let limits = (1..=MAX_LIFETIME).contains(&terms.lifetime)
            && (1..=terms.lifetime).contains(&terms.per_client)
            && count <= MAX_ELEMENTS;
        let key = !is_identity_encoding(&publication.public) && Points::decode(&publication.public).is_ok();
        let lengths = limits && bits == tag_bits(count, terms.lifetime) && parameter == rice(bits, count);
        if !lengths || !key || publication.to_bytes() != *bytes {
            return Err(damaged("header"));
        }
        Ok(publication)
    }

    /// The tag of an element whose value of the function is `output`.
    fn tag(&self, output: &Output) -> u128 {
        u128::from_be_bytes(array(output, 0)) >> (128 - self.bits)
    }

    /// The tags of elements whose values of the function are `outputs`.
    pub fn tags(&self, outputs: &[Output]) -> Zeroizing<Vec<u128>> {
        Zeroizing::new(outputs.iter().map(|output| self.tag(output)).collect())
    }

    /// What the function is asked for: the element, bound to this publication.
    pub fn input(&self, element: &[u8]) -> Zeroizing<Vec<u8>> {
        // proof: tags 2.1, 3.4
        Zeroizing::new([&b"tacit tags v1"[..], &self.id, element].concat())
    }

    /// log2 of the bound on the probability that any query of the key's lifetime matches by chance. At most
    /// -40.
    pub fn chance_log2(&self) -> f64 {
        (self.count.max(1) as f64).log2() + (self.terms.lifetime as f64).log2() - f64::from(self.bits)
    }

    fn blocks(&self) -> u64 {
        self.count.div_ceil(BLOCK as u64)
    }

    /// Tags of the block at this place.
    fn tags_of_block(&self, at: usize) -> usize {
        (self.count - (at * BLOCK) as u64).min(BLOCK as u64) as usize
    }

    /// Bytes of the block at this place, at most.
    fn most_bytes(&self, at: usize) -> u64 {
        let differences = self.tags_of_block(at) as u64 - 1;
        (differences * u64::from(self.rice + 1) + MOST_ONES).div_ceil(8)
    }
}

/// Rice's parameter for `count` tags of `bits` bits: about the logarithm of the mean difference times ln 2.
fn rice(bits: u32, count: u64) -> u32 {
    let mean = f64::from(bits) - (count.max(1) as f64).log2();
    (mean + std::f64::consts::LN_2.log2()).round().clamp(0.0, f64::from(bits - 1)) as u32
}

/// Bits of a tag for `count` elements and the queries of a key's lifetime.
pub fn tag_bits(count: u64, lifetime: u64) -> u32 {
    // proof: tags 5.1
    RHO as u32 + ceil_log2(count) + ceil_log2(lifetime)
}

/// The digest of a publication: header and index, and through the index every block.
fn digest(header: &[u8; HEADER], index: &[u8]) -> [u8; DIGEST] {
    let mut hasher = blake3::Hasher::new_derive_key("tacit 2026 file of tags v1");
    hasher.update(header).update(index);
    *hasher.finalize().as_bytes()
}

fn block_hash(number: u64, bytes: &[u8]) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new_derive_key("tacit 2026 block of tags v1");
    hasher.update(&number.to_le_bytes()).update(bytes);
    *hasher.finalize().as_bytes()
}

/// A publication that was just made: its key must be kept, sealed.
#[derive(Debug)]
pub struct Published {
    /// What the file says about itself.
    pub publication: Publication,
    /// The digest that client and server agree on.
    pub digest: [u8; 32],
    /// The key, fresh for this publication.
    pub key: ServerKey,
}

/// Publishes a set: draws a fresh key and id, and writes the file of tags to `out`, which starts empty.
///
/// `elements` are distinct; each costs 16 bytes of memory here. `progress` is told how many are evaluated.
/// Errors: too many elements, terms out of range, or those of `out`.
pub fn publish<E: AsRef<[u8]> + Sync, W: Write + Seek>(
    out: &mut W,
    elements: &[E],
    terms: Terms,
    threads: NonZeroUsize,
    prg: &mut Prg,
    progress: &mut dyn FnMut(u64),
) -> Result<Published> {
    publish_among(out, elements, 0, terms, threads, prg, progress)
}

/// As [`publish`], among `decoys` random tags, which belong to no element and which nobody without the key
/// can tell from the others: clients see the sum of both numbers alone. A decoy takes no time.
pub fn publish_among<E: AsRef<[u8]> + Sync, W: Write + Seek>(
    out: &mut W,
    elements: &[E],
    decoys: u64,
    terms: Terms,
    threads: NonZeroUsize,
    prg: &mut Prg,
    progress: &mut dyn FnMut(u64),
) -> Result<Published> {
    let key = ServerKey::generate(prg);
    let mut id = [0; 32];
    prg.fill_bytes(&mut id);
    let count = (elements.len() as u64).saturating_add(decoys);
    let mut publication = Publication::new(id, *key.public(), count, terms)?;
    let (count, shift) = (publication.count as usize, 128 - publication.bits);
    let mut tags = Vec::new();
    tags.try_reserve_exact(count)
        .map_err(|_| Error::Usage("not enough memory for the tags of a set of this size"))?;
    tags.resize(elements.len(), 0);
    evaluate(elements, &mut tags, &publication, &key, threads, progress)?;
    tags.resize_with(count, || prg.block().to_u128() >> shift);
    tags.sort_unstable();
    let digest = write(out, &mut publication, &tags).map_err(fault("written"))?;
    Ok(Published { publication, digest, key })
}

/// The tags of all elements, in their order.
fn evaluate<E: AsRef<[u8]> + Sync>(
    elements: &[E],
    tags: &mut [u128],
    publication: &Publication,
    key: &ServerKey,
    threads: NonZeroUsize,
    progress: &mut dyn FnMut(u64),
) -> Result<()> {
    let suite = Suite::new(Mode::Verifiable);
    let piece = STEP * threads.get();
    for (round, (elements, tags)) in elements.chunks(piece).zip(tags.chunks_mut(piece)).enumerate() {
        let work = |elements: &[E], tags: &mut [u128]| -> Result<()> {
            let inputs: Vec<_> = elements.iter().map(|e| publication.input(e.as_ref())).collect();
            let outputs = Zeroizing::new(suite.apply(key, &inputs, b"")?);
            tags.copy_from_slice(&publication.tags(&outputs));
            Ok(())
        };
        if threads.get() == 1 {
            work(elements, tags)?;
        } else {
            std::thread::scope(|scope| {
                let parts = elements.chunks(STEP).zip(tags.chunks_mut(STEP));
                let handles: Vec<_> = parts.map(|(e, t)| scope.spawn(move || work(e, t))).collect();
                handles.into_iter().try_for_each(|handle| match handle.join() {
                    Ok(result) => result,
                    Err(panic) => std::panic::resume_unwind(panic),
                })
            })?;
        }
        progress((round * piece + elements.len()) as u64);
    }
    Ok(())
}

/// Writes sorted tags; returns the digest.
fn write<W: Write + Seek>(out: &mut W, publication: &mut Publication, tags: &[u128]) -> io::Result<[u8; 32]> {
    let mut index = Vec::with_capacity(tags.len().div_ceil(BLOCK) * ENTRY);
    let start = HEADER + publication.blocks() as usize * ENTRY + DIGEST;
    out.seek(SeekFrom::Start(start as u64))?;
    let mut end = 0;
    for (number, block) in (0..).zip(tags.chunks(BLOCK)) {
        let bytes = encode(block, publication.rice);
        end += bytes.len() as u64;
        out.write_all(&bytes)?;
        index.extend_from_slice(&block[0].to_le_bytes());
        index.extend_from_slice(&end.to_le_bytes());
        index.extend_from_slice(&block_hash(number, &bytes));
    }
    publication.body = end;
    let header = publication.to_bytes();
    let digest = digest(&header, &index);
    out.seek(SeekFrom::Start(0))?;
    for part in [&header[..], &index, &digest] {
        out.write_all(part)?;
    }
    Ok(digest)
}

/// A block's differences after its first tag: each quotient by 2^rice in ones and a zero, and its remainder.
fn encode(block: &[u128], rice: u32) -> Vec<u8> {
    let mut bits = BitWriter::default();
    for pair in block.windows(2) {
        let difference = pair[1] - pair[0];
        let mut ones = difference >> rice;
        while ones >= 32 {
            bits.push(u32::MAX.into(), 32);
            ones -= 32;
        }
        bits.push((1 << ones) - 1, ones as u32 + 1);
        let remainder = difference & ((1 << rice) - 1);
        bits.push(remainder as u64, rice.min(64));
        if rice > 64 {
            bits.push((remainder >> 64) as u64, rice - 64);
        }
    }
    bits.finish()
}

/// Bits, the lowest first.
#[derive(Default)]
struct BitWriter {
    bytes: Vec<u8>,
    pending: u128,
    filled: u32,
}

impl BitWriter {
    /// Appends the lowest `count` bits, 64 at most, above which `value` is zero.
    fn push(&mut self, value: u64, count: u32) {
        self.pending |= u128::from(value) << self.filled;
        self.filled += count;
        while self.filled >= 8 {
            self.bytes.push(self.pending as u8);
            self.pending >>= 8;
            self.filled -= 8;
        }
    }

    fn finish(mut self) -> Vec<u8> {
        if self.filled > 0 {
            self.bytes.push(self.pending as u8);
        }
        self.bytes
    }
}

struct BitReader<'a> {
    bytes: &'a [u8],
    pending: u64,
    filled: u32,
}

impl<'a> BitReader<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        BitReader { bytes, pending: 0, filled: 0 }
    }

    /// At least 33 bits, or all that are left.
    fn fill(&mut self) {
        while self.filled <= 56
            && let Some((byte, rest)) = self.bytes.split_first()
        {
            self.pending |= u64::from(*byte) << self.filled;
            self.filled += 8;
            self.bytes = rest;
        }
    }

    /// How many ones stand before the next zero.
    fn ones(&mut self) -> Option<u128> {
        let mut count = 0;
        loop {
            self.fill();
            let ones = self.pending.trailing_ones();
            if ones < self.filled {
                self.skip(ones + 1);
                return Some(count + u128::from(ones));
            }
            if self.filled == 0 {
                return None;
            }
            count += u128::from(self.filled);
            self.skip(self.filled);
        }
    }

    /// Whether all that is left are zeros of a byte that was begun.
    fn is_at_end(&self) -> bool {
        self.bytes.is_empty() && self.filled < 8 && self.pending == 0
    }

    fn skip(&mut self, bits: u32) {
        self.pending = self.pending.checked_shr(bits).unwrap_or(0);
        self.filled -= bits;
    }

    fn take(&mut self, count: u32) -> Option<u128> {
        let (mut value, mut have) = (0, 0);
        while have < count {
            self.fill();
            let now = self.filled.min(count - have).min(32);
            if now == 0 {
                return None;
            }
            value |= u128::from(self.pending & ((1 << now) - 1)) << have;
            self.skip(now);
            have += now;
        }
        Some(value)
    }
}

/// The file with the hashes and the digest that it should have, where it is long enough to have them: what is wrong
/// with it then is the publisher's doing.
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub fn with_hashes(bytes: &[u8]) -> Vec<u8> {
    let mut out = bytes.to_vec();
    let Some(header) = out.first_chunk::<HEADER>().copied() else { return out };
    let Ok(publication) = Publication::parse(&header) else { return out };
    let blocks = (publication.blocks() as usize).min(out.len() / ENTRY);
    let body = HEADER + DIGEST + blocks * ENTRY;
    if out.len() < body {
        return out;
    }
    out[104..112].copy_from_slice(&((bytes.len() - body) as u64).to_le_bytes());
    let mut start = 0;
    for at in 0..blocks {
        let entry = HEADER + at * ENTRY;
        let end = number(&out, entry + 16) as usize;
        if let Some(block) = out[body..].get(start..end) {
            let hash = block_hash(at as u64, block);
            out[entry + 24..entry + ENTRY].copy_from_slice(&hash);
        }
        start = end;
    }
    let header = *out.first_chunk::<HEADER>().unwrap_or(&header);
    let digest = digest(&header, &out[HEADER..body - DIGEST]);
    out[body - DIGEST..body].copy_from_slice(&digest);
    out
}

/// A file of tags, open for look-ups.
#[derive(Debug)]
pub struct TagFile<R> {
    source: R,
    publication: Publication,
    digest: [u8; 32],
    index: Vec<u8>,
    /// How many tags all blocks had, once they were read.
    checked: Option<u64>,
}

impl<R: Read + Seek> TagFile<R> {
    /// Reads header and index, and checks them against the digest and the file's length.
    ///
    /// Errors: [`TagsError`]. The digest is the file's own: the server must be asked whether it is the right
    /// one.
    pub fn open(mut source: R) -> Result<Self> {
        let length = source.seek(SeekFrom::End(0)).map_err(fault("read"))?;
        source.seek(SeekFrom::Start(0)).map_err(fault("read"))?;
        let mut header = [0; HEADER];
        let got = length.min(HEADER as u64) as usize;
        source.read_exact(&mut header[..got]).map_err(fault("read"))?;
        if header.starts_with(&super::PRIVATE_MAGIC) {
            return Err(TagsError::Private.into());
        }
        if got < HEADER && header.starts_with(&MAGIC) {
            return Err(TagsError::Cut { found: length }.into());
        }
        let publication = Publication::parse(&header)?;
        let index = publication.blocks() * ENTRY as u64;
        let expected = (HEADER + DIGEST) as u64 + index;
        let expected = expected.checked_add(publication.body).ok_or(damaged("header"))?;
        if length != expected {
            return Err(TagsError::Length { found: length, expected }.into());
        }
        // The file is as long as that, so its index is paid for.
        let mut index = vec![0; index as usize];
        let mut stored = [0; DIGEST];
        source.read_exact(&mut index).and_then(|()| source.read_exact(&mut stored)).map_err(fault("read"))?;
        if digest(&header, &index) != stored {
            return Err(damaged("header or index").into());
        }
        let file = TagFile { source, publication, digest: stored, index, checked: None };
        file.check_index()?;
        Ok(file)
    }

    /// First tags ascend and are no longer than tags are, and the blocks fill the body, none longer than one
    /// can be.
    fn check_index(&self) -> Result<()> {
        let mut before = (0, 0);
        for (at, entry) in self.index.as_chunks::<ENTRY>().0.iter().enumerate() {
            let (first, end) = Self::entry(entry);
            let fits = first.checked_shr(self.publication.bits).unwrap_or(0) == 0;
            let length = end.checked_sub(before.1);
            // proof: tags 2.7
            let fits = fits && length.is_some_and(|length| length <= self.publication.most_bytes(at));
            if first < before.0 || end > self.publication.body || !fits {
                return Err(damaged("index").into());
            }
            before = (first, end);
        }
        if before.1 != self.publication.body {
            return Err(damaged("index").into());
        }
        Ok(())
    }

    fn entry(entry: &[u8; ENTRY]) -> (u128, u64) {
        (u128::from_le_bytes(array(entry, 0)), number(entry, 16))
    }

    /// What the file says about itself.
    pub fn publication(&self) -> &Publication {
        &self.publication
    }

    /// The digest that client and server must agree on.
    pub fn digest(&self) -> &[u8; 32] {
        &self.digest
    }

    /// Which of the tags are in the file.
    ///
    /// Reads the blocks that the tags fall into, each once, in the file's order: how long that takes, and
    /// whether a block can be read, depends on the tags and on what the publisher put into the file. So the
    /// peer must wait for nothing more; see also [`checked`](Self::checked). Errors: [`TagsError`].
    pub fn contains(&mut self, tags: &[u128]) -> Result<Vec<bool>> {
        let mut order: Vec<usize> = (0..tags.len()).collect();
        order.sort_unstable_by_key(|&at| tags[at]);
        let mut found = vec![false; tags.len()];
        let mut current = (usize::MAX, Vec::new());
        for at in order {
            let entries = self.index.as_chunks::<ENTRY>().0;
            let after = entries.partition_point(|entry| Self::entry(entry).0 <= tags[at]);
            let Some(block) = after.checked_sub(1) else { continue };
            if current.0 != block {
                current = (block, self.block(block)?);
            }
            found[at] = current.1.binary_search(&tags[at]).is_ok();
        }
        Ok(found)
    }

    /// As [`check`](Self::check), which is done once for an open file: before any query is made, so that
    /// nothing of what is asked decides whether the file is found to be damaged.
    pub fn checked(&mut self) -> Result<u64> {
        // proof: tags 2.7
        match self.checked {
            Some(count) => Ok(count),
            None => self.check(),
        }
    }

    /// Reads and checks every block; returns the number of tags.
    pub fn check(&mut self) -> Result<u64> {
        let mut count = 0;
        let mut last = 0;
        for number in 0..self.index.len() / ENTRY {
            let block = self.block(number)?;
            if block[0] < last {
                return Err(damaged("order of the blocks").into());
            }
            last = block[block.len() - 1];
            count += block.len() as u64;
        }
        self.checked = Some(count);
        Ok(count)
    }

    /// The tags of a block, ascending; never empty.
    fn block(&mut self, at: usize) -> Result<Vec<u128>> {
        let entries = self.index.as_chunks::<ENTRY>().0;
        let start = at.checked_sub(1).map_or(0, |before| Self::entry(&entries[before]).1);
        let ((first, end), expected) = (Self::entry(&entries[at]), array::<32>(&entries[at], 24));
        let body = (HEADER + DIGEST + self.index.len()) as u64;
        let mut bytes = vec![0; (end - start) as usize];
        self.source
            .seek(SeekFrom::Start(body + start))
            .and_then(|_| self.source.read_exact(&mut bytes))
            .map_err(fault("read"))?;
        if block_hash(at as u64, &bytes) != expected {
            return Err(damaged("a block of tags").into());
        }
        work::done(work::Kind::Sought, bytes.len());
        let count = self.publication.tags_of_block(at);
        let mut bits = BitReader::new(&bytes);
        let mut tags = Vec::with_capacity(count);
        tags.push(first);
        let mut tag = first;
        // Hashed by who made the index: what is wrong from here on is the publisher's doing.
        while tags.len() < count {
            let next = self.difference(&mut bits).and_then(|difference| tag.checked_add(difference));
            tag = next
                .filter(|tag| tag.checked_shr(self.publication.bits).unwrap_or(0) == 0)
                .ok_or(damaged("a block of tags"))?;
            tags.push(tag);
        }
        // One encoding alone: nothing behind the last tag but the zeros of its byte.
        if !bits.is_at_end() {
            return Err(damaged("a block of tags").into());
        }
        Ok(tags)
    }

    fn difference(&self, bits: &mut BitReader<'_>) -> Option<u128> {
        let rice = self.publication.rice;
        let quotient = bits.ones()?;
        let high = (quotient <= u128::MAX >> rice).then(|| quotient << rice)?;
        high.checked_add(bits.take(rice)?)
    }
}

#[cfg(test)]
#[path = "tags_tests.rs"]
pub(super) mod tests;
