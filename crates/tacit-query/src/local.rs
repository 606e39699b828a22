//! What one side computes of its own rows in the clear: SQL's values and its logic of three truth values.

use crate::fault::{Result, fail};
use crate::side::Side;
use crate::tree::{Base, Expr, Function, Names, Operator, Type};
use crate::value::{self, Decimal, MOST_DIGITS, Value};
use std::borrow::Cow;
use std::cmp::Ordering;

/// A number, or a date, that does not fit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Overflow;

/// Reads a cell as what its column is. Faults name the column and never show the cell.
pub(crate) fn cell<'a>(names: &Names, side: Side, at: usize, cell: Option<&'a str>) -> Result<Value<'a>> {
    let column = names.column(side, at);
    let Some(text) = cell.filter(|text| !text.is_empty()) else { return Ok(Value::Null) };
    let base = column.base.unwrap_or(Base::Text);
    let trimmed = text.trim();
    if base != Base::Text && trimmed.is_empty() {
        return Ok(Value::Null);
    }
    let name = &column.name;
    match base {
        Base::Text => Ok(Value::Text(Cow::Borrowed(text))),
        Base::Date => match value::days(trimmed) {
            Some(days) => Ok(Value::Date(days)),
            None => fail(format!(
                "a cell of the column `{name}` is not a date such as 2026-11-28; correct it, or leave it empty"
            )),
        },
        Base::Truth => match trimmed.to_ascii_lowercase().as_str() {
            "true" | "t" | "yes" | "y" | "1" => Ok(Value::Truth(true)),
            "false" | "f" | "no" | "n" | "0" => Ok(Value::Truth(false)),
            _ => fail(format!(
                "a cell of the column `{name}` is not true or false; correct it, or leave it empty"
            )),
        },
        Base::Number => match Decimal::parse(trimmed) {
            Some(number) => match column.declared {
                Some(Type::Decimal(scale)) if number.at(scale).is_none() => fail(format!(
                    "a cell of the column `{name}` has more than {scale} digits after the point; round it, or name a \
                     type with more digits in the question, such as `{name}:decimal{}`",
                    (scale + 2).min(MOST_DIGITS)
                )),
                _ => Ok(Value::Number(number)),
            },
            None => fail(not_a_number(name, trimmed)),
        },
    }
}

/// Why a cell is not a number.
fn not_a_number(name: &str, text: &str) -> String {
    let has_one_comma = text.matches(',').count() == 1 && !text.contains('.');
    let with_point = text.replace(',', ".");
    let what = if has_one_comma && Decimal::parse(&with_point).is_some() {
        return format!("a cell of the column `{name}` has a comma before its fraction; write a point there");
    } else if text.contains(['e', 'E']) && text.parse::<f64>().is_ok_and(f64::is_finite) {
        "has an exponent; write its digits"
    } else if text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.".contains(&byte)) {
        return format!(
            "a cell of the column `{name}` is not a number of at most 36 digits, {MOST_DIGITS} of them after the \
             point; correct it, or leave it empty"
        );
    } else {
        "is not a number; correct it, or leave it empty"
    };
    format!("a cell of the column `{name}` {what}")
}

