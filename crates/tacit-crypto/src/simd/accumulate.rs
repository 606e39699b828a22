//! Kernels of the block-accumulate code: a permutation computed on the fly, and products with blocks of 32×32
//! bits.

use super::Backend;
#[cfg(target_arch = "x86_64")]
use super::Level;
use crate::Block;

/// Rounds of the permutation.
pub(crate) const ROUNDS: usize = 4;
/// Inputs and outputs of one matrix.
pub(crate) const SIGMA: usize = 32;

/// A 32×32 matrix over GF(2): bit j of byte r of word 4 o + g is the entry of output 8 o + r and input 8 g +
/// j.
pub(crate) type Matrix = [u64; 16];

/// A Feistel network over Z_a × Z_b with b = 2^`log_b`.
#[derive(Clone, Debug)]
pub(crate) struct Feistel {
    pub a: u32,
    pub log_b: u32,
    pub keys: [u32; ROUNDS],
}

/// The images of `first`, `first + 1`, …; below a·b for indices below a·b.
pub(crate) fn images(backend: Backend, feistel: &Feistel, first: u32, out: &mut [u32]) {
    match backend.level() {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: this level exists only where AVX-512 was detected.
        Level::Avx512 => unsafe { x86::images_512(feistel, first, out) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: this level exists only where AVX2 was detected.
        Level::Avx2 => unsafe { x86::images_256(feistel, first, out) },
        _ => images_portable(feistel, first, out),
    }
}

/// Asks for the lines of `table` at `indices`, which are read soon. Indices past its end do no harm.
///
/// Into the second-level cache: the first level's queue of misses is too short to keep more reads on their
/// way than the processor's window holds by itself.
#[inline]
pub(crate) fn prefetch<T>(table: &[T], indices: &[u32]) {
    #[cfg(target_arch = "x86_64")]
    for &index in indices {
        use core::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        // SAFETY: every x86-64 processor has the instruction, and it never faults, whatever the address.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(table.as_ptr().wrapping_add(index as usize).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (table, indices);
}

/// `out ^= matrix · input`.
pub(crate) fn add_product(
    backend: Backend,
    matrix: &Matrix,
    input: &[Block; SIGMA],
    out: &mut [Block; SIGMA],
) {
    match backend.level() {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: this level exists only where AVX-512 F, BW, VBMI and GFNI were detected.
        Level::Avx512 => unsafe { x86::add_product(matrix, input, out) },
        _ => add_product_portable(matrix, input, out),
    }
}

/// The twin that compilers turn into the vectors of each level.
#[inline(always)]
fn images_portable(feistel: &Feistel, first: u32, out: &mut [u32]) {
    let Feistel { a, log_b, keys } = *feistel;
    let mask = (1u32 << log_b) - 1;
    for (i, out) in out.iter_mut().enumerate() {
        let x = first.wrapping_add(i as u32);
        let (mut l, mut r) = (x >> log_b, x & mask);
        for pair in keys.as_chunks::<2>().0 {
            r = r.wrapping_add(mix(l.wrapping_add(pair[0]))) & mask;
            l = l.wrapping_add(((mix(r.wrapping_add(pair[1])) as u64 * a as u64) >> 32) as u32);
            l = l.min(l.wrapping_sub(a));
        }
        *out = l << log_b | r;
    }
}

/// A bijection of 32 bits in which every input bit reaches every output bit.
#[inline(always)]
fn mix(mut x: u32) -> u32 {
    x ^= x >> 16;
    x = x.wrapping_mul(0x7feb_352d);
    x ^= x >> 15;
    x = x.wrapping_mul(0x846c_a68b);
    x ^ x >> 16
}

/// By tables of the sums of four inputs; all indices are public.
fn add_product_portable(matrix: &Matrix, input: &[Block; SIGMA], out: &mut [Block; SIGMA]) {
    let mut tables = [[Block::ZERO; 16]; SIGMA / 4];
    for (table, input) in tables.iter_mut().zip(input.as_chunks::<4>().0) {
        for v in 1..16usize {
            table[v] = table[v & (v - 1)] ^ input[v.trailing_zeros() as usize];
        }
    }
    for (i, out) in out.iter_mut().enumerate() {
        for (g, pair) in tables.as_chunks::<2>().0.iter().enumerate() {
            let row = matrix[i / 8 * 4 + g] >> (8 * (i % 8));
            *out ^= pair[0][(row & 15) as usize] ^ pair[1][(row >> 4 & 15) as usize];
        }
    }
    // The sums are as secret as what they are of.
    zeroize::Zeroize::zeroize(&mut tables);
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::*;
    use core::arch::x86_64::*;

    #[target_feature(enable = "avx2,avx512f,avx512bw,avx512vl,avx512dq")]
    pub(super) fn images_512(feistel: &Feistel, first: u32, out: &mut [u32]) {
        images_portable(feistel, first, out);
    }

    #[target_feature(enable = "avx2")]
    pub(super) fn images_256(feistel: &Feistel, first: u32, out: &mut [u32]) {
        images_portable(feistel, first, out);
    }

    /// Byte p of eight blocks, for the eight p from `first` on, the last block's first: a matrix to
    /// transpose.
    const fn gather(first: usize) -> [u8; 64] {
        let mut order = [0; 64];
        let mut i = 0;
        while i < 64 {
            order[i] = (16 * (7 - i % 8) + first + i / 8) as u8;
            i += 1;
        }
        order
    }

    /// Four blocks, from block `first` of eight on, of bytes that stand together by their place in a block.
    const fn scatter(first: usize) -> [u8; 64] {
        let mut order = [0; 64];
        let mut i = 0;
        while i < 64 {
            order[i] = (8 * (i % 16) + first + i / 16) as u8;
            i += 1;
        }
        order
    }

    const GATHER: [[u8; 64]; 2] = [gather(0), gather(8)];
    const SCATTER: [[u8; 64]; 2] = [scatter(0), scatter(4)];
    /// Byte k has bit 7 − k: as data of an affine map, it transposes the matrix.
    const TRANSPOSE: i64 = 0x0102_0408_1020_4080;

    /// Eight inputs of a column are a byte's bits; data and matrix of the affine map are swapped, so that the
    /// matrix holds the inputs and the data the rows.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi,gfni")]
    pub(super) unsafe fn add_product(matrix: &Matrix, input: &[Block; SIGMA], out: &mut [Block; SIGMA]) {
        // SAFETY: every load and store lies within 64-byte orders, 32 blocks of `input` or 32 of `out`.
        unsafe {
            let load = |from: *const u8| _mm512_loadu_si512(from.cast());
            let orders = GATHER.map(|order| load(order.as_ptr()));
            let transpose = _mm512_set1_epi64(TRANSPOSE);
            let mut columns = [[_mm512_setzero_si512(); 2]; SIGMA / 8];
            for (g, columns) in columns.iter_mut().enumerate() {
                let from = input.as_ptr().add(8 * g);
                let (low, high) = (load(from.cast()), load(from.add(4).cast()));
                for (columns, order) in columns.iter_mut().zip(orders) {
                    let bytes = _mm512_permutex2var_epi8(low, order, high);
                    *columns = _mm512_gf2p8affine_epi64_epi8::<0>(transpose, bytes);
                }
            }
            let orders = SCATTER.map(|order| load(order.as_ptr()));
            for o in 0..SIGMA / 8 {
                let mut sums = [_mm512_setzero_si512(); 2];
                for (g, columns) in columns.iter().enumerate() {
                    let rows = _mm512_set1_epi64(matrix[4 * o + g] as i64);
                    for (sum, columns) in sums.iter_mut().zip(columns) {
                        *sum = _mm512_xor_si512(*sum, _mm512_gf2p8affine_epi64_epi8::<0>(rows, *columns));
                    }
                }
                for (half, order) in orders.into_iter().enumerate() {
                    let at = out.as_mut_ptr().add(8 * o + 4 * half);
                    let product = _mm512_permutex2var_epi8(sums[0], order, sums[1]);
                    let sum = _mm512_xor_si512(load(at.cast()), product);
                    _mm512_storeu_si512(at.cast(), sum);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Prg;

    #[test]
    fn every_backend_gives_the_same_values() {
        let mut prg = Prg::from_seed(Block::new(8));
        for backend in Backend::available() {
            for (a, log_b, first, len) in [(1, 6, 0, 64), (11, 5, 40, 99), (1500, 11, 77, 256)] {
                let feistel = Feistel { a, log_b, keys: core::array::from_fn(|_| prg.u64() as u32) };
                let (mut mine, mut expected) = (vec![0; len], vec![0; len]);
                images(backend, &feistel, first, &mut mine);
                images_portable(&feistel, first, &mut expected);
                assert_eq!(mine, expected, "{}", backend.name());
            }
            let matrix: Matrix = core::array::from_fn(|_| prg.u64());
            let mut blocks = [[Block::ZERO; SIGMA]; 2];
            prg.fill_blocks(blocks.as_flattened_mut());
            let [input, start] = blocks;
            let mut expected = start;
            for (i, sum) in expected.iter_mut().enumerate() {
                for (j, x) in input.iter().enumerate() {
                    let entry = matrix[i / 8 * 4 + j / 8] >> (i % 8 * 8 + j % 8) & 1 == 1;
                    *sum ^= *x & Block::mask(entry);
                }
            }
            for run in [backend, Backend::PORTABLE] {
                let mut mine = start;
                add_product(run, &matrix, &input, &mut mine);
                assert!(mine == expected, "{}", run.name());
            }
        }
    }
}
