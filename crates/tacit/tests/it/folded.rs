//! Numbers over so many common keys that rows are folded, against plain computation, on both sides of the size from
//! which they are.

use std::collections::HashMap;
use std::time::Duration;
use tacit::job::psi::{Bounds, Each, Found, Gift, Job, Learns, Reveal, Revealed, Statistic, Total};
use tacit::net::{Channel, LinkModel, Party, SessionId, memory};
use tacit::plan::{Candidate, Link, Machine};
use tacit::two_pc::circuit::{Aggregate, named};
use tacit::{Result, Security};
use tacit_ot::base::default as base;

/// Keys, and of each a number.
type Set = Vec<(u64, i64)>;

fn run(job: &Job, channel: &mut Channel, set: &Set, gives: bool) -> Result<Revealed> {
    let keys: Vec<[u8; 8]> = set.iter().map(|(key, _)| key.to_le_bytes()).collect();
    let numbers: Vec<i64> = set.iter().map(|(_, number)| *number).collect();
    let gift = if gives { Gift::Numbers(&numbers) } else { Gift::None };
    job.run_with(std::slice::from_mut(channel), &*base(), &keys, gift, 1 << 20, &())
}

/// What both sides make of it, the first of which listens.
fn both(jobs: &[Job; 2], sets: [&Set; 2], gives: [bool; 2]) -> [Result<Revealed>; 2] {
    memory::run(
        |channel| run(&jobs[0], channel, sets[0], gives[0]),
        |channel| run(&jobs[1], channel, sets[1], gives[1]),
    )
    .into()
}

fn job(reveal: Reveal, learns: Learns, gives: bool) -> Job {
    let give = if gives { vec!["amount".to_owned()] } else { Vec::new() };
    Job { reveal, give, ..Job::new(learns, Security::SemiHonest) }
}

/// Keys from `first` on; numbers of both signs, many of them equal, and some missing.
fn set(keys: std::ops::Range<u64>, absent: i64) -> Set {
    let number = |key: u64| match key % 7 {
        0 => absent,
        _ => (key * 2_654_435_761 % 1001) as i64 - 500,
    };
    keys.map(|key| (key, number(key))).collect()
}

fn common(ours: &Set, theirs: &Set) -> Vec<[i64; 2]> {
    let theirs: HashMap<u64, i64> = theirs.iter().copied().collect();
    ours.iter().filter_map(|(key, number)| Some([*number, *theirs.get(key)?])).collect()
}

fn expected(statistic: Statistic, numbers: &[i64], least: usize) -> Found {
    if numbers.len() < least {
        return Found::Withheld;
    }
    let found = match statistic {
        Statistic::Max => numbers.iter().max().copied(),
        Statistic::Min => numbers.iter().min().copied(),
        Statistic::Over(limit) => Some(numbers.iter().filter(|&&number| number > limit).count() as i64),
    };
    found.filter(|_| !numbers.is_empty()).map_or(Found::Nothing, Found::Number)
}

#[test]
fn statistics_of_few_and_of_many_keys_are_those_of_the_common_ones() {
    let cases = [
        // The smaller set decides: 1,024 keys are garbled, 1,025 folded.
        (0..1024, 500..2600),
        (0..1025, 500..2600),
        (0..4097, 3000..7096),
        (0..1200, 5000..6300),
        (0..1100, 0..1100),
    ];
    for (at, (ours, theirs)) in cases.into_iter().enumerate() {
        for statistic in [Statistic::Max, Statistic::Min, Statistic::Over(-20)] {
            let (ours, theirs) = (set(ours.clone(), statistic.absent()), set(theirs.clone(), 0));
            let numbers: Vec<i64> = common(&ours, &theirs)
                .iter()
                .map(|[ours, _]| *ours)
                .filter(|n| *n != statistic.absent())
                .collect();
            // To the other side; enough, or one too few.
            for least in [numbers.len(), numbers.len() + 1] {
                let reveal = Reveal::Of(statistic, "amount".into());
                let jobs = [(Learns::Peer, true), (Learns::Me, false)].map(|(learns, gives)| {
                    let least = least as u64;
                    Job { min_matches: least, ..job(reveal.clone(), learns, gives) }
                });
                // Either side may listen, and either may hold the table.
                let [owner, other] = match at % 2 {
                    0 => both(&jobs, [&ours, &theirs], [true, false]),
                    _ => {
                        let [one, two] = jobs;
                        let [other, owner] = both(&[two, one], [&theirs, &ours], [false, true]);
                        [owner, other]
                    }
                };
                assert!(matches!(owner, Ok(Revealed::Statistic(None, _))));
                let Ok(Revealed::Statistic(Some(found), keys)) = other else { panic!("{at}") };
                assert_eq!(found, expected(statistic, &numbers, least), "{at} {statistic:?} {least}");
                assert_eq!(keys, ours.len() as u64);
            }
        }
    }
}

