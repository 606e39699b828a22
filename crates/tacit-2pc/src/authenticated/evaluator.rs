//! The evaluator's part of the last phase.

use super::bits::{Gates, zeros};
use super::cheated;
use super::deviation::{deviate, passes};
use super::hash::MacHash;
use super::masked::{Begin, EVALUATORS_MASKS, End, GARBLERS_MASKS, check_share};
use super::opening::{receive_bits, see, send_bits, show};
use super::oracle::Oracle;
use super::stretch::{Batch, Stretch};
use crate::Result;
use crate::circuit::ONE;
use crate::garble::{Evaluate, HalfGatesEvaluator};
use subtle::ConstantTimeEq;
use tacit_crypto::{BitVec, Block, Buffer};
use tacit_net::Channel;
use zeroize::Zeroize;

/// The evaluator in the last phase, between stretches.
pub(super) struct Evaluating {
    delta: Block,
    evaluator: HalfGatesEvaluator,
    /// The slots of a row's inputs, the garbler's first, and the labels of all rows' inputs.
    inputs: Vec<u32>,
    labels: Buffer,
    /// The masked outputs of the rows that ended.
    outputs: Vec<bool>,
}

impl Drop for Evaluating {
    fn drop(&mut self) {
        self.delta.zeroize();
    }
}

impl Evaluating {
    /// Steps 1 and 2 up to the labels of the inputs.
    pub(super) fn begin(begin: Begin<'_>, channel: &mut Channel) -> Result<Self> {
        // proof: authenticated-run 2.4
        send_bits(channel, &begin.masked)?;
        channel.flush()?;
        let mut evaluator = HalfGatesEvaluator::new(&[begin.start()]);
        evaluator.reserve(begin.slots());
        evaluator.set_labels(ONE, &[Block::ONE]);
        let inputs: Vec<u32> = begin.peer.iter().chain(&begin.own).copied().collect();
        let mut labels = zeros(begin.rows * inputs.len());
        channel.recv_blocks(&mut labels)?;
        let mut masked = begin.masked.iter();
        for row in labels.chunks_mut(inputs.len().max(1)) {
            for (label, bit) in row[begin.peer.len()..].iter_mut().zip(masked.by_ref()) {
                // Whatever came, the masked value is that which was sent.
                *label = label.with_lsb(bit);
            }
        }
        Ok(Evaluating { delta: begin.delta, evaluator, inputs, labels, outputs: Vec::new() })
    }

    /// Puts a row's inputs into their slots.
    pub(super) fn begin_row(&mut self, row: usize) {
        let first = row * self.inputs.len();
        for (&slot, label) in self.inputs.iter().zip(&self.labels[first..]) {
            self.evaluator.set_labels(slot, std::slice::from_ref(label));
        }
    }

    /// Takes a row's outputs from these slots.
    pub(super) fn end_row(&mut self, slots: &[u32]) {
        self.outputs.extend(slots.iter().map(|&slot| self.evaluator.labels(slot)[0].lsb()));
    }

    /// The rest of step 2, and steps 3 and 4, for a stretch whose gates have these masks.
    pub(super) fn stretch(
        &mut self,
        channel: &mut Channel,
        stretch: &Stretch<'_>,
        gates: Gates<'_>,
        oracle: &Oracle,
    ) -> Result<()> {
        self.evaluator.reserve(stretch.slots());
        let delta = self.delta;
        let mut hash = MacHash::new(oracle, "labels", false);
        let mut macs = MacHash::new(oracle, "gates", true);
        let (wide, (outputs, _)) = (stretch.largest_batch(), stretch.outputs());
        let (mut tables, mut held, mut opened) = (zeros(2 * wide), zeros(wide), zeros(wide));
        let mut first = 0;
        for Batch { parts, ands: n } in stretch.batches() {
            let tables = &mut tables[..2 * n];
            channel.recv_blocks(tables)?;
            let colours = receive_bits(channel, n)?;
            let (mut results, mut at) = (BitVec::zeros(n), 0);
            for part in parts {
                if let Some(row) = part.begins {
                    self.begin_row(row);
                }
                let evaluator = &mut self.evaluator;
                for step in part.piece.one_by_one() {
                    let ops = &step.ops[step.ops.len() - step.ands..];
                    let rows = &mut tables[2 * at..2 * (at + step.ands)];
                    let gates = gates.part(first + at..first + at + ops.len());
                    for (rows, masks) in rows.as_chunks_mut::<2>().0.iter_mut().zip(gates.iter()) {
                        rows[0] ^= masks[1].mac;
                        rows[1] ^= masks[0].mac;
                    }
                    evaluator.evaluate(step, rows);
                    for (op, masks) in ops.iter().zip(gates.iter()) {
                        let label = evaluator.labels(op.out)[0] ^ masks[2].mac;
                        let result = label.lsb() ^ colours.get(at);
                        held[at] = label.with_lsb(result);
                        evaluator.set_labels(op.out, &held[at..=at]);
                        let [a, b] = [op.a, op.b].map(|slot| Block::mask(evaluator.labels(slot)[0].lsb()));
                        let share = check_share(&masks, a, b);
                        // The garbler's share of what must be zero is this party's.
                        let share_bit = share.mac ^ (a & b) ^ Block::mask(result);
                        opened[at] = share.key ^ (delta & Block::mask(share_bit.lsb()));
                        results.set(at, result);
                        at += 1;
                    }
                }
                if part.ends {
                    self.end_row(outputs);
                }
            }
            hash.update_halves(&held[..n]);
            macs.update_halves(&opened[..n]);
            first += n;
            // proof: authenticated-run 2.6
            deviate(|script| script.results(&mut results));
            send_bits(channel, &results)?;
            channel.flush()?;
        }
        let mut digest = hash.digest();
        deviate(|script| script.labels_digest(&mut digest));
        channel.send(&digest)?;
        // proof: authenticated-run 2.8
        channel.recv(&mut digest)?;
        if !passes(macs.digest().ct_eq(&digest)) {
            return cheated("a garbled gate is wrong");
        }
        Ok(())
    }

    /// Step 5: returns the outputs of all rows, if this party learns them.
    pub(super) fn end(&self, end: End<'_>, channel: &mut Channel) -> Result<Option<BitVec>> {
        let shares = match end.output_to.evaluator() {
            true => Some(see(channel, end.oracle, GARBLERS_MASKS, true, &end.keys(), end.delta)?),
            false => None,
        };
        if end.output_to.garbler() {
            show(channel, end.oracle, EVALUATORS_MASKS, false, &end.macs())?;
            channel.flush()?;
        }
        Ok(shares.map(|shares| end.unmask(BitVec::from_bools(&self.outputs), &shares)))
    }
}
