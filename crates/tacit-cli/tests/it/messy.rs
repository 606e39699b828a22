//! Tables as people have them: words for nothing, names with commas, cells with lines, outputs under other
//! programs' names.

use crate::common::{Bench, Said, free_port};
use serde_json::Value;

/// Both sides of an intersection with --json; `own` is what each says besides.
fn both(bench: &Bench, own: [&[&str]; 2]) -> (Said, Said) {
    let address = format!("127.0.0.1:{}", free_port());
    let alice = ["--json", "psi", "--listen", &address, "--identity", "alice.key", "--peer", "bob.pub"];
    let bob = ["--json", "psi", "--connect", &address, "--identity", "bob.key", "--peer", "alice.pub"];
    bench.run_both(&[&alice[..], own[0]].concat(), &[&bob[..], own[1]].concat())
}

fn json(said: &Said) -> Value {
    serde_json::from_str(said.success().trim()).unwrap()
}

/// `tacit psi` where nobody is: it must fail before it needs the peer.
fn alone(bench: &Bench, words: &[&str]) -> Said {
    let address = format!("127.0.0.1:{}", free_port());
    let peer = ["psi", "--listen", &address, "--identity", "alice.key", "--peer", "bob.pub"];
    bench.run(&[&peer[..], &["--connect-timeout", "2"], words].concat())
}

#[test]
fn words_for_nothing_match_nothing_once_they_are_named() {
    let bench = Bench::with_keys();
    bench.write("t.csv", "mail,plan\nann@example.com,1\nNULL,2\n\\N,3\nn/a,4\nNULL,5\n");
    let words = ["--input", "t.csv", "--key", "mail", "--output"];
    let (a, b) =
        both(&bench, [&[&words[..4], &["--result", "peer"]].concat(), &[&words[..], &["lax.csv"]].concat()]);
    let found = json(&b);
    assert_eq!((&found["matches"], &found["output_rows"]), (&4.into(), &5.into()), "{found}");
    let hints = found["hints"].to_string();
    for word in ["`NULL` (2 rows)", "`\\\\N` (1 row)", "`n/a` (1 row)", "--null"] {
        assert!(hints.contains(word), "{word} {hints}");
    }
    a.success();
    let null = ["--null", "NULL,\\N,n/a"];
    let rest = ["--output-rest", "rest.csv"];
    let (a, b) = both(
        &bench,
        [
            &[&words[..4], &["--result", "peer"], &null[..]].concat(),
            &[&words[..], &["strict.csv"], &null[..], &rest[..]].concat(),
        ],
    );
    a.success();
    let found = json(&b);
    assert_eq!((&found["matches"], &found["rows_without_key"]), (&1.into(), &4.into()), "{found}");
    assert!(!found["hints"].to_string().contains("nothing"), "{found}");
    assert_eq!(bench.read("strict.csv"), "mail,plan\nann@example.com,1\n");
    // The other rows, which have no key.
    assert_eq!(bench.read("rest.csv"), "mail,plan\nNULL,2\n\\N,3\nn/a,4\nNULL,5\n");
    assert_eq!((&found["rest"], &found["rest_rows"]), (&"rest.csv".into(), &4.into()), "{found}");
    let said = bench.run(&["check", "--input", "t.csv", "--key", "mail"]);
    assert!(
        said.success().contains("note: in column mail keys look like words for an empty cell"),
        "{said:?}"
    );
    bench.write("mails.csv", "mail\na@x.org\nb@x.org\nc@x.org\n");
    let said = bench.run(&["check", "--input", "mails.csv", "--key", "mail"]);
    assert!(
        said.success().contains("looks like the type email")
            && said.out.contains("named mail:email on both sides")
    );
}

