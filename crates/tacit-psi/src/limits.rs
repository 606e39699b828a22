//! When a number over common elements is opened, and how much one element may add to it.

use crate::{Error, Result};

/// The least and the most that one element adds to a sum; what is outside counts as the nearer of the two.
///
/// Whoever chooses a column's numbers and learns their sum can read memberships from its digits, by weights
/// 2^i. Bounds that the other side agreed to leave fewer digits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bounds {
    least: i64,
    most: i64,
}

impl Bounds {
    /// Everything that 64 bits hold.
    pub const WIDEST: Self = Bounds { least: i64::MIN, most: i64::MAX };

    /// From `least` to `most`, both included; [`Error::Usage`] where that is nothing.
    pub fn new(least: i64, most: i64) -> Result<Self> {
        match least <= most {
            true => Ok(Bounds { least, most }),
            false => Err(Error::Usage("the lower bound of a number is above the upper bound")),
        }
    }

    /// The least.
    pub const fn least(self) -> i64 {
        self.least
    }

    /// The most.
    pub const fn most(self) -> i64 {
        self.most
    }

    /// The nearest number within.
    pub fn clip(self, number: i128) -> i64 {
        number.clamp(self.least.into(), self.most.into()) as i64
    }

    /// The largest number above the least.
    pub(crate) const fn span(self) -> u64 {
        self.most.wrapping_sub(self.least) as u64
    }

    /// Bits of a number above the least.
    pub(crate) const fn bits(self) -> usize {
        (u64::BITS - self.span().leading_zeros()) as usize
    }

    /// Bits that tell the sums of up to `elements` numbers apart, of which each may be left out: so many memberships
    /// such a sum can carry.
    pub fn sum_bits(self, elements: u64) -> u32 {
        let span = i128::from(self.most.max(0)) - i128::from(self.least.min(0));
        let sums = span.unsigned_abs() * u128::from(elements);
        u128::BITS - sums.leading_zeros()
    }
}

/// What both sides agree on beside the kind of a number.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Limits {
    /// So many elements must count, else the number is withheld.
    pub min_matches: u64,
    /// What one element may add; with bounds its rows count as one number.
    pub bounds: Option<Bounds>,
}

impl From<u64> for Limits {
    fn from(min_matches: u64) -> Self {
        Limits { min_matches, bounds: None }
    }
}
