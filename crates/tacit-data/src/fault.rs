//! What can be wrong with a table.

use crate::place;
use crate::records::Full;
use std::path::{Path, PathBuf};
use tacit_crypto::fence::{Panicked, fenced};
use tacit_crypto::text::{counted, shown};

/// The result of reading or writing a table.
pub type Result<T> = std::result::Result<T, Error>;

/// What is wrong with a table. Names the file, and the line where there is one; never shows a row's content,
/// nor a column's name that the caller did not give: of a file without a header, the first row would be
/// shown.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no such file.
    #[error("{}: no such file; check the path", name(.0))]
    NotFound(PathBuf),
    /// The path is a folder or a disk.
    #[error("{}: neither a file nor a pipe; name a file", name(.0))]
    NotAFile(PathBuf),
    /// An address of another machine that is none.
    #[error("{}: {}", name(.path), shown(.what))]
    Address {
        /// The address, as it may be shown.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// An address of a kind that this build was made without.
    #[error("{}: this build of tacit does not support {kind}; use one that does", name(.path))]
    NotBuilt {
        /// The address, as it may be shown.
        path: PathBuf,
        /// What is not there.
        kind: &'static str,
    },
    /// A database or a store that refuses, or cannot be reached.
    #[error("{}: {}", name(.path), shown(.what))]
    Remote {
        /// The address, as it may be shown.
        path: PathBuf,
        /// What it said.
        what: String,
    },
    /// The operating system refuses to read it.
    #[error("{}: cannot be read: {source}", name(.path))]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The operating system's reason.
        source: std::io::Error,
    },
    /// Not even a header.
    #[error("{}: the file is empty; its first line must name the columns, or be data if no header is \
             expected", name(.0))]
    Empty(PathBuf),
    /// A key column that the table does not have.
    #[error(
        "{}: no column is named `{}` in the first line{}",
        name(.path), shown(.column), remedy(.column, .near.as_deref(), *.columns)
    )]
    UnknownColumn {
        /// The file.
        path: PathBuf,
        /// The column asked for.
        column: String,
        /// How many columns there are.
        columns: usize,
        /// The column that was most likely meant. No other name is told: the line may be data.
        near: Option<String>,
    },
    /// Two columns bear the name of a key column.
    #[error(
        "{}: the column `{}` is there more than once; rename one of them",
        name(.path), shown(.column)
    )]
    AmbiguousColumn {
        /// The file.
        path: PathBuf,
        /// The column asked for.
        column: String,
    },
    /// A column's number that the table does not have, where no line names the columns.
    #[error(
        "{}: no column has the number `{}`; the file has {columns}, counted from 1",
        name(.path), shown(.column)
    )]
    NoSuchNumber {
        /// The file.
        path: PathBuf,
        /// The column asked for.
        column: String,
        /// How many columns there are.
        columns: usize,
    },
    /// No key column was named.
    #[error("{}: no key column was named", name(.0))]
    NoKey(PathBuf),
    /// A row has too many or too few fields.
    #[error(
        "{}, line {line}: {}, but the first line has {expected}; check quotes and delimiter",
        name(.path), counted(*found, "field")
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
    /// A quote where RFC 4180 has none, or none where it has one; or an escape of nothing.
    #[error("{}, line {line}: {}", name(.path), what.words(*.field))]
    Misquoted {
        /// The file.
        path: PathBuf,
        /// The line of the quote, from 1.
        line: u64,
        /// The field, from 1.
        field: u64,
        /// What is wrong.
        what: Misquoted,
    },
    /// A row that is longer than rows may be.
    #[error("{}, {place}: the row has more than {} MiB; fix the file, or allow longer rows", name(.path), .most >> 20)]
    LongRow {
        /// The file.
        path: PathBuf,
        /// Where the row starts.
        place: Place,
        /// Bytes that it may have.
        most: u64,
    },
    /// Bytes that are not UTF-8.
    #[error(
        "{}, line {line}, column {column}: not valid UTF-8; name the encoding{}, or save the file as UTF-8",
        name(.path), looks(*.looks_like)
    )]
    InvalidUtf8 {
        /// The file.
        path: PathBuf,
        /// The line where the row starts, from 1.
        line: u64,
        /// The column, from 1.
        column: u64,
        /// The encoding that the file seems to have, if it is one that can be read.
        looks_like: Option<&'static str>,
    },
    /// Bytes that are not UTF-8 in a file that is UTF-8 but for them.
    #[error("{}, line {line}: not valid UTF-8, but the rest of the file is; correct that line", name(.path))]
    MostlyUtf8 {
        /// The file.
        path: PathBuf,
        /// The first such line, from 1.
        line: u64,
    },
    /// Files of one table in several encodings.
    #[error(
        "the files differ in encoding: {} is {first_encoding}, {} is {encoding}; save all of them as UTF-8",
        name(.first), name(.path)
    )]
    Encodings {
        /// A file.
        first: PathBuf,
        /// Its encoding, which may be a guess.
        first_encoding: &'static str,
        /// Another file.
        path: PathBuf,
        /// Its encoding, which may be a guess.
        encoding: &'static str,
    },
    /// Bytes that the encoding does not have.
    #[error(
        "{}, line {line}, column {column}: bytes that are not valid in {encoding}; does the file have \
         another encoding?",
        name(.path)
    )]
    NotInEncoding {
        /// The file.
        path: PathBuf,
        /// The line where the row starts, from 1.
        line: u64,
        /// The column, from 1.
        column: u64,
        /// The encoding that the caller named.
        encoding: &'static str,
    },
    /// A byte order mark of another encoding than the one that the caller named.
    #[error(
        "{}: begins with the byte order mark of {marked}, but the encoding is set to {named}; set no encoding, or the right one",
        name(.path)
    )]
    Marked {
        /// The file.
        path: PathBuf,
        /// The encoding of the mark.
        marked: &'static str,
        /// The encoding that the caller named.
        named: &'static str,
    },
    /// Text of two bytes a character, which no encoding was named for.
    #[error("{}: the text seems to be {encoding}; name the encoding, or save the file as UTF-8", name(.path))]
    Encoded {
        /// The file.
        path: PathBuf,
        /// The encoding.
        encoding: &'static str,
    },
    /// A file of a kind that is not read.
    #[error("{}: this is {kind}, which tacit does not read; {remedy}", name(.path))]
    Kind {
        /// The file.
        path: PathBuf,
        /// What it is.
        kind: &'static str,
        /// What to do.
        remedy: &'static str,
    },
    /// An archive that does not hold one table.
    #[error("{}: {what}", name(.path))]
    Archive {
        /// The file.
        path: PathBuf,
        /// What is wrong, and what to do.
        what: String,
    },
    /// A row without a key, where the caller refuses those.
    #[error("{}, line {line}: a key column is empty", name(.path))]
    EmptyKey {
        /// The file.
        path: PathBuf,
        /// The line where the row starts, from 1.
        line: u64,
    },
    /// A row without a key in a file that has no lines, where the caller refuses those.
    #[error("{}, row {row}: a key column is empty", name(.path))]
    EmptyKeyInRow {
        /// The file.
        path: PathBuf,
        /// The row, from 1.
        row: u64,
    },
    /// A key column that a file of columns does not have.
    #[error("{}: no column is named `{}`; {}", name(.path), shown(.column), meant(.column, .near.as_deref(), *.columns))]
    NoColumn {
        /// The file.
        path: PathBuf,
        /// The column asked for.
        column: String,
        /// How many columns there are.
        columns: usize,
        /// The column that was most likely meant.
        near: Option<String>,
    },
    /// A key column whose cells have more than one text, or none.
    #[error(
        "{}: the column `{}` has {}, which cannot be a key; convert it to text, integers, dates or decimals",
        name(.path), shown(.column), shown(.found)
    )]
    KeyType {
        /// The file.
        path: PathBuf,
        /// The column asked for.
        column: String,
        /// The type of its cells.
        found: String,
    },
    /// A key column of points in time whose key is no date.
    #[error(
        "{}: the column `{}` has timestamps; give it the type date, as in `{}:date`, which accepts \
         midnights, or convert it to text or dates",
        name(.path), shown(.column), shown(.column)
    )]
    KeyMoment {
        /// The file.
        path: PathBuf,
        /// The column asked for.
        column: String,
    },
    /// A file of columns that is cut short, damaged, or beyond what can be read.
    #[error("{}: not a complete, valid {format} file: {}", name(.path), shown(.what))]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The format that its first bytes name.
        format: &'static str,
        /// What is wrong, as far as that is known, and what to do.
        what: String,
    },
    /// An output whose name says that it holds what tacit does not write.
    #[error(
        "{}: tacit cannot write {kind}; name the output .csv, .parquet, .arrow or .xlsx, or .csv.gz or \
         .csv.zst to compress it",
        name(.path)
    )]
    NoFormat {
        /// The output file.
        path: PathBuf,
        /// What its name says.
        kind: &'static str,
    },
    /// An output in which not every cell has room that may come behind the input's columns.
    #[error("{}: the output cannot contain {what}; {remedy}", name(.path))]
    NoRoom {
        /// The output file.
        path: PathBuf,
        /// What it cannot hold.
        what: &'static str,
        /// What to do.
        remedy: &'static str,
    },
    /// A folder in which there is no table, or one within another.
    #[error("{}: {what}", name(.path))]
    Folder {
        /// The folder.
        path: PathBuf,
        /// What is wrong with it.
        what: &'static str,
    },
    /// One of several files that an earlier one is too, under whatever name.
    #[error("{} is the same file as {}, whose rows would count twice; name it once", name(.path), name(.first))]
    Twice {
        /// The file.
        path: PathBuf,
        /// What it was called first.
        first: PathBuf,
    },
    /// One of several files, whose columns are not those of the first.
    #[error("{}: {what}; files of one table have the same columns", name(.path))]
    Unlike {
        /// The file.
        path: PathBuf,
        /// Which column differs, and how.
        what: String,
    },
    /// A cell of a workbook that has no value.
    #[error("{}, cell {cell}: {what}", name(.path))]
    SheetCell {
        /// The file.
        path: PathBuf,
        /// What the sheet calls the cell.
        cell: String,
        /// What is wrong with it.
        what: String,
    },
    /// The rows of a sheet that seem to be a title above the header.
    #[error(
        "{}: a title seems to be above the header, which is in row {row}; leave out the first {}, or name the table's \
         part, {}",
        name(.path), counted(*skipped, "row"), shown(.part)
    )]
    Title {
        /// The file.
        path: PathBuf,
        /// The row of the header in the sheet, from 1.
        row: u64,
        /// The rows above it, among them those that are skipped already.
        skipped: u64,
        /// The file with the part of it that is the table.
        part: String,
    },
    /// A column of a file of columns that cannot be read.
    #[error("{}: column {column} cannot be read after row {rows}: {what}", name(.path))]
    Unread {
        /// The file.
        path: PathBuf,
        /// The column's number, from 1, and its name.
        column: String,
        /// The rows before, of which all can be read.
        rows: u64,
        /// What is wrong, as far as that is known, and what to do.
        what: String,
    },
    /// A column of which a file of columns can hold no cells.
    #[error(
        "{}: {format} cannot contain column {number} of the input, which is {kind}; choose another output \
         format, or convert it to text", name(.path)
    )]
    NoType {
        /// The output file.
        path: PathBuf,
        /// The output's format.
        format: &'static str,
        /// The column, from 1.
        number: usize,
        /// What its cells are.
        kind: &'static str,
    },
    /// A file of columns within gzip or zstd.
    #[error("{}: a compressed {format} file; decompress it first", name(.path))]
    PackedColumns {
        /// The file.
        path: PathBuf,
        /// The format within.
        format: &'static str,
    },
    /// A column of which no CSV file can hold the cells.
    #[error(
        "{}: CSV cannot contain column {number} of the input, which is {kind}; name the output .parquet or \
         .arrow",
        name(.path)
    )]
    NoText {
        /// The output file.
        path: PathBuf,
        /// The column, from 1.
        number: usize,
        /// What its cells are.
        kind: &'static str,
    },
    /// What only a CSV file can be used for.
    #[error("{}: a CSV file is expected, and this is {format}", name(.path))]
    CsvAlone {
        /// The file.
        path: PathBuf,
        /// The format that it has.
        format: &'static str,
    },
    /// A cell without a value where one is computed on.
    #[error("{}, {place}: column {column} has no value; fill it in, or leave the row out", name(.path))]
    NoValue {
        /// The file.
        path: PathBuf,
        /// Where the row is.
        place: Place,
        /// What the caller calls the column, or its number from 1.
        column: String,
    },
    /// A cell that is not what its column is read as.
    #[error("{}, {place}: column {column}: {what}", name(.path))]
    Cell {
        /// The file.
        path: PathBuf,
        /// Where the row is.
        place: Place,
        /// What the caller calls the column, or its number from 1.
        column: String,
        /// What was expected.
        what: String,
    },
    /// A cell that an output cannot hold.
    #[error("{}, {place}: column {column}: {what}", name(.path))]
    Unfit {
        /// The file with the cell, or the output where that is not known.
        path: PathBuf,
        /// Where the row is.
        place: Place,
        /// What the caller calls the column, or its number from 1.
        column: String,
        /// What was expected.
        what: String,
    },
    /// A column whose cells are no values to compute on.
    #[error("{}: column {column} has {}, which is not a valid value here; {remedy}", name(.path), shown(.found))]
    ValueType {
        /// The file.
        path: PathBuf,
        /// What the caller calls the column, or its number from 1.
        column: String,
        /// The type of its cells.
        found: String,
        /// What to do.
        remedy: &'static str,
    },
    /// More rows than an intersection can take.
    #[error("{}: too many rows", name(.path))]
    TooManyRows {
        /// The file.
        path: PathBuf,
    },
    /// More rows than memory has room for.
    #[error(
        "{}: the keys of more than {rows} rows do not fit into this machine's memory; split the file, or free memory",
        name(.path)
    )]
    NoMemory {
        /// The file.
        path: PathBuf,
        /// Rows whose keys fit.
        rows: u64,
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

/// What is wrong with a quote in a CSV file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Misquoted {
    /// It opens a field and is never closed.
    Open,
    /// Something stands between the quote that closes a field and the separator.
    TextBehind,
    /// It stands in a field that does not begin with one.
    Within,
    /// An escape at the end of the file, with nothing behind it.
    Escape,
}

