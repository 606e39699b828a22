//! Noise for differential privacy: the difference of two geometric numbers, each drawn bit by bit.
//!
//! With a rate x the noise is z with probability tanh(x/2)·e^(-x·|z|): the two-sided geometric mechanism (Ghosh, Roughgarden
//! and Sundararajan 2009). It is G − G′ of independent geometric numbers, P(G = g) = (1 − e^-x)·e^(-x·g), and the binary
//! digits of such a number are independent: digit i is 1 with probability 1 / (1 + e^(x·2^i)). So a digit is one
//! comparison of a uniform word with a constant, which a circuit computes on words that neither side knows.

/// Bits of the word that a digit is drawn from.
pub const COIN_BITS: usize = 64;

/// Digits of a number that is drawn, at most: more than numbers inside have.
const MOST_DIGITS_DRAWN: usize = 100;

/// For each digit of a geometric number, lowest first, how many of the 2^64 words make it 1, for the rate
/// `over`/`under`: floor(2^64 / (1 + e^(2^i·over/under))). Digits that no word makes 1 are left out; `None` if there are
/// more than numbers inside have.
///
/// Computed in integers, so that both sides have the same thresholds. Each digit is within 2^-64 of its probability, and
/// those left out are 1 with less than that: the noise, of two times 100 digits at most, is within 2^-56 of the
/// distribution, in statistical distance.
pub(crate) fn thresholds(over: u128, under: u128) -> Option<Vec<u64>> {
    let (mut all, mut over) = (vec![], over);
    loop {
        match threshold(exponential(over, under)) {
            0 => return Some(all),
            _ if all.len() == MOST_DIGITS_DRAWN => return None,
            words => all.push(words),
        }
        over = over.checked_mul(2)?;
    }
}

/// A number below 1, in units of 2^-128; 1 itself is all ones.
type Fraction = u128;

/// The product, rounded down.
fn product(a: Fraction, b: Fraction) -> Fraction {
    const LOW: u128 = u64::MAX as u128;
    let ([a1, a0], [b1, b0]) = ([a >> 64, a & LOW], [b >> 64, b & LOW]);
    let middle = ((a0 * b0) >> 64) + ((a1 * b0) & LOW) + ((a0 * b1) & LOW);
    a1 * b1 + ((a1 * b0) >> 64) + ((a0 * b1) >> 64) + (middle >> 64)
}

/// e^-(over/under).
fn exponential(over: u128, under: u128) -> Fraction {
    let (whole, rest) = (over / under, over % under);
    // Beyond this no word makes a digit 1.
    if whole > 63 {
        return 0;
    }
    let fraction = divided(rest, under);
    (0..whole).fold(series(fraction), |power, _| product(power, series(Fraction::MAX)))
}

/// e^-x, by its series: terms fall from the second on.
fn series(x: Fraction) -> Fraction {
    // Halved, so that the sum of the first terms fits.
    let (mut term, mut sum, mut at) = (x >> 1, 1u128 << 127, 1);
    while term > 0 {
        sum = if at % 2 == 1 { sum - term } else { sum + term };
        at += 1;
        term = product(term, x) / at;
    }
    sum.checked_mul(2).unwrap_or(Fraction::MAX)
}

/// A quotient below 1.
fn divided(over: u128, under: u128) -> Fraction {
    let (mut rest, mut quotient) = (over, 0);
    for _ in 0..128 {
        // Twice the rest may have a bit more than fits.
        let carry = rest >> 127 == 1;
        rest <<= 1;
        let fits = carry || rest >= under;
        if fits {
            rest = rest.wrapping_sub(under);
        }
        quotient = quotient << 1 | u128::from(fits);
    }
    quotient
}

/// floor(2^64·p / (1 + p)).
fn threshold(p: Fraction) -> u64 {
    let (mut rest, under) = (p >> 2, (1 << 126) + (p >> 2));
    let mut quotient = 0;
    for _ in 0..64 {
        rest <<= 1;
        let fits = rest >= under;
        if fits {
            rest -= under;
        }
        quotient = quotient << 1 | u64::from(fits);
    }
    quotient
}

/// A geometric number, of one word of `coins` for each digit.
fn geometric(thresholds: &[u64], coins: &mut dyn FnMut() -> u64) -> i128 {
    thresholds.iter().enumerate().map(|(digit, words)| i128::from(coins() < *words) << digit).sum()
}

