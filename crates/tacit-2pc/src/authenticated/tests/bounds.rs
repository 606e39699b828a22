//! The sizes of buckets against their analysis, and the bytes a gate.

use super::*;
use crate::authenticated::buckets::Level;
use crate::circuit::{Builder, Uint};
use tacit_ot::silent::ferret::{Config, Lanes, Params};

fn half(n: usize) -> f64 {
    2f64.powi(-(n as i32))
}

/// What a session of `level` allows to break a window, and what it is broken with that has buckets of `b`: by a
/// cheater that leaks a triple in each row of the first check, and nothing more where they do not meet, so that
/// it goes on to the next window with chance 2^-k.
fn allowed(level: Level) -> f64 {
    half(level.bits() as usize) - half(level.message_bits() as usize - 1) - half(buckets::HALVES as usize)
}

fn of_all(n: usize, b: usize) -> f64 {
    let checked = b.min(1 + buckets::rows_at_once(n, false));
    half(b) * (n as f64).powi(1 - b as i32) / (1.0 - half(checked))
}

/// Where buckets get smaller, and what they have then.
fn sizes(level: Level, step: usize) -> Vec<(usize, usize)> {
    let mut sizes: Vec<(usize, usize)> = Vec::new();
    for n in (buckets::LEAST..=buckets::WINDOW).step_by(step) {
        let b = level.size(n);
        assert!((3..=8).contains(&b) && of_all(n, b) <= allowed(level), "{level:?}: {n} buckets of {b}");
        let fewer = b > 3 && of_all(n, b - 1) <= allowed(level);
        assert!(!fewer, "{level:?}: {n} buckets of {b} are more than are needed");
        if sizes.last().is_none_or(|&(_, last)| last != b) {
            sizes.push((n, b));
        }
    }
    sizes
}

/// proof: authenticated 6.3
#[test]
fn a_window_is_broken_with_chance_of_at_most_two_to_the_minus_forty() {
    assert_eq!(sizes(Level::ALONE, 1), [(buckets::LEAST, 5), (4376, 4), (423_689, 3)]);
    assert!(of_all(buckets::LEAST - 1, 5) > allowed(Level::ALONE));
}

/// proof: authenticated 6.4
#[test]
fn sessions_of_one_job_are_as_sure_together_as_one_alone() {
    for sessions in [1, 2, 3, 4, 5, 8, 9, 16, 64, 100, 1024, 100_000, 1 << 19] {
        let level = Level::among(sessions);
        let (guess, of_one) = (half(level.message_bits() as usize - 1), half(level.bits() as usize));
        assert!(of_one * sessions as f64 <= half(buckets::STATISTICAL as usize), "{sessions}");
        // Windows, a wrong product and a wrong half together.
        let all = allowed(level) + guess + half(buckets::HALVES as usize);
        assert!(allowed(level) > 0.0 && all <= of_one, "{sessions}");
        assert!(of_one * 2.0 * sessions as f64 > half(buckets::STATISTICAL as usize), "{sessions}");
        assert!(guess <= of_one / 8.0 && level.message_bits() <= 64, "{sessions}");
        sizes(level, 97);
    }
    assert_eq!((Level::among(1), Level::among(0)), (Level::ALONE, Level::ALONE));
    assert_eq!(Level::ALONE.message_bits(), 44);
    assert_eq!(sizes(Level::among(2), 1).last(), Some(&(5301, 4)));
}

/// How often a cheater breaks one of up to a hundred windows and is never caught, if it chooses how many
/// triples leak in each row by whether those of the checks before met.
fn broken(n: usize) -> f64 {
    const MOST_LEAKS: usize = 4;
    let (size, together) = (Level::ALONE.size(n), buckets::rows_at_once(n, false));
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

/// proof: authenticated 6.2
#[test]
fn no_way_to_spread_leaks_over_rows_and_windows_breaks_a_session_more_often() {
    let edges = [buckets::LEAST, 4376, 423_689];
    for n in [200_000, 300_000, 430_000, 457_637, 460_000, 460_001, buckets::WINDOW].into_iter().chain(edges)
    {
        let share = broken(n) / allowed(Level::ALONE);
        assert!(share <= 1.0, "{n} buckets: {share:.3} of what may be");
        // At the smallest of each size nearly all of it.
        assert!(!edges.contains(&n) || share > 0.95, "{n} buckets: {share:.3} of what may be");
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
        let windows: Vec<usize> = Level::ALONE.windows(ands).collect();
        assert_eq!(windows.iter().sum::<usize>(), ands);
        assert!(windows.iter().all(|&n| n > 0 && n <= buckets::WINDOW));
    }
    // As many in each, where all have buckets of three then.
    assert_eq!(Level::ALONE.windows(848_001).collect::<Vec<_>>(), [424_001, 424_000]);
    assert_eq!(Level::ALONE.windows(700_000).collect::<Vec<_>>(), [buckets::WINDOW, 200_000]);
}

#[test]
fn a_gate_costs_at_most_86_bytes_with_everything_included() {
    let mut builder = Builder::new();
    let (x, y): (Uint, Uint) = (builder.input(32), builder.input(32));
    let value = (0..427).fold(x, |value, _| builder.mul(&value, &y));
    let circuit = builder.finish(&[value]).unwrap();
    let function = Prepared::new(circuit, vec![Owner::Garbler, Owner::Evaluator]).unwrap();
    let ands = function.plan(1).ands();
    assert!((424_000..=buckets::WINDOW as u64).contains(&ands), "{ands} gates fill one window");
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
    assert!((72.0..=86.0).contains(&bytes), "{bytes:.1} bytes a gate");
}
