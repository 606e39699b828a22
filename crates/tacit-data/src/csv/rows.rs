//! Rows of a CSV file, one after another.
//!
//! A row without a quote ends where its line does and parts at every delimiter, which is found many bytes at
//! a time; most rows are such. In any other one a quote encloses a field as a whole, and whatever else a quote
//! could be is refused: one that is never closed would make a cell of the rest of the file. A line ends with
//! LF, CR or both, and empty lines are no rows. Without quotes and with an escape, as databases export tables, an
//! escape takes its meaning from separators and line ends, and a line ends with LF, or CR and LF.

use super::{MaxRow, Options};
use crate::encoding::{self, is_foreign};
use crate::fault::{self, Error, Misquoted, Result};
use crate::input::{BUFFER, Input};
use crate::keys::Longest;
use std::io::Read;
use std::ops::Range;

/// Bytes behind a fault by which the encoding is guessed.
const GUESSED: usize = 256;

/// What separates and encloses fields.
#[derive(Clone, Copy)]
pub(super) struct Marks {
    pub delimiter: u8,
    pub quote: Option<u8>,
    /// What stands before a quote within quotes, if quotes are not doubled there; without quotes, before whatever
    /// is part of a field.
    pub escape: Option<u8>,
}

impl Marks {
    /// By these options, with this separator.
    pub(super) fn of(options: &Options, delimiter: u8) -> Self {
        let quote = options.quote.byte();
        Marks { delimiter, quote, escape: options.escape.filter(|escape| Some(*escape) != quote) }
    }

    /// The escape of fields that nothing encloses.
    fn bare_escape(&self) -> Option<u8> {
        self.escape.filter(|_| self.quote.is_none())
    }
}

/// The rows of an input, of which one is there at a time.
pub(super) struct Rows<'a> {
    input: &'a Input,
    stream: Box<dyn Read>,
    encoding: Option<&'static str>,
    marks: Marks,
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
    /// Whether rows are wanted as they are written, and not their fields.
    is_whole: bool,
    most: MaxRow,
    longest: Longest,
}

/// How far a reading came.
#[derive(Clone, Copy)]
pub(super) struct Reached {
    /// The line where the next row starts, from 1.
    pub line: u64,
    /// Fields of each row.
    pub width: Option<usize>,
    /// What was seen of enclosed cells.
    pub longest: Longest,
}

/// What is behind what has been read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rest {
    Unknown,
    Nothing,
    /// Bytes that are not UTF-8.
    Invalid,
    /// Bytes that the encoding does not have.
    Foreign,
}

/// Where a row stands.
#[derive(Default)]
struct Row {
    /// In the text, with its line's end.
    place: Range<usize>,
    /// Bytes of its line's end.
    ending: usize,
    line: u64,
    /// Fields end here: of a plain row, in `text` behind its start, a delimiter between any two; of another
    /// one in `fields`.
    ends: Vec<usize>,
    is_plain: bool,
    fields: String,
}

/// Where a row stands in a text: in front of its line's end, which has so many bytes, none at the text's end.
pub(super) struct Place {
    body: Range<usize>,
    ending: usize,
}

impl Place {
    /// The row there.
    pub(super) fn of<'t>(&self, text: &'t [u8]) -> Written<'t> {
        let (body, rest) = text[self.body.start..].split_at(self.body.len());
        Written { body, end: &rest[..self.ending] }
    }
}

/// A row as it is written. Only who read it knows where its line ends: the bytes of an end may be escaped, and so be
/// part of the last field.
#[derive(Clone, Copy)]
pub(super) struct Written<'t> {
    pub body: &'t [u8],
    /// What ends its line; nothing at the end of the file.
    pub end: &'t [u8],
}

