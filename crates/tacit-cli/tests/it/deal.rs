//! Seeds of a dealer: `tacit ot deal`, `tacit ot expand` and `tacit ot --seed`.

use crate::common::{Bench, Harm, Said, free_port, proxy, read_npz};

fn deal(bench: &Bench, count: &str, extra: &[&str], s: &str, r: &str) {
    let words = ["ot", "deal", "--count", count, "--sender", s, "--receiver", r];
    bench.run(&[&words[..], extra].concat()).success();
}

fn blocks(bytes: &[u8]) -> Vec<u128> {
    bytes.chunks_exact(16).map(|b| u128::from_le_bytes(b.try_into().unwrap())).collect()
}

fn both(bench: &Bench, words: &[&str], s: &str, r: &str) -> (Said, Said) {
    let address = format!("127.0.0.1:{}", free_port());
    let words = [&["ot", "--insecure-plaintext", "--overwrite"], words].concat();
    let s = [&words[..], &["--listen", &address, "--role", "sender", "--seed", s, "--out", "s.npz"]].concat();
    let r =
        [&words[..], &["--connect", &address, "--role", "receiver", "--seed", r, "--out", "r.npz"]].concat();
    bench.run_both(&s, &r)
}

#[test]
fn seeds_expand_without_a_peer() {
    let bench = Bench::new();
    for (count, code) in [(1, "linear"), (20_001, "quasi-cyclic")] {
        deal(&bench, &count.to_string(), &["--code", code], &format!("s{count}"), &format!("r{count}"));
        for (seed, out) in [(format!("s{count}"), "s.npz"), (format!("r{count}"), "r.npz")] {
            let words = ["--json", "--overwrite", "ot", "expand", "--seed", &seed, "--out", out];
            let said = bench.run(&words);
            assert!(said.success().contains(&format!("\"count\":{count}")), "{said:?}");
            bench.run(&words).fails_with(3, &[&seed, "used before"]);
        }
        let (s, r) = (read_npz(&bench.path("s.npz")), read_npz(&bench.path("r.npz")));
        let (delta, v, w) = (blocks(&s["delta"].2)[0], blocks(&s["v"].2), blocks(&r["w"].2));
        assert_eq!((v.len(), w.len()), (count, count));
        assert!((0..count).all(|i| w[i] == v[i] ^ if r["u"].2[i] == 1 { delta } else { 0 }));
    }
}

#[test]
fn seeds_serve_transfers_of_every_kind_once() {
    let bench = Bench::new();
    for kind in ["cot", "rot", "ot"] {
        let (s, r) = (format!("{kind}.s"), format!("{kind}.r"));
        deal(&bench, "5000", &[], &s, &r);
        let (one, two) = both(&bench, &["--count", "4000", "--kind", kind], &s, &r);
        one.success();
        two.success();
        let (got, sent) = (read_npz(&bench.path("r.npz")), read_npz(&bench.path("s.npz")));
        let u = &got["u"].2;
        let block = |name: &str, i: usize| blocks(&sent[name].2)[i];
        let received = blocks(&got[if kind == "cot" { "w" } else { "m" }].2);
        for i in (0..4000).step_by(501) {
            let expected = match (kind, u[i]) {
                ("cot", bit) => block("v", i) ^ if bit == 1 { block("delta", 0) } else { 0 },
                (_, 0) => block("m0", i),
                _ => block("m1", i),
            };
            assert_eq!(received[i], expected, "{kind} {i}");
        }
        let (one, two) = both(&bench, &["--count", "10", "--kind", kind], &s, &r);
        one.fails_with(3, &[&s, "used before"]);
        assert_ne!(two.code, 0, "{two:?}");
    }
}

