//! A table in whatever file it comes: CSV, Parquet or Arrow, which its first bytes tell.

use crate::columnar::{self, Format};
use crate::convert;
use crate::csv::{self, Options};
use crate::fault::{Error, Result};
use crate::input::Input;
use crate::records::{KeySet, KeySpec};
use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use std::io::Write;
use std::path::Path;

/// A table whose columns are known and whose key columns are there.
pub enum Source {
    /// In rows.
    Csv(Box<csv::Source>),
    /// In columns.
    Columns(Box<columnar::Source>),
}

impl Source {
    /// Opens the table at `path`, `-` being standard input, and finds the key's columns. How fields are
    /// separated and enclosed holds for CSV alone.
    pub fn open(path: &Path, spec: KeySpec, options: Options) -> Result<Self> {
        let input = Input::open(path)?;
        Ok(match columnar::format_of(&input)? {
            Some(format) => {
                let source = columnar::Source::from_input(input, format, spec, options.empty_keys)?;
                Source::Columns(Box::new(source))
            }
            None => Source::Csv(Box::new(csv::Source::with_key(input, spec, options)?)),
        })
    }

    /// Whether rows of this table can go to a file of this name: CSV cannot hold cells that are lists or
    /// structures.
    pub fn admits(&self, target: &Path) -> Result<()> {
        match self {
            Source::Columns(source) if convert::says_csv(target) => convert::has_text(source, target),
            _ => Ok(()),
        }
    }

    /// Whether rows of this table can go to a file of this name with more columns behind them.
    pub fn admits_more(&self, target: &Path) -> Result<()> {
        self.csv()?;
        match Format::by_name(target) {
            None => Ok(()),
            Some(format) => Err(Error::JoinedColumns { path: target.to_owned(), format: format.name() }),
        }
    }

    /// The table as a CSV file, which alone has columns to give and room for more. Errors: another format.
    pub fn csv(&self) -> Result<&csv::Source> {
        match self {
            Source::Csv(source) => Ok(source),
            Source::Columns(source) => Err(source.csv_alone()),
        }
    }

    /// The file's size in bytes when it was opened, as it is packed.
    pub fn bytes(&self) -> u64 {
        match self {
            Source::Csv(source) => source.bytes(),
            Source::Columns(source) => source.bytes(),
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

    /// Writes the rows whose elements are in `matches` (indices into `keys.elements()`) to `output`, which is
    /// called `target`, in the format that its name says, or else in the input's. Returns the number of rows.
    pub fn write_matches(
        &self,
        keys: &KeySet,
        matches: &[u32],
        target: &Path,
        output: &mut (impl Write + Send),
    ) -> Result<u64> {
        match self {
            Source::Csv(source) => match Format::by_name(target) {
                Some(format) => convert::to_columns(source, keys, matches, format, target, output),
                None => source.write_matches(keys, matches, target, output),
            },
            Source::Columns(source) if convert::says_csv(target) => {
                convert::to_csv(source, keys, matches, target, output)
            }
            Source::Columns(source) => source.write_matches(keys, matches, target, output),
        }
    }
}
