//! Tables in JSON lines: an object a line, whose members are cells.
//!
//! They become columns, kept as what a database answers is: whole numbers and truth values as such, other numbers
//! as the decimals that they are written as, text as it stands. Objects and lists are kept as JSON, and are no
//! keys. What stands in a column in more ways than one is text. A member that is missing is a null.

use crate::columnar::{EXTENSION, JSON};
use crate::csv::Options;
use crate::encoding::{self, BYTE_ORDER_MARK, Decoded, is_foreign};
use crate::fault::{Error, Place, Result};
use crate::input::Input;
use crate::kept::{Kept, NUMERIC, rows_of_batch};
use arrow_array::builder::{BooleanBuilder, Int64Builder, LargeStringBuilder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_ipc::writer::FileWriter;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::sync::Arc;

/// Bytes of lines that are written together.
const BATCH_BYTES: usize = 8 << 20;
/// Columns that a table may have.
const MOST_COLUMNS: usize = 1 << 14;

/// Whether what begins with this text is JSON lines: the first line is an object. `is_whole` if nothing follows it.
pub(crate) fn is_lines(text: &[u8], is_whole: bool) -> bool {
    let mut text = text.trim_ascii_start();
    while let Some(behind) = text.strip_prefix(BYTE_ORDER_MARK) {
        text = behind.trim_ascii_start();
    }
    // A line in another encoding is still an object here; reading it reports the encoding.
    let is_object = |line: &[u8]| serde_json::from_str::<Members<'_>>(&String::from_utf8_lossy(line)).is_ok();
    match memchr::memchr(b'\n', text) {
        Some(end) => is_object(&text[..end]),
        None if is_whole => is_object(text),
        // A first line that is longer than what is looked at.
        None => text.starts_with(b"{\""),
    }
}

/// These files as columns, with the names and types that one file with all of their lines would have.
pub(crate) fn to_columns(inputs: &[&Input], options: &Options) -> Result<Vec<Input>> {
    let mut columns = Columns::default();
    for input in inputs {
        columns.see_all(input, options)?;
    }
    inputs.iter().map(|input| kept(input, options, &columns)).collect()
}

fn kept(input: &Input, options: &Options, columns: &Columns) -> Result<Input> {
    let unkept = |error: &dyn std::fmt::Display| {
        let what = format!("cannot be stored in {}: {error}", std::env::temp_dir().display());
        Error::Unreadable { path: input.path().to_owned(), source: std::io::Error::other(what) }
    };
    let schema = columns.schema();
    let kept = Kept::new().map_err(|error| unkept(&error))?;
    let mut writer = FileWriter::try_new(kept, &schema).map_err(|error| unkept(&error))?;
    let most = rows_of_batch(columns.all.len());
    let mut batch = Batch::new(columns, schema);
    let mut lines = Lines::open(input, options)?;
    while lines.next()? {
        batch.add(columns, &lines)?;
        if batch.rows == most || batch.bytes >= BATCH_BYTES {
            batch.finish().and_then(|batch| writer.write(&batch)).map_err(|error| unkept(&error))?;
        }
    }
    batch.finish().and_then(|batch| writer.write(&batch)).map_err(|error| unkept(&error))?;
    let mut kept = writer.into_inner().map_err(|error| unkept(&error))?;
    kept.flush().map_err(|error| unkept(&error))?;
    Ok(Input::kept(input.path(), kept, input.digest_as_read()?).of_json())
}

/// An object's members as they are written.
struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Vec<(String, &'de RawValue)>;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> std::result::Result<Self::Value, M::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(members)
            }
        }
        deserializer.deserialize_map(Object).map(Members)
    }
}

/// The lines of an input, of which one is there at a time.
struct Lines<'a> {
    input: &'a Input,
    reader: Box<dyn BufRead>,
    encoding: Option<&'static str>,
    text: Vec<u8>,
    line: u64,
    most: u64,
}

impl<'a> Lines<'a> {
    fn open(input: &'a Input, options: &Options) -> Result<Self> {
        let encoding = encoding::of(input.path(), &input.start()?, options.encoding)?;
        let (reader, encoding) = (input.reader()?, encoding.filter(|encoding| !encoding.is_utf8()));
        let reader: Box<dyn BufRead> = match encoding {
            Some(encoding) => Box::new(BufReader::new(Decoded::new(reader, encoding))),
            None => reader,
        };
        let (most, encoding) = (options.max_row.bytes(), encoding.map(|encoding| encoding.name()));
        Ok(Lines { input, reader, encoding, text: Vec::new(), line: 0, most })
    }

