//! What is no question, and what the line about it says.

use tacit_query::{Side, parse};

/// The line that refuses a text.
fn refusal(text: &str) -> String {
    match parse(text) {
        Ok(question) => panic!("{text} is read as {}", question.text),
        Err(fault) => fault.to_string(),
    }
}

/// Each text is refused by a line with these words.
#[track_caller]
fn refused(table: &[(&str, &str)]) {
    for (text, words) in table {
        let line = refusal(text);
        assert!(line.contains(words), "{text}\n  {line}\n  lacks {words}");
        assert!(line.contains("; ") || line.contains(": "), "{text}\n  {line}\n  says nothing to do");
        assert!(!line.contains('\n') && line.len() < 600, "{line}");
    }
}

/// Each selection, with what follows ON, is refused by a line with these words.
#[track_caller]
fn refused_of(table: &[(&str, &str, &str)]) {
    for (selected, rest, words) in table {
        let text = format!("SELECT {selected} FROM ours a JOIN theirs b ON a.k = b.k {rest}");
        refused(&[(&text, words)]);
    }
}

#[test]
fn noise_and_rounding() {
    refused_of(&[
        ("COUNT(*)", "WITH NOISE EPSILON 0", "from 0.000001 to 10"),
        ("COUNT(*)", "WITH NOISE EPSILON 0.0000001", "from 0.000001 to 10"),
        ("COUNT(*)", "WITH NOISE EPSILON 10.1", "from 0.000001 to 10"),
        ("COUNT(*)", "WITH NOISE EPSILON 1 WITH NOISE EPSILON 1", "twice"),
        ("COUNT(*)", "WITH NOISE EPSILON -1", "as WITH NOISE EPSILON 0.5"),
        ("COUNT(*)", "WITH NOISE", "as WITH NOISE EPSILON 0.5"),
        ("COUNT(*)", "ROUND TO 1", "from 2 to 1000000000"),
        ("COUNT(*)", "ROUND TO 2.5", "from 2 to 1000000000"),
        ("COUNT(*)", "ROUND TO 9999999999999999999999", "from 2 to 1000000000"),
        ("COUNT(*)", "ROUND TO 5 WITH NOISE EPSILON 1 ROUND TO 5", "ROUND TO twice"),
        ("COUNT(*)", "ROUND TO 10 HAVING COUNT(*) > 3", "at the end as ROUND TO 10"),
        ("COUNT(*)", "ROUND TO -5", "at the end as ROUND TO 10"),
        ("MAX(CLIP(a.x, 0, 9))", "WITH NOISE EPSILON 1", "which no noise hides"),
        ("COUNT(*)", "HAVING MIN(CLIP(a.x, 0, 9)) > 3 WITH NOISE EPSILON 1", "which no noise hides"),
        ("COUNT(*)", "HAVING AVG(CLIP(a.x, 0, 9)) > 3 WITH NOISE EPSILON 1", "compare the sum"),
        (
            "MAX(CLIP(a.d, DATE '2026-01-01', DATE '2026-12-31')) AS last, COUNT(*)",
            "ROUND TO 10",
            "`last` is a date",
        ),
        (
            "SUM(CLIP(a.x, 0, 100000000000000000000000)) AS s",
            "WITH NOISE EPSILON 0.000001",
            "may leave 100 bits; write a larger one",
        ),
        (
            "COUNT(*)",
            "WHERE a.h BETWEEN 0 AND 999 GROUP BY a.h WITH NOISE EPSILON 0.1",
            "16384 are the most; ask for fewer groups",
        ),
    ]);
}

