//! Prime fields for arithmetic correlations: 2^61 − 1, and 2^128 − 159, the largest prime of 128 bits.
//!
//! Constant time. Elements are kept reduced, so equal elements have equal representations.

use crate::Block;
use crate::simd::hidden::hidden;
use core::fmt;
use core::ops::{Add, Mul, Neg, Sub};
use zeroize::DefaultIsZeroes;

/// A prime field whose elements fit a block.
pub trait Field:
    Copy
    + Default
    + PartialEq
    + fmt::Debug
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Neg<Output = Self>
    + DefaultIsZeroes
    + Send
    + Sync
    + 'static
{
    /// Zero.
    const ZERO: Self;
    /// One.
    const ONE: Self;
    /// Bits of an element.
    const BITS: usize;
    /// The field's name, bound to transcripts.
    const NAME: &'static str;
    /// The block's number mod p: nearly uniform for a uniform block (2^-67 off for 2^61 − 1, 2^-120 for 2^128
    /// − 159).
    fn from_block(block: Block) -> Self;
    /// The element as a number below p.
    fn to_block(self) -> Block;
    /// The element of a number below p; `None` for others.
    fn from_canonical(block: Block) -> Option<Self> {
        let element = Self::from_block(block);
        (element.to_block() == block).then_some(element)
    }
    /// `self` where the mask is all ones, zero where it is zero.
    fn masked(self, mask: Block) -> Self {
        // Both numbers are below p.
        Self::from_block(self.to_block() & mask)
    }
}

macro_rules! operators {
    ($field:ident) => {
        impl Sub for $field {
            type Output = Self;
            #[inline(always)]
            fn sub(self, other: Self) -> Self {
                self + -other
            }
        }

        // Slices of elements can be zeroised.
        impl DefaultIsZeroes for $field {}

        impl fmt::Debug for $field {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(concat!(stringify!($field), "([secret])"))
            }
        }
    };
}

/// An element of the field of 2^61 − 1 elements.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct F61(u64);

const P61: u64 = (1 << 61) - 1;

impl F61 {
    /// The number mod p.
    #[inline(always)]
    pub fn new(x: u64) -> Self {
        F61::reduce((x & P61) + (x >> 61))
    }

    /// The number below p.
    pub const fn value(self) -> u64 {
        self.0
    }

    /// From a number up to 2p − 1.
    #[inline(always)]
    fn reduce(x: u64) -> Self {
        let less = x.wrapping_sub(P61);
        // Else the compiler makes a branch of it, as in the products of `tacit-ot`'s `ole`.
        let borrow = hidden((less >> 63).wrapping_neg());
        F61(less.wrapping_add(P61 & borrow))
    }
}

impl Add for F61 {
    type Output = Self;
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        F61::reduce(self.0 + other.0)
    }
}

impl Neg for F61 {
    type Output = Self;
    #[inline(always)]
    fn neg(self) -> Self {
        F61::reduce(P61 - self.0)
    }
}

impl Mul for F61 {
    type Output = Self;
    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        let product = self.0 as u128 * other.0 as u128;
        F61::reduce((product as u64 & P61) + (product >> 61) as u64)
    }
}

impl Field for F61 {
    const ZERO: Self = F61(0);
    const ONE: Self = F61(1);
    const BITS: usize = 61;
    const NAME: &'static str = "2^61 - 1";

    fn from_block(block: Block) -> Self {
        // 2^64 = 8 mod p.
        F61::new(block.low()) + F61::new(block.high()) * F61(8)
    }

    fn to_block(self) -> Block {
        Block::new(self.0 as u128)
    }
}

operators!(F61);

/// An element of the field of 2^128 − 159 elements.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct F128(u128);

/// 2^128 − p.
const C: u128 = 159;

impl F128 {
    /// The number mod p.
    #[inline(always)]
    pub fn new(x: u128) -> Self {
        F128::reduce(x, 0)
    }

    /// The number below p.
    pub const fn value(self) -> u128 {
        self.0
    }

