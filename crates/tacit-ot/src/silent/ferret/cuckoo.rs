//! Cuckoo hashing of secret positions into public buckets (Ferret, section 5.2), without secret addresses or
//! branches.
//!
//! A position is a pair (a, b) with a < m and b < q. Its three buckets are a + f_i(b) mod m, where f_1 = 0
//! and one AES call on b gives the distinct, non-zero f_2 and f_3. So every bucket holds exactly 3·q
//! positions, one for each (i, b), and where a position stands in a bucket follows from i and b: no table of
//! buckets is needed. For uniform positions the triples of buckets are uniform but for pairs of positions
//! with the same b, whose triples are shifts of each other.
//!
//! A bucket's tree has a leaf for each of its positions, and leaves that are equal modulo 2^s lie under one
//! node of level s. Values of b are cut into ranges, and range r gets the leaves r + 2^s·x: the positions of
//! a range then come out of one subtree a bucket.
//!
//! Deviation: the paper's functions take (a, b) whole, which makes buckets of uneven size; some of those
//! would not fit the trees of its own parameters.

use tacit_crypto::aes::Aes128;
use tacit_crypto::simd::{Backend, scan};
use tacit_crypto::{Block, Prg};
use zeroize::{Zeroize, Zeroizing};

/// τ, the number of buckets that a position may stand in.
pub(crate) const HASHES: usize = 3;
/// Steps of the insertion for each position; about 1.7 are needed at m = 1.5·t.
const STEPS: usize = 4;

const USED: u64 = 1 << 63;
const HASH_SHIFT: u32 = 60;
const B_SHIFT: u32 = 30;
const FIELD: u64 = (1 << 30) - 1;

/// The buckets of one public key.
pub(crate) struct Buckets {
    cipher: Aes128,
    m: u64,
    q: u64,
    level: usize,
    width: u64,
    /// ⌈2^32 / width⌉.
    inverse: u64,
}

/// Where one position may stand, packed with the function it stands by: a, b and i, and a bit that says it is
/// one.
type Item = u64;

impl Buckets {
    /// `m` buckets, at least three, for m·`q` positions, m below 2^30 and q up to 2^16; values of b in
    /// 2^`level` ranges.
    pub(crate) fn new(key: Block, m: usize, q: usize, level: usize) -> Self {
        assert!((3..1 << 30).contains(&m) && (1..=1 << 16).contains(&q), "buckets out of range");
        let width = width(q, level) as u64;
        let inverse = (1u64 << 32).div_ceil(width);
        Buckets { cipher: Aes128::new(key), m: m as u64, q: q as u64, level, width, inverse }
    }

    /// f_1(b), f_2(b), f_3(b): distinct, below m.
    pub(crate) fn offsets(&self, b: u64) -> [u64; HASHES] {
        let random = self.cipher.encrypt(Block::new(b.into())).to_u128();
        let second = 1 + scale(random as u64, self.m - 1);
        let third = 1 + scale((random >> 64) as u64, self.m - 2);
        [0, second, third + (1 - below(third, second))]
    }

    fn bucket(&self, item: Item) -> u64 {
        let [_, second, third] = self.offsets((item >> B_SHIFT) & FIELD);
        let i = (item >> HASH_SHIFT) & 3;
        let offset = (second & equal(i, 1)) | (third & equal(i, 2));
        let sum = (item & FIELD) + offset;
        sum - (self.m & (below(sum, self.m).wrapping_sub(1)))
    }

    /// Draws `t` distinct uniform positions and places them; each bucket's leaf.
    pub(crate) fn place(&self, prg: &mut Prg, t: usize) -> Vec<u32> {
        // proof: ferret 3.5, 5.2
        loop {
            let positions = self.draw(prg, t);
            if let Some(leaves) = self.insert(prg, &positions) {
                return leaves;
            }
        }
    }

    /// `t` distinct uniform positions.
    fn draw(&self, prg: &mut Prg, t: usize) -> Zeroizing<Vec<u64>> {
        loop {
            let position = |_| USED | scale(prg.u64(), self.m) | (scale(prg.u64(), self.q) << B_SHIFT);
            let items: Zeroizing<Vec<u64>> = Zeroizing::new((0..t).map(position).collect());
            let before = |(n, item): (usize, &u64)| scan::contains(Backend::active(), &items[..n], *item);
            let repeated = items.iter().enumerate().map(before).fold(0, |found, here| found | here);
            // That these are thrown away tells nothing of those that are kept.
            if repeated == 0 {
                return items;
            }
        }
    }

