//! Parties that follow the protocol.

use super::scripts::{Cheater, Fault, Hasty, Watch, set};
use super::*;
use crate::circuit::{Builder, Integer, Repeat, Shape, Uint, value};
use std::net::{TcpListener, TcpStream};
use tacit_crypto::RHO;
use tacit_net::memory::Record;
use tacit_net::tcp::TcpLink;
use tacit_net::{Channel, LinkModel, Party, SessionId};
use tacit_ot::Security;
use tacit_ot::extension::kos;
use tacit_ot::silent::ferret::{self, setup as ferret_setup};

#[test]
fn honest_parties_learn_what_they_should() {
    for name in [FUNCTION, "add32", "aes128"] {
        let (circuit, prepared) = prepared(name);
        let shape = circuit.shape();
        let mut prg = Prg::from_seed(Block::new(3));
        for output_to in [OutputTo::Evaluator, OutputTo::Garbler, OutputTo::Both] {
            let x = BitVec::random(shape.inputs[0] as usize, &mut prg);
            let y = BitVec::random(shape.inputs[1] as usize, &mut prg);
            let out = run(&Job::new(&prepared, output_to), &x, &y, 1, &mut Honest, &mut Honest);
            let expected = joined(&circuit, &x, &y);
            assert!(out.evaluator.unwrap() == output_to.evaluator().then(|| expected.clone()), "{name}");
            assert!(out.garbler.unwrap() == output_to.garbler().then_some(expected), "{name}");
        }
    }
}

#[test]
fn every_built_in_function_gives_the_plain_result() {
    let mut prg = Prg::from_seed(Block::new(6));
    for (i, (stem, ..)) in named::list().enumerate() {
        let name = match stem {
            "modexp" => "modexp8",
            "mulwide" => "mulwide24",
            name => name,
        };
        let function = named::find(name).unwrap();
        let prepared = Prepared::from_function(&function).unwrap();
        let bits = |fields: &[value::Field]| fields.iter().map(|f| f.bits() as usize).sum();
        let (n, m): (usize, usize) = (bits(&function.garbler), bits(&function.evaluator));
        let inputs = [
            (BitVec::random(n, &mut prg), BitVec::random(m, &mut prg)),
            (BitVec::from_bools(&vec![true; n]), BitVec::zeros(m)),
        ];
        for (j, (x, y)) in inputs.iter().enumerate() {
            let copies = Copies::ALL[(i + j) % Copies::ALL.len()];
            let job = Job { copies, ..Job::new(&prepared, OutputTo::Both) };
            let out = run(&job, x, y, i as u64, &mut Honest, &mut Honest);
            let expected = joined(&function.circuit, x, y);
            assert!(out.output() == Some(&expected), "{name} at P2, {} copies", copies.name());
            assert!(out.garbler.unwrap() == Some(expected), "{name} at P1");
        }
    }
}

/// Base OTs and OT extensions included; the base OT's two messages cross.
#[test]
fn seven_messages_in_a_row_are_an_execution() {
    let (_, prepared) = prepared(FUNCTION);
    let job = Job::new(&prepared, OutputTo::Evaluator);
    let rounds = memory::run(
        |channel| {
            let (mut prg, base) = (Prg::from_os(), tacit_ot::base::default());
            let mut garbler = Garbler::setup(channel, &*base, &mut prg).unwrap();
            garbler.run(channel, &job, &byte(1), &mut prg).unwrap();
            channel.stats().rounds
        },
        |channel| {
            let (mut prg, base) = (Prg::from_os(), tacit_ot::base::default());
            let mut evaluator = Evaluator::setup(channel, &*base, &mut prg).unwrap();
            evaluator.run(channel, &job, &byte(2), &mut prg).unwrap();
            channel.stats().rounds
        },
    );
    // P2 waits for the base OT, P1's extension, steps 4 and 5, and step 7; P1 for the base OT and P2's
    // extension, the opening and h_1.
    assert_eq!(rounds, (3, 4));
}

