//! Sessions over plain TCP: handshake, several channels, bad peers.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};
use tacit_net::{
    Agreement, Cancel, Cause, Difference, Error, Fault, Limits, Listener, Options, Protection, RELEASE,
    Result, Session, WIRE_VERSION, connect, is_loopback, listen,
};

fn options(role: &str, peer_role: &str) -> Options {
    let agreement =
        Agreement::new("test", role, peer_role).with("elements", 2048).with("security", "malicious");
    let mut options = Options::new(agreement, Protection::Plaintext);
    options.limits =
        Limits { connect: Duration::from_secs(10), idle: Duration::from_secs(20), ..Limits::default() };
    options
}

/// Opens both ends over loopback.
fn pair(first: &Options, second: &Options) -> (Result<Session>, Result<Session>) {
    let listener = Listener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::scope(|scope| {
        let other = scope.spawn(|| connect(&address, second));
        let mine = listener.accept(first);
        drop(listener);
        (mine, other.join().unwrap())
    })
}

fn errors(first: &Options, second: &Options) -> (Error, Error) {
    let (a, b) = pair(first, second);
    (a.err().expect("the listener must refuse"), b.err().expect("the connector must refuse"))
}

#[test]
fn both_sides_agree_and_talk() {
    let (a, b) = pair(&options("sender", "receiver"), &options("receiver", "sender"));
    let (mut a, mut b) = (a.unwrap(), b.unwrap());
    assert_eq!(a.id(), b.id());
    assert_ne!(a.party(), b.party());
    a.channel().send_sized(b"hello").unwrap();
    a.channel().flush().unwrap();
    assert_eq!(b.channel().recv_sized(10).unwrap(), b"hello");
    let (c, _) = pair(&options("sender", "receiver"), &options("receiver", "sender"));
    assert_ne!(c.unwrap().id(), a.id(), "every session has an id of its own");
}

#[test]
fn both_send_64_mib_first() {
    let (a, b) = pair(&options("a", "b"), &options("b", "a"));
    let run = |session: Session| {
        std::thread::spawn(move || {
            let mut session = session;
            let mut out = vec![0; 64 << 20];
            session.channel().send(&vec![5; 64 << 20]).unwrap();
            session.channel().recv(&mut out).unwrap();
            out.iter().all(|&byte| byte == 5)
        })
    };
    let (a, b) = (run(a.unwrap()), run(b.unwrap()));
    assert!(a.join().unwrap() && b.join().unwrap());
}

#[test]
fn several_channels_carry_their_own_data_and_ids() {
    let mut first = options("a", "b");
    let mut second = options("b", "a");
    (first.channels, second.channels) = (4, 4);
    let (a, b) = pair(&first, &second);
    let (a, b) = (a.unwrap().into_channels(), b.unwrap().into_channels());
    assert_eq!((a.len(), b.len()), (4, 4));
    let mut ids: Vec<_> = a.iter().map(|channel| channel.session_id().0).collect();
    assert_eq!(ids, b.iter().map(|channel| channel.session_id().0).collect::<Vec<_>>());
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 4);
    std::thread::scope(|scope| {
        for (index, (mut a, mut b)) in a.into_iter().zip(b).enumerate() {
            scope.spawn(move || (0..1000).for_each(|i| a.send_u64(i * 10 + index as u64).unwrap()));
            scope.spawn(move || {
                (0..1000).for_each(|i| assert_eq!(b.recv_u64().unwrap(), i * 10 + index as u64))
            });
        }
    });
}

