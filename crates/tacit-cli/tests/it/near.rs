//! Types for near matches between two real processes: rows, words, refusals, checks, services. Generated people against a
//! second implementation are in `tools/keys/test_near.py`.

use crate::common::Bench;
use crate::common::town::{BUDGETS, Service, Town};
use serde_json::json;

const OURS: [&str; 2] = ["--key", "last:name~1,born:date~1"];
const THEIRS: [&str; 2] = ["--key", "nach:name~1,tag:date:DMY~1"];

fn people() -> Bench {
    let bench = Bench::new();
    bench.write(
        "a.csv",
        "last,born,n\nMeyer,1975-03-12,1\nSchmidt,1980-01-31,2\nLi,1990-05-05,3\nIto,1961-07-02,4\n,1961-07-02,5\n\
         Rossi,2001-11-30,6\n",
    );
    bench.write(
        "b.csv",
        "nach,tag,ort\nMEIER,3.12.1975,Oslo\nSchimdt,31.1.1990,Rome\nLe,5.5.1990,Bern\nTio,1.7.1961,Paris\n\
         Maier,12.3.1975,Ulm\nRosi,31.11.2001,Graz\n",
    );
    bench
}

/// One letter and an exchanged day, an exchange of letters and one digit, and an exchange of letters and one digit again
/// match; two letters of a short name, two errors in one name, and a day that does not exist do not.
const MATCHED: &str = "last,born,n\nMeyer,1975-03-12,1\nSchmidt,1980-01-31,2\nIto,1961-07-02,4\n";

#[test]
fn rows_match_by_a_common_variant_on_both_sides() {
    let bench = people();
    let ours =
        [&OURS[..], &["--result", "both", "--output", "a.out.csv", "--output-rest", "rest.csv"]].concat();
    let theirs = [&THEIRS[..], &["--result", "both", "--output", "b.out.csv"]].concat();
    let (a, b) = bench.psi(&ours, &theirs);
    let (a, b) = (a.object(), b.object());
    assert_eq!(bench.read("a.out.csv"), MATCHED);
    assert_eq!(
        bench.read("b.out.csv"),
        "nach,tag,ort\nMEIER,3.12.1975,Oslo\nSchimdt,31.1.1990,Rome\nTio,1.7.1961,Paris\n"
    );
    assert!(bench.read("rest.csv").contains("\nLi,1990-05-05,3\n,1961-07-02,5\nRossi,"));
    // Each variant counts: 6 and 8 by 9 and 8, 1 by 8, 4 by 9, and 5 by 8.
    let own = 6 * 9 + 8 * 8 + 8 + 4 * 9 + 5 * 8;
    assert_eq!((&a["own_keys"], &b["peer_keys"], &a["variants"]), (&json!(own), &json!(own), &json!(true)));
    assert_eq!((&a["matching_rows"], &b["matching_rows"]), (&json!(3), &json!(3)));
    assert_eq!((&a["rows_without_key"], &b["rows_without_key"]), (&json!(1), &json!(1)));
    let of = &a["identifiers"][0];
    assert_eq!(
        (&of["identifier"], &of["type"], &of["rows"]),
        (&json!("last+born"), &json!("name~1, date~1"), &json!(5))
    );
    assert_eq!((&of["distinct"], &of["rows_matched_by"]), (&json!(own), &json!(3)));
    assert_eq!(a["key"], "name~1, date~1");
    let learned = a["other_side_learned"].as_str().unwrap();
    for words in [
        &*format!("{own} distinct variants in all, each of which counts as a key"),
        "where matching values differ",
    ] {
        assert!(learned.contains(words), "{words}: {learned}");
    }
}

#[test]
fn columns_come_by_the_first_common_variant() {
    let bench = people();
    let give = [&THEIRS[..], &["--reveal", "payload", "--give", "ort", "--result", "peer"]].concat();
    let ask = [&OURS[..], &["--reveal", "payload:ort", "--output", "p.csv"]].concat();
    // Two of the sender's rows have a variant in common.
    let (_, b) = bench.psi(&ask, &give);
    assert!(b.code != 0 && b.err.contains("have the same key"), "{b:?}");
    let (a, b) = bench.psi(&ask, &[&give[..], &["--duplicates", "all"]].concat());
    assert_eq!(a.object()["matching_rows"], 3);
    let learned = b.object()["other_side_learned"].to_string();
    assert!(learned.contains("that you give for each variant that is"), "{learned}");
    let rows = bench.read("p.csv");
    let ends: Vec<&str> = rows.lines().skip(1).map(|line| line.rsplit(',').next().unwrap()).collect();
    assert_eq!(ends, ["Oslo", "Rome", "Paris"]);
}

