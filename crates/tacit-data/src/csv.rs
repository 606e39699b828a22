//! Tables in CSV files: reading keys or columns, writing the matching rows, or every row with more columns.
//!
//! A file is read twice: once for its keys, and after the intersection once more to copy the rows that
//! matched, by their numbers. Rows are never held in memory, so ten million of them cost what [`KeySet`] costs.
//! Both passes hash the file's bytes, and a file that changed in between is refused. The output holds the matching rows of
//! this party's own file, byte for byte as they were written there, in the file's order, every duplicate
//! included. A writer that has got an error holds a part of it: who wants it whole or not at all writes
//! beside its place first.
//!
//! Quotes are those of RFC 4180: a field is enclosed as a whole, or holds none. A file that has others is
//! refused with the line, since a quote that is never closed makes one cell of many rows.
//!
//! A file is UTF-8 (a byte order mark is tolerated) unless [`Options::encoding`] names another encoding; what is
//! written is UTF-8. Its first line names the columns unless [`Header::None`] says that it is data, and every row
//! has as many fields. A line `sep=;` in front of it names the separator, and goes. A file may be packed, and it
//! may be a stream: see [`input`](crate::input).

mod first;
mod pieces;
mod reading;
mod rows;
mod stream;

use crate::behind::{Behind, beside};
use crate::columnar::Origin;
pub use crate::encoding::Encoding;
use crate::encoding::{self, BYTE_ORDER_MARK};
pub use crate::fault::{Error, Misquoted, NUMBERED, Place, Result};
use crate::input::{BUFFER, Input, Packer, Packing};
use crate::kept::{Kept, rows_of_batch};
use crate::kind;
use crate::lines::RowLines;
use crate::records::{Found, KeySet, KeySpec, Listing, Normalisation};
use crate::unfit::Unfit;
use arrow_array::builder::LargeStringBuilder;
use arrow_array::{ArrayRef, RecordBatch};
use arrow_ipc::writer::FileWriter;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use rows::{Marks, Rows, Written};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use tacit_crypto::near::nearest;

/// What separates fields.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Delimiter {
    /// Of comma, semicolon, tab and bar, the one most frequent in the header outside quotes; comma if there
    /// is none.
    #[default]
    Auto,
    /// This byte.
    Byte(u8),
}

/// What happens to rows of whose key a part is empty.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum EmptyKeys {
    /// They match nothing and are counted.
    #[default]
    Skip,
    /// They are an error.
    Refuse,
}

/// What stands in the first line.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Header {
    /// The names of the columns.
    #[default]
    Names,
    /// Data: columns are named by their numbers, from 1.
    None,
}

/// What encloses a field that holds a delimiter or a line's end.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Quote {
    /// The double quote, doubled where it stands for itself.
    #[default]
    Double,
    /// This byte, doubled where it stands for itself.
    Byte(u8),
    /// Nothing: quotes are part of a field.
    None,
}

impl Quote {
    fn byte(self) -> Option<u8> {
        match self {
            Quote::Double => Some(b'"'),
            Quote::Byte(quote) => Some(quote),
            Quote::None => None,
        }
    }
}

/// How a table is read.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Options {
    /// What separates fields.
    pub delimiter: Delimiter,
    /// What encloses fields.
    pub quote: Quote,
    /// What stands before a quote within quotes, if quotes are not doubled there. Without quotes
    /// ([`Quote::None`]), what stands before a separator, a line's end or itself in a field; of a backslash then
    /// `\n`, `\t`, `\r`, `\0`, `\b` and `\Z` are what MySQL reads them as, and a field `\N` is empty.
    pub escape: Option<u8>,
    /// What stands in the first line.
    pub header: Header,
    /// The encoding of the text; UTF-8 unless named.
    pub encoding: Option<Encoding>,
    /// Lines in front of the header that are no part of the table.
    pub skip_lines: u64,
    /// Whether a comma parts the fraction of decimals that are computed on.
    pub decimal_comma: bool,
    /// Whether Parquet columns of bytes that nothing says more of hold text.
    pub binary_as_text: bool,
    /// What happens to rows without a key.
    pub empty_keys: EmptyKeys,
    /// How long a row may be.
    pub max_row: MaxRow,
    /// What happens to cells of a workbook that hold an error.
    pub error_cells: ErrorCells,
}

