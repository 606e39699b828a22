//! [`Builder`]: circuits written in Rust, with constants folded and equal gates shared.

use super::component::{Call, Component, Pattern};
use super::{Bit, Circuit, FIRST_INPUT, Form, Gate, InvalidCircuit, Shape, Uint, Wire, Wires, ZERO};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::sync::Arc;

/// A gate's kind and operands, packed: two wires with their generations.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Key {
    wires: u64,
    generations: u64,
}

impl Key {
    /// The operands are plain, so the lowest bit of a literal is free for the kind.
    fn new(and: bool, a: Bit, b: Bit) -> Key {
        Key {
            wires: u64::from(a.literal | and as u32) << 32 | u64::from(b.literal),
            generations: u64::from(a.generation) << 32 | u64::from(b.generation),
        }
    }
}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.wires ^ self.generations.rotate_left(29));
    }
}

/// Multiplies and folds: wires are no one's chosen input, and this is the builder's inner loop.
#[derive(Default)]
struct FoldHasher(u64);

impl Hasher for FoldHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&b| self.write_u64(b.into()));
    }

    fn write_u64(&mut self, x: u64) {
        let product = u128::from(self.0 ^ x).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
        self.0 = (product >> 64) as u64 ^ product as u64;
    }
}

/// Past so many remembered gates the memory of equal gates is cleared, so that a stream's builder stays
/// small.
const REMEMBERED: usize = 1 << 18;
/// The same inside regions: few enough to stay in the nearest caches.
const REMEMBERED_IN_REGIONS: usize = 1 << 12;
/// Gates and argument bits of all components remembered, about; larger ones are streamed.
const REMEMBERED_IN_COMPONENTS: usize = 1 << 20;

/// Builds circuits gate by gate.
///
/// Constants are folded, equal gates are shared, and negations cost nothing. [`region`](Builder::region)
/// gives wires back, so that a stream of any length needs wires only for what is alive.
pub struct Builder {
    inputs: Vec<u32>,
    first_gate_wire: Option<u32>,
    gates: Vec<Gate>,
    emitted: u64,
    generations: Vec<u32>,
    free: Vec<Wire>,
    /// Wires made inside open regions, with their generations.
    allocated: Vec<(Wire, u32)>,
    depth: usize,
    reused: bool,
    memory: HashMap<Key, Bit, BuildHasherDefault<FoldHasher>>,
    /// Whether every gate is kept, regions or not.
    whole: bool,
    form: Form,
    /// Components by pattern; none where one would be too large.
    components: HashMap<Pattern, Option<Arc<Component>>>,
    component_sizes: usize,
    calls: Vec<Call>,
    /// Wires for the values inside of components, where those become gates.
    scratch: Vec<Wire>,
}

impl Default for Builder {
    fn default() -> Self {
        Self::new()
    }
}

impl Builder {
    /// An empty builder.
    pub fn new() -> Self {
        Builder {
            inputs: Vec::new(),
            first_gate_wire: None,
            gates: Vec::new(),
            emitted: 0,
            generations: vec![0; FIRST_INPUT as usize],
            free: Vec::new(),
            allocated: Vec::new(),
            depth: 0,
            reused: false,
            memory: HashMap::default(),
            whole: false,
            form: Form::Small,
            components: HashMap::new(),
            component_sizes: 0,
            calls: Vec::new(),
            scratch: Vec::new(),
        }
    }

    /// An empty builder of circuits of this form.
    pub fn with_form(form: Form) -> Self {
        Builder { form, ..Self::new() }
    }

    /// The form of its circuits.
    pub fn form(&self) -> Form {
        self.form
    }

    /// A builder that keeps every gate: regions give nothing back.
    pub(super) fn whole(form: Form) -> Self {
        Builder { whole: true, ..Self::with_form(form) }
    }

    /// The bit of a literal of such a builder.
    pub(super) fn bit_of(&self, literal: u32) -> Bit {
        Bit { literal, generation: 0 }
    }

    /// The gates of such a builder.
    pub(super) fn into_gates(self) -> Vec<Gate> {
        self.gates
    }

    /// The next input, of `width` bits. Panics after the first gate: inputs come first.
    pub fn input(&mut self, width: u32) -> Uint {
        assert!(self.first_gate_wire.is_none(), "inputs are declared before the first gate");
        self.inputs.push(width);
        let start = self.generations.len() as u32;
        self.generations.resize(self.generations.len() + width as usize, 0);
        Uint::from_bits((start..start + width).map(|w| Bit { literal: w << 1, generation: 0 }).collect())
    }

    /// How many gates were made so far.
    pub fn gates_made(&self) -> u64 {
        self.emitted
    }

