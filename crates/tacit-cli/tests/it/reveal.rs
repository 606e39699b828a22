//! What `tacit psi --reveal` gives, between two real processes, against plain joins written here.

use crate::common::{Bench, Said, free_port};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use tacit::two_pc::circuit::{bristol, named};

/// A shop's orders `id,email,amount`: three rows for every tenth customer, and some cells without a number.
fn orders(numbers: impl IntoIterator<Item = u32>) -> String {
    let mut out = "id,email,amount\n".to_owned();
    for number in numbers {
        for copy in 0..if number % 10 == 0 { 3 } else { 1 } {
            let amount = match number % 7 {
                3 => String::new(),
                _ => (i64::from(number) * 1001 - 40_000 * i64::from(copy)).to_string(),
            };
            out += &format!("{number}-{copy},user{number}@example.com,{amount}\n");
        }
    }
    out
}

/// An insurer's customers `mail,city,note`.
fn customers(numbers: impl IntoIterator<Item = u32>) -> String {
    let row = |n: u32| format!("USER{n}@Example.com,\"City, {}\",{}\n", n % 13, "x".repeat(n as usize % 5));
    "mail,city,note\n".to_owned() + &numbers.into_iter().map(row).collect::<String>()
}

/// The rows of a table, by a reader of its own: quotes and commas alone.
fn csv_of(text: &str) -> Vec<Vec<String>> {
    text.lines()
        .map(|line| {
            let (mut cells, mut quoted) = (vec![String::new()], false);
            for character in line.chars() {
                match character {
                    '"' => quoted = !quoted,
                    ',' if !quoted => cells.push(String::new()),
                    other => cells.last_mut().unwrap().push(other),
                }
            }
            cells
        })
        .collect()
}

/// Both sides, the shop listening; `shop` and `insurer` are their options beside file and key.
fn run(bench: &Bench, shop: &[&str], insurer: &[&str]) -> (Said, Said) {
    let address = format!("127.0.0.1:{}", free_port());
    let fixed = |how, input, key| {
        vec!["--json", "psi", how, &address, "--insecure-plaintext", "--input", input, "--key", key]
    };
    let (mut a, mut b) = (fixed("--listen", "shop.csv", "email"), fixed("--connect", "insurer.csv", "mail"));
    a.extend(shop);
    b.extend(insurer);
    let said = bench.run_both(&a, &b);
    assert!(bench.leftovers().is_empty());
    said
}

fn object(said: &Said) -> Value {
    serde_json::from_str(said.success().trim()).unwrap()
}

/// Files of both sides and what a plain join says: common keys, and the shop's rows of those.
fn bench(shop: impl IntoIterator<Item = u32>, insurer: impl IntoIterator<Item = u32>) -> (Bench, Plain) {
    let bench = Bench::new();
    let (shop, insurer) = (orders(shop), customers(insurer));
    bench.write("shop.csv", &shop);
    bench.write("insurer.csv", &insurer);
    let keys = |table: &str, column: usize| -> BTreeSet<String> {
        csv_of(table).into_iter().skip(1).map(|row| row[column].to_lowercase()).collect()
    };
    let common: BTreeSet<String> = keys(&shop, 1).intersection(&keys(&insurer, 0)).cloned().collect();
    let rows = csv_of(&shop).into_iter().skip(1).filter(|row| common.contains(&row[1])).collect();
    (bench, Plain { common, rows })
}

struct Plain {
    common: BTreeSet<String>,
    rows: Vec<Vec<String>>,
}

impl Plain {
    fn amounts(&self) -> Vec<i64> {
        self.rows.iter().filter_map(|row| row[2].parse().ok()).collect()
    }
}

const SEMI: [&str; 2] = ["--security", "semi-honest"];

fn with<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&SEMI[..], more].concat()
}

/// A giver chooses how wide its cells are; the asker says how much it takes, and is told before it does.
#[test]
fn wider_columns_than_are_taken_are_refused_by_both_sides() {
    let (bench, _) = bench(0..10, 5..15);
    bench.write("insurer.csv", format!("mail,city,note\nuser7@example.com,Oslo,{}\n", "x".repeat(70_000)));
    let insurer = ["--reveal", "payload", "--give", "city,note", "--result", "peer", "--max-cell", "128KiB"];
    let (shop, other) = run(&bench, &["--reveal", "payload:note", "--output", "out.csv"], &insurer);
    shop.fails_with(4, &["70021 bytes per key", "more than the 65536 allowed", "--max-cell"]);
    other.fails_with(4, &["fewer bytes per key"]);
    let (shop, other) =
        run(&bench, &["--reveal", "payload:note", "--output", "out.csv", "--max-cell", "128KiB"], &insurer);
    assert_eq!(object(&shop)["output_rows"], 1);
    other.success();
    // Columns that are narrow are taken, whatever else the giver would give.
    let (shop, _) = run(&bench, &["--reveal", "payload:city", "--output", "city.csv"], &insurer);
    assert_eq!(object(&shop)["output_rows"], 1);
    let words = ["psi", "--input", "shop.csv", "--key", "email", "--reveal", "payload:city", "--dry-run"];
    let dry = bench.run(&words);
    assert!(dry.success().contains("may have 65536 bytes per key"), "{}", dry.success());
}

