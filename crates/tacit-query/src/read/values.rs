//! Literals, and functions of values.

use crate::fault::{Result, fail, quoted};
use crate::tree::{Aggregate, Expr, Function};
use crate::value::{self, Decimal, MOST_DIGITS};
use sqlparser::ast;

pub(super) fn value(value: &ast::Value) -> Result<Expr> {
    Ok(match value {
        ast::Value::Number(text, false) => match Decimal::parse(text) {
            Some(number) => Expr::Number(number),
            None => {
                return fail(format!(
                    "{} is not an exact decimal of at most 36 digits, {MOST_DIGITS} of them after the point; \
                     write it without an exponent",
                    quoted(text)
                ));
            }
        },
        ast::Value::SingleQuotedString(text) => Expr::Text(text.clone()),
        ast::Value::Boolean(value) => Expr::Truth(*value),
        ast::Value::Null => Expr::Null,
        other => {
            return fail(format!(
                "{} is not a value; write a number, 'text' or DATE '2026-11-28'",
                quoted(other)
            ));
        }
    })
}

pub(super) fn typed(literal: &ast::TypedString) -> Result<Expr> {
    let ast::TypedString { data_type: ast::DataType::Date, value, uses_odbc_syntax: false } = literal else {
        return fail(format!("{} is not a date; write DATE '2026-11-28'", quoted(literal)));
    };
    match &value.value {
        ast::Value::SingleQuotedString(text) => match value::days(text) {
            Some(days) => Ok(Expr::Date(days)),
            None => fail(format!("{} is not a day that exists; write DATE '2026-11-28'", quoted(literal))),
        },
        _ => fail(format!("{} is not a date; write DATE '2026-11-28'", quoted(literal))),
    }
}

/// A function that the text calls, of its values.
pub(super) fn call(function: &ast::Function, called: &str, args: Vec<Expr>) -> Result<Expr> {
    let one = match called {
        "COUNT" => Some(Ok(Aggregate::Count)),
        "SUM" => Some(Ok(Aggregate::Sum)),
        "AVG" => Some(Ok(Aggregate::Avg)),
        "MIN" => Some(Ok(Aggregate::Min)),
        "MAX" => Some(Ok(Aggregate::Max)),
        "LOWER" => Some(Err(Function::Lower)),
        "UPPER" => Some(Err(Function::Upper)),
        "TRIM" => Some(Err(Function::Trim)),
        "LENGTH" | "CHAR_LENGTH" => Some(Err(Function::Length)),
        _ => None,
    };
    let count = args.len();
    match (one, called, count) {
        (Some(function), _, 1) => {
            let x = Box::new(args.into_iter().next().unwrap_or(Expr::Null));
            Ok(match function {
                Ok(aggregate) => Expr::Aggregate(aggregate, x),
                Err(function) => Expr::Call(function, x),
            })
        }
        (Some(_), _, _) => fail(format!("{} takes one value; write one", quoted(function))),
        (None, "COALESCE", 1..) => Ok(Expr::Coalesce(args)),
        (None, "CLIP", 3) => clip(function, args),
        (None, "CLIP", _) => {
            fail(format!("{} takes three values; write CLIP(x, least, most)", quoted(function)))
        }
        _ => fail(format!(
            "{called} is not a function of a question; there are COUNT, SUM, AVG, MIN, MAX, CLIP, COALESCE, LOWER, \
             UPPER, TRIM, LENGTH and EXTRACT",
        )),
    }
}

fn clip(function: &ast::Function, args: Vec<Expr>) -> Result<Expr> {
    let [x, least, most] = <[Expr; 3]>::try_from(args).unwrap_or([Expr::Null, Expr::Null, Expr::Null]);
    let is_ordered = match (&least, &most) {
        (Expr::Number(a), Expr::Number(b)) => a.compare(*b).is_some_and(std::cmp::Ordering::is_le),
        (Expr::Date(a), Expr::Date(b)) => a <= b,
        _ => {
            return fail(format!(
                "the bounds of {} are not two numbers or two dates; write them, as in CLIP(a.x, 0, 1000)",
                quoted(function)
            ));
        }
    };
    match is_ordered {
        true => Ok(Expr::Clip(Box::new(x), Box::new(least), Box::new(most))),
        false => fail(format!("the bounds of {} are in the wrong order; exchange them", quoted(function))),
    }
}
