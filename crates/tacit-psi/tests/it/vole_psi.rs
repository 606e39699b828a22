//! VOLE-PSI against a plain intersection, and its parameters against the bounds recomputed.

use proptest::prelude::*;
use std::collections::HashSet;
use tacit_crypto::workers::limited;
use tacit_crypto::{Block, Prg};
use tacit_net::{Channel, memory};
use tacit_ot::{Security, base};
use tacit_psi::okvs::Store;
use tacit_psi::vole_psi::{self, Learns, MAX_ELEMENTS, Options, Outcome, Parameters, Phase};
use tacit_psi::{Error, Result, paxos};

fn party<E: AsRef<[u8]> + Sync>(
    channel: &mut Channel,
    set: &[E],
    learns: Learns,
    security: Security,
) -> Result<Outcome> {
    let base = base::default();
    let options =
        Options { learns, security, min_peer_elements: 0, max_peer_elements: 1 << 20, base: &*base };
    vole_psi::run(channel, &mut Prg::from_os(), set, &options, &mut |_, _, _| ())
}

fn converse(learns: Learns) -> Learns {
    match learns {
        Learns::Me => Learns::Peer,
        Learns::Peer => Learns::Me,
        Learns::Both => Learns::Both,
    }
}

fn plain<E: AsRef<[u8]>>(mine: &[E], theirs: &[E]) -> Vec<u32> {
    let theirs: HashSet<&[u8]> = theirs.iter().map(E::as_ref).collect();
    (0..mine.len() as u32).filter(|i| theirs.contains(mine[*i as usize].as_ref())).collect()
}

fn check<E: AsRef<[u8]> + Sync>(a: &[E], b: &[E], learns: Learns, security: Security) {
    let (first, second) = memory::run(
        |channel| party(channel, a, learns, security).unwrap(),
        |channel| party(channel, b, converse(learns), security).unwrap(),
    );
    let expected = |own: Learns, mine: &[E], theirs: &[E]| (own != Learns::Peer).then(|| plain(mine, theirs));
    assert_eq!(first.matches, expected(learns, a, b), "{} × {}", a.len(), b.len());
    assert_eq!(second.matches, expected(converse(learns), b, a), "{} × {}", a.len(), b.len());
    assert_eq!((first.peer_elements, second.peer_elements), (b.len() as u64, a.len() as u64));
}

/// Elements of `range` in an order drawn from `seed`.
fn shuffled(range: std::ops::Range<u64>, seed: u128) -> Vec<[u8; 8]> {
    let (mut set, mut prg): (Vec<_>, _) =
        (range.map(u64::to_le_bytes).collect(), Prg::from_seed(Block::new(seed)));
    for i in (1..set.len()).rev() {
        set.swap(i, prg.below(i as u64 + 1) as usize);
    }
    set
}

const ALL: [Learns; 3] = [Learns::Me, Learns::Peer, Learns::Both];
const SECURITIES: [Security; 2] = [Security::Malicious, Security::SemiHonest];

#[test]
fn sets_of_all_shapes() {
    let cases = [
        (0..0, 0..0),
        (0..0, 0..5),
        (0..5, 0..0),
        (0..1, 0..1),
        (0..1, 1..2),
        (0..2, 1..3),
        (0..3, 0..3),
        (0..2, 0..3),
        (0..1, 0..1000),
        (0..1000, 999..1000),
        (0..700, 700..1400),
        (0..6789, 3000..10_890),
    ];
    for (i, (a, b)) in cases.into_iter().enumerate() {
        let (a, b) = (shuffled(a, i as u128), shuffled(b, 100 + i as u128));
        for security in SECURITIES {
            for learns in ALL {
                check(&a, &b, learns, security);
            }
        }
    }
}

#[test]
fn sizes_around_powers_of_two() {
    for log in [2, 6, 10, 16] {
        for (i, (n, m)) in [(-1, 1), (0, 0), (1, -1)].into_iter().enumerate() {
            let size = |d: i64| ((1i64 << log) + d) as u64;
            let (a, b) = (shuffled(0..size(n), 1), shuffled(size(n) / 2..size(n) / 2 + size(m), 2));
            check(&a, &b, ALL[i], SECURITIES[(i + log) % 2]);
        }
    }
}

