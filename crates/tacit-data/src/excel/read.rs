//! A sheet of a workbook as a table, kept as an Arrow file.
//!
//! The sheet is read three times: for where its cells are, for what each column's cells are, and for the cells.
//! What the sheets share (text, formats) is held in memory, which is looked at before.

use super::days::{MILLIS_A_DAY, moment, time};
use super::limits::{SHEET_COLUMNS, SHEET_ROWS};
use super::old;
use super::part::{Sheets, called};
use super::records::Records;
use super::title::{self, Top};
use crate::csv::{ErrorCells, Header, Options};
use crate::fault::{Error, Result, gave_up, guarded, name};
use crate::input::Input;
use crate::kept::{Kept, rows_of_batch};
use crate::machine::available_memory;
use arrow_array::builder::{
    BooleanBuilder, Date32Builder, Float64Builder, Int64Builder, LargeStringBuilder,
    TimestampMillisecondBuilder,
};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_ipc::writer::FileWriter;
use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};
use calamine::{Cell, Data, DataRef, DataType as _, Reader, SheetType, SheetVisible, Xls, Xlsb, Xlsx};
use std::io::{BufReader, Read, Seek, Write};
use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::Arc;
use tacit_crypto::fence::fenced;

/// Bytes that parts of a workbook unpack to, at most: all together, a sheet, the text that sheets share, what says how
/// cells look, and anything else.
const MOST_ALL: u64 = 8 << 30;
const MOST_SHEET: u64 = 4 << 30;
const MOST_SHARED_TEXT: u64 = 256 << 20;
const MOST_STYLES: u64 = 128 << 20;
const MOST_OTHER: u64 = 1 << 30;
/// Bytes of memory for each of shared text and of styles, of the smallest ones.
const TEXT_TIMES: u64 = 8;
const STYLES_TIMES: u64 = 32;
/// Bytes of text that are written together.
const BATCH_BYTES: usize = 8 << 20;
/// The largest whole number up to which every one has a number of its own in a workbook.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// A kind of workbook.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// XML, in a zip archive.
    Xlsx,
    /// The same in binary.
    Xlsb,
    /// The format before 2007.
    Xls,
}

impl Kind {
    /// What an input that begins so is, if it is a workbook.
    pub(crate) fn of(start: &[u8], input: &Input) -> Result<Option<Self>> {
        if start.starts_with(&[0xd0, 0xcf, 0x11, 0xe0, 0xa1, 0xb1, 0x1a, 0xe1]) {
            return Ok(Some(Kind::Xls));
        }
        if !start.starts_with(b"PK\x03\x04") {
            return Ok(None);
        }
        let Ok(archive) = zip::ZipArchive::new(BufReader::new(input.stored()?)) else { return Ok(None) };
        let has = |name: &str| archive.index_for_name(name).is_some();
        Ok(match (has("xl/workbook.xml"), has("xl/workbook.bin")) {
            (true, _) => Some(Kind::Xlsx),
            (_, true) => Some(Kind::Xlsb),
            _ => None,
        })
    }
}

/// A cell of any kind of workbook.
#[derive(Clone, PartialEq, Debug)]
enum Value {
    Bool(bool),
    Int(i64),
    Float(f64),
    Date(i32),
    Moment(i64),
    Text(String),
}

impl Value {
    fn text(&self) -> String {
        match self {
            Value::Bool(value) => value.to_string(),
            Value::Int(value) => value.to_string(),
            Value::Float(value) if (1e-5..1e16).contains(&value.abs()) => value.to_string(),
            Value::Float(value) => format!("{value:e}"),
            Value::Date(days) => date(i64::from(*days)),
            Value::Moment(millis) => {
                let (day, within) = (millis.div_euclid(MILLIS_A_DAY), millis.rem_euclid(MILLIS_A_DAY));
                format!("{}T{}", date(day), time(within as f64 / MILLIS_A_DAY as f64).unwrap_or_default())
            }
            Value::Text(text) => text.clone(),
        }
    }
}

