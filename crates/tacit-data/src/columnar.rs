//! Tables in Parquet files and in Arrow's files and streams: reading keys, writing the matching rows.
//!
//! Of the key's columns alone the cells are read, a row group and a batch at a time; rows that match go out
//! with every column's type, order and nulls as they were. A cell becomes a key's text without loss: integers
//! in decimal, dates as `2024-01-31`, booleans as `true` and `false`, decimals without zeros that say nothing
//! (`1.50` is `1.5`), text as it is; a null is no key. Points in time are a key of the type `date` alone,
//! which takes midnights. Floats are refused, as their text depends on who writes it, and so is every other
//! type.

mod dictionaries;
mod elements;
mod parts;
mod plain;
mod stored;
mod views;
mod words;
mod write;

pub use elements::of_rows as elements_of_rows;
pub use plain::has_digits;
pub(crate) use plain::{NO_TEXT, plain, unwritable, without_text};
use plain::{dates, uuids};
pub use stored::is_uuid;
pub(crate) use stored::{EXTENSION, JSON};
pub(crate) use write::{Origin, Writer, lacks};

use crate::bounds::{self, rows_of, rows_together};
use crate::csv::{EmptyKeys, Options};
use crate::fault::{Error, Place, Result, gave_up, guarded};
use crate::first_line::{self, COMPARED_ROWS, Shapes};
use crate::input::{Input, Packing, Stored};
use crate::kept::{NUMERIC, rows_of_batch};
use crate::keys::Tally;
use crate::records::{Element, KeyHasher, KeySet, KeySpec, Listing, Normalisation, is_null};
use crate::unfit::Unfit;
use crate::within::{all_widened, widened};
use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch, StringArray};
use arrow_ipc::reader::{FileReader, StreamReader};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use dictionaries::{Dictionaries, Gathered};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder,
};
use parquet::basic::Compression;
use parts::Part;
use std::collections::BTreeMap;
use std::io::{BufReader, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};
use tacit_crypto::Wiped;
use tacit_crypto::fence::fenced;
use tacit_crypto::near::nearest;
use words::{ENCRYPTED, words};

/// Rows that are looked at together.
const BATCH: usize = 8192;

/// A file format of columns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// Apache Parquet.
    Parquet,
    /// Apache Arrow's file format, which Feather is another name of.
    ArrowFile,
    /// Apache Arrow's stream format, which is read and not written.
    ArrowStream,
    /// A workbook of Excel, which is written alone: what is read of one is kept as an Arrow file.
    Excel,
}

impl Format {
    /// What the first bytes of a file show.
    pub(crate) fn of(start: &[u8]) -> Option<Self> {
        if start.starts_with(b"PAR1") {
            Some(Format::Parquet)
        } else if start.starts_with(b"ARROW1") {
            Some(Format::ArrowFile)
        } else if bounds::is_arrow_stream(start) {
            Some(Format::ArrowStream)
        } else {
            None
        }
    }

    /// The format of an output whose name says none, of an input of this one.
    fn written(self) -> Self {
        if self == Format::ArrowStream { Format::ArrowFile } else { self }
    }

    /// What a file of this name holds.
    pub fn by_name(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "parquet" | "pq" => Some(Format::Parquet),
            "arrow" | "feather" | "ipc" => Some(Format::ArrowFile),
            "xlsx" => Some(Format::Excel),
            _ => None,
        }
    }

    /// As errors call it.
    pub fn name(self) -> &'static str {
        match self {
            Format::Parquet => "Parquet",
            Format::ArrowFile => "Arrow",
            Format::ArrowStream => "Arrow stream",
            Format::Excel => "Excel",
        }
    }
}

/// A table of columns whose schema has been read and whose key columns are there.
pub struct Source {
    parts: Arc<Vec<Part>>,
    schema: SchemaRef,
    origin: Origin,
    /// Columns of 96-bit timestamps, which come without a clock or a zone of their own.
    moments: Vec<usize>,
    /// One for each column that has them, once they are needed.
    dictionaries: OnceLock<Arc<BTreeMap<usize, Dictionaries>>>,
    spec: KeySpec,
    key_columns: Vec<usize>,
    empty_keys: EmptyKeys,
    /// Whether its cells are of CSV files whose decimals have a comma.
    decimal_comma: bool,
    /// Bytes of a row, at most.
    most: u64,
}

