//! Two sides meet at a relay, beside strangers, and whatever becomes of relay and sides.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex};
use std::thread::{scope, sleep, spawn};
use std::time::{Duration, Instant};
use tacit_net::invite::{Introduced, Patience, Place, invite, join};
use tacit_net::rendezvous::{Bounds, Event, Relay};
use tacit_net::{
    Agreement, Cancel, Error, Event as Waited, Identity, Limits, Listener, Observer, Options, Party,
    Protection, PublicKey, Reception, Session, Tls, call, meet,
};

/// A relay that runs until this is dropped, and what happened there.
struct Running {
    address: String,
    cancel: Cancel,
    events: Arc<Mutex<Vec<Event>>>,
}

impl Running {
    fn with(bounds: Bounds, served: &[PublicKey]) -> Self {
        let (cancel, events) = (Cancel::armed(), Arc::<Mutex<Vec<Event>>>::default());
        let told = events.clone();
        let tell = move |event: &Event| told.lock().unwrap().push(event.clone());
        let relay = Relay::bind("127.0.0.1:0", bounds, served, cancel.clone(), tell).unwrap();
        let address = relay.local_addr().unwrap().to_string();
        spawn(move || relay.serve().unwrap());
        Running { address, cancel, events }
    }

    fn new() -> Self {
        Self::with(Bounds::default(), &[])
    }

    fn turned_away(&self) -> Vec<String> {
        let events = self.events.lock().unwrap();
        let why = |event: &Event| match event {
            Event::TurnedAway(_, why, _) => Some(why.clone()),
            _ => None,
        };
        events.iter().filter_map(why).collect()
    }

