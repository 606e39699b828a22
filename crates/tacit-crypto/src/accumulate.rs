//! What a block-accumulate code is made of: a public permutation, and random blocks of 32×32 bits on the
//! diagonal.

use crate::simd::Backend;
use crate::simd::accumulate::{self as kernel, Feistel, Matrix};
use crate::{Block, Prg};

/// Inputs and outputs of one diagonal block.
pub const SIGMA: usize = kernel::SIGMA;

/// A public pseudorandom permutation of a range: four rounds of a Feistel network over Z_a × Z_b with a·b its
/// length.
#[derive(Clone, Debug)]
pub struct Permutation(Feistel);

impl Permutation {
    /// A permutation of 0..`len`, drawn from `prg`. Panics unless `len` is from 1 to 2^31.
    pub fn new(len: usize, prg: &mut Prg) -> Self {
        assert!((1..=1 << 31).contains(&len), "permutation length");
        let log_b = len.trailing_zeros().min(len.ilog2().div_ceil(2));
        let keys = core::array::from_fn(|_| prg.u64() as u32);
        Permutation(Feistel { a: (len >> log_b) as u32, log_b, keys })
    }

    /// The images of `first`, `first + 1`, …. Those of indices past the end are of no use.
    pub fn images(&self, first: usize, out: &mut [u32]) {
        kernel::images(Backend::active(), &self.0, first as u32, out);
    }

    /// Calls `each` for every element of `out` with the element of `from` at its image, the first of `out`
    /// standing at `first`. Panics when an image lies past the end of `from`.
    ///
    /// Indices are found and lines asked for a batch ahead, so that many reads are on their way at once.
    pub fn gather<T: Copy>(&self, first: usize, from: &[T], out: &mut [T], mut each: impl FnMut(&mut T, T)) {
        let (mut now, mut next) = ([0; BATCH], [0; BATCH]);
        let ask = |at: usize, images: &mut [u32; BATCH]| {
            self.images(first + at, images);
            kernel::prefetch(from, images);
        };
        let len = out.len();
        ask(0, &mut next);
        for (b, out) in out.chunks_mut(BATCH).enumerate() {
            core::mem::swap(&mut now, &mut next);
            if (b + 1) * BATCH < len {
                ask((b + 1) * BATCH, &mut next);
            }
            for (out, &image) in out.iter_mut().zip(&now) {
                each(out, from[image as usize]);
            }
        }
    }
}

/// Indices found together.
const BATCH: usize = 128;
/// Matrices drawn together.
const MATRICES: usize = 16;

/// Adds to each 32 blocks of `out` the product of the next matrix of `prg` with the 32 blocks of `input` at
/// their place.
///
/// A matrix takes eight blocks of the stream. Panics unless both have the same multiple of 32 blocks.
pub fn add_diagonal(prg: &mut Prg, input: &[Block], out: &mut [Block]) {
    assert!(input.len() == out.len() && out.len().is_multiple_of(SIGMA), "whole diagonal blocks");
    let backend = Backend::active();
    let mut bits = [[Block::ZERO; SIGMA * SIGMA / 128]; MATRICES];
    let pairs = input.chunks(MATRICES * SIGMA).zip(out.chunks_mut(MATRICES * SIGMA));
    for (input, out) in pairs {
        let bits = &mut bits[..out.len() / SIGMA];
        prg.fill_blocks(bits.as_flattened_mut());
        let blocks = input.as_chunks().0.iter().zip(out.as_chunks_mut().0);
        for ((input, out), bits) in blocks.zip(bits) {
            let matrix: Matrix =
                core::array::from_fn(|i| if i % 2 == 0 { bits[i / 2].low() } else { bits[i / 2].high() });
            kernel::add_product(backend, &matrix, input, out);
        }
    }
}
