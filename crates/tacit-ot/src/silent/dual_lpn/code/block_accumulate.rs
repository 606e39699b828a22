//! Block-accumulate code (Block-Diagonal Codes: Accelerated Linear Codes for Pseudorandom Correlation
//! Generators), the set BlkAcc3x32: twice accumulate and permute, then fold one half onto the other by random
//! 32×32 blocks.
//!
//! Rate 1/2. At this set the relative distance is 0.20 by the authors' estimate, a pseudo-distance and not a
//! proof; with 176 noisy positions the bias of any linear test is below 2^-128.
//!
//! The permutations are public: four rounds of a Feistel network over Z_a × Z_b with a·b the length, computed
//! on the fly. All reads follow public indices. Results are gathered, so that random accesses only read, and
//! rows that nobody asked for are never computed.

use super::LinearCode;
use tacit_crypto::accumulate::{Permutation, SIGMA, add_diagonal};
use tacit_crypto::transcript::Transcript;
use tacit_crypto::{Block, Buffer, Prg};
use zeroize::Zeroize;

/// Outputs handed on together.
const PIECE: usize = 4096;

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
        let mut transcript = Transcript::new("tacit block-accumulate 3x32 v2");
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
        let mut sum = Block::ZERO;
        self.first.gather(0, &noise, &mut sums, |to, block| {
            sum ^= block;
            *to = sum;
        });
        drop(noise);
        let mut prg = self.diagonal.clone();
        let (mut upper, mut lower) = ([Block::ZERO; PIECE], [Block::ZERO; PIECE]);
        for start in (0..count).step_by(PIECE) {
            let wanted = PIECE.min(count - start);
            let whole = wanted.next_multiple_of(SIGMA);
            for (half, first) in [(&mut upper, start), (&mut lower, self.outputs + start)] {
                self.second.gather(first, &sums, &mut half[..whole], |to, block| *to = block);
            }
            add_diagonal(&mut prg, &lower[..whole], &mut upper[..whole]);
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

    const BATCH: usize = 256;

    #[test]
    fn permutations_are_bijections() {
        for len in [64, 192, 704, 11 << 9, 44 << 7, 4096] {
            let p = Permutation::new(len, &mut Prg::from_seed(Block::new(len as u128)));
            let mut seen = vec![false; len];
            let mut fixed = 0;
            for first in (0..len).step_by(BATCH) {
                let mut images = [0u32; BATCH];
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
        let entry = |i: usize, j: usize| {
            // A matrix is sixteen pieces of 8×8 bits.
            let bit = i / SIGMA * SIGMA * SIGMA + 64 * (i % SIGMA / 8 * 4 + j / 8) + 8 * (i % 8) + j % 8;
            bits[bit / 128].bit(bit % 128)
        };
        (0..n / 2)
            .map(|i| {
                let inputs = &lower[i / SIGMA * SIGMA..][..SIGMA];
                (0..SIGMA).filter(|&j| entry(i, j)).fold(upper[i], |acc, j| acc ^ inputs[j])
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
