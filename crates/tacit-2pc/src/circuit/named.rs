//! Functions by name, with their inputs and outputs described: what `tacit eval NAME` runs.

use super::library::{aes, checked, keccak, modexp, search, sha1, sha2, sort};
use super::value::Field;
use super::{Builder, Circuit, Form, Uint};
use crate::parties::Owner;

/// A function of two parties: a circuit, whose inputs are the garbler's fields and then the evaluator's.
#[derive(Clone, Debug)]
pub struct Function {
    /// The name.
    pub name: String,
    /// What it computes, in a line.
    pub about: &'static str,
    /// The circuit.
    pub circuit: Circuit,
    /// The garbler's inputs.
    pub garbler: Vec<Field>,
    /// The evaluator's inputs.
    pub evaluator: Vec<Field>,
    /// The outputs.
    pub outputs: Vec<Field>,
}

impl Function {
    /// The function of a circuit from a file: its first input, or the first half of them (rounded up), is the
    /// garbler's, the others the evaluator's.
    pub fn from_circuit(name: impl Into<String>, circuit: Circuit) -> Function {
        let field = |&width: &u32| Field::number("input", width);
        let inputs: Vec<Field> = circuit.shape().inputs.iter().map(field).collect();
        let (garbler, evaluator) = inputs.split_at(inputs.len().div_ceil(2));
        Function {
            name: name.into(),
            about: "a circuit from a file",
            garbler: garbler.to_vec(),
            evaluator: evaluator.to_vec(),
            outputs: circuit.shape().outputs.iter().map(|&w| Field::number("output", w)).collect(),
            circuit,
        }
    }

    /// The same with the first `garbler` inputs as the garbler's and the others as the evaluator's; `None` where
    /// there are not so many.
    pub fn with_garbler_inputs(self, garbler: usize) -> Option<Function> {
        let mut inputs = [self.garbler, self.evaluator].concat();
        let evaluator = (garbler <= inputs.len()).then(|| inputs.split_off(garbler))?;
        Some(Function { garbler: inputs, evaluator, ..self })
    }

    /// The inputs of one party.
    pub fn fields(&self, owner: Owner) -> &[Field] {
        match owner {
            Owner::Garbler => &self.garbler,
            Owner::Evaluator => &self.evaluator,
        }
    }

    /// Who owns each of the circuit's inputs.
    pub fn owners(&self) -> Vec<Owner> {
        let garbler = self.garbler.iter().map(|_| Owner::Garbler);
        garbler.chain(self.evaluator.iter().map(|_| Owner::Evaluator)).collect()
    }
}

type Body = fn(&mut Builder, u32, &[Uint]) -> Vec<Uint>;

/// One line of the register: a stem, possibly followed by a size in the name.
struct Entry {
    stem: &'static str,
    /// The size if the name has none; `None` where the name takes none.
    size: Option<u32>,
    /// The smallest size, and the largest.
    smallest: u32,
    limit: u32,
    about: &'static str,
    garbler: fn(u32) -> Vec<Field>,
    evaluator: fn(u32) -> Vec<Field>,
    outputs: fn(u32) -> Vec<Field>,
    body: Body,
}

const fn fixed(
    stem: &'static str,
    about: &'static str,
    garbler: fn(u32) -> Vec<Field>,
    evaluator: fn(u32) -> Vec<Field>,
    outputs: fn(u32) -> Vec<Field>,
    body: Body,
) -> Entry {
    Entry { stem, size: None, smallest: 0, limit: 0, about, garbler, evaluator, outputs, body }
}

/// A function of two numbers of as many bits as the name says.
const fn binary(
    stem: &'static str,
    limit: u32,
    about: &'static str,
    outputs: fn(u32) -> Vec<Field>,
    body: Body,
) -> Entry {
    let operand = |n| vec![Field::number("number", n)];
    Entry {
        stem,
        size: Some(32),
        smallest: 1,
        limit,
        about,
        garbler: operand,
        evaluator: operand,
        outputs,
        body,
    }
}

