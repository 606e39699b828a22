//! The millionaires' problem in two threads, over TLS on this machine: `cargo run --example evaluate`.

use tacit::net::Identity;
use tacit::two_pc::Owner;
use tacit::{Result, Security, Session};

fn main() -> Result<()> {
    let dir = tempfile::tempdir().expect("a folder for the keys");
    let (alice, bob) = (dir.path().join("alice.key"), dir.path().join("bob.key"));
    let alice_pub = Identity::generate()?.save(&alice, "")?;
    let bob_pub = Identity::generate()?.save(&bob, "")?;

    let address =
        std::net::TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a free port");
    let (listen, connect) = (Session::listen(&address.to_string()), Session::connect(&address.to_string()));

    let other = std::thread::spawn(move || {
        let session = connect.keys(&bob, &alice_pub)?;
        session.security(Security::SemiHonest).evaluate_named("millionaires", Owner::Evaluator, "4000000")
    });
    let session = listen.keys(&alice, &bob_pub)?;
    let richer =
        session.security(Security::SemiHonest).evaluate_named("millionaires", Owner::Garbler, "5000000")?;
    assert_eq!(other.join().expect("the other party ran to its end")?, richer);
    println!("the garbler is the richer one: {}", richer.join(" "));
    assert_eq!(richer, ["0x1"]);
    Ok(())
}

#[test]
fn the_garbler_is_richer() {
    main().unwrap();
}
