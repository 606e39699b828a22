//! The garbler's part of the last phase.

use super::bits::{Gates, zeros};
use super::cheated;
use super::deviation::{deviate, passes};
use super::hash::MacHash;
use super::masked::{Begin, EVALUATORS_MASKS, End, GARBLERS_MASKS, Masked, check_share};
use super::opening::{Ahead, receive_bits, see, send_bits, show};
use super::oracle::Oracle;
use super::stretch::{Batch, Stretch};
use crate::Result;
use crate::circuit::{ONE, Piece};
use crate::garble::{Copy, Garble, HalfGatesGarbler};
use subtle::ConstantTimeEq;
use tacit_crypto::{BitVec, Block, Buffer, Prg};
use tacit_net::Channel;
use zeroize::Zeroize;

/// The garbler in the last phase, between stretches.
pub(super) struct Garbling {
    delta: Block,
    garbler: HalfGatesGarbler,
    masked: Masked,
    zero_labels: Buffer,
    inputs: Inputs,
    /// Batches that the link holds, as far as that was found.
    ahead: usize,
    /// The masked outputs of the rows that ended.
    outputs: Vec<bool>,
}

/// The inputs of all rows, row after row.
struct Inputs {
    slots: Vec<u32>,
    zero_labels: Buffer,
    masked: Vec<bool>,
}

impl Inputs {
    /// Where those of a row stand.
    fn of(&self, row: usize) -> std::ops::Range<usize> {
        row * self.slots.len()..(row + 1) * self.slots.len()
    }

    /// Puts a row's labels into their slots: what is garbled runs ahead of what is followed.
    fn garbled(&self, row: usize, garbler: &mut HalfGatesGarbler) {
        for (&slot, zero) in self.slots.iter().zip(&self.zero_labels[self.of(row)]) {
            garbler.set_zero_labels(slot, std::slice::from_ref(zero));
        }
    }

    /// Puts a row's masked values into their slots.
    fn followed(&self, row: usize, masked: &mut Masked) {
        for (&slot, &bit) in self.slots.iter().zip(&self.masked[self.of(row)]) {
            masked.set(slot, bit);
        }
    }
}

impl Drop for Garbling {
    fn drop(&mut self) {
        self.delta.zeroize();
    }
}

/// How far step 3 is in a stretch.
struct Returned<'a> {
    /// Batches of whose results nothing came yet.
    left: Box<dyn Iterator<Item = Batch<'a>> + 'a>,
    /// The slots of a row's outputs.
    outputs: &'a [u32],
    batches: usize,
    gates: usize,
    /// Of the results' labels, and of what must be zero of each gate.
    labels: MacHash,
    macs: MacHash,
    held: Buffer,
    opened: Buffer,
    ahead: Ahead,
}

impl<'a> Returned<'a> {
    fn of(stretch: &Stretch<'a>, oracle: &Oracle, ahead: usize) -> Self {
        let [labels, macs] =
            [("labels", false), ("gates", true)].map(|(label, garbler)| MacHash::new(oracle, label, garbler));
        let [held, opened] = [(); 2].map(|()| zeros(stretch.largest_batch()));
        let (left, ahead) = (stretch.batches(), Ahead::between(ahead, usize::MAX));
        let (outputs, _) = stretch.outputs();
        Returned { left, outputs, batches: 0, gates: 0, labels, macs, held, opened, ahead }
    }
}

