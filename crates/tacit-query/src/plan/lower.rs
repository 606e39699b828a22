//! Numbers and conditions inside, made of local parts that become fields, or of measures.

use super::Planner;
use crate::fault::{Fault, Result, fail};
use crate::local;
use crate::part::Part;
use crate::question::{Comparison, Field, Kind, Measure, Number, Test};
use crate::range::{Span, TooWide, span, units};
use crate::side::Side;
use crate::tree::{Aggregate, Base, Expr, Operator};
use crate::types::{check, scale};
use crate::value::{Value, power};

/// Digits after the point of a number inside, at most: more leave its bits.
const MOST_SCALE: u8 = 30;

/// What is computed: of a row, from fields, or of a group, from measures.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Row,
    Group,
}

/// A number, and digits after the point of its unit.
type Scaled = (Number, u8);

impl Planner {
    /// A number of a row.
    pub(super) fn row_number(&mut self, expr: &Expr) -> Result<Scaled> {
        self.number(Level::Row, expr)
    }

    /// A condition of a row.
    pub(super) fn row_test(&mut self, expr: &Expr) -> Result<Test> {
        self.test(Level::Row, expr)
    }

    /// A condition of a group.
    pub(super) fn group_test(&mut self, expr: &Expr) -> Result<Test> {
        self.test(Level::Group, expr)
    }

    /// The measure of how many rows have a value.
    pub(super) fn counted(&mut self, x: &Expr) -> Result<Measure> {
        if let Some(value) = self.constant(x)? {
            return Ok(if value.is_null() { Measure::Count(Number::Null) } else { Measure::Rows });
        }
        let is_truth = check(&self.names, x)? == Some(Base::Truth);
        let number = match x.sides() {
            [true, true] if is_truth => Number::Truth(Box::new(self.test(Level::Row, x)?)),
            [true, true] => self.number(Level::Row, x)?.0,
            _ => {
                let is_number = |part: &Part| matches!(part, Part::Number(other, _) if other == x);
                match self.parts.iter().position(is_number) {
                    Some(field) => Number::Leaf(field),
                    None => {
                        let is_there = Expr::Not(Box::new(Expr::IsNull(Box::new(x.clone()))));
                        let test = self.test(Level::Row, &is_there)?;
                        Number::Case(vec![(test, Number::Constant(1))], Box::new(Number::Null))
                    }
                }
            }
        };
        Ok(Measure::Count(number))
    }

