//! Keys of types, between two real processes: spellings that match, settings that differ, hashed lists, and
//! `tacit check`.

use crate::common::{Bench, Said, free_port};
use serde_json::{Value, json};

/// Both sides of `tacit psi`, the first listening; `ours` and `theirs` are the columns of their keys.
fn psi(bench: &Bench, ours: &[&str], theirs: &[&str]) -> (Said, Said) {
    let address = format!("127.0.0.1:{}", free_port());
    let fixed = ["--insecure-plaintext", "--result", "both"];
    let a = ["--json", "psi", "--listen", &address, "--input", "a.csv", "--key"];
    let b = ["--json", "psi", "--connect", &address, "--input", "b.csv", "--key"];
    bench.run_both(&[&a, ours, &fixed].concat(), &[&b, theirs, &fixed].concat())
}

fn object(said: &Said) -> Value {
    serde_json::from_str(said.success().trim()).unwrap()
}

fn people() -> Bench {
    let bench = Bench::new();
    bench.write(
        "a.csv",
        "mail,tel,born,n\n\
         Ann@Example.org,06 12345678,31.1.2024,1\n\
         bob@example.org,+31 (0)6 87654321,1.2.2024,2\n\
         eve@example.org,call me,2.2.2024,3\n\
         no address,0612345679,3.2.2024,4\n\
         ,0612345680,4.2.2024,5\n",
    );
    bench.write(
        "b.csv",
        "adresse;fon;geboren\n\
         ann@ex\u{200b}ample.org;0031-6-12345678;2024-01-31\n\
         bob@example.org;\u{ff10}\u{ff16}\u{ff18}\u{ff17}\u{ff16}\u{ff15}\u{ff14}\u{ff13}\u{ff12}\u{ff11};2024-02-01\n\
         eve@example.org;06 12345699;2024-02-02\n",
    );
    bench
}

#[test]
fn spellings_of_one_key_match_and_what_is_none_is_counted_and_shown_to_its_owner_alone() {
    let bench = people();
    let ours = ["mail:email,tel:phone:NL,born:date:DMY", "--show-refused", "1", "--output", "out.csv"];
    let (a, b) = psi(&bench, &ours, &["adresse:email,fon:phone:NL,geboren:date"]);
    assert!(!b.out.contains("call me") && !b.err.contains("call me"));
    let (a, b) = (object(&a), object(&b));
    assert_eq!((&a["matches"], &b["matches"]), (&json!(2), &json!(2)), "{a} {b}");
    let rows = bench.read("out.csv");
    assert!(rows.contains(",1\n") && rows.contains(",2\n") && rows.lines().count() == 3, "{rows}");
    assert_eq!((&a["key"], &a["rows_without_key"]), (&json!("email, phone, date"), &json!(3)));
    let refused = |column, kind, reason| json!({"column": column, "type": kind, "reason": reason, "rows": 1});
    let expected = json!([
        refused("mail", "email", "empty"),
        refused("mail", "email", "form"),
        refused("tel", "phone:NL", "character")
    ]);
    assert_eq!(a["refused"], expected);
    assert_eq!(
        a["refused_samples"],
        json!([{"row": 3, "column": "tel", "reason": "character", "value": "call me"}])
    );
    assert!(b["refused"] == json!([]) && b.get("refused_samples").is_none() && b["suspicious"].is_null());
}

#[test]
fn other_types_orders_and_labels_are_errors_that_name_both() {
    let bench = people();
    let cases = [
        ("mail:email", "fon:phone:NL", "--key types (yours email, peer's phone);"),
        (
            "mail:email,tel:phone",
            "fon:phone,adresse:email",
            r#"(yours \"email, phone\", peer's \"phone, email\")"#,
        ),
        ("mail:email", "adresse", "--key types (yours email, peer's text);"),
        ("mail:email", "adresse:email:sha256", "(yours email, peer's sha256 of email)"),
        (
            "mail:sha256-hex:email",
            "adresse:sha256-hex:phone",
            "(yours sha256 of email, peer's sha256 of phone)",
        ),
        (
            "one=mail,two=tel",
            "two=adresse,one=fon",
            r#"--key labels (yours \"one, two\", peer's \"two, one\");"#,
        ),
    ];
    for (ours, theirs, words) in cases {
        let (a, b) = psi(&bench, &[ours], &[theirs]);
        a.fails_with(4, &[words]);
        b.fails_with(4, &["settings differ: --key ", "(yours ", "peer's "]);
        assert!(a.out.is_empty() && b.out.is_empty());
    }
    // What is no type is told before anybody is called.
    let said = bench.run(&["check", "--input", "a.csv", "--key", "mail:e-mail"]);
    said.fails_with(2, &["`e-mail`", "did you mean `email`?"]);
    let said = bench.run(&["check", "--input", "a.csv", "--key", "mail:address"]);
    said.fails_with(2, &["`address`", "email:gmail", "NAME:text"]);
}