#[test]
fn counts_sums_and_means_are_those_of_a_plain_join() {
    let sizes = [(0..0, 0..5), (3..4, 3..4), (0..2, 1..9), (0..700, 500..1100), (0..33, 40..70)];
    for (shop, insurer) in sizes {
        let (bench, plain) = bench(shop, insurer);
        let amounts = plain.amounts();
        let sum: i64 = amounts.iter().sum();
        let counted: BTreeSet<&String> =
            plain.rows.iter().filter(|row| !row[2].is_empty()).map(|row| &row[1]).collect();
        for (result, converse) in [("both", "both"), ("me", "peer"), ("peer", "me")] {
            let sides = |kind: &'static str| {
                let more: &[&str] = if kind == "count" || result == "peer" { &[] } else { &TO_OWNER };
                let shop = with(&["--reveal", kind, "--result", result]);
                let insurer = with(&["--reveal", kind, "--result", converse]);
                ([&shop[..], more].concat(), [&insurer[..], more].concat())
            };
            let (shop, insurer) = sides("count");
            let (a, b) = run(&bench, &shop, &insurer);
            let (shop, insurer) = sides("sum:amount");
            let (c, d) = run(&bench, &[&shop[..], &["--give", "amount"]].concat(), &insurer);
            let (shop, insurer) = sides("mean:amount");
            let (e, f) = run(&bench, &[&shop[..], &["--give", "amount"]].concat(), &insurer);
            for (said, gets) in [(a, result), (b, converse)] {
                let told = object(&said);
                let gets = gets != "peer";
                assert_eq!(told["count"], if gets { Value::from(plain.common.len()) } else { Value::Null });
                assert!(told.get("matches").is_none() && told.get("output").is_none());
                assert_eq!(told["reveal"], "count");
            }
            for (said, gets) in [(c, result), (d, converse)] {
                let told = object(&said);
                assert_eq!(told["sum"], if gets != "peer" { Value::from(sum) } else { Value::Null });
                assert!(told.get("count").is_none() && told.get("rows").is_none());
            }
            for (said, gets) in [(e, result), (f, converse)] {
                let told = object(&said);
                if gets == "peer" {
                    assert!(told.get("sum").is_none() && told.get("mean").is_none());
                    continue;
                }
                // With bounds a key's rows count as one.
                let rows = if result == "peer" { amounts.len() } else { counted.len() };
                assert_eq!((&told["sum"], &told["rows"]), (&sum.into(), &rows.into()));
                let mean = (rows > 0).then(|| sum as f64 / rows as f64);
                assert_eq!(told["mean"].as_f64(), mean);
                assert!(
                    told["warning"].as_str().unwrap().contains("a second run with one key more"),
                    "{told}"
                );
            }
        }
    }
}

/// Lets the column's owner get the number too; wider than any amount here.
const TO_OWNER: [&str; 3] = ["--result-to-owner", "--bounds", "-1000000000000..1000000000000"];

/// The owner of a column who gets its sum reads memberships from it by numbers 2^i: refused unless both sides
/// allow it by name, and then the bounds leave it what was agreed on.
#[test]
fn a_number_does_not_go_to_the_owner_of_its_column() {
    let bench = Bench::new();
    let rows: String = (0..60).map(|i| format!("user{i}@example.com,{}\n", 1i64 << i)).collect();
    bench.write("shop.csv", format!("email,amount\n{rows}"));
    let common: String = (0..90).step_by(2).map(|i| format!("user{i}@example.com\n")).collect();
    bench.write("insurer.csv", format!("mail\n{common}"));
    let give = ["--give", "amount"];
    for (kind, level) in [
        ("sum:amount", "malicious"),
        ("mean:amount", "malicious"),
        ("sum:amount", "semi-honest"),
        ("max:amount", "semi-honest"),
        ("min:amount", "semi-honest"),
        ("over:7:amount", "semi-honest"),
    ] {
        let asked = |result| vec!["--reveal", kind, "--security", level, "--result", result];
        for (owner, other) in [("me", "peer"), ("both", "both")] {
            let (a, b) = run(&bench, &[&asked(owner)[..], &give].concat(), &asked(other));
            a.fails_with(2, &["--result-to-owner", "needed on both sides"]);
            b.fails_with(2, &["--result-to-owner", "needed on both sides"]);
        }
        if !kind.starts_with("over") {
            let (a, b) =
                [&give[..], &[]].map(|give| [&asked("both")[..], give, &TO_OWNER[..1]].concat()).into();
            let (a, b) = run(&bench, &a, &b);
            a.fails_with(2, &["--bounds", "LEAST..MOST"]);
            b.fails_with(2, &["--bounds", "LEAST..MOST"]);
        }
    }
    // With bounds from 0 to 7 thirty common keys give what five bits and three tell at most.
    let agreed =
        with(&["--reveal", "sum:amount", "--result", "both", "--result-to-owner", "--bounds", "0..7"]);
    let (a, b) = run(&bench, &[&agreed[..], &give].concat(), &agreed);
    let expected: i64 = (0..60).step_by(2).map(|i| (1i64 << i).min(7)).sum();
    for said in [a, b] {
        assert_eq!(object(&said)["sum"], expected);
    }
}

