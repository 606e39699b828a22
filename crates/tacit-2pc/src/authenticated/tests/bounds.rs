//! The sizes of buckets against their analysis, and the bytes a gate.

use super::*;
use crate::circuit::{Builder, Uint};
use tacit_ot::silent::ferret::{Config, Lanes, Params};

fn half(n: usize) -> f64 {
    2f64.powi(-(n as i32))
}

#[test]
fn a_window_is_broken_with_chance_of_at_most_two_to_the_minus_forty() {
    let most = 2f64.powi(-(buckets::STATISTICAL as i32));
    // A cheater that leaks a triple in each row of the first check, and nothing more where they do not meet,
    // goes on to the next window with chance 2^-k.
    let of_all = |n: usize, b: usize| {
        let checked = b.min(1 + buckets::rows_at_once(n, false));
        half(b) * (n as f64).powi(1 - b as i32) / (1.0 - half(checked)) + half(47)
    };
    let mut sizes = Vec::new();
    for n in buckets::LEAST..=buckets::WINDOW {
        let b = buckets::size(n);
        assert!((3..=5).contains(&b) && of_all(n, b) <= most, "{n} buckets of {b}");
        assert!(b == 3 || of_all(n, b - 1) > most, "{n} buckets of {b} are more than are needed");
        if sizes.last().is_none_or(|&(_, last)| last != b) {
            sizes.push((n, b));
        }
    }
    assert_eq!(sizes, [(buckets::LEAST, 5), (4197, 4), (397_882, 3)]);
    assert!(of_all(buckets::LEAST - 1, 5) > most);
}

/// How often a cheater breaks one of up to a hundred windows and is never caught, if it chooses how many
/// triples leak in each row by whether those of the checks before met.
fn broken(n: usize) -> f64 {
    const MOST_LEAKS: usize = 4;
    let (size, together) = (buckets::size(n), buckets::rows_at_once(n, false));
    // The rows of each check.
    let mut checks: Vec<_> = (1..size).step_by(together).map(|row| row..size.min(row + together)).collect();
    checks[0].start = 0;
    let mut later = 0.0;
    for _ in 0..100 {
        // What is to be had behind a check, with so many buckets of which all triples leaked.
        let mut behind = [later, 1.0, 1.0, 1.0];
        for rows in checks.iter().rev() {
            let mut before = [0.0f64; MOST_LEAKS];
            for (full, before) in before.iter_mut().enumerate() {
                for leaks in 0..MOST_LEAKS.pow(rows.len() as u32) {
                    let of = |i: usize| leaks / MOST_LEAKS.pow(i as u32) % MOST_LEAKS;
                    let passes = half((0..rows.len()).map(of).sum());
                    let first = rows.start == 0;
                    let full = if first { of(0) } else { full };
                    let shifted = usize::from(first)..rows.len();
                    let met = shifted.fold(full as f64, |met, i| met * of(i) as f64 / n as f64);
                    *before = before.max(passes * (met * behind[1] + (1.0 - met) * behind[0]));
                }
            }
            behind = before;
        }
        later = behind[0];
    }
    later
}

#[test]
fn no_way_to_spread_leaks_over_rows_and_windows_breaks_a_session_more_often() {
    let most = half(buckets::STATISTICAL as usize) - half(47);
    for n in [buckets::LEAST, 4197, 200_000, 300_000, 397_882, 409_116, 430_000, 430_001, buckets::WINDOW] {
        let share = broken(n) / most;
        assert!(share <= 1.0, "{n} buckets: {share:.3} of what may be");
        // At the smallest of each size nearly all of it.
        let edge = [buckets::LEAST, 4197, 397_882].contains(&n);
        assert!(!edge || share > 0.95, "{n} buckets: {share:.3} of what may be");
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
    assert!((400_000..=buckets::WINDOW as u64).contains(&ands), "{ands} gates fill one window");
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
