//! What a table's columns hold, for the eyes of its owner: empty cells, guessed types, and an example of each with
//! its letters and digits masked.

use crate::columnar::{self, Texts};
use crate::csv::{self, Delimiter, Header, Options};
use crate::encoding::Encoding;
use crate::fault::{Error, Result};
use crate::keys::{KeyType, Normalisation, Signs, is_phone};
use crate::opened::{self, Opened};
use crate::place;
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
    /// Whether its first cells are whole numbers that rise from row to row, as those that a database counts.
    pub rises: bool,
    /// Why it cannot be part of a key, if it cannot.
    pub no_key: Option<&'static str>,
    /// Whether each of its first cells has the same separator.
    is_parted: bool,
}

/// The columns of a table, and how many rows it has.
pub struct Columns {
    /// Rows.
    pub rows: u64,
    /// Columns, in the table's order.
    pub columns: Vec<Column>,
    /// What the owner probably wants to change before a run.
    pub oddities: Vec<Oddity>,
    /// The encoding that the text was read in, where nobody named it and it is not UTF-8: a guess.
    pub guessed: Option<Encoding>,
}

/// What looks wrong with a table as a whole.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Oddity {
    /// Its first line has a title and not the columns' names.
    Title,
    /// Its first line has data and not the columns' names.
    NoHeader,
    /// Several columns have this name.
    Twice(String),
    /// No rows follow the first line.
    NoRows,
}

/// Looks at every cell of a table, of files or at addresses as [`Source`](crate::table::Source) opens them. Text that
/// is not UTF-8 is read in the encoding that it seems to have, if `options` name none and the table can be read twice.
pub fn look(paths: &[PathBuf], options: Options) -> Result<Columns> {
    let error = match look_as(paths, options) {
        Err(error) if options.encoding.is_none() => error,
        other => return other,
    };
    let like = match &error {
        Error::InvalidUtf8 { looks_like, .. } => *looks_like,
        Error::Encoded { encoding, .. } => Some(*encoding),
        _ => None,
    };
    let Some(guessed) = like.and_then(Encoding::named).filter(|_| can_be_read_twice(paths)) else {
        return Err(error);
    };
    match look_as(paths, Options { encoding: Some(guessed), ..options }) {
        Ok(found) => Ok(Columns { guessed: Some(guessed), ..found }),
        // The guess was wrong.
        Err(Error::NotInEncoding { .. }) => Err(error),
        other => other,
    }
}

/// Whether these names lead to files and addresses, of which a pipe is neither.
fn can_be_read_twice(paths: &[PathBuf]) -> bool {
    let is_one = |path: &PathBuf| place::is_remote(path) || place::sheet(path).0.is_file();
    opened::listed(paths).is_ok_and(|files| files.iter().all(is_one))
}

fn look_as(paths: &[PathBuf], options: Options) -> Result<Columns> {
    let mut found = match opened::open(paths, &options)? {
        Opened::Csv(input) => {
            let mut found = of_csv(&csv::Source::from_input(input, options)?)?;
            // A line without a separator before lines with one; commas would have been found there.
            let parted = matches!(&*found.columns, [only] if only.is_parted);
            if parted && options.delimiter == Delimiter::Auto && options.header == Header::Names {
                found.oddities.push(Oddity::Title);
            }
            found
        }
        Opened::Columns(source) => of_columns(&source)?,
    };
    if options.header == Header::Names {
        odd_names(&mut found);
    }
    found.oddities.extend((found.rows == 0).then_some(Oddity::NoRows));
    Ok(found)
}

/// Adds what looks wrong with the names of a table's columns. Those of a first line with data are not named.
fn odd_names(table: &mut Columns) {
    let names: Vec<&str> = table.columns.iter().map(|column| column.name.trim()).collect();
    let named: Vec<&str> = names.iter().filter(|name| !name.is_empty()).copied().collect();
    if table.oddities.contains(&Oddity::Title) {
        return;
    }
    let mut found = Vec::new();
    if names.len() > 1 && named.len() == 1 {
        found.push(Oddity::Title);
    } else if is_data(&named) {
        found.push(Oddity::NoHeader);
    } else {
        let many = |name: &str| named.iter().filter(|other| **other == name).count() > 1;
        let is_first = |at: usize| !named[..at].contains(&named[at]);
        let twice = named.iter().enumerate().filter(|(at, name)| many(name) && is_first(*at));
        found.extend(twice.map(|(_, name)| Oddity::Twice((*name).to_owned())));
    }
    table.oddities.extend(found);
}

