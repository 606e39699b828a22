//! The block-accumulate code over GF(2^128): random public factors before each accumulation and before the
//! fold.
//!
//! The shape is that of [`BlockAccumulate`](crate::silent::code::BlockAccumulate): twice accumulate and
//! permute, then fold one half onto the other by random 32×32 blocks. Factors are what makes it fit for
//! noise with values in GF(2^128). Over a binary matrix the 128 bit-planes of such noise are 128 words of
//! one binary code with errors at the same positions, and more words than noisy positions in a subspace show
//! these by elimination (interleaved decoding). A factor mixes the planes differently at every position, so
//! that no plane is a word of any binary code. A test runs the elimination on both codes.
//!
//! Factors keep the weight of every word and make cancellations rarer, so the binary code's relative
//! distance of 0.20 (a pseudo-distance, not a proof) is taken here too: over a field extension a binary
//! code's distance is what it is over GF(2). The noise must then be heavier, see
//! [`linear_weight`](crate::silent::bcgikrs19::linear_weight).

use tacit_crypto::accumulate::{Permutation, SIGMA, add_diagonal};
use tacit_crypto::transcript::Transcript;
use tacit_crypto::{Block, Prg, gf128};
use zeroize::Zeroizing;

/// Positions handled together, in first-level cache.
const PIECE: usize = 512;

/// The code of one length and seed.
#[derive(Clone, Debug)]
pub struct ScaledAccumulate {
    outputs: usize,
    permutations: [Permutation; 2],
    factors: [Prg; 3],
    diagonal: Prg,
}

impl ScaledAccumulate {
    /// The code from `input_len` to half as many; `input_len` a multiple of 64 below 2^31. Panics otherwise.
    pub fn new(seed: Block, input_len: usize) -> Self {
        assert!(input_len > 0 && input_len.is_multiple_of(2 * SIGMA) && input_len < 1 << 31, "code length");
        let mut transcript = Transcript::new("tacit block-accumulate 3x32 scaled v1");
        transcript.append_blocks("seed", &[seed]);
        transcript.append_u64("length", input_len as u64);
        let mut prg = transcript.challenge_prg("permutations");
        ScaledAccumulate {
            outputs: input_len / 2,
            permutations: core::array::from_fn(|_| Permutation::new(input_len, &mut prg)),
            factors: ["first", "second", "fold"].map(|label| transcript.challenge_prg(label)),
            diagonal: transcript.challenge_prg("diagonal"),
        }
    }

    /// Length of the result.
    pub fn output_len(&self) -> usize {
        self.outputs
    }

    /// The first results of the `W` vectors that follow each other in `inputs`, into `out`, all of them
    /// equally long.
    ///
    /// `scratch` is as long as `inputs`; both hold secrets of no use afterwards. Panics when a length is
    /// wrong or too many results are asked for.
    pub fn encode<const W: usize>(
        &self,
        inputs: &mut [Block],
        scratch: &mut [Block],
        out: [&mut [Block]; W],
    ) {
        let n = 2 * self.outputs;
        let count = out.first().map_or(0, |out| out.len());
        let fits = inputs.len() == n * W && scratch.len() == n * W;
        assert!(fits && out.iter().all(|out| out.len() == count) && count <= self.outputs, "code shapes");
        let mut planes = Zeroizing::new([[Block::ZERO; PIECE]; W]);
        let mut rows = Zeroizing::new([[Block::ZERO; W]; PIECE]);

        // Rows of W, so that the permutations fetch one line for all vectors.
        let mut stage = Stage::new(&self.factors[0]);
        for (i, row) in scratch.as_chunks_mut::<W>().0.chunks_mut(PIECE).enumerate() {
            for (plane, input) in planes.iter_mut().zip(inputs.chunks_exact(n)) {
                plane[..row.len()].copy_from_slice(&input[i * PIECE..][..row.len()]);
            }
            stage.accumulate(&mut planes, row);
        }

        let mut stage = Stage::new(&self.factors[1]);
        for (i, row) in inputs.as_chunks_mut::<W>().0.chunks_mut(PIECE).enumerate() {
            let rows = &mut rows[..row.len()];
            self.permutations[0].gather(i * PIECE, scratch.as_chunks::<W>().0, rows, |to, from| *to = from);
            split(rows, &mut planes);
            stage.accumulate(&mut planes, row);
        }

        let second = inputs.as_chunks::<W>().0;
        let mut stage = Stage::new(&self.factors[2]);
        let mut diagonals: [Prg; W] = core::array::from_fn(|_| self.diagonal.clone());
        let mut upper = Zeroizing::new([[Block::ZERO; PIECE]; W]);
        for start in (0..count).step_by(PIECE) {
            let wanted = PIECE.min(count - start);
            let whole = wanted.next_multiple_of(SIGMA);
            let rows = &mut rows[..whole];
            for (half, at) in [(&mut upper, start), (&mut planes, self.outputs + start)] {
                self.permutations[1].gather(at, second, rows, |to, from| *to = from);
                split(rows, half);
            }
            stage.scale(&mut planes, whole);
            for (w, diagonal) in diagonals.iter_mut().enumerate() {
                add_diagonal(diagonal, &planes[w][..whole], &mut upper[w][..whole]);
                out[w][start..start + wanted].copy_from_slice(&upper[w][..wanted]);
            }
        }
    }
}