/// What happens to cells of a workbook that hold an error, such as `#N/A`.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum ErrorCells {
    /// They are an error, which names the cell.
    #[default]
    Refuse,
    /// They count as empty, and are counted.
    Null,
}

/// Bytes of a row, at most: as it is written in a CSV file, of its cells in a file of columns. Memory holds a few
/// rows as long as that, however small the file is packed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MaxRow(u64);

impl Default for MaxRow {
    fn default() -> Self {
        MaxRow::USUAL
    }
}

impl MaxRow {
    /// What a row may have unless the caller says otherwise.
    pub const USUAL: MaxRow = MaxRow(16 << 20);

    /// So many bytes.
    pub fn new(bytes: u64) -> Self {
        MaxRow(bytes)
    }

    /// The bytes.
    pub fn bytes(self) -> u64 {
        self.0
    }
}

/// A CSV file whose header has been read and whose key columns are there.
pub struct Source {
    input: Input,
    spec: KeySpec,
    options: Options,
    form: Form,
    header: Vec<String>,
    key_columns: Vec<usize>,
    unfit: Unfit,
}

impl std::fmt::Debug for Source {
    /// Without the header, which is data where a file has none.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Source")
            .field("path", &self.path())
            .field("bytes", &self.bytes())
            .finish_non_exhaustive()
    }
}

impl Source {
    /// Opens the table at `path`, reads its header and finds the key's columns.
    pub fn open(path: &Path, spec: KeySpec, options: Options) -> Result<Self> {
        Self::with_key(Input::open(path)?, spec, options)
    }

    /// Reads the header of a table and finds the key's columns.
    pub(crate) fn with_key(input: Input, spec: KeySpec, options: Options) -> Result<Self> {
        let mut source = Self::from_input(input, options)?;
        if spec.columns.is_empty() {
            return Err(Error::NoKey(source.path().to_owned()));
        }
        source.key_columns = source.positions(&spec.columns)?;
        source.spec = spec;
        Ok(source)
    }

    /// Opens the table at `path`, `-` being standard input, and reads its header, for use without a key: see
    /// [`read_columns`](Self::read_columns).
    pub fn open_table(path: &Path, options: Options) -> Result<Self> {
        Self::from_input(Input::open(path)?, options)
    }

    /// Reads the header of a table.
    pub(crate) fn from_input(input: Input, mut options: Options) -> Result<Self> {
        let path = input.path().to_owned();
        if input.is_answer() {
            return Err(Error::CsvAlone { path, format: "the result of a database query" });
        }
        let first = input.start()?;
        options.encoding = encoding::of(&path, &first, options.encoding)?;
        kind::refuse(&path, &first, input.packing(), options.encoding)?;
        let (mut text, start) = stream::open(&input, &options)?;
        let form = Form::of(text.ahead(), &start, options);
        drop(text);
        let mut source = Source {
            input,
            spec: KeySpec::text(Vec::new(), Normalisation::default()),
            options,
            form,
            header: Vec::new(),
            key_columns: Vec::new(),
            unfit: Unfit::default(),
        };
        let mut rows = source.rows()?;
        let found = rows.next()?;
        if !found || rows.fields().all(str::is_empty) && options.header == Header::Names {
            return Err(Error::Empty(path));
        }
        let end = match rows.written().end {
            b"\r\n" => b"\r\n",
            b"\r" => &b"\r"[..],
            _ => b"\n",
        };
        let header = match options.header {
            Header::Names => rows.fields().map(str::to_owned).collect(),
            Header::None => (1..=rows.len()).map(|number| number.to_string()).collect(),
        };
        drop(rows);
        (source.header, source.form.end) = (header, end);
        Ok(source)
    }

    /// The columns' names.
    pub fn columns(&self) -> impl Iterator<Item = &str> + Clone {
        self.header.iter().map(String::as_str)
    }

    /// The byte that separates fields, given or detected.
    pub fn delimiter(&self) -> u8 {
        self.form.delimiter
    }

    /// The file's size in bytes when it was opened, as it is packed.
    pub fn bytes(&self) -> u64 {
        self.input.bytes()
    }

    /// How the file is packed.
    pub fn packing(&self) -> Packing {
        self.input.packing()
    }

    /// Whether a comma parts the fraction of decimals.
    pub(crate) fn has_decimal_comma(&self) -> bool {
        self.options.decimal_comma
    }

    /// Whether a cell says nothing.
    pub(crate) fn is_null(&self, cell: &str) -> bool {
        self.spec.is_null(cell)
    }

