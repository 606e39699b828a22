//! `tacit eval` between two real processes.

use crate::common::{self, Bench, Harm, Said, free_port, proxy};
use tacit::two_pc::circuit::LongFunction;

fn run(bench: &Bench, function: [&str; 2], inputs: [&str; 2], extra: &[&str]) -> (Said, Said) {
    let address = format!("127.0.0.1:{}", free_port());
    let side = |mode, role, key, peer, i: usize| {
        let mut args = vec!["eval", function[i], mode, &address, "--identity", key, "--peer", peer];
        args.extend(["--role", role, "--input", inputs[i], "--security", "semi-honest"]);
        args.extend(extra);
        args
    };
    let garbler = side("--listen", "garbler", "alice.key", "bob.pub", 0);
    let evaluator = side("--connect", "evaluator", "bob.key", "alice.pub", 1);
    bench.run_both(&garbler, &evaluator)
}

#[test]
fn both_sides_get_the_outputs_of_a_named_function() {
    let bench = Bench::with_keys();
    let key = "0x000102030405060708090a0b0c0d0e0f";
    let block = "0x00112233445566778899aabbccddeeff";
    let (g, e) = run(&bench, ["aes128"; 2], [key, block], &[]);
    for side in [g, e] {
        assert_eq!(side.success().trim(), "0x69c4e0d86a7b0430d8cdb78070b4c55a");
    }
    let (g, e) = run(&bench, ["millionaires"; 2], ["5", "4"], &["--output-to", "evaluator"]);
    assert_eq!((g.success().trim(), e.success().trim()), ("", "0x1"));
}

#[test]
fn a_malicious_peer_is_the_default_and_either_protocol_answers() {
    let bench = Bench::with_keys();
    let key = "0x000102030405060708090a0b0c0d0e0f";
    let block = "0x00112233445566778899aabbccddeeff";
    let address = format!("127.0.0.1:{}", free_port());
    let side = |mode, role, key, peer, input, to, protocol| {
        let head = ["--json", "eval", "aes128", mode, &address, "--identity", key, "--peer", peer];
        let more = ["--role", role, "--input", input, "--output-to", to, "--protocol", protocol];
        [&head[..], &more].concat()
    };
    for (to, outputs, protocol) in [
        ("both", [true, true], "auto"),
        ("both", [true, true], "wmk17"),
        ("both", [true, true], "authenticated"),
        ("garbler", [true, false], "authenticated"),
        ("garbler", [true, false], "wmk17"),
        ("evaluator", [false, true], "authenticated"),
    ] {
        let garbler = side("--listen", "garbler", "alice.key", "bob.pub", key, to, protocol);
        let evaluator = side("--connect", "evaluator", "bob.key", "alice.pub", block, to, protocol);
        let (g, e) = bench.run_both(&garbler, &evaluator);
        let mut ran = Vec::new();
        for (said, learns) in [g, e].into_iter().zip(outputs) {
            let said: serde_json::Value = serde_json::from_str(said.success()).unwrap();
            assert_eq!(said["security"], "malicious");
            assert_eq!(said["protocol_why"].is_string(), protocol == "auto");
            ran.push(said["protocol"].as_str().unwrap().to_owned());
            assert!(["auto", &ran[0]].contains(&protocol) && ran[0] == *ran.last().unwrap(), "{ran:?}");
            let expected = learns.then(|| vec!["0x69c4e0d86a7b0430d8cdb78070b4c55a"]);
            assert_eq!(said["outputs"], serde_json::json!(expected), "{to}");
        }
    }
}

/// `tacit eval add8` against a malicious peer, the garbler listening at `address`; `extra` is the words of
/// each side.
fn sides(bench: &Bench, address: [&str; 2], extra: [&[&str]; 2]) -> (Said, Said) {
    let side = |mode, i: usize, role, key, peer| {
        let head = ["--json", "eval", "add8", mode, address[i], "--identity", key, "--peer", peer];
        [&head[..], &["--role", role, "--timeout", "10"], extra[i]].concat()
    };
    bench.run_both(
        &side("--listen", 0, "garbler", "alice.key", "bob.pub"),
        &side("--connect", 1, "evaluator", "bob.key", "alice.pub"),
    )
}

fn add8(bench: &Bench, garbler: &[&str], evaluator: &[&str]) -> (Said, Said) {
    let address = format!("127.0.0.1:{}", free_port());
    sides(bench, [&address; 2], [garbler, evaluator])
}

fn offline(bench: &Bench, g: &str, e: &str, extra: &[&str]) -> serde_json::Value {
    let side = |file| [&["--offline", file], extra].concat();
    let (g, e) = add8(bench, &side(g), &side(e));
    let said = [g, e].map(|said| serde_json::from_str::<serde_json::Value>(said.success()).unwrap());
    assert_eq!((&said[0]["id"], &said[0]["copies"]), (&said[1]["id"], &said[1]["copies"]));
    said[0].clone()
}