/// The noise, of twice as many words as it has digits: first those of the number that is added.
pub(crate) fn drawn(thresholds: &[u64], coins: &mut dyn FnMut() -> u64) -> i128 {
    let added = geometric(thresholds, coins);
    added - geometric(thresholds, coins)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Thresholds of rates, computed with 90 decimal digits by another program: how many digits, the sum of
    /// 31^(digits - 1 - i)·threshold modulo 2^64, the first and the last.
    #[test]
    fn thresholds_are_those_of_exact_arithmetic() {
        let tiny = 10u128.pow(27);
        for (over, under, digits, sum, first, last) in [
            (1, 1, 6, 0x1d1f_7007_258c_2077, 0x44d9_5851_52ea_1935, 0x3908c),
            (1, 2, 7, 0x6639_a15f_f203_5805, 0x60a6_8159_65e3_7a0e, 0x3908c),
            (1, 100_000, 23, 0xe425_40bf_3ba2_fff0, 0x7fff_d60e_94ee_3aae, 0xb),
            (3, 7, 7, 0x94ba_3063_89e5_3338, 0x64fb_d2aa_b8d8_0a46, 0x158_a335),
            (40, 1, 1, 0x4e, 0x4e, 0x4e),
            (44, 1, 1, 1, 1, 1),
            (1_000_000, 3_145_728_000_000, 28, 0x4d63_2ea9_3737_0218, 0x7fff_feaa_aaaa_aaaa, 5),
            (1, 1 << 60, 66, 0xdd96_7b73_7c1f_66ff, 0x7fff_ffff_ffff_fffc, 0x3908c),
            (7, tiny, 93, 0x45c9_74c7_bbe1_6d94, 0x7fff_ffff_ffff_ffff, 0x3fae),
        ] {
            let all = thresholds(over, under).unwrap();
            let found = all.iter().fold(0u64, |sum, one| sum.wrapping_mul(31).wrapping_add(*one));
            assert_eq!(
                (all.len(), found, all[0], all[all.len() - 1]),
                (digits, sum, first, last),
                "{over}/{under}"
            );
        }
        assert_eq!(thresholds(45, 1).unwrap(), []);
        assert_eq!(thresholds(u128::MAX, 1).unwrap(), []);
        assert_eq!(thresholds(1, 1 << 100), None);
        assert_eq!(thresholds(1, u128::MAX), None);
    }

    /// All coins of a small draw: digits are independent, and each is 1 as often as its threshold says.
    #[test]
    fn every_word_counts_once() {
        // Words are the highest bits of a coin, so that 8 of them are all.
        let thresholds = [3 << 61, 1 << 61];
        let mut times = std::collections::BTreeMap::new();
        for coins in 0..8u64.pow(4) {
            let mut rest = coins;
            let z = drawn(&thresholds, &mut || {
                let word = (rest % 8) << 61;
                rest /= 8;
                word
            });
            *times.entry(z).or_insert(0) += 1;
        }
        // P(G = 0..=3) in 64ths: 35, 21, 5, 3.
        let g = [35, 21, 5, 3];
        let of = |z: i128| -> u64 {
            let pairs = (0..4).flat_map(|a| (0..4).map(move |b| (a, b)));
            pairs
                .filter(|(a, b)| i128::from(*a) - i128::from(*b) == z)
                .map(|(a, b)| g[a as usize] * g[b as usize])
                .sum()
        };
        assert_eq!(times.into_iter().collect::<Vec<_>>(), (-3..=3).map(|z| (z, of(z))).collect::<Vec<_>>());
    }

    /// A million draws against the definition, by chi-square over 41 cells; also where one side's words are always the
    /// same, and the other's uniform.
    #[test]
    fn draws_are_of_the_two_sided_geometric_distribution() {
        const DRAWS: u64 = 1_000_000;
        for (over, under, bias) in [(1, 4, 0), (1, 4, 0xdead_beef_0123_4567), (1, 1, u64::MAX)] {
            let all = thresholds(over, under).unwrap();
            let rate = over as f64 / under as f64;
            let mut state = 0x9e37_79b9_7f4a_7c15u64 ^ bias;
            // SplitMix64.
            let mut word = || {
                state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
                let mut z = state;
                z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
                (z ^ z >> 31) ^ bias
            };
            let mut times = [0u64; 41];
            for _ in 0..DRAWS {
                let z = drawn(&all, &mut word).clamp(-20, 20);
                times[(z + 20) as usize] += 1;
            }
            let chance = |z: i32| (rate / 2.0).tanh() * (-rate * f64::from(z.abs())).exp();
            let tail = (-20.0 * rate).exp() / (1.0 + (-rate).exp());
            let (mut chi, mut cells) = (0.0, 0.0);
            for (at, seen) in times.iter().enumerate() {
                let z = at as i32 - 20;
                let expected = DRAWS as f64 * if z.abs() == 20 { tail } else { chance(z) };
                if expected >= 20.0 {
                    chi += (*seen as f64 - expected).powi(2) / expected;
                    cells += 1.0;
                }
            }
            // Seven standard deviations above the mean of chi-square.
            let (free, most): (f64, f64) = (cells - 1.0, 7.0);
            assert!(
                cells >= 15.0 && chi < free + most * (2.0 * free).sqrt(),
                "{over}/{under}: {chi} of {cells} cells"
            );
        }
    }
}