pub(crate) type Batches<'a> = Box<dyn Iterator<Item = std::result::Result<RecordBatch, ArrowError>> + 'a>;

impl Source {
    /// The same with a key, whose columns must be there.
    pub(crate) fn keyed(self, spec: KeySpec) -> Result<Self> {
        let path = self.path().to_owned();
        if spec.columns.is_empty() {
            return Err(Error::NoKey(path));
        }
        let mut key_columns = Vec::new();
        for (column, key_type) in spec.columns.iter().zip(&spec.types) {
            let at = self.position(column)?;
            let field = self.schema.field(at);
            let found = field.data_type();
            let is_json = self.parts.iter().any(|part| part.input.is_json());
            if is_json && field.metadata().contains_key(EXTENSION) {
                let found = "objects or lists (JSON)".to_owned();
                return Err(Error::KeyType { path, column: column.clone(), found });
            }
            let is_moment = is_moment(found) || self.moments.contains(&at);
            if is_moment && !key_type.is_date() {
                return Err(Error::KeyMoment { path, column: column.clone() });
            }
            if !is_moment && !is_key(found) && !is_uuid(field) {
                return Err(Error::KeyType { path, column: column.clone(), found: found.to_string() });
            }
            key_columns.push(at);
        }
        Ok(Source { spec, key_columns, ..self })
    }

    /// Several files as one table with the columns of the first, in their order: the others' are found by their
    /// names. Text that they store in several ways is long text, and keys of dictionaries have 32 bits at least.
    pub(crate) fn joined(sources: Vec<Source>) -> Result<Self> {
        let mut sources = sources.into_iter();
        let none = || Error::NoKey(PathBuf::new());
        let mut whole = sources.next().ok_or_else(none)?;
        let mut fields: Vec<Field> =
            whole.schema.fields().iter().map(|field| field.as_ref().clone()).collect();
        let mut more = Vec::new();
        // One file's key may be too narrow for the words of all.
        if sources.len() > 0 {
            fields.iter_mut().for_each(|field| field.set_data_type(widened(field.data_type())));
        }
        for source in sources {
            let order = parts::order(&whole, &source)?;
            for (field, at) in fields.iter_mut().zip(&order) {
                let nullable = field.is_nullable() || source.schema.field(*at).is_nullable();
                field.set_nullable(nullable);
                if widened(source.schema.field(*at).data_type()) != *field.data_type() {
                    field.set_data_type(DataType::LargeUtf8);
                }
            }
            let moments = order.iter().enumerate().filter(|(_, at)| source.moments.contains(at));
            whole.decimal_comma |= source.decimal_comma;
            whole.moments.extend(moments.map(|(at, _)| at));
            let parts = Arc::into_inner(source.parts).unwrap_or_default();
            more.extend(parts.into_iter().map(|part| Part { order: Some(order.clone()), ..part }));
        }
        let mut first = Arc::into_inner(whole.parts).unwrap_or_default();
        let is_changed = |(field, was): (&Field, &Arc<Field>)| field.data_type() != was.data_type();
        if fields.iter().zip(whole.schema.fields()).any(is_changed) {
            first.iter_mut().for_each(|part| part.order = Some((0..fields.len()).collect()));
        }
        let schema = Schema::new_with_metadata(fields, whole.schema.metadata().clone());
        Ok(Source {
            parts: Arc::new(first.into_iter().chain(more).collect()),
            schema: Arc::new(schema),
            ..whole
        })
    }

