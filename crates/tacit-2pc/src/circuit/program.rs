//! Circuits too long to hold: programs that emit their gates step by step.

use super::component::Call;
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
    /// Intermediate values belong in [`Builder::region`]s, and values that the program replaces are given
    /// back by [`Builder::discard`], so that wires are reused.
    fn step(&mut self, builder: &mut Builder, inputs: &[Uint]) -> Option<Vec<Uint>>;
}

/// AND gates of a program, which is run for that.
pub fn count_ands(mut program: impl Program) -> u64 {
    let mut builder = Builder::new();
    let inputs: Vec<Uint> = program.shape().inputs.iter().map(|&width| builder.input(width)).collect();
    let (mut gates, mut ands) = (Vec::new(), 0);
    loop {
        let ended = program.step(&mut builder, &inputs).is_some();
        builder.drain(&mut gates);
        ands += gates.drain(..).filter(|gate| gate.is_and()).count() as u64;
        if ended {
            return ands;
        }
    }
}

/// A program that repeats one body on a state: `state = body(i, state, inputs)`, `count` times.
pub struct Repeat<F> {
    identity: String,
    shape: Shape,
    count: u64,
    done: u64,
    state: Option<Vec<Uint>>,
    body: F,
    /// Whether the body makes the same gates every time.
    alike: bool,
}

impl<F: FnMut(&mut Builder, u64, &[Uint], &[Uint]) -> Vec<Uint>> Repeat<F> {
    /// Repeats `body(builder, iteration, state, inputs)` from a state that equals the inputs; the outputs are
    /// the last state, whose widths are `outputs`. Everything in a body's result must be made by that body or
    /// be an input.
    pub fn new(identity: impl Into<String>, shape: Shape, count: u64, body: F) -> Self {
        let identity = format!("{} repeated {count} times", identity.into());
        Repeat { identity, shape, count, done: 0, state: None, body, alike: false }
    }
}

/// Repeats `body(builder, state, inputs)` as [`Repeat::new`] does, where every iteration computes the same
/// function of state and inputs: the body is run and planned once for all, which makes a stream several times
/// as fast. It must draw on nothing that changes.
pub fn iterate(
    identity: impl Into<String>,
    shape: Shape,
    count: u64,
    body: impl Fn(&mut Builder, &[Uint], &[Uint]) -> Vec<Uint>,
) -> impl Program {
    let any = move |b: &mut Builder, _: u64, state: &[Uint], inputs: &[Uint]| body(b, state, inputs);
    let identity = format!("{} iterated {count} times", identity.into());
    Repeat { alike: true, identity, ..Repeat::new("", shape, count, any) }
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
        let (body, done) = (&mut self.body, self.done);
        let next = builder.region(|b| {
            if !self.alike {
                return body(b, done, &state, inputs);
            }
            b.component("iteration", &[&state, inputs].concat(), |b, all| {
                let (state, inputs) = all.split_at(state.len());
                body(b, done, state, inputs)
            })
        });
        builder.discard_except(state, &next);
        self.state = Some(next);
        self.done += 1;
        None
    }
}

/// Gates gathered before a window is planned.
const WINDOW: usize = 1 << 16;

/// A window is handed out once it has so many operations: few enough to stay in the nearest caches where
/// plans come ready-made.
const OPS: usize = 1 << 14;

/// A program's plan, made window by window as it is executed.
pub struct ProgramPlan<P> {
    program: P,
    builder: Builder,
    inputs: Vec<Uint>,
    planner: Planner,
    gates: Vec<Gate>,
    /// How many of `gates` are planned.
    planned: usize,
    /// Components among the gates, and how many of them are planned.
    calls: Vec<Call>,
    placed: usize,
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
            calls: Vec::new(),
            placed: 0,
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

    /// Runs as many of the program's steps as make at least `WINDOW` gates, of which `take` takes what it
    /// wants.
    fn next_steps(&mut self, mut take: impl FnMut(&mut Builder, &mut Vec<Gate>, &mut Vec<Call>)) {
        (self.planned, self.placed) = (0, 0);
        self.gates.clear();
        self.calls.clear();
        let before = self.builder.gates_made();
        while self.builder.gates_made() - before < WINDOW as u64 && self.ending.is_none() {
            if let Some(outputs) = self.program.step(&mut self.builder, &self.inputs) {
                self.ending = Some(self.builder.output_wires(&outputs));
            }
            take(&mut self.builder, &mut self.gates, &mut self.calls);
        }
        self.made = self.builder.gates_made();
    }

    /// Plans and returns the next window; `None` after the last.
    pub fn next_window(&mut self) -> Option<&Window> {
        if self.outputs.is_some() {
            return None;
        }
        self.window.clear();
        while self.window.ops() < OPS && self.outputs.is_none() {
            self.plan_some();
        }
        self.ands += self.window.ands();
        Some(&self.window)
    }

    /// Plans the next component, or a run of gates up to it.
    fn plan_some(&mut self) {
        if self.planned == self.gates.len() && self.placed == self.calls.len() {
            self.next_steps(Builder::drain_parts);
        }
        let call = self.calls.get(self.placed);
        if let Some(call) = call.filter(|call| call.after == self.planned) {
            let component = call.component.planned(self.planner.order());
            self.planner.place(component, &call.arguments, &call.outputs, &mut self.window);
            self.placed += 1;
        } else {
            let run = call.map_or(self.gates.len(), |call| call.after);
            let end = run.min(self.planned + WINDOW);
            let ending = self.ending.as_deref().filter(|_| call.is_none() && end == run);
            self.planner.plan(&self.gates[self.planned..end], ending, &mut self.window);
            self.planned = end;
        }
        if self.planned == self.gates.len() && self.placed == self.calls.len() {
            // Output wires are constants, inputs or gates' results: all have slots.
            let slot = |&wire: &Wire| self.planner.slot(wire).unwrap_or(super::ZERO);
            self.outputs = self.ending.as_ref().map(|wires| wires.iter().map(slot).collect());
        }
    }

    /// The window that was returned last; empty before the first.
    pub fn window(&self) -> &Window {
        &self.window
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

    /// Runs the program in the clear on `64·W` instances; `inputs[bit][word]`, as
    /// [`evaluate_words`](super::evaluate_words).
    pub fn evaluate_words<const W: usize>(mut self, inputs: &[[u64; W]]) -> Vec<[u64; W]> {
        let mut memory = super::PlainMemory::new(inputs);
        while self.ending.is_none() {
            self.next_steps(|builder, gates, _| builder.drain(gates));
            memory.run(&self.gates);
        }
        memory.read(&self.ending.unwrap_or_default())
    }
}
