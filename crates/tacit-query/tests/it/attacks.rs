//! Attempts against noise, rounding and subqueries.

use crate::random::Random;
use rusqlite::Connection;
use rusqlite::types::Value;
use std::collections::BTreeMap;
use tacit_query::{Cell, Measure, Purpose, Question, Side, Total, parse};

/// A condition of a subquery can only be of its own table, by whatever name; else the wrong cell is read, or none.
#[test]
fn a_subquery_has_no_column_of_the_other_side() {
    for condition in ["\"\".harmless > 3", "ours.x > 0 AND \"\".a > 1 AND \"\".b > 1"] {
        let text = format!(
            "SELECT COUNT(*) FROM (SELECT k, SUM(secret) AS s FROM ours WHERE {condition} GROUP BY k) a JOIN theirs b ON a.k = b.k"
        );
        if let Ok(question) = parse(&text) {
            panic!(
                "{}: reads {:?}, uses {:?}",
                question.text, question.tables[0].columns, question.tables[0].uses
            );
        }
    }
}

/// Which cell decides: that of the column that the text names.
#[test]
fn the_cell_that_is_compared_is_of_the_column_that_is_named() {
    let text = "SELECT COUNT(*) FROM (SELECT k, SUM(secret) AS s FROM ours WHERE \"\".harmless > 3 GROUP BY k) a \
                JOIN theirs b ON a.k = b.k";
    let Ok(question) = parse(text) else { return };
    let row = |secret| question.row(Side::Ours, &[Some(secret)]).unwrap();
    assert_eq!(question.tables[0].columns, ["secret"]);
    assert_eq!(row("1"), row("9"), "{:?}", question.tables[0].uses);
}

/// A name twice in ON does not stand for another column of a subquery's GROUP BY.
#[test]
fn a_subquery_is_grouped_by_all_that_the_tables_are_joined_by() {
    let text = "SELECT SUM(CLIP(a.s, 0, 9)) AS s FROM (SELECT k, j, SUM(x) AS s FROM ours GROUP BY k, j) a \
                JOIN theirs b ON a.k = b.k AND a.\"k:int\" = b.\"k2:int\"";
    assert!(parse(text).is_err(), "GROUP BY j counts for nothing");
}

/// A type that a text gives a made column is refused, or used.
#[test]
fn a_cast_of_a_made_column_is_not_ignored() {
    for to in ["BIGINT", "DATE", "TEXT", "BOOLEAN"] {
        let text = format!(
            "SELECT SUM(CLIP(CAST(a.s AS {to}), 0, 9)) AS s FROM (SELECT k, SUM(\"x:decimal2\") AS s FROM ours GROUP BY k) a \
             JOIN theirs b ON a.k = b.k"
        );
        assert!(parse(&text).is_err(), "{to}");
    }
}

fn shown(question: &Question, rows: &[[u128; 2]]) -> Vec<Vec<Cell>> {
    let answer = question.answer(rows, &mut || u64::MAX);
    answer.into_iter().map(|(group, values)| question.render(group, &values)).collect()
}

/// Two columns of the result that have one measure in different units are each rounded in their own.
#[test]
fn columns_of_one_measure_are_rounded_in_their_own_units() {
    for text in [
        "SELECT SUM(10) AS x, SUM(1.0) AS y FROM ours a JOIN theirs b ON a.k = b.k ROUND TO 10",
        "SELECT SUM(1.0) AS y, SUM(10) AS x FROM ours a JOIN theirs b ON a.k = b.k ROUND TO 10",
    ] {
        let question = parse(text).unwrap();
        let mut cells = shown(&question, &[[1, 1]; 13]).concat();
        cells.sort_by_key(|cell| matches!(cell, Cell::Text(_)));
        assert_eq!(cells, [Cell::Integer(130), Cell::Text("10.0".into())], "{text}");
    }
}

