//! Rows on their way from CSV to columns and back.
//!
//! A CSV file's columns become text, an empty cell a null. The other way a null becomes an empty cell and an
//! empty text `""`, so that both stay apart; a cell that holds a comma, a quote or a line's end is quoted as
//! in RFC 4180, and rows end with LF. Numbers, dates, times and truth values are written as they are read:
//! decimals with all their digits, floats with the fewest that give the same number, points in time as
//! `2024-01-31T12:00:00`, those with a time zone in UTC and with `Z` behind them, UUIDs
//! as text, other bytes in hex. Lists and structures are refused.

use crate::columnar::{self, Format, NO_TEXT, Writer, plain, without_text};
use crate::csv;
use crate::excel::{SHEET_COLUMNS, SHEET_ROWS, SHORT_TEXT, is_too_long};
use crate::fault::{Error, Place, Result, gave_up};
use crate::input::{BUFFER, Packer, Packing};
use crate::records::Element;
use crate::unfit::Unfit;
use arrow_array::builder::LargeStringBuilder;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_schema::SchemaRef;
use std::fmt::Write as _;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use tacit_crypto::fence::fenced;

/// Rows of a batch of columns.
const BATCH: usize = 8192;

/// Finds what of all rows cannot go to a file called `target`, by reading and writing them to nothing: a fault
/// of it that showed behind a run would come when the other side has its result.
pub(crate) fn prove(source: &columnar::Source, target: &Path) -> Result<()> {
    let tried = match goes_to_csv(source, target) {
        true => try_lines(source, target),
        false => source.try_columns(target),
    };
    tried.map_err(|error| match error {
        Error::Unfit { path, place: Place::Row(row), column, what } if path == target => {
            let (path, place) = source.place(row);
            Error::Unfit { path, place, column, what }
        }
        other => other,
    })
}

/// As [`prove`], of a CSV file whose rows go to a workbook.
pub(crate) fn prove_workbook(source: &csv::Source, target: &Path) -> Result<()> {
    if source.columns().count() > SHEET_COLUMNS {
        return Err(too_many_columns(target));
    }
    let all: Vec<usize> = (0..source.columns().count()).collect();
    let mut rows = 1;
    source.read_columns(&all, |line, cells| {
        rows += 1;
        if rows > SHEET_ROWS {
            let (what, remedy) = ("more than 1,048,575 rows", "name it .parquet, .arrow or .csv");
            return Err(Error::NoRoom { path: target.to_owned(), what, remedy });
        }
        match cells.iter().position(|cell| is_too_long(cell)) {
            Some(at) if !source.unfit().is_left_empty() => {
                let (path, place, column) =
                    (source.path().to_owned(), Place::Line(line), (at + 1).to_string());
                let what = SHORT_TEXT.to_owned();
                Err(Error::Unfit { path, place, column, what })
            }
            _ => Ok(()),
        }
    })?;
    Ok(())
}

fn too_many_columns(target: &Path) -> Error {
    let (what, remedy) = ("more than 16,384 columns", "name it .parquet, .arrow or .csv");
    Error::NoRoom { path: target.to_owned(), what, remedy }
}

fn try_lines(source: &columnar::Source, target: &Path) -> Result<()> {
    let mut nothing = std::io::sink();
    let mut lines = Lines::new(target, source.schema(), &source.unfit().trial(), &mut nothing)?;
    for batch in source.batches(None)? {
        lines.write(&batch.map_err(|error| source.failed(error))?)?;
    }
    lines.finish()
}

/// Whether rows of columns go to CSV in an output of this name: where it says so, and where it says nothing
/// and they come from a database, whose answer has no format of its own.
pub(crate) fn goes_to_csv(source: &columnar::Source, target: &Path) -> bool {
    Packing::by_name(target).is_some() || (source.is_answer() && Format::by_name(target).is_none())
}

