//! Boolean circuits: as a graph ([`Circuit`]), and as a stream of gates over reused wires ([`Program`]).
//!
//! Gates are XOR, AND and INV. Wire 0 always carries the constant zero and wire 1 the constant one; the
//! inputs follow, so a circuit's first input bit is wire [`FIRST_INPUT`].

mod aggregate;
mod arithmetic;
mod bit;
pub mod bristol;
mod builder;
mod component;
mod divide;
pub mod draw;
mod form;
mod integer;
pub mod library;
mod long;
mod multiply;
pub mod named;
mod plain;
mod plan;
mod program;
mod shallow;
pub mod value;

pub use aggregate::{Addend, Aggregate, NotAggregated};
pub use arithmetic::Modulus;
pub use bit::{Bit, Wires};
pub use builder::Builder;
pub use form::Form;
pub use integer::{Int, Integer, Uint};
pub use long::{LARGEST_SORT, LongFunction, MODEXP};
pub use plain::{PlainMemory, evaluate, evaluate_words};
pub use plan::{Op, Order, Piece, Place, Plan, Planner, Step, Window};
pub use program::{Program, ProgramPlan, Repeat, count_ands, iterate};

use tacit_crypto::text::counted;
use tacit_crypto::transcript::Transcript;

/// The number of a wire.
pub type Wire = u32;

/// The wire that carries the constant zero.
pub const ZERO: Wire = 0;
/// The wire that carries the constant one.
pub const ONE: Wire = 1;
/// The wire of the first input bit.
pub const FIRST_INPUT: Wire = 2;

/// One gate. In a [`Circuit`] every wire is written once; in a stream a gate may overwrite a wire.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Gate {
    /// `out = a ⊕ b`.
    Xor {
        /// First operand.
        a: Wire,
        /// Second operand.
        b: Wire,
        /// Result.
        out: Wire,
    },
    /// `out = a ∧ b`.
    And {
        /// First operand.
        a: Wire,
        /// Second operand.
        b: Wire,
        /// Result.
        out: Wire,
    },
    /// `out = ¬a`.
    Inv {
        /// Operand.
        a: Wire,
        /// Result.
        out: Wire,
    },
}

impl Gate {
    /// The operands; an inverter is read as an XOR with the constant one.
    #[inline]
    pub fn operands(self) -> (Wire, Wire) {
        match self {
            Gate::Xor { a, b, .. } | Gate::And { a, b, .. } => (a, b),
            Gate::Inv { a, .. } => (a, ONE),
        }
    }

    /// The wire written.
    #[inline]
    pub fn out(self) -> Wire {
        match self {
            Gate::Xor { out, .. } | Gate::And { out, .. } | Gate::Inv { out, .. } => out,
        }
    }

    /// Whether this is an AND gate.
    #[inline]
    pub fn is_and(self) -> bool {
        matches!(self, Gate::And { .. })
    }
}

/// The widths, in bits, of a function's inputs and outputs.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Shape {
    /// Width of each input.
    pub inputs: Vec<u32>,
    /// Width of each output.
    pub outputs: Vec<u32>,
}

impl Shape {
    /// Bits of all inputs together.
    pub fn input_bits(&self) -> usize {
        self.inputs.iter().map(|&w| w as usize).sum()
    }

    /// Bits of all outputs together.
    pub fn output_bits(&self) -> usize {
        self.outputs.iter().map(|&w| w as usize).sum()
    }

    /// The bits of input `index`, counted over all inputs one after the other.
    pub(crate) fn input_range(&self, index: usize) -> core::ops::Range<usize> {
        let start: usize = self.inputs[..index].iter().map(|&w| w as usize).sum();
        start..start + self.inputs[index] as usize
    }

    pub(crate) fn absorb(&self, transcript: &mut Transcript) {
        for (label, widths) in [("inputs", &self.inputs), ("outputs", &self.outputs)] {
            transcript.append_u64(label, widths.len() as u64);
            for &width in widths {
                transcript.append_u64("width", width.into());
            }
        }
    }
}