    /// Reads the schema of `input`, whose first bytes say that it has this format, for use without a key.
    pub(crate) fn without_key(input: Input, format: Format, options: &Options) -> Result<Self> {
        let path = input.path().to_owned();
        if input.packing() != Packing::Plain {
            return Err(Error::PackedColumns { path, format: format.name() });
        }
        let input = input.watched()?;
        let own = |what: String| {
            let damaged = || Error::Damaged { path: path.clone(), format: format.name(), what };
            input.fault().unwrap_or_else(damaged)
        };
        let damaged = |error: String| own(words(&error));
        let (mut pages, mut order) = (Vec::new(), None);
        let (schema, origin, reading, moments) = match format {
            Format::Parquet => {
                let stored = input.stored()?;
                let read = guarded(|| ArrowReaderMetadata::load(&stored, ArrowReaderOptions::new()));
                let read = read.map_err(damaged)?;
                // In a store each look at a page would be a request.
                if !input.is_object() {
                    let mut stored = input.stored()?;
                    let again = || input.stored().ok();
                    let checked = guarded(|| bounds::check_parquet(&mut stored, read.metadata(), again));
                    pages = checked.map_err(own)?;
                }
                let stored = stored::describe(&input, &read, &pages, options.binary_as_text, &damaged)?;
                let (compression, metadata) = (stored.compression, stored.metadata);
                let parquet = Some(stored.parquet);
                let origin = Origin { compression, parquet, metadata, ..Origin::text() };
                (stored.schema, origin, stored.options, stored.moments)
            }
            Format::ArrowStream => {
                let mut stored = input.stored()?;
                let has_several =
                    guarded(|| bounds::check_arrow_stream(&mut stored, input.bytes())).map_err(own)?;
                let stored = input.stored()?;
                let reader = guarded(|| StreamReader::try_new(BufReader::new(stored), None));
                let mut schema = reader.map_err(damaged)?.schema();
                if has_several {
                    schema = all_widened(&schema);
                    order = Some((0..schema.fields().len()).collect());
                }
                let origin = Origin { compression: Compression::UNCOMPRESSED, ..Origin::text() };
                (schema, origin, ArrowReaderOptions::new(), Vec::new())
            }
            Format::ArrowFile | Format::Excel => {
                let mut stored = input.stored()?;
                guarded(|| bounds::check_arrow(&mut stored, input.bytes())).map_err(own)?;
                let stored = input.stored()?;
                let reader = guarded(|| FileReader::try_new(BufReader::new(stored), None));
                let schema = reader.map_err(damaged)?.schema();
                let compression =
                    if input.is_answer() { Compression::SNAPPY } else { Compression::UNCOMPRESSED };
                let origin = Origin { compression, ..Origin::text() };
                (schema, origin, ArrowReaderOptions::new(), Vec::new())
            }
        };
        let decimal_comma = options.decimal_comma && input.lines().is_some();
        let rows = AtomicU64::new(0);
        let part = Part { input, format, options: reading, pages, order, rows };
        Ok(Source {
            parts: Arc::new(vec![part]),
            schema,
            origin,
            moments,
            dictionaries: OnceLock::new(),
            spec: KeySpec::text(Vec::new(), Normalisation::default()),
            key_columns: Vec::new(),
            empty_keys: options.empty_keys,
            decimal_comma,
            most: options.max_row.bytes(),
        })
    }

    /// Whether rows go out as CSV unless the output's name says otherwise: see [`Input::is_answer`].
    pub(crate) fn is_answer(&self) -> bool {
        self.parts[0].input.is_answer()
    }

    /// The size in bytes of all files when they were opened.
    pub fn bytes(&self) -> u64 {
        self.parts.iter().map(|part| part.input.bytes()).sum()
    }

    /// A digest of what was opened: see [`Input::digest`]; of several files a hash of theirs.
    pub(crate) fn digest(&self) -> Result<[u8; 32]> {
        if let [one] = self.parts.as_slice() {
            return one.input.digest();
        }
        let digests = self.parts.iter().map(|part| part.input.digest()).collect::<Result<Vec<_>>>()?;
        digest_of_all(&digests)
    }

    /// How many cells held errors and count as empty.
    pub(crate) fn error_cells(&self) -> u64 {
        self.parts.iter().map(|part| part.input.emptied()).sum()
    }

    /// The file of a row, counted from 1, and its place there.
    pub(crate) fn place(&self, row: u64) -> (PathBuf, Place) {
        parts::place(&self.parts, row)
    }

    fn done(&self) -> u64 {
        self.parts.iter().map(|part| part.input.done()).sum()
    }

    /// Whether its cells are of CSV files whose decimals have a comma.
    pub(crate) fn has_decimal_comma(&self) -> bool {
        self.decimal_comma
    }

    /// Whether a cell's text is a word for nothing.
    pub(crate) fn is_null(&self, cell: &str) -> bool {
        is_null(&self.spec.nulls, cell)
    }

    /// Takes cells that are one of these words as empty.
    pub(crate) fn set_nulls(&mut self, nulls: Vec<String>) {
        self.spec.nulls = nulls;
    }

    /// The format of an output whose name says none: the file's, but for streams.
    pub fn format(&self) -> Format {
        self.parts[0].format.written()
    }

