//! A side that waits: strangers do not end it, and it says for whom, where and since when.

use crate::common::{Bench, free_port, wait};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Child;
use std::time::{Duration, Instant};

fn with_tables() -> Bench {
    let bench = Bench::with_keys();
    for (name, from) in [("alice.csv", 0), ("bob.csv", 10)] {
        let rows = (from..from + 20).map(|i| format!("user{i}@example.com\n")).collect::<String>();
        bench.write(name, "email\n".to_owned() + &rows);
    }
    bench
}

/// What both sides of an intersection say beside how to reach the peer.
fn side(party: &'static str) -> Vec<&'static str> {
    let own = match party {
        "alice" => ["--identity", "alice.key", "--peer", "bob.pub", "--input", "alice.csv"],
        _ => ["--identity", "bob.key", "--peer", "alice.pub", "--input", "bob.csv"],
    };
    [&own[..], &["--key", "email", "--result", "both", "--connect-timeout", "40"]].concat()
}

fn until_it_listens(port: u16) -> TcpStream {
    let start = Instant::now();
    loop {
        if let Ok(stream) = TcpStream::connect(("127.0.0.1", port)) {
            return stream;
        }
        assert!(start.elapsed() < Duration::from_secs(20), "nobody listens");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Alice listening at `address`.
fn alice(bench: &Bench, address: &str, more: &[&str]) -> Child {
    bench.spawn(&[&["psi", "--listen", address], &side("alice")[..], more].concat())
}

#[test]
fn strangers_do_not_end_a_listener_and_the_peer_is_served_at_once() {
    let bench = with_tables();
    bench.run(&["keygen", "--out", "mallory.key"]).success();
    // Buckets have a connection for each thread.
    let buckets = ["--threads", "2", "--memory", "64MiB"];
    for (threads, more) in [("1", &[][..]), ("2", &buckets[..])] {
        let word = "10 matches";
        let port = free_port();
        let address = format!("127.0.0.1:{port}");
        let first = alice(&bench, &address, more);
        drop(until_it_listens(port));
        let mut held = Vec::new();
        for number in 0..60 {
            let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
            match number % 3 {
                // As `nc -z`, a browser, and somebody who says nothing.
                0 => drop(stream),
                1 => {
                    stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
                    let _ = stream.set_read_timeout(Some(Duration::from_secs(1)));
                    let _ = stream.read(&mut [0; 64]);
                }
                _ => held.push(stream),
            }
        }
        let mut wrong =
            vec!["psi", "--connect", &address, "--identity", "mallory.key", "--peer", "alice.pub"];
        wrong.extend(["--input", "bob.csv", "--key", "email", "--result", "both"]);
        let start = Instant::now();
        bench.run(&wrong).fails_with(4, &["the peer rejected your key", "key"]);
        assert!(start.elapsed() < Duration::from_secs(5), "the wrong key is refused at once");

        let start = Instant::now();
        let bob = [&["psi", "--connect", &address], &side("bob")[..], more].concat();
        let second = bench.run(&bob);
        let first = wait(first);
        assert!(start.elapsed() < Duration::from_secs(10), "the peer is served at once");
        assert!(second.success().starts_with(word) && first.success().starts_with(word));

        let said = first.err;
        let lines: Vec<&str> = said.lines().filter(|line| line.starts_with("waiting for ")).collect();
        assert_eq!(lines.len(), 1, "{said}");
        let start =
            lines[0].strip_prefix("waiting for bob (fingerprint ").unwrap_or_else(|| panic!("{said}"));
        let (fingerprint, rest) = start.split_once(") at ").unwrap();
        let public = bench.run(&["--json", "keygen", "--out", &format!("other{threads}.key")]);
        assert_eq!(fingerprint.len(), 39, "128 bits, as in: {}", public.success());
        let rest = rest.strip_prefix(&format!("{address} since ")).unwrap_or_else(|| panic!("{said}"));
        assert_eq!(&rest[2..3], ":", "{said}");
        assert!(rest.ends_with(" UTC, up to 40 s"), "{said}");
        // 60 strangers, Mallory and the first look: noted when their number doubles.
        let notes = said.lines().filter(|line| line.contains("was rejected")).count();
        assert!((3..=7).contains(&notes), "{said}");
    }
}

#[test]
fn a_listener_that_waits_in_vain_names_the_wrong_key() {
    let bench = with_tables();
    bench.run(&["keygen", "--out", "mallory.key"]).success();
    let port = free_port();
    let address = format!("127.0.0.1:{port}");
    let args = [&["psi", "--listen", &address], &side("alice")[..8], &["--connect-timeout", "2"]].concat();
    let first = bench.spawn(&args);
    drop(until_it_listens(port));
    let wrong = ["psi", "--connect", &address, "--identity", "mallory.key", "--peer", "alice.pub"];
    let wrong = [&wrong[..], &["--input", "bob.csv", "--key", "email"]].concat();
    bench.run(&wrong).fails_with(4, &["the peer rejected your key"]);
    wait(first).fails_with(
        4,
        &["2 s", &address, "rejected 2 connections (1: wrong key ", "is --peer the right file"],
    );
}

#[test]
fn quiet_says_nothing_and_json_still_says_whom_it_waits_for() {
    let bench = with_tables();
    for (flag, waits) in [("--quiet", 0), ("--json", 1)] {
        let address = format!("127.0.0.1:{}", free_port());
        let first = alice(&bench, &address, &[flag]);
        let bob = [&["psi", "--connect", &address], &side("bob")[..], &[flag]].concat();
        bench.run(&bob).success();
        let said = wait(first);
        said.success();
        assert_eq!(said.err.lines().count(), waits, "{flag}: {}", said.err);
    }
}

#[test]
fn a_connecting_side_says_what_it_waits_for_too() {
    let bench = with_tables();
    let address = format!("127.0.0.1:{}", free_port());
    let args = [&["psi", "--connect", &address], &side("bob")[..]].concat();
    let second = bench.spawn(&args);
    std::thread::sleep(Duration::from_millis(1500));
    let first = alice(&bench, &address, &[]);
    let second = wait(second);
    assert!(wait(first).success().starts_with("10 matches"));
    second.success();
    let words = format!(") to listen at {address} since ");
    let said: Vec<&str> = second.err.lines().collect();
    assert!(said.len() == 1 && said[0].starts_with("waiting for alice (fingerprint "), "{said:?}");
    assert!(said[0].contains(&words) && said[0].contains("UTC, up to 40 s: "), "{said:?}");
}

#[test]
fn a_name_that_is_not_found_is_the_links_fault_and_bad_syntax_the_users() {
    let bench = with_tables();
    for way in ["--connect", "--listen"] {
        for (address, code, word) in [
            ("no-such-host.invalid:7700", 4, "was not found"),
            ("127.0.0.1", 2, "HOST:PORT"),
            ("127.0.0.1:70000", 2, "port"),
            ("[::1:7700", 2, "brackets"),
            ("two words:7700", 2, "HOST:PORT"),
        ] {
            let keys = [&["psi", way, address], &side("bob")[..8], &["--connect-timeout", "2"]].concat();
            let start = Instant::now();
            bench.run(&keys).fails_with(code, &[word, address]);
            let tried = start.elapsed() >= Duration::from_millis(1200);
            assert_eq!(tried, code == 4, "{way} {address}: {:?}", start.elapsed());
            let plain = ["psi", way, address, "--insecure-plaintext", "--input", "bob.csv", "--key", "email"];
            bench.run(&[&plain[..], &["--connect-timeout", "1"]].concat()).fails_with(code, &[word, address]);
        }
    }
}
