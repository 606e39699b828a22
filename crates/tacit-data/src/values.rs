//! Tables to compute on: values in their columns, and columns of results behind their own.
//!
//! A cell becomes the text of a value, whatever file it comes from: integers and truth values as they are,
//! floats and decimals if they are whole numbers, dates as days since 1970-01-01 (a negative number before),
//! lists of these as `[1, 2]`, text as it stands. [`Form`] says what a column's text means beyond that: dates
//! and decimals of a CSV file, which has no types, and decimals that are not whole. A null is refused.
//!
//! Results come with a type. A file of columns holds them as such; in a CSV file they are text.

use crate::behind::beside;
use crate::columnar::{self, Format, Origin, Texts, Writer, is_key, is_moment};
use crate::convert::{self, Lines};
use crate::csv::{self, Contents, Options};
use crate::excel::MOST_TEXT;
use crate::fault::{Error, Place, Result, guarded};
use crate::form::scaled;
pub use crate::form::{COMMA_SET, DECIMAL_COMMA, Form, decimal, fraction};
use crate::keys::plain;
use crate::opened::{self, Opened};
use crate::unfit::Unfit;
use arrow_array::builder::LargeStringBuilder;
use arrow_array::cast::AsArray;
use arrow_array::{
    Array, ArrayRef, BooleanArray, Int8Array, Int16Array, Int32Array, Int64Array, RecordBatch, StringArray,
    UInt8Array, UInt16Array, UInt32Array, UInt64Array,
};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Rows that are written together.
const BATCH: usize = 8192;

/// A column to compute on, by its name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Column {
    /// The name, as the table has it.
    pub name: String,
    /// What its text means.
    pub form: Form,
}

impl Column {
    /// Reads `COL`, `COL:date` or `COL:decimalN`. Any other end with a colon belongs to the name.
    pub fn parse(text: &str) -> Self {
        let typed = text.rsplit_once(':').and_then(|(name, end)| Some((name, Form::named(end)?)));
        let (name, form) = typed.unwrap_or((text, Form::Plain));
        Column { name: plain(name), form }
    }
}

/// A column to compute on, found in its table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Wanted {
    /// Where it stands, from 0.
    pub at: usize,
    form: Form,
    /// As errors call it: what the caller gave, else its number.
    shown: String,
}

impl Wanted {
    /// Whether its cells are days since 1970-01-01, which are negative before.
    pub fn is_date(&self) -> bool {
        self.form == Form::Date
    }
}

/// The type of a column of results.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Truth values.
    Bool,
    /// Integers of so many bits, 64 at most, in two's complement or from zero on.
    Integer {
        /// Bits that the largest takes.
        bits: u32,
        /// Whether they may be negative.
        signed: bool,
    },
    /// Text.
    Text,
}

/// A cell of a column of results; one that is not of the column's kind is a null.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Value {
    /// Nothing.
    Null,
    /// Of [`Kind::Bool`].
    Bool(bool),
    /// Of [`Kind::Integer`].
    Integer(i128),
    /// Of [`Kind::Text`].
    Text(String),
}

impl Value {
    fn text(self) -> String {
        match self {
            Value::Null => String::new(),
            Value::Bool(value) => value.to_string(),
            Value::Integer(value) => value.to_string(),
            Value::Text(text) => text,
        }
    }
}

impl Kind {
    fn data_type(self) -> DataType {
        match self {
            Kind::Bool => DataType::Boolean,
            Kind::Integer { bits: ..=8, signed: false } => DataType::UInt8,
            Kind::Integer { bits: ..=16, signed: false } => DataType::UInt16,
            Kind::Integer { bits: ..=32, signed: false } => DataType::UInt32,
            Kind::Integer { signed: false, .. } => DataType::UInt64,
            Kind::Integer { bits: ..=8, .. } => DataType::Int8,
            Kind::Integer { bits: ..=16, .. } => DataType::Int16,
            Kind::Integer { bits: ..=32, .. } => DataType::Int32,
            Kind::Integer { .. } => DataType::Int64,
            Kind::Text => DataType::Utf8,
        }
    }