/// As [`binary`], of numbers in two's complement.
const fn signed(
    stem: &'static str,
    limit: u32,
    about: &'static str,
    outputs: fn(u32) -> Vec<Field>,
    body: Body,
) -> Entry {
    let operand = |n| vec![Field::signed("number", n)];
    Entry {
        stem,
        size: Some(32),
        smallest: 1,
        limit,
        about,
        garbler: operand,
        evaluator: operand,
        outputs,
        body,
    }
}

const OVERFLOW: Field = Field::flag("overflow");
const BY_ZERO: Field = Field::flag("division by zero");

fn number(n: u32) -> Vec<Field> {
    vec![Field::number("result", n)]
}

fn number_or_overflow(n: u32) -> Vec<Field> {
    vec![Field::number("result", n), OVERFLOW]
}

fn signed_number(n: u32) -> Vec<Field> {
    vec![Field::signed("result", n)]
}

fn signed_or_overflow(n: u32) -> Vec<Field> {
    vec![Field::signed("result", n), OVERFLOW]
}

fn signed_ratio(n: u32) -> Vec<Field> {
    vec![Field::signed("result", n), OVERFLOW, BY_ZERO]
}

fn ratio(n: u32) -> Vec<Field> {
    vec![Field::number("result", n), BY_ZERO]
}

fn bit(_: u32) -> Vec<Field> {
    vec![Field::number("result", 1)]
}

fn half_list(n: u32) -> Vec<Field> {
    vec![Field::list("numbers", 32, n / 2)]
}

fn shares(n: u32) -> Vec<Field> {
    vec![Field::list("shares", 32, n)]
}

fn joined(inputs: &[Uint]) -> Uint {
    // The garbler's half comes first in the byte string, so it is the more significant.
    Uint::concat(&inputs[1], &inputs[0])
}

fn numbers(inputs: &[Uint]) -> Vec<Uint> {
    inputs.iter().flat_map(|i| i.bits().chunks(32)).map(|w| Uint::from_bits(w.to_vec())).collect()
}

const AES: &str = "AES: the garbler's key, the evaluator's block";
const SHARED: &str = "SHA-256 of the 32 bytes that the two inputs are XOR shares of";

