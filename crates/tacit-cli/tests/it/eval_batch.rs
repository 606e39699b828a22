//! `tacit eval --protocol batch`: rows side by side, between two real processes.

use crate::common::{Bench, Said, free_port};
use serde_json::Value;

const PROGRAM: &str = "\
pub fn main(price: u32, limit: u32) -> u32 {
    if price < limit { limit - price } else { price * 3u32 }
}
";

fn both(bench: &Bench, function: &str, inputs: [&str; 2], extra: &[&str]) -> (Said, Said) {
    by_words(bench, function, inputs, [extra, extra])
}

/// `tacit eval` by rows side by side, each side with words of its own.
fn by_words(bench: &Bench, function: &str, inputs: [&str; 2], extra: [&[&str]; 2]) -> (Said, Said) {
    let address = format!("127.0.0.1:{}", free_port());
    let side = |mode, role, key, peer, i: usize| {
        let mut args = vec!["--json", "eval", function, mode, &address, "--identity", key, "--peer", peer];
        args.extend(["--role", role, "--input", inputs[i], "--timeout", "20"]);
        args.extend(["--security", "semi-honest", "--protocol", "batch"]);
        args.extend(extra[i]);
        args
    };
    let garbler = side("--listen", "garbler", "alice.key", "bob.pub", 0);
    let evaluator = side("--connect", "evaluator", "bob.key", "alice.pub", 1);
    bench.run_both(&garbler, &evaluator)
}

fn parsed(said: &Said) -> Value {
    serde_json::from_str(said.success()).unwrap()
}

/// A column of numbers below 2^32, and the numbers.
fn column(bench: &Bench, file: &str, rows: u64, factor: u64) -> Vec<u64> {
    let values: Vec<u64> = (0..rows).map(|i| (i + 1) * factor % (1 << 32)).collect();
    let lines: String = values.iter().map(|value| format!("{value}\n")).collect();
    bench.write(file, format!("n\n{lines}"));
    values
}

#[test]
fn rows_of_two_tables_are_computed_side_by_side_on_any_number_of_threads() {
    let bench = Bench::with_keys();
    let ours = column(&bench, "a.csv", 131, 2_654_435_761);
    let theirs = column(&bench, "b.csv", 131, 40_503);
    let sums: Vec<Value> =
        ours.iter().zip(&theirs).map(|(a, b)| ((a + b) % (1 << 32)).to_string().into()).collect();
    for (threads, to, ot) in
        [("1", "both", "auto"), ("2", "garbler", "kos"), ("1", "evaluator", "ferret"), ("1", "both", "iknp")]
    {
        let extra = ["--batch", "--threads", threads, "--output-to", to, "--ot", ot];
        let (g, e) = both(&bench, "add32", ["a.csv", "b.csv"], &extra);
        let sides = [(parsed(&g), to != "evaluator"), (parsed(&e), to != "garbler")];
        for (said, learns) in &sides {
            assert_eq!((&said["protocol"], &said["rows"]), (&"batch".into(), &131.into()));
            assert_eq!(said["learned"], *learns, "{to}");
            let column = said["decimals"].as_array().into_iter().flatten().map(|row| row[0].clone());
            assert_eq!(column.collect::<Vec<_>>(), if *learns { sums.clone() } else { Vec::new() });
        }
        // Few rows take the circuit of few levels, on both sides.
        assert!(sides[0].0["and"].as_u64() > Some(31), "{}", sides[0].0["and"]);
        assert_eq!(sides[0].0["circuit_digest"], sides[1].0["circuit_digest"]);
    }
}

#[test]
fn one_row_programs_and_circuit_files_work_as_well() {
    let bench = Bench::with_keys();
    let (g, e) = both(&bench, "millionaires", ["5", "4"], &[]);
    for said in [g, e] {
        assert_eq!(parsed(&said)["outputs"], serde_json::json!(["0x1"]));
    }
    bench.write("p.garble.rs", PROGRAM);
    bench.write("a.csv", "price\n5\n900\n4000000000\n");
    bench.write("b.csv", "limit\n7\n20\n1\n");
    let (g, e) = both(&bench, "p.garble.rs", ["a.csv", "b.csv"], &["--batch"]);
    for said in [g, e] {
        let said = parsed(&said);
        assert_eq!(said["outputs"], serde_json::json!([["2"], ["2700"], ["fault: overflow"]]), "{said}");
        assert_eq!(said["flags"]["overflow"], 1);
    }
    bench.write("half.txt", "2 4\n2 1 1\n2 1 1\n\n2 1 0 1 2 XOR\n2 1 0 1 3 AND\n");
    bench.write("a.csv", "x\n0\n1\n0\n1\n");
    bench.write("b.csv", "y\n0\n0\n1\n1\n");
    let (g, _) = both(&bench, "half.txt", ["a.csv", "b.csv"], &["--batch"]);
    let expected = serde_json::json!([["0x0", "0x0"], ["0x1", "0x0"], ["0x1", "0x0"], ["0x0", "0x1"]]);
    assert_eq!(parsed(&g)["outputs"], expected);
    bench.write("a.csv", "x\n250\n1\n7\n");
    bench.write("b.csv", "y\n10\n0\n1\n");
    let (g, e) = both(&bench, "add8", ["a.csv", "b.csv"], &["--batch", "--aggregate", "sum"]);
    for said in [g, e] {
        assert_eq!(parsed(&said)["decimals"], serde_json::json!([["13"]]));
    }
}

