//! `tacit ot pool` and `tacit ot --pool` between two real processes.

use crate::common::{Bench, Harm, Said, free_port, proxy, read_npz};

/// Runs `words` on both sides, the sender listening; `sender` and `receiver` are added to each side's.
fn both(bench: &Bench, words: &[&str], sender: &[&str], receiver: &[&str]) -> (Said, Said) {
    let address = format!("127.0.0.1:{}", free_port());
    let side = |role: &'static str, connect: &'static str, identity: &'static str, peer: &'static str| {
        let own = [connect, address.as_str(), "--identity", identity, "--peer", peer, "--role", role];
        [words, &["--overwrite"], &own[..]].concat()
    };
    let s = [side("sender", "--listen", "alice.key", "bob.pub"), sender.to_vec()].concat();
    let r = [side("receiver", "--connect", "bob.key", "alice.pub"), receiver.to_vec()].concat();
    bench.run_both(&s, &r)
}

fn make(bench: &Bench, count: &str, s: &str, r: &str) {
    let words = ["--json", "ot", "pool", "make", "--count", count];
    let (one, two) = both(bench, &words, &["--file", s], &["--file", r]);
    assert!(one.success().contains("\"id\"") && two.success().contains(count));
    assert!(bench.leftovers().is_empty());
}

fn blocks(bytes: &[u8]) -> Vec<u128> {
    bytes.chunks_exact(16).map(|b| u128::from_le_bytes(b.try_into().unwrap())).collect()
}

#[test]
fn a_pool_is_made_used_and_used_up() {
    let bench = Bench::with_keys();
    make(&bench, "10000", "s.pool", "r.pool");
    let info = bench.run(&["--json", "ot", "pool", "info", "s.pool", "--identity", "alice.key"]);
    assert!(info.success().contains("\"left\":10000"), "{info:?}");
    // What made it is in the file, and said where it is used.
    let made: serde_json::Value = serde_json::from_str(info.out.trim()).unwrap();
    assert_eq!((&made["protocol"], &made["variant"]), (&"kos".into(), &serde_json::Value::Null), "{made}");
    let info = bench.run(&["ot", "pool", "info", "s.pool", "--identity", "alice.key"]);
    assert!(info.success().contains("10000 correlations by kos (malicious)"), "{info:?}");
    let use_it = |count: &str, kind: &str| {
        let words = ["ot", "--count", count, "--kind", kind];
        both(&bench, &words, &["--pool", "s.pool", "--out", "s.npz"], &["--pool", "r.pool", "--out", "r.npz"])
    };
    let mut seen = std::collections::HashSet::new();
    for _ in 0..2 {
        let (s, r) = use_it("3000", "cot");
        assert!(s.success().contains("by pool, made by kos ("), "{s:?}");
        r.success();
        let (s, r) = (read_npz(&bench.path("s.npz")), read_npz(&bench.path("r.npz")));
        let (delta, v, w) = (blocks(&s["delta"].2)[0], blocks(&s["v"].2), blocks(&r["w"].2));
        let u = &r["u"].2;
        assert_eq!((v.len(), w.len(), u.len()), (3000, 3000, 3000));
        assert!((0..3000).all(|i| w[i] == v[i] ^ if u[i] == 1 { delta } else { 0 }));
        assert!(v.iter().all(|v| seen.insert(*v)), "a correlation came out twice");
    }
    let (s, r) = use_it("1000", "rot");
    s.success();
    r.success();
    let (s, r) = (read_npz(&bench.path("s.npz")), read_npz(&bench.path("r.npz")));
    let (m0, m1, m) = (blocks(&s["m0"].2), blocks(&s["m1"].2), blocks(&r["m"].2));
    assert!((0..1000).all(|i| m[i] == if r["u"].2[i] == 1 { m1[i] } else { m0[i] }));
    // 7,000 are gone, 3,000 left.
    let (s, r) = use_it("3001", "cot");
    s.fails_with(3, &["s.pool", "exhausted", "3001", "3000 left"]);
    r.fails_with(3, &["r.pool", "exhausted"]);
    let info = bench.run(&["ot", "pool", "info", "r.pool", "--identity", "bob.key"]);
    assert!(info.success().contains("7000 used, 3000 left"), "{info:?}");
    // One with a code names it.
    let words = ["ot", "pool", "make", "--count", "100", "--protocol", "softspoken", "--code", "groups-4"];
    let (s, r) = both(&bench, &words, &["--file", "s4.pool"], &["--file", "r4.pool"]);
    s.success();
    r.success();
    let info = bench.run(&["ot", "pool", "info", "r4.pool", "--identity", "bob.key"]);
    assert!(info.success().contains("100 correlations by softspoken, code groups-4 (malicious)"), "{info:?}");
}

