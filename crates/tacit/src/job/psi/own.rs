//! Our side of an intersection out of a table: its keys, what we give, and our matching rows.

use super::Job;
use super::reveal::{Column, Duplicates, Gift, Reveal, Revealed, Table};
use crate::{Error, Result};
use std::io::Write;
use std::path::{Path, PathBuf};
use tacit_data::records::KeySet;
use tacit_data::table::Source;

/// Our table: what a row's key is, and the keys themselves.
pub struct Own {
    source: Source,
    keys: KeySet,
    path: PathBuf,
}

impl Own {
    /// Reads the keys of `source`, the table at `path`. `progress` is told now and then how many of the
    /// file's bytes have been read.
    ///
    /// Errors: a table that cannot be read, and more keys than the job takes.
    pub fn read(source: Source, path: &Path, job: &Job, progress: impl FnMut(u64)) -> Result<Self> {
        let keys = source.read_keys(progress)?;
        let most = job.max_keys();
        let own = Own { source, keys, path: path.to_owned() };
        job.check_keys(own.count())?;
        if own.count() > most {
            return Err(Error::Input(format!(
                "{}: {} distinct keys, more than the {most} that a run can take; split the file",
                own.name(),
                own.count()
            )));
        }
        Ok(own)
    }

    /// The keys of all rows.
    pub fn keys(&self) -> &KeySet {
        &self.keys
    }

    /// Its distinct keys.
    pub fn count(&self) -> u64 {
        self.keys.elements().len() as u64
    }

    /// The file's size when it was opened.
    pub fn bytes(&self) -> u64 {
        self.source.bytes()
    }

    /// A digest of the table that was read; see [`Source::digest`].
    pub fn digest(&self) -> Result<[u8; 32]> {
        Ok(self.source.digest()?)
    }

    fn name(&self) -> String {
        tacit_net::shown(&tacit_data::place::shown(&self.path).to_string_lossy())
    }

