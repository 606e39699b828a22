//! The garbler's part of the last phase.

use super::bits::{Gates, zeros};
use super::cheated;
use super::deviation::{deviate, passes};
use super::masked::{Begin, EVALUATORS_MASKS, End, GARBLERS_MASKS, Masked, check_share};
use super::opening::{Ahead, FIRST_AHEAD, MacHash, receive_bits, see, send_bits, show};
use super::oracle::Oracle;
use super::stretch::Stretch;
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
}

impl Drop for Garbling {
    fn drop(&mut self) {
        self.delta.zeroize();
    }
}

/// How far step 3 is in a stretch.
struct Returned<'a> {
    /// Pieces of whose results nothing came yet.
    left: Box<dyn Iterator<Item = Piece<'a>> + 'a>,
    pieces: usize,
    gates: usize,
    /// Of the results' labels, and of what must be zero of each gate.
    labels: MacHash,
    macs: MacHash,
    held: Buffer,
    opened: Buffer,
    ahead: Ahead,
}

impl<'a> Returned<'a> {
    fn of(stretch: &Stretch<'a>, oracle: &Oracle) -> Self {
        let [labels, macs] =
            [("labels", false), ("gates", true)].map(|(label, garbler)| MacHash::new(oracle, label, garbler));
        let [held, opened] = [(); 2].map(|()| zeros(stretch.largest_piece()));
        let (left, ahead) = (stretch.pieces(), Ahead::between(FIRST_AHEAD, usize::MAX));
        Returned { left, pieces: 0, gates: 0, labels, macs, held, opened, ahead }
    }
}

impl Garbling {
    /// Steps 1 and 2 up to the labels of the inputs.
    pub(super) fn begin(begin: Begin<'_>, channel: &mut Channel, prg: &mut Prg) -> Result<Self> {
        let (delta, mine) = (begin.delta, &begin.masked);
        let mut masked = Masked::new(begin.slots());
        let theirs = receive_bits(channel, begin.peer.len())?;
        let mut garbler = HalfGatesGarbler::new(&[Copy { delta, start: begin.start() }]);
        garbler.reserve(begin.slots());
        // Zero-labels have lowest bit 0, so that a label's lowest bit is the masked value: of the constant
        // one as well.
        garbler.set_zero_labels(ONE, &[delta ^ Block::ONE]);
        let slots: Vec<u32> = begin.own.iter().chain(&begin.peer).copied().collect();
        let mut labels = zeros(slots.len());
        prg.fill_blocks(&mut labels);
        for ((&slot, bit), label) in slots.iter().zip(mine.iter().chain(theirs.iter())).zip(labels.iter_mut())
        {
            *label = label.with_lsb(false);
            garbler.set_zero_labels(slot, &[*label]);
            masked.set(slot, bit);
            *label ^= delta & Block::mask(bit);
        }
        deviate(|script| script.input_labels(&mut labels));
        channel.send_blocks(&labels)?;
        Ok(Garbling { delta, garbler, masked, zero_labels: zeros(0) })
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
        let wide = stretch.largest_piece();
        let (mut done, mut tables) = (0, zeros(2 * wide));
        let mut returned = Returned::of(stretch, oracle);
        for (number, piece) in stretch.pieces().enumerate() {
            let (range, tables) = (done..done + piece.ands, &mut tables[..2 * piece.ands]);
            done = range.end;
            let mut colours = self.garble_piece(piece, gates.part(range.clone()), tables, range.start);
            deviate(|script| script.tables(delta, tables, &mut colours));
            channel.send_blocks(tables)?;
            send_bits(channel, &colours)?;
            channel.flush()?;
            // Step 3, for pieces that the evaluator should be done with.
            while returned.pieces + returned.ahead.batches() <= number {
                self.take(channel, gates, &mut returned)?;
            }
        }
        while self.take(channel, gates, &mut returned)? {}
        let mut digest = [0u8; 32];
        channel.recv(&mut digest)?;
        if !passes(returned.labels.digest().ct_eq(&digest)) {
            return cheated("masked values come without their labels");
        }
        // Step 4
        let mut digest = returned.macs.digest();
        deviate(|script| script.gates_digest(&mut digest));
        Ok(channel.send(&digest)?)
    }

    /// Step 3 of the next piece; false behind the last.
    fn take(&mut self, channel: &mut Channel, gates: Gates<'_>, returned: &mut Returned<'_>) -> Result<bool> {
        let Some(piece) = returned.left.next() else { return Ok(false) };
        let (range, ands) = (returned.gates..returned.gates + piece.ands, piece.ands);
        let results = returned.ahead.receive(|| receive_bits(channel, ands))?;
        deviate(|script| script.returned(&results));
        let (held, opened) = (&mut returned.held[..ands], &mut returned.opened[..ands]);
        let stock = gates.part(range.clone()).iter().zip(&self.zero_labels[range.clone()]);
        let mut stock = stock.zip(held.iter_mut().zip(opened.iter_mut()));
        self.masked.follow(piece, &mut results.iter(), |[first, second, result]| {
            if let Some(((masks, zero), (held, opened))) = stock.next() {
                *held = *zero ^ (self.delta & Block::mask(result));
                *opened = check_share(&masks, Block::mask(first), Block::mask(second)).mac;
            }
        });
        returned.labels.update_halves(held);
        returned.macs.update_halves(opened);
        returned.gates = range.end;
        returned.pieces += 1;
        Ok(true)
    }

    /// Step 5: returns the outputs, which are in these slots, if this party learns them.
    pub(super) fn end(&self, end: End<'_>, channel: &mut Channel, slots: &[u32]) -> Result<Option<BitVec>> {
        if end.output_to.evaluator() {
            show(channel, end.oracle, GARBLERS_MASKS, true, &end.macs())?;
        }
        channel.flush()?;
        if !end.output_to.garbler() {
            return Ok(None);
        }
        let shares = see(channel, end.oracle, EVALUATORS_MASKS, false, &end.keys(), end.delta)?;
        let outputs: Vec<bool> = slots.iter().map(|&slot| self.masked.get(slot)).collect();
        Ok(Some(end.unmask(BitVec::from_bools(&outputs), &shares)))
    }

    /// Garbles a piece, whose first AND gate has number `first` in the stretch: step by step by the kernels,
    /// then the masks go into tables and results. Returns the bits that the results' labels are read with.
    fn garble_piece(
        &mut self,
        piece: Piece<'_>,
        gates: Gates<'_>,
        tables: &mut [Block],
        first: usize,
    ) -> BitVec {
        let (delta, garbler) = (self.delta, &mut self.garbler);
        let zero_labels = &mut self.zero_labels[first..first + piece.ands];
        let mut colours = BitVec::zeros(piece.ands);
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
                colours.set(at, label.lsb());
                zero_labels[at] = label.with_lsb(false);
                garbler.set_zero_labels(op.out, &zero_labels[at..=at]);
                at += 1;
            }
        }
        colours
    }
}
