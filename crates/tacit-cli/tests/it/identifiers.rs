//! `--or-key` between two real processes: matches by any of several identifiers, settings that differ, results that
//! are refused, buckets, services. Generated tables against a second implementation are in `tools/keys`.

use crate::common::town::{BUDGETS, Service, Town};
use crate::common::{Bench, free_port};
use serde_json::json;

const OURS: [&str; 6] =
    ["--key", "mail:email", "--or-key", "tel:phone:NL", "--or-key", "family:name,given:name,born:date"];
const THEIRS: [&str; 6] =
    ["--key", "adresse:email", "--or-key", "fon:phone:NL", "--or-key", "nach:name,vor:name,tag:date:DMY"];

fn people() -> Bench {
    let bench = Bench::new();
    bench.write(
        "a.csv",
        "mail,tel,family,given,born,n\n\
         Ann@Example.org,06 12345678,Müller,Ann,1980-02-29,1\n\
         ,0612345679,Rossi,Bo,1975-07-01,2\n\
         cleo@example.org,,Sørensen,Cleo,1990-11-11,3\n\
         ,,,,,4\n\
         ann@example.org,0612345680,Ito,Dan,2001-01-01,5\n\
         no address,call me,Only,Name,1999-09-09,6\n",
    );
    bench.write(
        "b.csv",
        "adresse,fon,nach,vor,tag,ort\n\
         ann@example.org,,x,y,1.1.1980,Oslo\n\
         zed@example.org,+31612345679,Rossi,Bo,1.7.1975,Rome\n\
         other@example.org,,SORENSEN,Cleo,11.11.1990,Bern\n\
         ,0612345678,q,,,Paris\n",
    );
    bench
}

const MATCHED: &str = "mail,tel,family,given,born,n,by\n\
    Ann@Example.org,06 12345678,Müller,Ann,1980-02-29,1,mail\n\
    ,0612345679,Rossi,Bo,1975-07-01,2,tel\n\
    cleo@example.org,,Sørensen,Cleo,1990-11-11,3,family+given+born\n\
    ann@example.org,0612345680,Ito,Dan,2001-01-01,5,mail\n";

#[test]
fn a_row_matches_by_its_first_common_identifier_on_both_sides() {
    let bench = people();
    let ours = [&OURS[..], &["--result", "both", "--output", "a.out.csv", "--matched-by", "by"]].concat();
    let theirs = [&THEIRS[..], &["--result", "both", "--output", "b.out.csv", "--matched-by", "by"]].concat();
    let (a, b) = bench.psi(&ours, &theirs);
    let (a, b) = (a.object(), b.object());
    assert_eq!(bench.read("a.out.csv"), MATCHED);
    let ends = |name: &str| -> Vec<String> {
        bench.read(name).lines().skip(1).map(|line| line.rsplit(',').next().unwrap().to_owned()).collect()
    };
    assert_eq!(ends("b.out.csv"), ["adresse", "fon", "nach+vor+tag", "fon"]);
    assert_eq!((&a["matches"], &b["matches"]), (&json!(5), &json!(5)));
    assert_eq!((&a["matching_rows"], &b["matching_rows"]), (&json!(4), &json!(4)));
    assert_eq!((&a["own_keys"], &a["peer_keys"], &a["union_keys"]), (&json!(10), &json!(8), &json!(13)));
    assert_eq!((&a["rows_without_key"], &a["duplicates"]), (&json!(1), &json!(1)));
    let mail = json!({"identifier": "mail", "type": "email", "rows": 3, "distinct": 2, "matches": 1, "rows_matched_by": 2});
    assert_eq!(a["identifiers"][0], mail);
    assert_eq!(a["key"], "email or phone or name, name, date");
    let learned = a["other_side_learned"].as_str().unwrap();
    assert!(
        learned.contains("10 distinct identifiers in all") && learned.contains("for each of its own"),
        "{learned}"
    );
}