    fn array(self, cells: Vec<Value>) -> ArrayRef {
        fn integer<T: TryFrom<i128>>(cell: &Value) -> Option<T> {
            if let Value::Integer(value) = cell { T::try_from(*value).ok() } else { None }
        }
        match self.data_type() {
            DataType::Boolean => Arc::new(BooleanArray::from_iter(
                cells.iter().map(|cell| if let Value::Bool(value) = cell { Some(*value) } else { None }),
            )),
            DataType::UInt8 => Arc::new(UInt8Array::from_iter(cells.iter().map(integer::<u8>))),
            DataType::UInt16 => Arc::new(UInt16Array::from_iter(cells.iter().map(integer::<u16>))),
            DataType::UInt32 => Arc::new(UInt32Array::from_iter(cells.iter().map(integer::<u32>))),
            DataType::UInt64 => Arc::new(UInt64Array::from_iter(cells.iter().map(integer::<u64>))),
            DataType::Int8 => Arc::new(Int8Array::from_iter(cells.iter().map(integer::<i8>))),
            DataType::Int16 => Arc::new(Int16Array::from_iter(cells.iter().map(integer::<i16>))),
            DataType::Int32 => Arc::new(Int32Array::from_iter(cells.iter().map(integer::<i32>))),
            DataType::Int64 => Arc::new(Int64Array::from_iter(cells.iter().map(integer::<i64>))),
            _ => Arc::new(StringArray::from_iter(
                cells.into_iter().map(|cell| if let Value::Text(text) = cell { Some(text) } else { None }),
            )),
        }
    }
}

/// A table whose columns hold values.
pub struct Table(Inner);

enum Inner {
    Csv(Box<csv::Source>),
    Columns(Box<columnar::Source>),
}

impl Table {
    /// Opens the table at `path`, `-` being standard input. `options` hold for CSV alone.
    pub fn open(path: &Path, options: Options) -> Result<Self> {
        Self::open_all(&[path.to_owned()], options)
    }

    /// Opens several tables as one, as [`Source::open_all`](crate::table::Source::open_all) does.
    pub fn open_all(paths: &[PathBuf], options: Options) -> Result<Self> {
        Ok(Table(match opened::open(paths, &options)? {
            Opened::Columns(source) => Inner::Columns(source),
            Opened::Csv(input) => Inner::Csv(Box::new(csv::Source::from_input(input, options)?)),
        }))
    }

    /// The file and the place in it of a row that stands at `place` of the table.
    pub fn located(&self, place: Place) -> (PathBuf, Place) {
        match (&self.0, place) {
            (Inner::Columns(source), Place::Row(row)) => source.place(row),
            (Inner::Columns(source), place) => (source.path().to_owned(), place),
            (Inner::Csv(source), place) => (source.path().to_owned(), place),
        }
    }

    /// Takes cells that are one of these words as empty.
    pub fn with_nulls(mut self, nulls: &[String]) -> Self {
        match &mut self.0 {
            Inner::Csv(source) => source.set_nulls(nulls.to_vec()),
            Inner::Columns(source) => source.set_nulls(nulls.to_vec()),
        }
        self
    }

    /// The columns' names. Never to be shown: those of a file without a header are data.
    pub fn names(&self) -> Vec<&str> {
        match &self.0 {
            Inner::Csv(source) => source.columns().collect(),
            Inner::Columns(source) => {
                source.schema().fields().iter().map(|field| field.name().as_str()).collect()
            }
        }
    }

    /// The file's size in bytes when it was opened, as it is packed.
    pub fn bytes(&self) -> u64 {
        match &self.0 {
            Inner::Csv(source) => source.bytes(),
            Inner::Columns(source) => source.bytes(),
        }
    }