static REGISTER: &[Entry] = &[
    fixed("aes128", AES, |_| key(128), |_| block(), |_| block(), aes_body),
    fixed("aes192", AES, |_| key(192), |_| block(), |_| block(), aes_body),
    fixed("aes256", AES, |_| key(256), |_| block(), |_| block(), aes_body),
    fixed(
        "sha1",
        "SHA-1's compression function on one block, without padding: the garbler's half, then the \
         evaluator's",
        |_| half(256),
        |_| half(256),
        |_| vec![Field::number("state", 160)],
        |b, _, x| vec![sha1::compress(b, &sha1::initial_state(), &joined(x))],
    ),
    fixed(
        "sha256",
        "SHA-256's compression function on one block, without padding: the garbler's half, then the \
         evaluator's",
        |_| half(256),
        |_| half(256),
        |_| vec![Field::number("state", 256)],
        |b, _, x| vec![sha2::compress_256(b, &sha2::initial_state_256(), &joined(x))],
    ),
    fixed(
        "sha512",
        "SHA-512's compression function on one block, without padding: the garbler's half, then the \
         evaluator's",
        |_| half(512),
        |_| half(512),
        |_| vec![Field::number("state", 512)],
        |b, _, x| vec![sha2::compress_512(b, &sha2::initial_state_512(), &joined(x))],
    ),
    fixed(
        "sha256-shared",
        SHARED,
        |_| vec![Field::number("share", 256)],
        |_| vec![Field::number("share", 256)],
        |_| vec![Field::number("digest", 256)],
        |b, _, x| {
            let message = b.xor_bits(&x[0], &x[1]);
            let padding =
                Uint::from_bits((0..256).map(|i| super::Bit::constant(i == 255 || i == 8)).collect());
            vec![sha2::compress_256(b, &sha2::initial_state_256(), &Uint::concat(&padding, &message))]
        },
    ),
    fixed(
        "keccak-f",
        "Keccak-f[1600] of the state that the two inputs are XOR shares of",
        |_| vec![Field::number("share", 1600)],
        |_| vec![Field::number("share", 1600)],
        |_| vec![Field::number("state", 1600)],
        |b, _, x| {
            let state = b.xor_bits(&x[0], &x[1]);
            vec![keccak::permute(b, &state)]
        },
    ),
    binary("add", 1 << 20, "the sum modulo 2^n", number, |b, _, x| vec![b.add(&x[0], &x[1])]),
    binary("sub", 1 << 20, "the difference modulo 2^n", number, |b, _, x| vec![b.sub(&x[0], &x[1])]),
    binary("mul", 4096, "the product modulo 2^n", number, |b, _, x| vec![b.mul(&x[0], &x[1])]),
    binary("mulwide", 4096, "the full product", |n| number(2 * n), |b, _, x| vec![b.mul_wide(&x[0], &x[1])]),
    binary("div", 1024, "the garbler's number divided by the evaluator's", number, |b, _, x| {
        vec![b.div(&x[0], &x[1])]
    }),
    binary("mod", 1024, "the garbler's number modulo the evaluator's", number, |b, _, x| {
        vec![b.rem(&x[0], &x[1])]
    }),
    binary("min", 1 << 20, "the smaller number", number, |b, _, x| vec![b.min(&x[0], &x[1])]),
    binary("max", 1 << 20, "the larger number", number, |b, _, x| vec![b.max(&x[0], &x[1])]),
    binary("eq", 1 << 20, "1 if the numbers are equal", bit, |b, _, x| {
        vec![Uint::from_bits(vec![b.eq(&x[0], &x[1])])]
    }),
    binary("lt", 1 << 20, "1 if the garbler's number is less", bit, |b, _, x| {
        vec![Uint::from_bits(vec![b.lt(&x[0], &x[1])])]
    }),
    binary("millionaires", 1 << 20, "1 if the garbler is richer", bit, |b, _, x| {
        vec![Uint::from_bits(vec![b.lt(&x[1], &x[0])])]
    }),
    Entry {
        stem: "hamming",
        size: Some(1024),
        smallest: 1,
        limit: 1 << 20,
        about: "the number of bits that differ",
        garbler: |n| vec![Field::number("bits", n)],
        evaluator: |n| vec![Field::number("bits", n)],
        outputs: |n| vec![Field::number("distance", u32::BITS - n.leading_zeros())],
        body: |b, _, x| vec![b.hamming_distance(&x[0], &x[1])],
    },
    Entry {
        stem: "sort",
        size: Some(16),
        smallest: 2,
        limit: 4096,
        about: "the 32-bit numbers of both, half of them each's, in increasing order",
        garbler: half_list,
        evaluator: half_list,
        outputs: |n| vec![Field::list("numbers", 32, n / 2 * 2)],
        body: |b, n, x| {
            let mut values = numbers(x);
            sort::sort(b, &mut values, &sort::odd_even_merge(n as usize / 2 * 2));
            vec![Uint::from_bits(values.iter().flat_map(|v| v.bits().to_vec()).collect())]
        },
    },
    Entry {
        stem: "sort-shared",
        size: Some(16),
        smallest: 2,
        limit: 4096,
        about: "the 32-bit numbers that the two inputs are XOR shares of, in increasing order",
        garbler: shares,
        evaluator: shares,
        outputs: |n| vec![Field::list("numbers", 32, n)],
        body: |b, n, x| {
            let both = b.xor_bits(&x[0], &x[1]);
            let mut values = numbers(&[both]);
            sort::sort(b, &mut values, &sort::odd_even_merge(n as usize));
            vec![Uint::from_bits(values.iter().flat_map(|v| v.bits().to_vec()).collect())]
        },
    },
    Entry {
        stem: "argmin",
        size: Some(16),
        smallest: 2,
        limit: 1 << 14,
        about: "the place, from zero, of the first smallest of both's 32-bit numbers, the garbler's first",
        garbler: half_list,
        evaluator: half_list,
        outputs: |n| vec![Field::number("place", u32::BITS - (n / 2 * 2 - 1).leading_zeros())],
        body: |b, _, x| {
            let values = numbers(x);
            vec![search::argmin(b, &values).0]
        },
    },
    Entry {
        stem: "lookup",
        size: Some(256),
        smallest: 2,
        limit: 1 << 14,
        about: "the entry of the garbler's table of 32-bit numbers at the evaluator's index",
        garbler: |n| vec![Field::list("table", 32, n)],
        evaluator: |n| vec![Field::number("index", u32::BITS - (n - 1).leading_zeros())],
        outputs: |_| vec![Field::number("entry", 32)],
        body: |b, _, x| {
            let table = numbers(&x[..1]);
            vec![search::lookup(b, &table, &x[1])]
        },
    },
    Entry {
        stem: "modexp",
        size: Some(32),
        smallest: 8,
        limit: 64,
        about: "the garbler's number to the power of the evaluator's, modulo the largest prime below 2^n",
        garbler: |n| vec![Field::number("base", n)],
        evaluator: |n| vec![Field::number("exponent", n)],
        outputs: number,
        body: |b, n, x| match modexp::largest_prime(n) {
            Some(modulus) => vec![b.mod_pow(&x[0], &x[1], &modulus)],
            None => vec![x[0].clone()],
        },
    },
    binary(
        "checked-add",
        1 << 20,
        "the sum modulo 2^n, and whether it overflowed",
        number_or_overflow,
        |b, _, x| {
            let (sum, overflow) = checked::add(b, &x[0], &x[1]);
            checked::outputs(&sum, &[overflow])
        },
    ),
    binary(
        "checked-sub",
        1 << 20,
        "the difference modulo 2^n, and whether it overflowed: the evaluator's number is the larger",
        number_or_overflow,
        |b, _, x| {
            let (difference, overflow) = checked::sub(b, &x[0], &x[1]);
            checked::outputs(&difference, &[overflow])
        },
    ),
    binary(
        "checked-mul",
        4096,
        "the product modulo 2^n, and whether it overflowed",
        number_or_overflow,
        |b, _, x| {
            let (product, overflow) = checked::mul(b, &x[0], &x[1]);
            checked::outputs(&product, &[overflow])
        },
    ),
    binary("checked-div", 1024, "as div, and whether the evaluator's number is zero", ratio, |b, _, x| {
        let (quotient, _, by_zero) = checked::div_rem(b, &x[0], &x[1]);
        checked::outputs(&quotient, &[by_zero])
    }),
    binary("checked-mod", 1024, "as mod, and whether the evaluator's number is zero", ratio, |b, _, x| {
        let (_, remainder, by_zero) = checked::div_rem(b, &x[0], &x[1]);
        checked::outputs(&remainder, &[by_zero])
    }),
    signed(
        "signed-add",
        1 << 20,
        "the sum of signed numbers, and whether it overflowed",
        signed_or_overflow,
        |b, _, x| {
            let (sum, overflow) = checked::add(b, &x[0].as_int(), &x[1].as_int());
            checked::outputs(&sum, &[overflow])
        },
    ),
    signed(
        "signed-sub",
        1 << 20,
        "the difference of signed numbers, and whether it overflowed",
        signed_or_overflow,
        |b, _, x| {
            let (difference, overflow) = checked::sub(b, &x[0].as_int(), &x[1].as_int());
            checked::outputs(&difference, &[overflow])
        },
    ),
    signed(
        "signed-mul",
        4096,
        "the product of signed numbers, and whether it overflowed",
        signed_or_overflow,
        |b, _, x| {
            let (product, overflow) = checked::mul(b, &x[0].as_int(), &x[1].as_int());
            checked::outputs(&product, &[overflow])
        },
    ),
    signed(
        "signed-div",
        1024,
        "the quotient of signed numbers, towards zero; whether it overflowed, and whether the divisor is \
         zero",
        signed_ratio,
        |b, _, x| {
            let (x, y) = (x[0].as_int(), x[1].as_int());
            let (quotient, _, by_zero) = checked::div_rem(b, &x, &y);
            let overflow = checked::quotient_overflow(b, &x, &y, &quotient);
            checked::outputs(&quotient, &[overflow, by_zero])
        },
    ),
    signed(
        "signed-mod",
        1024,
        "the remainder of signed numbers, with the dividend's sign; flags as of signed-div",
        signed_ratio,
        |b, _, x| {
            let (x, y) = (x[0].as_int(), x[1].as_int());
            let (quotient, remainder, by_zero) = checked::div_rem(b, &x, &y);
            let overflow = checked::quotient_overflow(b, &x, &y, &quotient);
            checked::outputs(&remainder, &[overflow, by_zero])
        },
    ),
    signed("signed-min", 1 << 20, "the smaller of signed numbers", signed_number, |b, _, x| {
        vec![b.min(&x[0].as_int(), &x[1].as_int()).as_uint()]
    }),
    signed("signed-max", 1 << 20, "the larger of signed numbers", signed_number, |b, _, x| {
        vec![b.max(&x[0].as_int(), &x[1].as_int()).as_uint()]
    }),
    signed("signed-lt", 1 << 20, "1 if the garbler's signed number is less", bit, |b, _, x| {
        vec![Uint::from_bits(vec![b.lt(&x[0].as_int(), &x[1].as_int())])]
    }),
];