    /// Reads all keys. `progress` is told now and then how many of the file's bytes have been read, about.
    pub fn read_keys(&self, progress: impl FnMut(u64)) -> Result<KeySet> {
        let mut keys = KeySet::listed(self.listing());
        let tally = self.each_key(progress, |elements| {
            keys.push_all(elements).map_err(|full| Error::full(self.path(), full))
        })?;
        keys.set_tally(tally);
        Ok(keys)
    }

    /// Tells the elements of all rows to `visit`, some at a time and in order, nothing where there is no key.
    pub(crate) fn each_key<E: From<Error>>(
        &self,
        mut progress: impl FnMut(u64),
        mut visit: impl FnMut(&[Option<Element>]) -> std::result::Result<(), E>,
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
            let elements = self.elements(&mut hasher, &batch, &places, row)?;
            let empty = self.listing().rows(&elements).position(|of| of.iter().all(Option::is_none));
            if let Some(at) = empty.filter(|_| self.empty_keys == EmptyKeys::Refuse) {
                return Err(match self.place(row + at as u64 + 1) {
                    (path, Place::Row(row)) => Error::EmptyKeyInRow { path, row },
                    (path, Place::Line(line)) => Error::EmptyKey { path, line },
                }
                .into());
            }
            row += batch.num_rows() as u64;
            visit(&elements)?;
            progress(self.done().min(self.bytes()));
        }
        progress(self.bytes());
        Ok(hasher.take_tally())
    }

    /// Writes the rows that `wanted` says of their number and elements to `output`, which is called `target`,
    /// in the format that its name says or else in this file's. Returns the number of rows.
    pub(crate) fn write_wanted(
        &self,
        wanted: impl FnMut(u64, &[Option<Element>]) -> Result<bool>,
        target: &Path,
        output: &mut (impl Write + Send),
    ) -> Result<u64> {
        let format = Format::by_name(target).unwrap_or(self.format());
        let mut writer = self.writer(format, output, target, &self.schema)?;
        let written = self.each_wanted(wanted, |rows| writer.write(rows))?;
        writer.finish()?;
        Ok(written)
    }

    /// Hands the rows that `wanted` says of their number and elements to `visit`, some at a time and in the
    /// file's order. Returns their number.
    pub(crate) fn each_wanted(
        &self,
        mut wanted: impl FnMut(u64, &[Option<Element>]) -> Result<bool>,
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
            let elements = self.elements(&mut hasher, &batch, &self.key_columns, row)?;
            for elements in self.listing().rows(&elements) {
                chosen.push(wanted(row, elements)?);
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

    /// How the elements of its rows are listed.
    pub(crate) fn listing(&self) -> Listing {
        Listing::of(&self.spec)
    }

    /// Where the column of this name stands.
    pub(crate) fn position(&self, column: &str) -> Result<usize> {
        let path = self.path().to_owned();
        let names = || self.schema.fields().iter().map(|field| field.name().trim());
        let mut found = names().enumerate().filter(|(_, name)| *name == column.trim()).map(|(at, _)| at);
        match (found.next(), found.next()) {
            (Some(at), None) => Ok(at),
            (Some(_), Some(_)) => Err(Error::AmbiguousColumn { path, column: column.to_owned() }),
            (None, _) => {
                let columns = self.schema.fields().len();
                // What may be data is not shown as a name.
                let near = nearest(column, names()).filter(|_| !self.is_doubtful()).map(str::to_owned);
                Err(Error::NoColumn { path, column: column.to_owned(), columns, near })
            }
        }
    }

    /// Whether the names of its columns are cells of a first line or row, of CSV files or workbooks.
    pub(crate) fn has_first_line(&self) -> bool {
        self.parts.iter().any(|part| part.input.has_first_line())
    }

    /// Whether the names of its columns may be data, by the first rows.
    pub(crate) fn is_doubtful(&self) -> bool {
        let names: Vec<&str> = self.schema.fields().iter().map(|field| field.name().as_str()).collect();
        if !self.has_first_line() {
            return first_line::has_data(names.into_iter());
        }
        let mut seen = vec![Shapes::default(); names.len()];
        let first = self.batches(None).ok().and_then(|mut batches| batches.next()?.ok());
        if let Some(batch) = first {
            for ((column, field), seen) in batch.columns().iter().zip(self.schema.fields()).zip(&mut seen) {
                let Ok(texts) = Texts::of(column, field) else { continue };
                (0..column.len().min(COMPARED_ROWS)).for_each(|row| seen.add(texts.get(row)));
            }
        }
        first_line::is_doubtful(&names, &seen.iter().map(Shapes::most).collect::<Vec<_>>())
    }

    /// What becomes of its cells that an output cannot hold.
    pub(crate) fn unfit(&self) -> &Unfit {
        &self.origin.unfit
    }

    /// The file.
    pub(crate) fn path(&self) -> &Path {
        self.parts[0].input.path()
    }

    /// A writer of columns that begin with these, to `output`, which is called `target`.
    pub(crate) fn writer<'a, W: Write + Send>(
        &self,
        format: Format,
        output: &'a mut W,
        target: &'a Path,
        schema: &SchemaRef,
    ) -> Result<Writer<'a, W>> {
        self.writer_behind(0, format, output, target, schema)
    }

    /// The same of columns that these come behind `ahead` others.
    pub(crate) fn writer_behind<'a, W: Write + Send>(
        &self,
        ahead: usize,
        format: Format,
        output: &'a mut W,
        target: &'a Path,
        schema: &SchemaRef,
    ) -> Result<Writer<'a, W>> {
        let dictionaries = self.gathered(format)?;
        let origin = Origin { ahead, ..self.origin.clone() };
        Ok(Writer::new(format, output, target, schema, &origin)?.by(dictionaries))
    }

    /// Writes all rows to nothing in the format of a file called `target`.
    pub(crate) fn try_columns(&self, target: &Path) -> Result<()> {
        let format = Format::by_name(target).unwrap_or(self.format());
        let dictionaries = self.gathered(format)?;
        let mut nothing = std::io::sink();
        let writer = Writer::new(format, &mut nothing, target, &self.schema, &self.origin.trial())?;
        let mut writer = writer.by(dictionaries);
        for batch in self.batches(None)? {
            writer.write(&batch.map_err(|error| self.failed(error))?)?;
        }
        writer.finish()
    }

    /// The dictionaries of all row groups together, by their columns, where the output has one a column.
    fn gathered(&self, format: Format) -> Result<Arc<BTreeMap<usize, Dictionaries>>> {
        let data = |at: usize| self.schema.field(at).data_type();
        // An Arrow file has one for each already; within others a part without elements may come without it.
        let is_one = self.parts.len() == 1 && self.parts[0].format == Format::ArrowFile;
        let is_needed = |at: &usize| match data(*at) {
            DataType::Dictionary(..) => !is_one,
            other => dictionaries::count(other) > 0,
        };
        let columns: Vec<usize> = (0..self.schema.fields().len()).filter(is_needed).collect();
        if format != Format::ArrowFile || columns.is_empty() {
            return Ok(Arc::default());
        }
        if let Some(known) = self.dictionaries.get() {
            return Ok(known.clone());
        }
        let mut gathered: Vec<Gathered> = columns.iter().map(|at| Gathered::of(data(*at))).collect();
        for batch in self.batches(Some(columns.clone()))? {
            let batch = batch.map_err(|error| self.failed(error))?;
            for (gathered, column) in gathered.iter_mut().zip(batch.columns()) {
                guarded(|| gathered.add(column)).map_err(|error| self.damaged(&error))?;
            }
        }
        let mut dictionaries = BTreeMap::new();
        for (at, gathered) in columns.into_iter().zip(gathered) {
            if let Some(own) = guarded(|| gathered.end()).map_err(|error| self.damaged(&error))? {
                dictionaries.insert(at, own);
            }
        }
        Ok(self.dictionaries.get_or_init(|| Arc::new(dictionaries)).clone())
    }

    /// What the library read, as columns of [`schema`](Self::schema).
    fn whole(&self, batch: RecordBatch) -> std::result::Result<RecordBatch, ArrowError> {
        let changed = || ArrowError::ExternalError(Box::new(self.changed()));
        if batch.num_columns() != self.schema.fields().len() {
            return Err(changed());
        }
        let rows = arrow_array::RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        RecordBatch::try_new_with_options(self.schema.clone(), batch.columns().to_vec(), &rows)
            .map_err(|_| changed())
    }

    /// What hashes the key, and where its columns stand.
    pub(crate) fn key(&self) -> (KeyHasher, &[usize]) {
        (KeyHasher::of(&self.spec), &self.key_columns)
    }

    /// The columns with their types.
    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// That the file is not the one that was read before, or one of several.
    pub(crate) fn changed(&self) -> Error {
        let mut path = self.path().to_owned();
        // Their keys are one sequence, which does not tell whose rows are others.
        if self.parts.len() > 1 {
            path.as_mut_os_string().push(format!(" and {} more", self.parts.len() - 1));
        }
        Error::Changed(path)
    }

    /// All rows.
    pub(crate) fn read_whole(&self) -> Result<(SchemaRef, Vec<RecordBatch>)> {
        let batches: std::result::Result<Vec<_>, _> = self.batches(None)?.collect();
        Ok((self.schema.clone(), batches.map_err(|error| self.failed(error))?))
    }

    /// The file's batches, of all columns or of these, each of at most [`BATCH`] rows.
    pub(crate) fn batches(&self, columns: Option<Vec<usize>>) -> Result<Batches<'_>> {
        let is_whole = columns.is_none();
        let read = self.raw(columns)?;
        Ok(match is_whole {
            true => Box::new(read.map(|batch| self.whole(batch?))),
            false => read,
        })
    }

    /// The same as the library reads them, fenced; a row longer than rows may be ends them.
    fn raw(&self, columns: Option<Vec<usize>>) -> Result<Batches<'static>> {
        parts::batches(&self.parts, 0..self.parts.len(), columns, &self.schema, self.most)
    }

    /// The elements of a batch's rows, as [`Listing`] has them. `places` are the key columns, and `before` is the
    /// number of rows in earlier batches.
    pub(crate) fn elements(
        &self,
        hasher: &mut KeyHasher,
        batch: &RecordBatch,
        places: &[usize],
        before: u64,
    ) -> Result<Wiped<Option<Element>>> {
        let texts: Vec<Texts> = places
            .iter()
            .zip(&self.key_columns)
            .map(|(at, &own)| match batch.columns().get(*at) {
                Some(column) => {
                    let field = self.schema.field(own);
                    let texts = guarded(|| Texts::of(column, field));
                    let texts = texts.map_err(|_| self.textless(own, column, before))?;
                    let marks = field.metadata().get(NUMERIC.0);
                    let is_numeric = marks.is_some_and(|name| name == NUMERIC.1);
                    Ok(if is_numeric { texts.of_decimals() } else { texts })
                }
                None => Err(self.changed()),
            })
            .collect::<Result<_>>()?;
        fenced(|| elements::of_rows(&self.spec, hasher, &texts, batch.num_rows(), before))
            .map_err(|panicked| self.damaged(&gave_up(&panicked)))
    }

    /// What a batch that could not be had stands for.
    pub(crate) fn failed(&self, error: ArrowError) -> Error {
        match error {
            ArrowError::ExternalError(source) => match source.downcast::<Error>() {
                Ok(own) => *own,
                Err(source) => match source.downcast::<parts::Torn>() {
                    Ok(torn) => self.damaged_in(torn.part..torn.part + 1, &torn.what),
                    Err(source) => self.damaged(&source),
                },
            },
            error => self.damaged(&error),
        }
    }

    /// That a cell of this column, of which `before` rows came already, has no text.
    pub(crate) fn textless(&self, at: usize, column: &ArrayRef, before: u64) -> Error {
        let field = self.schema.field(at);
        let is_bad = |row: &usize| guarded(|| Texts::of(&column.slice(*row, 1), field)).is_err();
        let row = (0..column.len()).find(is_bad).unwrap_or(0) as u64;
        let (path, place) = self.place(before + row + 1);
        Error::Cell {
            path,
            place,
            column: format!("`{}`", tacit_crypto::text::shown(field.name())),
            what: NO_TEXT.to_owned(),
        }
    }

    /// That reading failed: which column, and about where.
    pub(crate) fn damaged(&self, error: &dyn std::fmt::Display) -> Error {
        self.damaged_in(0..self.parts.len(), &words(&error.to_string()))
    }

    fn damaged_in(&self, range: Range<usize>, what: &str) -> Error {
        for part in range.clone() {
            for (at, field) in self.schema.fields().iter().enumerate() {
                let of = part..part + 1;
                let Ok(batches) = parts::batches(&self.parts, of, Some(vec![at]), &self.schema, self.most)
                else {
                    break;
                };
                let mut rows = 0u64;
                for batch in batches {
                    match batch {
                        Ok(batch) => rows += batch.num_rows() as u64,
                        Err(ArrowError::ExternalError(source)) => {
                            let Ok(torn) = source.downcast::<parts::Torn>() else { break };
                            let column =
                                format!("{} (`{}`)", at + 1, tacit_crypto::text::shown(field.name()));
                            let input = &self.parts[part].input;
                            let what = match self.parts[part].is_encrypted(at) {
                                true => ENCRYPTED.to_owned(),
                                false => torn.what.clone(),
                            };
                            let path = input.path().to_owned();
                            return input.fault().unwrap_or(Error::Unread { path, column, rows, what });
                        }
                        Err(_) => break,
                    }
                }
            }
        }
        self.parts[range.start].fault(what.to_owned())
    }
}

