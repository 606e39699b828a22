//! TLS: who is let in, what is negotiated, and what each failure says.

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tacit_net::{
    Agreement, Error, Fault, Identity, Limits, Listener, Options, Protection, PublicKey, Result, Session,
    Tls, connect,
};

fn options(protection: Protection, role: &str, peer_role: &str) -> Options {
    let mut options = Options::new(Agreement::new("test", role, peer_role), protection);
    options.limits =
        Limits { connect: Duration::from_secs(10), idle: Duration::from_secs(20), ..Limits::default() };
    options
}

fn pinned(identity: &Identity, peer: &Identity) -> Protection {
    Protection::Tls(Tls::pinned(identity, peer.public()).unwrap())
}

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

fn meet(first: Protection, second: Protection) -> (Result<Session>, Result<Session>) {
    pair(&options(first, "a", "b"), &options(second, "b", "a"))
}

fn refused(outcome: (Result<Session>, Result<Session>)) -> (Error, Error) {
    (outcome.0.err().expect("the listener must refuse"), outcome.1.err().expect("the connector must refuse"))
}

#[test]
fn the_key_exchange_is_the_post_quantum_hybrid() {
    let (alice, bob) = (Identity::generate().unwrap(), Identity::generate().unwrap());
    let (a, b) = meet(pinned(&alice, &bob), pinned(&bob, &alice));
    let (mut a, mut b) = (a.unwrap(), b.unwrap());
    assert_eq!(a.tls(), Some(("X25519MLKEM768", "TLS13_AES_128_GCM_SHA256")));
    assert_eq!(a.tls(), b.tls());
    assert_eq!(a.id(), b.id());
    b.channel().send_sized(b"sealed").unwrap();
    b.channel().flush().unwrap();
    assert_eq!(a.channel().recv_sized(6).unwrap(), b"sealed");
    let stats = a.stats();
    assert!(
        stats.wire_received > stats.bytes_received + 1000,
        "the wire carries the TLS handshake too: {stats:?}"
    );
}

#[test]
fn several_channels_and_64_mib_both_ways() {
    let (alice, bob) = (Identity::generate().unwrap(), Identity::generate().unwrap());
    let mut first = options(pinned(&alice, &bob), "a", "b");
    let mut second = options(pinned(&bob, &alice), "b", "a");
    (first.channels, second.channels) = (2, 2);
    let (a, b) = pair(&first, &second);
    let channels = a.unwrap().into_channels().into_iter().chain(b.unwrap().into_channels());
    let threads = channels.map(|mut channel| {
        std::thread::spawn(move || {
            let data: Vec<u8> = (0..64 << 20).map(|i: u32| (i ^ (i >> 8)) as u8).collect();
            let mut out = vec![0; data.len()];
            channel.send(&data).unwrap();
            channel.recv(&mut out).unwrap();
            assert!(data == out);
        })
    });
    threads.collect::<Vec<_>>().into_iter().for_each(|thread| thread.join().unwrap());
}

#[test]
fn the_wrong_peer_is_refused_on_both_sides() {
    let [alice, bob, eve] = std::array::from_fn(|_| Identity::generate().unwrap());
    // Eve connects in Bob's place.
    let (a, e) = refused(meet(pinned(&alice, &bob), pinned(&eve, &alice)));
    assert!(
        matches!(&a, Error::WrongPeer { expected, found }
            if *expected == bob.public().fingerprint() && *found == eve.public().fingerprint()),
        "{a}"
    );
    assert!(matches!(e, Error::Refused { .. }), "{e}");
    // Eve listens in Alice's place.
    let (e, b) = refused(meet(pinned(&eve, &bob), pinned(&bob, &alice)));
    assert!(matches!(b, Error::WrongPeer { .. }), "{b}");
    assert!(matches!(e, Error::Refused { .. }), "{e}");
    assert_eq!((b.fault(), e.fault()), (Fault::Peer, Fault::Peer));
}

#[test]
fn tls_against_plaintext_is_one_clear_line() {
    let (alice, bob) = (Identity::generate().unwrap(), Identity::generate().unwrap());
    let (a, b) = refused(meet(pinned(&alice, &bob), Protection::Plaintext));
    assert!(a.to_string().contains("a Tacit greeting without TLS"), "{a}");
    assert!(b.to_string().contains("wants TLS"), "{b}");
    let mut first = options(Protection::Plaintext, "a", "b");
    first.limits.connect = Duration::from_secs(1);
    let (a, b) = refused(pair(&first, &options(pinned(&bob, &alice), "b", "a")));
    assert!(a.to_string().contains("a TLS greeting"), "{a}");
    assert!(b.is_peer_fault(), "{b}");
}

#[test]
fn strangers_and_silence() {
    let (alice, bob) = (Identity::generate().unwrap(), Identity::generate().unwrap());
    let mut options = options(pinned(&alice, &bob), "a", "b");
    options.limits.connect = Duration::from_millis(400);
    let listener = Listener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let try_with = |bytes: &'static [u8]| {
        let stranger = std::thread::spawn(move || {
            let mut stream = std::net::TcpStream::connect(address).unwrap();
            stream.write_all(bytes).unwrap();
            // Closed or reset, both will do.
            let _ = stream.read_to_end(&mut Vec::new());
        });
        let error = listener.accept(&options).err().unwrap();
        stranger.join().unwrap();
        error
    };
    let error = try_with(b"GET / HTTP/1.1\r\n\r\n");
    assert!(matches!(&error, Error::NotTacit { saw } if saw.contains("GET / HTTP")), "{error}");
    assert!(try_with(&[0x16, 3, 1, 0, 4, 1, 2, 3, 4]).is_peer_fault());
    assert!(matches!(try_with(b""), Error::Timeout { .. }));
}

fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn key_files_round_trip_and_refuse_what_they_should() {
    let folder = tempfile::tempdir().unwrap();
    let private = folder.path().join("alice.key");
    let alice = Identity::generate().unwrap();
    let public = alice.save(&private, "alice@example\nsecond line").unwrap();
    assert_eq!(public, folder.path().join("alice.pub"));
    assert_eq!(mode(&private), 0o600);
    assert_eq!(Identity::load(&private).unwrap().public(), alice.public());
    assert_eq!(PublicKey::load(&public).unwrap(), alice.public());
    let line = fs::read_to_string(&public).unwrap();
    assert_eq!(line.lines().count(), 1);
    assert!(line.starts_with("tacit-ed25519 ") && line.ends_with(" alice@example second line\n"), "{line}");
    let secret = fs::read_to_string(&private).unwrap();
    let secret = secret.split_whitespace().nth(1).unwrap();
    assert!(!format!("{alice:?}").contains(secret) && format!("{alice:?}").contains("[secret]"));

    let says = |error: Error, words: &str| {
        assert!(matches!(error, Error::Key { .. }) && error.to_string().contains(words), "{error}");
        assert!(!error.to_string().contains(secret));
    };
    says(alice.save(&private, "").unwrap_err(), "not overwritten");
    says(alice.save(&folder.path().join("x.pub"), "").unwrap_err(), ".pub");
    says(PublicKey::load(&private).unwrap_err(), "private key");
    says(Identity::load(&public).unwrap_err(), "public key");
    says(Identity::load(&folder.path().join("none.key")).unwrap_err(), "tacit keygen");
    fs::set_permissions(&private, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    says(Identity::load(&private).unwrap_err(), "chmod 600");
    for (text, words) in
        [("", "not a Tacit"), ("\u{0}\u{1}", "not a Tacit"), ("tacit-ed25519-private AAAA", "damaged")]
    {
        let path = folder.path().join("bad.key");
        let _ = fs::remove_file(&path);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        says(Identity::load(&path).unwrap_err(), words);
    }
    fs::write(&public, "tacit-ed25519 AAAA bob").unwrap();
    says(PublicKey::load(&public).unwrap_err(), "damaged");
    fs::write(&public, vec![b'x'; 5000]).unwrap();
    says(PublicKey::load(&public).unwrap_err(), "too long");
}

/// An authority with one certificate for each name; PEM files in `folder`.
struct Authority {
    folder: PathBuf,
}

impl Authority {
    fn new(folder: &Path, label: &str, names: &[&str]) -> Self {
        let folder = folder.join(label);
        fs::create_dir(&folder).unwrap();
        let key = rcgen::KeyPair::generate().unwrap();
        let mut parameters = rcgen::CertificateParams::new(Vec::<String>::new()).unwrap();
        parameters.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let root = parameters.self_signed(&key).unwrap();
        fs::write(folder.join("ca.pem"), root.pem()).unwrap();
        let issuer = rcgen::Issuer::new(parameters, key);
        for name in names {
            let key = rcgen::KeyPair::generate().unwrap();
            let mut parameters = rcgen::CertificateParams::new(vec![(*name).to_owned()]).unwrap();
            parameters.extended_key_usages =
                vec![rcgen::ExtendedKeyUsagePurpose::ServerAuth, rcgen::ExtendedKeyUsagePurpose::ClientAuth];
            let certificate = parameters.signed_by(&key, &issuer).unwrap();
            fs::write(folder.join(format!("{name}.pem")), certificate.pem()).unwrap();
            fs::write(folder.join(format!("{name}.key")), key.serialize_pem()).unwrap();
        }
        Authority { folder }
    }

    fn tls(&self, name: &str, peer: &str) -> Protection {
        let file = |ending: &str| self.folder.join(format!("{name}.{ending}"));
        Protection::Tls(
            Tls::authority(&self.folder.join("ca.pem"), &file("pem"), &file("key"), peer).unwrap(),
        )
    }
}

#[test]
fn an_authority_can_be_used_instead_of_pinned_keys() {
    let folder = tempfile::tempdir().unwrap();
    let names = ["alice.example", "bob.example", "eve.example"];
    let ours = Authority::new(folder.path(), "ours", &names);
    let theirs = Authority::new(folder.path(), "theirs", &names);
    let alice = || ours.tls("alice.example", "bob.example");
    let bob = || ours.tls("bob.example", "alice.example");
    let (a, b) = meet(alice(), bob());
    assert_eq!(a.unwrap().id(), b.unwrap().id());

    let (a, _) = refused(meet(alice(), ours.tls("eve.example", "alice.example")));
    assert!(a.to_string().contains("not for the name bob.example"), "{a}");
    let (_, b) = refused(meet(ours.tls("eve.example", "bob.example"), bob()));
    assert!(b.to_string().contains("alice.example"), "{b}");
    let (a, b) = refused(meet(alice(), theirs.tls("bob.example", "alice.example")));
    assert!(a.is_peer_fault() && b.is_peer_fault(), "{a} {b}");
    let (carol, dave) = (Identity::generate().unwrap(), Identity::generate().unwrap());
    let (a, b) = refused(meet(alice(), pinned(&carol, &dave)));
    assert!(a.is_peer_fault() && b.is_peer_fault(), "{a} {b}");

    let file = |name: &str| ours.folder.join(name);
    let wrong =
        Tls::authority(&file("ca.pem"), &file("alice.example.pem"), &file("bob.example.key"), "bob.example");
    assert!(wrong.unwrap_err().to_string().contains("not the key of the certificate"));
    let wrong =
        Tls::authority(&file("none.pem"), &file("alice.example.pem"), &file("alice.example.key"), "x");
    assert!(matches!(wrong.unwrap_err(), Error::Key { .. }));
}
