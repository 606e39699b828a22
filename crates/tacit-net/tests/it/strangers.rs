//! A listener among strangers: whoever else calls, it goes on waiting and serves its peer.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tacit_net::{
    Agreement, Error, Event, Identity, Limits, LinkModel, Listener, Observer, Options, Party, Protection,
    RELEASE, Result, Session, Tls, WIRE_VERSION, connect,
};

/// The peer is served within a second; a machine that does other work beside the tests gets three.
const SERVED: Duration = Duration::from_secs(3);

fn options(protection: &Protection, role: &str, peer_role: &str) -> Options {
    let mut options = Options::new(Agreement::new("strangers", role, peer_role), protection.clone());
    options.limits = Limits {
        connect: Duration::from_secs(20),
        accept: Some(Duration::from_secs(50)),
        idle: Duration::from_secs(20),
        ..Limits::default()
    };
    options
}

/// Alice, who listens; Bob, her peer; and Eve, whom nobody knows.
struct Parties {
    alice: Protection,
    bob: Protection,
    eve: Protection,
}

fn parties() -> Parties {
    let [alice, bob, eve] = std::array::from_fn(|_| Identity::generate().unwrap());
    let pinned = |own: &Identity, peer: &Identity| Protection::Tls(Tls::pinned(own, peer.public()).unwrap());
    Parties { alice: pinned(&alice, &bob), bob: pinned(&bob, &alice), eve: pinned(&eve, &alice) }
}

fn plain() -> Parties {
    let plain = Protection::Plaintext;
    Parties { alice: plain.clone(), bob: plain.clone(), eve: plain }
}

/// The kinds of strangers.
#[derive(Clone, Copy, Debug)]
enum Stranger {
    /// Connects and closes.
    Leaves,
    /// Connects and resets.
    Resets,
    /// Speaks HTTP.
    Http,
    /// Begins a TLS greeting and stops.
    HalfTls,
    /// Says nothing for a second.
    Silent,
    /// Sends what is no protocol at all.
    Noise,
    /// Has another key; without TLS, greets as a further channel of a session that nobody has.
    OtherKey,
}

const KINDS: [Stranger; 7] = [
    Stranger::Leaves,
    Stranger::Resets,
    Stranger::Http,
    Stranger::HalfTls,
    Stranger::Silent,
    Stranger::Noise,
    Stranger::OtherKey,
];

/// One stranger's call. The listener may be gone or close at any point: that is its right.
fn call(kind: Stranger, address: SocketAddr, eve: &Protection) {
    if let (Stranger::OtherKey, Protection::Tls(_)) = (kind, eve) {
        let mut options = options(eve, "b", "a");
        options.limits.connect = Duration::from_secs(2);
        assert!(connect(&address.to_string(), &options).is_err(), "Eve was let in");
        return;
    }
    let Ok(mut stream) = TcpStream::connect(address) else { return };
    let _ = stream.set_read_timeout(Some(Duration::from_secs(1)));
    let _ = match kind {
        Stranger::Leaves => return,
        Stranger::Resets => {
            // Bytes that nobody reads any more make the close a reset.
            let _ = stream.write_all(&[7; 3]);
            let _ = stream.shutdown(Shutdown::Both);
            return;
        }
        Stranger::Http => stream.write_all(b"GET / HTTP/1.1\r\nHost: tacit\r\n\r\n"),
        Stranger::HalfTls => stream.write_all(&[0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3]),
        Stranger::Silent => Ok(()),
        Stranger::Noise => stream.write_all(&(0..9000u32).map(|i| ((i * i) >> 3) as u8).collect::<Vec<_>>()),
        Stranger::OtherKey => {
            let _ = stream.set_read_timeout(Some(Duration::from_millis(100)));
            stream.write_all(&joining())
        }
    };
    let _ = stream.read(&mut [0; 256]);
}

/// The greeting of a further channel of a session that nobody has.
fn joining() -> Vec<u8> {
    let mut body = b"TACIT\0".to_vec();
    body.extend_from_slice(&WIRE_VERSION.to_le_bytes());
    body.push(RELEASE.len() as u8);
    body.extend_from_slice(RELEASE.as_bytes());
    body.push(1);
    body.extend_from_slice(&[0x5a; 32]);
    [&[0xA7, body.len() as u8, 0, 0], body.as_slice()].concat()
}

