//! PaXoS against a plain intersection, and its parameters against the bounds recomputed.

use proptest::prelude::*;
use std::collections::HashSet;
use tacit_crypto::{Block, Prg};
use tacit_net::{Channel, memory};
use tacit_ot::{Security, base};
use tacit_psi::paxos::{self, Learns, MAX_ELEMENTS, Options, Outcome, Parameters, Phase};
use tacit_psi::{Error, Result};

fn options(base: &dyn tacit_ot::BaseOt, learns: Learns, security: Security) -> Options<'_> {
    Options { learns, security, min_peer_elements: 0, max_peer_elements: 1 << 20, base }
}

fn party<E: AsRef<[u8]>>(
    channel: &mut Channel,
    set: &[E],
    learns: Learns,
    security: Security,
) -> Result<Outcome> {
    let base = base::default();
    paxos::run(channel, &mut Prg::from_os(), set, &options(&*base, learns, security), &mut |_, _, _| ())
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
    assert_eq!(first.matches, expected(learns, a, b));
    assert_eq!(second.matches, expected(converse(learns), b, a));
    assert_eq!((first.peer_elements, second.peer_elements), (b.len() as u64, a.len() as u64));
}

fn numbers(range: std::ops::Range<u64>) -> Vec<[u8; 8]> {
    range.map(u64::to_le_bytes).collect()
}

/// Elements of `range` in an order drawn from `seed`.
fn shuffled(range: std::ops::Range<u64>, seed: u128) -> Vec<[u8; 8]> {
    let (mut set, mut prg) = (numbers(range), Prg::from_seed(Block::new(seed)));
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
        (0..1, 0..1000),
        (0..1000, 999..1000),
        (0..700, 700..1400),
        (0..700, 0..700),
        (0..100, 50..3000),
        (0..3000, 2950..3010),
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
fn large_sets_in_several_chunks() {
    // 2.04·200,000 slots are two chunks; the other set is unequal.
    let (a, b) = (shuffled(0..200_000, 1), shuffled(150_000..220_000, 2));
    check(&a, &b, Learns::Me, Security::Malicious);
    check(&b, &a, Learns::Me, Security::SemiHonest);
    check(&a, &b, Learns::Both, Security::Malicious);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(24) })]

    #[test]
    fn random_sets_of_byte_strings(
        a in prop::collection::hash_set(prop::collection::vec(0u8..3, 0..6), 0..150),
        b in prop::collection::hash_set(prop::collection::vec(0u8..3, 0..6), 0..150),
        learns in prop::sample::select(&ALL[..]),
        malicious: bool,
    ) {
        let (a, b): (Vec<_>, Vec<_>) = (a.into_iter().collect(), b.into_iter().collect());
        check(&a, &b, learns, SECURITIES[1 - malicious as usize]);
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
    let set = numbers(0..3);
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
}

#[test]
fn a_larger_set_than_allowed_is_refused_before_anything_is_allocated() {
    let (a, _) = memory::run(
        |channel| party(channel, &numbers(0..3), Learns::Peer, Security::Malicious),
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
fn duplicates_and_weak_base_ots_are_refused() {
    let (mut set, other) = (numbers(0..50), numbers(0..10));
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
    let options = options(&*weak, Learns::Me, Security::Malicious);
    let refused = paxos::run(&mut channel, &mut Prg::from_os(), &other, &options, &mut |_, _, _| ());
    assert!(matches!(refused, Err(Error::Usage(_))));
}

#[test]
fn progress_counts_up_to_each_phase_s_end() {
    let (a, b) = (numbers(0..2000), numbers(1000..2500));
    let watch = |channel: &mut Channel, set: &[[u8; 8]], learns| {
        let mut seen: Vec<(Phase, u64, u64)> = Vec::new();
        let base = base::default();
        let options = options(&*base, learns, Security::Malicious);
        let mut progress = |phase, done, total| seen.push((phase, done, total));
        paxos::run(channel, &mut Prg::from_os(), set, &options, &mut progress).unwrap();
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

/// The parameters again, from the issue of ROTed's section 6.2 and from the bounds.
#[test]
fn parameters_give_40_bits() {
    let papers = Parameters::new(2048, 2048, Security::Malicious).unwrap();
    assert_eq!((papers.code_length(), papers.code_dimension()), (768, 231));
    assert_eq!(papers.shape().slots(), 2 * 2549 + 60);
    let sizes = [1usize, 2, 100, 2048, 4095, 1 << 12, 1 << 16, 1 << 20, MAX_ELEMENTS];
    for security in SECURITIES {
        for n in sizes {
            for m in sizes {
                let p = Parameters::new(n, m, security).unwrap();
                assert!(p.statistical_error_log2() <= -40.0, "{n} × {m}: {}", p.statistical_error_log2());
                let (bits, n, m) = (8.0 * p.tag_bytes() as f64, n as f64, m as f64);
                // Tags: the sender's with one another, and with the receiver's; H1 by chance; equal keys.
                assert!((m * m / 2.0).log2() - bits <= -40.0 && (m * n).log2() - bits <= -40.0);
                assert!(m.log2() - p.code_dimension() as f64 <= -61.0);
                assert!((n * n / 2.0).log2() - 128.0 <= -80.0);
                assert!(p.tag_bytes() <= 32);
            }
        }
    }
    assert!(Parameters::new(MAX_ELEMENTS + 1, 1, Security::Malicious).is_err());
}

/// log2 of the binomial coefficient, exactly summed.
fn log2_choose(log2_q: f64, n: u64) -> f64 {
    // q is so much larger than n that q!/(q − n)! = q^n to any precision used here.
    log2_q * n as f64 - (1..=n).map(|i| (i as f64).log2()).sum::<f64>()
}

#[test]
fn the_bound_on_a_cheating_receiver() {
    for (n, queries, most) in [
        (100, 128.0, 6.6),
        (2048, 128.0, 5.1),
        (2048, 80.0, 3.6),
        (1 << 16, 128.0, 4.3),
        (1 << 20, 128.0, 4.0),
        (1 << 20, 80.0, 2.9),
        (1 << 24, 128.0, 3.9),
    ] {
        let p = Parameters::new(n, 1, Security::Malicious).unwrap();
        let encodable = p.encodable(queries);
        let ratio = encodable as f64 / n as f64;
        println!("{n} elements, 2^{queries} hash calls: {encodable}, {ratio:.2} times as many");
        assert!(ratio < most, "{n}: {ratio}");
        if n <= 1 << 20 {
            // One more element is out of reach, by the exact binomial.
            let beyond = encodable + 1;
            let chance = log2_choose(queries, beyond) - (beyond - p.shape().slots() as u64) as f64 * 231.0;
            assert!(chance <= -40.0, "{n}: {chance}");
        }
    }
}
