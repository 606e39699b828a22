//! Pictures of small circuits.

use super::named::Function;
use super::{FIRST_INPUT, Gate, ONE, Wire, ZERO};
use std::fmt::Write;

/// Gates of a circuit that is drawn, at most: more of them nobody reads.
pub const DRAWN_GATES: usize = 300;

/// Width of a column, height of a row, and the picture's border, in pixels.
const COLUMN_WIDTH: usize = 84;
const ROW_HEIGHT: usize = 30;
const BORDER: usize = 20;
/// Room for the names of inputs and outputs.
const NAMES: usize = 130;

/// What stands at a place of the picture.
struct Node {
    column: usize,
    row: f64,
    operands: Vec<usize>,
    label: String,
    kind: Shape,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    Name,
    And,
    Xor,
    Inv,
}

/// An SVG of the circuit: inputs at the left, each gate in the column behind its operands', outputs at the
/// right. AND gates, which cost, are filled. `None` for more than [`DRAWN_GATES`] gates.
pub fn svg(function: &Function) -> Option<String> {
    let circuit = &function.circuit;
    if circuit.gates().len() > DRAWN_GATES || circuit.shape().input_bits() > DRAWN_GATES {
        return None;
    }
    let mut nodes = nodes(function);
    settle(&mut nodes);
    let columns = nodes.iter().map(|node| node.column).max().unwrap_or(0) + 1;
    let rows = nodes.iter().map(|node| node.row as usize).max().unwrap_or(0) + 1;
    let (width, height) = (2 * (BORDER + NAMES) + columns * COLUMN_WIDTH, 2 * BORDER + rows * ROW_HEIGHT);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
         height=\"{height}\" font-family=\"sans-serif\" font-size=\"11\">\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n"
    );
    let place = |node: &Node| {
        let x = BORDER + NAMES + node.column * COLUMN_WIDTH;
        (x as f64, BORDER as f64 + (node.row + 0.5) * ROW_HEIGHT as f64)
    };
    // Writing to a string does not fail.
    for node in &nodes {
        let (x, y) = place(node);
        for &operand in &node.operands {
            let (from, above) = place(&nodes[operand]);
            let middle = (from + x) / 2.0;
            let _ = writeln!(
                out,
                "<path d=\"M{:.0} {above:.0}C{middle:.0} {above:.0} {middle:.0} {y:.0} {:.0} {y:.0}\" fill=\"none\" \
                 stroke=\"#8a94a6\"/>",
                from + 14.0,
                x - 14.0
            );
        }
    }
    for node in &nodes {
        let (x, y) = place(node);
        let (fill, text) = match node.kind {
            Shape::And => ("#f2b872", "#1b2330"),
            Shape::Xor | Shape::Inv => ("#e8edf5", "#1b2330"),
            Shape::Name => ("none", "#1b2330"),
        };
        if node.kind != Shape::Name {
            let round = if node.kind == Shape::And { 3 } else { 10 };
            let _ = writeln!(
                out,
                "<rect x=\"{:.0}\" y=\"{:.0}\" width=\"28\" height=\"20\" rx=\"{round}\" fill=\"{fill}\" \
                 stroke=\"#4b5566\"/>",
                x - 14.0,
                y - 10.0
            );
        }
        let (at, anchor) = match (node.kind, node.operands.is_empty()) {
            (Shape::Name, true) => (x + 10.0, "end"),
            (Shape::Name, false) => (x - 10.0, "start"),
            _ => (x, "middle"),
        };
        let _ = writeln!(
            out,
            "<text x=\"{at:.0}\" y=\"{:.0}\" text-anchor=\"{anchor}\" fill=\"{text}\">{}</text>",
            y + 4.0,
            node.label
        );
    }
    out.push_str("</svg>\n");
    Some(out)
}

