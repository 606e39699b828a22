//! The copies side by side: garbled, P1's all and P2's checked ones, and evaluated.

use super::deviation::deviate;
use super::schedule::{Work, note};
use super::secrets::Seeds;
use super::state::EvaluatorState;
use super::terms::{Blocks, ROWS, Terms, zeros};
use crate::circuit::Piece;
use crate::garble::{Copy, Evaluate, Garble, HalfGatesEvaluator, HalfGatesGarbler, instance_start};
use tacit_crypto::Block;
use zeroize::Zeroizing;

/// The start points of some copies; one re-keying a garbled circuit.
pub(super) fn starts(start: Block, copies: &[usize]) -> Vec<Block> {
    copies.iter().map(|&j| instance_start(start, j as u64)).collect()
}

/// The garbling of some copies.
pub(super) struct Garbling {
    garbler: HalfGatesGarbler,
    /// Zero-labels of the outputs' masks.
    masks: Blocks,
}

impl Garbling {
    /// Of the copies with these seeds and start points, from the zero-labels of P2's encoded input.
    pub(super) fn new(terms: &Terms<'_>, seeds: &Seeds, starts: &[Block], peer: &[Block]) -> Self {
        let (lanes, n) = (seeds.len(), terms.committed());
        let deltas = seeds.deltas();
        let copies: Zeroizing<Vec<Copy>> =
            Zeroizing::new(deltas.iter().zip(starts).map(|(&delta, &start)| Copy { delta, start }).collect());
        let mut garbler = HalfGatesGarbler::new(&copies);
        garbler.reserve(terms.function.slots());
        let mut inputs = zeros(terms.peer.len() * lanes);
        terms.matrix.combine(lanes, peer, &mut inputs);
        for (slot, row) in terms.peer.iter().zip(inputs.chunks_exact(lanes)) {
            garbler.set_zero_labels(*slot, row);
        }
        let (mut labels, mut a) = (seeds.own_labels(), zeros(ROWS * lanes));
        let mut masks = zeros(terms.masks() * lanes);
        for first in (0..n).step_by(ROWS) {
            let a = &mut a[..ROWS.min(n - first) * lanes];
            labels.fill(a);
            for (i, row) in (first..).zip(a.chunks_exact_mut(lanes)) {
                deviate(|script| script.garbled_input(i, &deltas, row));
                match terms.own.get(i) {
                    Some(&slot) => garbler.set_zero_labels(slot, row),
                    None => masks[(i - terms.own.len()) * lanes..][..lanes].copy_from_slice(row),
                }
            }
        }
        Garbling { garbler, masks }
    }

    /// Garbles a piece into `tables`.
    pub(super) fn garble(&mut self, piece: Piece<'_>, tables: &mut Vec<Block>) {
        let gates = piece.ands * self.garbler.lanes();
        note(Work::Garble, gates);
        tables.resize(2 * gates, Block::ZERO);
        self.garbler.garble(piece, tables);
    }

    /// The zero-labels of the outputs, whose slots are given.
    pub(super) fn outputs(&self, terms: &Terms<'_>, slots: &[u32]) -> Blocks {
        let lanes = self.garbler.lanes();
        output_rows(terms, lanes, slots, &self.masks, |slot| self.garbler.zero_labels(slot))
    }
}

/// The evaluation copies as their gates pass; nothing is done where there are none.
pub(super) struct Evaluation {
    pub(super) evaluator: Option<HalfGatesEvaluator>,
    /// The labels of the outputs' masks.
    pub(super) masks: Blocks,
}

impl Evaluation {
    pub(super) fn piece(&mut self, piece: Piece<'_>, tables: &[Block]) {
        if let Some(evaluator) = &mut self.evaluator {
            note(Work::Evaluate, piece.ands * evaluator.lanes());
            evaluator.evaluate(piece, tables);
        }
    }

    /// The labels of the outputs, whose slots are given.
    pub(super) fn outputs(&self, terms: &Terms<'_>, slots: &[u32]) -> Blocks {
        let evaluator = self.evaluator.as_ref();
        evaluator.map_or_else(Blocks::default, |evaluator| {
            output_rows(terms, evaluator.lanes(), slots, &self.masks, |slot| evaluator.labels(slot))
        })
    }
}

impl EvaluatorState {
    pub(super) fn evaluation(&self, terms: &Terms<'_>) -> Evaluation {
        let starts = starts(self.start, &self.evaluated);
        let mut evaluator = (!starts.is_empty()).then(|| HalfGatesEvaluator::new(&starts));
        evaluator.iter_mut().for_each(|evaluator| evaluator.reserve(terms.function.slots()));
        Evaluation { evaluator, masks: zeros(0) }
    }
}

/// The zero-labels of P2's encoded input.
pub(super) fn peer_labels(terms: &Terms<'_>, seeds: &Seeds) -> Blocks {
    let mut labels = zeros(terms.matrix.encoded() * seeds.len());
    seeds.peer_labels().fill(&mut labels);
    labels
}

/// The labels of the outputs, output by output, with their masks' labels added.
fn output_rows<'a>(
    terms: &Terms<'_>,
    lanes: usize,
    slots: &[u32],
    masks: &[Block],
    label: impl Fn(u32) -> &'a [Block],
) -> Blocks {
    let mut rows = zeros(terms.outputs * lanes);
    for (slot, row) in slots.iter().zip(rows.chunks_exact_mut(lanes.max(1))) {
        row.copy_from_slice(label(*slot));
    }
    rows.iter_mut().zip(masks).for_each(|(row, mask)| *row ^= *mask);
    rows
}
