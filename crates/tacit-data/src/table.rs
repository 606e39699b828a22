//! A table wherever it comes from: a file of CSV, JSON lines, Parquet, Arrow or Excel, which its first bytes tell,
//! an object of these in a store or on a server, what a database answers to a query, or several of them.

use crate::ahead;
use crate::behind::{Behind, By, Cell, Written};
use crate::columnar::{self, Format};
use crate::convert;
use crate::csv::{self, Options};
use crate::fault::{Error, Place, Result};
use crate::give::{self, Purpose};
use crate::join;
use crate::keys::Tally;
use crate::opened::{self, Opened};
use crate::place;
use crate::records::{Element, Found, KeySet, KeySpec, Listing};
use crate::unfit::Unfit;
use crate::values::{Column, Form};
use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use std::io::Write;
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// A table whose columns are known and whose key columns are there.
pub enum Source {
    /// In rows.
    Csv(Box<csv::Source>),
    /// In columns.
    Columns(Box<columnar::Source>),
}

/// The rows that an element's match has, by the element's number.
type RowsOf<'m, 'f> = dyn Fn(usize) -> &'m [Vec<Cell>] + 'f;

/// A match that brings nothing with it.
static NO_CELLS: [Vec<Cell>; 1] = [Vec::new()];

impl Source {
    /// Opens the table at `path`, `-` being standard input, or at an address (see [`place`]),
    /// and finds the key's columns. How fields are separated and enclosed holds for CSV alone.
    pub fn open(path: &Path, spec: KeySpec, options: Options) -> Result<Self> {
        Self::open_all(&[path.to_owned()], spec, options)
    }

    /// Opens several tables as one, in their order: files, folders and patterns of files, and addresses. They have
    /// the same columns, which are found by their names.
    pub fn open_all(paths: &[PathBuf], spec: KeySpec, options: Options) -> Result<Self> {
        Self::of(opened::open(paths, &options)?, spec, options)
    }

    /// As [`open`](Self::open), for a table whose [`digest`](Self::digest) is recorded: whatever is read of it, its
    /// keys among it, is what the digest is of; see [`Input::open_pinned`](crate::input::Input::open_pinned).
    pub fn open_pinned(path: &Path, spec: KeySpec, options: Options) -> Result<Self> {
        Self::open_all_pinned(&[path.to_owned()], spec, options)
    }

    /// The same of several tables as one: every file of theirs is pinned.
    pub fn open_all_pinned(paths: &[PathBuf], spec: KeySpec, options: Options) -> Result<Self> {
        Self::of(opened::open_pinned(paths, &options)?, spec, options)
    }

    fn of(opened: Opened, spec: KeySpec, options: Options) -> Result<Self> {
        Ok(match opened {
            Opened::Columns(source) => Source::Columns(Box::new(source.keyed(spec)?)),
            Opened::Csv(input) => Source::Csv(Box::new(csv::Source::with_key(input, spec, options)?)),
        })
    }

    /// The file and the place in it of a row that stands at `place` of the table.
    pub fn located(&self, place: Place) -> (PathBuf, Place) {
        match (self, place) {
            (Source::Columns(source), Place::Row(row)) => source.place(row),
            (Source::Columns(source), place) => (source.path().to_owned(), place),
            (Source::Csv(source), place) => (source.path().to_owned(), place),
        }
    }

    /// Whether the names of its columns may be data, as in a file without a header: by its first rows.
    pub fn is_doubtful(&self) -> bool {
        match self {
            Source::Csv(source) => source.is_doubtful(),
            Source::Columns(source) => source.is_doubtful(),
        }
    }

    /// How many cells of a workbook held errors, and count as empty.
    pub fn error_cells(&self) -> u64 {
        match self {
            Source::Csv(_) => 0,
            Source::Columns(source) => source.error_cells(),
        }
    }

    /// Whether a column has exactly this name.
    pub fn has_column(&self, name: &str) -> bool {
        match self {
            Source::Csv(source) => source.columns().any(|column| column.trim() == name.trim()),
            Source::Columns(source) => source.position(name).is_ok(),
        }
    }

    /// The column that numbers are taken from by this name, which may end in `:decimalN` unless a column is
    /// called so, and what its text means.
    pub fn number_column(&self, name: &str) -> Column {
        let plain = || Column { name: name.to_owned(), form: Form::Plain };
        match Column::parse(name) {
            column @ Column { form: Form::Decimal(_), .. } if !self.has_column(name) => column,
            _ => plain(),
        }
    }

