//! A session: two parties, one Δ each, and correlated OT both ways.

use super::demand::Demand;
use super::independent::{self, Independent};
use super::oracle::Oracle;
use super::{DOMAIN, buckets, mismatch, usage};
use crate::{OutputTo, Owner, Prepared, Result};
use tacit_crypto::transcript::Transcript;
use tacit_crypto::{BitVec, Prg};
use tacit_net::{Channel, Party};
use tacit_ot::{CotReceiver, CotSender};

/// Rows whose preparations are made at once, at most.
const PREPARED_AT_ONCE: usize = 1 << 10;

/// One party's side of a session, over correlated OT in both directions.
///
/// `S` and `R` must be secure against malicious parties. This value is of no use after an error: a peer that cheated may have
/// learnt a bit of what the correlated OT keeps.
pub struct Session<S, R> {
    role: Owner,
    sender: S,
    receiver: R,
    prg: Prg,
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
        let Session { role, sender, receiver, prg, .. } = self;
        let made = independent::make(channel, *role, (sender, receiver), prg, demand, oracle)?;
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
        let outputs = self.run_rows(channel, function, output_to, std::slice::from_ref(input), || ())?;
        Ok(outputs.and_then(|mut outputs| outputs.pop()))
    }

    /// Runs `function` on each of `rows`, this party's input bits of a run; both parties give as many. Returns the outputs of
    /// each row if this party learns them.
    ///
    /// Preparations are made for as many rows at once as fill a window of triples: many small runs take fewer bytes than
    /// alone. `each` hears of every row that is done.
    ///
    /// Errors as those of the three phases.
    pub fn run_rows(
        &mut self,
        channel: &mut Channel,
        function: &Prepared,
        output_to: OutputTo,
        rows: &[BitVec],
        mut each: impl FnMut(),
    ) -> Result<Option<Vec<BitVec>>> {
        let one = Demand::of(function);
        if rows.iter().any(|input| input.len() != one.inputs(self.role)) {
            return usage("as many input bits as the function takes from this party");
        }
        let together = (buckets::WINDOW / one.ands.max(1)).clamp(1, PREPARED_AT_ONCE);
        let mut outputs = Vec::with_capacity(rows.len());
        for rows in rows.chunks(together) {
            let independent = self.independent(channel, one.times(rows.len()))?;
            // The Δ of a session whose peer was caught serves no more.
            self.spent = true;
            for (row, input) in independent.rows(one, rows.len()).zip(rows) {
                outputs.extend(row.dependent(channel, function, output_to)?.online(channel, input)?);
                each();
            }
            self.spent = false;
        }
        let learns = match self.role {
            Owner::Garbler => output_to.garbler(),
            Owner::Evaluator => output_to.evaluator(),
        };
        Ok(learns.then_some(outputs))
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
