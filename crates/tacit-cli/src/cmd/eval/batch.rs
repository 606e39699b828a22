//! One evaluation for each row of a CSV file.

use super::{Args, Form};
use crate::cli::output::{self, Output};
use std::path::Path;
use tacit::crypto::BitVec;
use tacit::data::csv::{Contents, EmptyKeys, Options, Source};
use tacit::job::eval::Rows;
use tacit::net::shown;
use tacit::two_pc::circuit::value::{Field, parse};
use tacit::{Error, Result};

/// Our file: each row's inputs, and what is needed to write the rows again.
pub struct Table {
    source: Source,
    contents: Contents,
    rows: Rows,
}

impl Table {
    /// Reads the inputs. Errors name the line and the column, and never show a value.
    pub fn read(args: &Args, fields: &[Field]) -> Result<Self> {
        let given = args.input.as_deref().ok_or_else(|| {
            Error::Usage("--batch reads its rows from a CSV file: give --input FILE.csv".into())
        })?;
        let path = Path::new(given.strip_prefix('@').unwrap_or(given));
        let options =
            Options { delimiter: args.delimiter, empty_keys: EmptyKeys::Refuse, ..Options::default() };
        let source = Source::open_table(path, options)?;
        let columns: Vec<usize> = match (fields, &args.columns[..]) {
            // A party without inputs needs its file for the number of rows alone.
            ([], []) => Vec::new(),
            (_, []) => (0..source.columns().count()).collect(),
            (_, columns) => source.positions(columns)?,
        };
        let layout = Layout::new(fields, &columns, &args.columns)?;
        let mut rows = Vec::new();
        let contents = source.read_columns(&columns, |line, cells| {
            rows.push(
                layout
                    .read(cells)
                    .map_err(|what| Error::Input(format!("{}, line {line}: {what}", output::name(path))))?,
            );
            Ok::<_, Error>(())
        })?;
        Ok(Table { source, contents, rows })
    }

    /// Every row's inputs.
    pub fn rows(&self) -> &[Vec<BitVec>] {
        &self.rows
    }

    /// Bytes of our rows with their outputs behind them, at most.
    pub fn length(&self, fields: &[Field]) -> u64 {
        // A value is hex with 0x in front or a decimal with its sign, and a separator; a cell of several is quoted.
        let cell = |field: &Field| 3 + u64::from(field.count) * (4 + u64::from(field.width).div_ceil(3));
        let row: u64 = fields.iter().map(cell).sum();
        let names: u64 = fields.iter().map(|field| field.name.len() as u64 + 32).sum();
        let rows = (self.rows.len() as u64).saturating_mul(row + 2);
        self.source.bytes().saturating_add(rows).saturating_add(names)
    }

    /// Writes our rows with their outputs behind them.
    pub fn write(&self, form: &Form, outputs: &Rows, output: &mut Output) -> Result<()> {
        let names: Vec<&str> = form.fields.iter().map(|field| field.name).collect();
        let extend = |row: u64| outputs.get(row as usize).map_or(Vec::new(), |row| form.row(row));
        let target = output.target().to_owned();
        Ok(self.source.write_extended(&self.contents, &names, extend, &target, output)?)
    }
}

/// Which columns make which input.
struct Layout<'a> {
    fields: &'a [Field],
    columns: &'a [usize],
    /// The columns' names where the user gave them. Those in the file are never shown: of a file without a
    /// header they are data.
    given: &'a [String],
    /// Columns of each field: one, or one a value.
    per_field: Vec<usize>,
}

impl<'a> Layout<'a> {
    fn new(fields: &'a [Field], columns: &'a [usize], given: &'a [String]) -> Result<Self> {
        let values: Vec<usize> = fields.iter().map(|field| field.count as usize).collect();
        let per_field = match columns.len() {
            n if n == fields.len() => vec![1; n],
            n if n == values.iter().sum::<usize>() => values,
            n => {
                let wanted: Vec<String> = fields
                    .iter()
                    .map(|field| match field.count {
                        1 => format!("{} ({})", field.name, field.range()),
                        count => format!("{} ({count} values, each {})", field.name, field.range()),
                    })
                    .collect();
                return Err(Error::Usage(format!(
                    "{n} columns where our side's inputs are: {}; choose with --columns COL[,COL…]",
                    if wanted.is_empty() { "none".to_owned() } else { wanted.join(", ") },
                )));
            }
        };
        Ok(Layout { fields, columns, given, per_field })
    }

    /// What the user calls the column that is read at `at`: its name if he gave it, else its number from 1.
    fn name(&self, at: usize) -> String {
        match self.given.get(at) {
            Some(name) => format!("`{}`", shown(name)),
            None => (self.columns[at] + 1).to_string(),
        }
    }

    /// One row's inputs, or what is wrong with it.
    fn read(&self, cells: &[&str]) -> std::result::Result<Vec<BitVec>, String> {
        let (mut at, mut row) = (0, Vec::with_capacity(self.fields.len()));
        for (field, &columns) in self.fields.iter().zip(&self.per_field) {
            let one = Field { count: field.count / columns.max(1) as u32, ..*field };
            let mut bits = BitVec::zeros(field.bits() as usize);
            for column in 0..columns {
                let value = parse(&[one], cells[at + column])
                    .map_err(|e| format!("column {}: {e}", self.name(at + column)))?;
                let offset = column * one.bits() as usize;
                value
                    .iter()
                    .flat_map(BitVec::iter)
                    .enumerate()
                    .for_each(|(i, bit)| bits.set(offset + i, bit));
            }
            at += columns;
            row.push(bits);
        }
        Ok(row)
    }
}