/// A day since 1970 as a date.
fn date(days: i64) -> String {
    // Years that begin in March, so that the leap day is a year's last.
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day = days.rem_euclid(146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let of_month = day - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    format!("{:04}-{month:02}-{of_month:02}", year + era * 400 + next)
}

/// The type of a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Type {
    Nothing,
    Bool,
    Int,
    Float,
    Date,
    Moment,
    Text,
}

impl Type {
    fn with(self, value: &Value) -> Self {
        let other = match value {
            Value::Bool(_) => Type::Bool,
            Value::Int(_) => Type::Int,
            Value::Float(_) => Type::Float,
            Value::Date(_) => Type::Date,
            Value::Moment(_) => Type::Moment,
            Value::Text(_) => Type::Text,
        };
        match (self, other) {
            (Type::Nothing, other) => other,
            (one, other) if one == other => one,
            (Type::Int | Type::Float, Type::Int | Type::Float) => Type::Float,
            (Type::Date | Type::Moment, Type::Date | Type::Moment) => Type::Moment,
            _ => Type::Text,
        }
    }

    fn data(self) -> DataType {
        match self {
            Type::Bool => DataType::Boolean,
            Type::Int => DataType::Int64,
            Type::Float => DataType::Float64,
            Type::Date => DataType::Date32,
            Type::Moment => DataType::Timestamp(TimeUnit::Millisecond, None),
            Type::Nothing | Type::Text => DataType::LargeUtf8,
        }
    }
}

/// A column that grows.
enum Builder {
    Bool(BooleanBuilder),
    Int(Int64Builder),
    Float(Float64Builder),
    Date(Date32Builder),
    Moment(TimestampMillisecondBuilder),
    Text(LargeStringBuilder),
}

impl Builder {
    fn of(kind: Type) -> Self {
        match kind {
            Type::Bool => Builder::Bool(BooleanBuilder::new()),
            Type::Int => Builder::Int(Int64Builder::new()),
            Type::Float => Builder::Float(Float64Builder::new()),
            Type::Date => Builder::Date(Date32Builder::new()),
            Type::Moment => Builder::Moment(TimestampMillisecondBuilder::new()),
            Type::Nothing | Type::Text => Builder::Text(LargeStringBuilder::new()),
        }
    }

    fn append(&mut self, value: Option<&Value>) {
        match (self, value) {
            (Builder::Bool(cells), Some(Value::Bool(value))) => cells.append_value(*value),
            (Builder::Int(cells), Some(Value::Int(value))) => cells.append_value(*value),
            (Builder::Float(cells), Some(Value::Float(value))) => cells.append_value(*value),
            (Builder::Float(cells), Some(Value::Int(value))) => cells.append_value(*value as f64),
            (Builder::Date(cells), Some(Value::Date(value))) => cells.append_value(*value),
            (Builder::Moment(cells), Some(Value::Moment(value))) => cells.append_value(*value),
            (Builder::Moment(cells), Some(Value::Date(value))) => {
                cells.append_value(i64::from(*value) * MILLIS_A_DAY)
            }
            (Builder::Text(cells), Some(value)) => cells.append_value(value.text()),
            (Builder::Bool(cells), _) => cells.append_null(),
            (Builder::Int(cells), _) => cells.append_null(),
            (Builder::Float(cells), _) => cells.append_null(),
            (Builder::Date(cells), _) => cells.append_null(),
            (Builder::Moment(cells), _) => cells.append_null(),
            (Builder::Text(cells), None) => cells.append_null(),
        }
    }

    fn finish(&mut self) -> ArrayRef {
        match self {
            Builder::Bool(cells) => Arc::new(cells.finish()),
            Builder::Int(cells) => Arc::new(cells.finish()),
            Builder::Float(cells) => Arc::new(cells.finish()),
            Builder::Date(cells) => Arc::new(cells.finish()),
            Builder::Moment(cells) => Arc::new(cells.finish()),
            Builder::Text(cells) => Arc::new(cells.finish()),
        }
    }
}

