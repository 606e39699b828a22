//! A CSV file cut where rows end, so that workers read its pieces side by side.
//!
//! A piece begins where a row does, outside of quotes, and ends behind a line feed with an even number of quotes
//! in front of it. By RFC 4180 that is a row's end. Where a file has other quotes, the parity says nothing, but
//! then the piece that holds the first of them cannot be read; and the strict reader goes on from that piece.

use super::rows::{Reached, Rows};
use super::{MaxRow, Options, Source};
use crate::fault::Error;
use crate::keys::Longest;
use std::cell::RefCell;
use std::io::{BufReader, Read};
use tacit_crypto::workers;

/// Bytes of a piece, about.
const PIECE: usize = 1 << 18;
/// Bytes of a file that is cut, at least.
const WORTH: u64 = 1 << 20;

/// Whether a file of so many bytes is worth cutting, and a feed ends a row wherever quotes are even: with an escape
/// it need not. What another encoding cannot hold is told by the one reader that has decoded what is before it.
pub(super) fn is_worth(bytes: u64, options: &Options) -> bool {
    let is_utf8 = options.encoding.is_none_or(|encoding| encoding.is_utf8());
    bytes >= WORTH && workers::count() > 1 && options.escape.is_none() && is_utf8
}

/// Of so many bytes that were read, about as many as the rows that have come back took: the others are pieces at
/// work. Else a table's rows would be expected to be fewer than they are.
pub(super) fn behind_workers(read: u64) -> u64 {
    match workers::count() {
        1 => read,
        threads => read.saturating_sub(((threads + workers::PARTS_AHEAD) * PIECE) as u64).max(read / 4 * 3),
    }
}

/// Cuts a stream into pieces.
struct Cutter {
    stream: Box<dyn Read>,
    quote: Option<u8>,
    most: MaxRow,
    /// What was read behind the last piece.
    ahead: Vec<u8>,
    /// Used before.
    spare: Vec<Vec<u8>>,
}

/// What a cutter found.
enum Cut {
    /// A piece that ends where a row does.
    Piece(Vec<u8>),
    /// No row's end in as many bytes as a row may have.
    Unknown,
    /// The end.
    Nothing,
}

impl Cutter {
    fn next(&mut self) -> std::io::Result<Cut> {
        let mut bytes = self.spare.pop().unwrap_or_default();
        bytes.clear();
        bytes.append(&mut self.ahead);
        let mut len = PIECE;
        loop {
            let is_end = self.fill(&mut bytes, len)?;
            if is_end {
                return Ok(if bytes.is_empty() { Cut::Nothing } else { Cut::Piece(bytes) });
            }
            if let Some(end) = last_end(&bytes, self.quote) {
                self.ahead.extend_from_slice(&bytes[end..]);
                bytes.truncate(end);
                return Ok(Cut::Piece(bytes));
            }
            if bytes.len() as u64 > self.most.bytes() {
                self.ahead = bytes;
                return Ok(Cut::Unknown);
            }
            len = 2 * bytes.len();
        }
    }

    /// Reads until there are `len` bytes; `true` at the end of all.
    fn fill(&mut self, bytes: &mut Vec<u8>, len: usize) -> std::io::Result<bool> {
        let wanted = len.saturating_sub(bytes.len());
        bytes.reserve(wanted);
        let read = self.stream.by_ref().take(wanted as u64).read_to_end(bytes)?;
        Ok(read < wanted)
    }
}

/// Behind the last line feed with an even number of quotes in front of it.
fn last_end(bytes: &[u8], quote: Option<u8>) -> Option<usize> {
    let Some(quote) = quote else { return Some(memchr::memrchr(b'\n', bytes)? + 1) };
    let mut is_quoted = memchr::memchr_iter(quote, bytes).count() % 2 == 1;
    for at in memchr::memrchr2_iter(quote, b'\n', bytes) {
        if bytes[at] == quote {
            is_quoted = !is_quoted;
        } else if !is_quoted {
            return Some(at + 1);
        }
    }
    None
}

/// What a worker made of a piece.
struct PieceRead<T> {
    bytes: Vec<u8>,
    /// What there is to say of its rows, and how far they reach; nothing where they cannot be read.
    rows: Option<(T, Reached)>,
}

/// Reads the rows of a piece on a worker; nothing where they cannot be read.
pub(super) type Reading<'r, T> = dyn Fn(&mut Rows<'_>) -> Option<T> + Sync + 'r;

/// Takes what was made of a piece, and the piece's bytes.
pub(super) type Taking<'t, T, E> = dyn FnMut(T, &[u8]) -> std::result::Result<(), E> + 't;

impl Source {
    /// Goes on behind `first`, piece by piece: what `read` makes of a piece's rows goes to `take` in order, with the
    /// piece's bytes. Returns the rows that are left to be read one after another.
    pub(super) fn in_pieces<'s, T: Send, E: From<Error>>(
        &'s self,
        first: Rows<'s>,
        read: &Reading<'_, T>,
        take: &mut Taking<'_, T, E>,
    ) -> std::result::Result<Rows<'s>, E> {
        let mut reached = first.reached();
        let start = Reached { line: 1, longest: Longest::default(), ..reached };
        let (ahead, stream) = match first.into_rest() {
            Ok(rest) => rest,
            Err(rows) => return Ok(rows),
        };
        let (marks, options) = (self.marks(), &self.options);
        let cutter = RefCell::new(Cutter {
            stream,
            quote: marks.quote,
            most: options.max_row,
            ahead,
            spare: Vec::new(),
        });
        // Pieces from the first one on that could not be read.
        let mut unread: Vec<Vec<u8>> = Vec::new();
        let make = || match cutter.borrow_mut().next() {
            Ok(Cut::Piece(bytes)) => Ok(Some(bytes)),
            Ok(Cut::Nothing | Cut::Unknown) => Ok(None),
            Err(error) => Err(E::from(self.input.unreadable(error))),
        };
        let work = |bytes: Vec<u8>| match String::from_utf8(bytes) {
            Err(error) => PieceRead { bytes: error.into_bytes(), rows: None },
            Ok(text) => {
                let mut rows = Rows::of_text(&self.input, text, marks, options).behind(start);
                let rows_made = read(&mut rows).map(|made| (made, rows.reached()));
                PieceRead { bytes: rows.into_text().into_bytes(), rows: rows_made }
            }
        };
        let in_order = |PieceRead { bytes, rows }: PieceRead<T>| {
            let Some((made, of_piece)) = rows.filter(|_| unread.is_empty()) else {
                unread.push(bytes);
                return Ok(false);
            };
            take(made, &bytes)?;
            reached.longest.absorb(of_piece.longest, reached.line - 1);
            reached.line += of_piece.line - 1;
            cutter.borrow_mut().spare.push(bytes);
            Ok(true)
        };
        workers::in_order(make, work, in_order)?;
        let Cutter { stream, ahead, .. } = cutter.into_inner();
        unread.push(ahead);
        let rest = std::io::Cursor::new(unread.concat()).chain(stream);
        let rows = Rows::new(&self.input, Box::new(BufReader::new(rest)), marks, options, 1);
        Ok(rows.behind(reached))
    }
}
