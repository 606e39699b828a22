//! What expressions are: columns without a type get one from what they are compared and computed with.

use crate::fault::{Result, fail, quoted};
use crate::side::Side;
use crate::tree::{Aggregate, Base, Expr, Function, Names, Type};

/// Gives columns a type from the expressions that they are in, until none learns more.
pub(crate) fn infer<'a>(names: &mut Names, all: impl Iterator<Item = (&'a Expr, Option<Base>)> + Clone) {
    let known = |names: &Names| names.columns.iter().flatten().filter(|column| column.base.is_some()).count();
    loop {
        let before = known(names);
        for (expr, wanted) in all.clone() {
            of(names, expr, wanted);
        }
        if known(names) == before {
            return;
        }
    }
}

/// What an expression is, if that is known yet; it tells its columns that it should be `wanted`.
fn of(names: &mut Names, expr: &Expr, wanted: Option<Base>) -> Option<Base> {
    match expr {
        Expr::Column(side, at) => {
            let column = &mut names.columns[*side as usize][*at];
            column.base = column.base.or(wanted);
            column.base
        }
        Expr::Null => wanted,
        Expr::Truth(_) => Some(Base::Truth),
        Expr::Number(_) => Some(Base::Number),
        Expr::Text(_) => Some(Base::Text),
        Expr::Date(_) => Some(Base::Date),
        Expr::Negative(x) => of(names, x, Some(Base::Number)),
        Expr::Sum(terms) => {
            let found: Vec<Option<Base>> = terms.iter().map(|(_, term)| of(names, term, None)).collect();
            // Only what is not known yet is visited again, so that deep sums take no more than their size.
            for ((_, term), _) in terms.iter().zip(&found).filter(|(_, found)| found.is_none()) {
                of(names, term, Some(Base::Number));
            }
            let dates =
                terms.iter().zip(&found).map(|((minus, _), found)| (*minus, *found == Some(Base::Date)));
            let dates: Vec<(bool, bool)> = dates.collect();
            // A date less a date is days.
            let count: i32 =
                dates.iter().map(|(minus, is_date)| i32::from(*is_date) * if *minus { -1 } else { 1 }).sum();
            Some(if count == 0 { Base::Number } else { Base::Date })
        }
        Expr::Product(factors) => {
            for factor in factors {
                of(names, factor, Some(Base::Number));
            }
            Some(Base::Number)
        }
        Expr::Compare(_, x, y) => {
            alike(names, [&**x, &**y].into_iter(), None);
            Some(Base::Truth)
        }
        Expr::Between(x, y, z) => {
            alike(names, [&**x, &**y, &**z].into_iter(), None);
            Some(Base::Truth)
        }
        Expr::In(x, list) => {
            alike(names, std::iter::once(&**x).chain(list), None);
            Some(Base::Truth)
        }
        Expr::All(all) | Expr::Any(all) => {
            for x in all {
                of(names, x, Some(Base::Truth));
            }
            Some(Base::Truth)
        }
        Expr::Not(x) | Expr::Is(x, _) => {
            of(names, x, Some(Base::Truth));
            Some(Base::Truth)
        }
        Expr::IsNull(x) => {
            of(names, x, None);
            Some(Base::Truth)
        }
        Expr::Like(x, ..) => {
            of(names, x, Some(Base::Text));
            Some(Base::Truth)
        }
        Expr::Case(cases, last) => {
            for (condition, _) in cases {
                of(names, condition, Some(Base::Truth));
            }
            alike(names, cases.iter().map(|(_, result)| result).chain([&**last]), wanted)
        }
        Expr::Coalesce(all) => alike(names, all.iter(), wanted),
        Expr::Clip(x, least, _) => {
            let base = of(names, least, None);
            of(names, x, base);
            base
        }
        Expr::Call(function, x) => {
            let (from, to) = signature(*function);
            of(names, x, Some(from));
            Some(to)
        }
        Expr::Rows | Expr::Keys(..) => Some(Base::Number),
        Expr::Aggregate(aggregate, x) => match aggregate {
            Aggregate::Count => {
                of(names, x, None);
                Some(Base::Number)
            }
            Aggregate::Sum | Aggregate::Avg => of(names, x, Some(Base::Number)),
            Aggregate::Min | Aggregate::Max => {
                let found = of(names, x, wanted);
                found.or_else(|| of(names, x, Some(Base::Number)))
            }
        },
    }
}

