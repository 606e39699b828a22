//! Products of polynomials over GF(2) with millions of coefficients, one factor prepared.
//!
//! Coefficients are packed 64 a word, lowest first. A polynomial becomes one in X = x^64 over GF(2^128), whose products
//! of coefficients do not overflow; that is evaluated at 2^m points by an additive FFT (Lin–Chung–Han, FOCS '14, in the
//! Cantor basis of Gao–Mateer 2010, where the change of basis is XOR only), multiplied and interpolated.

use crate::simd::gf2x::{MIN_LOG, Twiddles};
use crate::simd::{self, Backend};
use crate::{Block, Buffer};
use std::sync::LazyLock;

/// Points of the largest transform, as a power of two: products up to 2^33 coefficients.
const MAX_LOG: u32 = 27;

/// β_0 = 1 and β_{i+1}² + β_{i+1} = β_i.
static BASIS: LazyLock<Vec<Block>> = LazyLock::new(|| {
    // Row-reduce y ↦ y² + y, each image beside what it came from.
    let mut rows: Vec<(u128, u128)> = Vec::new();
    for i in 0..128 {
        let y = Block::new(1 << i);
        let mut row = ((crate::gf128::mul(y, y) ^ y).to_u128(), y.to_u128());
        for &(image, source) in &rows {
            if row.0 ^ image < row.0 {
                row = (row.0 ^ image, row.1 ^ source);
            }
        }
        if row.0 != 0 {
            rows.push(row);
            rows.sort_by_key(|row| std::cmp::Reverse(row.0));
        }
    }
    let mut basis = vec![Block::ONE];
    while basis.len() < MAX_LOG as usize {
        let mut rest = basis[basis.len() - 1].to_u128();
        let mut solution = 0u128;
        for &(image, source) in &rows {
            if rest ^ image < rest {
                rest ^= image;
                solution ^= source;
            }
        }
        debug_assert_eq!(rest, 0, "the trace of a basis element is zero");
        basis.push(Block::new(solution));
    }
    basis
});

/// A factor of many products, transformed once.
pub struct Prepared {
    values: Buffer,
    twiddles: Twiddles,
    words: usize,
}

impl Prepared {
    /// Prepares `factor` for products with up to `other_words` words. Panics when the product passes 2^33 coefficients.
    pub fn new(factor: &[u64], other_words: usize) -> Self {
        let words = (factor.len() + other_words).max(1);
        let log = words.next_power_of_two().ilog2().max(MIN_LOG);
        assert!(log <= MAX_LOG, "product too long");
        let twiddles = Twiddles::new(&BASIS, log);
        let mut values = Buffer::zeros(1 << log);
        evaluate(factor, &mut values, &twiddles);
        Prepared { values, twiddles, words }
    }

    /// Points of the transform; the scratch that [`multiply`](Self::multiply) wants.
    pub fn points(&self) -> usize {
        self.values.len()
    }

    /// Writes the product of the prepared factor and `other` to `out`, as many words as both have together or fewer.
    ///
    /// `scratch` has [`points`](Self::points) blocks and keeps secrets. Panics when a length is out of range.
    pub fn multiply(&self, other: &[u64], scratch: &mut [Block], out: &mut [u64]) {
        assert!(scratch.len() == self.points() && out.len() <= self.words, "product shapes");
        let backend = Backend::active();
        evaluate(other, scratch, &self.twiddles);
        simd::gf2x::multiply(backend, scratch, &self.values);
        simd::gf2x::inverse(backend, scratch, &self.twiddles);
        from_novel(scratch, 1);
        let mut over = 0;
        for (word, value) in out.iter_mut().zip(scratch.iter()) {
            *word = value.low() ^ over;
            over = value.high();
        }
    }
}

fn evaluate(words: &[u64], values: &mut [Block], twiddles: &Twiddles) {
    assert!(words.len() <= values.len(), "polynomial too long");
    let (used, rest) = values.split_at_mut(words.len());
    for (value, word) in used.iter_mut().zip(words) {
        *value = Block::new(*word as u128);
    }
    rest.fill(Block::ZERO);
    to_novel(values, 1);
    simd::gf2x::forward(Backend::active(), values, twiddles);
}

fn add(data: &mut [Block], to: usize, from: usize, len: usize) {
    let (low, high) = data.split_at_mut(from);
    for (a, b) in low[to..to + len].iter_mut().zip(&high[..len]) {
        *a ^= *b;
    }
}

/// log2 of q, where elements are split by powers of x^q + x: the largest 2^k below `log`.
fn split(log: u32) -> u32 {
    (log - 1).checked_ilog2().map_or(0, |k| 1 << k)
}

/// From monomials to products of subspace polynomials, which are x^(2^2^k) + x at the levels that are split here.
/// A coefficient is `unit` blocks.
fn to_novel(data: &mut [Block], unit: usize) {
    if let (1, Ok(small)) = (unit, <&mut [Block; 16]>::try_from(&mut *data)) {
        return to_novel_16(small);
    }
    let log = (data.len() / unit).ilog2();
    if log <= 1 {
        return;
    }
    let q_log = split(log);
    for level in (q_log..log).rev() {
        let (half, step) = (unit << level, unit << (level - q_log));
        for block in data.chunks_exact_mut(2 * half) {
            add(block, half, 2 * half - step, step);
            add(block, step, half, half - step);
        }
    }
    for row in data.chunks_exact_mut(unit << q_log) {
        to_novel(row, unit);
    }
    to_novel(data, unit << q_log);
}

