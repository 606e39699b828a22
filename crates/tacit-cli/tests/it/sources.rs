//! Tables out of workbooks, folders and several files, through every subcommand that takes one.

use crate::common::town::{BUDGETS, MATCH, Service, Town, table};
use crate::common::{Bench, Said, free_port};
use serde_json::Value;

fn json(said: &Said) -> Value {
    serde_json::from_str(said.success().trim()).unwrap()
}

/// Both sides of `tacit psi`.
fn both(bench: &Bench, alice: &[&str], bob: &[&str]) -> (Said, Said) {
    let address = format!("127.0.0.1:{}", free_port());
    let ours = ["--json", "psi", "--listen", &address, "--identity", "alice.key", "--peer", "bob.pub"];
    let theirs = ["--json", "psi", "--connect", &address, "--identity", "bob.key", "--peer", "alice.pub"];
    bench.run_both(&[&ours[..], alice].concat(), &[&theirs[..], bob].concat())
}

/// A folder of two files with the keys a, b, c and A, and the same rows as a workbook.
fn prepared() -> Bench {
    let bench = Bench::with_keys();
    std::fs::create_dir(bench.path("parts")).unwrap();
    bench.write("parts/1.csv", "mail,n\na@x.org,1\nb@x.org,2\n");
    bench.write("parts/2.csv", "n;mail\n3;c@x.org\n4;A@x.org\n");
    let folder = ["--input", "parts", "--key", "mail:email", "--output", "book.xlsx"];
    let list =
        ["--input", "parts/1.csv", "--input", "parts/2.csv", "--key", "mail:email", "--result", "peer"];
    let (a, b) = both(&bench, &folder, &list);
    b.success();
    let found = json(&a);
    assert_eq!(
        (&found["own_rows"], &found["own_keys"], &found["duplicates"]),
        (&4.into(), &3.into(), &1.into())
    );
    assert_eq!((&found["matches"], &found["output_rows"]), (&3.into(), &4.into()), "{found}");
    bench
}

/// What a run writes is no part of what the next one reads.
#[test]
fn an_output_goes_to_no_folder_and_no_pattern_of_the_input() {
    let bench = Bench::with_keys();
    std::fs::create_dir(bench.path("parts")).unwrap();
    bench.write("parts/1.csv", "mail\na@x.org\n");
    bench.write("one.csv", "mail\na@x.org\n");
    let address = format!("127.0.0.1:{}", free_port());
    let psi = |input: &str, output: &str| {
        let peer = ["psi", "--connect", &address, "--identity", "alice.key", "--peer", "bob.pub"];
        let files = ["--input", input, "--key", "mail", "--output", output, "--connect-timeout", "1"];
        bench.run(&[&peer[..], &files].concat())
    };
    for (input, output) in [
        ("parts", "parts/matches.parquet"),
        ("./parts/", "parts/../parts/out.csv"),
        ("parts/*.csv", "parts/out.csv"),
        ("*.csv", "out.csv"),
    ] {
        psi(input, output).fails_with(3, &[output, "the directory or pattern of --input"]);
    }
    // What the next run would not read.
    for (input, output) in
        [("parts", "parts/_out.csv"), ("parts", "out.csv"), ("parts/*.csv", "parts/out.arrow")]
    {
        psi(input, output).fails_with(4, &["cannot connect"]);
    }
}

