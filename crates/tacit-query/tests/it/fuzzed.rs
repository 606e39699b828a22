//! Random edits of questions: whatever the text, there is a question that reads back as itself, or one line.

use crate::random::Random;
use tacit_query::{Side, Total, parse};

const SEEDS: &[&str] = &[
    "SELECT b.segment, COUNT(*) AS customers, SUM(CLIP(a.spent, 0, 200000)) AS spent FROM (SELECT mail, SUM(cents) AS spent, COUNT(*) AS orders FROM ours WHERE cents > 0 GROUP BY mail) a JOIN theirs b ON a.mail = b.mail WHERE a.orders >= 2 AND b.segment IN ('basic', 'plus') GROUP BY b.segment HAVING COUNT(*) >= 10",
    "SELECT SUM(CLIP(a.s, -9.5, 9)) AS s, COUNT(CLIP(b.low, DATE '2020-01-01', DATE '2026-12-31')) AS d FROM (SELECT o.\"mail:email\", SUM(o.\"d:decimal2\" * 2) AS s FROM ours AS o GROUP BY o.mail) AS a JOIN (SELECT mail, MIN(\"d:date\") AS low, MAX(x - y) AS high, COUNT(y) AS c FROM theirs t WHERE t.x IS NULL OR NOT x BETWEEN -3 AND 5 GROUP BY t.mail) b ON a.\"mail:email\" = b.mail WHERE CLIP(a.s, 0, 5) * CLIP(b.high, 0, 7) >= CLIP(b.c, 0, 3) ROUND TO 10",
    "SELECT a.g, CASE WHEN b.age < 30 THEN 'young' ELSE 'older' END AS age, COUNT(*), AVG(CLIP(a.\"amount:decimal2\", 0, 500)) AS m, COUNT(COALESCE(CLIP(a.x, 0, 5), CLIP(b.y, 0, 9))) AS c FROM ours a JOIN theirs b ON a.k = b.k AND a.k2 = b.k2 WHERE a.g BETWEEN 1 AND 9 AND b.name LIKE '%x!_' ESCAPE '!' GROUP BY a.g, CASE WHEN b.age < 30 THEN 'young' ELSE 'older' END HAVING COUNT(*) >= 3 AND SUM(CLIP(a.x, -5, 5)) > 2 ROUND TO 100 WITH NOISE EPSILON 0.25",
    "SELECT COUNT(DISTINCT a.k) AS n, SUM(CASE WHEN CLIP(a.\"d1:date\", DATE '2020-01-01', DATE '2026-12-31') >= CLIP(b.\"seen:date\", DATE '2020-01-01', DATE '2026-12-31') THEN CLIP(a.\"a1:decimal2\", 0, 500) ELSE 0 END) AS s FROM theirs b JOIN ours a ON b.k = a.k WHERE EXTRACT(YEAR FROM b.seen) = 2024 OR UPPER(TRIM(b.t)) <> 'X''Y' -- c\n AND (a.f IS TRUE) IS NOT UNKNOWN WITH NOISE EPSILON 1.5 ROUND TO 2",
];

const WORDS: &[&str] = &[
    "SELECT",
    "FROM",
    "WHERE",
    "GROUP BY",
    "HAVING",
    "JOIN",
    "ON",
    "AND",
    "OR",
    "NOT",
    "IN",
    "BETWEEN",
    "IS NULL",
    "CASE",
    "WHEN",
    "THEN",
    "ELSE",
    "END",
    "AS",
    "ours",
    "theirs",
    "a",
    "b",
    "a.k",
    "b.k",
    "\"\"",
    "\"\".x",
    "a.x",
    "b.y",
    "a.s",
    "COUNT(*)",
    "SUM(",
    "MIN(",
    "MAX(",
    "AVG(",
    "COUNT(",
    "CLIP(",
    "COALESCE(",
    ")",
    "(",
    ",",
    "+",
    "-",
    "*",
    "/",
    "=",
    "<",
    ">=",
    "<>",
    "0",
    "1",
    "-1",
    "0.01",
    "99999999999999999999999999",
    "1000000000",
    "'x'",
    "''",
    "NULL",
    "TRUE",
    "DATE '2026-01-01'",
    "DATE '9999-12-31'",
    "CAST(a.x AS DATE)",
    "EXTRACT(YEAR FROM a.d)",
    "ROUND TO 10",
    "ROUND TO 1000000000",
    "WITH NOISE EPSILON 1",
    "WITH NOISE EPSILON 0.000001",
    "WITH NOISE EPSILON 100",
    ";",
    "--",
    "/*",
    "*/",
    ".",
    "\"x:decimal18\"",
    "a.\"x:decimal18\"",
    "a.\"k:int\"",
    "LIKE 'a%'",
    "(SELECT k, SUM(x) AS s FROM ours GROUP BY k)",
    "(SELECT k, COUNT(*) AS n FROM theirs WHERE x > 1 GROUP BY k) b",
    "mail",
    "cents",
    "\u{0}",
    "ü",
    "\n",
];

