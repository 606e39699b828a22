//! `tacit check` and `tacit init` on tables whose first line may be data, a title, or worse.

use crate::common::{Bench, Said, wait};
use serde_json::Value;
use std::io::Write;
use std::process::Stdio;

/// The command with these lines as its input.
fn answered(bench: &Bench, args: &[&str], lines: &str) -> Said {
    let mut child = bench.command(args).stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    wait(child)
}

fn object(said: &Said) -> Value {
    serde_json::from_str(said.success()).unwrap()
}

/// Tables without a header, and what must never be shown of their first lines.
const HEADLESS: &[(&str, &[&str])] = &[
    (
        "ann@secret.org,610000001,n/a\nbob@x.org,610000002,NULL\ncy@x.org,610000003,x\n",
        &["secret", "610000001"],
    ),
    ("SMITH,1980-01-31\nJones,1981-02-03\n", &["SMITH", "1980-01-31"]),
    ("ann@secret.org,,\nbob@x.org,5,2\ncy@x.org,6,2\n", &["secret"]),
    ("NL91ABNA0417164300,Ann\nNL91ABNA0417164301,Bob\n", &["NL91ABNA", "Ann"]),
    ("ann@secret.org,Secretname\nbob@x.org,NULL\ncy@x.org,n/a\n", &["secret", "Secretname"]),
    ("ann@secret.org,ann@secret.org\nbob@x.org,c@d.org\n", &["secret"]),
    ("Ann,0612345678\nBob,0612345679\n", &["Ann", "0612345678"]),
    ("Ann,M,1980-01-31\nB,F,1981-01-01\n", &["Ann", "1980-01-31"]),
    ("Ann,12.50\nB,13.50\n", &["Ann", "12.50"]),
    ("Ann Ng;7\nBo Li;8\n", &["Ann", "Ng"]),
    ("Emil;Müller;4711\nAnna;Schmidt;4712\n", &["Emil", "Müller", "4711"]),
    ("Anna Schmidt\nEmil Maier;Köln\n", &["Anna", "Schmidt"]),
    ("Secret Sentence About Ann\nA;b\nC;d\n", &["Sentence", "Ann"]),
    (",ann@secret.org,ann@secret.org\n,a@x.org,NULL\n", &["secret"]),
];

