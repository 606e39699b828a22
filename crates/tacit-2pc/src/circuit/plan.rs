//! Plans: a circuit ordered for fast execution, with its wires put into few slots.
//!
//! A [`Planner`] takes a stream of gates window by window and renames wires as a processor renames registers:
//! each value gets a slot when it is made and gives it back after its last use. Within a window gates are
//! ordered by AND depth ([`Order::Layered`]), so that all AND gates of a step are independent and fill vector
//! registers; or left in place ([`Order::Sequential`]), which keeps fewer values alive and suits many copies
//! executed side by side. An inverter becomes an XOR with the constant one, which garbling gives for free.

use super::{Circuit, FIRST_INPUT, Gate, ONE, Wire, ZERO};

pub use tacit_crypto::simd::halfgates::{Op, Step};

/// Part of a plan: operations over slots, step by step.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Window {
    steps: Vec<Step>,
    ops: Vec<Op>,
    slots: u32,
    ands: u64,
}

/// A run of whole steps.
#[derive(Clone, Copy, Debug)]
pub struct Piece<'a> {
    /// The steps.
    pub steps: &'a [Step],
    /// Their operations, one step after the other.
    pub ops: &'a [Op],
    /// AND gates among them.
    pub ands: usize,
    /// Slots needed.
    pub slots: usize,
}

impl<'a> Piece<'a> {
    /// Its steps one by one, each a piece of its own.
    pub(crate) fn one_by_one(self) -> impl Iterator<Item = Piece<'a>> {
        let (slots, mut ops) = (self.slots, self.ops);
        self.steps.iter().map(move |step| {
            let (own, rest) = ops.split_at((step.xors + step.ands) as usize);
            ops = rest;
            Piece { steps: core::slice::from_ref(step), ops: own, ands: step.ands as usize, slots }
        })
    }
}

impl Window {
    /// Drops what it holds.
    pub fn clear(&mut self) {
        self.steps.clear();
        self.ops.clear();
        self.ands = 0;
    }

    /// Puts a piece of a plan behind what it holds, which is of the same plan and right before.
    pub(crate) fn append(&mut self, piece: Piece<'_>) {
        self.steps.extend_from_slice(piece.steps);
        self.ops.extend_from_slice(piece.ops);
        self.slots = self.slots.max(piece.slots as u32);
        self.ands += piece.ands as u64;
    }

    /// Operations in this window.
    pub fn ops(&self) -> usize {
        self.ops.len()
    }

    /// Slots that the operations so far use.
    pub fn slots(&self) -> usize {
        self.slots as usize
    }

    /// AND gates in this window.
    pub fn ands(&self) -> u64 {
        self.ands
    }

    /// The whole window as one piece.
    pub fn whole(&self) -> Piece<'_> {
        Piece { steps: &self.steps, ops: &self.ops, ands: self.ands as usize, slots: self.slots() }
    }

    /// The window cut between steps into pieces of about `ands` AND gates (more where one step has more).
    pub fn pieces(&self, ands: usize) -> impl Iterator<Item = Piece<'_>> {
        let mut place = Place::default();
        core::iter::from_fn(move || self.next_piece(&mut place, ands))
    }

    /// Whether no piece is left from `place` on.
    pub(crate) fn is_past(&self, place: Place) -> bool {
        place.step >= self.steps.len()
    }

    /// The next of [`pieces`](Self::pieces), from `place` on, which moves past it; `None` at the window's
    /// end.
    pub(crate) fn next_piece(&self, place: &mut Place, ands: usize) -> Option<Piece<'_>> {
        let (steps, ops) = (self.steps.get(place.step..)?, self.ops.get(place.op..)?);
        if steps.is_empty() {
            return None;
        }
        let (mut taken, mut taken_ops, mut taken_ands) = (0, 0, 0);
        for step in steps {
            if taken > 0 && taken_ands + step.ands as usize > ands {
                break;
            }
            taken += 1;
            taken_ops += (step.xors + step.ands) as usize;
            taken_ands += step.ands as usize;
        }
        (place.step, place.op) = (place.step + taken, place.op + taken_ops);
        let (steps, ops) = (&steps[..taken], &ops[..taken_ops]);
        Some(Piece { steps, ops, ands: taken_ands, slots: self.slots as usize })
    }
}

/// A place between two steps of a window; the default is its beginning.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Place {
    step: usize,
    op: usize,
}

/// How gates are ordered within a window.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Order {
    /// By AND depth: the AND gates of equal depth stand together.
    Layered,
    /// As they come.
    Sequential,
}

