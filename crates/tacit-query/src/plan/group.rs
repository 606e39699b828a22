//! What rows are grouped by, and the values that it may have.

use super::Planner;
use crate::fault::{Result, fail};
use crate::part::{Codes, Part};
use crate::question::{Code, Field, Group, Kind, MOST_GROUPS, Purpose};
use crate::range::{Span, span};
use crate::side::Side;
use crate::tree::{Base, Expr, Operator};
use crate::types::{check, scale};
use crate::value::{self, Decimal};

/// The groups of a text, each once.
pub(super) fn distinct(groups: &[Expr]) -> Vec<&Expr> {
    let mut found: Vec<&Expr> = vec![];
    for group in groups {
        if !found.contains(&group) {
            found.push(group);
        }
    }
    found
}

impl Planner {
    /// Plans what rows are grouped by. Returns which of the filter's conditions say what a group may be.
    pub(super) fn groups(
        &mut self,
        groups: &[Expr],
        outputs: &[(Expr, Option<String>)],
        conditions: &[Expr],
    ) -> Result<Vec<usize>> {
        let mut domains = vec![];
        for group in distinct(groups) {
            let base = check(&self.names, group)?;
            if group.has_aggregate() {
                return fail(format!("GROUP BY has the aggregate {}; leave it out there", self.text(group)));
            }
            let side = match group.sides() {
                [true, false] => Side::Ours,
                [false, true] => Side::Theirs,
                [false, false] => {
                    return fail(format!("GROUP BY has the constant {}; leave it out", self.text(group)));
                }
                [true, true] => {
                    return fail(format!(
                        "{} is of both sides' columns; group by an expression of each side",
                        self.text(group)
                    ));
                }
            };
            let listed = conditions
                .iter()
                .enumerate()
                .filter_map(|(at, condition)| Some((at, listed(condition, group)?)))
                .min_by_key(|(_, values)| values.len());
            let values = match listed {
                Some((at, values)) => {
                    domains.push(at);
                    values
                }
                None => match self.values(group, base) {
                    Some(values) => values,
                    None => return self.no_values(group, base),
                },
            };
            if values.len() > MOST_GROUPS {
                return fail(format!(
                    "{} may have more than {MOST_GROUPS} values, and a question has at most so many groups; list \
                     fewer",
                    self.text(group)
                ));
            }
            self.used(group, Purpose::Group);
            let name = outputs.iter().find(|(expr, _)| expr == group).and_then(|(_, name)| name.clone());
            let name = name.unwrap_or_else(|| self.default_name(group));
            let codes = codes(&values);
            self.groups.push(Group { name, field: self.fields.len() });
            self.fields.push(Field { side, kind: Kind::Code(codes) });
            self.parts.push(Part::Code(group.clone(), Codes::new(&values)));
        }
        Ok(domains)
    }

    fn no_values<T>(&self, group: &Expr, base: Option<Base>) -> Result<T> {
        let example = match base {
            Some(Base::Number) => "BETWEEN 0 AND 9",
            Some(Base::Date) => "IN (DATE '2026-11-27', DATE '2026-11-28')",
            _ => "IN ('a', 'b')",
        };
        fail(format!(
            "GROUP BY {} has no list of values; write WHERE {} {example}: the values that the result may show are a \
             part of the question",
            self.text(group),
            group.text(&self.names)
        ))
    }

    /// The values that an expression may have by itself.
    fn values(&self, group: &Expr, base: Option<Base>) -> Option<Vec<Expr>> {
        if base == Some(Base::Truth) {
            let mut values = vec![Expr::Truth(false), Expr::Truth(true)];
            if !matches!(group, Expr::IsNull(_) | Expr::Is(..)) {
                values.push(Expr::Null);
            }
            return Some(values);
        }
        if let Expr::Case(cases, last) = group {
            let results = cases.iter().map(|(_, result)| result).chain([&**last]);
            if results.clone().all(Expr::is_literal) {
                return Some(once(results.cloned()));
            }
        }
        match span(&self.names, group) {
            Ok(Span::Within(least, most)) if scale(&self.names, group) == 0 => {
                let mut values = from_to(base == Some(Base::Date), least, most)?;
                values.push(Expr::Null);
                Some(values)
            }
            _ => None,
        }
    }
}

/// The values between two, one more than may be at most.
fn from_to(is_date: bool, least: i128, most: i128) -> Option<Vec<Expr>> {
    let last = least.checked_add(MOST_GROUPS as i128)?.min(most);
    let value = |units| if is_date { Expr::Date(units) } else { Expr::Number(Decimal::whole(units)) };
    Some((least..=last).map(value).collect())
}

/// Values in their order, each once: two numbers of different digits are one.
fn once(values: impl Iterator<Item = Expr>) -> Vec<Expr> {
    let mut found: Vec<Expr> = vec![];
    for value in values {
        let is_same = |other: &Expr| match (other, &value) {
            (Expr::Number(a), Expr::Number(b)) => a.shortest() == b.shortest(),
            (a, b) => a == b,
        };
        if !found.iter().any(is_same) {
            found.push(value);
        }
    }
    found
}

/// The values that a condition leaves an expression.
fn listed(condition: &Expr, group: &Expr) -> Option<Vec<Expr>> {
    match condition {
        Expr::In(x, list) if **x == *group && list.iter().all(Expr::is_literal) => {
            Some(once(list.iter().filter(|value| **value != Expr::Null).cloned()))
        }
        Expr::Compare(Operator::Equal, x, y) => {
            let value = match (&**x == group, &**y == group) {
                (true, _) => y,
                (_, true) => x,
                _ => return None,
            };
            (value.is_literal() && **value != Expr::Null).then(|| vec![(**value).clone()])
        }
        Expr::Between(x, least, most) if **x == *group => match (&**least, &**most) {
            (Expr::Number(a), Expr::Number(b)) => from_to(false, a.at(0)?, b.at(0)?),
            (Expr::Date(a), Expr::Date(b)) => from_to(true, *a, *b),
            _ => None,
        },
        _ => None,
    }
    .filter(|values| !values.is_empty())
}

/// Values as results show them: decimals all have as many digits.
fn codes(values: &[Expr]) -> Vec<Code> {
    let scale = values.iter().map(|value| match value {
        Expr::Number(number) => number.scale,
        _ => 0,
    });
    let scale = scale.max().unwrap_or(0);
    let code = |value: &Expr| match value {
        Expr::Truth(value) => Code::Truth(*value),
        Expr::Number(number) => match (scale, number.at(scale)) {
            (0, Some(units)) => Code::Integer(units),
            (_, Some(units)) => Code::Text(Decimal { units, scale }.to_string()),
            _ => Code::Text(number.to_string()),
        },
        Expr::Text(text) => Code::Text(text.clone()),
        Expr::Date(days) => Code::Text(value::date(*days)),
        _ => Code::Null,
    };
    values.iter().map(code).collect()
}
