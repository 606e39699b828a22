//! The least and the most that numbers can be.

use crate::question::{Field, Kind, Measure, Number, Test};
use crate::tree::{Expr, Function, Names};
use crate::types::scale;
use crate::value::{Decimal, power};

/// The bits of a number inside, its sign included, at most.
const MOST_BITS_INSIDE: u32 = 100;
/// Rows over which sums must stay within [`MOST_BITS_INSIDE`].
pub(crate) const BOUNDED_ROWS: u64 = 1 << 22;

/// From which number to which; `None` if there is never one.
type Range = Option<(i128, i128)>;

/// A number that may have more bits than numbers inside have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TooWide;

type Checked<T> = std::result::Result<T, TooWide>;

/// The range of what two ranges' numbers are made into.
type Combine = fn((i128, i128), (i128, i128)) -> Checked<(i128, i128)>;

/// What is known of a local expression's numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Span {
    /// Nothing: they depend on a column without bounds.
    Unknown,
    /// There is never one.
    Never,
    /// From the first to the second.
    Within(i128, i128),
}

impl From<Range> for Span {
    fn from(range: Range) -> Self {
        range.map_or(Span::Never, |(least, most)| Span::Within(least, most))
    }
}

/// The span of a local expression of numbers or dates, in units of its scale.
pub(crate) fn span(names: &Names, expr: &Expr) -> Checked<Span> {
    let own = scale(names, expr);
    let at = |x: &Expr| raised(span(names, x)?, scale(names, x), own);
    Ok(match expr {
        Expr::Null => Span::Never,
        Expr::Number(number) => Span::Within(number.units, number.units),
        Expr::Date(days) => Span::Within(*days, *days),
        Expr::Negative(x) => match span(names, x)? {
            Span::Within(least, most) => narrow(-most, -least)?,
            other => other,
        },
        Expr::Sum(terms) => {
            let mut total = Span::Within(0, 0);
            for (is_subtracted, term) in terms {
                let term = match at(term)? {
                    Span::Within(least, most) if *is_subtracted => Span::Within(-most, -least),
                    other => other,
                };
                total = of_both(total, term, add)?;
            }
            total
        }
        Expr::Product(factors) => {
            let mut product = Span::Within(1, 1);
            for factor in factors {
                product = of_both(product, span(names, factor)?, multiply)?;
            }
            product
        }
        Expr::Case(cases, last) => {
            let mut all = at(last)?;
            for (_, result) in cases {
                all = hull(all, at(result)?);
            }
            all
        }
        Expr::Coalesce(list) => {
            let mut all = Span::Never;
            for x in list {
                all = hull(all, at(x)?);
            }
            all
        }
        Expr::Clip(x, least, most) => match (at(x)?, at(least)?, at(most)?) {
            (Span::Within(from, to), Span::Within(least, _), Span::Within(most, _)) => {
                Span::Within(from.clamp(least, most), to.clamp(least, most))
            }
            (Span::Unknown, Span::Within(least, _), Span::Within(most, _)) => Span::Within(least, most),
            _ => Span::Never,
        },
        Expr::Call(Function::Year, _) => Span::Within(1, 9999),
        Expr::Call(Function::Month, _) => Span::Within(1, 12),
        Expr::Call(Function::Day, _) => Span::Within(1, 31),
        _ => Span::Unknown,
    })
}

/// A span in smaller units.
fn raised(span: Span, from: u8, to: u8) -> Checked<Span> {
    let Span::Within(least, most) = span else { return Ok(span) };
    let unit = power(to.saturating_sub(from)).ok_or(TooWide)?;
    narrow(least.checked_mul(unit).ok_or(TooWide)?, most.checked_mul(unit).ok_or(TooWide)?)
}

fn of_both(a: Span, b: Span, of: Combine) -> Checked<Span> {
    Ok(match (a, b) {
        (Span::Never, _) | (_, Span::Never) => Span::Never,
        (Span::Within(a, b), Span::Within(c, d)) => {
            let (least, most) = of((a, b), (c, d))?;
            narrow(least, most)?
        }
        _ => Span::Unknown,
    })
}