    /// The value of an expression without columns and aggregates.
    fn constant<'a>(&self, expr: &'a Expr) -> Result<Option<Value<'a>>> {
        if expr.sides() != [false; 2] || expr.has_aggregate() {
            return Ok(None);
        }
        match local::evaluate(expr, &[]) {
            Ok(value) => Ok(Some(value)),
            Err(local::Overflow) => Err(self.too_large(expr)),
        }
    }

    /// The side that computes an expression by itself, if one does.
    fn owner(level: Level, expr: &Expr) -> Option<Side> {
        match (level, expr.sides()) {
            (Level::Row, [true, false]) => Some(Side::Ours),
            (Level::Row, [false, true]) => Some(Side::Theirs),
            _ => None,
        }
    }

    /// An error where parts that are used in several places, each of them inside another such part, make too many.
    fn step(&mut self) -> Result<()> {
        self.left = self.left.saturating_sub(1);
        match self.left {
            0 => fail("the question has too many parts inside each other; write it with fewer".to_owned()),
            _ => Ok(()),
        }
    }

    fn number(&mut self, level: Level, expr: &Expr) -> Result<Scaled> {
        self.step()?;
        let own = scale(&self.names, expr);
        let base = check(&self.names, expr)?;
        if own > MOST_SCALE {
            return Err(self.too_wide(expr)(TooWide));
        }
        if let Some(value) = self.constant(expr)? {
            let value = match value {
                Value::Number(number) => Number::Constant(units(number, own).map_err(self.too_wide(expr))?),
                Value::Date(days) => Number::Constant(days),
                _ => Number::Null,
            };
            return Ok((value, own));
        }
        if base == Some(Base::Text) {
            return Err(self.text_of_both(expr));
        }
        if let Some(side) = Self::owner(level, expr) {
            return Ok((self.local_number(side, expr, own)?, own));
        }
        Ok(match expr {
            Expr::Rows | Expr::Keys(..) | Expr::Aggregate(..) => self.of_measure(expr)?,
            Expr::Column(..) => {
                return fail(format!(
                    "{} is not an aggregate; write the condition in WHERE, where rows are chosen",
                    self.text(expr)
                ));
            }
            Expr::Negative(x) => {
                let (x, scale) = self.number(level, x)?;
                (Number::Negative(Box::new(x)), scale)
            }
            Expr::Sum(terms) => self.sum(level, terms, own)?,
            Expr::Product(factors) => {
                let mut product: Option<Scaled> = None;
                for factor in gathered(level, factors, Expr::Product) {
                    let (x, more) = self.number(level, &factor)?;
                    product = Some(match product {
                        None => (x, more),
                        Some((product, scale)) => {
                            (Number::Multiply(Box::new(product), Box::new(x)), scale + more)
                        }
                    });
                }
                product.unwrap_or((Number::Constant(1), 0))
            }
            Expr::Case(cases, last) => {
                let mut made = vec![];
                for (condition, result) in cases {
                    made.push((self.test(level, condition)?, self.number_at(level, result, own)?));
                }
                (Number::Case(made, Box::new(self.number_at(level, last, own)?)), own)
            }
            Expr::Coalesce(all) => {
                let mut made =
                    all.iter().map(|x| self.number_at(level, x, own)).collect::<Result<Vec<_>>>()?;
                let mut rest = made.pop().unwrap_or(Number::Null);
                while let Some(x) = made.pop() {
                    rest = Number::Coalesce(Box::new(x), Box::new(rest));
                }
                (rest, own)
            }
            Expr::Clip(x, least, most) => {
                let x = self.number_at(level, x, own)?;
                let bound = |x: &Expr| match x {
                    Expr::Number(number) => units(*number, own),
                    Expr::Date(days) => Ok(*days),
                    _ => Err(TooWide),
                };
                let [least, most] =
                    [bound(least), bound(most)].map(|bound| bound.map_err(self.too_wide(expr)));
                (Number::Clip(Box::new(x), least?, most?), own)
            }
            other => {
                return fail(format!(
                    "{} is of both sides' columns, and cannot be computed inside; write it of one side's",
                    self.text(other)
                ));
            }
        })
    }

    /// The number in units of 10^-scale.
    fn number_at(&mut self, level: Level, expr: &Expr, scale: u8) -> Result<Number> {
        let (number, own) = self.number(level, expr)?;
        raised(number, own, scale).map_err(self.too_wide(expr))
    }

    /// The measure that an aggregate of a group is.
    fn of_measure(&mut self, expr: &Expr) -> Result<Scaled> {
        if let Expr::Aggregate(Aggregate::Avg, _) = expr {
            return fail(format!(
                "{} can only be compared; compare the mean itself, or write SUM and COUNT",
                self.text(expr)
            ));
        }
        let (measure, scale) = self.aggregate(expr)?;
        Ok((Number::Leaf(measure), scale))
    }

    fn sum(&mut self, level: Level, terms: &[(bool, Expr)], own: u8) -> Result<Scaled> {
        let is_date = |term: &Expr| matches!(check(&self.names, term), Ok(Some(Base::Date)));
        let has_dates = terms.iter().any(|(_, term)| is_date(term));
        let gathered = if has_dates || level == Level::Group {
            terms.to_vec()
        } else {
            let owner = |(_, term): &(bool, Expr)| term.sides();
            parted(terms, owner).into_iter().map(one_term).collect()
        };
        let (mut added, mut subtracted) = (vec![], vec![]);
        for (is_subtracted, term) in gathered {
            let number = self.number_at(level, &term, own)?;
            if is_subtracted { subtracted.push(number) } else { added.push(number) }
        }
        let number = match (total(added), total(subtracted)) {
            (Some(a), Some(b)) => Number::Subtract(Box::new(a), Box::new(b)),
            (Some(a), None) => a,
            (None, Some(b)) => Number::Negative(Box::new(b)),
            (None, None) => Number::Constant(0),
        };
        Ok((number, own))
    }

    /// A field of one side's numbers.
    fn local_number(&mut self, side: Side, expr: &Expr, own: u8) -> Result<Number> {
        let (least, most) = match span(&self.names, expr).map_err(self.too_wide(expr))? {
            Span::Within(least, most) => (least, most),
            Span::Never => return Ok(Number::Null),
            Span::Unknown => return Err(self.unbounded(expr)),
        };
        let same = |part: &Part| matches!(part, Part::Number(other, _) if other == expr);
        Ok(Number::Leaf(match self.parts.iter().position(same) {
            Some(at) => at,
            None => {
                self.parts.push(Part::Number(expr.clone(), own));
                self.fields.push(Field { side, kind: Kind::Number { least, most } });
                self.fields.len() - 1
            }
        }))
    }

    /// The refusal of numbers without bounds, by the smallest part that CLIP would bound.
    fn unbounded(&self, expr: &Expr) -> Fault {
        let mut part = expr;
        while let Expr::Case(..) | Expr::Coalesce(_) | Expr::Negative(_) = part {
            let results: Vec<&Expr> = match part {
                Expr::Case(cases, last) => cases.iter().map(|(_, result)| result).chain([&**last]).collect(),
                other => other.parts(),
            };
            let unknown = |x: &&&Expr| matches!(span(&self.names, x), Ok(Span::Unknown));
            match results.iter().find(unknown) {
                Some(found) => part = found,
                None => break,
            }
        }
        let text = part.text(&self.names);
        let bounds = match check(&self.names, part) {
            Ok(Some(Base::Date)) => "DATE '2000-01-01', DATE '2026-12-31'",
            _ => "0, 1000",
        };
        Fault::new(format!(
            "{} has no bounds that both sides know; write CLIP({text}, least, most), as in CLIP({text}, {bounds})",
            self.text(part)
        ))
    }

    fn text_of_both(&self, expr: &Expr) -> Fault {
        Fault::new(format!(
            "{} has text of both sides, and only keys are compared as text; write it as a part of the key: ON ... AND \
             ...",
            self.text(expr)
        ))
    }

    fn test(&mut self, level: Level, expr: &Expr) -> Result<Test> {
        self.step()?;
        if let Some(value) = self.constant(expr)? {
            return Ok(match value {
                Value::Truth(value) => Test::Constant(value),
                _ => unknown(),
            });
        }
        check(&self.names, expr)?;
        if let Some(side) = Self::owner(level, expr) {
            let same = |part: &Part| matches!(part, Part::Truth(other) if other == expr);
            return Ok(Test::Field(match self.parts.iter().position(same) {
                Some(at) => at,
                None => {
                    self.parts.push(Part::Truth(expr.clone()));
                    self.fields.push(Field { side, kind: Kind::Truth });
                    self.fields.len() - 1
                }
            }));
        }
        Ok(match expr {
            Expr::All(all) => Test::All(self.tests(level, all, Expr::All)?),
            Expr::Any(any) => Test::Any(self.tests(level, any, Expr::Any)?),
            Expr::Not(x) => Test::Not(Box::new(self.test(level, x)?)),
            Expr::Compare(operator, x, y) => self.compare(level, expr, *operator, x, y)?,
            Expr::Between(x, least, most) => Test::All(vec![
                self.compare(level, expr, Operator::AtLeast, x, least)?,
                self.compare(level, expr, Operator::AtMost, x, most)?,
            ]),
            Expr::In(x, list) => {
                let each = list.iter().map(|item| self.compare(level, expr, Operator::Equal, x, item));
                Test::Any(each.collect::<Result<_>>()?)
            }
            Expr::IsNull(x) => Test::IsNull(self.any_number(level, x)?),
            Expr::Is(x, value) => {
                let x = self.test(level, x)?;
                let x = if *value { x } else { Test::Not(Box::new(x)) };
                let number = Number::Case(vec![(x, Number::Constant(0))], Box::new(Number::Null));
                Test::Not(Box::new(Test::IsNull(number)))
            }
            Expr::Case(..) | Expr::Coalesce(_) => {
                let number = self.any_number(level, expr)?;
                Test::Compare(Comparison::Equal, number, Number::Constant(1))
            }
            Expr::Column(..) => return self.number(level, expr).map(|_| unknown()),
            other => {
                return fail(format!(
                    "{} is of both sides' columns, and cannot be computed inside; write it of one side's",
                    self.text(other)
                ));
            }
        })
    }

    fn tests(&mut self, level: Level, all: &[Expr], of: fn(Vec<Expr>) -> Expr) -> Result<Vec<Test>> {
        gathered(level, all, of).iter().map(|x| self.test(level, x)).collect()
    }

    /// A number, or a truth value as one: 1, 0 or nothing.
    fn any_number(&mut self, level: Level, expr: &Expr) -> Result<Number> {
        if check(&self.names, expr)? != Some(Base::Truth) {
            return Ok(self.number(level, expr)?.0);
        }
        let is_inside = self.constant(expr)?.is_none() && Self::owner(level, expr).is_none();
        Ok(match expr {
            Expr::Case(cases, last) if is_inside => {
                let mut made = vec![];
                for (condition, result) in cases {
                    made.push((self.test(level, condition)?, self.any_number(level, result)?));
                }
                Number::Case(made, Box::new(self.any_number(level, last)?))
            }
            Expr::Coalesce(all) if is_inside => {
                let mut made = all.iter().map(|x| self.any_number(level, x)).collect::<Result<Vec<_>>>()?;
                let mut rest = made.pop().unwrap_or(Number::Null);
                while let Some(x) = made.pop() {
                    rest = Number::Coalesce(Box::new(x), Box::new(rest));
                }
                rest
            }
            _ => Number::Truth(Box::new(self.test(level, expr)?)),
        })
    }

    fn compare(
        &mut self,
        level: Level,
        whole: &Expr,
        operator: Operator,
        x: &Expr,
        y: &Expr,
    ) -> Result<Test> {
        let base = check(&self.names, x)?.or(check(&self.names, y)?);
        let (x, y) = match base {
            Some(Base::Text) => return Err(self.text_of_both(whole)),
            Some(Base::Truth) => (self.any_number(level, x)?, self.any_number(level, y)?),
            _ => {
                let (x, under_x) = self.fraction(level, x)?;
                let (y, under_y) = self.fraction(level, y)?;
                let scale = x.1.max(y.1);
                let wide = self.too_wide(whole);
                let x = raised(x.0, x.1, scale).map_err(&wide)?;
                let y = raised(y.0, y.1, scale).map_err(&wide)?;
                // A mean is compared by its sum: how many it is of is never negative, and of none it is nothing.
                let times = |x: Number, count: Option<Number>| match count {
                    Some(count) => Number::Multiply(Box::new(x), Box::new(count)),
                    None => x,
                };
                (times(x, under_y), times(y, under_x))
            }
        };
        Ok(match operator {
            Operator::Equal => Test::Compare(Comparison::Equal, x, y),
            Operator::Unequal => Test::Not(Box::new(Test::Compare(Comparison::Equal, x, y))),
            Operator::Less => Test::Compare(Comparison::Less, x, y),
            Operator::AtMost => Test::Compare(Comparison::AtMost, x, y),
            Operator::Greater => Test::Compare(Comparison::Less, y, x),
            Operator::AtLeast => Test::Compare(Comparison::AtMost, y, x),
        })
    }

    /// A number, and what it is divided by if it is a mean.
    fn fraction(&mut self, level: Level, expr: &Expr) -> Result<(Scaled, Option<Number>)> {
        match (level, expr) {
            (Level::Group, Expr::Aggregate(Aggregate::Avg, x)) => {
                let (sum, scale) = self.aggregate(&Expr::Aggregate(Aggregate::Sum, x.clone()))?;
                let count = self.values_of(expr, x)?;
                Ok(((Number::Leaf(sum), scale), Some(Number::Leaf(count))))
            }
            _ => Ok((self.number(level, expr)?, None)),
        }
    }
}