impl Garbling {
    /// Steps 1 and 2 up to the labels of the inputs.
    pub(super) fn begin(begin: Begin<'_>, channel: &mut Channel, prg: &mut Prg) -> Result<Self> {
        let (delta, rows) = (begin.delta, begin.rows);
        let theirs = receive_bits(channel, rows * begin.peer.len())?;
        // proof: authenticated-run 2.5
        let mut garbler = HalfGatesGarbler::new(&[Copy { delta, start: begin.start() }]);
        garbler.reserve(begin.slots());
        // Zero-labels have lowest bit 0, so that a label's lowest bit is the masked value: of the constant
        // one as well.
        garbler.set_zero_labels(ONE, &[delta ^ Block::ONE]);
        let slots: Vec<u32> = begin.own.iter().chain(&begin.peer).copied().collect();
        let (mut mine, mut theirs) = (begin.masked.iter(), theirs.iter());
        let mut masked = Vec::with_capacity(rows * slots.len());
        for _ in 0..rows {
            masked.extend(mine.by_ref().take(begin.own.len()));
            masked.extend(theirs.by_ref().take(begin.peer.len()));
        }
        let [mut zero_labels, mut labels] = [(); 2].map(|()| zeros(masked.len()));
        prg.fill_blocks(&mut zero_labels);
        for ((zero, label), &bit) in zero_labels.iter_mut().zip(labels.iter_mut()).zip(&masked) {
            *zero = zero.with_lsb(false);
            *label = *zero ^ (delta & Block::mask(bit));
        }
        deviate(|script| script.input_labels(&mut labels));
        channel.send_blocks(&labels)?;
        let inputs = Inputs { slots, zero_labels, masked };
        let masked = Masked::new(begin.slots());
        let (zero_labels, ahead, outputs) = (zeros(0), begin.ahead, Vec::new());
        Ok(Garbling { delta, garbler, masked, zero_labels, inputs, ahead, outputs })
    }

    /// Puts a row's inputs into their slots.
    pub(super) fn begin_row(&mut self, row: usize) {
        self.inputs.garbled(row, &mut self.garbler);
        self.inputs.followed(row, &mut self.masked);
    }

    /// Takes a row's outputs from these slots.
    pub(super) fn end_row(&mut self, slots: &[u32]) {
        self.outputs.extend(slots.iter().map(|&slot| self.masked.get(slot)));
    }

    /// The rest of step 2, and steps 3 and 4, for a stretch whose gates have these masks.
    pub(super) fn stretch(
        &mut self,
        channel: &mut Channel,
        stretch: &Stretch<'_>,
        gates: Gates<'_>,
        oracle: &Oracle,
    ) -> Result<()> {
        let delta = self.delta;
        if self.zero_labels.len() < stretch.ands() {
            self.zero_labels = zeros(stretch.ands());
        }
        self.garbler.reserve(stretch.slots());
        self.masked.reserve(stretch.slots());
        let wide = stretch.largest_batch();
        let (mut done, mut tables) = (0, zeros(2 * wide));
        let mut returned = Returned::of(stretch, oracle, self.ahead);
        for (number, batch) in stretch.batches().enumerate() {
            let tables = &mut tables[..2 * batch.ands];
            let mut colours = self.garble(&batch, gates.part(done..done + batch.ands), tables, done);
            done += batch.ands;
            deviate(|script| script.tables(delta, tables, &mut colours));
            channel.send_blocks(tables)?;
            send_bits(channel, &colours)?;
            channel.flush()?;
            // Step 3, for batches that the evaluator should be done with.
            while returned.batches + returned.ahead.batches() <= number {
                self.take(channel, gates, &mut returned)?;
            }
        }
        while self.take(channel, gates, &mut returned)? {}
        self.ahead = returned.ahead.batches();
        let mut digest = [0u8; 32];
        channel.recv(&mut digest)?;
        // proof: authenticated-run 2.7
        if !passes(returned.labels.digest().ct_eq(&digest)) {
            return cheated("masked values come without their labels");
        }
        // proof: authenticated-run 2.8
        let mut digest = returned.macs.digest();
        deviate(|script| script.gates_digest(&mut digest));
        Ok(channel.send(&digest)?)
    }

