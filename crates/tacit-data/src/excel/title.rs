//! A title above the header of a sheet, which leaves columns without names.

use super::part::called;
use crate::fault::{Error, name};
use crate::first_line;
use std::path::Path;

/// Rows among which a header is looked for.
const ROWS: usize = 12;

/// The first rows of a part of a sheet that have cells.
#[derive(Default)]
pub(super) struct Top {
    rows: Vec<(u32, Vec<String>)>,
}

impl Top {
    /// Takes a cell of the `column` among `width`; rows come in order.
    pub(super) fn take(&mut self, row: u32, column: usize, width: usize, text: impl FnOnce() -> String) {
        if self.rows.last().is_none_or(|(last, _)| *last != row) {
            if self.rows.len() == ROWS {
                return;
            }
            self.rows.push((row, vec![String::new(); width]));
        }
        if let Some((_, cells)) = self.rows.last_mut() {
            cells[column] = text();
        }
    }

    /// The row of the header, if the rows above it seem to be a title, and the column of its first cell.
    pub(super) fn header(&self) -> Option<(u32, u32)> {
        let cells: Vec<Vec<String>> = self.rows.iter().map(|(_, cells)| cells.clone()).collect();
        let (row, cells) = self.rows.get(first_line::behind_title(&cells)?)?;
        let first = cells.iter().position(|cell| !cell.trim().is_empty())?;
        Some((*row, first as u32))
    }
}

/// That the table of a sheet begins below a title: at the corner `from`, with `skipped` rows of the part above it; `to`
/// is its last cell.
pub(super) fn above(path: &Path, sheet: &str, skipped: u64, (from, to): ((u32, u32), (u32, u32))) -> Error {
    let [first, last] = [from, to].map(called);
    let book = path.to_owned();
    let part = format!("{}#{}!{first}:{last}", name(path), tacit_crypto::text::shown(sheet));
    Error::Title { path: book, row: u64::from(from.0) + 1, skipped, part }
}