#[test]
fn columns_come_by_the_identifier_that_matches_and_buckets_give_the_same_rows() {
    let bench = people();
    let more = ["--reveal", "payload:ort", "--output", "p.csv", "--matched-by", "by"];
    let (a, b) = bench.psi(
        &[&OURS[..], &more].concat(),
        &[&THEIRS[..], &["--reveal", "payload", "--give", "ort", "--result", "peer"]].concat(),
    );
    assert_eq!(a.object()["matching_rows"], 4);
    let learned = b.object()["other_side_learned"].to_string();
    assert!(learned.contains("that you give for each identifier that is"), "{learned}");
    let rows = bench.read("p.csv");
    let ends: Vec<&str> =
        rows.lines().map(|line| line.split_at(line.rfind(",by").or(line.rfind(',')).unwrap()).1).collect();
    assert_eq!(ends, [",by,ort", ",Oslo", ",Rome", ",Bern", ",Oslo"], "{rows}");
    // A row that shares an identifier with another one is a key with two rows.
    let give = [&OURS[..], &["--reveal", "payload", "--give", "n", "--result", "peer"]].concat();
    let (a, _) = bench.psi(&give, &[&THEIRS[..], &["--reveal", "payload:n", "--output", "n.csv"]].concat());
    assert!(a.code != 0 && a.err.contains("have the same key"), "{a:?}");

    let on_disk = ["--memory", "1GiB", "--buckets", "4"];
    let ours = [&OURS[..], &on_disk, &["--output", "m.csv", "--output-all", "all.csv", "--matched-by", "by"]]
        .concat();
    let (a, _) = bench.psi(&ours, &[&THEIRS[..], &on_disk, &["--result", "peer"]].concat());
    let a = a.object();
    assert_eq!(bench.read("m.csv"), MATCHED);
    assert_eq!((&a["matches"], &a["matching_rows"], &a["duplicates"]), (&json!(5), &json!(4), &json!(1)));
    assert_eq!(a["identifiers"][2]["rows_matched_by"], 1);
    assert!(bench.read("all.csv").contains("\n,,,,,4,false,\n"));
}

#[test]
fn identifiers_that_differ_are_named_with_their_place() {
    let bench = people();
    let cases: [(&[&str], &str); 5] = [
        (&["--key", "adresse:email"], "identifiers of --key and --or-key (yours 3, peer's 1)"),
        (
            &["--key", "adresse:email", "--or-key", "fon:phone:NL"],
            "identifiers of --key and --or-key (yours 3, peer's 2)",
        ),
        (
            &[
                "--key",
                "fon:phone:NL",
                "--or-key",
                "adresse:email",
                "--or-key",
                "nach:name,vor:name,tag:date:DMY",
            ],
            "--key types (yours email, peer's phone)",
        ),
        (
            &[
                "--key",
                "adresse:email",
                "--or-key",
                "adresse:email",
                "--or-key",
                "nach:name,vor:name,tag:date:DMY",
            ],
            "--or-key identifier 2 types (yours phone, peer's email)",
        ),
        (
            &[
                "--key",
                "adresse:email",
                "--or-key",
                "fon:phone:NL",
                "--or-key",
                "x=nach:name,vor:name,tag:date:DMY",
            ],
            "--or-key identifier 3 labels (yours",
        ),
    ];
    for (theirs, words) in cases {
        let (a, b) = bench.psi(&OURS, &[theirs, &["--result", "peer"]].concat());
        a.fails_with(4, &["settings differ: ", words]);
        b.fails_with(
            4,
            &["settings differ: ", "identifier"]
                .map(|word| if words.starts_with("--key") { "settings differ: " } else { word }),
        );
        assert!(!a.err.contains("version of keys"), "{a:?}");
    }
}

