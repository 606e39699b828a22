//! The first minutes with the command: alone, `check FILE`, `init`, and `-h`.

use crate::common::{Bench, Said, free_port, wait};
use serde_json::Value;
use std::io::Write;
use std::process::Stdio;

const TABLE: &str = "name,mail,tel,born,score\n\
                     Ann,ann@x.org,0612345678,1980-01-31,1.5\n\
                     Bob,bob@x.org,,1981-02-28,2\n\
                     Cas,NULL,0687654321,1982-03-31,3\n";

/// The command with these lines as its input.
fn answered(bench: &Bench, args: &[&str], lines: &str) -> Said {
    let mut child = bench.command(args).stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    wait(child)
}

#[test]
fn the_command_alone_says_where_to_start() {
    let bench = Bench::new();
    let said = bench.run(&[]);
    for words in ["tacit demo", "tacit check customers.csv", "tacit init", "tacit -h", "docs/start.md"] {
        assert!(said.success().contains(words), "{words}: {said:?}");
    }
    assert!(said.err.is_empty() && said.out.lines().all(|line| line.len() <= 110), "{said:?}");
}

/// The whole of it is tested where it is made; here that `-h`, `--help` and `help` are what they should be.
#[test]
fn short_help_fits_on_a_screen_and_long_help_has_every_option() {
    let bench = Bench::new();
    for name in ["psi", "eval", "request", "ot", "vole", "check", "serve", "tags"] {
        let short = bench.run(&[name, "-h"]);
        assert!(short.success().lines().count() <= 60, "{name}: {}", short.out);
        assert!(!short.out.contains("--quiet"), "{}", short.out);
    }
    let short = bench.run(&["psi", "-h"]);
    let headings = ["Required:", "Result:", "Protection:", "Table:", "Network:", "Less often:"];
    let places = headings.map(|heading| short.out.find(heading).unwrap_or_else(|| panic!("{heading}")));
    assert!(places.is_sorted(), "{}", short.out);
    let long = bench.run(&["psi", "--help"]);
    assert_eq!(long.success(), bench.run(&["help", "psi"]).success());
    assert!(
        long.out.contains("--seal-key <FILE>") && long.out.contains("For every command:"),
        "{}",
        long.out
    );
    assert!(bench.run(&["-h"]).success().lines().count() <= 60);
}

#[test]
fn a_table_without_a_key_is_shown_by_its_columns() {
    let bench = Bench::new();
    bench.write("customers.csv", TABLE);
    let said = bench.run(&["check", "customers.csv"]);
    for words in [
        "customers.csv: 3 rows, 5 columns",
        "Xxx",
        "xxx@x.xxx",
        "phone:REGION",
        "9999-99-99",
        "33.3 %",
        "--null 'NULL'",
        "tacit check --input customers.csv --key mail:email",
        "tacit psi --connect HOST:7700 --identity tacit.key --peer peer.pub",
    ] {
        assert!(said.success().contains(words), "{words}: {}", said.out);
    }
    // Nothing of what cells say.
    for cell in ["Ann", "ann@", "0612", "1980"] {
        assert!(!said.out.contains(cell), "{cell}: {}", said.out);
    }
    let object: Value =
        serde_json::from_str(bench.run(&["--json", "check", "customers.csv"]).success()).unwrap();
    let columns = object["columns"].as_array().unwrap();
    let types: Vec<&str> = columns.iter().map(|column| column["type"].as_str().unwrap()).collect();
    assert_eq!(types, ["text", "email", "phone:REGION", "date", "decimal"]);
    assert_eq!((&object["suggested_key"], &columns[2]["empty"]), (&"mail:email".into(), &1.into()));
    // With a key the file may stand alone as well.
    let keys = bench.run(&["check", "customers.csv", "--key", "mail:email", "--null", "NULL"]);
    assert!(keys.success().contains("3 rows, 2 distinct keys (email), 0 duplicates, 1 row"), "{keys:?}");
    bench.run(&["check"]).fails_with(2, &["<FILE>"]);
    bench.run(&["check", "missing.csv"]).fails_with(3, &["missing.csv"]);
    bench.run(&["check", "customers.csv", "--against", "customers.csv"]).fails_with(2, &["--key"]);
    let two = ["--key", "name,mail", "--against", "customers.csv", "--against-key", "mail"];
    let said = bench.run(&[&["check", "customers.csv"], &two[..]].concat());
    said.fails_with(2, &["--against-key", "2 columns", "1 column"]);
    // A long name is cut; options hold for the next commands too.
    let long = "x".repeat(500);
    bench.write("odd.csv", format!("a;b;{long}\n;;3\n"));
    let said = bench.run(&["check", "odd.csv", "--delimiter", ";"]);
    assert!(said.success().contains(&format!("--key {long}:int")), "{said:?}");
    let both = said.out.matches(" --delimiter ';'").count();
    assert!(both == 2 && said.out.contains("xxx…  "), "{said:?}");
}

