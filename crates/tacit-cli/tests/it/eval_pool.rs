//! `tacit eval pool` and `tacit eval --pool` between two real processes.

use crate::common::{Bench, Harm, Said, free_port, proxy, wait};
use std::process::Child;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

/// The words of both sides, the garbler listening; the evaluator connects to `port` if one is given.
fn words(
    common: &[&str],
    garbler: &[&str],
    evaluator: &[&str],
    through: Option<(u16, u16)>,
) -> [Vec<String>; 2] {
    let listen = through.map_or_else(free_port, |(listen, _)| listen);
    let connect = through.map_or(listen, |(_, connect)| connect);
    let side = |mode: &str, port: u16, key: &str, peer: &str, role: &str, own: &[&str]| {
        let address = format!("127.0.0.1:{port}");
        let peer = [mode, &address, "--identity", key, "--peer", peer, "--role", role];
        [common, &peer, own].concat().iter().map(|word| word.to_string()).collect()
    };
    [
        side("--listen", listen, "alice.key", "bob.pub", "garbler", garbler),
        side("--connect", connect, "bob.key", "alice.pub", "evaluator", evaluator),
    ]
}

fn run(bench: &Bench, [ours, theirs]: [Vec<String>; 2]) -> (Said, Said) {
    let [ours, theirs] = [&ours, &theirs].map(|side| side.iter().map(String::as_str).collect::<Vec<_>>());
    bench.run_both(&ours, &theirs)
}

fn make(bench: &Bench, size: &[&str], files: [&str; 2]) -> (Said, Said) {
    let common = [&["--json", "eval", "pool", "make"], size].concat();
    run(bench, words(&common, &["--file", files[0]], &["--file", files[1]], None))
}

fn add(bench: &Bench, function: &str, files: [&str; 2], more: &[&str]) -> (Said, Said) {
    let common = [&["--json", "eval", function, "--timeout", "10"], more].concat();
    let [ours, theirs] = [["--pool", files[0], "--input", "200"], ["--pool", files[1], "--input", "55"]];
    run(bench, words(&common, &ours, &theirs, None))
}

fn info(bench: &Bench, file: &str, key: &str) -> Said {
    bench.run(&["--json", "eval", "pool", "info", file, "--identity", key])
}

#[test]
fn a_pool_is_made_whatever_the_function_and_serves_one_run() {
    let bench = Bench::with_keys();
    let (g, e) = make(&bench, &["--gates", "100", "--rows", "3"], ["g.pool", "e.pool"]);
    for said in [&g, &e] {
        assert!(said.success().contains("\"rows\":3") && said.out.contains("\"gates\":100"), "{said:?}");
    }
    assert!(info(&bench, "g.pool", "alice.key").success().contains("\"role\":\"garbler\""));
    bench.write("ours.csv", "n\n200\n7\n");
    bench.write("theirs.csv", "n\n55\n8\n");
    let batch = ["--json", "eval", "add8", "--batch"];
    let sides = [["--pool", "g.pool", "--input", "ours.csv"], ["--pool", "e.pool", "--input", "theirs.csv"]];
    let (g, e) = run(&bench, words(&batch, &sides[0], &sides[1], None));
    for said in [&g, &e] {
        let said: serde_json::Value = serde_json::from_str(said.success()).unwrap();
        assert_eq!(said["decimals"], serde_json::json!([["255"], ["15"]]));
        assert_eq!((&said["mode"], &said["protocol"]), (&"pool".into(), &"authenticated".into()));
        // Two rows' tables and labels: what made the gates passed before.
        assert!(said["bytes_sent"].as_u64().unwrap() < 6_000, "{said}");
    }
    for (file, key) in [("g.pool", "alice.key"), ("e.pool", "bob.key")] {
        info(&bench, file, key).fails_with(3, &[file, "used before", "make a new one on both sides"]);
    }
    let (g, e) = add(&bench, "add8", ["g.pool", "e.pool"], &[]);
    g.fails_with(3, &["g.pool", "used before"]);
    e.fails_with(3, &["e.pool", "used before"]);
}

/// Many gates take the correlated OT that suits the line: over a slow one, whose bytes count, the thrifty one.
/// Over loopback a gate takes 76 bytes, setup included.
#[test]
fn a_large_pool_is_made_for_the_link() {
    let bench = Bench::with_keys();
    let (g, e) = make(&bench, &["--gates", "262144", "--link", "50/1"], ["g.pool", "e.pool"]);
    let said: serde_json::Value = serde_json::from_str(g.success()).unwrap();
    e.success();
    let bytes = said["bytes_sent"].as_u64().unwrap() + said["bytes_received"].as_u64().unwrap();
    assert!(bytes < 70 * 262_144, "{bytes}");
    let (g, e) = add(&bench, "add8", ["g.pool", "e.pool"], &[]);
    assert!(g.success().contains("255") && e.success().contains("255"));
}