    /// Puts every position of `items` into one of its buckets by a random walk of a fixed number of steps.
    /// Returns each bucket's leaf, that of a position or a spare one where it stays empty; `None` when some
    /// position found no place.
    fn insert(&self, prg: &mut Prg, items: &[Item]) -> Option<Vec<u32>> {
        let mut table = Zeroizing::new(vec![0u64; self.m as usize]);
        let mut bits = Zeroizing::new(vec![0u8; STEPS * items.len()]);
        prg.fill_bytes(&mut bits);
        let (mut hand, mut next) = (0u64, 0u64);
        for random in bits.iter() {
            let fresh = scan::pick(Backend::active(), items, next) & !nonzero(hand);
            next += 1 & !nonzero(hand);
            hand |= fresh;
            // An empty hand goes nowhere.
            let at = self.bucket(hand) | (!nonzero(hand) >> 1);
            let evicted = scan::swap(Backend::active(), &mut table, at, hand);
            hand = turn(evicted, *random);
        }
        let placed = hand == 0 && next >= items.len() as u64;
        hand.zeroize();
        placed.then(|| table.iter().map(|item| self.leaf(*item)).collect())
    }

    fn leaf(&self, item: Item) -> u32 {
        let (i, b) = ((item >> HASH_SHIFT) & 3, (item >> B_SHIFT) & FIELD);
        let range = (b * self.inverse) >> 32;
        let leaf = ((i * self.width + b - range * self.width) << self.level) | range;
        let spare = (HASHES as u64 * self.width) << self.level;
        let used = nonzero(item);
        ((leaf & used) | (spare & !used)) as u32
    }
}

/// Values of b in each of 2^`level` ranges. Of the leaves below a range's node, those of function i and the
/// range's n-th value stand at i·width + n, and a spare one at 3·width.
pub(crate) const fn width(q: usize, level: usize) -> usize {
    q.div_ceil(1 << level)
}

/// ⌊word·bound / 2^64⌋: uniform below `bound` up to bound / 2^64.
fn scale(word: u64, bound: u64) -> u64 {
    ((word as u128 * bound as u128) >> 64) as u64
}

/// 1 if x < y, 0 if not; both below 2^63.
fn below(x: u64, y: u64) -> u64 {
    x.wrapping_sub(y) >> 63
}

/// All ones where the word is not zero.
fn nonzero(x: u64) -> u64 {
    0u64.wrapping_sub((x | x.wrapping_neg()) >> 63)
}

fn equal(x: u64, y: u64) -> u64 {
    !nonzero(x ^ y)
}

/// An evicted item goes on by one of its two other functions.
fn turn(item: Item, random: u8) -> Item {
    let i = ((item >> HASH_SHIFT) & 3) + 1 + (random & 1) as u64;
    let i = i - (3 & below(i, 3).wrapping_sub(1));
    ((item & !(3 << HASH_SHIFT)) | (i << HASH_SHIFT)) & nonzero(item)
}

#[cfg(test)]
mod tests {
    use super::super::params::UniParams;
    use super::*;

    fn buckets(m: usize, q: usize) -> Buckets {
        Buckets::new(Block::new(5), m, q, 2)
    }

    #[test]
    fn every_position_stands_in_one_of_its_buckets_once() {
        let mut prg = Prg::from_seed(Block::new(1));
        for (t, q, level) in [(2, 9, 2), (20, 3, 1), (1254, 327, 4), (1324, 5346, 7), (30, 1 << 16, 0)] {
            let m = t * 3 / 2;
            let buckets = Buckets::new(Block::new(5), m, q, level);
            let width = width(q, level);
            let items = buckets.draw(&mut prg, t);
            let leaves = (0..100).find_map(|_| buckets.insert(&mut prg, &items)).unwrap();
            let mut found: Vec<(u64, u64)> = Vec::new();
            let used = |(_, leaf): &(usize, usize)| leaf >> level < 3 * width;
            for (j, leaf) in leaves.iter().map(|l| *l as usize).enumerate().filter(used) {
                let (range, place) = (leaf % (1 << level), leaf >> level);
                let (i, b) = (place / width, (range * width + place % width) as u64);
                let offset = buckets.offsets(b)[i] as usize;
                found.push(((j + m - offset) as u64 % m as u64, b));
            }
            let mut wanted: Vec<_> = items.iter().map(|x| (x & FIELD, (x >> B_SHIFT) & FIELD)).collect();
            found.sort();
            wanted.sort();
            assert_eq!(found, wanted);
            assert!(wanted.windows(2).all(|w| w[0] != w[1]));
        }
    }

