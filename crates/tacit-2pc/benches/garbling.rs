//! Garbling, evaluation and Yao's protocol: `cargo bench -p tacit-2pc --bench garbling`.
//!
//! Prints millions of AND gates a second, the median and the range of 15 runs. `TACIT_SIMD` picks the kernel.
//! The protocol runs in two threads over TCP on the loopback address, the OT's setup apart. A word after `--`
//! picks the lines that hold it of those without a protocol.

use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};
use tacit_2pc::circuit::{Builder, FIRST_INPUT, Order, Plan, Shape, Uint, iterate, named};
use tacit_2pc::garble::{Copy, Evaluate, Garble, HalfGatesEvaluator, HalfGatesGarbler, instance_start};
use tacit_2pc::semi_honest;
use tacit_2pc::{OutputTo, Owner, Prepared};
use tacit_crypto::{BitVec, Block, Prg};
use tacit_net::{Channel, Party, SessionId, memory, tcp::TcpLink};
use tacit_ot::base;
use tacit_ot::extension::iknp::{IknpReceiver, IknpSender};

const RUNS: usize = 15;

fn report(name: &str, ands: u64, mut times: Vec<Duration>) {
    times.sort();
    let rate = |t: Duration| ands as f64 / t.as_secs_f64() / 1e6;
    let (median, best, worst) = (times[times.len() / 2], times[0], times[times.len() - 1]);
    println!(
        "{name:44} {:8.1} M AND/s ({:.1} … {:.1}), {:.3} ms",
        rate(median),
        rate(worst),
        rate(best),
        median.as_secs_f64() * 1e3
    );
}

/// Times garbling and evaluation of `repeat` executions of `plan`.
fn local(name: &str, plan: &Plan, copies: &[Copy], repeat: usize) {
    if picked().is_some_and(|word| !name.contains(&word)) {
        return;
    }
    let lanes = copies.len();
    let mut prg = Prg::from_seed(Block::new(1));
    let starts: Vec<Block> = copies.iter().map(|c| c.start).collect();
    let ands = plan.ands() * (lanes * repeat) as u64;
    let mut labels = vec![Block::ZERO; lanes];
    let (mut garbling, mut evaluating) = (Vec::new(), Vec::new());
    // A protocol sends and receives pieces from one buffer, which stays in the caches.
    let mut tables = vec![Block::ZERO; 2 * plan.ands() as usize * lanes];
    for _ in 0..RUNS {
        let mut garbler = HalfGatesGarbler::new(copies);
        let mut evaluator = HalfGatesEvaluator::new(&starts);
        for input in 0..plan.input_bits() as u32 {
            prg.fill_blocks(&mut labels);
            garbler.set_zero_labels(FIRST_INPUT + input, &labels);
            evaluator.set_labels(FIRST_INPUT + input, &labels);
        }
        let start = Instant::now();
        for _ in 0..repeat {
            for piece in plan.pieces(2048 / lanes) {
                garbler.garble(piece, &mut tables[..2 * piece.ands * lanes]);
            }
        }
        garbling.push(start.elapsed());
        let start = Instant::now();
        for _ in 0..repeat {
            for piece in plan.pieces(2048 / lanes) {
                evaluator.evaluate(piece, &tables[..2 * piece.ands * lanes]);
            }
        }
        evaluating.push(start.elapsed());
    }
    report(&format!("garble {name}"), ands, garbling);
    report(&format!("evaluate {name}"), ands, evaluating);
}

fn copies(lanes: usize, delta: Option<Block>) -> Vec<Copy> {
    let mut prg = Prg::from_seed(Block::new(2));
    let session = prg.block();
    (0..lanes)
        .map(|i| match delta {
            Some(delta) => Copy { delta, start: instance_start(session, i as u64) },
            None => Copy { delta: prg.block().with_lsb(true), start: prg.block() },
        })
        .collect()
}

