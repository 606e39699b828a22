//! Parameter sets. `docs/post-quantum.md` has the hardness and failure probability of each.

use alloc::vec;
use alloc::vec::Vec;
use tacit_crypto::ring::{Noise, RING_256_7681, RING_512_13313, RING_1024_12289, Ring};

/// A key exchange over the module of rank K over Z_q\[X\]/(X^N + 1).
#[derive(Clone, Copy)]
pub struct Set<const N: usize, const K: usize> {
    /// The set's name; hashes and handshakes bind it.
    pub name: &'static str,
    /// The ring.
    pub ring: &'static Ring<N>,
    /// The distribution of secrets and errors.
    pub noise: Noise,
    /// Coefficients that are reconciled: the bits of a key and of a signal. A multiple of 256.
    pub key_bits: usize,
}

/// The default: rank 3 over degree 256, q = 7681, η = 2.
// proof: roted 6.1, 7.1
pub static MODULE: Set<256, 3> =
    Set { name: "module-3-256-7681", ring: &RING_256_7681, noise: Noise::Binomial2, key_bits: 256 };

/// Degree 1024, q = 12289, η = 2, of which 256 coefficients are reconciled.
pub static LARGE: Set<1024, 1> =
    Set { name: "ring-1024-12289", ring: &RING_1024_12289, noise: Noise::Binomial2, key_bits: 256 };

/// The paper's set, with less than 128 bits of security: for reproducing its tables only.
pub static PAPER: Set<512, 1> =
    Set { name: "ring-512-13313", ring: &RING_512_13313, noise: Noise::Gaussian2, key_bits: 512 };

impl<const N: usize, const K: usize> Set<N, K> {
    /// Words of 16 bits in a key or a signal.
    pub const fn key_words(&self) -> usize {
        self.key_bits / 16
    }

    /// Bytes of a public value on the wire.
    pub const fn public_len(&self) -> usize {
        K * self.ring.packed_len()
    }

    /// The expected number of key bits in which the sides of one honest exchange differ, which bounds the
    /// probability that their keys do.
    ///
    /// The shared values differ by d = 2·(a sum of 2·N·K products of two noise samples and of two noise
    /// samples), whose law is computed by convolution; the value itself is taken to be uniform.
    pub fn failure_probability(&self) -> f64 {
        let unit = law(self.noise);
        let sum = convolve(&power(&product_law(&unit), 2 * N * K), &power(&unit, 2));
        let centre = (sum.len() / 2) as i64;
        let differing = |(i, p): (usize, &f64)| p * self.bit_differs(2 * (i as i64 - centre));
        sum.iter().enumerate().map(differing).sum::<f64>() * self.key_bits as f64
    }

    /// Pr[Mod2(x + d, σ) ≠ Mod2(x, σ)] for uniform x, σ = Sig(x), and even d.
    ///
    /// After the shift by σ, x lies in ±q/4 or so, and the parity of x + d differs only if the sum wraps
    /// around q.
    fn bit_differs(&self, d: i64) -> f64 {
        let q = self.ring.modulus() as i64;
        let (half, quarter) = (q / 2, q / 4);
        let mut wraps = 0;
        for coin in [0, 1] {
            for (low, high) in
                [(coin - quarter, coin + quarter), (quarter + coin - half, half - quarter + coin - 1)]
            {
                let past = (high + d - half).max(-half - low - d);
                wraps += past.clamp(0, high - low + 1);
            }
        }
        wraps as f64 / (2 * q) as f64
    }
}

/// Pr[X = x] at x + bound.
fn law(noise: Noise) -> Vec<f64> {
    let half: Vec<f64> = noise.law().iter().map(|&p| p as f64 / (1u64 << 32) as f64).collect();
    half.iter().skip(1).rev().chain(&half).copied().collect()
}

fn product_law(unit: &[f64]) -> Vec<f64> {
    let bound = (unit.len() / 2) as isize;
    let mut out = vec![0.0; (2 * bound * bound + 1) as usize];
    for (i, p) in unit.iter().enumerate() {
        for (j, r) in unit.iter().enumerate() {
            let product = (i as isize - bound) * (j as isize - bound);
            out[(product + bound * bound) as usize] += p * r;
        }
    }
    out
}

/// The law of the sum of two independent symmetric values; tails under 2^-900 fall away at both ends alike.
fn convolve(a: &[f64], b: &[f64]) -> Vec<f64> {
    let mut out = vec![0.0; a.len() + b.len() - 1];
    for (i, p) in a.iter().enumerate() {
        for (slot, r) in out[i..].iter_mut().zip(b) {
            *slot += p * r;
        }
    }
    let cut = out.iter().take_while(|p| **p < 1e-271).count().min(out.len() / 2);
    out[cut..out.len() - cut].to_vec()
}

fn power(law: &[f64], mut exponent: usize) -> Vec<f64> {
    let (mut base, mut out) = (law.to_vec(), vec![1.0]);
    while exponent > 0 {
        if exponent & 1 == 1 {
            out = convolve(&out, &base);
        }
        exponent >>= 1;
        if exponent > 0 {
            base = convolve(&base, &base);
        }
    }
    out
}
