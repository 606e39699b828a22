//! `tacit psi` between two real processes, against a plain join written here.

use crate::common::{self, Bench, free_port};
use std::collections::{BTreeMap, BTreeSet};

/// Runs both sides; Alice listens. Both get the result unless `extra` says otherwise.
fn run(bench: &Bench, alice: &[&str], bob: &[&str]) -> (String, String) {
    let address = format!("127.0.0.1:{}", free_port());
    let first = [
        "--json",
        "psi",
        "--listen",
        &address,
        "--identity",
        "alice.key",
        "--peer",
        "bob.pub",
        "--overwrite",
        "--input",
        "alice.csv",
    ];
    let second = [
        "--json",
        "psi",
        "--connect",
        &address,
        "--identity",
        "bob.key",
        "--peer",
        "alice.pub",
        "--overwrite",
        "--input",
        "bob.csv",
    ];
    let (a, b) = bench.run_both(&[&first[..], alice].concat(), &[&second[..], bob].concat());
    assert!(bench.leftovers().is_empty());
    (a.success().trim().to_owned(), b.success().trim().to_owned())
}

/// The number that stands behind `"name":`.
fn field(json: &str, name: &str) -> u64 {
    let rest =
        json.split(&format!("\"{name}\":")).nth(1).unwrap_or_else(|| panic!("{name} is missing in {json}"));
    rest.split([',', '}']).next().unwrap().parse().unwrap()
}

/// Keys of a table, trimmed and in lower case: all that the tables of these tests need.
fn keys(table: &str, columns: &[usize]) -> Vec<Vec<String>> {
    let rows = table.lines().skip(1).map(|line| line.split(',').collect::<Vec<_>>());
    rows.map(|row| columns.iter().map(|c| row[*c].trim().to_lowercase()).collect()).collect()
}

/// The rows of `own` whose key is in `other`, with the header: what `--output` must hold.
fn join(own: &str, other: &str, own_columns: &[usize], other_columns: &[usize]) -> String {
    let other: BTreeSet<_> = keys(other, other_columns).into_iter().collect();
    let mut out = own.lines().next().unwrap().to_owned() + "\n";
    for (line, key) in own.lines().skip(1).zip(keys(own, own_columns)) {
        if other.contains(&key) {
            out += line;
            out.push('\n');
        }
    }
    out
}

fn distinct(table: &str, columns: &[usize]) -> u64 {
    keys(table, columns).into_iter().collect::<BTreeSet<_>>().len() as u64
}

/// A table `id,email,note` whose keys are the given numbers, in several spellings.
fn table(numbers: impl IntoIterator<Item = u32>) -> String {
    let mut out = "id,email,note\n".to_owned();
    for (row, number) in numbers.into_iter().enumerate() {
        let email = match number % 3 {
            0 => format!("user{number}@example.com"),
            1 if row % 2 == 0 => format!(" User{number}@Example.com "),
            _ => format!("USER{number}@EXAMPLE.COM"),
        };
        out += &format!("{row},{email},note {}\n", row * 7);
    }
    out
}

