//! Preparations on the disk: the first phase, done when there is time, in a sealed file that serves once.
//!
//! **A piece is a file.** It holds what some runs of one size take, whatever their function, and has a Δ of
//! its own: the session that makes it makes nothing else. So a check that fails in a run on one piece says
//! nothing of another.
//!
//! [`Stored::take`] compares with the peer that both pieces were made together, uses the piece up, and only then
//! hands anything out.
//!
//! **File**, as `once` has it. The header's middle: two zero bytes, rows, and a row's AND gates, garbler's
//! input bits and evaluator's; file length; id, salt, check of the key, hash of the peer's key or zeros; 8
//! zero bytes. The chunks: what hashes are bound to, Δ, gates, MACs and keys of masks.

use super::bits::{Gates, GatesMut, Share, Shares, Stock, zeros};
use super::demand::Demand;
use super::independent::Independent;
use super::opening::FIRST_AHEAD;
use super::oracle::Oracle;
use super::session::Session;
use super::spent::Spent;
use super::{mismatch, usage};
use crate::once::{self, About, BODY, HEADER, Once, Saving};
use crate::{OutputTo, Owner, Prepared, Result, StateError};
use std::io::{Seek, Write};
use std::ops::Range;
use std::path::Path;
use tacit_crypto::{BitVec, Block, Buffer, Prg};
use tacit_net::Channel;
use tacit_ot::{CotReceiver, CotSender};
use tacit_store::sealed::{FileError, FileKey, Purpose, array, sealed_length};
use zeroize::Zeroizing;

const LENGTH: usize = 48;
const SALT: usize = 88;
const CHECK: usize = 120;
const PEER: usize = 152;
/// AND gates of a piece, at most: what memory holds.
const MOST: usize = 1 << 28;

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
        tacit_crypto::hex(&self.id[..6])
    }

    /// The lengths in blocks of what is sealed: of the gates, of the MACs and of the keys of the masks.
    fn lengths(&self) -> Option<[usize; 3]> {
        let all = self.all()?;
        let of = |owner| all.ands.checked_add(all.inputs(owner));
        (all.ands <= MOST).then_some(())?;
        Some([6 * all.ands, of(self.role)?, of(self.role.other())?])
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
}

impl About for Header {
    const MAGIC: [u8; 8] = *b"TACITAP1";
    // 2: triples by version 8; those of before may have leaked more often than they should.
    const FORMAT: u32 = 2;
    const PURPOSE: Purpose = Purpose {
        sealing: "tacit 1 prepared triples: sealing",
        mac: "tacit 1 prepared triples: authentication",
        check: "tacit 1 prepared triples: check of the key",
    };

    fn other() -> FileError {
        FileError::Other { wanted: "pool of prepared gates", command: "tacit eval pool make" }
    }