/// An open workbook.
enum Book<R: Read + Seek> {
    Xlsx(Box<Xlsx<R>>, bool),
    Xlsb(Box<Xlsb<R>>, bool),
    Xls(Box<Xls<R>>, bool),
}

/// What is told of each cell: where it stands, and what it holds.
type Visit<'v> = dyn FnMut((u32, u32), DataRef<'_>) -> Result<()> + 'v;

impl<R: Read + Seek> Book<R> {
    fn open(kind: Kind, stored: R) -> std::result::Result<Self, String> {
        let said = |error: &dyn std::fmt::Display| error.to_string();
        Ok(match kind {
            Kind::Xlsx => {
                let book: Xlsx<R> = Xlsx::new(stored).map_err(|error| said(&error))?;
                let since = book.has_1904_epoch();
                Book::Xlsx(Box::new(book), since)
            }
            Kind::Xlsb => {
                let book: Xlsb<R> = Xlsb::new(stored).map_err(|error| said(&error))?;
                let since = book.has_1904_epoch();
                Book::Xlsb(Box::new(book), since)
            }
            Kind::Xls => {
                let book: Xls<R> = Xls::new(stored).map_err(|error| said(&error))?;
                let since = book.has_1904_epoch();
                Book::Xls(Box::new(book), since)
            }
        })
    }

    fn since_1904(&self) -> bool {
        let (Book::Xlsx(_, since) | Book::Xlsb(_, since) | Book::Xls(_, since)) = self;
        *since
    }

    /// The names of the sheets of cells that can be seen.
    fn names(&self) -> Vec<String> {
        let sheets = match self {
            Book::Xlsx(book, _) => book.sheets_metadata(),
            Book::Xlsb(book, _) => book.sheets_metadata(),
            Book::Xls(book, _) => book.sheets_metadata(),
        };
        let seen = sheets
            .iter()
            .filter(|sheet| sheet.visible == SheetVisible::Visible && sheet.typ == SheetType::WorkSheet);
        seen.map(|sheet| sheet.name.clone()).collect()
    }

    /// Tells every cell of a sheet to `visit`, row by row.
    fn each(&mut self, sheet: &str, failed: &dyn Fn(String) -> Error, visit: &mut Visit<'_>) -> Result<()> {
        fn go<'a, E: std::fmt::Display>(
            mut next: impl FnMut() -> std::result::Result<Option<Cell<DataRef<'a>>>, E>,
            failed: &dyn Fn(String) -> Error,
            visit: &mut Visit<'_>,
        ) -> Result<()> {
            while let Some(cell) = guarded(&mut next).map_err(failed)? {
                let value = cell.get_value();
                if !value.is_empty() {
                    visit(cell.get_position(), value.clone())?;
                }
            }
            Ok(())
        }
        match self {
            Book::Xlsx(book, _) => {
                let mut cells = guarded(|| book.worksheet_cells_reader(sheet)).map_err(failed)?;
                go(|| cells.next_cell(), failed, visit)
            }
            Book::Xlsb(book, _) => {
                let mut cells = guarded(|| book.worksheet_cells_reader(sheet)).map_err(failed)?;
                go(|| cells.next_cell(), failed, visit)
            }
            Book::Xls(book, _) => {
                let range = guarded(|| book.worksheet_range(sheet)).map_err(failed)?;
                let (top, left) = range.start().unwrap_or_default();
                for (row, column, value) in range.used_cells() {
                    visit((top + row as u32, left + column as u32), borrowed(value))?;
                }
                Ok(())
            }
        }
    }
}

/// The same cell, as the other kinds of workbook have it.
fn borrowed(cell: &Data) -> DataRef<'_> {
    match cell {
        Data::Int(number) => DataRef::Int(*number),
        Data::Float(number) => DataRef::Float(*number),
        Data::String(text) => DataRef::SharedString(text),
        Data::Bool(value) => DataRef::Bool(*value),
        Data::DateTime(at) => DataRef::DateTime(*at),
        Data::DateTimeIso(text) => DataRef::DateTimeIso(text.clone()),
        Data::DurationIso(text) => DataRef::DurationIso(text.clone()),
        Data::Error(error) => DataRef::Error(error.clone()),
        Data::Empty => DataRef::Empty,
    }
}