    /// x + carry · 2^128 mod p, where the whole is below 2p.
    #[inline(always)]
    fn reduce(x: u128, carry: u128) -> Self {
        let (more, over) = x.overflowing_add(C);
        let take = Block::mask(carry | u128::from(over) == 1).to_u128();
        F128(more & take | x & !take)
    }
}

/// The product's low and high 128 bits.
#[inline(always)]
const fn wide(a: u128, b: u128) -> (u128, u128) {
    const LOW: u128 = u64::MAX as u128;
    let (a0, a1, b0, b1) = (a & LOW, a >> 64, b & LOW, b >> 64);
    let low = a0 * b0;
    let cross = a1 * b0 + (low >> 64);
    let middle = a0 * b1 + (cross & LOW);
    (low & LOW | middle << 64, a1 * b1 + (cross >> 64) + (middle >> 64))
}

impl Add for F128 {
    type Output = Self;
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        let (sum, carry) = self.0.overflowing_add(other.0);
        F128::reduce(sum, carry as u128)
    }
}

impl Neg for F128 {
    type Output = Self;
    #[inline(always)]
    fn neg(self) -> Self {
        F128::reduce(0u128.wrapping_sub(C).wrapping_sub(self.0), 0)
    }
}

impl Mul for F128 {
    type Output = Self;
    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        // 2^128 = 159 mod p, twice.
        let (low, high) = wide(self.0, other.0);
        let (low_2, high_2) = wide(high, C);
        let (sum, carry) = low.overflowing_add(low_2);
        let (sum, carry_2) = sum.overflowing_add((high_2 + carry as u128) * C);
        F128::reduce(sum, carry_2 as u128)
    }
}

impl Field for F128 {
    const ZERO: Self = F128(0);
    const ONE: Self = F128(1);
    const BITS: usize = 128;
    const NAME: &'static str = "2^128 - 159";

    fn from_block(block: Block) -> Self {
        F128::new(block.to_u128())
    }

    fn to_block(self) -> Block {
        Block::new(self.0)
    }
}

operators!(F128);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Prg;

    /// Double and add, with additions that were checked by themselves.
    fn slow_product<F: Field>(a: F, b: F) -> F {
        (0..F::BITS).rev().fold(F::ZERO, |sum, i| {
            let twice = sum + sum;
            if b.to_block().bit(i) { twice + a } else { twice }
        })
    }

    fn laws<F: Field>(p: u128) {
        let mut prg = Prg::from_seed(Block::new(8));
        let edges = [0, 1, 2, 3, p - 1, p - 2, p / 2, p / 2 + 1, 158, 159, 160, 1 << 60, 1 << 32];
        let mut values: Vec<F> = edges.iter().map(|&x| F::from_block(Block::new(x % p))).collect();
        values.extend((0..20).map(|_| F::from_block(prg.block())));
        for &a in &values {
            assert!(a.to_block().to_u128() < p);
            assert!(a + -a == F::ZERO && a * F::ONE == a);
            assert!(a.masked(Block::ONES) == a && a.masked(Block::ZERO) == F::ZERO);
            for &b in &values {
                let (x, y) = (a.to_block().to_u128(), b.to_block().to_u128());
                let sum = if x >= p - y { x - (p - y) } else { x + y };
                assert_eq!((a + b).to_block().to_u128(), sum);
                assert!(a * b == slow_product(a, b) && a - b == a + -b);
            }
        }
        assert!(F::from_canonical(Block::new(p)).is_none() && F::from_canonical(Block::ONES).is_none());
        assert!(F::from_canonical(Block::new(p - 1)) == Some(-F::ONE));
        // Fermat, which a composite modulus would fail.
        let mut power = F::ONE;
        for i in (0..128).rev() {
            power = power * power;
            if (p - 1) >> i & 1 == 1 {
                power = power * F::from_block(Block::new(3));
            }
        }
        assert!(power == F::ONE);
    }

    #[test]
    fn the_fields_are_fields() {
        laws::<F61>(P61 as u128);
        laws::<F128>(u128::MAX - 158);
        assert_eq!(F61::from_block(Block::ONES).value() as u128, u128::MAX % P61 as u128);
    }
}