    /// Whether rows of this table can go to a file of this name, by the types of their columns: CSV cannot
    /// hold cells that are lists or structures, nor Parquet a union.
    pub fn admits(&self, target: &Path) -> Result<()> {
        match self {
            Source::Columns(source) => convert::admits(source, target),
            Source::Csv(_) => convert::is_ours(target),
        }
    }

    /// Reads all rows and writes them to nothing, as they would go to a file of this name: what cannot be read
    /// or written shows before anybody is called, not when the other side has its result.
    pub fn prove(&self, target: &Path) -> Result<()> {
        match self {
            Source::Columns(source) => convert::prove(source, target),
            Source::Csv(source) if Format::by_name(target) == Some(Format::Excel) => {
                convert::prove_workbook(source, target)
            }
            // Its keys cannot be read without all of its rows, and text goes everywhere else.
            Source::Csv(_) => Ok(()),
        }
    }

    /// Leaves cells of this table that an output cannot hold empty from now on, in place of an error.
    pub fn leave_unfit_empty(&self) {
        self.unfit().leave_empty();
    }

    /// How many cells of this table were left empty in outputs, which could not hold them.
    pub fn left_empty(&self) -> u64 {
        self.unfit().count()
    }

    fn unfit(&self) -> &Unfit {
        match self {
            Source::Csv(source) => source.unfit(),
            Source::Columns(source) => source.unfit(),
        }
    }

    /// Tells the cells of every row with a key, of the columns called so, to `visit`, with the index of the
    /// row's element and where it stands, once for each identifier that the row has; what a cell is says `purpose`, a
    /// null and an empty cell of a CSV file are nothing. Errors: a column that is missing, there twice, or of cells
    /// that cannot be given for this; and a table whose rows are not those of `keys`.
    pub fn read_given<E: From<Error>>(
        &self,
        keys: &KeySet,
        columns: &[String],
        purpose: Purpose,
        mut visit: impl FnMut(usize, Place, &[Option<&str>]) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let source = match self {
            Source::Csv(source) => source,
            Source::Columns(source) => return give::each(source, keys, columns, purpose, visit),
        };
        let form = if let Purpose::Number(form) = purpose { form } else { Form::Plain };
        let is_number = matches!(purpose, Purpose::Number(_));
        let is_nothing = |cell: &str| source.is_null(cell) || is_number && cell.trim().is_empty();
        let mut texts = vec![String::new(); columns.len()];
        source.each_given(keys, &source.positions(columns)?, |at, line, cells| {
            let place = Place::Line(line);
            for ((column, cell), text) in columns.iter().zip(cells).zip(&mut texts) {
                text.clear();
                if form != Form::Plain && !is_nothing(cell) {
                    let read = form.read_written(cell, source.has_decimal_comma(), text);
                    read.map_err(|what| {
                        let column = format!("`{}`", tacit_crypto::text::shown(column));
                        Error::Cell { path: source.path().to_owned(), place, column, what }
                    })?;
                }
            }
            // The file cannot tell an empty text and a null apart.
            let read = cells.iter().zip(&texts).map(|(cell, text)| match is_nothing(cell) {
                true => None,
                false if form == Form::Plain => Some(*cell),
                false => Some(text.as_str()),
            });
            visit(at, place, &read.collect::<Vec<_>>())
        })
    }

    /// The file's size in bytes when it was opened, as it is packed.
    pub fn bytes(&self) -> u64 {
        match self {
            Source::Csv(source) => source.bytes(),
            Source::Columns(source) => source.bytes(),
        }
    }

    /// A digest of what was opened: of a file the BLAKE3 hash of its bytes, as it is packed; see
    /// [`Input::digest`](crate::input::Input::digest); of several files a hash of theirs, in their order.
    pub fn digest(&self) -> Result<[u8; 32]> {
        match self {
            Source::Csv(source) => source.input().digest(),
            Source::Columns(source) => source.digest(),
        }
    }

    /// Reads all rows into memory, as columns: those of a CSV file are text.
    pub fn read_whole(&self) -> Result<(SchemaRef, Vec<RecordBatch>)> {
        match self {
            Source::Csv(source) => source.read_whole(),
            Source::Columns(source) => source.read_whole(),
        }
    }

    /// Reads all keys. `progress` is told now and then how many of the file's bytes have been read.
    pub fn read_keys(&self, progress: impl FnMut(u64)) -> Result<KeySet> {
        match self {
            Source::Csv(source) => source.read_keys(progress),
            Source::Columns(source) => source.read_keys(progress),
        }
    }