/// A sheet of a workbook under way to a table.
struct Reading<'a, R: Read + Seek> {
    path: &'a Path,
    book: Book<R>,
    sheet: String,
    part: Sheets<'a>,
    errors: ErrorCells,
    emptied: u64,
}

/// The part of the workbook `input` that `part` names, as an Arrow file, and how many cells in it hold errors
/// and count as empty.
pub(crate) fn read(input: &Input, kind: Kind, part: Option<&str>, options: &Options) -> Result<(Kept, u64)> {
    let path = input.path();
    let mut part = Sheets::of(part).map_err(|what| Error::address(path, what))?;
    part.skip(options.skip_lines);
    let stored = fenced(|| stored(input, kind));
    let stored = stored.unwrap_or_else(|panicked| Err(damaged(path, &gave_up(&panicked))))?;
    let book = guarded(|| Book::open(kind, stored)).map_err(|what| unopened(path, kind, &what))?;
    let mut reading =
        Reading { path, book, sheet: String::new(), part, errors: options.error_cells, emptied: 0 };
    reading.choose()?;
    reading.table(options)
}

/// That a workbook takes more memory than it may, or than there is.
fn too_large(path: &Path, needed: u64) -> Error {
    let what = format!("it needs {} MiB of memory, which is not available; save it as .csv", needed >> 20);
    Error::Damaged { path: path.to_owned(), format: "Excel", what }
}

/// What a workbook's reader reads.
trait Seekable: Read + Seek {}

impl<R: Read + Seek> Seekable for R {}

/// The workbook for its reader. Errors: one that leads it astray, or takes too much.
fn stored(input: &Input, kind: Kind) -> Result<Box<dyn Seekable>> {
    if kind != Kind::Xls {
        bounded(input)?;
        return Ok(Box::new(BufReader::new(input.stored()?)));
    }
    let path = input.path();
    let old = old::checked(&mut BufReader::new(input.stored()?), input.bytes());
    let old = old.map_err(|fault| match fault {
        old::Fault::Damaged => unopened(path, Kind::Xls, ""),
        old::Fault::Large(needed) => too_large(path, needed),
    })?;
    Ok(Box::new(std::io::Cursor::new(old)))
}

/// What a part of a workbook is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Sheet,
    Text,
    Styles,
    Other,
}

impl Part {
    fn of(name: &str) -> Self {
        let name = name.to_ascii_lowercase().replace('\\', "/");
        let is =
            |stem: &str| name.ends_with(&format!("{stem}.xml")) || name.ends_with(&format!("{stem}.bin"));
        if is("sharedstrings") {
            Part::Text
        } else if is("styles") {
            Part::Styles
        } else if name.contains("worksheets/") {
            Part::Sheet
        } else {
            Part::Other
        }
    }

    fn most(self) -> u64 {
        match self {
            Part::Sheet => MOST_SHEET,
            Part::Text => MOST_SHARED_TEXT,
            Part::Styles => MOST_STYLES,
            Part::Other => MOST_OTHER,
        }
    }
}

/// Takes what a part unpacks to, and looks for what its reader would pass over, or believe.
struct Seen {
    part: Part,
    bytes: u64,
    /// The end of what was seen, in which a word may begin.
    tail: Vec<u8>,
    has_cdata: bool,
    /// How many texts a part of them says that it has.
    count: u64,
    /// Of a sheet in binary.
    records: Option<Records>,
}

