//! Rows of a CSV file, one after another.
//!
//! A row without a quote ends where its line does and parts at every delimiter, which is found many bytes at
//! a time; most rows are such. Any other one goes through the states of `csv_core`, a byte at a time. Both
//! hold to the same rules: a line ends with LF, CR or both, empty lines are no rows, and a quote encloses a
//! field where it is its first character.

use super::MaxRow;
use crate::fault::{Error, Place, Result};
use crate::input::{BUFFER, Input};
use std::io::{BufRead, ErrorKind, Read};
use std::ops::Range;

/// What separates and encloses fields.
#[derive(Clone, Copy)]
pub(super) struct Marks {
    pub delimiter: u8,
    pub quote: Option<u8>,
    /// What stands before a quote within quotes, if quotes are not doubled there.
    pub escape: Option<u8>,
}

/// The rows of an input, of which one is there at a time.
pub(super) struct Rows<'a> {
    input: &'a Input,
    stream: Box<dyn BufRead>,
    marks: Marks,
    machine: csv_core::Reader,
    /// What has been read and is whole characters.
    text: String,
    /// The first bytes of the character behind them.
    torn: Vec<u8>,
    rest: Rest,
    /// Where in `text` the next row begins, and its line.
    at: usize,
    line: u64,
    row: Row,
    /// Fields of the first row, and so of every other one.
    width: Option<usize>,
    most: MaxRow,
}

/// What is behind what has been read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rest {
    Unknown,
    Nothing,
    /// Bytes that are not UTF-8.
    Invalid,
}

/// Where a row stands.
#[derive(Default)]
struct Row {
    /// In the text, with its line's end.
    place: Range<usize>,
    line: u64,
    /// Fields end here: of a plain row, in `text` behind its start, a delimiter between any two; of another
    /// one in `fields`.
    ends: Vec<usize>,
    is_plain: bool,
    fields: String,
}

impl<'a> Rows<'a> {
    /// The rows of `input`, whose `stream` is at its start.
    pub(super) fn new(input: &'a Input, stream: Box<dyn BufRead>, marks: Marks, most: MaxRow) -> Self {
        let mut builder = csv_core::ReaderBuilder::new();
        builder.delimiter(marks.delimiter).escape(marks.escape).double_quote(marks.escape.is_none());
        match marks.quote {
            Some(quote) => builder.quote(quote),
            None => builder.quoting(false),
        };
        let mut machine = builder.build();
        // Only what it reads first may be a mark of byte order to it.
        machine.read_record(b"\n", &mut [0], &mut [0]);
        Rows {
            input,
            stream,
            marks,
            machine,
            text: String::new(),
            torn: Vec::new(),
            rest: Rest::Unknown,
            at: 0,
            line: 1,
            row: Row::default(),
            width: None,
            most,
        }
    }

    /// Goes on to the next row; `false` if there is none. Errors: what cannot be read, is not UTF-8, or has
    /// more or fewer fields than the first row.
    pub(super) fn next(&mut self) -> Result<bool> {
        if !self.pass_empty_lines()? {
            return Ok(false);
        }
        self.row.line = self.line;
        loop {
            let bytes = &self.text.as_bytes()[self.at..];
            let mark = match self.marks.quote {
                Some(quote) => memchr::memchr3(quote, b'\n', b'\r', bytes),
                None => memchr::memchr2(b'\n', b'\r', bytes),
            };
            let end = match mark {
                Some(end) if Some(bytes[end]) == self.marks.quote => {
                    self.quoted()?;
                    break;
                }
                // Whether an LF follows is not known yet.
                Some(end) if bytes[end] == b'\r' && end + 1 == bytes.len() => end,
                Some(end) => {
                    self.plain(end);
                    break;
                }
                None => bytes.len(),
            };
            if !self.more()? {
                self.plain(end);
                break;
            }
        }
        self.check_length(self.row.place.len())?;
        let (expected, found) = (*self.width.get_or_insert(self.row.ends.len()), self.row.ends.len());
        if found == expected {
            return Ok(true);
        }
        let (expected, found) = (expected as u64, found as u64);
        Err(Error::UnequalRow { path: self.input.path().to_owned(), line: self.row.line, expected, found })
    }

    /// The number of fields.
    pub(super) fn len(&self) -> usize {
        self.row.ends.len()
    }

    /// The field at this place, empty if there is none.
    pub(super) fn field(&self, at: usize) -> &str {
        let Some(&end) = self.row.ends.get(at) else { return "" };
        let before = at.checked_sub(1).and_then(|before| self.row.ends.get(before));
        let found = match self.row.is_plain {
            true => {
                let from = self.row.place.start;
                self.text.get(from + before.map_or(0, |before| before + 1)..from + end)
            }
            false => self.row.fields.get(before.copied().unwrap_or(0)..end),
        };
        found.unwrap_or("")
    }

    /// All fields.
    pub(super) fn fields(&self) -> impl Iterator<Item = &str> {
        (0..self.len()).map(|at| self.field(at))
    }

    /// The line where the row starts, from 1.
    pub(super) fn line(&self) -> u64 {
        self.row.line
    }

    /// The row as it is written, with its line's end if it has one.
    pub(super) fn written(&self) -> &[u8] {
        &self.text.as_bytes()[self.row.place.clone()]
    }

