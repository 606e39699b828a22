//! Preparations on the disk: the first phase, done when there is time, in a sealed file that serves once.
//!
//! **A piece is a file.** It holds what some runs of one size take, whatever their function, and has a Δ of its
//! own: the session that makes it makes nothing else. So a check that fails in a run on one piece says nothing
//! of another.
//!
//! **Once and never again.** [`Stored::take`] compares with the peer that both pieces were made together, then
//! overwrites the salt of the file's keys and forces that to the disk, and only then hands anything out. A
//! crash at any moment loses the piece and never lets it serve twice. What no file can notice is being replaced
//! by an older copy of itself.
//!
//! **File.** A header of 224 bytes, little-endian: magic, version, role, used, two zero bytes, rows, and a row's
//! AND gates, garbler's input bits and evaluator's; file length; id, salt, check of the key, hash of the peer's
//! key or zeros; 8 zero bytes; BLAKE3 of all that. Then chunks sealed with AES-256-GCM under keys of this file
//! alone: what hashes are bound to, Δ, gates, MACs and keys of masks.

use super::bits::{BLOCKS, Shares, zeros};
use super::demand::Demand;
use super::independent::Independent;
use super::oracle::Oracle;
use super::session::Session;
use super::{mismatch, usage};
use crate::{Error, OutputTo, Owner, Prepared, Result, StateError};
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;
use subtle::ConstantTimeEq;
use tacit_crypto::{BitVec, Block, Prg};
use tacit_net::Channel;
use tacit_ot::{CotReceiver, CotSender};
use tacit_store::sealed::{
    FileError, FileKey, Keys, Locked, Purpose, SealedReader, SealedWriter, array, io_fault, sealed_length,
};

/// Version of the file format.
const FORMAT: u32 = 1;
const MAGIC: [u8; 8] = *b"TACITAP1";
const BODY: usize = 192;
const HEADER: usize = BODY + 32;
const USED: usize = 13;
const LENGTH: usize = 48;
const SALT: usize = 88;
const CHECK: usize = 120;
const PEER: usize = 152;
/// AND gates of a piece, at most: what memory holds.
const MOST: usize = 1 << 28;
const PURPOSE: Purpose = Purpose {
    sealing: "tacit 1 prepared triples: sealing",
    mac: "tacit 1 prepared triples: authentication",
    check: "tacit 1 prepared triples: check of the key",
};

/// What a piece says about itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// Which side of the computation it is.
    pub role: Owner,
    /// Runs that it serves, all in one session.
    pub rows: usize,
    /// What each of them takes.
    pub one: Demand,
    /// What both sides' pieces have in common and no other has.
    pub id: [u8; 32],
    /// A hash of the key that the peer proved when the piece was made; `None` where it proved none.
    pub peer: Option<[u8; 32]>,
    salt: [u8; 32],
}

impl Header {
    /// The header of a piece that is not made yet: for its length.
    pub fn of(role: Owner, one: Demand, rows: usize) -> Self {
        Header { role, rows, one, id: [0; 32], peer: None, salt: [0; 32] }
    }

