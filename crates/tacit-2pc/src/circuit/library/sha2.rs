//! SHA-256 and SHA-512 (FIPS 180-4).
//!
//! Sums of several words are added column by column, which leaves out the carries that rows of adders would
//! make at the low end, and constants cost less than words.

use super::{from_words, words_of};
use crate::circuit::{Builder, Integer, Uint};

/// What SHA-256 and SHA-512 differ in.
struct Parameters {
    width: usize,
    rounds: usize,
    /// Rotations of Σ0 and Σ1, then those of σ0 and σ1, whose last entry is a shift.
    big: [[usize; 3]; 2],
    small: [[usize; 3]; 2],
}

const SHA256: Parameters =
    Parameters { width: 32, rounds: 64, big: [[2, 13, 22], [6, 11, 25]], small: [[7, 18, 3], [17, 19, 10]] };

const SHA512: Parameters =
    Parameters { width: 64, rounds: 80, big: [[28, 34, 39], [14, 18, 41]], small: [[1, 8, 7], [19, 61, 6]] };

/// The standard initial state of SHA-256 as a number of 256 bits.
pub fn initial_state_256() -> Uint {
    let words: Vec<Uint> =
        primes(8).map(|p| Uint::constant((root_fraction(p, 2) >> 32) as i128, 32)).collect();
    from_words(&words)
}

/// The standard initial state of SHA-512 as a number of 512 bits.
pub fn initial_state_512() -> Uint {
    let words: Vec<Uint> = primes(8).map(|p| Uint::constant(root_fraction(p, 2) as i128, 64)).collect();
    from_words(&words)
}

/// The compression function of SHA-256: a state of 256 bits and a block of 512 bits to the next state. Panics
/// on other widths.
pub fn compress_256(b: &mut Builder, state: &Uint, block: &Uint) -> Uint {
    compress(b, state, block, &SHA256)
}

/// The compression function of SHA-512: a state of 512 bits and a block of 1,024 bits to the next state.
/// Panics on other widths.
pub fn compress_512(b: &mut Builder, state: &Uint, block: &Uint) -> Uint {
    compress(b, state, block, &SHA512)
}

fn compress(b: &mut Builder, state: &Uint, block: &Uint, p: &Parameters) -> Uint {
    let n = p.width;
    assert_eq!((state.bits().len(), block.bits().len()), (8 * n, 16 * n), "a state and a block of SHA-2");
    let initial = words_of(state, n);
    let mut w = words_of(block, n);
    for t in 16..p.rounds {
        let s0 = mixed(b, &w[t - 15], p.small[0], true);
        let s1 = mixed(b, &w[t - 2], p.small[1], true);
        w.push(b.sum(&[w[t - 16].clone(), s0, w[t - 7].clone(), s1], n));
    }
    let mut s = initial.clone();
    for (word, prime) in w.into_iter().zip(primes(p.rounds)) {
        let k = Uint::constant((root_fraction(prime, 3) >> (64 - n)) as i128, n);
        let choose = b.mux_each(&s[4], &s[5], &s[6]);
        let sigma1 = mixed(b, &s[4], p.big[1], false);
        let t1 = b.sum(&[s[7].clone(), sigma1, choose, k, word], n);
        let sigma0 = mixed(b, &s[0], p.big[0], false);
        let majority = b.majority_each(&s[0], &s[1], &s[2]);
        let a = b.sum(&[t1.clone(), sigma0, majority], n);
        let e = b.add(&s[3], &t1);
        let [s0, s1, s2, _, s4, s5, s6, _] = &s[..] else { unreachable!("eight words") };
        s = vec![a, s0.clone(), s1.clone(), s2.clone(), e, s4.clone(), s5.clone(), s6.clone()];
    }
    let sums: Vec<Uint> = initial.iter().zip(&s).map(|(x, y)| b.add(x, y)).collect();
    from_words(&sums)
}

/// The XOR of two rotations to the right and a third, or a shift.
fn mixed(b: &mut Builder, x: &Uint, by: [usize; 3], shift: bool) -> Uint {
    let n = x.bits().len();
    let first = b.rotate_left(x, n - by[0]);
    let second = b.rotate_left(x, n - by[1]);
    let third = if shift { b.shr(x, by[2]) } else { b.rotate_left(x, n - by[2]) };
    let both = b.xor_bits(&first, &second);
    b.xor_bits(&both, &third)
}

fn primes(count: usize) -> impl Iterator<Item = u64> {
    (2u64..).filter(|n| (2..*n).take_while(|d| d * d <= *n).all(|d| n % d != 0)).take(count)
}

/// The first 64 bits of the fraction of the square or cube root of a small prime, where the standard's
/// constants come from: the largest r with r^power ≤ prime · 2^(64·power), without its whole part.
fn root_fraction(prime: u64, power: u32) -> u64 {
    let (mut low, mut high) = (0u128, 1u128 << 69);
    while high - low > 1 {
        let middle = (low + high) / 2;
        if power_at_most(middle, power, prime) { low = middle } else { high = middle }
    }
    low as u64
}

/// Whether root^power ≤ prime · 2^(64·power), on little-endian numbers of 32-bit digits.
fn power_at_most(root: u128, power: u32, prime: u64) -> bool {
    let digits = |mut x: u128| {
        let mut out = Vec::new();
        while x > 0 {
            out.push(x as u32);
            x >>= 32;
        }
        out
    };
    let factor = digits(root);
    let mut product = vec![1u32];
    for _ in 0..power {
        let mut next = vec![0u32; product.len() + factor.len()];
        for (i, &x) in product.iter().enumerate() {
            let mut carry = 0u64;
            for (j, &y) in factor.iter().enumerate() {
                let t = u64::from(next[i + j]) + u64::from(x) * u64::from(y) + carry;
                next[i + j] = t as u32;
                carry = t >> 32;
            }
            next[i + factor.len()] = carry as u32;
        }
        product = next;
    }
    let mut bound = vec![0u32; 2 * power as usize];
    bound.extend(digits(prime.into()));
    let len = product.len().max(bound.len());
    product.resize(len, 0);
    bound.resize(len, 0);
    product.iter().rev().le(bound.iter().rev())
}
