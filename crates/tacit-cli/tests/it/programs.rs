//! `tacit eval FILE.garble.rs` and `tacit circuit`, as a user runs them.

use crate::common::{Bench, Said, free_port};
use serde_json::Value;

const OFFER: &str = "\
enum Plan { Basic, Paid(u8) }
struct Offer { price: i32, plan: Plan }
pub fn main(offer: Offer, limit: i32) -> i32 {
    match offer.plan {
        Plan::Basic => limit - offer.price,
        Plan::Paid(months) => limit - offer.price * months as i32,
    }
}
pub fn fits(offer: Offer, limit: i32) -> bool {
    main(offer, limit) > 0i32
}
";

fn both(bench: &Bench, file: [&str; 2], inputs: [&str; 2], extra: &[&str]) -> (Said, Said) {
    let address = format!("127.0.0.1:{}", free_port());
    let side = |mode, role, key, peer, i: usize| {
        let mut args = vec!["eval", file[i], mode, &address, "--identity", key, "--peer", peer];
        args.extend(["--role", role, "--input", inputs[i], "--timeout", "20"]);
        args.extend(extra);
        args
    };
    let garbler = side("--listen", "garbler", "alice.key", "bob.pub", 0);
    let evaluator = side("--connect", "evaluator", "bob.key", "alice.pub", 1);
    bench.run_both(&garbler, &evaluator)
}

#[test]
fn a_programs_literals_go_in_and_out_and_both_must_have_the_same_program() {
    let bench = Bench::with_keys();
    bench.write("a.garble.rs", OFFER);
    bench.write("b.garble.rs", OFFER.replace('\n', "\r\n"));
    bench.write("c.garble.rs", OFFER.replace("price *", "price  *"));
    let basic = "Offer { price: 30, plan: Plan::Basic }";
    let (g, e) = both(&bench, ["a.garble.rs", "b.garble.rs"], [basic, "-5"], &[]);
    assert_eq!((g.success().trim(), e.success().trim()), ("-35", "-35"));
    let paid = "Offer { plan: Plan::Paid(3), price: 30 }";
    let (g, e) = both(&bench, ["a.garble.rs"; 2], [paid, "100"], &["--function", "fits"]);
    assert_eq!((g.success().trim(), e.success().trim()), ("true", "true"));
    let huge = "Offer { price: 2000000000, plan: Plan::Paid(2) }";
    let (g, e) = both(&bench, ["a.garble.rs"; 2], [huge, "0"], &["--security", "semi-honest"]);
    for said in [g, e] {
        assert_eq!(said.success().trim(), "fault: overflow");
        assert!(said.err.contains("note: overflow"), "{said:?}");
    }
    let (g, e) = both(&bench, ["a.garble.rs", "c.garble.rs"], [basic, "-5"], &[]);
    for said in [g, e] {
        said.fails_with(4, &["program", "--constant or --garbler-inputs do"]);
    }
}

#[test]
fn columns_are_literals_or_a_structs_fields_and_a_sum_or_a_count_shows_nothing_else() {
    let bench = Bench::with_keys();
    bench.write("a.garble.rs", OFFER);
    bench.write("offers.csv", "id,price,plan\n1,30,Basic\n2,10,Plan::Paid(12)\n3,7,Paid(1)\n");
    bench.write("limits.csv", "limit\n25\n121\n7\n");
    let address = format!("127.0.0.1:{}", free_port());
    let garbler = ["eval", "a.garble.rs", "--batch", "--role", "garbler", "--listen", &address];
    let evaluator = ["eval", "a.garble.rs", "--batch", "--role", "evaluator", "--connect", &address];
    let ours =
        ["--identity", "alice.key", "--peer", "bob.pub", "--input", "offers.csv", "--columns", "price,plan"];
    let theirs = ["--identity", "bob.key", "--peer", "alice.pub", "--input", "limits.csv"];
    let run = |more: &[&str], output: &[&str]| {
        let ours = [&garbler[..], &ours, more, output].concat();
        bench.run_both(&ours, &[&evaluator[..], &theirs, more].concat())
    };
    let (g, e) = run(&["--security", "semi-honest"], &["--output", "out.csv"]);
    g.success();
    assert_eq!(e.success(), "-5\n1\n0\n");
    let expected = "id,price,plan,result\n1,30,Basic,-5\n2,10,Plan::Paid(12),1\n3,7,Paid(1),0\n";
    assert_eq!(bench.read("out.csv"), expected);
    for (aggregate, function, expected) in [("sum", "main", "-4 0\n"), ("count", "fits", "1 0\n")] {
        let (g, e) = run(&["--aggregate", aggregate, "--function", function], &[]);
        assert_eq!((g.success(), e.success()), (expected, expected), "{aggregate}");
    }
    bench.write("offers.csv", "id,price,plan\n1,30,Basic\n2,10,Free\n3,7,Paid(1)\n");
    let wrong = [&garbler[..], &ours].concat();
    bench.run(&wrong).fails_with(3, &["line 3", "offer.plan", "Plan::Basic, Plan::Paid"]);
}

