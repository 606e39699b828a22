//! A session: two parties, one Δ each, and correlated OT both ways.

use super::independent::{self, Independent};
use super::{DOMAIN, buckets, mismatch, usage};
use crate::{OutputTo, Owner, Prepared, Result};
use tacit_crypto::transcript::Transcript;
use tacit_crypto::{BitVec, Block, Prg};
use tacit_net::{Channel, Party};
use tacit_ot::{CotReceiver, CotSender};

/// What every hash of one preparation is bound to.
#[derive(Clone)]
pub(super) struct Oracle([u8; 32]);

impl Oracle {
    /// A hash for `label`, of what the garbler shows or the evaluator.
    pub(super) fn hasher(&self, label: &str, garbler: bool) -> blake3::Hasher {
        let mut transcript = self.transcript(label);
        transcript.append_u64("garbler", garbler as u64);
        let mut key = [0u8; 32];
        transcript.challenge_bytes("key", &mut key);
        blake3::Hasher::new_keyed(&key)
    }

    /// A transcript for `label`.
    pub(super) fn transcript(&self, label: &str) -> Transcript {
        let mut transcript = Transcript::new(DOMAIN);
        transcript.append("run", &self.0);
        transcript.append("step", label.as_bytes());
        transcript
    }

    /// What later hashes are bound to once `transcript`, which began here, was compared.
    pub(super) fn bound_to(&self, transcript: &mut Transcript) -> Oracle {
        let mut oracle = Oracle([0; 32]);
        transcript.challenge_bytes("oracle", &mut oracle.0);
        oracle
    }

    /// A public block for `label`.
    pub(super) fn block(&self, label: &str) -> Block {
        self.transcript(label).challenge_block("block")
    }
}

/// How much a preparation serves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Demand {
    /// AND gates.
    pub ands: usize,
    /// Input bits of the garbler's.
    pub garbler_inputs: usize,
    /// Input bits of the evaluator's.
    pub evaluator_inputs: usize,
}

impl Demand {
    /// What `function` needs.
    pub fn of(function: &Prepared) -> Self {
        let bits = |owner| -> usize {
            let inputs = function.circuit().shape().inputs.iter().zip(function.owners());
            inputs.filter(|(_, o)| **o == owner).map(|(&width, _)| width as usize).sum()
        };
        Demand {
            ands: function.plan(1).ands() as usize,
            garbler_inputs: bits(Owner::Garbler),
            evaluator_inputs: bits(Owner::Evaluator),
        }
    }

    /// Correlations of either direction that a preparation takes, at most.
    pub fn correlations(&self) -> u64 {
        let triples: usize = buckets::windows(self.ands)
            .map(|gates| gates.max(buckets::LEAST))
            .map(|n| n * buckets::size(n))
            .sum();
        (3 * triples + self.ands + self.garbler_inputs.max(self.evaluator_inputs)) as u64
    }

    /// Input bits of `owner`'s.
    pub fn inputs(&self, owner: Owner) -> usize {
        match owner {
            Owner::Garbler => self.garbler_inputs,
            Owner::Evaluator => self.evaluator_inputs,
        }
    }
}

/// One party's side of a session, over correlated OT in both directions.
///
/// `S` and `R` must be secure against malicious parties. This value is of no use after an error: a peer that cheated may have
/// learnt a bit of what the correlated OT keeps.
pub struct Session<S, R> {
    pub(super) role: Owner,
    pub(super) sender: S,
    pub(super) receiver: R,
    pub(super) prg: Prg,
    spent: bool,
}

impl<S: CotSender, R: CotReceiver> Session<S, R> {
    /// A session of the party `role` over correlated OT that it sends and receives. The peer takes the other role and the other
    /// ends.
    pub fn new(role: Owner, sender: S, receiver: R, prg: &mut Prg) -> Self {
        Session { role, sender, receiver, prg: prg.fork(), spent: false }
    }

    /// Makes what one run of the size `demand` needs, whatever the function.
    ///
    /// Errors: `Mismatch` when the peer has another role, version or demand; `Cheated` when a check failed; those of
    /// the correlated OT and the link.
    pub fn independent(&mut self, channel: &mut Channel, demand: Demand) -> Result<Independent> {
        if std::mem::replace(&mut self.spent, true) {
            return usage("the session failed before; set up a new one");
        }
        let oracle = self.agree(channel, demand)?;
        let made = independent::make(self, channel, demand, oracle)?;
        self.spent = false;
        Ok(made)
    }

    /// One run with everything in it: `input` are this party's input bits, input after input. Returns the outputs, one
    /// after the other, if this party learns them.
    ///
    /// Errors as those of the three phases.
    pub fn run(
        &mut self,
        channel: &mut Channel,
        function: &Prepared,
        output_to: OutputTo,
        input: &BitVec,
    ) -> Result<Option<BitVec>> {
        let demand = Demand::of(function);
        if input.len() != demand.inputs(self.role) {
            return usage("as many input bits as the function takes from this party");
        }
        let independent = self.independent(channel, demand)?;
        // The Δ of a session whose peer was caught serves no more.
        self.spent = true;
        let output = independent.dependent(channel, function, output_to)?.online(channel, input)?;
        self.spent = false;
        Ok(output)
    }

    /// Compares role, version and demand, and draws what hashes are bound to from both parties' random bytes.
    fn agree(&mut self, channel: &mut Channel, demand: Demand) -> Result<Oracle> {
        let garbler = self.role == Owner::Garbler;
        let mut transcript = Transcript::new(DOMAIN);
        transcript.append("session", &channel.session_id().0);
        transcript.append_u64("instance", channel.next_instance());
        let first = (channel.party() == Party::First) == garbler;
        transcript.append_u64("first party garbles", first as u64);
        transcript.append_u64("ands", demand.ands as u64);
        transcript.append_u64("garbler's inputs", demand.garbler_inputs as u64);
        transcript.append_u64("evaluator's inputs", demand.evaluator_inputs as u64);
        // Role, digest, random bytes.
        let mut mine = [0u8; 65];
        mine[0] = garbler as u8;
        transcript.challenge_bytes("terms", &mut mine[1..33]);
        self.prg.fill_bytes(&mut mine[33..]);
        channel.send(&mine)?;
        let mut theirs = [0u8; 65];
        channel.recv(&mut theirs)?;
        if theirs[0] == mine[0] {
            return mismatch("who garbles and who evaluates");
        }
        if theirs[1..33] != mine[1..33] {
            return mismatch("the protocol's version, the numbers of gates and inputs, or the session");
        }
        let (of_garbler, of_evaluator) = if garbler { (&mine, &theirs) } else { (&theirs, &mine) };
        transcript.append("garbler's random bytes", &of_garbler[33..]);
        transcript.append("evaluator's random bytes", &of_evaluator[33..]);
        let mut oracle = Oracle([0; 32]);
        transcript.challenge_bytes("oracle", &mut oracle.0);
        Ok(oracle)
    }
}