/// Refuses an output whose name says that it holds what we do not write: CSV under it would be taken for that.
pub(crate) fn is_ours(target: &Path) -> Result<()> {
    let end = target.extension().and_then(|end| end.to_str()).unwrap_or_default().to_ascii_lowercase();
    let kind = match end.as_str() {
        "xls" | "xlsm" | "xlsb" | "ods" | "numbers" => "spreadsheets of this kind; it writes .xlsx",
        "json" | "jsonl" | "ndjson" => "JSON",
        "avro" => "Avro",
        "orc" => "ORC",
        "sqlite" | "sqlite3" | "db" | "duckdb" | "mdb" | "accdb" => "databases in files",
        "zip" | "7z" | "rar" | "tar" | "tgz" => "archives",
        "xz" | "bz2" | "lz4" | "br" | "snappy" | "lzma" => "files packed so",
        "pdf" | "docx" | "html" | "xml" | "dta" | "sav" | "sas7bdat" | "rds" => "files of this kind",
        _ => return Ok(()),
    };
    Err(Error::NoFormat { path: target.to_owned(), kind })
}

/// Whether a file called `target` can hold each column's cells.
pub(crate) fn admits(source: &columnar::Source, target: &Path) -> Result<()> {
    is_ours(target)?;
    if goes_to_csv(source, target) {
        return has_text(source, target);
    }
    let format = Format::by_name(target).unwrap_or(source.format());
    if format == Format::Excel && source.schema().fields().len() > SHEET_COLUMNS {
        return Err(too_many_columns(target));
    }
    match columnar::lacks(format, source.schema(), source.format() == Format::Parquet) {
        None => Ok(()),
        Some((at, kind)) => {
            let (path, format) = (target.to_owned(), format.name());
            Err(Error::NoType { path, format, number: at + 1, kind })
        }
    }
}

/// Whether each column's cells have a text that a CSV file, called `target`, can hold.
pub(crate) fn has_text(source: &columnar::Source, target: &Path) -> Result<()> {
    let kinds = source.schema().fields().iter().map(|field| without_text(field.data_type()));
    match kinds.enumerate().find_map(|(at, kind)| Some((at, kind?))) {
        None => Ok(()),
        Some((at, kind)) => Err(Error::NoText { path: target.to_owned(), number: at + 1, kind }),
    }
}