const NONE: u32 = u32::MAX;

#[derive(Clone, Copy)]
struct Value {
    level: u32,
    /// XORs in a row that lead to it within its level.
    depth: u32,
    slot: u32,
    last_use: u32,
    kept: bool,
}

#[derive(Clone, Copy)]
struct Node {
    and: bool,
    a: u32,
    b: u32,
    out: u32,
}

/// Counting sort.
fn stable_sort(items: &mut Vec<u32>, key: impl Fn(u32) -> usize) {
    let keys = items.iter().map(|&n| key(n)).max().map_or(0, |most| most + 1);
    let mut starts = vec![0u32; keys + 1];
    items.iter().for_each(|&n| starts[key(n) + 1] += 1);
    for i in 1..starts.len() {
        starts[i] += starts[i - 1];
    }
    let mut sorted = vec![0; items.len()];
    for &n in items.iter() {
        let at = &mut starts[key(n)];
        sorted[*at as usize] = n;
        *at += 1;
    }
    *items = sorted;
}

/// Orders a stream of gates and puts its wires into slots, window by window.
pub struct Planner {
    order: Order,
    /// Slot that holds each wire between windows, or `NONE`.
    place: Vec<u32>,
    /// The wire's value in the present window, valid where `stamp` is the window's number.
    current: Vec<u32>,
    stamp: Vec<u32>,
    window: u32,
    slots: u32,
    free: Vec<u32>,
    values: Vec<Value>,
    nodes: Vec<Node>,
    sorted: Vec<u32>,
    /// Where the slots of a component are.
    places: Vec<u32>,
}

impl Planner {
    /// A planner for streams with `input_bits` inputs, which start in the slots of their wires' numbers.
    pub fn new(input_bits: usize, order: Order) -> Self {
        let first = FIRST_INPUT + input_bits as u32;
        Planner {
            order,
            place: (0..first).collect(),
            current: vec![0; first as usize],
            stamp: vec![0; first as usize],
            window: 0,
            slots: first,
            free: Vec::new(),
            values: Vec::new(),
            nodes: Vec::new(),
            sorted: Vec::new(),
            places: Vec::new(),
        }
    }

    /// The order of the plans it makes.
    pub fn order(&self) -> Order {
        self.order
    }

    /// The slot that holds `wire` now, between windows.
    pub fn slot(&self, wire: Wire) -> Option<u32> {
        self.place.get(wire as usize).copied().filter(|&slot| slot != NONE)
    }

    /// Plans the next gates, behind what `out` holds. With `keep`, the stream ends here and only
    /// these wires are wanted.
    ///
    /// Panics if a gate reads a wire that was never written: streams come from this program, not from a peer.
    pub fn plan(&mut self, gates: &[Gate], keep: Option<&[Wire]>, out: &mut Window) {
        self.window += 1;
        self.values.clear();
        self.nodes.clear();
        for &gate in gates {
            self.rename(gate);
        }
        self.mark_kept(gates, keep);
        match self.order {
            Order::Layered => self.sort_by_level(),
            Order::Sequential => {
                self.sorted.clear();
                self.sorted.extend(0..self.nodes.len() as u32);
            }
        }
        for (position, &n) in self.sorted.iter().enumerate() {
            let node = self.nodes[n as usize];
            self.values[node.a as usize].last_use = position as u32;
            self.values[node.b as usize].last_use = position as u32;
        }
        // Values carried in that nothing reads and nobody keeps were overwritten: their slots are free at
        // once.
        for v in 0..self.values.len() {
            let value = self.values[v];
            if value.slot != NONE && value.last_use == NONE && !value.kept {
                self.release(v as u32);
            }
        }
        self.emit(out);
        for &gate in gates {
            let wire = gate.out() as usize;
            self.place[wire] = self.values[self.current[wire] as usize].slot;
        }
        out.slots = self.slots;
    }

