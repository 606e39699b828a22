//! What has been spent of a policy's budgets, in a file that outlives the process.
//!
//! A run is charged before it starts, with the most that it can reveal, and the charge is on the disk before
//! the peer hears that it may go. Nothing but [`refund`](Ledger::refund) takes a charge back: no restart, no
//! reload and no other policy; and what is taken back stays counted as an attempt, as offers are. A line
//! holds one entry and a hash of it and of all lines before, so that a line that was changed or taken out of
//! the middle is noticed; the file has to be kept from those who may not raise a budget.
//!
//! Budgets go by peer and source. Names that were ever in force together ([`know`](Ledger::know)) are one
//! peer's, or one source's, for good: renaming, in however many steps, does not fill a budget up again.
//!
//! The file is as long as the accounts need: once lines about attempts outweigh them, it is written anew, as a
//! whole or not at all.

mod book;
mod known;
mod names;

pub use known::{ACCEPT, Compared};

use crate::clock::Time;
use crate::file::{Lines, shown};
use crate::json;
use book::{Book, Entry};
use known::Known;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Instant;
use tacit::{Error, Result};

/// What one run costs.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Charge {
    /// The run.
    pub run: String,
    /// When it started, in seconds since 1970.
    pub time: u64,
    /// The job's name.
    pub job: String,
    /// The source's name; of lookups, which publication.
    pub source: String,
    /// The source's file or address; of lookups, which publication.
    pub input: String,
    /// The peer's label.
    pub peer: String,
    /// The fingerprint of its key, the first one where keys followed each other, or its certificate's name.
    pub fingerprint: String,
    /// The most rows that the run can reveal to the peer; of lookups, queries.
    pub rows: u64,
    /// Whether the peer gets a number over all common keys.
    pub aggregate: bool,
    /// The epsilon of a question's noise, in millionths.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub epsilon: u64,
}

impl Charge {
    /// Of a run of no name that costs nothing: what asks for what has been spent.
    pub fn nothing(time: u64, job: &str, source: (&str, String), peer: (&str, String)) -> Self {
        Charge {
            run: String::new(),
            time,
            job: job.to_owned(),
            source: source.0.to_owned(),
            input: source.1,
            peer: peer.0.to_owned(),
            fingerprint: peer.1,
            rows: 0,
            aggregate: false,
            epsilon: 0,
        }
    }
}

#[allow(clippy::trivially_copy_pass_by_ref)] // Serde gives a reference.
pub(crate) fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// What a ledger calls the peer of this label.
pub(crate) fn peer_name(label: &str) -> String {
    format!("peer {label}")
}

/// What it calls a peer with the key of this fingerprint, or with this certificate.
pub(crate) fn key_name(account: &str) -> String {
    format!("key {account}")
}

/// What it calls the source of this name.
pub(crate) fn source_name(name: &str) -> String {
    format!("source {name}")
}

/// What it calls a source at this place.
pub(crate) fn place_name(place: &str) -> String {
    format!("place {place}")
}

fn is_of_peer(name: &str) -> bool {
    name.starts_with("peer ") || name.starts_with("key ")
}

/// What a peer has spent so far of the budgets that a charge would draw on.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Spent {
    /// Runs of the job today.
    pub runs_today: u64,
    /// Offers of the job today, whatever came of them.
    pub offers_today: u64,
    /// Runs of the job today that came to nothing, and whose charges were taken back.
    pub returned_today: u64,
    /// Rows of the source, in all.
    pub rows: u64,
    /// Numbers over all common keys of the source, in all.
    pub aggregates: u64,
    /// The epsilons of all answers about the source, in millionths.
    pub epsilon: u64,
    /// Runs on the source that broke off after they began, in all; they are charged.
    pub broken: u64,
}

/// The charges of a service.
pub struct Ledger {
    /// Nothing where the ledger is looked at alone.
    lines: Option<Lines>,
    book: Book,
    /// The charges of runs that began and have not ended.
    open: BTreeMap<String, Charge>,
    known: Known,
    /// The hash of all lines so far.
    chain: [u8; 32],
    /// When the book's latest time was written or read.
    since: Instant,
    /// Bytes that the file may have before it is written anew.
    room: u64,
    /// Why it could not be written anew, if it was tried.
    fault: Option<String>,
}

const CHAIN: &str = "tacit 1 ledger chain";
/// A file that is smaller is not worth being written anew.
const ROOM: u64 = 1 << 18;