/// The owner's own numbers come back to it within bounds, by both sides' word.
#[test]
fn bounds_hold_where_an_owner_gets_what_is_folded() {
    let (ours, theirs) = (set(0..1500, i64::MIN), set(300..1900, 0));
    let bounds = Some(Bounds::new(-7, 9).unwrap());
    let jobs = [true, false].map(|gives| Job {
        bounds,
        result_to_owner: true,
        ..job(Reveal::Of(Statistic::Max, "amount".into()), Learns::Both, gives)
    });
    for side in both(&jobs, [&ours, &theirs], [true, false]) {
        assert!(matches!(side, Ok(Revealed::Statistic(Some(Found::Number(9)), _))));
    }
}

/// A function, what is made of it, bounds, whether both sides give numbers, and the value of a key.
type Case = (&'static str, Aggregate, Option<[i64; 2]>, bool, fn(i64, i64) -> i128);

#[test]
fn totals_of_functions_are_folded_and_keep_bounds_flags_and_signs() {
    let (widest, narrow) = (Some([i64::MIN, i64::MAX]), Some([-40, 300]));
    let cases: [Case; 7] = [
        ("add64", Aggregate::Sum, None, false, |x, _| (x as u64).into()),
        ("add64", Aggregate::Sum, widest, true, |x, y| (x.wrapping_add(y) as u64).into()),
        ("add64", Aggregate::Sum, narrow, true, |x, y| (x.wrapping_add(y) as u64).into()),
        ("signed-min32", Aggregate::Sum, narrow, true, |x, y| x.min(y).into()),
        ("signed-min32", Aggregate::Sum, None, false, |x, _| x.min(0).into()),
        ("signed-lt32", Aggregate::Count, None, true, |x, y| (x < y).into()),
        ("checked-add8", Aggregate::Sum, widest, true, |x, y| ((x + y) & 255).into()),
    ];
    for (ours, theirs) in [(0..1000, 200..1500), (0..1300, 200..1500), (0..1100, 4000..5100)] {
        let (ours, theirs) = (set(ours, 0), set(theirs, 3));
        let pairs = common(&ours, &theirs);
        for (name, total, bounds, give_both, of) in cases {
            let each = Some(Each::new(named::find(name).unwrap(), None, total, false).unwrap());
            let bounds = bounds.map(|[least, most]| Bounds::new(least, most).unwrap());
            let clipped = |value: i128| bounds.map_or(value, |bounds| i128::from(bounds.clip(value)));
            let value = pairs.iter().map(|&[x, y]| clipped(of(x, y))).sum();
            let overflow = pairs.iter().any(|[x, y]| (x & 255) + (y & 255) > 255);
            let flags = if overflow && name == "checked-add8" { vec!["overflow"] } else { vec![] };
            for (more, expected) in [(0, Total::Of { value, flags }), (1, Total::Withheld)] {
                // The second side gets it.
                let jobs = [(Learns::Peer, true), (Learns::Me, give_both)].map(|(learns, gives)| Job {
                    each: each.clone(),
                    bounds,
                    result_to_owner: give_both,
                    min_matches: pairs.len() as u64 + more,
                    ..job(Reveal::Shares, learns, gives)
                });
                let [first, second] = both(&jobs, [&ours, &theirs], [true, give_both]);
                assert!(matches!(first, Ok(Revealed::Total(None, _))), "{name}");
                let Ok(Revealed::Total(Some(found), _)) = second else { panic!("{name}") };
                assert_eq!(found, expected, "{name} {give_both} {}", pairs.len());
            }
        }
    }
}

/// Two functions, or two least numbers of matches, are told apart before anything is opened.
#[test]
fn folds_that_differ_are_refused() {
    let sets = (set(0..1100, i64::MIN), set(0..1200, 0));
    let of = |limit, least, learns, gives| Job {
        min_matches: least,
        ..job(Reveal::Of(Statistic::Over(limit), "amount".into()), learns, gives)
    };
    for (limit, least) in [(4, 1), (3, 2)] {
        let jobs = [of(3, 1, Learns::Peer, true), of(limit, least, Learns::Me, false)];
        for side in both(&jobs, [&sets.0, &sets.1], [true, false]) {
            let error = side.err().unwrap().to_string();
            assert!(error.contains("different functions"), "{error}");
        }
    }
}

/// The kind of a frame of data; one of another kind ends a channel, by whichever side is the first to leave.
const DATA: u8 = 0xD7;

/// The lengths of the frames that either side sends, in order.
fn view(jobs: &[Job; 2], sets: [&Set; 2], gives: [bool; 2]) -> [Vec<usize>; 2] {
    let records = [(); 2].map(|()| memory::Record::default());
    let (one, other) = memory::links(LinkModel::LOOPBACK);
    let end = |link, party| Channel::new(link, party, SessionId([7; 32]));
    memory::join(
        end(records[0].of(one), Party::First),
        end(records[1].of(other), Party::Second),
        |channel| run(&jobs[0], channel, sets[0], gives[0]).map(|_| ()).unwrap(),
        |channel| run(&jobs[1], channel, sets[1], gives[1]).map(|_| ()).unwrap(),
    );
    let length = |(kind, frame): (u8, Vec<u8>)| (kind == DATA).then_some(frame.len());
    records.map(|record| record.frames().into_iter().filter_map(length).collect())
}

/// Frames and their lengths follow from the sizes of both sets, whatever matches, whatever the numbers are, and whether
/// the result is withheld.
#[test]
fn what_is_sent_follows_from_the_sizes() {
    let each = Each::new(named::find("signed-min32").unwrap(), None, Aggregate::Sum, false).unwrap();
    let reveals = [
        (Reveal::Of(Statistic::Max, "amount".into()), None),
        (Reveal::Of(Statistic::Over(3), "amount".into()), None),
        (Reveal::Shares, Some(each)),
    ];
    for (reveal, each) in reveals {
        // One garbled circuit, and a fold.
        for (ours, theirs) in [(90, 70), (1100, 1300)] {
            let jobs = [(Learns::Peer, true), (Learns::Me, false)].map(|(learns, gives)| Job {
                each: each.clone(),
                min_matches: 5,
                ..job(reveal.clone(), learns, gives)
            });
            let all = ours.min(theirs);
            let numbers: [fn(u64) -> i64; 3] = [|key| key as i64 - 50, |_| i64::MIN, |_| i64::from(i32::MAX)];
            let mut views = Vec::new();
            for (common, number) in [0, 4, 5, all, all].into_iter().zip(numbers.into_iter().cycle()) {
                let ours: Set = (0..ours).map(|key| (key, number(key))).collect();
                let theirs: Set =
                    (ours.len() as u64 - common..).take(theirs as usize).map(|k| (k, 0)).collect();
                views.push(view(&jobs, [&ours, &theirs], [true, false]));
            }
            assert!(views[0].iter().all(|frames| frames.len() > 10), "{} {ours}", reveal.name());
            for (at, other) in views.iter().enumerate() {
                assert!(*other == views[0], "{} {ours}: view {at} differs", reveal.name());
            }
        }
    }
}

/// Whether rows are garbled or folded, and over IKNP or Ferret: forecasts of bytes and rounds are those of runs.
#[test]
fn forecasts_of_numbers_on_shares_are_those_of_runs() {
    let link = Link { megabits: 100.0, round_trip: Duration::from_millis(40) };
    let each = |name, total| Some(Each::new(named::find(name).unwrap(), None, total, false).unwrap());
    let of = |statistic| (Reveal::Of(statistic, "amount".into()), None);
    let shares = (Reveal::Shares, each("signed-lt32", Aggregate::Count));
    let mut off = Vec::new();
    for (keys, kinds) in [
        (300, vec![of(Statistic::Max), of(Statistic::Over(5)), shares.clone()]),
        (1000, vec![of(Statistic::Max)]),
        (1100, vec![of(Statistic::Max), of(Statistic::Min), of(Statistic::Over(5)), shares.clone()]),
        (3000, vec![of(Statistic::Max), of(Statistic::Over(5)), shares.clone()]),
        (5000, vec![of(Statistic::Max), of(Statistic::Over(5)), shares]),
        (20_000, vec![of(Statistic::Max)]),
    ] {
        for (reveal, each) in kinds {
            let name = format!("{} of {keys}", reveal.name());
            let jobs = [(Learns::Peer, true), (Learns::Me, each.is_some())].map(|(learns, gives)| Job {
                result_to_owner: each.is_some(),
                each: each.clone(),
                ..job(reveal.clone(), learns, gives)
            });
            let forecast = jobs[0].estimate(keys, &link, &Machine::REFERENCE).unwrap().remove(0);
            let (ours, theirs) = (set(0..keys, 0), set(keys / 2..keys + keys / 2, 0));
            let side = |at: usize, channel: &mut Channel, set: &Set| {
                run(&jobs[at], channel, set, at == 0 || each.is_some()).map(|_| channel.stats())
            };
            let (a, b) = memory::run(|channel| side(0, channel, &ours), |channel| side(1, channel, &theirs));
            let (a, b) = (a.unwrap(), b.unwrap());
            let (bytes, rounds) = (a.bytes_sent + a.bytes_received, a.rounds.max(b.rounds));
            let far = |told: u64, ran: u64| (told as f64 / ran as f64 - 1.0).abs() > 0.15;
            if far(forecast.bytes, bytes) || far(forecast.rounds, rounds) {
                let Candidate { bytes: told, rounds: told_rounds, .. } = forecast;
                off.push(format!("{name}: bytes {told} {bytes}, rounds {told_rounds} {rounds}"));
            }
        }
    }
    assert!(off.is_empty(), "told and run:\n{}", off.join("\n"));
}
