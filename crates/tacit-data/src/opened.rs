//! A table that was opened, and what its first bytes say it is.

use crate::columnar::Format;
use crate::csv::Options;
use crate::fault::Result;
use crate::input::Input;
use crate::json;
use std::path::Path;

pub(crate) enum Opened {
    Rows(Input),
    Columns(Input, Format),
}

impl Opened {
    /// Opens the table at `path`; JSON lines become columns.
    pub(crate) fn open(path: &Path, options: &Options) -> Result<Self> {
        Self::of(Input::open(path)?, options)
    }

    /// The same for an input that is open.
    pub(crate) fn of(input: Input, options: &Options) -> Result<Self> {
        let start = input.start()?;
        Ok(match Format::of(&start) {
            Some(format) => Opened::Columns(input, format),
            None if json::is_lines(&start) => {
                Opened::Columns(json::to_columns(&input, options)?, Format::ArrowFile)
            }
            None => Opened::Rows(input),
        })
    }
}
