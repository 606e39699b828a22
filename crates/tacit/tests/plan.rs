//! The planner: the table of `--dry-run`, both sides' agreement, and predictions against measured runs.

mod common;

use common::{Bench, free_port};
use serde_json::Value;

fn results(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_dry_run_shows_the_candidates_and_starts_nothing() {
    let bench = Bench::new();
    let words = ["--json", "ot", "--role", "sender", "--count", "1000000", "--link", "wan", "--dry-run"];
    let said = bench.run(&words);
    let candidates = results(said.success());
    assert_eq!(candidates.iter().filter(|c| c["picked"] == true).count(), 1);
    for candidate in &candidates {
        assert_eq!(candidate["security"], "malicious");
        assert!(candidate["predicted_ms"].as_f64().unwrap() > 80.0, "{candidate}");
        assert!(
            candidate["bytes"].as_u64().unwrap() > 0
                && !candidate["assumptions"].as_array().unwrap().is_empty()
        );
        assert!(candidate["other_side_learns"].as_str().unwrap().contains("how many OTs"));
    }
    let kos = candidates.iter().find(|c| c["protocol"] == "kos").unwrap();
    assert!((15_000_000..17_000_000).contains(&kos["bytes"].as_u64().unwrap()), "{kos}");

    let loose = bench.run(&[&words[..], &["--security", "semi-honest", "--protocol", "iknp"]].concat());
    let loose = results(loose.success());
    assert!(loose.len() > candidates.len());
    assert!(loose.iter().any(|c| c["protocol"] == "iknp" && c["picked"] == true));
    bench.run(&[&words[..], &["--protocol", "iknp"]].concat()).fails_with(2, &["iknp", "semi-honest"]);

    bench.write("keys.csv", "id\na\nb\nb\n");
    let psi = bench.run(&["psi", "--input", "keys.csv", "--key", "id", "--dry-run"]);
    let text = psi.success();
    assert!(text.contains("paxos") && text.contains("2 distinct keys"), "{text}");
}

#[test]
fn both_sides_settle_on_one_protocol() {
    for security in ["malicious", "semi-honest"] {
        let bench = Bench::new();
        let address = format!("127.0.0.1:{}", free_port());
        let job = ["--count", "1000", "--security", security, "--insecure-plaintext"];
        let listener = [&["--json", "ot", "--listen", &address, "--role", "sender"][..], &job].concat();
        let connector = [&["--json", "ot", "--connect", &address, "--role", "receiver"][..], &job].concat();
        let (a, b) = bench.run_both(&listener, &connector);
        let (a, b) = (results(a.success()), results(b.success()));
        assert_eq!(a[0]["protocol"], b[0]["protocol"]);
    }
}

/// What the planner picks costs at most 15 % more than the best protocol measured, over the emulator's links: a whole job,
/// base OTs included.
#[cfg(feature = "long-tests")]
fn assert_picks_are_within_15_percent_of_the_best_measured(jobs: &[(&str, &str)]) {
    let bench = Bench::new();
    let mut wrong = Vec::new();
    for (link, count) in jobs {
        for kind in ["cot", "rot"] {
            for security in ["semi-honest", "malicious"] {
                let common = ["--count", count, "--kind", kind, "--security", security, "--link", link];
                let plan =
                    bench.run(&[&["--json", "ot", "--role", "sender", "--dry-run"][..], &common].concat());
                let plan = results(plan.success());
                let picked = plan.iter().find(|c| c["picked"] == true).unwrap()["protocol"].as_str().unwrap();
                let mut times = std::collections::BTreeMap::new();
                for candidate in &plan {
                    let name = candidate["protocol"].as_str().unwrap();
                    let predicted = candidate["predicted_ms"].as_f64().unwrap();
                    let repeat = if predicted > 300.0 { "2" } else { "7" };
                    let words = ["--json", "bench", "ot", "--fresh", "--repeat", repeat, "--protocol", name];
                    let record = results(bench.run(&[&words[..], &common].concat()).success()).remove(0);
                    // The least of the runs: what the machine's other work cannot have slowed.
                    times.insert(name.to_owned(), (record["wall_ms_min"].as_f64().unwrap(), predicted));
                }
                let best = times.values().map(|(ms, _)| *ms).fold(f64::INFINITY, f64::min);
                println!("{link} {count} {kind} {security}: {picked} of {times:.1?} (measured, predicted)");
                if times[picked].0 > 1.15 * best {
                    wrong.push(format!("{link} {count} {kind} {security}: picked {picked} of {times:.1?}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[cfg(feature = "long-tests")]
#[test]
fn picks_are_within_15_percent_of_the_best_measured_on_fast_links() {
    assert_picks_are_within_15_percent_of_the_best_measured(&[
        ("loopback", "10000"),
        ("loopback", "1048576"),
        ("loopback", "8388608"),
        ("lan", "1048576"),
        ("1000/5", "1048576"),
    ]);
}

#[cfg(feature = "long-tests")]
#[test]
fn picks_are_within_15_percent_of_the_best_measured_on_slow_links() {
    assert_picks_are_within_15_percent_of_the_best_measured(&[
        ("100/40", "262144"),
        ("50/50", "262144"),
        ("10/40", "65536"),
    ]);
}
