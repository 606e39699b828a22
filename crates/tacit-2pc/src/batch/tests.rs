//! Rows side by side against plain evaluation, cut in every way; and peers that send something else.

mod fold;

use super::*;
use crate::circuit::{Builder, Circuit, FIRST_INPUT, Gate, Integer, Shape, evaluate};
use tacit_crypto::{Block, Prg};
use tacit_net::{Party, memory};
use tacit_ot::base;
use tacit_ot::extension::iknp::{IknpReceiver, IknpSender};

fn prg(seed: u128) -> Prg {
    Prg::from_seed(Block::new(seed))
}

fn streams(channel: &mut Channel) -> (IknpSender, IknpReceiver) {
    let (base, mut prg) = (base::default(), Prg::from_os());
    match channel.party() {
        Party::First => {
            let sender = IknpSender::setup(channel, &*base, &mut prg).unwrap();
            (sender, IknpReceiver::setup(channel, &*base, &mut prg).unwrap())
        }
        Party::Second => {
            let receiver = IknpReceiver::setup(channel, &*base, &mut prg).unwrap();
            (IknpSender::setup(channel, &*base, &mut prg).unwrap(), receiver)
        }
    }
}

/// A circuit of random gates of every kind, some of whose outputs are inputs, constants or the same wire.
fn random_circuit(seed: u128, gates: usize) -> Prepared {
    let mut prg = prg(seed);
    let mut below = |n: usize| (prg.block().low() % n as u64) as u32;
    let shape = Shape { inputs: vec![5, 70, 1, 9], outputs: vec![3, 66, 1] };
    let first = FIRST_INPUT as usize + shape.input_bits();
    let all: Vec<Gate> = (0..gates)
        .map(|i| {
            let (here, out) = (first + i, (first + i) as u32);
            // Near operands make the circuit deep, far ones keep wires alive.
            let near = |below: &mut dyn FnMut(usize) -> u32| here as u32 - 1 - below(here.min(12));
            let (a, b) = (near(&mut below), below(here));
            match below(5) {
                0 | 1 => Gate::And { a, b, out },
                2 => Gate::And { a, b: a, out },
                3 => Gate::Inv { a: b, out },
                _ => Gate::Xor { a, b, out },
            }
        })
        .collect();
    let outputs = (0..70).map(|_| below(first + gates)).collect();
    let circuit = Circuit::new(shape, all, outputs).unwrap();
    let owners = vec![Owner::Garbler, Owner::Evaluator, Owner::Evaluator, Owner::Garbler];
    Prepared::new(circuit, owners).unwrap()
}

fn inputs(function: &Prepared, owner: Owner, rows: usize, seed: u128) -> Vec<Vec<BitVec>> {
    let mut prg = prg(seed);
    let own = function.circuit().shape().inputs.iter().zip(function.owners());
    let widths: Vec<usize> = own.filter(|(_, o)| **o == owner).map(|(&width, _)| width as usize).collect();
    (0..rows).map(|_| widths.iter().map(|&width| BitVec::random(width, &mut prg)).collect()).collect()
}

fn plain(function: &Prepared, garbler: &[Vec<BitVec>], evaluator: &[Vec<BitVec>]) -> Vec<Vec<BitVec>> {
    let row = |(garbler, evaluator): (&Vec<BitVec>, &Vec<BitVec>)| {
        let (mut garbler, mut evaluator) = (garbler.iter(), evaluator.iter());
        let own = function.owners().iter().map(|owner| match owner {
            Owner::Garbler => garbler.next().unwrap().clone(),
            Owner::Evaluator => evaluator.next().unwrap().clone(),
        });
        evaluate(function.circuit(), &own.collect::<Vec<_>>())
    };
    garbler.iter().zip(evaluator).map(row).collect()
}

/// What both parties learn, with rows cut in that way.
fn both(
    function: &Prepared,
    [ours, theirs]: [&[Vec<BitVec>]; 2],
    to: OutputTo,
    cut: (usize, usize),
) -> [Option<Vec<Vec<BitVec>>>; 2] {
    let layout = Layout::new(function.plan(1), ours.len()).cut(cut.0, cut.1);
    let side = |role, rows: &[Vec<BitVec>], channel: &mut Channel| {
        let (mut sender, mut receiver) = streams(channel);
        let (mut done, streams) = (0, (&mut sender as &mut dyn CotSender, &mut receiver as _));
        let out =
            run_in(layout.clone(), channel, streams, function, role, rows, to, |more| done += more).unwrap();
        assert_eq!(done, rows.len());
        out
    };
    memory::run(
        |channel| side(Owner::Garbler, ours, channel),
        |channel| side(Owner::Evaluator, theirs, channel),
    )
    .into()
}

