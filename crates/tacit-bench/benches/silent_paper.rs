//! One batch of correlated OTs as the BCGIKRS19 paper has it beside the library's silent OT, malicious,
//! between two threads over memory: `cargo bench -p tacit-bench --bench silent_paper -- [COUNT]`. Base OTs
//! and KOS are in the figures. Prints the median of nine runs with the least and the most, and all bytes.

use std::time::Instant;
use tacit_bench::silent_paper::{self, Rounds};
use tacit_crypto::{Block, Prg};
use tacit_net::{Channel, memory};
use tacit_ot::convert::CotToRot;
use tacit_ot::extension::{KosReceiver, KosSender};
use tacit_ot::silent::bcgikrs19::{Code, Config, SilentReceiver, SilentSender};
use tacit_ot::{CotReceiver, CotSender, Result, Security, base};

const RUNS: usize = 9;

fn main() {
    let count = std::env::args().skip(1).find_map(|a| a.parse().ok()).unwrap_or(1 << 20);
    for code in [Code::QuasiCyclic, Code::Linear] {
        let config = Config { code, security: Security::Malicious };
        measure(
            &format!("silent, {} {count}", code.name()),
            |ch| {
                let mut s = SilentSender::setup(ch, &*base::default(), &mut Prg::from_os(), config)?;
                s.extend(ch, &mut vec![Block::ONES; count])
            },
            |ch| {
                let mut r = SilentReceiver::setup(ch, &*base::default(), &mut Prg::from_os(), config)?;
                r.extend(ch, &mut vec![Block::ONES; count])
            },
        );
        for rounds in [Rounds::Two, Rounds::Four] {
            let config = silent_paper::Config { code, security: Security::Malicious, rounds, count };
            measure(
                &format!("as the paper has it, {rounds:?} rounds, {} {count}", code.name()),
                |ch| {
                    let mut prg = Prg::from_os();
                    let mut rot = CotToRot::new(KosSender::setup(ch, &*base::default(), &mut prg)?);
                    silent_paper::send(ch, &mut rot, config, &mut prg).map(|_| ())
                },
                |ch| {
                    let mut prg = Prg::from_os();
                    let mut rot = CotToRot::new(KosReceiver::setup(ch, &*base::default(), &mut prg)?);
                    silent_paper::receive(ch, &mut rot, config, &mut prg).map(|_| ())
                },
            );
        }
    }
}

fn measure(
    name: &str,
    sender: impl Fn(&mut Channel) -> Result<()> + Sync,
    receiver: impl Fn(&mut Channel) -> Result<()> + Sync,
) {
    let mut times = Vec::new();
    let mut bytes = 0;
    for _ in 0..RUNS {
        let start = Instant::now();
        let (sent, received) = memory::run(
            |ch| sender(ch).map(|()| ch.stats().bytes_sent + ch.stats().bytes_received),
            |ch| receiver(ch),
        );
        times.push(start.elapsed().as_secs_f64() * 1e3);
        received.expect("honest");
        bytes = sent.expect("honest");
    }
    times.sort_by(f64::total_cmp);
    let [median, least, most] = [times[RUNS / 2], times[0], times[RUNS - 1]];
    println!("{name}: {median:.1} ms ({least:.1} to {most:.1}), {bytes} bytes");
}