    /// Waits until something happened there.
    fn until(&self, found: impl Fn(&Event) -> bool) {
        let end = Instant::now() + Duration::from_secs(20);
        while !self.events.lock().unwrap().iter().any(&found) {
            assert!(Instant::now() < end, "{:?}", self.events.lock().unwrap());
            sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}

fn options(relay: &str, own: &Identity, peer: PublicKey) -> Options {
    let protection = Protection::Tls(Tls::pinned(own, peer).unwrap());
    let mut options = Options::new(Agreement::new("relayed", "party", "party"), protection);
    options.limits = Limits {
        connect: Duration::from_secs(20),
        accept: Some(Duration::from_secs(20)),
        idle: Duration::from_secs(20),
        ..Limits::default()
    };
    options.via = Some(relay.to_owned());
    options
}

fn people<const N: usize>() -> [Identity; N] {
    std::array::from_fn(|_| Identity::generate().unwrap())
}

/// Each says its number on every channel and hears the other's.
fn talk(mut session: Session, own: u64) -> (Party, Vec<u64>) {
    let party = session.party();
    let heard = session.channels().iter_mut().map(|channel| {
        channel.send_u64(own).unwrap();
        channel.recv_u64().unwrap()
    });
    (party, heard.collect())
}

/// A relay where another one was; what ends it.
fn at_the_same_place(address: &str) -> Cancel {
    let (again, end) = (Cancel::armed(), Instant::now() + Duration::from_secs(10));
    let relay = loop {
        match Relay::bind(address, Bounds::default(), &[], again.clone(), |_| ()) {
            Ok(relay) => break relay,
            Err(error) => assert!(Instant::now() < end, "{error}"),
        }
        sleep(Duration::from_millis(50));
    };
    spawn(move || relay.serve().unwrap());
    again
}

#[test]
fn two_sides_meet_again_and_again_with_several_channels_whoever_comes_first() {
    let relay = Running::new();
    let [alice, bob] = people();
    for (round, channels) in [1, 3, 1, 2].into_iter().enumerate() {
        let of = |own: &Identity, peer: &Identity| {
            let mut options = options(&relay.address, own, peer.public());
            options.channels = channels;
            options
        };
        let (a, b) = (of(&alice, &bob), of(&bob, &alice));
        let (one, two) = scope(|scope| {
            let one = scope.spawn(|| talk(meet(&a).unwrap(), 1));
            // The later one comes first in every other round.
            sleep(Duration::from_millis(30 * (round as u64 % 2)));
            (talk(meet(&b).unwrap(), 2), one.join().unwrap())
        });
        assert_ne!(one.0, two.0);
        assert_eq!((one.1, two.1), (vec![1; channels], vec![2; channels]));
    }
    assert!(relay.turned_away().is_empty());
    relay.until(|event| matches!(event, Event::Parted(_, bytes, ..) if *bytes > 1000));
}

#[test]
fn others_that_wait_there_are_not_joined_and_nobody_waits_in_anothers_place() {
    let relay = Running::new();
    let [alice, bob, eve, mallory] = people();
    // Eve wants Alice, who does not want her; Mallory and a stranger are wanted by nobody.
    let mut strangers: Vec<Options> = vec![
        options(&relay.address, &eve, alice.public()),
        options(&relay.address, &eve, bob.public()),
        options(&relay.address, &mallory, eve.public()),
    ];
    strangers.iter_mut().for_each(|options| options.limits.connect = Duration::from_secs(3));
    let (a, b) =
        (options(&relay.address, &alice, bob.public()), options(&relay.address, &bob, alice.public()));
    scope(|scope| {
        let waiting: Vec<_> = strangers.iter().map(|options| scope.spawn(|| meet(options))).collect();
        sleep(Duration::from_millis(300));
        let one = scope.spawn(|| talk(meet(&a).unwrap(), 1));
        assert_eq!(talk(meet(&b).unwrap(), 2).1, [1]);
        assert_eq!(one.join().unwrap().1, [2]);
        for stranger in waiting {
            let error = stranger.join().unwrap().err().expect("nobody wants it");
            assert!(
                matches!(&error, Error::NobodyMet { .. }) && error.to_string().contains("did not reach"),
                "{error}"
            );
        }
    });
}

/// The bytes of a call by `own` for anybody, over the relay's challenge.
fn called(challenge: &[u8], own: &Identity, shown: PublicKey) -> Vec<u8> {
    called_as(0, challenge, own, shown, &[])
}

/// The same by a caller of this part, for these keys.
fn called_as(part: u8, challenge: &[u8], own: &Identity, shown: PublicKey, wanted: &[PublicKey]) -> Vec<u8> {
    let of = |key: &PublicKey| {
        let digits = key.fingerprint().replace('-', "");
        u128::from_str_radix(&digits, 16).unwrap().to_be_bytes()
    };
    let wanted: Vec<[u8; 16]> = wanted.iter().map(of).collect();
    let head = [part, wanted.len() as u8];
    let signed = [challenge, &head, wanted.as_flattened()].concat();
    let signature = own.sign("tacit 1 call at a relay", &signed).unwrap();
    let magic = b"tacit relay 1\r\n\0".as_slice();
    [magic, &head, &shown.to_bytes(), wanted.as_flattened(), &signature].concat()
}

/// A caller that takes this part for these keys, and the first byte that the relay says to it. It says nothing
/// more.
fn seated(relay: &Running, part: u8, own: &Identity, wanted: &[PublicKey]) -> (TcpStream, u8) {
    let mut stream = TcpStream::connect(&relay.address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut greeting = [0; 48];
    stream.read_exact(&mut greeting).unwrap();
    stream.write_all(&called_as(part, &greeting[16..], own, own.public(), wanted)).unwrap();
    let mut said = [0];
    stream.read_exact(&mut said).unwrap();
    (stream, said[0])
}

/// What a side that calls a relay meets that greets it, hears so many bytes of its call and says this, again
/// and again.
fn harmful(heard: usize, say: impl Fn(TcpStream) + Send + Sync + Copy + 'static) -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    spawn(move || {
        for stream in listener.incoming() {
            spawn(move || {
                let mut stream = stream.unwrap();
                let _ = stream.write_all(&[b"tacit relay 1\r\n\0".as_slice(), &[7; 32]].concat());
                if stream.read_exact(&mut vec![0; heard]).is_ok() {
                    say(stream);
                }
            });
        }
    });
    address
}

#[test]
fn a_relay_that_joins_and_resets_ends_no_service() {
    // What it has not read of the call makes the end of the connection a reset.
    let address = harmful(10, |mut stream| {
        sleep(Duration::from_millis(2));
        let _ = stream.write_all(b"1");
    });
    let [service, client] = people();
    let serving = options(&address, &service, client.public());
    let listener = Listener::at_relay(&serving).unwrap();
    let mut reception = Reception::new(&listener, serving).unwrap();
    for _ in 0..4 {
        // Calls come and go while nobody takes them.
        sleep(Duration::from_millis(200));
        assert!(reception.next(Duration::from_millis(300)).unwrap().is_none());
    }
}

#[test]
fn a_relay_that_never_stops_talking_is_left_in_time() {
    let address = harmful(10, |mut stream| while stream.write_all(&[b'.'; 4096]).is_ok() {});
    let [alice, bob] = people();
    let mut waiting = options(&address, &alice, bob.public());
    waiting.limits.connect = Duration::from_secs(2);
    let (told, heard) = std::sync::mpsc::channel();
    spawn(move || told.send(meet(&waiting).err()));
    let ended = heard.recv_timeout(Duration::from_secs(20)).expect("it waits for ever");
    assert!(ended.is_some());
}

#[test]
fn the_newest_caller_of_a_key_is_joined_because_older_ones_may_be_gone() {
    let relay = Running::new();
    let [alice, bob] = people();
    // Alice's machine was cut off: her old call stays, and nobody is behind it.
    let (_gone, said) = seated(&relay, 0, &alice, &[bob.public()]);
    assert_eq!(said, b'.');
    let (a, b) =
        (options(&relay.address, &alice, bob.public()), options(&relay.address, &bob, alice.public()));
    scope(|scope| {
        let one = scope.spawn(|| talk(meet(&a).unwrap(), 1));
        sleep(Duration::from_millis(500));
        assert_eq!(talk(meet(&b).unwrap(), 2).1, [1]);
        assert_eq!(one.join().unwrap().1, [2]);
    });
}

/// A key's calls that were first in the queue keep nobody behind them waiting for longer than a turn.
#[test]
fn a_key_that_calls_again_and_again_has_one_turn_before_others() {
    let relay = Running::new();
    let [place, stranger, joiner] = people();
    let wanted = [place.public()];
    let call = |who| {
        let (stream, said) = seated(&relay, 2, who, &wanted);
        assert_eq!(said, b'.');
        stream
    };
    let said = |mut stream: &TcpStream| {
        let mut byte = [0];
        stream.read_exact(&mut byte).map(|()| byte[0]).ok()
    };
    let first = [call(&stranger), call(&stranger), call(&stranger)];
    let patient = call(&joiner);
    let (one, met) = seated(&relay, 3, &place, &[]);
    assert_eq!((met, said(&first[2])), (b'1', Some(b'2')));
    let _again = call(&stranger);
    drop(one);
    let (_two, met) = seated(&relay, 3, &place, &[]);
    assert_eq!((met, said(&patient)), (b'1', Some(b'2')));
}

#[test]
fn who_was_joined_with_a_side_that_is_gone_is_joined_again_in_time() {
    let relay = Running::new();
    let [alice, bob] = people();
    let (_gone, _) = seated(&relay, 0, &alice, &[bob.public()]);
    let (mut a, mut b) =
        (options(&relay.address, &alice, bob.public()), options(&relay.address, &bob, alice.public()));
    [&mut a, &mut b].into_iter().for_each(|options| options.limits.connect = Duration::from_secs(12));
    scope(|scope| {
        let two = scope.spawn(|| talk(meet(&b).unwrap(), 2).1);
        relay.until(|event| matches!(event, Event::Met(_)));
        assert_eq!(talk(meet(&a).unwrap(), 1).1, [2]);
        assert_eq!(two.join().unwrap(), [1]);
    });
}

#[test]
fn where_one_waits_alone_nobody_else_takes_a_place_of_that_key() {
    let relay = Running::new();
    let [place] = people();
    let (alone, said) = seated(&relay, 3, &place, &[]);
    assert_eq!(said, b'.');
    for part in [0, 1, 3] {
        let (mut other, said) = seated(&relay, part, &place, &[]);
        let mut reason = [0; 6];
        other.read_exact(&mut reason).unwrap();
        assert_eq!((said, &reason), (b'!', b"\x05taken"), "{part}");
    }
    drop(alone);
    assert_eq!(seated(&relay, 1, &place, &[]).1, b'.');
}

#[test]
fn pairs_of_one_address_are_bounded_and_who_finds_no_room_comes_again() {
    let relay = Running::with(Bounds { pairs: 8, ..Bounds::default() }, &[]);
    let [eve, mallory, alice, bob] = people();
    let mut pairs: Vec<_> = (0..4)
        .map(|_| {
            let (one, _) = seated(&relay, 1, &eve, &[mallory.public()]);
            let (two, said) = seated(&relay, 2, &mallory, &[eve.public()]);
            assert_eq!(said, b'2');
            (one, two)
        })
        .collect();
    let (_fifth, _) = seated(&relay, 1, &eve, &[mallory.public()]);
    assert_eq!(seated(&relay, 2, &mallory, &[eve.public()]).1, b'!');
    relay
        .until(|event| matches!(event, Event::TurnedAway(_, why, _) if why.contains("pairs of its address")));
    let (a, b) =
        (options(&relay.address, &alice, bob.public()), options(&relay.address, &bob, alice.public()));
    scope(|scope| {
        let met = [scope.spawn(|| talk(meet(&a).unwrap(), 1)), scope.spawn(|| talk(meet(&b).unwrap(), 2))];
        sleep(Duration::from_secs(1));
        pairs.pop();
        let [one, two] = met.map(|met| met.join().unwrap().1);
        assert_eq!((one, two), (vec![2], vec![1]));
    });
}

#[test]
fn a_service_that_trusts_another_key_from_now_on_is_called_for_by_it() {
    let relay = Running::new();
    let [service, old, new] = people();
    let before = options(&relay.address, &service, old.public());
    let after = options(&relay.address, &service, new.public());
    let listener = Listener::at_relay(&before).unwrap();
    let mut reception = Reception::new(&listener, before).unwrap();
    assert!(reception.next(Duration::from_millis(500)).unwrap().is_none());
    reception.receive_by(after).unwrap();
    let mut late = options(&relay.address, &old, service.public());
    late.limits.connect = Duration::from_secs(2);
    let comes = options(&relay.address, &new, service.public());
    scope(|scope| {
        let told = scope.spawn(|| talk(call(&comes).unwrap(), 1).1);
        let session = reception.next(Duration::from_secs(20)).unwrap().expect("it is joined");
        assert_eq!(session.peer_key(), Some(new.public()));
        assert_eq!(talk(session, 9).1, [1]);
        assert_eq!(told.join().unwrap(), [9]);
        // The last call by the old key is given up within a moment.
        sleep(Duration::from_millis(500));
        let error = scope.spawn(|| call(&late).err()).join().unwrap().expect("it is not trusted any more");
        assert!(matches!(error, Error::NobodyMet { .. }), "{error}");
    });
}

#[test]
fn who_shows_anothers_key_says_an_old_call_again_or_speaks_otherwise_is_turned_away() {
    let relay = Running::new();
    let [alice, eve] = people();
    let dial = || {
        let mut stream = TcpStream::connect(&relay.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let mut greeting = [0; 48];
        stream.read_exact(&mut greeting).unwrap();
        (stream, greeting[16..].to_vec())
    };
    let ends = |mut stream: TcpStream| loop {
        match stream.read(&mut [0; 64]) {
            Ok(0) => return,
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::ConnectionReset => return,
            Err(error) => panic!("{error}"),
        }
    };
    let (mut stream, challenge) = dial();
    let old = called(&challenge, &alice, alice.public());
    stream.write_all(&old).unwrap();
    let mut waits = [0];
    stream.read_exact(&mut waits).unwrap();
    assert_eq!(&waits, b".");
    // Eve saw that call and says it again, then shows Alice's key with a signature of her own.
    let (mut again, challenge) = dial();
    again.write_all(&old).unwrap();
    ends(again);
    let (mut shown, forged) = dial();
    shown.write_all(&called(&forged, &eve, alice.public())).unwrap();
    ends(shown);
    assert_ne!(challenge, forged);
    let (mut http, _) = dial();
    http.write_all(b"GET / HTTP/1.1\r\nHost: relay.example\r\n\r\n").unwrap();
    ends(http);
    // Nine fingerprints, and a part that there is not.
    for head in [[0, 9], [4, 0]] {
        let (mut malformed, _) = dial();
        malformed.write_all(&[b"tacit relay 1\r\n\0".as_slice(), &head, &[7; 32]].concat()).unwrap();
        ends(malformed);
    }
    // A connection ends before the relay tells of it.
    let end = Instant::now() + Duration::from_secs(20);
    loop {
        let why = relay.turned_away();
        let count = |what: &str| why.iter().filter(|why| why.contains(what)).count();
        if (count("does not have the key"), count("does not speak"), count("malformed")) == (2, 1, 2) {
            break;
        }
        assert!(Instant::now() < end && why.len() <= 5, "{why:?}");
        sleep(Duration::from_millis(20));
    }
}

#[test]
fn silent_connections_drive_out_their_own_and_a_pair_still_meets() {
    let bounds = Bounds { unknown: 8, of_address: 8, ..Bounds::default() };
    let relay = Running::with(bounds, &[]);
    let silent: Vec<_> = (0..40).map(|_| TcpStream::connect(&relay.address).unwrap()).collect();
    relay.until(|event| matches!(event, Event::TurnedAway(_, why, _) if why.contains("of its address")));
    drop(silent);
    let [alice, bob] = people();
    let (a, b) =
        (options(&relay.address, &alice, bob.public()), options(&relay.address, &bob, alice.public()));
    scope(|scope| {
        let one = scope.spawn(|| talk(meet(&a).unwrap(), 1));
        assert_eq!(talk(meet(&b).unwrap(), 2).1, [1]);
        one.join().unwrap();
    });
}

#[test]
fn a_service_waits_at_the_relay_for_many_and_knows_them_by_their_keys() {
    let relay = Running::new();
    let [service, one, two, eve] = people();
    let trusted = [&one, &two].map(|client| client.public().fingerprint()).into_iter().collect();
    let mut serving = options(&relay.address, &service, one.public());
    serving.protection = Protection::Tls(Tls::one_of(&service, trusted).unwrap());
    let clients = [&one, &two].map(|client| options(&relay.address, client, service.public()));
    let mut stranger = options(&relay.address, &eve, service.public());
    stranger.limits.connect = Duration::from_secs(2);
    scope(|scope| {
        let served = scope.spawn(|| {
            let listener = Listener::at_relay(&serving).unwrap();
            assert!(listener.place().contains("relay"));
            let mut reception = Reception::new(&listener, serving.clone()).unwrap();
            let mut heard = Vec::new();
            while heard.len() < 6 {
                let Some(session) = reception.next(Duration::from_secs(20)).unwrap() else { break };
                heard.extend(talk(session, 9).1);
            }
            heard.sort_unstable();
            heard
        });
        for round in 0..3 {
            let told = [0, 1].map(|at| {
                let options = &clients[at];
                scope.spawn(move || talk(call(options).unwrap(), 10 * round + at as u64).1)
            });
            if round == 0 {
                let error = call(&stranger).err().expect("nobody trusts Eve");
                assert!(error.is_peer_fault(), "{error}");
            }
            assert!(told.into_iter().all(|told| told.join().unwrap() == [9]));
        }
        assert_eq!(served.join().unwrap(), [0, 1, 10, 11, 20, 21]);
    });
}

#[test]
fn a_relay_for_some_keys_says_so_to_others() {
    let [alice, bob, eve] = people();
    let relay = Running::with(Bounds::default(), &[alice.public(), bob.public()]);
    let error = meet(&options(&relay.address, &eve, alice.public())).err().expect("Eve is not served");
    let said = error.to_string();
    assert!(said.contains("does not serve your key") && said.contains(&eve.public().fingerprint()), "{said}");
    // Nor does whoever is served wait for one who never can come.
    let start = Instant::now();
    let error = meet(&options(&relay.address, &alice, eve.public())).err().expect("Eve is not served");
    assert!(matches!(&error, tacit_net::Error::PeerNotServed { .. }), "{error}");
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    // The key that an invitation shows is its place's, so the fault is told without one.
    let patience = Patience { wait: Some(Duration::from_secs(20)), ..Patience::default() };
    let place = Place::Relay(relay.address.clone());
    let error = invite(&place, &eve, "", &patience, |_| ()).expect_err("no invitations");
    assert!(error.to_string().contains("accepts no invitations"), "{error}");
    let (a, b) =
        (options(&relay.address, &alice, bob.public()), options(&relay.address, &bob, alice.public()));
    scope(|scope| {
        let one = scope.spawn(|| talk(meet(&a).unwrap(), 1));
        talk(meet(&b).unwrap(), 2);
        one.join().unwrap();
    });
}

#[test]
fn a_pair_that_passes_too_much_or_is_silent_too_long_is_parted() {
    for (bounds, why) in [
        (Bounds { bytes: 100_000, ..Bounds::default() }, "too many bytes"),
        (Bounds { time: Duration::from_millis(700), ..Bounds::default() }, "too long"),
        (Bounds { idle: Duration::from_millis(700), ..Bounds::default() }, "gave up"),
    ] {
        let relay = Running::with(bounds, &[]);
        let [alice, bob] = people();
        let sides =
            [options(&relay.address, &alice, bob.public()), options(&relay.address, &bob, alice.public())];
        let lost = scope(|scope| {
            let ends = [0, 1].map(|at| {
                let options = &sides[at];
                scope.spawn(move || {
                    let mut session = meet(options)?;
                    if why == "too many bytes" {
                        session.channel().send(&vec![0; 1 << 20])?;
                        session.channel().flush()?;
                    }
                    session.channel().recv(&mut vec![0; 1 << 20])
                })
            });
            ends.map(|end| end.join().unwrap())
        });
        assert!(lost.iter().all(Result::is_err), "{why}");
        relay.until(|event| matches!(event, Event::Parted(.., Some(what)) if what.contains(why)));
    }
}

#[test]
fn what_is_no_relay_and_keys_that_are_none_are_said_at_once() {
    let [alice, bob] = people();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n").unwrap();
        let _ = stream.read(&mut [0; 1024]);
    });
    let error = meet(&options(&address, &alice, bob.public())).err().expect("no relay");
    assert!(matches!(error, Error::NotRelay { .. }), "{error}");
    let mut plain = options(&address, &alice, bob.public());
    plain.protection = Protection::Plaintext;
    assert!(matches!(meet(&plain), Err(Error::Usage(_))));
    let mut soon = options("127.0.0.1:1", &alice, bob.public());
    soon.limits.connect = Duration::from_secs(1);
    let error = meet(&soon).err().expect("nobody listens there");
    assert!(matches!(&error, Error::NoRelay { after, .. } if *after < Duration::from_secs(3)), "{error}");
}