impl<'a> Rows<'a> {
    /// The rows of `input`, whose text `stream` has from this line on.
    pub(super) fn new(
        input: &'a Input,
        stream: Box<dyn Read>,
        marks: Marks,
        options: &Options,
        line: u64,
    ) -> Self {
        Rows {
            input,
            stream,
            encoding: options.encoding.map(|encoding| encoding.name()),
            marks,
            text: String::new(),
            torn: Vec::new(),
            rest: Rest::Unknown,
            at: 0,
            line,
            row: Row::default(),
            width: None,
            is_whole: false,
            most: options.max_row,
            longest: Longest::default(),
        }
    }

    /// The rows of a text that begins where a row does, and of nothing behind it.
    pub(super) fn of_text(input: &'a Input, text: String, marks: Marks, options: &Options) -> Self {
        let nothing = Box::new(std::io::empty());
        Rows { text, rest: Rest::Nothing, ..Rows::new(input, nothing, marks, options, 1) }
    }

    /// The text that [`of_text`](Self::of_text) was given.
    pub(super) fn into_text(self) -> String {
        self.text
    }

    /// Ends reading here: what was read and is no row yet, and the stream behind it; the rows themselves where
    /// there is nothing more to read.
    #[allow(clippy::result_large_err)] // Once a file.
    pub(super) fn into_rest(self) -> std::result::Result<(Vec<u8>, Box<dyn Read>), Self> {
        if self.rest != Rest::Unknown {
            return Err(self);
        }
        let mut bytes = self.text.into_bytes();
        bytes.drain(..self.at);
        bytes.extend_from_slice(&self.torn);
        Ok((bytes, self.stream))
    }

    /// Where the rows behind those that were read stand.
    pub(super) fn reached(&self) -> Reached {
        Reached { line: self.line, width: self.width, longest: self.longest }
    }

    /// The same rows, behind others.
    pub(super) fn behind(self, reached: Reached) -> Self {
        let Reached { line, width, longest } = reached;
        Rows { line, width, longest, ..self }
    }

    /// From here on rows are taken as they are [`written`](Self::written), without their fields: of a file whose
    /// fields were read before.
    pub(super) fn take_as_written(&mut self) {
        self.is_whole = true;
    }

    /// The next row may have another number of fields than those before.
    pub(super) fn forget_width(&mut self) {
        self.width = None;
    }

    /// Goes on to the next row; `false` if there is none. Errors: what cannot be read, is not UTF-8, or has
    /// more or fewer fields than the first row.
    pub(super) fn next(&mut self) -> Result<bool> {
        if !self.pass_empty_lines()? {
            return Ok(false);
        }
        self.row.line = self.line;
        match self.marks.bare_escape() {
            Some(escape) => self.escaped(escape)?,
            None => self.by_line()?,
        }
        self.check_length(self.row.place.len())?;
        if self.is_whole {
            return Ok(true);
        }
        let (expected, found) = (*self.width.get_or_insert(self.row.ends.len()), self.row.ends.len());
        if found == expected {
            return Ok(true);
        }
        let (expected, found) = (expected as u64, found as u64);
        Err(Error::UnequalRow { path: self.input.path().to_owned(), line: self.row.line, expected, found })
    }

    /// A row that ends with its line, unless a quote is in it.
    fn by_line(&mut self) -> Result<()> {
        loop {
            let bytes = &self.text.as_bytes()[self.at..];
            let mark = match self.marks.quote {
                Some(quote) => memchr::memchr3(quote, b'\n', b'\r', bytes),
                None => memchr::memchr2(b'\n', b'\r', bytes),
            };
            let end = match mark {
                Some(end) if self.marks.quote.is_some_and(|quote| quote == bytes[end]) => {
                    return self.quoted(bytes[end]);
                }
                // Whether an LF follows is not known yet.
                Some(end) if bytes[end] == b'\r' && end + 1 == bytes.len() => end,
                Some(end) => {
                    self.plain(end);
                    return Ok(());
                }
                None => bytes.len(),
            };
            if !self.more()? {
                self.plain(end);
                return Ok(());
            }
        }
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

    /// The longest enclosed cell so far, and the one of the most lines.
    pub(super) fn longest(&self) -> Longest {
        self.longest
    }

    /// Where in the text the row stands.
    pub(super) fn place(&self) -> Place {
        let Range { start, end } = self.row.place;
        Place { body: start..end - self.row.ending, ending: self.row.ending }
    }

    /// The row as it is written.
    pub(super) fn written(&self) -> Written<'_> {
        self.place().of(self.text.as_bytes())
    }

