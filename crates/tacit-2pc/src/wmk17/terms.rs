//! What both parties know of a run, and how they find out that they know the same.

use super::deviation::deviate;
use super::function::{Function, slots_of};
use super::probe::ProbeMatrix;
use super::secrets::{Digest, Hidden, Oracle};
use super::{Copies, Job, PROTOCOL};
use crate::{Error, OutputTo, Owner, Result};
use tacit_crypto::transcript::Transcript;
use tacit_crypto::{BitVec, Block, KAPPA};
use tacit_net::{Channel, Party};
use zeroize::Zeroizing;

pub(super) type Blocks = Zeroizing<Vec<Block>>;

/// Correlations sacrificed to prove that the committing OT is opened with the offset it was made with.
const OPENING_CHECKS: usize = KAPPA;
/// Input rows worked on at a time.
pub(super) const ROWS: usize = 128;
/// AND gates in a piece, whose copies are hashed each for itself: whole chunks of the hash, as many as run
/// side by side.
pub(super) const PIECE: usize = 512;

pub(super) fn zeros(n: usize) -> Blocks {
    Zeroizing::new(vec![Block::ZERO; n])
}

pub(super) fn usage<T>(what: &'static str) -> Result<T> {
    Err(Error::Usage { protocol: PROTOCOL, what })
}

pub(super) fn cheated<T>(what: &'static str) -> Result<T> {
    Err(Error::Cheated { protocol: PROTOCOL, what })
}

pub(super) fn recv_bits(channel: &mut Channel, n: usize) -> Result<BitVec> {
    let mut bytes = vec![0u8; n.div_ceil(8)];
    channel.recv(&mut bytes)?;
    Ok(BitVec::from_bytes(&bytes, n))
}

/// What both parties know of a run.
pub(super) struct Terms<'a> {
    pub(super) function: &'a dyn Function,
    pub(super) output_to: OutputTo,
    pub(super) copies: Copies,
    pub(super) own: Vec<u32>,
    pub(super) peer: Vec<u32>,
    pub(super) outputs: usize,
    pub(super) matrix: ProbeMatrix,
    /// [`OPENING_CHECKS`], but in a test of what they are worth.
    pub(super) opening_checks: usize,
    pub(super) oracle: Oracle,
}

/// Whether a run goes to its end, or stops before inputs are known.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    Single,
    Offline,
}

impl<'a> Terms<'a> {
    /// Tells the peer what is to be computed; what it says itself is compared later.
    pub(super) fn announce(
        channel: &mut Channel,
        role: Owner,
        job: &Job<'a>,
        mode: Mode,
    ) -> Result<(Self, Announced)> {
        let mut transcript = Transcript::new("tacit wmk17 v3");
        transcript.append("session", &channel.session_id().0);
        transcript.append_u64("instance", channel.next_instance());
        let garbler = (channel.party() == Party::First) == (role == Owner::Garbler);
        transcript.append_u64("first party garbles", garbler as u64);
        transcript.append("job", &job.digest());
        transcript.append_u64("offline", (mode == Mode::Offline) as u64);
        let (mut digest, mut key) = ([0u8; 32], [0u8; 32]);
        transcript.challenge_bytes("terms", &mut digest);
        transcript.challenge_bytes("oracle", &mut key);
        let what = "the function, its sizes, the owners of its inputs, who learns the outputs, or the copies";
        let mut terms = Self::with_key(job, key);
        deviate(|script| script.terms(&mut terms.matrix, &mut terms.opening_checks));
        Ok((terms, Announced::send(channel, role, digest, what)?))
    }

    /// The terms of a run whose hashes have this key.
    pub(super) fn with_key(job: &Job<'a>, key: [u8; 32]) -> Self {
        let function = job.function;
        let (own, peer) = (slots_of(function, Owner::Garbler), slots_of(function, Owner::Evaluator));
        Terms {
            function,
            output_to: job.output_to,
            copies: job.copies,
            outputs: function.shape().output_bits(),
            matrix: ProbeMatrix::with(peer.len(), job.level.bits() as usize),
            opening_checks: OPENING_CHECKS,
            own,
            peer,
            oracle: Oracle::new(key),
        }
    }

    /// Bits that P1 puts in: its input, and the mask of outputs that it alone learns.
    pub(super) fn committed(&self) -> usize {
        self.own.len() + self.masks()
    }

    pub(super) fn masks(&self) -> usize {
        if self.output_to == OutputTo::Garbler { self.outputs } else { 0 }
    }

    /// The kinds of table that translate outputs.
    pub(super) fn kinds(&self) -> &'static [Hidden] {
        if self.output_to.garbler() { &[Hidden::Tables, Hidden::Returned] } else { &[Hidden::Tables] }
    }
}

/// A role and a digest that went to the peer, to be compared with the peer's.
pub(super) struct Announced {
    role: Owner,
    digest: Digest,
    /// What differs where the digests do.
    what: &'static str,
}

impl Announced {
    pub(super) fn send(
        channel: &mut Channel,
        role: Owner,
        digest: Digest,
        what: &'static str,
    ) -> Result<Self> {
        channel.send(&[&[(role == Owner::Garbler) as u8][..], &digest].concat())?;
        Ok(Announced { role, digest, what })
    }

    /// Waits for the peer's, which it sends without waiting for ours.
    pub(super) fn confirm(&self, channel: &mut Channel) -> Result<()> {
        let mut theirs = [0u8; 33];
        channel.recv(&mut theirs)?;
        if theirs[0] == (self.role == Owner::Garbler) as u8 {
            return Err(Error::Mismatch { protocol: PROTOCOL, what: "who garbles and who evaluates" });
        }
        if theirs[1..] != self.digest {
            return Err(Error::Mismatch { protocol: PROTOCOL, what: self.what });
        }
        Ok(())
    }
}

#[cfg(test)]
pub(super) fn agree_only(channel: &mut Channel, garbler: bool, job: &Job<'_>) -> Result<()> {
    let role = if garbler { Owner::Garbler } else { Owner::Evaluator };
    Terms::announce(channel, role, job, Mode::Single)?.1.confirm(channel)
}