    /// Finds these columns. Errors: one that is missing or there twice, or whose cells are no values.
    pub fn find(&self, columns: &[Column]) -> Result<Vec<Wanted>> {
        let wanted = |column: &Column| {
            let at = match &self.0 {
                Inner::Csv(source) => source.positions(std::slice::from_ref(&column.name))?[0],
                Inner::Columns(source) => source.position(&column.name)?,
            };
            let shown = format!("`{}`", tacit_crypto::text::shown(&column.name));
            self.checked(Wanted { at, form: column.form, shown })
        };
        columns.iter().map(wanted).collect()
    }

    /// The columns at these places, counted from 0. Errors: one whose cells are no values.
    pub fn at(&self, places: impl IntoIterator<Item = usize>) -> Result<Vec<Wanted>> {
        let wanted = |at: usize| Wanted { at, form: Form::Plain, shown: (at + 1).to_string() };
        places.into_iter().map(|at| self.checked(wanted(at))).collect()
    }

    fn checked(&self, wanted: Wanted) -> Result<Wanted> {
        let Inner::Columns(source) = &self.0 else { return Ok(wanted) };
        let found = source.schema().field(wanted.at).data_type();
        let remedy = match refused(found, wanted.form) {
            None => return Ok(wanted),
            Some(remedy) => remedy,
        };
        let (path, found) = (source.path().to_owned(), found.to_string());
        Err(Error::ValueType { path, column: wanted.shown, found, remedy })
    }

    /// Hands the values of every row to `visit`, with where it stands. Errors name place and column, and
    /// never show a cell.
    pub fn read<E: From<Error>>(
        &self,
        columns: &[Wanted],
        mut visit: impl FnMut(Place, &[&str]) -> std::result::Result<(), E>,
    ) -> std::result::Result<Read, E> {
        let mut texts: Vec<String> = vec![String::new(); columns.len()];
        let contents = match &self.0 {
            Inner::Csv(source) => {
                let places: Vec<usize> = columns.iter().map(|column| column.at).collect();
                source.read_columns(&places, |line, cells| {
                    let place = Place::Line(line);
                    for ((column, text), cell) in columns.iter().zip(&mut texts).zip(cells) {
                        text.clear();
                        if !cell.is_empty() && source.is_null(cell) {
                            let (path, column) = (source.path().to_owned(), column.shown.clone());
                            return Err(Error::NoValue { path, place, column }.into());
                        }
                        let read = column.form.read_written(cell, source.has_decimal_comma(), text);
                        read.map_err(|what| self.fault(place, column, what))?;
                    }
                    visit(place, &texts.iter().map(String::as_str).collect::<Vec<_>>())
                })?
            }
            Inner::Columns(source) => {
                let mut contents = Contents::start();
                let mut needed: Vec<usize> = columns.iter().map(|column| column.at).collect();
                needed.sort_unstable();
                needed.dedup();
                // Of no column at all the rows still count; Parquet's reader gives them with one.
                let read = if needed.is_empty() { vec![0] } else { needed.clone() };
                let width = source.schema().fields().len();
                for batch in source.batches(Some(read).filter(|_| width > 0))? {
                    let batch = batch.map_err(|error| source.failed(error))?;
                    let cells = Cells::of_all(source, &batch, columns, &needed, contents.rows())?;
                    for row in 0..batch.num_rows() {
                        let place = Place::Row(contents.rows() + 1);
                        for ((column, text), cells) in columns.iter().zip(&mut texts).zip(&cells) {
                            text.clear();
                            let is_there = guarded(|| cells.read(column.form, row, text))
                                .map_err(|w| self.fault(place, column, w))?;
                            if !is_there || source.is_null(text) {
                                let ((path, place), column) = (self.located(place), column.shown.clone());
                                return Err(Error::NoValue { path, place, column }.into());
                            }
                        }
                        contents.add(texts.iter().map(String::as_str));
                        visit(place, &texts.iter().map(String::as_str).collect::<Vec<_>>())?;
                    }
                }
                contents
            }
        };
        Ok(Read { contents, columns: columns.to_vec() })
    }

