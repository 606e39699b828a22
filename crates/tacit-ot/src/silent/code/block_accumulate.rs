//! Block-accumulate code (Block-Diagonal Codes: Accelerated Linear Codes for Pseudorandom Correlation Generators), the
//! set BlkAcc3x32: twice accumulate and permute, then fold one half onto the other by random 32×32 blocks.
//!
//! Rate 1/2. At this set the relative distance is 0.20 by the authors' estimate, a pseudo-distance and not a proof; with
//! 176 noisy positions the bias of any linear test is below 2^-128.
//!
//! The permutations are public: four rounds of a Feistel network over Z_a × Z_b with a·b the length, computed on the fly.
//! All reads follow public indices. Results are gathered, so that random accesses only read, and rows that nobody asked
//! for are never computed.

use super::LinearCode;
use tacit_crypto::transcript::Transcript;
use tacit_crypto::{Block, Buffer, Prg};
use zeroize::Zeroize;

/// Inputs and outputs of one diagonal block.
pub(super) const SIGMA: usize = 32;
const ROUNDS: usize = 4;
/// Indices found together.
pub(super) const BATCH: usize = 256;
/// Outputs handed on together.
const PIECE: usize = 4096;

/// A public pseudorandom permutation of 0..a·b.
#[derive(Clone, Debug)]
pub(super) struct Permutation {
    a: u32,
    log_b: u32,
    keys: [u32; ROUNDS],
}

impl Permutation {
    pub(super) fn new(len: usize, prg: &mut Prg) -> Self {
        let log_b = len.trailing_zeros().min(len.ilog2().div_ceil(2));
        let keys = core::array::from_fn(|_| prg.u64() as u32);
        Permutation { a: (len >> log_b) as u32, log_b, keys }
    }