/// Expressions of one type: those that are not known learn it from the first that is.
fn alike<'a>(
    names: &mut Names,
    all: impl Iterator<Item = &'a Expr> + Clone,
    wanted: Option<Base>,
) -> Option<Base> {
    if wanted.is_some() {
        all.for_each(|expr| {
            of(names, expr, wanted);
        });
        return wanted;
    }
    let found: Vec<Option<Base>> = all.clone().map(|expr| of(names, expr, None)).collect();
    let known = found.iter().copied().flatten().next();
    // Only what is not known yet is visited again, so that deep expressions take no more than their size.
    for (expr, _) in all.zip(&found).filter(|(_, found)| known.is_some() && found.is_none()) {
        of(names, expr, known);
    }
    known
}

const fn signature(function: Function) -> (Base, Base) {
    match function {
        Function::Lower | Function::Upper | Function::Trim => (Base::Text, Base::Text),
        Function::Length => (Base::Text, Base::Number),
        Function::Year | Function::Month | Function::Day => (Base::Date, Base::Number),
    }
}

/// Checks that an expression is of a type throughout; `None` if it is nothing, or a column that nothing says about.
pub(crate) fn check(names: &Names, expr: &Expr) -> Result<Option<Base>> {
    Ok(match expr {
        Expr::Column(side, at) => names.column(*side, *at).base,
        Expr::Null => None,
        Expr::Truth(_) => Some(Base::Truth),
        Expr::Number(_) => Some(Base::Number),
        Expr::Text(_) => Some(Base::Text),
        Expr::Date(_) => Some(Base::Date),
        Expr::Negative(x) => {
            expect(names, expr, x, Base::Number)?;
            Some(Base::Number)
        }
        Expr::Sum(terms) => Some(sum(names, expr, terms)?),
        Expr::Product(factors) => {
            factors.iter().try_for_each(|factor| expect(names, expr, factor, Base::Number))?;
            Some(Base::Number)
        }
        Expr::Compare(_, x, y) => compared(names, expr, vec![x, y])?,
        Expr::Between(x, y, z) => compared(names, expr, vec![x, y, z])?,
        Expr::In(x, list) => compared(names, expr, std::iter::once(&**x).chain(list).collect())?,
        Expr::All(all) | Expr::Any(all) => {
            all.iter().try_for_each(|x| expect(names, expr, x, Base::Truth))?;
            Some(Base::Truth)
        }
        Expr::Not(x) | Expr::Is(x, _) => {
            expect(names, expr, x, Base::Truth)?;
            Some(Base::Truth)
        }
        Expr::IsNull(x) => {
            check(names, x)?;
            Some(Base::Truth)
        }
        Expr::Like(x, ..) => {
            expect(names, expr, x, Base::Text)?;
            Some(Base::Truth)
        }
        Expr::Case(cases, last) => {
            cases.iter().try_for_each(|(condition, _)| expect(names, expr, condition, Base::Truth))?;
            one_type(names, expr, cases.iter().map(|(_, result)| result).chain([&**last]).collect())?
        }
        Expr::Coalesce(all) => one_type(names, expr, all.iter().collect())?,
        Expr::Clip(x, least, most) => one_type(names, expr, vec![x, least, most])?,
        Expr::Call(function, x) => {
            let (from, to) = signature(*function);
            expect(names, expr, x, from)?;
            Some(to)
        }
        Expr::Rows | Expr::Keys(..) => Some(Base::Number),
        Expr::Aggregate(aggregate, x) => {
            if x.has_aggregate() {
                return fail(format!(
                    "{} is an aggregate of an aggregate; ask for one of them",
                    quoted(expr.text(names))
                ));
            }
            let of = check(names, x)?;
            match (aggregate, of) {
                (Aggregate::Count, _) => Some(Base::Number),
                (Aggregate::Min | Aggregate::Max, Some(Base::Date)) => Some(Base::Date),
                (_, Some(Base::Truth)) => {
                    return fail(format!(
                        "{} is of truth values; write CASE WHEN ... THEN 1 ELSE 0 END",
                        quoted(expr.text(names))
                    ));
                }
                _ => {
                    expect(names, expr, x, Base::Number)?;
                    Some(Base::Number)
                }
            }
        }
    })
}

fn expect(names: &Names, whole: &Expr, part: &Expr, wanted: Base) -> Result<()> {
    match check(names, part)? {
        Some(found) if found != wanted => mismatch(names, whole, part, found, wanted),
        _ => Ok(()),
    }
}

