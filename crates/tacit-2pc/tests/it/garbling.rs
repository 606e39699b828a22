//! Garbled evaluation equals evaluation in the clear, copy by copy; labels decode only to valid outputs.

use tacit_2pc::circuit::{
    Builder, Circuit, FIRST_INPUT, Integer, Order, Plan, ProgramPlan, Repeat, Shape, Uint, evaluate_words,
    named,
};
use tacit_2pc::garble::{
    Copy, Evaluate, Garble, HalfGatesEvaluator, HalfGatesGarbler, instance_start, output,
};
use tacit_crypto::{BitVec, Block, Prg};

struct Garbled {
    garbler: HalfGatesGarbler,
    evaluator: HalfGatesEvaluator,
    copies: Vec<Copy>,
    inputs: Vec<Vec<bool>>,
}

fn copies(lanes: usize, prg: &mut Prg) -> Vec<Copy> {
    (0..lanes).map(|_| Copy { delta: prg.block().with_lsb(true), start: prg.block() }).collect()
}

/// Sets up random inputs, another set for each copy.
fn start(input_bits: usize, lanes: usize, prg: &mut Prg) -> Garbled {
    let copies = copies(lanes, prg);
    let mut garbler = HalfGatesGarbler::new(&copies);
    let mut evaluator = HalfGatesEvaluator::new(&copies.iter().map(|c| c.start).collect::<Vec<_>>());
    let inputs: Vec<Vec<bool>> = (0..input_bits).map(|_| (0..lanes).map(|_| prg.bit()).collect()).collect();
    let mut zero = vec![Block::ZERO; lanes];
    for (i, bits) in inputs.iter().enumerate() {
        prg.fill_blocks(&mut zero);
        let active: Vec<Block> =
            (0..lanes).map(|l| zero[l] ^ (copies[l].delta & Block::mask(bits[l]))).collect();
        garbler.set_zero_labels(FIRST_INPUT + i as u32, &zero);
        evaluator.set_labels(FIRST_INPUT + i as u32, &active);
    }
    Garbled { garbler, evaluator, copies, inputs }
}

/// Garbles and evaluates in pieces; returns `outputs[bit][copy]` as decoded by the garbler's three ways.
fn run(
    circuit: &Circuit,
    order: Order,
    lanes: usize,
    piece_ands: usize,
    prg: &mut Prg,
) -> (Garbled, Vec<Vec<bool>>) {
    let plan = Plan::new(circuit, order);
    let mut g = start(plan.input_bits(), lanes, prg);
    let mut tables = Vec::new();
    for piece in plan.pieces(piece_ands) {
        tables.clear();
        tables.resize(2 * piece.ands * lanes, Block::ZERO);
        g.garbler.garble(piece, &mut tables);
        g.evaluator.evaluate(piece, &tables);
    }
    assert_eq!(g.garbler.gates(), plan.ands());
    let mut values = Vec::new();
    for (index, &slot) in plan.outputs().iter().enumerate() {
        let (zero, active) = (g.garbler.zero_labels(slot).to_vec(), g.evaluator.labels(slot));
        let colours = output::colours(zero.iter().copied());
        let by_colour = output::decode_colours(active, &colours);
        let mut row = Vec::new();
        for l in 0..lanes {
            let Copy { delta, start } = g.copies[l];
            let value = output::decode_label(active[l], zero[l], delta).expect("one of the wire's labels");
            let hashes = output::label_hashes(start, index as u64, zero[l], delta);
            assert_eq!(output::decode_hashed(start, index as u64, active[l], &hashes), Some(value));
            assert_eq!(by_colour.get(l), value);
            row.push(value);
        }
        values.push(row);
    }
    (g, values)
}

fn check(circuit: &Circuit, order: Order, lanes: usize, piece_ands: usize, prg: &mut Prg) {
    let (g, values) = run(circuit, order, lanes, piece_ands, prg);
    let pack =
        |bits: &Vec<bool>| [bits.iter().enumerate().fold(0u64, |acc, (l, &bit)| acc | u64::from(bit) << l)];
    let words: Vec<[u64; 1]> = g.inputs.iter().map(pack).collect();
    let expected = evaluate_words(circuit, &words);
    let mask = if lanes == 64 { u64::MAX } else { (1 << lanes) - 1 };
    for (i, (row, expected)) in values.iter().zip(expected).enumerate() {
        assert_eq!(pack(row)[0], expected[0] & mask, "output bit {i}, {lanes} copies, {order:?}");
    }
}