/// One pass of factors, with the sums so far.
struct Stage<const W: usize> {
    factors: Prg,
    drawn: [Block; PIECE],
    sums: Zeroizing<[Block; W]>,
}

impl<const W: usize> Stage<W> {
    fn new(factors: &Prg) -> Self {
        Stage {
            factors: factors.clone(),
            drawn: [Block::ZERO; PIECE],
            sums: Zeroizing::new([Block::ZERO; W]),
        }
    }

    /// Multiplies the next `len` entries of every plane.
    fn scale(&mut self, planes: &mut [[Block; PIECE]; W], len: usize) {
        self.factors.fill_blocks(&mut self.drawn[..len]);
        for plane in planes {
            gf128::multiply_each(&mut plane[..len], &self.drawn[..len]);
        }
    }

    /// Multiplies, accumulates and writes rows.
    fn accumulate(&mut self, planes: &mut [[Block; PIECE]; W], rows: &mut [[Block; W]]) {
        self.scale(planes, rows.len());
        let mut sums = *self.sums;
        for (i, row) in rows.iter_mut().enumerate() {
            for (sum, plane) in sums.iter_mut().zip(planes.iter()) {
                *sum ^= plane[i];
            }
            *row = sums;
        }
        *self.sums = sums;
    }
}

fn split<const W: usize>(rows: &[[Block; W]], planes: &mut [[Block; PIECE]; W]) {
    for (w, plane) in planes.iter_mut().enumerate() {
        for (to, row) in plane.iter_mut().zip(rows) {
            *to = row[w];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::silent::code::{BlockAccumulate, encode_all};

    fn encode(code: &ScaledAccumulate, input: &[Block]) -> Vec<Block> {
        let mut out = vec![Block::ZERO; code.output_len()];
        code.encode(&mut input.to_vec(), &mut input.to_vec(), [&mut out]);
        out
    }

    /// Straight from the definition.
    fn naive(code: &ScaledAccumulate, input: &[Block]) -> Vec<Block> {
        let n = input.len();
        let mut values = input.to_vec();
        let draw = |prg: &Prg, len: usize| {
            let mut blocks = vec![Block::ZERO; len];
            prg.clone().fill_blocks(&mut blocks);
            blocks
        };
        for (permutation, factors) in code.permutations.iter().zip(&code.factors) {
            let factors = draw(factors, n);
            let mut sum = Block::ZERO;
            let sums: Vec<Block> = values
                .iter()
                .zip(&factors)
                .map(|(x, r)| {
                    sum ^= gf128::mul(*x, *r);
                    sum
                })
                .collect();
            let mut image = [0; 1];
            values = (0..n)
                .map(|i| {
                    permutation.images(i, &mut image);
                    sums[image[0] as usize]
                })
                .collect();
        }
        let (upper, lower) = values.split_at(n / 2);
        let factors = draw(&code.factors[2], n / 2);
        let lower: Vec<Block> = lower.iter().zip(&factors).map(|(x, r)| gf128::mul(*x, *r)).collect();
        let mut out = upper.to_vec();
        add_diagonal(&mut code.diagonal.clone(), &lower, &mut out);
        out
    }

    #[test]
    fn encoding_is_the_matrix_product_for_one_vector_and_for_two() {
        let mut prg = Prg::from_seed(Block::new(12));
        for n in [64, 192, 704, 2 * PIECE, 11 << 8] {
            let code = ScaledAccumulate::new(prg.block(), n);
            let mut inputs = [vec![Block::ZERO; n], vec![Block::ZERO; n]];
            inputs.iter_mut().for_each(|input| prg.fill_blocks(input));
            let expected = inputs.each_ref().map(|input| naive(&code, input));
            assert!(encode(&code, &inputs[0]) == expected[0], "length {n}");
            for count in [n / 2, 7] {
                let mut out = [vec![Block::ZERO; count], vec![Block::ZERO; count]];
                let [one, two] = &mut out;
                code.encode(&mut inputs.concat(), &mut vec![Block::ONES; 2 * n], [one, two]);
                assert!(
                    out[0][..] == expected[0][..count] && out[1][..] == expected[1][..count],
                    "length {n}"
                );
            }
        }
    }

    /// A subspace of GF(2)^n, spanned by rows in echelon form.
    #[derive(Default)]
    struct Space(Vec<Vec<bool>>);

    impl Space {
        /// Reduces a vector by the subspace; `true` where something is left.
        fn reduce(&self, vector: &mut [bool]) -> bool {
            for row in &self.0 {
                let pivot = row.iter().position(|bit| *bit).unwrap();
                if vector[pivot] {
                    vector.iter_mut().zip(row).for_each(|(bit, other)| *bit ^= other);
                }
            }
            vector.iter().any(|bit| *bit)
        }

        fn add(&mut self, mut vector: Vec<bool>) {
            if self.reduce(&mut vector) {
                self.0.push(vector);
            }
        }
    }

    fn plane(blocks: &[Block], bit: usize) -> Vec<bool> {
        blocks.iter().map(|block| block.bit(bit)).collect()
    }

    /// Interleaved decoding: which positions does it call noisy, and what rank do the bit-planes of the
    /// output have? `encode` is linear over GF(2^128).
    fn eliminate(
        len: usize,
        noisy: &[usize],
        encode: impl Fn(&[Block]) -> Vec<Block>,
    ) -> (usize, Vec<usize>) {
        let mut prg = Prg::from_seed(Block::new(3));
        let mut noise = vec![Block::ZERO; len];
        noisy.iter().for_each(|at| noise[*at] = prg.block());
        let output = encode(&noise);
        let mut space = Space::default();
        (0..128).for_each(|bit| space.add(plane(&output, bit)));
        let found = (0..len).filter(|&at| {
            let mut unit = vec![Block::ZERO; len];
            unit[at] = Block::ONE;
            let row = encode(&unit);
            // Over a binary code planes but the lowest are zero, and zero is no evidence.
            let planes = (0..128).map(|bit| plane(&row, bit)).filter(|plane| plane.contains(&true));
            planes.into_iter().any(|mut plane| !space.reduce(&mut plane))
        });
        (space.0.len(), found.collect())
    }

    #[test]
    fn interleaved_decoding_breaks_the_binary_code_and_not_this_one() {
        let (len, seed) = (512, Block::new(77));
        let noisy: Vec<usize> = (0..40).map(|i| 12 * i + i * i % 11).collect();
        let binary = BlockAccumulate::new(seed, len);
        let (rank, found) = eliminate(len, &noisy, |noise| encode_all(&binary, noise));
        assert_eq!((rank, found), (40, noisy.clone()));
        let ours = ScaledAccumulate::new(seed, len);
        let (rank, found) = eliminate(len, &noisy, |noise| encode(&ours, noise));
        assert_eq!((rank, found), (128, Vec::new()));
    }
}