fn key(width: u32) -> Vec<Field> {
    vec![Field::number("key", width)]
}

fn block() -> Vec<Field> {
    vec![Field::number("block", 128)]
}

fn half(width: u32) -> Vec<Field> {
    vec![Field::number("half block", width)]
}

fn aes_body(b: &mut Builder, _: u32, inputs: &[Uint]) -> Vec<Uint> {
    vec![aes::encrypt(b, &inputs[0], &inputs[1])]
}

/// The names there are: each with the default size (none where the name takes none), the largest size, and
/// what it computes. A size is written behind the name: `add64`, `sort1024`.
pub fn list() -> impl Iterator<Item = (&'static str, Option<u32>, u32, &'static str)> {
    REGISTER.iter().map(|e| (e.stem, e.size, e.limit, e.about))
}

/// The entry that `name` means, and its size; zero where it has none.
fn entry(name: &str) -> Option<(&'static Entry, u32)> {
    if let Some(entry) = REGISTER.iter().find(|e| e.stem == name) {
        return Some((entry, entry.size.unwrap_or(0)));
    }
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let entry = REGISTER.iter().find(|e| e.stem == stem && e.size.is_some())?;
    let size: u32 = name[stem.len()..].parse().ok()?;
    (entry.smallest..=entry.limit).contains(&size).then_some((entry, size))
}

