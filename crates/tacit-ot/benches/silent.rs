//! Silent random OT between two threads over memory, base OTs included: `cargo bench -p tacit-ot --bench
//! silent -- COUNT [quasi-cyclic|linear] [malicious|semi-honest]`. Prints the median of five runs in ms and
//! all bytes.

use std::time::Instant;
use tacit_crypto::{Block, Prg};
use tacit_net::memory;
use tacit_ot::convert::CotToRot;
use tacit_ot::silent::bcgikrs19::{Code, Config, SilentReceiver, SilentSender};
use tacit_ot::{RotReceiver, RotSender, Security, base};

const RUNS: usize = 5;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with("--")).collect();
    let count: usize = args.first().and_then(|a| a.parse().ok()).unwrap_or(1 << 20);
    let asked = |name: &str| args.len() < 2 || args[1..].iter().any(|a| a == name);
    let securities = [(Security::Malicious, "malicious"), (Security::SemiHonest, "semi-honest")];
    let kinds = args.iter().any(|a| securities.iter().any(|s| s.1 == a));
    for code in [Code::QuasiCyclic, Code::Linear] {
        for (security, name) in securities {
            if asked(code.name()) && (!kinds || asked(name)) {
                run(Config { code, security }, name, count);
            }
        }
    }
}

fn run(config: Config, security: &str, count: usize) {
    let mut times = Vec::new();
    let mut bytes = 0;
    for _ in 0..RUNS {
        let mut pairs = vec![[Block::ONES; 2]; count];
        let mut received = vec![Block::ONES; count];
        let start = Instant::now();
        let (sent, _) = memory::run(
            |ch| {
                let mut prg = Prg::from_os();
                let s = SilentSender::setup(ch, &*base::default(), &mut prg, config).expect("setup");
                CotToRot::new(s).extend(ch, &mut pairs).expect("extend");
                ch.stats().bytes_sent + ch.stats().bytes_received
            },
            |ch| {
                let mut prg = Prg::from_os();
                let r = SilentReceiver::setup(ch, &*base::default(), &mut prg, config).expect("setup");
                CotToRot::new(r).extend(ch, &mut received).expect("extend")
            },
        );
        times.push(start.elapsed().as_secs_f64() * 1e3);
        bytes = sent;
    }
    times.sort_by(f64::total_cmp);
    println!(
        "{} {security} {count}: {:.0} ms ({:.0} to {:.0}), {bytes} bytes",
        config.code.name(),
        times[RUNS / 2],
        times[0],
        times[RUNS - 1]
    );
}