#[test]
fn random_circuits_give_the_plain_result_for_any_number_of_rows() {
    for (seed, rows) in [0, 1, 63, 64, 65, 1000].into_iter().enumerate() {
        let function = random_circuit(seed as u128, 300);
        let ours = inputs(&function, Owner::Garbler, rows, 1);
        let theirs = inputs(&function, Owner::Evaluator, rows, 2);
        let expected = plain(&function, &ours, &theirs);
        for to in [OutputTo::Garbler, OutputTo::Evaluator, OutputTo::Both] {
            let [garbler, evaluator] = both(&function, [&ours, &theirs], to, (1 << 16, 16));
            assert!(garbler == to.garbler().then(|| expected.clone()), "{rows} {to:?}");
            assert!(evaluator == to.evaluator().then(|| expected.clone()), "{rows} {to:?}");
        }
    }
}

#[test]
fn batches_and_groups_may_end_anywhere() {
    let function = random_circuit(9, 200);
    for (rows, cut) in [(130, (64, 1)), (130, (64, 2)), (65, (64, 8)), (200, (33, 2)), (7, (1, 3))] {
        let ours = inputs(&function, Owner::Garbler, rows, 1);
        let theirs = inputs(&function, Owner::Evaluator, rows, 2);
        let [garbler, evaluator] = both(&function, [&ours, &theirs], OutputTo::Both, cut);
        let expected = Some(plain(&function, &ours, &theirs));
        assert!(garbler == expected && evaluator == expected, "{rows} {cut:?}");
    }
}

/// More triples than a piece, so that they are made while messages are on their way.
#[test]
fn triples_run_out_in_the_middle_of_a_level() {
    let function = random_circuit(3, 400);
    let ands = function.circuit().stats().and as usize;
    let rows = 3 * triples::PIECE / ands / 2 + 77;
    let ours = inputs(&function, Owner::Garbler, rows, 1);
    let theirs = inputs(&function, Owner::Evaluator, rows, 2);
    let [garbler, evaluator] = both(&function, [&ours, &theirs], OutputTo::Both, (1 << 12, 3));
    let expected = Some(plain(&function, &ours, &theirs));
    assert!(garbler == expected && evaluator == expected);
}

/// All AND gates of a level go in one message, and a slot is given back after the last use of what it holds.
#[test]
fn levels_are_those_of_the_circuit_and_slots_are_used_again() {
    let mut b = Builder::new();
    let (x, y) = (b.input(64), b.input(64));
    let mut sum = b.add(&x, &y);
    (0..40).for_each(|_| sum = b.add(&sum, &y));
    let circuit = b.finish(&[sum]).unwrap();
    let (stats, wires) = (circuit.stats(), circuit.wires());
    let function = Prepared::new(circuit, vec![Owner::Garbler, Owner::Evaluator]).unwrap();
    let plan = function.plan(1);
    assert!(plan.slots() < wires / 4, "{} of {wires}", plan.slots());
    let layout = Layout::new(plan, 1 << 20);
    assert_eq!(layout.rounds(), u64::from(stats.and_depth) * (1u64 << 20).div_ceil(layout.group() as u64));
    let ands: usize = levels(plan).iter().map(|level| level.ands.len()).sum();
    assert_eq!(ands as u64, stats.and);
    // However many the rows, what is held of them is bounded.
    let huge = Layout::new(plan, 1 << 40);
    assert!(huge.bytes() <= 64 << 20 && huge.batch() == layout.batch(), "{huge:?}");
}

#[test]
fn a_message_is_two_bits_a_gate_and_row_and_its_head() {
    let function = random_circuit(5, 300);
    let sent = |rows: usize| {
        let ours = inputs(&function, Owner::Garbler, rows, 1);
        let theirs = inputs(&function, Owner::Evaluator, rows, 2);
        let layout = Layout::new(function.plan(1), rows);
        let side = |role, rows: &[Vec<BitVec>], channel: &mut Channel| {
            let (mut sender, mut receiver) = (Nothing, Nothing);
            let streams = (&mut sender as &mut dyn CotSender, &mut receiver as _);
            let before = channel.stats();
            run(channel, streams, &function, role, rows, OutputTo::Garbler, |_| ()).unwrap();
            let sent = channel.stats().since(&before);
            (sent.bytes_sent, layout.opened(role, OutputTo::Garbler, 70))
        };
        memory::run(
            |channel| side(Owner::Garbler, &ours, channel),
            |channel| side(Owner::Evaluator, &theirs, channel),
        )
    };
    for rows in [1, 64, 999] {
        let (garbler, evaluator) = sent(rows);
        for (sent, told) in [garbler, evaluator] {
            // Frames have heads of their own, one a message at least.
            assert!(sent >= told && sent < told + 49 + 600 * 4, "{rows}: {sent} {told}");
        }
    }
}

/// Correlated OT of nothing: triples of zeros, which multiply as well.
struct Nothing;

impl CotSender for Nothing {
    fn delta(&self) -> Block {
        Block::ONE
    }
    fn extend(&mut self, _: &mut Channel, out: &mut [Block]) -> tacit_ot::Result<()> {
        out.fill(Block::ZERO);
        Ok(())
    }
}