/// The unit of a rounded number fits, or the question is refused.
#[test]
fn units_of_rounding_fit() {
    let text = "SELECT SUM(CLIP(a.\"x:decimal18\", 0, 0.000001) * CLIP(b.\"y:decimal12\", 0, 0.001)) AS s \
                FROM ours a JOIN theirs b ON a.k = b.k ROUND TO 1000000000";
    let Ok(question) = parse(text) else { return };
    assert!(question.unit(0).is_none_or(|unit| unit > 0));
}

/// With noise a group of fewer rows than HAVING says is not shown, also where that is one.
#[test]
fn having_at_least_one_row_counts_with_noise() {
    for having in ["COUNT(*) >= 1", "COUNT(*) > 0", "0 < COUNT(*)", "NOT (COUNT(*) < 1)", "COUNT(*) >= 2"] {
        let text = format!(
            "SELECT COUNT(*) AS n FROM ours a JOIN theirs b ON a.k = b.k HAVING {having} WITH NOISE EPSILON 1"
        );
        assert_eq!(shown(&parse(&text).unwrap(), &[]), Vec::<Vec<Cell>>::new(), "{having}");
    }
}

/// Whether a side's run ends before it begins says nothing of one key, where the question has noise.
#[test]
fn no_row_of_a_chosen_key_ends_a_run_with_noise() {
    for (condition, ann) in [
        (
            "CASE WHEN a.mail = 'ann@example.org' THEN 99999999999999999999 * 99999999999999999999 ELSE 0 END >= 0",
            1,
        ),
        (
            "CASE WHEN a.mail = 'ann@example.org' THEN a.\"born:date\" + 9999999 ELSE a.born END > DATE '2000-01-01'",
            2,
        ),
    ] {
        let text = format!(
            "SELECT COUNT(*) AS n FROM ours a JOIN theirs b ON a.mail = b.mail WHERE {condition} \
             HAVING COUNT(*) >= 10 WITH NOISE EPSILON 0.1"
        );
        let Ok(question) = parse(&text) else { continue };
        let row = |mail| question.row(Side::Ours, &[Some(mail), Some("1990-01-01")][..ann]);
        assert!(row("bob@example.org").is_ok());
        // A run leaves such a row out.
        assert!(row("ann@example.org").unwrap_err().is_of_value());
    }
}

/// Columns of a subquery that nothing uses are not read, or are listed.
#[test]
fn every_column_whose_cells_are_read_is_listed() {
    let text = "SELECT COUNT(*) FROM (SELECT k, SUM(secret) AS s, COUNT(*) AS n FROM ours GROUP BY k) a JOIN theirs b ON a.k = b.k";
    let question = parse(text).unwrap();
    let table = &question.tables[0];
    for column in &table.columns {
        assert!(table.uses.iter().any(|one| one.column == *column), "{column} is read and can end the run");
    }
}