#[test]
fn what_several_identifiers_cannot_do_is_refused_in_a_sentence() {
    let bench = people();
    let base = ["psi", "--listen", "127.0.0.1:1", "--input", "a.csv", "--insecure-plaintext"];
    let with = |more: &[&str]| bench.run(&[&base[..], &OURS, more].concat());
    for kind in ["count", "sum:n", "mean:n"] {
        with(&["--reveal", kind])
            .fails_with(2, &["--reveal: ", "3 identifiers", "count twice", "use one key"]);
    }
    with(&["--reveal", "max:n", "--security", "semi-honest"])
        .fails_with(2, &["max is a number over matching keys"]);
    with(&["--matched-by", "by"]).fails_with(2, &["--matched-by: ", "--output-all"]);
    with(&["--matched-by", "n", "--output", "o.csv"]).fails_with(2, &["column `n` already"]);
    with(&["--matched-by", "n", "--output", "o.csv", "--memory", "1GiB"])
        .fails_with(2, &["column `n` already"]);
    with(&["--tags", "x.tags"]).fails_with(2, &["--or-key: a tag file has one key"]);
    let many: Vec<&str> = (0..14).flat_map(|_| ["--or-key", "n:int"]).collect();
    with(&many).fails_with(2, &["--or-key: a row has at most 16 identifiers"]);
    with(&["--or-key", "tel:fone"]).fails_with(2, &["`fone` is not a key type"]);
    assert!(!bench.exists("o.csv"));
}

#[test]
fn a_check_counts_each_identifier_and_rehearses_the_run() {
    let bench = people();
    let against = ["--against", "b.csv", "--against-key", "adresse:email"];
    let more = ["--against-or-key", "fon:phone:NL", "--against-or-key", "nach:name,vor:name,tag:date:DMY"];
    let check = ["check", "--input", "a.csv", "--show-keys", "2"];
    let said = bench.run(&[&check[..], &OURS, &against, &more].concat());
    for line in [
        "a.csv: 6 rows, 10 distinct identifiers (email or phone or name, name, date), 1 duplicate, 1 row with none of them",
        "  mail: 3 rows, 2 distinct",
        "  family+given+born: 5 rows, 5 distinct",
        "   | +31612345679 | rossi | bo | 1975-07-01",
        "4 rows of yours with a match: 2 by mail, 1 by tel, 1 by family+given+born",
        "5 identifiers in common: 1 of mail, 2 of tel, 2 of family+given+born",
    ] {
        assert!(said.success().lines().any(|said| said == line), "{line}: {said:?}");
    }
    let fewer = [&check[..], &OURS, &against, &more[..2]].concat();
    bench
        .run(&fewer)
        .fails_with(2, &["--against-or-key: your rows have 3 identifiers, the other file's 2 identifiers"]);
    bench.run(&["check", "a.csv", "--or-key", "tel"]).fails_with(2, &["--or-key: ", "give --key too"]);
}

#[test]
fn a_configuration_has_identifiers_and_the_page_says_what_was_learned() {
    let bench = people();
    bench.write(
        "job.toml",
        "[psi]\ninput = \"a.csv\"\nkey = [\"mail:email\"]\nor-key = [\"tel:phone:NL\", \"family:name,given:name,born:date\"]\n\
         matched-by = \"by\"\noutput = \"o.csv\"\n",
    );
    let address = format!("127.0.0.1:{}", free_port());
    let a = [
        "--config",
        "job.toml",
        "psi",
        "--listen",
        &address,
        "--insecure-plaintext",
        "--report",
        "page.html",
    ];
    let b = ["psi", "--connect", &address, "--input", "b.csv", "--insecure-plaintext", "--result", "peer"];
    let (a, _) = bench.run_both(&a, &[&b[..], &THEIRS].concat());
    let text = a.success();
    assert!(
        text.starts_with("4 rows of yours with a match: 2 by mail, 1 by tel, 1 by family+given+born\n"),
        "{text}"
    );
    assert!(text.contains("the peer: 8 distinct identifiers, 13 on both sides together"), "{text}");
    assert_eq!(bench.read("o.csv"), MATCHED);
    let page = bench.read("page.html");
    for words in [
        "mail (email), or tel (phone), or family (name), given (name), born (date)",
        "for each of its identifiers whether the other side has it too (5 identifiers in common, 4 rows with a match)",
        "10 distinct identifiers",
    ] {
        assert!(page.contains(words), "{words}: {page}");
    }
}