fn hull(a: Span, b: Span) -> Span {
    match (a, b) {
        (Span::Never, other) | (other, Span::Never) => other,
        (Span::Within(a, b), Span::Within(c, d)) => Span::Within(a.min(c), b.max(d)),
        _ => Span::Unknown,
    }
}

fn narrow(least: i128, most: i128) -> Checked<Span> {
    fits((least, most)).map(|(least, most)| Span::Within(least, most))
}

/// The range, if its numbers have no more bits than numbers inside may have.
pub(crate) fn fits((least, most): (i128, i128)) -> Checked<(i128, i128)> {
    let end = 1i128 << (MOST_BITS_INSIDE - 1);
    if -end <= least && most < end { Ok((least, most)) } else { Err(TooWide) }
}

fn add((a, b): (i128, i128), (c, d): (i128, i128)) -> Checked<(i128, i128)> {
    Ok((a.checked_add(c).ok_or(TooWide)?, b.checked_add(d).ok_or(TooWide)?))
}

fn multiply((a, b): (i128, i128), (c, d): (i128, i128)) -> Checked<(i128, i128)> {
    let mut ends = [0; 4];
    for (end, (x, y)) in ends.iter_mut().zip([(a, c), (a, d), (b, c), (b, d)]) {
        *end = x.checked_mul(y).ok_or(TooWide)?;
    }
    let [w, x, y, z] = ends;
    Ok((w.min(x).min(y).min(z), w.max(x).max(y).max(z)))
}

/// Where a number's leaves are from which to which.
type Leaf<'a> = &'a dyn Fn(usize) -> Range;

impl Number {
    /// The least and the most that it can be; `None` if it is always nothing. `leaf` is asked the same of its leaves.
    ///
    /// # Panics
    ///
    /// If that has more than 127 bits. Numbers of a [`Question`](crate::Question) have at most 100 over 2^22 rows.
    pub fn range(&self, leaf: &dyn Fn(usize) -> Option<(i128, i128)>) -> Option<(i128, i128)> {
        of_number(self, leaf, &Ok).expect("parse() has bounded every number of a question")
    }

    /// The range, if this number and all that it is made of stay within the bits that numbers inside may have.
    pub(crate) fn checked_range(&self, leaf: Leaf<'_>) -> Checked<Range> {
        of_number(self, leaf, &fits)
    }
}

fn of_number(
    number: &Number,
    leaf: Leaf<'_>,
    fits: &dyn Fn((i128, i128)) -> Checked<(i128, i128)>,
) -> Checked<Range> {
    let of = |x: &Number| of_number(x, leaf, fits);
    let of_both = |x: &Number, y: &Number, make: Combine| match (of(x)?, of(y)?) {
        (Some(x), Some(y)) => make(x, y).map(Some),
        _ => Ok(None),
    };
    let hull = |a: Range, b: Range| match (a, b) {
        (Some((a, b)), Some((c, d))) => Some((a.min(c), b.max(d))),
        (a, b) => a.or(b),
    };
    let range = match number {
        Number::Leaf(at) => leaf(*at),
        Number::Constant(value) => Some((*value, *value)),
        Number::Null => None,
        Number::Negative(x) => of(x)?.map(|(least, most)| (-most, -least)),
        Number::Add(x, y) => of_both(x, y, add)?,
        Number::Subtract(x, y) => of_both(x, y, |x, (least, most)| add(x, (-most, -least)))?,
        Number::Multiply(x, y) => of_both(x, y, multiply)?,
        Number::Case(cases, last) => {
            let mut all = of(last)?;
            for (_, result) in cases {
                all = hull(all, of(result)?);
            }
            all
        }
        Number::Coalesce(x, y) => hull(of(x)?, of(y)?),
        Number::Truth(_) => Some((0, 1)),
        Number::Clip(x, least, most) => {
            of(x)?.map(|(from, to)| (from.clamp(*least, *most), to.clamp(*least, *most)))
        }
    };
    range.map(fits).transpose()
}