#[test]
fn types_that_differ_end_the_run_and_what_they_cannot_do_is_refused() {
    let bench = people();
    let exact = ["--key", "nach:name,tag:date:DMY", "--result", "peer"];
    let (a, b) = bench.psi(&OURS, &exact);
    a.fails_with(4, &["--key types (yours", "name~1, date~1", "peer's"]);
    b.fails_with(4, &["--key types"]);
    let base = ["psi", "--listen", "127.0.0.1:1", "--input", "a.csv", "--insecure-plaintext"];
    let with = |more: &[&str]| bench.run(&[&base[..], more].concat());
    for kind in ["count", "sum:n"] {
        with(&[&OURS[..], &["--reveal", kind]].concat())
            .fails_with(2, &["--reveal: ", "counts once for each variant", "use one key of exact types"]);
    }
    with(&[&OURS[..], &["--memory", "1GiB"]].concat()).fails_with(
        2,
        &["--key: name~1 makes several keys of a row, and buckets take one of each; use name"],
    );
    with(&[&OURS[..], &["--tags", "x.tags"]].concat()).fails_with(
        2,
        &["--key: name~1 makes several keys of a row, and a tag file has one of each; use name"],
    );
    with(&["--key", "n:int~99,n:int~99"])
        .fails_with(2, &["--key: ", "makes at least 10000 variants of each row"]);
    bench
        .run(&["check", "--input", "a.csv", "--key", "n:int~99,n:int~99"])
        .fails_with(2, &["--key: ", "makes at least 10000 variants of each row"]);
    bench.run(&["check", "--input", "a.csv", "--key", "last~1"]).fails_with(
        3,
        &["no column is named `last~1`", "write `last:name~1`, `last:date~1` or `last:int~1`"],
    );
    for (wrong, words) in
        [("n:int~100", "`int~100`"), ("last:name~2", "`name~2`"), ("n:int~0", "give name~1")]
    {
        with(&["--key", wrong]).fails_with(2, &[words, "int~N with N from 1 to 99"]);
    }
    let question = "SELECT COUNT(*) FROM ours JOIN theirs ON ours.\"last:name~1\" = theirs.\"nach:name~1\"";
    bench
        .run(&["check", "--input", "a.csv", "--against", "b.csv", "--sql", question])
        .fails_with(2, &["a question joins by one of each; use name"]);
    bench.write("s", "0".repeat(64));
    bench
        .run(&[
            "tags",
            "publish",
            "--input",
            "a.csv",
            "--key",
            "born:date~1",
            "--out",
            "t.tags",
            "--private",
            "p.tags",
            "--seal-key",
            "s",
        ])
        .fails_with(2, &["a tag file has one of each; use date"]);
}

#[test]
fn a_check_says_how_many_variants_there_are_and_how_alike_rows_are() {
    let bench = people();
    let check = ["check", "--input", "b.csv", "--key", "nach:name~1", "--show-keys", "1"];
    let said = bench.run(&check);
    // Meier and Maier are near each other; Rosi and Rossi would be.
    for line in [
        "b.csv: 6 rows, 29 distinct variants (name~1), 1 duplicate, 0 rows with an empty key, 0 refused",
        "nach: 5.0 variants per row, 8 at most; 2 of 6 different rows of your own have a variant in common with another",
        "  meier",
    ] {
        assert!(said.success().lines().any(|said| said == line), "{line}: {said:?}");
    }
    let said = bench
        .run(&[&["--json"], &check[..], &["--against", "a.csv", "--against-key", "last:name~1"]].concat());
    let found = said.object();
    assert_eq!(
        found["identifiers"][0]["variants"],
        json!({ "per_row": 5.0, "most": 8, "different_rows": 6, "sharing_rows": 2 })
    );
    assert_eq!(found["matching_rows"], 4, "{found}");
    let said = bench.run(&[
        "check",
        "--input",
        "b.csv",
        "--key",
        "nach:name~1",
        "--against",
        "a.csv",
        "--against-key",
        "last:name",
    ]);
    said.fails_with(2, &["types differ (yours name~1, the other file's name)"]);
}

/// A service's terms say that variants count, its least and most numbers of keys are of these, and so is what is charged.
#[test]
fn a_service_counts_variants_as_keys_and_rows() {
    let town = Town::new();
    let bench = &town.bench;
    bench.write("customers.csv", "email,amount\nmeyer,1\nschmidt,2\n");
    bench.write("kunden.csv", "mail\nmeier\nli\n");
    let job = "[jobs.match]\nsource = \"customers\"\nallow = [\"bob\"]\nreveal = [\"rows\"]\nresult = [\"peer\"]\n\
        max_peer_keys = 7\nmin_peer_keys = 7\nruns_a_day = 50\n";
    town.policy("", BUDGETS, job);
    let policy = bench.read("policy.toml").replace("\"email\"", "\"email:name~1\"");
    bench.write("policy.toml", &policy);
    let check = bench.run(&["serve", "--policy", "policy.toml", "--check"]);
    for words in [
        "email, compared by variants (name~1), each of which counts as a key and as a row",
        "for each variant of its own rows whether",
        "has 14 distinct keys in 2 rows today",
    ] {
        assert!(check.success().contains(words), "{words}: {check:?}");
    }
    let service = Service::start(bench);
    let with = |more: &[&'static str]| [&["--key", "mail:name~1"], more].concat();
    let terms = town.granted("bob", "match", &with(&["--dry-run"]));
    assert_eq!((&terms["offer"]["service_keys"], &terms["own_keys"]), (&json!(14), &json!(7)));
    let learned = terms["words"].to_string();
    assert!(learned.contains("for each variant of its own rows whether it is among them"), "{learned}");
    let left = terms["offer"]["left"]["rows"].as_u64().unwrap();
    let rows = town.granted("bob", "match", &with(&["--output", "o.csv"]));
    assert_eq!((bench.read("o.csv").as_str(), &rows["matching_rows"]), ("mail\nmeier\n", &json!(1)));
    let terms = town.granted("bob", "match", &with(&["--dry-run"]));
    assert_eq!(
        terms["offer"]["left"]["rows"].as_u64().unwrap(),
        left - 14,
        "all variants can have been revealed to a client that cheats"
    );
    // One letter more is a variant more, and above the most; one less is below the least.
    for (name, keys) in [("meiers", "8"), ("meie", "6")] {
        bench.write("kunden.csv", format!("mail\n{name}\nli\n"));
        let said = town.ask("bob", "match", &with(&["--output", "o2.csv"]));
        assert!(said.code != 0 && said.err.contains(keys) && said.err.contains('7'), "{said:?}");
    }
    assert!(!bench.exists("o2.csv"));
    service.end();
}
