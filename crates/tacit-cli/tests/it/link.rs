//! `tacit link` between two real processes: identifiers against a plain join, in every format, in words and JSON, what
//! is refused, and that they are keys for later runs.

use crate::common::{Bench, Harm, Said, free_port, proxy};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Both sides of `tacit link` without TLS, the first one listening.
fn link(bench: &Bench, ours: &[&str], theirs: &[&str]) -> (Said, Said) {
    let address = format!("127.0.0.1:{}", free_port());
    let a = [&["link", "--listen", &address, "--insecure-plaintext"], ours].concat();
    let b = [&["link", "--connect", &address, "--insecure-plaintext"], theirs].concat();
    bench.run_both(&a, &b)
}

/// Rows of a CSV file without quotes, less the header.
fn rows(text: &str) -> Vec<Vec<String>> {
    text.lines().skip(1).map(|line| line.split(',').map(str::to_owned).collect()).collect()
}

fn is_identifier(text: &str) -> bool {
    text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

/// Holds two outputs against the plain join of their keys, which are in the second column: one identifier a key, the
/// same on both sides exactly for the common ones, and one of its own for each row without a key.
fn check(first: &str, second: &str, key_of: impl Fn(&str) -> String) -> usize {
    let mut of_key = [BTreeMap::new(), BTreeMap::new()];
    let mut all = BTreeSet::new();
    let mut alone = 0;
    for (text, of_key) in [first, second].into_iter().zip(&mut of_key) {
        for row in rows(text) {
            assert!(is_identifier(&row[0]), "{row:?}");
            all.insert(row[0].clone());
            match key_of(&row[1]).as_str() {
                "" => alone += 1,
                key => {
                    let before = of_key.insert(key.to_owned(), row[0].clone());
                    assert!(before.is_none_or(|before| before == row[0]), "{row:?}");
                }
            }
        }
    }
    let [first, second] = of_key;
    let common = first.iter().filter(|(key, id)| second.get(*key).is_some_and(|other| other == *id)).count();
    assert_eq!(common, first.keys().filter(|key| second.contains_key(*key)).count());
    // All others are different, and those of rows without a key from everything.
    assert_eq!(all.len(), first.len() + second.len() - common + alone);
    common
}

#[test]
fn rows_get_identifiers_that_match_where_keys_do() {
    let bench = Bench::new();
    let table = |range: std::ops::Range<u32>| {
        let mut text = "mail,n\n".to_owned();
        for i in range {
            // Every ninth row is without a key, and every seventh key is there twice, written otherwise.
            let key = if i % 9 == 0 { String::new() } else { format!("User{i}@x.org") };
            text += &format!("{key},{i}\n");
            if i % 7 == 0 && i % 9 != 0 {
                text += &format!("USER{i}@X.org,{i}\n");
            }
        }
        text
    };
    bench.write("a.csv", table(0..1500));
    bench.write("b.csv", table(1000..1700));
    let normal = |cell: &str| cell.to_lowercase();
    for security in ["malicious", "semi-honest"] {
        let side = |input| ["--input", input, "--key", "mail:email", "--security", security];
        let (a, b) = link(
            &bench,
            &[&side("a.csv")[..], &["--output", "a.out.csv", "--overwrite"]].concat(),
            &[&side("b.csv")[..], &["--output", "b.out.csv", "--overwrite"]].concat(),
        );
        let (a, _) = (a.success(), b.success());
        let (one, two) = (bench.read("a.out.csv"), bench.read("b.out.csv"));
        assert!(one.starts_with("link_id,mail,n\n"), "{one}");
        // The input, row by row, behind the identifiers.
        let stripped: String = one.lines().skip(1).map(|line| line[33..].to_owned() + "\n").collect();
        assert_eq!(format!("mail,n\n{stripped}"), bench.read("a.csv"));
        assert_eq!(check(&one, &two, normal), (1000..1500).filter(|i| i % 9 != 0).count());
        for words in [
            "1691 rows of yours written to a.out.csv",
            "`link_id`",
            "1333 distinct keys",
            "167 rows without a key",
        ] {
            assert!(a.contains(words), "{words}: {a}");
        }
        assert_eq!(a.contains("if it follows the protocol"), security == "semi-honest", "{a}");
    }
}

#[test]
fn results_in_json_and_in_every_format_belong_to_one_run() {
    let bench = Bench::with_keys();
    bench.write("a.csv", "first,last,n\nAnn,Lee,1\nBob,Ray,2\nCy,Poe,3\n");
    bench.write("b.csv", "v;vorname;name\n7;bob ;RAY\n8;Cy;Poe\n9;Dee;Lee\n");
    let address = format!("127.0.0.1:{}", free_port());
    let a = ["--json", "link", "--listen", &address, "--identity", "alice.key", "--peer", "bob.pub"];
    let b = ["--json", "link", "--connect", &address, "--identity", "bob.key", "--peer", "alice.pub"];
    for (at, (ours, theirs)) in
        [("a.parquet", "b.csv.gz"), ("a.arrow", "b.xlsx"), ("a.out", "b.zst")].into_iter().enumerate()
    {
        let ours = [
            "--input",
            "a.csv",
            "--key",
            "first,last",
            "--output",
            ours,
            "--report",
            "page.html",
            "--overwrite",
        ];
        let theirs = [
            "--input",
            "b.csv",
            "--key",
            "vorname",
            "--key",
            "name",
            "--id-column",
            "person",
            "--output",
            theirs,
        ];
        let (a, b) = bench.run_both(&[&a[..], &ours].concat(), &[&b[..], &theirs].concat());
        let (a, b): (Value, Value) = (a.object(), b.object());
        assert_eq!(
            (&a["name"], &a["protocol"], &a["security"]),
            (&json!("link"), &json!("link"), &json!("malicious"))
        );
        assert_eq!((&a["own_keys"], &a["peer_keys"], &a["output_rows"]), (&json!(3), &json!(3), &json!(3)));
        assert_eq!((&a["id_column"], &b["id_column"]), (&json!("link_id"), &json!("person")));
        assert_eq!((&a["link_run"], a["link_run"].as_str().unwrap().len()), (&b["link_run"], 16));
        assert!(a["peer_keys_tested_at_most"].as_u64().unwrap() >= 3, "{a}");
        let page = bench.read("page.html");
        for words in
            ["Report of a link of two tables", a["link_run"].as_str().unwrap(), "not which rows match"]
        {
            assert!(page.contains(words), "{words}: {page}");
        }
        // What is in them shows an intersection by the identifiers.
        let (ours, theirs) = (ours[5], theirs[9]);
        let next = format!("127.0.0.1:{}", free_port());
        let found = format!("found{at}.csv");
        let base = ["--json", "psi", "--insecure-plaintext"];
        let one = ["--listen", &next, "--input", ours, "--key", "link_id", "--output", &found];
        let two = ["--connect", &next, "--input", theirs, "--key", "person", "--result", "peer"];
        let (one, two) = bench.run_both(&[&base[..], &one].concat(), &[&base[..], &two].concat());
        two.success();
        assert_eq!(one.object()["matches"], json!(2), "{ours} {theirs}");
        let names: Vec<String> = rows(&bench.read(&found)).into_iter().map(|row| row[1].clone()).collect();
        assert_eq!(names, ["Bob", "Cy"]);
    }
}

/// A question joins two outputs as it would have joined the tables; so do outputs without any rows.
#[test]
fn identifiers_are_keys_of_a_question() {
    let bench = Bench::new();
    let orders: String = (0..40).map(|i| format!("u{i}@x.org,{}\n", 10 * i)).collect();
    bench.write("a.csv", format!("mail,cents\n{orders}"));
    let members: String = (20..60).map(|i| format!("u{i}@x.org,{}\n", ["basic", "plus"][i % 2])).collect();
    bench.write("b.csv", format!("mail,segment\n{members}"));
    let (a, b) = link(
        &bench,
        &["--input", "a.csv", "--key", "mail:email", "--output", "a.out.csv"],
        &["--input", "b.csv", "--key", "mail:email", "--output", "b.parquet"],
    );
    a.success();
    b.success();
    let sql = "SELECT b.segment, COUNT(*) AS n, SUM(CLIP(a.cents, 0, 1000)) AS spent FROM ours a JOIN theirs b \
               ON a.link_id = b.link_id WHERE b.segment IN ('basic', 'plus') GROUP BY b.segment";
    let address = format!("127.0.0.1:{}", free_port());
    let tail = ["--insecure-plaintext", "--security", "semi-honest", "--min-group", "0", "--sql", sql];
    let (a, b) = bench.run_both(
        &[&["query", "--listen", &address, "--input", "a.out.csv", "--result", "peer"], &tail[..]].concat(),
        &[&["--json", "query", "--connect", &address, "--input", "b.parquet"], &tail[..]].concat(),
    );
    a.success();
    let spent = |start: usize| (start..40).step_by(2).map(|i| 10 * i).sum::<usize>();
    assert_eq!(b.object()["rows"], json!([["basic", 10, spent(20)], ["plus", 10, spent(21)]]));
}

#[test]
fn a_side_without_rows_or_keys_gets_its_table_and_the_other_one_too() {
    let bench = Bench::new();
    bench.write("none.csv", "k,v\n");
    bench.write("empty.csv", "k,v\n,1\n,2\n");
    bench.write("some.csv", "k,v\na,1\nb,2\na,3\n");
    for (input, lines) in [("none.csv", 1), ("empty.csv", 3)] {
        let (a, b) = link(
            &bench,
            &["--input", input, "--key", "k", "--output", "a.out", "--overwrite"],
            &["--json", "--input", "some.csv", "--key", "k", "--output", "b.out", "--overwrite"],
        );
        a.success();
        assert_eq!(b.object()["peer_keys"], json!(0));
        let (one, two) = (bench.read("a.out"), bench.read("b.out"));
        assert_eq!((one.lines().count(), two.lines().count()), (lines, 4));
        assert_eq!(check(&one, &two, str::to_owned), 0);
    }
}

/// The exit code, the key, other options, and words of the error.
type Refusal = (i32, &'static [&'static str], &'static [&'static str], &'static [&'static str]);