/// A service matches by several identifiers, says so in its terms, and counts each as a key.
#[test]
fn a_service_counts_identifiers_as_keys() {
    let town = Town::new();
    let bench = &town.bench;
    bench.write("customers.csv", "email,tel,amount\na@x.org,1,1\nb@x.org,2,2\n,3,3\n");
    bench.write("kunden.csv", "mail,fon\na@x.org,9\n,2\nz@x.org,3\n,\n");
    let job = "[jobs.match]\nsource = \"customers\"\nallow = [\"bob\"]\nreveal = [\"rows\"]\nresult = [\"peer\"]\n\
        max_peer_keys = 1000\nruns_a_day = 50\n";
    let source = format!("or_keys = [\"tel:int\"]\n{BUDGETS}");
    town.policy("", &source, job);
    let check = bench.run(&["serve", "--policy", "policy.toml", "--check"]);
    for words in [
        "identifiers email or tel, each of which counts as a key",
        "for each of its own identifiers whether",
        "has 5 distinct keys in 3 rows today",
    ] {
        assert!(check.success().contains(words), "{words}: {check:?}");
    }
    let service = Service::start(bench);
    let any = ["--or-key", "fon:int"];
    let terms = town.granted("bob", "match", &[&any[..], &["--dry-run"]].concat());
    assert_eq!((&terms["offer"]["service_keys"], &terms["own_keys"]), (&json!(5), &json!(5)));
    assert_eq!(terms["offer"]["key_types"], "text or int");
    let learned = terms["words"].to_string();
    assert!(learned.contains("for each of its own identifiers whether it is among them"), "{learned}");
    let left = terms["offer"]["left"]["rows"].as_u64().unwrap();
    let rows =
        town.granted("bob", "match", &[&any[..], &["--output", "o.csv", "--matched-by", "by"]].concat());
    assert_eq!(bench.read("o.csv"), "mail,fon,by\na@x.org,9,mail\n,2,fon\nz@x.org,3,fon\n");
    assert_eq!((&rows["matches"], &rows["matching_rows"]), (&json!(3), &json!(3)));
    let terms = town.granted("bob", "match", &[&any[..], &["--dry-run"]].concat());
    assert_eq!(
        terms["offer"]["left"]["rows"].as_u64().unwrap(),
        left - 5,
        "five keys can have been revealed"
    );
    let theirs = "the service matches by 2 identifiers (text; int), your rows by";
    town.ask("bob", "match", &[]).fails_with(2, &["--key", theirs, "1 identifier (text); give the same"]);
    town.ask("bob", "match", &["--key", "mail,fon"]).fails_with(2, &[theirs, "1 identifier (text, text)"]);
    town.ask("bob", "match", &["--or-key", "fon"]).fails_with(2, &[theirs, "2 identifiers (text; text)"]);
    service.end();
    town.verify("bob.records", &["--key", "bob.pub", "--against", "state/records"]);
    // A policy whose identifiers make no sense is refused with its line.
    town.policy("", &format!("or_keys = [\"tel:fone\"]\n{BUDGETS}"), job);
    let said = bench.run(&["serve", "--policy", "policy.toml", "--check"]);
    assert!(said.code != 0 && said.err.contains("`or_keys`: `fone` is not a key type"), "{said:?}");
    // Columns tell which identifiers are common, too.
    let columns = job.replace("allow = ", "give = [\"amount\"]\nallow = ").replace("\"rows\"", "\"payload\"");
    town.policy("", &source, &columns);
    let said = bench.run(&["serve", "--policy", "policy.toml", "--check"]);
    let words = "amount, with what the rows hold there, and for each of its own identifiers whether";
    assert!(said.success().contains(words), "{said:?}");
    let counts = job.replace("\"rows\"", "\"count\"");
    town.policy("", &source, &counts);
    let said = bench.run(&["serve", "--policy", "policy.toml", "--check"]);
    assert!(said.code != 0 && said.err.contains("count is a number over matching keys"), "{said:?}");
}
