//! Garbled circuits: schemes behind two traits, and half-gates.
//!
//! A scheme executes [`Piece`]s of a plan over wire labels. It works on `lanes` copies at once: the label of
//! slot `s` in copy `l` stands at `s · lanes + l`, so one gate of many copies, or many independent gates of
//! one copy, fill vector registers. Copies may be the ρ circuits of a cut-and-choose (each with its own Δ and
//! start point) or many instances of one function in one session (one Δ, start points that never meet).

mod half_gates;
pub mod output;

pub use half_gates::{Copy, HalfGates, HalfGatesEvaluator, HalfGatesGarbler, instance_start};

use crate::circuit::Piece;
use tacit_crypto::Block;

/// A way to garble: what a garbler and an evaluator of the same scheme agree on.
pub trait GarblingScheme {
    /// The short name.
    const NAME: &'static str;
    /// Blocks of ciphertext an AND gate.
    const BLOCKS_PER_AND: usize;
    /// The garbling side.
    type Garbler: Garble;
    /// The evaluating side.
    type Evaluator: Evaluate;
}

/// The garbling side: zero-labels in slots.
pub trait Garble {
    /// Copies worked on at once.
    fn lanes(&self) -> usize;
    /// Sets the zero-labels of `slot`, one a copy. Panics unless there are as many as copies.
    fn set_zero_labels(&mut self, slot: u32, labels: &[Block]);
    /// The zero-labels of `slot`, one a copy.
    fn zero_labels(&self, slot: u32) -> &[Block];
    /// Garbles `piece`; the next AND gates' ciphertexts go to `tables`, gate by gate, within a gate copy by
    /// copy.
    ///
    /// Panics unless `tables` has room for exactly the piece's gates.
    fn garble(&mut self, piece: Piece<'_>, tables: &mut [Block]);
}

/// The evaluating side: active labels in slots.
pub trait Evaluate {
    /// Copies worked on at once.
    fn lanes(&self) -> usize;
    /// Sets the active labels of `slot`, one a copy. Panics unless there are as many as copies.
    fn set_labels(&mut self, slot: u32, labels: &[Block]);
    /// The active labels of `slot`, one a copy.
    fn labels(&self, slot: u32) -> &[Block];
    /// Evaluates `piece` with the next AND gates' ciphertexts, laid out as [`Garble::garble`] does.
    ///
    /// Panics unless `tables` has exactly the piece's gates.
    fn evaluate(&mut self, piece: Piece<'_>, tables: &[Block]);
}
