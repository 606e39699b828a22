//! The first rows of a result.

use serde_json::{Value, json};
use std::io::Read;
use std::path::Path;
use tacit::data::csv::{Options, Source};
use tacit::{Error, Result};

/// Rows, columns, and characters of a cell that are shown.
const MOST_ROWS_SHOWN: usize = 20;
const MOST_WIDE: usize = 60;
const LONGEST_CELL: usize = 200;
/// Bytes that are read for them.
const MOST_READ: u64 = 2 << 20;

/// The names of the columns and the first rows of the CSV file at `path`, and whether there are more.
pub(crate) fn first_rows(path: &Path) -> Result<Value> {
    let delimiter = Source::open_table(path, Options::default())?.delimiter();
    let fault = |error: std::io::Error| Error::file(path, "cannot be read", error);
    let file = std::fs::File::open(path).map_err(fault)?;
    let is_whole = file.metadata().map_err(fault)?.len() <= MOST_READ;
    let mut reader = csv::ReaderBuilder::new()
        .delimiter(delimiter)
        .has_headers(false)
        .flexible(true)
        .from_reader(file.take(MOST_READ));
    let mut rows: Vec<Vec<String>> = Vec::new();
    let mut more = !is_whole;
    for record in reader.byte_records() {
        // A row that the last byte cuts is not shown.
        let Ok(record) = record else { break };
        if rows.len() > MOST_ROWS_SHOWN {
            more = true;
            break;
        }
        rows.push(record.iter().take(MOST_WIDE).map(cell).collect());
    }
    let columns = if rows.is_empty() { Vec::new() } else { rows.remove(0) };
    Ok(json!({ "columns": columns, "rows": rows, "more": more }))
}

fn cell(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    match text.char_indices().nth(LONGEST_CELL) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_cut_to_what_a_page_shows() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("a.csv");
        let long = "y".repeat(1000);
        std::fs::write(&path, format!("mail;\"a; b\"\n\"x\"\"\n<b>\";{long}\n{}", "1;2\n".repeat(100)))
            .unwrap();
        let shown = first_rows(&path).unwrap();
        assert_eq!(shown["columns"], json!(["mail", "a; b"]));
        assert_eq!(shown["rows"][0][0], "x\"\n<b>");
        assert_eq!(shown["rows"][0][1].as_str().unwrap().chars().count(), LONGEST_CELL + 1);
        assert_eq!(
            (shown["rows"].as_array().unwrap().len(), &shown["more"]),
            (MOST_ROWS_SHOWN, &json!(true))
        );
        std::fs::write(&path, "mail\n").unwrap();
        assert_eq!(first_rows(&path).unwrap(), json!({ "columns": ["mail"], "rows": [], "more": false }));
        assert!(first_rows(&home.path().join("none.csv")).is_err());
    }
}
