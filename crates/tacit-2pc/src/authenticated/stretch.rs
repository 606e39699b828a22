//! Circuits of any length, cut into stretches: runs of gates that one preparation serves.

use super::PIECE;
use super::buckets::{self, Level};
use crate::Prepared;
use crate::circuit::{Order, Piece, Place, Plan, Program, ProgramPlan, Shape, Window};
use std::ops::Range;

/// Operations of a stretch of a program, at most: its XOR gates are held as well.
const OPERATIONS: usize = 1 << 22;

/// A run of gates, of a plan or of a program's.
pub(super) enum Stretch<'a> {
    /// All of a plan, once for each of so many rows, one after the other in the same slots.
    Rows(&'a Plan, usize),
    /// The pieces of a plan that have these numbers, with so many AND gates.
    Plan(&'a Plan, Range<usize>, usize),
    /// A window.
    Window(&'a Window),
}

/// A piece of a stretch.
pub(super) struct Part<'a> {
    pub(super) piece: Piece<'a>,
    /// The row that begins with it, whose inputs its slots take first.
    pub(super) begins: Option<usize>,
    /// Whether a row ends with it, whose outputs are then in the plan's slots.
    pub(super) ends: bool,
}

/// Parts whose gates' tables go in one message.
pub(super) struct Batch<'a> {
    pub(super) parts: Vec<Part<'a>>,
    /// AND gates of them.
    pub(super) ands: usize,
}

impl<'a> Stretch<'a> {
    /// Its pieces in order.
    pub(super) fn parts(&self) -> Box<dyn Iterator<Item = Part<'a>> + 'a> {
        let alone = |piece| Part { piece, begins: None, ends: false };
        match *self {
            Stretch::Rows(plan, rows) => Box::new((0..rows).flat_map(move |row| of_row(plan, row))),
            Stretch::Plan(plan, ref range, _) => {
                let (skipped, taken) = (range.start, range.end - range.start);
                Box::new(plan.pieces(PIECE).skip(skipped).take(taken).map(alone))
            }
            Stretch::Window(window) => Box::new(window.pieces(PIECE).map(alone)),
        }
    }

    /// Its pieces in order, small ones of one row or of several together.
    pub(super) fn batches(&self) -> Box<dyn Iterator<Item = Batch<'a>> + 'a> {
        let mut parts = self.parts().peekable();
        Box::new(std::iter::from_fn(move || {
            let first = parts.next()?;
            let mut batch = Batch { ands: first.piece.ands, parts: vec![first] };
            while let Some(part) = parts.next_if(|part| batch.ands + part.piece.ands <= PIECE) {
                batch.ands += part.piece.ands;
                batch.parts.push(part);
            }
            Some(batch)
        }))
    }

    /// Its AND gates.
    pub(super) fn ands(&self) -> usize {
        match self {
            Stretch::Rows(plan, rows) => rows * plan.ands() as usize,
            Stretch::Plan(_, _, ands) => *ands,
            Stretch::Window(window) => window.ands() as usize,
        }
    }

    /// Slots that it needs.
    pub(super) fn slots(&self) -> usize {
        match self {
            Stretch::Rows(plan, _) | Stretch::Plan(plan, ..) => plan.slots(),
            Stretch::Window(window) => window.slots(),
        }
    }

    /// The slots of a row's outputs, and the rows that end in this stretch.
    pub(super) fn outputs(&self) -> (&'a [u32], usize) {
        match self {
            Stretch::Rows(plan, rows) => (plan.outputs(), *rows),
            Stretch::Plan(..) | Stretch::Window(_) => (&[], 0),
        }
    }

    /// AND gates of the largest batch, which one step may be.
    pub(super) fn largest_batch(&self) -> usize {
        self.batches().map(|batch| batch.ands).max().unwrap_or(0)
    }
}

/// The parts of one row: one at least, where the plan has no operation as well.
fn of_row(plan: &Plan, row: usize) -> impl Iterator<Item = Part<'_>> {
    let none = Piece { steps: &[], ops: &[], ands: 0, slots: plan.slots() };
    let mut pieces = plan.pieces(PIECE).peekable();
    let mut begins = Some(row);
    std::iter::from_fn(move || {
        let piece = pieces.next().or(begins.map(|_| none))?;
        Some(Part { piece, begins: begins.take(), ends: pieces.peek().is_none() })
    })
}

