//! [`Prg`]: AES-128 in counter mode, the source of every random value in a protocol.

use crate::simd::{self, Backend};
use crate::{Block, aes::Aes128};
use zeroize::Zeroize;

/// AES-128 in counter mode: block `i` of the stream is AES_seed(i). Streams of equal seeds are equal.
#[derive(Clone)]
pub struct Prg {
    cipher: Aes128,
    counter: u64,
}

impl core::fmt::Debug for Prg {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Prg([secret])")
    }
}

impl Prg {
    /// The stream of `seed`.
    pub fn from_seed(seed: Block) -> Self {
        Prg { cipher: Aes128::new(seed), counter: 0 }
    }

    /// A stream seeded by the operating system.
    ///
    /// Panics when the operating system has no randomness to give: nothing may go on then.
    pub fn from_os() -> Self {
        let mut seed = [0u8; 16];
        getrandom::fill(&mut seed).expect("the operating system's random number generator failed");
        let prg = Self::from_seed(Block::from_bytes(seed));
        seed.zeroize();
        prg
    }

    /// Fills `out` with the next blocks of the stream.
    pub fn fill_blocks(&mut self, out: &mut [Block]) {
        simd::aes::counter(Backend::active(), self.cipher.round_keys(), self.counter, out);
        self.counter = self.counter.wrapping_add(out.len() as u64);
    }

    /// Leaves out the next `count` blocks of the stream.
    pub fn skip(&mut self, count: usize) {
        self.counter = self.counter.wrapping_add(count as u64);
    }

    /// XORs the next blocks of the stream into `out`.
    pub fn xor_blocks(&mut self, out: &mut [Block]) {
        simd::aes::counter_xor(Backend::active(), self.cipher.round_keys(), self.counter, out);
        self.counter = self.counter.wrapping_add(out.len() as u64);
    }

    /// The next block.
    pub fn block(&mut self) -> Block {
        let mut out = [Block::ZERO];
        self.fill_blocks(&mut out);
        out[0]
    }

    /// Fills `out` with random bytes; a call starts at a fresh block.
    pub fn fill_bytes(&mut self, out: &mut [u8]) {
        for chunk in out.chunks_mut(4096) {
            let mut blocks = [Block::ZERO; 256];
            let n = chunk.len().div_ceil(16);
            self.fill_blocks(&mut blocks[..n]);
            chunk.copy_from_slice(&Block::as_bytes(&blocks)[..chunk.len()]);
            blocks.zeroize();
        }
    }

    /// The next 64 random bits.
    pub fn u64(&mut self) -> u64 {
        self.block().low()
    }

    /// A uniform number below `bound` (not zero), by rejection; the time depends on the stream alone.
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound != 0, "no number is below zero");
        let zone = u64::MAX - (u64::MAX - bound + 1) % bound;
        loop {
            let x = self.u64();
            if x <= zone {
                return x % bound;
            }
        }
    }

    /// A random bit.
    pub fn bit(&mut self) -> bool {
        self.block().lsb()
    }

    /// A fresh, independent stream, seeded by this one.
    pub fn fork(&mut self) -> Prg {
        Prg::from_seed(self.block())
    }
}
