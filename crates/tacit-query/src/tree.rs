//! A question's expressions, with their columns resolved, and their canonical text.

use crate::side::Side;
use crate::value::{self, Decimal};
use std::fmt;

/// What a value is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Base {
    Number,
    Text,
    Date,
    Truth,
}

impl Base {
    /// Its name in faults.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Base::Number => "a number",
            Base::Text => "text",
            Base::Date => "a date",
            Base::Truth => "a truth value",
        }
    }
}

/// The type that a text gives a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Type {
    /// With digits after the point, at most.
    Decimal(u8),
    Text,
    Date,
    Truth,
}

impl Type {
    pub(crate) const fn base(self) -> Base {
        match self {
            Type::Decimal(_) => Base::Number,
            Type::Text => Base::Text,
            Type::Date => Base::Date,
            Type::Truth => Base::Truth,
        }
    }

    /// Reads what a column's name has after its colon.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "integer" => Type::Decimal(0),
            "text" => Type::Text,
            "date" => Type::Date,
            "boolean" => Type::Truth,
            _ => {
                let digits = name.strip_prefix("decimal")?;
                let scale = digits.parse::<u8>().ok().filter(|scale| *scale <= value::MOST_DIGITS)?;
                (scale.to_string() == digits).then_some(Type::Decimal(scale))?
            }
        })
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Type::Decimal(0) => f.write_str("integer"),
            Type::Decimal(scale) => write!(f, "decimal{scale}"),
            Type::Text => f.write_str("text"),
            Type::Date => f.write_str("date"),
            Type::Truth => f.write_str("boolean"),
        }
    }
}

/// A column of a side's table that rows are computed of.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    /// Without its type.
    pub(crate) name: String,
    /// The type that the text gives it.
    pub(crate) declared: Option<Type>,
    /// What it is, by its type or by what it is compared and computed with.
    pub(crate) base: Option<Base>,
    /// Whether it is made by the subquery that stands for the side's table.
    pub(crate) is_made: bool,
}

/// A subquery in place of a side's table: its rows with one key, added up by that side itself.
#[derive(Clone, Debug)]
pub(crate) struct Sums {
    /// The table's own columns.
    pub(crate) names: Names,
    /// The columns of the key, without types.
    pub(crate) key: Vec<String>,
    /// What rows must pass to be added up.
    pub(crate) filters: Vec<Expr>,
    /// The columns that it makes: each an aggregate, its name and its type.
    pub(crate) made: Vec<(String, Expr, Type)>,
}

/// The names of both sides' tables and columns.
#[derive(Clone, Default, Debug)]
pub(crate) struct Names {
    pub(crate) alias: [String; 2],
    pub(crate) columns: [Vec<Column>; 2],
    /// Of a side whose table is a subquery; [`columns`](Self::columns) are those of it that are used.
    pub(crate) sums: [Option<Box<Sums>>; 2],
}

impl Sums {
    /// The columns of the table that a column is made of: of a number of rows, those of the key.
    pub(crate) fn columns_of(&self, made: &str) -> Vec<String> {
        let mut found = vec![];
        for (_, expr, _) in self.made.iter().filter(|(name, ..)| name == made) {
            expr.columns(&mut |side, at| found.push(self.names.column(side, at).name.clone()));
        }
        if found.is_empty() { self.key.clone() } else { found }
    }

    /// The subquery in its canonical form.
    pub(crate) fn text(&self, side: Side) -> String {
        let names = &self.names;
        let alias = &names.alias[side as usize];
        let key: Vec<String> =
            self.key.iter().map(|key| format!("{}.{}", identifier(alias), identifier(key))).collect();
        let made =
            self.made.iter().map(|(name, expr, _)| format!("{} AS {}", expr.text(names), identifier(name)));
        let selected: Vec<String> = key.iter().cloned().chain(made).collect();
        let table = match alias == side.name() {
            true => alias.clone(),
            false => format!("{} {}", side.name(), identifier(alias)),
        };
        let filter = match self.filters.len() {
            0 => String::new(),
            1 => format!(" WHERE {}", self.filters[0].text(names)),
            _ => format!(" WHERE {}", Expr::All(self.filters.clone()).text(names)),
        };
        format!("SELECT {} FROM {table}{filter} GROUP BY {}", selected.join(", "), key.join(", "))
    }
}

