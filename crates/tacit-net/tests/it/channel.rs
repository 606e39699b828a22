//! The channel over memory: order, framing, metering, deadlines.

use proptest::prelude::*;
use std::io::{IoSlice, IoSliceMut};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tacit_net::link::{Arrival, Interest};
use tacit_net::{Cause, Channel, Error, Limits, LinkModel, Recording, SessionId, memory};

fn pattern(length: usize, seed: u8) -> Vec<u8> {
    (0..length).map(|i| (i as u8).wrapping_mul(31).wrapping_add(seed).wrapping_add((i >> 8) as u8)).collect()
}

#[test]
fn both_send_64_mib_first() {
    let party = |mine: u8, theirs: u8| {
        move |channel: &mut tacit_net::Channel| {
            channel.send(&pattern(64 << 20, mine)).unwrap();
            let mut out = vec![0; 64 << 20];
            channel.recv(&mut out).unwrap();
            assert!(out == pattern(64 << 20, theirs));
            channel.stats()
        }
    };
    let (a, b) = memory::run(party(1, 2), party(2, 1));
    assert_eq!(a.bytes_sent, b.bytes_received);
    assert_eq!(a.bytes_sent, (64 << 20) + 64 * 4);
    assert_eq!((a.rounds, a.messages_sent, a.messages_received), (1, 1, 1));
}

#[test]
fn meter_counts_framing_and_rounds() {
    let (a, b) = memory::run(
        |channel| {
            channel.send_u64(1).unwrap();
            channel.send_u64(2).unwrap();
            assert_eq!(channel.recv_u64().unwrap(), 3);
            channel.send_u64(4).unwrap();
            channel.recv_u64().unwrap();
            channel.stats()
        },
        |channel| {
            assert_eq!(channel.recv_u64().unwrap() + channel.recv_u64().unwrap(), 3);
            channel.send_u64(3).unwrap();
            channel.recv_u64().unwrap();
            channel.send_u64(5).unwrap();
            channel.flush().unwrap();
            channel.stats()
        },
    );
    assert_eq!((a.bytes_sent, a.bytes_received), (20 + 12, 24));
    assert_eq!((b.bytes_sent, b.bytes_received), (24, 20 + 12));
    assert_eq!((a.messages_sent, a.messages_received, a.rounds), (2, 2, 2));
    assert_eq!((b.messages_sent, b.messages_received, b.rounds), (2, 2, 1));
    assert_eq!((a.wire_sent, b.wire_sent), (32, 24));
}

#[test]
fn a_party_that_ends_early_is_noticed() {
    let (a, ()) = memory::run(|channel| channel.recv_u64().unwrap_err(), |_| ());
    assert!(matches!(a, Error::Closed { cause: None }), "{a}");
    let (a, ()) = memory::run(
        |channel| {
            (channel.recv(&mut [0; 100]).unwrap_err(), channel.send(&[1]).and_then(|()| channel.flush()))
        },
        |channel| channel.send(&[0; 10]).unwrap(),
    );
    assert!(matches!(a.0, Error::Closed { cause: None }), "{}", a.0);
    assert!(matches!(a.1, Err(Error::Broken)));
}

#[test]
fn a_stalled_peer_meets_the_deadline() {
    let limits = Limits { idle: Duration::from_millis(60), ..Limits::default() };
    let (mut a, b) = memory::pair_over(LinkModel::LOOPBACK, limits, SessionId([0; 32]));
    let error = a.recv_u64().unwrap_err();
    assert!(matches!(&error, Error::Timeout { after, .. } if *after == limits.idle), "{error}");
    assert!(error.to_string().contains("next message") && error.is_peer_fault(), "{error}");
    drop(b);

    let (mut a, _b) = memory::pair_over(LinkModel::LOOPBACK, limits, SessionId([0; 32]));
    let error = a.send(&vec![0; 64 << 20]).unwrap_err();
    assert!(error.to_string().contains("the peer to take"), "{error}");
}