impl CotReceiver for Nothing {
    fn extend(&mut self, _: &mut Channel, out: &mut [Block]) -> tacit_ot::Result<()> {
        out.fill(Block::ZERO);
        Ok(())
    }
}

/// What an honest garbler makes of a peer that agrees on terms, sends `messages`, and then leaves or waits.
fn against(function: &Prepared, rows: usize, messages: &[u8], leaves: bool) -> Error {
    let ours = inputs(function, Owner::Garbler, rows, 1);
    let (ended, _) = memory::run(
        |channel| {
            let (mut sender, mut receiver) = (Nothing, Nothing);
            let streams = (&mut sender as &mut dyn CotSender, &mut receiver as _);
            run(channel, streams, function, Owner::Garbler, &ours, OutputTo::Both, |_| ()).unwrap_err()
        },
        |channel| {
            let (shape, owners) = (function.circuit().shape(), function.owners());
            let terms =
                Terms { function: &function.digest(), shape, owners, output_to: OutputTo::Both, rows };
            agree_for(&BATCH_TERMS, channel, Owner::Evaluator, &terms).unwrap();
            channel.send(messages).unwrap();
            channel.flush().unwrap();
            while !leaves && channel.recv(&mut [0]).is_ok() {}
        },
    );
    ended
}

#[test]
fn messages_that_are_too_short_too_long_or_of_another_level_end_the_run() {
    let mut b = Builder::new();
    let (x, y) = (b.input(4), b.input(4));
    let product = b.mul(&x, &y);
    let circuit = b.finish(&[product.resize(4)]).unwrap();
    let function = Prepared::new(circuit, vec![Owner::Garbler, Owner::Evaluator]).unwrap();
    let first = levels(function.plan(1)).iter().find(|level| !level.ands.is_empty()).unwrap().ands.len();
    let half = (first * 10).div_ceil(8);
    let head = |batch: u64, level: u64| (batch << 32 | level).to_le_bytes();
    let honest = [&head(0, 0)[..], &vec![0; 2 * half]].concat();
    // Nothing, half a head, half a message.
    for length in [0, 5, 8, 8 + half, 8 + 2 * half - 1] {
        let error = against(&function, 10, &honest[..length], true);
        assert!(matches!(error, Error::Net(_)), "{length}: {error}");
    }
    for wrong in [
        // Of a later level, of another batch, of the outputs.
        [&head(0, 1)[..], &honest[8..]].concat(),
        [&head(1, 0)[..], &honest[8..]].concat(),
        [&head(0, u64::from(OUTPUTS))[..], &honest[8..]].concat(),
        // A byte more, and the level twice.
        [&honest[..], &[7], &head(0, 1), &[0; 64]].concat(),
        [&honest[..], &honest, &[0; 64]].concat(),
    ] {
        let error = against(&function, 10, &wrong, false);
        assert!(matches!(error, Error::Mismatch { protocol: PROTOCOL, .. }), "{error}");
        assert!(error.to_string().contains("gates are opened next"), "{error}");
    }
}

#[test]
fn terms_and_inputs_that_differ_are_refused() {
    let (one, other) = (random_circuit(1, 50), random_circuit(2, 50));
    let refused = |functions: [&Prepared; 2], roles: [Owner; 2], tos: [OutputTo; 2], rows: [usize; 2]| {
        let side = |at: usize, channel: &mut Channel| {
            let (mut sender, mut receiver) = (Nothing, Nothing);
            let streams = (&mut sender as &mut dyn CotSender, &mut receiver as _);
            let own = inputs(functions[at], roles[at], rows[at], 1);
            run(channel, streams, functions[at], roles[at], &own, tos[at], |_| ()).unwrap_err().to_string()
        };
        let (one, two) = memory::run(|channel| side(0, channel), |channel| side(1, channel));
        assert_eq!(one, two);
        one
    };
    let roles = [Owner::Garbler, Owner::Evaluator];
    let tos = [OutputTo::Both; 2];
    assert!(refused([&one, &other], roles, tos, [3, 3]).contains("the function"));
    assert!(refused([&one, &one], [Owner::Garbler; 2], tos, [3, 3]).contains("who garbles"));
    assert!(refused([&one, &one], roles, [OutputTo::Both, OutputTo::Garbler], [3, 3]).contains("outputs"));
    assert!(refused([&one, &one], roles, tos, [3, 4]).contains("sizes"));
    let (mut channel, _other) = memory::pair();
    let short = vec![vec![BitVec::zeros(5)]];
    let streams = (&mut Nothing as &mut dyn CotSender, &mut Nothing as &mut dyn CotReceiver);
    let error = run(&mut channel, streams, &one, Owner::Garbler, &short, OutputTo::Both, |_| ());
    assert!(matches!(error, Err(Error::Usage { .. })));
}
