//! What an intersection promises before it runs: memory, bounds on a cheating peer, and words.

use super::*;

const LEARNS: [Learns; 3] = [Learns::Me, Learns::Peer, Learns::Both];

/// The search for the largest set that fits rests on it.
#[test]
fn more_keys_never_need_less_memory() {
    for security in [Security::Malicious, Security::SemiHonest] {
        for learns in LEARNS {
            let job = Job::new(learns, security);
            let mut last = 0;
            for keys in (0..24).flat_map(|log| [1u64 << log, (1 << log) + (1 << log) / 2]) {
                let needed = job.memory(100_000, keys);
                assert!(needed >= last, "{learns:?}, {keys}");
                assert!(needed <= job.memory(100_001, keys));
                last = needed;
            }
        }
    }
}

/// The same of folds, on a busy machine: what is told never falls as sets grow, so it holds what the largest garbled
/// circuit takes.
#[test]
fn what_folds_hold_is_what_was_measured() {
    let max = Reveal::Of(Statistic::Max, "amount".into());
    let job = Job { reveal: max, ..Job::new(Learns::Both, Security::SemiHonest) };
    for (log2_keys, peak) in [(12, 58.7), (16, 105.2), (18, 179.1), (20, 500.2)] {
        let told = job.memory(1 << log2_keys, 1 << log2_keys) as f64 / 1e6;
        assert!(told >= peak && told <= 1.25 * peak + 110.0, "2^{log2_keys}: {told}");
    }
}

/// Peaks of `tacit psi` in MB, measured with as many keys on both sides: of the larger of the two
/// processes.
#[test]
fn what_numbers_over_common_keys_hold_is_what_was_measured() {
    let sum = Reveal::Sum("amount".into());
    let max = Reveal::Of(Statistic::Max, "amount".into());
    let peaks = [
        (&sum, 14, 37.7),
        (&sum, 16, 68.4),
        (&sum, 18, 171.5),
        (&sum, 20, 531.4),
        (&sum, 22, 1910.5),
        (&max, 8, 54.4),
    ];
    for (reveal, log2_keys, peak) in peaks {
        let job = Job { reveal: reveal.clone(), ..Job::new(Learns::Both, Security::SemiHonest) };
        let told = job.memory(1 << log2_keys, 1 << log2_keys) as f64 / 1e6;
        assert!(told >= peak && told <= 1.25 * peak + 25.0, "{} of 2^{log2_keys}: {told}", reveal.name());
    }
}

/// Peaks in MB of the side that learns, against a peer with more keys: its tags are held up to sixteen for each own
/// key.
#[test]
fn what_a_larger_peer_takes_is_what_was_measured() {
    let peaks =
        [(Protocol::Vole, 17, 21, 79.0), (Protocol::Vole, 20, 24, 480.1), (Protocol::Paxos, 18, 22, 203.8)];
    for (protocol, own, peer, peak) in peaks {
        let job = Job { protocol, ..Job::new(Learns::Me, Security::Malicious) };
        let told = job.memory(1 << own, 1 << peer) as f64 / 1e6;
        assert!(told >= peak && told <= 1.25 * peak + 25.0, "{protocol:?}, 2^{own} and 2^{peer}: {told}");
    }
}

#[test]
fn the_peer_may_have_what_memory_has_room_for() {
    let job = |asked, learns| Job { most_peer_keys: asked, ..Job::new(learns, Security::Malicious) };
    let most = |asked, learns, available| job(asked, learns).most_peer_keys(1000, available);
    for learns in LEARNS {
        assert_eq!(most(None, learns, None), MAX_ELEMENTS as u64);
        assert_eq!(most(Some(77), learns, None), 77);
        assert_eq!(most(Some(77), learns, Some(1 << 40)), 77);
        assert_eq!(most(Some(u64::MAX), learns, Some(1 << 40)), MAX_ELEMENTS as u64);
        assert_eq!(most(None, learns, Some(1 << 20)), 0);
    }
    // A sender holds rows for the peer's store; a receiver holds nothing of the peer's.
    let limited = most(None, Learns::Peer, Some(100 << 20));
    assert!((100_000..1_000_000).contains(&limited), "{limited}");
    assert!(job(None, Learns::Peer).memory(1000, limited) <= 100 << 20);
    assert!(job(None, Learns::Peer).memory(1000, limited + 1) > 100 << 20);
    assert_eq!(most(Some(10), Learns::Peer, Some(100 << 20)), 10);
    assert_eq!(most(Some(10_000_000), Learns::Peer, Some(100 << 20)), limited);
    assert_eq!(most(None, Learns::Me, Some(100 << 20)), MAX_ELEMENTS as u64);
}

