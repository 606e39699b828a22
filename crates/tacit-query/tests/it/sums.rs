//! Subqueries in place of a table: rows of one key added up, against SQLite's answers, and what is refused.

use crate::random::Random;
use rusqlite::Connection;
use rusqlite::types::Value;
use std::collections::BTreeMap;
use tacit_query::{Cell, Purpose, Question, Side, Total, parse};

const OURS: &str = "(SELECT k, SUM(x) AS x, COUNT(*) AS n, COUNT(y) AS c, MIN(y) AS low, MAX(x - y) AS high FROM ours \
                    WHERE x IS NULL OR x > -9 GROUP BY k) a";
const THEIRS: &str = "(SELECT theirs.k, SUM(CASE WHEN y > 3 THEN x ELSE 0 END) AS x, COUNT(*) AS n, COUNT(x) AS c, MIN(x) AS low, \
                      MAX(y) AS high FROM theirs GROUP BY theirs.k) AS b";

/// A side's blocks by key.
fn blocks(question: &Question, side: Side, rows: &[[Option<String>; 3]]) -> BTreeMap<String, u128> {
    let columns = &question.tables[side as usize].columns;
    let mut totals: BTreeMap<String, Total> = BTreeMap::new();
    let mut blocks = BTreeMap::new();
    for row in rows {
        let cell = |name: &String| row[["k", "x", "y"].iter().position(|c| c == name).unwrap()].as_deref();
        let cells: Vec<Option<&str>> = columns.iter().map(cell).collect();
        let key = row[0].clone().unwrap();
        match question.adds_up(side) {
            true => question.add(side, totals.entry(key).or_default(), &cells).unwrap(),
            false => drop(question.row(side, &cells).unwrap().and_then(|block| blocks.insert(key, block))),
        }
    }
    for (key, total) in totals {
        if let Some(block) = question.total(side, &total).unwrap() {
            blocks.insert(key, block);
        }
    }
    blocks
}

fn rows(random: &mut Random, keys: usize, repeated: bool) -> Vec<[Option<String>; 3]> {
    let mut all = vec![];
    for key in 0..keys {
        let times = if repeated { random.below(5) } else { usize::from(random.one_in(2)) };
        for _ in 0..times {
            let mut number = || (!random.one_in(6)).then(|| (random.between(-12, 17)).to_string());
            all.push([Some(format!("k{key}")), number(), number()]);
        }
    }
    all
}