#[test]
fn a_hashed_list_matches_clear_values_and_no_side_mixes_both() {
    let bench = people();
    // SHA-256 of `ann@example.org` and of `zoe@example.org`, by another implementation.
    let ann = "438c4c7afe600cdf1e455c369bec76dc970fc8ca463447c7b387a347f3c79331";
    let zoe = "1763c758c09a8e6db400562ecd27c5f6ef6d3cefb5c88c0164adf2e4d79802c1";
    bench.write("b.csv", format!("h\n{}\n{zoe}\nbob@example.org\n", ann.to_uppercase()));
    let (a, b) = psi(&bench, &["mail:email:sha256"], &["h:sha256-hex:email"]);
    let (a, b) = (object(&a), object(&b));
    assert_eq!((&a["matches"], &b["matches"]), (&json!(1), &json!(1)), "{a} {b}");
    // The clear address in the hashed list is refused, though its hash is in the other file.
    assert_eq!(b["refused"][0]["reason"], "clear");
    assert_eq!((&b["own_keys"], &b["rows_without_key"]), (&json!(2), &json!(1)));
    let said = bench.run(&["--json", "check", "--input", "b.csv", "--key", "h:email:sha256"]);
    let refused = &object(&said)["refused"];
    assert_eq!((&refused[0]["reason"], &refused[0]["rows"]), (&json!("hashed"), &json!(2)));
}

