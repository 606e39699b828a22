//! `tacit gateway` as a user starts it. What gateways do with each other is tried in the library's tests.

use crate::common::Bench;
use serde_json::Value;
use std::io::{BufRead, BufReader};

#[test]
fn a_gateway_says_where_it_is_found_and_holds_its_state_alone() {
    let bench = Bench::with_keys();
    let words =
        ["--json", "gateway", "--listen", "127.0.0.1:0", "--cluster", "127.0.0.1:0", "--state", "kept"];
    let words = [&words[..], &["--identity", "alice.key", "--peer", "bob.pub"]].concat();
    let mut first = bench.spawn(&words);
    let mut line = String::new();
    BufReader::new(first.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let said: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(said["name"], "gateway");
    for place in ["cluster", "listen"] {
        let address: std::net::SocketAddr = said[place].as_str().unwrap().parse().unwrap();
        assert!(address.port() > 0 && std::net::TcpStream::connect(address).is_ok());
    }
    assert!(said["token"].as_str().unwrap().ends_with("kept/token"), "{said}");
    let token = bench.read("kept/token");
    assert_eq!(token.trim().len(), 64);
    assert!(!line.contains(token.trim()));
    bench.run(&words).fails_with(3, &["another gateway uses this state directory"]);
    // Killed, it leaves nothing in the way of the next one.
    first.kill().unwrap();
    first.wait().unwrap();
    let mut again = bench.spawn(&words);
    let mut line = String::new();
    BufReader::new(again.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.contains("cluster"), "{line}");
    again.kill().unwrap();
    again.wait().unwrap();
    assert_eq!(bench.read("kept/token"), token);
    bench.write("kept/token", "nothing of the kind\n");
    bench.run(&words).fails_with(3, &["not a gateway's token"]);
}

#[test]
fn what_a_gateway_cannot_do_is_refused_in_one_line() {
    let bench = Bench::with_keys();
    let keys = ["--identity", "alice.key", "--peer", "bob.pub"];
    let start = |more: &[&str]| bench.run(&[&["gateway", "--state", "kept"], more].concat());
    start(&["--listen", "127.0.0.1:0", "--insecure-plaintext"]).fails_with(2, &["TLS"]);
    start(&keys).fails_with(2, &["--listen"]);
    let listen = [&["--listen", "127.0.0.1:0"][..], &keys].concat();
    start(&[&listen[..], &["--threads", "2"]].concat()).fails_with(2, &["threads"]);
    start(&[&listen[..], &["--at-once", "0"]].concat()).fails_with(2, &["at-once"]);
    let holder = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = holder.local_addr().unwrap().to_string();
    start(&[&listen[..], &["--cluster", &taken]].concat()).fails_with(2, &["cannot listen there"]);
    bench.write("file", "in the way");
    let words = ["gateway", "--state", "file/kept", "--listen", "127.0.0.1:0"];
    bench.run(&[&words[..], &keys].concat()).fails_with(3, &["cannot be made"]);
}
