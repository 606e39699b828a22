//! Rows side by side over TCP on the loopback address, base OTs and triples included: `cargo bench -p tacit --bench
//! batch -- [ROWS [small|shallow [OT]]]`.
//!
//! The function is a 64-bit comparison and addition: the sum of both numbers where the garbler's is less, else the
//! evaluator's. One thread a party. Prints the median of five runs with the range, AND gates a second and bytes a
//! gate, both directions together.

use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};
use tacit::catalogue::{BATCH, find};
use tacit::job::eval::{Job, Options};
use tacit::{Security, ot};
use tacit_2pc::circuit::{Builder, Form};
use tacit_2pc::{OutputTo, Owner, Prepared};
use tacit_crypto::{BitVec, Block, Prg};
use tacit_net::{Channel, Party, SessionId, tcp::TcpLink};

const RUNS: usize = 5;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with("--")).collect();
    let rows: usize = args.first().and_then(|rows| rows.parse().ok()).unwrap_or(1 << 20);
    let form = if args.get(1).is_some_and(|form| form == "shallow") { Form::Shallow } else { Form::Small };
    let options = Options { protocol: Some(&BATCH), copies: None, ot: args.get(2).and_then(|ot| find(ot)) };
    let function = compare_and_add(form);
    let inputs = [1, 2].map(|seed| random(rows, seed));
    let ands = function.circuit().stats().and * rows as u64;
    let mut runs: Vec<(Duration, u64)> = (0..RUNS).map(|_| once(&function, &inputs, options)).collect();
    runs.sort();
    let rate = |time: Duration| ands as f64 / time.as_secs_f64() / 1e6;
    let (median, bytes) = runs[RUNS / 2];
    println!(
        "{rows} rows of {} AND gates, {form:?}: {:.0} ms ({:.0} … {:.0}), {:.1} M AND/s, {:.3} B/AND",
        function.circuit().stats().and,
        median.as_secs_f64() * 1e3,
        runs[0].0.as_secs_f64() * 1e3,
        runs[RUNS - 1].0.as_secs_f64() * 1e3,
        rate(median),
        bytes as f64 / ands as f64
    );
}

fn compare_and_add(form: Form) -> Prepared {
    let mut b = Builder::with_form(form);
    let (x, y) = (b.input(64), b.input(64));
    let less = b.lt(&x, &y);
    let sum = b.add(&x, &y);
    let result = b.mux(less, &sum, &y);
    let circuit = b.finish(&[result]).expect("gates of a builder are a circuit");
    Prepared::new(circuit, vec![Owner::Garbler, Owner::Evaluator]).expect("two inputs have two owners")
}

fn random(rows: usize, seed: u128) -> Vec<Vec<BitVec>> {
    let mut prg = Prg::from_seed(Block::new(seed));
    (0..rows).map(|_| vec![BitVec::random(64, &mut prg)]).collect()
}

/// The time of a run, and the bytes of both directions.
fn once(function: &Prepared, inputs: &[Vec<Vec<BitVec>>; 2], options: Options) -> (Duration, u64) {
    let base = ot::base_ot(None, Security::SemiHonest).expect("there is a base OT");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("the port's number");
    let side = |role, link, party, rows: &[Vec<BitVec>]| {
        let mut channel = Channel::new(Box::new(link), party, SessionId([7; 32]));
        let (output_to, security) = (OutputTo::Both, Security::SemiHonest);
        let job = Job { function, role, output_to, security, options };
        job.run(std::slice::from_mut(&mut channel), &*base, rows, &()).expect("both follow the protocol");
        channel.stats().bytes_sent
    };
    std::thread::scope(|scope| {
        let start = Instant::now();
        let evaluator = scope.spawn(|| {
            let link = TcpLink::new(TcpStream::connect(address).expect("a connection")).expect("a link");
            side(Owner::Evaluator, link, Party::Second, &inputs[1])
        });
        let link = TcpLink::new(listener.accept().expect("a connection").0).expect("a link");
        let sent = side(Owner::Garbler, link, Party::First, &inputs[0]);
        let sent = sent + evaluator.join().expect("the evaluator ends");
        (start.elapsed(), sent)
    })
}
