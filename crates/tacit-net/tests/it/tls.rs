//! TLS: who is let in, what is negotiated, and what each failure says.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tacit_net::{
    Agreement, Error, Fault, Identity, Limits, Listener, Options, Protection, PublicKey, Result, Session,
    Tls, connect,
};

fn options(protection: Protection, role: &str, peer_role: &str) -> Options {
    let mut options = Options::new(Agreement::new("test", role, peer_role), protection);
    options.limits = Limits {
        connect: Duration::from_secs(10),
        accept: Some(Duration::from_secs(10)),
        idle: Duration::from_secs(20),
        ..Limits::default()
    };
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

/// Two that do not fit: the connector learns it at once, the listener says so when it has waited in vain.
fn refused(first: Protection, second: Protection) -> (Error, Error) {
    let mut first = options(first, "a", "b");
    first.limits.accept = Some(Duration::from_millis(1500));
    let start = Instant::now();
    let listener = Listener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::scope(|scope| {
        let second = options(second, "b", "a");
        let other = scope.spawn(move || {
            let error = connect(&address, &second).err().expect("the connector must refuse");
            (error, start.elapsed())
        });
        let mine = listener.accept(&first).err().expect("the listener must refuse");
        drop(listener);
        let (other, elapsed) = other.join().unwrap();
        assert!(elapsed < Duration::from_millis(1400), "the connector waited {elapsed:?}: {other}");
        assert!(matches!(mine, Error::NoPeer { .. }) && mine.is_peer_fault(), "{mine}");
        assert!(mine.to_string().contains("rejected 1 connection ("), "{mine}");
        (mine, other)
    })
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
    let (a, e) = refused(pinned(&alice, &bob), pinned(&eve, &alice));
    let found = format!("wrong key {}", eve.public().fingerprint());
    assert!(a.to_string().contains(&found), "{a}");
    assert!(matches!(e, Error::Refused { .. }), "{e}");
    // Eve listens in Alice's place.
    let (e, b) = refused(pinned(&eve, &bob), pinned(&bob, &alice));
    assert!(
        matches!(&b, Error::WrongPeer { expected, found }
            if *expected == alice.public().fingerprint() && *found == eve.public().fingerprint()),
        "{b}"
    );
    assert!(e.to_string().contains("it rejected your key"), "{e}");
    assert_eq!((b.fault(), e.fault()), (Fault::Peer, Fault::Peer));
}

#[test]
fn tls_against_plaintext_is_one_clear_line() {
    let (alice, bob) = (Identity::generate().unwrap(), Identity::generate().unwrap());
    let (a, b) = refused(pinned(&alice, &bob), Protection::Plaintext);
    assert!(a.to_string().contains("a Tacit greeting without TLS"), "{a}");
    assert!(b.to_string().contains("wants TLS"), "{b}");
    let (a, b) = refused(Protection::Plaintext, pinned(&bob, &alice));
    assert!(a.to_string().contains("a TLS greeting"), "{a}");
    assert!(b.to_string().contains("a Tacit greeting without TLS"), "{b}");
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
    fs::write(&public, vec![b'x'; 20_000]).unwrap();
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

    let (a, e) = refused(alice(), ours.tls("eve.example", "alice.example"));
    assert!(a.to_string().contains("bob.example"), "{a}");
    assert!(matches!(e, Error::Refused { .. }), "{e}");
    let (_, b) = refused(ours.tls("eve.example", "bob.example"), bob());
    assert!(b.to_string().contains("alice.example"), "{b}");
    let (a, b) = refused(alice(), theirs.tls("bob.example", "alice.example"));
    assert!(a.is_peer_fault() && b.is_peer_fault(), "{a} {b}");
    let (carol, dave) = (Identity::generate().unwrap(), Identity::generate().unwrap());
    let (a, b) = refused(alice(), pinned(&carol, &dave));
    assert!(a.is_peer_fault() && b.is_peer_fault(), "{a} {b}");

    let file = |name: &str| ours.folder.join(name);
    let wrong =
        Tls::authority(&file("ca.pem"), &file("alice.example.pem"), &file("bob.example.key"), "bob.example");
    assert!(wrong.unwrap_err().to_string().contains("not the key of the certificate"));
    let wrong =
        Tls::authority(&file("none.pem"), &file("alice.example.pem"), &file("alice.example.key"), "x");
    assert!(matches!(wrong.unwrap_err(), Error::Key { .. }));
}

/// The neutral point as a key: the signature of this point and 0 verifies on everything.
struct Neutral;

const NEUTRAL: [u8; 32] = {
    let mut bytes = [0; 32];
    bytes[0] = 1;
    bytes
};

impl rcgen::PublicKeyData for Neutral {
    fn der_bytes(&self) -> &[u8] {
        &NEUTRAL
    }

    fn algorithm(&self) -> &'static rcgen::SignatureAlgorithm {
        &rcgen::PKCS_ED25519
    }
}

impl rcgen::SigningKey for Neutral {
    fn sign(&self, _: &[u8]) -> std::result::Result<Vec<u8>, rcgen::Error> {
        Ok([&NEUTRAL[..], &[0; 32]].concat())
    }
}

/// An outsider makes a certificate of any name under an intermediate one with which anybody can sign, as client
/// and as server.
#[test]
fn nobody_comes_in_under_an_authority_with_which_anybody_can_sign() {
    let folder = tempfile::tempdir().unwrap();
    let ours = Authority::new(folder.path(), "ours", &["alice.example", "bob.example"]);
    let key = rcgen::KeyPair::generate().unwrap();
    let of = |name: &str| {
        let mut parameters = rcgen::CertificateParams::new(Vec::<String>::new()).unwrap();
        parameters.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        parameters.distinguished_name.push(rcgen::DnType::CommonName, name);
        parameters
    };
    let root = of("another root").self_signed(&key).unwrap().pem();
    let path = ours.folder.join("ca.pem");
    let both = fs::read_to_string(&path).unwrap() + &root;
    fs::write(&path, both).unwrap();
    let root = rcgen::Issuer::new(of("another root"), key);
    let between = of("between").signed_by(&Neutral, &root).unwrap().pem();
    let by = rcgen::Issuer::new(of("between"), Neutral);
    for name in ["alice.example", "bob.example"] {
        let key = rcgen::KeyPair::generate().unwrap();
        let mut parameters = rcgen::CertificateParams::new(vec![name.to_owned()]).unwrap();
        parameters.distinguished_name.push(rcgen::DnType::CommonName, "made up");
        let leaf = parameters.signed_by(&key, &by).unwrap().pem();
        fs::write(ours.folder.join(format!("forged.{name}.pem")), leaf + &between).unwrap();
        fs::write(ours.folder.join(format!("forged.{name}.key")), key.serialize_pem()).unwrap();
    }
    let alice = || ours.tls("alice.example", "bob.example");
    let bob = || ours.tls("bob.example", "alice.example");
    let (a, b) = meet(alice(), bob());
    assert_eq!(a.unwrap().id(), b.unwrap().id());
    let (a, _) = refused(alice(), ours.tls("forged.bob.example", "alice.example"));
    assert!(a.to_string().contains("anyone can sign"), "{a}");
    let (_, b) = refused(ours.tls("forged.alice.example", "bob.example"), bob());
    assert!(b.to_string().contains("anyone can sign"), "{b}");
}
