//! A sum or a count over many rows of a function, inside one circuit.

use super::named::{self, Function};
use super::value::{Field, Kind};
use super::{Bit, Builder, Circuit, Form, Gate, Int, Integer, ONE, Uint, ZERO};

/// What is made of the first output of all rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Aggregate {
    /// Their sum, in as many bits more as it may need.
    Sum,
    /// How many of them are not zero.
    Count,
}

impl Aggregate {
    /// A word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Aggregate::Sum => "sum",
            Aggregate::Count => "count",
        }
    }
}

/// Gates of all rows together, at most.
const ROWS_GATES: u64 = 1 << 26;

/// Why there is no such function.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct NotAggregated(String);

impl Function {
    /// The function of `rows` rows that gives of each first output the aggregate alone; flags say whether
    /// they are set in any row. Inputs are the garbler's of every row, then the evaluator's of every row.
    /// `signed` overrides how the first output is read, where its field does not say.
    ///
    /// Errors if the first output is a list, if there are no rows, or too many gates.
    pub fn over_rows(
        &self,
        rows: usize,
        aggregate: Aggregate,
        signed: bool,
    ) -> Result<Function, NotAggregated> {
        let fault = |what: String| Err(NotAggregated(what));
        if rows == 0 {
            return fault("a sum or a count over no rows".to_owned());
        }
        self.allows(rows)?;
        let mut builder = Builder::new();
        let repeated = |fields: &[Field]| (0..rows).flat_map(|_| fields.to_vec()).collect::<Vec<Field>>();
        let (garbler, evaluator) = (repeated(&self.garbler), repeated(&self.evaluator));
        let inputs: Vec<Uint> =
            garbler.iter().chain(&evaluator).map(|field| builder.input(field.bits())).collect();
        let (ours, theirs) = inputs.split_at(garbler.len());
        let of = |all: &[Uint], row: usize, each: usize| all[row * each..(row + 1) * each].to_vec();
        let inputs =
            |row| [of(ours, row, self.garbler.len()), of(theirs, row, self.evaluator.len())].concat();
        let every: Vec<(Bit, Vec<Uint>)> = (0..rows).map(|row| (Bit::ONE, inputs(row))).collect();
        let outputs = self.total(&mut builder, &every, aggregate, signed, None)?;
        let signed = signed || self.outputs[0].kind == Kind::Signed;
        let name = aggregate.name();
        let kind = match aggregate {
            Aggregate::Sum if signed => Kind::Signed,
            Aggregate::Count | Aggregate::Sum => Kind::Unsigned,
        };
        let width = outputs[0].bits().len() as u32;
        let circuit = builder.finish(&outputs).map_err(|e| NotAggregated(e.to_string()))?;
        let head = Field { name, width, count: 1, kind };
        let outputs = std::iter::once(head).chain(self.outputs[1..].iter().copied()).collect();
        let name = format!("{name} of {} over {rows} rows", self.name);
        Ok(Function { name, about: "an aggregate", circuit, garbler, evaluator, outputs })
    }

    /// The first output, if an aggregate of it over so many rows may be built; checked before anything is.
    fn allows(&self, rows: usize) -> Result<&Field, NotAggregated> {
        let fault = |what: String| Err(NotAggregated(what));
        let Some(first) = self.outputs.first().filter(|field| field.count == 1) else {
            return fault("a sum or a count is of functions whose first output is one number".to_owned());
        };
        if self.outputs[1..].iter().any(|field| field.kind != Kind::Flag) {
            return fault("a sum or a count is of functions with one output, flags apart".to_owned());
        }
        let gates = (self.circuit.gates().len() as u64).saturating_mul(rows as u64);
        if gates > ROWS_GATES {
            return fault(format!(
                "all rows together have {gates} gates, more than {ROWS_GATES}; give fewer rows"
            ));
        }
        Ok(first)
    }