/// The inverse of [`to_novel`].
fn from_novel(data: &mut [Block], unit: usize) {
    if let (1, Ok(small)) = (unit, <&mut [Block; 16]>::try_from(&mut *data)) {
        return from_novel_16(small);
    }
    let log = (data.len() / unit).ilog2();
    if log <= 1 {
        return;
    }
    let q_log = split(log);
    from_novel(data, unit << q_log);
    for row in data.chunks_exact_mut(unit << q_log) {
        from_novel(row, unit);
    }
    for level in q_log..log {
        let (half, step) = (unit << level, unit << (level - q_log));
        for block in data.chunks_exact_mut(2 * half) {
            add(block, step, half, half - step);
            add(block, half, 2 * half - step, step);
        }
    }
}

/// The XORs of a block of 16, target and source, in order.
const STEPS_16: [(usize, usize); 32] = {
    let mut steps = [(0, 0); 32];
    let mut n = 0;
    // By powers of x^4 + x: 16 coefficients, then twice 8.
    let mut i = 0;
    while i < 8 {
        // Target 8 + j takes 14 + j first, then target 2 + j takes 8 + j.
        steps[n] = if i < 2 { (8 + i, 14 + i) } else { (i, 6 + i) };
        n += 1;
        i += 1;
    }
    let mut block = 0;
    while block < 16 {
        let mut i = 0;
        while i < 4 {
            steps[n] = if i == 0 { (block + 4, block + 7) } else { (block + i, block + 3 + i) };
            n += 1;
            i += 1;
        }
        block += 8;
    }
    // Fours by powers of x^2 + x, within rows and across them.
    let mut row = 0;
    while row < 16 {
        steps[n] = (row + 2, row + 3);
        steps[n + 1] = (row + 1, row + 2);
        n += 2;
        row += 4;
    }
    let mut i = 0;
    while i < 4 {
        steps[n] = (8 + i, 12 + i);
        n += 1;
        i += 1;
    }
    let mut i = 0;
    while i < 4 {
        steps[n] = (4 + i, 8 + i);
        n += 1;
        i += 1;
    }
    assert!(n == 32);
    steps
};

fn to_novel_16(data: &mut [Block; 16]) {
    let mut x = *data;
    for (to, from) in &STEPS_16 {
        x[*to] ^= x[*from];
    }
    *data = x;
}

fn from_novel_16(data: &mut [Block; 16]) {
    let mut x = *data;
    for (to, from) in STEPS_16.iter().rev() {
        x[*to] ^= x[*from];
    }
    *data = x;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Prg;

    fn random(words: usize, prg: &mut Prg) -> Vec<u64> {
        (0..words).map(|_| prg.u64()).collect()
    }

    fn naive(a: &[u64], b: &[u64]) -> Vec<u64> {
        let mut out = vec![0u64; a.len() + b.len()];
        for i in 0..64 * a.len() {
            if a[i / 64] >> (i % 64) & 1 == 1 {
                for (j, word) in b.iter().enumerate() {
                    out[i / 64 + j] ^= word << (i % 64);
                    if i % 64 != 0 {
                        out[i / 64 + j + 1] ^= word >> (64 - i % 64);
                    }
                }
            }
        }
        out
    }

    #[test]
    fn the_basis_is_cantors() {
        for pair in BASIS.windows(2) {
            assert!((crate::gf128::mul(pair[1], pair[1]) ^ pair[1]) == pair[0]);
        }
    }

    #[test]
    fn conversions_invert_each_other() {
        let mut prg = Prg::from_seed(Block::new(1));
        for log in 4..14 {
            let mut data = vec![Block::ZERO; 1 << log];
            prg.fill_blocks(&mut data);
            let before = data.clone();
            to_novel(&mut data, 1);
            assert!(data != before);
            from_novel(&mut data, 1);
            assert!(data == before, "2^{log}");
        }
    }

    #[test]
    fn products_equal_the_schoolbook() {
        let mut prg = Prg::from_seed(Block::new(2));
        for (a, b) in [(1, 1), (3, 5), (8, 8), (9, 8), (31, 70), (128, 128), (300, 212), (700, 700)] {
            let (x, y) = (random(a, &mut prg), random(b, &mut prg));
            let prepared = Prepared::new(&x, b);
            let mut scratch = vec![Block::ZERO; prepared.points()];
            let mut out = vec![0; a + b];
            prepared.multiply(&y, &mut scratch, &mut out);
            assert_eq!(out, naive(&x, &y), "{a} by {b} words");
        }
    }

    #[test]
    fn every_backend_gives_the_same_values() {
        let mut prg = Prg::from_seed(Block::new(3));
        for log in [4, 5, 6, 9, 10, 11, 12, 13] {
            let twiddles = Twiddles::new(&BASIS, log);
            let mut data = vec![Block::ZERO; 1 << log];
            prg.fill_blocks(&mut data);
            let mut expected = data.clone();
            simd::gf2x::forward(Backend::PORTABLE, &mut expected, &twiddles);
            for backend in Backend::available() {
                let mut values = data.clone();
                simd::gf2x::forward(backend, &mut values, &twiddles);
                assert!(values == expected, "{} 2^{log}", backend.name());
                simd::gf2x::multiply(backend, &mut values, &expected);
                let square = crate::gf128::mul(expected[3], expected[3]);
                assert!(values[3] == square, "{} product", backend.name());
                values.copy_from_slice(&expected);
                simd::gf2x::inverse(backend, &mut values, &twiddles);
                assert!(values == data, "{} 2^{log} back", backend.name());
            }
        }
    }
}
