//! GF(2^128) = GF(2)\[x\]/(x^128 + x^7 + x^2 + x + 1); bit i of a block is the coefficient of x^i.
//!
//! ```
//! use tacit_crypto::{Block, gf128};
//! let x127 = Block::new(1 << 127);
//! assert_eq!(gf128::mul(x127, Block::new(2)), Block::new(0x87));
//! ```

use crate::Block;
use crate::simd::{self, Backend};
use zeroize::{Zeroize, ZeroizeOnDrop};

/// The product of `a` and `b`.
pub fn mul(a: Block, b: Block) -> Block {
    simd::gf128::mul(Backend::active(), a, b)
}

/// The inverse of `a`, a^(2^128 − 2); zero for zero. Constant time.
pub fn inverse(a: Block) -> Block {
    // After i rounds the power is a^(2^i − 1).
    let power = (1..127).fold(a, |power, _| mul(mul(power, power), a));
    mul(power, power)
}

/// Σ a\[i\]·b\[i\], reduced once at the end; panics when the lengths differ.
pub fn inner_product(a: &[Block], b: &[Block]) -> Block {
    simd::gf128::reduce(simd::gf128::accumulate(Backend::active(), a, b))
}

/// Writes 1·base, base^2, base^3, … into `out`: `out[i] = base^(i+1)`.
pub fn powers(base: Block, out: &mut [Block]) {
    simd::gf128::powers(Backend::active(), base, out);
}

/// All products of subsets of `variables`: entry q is the product of those whose bit is set in q.
pub fn monomials(variables: &[Block]) -> Vec<Block> {
    let mut out = vec![Block::ONE; 1 << variables.len()];
    simd::gf128::monomials(Backend::active(), variables, &mut out);
    out
}

/// Multiplies every block by the factor at its place, in place; panics when the lengths differ.
pub fn multiply_each(blocks: &mut [Block], factors: &[Block]) {
    simd::gf128::multiply_each(Backend::active(), blocks, factors);
}

/// Multiplies every block by `factor`, in place.
pub fn scale(blocks: &mut [Block], factor: Block) {
    simd::gf128::scale(Backend::active(), blocks, factor);
}

/// Adds `input[i] * factor` to `out[i]`; panics when the lengths differ.
pub fn multiply_add(out: &mut [Block], input: &[Block], factor: Block) {
    simd::gf128::multiply_add(Backend::active(), out, input, factor);
}

/// An inner product that grows piece by piece and is reduced once, at the end.
#[derive(Clone, Default, Zeroize, ZeroizeOnDrop)]
pub struct Accumulator {
    /// Sums of the products of the low halves, of the crossed halves, of the high halves.
    sums: [Block; 3],
}

impl core::fmt::Debug for Accumulator {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Accumulator([secret])")
    }
}

impl Accumulator {
    /// The empty sum.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds Σ a\[i\]·b\[i\]; panics when the lengths differ.
    pub fn add(&mut self, a: &[Block], b: &[Block]) {
        let part = simd::gf128::accumulate(Backend::active(), a, b);
        for (sum, part) in self.sums.iter_mut().zip(part) {
            *sum ^= part;
        }
    }

    /// The sum so far.
    pub fn finish(&self) -> Block {
        simd::gf128::reduce(self.sums)
    }
}

/// The same weighted sum over each of many columns, piece by piece: Σ_j χ_j·column_i\[j\] for every column i.
///
/// This is the column hash of the revised KOS15 check (2015/546, section 4): 128 columns, hashed in blocks of
/// 128 bits under weights that all columns share.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct ColumnSums {
    sums: Vec<[Block; 3]>,
}

impl core::fmt::Debug for ColumnSums {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("ColumnSums([secret])")
    }
}

impl ColumnSums {
    /// Empty sums over `columns` columns.
    pub fn new(columns: usize) -> Self {
        ColumnSums { sums: vec![[Block::ZERO; 3]; columns] }
    }

    /// Adds Σ_j weights\[j\]·columns[i * stride + j] to the sum of each column `i`.
    ///
    /// `stride` and `weights.len()` count blocks. Panics when a column is shorter than the weights.
    pub fn add(&mut self, columns: &[Block], stride: usize, weights: &[Block]) {
        simd::gf128::accumulate_columns(Backend::active(), columns, stride, weights, &mut self.sums);
    }

    /// The sums so far, one a column.
    pub fn finish(&self) -> Vec<Block> {
        self.sums.iter().map(|&sums| simd::gf128::reduce(sums)).collect()
    }
}
