//! A port that serves many peers: each with a key that is trusted, others turned away beside them; and a
//! session that agrees anew.

use std::collections::BTreeSet;
use std::io::Write;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tacit_net::{
    Agreement, Error, Identity, Limits, Listener, Options, Protection, PublicKey, Reception, Result, Session,
    Tls, connect,
};

fn options(protection: Protection, role: &str, peer_role: &str) -> Options {
    let mut options = Options::new(Agreement::new("many", role, peer_role), protection);
    options.limits = Limits { connect: Duration::from_secs(20), ..Limits::default() };
    options
}

fn service(identity: &Identity, peers: &[&Identity]) -> Options {
    let peers: BTreeSet<String> = peers.iter().map(|peer| peer.public().fingerprint()).collect();
    options(Protection::Tls(Tls::one_of(identity, peers).unwrap()), "service", "asker")
}

fn call(address: &str, own: &Identity, service: PublicKey, role: &str) -> Result<Session> {
    let tls = Tls::pinned(own, service).unwrap();
    connect(address, &options(Protection::Tls(tls), role, "service"))
}

#[test]
fn many_peers_are_served_and_others_turned_away() {
    let [alice, bob, carol, dave] = std::array::from_fn(|_| Identity::generate().unwrap());
    let listener = Listener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let over = Arc::new(AtomicBool::new(false));
    let key = alice.public();
    std::thread::scope(|scope| {
        let ended = over.clone();
        let (first, second) = (service(&alice, &[&bob, &carol]), service(&alice, &[&bob, &dave]));
        let served = scope.spawn(move || {
            let mut reception = Reception::new(&listener, first).unwrap();
            let mut served = Vec::new();
            while !ended.load(Ordering::SeqCst) {
                let Some(mut session) = reception.next(Duration::from_millis(20)).unwrap() else { continue };
                served.push(session.peer_key().unwrap());
                session.channel().send_u64(served.len() as u64).unwrap();
                session.channel().flush().unwrap();
                if served.len() == 3 {
                    reception.receive_by(second.clone()).unwrap();
                }
            }
            served
        });
        let half = TcpStream::connect(&address).unwrap();
        let mut noise = TcpStream::connect(&address).unwrap();
        let _ = noise.write_all(&[0xff; 5000]);
        for (number, peer) in [&bob, &carol, &bob].into_iter().enumerate() {
            let mut session = call(&address, peer, key, "asker").unwrap();
            assert_eq!(session.peer_key(), Some(key));
            assert_eq!(session.channel().recv_u64().unwrap(), number as u64 + 1);
        }
        // From then on by other keys.
        let is_served =
            |peer| call(&address, peer, key, "asker").and_then(|mut one| one.channel().recv_u64());
        assert_eq!(is_served(&dave).unwrap(), 4);
        let refused = call(&address, &carol, key, "asker").err().unwrap();
        assert!(matches!(refused, Error::Refused { .. }), "{refused}");
        // A trusted peer of another role hears so, and ends nothing.
        let role = call(&address, &bob, key, "server").err().unwrap();
        assert!(matches!(role, Error::Role { .. }), "{role}");
        assert_eq!(is_served(&bob).unwrap(), 5);
        over.store(true, Ordering::SeqCst);
        drop(half);
        let expected: Vec<PublicKey> = [&bob, &carol, &bob, &dave, &bob].map(Identity::public).to_vec();
        assert_eq!(served.join().unwrap(), expected);
    });
}

/// Both sides of an open session agree on `first` and `second`; the ids before and after, or the errors.
fn anew(first: Agreement, second: Agreement) -> [Result<([u8; 32], [u8; 32])>; 2] {
    let [alice, bob] = std::array::from_fn(|_| Identity::generate().unwrap());
    let listener = Listener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (options, key) = (service(&alice, &[&bob]), alice.public());
    let agree = |session: &mut Session, agreement: &Agreement| {
        let before = session.id().0;
        session.channel().send_u64(7)?;
        session.channel().flush()?;
        session.channel().recv_u64()?;
        session.agree_anew(agreement)?;
        // What follows goes over the same channel.
        session.channel().send_u64(8)?;
        session.channel().flush()?;
        session.channel().recv_u64()?;
        assert_eq!(session.channel().session_id(), session.id());
        Ok((before, session.id().0))
    };
    std::thread::scope(|scope| {
        let one = scope.spawn(move || {
            let mut session = listener.accept(&options).unwrap();
            agree(&mut session, &first)
        });
        let mut session = call(&address, &bob, key, "asker").unwrap();
        let two = agree(&mut session, &second);
        drop(session);
        [one.join().unwrap(), two]
    })
}

#[test]
fn an_open_session_agrees_anew_and_has_a_new_id() {
    let terms =
        |role: &str, peer_role: &str, keys: u64| Agreement::new("job", role, peer_role).with("keys", keys);
    let [one, two] = anew(terms("a", "b", 5), terms("b", "a", 5)).map(Result::unwrap);
    assert_eq!(one, two);
    assert_ne!(one.0, one.1);
    for error in anew(terms("a", "b", 5), terms("b", "a", 6)).map(Result::unwrap_err) {
        assert!(
            matches!(&error, Error::Mismatch { differences } if differences[0].setting == "keys"),
            "{error}"
        );
    }
    for error in anew(terms("a", "b", 5), terms("a", "b", 5)).map(Result::unwrap_err) {
        assert!(matches!(error, Error::Role { .. }), "{error}");
    }
}