#[test]
fn a_dripping_peer_meets_the_deadline() {
    let limits =
        Limits { idle: Duration::from_millis(200), read: Duration::from_millis(400), ..Limits::default() };
    let (mut a, mut b) = memory::pair_over(LinkModel::LOOPBACK, limits, SessionId([0; 32]));
    let drip = std::thread::spawn(move || {
        while b.send(&[0]).and_then(|()| b.flush()).is_ok() {
            std::thread::sleep(Duration::from_millis(5));
        }
    });
    let error = a.recv(&mut [0; 4096]).unwrap_err();
    assert!(matches!(&error, Error::Timeout { after, .. } if *after == limits.read), "{error}");
    drop(a);
    drip.join().unwrap();
}

/// What ends a receive, or many of them, of a peer that says a byte every few milliseconds, and how long it
/// took.
fn dripped(receive: impl FnOnce(&mut Channel) -> tacit_net::Result<()>) -> (Error, Duration) {
    let limits = Limits { idle: Duration::from_millis(100), ..Limits::default() };
    let (mut a, mut b) = memory::pair_over(LinkModel::LOOPBACK, limits, SessionId([0; 32]));
    let drip = std::thread::spawn(move || {
        while b.send(&[0]).and_then(|()| b.flush()).is_ok() {
            std::thread::sleep(Duration::from_millis(20));
        }
    });
    let start = Instant::now();
    let error = receive(&mut a).unwrap_err();
    let took = start.elapsed();
    drop(a);
    drip.join().unwrap();
    (error, took)
}

/// The whole of a message has a deadline, not the silence between its bytes alone: by the limits' hour a receive,
/// this would take 20 s, and the many receives ten million times as long.
#[test]
fn a_message_that_drips_ends_in_bounded_time() {
    let (error, took) = dripped(|channel| channel.recv(&mut [0; 1024]));
    assert!(matches!(&error, Error::Timeout { after, .. } if after.as_millis() == 350), "{error}");
    assert!(took < Duration::from_secs(5), "{took:?}");
    // Ten times the idle limit, and a second for the 4,096 bytes that cannot have come.
    let (error, took) = dripped(|channel| (0..1 << 29).try_for_each(|_| channel.recv(&mut [0])));
    assert!(matches!(&error, Error::Timeout { after, .. } if after.as_millis() >= 1000), "{error}");
    assert!(took > Duration::from_millis(900) && took < Duration::from_secs(10), "{took:?}");
}

/// A peer that now and then takes a byte holds a sender no longer either.
/// Messages that each come in time, and never end, while bytes that came early are there already.
#[test]
fn all_of_a_run_ends_in_the_time_that_it_gets() {
    const WHOLE: Duration = Duration::from_millis(400);
    for pause in [Duration::ZERO, Duration::from_millis(20)] {
        let (error, ()) = memory::run(
            |channel| {
                channel.end_within(WHOLE);
                let start = Instant::now();
                let error = loop {
                    if let Err(error) = channel.send_u64(1).and_then(|()| channel.recv_u64()) {
                        break error;
                    }
                };
                assert!(start.elapsed() >= WHOLE && start.elapsed() < 10 * WHOLE, "{:?}", start.elapsed());
                error
            },
            |channel| {
                while channel
                    .recv_u64()
                    .and_then(|at| channel.send_u64(at))
                    .and_then(|()| channel.flush())
                    .is_ok()
                {
                    std::thread::sleep(pause);
                }
            },
        );
        assert!(matches!(error, Error::Overtime { after: WHOLE }), "{error}");
    }
    // And where the peer says nothing at all.
    let (error, ()) = memory::run(
        |channel| {
            channel.end_within(WHOLE);
            channel.recv_u64().unwrap_err()
        },
        |channel| _ = channel.recv_u64(),
    );
    assert!(matches!(error, Error::Overtime { .. }), "{error}");
}

