//! Numbers over all common keys: their unit, their bounds and thresholds, and what results and reports say of them.

use crate::common::{Bench, Said, free_port};
use serde_json::Value;

const SEMI_HONEST: [&str; 2] = ["--security", "semi-honest"];

/// Two tables with the keys k0 to k9 in common, which have the amounts 0.50, 100.50, … and 900.50.
fn bench() -> Bench {
    let bench = Bench::new();
    let rows =
        |cell: &dyn Fn(u32) -> String| (0..10).map(|n| format!("k{n},{}\n", cell(n))).collect::<String>();
    bench.write("shop.csv", "key,eur,visits\n".to_owned() + &rows(&|n| format!("{n}00.50,{n}")));
    bench.write("insurer.csv", "id,limit\n".to_owned() + &rows(&|n| format!("{}", 4 * n)));
    bench
}

/// Both sides of `kind`, the shop giving `column`, and the insurer getting the result, in words and as JSON.
fn results(bench: &Bench, kind: &[&str], column: &str) -> (String, Value) {
    let texts = [false, true].map(|json| {
        let address = format!("127.0.0.1:{}", free_port());
        let side = |how, more: &[&str]| {
            let start = if json { vec!["--json", "psi"] } else { vec!["psi"] };
            let all =
                [&start[..], &[how, &address, "--insecure-plaintext"], &SEMI_HONEST, kind, more].concat();
            all.into_iter().map(str::to_owned).collect::<Vec<_>>()
        };
        let shop =
            side("--listen", &["--input", "shop.csv", "--key", "key", "--give", column, "--result", "peer"]);
        let insurer = side("--connect", &["--input", "insurer.csv", "--key", "id"]);
        let words = |side: &[String]| side.iter().map(String::as_str).collect::<Vec<_>>().join("\u{1f}");
        let (shop, insurer) = (words(&shop), words(&insurer));
        let (a, b) = bench.run_both(
            &shop.split('\u{1f}').collect::<Vec<_>>(),
            &insurer.split('\u{1f}').collect::<Vec<_>>(),
        );
        a.success();
        b.success();
        b.out
    });
    let [text, object] = texts;
    (text, serde_json::from_str(object.trim()).unwrap())
}

#[test]
fn thresholds_and_bounds_are_written_as_the_column_is() {
    let bench = bench();
    // 600.50 to 900.50 are above; 500.50 is not.
    for limit in ["500.50", "500.5", "600.49"] {
        let kind = format!("over:{limit}:eur:decimal2");
        let (text, object) = results(&bench, &["--reveal", &kind], "eur:decimal2");
        let limit = if limit == "600.49" { limit } else { "500.50" };
        assert!(text.starts_with(&format!("4 matching keys have eur above {limit}\n")), "{text}");
        let cents: i64 = limit.replace('.', "").parse().unwrap();
        assert_eq!((&object["over"], &object["threshold"]), (&4.into(), &cents.into()), "{object}");
    }
    let (text, _) = results(&bench, &["--reveal", "over:500:eur:decimal2"], "eur:decimal2");
    assert!(text.starts_with("5 matching keys have eur above 500.00\n"), "{text}");
    let (text, object) =
        results(&bench, &["--reveal", "max:eur:decimal2", "--bounds", "0..500"], "eur:decimal2");
    let said = "max 500.00 (within 0.00..500.00, at the bound: the number itself may be beyond it)\n";
    assert!(text.starts_with(said), "{text}");
    assert_eq!(object["bounds"], serde_json::json!([0, 50_000]));
    assert_eq!((&object["max"], &object["at_bound"]), (&50_000.into(), &true.into()), "{object}");
    let kind = ["--reveal", "min:eur:decimal2", "--bounds", "0.25..7.25"];
    let (text, object) = results(&bench, &kind, "eur:decimal2");
    assert!(text.starts_with("min 0.50 (within 0.25..7.25)\n"), "{text}");
    assert_eq!((&object["min"], &object["at_bound"]), (&50.into(), &false.into()), "{object}");
    let (text, object) =
        results(&bench, &["--reveal", "sum:eur:decimal2", "--bounds", "0..200.25"], "eur:decimal2");
    // 0.50, 100.50, and eight times 200.25.
    assert!(text.starts_with("sum 1703.00\n"), "{text}");
    assert_eq!(object["bounds"], serde_json::json!([0, 20_025]));
    // Whole numbers as ever.
    let (text, object) = results(&bench, &["--reveal", "over:8:visits", "--bounds", "0..9"], "visits");
    assert!(text.starts_with("1 matching key has visits above 8 (within 0..9)\n"), "{text}");
    assert_eq!(object["threshold"], 8);
}

