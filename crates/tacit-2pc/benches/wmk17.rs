//! WMK17, single executions with everything included: `cargo bench -p tacit-2pc --bench wmk17`.
//!
//! Two threads over TCP on the loopback address, base OTs and all setup inside the time; P2 learns the
//! output. Prints the median and the range of the runs and the bytes of both directions; then the marginal
//! cost of an AND gate from circuits of two sizes; then the same functions with the coded transfers.
//!
//! With `-- links` instead: the functions over emulated links, in one execution and in two halves, and every
//! choice of copies for SHA-256 over the slow one. With `-- singles`: single executions of 44 copies alone;
//! with `-- singles slow`, over the slow link.

use std::fs::File;
use std::io::BufWriter;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::time::{Duration, Instant};
use tacit_2pc::circuit::{Builder, Circuit, Shape, Uint, named};
use tacit_2pc::wmk17::{Copies, Evaluator, Garbler, Job, State};
use tacit_2pc::{OutputTo, Owner, Prepared};
use tacit_crypto::{BitVec, Prg};
use tacit_net::{Channel, Limits, LinkModel, Party, SessionId, memory, tcp::TcpLink};
use tacit_ot::base;
use tacit_store::sealed::FileKey;

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

/// Random inputs of P1 and P2.
fn random_inputs(prepared: &Prepared) -> [BitVec; 2] {
    let widths = &prepared.circuit().shape().inputs;
    [Owner::Garbler, Owner::Evaluator].map(|owner| {
        let own = prepared.owners().iter().zip(widths).filter(|(o, _)| **o == owner);
        BitVec::random(own.map(|(_, &w)| w as usize).sum(), &mut Prg::from_os())
    })
}

/// One execution over `link`, from nothing to P2's output.
fn single(link: LinkModel, job: &Job<'_>, x: &BitVec, y: &BitVec) -> (Duration, u64, u64) {
    over(
        link,
        &|channel| {
            let mut prg = Prg::from_os();
            let mut garbler = Garbler::setup(channel, &*base::default(), &mut prg).unwrap();
            garbler.run(channel, job, x, &mut prg).unwrap()
        },
        &|channel| {
            let mut prg = Prg::from_os();
            let mut evaluator = Evaluator::setup(channel, &*base::default(), &mut prg).unwrap();
            evaluator.run(channel, job, y, &mut prg).unwrap()
        },
    )
}

/// Single executions of 44 copies: over loopback TCP, and over `slow`.
fn singles(slow: Option<LinkModel>) {
    for name in ["add32", "aes128", "sha256"] {
        let prepared = named_function(name);
        let Some(slow) = slow else {
            measure(name, &prepared, Copies::STANDARD);
            continue;
        };
        let [x, y] = random_inputs(&prepared);
        let job = Job::new(&prepared, OutputTo::Evaluator);
        let mut runs: Vec<_> = (0..3).map(|_| single(slow, &job, &x, &y)).collect();
        runs.sort();
        println!("{slow:16} {name:8} {:.1} ms, {} rounds", runs[1].0.as_secs_f64() * 1e3, runs[1].2);
    }
}

fn measure(name: &str, prepared: &Prepared, copies: Copies) -> Duration {
    let [x, y] = random_inputs(prepared);
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

/// P1's and P2's part of a computation, on a channel.
type Part<'a, T> = &'a (dyn Fn(&mut Channel) -> T + Sync);

/// The time until P2 is done over `link`, the bytes of both directions, and the rounds of P2's.
fn over<A: Send, B: Send>(link: LinkModel, one: Part<'_, A>, two: Part<'_, B>) -> (Duration, u64, u64) {
    let mut id = SessionId([0; 32]);
    Prg::from_os().fill_bytes(&mut id.0);
    let (first, second) = memory::pair_over(link, Limits::default(), id);
    let start = Instant::now();
    let done = |channel: &Channel| (start.elapsed(), channel.stats());
    let (_, (time, stats)) = memory::join(
        first,
        second,
        |channel| {
            one(channel);
            channel.flush().unwrap();
        },
        |channel| {
            two(channel);
            done(channel)
        },
    );
    (time, stats.bytes_sent + stats.bytes_received, stats.rounds)
}

/// One execution over `link`, then the same in two halves.
fn halves(name: &str, link: LinkModel, copies: Copies) {
    let prepared = named_function(name);
    let [x, y] = random_inputs(&prepared);
    let job = Job { copies, ..Job::new(&prepared, OutputTo::Evaluator) };
    let dir = tempfile::tempdir().unwrap();
    let (one, two) = (dir.path().join("1"), dir.path().join("2"));
    let key = FileKey::from_bytes(&[1; 32]).unwrap();
    let garbler =
        |channel: &mut Channel, prg: &mut Prg| Garbler::setup(channel, &*base::default(), prg).unwrap();
    let evaluator =
        |channel: &mut Channel, prg: &mut Prg| Evaluator::setup(channel, &*base::default(), prg).unwrap();
    let single = single(link, &job, &x, &y);
    let file = |path: &Path| BufWriter::new(File::create(path).unwrap());
    let offline = over(
        link,
        &|channel| {
            let (mut prg, mut out) = (Prg::from_os(), file(&one));
            garbler(channel, &mut prg).prepare_state(channel, &job, None, &key, &mut out, &mut prg).unwrap()
        },
        &|channel| {
            let (mut prg, mut out) = (Prg::from_os(), file(&two));
            evaluator(channel, &mut prg).prepare_state(channel, &job, None, &key, &mut out, &mut prg).unwrap()
        },
    );
    let finish = |path: &Path, channel: &mut Channel, input: &BitVec| {
        State::open(path, &key).unwrap().run(channel, &job, input, &mut Prg::from_os()).unwrap()
    };
    let size = std::fs::metadata(&two).unwrap().len() as f64 / 1e6;
    let online = over(link, &|channel| finish(&one, channel, &x), &|channel| finish(&two, channel, &y));
    print!("{link:10} {name:8} {:6}", copies.name());
    for (time, bytes, rounds) in [single, offline, online] {
        print!("{:9.1} ms {:6.2} MB {rounds:2} rounds", time.as_secs_f64() * 1e3, bytes as f64 / 1e6);
    }
    println!("  P2's state {size:.2} MB");
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
    let link = |megabits, us| LinkModel::new(megabits, Duration::from_micros(us)).unwrap();
    let wan = link(200.0, 75_000);
    let asked = |name: &str| std::env::args().any(|word| word == name);
    if asked("singles") {
        return singles(asked("slow").then_some(wan));
    }
    if asked("links") {
        halves("add32", LinkModel::LOOPBACK, Copies::STANDARD);
        for link in [LinkModel::LOOPBACK, link(2_320.0, 500), wan] {
            for name in ["add32", "aes128", "sha1", "sha256"] {
                halves(name, link, Copies::STANDARD);
            }
        }
        for (name, copies) in
            [("aes128", Copies::SPARSE), ("sha256", Copies::CODED), ("sha256", Copies::SPARSE)]
        {
            halves(name, wan, copies);
        }
        return;
    }
    for copies in Copies::ALL {
        println!("copies {}", copies.name());
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
