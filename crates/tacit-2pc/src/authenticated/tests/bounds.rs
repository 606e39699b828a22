//! The sizes of buckets against their analysis, and the bytes a gate.

use super::*;
use crate::circuit::{Builder, Uint};
use tacit_ot::silent::ferret::{Config, Lanes, Params};

#[test]
fn a_window_is_broken_with_chance_of_at_most_two_to_the_minus_forty() {
    for n in [buckets::LEAST, 1000, 4311, 4312, 10_000, 300_000, 400_431, 400_432, buckets::WINDOW] {
        let b = buckets::size(n);
        let of_one = |b: usize| 2f64.powi(-(b as i32)) * (n as f64).powi(1 - b as i32);
        let most = 2f64.powi(-(buckets::STATISTICAL as i32));
        // All windows, and one guess at a wrong product.
        assert!(of_one(b) * 8.0 / 7.0 + 2f64.powi(-47) <= most, "{n} buckets of {b}");
        let fewer = of_one(b - 1) * 7.0 / 6.0;
        assert!(b == 3 || fewer > most * (1.0 - 1e-5), "{n} buckets of {b} are more than are needed");
        assert!((3..=5).contains(&b));
    }
}

#[test]
fn leaked_triples_meet_as_often_as_the_analysis_says() {
    const N: usize = 12;
    let leaked = [[0, 5].as_slice(), &[3], &[1, 2]];
    let mut prg = Prg::from_seed(Block::new(5));
    let (mut full, runs) = (0, 40_000);
    for _ in 0..runs {
        let shifts = [0, buckets::shift(&mut prg, N), buckets::shift(&mut prg, N)];
        full += (0..N)
            .filter(|j| leaked.iter().zip(shifts).all(|(row, shift)| row.contains(&((j + shift) % N))))
            .count();
    }
    // 2·1·2 choices, each in one bucket with chance 1/N².
    let mean = runs as f64 * 4.0 / (N * N) as f64;
    assert!((full as f64 - mean).abs() < 5.0 * mean.sqrt(), "{full} full buckets, expected {mean}");
}

#[test]
fn every_window_serves_as_many_gates_as_it_is_for() {
    for ands in [0, 1, buckets::WINDOW - 1, buckets::WINDOW, buckets::WINDOW + 1, 3 * buckets::WINDOW] {
        let windows: Vec<usize> = buckets::windows(ands).collect();
        assert_eq!(windows.iter().sum::<usize>(), ands);
        assert!(windows.iter().all(|&n| n > 0 && n <= buckets::WINDOW));
    }
    // As many in each, where all have buckets of three then.
    assert_eq!(buckets::windows(818_001).collect::<Vec<_>>(), [409_001, 409_000]);
    assert_eq!(buckets::windows(700_000).collect::<Vec<_>>(), [buckets::WINDOW, 200_000]);
}

#[test]
fn a_gate_costs_at_most_90_bytes_with_everything_included() {
    let mut builder = Builder::new();
    let (x, y): (Uint, Uint) = (builder.input(32), builder.input(32));
    let value = (0..412).fold(x, |value, _| builder.mul(&value, &y));
    let circuit = builder.finish(&[value]).unwrap();
    let function = Prepared::new(circuit, vec![Owner::Garbler, Owner::Evaluator]).unwrap();
    let ands = function.plan(1).ands();
    assert!((401_000..=buckets::WINDOW as u64).contains(&ands), "{ands} gates fill one window");
    let ([x, y], outputs) = example(&function, 1);
    let config = Config { params: Params::B, lanes: Lanes::Four, security: tacit_ot::Security::Malicious };
    let party = |channel: &mut Channel, role: Owner, input: &BitVec| {
        let (mut prg, base) = (Prg::from_os(), tacit_ot::base::default());
        let mut session = Session::setup(channel, role, &*base, config, &mut prg).unwrap();
        let output = session.run(channel, &function, OutputTo::Both, input).unwrap().unwrap();
        (output, channel.stats().bytes_sent)
    };
    let ((one, sent), (two, back)) = memory::run(
        |channel| party(channel, Owner::Garbler, &x),
        |channel| party(channel, Owner::Evaluator, &y),
    );
    assert_eq!((&one, &two), (&outputs, &outputs));
    let bytes = (sent + back) as f64 / ands as f64;
    assert!((75.0..=90.0).contains(&bytes), "{bytes:.1} bytes a gate");
}