#[test]
fn other_statements_and_clauses() {
    refused(&[
        ("", "is empty; write SELECT"),
        (" ; -- nothing", "is empty"),
        ("SELECT", "is not SQL"),
        ("DELETE FROM ours", "begins with SELECT"),
        ("SELECT 1; SELECT 2", "is one SELECT"),
        ("VALUES (1)", "begins with SELECT"),
        ("/* a */ -- b\n -----BEGIN KEY-----\nMFECAQEw", "begins with SELECT"),
        ("WITH x AS (SELECT 1) SELECT COUNT(*) FROM ours a JOIN theirs b ON a.k = b.k", "begins with SELECT"),
        (
            "SELECT COUNT(*) FROM ours a JOIN theirs b ON a.k = b.k UNION SELECT 1",
            "UNION, EXCEPT or INTERSECT is not part",
        ),
        ("SELECT DISTINCT a.x FROM ours a JOIN theirs b ON a.k = b.k", "in GROUP BY"),
        ("SELECT COUNT(*) INTO t FROM ours a JOIN theirs b ON a.k = b.k", "leave the rest out"),
        ("SELECT COUNT(*) FROM ours a JOIN theirs b ON a.k = b.k FOR UPDATE", "only ROUND TO and WITH NOISE"),
    ]);
    refused_of(&[
        ("COUNT(*)", "ORDER BY 1", "leave it out and sort the result"),
        ("COUNT(*)", "LIMIT 3", "LIMIT is not part of a question"),
        ("COUNT(*)", "FETCH FIRST 3 ROWS ONLY", "LIMIT is not"),
        ("*", "", "SELECT * shows rows"),
        ("a.*", "", "SELECT * shows rows"),
        ("COUNT(*)", "QUALIFY 1 = 1", "a window is not"),
        ("b.x", "GROUP BY ROLLUP (b.x)", "ROLLUP is not a function"),
    ]);
}

#[test]
fn other_tables_and_joins() {
    refused(&[
        ("SELECT 1", "two joined tables; write FROM ours a JOIN theirs b"),
        ("SELECT COUNT(*) FROM ours", "two joined tables"),
        ("SELECT COUNT(*) FROM ours a, theirs b WHERE a.k = b.k", "two joined tables"),
        (
            "SELECT COUNT(*) FROM ours a JOIN theirs b ON a.k = b.k JOIN theirs c ON a.k = c.k",
            "two joined tables",
        ),
        ("SELECT COUNT(*) FROM ours a JOIN ours b ON a.k = b.k", "each once"),
        ("SELECT COUNT(*) FROM ours x JOIN theirs X ON x.k = x.k", "both tables are called `x`"),
        ("SELECT COUNT(*) FROM ours a JOIN people b ON a.k = b.k", "`people b` is not a table of a question"),
        ("SELECT COUNT(*) FROM ours a JOIN (SELECT 1) b ON a.k = b.k", "of one side's table"),
        ("SELECT COUNT(*) FROM ours a (x) JOIN theirs b ON a.k = b.k", "name the table"),
        ("SELECT COUNT(*) FROM ours a LEFT JOIN theirs b ON a.k = b.k", "only an inner join"),
        ("SELECT COUNT(*) FROM ours a CROSS JOIN theirs b", "only an inner join"),
        ("SELECT COUNT(*) FROM ours a NATURAL JOIN theirs b", "write ON a.key = b.key"),
        ("SELECT COUNT(*) FROM ours a JOIN theirs b USING (k)", "write ON a.key = b.key"),
        ("SELECT COUNT(*) FROM ours a JOIN theirs b", "write ON a.key = b.key"),
        ("SELECT COUNT(*) FROM ours a JOIN theirs b ON a.k > b.k", "write such conditions in WHERE"),
        (
            "SELECT COUNT(*) FROM ours a JOIN theirs b ON a.k = b.k OR a.l = b.l",
            "write such conditions in WHERE",
        ),
        ("SELECT COUNT(*) FROM ours a JOIN theirs b ON a.k = 'x'", "joins by columns"),
        ("SELECT COUNT(*) FROM ours a JOIN theirs b ON a.k = a.l", "names one table twice"),
        ("SELECT COUNT(*) FROM ours a JOIN theirs b ON a.k = b.k AND b.l = a.k", "ON has `k` twice"),
        (
            "SELECT COUNT(*) FROM ours a JOIN theirs b ON a.k = c.k",
            "names no table of the question; write a or b",
        ),
    ]);
}