    fn allocate(&mut self) -> Wire {
        self.first_gate_wire.get_or_insert(self.generations.len() as u32);
        let wire = self.free.pop().unwrap_or_else(|| {
            let wire = self.generations.len();
            assert!(wire < 1 << 31, "more than 2^31 live wires");
            self.generations.push(0);
            wire as u32
        });
        if self.depth > 0 {
            self.allocated.push((wire, self.generations[wire as usize]));
        }
        wire
    }

    fn gate(&mut self, and: bool, a: Bit, b: Bit) -> Bit {
        let (a, b) = if (a.literal, a.generation) <= (b.literal, b.generation) { (a, b) } else { (b, a) };
        self.check_alive(a);
        self.check_alive(b);
        let key = Key::new(and, a, b);
        if let Some(&known) = self.memory.get(&key)
            && self.generations[known.wire() as usize] == known.generation
        {
            return known;
        }
        let out = self.allocate();
        let (x, y) = (a.wire(), b.wire());
        self.gates.push(if and { Gate::And { a: x, b: y, out } } else { Gate::Xor { a: x, b: y, out } });
        self.emitted += 1;
        let bit = Bit { literal: out << 1, generation: self.generations[out as usize] };
        let limit = if self.depth > 0 { REMEMBERED_IN_REGIONS } else { REMEMBERED };
        if self.memory.len() >= limit {
            self.memory.clear();
        }
        self.memory.insert(key, bit);
        bit
    }

    fn check_alive(&self, bit: Bit) {
        assert!(
            self.generations.get(bit.wire() as usize) == Some(&bit.generation),
            "a bit was used after its region ended"
        );
    }

    /// `a ⊕ b`: free in garbling.
    pub fn xor(&mut self, a: Bit, b: Bit) -> Bit {
        let negate = a.negated() ^ b.negated();
        let (p, q) = (a.plain(), b.plain());
        if p == q {
            return Bit::constant(negate);
        }
        if p == Bit::ZERO {
            return q.negate_if(negate);
        }
        if q == Bit::ZERO {
            return p.negate_if(negate);
        }
        self.gate(false, p, q).negate_if(negate)
    }

    /// `a ∧ b`: one AND gate, shared between all negations of its operands.
    pub fn and(&mut self, a: Bit, b: Bit) -> Bit {
        let (p, q) = (a.plain(), b.plain());
        if p == q {
            return if a.negated() == b.negated() { a } else { Bit::ZERO };
        }
        for (known, other) in [(a, b), (b, a)] {
            match known.known() {
                Some(true) => return other,
                Some(false) => return Bit::ZERO,
                None => {}
            }
        }
        // (p ⊕ s)(q ⊕ t) = pq ⊕ tp ⊕ sq ⊕ st.
        let mut product = self.gate(true, p, q);
        if b.negated() {
            product = self.xor(product, p);
        }
        if a.negated() {
            product = self.xor(product, b);
        }
        product
    }

    /// `a ∨ b`: one AND gate.
    pub fn or(&mut self, a: Bit, b: Bit) -> Bit {
        !self.and(!a, !b)
    }

    /// `if choice { then } else { otherwise }`: one AND gate.
    pub fn mux_bit(&mut self, choice: Bit, then: Bit, otherwise: Bit) -> Bit {
        let difference = self.xor(then, otherwise);
        let chosen = self.and(choice, difference);
        self.xor(chosen, otherwise)
    }

    /// The majority of three bits: one AND gate.
    pub(crate) fn majority(&mut self, a: Bit, b: Bit, c: Bit) -> Bit {
        let ac = self.xor(a, c);
        let bc = self.xor(b, c);
        let both = self.and(ac, bc);
        self.xor(both, c)
    }

    /// The conjunction of all bits, as a balanced tree; one if there are none.
    pub fn all(&mut self, bits: &[Bit]) -> Bit {
        match bits {
            [] => Bit::ONE,
            [bit] => *bit,
            _ => {
                let (low, high) = bits.split_at(bits.len() / 2);
                let (low, high) = (self.all(low), self.all(high));
                self.and(low, high)
            }
        }
    }

    /// The disjunction of all bits, as a balanced tree; zero if there are none.
    pub fn any(&mut self, bits: &[Bit]) -> Bit {
        let negated: Vec<Bit> = bits.iter().map(|&b| !b).collect();
        !self.all(&negated)
    }

    /// Runs `body` and then gives back every wire it made that its result does not hold.
    ///
    /// Bits made inside and not returned must not be used afterwards; doing so panics. This is what keeps a
    /// stream's wires few: the size of a region bounds the memory, not the length of the stream.
    pub fn region<T: Wires>(&mut self, body: impl FnOnce(&mut Self) -> T) -> T {
        if self.whole {
            return body(self);
        }
        let start = self.allocated.len();
        self.depth += 1;
        self.reused = true;
        let result = body(self);
        let mut kept = Vec::new();
        result.visit(&mut |bit| kept.push(bit.wire()));
        kept.sort_unstable();
        let made = self.allocated.split_off(start);
        self.depth -= 1;
        for (wire, generation) in made {
            if self.generations[wire as usize] != generation {
                continue; // already discarded inside
            }
            if kept.binary_search(&wire).is_ok() {
                if self.depth > 0 {
                    self.allocated.push((wire, generation));
                }
            } else {
                self.release(wire);
            }
        }
        result
    }