    /// The images of `first`, `first + 1`, …
    #[inline]
    pub(super) fn images(&self, first: usize, out: &mut [u32; BATCH]) {
        let (a, mask) = (self.a, (1u32 << self.log_b) - 1);
        for (i, out) in out.iter_mut().enumerate() {
            let x = first as u32 + i as u32;
            // A batch may run past the end by less than itself; those images are not used.
            let (mut l, mut r) = (x >> self.log_b, x & mask);
            for pair in self.keys.as_chunks::<2>().0 {
                r = r.wrapping_add(mix(l.wrapping_add(pair[0]))) & mask;
                l += ((mix(r.wrapping_add(pair[1])) as u64 * a as u64) >> 32) as u32;
                l -= a & ((l >= a) as u32).wrapping_neg();
            }
            *out = l << self.log_b | r;
        }
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

/// The code of one length and seed.
#[derive(Clone, Debug)]
pub struct BlockAccumulate {
    outputs: usize,
    first: Permutation,
    second: Permutation,
    diagonal: Prg,
}

impl BlockAccumulate {
    /// The code from `input_len` to half as many; `input_len` a multiple of 64 below 2^31. Panics otherwise.
    pub fn new(seed: Block, input_len: usize) -> Self {
        assert!(input_len > 0 && input_len.is_multiple_of(2 * SIGMA) && input_len < 1 << 31, "code length");
        let mut transcript = Transcript::new("tacit block-accumulate 3x32 v1");
        transcript.append_blocks("seed", &[seed]);
        transcript.append_u64("length", input_len as u64);
        let mut prg = transcript.challenge_prg("permutations");
        BlockAccumulate {
            outputs: input_len / 2,
            first: Permutation::new(input_len, &mut prg),
            second: Permutation::new(input_len, &mut prg),
            diagonal: transcript.challenge_prg("diagonal"),
        }
    }

    /// Second accumulation, of the first one's permuted result.
    fn second_round(&self, from: &[Block], to: &mut [Block]) {
        let mut images = [0u32; BATCH];
        let mut sum = Block::ZERO;
        for (i, to) in to.chunks_mut(BATCH).enumerate() {
            self.first.images(i * BATCH, &mut images);
            for (to, &image) in to.iter_mut().zip(&images) {
                sum ^= from[image as usize];
                *to = sum;
            }
        }
    }

    fn gather(&self, from: &[Block], first: usize, out: &mut [Block]) {
        let mut images = [0u32; BATCH];
        for (i, out) in out.chunks_mut(BATCH).enumerate() {
            self.second.images(first + i * BATCH, &mut images);
            for (out, &image) in out.iter_mut().zip(&images) {
                *out = from[image as usize];
            }
        }
    }
}

/// out ^= M·input for the 32×32 matrix with the rows `rows`, by tables of four inputs.
fn add_product(rows: &[u32; SIGMA], input: &[Block; SIGMA], out: &mut [Block; SIGMA]) {
    let mut tables = [[Block::ZERO; 16]; SIGMA / 4];
    for (table, input) in tables.iter_mut().zip(input.as_chunks::<4>().0) {
        for v in 1..16usize {
            table[v] = table[v & (v - 1)] ^ input[v.trailing_zeros() as usize];
        }
    }
    for (out, &row) in out.iter_mut().zip(rows) {
        let mut sum = *out;
        for (g, table) in tables.iter().enumerate() {
            sum ^= table[(row >> (4 * g) & 15) as usize];
        }
        *out = sum;
    }
}

impl LinearCode for BlockAccumulate {
    fn input_len(&self) -> usize {
        2 * self.outputs
    }

    fn output_len(&self) -> usize {
        self.outputs
    }

    /// The first accumulation.
    fn absorb(&self, carry: &mut Block, piece: &mut [Block]) {
        for block in piece {
            *carry ^= *block;
            *block = *carry;
        }
    }

    fn encode(&self, noise: Buffer, count: usize, each: &mut dyn FnMut(&mut [Block])) {
        assert!(count <= self.outputs && noise.len() >= self.input_len(), "code shapes");
        let mut sums = Buffer::zeros(self.input_len());
        self.second_round(&noise, &mut sums);
        drop(noise);
        let mut prg = self.diagonal.clone();
        let (mut upper, mut lower) = ([Block::ZERO; PIECE], [Block::ZERO; PIECE]);
        let mut matrix = [[0u32; SIGMA]; PIECE / SIGMA];
        for start in (0..count).step_by(PIECE) {
            let wanted = PIECE.min(count - start);
            let whole = wanted.next_multiple_of(SIGMA);
            self.gather(&sums, start, &mut upper[..whole]);
            self.gather(&sums, self.outputs + start, &mut lower[..whole]);
            let mut bits = [Block::ZERO; PIECE * SIGMA / 128];
            prg.fill_blocks(&mut bits[..whole * SIGMA / 128]);
            for (word, bytes) in
                matrix.as_flattened_mut().iter_mut().zip(Block::as_bytes(&bits).as_chunks().0)
            {
                *word = u32::from_le_bytes(*bytes);
            }
            let blocks = upper[..whole].as_chunks_mut().0.iter_mut().zip(lower[..whole].as_chunks().0);
            for ((upper, lower), rows) in blocks.zip(&matrix) {
                add_product(rows, lower, upper);
            }
            each(&mut upper[..wanted]);
        }
        upper.zeroize();
        lower.zeroize();
    }
}

#[cfg(test)]
mod tests {
    use super::super::encode_all;
    use super::*;

    #[test]
    fn permutations_are_bijections() {
        for len in [64, 192, 704, 11 << 9, 44 << 7, 4096] {
            let p = Permutation::new(len, &mut Prg::from_seed(Block::new(len as u128)));
            let mut seen = vec![false; len];
            let mut fixed = 0;
            for first in (0..len).step_by(BATCH) {
                let mut images = [0; BATCH];
                p.images(first, &mut images);
                for (i, &image) in images.iter().enumerate().take(len - first) {
                    assert!(!core::mem::replace(&mut seen[image as usize], true), "{len}: hit twice");
                    fixed += (image as usize == first + i) as usize;
                }
            }
            assert!(fixed < 12, "{fixed} fixed points of {len}");
        }
    }

    /// H row by row from the definition: accumulate, permute, accumulate, permute, fold.
    fn naive(code: &BlockAccumulate, noise: &[Block]) -> Vec<Block> {
        let n = noise.len();
        let permute = |p: &Permutation, input: &[Block]| -> Vec<Block> {
            (0..n)
                .map(|i| {
                    let mut images = [0; BATCH];
                    p.images(i, &mut images);
                    input[images[0] as usize]
                })
                .collect()
        };
        let prefix = |input: &[Block]| -> Vec<Block> {
            (0..n).map(|i| input[..=i].iter().fold(Block::ZERO, |a, b| a ^ *b)).collect()
        };
        let x = permute(&code.first, &prefix(noise));
        let x = permute(&code.second, &prefix(&x));
        let (upper, lower) = x.split_at(n / 2);
        let mut bits = vec![Block::ZERO; n / 2 * SIGMA / 128];
        code.diagonal.clone().fill_blocks(&mut bits);
        let bit = |i: usize| bits[i / 128].bit(i % 128);
        (0..n / 2)
            .map(|i| {
                let group = i / SIGMA * SIGMA;
                (0..SIGMA).filter(|j| bit(i * SIGMA + j)).fold(upper[i], |acc, j| acc ^ lower[group + j])
            })
            .collect()
    }

    #[test]
    fn encoding_is_the_matrix_product() {
        let mut prg = Prg::from_seed(Block::new(5));
        for len in [64, 192, 704, 11 << 8, 176 << 5] {
            let code = BlockAccumulate::new(prg.block(), len);
            let mut noise = vec![Block::ZERO; len];
            prg.fill_blocks(&mut noise);
            let expected = naive(&code, &noise);
            assert!(encode_all(&code, &noise) == expected, "length {len}");
            let mut kept = Buffer::zeros(len);
            kept.copy_from_slice(&noise);
            code.absorb(&mut Block::ZERO.clone(), &mut kept);
            let mut first = Vec::new();
            code.encode(kept, 17, &mut |piece| first.extend_from_slice(piece));
            assert!(first[..] == expected[..17], "a prefix of length {len}");
        }
    }
}
