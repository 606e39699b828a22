//! `tacit triples` between two real processes: shares that multiply, what is refused, and what it costs.

use crate::common::{self, Bench, Harm, free_port, read_npz};
use serde_json::Value;
use std::collections::BTreeMap;
use tacit_crypto::{Block, gf128};

type Archive = BTreeMap<String, (usize, Vec<usize>, Vec<u8>)>;

/// The words of both sides, the first of which listens.
fn sides(address: &str) -> [Vec<&str>; 2] {
    let side = |how, own, peer| vec!["triples", how, address, "--identity", own, "--peer", peer];
    [side("--listen", "alice.key", "bob.pub"), side("--connect", "bob.key", "alice.pub")]
}

/// Both sides' archives, and what the first one said.
fn made(bench: &Bench, words: &[&str]) -> (Archive, Archive, Value) {
    let address = format!("127.0.0.1:{}", free_port());
    let [ours, theirs] = sides(&address);
    let out = |name| ["--overwrite", "--json", "--out", name];
    let (a, b) = bench
        .run_both(&[&ours[..], words, &out("a.npz")].concat(), &[&theirs[..], words, &out("b.npz")].concat());
    b.success();
    assert!(bench.leftovers().is_empty());
    let said = serde_json::from_str(a.success()).unwrap();
    (read_npz(&bench.path("a.npz")), read_npz(&bench.path("b.npz")), said)
}

/// The numbers of an array, of so many bytes each.
fn numbers(archive: &Archive, name: &str, bytes: usize) -> Vec<u128> {
    let number = |bytes: &[u8]| bytes.iter().rev().fold(0, |sum, byte| sum << 8 | u128::from(*byte));
    archive[name].2.chunks(bytes).map(number).collect()
}

fn product(kind: &str, a: u128, b: u128) -> u128 {
    match kind {
        "bits" => a & b,
        "words" => u128::from((a as u64).wrapping_mul(b as u64)),
        "p61" => a * b % ((1 << 61) - 1),
        _ => gf128::mul(Block::new(a), Block::new(b)).to_u128(),
    }
}

fn sum(kind: &str, a: u128, b: u128) -> u128 {
    match kind {
        "words" => u128::from((a as u64).wrapping_add(b as u64)),
        "p61" => (a + b) % ((1 << 61) - 1),
        _ => a ^ b,
    }
}

#[test]
fn shares_of_every_kind_multiply() {
    let bench = Bench::with_keys();
    let semi = ["--security", "semi-honest"];
    for (kind, words, bytes, count) in [
        ("bits", &["--kind", "bits"][..], 1, 65),
        ("bits", &["--kind", "bits", "--protocol", "silent", "--threads", "2"], 1, 1000),
        ("words", &["--kind", "words"], 8, 7),
        ("words", &["--kind", "words", "--threads", "2", "--base-ot", "roted"], 8, 300),
        ("gf128", &["--kind", "field"], 16, 8),
        ("p61", &["--kind", "field", "--field", "p61"], 8, 100),
        // By Python's own integers in the package's tests.
        ("p128", &["--kind", "field", "--field", "p128"], 16, 1),
    ] {
        let counted = count.to_string();
        let (a, b, said) = made(&bench, &[&semi, words, &["--count", &counted]].concat());
        assert_eq!((said["count"].as_u64(), said["security"].as_str()), (Some(count), Some("semi-honest")));
        let learned = said["other_side_learned"].as_str().unwrap();
        assert!(learned.contains("nothing of your shares") && learned.contains("if it cheats"), "{learned}");
        assert_eq!(a.keys().collect::<Vec<_>>(), ["a", "b", "c"]);
        let shape = if bytes == 16 { vec![count as usize, 2] } else { vec![count as usize] };
        assert!(a.values().chain(b.values()).all(|array| array.1 == shape), "{words:?}");
        if kind == "p128" {
            continue;
        }
        let [x, y, z] = ["a", "b", "c"].map(|name| {
            let both = numbers(&a, name, bytes).into_iter().zip(numbers(&b, name, bytes));
            both.map(|(ours, theirs)| sum(kind, ours, theirs)).collect::<Vec<_>>()
        });
        for ((x, y), z) in x.into_iter().zip(y).zip(z) {
            assert_eq!(product(kind, x, y), z, "{words:?}");
        }
    }
}