impl Names {
    /// The columns of a side's own table whose cells are read.
    pub(crate) fn read(&self, side: Side) -> &[Column] {
        match &self.sums[side as usize] {
            Some(sums) => sums.names.read(side),
            None => &self.columns[side as usize],
        }
    }

    pub(crate) fn column(&self, side: Side, at: usize) -> &Column {
        &self.columns[side as usize][at]
    }

    /// A column's name as a text has it.
    pub(crate) fn written(&self, side: Side, at: usize) -> String {
        let column = self.column(side, at);
        let name = match column.declared.filter(|_| !column.is_made) {
            Some(declared) => format!("{}:{declared}", column.name),
            None => column.name.clone(),
        };
        format!("{}.{}", identifier(&self.alias[side as usize]), identifier(&name))
    }
}

/// A name as a text has it: with quotes if it needs some.
pub(crate) fn identifier(name: &str) -> String {
    let plain = name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && !sqlparser::keywords::ALL_KEYWORDS.contains(&name.to_ascii_uppercase().as_str());
    if plain { name.to_owned() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}

/// A string as a text has it.
fn string(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// How two values are compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Operator {
    Equal,
    Unequal,
    Less,
    AtMost,
    Greater,
    AtLeast,
}

impl Operator {
    const fn sign(self) -> &'static str {
        match self {
            Operator::Equal => "=",
            Operator::Unequal => "<>",
            Operator::Less => "<",
            Operator::AtMost => "<=",
            Operator::Greater => ">",
            Operator::AtLeast => ">=",
        }
    }

    /// The comparison with its sides exchanged.
    pub(crate) const fn swapped(self) -> Self {
        match self {
            Operator::Less => Operator::Greater,
            Operator::AtMost => Operator::AtLeast,
            Operator::Greater => Operator::Less,
            Operator::AtLeast => Operator::AtMost,
            same => same,
        }
    }
}

/// A function of one value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Function {
    Lower,
    Upper,
    Trim,
    Length,
    Year,
    Month,
    Day,
}

/// What rows of a group are made into one value by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Aggregate {
    Count,
    Sum,
    Avg,
    Min,
    Max,
}

/// An expression.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Expr {
    Column(Side, usize),
    Null,
    Truth(bool),
    Number(Decimal),
    Text(String),
    Date(i128),
    Negative(Box<Expr>),
    /// Terms, and whether each is subtracted; the first never is.
    Sum(Vec<(bool, Expr)>),
    Product(Vec<Expr>),
    Compare(Operator, Box<Expr>, Box<Expr>),
    All(Vec<Expr>),
    Any(Vec<Expr>),
    Not(Box<Expr>),
    Between(Box<Expr>, Box<Expr>, Box<Expr>),
    In(Box<Expr>, Vec<Expr>),
    IsNull(Box<Expr>),
    /// Whether it is this truth value, never unknown.
    Is(Box<Expr>, bool),
    /// With the pattern, and the character that makes the next one plain.
    Like(Box<Expr>, String, Option<char>),
    Case(Vec<(Expr, Expr)>, Box<Expr>),
    Coalesce(Vec<Expr>),
    Clip(Box<Expr>, Box<Expr>, Box<Expr>),
    Call(Function, Box<Expr>),
    /// `COUNT(*)`
    Rows,
    /// `COUNT(DISTINCT key)`, with the columns of the key of a side.
    Keys(Side, Vec<String>),
    Aggregate(Aggregate, Box<Expr>),
}

/// How tightly an expression binds; an operand that binds less gets parentheses.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Binding {
    Or,
    And,
    Not,
    Compare,
    Add,
    Multiply,
    Sign,
    Atom,
}

