//! `tacit query` between two real processes: results in words, JSON and files, what is agreed on, what is refused.
//! Generated questions against another engine are in `python/tests/test_query.py`.

use crate::common::{Bench, Said, free_port};
use serde_json::{Value, json};

const QUESTION: &str = "\
-- What those spent who are in the club.
SELECT b.segment, COUNT(*) AS buyers, SUM(CLIP(a.cents, 0, 1000)) AS spent, AVG(CLIP(a.\"paid:decimal2\", 0, 9.99)) AS mean
FROM ours a JOIN theirs b ON a.\"mail:email\" = b.\"adresse:email\"
WHERE a.cents > 10 AND b.segment IN ('basic', 'plus', 'rare')
GROUP BY b.segment
HAVING COUNT(*) >= 2;
";

fn shop() -> Bench {
    let bench = Bench::new();
    bench.write(
        "shop.csv",
        "mail,cents,paid\nAnn@x.org,100,1.50\nbob@x.org,5000,2.00\ncy@x.org,7,1.00\ndee@x.org,20,\neve@x.org,30,4.25\n,1,1\n",
    );
    bench.write(
        "club.csv",
        "adresse,segment\nann@x.org,basic\nbob@x.org,basic\ncy@x.org,plus\ndee@x.org,plus\neve@x.org,plus\nfay@x.org,rare\n\
         gus@x.org,\n",
    );
    bench.write("q.sql", QUESTION);
    bench
}

/// Both sides of `tacit query`, the shop listening.
fn query(bench: &Bench, shop: &[&str], club: &[&str]) -> (Said, Said) {
    let address = format!("127.0.0.1:{}", free_port());
    let tail = ["--insecure-plaintext", "--security", "semi-honest", "--sql-file", "q.sql"];
    let a = [&["query", "--listen", &address, "--input", "shop.csv"], &tail[..], shop].concat();
    let b = [&["query", "--connect", &address, "--input", "club.csv"], &tail[..], club].concat();
    bench.run_both(&a, &b)
}

#[test]
fn both_sides_ask_and_one_gets_groups_that_are_large_enough() {
    let bench = shop();
    let (a, b) = query(
        &bench,
        &["--result", "peer", "--min-group", "2", "--json"],
        &["--min-group", "2", "--allow", "adresse:join,segment:filter,segment:group"],
    );
    let text = b.success();
    let table = "segment  buyers  spent  mean\n\
                 -------  ------  -----  ----------\n\
                 basic         2   1100  1.75000000";
    assert!(text.starts_with(table), "{text}");
    assert!(text.contains("\n2 rows, 1 group is not shown\n"), "{text}");
    assert!(text.contains("7 distinct keys, 6 of them with a row that passes your part of WHERE"), "{text}");
    let a: Value = serde_json::from_str(a.success().trim()).unwrap();
    assert_eq!((&a["own_keys"], &a["own_keys_passing"], &a["peer_keys"]), (&json!(5), &json!(4), &json!(7)));
    assert_eq!((&a["groups"], &a["min_group"], &a["rows"]), (&json!(3), &json!(2), &Value::Null));
    let learned = a["other_side_learned"].as_str().unwrap();
    for words in ["5 distinct keys", "`buyers`, `spent` and `mean`", "by `segment`", "2 joined rows"] {
        assert!(learned.contains(words), "{words}: {learned}");
    }
}

#[test]
fn a_result_is_written_as_a_table() {
    let bench = shop();
    for (file, is_text) in [("out.csv", true), ("out.parquet", false)] {
        let more = ["--min-group", "2", "--output", file, "--json"];
        let (_, b) = query(&bench, &["--result", "peer", "--min-group", "0"], &more);
        let b: Value = serde_json::from_str(b.success().trim()).unwrap();
        assert_eq!(b["columns"], json!(["segment", "buyers", "spent", "mean"]));
        assert_eq!(b["rows"][0], json!(["basic", 2, 1100, "1.75000000"]));
        if is_text {
            let text = bench.read(file);
            let mut lines = text.lines();
            assert_eq!(lines.next(), Some("segment,buyers,spent,mean"));
            assert_eq!(lines.next(), Some("basic,2,1100,1.75000000"));
            assert!(lines.next().is_some_and(|line| line.starts_with("plus,2,50,")));
        } else {
            assert!(std::fs::read(bench.path(file)).unwrap().starts_with(b"PAR1"));
        }
    }
}

#[test]
fn a_page_about_a_run_has_the_question_and_not_the_result() {
    let bench = shop();
    let more = ["--min-group", "2", "--report", "page.html"];
    let (a, b) = query(&bench, &["--result", "peer", "--min-group", "2", "--report", "shop.html"], &more);
    a.success();
    b.success();
    let (page, shop) = (bench.read("page.html"), bench.read("shop.html"));
    for words in [
        "Report of a question of two tables",
        "FROM ours a JOIN theirs b",
        "the result of the question (2 rows, 1 group not shown), and that the other side has 5 distinct keys",
        "one of fewer than 2 joined rows is not in the result",
    ] {
        assert!(page.contains(words), "{words}: {page}");
    }
    assert!(
        shop.contains("that the other side has 7 distinct keys")
            && !shop.contains("result of the question (")
    );
    assert!(!page.contains("1100"), "{page}");
}

/// A key that is given as a question by mistake, and a file that is larger than any.
#[test]
fn a_file_that_is_no_question_gives_nothing_away() {
    let bench = Bench::with_keys();
    let key = bench.read("alice.key");
    let secret = key.lines().find(|line| line.len() > 20 && !line.contains("---")).unwrap();
    let said = bench.run(&["query", "--explain", "--sql-file", "alice.key"]);
    said.fails_with(2, &["begins with SELECT"]);
    assert!(!said.err.contains(&secret[..12]), "{said:?}");
    bench.write("long.sql", "SELECT ".repeat(20_000));
    bench.run(&["query", "--explain", "--sql-file", "long.sql"]).fails_with(3, &["long.sql", "longer than"]);
    std::fs::write(bench.path("raw.sql"), b"SELECT \xff").unwrap();
    bench.run(&["query", "--explain", "--sql-file", "raw.sql"]).fails_with(3, &["raw.sql", "UTF-8"]);
    bench.run(&["query", "--explain", "--sql-file", "none.sql"]).fails_with(3, &["none.sql"]);
}

#[test]
fn what_a_side_does_not_agree_to_is_refused_before_anybody_is_called() {
    let bench = shop();
    let with = |more: &[&str]| {
        let base = ["query", "--listen", "127.0.0.1:1", "--input", "shop.csv", "--insecure-plaintext"];
        bench.run(&[&base[..], more].concat())
    };
    let asked = ["--sql-file", "q.sql", "--security", "semi-honest"];
    let cases: [(&[&str], &[&str]); 8] = [
        (&["--sql-file", "q.sql"], &["--security", "follows the protocol", "semi-honest"]),
        (&asked, &["--min-group", "allows 10 rows and more", "HAVING COUNT(*) >= 10", "or allow 2"]),
        (&[&asked[..], &["--min-group", "2"]].concat(), &["--result-to-owner", "`cents`", "yours"]),
        (
            &[&asked[..], &["--min-group", "2", "--result", "peer", "--allow", "mail:join,cents:filter"]]
                .concat(),
            &["--allow", "`cents` to aggregate", "cents:aggregate"],
        ),
        (
            &[&asked[..], &["--min-group", "2", "--key", "mail"]].concat(),
            &["--key", "ON a.column = b.column"],
        ),
        (&[&asked[..], &["--allow", "mail:read"]].concat(), &["--allow", "`mail:read`", "aggregate"]),
        (
            &[&asked[..], &["--min-group", "2", "--result", "peer", "--result-to-owner"]].concat(),
            &["--result-to-owner", "leave it out"],
        ),
        (&["--sql", "SELECT * FROM ours", "--security", "semi-honest"], &["the question"]),
    ];
    for (more, words) in cases {
        with(more).fails_with(2, words);
    }
    bench.write("twice.csv", "mail,cents,paid\nann@x.org,100,1\nANN@x.org,200,1\nann@x.org,3,1\n");
    let more = ["--min-group", "2", "--result", "peer", "--input", "twice.csv"];
    let said = bench
        .run(&[&["query", "--listen", "127.0.0.1:1", "--insecure-plaintext"], &asked[..], &more].concat());
    said.fails_with(3, &["twice.csv", "line 3", "an earlier row has the same key"]);
    bench.write("text.csv", "mail,cents,paid\nann@x.org,a hundred,1\n");
    let more = ["--min-group", "2", "--result", "peer", "--input", "text.csv"];
    let said = bench
        .run(&[&["query", "--listen", "127.0.0.1:1", "--insecure-plaintext"], &asked[..], &more].concat());
    said.fails_with(3, &["text.csv", "line 2", "cents"]);
    assert!(!said.err.contains("hundred"), "{said:?}");
}

#[test]
fn questions_that_differ_are_both_shown_and_those_that_are_written_otherwise_are_one() {
    let bench = shop();
    let other = QUESTION.replace("cents > 10", "cents > 11");
    let (a, b) = query(&bench, &["--result", "peer", "--min-group", "2"], &["--min-group", "2"]);
    assert_eq!((a.code, b.code), (0, 0));
    bench.write("q2.sql", &other);
    let address = format!("127.0.0.1:{}", free_port());
    let tail = ["--insecure-plaintext", "--security", "semi-honest", "--min-group", "2"];
    let a = ["query", "--listen", &address, "--input", "shop.csv", "--sql-file", "q.sql", "--result", "peer"];
    let b = ["query", "--connect", &address, "--input", "club.csv", "--sql-file"];
    let (a_said, _) = bench.run_both(&[&a[..], &tail].concat(), &[&b[..], &["q2.sql"], &tail].concat());
    a_said.fails_with(4, &["question part", "cents > 10", "cents > 11"]);
    let blanks =
        QUESTION.replace('\n', "  \n ").replace("-- What those spent who are in the club.", "").to_owned();
    bench
        .write("q3.sql", blanks.replace("SELECT", "select").replace("GROUP BY", "group by").replace(';', ""));
    let (a_said, b_said) = bench.run_both(&[&a[..], &tail].concat(), &[&b[..], &["q3.sql"], &tail].concat());
    a_said.success();
    b_said.success();
}

#[test]
fn a_question_is_explained_without_a_peer() {
    let bench = shop();
    let said = bench.run(&[
        "query",
        "--explain",
        "--sql-file",
        "q.sql",
        "--security",
        "semi-honest",
        "--min-group",
        "2",
        "--result",
        "peer",
    ]);
    let text = said.success();
    for words in [
        "ours: reads cents:filter, cents:aggregate, mail:join, paid:aggregate",
        "theirs: reads adresse:join, segment:group",
        "AND gates",
        "the other side learns",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
}

/// An empty table, and one without a common key: no group has a row.
#[test]
fn of_no_joined_rows_no_group_is_shown() {
    let bench = shop();
    for rows in ["mail,cents,paid\n", "mail,cents,paid\nzoe@x.org,99,1\n"] {
        bench.write("shop.csv", rows);
        let (_, b) =
            query(&bench, &["--result", "peer", "--min-group", "2"], &["--min-group", "2", "--json"]);
        let b: Value = serde_json::from_str(b.success().trim()).unwrap();
        assert_eq!((&b["rows"], &b["groups_not_shown"]), (&json!([]), &json!(3)));
    }
}

/// Noise, rounding and a subquery by the command, and the same rehearsed from either side.
#[test]
fn questions_with_noise_and_sums_of_each_key_are_answered_and_rehearsed() {
    let bench = shop();
    bench.write(
        "shop.csv",
        "mail,cents,paid\nann@x.org,100,1\nANN@x.org,200,1\nbob@x.org,50,1\ncy@x.org,7,1\nann@x.org,3,1\nzoe@x.org,9,1\n",
    );
    bench.write(
        "q.sql",
        "SELECT COUNT(*) AS n, SUM(CLIP(a.cents, 0, 1000)) AS s, SUM(CLIP(a.orders, 0, 9)) AS orders\n\
         FROM (SELECT mail, SUM(cents) AS cents, COUNT(*) AS orders FROM ours WHERE cents > 5 GROUP BY mail) a\n\
         JOIN theirs b ON a.mail = b.adresse ROUND TO 2",
    );
    let (a, b) = query(&bench, &["--result", "peer", "--min-group", "0"], &["--min-group", "0", "--json"]);
    a.success();
    let b: Value = serde_json::from_str(b.success().trim()).unwrap();
    // 3 customers, 300 + 50 + 7, and 4 orders: to even numbers, halves away from zero.
    assert_eq!((&b["rows"], &b["round_to"], &b["epsilon"]), (&json!([[4, 358, 4]]), &json!(2), &Value::Null));
    for (own, other, side) in [("shop.csv", "club.csv", "ours"), ("club.csv", "shop.csv", "theirs")] {
        let said =
            bench.run(&["check", own, "--sql-file", "q.sql", "--against", other, "--side", side, "--json"]);
        let said: Value = serde_json::from_str(said.success().trim()).unwrap();
        assert_eq!((&said["rows"], &said["table"]), (&b["rows"], &json!(side)));
        assert_eq!(said["own_keys"], json!(if side == "ours" { 4 } else { 7 }));
    }
    let noised =
        "SELECT COUNT(*) AS n FROM ours a JOIN theirs b ON a.mail = b.adresse WITH NOISE EPSILON 0.5";
    let plain = "SELECT COUNT(*) AS n FROM ours a JOIN theirs b ON a.mail = b.adresse";
    let check = ["check", "club.csv", "--side", "theirs", "--against", "shop.csv", "--sql"];
    bench.run(&[&check[..], &[plain]].concat()).fails_with(3, &["shop.csv", "line 3", "GROUP BY key"]);
    let first = bench.run(&[&check[..], &[plain, "--duplicates", "first"]].concat());
    assert!(first.success().starts_with("n\n-\n3\n1 row\n"), "{first:?}");
    // With noise further rows of a key end nothing.
    let said = bench.run(&[&check[..], &[noised]].concat());
    assert!(
        said.success().contains("noise puts numbers off: on average n by 1.92 (epsilon 0.5); it is drawn anew each time. Without it:\n\nn\n-\n3\n"),
        "{said:?}"
    );
    bench
        .run(&["check", "club.csv", "--key", "adresse", "--against", "shop.csv", "--side", "ours"])
        .fails_with(2, &["--side", "is for a question"]);
    let explain = [
        "query",
        "--explain",
        "--sql",
        noised,
        "--min-group",
        "0",
        "--result",
        "peer",
        "--security",
        "semi-honest",
    ];
    let said = bench.run(&explain);
    let text = said.success();
    for words in ["with noise of epsilon 0.5 for each key", "on average n by 1.92", "the noise bounds what"] {
        assert!(text.contains(words), "{words}: {text}");
    }
}