#[test]
fn a_first_line_that_may_be_data_is_shown_nowhere() {
    let bench = Bench::with_keys();
    for (table, secrets) in HEADLESS {
        bench.write("t.csv", table);
        let said = bench.run(&["check", "t.csv"]);
        let json = bench.run(&["--json", "check", "t.csv"]);
        // Neither is it asked for a column of it, nor does a question list it.
        let wrong = bench.run(&["check", "t.csv", "--key", "Eml"]);
        let asked = answered(&bench, &["init", "--out", "never.toml"], "t.csv\n\nwhat\n");
        let hidden = |said: &Said| {
            let shown = format!("{}{}", said.out, said.err);
            secrets.iter().for_each(|secret| assert!(!shown.contains(secret), "{table}: {secret}: {shown}"));
        };
        [&said, &json, &wrong, &asked].into_iter().for_each(hidden);
        for words in ["column 1", "--no-header", "--header"] {
            assert!(said.success().contains(words), "{table}: {words}: {}", said.out);
        }
        let object = object(&json);
        assert_eq!(
            (&object["header"], &object["suggested_key"]),
            (&"doubtful".into(), &Value::Null),
            "{table}"
        );
        assert_eq!(object["columns"][0]["column"], "column 1", "{table}");
        assert!(
            asked.err.contains("Is the first line (") && asked.err.contains("answer y or n"),
            "{asked:?}"
        );
        wrong.fails_with(3, &["no column is named `Eml`"]);
        // Who says that it is data gets numbers.
        let said = bench.run(&["check", "t.csv", "--no-header"]);
        assert!(!said.success().contains("may be data"), "{table}: {}", said.out);
        hidden(&said);
    }
    // However many rows follow, and whatever stands for nothing in them, a name that is nearly right hides the cell too.
    let many = format!("Anna,Xx\n{}{}", "Bob,12\n".repeat(16), "Bob,Xy\n".repeat(40));
    for (table, near) in
        [("Geheim,12 Zzyzx\nAnn,-\n", "Geheimm"), ("Geheim,AB12X\nAnn,n/a\n", "Geheimm"), (&many, "Ann")]
    {
        bench.write("t.csv", table);
        let plain = object(&bench.run(&["--json", "check", "t.csv"]))["header"].clone();
        let said = bench.run(&["check", "t.csv", "--key", near]);
        assert_eq!(plain == "doubtful", !said.err.contains("did you mean"), "{table}: {plain}: {said:?}");
    }
    // --header is believed; naming a column of a doubtful header gets a note.
    bench.write("t.csv", "Emil;Müller;4711\nAnna;Schmidt;4712\n");
    assert!(bench.run(&["check", "t.csv", "--header"]).success().contains("Müller"));
    let keyed = bench.run(&["check", "t.csv", "--key", "Emil"]);
    assert!(keyed.success().contains("note: the first line may be data"), "{keyed:?}");
    let keyed = bench.run(&["--json", "check", "t.csv", "--key", "Emil", "--header"]);
    assert_eq!(object(&keyed)["header"], "names");
    bench.run(&["check", "t.csv", "--header", "--no-header"]).fails_with(2, &["--header"]);
    // JSON lines have no header line, so the advice differs.
    bench.write("t.jsonl", "{\"ann@secret.org\":1,\"b\":2}\n{\"ann@secret.org\":2,\"b\":3}\n");
    let said = bench.run(&["check", "t.jsonl"]);
    assert!(said.success().contains("rename the column") && !said.out.contains("--no-header"), "{said:?}");
    assert!(!said.out.contains("secret"), "{said:?}");
    bench.write("years.jsonl", "{\"2023\":1,\"2024\":2}\n{\"2023\":2,\"2024\":3}\n");
    assert_eq!(object(&bench.run(&["--json", "check", "years.jsonl"]))["header"], "names");
}

#[test]
fn a_title_is_skipped_and_nothing_else_is() {
    let bench = Bench::with_keys();
    for (table, lines) in [
        ("Report 2024\nname;mail\nA;a@x.org\nB;b@x.org\n", 1),
        ("Report 2024\nMade by ann@secret.org\nname;mail\nA;a@x.org\nB;b@x.org\n", 2),
        ("Report 2024,,\nMore,,\nname,mail,x\nA,a@x.org,1\nB,b@x.org,2\n", 2),
        ("sep=;\nReport 2024\nname;mail\nA;a@x.org\nB;b@x.org\n", 2),
        ("sep=;\nReport 2024;\nname;mail\nA;a@x.org\nB;b@x.org\n", 2),
        ("Title\nmail,name\na@x.org,A\n", 1),
        ("Export;Filiale Köln;;;;\nid;name;mail;tel;ort;plz\n1;A;a@x.org;1;K;2\n", 1),
        ("Title\n\u{feff}\u{feff}mail,name\na@x.org,x\n", 1),
        ("mail,,\na@x.org,,\nb@x.org,,\n", 0),
        (",mail\n0,a@x.org\n1,b@x.org\n", 0),
        ("mails\na@x.org;b@x.org\nc@x.org;d@x.org\n", 0),
        ("\"mail\"\n\"a;b@x.org\"\n\"c;d@x.org\"\n", 0),
        ("remark\nx | y\nz | w\n", 0),
        ("iban,mail\nx,a@x.org\n", 0),
    ] {
        bench.write("t.csv", table);
        let found = object(&bench.run(&["--json", "check", "t.csv"]));
        assert_eq!(
            (&found["skip_lines"], &found["header"]),
            (&lines.into(), &"names".into()),
            "{table}: {found}"
        );
        let said = bench.run(&["check", "t.csv"]);
        assert!(!said.success().contains("secret"), "{said:?}");
        assert_eq!(said.out.contains("seems to be a title"), lines > 0, "{table}: {said:?}");
        let skipped = format!("--skip-lines {lines}");
        if found["suggested_key"] == "mail:email" {
            assert_eq!(
                said.out.contains(&format!("--key mail:email {skipped}")),
                lines > 0,
                "{table}: {said:?}"
            );
        }
        if lines == 0 {
            continue;
        }
        // Lines that are skipped already are counted in, and the option is suggested once.
        bench.run(&["check", "t.csv", "--skip-lines", &lines.to_string(), "--key", "mail:email"]).success();
        let answers = "t.csv\n\nmail:email\nme\n\nalice.key\nbob.pub\n";
        answered(&bench, &["--overwrite", "init"], answers).success();
        let text = bench.read("job.toml");
        assert!(text.contains(&format!("skip-lines = {lines} ")), "{text}");
        bench.run(&["psi", "--config", "job.toml", "--dry-run"]).success();
    }
    bench.write("t.csv", "One\nTwo\nname;mail\nA;a@x.org\nB;b@x.org\n");
    let said = bench.run(&["check", "t.csv", "--skip-lines", "1"]);
    assert!(said.success().contains("--skip-lines 2") && !said.out.contains("--skip-lines 1"), "{said:?}");
    bench.write("t.jsonl", "{\"mail\":\"a@x.org\",\"\":1}\n");
    assert!(!bench.run(&["check", "t.jsonl"]).success().contains("title"));
}