#[test]
fn large_sets_in_several_bins() {
    let (a, b) = (shuffled(0..200_000, 1), shuffled(150_000..220_000, 2));
    check(&a, &b, Learns::Me, Security::Malicious);
    check(&b, &a, Learns::Me, Security::SemiHonest);
    check(&a, &b, Learns::Both, Security::Malicious);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(16) })]

    /// Byte strings of many lengths, some longer than the vectorised hash takes.
    #[test]
    fn random_sets_of_byte_strings(
        a in prop::collection::hash_set(prop::collection::vec(0u8..3, 0..6), 0..100),
        b in prop::collection::hash_set(prop::collection::vec(0u8..3, 0..6), 0..100),
        long in 0usize..4,
        learns in prop::sample::select(&ALL[..]),
        malicious: bool,
    ) {
        let stretch = |set: HashSet<Vec<u8>>| -> Vec<Vec<u8>> {
            set.into_iter().map(|element| element.repeat(1 + long * 8)).collect::<HashSet<_>>().into_iter().collect()
        };
        check(&stretch(a), &stretch(b), learns, SECURITIES[1 - malicious as usize]);
    }
}

#[test]
fn several_runs_over_one_channel() {
    let (a, b) = (shuffled(0..300, 1), shuffled(200..450, 2));
    let twice = |channel: &mut Channel, set: &[[u8; 8]], learns| {
        let one = party(channel, set, learns, Security::Malicious).unwrap();
        let two = party(channel, set, converse(learns), Security::SemiHonest).unwrap();
        [one.matches, two.matches]
    };
    let (first, second) = memory::run(|c| twice(c, &a, Learns::Me), |c| twice(c, &b, Learns::Peer));
    assert_eq!(first, [Some(plain(&a, &b)), None]);
    assert_eq!(second, [None, Some(plain(&b, &a))]);
}

#[test]
fn disagreements_are_named_on_both_sides() {
    let set = shuffled(0..3, 1);
    let cases = [
        (Learns::Me, Security::Malicious, Learns::Me, Security::Malicious),
        (Learns::Both, Security::Malicious, Learns::Me, Security::Malicious),
        (Learns::Me, Security::Malicious, Learns::Peer, Security::SemiHonest),
    ];
    for (learns, security, other, other_security) in cases {
        let (a, b) = memory::run(
            |channel| party(channel, &set, learns, security),
            |channel| party(channel, &set, other, other_security),
        );
        assert!(matches!(a, Err(Error::Disagreement { .. })), "{a:?}");
        assert!(matches!(b, Err(Error::Disagreement { .. })), "{b:?}");
    }
    // Another protocol on the other side.
    let (a, b) = memory::run(
        |channel| party(channel, &set, Learns::Me, Security::Malicious),
        |channel| {
            let base = base::default();
            let (learns, security) = (Learns::Peer, Security::Malicious);
            let options =
                Options { learns, security, min_peer_elements: 0, max_peer_elements: 9, base: &*base };
            paxos::run(channel, &mut Prg::from_os(), &set, &options, &mut |_, _, _| ())
        },
    );
    assert!(matches!((a, b), (Err(Error::Disagreement { .. }), Err(Error::Disagreement { .. }))));
}

#[test]
fn duplicates_weak_base_ots_and_too_large_sets_are_refused() {
    let (mut set, other) = (shuffled(0..50, 1), shuffled(0..10, 2));
    set[49] = set[7];
    for learns in [Learns::Me, Learns::Peer] {
        let (a, b) = memory::run(
            |channel| party(channel, &set, learns, Security::Malicious),
            |channel| party(channel, &other, converse(learns), Security::Malicious),
        );
        assert!(matches!(a, Err(Error::DuplicateElement)), "{a:?}");
        assert!(matches!(b, Err(Error::Net(_) | Error::Ot(_))), "{b:?}");
    }
    let (mut channel, _peer) = memory::pair();
    let weak = base::by_name("co15").unwrap();
    let (learns, security) = (Learns::Me, Security::Malicious);
    let options = Options { learns, security, min_peer_elements: 0, max_peer_elements: 9, base: &*weak };
    let refused = vole_psi::run(&mut channel, &mut Prg::from_os(), &other, &options, &mut |_, _, _| ());
    assert!(matches!(refused, Err(Error::Usage(_))));
    let (a, _) = memory::run(
        |channel| party(channel, &other, Learns::Peer, Security::Malicious),
        |channel| {
            let mut hello = [0; 32];
            channel.recv(&mut hello).unwrap();
            hello[17] = Learns::Me as u8;
            hello[24..].copy_from_slice(&u64::MAX.to_le_bytes());
            channel.send(&hello).unwrap();
        },
    );
    assert!(matches!(a, Err(Error::PeerSetTooLarge { announced: u64::MAX, .. })), "{a:?}");
}