    fn fault(&self, place: Place, column: &Wanted, what: String) -> Error {
        let (path, place) = self.located(place);
        Error::Cell { path, place, column: column.shown.clone(), what }
    }

    /// Whether a file called `target` holds results as text: CSV, by its name or else by this table's format.
    /// Errors: CSV, and columns of ours that it cannot hold.
    pub fn is_text(&self, target: &Path) -> Result<bool> {
        convert::is_ours(target)?;
        match &self.0 {
            Inner::Csv(_) => Ok(Format::by_name(target).is_none()),
            Inner::Columns(source) if convert::goes_to_csv(source, target) => {
                convert::has_text(source, target)?;
                Ok(true)
            }
            Inner::Columns(source) => convert::admits(source, target).map(|()| false),
        }
    }

    /// Reads all of our columns and writes them to nothing, as they would go to a file called `target`: what
    /// cannot be read or written shows before anybody is called.
    pub fn prove(&self, target: &Path) -> Result<()> {
        match &self.0 {
            Inner::Columns(source) => convert::prove(source, target),
            Inner::Csv(source) if Format::by_name(target) == Some(Format::Excel) => {
                convert::prove_workbook(source, target)
            }
            Inner::Csv(_) => Ok(()),
        }
    }

    /// Copies every row to `output`, which is called `target`, in the format that its name says or else in
    /// ours, with the columns `more` behind our own: of row 0, 1, … those that `extend` gives. A name that
    /// the table has already gets a number.
    ///
    /// Refuses a file whose rows are not those that were `read`.
    pub fn write_extended(
        &self,
        read: &Read,
        more: &[(String, Kind)],
        mut extend: impl FnMut(u64) -> Vec<Value>,
        target: &Path,
        output: &mut (impl Write + Send),
    ) -> Result<()> {
        let names: Vec<&str> = more.iter().map(|(name, _)| name.as_str()).collect();
        match (&self.0, self.is_text(target)?) {
            (Inner::Csv(source), true) => {
                let extend = |row| extend(row).into_iter().map(Value::text).collect();
                source.write_extended(&read.contents, &names, extend, target, output)
            }
            (Inner::Csv(source), false) => {
                let schema = extended(&source.schema(), more);
                let format = Format::by_name(target).unwrap_or(Format::Parquet);
                let mut writer = Writer::new(format, output, target, &schema, &Origin::text())?;
                self.extend_csv(source, read, more, extend, |columns| {
                    writer.write(&batch_of(&schema, columns, target)?)
                })?;
                writer.finish()
            }
            (Inner::Columns(source), text) => {
                let schema = extended(source.schema(), more);
                let batch = |columns| batch_of(&schema, columns, target);
                if text {
                    let mut lines = Lines::new(target, &schema, &Unfit::default(), output)?;
                    self.extend_columns(source, read, more, extend, |columns| lines.write(&batch(columns)?))?;
                    return lines.finish();
                }
                let format = Format::by_name(target).unwrap_or(source.format());
                let mut writer = source.writer(format, output, target, &schema)?;
                self.extend_columns(source, read, more, extend, |columns| writer.write(&batch(columns)?))?;
                writer.finish()
            }
        }
    }