    /// The length follows from the rest.
    fn body(&self, _: u64, check: &[u8; 32]) -> [u8; BODY] {
        let mut out = once::body_of::<Self>(self.role);
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

    fn parse(body: &[u8; BODY]) -> Option<(Self, u64, [u8; 32])> {
        let number = |i: usize| u64::from_le_bytes(array(&body[16 + 8 * i..24 + 8 * i])) as usize;
        let one = Demand { ands: number(1), garbler_inputs: number(2), evaluator_inputs: number(3) };
        let peer = Some(array(&body[PEER..PEER + 32])).filter(|peer| *peer != [0; 32]);
        let (id, salt) = (array(&body[56..SALT]), array(&body[SALT..CHECK]));
        let header = Header { role: once::role_of(body)?, rows: number(0), one, id, peer, salt };
        Some((header, header.file_length()?, array(&body[CHECK..PEER])))
    }

    fn salt(&mut self) -> &mut [u8; 32] {
        &mut self.salt
    }

    fn peer(&self) -> Option<[u8; 32]> {
        self.peer
    }
}

/// Gates that are written at a time.
fn tiles(gates: usize) -> impl Iterator<Item = Range<usize>> {
    const TILE: usize = 1 << 12;
    (0..gates).step_by(TILE).map(move |start| start..gates.min(start + TILE))
}

/// A file's blocks: gate after gate, three bits of each, MAC before key.
fn by_gate(gates: Gates<'_>) -> Buffer {
    let mut blocks = zeros(6 * gates.macs[0].len());
    for (blocks, shares) in blocks.as_chunks_mut::<6>().0.iter_mut().zip(gates.iter()) {
        for (place, share) in blocks.as_chunks_mut::<2>().0.iter_mut().zip(shares) {
            *place = [share.mac, share.key];
        }
    }
    blocks
}

/// The converse of [`by_gate`].
fn from_gates(blocks: &[Block], mut gates: GatesMut<'_>) {
    for (blocks, places) in blocks.as_chunks::<6>().0.iter().zip(gates.iter_mut()) {
        for (&[mac, key], place) in blocks.as_chunks::<2>().0.iter().zip(places) {
            place.set(Share { mac, key });
        }
    }
}

impl<S: CotSender, R: CotReceiver> Session<S, R> {
    /// Makes what `rows` runs of the size `one` take, and writes it, sealed with `key`, to `out`: an empty
    /// file that the caller gives its name only after success. `peer` is a hash of the key that the peer
    /// proved, if it did. The session serves nothing else.
    ///
    /// Errors: those of [`Session::independent`]; `Usage` for more than 2^28 AND gates, and where the session
    /// made something before; [`StateError`] where the file cannot be written.
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
        if !self.is_fresh() {
            return usage(
                "a piece has a session of its own, so that what else it made cannot fail beside it",
            );
        }
        prg.fill_bytes(&mut header.salt);
        let made = self.independent(channel, all)?;
        made.oracle.transcript("stored").challenge_bytes("id", &mut header.id);
        let mut saving = Saving::new(out, key, header)?;
        let stream = &mut saving.stream;
        stream.write(&made.oracle.0)?;
        let delta = Zeroizing::new([made.delta]);
        stream.write(Block::as_bytes(&*delta))?;
        for gates in tiles(all.ands) {
            stream.write(Block::as_bytes(&by_gate(made.gates.gates().part(gates))))?;
        }
        let [_, macs, keys] = lengths;
        for blocks in [&made.masks.macs[..macs], &made.masks.keys[..keys]] {
            stream.write(Block::as_bytes(blocks))?;
        }
        saving.finish()
    }
}

#[cfg(feature = "fuzzing")]
#[doc(hidden)]
impl Header {
    /// The header of a file with this body: written as it was read.
    pub fn fuzzed(body: &[u8; BODY]) {
        once::fuzzed::<Self>(body);
    }
}

/// A piece, open in this process alone, that serves once.
pub struct Stored(Once<Header>);

impl std::fmt::Debug for Stored {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Stored({}, [secret])", self.0.header.short_id())
    }
}

impl Stored {
    /// Opens the piece at `path` with the key that it was made with.
    ///
    /// Errors: [`StateError`], which names what is wrong with the file or the key, or that it is in use or
    /// was used.
    pub fn open(path: &Path, key: &FileKey) -> Result<Self> {
        Once::open(path, key).map(Stored)
    }

    /// What the piece says about itself.
    pub fn header(&self) -> &Header {
        &self.0.header
    }

    /// Refuses a session with another peer than the one that the piece was made with; `peer` is a hash of the
    /// key that it proved, if it did.
    ///
    /// Errors: [`StateError::OtherPeer`]; the piece stays as it was.
    pub fn require_peer(&self, peer: Option<[u8; 32]>) -> Result<()> {
        self.0.require_peer(peer)
    }

