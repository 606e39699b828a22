use super::super::buckets::Level;
use super::super::stretch::{OfCircuit, Source};
use super::*;
use crate::circuit::{Builder, Uint};

#[test]
fn functions_give_what_their_circuits_say_to_whom_they_should() {
    for (name, seed) in [("add8", 1), ("add8", 2), ("add32", 3)] {
        let function = prepared(name);
        let (inputs, outputs) = example(&function, seed);
        for output_to in [OutputTo::Garbler, OutputTo::Evaluator, OutputTo::Both] {
            let [one, two] = run(&function, output_to, &inputs, seed, [None, None]).map(Result::unwrap);
            assert_eq!(one, output_to.garbler().then(|| outputs.clone()), "{name} {output_to:?}");
            assert_eq!(two, output_to.evaluator().then(|| outputs.clone()), "{name} {output_to:?}");
        }
    }
}

#[test]
fn many_rows_run_over_one_session_and_take_fewer_bytes_than_alone() {
    let function = prepared("add8");
    let rows: Vec<([BitVec; 2], BitVec)> = (0..20).map(|seed| example(&function, seed)).collect();
    let side = |channel: &mut Channel, role: Owner| {
        let mut session = session(channel, role, 1);
        let inputs: Vec<BitVec> =
            rows.iter().map(|(inputs, _)| inputs[(role == Owner::Evaluator) as usize].clone()).collect();
        let start = channel.stats().bytes_sent;
        let (mut done, mut first) = (0, None);
        for part in [&inputs[..1], &inputs[1..]] {
            let outputs =
                session.run_rows(channel, &function, OutputTo::Both, part, || done += 1).unwrap().unwrap();
            for (output, (_, expected)) in outputs.iter().zip(&rows[done - part.len()..]) {
                assert_eq!(output, expected);
            }
            first.get_or_insert(channel.stats().bytes_sent - start);
        }
        assert_eq!(done, 20);
        let one = first.unwrap();
        let rest = channel.stats().bytes_sent - start - one;
        assert!(rest < 3 * one, "19 rows take {rest} bytes, one {one}");
    };
    memory::run(|channel| side(channel, Owner::Garbler), |channel| side(channel, Owner::Evaluator));
}

/// Rows side by side: of several batches of tables, of several to a batch, without gates, and of one party's
/// inputs alone, to either side.
#[test]
fn rows_side_by_side_give_what_each_gives_alone() {
    let owners = |first| vec![first, Owner::Evaluator];
    let circuit = |f: &dyn Fn(&mut Builder, &Uint, &Uint) -> Vec<Uint>| {
        let mut builder = Builder::new();
        let (x, y): (Uint, Uint) = (builder.input(32), builder.input(32));
        let outputs = f(&mut builder, &x, &y);
        builder.finish(&outputs).unwrap()
    };
    let products = circuit(&|b, x, y| vec![(0..3).fold(x.clone(), |value, _| b.mul(&value, y)), x.clone()]);
    let sums = circuit(&|b, x, y| vec![b.add(x, y)]);
    let without_gates = circuit(&|b, x, y| vec![b.xor_bits(x, y), y.clone()]);
    let passed_on = circuit(&|_, x, y| vec![y.clone(), x.clone()]);
    for (circuit, first, count, output_to) in [
        (&products, Owner::Garbler, 3, OutputTo::Both),
        (&sums, Owner::Garbler, 200, OutputTo::Garbler),
        (&sums, Owner::Evaluator, 70, OutputTo::Evaluator),
        (&without_gates, Owner::Garbler, 4, OutputTo::Both),
        (&passed_on, Owner::Garbler, 2, OutputTo::Both),
    ] {
        let function = Prepared::new(circuit.clone(), owners(first)).unwrap();
        let rows: Vec<([BitVec; 2], BitVec)> = (0..count).map(|seed| example(&function, seed)).collect();
        let side = |channel: &mut Channel, role: Owner| {
            let inputs: Vec<BitVec> =
                rows.iter().map(|(inputs, _)| inputs[(role == Owner::Evaluator) as usize].clone()).collect();
            let (mut session, mut done) = (session(channel, role, 1), 0);
            let outputs = session.run_rows(channel, &function, output_to, &inputs, || done += 1).unwrap();
            assert_eq!(done, count);
            outputs
        };
        let (one, two) =
            memory::run(|channel| side(channel, Owner::Garbler), |channel| side(channel, Owner::Evaluator));
        let expected = || rows.iter().map(|(_, outputs)| outputs.clone()).collect::<Vec<_>>();
        assert_eq!(one, output_to.garbler().then(expected));
        assert_eq!(two, output_to.evaluator().then(expected));
    }
}