impl Write for Seen {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        const CDATA: &[u8] = b"<![CDATA[";
        const COUNT: &[u8] = b"uniqueCount=";
        self.bytes += bytes.len() as u64;
        if let Some(records) = &mut self.records {
            records.take(bytes);
            return Ok(bytes.len());
        }
        if self.part == Part::Sheet || self.part == Part::Text {
            self.tail.extend_from_slice(bytes);
            self.has_cdata |= memchr::memmem::find(&self.tail, CDATA).is_some();
            if self.part == Part::Text {
                for at in memchr::memmem::find_iter(&self.tail, COUNT) {
                    let text =
                        self.tail[at + COUNT.len()..].iter().skip(1).take_while(|b| b.is_ascii_digit());
                    let number =
                        |sum: u64, digit: &u8| sum.saturating_mul(10).saturating_add(u64::from(digit - b'0'));
                    self.count = self.count.max(text.fold(0, number));
                }
            }
            let from = self.tail.len().saturating_sub(64);
            self.tail.drain(..from);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Refuses a workbook whose parts unpack to more than is read, or take more memory than there is, and one with cells
/// that its reader takes for empty.
fn bounded(input: &Input) -> Result<()> {
    let path = input.path();
    let said = |error: &dyn std::fmt::Display| damaged(path, &error.to_string());
    let mut archive = zip::ZipArchive::new(BufReader::new(input.stored()?)).map_err(|error| said(&error))?;
    if archive.has_overlapping_files().map_err(|error| said(&error))? {
        return Err(damaged(path, "two of its parts are the same bytes"));
    }
    let (mut all, mut needed) = (0u64, 0u64);
    for at in 0..archive.len() {
        let part = archive.by_index(at).map_err(|error| said(&error))?;
        let name = part.name().map_or(String::new(), |name| name.to_ascii_lowercase());
        let kind = Part::of(&name);
        let records = (kind == Part::Sheet && name.ends_with(".bin")).then(Records::default);
        let most = kind.most().min(MOST_ALL.saturating_sub(all));
        let mut seen = Seen { part: kind, bytes: 0, tail: Vec::new(), has_cdata: false, count: 0, records };
        std::io::copy(&mut part.take(most + 1), &mut seen).map_err(|error| said(&error))?;
        all += seen.bytes;
        if seen.bytes > most {
            let what = format!("a part of it decompresses to more than {} MiB", most >> 20);
            return Err(Error::Damaged { path: path.to_owned(), format: "Excel", what });
        }
        if seen.has_cdata && kind == Part::Sheet {
            return Err(damaged(path, "a part of it has cells in CDATA"));
        }
        if seen.records.is_some_and(|records| records.is_read_short()) {
            return Err(damaged(path, "a part of it has rows or cells that would be skipped"));
        }
        let size = seen.bytes;
        needed = needed.saturating_add(match kind {
            Part::Text => (TEXT_TIMES * size).saturating_add(seen.count.saturating_mul(24)),
            Part::Styles => STYLES_TIMES * size,
            Part::Sheet | Part::Other => 0,
        });
    }
    let most = available_memory()
        .unwrap_or(u64::MAX)
        .min(TEXT_TIMES * MOST_SHARED_TEXT + STYLES_TIMES * MOST_STYLES);
    if needed > most { Err(too_large(path, needed)) } else { Ok(()) }
}

/// That a workbook cannot be opened. Other files of Office begin as the old ones do.
fn unopened(path: &Path, kind: Kind, what: &str) -> Error {
    if kind != Kind::Xls || is_secret(what) {
        return damaged(path, what);
    }
    let kind = "an old Excel workbook (.xls) that cannot be read, or another Office file of that time";
    Error::Kind { path: path.to_owned(), kind, remedy: "save it as CSV UTF-8" }
}

/// Whether a library's words are of a workbook that is encrypted.
fn is_secret(what: &str) -> bool {
    ["password", "encrypt", "Password"].iter().any(|word| what.contains(word))
}

fn damaged(path: &Path, what: &str) -> Error {
    // A library's own words may quote what a cell holds.
    let what = match is_secret(what) {
        true => "it is protected by a password; save it without one",
        false => "save it again as .xlsx, or as .csv",
    };
    Error::Damaged { path: path.to_owned(), format: "Excel", what: what.to_owned() }
}

impl<R: Read + Seek> Reading<'_, R> {
    fn wrong(&self, what: String) -> Error {
        Error::address(self.path, what)
    }

    /// Finds the sheet: the one that is named, or the only one that has cells.
    fn choose(&mut self) -> Result<()> {
        let names = self.book.names();
        if let Some(wanted) = self.part.sheet {
            if !names.iter().any(|name| name == wanted) {
                let names = shown(&names);
                return Err(self.wrong(format!("it has no sheet of that name; it has {names}")));
            }
            self.sheet = wanted.to_owned();
            return Ok(());
        }
        let mut full = Vec::new();
        for name in names {
            if self.has_cells(&name)? {
                full.push(name);
            }
        }
        match full.as_slice() {
            [] => Err(Error::Empty(self.path.to_owned())),
            [one] => {
                self.sheet = one.clone();
                Ok(())
            }
            several => {
                let (file, names) = (name(self.path), shown(several));
                Err(self.wrong(format!("several sheets have cells: {names}; name one, as in {file}#SHEET")))
            }
        }
    }

    fn has_cells(&mut self, sheet: &str) -> Result<bool> {
        let path = self.path;
        let mut found = false;
        let first = self.book.each(sheet, &|what| damaged(path, &what), &mut |_, _| {
            found = true;
            // Enough is known.
            Err(Error::Empty(path.to_owned()))
        });
        match first {
            Err(Error::Empty(_)) if found => Ok(true),
            other => other.map(|()| false),
        }
    }

    /// Tells the cells of the part that is wanted, as values.
    fn each(&mut self, visit: &mut dyn FnMut((u32, u32), Value) -> Result<()>) -> Result<u64> {
        let (path, sheet, since) = (self.path, self.sheet.clone(), self.book.since_1904());
        let (part, errors) = (&self.part, self.errors);
        let (mut emptied, mut last) = (0, (0, None));
        self.book.each(&sheet, &|what| damaged(path, &what), &mut |at, cell| {
            if (at.0, Some(at.1)) <= last {
                return Err(damaged(path, "its cells are not in order"));
            }
            last = (at.0, Some(at.1));
            // Room is made for every column up to the last: what a file says of a cell's place is no measure.
            if u64::from(at.0) >= SHEET_ROWS || at.1 as usize >= SHEET_COLUMNS {
                return Err(damaged(path, "a cell is beyond the limits of a sheet"));
            }
            if !part.holds(at) {
                return Ok(());
            }
            match value(&cell, since) {
                Ok(Some(value)) => visit(at, value),
                Ok(None) => Ok(()),
                Err(Unread::Error) if errors == ErrorCells::Null => {
                    emptied += 1;
                    Ok(())
                }
                Err(unread) => {
                    let what = unread.words().to_owned();
                    Err(Error::SheetCell { path: path.to_owned(), cell: called(at), what })
                }
            }
        })?;
        Ok(emptied)
    }

    /// The table, kept as an Arrow file.
    fn table(mut self, options: &Options) -> Result<(Kept, u64)> {
        let mut area: Option<(u32, RangeInclusive<u32>)> = None;
        let mut bottom = 0;
        self.each(&mut |(row, column), _| {
            bottom = row;
            area = Some(match area.take() {
                None => (row, column..=column),
                Some((top, columns)) => (top, column.min(*columns.start())..=column.max(*columns.end())),
            });
            Ok(())
        })?;
        let (top, columns) = area.ok_or_else(|| Error::Empty(self.path.to_owned()))?;
        let width = (columns.end() - columns.start() + 1) as usize;
        let (mut names, mut types) = (vec![None; width], vec![Type::Nothing; width]);
        let has_names = options.header == Header::Names;
        let (first, mut rows) = (*columns.start(), Top::default());
        self.each(&mut |(row, column), value| {
            let at = (column - first) as usize;
            rows.take(row, at, width, || value.text());
            match row == top && has_names {
                true => names[at] = Some(value.text()),
                false => types[at] = types[at].with(&value),
            }
            Ok(())
        })?;
        // Of columns that have neither a name nor a cell nothing is to be told.
        let mut kept: Vec<usize> = Vec::new();
        let mut fields = Vec::new();
        for (at, (named, kind)) in names.into_iter().zip(&types).enumerate() {
            let named = if has_names { named } else { Some((at + 1).to_string()) };
            let Some(named) = named else {
                if *kind != Type::Nothing {
                    if let Some((row, column)) = rows.header() {
                        let skipped = u64::from(row - self.part.rows.start()) + options.skip_lines;
                        let area = ((row, first + column), (bottom, *columns.end()));
                        return Err(title::above(self.path, &self.sheet, skipped, area));
                    }
                    let (cell, path) = (called((top, first + at as u32)), self.path.to_owned());
                    let what = "the column below has cells and no name; name it, or give a range".to_owned();
                    return Err(Error::SheetCell { path, cell, what });
                }
                continue;
            };
            kept.push(at);
            fields.push(Field::new(named, kind.data(), true));
        }
        let schema = Arc::new(Schema::new(fields));
        let from = if has_names { top + 1 } else { top };
        let mut rows = Rows::new(self.path, schema, &kept, &types, width)?;
        self.emptied = self.each(&mut |(row, column), value| {
            if row >= from { rows.take(row, (column - first) as usize, value) } else { Ok(()) }
        })?;
        Ok((rows.finish()?, self.emptied))
    }
}

/// Rows on their way to the Arrow file.
struct Rows<'a> {
    path: &'a Path,
    schema: SchemaRef,
    kept: &'a [usize],
    builders: Vec<Builder>,
    /// The row that grows, and its cells.
    row: Option<u32>,
    cells: Vec<Option<Value>>,
    waiting: usize,
    /// Bytes of their text.
    bytes: usize,
    writer: FileWriter<Kept>,
}

