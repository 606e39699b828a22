//! The files between the two halves of a run.
//!
//! [`State::run`] compares with the peer that both states were made together, uses the state up, and only then
//! sends anything that depends on it.
//!
//! **With whom.** A state holds one side of what was done with one peer: the peer's key is in the header, and
//! [`State::require_peer`] refuses another's before the state is touched.
//!
//! **File**, as `once` has it. The header's middle: who learns, coded or not, copies, evaluated copies, file
//! length, digest of the job, id of the state, salt, check of the key, hash of the peer's key or zeros, 4
//! zero bytes.

use super::{Keep, Kept};
use crate::once::{self, About, BODY, Once};
use crate::wmk17::function::slots_of;
use crate::wmk17::outputs::{Received, TokenHashes, Tokens};
use crate::wmk17::protocol::{Evaluator, Garbler};
use crate::wmk17::state::{EvaluatorState, GarblerState};
use crate::wmk17::terms::{Announced, Blocks, Terms, usage, zeros};
use crate::wmk17::trapdoor::{Trapdoor, point};

use crate::wmk17::secrets::Seeds;
use crate::wmk17::{Copies, Job};
use crate::{Error, OutputTo, Owner, Result, StateError};
use std::io::{Seek, Write};
use std::path::Path;
use tacit_crypto::transcript::Transcript;
use tacit_crypto::{BitVec, Block, Prg};
use tacit_net::Channel;
use tacit_ot::{CotReceiver, CotSender};
use tacit_store::sealed::{FileError, FileKey, Purpose, array};
use zeroize::Zeroizing;

/// Where the copies, the salt and the check of the key stand.
const LENGTH: usize = 20;
const SALT: usize = 92;
const CHECK: usize = 124;
const PEER: usize = 156;

/// What a state says about itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// Which side of the computation it is.
    pub role: Owner,
    /// Who learns the outputs.
    pub output_to: OutputTo,
    /// The copies.
    pub copies: Copies,
    /// What both sides' states have in common and no other has.
    pub id: [u8; 32],
    /// A hash of the key that the peer proved when the state was made; `None` where it proved none.
    pub peer: Option<[u8; 32]>,
    job: [u8; 32],
    salt: [u8; 32],
}

impl Header {
    /// The beginning of the id, for people.
    pub fn short_id(&self) -> String {
        tacit_crypto::hex(&self.id[..6])
    }

    fn new(role: Owner, job: &Job<'_>, terms: &Terms<'_>, peer: Option<[u8; 32]>, prg: &mut Prg) -> Self {
        let mut transcript = Transcript::new("tacit wmk17 state v2");
        transcript.append("oracle", terms.oracle.key());
        let mut header = Header {
            role,
            output_to: job.output_to,
            copies: job.copies,
            id: [0; 32],
            peer,
            job: job.digest(),
            salt: [0; 32],
        };
        transcript.challenge_bytes("id", &mut header.id);
        prg.fill_bytes(&mut header.salt);
        header
    }
}

impl About for Header {
    const MAGIC: [u8; 8] = *b"TACITST1";
    const FORMAT: u32 = 3;
    const PURPOSE: Purpose = Purpose {
        sealing: "tacit 1 prepared state: sealing",
        mac: "tacit 1 prepared state: authentication",
        check: "tacit 1 prepared state: check of the key",
    };

    fn other() -> FileError {
        FileError::Other { wanted: "state of a prepared computation", command: "tacit eval" }
    }

    fn body(&self, length: u64, check: &[u8; 32]) -> [u8; BODY] {
        let mut out = once::body_of::<Self>(self.role);
        out[14] = OUTPUT_TO.iter().position(|to| *to == self.output_to).unwrap_or_default() as u8;
        out[15] = u8::from(self.copies.coded);
        out[16..18].copy_from_slice(&(self.copies.total as u16).to_le_bytes());
        out[18..20].copy_from_slice(&(self.copies.evaluated as u16).to_le_bytes());
        out[LENGTH..28].copy_from_slice(&length.to_le_bytes());
        out[28..60].copy_from_slice(&self.job);
        out[60..SALT].copy_from_slice(&self.id);
        out[SALT..CHECK].copy_from_slice(&self.salt);
        out[CHECK..PEER].copy_from_slice(check);
        out[PEER..PEER + 32].copy_from_slice(&self.peer.unwrap_or_default());
        out
    }

