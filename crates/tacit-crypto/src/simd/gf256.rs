//! Products of matrices over GF(2^8) with rows of blocks: GFNI on 512 bits, shuffles of products with nibbles
//! on 256.

use super::Backend;
#[cfg(target_arch = "x86_64")]
use super::Level;
use crate::Block;

/// Bytes of every row that are worked on at a time.
#[cfg(target_arch = "x86_64")]
const STRIP: usize = 256;

/// A matrix that [`apply`] multiplies by: its shape, its entries row by row, and of every entry its products
/// with 0 … 15, then with the multiples of 16.
#[derive(Clone, Copy)]
pub(crate) struct Table<'a> {
    pub rows: usize,
    pub columns: usize,
    pub entries: &'a [u8],
    pub tables: &'a [[u8; 32]],
}

/// `out` = `matrix`·`input`, on rows of blocks of one length. Panics when the lengths do not fit.
pub(crate) fn apply(backend: Backend, matrix: Table<'_>, input: &[Block], out: &mut [Block]) {
    let Table { rows, columns, entries, tables } = matrix;
    let length = out.len().checked_div(rows).unwrap_or(0);
    assert_eq!((length * columns, length * rows), (input.len(), out.len()), "rows of a length");
    assert_eq!((rows * columns, rows * columns), (entries.len(), tables.len()), "an entry and a table each");
    if columns == 0 || length == 0 {
        return out.fill(Block::ZERO);
    }
    let bytes = 16 * length;
    let (input, out) = (Block::as_bytes(input), Block::as_bytes_mut(out));
    let whole = match backend.level() {
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => {
            // SAFETY: a backend of this level exists only where all its features were detected; the lengths
            // were compared.
            unsafe { x86::strips_512(columns, entries, bytes, input, out) }
        }
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => {
            // SAFETY: as above.
            unsafe { x86::strips_256(columns, tables, bytes, input, out) }
        }
        _ => 0,
    };
    portable(columns, entries, bytes, whole, input, out);
}

/// Words that the portable code works on at a time.
const WORDS: usize = 8;

/// The bytes from `start` on of every row. Entries choose among the powers of x times the input by masks.
fn portable(columns: usize, entries: &[u8], bytes: usize, start: usize, input: &[u8], out: &mut [u8]) {
    for at in (start..bytes).step_by(8 * WORDS) {
        let len = (bytes - at).min(8 * WORDS);
        for out in out.chunks_exact_mut(bytes) {
            out[at..at + len].fill(0);
        }
        for (c, input) in input.chunks_exact(bytes).enumerate() {
            let mut strip = [0; 8 * WORDS];
            strip[..len].copy_from_slice(&input[at..at + len]);
            let mut powers = [[0u64; WORDS]; 8];
            for (word, bytes) in powers[0].iter_mut().zip(strip.as_chunks().0) {
                *word = u64::from_le_bytes(*bytes);
            }
            for i in 1..8 {
                powers[i] = powers[i - 1].map(times_x);
            }
            for (out, entries) in out.chunks_exact_mut(bytes).zip(entries.chunks_exact(columns)) {
                let mut product = [0u64; WORDS];
                for (i, power) in powers.iter().enumerate() {
                    let mask = u64::from(entries[c] >> i & 1).wrapping_neg();
                    product.iter_mut().zip(power).for_each(|(product, power)| *product ^= power & mask);
                }
                let product = product.map(u64::to_le_bytes);
                out[at..at + len].iter_mut().zip(product.as_flattened()).for_each(|(out, byte)| *out ^= byte);
            }
        }
    }
}

