//! Parameter sets: the bar for defaults, and the computed failure probability against counted failures.

use tacit_crypto::ring::{Noise, RING_1024_12289, Vector, XofBlocks};
use tacit_crypto::{Block, Prg};
use tacit_roted::exchange::{self, Scratch};
use tacit_roted::set::{LARGE, MODULE, PAPER, Set};
use tacit_roted::{Instance, Role};

/// ln δ of BKZ with block size b.
fn log_delta(b: f64) -> f64 {
    use std::f64::consts::{E, PI};
    ((PI * b).powf(1.0 / b) * b / (2.0 * PI * E)).ln() / (2.0 * (b - 1.0))
}

/// Least block size of the primal attack, as `tools/rlwe-security` computes it, with `known` coefficients
/// given away.
fn primal_block<const N: usize, const K: usize>(set: &Set<N, K>, known: usize) -> f64 {
    let law = set.noise.law();
    let variance: f64 = law.iter().enumerate().map(|(x, p)| 2.0 * (x * x) as f64 * *p as f64).sum();
    let (sigma, q) = ((variance / (1u64 << 32) as f64).sqrt(), set.ring.modulus() as f64);
    let n = (N * K - known) as f64;
    let succeeds = |b: f64, m: f64| {
        let d = n + m + 1.0;
        let volume = (m * (q / sigma).ln() - n * sigma.ln()) / d;
        b.ln() / 2.0 <= (2.0 * b - d - 1.0) * log_delta(b) + volume
    };
    let blocks = (50..2000).map(|b| b as f64);
    let mut good = blocks.filter(|b| (1..=N * (K + 1)).any(|m| *b < n + m as f64 && succeeds(*b, m as f64)));
    good.next().unwrap_or(2000.0)
}

/// The bar: 128 bits classical core-SVP, also for a receiver that learns three eighths of the reconciled
/// coefficients by its choice of p⁰, and failure under 2^-128.
fn passes<const N: usize, const K: usize>(set: &Set<N, K>) -> bool {
    let hard = |known| 0.292 * primal_block(set, known) >= 128.0;
    hard(0) && hard(set.key_bits * 3 / 8) && set.failure_probability().log2() <= -128.0
}

#[test]
fn defaults_pass_the_bar_and_the_papers_set_does_not() {
    assert!(passes(&MODULE));
    assert!(passes(&LARGE));
    assert!(!passes(&PAPER));
    // Either half of the bar refuses by itself.
    assert!(0.292 * primal_block(&PAPER, 0) < 128.0);
    assert!(!passes(&Set { noise: Noise::Gaussian2, ..MODULE }), "fails too often");
}

#[test]
fn failure_probabilities_match_the_estimators() {
    // The figures that `tools/rlwe-security/rlwe_security.py` prints, by another algorithm.
    for (computed, printed) in [
        (MODULE.failure_probability(), MODULE_FAILURE),
        (LARGE.failure_probability(), LARGE_FAILURE),
        (PAPER.failure_probability(), PAPER_FAILURE),
    ] {
        assert!((computed.log2() - printed).abs() < 0.1, "2^{} in place of 2^{printed}", computed.log2());
    }
}

const MODULE_FAILURE: f64 = -405.5;
const LARGE_FAILURE: f64 = -753.5;
const PAPER_FAILURE: f64 = -116.9;

/// Key bits that differ over `runs` honest exchanges.
fn count_differences<const N: usize, const K: usize>(set: &Set<N, K>, runs: usize) -> u64 {
    let instance = |role| Instance::new(set, "failure", b"reduced", role);
    let (ours, theirs) = (instance(Role::Sender), instance(Role::Receiver));
    let mut random = XofBlocks::from_prg(&mut Prg::from_seed(Block::new(2024)));
    let mut scratch = Scratch::new(&ours);
    let [mut s, mut p, mut s2, mut p2] = [const { Vector::ZERO }; 4];
    let words = set.key_words();
    let (mut signal, mut key, mut key2) = (vec![0; words], vec![0; words], vec![0; words]);
    let mut different = 0;
    for _ in 0..runs {
        exchange::generate(&ours, &mut random, &mut scratch, &mut s, &mut p);
        exchange::generate(&theirs, &mut random, &mut scratch, &mut s2, &mut p2);
        exchange::signal(&ours, &mut random, &mut scratch, &s, &p2, (&mut signal, &mut key));
        exchange::extract(&theirs, &mut random, &mut scratch, &s2, &p, (&signal, &mut key2));
        different += key.iter().zip(&key2).map(|(a, b)| (a ^ b).count_ones() as u64).sum::<u64>();
    }
    different
}

#[test]
fn counted_failures_match_the_computed() {
    // Rank 6 over degree 1024 with the wide noise fails often enough to be counted.
    let reduced: Set<1024, 6> =
        Set { name: "reduced", ring: &RING_1024_12289, noise: Noise::Gaussian2, key_bits: 1024 };
    let runs = if cfg!(feature = "long-tests") { 200_000 } else { 3_000 };
    let expected = reduced.failure_probability() * runs as f64;
    assert!(expected > 5.0, "too few failures to count: {expected}");
    let counted = count_differences(&reduced, runs) as f64;
    // Five standard deviations of a Poisson count.
    assert!((counted - expected).abs() < 5.0 * expected.sqrt(), "{counted} counted, {expected} expected");
}
