//! A P1 that cheats is caught, as often as the analysis says, or gains nothing.

use super::scripts::{CASES, Cheater, Fault, Watch, set};
use super::*;
use crate::wmk17::{probe, secrets, transfer};
use std::collections::HashSet;
use tacit_crypto::RHO;

/// What P2 gets when the spoilt copies are evaluated, and when they are checked.
fn both_ways(fault: Fault, output_to: OutputTo, early: bool) -> [(Option<BitVec>, bool); 2] {
    let (_, prepared) = prepared(FUNCTION);
    let job = Job::new(&prepared, output_to);
    [true, false].map(|evaluated| {
        let mut watch = Watch::with(set(evaluated, 3));
        let mut cheater = Cheater { early, ..Cheater::new(fault, 3) };
        let out = run(&job, &byte(0b1011), &byte(0b110), 5, &mut cheater, &mut watch);
        if output_to == OutputTo::Evaluator {
            // P1 ends as in an honest run whatever P2 found.
            assert!(out.garbler.as_ref().is_ok_and(Option::is_none), "{fault:?}");
        } else {
            assert_eq!(out.garbler.is_ok(), out.evaluator.is_ok(), "{fault:?}");
        }
        (out.output().cloned(), watch.recovers)
    })
}

/// proof: wmk17 2.9
#[test]
fn every_fault_is_caught_or_harmless() {
    let right = byte(0b1011 + 0b110);
    for (output_to, early) in
        [(OutputTo::Evaluator, true), (OutputTo::Evaluator, false), (OutputTo::Both, true)]
    {
        for (fault, evaluated, checked, recovers) in CASES.iter().copied() {
            let [(first, recovered), (second, _)] = both_ways(fault, output_to, early);
            let expected = |passes: bool| passes.then(|| right.clone());
            if fault == Fault::Committed {
                // The spoilt commitment is opened or not, as P1's bit and the colours fall: 1/2 each.
                assert!(first.is_none_or(|z| z == right) && second.is_none());
                continue;
            }
            assert!(first == expected(evaluated), "{fault:?} in evaluated copies");
            assert!(second == expected(checked), "{fault:?} in checked copies");
            assert_eq!(recovered, recovers, "{fault:?}");
        }
    }
}

/// proof: wmk17 5.5
#[test]
fn the_coded_transfer_is_as_strict() {
    let (circuit, prepared) = prepared(FUNCTION);
    let right = byte(0b1011 + 0b110);
    // (fault, is the output right if the three copies are evaluated, is the input recovered)
    let cases = [
        (Fault::Tables, true, false),
        (Fault::Flipped, true, true),
        (Fault::Inconsistent, true, true),
        (Fault::Combination, false, false),
        (Fault::TableHash, false, false),
        (Fault::OtherTables, false, false),
    ];
    for (copies, holds) in
        [Copies::CODED, Copies::SPARSE].into_iter().flat_map(|copies| [(copies, true), (copies, false)])
    {
        let Copies { total, evaluated: active, .. } = copies;
        let job = Job { copies, ..Job::new(&prepared, OutputTo::Both) };
        let out = run(&job, &byte(9), &byte(8), 4, &mut Honest, &mut Honest);
        assert!(out.output() == Some(&joined(&circuit, &byte(9), &byte(8))) && out.garbler.is_ok());
        for (fault, evaluated, recovers) in cases {
            let set: Vec<bool> =
                (0..total).map(|j| if holds { j < active } else { j >= total - active }).collect();
            let mut watch = Watch::with(BitVec::from_bools(&set));
            let mut cheater = Cheater::new(fault, 3);
            let out = run(&job, &byte(0b1011), &byte(0b110), 5, &mut cheater, &mut watch);
            let expected = (evaluated && holds).then_some(&right);
            assert!(out.output() == expected, "{fault:?}, evaluated: {holds}");
            assert!(watch.recovers == (recovers && holds), "{fault:?}");
        }
    }
}

/// Counts aborts over `runs` runs with free evaluation sets, of the cheater that `cheater` makes; every
/// output must be right.
fn aborts(cheater: &dyn Fn() -> Cheater, evaluator: &dyn Fn() -> Watch, y: u8, runs: u64) -> u64 {
    let (_, prepared) = prepared(FUNCTION);
    let job = Job::new(&prepared, OutputTo::Evaluator);
    let mut views = HashSet::new();
    let aborts = (0..runs)
        .filter(|seed| {
            let out = run(&job, &byte(77), &byte(y), 1000 + seed, &mut cheater(), &mut evaluator());
            assert!(out.garbler.is_ok());
            views.insert(out.view);
            assert!(out.output().is_none_or(|z| *z == byte(77u8.wrapping_add(y))), "a wrong output");
            out.output().is_none()
        })
        .count() as u64;
    assert_eq!(views.len(), 1, "what P1 receives does not tell runs apart");
    aborts
}

