//! What a table's columns hold, for the eyes of its owner: empty cells, guessed types, and an example of each with
//! its letters and digits masked.

use crate::columnar::{self, Format, Texts};
use crate::csv::{self, Header, Options};
use crate::encoding::{self, Encoding, Found};
use crate::fault::{Error, Result};
use crate::first_line::{self, COMPARED_ROWS, Shape, Shapes};
use crate::input::Input;
use crate::keys::{KeyType, Normalisation, Signs, is_phone};
use crate::kind;
use crate::opened::{self, Opened};
use crate::place;
use arrow_array::Array;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

/// Cells of a column whose text is looked at.
const LOOKED_AT: u64 = 1000;
/// The most characters of an example.
const EXAMPLE: usize = 24;

/// One column of a table.
pub struct Column {
    /// Its name, or its number where the name may not be shown.
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
}

/// The columns of a table, and how many rows it has.
pub struct Columns {
    /// Rows.
    pub rows: u64,
    /// Columns, in the table's order.
    pub columns: Vec<Column>,
    /// Where the columns' names are from. Where that is in doubt, columns have numbers in place of names.
    pub names: Names,
    /// What the owner probably wants to change before a run.
    pub oddities: Vec<Oddity>,
    /// How the table was read: as the caller said, but for what was guessed.
    pub options: Options,
    /// The encoding that the text was read in, where nobody named it and it is not UTF-8: a guess.
    pub guessed: Option<Encoding>,
}

/// Where the names of columns are from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Names {
    /// The table has them: in its first line, or as its format does.
    Given,
    /// The first line, or names that the format has, may be data: columns are called `column 1`, `column 2` and so on.
    Doubtful,
    /// Columns are named by their numbers.
    Numbers,
}

impl Names {
    /// The word for it, as `tacit check --json` has it.
    pub const fn word(self) -> &'static str {
        match self {
            Names::Given => "names",
            Names::Doubtful => "doubtful",
            Names::Numbers => "numbers",
        }
    }
}

/// What is made of a first line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FirstLine {
    /// It is judged whether it has names, data, or a title.
    Judged,
    /// It has the columns' names: somebody said so.
    Header,
}

/// What looks wrong with a table as a whole.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Oddity {
    /// A title precedes the header: so many lines were skipped, those that the caller skips among them.
    Title(u64),
    /// The first line may be data and not the columns' names, which a setting can say.
    NoHeader,
    /// A name of a column looks like data, in a format that always has names.
    DataInName,
    /// Several columns have this name.
    Twice(String),
    /// No rows follow the first line.
    NoRows,
}

/// Looks at every cell of a table, of files or at addresses as [`Source`](crate::table::Source) opens them. Text that
/// is not UTF-8 is read in the encoding that it seems to have, if `options` name none and the table can be read twice;
/// lines above the header are skipped, unless `first` says that it is the first line.
pub fn look(paths: &[PathBuf], options: Options, first: FirstLine) -> Result<Columns> {
    let mut error = match look_as(paths, options, first) {
        Err(error) if options.encoding.is_none() => error,
        other => return other,
    };
    let like = match &error {
        Error::InvalidUtf8 { looks_like, .. } => *looks_like,
        Error::Encoded { encoding, .. } => Some(*encoding),
        _ => return Err(error),
    };
    if !can_be_read_twice(paths) {
        return Err(error);
    }
    if let Error::InvalidUtf8 { path, line, .. } = &error {
        one_encoding(paths, path, *line)?;
    }
    if let Some(guessed) = like.and_then(Encoding::named) {
        match look_as(paths, Options { encoding: Some(guessed), ..options }, first) {
            Ok(found) => return Ok(Columns { guessed: Some(guessed), ..found }),
            // The guess was wrong.
            Err(Error::NotInEncoding { .. } | Error::Marked { .. }) => {}
            other => return other,
        }
    }
    // What was tried is no advice.
    match &mut error {
        Error::InvalidUtf8 { looks_like, .. } => *looks_like = None,
        Error::Encoded { path, .. } => {
            let path = std::mem::take(path);
            error = Error::InvalidUtf8 { path, line: 1, column: 1, looks_like: None };
        }
        _ => {}
    }
    Err(error)
}

/// Refuses files that no single encoding reads: of several encodings, or of UTF-8 but for a few bytes, the first of
/// which `line` of `bad` has.
fn one_encoding(paths: &[PathBuf], bad: &Path, line: u64) -> Result<()> {
    let mut first: Option<(PathBuf, Found, bool)> = None;
    for path in opened::listed(paths)? {
        let input = Input::open(&path)?;
        let start = input.start()?;
        if Format::of(&start).is_some() || start.starts_with(b"PK") {
            continue;
        }
        let marked = encoding::of(&path, &start, None)?.map(Encoding::name).or_else(|| kind::wide(&start));
        let found = match marked {
            Some(encoding) => Found::Other(Some(encoding)),
            None => Found::of(input.reader()?).map_err(|error| input.unreadable(error))?,
        };
        match (found, first.take()) {
            (Found::MostlyUtf8, _) if path == bad => return Err(Error::MostlyUtf8 { path, line }),
            (Found::Any, before) => first = before,
            // Two guesses may be of one encoding.
            (Found::Other(_), Some(before @ (_, Found::Other(_), true))) if marked.is_none() => {
                first = Some(before)
            }
            (found, Some((first, other, _))) if found != other => {
                let (first_encoding, encoding) = (other.name(), found.name());
                return Err(Error::Encodings { first, first_encoding, path, encoding });
            }
            (found, _) => first = Some((path, found, marked.is_none())),
        }
    }
    Ok(())
}