    /// Takes the piece, for runs on `channel`: the preparation of its rows. It is used up, whatever happens,
    /// from the moment that the peer has shown its own.
    ///
    /// Errors: `Mismatch` if the peer's piece is not the one made with this, or of the same role, which
    /// leaves it as it was; [`StateError`] where the file cannot be read or marked.
    pub fn take(mut self, channel: &mut Channel, prg: &mut Prg) -> Result<Independent> {
        let mut made = self.read(prg)?;
        let mut transcript = made.oracle.transcript("taken");
        transcript.append("session", &channel.session_id().0);
        transcript.append_u64("instance", channel.next_instance());
        let Header { one, rows, .. } = self.0.header;
        for number in [one.ands, one.garbler_inputs, one.evaluator_inputs, rows] {
            transcript.append_u64("of each row, and rows", number as u64);
        }
        // Of each role its own, so that who sends ours back has not shown a piece.
        let ours = self.0.header.role;
        let mut terms = |role: Owner| {
            let mut terms = [0u8; 32];
            transcript.append_u64("garbler", u64::from(role == Owner::Garbler));
            transcript.challenge_bytes("terms", &mut terms);
            terms
        };
        let [of_garbler, of_evaluator] = [Owner::Garbler, Owner::Evaluator].map(&mut terms);
        let (mine, wanted) = match ours {
            Owner::Garbler => (of_garbler, of_evaluator),
            Owner::Evaluator => (of_evaluator, of_garbler),
        };
        let mut theirs = [0u8; 32];
        channel.send(&mine)?;
        channel.recv(&mut theirs)?;
        if theirs == mine {
            return mismatch("who garbles and who evaluates: both pieces are of one side");
        }
        if theirs != wanted {
            return mismatch(
                "the prepared piece: the two sides' were not made together; name the right files",
            );
        }
        self.0.use_up()?;
        made.oracle = made.oracle.bound_to(&mut transcript);
        Ok(made)
    }

    /// Takes the piece and runs `function` on `rows`, this party's input bits of a run: at most as many as it
    /// serves, and both parties as many. What a function of fewer gates or inputs does not need of a row is
    /// lost. Returns the outputs of each row if this party learns them; `done` hears of every row.
    ///
    /// Errors: [`StateError::OtherJob`], before anything is sent, if the piece is for smaller functions or
    /// for fewer rows; else as [`take`](Self::take) and the phases that follow.
    pub fn run_rows(
        self,
        channel: &mut Channel,
        function: &Prepared,
        output_to: OutputTo,
        rows: &[BitVec],
        prg: &mut Prg,
        mut done: impl FnMut(),
    ) -> Result<Option<Vec<BitVec>>> {
        let Header { role, one: each, rows: most, .. } = self.0.header;
        let one = Demand::of(function);
        if !each.covers(one) {
            return Err(StateError::OtherJob { what: "number of gates or inputs" }.into());
        }
        if rows.len() > most {
            return Err(StateError::OtherJob { what: "number of rows" }.into());
        }
        if rows.iter().any(|input| input.len() != one.inputs(role)) {
            return usage(super::OTHER_INPUT);
        }
        let outputs = self
            .take(channel, prg)?
            .cut(each, one, rows.len())
            .run_rows(channel, function, output_to, rows)?;
        rows.iter().for_each(|_| done());
        Ok(output_to.learned_by(role).then_some(outputs))
    }

    fn read(&mut self, prg: &mut Prg) -> Result<Independent> {
        let (Some(demand), Some([_, macs, keys])) = (self.0.header.all(), self.0.header.lengths()) else {
            return Err(FileError::Damaged { what: "header" }.into());
        };
        let mut oracle = Oracle([0; 32]);
        self.0.stream.read(&mut oracle.0)?;
        let mut delta = zeros(1);
        self.0.stream.read(Block::as_bytes_mut(&mut delta))?;
        let (mut gates, mut masks) = (Stock::zeros(demand.ands), Shares::zeros(macs, keys));
        for range in tiles(demand.ands) {
            let mut blocks = zeros(6 * range.len());
            self.0.stream.read(Block::as_bytes_mut(&mut blocks))?;
            from_gates(&blocks, gates.gates_mut().part(range));
        }
        for blocks in [&mut masks.macs, &mut masks.keys] {
            self.0.stream.read(Block::as_bytes_mut(blocks))?;
        }
        let role = self.0.header.role;
        let (delta, prg, ahead, spent) = (delta[0], prg.fork(), FIRST_AHEAD, Spent::default());
        Ok(Independent { role, delta, oracle, demand, gates, masks, prg, ahead, spent })
    }
}