    /// Puts a planned component behind what `out` holds: from the slots of `arguments` to slots for the wires
    /// `outputs`, which no gate before needs any more.
    ///
    /// Panics if an argument was never written.
    pub(super) fn place(
        &mut self,
        component: &Planned,
        arguments: &[Wire],
        outputs: &[Wire],
        out: &mut Window,
    ) {
        for &wire in outputs {
            self.reach(wire);
            let old = std::mem::replace(&mut self.place[wire as usize], NONE);
            if old != NONE {
                self.free.push(old);
            }
        }
        let mut places = std::mem::take(&mut self.places);
        places.clear();
        places.extend([ZERO, ONE]);
        places.extend(arguments.iter().map(|&wire| self.place[wire as usize]));
        assert!(places.iter().all(|&slot| slot != NONE), "a component reads a wire that was never written");
        while places.len() < component.window.slots() {
            places.push(self.new_slot());
        }
        let of = |slot: u32| places[slot as usize];
        let ops = component.window.ops.iter();
        out.ops.extend(ops.map(|op| Op { a: of(op.a), b: of(op.b), out: of(op.out) }));
        out.steps.extend_from_slice(&component.window.steps);
        out.ands += component.window.ands;
        out.slots = self.slots;
        for (&wire, &slot) in outputs.iter().zip(&component.outputs) {
            self.place[wire as usize] = of(slot);
        }
        // Backwards, so that the next one like this gets the same.
        self.free.extend(component.temporary.iter().rev().map(|&slot| of(slot)));
        self.places = places;
    }

    /// Makes room for what is known of `wire`.
    fn reach(&mut self, wire: Wire) {
        let wires = wire as usize + 1;
        if wires > self.place.len() {
            self.place.resize(wires, NONE);
            self.current.resize(wires, 0);
            self.stamp.resize(wires, 0);
        }
    }

    fn new_slot(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.slots += 1;
            self.slots - 1
        })
    }

    fn value_of(&mut self, wire: Wire) -> u32 {
        let w = wire as usize;
        if self.stamp.get(w) != Some(&self.window) {
            let slot = self.place.get(w).copied().unwrap_or(NONE);
            assert!(slot != NONE, "a gate reads a wire that was never written");
            self.current[w] = self.values.len() as u32;
            self.stamp[w] = self.window;
            self.values.push(Value { level: 0, depth: 0, slot, last_use: NONE, kept: true });
        }
        self.current[w]
    }

    fn rename(&mut self, gate: Gate) {
        let (a, b) = gate.operands();
        let (a, b) = (self.value_of(a), self.value_of(b));
        let and = gate.is_and();
        let (level, depth) = [a, b]
            .map(|v| (self.values[v as usize].level, self.values[v as usize].depth))
            .into_iter()
            .max()
            .unwrap_or_default();
        let (level, depth) = if and { (level + 1, 0) } else { (level, depth + 1) };
        let wire = gate.out() as usize;
        self.reach(gate.out());
        if self.stamp[wire] == self.window || self.place[wire] != NONE {
            let overwritten = self.value_of(wire as u32);
            self.values[overwritten as usize].kept = false;
        }
        let out = self.values.len() as u32;
        self.values.push(Value { level, depth, slot: NONE, last_use: NONE, kept: true });
        self.current[wire] = out;
        self.stamp[wire] = self.window;
        self.nodes.push(Node { and, a, b, out });
    }

    fn mark_kept(&mut self, gates: &[Gate], keep: Option<&[Wire]>) {
        let Some(keep) = keep else { return };
        for gate in gates {
            let (a, b) = gate.operands();
            for wire in [a, b, gate.out()] {
                let value = self.current[wire as usize];
                self.values[value as usize].kept = false;
            }
        }
        for &wire in keep {
            let value = self.value_of(wire);
            self.values[value as usize].kept = true;
        }
    }

    /// Sorts by (level, XOR before AND, depth); an AND of level l reads values of level l−1. XORs of equal
    /// depth stand together so that few wait for the one just before.
    fn sort_by_level(&mut self) {
        let Planner { values, nodes, sorted, .. } = self;
        let made = |node: &Node| values[node.out as usize];
        sorted.clear();
        sorted.extend(0..nodes.len() as u32);
        stable_sort(sorted, |n| made(&nodes[n as usize]).depth as usize);
        stable_sort(sorted, |n| {
            let level = 2 * made(&nodes[n as usize]).level as usize;
            if nodes[n as usize].and { level - 1 } else { level }
        });
    }

    fn emit(&mut self, out: &mut Window) {
        let sorted = core::mem::take(&mut self.sorted);
        let mut position = 0;
        while position < sorted.len() {
            let mut step = Step { xors: 0, ands: 0 };
            while let Some(&n) = sorted.get(position)
                && !self.nodes[n as usize].and
            {
                let op = self.place_op(n);
                out.ops.push(op);
                self.release_dead(n, position);
                step.xors += 1;
                position += 1;
            }
            let start = position;
            while let Some(&n) = sorted.get(position)
                && self.nodes[n as usize].and
                && !self.reads_from(n, &sorted[start..position])
            {
                let op = self.place_op(n);
                out.ops.push(op);
                step.ands += 1;
                position += 1;
            }
            for (offset, &n) in sorted[start..position].iter().enumerate() {
                self.release_dead(n, start + offset);
            }
            out.ands += u64::from(step.ands);
            out.steps.push(step);
        }
        self.sorted = sorted;
    }

    /// Whether node `n` reads the result of one of the nodes of `batch`; layers are independent by
    /// construction.
    fn reads_from(&self, n: u32, batch: &[u32]) -> bool {
        let node = self.nodes[n as usize];
        match (self.order, batch.first()) {
            (Order::Layered, Some(&first)) => {
                self.values[self.nodes[first as usize].out as usize].level
                    != self.values[node.out as usize].level
            }
            (Order::Sequential, Some(&first)) => {
                // Results are numbered in stream order, so a value at or past the batch's first result is its
                // own.
                let from = self.nodes[first as usize].out;
                node.a >= from || node.b >= from
            }
            (_, None) => false,
        }
    }

    fn place_op(&mut self, n: u32) -> Op {
        let node = self.nodes[n as usize];
        let slot = self.new_slot();
        self.values[node.out as usize].slot = slot;
        Op { a: self.values[node.a as usize].slot, b: self.values[node.b as usize].slot, out: slot }
    }

    fn release_dead(&mut self, n: u32, position: usize) {
        let node = self.nodes[n as usize];
        for v in [Some(node.a), (node.b != node.a).then_some(node.b)].into_iter().flatten() {
            let value = self.values[v as usize];
            if value.last_use == position as u32 && !value.kept {
                self.release(v);
            }
        }
        let made = self.values[node.out as usize];
        if made.last_use == NONE && !made.kept {
            self.release(node.out);
        }
    }

    fn release(&mut self, value: u32) {
        let slot = self.values[value as usize].slot;
        if slot != ZERO && slot != ONE {
            self.free.push(slot);
        }
    }
}