/// An export of a spreadsheet in Windows' encoding is read as what it seems to be, by `check` and by `init`.
#[test]
fn a_table_in_another_encoding_is_read_by_a_guess_that_is_called_one() {
    let bench = Bench::with_keys();
    bench.write("latin.csv", b"name;mail\nZo\xeb;zoe@x.org\nJos\xe9;jose@x.org\nAnn;ann@x.org\n");
    let said = bench.run(&["check", "latin.csv"]);
    for words in [
        "latin.csv: 3 rows, 2 columns",
        "read as windows-1252, which is a guess",
        "--key mail:email --encoding windows-1252",
    ] {
        assert!(said.success().contains(words), "{words}: {}", said.out);
    }
    let object: Value = serde_json::from_str(bench.run(&["--json", "check", "latin.csv"]).success()).unwrap();
    assert_eq!(object["guessed_encoding"], "windows-1252");
    // An encoding that was named is no guess, and a pipe is read once.
    let named = bench.run(&["--json", "check", "latin.csv", "--encoding", "iso-8859-15"]);
    let object: Value = serde_json::from_str(named.success()).unwrap();
    assert_eq!(object["guessed_encoding"], Value::Null);
    let mut child = bench.command(&["check", "-"]).stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"name\nZo\xeb\nJos\xe9\n").unwrap();
    wait(child).fails_with(3, &["not valid UTF-8", "--encoding windows-1252"]);
    let lines = "latin.csv\n\nme\n\nalice.key\nbob.pub\n";
    let said = answered(&bench, &["init"], lines);
    assert!(said.success().contains("job.toml") && said.err.contains("which is a guess"), "{said:?}");
    let text = bench.read("job.toml");
    assert!(text.contains("encoding = \"windows-1252\"") && text.contains("# a guess"), "{text}");
    assert!(text.contains("key = [\"mail:email\"]"), "{text}");
    bench.run(&["psi", "--config", "job.toml", "--dry-run"]).success();
}

/// The key that a table's listing suggests, and what it says of the table.
#[test]
fn a_number_that_counts_rows_is_no_key_and_odd_headers_are_named() {
    let bench = Bench::new();
    let look = |table: &str| {
        bench.write("t.csv", table);
        let object: Value = serde_json::from_str(bench.run(&["--json", "check", "t.csv"]).success()).unwrap();
        let hints = object["hints"].as_array().unwrap().iter().map(|hint| hint.as_str().unwrap().to_owned());
        (object["suggested_key"].as_str().map(str::to_owned), hints.collect::<Vec<_>>().join("\n"))
    };
    for (table, key, hints) in [
        ("id,code\n1,AB12\n2,ZZ99\n3,KK14\n", Some("code"), &["id counts up from row to row"][..]),
        ("id,plan,last name\n7,a,Ng\n8,b,Ito\n9,c,Roy\n", Some("last name"), &["id counts up"]),
        ("nr,plan\n11,a\n13,a\n15,a\n17,b\n19,b\n", Some("plan"), &["nr counts up"]),
        ("id\n1\n2\n3\n", None, &["id counts up", "no column looks like a key"]),
        ("member,x\n82,a\n17,a\n55,a\n", Some("member:int"), &[]),
        ("Customers 2024\nid;mail\n5;a@x.org\n2;b@x.org\n", Some("mail:email"), &["seems to be a title"]),
        ("Customers 2024;;\nid;mail;x\n1;a@x.org;y\n", Some("mail:email"), &["seems to be a title"]),
        ("ann@x.org,17\nbob@x.org,18\n", None, &["may be data and not a header"]),
        (
            "id,mail,mail\n5,a@x.org,b@x.org\n3,c@x.org,d@x.org\n",
            None,
            &["several columns are called mail; rename them first"],
        ),
        ("id,mail\n", None, &["the table has no rows"]),
        ("region,2023,2024\nnorth,5,1\nsouth,3,9\n", Some("region"), &[]),
    ] {
        let (found, said) = look(table);
        assert_eq!(found.as_deref(), key, "{table}: {said}");
        assert!(hints.iter().all(|hint| said.contains(hint)), "{table}: {said}");
        assert_eq!(said.is_empty(), hints.is_empty(), "{table}: {said}");
    }
    // The next command is the one that helps, and a line of data is not shown.
    bench.write("data.csv", "ann@x.org,17\nbob@x.org,18\n");
    let said = bench.run(&["check", "data.csv"]);
    assert!(said.success().contains("tacit check --input data.csv --no-header"), "{}", said.out);
    assert!(!said.out.contains("ann@x.org") && said.out.contains("column 1  email"), "{}", said.out);
    let said = bench.run(&["check", "data.csv", "--no-header"]);
    assert!(said.success().contains("--key 1:email --no-header"), "{}", said.out);
}