#[test]
fn names_and_values() {
    refused_of(&[
        ("COUNT(*)", "WHERE x = 1", "`x` does not say whose column it is; write a.x or b.x"),
        ("COUNT(*)", "WHERE a.x = \"DE\"", "write a.\"DE\" or b.\"DE\", or 'DE' if it is text"),
        ("COUNT(*)", "WHERE c.x = 1", "`c.x` names no table"),
        ("COUNT(*)", "WHERE s.a.x = 1", "is not a column; write table.column"),
        ("COUNT(*) AS n", "WHERE n > 3", "does not say whose column"),
        ("COUNT(*)", "WHERE a.x > 1e5", "without an exponent"),
        ("COUNT(*)", "WHERE a.x > 0.1234567890123456789", "at most 36 digits"),
        ("COUNT(*)", "WHERE a.x = X'00'", "is not a value"),
        ("COUNT(*)", "WHERE a.x = DATE '2026-02-30'", "is not a day that exists"),
        ("COUNT(*)", "WHERE a.x = TIMESTAMP '2026-02-01 00:00:00'", "is not a date"),
        ("COUNT(*)", "WHERE a.x > INTERVAL '3' DAY", "add a number of days"),
        (
            "COUNT(*)",
            "WHERE a.\"x:date\" > 3 OR CAST(a.x AS TEXT) = 'a'",
            "is date in one place and text in another",
        ),
        ("COUNT(*)", "WHERE CAST(a.x AS FLOAT) > 3", "is to no type of a column"),
        ("COUNT(*)", "WHERE CAST(a.x AS DECIMAL(30, 20)) > 3", "more digits after the point than 18"),
        ("COUNT(*)", "WHERE CAST(a.x + 1 AS BIGINT) > 3", "is not of a column"),
        ("COUNT(*) AS n, COUNT(a.x) AS n", "", "two columns of the result are called `n`"),
        ("COUNT(*)", "GROUP BY 2", "names nothing that is selected; write a position from 1 to 1"),
    ]);
}

#[test]
fn types() {
    refused_of(&[
        ("COUNT(*)", "WHERE a.x = a.y", "write a.\"x:integer\" or a.\"x:decimal2\" for a number"),
        ("COUNT(*)", "WHERE a.x = b.y", "or a.\"x:date\" for a date"),
        ("COUNT(*)", "WHERE a.\"x:date\" > '2026-01-01'", "is text, not a date; write DATE '2026-11-28'"),
        ("COUNT(*)", "WHERE a.\"x:decimal2\" = '5'", "write the number without quotes"),
        ("COUNT(*)", "WHERE a.\"x:text\" = 5", "write it in quotes"),
        ("COUNT(*)", "WHERE a.x > 5 AND a.x LIKE 'a%'", "`a.x` in `a.x LIKE 'a%'` is a number, not text"),
        ("COUNT(*)", "WHERE a.x IN (1, 'a')", "is text, not a number"),
        ("COUNT(*)", "WHERE 5", "WHERE has a number, not a condition"),
        ("COUNT(*)", "WHERE a.\"x:integer\" AND TRUE", "is a number, not a truth value"),
        ("COUNT(*)", "WHERE DATE '2026-01-01' + a.\"x:date\" > 5", "adds dates"),
        ("COUNT(*)", "WHERE DATE '2026-01-01' + 0.5 > a.x", "add whole days"),
        ("COUNT(*)", "WHERE CASE WHEN a.x THEN 1 ELSE 'a' END = 1", "is text, not a number"),
        ("SUM(a.x = 3)", "", "write CASE WHEN ... THEN 1 ELSE 0 END"),
        ("SUM(LOWER(a.x))", "", "is text, not a number"),
    ]);
}

