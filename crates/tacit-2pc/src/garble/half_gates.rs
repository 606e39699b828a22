//! Free-XOR and half-gates (Zahur, Rosulek and Evans, "Two halves make a whole", 2014/756), hashed with
//! MITCCRH (Guo, Katz, Wang and Yu, 2019/1168).
//!
//! Two ciphertexts an AND gate, nothing for XOR and INV. AND gate number g of a copy hashes under the keys S
//! ⊕ 2g and S ⊕ (2g + 1), S the copy's start point: public, fresh and random, one a garbled circuit. Point
//! and permute: Δ's lowest bit is 1, so the lowest bits of a wire's two labels differ and say which
//! ciphertext applies without saying the value. Assumption: MITCCRH is circular correlation robust, with at
//! most two unknown inputs under one key (ideal cipher).

use super::{Evaluate, Garble, GarblingScheme};
use crate::circuit::{ONE, Piece, ZERO};
use tacit_crypto::simd::Backend;
use tacit_crypto::simd::halfgates::{self, Gates};
use tacit_crypto::{Block, Buffer};
use zeroize::Zeroize;

/// Half-gates as a scheme.
pub struct HalfGates;

impl GarblingScheme for HalfGates {
    const NAME: &'static str = "half-gates";
    const BLOCKS_PER_AND: usize = 2;
    type Garbler = HalfGatesGarbler;
    type Evaluator = HalfGatesEvaluator;
}

/// What sets one garbled copy apart.
#[derive(Clone, Copy)]
pub struct Copy {
    /// The secret offset between a wire's labels; its lowest bit is 1.
    pub delta: Block,
    /// The public start point S of the re-keyed hash.
    pub start: Block,
}

impl Zeroize for Copy {
    fn zeroize(&mut self) {
        self.delta.zeroize();
        self.start.zeroize();
    }
}

/// The start point of instance number `instance` of a session whose start point is `session`.
///
/// Gate numbers use the low half of a key and instances the high half, so keys of one session never repeat.
pub fn instance_start(session: Block, instance: u64) -> Block {
    session ^ Block::from_halves(0, instance)
}

/// The labels of all slots and what both sides do alike.
struct Machine {
    backend: Backend,
    lanes: usize,
    starts: Vec<Block>,
    /// Aligned, so that rows of copies that fill vectors lie within cache lines.
    labels: Buffer,
    /// AND gates executed so far.
    gates: u64,
}

impl Machine {
    fn new(starts: Vec<Block>) -> Self {
        Machine {
            backend: Backend::active(),
            lanes: starts.len(),
            starts,
            labels: Buffer::zeros(0),
            gates: 0,
        }
    }

    fn reserve(&mut self, slots: usize) {
        let needed = slots * self.lanes;
        if self.labels.len() < needed {
            // At least doubled, since inputs come slot by slot.
            let mut labels = Buffer::zeros(needed.max(2 * self.labels.len()));
            labels[..self.labels.len()].copy_from_slice(&self.labels);
            self.labels = labels;
        }
    }

    fn set(&mut self, slot: u32, labels: &[Block]) {
        assert_eq!(labels.len(), self.lanes, "one label a copy");
        self.reserve(slot as usize + 1);
        self.labels[slot as usize * self.lanes..][..self.lanes].copy_from_slice(labels);
    }

    fn get(&self, slot: u32) -> &[Block] {
        &self.labels[slot as usize * self.lanes..][..self.lanes]
    }

    /// The next gates, with room for their labels.
    fn next<'a>(&mut self, piece: Piece<'a>) -> Gates<'a> {
        self.reserve(piece.slots);
        let first = self.gates;
        self.gates += piece.ands as u64;
        Gates { steps: piece.steps, ops: piece.ops, first }
    }
}

/// The garbling side of half-gates.
pub struct HalfGatesGarbler {
    machine: Machine,
    deltas: Vec<Block>,
}