#[test]
fn faults_of_a_program_name_the_file_and_the_line() {
    let bench = Bench::with_keys();
    bench.write("bad.garble.rs", "pub fn main(x: u8, y: u8) -> u8 {\n    x + z\n}\n");
    bench.run(&["circuit", "stats", "bad.garble.rs"]).fails_with(3, &["bad.garble.rs, line 2: ", "z"]);
    bench.write("good.garble.rs", "const N: u8 = A::N;\npub fn main(x: u8, y: u8) -> u8 { x ^ y ^ N }\n");
    bench.run(&["circuit", "stats", "good.garble.rs"]).fails_with(3, &["line 1", "--constant A::N=VALUE"]);
    bench.run(&["circuit", "stats", "good.garble.rs", "--constant", "A::N=256"]).fails_with(3, &["0 to 255"]);
    bench.run(&["circuit", "stats", "add8", "--function", "f"]).fails_with(2, &["--function"]);
    let said = bench.run(&["--json", "eval", "good.garble.rs", "--constant", "A::N=5", "--dry-run"]);
    let said: Value = serde_json::from_str(said.success()).unwrap();
    assert_eq!(
        (said["and"].as_u64(), &said["inputs"], &said["outputs"]),
        (Some(0), &[8, 8].into(), &[8].into())
    );
    assert!(said["source_digest"].as_str().is_some_and(|digest| digest.len() == 64));
}

/// A table in a circuit's place is called none, and nothing of it is shown: its first line may be a person's.
#[test]
fn what_is_no_circuit_and_no_value_is_told_of_without_what_it_holds() {
    let bench = Bench::new();
    let stats = |name: &str, content: &str, words: &[&str]| {
        bench.write(name, content);
        let said = bench.run(&["circuit", "stats", name]);
        said.fails_with(3, &[&[name], words].concat());
        for secret in ["ann", "ANN", "4711", "const"] {
            assert!(!said.err.contains(secret), "{said:?}");
        }
    };
    let begins = &["line 1: not a circuit in a Bristol format"][..];
    stats("people.csv", "ann@x.example,Ann,4711\n", begins);
    stats("words.txt", "ann 4711\nann\n", begins);
    stats("late.txt", "1 3\n2 1 1\n1 1\n\n2 1 0 1 2 ann4711\n", &["line 5: unknown gate"]);
    stats("later.txt", "1 3\n2 1 1\n1 ann\n\n2 1 0 1 2 AND\n", &["a Bristol format"; 0]);
    stats("prog.rs", "const N: u8 = 1u8;\n", &[begins[0], "let its name end in .garble.rs"]);
    bench.write("gap.garble.rs", "pub fn main(x: u8, y: u8) -> u8 { x ^ y }\n");
    bench
        .run(&["circuit", "stats", "gap.garble.rs", "--function", "nope"])
        .fails_with(3, &["gap.garble.rs: there is no function nope"]);
    bench.run(&["circuit", "stats", "nofunc"]).fails_with(2, &["no function of that name and size"]);
    bench.run(&["circuit", "export", "add8", "--output", "add8.txt"]).success();
    bench
        .run(&["circuit", "stats", "add8.txt", "--garbler-inputs", "3"])
        .fails_with(2, &["add8.txt has 2 inputs; give no more than that"]);
    let eval = |input: &str, words: &[&str]| {
        let address = format!("127.0.0.1:{}", free_port());
        let eval = ["eval", "millionaires2", "--insecure-plaintext", "--connect", &address];
        bench.run(&[&eval[..], &["--role", "garbler", "--input", input]].concat()).fails_with(3, words);
    };
    eval("4", &["--input: ", ": the value does not fit 2 bits"]);
    eval("@nofile", &["nofile: no such file; check the path"]);
}

#[test]
fn an_exported_circuit_is_the_function_again_and_a_small_one_is_drawn() {
    let bench = Bench::with_keys();
    bench.write("a.garble.rs", OFFER);
    let stats = |args: &[&str]| -> Value {
        let said = bench.run(&[&["--json", "circuit", "stats"], args].concat());
        serde_json::from_str(said.success()).unwrap()
    };
    for (function, format) in [("a.garble.rs", "fashion"), ("mul16", "fashion"), ("mul16", "old")] {
        bench.run(&["circuit", "export", function, "--format", format, "--output", "c.txt"]).success();
        let (ours, again) = (stats(&[function]), stats(&["c.txt"]));
        for what in ["and", "and_depth", "inputs"] {
            assert_eq!(ours[what], again[what], "{function} {format} {what}");
        }
        std::fs::remove_file(bench.path("c.txt")).unwrap();
    }
    let (g, e) = {
        bench.run(&["circuit", "export", "millionaires8", "--output", "rich.txt"]).success();
        both(&bench, ["rich.txt"; 2], ["9", "8"], &["--security", "semi-honest"])
    };
    assert_eq!((g.success().trim(), e.success().trim()), ("0x1", "0x1"));
    bench.run(&["circuit", "draw", "millionaires4", "--output", "rich.svg"]).success();
    assert!(bench.read("rich.svg").starts_with("<svg ") && bench.read("rich.svg").contains(">AND</text>"));
    bench.run(&["circuit", "draw", "mul32"]).fails_with(2, &["gates", "300"]);
    bench.write("one.garble.rs", "pub fn main(x: u8, y: u8, z: u8) -> u8 { x ^ y ^ z }\n");
    bench
        .run(&["circuit", "export", "one.garble.rs", "--format", "old"])
        .fails_with(2, &["--format fashion"]);
}
