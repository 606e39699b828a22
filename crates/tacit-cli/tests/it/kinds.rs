//! Tables of every kind and encoding through every subcommand that reads one: the options are the same, and so is
//! what is found.

use crate::common::town::{BUDGETS, MATCH, Service, Town};
use crate::common::{Bench, Said, free_port};
use serde_json::Value;

fn json(said: &Said) -> Value {
    serde_json::from_str(said.success().trim()).unwrap()
}

/// Both sides of `words` with --json; `own` is what each says besides.
fn both(bench: &Bench, words: &[&str], own: [&[&str]; 2]) -> [Value; 2] {
    let address = format!("127.0.0.1:{}", free_port());
    let alice = ["--listen", &address, "--identity", "alice.key", "--peer", "bob.pub"];
    let bob = ["--connect", &address, "--identity", "bob.key", "--peer", "alice.pub"];
    let [alice, bob] =
        [(own[0], alice), (own[1], bob)].map(|(own, peer)| [&["--json"], words, own, &peer].concat());
    let (one, other) = bench.run_both(&alice, &bob);
    [json(&one), json(&other)]
}

/// Excel's export of a table: a title, semicolons, windows-1252, decimal commas.
const EXCEL: &[u8] =
    b"Export 2026\r\nName;Ort;Betrag\r\nZo\xeb;K\xf6ln;12,50\r\nJos\xe9;Bonn;7\r\nAnn;Ulm;0,25\r\n";
const AS_EXCEL: [&str; 4] = ["--encoding", "windows-1252", "--skip-lines", "1"];

#[test]
fn check_and_psi_read_other_encodings_and_say_which_it_is() {
    let bench = Bench::with_keys();
    bench.write("excel.csv", EXCEL);
    bench.write("ours.csv", "name,city\nzoë,Oslo\nANN,Rome\n");
    let plain = ["check", "--input", "excel.csv", "--key", "Name"];
    bench
        .run(&[&plain[..], &["--skip-lines", "1"]].concat())
        .fails_with(3, &["excel.csv", "line 3", "column 1", "not valid UTF-8", "--encoding windows-1252"]);
    let found = json(&bench.run(&[&["--json"], &plain[..], &AS_EXCEL].concat()));
    assert_eq!((&found["rows"], &found["keys"]), (&3.into(), &3.into()), "{found}");
    bench
        .run(&[&plain[..], &["--encoding", "klingon"]].concat())
        .fails_with(2, &["--encoding", "windows-1252"]);
    let other = ["--encoding", "shift_jis", "--skip-lines", "1"];
    bench.run(&[&plain[..], &other].concat()).fails_with(3, &["excel.csv", "line 3, column 1", "shift_jis"]);
    let theirs = ["--input", "excel.csv", "--key", "Name", "--output", "both.csv", "--result", "me"];
    let ours = ["--input", "ours.csv", "--key", "name", "--result", "peer"];
    let [_, found] = both(&bench, &["psi"], [&ours, &[&theirs[..], &AS_EXCEL].concat()]);
    assert_eq!(found["matches"], 2, "{found}");
    assert_eq!(bench.read("both.csv"), "Name;Ort;Betrag\r\nZoë;Köln;12,50\r\nAnn;Ulm;0,25\r\n");
}

#[test]
fn sums_take_amounts_with_their_fraction_and_a_decimal_comma() {
    let bench = Bench::with_keys();
    bench.write("excel.csv", EXCEL);
    bench.write("ours.csv", "name\nzoë\nann\nbob\n");
    let sum = ["psi", "--security", "semi-honest", "--reveal", "sum:Betrag:decimal2"];
    let ours = ["--input", "ours.csv", "--key", "name", "--result", "me"];
    let gives = ["--input", "excel.csv", "--key", "Name", "--give", "Betrag:decimal2", "--result", "peer"];
    let comma = [&gives[..], &AS_EXCEL, &["--decimal-comma"]].concat();
    let [found, _] = both(&bench, &sum, [&ours, &comma]);
    assert_eq!(found["sum"], 1275, "{found}");
    // Without it the comma is no part of a number; nobody is called.
    let address = format!("127.0.0.1:{}", free_port());
    let peer =
        ["--listen", &address, "--identity", "alice.key", "--peer", "bob.pub", "--connect-timeout", "2"];
    bench
        .run(&[&sum[..], &gives, &AS_EXCEL, &peer].concat())
        .fails_with(3, &["excel.csv", "line 3", "`Betrag`", "decimal with at most 2 digits"]);
    // Of a file with types likewise, and of JSON lines.
    bench.write(
        "lines.jsonl",
        "{\"k\": \"Zoë\", \"net\": 12.50}\n{\"k\": \"ann\", \"net\": 1}\n{\"k\": \"x\", \"net\": null}\n",
    );
    let sum = ["psi", "--security", "semi-honest", "--reveal", "mean:net:decimal2"];
    let gives = ["--input", "lines.jsonl", "--key", "k", "--give", "net:decimal2", "--result", "peer"];
    let [found, _] = both(&bench, &sum, [&ours, &gives]);
    assert_eq!((&found["sum"], &found["rows"]), (&1350.into(), &2.into()), "{found}");
}