#[test]
fn a_check_shows_what_a_run_would_see_and_rehearses_both_sides() {
    let bench = people();
    let said = bench.run(&["check", "--input", "a.csv", "--key", "mail:email", "--show-refused", "3"]);
    let text = said.success();
    for words in [
        "5 rows, 3 distinct keys (email)",
        "1 row with an empty key, 1 refused",
        "row 4, mail: \"no address\"",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert!(
        !bench.run(&["check", "--input", "a.csv", "--key", "mail:email"]).success().contains("no address")
    );
    let key = ["--json", "check", "--input", "a.csv", "--key", "mail:email", "--show-keys", "1"];
    let against = [&key[..], &["--against", "b.csv", "--against-key", "adresse:email"]].concat();
    let object = object(&bench.run(&against));
    assert_eq!((&object["matches"], &object["against"]["keys"]), (&json!(3), &json!(3)), "{object}");
    assert_eq!(object["normal_forms"], json!([["ann@example.org"]]));
    let swapped = [&key[..], &["--against", "b.csv", "--against-key", "fon:phone:NL"]].concat();
    bench.run(&swapped).fails_with(2, &["types differ (yours email, the other file's phone)"]);
}

#[test]
fn a_suspicious_number_of_matches_is_said() {
    let bench = Bench::new();
    let table = |prefix: &str, count| {
        (0..count)
            .map(|n| format!("{prefix}{n}@example.org\n"))
            .fold("mail\n".to_owned(), |all, row| all + &row)
    };
    bench.write("a.csv", table("a", 100));
    for (theirs, words) in [(table("b", 150), "no match"), (table("a", 150), "more than 99 %")] {
        bench.write("b.csv", theirs);
        let (a, b) = psi(&bench, &["mail:email"], &["mail:email"]);
        for said in [&a, &b] {
            assert!(object(said)["suspicious"].as_str().unwrap().contains(words), "{said:?}");
        }
        let said = bench.run(&["check", "--input", "a.csv", "--key", "mail:email", "--against", "b.csv"]);
        assert!(said.success().contains("suspicious: ") && said.out.contains(words), "{said:?}");
    }
    // Half of them, and nothing of a few, are not.
    let half = table("a", 50) + table("b", 60).trim_start_matches("mail\n");
    for theirs in [half, table("b", 99)] {
        bench.write("b.csv", theirs);
        let (a, _) = psi(&bench, &["mail:email"], &["mail:email"]);
        assert!(object(&a)["suspicious"].is_null(), "{a:?}");
    }
}

/// Names of options and kinds of files that people take for granted.
#[test]
fn out_and_output_are_one_option_and_keys_come_out_of_pipes() {
    let bench = Bench::new();
    bench.run(&["keygen", "--output", "alice.key"]).success();
    bench.run(&["keygen", "--out", "bob.key"]).success();
    bench.run(&["keygen", "--out", "x.key", "--output", "y.key"]).fails_with(2, &["--out"]);
    assert!(bench.exists("alice.pub") && !bench.run(&["keygen", "--help"]).out.contains("--output"));
    bench.write("a.csv", "mail\na@x.org\n");
    bench.write("job.toml", "[psi]\noutput = \"configured.csv\"\n");
    let address = format!("127.0.0.1:{}", free_port());
    let side = |how: &'static str, own: &'static str, peer: &'static str| {
        [
            "psi",
            how,
            &address,
            "--identity",
            own,
            "--peer",
            peer,
            "--input",
            "a.csv",
            "--key",
            "mail",
            "--result",
            "both",
        ]
        .map(str::to_owned)
    };
    let (a, b) = (side("--listen", "alice.key", "bob.pub"), side("--connect", "bob.key", "alice.pub"));
    let words = |side: &[String], more: &[&str]| {
        side.iter().map(String::as_str).chain(more.iter().copied()).map(str::to_owned).collect::<Vec<_>>()
    };
    let (a, b) = (words(&a, &["--config", "job.toml", "--out", "a.both"]), words(&b, &["--out", "b.both"]));
    let as_words = |side: &[String]| side.iter().map(String::as_str).map(str::to_owned).collect::<Vec<_>>();
    let (a, b) = (as_words(&a), as_words(&b));
    let (a, b): (Vec<&str>, Vec<&str>) =
        (a.iter().map(String::as_str).collect(), b.iter().map(String::as_str).collect());
    let (a, b) = bench.run_both(&a, &b);
    a.success();
    b.success();
    // The command line hides what the file has under the other name.
    assert!(bench.exists("a.both") && bench.exists("b.both") && !bench.exists("configured.csv"));
    bench.write("job.toml", "[psi]\nout = \"x.csv\"\n");
    bench
        .run(&["psi", "--config", "job.toml"])
        .fails_with(2, &["unknown setting `out`", "did you mean `output`?"]);

    // A pipe into which nobody writes is not waited for, and one of a shell's is read.
    assert!(std::process::Command::new("mkfifo").arg(bench.path("pipe")).status().unwrap().success());
    let psi =
        ["psi", "--connect", "127.0.0.1:1", "--input", "a.csv", "--key", "mail", "--connect-timeout", "1"];
    let nothing = "nothing is written into this pipe";
    bench
        .run(&[&psi[..], &["--identity", "alice.key", "--peer", "pipe"]].concat())
        .fails_with(3, &["pipe", nothing]);
    bench
        .run(&[&psi[..], &["--identity", "pipe", "--peer", "bob.pub"]].concat())
        .fails_with(3, &["pipe", nothing]);
    bench.run(&[&["--config", "pipe"], &psi[..]].concat()).fails_with(3, &["pipe", nothing]);
    bench.run(&["serve", "--policy", "pipe", "--check"]).fails_with(3, &["pipe", nothing]);
    let tacit = env!("CARGO_BIN_EXE_tacit");
    let line = format!("exec {tacit} {} --identity alice.key --peer <(cat bob.pub)", psi.join(" "));
    let shell =
        std::process::Command::new("bash").args(["-c", &line]).current_dir(bench.path(".")).output().unwrap();
    let said = String::from_utf8_lossy(&shell.stderr);
    assert!(said.contains("cannot connect to 127.0.0.1:1 ("), "{said}");
}