/// Two parties over TCP; setup apart.
fn protocol(name: &str, function: &Prepared, rows: usize, executions: usize) {
    let mut random = Prg::from_seed(Block::new(3));
    let shape = function.circuit().shape().clone();
    let mut draw = |owner: Owner| -> Vec<Vec<BitVec>> {
        let widths: Vec<usize> = (0..shape.inputs.len())
            .filter(|&i| function.owners()[i] == owner)
            .map(|i| shape.inputs[i] as usize)
            .collect();
        (0..rows).map(|_| widths.iter().map(|&w| BitVec::random(w, &mut random)).collect()).collect()
    };
    let (garbler, evaluator) = (draw(Owner::Garbler), draw(Owner::Evaluator));
    let to = OutputTo::Evaluator;
    let times = over_tcp(
        |channel| {
            let mut prg = Prg::from_os();
            let mut cot = IknpSender::setup(channel, &*base::default(), &mut prg).unwrap();
            for _ in 0..executions {
                semi_honest::garble(channel, &mut cot, function, &garbler, to, &mut prg).unwrap();
            }
        },
        |channel| {
            let mut prg = Prg::from_os();
            let mut cot = IknpReceiver::setup(channel, &*base::default(), &mut prg).unwrap();
            let mut times = Vec::new();
            for _ in 0..executions {
                let start = Instant::now();
                semi_honest::evaluate(channel, &mut cot, function, &evaluator, to).unwrap();
                times.push(start.elapsed());
            }
            times
        },
    );
    // The first execution plans the circuit.
    report(name, function.plan(rows).ands() * rows as u64, times[1..].to_vec());
}

fn over_tcp<T: Send>(
    garbler: impl FnOnce(&mut Channel) + Send,
    evaluator: impl FnOnce(&mut Channel) -> T + Send,
) -> T {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let id = SessionId([7; 32]);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let (stream, _) = listener.accept().unwrap();
            let link = TcpLink::new(stream).unwrap();
            garbler(&mut Channel::new(Box::new(link), Party::First, id));
        });
        let link = TcpLink::new(TcpStream::connect(address).unwrap()).unwrap();
        evaluator(&mut Channel::new(Box::new(link), Party::Second, id))
    })
}

/// A stream of 32-bit multiplications, planned as it is garbled.
fn streamed(steps: u64) {
    let owners = [Owner::Garbler, Owner::Evaluator];
    let program = || {
        let shape = Shape { inputs: vec![32, 32], outputs: vec![32] };
        iterate("powers", shape, steps, |b: &mut Builder, state: &[Uint], inputs: &[Uint]| {
            vec![b.mul(&state[0], &inputs[1])]
        })
    };
    let (x, to) = ([BitVec::zeros(32)], OutputTo::Both);
    let start = Instant::now();
    memory::run(
        |channel| {
            let mut prg = Prg::from_os();
            let mut cot = IknpSender::setup(channel, &*base::default(), &mut prg).unwrap();
            semi_honest::garble_program(channel, &mut cot, program(), &owners, &x, to, &mut prg).unwrap();
        },
        |channel| {
            let mut cot = IknpReceiver::setup(channel, &*base::default(), &mut Prg::from_os()).unwrap();
            semi_honest::evaluate_program(channel, &mut cot, program(), &owners, &x, to).unwrap();
        },
    );
    report("yao, stream of mul32, planned on the fly", 993 * steps, vec![start.elapsed()]);
}

/// The word that lines must hold.
fn picked() -> Option<String> {
    std::env::args().skip(1).find(|argument| !argument.starts_with('-'))
}

fn main() {
    let one = copies(1, None);
    let mut b = Builder::new();
    let (x, y) = (b.input(4096), b.input(4096));
    let both = b.and_bits(&x, &y);
    let independent = b.finish(&[both]).unwrap();
    local("4,096 independent gates", &Plan::new(&independent, Order::Layered), &one, 200);
    let function = |name: &str| named::find(name).unwrap();
    for name in ["aes128", "sha256", "mul32"] {
        let circuit = function(name).circuit;
        let layered = Plan::new(&circuit, Order::Layered);
        local(&format!("one {name}"), &layered, &one, 100);
        let sequential = Plan::new(&circuit, Order::Sequential);
        local(&format!("40 copies of {name}"), &sequential, &copies(40, None), 4);
        local(&format!("16 rows of {name}"), &sequential, &copies(16, Some(Block::ONE)), 10);
    }
    if picked().is_some() {
        return;
    }
    let aes = Prepared::from_function(&function("aes128")).unwrap();
    protocol("yao, aes128 × 1000 over TCP", &aes, 1000, 6);
    protocol("yao, one aes128 over TCP", &aes, 1, 30);
    let start = Instant::now();
    let plan = Plan::new(aes.circuit(), Order::Layered);
    println!("planning aes128: {:.3} ms, {} slots", start.elapsed().as_secs_f64() * 1e3, plan.slots());
    streamed(3_000);
}
