//! A proxy that harms bytes between two parties: every run ends, in an error or with the right answer.

use std::time::{Duration, Instant};
use tacit_net::testing::{Direction, Harm, Proxy, Rule};
use tacit_net::{
    Agreement, Channel, Error, Identity, Limits, Listener, Options, Protection, Result, Session, Stats, Tls,
    connect,
};

const DIRECTIONS: [Direction; 2] = [Direction::ToListener, Direction::ToConnector];
const MESSAGES: usize = 12;

fn options(protection: Protection, role: &str, peer_role: &str, patience: Duration) -> Options {
    let agreement = Agreement::new("faults", role, peer_role).with("messages", MESSAGES);
    let mut options = Options::new(agreement, protection);
    options.limits = Limits {
        connect: patience,
        idle: patience,
        read: patience,
        accept: Some(patience),
        ..Limits::default()
    };
    options
}

fn message(index: usize, party: u8) -> Vec<u8> {
    (0..(index * index * 997) % 90_000 + 3)
        .map(|i| (i as u8) ^ (i >> 8) as u8 ^ party ^ index as u8)
        .collect()
}

/// Both send and receive in turns; true when everything that came is right.
fn talk(channel: &mut Channel, mine: u8, theirs: u8) -> Result<bool> {
    let mut right = true;
    for index in 0..MESSAGES {
        channel.send(&message(index, mine))?;
        let expected = message(index, theirs);
        let mut out = vec![0; expected.len()];
        channel.recv(&mut out)?;
        right &= out == expected;
    }
    channel.flush()?;
    Ok(right)
}

struct Run {
    first: Result<(bool, Stats)>,
    second: Result<(bool, Stats)>,
    struck: u64,
    captured: [u64; 2],
}

/// One session through the proxy.
fn run(first: &Options, second: &Options, rules: Vec<Rule>) -> Run {
    let listener = Listener::bind("127.0.0.1:0").unwrap();
    let proxy = Proxy::start(listener.local_addr().unwrap(), rules).unwrap();
    let address = proxy.address().to_string();
    let finish = |session: Result<Session>, mine, theirs| {
        let mut session = session?;
        let right = talk(session.channel(), mine, theirs)?;
        Ok((right, session.stats()))
    };
    let (one, two) = std::thread::scope(|scope| {
        let two = scope.spawn(|| finish(connect(&address, second), 2, 1));
        let one = finish(listener.accept(first), 1, 2);
        (one, two.join().unwrap())
    });
    // The farewells pass before the count is read.
    std::thread::sleep(Duration::from_millis(if one.is_ok() && two.is_ok() { 50 } else { 0 }));
    Run { first: one, second: two, struck: proxy.struck(), captured: DIRECTIONS.map(|way| proxy.bytes(way)) }
}

fn tls() -> (Protection, Protection) {
    let (alice, bob) = (Identity::generate().unwrap(), Identity::generate().unwrap());
    let pinned = |own: &Identity, peer: &Identity| Protection::Tls(Tls::pinned(own, peer.public()).unwrap());
    (pinned(&alice, &bob), pinned(&bob, &alice))
}

#[test]
fn the_meter_equals_a_captured_socket() {
    let patience = Duration::from_secs(20);
    // After the stats are read, a farewell frame of 4 bytes leaves; over TLS it and the close_notify are
    // records.
    for ((first, second), farewell) in [((Protection::Plaintext, Protection::Plaintext), 4), (tls(), 26 + 24)]
    {
        let plain = matches!(first, Protection::Plaintext);
        let run = run(&options(first, "a", "b", patience), &options(second, "b", "a", patience), vec![]);
        let ((right, first), (also_right, second)) = (run.first.unwrap(), run.second.unwrap());
        assert!(right && also_right);
        assert_eq!(run.captured, [second.wire_sent + farewell, first.wire_sent + farewell]);
        assert_eq!((first.bytes_sent, first.bytes_received), (second.bytes_received, second.bytes_sent));
        if plain {
            assert_eq!((first.wire_sent, second.wire_sent), (first.bytes_sent, second.bytes_sent));
        } else {
            assert!(first.wire_sent > first.bytes_sent + 1000);
        }
    }
}