impl Expr {
    fn binds(&self) -> Binding {
        match self {
            Expr::Any(_) => Binding::Or,
            Expr::All(_) => Binding::And,
            Expr::Not(_) => Binding::Not,
            Expr::Compare(..)
            | Expr::Between(..)
            | Expr::In(..)
            | Expr::IsNull(_)
            | Expr::Is(..)
            | Expr::Like(..) => Binding::Compare,
            Expr::Sum(_) => Binding::Add,
            Expr::Product(_) => Binding::Multiply,
            Expr::Negative(_) => Binding::Sign,
            Expr::Number(number) if number.units < 0 => Binding::Sign,
            _ => Binding::Atom,
        }
    }

    /// What it is made of, one level down.
    pub(crate) fn parts(&self) -> Vec<&Expr> {
        match self {
            Expr::Negative(x) | Expr::Not(x) | Expr::IsNull(x) | Expr::Is(x, _) => vec![x],
            Expr::Like(x, ..) | Expr::Call(_, x) | Expr::Aggregate(_, x) => vec![x],
            Expr::Sum(terms) => terms.iter().map(|(_, term)| term).collect(),
            Expr::Product(all) | Expr::All(all) | Expr::Any(all) | Expr::Coalesce(all) => {
                all.iter().collect()
            }
            Expr::Compare(_, x, y) => vec![x, y],
            Expr::Between(x, y, z) | Expr::Clip(x, y, z) => vec![x, y, z],
            Expr::In(x, list) => std::iter::once(&**x).chain(list).collect(),
            Expr::Case(cases, last) => {
                let cases = cases.iter().flat_map(|(condition, result)| [condition, result]);
                cases.chain([&**last]).collect()
            }
            _ => vec![],
        }
    }

    /// How many expressions it is.
    pub(crate) fn size(&self) -> usize {
        1 + self.parts().into_iter().map(Expr::size).sum::<usize>()
    }

    /// Calls `visit` with every column in it.
    pub(crate) fn columns(&self, visit: &mut impl FnMut(Side, usize)) {
        if let Expr::Column(side, at) = self {
            visit(*side, *at);
        }
        for part in self.parts() {
            part.columns(visit);
        }
    }

    /// Which sides have a column in it, in the order of [`Side::BOTH`].
    pub(crate) fn sides(&self) -> [bool; 2] {
        let mut sides = [false; 2];
        self.columns(&mut |side, _| sides[side as usize] = true);
        sides
    }

    /// Whether an aggregate is in it.
    pub(crate) fn has_aggregate(&self) -> bool {
        matches!(self, Expr::Rows | Expr::Keys(..) | Expr::Aggregate(..))
            || self.parts().into_iter().any(Expr::has_aggregate)
    }

    /// Whether a mean is in it.
    pub(crate) fn has_mean(&self) -> bool {
        matches!(self, Expr::Aggregate(Aggregate::Avg, _)) || self.parts().into_iter().any(Expr::has_mean)
    }

    /// Whether it is a value that the text writes.
    pub(crate) const fn is_literal(&self) -> bool {
        matches!(self, Expr::Null | Expr::Truth(_) | Expr::Number(_) | Expr::Text(_) | Expr::Date(_))
    }

    /// Its canonical text.
    pub(crate) fn text(&self, names: &Names) -> String {
        let mut text = String::new();
        self.write(names, &mut text);
        text
    }

    fn operand(&self, names: &Names, least: Binding, to: &mut String) {
        let is_enclosed = self.binds() < least;
        if is_enclosed {
            to.push('(');
        }
        self.write(names, to);
        if is_enclosed {
            to.push(')');
        }
    }