    /// What `body` makes of `arguments`; in a region of a stream its gates are made and planned once and then
    /// placed wherever `name` and the pattern of the arguments' bits recur. So they must follow from these
    /// alone.
    pub fn component(
        &mut self,
        name: &'static str,
        arguments: &[Uint],
        mut body: impl FnMut(&mut Self, &[Uint]) -> Vec<Uint>,
    ) -> Vec<Uint> {
        if !self.in_region() {
            return body(self, arguments);
        }
        let (pattern, wires) = self.pattern(name, arguments);
        let component = match self.components.get(&pattern) {
            Some(known) => known.clone(),
            None => {
                // A body whose gates are no circuit cannot be: builders make nothing else.
                let made = Self::component_of(self.form, &pattern, &mut body).ok();
                let made = made.filter(|c| c.gates().len() <= REMEMBERED_IN_COMPONENTS).map(Arc::new);
                let size = pattern.bits.len() + made.as_ref().map_or(0, |c| c.gates().len());
                if self.component_sizes + size > REMEMBERED_IN_COMPONENTS {
                    self.components.clear();
                    self.component_sizes = 0;
                }
                self.component_sizes += size;
                self.components.insert(pattern, made.clone());
                made
            }
        };
        match component {
            Some(component) => self.place(component, &wires),
            None => body(self, arguments),
        }
    }

    /// What `body` makes of arguments of this pattern.
    fn component_of(
        form: Form,
        pattern: &Pattern,
        body: impl FnOnce(&mut Builder, &[Uint]) -> Vec<Uint>,
    ) -> Result<Component, InvalidCircuit> {
        let mut builder = Builder::whole(form);
        builder.input(pattern.wires as u32);
        let mut bits = pattern.bits.iter().map(|&literal| builder.bit_of(literal));
        let arguments: Vec<Uint> = pattern
            .widths
            .iter()
            .map(|&width| Uint::from_bits(bits.by_ref().take(width).collect()))
            .collect();
        let results = body(&mut builder, &arguments);
        let first = FIRST_INPUT + pattern.wires as u32;
        let literals: Vec<Vec<u32>> =
            results.iter().map(|result| result.bits().iter().map(|bit| bit.literal).collect()).collect();
        let mut made: Vec<Wire> =
            literals.iter().flatten().map(|literal| literal >> 1).filter(|&wire| wire >= first).collect();
        made.sort_unstable();
        made.dedup();
        let shape = Shape { inputs: vec![pattern.wires as u32], outputs: vec![made.len() as u32] };
        let circuit = Circuit::new(shape, builder.into_gates(), made.clone())?.pruned();
        Ok(Component::new(pattern.wires, &circuit, &made, literals))
    }

    /// The pattern of `arguments`, and their distinct wires' bits. Negations become gates before, lest every
    /// combination of signs have a component of its own.
    fn pattern(&mut self, name: &'static str, arguments: &[Uint]) -> (Pattern, Vec<Bit>) {
        let mut numbers: HashMap<u32, u32, BuildHasherDefault<FoldHasher>> = HashMap::default();
        let mut wires: Vec<Bit> = Vec::new();
        let mut bits = Vec::new();
        for &bit in arguments.iter().flat_map(|a| a.bits()) {
            self.check_alive(bit);
            bits.push(match bit.known() {
                Some(_) => bit.literal,
                None => {
                    let number = numbers.entry(bit.literal).or_insert_with(|| {
                        let wire = self.materialise(bit);
                        wires.push(Bit { literal: wire << 1, generation: self.generations[wire as usize] });
                        FIRST_INPUT + wires.len() as u32 - 1
                    });
                    *number << 1
                }
            });
        }
        let widths = arguments.iter().map(|a| a.bits().len()).collect();
        (Pattern { name, widths, bits, wires: wires.len() }, wires)
    }

