//! Bristol files, streams and plans: the same function whatever form it takes.

use proptest::prelude::*;
use tacit_2pc::circuit::bristol::{self, Bits, Format};
use tacit_2pc::circuit::{
    Builder, Circuit, FIRST_INPUT, Integer, Order, Plan, Program, ProgramPlan, Repeat, Shape, Uint, Window,
    evaluate_words, iterate, named,
};
use tacit_crypto::{Block, Prg};

fn inputs_of(circuit: &Circuit, prg: &mut Prg) -> Vec<[u64; 2]> {
    (0..circuit.shape().input_bits()).map(|_| [prg.u64(), prg.u64()]).collect()
}

/// Executes windows on plain words, checking that ANDs of a step are independent and that results miss
/// operands.
struct Machine(Vec<[u64; 2]>);

impl Machine {
    fn new(inputs: &[[u64; 2]]) -> Machine {
        let mut slots = vec![[0; 2], [u64::MAX; 2]];
        slots.extend_from_slice(inputs);
        Machine(slots)
    }

    fn run(&mut self, window: &Window, pieces: usize) {
        self.0.resize(self.0.len().max(window.slots()), [0; 2]);
        let mut ands = 0;
        for piece in window.pieces(pieces) {
            let mut ops = piece.ops.iter();
            for step in piece.steps {
                for op in ops.by_ref().take(step.xors as usize) {
                    assert!(op.out != op.a && op.out != op.b);
                    let (a, b) = (self.0[op.a as usize], self.0[op.b as usize]);
                    self.0[op.out as usize] = [a[0] ^ b[0], a[1] ^ b[1]];
                }
                let batch: Vec<_> = ops.by_ref().take(step.ands as usize).collect();
                // All operands are read before any result is written.
                let results: Vec<[u64; 2]> = batch
                    .iter()
                    .map(|op| [0, 1].map(|w| self.0[op.a as usize][w] & self.0[op.b as usize][w]))
                    .collect();
                let written: std::collections::HashSet<u32> = batch.iter().map(|op| op.out).collect();
                assert_eq!(written.len(), batch.len());
                for (op, result) in batch.iter().zip(results) {
                    assert!(!written.contains(&op.a) && !written.contains(&op.b));
                    self.0[op.out as usize] = result;
                }
            }
            assert!(ops.next().is_none());
            ands += piece.ands as u64;
        }
        assert_eq!(ands, window.ands());
    }
}

fn check_plan(circuit: &Circuit, order: Order) {
    let plan = Plan::new(circuit, order);
    assert_eq!(plan.ands(), circuit.stats().and);
    let mut prg = Prg::from_seed(Block::new(9));
    let inputs = inputs_of(circuit, &mut prg);
    let mut machine = Machine::new(&inputs);
    for window in plan.windows() {
        machine.run(window, 100);
    }
    let got: Vec<[u64; 2]> = plan.outputs().iter().map(|&s| machine.0[s as usize]).collect();
    assert!(got == evaluate_words(circuit, &inputs), "{order:?} of {circuit:?}");
}

#[test]
fn plans_compute_what_the_circuit_computes_in_few_slots() {
    for name in ["aes128", "sha256", "add32", "mul64", "sort8", "millionaires1", "div16", "hamming100"] {
        let circuit = named::find(name).unwrap().circuit;
        check_plan(&circuit, Order::Layered);
        check_plan(&circuit, Order::Sequential);
    }
    let sha = named::find("sha256").unwrap().circuit;
    assert!(Plan::new(&sha, Order::Sequential).slots() < 3_000, "a long circuit needs few live wires");
    let aes = Plan::new(&named::find("aes128").unwrap().circuit, Order::Layered);
    let steps: usize = aes.windows().iter().map(|w| w.whole().steps.len()).sum();
    assert!(steps < 100, "AES-128 in layers: {steps} steps");
}

#[test]
fn circuits_of_many_windows_are_planned_in_a_stream() {
    let circuit = named::find("mulwide512").unwrap().circuit;
    assert!(circuit.gates().len() > 1 << 19);
    check_plan(&circuit, Order::Layered);
    let plan = Plan::new(&circuit, Order::Layered);
    assert!(plan.windows().len() > 2 && plan.slots() < circuit.wires() / 2);
}

