//! Bristol files: the old format and Bristol Fashion.
//!
//! Both begin with the number of gates and of wires. The old format then gives the widths of the two inputs
//! and of the one output on one line; Bristol Fashion gives a line for the inputs and one for the outputs,
//! each a count followed by widths. A gate is a line `inputs outputs wires… KIND`. The kinds read are XOR,
//! AND, INV or NOT, XNOR, OR, NOR, NAND, EQ (a constant), EQW (a copy) and MAND (several ANDs), in either case.
//! Everything after `#` or `//` is a comment. The third line of text shows which format a file has.

use super::{Circuit, FIRST_INPUT, Gate, ONE, Shape, Wire, ZERO};
use std::fmt::Write;
use tacit_crypto::text::counted;

/// Why a file is no circuit.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct BristolError {
    /// The line, counted from one.
    pub line: usize,
    /// What is wrong with it.
    pub what: String,
}

/// The two formats.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// Two inputs, one output; XOR, AND and INV.
    Old,
    /// Any number of inputs and outputs; EQ and EQW as well.
    Fashion,
}

/// Which bit of a value has its first wire.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Bits {
    /// The lowest.
    #[default]
    Usual,
    /// The highest, as in the old files of AES and SHA.
    Reversed,
}

/// Bits of inputs, or of outputs, that a file may declare.
const MAX_BITS: u64 = 1 << 24;
const NONE: Wire = Wire::MAX;

type Result<T> = core::result::Result<T, BristolError>;

fn error<T>(line: usize, what: impl Into<String>) -> Result<T> {
    Err(BristolError { line, what: what.into() })
}

/// Reads a circuit in either format, whose values have their lowest bits first. Errors name the line; memory is
/// bounded by the text's length and the declared inputs' (2^24 bits at most).
pub fn read(text: &str) -> Result<Circuit> {
    read_with(text, Bits::Usual)
}

/// As [`read`], of values whose bits are in this order.
pub fn read_with(text: &str, bits: Bits) -> Result<Circuit> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let lines = text.lines().enumerate().map(|(i, line)| (i + 1, without_comment(line).trim()));
    let mut lines = lines.filter(|(_, line)| !line.is_empty());
    let last_line = text.lines().count().max(1);
    let mut header = |what: &str| match lines.next() {
        Some((line, text)) => Ok((line, text)),
        None => error(last_line, format!("the file ends before the line of {what}")),
    };
    let (line, counts) = header("the numbers of gates and wires")?;
    let is_numbers = counts.bytes().all(|byte| byte.is_ascii_digit() || byte.is_ascii_whitespace());
    let counts = match numbers(line, counts) {
        Err(too_large) if is_numbers => return Err(too_large),
        found => found.unwrap_or_default(),
    };
    let [gates, wires] = counts[..] else {
        let what = "not a circuit in a Bristol format, which begins with the numbers of gates and of wires";
        return error(line, what);
    };
    let (second_line, second) = header("input widths")?;
    let second = numbers(second_line, second)?;
    let third = lines.clone().next().filter(|(_, text)| !text.contains(|c: char| c.is_ascii_alphabetic()));
    let shape = match third {
        Some((line, text)) => {
            lines.next();
            Shape { inputs: widths(second_line, &second)?, outputs: widths(line, &numbers(line, text)?)? }
        }
        None => match second[..] {
            [a, b, out] => old_shape(second_line, a, b, out)?,
            _ => return error(second_line, "three numbers expected: bits of two inputs and of the output"),
        },
    };
    let inputs = shape.input_bits() as u64;
    let outputs = shape.output_bits() as u64;
    // Every wire past the inputs costs its gate some text; a copy of an input needs no more wires than
    // inputs.
    if wires < inputs || wires - inputs > text.len() as u64 || gates > text.len() as u64 || outputs > wires {
        return error(line, "the numbers of gates and wires do not fit the file");
    }
    let mut reader = Reader::new(shape, bits, wires as usize);
    let mut seen = 0;
    for (line, text) in lines {
        seen += 1;
        if seen > gates {
            return error(
                line,
                format!(
                    "more than the {gates} that the first line announces",
                    gates = counted(gates, "gate")
                ),
            );
        }
        reader.gate(line, text)?;
    }
    if seen < gates {
        return error(
            last_line,
            format!("the file ends after {seen} of {gates}", gates = counted(gates, "gate")),
        );
    }
    reader.finish(last_line)
}

