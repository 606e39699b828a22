//! Small tables, joined in the clear, and what is answered of them.

use tacit_query::{Cell, Question, Side, parse};

/// The result of a question, cells parted by blanks and rows by `|`; a null is `-`. Tables have their columns' names in
/// the first row; cells are parted by blanks, `.` is an empty one.
pub(crate) fn answer(text: &str, tables: [&str; 2]) -> Result<String, String> {
    let question = parse(text).map_err(|fault| fault.to_string())?;
    let blocks = Side::BOTH.map(|side| blocks(&question, side, tables[side as usize]));
    let [ours, theirs] = blocks;
    let (ours, theirs) = (ours?, theirs?);
    let mut joined = vec![];
    for (key, a) in &ours {
        joined.extend(theirs.iter().filter(|(other, _)| key == other).map(|(_, b)| [*a, *b]));
    }
    let rows = question.answer(&joined, &mut || unreachable!()).into_iter().map(|(group, values)| {
        let cells = question.render(group, &values).into_iter().map(|cell| match cell {
            Cell::Null => "-".to_owned(),
            Cell::Truth(value) => value.to_string(),
            Cell::Integer(value) => value.to_string(),
            Cell::Text(text) => text,
        });
        cells.collect::<Vec<_>>().join(" ")
    });
    Ok(rows.collect::<Vec<_>>().join(" | "))
}

fn blocks(question: &Question, side: Side, table: &str) -> Result<Vec<(String, u128)>, String> {
    let mut lines = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let names = lines.next().unwrap_or_default();
    let at = |column: &str| {
        names.iter().position(|name| *name == column).unwrap_or_else(|| panic!("{column} in {names:?}"))
    };
    let own = &question.tables[side as usize];
    let mut found = vec![];
    for line in lines {
        let cell = |column: &String| Some(line[at(column)]).filter(|cell| *cell != ".");
        let cells: Vec<Option<&str>> = own.columns.iter().map(cell).collect();
        let key: Vec<&str> =
            own.key.iter().map(|key| line[at(key.split(':').next().unwrap_or(key))]).collect();
        if let Some(block) = question.row(side, &cells).map_err(|fault| fault.to_string())? {
            found.push((key.join("/"), block));
        }
    }
    Ok(found)
}

const OURS: &str = "\
email cents age born vip
ada 1500 36 1990-02-28 true
bob 2500 . 1985-12-31 false
cyd 900 51 . .
dot . 19 2001-01-01 true";

const THEIRS: &str = "\
email segment country score
ada a DE 7
bob b DE 3
cyd a FR 9
dot b DE .
eve a DE 5";

#[track_caller]
fn says(text: &str, wanted: &str) {
    assert_eq!(answer(text, [OURS, THEIRS]).as_deref(), Ok(wanted), "{text}");
}

#[test]
fn the_first_example_is_answered() {
    says(
        "SELECT b.segment, COUNT(*) AS buyers, SUM(CLIP(a.cents, 0, 100000)) AS spent
         FROM ours a JOIN theirs b ON a.email = b.email
         WHERE a.cents > 1000 AND b.country = 'DE' AND b.segment IN ('a', 'b', 'c')
         GROUP BY b.segment HAVING COUNT(*) >= 1",
        "a 1 1500 | b 1 2500",
    );
}

/// An aggregate over all joined rows.
#[track_caller]
fn one(selected: &str, rest: &str, wanted: &str) {
    says(&format!("SELECT {selected} FROM ours a JOIN theirs b ON a.email = b.email {rest}"), wanted);
}

#[test]
fn aggregates_pass_over_nulls() {
    one("COUNT(*), COUNT(DISTINCT a.email), COUNT(a.age), COUNT(b.score)", "", "4 4 3 3");
    one("SUM(CLIP(a.age, 0, 99)) AS s, AVG(CLIP(a.age, 0, 99)) AS m", "", "106 35.333333");
    one("MIN(CLIP(b.score, 0, 9)), MAX(CLIP(b.score, 0, 9))", "", "3 9");
    one("SUM(CLIP(b.score, 0, 5))", "", "13");
    one("SUM(CLIP(b.score, 0, 5)), COUNT(*)", "WHERE b.score IS NULL", "- 1");
    one("MIN(CLIP(a.born, DATE '1980-01-01', DATE '2000-12-31'))", "", "1985-12-31");
    one("MAX(CLIP(a.born, DATE '1980-01-01', DATE '2000-12-31'))", "", "2000-12-31");
    one("COUNT(*)", "WHERE a.age > 200", "0");
}