    fn write(&self, names: &Names, to: &mut String) {
        match self {
            Expr::Column(side, at) => to.push_str(&names.written(*side, *at)),
            Expr::Null => to.push_str("NULL"),
            Expr::Truth(value) => to.push_str(if *value { "TRUE" } else { "FALSE" }),
            Expr::Number(number) => to.push_str(&number.to_string()),
            Expr::Text(text) => to.push_str(&string(text)),
            Expr::Date(days) => to.push_str(&format!("DATE '{}'", value::date(*days))),
            Expr::Negative(x) => {
                to.push('-');
                x.operand(names, Binding::Atom, to);
            }
            Expr::Sum(terms) => {
                for (at, (is_subtracted, term)) in terms.iter().enumerate() {
                    let sign = if *is_subtracted { " - " } else { " + " };
                    to.push_str(if at == 0 { "" } else { sign });
                    term.operand(names, Binding::Multiply, to);
                }
            }
            Expr::Product(factors) => joined(names, factors, " * ", Binding::Sign, to),
            Expr::Compare(operator, x, y) => {
                x.operand(names, Binding::Add, to);
                to.push_str(&format!(" {} ", operator.sign()));
                y.operand(names, Binding::Add, to);
            }
            Expr::All(all) => joined(names, all, " AND ", Binding::Not, to),
            Expr::Any(any) => joined(names, any, " OR ", Binding::And, to),
            Expr::Not(x) => {
                to.push_str("NOT ");
                x.operand(names, Binding::Compare, to);
            }
            Expr::Between(x, least, most) => {
                x.operand(names, Binding::Add, to);
                to.push_str(" BETWEEN ");
                least.operand(names, Binding::Add, to);
                to.push_str(" AND ");
                most.operand(names, Binding::Add, to);
            }
            Expr::In(x, list) => {
                x.operand(names, Binding::Add, to);
                to.push_str(" IN (");
                joined(names, list, ", ", Binding::Or, to);
                to.push(')');
            }
            Expr::IsNull(x) => {
                x.operand(names, Binding::Add, to);
                to.push_str(" IS NULL");
            }
            Expr::Is(x, value) => {
                x.operand(names, Binding::Add, to);
                to.push_str(if *value { " IS TRUE" } else { " IS FALSE" });
            }
            Expr::Like(x, pattern, escape) => {
                x.operand(names, Binding::Add, to);
                to.push_str(&format!(" LIKE {}", string(pattern)));
                if let Some(escape) = escape {
                    to.push_str(&format!(" ESCAPE {}", string(&escape.to_string())));
                }
            }
            Expr::Case(cases, last) => {
                to.push_str("CASE");
                for (condition, result) in cases {
                    to.push_str(" WHEN ");
                    condition.write(names, to);
                    to.push_str(" THEN ");
                    result.write(names, to);
                }
                if **last != Expr::Null {
                    to.push_str(" ELSE ");
                    last.write(names, to);
                }
                to.push_str(" END");
            }
            Expr::Coalesce(all) => {
                to.push_str("COALESCE(");
                joined(names, all, ", ", Binding::Or, to);
                to.push(')');
            }
            Expr::Clip(x, least, most) => {
                to.push_str("CLIP(");
                for (at, part) in [x, least, most].into_iter().enumerate() {
                    to.push_str(if at == 0 { "" } else { ", " });
                    part.write(names, to);
                }
                to.push(')');
            }
            Expr::Call(function, x) => write_call(*function, x, names, to),
            Expr::Rows => to.push_str("COUNT(*)"),
            Expr::Keys(side, key) => {
                let alias = identifier(&names.alias[*side as usize]);
                let key: Vec<String> = key.iter().map(|k| format!("{alias}.{}", identifier(k))).collect();
                to.push_str(&format!("COUNT(DISTINCT {})", key.join(", ")));
            }
            Expr::Aggregate(aggregate, x) => {
                to.push_str(match aggregate {
                    Aggregate::Count => "COUNT(",
                    Aggregate::Sum => "SUM(",
                    Aggregate::Avg => "AVG(",
                    Aggregate::Min => "MIN(",
                    Aggregate::Max => "MAX(",
                });
                x.write(names, to);
                to.push(')');
            }
        }
    }
}

fn joined(names: &Names, all: &[Expr], between: &str, least: Binding, to: &mut String) {
    for (at, part) in all.iter().enumerate() {
        to.push_str(if at == 0 { "" } else { between });
        part.operand(names, least, to);
    }
}

fn write_call(function: Function, x: &Expr, names: &Names, to: &mut String) {
    to.push_str(match function {
        Function::Lower => "LOWER(",
        Function::Upper => "UPPER(",
        Function::Trim => "TRIM(",
        Function::Length => "LENGTH(",
        Function::Year => "EXTRACT(YEAR FROM ",
        Function::Month => "EXTRACT(MONTH FROM ",
        Function::Day => "EXTRACT(DAY FROM ",
    });
    x.write(names, to);
    to.push(')');
}
