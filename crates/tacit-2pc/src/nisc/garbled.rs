//! The garbled circuit of a reply.
//!
//! A start point; then, of each group of rows that run side by side, the labels of the sender's input, the tables,
//! and the hashes of both labels of each output bit. The labels of the receiver's input go by the transfers.

use super::PROTOCOL;
use crate::circuit::Shape;
use crate::garble::{
    Copy, Evaluate, Garble, GarblingScheme, HalfGates, HalfGatesEvaluator, HalfGatesGarbler, instance_start,
    output,
};
use crate::parties::slots_of;
use crate::semi_honest::{PIECE_BLOCKS, ROWS_AT_ONCE, rows_of, set_rows};
use crate::{Error, Owner, Prepared, Result};
use tacit_crypto::{BitVec, Block, Prg};
use zeroize::{Zeroize, Zeroizing};

const BLOCK: usize = size_of::<Block>();

/// Bytes of the garbled circuits of so many rows; `None` where they do not fit.
pub(super) fn bytes(circuit: &Prepared, rows: usize) -> Option<usize> {
    let shape = circuit.circuit().shape();
    let tables = usize::try_from(circuit.plan(1).ands()).ok()?.checked_mul(HalfGates::BLOCKS_PER_AND)?;
    let own = slots_of(shape, circuit.owners(), Owner::Garbler).len();
    let row = tables.checked_add(own)?.checked_add(2 * shape.output_bits())?;
    row.checked_mul(rows)?.checked_add(1)?.checked_mul(BLOCK)
}

fn starts(session: Block, first: usize, lanes: usize) -> Vec<Block> {
    (first..first + lanes).map(|row| instance_start(session, row as u64)).collect()
}

/// The messages of choice 0 and of choice 1, and what goes with them.
pub(super) type Garbled = ([Zeroizing<Vec<u8>>; 2], Vec<u8>);

/// Both labels of each bit of the receiver's input, row after row, those of 0 first; and the garbled circuits, of
/// labels drawn anew.
pub(super) fn garble(
    circuit: &Prepared,
    rows: usize,
    bits: usize,
    mine: &BitVec,
    prg: &mut Prg,
) -> Result<Garbled> {
    let Some(bytes) = bytes(circuit, rows) else {
        return super::usage("the function is too large for a message");
    };
    let shape = circuit.circuit().shape();
    let my_slots = slots_of(shape, circuit.owners(), Owner::Garbler);
    let their_slots = slots_of(shape, circuit.owners(), Owner::Evaluator);
    let delta = prg.block().with_lsb(true);
    let session = prg.block();
    let mut theirs = Zeroizing::new(vec![Block::ZERO; bits * rows]);
    prg.fill_blocks(&mut theirs);
    let mut out = Vec::with_capacity(bytes);
    out.extend_from_slice(&session.to_bytes());
    let mut tables = Vec::new();
    for first in (0..rows).step_by(ROWS_AT_ONCE) {
        let lanes = ROWS_AT_ONCE.min(rows - first);
        let plan = circuit.plan(lanes);
        let starts = starts(session, first, lanes);
        let copies: Zeroizing<Vec<Copy>> =
            Zeroizing::new(starts.iter().map(|&start| Copy { delta, start }).collect());
        let mut garbler = HalfGatesGarbler::new(&copies);
        garbler.reserve(plan.slots());
        set_rows(&their_slots, &theirs, first, lanes, |slot, labels| garbler.set_zero_labels(slot, labels));
        let mut labels = [Block::ZERO; ROWS_AT_ONCE];
        for (i, &slot) in my_slots.iter().enumerate() {
            let labels = &mut labels[..lanes];
            prg.fill_blocks(labels);
            garbler.set_zero_labels(slot, labels);
            for (row, label) in labels.iter_mut().enumerate() {
                *label ^= delta & Block::mask(mine.get((first + row) * my_slots.len() + i));
            }
            out.extend_from_slice(Block::as_bytes(labels));
        }
        labels.zeroize();
        for piece in plan.pieces(PIECE_BLOCKS / 2 / lanes) {
            tables.resize(HalfGates::BLOCKS_PER_AND * piece.ands * lanes, Block::ZERO);
            garbler.garble(piece, &mut tables);
            out.extend_from_slice(Block::as_bytes(&tables));
        }
        for (i, &slot) in plan.outputs().iter().enumerate() {
            for (&start, &zero) in starts.iter().zip(garbler.zero_labels(slot)) {
                out.extend_from_slice(Block::as_bytes(&output::label_hashes(start, i as u64, zero, delta)));
            }
        }
    }
    let zero = Zeroizing::new(Block::as_bytes(&theirs).to_vec());
    theirs.iter_mut().for_each(|label| *label ^= delta);
    Ok(([zero, Zeroizing::new(Block::as_bytes(&theirs).to_vec())], out))
}