/// What a circuit costs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stats {
    /// All gates.
    pub gates: u64,
    /// AND gates: what garbling pays for.
    pub and: u64,
    /// XOR gates.
    pub xor: u64,
    /// Inverters.
    pub inv: u64,
    /// The largest number of AND gates on a path.
    pub and_depth: u32,
    /// The largest number of gates on a path.
    pub depth: u32,
    /// The largest number of AND gates at one AND depth.
    pub width: u64,
}

/// A circuit as a graph: gate `i` writes wire `FIRST_INPUT + input bits + i`, and reads only wires before it.
#[derive(Clone, PartialEq, Eq)]
pub struct Circuit {
    shape: Shape,
    gates: Vec<Gate>,
    outputs: Vec<Wire>,
}

impl core::fmt::Debug for Circuit {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Circuit({:?}, {})", self.shape, counted(self.gates.len(), "gate"))
    }
}

/// Why a list of gates is no circuit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidCircuit {
    /// A gate does not write the next wire, or reads one that is not yet written.
    #[error("gate {0} does not read earlier wires and write the next one")]
    Gate(usize),
    /// An output names a wire that is never written.
    #[error("output bit {0} names a wire that is never written")]
    Output(usize),
    /// The number of output wires is not the sum of the outputs' widths, or wires do not fit 32 bits.
    #[error("the sizes do not fit together")]
    Sizes,
}

impl Circuit {
    /// A circuit of `gates`, whose output bits, one after the other, are the wires `outputs`.
    pub fn new(shape: Shape, gates: Vec<Gate>, outputs: Vec<Wire>) -> Result<Self, InvalidCircuit> {
        let first = FIRST_INPUT as usize + shape.input_bits();
        if u32::try_from(first + gates.len()).is_err() || outputs.len() != shape.output_bits() {
            return Err(InvalidCircuit::Sizes);
        }
        for (i, gate) in gates.iter().enumerate() {
            let (a, b) = gate.operands();
            let here = first + i;
            if gate.out() as usize != here || a as usize >= here || b as usize >= here {
                return Err(InvalidCircuit::Gate(i));
            }
        }
        let wires = first + gates.len();
        if let Some(i) = outputs.iter().position(|&w| w as usize >= wires) {
            return Err(InvalidCircuit::Output(i));
        }
        Ok(Circuit { shape, gates, outputs })
    }

    /// The widths of inputs and outputs.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The gates, each after those it reads.
    pub fn gates(&self) -> &[Gate] {
        &self.gates
    }

    /// The wires of the output bits, one after the other.
    pub fn outputs(&self) -> &[Wire] {
        &self.outputs
    }

    /// The number of wires: constants, inputs and gates.
    pub fn wires(&self) -> usize {
        FIRST_INPUT as usize + self.shape.input_bits() + self.gates.len()
    }

    /// Counts gates, depth and width.
    pub fn stats(&self) -> Stats {
        let mut stats = Stats { gates: self.gates.len() as u64, ..Stats::default() };
        let first = self.wires() - self.gates.len();
        // (AND depth, depth) of each wire.
        let mut depths = vec![(0u32, 0u32); self.wires()];
        let mut per_level: Vec<u64> = Vec::new();
        for (i, gate) in self.gates.iter().enumerate() {
            let (a, b) = gate.operands();
            let (a, b) = (depths[a as usize], depths[b as usize]);
            let mut here = (a.0.max(b.0), a.1.max(b.1) + 1);
            match gate {
                Gate::Xor { .. } => stats.xor += 1,
                Gate::Inv { .. } => stats.inv += 1,
                Gate::And { .. } => {
                    stats.and += 1;
                    if per_level.len() <= here.0 as usize {
                        per_level.resize(here.0 as usize + 1, 0);
                    }
                    per_level[here.0 as usize] += 1;
                    here.0 += 1;
                }
            }
            stats.and_depth = stats.and_depth.max(here.0);
            stats.depth = stats.depth.max(here.1);
            depths[first + i] = here;
        }
        stats.width = per_level.into_iter().max().unwrap_or(0);
        stats
    }

