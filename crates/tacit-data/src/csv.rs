//! Tables in CSV files: reading keys or columns, writing the matching rows, or every row with more columns.
//!
//! A file is read twice: once for its keys, and after the intersection once more to copy the rows that matched. Rows are never held
//! in memory, so ten million of them cost what [`KeySet`] costs. The second pass hashes the keys again and refuses a file that
//! changed in between. The output holds the matching rows of this party's own file with all their columns as they
//! were written there, in the file's order, every duplicate included. A writer that has got an error holds a part of it: who wants
//! it whole or not at all writes beside its place first.
//!
//! A file is UTF-8 (a byte order mark is tolerated), its first line names the columns, and every row has as many fields.

use crate::records::{KeyHasher, KeySet, KeySpec, Normalisation};
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use tacit_crypto::text::shown;

/// The result of reading or writing a table.
pub type Result<T> = std::result::Result<T, Error>;

/// What is wrong with a table. Names the file, and the line where there is one; never shows a row's content,
/// nor a column's name that the caller did not give: of a file without a header, the first row would be
/// shown.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no such file.
    #[error("{}: there is no such file", name(.0))]
    NotFound(PathBuf),
    /// The path is a directory, a pipe or a device.
    #[error("{}: not a regular file; the table is read twice, so a pipe will not do", name(.0))]
    NotAFile(PathBuf),
    /// The operating system refuses to read it.
    #[error("{}: cannot be read: {source}", name(.path))]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The operating system's reason.
        source: std::io::Error,
    },
    /// Not even a header.
    #[error("{}: the file is empty; its first line must name the columns", name(.0))]
    Empty(PathBuf),
    /// A key column that the table does not have.
    #[error(
        "{}: none of the {columns} columns is named `{}` in the first line, {}",
        name(.path), shown(.column), remedy(*.near)
    )]
    UnknownColumn {
        /// The file.
        path: PathBuf,
        /// The column asked for.
        column: String,
        /// How many columns there are.
        columns: usize,
        /// Whether a column has this name but for upper and lower case.
        near: bool,
    },
    /// Two columns bear the name of a key column.
    #[error(
        "{}: the column `{}` stands there more than once; rename one of them",
        name(.path), shown(.column)
    )]
    AmbiguousColumn {
        /// The file.
        path: PathBuf,
        /// The column asked for.
        column: String,
    },
    /// No key column was named.
    #[error("{}: no key column was named", name(.0))]
    NoKey(PathBuf),
    /// A row has too many or too few fields.
    #[error(
        "{}, line {line}: {found} fields where the header has {expected}; check quotes and delimiter",
        name(.path)
    )]
    UnequalRow {
        /// The file.
        path: PathBuf,
        /// The line where the row starts, from 1.
        line: u64,
        /// Fields of the header.
        expected: u64,
        /// Fields of the row.
        found: u64,
    },
    /// Bytes that are not UTF-8.
    #[error("{}, line {line}: not valid UTF-8; save the file as UTF-8", name(.path))]
    InvalidUtf8 {
        /// The file.
        path: PathBuf,
        /// The line where the row starts, from 1.
        line: u64,
    },
    /// The file is UTF-16.
    #[error("{}: the file is UTF-16; save it as UTF-8", name(.0))]
    Utf16(PathBuf),
    /// A row without a key, where the caller refuses those.
    #[error("{}, line {line}: a key column is empty", name(.path))]
    EmptyKey {
        /// The file.
        path: PathBuf,
        /// The line where the row starts, from 1.
        line: u64,
    },
    /// More rows than an intersection can take.
    #[error("{}: too many rows", name(.path))]
    TooManyRows {
        /// The file.
        path: PathBuf,
    },
    /// The file is not the one that was read before.
    #[error("{}: the file changed while the protocol ran; run again", name(.0))]
    Changed(PathBuf),
    /// The output cannot be written.
    #[error("{}: cannot be written: {source}", name(.path))]
    Unwritable {
        /// The output file.
        path: PathBuf,
        /// The operating system's reason.
        source: std::io::Error,
    },
}

fn name(path: &Path) -> String {
    shown(&path.to_string_lossy())
}

/// What to do about a column that is not there.
fn remedy(near: bool) -> &'static str {
    if near {
        "but one is, written in other upper and lower case; name it as it stands there"
    } else {
        "which must hold the columns' names and not data; see `--key` and `--delimiter` in `tacit help psi`"
    }
}

/// What separates fields.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Delimiter {
    /// Of comma, semicolon, tab and bar, the one most frequent in the header outside quotes; comma if there is none.
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

/// How a table is read.
#[derive(Clone, Copy, Default, Debug)]
pub struct Options {
    /// What separates fields.
    pub delimiter: Delimiter,
    /// What happens to rows without a key.
    pub empty_keys: EmptyKeys,
}