#[test]
fn against_a_plain_join() {
    let bench = Bench::with_keys();
    let cases: Vec<(&str, Vec<u32>, Vec<u32>)> = vec![
        ("overlapping", (0..3000).collect(), (2000..4500).rev().collect()),
        ("disjoint", (0..500).collect(), (500..900).collect()),
        ("equal", (0..700).collect(), (0..700).rev().collect()),
        ("one element in many", vec![77], (0..300).collect()),
        ("one element, not there", (0..300).collect(), vec![5000]),
        ("one and the same", vec![3], vec![3]),
        ("empty and full", vec![], (0..50).collect()),
        ("both empty", vec![], vec![]),
        ("duplicates", (0..400).chain(0..100).collect(), (50..90).chain(50..90).collect()),
    ];
    for (name, alice, bob) in cases {
        let (alice, bob) = (table(alice), table(bob));
        bench.write("alice.csv", &alice);
        bench.write("bob.csv", &bob);
        // By either protocol; the results of the second stay for what follows.
        let [_, (a, b)] = ["paxos", "vole"].map(|protocol| {
            let common = ["--protocol", protocol, "--key", "email", "--result", "both", "--output"];
            let of = |file| [&common[..], &[file]].concat();
            let told = run(&bench, &of("a.csv"), &of("b.csv"));
            assert_eq!(bench.read("a.csv"), join(&alice, &bob, &[1], &[1]), "{name} by {protocol}");
            assert_eq!(bench.read("b.csv"), join(&bob, &alice, &[1], &[1]), "{name} by {protocol}");
            assert_eq!(told.0.contains("\"vole\""), protocol == "vole", "{}", told.0);
            ["a.csv", "b.csv"].iter().for_each(|file| std::fs::remove_file(bench.path(file)).unwrap());
            told
        });
        let both = keys(&alice, &[1]).into_iter().collect::<BTreeSet<_>>();
        let matches =
            keys(&bob, &[1]).into_iter().collect::<BTreeSet<_>>().intersection(&both).count() as u64;
        for (said, own, peer) in [(&a, &alice, &bob), (&b, &bob, &alice)] {
            assert_eq!(field(said, "matches"), matches, "{name}");
            assert_eq!(field(said, "own_keys"), distinct(own, &[1]), "{name}");
            assert_eq!(field(said, "peer_keys"), distinct(peer, &[1]), "{name}");
            let rows = own.lines().count() as u64 - 1;
            assert_eq!(field(said, "duplicates"), rows - distinct(own, &[1]), "{name}");
        }
        // Both count the same bytes, from either end.
        assert_eq!(field(&a, "bytes_sent"), field(&b, "bytes_received"), "{name}");
        assert_eq!(field(&a, "bytes_received"), field(&b, "bytes_sent"), "{name}");
    }
}

#[test]
fn composite_keys_of_different_names() {
    let bench = Bench::with_keys();
    let alice = "first,last,city\nAnn,Lee,Rome\nab,c,Paris\nBob,Ray,Oslo\n";
    let bob = "nachname,vorname,tarif\nlee,ann,A\nbc,a,B\nRAY , bob,C\n";
    bench.write("alice.csv", alice);
    bench.write("bob.csv", bob);
    run(
        &bench,
        &["--key", "first", "--key", "last", "--result", "both", "--output", "a.csv"],
        &["--key", "vorname,nachname", "--result", "both", "--output", "b.csv"],
    );
    assert_eq!(bench.read("a.csv"), "first,last,city\nAnn,Lee,Rome\nBob,Ray,Oslo\n");
    assert_eq!(bench.read("b.csv"), join(bob, alice, &[1, 0], &[0, 1]));
    assert_eq!(bench.read("b.csv").lines().count(), 3);
}

#[test]
fn only_one_side_learns() {
    let bench = Bench::with_keys();
    let (alice, bob) = (table(0..100), table(60..200));
    bench.write("alice.csv", &alice);
    bench.write("bob.csv", &bob);
    for security in ["malicious", "semi-honest"] {
        let common = ["--key", "email", "--security", security, "--result"];
        let (a, b) = run(
            &bench,
            &[&common[..], &["peer"]].concat(),
            &[&common[..], &["me", "--output", "b.csv"]].concat(),
        );
        assert_eq!(bench.read("b.csv"), join(&bob, &alice, &[1], &[1]));
        assert_eq!(field(&b, "matches"), 40);
        assert!(!a.contains("\"matches\""), "{a}");
        let (a, b) = run(
            &bench,
            &[&common[..], &["me", "--output", "a.csv"]].concat(),
            &[&common[..], &["peer"]].concat(),
        );
        assert_eq!(bench.read("a.csv"), join(&alice, &bob, &[1], &[1]));
        assert_eq!(field(&a, "matches"), 40);
        assert!(!b.contains("\"matches\""), "{b}");
    }
}

