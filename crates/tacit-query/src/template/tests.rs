use super::{Parameter, Template};
use crate::{Side, parse};

const TEXT: &str = "SELECT b.segment, COUNT(*) AS n, SUM(CLIP(a.cents, 0, :cap)) AS spent -- not :this\n\
     FROM ours a JOIN theirs b ON a.mail = b.mail\n\
     WHERE a.cents - a.paid > :least AND a.day >= :since AND a.kind = :kind AND b.segment IN ('x', 'y:z')\n\
     AND a.note <> 'is :least' AND a.\"e:least\" = 1\n\
     GROUP BY b.segment HAVING COUNT(*) >= 10";

fn named(name: &str, kind: &str, values: &[&str], bounds: [Option<&str>; 2]) -> Parameter {
    let values: Vec<String> = values.iter().map(|value| (*value).to_owned()).collect();
    Parameter::new(name, kind, &values, bounds).unwrap()
}

fn parameters() -> Vec<Parameter> {
    vec![
        named("cap", "integer", &["100", "5000"], [None; 2]),
        named("least", "decimal2", &[], [Some("-10"), Some("99.5")]),
        named("since", "date", &[], [Some("2026-01-01"), Some("2026-12-31")]),
        named("kind", "text", &["it's", "new", "DATE '2026-01-01'"], [None; 2]),
    ]
}

/// The question with these values in it, as somebody would write it.
fn asked([cap, least, since, kind]: [&str; 4]) -> String {
    let text = TEXT.replace("-- not :this\n", "").replace("'is :least'", "'is !'").replace("e:least", "e!");
    let text =
        text.replace(":cap", cap).replace(":least", least).replace(":since", since).replace(":kind", kind);
    text.replace("'is !'", "'is :least'").replace("e!", "e:least")
}

/// `None` for another question, and else whether its values are allowed.
fn matches(template: &Template, text: &str) -> Option<bool> {
    template.matches(&parse(text).unwrap()).map(|judged| judged.is_ok())
}

const USUAL: [&str; 4] = ["100", "0", "DATE '2026-03-01'", "'new'"];

#[test]
fn a_question_is_a_template_with_allowed_values_however_it_is_written() {
    let template = Template::new(TEXT, parameters()).unwrap();
    assert_eq!(matches(&template, &asked(USUAL)), Some(true));
    assert_eq!(matches(&template, &asked(USUAL).to_uppercase().replace("OURS A", "ours a")), None);
    assert_eq!(matches(&template, &asked(USUAL).replace(" AND ", "\n and /* */ ")), Some(true));
    for (at, value, is_allowed) in [
        (0, "5000", true),
        (0, "5001", false),
        (0, "5000.0", false),
        (1, "-10", true),
        (1, "-9.25", true),
        (1, "99.50", true),
        (1, "99.51", false),
        (1, "1.255", false),
        (2, "DATE '2026-12-31'", true),
        (2, "DATE '2027-01-01'", false),
        (3, "'it''s'", true),
        (3, "'DATE ''2026-01-01'''", true),
        (3, "'old'", false),
        (3, "'new '", false),
    ] {
        let mut values = USUAL;
        values[at] = value;
        assert_eq!(matches(&template, &asked(values)), Some(is_allowed), "{value}");
    }
    let form = template.form();
    assert!(form.contains("CLIP(a.cents, 0, :cap)) AS spent FROM ours a JOIN theirs b"), "{form}");
    assert!(
        form.contains("WHERE a.cents - a.paid > :least AND a.\"day\" >= :since AND a.kind = :kind AND"),
        "{form}"
    );
    assert!(
        form.contains("'y:z'") && form.contains("'is :least'") && form.ends_with("COUNT(*) >= 10"),
        "{form}"
    );
    let no = template.matches(&parse(&asked(["7", "0", USUAL[2], USUAL[3]])).unwrap());
    let no = no.unwrap().unwrap_err().to_string();
    assert_eq!(no, ":cap is an integer, one of 100, 5000, and the question has 7");
}