    /// A CSV file's rows as columns of text, and more behind them, some at a time.
    fn extend_csv(
        &self,
        source: &csv::Source,
        read: &Read,
        more: &[(String, Kind)],
        mut extend: impl FnMut(u64) -> Vec<Value>,
        mut write: impl FnMut(Vec<ArrayRef>) -> Result<()>,
    ) -> Result<()> {
        let all: Vec<usize> = (0..source.columns().count()).collect();
        let mut own: Vec<_> = all.iter().map(|_| LargeStringBuilder::new()).collect();
        let (mut results, mut row) = (Vec::new(), 0);
        let mut flush = |own: &mut [LargeStringBuilder], results: &mut Vec<Vec<Value>>| {
            let own = own.iter_mut().map(|column| Arc::new(column.finish()) as ArrayRef);
            write(own.chain(arrays(more, std::mem::take(results))).collect())
        };
        let again = source.read_columns(&all, |_, cells| {
            if row == read.contents.rows() {
                return Err(source.changed());
            }
            for (column, cell) in own.iter_mut().zip(cells) {
                column.append_option((!source.is_null(cell)).then_some(cell));
            }
            results.push(extend(row));
            row += 1;
            if results.len() == BATCH { flush(&mut own, &mut results) } else { Ok(()) }
        })?;
        if again.digest() != read.contents.digest() {
            return Err(source.changed());
        }
        flush(&mut own, &mut results)
    }

    /// Our columns as they are, and more behind them, some rows at a time.
    fn extend_columns(
        &self,
        source: &columnar::Source,
        read: &Read,
        more: &[(String, Kind)],
        mut extend: impl FnMut(u64) -> Vec<Value>,
        mut write: impl FnMut(Vec<ArrayRef>) -> Result<()>,
    ) -> Result<()> {
        let mut again = Contents::start();
        let all: Vec<usize> = (0..source.schema().fields().len()).collect();
        let mut texts: Vec<String> = vec![String::new(); read.columns.len()];
        for batch in source.batches(None)? {
            let batch = batch.map_err(|error| source.failed(error))?;
            if batch.schema().fields() != source.schema().fields() {
                return Err(source.changed());
            }
            let cells = Cells::of_all(source, &batch, &read.columns, &all, again.rows())?;
            let mut results = Vec::with_capacity(batch.num_rows());
            for row in 0..batch.num_rows() {
                if again.rows() == read.contents.rows() {
                    return Err(source.changed());
                }
                results.push(extend(again.rows()));
                for ((column, text), cells) in read.columns.iter().zip(&mut texts).zip(&cells) {
                    text.clear();
                    if cells.read(column.form, row, text) != Ok(true) {
                        return Err(source.changed());
                    }
                }
                again.add(texts.iter().map(String::as_str));
            }
            write(batch.columns().iter().cloned().chain(arrays(more, results)).collect())?;
        }
        if again.digest() == read.contents.digest() { Ok(()) } else { Err(source.changed()) }
    }
}

/// Whether the name of `target` says that it is a table: `.csv`, `.tsv`, or a format of columns.
pub fn is_table(target: &Path) -> bool {
    let end = target.extension().unwrap_or_default();
    Format::by_name(target).is_some() || ["csv", "tsv"].iter().any(|table| end.eq_ignore_ascii_case(table))
}

/// Whether a text of so many characters has room in a cell of `target`.
pub fn admits_cell(target: &Path, characters: u64) -> bool {
    Format::by_name(target) != Some(Format::Excel) || characters <= MOST_TEXT as u64
}

/// Refuses a `target` whose name says a format that is not written.
pub fn admits_alone(target: &Path) -> Result<()> {
    convert::is_ours(target)
}

/// Writes a table of results alone to `output`, which is called `target`, in the format that its name says or
/// else as CSV: `rows` rows, of row 0, 1, … the cells that `row` gives.
pub fn write_alone(
    columns: &[(String, Kind)],
    rows: u64,
    mut row: impl FnMut(u64) -> Vec<Value>,
    target: &Path,
    output: &mut (impl Write + Send),
) -> Result<()> {
    let schema = extended(&SchemaRef::new(Schema::empty()), columns);
    let starts = (0..rows).step_by(BATCH);
    let mut batches = starts.map(|start| {
        let cells = (start..rows.min(start + BATCH as u64)).map(&mut row).collect();
        batch_of(&schema, arrays(columns, cells), target)
    });
    let Some(format) = Format::by_name(target) else {
        let mut lines = Lines::new(target, &schema, &Unfit::default(), output)?;
        batches.try_for_each(|batch| lines.write(&batch?))?;
        return lines.finish();
    };
    let mut writer = Writer::new(format, output, target, &schema, &Origin::text())?;
    batches.try_for_each(|batch| writer.write(&batch?))?;
    writer.finish()
}

