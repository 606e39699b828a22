//! The leaf check: all leaves of a batch of trees, weighed with what one public seed gives.
//!
//! Weights are the monomials of a multilinear polynomial in random field elements times a random element a
//! tile, soundness (depth + 3)/2^128. The receiver computes the weights of its secret leaves without a secret
//! index.

use super::shape::Shape;
use tacit_crypto::ggm::LANES;
use tacit_crypto::{Block, Prg, gf128};
use zeroize::Zeroizing;

/// What is summed without a tile's weights at a time: a tile's leaves, or its first ones, come in a multiple
/// of it.
pub(crate) const SEGMENT: usize = 512;

/// The weights of the consistency check, all from one public seed.
pub(crate) struct Weights {
    variables: Vec<Block>,
    within: Vec<Block>,
    segments: Vec<Block>,
    tiles: Vec<Block>,
}

impl Weights {
    /// The weights of `seed` for trees of `shape`.
    pub(crate) fn new(seed: Block, shape: Shape) -> Self {
        let mut prg = Prg::from_seed(seed);
        let mut variables = vec![Block::ZERO; shape.depth + LANES.ilog2() as usize];
        prg.fill_blocks(&mut variables);
        let inner = variables.len().min(SEGMENT.ilog2() as usize);
        let (low, high) = variables.split_at(inner);
        let (within, segments) = (gf128::monomials(low), gf128::monomials(high));
        let mut tiles = vec![Block::ZERO; shape.tiles];
        prg.fill_blocks(&mut tiles);
        Weights { variables, within, segments, tiles }
    }

    /// Σ χ·leaf over one tile.
    pub(crate) fn sum(&self, tile: usize, leaves: &[Block]) -> Block {
        let mut sum = Block::ZERO;
        for (segment, weight) in leaves.chunks_exact(self.within.len()).zip(&self.segments) {
            sum ^= gf128::mul(gf128::inner_product(&self.within, segment), *weight);
        }
        gf128::mul(sum, self.tiles[tile])
    }

    /// χ of one leaf a tree, from the first on, the same steps for every alpha.
    fn of_each(&self, alpha: &[u32]) -> Zeroizing<Vec<Block>> {
        let lanes = LANES.ilog2() as usize;
        let first = |tree: usize| gf128::mul(self.tiles[tree / LANES], self.within[tree % LANES]);
        let mut weights = Zeroizing::new((0..alpha.len()).map(first).collect::<Vec<_>>());
        let mut factors = Zeroizing::new(Vec::with_capacity(alpha.len() * self.variables.len()));
        for (i, x) in self.variables[lanes..].iter().enumerate() {
            let unless = *x ^ Block::ONE;
            factors.extend(alpha.iter().map(|a| Block::ONE ^ (unless & Block::mask(a >> i & 1 == 1))));
        }
        for factors in factors.chunks_exact(alpha.len().max(1)) {
            gf128::multiply_each(&mut weights, factors);
        }
        weights
    }

    /// The sum of the weights of one leaf a tree, each times the value of its tree.
    pub(crate) fn of_values(&self, alpha: &[u32], values: impl Iterator<Item = Block>) -> Block {
        let weights = self.of_each(alpha);
        weights.iter().zip(values).fold(Block::ZERO, |sum, (w, value)| sum ^ gf128::mul(*w, value))
    }

    /// Figure 6, step 7: φ, the sum of the weights of one leaf a tree.
    pub(crate) fn of_leaves(&self, alpha: &[u32]) -> Block {
        self.of_each(alpha).iter().fold(Block::ZERO, |sum, w| sum ^ *w)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The weights of points are those that leaves are weighed with.
    #[test]
    fn weights_of_points_are_those_of_the_sum() {
        let mut prg = Prg::from_seed(Block::new(5));
        for (tiles, depth) in [(1, 2), (3, 4), (2, 9)] {
            let weights = Weights::new(prg.block(), Shape { tiles, depth });
            let alpha: Vec<u32> = (0..tiles * LANES).map(|_| prg.below(1 << depth) as u32).collect();
            for (tree, weight) in weights.of_each(&alpha).iter().enumerate() {
                let mut leaves = vec![Block::ZERO; LANES << depth];
                leaves[alpha[tree] as usize * LANES + tree % LANES] = Block::ONE;
                assert_eq!(weight.to_hex(), weights.sum(tree / LANES, &leaves).to_hex());
            }
        }
    }
}
