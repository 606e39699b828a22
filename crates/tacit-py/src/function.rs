//! Circuits out of traced Python: what the package's integers are made of.

use crate::fault;
use pyo3::prelude::*;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tacit_2pc::circuit::library::{checked, sort};
use tacit_2pc::circuit::named::Function;
use tacit_2pc::circuit::value::{self, Field, Format, Kind};
use tacit_2pc::circuit::{Bit, Builder, Int, Integer, Uint, evaluate};

/// The most gates of a traced function: some 200 bytes each while it is traced.
const MOST_GATES: u64 = 1 << 25;

/// The bits of a value, lowest first.
#[pyclass(frozen)]
pub struct Wires {
    bits: Vec<Bit>,
    signed: bool,
}

impl Wires {
    fn uint(&self) -> Uint {
        Uint::from_bits(self.bits.clone())
    }

    fn int(&self) -> Int {
        self.uint().as_int()
    }
}

#[pymethods]
impl Wires {
    /// The number that it is, if it depends on no input.
    fn known(&self) -> Option<i128> {
        let bits: Option<Vec<bool>> = self.bits.iter().map(|bit| bit.known()).collect();
        let bits = bits?;
        let number = bits.iter().take(127).enumerate().fold(0, |sum, (i, &bit)| sum | (i128::from(bit) << i));
        let negative = self.signed && bits.last() == Some(&true);
        Some(if negative { number - (1 << bits.len()) } else { number })
    }
}

/// A circuit that is being traced. Inputs come first, the garbler's before the evaluator's.
#[pyclass(frozen)]
pub struct Tracer(Mutex<Builder>);

impl Tracer {
    fn lock(&self) -> MutexGuard<'_, Builder> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn made<I: Integer>(value: &I) -> Wires {
    Wires { bits: value.bits().to_vec(), signed: I::SIGNED }
}

fn flag(bit: Bit) -> Wires {
    Wires { bits: vec![bit], signed: false }
}

/// `x op y` and whether it does not fit.
fn arithmetic<I: Integer>(b: &mut Builder, op: &str, x: &I, y: &I) -> Option<(I, Bit)> {
    Some(match op {
        "add" => checked::add(b, x, y),
        "sub" => checked::sub(b, x, y),
        "mul" => checked::mul(b, x, y),
        "min" => (b.min(x, y), Bit::ZERO),
        "max" => (b.max(x, y), Bit::ZERO),
        "and" => (b.and_bits(x, y), Bit::ZERO),
        "or" => (b.or_bits(x, y), Bit::ZERO),
        "xor" => (b.xor_bits(x, y), Bit::ZERO),
        _ => return None,
    })
}

/// Quotient towards minus infinity, the remainder that goes with it, and whether there is none or it does not
/// fit.
fn floor_division(b: &mut Builder, x: &Wires, y: &Wires) -> (Wires, Wires, Bit) {
    if !x.signed {
        let (q, r, by_zero) = checked::div_rem(b, &x.uint(), &y.uint());
        return (made(&q), made(&r), by_zero);
    }
    let (x, y) = (x.int(), y.int());
    let (q, r, by_zero) = checked::div_rem(b, &x, &y);
    let overflow = checked::quotient_overflow(b, &x, &y, &q);
    // A remainder other than zero with another sign than the divisor's belongs to the quotient above.
    let (zero, one) = (Int::constant(0, x.bits().len()), Int::constant(1, x.bits().len()));
    let none = b.eq(&r, &zero);
    let top = |value: &Int| value.bits().last().copied().unwrap_or(Bit::ZERO);
    let differ = b.xor(top(&r), top(&y));
    let above = b.and(differ, !none);
    let (less, more) = (b.sub(&q, &one), b.add(&r, &y));
    let (q, r) = (b.mux(above, &less, &q), b.mux(above, &more, &r));
    let failed = b.or(by_zero, overflow);
    (made(&q), made(&r), failed)
}