/// proof: wmk17 3.1
#[test]
fn bad_copies_are_caught_at_the_rate_of_the_analysis() {
    let Copies { total, evaluated, .. } = Copies::STANDARD;
    for fault in [Fault::Tables, Fault::Inconsistent, Fault::Flipped] {
        for copies in [1, 2, 4] {
            let count = aborts(&|| Cheater::new(fault, copies), &Watch::default, 100, RUNS);
            // All spoilt copies are evaluated.
            let all: f64 = (0..copies).map(|i| (evaluated - i) as f64 / (total - i) as f64).product();
            assert!(near(count, RUNS, 1.0 - all), "{fault:?} in {copies}: {count} of {RUNS}");
        }
    }
}

/// P1 spoils the labels for 1 of encoded bits whose sum is bit 0 of y. Without the encoding one of them is
/// that bit.
///
/// proof: wmk17 3.4
#[test]
fn selective_failure_tells_nothing_of_the_input() {
    let support = probe::ProbeMatrix::new(8).support(0);
    assert!(support.len() >= RHO + probe::LABEL_MARGIN);
    for wires in [1, 3, support.len()] {
        let cheater = || Cheater { wires: support[..wires].to_vec(), ..Cheater::new(Fault::Selective, 0) };
        let counts = [0u8, 255].map(|y| aborts(&cheater, &Watch::default, y, RUNS));
        for count in counts {
            let caught = 1.0 - 0.5f64.powi(wires as i32);
            assert!(near(count, RUNS, caught), "{wires} wires: {counts:?} of {RUNS}");
        }
    }
    let plain = || Some(probe::ProbeMatrix::plain(8));
    let runs = 20;
    let cheater = || Cheater { wires: vec![0], matrix: plain(), ..Cheater::new(Fault::Selective, 0) };
    let evaluator = || Watch { matrix: plain(), ..Watch::default() };
    let counts = [0u8, 255].map(|y| aborts(&cheater, &evaluator, y, runs));
    assert!(counts == [0, runs] && !counts.iter().any(|&count| near(count, runs, 0.5)), "{counts:?}");
}

/// With few copies P1 guesses the set and gets what it wants exactly as often as it may.
///
/// proof: wmk17 3.2
#[test]
fn only_a_guess_of_the_whole_set_succeeds() {
    let (_, prepared) = prepared(FUNCTION);
    let copies = Copies { total: 4, evaluated: 2, coded: false };
    let job = Job { copies, ..Job::new(&prepared, OutputTo::Evaluator) };
    for spoilt in [1, 2] {
        let (mut right, mut wrong) = (0, 0);
        for seed in 0..RUNS {
            // Bit 2 is flipped in copies 0 and 1: P1 hopes for the set {0, 1}. In copy 0 alone it is always
            // found out.
            let mut cheater = Cheater::new(Fault::Flipped, spoilt);
            let out = run(&job, &byte(8), &byte(0), 9000 + seed, &mut cheater, &mut Honest);
            match out.output() {
                Some(z) if *z == byte(8) => right += 1,
                Some(_) => wrong += 1,
                None => {}
            }
        }
        let expected = if spoilt == 1 { [1.0 / 2.0, 0.0] } else { [0.0, 1.0 / 6.0] };
        assert!(
            near(right, RUNS, expected[0]) && near(wrong, RUNS, expected[1]),
            "{spoilt} spoilt: {right} right, {wrong} wrong"
        );
    }
}

