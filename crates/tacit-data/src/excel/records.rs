//! The records of a sheet in binary (`.xlsb`, \[MS-XLSB\]), as far as it takes to see what their reader passes over
//! without a word: it ends at a row that no sheet has, and knows some kinds of cells only.

use super::limits::SHEET_ROWS;

/// The kinds of records that begin and end a sheet's cells, and that begin a row.
const BEGIN_CELLS: u16 = 145;
const END_CELLS: u16 = 146;
const BEGIN_ROW: u16 = 0;
/// Kinds of cells that would be read as empty: a formula's error, the short forms but for blanks, and text with
/// formats of its own.
const PASSED_OVER: [u16; 8] = [11, 13, 14, 15, 16, 17, 18, 62];

/// Records that come some bytes at a time.
#[derive(Default)]
pub(super) struct Records {
    /// The next record's kind and length, as far as they came.
    head: Vec<u8>,
    kind: u16,
    length: usize,
    /// Bytes of the record that are to come, and the first of those that came.
    rest: usize,
    body: Vec<u8>,
    has_cells: bool,
    is_short: bool,
}

impl Records {
    /// The next bytes.
    pub(super) fn take(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if self.rest > 0 {
                let (now, later) = bytes.split_at(self.rest.min(bytes.len()));
                self.body.extend_from_slice(&now[..now.len().min(4 - self.body.len())]);
                self.rest -= now.len();
                bytes = later;
            } else {
                self.head.push(bytes[0]);
                bytes = &bytes[1..];
                let Some((kind, length)) = parsed(&self.head) else { continue };
                (self.kind, self.length, self.rest) = (kind, length, length);
                self.head.clear();
                self.body.clear();
            }
            if self.rest == 0 && self.head.is_empty() {
                self.see();
            }
        }
    }

    /// Whether its reader leaves something out, or takes it from elsewhere.
    pub(super) fn is_read_short(&self) -> bool {
        self.is_short
    }

    /// Looks at a whole record.
    fn see(&mut self) {
        match self.kind {
            BEGIN_CELLS => self.has_cells = true,
            END_CELLS => self.has_cells = false,
            BEGIN_ROW if self.has_cells => {
                let row = <[u8; 4]>::try_from(self.body.as_slice()).map(u32::from_le_bytes);
                self.is_short |= row.map_or(true, |row| u64::from(row) >= SHEET_ROWS);
            }
            kind if self.has_cells => {
                self.is_short |= PASSED_OVER.contains(&kind) || self.length < least(kind);
            }
            _ => {}
        }
    }
}

/// Bytes that a cell of this kind has, at least: for what it lacks its reader takes another's.
fn least(kind: u16) -> usize {
    match kind {
        3 | 4 | 10 => 9,
        2 | 6..=8 => 12,
        5 | 9 => 16,
        _ => 0,
    }
}

/// A record's kind, of one or two bytes, and its length, of one to four, if all of them are there.
fn parsed(head: &[u8]) -> Option<(u16, usize)> {
    let low = |byte: u8| u16::from(byte & 0x7f);
    let (kind, length) = match head {
        [one, length @ ..] if one & 0x80 == 0 => (low(*one), length),
        [one, two, length @ ..] => (low(*one) | low(*two) << 7, length),
        _ => return None,
    };
    let ends = length.len() == 4 || length.last().is_some_and(|last| last & 0x80 == 0);
    let add = |sum: usize, (at, byte): (usize, &u8)| sum + (usize::from(byte & 0x7f) << (7 * at));
    ends.then(|| (kind, length.iter().enumerate().fold(0, add)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: u16, body: &[u8]) -> Vec<u8> {
        let mut out = match kind {
            0..128 => vec![kind as u8],
            _ => vec![kind as u8 | 0x80, (kind >> 7) as u8],
        };
        match body.len() {
            0..128 => out.push(body.len() as u8),
            length => out.extend([length as u8 | 0x80, (length >> 7) as u8]),
        }
        out.extend_from_slice(body);
        out
    }

    #[test]
    fn rows_and_cells_that_would_be_passed_over_are_seen() {
        let row = |number: u32| record(BEGIN_ROW, &[&number.to_le_bytes()[..], &[9; 13]].concat());
        let short = |parts: &[Vec<u8>]| {
            let bytes = parts.concat();
            let found = [1, 2, 3, bytes.len()].map(|size| {
                let mut records = Records::default();
                bytes.chunks(size).for_each(|piece| records.take(piece));
                records.is_read_short()
            });
            assert!(found.iter().all(|one| *one == found[0]), "{found:?}");
            found[0]
        };
        let (begin, end, cell) = (record(BEGIN_CELLS, &[]), record(END_CELLS, &[]), record(7, &[0; 12]));
        let long = record(6, &[62; 300]);
        let all =
            [begin.clone(), row(0), cell.clone(), long.clone(), row(SHEET_ROWS as u32 - 1), end.clone()];
        assert!(!short(&all));
        assert!(short(&[begin.clone(), row(0), cell.clone(), row(SHEET_ROWS as u32)]));
        assert!(short(&[begin.clone(), row(0), long, row(u32::MAX), cell, end.clone()]));
        for kind in PASSED_OVER {
            assert!(short(&[begin.clone(), row(0), record(kind, &[0; 9]), end.clone()]), "{kind}");
            // Elsewhere these kinds are others.
            assert!(!short(&[record(kind, &[0; 9]), begin.clone(), end.clone(), record(kind, &[0; 9])]));
        }
        assert!(short(&[begin.clone(), row(0), record(5, &[0; 15]), end.clone()]));
        assert!(short(&[begin.clone(), record(BEGIN_ROW, &[0; 3]), end.clone()]));
        assert!(!short(&[begin, record(1, &[0; 8]), record(12, &[0; 4]), end]));
    }
}
