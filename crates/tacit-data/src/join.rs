//! Our rows with the other side's columns behind them, where they come from columns or go to them.
//!
//! A row of ours comes once for each of the other side's with its key; in a left join it comes in any case,
//! behind it whether it matches. What the other side gave is text.

use crate::behind::Behind;
use crate::columnar::{self, Format, Writer, unwritable};
use crate::convert::{self, Lines};
use crate::csv;
use crate::fault::{Result, guarded};
use crate::records::{Element, Found};
use arrow_array::builder::LargeStringBuilder;
use arrow_array::{ArrayRef, RecordBatch, UInt32Array};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use std::cell::RefCell;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

/// Rows that are written together, about.
const BATCH: usize = 8192;

/// Our columns with those behind.
fn schema(behind: &Behind<'_, '_>, own: &SchemaRef) -> SchemaRef {
    let names = behind.named(own.fields().iter().map(|field| field.name().as_str()));
    let kind = |at: usize| if behind.is_left && at == 0 { DataType::Boolean } else { DataType::LargeUtf8 };
    let more = names.into_iter().enumerate().map(|(at, name)| Arc::new(Field::new(name, kind(at), true)));
    let fields: Vec<_> = own.fields().iter().cloned().chain(more).collect();
    SchemaRef::new(Schema::new_with_metadata(fields, own.metadata().clone()))
}

fn builders(behind: &Behind<'_, '_>) -> Vec<LargeStringBuilder> {
    (0..behind.columns()).map(|_| LargeStringBuilder::new()).collect()
}

/// The columns that `more` holds, with the types that [`schema`] gives them.
fn finished(
    behind: &Behind<'_, '_>,
    more: &mut [LargeStringBuilder],
) -> std::result::Result<Vec<ArrayRef>, ArrowError> {
    let column = |(at, column): (usize, &mut LargeStringBuilder)| {
        let texts = Arc::new(column.finish()) as ArrayRef;
        match behind.is_left && at == 0 {
            true => arrow_cast::cast(&texts, &DataType::Boolean),
            false => Ok(texts),
        }
    };
    more.iter_mut().enumerate().map(column).collect()
}

/// Writes the rows of a table of columns to `output`, which is called `target`: of those of whose number and
/// elements `found` gives what they match by. Returns how many.
pub(crate) fn columns(
    source: &columnar::Source,
    mut found: impl FnMut(u64, &[Option<Element>]) -> Result<Option<Found>>,
    behind: &Behind<'_, '_>,
    target: &Path,
    output: &mut (impl Write + Send),
) -> Result<u64> {
    let schema = schema(behind, source.schema());
    let mut written = 0;
    // What a batch's rows match by, told before its rows are.
    let chosen = RefCell::new(Vec::new());
    let choose = |row: u64, elements: &[Option<Element>]| {
        let at = found(row, elements)?;
        let goes_out = behind.goes_out(at);
        if goes_out {
            chosen.borrow_mut().push(at);
        }
        Ok(goes_out)
    };
    let mut each = |batch: &RecordBatch, write: &mut dyn FnMut(&RecordBatch) -> Result<()>| {
        let (mut own, mut more) = (Vec::new(), builders(behind));
        for (at, found) in (0..).zip(chosen.take()) {
            behind.each(found, |row| {
                own.push(at);
                more.iter_mut().zip(row).for_each(|(column, cell)| column.append_option(*cell));
                Ok(())
            })?;
        }
        written += own.len() as u64;
        let own = UInt32Array::from(own);
        let own = guarded(|| arrow_select::take::take_arrays(batch.columns(), &own, None));
        let mut columns = own.map_err(|error| unwritable(target, &error))?;
        columns.extend(finished(behind, &mut more).map_err(|error| unwritable(target, &error))?);
        let batch = RecordBatch::try_new(schema.clone(), columns);
        write(&batch.map_err(|error| unwritable(target, &error))?)
    };
    if convert::goes_to_csv(source, target) {
        let mut lines = Lines::new(target, &schema, source.unfit(), output)?;
        source.each_wanted(choose, |batch| each(batch, &mut |rows| lines.write(rows)))?;
        lines.finish()?;
    } else {
        let format = Format::by_name(target).unwrap_or(source.format());
        let mut writer = source.writer(format, output, target, &schema)?;
        source.each_wanted(choose, |batch| each(batch, &mut |rows| writer.write(rows)))?;
        writer.finish()?;
    }
    Ok(written)
}

/// Writes the rows of a CSV file to `output`, a file of columns called `target`, as [`columns`] does.
pub(crate) fn csv_to_columns(
    source: &csv::Source,
    mut found: impl FnMut(u64) -> Result<Option<Found>>,
    behind: &Behind<'_, '_>,
    format: Format,
    target: &Path,
    output: &mut (impl Write + Send),
) -> Result<u64> {
    let schema = schema(behind, &source.schema());
    let mut writer = Writer::new(format, output, target, &schema, &source.origin())?;
    let mut own: Vec<_> = source.columns().map(|_| LargeStringBuilder::new()).collect();
    let mut more = builders(behind);
    let mut flush = |own: &mut [LargeStringBuilder], more: &mut [LargeStringBuilder]| {
        let mut columns: Vec<_> =
            own.iter_mut().map(|column| Arc::new(column.finish()) as ArrayRef).collect();
        columns.extend(finished(behind, more).map_err(|error| unwritable(target, &error))?);
        let batch = RecordBatch::try_new(schema.clone(), columns);
        writer.write(&batch.map_err(|error| unwritable(target, &error))?)
    };
    let (mut waiting, mut written) = (0, 0);
    let chosen = std::cell::Cell::new(None);
    let choose = |row: u64| {
        let at = found(row)?;
        chosen.set(at);
        Ok(behind.goes_out(at))
    };
    source.each_wanted(choose, |fields| {
        let fields: Vec<&str> = fields.collect();
        behind.each(chosen.get(), |row| {
            for (column, cell) in own.iter_mut().zip(&fields) {
                column.append_option((!source.is_null(cell)).then_some(*cell));
            }
            more.iter_mut().zip(row).for_each(|(column, cell)| column.append_option(*cell));
            waiting += 1;
            written += 1;
            Ok(())
        })?;
        if waiting >= BATCH {
            waiting = 0;
            flush(&mut own, &mut more)?;
        }
        Ok(())
    })?;
    if waiting > 0 {
        flush(&mut own, &mut more)?;
    }
    writer.finish()?;
    Ok(written)
}
