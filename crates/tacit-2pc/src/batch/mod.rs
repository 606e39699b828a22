//! GMW on XOR shares: many rows of one circuit side by side, a round a level of the circuit.
//!
//! Source: Goldreich, Micali, Wigderson, STOC '87, for two parties with Beaver's triples (CRYPTO '91), as in ABY and
//! others since. Realises secure evaluation of a circuit against semi-honest parties. Assumptions: those of the
//! correlated OT below, and of the hash that keeps one bit of each ([`tacit_ot::bit_triples`]).
//!
//! A wire of so many rows is a slice of words, one bit a row. Each party holds a share; the value is their XOR. XOR
//! and NOT are local. An AND gate of x and y uses up a triple (a, b, c = a ∧ b): the parties open d = x ⊕ a and
//! e = y ⊕ b, and z = c ⊕ d·b ⊕ e·a ⊕ d·e. An owner's share of its input is the input and the peer's is zero, which
//! takes no message and tells nothing: a share leaves its party only under a triple's mask, or as the last message of
//! an output, where it follows from the output and the peer's own share.
//!
//! Gates are ordered by AND depth ([`Plan`]). All AND gates of a level of all rows of a batch are opened in one
//! message each way. Rows are cut into [batches](Layout), of which as many are under way at the same time as memory
//! allows; while one waits for the peer's message the others go on. Triples are made in pieces as they are used.
//!
//! Rounds: the comparison of terms, then for each group of batches a level each, the outputs, and those of the
//! correlated OT. Bytes: 4 bits an AND gate, both directions together, the triple's correlated OT, 8 a message, 1 bit
//! an output bit.

#[cfg(test)]
mod attacks;
pub mod fold;
mod layout;
mod packed;
#[cfg(test)]
mod tests;
mod triples;

pub use layout::Layout;

use crate::circuit::{ONE, Op, Plan};
use crate::parties::slots_of;
use crate::semi_honest::{Compared, Terms, agree_for};
use crate::{Error, OutputTo, Owner, Prepared, Result};
use packed::{Packed, transpose};
use std::ops::Range;
use tacit_crypto::BitVec;
use tacit_net::Channel;
use tacit_ot::{CotReceiver, CotSender, Security};
use triples::Triples;
use zeroize::Zeroizing;

const PROTOCOL: &str = "batch";

const BATCH_TERMS: Compared =
    Compared { protocol: PROTOCOL, sizes: "tacit batch sizes v1", rest: "tacit batch v1", scheme: "gmw" };

/// The security of this protocol.
pub const SECURITY: Security = Security::SemiHonest;

/// A level's place in messages that open outputs.
const OUTPUTS: u32 = u32::MAX;

/// Correlated OT that this party sends, and that it receives.
pub type Streams<'a> = (&'a mut dyn CotSender, &'a mut dyn CotReceiver);

/// Evaluates rows of a prepared function, one vector of this party's inputs a row, with triples out of correlated OT
/// that this party sends and receives. `each` is called with the number of rows that are done since it was called
/// before.
///
/// Returns the outputs of each row if this party learns them. Errors if the peer runs anything else.
pub fn run(
    channel: &mut Channel,
    (sender, receiver): Streams<'_>,
    function: &Prepared,
    role: Owner,
    inputs: &[Vec<BitVec>],
    output_to: OutputTo,
    each: impl FnMut(usize),
) -> Result<Option<Vec<Vec<BitVec>>>> {
    let layout = Layout::new(function.plan(1), inputs.len());
    run_in(layout, channel, (sender, receiver), function, role, inputs, output_to, each)
}

/// As [`run`], with rows cut in this way.
fn run_in(
    layout: Layout,
    channel: &mut Channel,
    (sender, receiver): Streams<'_>,
    function: &Prepared,
    role: Owner,
    inputs: &[Vec<BitVec>],
    output_to: OutputTo,
    mut each: impl FnMut(usize),
) -> Result<Option<Vec<Vec<BitVec>>>> {
    let (shape, owners, rows) = (function.circuit().shape(), function.owners(), inputs.len());
    check_inputs(function, role, inputs)?;
    let terms = Terms { function: &function.digest(), shape, owners, output_to, rows };
    agree_for(&BATCH_TERMS, channel, role, &terms)?;
    let plan = function.plan(1);
    let engine = Engine {
        levels: levels(plan),
        plan,
        layout,
        role,
        output_to,
        own_slots: slots_of(shape, owners, role),
        widths: &shape.outputs,
    };
    let mut triples = Triples::new(sender, receiver, plan.ands() as u128 * rows as u128);
    let mut outputs = Vec::new();
    for group in inputs.chunks(engine.layout.group()) {
        outputs.extend(engine.group(channel, &mut triples, group)?);
        each(group.len());
    }
    channel.flush()?;
    Ok(output_to.learned_by(role).then_some(outputs))
}