/// Inputs, the constants that are read, gates, outputs; operands before those who read them.
fn nodes(function: &Function) -> Vec<Node> {
    let circuit = &function.circuit;
    let read = |wire: Wire| {
        let inverted = |gate: &Gate| matches!(gate, Gate::Inv { .. });
        circuit.outputs().contains(&wire)
            || circuit.gates().iter().any(|gate| {
                let (a, b) = gate.operands();
                a == wire || (b == wire && !inverted(gate))
            })
    };
    let mut at: Vec<Option<usize>> = vec![None; circuit.wires()];
    let mut nodes: Vec<Node> = Vec::new();
    let add = |nodes: &mut Vec<Node>, column: usize, operands: Vec<usize>, label: String, kind| {
        let row = nodes.iter().filter(|node| node.column == column).count() as f64;
        nodes.push(Node { column, row, operands, label, kind });
        nodes.len() - 1
    };
    for (wire, label) in [(ZERO, "0"), (ONE, "1")] {
        if read(wire) {
            at[wire as usize] = Some(add(&mut nodes, 0, Vec::new(), label.to_owned(), Shape::Name));
        }
    }
    let sides = [("garbler", &function.garbler), ("evaluator", &function.evaluator)];
    let mut wire = FIRST_INPUT as usize;
    for (side, fields) in sides {
        for (number, field) in fields.iter().enumerate() {
            let name = if fields.len() > 1 { format!("{side} {}", number + 1) } else { side.to_owned() };
            for bit in 0..field.bits() {
                let label = format!("{name} [{bit}]");
                at[wire] = Some(add(&mut nodes, 0, Vec::new(), label, Shape::Name));
                wire += 1;
            }
        }
    }
    let behind = |nodes: &[Node], operands: &[usize]| {
        operands.iter().map(|&operand| nodes[operand].column).max().map_or(1, |column| column + 1)
    };
    for gate in circuit.gates() {
        let (a, b) = gate.operands();
        let (wires, label, kind) = match gate {
            Gate::And { .. } => (vec![a, b], "AND", Shape::And),
            Gate::Xor { .. } => (vec![a, b], "XOR", Shape::Xor),
            Gate::Inv { .. } => (vec![a], "NOT", Shape::Inv),
        };
        let operands: Vec<usize> = wires.iter().filter_map(|&wire| at[wire as usize]).collect();
        let column = behind(&nodes, &operands);
        at[gate.out() as usize] = Some(add(&mut nodes, column, operands, label.to_owned(), kind));
    }
    let last = nodes.iter().map(|node| node.column).max().unwrap_or(0) + 1;
    let mut outputs = circuit.outputs().iter();
    for field in &function.outputs {
        for bit in 0..field.bits() {
            let operands = outputs.next().and_then(|&wire| at[wire as usize]).into_iter().collect();
            add(&mut nodes, last, operands, format!("{} [{bit}]", field.name), Shape::Name);
        }
    }
    nodes
}

/// Moves gates within their columns towards the middle of what they read, so that fewer lines cross.
fn settle(nodes: &mut [Node]) {
    let columns = nodes.iter().map(|node| node.column).max().unwrap_or(0);
    for column in 1..=columns {
        let mut here: Vec<(f64, usize)> = (0..nodes.len())
            .filter(|&i| nodes[i].column == column)
            .map(|i| {
                let rows: Vec<f64> = nodes[i].operands.iter().map(|&operand| nodes[operand].row).collect();
                (rows.iter().sum::<f64>() / rows.len().max(1) as f64, i)
            })
            .collect();
        here.sort_by(|a, b| a.0.total_cmp(&b.0));
        // Each as near to its middle as the one above lets it.
        let mut free = 0.0f64;
        for (middle, i) in here {
            nodes[i].row = middle.max(free);
            free = nodes[i].row + 1.0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::circuit::named;

    #[test]
    fn a_small_circuit_has_every_gate_and_name_in_its_picture_and_no_two_at_one_place() {
        for name in ["add4", "millionaires3", "checked-add2", "eq5"] {
            let function = named::find(name).unwrap();
            let picture = svg(&function).unwrap();
            let stats = function.circuit.stats();
            for (label, count) in [("AND", stats.and), ("XOR", stats.xor), ("NOT", stats.inv)] {
                assert_eq!(picture.matches(&format!(">{label}</text>")).count() as u64, count, "{name}");
            }
            let bits = function.circuit.shape().input_bits();
            assert_eq!(picture.matches("text-anchor=\"end\"").count(), bits, "{name}");
            let mut nodes = nodes(&function);
            settle(&mut nodes);
            for (i, a) in nodes.iter().enumerate() {
                assert!(a.operands.iter().all(|&operand| nodes[operand].column < a.column), "{name}");
                let apart = |b: &Node| a.column != b.column || (a.row - b.row).abs() > 0.99;
                assert!(nodes[..i].iter().all(apart), "{name}");
            }
        }
    }

    #[test]
    fn what_nobody_could_read_is_not_drawn() {
        assert!(svg(&named::find("mul32").unwrap()).is_none());
        assert!(svg(&named::find("add64").unwrap()).is_none());
    }
}
