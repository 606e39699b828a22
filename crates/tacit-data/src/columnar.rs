//! Tables in Parquet and Arrow IPC files: reading keys, writing the matching rows.
//!
//! Of the key's columns alone the cells are read, a row group and a batch at a time; rows that match go out
//! with every column's type, order and nulls as they were. A cell becomes a key's text without loss: integers
//! in decimal, dates as `2024-01-31`, booleans as `true` and `false`, decimals without zeros that say nothing
//! (`1.50` is `1.5`), text as it is; a null is no key. Points in time are a key of the type `date` alone,
//! which takes midnights. Floats are refused, as their text depends on who writes it, and so is every other
//! type.

use crate::bounds;
use crate::csv::{EmptyKeys, Options};
use crate::fault::{Error, Place, Result, gave_up, guarded};
use crate::input::{Input, Packing, Stored};
use crate::kept::NUMERIC;
use crate::keys::Tally;
use crate::records::{Element, KeyHasher, KeySet, KeySpec, Normalisation};
use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch, StringArray};
use arrow_ipc::reader::FileReader;
use arrow_schema::{ArrowError, DataType, SchemaRef};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::arrow::arrow_writer::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use tacit_crypto::fence::fenced;

/// Rows that are looked at together.
const BATCH: usize = 8192;

/// A file format of columns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// Apache Parquet.
    Parquet,
    /// Apache Arrow's file format, which Feather is another name of.
    ArrowFile,
}

impl Format {
    /// What the first bytes of a file show.
    pub(crate) fn of(start: &[u8]) -> Option<Self> {
        if start.starts_with(b"PAR1") {
            Some(Format::Parquet)
        } else if start.starts_with(b"ARROW1") {
            Some(Format::ArrowFile)
        } else {
            None
        }
    }

    /// What a file of this name holds.
    pub fn by_name(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "parquet" | "pq" => Some(Format::Parquet),
            "arrow" | "feather" | "ipc" => Some(Format::ArrowFile),
            _ => None,
        }
    }

    /// As errors call it.
    pub fn name(self) -> &'static str {
        match self {
            Format::Parquet => "Parquet",
            Format::ArrowFile => "Arrow",
        }
    }
}

/// A file of columns whose schema has been read and whose key columns are there.
pub struct Source {
    input: Input,
    format: Format,
    schema: SchemaRef,
    properties: WriterProperties,
    spec: KeySpec,
    key_columns: Vec<usize>,
    empty_keys: EmptyKeys,
    /// Bytes of a row, at most.
    most: u64,
}

pub(crate) type Batches = Box<dyn Iterator<Item = std::result::Result<RecordBatch, ArrowError>>>;

impl Source {
    /// Reads the schema of `input`, whose first bytes say that it has this format, and finds the key's
    /// columns.
    pub(crate) fn from_input(input: Input, format: Format, spec: KeySpec, options: &Options) -> Result<Self> {
        let source = Self::without_key(input, format, options)?;
        let path = source.input.path().to_owned();
        if spec.columns.is_empty() {
            return Err(Error::NoKey(path));
        }
        let mut key_columns = Vec::new();
        for (column, key_type) in spec.columns.iter().zip(&spec.types) {
            let at = source.position(column)?;
            let found = source.schema.field(at).data_type();
            if is_moment(found) && !key_type.is_date() {
                return Err(Error::KeyMoment { path, column: column.clone() });
            }
            if !is_moment(found) && !is_key(found) {
                return Err(Error::KeyType { path, column: column.clone(), found: found.to_string() });
            }
            key_columns.push(at);
        }
        Ok(Source { spec, key_columns, ..source })
    }

