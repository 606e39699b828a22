//! Integers of any width, signed and unsigned: bits, lowest first.

use super::{Bit, Wires};

/// An unsigned integer: its bits, lowest first.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Uint {
    pub(super) bits: Vec<Bit>,
}

/// A signed integer in two's complement: its bits, lowest first.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Int {
    bits: Vec<Bit>,
}

/// What signed and unsigned integers share.
pub trait Integer: Clone + Wires {
    /// Whether the highest bit is a sign.
    const SIGNED: bool;
    /// From bits, lowest first.
    fn from_bits(bits: Vec<Bit>) -> Self;
    /// The bits, lowest first.
    fn bits(&self) -> &[Bit];

    /// The number of bits.
    fn width(&self) -> usize {
        self.bits().len()
    }

    /// The fewest bits that hold the number whatever the unknown bits are: those above repeat the sign, or are
    /// zero.
    fn significant(&self) -> usize {
        let bits = self.bits();
        let idle = |fill: Bit| bits.iter().rev().take_while(|&&bit| bit == fill).count();
        match (Self::SIGNED, bits.last()) {
            (true, Some(&sign)) => bits.len() + 1 - idle(sign),
            _ => (bits.len() - idle(Bit::ZERO)).max(1),
        }
    }

    /// The lowest `width` bits of `value` (two's complement; past 128 bits the sign goes on).
    fn constant(value: i128, width: usize) -> Self {
        Self::from_bits((0..width).map(|i| Bit::constant(value >> i.min(127) & 1 == 1)).collect())
    }

    /// The same number in `width` bits: extended by zeros or by its sign, or cut.
    fn resize(&self, width: usize) -> Self {
        let fill = match (Self::SIGNED, self.bits().last()) {
            (true, Some(&sign)) => sign,
            _ => Bit::ZERO,
        };
        let bits = self.bits();
        Self::from_bits((0..width).map(|i| bits.get(i).copied().unwrap_or(fill)).collect())
    }
}

macro_rules! integer {
    ($name:ident, $signed:literal) => {
        impl Integer for $name {
            const SIGNED: bool = $signed;
            fn from_bits(bits: Vec<Bit>) -> Self {
                $name { bits }
            }
            fn bits(&self) -> &[Bit] {
                &self.bits
            }
        }
        impl Wires for $name {
            fn visit(&self, visit: &mut dyn FnMut(Bit)) {
                self.bits.visit(visit);
            }
        }
    };
}
integer!(Uint, false);
integer!(Int, true);

impl Uint {
    /// From bits, lowest first.
    pub fn from_bits(bits: Vec<Bit>) -> Self {
        Uint { bits }
    }

    /// The bits, lowest first.
    pub fn bits(&self) -> &[Bit] {
        &self.bits
    }

    /// The same bits read in two's complement.
    pub fn as_int(&self) -> Int {
        Int { bits: self.bits.clone() }
    }

    /// Bits `range` as a number of their own.
    pub fn slice(&self, range: core::ops::Range<usize>) -> Uint {
        Uint { bits: self.bits[range].to_vec() }
    }

    /// `low` with `high` above it.
    pub fn concat(low: &Uint, high: &Uint) -> Uint {
        Uint { bits: [low.bits.as_slice(), &high.bits].concat() }
    }
}

impl Int {
    /// The same bits read as an unsigned number.
    pub fn as_uint(&self) -> Uint {
        Uint { bits: self.bits.clone() }
    }

    pub(super) fn sign(&self) -> Bit {
        self.bits.last().copied().unwrap_or(Bit::ZERO)
    }
}
