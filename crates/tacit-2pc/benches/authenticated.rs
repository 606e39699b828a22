//! Authenticated garbling, single executions with everything included: `cargo bench -p tacit-2pc --bench
//! authenticated`, behind which names of functions may stand (`-- sha256`; `products` for the large ones;
//! `stream=100000000` for a program of so many AND gates,
//! `set=e` with another set of Ferret's; `link=100/10` for 10^6 AND gates over an emulated line of so many
//! Mbit/s and ms each way).
//!
//! Two threads over TCP on the loopback address, one a party; base OTs and all setup inside the time; the
//! evaluator learns the output. Prints the median and the range of the runs and the bytes of both directions,
//! the parts of the time, and the marginal cost of an AND gate from circuits of two sizes.

use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};
use tacit_2pc::authenticated::buckets::{self, Level};
use tacit_2pc::authenticated::{Demand, Session};
use tacit_2pc::circuit::{Builder, Shape, Uint, iterate, named};
use tacit_2pc::{OutputTo, Owner, Prepared};
use tacit_crypto::{BitVec, Prg};
use tacit_net::{Channel, Limits, LinkModel, Party, SessionId, memory, tcp::TcpLink};
use tacit_ot::silent::ferret::cost::CACHE;
use tacit_ot::silent::ferret::{Config, Params};
use tacit_ot::{Security, base};

const RUNS: usize = 9;

fn channels() -> (Channel, Channel) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let second = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (first, _) = listener.accept().unwrap();
    let mut id = SessionId([0; 32]);
    Prg::from_os().fill_bytes(&mut id.0);
    let channel = |stream, party| Channel::new(Box::new(TcpLink::new(stream).unwrap()), party, id);
    (channel(first, Party::First), channel(second, Party::Second))
}

/// One party's run; the times at which setup, triples, masks and the output were done.
fn party(
    channel: &mut Channel,
    role: Owner,
    function: &Prepared,
    config: Config,
    start: Instant,
) -> ([Duration; 4], u64) {
    let (mut prg, base) = (Prg::from_os(), base::default());
    let mut session = Session::setup(channel, role, &*base, config, &mut prg).unwrap();
    let setup = start.elapsed();
    let demand = Demand::of(function);
    let input = BitVec::random(demand.inputs(role), &mut prg);
    let independent = session.independent(channel, demand).unwrap();
    let triples = start.elapsed();
    let dependent = independent.dependent(channel, function, OutputTo::Evaluator).unwrap();
    let masks = start.elapsed();
    dependent.online(channel, &input).unwrap();
    ([setup, triples, masks, start.elapsed()], channel.stats().bytes_sent)
}

/// Products of 32 bits over the line `link`, with the Ferret of the set `set`, or those that are picked for
/// the line and for none.
fn over(link: &LinkModel, set: Option<Params>) {
    let function = products(1007);
    let ands = function.plan(1).ands();
    let demand = Demand::of(&function);
    let configs = match set {
        Some(params) => {
            vec![Config::with_set(
                params,
                demand.correlations(Level::ALONE),
                Security::Malicious,
                link,
                CACHE,
            )]
        }
        None => [link, &LinkModel::LOOPBACK].map(|link| demand.ferret(link, Level::ALONE)).to_vec(),
    };
    for config in configs {
        let (first, second) = memory::pair_over(*link, Limits::default(), SessionId([7; 32]));
        let start = Instant::now();
        let ((times, sent), (_, back)) = memory::join(
            first,
            second,
            |channel| party(channel, Owner::Garbler, &function, config, start),
            |channel| party(channel, Owner::Evaluator, &function, config, start),
        );
        let seconds = start.elapsed().as_secs_f64();
        let bytes = (sent + back) as f64 / ands as f64;
        println!(
            "{ands} AND {seconds:.2} s over the line, {bytes:.1} bytes an AND, {times:.2?}; Ferret {} {:?}",
            config.params.name, config.lanes,
        );
    }
}

fn measure(name: &str, function: &Prepared) -> Duration {
    let ands = function.plan(1).ands();
    let config = Demand::of(function).ferret(&LinkModel::LOOPBACK, Level::ALONE);
    let mut runs: Vec<([Duration; 4], u64)> = (0..RUNS)
        .map(|_| {
            let (first, second) = channels();
            let start = Instant::now();
            let ((_, sent), (times, back)) = memory::join(
                first,
                second,
                |channel| party(channel, Owner::Garbler, function, config, start),
                |channel| party(channel, Owner::Evaluator, function, config, start),
            );
            (times, sent + back)
        })
        .collect();
    runs.sort_by_key(|run| run.0[3]);
    let ms = |t: Duration| t.as_secs_f64() * 1e3;
    let (times, bytes) = runs[RUNS / 2];
    println!(
        "{name:12} {ands:8} AND {:8.2} ms ({:.2} … {:.2}), {:.2} MB, {:.1} bytes an AND; setup {:.2}, triples {:.2}, \
         masks {:.2}, online {:.2} ms; Ferret {}",
        ms(times[3]),
        ms(runs[0].0[3]),
        ms(runs[RUNS - 1].0[3]),
        bytes as f64 / 1e6,
        bytes as f64 / ands as f64,
        ms(times[0]),
        ms(times[1] - times[0]),
        ms(times[2] - times[1]),
        ms(times[3] - times[2]),
        config.params.name,
    );
    times[3]
}

