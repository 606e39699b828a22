//! Binary linear codes for 1-out-of-N OT extension.
//!
//! [`MatrixCode::concatenated`] is the code of the PaXoS parameters: the outer code is the Reed–Solomon code
//! [N, N − 31, 32] over GF(2^7), the inner code the binary [12, 7, 4] code, so that the whole is [12·N, 7·(N
//! − 31), ≥ 128]. With N = 64 this is [768, 231, ≥ 128]. Distances multiply under concatenation: two
//! different messages differ in at least 32 outer symbols, and each of those in at least 4 bits.

use tacit_crypto::{
    Block,
    transpose::{columns_to_wide_rows, rows_to_columns},
};
use zeroize::Zeroizing;

/// A binary linear code. The code is public, the words are secret: encoding takes the same time for all
/// words.
pub trait LinearCode: Send + Sync {
    /// Bits in a code word.
    fn length(&self) -> usize;
    /// Bits in a message.
    fn dimension(&self) -> usize;
    /// A lower bound of the weight of every code word but zero.
    fn distance(&self) -> usize;
    /// Encodes many words at once, bit-sliced: message bit `i` of all words is the `len` blocks at
    /// `message[i * stride..]`, and code bit `j` of all words goes to `out[j * len..]`.
    fn encode_columns(&self, message: &[Block], stride: usize, len: usize, out: &mut [Block]);
}

/// Encodes words one by one: `out[j] = C(words[j])`, the bits of a word from bit 0 of its first block on.
///
/// Bits of a word past the code's dimension are ignored. Words are taken 256 at a time.
pub fn encode_rows<const K: usize, const W: usize>(
    code: &dyn LinearCode,
    words: &[[Block; K]],
    out: &mut [[Block; W]],
) {
    const LEN: usize = 2;
    assert_eq!(words.len(), out.len(), "one code word a word");
    assert!(code.dimension() <= 128 * K && code.length() <= 128 * W, "words narrower than the code");
    let mut message = Zeroizing::new(vec![Block::ZERO; 128 * K * LEN]);
    let mut columns = Zeroizing::new(vec![Block::ZERO; 128 * W * LEN]);
    for (words, out) in words.chunks(128 * LEN).zip(out.chunks_mut(128 * LEN)) {
        slice_words(words, &mut message, LEN);
        code.encode_columns(&message, LEN, LEN, &mut columns[..code.length() * LEN]);
        columns_to_wide_rows(&columns, LEN, W, out.as_flattened_mut());
    }
}

/// Bit-slices words: bit `i` of the words goes to `columns[i * stride..]`; the last block is padded with
/// zeros.
pub(super) fn slice_words<const K: usize>(words: &[[Block; K]], columns: &mut [Block], stride: usize) {
    const PIECE: usize = 1024;
    let mut gathered = Zeroizing::new([Block::ZERO; PIECE]);
    for (p, words) in words.chunks(PIECE).enumerate() {
        for k in 0..K {
            for (slot, word) in gathered.iter_mut().zip(words) {
                *slot = word[k];
            }
            let columns = &mut columns[128 * k * stride + p * (PIECE / 128)..];
            rows_to_columns(&gathered[..words.len()], columns, stride);
        }
    }
}

/// Message bits that share one table of sums.
const GROUP: usize = 7;
/// Blocks of words encoded together.
const LANE: usize = 2;
type Lane = [Block; LANE];

/// A code given by its generator matrix, encoded by the method of the four Russians.
pub struct MatrixCode {
    length: usize,
    dimension: usize,
    distance: usize,
    /// For each group of message bits, the code bits that it touches, each with the sum of message bits it
    /// takes.
    terms: Vec<Vec<(u16, u8)>>,
}

impl MatrixCode {
    /// The code whose generator's row `i` has the bits `generator[i]`. `distance` is the caller's claim.
    ///
    /// Panics when there are no rows, rows differ in length, or a row has more than 65,535 bits.
    pub fn new(generator: &[Vec<bool>], distance: usize) -> Self {
        let length = generator.first().map_or(0, Vec::len);
        assert!(length > 0 && length <= u16::MAX as usize, "a code word has 1 to 65,535 bits");
        assert!(generator.iter().all(|row| row.len() == length), "rows of different lengths");
        let terms = generator
            .chunks(GROUP)
            .map(|rows| {
                let sum = |j: usize| rows.iter().enumerate().fold(0u8, |s, (i, row)| s | (row[j] as u8) << i);
                (0..length).map(|j| (j as u16, sum(j))).filter(|(_, s)| *s != 0).collect()
            })
            .collect();
        MatrixCode { length, dimension: generator.len(), distance, terms }
    }

    /// The repetition code [length, 1, length], with which OOS is KOS.
    pub fn repetition(length: usize) -> Self {
        Self::new(&[vec![true; length]], length)
    }

