//! Additive FFT over GF(2^128) in a Cantor basis: the kernels of products in GF(2)\[x\].

use super::{Backend, dispatch};
use crate::Block;

/// log2 of the entries of [`Twiddles`]' low table.
const LOW: u32 = 8;
/// The least transform: 2^4 points.
pub const MIN_LOG: u32 = 4;

/// The factors of the butterflies: block `b` of any level takes Σ of β_{k+1} over the bits k of `b`.
pub struct Twiddles {
    low: Vec<Block>,
    high: Vec<Block>,
}

impl Twiddles {
    /// For transforms up to 2^`log` points; `basis[i]` is β_i, `log` of them.
    pub fn new(basis: &[Block], log: u32) -> Self {
        let span = |basis: &[Block]| {
            let mut out = vec![Block::ZERO];
            for beta in basis {
                for i in 0..out.len() {
                    out.push(out[i] ^ *beta);
                }
            }
            out
        };
        let used = &basis[1..log as usize];
        let (low, high) = used.split_at(used.len().min(LOW as usize));
        Twiddles { low: span(low), high: span(high) }
    }

    /// The factor of block `b`.
    #[inline(always)]
    pub(super) fn at(&self, b: usize) -> Block {
        self.low[b & (self.low.len() - 1)] ^ self.high[b >> LOW]
    }

    /// Where the factors of blocks `b`, `b + 1`, … stand in the low table, and what is added to all of them.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    pub(super) fn run(&self, b: usize, count: usize) -> (*const Block, Block) {
        let start = b & (self.low.len() - 1);
        (self.low[start..start + count].as_ptr(), self.high[b >> LOW])
    }

    fn points(&self) -> usize {
        2 * self.low.len() * self.high.len()
    }
}

/// From coefficients in the novel basis to values at all points. `data.len()` is a power of two, 16 at least.
pub fn forward(backend: Backend, data: &mut [Block], twiddles: &Twiddles) {
    check(data, twiddles);
    dispatch!(backend, gf2x_portable, gf2x_x86, forward(data, twiddles))
}

/// The inverse of [`forward`].
pub fn inverse(backend: Backend, data: &mut [Block], twiddles: &Twiddles) {
    check(data, twiddles);
    dispatch!(backend, gf2x_portable, gf2x_x86, inverse(data, twiddles))
}

/// `data[i] *= factors[i]`; panics when the lengths differ.
pub fn multiply(backend: Backend, data: &mut [Block], factors: &[Block]) {
    assert_eq!(data.len(), factors.len(), "one factor a value");
    dispatch!(backend, gf2x_portable, gf2x_x86, multiply(data, factors))
}

fn check(data: &[Block], twiddles: &Twiddles) {
    let n = data.len();
    assert!(n.is_power_of_two() && n >= 1 << MIN_LOG && n <= twiddles.points(), "transform length");
}