#[test]
fn what_cannot_be_linked_is_refused_before_anybody_is_called() {
    let bench = Bench::new();
    bench.write("a.csv", "mail,name,link_id\na@x.org,Ann,1\n");
    let with = |more: &[&str]| {
        let base = ["link", "--listen", "127.0.0.1:1", "--insecure-plaintext", "--input", "a.csv"];
        bench.run(&[&base[..], more].concat())
    };
    let out: &[&str] = &["--output", "o.csv"];
    let named: &[&str] = &["--output", "o.csv", "--id-column", "id"];
    let cases: [Refusal; 7] = [
        (2, &["--key", "mail"], out, &["--id-column", "`link_id` already", "another name"]),
        (2, &["--key", "mail", "--id-column", " "], out, &["--id-column", "needs a name"]),
        (2, &["--key", "name:name~1"], named, &["--key", "name~1 makes several keys", "use name"]),
        (2, &["--key", "mail", "--or-key", "name"], named, &["--or-key", "link by one", "an intersection"]),
        (2, &["--key", "mail"], &[], &["--output"]),
        (3, &["--key", "mail"], &["--output", "o.json", "--id-column", "id"], &["o.json", "JSON"]),
        (3, &["--key", "nothing"], named, &["nothing", "no column"]),
    ];
    for (code, key, more, words) in cases {
        with(&[key, more].concat()).fails_with(code, words);
        assert!(!bench.exists("o.csv"), "{key:?}");
    }
    // Nor may the output replace the input.
    with(&["--key", "mail", "--id-column", "id", "--output", "a.csv", "--overwrite"])
        .fails_with(3, &["a.csv", "same file"]);
}