/// Hands the values of every row of a table in memory to `visit`, out of the columns at the places of
/// `columns`. Errors call the table `table`, and otherwise are those of [`Table::find`] and [`Table::read`].
pub fn each_row<E: From<Error>>(
    schema: &Schema,
    batches: &[RecordBatch],
    columns: &[(usize, Column)],
    mut visit: impl FnMut(Place, &[&str]) -> std::result::Result<(), E>,
) -> std::result::Result<(), E> {
    let path = || PathBuf::from("table");
    let shown = |column: &Column| format!("`{}`", tacit_crypto::text::shown(&column.name));
    for (at, column) in columns {
        let found = schema.field(*at).data_type();
        if let Some(remedy) = refused(found, column.form) {
            let (column, found) = (shown(column), found.to_string());
            return Err(Error::ValueType { path: path(), column, found, remedy }.into());
        }
    }
    let mut texts: Vec<String> = vec![String::new(); columns.len()];
    let mut rows = 0;
    for batch in batches {
        let cells: std::result::Result<Vec<Cells>, ArrowError> =
            columns.iter().map(|(at, _)| Cells::of(batch.column(*at))).collect();
        let cells = cells
            .map_err(|error| Error::Unreadable { path: path(), source: std::io::Error::other(error) })?;
        for row in 0..batch.num_rows() {
            rows += 1;
            let place = Place::Row(rows);
            for (((_, column), text), cells) in columns.iter().zip(&mut texts).zip(&cells) {
                text.clear();
                match cells.read(column.form, row, text) {
                    Ok(true) => {}
                    Ok(false) => {
                        return Err(Error::NoValue { path: path(), place, column: shown(column) }.into());
                    }
                    Err(what) => {
                        return Err(Error::Cell { path: path(), place, column: shown(column), what }.into());
                    }
                }
            }
            visit(place, &texts.iter().map(String::as_str).collect::<Vec<_>>())?;
        }
    }
    Ok(())
}