/// The same against a peer that may cheat: withheld or not, and what the other side learned of it.
#[test]
fn numbers_over_common_keys_go_against_a_malicious_peer() {
    let (bench, plain) = bench(0..45, 30..60);
    let (amounts, count) = (plain.amounts(), plain.common.len());
    let counted: BTreeSet<&String> =
        plain.rows.iter().filter(|row| !row[2].is_empty()).map(|row| &row[1]).collect();
    let sum: i64 = amounts.iter().sum();
    for (kind, counts, result) in [
        ("count", count, "both"),
        ("sum:amount", counted.len(), "peer"),
        ("mean:amount", counted.len(), "peer"),
    ] {
        for (least, opens) in [(counts, true), (counts + 1, false)] {
            let least = least.to_string();
            let with = |result| ["--reveal", kind, "--min-matches", &least, "--result", result];
            let give: &[&str] = if kind == "count" { &[] } else { &["--give", "amount"] };
            let converse = if result == "peer" { "me" } else { result };
            let converse = if result == "me" { "peer" } else { converse };
            let (a, b) = run(&bench, &[&with(result)[..], give].concat(), &with(converse));
            for (said, gets) in [(a, result), (b, converse)] {
                let told = object(&said);
                assert_eq!((&told["protocol"], &told["security"]), (&"sorted".into(), &"malicious".into()));
                let shown = opens && gets != "peer";
                let learned = told["other_side_learned"].as_str().unwrap();
                assert!(!learned.contains("follows the protocol;"), "{learned}");
                let bounded = told["peer_keys_tested_at_most"].is_u64();
                assert_eq!(bounded, gets != "me", "{told}");
                if gets == "peer" {
                    assert!(told.get("withheld").is_none(), "{told}");
                } else {
                    assert_eq!(told["withheld"], !opens, "{told}");
                }
                let value = |of: Value| if shown { of } else { Value::Null };
                match kind {
                    "count" => assert_eq!(told["count"], value(count.into())),
                    "sum:amount" => assert_eq!(told["sum"], value(sum.into())),
                    _ => assert_eq!(
                        (told["sum"].clone(), told["rows"].clone()),
                        (value(sum.into()), value(amounts.len().into()))
                    ),
                }
            }
        }
    }
}

#[test]
fn more_keys_than_the_circuit_takes_are_refused_before_connecting() {
    let bench = Bench::new();
    let many: String = (0..16_385).map(|i| format!("{i}@x\n")).collect();
    bench.write("many.csv", format!("email\n{many}"));
    let words = ["psi", "--connect", "127.0.0.1:9", "--insecure-plaintext", "--input", "many.csv"];
    let more = ["--key", "email", "--reveal", "count", "--connect-timeout", "1"];
    for dry in [&[][..], &["--dry-run"]] {
        bench
            .run(&[&words[..], &more, dry].concat())
            .fails_with(3, &["16384 keys per side", "semi-honest security on both sides"]);
    }
}

#[test]
fn a_number_is_withheld_below_the_least_number_of_matches() {
    let (bench, plain) = bench(0..60, 40..90);
    let common = plain.common.len();
    let counted: BTreeSet<&String> =
        plain.rows.iter().filter(|row| !row[2].is_empty()).map(|row| &row[1]).collect();
    for (kind, give, counts) in [("count", None, common), ("sum:amount", Some("amount"), counted.len())] {
        for (least, opens) in [(counts, true), (counts + 1, false)] {
            let least = least.to_string();
            let mut both = with(&["--reveal", kind, "--result", "both", "--min-matches", &least]);
            both.extend(give.iter().flat_map(|_| TO_OWNER));
            let shop: Vec<&str> =
                both.iter().copied().chain(give.iter().flat_map(|c| ["--give", c])).collect();
            let (a, b) = run(&bench, &shop, &both);
            for said in [a, b] {
                let told = object(&said);
                assert_eq!(told["withheld"], !opens, "{told}");
                let value = &told[kind.split(':').next().unwrap()];
                assert_eq!(value.is_null(), !opens, "{told}");
                assert_eq!(told["min_matches"].to_string(), least);
            }
        }
    }
}

#[test]
fn columns_of_matching_rows_come_with_our_own() {
    let (bench, plain) = bench(0..200, 150..260);
    for security in ["malicious", "semi-honest"] {
        let common = ["--security", security, "--reveal"];
        let shop = [&common[..], &["payload:city,note", "--output", "both.csv", "--overwrite"]].concat();
        let insurer = [&common[..], &["payload", "--give", "note,city", "--result", "peer"]].concat();
        let (a, b) = run(&bench, &shop, &insurer);
        let (told, theirs) = (object(&a), object(&b));
        assert_eq!(told["matches"], plain.common.len());
        assert_eq!(told["output_rows"], plain.rows.len());
        assert!(theirs.get("matches").is_none());
        assert!(theirs["other_side_learned"].as_str().unwrap().contains("columns of yours"), "{theirs}");
        assert!(told["other_side_learned"].as_str().unwrap().contains("which columns"), "{told}");
        let bounded = security == "malicious";
        assert_eq!(theirs["peer_keys_tested_at_most"].is_u64(), bounded);
        let insurer: BTreeMap<String, Vec<String>> = csv_of(&bench.read("insurer.csv"))
            .into_iter()
            .map(|row| (row[0].to_lowercase(), row[1..].to_vec()))
            .collect();
        let expected: Vec<Vec<String>> =
            plain.rows.iter().map(|row| [&row[..], &insurer[&row[1]]].concat()).collect();
        let written = csv_of(&bench.read("both.csv"));
        assert_eq!(written[0], ["id", "email", "amount", "city", "note"]);
        assert_eq!(written[1..], expected);
    }
}