#[test]
fn both_sides_have_to_agree_and_a_peer_may_be_too_large() {
    let bench = Bench::new();
    bench.write("a.csv", "k,v\na,1\nb,2\n");
    bench.write("b.csv", "k,v\na@x.org,1\nb@x.org,2\nc@x.org,3\n");
    let (a, b) = link(
        &bench,
        &["--input", "a.csv", "--key", "k", "--output", "a.out"],
        &["--input", "b.csv", "--key", "k:email", "--output", "b.out"],
    );
    a.fails_with(4, &["key types", "text", "email"]);
    b.fails_with(4, &["key types"]);
    let (a, b) = link(
        &bench,
        &["--input", "a.csv", "--key", "k", "--output", "a.out", "--max-peer-rows", "2"],
        &["--input", "b.csv", "--key", "k", "--output", "b.out"],
    );
    a.fails_with(4, &["announced a set of 3", "at most 2"]);
    assert_ne!(b.code, 0);
    assert!(!bench.exists("a.out") && !bench.exists("b.out"));
    assert_eq!(bench.leftovers(), Vec::<String>::new());
}

#[test]
fn a_dry_run_says_what_it_would_cost_and_tell() {
    let bench = Bench::new();
    bench.write("a.csv", "k,v\na,1\nb,2\n");
    let plan = bench.run(&["--json", "link", "--dry-run", "--input", "a.csv", "--key", "k"]).object();
    assert_eq!(
        (&plan["job"], &plan["protocol"], &plan["count"]),
        (&json!("link"), &json!("link"), &json!(2))
    );
    let learns = plan["other_side_learns"].as_str().unwrap();
    assert!(learns.starts_with("that you have 2 distinct keys; nothing else"), "{learns}");
    let said =
        bench.run(&["link", "--dry-run", "--input", "a.csv", "--key", "k", "--security", "semi-honest"]);
    let text = said.success();
    assert!(
        text.contains("at most 16777216 distinct keys") && text.contains("if it follows the protocol"),
        "{text}"
    );
}