#[test]
fn progress_counts_up_to_each_phase_s_end() {
    let (a, b) = (shuffled(0..2000, 1), shuffled(1000..2500, 2));
    let watch = |channel: &mut Channel, set: &[[u8; 8]], learns| {
        let mut seen: Vec<(Phase, u64, u64)> = Vec::new();
        let base = base::default();
        let options = Options {
            learns,
            security: Security::Malicious,
            min_peer_elements: 0,
            max_peer_elements: 1 << 20,
            base: &*base,
        };
        let mut progress = |phase, done, total| seen.push((phase, done, total));
        vole_psi::run(channel, &mut Prg::from_os(), set, &options, &mut progress).unwrap();
        for pair in seen.windows(2) {
            assert!(pair[0].0 != pair[1].0 || (pair[0].1 <= pair[1].1 && pair[0].2 == pair[1].2));
            // A phase ends where it said it would.
            assert!(pair[0].0 == pair[1].0 || pair[0].1 == pair[0].2, "{pair:?}");
        }
        let mut phases: Vec<Phase> = seen.iter().map(|step| step.0).collect();
        phases.dedup();
        assert_eq!(phases, [Phase::Setup, Phase::Encode, Phase::Transfer, Phase::Tags, Phase::Compare]);
    };
    memory::run(|c| watch(c, &a, Learns::Me), |c| watch(c, &b, Learns::Peer));
}

/// For one pair of sizes, both views have the same numbers of bytes whatever the sets are.
#[test]
fn lengths_depend_on_sizes_alone() {
    let lengths = |common: u64, security| {
        let (a, b) = (shuffled(0..900, 1), shuffled(900 - common..1700 - common, 2));
        let (a, b) = memory::run(
            |channel| {
                party(channel, &a, Learns::Me, security).unwrap();
                channel.stats().bytes_sent
            },
            |channel| {
                party(channel, &b, Learns::Peer, security).unwrap();
                channel.stats().bytes_sent
            },
        );
        (a, b)
    };
    for security in SECURITIES {
        assert_eq!(lengths(0, security), lengths(700, security));
    }
}

/// proof: vole-psi 7.1
#[test]
fn parameters_give_40_bits() {
    let sizes = [1usize, 2, 100, 2048, 1 << 12, 1 << 16, (1 << 16) + 1, 1 << 20, MAX_ELEMENTS];
    for security in SECURITIES {
        for n in sizes {
            for m in sizes {
                let p = Parameters::new(n, m, security).unwrap();
                assert!(p.statistical_error_log2() <= -40.0, "{n} × {m}: {}", p.statistical_error_log2());
                let (bits, n, m) = (p.tag_bits() as f64, n as f64, m as f64);
                assert!((m * m / 2.0).log2() - bits <= -40.0 && (m * n).log2() - bits <= -40.0);
                assert!(p.tag_bits() <= 128 && p.shape().failure_log2() <= -40.0);
            }
        }
    }
    assert!(Parameters::new(MAX_ELEMENTS + 1, 1, Security::Malicious).is_err());
    // What 2^20 elements cost on both ways, VOLE apart.
    for (security, most) in [(Security::SemiHonest, 30_300_000), (Security::Malicious, 36_600_000)] {
        let p = Parameters::new(1 << 20, 1 << 20, security).unwrap();
        assert!(
            16 * p.shape().slots() + p.tags_bytes() < most,
            "{}",
            16 * p.shape().slots() + p.tags_bytes()
        );
    }
}

/// What a party holds grows with its elements alone, but for the runs' share: 400 MB and 1.6 GB are the aims,
/// of which the elements take 134 and 537 MB. Each further thread has a bin of its own.
#[test]
fn memory_is_linear_and_below_the_aims() {
    let on = |threads, log: u32| {
        let parameters = Parameters::new(1 << log, 1 << log, Security::Malicious).unwrap();
        limited(threads, || parameters.memory(Learns::Me))
    };
    let held = |log| on(1, log);
    for (log, most) in [(20, 130), (22, 256), (24, 840)] {
        assert!(held(log).into_iter().all(|bytes| bytes < most << 20), "2^{log}: {:?}", held(log));
    }
    let [one, two, three] = [1, 2, 3].map(|threads| on(threads, 22)[0]);
    assert!(two - one == three - two && (1 << 20..32 << 20).contains(&(two - one)), "{one}, {two}, {three}");
    let of = |own, peer| {
        let parameters = Parameters::new(own, peer, Security::Malicious).unwrap();
        limited(1, || parameters.memory(Learns::Me))
    };
    let ([receiver, _], [_, sender]) = (of(1000, 1 << 24), of(1 << 24, 1000));
    // The peer's elements cost nothing but a run of the store.
    assert!(receiver < 20 << 20 && sender < 150 << 20, "{receiver} and {sender}");
}

