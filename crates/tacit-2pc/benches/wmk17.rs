//! WMK17, single executions with everything included: `cargo bench -p tacit-2pc --bench wmk17`.
//!
//! Two threads over TCP on the loopback address, base OTs and all setup inside the time; P2 learns the output. Prints the
//! median and the range of the runs and the bytes of both directions; then the marginal cost of an AND gate from
//! circuits of two sizes; then the same functions with the coded transfer.

use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};
use tacit_2pc::circuit::{Builder, Circuit, Shape, Uint, named};
use tacit_2pc::cut_and_choose::{Copies, Evaluator, Garbler, Job};
use tacit_2pc::semi_honest::{OutputTo, Owner, Prepared};
use tacit_crypto::{BitVec, Prg};
use tacit_net::{Channel, Party, SessionId, memory, tcp::TcpLink};
use tacit_ot::base;

const RUNS: usize = 15;

fn channels() -> (Channel, Channel) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let second = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (first, _) = listener.accept().unwrap();
    let mut id = SessionId([0; 32]);
    Prg::from_os().fill_bytes(&mut id.0);
    let channel = |stream, party| Channel::new(Box::new(TcpLink::new(stream).unwrap()), party, id);
    (channel(first, Party::First), channel(second, Party::Second))
}

/// One execution; the time until P2 has its output, and the bytes of both directions.
fn execute(job: &Job<'_>, x: &BitVec, y: &BitVec) -> (Duration, u64) {
    let (first, second) = channels();
    let start = Instant::now();
    let (sent, (done, back)) = memory::join(
        first,
        second,
        |channel| {
            let mut prg = Prg::from_os();
            let mut garbler = Garbler::setup(channel, &*base::default(), &mut prg).unwrap();
            garbler.run(channel, job, x, &mut prg).unwrap();
            channel.stats().bytes_sent
        },
        |channel| {
            let mut prg = Prg::from_os();
            let mut evaluator = Evaluator::setup(channel, &*base::default(), &mut prg).unwrap();
            evaluator.run(channel, job, y, &mut prg).unwrap().unwrap();
            (start.elapsed(), channel.stats().bytes_sent)
        },
    );
    (done, sent + back)
}

fn measure(name: &str, prepared: &Prepared, copies: Copies) -> Duration {
    let mut prg = Prg::from_os();
    let widths = &prepared.circuit().shape().inputs;
    let bits = |owner| {
        prepared.owners().iter().zip(widths).filter(|(o, _)| **o == owner).map(|(_, &w)| w as usize).sum()
    };
    let (x, y) =
        (BitVec::random(bits(Owner::Garbler), &mut prg), BitVec::random(bits(Owner::Evaluator), &mut prg));
    let job = Job { copies, ..Job::new(prepared, OutputTo::Evaluator) };
    execute(&job, &x, &y);
    let mut runs: Vec<(Duration, u64)> = (0..RUNS).map(|_| execute(&job, &x, &y)).collect();
    runs.sort();
    let ms = |t: Duration| t.as_secs_f64() * 1e3;
    let ands = prepared.circuit().stats().and;
    println!(
        "{name:16} {ands:8} AND {:8.2} ms ({:.2} … {:.2}), {:.2} MB",
        ms(runs[RUNS / 2].0),
        ms(runs[0].0),
        ms(runs[RUNS - 1].0),
        runs[0].1 as f64 / 1e6
    );
    runs[RUNS / 2].0
}

fn named_function(name: &str) -> Prepared {
    Prepared::from_function(&named::find(name).unwrap()).unwrap()
}

/// A chain of `rounds` multiplications of 32-bit numbers.
fn products(rounds: usize) -> Prepared {
    let mut b = Builder::new();
    let (x, y): (Uint, Uint) = (b.input(32), b.input(32));
    let value = (0..rounds).fold(x, |value, _| b.mul(&value, &y));
    let circuit: Circuit = b.finish(&[value]).unwrap();
    assert_eq!(circuit.shape(), &Shape { inputs: vec![32, 32], outputs: vec![32] });
    Prepared::new(circuit, vec![Owner::Garbler, Owner::Evaluator]).unwrap()
}

fn main() {
    for (label, copies) in [("40 copies", Copies::STANDARD), ("coded, 22 of 44", Copies::CODED)] {
        println!("{label}");
        for name in ["add32", "aes128", "sha1", "sha256"] {
            measure(name, &named_function(name), copies);
        }
        let (small, large) = (products(20), products(120));
        let difference = large.circuit().stats().and - small.circuit().stats().and;
        let times =
            [("products 20", small), ("products 120", large)].map(|(name, p)| measure(name, &p, copies));
        let marginal = (times[1].as_secs_f64() - times[0].as_secs_f64()) * 1e6 / difference as f64;
        println!("{:16} {marginal:.3} µs an AND gate", "marginal");
    }
}