fn without_comment(line: &str) -> &str {
    let begins = [line.find('#'), line.find("//")].into_iter().flatten().min();
    &line[..begins.unwrap_or(line.len())]
}

fn numbers(line: usize, text: &str) -> Result<Vec<u64>> {
    text.split_ascii_whitespace().map(|token| number(line, token)).collect()
}

fn number(line: usize, token: &str) -> Result<u64> {
    match token.parse::<u32>() {
        Ok(n) => Ok(n.into()),
        // Without the text: what was given as a circuit by mistake may be a table.
        Err(_) => error(line, "a number below 2^32 is expected here"),
    }
}

fn old_shape(line: usize, a: u64, b: u64, out: u64) -> Result<Shape> {
    let inputs = if b == 0 { vec![a] } else { vec![a, b] };
    let mut with_counts = vec![inputs.len() as u64];
    with_counts.extend(&inputs);
    Ok(Shape { inputs: widths(line, &with_counts)?, outputs: widths(line, &[1, out])? })
}

fn widths(line: usize, numbers: &[u64]) -> Result<Vec<u32>> {
    let Some((&count, widths)) = numbers.split_first() else {
        return error(line, "a count and widths expected");
    };
    if count != widths.len() as u64 {
        return error(line, format!("{count} widths announced, {} given", widths.len()));
    }
    if widths.iter().sum::<u64>() > MAX_BITS {
        return error(line, format!("more than {MAX_BITS} bits"));
    }
    Ok(widths.iter().map(|&w| w as u32).collect())
}

/// The places of all bits of values of these widths: each value's in turn, in the file's order.
fn places(widths: &[u32], bits: Bits) -> Vec<usize> {
    let mut places = Vec::new();
    for &width in widths {
        let value = places.len()..places.len() + width as usize;
        match bits {
            Bits::Usual => places.extend(value),
            Bits::Reversed => places.extend(value.rev()),
        }
    }
    places
}

struct Reader {
    shape: Shape,
    bits: Bits,
    /// Our wire for each of the file's wires, or `NONE`.
    names: Vec<Wire>,
    gates: Vec<Gate>,
    next: Wire,
}

impl Reader {
    fn new(shape: Shape, bits: Bits, wires: usize) -> Self {
        let places = places(&shape.inputs, bits);
        let next = FIRST_INPUT + places.len() as u32;
        let mut names: Vec<Wire> = places.into_iter().map(|place| FIRST_INPUT + place as u32).collect();
        names.resize(wires, NONE);
        Reader { shape, bits, names, gates: Vec::new(), next }
    }