impl Misquoted {
    fn words(self, field: u64) -> String {
        match self {
            Misquoted::Open => {
                format!("the quote that opens field {field} is never closed; close it, or leave it out")
            }
            Misquoted::TextBehind => format!(
                "text follows the quote that closes field {field}; double quotes that are part of the field"
            ),
            Misquoted::Within => format!(
                "field {field} has a quote and is not enclosed in quotes; enclose it and double that quote"
            ),
            Misquoted::Escape => {
                format!("field {field} ends with an escape, and so does the file; is it truncated?")
            }
        }
    }
}

/// Where a row stands in its file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// The line where it starts, from 1.
    Line(u64),
    /// Its number, from 1, in a file that has no lines.
    Row(u64),
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Place::Line(line) => write!(f, "line {line}"),
            Place::Row(row) => write!(f, "row {row}"),
        }
    }
}

impl Error {
    /// That an address is none, because of `what`.
    pub fn address(path: &Path, what: impl Into<String>) -> Self {
        Error::Address { path: place::shown(path), what: what.into() }
    }

    /// That the keys of a table are more than can be held.
    pub(crate) fn full(path: &Path, full: Full) -> Self {
        let path = path.to_owned();
        match full {
            Full::Rows => Error::TooManyRows { path },
            Full::Memory { rows } => Error::NoMemory { path, rows },
        }
    }