/// The value of an expression of one side's columns.
pub(crate) fn evaluate<'a>(expr: &'a Expr, row: &'a [Value<'a>]) -> std::result::Result<Value<'a>, Overflow> {
    Ok(match expr {
        Expr::Column(_, at) => row[*at].clone(),
        Expr::Null => Value::Null,
        Expr::Truth(value) => Value::Truth(*value),
        Expr::Number(number) => Value::Number(*number),
        Expr::Text(text) => Value::Text(Cow::Borrowed(text)),
        Expr::Date(days) => Value::Date(*days),
        Expr::Negative(x) => match evaluate(x, row)? {
            Value::Number(x) => Value::Number(x.negative().ok_or(Overflow)?),
            _ => Value::Null,
        },
        Expr::Sum(terms) => sum(terms, row)?,
        Expr::Product(factors) => {
            let mut product = Some(Decimal::whole(1));
            for factor in factors {
                product = match (product, evaluate(factor, row)?) {
                    (Some(product), Value::Number(x)) => Some(product.multiply(x).ok_or(Overflow)?),
                    _ => None,
                };
            }
            product.map_or(Value::Null, Value::Number)
        }
        Expr::Clip(x, least, most) => {
            let (x, least, most) = (evaluate(x, row)?, evaluate(least, row)?, evaluate(most, row)?);
            if x.is_null() {
                x
            } else if order(&x, &least)?.is_lt() {
                least
            } else if order(&x, &most)?.is_gt() {
                most
            } else {
                x
            }
        }
        Expr::Case(cases, last) => {
            for (condition, result) in cases {
                if truth(condition, row)? == Some(true) {
                    return evaluate(result, row);
                }
            }
            evaluate(last, row)?
        }
        Expr::Coalesce(all) => {
            for x in all {
                let x = evaluate(x, row)?;
                if !x.is_null() {
                    return Ok(x);
                }
            }
            Value::Null
        }
        Expr::Call(function, x) => call(*function, evaluate(x, row)?),
        // No side has them: they are of groups.
        Expr::Rows | Expr::Keys(..) | Expr::Aggregate(..) => Value::Null,
        condition => truth(condition, row)?.map_or(Value::Null, Value::Truth),
    })
}

/// The order of two values that are there.
fn order(a: &Value<'_>, b: &Value<'_>) -> std::result::Result<Ordering, Overflow> {
    a.compare(b).ok_or(Overflow)
}

/// Whether a condition is true; `None` if that is unknown.
pub(crate) fn truth<'a>(expr: &'a Expr, row: &'a [Value<'a>]) -> std::result::Result<Option<bool>, Overflow> {
    Ok(match expr {
        Expr::Compare(operator, x, y) => compare(*operator, &evaluate(x, row)?, &evaluate(y, row)?)?,
        Expr::Between(x, least, most) => {
            let x = evaluate(x, row)?;
            let least = compare(Operator::AtLeast, &x, &evaluate(least, row)?)?;
            let most = compare(Operator::AtMost, &x, &evaluate(most, row)?)?;
            both(least, most)
        }
        Expr::In(x, list) => {
            let x = evaluate(x, row)?;
            let mut found = Some(false);
            for item in list {
                found = either(found, compare(Operator::Equal, &x, &evaluate(item, row)?)?);
                if found == Some(true) {
                    break;
                }
            }
            found
        }
        Expr::All(all) => {
            let mut found = Some(true);
            for x in all {
                found = both(found, truth(x, row)?);
            }
            found
        }
        Expr::Any(any) => {
            let mut found = Some(false);
            for x in any {
                found = either(found, truth(x, row)?);
            }
            found
        }
        Expr::Not(x) => truth(x, row)?.map(|x| !x),
        Expr::IsNull(x) => Some(evaluate(x, row)?.is_null()),
        Expr::Is(x, value) => Some(truth(x, row)? == Some(*value)),
        Expr::Like(x, pattern, escape) => match evaluate(x, row)? {
            Value::Text(text) => Some(is_like(&text, pattern, *escape)),
            _ => None,
        },
        value => match evaluate(value, row)? {
            Value::Truth(value) => Some(value),
            _ => None,
        },
    })
}

fn both(a: Option<bool>, b: Option<bool>) -> Option<bool> {
    match (a, b) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        _ => None,
    }
}

fn either(a: Option<bool>, b: Option<bool>) -> Option<bool> {
    both(a.map(|a| !a), b.map(|b| !b)).map(|both| !both)
}