    fn parse(body: &[u8; BODY]) -> Option<(Self, u64, [u8; 32])> {
        let number = |at: usize| usize::from(u16::from_le_bytes(array(&body[at..at + 2])));
        let copies = Copies { total: number(16), evaluated: number(18), coded: body[15] == 1 };
        let output_to = *OUTPUT_TO.get(usize::from(body[14]))?;
        let (job, id, salt) = (array(&body[28..60]), array(&body[60..SALT]), array(&body[SALT..CHECK]));
        let peer = Some(array(&body[PEER..PEER + 32])).filter(|peer| *peer != [0; 32]);
        let header = Header { role: once::role_of(body)?, output_to, copies, id, peer, job, salt };
        Some((header, u64::from_le_bytes(array(&body[LENGTH..28])), array(&body[CHECK..PEER])))
    }

    fn salt(&mut self) -> &mut [u8; 32] {
        &mut self.salt
    }

    fn peer(&self) -> Option<[u8; 32]> {
        self.peer
    }
}

/// Who learns, by its number in a file.
const OUTPUT_TO: [OutputTo; 3] = [OutputTo::Garbler, OutputTo::Evaluator, OutputTo::Both];

fn damaged(what: &'static str) -> Error {
    FileError::Damaged { what }.into()
}

#[cfg(feature = "fuzzing")]
#[doc(hidden)]
impl Header {
    /// The header of a file with this body: written as it was read.
    pub fn fuzzed(body: &[u8; BODY]) {
        once::fuzzed::<Self>(body);
    }
}

// -----------------------------------------------------------------------------------------------------------

/// A state as it is written.
type Saving<'o, W> = once::Saving<'o, W, Header>;

impl<W: Write + Seek> Saving<'_, W> {
    fn blocks(&mut self, blocks: &[Block]) -> Result<()> {
        Ok(self.stream.write(Block::as_bytes(blocks))?)
    }

    fn bytes(&mut self, bytes: &[u8]) -> Result<()> {
        Ok(self.stream.write(bytes)?)
    }

    fn garbler(&mut self, terms: &Terms<'_>, state: &GarblerState, tokens: &Tokens) -> Result<()> {
        self.bytes(terms.oracle.key())?;
        self.blocks(&[state.labels, state.start, tokens.delta])?;
        self.blocks(&state.keys)?;
        self.blocks(state.seeds.all())?;
        self.bytes(&state.h.encode()[0])?;
        self.bytes(&state.g1.encode()[0])?;
        self.blocks(state.pads.as_flattened())?;
        self.blocks(&state.rows)?;
        self.blocks(tokens.tables.as_flattened())?;
        self.blocks(tokens.returned.as_flattened())
    }

    fn received(&mut self, received: &Received) -> Result<()> {
        for kind in &received.commitments {
            self.bytes(kind.as_flattened())?;
        }
        self.blocks(&received.z)
    }
}

/// P2's state begins with the first step whose result is known: the file is made then.
struct Evaluating<'a, 'o, W> {
    job: &'a Job<'a>,
    peer: Option<[u8; 32]>,
    key: &'a FileKey,
    salt: Prg,
    out: Option<&'o mut W>,
    saving: Option<Saving<'o, W>>,
}

impl<W: Write + Seek> Keep for Evaluating<'_, '_, W> {
    fn state(&mut self, terms: &Terms<'_>, state: &EvaluatorState, hashes: &TokenHashes) -> Result<()> {
        let Some(out) = self.out.take() else { return usage("one state a run") };
        let header = Header::new(Owner::Evaluator, self.job, terms, self.peer, &mut self.salt);
        let saving = self.saving.insert(Saving::new(out, self.key, header)?);
        saving.bytes(terms.oracle.key())?;
        saving.blocks(&[state.labels, state.start, state.offset])?;
        let set: Vec<bool> = (0..terms.copies.total).map(|j| state.evaluated.contains(&j)).collect();
        saving.bytes(BitVec::from_bools(&set).as_bytes())?;
        saving.blocks(&state.keys)?;
        saving.blocks(state.seeds.all())?;
        saving.bytes(state.trapdoor.scalars.as_flattened())?;
        saving.blocks(&state.pads)?;
        saving.bytes(state.choices.as_bytes())?;
        saving.blocks(&state.rows)?;
        for kind in hashes {
            saving.bytes(kind.as_flattened().as_flattened())?;
        }
        Ok(())
    }