/// Proof of the template's promise: whoever asks chooses values and nothing else.
#[test]
fn no_value_changes_the_structure_of_a_question() {
    let template = Template::new(TEXT, parameters()).unwrap();
    for (from, to) in [
        ("a.kind = 'new'", "(a.kind = 'new' OR TRUE)"),
        ("a.kind = 'new'", "a.kind = 'new' AND a.mail <> 'ann@x.org'"),
        ("a.kind = 'new'", "(a.kind = 'new' OR 'a' = 'a')"),
        ("a.kind = 'new'", "a.kind <> 'new'"),
        ("a.kind = 'new'", "a.kind IN ('new', 'it''s')"),
        ("a.kind = 'new'", "a.other = 'new'"),
        ("a.kind = 'new'", "b.kind = 'new'"),
        ("> 0 ", "> 0 + 1 "),
        ("> 0 ", "> a.cents "),
        ("> 0 ", ">= 0 "),
        ("CLIP(a.cents, 0, 100)", "CLIP(a.cents, 1, 100)"),
        ("CLIP(a.cents, 0, 100)", "CLIP(a.cents + 0, 0, 100)"),
        ("SUM(", "MAX("),
        ("IN ('x', 'y:z')", "IN ('x', 'y:w')"),
        (">= 10", ">= 2"),
        ("AS spent", "AS paid"),
        ("a.mail = b.mail", "a.email = b.mail"),
        ("'is :least'", "'is 0'"),
    ] {
        let text = asked(USUAL);
        let other = text.replace(from, to);
        assert_ne!(text, other, "{from}");
        // What is no question at all reaches no template.
        let Ok(question) = parse(&other) else { panic!("{to}") };
        assert!(template.matches(&question).is_none(), "{to}");
    }
    // A value that holds SQL is a value, and is not one of those that are listed.
    for inside in ["' OR 'a' = 'a", "new' OR TRUE --", "new';", ":kind", "\"", "/*"] {
        let [cap, least, since, _] = USUAL;
        assert_eq!(
            matches(&template, &asked([cap, least, since, &format!("'{}'", inside.replace('\'', "''"))])),
            Some(false),
            "{inside}"
        );
    }
}

/// The values of a policy are texts too: one that holds quotes is written as the text that it is.
#[test]
fn values_that_hold_quotes_and_signs_stay_values() {
    let text = "SELECT COUNT(*) AS n FROM ours a JOIN theirs b ON a.k = b.k WHERE a.x = :x AND a.n -:n > 0";
    let hostile = ["' OR 'a' = 'a", "--", "/*", "'", "''", "\\'", ":n", "\"", "x' AS y", "ä\u{1f600}"];
    let template = Template::new(
        text,
        vec![named("x", "text", &hostile, [None; 2]), named("n", "integer", &["1", "2"], [None; 2])],
    )
    .unwrap();
    for value in hostile {
        let text = format!("'{}'", value.replace('\'', "''"));
        let text = text.as_str();
        let sql = format!(
            "SELECT COUNT(*) AS n FROM ours a JOIN theirs b ON a.k = b.k WHERE a.x = {text} AND a.n - 2 > 0"
        );
        assert_eq!(matches(&template, &sql), Some(true), "{value}");
    }
    for sample in template.samples() {
        assert_eq!(matches(&template, &sample.text), Some(true), "{}", sample.text);
    }
}

