//! What is computed: a prepared circuit or a program, as windows of a plan.

use crate::circuit::{FIRST_INPUT, Order, Piece, Place, Program, ProgramPlan, Shape};
use crate::{Error, Owner, Prepared, Result};
use tacit_crypto::BitVec;
use tacit_crypto::transcript::Transcript;
use zeroize::Zeroizing;

/// A function that can be walked through several times: garbled, evaluated and, after a fault, computed in
/// the clear.
pub trait Function: Sync {
    /// What the parties compare before they start.
    fn identity(&self) -> [u8; 32];
    /// The widths of inputs and outputs.
    fn shape(&self) -> Shape;
    /// Who owns each input.
    fn owners(&self) -> &[Owner];
    /// Slots to make room for before inputs are set; those of the inputs, where a walk's are not known before
    /// it.
    fn slots(&self) -> usize {
        FIRST_INPUT as usize + self.shape().input_bits()
    }
    /// A fresh walk from the first gate on.
    fn walk(&self) -> Box<dyn Walk + '_>;
}

/// One walk through a function's gates, piece by piece, in an order that suits many copies side by side.
pub trait Walk {
    /// The next piece of about `ands` AND gates; `None` after the last.
    fn next_piece(&mut self, ands: usize) -> Option<Piece<'_>>;
    /// The slots of the output bits, once the last piece was taken.
    fn outputs(&self) -> &[u32];
}

/// Copies beside each other, from which a prepared circuit's plan is in sequential order.
const SIDE_BY_SIDE: usize = 2;

impl Function for Prepared {
    fn identity(&self) -> [u8; 32] {
        self.digest()
    }

    fn shape(&self) -> Shape {
        self.circuit().shape().clone()
    }

    fn owners(&self) -> &[Owner] {
        Prepared::owners(self)
    }

    fn slots(&self) -> usize {
        self.plan(SIDE_BY_SIDE).slots()
    }

    fn walk(&self) -> Box<dyn Walk + '_> {
        Box::new(Planned { prepared: self, window: 0, place: Place::default() })
    }
}

struct Planned<'a> {
    prepared: &'a Prepared,
    window: usize,
    place: Place,
}

impl Walk for Planned<'_> {
    fn next_piece(&mut self, ands: usize) -> Option<Piece<'_>> {
        while let Some(window) = self.prepared.plan(SIDE_BY_SIDE).windows().get(self.window) {
            if let Some(piece) = window.next_piece(&mut self.place, ands) {
                return Some(piece);
            }
            (self.window, self.place) = (self.window + 1, Place::default());
        }
        None
    }

    fn outputs(&self) -> &[u32] {
        self.prepared.plan(SIDE_BY_SIDE).outputs()
    }
}

/// A program, made afresh for each walk: its circuit is never held as a whole.
pub struct Streamed<F> {
    make: F,
    owners: Vec<Owner>,
    shape: Shape,
    identity: [u8; 32],
}

impl<P: Program + 'static, F: Fn() -> P + Sync> Streamed<F> {
    /// The function of the programs that `make` makes, all alike. Errors unless there is one owner an input.
    pub fn new(make: F, owners: Vec<Owner>) -> Result<Self> {
        let program = make();
        let shape = program.shape();
        if owners.len() != shape.inputs.len() {
            return Err(Error::Usage { protocol: super::PROTOCOL, what: "one owner an input" });
        }
        let mut transcript = Transcript::new("tacit streamed program v1");
        transcript.append("identity", program.identity().as_bytes());
        shape.absorb(&mut transcript);
        let mut identity = [0; 32];
        transcript.challenge_bytes("digest", &mut identity);
        Ok(Streamed { make, owners, shape, identity })
    }
}

impl<P: Program + 'static, F: Fn() -> P + Sync> Function for Streamed<F> {
    fn identity(&self) -> [u8; 32] {
        self.identity
    }

    fn shape(&self) -> Shape {
        self.shape.clone()
    }

    fn owners(&self) -> &[Owner] {
        &self.owners
    }

    fn walk(&self) -> Box<dyn Walk + '_> {
        let plan = ProgramPlan::new((self.make)(), Order::Sequential);
        Box::new(Planning { plan, place: Place::default() })
    }
}

struct Planning<P> {
    plan: ProgramPlan<P>,
    place: Place,
}

impl<P: Program> Walk for Planning<P> {
    fn next_piece(&mut self, ands: usize) -> Option<Piece<'_>> {
        while self.plan.window().is_past(self.place) {
            self.plan.next_window()?;
            self.place = Place::default();
        }
        self.plan.window().next_piece(&mut self.place, ands)
    }

    fn outputs(&self) -> &[u32] {
        self.plan.outputs().unwrap_or_default()
    }
}

/// Calls `each` on pieces of about `ands` AND gates of a whole walk; returns the outputs' slots.
pub(super) fn pieces(
    function: &dyn Function,
    ands: usize,
    mut each: impl FnMut(Piece<'_>) -> Result<()>,
) -> Result<Vec<u32>> {
    let mut walk = function.walk();
    while let Some(piece) = walk.next_piece(ands) {
        each(piece)?;
    }
    Ok(walk.outputs().to_vec())
}

/// Slots of the input bits that belong to `owner`, in order.
pub(super) fn slots_of(function: &dyn Function, owner: Owner) -> Vec<u32> {
    crate::parties::slots_of(&function.shape(), function.owners(), owner)
}

/// The function in the clear, on the bits that stand in `inputs` by slot.
pub(super) fn compute(function: &dyn Function, inputs: &[(u32, bool)]) -> BitVec {
    let mut memory = Zeroizing::new(vec![0u8; FIRST_INPUT as usize + inputs.len()]);
    memory[crate::circuit::ONE as usize] = 1;
    for &(slot, bit) in inputs {
        memory[slot as usize] = bit as u8;
    }
    let mut walk = function.walk();
    while let Some(piece) = walk.next_piece(usize::MAX) {
        if memory.len() < piece.slots {
            let mut grown = Zeroizing::new(vec![0u8; piece.slots]);
            grown[..memory.len()].copy_from_slice(&memory);
            memory = grown;
        }
        let mut ops = piece.ops.iter();
        for step in piece.steps {
            for op in ops.by_ref().take(step.xors as usize) {
                memory[op.out as usize] = memory[op.a as usize] ^ memory[op.b as usize];
            }
            for op in ops.by_ref().take(step.ands as usize) {
                memory[op.out as usize] = memory[op.a as usize] & memory[op.b as usize];
            }
        }
    }
    let outputs = walk.outputs();
    let mut out = BitVec::zeros(outputs.len());
    outputs.iter().enumerate().for_each(|(i, &slot)| out.set(i, memory[slot as usize] == 1));
    out
}
