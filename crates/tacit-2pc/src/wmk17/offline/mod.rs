//! The offline/online mode: what does not depend on inputs is done ahead and kept in a sealed file, which
//! serves one run.
//!
//! **Offline**, the parties run everything up to the circuits: base OTs and OT extensions, step 1, and steps
//! 5 and 6 for circuits whose input labels follow from the seeds alone; P2 checks the circuits and opens T
//! (the paper's section 4.2, "Pushing computation offline"). P1 keeps its seeds, tokens and random OTs; P2
//! its half of them and the evaluation copies' tables. **Online** come steps 2 to 4 and 7 to 9: no OT, no
//! garbling, the bytes of inputs only.
//!
//! That P2 sees circuits before it chooses its input costs the proof a programmable ideal cipher (as MITCCRH
//! is modelled anyway): P2 knows no label before it has chosen, so what the cipher gives for the labels that
//! it is going to hold is still open.

mod file;

pub use file::{Header, State};

use super::Job;
use super::evaluator_input::send_choices;
use super::function::pieces;
use super::garbler_input::with_mask;
use super::garbling::peer_labels;
use super::outputs::{Received, TokenHashes, Tokens, send_tables};
use super::protocol::{CAUGHT, Evaluator, Garbler};
use super::setup::GarblerStart;
use super::state::{EvaluatorState, GarblerState};
use super::terms::{Mode, PIECE, ROWS, Terms, cheated, recv_bits, zeros};
use super::transfer::column_length;
use crate::{Owner, Result};
use tacit_crypto::{BitVec, Block, Prg};
use tacit_net::Channel;
use tacit_ot::{CotReceiver, CotSender};

impl<C: CotSender> Garbler<C> {
    /// Everything that does not depend on inputs: what is left is one use of the state.
    fn offline<'a>(
        &mut self,
        channel: &mut Channel,
        job: &Job<'a>,
        prg: &mut Prg,
    ) -> Result<(Terms<'a>, GarblerState, Tokens)> {
        self.ot.once(|ot| {
            let (terms, announced) = Terms::announce(channel, Owner::Garbler, job, Mode::Offline)?;
            let GarblerStart { state, mut circuits, .. } =
                ot.prepare_garbler(channel, &terms, &announced, 0, prg)?;
            let tokens = Tokens::random(&terms, prg);
            state.send_token_hashes(channel, &terms, &tokens)?;
            let tables = state.commit(channel, &terms, &mut circuits, &tokens)?;
            circuits.send(channel, &terms)?;
            send_tables(channel, tables)?;
            Ok((terms, state, tokens))
        })
    }
}

impl GarblerState {
    /// P1's second half of a run whose circuits are at P2's already.
    fn online(
        &self,
        channel: &mut Channel,
        terms: &Terms<'_>,
        tokens: &Tokens,
        input: &BitVec,
        prg: &mut Prg,
    ) -> Result<Option<BitVec>> {
        let masked = with_mask(terms, input, prg);
        self.send_input(channel, &masked)?;
        channel.flush()?;
        let asked = recv_bits(channel, terms.matrix.encoded())?;
        self.send_labels(channel, &asked, &peer_labels(terms, &self.seeds))?;
        let offset = self.recv_opening(channel, terms, masked.len())?;
        self.send_commitments(channel, terms, &masked, offset)?;
        self.reveal(channel, terms, tokens)?;
        self.take_output(channel, terms, &masked, tokens)
    }
}

impl<C: CotReceiver> Evaluator<C> {
    /// Everything that does not depend on inputs: circuits are checked, and what evaluation needs goes to
    /// `keep`. The caller adds what is returned.
    fn offline(
        &mut self,
        channel: &mut Channel,
        job: &Job<'_>,
        prg: &mut Prg,
        keep: &mut dyn Keep,
    ) -> Result<Received> {
        self.ot.once(|ot| {
            let (terms, announced) = Terms::announce(channel, Owner::Evaluator, job, Mode::Offline)?;
            let (mut state, _) = ot.prepare_evaluator(channel, &terms, &announced, None, prg)?;
            let hashes = state.receive_token_hashes(channel, &terms)?;
            keep.state(&terms, &state, &hashes)?;
            let (mut circuits, known) =
                state.circuits(channel, &terms, &peer_labels(&terms, &state.seeds))?;
            let mut tables = Vec::new();
            while circuits.receive(channel, &terms, &state, &mut tables)?.is_some() {
                keep.tables(&tables)?;
            }
            let (_, z) = circuits.finish(&terms, &mut state, &known);
            state.receive_tables(channel, &terms, &known, |_, _, columns| keep.tables(columns))?;
            // No input is known that an abort could tell of.
            if state.failed {
                return cheated(CAUGHT);
            }
            Ok(Received { hashes, commitments: state.checked_only(known), z })
        })
    }
}

impl EvaluatorState {
    /// P2's second half of a run whose circuits were checked before: `kept` gives what [`Keep`] was given.
    fn online(
        mut self,
        channel: &mut Channel,
        terms: &Terms<'_>,
        input: &BitVec,
        prg: &mut Prg,
        hashes: TokenHashes,
        kept: &mut dyn Kept,
    ) -> Result<Option<BitVec>> {
        let encoded = terms.matrix.encode(input, prg);
        send_choices(channel, &self.choices, &encoded)?;
        channel.flush()?;
        let r = self.receive_input(channel, terms)?;
        let expected = peer_labels(terms, &self.seeds);
        let mut evaluation = self.evaluation(terms);
        self.receive_labels(channel, terms, &encoded, &expected, &mut evaluation)?;
        drop(expected);
        self.check_commitments(channel, terms, &mut evaluation, &r)?;
        let active = self.evaluated.len();
        let mut tables = Vec::new();
        let outputs = pieces(terms.function, PIECE, |piece| {
            tables.resize(piece.ands * active * 2, Block::ZERO);
            kept.tables(&mut tables)?;
            evaluation.piece(piece, &tables);
            Ok(())
        })?;
        let z = evaluation.outputs(terms, &outputs);
        drop(evaluation);
        let mut decoding = self.decoding(terms, z);
        let mut columns = zeros(0);
        for k in 0..terms.kinds().len() {
            for first in (0..terms.outputs).step_by(ROWS) {
                columns.resize(column_length(ROWS.min(terms.outputs - first)) * active, Block::ZERO);
                kept.tables(&mut columns)?;
                decoding.take(terms, &hashes, k, first, &columns);
            }
        }
        let received = kept.received(terms, hashes, self.checked.len())?;
        self.conclude(channel, terms, input, &r, received, decoding.decoded, prg)
    }
}

/// Where P2 keeps, between the two halves of a run, what evaluation needs.
trait Keep {
    /// The state before any table.
    fn state(&mut self, terms: &Terms<'_>, state: &EvaluatorState, hashes: &TokenHashes) -> Result<()>;
    /// The evaluation copies' garbled tables, then their output tables.
    fn tables(&mut self, tables: &[Block]) -> Result<()>;
}

/// What [`Keep`] was given, in that order.
trait Kept {
    /// Fills in the next tables.
    fn tables(&mut self, tables: &mut [Block]) -> Result<()>;
    /// What stands behind the tables.
    fn received(&mut self, terms: &Terms<'_>, hashes: TokenHashes, checks: usize) -> Result<Received>;
}