#[test]
fn differences_are_named_on_both_sides() {
    let mut other = options("receiver", "sender");
    other.agreement = other.agreement.with("elements", 4096);
    let (a, b) = errors(&options("sender", "receiver"), &other);
    for (error, ours, theirs) in [(&a, "2048", "4096"), (&b, "4096", "2048")] {
        let Error::Mismatch { differences } = error else { panic!("{error}") };
        let [Difference { setting, ours: o, theirs: t }] = &differences[..] else { panic!("{error}") };
        assert_eq!((setting.as_str(), o.as_deref(), t.as_deref()), ("elements", Some(ours), Some(theirs)));
        assert_eq!(error.fault(), Fault::Peer);
    }
    let mut other = options("receiver", "sender");
    other.agreement = other.agreement.with("tree", 12);
    let (a, b) = errors(&options("sender", "receiver"), &other);
    assert!(a.to_string().contains("tree (yours not given, peer's 12)"), "{a}");
    assert!(b.to_string().contains("tree (yours 12, peer's not given)"), "{b}");

    let (a, b) = errors(&options("sender", "receiver"), &options("sender", "receiver"));
    assert!(matches!(a, Error::Role { .. }) && matches!(b, Error::Role { .. }), "{a} {b}");

    // What a role is can follow from a setting, so a difference of settings is told first.
    let mut other = options("sender", "receiver");
    other.agreement = other.agreement.with("tree", 12);
    let (a, b) = errors(&options("sender", "receiver"), &other);
    assert!(a.to_string().contains("tree (yours not given, peer's 12)"), "{a}");
    assert!(b.to_string().contains("tree (yours 12, peer's not given)"), "{b}");

    let other = Options::new(Agreement::new("evil\n\x1b[2J", "receiver", "sender"), Protection::Plaintext);
    let (a, _) = errors(&options("sender", "receiver"), &other);
    assert!(a.to_string().contains("peer's \"evil\\n\\x1b[2J\")"), "{a}");

    let mut other = options("receiver", "sender");
    other.channels = 2;
    let (a, b) = errors(&options("sender", "receiver"), &other);
    assert!(
        a.to_string().contains("channels (yours 1, peer's 2)") && matches!(b, Error::Mismatch { .. }),
        "{a} {b}"
    );
}

/// What a listener and a connector say about a peer that sends `bytes` and then waits or leaves.
fn meet(bytes: &[u8], leave: bool) -> (Error, Error) {
    let mut options = options("a", "b");
    options.limits.connect = Duration::from_millis(400);
    options.limits.accept = Some(Duration::from_millis(900));
    let act = |mut stream: TcpStream| {
        // The peer may have gone already: that is one of the outcomes asked for.
        let _ = stream.write_all(bytes);
        if !leave {
            let _ = stream.read_to_end(&mut Vec::new());
        }
    };
    let listener = Listener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let a = std::thread::scope(|scope| {
        scope.spawn(|| act(TcpStream::connect(address).unwrap()));
        listener.accept(&options).err().unwrap()
    });
    let fake = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = fake.local_addr().unwrap().to_string();
    let b = std::thread::scope(|scope| {
        scope.spawn(|| act(fake.accept().unwrap().0));
        connect(&address, &options).err().unwrap()
    });
    (a, b)
}

/// The error of a listener that waited in vain, which must say that one stranger came and what it was like.
fn in_vain(error: &Error, what: &str) {
    assert!(matches!(error, Error::NoPeer { .. }) && error.is_peer_fault(), "{error}");
    let text = error.to_string();
    assert!(text.contains("rejected 1 connection (") && text.contains(what), "{text}");
    assert_eq!(text.lines().count(), 1);
}

#[test]
fn strangers_get_one_clear_line() {
    for bytes in
        [b"GET / HTTP/1.1\r\nHost: x\r\n\r\n".as_slice(), b"SSH-2.0-OpenSSH_9.6\r\n", &[0; 64], &[0xff; 4096]]
    {
        let (a, b) = meet(bytes, false);
        in_vain(&a, "not Tacit");
        assert!(matches!(b, Error::NotTacit { .. }), "{b}");
        assert_eq!(b.to_string().lines().count(), 1);
    }
    in_vain(&meet(b"GET / HTTP/1.1\r\n\r\n", false).0, "GET / HTTP");
    in_vain(&meet(&[0x16, 0x03, 0x01, 0x02, 0x00, 0x01], false).0, "a TLS greeting");
}

fn hello(version: u32, release: Option<&str>) -> Vec<u8> {
    let mut body = b"TACIT\0".to_vec();
    body.extend_from_slice(&version.to_le_bytes());
    if let Some(release) = release {
        body.push(release.len() as u8);
        body.extend_from_slice(release.as_bytes());
    }
    body.push(0);
    body.extend_from_slice(&[9; 32]);
    let mut out = vec![0xA7, body.len() as u8, 0, 0];
    out.extend_from_slice(&body);
    out
}