    /// How the elements of its rows are listed.
    pub(crate) fn listing(&self) -> Listing {
        Listing::of(&self.spec)
    }

    /// Takes cells that are one of these words as empty.
    pub(crate) fn set_nulls(&mut self, nulls: Vec<String>) {
        self.spec.nulls = nulls;
    }

    pub(crate) fn path(&self) -> &Path {
        self.input.path()
    }

    /// Where it comes from.
    pub(crate) fn input(&self) -> &Input {
        &self.input
    }

    /// Copies the rows that `wanted` says of their numbers to `output`, which is called `target`, under the header.
    /// Returns the number of rows.
    pub(crate) fn write_wanted(
        &self,
        wanted: impl FnMut(u64) -> Result<bool>,
        target: &Path,
        output: &mut impl Write,
    ) -> Result<u64> {
        let mut writer = TableWriter::new(target, output, self)?;
        self.write_header(&[], &mut writer)?;
        let mut written = 0;
        self.each_written(wanted, |row| {
            written += 1;
            writer.write(row)
        })?;
        writer.finish()?;
        Ok(written)
    }

    /// Hands the fields of the rows that `wanted` says of their numbers to `visit`.
    pub(crate) fn each_wanted(
        &self,
        mut wanted: impl FnMut(u64) -> Result<bool>,
        mut visit: impl FnMut(&mut dyn Iterator<Item = &str>) -> Result<()>,
    ) -> Result<()> {
        let (mut number, mut rows) = (0, self.data()?);
        while rows.next()? {
            if wanted(number)? {
                visit(&mut rows.fields())?;
            }
            number += 1;
        }
        Ok(())
    }

    /// Reads the fields of every row at the positions `columns`, and hands them to `visit` with the line
    /// where the row starts.
    pub fn read_columns<E: From<Error>>(
        &self,
        columns: &[usize],
        mut visit: impl FnMut(u64, &[&str]) -> std::result::Result<(), E>,
    ) -> std::result::Result<Contents, E> {
        let mut rows = self.data()?;
        let mut contents = Contents::start();
        while rows.next()? {
            contents.add(rows.fields());
            let fields: Vec<&str> = columns.iter().map(|&column| rows.field(column)).collect();
            visit(rows.line(), &fields)?;
        }
        Ok(contents)
    }

    /// The table as an Arrow file, in which an empty cell is a null.
    pub(crate) fn as_columns(&self) -> Result<Input> {
        let path = self.path();
        let unkept = |error: &dyn std::fmt::Display| Error::Unreadable {
            path: path.to_owned(),
            source: std::io::Error::other(format!("in {}: {error}", std::env::temp_dir().display())),
        };
        let (schema, places) = (self.schema(), (0..self.header.len()).collect::<Vec<_>>());
        let mut columns: Vec<LargeStringBuilder> = places.iter().map(|_| LargeStringBuilder::new()).collect();
        let kept = Kept::new().map_err(|error| unkept(&error))?;
        let mut writer = FileWriter::try_new(kept, &schema).map_err(|error| unkept(&error))?;
        let mut flush = |columns: &mut Vec<LargeStringBuilder>| {
            let arrays = columns.iter_mut().map(|column| Arc::new(column.finish()) as ArrayRef).collect();
            let batch = RecordBatch::try_new(schema.clone(), arrays);
            batch.and_then(|batch| writer.write(&batch)).map_err(|error| unkept(&error))
        };
        let (mut waiting, most) = (0, rows_of_batch(places.len()));
        let mut lines = RowLines::default();
        self.read_columns(&places, |line, cells| {
            lines.add(line);
            for (column, cell) in columns.iter_mut().zip(cells) {
                column.append_option((!cell.is_empty()).then_some(cell));
            }
            waiting += 1;
            if waiting == most {
                waiting = 0;
                flush(&mut columns)?;
            }
            Ok::<_, Error>(())
        })?;
        if waiting > 0 {
            flush(&mut columns)?;
        }
        let mut kept = writer.into_inner().map_err(|error| unkept(&error))?;
        kept.flush().map_err(|error| unkept(&error))?;
        Ok(Input::kept(path, kept, self.input.digest_as_read()?).of_rows(lines))
    }

