//! All of our rows with a column of text in front of their own, where they come from columns or go to them.

use crate::columnar::{self, Format, Writer, unwritable};
use crate::convert::{self, Lines};
use crate::csv;
use crate::fault::Result;
use crate::records::Element;
use arrow_array::builder::LargeStringBuilder;
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use std::cell::RefCell;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

/// Rows that are written together, about.
const BATCH: usize = 8192;

/// A column of this name, and ours.
fn schema(name: &str, own: &SchemaRef) -> SchemaRef {
    let first = Arc::new(Field::new(name, DataType::LargeUtf8, true));
    let fields: Vec<_> = std::iter::once(first).chain(own.fields().iter().cloned()).collect();
    SchemaRef::new(Schema::new_with_metadata(fields, own.metadata().clone()))
}

/// Writes all rows of a table of columns to `output`, which is called `target`, each behind the text that `cell` gives
/// of its number and elements. Returns how many.
pub(crate) fn columns(
    source: &columnar::Source,
    name: &str,
    mut cell: impl FnMut(u64, &[Option<Element>]) -> Result<String>,
    target: &Path,
    output: &mut (impl Write + Send),
) -> Result<u64> {
    let schema = schema(name, source.schema());
    // What goes in front of a batch's rows, told before the rows are.
    let texts = RefCell::new(LargeStringBuilder::new());
    let every = |row: u64, elements: &[Option<Element>]| {
        texts.borrow_mut().append_value(cell(row, elements)?);
        Ok(true)
    };
    let extended = |batch: &RecordBatch| {
        let first = Arc::new(texts.borrow_mut().finish()) as ArrayRef;
        let columns = std::iter::once(first).chain(batch.columns().iter().cloned()).collect();
        RecordBatch::try_new(schema.clone(), columns).map_err(|error| unwritable(target, &error))
    };
    if convert::goes_to_csv(source, target) {
        let mut lines = Lines::new(target, &schema, source.unfit(), output)?;
        let written = source.each_wanted(every, |batch| lines.write(&extended(batch)?))?;
        lines.finish()?;
        return Ok(written);
    }
    let format = Format::by_name(target).unwrap_or(source.format());
    let mut writer = source.writer_behind(1, format, output, target, &schema)?;
    let written = source.each_wanted(every, |batch| writer.write(&extended(batch)?))?;
    writer.finish()?;
    Ok(written)
}

/// Writes all rows of a CSV file to `output`, a file of columns called `target`, as [`columns`] does.
pub(crate) fn csv_to_columns(
    source: &csv::Source,
    name: &str,
    cell: impl FnMut(u64) -> Result<String>,
    format: Format,
    target: &Path,
    output: &mut (impl Write + Send),
) -> Result<u64> {
    let schema = schema(name, &source.schema());
    let mut writer = Writer::new(format, output, target, &schema, &source.origin())?;
    let mut columns: Vec<_> = schema.fields().iter().map(|_| LargeStringBuilder::new()).collect();
    let mut flush = |columns: &mut [LargeStringBuilder]| {
        let columns = columns.iter_mut().map(|column| Arc::new(column.finish()) as ArrayRef).collect();
        let batch = RecordBatch::try_new(schema.clone(), columns);
        writer.write(&batch.map_err(|error| unwritable(target, &error))?)
    };
    let (mut waiting, mut written) = (0, 0);
    let (text, mut cell) = (RefCell::new(String::new()), cell);
    let every = |row: u64| {
        *text.borrow_mut() = cell(row)?;
        Ok(true)
    };
    source.each_wanted(every, |fields| {
        let [first, own @ ..] = &mut columns[..] else { return Ok(()) };
        first.append_value(text.take());
        for (column, field) in own.iter_mut().zip(fields) {
            column.append_option((!source.is_null(field)).then_some(field));
        }
        waiting += 1;
        written += 1;
        if waiting == BATCH {
            waiting = 0;
            flush(&mut columns)?;
        }
        Ok(())
    })?;
    if waiting > 0 {
        flush(&mut columns)?;
    }
    writer.finish()?;
    Ok(written)
}