#[test]
fn garbled_circuits_compute_what_plain_ones_do() {
    let mut prg = Prg::from_seed(Block::new(1));
    for name in [
        "aes128",
        "aes192",
        "aes256",
        "sha1",
        "sha256",
        "sha256-shared",
        "sha512",
        "keccak-f",
        "add32",
        "sub16",
        "mul32",
        "mulwide48",
        "div16",
        "mod16",
        "min8",
        "max8",
        "eq33",
        "lt20",
        "millionaires",
        "hamming100",
        "sort8",
        "sort-shared5",
        "argmin8",
        "lookup16",
        "modexp8",
    ] {
        let circuit = named::find(name).unwrap().circuit;
        check(&circuit, Order::Layered, 1, 1000, &mut prg);
        check(&circuit, Order::Sequential, 3, usize::MAX, &mut prg);
    }
}

#[test]
fn any_number_of_copies_side_by_side() {
    let mut prg = Prg::from_seed(Block::new(2));
    let circuit = named::find("add32").unwrap().circuit;
    for lanes in [1, 2, 3, 4, 5, 7, 8, 16, 31, 40, 64] {
        check(&circuit, Order::Sequential, lanes, 7, &mut prg);
        check(&circuit, Order::Layered, lanes, 1, &mut prg);
    }
    check(&named::find("aes128").unwrap().circuit, Order::Sequential, 40, 500, &mut prg);
}

#[test]
fn a_copy_among_many_equals_the_copy_alone() {
    let circuit = named::find("mul16").unwrap().circuit;
    let plan = Plan::new(&circuit, Order::Sequential);
    let mut prg = Prg::from_seed(Block::new(3));
    let mut many = start(plan.input_bits(), 5, &mut prg);
    let garble = |garbler: &mut HalfGatesGarbler, lanes: usize| {
        let mut all = Vec::new();
        for piece in plan.pieces(100) {
            let mut tables = vec![Block::ZERO; 2 * piece.ands * lanes];
            garbler.garble(piece, &mut tables);
            all.extend(tables);
        }
        all
    };
    let inputs: Vec<Vec<Block>> =
        (0..plan.input_bits() as u32).map(|i| many.garbler.zero_labels(FIRST_INPUT + i).to_vec()).collect();
    let tables = garble(&mut many.garbler, 5);
    for l in 0..5 {
        let mut alone = HalfGatesGarbler::new(&many.copies[l..l + 1]);
        for (i, labels) in inputs.iter().enumerate() {
            alone.set_zero_labels(FIRST_INPUT + i as u32, &labels[l..l + 1]);
        }
        let expected: Vec<Block> =
            tables.chunks(10).flat_map(|gate| gate[2 * l..2 * l + 2].to_vec()).collect();
        assert!(garble(&mut alone, 1) == expected, "copy {l}");
    }
}

#[test]
fn labels_decode_only_to_valid_outputs() {
    let mut prg = Prg::from_seed(Block::new(4));
    let circuit = named::find("add8").unwrap().circuit;
    let plan = Plan::new(&circuit, Order::Layered);
    let mut refused = 0;
    for round in 0..200 {
        let mut g = start(16, 1, &mut prg);
        let piece = plan.windows()[0].whole();
        let mut tables = vec![Block::ZERO; 2 * piece.ands];
        g.garbler.garble(piece, &mut tables);
        let honest: Vec<Block> = {
            g.evaluator.evaluate(piece, &tables);
            plan.outputs().iter().map(|&s| g.evaluator.labels(s)[0]).collect()
        };
        let mut fresh = Prg::from_seed(Block::new(1000 + round));
        let mut again = start(16, 1, &mut fresh);
        again.garbler.garble(piece, &mut vec![Block::ZERO; 2 * piece.ands]);
        again.evaluator.evaluate(piece, &tables);
        for (index, &slot) in plan.outputs().iter().enumerate() {
            let delta = g.copies[0].delta;
            let zero = g.garbler.zero_labels(slot)[0];
            let hashes = output::label_hashes(g.copies[0].start, index as u64, zero, delta);
            // A label of another garbling, and a label with one bit changed, are refused.
            let foreign = again.evaluator.labels(slot)[0];
            let bent = honest[index] ^ Block::new(1 << prg.below(128));
            for label in [foreign, bent] {
                assert_eq!(output::decode_label(label, zero, delta), None);
                assert_eq!(output::decode_hashed(g.copies[0].start, index as u64, label, &hashes), None);
                refused += 1;
            }
            assert!(output::decode_label(honest[index], zero, delta).is_some());
        }
    }
    assert_eq!(refused, 200 * 8 * 2);
}

