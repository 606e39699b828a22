//! Questions and tables by the thousand: what rows' blocks answer is what SQLite answers of the joined tables.
//!
//! Each expression is written twice: as a question has it, and as SQLite has it, where decimals are whole numbers of
//! their unit, dates are days and truth values are 1 and 0.

use crate::random::Random;
use rusqlite::Connection;
use rusqlite::types::Value;
use tacit_query::{Cell, Kind, Measure, Question, Side, parse};

/// An expression as a question and as SQLite has it. Numbers are in units of 10^-scale.
#[derive(Clone)]
struct Pair {
    ours: String,
    sqlite: String,
    scale: u32,
}

fn pair(ours: impl Into<String>, sqlite: impl Into<String>) -> Pair {
    Pair { ours: ours.into(), sqlite: sqlite.into(), scale: 0 }
}

impl Pair {
    fn at(&self, scale: u32) -> String {
        match scale - self.scale {
            0 => self.sqlite.clone(),
            more => format!("({} * {})", self.sqlite, 10i64.pow(more)),
        }
    }
}

/// Units as an exact decimal.
fn decimal(units: i64, scale: u32) -> String {
    let (one, sign) = (10u64.pow(scale), if units < 0 { "-" } else { "" });
    let units = units.unsigned_abs();
    match scale {
        0 => format!("{sign}{units}"),
        _ => format!("{sign}{}.{:0width$}", units / one, units % one, width = scale as usize),
    }
}

/// The date of days since 1970-01-01, counted year by year.
fn date(days: i64) -> String {
    let is_leap = |year: i64| year % 4 == 0 && year % 100 != 0 || year % 400 == 0;
    let (mut year, mut rest) = (1970, days);
    while rest < 0 || rest >= 365 + i64::from(is_leap(year)) {
        if rest < 0 {
            year -= 1;
            rest += 365 + i64::from(is_leap(year));
        } else {
            rest -= 365 + i64::from(is_leap(year));
            year += 1;
        }
    }
    let mut month = 0;
    let lengths = [31, 28 + i64::from(is_leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    while rest >= lengths[month] {
        rest -= lengths[month];
        month += 1;
    }
    format!("{year:04}-{:02}-{:02}", month + 1, rest + 1)
}

const TEXTS: [&str; 6] = ["x", "y", "Zed", "a_b", " x", "it's"];
const COLUMNS: [&str; 7] = ["k", "n", "m", "amount", "t", "f", "day"];
const FIRST_DAY: i64 = -3;
const LAST_DAY: i64 = 800;

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// Writes expressions of the sides that it may name.
struct Writer<'a> {
    random: &'a mut Random,
}

/// Whose columns an expression may have, and whether its numbers need bounds.
#[derive(Clone, Copy)]
struct Scope {
    sides: &'static [&'static str],
    is_bounded: bool,
}

const BOTH: Scope = Scope { sides: &["a", "b"], is_bounded: true };

