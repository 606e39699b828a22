//! What a table's columns hold, for the eyes of its owner: empty cells, guessed types, and an example of each with
//! its letters and digits masked.

use crate::columnar::{self, Texts};
use crate::csv::{self, Options};
use crate::fault::{Error, Result};
use crate::keys::{KeyType, Normalisation, Signs, is_phone};
use crate::opened::{self, Opened};
use arrow_array::Array;
use std::collections::HashSet;
use std::path::PathBuf;

/// Cells of a column whose text is looked at.
const LOOKED_AT: u64 = 1000;
/// The most characters of an example.
const EXAMPLE: usize = 24;

/// One column of a table.
pub struct Column {
    /// Its name.
    pub name: String,
    /// Rows in which it is empty: no text but white space, or a null.
    pub empty: u64,
    /// The key type that nine in ten of its first cells have, as `--key` takes it; `text` if none.
    pub key_type: &'static str,
    /// Its first cell that is not empty, letters as `x` and digits as `9`; nothing where no cell has a text.
    pub example: String,
    /// Words for nothing among its first cells, as they are written.
    pub words: Vec<String>,
    /// Whether no two of its first cells are the same.
    pub distinct: bool,
    /// Why it cannot be part of a key, if it cannot.
    pub no_key: Option<&'static str>,
}

/// The columns of a table, and how many rows it has.
pub struct Columns {
    /// Rows.
    pub rows: u64,
    /// Columns, in the table's order.
    pub columns: Vec<Column>,
}

/// Looks at every cell of a table, of files or at addresses as [`Source`](crate::table::Source) opens them.
pub fn look(paths: &[PathBuf], options: Options) -> Result<Columns> {
    match opened::open(paths, &options)? {
        Opened::Csv(input) => of_csv(&csv::Source::from_input(input, options)?),
        Opened::Columns(source) => of_columns(&source),
    }
}

fn of_csv(source: &csv::Source) -> Result<Columns> {
    let mut seen: Vec<Seen> = source.columns().map(Seen::new).collect();
    let places: Vec<usize> = (0..seen.len()).collect();
    let contents = source.read_columns(&places, |_, cells| {
        seen.iter_mut().zip(cells).for_each(|(column, cell)| column.add(cell));
        Ok::<_, Error>(())
    })?;
    Ok(Columns { rows: contents.rows(), columns: seen.into_iter().map(Seen::end).collect() })
}

fn of_columns(source: &columnar::Source) -> Result<Columns> {
    let schema = source.schema().clone();
    let mut seen: Vec<Seen> = schema.fields().iter().map(|field| Seen::new(field.name())).collect();
    let mut rows = 0;
    for batch in source.batches(None)? {
        let batch = batch.map_err(|error| source.failed(error))?;
        rows += batch.num_rows() as u64;
        for ((column, field), seen) in batch.columns().iter().zip(schema.fields()).zip(&mut seen) {
            let is_key = columnar::is_key(field.data_type())
                || columnar::is_moment(field.data_type())
                || columnar::is_uuid(field);
            match Texts::of(column, field).ok().filter(|_| is_key) {
                Some(texts) => (0..column.len()).for_each(|row| seen.add(texts.get(row))),
                None => {
                    seen.empty += column.logical_null_count() as u64;
                    seen.no_key = Some(if field.data_type().is_floating() {
                        "floating-point numbers"
                    } else {
                        "no text of its own"
                    });
                }
            }
        }
    }
    Ok(Columns { rows, columns: seen.into_iter().map(Seen::end).collect() })
}

/// The types that are guessed, in the order in which they are tried.
const CANDIDATES: [&str; 9] =
    ["email", "uuid", "date", "date:DMY", "date:MDY", "phone", "int", "decimal", "decimal:comma"];

/// What was seen of a column.
struct Seen {
    name: String,
    empty: u64,
    looked_at: u64,
    example: String,
    /// Cells of each type in [`CANDIDATES`].
    of_type: [u64; CANDIDATES.len()],
    /// Cells that are dialled within a country.
    national: u64,
    words: Vec<String>,
    cells: HashSet<String>,
    distinct: bool,
    no_key: Option<&'static str>,
}

impl Seen {
    fn new(name: &str) -> Self {
        Seen {
            name: name.to_owned(),
            empty: 0,
            looked_at: 0,
            example: String::new(),
            of_type: [0; CANDIDATES.len()],
            national: 0,
            words: Vec::new(),
            cells: HashSet::new(),
            distinct: true,
            no_key: None,
        }
    }