    /// The beginning of the id, for people.
    pub fn short_id(&self) -> String {
        self.id[..6].iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The lengths in blocks of what is sealed: of the gates, of the MACs and of the keys of the masks.
    fn lengths(&self) -> Option<[usize; 3]> {
        let all = self.all()?;
        let of = |owner| all.ands.checked_add(all.inputs(owner));
        (all.ands <= MOST).then_some(())?;
        Some([BLOCKS * all.ands, of(self.role)?, of(self.role.other())?])
    }

    /// The demand of all rows.
    fn all(&self) -> Option<Demand> {
        let times = |n: usize| n.checked_mul(self.rows).filter(|n| *n <= 1 << 40);
        Some(Demand {
            ands: times(self.one.ands)?,
            garbler_inputs: times(self.one.garbler_inputs)?,
            evaluator_inputs: times(self.one.evaluator_inputs)?,
        })
    }

    /// Bytes of the file that has this header; `None` for more than a piece may hold.
    pub fn file_length(&self) -> Option<u64> {
        let blocks: usize = self.lengths()?.iter().sum();
        Some(HEADER as u64 + sealed_length(32 + 16 * (1 + blocks as u64)))
    }

    fn body(&self, check: &[u8; 32]) -> [u8; BODY] {
        let mut out = [0; BODY];
        out[..8].copy_from_slice(&MAGIC);
        out[8..12].copy_from_slice(&FORMAT.to_le_bytes());
        out[12] = u8::from(self.role == Owner::Evaluator);
        let Demand { ands, garbler_inputs, evaluator_inputs } = self.one;
        let numbers = [self.rows, ands, garbler_inputs, evaluator_inputs].map(|n| n as u64);
        for (place, number) in out[16..LENGTH].as_chunks_mut().0.iter_mut().zip(numbers) {
            *place = number.to_le_bytes();
        }
        out[LENGTH..56].copy_from_slice(&self.file_length().unwrap_or_default().to_le_bytes());
        out[56..SALT].copy_from_slice(&self.id);
        out[SALT..CHECK].copy_from_slice(&self.salt);
        out[CHECK..PEER].copy_from_slice(check);
        out[PEER..PEER + 32].copy_from_slice(&self.peer.unwrap_or_default());
        out
    }

    /// What every chunk is bound to.
    fn context(&self) -> [u8; 32] {
        *blake3::hash(&self.body(&[0; 32])).as_bytes()
    }

    /// Everything of a header, and the file length and the check of the key.
    fn parse(bytes: &[u8; HEADER]) -> Result<(Self, u64, [u8; 32])> {
        let (body, digest) = bytes.split_at(BODY);
        if body[..8] != MAGIC {
            return Err(not_a_piece().into());
        }
        let found = u32::from_le_bytes(array(&body[8..12]));
        if found != FORMAT {
            return Err(FileError::Version { found, known: FORMAT }.into());
        }
        if body[USED] != 0 {
            return Err(StateError::Used.into());
        }
        let number = |i: usize| u64::from_le_bytes(array(&body[16 + 8 * i..24 + 8 * i])) as usize;
        let one = Demand { ands: number(1), garbler_inputs: number(2), evaluator_inputs: number(3) };
        let role = [Owner::Garbler, Owner::Evaluator].get(usize::from(body[12])).copied();
        let damaged = || Error::from(FileError::Damaged { what: "header" });
        if blake3::hash(body).as_bytes() != digest {
            return Err(damaged());
        }
        let peer = Some(array(&body[PEER..PEER + 32])).filter(|peer| *peer != [0; 32]);
        let (id, salt) = (array(&body[56..SALT]), array(&body[SALT..CHECK]));
        let header = Header { role: role.ok_or_else(damaged)?, rows: number(0), one, id, peer, salt };
        let length = header.file_length().ok_or_else(damaged)?;
        Ok((header, length, array(&body[CHECK..PEER])))
    }
}

fn not_a_piece() -> FileError {
    FileError::Other { wanted: "pool of prepared gates", command: "tacit eval pool make" }
}

fn with_digest(body: &[u8; BODY]) -> [u8; HEADER] {
    let mut out = [0; HEADER];
    out[..BODY].copy_from_slice(body);
    out[BODY..].copy_from_slice(blake3::hash(body).as_bytes());
    out
}

impl<S: CotSender, R: CotReceiver> Session<S, R> {
    /// Makes what `rows` runs of the size `one` take, and writes it, sealed with `key`, to `out`: an empty file
    /// that the caller gives its name only after success. `peer` is a hash of the key that the peer proved, if
    /// it did. The session serves nothing else.
    ///
    /// Errors: those of [`Session::independent`]; `Usage` for more than 2^28 AND gates; [`StateError`]
    /// where the file cannot be written.
    pub fn store<W: Write + Seek>(
        mut self,
        channel: &mut Channel,
        one: Demand,
        rows: usize,
        peer: Option<[u8; 32]>,
        key: &FileKey,
        out: &mut W,
        prg: &mut Prg,
    ) -> Result<Header> {
        let mut header = Header { peer, ..Header::of(self.role(), one, rows) };
        let (Some(all), Some(lengths)) = (header.all(), header.lengths()) else {
            return usage("a piece for at most 2^28 AND gates");
        };
        prg.fill_bytes(&mut header.salt);
        let made = self.independent(channel, all)?;
        made.oracle.transcript("stored").challenge_bytes("id", &mut header.id);
        let keys = Keys::new(key, &header.salt, &PURPOSE)?;
        let check = keys.check;
        // Not a header before all is written.
        out.write_all(&[0; HEADER]).map_err(io_fault("written"))?;
        let mut stream = SealedWriter::new(out, keys, header.context());
        stream.write(&made.oracle.0)?;
        let delta = [made.delta];
        let [gates, macs, keys] = lengths;
        for blocks in [&delta, &made.gates[..gates], &made.masks.macs[..macs], &made.masks.keys[..keys]] {
            stream.write(Block::as_bytes(blocks))?;
        }
        let out = stream.finish()?;
        let mut begin = || {
            out.seek(SeekFrom::Start(0))?;
            out.write_all(&with_digest(&header.body(&check)))?;
            out.flush()
        };
        begin().map_err(io_fault("written"))?;
        Ok(header)
    }
}

/// A piece, open in this process alone, that serves once.
pub struct Stored {
    header: Header,
    stream: SealedReader,
    used: bool,
}

impl std::fmt::Debug for Stored {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Stored({}, [secret])", self.header.short_id())
    }
}