impl Writer<'_> {
    fn one_side(&mut self, scope: Scope) -> Scope {
        let side = self.random.pick(scope.sides);
        Scope { sides: if side == "a" { &["a"] } else { &["b"] }, ..scope }
    }

    fn literal(&mut self) -> Pair {
        let scale = self.random.pick(&[0, 0, 0, 1, 2]);
        let units = self.random.between(-30, 30);
        Pair { scale, ..pair(decimal(units, scale), units.to_string()) }
    }

    fn clip(&mut self, x: &Pair) -> Pair {
        let (low, high) = (self.literal(), self.literal());
        let scale = low.scale.max(high.scale).max(x.scale);
        let value = |pair: &Pair| pair.sqlite.parse::<i64>().unwrap() * 10i64.pow(scale - pair.scale);
        let (low, high) = if value(&low) <= value(&high) { (low, high) } else { (high, low) };
        Pair {
            ours: format!("CLIP({}, {}, {})", x.ours, low.ours, high.ours),
            sqlite: format!("min(max({}, {}), {})", x.at(scale), low.at(scale), high.at(scale)),
            scale,
        }
    }

    fn number_column(&mut self, scope: Scope) -> Pair {
        let side = self.random.pick(scope.sides);
        let column = match self.random.below(3) {
            0 => pair(format!("{side}.\"n:integer\""), format!("{side}.n")),
            1 => pair(format!("{side}.m"), format!("{side}.m")),
            _ => Pair { scale: 2, ..pair(format!("{side}.\"amount:decimal2\""), format!("{side}.amount")) },
        };
        if scope.is_bounded {
            return self.clip(&column);
        }
        // A column without a type is a number where it is computed with.
        let (ours, sqlite) = (format!("(0 + {})", column.ours), format!("(0 + {})", column.sqlite));
        Pair { ours, sqlite, ..column }
    }

    fn number(&mut self, scope: Scope, depth: usize) -> Pair {
        if depth == 0 || self.random.one_in(4) {
            return if self.random.one_in(5) { self.literal() } else { self.number_column(scope) };
        }
        let next = depth - 1;
        match self.random.below(9) {
            0 => {
                let x = self.number(scope, next);
                Pair { ours: format!("-({})", x.ours), sqlite: format!("(-({}))", x.sqlite), ..x }
            }
            1 | 2 => {
                let (x, y) = (self.number(scope, next), self.number(scope, next));
                let (sign, scale) = (self.random.pick(&["+", "-"]), x.scale.max(y.scale));
                let sqlite = format!("({} {sign} {})", x.at(scale), y.at(scale));
                let ours = match self.random.one_in(2) {
                    true => format!("{} {sign} ({})", x.ours, y.ours),
                    false => format!("(({}) {sign} ({}))", x.ours, y.ours),
                };
                // What is not in parentheses becomes a part of a longer sum, and of no product.
                Pair { ours: format!("({ours})"), sqlite, scale }
            }
            3 => {
                let (x, y) = (self.number_column(scope), self.number(scope, next.min(1)));
                Pair {
                    ours: format!("({} * ({}))", x.ours, y.ours),
                    sqlite: format!("({} * {})", x.sqlite, y.sqlite),
                    scale: x.scale + y.scale,
                }
            }
            4 | 5 => self.case(scope, next),
            6 => {
                let (x, y) = (self.number(scope, next), self.number(scope, next));
                let scale = x.scale.max(y.scale);
                Pair {
                    ours: format!("COALESCE({}, {})", x.ours, y.ours),
                    sqlite: format!("coalesce({}, {})", x.at(scale), y.at(scale)),
                    scale,
                }
            }
            7 => {
                let x = self.number(scope, next);
                self.clip(&x)
            }
            _ => self.number_of_other(scope, next),
        }
    }

    /// A number made of dates or text.
    fn number_of_other(&mut self, scope: Scope, depth: usize) -> Pair {
        match self.random.below(3) {
            0 => {
                let (x, y) = (self.date(scope, depth), self.date(scope, depth));
                pair(format!("({} - {})", x.ours, y.ours), format!("({} - {})", x.sqlite, y.sqlite))
            }
            1 => {
                let x = {
                    let one = self.one_side(scope);
                    self.date(one, depth)
                };
                let (part, format) = self.random.pick(&[("YEAR", "%Y"), ("MONTH", "%m"), ("DAY", "%d")]);
                pair(
                    format!("EXTRACT({part} FROM {})", x.ours),
                    format!("CAST(strftime('{format}', ({}) * 86400, 'unixepoch') AS INTEGER)", x.sqlite),
                )
            }
            _ => {
                let one = self.one_side(scope);
                let x = self.text(one, depth);
                let x = pair(format!("LENGTH({})", x.ours), format!("length({})", x.sqlite));
                if scope.is_bounded { self.clip(&x) } else { x }
            }
        }
    }

    fn case(&mut self, scope: Scope, depth: usize) -> Pair {
        let cases: Vec<(Pair, Pair)> = (0..1 + self.random.below(2))
            .map(|_| (self.condition(scope, depth), self.number(scope, depth)))
            .collect();
        let last = if self.random.one_in(3) { None } else { Some(self.number(scope, depth)) };
        let scale = cases.iter().map(|(_, x)| x).chain(&last).map(|x| x.scale).max().unwrap();
        let (mut ours, mut sqlite) = ("CASE".to_owned(), "CASE".to_owned());
        for (condition, result) in &cases {
            ours += &format!(" WHEN {} THEN {}", condition.ours, result.ours);
            sqlite += &format!(" WHEN {} THEN {}", condition.sqlite, result.at(scale));
        }
        if let Some(last) = last {
            ours += &format!(" ELSE {}", last.ours);
            sqlite += &format!(" ELSE {}", last.at(scale));
        }
        Pair { ours: ours + " END", sqlite: sqlite + " END", scale }
    }

    fn day(&mut self) -> Pair {
        let days = self.random.between(FIRST_DAY, LAST_DAY);
        pair(format!("DATE '{}'", date(days)), days.to_string())
    }

    fn date(&mut self, scope: Scope, depth: usize) -> Pair {
        let side = self.random.pick(scope.sides);
        let column = pair(format!("{side}.\"day:date\""), format!("{side}.day"));
        match self.random.below(if depth == 0 { 2 } else { 4 }) {
            0 => self.day(),
            1 if !scope.is_bounded => column,
            3 => {
                let x = self.date(scope, depth - 1);
                let days = self.random.between(0, 40);
                pair(format!("({} + {days})", x.ours), format!("({} + {days})", x.sqlite))
            }
            _ => {
                let (mut low, mut high) = (self.day(), self.day());
                if low.ours > high.ours {
                    std::mem::swap(&mut low, &mut high);
                }
                pair(
                    format!("CLIP({}, {}, {})", column.ours, low.ours, high.ours),
                    format!("min(max({}, {}), {})", column.sqlite, low.sqlite, high.sqlite),
                )
            }
        }
    }

    /// Text of one side's columns.
    fn text(&mut self, scope: Scope, depth: usize) -> Pair {
        let side = self.random.pick(scope.sides);
        let column = format!("{side}.\"t:text\"");
        let column = pair(column, format!("{side}.t"));
        if depth == 0 {
            return column;
        }
        match self.random.below(5) {
            0 => {
                let function = self.random.pick(&["LOWER", "UPPER", "TRIM"]);
                let x = self.text(scope, depth - 1);
                pair(format!("{function}({})", x.ours), format!("{function}({})", x.sqlite))
            }
            1 => {
                let text = quoted(self.random.pick(&TEXTS));
                pair(
                    format!("COALESCE({}, {text})", column.ours),
                    format!("coalesce({}, {text})", column.sqlite),
                )
            }
            2 => {
                let (condition, text) = (self.condition(scope, depth - 1), quoted(self.random.pick(&TEXTS)));
                pair(
                    format!("CASE WHEN {} THEN {text} ELSE {} END", condition.ours, column.ours),
                    format!("CASE WHEN {} THEN {text} ELSE {} END", condition.sqlite, column.sqlite),
                )
            }
            _ => column,
        }
    }

    fn condition(&mut self, scope: Scope, depth: usize) -> Pair {
        if depth == 0 {
            let side = self.random.pick(scope.sides);
            return match self.random.below(3) {
                0 => pair(format!("{side}.\"f:boolean\""), format!("{side}.f")),
                _ => {
                    let one = self.one_side(scope);
                    self.of_text(one, 0)
                }
            };
        }
        let next = depth - 1;
        match self.random.below(11) {
            0 | 1 => {
                let (x, y) = (self.number(scope, next), self.number(scope, next));
                let (sign, scale) =
                    (self.random.pick(&["=", "<>", "<", "<=", ">", ">="]), x.scale.max(y.scale));
                pair(
                    format!("{} {sign} {}", x.ours, y.ours),
                    format!("({} {sign} {})", x.at(scale), y.at(scale)),
                )
            }
            2 => {
                let (x, y) = (self.date(scope, next), self.date(scope, next));
                let sign = self.random.pick(&["=", "<", ">="]);
                pair(format!("{} {sign} {}", x.ours, y.ours), format!("({} {sign} {})", x.sqlite, y.sqlite))
            }
            3 => {
                let one = self.one_side(scope);
                self.of_text(one, next)
            }
            4 | 5 => {
                let operator = self.random.pick(&["AND", "OR"]);
                let all: Vec<Pair> =
                    (0..2 + self.random.below(2)).map(|_| self.condition(scope, next)).collect();
                let joined = |of: fn(&Pair) -> &String| {
                    all.iter()
                        .map(|x| format!("({})", of(x)))
                        .collect::<Vec<_>>()
                        .join(&format!(" {operator} "))
                };
                pair(joined(|x| &x.ours), format!("({})", joined(|x| &x.sqlite)))
            }
            6 => {
                let x = self.condition(scope, next);
                pair(format!("NOT ({})", x.ours), format!("(NOT ({}))", x.sqlite))
            }
            7 => {
                let (x, low, high) = (self.number(scope, next), self.number(scope, 0), self.literal());
                let scale = x.scale.max(low.scale).max(high.scale);
                let not = self.random.pick(&["", "NOT "]);
                pair(
                    format!("{} {not}BETWEEN {} AND {}", x.ours, low.ours, high.ours),
                    format!("({} {not}BETWEEN {} AND {})", x.at(scale), low.at(scale), high.at(scale)),
                )
            }
            8 => self.among(scope, next),
            9 => self.about_nothing(scope, next),
            _ => {
                let (x, y) = (self.condition(scope, next), self.condition(scope, next));
                match self.random.below(3) {
                    0 => {
                        let sign = self.random.pick(&["=", "<>"]);
                        pair(
                            format!("({}) {sign} ({})", x.ours, y.ours),
                            format!("({} {sign} {})", x.sqlite, y.sqlite),
                        )
                    }
                    1 => {
                        let text = |x: &str, y: &str| format!("COALESCE({x}, {y}, FALSE)");
                        pair(text(&x.ours, &y.ours), text(&x.sqlite, &y.sqlite))
                    }
                    _ => {
                        let z = self.condition(scope, next);
                        let text = |x: &str, y: &str, z: &str| format!("CASE WHEN {x} THEN {y} ELSE {z} END");
                        pair(
                            text(&x.ours, &y.ours, &z.ours),
                            format!("({})", text(&x.sqlite, &y.sqlite, &z.sqlite)),
                        )
                    }
                }
            }
        }
    }

    fn among(&mut self, scope: Scope, depth: usize) -> Pair {
        let x = self.number(scope, depth);
        let items: Vec<Pair> = (0..1 + self.random.below(3)).map(|_| self.literal()).collect();
        let scale = items.iter().map(|item| item.scale).max().unwrap().max(x.scale);
        let mut ours: Vec<String> = items.iter().map(|item| item.ours.clone()).collect();
        let mut sqlite: Vec<String> = items.iter().map(|item| item.at(scale)).collect();
        if self.random.one_in(4) {
            ours.push("NULL".into());
            sqlite.push("NULL".into());
        }
        let not = self.random.pick(&["", "NOT "]);
        pair(
            format!("{} {not}IN ({})", x.ours, ours.join(", ")),
            format!("({} {not}IN ({}))", x.at(scale), sqlite.join(", ")),
        )
    }

    fn about_nothing(&mut self, scope: Scope, depth: usize) -> Pair {
        let of = self.random.pick(&["IS NULL", "IS NOT NULL", "IS TRUE", "IS NOT TRUE", "IS FALSE"]);
        let x = if of.ends_with("NULL") && self.random.one_in(2) {
            self.number(scope, depth)
        } else {
            self.condition(scope, depth)
        };
        pair(format!("({}) {of}", x.ours), format!("(({}) {of})", x.sqlite))
    }

    /// A condition of one side's text.
    fn of_text(&mut self, scope: Scope, depth: usize) -> Pair {
        let x = self.text(scope, depth);
        let text = quoted(self.random.pick(&TEXTS));
        let rest = match self.random.below(4) {
            0 => format!("{} {text}", self.random.pick(&["=", "<>", "<", ">="])),
            1 => format!("IN ({text}, 'y', NULL)"),
            2 => format!("LIKE '{}'", self.random.pick(&["%x%", "_", "%_e%", "Z%d", "%", "x"])),
            _ => format!("NOT LIKE '{}' ESCAPE '!'", self.random.pick(&["a!_b", "%!%", "!!", "%x"])),
        };
        pair(format!("{} {rest}", x.ours), format!("({} {rest})", x.sqlite))
    }
}