#[test]
fn both_sides_may_get_columns_of_the_other() {
    let (bench, plain) = bench(11..20, 15..40);
    let shop = ["--reveal", "payload:city", "--give", "amount", "--result", "both", "--output", "s.csv"];
    let insurer = ["--reveal", "payload:amount", "--give", "city", "--result", "both", "--output", "i.csv"];
    let (a, b) = run(&bench, &shop, &insurer);
    for said in [a, b] {
        let told = object(&said);
        assert_eq!(told["matches"], plain.common.len());
        assert_eq!(told["output_rows"], plain.rows.len());
    }
    let (ours, theirs) = (csv_of(&bench.read("s.csv")), csv_of(&bench.read("i.csv")));
    assert_eq!((ours[0].last().unwrap(), theirs[0].last().unwrap()), (&"city".into(), &"amount".into()));
    let amounts: BTreeMap<String, String> =
        plain.rows.iter().map(|row| (row[1].clone(), row[2].clone())).collect();
    for row in &theirs[1..] {
        assert_eq!(row[3], amounts[&row[0].to_lowercase()]);
    }
    assert!(ours[1..].iter().all(|row| row[3].starts_with("City, ")));
}

#[test]
fn rows_of_one_key_are_refused_or_given_as_asked() {
    let (bench, plain) = bench(0..31, 5..40);
    // The shop gives: customers 10, 20 and 30 have three orders each.
    let insurer = ["--reveal", "payload:id,email", "--output", "got.csv", "--overwrite"];
    let gives = |how| ["--reveal", "payload", "--give", "id,email", "--result", "peer", "--duplicates", how];
    let (a, _) = run(&bench, &gives("refuse"), &[&insurer[..], &["--connect-timeout", "3"]].concat());
    a.fails_with(2, &["have the same key", "--duplicates"]);
    assert!(!bench.exists("got.csv"));
    for (how, wanted) in [("first", plain.common.len()), ("all", plain.rows.len())] {
        let (_, b) = run(&bench, &gives(how), &insurer);
        assert_eq!(object(&b)["output_rows"], wanted, "{how}");
        let written = csv_of(&bench.read("got.csv"));
        assert_eq!(written[0], ["mail", "city", "note", "id", "email"]);
        let ids: BTreeSet<&str> = written[1..].iter().map(|row| row[3].as_str()).collect();
        let all: BTreeSet<&str> = plain.rows.iter().map(|row| row[0].as_str()).collect();
        let first: BTreeSet<&str> = all.iter().copied().filter(|id| id.ends_with("-0")).collect();
        assert_eq!(ids, if how == "all" { all } else { first });
    }
}

#[test]
fn a_name_that_both_tables_have_is_told_apart() {
    let bench = Bench::new();
    bench.write("shop.csv", "email,city\na@x,Rome\n");
    bench.write("insurer.csv", "mail,city\nA@x,Oslo\n");
    let (a, _) = run(
        &bench,
        &["--reveal", "payload:city", "--output", "out.csv"],
        &["--reveal", "payload", "--give", "city", "--result", "peer"],
    );
    object(&a);
    assert_eq!(bench.read("out.csv"), "email,city,peer_city\na@x,Rome,Oslo\n");
}

#[test]
fn what_cannot_be_revealed_is_refused_before_connecting() {
    let (bench, _) = bench(0..5, 0..5);
    let address = "127.0.0.1:9";
    let cases: [(&[&str], &[&str]); 17] = [
        (
            &["--reveal", "max:amount"],
            &["--security", "semi-honest security on both sides", "count, sum or mean"],
        ),
        (&["--reveal", "count", "--protocol", "vole"], &["--protocol", "leave it at auto"]),
        (&["--min-matches", "5"], &["--min-matches", "rows"]),
        (&["--reveal", "payload:city", "--min-matches", "5"], &["--min-matches", "payload"]),
        (&["--reveal", "payload:city", "--result", "both"], &["--give", "both sides get columns"]),
        (&["--reveal", "payload"], &["--reveal", "payload:COL,COL"]),
        (&["--reveal", "payload", "--result", "peer"], &["--give", "may have"]),
        (
            &["--reveal", "payload:x", "--result", "peer", "--give", "id"],
            &["--reveal", "`payload` without columns"],
        ),
        (&["--reveal", "payload:x", "--give", "id"], &["--give", "asks"]),
        (&["--give", "id"], &["--give", "rows shows no column"]),
        (&["--reveal", "payload:city", "--protocol", "paxos"], &["--protocol", "reveals only rows"]),
        (&["--security", "semi-honest", "--reveal", "sum"], &["--reveal", "sum:COL"]),
        (
            &["--security", "semi-honest", "--reveal", "sum:amount", "--give", "id"],
            &["--give", "sum is of amount"],
        ),
        (
            &["--security", "semi-honest", "--reveal", "count", "--output", "o.csv"],
            &["--output", "reveals no rows"],
        ),
        (&["--duplicates", "first"], &["--duplicates", "rows that you send"]),
        (&["--reveal", "payload:city", "--duplicates", "all"], &["--duplicates", "rows that you send"]),
        (&["--reveal", "everything"], &["rows, payload, count, sum, mean, max, min, over"]),
    ];
    for (wrong, words) in cases {
        let fixed = [
            "psi",
            "--connect",
            address,
            "--insecure-plaintext",
            "--input",
            "shop.csv",
            "--key",
            "email",
            "--connect-timeout",
            "1",
        ];
        bench.run(&[&fixed[..], wrong].concat()).fails_with(2, words);
    }
}