#[test]
fn a_file_given_twice_and_a_table_without_rows_are_told_of() {
    let bench = Bench::with_keys();
    std::fs::create_dir(bench.path("parts")).unwrap();
    bench.write("parts/1.csv", "mail\na@x.org\n");
    bench.write("parts/2.csv", "mail\nb@x.org\n");
    let check = |inputs: &[&str]| {
        let inputs = inputs.iter().flat_map(|input| ["--input", input]);
        bench.run(&["check", "--key", "mail"].into_iter().chain(inputs).collect::<Vec<_>>())
    };
    check(&["parts"]).success();
    let twice = &["is the same file as", "name it once"];
    check(&["parts", "parts/1.csv"]).fails_with(2, twice);
    check(&["parts/1.csv", "parts/2.csv", "./parts/1.csv"]).fails_with(2, twice);
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("1.csv", bench.path("parts/latest.csv")).unwrap();
        check(&["parts"]).fails_with(2, twice);
    }
    bench.write("empty.csv", "mail,n\n");
    let words = ["--input", "empty.csv", "--key", "mail"];
    let (a, b) = both(&bench, &words, &["--input", "parts/1.csv", "--key", "mail", "--result", "peer"]);
    assert!(a.success().contains("your table has no rows"), "{a:?}");
    assert!(!b.success().contains("no rows"), "{b:?}");
    assert!(check(&["empty.csv"]).success().contains("note: your table has no rows"));
}

#[test]
fn a_folder_and_a_workbook_are_the_same_table_for_psi_check_and_tags() {
    let bench = prepared();
    for input in ["parts", "parts/*.csv", "book.xlsx", "book.xlsx#Sheet1!A1:B5"] {
        let said = bench.run(&["--json", "check", "--input", input, "--key", "mail:email"]);
        let found = json(&said);
        assert_eq!((&found["rows"], &found["keys"]), (&4.into(), &3.into()), "{input}: {found}");
    }
    let said = bench.run(&["check", "--input", "book.xlsx#A1:B3", "--key", "mail", "--against", "parts"]);
    assert!(said.success().contains("2 matches"), "{said:?}");
    // The workbook's rows, as CSV: what the folder has.
    let columns =
        ["--input", "book.xlsx", "--key", "mail:email", "--output", "o.csv", "--output-all", "all.csv"];
    let (a, b) =
        both(&bench, &columns, &["--input", "parts/1.csv", "--key", "mail:email", "--result", "peer"]);
    b.success();
    assert_eq!(json(&a)["matches"], 2);
    assert_eq!(bench.read("o.csv"), "mail,n\na@x.org,1\nb@x.org,2\nA@x.org,4\n");
    assert!(bench.read("all.csv").contains("c@x.org,3,false\n"));
    // In buckets the file is read twice as well.
    let memory = ["--memory", "1GiB", "--overwrite"];
    let (a, b) = both(
        &bench,
        &[&columns[..], &memory].concat(),
        &[&["--input", "parts", "--key", "mail:email", "--result", "peer"][..], &memory].concat(),
    );
    b.success();
    assert_eq!(json(&a)["output_rows"], 4);
    let publish = ["tags", "publish", "--input", "parts", "--key", "mail:email", "--identity", "alice.key"];
    bench.run(&[&publish[..], &["--out", "a.tags", "--private", "a.oprf"]].concat()).success();
    let address = format!("127.0.0.1:{}", free_port());
    let serve = ["tags", "serve", "--listen", &address, "--identity", "alice.key", "--peer", "bob.pub"];
    let query =
        ["--json", "tags", "query", "--connect", &address, "--identity", "bob.key", "--peer", "alice.pub"];
    let mine = ["--tags", "a.tags", "--input", "book.xlsx", "--key", "mail:email", "--output", "tags.xlsx"];
    let (served, queried) =
        bench.run_both(&[&serve[..], &["--private", "a.oprf"]].concat(), &[&query[..], &mine].concat());
    served.success();
    assert_eq!(json(&queried)["output_rows"], 4);
    let said = bench.run(&["--json", "check", "--input", "tags.xlsx", "--key", "n:int"]);
    assert_eq!(json(&said)["keys"], 4);
}