/// A chain of `rounds` multiplications of 32-bit numbers.
fn products(rounds: usize) -> Prepared {
    let mut b = Builder::new();
    let (x, y): (Uint, Uint) = (b.input(32), b.input(32));
    let value = (0..rounds).fold(x, |value, _| b.mul(&value, &y));
    Prepared::new(b.finish(&[value]).unwrap(), vec![Owner::Garbler, Owner::Evaluator]).unwrap()
}

/// A program that iterates products of 32 bits, about `ands` AND gates: the rate, and the peak of the memory
/// of both parties together.
fn stream(ands: u64, set: Option<Params>) {
    let shape = || Shape { inputs: vec![32, 32], outputs: vec![32, 32] };
    let program = |steps: u64| {
        iterate("products", shape(), steps, |b, state, _| {
            vec![b.mul(&state[0], &state[1]), b.add(&state[0], &state[1])]
        })
    };
    let one = Demand { ands: buckets::WINDOW, garbler_inputs: 0, evaluator_inputs: 0 };
    let (count, link) = (one.correlations(Level::ALONE) * 4, &LinkModel::LOOPBACK);
    let config = match set {
        Some(params) => Config::with_set(params, count, Security::Malicious, link, CACHE),
        None => one.times(4).ferret(link, Level::ALONE),
    };
    let owners = [Owner::Garbler, Owner::Evaluator];
    let party = |channel: &mut Channel, role: Owner| {
        let mut prg = Prg::from_os();
        let mut session = Session::setup(channel, role, &*base::default(), config, &mut prg).unwrap();
        let (input, mut done) = (BitVec::random(32, &mut prg), 0);
        let steps = ands.div_ceil(1024);
        session
            .run_program(channel, program(steps), &owners, OutputTo::Both, &input, |ands| done = ands)
            .unwrap();
        (done, channel.stats().bytes_sent)
    };
    let (first, second) = channels();
    let start = Instant::now();
    let ((done, sent), (_, back)) = memory::join(
        first,
        second,
        |channel| party(channel, Owner::Garbler),
        |channel| party(channel, Owner::Evaluator),
    );
    let seconds = start.elapsed().as_secs_f64();
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or("unknown").trim();
    println!(
        "stream {done} AND {seconds:.2} s, {:.2} million a second, {:.1} bytes an AND, peak memory of both {peak}; \
         Ferret {} {:?}",
        done as f64 / seconds / 1e6,
        (sent + back) as f64 / done as f64,
        config.params.name,
        config.lanes,
    );
}

fn main() {
    let only: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with("--")).collect();
    let wanted = |name: &str| only.is_empty() || only.iter().any(|arg| arg == name);
    for name in ["add32", "aes128", "sha1", "sha256"].into_iter().filter(|name| wanted(name)) {
        measure(name, &Prepared::from_function(&named::find(name).unwrap()).unwrap());
    }
    let set = only.iter().find_map(|arg| Params::by_name(arg.strip_prefix("set=")?));
    if let Some(ands) = only.iter().find_map(|arg| arg.strip_prefix("stream=")) {
        stream(ands.parse().unwrap(), set);
    }
    if let Some(link) = only.iter().find_map(|arg| arg.strip_prefix("link=")) {
        let (megabits, ms) = link.split_once('/').unwrap();
        let delay = Duration::from_secs_f64(ms.parse::<f64>().unwrap() / 1e3);
        over(&LinkModel::new(megabits.parse().unwrap(), delay).unwrap(), set);
    }
    if !wanted("products") {
        return;
    }
    let (small, large) = (products(412), products(824));
    let difference = large.plan(1).ands() - small.plan(1).ands();
    let times = [("products 412", small), ("products 824", large)].map(|(name, p)| measure(name, &p));
    let marginal = (times[1].as_secs_f64() - times[0].as_secs_f64()) * 1e9 / difference as f64;
    println!("marginal: {marginal:.0} ns an AND gate, {:.2} million a second", 1e3 / marginal);
}
