//! The files of which a table consists: most often one.

use super::words::words;
use super::{Batches, EXTENSION, Fenced, Format, Source, dictionaries, open};
use crate::bounds;
use crate::fault::{Error, Place, Result, gave_up, guarded};
use crate::input::Input;
use crate::kept::NUMERIC;
use crate::within::widened;
use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::{ArrowError, DataType, Field, FieldRef, SchemaRef};
use parquet::arrow::arrow_reader::ArrowReaderOptions;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tacit_crypto::fence::fenced;

/// A file.
pub(super) struct Part {
    pub input: Input,
    pub format: Format,
    /// How Parquet is read.
    pub options: ArrowReaderOptions,
    /// What is known of its columns' pages.
    pub pages: Vec<bounds::Column>,
    /// Where the table's columns are in it, if it does not have them as the table has.
    pub order: Option<Vec<usize>>,
    /// How many rows of it were read the last time.
    pub rows: AtomicU64,
}

impl Part {
    /// Where a row of it stands, counted from 1: its line, where it came from a file of lines.
    fn place(&self, row: u64) -> Place {
        self.input.lines().and_then(|lines| lines.of(row)).map_or(Place::Row(row), Place::Line)
    }

    /// Whether the table's column at this place is encrypted.
    pub(super) fn is_encrypted(&self, at: usize) -> bool {
        let at = self.order.as_ref().map_or(Some(at), |order| order.get(at).copied());
        at.and_then(|at| self.pages.get(at)).is_some_and(|column| column.is_encrypted)
    }

    /// That it cannot be read.
    pub(super) fn fault(&self, what: String) -> Error {
        self.input.fault().unwrap_or_else(|| Error::Damaged {
            path: self.input.path().to_owned(),
            format: self.format.name(),
            what,
        })
    }
}

/// That a library failed to read a file of these.
#[derive(Debug)]
pub(super) struct Torn {
    pub part: usize,
    pub what: String,
}

impl std::fmt::Display for Torn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for Torn {}

/// The file of a row, counted from 1, and its place there. The files before it have been read to their ends.
pub(super) fn place(parts: &[Part], row: u64) -> (PathBuf, Place) {
    let mut row = row;
    for (at, part) in parts.iter().enumerate() {
        let rows = part.rows.load(Ordering::Relaxed);
        if row <= rows || at + 1 == parts.len() {
            return (part.input.path().to_owned(), part.place(row));
        }
        row -= rows;
    }
    (PathBuf::new(), Place::Row(row))
}

/// Where the columns of `whole` are in `other`. Errors: columns that are not the same.
pub(super) fn order(whole: &Source, other: &Source) -> Result<Vec<usize>> {
    let first = tacit_crypto::text::shown(&whole.path().to_string_lossy());
    let unlike = |what: String| Err(Error::Unlike { path: other.path().to_owned(), what });
    let called = |source: &Source, at: usize| match source.is_answer() {
        // A name may be data, where the file has no header.
        true => format!("column {}", at + 1),
        false => {
            format!("column {} (`{}`)", at + 1, tacit_crypto::text::shown(source.schema.field(at).name()))
        }
    };
    let mut order: Vec<usize> = Vec::new();
    for (at, field) in whole.schema.fields().iter().enumerate() {
        let same = |place: &usize| other.schema.field(*place).name().trim() == field.name().trim();
        let found = (0..other.schema.fields().len()).find(|place| same(place) && !order.contains(place));
        let Some(found) = found else {
            return unlike(format!("{} of {first} is missing there", called(whole, at)));
        };
        let (wanted, kind) = (field.data_type(), other.schema.field(found).data_type());
        if widened(wanted) != widened(kind) && !(is_text(wanted) && is_text(kind)) {
            let called = called(other, found);
            // Where the words are equal the types' names say more.
            let (words, theirs) = (kind_of(kind), kind_of(wanted));
            return unlike(match words == theirs {
                true => format!("{called} has {words} ({kind}), but in {first} {wanted}"),
                false => format!("{called} has {words}, but in {first} {theirs}"),
            });
        }
        // What a cell's text means, where its type does not say it.
        let marks = |field: &Field| [EXTENSION, NUMERIC.0].map(|mark| field.metadata().get(mark).cloned());
        if marks(field) != marks(other.schema.field(found)) {
            let called = called(other, found);
            return unlike(format!("{called} has other values than in {first}"));
        }
        order.push(found);
    }
    match (0..other.schema.fields().len()).find(|at| !order.contains(at)) {
        Some(at) => unlike(format!("{} is not in {first}", called(other, at))),
        None => Ok(order),
    }
}

