//! One evaluation for each row of a CSV file.

use super::{Args, Form, Inputs};
use crate::cli::output::{self, Output};
use std::path::Path;
use tacit::crypto::BitVec;
use tacit::data::csv::{Contents, EmptyKeys, Options, Source};
use tacit::job::eval::Rows;
use tacit::lang::Type;
use tacit::net::shown;
use tacit::two_pc::circuit::value::{Field, parse};
use tacit::{Error, Result};
use zeroize::Zeroizing;

/// Our file: each row's inputs, and what is needed to write the rows again.
pub struct Table {
    source: Source,
    contents: Contents,
    rows: Rows,
}

impl Table {
    /// Reads the inputs. Errors name the line and the column, and never show a value.
    pub fn read(args: &Args, inputs: Inputs<'_>) -> Result<Self> {
        let given = args.input.as_deref().ok_or_else(|| {
            Error::Usage("--batch reads its rows from a CSV file: give --input FILE.csv".into())
        })?;
        let path = Path::new(given.strip_prefix('@').unwrap_or(given));
        let options =
            Options { delimiter: args.delimiter, empty_keys: EmptyKeys::Refuse, ..Options::default() };
        let source = Source::open_table(path, options)?;
        let none = match inputs {
            Inputs::Numbers(fields) => fields.is_empty(),
            Inputs::Literals(program, role) => program.parameters(role).is_empty(),
        };
        let columns: Vec<usize> = match (none, &args.columns[..]) {
            // A party without inputs needs its file for the number of rows alone.
            (true, []) => Vec::new(),
            (_, []) => (0..source.columns().count()).collect(),
            (_, columns) => source.positions(columns)?,
        };
        let layout = Layout::new(inputs, &columns, &args.columns)?;
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
    pub fn length(&self, form: &Form) -> u64 {
        let names: u64 = form.names().iter().map(|name| name.len() as u64 + 32).sum();
        let rows = (self.rows.len() as u64).saturating_mul(form.longest() + 2);
        self.source.bytes().saturating_add(rows).saturating_add(names)
    }

    /// Writes our rows with their outputs behind them.
    pub fn write(&self, form: &Form, outputs: &Rows, output: &mut Output) -> Result<()> {
        let names = form.names();
        let extend = |row: u64| outputs.get(row as usize).map_or(Vec::new(), |row| form.row(row));
        let target = output.target().to_owned();
        Ok(self.source.write_extended(&self.contents, &names, extend, &target, output)?)
    }
}

/// Which columns make which input.
pub(crate) struct Layout<'a> {
    inputs: Inputs<'a>,
    columns: &'a [usize],
    /// The columns' names where the user gave them. Those in the file are never shown: of a file without a
    /// header they are data.
    given: &'a [String],
    /// Columns of each field: one, or one a value; of each parameter: one, or one a field of a struct.
    per_field: Vec<usize>,
}

impl<'a> Layout<'a> {
    pub(crate) fn new(inputs: Inputs<'a>, columns: &'a [usize], given: &'a [String]) -> Result<Self> {
        // What each input is, and how many columns it may have besides one.
        let wanted: Vec<(String, usize)> = match inputs {
            Inputs::Numbers(fields) => fields
                .iter()
                .map(|field| match field.count {
                    1 => (format!("{} ({})", field.name, field.range()), 1),
                    count => {
                        (format!("{} ({count} values, each {})", field.name, field.range()), count as usize)
                    }
                })
                .collect(),
            Inputs::Literals(program, role) => program
                .parameters(role)
                .iter()
                .map(|(name, ty)| match ty {
                    Type::Struct(_, parts) => {
                        let names: Vec<&str> = parts.iter().map(|(part, _)| part.as_str()).collect();
                        (format!("{name} ({ty}, or its fields {})", names.join(", ")), parts.len())
                    }
                    _ => (format!("{name} ({ty})"), 1),
                })
                .collect(),
        };
        let values: Vec<usize> = wanted.iter().map(|(_, count)| *count).collect();
        let per_field = match columns.len() {
            n if n == wanted.len() => vec![1; n],
            n if n == values.iter().sum::<usize>() => values,
            n => {
                let wanted: Vec<String> = wanted.into_iter().map(|(what, _)| what).collect();
                return Err(Error::Usage(format!(
                    "{n} columns where our side's inputs are: {}; choose with --columns COL[,COL…]",
                    if wanted.is_empty() { "none".to_owned() } else { wanted.join(", ") },
                )));
            }
        };
        Ok(Layout { inputs, columns, given, per_field })
    }

    /// What the user calls the column that is read at `at`: its name if he gave it, else its number from 1.
    fn name(&self, at: usize) -> String {
        match self.given.get(at) {
            Some(name) => format!("`{}`", shown(name)),
            None => (self.columns[at] + 1).to_string(),
        }
    }

    /// One row's inputs, or what is wrong with it.
    pub(crate) fn read(&self, cells: &[&str]) -> std::result::Result<Vec<BitVec>, String> {
        let (mut at, mut row) = (0, Vec::with_capacity(self.per_field.len()));
        for (input, &columns) in self.per_field.iter().enumerate() {
            row.push(match self.inputs {
                Inputs::Numbers(fields) => self.numbers(&fields[input], cells, at, columns)?,
                Inputs::Literals(program, role) => {
                    let text = match &program.parameters(role)[input].1 {
                        Type::Struct(name, parts) if columns > 1 => {
                            structure(name, parts, self.given.get(at..at + columns), &cells[at..])
                        }
                        _ => Zeroizing::new(cells[at].to_owned()),
                    };
                    program
                        .parse_one(role, input, &text)
                        .map_err(|e| format!("column {}: {e}", self.name(at)))?
                }
            });
            at += columns;
        }
        Ok(row)
    }

    /// The values of a field from its columns.
    fn numbers(
        &self,
        field: &Field,
        cells: &[&str],
        at: usize,
        columns: usize,
    ) -> std::result::Result<BitVec, String> {
        let one = Field { count: field.count / columns.max(1) as u32, ..*field };
        let mut bits = BitVec::zeros(field.bits() as usize);
        for column in 0..columns {
            let value = parse(&[one], cells[at + column])
                .map_err(|e| format!("column {}: {e}", self.name(at + column)))?;
            let offset = column * one.bits() as usize;
            value.iter().flat_map(BitVec::iter).enumerate().for_each(|(i, bit)| bits.set(offset + i, bit));
        }
        Ok(bits)
    }
}

/// The literal of a struct whose fields stand in a column each: those called as the fields are, or else by
/// place, the fields in the order of their names.
fn structure(
    name: &str,
    parts: &[(String, Type)],
    given: Option<&[String]>,
    cells: &[&str],
) -> Zeroizing<String> {
    let mut text = Zeroizing::new(String::with_capacity(
        name.len()
            + parts.iter().zip(cells).map(|((part, _), cell)| part.len() + cell.len() + 4).sum::<usize>()
            + 8,
    ));
    text.push_str(name);
    text.push_str(" {");
    let called =
        |part: &String| given.and_then(|given| given.iter().position(|column| column.trim() == part));
    let all_called = parts.iter().all(|(part, _)| called(part).is_some());
    for (place, (part, _)) in parts.iter().enumerate() {
        let cell = cells[if all_called { called(part).unwrap_or(place) } else { place }];
        for piece in [" ", part, ": ", cell, ","] {
            text.push_str(piece);
        }
    }
    text.push('}');
    text
}