#[test]
fn another_release_is_named_and_so_is_ours() {
    let ours = format!("yours tacit {RELEASE} (wire format {WIRE_VERSION})");
    for (bytes, theirs) in [
        (hello(1, None), "peer's wire format 1, before releases were named"),
        (hello(7, Some("3.1.4")), "peer's 3.1.4 (wire format 7)"),
        (
            hello(WIRE_VERSION, Some("9.0.0-rc.1")),
            &*format!("peer's 9.0.0-rc.1 (wire format {WIRE_VERSION})"),
        ),
    ] {
        let (a, b) = meet(&bytes, false);
        for error in [a, b] {
            assert!(matches!(error, Error::Release { .. }) && error.is_peer_fault(), "{error}");
            let text = error.to_string();
            assert!(text.contains(&ours) && text.contains(theirs), "{text}");
        }
    }
}

/// A peer of another release gets our own in answer, in the place where every release looks for it.
#[test]
fn a_listener_tells_another_release_what_it_is() {
    for bytes in [hello(1, None), hello(WIRE_VERSION, Some("9.0.0"))] {
        let listener = Listener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let answer = std::thread::scope(|scope| {
            let other = scope.spawn(move || {
                let mut stream = TcpStream::connect(address).unwrap();
                stream.write_all(&bytes).unwrap();
                let mut answer = Vec::new();
                stream.read_to_end(&mut answer).unwrap();
                answer
            });
            assert!(matches!(listener.accept(&options("a", "b")), Err(Error::Release { .. })));
            other.join().unwrap()
        });
        assert_eq!(answer[..1], [0xA7]);
        assert_eq!(answer[4..10], *b"TACIT\0");
        assert_eq!(answer[10..14], WIRE_VERSION.to_le_bytes());
        assert_eq!(answer[14] as usize, RELEASE.len());
        assert_eq!(answer[15..15 + RELEASE.len()], *RELEASE.as_bytes());
    }
}

#[test]
fn truncated_and_oversized_greetings() {
    let ours = hello(WIRE_VERSION, Some(RELEASE));
    for end in [0, 2, 4, 9, 14, 40] {
        let (a, b) = meet(&ours[..end], true);
        in_vain(&a, "closed before the handshake");
        assert!(matches!(b, Error::Lost { .. }), "{end}: {b}");
    }
    let (a, b) = meet(&ours, true);
    in_vain(&a, "the greeting ends too early");
    assert!(matches!(b, Error::Malformed(_)), "{b}");
    let (a, b) = meet(&[0xA7, 0xff, 0xff, 0xff], false);
    in_vain(&a, "16777215 bytes");
    assert!(matches!(b, Error::Oversized { .. }), "{b}");
}

#[test]
fn a_silent_peer_meets_the_deadline() {
    let start = Instant::now();
    let (a, b) = meet(&[], false);
    in_vain(&a, "no handshake in time");
    assert!(matches!(b, Error::Timeout { .. }) && b.to_string().contains("greeting"), "{b}");
    assert!(start.elapsed() < Duration::from_secs(5));
}

#[test]
fn addresses_that_do_not_work() {
    let taken = Listener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let error = listen(&address, &options("a", "b")).err().unwrap();
    assert!(matches!(error, Error::AddressInUse { .. }) && error.to_string().contains(&address), "{error}");
    assert_eq!(error.fault(), Fault::Local);
    drop(taken);

    let mut patient = options("a", "b");
    patient.limits.connect = Duration::from_millis(100);
    let error = connect(&address, &patient).err().unwrap();
    assert!(matches!(error, Error::Unreachable { .. }) && error.is_peer_fault(), "{error}");
    for wrong in ["nonsense", "127.0.0.1:99999", "[::1"] {
        let error = connect(wrong, &patient).err().unwrap();
        assert_eq!(error.fault(), Fault::Usage, "{error}");
    }
    patient.limits.accept = Some(Duration::from_millis(50));
    let error = listen("127.0.0.1:0", &patient).err().unwrap();
    assert!(matches!(&error, Error::NoPeer { callers, .. } if callers.is_empty()), "{error}");
    assert!(error.to_string().ends_with("the peer to connect to 127.0.0.1:0"), "{error}");

    let start = Instant::now();
    patient.limits.connect = Duration::from_millis(1500);
    for error in [
        connect("no-such-host.invalid:7000", &patient).err().unwrap(),
        listen("no-such-host.invalid:7000", &patient).err().unwrap(),
    ] {
        assert!(matches!(error, Error::Unresolved { .. }) && error.fault() == Fault::Link, "{error}");
        assert!(error.to_string().contains("no-such-host.invalid:7000"), "{error}");
    }
    assert!(start.elapsed() > Duration::from_secs(1), "a name is tried again: {:?}", start.elapsed());
}