#[pymethods]
impl Tracer {
    #[new]
    fn new() -> Self {
        Tracer(Mutex::new(Builder::new()))
    }

    /// The next input.
    fn input(&self, width: u32, signed: bool) -> Wires {
        Wires { signed, ..made(&self.lock().input(width)) }
    }

    /// A number that everybody knows.
    #[staticmethod]
    fn constant(value: i128, width: usize, signed: bool) -> Wires {
        Wires { signed, ..made(&Uint::constant(value, width)) }
    }

    /// `x op y`, of the same width and sign, and whether the result does not fit.
    fn binary(&self, py: Python<'_>, op: &str, x: &Wires, y: &Wires) -> PyResult<(Wires, Wires)> {
        let mut b = self.lock();
        if b.gates_made() > MOST_GATES {
            return Err(fault::usage(py, format!("the function has more than {MOST_GATES} gates")));
        }
        let result = match x.signed {
            true => arithmetic(&mut b, op, &x.int(), &y.int()).map(|(z, over)| (made(&z), over)),
            false => arithmetic(&mut b, op, &x.uint(), &y.uint()).map(|(z, over)| (made(&z), over)),
        };
        let (result, over) = match (result, op) {
            (Some(result), _) => result,
            (None, "floordiv" | "mod") => {
                let (q, r, failed) = floor_division(&mut b, x, y);
                (if op == "mod" { r } else { q }, failed)
            }
            (None, "lt" | "le" | "eq") => {
                let bit = match (op, x.signed) {
                    ("lt", true) => b.lt(&x.int(), &y.int()),
                    ("lt", false) => b.lt(&x.uint(), &y.uint()),
                    ("le", true) => b.le(&x.int(), &y.int()),
                    ("le", false) => b.le(&x.uint(), &y.uint()),
                    _ => b.eq(&x.uint(), &y.uint()),
                };
                (flag(bit), Bit::ZERO)
            }
            _ => return Err(fault::internal("an unknown operation")),
        };
        Ok((result, flag(over)))
    }

    /// Bit by bit the complement.
    fn invert(&self, x: &Wires) -> Wires {
        Wires { bits: x.bits.iter().map(|&bit| !bit).collect(), signed: x.signed }
    }

    /// `then` where the one bit of `choice` is set, else `otherwise`.
    fn mux(&self, choice: &Wires, then: &Wires, otherwise: &Wires) -> Wires {
        let mut b = self.lock();
        let bit = choice.bits.first().copied().unwrap_or(Bit::ZERO);
        Wires { signed: then.signed, ..made(&b.mux(bit, &then.uint(), &otherwise.uint())) }
    }

    /// The same number in another width and sign, and whether it does not fit there.
    fn convert(&self, x: &Wires, width: usize, signed: bool) -> (Wires, Wires) {
        let mut b = self.lock();
        // One bit more than either holds every number of both.
        let wide = x.bits.len().max(width) + 1;
        let all = if x.signed { x.int().resize(wide) } else { x.uint().resize(wide).as_int() };
        let cut = all.as_uint().resize(width);
        let back = if signed { cut.as_int().resize(wide) } else { cut.resize(wide).as_int() };
        let same = b.eq(&all, &back);
        (Wires { signed, ..made(&cut) }, flag(!same))
    }

    /// `x` shifted by `by` places up (or down if negative), in its own width: what falls out is gone.
    fn shift(&self, x: &Wires, by: i64) -> Wires {
        let mut b = self.lock();
        let places = usize::try_from(by.unsigned_abs()).unwrap_or(usize::MAX).min(x.bits.len());
        let shifted = match (by >= 0, x.signed) {
            (true, _) => made(&b.shl(&x.uint(), places)),
            (false, true) => made(&b.shr(&x.int(), places)),
            (false, false) => made(&b.shr(&x.uint(), places)),
        };
        Wires { signed: x.signed, ..shifted }
    }