    /// [12·N, 7·(N − 31), ≥ 128] for an outer length N from 32 to 128; N = 64 gives [768, 231].
    pub fn concatenated(outer_length: usize) -> Self {
        // proof: paxos 5.2
        assert!((32..=128).contains(&outer_length), "the outer length is 32 to 128");
        let outer_dimension = outer_length - 31;
        let mut generator = Vec::with_capacity(7 * outer_dimension);
        for outer in outer_generator(outer_length, outer_dimension) {
            for bit in 0..7 {
                generator
                    .push(outer.iter().flat_map(|value| inner_encode(gf_mul(*value, 1 << bit))).collect());
            }
        }
        Self::new(&generator, 32 * 4)
    }
}

impl LinearCode for MatrixCode {
    fn length(&self) -> usize {
        self.length
    }

    fn dimension(&self) -> usize {
        self.dimension
    }

    fn distance(&self) -> usize {
        self.distance
    }

    fn encode_columns(&self, message: &[Block], stride: usize, len: usize, out: &mut [Block]) {
        assert!(stride >= len && message.len() >= (self.dimension - 1) * stride + len, "message too short");
        assert_eq!(out.len(), self.length * len, "one column a code bit");
        let mut sums = Zeroizing::new([[Block::ZERO; LANE]; 1 << GROUP]);
        let mut code: Zeroizing<Vec<Lane>> = Zeroizing::new(vec![[Block::ZERO; LANE]; self.length]);
        for at in (0..len).step_by(LANE) {
            let here = LANE.min(len - at);
            code.fill([Block::ZERO; LANE]);
            for (group, terms) in self.terms.iter().enumerate() {
                let bits = GROUP.min(self.dimension - group * GROUP);
                for i in 0..bits {
                    let mut lane = [Block::ZERO; LANE];
                    lane[..here].copy_from_slice(&message[(group * GROUP + i) * stride + at..][..here]);
                    let (low, high) = sums.split_at_mut(1 << i);
                    for (high, low) in high.iter_mut().zip(low) {
                        *high = add(*low, lane);
                    }
                }
                for (j, sum) in terms {
                    let slot = &mut code[*j as usize];
                    *slot = add(*slot, sums[*sum as usize]);
                }
            }
            for (lane, out) in code.iter().zip(out.chunks_exact_mut(len)) {
                out[at..at + here].copy_from_slice(&lane[..here]);
            }
        }
    }
}

#[inline(always)]
fn add(a: Lane, b: Lane) -> Lane {
    core::array::from_fn(|i| a[i] ^ b[i])
}

/// Multiplication in GF(2^7) = GF(2)[x]/(x^7 + x + 1). Public values only.
fn gf_mul(mut a: u8, b: u8) -> u8 {
    let mut product = 0;
    for i in 0..7 {
        if b >> i & 1 == 1 {
            product ^= a;
        }
        a <<= 1;
        if a & 0x80 != 0 {
            a ^= 0x83;
        }
    }
    product
}

fn gf_inverse(a: u8) -> u8 {
    // a^126, as the group has order 127.
    (0..125).fold(a, |power, _| gf_mul(power, a))
}

/// The systematic generator of the Reed–Solomon code at the points 0, 1, …: row i holds the values of the
/// polynomial of degree below `dimension` that is 1 at point i and 0 at the other of the first `dimension`
/// points (Lagrange).
fn outer_generator(length: usize, dimension: usize) -> Vec<Vec<u8>> {
    let others = |i: u8| (0..dimension as u8).filter(move |k| *k != i);
    let at = |i: u8, point: u8| others(i).fold(1, |product, k| gf_mul(product, point ^ k));
    (0..dimension as u8)
        .map(|i| {
            let scale = gf_inverse(at(i, i));
            (0..length as u8).map(|point| gf_mul(at(i, point), scale)).collect()
        })
        .collect()
}

