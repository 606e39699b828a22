//! One evaluation for each row of a table.

use super::Form as Outputs;
use crate::cli::keys::{Columns as CommandColumns, all, typed_list, word_list};
use crate::cli::output::{self, Output};
use crate::cli::table::Written;
use std::path::{Path, PathBuf};
use tacit::crypto::BitVec;
use tacit::data::values::{Column, Form, Read, Table as Source, Wanted};
use tacit::job::eval::Rows;
use tacit::job::eval::layout::{Inputs, Layout, Share, called};
use tacit::{Error, Result};

/// One side's inputs: values, or a table of them.
#[derive(clap::Args)]
pub(crate) struct InputArgs {
    /// Your input: values, or @FILE to read them from a file; with --batch the table: CSV or JSON lines
    /// (plain or compressed), Parquet or Arrow; several files are one table
    #[arg(long, value_name = "VALUE|@FILE", num_args = 1, allow_negative_numbers = true)]
    pub input: Vec<String>,
    /// Evaluates once for each row of a table. Must match on both sides, as must the number of rows
    #[arg(long)]
    pub batch: bool,
    /// The columns of the table with your inputs, in order; COL:date counts days since 1970-01-01,
    /// COL:decimal2 reads hundredths (default: those named like a program's parameters, else all)
    #[arg(long, value_name = "COL", num_args = 1, value_parser = typed_list, requires = "batch")]
    columns: Vec<CommandColumns<String>>,
    /// Words that mean an empty cell in the table, such as NULL,\N,n/a
    #[arg(
        long, value_name = "TEXT", num_args = 1, value_parser = word_list, allow_hyphen_values = true,
        requires = "batch",
    )]
    null: Vec<CommandColumns<String>>,
    #[command(flatten)]
    written: Written,
}

impl InputArgs {
    /// Errors if it is said how a table is written, and there is none.
    pub(crate) fn check(&self) -> Result<()> {
        if !self.batch && !self.written.is_usual() {
            return Err(Error::Usage(
                "options for a table's format need --batch; add it, or leave them out".into(),
            ));
        }
        Ok(())
    }
}

/// Added to the error about a date that does not fit.
const EARLY: &str =
    "; a date before 1970-01-01 is a negative number of days, for which the input must be signed";

/// Our table: each row's inputs, and what is needed to write the rows again.
pub(crate) struct Table {
    source: Source,
    read: Read,
    rows: Rows,
}

impl Table {
    /// Reads the inputs. Errors name the line or the row and the column, and never show a value.
    pub(crate) fn read(given: &InputArgs, inputs: Inputs<'_>) -> Result<Self> {
        if given.input.is_empty() {
            return Err(Error::Usage("--batch reads its rows from a table: give --input FILE".into()));
        }
        let path = |text: &String| PathBuf::from(text.strip_prefix('@').unwrap_or(text));
        let paths: Vec<PathBuf> = given.input.iter().map(path).collect();
        let source = Source::open_all(&paths, given.written.options())?;
        let source = source.with_nulls(&all(&given.null));
        let (wanted, names, shares) = columns(&given.columns, inputs, &source)?;
        let places: Vec<usize> = wanted.iter().map(|column| column.at).collect();
        let layout = match shares {
            Some(shares) => Layout::of(inputs, &places, &names, shares),
            None => Layout::new(inputs, &places, &names)?,
        };
        let mut rows = Vec::new();
        let read = source.read(&wanted, |place, cells| {
            let row = layout.read(cells);
            let at = || {
                let (path, place) = source.located(place);
                format!("{}, {place}", output::name(&path))
            };
            let is_early =
                wanted.iter().zip(cells).any(|(column, cell)| column.is_date() && cell.starts_with('-'));
            let early = if is_early { EARLY } else { "" };
            rows.push(row.map_err(|what| Error::Input(format!("{}: {what}{early}", at())))?);
            Ok::<_, Error>(())
        })?;
        Ok(Table { source, read, rows })
    }

    /// Every row's inputs.
    pub(crate) fn rows(&self) -> &[Vec<BitVec>] {
        &self.rows
    }

    /// Errors if our rows cannot go to a file of this name.
    pub(crate) fn admits(&self, target: &Path) -> Result<()> {
        self.source.is_text(target)?;
        Ok(self.source.prove(target)?)
    }

    /// Bytes of our rows with their outputs behind them, at most.
    pub(crate) fn length(&self, form: &Outputs) -> u64 {
        let names: u64 = form.columns(false).iter().map(|(name, _)| name.len() as u64 + 32).sum();
        let rows = (self.rows.len() as u64).saturating_mul(form.longest() + 2);
        self.source.bytes().saturating_add(rows).saturating_add(names)
    }

    /// Writes our rows with their outputs behind them.
    pub(crate) fn write(&self, form: &Outputs, outputs: &Rows, output: &mut Output) -> Result<()> {
        let target = output.target().to_owned();
        let text = self.source.is_text(&target)?;
        let extend = |row: u64| outputs.get(row as usize).map_or(Vec::new(), |row| form.cells(row, text));
        Ok(self.source.write_extended(&self.read, &form.columns(text), extend, &target, output)?)
    }
}

/// The columns that hold our inputs, their names where they may be shown, and how inputs are spread over them
/// where that follows from the names.
type Columns = (Vec<Wanted>, Vec<String>, Option<Vec<Share>>);

fn columns(given: &[CommandColumns<String>], inputs: Inputs<'_>, source: &Source) -> Result<Columns> {
    if !given.is_empty() {
        let columns: Vec<Column> = all(given).iter().map(|text| Column::parse(text)).collect();
        let wanted = source.find(&columns)?;
        return Ok((wanted, columns.into_iter().map(|column| column.name).collect(), None));
    }
    let none = match inputs {
        Inputs::Numbers(fields) => fields.is_empty(),
        Inputs::Literals(program, role) => {
            if let Some((names, shares)) = called(program, role, &source.names()) {
                let plain = |name: &String| Column { name: name.clone(), form: Form::Plain };
                let wanted = source.find(&names.iter().map(plain).collect::<Vec<_>>())?;
                return Ok((wanted, names, Some(shares)));
            }
            program.parameters(role).is_empty()
        }
    };
    // A party without inputs needs its table for the number of rows alone.
    let all = if none { 0 } else { source.names().len() };
    Ok((source.at(0..all)?, Vec::new(), None))
}