/// Whether all cells of this type are text, however they are stored.
pub(super) fn is_text(kind: &DataType) -> bool {
    match kind {
        DataType::Dictionary(_, values) => is_text(values),
        other => matches!(other, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View),
    }
}

/// What cells of this type are, in a word or two.
fn kind_of(kind: &DataType) -> &'static str {
    match kind {
        text if is_text(text) => "text",
        DataType::Dictionary(_, values) => kind_of(values),
        DataType::RunEndEncoded(_, values) => kind_of(values.data_type()),
        DataType::Null => "nothing",
        DataType::Boolean => "truth values",
        number if number.is_integer() => "whole numbers",
        number if number.is_numeric() => "numbers",
        DataType::Date32 | DataType::Date64 => "dates",
        DataType::Timestamp(..) => "timestamps",
        DataType::Time32(_) | DataType::Time64(_) => "times of day",
        DataType::Duration(_) | DataType::Interval(_) => "spans of time",
        DataType::Struct(_) | DataType::Map(..) => "structures",
        list if list.is_nested() => "lists",
        _ => "bytes",
    }
}

/// The batches of these files one after another, of all columns or of these, as `schema` has them. The first is
/// opened at once, the others when they are reached.
pub(super) fn batches(
    parts: &Arc<Vec<Part>>,
    range: Range<usize>,
    columns: Option<Vec<usize>>,
    schema: &SchemaRef,
    most: u64,
) -> Result<Batches<'static>> {
    let first = part(parts, range.start, columns.clone(), schema, most)?;
    if range.len() < 2 {
        return Ok(first);
    }
    let (parts, schema) = (parts.clone(), schema.clone());
    let later = (range.start + 1..range.end).flat_map(move |at| {
        part(&parts, at, columns.clone(), &schema, most).unwrap_or_else(|error| {
            Box::new(std::iter::once(Err(ArrowError::ExternalError(Box::new(error)))))
        })
    });
    Ok(Box::new(first.chain(later)))
}

/// The batches of one file.
fn part(
    parts: &Arc<Vec<Part>>,
    at: usize,
    columns: Option<Vec<usize>>,
    schema: &SchemaRef,
    most: u64,
) -> Result<Batches<'static>> {
    let part = &parts[at];
    let (stored, options) = (part.input.stored()?, part.options.clone());
    let reordered = part.order.as_ref().map(|order| Reordered::of(order, columns.as_deref(), schema));
    let wanted = match &reordered {
        None => columns,
        Some(reordered) => reordered.wanted.clone(),
    };
    let opened = guarded(|| open(part.format, stored, options, wanted, &part.pages));
    let opened = opened.map_err(|error| part.fault(words(&error)))?;
    let (path, mut before, own) = (part.input.path().to_owned(), 0u64, parts.clone());
    own[at].rows.store(0, Ordering::Relaxed);
    Ok(Box::new(Fenced(Some(opened)).map(move |batch| {
        let batch = batch.map_err(|error| match error {
            own @ ArrowError::ExternalError(_) => own,
            error => torn(at, &error),
        })?;
        let batch = match &reordered {
            None => batch,
            Some(reordered) => reordered
                .apply(&batch)
                .ok_or_else(|| ArrowError::ExternalError(Box::new(Error::Changed(path.clone()))))?,
        };
        let rows = batch.num_rows() as u64;
        let place = |row| own[at].place(before + row);
        let batch = bounded(batch, &path, place, most, bounds::long_row).map_err(|error| match error {
            own @ ArrowError::ExternalError(_) => own,
            error => torn(at, &error),
        });
        before += rows;
        own[at].rows.store(before, Ordering::Relaxed);
        batch
    })))
}