#[test]
fn sums_of_each_key_are_those_of_sqlite() {
    let base = Connection::open_in_memory().unwrap();
    base.execute_batch("CREATE TABLE ours (k, x, y); CREATE TABLE theirs (k, x, y)").unwrap();
    let mut random = Random::new(5);
    let mut shown = 0;
    for round in 0..60 {
        let (a, b) = [(OURS, THEIRS), (OURS, "theirs b"), ("ours a", THEIRS)][round % 3];
        let tables = [rows(&mut random, 12, a == OURS), rows(&mut random, 12, b == THEIRS)];
        for (name, rows) in ["ours", "theirs"].iter().zip(&tables) {
            base.execute(&format!("DELETE FROM {name}"), []).unwrap();
            for row in rows {
                let number = |cell: &Option<String>| match cell {
                    Some(text) => Value::Integer(text.parse().unwrap()),
                    None => Value::Null,
                };
                let cells = (row[0].clone().unwrap(), number(&row[1]), number(&row[2]));
                base.execute(&format!("INSERT INTO {name} VALUES (?, ?, ?)"), cells).unwrap();
            }
        }
        let ours = if a == OURS { ["x", "n", "low", "high"] } else { ["x", "y", "x", "y"] };
        let theirs = if b == THEIRS { ["x", "c", "low", "high"] } else { ["x", "y", "x", "y"] };
        let (o, t) = (ours.map(|c| format!("a.{c}")), theirs.map(|c| format!("b.{c}")));
        for (selected, rest) in [
            (
                format!(
                    "COUNT(*), SUM(CLIP({}, -50, 50)), SUM(CLIP({}, 0, 9) * CLIP({}, 0, 4))",
                    o[0], o[1], t[1]
                ),
                "",
            ),
            (format!("MIN(CLIP({}, -50, 50)), MAX(CLIP({}, -5, 5)), COUNT({})", o[2], t[3], t[2]), ""),
            (
                format!("COUNT(*), SUM(CLIP({} + {}, -99, 99))", t[0], t[1]),
                &format!("WHERE {} > 2 AND CLIP({}, -9, 9) < CLIP({}, -9, 9)", o[0], o[3], t[3]),
            ),
            (format!("{} > 3, COUNT(*)", o[0]), &format!("GROUP BY {} > 3", o[0])),
        ] {
            let text = format!("SELECT {selected} FROM {a} JOIN {b} ON a.k = b.k {rest}");
            let text = match selected.contains(" > 3, ") {
                true => text.replacen("> 3, COUNT", "> 3 AS g, COUNT", 1),
                false => text,
            };
            let question = parse(&text).unwrap_or_else(|fault| panic!("{text}: {fault}"));
            assert_eq!(parse(&question.text).map(|again| again.text), Ok(question.text.clone()));
            let [ours, theirs] = Side::BOTH.map(|side| blocks(&question, side, &tables[side as usize]));
            let joined: Vec<[u128; 2]> =
                ours.iter().filter_map(|(key, a)| Some([*a, *theirs.get(key)?])).collect();
            let mut found: Vec<String> = question
                .answer(&joined, &mut || unreachable!())
                .into_iter()
                .map(|(group, values)| {
                    let cells = question.render(group, &values).into_iter().map(|cell| match cell {
                        Cell::Null => "NULL".to_owned(),
                        Cell::Truth(is) => u8::from(is).to_string(),
                        Cell::Integer(number) => number.to_string(),
                        Cell::Text(text) => text,
                    });
                    cells.collect::<Vec<_>>().join("|")
                })
                .collect();
            found.sort_unstable();
            let sqlite = in_sqlite(&text);
            let mut statement = base.prepare(&sqlite).unwrap_or_else(|error| panic!("{sqlite}: {error}"));
            let width = statement.column_count();
            let mut expected: Vec<String> = statement
                .query_map([], |row| {
                    let cells = (0..width).map(|at| match row.get::<_, Value>(at).unwrap() {
                        Value::Null => "NULL".to_owned(),
                        Value::Integer(number) => number.to_string(),
                        other => panic!("{other:?}"),
                    });
                    Ok(cells.collect::<Vec<_>>().join("|"))
                })
                .unwrap()
                .map(Result::unwrap)
                .collect();
            expected.sort_unstable();
            assert_eq!(found, expected, "{text}");
            shown += joined.len();
        }
    }
    assert!(shown > 500, "{shown}");
}

/// CLIP by what SQLite has: the larger and the smaller of two values, nothing if one of them is.
fn in_sqlite(text: &str) -> String {
    let mut rest = text;
    let mut made = String::new();
    while let Some((before, after)) = rest.split_once("CLIP(") {
        let (inside, behind) = after.split_once(')').unwrap();
        let parts: Vec<&str> = inside.split(", ").collect();
        made += &format!("{before}min(max({}, {}), {})", parts[0], parts[1], parts[2]);
        rest = behind;
    }
    made + rest
}

#[test]
fn columns_of_a_subquery_are_used_as_what_they_are_made_of() {
    let question = parse(&format!(
        "SELECT COUNT(*), SUM(CLIP(a.n, 0, 9)) AS rows FROM {OURS} JOIN theirs b ON a.k = b.k WHERE a.high > 3"
    ))
    .unwrap();
    let uses: Vec<(&str, Purpose)> =
        question.tables[0].uses.iter().map(|one| (one.column.as_str(), one.purpose)).collect();
    assert_eq!(
        uses,
        [("k", Purpose::Join), ("k", Purpose::Aggregate), ("x", Purpose::Filter), ("y", Purpose::Filter)]
    );
    assert_eq!(question.tables[0].columns, ["x", "y"]);
    assert_eq!(question.carries(Side::Ours), ["k"]);
    let text = "SELECT SUM(CLIP(a.s, 0, 9)) AS s FROM (SELECT \"mail:email\", SUM(\"d:decimal2\" * 2) AS s FROM ours o GROUP BY o.mail) a \
                JOIN theirs b ON a.\"mail:email\" = b.mail";
    let question = parse(text).unwrap();
    assert_eq!(
        question.text,
        "SELECT SUM(CLIP(a.s, 0, 9)) AS s FROM (SELECT o.mail, SUM(o.\"d:decimal2\" * 2) AS s FROM ours o GROUP BY o.mail) a \
         JOIN theirs b ON a.\"mail:email\" = b.mail"
    );
    // 9.00 in hundredths.
    assert_eq!(question.bits(Side::Ours), 1 + 10 + 1);
}