/// x times each byte.
fn times_x(word: u64) -> u64 {
    const LOW: u64 = 0x7f7f_7f7f_7f7f_7f7f;
    ((word & LOW) << 1) ^ ((word >> 7 & 0x0101_0101_0101_0101) * 0x1b)
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::STRIP;
    use core::arch::x86_64::*;

    /// Rows of the output that are worked on at a time.
    const ROWS: usize = 4;
    const WIDE: usize = STRIP / 64;
    const NARROW: usize = STRIP / 4 / 32;

    /// The whole strips of every row; returns where they end.
    ///
    /// # Safety
    /// AVX-512 F and BW and GFNI; rows of `bytes` bytes, `columns` of them in `input` and of entries for each
    /// in `out`.
    #[target_feature(enable = "avx512f,avx512bw,gfni")]
    pub(super) unsafe fn strips_512(
        columns: usize,
        entries: &[u8],
        bytes: usize,
        input: &[u8],
        out: &mut [u8],
    ) -> usize {
        let whole = bytes / STRIP * STRIP;
        for at in (0..whole).step_by(STRIP) {
            for (g, entries) in entries.chunks(ROWS * columns).enumerate() {
                let rows = entries.len() / columns;
                let mut sums = [[_mm512_setzero_si512(); WIDE]; ROWS];
                // SAFETY: column `c` has `bytes` bytes, and `at + STRIP` is at most that.
                unsafe {
                    for c in 0..columns {
                        let from = input.as_ptr().add(c * bytes + at);
                        let x: [__m512i; WIDE] =
                            core::array::from_fn(|i| _mm512_loadu_si512(from.add(64 * i).cast()));
                        for (r, sums) in sums.iter_mut().enumerate().take(rows) {
                            let entry = _mm512_set1_epi8(entries[r * columns + c] as i8);
                            for (sum, x) in sums.iter_mut().zip(x) {
                                *sum = _mm512_xor_si512(*sum, _mm512_gf2p8mul_epi8(x, entry));
                            }
                        }
                    }
                    for (r, sums) in sums.iter().enumerate().take(rows) {
                        let to = out.as_mut_ptr().add((g * ROWS + r) * bytes + at);
                        for (i, sum) in sums.iter().enumerate() {
                            _mm512_storeu_si512(to.add(64 * i).cast(), *sum);
                        }
                    }
                }
            }
        }
        whole
    }

    /// As [`strips_512`], by the entries' products with nibbles.
    ///
    /// # Safety
    /// AVX2; rows as there, and a table an entry.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn strips_256(
        columns: usize,
        tables: &[[u8; 32]],
        bytes: usize,
        input: &[u8],
        out: &mut [u8],
    ) -> usize {
        const LENGTH: usize = 32 * NARROW;
        let (whole, nibble) = (bytes / LENGTH * LENGTH, _mm256_set1_epi8(15));
        for at in (0..whole).step_by(LENGTH) {
            for (g, tables) in tables.chunks(ROWS * columns).enumerate() {
                let rows = tables.len() / columns;
                let mut sums = [[_mm256_setzero_si256(); NARROW]; ROWS];
                // SAFETY: column `c` has `bytes` bytes, and `at + LENGTH` is at most that.
                unsafe {
                    for c in 0..columns {
                        let from = input.as_ptr().add(c * bytes + at);
                        let x: [__m256i; NARROW] =
                            core::array::from_fn(|i| _mm256_loadu_si256(from.add(32 * i).cast()));
                        let low = x.map(|x| _mm256_and_si256(x, nibble));
                        let high = x.map(|x| _mm256_and_si256(_mm256_srli_epi16::<4>(x), nibble));
                        for (r, sums) in sums.iter_mut().enumerate().take(rows) {
                            let table = tables[r * columns + c].as_ptr();
                            let half = |at: usize| {
                                _mm256_broadcastsi128_si256(_mm_loadu_si128(table.add(at).cast()))
                            };
                            let (zero, one) = (half(0), half(16));
                            for (i, sum) in sums.iter_mut().enumerate() {
                                let product = _mm256_xor_si256(
                                    _mm256_shuffle_epi8(zero, low[i]),
                                    _mm256_shuffle_epi8(one, high[i]),
                                );
                                *sum = _mm256_xor_si256(*sum, product);
                            }
                        }
                    }
                    for (r, sums) in sums.iter().enumerate().take(rows) {
                        let to = out.as_mut_ptr().add((g * ROWS + r) * bytes + at);
                        for (i, sum) in sums.iter().enumerate() {
                            _mm256_storeu_si256(to.add(32 * i).cast(), *sum);
                        }
                    }
                }
            }
        }
        whole
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Prg;
    use crate::gf256::{Matrix, inverse, mul};
    use crate::simd::CASES;

    #[test]
    fn every_backend_gives_the_product() {
        let mut prg = Prg::from_seed(Block::new(8));
        let shapes = [(1, 1, 1), (3, 5, 0), (4, 2, 16), (5, 7, 17), (16, 47, 70), (22, 44, 33)];
        for (rows, columns, length) in shapes.into_iter().take(CASES) {
            let mut entries = vec![0; rows * columns];
            prg.fill_bytes(&mut entries);
            entries.iter_mut().take(2).enumerate().for_each(|(i, entry)| *entry = i as u8);
            let mut input = vec![Block::ZERO; columns * length];
            prg.fill_blocks(&mut input);
            let (x, n) = (Block::as_bytes(&input), 16 * length);
            let at = |r: usize, at: usize| {
                (0..columns).fold(0, |sum, c| sum ^ mul(entries[r * columns + c], x[c * n + at]))
            };
            let expected: Vec<u8> = (0..rows * n).map(|i| at(i / n, i % n)).collect();
            let matrix = Matrix::new(rows, entries.clone());
            for backend in Backend::available() {
                let mut out = vec![Block::ONES; rows * length];
                matrix.apply_on(backend, &input, &mut out);
                assert!(Block::as_bytes(&out) == expected, "{}: {rows}, {columns}, {length}", backend.name());
            }
        }
    }

    #[test]
    fn the_field_is_one() {
        for a in 0..=255u8 {
            assert_eq!((mul(a, 1), mul(1, a), mul(a, 0)), (a, a, 0));
            assert_eq!(mul(a, inverse(a)), u8::from(a != 0));
            for b in [2, 3, 0x53, 0xca, 0xff] {
                assert_eq!(mul(a, b), mul(b, a));
                // x^8 = x^4 + x^3 + x + 1 by long division.
                let mut product = (0..8).fold(0u16, |p, i| p ^ ((u16::from(a) << i) * u16::from(b >> i & 1)));
                (8..16).rev().for_each(|i| product ^= (product >> i & 1) * (0x11b << (i - 8)));
                assert_eq!(u16::from(mul(a, b)), product);
            }
        }
    }
}