    /// Goes on to what is no line's end; `false` if nothing is.
    fn pass_empty_lines(&mut self) -> Result<bool> {
        loop {
            match self.text.as_bytes().get(self.at..).unwrap_or_default() {
                [b'\r'] if self.rest == Rest::Unknown => _ = self.more()?,
                [b'\r', b'\n', ..] => (self.at, self.line) = (self.at + 2, self.line + 1),
                [b'\r' | b'\n', ..] => (self.at, self.line) = (self.at + 1, self.line + 1),
                [] => {
                    self.row.line = self.line;
                    if !self.more()? {
                        return Ok(false);
                    }
                }
                _ => return Ok(true),
            }
        }
    }

    /// A row without quotes, which ends `end` bytes behind its start.
    fn plain(&mut self, end: usize) {
        let row = &self.text.as_bytes()[self.at..];
        self.row.ends.clear();
        self.row.ends.extend(memchr::memchr_iter(self.marks.delimiter, &row[..end]));
        self.row.ends.push(end);
        self.row.is_plain = true;
        self.close(end);
    }

    /// A row with quotes.
    fn quoted(&mut self) -> Result<()> {
        let mut fields = std::mem::take(&mut self.row.fields).into_bytes();
        fields.resize(fields.len().max(256), 0);
        let ends = &mut self.row.ends;
        ends.resize(ends.len().max(16), 0);
        let (mut read, mut written, mut count) = (0, 0, 0);
        loop {
            let input = &self.text.as_bytes()[self.at + read..];
            // To the machine nothing to read is the end.
            if input.is_empty() && self.more()? {
                continue;
            }
            let input = &self.text.as_bytes()[self.at + read..];
            let (state, nin, nout, nend) =
                self.machine.read_record(input, &mut fields[written..], &mut self.row.ends[count..]);
            (read, written, count) = (read + nin, written + nout, count + nend);
            match state {
                csv_core::ReadRecordResult::InputEmpty => {}
                csv_core::ReadRecordResult::OutputFull => fields.resize(2 * fields.len(), 0),
                csv_core::ReadRecordResult::OutputEndsFull => {
                    self.row.ends.resize(2 * self.row.ends.len(), 0);
                }
                csv_core::ReadRecordResult::Record | csv_core::ReadRecordResult::End => break,
            }
        }
        fields.truncate(written);
        self.row.ends.truncate(count);
        self.row.fields = String::from_utf8(fields).map_err(|_| self.invalid())?;
        self.row.is_plain = false;
        // Its line's end has been read, unless the file ends without one; of CR and LF the first.
        let row = &self.text.as_bytes()[self.at..self.at + read];
        self.line += memchr::memchr_iter(b'\n', row).count() as u64;
        match row {
            [.., b'\n'] => {
                self.line -= 1;
                self.close(read - 1);
            }
            [.., b'\r'] => {
                while self.at + read == self.text.len() && self.more()? {}
                self.close(read - 1);
            }
            _ => self.close(read),
        }
        Ok(())
    }

    /// Ends the row `end` bytes behind its start and behind the line's end there.
    fn close(&mut self, end: usize) {
        let ending = match &self.text.as_bytes()[self.at + end..] {
            [b'\r', b'\n', ..] => 2,
            [b'\r' | b'\n', ..] => 1,
            _ => 0,
        };
        self.row.place = self.at..self.at + end + ending;
        self.at = self.row.place.end;
        self.line += u64::from(ending > 0);
    }

    /// Reads more behind the row of now, which moves to the front; `false` if there is no more.
    fn more(&mut self) -> Result<bool> {
        self.check_length(self.text.len() - self.at)?;
        match self.rest {
            Rest::Unknown => {}
            Rest::Nothing => return Ok(false),
            Rest::Invalid => return Err(self.invalid()),
        }
        let mut bytes = std::mem::take(&mut self.text).into_bytes();
        bytes.drain(..self.at);
        self.at = 0;
        bytes.append(&mut self.torn);
        // As much again, so that a long row is not looked at too often.
        let before = bytes.len();
        let mut filled = before;
        bytes.resize(before + before.max(BUFFER), 0);
        while filled < bytes.len() {
            match self.stream.read(&mut bytes[filled..]) {
                Ok(0) => {
                    self.rest = Rest::Nothing;
                    break;
                }
                Ok(read) => filled += read,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(self.input.unreadable(error)),
            }
        }
        bytes.truncate(filled);
        self.text = String::from_utf8(bytes).unwrap_or_else(|error| {
            let (valid, length) = (error.utf8_error().valid_up_to(), error.utf8_error().error_len());
            let mut bytes = error.into_bytes();
            let torn = bytes.split_off(valid);
            if length.is_some() || self.rest == Rest::Nothing {
                self.rest = Rest::Invalid;
            } else {
                self.torn = torn;
            }
            String::from_utf8(bytes).unwrap_or_default()
        });
        Ok(true)
    }

    /// Refuses a row of so many bytes, or more, if that is too long.
    fn check_length(&self, bytes: usize) -> Result<()> {
        if bytes as u64 <= self.most.bytes() {
            return Ok(());
        }
        let (path, place) = (self.input.path().to_owned(), Place::Line(self.row.line));
        Err(Error::LongRow { path, place, most: self.most.bytes() })
    }

    fn invalid(&self) -> Error {
        Error::InvalidUtf8 { path: self.input.path().to_owned(), line: self.row.line }
    }
}