/// Starts Alice's listener, lets `disturb` act, then Bob connect; returns both sessions and how long Bob
/// took.
fn served(
    parties: &Parties,
    channels: usize,
    observer: Observer,
    disturb: impl FnOnce(SocketAddr),
) -> (Session, Session, Duration) {
    let mut first = options(&parties.alice, "a", "b");
    let mut second = options(&parties.bob, "b", "a");
    (first.channels, second.channels) = (channels, channels);
    first.observer = observer;
    let listener = Listener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::scope(|scope| {
        let alice = scope.spawn(|| listener.accept(&first));
        disturb(address);
        let start = Instant::now();
        let bob = connect(&address.to_string(), &second);
        let alice: Result<Session> = alice.join().unwrap();
        let took = start.elapsed();
        (alice.unwrap(), bob.unwrap(), took)
    })
}

/// The session works on all its channels.
fn works(first: Session, second: Session) {
    assert_eq!(first.id(), second.id());
    let (first, second) = (first.into_channels(), second.into_channels());
    assert_eq!(first.len(), second.len());
    for (index, (mut a, mut b)) in first.into_iter().zip(second).enumerate() {
        assert_eq!(a.session_id(), b.session_id());
        a.send_u64(index as u64).unwrap();
        a.flush().unwrap();
        assert_eq!(b.recv_u64().unwrap(), index as u64);
    }
}

#[test]
fn each_kind_of_stranger_alone_leaves_the_listener_waiting() {
    for parties in [parties(), plain()] {
        for kind in KINDS {
            let (first, second, took) =
                served(&parties, 1, Observer::default(), |address| call(kind, address, &parties.eve));
            assert!(took < SERVED, "{kind:?}: Bob waited {took:?}");
            works(first, second);
        }
    }
}

/// Calls of all kinds, ten at once; returns once all have been made.
fn thousand(address: SocketAddr, eve: &Protection) {
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..10 {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= 1000 {
                        return;
                    }
                    // The silent take a second each, so fewer of them.
                    let kind = match number % 40 {
                        39 => Stranger::Silent,
                        19 => Stranger::HalfTls,
                        n => [
                            Stranger::Leaves,
                            Stranger::Resets,
                            Stranger::Http,
                            Stranger::Noise,
                            Stranger::OtherKey,
                        ][n % 5],
                    };
                    call(kind, address, eve);
                }
            });
        }
    });
}

#[test]
fn a_thousand_strangers_ten_at_once_and_then_the_peer() {
    for parties in [parties(), plain()] {
        let counted = Arc::new(Mutex::new((0u64, Vec::new())));
        let observer = {
            let counted = counted.clone();
            Observer::new(move |event| {
                if let Event::Stranger { what, count, .. } = event {
                    let mut counted = counted.lock().unwrap();
                    counted.0 = *count;
                    counted.1.push(what.clone());
                }
            })
        };
        let (first, second, took) = served(&parties, 1, observer, |address| thousand(address, &parties.eve));
        println!("after 1,000 strangers the peer was served within {took:?}");
        assert!(took < SERVED, "Bob waited {took:?}");
        works(first, second);
        let counted = counted.lock().unwrap();
        // Each stranger is told of; the last may still have been on their way. Without TLS, up to 64 channels
        // of a session that nobody has wait for it to open.
        let late = if matches!(parties.eve, Protection::Plaintext) { 90 } else { 20 };
        assert!((1000 - late..=1000).contains(&counted.0), "{} strangers were counted", counted.0);
        assert!(counted.1.iter().any(|what| what.contains("GET / HTTP")));
        assert!(counted.1.iter().all(|what| what.lines().count() == 1 && what.len() < 400));
    }
}

#[test]
fn the_peer_is_served_while_strangers_go_on() {
    for parties in [parties(), plain()] {
        let (address, over) = (Mutex::new(None), AtomicBool::new(false));
        std::thread::scope(|scope| {
            for worker in 0..10 {
                let (address, over, eve) = (&address, &over, &parties.eve);
                scope.spawn(move || {
                    while !over.load(Ordering::Relaxed) {
                        let target: Option<SocketAddr> = *address.lock().unwrap();
                        match target {
                            Some(target) => call(KINDS[worker % KINDS.len()], target, eve),
                            None => std::thread::sleep(Duration::from_millis(1)),
                        }
                    }
                });
            }
            // Four channels: the strangers come between them too.
            let (first, second, took) = served(&parties, 4, Observer::default(), |at| {
                *address.lock().unwrap() = Some(at);
                std::thread::sleep(Duration::from_millis(300));
            });
            over.store(true, Ordering::Relaxed);
            println!("among strangers the peer's four channels were served within {took:?}");
            assert!(took < SERVED, "Bob waited {took:?}");
            works(first, second);
        });
    }
}

