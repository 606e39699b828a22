//! The protocol of figures 3 and 4: a run of either party, in the order of its messages. Each step stands in
//! a file of its own, with both parties' halves; see the [module](super) for what the protocol is and why
//! steps overlap.

use super::Job;
use super::circuits::COMMITMENTS;
use super::decoding::{Decoded, bits};
use super::deviation::deviate;
use super::function::slots_of;
use super::garbler_input::with_mask;
use super::garbling::peer_labels;
use super::outputs::{Received, Tokens, send_tables};
use super::setup::{GarblerStart, Ot};
use super::state::EvaluatorState;
use super::terms::{Mode, Terms, cheated, usage};
use crate::{Owner, Result};
use subtle::ConditionallySelectable;
use tacit_crypto::{BitVec, Block, Prg};
use tacit_net::Channel;
use tacit_ot::extension::kos::{KosReceiver, KosSender, Setup};
use tacit_ot::{BaseOt, CotReceiver, CotSender};

/// All that P2 says of a failed check.
pub(super) const CAUGHT: &str = "a check of the garbler's messages failed";

/// P1, the garbler, over a sender of correlated OT.
pub struct Garbler<C> {
    pub(super) ot: Ot<C>,
}

impl Garbler<KosSender> {
    /// Begins to set up KOS, by Fiat–Shamir, from a malicious base OT: one batch of 128, in which P1
    /// receives, serves every OT of every run. The first run ends it, with what else it has to do meanwhile.
    pub fn setup(channel: &mut Channel, base: &dyn BaseOt, prg: &mut Prg) -> Result<Self> {
        Ok(Self::begun(KosSender::begin_by_hash(channel, base, prg)?))
    }
}

impl<C: CotSender> Garbler<C> {
    /// P1 over a sender of correlated OT that is secure against malicious receivers.
    pub fn new(cot: C) -> Self {
        Garbler { ot: Ot::ready_made(cot) }
    }

    /// As [`new`](Self::new), of a setup that has begun; the peer's has as well.
    pub fn begun(setup: Setup<C>) -> Self {
        Garbler { ot: Ot::begun(setup) }
    }

    /// Runs `job` with P1's input bits; returns the outputs if P1 learns them.
    ///
    /// Errors as `cheated` when P2 is caught or refuses the result; this value makes no run after an error.
    pub fn run(
        &mut self,
        channel: &mut Channel,
        job: &Job<'_>,
        input: &BitVec,
        prg: &mut Prg,
    ) -> Result<Option<BitVec>> {
        if input.len() != slots_of(job.function, Owner::Garbler).len() {
            return usage("as many input bits as the function takes from the garbler");
        }
        self.ot.once(|ot| {
            let (terms, announced) = Terms::announce(channel, Owner::Garbler, job, Mode::Single)?;
            let terms = &terms;
            // Before all, and step 1
            let GarblerStart { state, asked, labels, mut circuits } =
                ot.prepare_garbler(channel, terms, &announced, terms.matrix.encoded(), prg)?;
            // Step 3, but for P2's opening
            let x = with_mask(terms, input, prg);
            state.send_input(channel, &x)?;
            // Step 2
            state.send_labels(channel, &asked, &labels)?;
            drop(labels);
            // Step 5, of which tables go until the opening is here
            let tokens = Tokens::random(terms, prg);
            state.send_token_hashes(channel, terms, &tokens)?;
            let tables = state.commit(channel, terms, &mut circuits, &tokens)?;
            // proof: wmk17 2.4
            circuits.send_early(channel, terms)?;
            // Step 3, the opening
            let offset = state.recv_opening(channel, terms, x.len())?;
            // Step 4
            channel.send(&[COMMITMENTS])?;
            // proof: wmk17 2.7
            state.send_commitments(channel, terms, &x, offset)?;
            // Step 5, the rest
            circuits.send(channel, terms)?;
            send_tables(channel, tables)?;
            // Step 7
            state.reveal(channel, terms, &tokens)?;
            // After step 8
            state.take_output(channel, terms, &x, &tokens)
        })
    }
}

/// P2, the evaluator, over a receiver of correlated OT.
pub struct Evaluator<C> {
    pub(super) ot: Ot<C>,
}

impl Evaluator<KosReceiver> {
    /// Begins to set up KOS, by Fiat–Shamir, from a malicious base OT: one batch of 128, in which P2 sends,
    /// serves every OT of every run. The first run ends it, with what else it has to do meanwhile.
    pub fn setup(channel: &mut Channel, base: &dyn BaseOt, prg: &mut Prg) -> Result<Self> {
        Ok(Self::begun(KosReceiver::begin_by_hash(channel, base, prg)?))
    }
}