/// Of the forms of `function` the one that so many rows take sooner, over a link of a millisecond: few rows take the
/// shallow one, where there is one. Both parties come to the same.
pub fn fitting(function: &Prepared, rows: usize) -> &Prepared {
    let nanoseconds = |function: &Prepared| {
        let layout = Layout::new(function.plan(1), rows);
        layout.triples() as f64 * TRIPLE_AND_GATE_NS + layout.rounds() as f64 * ROUND_NS
    };
    match function.shallow() {
        Some(shallow) if nanoseconds(shallow) < nanoseconds(function) => shallow,
        _ => function,
    }
}

/// By what forms are weighed: nanoseconds of a gate with its triple, and of a round.
const TRIPLE_AND_GATE_NS: f64 = 25.0;
const ROUND_NS: f64 = 1e6;

/// Errors unless each row has that party's inputs in their widths.
fn check_inputs(function: &Prepared, role: Owner, rows: &[Vec<BitVec>]) -> Result<()> {
    let all = function.circuit().shape().inputs.iter().zip(function.owners());
    let widths: Vec<usize> = all.filter(|(_, o)| **o == role).map(|(&width, _)| width as usize).collect();
    let fits = |row: &Vec<BitVec>| row.iter().map(BitVec::len).eq(widths.iter().copied());
    match rows.iter().all(fits) {
        true => Ok(()),
        false => Err(Error::Usage {
            protocol: PROTOCOL,
            what: "a row has other inputs than the function takes from this party",
        }),
    }
}

/// The local gates and the AND gates of a level, by their places among the plan's operations.
struct LevelOps {
    window: usize,
    xors: Range<usize>,
    ands: Range<usize>,
}

fn levels(plan: &Plan) -> Vec<LevelOps> {
    let mut levels = Vec::new();
    for (window, part) in plan.windows().iter().enumerate() {
        let mut at = 0;
        for step in part.whole().steps {
            let (xors, ands) = (at + step.xors as usize, at + (step.xors + step.ands) as usize);
            levels.push(LevelOps { window, xors: at..xors, ands: xors..ands });
            at = ands;
        }
    }
    levels
}

/// A function on its way through rows.
struct Engine<'a> {
    plan: &'a Plan,
    levels: Vec<LevelOps>,
    layout: Layout,
    role: Owner,
    output_to: OutputTo,
    /// Where this party's input bits are, one input after the other.
    own_slots: Vec<u32>,
    widths: &'a [u32],
}

impl Engine<'_> {
    /// Evaluates the rows of a group, its batches side by side; returns the outputs where this party learns them.
    fn group(
        &self,
        channel: &mut Channel,
        triples: &mut Triples<'_>,
        rows: &[Vec<BitVec>],
    ) -> Result<Vec<Vec<BitVec>>> {
        let parts = rows.chunks(self.layout.batch()).enumerate();
        let mut batches: Vec<Batch> =
            parts.map(|(number, rows)| Batch::new(number as u32, self, rows)).collect();
        self.through(channel, triples, &mut batches)?;
        self.open(channel, &mut batches)
    }

    /// Takes batches through all levels, side by side.
    fn through(&self, channel: &mut Channel, triples: &mut Triples<'_>, batches: &mut [Batch]) -> Result<()> {
        for (number, level) in self.levels.iter().enumerate() {
            let ops = self.plan.windows()[level.window].whole().ops;
            let (xors, ands) = (&ops[level.xors.clone()], &ops[level.ands.clone()]);
            for at in 0..batches.len() {
                let bits = batches[at].rows * ands.len();
                if triples.are_missing(bits) {
                    // What is on its way comes before messages of another kind: of this level and those behind it
                    // the one before, of those ahead this one.
                    let (ahead, behind) = batches.split_at_mut(at);
                    let mut waiting = behind.iter_mut().chain(ahead);
                    waiting.try_for_each(|batch| batch.finish(self, channel))?;
                    triples.make(channel, bits)?;
                }
                let batch = &mut batches[at];
                batch.finish(self, channel)?;
                batch.xors(xors);
                batch.open(channel, triples, (number, ands))?;
            }
        }
        batches.iter_mut().try_for_each(|batch| batch.finish(self, channel))
    }

    /// Opens the outputs of batches that are through; returns those that this party learns.
    fn open(&self, channel: &mut Channel, batches: &mut [Batch]) -> Result<Vec<Vec<BitVec>>> {
        if self.output_to.learned_by(self.role.other()) {
            batches.iter_mut().try_for_each(|batch| batch.send_outputs(self, channel))?;
        }
        if !self.output_to.learned_by(self.role) {
            channel.flush()?;
            return Ok(Vec::new());
        }
        let mut outputs = Vec::new();
        for batch in batches {
            batch.receive_outputs(self, channel, &mut outputs)?;
        }
        Ok(outputs)
    }

    /// The AND gates of a level.
    fn ands(&self, level: usize) -> &[Op] {
        let LevelOps { window, ands, .. } = &self.levels[level];
        &self.plan.windows()[*window].whole().ops[ands.clone()]
    }
}