/// A number beside a sign could make a comment of the rest, and one that GROUP BY counts with is another column.
#[test]
fn a_parameter_is_a_value_or_no_parameter() {
    let join = "FROM ours a JOIN theirs b ON a.k = b.k";
    let of = |select: &str, behind: &str, parameter: Parameter| {
        Template::new(&format!("SELECT {select} {join} {behind}"), vec![parameter])
            .map(|_| ())
            .map_err(|f| f.to_string())
    };
    let numbers = || named("p", "integer", &["-5", "7"], [None; 2]);
    let cases = [
        ("COUNT(*) AS n", "WHERE a.x > :p", numbers(), ""),
        ("COUNT(*) AS n", "WHERE a.x -:p > 0 AND a.y = 1", numbers(), ""),
        (
            "COUNT(*) AS n",
            "WHERE a.x > -:p",
            named("p", "integer", &["5", "7"], [None; 2]),
            "more than a value",
        ),
        (
            "a.x, a.y, COUNT(*) AS n",
            "WHERE a.x IN (1, 2) AND a.y IN (1, 2) GROUP BY a.x, a.y, :p",
            named("p", "integer", &["1", "2"], [None; 2]),
            "more than a value",
        ),
        ("COUNT(*) AS n", "WHERE a.x > 5", numbers(), "`:p` is not in the text"),
        ("COUNT(*) AS n", "WHERE a.x > ':p'", numbers(), "`:p` is not in the text"),
        ("COUNT(*) AS n", "WHERE a.x > :q", numbers(), "`:q` is not a parameter"),
        (
            "COUNT(*) AS n",
            "WHERE a.d > DATE :p",
            named("p", "text", &["2026-01-01", "2026-01-02"], [None; 2]),
            "more than",
        ),
        ("COUNT(*) AS n", "WHERE a.x > :p OR a.:p = 1", numbers(), "not SQL"),
        ("COUNT(*) AS :p", "", named("p", "text", &["a", "b"], [None; 2]), "more than a value"),
        ("SUM(CLIP(a.x, :p, 0)) AS n", "", named("p", "integer", &["1", "2"], [None; 2]), "wrong order"),
    ];
    for (select, behind, parameter, word) in cases {
        match of(select, behind, parameter) {
            Ok(()) => assert_eq!(word, "", "{select} {behind}"),
            Err(fault) => assert!(!word.is_empty() && fault.contains(word), "{behind}: {fault}"),
        }
    }
    // Bounds that cross each other with some values are tried in both orders.
    let bounds = || named("lo", "integer", &[], [Some("0"), Some("50")]);
    let other = || named("hi", "integer", &[], [Some("0"), Some("50")]);
    let sql = format!("SELECT SUM(CLIP(a.x, :lo, :hi)) AS s {join}");
    let template = Template::new(&sql, vec![bounds(), other()]).unwrap();
    let asked = |lo, hi| matches(&template, &format!("SELECT SUM(CLIP(a.x, {lo}, {hi})) AS s {join}"));
    assert_eq!((asked(3, 20), asked(0, 51)), (Some(true), Some(false)));
}

#[test]
fn what_a_parameter_may_be_is_said_in_full() {
    let of = |name: &str, kind: &str, values: &[&str], bounds| {
        let values: Vec<String> = values.iter().map(|value| (*value).to_owned()).collect();
        Parameter::new(name, kind, &values, bounds).map_err(|fault| fault.to_string())
    };
    for (name, kind, values, bounds, word) in [
        ("a-b", "integer", &["1"][..], [None; 2], "letters, digits"),
        ("1a", "integer", &["1"], [None; 2], "letters, digits"),
        ("a", "int", &["1"], [None; 2], "no type `int`"),
        ("a", "decimal0", &["1"], [None; 2], "no type"),
        ("a", "integer", &["1.5"], [None; 2], "`1.5` is not an integer"),
        ("a", "integer", &["one"], [None; 2], "is not an integer"),
        ("a", "date", &["2026-02-30"], [None; 2], "is not a date"),
        ("a", "decimal2", &["1.255"], [None; 2], "2 digits"),
        ("a", "integer", &[], [None; 2], "`values` or as `least` and `most`"),
        ("a", "integer", &[], [Some("1"), None], "`values` or as"),
        ("a", "integer", &["1"], [Some("1"), Some("2")], "`values` or as"),
        ("a", "integer", &[], [Some("2"), Some("1")], "exchange"),
        ("a", "text", &[], [Some("a"), Some("b")], "list its `values`"),
    ] {
        let fault = of(name, kind, values, bounds).unwrap_err();
        assert!(fault.contains(word), "{word}: {fault}");
    }
    let words = of("day", "date", &[], [Some("2026-01-01"), Some("2026-01-31")]).unwrap().words();
    assert_eq!(words, ":day is a date, from DATE '2026-01-01' to DATE '2026-01-31'");
}