#[test]
fn a_peer_that_takes_byte_by_byte_meets_the_deadline() {
    struct Narrow;
    impl tacit_net::Link for Narrow {
        fn try_write(&mut self, parts: &[IoSlice<'_>]) -> tacit_net::Result<usize> {
            static TURN: AtomicBool = AtomicBool::new(false);
            let room = TURN.fetch_xor(true, Ordering::Relaxed);
            Ok(usize::from(room && parts.iter().any(|part| !part.is_empty())))
        }
        fn try_read(&mut self, _: &mut [IoSliceMut<'_>]) -> tacit_net::Result<Arrival> {
            Ok(Arrival::Nothing)
        }
        fn wait(&mut self, _: Interest, timeout: Duration) -> tacit_net::Result<bool> {
            std::thread::sleep(timeout.min(Duration::from_millis(20)));
            Ok(timeout >= Duration::from_millis(20))
        }
        fn wire_bytes(&self) -> (u64, u64) {
            (0, 0)
        }
    }
    let limits = Limits { idle: Duration::from_millis(100), ..Limits::default() };
    let link = Box::new(Narrow);
    let mut channel = Channel::with_limits(link, tacit_net::Party::First, SessionId([0; 32]), limits);
    let start = Instant::now();
    let error = channel.send(&[0; 1 << 20]).unwrap_err();
    assert!(matches!(error, Error::Timeout { .. }), "{error}");
    assert!(start.elapsed() < Duration::from_secs(10));
}

#[test]
fn a_flood_is_bounded() {
    let limits = Limits { inbox: 1 << 20, ..Limits::default() };
    let (mut a, mut b) = memory::pair_over(LinkModel::LOOPBACK, limits, SessionId([0; 32]));
    b.set_limits(Limits::default());
    // What the link holds by itself: sent whether or not anybody reads, so that the outcome is no matter of
    // speed.
    b.send(&vec![0; 8 << 20]).and_then(|()| b.flush()).unwrap();
    let error = a.send(&vec![0; 256 << 20]).unwrap_err();
    assert!(matches!(error, Error::Flooded { allowed: 1_048_576, .. }), "{error}");
    drop(a);
    assert!(b.send(&vec![0; 64 << 20]).is_err());
}

#[test]
fn what_has_come_is_seen_without_waiting() {
    memory::run(
        |channel| {
            // Sent at the latest when the other side is asked after.
            channel.send(&[1; 10]).unwrap();
            assert!(!channel.has_come(100).unwrap());
            channel.recv(&mut [0; 1]).unwrap();
            channel.send(&[2; 100]).and_then(|()| channel.flush()).unwrap();
            while !channel.has_come(300_000).unwrap() {}
            let mut all = vec![0; 300_000];
            channel.recv(&mut all).unwrap();
            assert!(all.iter().all(|b| *b == 3));
            // The peer has gone: the next receive says so.
            while !channel.has_come(1).unwrap() {}
            assert!(matches!(channel.recv(&mut [0]), Err(Error::Closed { cause: None })));
        },
        |channel| {
            channel.recv(&mut [0; 10]).unwrap();
            channel.send(&[9]).unwrap();
            channel.recv(&mut [0; 100]).unwrap();
            channel.send(&vec![3; 300_000]).unwrap();
        },
    );
}

/// The digests that two ends get of a step in which the first sends `out` and the second `back`, cut as they
/// like, with words before, between and after that are not recorded.
fn recordings(out: &'static [u8], back: &'static [u8]) -> [[u8; 32]; 2] {
    let (a, b) = memory::run(
        |channel| {
            channel.send(b"before").unwrap();
            let mut recording = Recording::new(channel);
            channel.record(&mut recording, |channel| channel.send(out)).unwrap();
            channel.send(b"between").unwrap();
            let mut theirs = vec![0; back.len()];
            channel.record(&mut recording, |channel| channel.recv(&mut theirs)).unwrap();
            channel.send(b"after").unwrap();
            recording.digest()
        },
        |channel| {
            let (mut recording, mut around) = (Recording::new(channel), Recording::new(channel));
            channel.recv(&mut [0; 6]).unwrap();
            let (early, late) = back.split_at(back.len() / 2);
            channel.record(&mut recording, |channel| channel.send(early)).unwrap();
            channel.record(&mut around, |channel| {
                for _ in 0..out.len() {
                    channel.record(&mut recording, |channel| channel.recv(&mut [0])).unwrap();
                }
                channel.recv(&mut [0; 7]).unwrap();
                channel.record(&mut recording, |channel| channel.send(late)).unwrap();
            });
            channel.recv(&mut [0; 5]).unwrap();
            assert!(around.digest() != recording.digest(), "what stands around has more in it");
            recording.digest()
        },
    );
    [a, b]
}

#[test]
fn both_ends_record_the_same_and_nothing_else_hashes_alike() {
    let said: [(&[u8], &[u8]); 7] = [
        (b"abc", b"xyz"),
        (b"abd", b"xyz"),
        (b"abc", b"xyy"),
        (b"xyz", b"abc"),
        (b"abcx", b"yz"),
        (b"", b"xyz"),
        (b"", b""),
    ];
    let digests = said.map(|(out, back)| {
        let [a, b] = recordings(out, back);
        assert_eq!(a, b);
        a
    });
    assert!((0..said.len()).all(|i| !digests[..i].contains(&digests[i])));
}

#[test]
fn announced_lengths_are_bounded() {
    let (error, _) = memory::run(
        |channel| channel.recv_sized(99).unwrap_err(),
        |channel| channel.send_sized(&[7; 100]).and_then(|()| channel.flush()),
    );
    assert!(matches!(error, Error::Oversized { announced: 100, allowed: 99 }));
    // What was announced and refused is not read as the next messages.
    let (next, _) = memory::run(
        |channel| {
            channel.recv_sized(99).unwrap_err();
            channel.recv_u64().unwrap_err()
        },
        |channel| channel.send_sized(&[7; 100]).and_then(|()| channel.flush()),
    );
    assert!(matches!(next, Error::Broken), "{next}");
    // An announcement alone makes nothing grow: the peer ends before it pays.
    let (error, ()) = memory::run(
        |channel| channel.recv_sized(usize::MAX).unwrap_err(),
        |channel| channel.send_u64(u64::MAX / 2).unwrap(),
    );
    assert!(matches!(error, Error::Closed { cause: None }));
}

#[derive(Clone, Debug)]
enum Step {
    FirstSends(usize),
    SecondSends(usize),
    BothSend(usize, usize),
}

fn step() -> impl Strategy<Value = Step> {
    let size =
        || prop_oneof![0..40usize, 65_500..65_600usize, 131_000..131_200usize, 1_048_500..3_000_000usize];
    prop_oneof![
        size().prop_map(Step::FirstSends),
        size().prop_map(Step::SecondSends),
        (size(), size()).prop_map(|(a, b)| Step::BothSend(a, b)),
    ]
}

/// Plays the steps as one party; what is received is cut into pieces of another size than what was sent.
fn play(channel: &mut tacit_net::Channel, steps: &[Step], first: bool, cut: usize) {
    for (index, step) in steps.iter().enumerate() {
        let (mine, theirs) = match (step, first) {
            (Step::FirstSends(n), true) | (Step::SecondSends(n), false) => (*n, 0),
            (Step::FirstSends(n), false) | (Step::SecondSends(n), true) => (0, *n),
            (Step::BothSend(a, b), true) => (*a, *b),
            (Step::BothSend(a, b), false) => (*b, *a),
        };
        for piece in pattern(mine, index as u8).chunks(cut * 3) {
            channel.send(piece).unwrap();
        }
        let mut out = vec![0; theirs];
        for piece in out.chunks_mut(cut) {
            channel.recv(piece).unwrap();
        }
        assert!(out == pattern(theirs, index as u8), "step {index}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]
    #[test]
    fn any_pattern_of_sends_arrives(
        steps in proptest::collection::vec(step(), 1..12),
        cut in prop_oneof![Just(977usize), Just(70_000), Just(5_000_000)],
    ) {
        let (a, b) = memory::run(
            |channel| { play(channel, &steps, true, cut); channel.flush().unwrap(); channel.stats() },
            |channel| { play(channel, &steps, false, cut); channel.flush().unwrap(); channel.stats() },
        );
        prop_assert_eq!((a.bytes_sent, a.bytes_received), (b.bytes_received, b.bytes_sent));
    }
}

/// A channel whose peer is not a channel but these bytes, and then the end.
fn fed(bytes: &[u8]) -> (tacit_net::Channel, Box<dyn tacit_net::Link>) {
    let (mine, mut raw) = memory::links(LinkModel::LOOPBACK);
    assert_eq!(raw.try_write(&[std::io::IoSlice::new(bytes)]).unwrap(), bytes.len());
    raw.finish();
    let limits = Limits { idle: Duration::from_secs(5), ..Limits::default() };
    (tacit_net::Channel::with_limits(mine, tacit_net::Party::First, SessionId([0; 32]), limits), raw)
}

#[test]
fn bad_frames_are_told_apart() {
    let says = |bytes: &[u8]| fed(bytes).0.recv(&mut [0; 8]).unwrap_err();
    assert!(matches!(says(b"\x00\x08\x00\x00garbage!"), Error::Malformed(_)));
    assert!(matches!(says(&[0xff; 64]), Error::Malformed(_)));
    assert!(matches!(says(&[0xD7, 0, 0, 0, 1]), Error::Malformed(_)), "an empty frame");
    assert!(matches!(says(&[0xA7, 1, 0, 0, 1]), Error::Malformed(_)), "a greeting in the middle");
    assert!(matches!(says(&[0xD7, 1, 0, 16]), Error::Oversized { announced: 1_048_577, allowed: 1_048_576 }));
    assert!(matches!(says(&[0xB7, 0, 0, 0]), Error::Closed { cause: None }));
    for end in 0..12 {
        let cut = &[0xD7, 8, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8][..end];
        let error = says(cut);
        assert!(matches!(error, Error::Lost { .. }) && error.is_peer_fault(), "{end}: {error}");
    }
    let (mut channel, _raw) = fed(&[0xD7, 4, 0, 0, 1, 2, 3, 4, 0xD7, 4, 0, 0, 5, 6, 7, 8]);
    let mut out = [0; 8];
    channel.recv(&mut out).unwrap();
    assert_eq!(out, [1, 2, 3, 4, 5, 6, 7, 8]);
}

proptest! {
    #[test]
    fn random_bytes_end_in_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..300), kind in any::<bool>()) {
        let mut bytes = bytes;
        if kind && bytes.len() > 3 {
            bytes[0] = 0xD7;
            bytes[2..4].fill(0);
        }
        let (mut channel, _raw) = fed(&bytes);
        let mut out = [0; 64];
        while channel.recv(&mut out).is_ok() {}
        prop_assert!(matches!(channel.recv(&mut out), Err(Error::Broken)));
    }
}

#[test]
fn a_farewell_gives_its_cause_and_an_unknown_one_is_none() {
    let cause = |bytes: &[u8]| match fed(bytes).0.recv(&mut [0; 8]).unwrap_err() {
        Error::Closed { cause } => cause,
        other => panic!("{other}"),
    };
    let causes = [Cause::Files, Cause::Limit, Cause::Settings, Cause::Interrupted, Cause::Waited];
    for (code, said) in (1..).zip(causes) {
        assert_eq!(cause(&[0xB7, 1, 0, 0, code]), Some(said));
        let (error, ()) =
            memory::run(|channel| channel.recv_u64().unwrap_err(), |channel| channel.stop(said));
        let words = format!("the peer stopped: {said}; its own output has the details");
        assert_eq!(error.to_string(), words);
    }
    for other in [0, 6, 255] {
        assert_eq!(cause(&[0xB7, 1, 0, 0, other]), None);
    }
    assert_eq!(cause(&[0xB7, 1, 0, 0]), None, "cut in the middle");
    let longer = fed(&[0xB7, 2, 0, 0, 1, 1]).0.recv(&mut [0; 8]).unwrap_err();
    assert!(matches!(longer, Error::Malformed(_)), "{longer}");
}

#[test]
fn a_side_that_waited_too_long_still_says_so_and_one_that_only_sends_reads_it() {
    let limits = Limits { idle: Duration::from_millis(60), ..Limits::default() };
    let (mut a, mut b) = memory::pair_over(LinkModel::LOOPBACK, limits, SessionId([0; 32]));
    assert!(matches!(a.recv_u64(), Err(Error::Timeout { .. })));
    a.stop(Cause::Waited);
    drop(a);
    let error = std::iter::repeat_with(|| b.send(&[0; 1 << 16])).find_map(Result::err).unwrap();
    assert!(matches!(error, Error::Closed { cause: Some(Cause::Waited) }), "{error}");
    assert!(matches!(b.recv_u64(), Err(Error::Broken)));
}