#[test]
fn connections_that_only_wait_cannot_take_all_places() {
    for parties in [parties(), plain()] {
        let mut held = Vec::new();
        let (first, second, took) = served(&parties, 2, Observer::default(), |address| {
            // Some three times as many as there are places; every second one begins a greeting.
            for number in 0..200 {
                let mut stream = TcpStream::connect(address).unwrap();
                if number % 2 == 0 {
                    let _ = stream.write_all(&[0x16, 3, 1]);
                }
                held.push(stream);
            }
            std::thread::sleep(Duration::from_millis(300));
        });
        println!("beside 200 that only wait the peer was served within {took:?}");
        assert!(took < SERVED, "Bob waited {took:?}");
        works(first, second);
        drop(held);
    }
}

#[test]
fn a_greeting_that_drips_in_is_cut_off_at_its_deadline() {
    for (parties, start) in [(parties(), &[0x16, 3, 1, 0x40, 0][..]), (plain(), &[0xA7, 0, 0x10, 0])] {
        let mut first = options(&parties.alice, "a", "b");
        first.limits.connect = Duration::from_millis(600);
        first.limits.accept = Some(Duration::from_secs(5));
        let listener = Listener::bind("127.0.0.1:0").unwrap();
        let mut stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        stream.write_all(start).unwrap();
        std::thread::scope(|scope| {
            let alice = scope.spawn(|| listener.accept(&first).err().unwrap());
            let begin = Instant::now();
            stream.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
            // A byte each 100 ms, so that each single wait of the listener's is short.
            let closed = loop {
                let _ = stream.write_all(&[0]);
                match stream.read(&mut [0; 8]) {
                    Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                    _ => break begin.elapsed(),
                }
                assert!(begin.elapsed() < Duration::from_secs(4), "the connection was not closed");
            };
            assert!(closed < Duration::from_secs(2), "closed after {closed:?}");
            let error = alice.join().unwrap().to_string();
            assert!(error.contains("rejected 1 connection ("), "{error}");
        });
    }
}

/// A connection from an address of loopback's that is not the usual one.
#[cfg(target_os = "linux")]
fn from_elsewhere(address: SocketAddr) -> TcpStream {
    use rustix::net::{AddressFamily, SocketType, bind, connect, socket};
    let own: SocketAddr = "127.0.0.2:0".parse().unwrap();
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    bind(&socket, &own).unwrap();
    connect(&socket, &address).unwrap();
    TcpStream::from(socket)
}

#[cfg(target_os = "linux")]
#[test]
fn who_opens_many_connections_drives_out_its_own() {
    let parties = plain();
    let (mut early, mut first_of_many) = (None, None);
    let mut held = Vec::new();
    let (first, second, _) = served(&parties, 1, Observer::default(), |address| {
        let dial = || TcpStream::connect(address).unwrap();
        let open = |stream: &mut TcpStream| {
            stream.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
            // The end of the stream, or a reset, says that it was closed.
            stream
                .read(&mut [0; 8])
                .is_err_and(|error| matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut))
        };
        let mut elsewhere = from_elsewhere(address);
        let mut many = dial();
        held.extend((0..200).map(|_| dial()));
        std::thread::sleep(Duration::from_millis(300));
        early = Some(open(&mut elsewhere));
        first_of_many = Some(open(&mut many));
    });
    works(first, second);
    assert_eq!((early, first_of_many), (Some(true), Some(false)));
}