    /// Goes on to what is no line's end; `false` if nothing is.
    fn pass_empty_lines(&mut self) -> Result<bool> {
        loop {
            match self.text.as_bytes().get(self.at..).unwrap_or_default() {
                [b'\r'] if self.rest == Rest::Unknown => _ = self.more()?,
                [b'\r', b'\n', ..] => (self.at, self.line) = (self.at + 2, self.line + 1),
                [b'\r', ..] if self.marks.bare_escape().is_some() => return Ok(true),
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
        if !self.is_whole {
            let row = &self.text.as_bytes()[self.at..];
            self.row.ends.clear();
            self.row.ends.extend(memchr::memchr_iter(self.marks.delimiter, &row[..end]));
            self.row.ends.push(end);
            self.row.is_plain = true;
        }
        self.close(end);
    }

    /// A row with quotes, by RFC 4180 and nothing else: a field is enclosed as a whole or holds no quote.
    fn quoted(&mut self, quote: u8) -> Result<()> {
        self.row.fields.clear();
        self.row.ends.clear();
        self.row.is_plain = false;
        let mut read = 0;
        loop {
            let is_enclosed = self.byte(read)? == Some(quote);
            read = if is_enclosed { self.enclosed(quote, read)? } else { self.bare(quote, read)? };
            self.row.ends.push(self.row.fields.len());
            match self.byte(read)? {
                Some(byte) if byte == self.marks.delimiter => read += 1,
                None | Some(b'\n') => break,
                Some(b'\r') => {
                    // Whether an LF follows.
                    self.byte(read + 1)?;
                    break;
                }
                Some(_) => return Err(self.misquoted(read, Misquoted::TextBehind)),
            }
        }
        let inside = lines(&self.text.as_bytes()[self.at..self.at + read]);
        if inside > 0 {
            let ends = self.row.ends.iter();
            let starts = std::iter::once(&0).chain(ends.clone());
            let fields = starts.zip(ends).map(|(from, to)| lines(&self.row.fields.as_bytes()[*from..*to]));
            self.longest.saw_lines(fields.max().unwrap_or(0) + 1, self.row.line);
            self.line += inside;
        }
        self.close(read);
        Ok(())
    }

    /// A row of fields that nothing encloses, with escapes. A field `\N` is null, and so empty.
    fn escaped(&mut self, escape: u8) -> Result<()> {
        self.row.fields.clear();
        self.row.ends.clear();
        self.row.is_plain = false;
        // The place behind the row's start, and that behind the last escape and what it escapes.
        let (mut read, mut behind, mut start) = (0, 0, 0);
        loop {
            let bytes = &self.text.as_bytes()[self.at + read..];
            let mark = memchr::memchr3(self.marks.delimiter, b'\n', escape, bytes);
            let (length, mark) = (mark.unwrap_or(bytes.len()), mark.map(|at| bytes[at]));
            self.take(read..read + length);
            read += length;
            match mark {
                None if self.more()? => continue,
                Some(byte) if byte == escape => {
                    read = self.unescaped(escape, read, start)?;
                    behind = read;
                    continue;
                }
                Some(b'\n') if read > behind && self.text.as_bytes()[self.at + read - 1] == b'\r' => {
                    self.row.fields.pop();
                    read -= 1;
                }
                _ => {}
            }
            start = self.row.fields.len();
            self.row.ends.push(start);
            match mark {
                Some(byte) if byte == self.marks.delimiter => read += 1,
                _ => break,
            }
        }
        let row = &self.text.as_bytes()[self.at..self.at + read];
        self.line += memchr::memchr_iter(b'\n', row).count() as u64;
        self.close(read);
        Ok(())
    }

    /// Takes what the escape at `read` and the character behind it stand for, in a field whose text begins at
    /// `start`; returns the place behind.
    fn unescaped(&mut self, escape: u8, read: usize, start: usize) -> Result<usize> {
        let Some(byte) = self.byte(read + 1)? else { return Err(self.misquoted(read, Misquoted::Escape)) };
        let named = match byte {
            b'N' if escape == b'\\' && self.row.fields.len() == start => {
                let ends = match self.byte(read + 2)? {
                    None | Some(b'\n') => true,
                    Some(b'\r') => matches!(self.byte(read + 3)?, None | Some(b'\n')),
                    Some(other) => other == self.marks.delimiter,
                };
                if ends {
                    return Ok(read + 2);
                }
                'N'
            }
            b'n' if escape == b'\\' => '\n',
            b't' if escape == b'\\' => '\t',
            b'r' if escape == b'\\' => '\r',
            b'b' if escape == b'\\' => '\u{8}',
            b'0' if escape == b'\\' => '\0',
            b'Z' if escape == b'\\' => '\u{1a}',
            _ => {
                let text = self.text.get(self.at + read + 1..).and_then(|text| text.chars().next());
                text.unwrap_or_default()
            }
        };
        self.row.fields.push(named);
        let bytes = if byte.is_ascii() { 1 } else { named.len_utf8() };
        Ok(read + 1 + bytes)
    }

    /// The byte so far behind the row's start; nothing at the end of the input.
    fn byte(&mut self, read: usize) -> Result<Option<u8>> {
        while self.at + read >= self.text.len() {
            if !self.more()? {
                return Ok(None);
            }
        }
        Ok(self.text.as_bytes().get(self.at + read).copied())
    }

    /// Appends the text between these places behind the row's start to the row's fields.
    fn take(&mut self, part: Range<usize>) {
        let part = self.text.get(self.at + part.start..self.at + part.end);
        self.row.fields.push_str(part.unwrap_or_default());
    }

    /// Takes the field whose quote stands at `opened`; returns the place behind the quote that closes it.
    fn enclosed(&mut self, quote: u8, opened: usize) -> Result<usize> {
        let (start, mut read) = (self.row.fields.len(), opened + 1);
        loop {
            let bytes = &self.text.as_bytes()[self.at + read..];
            let mark = match self.marks.escape {
                Some(escape) => memchr::memchr2(quote, escape, bytes),
                None => memchr::memchr(quote, bytes),
            };
            let end = read + mark.unwrap_or(bytes.len());
            self.take(read..end);
            read = end;
            if mark.is_none() {
                if !self.more()? {
                    return Err(self.misquoted(opened, Misquoted::Open));
                }
            } else if self.text.as_bytes()[self.at + read] != quote {
                if self.byte(read + 1)?.is_none() {
                    return Err(self.misquoted(opened, Misquoted::Open));
                }
                let escaped = self.text.get(self.at + read + 1..).and_then(|text| text.chars().next());
                let end = read + 1 + escaped.map_or(1, char::len_utf8);
                self.take(read + 1..end);
                read = end;
            } else if self.marks.escape.is_none() && self.byte(read + 1)? == Some(quote) {
                self.take(read..read + 1);
                read += 2;
            } else {
                self.longest.saw_bytes((self.row.fields.len() - start) as u64, self.row.line);
                return Ok(read + 1);
            }
        }
    }

    /// Takes the field without quotes that starts at `read`; returns the place behind it.
    fn bare(&mut self, quote: u8, mut read: usize) -> Result<usize> {
        loop {
            let bytes = &self.text.as_bytes()[self.at + read..];
            let mark = memchr::memchr3(self.marks.delimiter, b'\n', b'\r', bytes);
            let end = mark.unwrap_or(bytes.len());
            if let Some(at) = memchr::memchr(quote, &bytes[..end]) {
                return Err(self.misquoted(read + at, Misquoted::Within));
            }
            self.take(read..read + end);
            read += end;
            if mark.is_some() || !self.more()? {
                return Ok(read);
            }
        }
    }

    /// What is wrong with a quote, so far behind the row's start.
    fn misquoted(&self, at: usize, what: Misquoted) -> Error {
        let before = self.text.as_bytes().get(self.at..self.at + at).unwrap_or_default();
        Error::Misquoted {
            path: self.input.path().to_owned(),
            line: self.row.line + lines(before),
            field: self.row.ends.len() as u64 + u64::from(what != Misquoted::TextBehind),
            what,
        }
    }

    /// Ends the row `end` bytes behind its start and behind the line's end there.
    fn close(&mut self, end: usize) {
        let ending = match &self.text.as_bytes()[self.at + end..] {
            [b'\r', b'\n', ..] => 2,
            [b'\r' | b'\n', ..] => 1,
            _ => 0,
        };
        self.row.ending = ending;
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
            Rest::Invalid | Rest::Foreign => return Err(self.invalid()),
        }
        let mut bytes = std::mem::take(&mut self.text).into_bytes();
        bytes.drain(..self.at);
        self.at = 0;
        bytes.append(&mut self.torn);
        // As much again, so that a long row is not looked at too often.
        let wanted = bytes.len().max(BUFFER);
        bytes.reserve(wanted);
        match self.stream.by_ref().take(wanted as u64).read_to_end(&mut bytes) {
            Ok(read) if read < wanted => self.rest = Rest::Nothing,
            Ok(_) => {}
            Err(error) if is_foreign(&error) => self.rest = Rest::Foreign,
            Err(error) => return Err(self.input.unreadable(error)),
        }
        self.text = String::from_utf8(bytes).unwrap_or_else(|error| {
            let (valid, length) = (error.utf8_error().valid_up_to(), error.utf8_error().error_len());
            let mut bytes = error.into_bytes();
            self.torn = bytes.split_off(valid);
            if length.is_some() || self.rest == Rest::Nothing {
                self.rest = Rest::Invalid;
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
        let (path, place) = (self.input.path().to_owned(), fault::Place::Line(self.row.line));
        Err(Error::LongRow { path, place, most: self.most.bytes() })
    }

    /// That the row of now goes on with bytes that are no text.
    fn invalid(&self) -> Error {
        let (path, line, column) = (self.input.path().to_owned(), self.row.line, self.column());
        if self.rest == Rest::Foreign {
            let encoding = self.encoding.unwrap_or_default();
            return Error::NotInEncoding { path, line, column, encoding };
        }
        // Of the row and a little behind the fault: what else was read depends on who read it.
        let row = self.text.as_bytes().get(self.at..).unwrap_or_default();
        let near = [row, &self.torn[..self.torn.len().min(GUESSED)]].concat();
        encoding::invalid(self.input, (line, column), &near)
    }

    /// The column that what has been read ends in, from 1.
    fn column(&self) -> u64 {
        let (mut column, mut enclosed) = (1, false);
        let mut bytes = self.text.as_bytes().get(self.at..).unwrap_or_default().iter();
        while let Some(byte) = bytes.next() {
            match *byte {
                byte if Some(byte) == self.marks.escape => _ = bytes.next(),
                byte if Some(byte) == self.marks.quote => enclosed = !enclosed,
                byte => column += u64::from(byte == self.marks.delimiter && !enclosed),
            }
        }
        column
    }
}

/// Line ends among these bytes: LF, CR, or both together.
fn lines(bytes: &[u8]) -> u64 {
    let is_end = |at: &usize| bytes[*at] == b'\n' || bytes.get(at + 1) != Some(&b'\n');
    memchr::memchr2_iter(b'\n', b'\r', bytes).filter(is_end).count() as u64
}
