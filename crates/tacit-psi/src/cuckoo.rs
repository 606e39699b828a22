//! A table with at most one element a bin: cuckoo hashing with three hash functions and no stash.
//!
//! An element's three bins are distinct. Where they are distinct for each of n elements in β bins, all
//! elements have a place unless k of them, for some k, have their bins among k − 1 (Hall). `Table::place`
//! finds places whenever there are any, by shortest paths, so it fails exactly then.
//!
//! **Failure**, by the union bound over the least such k. Then every one of the k − 1 bins is picked twice or
//! more, or the element that picks a bin alone could be left out. So with t(b) = b·(b − 1)·(b − 2)
//!
//! Pr ≤ Σ_{k ≥ 4} C(n, k)·C(β, k − 1)·min(t(k − 1)^k, M_k) / t(β)^k,
//!
//! where M_k ≤ (3k)!·(e^z − 1 − z)^(k − 1)/z^(3k) for any z > 0 bounds the sequences of 3k bins out of
//! k − 1 that contain each twice. [`failure_log2`] computes the sum. It needs no experiment, holds at every
//! size, and asks for 1.2963 bins an element in the limit (the table fills up to 0.917 in truth): 1.301 are
//! used for large sets, and more below 2^16, where a few elements with the same bins count.
//!
//! Source: Pagh and Rodler's cuckoo hashing with three functions, as circuit PSI uses it since Pinkas,
//! Schneider, Tkachenko and Yanai (2019/241); the bound is our own.

use crate::{Error, Result};
use tacit_crypto::Block;
use zeroize::Zeroizing;

/// Hash functions.
pub(crate) const FUNCTIONS: usize = 3;
/// Bits of security against failure that the bins leave.
#[cfg(test)]
const FAILURE_BITS: u32 = 43;

/// Bins an element in thousandths for 2^i elements, the last for all larger sets.
const RATIO: [u64; 17] = [
    12_900, 12_900, 12_900, 10_450, 7_550, 5_250, 3_640, 2_490, 1_705, 1_385, 1_340, 1_320, 1_312, 1_306,
    1_303, 1_302, 1_301,
];

/// How many bins `count` elements take.
pub fn bins(count: usize) -> usize {
    let count = count.max(1) as u64;
    let log = count.ilog2() as usize;
    let ratio = match RATIO.get(log..log + 2) {
        // On the chord between powers of two, above the curve.
        Some(pair) => pair[0] - (((pair[0] - pair[1]) * (count - (1 << log))) >> log),
        None => RATIO[RATIO.len() - 1],
    };
    (count * ratio).div_ceil(1000) as usize
}

/// The three distinct bins of an element whose hash is `hash`, for its first, second and third function.
#[inline]
pub(crate) fn places(hash: [Block; 2], bins: usize) -> [u32; FUNCTIONS] {
    let scale = |word: u64, to: usize| ((word as u128 * to as u128) >> 64) as u32;
    let a = scale(hash[0].low(), bins);
    let b = scale(hash[0].high(), bins - 1);
    let b = b + (b >= a) as u32;
    let c = scale(hash[1].low(), bins - 2);
    let c = c + (c >= a.min(b)) as u32;
    let c = c + (c >= a.max(b)) as u32;
    [a, b, c]
}

const NONE: u32 = u32::MAX;

/// Which element each bin holds.
pub(crate) struct Table {
    bins: Zeroizing<Vec<u32>>,
}

impl Table {
    /// Places every element by its bins. [`Error::Unplaceable`] where there is no way to.
    pub(crate) fn place(places: &[[u32; FUNCTIONS]], bins: usize) -> Result<Self> {
        let mut table = Zeroizing::new(vec![NONE; bins]);
        // Of each bin visited in a search: the search's number, and the bin that led there.
        let mut seen = Zeroizing::new(vec![(NONE, NONE); bins]);
        let mut queue = Zeroizing::new(Vec::new());
        for (element, own) in places.iter().enumerate() {
            let element = element as u32;
            queue.clear();
            for bin in own {
                seen[*bin as usize] = (element, NONE);
                queue.push(*bin);
            }
            let mut next = 0;
            let free = loop {
                let Some(&bin) = queue.get(next) else { return Err(Error::Unplaceable) };
                next += 1;
                let held = table[bin as usize];
                if held == NONE {
                    break bin;
                }
                for other in &places[held as usize] {
                    let seen = &mut seen[*other as usize];
                    if seen.0 != element {
                        *seen = (element, bin);
                        queue.push(*other);
                    }
                }
            };
            // Every element on the path moves on by one.
            let mut to = free;
            loop {
                let from = seen[to as usize].1;
                if from == NONE {
                    table[to as usize] = element;
                    break;
                }
                table[to as usize] = table[from as usize];
                to = from;
            }
        }
        Ok(Table { bins: table })
    }

    /// Whether an element holds one of the bins of another that is its `equal`.
    pub(crate) fn holds_pair(&self, places: &[[u32; FUNCTIONS]], equal: impl Fn(u32, u32) -> bool) -> bool {
        self.iter().flatten().any(|element| {
            let others = places[element as usize].iter().map(|place| self.bins[*place as usize]);
            others.filter(|other| *other != NONE && *other != element).any(|other| equal(element, other))
        })
    }

    /// Each bin's element.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Option<u32>> + '_ {
        self.bins.iter().map(|element| (*element != NONE).then_some(*element))
    }
}

