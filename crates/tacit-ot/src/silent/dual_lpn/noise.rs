//! Regular noise: one noisy position in each of many equal blocks, each a tree's.

use super::params::{Code, linear_weight};
use crate::silent::tree::leaf_check::SEGMENT;
use crate::silent::tree::shape::Shape;
use tacit_crypto::Prg;
use tacit_crypto::ggm::LANES;

// proof: vole 5.1
const DEPTHS: core::ops::RangeInclusive<usize> = 8..=20;
/// What a base correlation costs, in leaves: with it, 10^7 correlations stay below 130 kB.
const LEAVES_PER_COT: usize = 2000;

impl Code {
    /// The noise for `count` results.
    pub(crate) fn noise(self, count: usize) -> Noise {
        Noise::new(self.weight(), count, 16)
    }

    /// The trees for `count` results.
    pub(crate) fn shape(self, count: usize) -> Shape {
        self.noise(count).shape
    }
}

/// The cheapest trees for `count` results with at least `weight` noisy positions.
fn shape_of(weight: usize, count: usize) -> Shape {
    let wanted = wanted(count);
    let shapes =
        DEPTHS.map(|depth| Shape { tiles: weight.max(wanted.div_ceil(1 << depth)).div_ceil(LANES), depth });
    let cost = |shape: &Shape| positions(*shape) + LEAVES_PER_COT * shape.cots();
    shapes.min_by_key(cost).unwrap_or(Shape { tiles: weight.div_ceil(LANES), depth: *DEPTHS.start() })
}

/// Positions that `count` results take, with room for the search of a prime.
fn wanted(count: usize) -> usize {
    2 * (count + 1) + 4096
}

fn positions(shape: Shape) -> usize {
    (shape.tiles * LANES) << shape.depth
}

/// Regular noise with no more positions than the code takes: of each tree the first `block` leaves, one of
/// which is noisy.
///
/// The trees must have 2^ℓ leaves, the positions need not: what is cut off costs its share of the trees, a
/// small one, and none of the code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Noise {
    pub shape: Shape,
    pub block: usize,
}

impl Noise {
    fn new(weight: usize, count: usize, grain: usize) -> Self {
        let shape = shape_of(weight, count);
        // The permutations want a length that a large power of two divides.
        let grain = grain.max(1 << (shape.depth - 6));
        let block = wanted(count).div_ceil(shape.tiles * LANES).next_multiple_of(grain);
        Noise { shape, block: block.clamp(1 << DEPTHS.start(), 1 << shape.depth) }
    }

    /// For the code [`Code::Linear`] and values in a field of `q` elements, in whole segments of the check's
    /// weights.
    pub(crate) fn of_field(q: usize, count: usize) -> Self {
        Noise::new(linear_weight(q), count, SEGMENT / LANES)
    }

    /// Blocks of a tile that are positions, its first ones.
    pub(crate) fn tile_len(self) -> usize {
        LANES * self.block
    }

    pub(crate) fn trees(self) -> usize {
        self.shape.tiles * LANES
    }

    pub(crate) fn positions(self) -> usize {
        self.shape.tiles * self.tile_len()
    }

    /// A noisy leaf for each tree. The bias of the product of 64 bits is below 2^-40.
    pub(crate) fn points(self, prg: &mut Prg) -> Vec<u32> {
        let mut point = || ((prg.u64() as u128 * self.block as u128) >> 64) as u32;
        (0..self.shape.tiles * LANES).map(|_| point()).collect()
    }
}