    /// The table's columns, all of text.
    pub(crate) fn schema(&self) -> SchemaRef {
        let field = |name| Field::new(name, DataType::LargeUtf8, true);
        SchemaRef::new(Schema::new(self.columns().map(field).collect::<Vec<_>>()))
    }

    /// All rows, as columns of text.
    pub(crate) fn read_whole(&self) -> Result<(SchemaRef, Vec<RecordBatch>)> {
        let names: Vec<&str> = self.columns().collect();
        let schema = self.schema();
        let mut columns: Vec<LargeStringBuilder> = names.iter().map(|_| LargeStringBuilder::new()).collect();
        let mut batches = Vec::new();
        let take = |columns: &mut Vec<LargeStringBuilder>| {
            let arrays = columns.iter_mut().map(|column| Arc::new(column.finish()) as ArrayRef).collect();
            RecordBatch::try_new(schema.clone(), arrays).map_err(|error| Error::Unreadable {
                path: self.path().to_owned(),
                source: std::io::Error::other(error),
            })
        };
        let places: Vec<usize> = (0..names.len()).collect();
        let (mut rows, most) = (0, rows_of_batch(names.len()));
        self.read_columns(&places, |_, cells| {
            columns.iter_mut().zip(cells).for_each(|(column, cell)| column.append_value(cell));
            rows += 1;
            if rows % most == 0 {
                batches.push(take(&mut columns)?);
            }
            Ok::<_, Error>(())
        })?;
        batches.push(take(&mut columns)?);
        Ok((schema, batches))
    }

    /// Copies every row to `output`, which is called `target`, with more fields behind its own, those of
    /// `extend` for row 0, 1, …, under the header with `names` behind it; a name that the table has already
    /// gets a number.
    ///
    /// Refuses a file whose rows are not those of `contents`.
    pub fn write_extended(
        &self,
        contents: &Contents,
        names: &[&str],
        mut extend: impl FnMut(u64) -> Vec<String>,
        target: &Path,
        output: &mut impl Write,
    ) -> Result<()> {
        let header = beside(self.columns(), names);
        let mut writer = TableWriter::new(target, output, self)?;
        let mut rows = self.rows()?;
        if self.options.header == Header::Names {
            rows.next()?;
            writer.whole(rows.written(), &header)?;
        }
        let mut again = Contents::start();
        while rows.next()? {
            if again.rows == contents.rows {
                return Err(self.changed());
            }
            let more = extend(again.rows);
            again.add(rows.fields());
            writer.whole(rows.written(), &more)?;
        }
        if again.digest() != contents.digest() {
            return Err(self.changed());
        }
        writer.finish()
    }

    /// Copies the rows of whose number `found` gives an element, or all of a left join, to `output`, which is
    /// called `target`, with what `behind` has for it. Returns the number of rows written.
    pub(crate) fn write_joined(
        &self,
        mut found: impl FnMut(u64) -> Result<Option<Found>>,
        behind: &Behind<'_, '_>,
        target: &Path,
        output: &mut impl Write,
    ) -> Result<u64> {
        let mut writer = TableWriter::new(target, output, self)?;
        self.write_header(&behind.named(self.columns()), &mut writer)?;
        let (mut number, mut written) = (0, 0);
        let mut rows = self.data()?;
        rows.take_as_written();
        while rows.next()? {
            behind.each(found(number)?, |cells| {
                let emptied = writer.extended(rows.written(), cells.iter().copied())?;
                behind.emptied.set(behind.emptied.get() + emptied);
                written += 1;
                Ok(())
            })?;
            number += 1;
        }
        writer.finish()?;
        Ok(written)
    }

    /// Copies every row to `output`, which is called `target`, behind the text that `cell` gives of its number, under
    /// the header behind `name`. Returns the number of rows.
    pub(crate) fn write_ahead(
        &self,
        name: &str,
        mut cell: impl FnMut(u64) -> Result<String>,
        target: &Path,
        output: &mut impl Write,
    ) -> Result<u64> {
        let mut writer = TableWriter::new(target, output, self)?;
        if self.options.header == Header::Names {
            let mut first = self.rows()?;
            first.next()?;
            writer.ahead(name, first.written())?;
        }
        let mut written = 0;
        let mut rows = self.data()?;
        rows.take_as_written();
        while rows.next()? {
            writer.ahead(&cell(written)?, rows.written())?;
            written += 1;
        }
        writer.finish()?;
        Ok(written)
    }

