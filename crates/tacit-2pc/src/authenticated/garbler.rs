//! The garbler's part of the last phase.

use super::bits::{shares, zeros};
use super::dependent::{Dependent, largest_piece};
use super::deviation::{deviate, passes};
use super::masked::{EVALUATORS_MASKS, GARBLERS_MASKS, Masked, check_share};
use super::opening::{MacHash, receive_bits, see, send_bits, show};
use super::{PIECE, cheated};
use crate::circuit::{ONE, Piece};
use crate::garble::{Copy, Garble, HalfGatesGarbler};
use crate::{Owner, Result};
use subtle::ConstantTimeEq;
use tacit_crypto::{BitVec, Block};
use tacit_net::Channel;

pub(super) fn run(mut run: Dependent<'_>, channel: &mut Channel, input: &BitVec) -> Result<Option<BitVec>> {
    let plan = run.function.plan(1);
    let (own, peer) = (run.slots(Owner::Garbler), run.slots(Owner::Evaluator));
    let delta = run.delta;
    let mut masked = Masked::new(plan.slots());
    let mine = run.masked(input);
    // Step 1
    let theirs = receive_bits(channel, peer.len())?;
    // Step 2
    let mut garbler = HalfGatesGarbler::new(&[Copy { delta, start: run.start() }]);
    garbler.reserve(plan.slots());
    // Zero-labels have lowest bit 0, so that a label's lowest bit is the masked value: of the constant one as well.
    garbler.set_zero_labels(ONE, &[delta ^ Block::ONE]);
    let slots: Vec<u32> = own.iter().chain(&peer).copied().collect();
    let mut labels = zeros(slots.len());
    run.prg.fill_blocks(&mut labels);
    for ((&slot, bit), label) in slots.iter().zip(mine.iter().chain(theirs.iter())).zip(labels.iter_mut()) {
        *label = label.with_lsb(false);
        garbler.set_zero_labels(slot, &[*label]);
        masked.set(slot, bit);
        *label ^= delta & Block::mask(bit);
    }
    deviate(|script| script.input_labels(&mut labels));
    channel.send_blocks(&labels)?;
    let gates = run.gates();
    let mut zero_labels = zeros(gates.len());
    let wide = largest_piece(run.function);
    let (mut done, mut tables) = (0, zeros(2 * wide));
    for piece in plan.pieces(PIECE) {
        let (range, tables) = (done..done + piece.ands, &mut tables[..2 * piece.ands]);
        done = range.end;
        let colours = garble_piece(&run, &mut garbler, piece, range.start, tables, &mut zero_labels[range]);
        let mut colours = colours;
        deviate(|script| script.tables(delta, tables, &mut colours));
        channel.send_blocks(tables)?;
        send_bits(channel, &colours)?;
    }
    channel.flush()?;
    // Step 3
    let results = receive_bits(channel, gates.len())?;
    let mut digest = [0u8; 32];
    channel.recv(&mut digest)?;
    let mut hash = MacHash::new(&run.oracle, "labels", false);
    let mut macs = MacHash::new(&run.oracle, "gates", true);
    let (mut held, mut opened) = (zeros(wide), zeros(wide));
    let mut values = results.iter();
    let mut stock = gates.iter().zip(zero_labels.iter());
    for piece in plan.pieces(PIECE) {
        let mut n = 0;
        masked.follow(piece, &mut values, |[first, second, result]| {
            if let Some((masks, zero)) = stock.next() {
                held[n] = *zero ^ (delta & Block::mask(result));
                opened[n] = check_share(&shares(masks), Block::mask(first), Block::mask(second)).mac;
                n += 1;
            }
        });
        hash.update(&held[..n]);
        macs.update(&opened[..n]);
    }
    if !passes(hash.digest().ct_eq(&digest)) {
        return cheated("masked values come without their labels");
    }
    // Steps 4 and 5
    let mut digest = macs.digest();
    deviate(|script| script.gates_digest(&mut digest));
    channel.send(&digest)?;
    if run.output_to.evaluator() {
        show(channel, &run.oracle, GARBLERS_MASKS, true, &run.output_macs())?;
    }
    channel.flush()?;
    if !run.output_to.garbler() {
        return Ok(None);
    }
    let shares = see(channel, &run.oracle, EVALUATORS_MASKS, false, &run.output_keys(), delta)?;
    let outputs: Vec<bool> = plan.outputs().iter().map(|&slot| masked.get(slot)).collect();
    Ok(Some(run.unmask(BitVec::from_bools(&outputs), &shares)))
}

/// Garbles a piece, whose first AND gate has number `first`: step by step by the kernels, then the masks go into tables
/// and results. Returns the bits that the results' labels are read with.
fn garble_piece(
    run: &Dependent<'_>,
    garbler: &mut HalfGatesGarbler,
    piece: Piece<'_>,
    first: usize,
    tables: &mut [Block],
    zero_labels: &mut [Block],
) -> BitVec {
    let mut colours = BitVec::zeros(piece.ands);
    let gates = run.gates();
    let mut at = 0;
    for step in piece.one_by_one() {
        let rows = &mut tables[2 * at..2 * (at + step.ands)];
        garbler.garble(step, rows);
        let ops = &step.ops[step.ops.len() - step.ands..];
        for (op, rows) in ops.iter().zip(rows.as_chunks_mut::<2>().0) {
            let masks = shares(&gates[first + at]);
            rows[0] ^= masks[1].times_delta(run.delta);
            rows[1] ^= masks[0].times_delta(run.delta);
            let label = garbler.zero_labels(op.out)[0] ^ masks[2].times_delta(run.delta);
            colours.set(at, label.lsb());
            zero_labels[at] = label.with_lsb(false);
            garbler.set_zero_labels(op.out, &zero_labels[at..=at]);
            at += 1;
        }
    }
    colours
}