#[test]
fn pools_that_do_not_fit_are_refused_with_the_reason_and_stay() {
    let bench = Bench::with_keys();
    for files in [["g1", "e1"], ["g2", "e2"]] {
        let (g, e) = make(&bench, &["--gates", "10", "--inputs", "16"], files);
        g.success();
        e.success();
    }
    let (g, e) = add(&bench, "add8", ["g1", "e2"], &[]);
    g.fails_with(4, &["not made together"]);
    e.fails_with(4, &["not made together"]);
    // Local faults, before a peer is called.
    let (g, e) = add(&bench, "add16", ["g1", "e1"], &[]);
    g.fails_with(3, &["g1", "at most 10 AND gates", "15"]);
    e.fails_with(3, &["e1", "at most 10 AND gates", "15"]);
    add(&bench, "eq17", ["g1", "e1"], &[]).0.fails_with(3, &["g1", "16 input bits"]);
    add(&bench, "add8", ["e1", "g1"], &[]).0.fails_with(3, &["e1", "another key"]);
    let one = ["eval", "add8", "--role", "garbler", "--listen", "127.0.0.1:1", "--identity", "bob.key"];
    let one = [&one[..], &["--peer", "alice.pub", "--input", "1", "--pool", "e1"]].concat();
    bench.run(&one).fails_with(3, &["e1", "the evaluator's half"]);
    bench.write("rows.csv", "n\n1\n2\n");
    let batch = ["eval", "add8", "--batch", "--input", "rows.csv"];
    run(&bench, words(&batch, &["--pool", "g1"], &["--pool", "e1"], None))
        .0
        .fails_with(3, &["at most 1 row,", "there are 2"]);
    info(&bench, "alice.pub", "alice.key")
        .fails_with(3, &["not a pool of prepared gates", "tacit eval pool make"]);
    bench.run(&["eval", "pool", "info", "g1"]).fails_with(2, &["--pool-key"]);
    for more in [["--security", "semi-honest"], ["--protocol", "wmk17"], ["--threads", "2"]] {
        assert_eq!(add(&bench, "add8", ["g1", "e1"], &more).0.code, 2, "{more:?}");
    }
    let (g, _) = make(&bench, &["--gates", "10"], ["g1", "e1"]);
    g.fails_with(3, &["g1", "exists already"]);
    let (g, e) = make(&bench, &["--gates", "300000000"], ["g3", "e3"]);
    assert_eq!((g.code, e.code), (2, 2), "{g:?}");
    // After all that they still serve.
    let (g, e) = add(&bench, "add8", ["g1", "e1"], &[]);
    assert!(g.success().contains("255") && e.success().contains("255"));
}

/// An old copy put back: the side that did not put one back knows that the run was had.
#[test]
fn an_old_copy_put_back_meets_a_peer_that_is_ahead() {
    let bench = Bench::with_keys();
    bench.write("secret", [7u8; 40]);
    let size = ["--gates", "10", "--inputs", "8", "--pool-key", "secret"];
    let (g, e) = make(&bench, &size, ["g.pool", "e.pool"]);
    g.success();
    e.success();
    std::fs::copy(bench.path("g.pool"), bench.path("kept")).unwrap();
    let (g, e) = add(&bench, "add8", ["g.pool", "e.pool"], &["--pool-key", "secret"]);
    g.success();
    e.success();
    std::fs::copy(bench.path("kept"), bench.path("g.pool")).unwrap();
    let more = ["--pool-key", "secret", "--connect-timeout", "2"];
    let common = [&["eval", "add8", "--input", "1"], &more[..2]].concat();
    let [ours, theirs] = words(&common, &["--pool", "g.pool", more[2], more[3]], &["--pool", "e.pool"], None);
    let (g, e) = run(&bench, [ours, theirs]);
    e.fails_with(3, &["e.pool", "used before"]);
    g.fails_with(4, &[]);
}

/// A process that is killed while it uses a pool: what was shown to the peer serves no more, on either side.
#[test]
fn a_kill_in_the_run_leaves_both_pools_used() {
    let bench = Bench::with_keys();
    let (g, e) = make(&bench, &["--gates", "6400", "--inputs", "128"], ["g.pool", "e.pool"]);
    g.success();
    e.success();
    let listen = free_port();
    // The garbler's tables do not get through.
    let (connect, passed) = proxy(listen, Harm::Stall(40_000), false);
    let common = ["eval", "aes128", "--input", "1", "--timeout", "5"];
    let both = words(&common, &["--pool", "g.pool"], &["--pool", "e.pool"], Some((listen, connect)));
    let [mut garbler, evaluator]: [Child; 2] =
        both.map(|side| bench.spawn(&side.iter().map(String::as_str).collect::<Vec<_>>()));
    let start = Instant::now();
    while passed.load(Ordering::Relaxed) < 32_000 {
        assert!(start.elapsed() < Duration::from_secs(30), "the run did not come so far");
        thread::sleep(Duration::from_millis(20));
    }
    garbler.kill().unwrap();
    wait(garbler);
    wait(evaluator).fails_with(4, &[]);
    for (file, key) in [("g.pool", "alice.key"), ("e.pool", "bob.key")] {
        info(&bench, file, key).fails_with(3, &[file, "used before"]);
    }
}