    /// Whether an output as this file is written holds these texts in front of its own cells; the first is a name.
    pub(crate) fn holds_ahead(&self, target: &Path, texts: &[&str]) -> Result<()> {
        match texts.iter().all(|text| self.form.holds(self.options, text)) {
            true => Ok(()),
            false => Err(Error::NoRoom {
                path: target.to_owned(),
                what: "the column of identifiers, as it is written without quotes",
                remedy: "give the column another name, or name the output .parquet or .arrow",
            }),
        }
    }

    /// What becomes of its cells that an output cannot hold.
    pub(crate) fn unfit(&self) -> &Unfit {
        &self.unfit
    }

    /// What an output of columns takes from it.
    pub(crate) fn origin(&self) -> Origin {
        Origin { unfit: self.unfit.clone(), ..Origin::text() }
    }

    /// Whether an output as this file is written holds any cell behind its own, and these names.
    pub(crate) fn holds_behind(&self, target: &Path, names: &[String]) -> Result<()> {
        let named = self.options.header == Header::Names;
        let name = names.iter().find(|name| named && !self.form.holds(self.options, name));
        match name {
            Some(_) => Err(no_room(target, "the names of the peer's columns")),
            None if !self.form.holds_all(self.options) => Err(no_room(target, "every cell of the peer's")),
            None => Ok(()),
        }
    }

    /// That the file is not the one that was read before.
    pub fn changed(&self) -> Error {
        Error::Changed(self.path().to_owned())
    }

    /// The table's header, with `names` behind it.
    fn write_header<W: Write>(&self, names: &[String], writer: &mut TableWriter<'_, W>) -> Result<()> {
        if self.options.header == Header::Names {
            let mut first = self.rows()?;
            first.next()?;
            match names {
                [] => writer.write(first.written())?,
                names => {
                    let named =
                        writer.extended(first.written(), names.iter().map(|name| Some(name.as_str())))?;
                    if named > 0 {
                        return Err(no_room(writer.target, "the names of the peer's columns"));
                    }
                }
            }
        }
        Ok(())
    }

    /// Tells the cells of every row with a key, of the columns at `places`, to `visit`, with the row's element and
    /// line, once for each identifier that the row has; rows that are not those of `keys` are an error.
    pub(crate) fn each_given<E: From<Error>>(
        &self,
        keys: &KeySet,
        places: &[usize],
        mut visit: impl FnMut(usize, u64, &[&str]) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let (mut number, mut rows) = (0, self.data()?);
        while rows.next()? {
            if number >= keys.rows() {
                return Err(self.changed().into());
            }
            for at in keys.elements_of(number).flatten() {
                let cells: Vec<&str> = places.iter().map(|&place| rows.field(place)).collect();
                visit(at, rows.line(), &cells)?;
            }
            number += 1;
        }
        // A row that stands elsewhere than before would have given its cells as another's.
        Ok(self.check_unchanged(keys.file())?)
    }

    /// Refuses the file if what was read of it last is not what `before` is the digest of.
    pub(crate) fn check_unchanged(&self, before: Option<[u8; 32]>) -> Result<()> {
        if before.is_some() && self.input.last_read() == before { Ok(()) } else { Err(self.changed()) }
    }

    /// The rows behind the header.
    fn data(&self) -> Result<Rows<'_>> {
        let mut rows = self.rows()?;
        if self.options.header == Header::Names {
            rows.next()?;
            // Columns go by their place: another header is another table.
            if !rows.fields().eq(self.columns()) {
                return Err(self.changed());
            }
        }
        Ok(rows)
    }

    /// Every row, the header among them.
    fn rows(&self) -> Result<Rows<'_>> {
        let (text, start) = stream::open(&self.input, &self.options)?;
        Ok(Rows::new(&self.input, Box::new(text), self.marks(), &self.options, start.line))
    }

    /// What separates and encloses fields.
    fn marks(&self) -> Marks {
        Marks::of(&self.options, self.form.delimiter)
    }

    /// Where the columns of these names stand. Errors name a column that is missing or there twice.
    pub fn positions(&self, columns: &[String]) -> Result<Vec<usize>> {
        let find = |column: &String| {
            let mut found = self
                .header
                .iter()
                .enumerate()
                .filter(|(_, name)| name.trim() == column.trim())
                .map(|(i, _)| i);
            match (found.next(), found.next()) {
                (Some(at), None) => Ok(at),
                (None, _) if self.options.header == Header::None => Err(Error::NoSuchNumber {
                    path: self.path().to_owned(),
                    column: column.clone(),
                    columns: self.header.len(),
                }),
                (None, _) => Err(Error::UnknownColumn {
                    path: self.path().to_owned(),
                    column: column.clone(),
                    columns: self.header.len(),
                    near: self.near(column),
                }),
                (Some(_), Some(_)) => {
                    Err(Error::AmbiguousColumn { path: self.path().to_owned(), column: column.clone() })
                }
            }
        };
        columns.iter().map(find).collect()
    }

    /// The column that was most likely meant, unless the first line may be data.
    fn near(&self, column: &str) -> Option<String> {
        let near = nearest(column, self.columns().filter(|name| is_like_a_name(name)))?;
        (!self.is_doubtful()).then(|| near.to_owned())
    }
}