#[test]
fn an_evaluation_in_two_halves_and_its_file_serves_once() {
    let bench = Bench::with_keys();
    bench.write("secret", [7u8; 40]);
    for (round, extra) in [&[][..], &["--pool-key", "secret", "--copies", "47/16"]].into_iter().enumerate() {
        let (g, e) = (format!("g{round}.state"), format!("e{round}.state"));
        let made = offline(&bench, &g, &e, extra);
        if round == 1 {
            assert_eq!(made["copies"], "47/16");
        }
        let key = if round == 1 { &["--pool-key", "secret"][..] } else { &[] };
        let online = || {
            add8(
                &bench,
                &[&["--online", &g, "--input", "200"], key].concat(),
                &[&["--online", &e, "--input", "55"], key].concat(),
            )
        };
        let (first, second) = online();
        for said in [first, second] {
            let said: serde_json::Value = serde_json::from_str(said.success()).unwrap();
            assert_eq!((&said["outputs"][0], &said["mode"]), (&"0xff".into(), &"online".into()));
            // Of the circuits nothing is left to send.
            assert!(said["rounds"].as_u64().unwrap() <= 8, "{said}");
        }
        let (first, second) = online();
        first.fails_with(3, &["g", ".state", "used before"]);
        second.fails_with(3, &["e", ".state", "used before"]);
        assert!(bench.leftovers().is_empty());
    }
    let (g, e) =
        add8(&bench, &["--offline", "g0.state"], &["--offline", "new.state", "--connect-timeout", "1"]);
    g.fails_with(3, &["g0.state", "exists already"]);
    e.fails_with(4, &[]);
    assert!(!bench.exists("new.state") && bench.leftovers().is_empty());
}

#[test]
fn halves_that_do_not_belong_together_are_refused() {
    let bench = Bench::with_keys();
    offline(&bench, "g1", "e1", &[]);
    offline(&bench, "g2", "e2", &[]);
    let (g, e) = add8(&bench, &["--online", "g1", "--input", "1"], &["--online", "e2", "--input", "2"]);
    g.fails_with(4, &["not made together"]);
    e.fails_with(4, &["not made together"]);
    let (g, e) = add8(&bench, &["--online", "g1", "--input", "1"], &["--input", "2"]);
    g.fails_with(4, &["asked for", "online half", "whole evaluation"]);
    e.fails_with(4, &["asked for", "online half", "whole evaluation"]);
    // Faults that need no peer.
    let one = |name: &str, extra: &[&str]| {
        let mut args = vec!["eval", name, "--listen", "127.0.0.1:1", "--role", "garbler", "--input", "1"];
        args.extend(["--identity", "alice.key", "--peer", "bob.pub"]);
        args.extend(extra);
        bench.run(&args)
    };
    one("add8", &["--online", "e1", "--pool-key", "alice.pub"]).fails_with(3, &["e1", "another key"]);
    one("add8", &["--online", "none"]).fails_with(3, &["none"]);
    one("add8", &["--online", "alice.pub"]).fails_with(3, &["not a state"]);
    one("add8", &["--online", "g1", "--security", "semi-honest"]).fails_with(2, &["wmk17"]);
    one("add8", &["--online", "g1", "--batch"]).fails_with(2, &["--batch"]);
    one("add8", &["--pool-key", "alice.pub"]).fails_with(2, &["--pool-key", "--offline"]);
    let mut cut = std::fs::read(bench.path("g1")).unwrap();
    cut.pop();
    bench.write("cut", &cut);
    one("add8", &["--online", "cut"]).fails_with(3, &["cut", "was cut"]);
    cut[20] ^= 1;
    bench.write("flipped", &cut);
    one("add8", &["--online", "flipped"]).fails_with(3, &["flipped", "damaged"]);
    cut[8] = 0;
    bench.write("old", &cut);
    let why = ["old", "version 0", "what older releases made is weaker", "make a new one on both sides"];
    one("add8", &["--online", "old"]).fails_with(3, &why);
    // Another function and another output rule are found when both are there, before anything is used.
    let address = format!("127.0.0.1:{}", free_port());
    let side = |mode, role, key, peer, state, to| {
        let head = ["eval", "sub8", mode, &address, "--identity", key, "--peer", peer, "--input", "1"];
        [&head[..], &["--role", role, "--online", state, "--output-to", to]].concat()
    };
    let (g, e) = bench.run_both(
        &side("--listen", "garbler", "alice.key", "bob.pub", "g1", "both"),
        &side("--connect", "evaluator", "bob.key", "alice.pub", "e1", "both"),
    );
    g.fails_with(3, &["g1", "another function"]);
    e.fails_with(3, &["e1", "another function"]);
    let (g, e) = add8(&bench, &["--online", "g1", "--input", "1"], &["--online", "e1", "--input", "2"]);
    assert!(g.success().contains("0x03") && e.success().contains("0x03"));
}

#[test]
fn a_half_that_was_cut_short_is_used_up() {
    let bench = Bench::with_keys();
    offline(&bench, "g", "e", &[]);
    // Far into the labels of the evaluator's input: both have begun.
    let port = free_port();
    let (through, _) = proxy(port, Harm::Truncate(60_000), false);
    let (at, to) = (format!("127.0.0.1:{port}"), format!("127.0.0.1:{through}"));
    let words = [["--online", "g", "--input", "1"], ["--online", "e", "--input", "2"]];
    let (g, e) = sides(&bench, [&at, &to], [&words[0], &words[1]]);
    g.fails_with(4, &[]);
    e.fails_with(4, &[]);
    let (g, e) = add8(&bench, &words[0], &words[1]);
    g.fails_with(3, &["used before"]);
    e.fails_with(3, &["used before"]);
}