#[test]
fn a_cell_that_is_no_number_is_named_by_its_line_and_not_shown() {
    let bench = Bench::new();
    bench.write("shop.csv", "email,amount\na@x,1\nb@x,12.50secret\n");
    bench.write("insurer.csv", "mail\na@x\n");
    let shop = with(&["--reveal", "sum:amount", "--give", "amount", "--result", "peer"]);
    let insurer = with(&["--reveal", "sum:amount", "--connect-timeout", "3"]);
    let (a, _) = run(&bench, &shop, &insurer);
    a.fails_with(3, &["shop.csv, line 3", "column `amount`", "whole number", "smallest unit"]);
    assert!(!a.err.contains("12.50") && !a.err.contains("secret"));
    bench.write("shop.csv", "email,amount\na@x,1\nb@x,9223372036854775808\n");
    let (a, _) = run(&bench, &shop, &insurer);
    a.fails_with(3, &["line 3", "column `amount`", "the number is too large; use a larger unit"]);
    // One rule for numbers of either form: a sign may be there, and blanks are nothing.
    bench.write("shop.csv", "email,amount\na@x,+12\nb@x,  \n");
    bench.write("insurer.csv", "mail\na@x\nb@x\n");
    for (column, sum) in [("amount", 12), ("amount:decimal2", 1200)] {
        let reveal = format!("sum:{column}");
        let shop = with(&["--reveal", &reveal, "--give", column, "--result", "peer"]);
        let (a, b) = run(&bench, &shop, &with(&["--reveal", &reveal]));
        a.success();
        assert_eq!(object(&b)["sum"], sum, "{column}");
    }
}

#[test]
fn a_column_that_is_not_given_ends_both_sides_before_secrets_move() {
    let (bench, _) = bench(0..50, 0..50);
    let shop = ["--reveal", "payload:city,salary", "--output", "out.csv"];
    let insurer = ["--reveal", "payload", "--give", "city,note", "--result", "peer"];
    let (a, b) = run(&bench, &shop, &insurer);
    assert_eq!((a.code, b.code), (4, 4), "{a:?} {b:?}");
    // Which side asks for what, and which of the two changes something.
    a.fails_with(4, &["does not give every column that you ask for (city, salary)", "--reveal payload:COL"]);
    b.fails_with(4, &["the peer asks for the column salary, and you give city, note", "see --give"]);
    // One side asks for columns, the other for rows: they do not set the same.
    let (a, b) = run(&bench, &shop, &["--result", "peer"]);
    for said in [a, b] {
        said.fails_with(4, &["settings differ: --reveal", "--reveal payload, --give COL and --result peer"]);
    }
    assert!(!bench.exists("out.csv"));
}

#[test]
fn differences_in_what_is_revealed_are_named_with_both_values() {
    let (bench, _) = bench(0..50, 0..50);
    let sum = [&with(&["--reveal", "sum:amount", "--result", "both"])[..], &TO_OWNER].concat();
    let count = with(&["--reveal", "count", "--result", "both"]);
    // Nobody gives the column, then both do: the roles do not fit.
    let (a, b) = run(&bench, &sum, &sum);
    for said in [a, b] {
        said.fails_with(
            4,
            &["both sides have --result both without --give", "change it to --result both and --give on one"],
        );
    }
    let give = ["--give", "amount"];
    bench.write("insurer.csv", "mail,amount\nuser1@example.com,5\n");
    let (a, b) = run(&bench, &[&sum[..], &give].concat(), &[&sum[..], &give].concat());
    for said in [a, b] {
        said.fails_with(
            4,
            &["both sides have --result both and --give", "change it to --result both without --give on one"],
        );
    }
    for shop in [sum.clone(), [&sum[..], &give].concat()] {
        let (a, b) = run(&bench, &shop, &count);
        a.fails_with(4, &["--reveal (yours sum:amount, peer's count)"]);
        b.fails_with(4, &["--reveal (yours count, peer's sum:amount)"]);
    }
    let shop = [&sum[..], &["--give", "amount"]].concat();
    let mut other = [&sum[..], &["--min-matches", "3"]].concat();
    let (a, b) = run(&bench, &shop, &other);
    a.fails_with(4, &["--min-matches (yours 0, peer's 3)"]);
    b.fails_with(4, &["--min-matches (yours 3, peer's 0)"]);
    other.truncate(other.len() - 2);
    *other.last_mut().unwrap() = "-99..7";
    let (a, b) = run(&bench, &shop, &other);
    a.fails_with(4, &["--bounds"]);
    b.fails_with(4, &["--bounds"]);
    let asked = with(&["--reveal", "sum:amount"]);
    let owner = ["--reveal", "sum:amount", "--give", "amount", "--result", "peer"];
    let (a, b) = run(&bench, &[&with(&owner)[..], &["--result-to-owner"]].concat(), &asked);
    a.fails_with(4, &["--result-to-owner"]);
    b.fails_with(4, &["--result-to-owner"]);
    let (a, b) = run(&bench, &count, &with(&["--result", "both"]));
    a.fails_with(4, &["--reveal (yours count, peer's rows)"]);
    b.fails_with(4, &["--reveal (yours rows, peer's count)"]);
}