/// A question, written twice.
#[derive(Default)]
struct Asked {
    ours: String,
    sqlite: String,
    /// How SQLite's columns become cells: of two numbers for a mean.
    cells: Vec<Shown>,
}

#[derive(Clone, Copy)]
enum Shown {
    Plain,
    Truth,
    Decimal(u32),
    Date,
    Mean(u32),
}

impl Writer<'_> {
    /// What rows are grouped by, the condition that lists its values, and how they are shown.
    fn group(&mut self) -> (Pair, Option<Pair>, Shown) {
        let side = self.random.pick(&["a", "b"]);
        let one: Scope = Scope { sides: if side == "a" { &["a"] } else { &["b"] }, is_bounded: false };
        match self.random.below(8) {
            0 | 1 => {
                let list: Vec<String> = (0..3).map(|_| quoted(self.random.pick(&TEXTS))).collect();
                let (x, list) = (pair(format!("{side}.t"), format!("{side}.t")), list.join(", "));
                let condition = pair(format!("{side}.t IN ({list})"), format!("{side}.t IN ({list})"));
                (x, Some(condition), Shown::Plain)
            }
            2 => {
                let x = pair(format!("{side}.m"), format!("{side}.m"));
                let (low, count) = (self.random.between(-9, 2), self.random.between(0, 9));
                let text = format!("{side}.m BETWEEN {low} AND {}", low + count);
                (x, Some(pair(text.clone(), text)), Shown::Plain)
            }
            3 => {
                let x = Pair {
                    scale: 2,
                    ..pair(format!("{side}.\"amount:decimal2\""), format!("{side}.amount"))
                };
                let ours = format!("{} IN (0.5, -1.25, 3)", x.ours);
                (x, Some(pair(ours, format!("{side}.amount IN (50, -125, 300)"))), Shown::Decimal(2))
            }
            4 => {
                let (x, y) = (self.condition(one, 1), self.condition(one, 1));
                let text = |x: &str, y: &str| format!("CASE WHEN {x} THEN 'one' WHEN {y} THEN 'two' END");
                (pair(text(&x.ours, &y.ours), text(&x.sqlite, &y.sqlite)), None, Shown::Plain)
            }
            5 => (self.condition(one, 2), None, Shown::Truth),
            6 => {
                let x = self.date(one, 1);
                let ours = format!("EXTRACT(MONTH FROM {})", x.ours);
                if !ours.contains("day") {
                    return self.group();
                }
                let sqlite = format!("CAST(strftime('%m', ({}) * 86400, 'unixepoch') AS INTEGER)", x.sqlite);
                (pair(ours, sqlite), None, Shown::Plain)
            }
            _ => {
                let x = pair(format!("{side}.\"day:date\""), format!("{side}.day"));
                let days: Vec<i64> = (0..4).map(|_| self.random.between(0, 9)).collect();
                let ours: Vec<String> = days.iter().map(|day| format!("DATE '{}'", date(*day))).collect();
                let sqlite: Vec<String> = days.iter().map(ToString::to_string).collect();
                let condition = pair(
                    format!("{} IN ({})", x.ours, ours.join(", ")),
                    format!("{} IN ({})", x.sqlite, sqlite.join(", ")),
                );
                (x, Some(condition), Shown::Date)
            }
        }
    }

    /// An aggregate, and how it is shown; SQLite's of a mean is two.
    fn aggregate(&mut self) -> (Pair, Shown) {
        match self.random.below(9) {
            0 => (pair("COUNT(*)", "COUNT(*)"), Shown::Plain),
            1 => (pair("COUNT(DISTINCT b.k)", "COUNT(DISTINCT b.k)"), Shown::Plain),
            2 => {
                let scope = Scope { is_bounded: false, ..self.one_side(BOTH) };
                let x = match self.random.below(4) {
                    0 => self.text(scope, 1),
                    1 => self.date(scope, 1),
                    2 => self.condition(BOTH, 1),
                    _ => self.number(scope, 2),
                };
                (pair(format!("COUNT({})", x.ours), format!("COUNT({})", x.sqlite)), Shown::Plain)
            }
            3 => {
                let (function, x) = (self.random.pick(&["MIN", "MAX"]), self.date(BOTH, 1));
                (pair(format!("{function}({})", x.ours), format!("{function}({})", x.sqlite)), Shown::Date)
            }
            4 => {
                let x = self.number(BOTH, 2);
                let sqlite = format!("SUM({}), COUNT({})", x.sqlite, x.sqlite);
                (pair(format!("AVG({})", x.ours), sqlite), Shown::Mean(x.scale))
            }
            _ => {
                let x = self.number(BOTH, 3);
                let function = self.random.pick(&["SUM", "SUM", "MIN", "MAX"]);
                let pair = pair(format!("{function}({})", x.ours), format!("{function}({})", x.sqlite));
                (Pair { scale: x.scale, ..pair }, Shown::Decimal(x.scale))
            }
        }
    }

    fn having(&mut self, depth: usize) -> Pair {
        let sign = self.random.pick(&["=", "<>", "<", "<=", ">", ">="]);
        match self.random.below(if depth == 0 { 4 } else { 6 }) {
            0 => {
                let least = self.random.between(0, 3);
                let text = self.random.pick(&[
                    "COUNT(*) >= {}",
                    "COUNT(*) > {}",
                    "{} <= COUNT(*)",
                    "COUNT(*) <> {}",
                ]);
                let text = text.replace("{}", &least.to_string());
                pair(text.clone(), text)
            }
            1 => {
                let (x, y) = (self.number(BOTH, 1), self.literal());
                let scale = x.scale.max(y.scale);
                pair(
                    format!("AVG({}) {sign} {}", x.ours, y.ours),
                    format!("(SUM({}) {sign} {} * COUNT({}))", x.at(scale), y.at(scale), x.sqlite),
                )
            }
            2 => {
                let (x, y) = (self.number(BOTH, 1), self.number(BOTH, 0));
                let scale = x.scale.max(y.scale);
                let (x_sum, y_sum) = (x.at(scale), y.at(scale));
                pair(
                    format!("COALESCE(SUM({}), 0) + COUNT(*) {sign} MAX({})", x.ours, y.ours),
                    format!(
                        "(coalesce(SUM({x_sum}), 0) + COUNT(*) * {} {sign} MAX({y_sum}))",
                        10i64.pow(scale)
                    ),
                )
            }
            3 => {
                let (x, y) = (self.number(BOTH, 1), self.literal());
                let scale = x.scale.max(y.scale);
                let function = self.random.pick(&["MIN", "MAX", "SUM"]);
                pair(
                    format!("{} {sign} {function}({})", y.ours, x.ours),
                    format!("({} {sign} {function}({}))", y.at(scale), x.at(scale)),
                )
            }
            4 => {
                let x = self.having(depth - 1);
                pair(format!("NOT ({})", x.ours), format!("(NOT ({}))", x.sqlite))
            }
            _ => {
                let (x, y) = (self.having(depth - 1), self.having(depth - 1));
                let operator = self.random.pick(&["AND", "OR"]);
                pair(
                    format!("({}) {operator} ({})", x.ours, y.ours),
                    format!("({} {operator} {})", x.sqlite, y.sqlite),
                )
            }
        }
    }

    fn question(&mut self) -> Asked {
        let groups: Vec<_> = (0..self.random.pick(&[0, 0, 1, 1, 2])).map(|_| self.group()).collect();
        let mut conditions: Vec<Pair> =
            groups.iter().filter_map(|(_, condition, _)| condition.clone()).collect();
        for _ in 0..self.random.pick(&[0, 0, 1, 1, 2]) {
            let scope = match self.random.below(2) {
                0 => BOTH,
                _ => Scope { is_bounded: false, ..self.one_side(BOTH) },
            };
            let depth = 1 + self.random.below(3);
            conditions.push(self.condition(scope, depth));
        }
        let mut outputs: Vec<(Pair, Shown)> =
            groups.iter().map(|(group, _, shown)| (group.clone(), *shown)).collect();
        for _ in 0..1 + self.random.below(3) {
            outputs.push(self.aggregate());
        }
        let having = if self.random.one_in(4) { Some(self.having(2)) } else { None };
        let on = if self.random.one_in(4) { "a.k = b.k AND b.k2 = a.k2" } else { "a.k = b.k" };
        let tables = self.random.pick(&["ours a JOIN theirs b", "theirs AS b INNER JOIN ours AS a"]);
        let write = |of: fn(&Pair) -> &String| {
            let mut text = "SELECT ".to_owned();
            for (at, (output, _)) in outputs.iter().enumerate() {
                text += &format!("{}{} AS c{at}", if at == 0 { "" } else { ", " }, of(output));
            }
            text += &format!(" FROM {tables} ON {on}");
            for (at, condition) in conditions.iter().enumerate() {
                text += &format!(" {} ({})", if at == 0 { "WHERE" } else { "AND" }, of(condition));
            }
            for (at, (group, ..)) in groups.iter().enumerate() {
                text += &format!("{} {}", if at == 0 { " GROUP BY" } else { "," }, of(group));
            }
            if let Some(having) = &having {
                text += &format!(" HAVING {}", of(having));
            }
            text
        };
        Asked {
            ours: write(|pair| &pair.ours).replace("COUNT(DISTINCT b.k)", distinct(on)),
            sqlite: write(|pair| &pair.sqlite),
            cells: outputs.iter().map(|(_, shown)| *shown).collect(),
        }
    }
}