    /// Whether what was asked for cannot be, whatever the table holds.
    pub fn is_usage(&self) -> bool {
        matches!(self, Error::Address { .. } | Error::NotBuilt { .. } | Error::Twice { .. })
    }
}

/// Calls into a reader or writer that other people made: what it gave, or what it says is wrong. If it
/// panicked that is all that is said: the words of a panic may quote cells.
pub(crate) fn guarded<T, E: std::fmt::Display>(
    call: impl FnOnce() -> std::result::Result<T, E>,
) -> std::result::Result<T, String> {
    match fenced(call) {
        Ok(given) => given.map_err(|error| error.to_string()),
        Err(panicked) => Err(gave_up(&panicked)),
    }
}

/// How it begins what is said of a reader or writer that panicked.
pub(crate) const PANICKED: &str = "reading it failed";

/// What is said of a reader or writer that panicked.
pub(crate) fn gave_up(panicked: &Panicked) -> String {
    format!("{PANICKED} at {}", panicked.place)
}

/// How a file is called in an error.
pub(crate) fn name(path: &Path) -> String {
    if path == Path::new("-") {
        return "standard input".into();
    }
    shown(&place::shown(path).to_string_lossy())
}

/// What text seems to be in, which is a guess.
fn looks(like: Option<&'static str>) -> String {
    like.map_or(String::new(), |name| format!(" (a guess: {name})"))
}