/// Opens the file `stored` for its batches, of all columns or of these.
fn open(
    format: Format,
    stored: Stored,
    options: ArrowReaderOptions,
    columns: Option<Vec<usize>>,
    pages: &[bounds::Column],
) -> std::result::Result<Batches<'static>, ArrowError> {
    Ok(match format {
        Format::Parquet => {
            let builder = ParquetRecordBatchReaderBuilder::try_new_with_options(stored, options)?;
            let all = 0..builder.schema().fields().len();
            let wanted = columns.clone().unwrap_or_else(|| all.collect());
            let width = wanted
                .iter()
                .filter_map(|at| pages.get(*at))
                .fold(0, |sum: u64, one| sum.saturating_add(one.width));
            let rows = rows_together(width, rows_of_batch(wanted.len()));
            let mask = match columns {
                Some(columns) => ProjectionMask::roots(builder.parquet_schema(), columns),
                None => ProjectionMask::all(),
            };
            Box::new(builder.with_batch_size(rows).with_projection(mask).build()?)
        }
        Format::ArrowFile | Format::Excel => {
            Box::new(pieces(FileReader::try_new(BufReader::new(stored), columns)?))
        }
        Format::ArrowStream => Box::new(pieces(StreamReader::try_new(BufReader::new(stored), columns)?)),
    })
}

