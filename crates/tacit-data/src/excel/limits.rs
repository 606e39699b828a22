//! What a sheet of a workbook has room for.

use std::path::Path;

/// Rows of a sheet, the columns' names among them.
pub(crate) const SHEET_ROWS: u64 = 1_048_576;
/// Columns of a sheet.
pub(crate) const SHEET_COLUMNS: usize = 16_384;
/// Characters of a cell, as Excel counts them: in UTF-16.
pub(crate) const MOST_TEXT: usize = 32_767;

/// What a cell's text must satisfy.
pub(crate) const SHORT_TEXT: &str = "a text of at most 32,767 characters is expected, as cells of Excel are";

/// Whether a text is too long for a cell.
pub(crate) fn is_too_long(text: &str) -> bool {
    text.len() > MOST_TEXT && text.encode_utf16().count() > MOST_TEXT
}

/// Whether an output of this name is a workbook.
pub(crate) fn is_workbook(target: &Path) -> bool {
    target.extension().is_some_and(|end| end.eq_ignore_ascii_case("xlsx"))
}