/// What a change of one row can do to a measure is at most what its noise is for: for generated numbers, over random
/// rows, by the answer in the clear.
#[test]
fn no_row_changes_a_measure_by_more_than_its_noise_is_for() {
    let mut random = Random::new(99);
    let bounds = ["-7, -2", "-9, 5", "0, 9", "3, 3", "-1, 0", "-0.75, 12.5"];
    let mut asked = 0;
    for _ in 0..3000 {
        let mut clip = |column: &str| format!("CLIP({column}, {})", random.pick(&bounds));
        let (p, q, r, s) = (clip("a.x"), clip("b.y"), clip("a.\"z:decimal2\""), clip("b.y"));
        let dates = "CLIP(a.\"d:date\", DATE '2026-01-01', DATE '2026-02-01') - CLIP(b.\"e:date\", DATE '2025-12-20', DATE '2026-03-01')";
        let x = match random.below(9) {
            0 => format!("{p} * {q}"),
            1 => format!("{p} * {q} * {r} - {s}"),
            2 => format!("CASE WHEN {p} > {q} THEN {r} WHEN a.x > 0 THEN {s} END"),
            3 => format!("COALESCE({r}, {q}, -20)"),
            4 => format!("CLIP({p} + {q}, -3, 4) * -{r}"),
            5 => format!("CLIP({r}, -2, 1) - CLIP({p}, -50, 50)"),
            6 => dates.to_owned(),
            7 => format!("CASE WHEN {q} < 0 THEN -30.125 ELSE {p} END"),
            _ => format!("CLIP(a.x * a.x - 3 * a.\"z:decimal2\", {}) + {q}", random.pick(&bounds)),
        };
        let text = format!(
            "SELECT SUM({x}) AS s, COUNT({x}) AS c FROM ours a JOIN theirs b ON a.k = b.k WITH NOISE EPSILON 1"
        );
        let question = parse(&text).unwrap_or_else(|fault| panic!("{text}: {fault}"));
        let Measure::Sum(number) = &question.measures[0] else { panic!("{text}") };
        let fields = &question.fields;
        let range = number.range(&|at| match fields[at].kind {
            tacit_query::Kind::Number { least, most } => Some((least, most)),
            _ => None,
        });
        let (least, most) = range.unwrap_or((0, 0));
        let change = least.abs().max(most.abs());
        // The rate of each digit is epsilon over two numbers times this: thresholds say it again.
        let digits = question.noise[0].len();
        let expected = (0..).take_while(|digit| 2f64.powi(*digit) / (2.0 * change as f64) < 44.361).count();
        assert_eq!(digits, if change == 0 { 0 } else { expected }, "{text}");
        let mut row = |side: Side| {
            let columns = &question.tables[side as usize].columns;
            let cells: Vec<Option<&str>> = columns
                .iter()
                .map(|column| match column.as_str() {
                    "d" | "e" => {
                        random.pick(&[None, Some("2026-01-01"), Some("2020-01-01"), Some("2027-01-01")])
                    }
                    "z" => random.pick(&[None, Some("0.25"), Some("-99.75"), Some("1000"), Some("12.5")]),
                    _ => random.pick(&[
                        None,
                        Some("0"),
                        Some("-1"),
                        Some("7"),
                        Some("-100000"),
                        Some("100000"),
                    ]),
                })
                .collect();
            question.row(side, &cells).unwrap().unwrap()
        };
        for _ in 0..20 {
            let rows = [[row(Side::Ours), row(Side::Theirs)]];
            let value = question.answer(&rows, &mut || u64::MAX)[0].1.clone();
            assert!(
                value[0].unwrap().abs() <= change && value[1].unwrap() <= 1,
                "{text}: {value:?} {change}"
            );
        }
        asked += 1;
    }
    assert_eq!(asked, 3000);
}

const OURS: &str = "(SELECT k, SUM(amount) AS s, COUNT(amount) AS c, COUNT(*) AS n, MIN(d) AS low, MAX(d) AS high, SUM(amount * amount) AS q, \
                    MAX(CASE WHEN t = 'u' THEN amount END) AS m FROM ours WHERE FILTER GROUP BY k) a";

