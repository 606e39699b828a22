//! Circuits too long to hold: programs that emit their gates step by step.

use super::{Builder, Gate, Order, Planner, Shape, Uint, Window, Wire};

/// A function whose circuit is made on the fly, the same on both sides, a bounded number of gates a step.
///
/// ```
/// use tacit_2pc::circuit::{Builder, Program, Shape, Uint};
/// /// x ↦ x·3^steps modulo 2^32.
/// struct Triple { left: u32, value: Option<Uint> }
/// impl Program for Triple {
///     fn identity(&self) -> String { format!("triple {}", self.left) }
///     fn shape(&self) -> Shape { Shape { inputs: vec![32], outputs: vec![32] } }
///     fn step(&mut self, b: &mut Builder, inputs: &[Uint]) -> Option<Vec<Uint>> {
///         let x = self.value.take().unwrap_or_else(|| inputs[0].clone());
///         if self.left == 0 {
///             return Some(vec![x]);
///         }
///         self.left -= 1;
///         let twice = b.shl(&x, 1);
///         let tripled = b.region(|b| b.add(&x, &twice));
///         b.discard(x);
///         self.value = Some(tripled);
///         None
///     }
/// }
/// ```
pub trait Program {
    /// The function's name with all its parameters: what the parties compare before they start.
    fn identity(&self) -> String;
    /// The widths of inputs and outputs.
    fn shape(&self) -> Shape;
    /// Emits the next gates into `builder`; returns the outputs once there is nothing more to do.
    ///
    /// Intermediate values belong in [`Builder::region`]s, and values that the program replaces are given back by
    /// [`Builder::discard`], so that wires are reused.
    fn step(&mut self, builder: &mut Builder, inputs: &[Uint]) -> Option<Vec<Uint>>;
}

/// A program that repeats one body on a state: `state = body(i, state, inputs)`, `count` times.
pub struct Repeat<F> {
    identity: String,
    shape: Shape,
    count: u64,
    done: u64,
    state: Option<Vec<Uint>>,
    body: F,
}

impl<F: FnMut(&mut Builder, u64, &[Uint], &[Uint]) -> Vec<Uint>> Repeat<F> {
    /// Repeats `body(builder, iteration, state, inputs)` from a state that equals the inputs; the outputs are the
    /// last state, whose widths are `outputs`. Everything in a body's result must be made by that body or be an input.
    pub fn new(identity: impl Into<String>, shape: Shape, count: u64, body: F) -> Self {
        let identity = format!("{} repeated {count} times", identity.into());
        Repeat { identity, shape, count, done: 0, state: None, body }
    }
}

impl<F: FnMut(&mut Builder, u64, &[Uint], &[Uint]) -> Vec<Uint>> Program for Repeat<F> {
    fn identity(&self) -> String {
        self.identity.clone()
    }

    fn shape(&self) -> Shape {
        self.shape.clone()
    }

    fn step(&mut self, builder: &mut Builder, inputs: &[Uint]) -> Option<Vec<Uint>> {
        let state = self.state.take().unwrap_or_else(|| inputs.to_vec());
        if self.done == self.count {
            return Some(state);
        }
        let next = builder.region(|b| (self.body)(b, self.done, &state, inputs));
        builder.discard_except(state, &next);
        self.state = Some(next);
        self.done += 1;
        None
    }
}

/// Gates gathered before a window is planned.
const WINDOW: usize = 1 << 16;

/// A program's plan, made window by window as it is executed.
pub struct ProgramPlan<P> {
    program: P,
    builder: Builder,
    inputs: Vec<Uint>,
    planner: Planner,
    gates: Vec<Gate>,
    /// How many of `gates` are planned.
    planned: usize,
    /// The outputs' wires, once the program ended.
    ending: Option<Vec<Wire>>,
    shape: Shape,
    window: Window,
    outputs: Option<Vec<u32>>,
    made: u64,
    ands: u64,
}

impl<P: Program> ProgramPlan<P> {
    /// Starts `program`.
    pub fn new(program: P, order: Order) -> Self {
        let shape = program.shape();
        let mut builder = Builder::new();
        let inputs = shape.inputs.iter().map(|&width| builder.input(width)).collect();
        ProgramPlan {
            planner: Planner::new(shape.input_bits(), order),
            program,
            builder,
            inputs,
            gates: Vec::new(),
            planned: 0,
            ending: None,
            shape,
            window: Window::default(),
            outputs: None,
            made: 0,
            ands: 0,
        }
    }

    /// The widths of inputs and outputs.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Makes the next gates, as many as the program's steps give at least `WINDOW` of; at the end returns the outputs' wires.
    fn next_gates(&mut self) -> Option<Vec<Wire>> {
        self.gates.clear();
        self.planned = 0;
        let mut ending = None;
        while self.gates.len() < WINDOW && ending.is_none() {
            if let Some(outputs) = self.program.step(&mut self.builder, &self.inputs) {
                ending = Some(self.builder.output_wires(&outputs));
            }
            self.builder.drain(&mut self.gates);
        }
        self.made += self.gates.len() as u64;
        ending
    }

    /// Plans and returns the next window, of at most `WINDOW` gates; `None` after the last.
    pub fn next_window(&mut self) -> Option<&Window> {
        if self.outputs.is_some() {
            return None;
        }
        if self.planned == self.gates.len() {
            self.ending = self.next_gates();
        }
        let end = self.gates.len().min(self.planned + WINDOW);
        let ending = self.ending.as_deref().filter(|_| end == self.gates.len());
        self.planner.plan(&self.gates[self.planned..end], ending, &mut self.window);
        self.planned = end;
        self.ands += self.window.ands();
        self.outputs = ending.map(|wires| {
            // Output wires are constants, inputs or gates' results: all have slots.
            wires.iter().map(|&w| self.planner.slot(w).unwrap_or(super::ZERO)).collect()
        });
        Some(&self.window)
    }

    /// The slots of the output bits, once the last window was returned.
    pub fn outputs(&self) -> Option<&[u32]> {
        self.outputs.as_deref()
    }

    /// Gates made so far.
    pub fn gates(&self) -> u64 {
        self.made
    }

    /// AND gates planned so far.
    pub fn ands(&self) -> u64 {
        self.ands
    }

    /// What both parties must agree on: the program's identity and shape.
    pub fn identity(&self) -> String {
        self.program.identity()
    }

    /// Runs the program in the clear on `64·W` instances; `inputs[bit][word]`, as [`evaluate_words`](super::evaluate_words).
    pub fn evaluate_words<const W: usize>(mut self, inputs: &[[u64; W]]) -> Vec<[u64; W]> {
        let mut memory = super::PlainMemory::new(inputs);
        loop {
            let ending = self.next_gates();
            memory.run(&self.gates);
            if let Some(wires) = ending {
                return memory.read(&wires);
            }
        }
    }
}