    fn tables(&mut self, tables: &[Block]) -> Result<()> {
        self.saving.as_mut().map_or(Ok(()), |saving| saving.blocks(tables))
    }
}

impl<C: CotSender> Garbler<C> {
    /// Does all of `job` that does not depend on inputs, and writes P1's state, sealed with `key`, to `out`:
    /// an empty file that the caller gives its name only after success. `peer` is a hash of the key that the
    /// peer proved, if it did.
    ///
    /// Errors: those of [`run`](Self::run), and [`StateError`] where the file cannot be written.
    pub fn prepare_state<W: Write + Seek>(
        &mut self,
        channel: &mut Channel,
        job: &Job<'_>,
        peer: Option<[u8; 32]>,
        key: &FileKey,
        out: &mut W,
        prg: &mut Prg,
    ) -> Result<Header> {
        let (terms, state, tokens) = self.offline(channel, job, prg)?;
        let mut saving = Saving::new(out, key, Header::new(Owner::Garbler, job, &terms, peer, prg))?;
        saving.garbler(&terms, &state, &tokens)?;
        saving.finish()
    }
}

impl<C: CotReceiver> Evaluator<C> {
    /// The counterpart of [`Garbler::prepare_state`]. Errors as `cheated` when a circuit fails its check.
    pub fn prepare_state<W: Write + Seek>(
        &mut self,
        channel: &mut Channel,
        job: &Job<'_>,
        peer: Option<[u8; 32]>,
        key: &FileKey,
        out: &mut W,
        prg: &mut Prg,
    ) -> Result<Header> {
        let mut keep = Evaluating { job, peer, key, salt: prg.fork(), out: Some(out), saving: None };
        let received = self.offline(channel, job, prg, &mut keep)?;
        let Some(mut saving) = keep.saving else { return usage("a state that was begun") };
        saving.received(&received)?;
        saving.finish()
    }
}

// -----------------------------------------------------------------------------------------------------------

/// A state prepared offline, open in this process alone, that serves one run.
pub struct State(Once<Header>);

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "State({}, [secret])", self.0.header.short_id())
    }
}

impl State {
    /// Opens the state at `path` with the key that it was made with.
    ///
    /// Errors: [`StateError`], which names what is wrong with the file or the key, or that it is in use or
    /// was used.
    pub fn open(path: &Path, key: &FileKey) -> Result<Self> {
        Once::open(path, key).map(State)
    }

    /// Refuses a session with another peer than the one that the state was made with; `peer` is a hash of the
    /// key that it proved, if it did.
    ///
    /// Errors: [`StateError::OtherPeer`]; the state stays as it was.
    pub fn require_peer(&self, peer: Option<[u8; 32]>) -> Result<()> {
        self.0.require_peer(peer)
    }

    /// What the state says about itself.
    pub fn header(&self) -> &Header {
        &self.0.header
    }

    /// Runs `job` to its end with our input bits; returns the outputs if we learn them. The state is used up,
    /// whatever happens, from the moment that the peer has shown its own.
    ///
    /// Errors: before anything is sent, [`StateError::OtherJob`] if the state was made for another job, and
    /// usage if the input has another length; [`Error::Mismatch`] if the peer's state is not the one made
    /// with this; else as [`Garbler::run`].
    pub fn run(
        mut self,
        channel: &mut Channel,
        job: &Job<'_>,
        input: &BitVec,
        prg: &mut Prg,
    ) -> Result<Option<BitVec>> {
        let Header { role, output_to, copies, id, job: digest, .. } = self.0.header;
        let other = |what| Err(StateError::OtherJob { what }.into());
        if job.output_to != output_to {
            return other("output rule");
        } else if job.copies != copies {
            return other("number of copies");
        } else if job.digest() != digest {
            return other("function");
        }
        if input.len() != slots_of(job.function, role).len() {
            return usage("as many input bits as the function takes from this side");
        }
        let terms = Terms::with_key(job, self.array()?);
        const OTHER: &str = "the prepared state: the two sides' were not made together; name the right files";
        if role == Owner::Garbler {
            let (state, tokens) = self.garbler(&terms)?;
            Announced::send(channel, role, id, OTHER)?.confirm(channel)?;
            self.0.use_up()?;
            return state.online(channel, &terms, &tokens, input, prg);
        }
        let (state, hashes) = self.evaluator(&terms)?;
        Announced::send(channel, role, id, OTHER)?.confirm(channel)?;
        self.0.use_up()?;
        state.online(channel, &terms, input, prg, hashes, &mut self)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut out = [0; N];
        self.0.stream.read(&mut out)?;
        Ok(out)
    }