    /// Tells the element of every row to `visit`, nothing where it has no key, as [`Listing`] has its entries: for tables
    /// whose keys do not fit in memory. `progress` as [`read_keys`](Self::read_keys) has it.
    pub fn each_key<E: From<Error>>(
        &self,
        progress: impl FnMut(u64),
        mut visit: impl FnMut(Option<&Element>) -> std::result::Result<(), E>,
    ) -> std::result::Result<Pass, E> {
        match self {
            Source::Csv(source) => {
                let mut pass = Passing::of(source.listing(), false);
                let tally = source.each_key(progress, |elements| pass.each(elements, &mut visit))?;
                let digest = source.input().last_read().ok_or_else(|| self.changed())?;
                Ok(Pass { tally, digest, ..pass.end() })
            }
            Source::Columns(source) => {
                let mut pass = Passing::of(source.listing(), true);
                let tally = source.each_key(progress, |elements| pass.each(elements, &mut visit))?;
                Ok(Pass { tally, ..pass.end() })
            }
        }
    }

    /// Writes the rows of these numbers to `output`, which is called `target`, if the table is still the one
    /// of `pass`. Returns how many there were.
    pub fn write_rows(
        &self,
        pass: &Pass,
        wanted: impl Fn(u64) -> bool,
        target: &Path,
        output: &mut (impl Write + Send),
    ) -> Result<u64> {
        match self {
            Source::Csv(source) => {
                let of = |row| if row < pass.rows { Ok(wanted(row)) } else { Err(self.changed()) };
                let written = write_lines(source, of, target, output)?;
                source.check_unchanged(Some(pass.digest))?;
                Ok(written)
            }
            Source::Columns(source) => {
                let mut again = Passing::of(source.listing(), true);
                let choose = |row: u64, elements: &[Option<Element>]| {
                    again.add(elements);
                    Ok(wanted(row))
                };
                let written = write_columns(source, choose, target, output)?;
                if again.end().digest == pass.digest { Ok(written) } else { Err(self.changed()) }
            }
        }
    }

    /// Writes the rows whose elements are in `matches` (indices into `keys.elements()`) to `output`, which is
    /// called `target`, in the format that its name says, or else in the input's. `keys` are what
    /// [`read_keys`](Self::read_keys) read of this table. Returns the number of rows.
    pub fn write_matches(
        &self,
        keys: &KeySet,
        matches: &[u32],
        target: &Path,
        output: &mut (impl Write + Send),
    ) -> Result<u64> {
        let matching = keys.wanted(matches);
        self.write_chosen(keys, |row| keys.first_of(row, |at| matching[at]).is_some(), target, output)
    }

    /// Writes the rows whose elements are not in `matches`, those without a key among them, as
    /// [`write_matches`](Self::write_matches) does the others.
    pub fn write_rest(
        &self,
        keys: &KeySet,
        matches: &[u32],
        target: &Path,
        output: &mut (impl Write + Send),
    ) -> Result<u64> {
        let matching = keys.wanted(matches);
        self.write_chosen(keys, |row| keys.first_of(row, |at| matching[at]).is_none(), target, output)
    }

    /// Writes the rows that `wanted` says of their numbers, if the table is still the one of `keys`.
    fn write_chosen(
        &self,
        keys: &KeySet,
        wanted: impl Fn(u64) -> bool,
        target: &Path,
        output: &mut (impl Write + Send),
    ) -> Result<u64> {
        match self {
            Source::Csv(source) => {
                let of = |row| Ok(wanted(self.known(keys, row)?));
                let written = write_lines(source, of, target, output)?;
                source.check_unchanged(keys.file())?;
                Ok(written)
            }
            Source::Columns(source) => {
                let mut again = keys.again();
                let choose = |_, elements: &[Option<Element>]| {
                    Ok(wanted(again.row(elements).map_err(|_| self.changed())?))
                };
                let written = write_columns(source, choose, target, output)?;
                if again.is_whole() { Ok(written) } else { Err(self.changed()) }
            }
        }
    }

    /// The number of a row, which must be among those that were read before.
    fn known(&self, keys: &KeySet, row: u64) -> Result<u64> {
        if row < keys.rows() { Ok(row) } else { Err(self.changed()) }
    }