#[test]
fn odd_circuits_are_planned() {
    // Outputs that are inputs, constants, repeated, negated; gates on equal operands; unused gates.
    let text = "6 8\n1 2\n2 3 2\n\n1 1 0 2 INV\n2 1 0 0 XOR 3\n";
    assert!(bristol::read(text).is_err());
    let text = "7 9\n1 2\n2 3 1\n1 1 1 2 EQ\n2 1 0 0 3 XOR\n2 1 1 1 4 AND\n2 1 0 1 5 AND\n1 1 4 6 EQW\n1 1 2 7 EQW\n1 1 3 8 INV\n";
    let circuit = bristol::read(text).unwrap();
    let out = evaluate_words(&circuit, &[[0b0011], [0b0101]]);
    let low: Vec<u64> = out.iter().map(|w| w[0] & 15).collect();
    assert_eq!(low, [0b0001, 0b0101, 0b1111, 0b1111]);
    check_plan(&circuit, Order::Layered);
    check_plan(&circuit, Order::Sequential);
}

#[test]
fn bristol_files_survive_a_round_trip() {
    let mut prg = Prg::from_seed(Block::new(5));
    for name in ["aes128", "add32", "sort4", "eq1", "keccak-f"] {
        let circuit = named::find(name).unwrap().circuit;
        for format in [Format::Old, Format::Fashion] {
            let text = bristol::write(&circuit, format).unwrap();
            let again = bristol::read(&text).unwrap();
            assert_eq!(again.stats().and, circuit.stats().and);
            let inputs = inputs_of(&circuit, &mut prg);
            assert!(
                evaluate_words(&again, &inputs) == evaluate_words(&circuit, &inputs),
                "{name} {format:?}"
            );
            if format == Format::Fashion {
                assert_eq!(again.shape(), circuit.shape());
                assert_eq!(again.digest(), bristol::read(&text).unwrap().digest());
            }
        }
    }
}

#[test]
fn both_formats_read_the_same_adder() {
    // One full adder bit: sum and carry of two bits.
    let old = "2 4\n1 1 2\n\n2 1 0 1 2 XOR\n2 1 1 0 3 AND\n";
    let fashion = "2 4\n2 1 1\n1 2\n\n2 1 0 1 2 XOR\n2 1 1 0 3 AND\n";
    let multiple = "2 4\n2 1 1\n1 2\n\n2 1 0 1 2 XOR\n2 1 1 0 3 MAND\n";
    let (old, fashion) = (bristol::read(old).unwrap(), bristol::read(fashion).unwrap());
    assert_eq!(old.digest(), fashion.digest());
    assert_eq!(old.digest(), bristol::read(multiple).unwrap().digest());
    let other = bristol::read("2 4\n2 1 1\n1 2\n\n2 1 0 1 2 XOR\n2 1 0 0 3 AND\n").unwrap();
    assert_ne!(old.digest(), other.digest());
}

/// All that other people's tools write has one meaning here: every gate, names in either case, comments, a mark
/// before the first line, outputs that are inputs.
#[test]
fn gates_of_every_kind_are_read_with_comments_and_in_either_case() {
    type Table = [u64; 4];
    let kinds: [(&str, Table); 6] = [
        ("or", [0, 1, 1, 1]),
        ("NOR", [1, 0, 0, 0]),
        ("Nand", [1, 1, 1, 0]),
        ("AND", [0, 0, 0, 1]),
        ("xor", [0, 1, 1, 0]),
        ("XNOR", [1, 0, 0, 1]),
    ];
    for (kind, table) in kinds {
        for text in [
            format!("1 3\n1 1 1\n2 1 0 1 2 {kind}\n"),
            format!(
                "\u{feff}# made by hand\r\n1 3 // gates, wires\r\n2 1 1\r\n1 1\r\n\r\n2 1 0 1 2 {kind} # the gate\r\n"
            ),
        ] {
            let circuit = bristol::read(&text).unwrap();
            let out = evaluate_words(&circuit, &[[0b0101], [0b0011]]);
            let bits: Vec<u64> = (0..4).map(|row| out[0][0] >> row & 1).collect();
            // Columns of the table by (first, second) input: rows 0 to 3 are (1, 1), (0, 1), (1, 0), (0, 0).
            assert_eq!(bits, [table[3], table[1], table[2], table[0]], "{text}");
        }
    }
    for text in ["0 2\n1 2\n1 2\n", "0 2\n2 0 2\n", "0 2 # no gate\n1 1 2\n"] {
        let circuit = bristol::read(text).unwrap();
        let words = [[5], [6]];
        assert_eq!(evaluate_words(&circuit, &words), words, "{text}");
    }
}