    /// Reads the schema of `input`, whose first bytes say that it has this format, for use without a key.
    pub(crate) fn without_key(input: Input, format: Format, options: &Options) -> Result<Self> {
        let path = input.path().to_owned();
        if input.packing() != Packing::Plain {
            return Err(Error::PackedColumns { path, format: format.name() });
        }
        let damaged = |what: String| {
            let damaged = || Error::Damaged { path: path.clone(), format: format.name(), what };
            input.fault().unwrap_or_else(damaged)
        };
        let (schema, properties) = match format {
            Format::Parquet => {
                let (mut stored, again) = (input.stored()?, input.stored()?);
                let builder = guarded(|| ParquetRecordBatchReaderBuilder::try_new(again)).map_err(damaged)?;
                // In a store each look at a page would be a request.
                if !input.is_object() {
                    guarded(|| bounds::check_parquet(&mut stored, builder.metadata())).map_err(damaged)?;
                }
                let first = builder.metadata().row_groups().first().and_then(|group| group.columns().first());
                let mut properties = WriterProperties::builder();
                if let Some(column) = first {
                    properties = properties.set_compression(column.compression());
                }
                (builder.schema().clone(), properties.build())
            }
            Format::ArrowFile => {
                let mut stored = input.stored()?;
                guarded(|| bounds::check_arrow(&mut stored, input.bytes())).map_err(damaged)?;
                let stored = input.stored()?;
                let reader = guarded(|| FileReader::try_new(BufReader::new(stored), None));
                (reader.map_err(damaged)?.schema(), properties_of(&input))
            }
        };
        Ok(Source {
            input,
            format,
            schema,
            properties,
            spec: KeySpec::text(Vec::new(), Normalisation::default()),
            key_columns: Vec::new(),
            empty_keys: options.empty_keys,
            most: options.max_row.bytes(),
        })
    }

    /// Where it comes from.
    pub(crate) fn input(&self) -> &Input {
        &self.input
    }

    /// The file's size in bytes when it was opened.
    pub fn bytes(&self) -> u64 {
        self.input.bytes()
    }

    /// The file's format.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Reads all keys. `progress` is told now and then how many of the file's bytes have been read, about.
    pub fn read_keys(&self, progress: impl FnMut(u64)) -> Result<KeySet> {
        let mut keys = KeySet::new();
        let tally = self.each_key(progress, |element| {
            keys.push(element).map_err(|_| Error::TooManyRows { path: self.input.path().to_owned() })
        })?;
        keys.set_tally(tally);
        Ok(keys)
    }

    /// Tells the element of every row to `visit`, nothing where it has no key.
    pub(crate) fn each_key<E: From<Error>>(
        &self,
        mut progress: impl FnMut(u64),
        mut visit: impl FnMut(Option<Element>) -> std::result::Result<(), E>,
    ) -> std::result::Result<Tally, E> {
        let mut row = 0u64;
        let mut wanted = self.key_columns.clone();
        wanted.sort_unstable();
        wanted.dedup();
        let place = |at: &usize| wanted.binary_search(at).unwrap_or(0);
        let places: Vec<usize> = self.key_columns.iter().map(place).collect();
        let mut hasher = KeyHasher::of(&self.spec);
        for batch in self.batches(Some(wanted.clone()))? {
            let batch = batch.map_err(|error| self.failed(error))?;
            for element in self.elements(&mut hasher, &batch, &places)? {
                row += 1;
                if element.is_none() && self.empty_keys == EmptyKeys::Refuse {
                    return Err(Error::EmptyKeyInRow { path: self.input.path().to_owned(), row }.into());
                }
                visit(element)?;
            }
            progress(self.input.done().min(self.bytes()));
        }
        progress(self.bytes());
        Ok(hasher.take_tally())
    }

    /// Writes the rows that `wanted` says of their number and element to `output`, which is called `target`,
    /// in the format that its name says or else in this file's. Returns the number of rows.
    pub(crate) fn write_wanted(
        &self,
        wanted: impl FnMut(u64, Option<&Element>) -> Result<bool>,
        target: &Path,
        output: &mut (impl Write + Send),
    ) -> Result<u64> {
        let format = Format::by_name(target).unwrap_or(self.format);
        let mut writer = Writer::new(format, output, target, &self.schema, self.properties.clone())?;
        let written = self.each_wanted(wanted, |rows| writer.write(rows))?;
        writer.finish()?;
        Ok(written)
    }