#[test]
fn what_is_no_subquery_is_refused() {
    for (subquery, words) in [
        ("(SELECT k, SUM(x) AS x FROM ours GROUP BY k)", "has no name"),
        ("(SELECT k, SUM(x) AS x FROM ours GROUP BY k) a (k, y)", "cannot change"),
        ("(SELECT k, SUM(x) AS x FROM ours) a", "grouped by the columns of the key"),
        ("(SELECT k, SUM(x) AS x FROM ours GROUP BY k, j) a", "is grouped by `k, j`, and ON joins by `k`"),
        ("(SELECT k, SUM(x) AS x FROM ours GROUP BY LOWER(k)) a", "grouped by the columns of the key"),
        ("(SELECT k, SUM(x) FROM ours GROUP BY k) a", "not an aggregate with a name"),
        ("(SELECT k, SUM(x) + 1 AS x FROM ours GROUP BY k) a", "not an aggregate with a name"),
        ("(SELECT k, x FROM ours GROUP BY k) a", "`x` is neither of the key nor an aggregate"),
        ("(SELECT k AS j, SUM(x) AS x FROM ours GROUP BY k) a", "keeps its name"),
        ("(SELECT k, SUM(x) AS k FROM ours GROUP BY k) a", "two columns called `k`"),
        ("(SELECT k, AVG(x) AS x FROM ours GROUP BY k) a", "AVG(ours.x) divides"),
        ("(SELECT k, SUM(SUM(x)) AS x FROM ours GROUP BY k) a", "not an aggregate with a name"),
        (
            "(SELECT k, SUM(x) AS x FROM ours GROUP BY k HAVING COUNT(*) > 1) a",
            "HAVING is not part of a subquery",
        ),
        ("(SELECT k, SUM(x) AS x FROM ours WHERE SUM(x) > 1 GROUP BY k) a", "WHERE has an aggregate"),
        ("(SELECT k, SUM(x) AS x FROM ours WHERE x + 1 GROUP BY k) a", "WHERE has a number"),
        ("(SELECT * FROM ours GROUP BY k) a", "names what it makes"),
        ("(SELECT k, SUM(x) AS x FROM (SELECT k, x FROM ours) o GROUP BY k) a", "is of one side's table"),
        ("(SELECT k, SUM(x) AS x FROM ours, theirs GROUP BY k) a", "is of one side's table"),
        ("(SELECT k, SUM(x) AS x FROM theirs GROUP BY k) a", "ours and theirs, each once"),
        ("(SELECT k, SUM(x) AS x FROM ours GROUP BY k LIMIT 3) a", "LIMIT is not part"),
        ("(SELECT k, SUM(x) AS x FROM ours GROUP BY k UNION SELECT 1, 2) a", "UNION"),
        ("LATERAL (SELECT k, SUM(x) AS x FROM ours GROUP BY k) a", "is not ours or theirs"),
    ] {
        let text = format!("SELECT SUM(CLIP(a.x, 0, 9)) AS s FROM {subquery} JOIN theirs b ON a.k = b.k");
        let fault = parse(&text).map(|question| question.text).unwrap_err().to_string();
        assert!(fault.contains(words) && fault.contains("; "), "{subquery}\n  {fault}\n  lacks {words}");
    }
    let of = |selected: &str| {
        let text = format!("SELECT {selected} FROM {OURS} JOIN theirs b ON a.k = b.k");
        parse(&text).map(|question| question.text).unwrap_err().to_string()
    };
    assert!(
        of("SUM(CLIP(a.y, 0, 9))")
            .contains("`y` is not a column of the subquery; it makes x, n, c, low, high")
    );
    assert!(of("COUNT(a.k)").contains("`k` is of the key, by which rows are only joined"));
    assert!(of("SUM(a.x)").contains("has no bounds"));
    assert!(of("SUM(CLIP(a.\"x:decimal2\", 0, 9))").contains("`x:decimal2` is not a column"));
}

/// Sums that do not fit are an error that shows no number.
#[test]
fn sums_that_do_not_fit_are_refused() {
    let text = "SELECT SUM(CLIP(a.x, 0, 9)) AS s FROM (SELECT k, SUM(x * 1000000) AS x FROM ours GROUP BY k) a JOIN theirs b ON a.k = b.k";
    let question = parse(text).unwrap();
    let mut total = Total::default();
    let large = "9".repeat(32);
    let mut add = |cell: &str| question.add(Side::Ours, &mut total, &[Some(cell)]);
    assert_eq!(add("1"), Ok(()));
    let fault = (0..20).find_map(|_| add(&large).err()).unwrap().to_string();
    assert!(
        fault.contains("too large to compute `SUM(ours.x * 1000000)` of") && !fault.contains("999"),
        "{fault}"
    );
}