#[test]
fn waiting_ends_when_it_is_cancelled_and_when_the_relay_comes_back_it_goes_on() {
    let [alice, bob] = people();
    let relay = Running::new();
    let mut waiting = options(&relay.address, &alice, bob.public());
    waiting.cancel = Cancel::armed();
    let cancel = waiting.cancel.clone();
    let ended = spawn(move || meet(&waiting).err());
    sleep(Duration::from_millis(300));
    cancel.cancel();
    assert!(matches!(ended.join().unwrap(), Some(Error::Cancelled)));
    // The relay ends while one waits, and another begins in its place.
    let address = relay.address.clone();
    let a = options(&address, &alice, bob.public());
    let first = spawn(move || talk(meet(&a).unwrap(), 1));
    let (code, invited) = inviting(Place::Relay(address.clone()), alice.clone());
    let code = code.recv_timeout(Duration::from_secs(20)).expect("a code");
    sleep(Duration::from_millis(300));
    drop(relay);
    sleep(Duration::from_millis(700));
    let again = at_the_same_place(&address);
    let b = options(&address, &bob, alice.public());
    assert_eq!(talk(meet(&b).unwrap(), 2).1, [1]);
    first.join().unwrap();
    let patience = Patience { wait: Some(Duration::from_secs(30)), ..Patience::default() };
    let joined = join(&Place::Relay(address), &code.parse().unwrap(), &bob, "", &patience).unwrap();
    assert_eq!(joined.key, alice.public());
    assert_eq!(invited.join().unwrap().unwrap().key, bob.public());
    again.cancel();
}