impl<'a> Rows<'a> {
    fn new(
        path: &'a Path,
        schema: SchemaRef,
        kept: &'a [usize],
        types: &[Type],
        width: usize,
    ) -> Result<Self> {
        let file = Kept::new().map_err(|error| unkept(path, &error))?;
        let writer = FileWriter::try_new(file, &schema).map_err(|error| unkept(path, &error))?;
        let builders = kept.iter().map(|at| Builder::of(types[*at])).collect();
        Ok(Rows {
            path,
            schema,
            kept,
            builders,
            row: None,
            cells: vec![None; width],
            waiting: 0,
            bytes: 0,
            writer,
        })
    }

    fn take(&mut self, row: u32, column: usize, value: Value) -> Result<()> {
        if self.row.is_some_and(|now| now != row) {
            self.end_row()?;
        }
        self.row = Some(row);
        if let Value::Text(text) = &value {
            self.bytes += text.len();
        }
        self.cells[column] = Some(value);
        Ok(())
    }

    fn end_row(&mut self) -> Result<()> {
        for (builder, at) in self.builders.iter_mut().zip(self.kept) {
            builder.append(self.cells[*at].as_ref());
        }
        self.cells.iter_mut().for_each(|cell| *cell = None);
        self.waiting += 1;
        if self.waiting == rows_of_batch(self.builders.len()) || self.bytes >= BATCH_BYTES {
            self.flush()
        } else {
            Ok(())
        }
    }