    /// What one row of a function that [`over_rows`](Self::over_rows) takes adds to an aggregate, and its flags, inside
    /// a circuit of the caller's that adds up by itself; of a built-in function in the builder's form. `inputs` and
    /// `bounds` as of [`total`](Self::total).
    pub fn of_row(
        &self,
        builder: &mut Builder,
        inputs: &[Uint],
        aggregate: Aggregate,
        signed: bool,
        bounds: Option<[i64; 2]>,
    ) -> (Addend, Vec<Bit>) {
        let shallow = match (builder.form(), named::full_name(&self.name)) {
            (Form::Shallow, Some(name)) => named::shallow(&name, &self.circuit.digest()),
            _ => None,
        };
        let circuit = shallow.as_ref().unwrap_or(&self.circuit);
        let mut outputs = replay(builder, circuit, inputs).into_iter();
        let value = outputs.next().unwrap_or_else(|| Uint::from_bits(Vec::new()));
        let signed = signed || self.outputs.first().is_some_and(|field| field.kind == Kind::Signed);
        let addend = match (aggregate, bounds) {
            (Aggregate::Count, _) => Addend::Unsigned(Uint::from_bits(vec![builder.any(value.bits())])),
            (Aggregate::Sum, Some(bounds)) => {
                Addend::Signed(within(builder, &value, signed, bounds).as_int())
            }
            (Aggregate::Sum, None) if signed => Addend::Signed(value.as_int()),
            (Aggregate::Sum, None) => Addend::Unsigned(value),
        };
        (addend, outputs.map(|flag| builder.any(flag.bits())).collect())
    }

    /// The same inside a circuit of the caller's: the aggregate of the rows whose bit is set, and the flags
    /// of those. Each row has the garbler's inputs, then the evaluator's. With `bounds`, least and most, a row adds
    /// the nearest number within to a sum, which is signed then.
    ///
    /// Errors if the first output is a list or another one no flag, and on too many gates.
    pub fn total(
        &self,
        builder: &mut Builder,
        rows: &[(Bit, Vec<Uint>)],
        aggregate: Aggregate,
        signed: bool,
        bounds: Option<[i64; 2]>,
    ) -> Result<Vec<Uint>, NotAggregated> {
        let first = self.allows(rows.len())?;
        let bounds = bounds.filter(|_| aggregate == Aggregate::Sum);
        let signed = signed || first.kind == Kind::Signed;
        let (mut values, mut flags) =
            (Vec::with_capacity(rows.len()), vec![Bit::ZERO; self.outputs.len() - 1]);
        for (counts, inputs) in rows {
            let mut outputs = replay(builder, &self.circuit, inputs).into_iter();
            let value = outputs.next().unwrap_or_else(|| Uint::from_bits(Vec::new()));
            let value =
                bounds.map_or_else(|| value.clone(), |bounds| within(builder, &value, signed, bounds));
            values.push(Uint::from_bits(value.bits().iter().map(|&bit| builder.and(bit, *counts)).collect()));
            for (flag, set) in flags.iter_mut().zip(outputs) {
                let set = builder.any(set.bits());
                let set = builder.and(set, *counts);
                *flag = builder.or(*flag, set);
            }
        }
        let signed = signed || bounds.is_some();
        let width = bounds.map_or(first.width as usize, |_| BOUNDED)
            + (usize::BITS - rows.len().leading_zeros()) as usize;
        let total = match aggregate {
            Aggregate::Count => {
                let set: Vec<Bit> = values.iter().map(|value| builder.any(value.bits())).collect();
                builder.count_ones(&set)
            }
            Aggregate::Sum if signed => {
                let terms: Vec<Int> = values.iter().map(|value| value.as_int().resize(width)).collect();
                builder.sum(&terms, width).as_uint()
            }
            Aggregate::Sum => builder.sum(&values, width),
        };
        let flags = flags.into_iter().map(|flag| Uint::from_bits(vec![flag]));
        Ok(std::iter::once(total).chain(flags).collect())
    }
}

/// What a row adds to an aggregate.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Addend {
    /// A number without sign, or for a count one or zero.
    Unsigned(Uint),
    /// A number in two's complement.
    Signed(Int),
}

/// Bits of a number within bounds, and its sign.
const BOUNDED: usize = 65;

/// The number within `bounds` that is nearest to `value`.
fn within(builder: &mut Builder, value: &Uint, signed: bool, bounds: [i64; 2]) -> Uint {
    let width = BOUNDED.max(value.bits().len() + 1);
    let value = if signed { value.as_int().resize(width) } else { value.resize(width).as_int() };
    let [least, most] = bounds.map(|bound| Int::constant(bound.into(), width));
    let value = builder.min(&value, &most);
    builder.max(&value, &least).resize(BOUNDED).as_uint()
}