/// The name in the [`list`] that `name`, perhaps with a size behind it, stands for; `None` if there is none,
/// or not in that size.
pub fn stem(name: &str) -> Option<&'static str> {
    entry(name).map(|(entry, _)| entry.stem)
}

/// What the function called `name` is called in full: with its size, where it takes one. `None` if there is
/// none.
pub fn full_name(name: &str) -> Option<String> {
    let (entry, size) = entry(name)?;
    Some(match entry.size {
        Some(_) => format!("{}{size}", entry.stem),
        None => entry.stem.to_owned(),
    })
}

/// The function called `name`, with its size behind the name where it takes one; `None` if there is none, or
/// not in that size.
pub fn find(name: &str) -> Option<Function> {
    find_in(name, Form::Small)
}

/// As [`find`], with a circuit of that form.
pub fn find_in(name: &str, form: Form) -> Option<Function> {
    let (entry, size) = entry(name)?;
    let (garbler, evaluator) = ((entry.garbler)(size), (entry.evaluator)(size));
    let mut builder = Builder::with_form(form);
    let inputs: Vec<Uint> = garbler.iter().chain(&evaluator).map(|f| builder.input(f.bits())).collect();
    let outputs = (entry.body)(&mut builder, size, &inputs);
    // The builder's own gates always make a circuit.
    let circuit = builder.finish(&outputs).ok()?;
    let outputs = (entry.outputs)(size);
    Some(Function { name: name.to_owned(), about: entry.about, circuit, garbler, evaluator, outputs })
}

/// The circuit with few levels of the built-in function `name`, whose usual circuit has that digest: a circuit of another
/// source may be called like a built-in function.
pub(crate) fn shallow(name: &str, digest: &[u8; 32]) -> Option<Circuit> {
    find(name).filter(|function| function.circuit.digest() == *digest)?;
    Some(find_in(name, Form::Shallow)?.circuit)
}