#[test]
fn a_dry_run_says_cost_and_what_is_learned() {
    let (bench, _) = bench(0..50, 0..50);
    let fixed =
        ["psi", "--insecure-plaintext", "--listen", "127.0.0.1:0", "--input", "shop.csv", "--key", "email"];
    let kind =
        with(&["--reveal", "mean:amount", "--give", "amount", "--result", "peer", "--min-matches", "7"]);
    let said = bench.run(&[&fixed[..], &kind, &["--dry-run"]].concat());
    let text = said.success();
    assert!(text.contains("the sum of amount") && text.contains("fewer than 7"), "{text}");
    assert!(text.contains("pads its set"), "{text}");
}

/// The sizes settle how a number is computed on shares, and the forecast says it.
#[test]
fn a_dry_run_says_whether_rows_are_folded() {
    let semi = with(&["--give", "income", "--result", "peer", "--dry-run"]);
    let shares = ["--reveal", "shares", "--eval", "signed-min32", "--aggregate", "sum"];
    let cases: [&[&str]; 3] = [&["--reveal", "max:income"], &["--reveal", "over:7:income"], &shares];
    let mut bytes = Vec::new();
    for (keys, how) in [(1000, "one garbled circuit"), (1100, "rows folded")] {
        let bench = Bench::new();
        credit(&bench, 0..keys, 0..1);
        for kind in cases {
            let fixed = ["psi", "--insecure-plaintext", "--listen", "127.0.0.1:0", "--input", "shop.csv"];
            let said = bench.run(&[&["--json"], &fixed[..], &["--key", "email"], kind, &semi].concat());
            let plan = object(&said);
            assert_eq!(plan["variant"], how, "{plan}");
            bytes.push(plan["bytes"].as_u64().unwrap());
        }
    }
    // A fold takes far less traffic.
    let [garbled, folded] = [&bytes[..3], &bytes[3..]];
    assert!(folded.iter().zip(garbled).all(|(folded, garbled)| folded * 4 < *garbled), "{bytes:?}");
}

#[test]
fn statistics_are_computed_on_shares_of_the_intersection() {
    for (shop, insurer) in
        [(0..300, 250..500), (0..60, 1000..1010), (3..4, 3..4), (0..0, 0..9), (0..1300, 90..1500)]
    {
        let (bench, plain) = bench(shop, insurer);
        let mut largest: BTreeMap<&String, i64> = BTreeMap::new();
        for row in &plain.rows {
            if let Ok(amount) = row[2].parse::<i64>() {
                let of = largest.entry(&row[1]).or_insert(amount);
                *of = amount.max(*of);
            }
        }
        let counted = largest.len();
        let limit = largest.values().sum::<i64>() / counted.max(1) as i64;
        let over = format!("over:{limit}:amount");
        let above = largest.values().filter(|amount| **amount > limit).count() as i64;
        let cases = [
            ("max:amount", plain.amounts().into_iter().max()),
            ("min:amount", plain.amounts().into_iter().min()),
            (&over, (counted > 0).then_some(above)),
        ];
        for (kind, expected) in cases {
            let name = kind.split(':').next().unwrap();
            for (least, opens) in [(counted, true), (counted + 1, false)] {
                let least = least.to_string();
                let mut both = with(&["--reveal", kind, "--result", "both", "--min-matches", &least]);
                both.extend(TO_OWNER);
                let (a, b) = run(&bench, &[&both[..], &["--give", "amount"]].concat(), &both);
                for said in [a, b] {
                    let told = object(&said);
                    assert_eq!(told["withheld"], !opens, "{kind} {told}");
                    let expected = if opens { expected } else { None };
                    assert_eq!(told[name].as_i64(), expected, "{kind} {told}");
                }
            }
        }
    }
    let (bench, _) = bench(0..30, 0..30);
    let kind = with(&["--reveal", "max:amount"]);
    let (a, b) = run(&bench, &[&kind[..], &["--give", "amount", "--result", "peer"]].concat(), &kind);
    assert!(object(&a).get("max").is_none() && object(&b)["max"].is_i64());
}