#[test]
fn what_is_not_computed() {
    refused_of(&[
        ("SUM(CLIP(a.x, 0, 9) / 2)", "", "divides, and only AVG does"),
        ("COUNT(*)", "WHERE a.x % 2 = 0", "divides"),
        ("COUNT(*)", "WHERE a.x || 'a' = 'b'", "the operator || of"),
        ("COUNT(*)", "WHERE ABS(a.x) > 3", "ABS is not a function of a question; there are COUNT"),
        ("COUNT(*)", "WHERE LOWER(a.x, a.y) = 'a'", "takes one value"),
        ("COUNT(*)", "WHERE CLIP(a.x, 0) > 3", "write CLIP(x, least, most)"),
        ("COUNT(*)", "WHERE CLIP(a.x, 5, 0) > 3", "in the wrong order"),
        ("COUNT(*)", "WHERE CLIP(a.x, a.y, 10) > 3", "are not two numbers or two dates"),
        ("COUNT(*)", "WHERE a.x LIKE b.y", "LIKE takes a pattern as a string"),
        ("COUNT(*)", "WHERE a.x LIKE 'a' ESCAPE 'ab'", "ESCAPE takes one character"),
        ("COUNT(*)", "WHERE a.x LIKE 'a!b' ESCAPE '!'", "before none of"),
        ("COUNT(*)", "WHERE EXTRACT(HOUR FROM a.x) > 3", "write YEAR, MONTH or DAY"),
        ("COUNT(*)", "WHERE a.x IN (SELECT b.x FROM theirs b)", "is a subquery"),
        ("COUNT(*)", "WHERE EXISTS (SELECT 1)", "is a subquery"),
        ("COUNT(*) OVER ()", "", "write GROUP BY"),
        ("COUNT(*) FILTER (WHERE a.x > 1)", "", "is not SQL that can be read"),
        ("COUNT(DISTINCT a.x)", "", "only COUNT(DISTINCT key) can be asked"),
        ("SUM(DISTINCT a.k)", "", "the one use of DISTINCT"),
        ("COUNT(DISTINCT 1)", "", "the one use of DISTINCT"),
        ("COUNT(a.*)", "", "write expressions"),
        ("SUM(COUNT(*))", "", "an aggregate of an aggregate"),
        ("COUNT(*)", "WHERE COUNT(*) > 3", "write it in HAVING"),
        ("MEDIAN(a.x)", "", "MEDIAN is not a function"),
    ]);
}

#[test]
fn what_is_not_computed_inside() {
    refused_of(&[
        ("SUM(a.x)", "", "write CLIP(a.x, least, most), as in CLIP(a.x, 0, 1000)"),
        ("SUM(a.x * b.y)", "", "`a.x` has no bounds"),
        ("SUM(a.x + a.y)", "", "write CLIP(a.x + a.y, least, most)"),
        ("SUM(CASE WHEN b.f THEN a.x ELSE 0 END)", "", "write CLIP(a.x, least, most)"),
        ("SUM(CASE WHEN a.f THEN a.x ELSE 0 END)", "", "write CLIP(a.x, least, most)"),
        ("MAX(a.\"d:date\")", "", "as in CLIP(a.\"d:date\", DATE '2000-01-01', DATE '2026-12-31')"),
        ("COUNT(*)", "WHERE a.\"d:date\" < b.\"d:date\"", "has no bounds that both sides know"),
        ("COUNT(*)", "WHERE a.\"s:text\" = b.s", "write it as a part of the key: ON ... AND ..."),
        ("COUNT(*)", "WHERE COALESCE(a.s, b.s, 'x') = 'y'", "text of both sides"),
        ("COUNT(*)", "WHERE LENGTH(COALESCE(a.s, b.s)) = 3", "cannot be computed inside"),
        ("COUNT(*)", "WHERE COALESCE(a.s, b.s) LIKE 'y%'", "cannot be computed inside"),
        (
            "SUM(CLIP(a.x, 0, 1000000000000) * CLIP(b.x, 0, 1000000000000))",
            "",
            "may leave 100 bits over 4194304 rows",
        ),
        ("SUM(CLIP(a.x, 0, 1000000000000000000000000000))", "", "may leave 100 bits"),
        (
            "SUM(CASE WHEN CLIP(a.x, 0, 10000000000000000) * CLIP(b.x, 0, 10000000000000000) > 3 THEN 1 END)",
            "",
            "may leave 100 bits",
        ),
        (
            "SUM(CLIP(a.x, 0, 10000000000000000000)), SUM(CLIP(a.y, 0, 10000000000000000000))",
            "",
            "what is computed of a row of ours takes 131 bits, and 128 are the most (`CLIP(a.x, 0, \
             10000000000000000000)` 65, `CLIP(a.y, 0, 10000000000000000000)` 65)",
        ),
    ]);
}