fn compare(operator: Operator, a: &Value<'_>, b: &Value<'_>) -> std::result::Result<Option<bool>, Overflow> {
    if a.is_null() || b.is_null() {
        return Ok(None);
    }
    let order = order(a, b)?;
    Ok(Some(match operator {
        Operator::Equal => order.is_eq(),
        Operator::Unequal => order.is_ne(),
        Operator::Less => order.is_lt(),
        Operator::AtMost => order.is_le(),
        Operator::Greater => order.is_gt(),
        Operator::AtLeast => order.is_ge(),
    }))
}

/// Terms of numbers, and of dates as days.
fn sum<'a>(terms: &'a [(bool, Expr)], row: &'a [Value<'a>]) -> std::result::Result<Value<'a>, Overflow> {
    let (mut total, mut dates) = (Some(Decimal::whole(0)), 0);
    for (is_subtracted, term) in terms {
        let number = match evaluate(term, row)? {
            Value::Number(number) => Some(number),
            Value::Date(days) => {
                dates += if *is_subtracted { -1 } else { 1 };
                Some(Decimal::whole(days))
            }
            _ => None,
        };
        total = match (total, number) {
            (Some(total), Some(number)) => {
                let number = if *is_subtracted { number.negative().ok_or(Overflow)? } else { number };
                Some(total.add(number).ok_or(Overflow)?)
            }
            _ => None,
        };
    }
    Ok(match total {
        None => Value::Null,
        Some(total) if dates == 0 => Value::Number(total),
        Some(total) => {
            let days = total.at(0).filter(|days| EARLIEST_DAY <= *days && *days <= LATEST_DAY);
            Value::Date(days.ok_or(Overflow)?)
        }
    })
}

/// 0001-01-01
const EARLIEST_DAY: i128 = -719_162;
/// 9999-12-31
const LATEST_DAY: i128 = 2_932_896;

fn call(function: Function, x: Value<'_>) -> Value<'_> {
    match (function, x) {
        (Function::Lower, Value::Text(text)) => Value::Text(text.to_lowercase().into()),
        (Function::Upper, Value::Text(text)) => Value::Text(text.to_uppercase().into()),
        (Function::Trim, Value::Text(text)) => Value::Text(text.trim_matches(' ').to_owned().into()),
        (Function::Length, Value::Text(text)) => Value::Number(Decimal::whole(text.chars().count() as i128)),
        (Function::Year, Value::Date(days)) => Value::Number(Decimal::whole(value::civil(days).0)),
        (Function::Month, Value::Date(days)) => Value::Number(Decimal::whole(value::civil(days).1)),
        (Function::Day, Value::Date(days)) => Value::Number(Decimal::whole(value::civil(days).2)),
        _ => Value::Null,
    }
}

/// What a pattern has at a place.
#[derive(Clone, Copy)]
enum Part {
    Plain(char),
    One,
    Many,
}

/// Whether a text is like a pattern: `%` is any text, `_` any character.
fn is_like(text: &str, pattern: &str, escape: Option<char>) -> bool {
    let mut parts = vec![];
    let mut rest = pattern.chars();
    while let Some(c) = rest.next() {
        parts.push(match c {
            c if Some(c) == escape => Part::Plain(rest.next().unwrap_or(c)),
            '%' => Part::Many,
            '_' => Part::One,
            c => Part::Plain(c),
        });
    }
    let text: Vec<char> = text.chars().collect();
    // After a mismatch only the last `%` takes one character more.
    let (mut at, mut part, mut back) = (0, 0, None);
    while at < text.len() {
        match parts.get(part) {
            Some(Part::Many) => {
                back = Some((at, part));
                part += 1;
                continue;
            }
            Some(Part::Plain(c)) if *c == text[at] => {}
            Some(Part::One) => {}
            _ => match back {
                None => return false,
                Some((from, many)) => {
                    (at, part, back) = (from + 1, many + 1, Some((from + 1, many)));
                    continue;
                }
            },
        }
        (at, part) = (at + 1, part + 1);
    }
    parts[part..].iter().all(|part| matches!(part, Part::Many))
}
