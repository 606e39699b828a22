//! What is planned of a question: its text, fields, uses and groups; and that no text makes the parser panic.

use crate::random::Random;
use tacit_query::{Code, Kind, Measure, Number, Output, Purpose, Question, Side, Test, parse};

#[track_caller]
fn read(text: &str) -> Question {
    parse(text).unwrap_or_else(|fault| panic!("{text}: {fault}"))
}

/// A question of this selection, with what follows ON.
#[track_caller]
fn of(selected: &str, rest: &str) -> Question {
    read(&format!("SELECT {selected} FROM ours a JOIN theirs b ON a.k = b.k {rest}"))
}

#[test]
fn one_meaning_has_one_text() {
    let wanted = "SELECT b.segment, COUNT(*) AS n FROM ours a JOIN theirs b ON a.k = b.k WHERE a.cents > 1000 AND \
                  b.segment IN ('a', 'it''s') GROUP BY b.segment HAVING COUNT(*) >= 50";
    let rest = "where a.cents>1000 and b.segment in ('a','it''s') group by 1 having count(*)>=50";
    for text in [
        wanted.to_owned(),
        format!("{wanted};"),
        format!("select b.segment, count(*) n from ours as a inner join theirs as b on a.k=b.k {rest} ;"),
        format!(
            "SELECT b.segment,\n/* how many */ COUNT(*) AS n FROM theirs b JOIN ours a ON (b.k = a.k) -- of both\n{rest}"
        ),
        wanted.replace("a.cents > 1000", "((a.cents) > +1000)"),
        wanted.replace("GROUP BY b.segment", "GROUP BY (b.segment)"),
        wanted.replace("b.segment", "b.\"segment\""),
    ] {
        assert_eq!(read(&text).text, wanted.replace("b.segment", &written("segment")), "{text}");
    }
    let other = [
        ("a.cents > 1000", "a.cents >= 1000"),
        ("a.cents > 1000", "a.Cents > 1000"),
        ("'a'", "'A'"),
        ("'a'", "'a '"),
        ("AS n", "AS m"),
        ("1000 AND", "1000 AND a.x > 1 AND"),
    ];
    for (from, to) in other {
        assert_ne!(read(&wanted.replacen(from, to, 1)).text, read(wanted).text, "{to}");
    }
}

/// A column of `b` as texts have it, which SQL may have a word for.
fn written(name: &str) -> String {
    let text = of(&format!("COUNT(b.\"{name}\")"), "").text;
    text["SELECT COUNT(".len()..text.find(") FROM").unwrap()].to_owned()
}

#[test]
fn operators_keep_their_order() {
    for condition in [
        "(a.x > 1 OR a.y > 2) AND NOT (a.z > 3 OR a.w > 4)",
        "a.x - (a.y - 1) > 2 - a.z * (a.w + 1)",
        "(a.x > 1) = (NOT a.y > 2)",
        "-(-a.x) - -5 > -a.y * 2",
        "(a.x BETWEEN 1 AND 2) IS NULL",
        "NOT (NOT a.x IN (1, 2))",
        "CASE WHEN a.x > 1 THEN a.y > 2 ELSE a.z IS NOT TRUE END",
    ] {
        let question = of("COUNT(*)", &format!("WHERE {condition}"));
        assert_eq!(read(&question.text).text, question.text);
    }
    let condition = |text: &str| of("COUNT(*)", &format!("WHERE {text}")).text;
    assert_ne!(condition("a.x - (a.y - 1) > 2"), condition("a.x - a.y - 1 > 2"));
    assert_ne!(condition("NOT (a.x > 1 AND a.y > 2)"), condition("NOT a.x > 1 AND a.y > 2"));
    assert_eq!(condition("(a.x + a.y) + 1 > 2"), condition("a.x + a.y + 1 > 2"));
    assert_eq!(condition("a.x::BIGINT > 2"), condition("CAST(a.x AS BIGINT) > 2"));
    assert_eq!(condition("a.\"x:decimal2\" > 2"), condition("CAST(a.x AS DECIMAL(18, 2)) > 2"));
}

