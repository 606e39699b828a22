//! A side's rows of one key, added up before the run.

use crate::fault::{Fault, Result, too_large};
use crate::local::{self, Overflow};
use crate::question::Question;
use crate::side::Side;
use crate::tree::{Aggregate, Expr, Names, Sums, Type};
use crate::value::{Decimal, Value};
use zeroize::Zeroize;

/// What the rows of a key have come to so far.
#[derive(Clone, Default, Debug)]
pub struct Total {
    /// Of each column that is made; none before a row has passed.
    made: Vec<Made>,
    rows: u64,
}

#[derive(Clone, Copy, Default, Debug)]
struct Made {
    count: u64,
    /// The sum, or the smallest or largest number or date.
    number: Option<Decimal>,
}

impl Drop for Total {
    fn drop(&mut self) {
        for made in &mut self.made {
            made.count.zeroize();
            if let Some(number) = &mut made.number {
                number.units.zeroize();
            }
        }
    }
}

impl Total {
    /// How many rows have passed the subquery's filter so far.
    pub const fn rows(&self) -> u64 {
        self.rows
    }

    /// Bytes of a total of so many columns, about.
    pub const fn bytes(columns: usize) -> usize {
        size_of::<Self>() + 16 + columns * size_of::<Made>()
    }
}

impl Question {
    /// Whether the rows of a side are added up by key, as a subquery in place of its table says.
    pub fn adds_up(&self, side: Side) -> bool {
        self.local.names.sums[side as usize].is_some()
    }

    /// How many numbers are made of the rows of a key of such a side.
    pub fn sum_columns(&self, side: Side) -> usize {
        self.local.names.sums[side as usize].as_ref().map_or(0, |sums| sums.made.len())
    }

    /// Adds a row, whose cells are those of [`row`](Question::row), to the total of its key, if it passes the subquery's
    /// filter.
    ///
    /// # Errors
    ///
    /// As [`row`](Question::row).
    pub fn add(&self, side: Side, total: &mut Total, cells: &[Option<&str>]) -> Result<()> {
        let Some(sums) = self.local.names.sums[side as usize].as_deref() else { return Ok(()) };
        let row = self.cells(side, &sums.names, cells)?;
        for filter in &sums.filters {
            if local::truth(filter, &row).map_err(|Overflow| sums.too_large(filter))? != Some(true) {
                return Ok(());
            }
        }
        // A key counts from its first row that passes, whatever is made of it.
        total.rows += 1;
        total.made.resize(sums.made.len().max(1), Made::default());
        for (made, (_, expr, _)) in total.made.iter_mut().zip(&sums.made) {
            made.add(expr, &row).map_err(|Overflow| sums.too_large(expr))?;
        }
        Ok(())
    }

    /// The block of a key with this total; `None` if no row of it has passed, or the side's own filter is not true of
    /// what they come to.
    ///
    /// # Errors
    ///
    /// As [`row`](Question::row).
    pub fn total(&self, side: Side, total: &Total) -> Result<Option<u128>> {
        let Names { columns, sums, .. } = &self.local.names;
        let Some(sums) = sums[side as usize].as_deref().filter(|_| !total.made.is_empty()) else {
            return Ok(None);
        };
        let value = |name: &String| {
            let made = sums.made.iter().zip(&total.made).find(|((made, ..), _)| made == name);
            made.map_or(Value::Null, |((_, expr, of), made)| made.value(expr, *of))
        };
        let row: Vec<Value<'_>> = columns[side as usize].iter().map(|column| value(&column.name)).collect();
        self.block(side, &row)
    }
}

impl Sums {
    fn too_large(&self, expr: &Expr) -> Fault {
        too_large("the columns of the subquery", &expr.text(&self.names))
    }
}

impl Made {
    fn add(&mut self, expr: &Expr, row: &[Value<'_>]) -> std::result::Result<(), Overflow> {
        let Expr::Aggregate(aggregate, x) = expr else {
            self.count += 1;
            return Ok(());
        };
        let value = local::evaluate(x, row)?;
        if value.is_null() {
            return Ok(());
        }
        self.count += 1;
        let number = match value {
            Value::Number(number) => number,
            Value::Date(days) => Decimal::whole(days),
            _ => return Ok(()),
        };
        let ordered = |other: Decimal| number.compare(other).ok_or(Overflow);
        self.number = Some(match (aggregate, self.number) {
            (_, None) => number,
            (Aggregate::Min, Some(other)) => {
                if ordered(other)?.is_lt() {
                    number
                } else {
                    other
                }
            }
            (Aggregate::Max, Some(other)) => {
                if ordered(other)?.is_gt() {
                    number
                } else {
                    other
                }
            }
            (_, Some(other)) => other.add(number).ok_or(Overflow)?,
        });
        Ok(())
    }

    fn value(&self, expr: &Expr, of: Type) -> Value<'static> {
        match (expr, self.number, of) {
            (Expr::Aggregate(Aggregate::Count, _) | Expr::Rows, ..) => {
                Value::Number(Decimal::whole(self.count.into()))
            }
            (_, Some(days), Type::Date) => Value::Date(days.units),
            (_, Some(number), _) => Value::Number(number),
            (_, None, _) => Value::Null,
        }
    }
}