/// What waits for nothing leaves with the base OT's first messages.
#[test]
fn terms_and_group_elements_travel_with_the_base_ots() {
    let (_, prepared) = prepared(FUNCTION);
    let job = Job::new(&prepared, OutputTo::Evaluator);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let second = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (first, _) = listener.accept().unwrap();
    let records: [Record; 2] = Default::default();
    let channel = |stream, side: usize| {
        let link = records[side].of(Box::new(TcpLink::new(stream).unwrap()));
        Channel::new(link, [Party::First, Party::Second][side], SessionId([9; 32]))
    };
    memory::join(
        channel(first, 0),
        channel(second, 1),
        |channel| {
            let (mut prg, base) = (Prg::from_os(), tacit_ot::base::default());
            let mut garbler = Garbler::setup(channel, &*base, &mut prg).unwrap();
            garbler.run(channel, &job, &byte(1), &mut prg).unwrap();
        },
        |channel| {
            let (mut prg, base) = (Prg::from_os(), tacit_ot::base::default());
            let mut evaluator = Evaluator::setup(channel, &*base, &mut prg).unwrap();
            evaluator.run(channel, &job, &byte(2), &mut prg).unwrap();
        },
    );
    // Each leaves when its sender flushes or waits.
    let [one, two] = records.map(|record| record.frames().iter().map(|(_, f)| f.len()).collect::<Vec<_>>());
    let (terms, point, block) = (33, 32, 16);
    let ots = 128 + 44 + probe::ProbeMatrix::new(8).encoded();
    let choices = 44usize.div_ceil(8) + probe::ProbeMatrix::new(8).encoded().div_ceil(8);
    // P1: 127 base OTs of 80 bytes.
    assert_eq!(one[0], 127 * 80 + terms);
    // P2: its side of the base OTs, terms, h, g_1 and a salt; the extension, and the choices behind it; the
    // opening; h_1; then it goes.
    let extension = kos::bytes_by_hash(ots) as usize;
    let expected = [point + terms + 2 * point + block, extension, choices, block + 32, point, 0];
    assert_eq!(two, expected);
}

/// The outputs do not depend on how many tables are there before P2's opening, and P2 keeps no more than it
/// must.
#[test]
fn tables_may_come_before_the_opening() {
    for (name, copies) in
        [("mul64", Copies::STANDARD), ("aes128", Copies::SPARSE), ("sha1", Copies::STANDARD)]
    {
        let (circuit, prepared) = prepared(name);
        let job = Job { copies, ..Job::new(&prepared, OutputTo::Evaluator) };
        let mut prg = Prg::from_seed(Block::new(8));
        let [x, y] = [0, 1].map(|i| BitVec::random(circuit.shape().inputs[i] as usize, &mut prg));
        for early in [false, true] {
            let mut hasty = Hasty { early };
            let out = run(&job, &x, &y, 2, &mut hasty, &mut Honest);
            if early && name == "sha1" {
                // 16 MB of tables.
                assert!(matches!(out.evaluator, Err(Error::Cheated { .. })) && out.garbler.is_err());
            } else {
                assert!(out.output() == Some(&joined(&circuit, &x, &y)) && out.garbler.is_ok());
            }
        }
    }
}

#[test]
fn one_setup_serves_many_runs() {
    let (circuit, prepared) = prepared(FUNCTION);
    let job = Job::new(&prepared, OutputTo::Both);
    let inputs = [(1, 2), (200, 100), (255, 255)];
    let (a, b) = memory::run(
        |channel| {
            let (mut prg, base) = (Prg::from_os(), tacit_ot::base::default());
            let mut garbler = Garbler::setup(channel, &*base, &mut prg).unwrap();
            inputs.map(|(x, _)| garbler.run(channel, &job, &byte(x), &mut prg).unwrap().unwrap())
        },
        |channel| {
            let (mut prg, base) = (Prg::from_os(), tacit_ot::base::default());
            let mut evaluator = Evaluator::setup(channel, &*base, &mut prg).unwrap();
            inputs.map(|(_, y)| evaluator.run(channel, &job, &byte(y), &mut prg).unwrap().unwrap())
        },
    );
    for (i, (x, y)) in inputs.iter().enumerate() {
        assert!(a[i] == b[i] && a[i] == joined(&circuit, &byte(*x), &byte(*y)));
    }
}