/// A CSV file whose header has been read and whose key columns are there.
pub struct Source {
    path: PathBuf,
    spec: KeySpec,
    options: Options,
    form: Form,
    header: ::csv::StringRecord,
    key_columns: Vec<usize>,
    bytes: u64,
}

impl std::fmt::Debug for Source {
    /// Without the header, which is data where a file has none.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Source").field("path", &self.path).field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

impl Source {
    /// Opens the table at `path`, reads its header and finds the key's columns.
    pub fn open(path: &Path, spec: KeySpec, options: Options) -> Result<Self> {
        let mut source = Self::open_table(path, options)?;
        if spec.columns.is_empty() {
            return Err(Error::NoKey(path.to_owned()));
        }
        source.key_columns = source.positions(&spec.columns)?;
        source.spec = spec;
        Ok(source)
    }

    /// Opens the table at `path` and reads its header, for use without a key: see [`read_columns`](Self::read_columns).
    pub fn open_table(path: &Path, options: Options) -> Result<Self> {
        let unreadable = |source| Error::Unreadable { path: path.to_owned(), source };
        let metadata = std::fs::metadata(path).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => Error::NotFound(path.to_owned()),
            _ => unreadable(error),
        })?;
        if !metadata.is_file() {
            return Err(Error::NotAFile(path.to_owned()));
        }
        let mut file = BufReader::with_capacity(BUFFER, File::open(path).map_err(unreadable)?);
        let start = file.fill_buf().map_err(unreadable)?;
        if start.starts_with(&[0xff, 0xfe]) || start.starts_with(&[0xfe, 0xff]) {
            return Err(Error::Utf16(path.to_owned()));
        }
        let form = Form::of(start, options.delimiter);
        let mut source = Source {
            path: path.to_owned(),
            spec: KeySpec { columns: Vec::new(), normalisation: Normalisation::default() },
            options,
            form,
            header: ::csv::StringRecord::new(),
            key_columns: Vec::new(),
            bytes: metadata.len(),
        };
        let mut reader = source.reader()?;
        source.header = reader.headers().map_err(|error| source.explain(error))?.clone();
        if source.header.iter().all(str::is_empty) {
            return Err(Error::Empty(path.to_owned()));
        }
        Ok(source)
    }

    /// The columns' names.
    pub fn columns(&self) -> impl Iterator<Item = &str> {
        self.header.iter()
    }

    /// The byte that separates fields, given or detected.
    pub fn delimiter(&self) -> u8 {
        self.form.delimiter
    }

    /// The file's size in bytes when it was opened.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Reads all keys. `progress` is told now and then how many of the file's bytes have been read.
    pub fn read_keys(&self, mut progress: impl FnMut(u64)) -> Result<KeySet> {
        let mut keys = KeySet::new();
        self.each_row(|row, element| {
            if element.is_none() && self.options.empty_keys == EmptyKeys::Refuse {
                return Err(Error::EmptyKey { path: self.path.clone(), line: line_of(row.position()) });
            }
            if keys.rows().is_multiple_of(8192) {
                progress(row.position().map_or(0, |at| at.byte()));
            }
            keys.push(element).map_err(|_| Error::TooManyRows { path: self.path.clone() })
        })?;
        progress(self.bytes);
        Ok(keys)
    }

    /// Reads the fields of every row at the positions `columns`, and hands them to `visit` with the line where the row starts.
    pub fn read_columns<E: From<Error>>(
        &self,
        columns: &[usize],
        mut visit: impl FnMut(u64, &[&str]) -> std::result::Result<(), E>,
    ) -> std::result::Result<Contents, E> {
        let mut reader = self.reader()?;
        let mut row = ::csv::StringRecord::new();
        let mut contents = Contents::start();
        while reader.read_record(&mut row).map_err(|error| self.explain(error))? {
            contents.add(&row);
            let fields: Vec<&str> = columns.iter().map(|&column| row.get(column).unwrap_or("")).collect();
            visit(line_of(row.position()), &fields)?;
        }
        Ok(contents)
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
        let mut header = self.header.clone();
        for name in names {
            let numbered = (2..).map(|n| format!("{name}_{n}"));
            let mut names = std::iter::once((*name).to_owned()).chain(numbered);
            header.extend(names.find(|name| !header.iter().any(|taken| taken.trim() == name)));
        }
        let mut writer = TableWriter::new(target, output, self.form)?;
        writer.write(&header)?;
        let mut reader = self.reader()?;
        let mut row = ::csv::StringRecord::new();
        let mut again = Contents::start();
        while reader.read_record(&mut row).map_err(|error| self.explain(error))? {
            if again.rows == contents.rows {
                return Err(Error::Changed(self.path.clone()));
            }
            let more = extend(again.rows);
            again.add(&row);
            row.extend(more);
            writer.write(&row)?;
        }
        if again.digest() != contents.digest() {
            return Err(Error::Changed(self.path.clone()));
        }
        writer.finish()
    }

    /// Copies the rows whose elements are in `matches` (indices into `keys.elements()`) to `output`, which is
    /// called `target`, under the header. Returns the number of rows.
    pub fn write_matches(
        &self,
        keys: &KeySet,
        matches: &[u32],
        target: &Path,
        output: &mut impl Write,
    ) -> Result<u64> {
        let mut wanted = vec![false; keys.elements().len()];
        for at in matches {
            if let Some(flag) = wanted.get_mut(*at as usize) {
                *flag = true;
            }
        }
        self.copy_rows(keys, &[], target, output, |at, row, writer| {
            if !wanted[at] {
                return Ok(0);
            }
            writer.write(row)?;
            Ok(1)
        })
    }

    /// Copies the rows for whose element `more` has something to `output`, which is called `target`, once for
    /// each of the rows of cells that it has, which go behind our own; `names` go behind the header, with
    /// `prefix` in front of each that the table has already. Returns the number of rows written.
    pub fn write_joined<'m>(
        &self,
        keys: &KeySet,
        names: &[String],
        prefix: &str,
        more: impl Fn(usize) -> &'m [Vec<String>],
        target: &Path,
        output: &mut impl Write,
    ) -> Result<u64> {
        let taken = |name: &str| self.header.iter().any(|taken| taken.trim() == name);
        let named = |name: &String| if taken(name) { format!("{prefix}{name}") } else { name.clone() };
        let names: Vec<String> = names.iter().map(named).collect();
        self.copy_rows(keys, &names, target, output, |at, row, writer| {
            let rows = more(at);
            for cells in rows {
                let mut joined = row.clone();
                cells.iter().for_each(|cell| joined.push_field(cell));
                writer.write(&joined)?;
            }
            Ok(rows.len() as u64)
        })
    }

    /// Hands each row with a key to `copy`, which returns how many it wrote, under the header with `names` behind it.
    fn copy_rows<W: Write>(
        &self,
        keys: &KeySet,
        names: &[String],
        target: &Path,
        output: &mut W,
        mut copy: impl FnMut(usize, &::csv::StringRecord, &mut TableWriter<'_, W>) -> Result<u64>,
    ) -> Result<u64> {
        let mut writer = TableWriter::new(target, output, self.form)?;
        let mut header = self.header.clone();
        names.iter().for_each(|name| header.push_field(name));
        writer.write(&header)?;
        let (mut row_number, mut written) = (0, 0);
        self.each_row(|row, element| {
            let at = keys.element_of(row_number);
            if row_number >= keys.rows() || element.as_ref() != at.map(|at| &keys.elements()[at]) {
                return Err(Error::Changed(self.path.clone()));
            }
            row_number += 1;
            if let Some(at) = at {
                written += copy(at, row, &mut writer)?;
            }
            Ok(())
        })?;
        if row_number != keys.rows() {
            return Err(Error::Changed(self.path.clone()));
        }
        writer.finish()?;
        Ok(written)
    }

    fn each_row(
        &self,
        mut visit: impl FnMut(&::csv::StringRecord, Option<crate::records::Element>) -> Result<()>,
    ) -> Result<()> {
        let mut reader = self.reader()?;
        let mut hasher = KeyHasher::new(self.spec.normalisation);
        let mut row = ::csv::StringRecord::new();
        while reader.read_record(&mut row).map_err(|error| self.explain(error))? {
            let element = hasher.hash(self.key_columns.iter().map(|&column| row.get(column).unwrap_or("")));
            visit(&row, element)?;
        }
        Ok(())
    }

    fn reader(&self) -> Result<::csv::Reader<impl Read + use<>>> {
        let unreadable = |source| Error::Unreadable { path: self.path.clone(), source };
        let mut file = BufReader::with_capacity(BUFFER, File::open(&self.path).map_err(unreadable)?);
        if file.fill_buf().map_err(unreadable)?.starts_with(BYTE_ORDER_MARK) {
            file.consume(BYTE_ORDER_MARK.len());
        }
        Ok(::csv::ReaderBuilder::new().delimiter(self.form.delimiter).from_reader(file))
    }

    /// That the file is not the one that was read before.
    pub fn changed(&self) -> Error {
        Error::Changed(self.path.clone())
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
                (None, _) => {
                    let lower = |name: &str| name.trim().to_lowercase();
                    Err(Error::UnknownColumn {
                        path: self.path.clone(),
                        column: column.clone(),
                        columns: self.header.len(),
                        near: self.header.iter().any(|name| lower(name) == lower(column)),
                    })
                }
                (Some(_), Some(_)) => {
                    Err(Error::AmbiguousColumn { path: self.path.clone(), column: column.clone() })
                }
            }
        };
        columns.iter().map(find).collect()
    }

    fn explain(&self, error: ::csv::Error) -> Error {
        let path = self.path.clone();
        match error.kind() {
            ::csv::ErrorKind::Utf8 { pos, .. } => Error::InvalidUtf8 { path, line: line_of(pos.as_ref()) },
            ::csv::ErrorKind::UnequalLengths { pos, expected_len, len } => {
                Error::UnequalRow { path, line: line_of(pos.as_ref()), expected: *expected_len, found: *len }
            }
            _ => Error::Unreadable { path, source: into_io(error) },
        }
    }
}

