//! Our side of an intersection out of a table: its keys, what we give, and our matching rows.

use super::Job;
use super::reveal::{Column, Duplicates, Gift, Received, Reveal, Revealed, Table};
use crate::{Error, Result};
use std::io::Write;
use std::path::{Path, PathBuf};
use tacit_crypto::text::counted;
use tacit_data::Written;
use tacit_data::csv::Place;
use tacit_data::give::Purpose;
use tacit_data::records::KeySet;
use tacit_data::table::Source;
use tacit_data::values::fraction;

/// What goes in front of the name of a column of the peer's that we have too.
const PEER_PREFIX: &str = "peer_";

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
                "{}: {}, more than the {most} that a run accepts; split the file",
                own.name(),
                counted(own.count(), "distinct key")
            )));
        }
        Ok(own)
    }

    /// Finds what of our rows cannot go to a file called `target`, before anybody is called; see
    /// [`Source::prove`].
    pub fn prove(&self, target: &Path) -> Result<()> {
        Ok(self.source.prove(target)?)
    }

    /// How many cells of ours were left empty in outputs, which could not hold them.
    pub fn left_empty(&self) -> u64 {
        self.source.left_empty()
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

    /// A row's file and its place there.
    fn at(&self, place: Place) -> String {
        let (path, place) = self.source.located(place);
        let name = match path == Path::new("-") {
            true => "-".to_owned(),
            false => tacit_net::shown(&tacit_data::place::shown(&path).to_string_lossy()),
        };
        format!("{name}, {place}")
    }

    /// How many cells of a workbook held errors, and count as empty.
    pub fn error_cells(&self) -> u64 {
        self.source.error_cells()
    }

    /// What we give, out of our columns.
    ///
    /// Errors: columns that are not there or cannot be given, and cells that are no numbers where numbers are
    /// due.
    pub fn gift(&self, job: &Job, duplicates: Duplicates) -> Result<Owned> {
        if job.give.is_empty() {
            return Ok(Owned::None);
        }
        // Amounts may be said with the digits of their fraction: `amount:decimal2`.
        let column = job.give.first().map(|name| self.source.number_column(name));
        let Some(column) = column.filter(|_| job.reveal.column().is_some()) else {
            return self.shown(job, duplicates);
        };
        let (names, purpose) = ([column.name], Purpose::Number(column.form));
        if let Reveal::Of(statistic, _) = job.reveal {
            let mut numbers = vec![statistic.absent(); self.count() as usize];
            self.given(&names, purpose, |element, place, cells| {
                if let Some(number) = self.number(place, cells)? {
                    if number == statistic.absent() {
                        return Err(self.not_a_number(place, ""));
                    }
                    let of = &mut numbers[element];
                    *of = statistic.of_rows(*of, number);
                }
                Ok(())
            })?;
            return Ok(Owned::Numbers(numbers));
        }
        let mut sums = Column::new(self.keys.elements().len());
        self.given(&names, purpose, |element, place, cells| {
            Ok(sums.add(element as u32, self.number(place, cells)?)?)
        })?;
        Ok(Owned::Column(sums))
    }

    /// The columns that the other side is shown.
    fn shown(&self, job: &Job, duplicates: Duplicates) -> Result<Owned> {
        let mut given = Table::new(job.give.iter().map(|name| name.trim()))?;
        self.given(&job.give, Purpose::Shown, |element, place, cells| {
            self.may_go(job, place, cells)?;
            Ok(given.push(element as u32, cells.iter().map(|cell| cell.map(str::as_bytes)))?)
        })?;
        Ok(Owned::Table(given, duplicates))
    }

    /// Refuses cells to give that look like more than one: a file that was read wrongly hands over many.
    fn may_go(&self, job: &Job, place: Place, cells: &[Option<&str>]) -> Result<()> {
        for (name, cell) in job.give.iter().zip(cells) {
            let Some(what) = cell.and_then(|cell| job.unfit(cell)) else { continue };
            let name = tacit_net::shown(name);
            return Err(Error::Input(format!("{}: column `{name}`: {what}", self.at(place))));
        }
        Ok(())
    }

    fn given(
        &self,
        columns: &[String],
        purpose: Purpose,
        visit: impl FnMut(usize, Place, &[Option<&str>]) -> Result<()>,
    ) -> Result<()> {
        self.source.read_given(&self.keys, columns, purpose, visit)
    }

    /// What a function of each common key takes of our `columns`: what `read` makes of a row's cells, or says
    /// is wrong with them. A key of several rows is refused, or has its first row's.
    ///
    /// Errors: a table without such columns, a key of several rows that was to be refused, and what `read`
    /// says, with where the row stands.
    pub fn numbers(
        &self,
        columns: &[String],
        duplicates: Duplicates,
        mut read: impl FnMut(&[&str]) -> std::result::Result<i64, String>,
    ) -> Result<Owned> {
        let mut numbers: Vec<Option<i64>> = vec![None; self.keys.elements().len()];
        self.given(columns, Purpose::Value, |element, place, cells| {
            let fault = |what: &str| Error::Input(format!("{}: {what}", self.at(place)));
            let of = &mut numbers[element];
            if of.is_some() {
                return match duplicates {
                    Duplicates::First => Ok(()),
                    _ => Err(fault(
                        "the key of an earlier row, and a function uses one row per key; make keys unique, or use the first row of each",
                    )),
                };
            }
            let cells: Vec<&str> = cells.iter().map(|cell| cell.unwrap_or("")).collect();
            *of = Some(read(&cells).map_err(|what| fault(&what))?);
            Ok(())
        })?;
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
    ) -> Result<Option<Written>> {
        self.put(job, result, false, target, output)
    }

    /// Writes all of our rows, each with whether its key matches, and with the columns of the peer's where it
    /// gave some, empty where it does not match; returns how many, or nothing if we get no rows.
    pub fn write_all(
        &self,
        job: &Job,
        result: &Revealed,
        target: &Path,
        output: &mut (impl Write + Send),
    ) -> Result<Option<Written>> {
        self.put(job, result, true, target, output)
    }

    /// Writes our matching rows, or all of them, each with whether it matches.
    fn put(
        &self,
        job: &Job,
        result: &Revealed,
        all: bool,
        target: &Path,
        output: &mut (impl Write + Send),
    ) -> Result<Option<Written>> {
        let (source, keys) = (&self.source, &self.keys);
        match (result, &job.reveal) {
            (Revealed::Rows(outcome, _), _) => {
                let Some(matches) = &outcome.matches else { return Ok(None) };
                let rows = match all {
                    true => source.write_marked(keys, matches, target, output)?,
                    false => source.write_matches(keys, matches, target, output)?,
                };
                Ok(Some(Written { rows, emptied: 0 }))
            }
            (Revealed::Payload(gained), Reveal::Payload(columns)) => {
                let Some(received) = &gained.received else { return Ok(None) };
                let more = self.cells(received, columns.len());
                let of = |at: usize| more[at].as_slice();
                Ok(Some(match all {
                    true => source.write_left(keys, columns, PEER_PREFIX, of, target, output)?,
                    false => source.write_joined(keys, columns, PEER_PREFIX, of, target, output)?,
                }))
            }
            _ => Ok(None),
        }
    }

    /// For each of our elements the rows of the peer's, whose cells are text: what is [opened](Revealed::opened) has
    /// no others.
    fn cells(&self, received: &Received, columns: usize) -> Vec<Vec<Vec<Option<String>>>> {
        let text = |cell: &Option<Vec<u8>>| String::from_utf8(cell.clone()?).ok();
        let mut more = vec![Vec::new(); self.keys.elements().len()];
        for found in &received.matches {
            let rows: Vec<Vec<_>> =
                found.rows.iter().map(|row| row.iter().take(columns).map(text).collect()).collect();
            more[found.element as usize] = rows;
        }
        more
    }

    /// Errors where an output called `target` cannot hold whatever the peer may give in this job.
    pub fn holds(&self, job: &Job, target: &Path) -> Result<()> {
        match &job.reveal {
            Reveal::Payload(columns) if !columns.is_empty() => Ok(self
                .source
                .holds_behind(target, &tacit_data::named(std::iter::empty(), columns, PEER_PREFIX))?),
            _ => Ok(()),
        }
    }

    /// Writes our rows without a match, those without a key among them; returns how many, or nothing if we do
    /// not learn which they are.
    pub fn write_rest(
        &self,
        result: &Revealed,
        target: &Path,
        output: &mut (impl Write + Send),
    ) -> Result<Option<u64>> {
        let matches: Option<Vec<u32>> = match result {
            Revealed::Rows(outcome, _) => outcome.matches.clone(),
            Revealed::Payload(gained) => {
                let received = gained.received.as_ref();
                received.map(|received| received.matches.iter().map(|found| found.element).collect())
            }
            _ => None,
        };
        let write = |matches: Vec<u32>| self.source.write_rest(&self.keys, &matches, target, output);
        Ok(matches.map(write).transpose()?)
    }

    /// The number in the one cell of a row; nothing where it is empty.
    fn number(&self, place: Place, cells: &[Option<&str>]) -> Result<Option<i64>> {
        match cells.first().copied().flatten().map_or("", str::trim) {
            "" => Ok(None),
            cell => cell.parse().map(Some).map_err(|_| self.not_a_number(place, cell)),
        }
    }

    /// A cell that cannot be added up; its content stays unsaid.
    fn not_a_number(&self, place: Place, cell: &str) -> Error {
        let remedy = fraction(cell).unwrap_or_else(|| {
            "write amounts in their smallest unit, and leave a cell empty where there is none".to_owned()
        });
        Error::Input(format!(
            "{}: the column to add up has a cell that is not a whole number of 64 bits; {remedy}",
            self.at(place)
        ))
    }
}

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
    /// The bytes that the columns of rows take for each of `keys` keys, as they are sent; nothing where none are
    /// given.
    pub fn bytes_a_key(&self, keys: u64) -> Result<Option<u64>> {
        match self {
            Owned::Table(table, duplicates) => Ok(Some(table.bytes_a_key(keys as usize, *duplicates)?)),
            _ => Ok(None),
        }
    }

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