/// Invites on a thread of its own; the code's text comes when it is told.
fn inviting(
    place: Place,
    identity: Identity,
) -> (std::sync::mpsc::Receiver<String>, std::thread::JoinHandle<tacit_net::Result<Introduced>>) {
    let (told, code) = std::sync::mpsc::channel();
    let patience = Patience { wait: Some(Duration::from_secs(40)), ..Patience::default() };
    let inviting = spawn(move || {
        invite(&place, &identity, "", &patience, |code| told.send(code.text().to_string()).unwrap())
    });
    (code, inviting)
}

/// The key of a place, which everybody has who knows its number.
fn place_key(number: &str) -> Identity {
    let mut secret = [0; 32];
    secret[..4].copy_from_slice(&number.parse::<u32>().unwrap().to_le_bytes());
    Identity::of_secret("tacit 1 place of an invitation", &secret).unwrap()
}

#[test]
fn who_lies_in_wait_at_a_relay_or_leaves_without_a_guess_ends_no_invitation() {
    let relay = Running::new();
    let [alice, bob, eve] = people();
    // One lies in wait for anybody, others for whoever takes one of the first places.
    let mut lying: Vec<_> = vec![seated(&relay, 2, &eve, &[])];
    let places: Vec<PublicKey> = (1..100).map(|number| place_key(&number.to_string()).public()).collect();
    lying.extend(places.chunks(8).map(|places| seated(&relay, 2, &eve, places)));
    assert!(lying.iter().all(|(_, said)| *said == b'.'));
    let (code, invited) = inviting(Place::Relay(relay.address.clone()), alice.clone());
    let code = code.recv_timeout(Duration::from_secs(20)).expect("a code that nobody waits for");
    // Who has the number alone comes to the place and leaves.
    let place = place_key(code.split('-').next().unwrap());
    let (mut stranger, said) = seated(&relay, 2, &eve, &[place.public()]);
    assert_eq!(said, b'2');
    stranger.write_all(b"tacit invite 1\r\n").unwrap();
    drop(stranger);
    let patience = Patience { wait: Some(Duration::from_secs(30)), ..Patience::default() };
    let joined =
        join(&Place::Relay(relay.address.clone()), &code.parse().unwrap(), &bob, "", &patience).unwrap();
    assert_eq!(joined.key, alice.public());
    assert_eq!(invited.join().unwrap().unwrap().key, bob.public());
}

