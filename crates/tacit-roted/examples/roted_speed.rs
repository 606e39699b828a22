//! Times ROTed from message to message, both sides in one thread, randomness included: ns an OT, medians.

use std::time::Instant;
use tacit_crypto::ring::XofBlocks;
use tacit_crypto::{Block, Prg};
use tacit_roted::roted::{Choices, Mode, Receiver, Sender};
use tacit_roted::set::{self, Set};
use tacit_roted::{Instance, Role};

fn median(mut times: Vec<f64>) -> (f64, f64, f64) {
    times.sort_by(f64::total_cmp);
    (times[times.len() / 2], times[0], times[times.len() - 1])
}

fn measure<const N: usize, const K: usize>(set: &Set<N, K>, count: usize, repeat: usize) {
    let (mut times, mut steps) = (Vec::new(), [(); 4].map(|()| Vec::new()));
    let (mut received, mut sent) = (vec![Block::ZERO; count], vec![[Block::ZERO; 2]; count]);
    for round in 0..repeat {
        let (mut m1, mut m2, mut m3) = (vec![], vec![], vec![]);
        let start = Instant::now();
        let mut prg = XofBlocks::from_prg(&mut Prg::from_os());
        let mut other = XofBlocks::from_prg(&mut Prg::from_os());
        let for_sender = Instance::new(set, "speed", &round.to_le_bytes(), Role::Sender);
        let for_receiver = Instance::new(set, "speed", &round.to_le_bytes(), Role::Receiver);
        let receiver = Receiver::offer(&for_receiver, Choices::Random, count, &mut prg, &mut m1);
        let offered = start.elapsed();
        let sender =
            Sender::answer(&for_sender, Mode::Random, count, &m1, &mut other, &mut m2).expect("honest");
        let answered = start.elapsed();
        let b = receiver.open(&for_receiver, &m2, &mut prg, &mut received, &mut m3).expect("honest");
        let opened = start.elapsed();
        sender.finish(&for_sender, &m3, &mut sent).expect("honest");
        let done = start.elapsed();
        for i in 0..count {
            assert!(received[i] == sent[i][b[i] as usize], "the sides disagree");
        }
        times.push(done.as_nanos() as f64 / count as f64);
        let spans = [offered, answered - offered, opened - answered, done - opened];
        for (step, span) in steps.iter_mut().zip(spans) {
            step.push(span.as_nanos() as f64 / count as f64);
        }
    }
    let (middle, least, most) = median(times);
    let steps: Vec<String> = steps.into_iter().map(|s| format!("{:.0}", median(s).0)).collect();
    println!(
        "{:18} batch {count:5}: {middle:7.0} ns an OT (min {least:.0}, max {most:.0}); offer, answer, open, finish: {}",
        set.name,
        steps.join(", ")
    );
}

fn main() {
    for count in [128, 1024] {
        measure(&set::PAPER, count, 200);
        measure(&set::MODULE, count, 200);
        measure(&set::LARGE, count, 100);
    }
}
