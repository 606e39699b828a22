//! Hashes of MACs and labels, which are compared in place of them.

use super::bits::zeros;
use super::oracle::Oracle;
use tacit_crypto::{Block, Buffer};

/// A running hash of MACs, bound to a run, to what is opened and to who opens.
pub(super) struct MacHash {
    hasher: blake3::Hasher,
    /// Pairs of halves, of which the first `waiting` are still to be hashed.
    halves: Buffer,
    waiting: usize,
}

/// Blocks that are hashed at a time: as much as the hash's widest kernel takes, twice.
const HASHED: usize = 1 << 11;

impl MacHash {
    pub(super) fn new(oracle: &Oracle, label: &str, garbler: bool) -> Self {
        MacHash { hasher: oracle.hasher(label, garbler), halves: zeros(HASHED), waiting: 0 }
    }

    /// One that goes on from here by itself.
    #[cfg(test)]
    pub(super) fn fork(&self) -> Self {
        MacHash { hasher: self.hasher.clone(), halves: zeros(HASHED), waiting: 0 }
    }

    /// Adds whole blocks.
    pub(super) fn update(&mut self, blocks: &[Block]) {
        self.flush();
        self.hasher.update(Block::as_bytes(blocks));
    }

    /// Adds the lower half of each of `macs`; both parties add as many at a time. What a wrong one lacks are
    /// 63 bits of the other's Δ then, to be guessed once.
    pub(super) fn update_halves(&mut self, macs: &[Block]) {
        for macs in macs.chunks(2 * HASHED) {
            if self.waiting + macs.len().div_ceil(2) > HASHED {
                self.flush();
            }
            let (pairs, last) = macs.as_chunks::<2>();
            let halves = &mut self.halves[self.waiting..];
            for (half, [first, second]) in halves.iter_mut().zip(pairs) {
                *half = Block::from_halves(first.low(), second.low());
            }
            if let [last] = last {
                halves[pairs.len()] = Block::from_halves(last.low(), 0);
            }
            self.waiting += pairs.len() + last.len();
        }
    }

    fn flush(&mut self) {
        self.hasher.update(Block::as_bytes(&self.halves[..std::mem::take(&mut self.waiting)]));
    }

    pub(super) fn digest(&mut self) -> [u8; 32] {
        self.flush();
        *self.hasher.finalize().as_bytes()
    }
}