/// The batch, if `long_row` finds no row in it that is longer than `most`; `place` says where in the file `path` a
/// row of it stands. A search that gives up has found nothing out: the batch is damaged.
fn bounded(
    batch: RecordBatch,
    path: &Path,
    place: impl Fn(u64) -> Place,
    most: u64,
    long_row: impl FnOnce(&RecordBatch, u64) -> Option<usize>,
) -> std::result::Result<RecordBatch, ArrowError> {
    match fenced(|| long_row(&batch, most)) {
        Ok(None) => Ok(batch),
        Ok(Some(row)) => {
            let error = Error::LongRow { path: path.to_owned(), place: place(row as u64 + 1), most };
            Err(ArrowError::ExternalError(Box::new(error)))
        }
        Err(panicked) => Err(ArrowError::ParseError(gave_up(&panicked))),
    }
}

fn torn(part: usize, error: &ArrowError) -> ArrowError {
    ArrowError::ExternalError(Box::new(Torn { part, what: words(&error.to_string()) }))
}

/// Columns of a file that has them in another order, or text or dictionaries stored otherwise.
struct Reordered {
    /// Those of the file that are read, ascending; all of them if nothing.
    wanted: Option<Vec<usize>>,
    /// Where each of the table's is among them.
    places: Vec<usize>,
    schema: SchemaRef,
}

impl Reordered {
    /// `order` says where the table's columns are in the file, and `columns` which of them are wanted.
    fn of(order: &[usize], columns: Option<&[usize]>, schema: &SchemaRef) -> Self {
        let Some(columns) = columns else {
            return Reordered { wanted: None, places: order.to_vec(), schema: schema.clone() };
        };
        let mut wanted: Vec<usize> = columns.iter().map(|at| order[*at]).collect();
        wanted.sort_unstable();
        let place = |at: &usize| wanted.binary_search(&order[*at]).unwrap_or(0);
        let places = columns.iter().map(place).collect();
        let schema = schema.project(columns).map_or_else(|_| schema.clone(), Arc::new);
        Reordered { wanted: Some(wanted), places, schema }
    }

    fn apply(&self, batch: &RecordBatch) -> Option<RecordBatch> {
        let column = |(at, field): (&usize, &FieldRef)| {
            let column = batch.columns().get(*at)?;
            let wanted = field.data_type();
            match column.data_type() {
                same if same == wanted => Some(column.clone()),
                _ if is_text(wanted) => arrow_cast::cast(column, wanted).ok(),
                narrow if widened(narrow) == *wanted => dictionaries::keyed_as(column, wanted).ok(),
                _ => Some(column.clone()),
            }
        };
        let columns: Option<Vec<_>> = self.places.iter().zip(self.schema.fields()).map(column).collect();
        let rows = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        RecordBatch::try_new_with_options(self.schema.clone(), columns?, &rows).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::{ArrayRef, StringArray};

    /// A search for a long row that gives up on a damaged batch is an error of the file, not a batch without one.
    #[test]
    fn a_batch_whose_rows_cannot_be_measured_is_refused() {
        let texts: ArrayRef = Arc::new(StringArray::from(vec!["a", "bb", "ccc"]));
        let batch = RecordBatch::try_from_iter([("a", texts)]).unwrap();
        let of = |found: fn(&RecordBatch, u64) -> Option<usize>| {
            let place = |row| Place::Row(10 + row);
            bounded(batch.clone(), Path::new("t.arrow"), place, 2, found).map_err(|error| error.to_string())
        };
        assert_eq!(of(|_, _| None).unwrap().num_rows(), 3);
        let long = of(|_, _| Some(2)).unwrap_err();
        assert!(long.contains("t.arrow") && long.contains("13"), "{long}");
        let gave_up = of(|batch, _| Some(batch.num_rows() / (batch.num_columns() - 1))).unwrap_err();
        assert!(gave_up.contains(crate::fault::PANICKED), "{gave_up}");
    }
}