#[test]
fn normalisation_can_be_switched_off() {
    let bench = Bench::with_keys();
    bench.write("alice.csv", "name\nAnn\nbob\nRen\u{e9}\n cy\n");
    bench.write("bob.csv", "name\nann\nbob\nRene\u{301}\ncy\n");
    let expected: BTreeMap<&str, u64> =
        BTreeMap::from([("", 4), ("--no-case-fold", 3), ("--no-nfc", 3), ("--no-trim", 3)]);
    for (switch, matches) in expected {
        let mut args = vec!["--key", "name", "--result", "both"];
        args.extend((!switch.is_empty()).then_some(switch));
        let (a, b) = run(&bench, &args, &args);
        assert_eq!((field(&a, "matches"), field(&b, "matches")), (matches, matches), "{switch}");
    }
}

#[test]
fn options_from_a_file_and_human_output() {
    let bench = Bench::with_keys();
    bench.write("alice.csv", table(0..50));
    bench.write("bob.csv", table(25..60));
    let address = format!("127.0.0.1:{}", free_port());
    bench.write(
        "alice.toml",
        format!(
            "quiet = true\n[psi]\nlisten = \"{address}\"\nidentity = \"alice.key\"\npeer = \"bob.pub\"\n\
             input = \"nowhere.csv\"\nkey = [\"id\", \"email\"]\nresult = \"both\"\nno-trim = false\n"
        ),
    );
    bench.write(
        "bob.toml",
        "[psi]\nlisten = \"127.0.0.1:1\"\nidentity = \"bob.key\"\npeer = \"alice.pub\"\nresult = \"both\"\n",
    );
    let (a, b) = bench.run_both(
        &["psi", "--config", "alice.toml", "--input", "alice.csv", "--key", "email"],
        &[
            "psi",
            "--config=bob.toml",
            "--connect",
            &address,
            "--input",
            "bob.csv",
            "--key",
            "email",
            "--output",
            "b.csv",
        ],
    );
    for said in [a, b] {
        let text = said.success();
        assert!(text.starts_with("25 matches\n"), "{text}");
        assert!(text.contains("the other side learned that you have") && text.contains("rounds"), "{text}");
        // The second on systems other than Linux.
        let usual = ["waiting for ", "note: this system does not say how much memory is free"];
        assert!(said.err.lines().all(|line| usual.iter().any(|one| line.starts_with(one))), "{}", said.err);
    }
    assert_eq!(bench.read("b.csv").lines().count(), 26);
}

#[test]
fn plaintext_warns() {
    let bench = Bench::new();
    bench.write("t.csv", table(0..10));
    let address = format!("127.0.0.1:{}", free_port());
    let common = ["--insecure-plaintext", "--input", "t.csv", "--key", "email", "--result", "both"];
    let (a, b) = bench.run_both(
        &[&["psi", "--listen", &address], &common[..]].concat(),
        &[&["psi", "--connect", &address], &common[..]].concat(),
    );
    for said in [a, b] {
        assert!(said.success().starts_with("10 matches"));
        assert!(said.err.contains("WARNING") && said.err.contains("no TLS"), "{}", said.err);
    }
}

#[test]
fn demo_checks_itself() {
    let bench = Bench::new();
    let said = bench.run(&["--json", "demo", "--rows", "3000", "--dir", "demo"]);
    assert_eq!(field(said.success(), "matches"), 900);
    assert!(said.out.contains("\"checked\":true"));
    let told: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    let service = &told["service"];
    assert_eq!((&service["matches"], &service["checked"]), (&900.into(), &true.into()), "{service}");
    assert_eq!(service["refused_by"], "rows_in_total", "{service}");
    assert_eq!((&service["records"], &service["signed_by_both"]), (&1.into(), &1.into()), "{service}");
    assert!(service["terms"].as_array().is_some_and(|terms| terms.len() > 3), "{service}");
    assert_eq!(bench.read("demo/shop-suppress.csv"), bench.read("demo/shop-matches.csv"));
    // Again in the same place: keys and files of the first run are replaced.
    bench.run(&["demo", "--rows", "500", "--dir", "demo"]).success();
}