/// The columns of the key, where it has two.
fn distinct(on: &str) -> &'static str {
    if on.contains("k2") { "COUNT(DISTINCT b.k2, b.k)" } else { "COUNT(DISTINCT b.k)" }
}

/// A table: for each row its cells as text, in the order of [`COLUMNS`] and `k2`.
fn table(random: &mut Random) -> Vec<Vec<Option<String>>> {
    let mut rows = vec![];
    for key in 0..16 {
        if random.one_in(6) {
            continue;
        }
        let mut row = vec![Some(format!("key{key}"))];
        row.extend((0..6).map(|_| if random.one_in(5) { None } else { Some(String::new()) }));
        rows.push(row);
    }
    for row in &mut rows {
        for (at, cell) in row.iter_mut().enumerate().skip(1) {
            if cell.is_some() {
                *cell = Some(match at {
                    1 => random.between(-20, 20).to_string(),
                    2 => random.between(-9, 9).to_string(),
                    3 => decimal(random.pick(&[50, -125, 300, 2999, -1, 0, 1]), 2),
                    4 => (random.pick(&TEXTS)).to_owned(),
                    5 => (random.pick(&["true", "f", "Yes", "0", " t "])).to_owned(),
                    _ => date(random.pick(&[-1, 0, 3, 7, 59, 365, 789])),
                });
            }
        }
        row.push(Some(usize::from(random.one_in(5)).to_string()));
    }
    rows
}