/// Peaks in MB of a receiver on two threads against more keys than its own, over what it held before: of that the process
/// itself takes five at most.
#[test]
fn memory_against_a_larger_set_is_what_was_measured() {
    let peaks = [(20, 24, 440.5), (18, 21, 88.1), (17, 21, 61.7), (10, 22, 14.5)];
    for (own, peer, peak) in peaks {
        let parameters = Parameters::new(1 << own, 1 << peer, Security::Malicious).unwrap();
        let told = limited(2, || parameters.memory(Learns::Me))[0] as f64 / 1e6;
        assert!(told + 5.0 >= peak && told <= 1.1 * peak, "2^{own} and 2^{peer}: {told}");
    }
}

/// log2 of the binomial coefficient, exactly summed.
fn log2_choose(log2_q: f64, n: u64) -> f64 {
    // q is so much larger than n that q!/(q − n)! = q^n to any precision used here.
    log2_q * n as f64 - (1..=n).map(|i| (i as f64).log2()).sum::<f64>()
}

/// proof: vole-psi 3.3, 4.3
#[test]
fn the_bounds_on_cheaters() {
    for (n, queries, most) in [
        (1, 60.0, 2.1),
        (1, 80.0, 3.1),
        (10, 60.0, 1.81),
        (100, 60.0, 1.74),
        (100, 80.0, 2.4),
        (1000, 60.0, 1.68),
        (2048, 80.0, 4.0),
        (1 << 16, 60.0, 2.1),
        (1 << 20, 60.0, 1.9),
        (1 << 20, 80.0, 2.5),
    ] {
        let p = Parameters::new(n, n, Security::Malicious).unwrap();
        let encodable = p.encodable(queries);
        let ratio = encodable as f64 / n as f64;
        println!("{n} elements, 2^{queries} hash calls: {encodable}, {ratio:.2} times as many");
        assert!(ratio < most && encodable >= n as u64, "{n}: {ratio}");
        // One more element is out of reach, by the exact binomial.
        let beyond = encodable + 1;
        let chance = log2_choose(queries, beyond) - (beyond - p.shape().slots() as u64) as f64 * 128.0;
        assert!(chance <= -40.0, "{n}: {chance}");
        let testable = p.testable(queries);
        // No tag stands for more than one more.
        let more = |most: usize| n.min(most) as u64;
        let expected = if queries == 60.0 { n as u64 + more(4) } else { 2 * n as u64 + more(2) };
        assert_eq!(testable, expected, "{n} elements, 2^{queries} hash calls");
    }
    // One slot an element up to a thousand of them, as long as that is no work for a large sender.
    for (receiver, sender, is_small) in [
        (1, 1 << 24, true),
        (1000, 1 << 20, true),
        (1024, 1024, true),
        (1000, 1 << 24, false),
        (1025, 10, false),
    ] {
        let p = Parameters::new(receiver, sender, Security::Malicious).unwrap();
        assert_eq!(p.shape().slots() == receiver, is_small, "{receiver} x {sender}");
        assert_eq!(vole_psi::is_small(receiver as u64, sender as u64), is_small);
    }
    let of_one = Parameters::new(1, 1000, Security::Malicious).unwrap();
    assert_eq!([60.0, 80.0].map(|queries| of_one.encodable(queries)), [2, 3]);
    let p = Parameters::new(9, 9, Security::Malicious).unwrap();
    assert_eq!(p.testable(30.0), 9);
    assert!(p.testable(90.0) > 18);
}

/// Runs that share one bound keep to it together, up to the most of them, and no run more is admitted.
///
/// proof: vole-psi 7.1
#[test]
fn many_runs_together_err_as_rarely_as_one() {
    for security in SECURITIES {
        for n in [1usize, 100, 2048, 1 << 16, (1 << 16) + 1, 1 << 18, 1 << 20, MAX_ELEMENTS] {
            let one = Parameters::new(n, n, security).unwrap();
            assert_eq!(one, Parameters::one_of(n, n, security, 0).unwrap());
            for runs in [1, 6, vole_psi::MAX_RUNS_LOG2] {
                let p = Parameters::one_of(n, n, security, runs).unwrap();
                let all = p.statistical_error_log2() + f64::from(runs);
                assert!(all <= -40.0, "{n}, 2^{runs} runs: {all}");
                assert!(p.shape().failure_log2() + f64::from(runs) <= -40.0);
                assert!(p.shape().slots() >= one.shape().slots());
            }
            let more = vole_psi::MAX_RUNS_LOG2 + 1;
            assert!(Parameters::one_of(n, n, security, more).is_err());
        }
    }
}