/// Rows do not add up: P1 guesses a set for each row of a session until a guess is right, and a wrong one ends the
/// session. Four copies have six sets, so a session of five rows would be broken with 0.60 if it went on.
#[test]
fn a_guess_of_the_set_costs_the_session() {
    let (_, prepared) = prepared(FUNCTION);
    let copies = Copies { total: 4, evaluated: 2, coded: false };
    let job = Job { copies, ..Job::new(&prepared, OutputTo::Both) };
    let prg = |seed, role: u64| Prg::from_seed(Block::from_halves(seed, role));
    let (mut broken, mut later) = (0, 0);
    for seed in 0..RUNS {
        let (_, rows) = memory::run(
            |channel| {
                let (mut prg, base) = (prg(50_000 + seed, 1), tacit_ot::base::default());
                let mut garbler = Garbler::setup(channel, &*base, &mut prg).unwrap();
                // The first row is honest: a session that was used well is not easier to break.
                for row in 0..6 {
                    let mut cheater = Cheater::new(Fault::Flipped, if row == 0 { 0 } else { 2 });
                    if scripted(&mut cheater, || garbler.run(channel, &job, &byte(8), &mut prg)).is_err() {
                        return;
                    }
                }
            },
            |channel| {
                let (mut prg, base) = (prg(50_000 + seed, 2), tacit_ot::base::default());
                let mut evaluator = Evaluator::setup(channel, &*base, &mut prg).unwrap();
                let mut rows = Vec::new();
                while let Ok(Some(z)) = evaluator.run(channel, &job, &byte(0), &mut prg) {
                    rows.push(z);
                    if rows.len() == 6 {
                        break;
                    }
                }
                rows
            },
        );
        assert!(rows[0] == byte(8) && rows[1..].iter().all(|z| *z != byte(8)));
        broken += u64::from(rows.len() > 1);
        later += u64::from(rows.len() > 2);
    }
    assert!(near(broken, RUNS, 1.0 / 6.0), "{broken} of {RUNS} sessions");
    assert!(near(later, RUNS, 1.0 / 36.0), "{later} of {RUNS} sessions twice");
}

/// P1's last step: the tokens of its outputs and their hashes, and T that holds them.
///
/// proof: wmk17 2.10
#[test]
fn what_comes_back_to_the_garbler_is_checked() {
    let (_, prepared) = prepared(FUNCTION);
    for output_to in [OutputTo::Garbler, OutputTo::Both] {
        let job = Job::new(&prepared, output_to);
        for (fault, evaluated, checked) in [
            (Fault::ReturnedHash, false, false),
            (Fault::ReturnedToken, false, false),
            (Fault::ReturnedT, true, false),
        ] {
            for (holds, right) in [(true, evaluated), (false, checked)] {
                let mut watch = Watch::with(set(holds, 3));
                let out = run(&job, &byte(11), &byte(6), 5, &mut Cheater::new(fault, 3), &mut watch);
                assert_eq!((out.garbler.is_ok(), out.evaluator.is_ok()), (right, right), "{fault:?}");
                if right {
                    assert!(out.garbler.unwrap() == Some(byte(17)), "{fault:?}");
                }
            }
        }
    }
}

/// The attack for which a recovered table that misses its hash is no mere invalid circuit: copy 0 computes
/// something else and is hashed as it is; two combinations are spoilt alike. For one set in 256 that holds
/// copy 0 their share in it vanishes, so that of all that P2 evaluates copy 0 alone is as it was hashed.
///
/// proof: wmk17 5.5
#[test]
fn errors_that_vanish_in_a_bad_copy_gain_nothing() {
    let copies = Copies::SPARSE;
    let oracle = secrets::Oracle::new([3; 32]);
    let mut prg = Prg::from_seed(Block::new(77));
    let sets = if cfg!(feature = "long-tests") { 1 << 17 } else { 1 << 14 };
    let mut vanishing: Option<BitVec> = None;
    let (mut holding, mut count) = (0, 0);
    for _ in 0..sets {
        let set = copies.draw(&mut prg);
        if !set.get(0) {
            continue;
        }
        holding += 1;
        let (evaluated, checked): (Vec<usize>, Vec<usize>) = (0..copies.total).partition(|&j| set.get(j));
        let mut combinations = vec![Block::ZERO; 2 * evaluated.len()];
        (combinations[0], combinations[2]) = (Block::ONE, Block::ONE);
        let mut shares = vec![Block::ZERO; 2 * evaluated.len()];
        let mut decoder = transfer::Decoder::new(&oracle, &evaluated, &checked);
        decoder.piece(&combinations, &vec![Block::ZERO; 2 * checked.len()], &mut shares);
        if shares[0] == Block::ZERO {
            count += 1;
            // The others are spoilt, but for such as vanish too.
            assert!(shares[2..].iter().filter(|share| **share != Block::ZERO).count() > 8);
            vanishing.get_or_insert(set);
        }
    }
    assert!(near(count, holding, 1.0 / 256.0), "{count} of {holding}");
    let (_, prepared) = prepared(FUNCTION);
    let job = Job { copies, ..Job::new(&prepared, OutputTo::Both) };
    let mut watch = Watch::with(vanishing.unwrap());
    let mut cheater = Cheater::new(Fault::Vanishing, 1);
    let out = run(&job, &byte(11), &byte(6), 5, &mut cheater, &mut watch);
    assert!(out.output().is_none() && out.garbler.is_err());
}