/// A condition that is never known.
fn unknown() -> Test {
    Test::Compare(Comparison::Equal, Number::Null, Number::Null)
}

/// The number in smaller units.
fn raised(number: Number, from: u8, to: u8) -> std::result::Result<Number, TooWide> {
    let unit = power(to.saturating_sub(from)).ok_or(TooWide)?;
    Ok(match number {
        number if unit == 1 => number,
        Number::Null => Number::Null,
        Number::Constant(value) => Number::Constant(value.checked_mul(unit).ok_or(TooWide)?),
        number => Number::Multiply(Box::new(number), Box::new(Number::Constant(unit))),
    })
}

/// The sum of numbers, as a tree that is as flat as can be.
fn total(mut numbers: Vec<Number>) -> Option<Number> {
    while numbers.len() > 1 {
        let mut halved = vec![];
        let mut rest = numbers.into_iter();
        while let Some(x) = rest.next() {
            halved.push(match rest.next() {
                Some(y) => Number::Add(Box::new(x), Box::new(y)),
                None => x,
            });
        }
        numbers = halved;
    }
    numbers.pop()
}

/// The operands of a chain with those of one side made one: a side computes as much as it can by itself.
fn gathered(level: Level, all: &[Expr], of: fn(Vec<Expr>) -> Expr) -> Vec<Expr> {
    if level == Level::Group {
        return all.to_vec();
    }
    let one = |mut part: Vec<Expr>| match (part.len(), part.pop()) {
        (1, Some(x)) => x,
        (_, Some(x)) => {
            part.push(x);
            of(part)
        }
        (_, None) => of(vec![]),
    };
    parted(all, Expr::sides).into_iter().map(one).collect()
}