#[test]
fn groups_and_having() {
    refused_of(&[
        ("b.segment, COUNT(*)", "", "is neither an aggregate nor what rows are grouped by"),
        (
            "b.segment",
            "GROUP BY b.segment",
            "write WHERE b.segment IN ('a', 'b'): the values that the result may show",
        ),
        ("COUNT(*)", "GROUP BY b.\"n:integer\"", "write WHERE b.\"n:integer\" BETWEEN 0 AND 9"),
        ("COUNT(*)", "WHERE b.n BETWEEN 1 AND 1025 GROUP BY b.n", "more than 1024 values"),
        (
            "COUNT(*)",
            "WHERE b.n BETWEEN 1 AND 40 AND a.n BETWEEN 1 AND 40 GROUP BY a.n, b.n",
            "has 1600 groups",
        ),
        ("COUNT(*)", "WHERE b.n = 1 OR b.n = 2 GROUP BY b.n", "has no list of values"),
        ("COUNT(*)", "GROUP BY CASE WHEN a.x > 1 THEN b.y END", "is of both sides' columns"),
        ("COUNT(*) AS n", "GROUP BY n", "GROUP BY has the aggregate"),
        ("COUNT(*)", "GROUP BY 'x'", "GROUP BY has the constant `'x'`; leave"),
        ("SUM(CLIP(a.x, 0, 9)) + 1", "", "computes with aggregates; select them"),
        ("1", "", "is neither an aggregate"),
        ("COUNT(*)", "HAVING a.x > 1", "write the condition in WHERE"),
        ("COUNT(*)", "HAVING COUNT(*)", "HAVING has a number, not a condition"),
        ("COUNT(*)", "HAVING AVG(CLIP(a.x, 0, 9)) + 1 > 3", "can only be compared"),
        (
            "COUNT(*)",
            "HAVING SUM(CLIP(a.x, 0, 1000000000000)) * SUM(CLIP(a.x, 0, 1000000000000)) > 3",
            "may leave 100 bits",
        ),
    ]);
}

/// The line about a row of `ours` of one column `x`.
fn bad_cell(rest: &str, cell: &str) -> String {
    let question = parse(&format!("SELECT {rest}")).unwrap();
    question.row(Side::Ours, &[Some(cell)]).unwrap_err().to_string()
}

#[test]
fn cells_are_named_by_their_column_and_never_shown() {
    let of = |condition: &str| format!("COUNT(*) FROM ours a JOIN theirs b ON a.k = b.k WHERE {condition}");
    let sum = |x: &str| format!("SUM({x}) FROM ours a JOIN theirs b ON a.k = b.k");
    for (rest, cell, words) in [
        (of("a.x > 7"), "secret", "a cell of the column `x` is not a number; correct it"),
        (of("a.x > 7"), "912,5", "has a comma before its fraction; write a point"),
        (of("a.x > 7"), "912e5", "has an exponent; write its digits"),
        (of("a.x > 7"), "9.12.5", "is not a number of at most 36 digits"),
        (of("a.x > 7"), &"9".repeat(40), "is not a number of at most 36 digits"),
        (of("a.\"x:decimal2\" > 7"), "912.555", "has more than 2 digits after the point; round it"),
        (of("a.\"x:date\" IS NULL"), "2026-02-30", "is not a date such as 2026-11-28"),
        (of("a.\"x:boolean\""), "maybe", "is not true or false"),
        (of("a.x * a.x * a.x * a.x > 5"), "912345678912345", "a number in the column `x` that is too large"),
        (of("DATE '2026-01-01' + a.x > DATE '2026-01-01'"), "91234567", "too large"),
        (sum("CLIP(a.x, 0, 10)"), "9.5", "the column `x` that is not whole"),
        (sum("CLIP(a.x, 0.0, 10)"), "9.55", "has more than 1 digit"),
    ] {
        let line = bad_cell(&rest, cell);
        assert!(line.contains(words), "{rest}\n  {line}\n  lacks {words}");
        assert!(!line.contains(cell) && !line.contains("912"), "{line}");
    }
    let question = parse(&format!("SELECT {}", of("a.x > 7"))).unwrap();
    let line = question.row(Side::Ours, &[]).unwrap_err().to_string();
    assert_eq!(line, "a row of ours has 0 cells, and the question names 1 column; give a cell for each");
}