#[test]
fn a_table_without_a_header_becomes_a_configuration_and_a_policy() {
    let bench = Bench::with_keys();
    bench.write("t.csv", "ann@x.org;1\nb@x.org;2\n");
    for (way, file, words) in [("", "job.toml", "no-header = true"), ("--policy", "p.toml", "header = false")]
    {
        let learns = if way.is_empty() { "me" } else { "rows" };
        let answers = format!("t.csv\nn\n1:email\n{learns}\nlisten 127.0.0.1:7700\nalice.key\nbob.pub\n");
        let args: Vec<&str> =
            ["init", way, "--out", file].into_iter().filter(|word| !word.is_empty()).collect();
        let said = answered(&bench, &args, &answers);
        assert!(said.success().contains(file), "{said:?}");
        assert!(bench.read(file).contains(words), "{}", bench.read(file));
    }
    bench.run(&["psi", "--config", "job.toml", "--dry-run"]).success();
    bench.run(&["serve", "--policy", "p.toml", "--check"]).success();
    // Standard input has the answers.
    let said = answered(&bench, &["init", "--out", "x.toml"], "-\n\n");
    said.fails_with(2, &["question 1 of 6"]);
    assert!(said.err.contains("a table on standard input cannot be read here"), "{said:?}");
    let answers = "t.csv\ny\nann@x.org\nus\n";
    let said = answered(&bench, &["init", "--out", "x.toml"], answers);
    assert!(said.err.contains("answer me, peer or both"), "{said:?}");
}