/// Rows side by side.
struct Batch {
    number: u32,
    rows: usize,
    /// Words of a wire.
    words: usize,
    /// This party's shares, slot after slot.
    shares: Zeroizing<Vec<u64>>,
    /// The level that waits for the peer's half of its openings.
    opening: Option<Opening>,
    message: Vec<u8>,
}

/// This party's halves of d and e of a level, and its shares of the triples.
struct Opening {
    level: usize,
    halves: [Packed; 2],
    abc: [Packed; 3],
}

impl Batch {
    fn new(number: u32, engine: &Engine<'_>, rows: &[Vec<BitVec>]) -> Self {
        let mut batch = Batch::blank(number, engine, rows.len());
        batch.put_inputs(&engine.own_slots, rows);
        batch
    }

    /// Without inputs.
    fn blank(number: u32, engine: &Engine<'_>, rows: usize) -> Self {
        let words = rows.div_ceil(64);
        let shares = Zeroizing::new(vec![0; engine.plan.slots() * words]);
        let mut batch = Batch { number, rows, words, shares, opening: None, message: Vec::new() };
        if engine.role == Owner::Garbler {
            batch.slot(ONE).fill(u64::MAX);
        }
        batch
    }

    fn slot(&mut self, slot: u32) -> &mut [u64] {
        &mut self.shares[slot as usize * self.words..][..self.words]
    }

    /// Turns rows of inputs into wires, 64 rows and 64 bits at a time.
    fn put_inputs(&mut self, slots: &[u32], rows: &[Vec<BitVec>]) {
        let mut square = Zeroizing::new([0; 64]);
        for (word, rows) in rows.chunks(64).enumerate() {
            let mut first = 0;
            for input in 0..rows[0].len() {
                let width = rows[0][input].len();
                for bit in (0..width).step_by(64) {
                    square.fill(0);
                    for (slot, row) in square.iter_mut().zip(rows) {
                        *slot = word_of(row[input].as_bytes(), bit / 8);
                    }
                    transpose(&mut square);
                    for (bits, &slot) in square.iter().zip(&slots[first + bit..first + width]) {
                        self.shares[slot as usize * self.words + word] = *bits;
                    }
                }
                first += width;
            }
        }
    }

    /// The local gates of a level.
    fn xors(&mut self, ops: &[Op]) {
        let words = self.words;
        for op in ops {
            // A gate's slot is never one that it reads.
            let (below, rest) = self.shares.split_at_mut(op.out as usize * words);
            let (out, above) = rest.split_at_mut(words);
            let operand = |slot: u32| match slot < op.out {
                true => &below[slot as usize * words..][..words],
                false => &above[(slot - op.out - 1) as usize * words..][..words],
            };
            let (a, b) = (operand(op.a), operand(op.b));
            for ((out, a), b) in out.iter_mut().zip(a).zip(b) {
                *out = a ^ b;
            }
        }
    }

    /// Sends this party's halves of the openings of a level's AND gates.
    fn open(
        &mut self,
        channel: &mut Channel,
        triples: &mut Triples<'_>,
        (level, ops): (usize, &[Op]),
    ) -> Result<()> {
        if ops.is_empty() {
            return Ok(());
        }
        let bits = ops.len() * self.rows;
        let mut halves = [(); 2].map(|()| Packed::with_room(bits));
        for op in ops {
            for (half, slot) in halves.iter_mut().zip([op.a, op.b]) {
                half.push(&self.shares[slot as usize * self.words..][..self.words], self.rows);
            }
        }
        let abc = triples.take(bits);
        halves.iter_mut().zip(&abc).for_each(|(half, mask)| half.xor(mask));
        self.send(channel, level as u32, &halves)?;
        self.opening = Some(Opening { level, halves, abc });
        Ok(())
    }