fn tokens(text: &str) -> Vec<String> {
    let mut found = vec![];
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let of = |test: fn(char) -> bool| rest.find(|c| !test(c)).unwrap_or(rest.len());
        let len = if c.is_alphanumeric() {
            of(|c| c.is_alphanumeric() || c == '_')
        } else if c == ' ' {
            of(|c| c == ' ')
        } else {
            c.len_utf8()
        };
        found.push(rest[..len].to_owned());
        rest = &rest[len..];
    }
    found
}

fn edited(random: &mut Random) -> String {
    let mut all = tokens(random.pick(SEEDS));
    let other = tokens(random.pick(SEEDS));
    for _ in 0..1 + random.below(2) {
        let at = random.below(all.len());
        match random.below(7) {
            0 => drop(all.remove(at)),
            1 => all.insert(at, format!(" {} ", random.pick(WORDS))),
            2 => all[at] = random.pick(WORDS).to_owned(),
            3 => {
                let to = random.below(all.len());
                all.swap(at, to);
            }
            4 => {
                let end = (at + random.below(12)).min(all.len());
                let part = all[at..end].to_vec();
                let to = random.below(all.len());
                all.splice(to..to, part);
            }
            5 => {
                let from = random.below(other.len());
                let end = (from + random.below(20)).min(other.len());
                all.splice(at..at, other[from..end].iter().cloned());
            }
            _ => {
                let end = (at + random.below(8)).min(all.len());
                all.drain(at..end);
            }
        }
        if all.is_empty() {
            all.push("SELECT".into());
        }
    }
    all.concat()
}

const CELLS: &[&str] = &[
    "",
    "0",
    "1",
    "-7",
    "12.50",
    "2026-01-01",
    "true",
    "plus",
    "999999999999999999999999999999",
    "0.000000000000000001",
    "x",
];

/// Uses of a question where nothing may panic.
fn used(text: &str, random: &mut Random) -> Result<(), String> {
    let question = match parse(text) {
        Ok(question) => question,
        Err(fault) => {
            let line = fault.to_string();
            let ok = !line.contains('\n')
                && line.chars().count() < 1200
                && (line.contains("; ") || line.contains(": "));
            return if ok { Err("refused".into()) } else { Err(format!("BADLINE {line}")) };
        }
    };
    match parse(&question.text) {
        Err(fault) => return Err(format!("NOTBACK {} {fault}", question.text)),
        Ok(again) => {
            let same = again.text == question.text
                && again.fields == question.fields
                && again.measures == question.measures
                && again.filter == question.filter
                && again.having == question.having
                && again.outputs == question.outputs
                && again.tables == question.tables
                && again.noise == question.noise
                && again.least == question.least
                && again.step == question.step;
            if !same {
                return Err(format!("DIFFERS {}", question.text));
            }
        }
    }
    let again = parse(&question.text).unwrap();
    let mut rows = vec![];
    for _ in 0..4 {
        let mut pair = vec![];
        for side in Side::BOTH {
            let cells: Vec<Option<&str>> =
                question.tables[side as usize].columns.iter().map(|_| Some(random.pick(CELLS))).collect();
            let mut total = Total::default();
            let block = if question.adds_up(side) {
                question.add(side, &mut total, &cells).and_then(|()| question.total(side, &total))
            } else {
                question.row(side, &cells)
            };
            // What a side computes by itself follows from the canonical text too.
            if again.row(side, &cells) != question.row(side, &cells) {
                return Err(format!("OTHERROW {}", question.text));
            }
            match block {
                Ok(Some(block)) => pair.push(block),
                Ok(None) => {}
                Err(fault) => {
                    let line = fault.to_string();
                    if line.contains("12.50") && !text.contains("12.50")
                        || line.contains("99999999999999999999999999999")
                    {
                        return Err(format!("CELL {line}"));
                    }
                }
            }
        }
        if let Ok(pair) = <[u128; 2]>::try_from(pair) {
            rows.push(pair);
        }
    }
    let mut coins = random.below(usize::MAX) as u64;
    let answer = question.answer(&rows, &mut || {
        coins = coins.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        coins ^ coins >> 33
    });
    for (group, values) in answer {
        let cells = question.render(group, &values);
        assert_eq!(cells.len(), question.outputs.len());
    }
    for (_, output) in &question.outputs {
        question.mean_noise(output);
    }
    Ok(())
}

#[test]
fn no_edit_of_a_question_makes_it_panic() {
    const ROUNDS: u64 = 4_000;
    let (mut questions, mut refused) = (0, 0);
    for seed in 0..ROUNDS {
        let text = edited(&mut Random::new(seed.wrapping_mul(7919)));
        match used(&text, &mut Random::new(seed)) {
            Ok(()) => questions += 1,
            Err(what) if what == "refused" => refused += 1,
            Err(what) => panic!("{what}\n    {text}"),
        }
    }
    assert!(questions > 100 && refused > 1000, "{questions} questions, {refused} refused");
}

#[test]
fn seeds_are_questions() {
    for seed in SEEDS {
        if let Err(fault) = parse(seed) {
            panic!("{fault}\n   {seed}");
        }
    }
}