/// A secret that was given in place of a table is not shown as the name of a column.
#[test]
fn a_private_key_is_no_table() {
    let bench = Bench::with_keys();
    bench.write("customers.csv", TABLE);
    let secret = bench.read("alice.key");
    let secret = secret.trim().rsplit(' ').next().unwrap().to_owned();
    bench.write("pem.key", "-----BEGIN PRIVATE KEY-----\nabc\n");
    let key = ["--key", "mail"];
    for words in
        [&["check", "alice.key"][..], &[&["check", "alice.key"], &key[..]].concat(), &["check", "pem.key"]]
    {
        let said = bench.run(words);
        said.fails_with(3, &["private key"]);
        assert!(!said.err.contains(&secret) && !said.err.contains("abc"), "{said:?}");
    }
    let said = answered(&bench, &["init"], "alice.key\ncustomers.csv\n");
    assert!(said.err.contains("this is a private key") && !said.err.contains(&secret), "{said:?}");
}

#[test]
fn six_answers_make_a_configuration_that_runs() {
    let bench = Bench::with_keys();
    bench.write("customers.csv", TABLE);
    let lines = "missing.csv\ncustomers.csv\nnosuch\nmail:email\nboth\n\nalice.key\nbob.pub\n";
    let said = answered(&bench, &["init"], lines);
    assert!(said.success().contains("tacit psi --config job.toml"), "{said:?}");
    assert!(said.err.contains("there is no column `nosuch`") && said.err.contains("6/6"), "{said:?}");
    assert!(!said.out.contains("exchange keys"), "{said:?}");
    bench.run(&["psi", "--config", "job.toml", "--dry-run"]).success();
    let text = bench.read("job.toml");
    assert!(text.contains("listen = \"0.0.0.0:7700\"") && text.contains("key = [\"mail:email\"]"), "{text}");
    // What is there stays there; silence is no answer; the key has a default.
    answered(&bench, &["init"], lines).fails_with(3, &["job.toml", "exists already"]);
    answered(&bench, &["init", "--out", "b.toml"], "customers.csv\n")
        .fails_with(2, &["question 2 of 6", "nothing was written"]);
    assert!(!bench.exists("b.toml"));
    let lines = "customers.csv\n\nme\nconnect alice.example:7700\n\n\n";
    let said = answered(&bench, &["--json", "init", "--out", "c.toml"], lines);
    let object: Value = serde_json::from_str(said.success()).unwrap();
    assert_eq!(object["keys_missing"], true, "{said:?}");
    assert!(bench.read("c.toml").contains("connect = \"alice.example:7700\""));
    // A table whose encoding shows needs no word about it, and the configuration has one.
    let wide: Vec<u8> = "mail\nann@x.org\n".encode_utf16().flat_map(|unit| unit.to_le_bytes()).collect();
    bench.write("wide.csv", wide);
    let lines = "wide.csv\n\nme\n\nalice.key\nbob.pub\n";
    answered(&bench, &["init", "--out", "w.toml"], lines).success();
    assert!(bench.read("w.toml").contains("encoding = \"utf-16le\""));
    bench.run(&["psi", "--config", "w.toml", "--dry-run"]).success();
}