/// Gates a window of a circuit's plan may hold.
const WINDOW: usize = 1 << 18;

/// A circuit's plan: computed once, executed any number of times.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    windows: Vec<Window>,
    inputs: usize,
    outputs: Vec<u32>,
    slots: usize,
    ands: u64,
}

impl Plan {
    /// Plans `circuit`. Input bit `i` is in slot `FIRST_INPUT + i` at the start.
    pub fn new(circuit: &Circuit, order: Order) -> Plan {
        let input_bits = circuit.shape().input_bits();
        let mut planner = Planner::new(input_bits, order);
        let (gates, outputs) = if circuit.gates().len() <= WINDOW {
            (circuit.gates().to_vec(), circuit.outputs().to_vec())
        } else {
            circuit.stream()
        };
        let mut windows = Vec::new();
        let mut chunks = gates.chunks(WINDOW).peekable();
        while let Some(chunk) = chunks.next() {
            let mut window = Window::default();
            planner.plan(chunk, chunks.peek().is_none().then_some(&outputs), &mut window);
            windows.push(window);
        }
        let slots =
            windows.iter().map(Window::slots).max().unwrap_or(0).max(FIRST_INPUT as usize + input_bits);
        let ands = windows.iter().map(Window::ands).sum();
        // Every output wire is a constant, an input or a gate's: all have slots.
        let outputs = outputs.iter().map(|&w| planner.slot(w).unwrap_or(ZERO)).collect();
        Plan { windows, inputs: input_bits, outputs, slots, ands }
    }

    /// The windows in order.
    pub fn windows(&self) -> &[Window] {
        &self.windows
    }

    /// Bits of all inputs.
    pub fn input_bits(&self) -> usize {
        self.inputs
    }

    /// The slots of the output bits at the end.
    pub fn outputs(&self) -> &[u32] {
        &self.outputs
    }

    /// Slots needed.
    pub fn slots(&self) -> usize {
        self.slots
    }

    /// AND gates.
    pub fn ands(&self) -> u64 {
        self.ands
    }

    /// All pieces of about `ands` AND gates, in order.
    pub fn pieces(&self, ands: usize) -> impl Iterator<Item = Piece<'_>> {
        self.windows.iter().flat_map(move |window| window.pieces(ands))
    }
}

/// A component in slots of its own: constants, arguments, then the others.
#[derive(Debug)]
pub(super) struct Planned {
    pub(super) window: Window,
    /// The slots of the outputs.
    pub(super) outputs: Vec<u32>,
    /// The slots that are free again at the end.
    pub(super) temporary: Vec<u32>,
}
