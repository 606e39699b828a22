//! Tables in CSV files: reading keys or columns, writing the matching rows, or every row with more columns.
//!
//! A file is read twice: once for its keys, and after the intersection once more to copy the rows that matched. Rows are never held
//! in memory, so ten million of them cost what [`KeySet`] costs. The second pass hashes the keys again and refuses a file that
//! changed in between. The output holds the matching rows of this party's own file with all their columns as they
//! were written there, in the file's order, every duplicate included; it appears whole or not at all.
//!
//! A file is UTF-8 (a byte order mark is tolerated), its first line names the columns, and every row has as many fields.

use crate::records::{KeyHasher, KeySet, KeySpec, Normalisation};
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

/// The result of reading or writing a table.
pub type Result<T> = std::result::Result<T, Error>;

/// What is wrong with a table. Names the file, and the line where there is one; never shows a row's content.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no such file.
    #[error("{0}: there is no such file")]
    NotFound(PathBuf),
    /// The path is a directory, a pipe or a device.
    #[error("{0}: not a regular file; the table is read twice, so a pipe will not do")]
    NotAFile(PathBuf),
    /// The operating system refuses to read it.
    #[error("{path}: cannot be read: {source}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The operating system's reason.
        source: std::io::Error,
    },
    /// Not even a header.
    #[error("{0}: the file is empty; its first line must name the columns")]
    Empty(PathBuf),
    /// A key column that the table does not have.
    #[error("{path}: there is no column `{column}`; the columns are: {columns}")]
    UnknownColumn {
        /// The file.
        path: PathBuf,
        /// The column asked for.
        column: String,
        /// The columns there are.
        columns: String,
    },
    /// Two columns bear the name of a key column.
    #[error("{path}: the column `{column}` stands there more than once; rename one of them")]
    AmbiguousColumn {
        /// The file.
        path: PathBuf,
        /// The column asked for.
        column: String,
    },
    /// No key column was named.
    #[error("{0}: no key column was named")]
    NoKey(PathBuf),
    /// A row has too many or too few fields.
    #[error(
        "{path}, line {line}: {found} fields where the header has {expected}; check quotes and delimiter"
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
    #[error("{path}, line {line}: not valid UTF-8; save the file as UTF-8")]
    InvalidUtf8 {
        /// The file.
        path: PathBuf,
        /// The line where the row starts, from 1.
        line: u64,
    },
    /// The file is UTF-16.
    #[error("{0}: the file is UTF-16; save it as UTF-8")]
    Utf16(PathBuf),
    /// A row without a key, where the caller refuses those.
    #[error("{path}, line {line}: a key column is empty")]
    EmptyKey {
        /// The file.
        path: PathBuf,
        /// The line where the row starts, from 1.
        line: u64,
    },
    /// More rows than an intersection can take.
    #[error("{path}: too many rows")]
    TooManyRows {
        /// The file.
        path: PathBuf,
    },
    /// The file is not the one that was read before.
    #[error("{0}: the file changed while the protocol ran; run again")]
    Changed(PathBuf),
    /// The output cannot be written.
    #[error("{path}: cannot be written: {source}")]
    Unwritable {
        /// The output file.
        path: PathBuf,
        /// The operating system's reason.
        source: std::io::Error,
    },
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
#[derive(Debug)]
pub struct Source {
    path: PathBuf,
    spec: KeySpec,
    options: Options,
    delimiter: u8,
    header: ::csv::StringRecord,
    key_columns: Vec<usize>,
    bytes: u64,
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
        let delimiter = match options.delimiter {
            Delimiter::Byte(byte) => byte,
            Delimiter::Auto => detect_delimiter(start),
        };
        let mut source = Source {
            path: path.to_owned(),
            spec: KeySpec { columns: Vec::new(), normalisation: Normalisation::default() },
            options,
            delimiter,
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
        self.delimiter
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

    /// Copies every row to `output` with more fields behind its own, those of `extend` for row 0, 1, …, under the header
    /// with `names` behind it; a name that the table has already gets a number. Puts the file in its place.
    ///
    /// Refuses a file whose rows are not those of `contents`.
    pub fn write_extended(
        &self,
        contents: &Contents,
        names: &[&str],
        mut extend: impl FnMut(u64) -> Vec<String>,
        output: Output,
    ) -> Result<()> {
        let mut header = self.header.clone();
        for name in names {
            let numbered = (2..).map(|n| format!("{name}_{n}"));
            let mut names = std::iter::once((*name).to_owned()).chain(numbered);
            header.extend(names.find(|name| !header.iter().any(|taken| taken.trim() == name)));
        }
        let mut writer = TableWriter::new(output, self.delimiter);
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
        writer.commit()
    }

    /// Copies the rows whose elements are in `matches` (indices into `keys.elements()`) to `output`, under the header,
    /// and puts the file in its place. Returns the number of rows.
    pub fn write_matches(&self, keys: &KeySet, matches: &[u32], output: Output) -> Result<u64> {
        let mut wanted = vec![false; keys.elements().len()];
        for at in matches {
            if let Some(flag) = wanted.get_mut(*at as usize) {
                *flag = true;
            }
        }
        let mut writer = TableWriter::new(output, self.delimiter);
        writer.write(&self.header)?;
        let (mut row_number, mut written) = (0, 0);
        self.each_row(|row, element| {
            let at = keys.element_of(row_number);
            if row_number >= keys.rows() || element.as_ref() != at.map(|at| &keys.elements()[at]) {
                return Err(Error::Changed(self.path.clone()));
            }
            row_number += 1;
            if at.is_some_and(|at| wanted[at]) {
                written += 1;
                writer.write(row)?;
            }
            Ok(())
        })?;
        if row_number != keys.rows() {
            return Err(Error::Changed(self.path.clone()));
        }
        writer.commit()?;
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
        Ok(::csv::ReaderBuilder::new().delimiter(self.delimiter).from_reader(file))
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
                (None, _) => Err(Error::UnknownColumn {
                    path: self.path.clone(),
                    column: column.clone(),
                    columns: self.header.iter().collect::<Vec<_>>().join(", "),
                }),
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

/// Rows on their way to an [`Output`].
struct TableWriter {
    writer: ::csv::Writer<BufWriter<Output>>,
    target: PathBuf,
}

impl TableWriter {
    fn new(output: Output, delimiter: u8) -> Self {
        let target = output.path.clone();
        let buffer = BufWriter::with_capacity(BUFFER, output);
        TableWriter { writer: ::csv::WriterBuilder::new().delimiter(delimiter).from_writer(buffer), target }
    }

    fn write(&mut self, row: &::csv::StringRecord) -> Result<()> {
        let path = &self.target;
        let fault = |error| Error::Unwritable { path: path.clone(), source: into_io(error) };
        self.writer.write_record(row).map_err(fault)
    }

    fn commit(self) -> Result<()> {
        let fault = |source| Error::Unwritable { path: self.target.clone(), source };
        let buffer = self.writer.into_inner().map_err(|error| fault(error.into_error()))?;
        buffer.into_inner().map_err(|error| fault(error.into_error()))?.commit()
    }
}

/// A file being written beside its target, which it replaces on [`commit`](Self::commit) and not before.
///
/// Made before the intersection starts, so that an output that cannot be written is known early. Dropped, it
/// leaves nothing behind. Only the owner may read the file: it holds what the intersection found.
#[derive(Debug)]
pub struct Output {
    file: tempfile::NamedTempFile,
    path: PathBuf,
}

impl Output {
    /// Starts a file that will be at `path`.
    pub fn create(path: &Path) -> Result<Self> {
        let unwritable = |source| Error::Unwritable { path: path.to_owned(), source };
        if path.is_dir() {
            return Err(unwritable(std::io::ErrorKind::IsADirectory.into()));
        }
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let file = tempfile::Builder::new().prefix(".tacit-").suffix(".part").tempfile_in(folder);
        Ok(Output { file: file.map_err(unwritable)?, path: path.to_owned() })
    }

    /// Where the unfinished file is, for a program that removes it when it is interrupted.
    pub fn temporary(&self) -> &Path {
        self.file.path()
    }

    /// Makes the content durable and puts it at its path, over what may be there.
    pub fn commit(self) -> Result<()> {
        let Output { file, path } = self;
        let unwritable = |source| Error::Unwritable { path: path.clone(), source };
        file.as_file().sync_all().map_err(unwritable)?;
        file.persist(&path).map_err(|error| unwritable(error.error))?;
        Ok(())
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.file.flush()
    }
}

const BUFFER: usize = 1 << 17;
const BYTE_ORDER_MARK: &[u8] = &[0xef, 0xbb, 0xbf];

fn detect_delimiter(start: &[u8]) -> u8 {
    let mut quoted = false;
    let mut counts = [(b',', 0u32), (b';', 0), (b'\t', 0), (b'|', 0)];
    for &byte in start {
        match byte {
            b'"' => quoted = !quoted,
            b'\n' | b'\r' if !quoted => break,
            _ if quoted => {}
            _ => counts.iter_mut().filter(|(delimiter, _)| *delimiter == byte).for_each(|(_, n)| *n += 1),
        }
    }
    // The first of the most frequent ones: comma wins a draw.
    counts.iter().rev().max_by_key(|(_, n)| *n).map_or(b',', |(delimiter, _)| *delimiter)
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