/// What to write in place of a type of decimals without the digits of the fraction, if that is what a column ends with.
fn digits_missing(wanted: &str) -> Option<String> {
    let name = wanted.trim().strip_suffix(":decimal")?;
    Some(format!("write the digits after the point, as in `{}:decimal2`", shown(name)))
}

/// Whether a name is the number of a column there is, which names it in a table without a header only.
fn is_number(wanted: &str, columns: usize) -> bool {
    wanted.trim().parse().is_ok_and(|number: usize| (1..=columns).contains(&number))
}

/// The remedy for one who counts the columns of a table with a header.
pub const NUMBERED: &str =
    "columns are numbered only where the first line is read as data and not as a header";

/// What to do where a near type stands right behind the name of a column that is there.
fn near_type(wanted: &str, near: Option<&str>) -> Option<String> {
    let (column, by) = wanted.rsplit_once('~')?;
    let is_column = near == Some(column) && by.bytes().all(|byte| byte.is_ascii_digit());
    let column = shown(column);
    is_column.then(|| {
        format!("for near matches write `{column}:name~1`, `{column}:date~1` or `{column}:int~{by}`")
    })
}

/// What to do about a column that is not there.
fn meant(wanted: &str, near: Option<&str>, columns: usize) -> String {
    match near {
        _ if is_number(wanted, columns) => {
            "the columns of such a file have names and no numbers; write its name".to_owned()
        }
        _ if digits_missing(wanted).is_some() => digits_missing(wanted).unwrap_or_default(),
        _ if near_type(wanted, near).is_some() => near_type(wanted, near).unwrap_or_default(),
        Some(near) => format!("did you mean `{}`?", shown(near)),
        None => format!("the file has {}", counted(columns, "column")),
    }
}

fn remedy(wanted: &str, near: Option<&str>, columns: usize) -> String {
    if let Some(what) = digits_missing(wanted).or_else(|| near_type(wanted, near)) {
        return format!("; {what}");
    }
    if is_number(wanted, columns) {
        return format!(
            "; write the name that the line has for column {wanted}: {NUMBERED}",
            wanted = wanted.trim()
        );
    }
    let columns = counted(columns, "column");
    match near {
        // The line may be data, of which as little is shown as helps.
        Some(near) if near.to_lowercase() == wanted.trim().to_lowercase() => {
            format!(", but one differs only in case; write it as in the file; the file has {columns}")
        }
        Some(near) => format!("; did you mean `{}`?", shown(near)),
        None => format!(", which must have the columns' names and not data; the file has {columns}"),
    }
}