impl Drop for HalfGatesGarbler {
    fn drop(&mut self) {
        self.deltas.zeroize();
    }
}

impl HalfGatesGarbler {
    /// A garbler of as many copies as are given. Panics if there are none or a Δ has lowest bit 0.
    pub fn new(copies: &[Copy]) -> Self {
        assert!(!copies.is_empty(), "at least one copy");
        assert!(copies.iter().all(|c| c.delta.lsb()), "Δ with lowest bit 0 breaks point and permute");
        let mut machine = Machine::new(copies.iter().map(|c| c.start).collect());
        let deltas: Vec<Block> = copies.iter().map(|c| c.delta).collect();
        // The constants: the label of one is zero, which the evaluator holds, so its zero-label is Δ.
        machine.set(ZERO, &vec![Block::ZERO; copies.len()]);
        machine.set(ONE, &deltas);
        HalfGatesGarbler { machine, deltas }
    }

    /// Δ of each copy.
    pub fn deltas(&self) -> &[Block] {
        &self.deltas
    }

    /// Makes room for so many slots at once; otherwise it is doubled, and copied, as inputs are set slot by
    /// slot.
    pub fn reserve(&mut self, slots: usize) {
        self.machine.reserve(slots);
    }

    /// AND gates garbled so far, a copy.
    pub fn gates(&self) -> u64 {
        self.machine.gates
    }
}

impl Garble for HalfGatesGarbler {
    fn lanes(&self) -> usize {
        self.machine.lanes
    }

    fn set_zero_labels(&mut self, slot: u32, labels: &[Block]) {
        self.machine.set(slot, labels);
    }

    fn zero_labels(&self, slot: u32) -> &[Block] {
        self.machine.get(slot)
    }

    fn garble(&mut self, piece: Piece<'_>, tables: &mut [Block]) {
        let (tables, rest) = tables.as_chunks_mut::<2>();
        assert!(tables.len() == piece.ands * self.lanes() && rest.is_empty(), "two blocks a gate and copy");
        let gates = self.machine.next(piece);
        let Machine { backend, starts, labels, .. } = &mut self.machine;
        halfgates::garble(*backend, gates, starts, &self.deltas, labels, tables);
    }
}

/// The evaluating side of half-gates.
pub struct HalfGatesEvaluator {
    machine: Machine,
}

impl HalfGatesEvaluator {
    /// An evaluator of copies with these start points. Panics if there are none.
    pub fn new(starts: &[Block]) -> Self {
        assert!(!starts.is_empty(), "at least one copy");
        let mut machine = Machine::new(starts.to_vec());
        let zeros = vec![Block::ZERO; starts.len()];
        machine.set(ZERO, &zeros);
        machine.set(ONE, &zeros);
        HalfGatesEvaluator { machine }
    }

    /// Makes room for so many slots at once; otherwise it is doubled, and copied, as inputs are set slot by
    /// slot.
    pub fn reserve(&mut self, slots: usize) {
        self.machine.reserve(slots);
    }

    /// AND gates evaluated so far, a copy.
    pub fn gates(&self) -> u64 {
        self.machine.gates
    }
}

impl Evaluate for HalfGatesEvaluator {
    fn lanes(&self) -> usize {
        self.machine.lanes
    }

    fn set_labels(&mut self, slot: u32, labels: &[Block]) {
        self.machine.set(slot, labels);
    }

    fn labels(&self, slot: u32) -> &[Block] {
        self.machine.get(slot)
    }

    fn evaluate(&mut self, piece: Piece<'_>, tables: &[Block]) {
        let (tables, rest) = tables.as_chunks::<2>();
        assert!(tables.len() == piece.ands * self.lanes() && rest.is_empty(), "two blocks a gate and copy");
        let gates = self.machine.next(piece);
        let Machine { backend, starts, labels, .. } = &mut self.machine;
        halfgates::evaluate(*backend, gates, starts, labels, tables);
    }
}