/// Between the first channel of a session and its last, whatever greets does not take a channel's place.
#[test]
fn strangers_between_the_channels_of_a_session_take_no_place() {
    use tacit_net::testing::{Direction, Harm, Proxy, Rule};
    for parties in [parties(), plain()] {
        let mut first = options(&parties.alice, "a", "b");
        let mut second = options(&parties.bob, "b", "a");
        (first.channels, second.channels) = (4, 4);
        let listener = Listener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        // Slows each connection down, so that there is a between.
        let slow = Rule {
            direction: Direction::ToListener,
            offset: 5,
            harm: Harm::Stall(Duration::from_millis(400)),
        };
        let proxy = Proxy::start(address, vec![slow]).unwrap();
        let through = proxy.address().to_string();
        std::thread::scope(|scope| {
            let alice = scope.spawn(|| listener.accept(&first));
            let bob = scope.spawn(|| connect(&through, &second));
            for _ in 0..3 {
                for kind in KINDS {
                    if !matches!(kind, Stranger::Silent | Stranger::HalfTls) {
                        call(kind, address, &parties.eve);
                    }
                }
                std::thread::sleep(Duration::from_millis(200));
            }
            works(alice.join().unwrap().unwrap(), bob.join().unwrap().unwrap());
        });
    }
}

/// Passes bytes on between `inner` and a connection to `target`, both ways.
fn pass_on(inner: TcpStream, target: SocketAddr) {
    let outer = TcpStream::connect(target).unwrap();
    for (mut from, mut to) in [(inner.try_clone().unwrap(), outer.try_clone().unwrap()), (outer, inner)] {
        std::thread::spawn(move || {
            // A side that leaves ends this, and the other one notices.
            let _ = std::io::copy(&mut from, &mut to);
            let _ = to.shutdown(Shutdown::Write);
        });
    }
}

/// One that came before the session was known is not kept until the session has all its channels.
#[test]
fn a_channel_of_another_session_is_turned_away_once_the_session_is_known() {
    let parties = plain();
    let mut first = options(&parties.alice, "a", "b");
    let mut second = options(&parties.bob, "b", "a");
    (first.channels, second.channels) = (2, 2);
    let told: Arc<Mutex<Vec<String>>> = Arc::default();
    first.observer = {
        let told = told.clone();
        Observer::new(move |event| {
            if let Event::Stranger { what, .. } = event {
                told.lock().unwrap().push(what.clone());
            }
        })
    };
    let listener = Listener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let gate = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let through = gate.local_addr().unwrap().to_string();
    let mut stranger = TcpStream::connect(address).unwrap();
    stranger.write_all(&joining()).unwrap();
    stranger.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    std::thread::scope(|scope| {
        let alice = scope.spawn(|| listener.accept(&first));
        // The stranger has greeted by then.
        std::thread::sleep(Duration::from_millis(300));
        let bob = scope.spawn(|| connect(&through, &second));
        pass_on(gate.accept().unwrap().0, address);
        // Bob has the session, and calls for its second channel.
        let late = gate.accept().unwrap().0;
        let end = stranger.read_to_end(&mut Vec::new());
        pass_on(late, address);
        works(alice.join().unwrap().unwrap(), bob.join().unwrap().unwrap());
        let open = end.is_err_and(|e| matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut));
        assert!(!open, "the stranger was kept");
    });
    assert_eq!(*told.lock().unwrap(), ["it belongs to another session"]);
}

#[test]
fn an_emulated_link_among_strangers_carries_all_channels() {
    let link: LinkModel = "100/20".parse().unwrap();
    for parties in [parties(), plain()] {
        let mut first = options(&parties.alice, "a", "b");
        let mut second = options(&parties.bob, "b", "a");
        (first.channels, second.channels) = (3, 3);
        (first.link, second.link) = (link, link);
        let listener = Listener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::scope(|scope| {
            let alice = scope.spawn(|| listener.accept(&first));
            let bob = scope.spawn(|| connect(&address.to_string(), &second));
            for kind in [Stranger::Leaves, Stranger::Http, Stranger::Noise, Stranger::Resets] {
                call(kind, address, &parties.eve);
            }
            works(alice.join().unwrap().unwrap(), bob.join().unwrap().unwrap());
        });
    }
}

#[test]
fn the_peer_with_other_settings_ends_the_waiting_at_once_on_both_sides() {
    for parties in [parties(), plain()] {
        let first = options(&parties.alice, "a", "b");
        let mut second = options(&parties.bob, "b", "a");
        second.agreement = second.agreement.with("elements", 7);
        let listener = Listener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let start = Instant::now();
        std::thread::scope(|scope| {
            let alice = scope.spawn(|| listener.accept(&first).err().unwrap());
            call(Stranger::Http, address, &parties.eve);
            let bob = connect(&address.to_string(), &second).err().unwrap();
            let alice = alice.join().unwrap();
            for error in [alice, bob] {
                assert!(
                    matches!(&error, Error::Mismatch { differences } if differences[0].setting == "elements"),
                    "{error}"
                );
            }
        });
        assert!(start.elapsed() < SERVED);
    }
}