    /// The same circuit without the gates that no output depends on.
    pub(crate) fn pruned(&self) -> Circuit {
        let first = self.wires() - self.gates.len();
        let mut needed = vec![false; self.wires()];
        for &w in &self.outputs {
            needed[w as usize] = true;
        }
        for gate in self.gates.iter().rev() {
            if needed[gate.out() as usize] {
                let (a, b) = gate.operands();
                needed[a as usize] = true;
                needed[b as usize] = true;
            }
        }
        let mut renamed: Vec<Wire> = (0..first as u32).collect();
        renamed.resize(self.wires(), 0);
        let mut gates = Vec::new();
        for gate in self.gates.iter().filter(|g| needed[g.out() as usize]) {
            let out = (first + gates.len()) as u32;
            renamed[gate.out() as usize] = out;
            let of = |w: Wire| renamed[w as usize];
            gates.push(match *gate {
                Gate::Xor { a, b, .. } => Gate::Xor { a: of(a), b: of(b), out },
                Gate::And { a, b, .. } => Gate::And { a: of(a), b: of(b), out },
                Gate::Inv { a, .. } => Gate::Inv { a: of(a), out },
            });
        }
        let outputs = self.outputs.iter().map(|&w| renamed[w as usize]).collect();
        Circuit { shape: self.shape.clone(), gates, outputs }
    }

    /// The circuit as a stream: the same gates with wires reused once nothing reads them any more, and the
    /// wires of the outputs at the end. Inputs keep their wires; output wires are never overwritten.
    pub fn stream(&self) -> (Vec<Gate>, Vec<Wire>) {
        let first = self.wires() - self.gates.len();
        const NEVER: u32 = u32::MAX;
        let mut last_use = vec![0u32; self.wires()];
        for (i, gate) in self.gates.iter().enumerate() {
            let (a, b) = gate.operands();
            last_use[a as usize] = i as u32;
            last_use[b as usize] = i as u32;
        }
        for &w in &self.outputs {
            last_use[w as usize] = NEVER;
        }
        let mut place: Vec<Wire> = (0..first as u32).collect();
        place.resize(self.wires(), 0);
        let mut free: Vec<Wire> = Vec::new();
        let mut next = first as u32;
        let mut gates = Vec::with_capacity(self.gates.len());
        for (i, gate) in self.gates.iter().enumerate() {
            let wire = gate.out() as usize;
            let out = free.pop().unwrap_or_else(|| {
                next += 1;
                next - 1
            });
            place[wire] = out;
            let of = |w: Wire| place[w as usize];
            gates.push(match *gate {
                Gate::Xor { a, b, .. } => Gate::Xor { a: of(a), b: of(b), out },
                Gate::And { a, b, .. } => Gate::And { a: of(a), b: of(b), out },
                Gate::Inv { a, .. } => Gate::Inv { a: of(a), out },
            });
            let (a, b) = gate.operands();
            for w in [Some(a), (b != a).then_some(b), Some(wire as u32)].into_iter().flatten() {
                let dead = last_use[w as usize] == i as u32 || (w as usize == wire && last_use[wire] == 0);
                if dead && w >= FIRST_INPUT {
                    free.push(place[w as usize]);
                }
            }
        }
        let outputs = self.outputs.iter().map(|&w| place[w as usize]).collect();
        (gates, outputs)
    }

    /// A hash of the shape and of every gate; equal circuits hash alike whatever file they came from.
    pub fn digest(&self) -> [u8; 32] {
        let mut transcript = Transcript::new("tacit circuit v1");
        self.shape.absorb(&mut transcript);
        transcript.append_u64("gates", self.gates.len() as u64);
        let mut bytes = Vec::with_capacity(9 * 4096);
        for chunk in self.gates.chunks(4096) {
            bytes.clear();
            for gate in chunk {
                let (a, b) = gate.operands();
                let kind = match gate {
                    Gate::Xor { .. } => 0u8,
                    Gate::And { .. } => 1,
                    Gate::Inv { .. } => 2,
                };
                bytes.push(kind);
                bytes.extend(a.to_le_bytes());
                bytes.extend(b.to_le_bytes());
            }
            transcript.append("chunk", &bytes);
        }
        for &w in &self.outputs {
            transcript.append_u64("output", w.into());
        }
        let mut digest = [0; 32];
        transcript.challenge_bytes("digest", &mut digest);
        digest
    }
}
