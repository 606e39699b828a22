//! A side's own rows: whether they pass its filter, and the block of bits that it puts in for each.

use crate::fault::{Fault, Result, counted, fail, quoted, too_large};
use crate::local::{self, Overflow};
use crate::part::{Local, Part};
use crate::question::{Field, Kind, Purpose, Question};
use crate::side::Side;
use crate::sums::Total;
use crate::tree::{Expr, Names};
use crate::value::{Decimal, Value};
use std::ops::Range;

impl Question {
    /// The bits of a side's block: one that says that the row passes the side's own filter, and those of its fields.
    pub fn bits(&self, side: Side) -> u32 {
        1 + self.fields.iter().filter(|field| field.side == side).map(Field::bits).sum::<u32>()
    }

    /// The bits of a field in its side's block, from the lowest.
    ///
    /// # Panics
    ///
    /// If there is no such field.
    pub fn place(&self, field: usize) -> Range<u32> {
        let (before, from) = self.fields.split_at(field);
        let side = from[0].side;
        let start = 1 + before.iter().filter(|other| other.side == side).map(Field::bits).sum::<u32>();
        start..start + from[0].bits()
    }

    /// The columns of a side whose numbers are added up, or the largest or smallest of which is in the result.
    pub fn carries(&self, side: Side) -> Vec<String> {
        let uses = self.tables[side as usize].uses.iter();
        uses.filter(|one| one.purpose == Purpose::Aggregate).map(|one| one.column.clone()).collect()
    }

    /// The block of a row of a side, from its cells in the order of the [table's columns](crate::Table::columns);
    /// `None` if the side's own filter is not true of it. A cell that is `None` or empty is a null. Of a side whose rows
    /// are [added up](Question::adds_up) first it is the block of a key that has this one row.
    ///
    /// # Errors
    ///
    /// One line that names the column of a cell that is not of its column's type, or of a number that does not fit, and
    /// says what to do. It never shows a cell.
    pub fn row(&self, side: Side, cells: &[Option<&str>]) -> Result<Option<u128>> {
        if self.adds_up(side) {
            let mut total = Total::default();
            self.add(side, &mut total, cells)?;
            return self.total(side, &total);
        }
        self.block(side, &self.cells(side, &self.local.names, cells)?)
    }

    /// What the cells of a row are.
    pub(crate) fn cells<'a>(
        &self,
        side: Side,
        names: &Names,
        cells: &[Option<&'a str>],
    ) -> Result<Vec<Value<'a>>> {
        let columns = names.columns[side as usize].len();
        if cells.len() != columns {
            return fail(format!(
                "a row of {} has {}, and the question names {}; give a cell for each",
                side.name(),
                counted(cells.len(), "cell"),
                counted(columns, "column")
            ));
        }
        cells.iter().enumerate().map(|(at, cell)| local::cell(names, side, at, *cell)).collect()
    }

    /// The block of a row with these values.
    pub(crate) fn block<'a>(&'a self, side: Side, row: &'a [Value<'a>]) -> Result<Option<u128>> {
        let Local { filters, parts, .. } = &self.local;
        for filter in &filters[side as usize] {
            if local::truth(filter, row).map_err(|Overflow| self.overflow(filter))? != Some(true) {
                return Ok(None);
            }
        }
        let (mut block, mut place) = (1u128, 1);
        for (field, part) in self.fields.iter().zip(parts).filter(|(field, _)| field.side == side) {
            let bits = field.bits();
            if bits > 0 {
                block |= self.encoded(field, part, row)? << place;
            }
            place += bits;
        }
        Ok(Some(block))
    }

    /// The bits of a field of a row.
    fn encoded<'a>(&'a self, field: &Field, part: &'a Part, row: &'a [Value<'a>]) -> Result<u128> {
        let expr = part.expr();
        let overflow = |Overflow| self.overflow(expr);
        Ok(match (part, &field.kind) {
            (Part::Number(_, scale), Kind::Number { least, most }) => {
                let number = match local::evaluate(expr, row).map_err(overflow)? {
                    Value::Number(number) => number,
                    Value::Date(days) => Decimal::whole(days),
                    _ => return Ok(0),
                };
                let Some(units) = number.at(*scale) else { return Err(self.fraction(expr, *scale)) };
                if units < *least || units > *most {
                    return Err(self.overflow(expr));
                }
                1 << (field.bits() - 1) | units.abs_diff(*least)
            }
            (Part::Truth(_), _) => match local::truth(expr, row).map_err(overflow)? {
                Some(value) => 0b10 | u128::from(value),
                None => 0,
            },
            (Part::Code(_, codes), _) => match codes.of(&local::evaluate(expr, row).map_err(overflow)?) {
                Some(code) => code as u128,
                None => return Err(self.fraction(expr, 0)),
            },
            _ => 0,
        })
    }

    /// The columns of an expression, as faults name them.
    fn columns_of(&self, expr: &Expr) -> String {
        let mut found: Vec<String> = vec![];
        expr.columns(&mut |side, at| {
            let name = quoted(&self.local.names.column(side, at).name);
            if !found.contains(&name) {
                found.push(name);
            }
        });
        match found.len() {
            1 => format!("the column {}", found.concat()),
            _ => format!("the columns {}", found.join(", ")),
        }
    }

    fn overflow(&self, expr: &Expr) -> Fault {
        too_large(&self.columns_of(expr), &expr.text(&self.local.names))
    }

    fn fraction(&self, expr: &Expr, scale: u8) -> Fault {
        let digits = match scale {
            0 => "is not whole".to_owned(),
            scale => format!("has more than {scale} digits after the point"),
        };
        Fault::of_value(format!(
            "a row has a number in {} that {digits}, which is more than the question takes in {}; round it, or write the \
             column with more digits in the question, such as \"amount:decimal2\"",
            self.columns_of(expr),
            quoted(expr.text(&self.local.names))
        ))
    }
}