/// With `--authority`, certificates take the place of pinned keys, and one for another name is refused.
#[test]
fn certificates_of_an_authority() {
    let bench = Bench::new();
    let key = rcgen::KeyPair::generate().unwrap();
    let mut parameters = rcgen::CertificateParams::new(Vec::<String>::new()).unwrap();
    parameters.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    bench.write("ca.pem", parameters.self_signed(&key).unwrap().pem());
    let issuer = rcgen::Issuer::new(parameters, key);
    for name in ["alice", "bob"] {
        let key = rcgen::KeyPair::generate().unwrap();
        let parameters = rcgen::CertificateParams::new(vec![format!("{name}.example")]).unwrap();
        bench.write(&format!("{name}.pem"), parameters.signed_by(&key, &issuer).unwrap().pem());
        bench.write(&format!("{name}.pkcs8"), key.serialize_pem());
        bench.write(&format!("{name}.csv"), table(0..50));
    }
    let psi = |way: &str, address: &str, own: &str, peer: &str| {
        let words = format!(
            "--json psi {way} {address} --authority ca.pem --identity {own}.pkcs8 --certificate {own}.pem \
             --peer-name {peer}.example --input {own}.csv --key email --result both --connect-timeout 5"
        );
        bench.spawn(&words.split_whitespace().collect::<Vec<_>>())
    };
    for (awaited, code) in [("bob", 0), ("carol", 4)] {
        let address = format!("127.0.0.1:{}", free_port());
        let sides = [psi("--listen", &address, "alice", awaited), psi("--connect", &address, "bob", "alice")];
        let [alice, bob] = sides.map(|child| std::thread::spawn(move || common::wait(child)));
        for said in [alice.join().unwrap(), bob.join().unwrap()] {
            assert_eq!(said.code, code, "{said:?}");
            assert_eq!(said.out.contains("\"matches\":50"), code == 0, "{said:?}");
        }
    }
}

/// What the peer can have learned is said for the level that ran: a bound where the protocol gives one, and
/// no promise where it does not.
#[test]
fn what_the_other_side_learned_is_said_for_the_level_that_ran() {
    let bench = Bench::with_keys();
    bench.write("alice.csv", table(0..50));
    bench.write("bob.csv", table(25..60));
    let text = |json: &str, name: &str| {
        let rest = json.split(&format!("\"{name}\":\"")).nth(1).unwrap_or_else(|| panic!("{name}: {json}"));
        rest.split('"').next().unwrap().to_owned()
    };
    for (security, result, other) in
        [("malicious", "both", "both"), ("malicious", "me", "peer"), ("semi-honest", "both", "both")]
    {
        let words = |result| vec!["--key", "email", "--security", security, "--result", result];
        let (a, b) = run(&bench, &words(result), &words(other));
        for (said, own, peer, gets) in [(&a, 50, 35, other != "me" && result != "me"), (&b, 35, 50, true)] {
            let learned = text(said, "other_side_learned");
            assert!(learned.contains(&format!("{own} distinct keys")), "{learned}");
            let promise = !learned.contains("if it cheats, nothing is promised");
            assert_eq!(promise, security == "malicious", "{learned}");
            if security == "semi-honest" || (result == "me" && own == 50) {
                assert!(said.contains("\"peer_keys_tested_at_most\":null"), "{said}");
                assert!(!learned.contains("tested"), "{learned}");
                continue;
            }
            let bound = field(said, "peer_keys_tested_at_most");
            let peer_received = if result == "both" { peer < own } else { own == 35 };
            if peer_received {
                assert!(gets && bound > peer, "{said}");
                let least = format!("announced {peer} keys");
                assert!(learned.contains(&least) && learned.contains(&bound.to_string()), "{learned}");
                assert!(learned.contains("2^80"), "{learned}");
            } else {
                // A sender's tags stand for few elements more.
                assert_eq!(bound, 2 * peer + 2, "{said}");
                assert!(
                    learned.contains(&format!("tested more keys than that: {} with 2^60", peer + 4)),
                    "{learned}"
                );
            }
        }
    }
    let dry = |more: &[&str]| {
        let words = ["psi", "--input", "alice.csv", "--key", "email", "--dry-run", "--result"];
        bench.run(&[&words[..], more].concat()).success().to_owned()
    };
    let (both, me) = (dry(&["both"]), dry(&["me"]));
    assert!(both.contains("with 2^60 hash calls, and 120 with 2^80"), "{both}");
    assert!(me.contains("50 distinct keys; nothing else") && !me.contains("2^80"), "{me}");
    assert!(both.contains("the other side may have at most "), "{both}");
    // Why the one with the arrow would run.
    assert!(
        both.contains("→ vole") && both.contains("vole: picked for 100 keys on both sides, because"),
        "{both}"
    );
    assert!(!dry(&["both", "--protocol", "vole"]).contains("picked"));
    assert!(
        dry(&["me", "--reveal", "count", "--security", "semi-honest"])
            .contains("no other protocol reveals count")
    );
    let semi = dry(&["both", "--security", "semi-honest"]);
    assert!(semi.contains("nothing is promised") && !semi.contains("2^80"), "{semi}");
}