#[test]
fn who_greets_at_a_port_and_leaves_has_guessed_nothing() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let place = Place::Port(free.local_addr().unwrap().to_string());
    drop(free);
    let [alice, bob] = people();
    let (code, invited) = inviting(place.clone(), alice.clone());
    let code = code.recv_timeout(Duration::from_secs(20)).expect("a code");
    let Place::Port(address) = &place else { panic!("a port") };
    for point in [vec![], vec![b'B'; 33], vec![7; 40]] {
        let mut stranger = TcpStream::connect(address).unwrap();
        stranger.write_all(&[b"tacit invite 1\r\n".as_slice(), &point].concat()).unwrap();
    }
    let patience = Patience { wait: Some(Duration::from_secs(30)), ..Patience::default() };
    let joined = join(&place, &code.parse().unwrap(), &bob, "", &patience).unwrap();
    assert_eq!(joined.key, alice.public());
    assert_eq!(invited.join().unwrap().unwrap().key, bob.public());
}

/// An observer, and what it has heard.
fn heard() -> (Observer, Arc<Mutex<Vec<Waited>>>) {
    let heard = Arc::<Mutex<Vec<Waited>>>::default();
    let told = heard.clone();
    (Observer::new(move |event| told.lock().unwrap().push(event.clone())), heard)
}