pub(crate) fn chained(before: &[u8; 32], entry: &str) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new_derive_key(CHAIN);
    hasher.update(before);
    hasher.update(entry.as_bytes());
    *hasher.finalize().as_bytes()
}

fn line(chain: &mut [u8; 32], entry: &Entry) -> Result<String> {
    let text = serde_json::to_string(entry).map_err(|e| Error::Other(format!("the ledger: {e}")))?;
    *chain = chained(chain, &text);
    Ok(format!("{} {text}", json::hex(&chain[..])))
}

impl Ledger {
    /// Opens the ledger at `path`, or begins one; no other process may have it.
    ///
    /// Errors: a file that cannot be read, and a line that does not follow from those before it.
    pub fn open(path: &Path) -> Result<Self> {
        let mut ledger = Ledger::empty();
        let lines = Lines::open_alone(path, &mut |number, line| ledger.read(path, number, line))?;
        ledger.lines = Some(lines);
        ledger.begin();
        // One that is long already is made shorter with its first entry, once it was compared with the records.
        Ok(ledger)
    }

    /// Reads the ledger at `path` as it is now, also while a service has it; charges nothing.
    ///
    /// Errors: as [`open`](Self::open); a file that is not there is an empty ledger.
    pub fn look(path: &Path) -> Result<Self> {
        let mut ledger = Ledger::empty();
        Lines::look(path, &mut |number, line| ledger.read(path, number, line))?;
        ledger.begin();
        Ok(ledger)
    }

    /// A ledger without entries, and without a file.
    pub(crate) fn empty() -> Self {
        Ledger {
            lines: None,
            book: Book::default(),
            open: BTreeMap::new(),
            known: Known::default(),
            chain: [0; 32],
            since: Instant::now(),
            room: ROOM,
            fault: None,
        }
    }

    pub(crate) fn read(&mut self, path: &Path, number: usize, line: &str) -> Result<()> {
        let entry = line.split_once(' ').and_then(|(hash, entry)| {
            let chain = chained(&self.chain, entry);
            let entry = (json::from_hex(hash) == Some(chain)).then(|| serde_json::from_str(entry).ok());
            Some((chain, entry??))
        });
        if let Some((chain, entry)) = entry
            && self.book.add(&entry, &mut self.open)
        {
            self.known.note(&entry);
            self.chain = chain;
            return Ok(());
        }
        Err(Error::Input(format!(
            "{}, line {number}: the ledger was changed or is damaged; restore the newest copy, or move it \
             away and {ACCEPT}, which charges the runs of the records again",
            shown(path)
        )))
    }

    /// What was read is what there is: runs of processes that are gone stay charged.
    fn begin(&mut self) {
        self.open.clear();
        self.since = Instant::now();
    }

    fn write(&mut self, entry: &Entry) -> Result<()> {
        let Some(lines) = &mut self.lines else {
            return Err(Error::Other("a ledger that is looked at takes no entry".into()));
        };
        let mut chain = self.chain;
        lines.append(&line(&mut chain, entry)?)?;
        let (length, before) = (lines.length(), self.book.latest);
        self.chain = chain;
        self.book.add(entry, &mut self.open);
        self.known.note(entry);
        if self.book.latest > before {
            self.since = Instant::now();
        }
        if length > self.room {
            self.shorten();
        }
        Ok(())
    }

    /// Writes the file anew with what its lines add up to, if that is much less. A failure changes nothing.
    pub(crate) fn shorten(&mut self) {
        let Some(lines) = &mut self.lines else { return };
        let mut chain = [0; 32];
        let mut entries = self.book.entries();
        let written = self.known.mark(self.book.latest()).and_then(|mark| {
            entries.extend(mark.map(Entry::Mark));
            entries.iter().map(|entry| line(&mut chain, entry)).collect::<Result<Vec<String>>>()
        });
        let replaced = written.and_then(|all| lines.replace(&all));
        match replaced {
            Ok(()) => self.chain = chain,
            Err(error) => self.fault = Some(error.to_string()),
        }
        // Four times what is needed, so that the work for it is small beside that of the lines between.
        self.room = ROOM.max(lines.length().saturating_mul(4));
    }

    /// An error where no run can be charged.
    pub fn check(&self) -> Result<()> {
        self.lines.as_ref().map_or(Ok(()), Lines::check)
    }

    /// Why the file could not be made shorter, once.
    pub fn fault(&mut self) -> Option<String> {
        self.fault.take()
    }

    /// The time that a day's runs are counted by: never before that of a charge, and it goes on from there
    /// even where the clock is behind.
    pub fn now(&self, clock: Time) -> Time {
        self.now_after(clock, self.since.elapsed().as_secs())
    }