impl<C: CotReceiver> Evaluator<C> {
    /// P2 over a receiver of correlated OT that is secure against malicious senders.
    pub fn new(cot: C) -> Self {
        Evaluator { ot: Ot::ready_made(cot) }
    }

    /// As [`new`](Self::new), of a setup that has begun; the peer's has as well.
    pub fn begun(setup: Setup<C>) -> Self {
        Evaluator { ot: Ot::begun(setup) }
    }

    /// Runs `job` with P2's input bits; returns the outputs if P2 learns them.
    ///
    /// Errors as `cheated`, without saying which, when any check failed; this value makes no run after an
    /// error.
    pub fn run(
        &mut self,
        channel: &mut Channel,
        job: &Job<'_>,
        input: &BitVec,
        prg: &mut Prg,
    ) -> Result<Option<BitVec>> {
        if input.len() != slots_of(job.function, Owner::Evaluator).len() {
            return usage("as many input bits as the function takes from the evaluator");
        }
        self.ot.once(|ot| {
            let (terms, announced) = Terms::announce(channel, Owner::Evaluator, job, Mode::Single)?;
            let terms = &terms;
            // Before all, and step 1; the choices of step 2
            let (mut state, encoded) = ot.prepare_evaluator(channel, terms, &announced, Some(input), prg)?;
            // Step 3
            let r = state.receive_input(channel, terms)?;
            // Step 2, with step 9 (a)
            let expected = peer_labels(terms, &state.seeds);
            let mut evaluation = state.evaluation(terms);
            state.receive_labels(channel, terms, &encoded, &expected, &mut evaluation)?;
            // Step 5, but for what of the tables comes later
            let hashes = state.receive_token_hashes(channel, terms)?;
            let (mut circuits, known) = state.circuits(channel, terms, &expected)?;
            drop(expected);
            let early = circuits.receive_early(channel, terms, &state)?;
            // Step 4, with step 9 (e)
            state.check_commitments(channel, terms, &mut evaluation, &r)?;
            // Steps 5 and 6, with step 9 (b)
            circuits.evaluate(channel, terms, &state, early, &mut evaluation)?;
            let (outputs, z) = circuits.finish(terms, &mut state, &known);
            let labels = evaluation.outputs(terms, &outputs);
            drop(evaluation);
            let decoded = state.decode(channel, terms, &known, &hashes, labels)?;
            // Steps 7 to 9
            let received = Received { hashes, commitments: state.checked_only(known), z };
            state.conclude(channel, terms, input, &r, received, decoded, prg)
        })
    }
}

impl EvaluatorState {
    /// What step 6 concludes, and steps 7 to 9: the same messages and the same work, whatever was found.
    pub(super) fn conclude(
        &mut self,
        channel: &mut Channel,
        terms: &Terms<'_>,
        input: &BitVec,
        r: &[Block],
        received: Received,
        decoded: Decoded,
        prg: &mut Prg,
    ) -> Result<Option<BitVec>> {
        let verdict = decoded.verdict();
        let (mut known, mut omega) = (verdict.known.into(), verdict.omega);
        deviate(|script| script.omega(&mut known, &mut omega));
        // Step 7, with step 9 (c) and (d)
        // proof: wmk17 2.8
        let h1 = self.trapdoor.blind(&terms.oracle, known, omega);
        channel.send(&h1.encode()[0])?;
        channel.flush()?;
        let seeds = self.check_recovery(channel, terms, &received, &h1)?;
        deviate(|script| script.decrypted(&seeds));
        // Step 8, all of it always: the time of P2's answer, of its next row or of its leaving must not tell
        // whether copies disagreed, which may depend on y.
        let (x, recovered) = self.recover(terms, r, seeds);
        let computed = self.compute(terms, &x, input);
        let mut z = verdict.z;
        for (z, computed) in z.iter_mut().zip(computed.iter()) {
            z.conditional_assign(&u8::from(computed), verdict.known);
        }
        self.check((verdict.sure & (recovered | !verdict.known)).into());
        if terms.output_to.garbler() {
            self.return_output(channel, terms, &received, &decoded, &z, prg)?;
        }
        // Step 9
        // proof: wmk17 2.9
        if self.failed {
            return cheated(CAUGHT);
        }
        Ok(terms.output_to.evaluator().then(|| bits(&z)))
    }
}