/// Whether a field of the first line is written as names of columns are, and not as most data.
fn is_like_a_name(field: &str) -> bool {
    field.chars().all(|c| c.is_alphabetic() || " _-".contains(c))
}

/// That a file as this one is written has no room for what comes behind its columns.
fn no_room(target: &Path, what: &'static str) -> Error {
    let remedy = "name it .parquet or .arrow, or let such cells be left empty (--unfit null)";
    Error::NoRoom { path: target.to_owned(), what, remedy }
}

/// What a table held when it was read: the number of its rows, and a digest to know them again.
#[derive(Debug)]
pub struct Contents {
    rows: u64,
    hasher: blake3::Hasher,
}

impl Contents {
    pub(crate) fn start() -> Self {
        Contents { rows: 0, hasher: blake3::Hasher::new_derive_key("tacit csv rows v1") }
    }

    pub(crate) fn add<'a>(&mut self, row: impl IntoIterator<Item = &'a str>) {
        self.rows += 1;
        for field in row {
            self.hasher.update(&(field.len() as u64).to_le_bytes());
            self.hasher.update(field.as_bytes());
        }
    }

    /// Every row has as many fields, so the fields' lengths and bytes say where rows end.
    pub(crate) fn digest(&self) -> blake3::Hash {
        self.hasher.finalize()
    }

    /// The number of rows.
    pub fn rows(&self) -> u64 {
        self.rows
    }
}

/// Rows on their way to a file.
struct TableWriter<'a, W: Write> {
    output: std::io::BufWriter<Packer<'a, W>>,
    target: &'a Path,
    options: Options,
    form: Form,
}

impl<'a, W: Write> TableWriter<'a, W> {
    fn new(target: &'a Path, output: &'a mut W, source: &Source) -> Result<Self> {
        let fault = |source| Error::Unwritable { path: target.to_owned(), source };
        let packing = Packing::by_name(target).unwrap_or(source.packing());
        let mut output = std::io::BufWriter::with_capacity(BUFFER, packing.pack(output).map_err(fault)?);
        let form = source.form;
        if form.byte_order_mark {
            output.write_all(BYTE_ORDER_MARK).map_err(fault)?;
        }
        Ok(TableWriter { output, target, options: source.options, form })
    }

    /// A row as it stood in its file, of which the last one may have no end.
    fn write(&mut self, row: Written<'_>) -> Result<()> {
        self.put(row.body)?;
        self.end(row)
    }

    /// A row as it stood in its file, and more fields, which this dialect must hold.
    fn whole(&mut self, row: Written<'_>, more: &[String]) -> Result<()> {
        match self.extended(row, more.iter().map(|field| Some(field.as_str())))? {
            0 => Ok(()),
            _ => Err(no_room(self.target, "every result")),
        }
    }