    /// Hands the rows that `wanted` says of their number and element to `visit`, some at a time and in the
    /// file's order. Returns their number.
    pub(crate) fn each_wanted(
        &self,
        mut wanted: impl FnMut(u64, Option<&Element>) -> Result<bool>,
        mut visit: impl FnMut(&RecordBatch) -> Result<()>,
    ) -> Result<u64> {
        let mut hasher = KeyHasher::of(&self.spec);
        let (mut row, mut found) = (0, 0);
        for batch in self.batches(None)? {
            let batch = batch.map_err(|error| self.failed(error))?;
            if batch.schema().fields() != self.schema.fields() {
                return Err(self.changed());
            }
            let mut chosen = Vec::with_capacity(batch.num_rows());
            for element in self.elements(&mut hasher, &batch, &self.key_columns)? {
                chosen.push(wanted(row, element.as_ref())?);
                row += 1;
            }
            let count = chosen.iter().filter(|chosen| **chosen).count();
            if count > 0 {
                let chosen = BooleanArray::from(chosen);
                let rows = guarded(|| arrow_select::filter::filter_record_batch(&batch, &chosen));
                visit(&rows.map_err(|error| self.damaged(&error))?)?;
                found += count as u64;
            }
        }
        Ok(found)
    }

    /// Where the column of this name stands.
    pub(crate) fn position(&self, column: &str) -> Result<usize> {
        let path = self.input.path().to_owned();
        let names = || self.schema.fields().iter().map(|field| field.name().trim());
        let mut found = names().enumerate().filter(|(_, name)| *name == column.trim()).map(|(at, _)| at);
        match (found.next(), found.next()) {
            (Some(at), None) => Ok(at),
            (Some(_), Some(_)) => Err(Error::AmbiguousColumn { path, column: column.to_owned() }),
            (None, _) => {
                let columns = self.schema.fields().len();
                Err(Error::NoColumn { path, column: column.to_owned(), columns })
            }
        }
    }

    /// The file.
    pub(crate) fn path(&self) -> &Path {
        self.input.path()
    }

    /// How Parquet files of these rows are written.
    pub(crate) fn properties(&self) -> &WriterProperties {
        &self.properties
    }

    /// The columns with their types.
    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// That the file is not the one that was read before.
    pub(crate) fn changed(&self) -> Error {
        Error::Changed(self.input.path().to_owned())
    }

    /// All rows.
    pub(crate) fn read_whole(&self) -> Result<(SchemaRef, Vec<RecordBatch>)> {
        let batches: std::result::Result<Vec<_>, _> = self.batches(None)?.collect();
        Ok((self.schema.clone(), batches.map_err(|error| self.failed(error))?))
    }

    /// The file's batches, of all columns or of these, each of at most [`BATCH`] rows.
    pub(crate) fn batches(&self, columns: Option<Vec<usize>>) -> Result<Batches> {
        let stored = self.input.stored()?;
        let opened = guarded(|| open(self.format, stored, columns)).map_err(|error| self.damaged(&error))?;
        let (path, most, mut before) = (self.path().to_owned(), self.most, 0u64);
        let bounded = Fenced(Some(opened)).map(move |batch| {
            let batch = batch?;
            let long = fenced(|| bounds::long_row(&batch, most)).unwrap_or_default();
            let place = long.map(|row| Place::Row(before + row as u64 + 1));
            before += batch.num_rows() as u64;
            match place {
                Some(place) => {
                    let error = Error::LongRow { path: path.clone(), place, most };
                    Err(ArrowError::ExternalError(Box::new(error)))
                }
                None => Ok(batch),
            }
        });
        Ok(Box::new(bounded))
    }