#[test]
fn parties_that_disagree_find_out_before_inputs_are_used() {
    let (_, one) = prepared("add8");
    let (_, two) = prepared("add32");
    let job = |prepared, output_to| Job::new(prepared, output_to);
    let start = |a: Job<'_>, b: Job<'_>, both_garble: bool| {
        memory::run(
            |channel| terms::agree_only(channel, true, &a).map(|_| ()),
            |channel| terms::agree_only(channel, both_garble, &b).map(|_| ()),
        )
    };
    let refused = |result: (Result<()>, Result<()>)| {
        matches!(result, (Err(Error::Mismatch { .. }), Err(Error::Mismatch { .. })))
    };
    assert!(refused(start(job(&one, OutputTo::Both), job(&two, OutputTo::Both), false)));
    assert!(refused(start(job(&one, OutputTo::Both), job(&one, OutputTo::Garbler), false)));
    assert!(refused(start(job(&one, OutputTo::Both), job(&one, OutputTo::Both), true)));
    let other = Job { copies: Copies { evaluated: 22, ..Copies::STANDARD }, ..job(&one, OutputTo::Both) };
    assert!(refused(start(job(&one, OutputTo::Both), other, false)));
    assert!(!refused(start(job(&one, OutputTo::Both), job(&one, OutputTo::Both), false)));
}

#[test]
fn every_choice_of_copies_is_sound() {
    let choose = |n: usize, k: usize| (0..k).fold(1u128, |c, i| c * (n - i) as u128 / (i as u128 + 1));
    for copies in Copies::ALL {
        assert_eq!(Copies::by_name(&copies.name()), Some(copies));
        assert!(choose(copies.total, copies.evaluated) > 1 << RHO, "{copies:?}");
    }
    // No fewer copies would do, and with more evaluated ones by four not these.
    assert!((0..=43).all(|k| choose(43, k) < 1 << RHO) && choose(44, 28) < 1 << RHO);
    // With coins, whose number shows: the sum over the numbers of their chance by that of a guess, at 40 and
    // at 46 copies.
    let told =
        |n: usize| (0..=n).map(|k| choose(n, k) as f64 / choose(n, k) as f64).sum::<f64>().log2() - n as f64;
    assert!(told(40) > -34.7 && told(45) > -40.0 && told(46) < -40.0);
    assert_eq!((Copies::by_name("40"), Copies::by_name("44/24")), (None, None));
}

/// Of T sessions each is guessed with chance 2^-40 / T at most, with no more copies than that takes, and no more
/// evaluated ones.
#[test]
fn sessions_side_by_side_have_more_copies() {
    let choose = |n: usize, k: usize| (0..k).fold(1u128, |c, i| c * (n - i) as u128 / (i as u128 + 1));
    for copies in Copies::ALL {
        assert_eq!(copies.at(Level::ALONE), copies);
        for sessions in [2, 3, 4, 16, 100, 1 << 19] {
            let surer = copies.at(Level::among(sessions));
            assert_eq!((surer.evaluated, surer.coded), (copies.evaluated, copies.coded));
            assert!(choose(surer.total, surer.evaluated) >= (sessions as u128) << RHO, "{surer:?}");
            let wanted = (sessions as u128).next_power_of_two() << RHO;
            assert!(choose(surer.total - 1, surer.evaluated) < wanted, "{surer:?}");
        }
    }
    let totals = |sessions| Copies::ALL.map(|copies| copies.at(Level::among(sessions)).total);
    assert_eq!([2, 4, 16].map(totals), [[45, 45, 48], [46, 46, 50], [48, 48, 54]]);
}

/// The copies and the encoding of a session that is one of several compute the same, and go with no other level.
#[test]
fn a_surer_session_computes_the_same() {
    let (circuit, prepared) = prepared(FUNCTION);
    for copies in Copies::ALL {
        let job = Job::new(&prepared, OutputTo::Both).with(copies, Level::among(16));
        let out = run(&job, &byte(11), &byte(6), 5, &mut Honest, &mut Honest);
        let expected = joined(&circuit, &byte(11), &byte(6));
        assert!(out.output() == Some(&expected) && out.garbler.unwrap().as_ref() == Some(&expected));
    }
    let one = Job::new(&prepared, OutputTo::Both).with(Copies::SPARSE, Level::among(2));
    let other = Job { level: Level::ALONE, ..one };
    assert_ne!(one.digest(), other.digest());
}