#[test]
fn instances_of_a_session_never_share_a_key() {
    let session = Prg::from_seed(Block::new(5)).block();
    let mut seen = std::collections::HashSet::new();
    for instance in 0..64 {
        for gate in [0u64, 1, 2, 1 << 20, 1 << 40] {
            assert!(seen.insert(instance_start(session, instance) ^ Block::from_halves(2 * gate, 0)));
            assert!(seen.insert(instance_start(session, instance) ^ Block::from_halves(2 * gate + 1, 0)));
        }
    }
}

#[test]
#[should_panic(expected = "lowest bit")]
fn a_delta_with_lowest_bit_zero_is_refused() {
    HalfGatesGarbler::new(&[Copy { delta: Block::new(2), start: Block::ZERO }]);
}

/// Streams `steps` multiplications through garbler and evaluator and compares with the plain run.
fn stream(steps: u64) -> (u64, usize) {
    let program = || {
        let shape = Shape { inputs: vec![32, 32], outputs: vec![32] };
        Repeat::new("powers", shape, steps, |b: &mut Builder, i, state: &[Uint], inputs: &[Uint]| {
            let product = b.mul(&state[0], &inputs[1]);
            let sum = b.add(&product, &Uint::constant(i as i128, 32));
            vec![sum]
        })
    };
    let mut prg = Prg::from_seed(Block::new(6));
    let mut g = start(64, 1, &mut prg);
    let mut plan = ProgramPlan::new(program(), Order::Layered);
    let mut tables = Vec::new();
    let mut slots = 0;
    while let Some(window) = plan.next_window() {
        slots = slots.max(window.slots());
        for piece in window.pieces(4096) {
            tables.resize(2 * piece.ands, Block::ZERO);
            g.garbler.garble(piece, &mut tables);
            g.evaluator.evaluate(piece, &tables);
        }
    }
    let number =
        |bits: &[Vec<bool>]| bits.iter().enumerate().fold(0u32, |acc, (i, b)| acc | u32::from(b[0]) << i);
    let (mut x, y) = (number(&g.inputs[..32]), number(&g.inputs[32..]));
    for i in 0..steps {
        x = x.wrapping_mul(y).wrapping_add(i as u32);
    }
    let values: Vec<Vec<bool>> = plan
        .outputs()
        .unwrap()
        .iter()
        .map(|&s| {
            let delta = g.copies[0].delta;
            vec![output::decode_label(g.evaluator.labels(s)[0], g.garbler.zero_labels(s)[0], delta).unwrap()]
        })
        .collect();
    assert_eq!(number(&values), x);
    (plan.gates(), slots)
}

#[test]
fn ten_million_gates_stream_in_bounded_memory() {
    let (gates, slots) = stream(2_900);
    assert!(gates >= 10_000_000, "{gates} gates");
    assert!(slots < 60_000, "{slots} slots");
}

#[cfg(feature = "long-tests")]
#[test]
fn a_hundred_million_gates_stream_in_bounded_memory() {
    let (gates, slots) = stream(29_000);
    assert!(gates >= 100_000_000, "{gates} gates");
    assert!(slots < 60_000, "{slots} slots");
}

#[test]
fn colours_hide_the_values() {
    // Over many garblings of one circuit on one input, each output's active lowest bit is one half of the
    // time.
    let circuit = named::find("add8").unwrap().circuit;
    let mut prg = Prg::from_seed(Block::new(7));
    let plan = Plan::new(&circuit, Order::Layered);
    let mut ones = 0;
    for _ in 0..500 {
        let mut g = start(16, 1, &mut prg);
        let piece = plan.windows()[0].whole();
        let mut tables = vec![Block::ZERO; 2 * piece.ands];
        g.garbler.garble(piece, &mut tables);
        g.evaluator.evaluate(piece, &tables);
        let labels: Vec<Block> = plan.outputs().iter().map(|&s| g.evaluator.labels(s)[0]).collect();
        ones += BitVec::from_lsbs(&labels).iter().filter(|&b| b).count();
    }
    // 4,000 fair coins: six standard deviations are 190.
    assert!((1_810..2_190).contains(&ones), "{ones} ones of 4,000");
}