    fn blocks(&mut self, n: usize) -> Result<Blocks> {
        let mut out = zeros(n);
        self.0.stream.read(Block::as_bytes_mut(&mut out))?;
        Ok(out)
    }

    fn pairs(&mut self, n: usize) -> Result<Zeroizing<Vec<[Block; 2]>>> {
        let mut out = Zeroizing::new(vec![[Block::ZERO; 2]; n]);
        self.0.stream.read(Block::as_bytes_mut(out.as_flattened_mut()))?;
        Ok(out)
    }

    fn bits(&mut self, n: usize) -> Result<BitVec> {
        let mut bytes = Zeroizing::new(vec![0; n.div_ceil(8)]);
        self.0.stream.read(&mut bytes)?;
        Ok(BitVec::from_bytes(&bytes, n))
    }

    fn seeds(&mut self, n: usize) -> Result<Seeds> {
        Ok(Seeds::new(std::mem::take(&mut *self.blocks(n)?)))
    }

    /// What [`Saving::garbler`] wrote.
    fn garbler(&mut self, terms: &Terms<'_>) -> Result<(GarblerState, Tokens)> {
        let (total, encoded) = (terms.copies.total, terms.matrix.encoded());
        let first = self.blocks(3)?;
        let (keys, seeds) = (self.blocks(total)?, self.seeds(total)?);
        let (Some(h), Some(g1)) = (point(&self.array()?), point(&self.array()?)) else {
            return Err(damaged("group elements"));
        };
        let (pads, rows) = (self.pairs(encoded)?, self.blocks(terms.committed() + terms.opening_checks)?);
        let (tables, returned) = (self.pairs(terms.outputs)?, self.pairs(terms.outputs)?);
        let state = GarblerState { keys, seeds, h, g1, pads, rows, labels: first[0], start: first[1] };
        Ok((state, Tokens { delta: first[2], tables, returned }))
    }

    /// What [`Evaluating::state`] wrote.
    fn evaluator(&mut self, terms: &Terms<'_>) -> Result<(EvaluatorState, TokenHashes)> {
        let (total, encoded) = (terms.copies.total, terms.matrix.encoded());
        let first = self.blocks(3)?;
        let set = self.bits(total)?;
        let (evaluated, checked): (Vec<usize>, Vec<usize>) = (0..total).partition(|&j| set.get(j));
        let state = EvaluatorState {
            keys: self.blocks(evaluated.len())?,
            seeds: self.seeds(checked.len())?,
            evaluated,
            checked,
            trapdoor: Trapdoor::from_scalars(Zeroizing::new([self.array()?, self.array()?])),
            pads: self.blocks(encoded)?,
            choices: self.bits(encoded)?,
            offset: first[2],
            rows: self.blocks(terms.committed() + terms.opening_checks)?,
            labels: first[0],
            start: first[1],
            failed: false,
        };
        let mut hashes = Vec::new();
        for _ in terms.kinds() {
            let mut kind = vec![[[0u8; 32]; 2]; terms.outputs];
            self.0.stream.read(kind.as_flattened_mut().as_flattened_mut())?;
            hashes.push(kind);
        }
        Ok((state, hashes))
    }
}

impl Kept for State {
    fn tables(&mut self, tables: &mut [Block]) -> Result<()> {
        Ok(self.0.stream.read(Block::as_bytes_mut(tables))?)
    }

    fn received(&mut self, terms: &Terms<'_>, hashes: TokenHashes, checks: usize) -> Result<Received> {
        let mut commitments = Vec::new();
        for _ in terms.kinds() {
            let mut kind = vec![[0u8; 32]; checks];
            self.0.stream.read(kind.as_flattened_mut())?;
            commitments.push(kind);
        }
        Ok(Received { hashes, commitments, z: self.blocks(terms.outputs * checks)? })
    }
}