#[test]
fn the_mark_of_a_used_seed_goes_with_its_content() {
    let bench = Bench::new();
    let expand =
        |seed: &str, out: &str| bench.run(&["ot", "expand", "--overwrite", "--seed", seed, "--out", out]);
    deal(&bench, "300", &[], "s", "r");
    for name in ["s", "r"] {
        let before = std::fs::read(bench.path(name)).unwrap();
        expand(name, "x.npz").success();
        let after = std::fs::read(bench.path(name)).unwrap();
        assert_eq!((after.len(), &after[9..52]), (before.len(), &before[9..52]));
        assert!(after[52..].iter().all(|byte| *byte == 0), "secrets of {name} are left");
        expand(name, "again.npz").fails_with(3, &[name, "used before"]);
        assert!(!bench.exists("again.npz"));
        std::fs::rename(bench.path(name), bench.path("moved")).unwrap();
        expand("moved", "y.npz").fails_with(3, &["moved", "used before"]);
        assert!(!bench.exists("y.npz"));
        std::fs::remove_file(bench.path("moved")).unwrap();
    }
    deal(&bench, "300", &[], "s", "moved");
    expand("s", "x.npz").success();
    let file = std::fs::File::open(bench.path("moved")).unwrap();
    file.lock().unwrap();
    expand("moved", "y.npz").fails_with(3, &["moved", "in use by another process"]);
    drop(file);
    expand("no/such/folder/seed", "y.npz").fails_with(3, &["no/such/folder/seed"]);
    // A share that finds no place uses nothing up.
    expand("moved", "no/such/folder/y.npz").fails_with(3, &["no/such/folder"]);
    expand("moved", "y.npz").success();
    let (s, r) = (read_npz(&bench.path("x.npz")), read_npz(&bench.path("y.npz")));
    let (delta, v, w) = (blocks(&s["delta"].2)[0], blocks(&s["v"].2), blocks(&r["w"].2));
    assert!((0..300).all(|i| w[i] == v[i] ^ if r["u"].2[i] == 1 { delta } else { 0 }));
}

#[test]
fn seeds_that_do_not_fit_are_refused_with_the_reason() {
    let bench = Bench::new();
    deal(&bench, "100", &[], "a.s", "a.r");
    deal(&bench, "100", &[], "b.s", "b.r");
    let (s, r) = both(&bench, &["--count", "10"], "a.s", "b.r");
    s.fails_with(4, &["another deal"]);
    r.fails_with(4, &["another deal"]);
    let alone = |words: &[&str]| {
        let all =
            ["ot", "--insecure-plaintext", "--listen", "127.0.0.1:1", "--role", "sender", "--count", "101"];
        bench.run(&[&all[..], words].concat())
    };
    alone(&["--seed", "a.s"]).fails_with(3, &["a.s", "has 100", "101"]);
    alone(&["--seed", "a.r"]).fails_with(3, &["a.r", "other role"]);
    alone(&["--seed", "a.s", "--protocol", "kos"]).fails_with(2, &["--protocol"]);
    let mut bytes = std::fs::read(bench.path("a.r")).unwrap();
    bytes.truncate(bytes.len() - 1);
    bench.write("cut", &bytes);
    bytes[9] += 1;
    bench.write("newer", &bytes);
    bytes[9] -= 2;
    bench.write("older", &bytes);
    let expand = |seed: &str| bench.run(&["ot", "expand", "--seed", seed, "--out", "x.npz"]);
    expand("cut").fails_with(3, &["cut", "cut short"]);
    expand("newer").fails_with(3, &["newer", "newer version", "update"]);
    expand("older").fails_with(3, &["older", "older version", "ask the dealer for another"]);
    bench
        .run(&["ot", "deal", "--count", "5", "--sender", "x", "--receiver", "x"])
        .fails_with(2, &["different"]);
    assert!(bench.leftovers().is_empty());
}

/// A run that a peer spoils, or a link, ends with both seeds used up: no later process shares Δ with it.
#[test]
fn a_spoilt_run_has_used_its_seeds_up() {
    let bench = Bench::new();
    for (name, harm) in [("cut", Harm::Truncate(20_000)), ("dropped", Harm::Drop(20_000))] {
        let (s, r) = (format!("{name}.s"), format!("{name}.r"));
        deal(&bench, "5000", &[], &s, &r);
        let port = free_port();
        let (through, _) = proxy(port, harm, false);
        let [listen, connect] = [port, through].map(|port| format!("127.0.0.1:{port}"));
        let words = ["ot", "--insecure-plaintext", "--count", "4000", "--kind", "ot"];
        let sender = [&words[..], &["--listen", &listen, "--role", "sender", "--seed", &s]].concat();
        let receiver = [&words[..], &["--connect", &connect, "--role", "receiver", "--seed", &r]].concat();
        let (_, two) = bench.run_both(&sender, &receiver);
        assert_eq!(two.code, 4, "{two:?}");
        for seed in [&s, &r] {
            let words = ["ot", "expand", "--seed", seed.as_str(), "--out", "x.npz"];
            bench.run(&words).fails_with(3, &[seed, "used before", "ask the dealer for another"]);
        }
        assert!(!bench.exists("x.npz"));
    }
}