/// Whether these are cells, and not names: one is an address, a date or the like, or all are numbers.
fn is_data(names: &[&str]) -> bool {
    let is = |name: &str, kinds: &[&str]| {
        let mut out = String::new();
        let mut is = |kind: KeyType| kind.normalise(Normalisation::default(), name, &mut out).is_ok();
        kinds.iter().filter_map(|kind| KeyType::named(kind)).any(&mut is)
    };
    let numbers = ["int", "decimal", "decimal:comma"];
    names.iter().any(|name| is(name, &["email", "uuid", "phone"]))
        || (names.iter().any(|name| is(name, &["date", "date:DMY", "date:MDY"]))
            && names.iter().any(|name| is(name, &numbers)))
        || (!names.is_empty() && names.iter().all(|name| is(name, &numbers)))
}

fn of_csv(source: &csv::Source) -> Result<Columns> {
    let mut seen: Vec<Seen> = source.columns().map(Seen::new).collect();
    let places: Vec<usize> = (0..seen.len()).collect();
    let contents = source.read_columns(&places, |_, cells| {
        seen.iter_mut().zip(cells).for_each(|(column, cell)| column.add(cell));
        Ok::<_, Error>(())
    })?;
    Ok(columns(contents.rows(), seen))
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
    Ok(columns(rows, seen))
}

fn columns(rows: u64, seen: Vec<Seen>) -> Columns {
    let columns = seen.into_iter().map(Seen::end).collect();
    Columns { rows, columns, oddities: Vec::new(), guessed: None }
}

/// The types that are guessed, in the order in which they are tried.
const CANDIDATES: [&str; 9] =
    ["email", "uuid", "date", "date:DMY", "date:MDY", "phone", "int", "decimal", "decimal:comma"];

/// What separates fields, other than commas.
const SEPARATORS: [char; 3] = [';', '|', '\t'];

/// Whole numbers that hardly rise by chance.
const RISING: u64 = 5;

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
    /// The whole number in the last cell.
    last: Option<u64>,
    /// Whether the cells are whole numbers, each greater than the one before; and whether by one.
    rises: bool,
    by_one: bool,
    /// Cells that contain each of [`SEPARATORS`].
    parted: [u64; SEPARATORS.len()],
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
            last: None,
            rises: true,
            by_one: true,
            parted: [0; SEPARATORS.len()],
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
        let number = Some(cell).filter(|cell| cell.bytes().all(|byte| byte.is_ascii_digit()));
        let number = number.and_then(|digits| digits.parse().ok());
        self.rises &= number.is_some() && (self.last.is_none() || number > self.last);
        self.by_one &= self.last.is_none() || number == self.last.and_then(|last: u64| last.checked_add(1));
        self.last = number;
        for (separator, cells) in SEPARATORS.iter().zip(&mut self.parted) {
            *cells += u64::from(cell.contains(*separator));
        }
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
        // A few numbers may rise by chance, and phone numbers may be sorted.
        let rises = match key_type {
            "int" => self.rises && (self.by_one || self.looked_at >= RISING),
            "phone:REGION" => self.rises && self.by_one,
            _ => false,
        };
        Column {
            rises: rises && self.looked_at > 1,
            is_parted: self.looked_at > 1 && self.parted.contains(&self.looked_at),
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
pub fn masked(cell: &str) -> String {
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
    fn numbers_that_count_rows_are_known() {
        let rises = |cells: &[&str]| of(cells).rises;
        assert!(rises(&["1", "2"]) && rises(&["7", "", "8", "9"]) && rises(&["10", "12", "13", "20", "21"]));
        assert!(rises(&["610000001", "610000002"]), "{}", of(&["610000001", "610000002"]).key_type);
        assert!(!rises(&["1", "3"]) && !rises(&["5", "3", "4", "1", "2"]) && !rises(&["1"]) && !rises(&[]));
        assert!(!rises(&["1", "2", "2"]) && !rises(&["1", "2", "x"]) && !rises(&["1.5", "2.5"]));
        let sorted = ["0612345671", "0612345672", "0612345679", "0622345679", "0632345679"];
        assert!(!rises(&sorted));
    }

    #[test]
    fn a_first_line_without_names_is_known() {
        let of = |names: &[&str]| is_data(names);
        assert!(of(&["ann@x.org", "Ann"]) && of(&["12", "13.5"]) && of(&["Ann", "+31612345678"]));
        assert!(of(&["Ann", "1980-01-31", "7"]));
        for names in [&["mail", "name"][..], &["region", "2023", "2024"], &["town", "2024-01-31"], &[]] {
            assert!(!of(names), "{names:?}");
        }
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