#[test]
fn copies_and_ot_extensions_are_chosen_by_flags() {
    let bench = Bench::with_keys();
    let input = |value, extra: &[&'static str]| [&["--input", value], extra].concat();
    for extra in [
        &["--copies", "44"][..],
        &["--copies", "44/22"],
        &["--copies", "47/16", "--ot", "ferret"],
        &["--ot", "silent"],
    ] {
        let (g, e) = add8(&bench, &input("200", extra), &input("56", extra));
        assert!(g.success().contains("0x00") && e.success().contains("0x00"), "{extra:?}");
    }
    for extra in [["--copies", "44"], ["--ot", "ferret"]] {
        let (g, e) = add8(&bench, &input("1", &extra), &input("2", &[]));
        g.fails_with(4, &[&extra[0][2..]]);
        e.fails_with(4, &[&extra[0][2..]]);
    }
    let (g, _) = add8(&bench, &input("1", &["--ot", "iknp"]), &input("2", &["--connect-timeout", "1"]));
    g.fails_with(2, &["iknp", "semi-honest"]);
}

/// `tacit eval` of `function` by both protocols, and what both sides said on standard output.
fn by_both(bench: &Bench, function: &str, inputs: [&str; 2], extra: &[&str]) -> String {
    let mut said = Vec::new();
    for security in ["semi-honest", "malicious"] {
        let address = format!("127.0.0.1:{}", free_port());
        // With a sign in front a value must stand right behind its option.
        let given = inputs.map(|input| format!("--input={input}"));
        let side = |mode, role, key, peer, i: usize| {
            let head = ["eval", function, mode, &address, "--identity", key, "--peer", peer, "--role", role];
            [&head[..], &["--security", security, &given[i]], extra].concat()
        };
        let garbler = side("--listen", "garbler", "alice.key", "bob.pub", 0);
        let evaluator = side("--connect", "evaluator", "bob.key", "alice.pub", 1);
        let (g, e) = bench.run_both(&garbler, &evaluator);
        said.extend([g.success().trim().to_owned(), e.success().trim().to_owned()]);
        for side in [g, e] {
            let flagged = side.err.lines().filter(|line| line.starts_with("note: ")).count();
            let set = side.out.split_whitespace().skip(1).filter(|flag| ["1", "0x1"].contains(flag)).count();
            assert_eq!(flagged, set, "{side:?}");
        }
    }
    assert!(said.iter().all(|one| *one == said[0]), "{function}: {said:?}");
    said.remove(0)
}

#[test]
fn overflow_and_division_by_zero_are_seen_in_both_protocols() {
    let bench = Bench::with_keys();
    let decimal = ["--format", "decimal"];
    for (function, inputs, expected) in [
        ("checked-add8", ["200", "100"], "44 1"),
        ("checked-add8", ["200", "55"], "255 0"),
        ("checked-sub8", ["3", "5"], "254 1"),
        ("checked-mul8", ["16", "16"], "0 1"),
        ("checked-div8", ["7", "0"], "255 1"),
        ("checked-mod8", ["7", "0"], "7 1"),
        ("signed-add8", ["100", "28"], "-128 1"),
        ("signed-add8", ["-100", "28"], "-72 0"),
        ("signed-sub8", ["-128", "1"], "127 1"),
        ("signed-mul8", ["-128", "-1"], "-128 1"),
        ("signed-div8", ["-128", "-1"], "-128 1 0"),
        ("signed-div8", ["-7", "2"], "-3 0 0"),
        ("signed-div8", ["-7", "0"], "1 0 1"),
        ("signed-mod8", ["-7", "2"], "-1 0 0"),
        ("signed-min8", ["-7", "2"], "-7"),
        ("signed-lt8", ["-7", "2"], "1"),
    ] {
        let said = by_both(&bench, function, inputs, &decimal);
        assert_eq!(said, expected, "{function} of {inputs:?}");
    }
    assert_eq!(by_both(&bench, "signed-sub8", ["-128", "1"], &[]), "0x7f 0x1");
    // A quiet run says as well that its result is wrong.
    assert_eq!(by_both(&bench, "checked-add8", ["200", "100"], &["--format", "decimal", "-q"]), "44 1");
}

#[test]
fn values_are_read_and_written_as_asked() {
    let bench = Bench::with_keys();
    let both = |function, inputs, extra: &[&str]| {
        let (g, e) = run(&bench, [function; 2], inputs, extra);
        assert_eq!(g.success(), e.success());
        g.out.trim().to_owned()
    };
    assert_eq!(both("sub32", ["3", "5"], &[]), "0xfffffffe");
    assert_eq!(both("sub32", ["3", "5"], &["--format", "decimal"]), "4294967294");
    assert_eq!(both("sub32", ["3", "5"], &["--format", "signed"]), "-2");
    assert_eq!(both("sort4", ["7,0xff", "3 12"], &["--format", "decimal"]), "3,7,12,255");
    // JSON has both; of a flag the bit alone.
    let (g, _) = run(&bench, ["signed-add16"; 2], ["0x8000", "32767"], &["--json"]);
    let said: serde_json::Value = serde_json::from_str(g.success()).unwrap();
    assert_eq!(said["outputs"], serde_json::json!(["0xffff", "0x0"]));
    assert_eq!(said["decimals"], serde_json::json!(["-1", "0"]));
    assert_eq!(said["flags"], serde_json::json!({ "overflow": 0 }));
    // Widths are strict, and a refusal names width and kind and not the value.
    let args =
        ["eval", "signed-add8", "--role", "garbler", "--security", "semi-honest", "--listen", "127.0.0.1:1"];
    for wrong in ["128", "-129", "0x123"] {
        let said = bench.run(&[&args[..], &[&format!("--input={wrong}")]].concat());
        said.fails_with(3, &["--input: number: the value", "a signed number of 8 bits, -128 to 127"]);
        assert!(!said.err.contains(&format!(" {wrong} ")), "{said:?}");
    }
    let args = ["eval", "add8", "--role", "garbler", "--security", "semi-honest", "--listen", "127.0.0.1:1"];
    let said = bench.run(&[&args[..], &["--input=-5"]].concat());
    said.fails_with(3, &["an unsigned number of 8 bits, 0 to 255"]);
    let said = bench.run(&[&args[..], &["--input=200", "--format", "signed"]].concat());
    said.fails_with(3, &["a signed number of 8 bits, -128 to 127"]);
}

/// A batch of signed numbers: decimals in the file, and how many rows overflowed.
#[test]
fn a_batch_tells_how_many_rows_overflowed() {
    let bench = Bench::with_keys();
    bench.write("a.csv", "gain\n100\n-100\n5\n-128\n");
    bench.write("b.csv", "gain\n100\n-100\n-6\n127\n");
    let inputs = ["a.csv", "b.csv"];
    let (g, e) = run(&bench, ["signed-add8"; 2], inputs, &["--batch", "--format", "decimal"]);
    for said in [g, e] {
        assert_eq!(said.success(), "-56 1\n56 1\n-1 0\n-1 0\n");
        assert!(said.err.contains("note: overflow in 2 of 4 rows"), "{said:?}");
    }
    let (g, _) = run(&bench, ["signed-add8"; 2], inputs, &["--batch", "--json"]);
    let said: serde_json::Value = serde_json::from_str(g.success()).unwrap();
    assert_eq!(said["flags"], serde_json::json!({ "overflow": 2 }));
    assert_eq!(said["decimals"][1], serde_json::json!(["56", "1"]));
    assert_eq!(said["outputs"][1], serde_json::json!(["0x38", "0x1"]));
}

#[test]
fn circuit_files_and_batches_of_rows() {
    let bench = Bench::with_keys();
    // A half adder in Bristol Fashion: sum and carry.
    bench.write("half.txt", "2 4\n2 1 1\n2 1 1\n\n2 1 0 1 2 XOR\n2 1 0 1 3 AND\n");
    bench.write("a.csv", "x\n0\n1\n0\n1\n");
    bench.write("b.csv", "y\n0\n0\n1\n1\n");
    let (g, e) = run(&bench, ["half.txt"; 2], ["a.csv", "@b.csv"], &["--batch"]);
    for side in [g, e] {
        assert_eq!(side.success().trim(), "0x0 0x0\n0x1 0x0\n0x1 0x0\n0x0 0x1");
    }
}

/// Files of other tools have one input or three, and some have the highest bit first.
#[test]
fn a_circuit_file_says_not_whose_its_inputs_are_nor_which_bit_is_first() {
    let bench = Bench::with_keys();
    // The first two bits' product, and the third added; and the first of two bits.
    bench.write("three.txt", "# by hand\n2 5\n3 1 1 1\n1 1\n\n2 1 0 1 3 and\n2 1 3 2 4 xor\n");
    bench.write("one.txt", "1 3\n1 2\n1 1\n\n1 1 0 2 EQW\n");
    for security in ["semi-honest", "malicious"] {
        let extra = |n: &'static str| ["--security", security, "--garbler-inputs", n];
        let (g, e) = by_words(&bench, "three.txt", ["1", "1,0"], [&extra("1"), &extra("1")]);
        assert_eq!([g.success().trim(), e.success().trim()], ["0x1"; 2]);
        let (g, e) = by_words(&bench, "three.txt", ["", "1,1,1"], [&extra("0"), &extra("0")]);
        assert_eq!([g.success().trim(), e.success().trim()], ["0x0"; 2]);
        let (g, e) = by_words(&bench, "three.txt", ["1", "0"], [&extra("1"), &["--security", security]]);
        g.fails_with(4, &["settings differ: --garbler-inputs (yours 1, peer's 2); use"]);
        e.fails_with(4, &["settings differ: --garbler-inputs (yours 2, peer's 1); use"]);
    }
    let semi = ["--security", "semi-honest"];
    let reversed = ["--security", "semi-honest", "--bits", "reversed"];
    let (g, e) = by_words(&bench, "one.txt", ["0x1", ""], [&semi, &semi]);
    assert_eq!([g.success().trim(), e.success().trim()], ["0x1"; 2]);
    let (g, e) = by_words(&bench, "one.txt", ["0x1", ""], [&reversed, &reversed]);
    assert_eq!([g.success().trim(), e.success().trim()], ["0x0"; 2]);
    let (g, e) = by_words(&bench, "one.txt", ["0x1", ""], [&reversed, &semi]);
    assert!(g.err.contains("wiring") && e.err.contains("wiring"), "{} {}", g.err, e.err);
    for words in [
        ["eval", "three.txt", "--dry-run", "--garbler-inputs", "4"],
        ["eval", "add8", "--dry-run", "--garbler-inputs", "1"],
        ["eval", "add8", "--dry-run", "--bits", "reversed"],
    ] {
        bench.run(&words).fails_with(2, &["garbler-inputs"]);
    }
}

/// `tacit eval` of a file, each side with words of its own.
fn by_words(bench: &Bench, file: &str, inputs: [&str; 2], extra: [&[&str]; 2]) -> (Said, Said) {
    let address = format!("127.0.0.1:{}", free_port());
    let side = |mode, role, key, peer, i: usize| {
        let mut args = vec!["eval", file, mode, &address, "--identity", key, "--peer", peer, "--role", role];
        args.extend(["--input", inputs[i], "--timeout", "10"]);
        args.extend(extra[i]);
        args
    };
    let garbler = side("--listen", "garbler", "alice.key", "bob.pub", 0);
    let evaluator = side("--connect", "evaluator", "bob.key", "alice.pub", 1);
    bench.run_both(&garbler, &evaluator)
}

/// Runs `millionaires` on two files, ours with columns of other things and quotes, the evaluator's of `rows`
/// rows.
fn batch(bench: &Bench, rows: usize, garbler: &[&str], evaluator: &[&str]) -> (Said, Said) {
    let ours: String = (0..40).map(|i| format!("p{i};{};\"a;b\"\n", i * 7 % 40)).collect();
    bench.write("ours.csv", format!("who;worth;note\n{ours}"));
    bench.write("theirs.csv", format!("worth\n{}", "0x14\n".repeat(rows)));
    let address = format!("127.0.0.1:{}", free_port());
    let shared = ["eval", "millionaires", "--batch", "--security", "semi-honest"];
    let ours = ["--listen", &address, "--identity", "alice.key", "--peer", "bob.pub", "--role", "garbler"];
    let theirs =
        ["--connect", &address, "--identity", "bob.key", "--peer", "alice.pub", "--role", "evaluator"];
    let ours = [&shared[..], &ours, &["--input", "ours.csv"], garbler].concat();
    let theirs = [&shared[..], &theirs, &["--input", "theirs.csv"], evaluator].concat();
    bench.run_both(&ours, &theirs)
}

#[test]
fn a_batch_is_written_beside_its_rows_on_any_number_of_threads() {
    for threads in ["1", "3"] {
        let bench = Bench::with_keys();
        let both = ["--threads", threads, "--output-to", "both"];
        let ours = [&["--columns", "worth", "--output", "out.csv"], &both[..]].concat();
        let (g, e) = batch(&bench, 40, &ours, &both);
        assert!(g.success().contains("40 rows written to out.csv"), "{g:?}");
        let expected: Vec<u32> = (0..40).map(|i| u32::from(i * 7 % 40 > 20)).collect();
        let bits: Vec<String> = expected.iter().map(|bit| format!("0x{bit}")).collect();
        assert_eq!(e.success().trim(), bits.join("\n"));
        let rows = (0..40).map(|i| format!("p{i};{};\"a;b\";{}\n", i * 7 % 40, bits[i]));
        assert_eq!(bench.read("out.csv"), format!("who;worth;note;result\n{}", rows.collect::<String>()));
        assert!(bench.leftovers().is_empty());
    }
}

#[test]
fn what_is_wrong_with_a_batch_is_named() {
    let bench = Bench::with_keys();
    let one = |input: &str, extra: &[&str]| {
        let mut args = vec!["eval", "add32", "--batch", "--listen", "127.0.0.1:1", "--role", "garbler"];
        args.extend(["--security", "semi-honest", "--identity", "alice.key", "--peer", "bob.pub"]);
        args.extend(["--input", input]);
        args.extend(extra);
        bench.run(&args)
    };
    bench.write("two.csv", "a,b\n1,2\n3,\n4294967296,1\n");
    one("missing.csv", &[]).fails_with(3, &["missing.csv", "no such file"]);
    one("two.csv", &[]).fails_with(2, &["2 columns", "number of 32 bits", "--columns"]);
    one("two.csv", &["--columns", "c"]).fails_with(3, &["`c`", "2 columns"]);
    one("two.csv", &["--columns", "a"]).fails_with(3, &["line 4", "`a`", "32 bits"]);
    one("two.csv", &["--columns", "b"]).fails_with(3, &["line 3", "`b`", "1 value expected, 0 given"]);
    // Numbers with a fraction, in the notation of either half of the world.
    bench.write("sums.csv", "point;comma;wide\n12.5;12,50;1.234\n");
    let sums = |column: &str, more: &[&str]| one("sums.csv", &[&["--columns", column], more].concat());
    let comma = &["`comma`", "price:decimal2", "decimal comma; --decimal-comma does that"];
    sums("point", &[]).fails_with(3, &["`point`", "as in `price:decimal2`"]);
    sums("comma", &[]).fails_with(3, comma);
    let typed =
        &["`comma`", "write a point, or set that the table has a decimal comma; --decimal-comma does that"];
    sums("comma:decimal2", &[]).fails_with(3, typed);
    sums("point:decimal2", &["--decimal-comma"]).fails_with(3, &["`point`", "leave that setting out"]);
    sums("wide:decimal2", &[]).fails_with(3, &["`wide`", "at most 2 digits", "round it", "decimal18"]);
    assert!(!sums("wide:decimal2", &[]).err.contains("1.234"));
    sums("wide:decimal", &[]).fails_with(3, &["write the digits after the point, as in `wide:decimal2`"]);
    bench.write("born.csv", "born\n1969-12-31\n");
    one("born.csv", &["--columns", "born:date"]).fails_with(3, &["before 1970-01-01 is a negative number"]);
    let said = one("two.csv", &["--columns", "a", "--output", "x.csv", "--output-to", "evaluator"]);
    said.fails_with(2, &["--output", "only the peer"]);
    bench.write("few.csv", "a\n1\n2\n");
    one("few.csv", &["--threads", "3"]).fails_with(2, &["--threads 3", "needs a row"]);
    assert!(bench.leftovers().is_empty());
}

#[test]
fn the_two_sides_must_say_the_same() {
    let bench = Bench::with_keys();
    let own = ["--columns", "worth", "--output", "out.csv"];
    let (g, e) = batch(&bench, 40, &own, &["--output-to", "evaluator"]);
    g.fails_with(4, &["output-to"]);
    e.fails_with(4, &["output-to"]);
    assert!(!bench.exists("out.csv") && bench.leftovers().is_empty());
    let (g, e) = batch(&bench, 39, &own, &[]);
    g.fails_with(4, &["settings differ: rows (yours 40, peer's 39)", "in the same order"]);
    e.fails_with(4, &["settings differ: rows (yours 39, peer's 40)", "in the same order"]);
    assert!(!bench.exists("out.csv") && bench.leftovers().is_empty());
    let (g, e) = batch(&bench, 40, &["--columns", "worth", "--aggregate", "sum"], &[]);
    g.fails_with(4, &["settings differ: --aggregate (yours sum, peer's not given); use the same"]);
    e.fails_with(4, &["settings differ: --aggregate (yours not given, peer's sum); use the same"]);
}

#[test]
fn faults_end_in_one_line_and_their_exit_code() {
    let bench = Bench::with_keys();
    let (g, e) = run(&bench, ["add32", "sub32"], ["1", "2"], &[]);
    g.fails_with(4, &["settings differ: function (yours add32, peer's sub32); use the same"]);
    e.fails_with(4, &["settings differ: function (yours sub32, peer's add32); use the same"]);
    bench.run(&["eval", "nonsense", "--dry-run"]).fails_with(2, &["nonsense"]);
    std::fs::write(bench.path("bad.txt"), "1 3\n1 1 1\n2 1 0 7 2 AND\n").unwrap();
    bench.run(&["eval", "bad.txt", "--dry-run"]).fails_with(3, &["line 3"]);
    let args = ["eval", "add32", "--role", "garbler", "--security", "semi-honest", "--listen", "127.0.0.1:1"];
    bench.run(&[&args[..], &["--input", "4294967296"]].concat()).fails_with(3, &["32 bits"]);
}

#[test]
fn post_quantum_refuses_wmk17_with_the_reason_and_runs_the_others_over_roted() {
    let bench = Bench::with_keys();
    let args = ["eval", "add32", "--role", "garbler", "--input", "1", "--post-quantum"];
    bench
        .run(&[&args[..], &["--protocol", "wmk17"]].concat())
        .fails_with(2, &["--post-quantum", "wmk17", "Diffie–Hellman", "authenticated"]);
    let (g, e) = add8(&bench, &["--post-quantum", "--input", "200"], &["--post-quantum", "--input", "55"]);
    for said in [g, e] {
        let said: serde_json::Value = serde_json::from_str(said.success()).unwrap();
        assert_eq!((&said["protocol"], &said["outputs"][0]), (&"authenticated".into(), &"0xff".into()));
    }
    let (g, e) = run(&bench, ["add32"; 2], ["5", "4"], &["--post-quantum"]);
    for side in [g, e] {
        assert_eq!(side.success().trim(), "0x00000009");
    }
}

#[test]
fn costs_and_names_are_shown_without_a_peer() {
    let bench = Bench::with_keys();
    let estimate = |extra: &[&str]| -> serde_json::Value {
        let said = bench
            .run(&[&["--json", "eval", "aes128", "--dry-run", "--security", "semi-honest"], extra].concat());
        serde_json::from_str(said.success()).unwrap()
    };
    let (near, far) = (estimate(&["--rows", "100"]), estimate(&["--rows", "100", "--link", "8/50"]));
    assert_eq!(near["and"], 6400);
    let bytes = near["garbler_bytes"].as_f64().unwrap();
    assert!((100.0 * 32.0 * 6400.0..100.0 * 40.0 * 6400.0).contains(&bytes), "{near}");
    // A megabyte a second, and a tenth of a second each round, of which the last may be half of one.
    let least = bytes / 1e6 + 0.1 * (far["rounds"].as_f64().unwrap() - 0.5);
    let told = far["estimated_ms"].as_f64().unwrap() / 1e3;
    assert!((least..least + 20.0).contains(&told) && near["estimated_ms"].as_f64().unwrap() > 0.0, "{far}");
    // By default against a malicious peer, by the protocol that sends least, and of the other with every
    // number of copies; the fewest tables pass soonest over a slow link.
    let said = bench.run(&["--json", "eval", "aes128", "--dry-run", "--link", "8/50"]);
    let all: serde_json::Value = serde_json::from_str(said.success()).unwrap();
    assert_eq!(all["protocol"], "authenticated");
    assert_eq!(all["candidates"].as_array().unwrap().len(), 4, "{all}");
    let wmk17 = ["--json", "eval", "aes128", "--dry-run", "--link", "8/50", "--protocol", "wmk17"];
    let said = bench.run(&wmk17);
    let malicious: serde_json::Value = serde_json::from_str(said.success()).unwrap();
    assert_eq!(malicious["protocol"], "wmk17");
    let candidates = malicious["candidates"].as_array().unwrap();
    let find = |variant: &str| candidates.iter().find(|c| c["variant"] == variant).unwrap();
    assert!(find("44 copies")["bytes"].as_f64().unwrap() > 44.0 * 32.0 * 6400.0, "{malicious}");
    assert_eq!((candidates.len(), &candidates[0]["variant"]), (3, &"47/16 copies".into()), "{malicious}");
    assert_eq!(candidates[0]["predicted_ms"], malicious["estimated_ms"]);
    assert!(candidates.iter().all(|c| !c["assumptions"].as_array().unwrap().is_empty()));
    assert!(malicious["other_side_learns"].as_str().unwrap().contains("outputs"));
    let text = bench.run(&["eval", "add32", "--dry-run", "--output-to", "evaluator"]);
    assert!(
        text.success().contains("44/22 copies")
            && text.out.contains("as garbler nothing of your inputs; as evaluator"),
        "{text:?}"
    );
}

/// The list, `--help` and a dry run say of a function what the catalogue says.
#[test]
fn functions_are_told_as_the_catalogue_has_them() {
    let bench = Bench::with_keys();
    let list = bench.run(&["eval", "--list", "--json"]);
    let help = bench.run(&["eval", "--help"]);
    let listed: Vec<serde_json::Value> =
        list.success().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let (streamed, listed): (Vec<_>, Vec<_>) = listed.into_iter().partition(|f| f["streamed"] == true);
    assert_eq!(listed.len(), tacit::catalogue::functions().count());
    assert_eq!(streamed.len(), LongFunction::names().count());
    for (name, listed) in LongFunction::names().zip(&streamed) {
        assert_eq!(
            (listed["name"].as_str(), listed["protocol"].as_str()),
            (Some(&*name), Some("authenticated"))
        );
        assert!(
            listed["and"].as_u64() > Some(1 << 20) && listed["bytes"].as_u64() > Some(1 << 27),
            "{listed}"
        );
    }
    for (entry, listed) in tacit::catalogue::functions().zip(&listed) {
        assert_eq!(
            (entry.name, entry.about),
            (listed["name"].as_str().unwrap(), listed["about"].as_str().unwrap())
        );
        assert!(help.success().split_whitespace().any(|word| word == entry.name), "{}", entry.name);
    }
    let told = bench.run(&["eval", "signed-div32", "--dry-run"]);
    let words = "out: result (32 bits), overflow (1 bit), division by zero (1 bit)";
    assert!(
        told.success().contains(words) && told.out.contains("the quotient of signed numbers"),
        "{told:?}"
    );
}

#[test]
fn a_dry_run_tells_what_the_run_then_sends() {
    let bench = Bench::with_keys();
    let read = |said: &Said| serde_json::from_str::<serde_json::Value>(said.success()).unwrap();
    let told = read(&bench.run(&["--json", "eval", "aes128", "--dry-run", "--security", "semi-honest"]));
    let (g, _) = run(&bench, ["aes128"; 2], ["1", "2"], &["--json"]);
    let sent = read(&g);
    for (told_as, sent_as) in [("garbler_bytes", "bytes_sent"), ("evaluator_bytes", "bytes_received")] {
        let (told, sent) = (told[told_as].as_f64().unwrap(), sent[sent_as].as_f64().unwrap());
        // The run has the handshake besides.
        assert!((0.0..1_000.0).contains(&(sent - told)), "{told_as}: told {told}, sent {sent}");
    }
}

#[test]
fn a_dry_run_measures_the_link_to_a_peer() {
    let bench = Bench::with_keys();
    let address = format!("127.0.0.1:{}", free_port());
    let side = |mode, key, peer| {
        ["--json", "eval", "add32", "--dry-run", mode, &address, "--identity", key, "--peer", peer]
    };
    let (a, b) =
        bench.run_both(&side("--listen", "alice.key", "bob.pub"), &side("--connect", "bob.key", "alice.pub"));
    for said in [a, b] {
        let told: serde_json::Value = serde_json::from_str(said.success()).unwrap();
        assert_eq!(told["link_measured"], true);
        assert!(told["link"].as_str().unwrap().contains('/'), "{told}");
    }
}

#[test]
fn half_gates_and_streams_are_measured() {
    let bench = Bench::new();
    for kind in [&["independent"][..], &["aes128"], &["add32", "--copies", "40"]] {
        let args = [&["--json", "bench", "garble"], kind, &["--count", "20000", "--repeat", "2"]].concat();
        let said = bench.run(&args);
        let lines: Vec<serde_json::Value> =
            said.success().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!([&lines[0]["name"], &lines[1]["name"]], ["garble", "evaluate"]);
        for line in lines {
            assert!(
                line["count"].as_u64().unwrap() >= 20_000 && line["ns_per_item"].as_f64().unwrap() > 0.0,
                "{line}"
            );
        }
    }
    bench.write("xor.txt", "1 3\n2 1 1\n1 1\n\n2 1 0 1 2 XOR\n");
    bench.run(&["bench", "garble", "xor.txt"]).fails_with(2, &["no AND gate"]);
    let said = bench.run(&["--json", "bench", "stream", "--count", "100000", "--repeat", "1"]);
    let told: serde_json::Value = serde_json::from_str(said.success()).unwrap();
    assert!(told["bytes_sent"].as_u64().unwrap() >= 32 * told["count"].as_u64().unwrap(), "{told}");
}

/// A state is bound to the key of the peer that it was made with, pinned here: another peer that holds the
/// other half's file, and the secret that it is sealed with, is refused, and the state is still there for the
/// right one.
#[test]
fn a_state_serves_with_the_peer_that_it_was_made_with() {
    let bench = Bench::with_keys();
    bench.write("secret", [7u8; 40]);
    bench.run(&["keygen", "--out", "carol.key"]).success();
    offline(&bench, "g", "e", &["--pool-key", "secret"]);
    let online = |key: &str, name: &str| {
        let address = format!("127.0.0.1:{}", free_port());
        let side = |mode, role, file, own, peer, input| {
            let words = format!(
                "--json eval add8 {mode} {address} --role {role} --timeout 10 --online {file} --pool-key secret \
                 --identity {own} --peer {peer} --input {input}"
            );
            words.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
        };
        let garbler = side("--listen", "garbler", "g", "alice.key", name, "200");
        let evaluator = side("--connect", "evaluator", "e", key, "alice.pub", "55");
        let [garbler, evaluator] =
            [&garbler, &evaluator].map(|w| w.iter().map(String::as_str).collect::<Vec<_>>());
        bench.run_both(&garbler, &evaluator)
    };
    std::fs::copy(bench.path("e"), bench.path("kept")).unwrap();
    let (g, e) = online("carol.key", "carol.pub");
    g.fails_with(3, &["g", "made with another peer"]);
    assert_ne!(e.code, 0, "{e:?}");
    std::fs::copy(bench.path("kept"), bench.path("e")).unwrap();
    for said in <[Said; 2]>::from(online("bob.key", "bob.pub")) {
        assert!(said.success().contains("0xff"), "{said:?}");
    }
}

/// The same with certificates: it is the key in them that counts, not the name.
#[test]
fn a_state_is_bound_to_the_key_in_the_peers_certificate() {
    let bench = Bench::new();
    bench.write("secret", [7u8; 40]);
    let key = rcgen::KeyPair::generate().unwrap();
    let mut parameters = rcgen::CertificateParams::new(Vec::<String>::new()).unwrap();
    parameters.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    bench.write("ca.pem", parameters.self_signed(&key).unwrap().pem());
    let issuer = rcgen::Issuer::new(parameters, key);
    let certify = |file: &str, name: &str, key: &rcgen::KeyPair| {
        let parameters = rcgen::CertificateParams::new(vec![format!("{name}.example")]).unwrap();
        bench.write(&format!("{file}.pem"), parameters.signed_by(key, &issuer).unwrap().pem());
        bench.write(&format!("{file}.pkcs8"), key.serialize_pem());
    };
    let [alice, bob, other] = [0; 3].map(|_| rcgen::KeyPair::generate().unwrap());
    certify("alice", "alice", &alice);
    certify("bob", "bob", &bob);
    certify("renewed", "bob", &bob);
    certify("other", "bob", &other);
    let both = |bob: &str, garbler: &str, evaluator: &str| {
        let address = format!("127.0.0.1:{}", free_port());
        let side = |way: &str, role: &str, own: &str, peer: &str, extra: &str| {
            let words = format!(
                "--json eval add8 {way} {address} --authority ca.pem --identity {own}.pkcs8 --certificate {own}.pem \
                 --peer-name {peer}.example --role {role} --timeout 10 --pool-key secret {extra}"
            );
            let child = bench.spawn(&words.split_whitespace().collect::<Vec<_>>());
            std::thread::spawn(move || common::wait(child))
        };
        let garbler = side("--listen", "garbler", "alice", "bob", garbler);
        let evaluator = side("--connect", "evaluator", bob, "alice", evaluator);
        (garbler.join().unwrap(), evaluator.join().unwrap())
    };
    let (g, e) = both("bob", "--offline g", "--offline e");
    assert_eq!((g.code, e.code), (0, 0), "{g:?} {e:?}");
    let inputs = ["--online g --input 200", "--online e --input 55"];
    std::fs::copy(bench.path("e"), bench.path("kept")).unwrap();
    let (g, _) = both("other", inputs[0], inputs[1]);
    g.fails_with(3, &["g", "made with another peer"]);
    // Another certificate for the same key, and the half that was not touched.
    std::fs::copy(bench.path("kept"), bench.path("e")).unwrap();
    for said in <[Said; 2]>::from(both("renewed", inputs[0], inputs[1])) {
        assert!(said.success().contains("0xff"), "{said:?}");
    }
}

/// What a file declares costs nothing before it is known to fit, and the memory of the run is known before
/// anybody is called.
#[test]
fn sizes_that_a_circuit_declares_are_bounded_before_connecting() {
    let bench = Bench::with_keys();
    let huge = 1u64 << 60;
    let inputs = 1 << 24;
    let run = |file: &str, security: &str| {
        let words = format!(
            "eval {file} --connect 127.0.0.1:1 --connect-timeout 1 --role garbler --input 1 --identity alice.key \
             --peer bob.pub --security {security}"
        );
        bench.run(&words.split_whitespace().collect::<Vec<_>>())
    };
    for (at, text) in [
        format!("{huge} 8\n2 4 4\n1 4\n"),
        format!("1 {huge}\n2 4 4\n1 4\n"),
        format!("1 9\n2 4 {huge}\n1 4\n"),
        format!("1 9\n2 4 4\n1 {huge}\n"),
    ]
    .iter()
    .enumerate()
    {
        bench.write("huge.txt", text);
        let line = if at < 2 { "line 1" } else { ["line 2", "line 3"][at - 2] };
        run("huge.txt", "malicious").fails_with(3, &["huge.txt", line, "a number below 2^32"]);
    }
    // As many as a number holds, of which the file has none.
    for counts in ["4000000000 9", "1 4000000000"] {
        bench.write("huge.txt", format!("{counts}\n2 4 4\n1 4\n\n2 1 0 4 8 XOR\n"));
        run("huge.txt", "malicious").fails_with(3, &["huge.txt", "line 1", "do not fit the file"]);
    }
    // A file of three lines whose inputs are its outputs, and that takes hundreds of gigabytes in all copies.
    bench.write("wide.txt", format!("0 {inputs}\n1 {inputs}\n1 {inputs}\n"));
    let needed = tacit::job::eval::memory(tacit::Security::Malicious, 0, 2 * inputs, 1);
    assert!(needed > 200 << 30);
    let info = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let available = info.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let available = available.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    if available.is_some_and(|kib| kib << 10 < needed) {
        run("wide.txt", "malicious").fails_with(3, &["wide.txt", "MiB", "smaller circuit"]);
    }
}