/// What a table held when it was read: the number of its rows, and a digest to know them again.
#[derive(Debug)]
pub struct Contents {
    rows: u64,
    hasher: blake3::Hasher,
}

impl Contents {
    fn start() -> Self {
        Contents { rows: 0, hasher: blake3::Hasher::new_derive_key("tacit csv rows v1") }
    }

    fn add(&mut self, row: &::csv::StringRecord) {
        self.rows += 1;
        for field in row {
            self.hasher.update(&(field.len() as u64).to_le_bytes());
            self.hasher.update(field.as_bytes());
        }
    }

    /// Every row has as many fields, so the fields' lengths and bytes say where rows end.
    fn digest(&self) -> blake3::Hash {
        self.hasher.finalize()
    }

    /// The number of rows.
    pub fn rows(&self) -> u64 {
        self.rows
    }
}

/// Rows on their way to a file.
struct TableWriter<'a, W: Write> {
    writer: ::csv::Writer<&'a mut W>,
    target: &'a Path,
}

impl<'a, W: Write> TableWriter<'a, W> {
    fn new(target: &'a Path, output: &'a mut W, form: Form) -> Result<Self> {
        if form.byte_order_mark {
            let fault = |source| Error::Unwritable { path: target.to_owned(), source };
            output.write_all(BYTE_ORDER_MARK).map_err(fault)?;
        }
        let mut builder = ::csv::WriterBuilder::new();
        builder.delimiter(form.delimiter).buffer_capacity(BUFFER);
        if form.crlf {
            builder.terminator(::csv::Terminator::CRLF);
        }
        Ok(TableWriter { writer: builder.from_writer(output), target })
    }