#[test]
fn a_listener_that_starts_late_is_found() {
    let address = Listener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    std::thread::scope(|scope| {
        let early = scope.spawn(|| connect(&address, &options("a", "b")));
        std::thread::sleep(Duration::from_millis(100));
        let late = listen(&address, &options("b", "a")).unwrap();
        assert_eq!(early.join().unwrap().unwrap().id(), late.id());
    });
}

#[test]
fn loopback_is_told_from_the_rest() {
    for (address, expected) in [
        ("127.0.0.1:1", true),
        ("[::1]:1", true),
        ("127.9.9.9:1", true),
        ("0.0.0.0:1", false),
        ("192.0.2.1:1", false),
    ] {
        assert_eq!(is_loopback(address, Duration::ZERO).unwrap(), expected, "{address}");
    }
}

/// Waiting for a peer, connecting to nobody, and waiting for bytes all end at once, and the peer sees the
/// end.
#[test]
fn a_cancelled_session_ends_its_waiting_and_tells_its_peer() {
    let soon = Duration::from_millis(100);
    let ended = |end: fn(&Cancel), job: &(dyn Fn(Cancel) -> Error + Sync)| {
        let cancel = Cancel::armed();
        std::thread::scope(|scope| {
            let ended = scope.spawn(|| {
                let error = job(cancel.clone());
                (error, Instant::now())
            });
            std::thread::sleep(soon);
            let start = Instant::now();
            end(&cancel);
            let (error, end) = ended.join().unwrap();
            assert!(end.duration_since(start) < Duration::from_secs(1), "{:?}", end.duration_since(start));
            error
        })
    };
    let cancelled = |job: &(dyn Fn(Cancel) -> Error + Sync)| ended(Cancel::cancel, job);
    let with = |cancel, role, other| Options { cancel, ..options(role, other) };
    let listening =
        |cancel| Listener::bind("127.0.0.1:0").unwrap().accept(&with(cancel, "a", "b")).err().unwrap();
    assert!(matches!(cancelled(&listening), Error::Cancelled));
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let connecting = |cancel| connect(&closed, &with(cancel, "a", "b")).err().unwrap();
    assert!(matches!(cancelled(&connecting), Error::Cancelled));
    let told = std::sync::Mutex::new(Vec::new());
    let receiving = |cancel: Cancel| {
        let (a, b) = pair(&with(cancel.clone(), "a", "b"), &options("b", "a"));
        let (mut a, mut b) = (a.unwrap(), b.unwrap());
        let peer = std::thread::spawn(move || b.channel().recv(&mut [0]).unwrap_err());
        let error = a.channel().recv(&mut [0]).unwrap_err();
        assert!(cancel.is_cancelled());
        a.stop(Cause::Interrupted);
        drop(a);
        let at_peer = peer.join().unwrap();
        told.lock().unwrap().push(at_peer);
        error
    };
    assert!(matches!(cancelled(&receiving), Error::Cancelled));
    assert!(matches!(ended(Cancel::interrupt, &receiving), Error::Cancelled));
    let told = told.into_inner().unwrap();
    assert!(matches!(told[0], Error::Closed { .. } | Error::Lost { .. }), "{}", told[0]);
    // Elsewhere the connection is closed at once, and the peer sees that alone.
    let is_told = matches!(told[1], Error::Closed { cause: Some(Cause::Interrupted) });
    assert!(is_told || cfg!(not(unix)), "{}", told[1]);
    // One that was cancelled before ends what begins later.
    let cancel = Cancel::armed();
    cancel.cancel();
    assert!(matches!(listening(cancel), Error::Cancelled));
}