fn harms() -> Vec<Harm> {
    vec![
        Harm::Flip(0x01),
        Harm::Flip(0x80),
        Harm::Drop(1),
        Harm::Drop(5000),
        Harm::Duplicate(1),
        Harm::Duplicate(4000),
        Harm::Reorder(3),
        Harm::Reorder(2000),
        Harm::Insert(7),
        Harm::Truncate,
        Harm::Stall(Duration::from_secs(2)),
    ]
}

/// Offsets in greetings and handshakes, and all over the data.
fn offsets() -> Vec<u64> {
    #[cfg(not(feature = "long-tests"))]
    let (early, late) = (vec![0, 3, 4, 11, 60, 400, 1300, 1700], vec![2_100, 20_001, 150_000]);
    #[cfg(feature = "long-tests")]
    let (early, late) =
        ((0..1800).step_by(13).collect::<Vec<u64>>(), (1800..200_000).step_by(9973).collect::<Vec<u64>>());
    [early, late].concat()
}

/// Runs every harm at every offset, several at once, and hands each outcome to `judge`.
fn every_harm(protections: (Protection, Protection), judge: impl Fn(&Rule, Run) + Sync) {
    let patience = Duration::from_millis(500);
    let first = options(protections.0, "a", "b", patience);
    let second = options(protections.1, "b", "a", patience);
    let mut rules = Vec::new();
    for direction in DIRECTIONS {
        for offset in offsets() {
            rules.extend(harms().into_iter().map(|harm| Rule { direction, offset, harm }));
        }
    }
    let next = std::sync::atomic::AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                while let Some(rule) = rules.get(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed)) {
                    let start = Instant::now();
                    let run = run(&first, &second, vec![*rule]);
                    assert!(start.elapsed() < Duration::from_secs(60), "{rule:?} hangs");
                    judge(rule, run);
                }
            });
        }
    });
}

#[test]
fn over_tls_no_harm_changes_an_answer() {
    let struck = std::sync::atomic::AtomicU64::new(0);
    every_harm(tls(), |rule, run| {
        struck.fetch_add(run.struck, std::sync::atomic::Ordering::Relaxed);
        // The version bytes of TLS records are ignored by design, so only damage to data must be noticed.
        let harmless = matches!(rule.harm, Harm::Stall(_)) || run.struck == 0 || rule.offset < 2000;
        for outcome in [&run.first, &run.second] {
            match outcome {
                Ok((right, _)) => assert!(*right, "{rule:?} changed an answer"),
                Err(error) => assert!(error.is_peer_fault(), "{rule:?}: {error}"),
            }
        }
        assert!(harmless || run.first.is_err() || run.second.is_err(), "{rule:?} went unnoticed");
    });
    assert!(struck.into_inner() > 120, "most faults must really happen");
}

#[test]
fn without_tls_every_harm_ends_in_time_and_in_order() {
    every_harm((Protection::Plaintext, Protection::Plaintext), |rule, run| {
        for outcome in [&run.first, &run.second] {
            match outcome {
                // Plaintext promises no integrity: a byte changed inside a message is for the protocol to
                // notice.
                Ok(_) => {}
                Err(error) => assert!(error.is_peer_fault(), "{rule:?}: {error}"),
            }
        }
        if matches!(rule.harm, Harm::Truncate) && run.struck > 0 {
            assert!(run.first.is_err() && run.second.is_err(), "{rule:?}");
        }
    });
}

#[test]
fn a_peer_gone_in_the_middle_is_named() {
    let patience = Duration::from_secs(20);
    let rule = Rule { direction: Direction::ToListener, offset: 50_000, harm: Harm::Truncate };
    let (first, second) = tls();
    let run = run(&options(first, "a", "b", patience), &options(second, "b", "a", patience), vec![rule]);
    for error in [run.first.unwrap_err(), run.second.unwrap_err()] {
        assert!(matches!(error, Error::Lost { .. }), "{error}");
    }
}