fn mismatch<T>(names: &Names, whole: &Expr, part: &Expr, found: Base, wanted: Base) -> Result<T> {
    let (whole, text) = (whole.text(names), part.text(names));
    let place = if whole == text { String::new() } else { format!(" in {}", quoted(&whole)) };
    let remedy = match (part, found, wanted) {
        (Expr::Text(_), Base::Text, Base::Date) => "write DATE '2026-11-28'".to_owned(),
        (Expr::Text(_), Base::Text, Base::Number) => "write the number without quotes".to_owned(),
        (Expr::Number(_), Base::Number, Base::Text) => "write it in quotes".to_owned(),
        (Expr::Column(side, at), ..) => format!("write {} where it is one", typed(names, *side, *at, wanted)),
        _ => format!("write {} there", wanted.name()),
    };
    fail(format!("{}{place} is {}, not {}; {remedy}", quoted(text), found.name(), wanted.name()))
}

/// A column as a text has it that says that it is of this type.
fn typed(names: &Names, side: Side, at: usize, base: Base) -> String {
    let declared = match base {
        Base::Number => Type::Decimal(2),
        Base::Text => Type::Text,
        Base::Date => Type::Date,
        Base::Truth => Type::Truth,
    };
    let alias = crate::tree::identifier(&names.alias[side as usize]);
    format!("{alias}.\"{}:{declared}\"", names.column(side, at).name.replace('"', "\"\""))
}

/// The type that all of these have.
fn one_type(names: &Names, whole: &Expr, all: Vec<&Expr>) -> Result<Option<Base>> {
    let mut known = None;
    for part in all {
        match (known, check(names, part)?) {
            (Some(wanted), Some(found)) if found != wanted => {
                return mismatch(names, whole, part, found, wanted);
            }
            (_, found) => known = known.or(found),
        }
    }
    Ok(known)
}

fn compared(names: &Names, whole: &Expr, all: Vec<&Expr>) -> Result<Option<Base>> {
    let mut column = None;
    for part in &all {
        part.columns(&mut |side, at| column = column.or(Some((side, at))));
    }
    match (one_type(names, whole, all)?, column) {
        (None, Some((side, at))) => fail(format!(
            "the type of what {} compares is not known; write {} or {} for a number, or {} for a date",
            quoted(whole.text(names)),
            typed(names, side, at, Base::Number).replace("decimal2", "integer"),
            typed(names, side, at, Base::Number),
            typed(names, side, at, Base::Date)
        )),
        _ => Ok(Some(Base::Truth)),
    }
}

/// Numbers and dates: days may be added to a date, and two dates subtracted.
fn sum(names: &Names, whole: &Expr, terms: &[(bool, Expr)]) -> Result<Base> {
    let mut dates = 0;
    for (minus, term) in terms {
        match check(names, term)? {
            Some(Base::Date) => dates += if *minus { -1 } else { 1 },
            Some(Base::Number) | None => {}
            Some(found) => return mismatch(names, whole, term, found, Base::Number),
        }
        if !(0..=1).contains(&dates) {
            return fail(format!(
                "{} adds dates; add days to a date, or subtract a date from a later one",
                quoted(whole.text(names))
            ));
        }
    }
    if dates == 1 && terms.iter().any(|(_, term)| scale(names, term) > 0) {
        return fail(format!("{} adds parts of days; add whole days to a date", quoted(whole.text(names))));
    }
    Ok(if dates == 0 { Base::Number } else { Base::Date })
}

/// Digits after the point that an expression's numbers have, at most, where columns have as many as their types say.
pub(crate) fn scale(names: &Names, expr: &Expr) -> u8 {
    let most = |all: &mut dyn Iterator<Item = &Expr>| all.map(|x| scale(names, x)).max().unwrap_or(0);
    match expr {
        Expr::Column(side, at) => match names.column(*side, *at).declared {
            Some(Type::Decimal(scale)) => scale,
            _ => 0,
        },
        Expr::Number(number) => number.scale,
        Expr::Negative(x) => scale(names, x),
        Expr::Sum(terms) => most(&mut terms.iter().map(|(_, term)| term)),
        Expr::Product(factors) => factors.iter().fold(0u8, |sum, x| sum.saturating_add(scale(names, x))),
        Expr::Case(cases, last) => most(&mut cases.iter().map(|(_, result)| result).chain([&**last])),
        Expr::Coalesce(all) => most(&mut all.iter()),
        Expr::Clip(x, least, most_) => most(&mut [&**x, &**least, &**most_].into_iter()),
        Expr::Aggregate(Aggregate::Sum | Aggregate::Min | Aggregate::Max, x) => scale(names, x),
        _ => 0,
    }
}