/// The inner [12, 7, 4] code: seven message bits and five parities. Each message bit enters three parities,
/// no two bits the same three, so any three columns of the parity-check matrix are independent (odd weights,
/// all different).
fn inner_encode(symbol: u8) -> [bool; 12] {
    const PARITIES: [u8; 7] = [0b00111, 0b01011, 0b01101, 0b01110, 0b10011, 0b10101, 0b10110];
    let parity = (0..7).filter(|i| symbol >> i & 1 == 1).fold(0, |p, i| p ^ PARITIES[i]);
    core::array::from_fn(|j| if j < 7 { symbol >> j & 1 == 1 } else { parity >> (j - 7) & 1 == 1 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tacit_crypto::Prg;

    fn weight(row: &[Block]) -> u32 {
        row.iter().map(|b| b.to_u128().count_ones()).sum()
    }

    /// The field is a field: every element but zero has an inverse, and x generates the group.
    #[test]
    fn field() {
        for a in 1..128u8 {
            assert_eq!(gf_mul(a, gf_inverse(a)), 1);
        }
        let mut seen = [false; 128];
        let mut power = 1;
        for _ in 0..127 {
            assert!(!core::mem::replace(&mut seen[power as usize], true));
            power = gf_mul(power, 2);
        }
        assert!(!seen[0]);
    }

    /// The inner code's distance, by trying all of its words; it is linear, so the least weight is the
    /// distance.
    #[test]
    fn inner_distance() {
        let weight = |s: u8| inner_encode(s).iter().filter(|b| **b).count();
        assert_eq!((1..128).map(weight).min(), Some(4));
        for a in 0..128u8 {
            for b in 0..128u8 {
                let sum = core::array::from_fn(|i| inner_encode(a)[i] ^ inner_encode(b)[i]);
                assert_eq!(inner_encode(a ^ b), sum);
            }
        }
    }

    /// The outer code is an evaluation code at 64 different points: row `i` of its generator is a polynomial
    /// of degree below 33, because its values at all 64 points are those that Newton's differences from 33 of
    /// them give. A polynomial of degree at most 32 has at most 32 zeros, so at least 32 of 64 symbols differ
    /// from zero.
    #[test]
    fn outer_distance() {
        for (symbol, values) in outer_generator(64, 33).into_iter().enumerate() {
            assert_eq!(values.len(), 64);
            let mut divided = values.clone();
            for order in 1..64 {
                for j in (order..64).rev() {
                    let step = gf_inverse(j as u8 ^ (j - order) as u8);
                    divided[j] = gf_mul(divided[j] ^ divided[j - 1], step);
                }
                // The leading divided difference of each order: zero from order 33 on.
                assert!(order < 33 || divided[order] == 0, "degree is 33 or more");
            }
            for (j, value) in values.iter().enumerate().take(33) {
                assert_eq!(*value, (j == symbol) as u8);
            }
        }
    }

    #[test]
    fn code_words_are_sums_of_rows_and_heavy() {
        let code = MatrixCode::concatenated(64);
        assert_eq!((code.length(), code.dimension(), code.distance()), (768, 231, 128));
        let mut prg = Prg::from_seed(Block::new(7));
        let unit = |i: usize| {
            let mut word = [Block::ZERO; 2];
            word[i / 128] = Block::new(1 << (i % 128));
            word
        };
        let units: Vec<[Block; 2]> = (0..231).map(unit).collect();
        let mut rows = vec![[Block::ZERO; 6]; 231];
        encode_rows(&code, &units, &mut rows);
        let words: Vec<[Block; 2]> = (0..3000)
            .map(|i| {
                // Sums of few rows, and of many.
                let count = if i % 2 == 0 { 1 + prg.below(3) } else { 1 + prg.below(231) };
                let mut word = [Block::ZERO; 2];
                for _ in 0..count {
                    let u = unit(prg.below(231) as usize);
                    word[0] ^= u[0];
                    word[1] ^= u[1];
                }
                word
            })
            .collect();
        let mut out = vec![[Block::ZERO; 6]; words.len()];
        encode_rows(&code, &words, &mut out);
        for (word, out) in words.iter().zip(&out) {
            let mut sum = [Block::ZERO; 6];
            for (i, row) in rows.iter().enumerate() {
                if word[i / 128].bit(i % 128) {
                    sum = core::array::from_fn(|w| sum[w] ^ row[w]);
                }
            }
            assert!(sum == *out);
            assert!(*word == [Block::ZERO; 2] || weight(out) >= 128);
        }
    }

    /// Shorter and longer codes keep the distance.
    #[test]
    fn other_lengths() {
        for n in [32, 33, 72, 128] {
            let code = MatrixCode::concatenated(n);
            assert_eq!((code.length(), code.dimension()), (12 * n, 7 * (n - 31)));
            let mut prg = Prg::from_seed(Block::new(n as u128));
            let mut words = vec![[Block::ZERO; 6]; 200];
            for word in &mut words {
                for i in 0..code.dimension() {
                    if prg.bit() {
                        word[i / 128] ^= Block::new(1 << (i % 128));
                    }
                }
            }
            let mut out = vec![[Block::ZERO; 12]; words.len()];
            encode_rows(&code, &words, &mut out);
            for (word, out) in words.iter().zip(&out) {
                assert!(word.iter().all(|w| *w == Block::ZERO) || weight(out) >= 128);
            }
        }
        let mut out = [[Block::ZERO; 1]; 2];
        encode_rows(&MatrixCode::repetition(128), &[[Block::ONE], [Block::ZERO]], &mut out);
        assert!(out == [[Block::ONES], [Block::ZERO]]);
    }
}
