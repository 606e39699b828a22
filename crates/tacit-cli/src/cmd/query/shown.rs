//! The result of a question, as a table for people, for programs and in files; and who computes what.

use crate::cli::output::{Output, destination};
use serde_json::{Value as Json, json};
use std::path::Path;
use tacit::Result;
use tacit::crypto::text::counted;
use tacit::data::values::{self, Kind, Value};
use tacit::job::query::{Answer, Cell, Question, Shown, Side, Work};

/// The groups that a result shows.
pub(in crate::cmd) struct Table {
    names: Vec<String>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    /// Of what we got, if we got anything.
    pub(super) fn of(question: &Question, answer: &Answer) -> Option<Self> {
        answer.shown.as_ref().map(|shown| Self::of_shown(question, shown))
    }

    /// Of these groups.
    pub(in crate::cmd) fn of_shown(question: &Question, shown: &[Shown]) -> Self {
        let names = question.outputs.iter().map(|(name, _)| name.clone()).collect();
        Table { names, rows: shown.iter().map(|shown| question.render(shown.group, &shown.values)).collect() }
    }

    /// Puts columns and rows into `object`; returns them as text, unless they are in a file, and how many there are.
    pub(in crate::cmd) fn tell(&self, groups: usize, output: Option<&Path>, object: &mut Json) -> String {
        let hidden = groups.saturating_sub(self.rows.len());
        (object["columns"], object["rows"]) = (json!(self.names), self.cells());
        object["groups_not_shown"] = json!(hidden);
        let mut text = if output.is_none() { self.text() } else { String::new() };
        text += &counted(self.rows.len() as u64, "row");
        if hidden > 0 {
            let verb = if hidden == 1 { "is" } else { "are" };
            text += &format!(", {} {verb} not shown", counted(hidden as u64, "group"));
        }
        if let Some(output) = output {
            text += &format!(", in {}", destination(output));
        }
        text + "\n"
    }

    /// Each row as a list of cells. A number that is not a 64-bit integer is text, so that no reader rounds it.
    pub(in crate::cmd) fn cells(&self) -> Json {
        let cell = |cell: &Cell| match cell {
            Cell::Null => Json::Null,
            Cell::Truth(is) => json!(is),
            Cell::Integer(number) => {
                i64::try_from(*number).map_or_else(|_| json!(number.to_string()), |number| json!(number))
            }
            Cell::Text(text) => json!(text),
        };
        self.rows.iter().map(|row| row.iter().map(cell).collect::<Json>()).collect()
    }

    /// Aligned columns: numbers to the right.
    pub(in crate::cmd) fn text(&self) -> String {
        let rows: Vec<Vec<String>> = self
            .rows
            .iter()
            .map(|row| row.iter().map(|cell| tacit::net::shown(&text(cell))).collect())
            .collect();
        let names: Vec<String> = self.names.iter().map(|name| tacit::net::shown(name)).collect();
        let widths: Vec<usize> = (0..names.len())
            .map(|at| rows.iter().chain([&names]).map(|row| row[at].chars().count()).max().unwrap_or(0))
            .collect();
        let is_number =
            |at: usize| self.rows.iter().all(|row| matches!(row[at], Cell::Integer(_) | Cell::Null));
        let line = |row: &Vec<String>| {
            let cells = row.iter().enumerate().map(|(at, cell)| {
                let blanks = " ".repeat(widths[at] - cell.chars().count());
                if is_number(at) { blanks + cell } else { cell.clone() + &blanks }
            });
            cells.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
        };
        let rule = widths.iter().map(|width| "-".repeat(*width)).collect::<Vec<_>>().join("  ") + "\n";
        line(&names) + &rule + &rows.iter().map(line).collect::<String>()
    }

    /// Writes it to a file, in the format that its name says.
    pub(in crate::cmd) fn write(&self, mut output: Output) -> Result<()> {
        let columns: Vec<(String, Kind)> =
            self.names.iter().enumerate().map(|(at, name)| (name.clone(), self.kind(at))).collect();
        let row = |at: u64| {
            let cells = self.rows[at as usize].iter().zip(&columns);
            cells
                .map(|(cell, (_, kind))| match (cell, kind) {
                    (Cell::Null, _) => Value::Null,
                    (Cell::Truth(is), Kind::Bool) => Value::Bool(*is),
                    (Cell::Integer(number), Kind::Integer { .. }) => Value::Integer(*number),
                    (cell, _) => Value::Text(text(cell)),
                })
                .collect()
        };
        let target = output.target().to_owned();
        values::write_alone(&columns, self.rows.len() as u64, row, &target, &mut output)?;
        output.commit()
    }

    /// The type of a column: integers as long as all fit.
    fn kind(&self, at: usize) -> Kind {
        let cells: Vec<&Cell> =
            self.rows.iter().map(|row| &row[at]).filter(|cell| **cell != Cell::Null).collect();
        let is_integer =
            |cell: &&Cell| matches!(cell, Cell::Integer(number) if i64::try_from(*number).is_ok());
        match cells.first() {
            Some(Cell::Truth(_)) => Kind::Bool,
            Some(Cell::Integer(_)) if cells.iter().all(is_integer) => {
                Kind::Integer { bits: 64, signed: true }
            }
            _ => Kind::Text,
        }
    }
}

fn text(cell: &Cell) -> String {
    match cell {
        Cell::Null => String::new(),
        Cell::Truth(is) => is.to_string(),
        Cell::Integer(number) => number.to_string(),
        Cell::Text(text) => text.clone(),
    }
}

/// Who computes what, line by line.
pub(super) fn explained(question: &Question, work: &Work) -> String {
    let mut lines = vec![question.text.clone()];
    for side in Side::BOTH {
        let table = &question.tables[side as usize];
        let uses: Vec<String> = table
            .uses
            .iter()
            .map(|one| format!("{}:{}", tacit::net::shown(&one.column), one.purpose.name()))
            .collect();
        lines.push(format!(
            "{}: reads {}; puts {} in for each key",
            side.name(),
            uses.join(", "),
            counted(u64::from(work.row_bits[side as usize]), "bit")
        ));
    }
    lines.push(format!(
        "on shares: {} for each place of a key, {} in all; {}; at most {} opened",
        counted(work.row_ands, "AND gate"),
        work.triples,
        counted(work.rounds, "round"),
        counted(work.opened_bits, "bit")
    ));
    lines.extend(noise(question));
    lines.join("\n")
}

/// How far the numbers of the result are off by noise, in a line; nothing without noise.
pub(in crate::cmd) fn noise(question: &Question) -> Option<String> {
    let epsilon = question.epsilon_text()?;
    let off = question.outputs.iter().filter_map(|(name, output)| {
        Some(format!("{} by {}", tacit::net::shown(name), about(question.mean_noise(output)?)))
    });
    let off: Vec<String> = off.collect();
    let each = if off.is_empty() { String::new() } else { format!(": on average {}", off.join(", ")) };
    Some(format!("noise puts numbers off{each} (epsilon {epsilon})"))
}

/// A size with the digits that say something of it.
fn about(size: f64) -> String {
    if size >= 10.0 { format!("{size:.0}") } else { format!("{size:.2}") }
}