    /// Takes in the peer's halves of the level that is open, if one is, and makes the gates' values.
    fn finish(&mut self, engine: &Engine<'_>, channel: &mut Channel) -> Result<()> {
        let Some(Opening { level, halves: [mut d, mut e], abc: [a, b, mut c] }) = self.opening.take() else {
            return Ok(());
        };
        self.receive(channel, level as u32, &mut [&mut d, &mut e])?;
        let both = if engine.role == Owner::Garbler { u64::MAX } else { 0 };
        c.combine([&d, &e, &a, &b], both);
        let (rows, words) = (self.rows, self.words);
        for (gate, op) in engine.ands(level).iter().enumerate() {
            c.read(gate * rows, rows, &mut self.shares[op.out as usize * words..][..words]);
        }
        Ok(())
    }

    /// Sends a message: its place, and bits.
    fn send(&mut self, channel: &mut Channel, level: u32, parts: &[Packed]) -> Result<()> {
        channel.send_u64(self.place(level))?;
        for part in parts {
            part.to_bytes(&mut self.message);
            channel.send(&self.message)?;
        }
        Ok(channel.flush()?)
    }

    /// XORs the peer's message of this place in. An error if it is of another.
    fn receive(&mut self, channel: &mut Channel, level: u32, parts: &mut [&mut Packed]) -> Result<()> {
        if channel.recv_u64()? != self.place(level) {
            let what = "which gates are opened next: a message is longer or shorter than they need";
            return Err(Error::Mismatch { protocol: PROTOCOL, what });
        }
        for part in parts {
            self.message.resize(part.bytes(), 0);
            channel.recv(&mut self.message)?;
            part.xor_bytes(&self.message);
        }
        Ok(())
    }

    /// The head of a message.
    fn place(&self, level: u32) -> u64 {
        u64::from(self.number) << 32 | u64::from(level)
    }

    /// This party's shares of the outputs, bit after bit.
    fn outputs(&self, engine: &Engine<'_>) -> Packed {
        let mut packed = Packed::with_room(engine.plan.outputs().len() * self.rows);
        for &slot in engine.plan.outputs() {
            packed.push(&self.shares[slot as usize * self.words..][..self.words], self.rows);
        }
        packed
    }

    fn send_outputs(&mut self, engine: &Engine<'_>, channel: &mut Channel) -> Result<()> {
        let outputs = self.outputs(engine);
        self.send(channel, OUTPUTS, &[outputs])
    }

    /// Opens the outputs to this party: one more row each in `into`.
    fn receive_outputs(
        &mut self,
        engine: &Engine<'_>,
        channel: &mut Channel,
        into: &mut Vec<Vec<BitVec>>,
    ) -> Result<()> {
        let mut outputs = self.outputs(engine);
        self.receive(channel, OUTPUTS, &mut [&mut outputs])?;
        let mut wires = Zeroizing::new(vec![0; engine.plan.outputs().len() * self.words]);
        for (bit, wire) in wires.chunks_mut(self.words.max(1)).enumerate() {
            outputs.read(bit * self.rows, self.rows, wire);
        }
        let mut square = Zeroizing::new([0; 64]);
        let widest = engine.widths.iter().map(|width| width.div_ceil(64)).max().unwrap_or(0) as usize;
        for word in 0..self.words {
            let rows = 64.min(self.rows - 64 * word);
            // With room for the widest output, so that no copy of a value stays behind.
            let mut bytes: Vec<Vec<u8>> = (0..rows).map(|_| Vec::with_capacity(8 * widest)).collect();
            let mut values = vec![Vec::with_capacity(engine.widths.len()); rows];
            let mut first = 0;
            for &width in engine.widths {
                let width = width as usize;
                for bit in (0..width).step_by(64) {
                    square.fill(0);
                    for (at, slot) in (first + bit..first + width).zip(square.iter_mut()) {
                        *slot = wires[at * self.words + word];
                    }
                    transpose(&mut square);
                    for (bytes, bits) in bytes.iter_mut().zip(square.iter()) {
                        bytes.extend(bits.to_le_bytes());
                    }
                }
                for (values, bytes) in values.iter_mut().zip(&mut bytes) {
                    values.push(BitVec::from_bytes(bytes, width));
                    zeroize::Zeroize::zeroize(bytes);
                }
                first += width;
            }
            into.extend(values);
        }
        Ok(())
    }
}

/// Up to 8 bytes from `at` on.
fn word_of(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    let part = &bytes[at..bytes.len().min(at + 8)];
    word[..part.len()].copy_from_slice(part);
    u64::from_le_bytes(word)
}