    /// Step 3 of the next batch; false behind the last.
    fn take(&mut self, channel: &mut Channel, gates: Gates<'_>, returned: &mut Returned<'_>) -> Result<bool> {
        let Some(Batch { parts, ands }) = returned.left.next() else { return Ok(false) };
        let range = returned.gates..returned.gates + ands;
        let results = returned.ahead.receive(|| receive_bits(channel, ands))?;
        deviate(|script| script.returned(&results));
        let (held, opened) = (&mut returned.held[..ands], &mut returned.opened[..ands]);
        let stock = gates.part(range.clone()).iter().zip(&self.zero_labels[range.clone()]);
        let mut stock = stock.zip(held.iter_mut().zip(opened.iter_mut()));
        let (delta, mut bits) = (self.delta, results.iter());
        for part in parts {
            if let Some(row) = part.begins {
                self.inputs.followed(row, &mut self.masked);
            }
            self.masked.follow(part.piece, &mut bits, |[first, second, result]| {
                if let Some(((masks, zero), (held, opened))) = stock.next() {
                    *held = *zero ^ (delta & Block::mask(result));
                    *opened = check_share(&masks, Block::mask(first), Block::mask(second)).mac;
                }
            });
            if part.ends {
                let outputs = returned.outputs.iter().map(|&slot| self.masked.get(slot));
                self.outputs.extend(outputs);
            }
        }
        returned.labels.update_halves(held);
        returned.macs.update_halves(opened);
        returned.gates = range.end;
        returned.batches += 1;
        Ok(true)
    }

    /// Step 5: returns the outputs of all rows, if this party learns them.
    pub(super) fn end(&self, end: End<'_>, channel: &mut Channel) -> Result<Option<BitVec>> {
        if end.output_to.evaluator() {
            show(channel, end.oracle, GARBLERS_MASKS, true, &end.macs())?;
        }
        channel.flush()?;
        if !end.output_to.garbler() {
            return Ok(None);
        }
        let shares = see(channel, end.oracle, EVALUATORS_MASKS, false, &end.keys(), end.delta)?;
        Ok(Some(end.unmask(BitVec::from_bools(&self.outputs), &shares)))
    }

    /// Garbles a batch, whose first AND gate has number `first` in the stretch. Returns the bits that the
    /// results' labels are read with.
    fn garble(&mut self, batch: &Batch<'_>, gates: Gates<'_>, tables: &mut [Block], first: usize) -> BitVec {
        let (mut colours, mut done) = (BitVec::zeros(batch.ands), 0);
        for part in &batch.parts {
            if let Some(row) = part.begins {
                self.inputs.garbled(row, &mut self.garbler);
            }
            let range = done..done + part.piece.ands;
            let tables = &mut tables[2 * range.start..2 * range.end];
            let colours = (&mut colours, range.start);
            done = range.end;
            self.garble_piece(part.piece, gates.part(range.clone()), tables, colours, first + range.start);
        }
        colours
    }

    /// Garbles a piece, step by step by the kernels; then the masks go into tables and results.
    fn garble_piece(
        &mut self,
        piece: Piece<'_>,
        gates: Gates<'_>,
        tables: &mut [Block],
        (colours, of_first): (&mut BitVec, usize),
        first: usize,
    ) {
        let (delta, garbler) = (self.delta, &mut self.garbler);
        let zero_labels = &mut self.zero_labels[first..first + piece.ands];
        let mut at = 0;
        let mut gates = gates.iter();
        for step in piece.one_by_one() {
            let rows = &mut tables[2 * at..2 * (at + step.ands)];
            garbler.garble(step, rows);
            let ops = &step.ops[step.ops.len() - step.ands..];
            for ((op, rows), masks) in ops.iter().zip(rows.as_chunks_mut::<2>().0).zip(gates.by_ref()) {
                rows[0] ^= masks[1].times_delta(delta);
                rows[1] ^= masks[0].times_delta(delta);
                let label = garbler.zero_labels(op.out)[0] ^ masks[2].times_delta(delta);
                colours.set(of_first + at, label.lsb());
                zero_labels[at] = label.with_lsb(false);
                garbler.set_zero_labels(op.out, &zero_labels[at..=at]);
                at += 1;
            }
        }
    }
}
