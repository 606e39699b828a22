//! Every protocol between two honest parties whose bytes somebody changes, drops, delays or cuts off on the
//! way, as on a link without TLS: each run ends with a result or an error, in bounded time and memory; nothing
//! panics; no match is made up; and correlations that a malicious check has passed hold.
//!
//! `the_runs_of_a_release` prints the table that stands in `docs/assurance.md`.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;
use tacit::catalogue::{computations, extensions};
use tacit::crypto::{BitVec, Block, Prg};
use tacit::job::eval;
use tacit::job::psi::{self, Gift, Learns, Protocol, Reveal, Revealed};
use tacit::net::Channel;
use tacit::ot::{Choice, CotReceiver, CotSender};
use tacit::two_pc::{OutputTo, Owner, Prepared};
use tacit::{Result, Security};
use tacit_net::testing::Network;
use tacit_ot::base;

/// What came of a run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Outcome {
    /// Both sides have what they would have had.
    Right,
    /// A side, or both, ended with an error.
    Refused,
    /// Both ended, and have something else: as with a peer that put in another input, or in a protocol that
    /// promises nothing against this.
    Other,
}

/// Both parties over a network.
type Run = dyn Fn(&Network) -> (Outcome, u64) + Sync;

/// A protocol with its small inputs. `run` returns what came of it and the bytes of either party.
struct Case {
    name: String,
    run: Box<Run>,
}

fn judged<T>(results: (Result<T>, Result<T>), judge: impl FnOnce(T, T) -> Outcome) -> Outcome {
    match results {
        (Ok(first), Ok(second)) => judge(first, second),
        _ => Outcome::Refused,
    }
}

fn right_if(is_right: bool) -> Outcome {
    if is_right { Outcome::Right } else { Outcome::Other }
}

/// Runs both, and adds up what the first side saw pass.
fn both<A: Send, B: Send>(
    network: &Network,
    first: impl Fn(&mut Channel) -> A + Send + Sync,
    second: impl Fn(&mut Channel) -> B + Send + Sync,
) -> (A, B, u64) {
    let counted = |channel: &mut Channel| {
        let result = first(channel);
        let stats = channel.stats();
        (result, stats.bytes_sent.max(stats.bytes_received))
    };
    let ((a, bytes), b) = network.run(counted, &second);
    (a, b, bytes)
}

fn base_ots() -> impl Iterator<Item = Case> {
    base::NAMES.into_iter().map(|name| {
        let run = move |network: &Network| {
            let base = || base::by_name(name).unwrap();
            let choices = BitVec::from_bools(&[true, false, false, true, true, false, true, false]);
            let (sent, got, bytes) = both(
                network,
                |channel| {
                    let mut out = vec![[Block::ZERO; 2]; 8];
                    base()
                        .send(channel, &mut Prg::from_os(), &mut out)
                        .map(|()| out)
                        .map_err(tacit::Error::from)
                },
                |channel| {
                    let mut out = vec![Block::ZERO; 8];
                    base().receive(channel, &mut Prg::from_os(), &choices, &mut out)?;
                    Ok::<_, tacit::Error>(out)
                },
            );
            let outcome = match (sent, got) {
                (Ok(pairs), Ok(got)) => {
                    let mut all = pairs.iter().zip(choices.iter()).zip(&got);
                    right_if(all.all(|((pair, choice), got)| pair[usize::from(choice)] == *got))
                }
                _ => Outcome::Refused,
            };
            (outcome, bytes)
        };
        Case { name: format!("base OT {name}"), run: Box::new(run) }
    })
}

fn extended() -> impl Iterator<Item = Case> {
    let levels = [Security::SemiHonest, Security::Malicious];
    let all = levels.into_iter().flat_map(|security| extensions().map(move |entry| (security, entry)));
    let fit = all.filter_map(|(security, entry)| {
        let enough = security == Security::SemiHonest || entry.security == Security::Malicious;
        enough.then(|| Some((security, entry, entry.pick(500, security, &Choice::default()).ok()?)))?
    });
    fit.map(|(security, entry, pick)| {
        let run = move |network: &Network| {
            let (sent, got, bytes) = both(
                network,
                |channel| {
                    let (base, mut prg, mut out) = (base::default(), Prg::from_os(), vec![Block::ZERO; 500]);
                    let mut sender = pick.senders(channel, &*base, &mut prg, 1)?.remove(0);
                    CotSender::extend(&mut sender, channel, &mut out)?;
                    Ok::<_, tacit::Error>((sender.delta(), out))
                },
                |channel| {
                    let (base, mut prg, mut out) = (base::default(), Prg::from_os(), vec![Block::ZERO; 500]);
                    let mut receiver = pick.receivers(channel, &*base, &mut prg, 1)?.remove(0);
                    CotReceiver::extend(&mut receiver, channel, &mut out)?;
                    Ok::<_, tacit::Error>(out)
                },
            );
            let outcome = match (sent, got) {
                (Ok((delta, v)), Ok(w)) => {
                    let mut all = v.iter().zip(&w);
                    right_if(all.all(|(v, w)| *w == *v ^ (delta & Block::mask(w.lsb()))))
                }
                _ => Outcome::Refused,
            };
            let passed = outcome == Outcome::Other && security == Security::Malicious;
            assert!(!passed, "{} passed its check with correlations that do not hold", entry.name);
            (outcome, bytes)
        };
        Case { name: format!("{} {security:?}", entry.name), run: Box::new(run) }
    })
}