/// What decides which rows count is told from what is counted of them.
#[test]
fn a_parameter_inside_a_number_is_told_from_one_of_a_filter() {
    let of = |select: &str, behind: &str| {
        let sql = format!("SELECT {select} FROM ours a JOIN theirs b ON a.k = b.k {behind}");
        let template = Template::new(&sql, vec![named("p", "integer", &["1", "9"], [None; 2])]).unwrap();
        [Side::Ours, Side::Theirs].map(|side| template.changes_rows(side).is_some())
    };
    assert_eq!(of("COUNT(*) AS n", "WHERE a.x > :p"), [false, false]);
    assert_eq!(of("COUNT(*) AS n", "WHERE b.x > :p"), [false, false]);
    assert_eq!(of("SUM(CASE WHEN a.x > :p THEN 1 ELSE 0 END) AS n", ""), [true, true]);
    assert_eq!(of("SUM(CLIP(b.x, 0, :p)) AS n", ""), [true, true]);
    assert_eq!(of("COUNT(*) AS n", "WHERE a.x > 3 OR b.x > :p"), [false, true]);
    assert_eq!(of("b.x, COUNT(*) AS n", "WHERE b.x IN (0, :p) GROUP BY b.x"), [false, true]);
    assert_eq!(of("a.x, COUNT(*) AS n", "WHERE a.x IN (0, :p) GROUP BY a.x"), [true, false]);
    assert_eq!(
        of("COUNT(*) AS n", "WHERE b.x + 1 > :p AND CLIP(a.x, 0, 9) > CLIP(b.x, 0, 9)"),
        [false, false]
    );
}

/// What is compared on shares decides about rows too, and no comparison of filters sees it: with `b.x` of 0 throughout,
/// 1500 and 1501 for `:p` tell of one row, and the same keys pass.
#[test]
fn a_parameter_that_is_compared_with_both_sides_numbers_changes_what_rows_put_in() {
    for (select, behind) in [
        ("COUNT(*) AS n", "WHERE CLIP(a.x, 0, 9) + CLIP(b.x, 0, 9) > :p"),
        ("COUNT(*) AS n", "WHERE CLIP(a.x, 0, 9) > CLIP(b.x, 0, 9) + :p"),
        ("COUNT(*) AS n", "WHERE CLIP(a.x, 0, 9) > CLIP(b.x, 0, 9) * :p"),
        ("COUNT(*) AS n", "WHERE COALESCE(CLIP(a.x, 0, 9), CLIP(b.x, 0, 9)) > :p"),
        ("SUM(CASE WHEN CLIP(a.x, 0, 9) + CLIP(b.x, 0, 9) > :p THEN 1 ELSE 0 END) AS n", ""),
        ("SUM(CASE WHEN CLIP(a.x, 0, 9) > CLIP(b.x, 0, 9) THEN :p ELSE 0 END) AS n", ""),
    ] {
        let sql = format!("SELECT {select} FROM ours a JOIN theirs b ON a.k = b.k {behind}");
        let template = Template::new(&sql, vec![named("p", "integer", &["1", "9"], [None; 2])]).unwrap();
        assert!(template.changes_rows(Side::Ours).is_some(), "{sql}");
    }
}

/// Proof by all there is: of a template with four questions no edit of a word makes a fifth.
#[test]
fn whatever_word_is_changed_a_template_has_no_more_questions_than_its_values() {
    let written = |p: &str, q: &str| {
        format!(
            "SELECT COUNT(*) AS n, SUM(CLIP(a.y, -1, {p})) AS s FROM ours a JOIN theirs b ON a.k = b.k \
             WHERE a.y - 1 > {p} AND a.y IN (-1, 2, {p}) AND b.g IN ('a', {q}) HAVING COUNT(*) >= 2 ROUND TO 2"
        )
    };
    let (p, q) = (named("p", "integer", &["1", "2"], [None; 2]), named("q", "text", &["1", "b"], [None; 2]));
    let template = Template::new(&written(":p", ":q"), vec![p, q]).unwrap();
    let values = [("1", "'1'"), ("1", "'b'"), ("2", "'1'"), ("2", "'b'")];
    let all = values.map(|(p, q)| parse(&written(p, q)).unwrap().text);
    let words = "1 2 +1 -1 (1) 1.0 '1' 'b' '' NULL TRUE a.y OR < /**/ '1'''";
    let mut accepted = 0;
    for (_, place) in super::token::placed(&all[0]) {
        for word in words.split(' ') {
            let mut edited = all[0].clone();
            edited.replace_range(place.clone(), &format!(" {word} "));
            let Ok(question) = parse(&edited) else { continue };
            if matches!(template.matches(&question), Some(Ok(()))) {
                accepted += 1;
                assert!(all.contains(&question.text), "{edited}");
            }
        }
    }
    assert!(accepted > all.len(), "other spellings of its values are its own");
}