/// The numbers of a column of a table in memory, by what its text means, whose fraction may be behind a comma; a
/// null, and an empty text, is nothing. Errors: a column, or a cell with its row from 1, that holds none.
pub fn numbers(column: &ArrayRef, form: Form, comma: bool) -> std::result::Result<Vec<Option<i64>>, String> {
    let is_text = matches!(column.data_type(), DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
    if let Some(remedy) = refused(column.data_type(), form) {
        return Err(format!("it has {}, which is not a valid value here; {remedy}", column.data_type()));
    }
    let cells = guarded(|| Cells::of(column)).map_err(|_| "a cell of it has no text form".to_owned())?;
    let (mut text, mut written) = (String::new(), String::new());
    let mut number = |row: usize| {
        text.clear();
        written.clear();
        let plain = if is_text { Form::Plain } else { form };
        let read = guarded(|| match cells.read(plain, row, &mut written)? {
            true if is_text && !written.trim().is_empty() => {
                form.read_written(&written, comma, &mut text).map(|()| true)
            }
            true => {
                text.push_str(&written);
                Ok(!is_text)
            }
            false => Ok(false),
        });
        match read.map_err(|what| format!("row {}: {what}", row + 1))? {
            false => Ok(None),
            true => text
                .parse()
                .map(Some)
                .map_err(|_| format!("row {}: a number of 64 bits is expected", row + 1)),
        }
    };
    (0..column.len()).map(&mut number).collect()
}

/// What was read of a table: how many rows, and what knows them again.
pub struct Read {
    contents: Contents,
    columns: Vec<Wanted>,
}

impl Read {
    /// The number of rows.
    pub fn rows(&self) -> u64 {
        self.contents.rows()
    }
}

/// The columns of these rows of results.
fn arrays(more: &[(String, Kind)], rows: Vec<Vec<Value>>) -> Vec<ArrayRef> {
    let mut columns: Vec<Vec<Value>> = more.iter().map(|_| Vec::with_capacity(rows.len())).collect();
    for row in rows {
        let cells = row.into_iter().chain(std::iter::repeat(Value::Null));
        columns.iter_mut().zip(cells).for_each(|(column, cell)| column.push(cell));
    }
    more.iter().zip(columns).map(|((_, kind), cells)| kind.array(cells)).collect()
}

fn batch_of(schema: &SchemaRef, columns: Vec<ArrayRef>, target: &Path) -> Result<RecordBatch> {
    RecordBatch::try_new(schema.clone(), columns).map_err(|error| columnar::unwritable(target, &error))
}

/// The columns with those of results behind them.
fn extended(schema: &SchemaRef, more: &[(String, Kind)]) -> SchemaRef {
    let names: Vec<&str> = more.iter().map(|(name, _)| name.as_str()).collect();
    let names = beside(schema.fields().iter().map(|field| field.name().as_str()), &names);
    let fields = more.iter().zip(names).map(|((_, kind), name)| Field::new(name, kind.data_type(), true));
    let all: Vec<_> = schema.fields().iter().cloned().chain(fields.map(Arc::new)).collect();
    SchemaRef::new(Schema::new_with_metadata(all, schema.metadata().clone()))
}

/// What to do about a column of this type; `None` if its cells are values.
pub(crate) fn refused(data: &DataType, form: Form) -> Option<&'static str> {
    const REMEDY: &str = "convert it to integers, truth values, text, or lists of these";
    match data {
        DataType::Dictionary(_, values) => refused(values, form),
        DataType::List(each) | DataType::LargeList(each) | DataType::FixedSizeList(each, _) => {
            let inner = each.data_type();
            if inner.is_nested() { Some(REMEDY) } else { refused(inner, form) }
        }
        _ if is_moment(data) && form != Form::Date => {
            Some("name it as COL:date if its times are midnights, or convert it to dates")
        }
        DataType::Date32 | DataType::Date64 if matches!(form, Form::Decimal(_)) => {
            Some("leave its :decimal out: the days of a date are counted")
        }
        DataType::Float16 | DataType::Float32 | DataType::Float64 => None,
        _ if is_key(data) || is_moment(data) => None,
        _ => Some(REMEDY),
    }
}

/// A column's cells as text.
pub(crate) struct Cells {
    texts: Texts,
    /// Where the values of each row's list begin and end, for a column of lists.
    lists: Option<Vec<Option<(usize, usize)>>>,
    /// Of dates the text is read as one, whatever the form.
    dates: bool,
    /// Of numbers with a fraction the text is a whole number, or none.
    floats: bool,
    /// Decimals may have a comma.
    comma: bool,
}

impl Cells {
    /// The cells of `columns`, where the batch, which stands behind `before` rows, has those at the places
    /// `there`.
    fn of_all(
        source: &columnar::Source,
        batch: &RecordBatch,
        columns: &[Wanted],
        there: &[usize],
        before: u64,
    ) -> Result<Vec<Cells>> {
        let cells = |column: &Wanted| {
            let place = there.binary_search(&column.at).map_err(|_| source.changed())?;
            let array = batch.columns().get(place).ok_or_else(|| source.changed())?;
            let cells =
                guarded(|| Cells::of(array).map(|cells| cells.with_comma(source.has_decimal_comma())));
            cells.map_err(|_| source.textless(column.at, array, before))
        };
        columns.iter().map(cells).collect()
    }