    /// What we give, out of our columns.
    ///
    /// Errors: a table without columns to give, and cells that are no numbers where numbers are due.
    pub fn gift(&self, job: &Job, duplicates: Duplicates) -> Result<Owned> {
        if job.give.is_empty() {
            return Ok(Owned::None);
        }
        let source = self.source.csv()?;
        let positions = source.positions(&job.give)?;
        let mut row = 0;
        let mut each = |take: &mut Take<'_>| -> Result<()> {
            source.read_columns(&positions, |line, cells| {
                let element = self.keys.element_of(row);
                row += 1;
                element.map_or(Ok(()), |element| take(element as u32, line, cells))
            })?;
            if row == self.keys.rows() { Ok(()) } else { Err(source.changed().into()) }
        };
        if let Reveal::Of(statistic, _) = job.reveal {
            let mut numbers = vec![statistic.absent(); self.keys.elements().len()];
            each(&mut |element, line, cells| {
                if let Some(number) = self.number(line, cells)? {
                    if number == statistic.absent() {
                        return Err(self.not_a_number(line));
                    }
                    let of = &mut numbers[element as usize];
                    *of = statistic.of_rows(*of, number);
                }
                Ok(())
            })?;
            return Ok(Owned::Numbers(numbers));
        }
        if job.reveal.is_aggregate() {
            let mut column = Column::new(self.keys.elements().len());
            each(&mut |element, line, cells| Ok(column.add(element, self.number(line, cells)?)?))?;
            return Ok(Owned::Column(column));
        }
        let mut given = Table::new(job.give.iter().map(|name| name.trim()))?;
        each(&mut |element, _, cells| {
            // An empty cell is a null: the file cannot tell the two apart.
            let cells = cells.iter().map(|cell| (!cell.is_empty()).then_some(cell.as_bytes()));
            Ok(given.push(element, cells)?)
        })?;
        Ok(Owned::Table(given, duplicates))
    }

    /// What a function of each common key takes of our `columns`: what `read` makes of a row's cells, or says
    /// is wrong with them. A key of several rows is refused, or has its first row's.
    ///
    /// Errors: a table without such columns, a key of several rows that was to be refused, and what `read`
    /// says, with the row's line.
    pub fn numbers(
        &self,
        columns: &[String],
        duplicates: Duplicates,
        mut read: impl FnMut(&[&str]) -> std::result::Result<i64, String>,
    ) -> Result<Owned> {
        let source = self.source.csv()?;
        let mut numbers: Vec<Option<i64>> = vec![None; self.keys.elements().len()];
        let mut row = 0;
        source.read_columns(&source.positions(columns)?, |line, cells| {
            let element = self.keys.element_of(row);
            row += 1;
            let Some(of) = element.and_then(|element| numbers.get_mut(element)) else { return Ok(()) };
            let fault = |what: &str| Error::Input(format!("{}, line {line}: {what}", self.name()));
            if of.is_some() {
                return match duplicates {
                    Duplicates::First => Ok(()),
                    _ => Err(fault(
                        "the key of an earlier row; a function takes one row a key: make keys unique, or take the \
                         first row of each",
                    )),
                };
            }
            *of = Some(read(cells).map_err(|what| fault(&what))?);
            Ok(())
        })?;
        if row != self.keys.rows() {
            return Err(source.changed().into());
        }
        Ok(Owned::Numbers(numbers.into_iter().map(Option::unwrap_or_default).collect()))
    }

    /// Writes our matching rows, with the columns of the peer's where it gave some; returns how many, or
    /// nothing if we get no rows.
    pub fn write(
        &self,
        job: &Job,
        result: &Revealed,
        target: &Path,
        output: &mut (impl Write + Send),
    ) -> Result<Option<u64>> {
        Ok(match (result, &job.reveal) {
            (Revealed::Rows(outcome, _), _) => match &outcome.matches {
                Some(matches) => Some(self.source.write_matches(&self.keys, matches, target, output)?),
                None => None,
            },
            (Revealed::Payload(gained), Reveal::Payload(columns)) => match &gained.received {
                Some(received) => {
                    let text = |cell: &Option<Vec<u8>>| {
                        cell.as_ref().map_or(String::new(), |cell| String::from_utf8_lossy(cell).into_owned())
                    };
                    let mut more = vec![Vec::new(); self.keys.elements().len()];
                    for found in &received.matches {
                        more[found.element as usize] =
                            found.rows.iter().map(|row| row.iter().map(text).collect()).collect();
                    }
                    let of = |at: usize| more[at].as_slice();
                    Some(self.source.csv()?.write_joined(&self.keys, columns, "peer_", of, target, output)?)
                }
                None => None,
            },
            _ => None,
        })
    }

    /// The number in the one cell of a row; nothing where it is empty.
    fn number(&self, line: u64, cells: &[&str]) -> Result<Option<i64>> {
        match cells.first().map_or("", |cell| cell.trim()) {
            "" => Ok(None),
            cell => cell.parse().map(Some).map_err(|_| self.not_a_number(line)),
        }
    }

    /// A cell that cannot be added up; its content stays unsaid.
    fn not_a_number(&self, line: u64) -> Error {
        Error::Input(format!(
            "{}, line {line}: the column to add up holds something other than a whole number of 64 bits; \
             write amounts in their smallest unit, and leave a cell empty where there is none",
            self.name()
        ))
    }
}

/// Takes a row with a key: its element, its line, and the cells of our columns.
type Take<'a> = dyn FnMut(u32, u64, &[&str]) -> Result<()> + 'a;

/// What we give, read out of our table.
pub enum Owned {
    /// Nothing.
    None,
    /// Numbers to add up.
    Column(Column),
    /// Numbers of a statistic.
    Numbers(Vec<i64>),
    /// Rows of which columns may be given.
    Table(Table, Duplicates),
}

impl Owned {
    /// The same, as a run takes it.
    pub fn borrowed(&self) -> Gift<'_> {
        match self {
            Owned::None => Gift::None,
            Owned::Column(column) => Gift::Column(column),
            Owned::Numbers(numbers) => Gift::Numbers(numbers),
            Owned::Table(table, duplicates) => Gift::Table(table, *duplicates),
        }
    }
}