#[test]
fn six_answers_make_a_policy_that_passes_its_check() {
    let bench = Bench::with_keys();
    bench.write("customers.csv", TABLE);
    for (learns, file) in [("rows", "policy.toml"), ("count", "numbers.toml")] {
        let lines =
            format!("customers.csv\n\n{learns}\nconnect a:1\nlisten 127.0.0.1:7700\nalice.key\nbob.pub\n");
        let said = answered(&bench, &["init", "--policy", "--out", file], &lines);
        assert!(said.success().contains(&format!("tacit serve --policy {file} --check")), "{said:?}");
        let budget = if learns == "rows" { "the table's rows today" } else { "one for each bit of a number" };
        assert!(bench.read(file).contains(budget), "{}", bench.read(file));
        let checked = bench.run(&["serve", "--policy", file, "--check"]);
        assert!(checked.success().contains("partner"), "{checked:?}");
    }
}

#[test]
fn answers_that_could_not_work_are_asked_again() {
    let bench = Bench::with_keys();
    bench.write("customers.csv", TABLE);
    bench.write("twice.csv", "a,a,b\n1,2,3\n");
    let lines = "twice.csv\na\nb\nme\nlisten 1.2.3.4:99999\nconnect  x y:7700\nconnect x:7700\ncustomers.csv\n\
                 alice.key\ncustomers.csv\nbob.pub\n";
    let said = answered(&bench, &["init"], lines);
    said.success();
    assert!(said.err.contains("several columns `a`"), "{said:?}");
    assert_eq!(said.err.matches("such as `listen").count(), 2, "{said:?}");
    assert!(said.err.contains("6/6") && !bench.read("job.toml").contains("customers.csv"), "{said:?}");
    // The table, or a key, is never what is written: who names it is asked again at once.
    bench.write("both.csv", TABLE);
    bench.write("old.toml", "# of before");
    for out in ["customers.csv", "old.toml"] {
        let lines = format!("{out}\nboth.csv\n\nme\nconnect x:7700\n{out}\nalice.key\nbob.pub\n");
        let words = ["--overwrite", "init", "--out", out];
        let said = answered(&bench, &words, &lines);
        said.success();
        assert_eq!(said.err.matches("name the same file").count(), 2, "{said:?}");
        assert!(bench.read(out).contains("input = \"both.csv\""));
    }
    answered(&bench, &["--overwrite", "init", "--out", "bob.pub"], "")
        .fails_with(3, &["bob.pub", "never overwritten"]);
}

/// A table of which no column can be the key, and one that is not the right one after all.
#[test]
fn another_table_can_be_named_once_the_columns_are_seen() {
    let bench = Bench::with_keys();
    bench.write("customers.csv", TABLE);
    bench.write("twice.csv", "a,a\n1,2\n");
    bench.write("wrong.csv", "kind,note\nx,y\n");
    let lines = "twice.csv\nwrong.csv\nback\ncustomers.csv\n\nme\nconnect x:7700\nalice.key\nbob.pub\n";
    let said = answered(&bench, &["init"], lines);
    said.success();
    assert!(said.err.contains("every column shares its name with another"), "{said:?}");
    assert!(said.err.contains("back for another table") && !said.err.contains("7/6"), "{said:?}");
    assert!(bench.read("job.toml").contains("input = \"customers.csv\""));
    // A column of that name is a column.
    bench.write("backs.csv", "back,side\nx,y\n");
    let lines = "backs.csv\nback\nme\nconnect x:7700\nalice.key\nbob.pub\n";
    let said = answered(&bench, &["init", "--out", "b.toml"], lines);
    said.success();
    assert!(bench.read("b.toml").contains("key = [\"back\"]") && !said.err.contains("for another table"));
}