    fn flush(&mut self) -> Result<()> {
        (self.waiting, self.bytes) = (0, 0);
        let columns = self.builders.iter_mut().map(Builder::finish).collect();
        let batch = RecordBatch::try_new(self.schema.clone(), columns);
        let written = batch.and_then(|batch| self.writer.write(&batch));
        written.map_err(|error| unkept(self.path, &error))
    }

    fn finish(mut self) -> Result<Kept> {
        if self.row.is_some() {
            self.end_row()?;
        }
        if self.waiting > 0 {
            self.flush()?;
        }
        let path = self.path;
        let mut kept = self.writer.into_inner().map_err(|error| unkept(path, &error))?;
        kept.flush().map_err(|error| unkept(path, &error))?;
        Ok(kept)
    }
}

fn unkept(path: &Path, error: &dyn std::fmt::Display) -> Error {
    let source = std::io::Error::other(format!("in {}: {error}", std::env::temp_dir().display()));
    Error::Unreadable { path: path.to_owned(), source }
}

fn shown(names: &[String]) -> String {
    let names: Vec<String> =
        names.iter().map(|name| format!("`{}`", tacit_crypto::text::shown(name))).collect();
    names.join(", ")
}

/// Why a cell has no value.
enum Unread {
    Error,
    Date,
}