#[test]
fn conditions_have_three_truth_values() {
    one("COUNT(*)", "WHERE a.age > 20", "2");
    one("COUNT(*)", "WHERE NOT a.age > 20", "1");
    one("COUNT(*)", "WHERE a.age > 20 OR a.vip", "3");
    one("COUNT(*)", "WHERE a.vip IS NOT TRUE", "2");
    one("COUNT(*)", "WHERE a.age > 30 OR b.score > 8", "2");
    one("COUNT(*)", "WHERE NOT (a.age > 30 OR b.score > 8)", "0");
    one("COUNT(*)", "WHERE (a.age > 30 OR b.score > 8) IS NULL", "2");
    one("COUNT(*)", "WHERE a.age IN (36, 51, NULL)", "2");
    one("COUNT(*)", "WHERE a.age NOT IN (36, 51, NULL)", "0");
    one("COUNT(*)", "WHERE a.age BETWEEN 19 AND 36", "2");
    one("COUNT(*)", "WHERE a.email LIKE '_o%'", "2");
    one("COUNT(*)", "WHERE a.vip = (b.country = 'DE')", "2");
    one("COUNT(*)", "WHERE a.vip <> (b.country = 'DE')", "1");
}

#[test]
fn both_sides_numbers_are_computed_with() {
    let (age, score) = ("CLIP(a.age, 0, 99)", "CLIP(b.score, 0, 9)");
    one(&format!("SUM({age} * {score})"), "", "711");
    one(&format!("SUM({age} - {score})"), "", "71");
    one(&format!("SUM({score} - {age} + {score})"), "", "-55");
    one(&format!("SUM(COALESCE({age}, {score}, 0))"), "", "109");
    one(&format!("SUM(CASE WHEN a.vip THEN {score} WHEN b.score > 5 THEN {age} END)"), "", "58");
    one("COUNT(*)", &format!("WHERE {age} > {score} * 5"), "2");
    one("SUM(CLIP(a.\"cents:decimal2\" , 0, 2000.5) * 2)", "", "8801.00");
    one("COUNT(*)", "WHERE a.born < DATE '1990-03-01' OR b.score > 8", "3");
    one(
        "COUNT(*)",
        "WHERE CLIP(a.born, DATE '1980-01-01', DATE '2010-01-01') - DATE '1989-01-01' < CLIP(b.score, 0, 9)",
        "1",
    );
}

#[test]
fn groups_are_of_either_side_in_the_order_of_their_values() {
    one("b.segment, COUNT(*)", "WHERE b.segment IN ('b', 'a') GROUP BY 1", "b 2 | a 2");
    one(
        "a.\"vip:boolean\", b.segment AS s, COUNT(*)",
        "WHERE b.segment IN ('a', 'b') GROUP BY a.vip, s",
        "false b 1 | true a 1 | true b 1 | - a 1",
    );
    one(
        "CASE WHEN a.age < 30 THEN 'young' WHEN a.age >= 30 THEN 'old' END AS old, COUNT(*)",
        "GROUP BY old",
        "young 1 | old 2 | - 1",
    );
    one("EXTRACT(MONTH FROM a.born) AS m, COUNT(*)", "GROUP BY m", "1 1 | 2 1 | 12 1 | - 1");
    one("COUNT(*)", "WHERE b.score BETWEEN 0 AND 9 GROUP BY b.score", "1 | 1 | 1");
}

#[test]
fn groups_pass_what_having_says() {
    let grouped = "WHERE b.segment IN ('a', 'b') GROUP BY b.segment HAVING";
    one("b.segment", &format!("{grouped} COUNT(*) > 2"), "");
    one("b.segment", &format!("{grouped} SUM(CLIP(a.age, 0, 99)) > 50"), "a");
    one("b.segment", &format!("{grouped} AVG(CLIP(a.age, 0, 99)) < 43.5"), "b");
    one("b.segment", &format!("{grouped} AVG(CLIP(a.age, 0, 99)) <= 43.5 AND COUNT(*) >= 2"), "a | b");
    one("b.segment", &format!("{grouped} COUNT(a.age) * 2 = COUNT(*)"), "b");
    one("b.segment", &format!("{grouped} AVG(CLIP(a.age, 0, 99)) > AVG(CLIP(b.score, 0, 9))"), "a | b");
}
