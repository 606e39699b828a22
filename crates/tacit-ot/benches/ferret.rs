//! Ferret between two threads over memory: `cargo bench -p tacit-ot --bench ferret -- COUNT [SET …]`.
//!
//! `-- memory COUNT SET` prints the peak memory of both parties, in one process, instead, four lanes,
//! streaming.
//!
//! `-- ratio COUNT SET …` prints malicious over semi-honest instead, four lanes: the median of pairs of runs
//! that alternate.
//!
//! Prints the median of five runs of each set, lanes and security, in ns a correlation; setup is apart.

use std::time::Instant;
use tacit_crypto::{Block, Buffer, Prg};
use tacit_net::{Channel, memory};
use tacit_ot::silent::ferret::{Config, FerretReceiver, FerretSender, Lanes, Params};
use tacit_ot::silent::ferret::{FerretUniReceiver, FerretUniSender, UniConfig, UniParams};
use tacit_ot::{CotReceiver, CotSender, Result, Security};

/// Setup correlations from a shared seed, so that the extension alone is measured.
struct Dealer(Prg, Block, bool);

impl Dealer {
    fn new(receives: bool) -> Self {
        Dealer(Prg::from_seed(Block::ONE), Block::ONES, receives)
    }

    fn deal(&mut self, out: &mut [Block]) -> Result<()> {
        for slot in out {
            let (v, u) = (self.0.block().with_lsb(false), self.0.bit());
            *slot = if self.2 && u { v ^ self.1 } else { v };
        }
        Ok(())
    }
}

impl CotSender for Dealer {
    fn delta(&self) -> Block {
        self.1
    }
    fn extend(&mut self, _: &mut Channel, out: &mut [Block]) -> Result<()> {
        self.deal(out)
    }
}

impl CotReceiver for Dealer {
    fn extend(&mut self, _: &mut Channel, out: &mut [Block]) -> Result<()> {
        self.deal(out)
    }
}

const RUNS: usize = 5;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with("--")).collect();
    if args.first().is_some_and(|a| a == "memory") {
        return memory_of(&args[1..]);
    }
    if args.first().is_some_and(|a| a == "ratio") {
        return ratios_of(&args[1..]);
    }
    let count: usize = args.first().and_then(|a| a.parse().ok()).unwrap_or(10_000_000);
    let wanted = |p: &Params| args.len() < 2 || args[1..].iter().any(|a| a == p.name);
    for params in Params::ALL.into_iter().chain(Params::PAPERS).filter(wanted) {
        for lanes in [Lanes::Four, Lanes::One] {
            for security in [Security::SemiHonest, Security::Malicious] {
                let config = Config { params, lanes, security };
                report(params.name, lanes.count(), security, count, measure_regular(config, count));
            }
        }
    }
    for params in UniParams::ALL.into_iter().chain(UniParams::PAPERS) {
        let name = format!("uni-{}", params.name);
        if args.len() >= 2 && !args[1..].contains(&name) {
            continue;
        }
        for security in [Security::SemiHonest, Security::Malicious] {
            let config = UniConfig { params, security };
            let figures = measure(
                |ch, dealer| FerretUniSender::setup(ch, Prg::from_os(), config, dealer),
                |ch, dealer| FerretUniReceiver::setup(ch, Prg::from_os(), config, dealer),
                count,
            );
            report(&name, 1, security, count, figures);
        }
    }
}

fn measure_regular(config: Config, count: usize) -> (Vec<f64>, u64) {
    measure(
        |ch, dealer| FerretSender::setup(ch, Prg::from_os(), config, dealer),
        |ch, dealer| FerretReceiver::setup(ch, Prg::from_os(), config, dealer),
        count,
    )
}

/// Malicious over semi-honest, pair by pair.
fn ratios_of(args: &[String]) {
    let count: usize = args.first().and_then(|a| a.parse().ok()).unwrap_or(10_000_000);
    for params in args.iter().skip(1).filter_map(|name| Params::for_measuring(name)) {
        let mut pairs: Vec<[f64; 2]> = (0..7)
            .map(|_| {
                [Security::SemiHonest, Security::Malicious].map(|security| {
                    measure_regular(Config { params, lanes: Lanes::Four, security }, count).0[RUNS / 2]
                })
            })
            .collect();
        pairs.sort_by(|a, b| (a[1] / a[0]).total_cmp(&(b[1] / b[0])));
        let ratio = |i: usize| pairs[i][1] / pairs[i][0];
        let [semi, malicious] =
            [0, 1].map(|i| pairs.iter().map(|p| p[i]).fold(f64::MAX, f64::min) * 1e9 / count as f64);
        println!(
            "{:12} malicious over semi-honest: {:.3} ({:.3} to {:.3}); least {semi:.2} and {malicious:.2} ns",
            params.name,
            ratio(3),
            ratio(0),
            ratio(6)
        );
    }
}

/// Streams COUNT correlations of one set and prints the kernel's high-water mark of the process.
fn memory_of(args: &[String]) {
    let count: usize = args.first().and_then(|a| a.parse().ok()).unwrap_or(50_000_000);
    let params = args.get(1).and_then(|name| Params::for_measuring(name)).unwrap_or(Params::A);
    let config = Config { params, lanes: Lanes::Four, security: Security::Malicious };
    memory::run(
        |ch| {
            let mut s =
                FerretSender::setup(ch, Prg::from_os(), config, &mut Dealer::new(false)).expect("setup");
            s.extend_each(ch, count, &mut |_| {}).expect("extend");
        },
        |ch| {
            let mut r =
                FerretReceiver::setup(ch, Prg::from_os(), config, &mut Dealer::new(true)).expect("setup");
            r.extend_each(ch, count, &mut |_| {}).expect("extend");
        },
    );
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or("VmHWM unknown");
    println!("{} {count} correlations, both parties in this process: {peak}", params.name);
}

fn report(name: &str, lanes: usize, security: Security, count: usize, (times, bytes): (Vec<f64>, u64)) {
    let each = |seconds: f64| seconds * 1e9 / count as f64;
    println!(
        "{name:12} {lanes} lanes {security:?}: {:.2} ns ({:.2} to {:.2}), {:.2} bits each",
        each(times[RUNS / 2]),
        each(times[0]),
        each(times[RUNS - 1]),
        bytes as f64 * 8.0 / (RUNS + 1) as f64 / count as f64
    );
}

/// Times extensions of either kind.
fn measure<S: CotSender, R: CotReceiver>(
    sender: impl FnOnce(&mut Channel, &mut Dealer) -> Result<S> + Send,
    receiver: impl FnOnce(&mut Channel, &mut Dealer) -> Result<R> + Send,
    count: usize,
) -> (Vec<f64>, u64) {
    let (bytes, mut times) = memory::run(
        |ch| {
            let mut s = sender(ch, &mut Dealer::new(false)).expect("setup");
            let mut out = Buffer::zeros(count);
            (0..=RUNS).for_each(|_| s.extend(ch, &mut out).expect("extend"));
            ch.stats().bytes_sent + ch.stats().bytes_received
        },
        |ch| {
            let mut r = receiver(ch, &mut Dealer::new(true)).expect("setup");
            let mut out = Buffer::zeros(count);
            let run = |_| {
                let start = Instant::now();
                r.extend(ch, &mut out).expect("extend");
                start.elapsed().as_secs_f64()
            };
            (0..=RUNS).map(run).skip(1).collect::<Vec<_>>()
        },
    );
    times.sort_by(f64::total_cmp);
    (times, bytes)
}