/// Whether these names lead to files and addresses, of which a pipe is neither.
fn can_be_read_twice(paths: &[PathBuf]) -> bool {
    let is_one = |path: &PathBuf| place::is_remote(path) || place::sheet(path).0.is_file();
    opened::listed(paths).is_ok_and(|files| files.iter().all(is_one))
}

fn look_as(paths: &[PathBuf], mut options: Options, first: FirstLine) -> Result<Columns> {
    let is_judged = first == FirstLine::Judged;
    let mut oddities = Vec::new();
    let opened = match opened::open(paths, &options) {
        // That of several files may be in one of them.
        Err(Error::Title { skipped, .. }) if is_judged && paths.len() == 1 && can_be_read_twice(paths) => {
            options.skip_lines = skipped;
            oddities.push(Oddity::Title(skipped));
            opened::open(paths, &options)?
        }
        other => other?,
    };
    let (rows, seen, has_first_line) = match opened {
        Opened::Csv(input) => {
            let mut source = csv::Source::from_input(input, options)?;
            let title = if is_judged { source.title_lines()? } else { None };
            if let Some(lines) = title {
                options.skip_lines = lines;
                source = csv::Source::from_input(source.into_input(), options)?;
                oddities.push(Oddity::Title(lines));
            }
            let (rows, seen) = of_csv(&source)?;
            (rows, seen, true)
        }
        Opened::Columns(source) => {
            let (rows, seen) = of_columns(&source)?;
            (rows, seen, source.has_first_line())
        }
    };
    let names: Vec<&str> = seen.iter().map(|column| &*column.name).collect();
    let is_doubtful = is_judged
        && match has_first_line {
            true if options.header == Header::None => false,
            true => {
                let below: Vec<Option<Shape>> = seen.iter().map(|column| column.shapes.most()).collect();
                first_line::is_doubtful(&names, &below)
            }
            false => first_line::has_data(names.iter().copied()),
        };
    let names_from = match (options.header, is_doubtful) {
        (Header::None, _) if has_first_line => Names::Numbers,
        (_, true) => Names::Doubtful,
        _ => Names::Given,
    };
    match names_from {
        Names::Doubtful if has_first_line => oddities.push(Oddity::NoHeader),
        Names::Doubtful => oddities.push(Oddity::DataInName),
        Names::Given => oddities.extend(twice(&names)),
        Names::Numbers => {}
    }
    oddities.extend((rows == 0).then_some(Oddity::NoRows));
    let mut columns: Vec<Column> = seen.into_iter().map(Seen::end).collect();
    if names_from == Names::Doubtful {
        // From here on nobody knows the cells of that line.
        columns.iter_mut().enumerate().for_each(|(at, column)| column.name = format!("column {}", at + 1));
    }
    Ok(Columns { rows, columns, names: names_from, oddities, options, guessed: None })
}

/// The names that several columns have.
fn twice(names: &[&str]) -> Vec<Oddity> {
    let mut counts: HashMap<&str, usize> = HashMap::new();
    let named = || names.iter().map(|name| name.trim()).filter(|name| !name.is_empty());
    named().for_each(|name| *counts.entry(name).or_default() += 1);
    let mut told = HashSet::new();
    let found = named().filter(|name| counts[name] > 1 && told.insert(*name));
    found.map(|name| Oddity::Twice(name.to_owned())).collect()
}

fn of_csv(source: &csv::Source) -> Result<(u64, Vec<Seen>)> {
    let mut seen: Vec<Seen> = source.columns().map(Seen::new).collect();
    let places: Vec<usize> = (0..seen.len()).collect();
    let contents = source.read_columns(&places, |_, cells| {
        for (column, cell) in seen.iter_mut().zip(cells) {
            column.shapes.add(cell);
            column.add(cell);
        }
        Ok::<_, Error>(())
    })?;
    Ok((contents.rows(), seen))
}

fn of_columns(source: &columnar::Source) -> Result<(u64, Vec<Seen>)> {
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
            let texts = Texts::of(column, field).ok();
            if let Some(texts) = &texts {
                (0..column.len().min(COMPARED_ROWS)).for_each(|row| seen.shapes.add(texts.get(row)));
            }
            match texts.filter(|_| is_key) {
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
    Ok((rows, seen))
}

/// The types that are guessed, in the order in which they are tried.
const CANDIDATES: [&str; 9] =
    ["email", "uuid", "date", "date:DMY", "date:MDY", "phone", "int", "decimal", "decimal:comma"];

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
    /// How the first cells are written.
    shapes: Shapes,
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
            shapes: Shapes::default(),
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