#[test]
fn what_it_does_not_do_is_refused_and_terms_are_compared() {
    let bench = Bench::with_keys();
    let one = |words: &str| {
        let head = ["eval", "--listen", "127.0.0.1:1", "--role", "garbler", "--identity", "alice.key"];
        let more: Vec<&str> = words.split(' ').collect();
        bench.run(&[&head[..], &["--peer", "bob.pub", "--protocol", "batch"], &more].concat())
    };
    one("add8 --input 1").fails_with(2, &["batch is only for semi-honest security"]);
    let semi = "--security semi-honest";
    one(&format!("add8 --input 1 --copies 44 {semi}")).fails_with(2, &["batch does not use copies"]);
    one(&format!("modexp96 --input 1 {semi}")).fails_with(2, &["batch keeps the circuit"]);
    one(&format!("add8 --offline x {semi}")).fails_with(2, &["wmk17"]);
    let other = ["--ot", "kos"];
    let (g, e) = by_words(&bench, "add8", ["1", "2"], [&[], &other]);
    g.fails_with(4, &["--ot (yours auto, peer's kos)"]);
    e.fails_with(4, &["--ot (yours kos, peer's auto)"]);
}

#[test]
fn a_dry_run_foresees_bytes_and_levels() {
    let bench = Bench::with_keys();
    let foreseen = |rows: &str| {
        let words = ["--json", "eval", "lt64", "--dry-run", "--rows", rows, "--protocol", "batch"];
        parsed(&bench.run(&[&words[..], &["--security", "semi-honest", "--link", "lan"]].concat()))
    };
    let (few, many) = (foreseen("100"), foreseen("1000000"));
    assert_eq!((&few["protocol"], &few["and_depth"]), (&"batch".into(), &7.into()));
    assert_eq!((&many["and"], &many["and_depth"]), (&64.into(), &64.into()));
    let bytes =
        |said: &Value| said["garbler_bytes"].as_f64().unwrap() + said["evaluator_bytes"].as_f64().unwrap();
    let each = bytes(&many) / (64.0 * 1e6);
    assert!((0.5..1.2).contains(&each), "{each} bytes a gate");
    column(&bench, "a.csv", 100, 77_777);
    column(&bench, "b.csv", 100, 99_999_999);
    let (g, e) = both(&bench, "lt64", ["a.csv", "b.csv"], &["--batch"]);
    for (said, side) in [(parsed(&g), "garbler_bytes"), (parsed(&e), "evaluator_bytes")] {
        let (sent, told) = (said["bytes_sent"].as_f64().unwrap(), few[side].as_f64().unwrap());
        // Greetings come to it.
        assert!((told / sent - 1.0).abs() < 0.1, "{side}: told {told}, sent {sent}");
    }
}

#[test]
fn a_dry_run_reads_the_inputs_of_its_side() {
    let bench = Bench::with_keys();
    bench.write("large.csv", "x\n7\n300\n");
    bench.write("fits.csv", "x\n7\n200\n3\n");
    let dry = |more: &[&str]| bench.run(&[&["--json", "eval", "add8", "--dry-run"], more].concat());
    let batch = ["--role", "garbler", "--batch", "--input"];
    dry(&[&batch[..], &["large.csv"]].concat()).fails_with(3, &["large.csv, line 3", "8 bits"]);
    dry(&["--role", "evaluator", "--input", "300"]).fails_with(3, &["--input", "8 bits"]);
    let plan = dry(&[&batch[..], &["fits.csv"]].concat());
    assert_eq!(parsed(&plan)["rows"], 3, "{plan:?}");
    dry(&[&batch[..], &["fits.csv", "--rows", "9"]].concat()).fails_with(2, &["--batch", "--rows"]);
}