    /// Writes the rows for whose element (an index into `keys.elements()`; of several identifiers the first such one)
    /// `rows` has something to `output`, which is called `target`, once for each of its rows of cells. These go behind
    /// our own as text; `names` are the columns', with `prefix` in front of each that the table has already. A cell that
    /// the output cannot hold is left empty, and counted.
    pub fn write_joined<'m>(
        &self,
        keys: &KeySet,
        names: &[String],
        prefix: &str,
        rows: impl Fn(usize) -> &'m [Vec<Cell>],
        target: &Path,
        output: &mut (impl Write + Send),
    ) -> Result<Written> {
        self.write_joined_by(keys, (names, prefix), rows, (false, None), target, output)
    }

    /// As [`write_joined`](Self::write_joined), with more columns in front of those. With `is_left` every other row goes
    /// out too, in the table's order: a column says of each row whether it matches, and the others are empty where it
    /// does not. Where there is a `by`, a column says by which identifier a row matches. Where nothing else is to be
    /// said, `names` is empty and the rows of a match are one without cells.
    pub fn write_joined_by<'m>(
        &self,
        keys: &KeySet,
        (names, prefix): (&[String], &str),
        rows: impl Fn(usize) -> &'m [Vec<Cell>],
        (is_left, by): (bool, Option<By<'_>>),
        target: &Path,
        output: &mut (impl Write + Send),
    ) -> Result<Written> {
        self.write_with(keys, (names, prefix, &rows), (is_left, by), target, output)
    }

    /// The rows whose elements are in `matches`, or with `is_left` all, as [`write_joined_by`](Self::write_joined_by)
    /// has them. Returns their number.
    pub fn write_matches_by(
        &self,
        keys: &KeySet,
        matches: &[u32],
        how: (bool, Option<By<'_>>),
        target: &Path,
        output: &mut (impl Write + Send),
    ) -> Result<u64> {
        let wanted = keys.wanted(matches);
        let rows = |at: usize| if wanted[at] { &NO_CELLS[..] } else { &[] };
        Ok(self.write_joined_by(keys, (&[], ""), rows, how, target, output)?.rows)
    }

    /// All rows, each with whether its element is in `matches`, in a column behind our own.
    pub fn write_marked(
        &self,
        keys: &KeySet,
        matches: &[u32],
        target: &Path,
        output: &mut (impl Write + Send),
    ) -> Result<u64> {
        self.write_matches_by(keys, matches, (true, None), target, output)
    }

    /// All rows, each with whether `wanted` says yes to its number, if the table is still the one of `pass`.
    pub fn write_rows_marked(
        &self,
        pass: &Pass,
        wanted: impl Fn(u64) -> bool,
        target: &Path,
        output: &mut (impl Write + Send),
    ) -> Result<u64> {
        self.write_rows_by(pass, |row| wanted(row).then_some(0), (true, None), target, output)
    }

    /// The rows of whose number `matches_by` gives an identifier, or with `is_left` all, with columns as
    /// [`write_joined_by`](Self::write_joined_by) has them, if the table is still the one of `pass`.
    pub fn write_rows_by(
        &self,
        pass: &Pass,
        matches_by: impl Fn(u64) -> Option<usize>,
        (is_left, by): (bool, Option<By<'_>>),
        target: &Path,
        output: &mut (impl Write + Send),
    ) -> Result<u64> {
        let emptied = std::cell::Cell::new(0);
        let rows = |_| &NO_CELLS[..];
        let behind = Behind { is_left, by, ..Behind::new(&[], "", &rows, &emptied, target) };
        let found = |row| matches_by(row).map(|identifier| Found { identifier, element: 0 });
        match self {
            Source::Csv(source) => {
                let of = |row| if row < pass.rows { Ok(found(row)) } else { Err(self.changed()) };
                let written = join_lines(source, of, &behind, target, output)?;
                source.check_unchanged(Some(pass.digest))?;
                Ok(written)
            }
            Source::Columns(source) => {
                let mut again = Passing::of(source.listing(), true);
                let of = |row: u64, elements: &[Option<Element>]| {
                    again.add(elements);
                    Ok(found(row))
                };
                let written = join::columns(source, of, &behind, target, output)?;
                if again.end().digest == pass.digest { Ok(written) } else { Err(self.changed()) }
            }
        }
    }

    /// Writes all rows to `output`, which is called `target`, in the format that its name says, or else in the input's,
    /// with a column of text called `name` in front of our own: the text that `cell` gives of a row's element, an index
    /// into `keys.elements()`, or of a row that has none. Returns the number of rows.
    pub fn write_ahead(
        &self,
        keys: &KeySet,
        name: &str,
        mut cell: impl FnMut(Option<usize>) -> String,
        target: &Path,
        output: &mut (impl Write + Send),
    ) -> Result<u64> {
        match self {
            Source::Csv(source) => {
                let of = |row| Ok(cell(keys.element_of(self.known(keys, row)?)));
                let written = match Format::by_name(target) {
                    Some(format) => ahead::csv_to_columns(source, name, of, format, target, output)?,
                    None => source.write_ahead(name, of, target, output)?,
                };
                source.check_unchanged(keys.file())?;
                Ok(written)
            }
            Source::Columns(source) => {
                let mut again = keys.again();
                let of = |_, elements: &[Option<Element>]| {
                    Ok(cell(keys.element_of(again.row(elements).map_err(|_| self.changed())?)))
                };
                let written = ahead::columns(source, name, of, target, output)?;
                if again.is_whole() { Ok(written) } else { Err(self.changed()) }
            }
        }
    }

    /// Errors where an output of this name cannot hold a column of such a name in front of our own, whose cells are
    /// made of the characters of `cell`.
    pub fn holds_ahead(&self, target: &Path, name: &str, cell: &str) -> Result<()> {
        convert::is_ours(target)?;
        match self {
            Source::Csv(source) if Format::by_name(target).is_none() => {
                source.holds_ahead(target, &[name, cell])
            }
            _ => Ok(()),
        }
    }

    /// The names of its columns.
    pub fn column_names(&self) -> Vec<&str> {
        match self {
            Source::Csv(source) => source.columns().collect(),
            Source::Columns(source) => {
                source.schema().fields().iter().map(|field| field.name().as_str()).collect()
            }
        }
    }

    /// Errors where an output of this name cannot hold whatever may come behind our columns under these names.
    pub fn holds_behind(&self, target: &Path, names: &[String]) -> Result<()> {
        match self {
            Source::Csv(source) if Format::by_name(target).is_none() => source.holds_behind(target, names),
            _ => Ok(()),
        }
    }

    fn write_with<'m>(
        &self,
        keys: &KeySet,
        (names, prefix, rows): (&[String], &str, &RowsOf<'m, '_>),
        (is_left, by): (bool, Option<By<'_>>),
        target: &Path,
        output: &mut (impl Write + Send),
    ) -> Result<Written> {
        let emptied = std::cell::Cell::new(0);
        let behind = &Behind { is_left, by, ..Behind::new(names, prefix, rows, &emptied, target) };
        let found = |row| keys.first_of(row, |at| !rows(at).is_empty());
        let rows = match self {
            Source::Columns(source) => {
                let mut again = keys.again();
                let of = |_, elements: &[Option<Element>]| {
                    Ok(found(again.row(elements).map_err(|_| self.changed())?))
                };
                let rows = join::columns(source, of, behind, target, output)?;
                if !again.is_whole() {
                    return Err(self.changed());
                }
                rows
            }
            Source::Csv(source) => {
                let rows =
                    join_lines(source, |row| Ok(found(self.known(keys, row)?)), behind, target, output)?;
                source.check_unchanged(keys.file())?;
                rows
            }
        };
        Ok(Written { rows, emptied: behind.emptied.get() })
    }

    fn changed(&self) -> Error {
        match self {
            Source::Csv(source) => source.changed(),
            Source::Columns(source) => source.changed(),
        }
    }
}

/// Writes the rows of a CSV file that `wanted` says of their numbers, as the target's name says.
fn write_lines(
    source: &csv::Source,
    wanted: impl FnMut(u64) -> Result<bool>,
    target: &Path,
    output: &mut (impl Write + Send),
) -> Result<u64> {
    match Format::by_name(target) {
        Some(format) => convert::to_columns(source, wanted, format, target, output),
        None => source.write_wanted(wanted, target, output),
    }
}

/// Writes the rows of a CSV file of whose numbers `found` gives what they match by, with what is behind them, as the
/// target's name says.
fn join_lines(
    source: &csv::Source,
    found: impl FnMut(u64) -> Result<Option<Found>>,
    behind: &Behind<'_, '_>,
    target: &Path,
    output: &mut (impl Write + Send),
) -> Result<u64> {
    match Format::by_name(target) {
        Some(format) => join::csv_to_columns(source, found, behind, format, target, output),
        None => source.write_joined(found, behind, target, output),
    }
}

/// Writes the rows of a file of columns that `wanted` says of their numbers and elements, as the target's name
/// says.
fn write_columns(
    source: &columnar::Source,
    wanted: impl FnMut(u64, &[Option<Element>]) -> Result<bool>,
    target: &Path,
    output: &mut (impl Write + Send),
) -> Result<u64> {
    match convert::goes_to_csv(source, target) {
        true => convert::to_csv(source, wanted, target, output),
        false => source.write_wanted(wanted, target, output),
    }
}

/// A digest of the table at these names, as [`Source::digest`] has it.
pub fn digest_of(paths: &[PathBuf]) -> Result<[u8; 32]> {
    opened::digest(paths)
}

/// What one reading of a table's keys told.
#[derive(Default)]
pub struct Pass {
    /// Rows read.
    pub rows: u64,
    /// Rows without a key, because a part of it is empty or refused; of several identifiers, rows that have none.
    pub without_key: u64,
    /// Rows that have each identifier.
    pub with_each: Vec<u64>,
    /// Keys of all rows, those that repeat counted again; each identifier of a row, and each variant, is one.
    pub keys: u64,
    /// Which rows have no key, by part and reason.
    pub tally: Tally,
    digest: [u8; 32],
}

/// What stands for all rows' keys, in their order.
#[derive(Default)]
pub struct Order {
    hasher: blake3::Hasher,
    /// What is hashed next: many rows at once take a fraction of the time.
    waiting: Zeroizing<Vec<u8>>,
}

impl Order {
    /// Bytes that wait at most.
    const WAITING: usize = 1 << 16;

    /// The next row's element, or that it has none.
    pub fn add(&mut self, element: Option<&Element>) {
        match element {
            Some(element) => {
                self.waiting.push(1);
                self.waiting.extend_from_slice(element);
            }
            None => self.waiting.push(0),
        }
        if self.waiting.len() >= Self::WAITING {
            self.hasher.update(&self.waiting);
            self.waiting.clear();
        }
    }

    /// Of all rows.
    pub fn digest(mut self) -> [u8; 32] {
        *self.hasher.update(&self.waiting).finalize().as_bytes()
    }
}

/// A reading that goes on.
struct Passing {
    rows: u64,
    without_key: u64,
    with_each: Vec<u64>,
    keys: u64,
    listing: Listing,
    /// What the elements are hashed by, where a file does not say what it held.
    order: Option<Order>,
}

impl Passing {
    /// Of rows that are listed so.
    fn of(listing: Listing, is_hashed: bool) -> Self {
        let order = is_hashed.then(Order::default);
        Passing {
            rows: 0,
            without_key: 0,
            with_each: vec![0; listing.identifiers()],
            keys: 0,
            listing,
            order,
        }
    }

    /// Counts a row, and hands each of its elements to `visit`.
    fn each<E>(
        &mut self,
        elements: &[Option<Element>],
        visit: &mut impl FnMut(Option<&Element>) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        self.listing.rows(elements).try_for_each(|elements| {
            self.add(elements);
            elements.iter().try_for_each(|element| visit(element.as_ref()))
        })
    }

    /// Counts a row.
    fn add(&mut self, elements: &[Option<Element>]) {
        self.rows += 1;
        self.without_key += u64::from(elements.iter().all(Option::is_none));
        let mut last = None;
        for (identifier, ()) in self.listing.identified(elements.iter().map(|one| one.map(|_| ()))) {
            self.keys += 1;
            self.with_each[identifier] += u64::from(last != Some(identifier));
            last = Some(identifier);
        }
        if let Some(order) = &mut self.order {
            elements.iter().for_each(|element| order.add(element.as_ref()));
        }
    }

    fn end(self) -> Pass {
        let Passing { rows, without_key, with_each, keys, order, .. } = self;
        let digest = order.map_or([0; 32], Order::digest);
        Pass { rows, without_key, with_each, keys, tally: Tally::default(), digest }
    }
}

/// The files that may be part of the table of this name now: of a folder or a pattern several, of a workbook's sheet the
/// workbook. What cannot be looked at is left out, also where it keeps the table from being read.
pub fn files_of(path: &Path) -> Vec<PathBuf> {
    let files = opened::seen(path);
    files.iter().map(|file| place::sheet(file).0.to_owned()).collect()
}

/// Whether the table called `whole` has what is called `part` among its files, by these names alone: of a folder what
/// is in it, of a pattern what is called so. Both are paths from the root.
pub fn covers(whole: &Path, part: &Path) -> bool {
    let part = place::sheet(part).0;
    part.parent() == Some(whole) || opened::is_called(part, whole)
}