#[test]
fn tags_read_what_a_database_exports() {
    let bench = Bench::with_keys();
    // SELECT … INTO OUTFILE, without words besides.
    bench.write("large.txt", "1\tann@example.com\tx\\\ty\n2\t\\N\tz\n3\tbob@example.com\t\\N\n");
    bench.write(
        "small.json",
        "{\"mail\": \"ANN@example.com\", \"plans\": [1, 2]}\n{\"mail\": \"cleo@example.com\"}\n",
    );
    let mysql = ["--delimiter", "tab", "--quote", "none", "--escape", "\\", "--no-header"];
    let publish = ["--json", "tags", "publish", "--input", "large.txt", "--key", "2"];
    let files = ["--out", "l.tags", "--private", "l.oprf", "--identity", "alice.key"];
    let made = json(&bench.run(&[&publish[..], &mysql, &files].concat()));
    assert_eq!(made["keys"], 2, "{made}");
    let address = format!("127.0.0.1:{}", free_port());
    let serve = ["--json", "tags", "serve", "--listen", &address, "--private", "l.oprf"];
    let query = ["--json", "tags", "query", "--connect", &address, "--tags", "l.tags", "--key", "mail"];
    let (served, queried) = bench.run_both(
        &[&serve[..], &["--identity", "alice.key", "--peer", "bob.pub"]].concat(),
        &[
            &query[..],
            &["--input", "small.json", "--output", "q.csv", "--identity", "bob.key", "--peer", "alice.pub"],
        ]
        .concat(),
    );
    served.success();
    assert_eq!(json(&queried)["matches"], 1);
    assert_eq!(bench.read("q.csv"), "mail,plans\nANN@example.com,\"[1, 2]\"\n");
}

#[test]
fn batches_read_packed_tables_in_other_encodings() {
    let bench = Bench::with_keys();
    // As zip packs it.
    bench.write("a.zip", include_bytes!("../../../tacit-data/tests/it/files/deflated.zip"));
    let utf16: Vec<u8> =
        "Größen\r\nn;m\r\n1;2,5\r\n3;4\r\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    bench.write("b.csv", utf16);
    let eval = ["eval", "add8", "--batch", "--security", "semi-honest"];
    let one = ["--role", "garbler", "--input", "a.zip", "--columns", "n"];
    let written = ["--encoding", "utf-16le", "--skip-lines", "1", "--decimal-comma"];
    let other = ["--role", "evaluator", "--input", "b.csv", "--columns", "m:decimal1", "--output", "o.csv"];
    let other = [&other[..], &["--format", "decimal"], &written].concat();
    let [found, _] = both(&bench, &eval, [&one, &other]);
    assert_eq!(found["decimals"], serde_json::json!([["26"], ["42"]]), "{found}");
    assert_eq!(bench.read("o.csv"), "n;m;result\r\n1;2,5;26\r\n3;4;42\r\n");
    let alone = [
        "eval",
        "add8",
        "--role",
        "garbler",
        "--input",
        "1",
        "--encoding",
        "cp1252",
        "--listen",
        "127.0.0.1:9",
    ];
    let keys = ["--identity", "alice.key", "--peer", "bob.pub"];
    bench.run(&[&alone[..], &keys].concat()).fails_with(2, &["--batch"]);
}