    /// Goes on to the next line that is not empty; `false` if there is none.
    fn next(&mut self) -> Result<bool> {
        loop {
            self.text.clear();
            self.line += 1;
            let read = self.reader.by_ref().take(self.most + 2).read_until(b'\n', &mut self.text);
            if read.map_err(|error| self.unreadable(error))? == 0 {
                return Ok(false);
            }
            if self.text.len() as u64 > self.most + 1 {
                let (path, place) = (self.input.path().to_owned(), Place::Line(self.line));
                return Err(Error::LongRow { path, place, most: self.most });
            }
            // Files that were joined have a mark in front of any line.
            while self.text.starts_with(BYTE_ORDER_MARK) {
                self.text.drain(..BYTE_ORDER_MARK.len());
            }
            if !self.text.trim_ascii().is_empty() {
                return Ok(true);
            }
        }
    }

    fn unreadable(&self, error: std::io::Error) -> Error {
        match self.encoding {
            Some(encoding) if is_foreign(&error) => {
                let (path, line) = (self.input.path().to_owned(), self.line);
                Error::NotInEncoding { path, line, column: 1, encoding }
            }
            _ => self.input.unreadable(error),
        }
    }

    fn members(&self) -> Result<Members<'_>> {
        let text = std::str::from_utf8(&self.text)
            .map_err(|_| encoding::invalid(self.input, (self.line, 1), &self.text))?;
        serde_json::from_str(text).map_err(|_| self.wrong("a JSON object is expected"))
    }

    /// What a cell says, but for a null.
    fn text(&self, value: &RawValue) -> Result<Option<String>> {
        match value.get().as_bytes().first() {
            Some(b'n') => Ok(None),
            Some(b'"') => serde_json::from_str(value.get())
                .map(Some)
                .map_err(|_| self.wrong("a text has half a character (a lone surrogate)")),
            _ => Ok(Some(value.get().to_owned())),
        }
    }

    fn wrong(&self, what: &str) -> Error {
        let what = format!("line {}: {what}", self.line);
        Error::Damaged { path: self.input.path().to_owned(), format: "JSON lines", what }
    }
}

/// What the cells of a column are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Nothing,
    Bool,
    Int,
    Decimal,
    Text,
    Nested,
}

impl Kind {
    fn of(value: &str) -> Self {
        match value.as_bytes().first() {
            None | Some(b'n') => Kind::Nothing,
            Some(b't' | b'f') => Kind::Bool,
            Some(b'{' | b'[') => Kind::Nested,
            Some(b'"') => Kind::Text,
            _ if value.parse::<i64>().is_ok() => Kind::Int,
            // A number has many texts with an exponent, and as a key it is the one that is there.
            _ if value.contains(['e', 'E']) => Kind::Text,
            _ => Kind::Decimal,
        }
    }

    fn with(self, other: Kind) -> Self {
        match (self, other) {
            (one, other) if one == other => one,
            (Kind::Nothing, one) | (one, Kind::Nothing) => one,
            (Kind::Nested, _) | (_, Kind::Nested) => Kind::Nested,
            (Kind::Int | Kind::Decimal, Kind::Int | Kind::Decimal) => Kind::Decimal,
            _ => Kind::Text,
        }
    }

    fn field(self, name: &str) -> Field {
        let data = match self {
            Kind::Bool => DataType::Boolean,
            Kind::Int => DataType::Int64,
            Kind::Nothing | Kind::Decimal | Kind::Text | Kind::Nested => DataType::LargeUtf8,
        };
        let mark = match self {
            Kind::Decimal => Some(NUMERIC),
            Kind::Nested => Some((EXTENSION, JSON)),
            _ => None,
        };
        let field = Field::new(name, data, true);
        let marks = mark.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned()));
        field.with_metadata(marks.collect())
    }
}

/// The columns in the order in which their names came.
#[derive(Default)]
struct Columns {
    all: Vec<(String, Kind)>,
    places: HashMap<String, usize>,
    /// The last line that had each.
    lines: Vec<u64>,
}

