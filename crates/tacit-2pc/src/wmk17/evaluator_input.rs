//! Step 2: P2's input, encoded, by oblivious transfer of the labels of all copies.

use super::deviation::deviate;
use super::garbling::Evaluation;
use super::state::{EvaluatorState, GarblerState};
use super::terms::{Terms, zeros};
use crate::Result;
use crate::garble::Evaluate;
use tacit_crypto::{BitVec, Block, Prg};
use tacit_net::Channel;

/// Step 2: asks for the labels of the encoded input.
pub(super) fn send_choices(channel: &mut Channel, choices: &BitVec, encoded: &BitVec) -> Result<()> {
    let mut corrections = choices.clone();
    corrections.xor_assign(encoded);
    Ok(channel.send(corrections.as_bytes())?)
}

impl GarblerState {
    /// Step 2: transfers the labels of P2's encoded input, by the difference of its bits to the random
    /// choices.
    pub(super) fn send_labels(
        &self,
        channel: &mut Channel,
        corrections: &BitVec,
        labels: &[Block],
    ) -> Result<()> {
        let lanes = self.seeds.len();
        let deltas = self.seeds.deltas();
        let mut message = zeros(2 * lanes);
        for (i, row) in labels.chunks_exact(lanes).enumerate() {
            let (zero, one) = message.split_at_mut(lanes);
            zero.copy_from_slice(row);
            one.iter_mut()
                .zip(row)
                .zip(deltas.iter())
                .for_each(|((one, label), delta)| *one = *label ^ *delta);
            deviate(|script| script.evaluator_labels(i, zero, one));
            let [mut pad, mut other] = self.pads[i];
            let swap = (pad ^ other) & Block::mask(corrections.get(i));
            (pad, other) = (pad ^ swap, other ^ swap);
            Prg::from_seed(pad).xor_blocks(zero);
            Prg::from_seed(other).xor_blocks(one);
            channel.send_blocks(&message)?;
        }
        Ok(channel.flush()?)
    }
}

impl EvaluatorState {
    /// Step 2, with the check of step 9 (a).
    pub(super) fn receive_labels(
        &mut self,
        channel: &mut Channel,
        terms: &Terms<'_>,
        encoded: &BitVec,
        expected: &[Block],
        evaluation: &mut Evaluation,
    ) -> Result<()> {
        let (total, m) = (self.total(), encoded.len());
        let (active, checks) = (self.evaluated.len(), self.checked.len());
        let deltas = self.seeds.deltas();
        let mut labels = zeros(m * active);
        let (mut message, mut wrong) = (zeros(2 * total), Block::ZERO);
        for i in 0..m {
            channel.recv_blocks(&mut message)?;
            let choice = Block::mask(encoded.get(i));
            let (zero, one) = message.split_at_mut(total);
            zero.iter_mut().zip(one).for_each(|(zero, one)| *zero ^= (*zero ^ *one) & choice);
            Prg::from_seed(self.pads[i]).xor_blocks(zero);
            for (label, &j) in labels[i * active..][..active].iter_mut().zip(&self.evaluated) {
                *label = zero[j];
            }
            // Step 9 (a)
            for ((label, delta), &j) in expected[i * checks..].iter().zip(deltas.iter()).zip(&self.checked) {
                wrong = wrong | (*label ^ (*delta & choice) ^ zero[j]);
            }
        }
        self.check(wrong == Block::ZERO);
        if let Some(evaluator) = &mut evaluation.evaluator {
            let mut inputs = zeros(terms.peer.len() * active);
            terms.matrix.combine(active, &labels, &mut inputs);
            let rows = terms.peer.iter().zip(inputs.chunks_exact(active));
            rows.for_each(|(slot, row)| evaluator.set_labels(*slot, row));
        }
        Ok(())
    }
}