    /// A row as it stood in its file, and more fields. Returns how many of them this dialect cannot hold: they
    /// are left empty. A field may be the peer's: it must not end a field or a row of ours.
    fn extended<'c>(&mut self, row: Written<'_>, more: impl Iterator<Item = Option<&'c str>>) -> Result<u64> {
        let (mut tail, mut emptied) = (Vec::new(), 0);
        for field in more {
            tail.push(self.form.delimiter);
            let field = field.unwrap_or_default();
            match self.form.holds(self.options, field) {
                true => self.form.field(self.options, field, &mut tail),
                false => emptied += 1,
            }
        }
        self.put(row.body)?;
        self.put(&tail)?;
        self.end(row)?;
        Ok(emptied)
    }

    /// A field, and a row as it stood in its file.
    fn ahead(&mut self, field: &str, row: Written<'_>) -> Result<()> {
        let mut head = Vec::with_capacity(field.len() + 1);
        self.form.field(self.options, field, &mut head);
        head.push(self.form.delimiter);
        self.put(&head)?;
        self.write(row)
    }

    /// Ends the line of `row`.
    fn end(&mut self, row: Written<'_>) -> Result<()> {
        self.put(if row.end.is_empty() { self.form.end } else { row.end })
    }

    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        let fault = |source| Error::Unwritable { path: self.target.to_owned(), source };
        self.output.write_all(bytes).map_err(fault)
    }

    fn finish(self) -> Result<()> {
        let target = self.target;
        let fault = |source| Error::Unwritable { path: target.to_owned(), source };
        let packer = self.output.into_inner().map_err(|error| fault(error.into_error()))?;
        packer.finish().map_err(fault)
    }
}

/// How a file is written, apart from what stands in it; an output is written alike.
#[derive(Clone, Copy, Debug)]
struct Form {
    delimiter: u8,
    byte_order_mark: bool,
    /// What ends the first row, and so a last one that the file does not end.
    end: &'static [u8],
}

impl Form {
    /// What the first line of the `text` shows; a delimiter that was given counts more. What ends rows is told by
    /// who reads the first one.
    fn of(text: &[u8], start: &stream::Start, options: Options) -> Self {
        let quote = options.quote.byte();
        let escape = options.escape.filter(|escape| Some(*escape) != quote);
        let mut quoted = false;
        let mut counts = [(b',', 0u32), (b';', 0), (b'\t', 0), (b'|', 0)];
        let mut bytes = text.iter();
        while let Some(&byte) = bytes.next() {
            match byte {
                // What it escapes is part of a field.
                byte if Some(byte) == escape && (quoted || quote.is_none()) => _ = bytes.next(),
                byte if Some(byte) == quote => quoted = !quoted,
                b'\n' | b'\r' if !quoted => break,
                _ if quoted => {}
                _ => counts.iter_mut().filter(|(delimiter, _)| *delimiter == byte).for_each(|(_, n)| *n += 1),
            }
        }
        let delimiter = match (options.delimiter, start.delimiter) {
            (Delimiter::Byte(byte), _) | (Delimiter::Auto, Some(byte)) => byte,
            // The first of the most frequent ones: comma wins a draw.
            (Delimiter::Auto, None) => {
                counts.iter().rev().max_by_key(|(_, n)| *n).map_or(b',', |(delimiter, _)| *delimiter)
            }
        };
        Form { delimiter, byte_order_mark: start.byte_order_mark, end: b"\n" }
    }

    /// Whether a byte ends a field or a row, or encloses one.
    fn is_special(&self, options: Options, byte: u8) -> bool {
        let quote = options.quote.byte();
        byte == self.delimiter
            || matches!(byte, b'\r' | b'\n')
            || quote.is_some() && (quote == Some(byte) || options.escape == Some(byte))
    }

    /// Whether any field can be written so that it is read as it is.
    fn holds_all(&self, options: Options) -> bool {
        // Behind a backslash these letters stand for others.
        let is_letter = |escape| escape == b'\\' && b"NnrtbZ0".contains(&self.delimiter);
        options.quote.byte().is_some() || options.escape.is_some_and(|escape| !is_letter(escape))
    }

    /// Whether a field can be written so.
    fn holds(&self, options: Options, field: &str) -> bool {
        self.holds_all(options) || !field.bytes().any(|byte| self.is_special(options, byte))
    }

    /// Appends a field, enclosed or escaped where that is needed.
    fn field(&self, options: Options, field: &str, line: &mut Vec<u8>) {
        if let (None, Some(escape)) = (options.quote.byte(), options.escape) {
            for byte in field.bytes() {
                if byte == escape || self.is_special(options, byte) {
                    line.push(escape);
                }
                line.push(byte);
            }
            return;
        }
        let quote = options.quote.byte().filter(|_| field.bytes().any(|byte| self.is_special(options, byte)));
        let Some(quote) = quote else { return line.extend_from_slice(field.as_bytes()) };
        line.push(quote);
        for byte in field.bytes() {
            if byte == quote || options.escape == Some(byte) {
                line.push(options.escape.unwrap_or(quote));
            }
            line.push(byte);
        }
        line.push(quote);
    }
}