impl Columns {
    /// Takes note of all members of a file's lines.
    fn see_all(&mut self, input: &Input, options: &Options) -> Result<()> {
        // Lines are counted in each file.
        self.lines.fill(0);
        let mut lines = Lines::open(input, options)?;
        while lines.next()? {
            let members = lines.members()?;
            for (name, value) in &members.0 {
                if !self.see(name, Kind::of(value.get()), lines.line) {
                    return Err(lines.wrong("a member's name occurs twice"));
                }
                if self.all.len() > MOST_COLUMNS {
                    return Err(lines.wrong("the objects so far have more than 16384 names of members"));
                }
            }
        }
        Ok(())
    }

    /// Takes note of a member in this line; `false` if the line has another of that name.
    fn see(&mut self, name: &str, kind: Kind, line: u64) -> bool {
        match self.places.get(name) {
            Some(at) => {
                self.all[*at].1 = self.all[*at].1.with(kind);
                std::mem::replace(&mut self.lines[*at], line) != line
            }
            None => {
                self.places.insert(name.to_owned(), self.all.len());
                self.all.push((name.to_owned(), kind));
                self.lines.push(line);
                true
            }
        }
    }

    fn schema(&self) -> SchemaRef {
        let fields: Vec<Field> = self.all.iter().map(|(name, kind)| kind.field(name)).collect();
        Arc::new(Schema::new(fields))
    }
}

/// Rows that are written together.
struct Batch {
    schema: SchemaRef,
    cells: Vec<Cells>,
    rows: usize,
    bytes: usize,
}

enum Cells {
    Bool(BooleanBuilder),
    Int(Int64Builder),
    Text(LargeStringBuilder),
    /// Text that is JSON, quotes and all.
    Raw(LargeStringBuilder),
}

impl Batch {
    fn new(columns: &Columns, schema: SchemaRef) -> Self {
        let cells = |(_, kind): &(String, Kind)| match kind {
            Kind::Bool => Cells::Bool(BooleanBuilder::new()),
            Kind::Int => Cells::Int(Int64Builder::new()),
            Kind::Nested => Cells::Raw(LargeStringBuilder::new()),
            Kind::Nothing | Kind::Decimal | Kind::Text => Cells::Text(LargeStringBuilder::new()),
        };
        Batch { schema, cells: columns.all.iter().map(cells).collect(), rows: 0, bytes: 0 }
    }

    fn add(&mut self, columns: &Columns, lines: &Lines<'_>) -> Result<()> {
        let mut row: Vec<Option<&RawValue>> = vec![None; self.cells.len()];
        let members = lines.members()?;
        let changed = || Error::Changed(lines.input.path().to_owned());
        for (name, value) in &members.0 {
            let at = *columns.places.get(name).ok_or_else(changed)?;
            row[at] = Some(*value).filter(|value| value.get() != "null");
        }
        for (cells, value) in self.cells.iter_mut().zip(row) {
            match (cells, value) {
                (Cells::Bool(cells), None) => cells.append_null(),
                (Cells::Int(cells), None) => cells.append_null(),
                (Cells::Text(cells) | Cells::Raw(cells), None) => cells.append_null(),
                (Cells::Bool(cells), Some(value)) => {
                    cells.append_value(value.get().parse().map_err(|_| changed())?);
                }
                (Cells::Int(cells), Some(value)) => {
                    cells.append_value(value.get().parse().map_err(|_| changed())?);
                }
                (Cells::Text(cells), Some(value)) => cells.append_option(lines.text(value)?),
                (Cells::Raw(cells), Some(value)) => cells.append_value(value.get()),
            }
        }
        self.rows += 1;
        self.bytes += lines.text.len();
        Ok(())
    }

    fn finish(&mut self) -> std::result::Result<RecordBatch, arrow_schema::ArrowError> {
        let array = |cells: &mut Cells| -> ArrayRef {
            match cells {
                Cells::Bool(cells) => Arc::new(cells.finish()),
                Cells::Int(cells) => Arc::new(cells.finish()),
                Cells::Text(cells) | Cells::Raw(cells) => Arc::new(cells.finish()),
            }
        };
        let arrays = self.cells.iter_mut().map(array).collect();
        let rows = arrow_array::RecordBatchOptions::new().with_row_count(Some(self.rows));
        (self.rows, self.bytes) = (0, 0);
        RecordBatch::try_new_with_options(self.schema.clone(), arrays, &rows)
    }
}
