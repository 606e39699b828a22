//! A dudect-style check of what handles secrets (Reparaz, Balasch, Verbauwhede 2017): the times of a fixed
//! input against those of random ones, the class drawn anew for each measurement, compared by Welch's t at
//! many croppings.
//!
//! `make constant-time`. Two controls stand beside the operations: one whose classes are the same input,
//! which must pass, and one that returns early, which must fail. For a quiet machine and a nightly run, not a
//! unit test.

use std::hint::black_box;
use std::sync::atomic::{Ordering, fence};
use std::time::Instant;
use tacit_crypto::ring::{Noise, Poly, RING_512_13313, RandomBlocks};
use tacit_crypto::{Block, Prg};

const MEASUREMENTS: usize = 400_000;
/// Measurements that only set the thresholds.
const CALIBRATION: usize = 20_000;
const THRESHOLDS: usize = 100;
/// Runs in one measurement.
const RUNS: usize = 8;
/// dudect's. That of a single test, 4.5, lies below what the largest of 101 croppings reads for an operation
/// without branches.
const LIMIT: f64 = 10.0;

/// A stream that gives the same blocks to every request.
struct Replay<'a>(&'a Poly<1024>);

impl RandomBlocks for Replay<'_> {
    fn fill_blocks(&mut self, out: &mut [Block]) {
        let bytes: &[u8] = bytemuck::cast_slice(&self.0.0);
        let out = Block::as_bytes_mut(out);
        out.copy_from_slice(&bytes[..out.len()]);
    }
}

/// Count, mean and sum of squared deviations, by Welford.
#[derive(Clone, Copy, Default)]
struct Moments {
    n: f64,
    mean: f64,
    squares: f64,
}

impl Moments {
    fn add(&mut self, x: f64) {
        self.n += 1.0;
        let away = x - self.mean;
        self.mean += away / self.n;
        self.squares += away * (x - self.mean);
    }
}

fn welch([a, b]: [Moments; 2]) -> f64 {
    let error = |m: Moments| m.squares / (m.n - 1.0) / m.n;
    (a.mean - b.mean) / (error(a) + error(b)).sqrt()
}

/// The largest t, in size, of `run` on `fixed` against `run` on what `draw` gives.
///
/// Both classes go through the same steps on the same addresses: the random input is drawn, the class selects
/// by a mask that reads both inputs whole, the operation runs once unmeasured on the random one, and a fence
/// waits for all stores.
fn check<const N: usize>(
    name: &str,
    prg: &mut Prg,
    fixed: &Poly<N>,
    draw: impl Fn(&mut Prg, &mut Poly<N>),
    mut run: impl FnMut(&Poly<N>),
) -> f64 {
    let (mut random, mut input, mut spare) = (Poly::<N>::ZERO, Poly::<N>::ZERO, Poly::<N>::ZERO);
    let mut measure = |class: bool| {
        draw(prg, &mut random);
        draw(prg, &mut spare);
        let mask = -(black_box(class) as i16);
        input.0.copy_from_slice(&spare.0);
        run(black_box(&input));
        for ((to, r), f) in input.0.iter_mut().zip(&random.0).zip(&fixed.0) {
            *to = f ^ (mask & (f ^ r));
        }
        fence(Ordering::SeqCst);
        let start = Instant::now();
        for _ in 0..RUNS {
            run(black_box(&input));
        }
        start.elapsed().as_nanos() as f64
    };
    let mut coins = Prg::from_os();
    let mut first: Vec<f64> = (0..CALIBRATION).map(|_| measure(coins.bit())).collect();
    first.sort_by(f64::total_cmp);
    // dudect's percentiles, denser towards the slow end, and everything.
    let percentile = |i: usize| 1.0 - 0.5f64.powf(10.0 * (i + 1) as f64 / THRESHOLDS as f64);
    let mut limits: Vec<f64> =
        (0..THRESHOLDS).map(|i| first[(CALIBRATION as f64 * percentile(i)) as usize]).collect();
    limits.push(f64::INFINITY);
    let mut moments = vec![[Moments::default(); 2]; limits.len()];
    for _ in 0..MEASUREMENTS {
        let class = coins.bit();
        let time = measure(class);
        for (limit, moments) in limits.iter().zip(&mut moments) {
            if time <= *limit {
                moments[class as usize].add(time);
            }
        }
    }
    let enough = |m: &&[Moments; 2]| m.iter().all(|m| m.n >= 10_000.0);
    let worst = moments.iter().filter(enough).max_by(|a, b| welch(**a).abs().total_cmp(&welch(**b).abs()));
    let worst = worst.expect("the uncropped set is large");
    let t = welch(*worst);
    let kept = (worst[0].n + worst[1].n) / MEASUREMENTS as f64 * 100.0;
    println!(
        "{name:24} t = {t:7.2} with {kept:5.1} % kept; means {:.2} and {:.2} ns for {RUNS} runs",
        worst[0].mean, worst[1].mean
    );
    t.abs()
}