/// Sums by key of decimals, dates, text and nothing, against SQLite on whole units.
#[test]
fn sums_of_decimals_and_dates_are_those_of_sqlite() {
    let base = Connection::open_in_memory().unwrap();
    base.execute_batch("CREATE TABLE ours (k, amount, d, t); CREATE TABLE theirs (k, y)").unwrap();
    let mut random = Random::new(31);
    let filters = [
        ("1 = 1", "1 = 1"),
        ("amount > 0.5", "amount > 50"),
        ("NOT amount > 0.5", "NOT amount > 50"),
        ("t IS NULL OR t <> 'u'", "t IS NULL OR t <> 'u'"),
        ("d >= DATE '2026-01-03'", "d >= 20456"),
        (
            "t IN ('u', 'v') AND NOT (amount BETWEEN -1 AND 1.25)",
            "t IN ('u', 'v') AND NOT (amount BETWEEN -100 AND 125)",
        ),
        ("COALESCE(amount, 3) * 2 > 1.5", "COALESCE(amount, 300) * 2 > 150"),
    ];
    let mut joined_rows = 0;
    for round in 0..400 {
        base.execute_batch("DELETE FROM ours; DELETE FROM theirs").unwrap();
        let (mut ours, mut theirs) = (vec![], vec![]);
        for key in 0..10 {
            for _ in 0..random.below(4) {
                let amount = (!random.one_in(4)).then(|| random.pick(&[-125i64, 0, 1, 50, 75, 999, -100]));
                let day = (!random.one_in(4)).then(|| random.between(20454, 20459));
                let t = random.pick(&[None, Some("u"), Some("v"), Some("w")]);
                base.execute("INSERT INTO ours VALUES (?, ?, ?, ?)", (format!("k{key}"), amount, day, t))
                    .unwrap();
                let decimal = |units: i64| {
                    format!(
                        "{}{}.{:02}",
                        if units < 0 { "-" } else { "" },
                        units.abs() / 100,
                        units.abs() % 100
                    )
                };
                let date = |day: i64| format!("2026-01-{:02}", day - 20453);
                ours.push((format!("k{key}"), [amount.map(decimal), day.map(date), t.map(str::to_owned)]));
            }
            if !random.one_in(3) {
                let y = (!random.one_in(4)).then(|| random.between(-3, 3));
                base.execute("INSERT INTO theirs VALUES (?, ?)", (format!("k{key}"), y)).unwrap();
                theirs.push((format!("k{key}"), y.map(|y| y.to_string())));
            }
        }
        let (filter, of_sqlite) = filters[round % filters.len()];
        let outer = [
            ("", ""),
            (" WHERE a.s > 0.5 AND a.n >= 1", " WHERE a.s > 50 AND a.n >= 1"),
            (
                " WHERE a.s IS NULL OR CLIP(a.s, -1, 1) < CLIP(b.y, -9, 9)",
                " WHERE a.s IS NULL OR min(max(a.s, -100), 100) < 100 * min(max(b.y, -9), 9)",
            ),
            (" WHERE a.low = a.high OR a.m IS NULL", " WHERE a.low = a.high OR a.m IS NULL"),
            (" WHERE NOT a.c = a.n", " WHERE NOT a.c = a.n"),
        ];
        let (after, after_sqlite) = random.pick(&outer);
        let table = OURS
            .replace("amount", "\"amount:decimal2\"")
            .replace("(d)", "(\"d:date\")")
            .replace("FILTER", &filter.replace("amount", "\"amount:decimal2\""));
        let text = format!(
            "SELECT COUNT(*), SUM(CLIP(a.s, -2, 8)) AS s, SUM(CLIP(a.q, 0, 50)) AS q, SUM(CLIP(a.c, 0, 9) * CLIP(b.y, -2, 2)) AS c, COUNT(a.m) AS m, COUNT(a.s) AS cs, \
             MIN(CLIP(a.low, DATE '2026-01-02', DATE '2026-01-05')) AS l, SUM(CLIP(a.high - a.low, 0, 4)) AS w FROM {table} JOIN theirs b ON a.k = b.k{after}"
        );
        let question = parse(&text).unwrap_or_else(|fault| panic!("{text}: {fault}"));
        assert_eq!(parse(&question.text).unwrap().text, question.text);
        let columns = &question.tables[0].columns;
        let mut totals: BTreeMap<&str, Total> = BTreeMap::new();
        for (key, cells) in &ours {
            let cells: Vec<Option<&str>> = columns
                .iter()
                .map(|name| cells[["amount", "d", "t"].iter().position(|c| c == name).unwrap()].as_deref())
                .collect();
            question.add(Side::Ours, totals.entry(key).or_default(), &cells).unwrap();
        }
        let mut rows = vec![];
        for (key, y) in &theirs {
            let Some(total) = totals.get(key.as_str()) else { continue };
            let ours = question.total(Side::Ours, total).unwrap();
            let theirs =
                question.row(Side::Theirs, &[y.as_deref()][..question.tables[1].columns.len()]).unwrap();
            if let (Some(a), Some(b)) = (ours, theirs) {
                rows.push([a, b]);
            }
        }
        joined_rows += rows.len();
        let found: Vec<Option<i128>> = question.answer(&rows, &mut || unreachable!())[0].1.clone();
        // In the order of the result's columns.
        let at = |name: &str| {
            let (_, output) = question.outputs.iter().find(|(n, _)| n == name).unwrap();
            let measure = match *output {
                tacit_query::Output::Count(at) | tacit_query::Output::Date(at) => at,
                tacit_query::Output::Number { measure, .. } => measure,
                _ => panic!(),
            };
            found[question.opened().binary_search(&measure).unwrap()]
        };
        let sqlite = format!(
            "SELECT COUNT(*), SUM(min(max(a.s, -200), 800)), SUM(min(max(a.q, 0), 500000)), SUM(min(max(a.c, 0), 9) * min(max(b.y, -2), 2)), COUNT(a.m), COUNT(a.s), \
             MIN(min(max(a.low, 20455), 20458)), SUM(min(max(a.high - a.low, 0), 4)) FROM {} JOIN theirs b ON a.k = b.k{after_sqlite}",
            OURS.replace("FILTER", of_sqlite)
        );
        let expected: Vec<Option<i128>> = base
            .query_row(&sqlite, [], |row| {
                (0..8)
                    .map(|at| {
                        row.get::<_, Value>(at).map(|value| match value {
                            Value::Integer(number) => Some(i128::from(number)),
                            _ => None,
                        })
                    })
                    .collect()
            })
            .unwrap_or_else(|error| panic!("{sqlite}: {error}"));
        let found: Vec<Option<i128>> =
            ["COUNT(*)", "s", "q", "c", "m", "cs", "l", "w"].iter().map(|name| at(name)).collect();
        assert_eq!(found, expected, "{text}");
    }
    assert!(joined_rows > 800, "{joined_rows}");
}