#[test]
fn checked_triples_have_macs() {
    let bench = Bench::with_keys();
    let (a, b, said) = made(&bench, &["--kind", "bits", "--count", "1000"]);
    assert_eq!(
        (said["security"].as_str(), said["protocol"].as_str()),
        (Some("malicious"), Some("authenticated"))
    );
    let names = ["a", "b", "c", "delta", "key_a", "key_b", "key_c", "mac_a", "mac_b", "mac_c"];
    assert_eq!(a.keys().collect::<Vec<_>>(), names);
    let bits = |name| numbers(&a, name, 1).into_iter().zip(numbers(&b, name, 1)).map(|(x, y)| x ^ y);
    assert!(bits("a").zip(bits("b")).zip(bits("c")).all(|((x, y), z)| x & y == z));
    for (mine, theirs) in [(&a, &b), (&b, &a)] {
        let delta = numbers(theirs, "delta", 16)[0];
        for name in ["a", "b", "c"] {
            let macs = numbers(mine, &format!("mac_{name}"), 16);
            let keys = numbers(theirs, &format!("key_{name}"), 16);
            for ((mac, key), bit) in macs.into_iter().zip(keys).zip(numbers(mine, name, 1)) {
                assert_eq!(mac, key ^ (bit * delta));
            }
        }
    }
}

#[test]
fn what_is_not_made_and_peers_that_disagree_are_told() {
    let bench = Bench::with_keys();
    let refused = |words: &[&str], said: &[&str]| {
        let [ours, _] = sides("127.0.0.1:1");
        bench.run(&[&ours[..], &["--count", "5"], words].concat()).fails_with(2, said);
    };
    refused(&["--kind", "words"], &["--security", "semi-honest"]);
    refused(&["--kind", "field", "--field", "p61"], &["--security", "semi-honest"]);
    refused(&["--kind", "bits", "--protocol", "kos"], &["--protocol", "semi-honest"]);
    refused(&["--kind", "bits", "--threads", "2"], &["--threads", "one Δ"]);
    refused(&["--kind", "bits", "--field", "p61"], &["--field", "kind field"]);
    refused(&["--kind", "field", "--field", "gf4"], &["--field", "gf128, p61, p128"]);
    refused(&["--kind", "bits", "--out", "share.csv"], &["--out", "share.csv", "archive"]);
    let same =
        [&sides("127.0.0.1:1")[0][..], &["--count", "5", "--kind", "bits", "--out", "alice.key"]].concat();
    bench.run(&same).fails_with(3, &["--out", "--identity"]);
    bench.write("there.npz", "kept");
    bench
        .run(
            &[&sides("127.0.0.1:1")[0][..], &["--count", "5", "--kind", "bits", "--out", "there.npz"]]
                .concat(),
        )
        .fails_with(3, &["there.npz"]);
    assert_eq!(bench.read("there.npz"), "kept");
    let semi = ["--security", "semi-honest", "--protocol", "iknp"];
    for (ours, theirs, said) in [
        (
            ["--kind", "words", "--count", "5"],
            ["--kind", "words", "--count", "6"],
            "--count (yours 5, peer's 6)",
        ),
        (
            ["--kind", "words", "--count", "5"],
            ["--kind", "bits", "--count", "5"],
            "--kind (yours words, peer's bits)",
        ),
    ] {
        let address = format!("127.0.0.1:{}", free_port());
        let [one, two] = sides(&address);
        let (a, b) = bench.run_both(&[&one[..], &semi, &ours].concat(), &[&two[..], &semi, &theirs].concat());
        a.fails_with(4, &[said]);
        b.fails_with(4, &["yours", "peer's"]);
    }
}