fn keys(range: std::ops::Range<u32>) -> Vec<[u8; 4]> {
    range.map(u32::to_le_bytes).collect()
}

fn intersections() -> impl Iterator<Item = Case> {
    use Security::{Malicious, SemiHonest};
    let all = [
        (Protocol::Paxos, SemiHonest, Reveal::Rows),
        (Protocol::Paxos, Malicious, Reveal::Rows),
        (Protocol::Vole, SemiHonest, Reveal::Rows),
        (Protocol::Vole, Malicious, Reveal::Rows),
        (Protocol::Auto, SemiHonest, Reveal::Count),
        (Protocol::Auto, Malicious, Reveal::Count),
    ];
    all.into_iter().map(|(protocol, security, reveal)| {
        let name = format!("psi {} {} {security:?}", reveal.name(), protocol.name());
        let run = move |network: &Network| {
            let side = |learns, own: Vec<[u8; 4]>| {
                let reveal = reveal.clone();
                move |channel: &mut Channel| {
                    let job =
                        psi::Job { protocol, reveal: reveal.clone(), ..psi::Job::new(learns, security) };
                    let (base, channels) = (base::default(), std::slice::from_mut(channel));
                    job.run_with(channels, &*base, &own, Gift::None, 100, &())
                }
            };
            let (a, b, bytes) =
                both(network, side(Learns::Me, keys(0..30)), side(Learns::Peer, keys(20..50)));
            let outcome = judged((a, b), |ours, _| match ours {
                Revealed::Rows(found, _) => {
                    let found = found.matches.unwrap();
                    assert!(found.iter().all(|at| (20..30).contains(at)), "matches that are none: {found:?}");
                    right_if(found.len() == 10)
                }
                Revealed::Aggregate(found) => {
                    let count = matches!(found.result, Some(psi::Aggregate::Count(10)));
                    right_if(count)
                }
                _ => Outcome::Other,
            });
            (outcome, bytes)
        };
        Case { name, run: Box::new(run) }
    })
}

fn evaluations() -> impl Iterator<Item = Case> {
    computations().map(|entry| {
        let function = Prepared::from_function(&eval::load("add8").unwrap()).unwrap();
        let security = entry.security;
        let run = move |network: &Network| {
            let side = |role, number: u8| {
                let function = &function;
                move |channel: &mut Channel| {
                    let options = eval::Options { protocol: Some(entry), ..eval::Options::default() };
                    let job = eval::Job { function, role, output_to: OutputTo::Both, security, options };
                    let bits: Vec<bool> = (0..8).map(|i| number >> i & 1 == 1).collect();
                    let rows = [vec![BitVec::from_bools(&bits)]];
                    job.run(std::slice::from_mut(channel), &*base::default(), &rows, &())
                }
            };
            let (a, b, bytes) = both(network, side(Owner::Garbler, 77), side(Owner::Evaluator, 55));
            let outcome = judged((a, b), |a, b| {
                let of = |side: eval::Evaluated| side.outputs.map(|rows| rows[0][0].as_bytes()[0]);
                right_if((of(a), of(b)) == (Some(132), Some(132)))
            });
            (outcome, bytes)
        };
        Case { name: format!("eval {}", entry.name), run: Box::new(run) }
    })
}

fn cases() -> Vec<Case> {
    base_ots().chain(extended()).chain(intersections()).chain(evaluations()).collect()
}

/// Bytes that this process has held at most; 0 where the system does not say.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0) << 10
}

/// So many runs of each protocol, each with one to three faults that its seed draws. Returns the table.
fn campaign(runs: u64) -> String {
    let (mut table, mut all) = (String::new(), BTreeMap::<Outcome, u64>::new());
    for (at, case) in (0u64..).zip(cases()) {
        let (outcome, bytes) = (case.run)(&Network::new(at));
        assert_eq!(outcome, Outcome::Right, "{} without a fault", case.name);
        let mut counts = BTreeMap::<Outcome, u64>::new();
        let start = Instant::now();
        for run in 0..runs {
            let seed = at << 32 | run;
            let network = Network::faulty(seed, 1 + (run % 3) as usize, bytes + bytes / 8);
            let (outcome, _) = catch_unwind(AssertUnwindSafe(|| (case.run)(&network)))
                .unwrap_or_else(|_| panic!("{}, seed {seed}: {:?}", case.name, network.strikes()));
            *counts.entry(outcome).or_default() += 1;
            *all.entry(outcome).or_default() += 1;
        }
        let [right, refused, other] = [Outcome::Right, Outcome::Refused, Outcome::Other]
            .map(|outcome| counts.get(&outcome).copied().unwrap_or(0));
        println!("{}: {:?} for {runs} runs", case.name, start.elapsed());
        table += &format!("| {} | {runs} | {right} | {refused} | {other} |\n", case.name);
    }
    let total: u64 = all.values().sum();
    println!("{total} runs: {all:?}");
    assert!(peak() < 6 << 30, "{} MiB were held", peak() >> 20);
    table
}

#[test]
fn a_few_runs_of_each_protocol_end_well_whatever_happens_on_the_way() {
    campaign(3);
}

#[cfg(feature = "long-tests")]
#[test]
fn the_runs_of_a_release() {
    let runs = 4000u64.div_ceil(cases().len() as u64);
    println!(
        "| protocol | runs | right | error | other |\n| --- | --- | --- | --- | --- |\n{}",
        campaign(runs)
    );
}
