//! The lines of a table's rows, where the rows were kept and the lines were not.

/// Rows whose lines are kept at most; behind them rows go by their numbers.
const MOST: usize = 1 << 20;

/// On which line each row starts: most often one behind the row before it.
#[derive(Default)]
pub(crate) struct RowLines {
    rows: u64,
    next: u64,
    /// The number of a row that starts elsewhere, and its line.
    jumps: Vec<(u64, u64)>,
    /// The first row whose line is not known.
    unknown: Option<u64>,
}

impl RowLines {
    /// Adds the line of the next row.
    pub(crate) fn add(&mut self, line: u64) {
        self.rows += 1;
        if self.unknown.is_none() && line != self.next {
            match self.jumps.len() < MOST {
                true => self.jumps.push((self.rows, line)),
                false => self.unknown = Some(self.rows),
            }
        }
        self.next = line + 1;
    }

    /// Where the row of this number starts, counted from 1.
    pub(crate) fn of(&self, row: u64) -> Option<u64> {
        let is_known = row <= self.rows && self.unknown.is_none_or(|unknown| row < unknown);
        let at = self.jumps.partition_point(|(from, _)| *from <= row).checked_sub(1)?;
        let (from, line) = self.jumps[at];
        is_known.then(|| line + (row - from))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_several_lines_move_those_behind_them() {
        let mut lines = RowLines::default();
        for line in [2, 3, 6, 7, 10] {
            lines.add(line);
        }
        let found: Vec<_> = (0..7).map(|row| lines.of(row)).collect();
        assert_eq!(found, [None, Some(2), Some(3), Some(6), Some(7), Some(10), None]);
    }

    #[test]
    fn behind_too_many_jumps_no_line_is_known() {
        let mut lines = RowLines::default();
        for row in 0..MOST as u64 + 5 {
            lines.add(2 + 2 * row);
        }
        let last = MOST as u64;
        assert_eq!((lines.of(last), lines.of(last + 1)), (Some(2 * last), None));
    }
}
