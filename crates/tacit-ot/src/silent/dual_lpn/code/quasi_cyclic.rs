//! The quasi-cyclic code of BCGIKRS19, section 7.1, with N/n = 2.
//!
//! H = (I_n, rot(h))ᵀ for a random public h, without its last column: the results are the first n − 1
//! coefficients of e_0 + e_1·h mod x^n − 1. n is prime and 2 a primitive root mod n, so that x^n − 1 has two
//! factors only; the dropped coefficient takes away the parity, which would tell results from random ones.
//!
//! All 128 bit columns are multiplied by the same prepared h, which is drawn in another basis of the
//! polynomials below degree n and is as uniform there. Time depends on lengths alone.

use super::LinearCode;
use tacit_crypto::gf2x::Prepared;
use tacit_crypto::transcript::Transcript;
use tacit_crypto::{BitVec, Block, Buffer};
use zeroize::Zeroize;

const PIECE: usize = 4096;

/// The code of one length and seed.
pub struct QuasiCyclic {
    n: usize,
    factor: Prepared,
}

impl QuasiCyclic {
    /// The code from at most `input_len` positions, as few fewer as the choice of n costs. Panics below 64
    /// and from 2^31 on.
    pub fn new(seed: Block, input_len: usize) -> Self {
        assert!((64..1 << 31).contains(&input_len), "code length");
        let n = modulus_below(input_len / 2);
        let mut transcript = Transcript::new("tacit quasi-cyclic v2");
        transcript.append_blocks("seed", &[seed]);
        transcript.append_u64("n", n as u64);
        let mut bytes = vec![0u8; n.div_ceil(8)];
        transcript.challenge_prg("h").fill_bytes(&mut bytes);
        QuasiCyclic { n, factor: Prepared::new(&BitVec::from_bytes(&bytes, n), n) }
    }
}

impl LinearCode for QuasiCyclic {
    fn input_len(&self) -> usize {
        2 * self.n
    }

    fn output_len(&self) -> usize {
        self.n - 1
    }

    fn absorb(&self, _carry: &mut Block, _piece: &mut [Block]) {}

    fn encode(&self, noise: Buffer, count: usize, each: &mut dyn FnMut(&mut [Block])) {
        assert!(count < self.n && noise.len() >= self.input_len(), "code shapes");
        let n = self.n;
        let mut product = Buffer::zeros(self.factor.len());
        product[..n].copy_from_slice(&noise[n..2 * n]);
        self.factor.multiply(&mut product, n);
        let mut rows = [Block::ZERO; PIECE];
        for start in (0..count).step_by(PIECE) {
            let rows = &mut rows[..PIECE.min(count - start)];
            let terms = noise[start..].iter().zip(&product[start..]).zip(&product[n + start..]);
            for (row, ((e_0, low), high)) in rows.iter_mut().zip(terms) {
                *row = *e_0 ^ *low ^ *high;
            }
            each(rows);
        }
        rows.zeroize();
    }
}

/// The largest prime up to `bound` of which 2 is a primitive root; `bound` is 32 at least.
fn modulus_below(bound: usize) -> usize {
    let fits = |n: u64| {
        let factors = prime_factors(n - 1);
        prime_factors(n) == [n] && factors.iter().all(|f| power_of_two_mod((n - 1) / f, n) != 1)
    };
    (3..=bound as u64).rev().find(|&n| n % 2 == 1 && fits(n)).unwrap_or(3) as usize
}

fn prime_factors(mut n: u64) -> Vec<u64> {
    let mut factors = Vec::new();
    let mut d = 2;
    while d * d <= n {
        if n.is_multiple_of(d) {
            factors.push(d);
            while n.is_multiple_of(d) {
                n /= d;
            }
        }
        d += 1 + (d > 2) as u64;
    }
    if n > 1 {
        factors.push(n);
    }
    factors
}

fn power_of_two_mod(exponent: u64, n: u64) -> u64 {
    (0..exponent.ilog2() + 1).rev().fold(1, |power, bit| {
        let square = power * power % n;
        if exponent >> bit & 1 == 1 { square * 2 % n } else { square }
    })
}

#[cfg(test)]
mod tests {
    use super::super::encode_all;
    use super::*;
    use tacit_crypto::Prg;

    #[test]
    fn two_generates_the_units() {
        for bound in [32, 100, 1000, 5000, 70_000] {
            let n = modulus_below(bound);
            let mut power = 1;
            let order = (1..n).find(|_| {
                power = power * 2 % n;
                power == 1
            });
            assert_eq!(order, Some(n - 1), "{n}");
            assert!(n <= bound && n + 200 > bound);
        }
    }

    #[test]
    fn encoding_is_the_matrix_product() {
        let mut prg = Prg::from_seed(Block::new(6));
        for len in [64, 200, 1000, 3000] {
            let seed = prg.block();
            let code = QuasiCyclic::new(seed, len);
            let n = code.n;
            let mut noise = vec![Block::ZERO; len];
            prg.fill_blocks(&mut noise);
            // h is what the code makes of e_1 = 1.
            let mut unit = vec![Block::ZERO; len];
            unit[n] = Block::ONE;
            let h: Vec<bool> = encode_all(&code, &unit).iter().map(|b| b.lsb()).collect();
            // Its last coefficient is dropped there; e_1 = x shows it.
            unit[n] = Block::ZERO;
            unit[n + 1] = Block::ONE;
            let last = encode_all(&code, &unit)[0].lsb();
            let h: Vec<bool> = h.into_iter().chain([last]).collect();
            assert!(h.iter().filter(|&&b| b).count() > n / 4);
            let expected: Vec<Block> = (0..n - 1)
                .map(|k| (0..n).filter(|i| h[(n + k - i) % n]).fold(noise[k], |acc, i| acc ^ noise[n + i]))
                .collect();
            assert!(encode_all(&code, &noise) == expected, "length {len}");
        }
    }
}