#[test]
fn both_sides_are_told_of_thresholds_in_the_columns_unit() {
    let bench = bench();
    let address = format!("127.0.0.1:{}", free_port());
    let side = |how, more: &[&'static str]| {
        [&["psi", how, &address, "--insecure-plaintext"], &SEMI_HONEST[..], more].concat()
    };
    let shop = ["--input", "shop.csv", "--key", "key", "--give", "eur:decimal2", "--result", "peer"];
    let insurer = ["--input", "insurer.csv", "--key", "id"];
    let (a, b) = bench.run_both(
        &side(
            "--listen",
            &[&shop[..], &["--reveal", "over:500:eur:decimal2", "--bounds", "0..600"]].concat(),
        ),
        &side(
            "--connect",
            &[&insurer[..], &["--reveal", "over:5:eur:decimal2", "--bounds", "0..6.5"]].concat(),
        ),
    );
    for said in [a, b] {
        for words in ["over:500.00:eur:decimal2", "over:5.00:eur:decimal2", "0.00..600.00", "0.00..6.50"] {
            assert!(said.err.contains(words), "{words}: {said:?}");
        }
    }
    let dry = ["psi", "--dry-run", "--listen", "x:1", "--insecure-plaintext", "--security", "semi-honest"];
    let dry = |more: &[&'static str]| bench.run(&[&dry[..], &shop, more].concat());
    let plan = dry(&["--reveal", "over:500:eur:decimal2", "--bounds", "0..600", "--min-matches", "11"]);
    plan.success();
    for words in
        ["eur:decimal2 above 500.00", "within 0.00..600.00", "10 distinct keys, fewer than --min-matches 11"]
    {
        assert!(plan.out.contains(words), "{words}: {plan:?}");
    }
    for (kind, bounds, words) in [
        ("over:500:eur:decimal2", "0..400.5", "no number is above 500.00"),
        ("over:500:eur:decimal2", "0..500", "no number is above 500.00"),
        ("over:-1:eur:decimal2", "0..500", "every number is above -1.00"),
        ("max:eur:decimal2", "0..1.005", "at most 2 digits after the point"),
        ("max:eur:decimal2", "7.5..7.25", "7.5 is above 7.25"),
        ("max:eur", "0..7.5", "a whole number of 64 bits is expected; to read numbers with a fraction"),
    ] {
        let give = if kind == "max:eur" { "eur" } else { "eur:decimal2" };
        let shop = ["--input", "shop.csv", "--key", "key", "--give", give, "--result", "peer"];
        let dry =
            ["psi", "--dry-run", "--listen", "x:1", "--insecure-plaintext", "--security", "semi-honest"];
        let said = bench.run(&[&dry[..], &shop, &["--reveal", kind, "--bounds", bounds]].concat());
        said.fails_with(2, &[words]);
    }
    let said = dry(&["--reveal", "over:1.5:visits"]);
    said.fails_with(2, &["over:N:COL", "whole number", "price:decimal2"]);
    // What is missing is named, and not what follows from it.
    dry(&["--reveal", "shares"])
        .fails_with(2, &["--reveal: shares are the inputs of a function: set it with --eval"]);
    let eval = dry(&["--eval", "add8", "--aggregate", "count"]);
    eval.fails_with(2, &["--eval: needs --reveal shares"]);
    // The function takes whole numbers, of a column called by its name.
    let start = ["psi", "--dry-run", "--listen", "x:1", "--insecure-plaintext", "--security", "semi-honest"];
    let visits = ["--input", "shop.csv", "--key", "key", "--give", "visits", "--result", "peer"];
    let total = ["--reveal", "shares", "--eval", "add8", "--aggregate", "count"];
    dry(&total).fails_with(3, &["no column is named `eur:decimal2`"]);
    let plan = bench.run(&[&start[..], &visits, &total].concat());
    assert!(plan.out.contains("how many common keys have a result of add8 other than zero"), "{plan:?}");
    assert!(!plan.out.contains("least number of matches"), "{plan:?}");
    // A column whose own name ends so is not read in another unit.
    bench.write("odd.csv", "key,eur:decimal2\nk1,700\n");
    let odd = ["--input", "odd.csv", "--key", "key", "--give", "eur:decimal2", "--result", "peer"];
    let start = ["psi", "--listen", &address, "--insecure-plaintext", "--security", "semi-honest"];
    let said = bench.run(&[&start[..], &odd, &["--reveal", "over:5:eur:decimal2"]].concat());
    said.fails_with(2, &["--give", "rename it"]);
}

/// The page of the side that connects.
fn page(bench: &Bench, shop: &[&str], insurer: &[&str]) -> (String, Said) {
    let address = format!("127.0.0.1:{}", free_port());
    let fixed = |how| ["psi", how, &address, "--insecure-plaintext", "--security", "semi-honest"];
    let shop = [&fixed("--listen"), &["--input", "shop.csv", "--key", "key"][..], shop].concat();
    let insurer = [
        &fixed("--connect"),
        &["--input", "insurer.csv", "--key", "id", "--report", "page.html"][..],
        insurer,
    ]
    .concat();
    let (a, b) = bench.run_both(&shop, &insurer);
    a.success();
    b.success();
    (bench.read("page.html"), b)
}

#[test]
fn a_report_has_threshold_bounds_and_function() {
    let bench = bench();
    let kind = ["--reveal", "over:500:eur:decimal2", "--bounds", "0..600"];
    let shop = [&kind[..], &["--give", "eur:decimal2", "--result", "peer"]].concat();
    let (html, _) = page(&bench, &shop, &kind);
    for words in [
        "<tr><th>Threshold</th><td>500.00</td></tr>",
        "0.00..600.00: a number outside counts as the nearer bound",
        "how many matching keys have a number above 500.00, of the column eur<",
        "that 5 matching keys have a number in eur above 500.00, and that",
    ] {
        assert!(html.contains(words), "{words}: {html}");
    }
    std::fs::remove_file(bench.path("page.html")).unwrap();
    // 4 * 9 + 250 is more than eight bits hold.
    bench.write("shop.csv", "key,n\nk1,1\nk9,250\n");
    let kind = ["--reveal", "shares", "--eval", "checked-add8", "--aggregate", "sum", "--result-to-owner"];
    let kind = [&kind[..], &["--bounds", "0..255"]].concat();
    let shop = [&kind[..], &["--give", "n", "--result", "peer"]].concat();
    let (html, said) = page(&bench, &shop, &[&kind[..], &["--give", "limit"]].concat());
    assert!(said.out.contains("for a matching key: the result is wrong"), "{said:?}");
    for words in [
        "an aggregate of a function&#39;s results",
        "<th>Function</th><td>checked-add8</td>",
        "<th>Digest of its circuit</th>",
        "the sum of their results only",
        "0..255: a number outside counts as the nearer bound",
        "overflow for a matching key: the result is wrong",
    ] {
        let words = words.replace("&#39;", "'");
        assert!(html.contains(&words), "{words}: {html}");
    }
}

/// The partner is called for nothing where a cell cannot be sent: a dry run reads them all.
#[test]
fn a_dry_run_finds_the_cells_that_a_run_would_stop_at() {
    let bench = bench();
    bench.write("comma.csv", "key,eur,note\nk1,100,plain\nk2,\"12,50\",\"two\nlines\"\n");
    let shop = ["psi", "--dry-run", "--insecure-plaintext", "--input", "comma.csv", "--key", "key"];
    let dry = |more: &[&'static str]| bench.run(&[&shop[..], more].concat());
    for kind in ["sum:eur", "mean:eur", "max:eur"] {
        let said =
            dry(&[&["--give", "eur", "--result", "peer", "--reveal", kind][..], &SEMI_HONEST].concat());
        said.fails_with(3, &["comma.csv, line 3", "column `eur`", "--decimal-comma"]);
    }
    let note = ["--give", "note", "--result", "peer", "--reveal", "payload"];
    dry(&note).fails_with(3, &["comma.csv, line 3", "column `note`", "--allow-line-ends does that"]);
    dry(&[&note[..], &["--allow-line-ends"]].concat()).success();
    let shares =
        ["--give", "eur", "--result", "peer", "--reveal", "shares", "--eval", "add8", "--aggregate", "sum"];
    dry(&[&shares[..], &SEMI_HONEST].concat()).fails_with(3, &["comma.csv, line 3", "column `eur`"]);
    dry(&["--give", "gone", "--result", "peer", "--reveal", "payload"]).fails_with(3, &["gone"]);
}