    pub(crate) fn of(array: &ArrayRef) -> std::result::Result<Self, ArrowError> {
        let inner = match array.data_type() {
            DataType::List(inner) => Some(inner.clone()),
            DataType::LargeList(inner) | DataType::FixedSizeList(inner, _) => Some(inner.clone()),
            _ => None,
        };
        let Some(inner) = inner else { return Self::plain(array) };
        let array = arrow_cast::cast(array, &DataType::List(inner))?;
        let list = array.as_list::<i32>();
        let ends = list.value_offsets();
        let of_row = |row: usize| {
            let (from, to) = (ends[row] as usize, ends[row + 1] as usize);
            (!list.is_null(row)).then_some((from, to))
        };
        let lists = (0..list.len()).map(of_row).collect();
        Ok(Cells { lists: Some(lists), ..Self::plain(list.values())? })
    }

    fn plain(array: &ArrayRef) -> std::result::Result<Self, ArrowError> {
        let data = match array.data_type() {
            DataType::Dictionary(_, values) => values.as_ref(),
            data => data,
        };
        let dates = matches!(data, DataType::Date32 | DataType::Date64);
        let plain = Field::new("", array.data_type().clone(), true);
        let (floats, texts) = (data.is_floating(), Texts::of(array, &plain)?);
        Ok(Cells { dates, floats, lists: None, comma: false, texts })
    }

    /// The same of text that holds numbers which may have a fraction.
    pub(crate) fn of_numbers(self) -> Self {
        Cells { floats: true, ..self }
    }

    /// The same of text whose decimals may have a comma.
    pub(crate) fn with_comma(self, comma: bool) -> Self {
        Cells { comma, ..self }
    }

    /// Appends the text of a row's value; `false` if it has none.
    pub(crate) fn read(&self, form: Form, row: usize, out: &mut String) -> std::result::Result<bool, String> {
        let Some(lists) = &self.lists else { return self.one(form, row, out) };
        let Some(Some((from, to))) = lists.get(row) else { return Ok(false) };
        out.push('[');
        for at in *from..*to {
            if at > *from {
                out.push_str(", ");
            }
            if !self.one(form, at, out)? {
                return Ok(false);
            }
        }
        out.push(']');
        Ok(true)
    }

    fn one(&self, form: Form, at: usize, out: &mut String) -> std::result::Result<bool, String> {
        if self.texts.is_null(at) {
            return Ok(false);
        }
        let form = if self.dates { Form::Date } else { form };
        match (self.texts.get(at), form) {
            // A blank is as good as nothing, in numbers of either form.
            (text, Form::Decimal(_)) if text.trim().is_empty() => return Ok(false),
            (text, Form::Plain) if self.floats => {
                scaled(text, 0, out).map_err(|_| {
                    let remedy = fraction(text).map_or(String::new(), |remedy| format!("; {remedy}"));
                    format!("a whole number is expected{remedy}")
                })?;
            }
            (text, form) => form.read_written(text, self.comma, out)?,
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_named_with_what_their_text_means() {
        let read = |text| (Column::parse(text).name, Column::parse(text).form);
        assert_eq!(read("price"), ("price".into(), Form::Plain));
        assert_eq!(read("a:b"), ("a:b".into(), Form::Plain));
        assert_eq!(read("a:b:date"), ("a:b".into(), Form::Date));
        assert_eq!(read("\"a:date\""), ("a:date".into(), Form::Plain));
        assert_eq!(read("\"a,b:c\":date"), ("a,b:c".into(), Form::Date));
        assert_eq!(read("price:decimal2"), ("price".into(), Form::Decimal(2)));
        for name in ["p:decimal", "p:decimal19", "p:decimal+1", "p:decimal002", "p:Date"] {
            assert_eq!(read(name), (name.to_owned(), Form::Plain), "{name}");
        }
    }
}
