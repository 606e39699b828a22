//! Functions by name that are too large to hold: programs, which run as they are made.
//!
//! The names go on where those of [`named`](super::named) end: `modexp1024`, `sort65536`.

use super::library::modexp::{ModExp, largest_prime};
use super::library::sort::Sorting;
use super::value::Field;
use super::{Builder, Program, Shape, Uint};
use crate::parties::Owner;

/// A function of two parties whose gates are made while it runs.
#[derive(Clone, Debug)]
pub struct LongFunction {
    /// The name.
    pub name: String,
    /// What it computes, in a line.
    pub about: &'static str,
    /// The garbler's inputs.
    pub garbler: Vec<Field>,
    /// The evaluator's inputs.
    pub evaluator: Vec<Field>,
    /// The outputs.
    pub outputs: Vec<Field>,
    /// AND gates.
    pub ands: u64,
    make: Make,
}

#[derive(Clone, Debug)]
enum Make {
    ModExp(super::Modulus),
    Sort(u32),
}

/// Widths of modular exponentiations, and their AND gates.
pub const MODEXP: [(u32, u64); 10] = [
    (96, 3_335_345),
    (128, 7_831_233),
    (192, 24_161_461),
    (256, 55_759_454),
    (384, 174_721_117),
    (512, 415_772_065),
    (768, 1_323_633_795),
    (1024, 3_003_486_009),
    (1536, 9_856_862_942),
    (2048, 22_769_709_362),
];

/// The most numbers of a sort. Every one holds 32 labels as long as the run takes.
pub const LARGEST_SORT: u32 = 1 << 18;

impl LongFunction {
    /// The function called `name`; `None` if there is none, or not in that size.
    pub fn find(name: &str) -> Option<Self> {
        let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
        // As the name is written: no sign, no zero in front.
        let digits = &name[stem.len()..];
        let size: u32 = digits.parse().ok().filter(|size: &u32| size.to_string() == digits)?;
        let name = name.to_owned();
        match stem {
            "modexp" => {
                let (_, ands) = *MODEXP.iter().find(|(width, _)| *width == size)?;
                Some(LongFunction {
                    name,
                    about: "the garbler's number to the power of the evaluator's, modulo the largest prime below 2^n",
                    garbler: vec![Field::number("base", size)],
                    evaluator: vec![Field::number("exponent", size)],
                    outputs: vec![Field::number("result", size)],
                    ands,
                    make: Make::ModExp(largest_prime(size)?),
                })
            }
            "sort" if (4097..=LARGEST_SORT).contains(&size) && size.is_multiple_of(2) => Some(LongFunction {
                name,
                about: "the 32-bit numbers of both, half of them each's, in increasing order",
                garbler: vec![Field::list("numbers", 32, size / 2)],
                evaluator: vec![Field::list("numbers", 32, size / 2)],
                outputs: vec![Field::list("numbers", 32, size)],
                ands: Sorting::ands(size as usize),
                make: Make::Sort(size),
            }),
            _ => None,
        }
    }

    /// Names that there are: every width of modular exponentiation, and sorts of powers of two.
    pub fn names() -> impl Iterator<Item = String> {
        let sorts = (13..=LARGEST_SORT.ilog2()).map(|power| format!("sort{}", 1u32 << power));
        MODEXP.into_iter().map(|(width, _)| format!("modexp{width}")).chain(sorts)
    }

    /// The program, from its beginning.
    pub fn program(&self) -> Box<dyn Program + Send> {
        match &self.make {
            Make::ModExp(modulus) => Box::new(ModExp::new(modulus.clone(), modulus.width())),
            Make::Sort(lines) => Box::new(Sorting::new(*lines as usize)),
        }
    }

    /// The inputs of one party.
    pub fn fields(&self, owner: Owner) -> &[Field] {
        match owner {
            Owner::Garbler => &self.garbler,
            Owner::Evaluator => &self.evaluator,
        }
    }

    /// Who owns each of the program's inputs.
    pub fn owners(&self) -> Vec<Owner> {
        let garbler = self.garbler.iter().map(|_| Owner::Garbler);
        garbler.chain(self.evaluator.iter().map(|_| Owner::Evaluator)).collect()
    }
}

impl<P: Program + ?Sized> Program for Box<P> {
    fn identity(&self) -> String {
        (**self).identity()
    }

    fn shape(&self) -> Shape {
        (**self).shape()
    }

    fn step(&mut self, builder: &mut Builder, inputs: &[Uint]) -> Option<Vec<Uint>> {
        (**self).step(builder, inputs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::circuit::{count_ands, named};

    /// AND gates of an exponentiation by an exponent of so many bits.
    fn ands(width: u32, bits: usize) -> u64 {
        count_ands(ModExp::new(largest_prime(width).unwrap(), bits))
    }

    /// Every bit of the exponent costs what the second does.
    #[test]
    fn and_gates_are_what_the_table_says() {
        let checked = if cfg!(feature = "long-tests") { MODEXP.len() } else { 5 };
        for (width, told) in &MODEXP[..checked] {
            let [one, two] = [1, 2].map(|bits| ands(*width, bits));
            assert_eq!(one + (two - one) * (u64::from(*width) - 1), *told, "modexp{width}");
        }
        assert_eq!(ands(96, 5), ands(96, 1) + 4 * (ands(96, 2) - ands(96, 1)));
    }

    #[test]
    fn names_go_on_where_circuits_end() {
        for name in LongFunction::names() {
            let function = LongFunction::find(&name).unwrap();
            assert!(named::find(&name).is_none(), "{name}");
            let (shape, fields) =
                (function.program().shape(), |of: &[Field]| -> u32 { of.iter().map(Field::bits).sum() });
            assert_eq!(shape.inputs, [fields(&function.garbler), fields(&function.evaluator)]);
            assert_eq!(shape.outputs, [fields(&function.outputs)]);
        }
        for name in
            ["modexp", "modexp64", "modexp97", "modexp01024", "sort4096", "sort4099", "sort", "sort262146"]
        {
            assert!(LongFunction::find(name).is_none(), "{name}");
        }
    }
}