/// A line's delay is seen once for all rows that go side by side.
#[test]
fn rows_share_their_round_trips() {
    let function = prepared("add8");
    let one = |rows: usize| {
        let inputs = vec![BitVec::zeros(8); rows];
        let side = |channel: &mut Channel, role: Owner| {
            let mut session = session(channel, role, 1);
            let before = channel.stats().rounds;
            session.run_rows(channel, &function, OutputTo::Both, &inputs, || ()).unwrap();
            channel.stats().rounds - before
        };
        memory::run(|channel| side(channel, Owner::Garbler), |channel| side(channel, Owner::Evaluator))
    };
    assert_eq!(one(1), one(50));
}

#[test]
fn a_function_without_gates_or_without_a_partys_inputs_runs() {
    let mut builder = Builder::new();
    let (x, y): (Uint, Uint) = (builder.input(3), builder.input(3));
    let xor = builder.xor_bits(&x, &y);
    let circuit = builder.finish(&[xor, x]).unwrap();
    let function = Prepared::new(circuit, vec![Owner::Garbler; 2]).unwrap();
    let (inputs, outputs) = example(&function, 2);
    let results = run(&function, OutputTo::Both, &inputs, 2, [None, None]);
    for result in results {
        assert_eq!(result.unwrap(), Some(outputs.clone()));
    }
}

#[test]
fn more_is_on_the_way_over_a_line_with_delay_and_the_same_is_sent() {
    let mut builder = Builder::new();
    let (x, y): (Uint, Uint) = (builder.input(32), builder.input(32));
    let value = (0..100).fold(x, |value, _| builder.mul(&value, &y));
    let owners = vec![Owner::Garbler, Owner::Evaluator];
    let function = Prepared::new(builder.finish(&[value]).unwrap(), owners).unwrap();
    let (inputs, outputs) = example(&function, 4);
    let side = |channel: &mut Channel, role: Owner| {
        let mut session = session(channel, role, 4);
        let input = &inputs[(role == Owner::Evaluator) as usize];
        let output = session.run(channel, &function, OutputTo::Both, input).unwrap();
        assert_eq!(output.as_ref(), Some(&outputs));
        channel.stats().bytes_sent
    };
    let [near, far] = [0, 8].map(|ms| {
        let link = tacit_net::LinkModel::new(10_000.0, std::time::Duration::from_millis(ms)).unwrap();
        let one = |channel: &mut Channel| side(channel, Owner::Garbler);
        memory::run_over(link, one, |channel| side(channel, Owner::Evaluator))
    });
    assert_eq!(near, far);
}

#[test]
fn a_circuit_of_more_than_a_window_runs_in_even_stretches() {
    let mut builder = Builder::new();
    let (x, y): (Uint, Uint) = (builder.input(32), builder.input(32));
    let value = (0..860).fold(x, |value, _| builder.mul(&value, &y));
    let owners = vec![Owner::Garbler, Owner::Evaluator];
    let function = Prepared::new(builder.finish(&[value]).unwrap(), owners).unwrap();
    let mut source = OfCircuit::new(&function, Level::ALONE);
    let mut stretches = Vec::new();
    while source.advance() {
        stretches.push(source.stretch().ands());
    }
    assert_eq!(stretches.iter().sum::<usize>() as u64, function.plan(1).ands());
    assert!(stretches.len() == 2 && stretches.iter().all(|&ands| ands > 400_000), "{stretches:?}");
    let (inputs, outputs) = example(&function, 6);
    for result in run(&function, OutputTo::Both, &inputs, 6, [None, None]) {
        assert_eq!(result.unwrap(), Some(outputs.clone()));
    }
}