fn uses(question: &Question, side: Side) -> Vec<(&str, Purpose)> {
    question.tables[side as usize].uses.iter().map(|one| (one.column.as_str(), one.purpose)).collect()
}

#[test]
fn every_use_of_a_column_is_listed() {
    let question = read(
        "SELECT b.segment, SUM(CASE WHEN b.country = 'DE' THEN CLIP(a.cents, 0, 99) ELSE 0 END), \
         COUNT(DISTINCT a.tel)
         FROM ours a JOIN theirs b ON a.\"tel:phone:NL\" = b.phone AND a.zip = b.\"zip:postcode\"
         WHERE a.age > 18 AND b.segment IN ('x', 'y') AND b.country <> 'FR'
         GROUP BY b.segment HAVING MAX(CLIP(b.score, 0, 9)) > 3"
            .replace("COUNT(DISTINCT a.tel)", "COUNT(DISTINCT a.zip, a.tel)")
            .as_str(),
    );
    let [ours, theirs] = &question.tables;
    assert_eq!((ours.alias.as_str(), theirs.alias.as_str()), ("a", "b"));
    assert_eq!(ours.key, ["tel:phone:NL", "zip"]);
    assert_eq!(theirs.key, ["phone", "zip:postcode"]);
    assert_eq!(ours.columns, ["cents", "age"]);
    assert_eq!(theirs.columns, ["segment", "country", "score"]);
    assert_eq!(
        uses(&question, Side::Ours),
        [
            ("age", Purpose::Filter),
            ("cents", Purpose::Aggregate),
            ("tel", Purpose::Join),
            ("zip", Purpose::Join)
        ]
    );
    // What lists a group's values is no use of its own.
    assert_eq!(
        uses(&question, Side::Theirs),
        [
            ("country", Purpose::Filter),
            ("country", Purpose::Aggregate),
            ("phone", Purpose::Join),
            ("score", Purpose::Aggregate),
            ("segment", Purpose::Group),
            ("zip", Purpose::Join),
        ]
    );
    assert_eq!(question.carries(Side::Ours), ["cents"]);
    assert_eq!(question.carries(Side::Theirs), ["country", "score"]);
}

#[test]
fn one_part_is_one_field_and_as_large_as_it_can_be() {
    let question = of(
        "SUM(CLIP(a.x, 0, 9) * CLIP(b.y, 0, 9)), SUM(CLIP(b.y, 0, 9) + CLIP(a.x, 0, 9)), COUNT(CLIP(a.x, 0, 9))",
        "WHERE a.p > 1 AND (a.q > 2 OR b.r > 3 OR a.s > 4) AND b.t = 5",
    );
    let kinds: Vec<_> = question.fields.iter().map(|field| (field.side, field.kind.clone())).collect();
    let number = Kind::Number { least: 0, most: 9 };
    assert_eq!(
        kinds,
        [
            (Side::Ours, Kind::Truth),
            (Side::Theirs, Kind::Truth),
            (Side::Ours, number.clone()),
            (Side::Theirs, number)
        ]
    );
    assert_eq!(question.filter, Some(Test::Any(vec![Test::Field(0), Test::Field(1)])));
    assert_eq!(question.measures[2], Measure::Count(Number::Leaf(2)));
    assert_eq!([question.place(0), question.place(2), question.place(3)], [1..3, 3..8, 3..8]);
    assert_eq!((question.bits(Side::Ours), question.bits(Side::Theirs)), (8, 8));
    // A null number has zeros, and so has an unknown truth value.
    let x = question.tables[0].columns.iter().position(|column| column == "x").unwrap();
    let mut cells = vec![Some("2"); question.tables[0].columns.len()];
    cells[x] = None;
    assert_eq!(question.row(Side::Ours, &cells).unwrap(), Some(0b0000_0101));
    cells.fill(Some("7"));
    assert_eq!(question.row(Side::Ours, &cells).unwrap(), Some(0b1011_1111));
}

