//! What a table's keys came to: how many values were refused and why, and samples for those who ask.

use super::{Reason, Signs};
use std::collections::BTreeMap;
use zeroize::Zeroize;

/// A part of a key and why its values were refused.
pub type Refusal = (usize, Reason);

/// A value that is no key, for the eyes of who owns it.
#[derive(Clone, PartialEq, Eq)]
pub struct Sample {
    /// The row, from 1.
    pub row: u64,
    /// The key's part, from 0.
    pub part: usize,
    /// Why.
    pub reason: Reason,
    /// The value.
    pub text: String,
}

impl std::fmt::Debug for Sample {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sample").field("row", &self.row).field("text", &"[secret]").finish_non_exhaustive()
    }
}

/// The longest enclosed cell of a CSV file, and the one of the most lines: an open quote makes one of many
/// rows.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Longest {
    /// Bytes of the longest.
    pub bytes: u64,
    /// The line where its row starts; 0 where no cell is enclosed.
    pub line: u64,
    /// The most lines in one; 0 where none has more than one.
    pub lines: u64,
    /// The line where its row starts.
    pub lines_at: u64,
}

impl Longest {
    /// A cell of so many bytes, in the row that starts in this line.
    pub(crate) fn saw_bytes(&mut self, bytes: u64, line: u64) {
        if bytes > self.bytes || self.line == 0 {
            (self.bytes, self.line) = (bytes, line);
        }
    }

    /// What was seen of rows behind, in front of which there are so many lines.
    pub(crate) fn absorb(&mut self, behind: Longest, lines: u64) {
        if behind.line > 0 {
            self.saw_bytes(behind.bytes, behind.line + lines);
        }
        self.saw_lines(behind.lines, behind.lines_at + lines);
    }

    /// A cell of so many lines.
    pub(crate) fn saw_lines(&mut self, lines: u64, line: u64) {
        if lines > self.lines {
            (self.lines, self.lines_at) = (lines, line);
        }
    }
}

/// Refused values by part and reason. A row counts once, by the first of its parts that is refused.
#[derive(Default)]
pub struct Tally {
    /// How often.
    pub refused: BTreeMap<Refusal, u64>,
    /// The first refused values, empty ones aside, as many as were asked for; they never leave this machine.
    pub samples: Vec<Sample>,
    /// The first rows' normal forms, as many as were asked for.
    pub forms: Vec<Vec<String>>,
    /// Of a CSV file.
    pub longest: Longest,
    /// Rows read.
    pub rows: u64,
    /// What is odd about the keys.
    pub signs: Signs,
}

impl Tally {
    /// Adds what the rows behind came to, of which nothing is kept to be shown.
    pub(crate) fn absorb(&mut self, mut behind: Tally) {
        for (refusal, rows) in std::mem::take(&mut behind.refused) {
            *self.refused.entry(refusal).or_default() += rows;
        }
        self.rows += behind.rows;
        self.signs.absorb(std::mem::take(&mut behind.signs));
    }

    /// Rows that were refused although no part of their key is empty.
    pub fn unfit(&self) -> u64 {
        self.refused.iter().filter(|((_, reason), _)| *reason != Reason::Empty).map(|(_, rows)| rows).sum()
    }
}

impl Drop for Tally {
    fn drop(&mut self) {
        self.samples.iter_mut().for_each(|sample| sample.text.zeroize());
        self.forms.iter_mut().for_each(Zeroize::zeroize);
    }
}
