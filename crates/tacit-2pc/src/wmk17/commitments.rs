//! Step 4: commitments to (R, A) of both values of every bit that P1 puts in, and the openings of its input.

use super::deviation::deviate;
use super::garbler_input::{committing_labels, pick};
use super::garbling::Evaluation;
use super::secrets::{Hidden, Messages, Oracle, differences, encryption};
use super::state::{EvaluatorState, GarblerState};
use super::terms::{Blocks, ROWS, Terms, zeros};
use crate::Result;
use crate::garble::Evaluate;
use tacit_crypto::hash::Mitccrh;
use tacit_crypto::{BitVec, Block};
use tacit_net::Channel;
use zeroize::Zeroizing;

/// The pairs (R_b, A_b) of one input bit in one copy, the label of colour 0 first.
fn committed_pairs(a: Block, delta: Block, prf: Block, m: &[Block; 2]) -> [(Block, Block); 2] {
    let colour = Block::mask(a.lsb());
    let flip = (m[0] ^ m[1]) & colour;
    let first = a ^ (delta & colour);
    [(prf ^ m[0] ^ flip, first), (prf ^ m[1] ^ flip, first ^ delta)]
}

impl GarblerState {
    /// Step 4: commitments to (R, A) of both values, ordered by the labels' colours, and the openings of x.
    pub(super) fn send_commitments(
        &self,
        channel: &mut Channel,
        terms: &Terms<'_>,
        x: &BitVec,
        offset: Block,
    ) -> Result<()> {
        let (lanes, n) = (self.seeds.len(), x.len());
        let deltas = self.seeds.deltas();
        let (mut labels, mut masks) = (self.seeds.own_labels(), self.seeds.masks());
        let mut cipher = encryption(&self.keys, Hidden::Openings);
        // v_i = w_i ⊕ x_i·Γ gives M_{i,0} and M_{i,1}.
        let v: Blocks = Zeroizing::new(
            self.rows[..n].iter().zip(x.iter()).map(|(w, bit)| *w ^ (offset & Block::mask(bit))).collect(),
        );
        let (mut a, mut r, mut opened) = (zeros(ROWS * lanes), zeros(ROWS * lanes), zeros(ROWS * lanes));
        let mut pairs = Zeroizing::new(vec![[(Block::ZERO, Block::ZERO); 2]; lanes]);
        let (mut messages, mut digests) = (Messages::new(2 * lanes, 2), Vec::new());
        let hash = Mitccrh::new(self.labels);
        for first in (0..n).step_by(ROWS) {
            let count = ROWS.min(n - first);
            let (a, r, opened) =
                (&mut a[..count * lanes], &mut r[..count * lanes], &mut opened[..count * lanes]);
            labels.fill(a);
            masks.fill(r);
            let m = committing_labels(&hash, first, offset, &v[first..first + count]);
            for row in 0..count {
                let i = first + row;
                let (a, r) = (&a[row * lanes..][..lanes], &r[row * lanes..][..lanes]);
                for j in 0..lanes {
                    pairs[j] = committed_pairs(a[j], deltas[j], r[j], &m[row]);
                }
                deviate(|script| script.committed(i, &mut pairs));
                for (j, pair) in pairs.iter().enumerate() {
                    pair.iter().for_each(|(r, a)| Oracle::label(&mut messages, j, i, *r, *a));
                }
                terms.oracle.digests(&mut messages, &mut digests);
                channel.send(digests.as_flattened())?;
                let open = &mut opened[row * lanes..][..lanes];
                for j in 0..lanes {
                    open[j] = a[j] ^ (deltas[j] & Block::mask(x.get(i)));
                }
                deviate(|script| script.opened(i, &deltas, open));
            }
            cipher.xor(opened);
            channel.send_blocks(opened)?;
        }
        Ok(())
    }
}

impl EvaluatorState {
    /// Step 4, with the check of step 9 (e): opens the evaluation copies' commitments, and recomputes those
    /// of the check copies.
    pub(super) fn check_commitments(
        &mut self,
        channel: &mut Channel,
        terms: &Terms<'_>,
        evaluation: &mut Evaluation,
        r: &[Block],
    ) -> Result<()> {
        let (total, n) = (self.total(), terms.committed());
        let (active, checks) = (self.evaluated.len(), self.checked.len());
        let deltas = self.seeds.deltas();
        let (mut labels, mut masks) = (self.seeds.own_labels(), self.seeds.masks());
        let mut cipher = encryption(&self.keys, Hidden::Openings);
        let mut digests = vec![[[0u8; 32]; 2]; ROWS * total];
        let (mut sealed, mut opened) = (zeros(ROWS * total), zeros(ROWS * active));
        let (mut a, mut prf) = (zeros(ROWS * checks), zeros(ROWS * checks));
        evaluation.masks = zeros(terms.masks() * active);
        let hash = Mitccrh::new(self.labels);
        let (mut messages, mut hashes) = (Messages::new(2 * total, 2), Vec::new());
        let mut wrong = Block::ZERO;
        for first in (0..n).step_by(ROWS) {
            let count = ROWS.min(n - first);
            let digests = &mut digests[..count * total];
            let (a, prf) = (&mut a[..count * checks], &mut prf[..count * checks]);
            labels.fill(a);
            masks.fill(prf);
            let m = committing_labels(&hash, first, self.offset, &self.rows[first..first + count]);
            channel.recv(digests.as_flattened_mut().as_flattened_mut())?;
            let sealed = &mut sealed[..count * total];
            channel.recv_blocks(sealed)?;
            let opened = &mut opened[..count * active];
            pick(sealed, total, &self.evaluated, opened);
            cipher.xor(opened);
            for row in 0..count {
                let i = first + row;
                let digests = &digests[row * total..][..total];
                let open = &opened[row * active..][..active];
                for (e, &j) in self.evaluated.iter().enumerate() {
                    Oracle::label(&mut messages, j, i, r[i * active + e], open[e]);
                }
                let a = &a[row * checks..][..checks];
                for (c, &j) in self.checked.iter().enumerate() {
                    let pairs = committed_pairs(a[c], deltas[c], prf[row * checks + c], &m[row]);
                    pairs.iter().for_each(|(r, a)| Oracle::label(&mut messages, j, i, *r, *a));
                }
                terms.oracle.digests(&mut messages, &mut hashes);
                let opened = self.evaluated.iter().zip(open).map(|(&j, a)| &digests[j][a.lsb() as usize]);
                let known = opened.chain(self.checked.iter().flat_map(|&j| &digests[j]));
                wrong = hashes.iter().zip(known).fold(wrong, |wrong, (x, y)| wrong | differences(x, y));
                match (terms.own.get(i), &mut evaluation.evaluator) {
                    (Some(&slot), Some(evaluator)) => evaluator.set_labels(slot, open),
                    (Some(_), None) => {}
                    (None, _) => {
                        let at = i - terms.own.len();
                        evaluation.masks[at * active..][..active].copy_from_slice(open);
                    }
                }
            }
        }
        self.check(wrong == Block::ZERO);
        Ok(())
    }
}