    /// The values in ascending order.
    fn sort(&self, values: Vec<PyRef<'_, Wires>>) -> Vec<Wires> {
        let mut b = self.lock();
        let network = sort::odd_even_merge(values.len());
        if values.first().is_some_and(|value| value.signed) {
            let mut numbers: Vec<Int> = values.iter().map(|value| value.int()).collect();
            sort::sort(&mut b, &mut numbers, &network);
            return numbers.iter().map(made).collect();
        }
        let mut numbers: Vec<Uint> = values.iter().map(|value| value.uint()).collect();
        sort::sort(&mut b, &mut numbers, &network);
        numbers.iter().map(made).collect()
    }

    /// The circuit with these outputs, and behind them a bit that says whether one of `failures` is set,
    /// which makes every output zero. The first `garbler` inputs are the garbler's.
    fn finish(
        &self,
        py: Python<'_>,
        name: String,
        inputs: Vec<(u32, bool)>,
        garbler: usize,
        outputs: Vec<PyRef<'_, Wires>>,
        failures: Vec<PyRef<'_, Wires>>,
    ) -> PyResult<Circuit> {
        let mut builder = std::mem::take(&mut *self.lock());
        let failed: Vec<Bit> = failures.iter().flat_map(|flag| flag.bits.iter().copied()).collect();
        let failed = builder.any(&failed);
        let mut values: Vec<Uint> = Vec::new();
        for output in &outputs {
            let kept = output.bits.iter().map(|&bit| builder.and(bit, !failed)).collect();
            values.push(Uint::from_bits(kept));
        }
        values.push(Uint::from_bits(vec![failed]));
        let circuit = builder.finish(&values).map_err(|error| fault::usage(py, error.to_string()))?;
        let field = |name, width, signed| {
            let kind = if signed { Kind::Signed } else { Kind::Unsigned };
            Field { kind, ..Field::number(name, width) }
        };
        let all: Vec<Field> = inputs.iter().map(|&(width, signed)| field("input", width, signed)).collect();
        let (garbler, evaluator) = all.split_at(garbler.min(all.len()));
        let mut fields: Vec<Field> =
            outputs.iter().map(|wires| field("output", wires.bits.len() as u32, wires.signed)).collect();
        fields.push(Field::flag("overflow"));
        let (garbler, evaluator) = (garbler.to_vec(), evaluator.to_vec());
        let about = "a function in Python";
        Ok(Circuit(Arc::new(Function { name, about, circuit, garbler, evaluator, outputs: fields })))
    }
}

/// A function that was traced.
#[pyclass(frozen)]
pub struct Circuit(Arc<Function>);

impl Circuit {
    /// The function.
    pub fn function(&self) -> Arc<Function> {
        self.0.clone()
    }
}

#[pymethods]
impl Circuit {
    /// AND gates: what costs.
    #[getter]
    fn and_gates(&self) -> u64 {
        self.0.circuit.stats().and
    }

    /// All gates.
    #[getter]
    fn gates(&self) -> u64 {
        self.0.circuit.stats().gates
    }

    /// Levels of AND gates.
    #[getter]
    fn depth(&self) -> u64 {
        self.0.circuit.stats().depth.into()
    }

    /// The circuit's digest, which both sides compare.
    #[getter]
    fn digest(&self) -> String {
        tacit_crypto::hex(&self.0.circuit.digest())
    }

    /// The outputs for both parties' inputs, in the clear.
    fn run(&self, py: Python<'_>, garbler: &str, evaluator: &str) -> PyResult<Vec<String>> {
        let parse = |fields: &[Field], text: &str| {
            value::parse(fields, text).map_err(|error| fault::input(py, error.to_string()))
        };
        let mut inputs = parse(&self.0.garbler, garbler)?;
        inputs.extend(parse(&self.0.evaluator, evaluator)?);
        let outputs = evaluate(&self.0.circuit, &inputs);
        let shown = self.0.outputs.iter().zip(&outputs);
        Ok(shown.map(|(field, bits)| value::format(field, bits, Format::Decimal)).collect())
    }
}