#[test]
fn a_session_among_several_has_wider_messages_and_the_same_outputs() {
    let function = prepared("add8");
    let (inputs, outputs) = example(&function, 8);
    let of = |levels: [Level; 2]| {
        let party = |channel: &mut Channel, role: Owner| {
            let input = &inputs[(role == Owner::Evaluator) as usize];
            let level = levels[(role == Owner::Evaluator) as usize];
            let output = session(channel, role, 8).at(level).run(channel, &function, OutputTo::Both, input);
            (output, channel.stats().bytes_sent)
        };
        memory::run(|channel| party(channel, Owner::Garbler), |channel| party(channel, Owner::Evaluator))
    };
    let mut last = 0;
    for (sessions, bits) in [(1, 44), (2, 48), (20, 52), (300, 56), (5000, 60), (1 << 19, 64)] {
        let level = Level::among(sessions);
        assert_eq!(level.message_bits(), bits);
        let ((one, sent), (two, _)) = of([level; 2]);
        assert_eq!((one.unwrap(), two.unwrap()), (Some(outputs.clone()), Some(outputs.clone())));
        assert!(sent > last, "{sessions} sessions: {sent} bytes");
        last = sent;
    }
    let ((one, _), (two, _)) = of([Level::among(3), Level::among(2)]);
    assert!([one, two].iter().all(|result| matches!(result, Err(Error::Mismatch { .. }))));
}

#[test]
fn over_a_long_line_large_windows_have_a_check_less() {
    let mut builder = Builder::new();
    let (x, y): (Uint, Uint) = (builder.input(32), builder.input(32));
    let value = (0..480).fold(x, |value, _| builder.mul(&value, &y));
    let owners = vec![Owner::Garbler, Owner::Evaluator];
    let function = Prepared::new(builder.finish(&[value]).unwrap(), owners).unwrap();
    let (inputs, outputs) = example(&function, 7);
    let far = tacit_net::LinkModel::new(100.0, std::time::Duration::from_millis(20)).unwrap();
    let side = |channel: &mut Channel, role: Owner, link: &tacit_net::LinkModel| {
        let input = &inputs[(role == Owner::Evaluator) as usize];
        let seen = std::rc::Rc::new(std::cell::Cell::new(0));
        let script = Checks(seen.clone());
        let mut session = session(channel, role, 4).over(link);
        let run = || session.run(channel, &function, OutputTo::Both, input);
        (scripted(Some(Box::new(script)), run), seen.get())
    };
    let loopback = tacit_net::LinkModel::LOOPBACK;
    for (link, checks) in [(loopback, 2), (far, 1)] {
        let (one, two) = memory::run(
            |channel| side(channel, Owner::Garbler, &link),
            |channel| side(channel, Owner::Evaluator, &link),
        );
        for (output, seen) in [one, two] {
            assert_eq!((output.unwrap(), seen), (Some(outputs.clone()), checks));
        }
    }
    let (one, two) = memory::run(
        |channel| side(channel, Owner::Garbler, &far).0,
        |channel| side(channel, Owner::Evaluator, &loopback).0,
    );
    assert!([one, two].iter().all(|result| matches!(result, Err(Error::Mismatch { .. }))));
}

/// Counts the checks of triples.
struct Checks(std::rc::Rc<std::cell::Cell<usize>>);

impl Script for Checks {
    fn alike(&mut self, _: &mut [u8; 32]) {
        self.0.set(self.0.get() + 1);
    }
    fn checked(&mut self, _: &mut bool) {}
}