/// Below q, as what the transforms and the reconciliation take.
fn below_q(prg: &mut Prg, poly: &mut Poly<512>) {
    let q = RING_512_13313.modulus();
    let mut bytes = [0u8; 2048];
    prg.fill_bytes(&mut bytes);
    for (v, four) in poly.0.iter_mut().zip(bytes.as_chunks::<4>().0) {
        // The bias is some 2^-18; a remainder by a constant does not branch.
        *v = (u32::from_le_bytes(*four) % q) as i16;
    }
}

fn any_bits(prg: &mut Prg, poly: &mut Poly<1024>) {
    prg.fill_bytes(bytemuck::cast_slice_mut(&mut poly.0));
}

fn main() {
    let mut prg = Prg::from_os();
    let ring = &RING_512_13313;
    let (zero, no_bits) = (Poly::<512>::ZERO, Poly::<1024>::ZERO);
    let (coins, mut signal, mut key) = ([0u16; 32], [0u16; 32], [0u16; 32]);
    let mut scratch = [Block::ZERO; 128];
    let mut out = Poly::<512>::ZERO;
    let still = check(
        "control: equal classes",
        &mut prg,
        &zero,
        |_, _| (),
        |x| {
            out.0.copy_from_slice(&x.0);
            ring.forward(black_box(&mut out));
        },
    );
    let leaky = check("control: early return", &mut prg, &zero, below_q, |x| {
        black_box(x.0.iter().position(|v| *v != 0));
    });
    let mut worst: f64 = 0.0;
    for noise in [Noise::Gaussian2, Noise::Binomial2] {
        worst = worst.max(check(&format!("{noise:?}"), &mut prg, &no_bits, any_bits, |x| {
            noise.sample(&mut Replay(x), &mut scratch, black_box(&mut out));
        }));
    }
    worst = worst.max(check("Sig and Mod2, sender", &mut prg, &zero, below_q, |x| {
        ring.signal(x, &coins, &mut signal, black_box(&mut key));
    }));
    worst = worst.max(check("Mod2, receiver", &mut prg, &zero, below_q, |x| {
        ring.extract(x, &signal, black_box(&mut key));
    }));
    worst = worst.max(check("transform", &mut prg, &zero, below_q, |x| {
        out.0.copy_from_slice(&x.0);
        ring.forward(black_box(&mut out));
    }));
    let mut h = Poly::<512>::ZERO;
    below_q(&mut prg, &mut h);
    worst = worst.max(check("choice", &mut prg, &zero, below_q, |x| {
        out.0.copy_from_slice(&h.0);
        ring.subtract_masked(black_box(&mut out), &h, -(x.0[0] & 1));
    }));
    assert!(leaky > LIMIT, "the method does not see an early return");
    assert!(still < LIMIT, "the machine is too noisy: equal classes differ");
    assert!(worst < LIMIT, "an operation's time depends on its secret");
}
