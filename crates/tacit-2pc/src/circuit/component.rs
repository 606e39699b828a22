//! Components: parts of a stream that are built and planned once, and then placed any number of times.
//!
//! A component's gates follow from its name and the pattern of its arguments alone (which bits are
//! constants, which repeat), so both parties place the same ones.

use super::plan::Planned;
use super::{Circuit, FIRST_INPUT, Gate, Order, Planner, Window, Wire};
use std::sync::OnceLock;

/// What a component follows from. Its wires are the constants, then its arguments' distinct wires, then its
/// gates' results; a literal is twice a wire, plus one if negated.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Pattern {
    pub(super) name: &'static str,
    pub(super) widths: Vec<usize>,
    /// The literals of all arguments' bits.
    pub(super) bits: Vec<u32>,
    /// The number of distinct wires.
    pub(super) wires: usize,
}

/// A part of a circuit over wires of its own.
#[derive(Debug)]
pub(super) struct Component {
    arguments: usize,
    gates: Vec<Gate>,
    /// The distinct wires of gates that results name.
    outputs: Vec<Wire>,
    /// The literals of each result's bits.
    results: Vec<Vec<u32>>,
    planned: OnceLock<Planned>,
}

impl Component {
    /// Over so many arguments the gates of `circuit`, whose outputs are all the wires past the arguments that
    /// `made` names, in order; `results` are literals over the builder's wires, which the circuit's take the
    /// place of.
    pub(super) fn new(
        arguments: usize,
        circuit: &Circuit,
        made: &[Wire],
        mut results: Vec<Vec<u32>>,
    ) -> Component {
        for literal in results.iter_mut().flatten() {
            if let Ok(output) = made.binary_search(&(*literal >> 1)) {
                *literal = circuit.outputs()[output] << 1 | (*literal & 1);
            }
        }
        Component {
            arguments,
            gates: circuit.gates().to_vec(),
            outputs: circuit.outputs().to_vec(),
            results,
            planned: OnceLock::new(),
        }
    }

    pub(super) fn gates(&self) -> &[Gate] {
        &self.gates
    }

    pub(super) fn outputs(&self) -> &[Wire] {
        &self.outputs
    }

    pub(super) fn results(&self) -> &[Vec<u32>] {
        &self.results
    }

    /// The plan, in the order asked for first: a component belongs to one builder, whose stream has one
    /// order.
    pub(super) fn planned(&self, order: Order) -> &Planned {
        self.planned.get_or_init(|| {
            let first = FIRST_INPUT + self.arguments as u32;
            // Arguments live on outside, so they keep their slots.
            let kept: Vec<Wire> = (FIRST_INPUT..first).chain(self.outputs.iter().copied()).collect();
            let (mut planner, mut window) = (Planner::new(self.arguments, order), Window::default());
            planner.plan(&self.gates, Some(&kept), &mut window);
            // A gate's result that is kept has a slot.
            let outputs: Vec<u32> = self.outputs.iter().filter_map(|&wire| planner.slot(wire)).collect();
            let mut sorted = outputs.clone();
            sorted.sort_unstable();
            let temporary =
                (first..window.slots() as u32).filter(|slot| sorted.binary_search(slot).is_err()).collect();
            Planned { window, outputs, temporary }
        })
    }
}

/// A component at its place in a stream.
#[derive(Clone, Debug)]
pub(super) struct Call {
    /// How many of the stream's gates come before it.
    pub(super) after: usize,
    pub(super) component: std::sync::Arc<Component>,
    pub(super) arguments: Vec<Wire>,
    pub(super) outputs: Vec<Wire>,
}

impl Call {
    /// The same as gates; `scratch` gives the wires of values inside.
    pub(super) fn expand(&self, scratch: &[Wire], into: &mut Vec<Gate>) {
        let first = FIRST_INPUT as usize + self.arguments.len();
        let mut wires: Vec<Wire> = (0..FIRST_INPUT).chain(self.arguments.iter().copied()).collect();
        wires.extend_from_slice(&scratch[..self.component.gates.len()]);
        for (&output, &wire) in self.component.outputs.iter().zip(&self.outputs) {
            debug_assert!(output as usize >= first, "an output that no gate makes");
            wires[output as usize] = wire;
        }
        let of = |wire: Wire| wires[wire as usize];
        into.extend(self.component.gates.iter().map(|gate| match *gate {
            Gate::Xor { a, b, out } => Gate::Xor { a: of(a), b: of(b), out: of(out) },
            Gate::And { a, b, out } => Gate::And { a: of(a), b: of(b), out: of(out) },
            Gate::Inv { a, out } => Gate::Inv { a: of(a), out: of(out) },
        }));
    }
}
