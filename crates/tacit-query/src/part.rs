//! What fields are made of.

use crate::tree::{Expr, Names};
use crate::value::{Decimal, Value};
use std::collections::HashMap;

/// What the sides compute of their own rows.
#[derive(Clone, Debug)]
pub(crate) struct Local {
    pub(crate) names: Names,
    /// The conditions of each side's own filter.
    pub(crate) filters: [Vec<Expr>; 2],
    /// What each field is made of.
    pub(crate) parts: Vec<Part>,
}

/// What a field is made of.
#[derive(Clone, Debug)]
pub(crate) enum Part {
    /// Of numbers or dates, in units of 10^-scale.
    Number(Expr, u8),
    Truth(Expr),
    Code(Expr, Codes),
}

impl Part {
    pub(crate) const fn expr(&self) -> &Expr {
        match self {
            Part::Number(expr, _) | Part::Truth(expr) | Part::Code(expr, _) => expr,
        }
    }
}

/// Which of a list of values one is.
#[derive(Clone, Default, Debug)]
pub(crate) struct Codes {
    null: Option<usize>,
    truths: [Option<usize>; 2],
    numbers: HashMap<Decimal, usize>,
    dates: HashMap<i128, usize>,
    texts: HashMap<String, usize>,
}

impl Codes {
    /// Of a list of literals.
    pub(crate) fn new(values: &[Expr]) -> Self {
        let mut codes = Codes::default();
        for (at, value) in values.iter().enumerate() {
            match value {
                Expr::Truth(value) => codes.truths[usize::from(*value)] = Some(at),
                Expr::Number(number) => drop(codes.numbers.insert(number.shortest(), at)),
                Expr::Date(days) => drop(codes.dates.insert(*days, at)),
                Expr::Text(text) => drop(codes.texts.insert(text.clone(), at)),
                _ => codes.null = Some(at),
            }
        }
        codes
    }

    /// The index of a value, if it is one of them.
    pub(crate) fn of(&self, value: &Value<'_>) -> Option<usize> {
        match value {
            Value::Null => self.null,
            Value::Truth(value) => self.truths[usize::from(*value)],
            Value::Number(number) => self.numbers.get(&number.shortest()).copied(),
            Value::Date(days) => self.dates.get(days).copied(),
            Value::Text(text) => self.texts.get(&**text).copied(),
        }
    }
}