/// The same batches with at most [`BATCH`] rows each.
fn pieces(
    batches: impl Iterator<Item = std::result::Result<RecordBatch, ArrowError>>,
) -> impl Iterator<Item = std::result::Result<RecordBatch, ArrowError>> {
    batches.flat_map(|batch| {
        let (batch, failed) =
            batch.map_or_else(|error| (None, Some(Err(error))), |batch| (Some(batch), None));
        let rows = batch.as_ref().map_or(0, RecordBatch::num_rows);
        let most = batch.as_ref().map_or(BATCH, |batch| rows_of(batch, BATCH));
        let piece = move |from| {
            let batch = batch.as_ref()?;
            Some(Ok(batch.slice(from, most.min(batch.num_rows() - from))))
        };
        (0..rows).step_by(most).filter_map(piece).chain(failed)
    })
}

/// Batches whose reader may panic, which ends them.
struct Fenced(Option<Batches<'static>>);

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
pub fn is_moment(data: &DataType) -> bool {
    matches!(data, DataType::Timestamp(_, None))
}

/// A column's cells as the texts that keys are made of.
pub struct Texts {
    cells: StringArray,
    decimal: bool,
}

impl Texts {
    /// Of a column of a type that may be a key. Errors: a cell without text.
    pub fn of(column: &ArrayRef, field: &Field) -> std::result::Result<Self, ArrowError> {
        let mut column = column.clone();
        if is_uuid(field) {
            column = uuids(&column);
        }
        if let DataType::Dictionary(_, values) = column.data_type() {
            column = arrow_cast::cast(&column, values)?;
        }
        if column.data_type() == &DataType::Date64 {
            column = dates(&column)?;
        }
        if let DataType::Timestamp(unit, Some(_)) = column.data_type() {
            column = arrow_cast::cast(&column, &DataType::Timestamp(*unit, None))?;
        }
        let decimal = column.data_type().is_decimal();
        has_digits(&column)?;
        let options = arrow_cast::CastOptions { safe: false, ..arrow_cast::CastOptions::default() };
        let cells = arrow_cast::cast_with_options(&column, &DataType::Utf8, &options)?;
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

/// Of a table of several files with these digests.
pub(crate) fn digest_of_all(digests: &[[u8; 32]]) -> Result<[u8; 32]> {
    let mut hasher = blake3::Hasher::new_derive_key("tacit several files v1");
    hasher.update(digests.as_flattened());
    Ok(*hasher.finalize().as_bytes())
}
