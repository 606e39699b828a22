//! The block-accumulate code over a prime field, for arithmetic correlations.
//!
//! As the binary one, with public random multipliers: before each accumulation every entry is multiplied by one, and the
//! 32×32 blocks hold field elements. Random multipliers only add to what the binary code mixes; the weight of the noise is
//! that of the binary code.

use core::marker::PhantomData;
use tacit_crypto::accumulate::{Permutation, SIGMA};
use tacit_crypto::field::Field;
use tacit_crypto::transcript::Transcript;
use tacit_crypto::{Block, Prg};
use zeroize::Zeroizing;

/// Scalars drawn together.
const BATCH: usize = 256;

/// The code of one length and seed over the field `F`.
#[derive(Clone, Debug)]
pub struct FieldAccumulate<F> {
    outputs: usize,
    permutations: [Permutation; 2],
    scalars: [Prg; 2],
    diagonal: Prg,
    field: PhantomData<F>,
}

impl<F: Field> FieldAccumulate<F> {
    /// The code from `input_len` to half as many; `input_len` a multiple of 64 below 2^31. Panics otherwise.
    pub fn new(seed: Block, input_len: usize) -> Self {
        assert!(input_len > 0 && input_len.is_multiple_of(2 * SIGMA) && input_len < 1 << 31, "code length");
        let mut transcript = Transcript::new("tacit block-accumulate 3x32 field v1");
        transcript.append("field", F::NAME.as_bytes());
        transcript.append_blocks("seed", &[seed]);
        transcript.append_u64("length", input_len as u64);
        let mut prg = transcript.challenge_prg("permutations");
        FieldAccumulate {
            outputs: input_len / 2,
            permutations: core::array::from_fn(|_| Permutation::new(input_len, &mut prg)),
            scalars: ["first", "second"].map(|label| transcript.challenge_prg(label)),
            diagonal: transcript.challenge_prg("diagonal"),
            field: PhantomData,
        }
    }

    /// The first `count` results. Panics when `input` has the wrong length or `count` is too large.
    pub fn encode(&self, input: Vec<F>, count: usize) -> Vec<F> {
        assert!(input.len() == 2 * self.outputs && count <= self.outputs, "code shapes");
        let mut values = Zeroizing::new(input);
        for (permutation, scalars) in self.permutations.iter().zip(&self.scalars) {
            accumulate(&mut values, scalars.clone());
            let mut permuted = Zeroizing::new(vec![F::ZERO; values.len()]);
            permutation.gather(0, &values, &mut permuted, |to, value| *to = value);
            values = permuted;
        }
        let (upper, lower) = values.split_at(self.outputs);
        let mut prg = self.diagonal.clone();
        let mut row = [Block::ZERO; SIGMA];
        let fold = |i: usize| {
            prg.fill_blocks(&mut row);
            let inputs = &lower[i / SIGMA * SIGMA..][..SIGMA];
            row.iter().zip(inputs).fold(upper[i], |sum, (m, x)| sum + F::from_block(*m) * *x)
        };
        (0..count).map(fold).collect()
    }
}

fn accumulate<F: Field>(values: &mut [F], mut scalars: Prg) {
    let mut sum = F::ZERO;
    let mut blocks = [Block::ZERO; BATCH];
    for chunk in values.chunks_mut(BATCH) {
        let blocks = &mut blocks[..chunk.len()];
        scalars.fill_blocks(blocks);
        for (value, scalar) in chunk.iter_mut().zip(blocks) {
            sum = sum + *value * F::from_block(*scalar);
            *value = sum;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tacit_crypto::field::{F61, F128};

    /// Straight from the definition: each accumulation Σ_{j ≤ i} r_j·x_j, then a permutation; at last row i of the
    /// block matrix.
    fn naive<F: Field>(code: &FieldAccumulate<F>, input: &[F]) -> Vec<F> {
        let n = input.len();
        let scalar = |prg: &Prg, len: usize| -> Vec<F> {
            let mut blocks = vec![Block::ZERO; len];
            prg.clone().fill_blocks(&mut blocks);
            blocks.into_iter().map(F::from_block).collect()
        };
        let sum = |terms: &mut dyn Iterator<Item = F>| terms.fold(F::ZERO, |sum, x| sum + x);
        let mut values = input.to_vec();
        for (permutation, scalars) in code.permutations.iter().zip(&code.scalars) {
            let r = scalar(scalars, n);
            let sums: Vec<F> = (0..n).map(|i| sum(&mut (0..=i).map(|j| r[j] * values[j]))).collect();
            let mut images = vec![0; n];
            images.chunks_mut(BATCH).enumerate().for_each(|(i, images)| {
                let mut batch = [0; BATCH];
                permutation.images(i * BATCH, &mut batch);
                images.copy_from_slice(&batch[..images.len()]);
            });
            values = images.into_iter().map(|image| sums[image as usize]).collect();
        }
        let (upper, lower) = values.split_at(n / 2);
        let matrix = scalar(&code.diagonal, n / 2 * SIGMA);
        let row =
            |i: usize| sum(&mut (0..SIGMA).map(|j| matrix[i * SIGMA + j] * lower[i / SIGMA * SIGMA + j]));
        (0..n / 2).map(|i| upper[i] + row(i)).collect()
    }

    fn matrix_product<F: Field>() {
        let mut prg = Prg::from_seed(Block::new(9));
        for n in [64, 192, 704] {
            let code = FieldAccumulate::<F>::new(prg.block(), n);
            let input: Vec<F> = (0..n).map(|_| F::from_block(prg.block())).collect();
            let expected = naive(&code, &input);
            assert!(code.encode(input.clone(), n / 2) == expected, "length {n}");
            assert!(code.encode(input, 7)[..] == expected[..7], "a prefix of length {n}");
        }
    }

    #[test]
    fn encoding_is_the_matrix_product() {
        matrix_product::<F61>();
        matrix_product::<F128>();
    }
}
