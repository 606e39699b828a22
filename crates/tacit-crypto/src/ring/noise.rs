//! Small polynomials: discrete Gaussian by a cumulative table, and centred binomial.

use super::{Poly, dispatch};
use crate::Block;
use crate::simd::ntt_portable::{GAUSSIAN, Kernels};
use zeroize::Zeroize;

/// A stream of secret random blocks: a [`Prg`](crate::Prg), or [`XofBlocks`] where there is no operating
/// system.
pub trait RandomBlocks {
    /// Fills `out` with the next blocks of the stream.
    fn fill_blocks(&mut self, out: &mut [Block]);
}

#[cfg(feature = "std")]
impl RandomBlocks for crate::Prg {
    fn fill_blocks(&mut self, out: &mut [Block]) {
        crate::Prg::fill_blocks(self, out);
    }
}

/// The stream of BLAKE3 in extended-output mode under a 256-bit seed: the same on every processor, and fast
/// without AES instructions too, where a polynomial's randomness from AES costs thirty times as much.
pub struct XofBlocks(blake3::OutputReader);

impl XofBlocks {
    /// The stream of `seed`, which must be secret and used once.
    pub fn new(seed: &[u8; 32]) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key("tacit 2026 random blocks v1");
        hasher.update(seed);
        XofBlocks(hasher.finalize_xof())
    }

    /// A stream seeded with the next 32 bytes of `prg`.
    #[cfg(feature = "std")]
    pub fn from_prg(prg: &mut crate::Prg) -> Self {
        let mut seed = [0; 32];
        prg.fill_bytes(&mut seed);
        let stream = XofBlocks::new(&seed);
        seed.zeroize();
        stream
    }
}

impl RandomBlocks for XofBlocks {
    fn fill_blocks(&mut self, out: &mut [Block]) {
        self.0.fill(Block::as_bytes_mut(out));
    }
}

impl Drop for XofBlocks {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

/// The distribution of secrets and errors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Noise {
    /// Σ of two bits less Σ of two bits: η = 2, variance 1.
    Binomial2,
    /// The discrete Gaussian of σ = 2, rounded to multiples of 2^-31.
    Gaussian2,
}

/// ⌊2^31·Pr[|X| ≤ k]⌋ for k = 0 …, X the discrete Gaussian with Pr[X = x] ∝ exp(−x²/8); from
/// `tools/rlwe-security/rlwe_security.py --tables`, which recomputes it, as does a test here.
const GAUSSIAN2: [i32; GAUSSIAN] = [
    428361011, 1184415544, 1704043718, 1982180637, 2098125354, 2135767093, 2145284415, 2147158487,
    2147445885, 2147480210, 2147483403, 2147483634, 2147483647,
];

impl Noise {
    /// Blocks of randomness that a polynomial of `n` coefficients takes.
    pub const fn blocks(self, n: usize) -> usize {
        match self {
            Noise::Binomial2 => n / 32,
            Noise::Gaussian2 => n / 4,
        }
    }

    /// The largest coefficient.
    pub const fn bound(self) -> i16 {
        match self {
            Noise::Binomial2 => 2,
            Noise::Gaussian2 => GAUSSIAN2.len() as i16,
        }
    }

    /// Fills `out` with independent samples, in constant time. `scratch` is the caller's, at least
    /// [`blocks`](Self::blocks) long, and holds secrets afterwards.
    ///
    /// Panics when `scratch` is too short.
    pub fn sample<const N: usize>(
        self,
        random: &mut impl RandomBlocks,
        scratch: &mut [Block],
        out: &mut Poly<N>,
    ) {
        dispatch!(k => self.sample_by(k, random, scratch, out))
    }

    /// [`sample`](Self::sample) by the kernels `k`. Every backend takes the stream's bytes in the same order.
    #[inline]
    pub(super) fn sample_by<const N: usize>(
        self,
        k: impl Kernels,
        random: &mut impl RandomBlocks,
        scratch: &mut [Block],
        out: &mut Poly<N>,
    ) {
        let scratch = &mut scratch[..self.blocks(N)];
        random.fill_blocks(scratch);
        let bytes = Block::as_bytes(scratch);
        match self {
            Noise::Binomial2 => k.binomial2(bytemuck::cast_slice(bytes), &mut out.0),
            Noise::Gaussian2 => k.cumulative(&GAUSSIAN2, bytemuck::cast_slice(bytes), &mut out.0),
        }
    }

    /// Pr[X = x] for x from 0 to [`bound`](Self::bound), as the sampler draws it, in units of 2^-32.
    pub fn law(self) -> alloc::vec::Vec<u64> {
        match self {
            Noise::Binomial2 => [6u64, 4, 1].map(|p| p << 28).to_vec(),
            Noise::Gaussian2 => {
                let ends = GAUSSIAN2.iter().map(|&t| t as u64).chain([1 << 31]);
                let starts = [0].into_iter().chain(GAUSSIAN2.iter().map(|&t| t as u64));
                // The size 0 has no sign, so its mass counts whole; the others' is halved.
                ends.zip(starts)
                    .enumerate()
                    .map(|(x, (end, start))| (end - start) << (x == 0) as u32)
                    .collect()
            }
        }
    }
}
