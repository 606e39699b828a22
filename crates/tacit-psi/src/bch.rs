//! The extended BCH code [512, 85, 128], for intersections against semi-honest peers.

use tacit_ot::extension::code::MatrixCode;

/// Bits of a code word.
pub(crate) const LENGTH: usize = 512;
/// Bits of a message.
pub(crate) const DIMENSION: usize = 85;
/// The primitive BCH code of length 511 with the zeros α, α², …, α^126 has a distance of at least 127 (BCH
/// bound); a parity bit makes every weight even, so it is at least 128.
const ZEROS: usize = 126;
const DISTANCE: usize = 128;

/// Multiplication by α in GF(2^9) = GF(2)[x]/(x^9 + x^4 + 1), whose multiplicative group x generates.
const fn times_alpha(a: u16) -> u16 {
    let shifted = a << 1;
    if shifted & 0x200 != 0 { shifted ^ 0x211 } else { shifted }
}

fn multiply(a: u16, b: u16) -> u16 {
    let (mut product, mut power) = (0, a);
    for i in 0..9 {
        if b >> i & 1 == 1 {
            product ^= power;
        }
        power = times_alpha(power);
    }
    product
}

/// The generator polynomial's coefficients, lowest first: the product of x − α^r over the conjugates of all
/// zeros.
fn generator_polynomial() -> Vec<bool> {
    let mut is_zero = [false; LENGTH - 1];
    for zero in 1..=ZEROS {
        let mut exponent = zero;
        for _ in 0..9 {
            is_zero[exponent] = true;
            exponent = exponent * 2 % (LENGTH - 1);
        }
    }
    let mut product = vec![1u16];
    let mut root = 1;
    for zero in is_zero {
        if zero {
            product.insert(0, 0);
            for i in 1..product.len() {
                product[i - 1] ^= multiply(product[i], root);
            }
        }
        root = times_alpha(root);
    }
    product.into_iter().map(|coefficient| coefficient == 1).collect()
}

/// The code [512, 85, 128].
pub(crate) fn extended_bch() -> MatrixCode {
    let polynomial = generator_polynomial();
    let parity = polynomial.iter().fold(false, |sum, bit| sum ^ bit);
    let rows: Vec<Vec<bool>> = (0..DIMENSION)
        .map(|shift| {
            let mut row = vec![false; LENGTH];
            row[shift..shift + polynomial.len()].copy_from_slice(&polynomial);
            row[LENGTH - 1] = parity;
            row
        })
        .collect();
    MatrixCode::new(&rows, DISTANCE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tacit_crypto::{Block, Prg};
    use tacit_ot::extension::code::{LinearCode, encode_rows};

    /// What the BCH bound needs: α has order 511, and the polynomial is binary, vanishes at α … α^126 and has
    /// degree 511 − 85.
    #[test]
    fn the_generator_has_the_zeros_of_the_bch_bound() {
        let mut powers = vec![1u16];
        while powers.len() < 511 {
            powers.push(times_alpha(powers[powers.len() - 1]));
            assert_ne!(powers[powers.len() - 1], 1);
        }
        assert_eq!(times_alpha(powers[510]), 1);
        let polynomial = generator_polynomial();
        assert_eq!(polynomial.len() - 1, 511 - DIMENSION);
        assert!(polynomial[0] && polynomial[polynomial.len() - 1]);
        for zero in 1..=ZEROS {
            let value = polynomial
                .iter()
                .enumerate()
                .filter(|(_, bit)| **bit)
                .fold(0, |sum, (i, _)| sum ^ powers[i * zero % 511]);
            assert_eq!(value, 0, "α^{zero}");
        }
    }

    #[test]
    fn code_words_are_heavy_and_even() {
        let code = extended_bch();
        assert_eq!((code.length(), code.dimension(), code.distance()), (512, 85, 128));
        let mut prg = Prg::from_seed(Block::new(3));
        let mut words = vec![[Block::ZERO; 1]; 4000];
        for (i, word) in words.iter_mut().enumerate() {
            for bit in 0..DIMENSION {
                if i == bit || (i >= 200 && prg.bit()) {
                    word[0] ^= Block::new(1 << bit);
                }
            }
        }
        let mut rows = vec![[Block::ZERO; 4]; words.len()];
        encode_rows(&code, &words, &mut rows);
        for (word, row) in words.iter().zip(&rows) {
            let weight: u32 = row.iter().map(|block| block.to_u128().count_ones()).sum();
            assert!(weight.is_multiple_of(2) && (weight >= 128 || word[0] == Block::ZERO));
        }
    }
}