/// log2 of a bound on the probability that `count` random elements have no places in `bins` bins: the
/// module's sum, of which terms beyond the 200th are added up in groups by their largest.
pub fn failure_log2(count: usize, bins: usize) -> f64 {
    if count <= FUNCTIONS {
        return f64::NEG_INFINITY;
    }
    if bins < count {
        return 0.0;
    }
    let (n, b) = (count as f64, bins as f64);
    let log2_triples = |b: f64| b.log2() + (b - 1.0).log2() + (b - 2.0).log2();
    let term = |k: usize| {
        let (k, held) = (k as f64, k as f64 - 1.0);
        let within = k * log2_triples(held);
        // Near the least of (e^z − 1 − z)^(k − 1)/z^(3k); any z gives a bound.
        let z = stationary(3.0 * k / held);
        let twice = ln_factorial(3.0 * k) + held * (z.exp_m1() - z).ln() - 3.0 * k * z.ln();
        let ways = within.min(twice / std::f64::consts::LN_2);
        log2_choose(n, k) + log2_choose(b, held) + ways - k * log2_triples(b)
    };
    let (mut sum, mut k) = (0.0, FUNCTIONS + 1);
    while k <= count {
        let end = if k < 200 { k } else { count.min(k + k / 50) };
        let largest = term(k).max(term(end)).max(term(k + (end - k) / 2));
        sum += (end - k + 1) as f64 * largest.min(0.0).exp2();
        k = end + 1;
    }
    sum.min(1.0).log2()
}

/// The z with z·(e^z − 1)/(e^z − 1 − z) = `mean`, which is over 2: bins picked twice or more are picked so
/// many times on average.
fn stationary(mean: f64) -> f64 {
    let (mut low, mut high) = (1e-3, mean);
    for _ in 0..40 {
        let z = (low + high) / 2.0;
        if z * z.exp_m1() / (z.exp_m1() - z) < mean { low = z } else { high = z }
    }
    high
}

/// ln n!, by Stirling's series.
fn ln_factorial(n: f64) -> f64 {
    if n < 16.0 {
        return (2..=n as u32).map(|i| f64::from(i).ln()).sum();
    }
    n * n.ln() - n + (2.0 * std::f64::consts::PI * n).ln() / 2.0 + 1.0 / (12.0 * n)
        - 1.0 / (360.0 * n.powi(3))
}

fn log2_choose(n: f64, k: f64) -> f64 {
    (ln_factorial(n) - ln_factorial(k) - ln_factorial(n - k)) / std::f64::consts::LN_2
}

#[cfg(test)]
mod tests {
    use super::*;
    use tacit_crypto::Prg;

    fn random(prg: &mut Prg, count: usize, bins: usize) -> Vec<[u32; FUNCTIONS]> {
        (0..count).map(|_| places([prg.block(), prg.block()], bins)).collect()
    }

    #[test]
    fn places_are_distinct_and_even() {
        let mut prg = Prg::from_seed(Block::new(1));
        let (bins, mut counts) = (7, [0u32; 7]);
        for [a, b, c] in random(&mut prg, 70_000, bins) {
            assert!(a != b && a != c && b != c && a.max(b).max(c) < 7);
            [a, b, c].iter().for_each(|bin| counts[*bin as usize] += 1);
        }
        // 30,000 each; five standard deviations.
        assert!(counts.iter().all(|count| (29_000..31_000).contains(count)), "{counts:?}");
    }

    #[test]
    fn every_size_places_and_its_bound_is_below_43_bits() {
        let mut prg = Prg::from_seed(Block::new(2));
        let sizes = (0..=22).flat_map(|log| {
            let size = 1usize << log;
            [size - 1, size, size + 1, size + size / 3, size + size / 2]
        });
        for count in sizes {
            let bins = bins(count);
            let bound = failure_log2(count, bins);
            assert!(bound <= -f64::from(FAILURE_BITS), "{count}: {bound}");
            if count <= 1 << 14 {
                let places = random(&mut prg, count, bins);
                let table = Table::place(&places, bins).unwrap();
                let mut found = vec![false; count];
                for (bin, element) in table.iter().enumerate() {
                    let Some(element) = element else { continue };
                    assert!(places[element as usize].contains(&(bin as u32)));
                    assert!(!std::mem::replace(&mut found[element as usize], true));
                }
                assert!(found.into_iter().all(|found| found));
            }
        }
    }

    /// At sizes that fail often enough to be seen: the share of failures against the bound.
    #[test]
    fn failures_are_fewer_than_the_bound() {
        let mut prg = Prg::from_seed(Block::new(3));
        for (count, bins, trials) in
            [(8, 12, 100_000), (8, 16, 200_000), (12, 18, 100_000), (16, 24, 100_000), (24, 34, 50_000)]
        {
            let failed = (0..trials).filter(|_| {
                let places = random(&mut prg, count, bins);
                Table::place(&places, bins).is_err()
            });
            let (failed, bound) = (failed.count(), failure_log2(count, bins).exp2());
            let rate = failed as f64 / trials as f64;
            println!("{count} elements in {bins} bins: {failed} of {trials} failed, bound {bound:.5}");
            assert!(rate <= bound + 3.0 * (bound / trials as f64).sqrt(), "{count} in {bins}");
            assert!(bound < 0.1 && failed > 0, "{count} in {bins}: {failed}, {bound}");
        }
    }

    /// Four elements with the same three bins have no places, and nothing else is refused.
    #[test]
    fn four_elements_in_three_bins_are_refused() {
        assert!(Table::place(&[[0, 1, 2]; 3], 9).is_ok());
        assert!(matches!(Table::place(&[[0, 1, 2]; 4], 9), Err(Error::Unplaceable)));
        assert!(Table::place(&[[0, 1, 2], [0, 1, 2], [0, 1, 2], [0, 1, 3]], 9).is_ok());
    }
}