    fn gate(&mut self, line: usize, text: &str) -> Result<()> {
        let mut tokens: Vec<&str> = text.split_ascii_whitespace().collect();
        let kind = tokens.pop().unwrap_or_default().to_ascii_uppercase();
        let kind = kind.as_str();
        let counts = tokens.get(..2).map(|c| (number(line, c[0]), number(line, c[1])));
        let Some((fan_in, fan_out)) = counts else {
            return error(line, "a gate is two counts, its wires and its kind");
        };
        let (fan_in, fan_out) = (fan_in?, fan_out?);
        let wires = numbers(line, &tokens[2..].join(" "))?;
        if fan_in + fan_out != wires.len() as u64 {
            return error(line, format!("{} wires announced, {} given", fan_in + fan_out, wires.len()));
        }
        let fits = match kind {
            "XOR" | "AND" | "XNOR" | "OR" | "NOR" | "NAND" => (fan_in, fan_out) == (2, 1),
            "INV" | "NOT" | "EQ" | "EQW" => (fan_in, fan_out) == (1, 1),
            "MAND" => fan_in == 2 * fan_out,
            _ => {
                return error(
                    line,
                    "unknown gate; there are AND, XOR, INV, OR, NAND, NOR, XNOR, EQ, EQW and MAND",
                );
            }
        };
        if !fits {
            return error(line, format!("{kind} does not take {fan_in} wires to {fan_out}"));
        }
        let (ins, outs) = wires.split_at(fan_in as usize);
        match kind {
            "EQ" => {
                let constant = match ins[0] {
                    0 => ZERO,
                    1 => ONE,
                    _ => return error(line, "EQ takes the constant 0 or 1"),
                };
                self.define(line, outs[0], constant)
            }
            "EQW" => {
                let a = self.resolve(line, ins[0])?;
                self.define(line, outs[0], a)
            }
            "MAND" => {
                let resolved: Vec<Wire> =
                    ins.iter().map(|&w| self.resolve(line, w)).collect::<Result<_>>()?;
                let (a, b) = resolved.split_at(outs.len());
                for ((&a, &b), &out) in a.iter().zip(b).zip(outs) {
                    self.emit(line, out, |wire| Gate::And { a, b, out: wire })?;
                }
                Ok(())
            }
            "INV" | "NOT" => {
                let a = self.resolve(line, ins[0])?;
                self.emit(line, outs[0], |out| Gate::Inv { a, out })
            }
            "XNOR" => {
                let (a, b) = (self.resolve(line, ins[0])?, self.resolve(line, ins[1])?);
                let sum = self.fresh(|out| Gate::Xor { a, b, out });
                self.emit(line, outs[0], |out| Gate::Inv { a: sum, out })
            }
            "NAND" => {
                let (a, b) = (self.resolve(line, ins[0])?, self.resolve(line, ins[1])?);
                let product = self.fresh(|out| Gate::And { a, b, out });
                self.emit(line, outs[0], |out| Gate::Inv { a: product, out })
            }
            "OR" | "NOR" => {
                let [a, b] = [self.resolve(line, ins[0])?, self.resolve(line, ins[1])?]
                    .map(|a| self.fresh(|out| Gate::Inv { a, out }));
                if kind == "NOR" {
                    return self.emit(line, outs[0], |out| Gate::And { a, b, out });
                }
                let neither = self.fresh(|out| Gate::And { a, b, out });
                self.emit(line, outs[0], |out| Gate::Inv { a: neither, out })
            }
            _ => {
                let (a, b) = (self.resolve(line, ins[0])?, self.resolve(line, ins[1])?);
                let and = kind == "AND";
                self.emit(
                    line,
                    outs[0],
                    |out| if and { Gate::And { a, b, out } } else { Gate::Xor { a, b, out } },
                )
            }
        }
    }

    fn resolve(&self, line: usize, wire: u64) -> Result<Wire> {
        match self.names.get(wire as usize) {
            Some(&name) if name != NONE => Ok(name),
            Some(_) => error(line, format!("wire {wire} is read before it is written")),
            None => error(line, format!("there is no wire {wire}")),
        }
    }

    fn define(&mut self, line: usize, wire: u64, name: Wire) -> Result<()> {
        match self.names.get_mut(wire as usize) {
            Some(slot) if *slot == NONE => {
                *slot = name;
                Ok(())
            }
            Some(_) => error(line, format!("wire {wire} is written twice")),
            None => error(line, format!("there is no wire {wire}")),
        }
    }

    fn fresh(&mut self, gate: impl FnOnce(Wire) -> Gate) -> Wire {
        // At most four gates a line of text of at least eleven bytes: far below 2^32.
        let out = self.next;
        self.next += 1;
        self.gates.push(gate(out));
        out
    }

    fn emit(&mut self, line: usize, wire: u64, gate: impl FnOnce(Wire) -> Gate) -> Result<()> {
        self.define(line, wire, self.next)?;
        self.fresh(gate);
        Ok(())
    }