/// The circuit's gates again on these inputs: constants are folded and equal gates shared.
fn replay(builder: &mut Builder, circuit: &Circuit, inputs: &[Uint]) -> Vec<Uint> {
    let mut bits = Vec::with_capacity(circuit.wires());
    bits.extend([Bit::ZERO, Bit::ONE]);
    debug_assert_eq!((ZERO, ONE), (0, 1));
    bits.extend(inputs.iter().flat_map(|input| input.bits().iter().copied()));
    for gate in circuit.gates() {
        let (a, b) = gate.operands();
        let (a, b) = (bits[a as usize], bits[b as usize]);
        bits.push(match gate {
            Gate::And { .. } => builder.and(a, b),
            Gate::Xor { .. } => builder.xor(a, b),
            Gate::Inv { .. } => !a,
        });
    }
    let mut wires = circuit.outputs().iter().map(|&wire| bits[wire as usize]);
    let output = |&width: &u32| Uint::from_bits(wires.by_ref().take(width as usize).collect());
    circuit.shape().outputs.iter().map(output).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::circuit::{evaluate, named, value};
    use tacit_crypto::BitVec;

    fn run(name: &str, rows: &[[i64; 2]], aggregate: Aggregate) -> Vec<i64> {
        let function = named::find(name).unwrap();
        let all = function.over_rows(rows.len(), aggregate, false).unwrap();
        let of = |fields: &[Field], side: usize| -> Vec<BitVec> {
            rows.iter().flat_map(|row| value::parse(fields, &row[side].to_string()).unwrap()).collect()
        };
        let inputs = [of(&function.garbler, 0), of(&function.evaluator, 1)].concat();
        let outputs = evaluate(&all.circuit, &inputs);
        let text = |(field, bits)| value::format(field, bits, value::Format::Decimal).parse().unwrap();
        all.outputs.iter().zip(&outputs).map(text).collect()
    }

    #[test]
    fn sums_and_counts_are_those_of_the_rows() {
        let rows = [[250, 250], [3, 200], [255, 255], [0, 0], [1, 2]];
        let wrapped: i64 = rows.iter().map(|[x, y]| (x + y) & 255).sum();
        assert_eq!(run("add8", &rows, Aggregate::Sum), [wrapped]);
        assert_eq!(run("checked-add8", &rows, Aggregate::Sum), [wrapped, 1]);
        assert_eq!(run("checked-add8", &rows[3..], Aggregate::Sum), [3, 0]);
        assert_eq!(run("millionaires8", &rows, Aggregate::Count), [0]);
        assert_eq!(run("lt8", &rows, Aggregate::Count), [2]);
        assert_eq!(run("sub8", &rows, Aggregate::Count), [2]);
        for count in 1..=9 {
            let rows = vec![[-128, -128]; count];
            assert_eq!(run("signed-min8", &rows, Aggregate::Sum), [-128 * count as i64], "{count}");
            let rows = vec![[255, 1]; count];
            assert_eq!(run("max8", &rows, Aggregate::Sum), [255 * count as i64], "{count}");
        }
    }

    #[test]
    fn what_a_row_adds_to_a_sum_keeps_its_bounds() {
        let total = |name: &str, signed, rows: &[[i64; 2]], bounds| {
            let function = named::find(name).unwrap();
            let mut b = Builder::new();
            let of = |fields: &[Field], text: i64| value::parse(fields, &text.to_string()).unwrap().remove(0);
            let mut inputs = Vec::new();
            let each: Vec<(Bit, Vec<Uint>)> = rows
                .iter()
                .map(|[x, y]| {
                    inputs.extend([of(&function.garbler, *x), of(&function.evaluator, *y)]);
                    (Bit::ONE, vec![b.input(8), b.input(8)])
                })
                .collect();
            let outputs = function.total(&mut b, &each, Aggregate::Sum, signed, Some(bounds)).unwrap();
            let bits = &evaluate(&b.finish(&outputs).unwrap(), &inputs)[0];
            let number = bits.iter().enumerate().fold(0i128, |sum, (at, bit)| sum | i128::from(bit) << at);
            if bits.iter().last().unwrap() { number - (1 << bits.len()) } else { number }
        };
        let rows = [[250, 0], [3, 4], [0, 0]];
        assert_eq!(total("add8", false, &rows, [0, 100]), 100 + 7);
        assert_eq!(total("add8", false, &rows, [5, i64::MAX]), 250 + 7 + 5);
        assert_eq!(total("add8", true, &rows, [-5, 6]), -5 + 6);
        assert_eq!(total("add8", false, &rows, [-9, -7]), 3 * -7);
        assert_eq!(total("add8", false, &rows, [i64::MIN, i64::MAX]), 257);
    }

    #[test]
    fn what_is_no_number_or_too_much_is_refused() {
        let refused = |name: &str, rows| {
            named::find(name).unwrap().over_rows(rows, Aggregate::Sum, false).unwrap_err().to_string()
        };
        assert!(refused("sort16", 2).contains("one number"));
        assert!(refused("add8", 0).contains("no rows"));
        // Before anything is built: as many rows as can be counted cost nothing.
        for rows in [1 << 20, usize::MAX] {
            assert!(refused("sha256", rows).contains("fewer rows"));
        }
    }
}