impl Unread {
    fn words(&self) -> &'static str {
        match self {
            Unread::Error => "the cell has an error, such as #N/A; fix it, or let error cells count as empty",
            Unread::Date => "the cell has a date or time that does not exist",
        }
    }
}

/// What a cell holds; nothing where that is nothing.
fn value(cell: &DataRef<'_>, since_1904: bool) -> std::result::Result<Option<Value>, Unread> {
    let whole = |number: f64| match number.fract() == 0.0 && number.abs() < EXACT {
        true => Value::Int(number as i64),
        false => Value::Float(number),
    };
    Ok(Some(match cell {
        DataRef::Empty => return Ok(None),
        DataRef::Int(number) => Value::Int(*number),
        DataRef::Float(number) => whole(*number),
        DataRef::Bool(value) => Value::Bool(*value),
        DataRef::String(text) if text.is_empty() => return Ok(None),
        DataRef::SharedString("") => return Ok(None),
        DataRef::String(text) => Value::Text(text.clone()),
        DataRef::SharedString(text) => Value::Text((*text).to_owned()),
        DataRef::DateTimeIso(text) | DataRef::DurationIso(text) => Value::Text(text.clone()),
        DataRef::Error(_) => return Err(Unread::Error),
        DataRef::DateTime(at) if at.is_duration() || (0.0..1.0).contains(&at.as_f64()) && !since_1904 => {
            Value::Text(time(at.as_f64()).ok_or(Unread::Date)?)
        }
        DataRef::DateTime(at) => {
            let millis = moment(at.as_f64(), since_1904).ok_or(Unread::Date)?;
            match i32::try_from(millis / MILLIS_A_DAY) {
                Ok(days) if millis % MILLIS_A_DAY == 0 => Value::Date(days),
                _ => Value::Moment(millis),
            }
        }
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_workbook_is_named_as_in_a_formula() {
        let of = |text| Sheets::of(Some(text)).map(|part| (part.sheet, part.rows, part.columns)).ok();
        let all = 0..=u32::MAX;
        assert_eq!(of("Sheet1"), Some((Some("Sheet1"), all.clone(), all.clone())));
        assert_eq!(of("My Data!B2:AA10"), Some((Some("My Data"), 1..=9, 1..=26)));
        assert_eq!(of("'a!b'!$A$1:$C$3"), Some((Some("a!b"), 0..=2, 0..=2)));
        assert_eq!(of("A:C"), Some((None, all.clone(), 0..=2)));
        assert_eq!(of("S!2:5"), Some((Some("S"), 1..=4, all)));
        for wrong in ["S!A1:", "S!B1:A1", "S!A0:B2", "S!A1:B", "S!x"] {
            assert_eq!(of(wrong), None, "{wrong}");
        }
        assert_eq!(called((0, 0)), "A1");
        assert_eq!(called((9, 26)), "AA10");
        assert_eq!(called((1_048_575, 16_383)), "XFD1048576");
    }

    #[test]
    fn values_have_one_text() {
        for (days, text) in
            [(0, "1970-01-01"), (19_782, "2024-02-29"), (-25_509, "1900-02-28"), (2_932_896, "9999-12-31")]
        {
            assert_eq!(date(days), text);
        }
        assert_eq!(Value::Moment(MILLIS_A_DAY + MILLIS_A_DAY / 2).text(), "1970-01-02T12:00:00");
        assert_eq!(Value::Float(0.1).text(), "0.1");
        assert_eq!(Value::Float(1e300).text(), "1e300");
    }
}