    fn finish(self, last_line: usize) -> Result<Circuit> {
        let first = self.names.len() - self.shape.output_bits();
        let mut outputs = Vec::with_capacity(self.shape.output_bits());
        for wire in places(&self.shape.outputs, self.bits).into_iter().map(|place| first + place) {
            if self.names[wire] == NONE {
                return error(last_line, format!("output wire {wire} is never written"));
            }
            outputs.push(self.names[wire]);
        }
        Circuit::new(self.shape, self.gates, outputs)
            .map_err(|e| BristolError { line: last_line, what: e.to_string() })
    }
}

/// Writes a circuit. The old format takes one or two inputs, and joins the outputs to one; `None` if there
/// are more inputs.
pub fn write(circuit: &Circuit, format: Format) -> Option<String> {
    let shape = circuit.shape();
    if format == Format::Old && (shape.inputs.len() > 2 || shape.input_bits() == 0) {
        return None;
    }
    let inputs = shape.input_bits() as u32;
    let mut writer =
        Writer { format, names: vec![NONE; circuit.wires()], body: String::new(), gates: 0, next: inputs };
    for i in 0..inputs {
        writer.names[(FIRST_INPUT + i) as usize] = i;
    }
    for wire in [ZERO, ONE] {
        writer.constant(circuit, wire);
    }
    for gate in circuit.gates() {
        writer.gate(*gate);
    }
    for &wire in circuit.outputs() {
        writer.copy(wire);
    }
    let list = |widths: &[u32]| widths.iter().map(|w| format!(" {w}")).collect::<String>();
    let sizes = match format {
        Format::Old => {
            let second = shape.inputs.get(1).copied().unwrap_or(0);
            let first = shape.inputs.first().copied().unwrap_or(0);
            format!("{first} {second} {}", shape.output_bits())
        }
        Format::Fashion => format!(
            "{}{}\n{}{}",
            shape.inputs.len(),
            list(&shape.inputs),
            shape.outputs.len(),
            list(&shape.outputs)
        ),
    };
    Some(format!("{} {}\n{sizes}\n\n{}", writer.gates, writer.next, writer.body))
}

struct Writer {
    format: Format,
    names: Vec<Wire>,
    body: String,
    gates: u64,
    next: Wire,
}

impl Writer {
    fn line(&mut self, ins: &[Wire], kind: &str) -> Wire {
        let out = self.next;
        self.next += 1;
        self.gates += 1;
        let ins_text: String = ins.iter().map(|w| format!("{w} ")).collect();
        // Writing to a string does not fail.
        let _ = writeln!(self.body, "{} 1 {ins_text}{out} {kind}", ins.len());
        out
    }

    /// Makes the constant if anything reads it; the old format makes it from input wire 0.
    fn constant(&mut self, circuit: &Circuit, wire: Wire) {
        let read = circuit.gates().iter().any(|g| {
            let (a, b) = g.operands();
            a == wire || (b == wire && !matches!(g, Gate::Inv { .. }))
        });
        // The old format copies outputs by adding zero.
        let copies = self.format == Format::Old && wire == ZERO && !circuit.outputs().is_empty();
        if !read && !copies && !circuit.outputs().contains(&wire) {
            return;
        }
        self.names[wire as usize] = match self.format {
            Format::Fashion => self.line(&[wire], "EQ"),
            Format::Old => {
                let zero = self.line(&[0, 0], "XOR");
                if wire == ZERO { zero } else { self.line(&[zero], "INV") }
            }
        };
    }

    fn gate(&mut self, gate: Gate) {
        let name = |w: Wire| self.names[w as usize];
        let out = match gate {
            Gate::Xor { a, b, .. } => self.line(&[name(a), name(b)], "XOR"),
            Gate::And { a, b, .. } => self.line(&[name(a), name(b)], "AND"),
            Gate::Inv { a, .. } => self.line(&[name(a)], "INV"),
        };
        self.names[gate.out() as usize] = out;
    }

    /// Outputs are the last wires in order, so each is copied there.
    fn copy(&mut self, wire: Wire) {
        let name = self.names[wire as usize];
        match self.format {
            Format::Fashion => {
                self.line(&[name], "EQW");
            }
            Format::Old => {
                let zero = self.names[ZERO as usize];
                self.line(&[name, zero], "XOR");
            }
        }
    }
}
