//! The files of which a table consists: most often one.

use super::words::words;
use super::{Batches, Fenced, Format, Source, open};
use crate::bounds;
use crate::fault::{Error, Place, Result, guarded};
use crate::input::Input;
use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::{ArrowError, SchemaRef};
use parquet::arrow::arrow_reader::ArrowReaderOptions;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tacit_crypto::fence::fenced;

/// A file.
pub(super) struct Part {
    pub input: Input,
    pub format: Format,
    /// How Parquet is read.
    pub options: ArrowReaderOptions,
    /// Where the table's columns are in it, if they are not in its order.
    pub order: Option<Vec<usize>>,
    /// How many rows of it were read the last time.
    pub rows: AtomicU64,
}

impl Part {
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
            return (part.input.path().to_owned(), Place::Row(row));
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
        if wanted != kind {
            let called = called(other, found);
            return unlike(format!("{called} holds {kind}, and in {first} {wanted}"));
        }
        order.push(found);
    }
    match (0..other.schema.fields().len()).find(|at| !order.contains(at)) {
        Some(at) => unlike(format!("{} is not in {first}", called(other, at))),
        None => Ok(order),
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
    let opened = guarded(|| open(part.format, stored, options, wanted));
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
        let long = fenced(|| bounds::long_row(&batch, most)).unwrap_or_default();
        let place = long.map(|row| Place::Row(before + row as u64 + 1));
        before += batch.num_rows() as u64;
        own[at].rows.store(before, Ordering::Relaxed);
        match place {
            Some(place) => {
                let error = Error::LongRow { path: path.clone(), place, most };
                Err(ArrowError::ExternalError(Box::new(error)))
            }
            None => Ok(batch),
        }
    })))
}

fn torn(part: usize, error: &ArrowError) -> ArrowError {
    ArrowError::ExternalError(Box::new(Torn { part, what: words(&error.to_string()) }))
}

/// Columns of a file that has them in another order.
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
        let columns: Option<Vec<_>> =
            self.places.iter().map(|at| batch.columns().get(*at).cloned()).collect();
        let rows = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        RecordBatch::try_new_with_options(self.schema.clone(), columns?, &rows).ok()
    }
}