/// A cell as SQLite stores it.
fn stored(column: &str, cell: &Option<String>) -> Value {
    let Some(text) = cell else { return Value::Null };
    match column {
        "n" | "m" => Value::Integer(text.parse().unwrap()),
        "amount" => Value::Integer(text.replace('.', "").parse().unwrap()),
        "f" => Value::Integer(i64::from(["true", "Yes", " t "].contains(&text.as_str()))),
        "day" => Value::Integer((FIRST_DAY..=LAST_DAY).find(|day| date(*day) == *text).unwrap()),
        _ => Value::Text(text.clone()),
    }
}

fn columns() -> Vec<&'static str> {
    COLUMNS.into_iter().chain(["k2"]).collect()
}

/// The rows of SQLite's answer as cells, sorted.
fn sqlite_answer(base: &Connection, asked: &Asked) -> Vec<String> {
    let mut statement =
        base.prepare(&asked.sqlite).unwrap_or_else(|error| panic!("{}: {error}", asked.sqlite));
    let mut rows = statement.query([]).unwrap();
    let mut found = vec![];
    while let Some(row) = rows.next().unwrap() {
        let mut at = 0;
        let mut next = || {
            at += 1;
            match row.get::<_, Value>(at - 1).unwrap() {
                Value::Null => None,
                Value::Integer(number) => Some(number.to_string()),
                Value::Text(text) => Some(text),
                other => panic!("{}: {other:?}", asked.sqlite),
            }
        };
        let cells = asked.cells.iter().map(|shown| {
            let cell = next();
            let number = |cell: &Option<String>| cell.as_ref().map(|cell| cell.parse::<i64>().unwrap());
            let cell = match shown {
                Shown::Plain => cell,
                Shown::Truth => number(&cell).map(|value| (value == 1).to_string()),
                Shown::Decimal(scale) => number(&cell).map(|units| decimal(units, *scale)),
                Shown::Date => number(&cell).map(date),
                Shown::Mean(scale) => {
                    let count = number(&next()).unwrap();
                    number(&cell).map(|sum| {
                        // To the nearest, halves away from zero.
                        let twice = i128::from(sum.abs()) * 2_000_000 + i128::from(count);
                        let units = i64::try_from(twice / (2 * i128::from(count))).unwrap();
                        decimal(if sum < 0 { -units } else { units }, scale + 6)
                    })
                }
            };
            cell.unwrap_or_else(|| "NULL".into())
        });
        found.push(cells.collect::<Vec<_>>().join("|"));
    }
    found.sort_unstable();
    found
}