/// A side cannot have sums of its own numbers as the use of another column.
#[test]
fn what_is_made_of_own_columns_is_carried() {
    for (made, selected, carried) in [
        ("COUNT(*) AS v", "SUM(CLIP(a.v, 0, 9)) AS s", "k"),
        ("SUM(1) AS v", "SUM(CLIP(a.v, 0, 9)) AS s", "k"),
        ("SUM(w) AS v", "SUM(CASE WHEN a.v > 3 THEN 1 ELSE 0 END) AS s", "w"),
        ("SUM(w) AS v", "COUNT(CASE WHEN a.v > 3 THEN 1 END) AS s", "w"),
        (
            "SUM(w) AS v",
            "SUM(CASE WHEN CLIP(a.v, 0, 3) > CLIP(b.y, 0, 3) THEN CLIP(b.y, 0, 3) END) AS s",
            "w",
        ),
        ("MAX(w) AS v", "COUNT(a.v) AS s", "w"),
        ("COUNT(w IS NULL) AS v", "AVG(CLIP(a.v, 0, 3)) AS s", "w"),
        ("SUM(CASE WHEN w = 1 THEN z END) AS v", "COUNT(*) AS s", ""),
    ] {
        for having in ["", " HAVING SUM(CLIP(a.v, 0, 9)) > 3"] {
            let text = format!(
                "SELECT {selected} FROM (SELECT k, {made} FROM ours GROUP BY k) a JOIN theirs b ON a.k = b.k{having}"
            );
            let question = parse(&text).unwrap_or_else(|fault| panic!("{text}: {fault}"));
            let carries = question.carries(Side::Ours);
            assert!(carried.is_empty() && having.is_empty() || !carries.is_empty(), "{text}: {carries:?}");
            assert!(carried.is_empty() || carries.contains(&carried.to_owned()), "{text}: {carries:?}");
        }
    }
    let own = parse(
        "SELECT SUM(CLIP(b.y, 0, 9)) AS s FROM (SELECT k, COUNT(*) AS n FROM ours WHERE w > 3 GROUP BY k) a JOIN theirs b ON a.k = b.k WHERE a.n > 1",
    );
    let uses: Vec<_> =
        own.unwrap().tables[0].uses.iter().map(|one| (one.column.clone(), one.purpose)).collect();
    assert_eq!(
        uses,
        [("k".into(), Purpose::Join), ("k".into(), Purpose::Filter), ("w".into(), Purpose::Filter)]
    );
}

