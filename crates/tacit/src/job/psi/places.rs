//! What is shared of each place of an intersection, and the parts of circuits that all of them have.

use crate::Result;
use tacit_2pc::batch::fold::{Fold, Part};
use tacit_2pc::circuit::{Bit, Builder, Int, Integer, Uint};
use tacit_crypto::Block;

/// Bits of a number of a key.
pub(super) const BITS: usize = 64;

/// The bit of a shared number that says whether the key has one.
pub(super) const THERE: usize = BITS;
/// Bits of a row of a fold: two numbers, whether the place holds a common key, and whether each side's number is there.
const PLACE: usize = 2 * BITS + 3;

/// A place of the intersection inside the circuit: whether there is a common key, and both parties' numbers
/// of it, of the one that listens first. Without a common key, and of a party that gives no numbers, they are
/// zero.
#[derive(Clone)]
pub struct Place {
    /// Whether it holds a common key.
    pub common: Bit,
    /// The numbers of that key.
    pub numbers: [Int; 2],
}

/// The same in a row of a fold, before anything is cut to zero: without a common key the numbers are noise.
pub(super) struct SharedPlace {
    pub(super) common: Bit,
    pub(super) numbers: [Uint; 2],
    pub(super) there: [Bit; 2],
}

impl SharedPlace {
    /// Of a row's bits. Of the sides that `silent` names the numbers are zero, whatever they put in.
    pub(super) fn of(input: &Uint, silent: [bool; 2]) -> Self {
        let number = |side: usize| match silent[side] {
            true => Uint::constant(0, BITS),
            false => input.slice(side * BITS..(side + 1) * BITS),
        };
        let there = |side: usize| if silent[side] { Bit::ONE } else { input.bits()[2 * BITS + 1 + side] };
        SharedPlace {
            common: input.bits()[2 * BITS],
            numbers: [number(0), number(1)],
            there: [there(0), there(1)],
        }
    }
}

/// A number of a key as it is shared, with the bit [`THERE`] set unless it is `absent`.
pub(super) fn block(number: i64, absent: Option<i64>) -> Block {
    let there = u128::from(absent != Some(number));
    Block::new(u128::from(number as u64) | there << THERE)
}

/// Whether so many keys are enough.
pub(in crate::job) fn enough(b: &mut Builder, matches: &Uint, min_matches: u64) -> Bit {
    let least = Uint::constant(i128::from(min_matches), matches.bits().len().max(BITS + 1));
    let matches = matches.resize(least.bits().len());
    b.le(&least, &matches)
}

/// A number cut to zero unless `by`.
pub(in crate::job) fn gated(b: &mut Builder, number: &Uint, by: Bit) -> Uint {
    Uint::from_bits(number.bits().iter().map(|&bit| b.and(bit, by)).collect())
}

/// One bit as a number.
pub(in crate::job) fn bit(bit: Bit) -> Uint {
    Uint::from_bits(vec![bit])
}

/// The fold of so many places.
pub(super) fn fold_places(
    places: usize,
    row: &dyn Fn(&mut Builder, &Uint) -> Vec<Part>,
    last: &dyn Fn(&mut Builder, &[Uint]) -> Vec<Uint>,
) -> Result<Fold> {
    Ok(Fold::new(places, PLACE, row, last)?)
}