/// Where stretches come from, the same on both sides.
pub(super) trait Source {
    /// The widths of inputs and outputs.
    fn shape(&self) -> &Shape;
    /// Goes on to the next stretch, of which there is one at least; false behind the last.
    fn advance(&mut self) -> bool;
    /// The stretch that [`advance`](Self::advance) went on to.
    fn stretch(&self) -> Stretch<'_>;
    /// Whether it is the last.
    fn is_last(&self) -> bool;
    /// The slots of the output bits, once the last stretch is reached.
    fn outputs(&self) -> &[u32];
}

/// Those of a circuit that is held.
pub(super) struct OfCircuit<'a> {
    function: &'a Prepared,
    level: Level,
    pieces: Range<usize>,
    ands: usize,
    /// AND gates up to the stretch's end.
    done: u64,
    last: bool,
}

impl<'a> OfCircuit<'a> {
    pub(super) fn new(function: &'a Prepared, level: Level) -> Self {
        OfCircuit { function, level, pieces: 0..0, ands: 0, done: 0, last: false }
    }
}

impl Source for OfCircuit<'_> {
    fn shape(&self) -> &Shape {
        self.function.circuit().shape()
    }

    fn advance(&mut self) -> bool {
        if self.last {
            return false;
        }
        let plan = self.function.plan(1);
        // Each stretch lacks less than a piece of it.
        let most = buckets::WINDOW.min(self.level.window(plan.ands() as usize) + PIECE);
        let mut pieces = plan.pieces(PIECE).skip(self.pieces.end).peekable();
        self.pieces.start = self.pieces.end;
        self.ands = 0;
        let fits = |ands: usize, piece: &Piece<'_>| ands == 0 || ands + piece.ands <= most;
        while let Some(piece) = pieces.next_if(|piece| fits(self.ands, piece)) {
            self.pieces.end += 1;
            self.ands += piece.ands;
        }
        self.done += self.ands as u64;
        self.last = pieces.peek().is_none();
        true
    }

    fn stretch(&self) -> Stretch<'_> {
        Stretch::Plan(self.function.plan(1), self.pieces.clone(), self.ands)
    }

    fn is_last(&self) -> bool {
        self.last
    }

    fn outputs(&self) -> &[u32] {
        self.function.plan(1).outputs()
    }
}

/// Those of a program, planned as they come.
pub(super) struct OfProgram<P> {
    plan: ProgramPlan<P>,
    /// How far the plan's window is taken.
    place: Place,
    stretch: Window,
}

impl<P: Program> OfProgram<P> {
    pub(super) fn new(program: P) -> Self {
        let plan = ProgramPlan::new(program, Order::Layered);
        OfProgram { plan, place: Place::default(), stretch: Window::default() }
    }

    /// What both parties must agree on.
    pub(super) fn identity(&self) -> String {
        self.plan.identity()
    }
}

impl<P: Program> Source for OfProgram<P> {
    fn shape(&self) -> &Shape {
        self.plan.shape()
    }

    fn advance(&mut self) -> bool {
        if self.is_last() {
            return false;
        }
        self.stretch.clear();
        loop {
            let mut behind = self.place;
            match self.plan.window().next_piece(&mut behind, PIECE) {
                Some(piece) => {
                    let ands = self.stretch.ands() as usize;
                    let full = ands + piece.ands > buckets::WINDOW || self.stretch.ops() >= OPERATIONS;
                    if full && self.stretch.ops() > 0 {
                        return true;
                    }
                    self.stretch.append(piece);
                    self.place = behind;
                }
                None if self.plan.outputs().is_some() => return true,
                None => {
                    self.place = Place::default();
                    self.plan.next_window();
                }
            }
        }
    }

    fn stretch(&self) -> Stretch<'_> {
        Stretch::Window(&self.stretch)
    }

    fn is_last(&self) -> bool {
        self.plan.outputs().is_some() && self.plan.window().is_past(self.place)
    }

    fn outputs(&self) -> &[u32] {
        self.plan.outputs().unwrap_or_default()
    }
}