    #[test]
    fn functions_are_distinct_and_spread() {
        let buckets = buckets(30, 1);
        let mut seen = [[0; 30]; 2];
        for b in 0..30_000 {
            let [first, second, third] = buckets.offsets(b);
            assert!(first == 0 && second != 0 && third != 0 && second != third && second < 30 && third < 30);
            seen[0][second as usize] += 1;
            seen[1][third as usize] += 1;
        }
        // 30,000 / 29 expected, with a standard deviation of 32.
        assert!(seen.iter().all(|s| s[1..].iter().all(|n| (850..1220).contains(n))), "{seen:?}");
    }

    /// log2 of a bound on the probability that t uniform triples among m buckets cannot all be placed.
    ///
    /// Some set of s positions then has only s - 1 buckets (Hall); take the smallest: every one of these
    /// buckets is met twice by it, or a position less would do. Sets: C(t, s)·C(m, s - 1); and 3s draws fall
    /// into s - 1 given buckets, each twice at least, with probability at most (3s)!·(e^z - 1 -
    /// z)^(s-1)·z^(-3s)·m^(-3s), any z > 0. Triples are distinct here, which only divides by the share of
    /// distinct ones, (1 - 1/m)(1 - 2/m), s times.
    fn failure_log2(t: usize, m: usize) -> f64 {
        let mut logs = vec![0f64; 3 * t + m + 2];
        for n in 1..logs.len() {
            logs[n] = logs[n - 1] + (n as f64).log2();
        }
        let choose = |n: usize, k: usize| logs[n] - logs[k] - logs[n - k];
        let mf = m as f64;
        let distinct = ((1.0 - 1.0 / mf) * (1.0 - 2.0 / mf)).log2();
        let term = |s: usize| {
            let balls = |z: f64| (s - 1) as f64 * (z.exp() - 1.0 - z).log2() - 3.0 * s as f64 * z.log2();
            let least = (1..400).map(|n| balls(n as f64 * 0.025)).fold(f64::INFINITY, f64::min);
            let draws = (logs[3 * s] + least).min(3.0 * s as f64 * ((s - 1) as f64).log2());
            choose(t, s) + choose(m, s - 1) + draws - 3.0 * s as f64 * mf.log2() - s as f64 * distinct
        };
        (4..=t).map(|s| term(s).exp2()).sum::<f64>().log2()
    }

    /// proof: ferret 5.2
    #[test]
    fn insertion_fails_with_at_most_two_to_the_minus_forty() {
        for params in UniParams::ALL {
            let (lanes, failure) = (params.lanes.count() as f64, failure_log2(params.t, params.m));
            assert!(failure + lanes.log2() < -40.0, "{}: {failure}", params.name);
        }
        // The bound means something: far above the threshold it promises nothing.
        assert!(failure_log2(1324, 1380) > 0.0);
    }

    /// Where failures are common enough to count, functions of this shape fail about as often as independent
    /// ones do, and the walk finds a place within its steps where there is one.
    #[test]
    fn counted_failures_stay_under_the_bound() {
        let (t, m, runs) = (12, 18, 40_000);
        let mut prg = Prg::from_seed(Block::new(9));
        let mut failures = 0;
        for _ in 0..runs {
            let buckets = Buckets::new(prg.block(), m, 97, 3);
            let items = buckets.draw(&mut prg, t);
            // A walk that was too short is tried again, so that what counts is that there is no place.
            let placed = (0..12).any(|_| buckets.insert(&mut prg, &items).is_some());
            failures += !placed as usize;
        }
        let bound = failure_log2(t, m).exp2() * runs as f64;
        assert!((failures as f64) < bound + 4.0 * bound.sqrt() + 4.0, "{failures} failures, bound {bound}");
    }

    #[test]
    fn the_walk_ends_within_its_steps_at_the_shipped_sizes() {
        let runs = if cfg!(feature = "long-tests") { 4_000 } else { 40 };
        let mut prg = Prg::from_seed(Block::new(10));
        for UniParams { t, m, q, .. } in UniParams::ALL {
            let buckets = buckets(m, q);
            for run in 0..runs {
                let items = buckets.draw(&mut prg, t);
                assert!(buckets.insert(&mut prg, &items).is_some(), "t = {t}, run {run}");
            }
        }
    }
}
