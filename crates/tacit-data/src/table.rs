//! A table wherever it comes from: a file of CSV, Parquet or Arrow, which its first bytes tell, an object of
//! these in a store, or what a database answers to a query.

use crate::behind::{Behind, Cell};
use crate::columnar::{self, Format};
use crate::convert;
use crate::csv::{self, Options};
use crate::fault::{Error, Place, Result};
use crate::give::{self, Purpose};
use crate::input::Input;
use crate::join;
use crate::keys::Tally;
use crate::records::{Element, KeySet, KeySpec};
use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use std::io::Write;
use std::path::Path;
use zeroize::Zeroizing;

/// A table whose columns are known and whose key columns are there.
pub enum Source {
    /// In rows.
    Csv(Box<csv::Source>),
    /// In columns.
    Columns(Box<columnar::Source>),
}

impl Source {
    /// Opens the table at `path`, `-` being standard input, or at an address (see [`place`](crate::place)),
    /// and finds the key's columns. How fields are separated and enclosed holds for CSV alone.
    pub fn open(path: &Path, spec: KeySpec, options: Options) -> Result<Self> {
        let input = Input::open(path)?;
        Ok(match columnar::format_of(&input)? {
            Some(format) => {
                let source = columnar::Source::from_input(input, format, spec, &options)?;
                Source::Columns(Box::new(source))
            }
            None => Source::Csv(Box::new(csv::Source::with_key(input, spec, options)?)),
        })
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
            // Its keys cannot be read without all of its rows, and text goes everywhere.
            Source::Csv(_) => Ok(()),
        }
    }

    /// Tells the cells of every row with a key, of the columns called so, to `visit`, with the index of the
    /// row's element and where it stands; what a cell is says `purpose`, a null and an empty cell of a CSV
    /// file are nothing. Errors: a column that is missing, there twice, or of cells that cannot be given for
    /// this; and a table whose rows are not those of `keys`.
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
        source.each_given(keys, &source.positions(columns)?, |at, line, cells| {
            // The file cannot tell an empty text and a null apart.
            let cells: Vec<_> =
                cells.iter().map(|cell| Some(*cell).filter(|cell| !source.is_null(cell))).collect();
            visit(at, Place::Line(line), &cells)
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
    /// [`Input::digest`].
    pub fn digest(&self) -> Result<[u8; 32]> {
        match self {
            Source::Csv(source) => source.input().digest(),
            Source::Columns(source) => source.input().digest(),
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

    /// Tells the element of every row to `visit`, nothing where it has no key: for tables whose keys do not
    /// fit in memory. `progress` as [`read_keys`](Self::read_keys) has it.
    pub fn each_key<E: From<Error>>(
        &self,
        progress: impl FnMut(u64),
        mut visit: impl FnMut(Option<&Element>) -> std::result::Result<(), E>,
    ) -> std::result::Result<Pass, E> {
        match self {
            Source::Csv(source) => {
                let (mut rows, mut without_key) = (0, 0);
                let tally = source.each_key(progress, |elements| {
                    rows += elements.len() as u64;
                    elements.iter().try_for_each(|element| {
                        without_key += u64::from(element.is_none());
                        visit(element.as_ref())
                    })
                })?;
                let digest = source.input().last_read().ok_or_else(|| self.changed())?;
                Ok(Pass { rows, without_key, tally, digest })
            }
            Source::Columns(source) => {
                let mut pass = Passing::default();
                let tally = source.each_key(progress, |elements| {
                    elements.iter().try_for_each(|element| {
                        pass.add(element.as_ref());
                        visit(element.as_ref())
                    })
                })?;
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
                let mut again = Passing::default();
                let choose = |row: u64, element: Option<&Element>| {
                    again.add(element);
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
        self.write_chosen(keys, |at| at.is_some_and(|at| matching[at]), target, output)
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
        self.write_chosen(keys, |at| at.is_none_or(|at| !matching[at]), target, output)
    }

    /// Writes the rows that `wanted` says of their elements, if the table is still the one of `keys`.
    fn write_chosen(
        &self,
        keys: &KeySet,
        wanted: impl Fn(Option<usize>) -> bool,
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
                let choose = |_, element: Option<&Element>| {
                    Ok(wanted(again.element(element).map_err(|_| self.changed())?))
                };
                let written = write_columns(source, choose, target, output)?;
                if again.is_whole() { Ok(written) } else { Err(self.changed()) }
            }
        }
    }

    /// The element of a row, which must be among those that were read before.
    fn known(&self, keys: &KeySet, row: u64) -> Result<Option<usize>> {
        if row < keys.rows() { Ok(keys.element_of(row)) } else { Err(self.changed()) }
    }

    /// Writes the rows for whose element (an index into `keys.elements()`) `rows` has something to `output`,
    /// which is called `target`, once for each of its rows of cells, which go behind our own as text; `names`
    /// are the columns', with `prefix` in front of each that the table has already. Returns the number of
    /// rows written.
    pub fn write_joined<'m>(
        &self,
        keys: &KeySet,
        names: &[String],
        prefix: &str,
        rows: impl Fn(usize) -> &'m [Vec<Cell>],
        target: &Path,
        output: &mut (impl Write + Send),
    ) -> Result<u64> {
        let behind = Behind { names, prefix, rows: &rows };
        match self {
            Source::Columns(source) => {
                let mut again = keys.again();
                let element =
                    |_, element: Option<&Element>| again.element(element).map_err(|_| self.changed());
                let written = join::columns(source, element, &behind, target, output)?;
                if again.is_whole() { Ok(written) } else { Err(self.changed()) }
            }
            Source::Csv(source) => {
                let element = |row| self.known(keys, row);
                let written = match Format::by_name(target) {
                    Some(format) => join::csv_to_columns(source, element, &behind, format, target, output)?,
                    None => source.write_joined(element, &behind, target, output)?,
                };
                source.check_unchanged(keys.file())?;
                Ok(written)
            }
        }
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

/// Writes the rows of a file of columns that `wanted` says of their numbers and elements, as the target's name
/// says.
fn write_columns(
    source: &columnar::Source,
    wanted: impl FnMut(u64, Option<&Element>) -> Result<bool>,
    target: &Path,
    output: &mut (impl Write + Send),
) -> Result<u64> {
    match convert::goes_to_csv(source, target) {
        true => convert::to_csv(source, wanted, target, output),
        false => source.write_wanted(wanted, target, output),
    }
}

/// What one reading of a table's keys told.
#[derive(Default)]
pub struct Pass {
    /// Rows read.
    pub rows: u64,
    /// Rows without a key, because a part of it is empty or refused.
    pub without_key: u64,
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
#[derive(Default)]
struct Passing {
    rows: u64,
    without_key: u64,
    order: Order,
}

impl Passing {
    fn add(&mut self, element: Option<&Element>) {
        self.rows += 1;
        self.without_key += u64::from(element.is_none());
        self.order.add(element);
    }

    fn end(self) -> Pass {
        let Passing { rows, without_key, order } = self;
        Pass { rows, without_key, tally: Tally::default(), digest: order.digest() }
    }
}