    fn add(&mut self, cell: &str) {
        let cell = cell.trim();
        if cell.is_empty() {
            self.empty += 1;
            return;
        }
        if self.looked_at == LOOKED_AT {
            return;
        }
        if Signs::is_word(cell) {
            if !self.words.iter().any(|word| word == cell) {
                self.words.push(cell.to_owned());
            }
            return;
        }
        if self.looked_at == 0 {
            self.example = masked(cell);
        }
        self.looked_at += 1;
        self.distinct &= self.cells.insert(cell.to_owned());
        for (name, cells) in CANDIDATES.iter().zip(&mut self.of_type) {
            let kind = KeyType::named(name);
            let mut out = String::new();
            let is = |kind: KeyType| kind.normalise(Normalisation::default(), cell, &mut out).is_ok();
            *cells += u64::from(kind.is_some_and(is));
        }
        self.national += u64::from(is_phone(cell));
    }

    fn end(self) -> Column {
        let most = |cells: u64| self.looked_at > 0 && cells * 10 >= self.looked_at * 9;
        let named = |name: &str| {
            let at = CANDIDATES.iter().position(|one| *one == name);
            at.is_some_and(|at| most(self.of_type[at]))
        };
        let key_type = match CANDIDATES.iter().find(|name| named(name)) {
            // 01/02/2024 is a date in both.
            Some(&"date:DMY") if named("date:MDY") => "date:DMY|MDY",
            Some(&"int" | &"decimal" | &"decimal:comma") | None if most(self.national) => "phone:REGION",
            Some(name) => name,
            None => "text",
        };
        Column {
            key_type: if self.no_key.is_some() { "" } else { key_type },
            distinct: self.distinct && self.looked_at > 1,
            name: self.name,
            empty: self.empty,
            example: self.example,
            words: self.words,
            no_key: self.no_key,
        }
    }
}

/// A cell with letters as `x` or `X` and digits as `9`: how it is written, and not what it says.
fn masked(cell: &str) -> String {
    let mask = |c: char| match c {
        c if c.is_numeric() => '9',
        c if c.is_uppercase() => 'X',
        c if c.is_alphabetic() => 'x',
        c if c.is_ascii_punctuation() || c == ' ' => c,
        _ => '?',
    };
    let mut out: String = cell.chars().take(EXAMPLE).map(mask).collect();
    if cell.chars().nth(EXAMPLE).is_some() {
        out.push('…');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(cells: &[&str]) -> Column {
        let mut seen = Seen::new("c");
        cells.iter().for_each(|cell| seen.add(cell));
        seen.end()
    }

    #[test]
    fn types_are_guessed_and_examples_say_nothing() {
        let guessed = |cells: &[&str]| of(cells).key_type;
        assert_eq!(guessed(&["ann@x.org", "b@y.example"]), "email");
        assert_eq!(guessed(&["2024-01-31", "2024-02-01"]), "date");
        assert_eq!(guessed(&["31/01/2024", "01/02/2024"]), "date:DMY");
        assert_eq!(guessed(&["01/02/2024", "03/04/2024"]), "date:DMY|MDY");
        assert_eq!(guessed(&["+31612345678"]), "phone");
        assert_eq!(guessed(&["0612345678", "06-12345679"]), "phone:REGION");
        assert_eq!(guessed(&["17", "18"]), "int");
        assert_eq!(guessed(&["1.5", "18.25"]), "decimal");
        assert_eq!(guessed(&["f81d4fae-7dec-11d0-a765-00a0c91e6bf6"]), "uuid");
        assert_eq!(guessed(&["Ann", "Bob"]), "text");
        assert_eq!(guessed(&[]), "text");
        let column = of(&["", "Ann.L-7@x.org", "NULL", " ", "NULL"]);
        assert_eq!((column.empty, &*column.example), (2, "Xxx.X-9@x.xxx"));
        assert_eq!((column.words, column.distinct), (vec!["NULL".to_owned()], false));
        assert!(of(&["a", "b"]).distinct && !of(&["a", "a"]).distinct);
        assert_eq!(masked("é中 \u{202e}7"), "xx ?9");
        assert_eq!(masked(&"a".repeat(30)), format!("{}…", "x".repeat(24)));
    }
}