/// Items parted by the sides whose columns they have. Those of both stay apart.
fn parted<T: Clone>(all: &[T], sides: impl Fn(&T) -> [bool; 2]) -> Vec<Vec<T>> {
    let mut parts: Vec<([bool; 2], Vec<T>)> = vec![];
    for item in all {
        let sides = sides(item);
        match parts.iter_mut().find(|(other, _)| *other == sides && sides != [true; 2]) {
            Some((_, part)) => part.push(item.clone()),
            None => parts.push((sides, vec![item.clone()])),
        }
    }
    parts.into_iter().map(|(_, part)| part).collect()
}

/// Terms as one, and whether it is subtracted.
fn one_term(mut terms: Vec<(bool, Expr)>) -> (bool, Expr) {
    // The first term of a sum is never subtracted: if one is added it goes first, else all change their sign.
    let Some(first) = terms.iter().position(|(is_subtracted, _)| !is_subtracted) else {
        let (_, first) = terms.remove(0);
        let rest = terms.into_iter().map(|(_, term)| (false, term));
        let all: Vec<(bool, Expr)> = std::iter::once((false, first)).chain(rest).collect();
        return (true, sum_of(all));
    };
    let first = terms.remove(first);
    terms.insert(0, first);
    (false, sum_of(terms))
}

fn sum_of(mut terms: Vec<(bool, Expr)>) -> Expr {
    match terms.len() {
        1 => terms.remove(0).1,
        _ => Expr::Sum(terms),
    }
}