    fn place(&mut self, component: Arc<Component>, wires: &[Bit]) -> Vec<Uint> {
        let outputs: Vec<Wire> = component.outputs().iter().map(|_| self.allocate()).collect();
        let first = FIRST_INPUT + wires.len() as u32;
        let places: HashMap<Wire, Wire, BuildHasherDefault<FoldHasher>> =
            component.outputs().iter().copied().zip(outputs.iter().copied()).collect();
        let bit = |&literal: &u32| {
            let (wire, negated) = (literal >> 1, literal & 1 == 1);
            let plain = match wire {
                ZERO => Bit::ZERO,
                argument if argument < first => wires[(argument - FIRST_INPUT) as usize],
                made => {
                    let wire = places[&made];
                    Bit { literal: wire << 1, generation: self.generations[wire as usize] }
                }
            };
            plain.negate_if(negated)
        };
        let results =
            component.results().iter().map(|bits| Uint::from_bits(bits.iter().map(bit).collect())).collect();
        self.emitted += component.gates().len() as u64;
        let arguments = wires.iter().map(|bit| bit.wire()).collect();
        self.calls.push(Call { after: self.gates.len(), component, arguments, outputs });
        results
    }

    /// Whether gates are made inside a region now.
    pub(super) fn in_region(&self) -> bool {
        self.depth > 0
    }

    /// Gives back the wires of `value`, for values that a program replaces from step to step. Each bit must
    /// be a value of its own: none may be used afterwards, nor held by a value that is still needed.
    /// Constants and inputs stay.
    pub fn discard<T: Wires>(&mut self, value: T) {
        self.discard_except(value, &());
    }

    /// As [`discard`](Self::discard), but keeps the wires that `kept` holds.
    pub fn discard_except<T: Wires, K: Wires>(&mut self, value: T, kept: &K) {
        if self.whole {
            return;
        }
        let mut needed = Vec::new();
        kept.visit(&mut |bit| needed.push(bit.wire()));
        needed.sort_unstable();
        let first = self.first_gate_wire.unwrap_or(u32::MAX);
        let mut wires = Vec::new();
        value.visit(&mut |bit| {
            if self.generations.get(bit.wire() as usize) == Some(&bit.generation) && bit.wire() >= first {
                wires.push(bit.wire());
            }
        });
        wires.sort_unstable();
        wires.dedup();
        self.reused = true;
        for wire in wires {
            if needed.binary_search(&wire).is_err() {
                self.release(wire);
            }
        }
    }

    fn release(&mut self, wire: Wire) {
        let generation = &mut self.generations[wire as usize];
        *generation = generation.wrapping_add(1);
        self.free.push(wire);
    }

    /// A wire of its own that carries `bit`, made by a gate if need be.
    fn materialise(&mut self, bit: Bit) -> Wire {
        self.check_alive(bit);
        match (bit.wire(), bit.negated()) {
            (wire, false) => wire,
            (ZERO, true) => super::ONE,
            (a, true) => {
                let out = self.allocate();
                self.gates.push(Gate::Inv { a, out });
                self.emitted += 1;
                out
            }
        }
    }

    /// The wires that carry the bits of `values`; negations become gates.
    pub(crate) fn output_wires<T: Wires>(&mut self, values: &T) -> Vec<Wire> {
        let mut bits = Vec::new();
        values.visit(&mut |bit| bits.push(bit));
        let mut inverted: HashMap<Bit, Wire> = HashMap::new();
        bits.into_iter()
            .map(|bit| match inverted.get(&bit) {
                Some(&wire) => wire,
                None => {
                    let wire = self.materialise(bit);
                    inverted.insert(bit, wire);
                    wire
                }
            })
            .collect()
    }

    /// Takes the gates made since the last call, for a stream.
    pub(super) fn drain(&mut self, into: &mut Vec<Gate>) {
        let mut at = 0;
        for call in std::mem::take(&mut self.calls) {
            into.extend_from_slice(&self.gates[at..call.after]);
            at = call.after;
            while self.scratch.len() < call.component.gates().len() {
                self.scratch.push(self.generations.len() as u32);
                self.generations.push(0);
            }
            call.expand(&self.scratch, into);
        }
        into.extend_from_slice(&self.gates[at..]);
        self.gates.clear();
    }

    /// As [`drain`](Self::drain), with components left as they are.
    pub(super) fn drain_parts(&mut self, gates: &mut Vec<Gate>, calls: &mut Vec<Call>) {
        let before = gates.len();
        gates.append(&mut self.gates);
        calls.extend(self.calls.drain(..).map(|call| Call { after: before + call.after, ..call }));
    }

    /// Ends a circuit with these outputs; gates that no output needs are left out.
    ///
    /// Errors if wires were given back or gates drained: such a builder makes streams.
    pub fn finish(mut self, outputs: &[Uint]) -> Result<Circuit, InvalidCircuit> {
        let widths = outputs.iter().map(|o| o.bits().len() as u32).collect();
        let wires = self.output_wires(&outputs.iter().map(|o| o.bits().to_vec()).collect::<Vec<_>>());
        if self.reused || !self.calls.is_empty() || self.emitted != self.gates.len() as u64 {
            return Err(InvalidCircuit::Sizes);
        }
        let shape = Shape { inputs: self.inputs, outputs: widths };
        Ok(Circuit::new(shape, self.gates, wires)?.pruned())
    }
}