/// Each value is turned round by itself, what goes in and what comes out.
#[test]
fn bits_of_a_file_may_begin_with_the_highest() {
    let mut prg = Prg::from_seed(Block::new(6));
    for name in ["aes128", "sub32", "checked-add8"] {
        let circuit = named::find(name).unwrap().circuit;
        let text = bristol::write(&circuit, Format::Fashion).unwrap();
        let reversed = bristol::read_with(&text, Bits::Reversed).unwrap();
        assert_eq!(reversed.shape(), circuit.shape());
        assert_ne!(reversed.digest(), circuit.digest());
        let inputs = inputs_of(&circuit, &mut prg);
        let turned = |words: &[[u64; 2]], widths: &[u32]| {
            let mut rest = words;
            let mut all = Vec::new();
            for &width in widths {
                let (value, behind) = rest.split_at(width as usize);
                all.extend(value.iter().rev().copied());
                rest = behind;
            }
            all
        };
        let shape = circuit.shape();
        let out = evaluate_words(&reversed, &turned(&inputs, &shape.inputs));
        assert_eq!(turned(&out, &shape.outputs), evaluate_words(&circuit, &inputs), "{name}");
    }
}

#[test]
fn wrong_files_are_refused_with_the_line() {
    let cases = [
        ("", 1),
        ("1 3", 1),
        ("x 3\n1 1 1\n2 1 0 1 2 AND", 1),
        ("1\n1 1 1\n2 1 0 1 2 AND", 1),
        ("1 3\n1 1\n2 1 0 1 2 AND", 2),
        ("1 3\n1 1 1\n2 1 0 1 2 IMPLIES", 3),
        ("1 3\n1 1 1\n2 1 0 3 2 AND", 3),
        ("1 3\n1 1 1\n2 1 0 2 2 AND", 3),
        ("1 3\n1 1 1\n2 1 0 1 1 AND", 3),
        ("1 3\n1 1 1\n2 1 0 1 AND", 3),
        ("1 3\n1 1 1\n1 1 0 1 2 AND", 3),
        ("1 3\n1 1 1\nAND", 3),
        ("1 3\n1 1 1\n2 1 0 1 2 AND\n2 1 0 1 2 AND", 4),
        ("2 4\n1 1 1\n2 1 0 1 2 AND\n", 3),
        ("1 3\n3 1 1\n1 1\n2 1 0 1 2 AND", 2),
        ("1 4000000000\n1 1 1\n2 1 0 1 2 AND", 1),
        ("4000000000 3\n1 1 1\n2 1 0 1 2 AND", 1),
        ("1 4294967295\n4000000000 1 1\n2 1 0 1 2 AND", 2),
        ("1 3\n1 1 4\n2 1 0 1 2 AND", 1),
        ("1 3\n2 1 1\n1 1\n1 1 2 2 EQ", 4),
        ("1 99999999999999999999\n1 1 1\n2 1 0 1 2 AND", 1),
    ];
    for (text, line) in cases {
        let error = bristol::read(text).map(|_| ()).unwrap_err();
        assert_eq!(error.line, line, "{text:?}: {error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 250, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn mutated_files_never_panic(edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..4u8), 1..6)) {
        let circuit = named::find("add8").unwrap().circuit;
        let format = if edits.len() % 2 == 0 { Format::Old } else { Format::Fashion };
        let mut bytes = bristol::write(&circuit, format).unwrap().into_bytes();
        for (at, byte, kind) in edits {
            if bytes.is_empty() {
                break;
            }
            let at = at.index(bytes.len());
            match kind {
                0 => bytes[at] = byte,
                1 => bytes.insert(at, b"0123456789 \n"[byte as usize % 12]),
                2 => { bytes.remove(at); }
                _ => bytes.truncate(at.max(1)),
            }
        }
        let text = String::from_utf8_lossy(&bytes);
        match bristol::read(&text) {
            Ok(circuit) => {
                let inputs = vec![[0u64; 1]; circuit.shape().input_bits()];
                prop_assert_eq!(evaluate_words(&circuit, &inputs).len(), circuit.shape().output_bits());
                check_plan(&circuit, Order::Layered);
            }
            Err(error) => prop_assert!(error.line >= 1 && error.line <= text.lines().count().max(1)),
        }
    }

    #[test]
    fn random_circuits_are_planned_right(seed: u64, inputs in 1..6u32, gates in 1..120usize) {
        let mut prg = Prg::from_seed(Block::new(seed.into()));
        let mut builder = Builder::new();
        let mut bits = builder.input(inputs).bits().to_vec();
        for _ in 0..gates {
            let a = bits[prg.below(bits.len() as u64) as usize];
            let b = bits[prg.below(bits.len() as u64) as usize];
            let (a, b) = (if prg.bit() { !a } else { a }, if prg.bit() { !b } else { b });
            bits.push(if prg.bit() { builder.and(a, b) } else { builder.xor(a, b) });
        }
        let outputs: Vec<_> = (0..4).map(|_| bits[prg.below(bits.len() as u64) as usize]).collect();
        let circuit = builder.finish(&[Uint::from_bits(outputs)]).unwrap();
        check_plan(&circuit, Order::Layered);
        check_plan(&circuit, Order::Sequential);
        let words = inputs_of(&circuit, &mut prg);
        let again = bristol::read(&bristol::write(&circuit, Format::Fashion).unwrap()).unwrap();
        prop_assert_eq!(evaluate_words(&again, &words), evaluate_words(&circuit, &words));
    }
}

/// x ← x·(x + y) + i, again and again.
fn mixing(count: u64) -> impl Program {
    let shape = Shape { inputs: vec![32, 32], outputs: vec![32, 32] };
    Repeat::new("mixing", shape, count, |b: &mut Builder, i, state: &[Uint], inputs: &[Uint]| {
        let sum = b.add(&state[0], &inputs[1]);
        let product = b.mul(&state[0], &sum);
        let shifted = b.add(&product, &Uint::constant(i as i128, 32));
        vec![shifted, b.not_bits(&state[0])]
    })
}

/// Of (x, y, z) with inputs (a, b, c): the product and sum of a part, a negation, an old value, a constant,
/// and parts of an input.
fn turned(b: &mut Builder, state: &[Uint], inputs: &[Uint]) -> Vec<Uint> {
    let (x, y, z) = (&state[0], &state[1], &state[2]);
    let sum = b.region(|b| b.add(x, y));
    let product = b.mul(&sum, z);
    let rest = Uint::concat(&inputs[1].slice(0..20), &Uint::constant(0b1_0110, 12));
    vec![b.xor_bits(&product, &rest), b.not_bits(x), Uint::concat(&y.slice(16..32), &inputs[2].slice(0..16))]
}

#[test]
fn an_iteration_planned_once_computes_what_its_body_does() {
    let shape = || Shape { inputs: vec![32; 3], outputs: vec![32; 3] };
    let mut prg = Prg::from_seed(Block::new(12));
    let bits: Vec<[u64; 2]> = (0..96).map(|_| [prg.u64(), prg.u64()]).collect();
    for count in [0, 1, 2, 3, 60] {
        let body = |b: &mut Builder, _: u64, state: &[Uint], inputs: &[Uint]| turned(b, state, inputs);
        let each_time = ProgramPlan::new(Repeat::new("turned", shape(), count, body), Order::Layered)
            .evaluate_words(&bits);
        let once = || iterate("turned", shape(), count, turned);
        assert!(ProgramPlan::new(once(), Order::Layered).evaluate_words(&bits) == each_time, "{count} times");
        for order in [Order::Layered, Order::Sequential] {
            let mut plan = ProgramPlan::new(once(), order);
            let mut machine = Machine::new(&bits);
            while let Some(window) = plan.next_window() {
                machine.run(window, 300);
            }
            let out: Vec<[u64; 2]> =
                plan.outputs().unwrap().iter().map(|&slot| machine.0[slot as usize]).collect();
            assert!(out == each_time, "{count} times, {order:?}");
            assert!(machine.0.len() < 6_000, "{} slots", machine.0.len());
        }
    }
}

#[test]
fn long_products_in_a_stream_are_those_of_a_circuit() {
    // Wide enough for parts of parts; a square and a product with constant bits among them.
    let shape = || Shape { inputs: vec![200, 200], outputs: vec![400, 400, 400] };
    let body = |b: &mut Builder, x: &Uint, y: &Uint| {
        let padded = Uint::concat(&x.slice(0..150), &Uint::constant(5, 50));
        vec![b.mul_wide(x, y), b.mul_wide(y, y), b.mul_wide(&padded, y)]
    };
    let mut builder = Builder::new();
    let (x, y) = (builder.input(200), builder.input(200));
    let outputs = body(&mut builder, &x, &y);
    let circuit = builder.finish(&outputs).unwrap();
    let bits = inputs_of(&circuit, &mut Prg::from_seed(Block::new(13)));
    let expected = evaluate_words(&circuit, &bits);
    let program = || {
        Repeat::new("products", shape(), 1, move |b: &mut Builder, _, _: &[Uint], inputs: &[Uint]| {
            body(b, &inputs[0], &inputs[1])
        })
    };
    assert!(ProgramPlan::new(program(), Order::Layered).evaluate_words(&bits) == expected);
    for order in [Order::Layered, Order::Sequential] {
        let (mut plan, mut machine) = (ProgramPlan::new(program(), order), Machine::new(&bits));
        while let Some(window) = plan.next_window() {
            machine.run(window, 300);
        }
        let out: Vec<_> = plan.outputs().unwrap().iter().map(|&slot| machine.0[slot as usize]).collect();
        assert!(out == expected, "{order:?}");
    }
}

#[test]
fn a_program_streams_in_bounded_memory() {
    for (count, least, order) in [(7_000, 10_000_000, Order::Layered), (500, 700_000, Order::Sequential)] {
        stream_mixing(count, least, order);
    }
}

fn stream_mixing(count: u64, least: u64, order: Order) {
    let (x, y) = (123_456_789u32, 987_654_321u32);
    let mut expected = (x, y);
    for i in 0..count {
        expected = (expected.0.wrapping_mul(expected.0.wrapping_add(y)).wrapping_add(i as u32), !expected.0);
    }
    let bits: Vec<[u64; 2]> =
        [x, y].iter().flat_map(|v| (0..32).map(move |i| [u64::from(v >> i & 1), 0])).collect();
    let number =
        |bits: &[[u64; 2]]| bits.iter().enumerate().fold(0u32, |acc, (i, w)| acc | ((w[0] & 1) as u32) << i);
    let mut plan = ProgramPlan::new(mixing(count), order);
    let mut machine = Machine::new(&bits);
    while let Some(window) = plan.next_window() {
        machine.run(window, 4096);
    }
    assert!(plan.gates() > least, "{} gates", plan.gates());
    assert!(machine.0.len() < 100_000, "{} slots for {} gates", machine.0.len(), plan.gates());
    let out: Vec<[u64; 2]> = plan.outputs().unwrap().iter().map(|&s| machine.0[s as usize]).collect();
    assert_eq!((number(&out[..32]), number(&out[32..])), expected);
    let out = ProgramPlan::new(mixing(50), Order::Layered).evaluate_words(&bits);
    assert_eq!(out.len(), 64);
    assert_eq!(FIRST_INPUT, 2);
}