impl Stored {
    /// Opens the piece at `path` with the key that it was made with.
    ///
    /// Errors: [`StateError`], which names what is wrong with the file or the key, or that it is in use or was
    /// used.
    pub fn open(path: &Path, key: &FileKey) -> Result<Self> {
        let file = Locked::open(path)?;
        let mut start = [0; HEADER];
        file.read_at(0, &mut start).map_err(|e| match e.kind() {
            std::io::ErrorKind::UnexpectedEof => not_a_piece(),
            _ => io_fault("read")(e),
        })?;
        let (header, expected, check) = Header::parse(&start)?;
        let found = file.metadata().map_err(io_fault("read"))?.len();
        if found != expected {
            return Err(FileError::Length { found, expected }.into());
        }
        let keys = Keys::new(key, &header.salt, &PURPOSE)?;
        if !bool::from(keys.check.ct_eq(&check)) {
            return Err(FileError::WrongKey.into());
        }
        let stream = SealedReader::new(file, keys, header.context(), HEADER as u64, expected);
        Ok(Stored { header, stream, used: false })
    }

    /// What the piece says about itself.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Refuses a session with another peer than the one that the piece was made with; `peer` is a hash of the
    /// key that it proved, if it did.
    ///
    /// Errors: [`StateError::OtherPeer`]; the piece stays as it was.
    pub fn require_peer(&self, peer: Option<[u8; 32]>) -> Result<()> {
        if self.header.peer == peer { Ok(()) } else { Err(StateError::OtherPeer.into()) }
    }

