//! The part of a workbook that is the table, and what its cells are called.

use std::ops::RangeInclusive;

/// Which part of a workbook is the table: `Sheet`, `Sheet!A1:D9`, or `A1:D9` of the only sheet.
pub(super) struct Sheets<'a> {
    pub(super) sheet: Option<&'a str>,
    pub(super) rows: RangeInclusive<u32>,
    pub(super) columns: RangeInclusive<u32>,
}

impl<'a> Sheets<'a> {
    /// Reads what is behind the `#` of a name.
    pub(super) fn of(text: Option<&'a str>) -> std::result::Result<Self, &'static str> {
        let all = |sheet| Sheets { sheet, rows: 0..=u32::MAX, columns: 0..=u32::MAX };
        let Some(text) = text.filter(|text| !text.is_empty()) else { return Ok(all(None)) };
        let (sheet, range) = match text.rsplit_once('!') {
            Some((sheet, range)) => (Some(sheet), Some(range)),
            None if area(text).is_some() => (None, Some(text)),
            None => (Some(text), None),
        };
        let sheet = sheet.map(|sheet| {
            sheet.strip_prefix('\'').and_then(|sheet| sheet.strip_suffix('\'')).unwrap_or(sheet)
        });
        let Some(range) = range else { return Ok(all(sheet)) };
        let (rows, columns) = area(range).ok_or("write a range of cells as in Sheet1!A1:D9")?;
        Ok(Sheets { sheet, rows, columns })
    }

    /// Leaves its first rows out, as lines of a text are.
    pub(super) fn skip(&mut self, rows: u64) {
        let (start, end) = (*self.rows.start(), *self.rows.end());
        self.rows = start.saturating_add(u32::try_from(rows).unwrap_or(u32::MAX))..=end;
    }

    pub(super) fn holds(&self, (row, column): (u32, u32)) -> bool {
        self.rows.contains(&row) && self.columns.contains(&column)
    }
}

/// The rows and columns of `A1:D9`, of whole columns as `A:D`, or of whole rows as `1:9`.
fn area(text: &str) -> Option<(RangeInclusive<u32>, RangeInclusive<u32>)> {
    let (from, to) = text.split_once(':')?;
    let ((from_row, from_column), (to_row, to_column)) = (corner(from)?, corner(to)?);
    if from_row.is_some() != to_row.is_some() || from_column.is_some() != to_column.is_some() {
        return None;
    }
    let rows = from_row.unwrap_or(0)..=to_row.unwrap_or(u32::MAX);
    let columns = from_column.unwrap_or(0)..=to_column.unwrap_or(u32::MAX);
    (!rows.is_empty() && !columns.is_empty()).then_some((rows, columns))
}

/// The row and the column of `A1`, from 0; `$` signs say nothing here.
fn corner(text: &str) -> Option<(Option<u32>, Option<u32>)> {
    let text = text.replace('$', "");
    let split = text.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (letters, digits) = text.split_at(split);
    if letters.len() > 3 || digits.len() > 7 || text.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit())
    {
        return None;
    }
    let digit = |sum: u32, letter: u8| sum * 26 + u32::from(letter.to_ascii_uppercase() - b'A') + 1;
    let column = letters.bytes().fold(0, digit).checked_sub(1);
    let row = match digits {
        "" => None,
        digits => Some(digits.parse::<u32>().ok()?.checked_sub(1)?),
    };
    Some((row, column))
}

/// What a cell is called in the sheet.
pub(super) fn called((row, column): (u32, u32)) -> String {
    let (mut letters, mut rest) = (Vec::new(), column + 1);
    while rest > 0 {
        letters.insert(0, b'A' + ((rest - 1) % 26) as u8);
        rest = (rest - 1) / 26;
    }
    format!("{}{}", String::from_utf8_lossy(&letters), row + 1)
}