    /// The elements of a batch's rows, whose key stands in the columns `places`.
    fn elements(
        &self,
        hasher: &mut KeyHasher,
        batch: &RecordBatch,
        places: &[usize],
    ) -> Result<Vec<Option<Element>>> {
        let texts: Vec<Texts> = places
            .iter()
            .map(|at| match batch.columns().get(*at) {
                Some(column) => {
                    let texts = guarded(|| Texts::of(column)).map_err(|error| self.damaged(&error))?;
                    let marks = batch.schema().field(*at).metadata().get(NUMERIC.0).cloned();
                    Ok(if marks.as_deref() == Some(NUMERIC.1) { texts.of_decimals() } else { texts })
                }
                None => Err(self.changed()),
            })
            .collect::<Result<_>>()?;
        let hash = |row| hasher.hash(texts.iter().map(|texts| texts.get(row)));
        fenced(|| (0..batch.num_rows()).map(hash).collect())
            .map_err(|panicked| self.damaged(&gave_up(&panicked)))
    }

    /// What a batch that could not be had stands for.
    pub(crate) fn failed(&self, error: ArrowError) -> Error {
        match error {
            ArrowError::ExternalError(source) => match source.downcast::<Error>() {
                Ok(own) => *own,
                Err(source) => self.damaged(&source),
            },
            error => self.damaged(&error),
        }
    }

    pub(crate) fn damaged(&self, error: &dyn std::fmt::Display) -> Error {
        self.input.fault().unwrap_or_else(|| Error::Damaged {
            path: self.input.path().to_owned(),
            format: self.format.name(),
            what: error.to_string(),
        })
    }
}

/// Opens the file `stored` for its batches, of all columns or of these.
fn open(
    format: Format,
    stored: Stored,
    columns: Option<Vec<usize>>,
) -> std::result::Result<Batches, ArrowError> {
    Ok(match format {
        Format::Parquet => {
            let builder = ParquetRecordBatchReaderBuilder::try_new(stored)?.with_batch_size(BATCH);
            let mask = match columns {
                Some(columns) => ProjectionMask::roots(builder.parquet_schema(), columns),
                None => ProjectionMask::all(),
            };
            Box::new(builder.with_projection(mask).build()?)
        }
        Format::ArrowFile => {
            let reader = FileReader::try_new(BufReader::new(stored), columns)?;
            Box::new(reader.flat_map(|batch| {
                let (batch, failed) =
                    batch.map_or_else(|error| (None, Some(Err(error))), |batch| (Some(batch), None));
                let rows = batch.as_ref().map_or(0, RecordBatch::num_rows);
                let piece = move |from| {
                    let batch = batch.as_ref()?;
                    Some(Ok(batch.slice(from, BATCH.min(batch.num_rows() - from))))
                };
                (0..rows).step_by(BATCH).filter_map(piece).chain(failed)
            }))
        }
    })
}

/// Batches whose reader may panic, which ends them.
struct Fenced(Option<Batches>);

impl Iterator for Fenced {
    type Item = std::result::Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let batches = self.0.as_mut()?;
        fenced(|| batches.next()).unwrap_or_else(|panicked| {
            self.0 = None;
            Some(Err(ArrowError::ParseError(gave_up(&panicked))))
        })
    }
}

/// How a Parquet file is written of what was none.
fn properties_of(input: &Input) -> WriterProperties {
    let properties = WriterProperties::builder();
    match input.is_answer() {
        true => properties.set_compression(Compression::SNAPPY).build(),
        false => properties.build(),
    }
}

/// Whether cells of this type have one text only.
pub(crate) fn is_key(data: &DataType) -> bool {
    match data {
        DataType::Dictionary(_, values) => is_key(values),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => true,
        DataType::Boolean | DataType::Null | DataType::Date32 | DataType::Date64 => true,
        DataType::Decimal32(..)
        | DataType::Decimal64(..)
        | DataType::Decimal128(..)
        | DataType::Decimal256(..) => true,
        other => other.is_integer(),
    }
}

/// Whether cells are points in time on no particular clock, which may be dates with a midnight behind them.
pub(crate) fn is_moment(data: &DataType) -> bool {
    matches!(data, DataType::Timestamp(_, None))
}

/// A column's cells as the texts that keys are made of.
pub struct Texts {
    cells: StringArray,
    decimal: bool,
}

