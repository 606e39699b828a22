//! Step 3: P1's input through the committing OT, R under the copies' keys, and P2's opening.

use super::deviation::deviate;
use super::schedule::{Work, note};
use super::secrets::{Hidden, encryption};
use super::state::{EvaluatorState, GarblerState};
use super::terms::{Blocks, ROWS, Terms, cheated, recv_bits, zeros};
use crate::Result;
use subtle::ConstantTimeEq;
use tacit_crypto::hash::Mitccrh;
use tacit_crypto::{BitVec, Block, Prg};
use tacit_net::Channel;
use zeroize::Zeroizing;

/// Bytes of P2's opening.
pub(super) const OPENING: usize = 48;

/// P1's input, and after it the random mask of outputs that it alone learns.
pub(super) fn with_mask(terms: &Terms<'_>, input: &BitVec, prg: &mut Prg) -> BitVec {
    let mut masked = BitVec::random(terms.committed(), prg);
    (0..input.len()).for_each(|i| masked.set(i, input.get(i)));
    masked
}

/// The offset and the rows of the committing OT at its sender, P2: M_{i,b} = H(i, v_i ⊕ b·Γ).
pub(super) fn committing_labels(
    hash: &Mitccrh,
    first: usize,
    offset: Block,
    v: &[Block],
) -> Zeroizing<Vec<[Block; 2]>> {
    let mut out = Zeroizing::new(vec![[Block::ZERO; 2]; v.len()]);
    hash.cot_to_rot_sender(first as u64, offset, v, &mut out);
    out
}

impl GarblerState {
    /// Step 3: puts the input `x` into F_cOT, and sends R encrypted.
    pub(super) fn send_input(&self, channel: &mut Channel, x: &BitVec) -> Result<()> {
        let (lanes, n) = (self.seeds.len(), x.len());
        // The rows hold random choices; their difference to x goes to P2.
        let mut correction = BitVec::from_lsbs(&self.rows[..n]);
        correction.xor_assign(x);
        channel.send(correction.as_bytes())?;
        // proof: wmk17 2.3
        let mut received = zeros(n);
        Mitccrh::new(self.labels).cot_to_rot_receiver(0, &self.rows[..n], &mut received);
        let (mut masks, mut cipher) = (self.seeds.masks(), encryption(&self.keys, Hidden::Commitments));
        let mut block = zeros(ROWS * lanes);
        for first in (0..n).step_by(ROWS) {
            let rows = &mut block[..ROWS.min(n - first) * lanes];
            masks.fill(rows);
            for (i, row) in (first..).zip(rows.chunks_exact_mut(lanes)) {
                row.iter_mut().for_each(|r| *r ^= received[i]);
                deviate(|script| script.masked_input(i, row));
            }
            cipher.xor(rows);
            channel.send_blocks(rows)?;
        }
        Ok(())
    }

    /// Step 3: P2 opens both labels of every bit, all at once by their offset Γ.
    ///
    /// For another Γ′ it would have to know P1's random choices of the sacrificed correlations.
    pub(super) fn recv_opening(&self, channel: &mut Channel, terms: &Terms<'_>, n: usize) -> Result<Block> {
        let offset = channel.recv_block()?;
        let mut proof = [0u8; 32];
        channel.recv(&mut proof)?;
        let checks: Blocks =
            Zeroizing::new(self.rows[n..].iter().map(|w| *w ^ (offset & Block::mask(w.lsb()))).collect());
        // proof: wmk17 2.6
        if !bool::from(terms.oracle.opening(&checks).ct_eq(&proof)) {
            return cheated("the committing OT was opened to other labels");
        }
        Ok(offset)
    }
}

impl EvaluatorState {
    /// Step 3; returns R of the evaluation copies.
    pub(super) fn receive_input(&mut self, channel: &mut Channel, terms: &Terms<'_>) -> Result<Blocks> {
        let (total, n, active) = (self.total(), terms.committed(), self.evaluated.len());
        // P1's choices are x once P2 has moved its rows.
        let correction = recv_bits(channel, n)?;
        for (i, v) in self.rows[..n].iter_mut().enumerate() {
            *v ^= self.offset & Block::mask(correction.get(i));
        }
        let mut cipher = encryption(&self.keys, Hidden::Commitments);
        let (mut block, mut r) = (zeros(ROWS * total), zeros(n * active));
        for first in (0..n).step_by(ROWS) {
            let count = ROWS.min(n - first);
            let rows = &mut block[..count * total];
            channel.recv_blocks(rows)?;
            let kept = &mut r[first * active..][..count * active];
            pick(rows, total, &self.evaluated, kept);
            cipher.xor(kept);
        }
        // Open.
        // proof: wmk17 2.5
        let (mut offset, mut rows) = (self.offset, Zeroizing::new(self.rows[n..].to_vec()));
        deviate(|script| script.opening(&mut offset, &mut rows));
        channel.send_block(offset)?;
        channel.send(&terms.oracle.opening(&rows))?;
        channel.flush()?;
        Ok(r)
    }
}

/// Takes the lanes named by `lanes` out of rows of `total`.
pub(super) fn pick(rows: &[Block], total: usize, lanes: &[usize], out: &mut [Block]) {
    note(Work::Move, out.len());
    for (row, out) in rows.chunks_exact(total).zip(out.chunks_exact_mut(lanes.len().max(1))) {
        out.iter_mut().zip(lanes).for_each(|(out, &j)| *out = row[j]);
    }
}