/// The blocks of a garbled circuit, in order.
struct Blocks<'a>(std::slice::ChunksExact<'a, u8>);

impl Blocks<'_> {
    fn next(&mut self) -> Block {
        let mut bytes = [0; BLOCK];
        // Lengths were compared before.
        if let Some(block) = self.0.next() {
            bytes.copy_from_slice(block);
        }
        Block::from_bytes(bytes)
    }

    fn fill(&mut self, out: &mut [Block]) {
        out.iter_mut().for_each(|block| *block = self.next());
    }
}

/// The outputs of each row, by the labels of the receiver's input and garbled circuits of [`bytes`] bytes.
///
/// Errors: `Cheated` if an output's label is none of the two, in any row, and then no output of any.
pub(super) fn evaluate(
    circuit: &Prepared,
    rows: usize,
    bits: usize,
    labels: &[u8],
    garbled: &[u8],
) -> Result<Vec<Vec<BitVec>>> {
    let shape: &Shape = circuit.circuit().shape();
    let my_slots = slots_of(shape, circuit.owners(), Owner::Evaluator);
    let their_slots = slots_of(shape, circuit.owners(), Owner::Garbler);
    let mut mine = Zeroizing::new(vec![Block::ZERO; bits * rows]);
    Blocks(labels.chunks_exact(BLOCK)).fill(&mut mine);
    let mut garbled = Blocks(garbled.chunks_exact(BLOCK));
    let session = garbled.next();
    let (mut results, mut valid) = (Vec::new(), true);
    let mut tables = Vec::new();
    for first in (0..rows).step_by(ROWS_AT_ONCE) {
        let lanes = ROWS_AT_ONCE.min(rows - first);
        let plan = circuit.plan(lanes);
        let starts = starts(session, first, lanes);
        let mut evaluator = HalfGatesEvaluator::new(&starts);
        evaluator.reserve(plan.slots());
        set_rows(&my_slots, &mine, first, lanes, |slot, labels| evaluator.set_labels(slot, labels));
        let mut labels = [Block::ZERO; ROWS_AT_ONCE];
        for &slot in &their_slots {
            garbled.fill(&mut labels[..lanes]);
            evaluator.set_labels(slot, &labels[..lanes]);
        }
        for piece in plan.pieces(PIECE_BLOCKS / 2 / lanes) {
            tables.resize(HalfGates::BLOCKS_PER_AND * piece.ands * lanes, Block::ZERO);
            garbled.fill(&mut tables);
            evaluator.evaluate(piece, &tables);
        }
        let mut decoded = BitVec::zeros(plan.outputs().len() * lanes);
        for (i, &slot) in plan.outputs().iter().enumerate() {
            for (row, (&start, &label)) in starts.iter().zip(evaluator.labels(slot)).enumerate() {
                let hashes = [garbled.next(), garbled.next()];
                let value = output::decode_hashed(start, i as u64, label, &hashes);
                valid &= value.is_some();
                decoded.set(i * lanes + row, value.unwrap_or(false));
            }
        }
        results.extend(rows_of(shape, &decoded, lanes));
    }
    // proof: nisc 8.3
    if !valid {
        return Err(Error::Cheated { protocol: PROTOCOL, what: "an output label is not valid" });
    }
    Ok(results)
}