/// What a file holds cannot steer a terminal, nor a shell that gets a suggested command.
#[test]
fn escapes_of_a_file_are_shown_as_text() {
    let bench = Bench::with_keys();
    let plain = |said: &Said| {
        let shown = format!("{}{}", said.out, said.err);
        let bad = shown.chars().find(|c| c.is_control() && *c != '\n' || "\u{202e}\u{200b}".contains(*c));
        assert_eq!(bad, None, "{shown:?}");
    };
    for table in [
        "\"mail\x1b[31m\x07\u{9d}\",\"a\nb\",\"x\u{202e} rtl\",\"q'; touch /tmp/pwn; '\"\nann@x.org,NULL,1,NULL\n\
         b@x.org,n/a,2,NULL\nc@x.org,z,3,k\n",
        "\"m\x1b]0;owned\x07\",\"m\x1b]0;owned\x07\",id\x1b[2J\na@x.org,NULL,1\nb@x.org,z,2\n",
        "\"mail\x1b]0;owned\x07\",n\na@x.org,NULL\nb@x.org,z\n",
    ] {
        bench.write("t.csv", table);
        let said = bench.run(&["check", "t.csv"]);
        said.success();
        plain(&said);
        assert!(!said.out.contains("--key"), "{}", said.out);
        let said = answered(&bench, &["init", "--out", "x.toml"], "t.csv\nnone\u{1b}[2J\n");
        plain(&said);
        assert!(said.err.contains("there is no column `none\\u{1b}[2J`"), "{said:?}");
    }
    bench.write("t.jsonl", r#"{"m\u001b]0;owned\u0007":"a@x.org","x\u202e":"NULL"}"#);
    let said = bench.run(&["check", "t.jsonl"]);
    said.success();
    plain(&said);
    // A name that begins like an option, of a column and of a file; a name for a shell.
    bench.write("-x.csv", "--output,x\na@x.org,1\nb@x.org,2\n");
    let said = bench.run(&["check", "--input=-x.csv"]);
    let words = "tacit check --input ./-x.csv --key=--output:email";
    assert!(said.success().contains(words), "{}", said.out);
    bench.run(&["check", "--input", "./-x.csv", "--key=--output:email"]).success();
    bench.write("it's $(touch pwn).csv", "mail\na@x.org\nb@x.org\n");
    let said = bench.run(&["check", "it's $(touch pwn).csv"]);
    if cfg!(unix) {
        assert!(said.success().contains(r"--input 'it'\''s $(touch pwn).csv'"), "{}", said.out);
        let odd = "\x1b]0;own.csv";
        bench.write(odd, "mail\na@x.org\nb@x.org\n");
        let said = bench.run(&["check", odd]);
        assert!(!said.success().contains("tacit check"), "{said:?}");
        plain(&said);
    }
    let piped = answered(&bench, &["check", "-"], "mail\na@x.org\nb@x.org\n");
    assert!(piped.success().contains("1 column") && !piped.out.contains("--input"), "{piped:?}");
}

/// Many columns cost what they are, and not their square; notes and questions stay short.
#[test]
fn many_columns_are_listed_in_seconds_and_questions_are_short() {
    let bench = Bench::with_keys();
    let many = 40_000;
    // One has a name of its own.
    let mut header: Vec<String> = (0..many).map(|at| format!("c{}", at / 2)).collect();
    header.push("own".to_owned());
    let row = vec!["1"; header.len()].join(",");
    bench.write("t.csv", format!("{}\n{row}\n", header.join(",")));
    let started = std::time::Instant::now();
    let said = bench.run(&["check", "t.csv"]);
    assert!(started.elapsed().as_secs() < 10, "{:?}", started.elapsed());
    assert!(said.success().contains("note: 19995 more names are those of several columns"));
    assert_eq!(said.out.matches("several columns are called").count(), 5);
    let started = std::time::Instant::now();
    let said = answered(&bench, &["init", "--out", "x.toml"], "t.csv\nnone\n");
    assert!(
        said.err.contains("c9:int, c9:int, … and 39981 more") && said.err.len() < 5000,
        "{}",
        said.err.len()
    );
    // Without that one there is no key to ask for.
    header.pop();
    let row = vec!["1"; many].join(",");
    bench.write("twice.csv", format!("{}\n{row}\n", header.join(",")));
    let said = answered(&bench, &["init", "--out", "x.toml"], "twice.csv\n");
    let shares = said.err.contains("every column shares its name with another");
    assert!(shares && said.err.len() < 1000, "{}", said.err.len());
    assert!(started.elapsed().as_secs() < 10, "{:?}", started.elapsed());
}

#[test]
fn an_encoding_is_suggested_where_it_reads_the_file_and_never_for_a_part_of_it() {
    let bench = Bench::with_keys();
    let mut mixed = "mail,name\n".to_owned().into_bytes();
    (0..50).for_each(|at| mixed.extend_from_slice(format!("u{at}@x.org,José Müller {at}\n").as_bytes()));
    mixed.extend_from_slice(b"v@x.org,Zo\xeb\n");
    bench.write("mixed.csv", mixed);
    bench
        .run(&["check", "mixed.csv"])
        .fails_with(3, &["line 52", "not valid UTF-8, but the rest of the file is"]);
    // Whoever reads the keys of it hears the same, and no encoding that would change every other row.
    let said = bench.run(&["check", "mixed.csv", "--key", "name"]);
    said.fails_with(3, &["line 52", "not valid UTF-8, but the rest of the file is"]);
    assert!(!said.err.contains("windows-1252"), "{said:?}");
    bench.write("a.csv", b"mail,name\na@x.org,Jos\xe9\n");
    bench.write("b.csv", "mail,name\nb@x.org,José\n");
    let said = bench.run(&["check", "a.csv", "b.csv"]);
    said.fails_with(3, &["the files differ in encoding", "a.csv is windows-1252", "b.csv is utf-8"]);
    // In CP437 an ü is a byte that windows-1252 does not have.
    bench.write("dos.csv", b"mail,name\nu@x.org,Jos\x82\nv0@x.org,Jos\x82\nv1@x.org,M\x81ller\n");
    let said = bench.run(&["check", "dos.csv"]);
    said.fails_with(3, &["not valid UTF-8"]);
    assert!(!said.err.contains("windows-1252"), "{said:?}");
    bench.write(
        "t.jsonl",
        b"{\"mail\":\"a@x.org\",\"n\":\"Jos\xe9\"}\n{\"mail\":\"b@x.org\",\"n\":\"Jos\xe9\"}\n",
    );
    let found = object(&bench.run(&["--json", "check", "t.jsonl"]));
    assert_eq!(found["guessed_encoding"], "windows-1252");
    bench.write("marks.jsonl", "\n\u{feff}{\"a\":\"x\"}\n\u{feff}{\"a\":\"y\"}\n");
    assert!(bench.run(&["check", "marks.jsonl", "--key", "a"]).success().contains("2 distinct keys"));
}

#[test]
fn a_key_is_suggested_where_it_is_one() {
    let bench = Bench::new();
    for (table, key) in [
        (
            "id,vorname,nachname,gebdat\n1,A,B,1980-01-31\n2,C,D,1981-01-31\n",
            Some("vorname,nachname,gebdat:date"),
        ),
        ("id,vorname\n1,A\n2,B\n", None),
        ("kunde,betrag\nx,12\nx,13\nx,9\n", Some("kunde")),
        ("betrag\n12\n13\n9\n", None),
        ("region,2023\nx,7\nx,3\n", Some("region")),
        ("id,mail,mail\n5,a@x.org,b@x.org\n3,c@x.org,d@x.org\n", None),
        ("name,born\nA,1980-01-31\nB,1981-01-31\n", Some("name,born:date")),
    ] {
        bench.write("t.csv", table);
        let said = bench.run(&["--json", "check", "t.csv"]);
        assert_eq!(object(&said)["suggested_key"].as_str(), key, "{table}: {said:?}");
        if let Some(key) = key {
            bench.run(&["check", "t.csv", "--key", key]).success();
        }
    }
}

/// A secret that was given in place of a table is not shown as the name of a column, whatever precedes it.
#[test]
fn a_private_key_behind_other_signs_is_no_table() {
    let bench = Bench::with_keys();
    let key = bench.read("alice.key");
    let secret = key.trim().rsplit(' ').next().unwrap().to_owned();
    for (before, after) in [
        ("\n", ""),
        ("\n\n  ", ""),
        ("\u{200b}", ""),
        ("\u{feff}\u{200b}", ""),
        ("\"", "\""),
        ("sep=,\n", ""),
        ("# x\n", ""),
    ] {
        bench.write("t.csv", format!("{before}{key}{after}"));
        for words in
            [&["check", "t.csv"][..], &["check", "t.csv", "--key", "x"], &["check", "t.csv", "--no-header"]]
        {
            let said = bench.run(words);
            said.fails_with(3, &["this is a private key"]);
            assert!(!said.err.contains(&secret[..8]), "{said:?}");
        }
    }
}