/// What `--report` writes, by the ending of its name.
#[test]
fn a_run_leaves_a_page_for_the_file() {
    let bench = Bench::with_keys();
    bench.write("a.csv", "mail\nann@x.org\nbob@x.org\n");
    bench.write("b.csv", "mail\nbob@x.org\ncas@x.org\nbob@x.org\n");
    // One side's key file has a name, and the other's public file was exchanged for one of another key.
    bench.write("bob.pub", format!("{} Lab North\n", bench.read("bob.pub").trim()));
    bench.run(&["keygen", "--out", "eve.key", "--comment", "Bank"]).success();
    bench.write("kept.pub", bench.read("alice.pub"));
    bench.write("alice.pub", bench.read("eve.pub"));
    for (of_alice, of_bob) in [("a.html", "b.pdf"), ("a2.pdf", "b2.htm")] {
        let address = format!("127.0.0.1:{}", free_port());
        let side = |way: &str, own: &str, peer: &str, input: &str, result: &str, report: &str| {
            let words = format!(
                "psi {way} {address} --identity {own} --peer {peer} --input {input} --key mail:email --result {result} \
                 --report {report}"
            );
            words.split(' ').map(str::to_owned).collect::<Vec<_>>()
        };
        let alice = side("--listen", "alice.key", "bob.pub", "a.csv", "peer", of_alice);
        let bob = side("--connect", "bob.key", "kept.pub", "b.csv", "me", of_bob);
        let (alice, bob): (Vec<&str>, Vec<&str>) =
            (alice.iter().map(String::as_str).collect(), bob.iter().map(String::as_str).collect());
        let (a, b) = bench.run_both(&alice, &bob);
        a.success();
        b.success();
        assert!(b.err.contains(of_bob), "{b:?}");
    }
    bench.write("alice.pub", bench.read("kept.pub"));
    let fingerprint = |file: &str| bench.run(&["fingerprint", file]).success().trim().to_owned();
    let page = bench.read("b2.htm");
    for words in [
        &*fingerprint("kept.pub"),
        &*fingerprint("bob.pub"),
        "mail (email)",
        "(1 match), and that the other side has 2 distinct keys",
        "3 rows, 2 distinct keys, 1 duplicate",
        "this side only",
        "UTC",
    ] {
        assert!(page.contains(words), "{words}: {page}");
    }
    let named = "&quot;Lab North&quot; (a name in the key file, unverified), key ";
    assert!(page.matches("unverified").count() == 1 && page.contains(named), "{page}");
    assert!(!page.contains("Purpose") && !page.contains("Name of the service"), "{page}");
    let page = bench.read("a.html");
    assert!(page.contains(named), "{page}");
    assert!(page.contains("the other side only") && !page.contains("ann@x.org"), "{page}");
    assert!(std::fs::read(bench.path("b.pdf")).unwrap().starts_with(b"%PDF"));
    // Every other job of two sides has one too.
    for (at, job) in [
        "eval add32",
        "ot --count 10",
        "ot --of 4 --count 10",
        "vole --count 10",
        "triples --kind bits --count 10",
    ]
    .iter()
    .enumerate()
    {
        let address = format!("127.0.0.1:{}", free_port());
        let roles = match *job {
            "eval add32" => ["--role garbler --input 5", "--role evaluator --input 7"],
            job if job.starts_with("triples") => ["", ""],
            _ => ["--role sender", "--role receiver"],
        };
        let [alice, bob] = [
            format!(
                "{job} {} --listen {address} --identity alice.key --peer bob.pub --report j{at}.html",
                roles[0]
            ),
            format!(
                "{job} {} --connect {address} --identity bob.key --peer alice.pub --report j{at}.pdf",
                roles[1]
            ),
        ];
        let words = |line: &'_ str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let (alice, bob) = (words(&alice), words(&bob));
        let (alice, bob): (Vec<&str>, Vec<&str>) =
            (alice.iter().map(String::as_str).collect(), bob.iter().map(String::as_str).collect());
        let (a, b) = bench.run_both(&alice, &bob);
        a.success();
        b.success();
        let page = bench.read(&format!("j{at}.html"));
        for words in [&*fingerprint("bob.pub"), "What each side learned", "The other side learned", "UTC"] {
            assert!(page.contains(words), "{job}: {words}: {page}");
        }
        assert!(std::fs::read(bench.path(&format!("j{at}.pdf"))).unwrap().starts_with(b"%PDF"));
    }
    // It shows before the run what the page's name cannot be, and nothing else is replaced by it.
    let line = [
        "psi",
        "--connect",
        "127.0.0.1:1",
        "--identity",
        "alice.key",
        "--peer",
        "bob.pub",
        "--input",
        "a.csv",
    ];
    let with = |report| [&line[..], &["--key", "mail", "--report", report]].concat();
    bench.run(&with("page.txt")).fails_with(2, &["--report", ".html or .pdf"]);
    bench.run(&with("a.html")).fails_with(3, &["a.html", "exists already"]);
    bench.run(&[&with("c.html")[..], &["--output", "c.html"]].concat()).fails_with(2, &["c.html"]);
}