/// How a value may be written, and what only looks like one.
#[test]
fn a_value_is_itself_in_each_spelling_and_what_looks_like_one_is_none() {
    let sql = |one: &str, two: &str| {
        format!(
            "SELECT COUNT(*) AS n FROM ours a JOIN theirs b ON a.k = b.k WHERE a.x > {one} AND a.y < 500 AND a.z = {two}"
        )
    };
    let bounds = named("p", "integer", &[], [Some("-1000"), Some("1000")]);
    let template = Template::new(&sql(":p", ":p"), vec![bounds]).unwrap();
    let judged =
        |text: String| parse(&text).ok().and_then(|asked| template.matches(&asked).map(|one| one.is_ok()));
    for value in ["500", "0500", "+5", "-0", "5.", "- 5", "(5)", "-(-5)", "5 /* */", "5 -- x\n"] {
        assert_eq!(judged(sql(value, value)), Some(true), "{value}");
        assert_eq!(judged(sql(value, "7")), None, "one parameter, two values: {value}");
    }
    for value in ["5.0", "'5'", "1001", "DATE '2026-01-01'"] {
        assert_eq!(judged(sql(value, value)), Some(false), "{value}");
    }
    for value in [
        "1e3",
        "\u{ff15}",
        "1_000",
        "0x5",
        "5 + 0",
        "2 - 1",
        "TRUE",
        "NULL",
        "a.w",
        "5 AND TRUE",
        "CAST(5 AS integer)",
    ] {
        assert_eq!(judged(sql(value, value)), None, "{value}");
    }
}

/// Between a least and a most no check can try all values: a question that is asked is held against the first one.
#[test]
fn a_value_between_the_ends_at_which_a_question_changes_is_found_when_it_is_asked() {
    let template = |behind: &str, select: &str| {
        let sql = format!("SELECT {select} FROM ours a JOIN theirs b ON a.k = b.k {behind}");
        let of = |values: &[&str], bounds| Template::new(&sql, vec![named("p", "integer", values, bounds)]);
        let open = of(&[], [Some("0"), Some("200")]).unwrap();
        assert!(open.changes_rows(Side::Ours).is_none(), "{sql}");
        // In a list every value is tried.
        assert!(of(&["0", "3", "200"], [None; 2]).unwrap().changes_rows(Side::Ours).is_some(), "{sql}");
        let asks = |value: &str| {
            let question = parse(&sql.replace(":p", value)).unwrap();
            assert!(matches!(open.matches(&question), Some(Ok(()))), "{sql}");
            open.asks_alike(&question, Side::Ours)
        };
        [asks("0"), asks("200"), asks("3")]
    };
    let sum = "CLIP(a.x, 0, 9) + CLIP(b.x, 0, 9)";
    for (behind, select) in [
        (format!("WHERE {sum} >= :p * (200 - :p)"), "COUNT(*) AS n"),
        (format!("WHERE {sum} >= CASE :p WHEN 3 THEN 5 ELSE 0 END"), "COUNT(*) AS n"),
        ("WHERE CASE WHEN :p = 3 THEN a.x <> 7 ELSE b.y >= 0 END".to_owned(), "COUNT(*) AS n"),
        (
            "HAVING COUNT(*) >= 2 AND COUNT(*) >= CASE :p WHEN 3 THEN 30 ELSE 5 END".to_owned(),
            "COUNT(*) AS n",
        ),
        (String::new(), "SUM(CASE WHEN :p = 3 THEN 1 ELSE 0 END) AS n"),
    ] {
        assert_eq!(template(&behind, select), [true, true, false], "{select} {behind}");
    }
    let own = "SELECT COUNT(*) AS n FROM ours a JOIN theirs b ON a.k = b.k WHERE a.x >= :p * (200 - :p)";
    let own = Template::new(own, vec![named("p", "integer", &[], [Some("0"), Some("200")])]).unwrap();
    let asked = "SELECT COUNT(*) AS n FROM ours a JOIN theirs b ON a.k = b.k WHERE a.x >= 3 * (200 - 3)";
    assert!(own.asks_alike(&parse(asked).unwrap(), Side::Ours), "its own filter is what is compared");
}