impl Texts {
    /// Of a column of a type that may be a key. Errors: a cell without text.
    pub fn of(column: &ArrayRef) -> std::result::Result<Self, ArrowError> {
        let mut column = column.clone();
        if let DataType::Dictionary(_, values) = column.data_type() {
            column = arrow_cast::cast(&column, values)?;
        }
        // Of a date in milliseconds the text would have a time.
        if column.data_type() == &DataType::Date64 {
            column = arrow_cast::cast(&column, &DataType::Date32)?;
        }
        let decimal = column.data_type().is_decimal();
        let cells = arrow_cast::cast(&column, &DataType::Utf8)?;
        let cells = cells.as_any().downcast_ref::<StringArray>().cloned();
        let cells = cells.ok_or_else(|| ArrowError::CastError("a key column is not text".into()))?;
        Ok(Texts { cells, decimal })
    }

    /// Whether there is nothing in this row.
    pub(crate) fn is_null(&self, row: usize) -> bool {
        self.cells.is_null(row)
    }

    /// The same of text that holds decimals.
    fn of_decimals(self) -> Self {
        Texts { decimal: true, ..self }
    }

    /// The cell of this row; a null is the empty text, which is no key.
    pub fn get(&self, row: usize) -> &str {
        if self.cells.is_null(row) {
            return "";
        }
        let text = self.cells.value(row);
        if !self.decimal || !text.contains('.') {
            return text;
        }
        match text.trim_end_matches('0').trim_end_matches('.') {
            "-0" => "0",
            text => text,
        }
    }
}

/// Batches on their way to a file.
pub(crate) struct Writer<'a, W: Write + Send> {
    target: &'a Path,
    form: Form<'a, W>,
}

enum Form<'a, W: Write + Send> {
    Parquet(Box<ArrowWriter<&'a mut W>>),
    ArrowFile(Box<arrow_ipc::writer::FileWriter<&'a mut W>>),
}

impl<'a, W: Write + Send> Writer<'a, W> {
    /// A file of these columns to `output`, which is called `target`; `properties` are those of Parquet.
    pub(crate) fn new(
        format: Format,
        output: &'a mut W,
        target: &'a Path,
        schema: &SchemaRef,
        properties: WriterProperties,
    ) -> Result<Self> {
        let form = match format {
            Format::Parquet => guarded(|| ArrowWriter::try_new(output, schema.clone(), Some(properties)))
                .map(|writer| Form::Parquet(Box::new(writer))),
            Format::ArrowFile => guarded(|| arrow_ipc::writer::FileWriter::try_new(output, schema))
                .map(|writer| Form::ArrowFile(Box::new(writer))),
        };
        Ok(Writer { target, form: form.map_err(|error| unwritable(target, &error))? })
    }

    /// Appends these rows.
    pub(crate) fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let form = &mut self.form;
        let result = guarded(|| match form {
            Form::Parquet(writer) => writer.write(batch).map_err(ArrowError::from),
            Form::ArrowFile(writer) => writer.write(batch),
        });
        result.map_err(|error| unwritable(self.target, &error))
    }

    /// Ends the file.
    pub(crate) fn finish(self) -> Result<()> {
        let result = guarded(|| match self.form {
            Form::Parquet(mut writer) => {
                writer.finish().map_err(ArrowError::from).and_then(|_| Ok(writer.inner_mut().flush()?))
            }
            Form::ArrowFile(mut writer) => writer.finish().and_then(|()| Ok(writer.get_mut().flush()?)),
        });
        result.map_err(|error| unwritable(self.target, &error))
    }
}

/// That rows cannot go to the file of this name.
pub(crate) fn unwritable(target: &Path, error: &dyn std::fmt::Display) -> Error {
    Error::Unwritable { path: target.to_owned(), source: std::io::Error::other(error.to_string()) }
}

/// The format of an input, by its first bytes, unpacked.
pub(crate) fn format_of(input: &Input) -> Result<Option<Format>> {
    let mut reader = input.reader()?;
    let start = reader.fill_buf().map_err(|error| input.unreadable(error))?;
    Ok(Format::of(start))
}