/// A shop's customers with an income and a debt, an insurer's with a limit and whether it was a good year.
fn credit(bench: &Bench, shop: std::ops::Range<i64>, insurer: std::ops::Range<i64>) -> Vec<[i64; 4]> {
    let (income, debt) = (|n: i64| n * 37 % 101, |n: i64| n * 11 % 60);
    let (limit, good) = (|n: i64| n * 53 % 90, |n: i64| n % 3 == 0);
    let rows = |numbers: std::ops::Range<i64>, cells: &dyn Fn(i64) -> String| -> String {
        numbers.map(|n| format!("user{n}@example.com,{}\n", cells(n))).collect()
    };
    let ours = rows(shop.clone(), &|n| format!("{},{}", income(n), debt(n)));
    let theirs = rows(insurer.clone(), &|n| format!("{},{}", limit(n), good(n)));
    bench.write("shop.csv", "email,income,debt\n".to_owned() + &ours);
    bench.write("insurer.csv", "mail,limit,good\n".to_owned() + &theirs);
    shop.filter(|n| insurer.contains(n)).map(|n| [income(n), debt(n), limit(n), good(n).into()]).collect()
}

const CREDIT: &str = "\
pub fn main(income: i32, debt: u16, limit: i32, good: bool) -> i32 {
    let free = income - (debt as i32);
    if good { free - limit } else { free }
}
";

#[test]
fn shares_feed_a_function_in_the_same_session() {
    for (shop, insurer) in
        [(0..200, 120..300), (0..40, 10..40), (5..6, 5..6), (0..4, 9..20), (0..0, 0..9), (0..1300, 90..1500)]
    {
        let bench = Bench::new();
        let common = credit(&bench, shop, insurer);
        bench.write("credit.garble.rs", CREDIT);
        let score =
            |[income, debt, limit, good]: &[i64; 4]| income - debt - if *good == 1 { *limit } else { 0 };
        let sum: i64 = common.iter().map(score).sum();
        let some = common.iter().filter(|row| score(row) != 0).count() as i64;
        let below = common.iter().filter(|[income, _, limit, _]| income < limit).count() as i64;
        let cases: [(&str, &str, [&str; 2], i64); 3] = [
            ("credit.garble.rs", "sum", ["income,debt", "limit,good"], sum),
            ("credit.garble.rs", "count", ["income,debt", "limit,good"], some),
            ("signed-lt32", "count", ["income", "limit"], below),
        ];
        for (function, total, gives, expected) in cases {
            let least = common.len().to_string();
            let more = ["--reveal", "shares", "--eval", function, "--aggregate", total, "--result", "both"];
            let bounds: &[&str] = if total == "sum" { &TO_OWNER } else { &TO_OWNER[..1] };
            let both = [&with(&more)[..], &["--min-matches", &least], bounds].concat();
            let side = |give| [&both[..], &["--give", give]].concat();
            let (a, b) = run(&bench, &side(gives[0]), &side(gives[1]));
            for said in [a, b] {
                let told = object(&said);
                assert_eq!(told[total].as_i64(), Some(expected), "{function} {told}");
                assert_eq!(told["reveal"], "shares");
                let learned = told["other_side_learned"].as_str().unwrap();
                let words = if total == "sum" {
                    "over all common keys"
                } else {
                    "how many common keys have a result"
                };
                assert!(learned.contains(words), "{learned}");
            }
        }
    }
}

/// More keys than one circuit could hold.
#[test]
fn twenty_thousand_keys_are_folded() {
    let bench = Bench::new();
    let common = credit(&bench, 0..20_000, 5_000..25_000);
    assert_eq!(common.len(), 15_000);
    let largest = common.iter().map(|row| row[0]).max().unwrap();
    let over = common.iter().filter(|row| row[0] > 60).count() as i64;
    let sum: i64 = common.iter().map(|row| row[0].min(row[2])).sum();
    let shares = ["--reveal", "shares", "--eval", "signed-min32", "--aggregate", "sum"];
    let cases: [(&[&str], &str, i64); 3] = [
        (&["--reveal", "max:income"], "max", largest),
        (&["--reveal", "over:60:income"], "over", over),
        (&[&shares[..], &TO_OWNER].concat(), "sum", sum),
    ];
    for (kind, name, expected) in cases {
        let both = with(&[kind, &["--min-matches", "15000"]].concat());
        let theirs = if name == "sum" { &["--give", "limit"][..] } else { &[] };
        let (a, b) = run(
            &bench,
            &[&both[..], &["--give", "income", "--result", "peer"]].concat(),
            &[&both[..], theirs].concat(),
        );
        assert!(object(&a).get(name).is_none());
        assert_eq!(object(&b)[name].as_i64(), Some(expected), "{}", object(&b));
    }
}