#[test]
fn pools_that_do_not_fit_are_refused_with_the_reason() {
    let bench = Bench::with_keys();
    make(&bench, "500", "s.pool", "r.pool");
    make(&bench, "500", "s2.pool", "r2.pool");
    let use_them = |s: &str, r: &str, extra: &[&str]| {
        both(&bench, &[&["ot", "--count", "10"][..], extra].concat(), &["--pool", s], &["--pool", r])
    };
    let (s, r) = use_them("s.pool", "r2.pool", &[]);
    s.fails_with(4, &["do not belong together"]);
    r.fails_with(4, &["do not belong together"]);
    bench.run(&["ot", "pool", "skip", "s.pool", "--identity", "alice.key", "--to", "123"]).success();
    let (s, r) = use_them("s.pool", "r.pool", &[]);
    s.fails_with(4, &["different positions", "yours 123", "--to 123"]);
    r.fails_with(4, &["different positions", "yours 0", "--to 123"]);
    bench.run(&["ot", "pool", "skip", "r.pool", "--identity", "bob.key", "--to", "123"]).success();
    let (s, r) = use_them("s.pool", "r.pool", &[]);
    s.success();
    r.success();
    // Local faults.
    let info = |words: &[&str]| bench.run(&[&["ot", "pool", "info"][..], words].concat());
    info(&["s.pool", "--identity", "bob.key"]).fails_with(3, &["s.pool", "another key"]);
    info(&["s.pool"]).fails_with(2, &["--pool-key"]);
    info(&["none.pool", "--identity", "bob.key"]).fails_with(3, &["none.pool"]);
    info(&["alice.pub", "--identity", "alice.key"]).fails_with(3, &["not a pool"]);
    let mut cut = std::fs::read(bench.path("s2.pool")).unwrap();
    cut.pop();
    bench.write("cut.pool", &cut);
    info(&["cut.pool", "--identity", "alice.key"]).fails_with(3, &["cut.pool", "was cut"]);
    cut[8] = 9;
    bench.write("new.pool", &cut);
    info(&["new.pool", "--identity", "alice.key"]).fails_with(3, &["version 9"]);
    cut[8] = 1;
    bench.write("old.pool", &cut);
    let old = ["old.pool", "version 1", "older releases made is weaker", "make a new one on both sides"];
    info(&["old.pool", "--identity", "alice.key"]).fails_with(3, &old);
    // A burnt pool serves nothing: not the command that shows it, not that which skips, not a run.
    let mut burnt = std::fs::read(bench.path("s2.pool")).unwrap();
    burnt[14] = 1;
    bench.write("burnt.pool", &burnt);
    let why = ["burnt.pool", "a check failed in a run that used it", "tacit ot pool make"];
    info(&["burnt.pool", "--identity", "alice.key"]).fails_with(3, &why);
    bench
        .run(&["ot", "pool", "skip", "burnt.pool", "--identity", "alice.key", "--to", "9"])
        .fails_with(3, &why);
    let run =
        ["ot", "--role", "sender", "--count", "10", "--listen", "127.0.0.1:1", "--identity", "alice.key"];
    bench.run(&[&run[..], &["--peer", "bob.pub", "--pool", "burnt.pool"]].concat()).fails_with(3, &why);
    let words = ["ot", "pool", "make", "--count", "10"];
    let (s, _) = both(&bench, &words, &["--file", "s.pool"], &["--file", "r.pool"]);
    s.fails_with(3, &["exists already"]);
    // Silent OT by the code that is named, which no other protocol has.
    let coded = |protocol| {
        let words =
            ["ot", "pool", "make", "--count", "500", "--protocol", protocol, "--code", "quasi-cyclic"];
        both(&bench, &words, &["--file", "s3.pool"], &["--file", "r3.pool"])
    };
    coded("kos").0.fails_with(2, &["--code: goes with"]);
    let by_set = |protocol, files: [&str; 2]| {
        let words = ["ot", "pool", "make", "--count", "500", "--protocol", protocol, "--set", "b"];
        both(&bench, &words, &["--file", files[0]], &["--file", files[1]])
    };
    by_set("kos", ["s4.pool", "r4.pool"]).0.fails_with(2, &["--set: goes with"]);
    for (protocol, files) in [("ferret", ["s4.pool", "r4.pool"]), ("ferret-uni", ["s5.pool", "r5.pool"])] {
        let (s, r) = by_set(protocol, files);
        s.success();
        r.success();
        let (s, r) = use_them(files[0], files[1], &[]);
        s.success();
        r.success();
    }
    let (s, r) = coded("silent");
    s.success();
    r.success();
    // What a pool replaces cannot be asked for beside it.
    let (s, _) = use_them("s.pool", "r.pool", &["--protocol", "kos"]);
    assert_eq!(s.code, 2, "{s:?}");
}