    fn write(&mut self, row: &::csv::StringRecord) -> Result<()> {
        let fault = |error| Error::Unwritable { path: self.target.to_owned(), source: into_io(error) };
        self.writer.write_record(row).map_err(fault)
    }

    fn finish(mut self) -> Result<()> {
        self.writer.flush().map_err(|source| Error::Unwritable { path: self.target.to_owned(), source })
    }
}

const BUFFER: usize = 1 << 17;
const BYTE_ORDER_MARK: &[u8] = &[0xef, 0xbb, 0xbf];

/// How a file is written, apart from what stands in it; an output is written alike.
#[derive(Clone, Copy, Debug)]
struct Form {
    delimiter: u8,
    byte_order_mark: bool,
    /// Whether rows end with CRLF and not LF.
    crlf: bool,
}

impl Form {
    /// What the `start` of a file shows, its first line; a delimiter that was `given` counts more.
    fn of(start: &[u8], given: Delimiter) -> Self {
        let mut quoted = false;
        let mut counts = [(b',', 0u32), (b';', 0), (b'\t', 0), (b'|', 0)];
        let mut end = start.len();
        for (at, &byte) in start.iter().enumerate() {
            match byte {
                b'"' => quoted = !quoted,
                b'\n' | b'\r' if !quoted => {
                    end = at;
                    break;
                }
                _ if quoted => {}
                _ => counts.iter_mut().filter(|(delimiter, _)| *delimiter == byte).for_each(|(_, n)| *n += 1),
            }
        }
        let delimiter = match given {
            Delimiter::Byte(byte) => byte,
            // The first of the most frequent ones: comma wins a draw.
            Delimiter::Auto => {
                counts.iter().rev().max_by_key(|(_, n)| *n).map_or(b',', |(delimiter, _)| *delimiter)
            }
        };
        let byte_order_mark = start.starts_with(BYTE_ORDER_MARK);
        Form { delimiter, byte_order_mark, crlf: start[end..].starts_with(b"\r\n") }
    }
}

fn line_of(position: Option<&::csv::Position>) -> u64 {
    position.map_or(0, |at| at.line())
}

fn into_io(error: ::csv::Error) -> std::io::Error {
    match error.into_kind() {
        ::csv::ErrorKind::Io(error) => error,
        _ => std::io::ErrorKind::InvalidData.into(),
    }
}
