//! What the first line of a CSV file seems to be, by the rows that follow it.

use super::rows::{Marks, Rows};
use super::{Delimiter, Header, Source, stream};
use crate::fault::Result;
use crate::first_line::{self, COMPARED_ROWS, Shape, Shapes};
use crate::input::Input;

/// Bytes at the start of a file in which a title is looked for, and rows.
const TITLE_BYTES: usize = 1 << 16;
const TITLE_ROWS: usize = 12;

impl Source {
    /// Whether the first line, which is read as the columns' names, may be data: its cells are not shown then. By the
    /// first rows alone; one that cannot be read ends them.
    pub fn is_doubtful(&self) -> bool {
        if self.options.header == Header::None {
            return false;
        }
        let mut seen = vec![Shapes::default(); self.header.len()];
        if let Ok(mut rows) = self.data() {
            for _ in 0..COMPARED_ROWS {
                if !matches!(rows.next(), Ok(true)) {
                    break;
                }
                seen.iter_mut().zip(rows.fields()).for_each(|(shapes, cell)| shapes.add(cell));
            }
        }
        let below: Vec<Option<Shape>> = seen.iter().map(Shapes::most).collect();
        first_line::is_doubtful(&self.columns().collect::<Vec<_>>(), &below)
    }

    /// How many lines of the file are in front of what seems to be the header, if the first line seems to be a title;
    /// those that are skipped already and one that names the separator among them.
    pub(crate) fn title_lines(&self) -> Result<Option<u64>> {
        if self.options.header == Header::None {
            return Ok(None);
        }
        let (mut text, start) = stream::open(&self.input, &self.options)?;
        let ahead = text.ahead();
        let end = match ahead.len() > TITLE_BYTES {
            true => memchr::memrchr(b'\n', &ahead[..TITLE_BYTES]).map_or(0, |end| end + 1),
            false => ahead.len(),
        };
        let text = String::from_utf8_lossy(&ahead[..end]);
        let delimiters = match (self.options.delimiter, start.delimiter) {
            (Delimiter::Byte(byte), _) | (Delimiter::Auto, Some(byte)) => vec![byte],
            (Delimiter::Auto, None) => vec![b',', b';', b'\t', b'|'],
        };
        let found = delimiters.into_iter().filter_map(|delimiter| {
            let marks = Marks::of(&self.options, delimiter);
            let mut rows = Rows::of_text(&self.input, text.clone().into_owned(), marks, &self.options);
            let (mut cells, mut lines) = (Vec::new(), Vec::new());
            while cells.len() < TITLE_ROWS && matches!(rows.next(), Ok(true)) {
                cells.push(rows.fields().map(str::to_owned).collect::<Vec<_>>());
                lines.push(rows.line());
                rows.forget_width();
            }
            let at = first_line::behind_title(&cells)?;
            Some((cells[at].len(), start.line + lines[at] - 2))
        });
        Ok(found.max_by_key(|(fields, _)| *fields).map(|(_, lines)| lines))
    }

    /// What it was made of.
    pub(crate) fn into_input(self) -> Input {
        self.input
    }
}