/// A connection that is cut, and one that changes a bit on its way, anywhere in a run: no side has an output, or both
/// have the right ones.
#[test]
fn a_run_that_breaks_off_leaves_no_output() {
    for (upstream, part) in [(true, 3), (true, 9), (false, 5), (false, 12), (true, 15), (false, 15)] {
        for harm in [Harm::Truncate(20_000 * part), Harm::Flip(20_000 * part)] {
            let bench = Bench::new();
            bench.write("a.csv", "k,v\na,1\nb,2\n");
            bench.write("b.csv", "k,v\nb,1\nc,2\n");
            let port = free_port();
            let (between, _) = proxy(port, harm, upstream);
            let [listen, connect] = [port, between].map(|port| format!("127.0.0.1:{port}"));
            let common = ["--insecure-plaintext", "--key", "k", "--timeout", "20"];
            let (a, b) = bench.run_both(
                &[&["link", "--listen", &listen, "--input", "a.csv", "--output", "a.out"], &common[..]]
                    .concat(),
                &[&["link", "--connect", &connect, "--input", "b.csv", "--output", "b.out"], &common[..]]
                    .concat(),
            );
            let written = [bench.exists("a.out"), bench.exists("b.out")];
            assert_eq!(written, [a.code == 0, b.code == 0], "{harm:?}: {a:?} {b:?}");
            assert!(a.code == 4 || b.code == 4, "{harm:?}: {a:?} {b:?}");
            assert_eq!(bench.leftovers(), Vec::<String>::new());
        }
    }
}