/// Who announces one key, or ten, and cheats tests hardly more: by `auto`, whose pick the sizes settle, and
/// as a service charges.
#[test]
fn a_small_set_of_the_peers_tests_a_few_keys() {
    for learns in [Learns::Peer, Learns::Both] {
        let job = Job::new(learns, Security::Malicious);
        for (announced, likely, most) in [(1, 2, 3), (10, 18, 25), (100, 173, 235)] {
            for own in [1000, 1_000_000] {
                assert_eq!(job.settled(own, announced), Some(Protocol::Vole));
                let tested = job.ahead(announced, own).unwrap();
                assert_eq!((tested.likely, tested.most), (likely, most), "{learns:?}, {announced}");
                assert_eq!(job.reveals_at_most(own, announced).unwrap(), most);
            }
        }
        let words = job.will_learn(1000, 1).unwrap();
        let told = "nothing else if it follows the protocol. If it announces 1 key and cheats, it can test \
                    more keys than that: 2 with 2^60 hash calls, and 3 with 2^80";
        assert!(words.ends_with(told), "{words}");
        let why = job.why(Protocol::Vole, [1000, 1], None).unwrap();
        assert!(why.contains("fewer keys"), "{why}");
    }
    // Against a peer that keeps to the protocol the faster one runs, and with a large set the sender has
    // too much to look up.
    let settled = |job: Job, own, peer| job.settled(own, peer);
    assert_eq!(settled(Job::new(Learns::Both, Security::SemiHonest), 500, 500), Some(Protocol::Paxos));
    assert_eq!(settled(Job::new(Learns::Me, Security::Malicious), 3, 1 << 24), Some(Protocol::Vole));
    // The smaller set's owner receives where both learn; a large sender's tags stand for few keys more.
    let tested = Job::new(Learns::Both, Security::Malicious).ahead(1000, 1).unwrap();
    assert_eq!((tested.likely, tested.most), (1004, 2002));
}

/// What is said before a run and after it: nothing of a result to a side that gets none, a bound where
/// there is one, and no promise where there is none.
#[test]
fn what_the_other_side_learns_is_said_for_the_result_and_the_level() {
    let outcome = |received| Outcome {
        matches: None,
        peer_elements: 500,
        peer_received: received,
        protocol: PAXOS.name,
    };
    for protocol in [Protocol::Auto, Protocol::Paxos, Protocol::Vole] {
        for learns in LEARNS {
            let job = Job { protocol, ..Job::new(learns, Security::Malicious) };
            let gets = learns != Learns::Me;
            let before = job.will_learn(700, 700).unwrap();
            let after = job.has_learned(700, &outcome(true)).unwrap();
            let tested = job.tested(&outcome(true), 700).unwrap();
            assert_eq!(tested.is_some(), gets);
            for words in [&before, &after] {
                assert!(words.contains("700 distinct keys"), "{words}");
                assert_eq!(words.contains("which of its own keys"), gets, "{words}");
            }
            if let Some(tested) = tested {
                assert!(500 < tested.likely && tested.likely <= tested.most, "{tested:?}");
                assert!(after.contains("announced 500") && after.contains(&tested.words()), "{after}");
            }
            let job = Job { security: Security::SemiHonest, ..job };
            assert!(job.tested(&outcome(true), 700).unwrap().is_none());
            let words = job.has_learned(700, &outcome(true)).unwrap();
            assert!(words.contains("nothing is promised") && !words.contains("2^"), "{words}");
        }
    }
    let job = Job::new(Learns::Both, Security::Malicious);
    assert!(job.has_learned(700, &outcome(false)).unwrap().contains("can have tested no more"));
}