#[test]
fn a_service_and_its_clients_take_folders_and_workbooks() {
    let town = Town::new();
    std::fs::create_dir(town.bench.path("parts")).unwrap();
    town.bench.write("parts/1.csv", table("mail", 20..35));
    town.bench.write("parts/2.csv", table("mail", 35..50));
    town.policy("", BUDGETS, MATCH);
    let service = Service::start(&town.bench);
    let rows = town.granted("bob", "match", &["--input", "parts", "--output", "both.xlsx"]);
    assert_eq!((&rows["own_rows"], &rows["matches"]), (&30.into(), &20.into()));
    let rows = town.granted("bob", "match", &["--input", "both.xlsx", "--output", "both.csv"]);
    assert_eq!((&rows["own_rows"], &rows["matches"]), (&20.into(), &20.into()));
    assert_eq!(town.bench.read("both.csv"), table("mail", 20..40));
    // What the record commits to is found again.
    let run = rows["run"].as_str().unwrap();
    town.verify("bob.records", &["--key", "bob.pub", "--run", run, "--input", "both.xlsx"]);
    service.end();
    // The service's own table is a folder.
    let text =
        town.bench.read("policy.toml").replace("customers.csv", "parts").replace("\"email\"", "\"mail\"");
    // A cell of a workbook holds no more than 32,767 characters, so the client takes no more.
    let text = text.replace("give = [\"amount\"]", "give = [\"amount\"]\nmax_cell = 16384");
    town.bench.write("policy.toml", text);
    let service = Service::start(&town.bench);
    let rows = town.granted("bob", "match", &["--reveal", "payload:amount", "--output", "more.xlsx"]);
    assert_eq!(rows["matches"], 30);
    service.end();
}

#[test]
fn a_batch_is_computed_on_a_folder_and_a_workbook() {
    let bench = prepared();
    bench.write("f.garble.rs", "pub fn main(n: i32, m: i32) -> i32 { n * 10i32 + m }");
    bench.write("m.csv", "m\n1\n2\n3\n4\n");
    let ours = ["--input", "m.csv", "--key", "m", "--output", "m.xlsx"];
    let (a, b) = both(&bench, &ours, &["--input", "m.csv", "--key", "m", "--result", "peer"]);
    a.success();
    b.success();
    let address = format!("127.0.0.1:{}", free_port());
    let side = |mode, role, key, peer| {
        ["eval", "f.garble.rs", "--batch", mode, &address, "--role", role, "--identity", key, "--peer", peer]
    };
    let alice = side("--listen", "garbler", "alice.key", "bob.pub");
    let bob = side("--connect", "evaluator", "bob.key", "alice.pub");
    let (a, b) = bench.run_both(
        &[&alice[..], &["--input", "parts", "--columns", "n", "--output", "left.csv"]].concat(),
        &[&bob[..], &["--input", "m.xlsx", "--columns", "m", "--output", "right.xlsx"]].concat(),
    );
    a.success();
    b.success();
    let results: Vec<String> = bench
        .read("left.csv")
        .lines()
        .map(|line| line.split(',').nth(2).unwrap_or_default().to_owned())
        .collect();
    assert_eq!(results[1..], ["11", "22", "33", "44"]);
    let said = bench.run(&["--json", "check", "--input", "right.xlsx", "--key", "m:int"]);
    assert_eq!(json(&said)["keys"], 4);
    // A cell that is no number is named by its file and its line there.
    bench.write("parts/2.csv", "n;mail\n3;c@x.org\nx;A@x.org\n");
    let said =
        bench.run(&[&alice[..], &["--input", "parts", "--columns", "n", "--connect-timeout", "1"]].concat());
    said.fails_with(3, &["2.csv", "line 3"]);
}

#[test]
fn cells_that_hold_errors_and_several_inputs_are_said_in_words() {
    let bench = prepared();
    let said = bench.run(&["check", "--input", "parts/1.csv", "--input", "parts/2.csv", "--key", "mail"]);
    assert!(said.success().contains("1.csv and 1 more: 4 rows"), "{said:?}");
    bench.write("parts/3.csv", "mail,m\nz@x.org,1\n");
    let said = bench.run(&["check", "--input", "parts", "--key", "mail"]);
    said.fails_with(3, &["3.csv: column 2 of", "1.csv is missing there"]);
    let said = bench.run(&["check", "--input", "adbc:none?password=hunter2#select 1", "--key", "mail"]);
    let code = if said.err.contains("this build") { 2 } else { 3 };
    said.fails_with(code, &["adbc:none"]);
    assert!(!said.err.contains("hunter2"), "{said:?}");
}
