//! Our side of an intersection out of a table: its keys, what we give, and our matching rows.

use super::Job;
use super::Outcome;
use super::elements::Elements;
use super::reveal::{Column, Duplicates, Gift, Received, Reveal, Revealed, Table};
use crate::{Error, Result};
use std::io::Write;
use std::path::{Path, PathBuf};
use tacit_data::csv::Place;
use tacit_data::give::Purpose;
use tacit_data::records::{Counts, KeySet};
use tacit_data::table::Source;
use tacit_data::values::fraction;
use tacit_data::{By, Written};

/// What goes in front of the name of a column of the peer's that we have too.
const PEER_PREFIX: &str = "peer_";

/// Our table: what a row's key is, and the keys themselves.
pub struct Own {
    source: Source,
    keys: KeySet,
    path: PathBuf,
    /// The column of the output that says by which identifier a row matches, and the identifiers' names.
    matched_by: Option<(String, Vec<String>)>,
}

impl Own {
    /// Reads the keys of `source`, the table at `path`. `progress` is told now and then how many of the
    /// file's bytes have been read.
    ///
    /// Errors: a table that cannot be read, and more keys than the job takes.
    pub fn read(source: Source, path: &Path, job: &Job, progress: impl FnMut(u64)) -> Result<Self> {
        let keys = source.read_keys(progress)?;
        let most = job.max_keys();
        let own = Own { source, keys, path: path.to_owned(), matched_by: None };
        job.check_keys(own.count())?;
        if own.count() > most {
            let elements = Elements::of(job.key.as_ref());
            return Err(Error::Input(format!(
                "{}: {}, more than the {most} that a run accepts; split the file{}",
                own.name(),
                elements.counted(own.count()),
                if elements == Elements::Variants { ", or give fewer columns a near type" } else { "" }
            )));
        }
        Ok(own)
    }

    /// The table at `path`, whose keys have been read already.
    pub fn new(source: Source, keys: KeySet, path: &Path) -> Self {
        Own { source, keys, path: path.to_owned(), matched_by: None }
    }

    /// Finds the columns and cells that cannot be given, as [`gift`](Self::gift) does, and keeps none.
    pub fn check_gift(&self, job: &Job) -> Result<()> {
        if job.give.is_empty() {
            return Ok(());
        }
        match job.reveal.column() {
            Some(_) => self.gift(job, Duplicates::Refuse).map(drop),
            None => self.given(&job.give, Purpose::Shown, |_, place, cells| self.may_go(job, place, cells)),
        }
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

    /// Writes matching rows with a column of this name, which says by which of the `names` of identifiers a row matches.
    ///
    /// Errors: a table that has such a column.
    pub fn tell_matched_by(&mut self, column: &str, names: Vec<String>) -> Result<()> {
        is_free(&self.source, column)?;
        self.matched_by = Some((column.to_owned(), names));
        Ok(())
    }

    /// For each identifier how many of its distinct values match, and how many rows match by it; nothing where the
    /// result does not tell which keys match.
    pub fn matched(&self, outcome: &Outcome) -> Option<Vec<Counts>> {
        Some(self.keys.matched(outcome.matches.as_deref()?))
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

    pub(in crate::job) fn name(&self) -> String {
        tacit_net::shown(&tacit_data::place::shown(&self.path).to_string_lossy())
    }

    /// A row's file and its place there.
    pub(in crate::job) fn at(&self, place: Place) -> String {
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
        if column.form != job.reveal.form() {
            let name = tacit_net::shown(&column.name);
            let what = format!(
                "the table has a column called `{name}`, whose end would be read as a number of decimal places; rename it"
            );
            return Err(Error::Parameter { name: "give", what });
        }
        let (names, purpose) = ([column.name], Purpose::Number(column.form));
        if let Reveal::Of(statistic, _) = job.reveal {
            let mut numbers = vec![statistic.absent(); self.count() as usize];
            self.given(&names, purpose, |element, place, cells| {
                if let Some(number) = self.number(place, &names[0], cells)? {
                    if number == statistic.absent() {
                        return Err(Error::Input(format!(
                            "{}: column `{}` has the {} number of 64 bits, which stands for an empty cell here; use a \
                             larger unit, or fewer digits after the point",
                            self.at(place),
                            tacit_net::shown(names[0].trim()),
                            if number < 0 { "smallest" } else { "largest" }
                        )));
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
            Ok(sums.add(element as u32, self.number(place, &names[0], cells)?)?)
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

    /// Tells the cells of every row with a key to `visit`; see [`Source::read_given`].
    pub(in crate::job) fn given(
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
            if let Some((_, column)) = cells.iter().zip(columns).find(|(cell, _)| cell.trim().is_empty()) {
                let column = tacit_net::shown(column.trim());
                return Err(fault(&format!("column `{column}`: the cell is empty; fill it in, or leave the row out")));
            }
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
                let rows = match (all, self.by()) {
                    (false, None) => source.write_matches(keys, matches, target, output)?,
                    how => source.write_matches_by(keys, matches, how, target, output)?,
                };
                Ok(Some(Written { rows, emptied: 0 }))
            }
            (Revealed::Payload(gained), Reveal::Payload(columns)) => {
                let Some(received) = &gained.received else { return Ok(None) };
                let more = self.cells(received, columns.len());
                let of = |at: usize| more[at].as_slice();
                let names = (&columns[..], PEER_PREFIX);
                Ok(Some(source.write_joined_by(keys, names, of, (all, self.by()), target, output)?))
            }
            _ => Ok(None),
        }
    }

    fn by(&self) -> Option<By<'_>> {
        self.matched_by.as_ref().map(|(column, names)| By { column, names })
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
        let mut names: Vec<String> = self.matched_by.iter().map(|(column, _)| column.clone()).collect();
        if let Reveal::Payload(columns) = &job.reveal {
            names.extend(tacit_data::named(std::iter::empty(), columns, PEER_PREFIX));
        }
        if names.is_empty() { Ok(()) } else { Ok(self.source.holds_behind(target, &names)?) }
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

    /// The number in the one cell of a row, of the column called so; nothing where it is empty.
    fn number(&self, place: Place, column: &str, cells: &[Option<&str>]) -> Result<Option<i64>> {
        match cells.first().copied().flatten().map_or("", str::trim) {
            "" => Ok(None),
            cell => cell.parse().map(Some).map_err(|_| self.not_a_number(place, column, cell)),
        }
    }

    /// A cell that cannot be added up; its content stays unsaid.
    fn not_a_number(&self, place: Place, column: &str, cell: &str) -> Error {
        let digits = cell.trim_start_matches(['-', '+']);
        let is_large = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        let remedy = match fraction(cell) {
            Some(remedy) => remedy,
            None if is_large => {
                "the number is too large; use a larger unit, or fewer digits after the point".to_owned()
            }
            None => {
                "write amounts in their smallest unit, and leave a cell empty where there is none".to_owned()
            }
        };
        Error::Input(format!(
            "{}: column `{}` has a cell that is not a whole number of 64 bits; {remedy}",
            self.at(place),
            tacit_net::shown(column.trim())
        ))
    }
}

/// An error where the table has a column of the name that the output is to say in by what a row matches.
pub fn is_free(source: &Source, column: &str) -> Result<()> {
    let what = match column.trim() {
        "" => "the column needs a name".to_owned(),
        name if source.has_column(name) => {
            format!("your table has a column `{}` already; choose another name", tacit_net::shown(name))
        }
        _ => return Ok(()),
    };
    Err(Error::Parameter { name: "matched-by", what })
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