#[test]
fn a_peer_with_more_keys_than_allowed_is_refused_by_both_figures() {
    let bench = Bench::with_keys();
    bench.write("alice.csv", table(0..50));
    bench.write("bob.csv", table(25..60));
    let address = format!("127.0.0.1:{}", free_port());
    let sides = |more: &[&str]| {
        let common = ["--json", "psi", "--key", "email", "--result", "both"];
        let alice = ["--listen", &address, "--identity", "alice.key", "--peer", "bob.pub"];
        let bob = ["--connect", &address, "--identity", "bob.key", "--peer", "alice.pub"];
        bench.run_both(
            &[&common[..], &alice, &["--input", "alice.csv"], more].concat(),
            &[&common[..], &bob, &["--input", "bob.csv"]].concat(),
        )
    };
    let (a, _) = sides(&["--max-peer-rows", "34"]);
    a.fails_with(4, &["35 elements", "at most 34", "--max-peer-rows"]);
    let (a, b) = sides(&["--max-peer-rows", "35"]);
    assert_eq!(field(a.success(), "max_peer_rows"), 35);
    // A dry run counts with what the peer may have, where that is less than one's own.
    let words = ["psi", "--input", "alice.csv", "--key", "email", "--result", "both", "--dry-run"];
    for (most, told) in [
        ("10", "announces 10 keys and cheats, it can test more keys than that: 18 with 2^60"),
        ("99", "announces 50 keys"),
    ] {
        let dry = bench.run(&[&words[..], &["--max-peer-rows", most]].concat());
        assert!(dry.success().contains(told), "{}", dry.success());
    }
    // Unless given, it is what memory allows.
    let allowed = field(b.success(), "max_peer_rows");
    assert!((50..=1 << 24).contains(&allowed), "{allowed}");
}