/// Each row that passes its side's filter: its key, and its block.
fn blocks(question: &Question, side: Side, rows: &[Vec<Option<String>>]) -> Vec<(Vec<String>, u128)> {
    let at = |name: &str| columns().iter().position(|column| *column == name).unwrap();
    let own = &question.tables[side as usize];
    let mut found = vec![];
    for row in rows {
        let cells: Vec<Option<&str>> = own.columns.iter().map(|name| row[at(name)].as_deref()).collect();
        let block = question.row(side, &cells).unwrap_or_else(|fault| panic!("{}: {fault}", question.text));
        if let Some(block) = block {
            assert_eq!(block.checked_shr(question.bits(side)).unwrap_or(0), 0);
            found.push((own.key.iter().map(|key| row[at(key)].clone().unwrap()).collect(), block));
        }
    }
    found
}

/// The rows of the question's answer as cells, sorted.
fn own_answer(question: &Question, tables: &[Vec<Vec<Option<String>>>; 2]) -> Vec<String> {
    let [ours, theirs] = Side::BOTH.map(|side| blocks(question, side, &tables[side as usize]));
    let mut joined = vec![];
    for (key, a) in &ours {
        joined.extend(theirs.iter().filter(|(other, _)| key == other).map(|(_, b)| [*a, *b]));
    }
    let mut found = vec![];
    for (group, values) in question.answer(&joined, &mut || unreachable!()) {
        for (measure, value) in question.opened().iter().zip(&values) {
            let measure: &Measure = &question.measures[*measure];
            if let Some(value) = value {
                let (least, most) = measure.range(&question.fields, joined.len() as u64).unwrap();
                assert!((least..=most).contains(value), "{}: {value} of {measure:?}", question.text);
            }
        }
        let cells = question.render(group, &values).into_iter().map(|cell| match cell {
            Cell::Null => "NULL".to_owned(),
            Cell::Truth(value) => value.to_string(),
            Cell::Integer(value) => value.to_string(),
            Cell::Text(text) => text,
        });
        found.push(cells.collect::<Vec<_>>().join("|"));
    }
    found.sort_unstable();
    found
}