/// Writes the rows that `wanted` says of their numbers to `output`, a file of columns called `target`. Returns the
/// number of rows.
pub(crate) fn to_columns(
    source: &csv::Source,
    wanted: impl FnMut(u64) -> Result<bool>,
    format: Format,
    target: &Path,
    output: &mut (impl Write + Send),
) -> Result<u64> {
    let schema = source.schema();
    let mut writer = Writer::new(format, output, target, &schema, &source.origin())?;
    let mut columns: Vec<_> = schema.fields().iter().map(|_| LargeStringBuilder::new()).collect();
    let mut flush = |columns: &mut [LargeStringBuilder]| {
        let arrays = columns.iter_mut().map(|column| Arc::new(column.finish()) as ArrayRef).collect();
        let batch = RecordBatch::try_new(schema.clone(), arrays);
        writer.write(&batch.map_err(|error| columnar::unwritable(target, &error))?)
    };
    let (mut waiting, mut written) = (0, 0);
    source.each_wanted(wanted, |row| {
        for (column, cell) in columns.iter_mut().zip(row) {
            column.append_option((!source.is_null(cell)).then_some(cell));
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

/// Writes the rows that `wanted` says of their number and element to `output`, a CSV file
/// called `target`, packed as that name says. Returns the number of rows.
pub(crate) fn to_csv(
    source: &columnar::Source,
    wanted: impl FnMut(u64, &[Option<Element>]) -> Result<bool>,
    target: &Path,
    output: &mut impl Write,
) -> Result<u64> {
    let mut lines = Lines::new(target, source.schema(), source.unfit(), output)?;
    let written = source.each_wanted(wanted, |rows| lines.write(rows))?;
    lines.finish()?;
    Ok(written)
}

/// Rows of columns on their way to a CSV file.
pub(crate) struct Lines<'a, W: Write> {
    target: &'a Path,
    schema: SchemaRef,
    unfit: Unfit,
    written: u64,
    output: std::io::BufWriter<Packer<'a, W>>,
}

impl<'a, W: Write> Lines<'a, W> {
    /// Begins a file called `target`, packed as that name says, with the columns' names.
    pub(crate) fn new(
        target: &'a Path,
        schema: &SchemaRef,
        unfit: &Unfit,
        output: &'a mut W,
    ) -> Result<Self> {
        let fault = |source| Error::Unwritable { path: target.to_owned(), source };
        let packer = Packing::by_name(target).unwrap_or_default().pack(output).map_err(fault)?;
        let mut output = std::io::BufWriter::with_capacity(BUFFER, packer);
        let mut line = String::new();
        for (at, field) in schema.fields().iter().enumerate() {
            cell(&mut line, at, field.name());
        }
        line.push('\n');
        output.write_all(line.as_bytes()).map_err(fault)?;
        Ok(Lines { target, schema: schema.clone(), unfit: unfit.clone(), written: 0, output })
    }

    /// Appends these rows.
    pub(crate) fn write(&mut self, rows: &RecordBatch) -> Result<()> {
        let target = self.target;
        fenced(|| self.write_texts(rows))
            .unwrap_or_else(|panicked| Err(columnar::unwritable(target, &gave_up(&panicked))))
    }

    fn write_texts(&mut self, rows: &RecordBatch) -> Result<()> {
        let target = self.target;
        let textless = |at: usize, row: usize| Error::Unfit {
            path: target.to_owned(),
            place: Place::Row(self.written + row as u64 + 1),
            column: format!("`{}`", tacit_crypto::text::shown(self.schema.field(at).name())),
            what: NO_TEXT.to_owned(),
        };
        let columns: Vec<ArrayRef> = rows
            .columns()
            .iter()
            .zip(self.schema.fields())
            .enumerate()
            .map(|(at, (column, field))| {
                self.unfit.through(column, |column| plain(column, field)).map_err(|row| textless(at, row))
            })
            .collect::<Result<_>>()?;
        let options = FormatOptions::new().with_display_error(false);
        let texts: Vec<ArrayFormatter<'_>> = columns
            .iter()
            .enumerate()
            .map(|(at, column)| ArrayFormatter::try_new(column, &options).map_err(|_| textless(at, 0)))
            .collect::<Result<_>>()?;
        let (mut line, mut text) = (String::new(), String::new());
        for row in 0..rows.num_rows() {
            line.clear();
            for (at, (column, texts)) in columns.iter().zip(&texts).enumerate() {
                if column.is_null(row) {
                    separate(&mut line, at);
                    continue;
                }
                text.clear();
                match write!(text, "{}", texts.value(row)) {
                    Ok(()) => cell(&mut line, at, &text),
                    Err(_) if self.unfit.is_left_empty() => {
                        self.unfit.add();
                        separate(&mut line, at);
                    }
                    Err(_) => return Err(textless(at, row)),
                }
            }
            // A lone null: an empty line would be no row.
            if line.is_empty() {
                line.push_str("\"\"");
            }
            line.push('\n');
            let fault = |source| Error::Unwritable { path: target.to_owned(), source };
            self.output.write_all(line.as_bytes()).map_err(fault)?;
        }
        self.written += rows.num_rows() as u64;
        Ok(())
    }

    /// Ends the file.
    pub(crate) fn finish(self) -> Result<()> {
        let target = self.target;
        let fault = |source| Error::Unwritable { path: target.to_owned(), source };
        let packer = self.output.into_inner().map_err(|error| fault(error.into_error()))?;
        packer.finish().map_err(fault)
    }
}

fn separate(line: &mut String, at: usize) {
    if at > 0 {
        line.push(',');
    }
}

/// Appends a cell that is no null, in quotes where it needs them.
fn cell(line: &mut String, at: usize, text: &str) {
    separate(line, at);
    if !text.is_empty() && !text.contains([',', '"', '\r', '\n', ';', '\t', '|']) {
        line.push_str(text);
        return;
    }
    line.push('"');
    for part in text.split_inclusive('"') {
        line.push_str(part);
        if part.ends_with('"') {
            line.push('"');
        }
    }
    line.push('"');
}