/// A file of one key against a thousand: what its owner can have tested if it cheated is two keys with 2^60 hash
/// calls and three with 2^80, and the protocol that bounds it so is the one that `auto` picks.
#[test]
fn a_file_of_one_key_tests_hardly_more() {
    let bench = Bench::new();
    bench.write("alice.csv", table(0..1000));
    bench.write("bob.csv", table(500..501));
    let address = format!("127.0.0.1:{}", free_port());
    let common = ["--json", "psi", "--key", "email", "--result", "both", "--insecure-plaintext"];
    let (a, b) = bench.run_both(
        &[&common[..], &["--listen", &address, "--input", "alice.csv"]].concat(),
        &[&common[..], &["--connect", &address, "--input", "bob.csv"]].concat(),
    );
    assert_eq!(field(a.success(), "peer_keys_tested_at_most"), 3);
    assert!(
        a.success().contains("it can have tested more keys than that: 2 with 2^60 hash calls"),
        "{}",
        a.success()
    );
    assert!(a.success().contains("\"protocol\":\"vole\""), "{}", a.success());
    // The side with the larger set sends, and its tags stand for few keys more than it announced.
    assert_eq!(field(b.success(), "peer_keys_tested_at_most"), 2002);
}

/// Neither side has to know of the other's threads, and large files come out as small ones do.
#[test]
fn each_side_computes_on_as_many_threads_as_it_likes() {
    let bench = Bench::with_keys();
    let row = |i: u32| format!("user{i}@example.com,\"number {i}\"\n");
    let table = |range: std::ops::Range<u32>| "email,note\n".to_owned() + &range.map(row).collect::<String>();
    bench.write("alice.csv", table(0..90_000));
    bench.write("bob.csv", table(60_000..150_000));
    for (first, second) in [("1", "3"), ("8", "2")] {
        let mine = ["--key", "email", "--result", "me", "--output", "both.csv", "--threads", first];
        let theirs = ["--key", "email", "--result", "peer", "--threads", second];
        let (told, _) = run(&bench, &mine, &theirs);
        assert_eq!(field(&told, "matches"), 30_000);
        let both = std::fs::read_to_string(bench.path("both.csv")).unwrap();
        assert!(both == table(60_000..90_000), "{first} and {second} threads");
    }
}

/// Half a million keys a side do not fit in what is given, and the system says that it was kept to.
#[cfg(target_os = "linux")]
#[test]
fn in_buckets_no_more_memory_is_held_than_was_given() {
    const MEMORY_KIB: u64 = 84 << 10;
    // What this build holds more than a release, beside its code.
    const MORE_KIB: u64 = 5 << 10;
    let bench = Bench::with_keys();
    let table = |range: std::ops::Range<u32>| {
        range.fold("email\n".to_owned(), |text, i| text + &format!("user{i}@example.com\n"))
    };
    bench.write("alice.csv", table(0..500_000));
    bench.write("bob.csv", table(250_000..750_000));
    let address = format!("127.0.0.1:{}", free_port());
    let peak = |memory: &[&str]| {
        let common = ["--key", "email", "--result", "both", "--json"];
        let alice = [
            "psi",
            "--listen",
            &address,
            "--identity",
            "alice.key",
            "--peer",
            "bob.pub",
            "--input",
            "alice.csv",
        ];
        let bob = [
            "psi",
            "--connect",
            &address,
            "--identity",
            "bob.key",
            "--peer",
            "alice.pub",
            "--input",
            "bob.csv",
        ];
        let sides = [&alice[..], &bob[..]].map(|side| {
            let child = bench.spawn(&[side, &common[..], memory].concat());
            let id = child.id();
            (child, std::thread::spawn(move || common::peak_kibibytes(id)))
        });
        let ends = sides.map(|(child, peak)| (std::thread::spawn(move || common::wait(child)), peak));
        ends.map(|(said, peak)| {
            assert_eq!(field(said.join().unwrap().success(), "matches"), 250_000);
            peak.join().unwrap()
        })
    };
    let given = format!("{MEMORY_KIB}KiB");
    let (bounded, free) = (peak(&["--memory", &given]), peak(&["--protocol", "vole"]));
    eprintln!("{bounded:?} KiB of {MEMORY_KIB}, and {free:?} without a bound");
    assert!(bounded.iter().all(|peak| *peak < MEMORY_KIB + MORE_KIB), "{bounded:?}");
    assert!(free.iter().all(|peak| *peak > MEMORY_KIB + MORE_KIB), "the test shows nothing: {free:?}");
}

