//! Two parties in two threads, over TLS on this machine: `cargo run --example intersect`.

use tacit::net::Identity;
use tacit::psi::paxos::Learns;
use tacit::{Result, Session};

fn main() -> Result<()> {
    let dir = tempfile::tempdir().expect("a folder for the keys");
    let (alice, bob) = (dir.path().join("alice.key"), dir.path().join("bob.key"));
    let alice_pub = Identity::generate()?.save(&alice, "")?;
    let bob_pub = Identity::generate()?.save(&bob, "")?;

    let other = std::thread::spawn(move || {
        let session = Session::connect("127.0.0.1:7709").keys(&bob, &alice_pub)?;
        session.intersect(&["ann", "bob", "cleo"], Learns::Peer)
    });
    let mine = ["bob", "cleo", "dora"];
    let found = Session::listen("127.0.0.1:7709").keys(&alice, &bob_pub)?.intersect(&mine, Learns::Me)?;
    other.join().expect("the other party ran to its end")?;
    let names: Vec<&str> = found.matches.unwrap_or_default().iter().map(|&at| mine[at as usize]).collect();
    println!("both have {}", names.join(" and "));
    assert_eq!(names, ["bob", "cleo"]);
    Ok(())
}