#[test]
fn columns_have_any_name_and_no_two_the_same() {
    let bench = Bench::with_keys();
    bench.write("a.csv", "\"last, first\",y,peer_y\n\"Lee, Ann\",1,2\n");
    bench.write("b.csv", "\"the \"\"name\"\"\",y,\"net: price\"\n\"lee, ann\",3,4\nbob,5,6\n");
    let ours = ["--input", "a.csv", "--key", "\"last, first\"", "--reveal", "payload:y,\"net: price\""];
    let theirs = ["--input", "b.csv", "--key", "\"the \"\"name\"\"\":text", "--reveal", "payload"];
    let gives = ["--give", "y,\"net: price\"", "--result", "peer"];
    for (target, expected) in
        [("o.csv", "\"last, first\",y,peer_y,peer_y_2,net: price\n\"Lee, Ann\",1,2,3,4\n"), ("o.parquet", "")]
    {
        let (a, b) =
            both(&bench, [&[&ours[..], &["--output", target]].concat(), &[&theirs[..], &gives[..]].concat()]);
        a.success();
        b.success();
        if !expected.is_empty() {
            assert_eq!(bench.read(target), expected);
        }
    }
}

#[test]
fn a_given_cell_of_many_lines_or_bytes_stays_here_unless_allowed() {
    let bench = Bench::with_keys();
    bench.write("lines.csv", "k,nick\na,\"x\ny\"\nb,z\n");
    bench.write("long.csv", format!("k,nick\nb,z\na,{}\n", "x".repeat(70_000)));
    let give = ["--key", "k", "--reveal", "payload", "--give", "nick", "--result", "peer"];
    let of = |file: &str, more: &[&str]| alone(&bench, &[&["--input", file], &give[..], more].concat());
    of("lines.csv", &[]).fails_with(3, &["lines.csv", "line 2", "`nick`", "more than one line"]);
    of("long.csv", &[]).fails_with(3, &["long.csv", "line 3", "65536 bytes"]);
    bench.write("asks.csv", "k\na\n");
    let asks = ["--input", "asks.csv", "--key", "k", "--reveal", "payload:nick", "--output", "o.csv"];
    let gives = [&["--input", "lines.csv", "--allow-line-ends"], &give[..]].concat();
    let (a, b) = both(&bench, [&asks, &gives]);
    a.success();
    b.success();
    assert_eq!(bench.read("o.csv"), "k,nick\na,\"x\ny\"\n");
}

#[test]
fn outputs_have_no_name_of_what_they_are_not() {
    let bench = Bench::with_keys();
    bench.write("t.csv", "k\na\n");
    for name in ["o.xls", "o.json", "o.ORC", "o.csv.xz"] {
        let said = alone(&bench, &["--input", "t.csv", "--key", "k", "--output", name]);
        said.fails_with(3, &[name, "tacit cannot write", ".parquet"]);
        let said = alone(&bench, &["--input", "t.csv", "--key", "k", "--output-rest", name]);
        said.fails_with(3, &[name]);
        assert!(!bench.exists(name));
    }
    let both = ["--input", "t.csv", "--key", "k", "--output", "o.csv", "--output-rest", "o.csv"];
    alone(&bench, &both).fails_with(2, &["name the same file"]);
    let peer = ["--input", "t.csv", "--key", "k", "--output-rest", "o.csv", "--result", "peer"];
    alone(&bench, &peer).fails_with(2, &["--output-rest"]);
}

/// What a dialect cannot hold of the peer's cells is known before the peer is called, or left empty and counted.
#[test]
fn a_dialect_that_cannot_hold_the_peers_cells_is_refused_or_leaves_them_empty() {
    let bench = Bench::with_keys();
    bench.write("plain.csv", "k,n\na,1\nb,2\nc,3\n");
    bench.write("peer.csv", "k,note,more\na,\"x,y\",1\nb,z,\"2\n3\"\nd,w,4\n");
    let asks = ["--input", "plain.csv", "--key", "k", "--quote", "none", "--reveal", "payload:note,more"];
    let said = alone(&bench, &[&asks[..], &["--output", "o.csv"]].concat());
    said.fails_with(3, &["o.csv", "cannot contain every cell of the peer's", "--unfit null", ".parquet"]);
    let said = alone(&bench, &[&asks[..], &["--output-all", "o.csv"]].concat());
    said.fails_with(3, &["o.csv", "every cell"]);
    let gives = ["--input", "peer.csv", "--key", "k", "--reveal", "payload", "--give", "note,more"];
    let gives = [&gives[..], &["--result", "peer", "--allow-line-ends"]].concat();
    let lax = [&asks[..], &["--output", "o.csv", "--output-all", "all.csv", "--unfit", "null"]].concat();
    let (a, b) = both(&bench, [&lax, &gives]);
    b.success();
    assert_eq!(bench.read("o.csv"), "k,n,note,more\na,1,,1\nb,2,z,\n");
    assert_eq!(bench.read("all.csv"), "k,n,matched,note,more\na,1,true,,1\nb,2,true,z,\nc,3,false,,\n");
    assert_eq!(json(&a)["cells_left_empty"], 4);
    // A file of columns holds everything.
    let (a, b) = both(&bench, [&[&asks[..], &["--output", "o.parquet"]].concat(), &gives]);
    b.success();
    assert_eq!(json(&a)["cells_left_empty"], 0);
}