    fn now_after(&self, clock: Time, passed: u64) -> Time {
        match self.book.latest {
            0 => clock,
            latest => Time(clock.0.max(latest.saturating_add(passed))),
        }
    }

    /// What the peer of `charge` has spent of the budgets that it draws on.
    pub fn spent(&self, charge: &Charge) -> Spent {
        self.book.spent(charge)
    }

    /// The source of the latest charge of the job of this name.
    pub fn latest_source(&self, job: &str) -> Option<&str> {
        self.book.latest_source(job)
    }

    /// Takes note of which names are in force together, each group those of one peer or of one source.
    pub fn know(&mut self, groups: &[Vec<String>]) -> Result<()> {
        for names in groups {
            // Of one name there is nothing to tell.
            if names.iter().any(|name| *name != names[0]) && !self.book.are_one(names) {
                self.write(&Entry::Same(names.clone()))?;
            }
        }
        Ok(())
    }

    /// As [`know`](Self::know), for a ledger that is looked at: nothing is written.
    pub fn suppose(&mut self, groups: &[Vec<String>]) {
        groups.iter().for_each(|names| _ = self.book.add(&Entry::Same(names.clone()), &mut self.open));
    }

    /// Whether all these names are one peer's, or one source's.
    pub fn are_one(&self, names: &[String]) -> bool {
        self.book.are_one(names)
    }

    /// Places of all sources that were ever in force.
    pub fn places(&self) -> Vec<String> {
        self.book.places()
    }

    /// Counts an offer that is about to be made; it is on the disk when this returns.
    pub fn offer(&mut self, charge: Charge) -> Result<()> {
        self.write(&Entry::Offer(charge))
    }

    /// Charges a run; the charge is on the disk when this returns.
    ///
    /// Errors: a run that is charged already, and those of the file.
    pub fn charge(&mut self, charge: Charge) -> Result<()> {
        if self.open.contains_key(&charge.run) {
            return Err(Error::Other(format!("run {} was charged already", charge.run)));
        }
        self.write(&Entry::Charge(charge))
    }

    /// The names of the filters of all questions that the peer of `charge` was answered of its source.
    pub(crate) fn filters(&self, charge: &Charge) -> BTreeSet<String> {
        self.book.filters(charge)
    }

    /// The names of the filters of all questions, of all peers.
    pub(crate) fn all_filters(&self) -> impl Iterator<Item = &String> {
        self.book.all_filters()
    }

    /// Whether the filter of any question was noted.
    pub(crate) fn has_filters(&self) -> bool {
        self.book.has_filters()
    }

    /// Notes the filter of a question that is about to be answered; it is on the disk when this returns.
    ///
    /// Errors: a run that is not charged, and those of the file.
    pub(crate) fn filter(&mut self, run: &str, filter: &str) -> Result<()> {
        match self.open.get(run).cloned() {
            Some(charge) => self.write(&Entry::Filter { charge, filter: filter.to_owned() }),
            None => Err(Error::Other(format!("run {run} has no charge"))),
        }
    }

    /// Takes back the charge of a run that ended before anything of our table left.
    pub fn refund(&mut self, run: &str) -> Result<()> {
        match self.open.get(run).cloned() {
            Some(charge) => self.write(&Entry::Returned(charge)),
            None => Err(Error::Other(format!("run {run} has no charge to take back"))),
        }
    }

    /// Counts a run as one that broke off after it began; it stays charged. Returns how many of the peer's
    /// runs on this source did.
    pub fn broke(&mut self, run: &str) -> Result<u64> {
        let Some(charge) = self.open.get(run).cloned() else {
            return Err(Error::Other(format!("run {run} has no charge")));
        };
        self.write(&Entry::Broken(charge.clone()))?;
        Ok(self.spent(&charge).broken)
    }

    /// The time that a run is charged to, while it goes on.
    pub fn charged(&self, run: &str) -> Option<Time> {
        self.open.get(run).map(|charge| Time(charge.time))
    }

    /// A run has ended, and stays charged.
    pub fn settle(&mut self, run: &str) {
        self.open.remove(run);
    }

    /// The record of a run is on the disk.
    pub fn recorded(&mut self, run: &str) {
        self.known.recorded(run);
    }
}

#[cfg(test)]
impl Ledger {
    /// Adds a charge without a file.
    pub(crate) fn add(&mut self, charge: Charge) {
        assert!(self.book.add(&Entry::Charge(charge), &mut self.open));
    }
}

#[cfg(test)]
mod tests;
