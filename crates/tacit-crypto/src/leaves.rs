//! [`Leaves`]: streams of a tree's leaves, of which only sums are ever used.

use crate::Block;
use crate::simd::{self, Backend, leaves::Sums};
use zeroize::{Zeroize, Zeroizing};

/// Streams of [`Prg`](crate::Prg), numbered from 0 or 1 and below a power of two, that run in step.
pub struct Leaves {
    keys: Vec<[Block; 11]>,
    bits: usize,
    first: usize,
    counter: u64,
}

impl core::fmt::Debug for Leaves {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Leaves([secret])")
    }
}

impl Drop for Leaves {
    fn drop(&mut self) {
        self.keys.zeroize();
    }
}

impl Leaves {
    /// The streams of 2^`bits` seeds, or of all of them but the first, which is not known.
    ///
    /// Panics for another number of seeds, and beyond 8 bits.
    pub fn new(seeds: &[Block], bits: usize) -> Self {
        let keys = seeds.iter().map(|seed| simd::aes::expand(Backend::active(), *seed)).collect();
        let first = (1usize << bits) - seeds.len();
        assert!(first <= 1 && bits <= simd::leaves::MOST_BITS, "{} seeds", seeds.len());
        Leaves { keys, bits, first, counter: 0 }
    }

    /// XORs the next blocks of all streams into `total`. Column b, at b·`stride` of `columns`, becomes the XOR of those
    /// whose numbers have bit b, and of the blocks that are `given` under mask b, if any are. Of column, total and given
    /// as many blocks as `total` has.
    ///
    /// Panics if the columns do not lie apart within `columns`, or for another number of masks than columns.
    pub fn sum(
        &mut self,
        total: &mut [Block],
        columns: &mut [Block],
        stride: usize,
        given: Option<(&[Block], &[Block])>,
    ) {
        let count = total.len() as u64;
        let mut sums = Sums { total, columns, given, stride };
        simd::leaves::add(Backend::active(), &self.keys, self.bits, self.first, self.counter, &mut sums);
        self.counter = self.counter.wrapping_add(count);
    }

    /// Independent streams, seeded by these; whoever knows the same streams forks in step.
    pub fn fork(&mut self) -> Self {
        let mut seeds = Zeroizing::new(vec![Block::ZERO; self.keys.len()]);
        for (keys, seed) in self.keys.iter().zip(seeds.iter_mut()) {
            simd::aes::counter(Backend::active(), keys, self.counter, std::slice::from_mut(seed));
        }
        self.counter = self.counter.wrapping_add(1);
        Leaves::new(&seeds, self.bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Prg;

    #[test]
    fn sums_go_on_and_forks_are_those_of_the_streams() {
        let seeds: Vec<Block> = (1..8u128).map(Block::new).collect();
        let mut streams: Vec<Prg> = seeds.iter().map(|seed| Prg::from_seed(*seed)).collect();
        let mut leaves = Leaves::new(&seeds, 3);
        for len in [3, 1, 20] {
            for forked in [false, true] {
                let mut fork = forked.then(|| leaves.fork());
                let mut forks: Vec<Prg> =
                    if forked { streams.iter_mut().map(Prg::fork).collect() } else { Vec::new() };
                let streams = if forked { &mut forks } else { &mut streams };
                let (mut total, mut columns) = (vec![Block::ZERO; len], vec![Block::ZERO; 3 * len]);
                fork.as_mut().unwrap_or(&mut leaves).sum(&mut total, &mut columns, len, None);
                let (mut all, mut by) = (vec![Block::ZERO; len], vec![Block::ZERO; 3 * len]);
                for (x, stream) in (1..).zip(streams) {
                    for i in 0..len {
                        let block = stream.block();
                        all[i] ^= block;
                        (0..3).filter(|bit| x >> bit & 1 == 1).for_each(|bit| by[bit * len + i] ^= block);
                    }
                }
                assert!(total == all && columns == by, "{len} {forked}");
            }
        }
    }
}