/// Larger than memory: the files are those of the plain join, rows without a key and of equal keys among
/// them, what is told is the same, and no bucket stays.
#[test]
fn in_buckets_on_disk_the_result_is_the_same() {
    let bench = Bench::with_keys();
    let cases: Vec<(&str, Vec<u32>, Vec<u32>)> = vec![
        ("overlapping", (0..3000).chain(0..300).collect(), (2000..4500).rev().collect()),
        ("disjoint", (0..200).collect(), (500..900).collect()),
        ("one in many", vec![77], (0..300).collect()),
        ("empty and full", vec![], (0..50).collect()),
    ];
    for (name, alice, bob) in cases {
        let (alice, bob) = (table(alice) + "x,,no key\n", table(bob));
        bench.write("alice.csv", &alice);
        bench.write("bob.csv", &bob);
        let common = ["--key", "email", "--result", "both", "--memory", "64MiB", "--output"];
        let first = [&common[..], &["a.csv", "--buckets", "8"]].concat();
        let (a, b) = run(&bench, &first, &[&common[..], &["b.csv"]].concat());
        assert_eq!(bench.read("a.csv"), join(&alice, &bob, &[1], &[1]), "{name}");
        assert_eq!(bench.read("b.csv"), join(&bob, &alice, &[1], &[1]), "{name}");
        let own = distinct(&alice, &[1]) - 1;
        assert_eq!((field(&a, "own_keys"), field(&b, "peer_keys")), (own, own), "{name}");
        assert_eq!(field(&a, "rows_without_key"), 1);
        assert_eq!(field(&a, "own_rows"), own + 1 + field(&a, "duplicates"));
        assert_eq!((field(&a, "buckets"), field(&b, "buckets")), (8, 8));
        assert_eq!(field(&a, "matches"), field(&b, "matches"));
        if name == "overlapping" {
            assert_eq!((field(&a, "matches"), field(&a, "output_rows")), (1000, 1000));
        }
        let stays = std::fs::read_dir(bench.path("."))
            .unwrap()
            .filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().starts_with(".tacit-psi"));
        assert_eq!(stays.count(), 0, "{name}");
    }
    // The result to one side alone.
    let (a, b) = run(
        &bench,
        &["--key", "email", "--result", "peer", "--memory", "64MiB"],
        &["--key", "email", "--memory", "64MiB", "--spill", ".", "--output", "b.csv"],
    );
    assert!(!a.contains("\"matches\"") && b.contains("\"matches\""));

    // Both must say so; and what cannot be is refused before anything begins.
    let address = format!("127.0.0.1:{}", free_port());
    let keys = |own, peer| ["--identity", own, "--peer", peer, "--input", "bob.csv", "--key", "email"];
    let (a, b) = bench.run_both(
        &[&["psi", "--listen", &address, "--memory", "1GiB"][..], &keys("alice.key", "bob.pub")].concat(),
        &[&["psi", "--connect", &address, "--result", "peer"][..], &keys("bob.key", "alice.pub")].concat(),
    );
    a.fails_with(4, &["--memory (yours given, peer's not given); use"]);
    b.fails_with(4, &["--memory (yours not given, peer's given); use"]);
    let alone = |more: &[&str]| {
        bench.run(&[&["psi", "--connect", &address][..], &keys("bob.key", "alice.pub"), more].concat())
    };
    alone(&["--memory", "1GiB", "--reveal", "count", "--security", "semi-honest"])
        .fails_with(2, &["--memory", "only rows"]);
    alone(&["--memory", "2gib"]).fails_with(2, &["such as 2GiB"]);
    alone(&["--memory", "1GiB", "--buckets", "3", "--dry-run"]).fails_with(2, &["--buckets", "power of two"]);
    let plan = alone(&["--memory", "1GiB", "--dry-run"]);
    assert!(plan.success().contains("at most 50 keys: 1 bucket;"), "{plan:?}");
}