/// Texts as deep and as long as they may be, and longer.
#[test]
fn deep_and_huge_texts_get_a_line() {
    let of =
        |condition: &str| format!("SELECT COUNT(*) FROM ours a JOIN theirs b ON a.k = b.k WHERE {condition}");
    let deep = [
        of(&format!("{}a.x > 1{}", "(".repeat(20_000), ")".repeat(20_000))),
        of(&format!("a.x > {}1", "- ".repeat(20_000))),
        of(&format!("{}a.x", "NOT ".repeat(10_000))),
        of(&format!("{}1{}", "CASE WHEN TRUE THEN ".repeat(2000), " END".repeat(2000))),
        of(&format!("{}1{}", "COALESCE(".repeat(4000), ")".repeat(4000))),
        of(&format!("a.x > 1{}", " > 1".repeat(10_000))),
        of(&format!("a.x{}", " IS NULL".repeat(7000))),
        of(&format!("a.x > 1{}", "*1".repeat(30_000))),
        of(&format!("a.x > 1{}", "+1".repeat(30_000))),
        of(&format!("a.x{} > 1", "::BIGINT".repeat(7000))),
        of(&format!("a.x{} > 1", "[1]".repeat(20_000))),
        of(&format!("a.x > 1{}", " OR a.x > 1".repeat(20_000))),
        of(&format!("a{}", ".x".repeat(30_000))),
        "(".repeat(60_000),
        "SELECT ".repeat(9000),
        format!("SELECT {}", "(SELECT ".repeat(8000)),
        format!("SELECT COUNT(*) FROM {}", "(ours JOIN ".repeat(5000)),
    ];
    for text in deep {
        refused(&[(&text, "")]);
    }
    // Names of what is selected make copies of it, and so does the operand of CASE.
    let long = format!("COALESCE(SUM(CLIP(a.x, 0, 9)){})", ", 1".repeat(4000));
    let text = format!(
        "SELECT {long} AS n FROM ours a JOIN theirs b ON a.k = b.k HAVING n = 1{}",
        " OR n = 1".repeat(3000)
    );
    refused(&[(&text, "too many expressions")]);
    let mut nested = "a.x".to_owned();
    for _ in 0..15 {
        nested = format!("CASE {nested} WHEN 1 THEN 1 WHEN 2 THEN 2 WHEN 3 THEN 3 END");
    }
    refused(&[(&of(&format!("{nested} = 1")), "too many expressions")]);
}

/// What is nested as deep as may be takes time by its size: each part was once read or planned twice at every level.
#[test]
fn nested_parts_take_time_by_their_size() {
    let join = "FROM ours a JOIN theirs b ON a.k = b.k";
    let nested = |inner: &str, open: &str, close: &str, depth: usize| {
        format!("{}{inner}{}", open.repeat(depth), close.repeat(depth))
    };
    let (own, both) = ("a.x = 1", "CLIP(a.x, 0, 1) < CLIP(b.y, 0, 1)");
    let number = "CLIP(a.x, 0, 1) + CLIP(b.y, 0, 1)";
    for depth in [5, 10, 18, 30] {
        for condition in [
            nested(own, "(", ") = TRUE", depth),
            nested(own, "(", ") IS NULL", depth),
            nested(both, "(", ") = TRUE", depth),
            nested(both, "(", ") IS NULL", depth),
            nested(both, "(", ") BETWEEN FALSE AND TRUE", depth),
            nested(both, "(", ") IN (TRUE, FALSE)", depth),
            nested("a.x", "COALESCE(", ", a.y)", depth) + " > 1",
            nested(number, "COALESCE(", ", 1)", depth) + " > 1",
            nested("a.x", "1 + (", ") * 1", depth) + " > 1",
            nested(number, "CASE WHEN a.x > 1 THEN ", " END", depth) + " > 1",
        ] {
            let begun = std::time::Instant::now();
            let found = parse(&format!("SELECT COUNT(*) {join} WHERE {condition}"));
            let taken = begun.elapsed().as_secs_f64();
            assert!(taken < 5.0, "{taken} s: {condition}");
            if depth == 5 {
                found.unwrap_or_else(|fault| panic!("{condition}: {fault}"));
            }
        }
        let having = nested("COUNT(*) > 5", "(", ") = TRUE", depth);
        let begun = std::time::Instant::now();
        let found = parse(&format!("SELECT COUNT(*) {join} HAVING {having}"));
        assert!(begun.elapsed().as_secs_f64() < 5.0, "{having}");
        assert!(depth > 5 || found.is_ok(), "{found:?}");
    }
    for text in ["a.x < a.y IN (TRUE)", "a.x = a.y = TRUE", "a.x > 1 IS NULL", "a.x BETWEEN 1 AND 2 = TRUE"] {
        let fault = parse(&format!("SELECT COUNT(*) {join} WHERE {text}")).unwrap_err().to_string();
        assert!(fault.contains("parentheses"), "{text}: {fault}");
    }
}