/// Texts of the longest length that take the longest to read and plan: seconds, not minutes, and no panic.
#[test]
fn the_longest_texts_are_read_in_time() {
    let fill = |unit: &dyn Fn(usize) -> String, between: &str, most: usize| {
        let mut all = String::new();
        for at in 0.. {
            let one = unit(at);
            if all.len() + one.len() + between.len() > most {
                break;
            }
            if at > 0 {
                all += between;
            }
            all += &one;
        }
        all
    };
    let question = |selected: &str, rest: &str| {
        format!("SELECT {selected} FROM ours a JOIN theirs b ON a.k = b.k {rest}")
    };
    let nested = |open: &str, inside: &str, close: &str, times: usize| {
        open.repeat(times) + inside + &close.repeat(times)
    };
    let chain = fill(&|at| format!("a.c{at} = a.c{}", at + 1), " AND ", 60_000);
    let back = {
        let mut parts: Vec<&str> = chain.split(" AND ").collect();
        parts.reverse();
        parts.join(" AND ")
    };
    let texts = [
        ("chain", question("COUNT(*)", &format!("WHERE {chain} AND a.c0 = 1"))),
        ("chain back", question("COUNT(*)", &format!("WHERE a.c0 = 1 AND {back}"))),
        ("many sums", question(&fill(&|at| format!("SUM(CLIP(a.x, 0, {at})) AS s{at}"), ", ", 60_000), "")),
        (
            "many sums of both",
            question(
                &fill(&|at| format!("SUM(CLIP(a.x, 0, {at}) * CLIP(b.y, 0, 1)) AS s{at}"), ", ", 60_000),
                "",
            ),
        ),
        (
            "many sums noise",
            question(
                &fill(&|at| format!("SUM(CLIP(a.x, 0, 1) + {at}) AS s{at}"), ", ", 60_000),
                "WITH NOISE EPSILON 1",
            ),
        ),
        ("many counts", question(&fill(&|at| format!("COUNT(a.x + {at}) AS s{at}"), ", ", 60_000), "")),
        (
            "many counts of both",
            question(&fill(&|at| format!("COUNT(a.x > {at} AND b.y > {at}) AS s{at}"), ", ", 60_000), ""),
        ),
        (
            "many keys",
            format!(
                "SELECT COUNT(*) FROM ours a JOIN theirs b ON {}",
                fill(&|at| format!("a.k{at} = b.k{at}"), " AND ", 60_000)
            ),
        ),
        ("many keys summed", {
            let key = fill(&|at| format!("k{at}"), ", ", 15_000);
            let on: Vec<String> = key.split(", ").map(|k| format!("a.{k} = b.{k}")).collect();
            format!(
                "SELECT COUNT(*) FROM (SELECT {key}, COUNT(*) AS n FROM ours GROUP BY {key}) a JOIN theirs b ON {}",
                on[..on.len().min(1500)].join(" AND ")
            )
        }),
        (
            "between",
            question(
                "COUNT(*)",
                &format!(
                    "WHERE {} IS NULL",
                    nested("(", "CLIP(a.x, 0, 1) + CLIP(b.y, 0, 1)", " BETWEEN 0 AND 1) IS TRUE", 17)
                        .replace("TRUE BETWEEN", "TRUE")
                ),
            ),
        ),
        (
            "coalesce",
            question(
                &format!("SUM({}) AS s", nested("COALESCE(", "CLIP(a.x, 0, 1)", ", CLIP(b.y, 0, 2))", 18)),
                "",
            ),
        ),
        (
            "case",
            question(
                &format!(
                    "SUM({}) AS s",
                    nested(
                        "CASE WHEN CLIP(a.x, 0, 1) > CLIP(b.y, 0, 1) THEN 1 ELSE ",
                        "CLIP(a.x, 0, 1)",
                        " END",
                        18
                    )
                ),
                "",
            ),
        ),
        (
            "case of",
            question(
                &format!(
                    "SUM({}) AS s",
                    nested("CASE ", "CLIP(a.x, 0, 1)", " WHEN CLIP(b.y, 0, 1) THEN 1 ELSE 0 END", 18)
                ),
                "",
            ),
        ),
        ("minus", question(&format!("SUM({}CLIP(a.x, 0, 1)) AS s", "- ".repeat(30_000)), "")),
        ("parentheses", question(&format!("SUM({}) AS s", nested("(", "CLIP(a.x, 0, 1)", ")", 20_000)), "")),
        ("not", question("COUNT(*)", &format!("WHERE {}a.x > 1", "NOT ".repeat(15_000)))),
        (
            "subqueries",
            format!(
                "SELECT COUNT(*) FROM {} JOIN theirs b ON a.k = b.k",
                nested("(SELECT k, COUNT(*) AS n FROM ", "ours", " GROUP BY k) a", 1300)
            ),
        ),
        ("plus", question(&format!("SUM({}) AS s", vec!["CLIP(a.x, 0, 1)"; 3500].join(" + ")), "")),
        (
            "plus of both",
            question(
                &format!("SUM({}) AS s", vec!["CLIP(a.x, 0, 1) * CLIP(b.y, 0, 1)"; 1700].join(" + ")),
                "",
            ),
        ),
        (
            "aliases",
            question(
                &format!("SUM({}) AS s", vec!["CLIP(a.x, 0, 1)"; 90].join(" + ")),
                &format!("HAVING {}", vec!["s > 1"; 6000].join(" AND ")),
            ),
        ),
        ("like", question("COUNT(*)", &format!("WHERE a.x LIKE '{}'", "%a".repeat(30_000)))),
        (
            "in",
            question(
                "COUNT(*)",
                &format!("WHERE a.x IN ({}) GROUP BY a.x", fill(&|at| at.to_string(), ", ", 60_000)),
            ),
        ),
        (
            "groups",
            question("COUNT(*)", &format!("GROUP BY {}", fill(&|at| format!("a.x > {at}"), ", ", 60_000))),
        ),
        ("ends", question("COUNT(*)", &"WITH NOISE EPSILON 1 ".repeat(3000))),
        (
            "made",
            format!(
                "SELECT {} FROM (SELECT k, {} FROM ours GROUP BY k) a JOIN theirs b ON a.k = b.k",
                fill(&|at| format!("COUNT(a.m{}) AS c{at}", at % 64), ", ", 30_000),
                fill(&|at| format!("SUM(x + {at}) AS m{at}"), ", ", 1500)
            ),
        ),
    ];
    let mut slow = vec![];
    for (name, text) in texts {
        // As small a stack as a thread of a program has that embeds this.
        let work = move || {
            let begun = std::time::Instant::now();
            let found = parse(&text);
            (
                begun.elapsed().as_secs_f64(),
                text.len(),
                found.map(|q| q.measures.len()).map_err(|f| f.to_string()),
            )
        };
        let (seconds, bytes, found) =
            std::thread::Builder::new().stack_size(512 << 10).spawn(work).unwrap().join().unwrap();
        println!("{name} ({bytes} bytes): {seconds:.3} s, {found:?}");
        if seconds > 5.0 {
            slow.push((name, seconds));
        }
    }
    assert!(slow.is_empty(), "{slow:?}");
}