#[test]
fn a_policy_and_a_request_say_how_their_tables_are_written() {
    let town = Town::new();
    let rows: String = (0..40).map(|n| format!("us\u{e9}r{n}|{n},5|\n")).collect();
    let latin: Vec<u8> =
        format!("made by hand\nemail|amount|note\n{rows}").chars().map(|c| c as u8).collect();
    town.bench.write("customers.csv", &latin);
    let written = "encoding = \"iso-8859-15\"\nskip_lines = 1\ndelimiter = \"|\"\ndecimal_comma = true\n";
    let sums = "[jobs.sums]\nsource = \"customers\"\nallow = [\"bob\"]\nreveal = [\"sum:amount:decimal1\"]\n\
        result = [\"peer\"]\ngive = [\"amount:decimal1\"]\nsecurity = \"semi-honest\"\nmax_peer_keys = 1000\nruns_a_day = 50\n";
    town.policy("", &format!("{BUDGETS}{written}"), &format!("{MATCH}{sums}"));
    let check = town.bench.run(&["serve", "--policy", "policy.toml", "--check"]);
    assert!(check.success().contains("has 40 distinct keys in 40 rows today"), "{check:?}");
    let lines: String =
        (20..50).map(|n| format!("{{\"mail\": \"USÉR{n}\", \"deep\": {{\"n\": {n}}}}}\n")).collect();
    town.bench.write("kunden.csv", lines);
    let service = Service::start(&town.bench);
    let found = town.granted("bob", "match", &["--output", "both.csv"]);
    assert_eq!(found["matches"], 20, "{found}");
    assert!(town.bench.read("both.csv").starts_with("mail,deep\nUSÉR20,\"{\"\"n\"\": 20}\"\n"));
    let sum = town.granted("bob", "sums", &["--security", "semi-honest", "--reveal", "sum:amount:decimal1"]);
    // 20.5 + … + 39.5, in tenths.
    assert_eq!(sum["sum"], 6000, "{sum}");
    service.end();
    town.policy("", &format!("{BUDGETS}encoding = \"klingon\"\nquote = \"two\"\n"), MATCH);
    let check = town.bench.run(&["serve", "--policy", "policy.toml", "--check"]);
    assert_eq!(check.code, 3, "{check:?}");
    let said = format!("{}{}", check.out, check.err);
    assert!(said.contains("`encoding`: there is no `klingon`") && said.contains("`quote`"), "{said}");
}

#[test]
fn decimal_keys_match_however_they_are_written() {
    let bench = Bench::with_keys();
    bench.write("a.csv", "price,n\n1.50,1\n1e3,2\n-0,3\n\"1,5\",4\n");
    bench.write("b.csv", "preis;n\n1,5;1\n01000;2\n0,00;3\n7;4\n");
    let ours = ["--input", "a.csv", "--key", "price:decimal", "--result", "me"];
    let theirs = ["--input", "b.csv", "--key", "preis:decimal:comma", "--result", "peer"];
    let [found, _] = both(&bench, &["psi"], [&ours, &theirs]);
    assert_eq!((&found["matches"], &found["rows_without_key"]), (&3.into(), &1.into()), "{found}");
    assert_eq!(found["key"], "decimal");
}

/// A file whose keys do not fit in memory ends in one line, where the system gives no more.
/// One arena: each takes of what there is for addresses, and how many there are depends on what else the machine does.
#[cfg(target_os = "linux")]
#[test]
fn keys_beyond_memory_end_in_one_line() {
    let bench = Bench::new();
    let rows: String =
        std::iter::once("k\n".to_owned()).chain((0..6_000_000u32).map(|n| format!("{n:x}\n"))).collect();
    bench.write("t.csv", rows);
    let limited = format!(
        "ulimit -v 250000; export MALLOC_ARENA_MAX=1; exec '{}' check --input t.csv --key k --no-case-fold --no-nfc",
        env!("CARGO_BIN_EXE_tacit")
    );
    let output =
        std::process::Command::new("sh").args(["-c", &limited]).current_dir(bench.dir.path()).output();
    let output = output.unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    let line = said.lines().find(|line| line.starts_with("error: ")).unwrap();
    assert!(line.contains("t.csv") && line.contains("do not fit into this machine's memory"), "{said}");
}