/// Waits until an observer has heard this.
fn hears(heard: &Mutex<Vec<Waited>>, found: impl Fn(&Waited) -> bool) {
    let end = Instant::now() + Duration::from_secs(20);
    while !heard.lock().unwrap().iter().any(&found) {
        assert!(Instant::now() < end, "{:?}", heard.lock().unwrap());
        sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_side_that_waits_at_a_relay_is_told_so_at_once_and_why_it_cannot() {
    let relay = Running::new();
    let [alice, bob] = people();
    let (observer, events) = heard();
    let mut waiting = options(&relay.address, &alice, bob.public());
    (waiting.observer, waiting.cancel) = (observer, Cancel::armed());
    let cancel = waiting.cancel.clone();
    let waits = spawn(move || meet(&waiting).err());
    let place = format!("the relay {}", relay.address);
    let is_waiting = |event: &Waited| matches!(event, Waited::Waiting { address, obstacle: None, .. } if *address == place);
    hears(&events, is_waiting);
    // It goes on being told.
    let first = events.lock().unwrap().len();
    let end = Instant::now() + Duration::from_secs(20);
    while events.lock().unwrap().len() == first {
        assert!(Instant::now() < end);
        sleep(Duration::from_millis(50));
    }
    cancel.cancel();
    assert!(matches!(waits.join().unwrap(), Some(Error::Cancelled)));
    let (observer, events) = heard();
    let mut nowhere = options("127.0.0.1:1", &alice, bob.public());
    (nowhere.observer, nowhere.limits.connect) = (observer, Duration::from_secs(1));
    let start = Instant::now();
    assert!(matches!(meet(&nowhere), Err(Error::NoRelay { .. })));
    // It is tried as long as was said.
    assert!(start.elapsed() >= Duration::from_secs(1), "{:?}", start.elapsed());
    let once = |event: &Waited| matches!(event, Waited::Waiting { obstacle: Some(why), .. } if why.contains("tried for"));
    assert!(!events.lock().unwrap().iter().any(once), "a single call was not tried for long");
    let why = |event: &Waited| matches!(event, Waited::Waiting { obstacle: Some(why), .. } if why.contains("no relay answers at 127.0.0.1:1"));
    hears(&events, why);
}

#[test]
fn a_code_that_nobody_has_or_nobody_typed_is_said_with_its_number() {
    let relay = Running::new();
    let [alice, bob] = people();
    let place = Place::Relay(relay.address.clone());
    let (observer, events) = heard();
    let patience = Patience { wait: Some(Duration::from_secs(1)), observer, ..Patience::default() };
    let code = "999-walnut-harbour".parse().unwrap();
    let error = join(&place, &code, &bob, "", &patience).expect_err("nobody invited");
    assert!(matches!(&error, Error::NoInvitation { number: 999, .. }), "{error}");
    let waits = |event: &Waited| matches!(event, Waited::Waiting { proof, .. } if proof.contains("999"));
    hears(&events, waits);
    let vacant = |event: &&Waited| matches!(event, Waited::Vacant { number: 999, .. });
    assert_eq!(events.lock().unwrap().iter().filter(vacant).count(), 1);
    let error = invite(&place, &alice, "", &patience, |_| ()).expect_err("nobody typed it");
    assert!(matches!(&error, Error::NobodyJoined { .. }), "{error}");
}

#[test]
fn a_dead_relay_is_given_up_as_soon_by_both_sides_of_an_invitation() {
    let [alice, bob] = people();
    let place = Place::Relay("127.0.0.1:1".to_owned());
    let (observer, events) = heard();
    let patience = Patience { wait: Some(Duration::from_secs(60)), observer, ..Patience::default() };
    let code = "7-walnut-harbour".parse().unwrap();
    scope(|scope| {
        let invited = scope.spawn(|| invite(&place, &alice, "", &patience, |_| ()).expect_err("no relay"));
        let joined = join(&place, &code, &bob, "", &patience).expect_err("no relay");
        for error in [invited.join().unwrap(), joined] {
            let Error::NoRelay { after, .. } = &error else { panic!("{error}") };
            assert!((Duration::from_secs(10)..Duration::from_secs(15)).contains(after), "{error}");
        }
    });
    // What was announced is how long it took.
    let announced = Some(Duration::from_secs(10));
    let is_true =
        |event: &Waited| !matches!(event, Waited::Waiting { patience, .. } if *patience != announced);
    assert!(events.lock().unwrap().iter().all(is_true), "{:?}", events.lock().unwrap());
}

#[test]
fn a_relay_that_was_there_and_goes_is_told_from_one_that_never_was() {
    let relay = Running::new();
    let [alice, bob] = people();
    let (observer, events) = heard();
    let mut options = options(&relay.address, &alice, bob.public());
    (options.observer, options.limits.connect) = (observer, Duration::from_secs(3));
    let waits = spawn(move || meet(&options).err());
    hears(&events, |event| matches!(event, Waited::Waiting { obstacle: None, .. }));
    drop(relay);
    let error = waits.join().unwrap().expect("no relay");
    assert!(matches!(&error, Error::RelayLost { .. }), "{error}");
    assert!(error.to_string().contains("was reached but has gone away"), "{error}");
}

#[test]
fn a_service_is_told_when_its_relay_is_lost_and_found_again() {
    let [service, client] = people();
    let relay = Running::new();
    let address = relay.address.clone();
    let (observer, events) = heard();
    let mut serving = options(&address, &service, client.public());
    serving.observer = observer;
    let _listener = Listener::at_relay(&serving).unwrap();
    hears(&events, |event| matches!(event, Waited::Relay { lost: None, .. }));
    drop(relay);
    hears(
        &events,
        |event| matches!(event, Waited::Relay { lost: Some(why), .. } if why.contains("no relay")),
    );
    let told = events.lock().unwrap().len();
    let again = at_the_same_place(&address);
    let end = Instant::now() + Duration::from_secs(20);
    while events.lock().unwrap().len() == told {
        assert!(Instant::now() < end);
        sleep(Duration::from_millis(50));
    }
    let events = events.lock().unwrap();
    // Four calls were lost, which is told once.
    let lost = events.iter().filter(|event| matches!(event, Waited::Relay { lost: Some(_), .. })).count();
    assert_eq!(
        (lost, matches!(events.last(), Some(Waited::Relay { lost: None, .. }))),
        (1, true),
        "{events:?}"
    );
    again.cancel();
}