#[test]
fn cost_is_told_before_a_run() {
    let bench = Bench::new();
    let told = |words: &[&str]| -> Vec<Value> {
        let said = bench.run(&[&["--json"], words, &["--dry-run", "--link", "100/5"]].concat());
        said.success().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let all = told(&["triples", "--kind", "words", "--count", "1000", "--security", "semi-honest"]);
    assert!(all.len() > 3 && all.iter().all(|line| line["security"] == "semi-honest"), "{all:?}");
    assert_eq!(all.iter().filter(|line| line["picked"] == true).count(), 1);
    assert!(all.iter().all(|line| line["bytes"].as_u64().unwrap() > 504_000), "{all:?}");
    let checked = told(&["triples", "--kind", "bits", "--count", "1000"]);
    assert_eq!((checked.len(), checked[0]["protocol"].as_str()), (1, Some("authenticated")));
    let role = ["--role", "sender", "--count", "1000000"];
    for (words, least) in
        [(&["vole"][..], 500_000), (&["vole", "--field", "gf4"], 200_000), (&["ot", "--of", "16"], 200_000)]
    {
        let line = told(&[words, &role].concat()).remove(0);
        let bytes = line["bytes"].as_u64().unwrap();
        assert!((least..3 * least).contains(&bytes) && line["job"] == words[0], "{words:?}: {line}");
        assert!(line["predicted_ms"].as_f64().unwrap() > 10.0 && line["rounds"].as_u64().unwrap() > 1);
        assert!(line["other_side_learns"].as_str().unwrap().contains("how many"));
    }
    let refused = ["vole", "--field", "p61", "--dry-run"];
    bench.run(&[&refused[..], &role].concat()).fails_with(2, &["--security", "semi-honest"]);
}

/// A line that ends within the corrections.
#[test]
fn a_peer_that_hangs_up_leaves_no_file() {
    let bench = Bench::with_keys();
    let port = free_port();
    let (proxy, _) = common::proxy(port, Harm::Truncate(400_000), false);
    let (listens, connects) = (format!("127.0.0.1:{port}"), format!("127.0.0.1:{proxy}"));
    let words = "--kind words --security semi-honest --protocol iknp --count 2000 --timeout 5";
    let words: Vec<&str> = words.split(' ').collect();
    let [ours, theirs] = [&sides(&listens)[0], &sides(&connects)[1]];
    let (a, b) = bench.run_both(
        &[&ours[..], &words, &["--out", "a.npz"]].concat(),
        &[&theirs[..], &words, &["--out", "b.npz"]].concat(),
    );
    a.fails_with(4, &[]);
    b.fails_with(4, &[]);
    assert!(!bench.exists("a.npz") && !bench.exists("b.npz") && bench.leftovers().is_empty());
}

/// No less than the peaks, and not much more.
#[cfg(target_os = "linux")]
#[test]
fn a_run_holds_what_its_job_says() {
    use tacit::Security;
    use tacit::job::triples::{By, Job, Kind};
    use tacit::job::vole::Field;
    use tacit::plan::Choice;
    let bench = Bench::with_keys();
    let by = |name, count| {
        let entry = tacit::ot::protocol(name, Security::SemiHonest).unwrap();
        By::Transfers(entry.pick(count, Security::SemiHonest, &Choice::default()).unwrap())
    };
    for (kind, words, name, count) in [
        (Kind::Bits, "--kind bits", "iknp", 2_000_000),
        (Kind::Words, "--kind words", "iknp", 40_000),
        (Kind::Field(Field::Gf128), "--kind field", "kos", 20_000),
        (Kind::Bits, "--kind bits", "", 600_000),
    ] {
        let (by, how) = match name {
            "" => (By::Authenticated, "--security malicious".to_owned()),
            name => (by(name, count * kind.ots()), format!("--security semi-honest --protocol {name}")),
        };
        let (address, counted) = (format!("127.0.0.1:{}", free_port()), count.to_string());
        let all = format!("{words} {how} --count {counted}");
        let words: Vec<&str> = all.split(' ').collect();
        let started = sides(&address).map(|side| {
            let child = bench.spawn(&[&side[..], &words].concat());
            let id = child.id();
            (child, std::thread::spawn(move || common::peak_kibibytes(id) << 10))
        });
        let said = Job { kind, count, by }.memory(1);
        for (child, peak) in started {
            common::wait(child).success();
            let peak = peak.join().unwrap();
            println!("{all}: {} MiB of {} MiB", peak >> 20, said >> 20);
            assert!(said >= peak && said <= 4 * peak, "{all}: {peak} of {said}");
        }
    }
}