impl Test {
    /// Whether all numbers that it compares stay within the bits that numbers inside may have.
    pub(crate) fn check(&self, leaf: Leaf<'_>) -> Checked<()> {
        match self {
            Test::Field(_) | Test::Constant(_) => Ok(()),
            Test::Compare(_, x, y) => [x, y].into_iter().try_for_each(|x| x.check(leaf)),
            Test::IsNull(x) => x.check(leaf),
            Test::All(all) | Test::Any(all) => all.iter().try_for_each(|x| x.check(leaf)),
            Test::Not(x) => x.check(leaf),
        }
    }
}

impl Number {
    /// Whether it, and all numbers that it compares, stay within the bits that numbers inside may have.
    pub(crate) fn check(&self, leaf: Leaf<'_>) -> Checked<()> {
        self.checked_range(leaf)?;
        match self {
            Number::Leaf(_) | Number::Constant(_) | Number::Null => Ok(()),
            Number::Negative(x) | Number::Clip(x, ..) => x.check(leaf),
            Number::Truth(test) => test.check(leaf),
            Number::Add(x, y) | Number::Subtract(x, y) | Number::Multiply(x, y) | Number::Coalesce(x, y) => {
                x.check(leaf)?;
                y.check(leaf)
            }
            Number::Case(cases, last) => {
                for (condition, result) in cases {
                    condition.check(leaf)?;
                    result.check(leaf)?;
                }
                last.check(leaf)
            }
        }
    }
}

/// From which number to which a field is.
pub(crate) fn of_field(field: &Field) -> Range {
    match field.kind {
        Kind::Number { least, most } => Some((least, most)),
        _ => None,
    }
}

impl Measure {
    /// How much a joined row that is added or left out can change it, where that is bounded by what rows are.
    pub(crate) fn change(&self, fields: &[Field]) -> Option<u128> {
        match self {
            Measure::Rows | Measure::Count(_) => Some(1),
            Measure::Sum(number) => {
                let range = number.range(&|at| fields.get(at).and_then(of_field));
                Some(range.map_or(0, |(least, most)| least.unsigned_abs().max(most.unsigned_abs())))
            }
            Measure::Min(_) | Measure::Max(_) => None,
        }
    }

    /// The least and the most that it can be over at most so many rows; `None` if it is always nothing. A sum's range
    /// has zero in it: that is where adding begins.
    ///
    /// # Panics
    ///
    /// If that has more than 127 bits. Measures of a [`Question`](crate::Question) have at most 100 over 2^22 rows.
    pub fn range(&self, fields: &[Field], rows: u64) -> Option<(i128, i128)> {
        self.checked_range(fields, rows, &Ok).expect("parse() has bounded every measure of a question")
    }

    /// The range, if it stays within the bits that numbers inside may have.
    pub(crate) fn fitting_range(&self, fields: &[Field], rows: u64) -> Checked<Range> {
        self.checked_range(fields, rows, &fits)
    }

    fn checked_range(
        &self,
        fields: &[Field],
        rows: u64,
        fits: &dyn Fn((i128, i128)) -> Checked<(i128, i128)>,
    ) -> Checked<Range> {
        let leaf = |at: usize| fields.get(at).and_then(of_field);
        let most = i128::from(rows);
        match self {
            Measure::Rows | Measure::Count(_) => Ok(Some((0, most))),
            Measure::Sum(number) => match of_number(number, &leaf, fits)? {
                None => Ok(None),
                Some((a, b)) => {
                    let a = a.min(0).checked_mul(most).ok_or(TooWide)?;
                    let b = b.max(0).checked_mul(most).ok_or(TooWide)?;
                    fits((a, b)).map(Some)
                }
            },
            Measure::Min(number) | Measure::Max(number) => of_number(number, &leaf, fits),
        }
    }
}

/// A number at a scale, as the units that numbers inside are.
pub(crate) fn units(number: Decimal, scale: u8) -> Checked<i128> {
    number.at(scale).ok_or(TooWide)
}