/// What must hold of every question that was read.
fn check(question: &Question) {
    let again = parse(&question.text).unwrap_or_else(|fault| panic!("{}: {fault}", question.text));
    assert_eq!(again.text, question.text);
    assert_eq!((&again.fields, &again.measures), (&question.fields, &question.measures), "{}", question.text);
    assert_eq!((&again.filter, &again.having), (&question.filter, &question.having), "{}", question.text);
    assert_eq!((&again.outputs, &again.tables), (&question.outputs, &question.tables), "{}", question.text);
    for side in Side::BOTH {
        let mut end = 1;
        for (at, field) in question.fields.iter().enumerate().filter(|(_, field)| field.side == side) {
            assert_eq!(question.place(at), end..end + field.bits());
            end += field.bits();
        }
        assert_eq!(question.bits(side), end);
    }
    for group in &question.groups {
        assert!(matches!(question.fields[group.field].kind, Kind::Code(_)));
    }
}

#[test]
fn generated_questions_are_answered_as_sqlite_answers_them() {
    const QUESTIONS: u64 = 2500;
    let base = Connection::open_in_memory().unwrap();
    base.execute_batch("PRAGMA case_sensitive_like = ON").unwrap();
    for name in ["ours", "theirs"] {
        base.execute(&format!("CREATE TABLE {name} ({})", columns().join(", ")), []).unwrap();
    }
    let (mut answered, mut rows, mut empty) = (0, 0, 0);
    let mut refused: Vec<String> = vec![];
    let mut tables = [vec![], vec![]];
    for seed in 0..QUESTIONS {
        let mut random = Random::new(seed);
        if seed % 10 == 0 {
            tables = [table(&mut random), table(&mut random)];
            for (name, table) in ["ours", "theirs"].into_iter().zip(&tables) {
                base.execute(&format!("DELETE FROM {name}"), []).unwrap();
                let marks = vec!["?"; columns().len()].join(", ");
                for row in table {
                    let cells = columns().into_iter().zip(row).map(|(column, cell)| stored(column, cell));
                    let cells = rusqlite::params_from_iter(cells);
                    base.execute(&format!("INSERT INTO {name} VALUES ({marks})"), cells).unwrap();
                }
            }
        }
        let asked = Writer { random: &mut random }.question();
        let question = match parse(&asked.ours) {
            Ok(question) => question,
            Err(fault) => {
                refused.push(format!("{fault}"));
                continue;
            }
        };
        check(&question);
        let (own, wanted) = (own_answer(&question, &tables), sqlite_answer(&base, &asked));
        assert_eq!(own, wanted, "seed {seed}\n  {}\n  {}\n  {}", asked.ours, question.text, asked.sqlite);
        (answered, rows) = (answered + 1, rows + own.len());
        empty += usize::from(own.is_empty());
    }
    // Too little would be tested if many were refused, or had no result.
    assert!(answered * 100 > QUESTIONS * 95, "{answered} of {QUESTIONS}: {refused:#?}");
    assert!(
        rows as u64 * 10 > QUESTIONS * 9 && empty as u64 * 5 < QUESTIONS * 2,
        "{rows} rows, {empty} empty"
    );
}