    /// Takes the piece, for runs on `channel`: the preparations of its rows. It is used up, whatever happens,
    /// from the moment that the peer has shown its own.
    ///
    /// Errors: `Mismatch` if the peer's piece is not the one made with this, or of the same role, which leaves
    /// it as it was; [`StateError`] where the file cannot be read or marked.
    pub fn take(
        mut self,
        channel: &mut Channel,
        prg: &mut Prg,
    ) -> Result<impl Iterator<Item = Independent> + use<>> {
        let mut made = self.read(prg)?;
        let mut transcript = made.oracle.transcript("taken");
        transcript.append("session", &channel.session_id().0);
        transcript.append_u64("instance", channel.next_instance());
        // Role, digest.
        let (mut mine, mut theirs) = ([0u8; 33], [0u8; 33]);
        mine[0] = u8::from(self.header.role == Owner::Garbler);
        transcript.challenge_bytes("terms", &mut mine[1..]);
        channel.send(&mine)?;
        channel.recv(&mut theirs)?;
        if theirs[0] == mine[0] {
            return mismatch("who garbles and who evaluates: both pieces are of one side");
        }
        if theirs[1..] != mine[1..] {
            return mismatch(
                "the prepared piece: the two sides' were not made together; name the right files",
            );
        }
        self.use_up()?;
        made.oracle = made.oracle.bound_to(&mut transcript);
        Ok(made.rows(self.header.one, self.header.rows))
    }

    /// Takes the piece and runs `function` on `rows`, this party's input bits of a run: at most as many as it
    /// serves, and both parties as many. What a function of fewer gates or inputs does not need of a row is lost.
    /// Returns the outputs of each row if this party learns them; `each` hears of every row that is done.
    ///
    /// Errors: [`StateError::OtherJob`], before anything is sent, if the piece is for smaller functions or for
    /// fewer rows; else as [`take`](Self::take) and the phases that follow.
    pub fn run_rows(
        self,
        channel: &mut Channel,
        function: &Prepared,
        output_to: OutputTo,
        rows: &[BitVec],
        prg: &mut Prg,
        mut each: impl FnMut(),
    ) -> Result<Option<Vec<BitVec>>> {
        let Header { role, rows: most, .. } = self.header;
        let one = Demand::of(function);
        if !self.header.one.covers(one) {
            return Err(StateError::OtherJob { what: "number of gates or inputs" }.into());
        }
        if rows.len() > most {
            return Err(StateError::OtherJob { what: "number of rows" }.into());
        }
        if rows.iter().any(|input| input.len() != one.inputs(role)) {
            return usage(super::OTHER_INPUT);
        }
        let mut outputs = Vec::with_capacity(rows.len());
        for (row, input) in self.take(channel, prg)?.zip(rows) {
            outputs.extend(row.cut(one).dependent(channel, function, output_to)?.online(channel, input)?);
            each();
        }
        Ok(output_to.learned_by(role).then_some(outputs))
    }

    fn read(&mut self, prg: &mut Prg) -> Result<Independent> {
        let (Some(demand), Some([gates, macs, keys])) = (self.header.all(), self.header.lengths()) else {
            return Err(FileError::Damaged { what: "header" }.into());
        };
        let mut oracle = Oracle([0; 32]);
        self.stream.read(&mut oracle.0)?;
        let mut delta = zeros(1);
        let (mut room, mut masks) = (zeros(gates), Shares::zeros(macs, keys));
        for blocks in [&mut delta, &mut room, &mut masks.macs, &mut masks.keys] {
            self.stream.read(Block::as_bytes_mut(blocks))?;
        }
        let role = self.header.role;
        Ok(Independent { role, delta: delta[0], oracle, demand, gates: room, masks, prg: prg.fork() })
    }

    /// Marks the piece as used and forgets its keys' salt; only when this has returned may anything that
    /// depends on it be sent.
    fn use_up(&mut self) -> Result<()> {
        self.used = true;
        let mut body = Header { salt: [0; 32], ..self.header }.body(&[0; 32]);
        body[USED] = 1;
        Ok(self.stream.file().write_at(0, &with_digest(&body)).map_err(io_fault("marked as used"))?)
    }
}

impl Drop for Stored {
    /// Of a used piece only the header stays, to say so.
    fn drop(&mut self) {
        if self.used {
            let _ = self.stream.file().set_len(HEADER as u64);
        }
    }
}