#[test]
fn cells_of_the_peers_are_escaped_as_the_file_is() {
    let bench = Bench::with_keys();
    bench.write("e.csv", "k,n\n\"a\\\"1\",1\n");
    bench.write("peer.csv", "k,note\n\"a\"\"1\",\"say \"\"hi\"\", \\n\"\n");
    let asks = ["--input", "e.csv", "--key", "k", "--escape", "\\", "--reveal", "payload:note"];
    let gives =
        ["--input", "peer.csv", "--key", "k", "--reveal", "payload", "--give", "note", "--result", "peer"];
    let (a, b) = both(&bench, [&[&asks[..], &["--output", "o.csv"]].concat(), &gives]);
    a.success();
    b.success();
    assert_eq!(bench.read("o.csv"), "k,n,note\n\"a\\\"1\",1,\"say \\\"hi\\\", \\\\n\"\n");
    // It is read as what the peer gave.
    let said =
        bench.run(&["check", "--input", "o.csv", "--key", "note", "--escape", "\\", "--show-keys", "1"]);
    assert!(said.success().contains(r#"say \"hi\", \\n"#), "{said:?}");
}

#[test]
fn all_rows_come_in_one_file_with_a_column_that_says_which_match() {
    let bench = Bench::with_keys();
    bench.write("a.csv", "k,matched\na,1\n,2\nb,3\na,4\n");
    bench.write("b.csv", "k\nA\nz\n");
    let ours = ["--input", "a.csv", "--key", "k", "--output", "o.csv", "--output-rest", "r.csv"];
    let theirs = ["--input", "b.csv", "--key", "k", "--result", "peer"];
    for more in [&[][..], &["--memory", "1GiB"]] {
        for (name, text) in [
            ("all.csv", "k,matched,matched_2\na,1,true\n,2,false\nb,3,false\na,4,true\n"),
            ("all.parquet", ""),
        ] {
            let words = [&ours[..], &["--output-all", name, "--overwrite"], more].concat();
            let (a, b) = both(&bench, [&words, &[&theirs[..], more].concat()]);
            b.success();
            let found = json(&a);
            assert_eq!((&found["all"], &found["all_rows"]), (&name.into(), &4.into()), "{found}");
            assert_eq!((&found["output_rows"], &found["rest_rows"]), (&2.into(), &2.into()), "{found}");
            if !text.is_empty() {
                assert_eq!(bench.read(name), text);
                assert_eq!(bench.read("r.csv"), "k,matched\n,2\nb,3\n");
            }
        }
    }
    let said = bench.run(&["check", "--input", "all.parquet", "--key", "matched_2", "--show-keys", "4"]);
    assert!(said.success().contains("  true\n  false\n  false\n  true"), "{said:?}");
    let peer = ["--input", "a.csv", "--key", "k", "--output-all", "n.csv", "--result", "peer"];
    alone(&bench, &peer).fails_with(2, &["--output-all"]);
    let count = ["--input", "a.csv", "--key", "k", "--output-all", "n.csv", "--reveal", "count"];
    alone(&bench, &count).fails_with(2, &["--output-all", "reveals no rows"]);
}
