//! The text of a CSV file from where its rows begin: decoded, without a byte order mark, behind lines that are
//! skipped and a line that names the separator.

use super::{MaxRow, Options};
use crate::encoding::{BYTE_ORDER_MARK, Decoded};
use crate::fault::{Error, Place, Result};
use crate::input::{BUFFER, Input};
use std::io::{self, Read};

/// Where rows begin.
pub(super) struct Start {
    /// The separator that the file names.
    pub delimiter: Option<u8>,
    pub byte_order_mark: bool,
    /// The line, from 1.
    pub line: u64,
}

/// The text of `input`, and how it begins.
pub(super) fn open(input: &Input, options: &Options) -> Result<(Ahead, Start)> {
    let reader = input.reader()?;
    let encoding = options.encoding.filter(|encoding| !encoding.is_utf8());
    let mut text = Ahead::new(match encoding {
        Some(encoding) => Box::new(Decoded::new(reader, encoding)),
        None => Box::new(reader),
    });
    let mut start = Start { delimiter: None, byte_order_mark: false, line: 1 };
    start.byte_order_mark = pass_marks(&mut text) && encoding.is_none();
    for _ in 0..options.skip_lines {
        if !pass_line(&mut text, options.max_row).map_err(|most| {
            let (path, place) = (input.path().to_owned(), Place::Line(start.line));
            Error::LongRow { path, place, most }
        })? {
            break;
        }
        start.line += 1;
        pass_marks(&mut text);
    }
    if let Some((delimiter, bytes)) = named_delimiter(text.ahead()) {
        text.pass(bytes);
        start.delimiter = Some(delimiter);
        start.line += 1;
        pass_marks(&mut text);
    }
    Ok((text, start))
}

/// Passes byte order marks, of which files that were joined have several; whether there was one. Left where it is, one
/// would be an invisible part of the first cell.
fn pass_marks(text: &mut Ahead) -> bool {
    let mut is_there = false;
    while text.ahead().starts_with(BYTE_ORDER_MARK) {
        text.pass(BYTE_ORDER_MARK.len());
        is_there = true;
    }
    is_there
}

/// Passes a line with its end; `false` at the end of the text, or how long a line may be.
fn pass_line(text: &mut Ahead, most: MaxRow) -> std::result::Result<bool, u64> {
    let mut passed = 0u64;
    loop {
        let bytes = text.ahead();
        if bytes.is_empty() {
            return Ok(passed > 0);
        }
        match memchr::memchr2(b'\n', b'\r', bytes) {
            Some(end) => {
                // What is ahead is long, so that an LF behind a CR is there but at a seam.
                let is_torn = bytes[end] == b'\r' && end + 1 == bytes.len();
                let end =
                    if is_torn { end } else { end + if bytes[end..].starts_with(b"\r\n") { 2 } else { 1 } };
                text.pass(end);
                if !is_torn {
                    return Ok(true);
                }
                let crlf = text.ahead().starts_with(b"\r\n");
                text.pass(if crlf { 2 } else { 1 });
                return Ok(true);
            }
            None => {
                let bytes = bytes.len();
                passed += bytes as u64;
                text.pass(bytes);
            }
        }
        if passed > most.bytes() {
            return Err(most.bytes());
        }
    }
}

/// The separator of a line `sep=;`, as spreadsheets write and read it, and the line's bytes with its end.
fn named_delimiter(text: &[u8]) -> Option<(u8, usize)> {
    let line = &text[..memchr::memchr2(b'\n', b'\r', text).unwrap_or(text.len())];
    let plain = line.strip_prefix(b"\"").and_then(|line| line.strip_suffix(b"\"")).unwrap_or(line);
    let [name @ .., delimiter] = plain else { return None };
    if !name.eq_ignore_ascii_case(b"sep=") || !delimiter.is_ascii() || *delimiter == b'"' {
        return None;
    }
    let end = match &text[line.len()..] {
        [b'\r', b'\n', ..] => 2,
        [] => 0,
        _ => 1,
    };
    Some((*delimiter, line.len() + end))
}

/// A reader that can be looked at ahead of its place. What ends it is said where it ends.
pub(super) struct Ahead {
    inner: Box<dyn Read>,
    text: Vec<u8>,
    at: usize,
    ended: Option<io::Error>,
}

impl Ahead {
    fn new(inner: Box<dyn Read>) -> Self {
        Ahead { inner, text: Vec::new(), at: 0, ended: None }
    }

    /// What comes next, all or at least so much as is read at once.
    pub(super) fn ahead(&mut self) -> &[u8] {
        if self.text.len() - self.at < BUFFER && self.ended.is_none() {
            self.text.drain(..self.at);
            self.at = 0;
            let wanted = 2 * BUFFER - self.text.len();
            self.text.reserve(wanted);
            self.ended = self.inner.by_ref().take(wanted as u64).read_to_end(&mut self.text).err();
        }
        &self.text[self.at..]
    }

    /// Goes on by so many bytes that are ahead.
    fn pass(&mut self, bytes: usize) {
        self.at = self.text.len().min(self.at + bytes);
    }
}

impl Read for Ahead {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.at == self.text.len() {
            return match self.ended.take() {
                Some(error) => Err(error),
                None => self.inner.read(buffer),
            };
        }
        let read = buffer.len().min(self.text.len() - self.at);
        buffer[..read].copy_from_slice(&self.text[self.at..self.at + read]);
        self.at += read;
        Ok(read)
    }
}