#[test]
fn a_function_of_shares_is_agreed_on_and_its_inputs_are_checked() {
    let bench = Bench::new();
    let common = credit(&bench, 0..50, 20..70).len();
    let function = |name, total| {
        let shares = with(&["--reveal", "shares", "--eval", name, "--aggregate", total]);
        let bounds: &[&str] = if total == "sum" { &TO_OWNER } else { &TO_OWNER[..1] };
        [&shares[..], bounds].concat()
    };
    let side = |options: &[&'static str], more: &[&'static str]| [options, more].concat();
    // Withheld below the least number of matches; to one side alone.
    let least = (common + 1).to_string();
    let few = [&function("signed-lt32", "count")[..], &["--min-matches", &least]].concat();
    let with_peer = [&few[..], &["--give", "income", "--result", "peer"]].concat();
    let (a, b) = run(&bench, &with_peer, &[&few[..], &["--give", "limit"]].concat());
    assert!(object(&a).get("count").is_none());
    assert!(object(&b)["withheld"] == true && object(&b).get("count").is_none());
    // Overflow is said, as `tacit eval` says it.
    bench.write("wide.garble.rs", "pub fn main(income: u8, limit: u8) -> u8 { income + limit + 200 }\n");
    let (a, b) = run(
        &bench,
        &side(&function("wide.garble.rs", "sum"), &["--give", "income", "--result", "peer"]),
        &side(&function("wide.garble.rs", "sum"), &["--give", "limit"]),
    );
    a.success();
    assert!(object(&b)["flags"].to_string().contains("overflow"), "{}", object(&b));
    // Each side calls a circuit's file as it likes.
    let lt32 = named::find("lt32").unwrap().circuit;
    for file in ["ours.txt", "theirs.txt"] {
        bench.write(file, bristol::write(&lt32, bristol::Format::Fashion).unwrap());
    }
    let counted = |ours: &'static str, theirs: &'static str| {
        let shop = side(&function(ours, "count"), &["--give", "income", "--result", "peer"]);
        let (_, told) = run(&bench, &shop, &side(&function(theirs, "count"), &["--give", "limit"]));
        object(&told)["count"].as_u64().unwrap()
    };
    assert_eq!(counted("ours.txt", "theirs.txt"), counted("lt32", "lt32"));
    // Differences are named with both values.
    let cases = [
        (function("signed-lt32", "count"), function("signed-min32", "count"), "--eval (yours "),
        (function("signed-lt32", "count"), function("signed-lt32", "sum"), "--bounds"),
        (function("signed-lt32", "count"), with(&["--reveal", "count"]), "count"),
    ];
    for (a, b, named) in cases {
        let give: &[&str] = if b.contains(&"--eval") { &["--give", "limit"] } else { &[] };
        let a = [&a[..], &["--give", "income", "--result", "peer"]].concat();
        let (a, b) = run(&bench, &a, &[&b[..], give].concat());
        a.fails_with(4, &[named]);
        b.fails_with(4, &[named]);
    }
    // A sum that comes back to the owner of what goes in has bounds, and counts have none.
    let owner = ["--give", "income", "--result", "both", "--result-to-owner"];
    let fixed =
        ["psi", "--connect", "127.0.0.1:9", "--insecure-plaintext", "--input", "shop.csv", "--key", "email"];
    for (total, more, named) in [("sum", &[][..], "--bounds"), ("count", &["--bounds", "0..7"], "--bounds")] {
        let shares = ["--reveal", "shares", "--eval", "signed-min32", "--aggregate", total];
        bench.run(&[&fixed[..], &SEMI, &shares, &owner, more].concat()).fails_with(2, &[named]);
    }
    // What does not fit is said before connecting.
    bench.write("twice.csv", "email,income\na@example.com,1\nA@example.com,2\n");
    let lt32 = ["--reveal", "shares", "--eval", "lt32", "--aggregate", "count"];
    let give = |column: &'static str| [&lt32[..], &["--give", column, "--result-to-owner"]].concat();
    let cases: [(&str, i32, &[&str], &str); 7] = [
        ("shop.csv", 2, &["--reveal", "shares"], "--eval"),
        ("shop.csv", 2, &["--eval", "lt32", "--aggregate", "count"], "shares"),
        ("shop.csv", 2, &["--reveal", "shares", "--eval", "nothing", "--aggregate", "count"], "nothing"),
        ("shop.csv", 2, &["--reveal", "shares", "--eval", "sha256", "--aggregate", "count"], "64"),
        ("shop.csv", 2, &lt32, "--give"),
        ("shop.csv", 3, &give("email"), "line 2"),
        ("twice.csv", 3, &give("income"), "unique"),
    ];
    for (input, code, more, named) in cases {
        let fixed = ["psi", "--connect", "127.0.0.1:9", "--insecure-plaintext", "--connect-timeout", "1"];
        let table = ["--input", input, "--key", "email"];
        bench.run(&[&fixed[..], &table, &SEMI, more].concat()).fails_with(code, &[named]);
    }
}

/// Both sides see by themselves that a function's numbers would go to the side that gets the result: neither waits for
/// one that has refused.
#[test]
fn a_result_for_the_owner_of_numbers_is_refused_on_both_sides_at_once() {
    let bench = Bench::new();
    credit(&bench, 0..5, 2..9);
    let lt32 = ["--reveal", "shares", "--eval", "lt32", "--aggregate", "count", "--connect-timeout", "60"];
    let side = |how: &'static str, [input, key]: [&'static str; 2], more: &[&'static str]| {
        let own = ["psi", how, "127.0.0.1:9", "--insecure-plaintext", "--input", input, "--key", key];
        bench.run(&[&own[..], &SEMI, &lt32, more].concat())
    };
    // The one that gives and gets, and its peer: in both roles.
    for (owner, peer) in [("--listen", "--connect"), ("--connect", "--listen")] {
        let start = std::time::Instant::now();
        for said in [
            side(owner, ["shop.csv", "email"], &["--give", "income"]),
            side(peer, ["insurer.csv", "mail"], &["--give", "limit", "--result", "peer"]),
        ] {
            said.fails_with(2, &["--result-to-owner", "needed on both sides"]);
        }
        assert!(start.elapsed().as_secs() < 40, "neither waits");
    }
}