#[test]
fn a_key_file_seals_as_well_and_weak_pools_stay_weak() {
    let bench = Bench::with_keys();
    bench.write("secret", [7u8; 40]);
    let words = ["ot", "pool", "make", "--count", "200", "--security", "semi-honest"];
    let keyed = |file| ["--file", file, "--pool-key", "secret"];
    let (s, r) = both(&bench, &words, &keyed("s.pool"), &keyed("r.pool"));
    s.success();
    r.success();
    bench.run(&["ot", "pool", "info", "s.pool", "--identity", "alice.key"]).fails_with(3, &["another key"]);
    let run = |security| {
        let words = ["ot", "--count", "50", "--security", security];
        let side = |file| ["--pool", file, "--pool-key", "secret"];
        both(&bench, &words, &side("s.pool"), &side("r.pool"))
    };
    run("malicious").0.fails_with(2, &["semi-honest peer only"]);
    let (s, r) = run("semi-honest");
    s.success();
    r.success();
    bench.write("short", [7u8; 31]);
    bench.run(&["ot", "pool", "info", "s.pool", "--pool-key", "short"]).fails_with(3, &["32 to 4096"]);
}

/// What arrives while a pool is made is not what the protocol says: no pool, by whichever protocol.
#[test]
fn a_pool_whose_making_is_spoilt_is_not_made() {
    let bench = Bench::new();
    bench.write("secret", [7u8; 40]);
    // What the sender gets from the receiver, or the receiver from the sender.
    for (protocol, offset, upstream) in
        [("kos", 60_000, true), ("ferret", 120_000, false), ("silent", 30_000, false)]
    {
        let port = free_port();
        let (through, passed) = proxy(port, Harm::Flip(offset), upstream);
        let [listen, connect] = [port, through].map(|port| format!("127.0.0.1:{port}"));
        let words =
            ["ot", "pool", "make", "--insecure-plaintext", "--pool-key", "secret", "--count", "200000"];
        let words = [&words[..], &["--protocol", protocol]].concat();
        let s = [&words[..], &["--listen", &listen, "--role", "sender", "--file", "s.pool"]].concat();
        let r = [&words[..], &["--connect", &connect, "--role", "receiver", "--file", "r.pool"]].concat();
        let (s, r) = bench.run_both(&s, &r);
        let caught = if upstream { s } else { r };
        assert!(
            passed.load(std::sync::atomic::Ordering::Relaxed) > offset,
            "{protocol}: nothing was changed"
        );
        caught.fails_with(4, &[]);
        assert!(!bench.exists(if upstream { "s.pool" } else { "r.pool" }), "{protocol}");
        assert!(bench.leftovers().is_empty(), "{protocol}");
        let _ = std::fs::remove_file(bench.path("s.pool"));
    }
}
