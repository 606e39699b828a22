//! Statistics of the numbers of common keys.

use super::places::{BITS, Place, SharedPlace, bit, enough, fold_places, gated};
use crate::Result;
use tacit_2pc::batch::fold::{Fold, Part};
use tacit_2pc::circuit::{Bit, Builder, Int, Integer, Uint};
use tacit_crypto::BitVec;
use tacit_psi::Bounds;
use zeroize::Zeroizing;

/// A statistic of the numbers of common keys, which needs no function of the caller's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Statistic {
    /// The largest.
    Max,
    /// The smallest.
    Min,
    /// How many keys have one that is larger than this, in the smallest unit of the column.
    Over(i64),
}

impl Statistic {
    /// What stands for a key without a number, which then does not count: no cell may hold it.
    pub const fn absent(self) -> i64 {
        match self {
            Statistic::Max | Statistic::Over(_) => i64::MIN,
            Statistic::Min => i64::MAX,
        }
    }

    /// The number of a key out of those of two of its rows.
    pub fn of_rows(self, a: i64, b: i64) -> i64 {
        match self {
            Statistic::Max | Statistic::Over(_) => a.max(b),
            Statistic::Min => a.min(b),
        }
    }

    /// The numbers within `bounds`; keys without one stay so.
    pub(super) fn clipped(self, numbers: &[i64], bounds: Option<Bounds>) -> Zeroizing<Vec<i64>> {
        let clip = |&number: &i64| match bounds {
            Some(bounds) if number != self.absent() => bounds.clip(number.into()),
            _ => number,
        };
        Zeroizing::new(numbers.iter().map(clip).collect())
    }

    /// Whether `min_matches` keys count, whether any does, and the number, all of it zero unless the first.
    pub(super) fn compute(
        self,
        b: &mut Builder,
        places: &[Place],
        owner: usize,
        min_matches: u64,
    ) -> Vec<Uint> {
        let absent = Int::constant(self.absent().into(), BITS);
        let mut counted = Vec::with_capacity(places.len());
        let mut numbers = Vec::with_capacity(places.len());
        for place in places {
            let number = &place.numbers[owner];
            let missing = b.eq(number, &absent);
            let counts = b.and(place.common, !missing);
            counted.push(counts);
            numbers.push(b.mux(counts, number, &absent));
        }
        let matches = b.count_ones(&counted);
        let enough = enough(b, &matches, min_matches);
        let any = b.any(&counted);
        let value = match self {
            Statistic::Over(limit) => {
                let limit = Int::constant(limit.into(), BITS);
                let over: Vec<Bit> = numbers.iter().map(|number| b.lt(&limit, number)).collect();
                b.count_ones(&over).resize(BITS)
            }
            Statistic::Max => fold(b, numbers, &absent, Builder::max).as_uint(),
            Statistic::Min => fold(b, numbers, &absent, Builder::min).as_uint(),
        };
        let any = b.and(any, enough);
        let value = value.bits().iter().map(|&bit| b.and(bit, any)).collect();
        vec![Uint::from_bits(vec![enough]), Uint::from_bits(vec![any]), Uint::from_bits(value)]
    }

    /// The number in an order without signs in which what counts is largest and zero stands for none; and back.
    fn ordered(self, number: &Uint) -> Uint {
        let last = number.bits().len().saturating_sub(1);
        let turned =
            |(at, &bit): (usize, &Bit)| if (at == last) != (self == Statistic::Min) { !bit } else { bit };
        Uint::from_bits(number.bits().iter().enumerate().map(turned).collect())
    }

    /// The same as its circuit over all places, but over rows side by side.
    pub(super) fn fold(
        self,
        places: usize,
        owner: usize,
        silent: [bool; 2],
        min_matches: u64,
    ) -> Result<Fold> {
        let row = |b: &mut Builder, input: &Uint| {
            let place = SharedPlace::of(input, silent);
            let number = &place.numbers[owner];
            let counts = b.and(place.common, place.there[owner]);
            let kept = match self {
                Statistic::Over(limit) => {
                    let over = b.lt(&Int::constant(limit.into(), BITS), &number.as_int());
                    Part::Sum(bit(b.and(over, counts)))
                }
                Statistic::Max | Statistic::Min => Part::Largest(gated(b, &self.ordered(number), counts)),
            };
            vec![Part::Sum(bit(counts)), kept]
        };
        let last = |b: &mut Builder, totals: &[Uint]| {
            let [matches, value] = totals else { return Vec::new() };
            let enough = enough(b, matches, min_matches);
            let any = b.any(matches.bits());
            let any = b.and(any, enough);
            let value = match self {
                Statistic::Over(_) => value.resize(BITS),
                Statistic::Max | Statistic::Min => self.ordered(value),
            };
            vec![bit(enough), bit(any), gated(b, &value, any)]
        };
        fold_places(places, &row, &last)
    }

    /// Reads what [`compute`](Self::compute) opened.
    pub(super) fn read(outputs: &[BitVec]) -> Option<Found> {
        let [enough, any, value] = outputs else { return None };
        let number = value.iter().enumerate().fold(0u64, |sum, (i, bit)| sum | (u64::from(bit) << i));
        Some(match (enough.get(0), any.get(0)) {
            (false, _) => Found::Withheld,
            (true, false) => Found::Nothing,
            (true, true) => Found::Number(number as i64),
        })
    }
}

/// What a statistic came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Found {
    /// Fewer keys count than the least number.
    Withheld,
    /// No common key has a number.
    Nothing,
    /// The statistic.
    Number(i64),
}

/// A tree of `op`, so that little depends on one another.
fn fold(b: &mut Builder, mut values: Vec<Int>, none: &Int, op: fn(&mut Builder, &Int, &Int) -> Int) -> Int {
    while values.len() > 1 {
        values = values
            .chunks(2)
            .map(|pair| match pair {
                [x, y] => op(b, x, y),
                _ => pair[0].clone(),
            })
            .collect();
    }
    values.pop().unwrap_or_else(|| none.clone())
}