/// A program of `steps` products of 16 bits, on stretches of it.
fn powers(steps: u64) -> impl crate::circuit::Program + use<> {
    let shape = crate::circuit::Shape { inputs: vec![16, 16], outputs: vec![16, 16] };
    crate::circuit::iterate("powers", shape, steps, |b, state, _| {
        let product = b.mul(&state[0], &state[1]);
        vec![product, b.add(&state[1], &state[0])]
    })
}

/// Runs `steps` products as a program on both sides: what each party gets, and the AND gates that were done
/// after each stretch.
pub(super) fn run_program(
    steps: u64,
    output_to: OutputTo,
    seed: u64,
    [one, two]: [Scripts; 2],
) -> [(Result<Option<BitVec>>, Vec<u64>); 2] {
    let inputs = program_inputs(seed);
    let owners = [Owner::Garbler, Owner::Evaluator];
    let party = |channel: &mut Channel, role: Owner, script: Scripts| {
        let mut session = session(channel, role, seed);
        let (mut done, input) = (Vec::new(), &inputs[(role == Owner::Evaluator) as usize]);
        let output = scripted(script.map(|script| script as Box<dyn Script>), || {
            session.run_program(channel, powers(steps), &owners, output_to, input, |ands| done.push(ands))
        });
        (output, done)
    };
    let (one, two) = memory::run(
        |channel| party(channel, Owner::Garbler, one),
        |channel| party(channel, Owner::Evaluator, two),
    );
    [one, two]
}

fn program_inputs(seed: u64) -> [BitVec; 2] {
    let mut prg = Prg::from_seed(Block::from_halves(seed, 9));
    [BitVec::random(16, &mut prg), BitVec::random(16, &mut prg)]
}

/// What the program gives, in the clear.
fn expected_powers(steps: u64, seed: u64) -> BitVec {
    let [x, y] =
        program_inputs(seed).map(|bits| u16::from_le_bytes([bits.as_bytes()[0], bits.as_bytes()[1]]));
    let (x, y) = (0..steps).fold((x, y), |(x, y), _| (x.wrapping_mul(y), x.wrapping_add(y)));
    BitVec::from_bytes(&[x.to_le_bytes(), y.to_le_bytes()].concat(), 32)
}

/// Refused before anything is made, so that the session serves on.
#[test]
fn a_program_with_another_number_of_input_bits_does_not_begin() {
    let owners = [Owner::Garbler, Owner::Evaluator];
    let inputs = program_inputs(9);
    let party = |channel: &mut Channel, role: Owner| {
        let mut session = session(channel, role, 9);
        for bits in [0, 15, 32] {
            let input = BitVec::zeros(bits);
            let result = session.run_program(channel, powers(3), &owners, OutputTo::Both, &input, |_| ());
            assert!(matches!(result, Err(Error::Usage { .. })), "{bits}: {result:?}");
        }
        let input = &inputs[(role == Owner::Evaluator) as usize];
        session.run_program(channel, powers(3), &owners, OutputTo::Both, input, |_| ())
    };
    let (one, two) =
        memory::run(|channel| party(channel, Owner::Garbler), |channel| party(channel, Owner::Evaluator));
    for output in [one, two] {
        assert_eq!(output.unwrap().unwrap(), expected_powers(3, 9));
    }
}

#[test]
fn programs_run_stretch_by_stretch_and_give_what_they_say() {
    for (steps, stretches, output_to) in
        [(0, 1, OutputTo::Both), (3, 1, OutputTo::Garbler), (2200, 2, OutputTo::Evaluator)]
    {
        let [one, two] = run_program(steps, output_to, steps + 1, [None, None]);
        assert_eq!(one.1, two.1);
        let ([one, two], done) = ([one.0.unwrap(), two.0.unwrap()], one.1);
        let expected = expected_powers(steps, steps + 1);
        assert_eq!(one, output_to.garbler().then(|| expected.clone()), "{steps} steps");
        assert_eq!(two, output_to.evaluator().then(|| expected.clone()), "{steps} steps");
        assert_eq!(done.len(), stretches, "{done:?}");
    }
}