#[test]
fn a_listener_that_waited_in_vain_says_who_called() {
    let parties = parties();
    let mut first = options(&parties.alice, "a", "b");
    first.limits.accept = Some(Duration::from_secs(3));
    let listener = Listener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let start = Instant::now();
    let error = std::thread::scope(|scope| {
        let alice = scope.spawn(|| listener.accept(&first).err().unwrap());
        for kind in [Stranger::OtherKey, Stranger::OtherKey, Stranger::Http, Stranger::Leaves] {
            call(kind, address, &parties.eve);
        }
        alice.join().unwrap()
    });
    let waited = start.elapsed();
    assert!(waited >= Duration::from_millis(2900) && waited < Duration::from_secs(6), "{waited:?}");
    let text = error.to_string();
    assert!(matches!(error, Error::NoPeer { .. }), "{text}");
    for words in ["2: wrong key ", "1: not Tacit: \"GET", ": closed before the handshake"] {
        assert!(text.contains(words), "`{words}` is missing in: {text}");
    }
}

/// A connection that a listener drops before it greeted is made again: the listener may just have had its
/// hands full.
#[test]
fn a_connection_lost_before_the_greeting_is_made_again() {
    for parties in [parties(), plain()] {
        let gate = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = gate.local_addr().unwrap();
        let second = options(&parties.bob, "b", "a");
        let first = options(&parties.alice, "a", "b");
        std::thread::scope(|scope| {
            let bob = scope.spawn(|| connect(&address.to_string(), &second));
            for _ in 0..3 {
                drop(gate.accept().unwrap());
            }
            drop(gate);
            let listener = loop {
                match Listener::bind(&address.to_string()) {
                    Ok(listener) => break listener,
                    Err(_) => std::thread::sleep(Duration::from_millis(5)),
                }
            };
            works(listener.accept(&first).unwrap(), bob.join().unwrap().unwrap());
        });
    }
}

#[test]
fn the_observer_hears_for_whom_where_and_how_long() {
    let parties = parties();
    let told: Arc<Mutex<Vec<Event>>> = Arc::default();
    let observer = {
        let told = told.clone();
        Observer::new(move |event| told.lock().unwrap().push(event.clone()))
    };
    let mut port = 0;
    let (first, second, _) = served(&parties, 1, observer, |address| {
        port = address.port();
        std::thread::sleep(Duration::from_millis(2300));
    });
    works(first, second);
    let told = told.lock().unwrap();
    let waits: Vec<_> = told
        .iter()
        .filter_map(|event| match event {
            Event::Waiting { party, proof, address, waited, patience, obstacle } => {
                assert_eq!((*party, obstacle.as_deref()), (Party::First, None));
                assert!(proof.starts_with("fingerprint ") && address.ends_with(&format!(":{port}")));
                assert_eq!(*patience, Some(Duration::from_secs(50)));
                Some(*waited)
            }
            _ => None,
        })
        .collect();
    assert!((3..=4).contains(&waits.len()) && waits[0] < Duration::from_secs(1), "{waits:?}");
    assert_eq!(told.iter().filter(|event| **event == Event::Over).count(), 1);
    // The waiting is over, and then the session is open.
    assert!(matches!(&told[told.len() - 2..], [Event::Over, Event::Opened { .. }]), "{told:?}");

    // The connecting side says so too, with what it met, once its first attempt has failed.
    let told: Arc<Mutex<Vec<Event>>> = Arc::default();
    let mut second = options(&parties.bob, "b", "a");
    second.limits.connect = Duration::from_millis(1200);
    second.observer = {
        let told = told.clone();
        Observer::new(move |event| told.lock().unwrap().push(event.clone()))
    };
    assert!(matches!(connect(&format!("127.0.0.1:{port}"), &second), Err(Error::Unreachable { .. })));
    let told = told.lock().unwrap();
    assert!(
        matches!(&told[..], [Event::Waiting { party: Party::Second, obstacle: Some(why), .. }, Event::Over]
            if why.contains("refused")),
        "{told:?}"
    );
}
