//! [`Block`]: 128 bits, the unit that every protocol moves.

use crate::simd::hidden::hidden;
use alloc::{format, string::String};
use core::fmt;
use core::ops::{BitAnd, BitAndAssign, BitOr, BitXor, BitXorAssign, Not};
use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};
use zeroize::DefaultIsZeroes;

/// 128 bits, read little-endian: bit 0 is the lowest bit of byte 0.
///
/// A block is usually a secret, so `Debug` does not show it; tests print [`Block::to_hex`].
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Block(pub(crate) u128);

/// Bytes in lower-case hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Block {
    /// All bits zero.
    pub const ZERO: Block = Block(0);
    /// Only bit 0 set.
    pub const ONE: Block = Block(1);
    /// All bits one.
    pub const ONES: Block = Block(u128::MAX);

    /// The block whose little-endian value is `value`.
    #[inline(always)]
    pub const fn new(value: u128) -> Self {
        Block(value)
    }

    /// The little-endian value.
    #[inline(always)]
    pub const fn to_u128(self) -> u128 {
        self.0
    }

    /// From 16 bytes in memory order.
    #[inline(always)]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Block(u128::from_le_bytes(bytes))
    }

    /// The 16 bytes in memory order.
    #[inline(always)]
    pub const fn to_bytes(self) -> [u8; 16] {
        self.0.to_le_bytes()
    }

    /// From the low and the high 64 bits.
    #[inline(always)]
    pub const fn from_halves(low: u64, high: u64) -> Self {
        Block(low as u128 | (high as u128) << 64)
    }

    /// The low 64 bits.
    #[inline(always)]
    pub const fn low(self) -> u64 {
        self.0 as u64
    }

    /// The high 64 bits.
    #[inline(always)]
    pub const fn high(self) -> u64 {
        (self.0 >> 64) as u64
    }

    /// Bit 0, which carries the choice bit of a correlated OT and the colour bit of a wire label.
    #[inline(always)]
    pub const fn lsb(self) -> bool {
        self.0 & 1 == 1
    }

    /// The same block with bit 0 replaced.
    #[inline(always)]
    pub const fn with_lsb(self, bit: bool) -> Self {
        Block(self.0 & !1 | bit as u128)
    }

    /// Bit `index` (below 128).
    #[inline(always)]
    pub const fn bit(self, index: usize) -> bool {
        self.0 >> index & 1 == 1
    }

    /// All ones if `bit`, else all zeros, without a branch: `delta & Block::mask(bit)`.
    #[inline(always)]
    pub fn mask(bit: bool) -> Self {
        let half = hidden(u64::from(bit).wrapping_neg());
        Block::from_halves(half, half)
    }

    /// Lower-case hex of the bytes in memory order, for vectors and tests.
    pub fn to_hex(self) -> String {
        hex(&self.to_bytes())
    }

    /// The blocks' bytes in memory order.
    #[inline(always)]
    pub fn as_bytes(blocks: &[Block]) -> &[u8] {
        bytemuck::cast_slice(blocks)
    }

    /// The blocks' bytes in memory order, writable.
    #[inline(always)]
    pub fn as_bytes_mut(blocks: &mut [Block]) -> &mut [u8] {
        bytemuck::cast_slice_mut(blocks)
    }
}

impl fmt::Debug for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Block([secret])")
    }
}

impl From<[u8; 16]> for Block {
    fn from(bytes: [u8; 16]) -> Self {
        Block::from_bytes(bytes)
    }
}

// Slices of such types can be zeroised.
impl DefaultIsZeroes for Block {}

impl ConstantTimeEq for Block {
    fn ct_eq(&self, other: &Self) -> Choice {
        self.0.ct_eq(&other.0)
    }
}

impl ConditionallySelectable for Block {
    #[inline]
    fn conditional_select(a: &Self, b: &Self, choice: Choice) -> Self {
        Block(u128::conditional_select(&a.0, &b.0, choice))
    }
}

macro_rules! operator {
    ($trait:ident, $method:ident, $op:tt) => {
        impl $trait for Block {
            type Output = Block;
            #[inline(always)]
            fn $method(self, other: Block) -> Block {
                Block(self.0 $op other.0)
            }
        }
    };
}
operator!(BitXor, bitxor, ^);
operator!(BitAnd, bitand, &);
operator!(BitOr, bitor, |);

impl BitXorAssign for Block {
    #[inline(always)]
    fn bitxor_assign(&mut self, other: Block) {
        self.0 ^= other.0;
    }
}

impl BitAndAssign for Block {
    #[inline(always)]
    fn bitand_assign(&mut self, other: Block) {
        self.0 &= other.0;
    }
}

impl Not for Block {
    type Output = Block;
    #[inline(always)]
    fn not(self) -> Block {
        Block(!self.0)
    }
}