#[test]
fn bounds_that_follow_from_constants_need_no_clip() {
    for (selected, least, most) in [
        ("SUM(CASE WHEN a.x > 5 THEN 1 ELSE 0 END)", 0, 1),
        ("SUM(CASE WHEN a.x > 5 THEN 2.5 WHEN a.x > 3 THEN -1 END)", -10, 25),
        ("SUM(CLIP(a.x, 0, 9) * CLIP(a.y, -3, 3) - 1)", -28, 26),
        ("SUM(EXTRACT(MONTH FROM a.x))", 1, 12),
        ("SUM(COALESCE(CLIP(a.x, 1, 9), 20))", 1, 20),
        ("MAX(CLIP(a.x, DATE '1970-01-03', DATE '1970-01-09'))", 2, 8),
    ] {
        let question = of(selected, "");
        assert_eq!(question.fields[0].kind, Kind::Number { least, most }, "{selected}");
    }
    let question = of("SUM(CLIP(a.x, -2, 9) - CLIP(b.y, 0, 4))", "");
    assert_eq!(question.measures[0].range(&question.fields, 10), Some((-60, 90)));
}

#[test]
fn groups_have_the_values_that_the_question_lists() {
    let question = of(
        "COUNT(*)",
        "WHERE b.s IN ('z', 'a', 'z', NULL) AND b.n = 7 AND a.m BETWEEN -1 AND 1 AND \
         a.p IN (0.5, 2) GROUP BY b.s, b.n, a.m, a.p, a.f IS NULL",
    );
    let text = |text: &str| Code::Text(text.to_owned());
    let values: Vec<Vec<Code>> = question
        .groups
        .iter()
        .map(|group| match &question.fields[group.field].kind {
            Kind::Code(values) => values.clone(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(values[0], [text("z"), text("a")]);
    assert_eq!(values[1], [Code::Integer(7)]);
    assert_eq!(values[2], [Code::Integer(-1), Code::Integer(0), Code::Integer(1)]);
    assert_eq!(values[3], [text("0.5"), text("2.0")]);
    assert_eq!(values[4], [Code::Truth(false), Code::Truth(true)]);
    assert_eq!(question.group_count(), 24);
    assert_eq!(question.group_codes(0), [0; 5]);
    assert_eq!(question.group_codes(23), [1, 0, 2, 1, 1]);
    assert_eq!(question.group_codes(2), [0, 0, 0, 1, 0]);
    assert_eq!(question.least, 1);
    assert_eq!(of("COUNT(*)", "").group_count(), 1);
}

#[test]
fn the_least_number_of_rows_is_the_largest_that_having_asks() {
    let least = |having: &str| {
        let question = of("COUNT(*)", &format!("HAVING {having}"));
        (question.least, question.having.is_some())
    };
    assert_eq!(least("COUNT(*) >= 50"), (50, false));
    assert_eq!(least("COUNT(*) > 50 AND 20 <= COUNT(*)"), (51, false));
    assert_eq!(least("COUNT(*) >= 20 AND COUNT(*) <= 90"), (20, true));
    assert_eq!(least("COUNT(*) >= 20 OR COUNT(*) >= 30"), (0, true));
    assert_eq!(least("COUNT(*) >= -3"), (0, false));
    assert_eq!(least("COUNT(*) >= 9.5"), (0, true));
}

#[test]
fn equal_measures_are_one_and_only_what_is_shown_is_opened() {
    let question = of(
        "AVG(CLIP(a.x, 0, 9)) AS mean, SUM(CLIP(a.x, 0, 9)) AS total, COUNT(*), COUNT(DISTINCT b.k) AS keys",
        "HAVING MIN(CLIP(b.y, 0, 9)) > 3",
    );
    assert_eq!(question.measures.len(), 4);
    assert_eq!(question.opened(), [0, 1, 2]);
    assert_eq!(question.outputs[0], ("mean".into(), Output::Mean { sum: 0, count: 1, scale: 0 }));
    assert_eq!(question.outputs[1], ("total".into(), Output::Number { measure: 0, scale: 0 }));
    assert_eq!(question.outputs[2], ("COUNT(*)".into(), Output::Count(2)));
    assert_eq!(question.outputs[3], ("keys".into(), Output::Count(2)));
}

/// Texts that have nearly all that a question may have.
const WHOLE: [&str; 3] = [
    "SELECT b.segment, CASE WHEN a.\"age:integer\" < 30 THEN 'young' ELSE NULL END AS age, COUNT(*) AS n, \
     SUM(CLIP(a.cents, 0, 99.5) * -CLIP(b.y, 1, 2)), AVG(CASE WHEN b.f = (a.x > 3) THEN 1 END) \
     FROM ours AS a JOIN theirs AS b ON a.\"tel:phone:NL\" = b.tel AND a.k = b.k \
     WHERE b.segment IN ('a', 'it''s') AND a.s LIKE 'a!_%' ESCAPE '!' AND NOT (a.x BETWEEN 1 AND 2 OR b.y IS NULL) \
     GROUP BY 1, age HAVING COUNT(*) >= 50 AND AVG(CLIP(b.z, 0, 9)) < 3.5",
    "SELECT COUNT(DISTINCT a.k), MIN(CLIP(a.\"d:date\", DATE '2001-01-01', DATE '2002-01-01') + 7) \
     FROM theirs b JOIN ours a ON b.k = a.k \
     WHERE EXTRACT(YEAR FROM CAST(a.e AS DATE)) = 2001 AND COALESCE(CLIP(a.n, 0, 5), CLIP(b.m, 0, 5)) > 2",
    "SELECT COUNT(a.x) FROM ours a JOIN theirs b ON a.k = b.k WHERE (a.p > 1 AND b.q > 2) IS NOT TRUE; -- a remark",
];

#[test]
fn no_change_of_a_text_makes_the_parser_panic() {
    let words: Vec<&str> = WHOLE.iter().flat_map(|text| text.split(' ')).collect();
    let others =
        ["(", ")", "'", "\"", "--", "/*", "1e9", "NULL", "\u{e9}", "9999999999999999999999999999", "::", "."];
    let mut read = 0;
    for seed in 0..4000 {
        let mut random = Random::new(seed);
        let mut text = random.pick(&WHOLE).to_owned();
        for _ in 0..1 + random.below(4) {
            let mut cut = |text: &str| {
                let at = random.below(text.len() + 1);
                (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
            };
            let (from, to) = (cut(&text), cut(&text));
            let piece = match random.below(4) {
                0 => String::new(),
                1 => random.pick(&others).to_owned(),
                2 => format!(" {} ", random.pick(&words)),
                _ => text[from.min(to)..from.max(to)].to_owned(),
            };
            let end = if random.one_in(2) { from } else { (from + random.below(6)).min(text.len()) };
            let end = (end..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
            text.replace_range(from..end, &piece);
        }
        match parse(&text) {
            Ok(question) => {
                read += 1;
                assert_eq!(
                    parse(&question.text).map(|again| again.text),
                    Ok(question.text.clone()),
                    "{text}"
                );
                for side in Side::BOTH {
                    let count = question.tables[side as usize].columns.len();
                    for cell in [None, Some("1"), Some("2001-02-03"), Some("true"), Some("a\u{e9}")] {
                        let _ = question.row(side, &vec![cell; count]);
                    }
                }
                question.answer(&[], &mut || 0);
            }
            Err(fault) => {
                let line = fault.to_string();
                assert!(!line.contains('\n') && line.len() < 4000, "{text}\n{line}");
            }
        }
    }
    assert!(read > 200, "{read}");
}

/// What follows all clauses is a part of the canonical text, in one order and form, and nowhere else.
#[test]
fn what_follows_all_clauses_is_read_and_written() {
    let plain = of("COUNT(*) AS n", "");
    assert_eq!((plain.step, plain.epsilon, plain.noise.len()), (None, None, 0));
    let question = of("COUNT(*) AS n", "with /* some */ noise Epsilon 0.50 Round -- up\n to 010 ; ;");
    assert_eq!((question.step, question.epsilon), (Some(10), Some(500_000)));
    assert_eq!(question.text, plain.text.clone() + " ROUND TO 10 WITH NOISE EPSILON 0.5");
    assert_eq!(parse(&question.text).unwrap().text, question.text);
    assert_eq!(question.epsilon_text().as_deref(), Some("0.5"));
    // Not a clause: a string, and a column.
    let text = of("COUNT(*)", "WHERE a.x = 'WITH NOISE EPSILON 1'");
    assert_eq!((text.epsilon, text.step), (None, None));
}

/// Each number has its share of epsilon, by what a key can change of it; the number of rows that decides about a group
/// is one of them.
#[test]
fn noise_is_shared_among_numbers() {
    let digits = |selected: &str, rest: &str| -> Vec<usize> {
        of(selected, &format!("{rest} WITH NOISE EPSILON 1")).noise.iter().map(Vec::len).collect()
    };
    // 2^digits is about 44·(numbers)·(largest change).
    assert_eq!(digits("COUNT(*)", ""), [6]);
    assert_eq!(digits("COUNT(*), COUNT(*) AS m, SUM(CLIP(a.x, 1, 1)) AS s", ""), [7, 7]);
    assert_eq!(digits("SUM(CLIP(a.x, -1024, 3)) AS s", ""), [16]);
    assert_eq!(digits("SUM(CLIP(a.x, -3, 1024)) AS s", ""), [16]);
    assert_eq!(digits("SUM(CLIP(a.\"x:decimal2\", 0, 10.24)) AS s", ""), [16]);
    assert_eq!(digits("SUM(CLIP(a.x, 0, 0)) AS s", ""), [0]);
    let group = "WHERE a.h BETWEEN 0 AND 3 GROUP BY a.h";
    assert_eq!(digits("SUM(CLIP(a.x, 0, 1024)) AS s", group), [16]);
    assert_eq!(digits("SUM(CLIP(a.x, 0, 1024)) AS s", &format!("{group} HAVING COUNT(*) >= 5")), [17, 7]);
}

/// What noise is on average: of rate x, 1/sinh(x); of scale d·n/epsilon about.
#[test]
fn noise_has_a_size_that_is_told() {
    let question = of("COUNT(*) AS n, SUM(CLIP(a.\"x:decimal2\", -1, 5)) AS s", "WITH NOISE EPSILON 0.5");
    let sizes: Vec<f64> =
        question.outputs.iter().filter_map(|(_, output)| question.mean_noise(output)).collect();
    assert!((sizes[0] - 3.958).abs() < 0.001 && (sizes[1] - 20.0).abs() < 0.001, "{sizes:?}");
    let plain = of("COUNT(*) AS n", "");
    assert_eq!(plain.mean_noise(&plain.outputs[0].1), None);
}

/// A group is shown by its number of rows with noise; without a least number, all are.
#[test]
fn groups_are_shown_by_their_noised_rows() {
    let of =
        |having: &str| of("a.h, COUNT(*) AS n", &format!("WHERE a.h BETWEEN 0 AND 2 GROUP BY a.h {having}"));
    let all = of("WITH NOISE EPSILON 10");
    assert_eq!(all.shown_from(), None);
    let shown: Vec<usize> = all.answer(&[], &mut || u64::MAX).into_iter().map(|(group, _)| group).collect();
    assert_eq!(shown, [0, 1, 2]);
    let some = of("HAVING COUNT(*) >= 2 WITH NOISE EPSILON 1");
    assert_eq!((some.shown_from(), some.noise.len(), some.noise[0].len()), (Some(2), 1, 6));
    // Of the first group the first four words add 15, of the second the first adds 1, and of the third nothing.
    let mut words = 0;
    let shown = some.answer(&[], &mut || {
        words += 1;
        if (1..=4).contains(&words) || words == 13 { 0 } else { u64::MAX }
    });
    assert_eq!((words, shown), (36, vec![(0, vec![Some(15)])]));
    // What is hidden may be negative too.
    let none = all.answer(&[], &mut || u64::MAX);
    assert_eq!(none.len(), 3);
}