/// A program too long to hold: streamed by both sides, checks included.
#[test]
fn a_program_streams_through_all_copies() {
    use crate::Owner;
    let rounds: u64 = if cfg!(feature = "long-tests") { 8000 } else { 100 };
    let make = move || {
        let shape = Shape { inputs: vec![32, 32], outputs: vec![32, 32] };
        Repeat::new("mixing", shape, rounds, |b: &mut Builder, i, state: &[Uint], inputs: &[Uint]| {
            let product = b.mul(&state[0], &inputs[1]);
            vec![b.add(&product, &Uint::constant(i as i128, 32)), b.not_bits(&state[0])]
        })
    };
    let streamed = Streamed::new(make, vec![Owner::Garbler, Owner::Evaluator]).unwrap();
    let (x, y) = (123_456_789u32, 987_654_321u32);
    let mut state = (x, y);
    for i in 0..rounds {
        state = (state.0.wrapping_mul(y).wrapping_add(i as u32), !state.0);
    }
    let word = |value: u32| BitVec::from_bytes(&value.to_le_bytes(), 32);
    let expected = BitVec::from_bytes(&[state.0.to_le_bytes(), state.1.to_le_bytes()].concat(), 64);
    for copies in [Copies::STANDARD, Copies::CODED] {
        let job = Job { copies, ..Job::new(&streamed, OutputTo::Evaluator) };
        // Recovery walks through the program a second time.
        let mut honest = Cheater::new(Fault::Flipped, 0);
        let out = run(&job, &word(x), &word(y), 3, &mut honest, &mut Honest);
        assert!(out.output() == Some(&expected));
        let set = BitVec::from_bools(&(0..copies.total).map(|j| j < copies.evaluated).collect::<Vec<_>>());
        let mut watch = Watch::with(set);
        let out = run(&job, &word(x), &word(y), 3, &mut Cheater::new(Fault::Flipped, 1), &mut watch);
        assert!(watch.recovers && out.output() == Some(&expected));
    }
}

/// The protocol asks nothing of the OTs below but the traits: over Ferret all is as over KOS, cheaters
/// included.
#[test]
fn over_ferret_nothing_changes() {
    let (_, prepared) = prepared(FUNCTION);
    let job = Job::new(&prepared, OutputTo::Both);
    let (malicious, link) = (Security::Malicious, LinkModel::LOOPBACK);
    let config = ferret::Config::choose(1 << 10, malicious, &link, ferret::cost::CACHE);
    for (fault, holds, right, recovers) in [
        (Fault::Tables, true, true, false),
        (Fault::Tables, false, false, false),
        (Fault::Flipped, true, true, true),
        (Fault::Selective, true, false, false),
    ] {
        let mut watch = Watch::with(set(holds, 3));
        let (garbler, evaluator) = memory::run(
            |channel| {
                let (mut prg, base) = (Prg::from_seed(Block::new(1)), tacit_ot::base::default());
                let ferret = ferret_setup::senders(channel, &*base, &mut prg, config, 1).unwrap().remove(0);
                let mut cheater = Cheater { wires: (0..40).collect(), ..Cheater::new(fault, 3) };
                scripted(&mut cheater, || Garbler::new(ferret).run(channel, &job, &byte(11), &mut prg))
            },
            |channel| {
                let (mut prg, base) = (Prg::from_seed(Block::new(2)), tacit_ot::base::default());
                let ferret = ferret_setup::receivers(channel, &*base, &mut prg, config, 1).unwrap().remove(0);
                scripted(&mut watch, || Evaluator::new(ferret).run(channel, &job, &byte(6), &mut prg))
            },
        );
        assert_eq!((garbler.is_ok(), watch.recovers), (right, recovers), "{fault:?}");
        match evaluator {
            Ok(output) => assert!(right && output == Some(byte(17)), "{fault:?}"),
            Err(error) => assert!(!right && matches!(error, Error::Cheated { .. }), "{error}"),
        }
    }
}
