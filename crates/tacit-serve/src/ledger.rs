//! What has been spent of a policy's budgets, in a file that outlives the process.
//!
//! A run is charged before it starts, with the most that it can reveal, and the charge is on the disk before
//! the peer hears that it may go. Nothing but [`refund`](Ledger::refund) takes a charge back: no restart, no
//! reload and no other policy. A line holds one entry and a hash of it and of all lines before, so that a
//! line that was changed or taken out of the middle is noticed; the file has to be kept from those who may
//! not raise a budget.
//!
//! Budgets go by peer and source. A peer is the same if its label or its key is, a source if its name or its
//! file is: renaming one does not fill a budget up again.

use crate::clock::Time;
use crate::file::{Lines, shown};
use crate::json;
use serde::{Deserialize, Serialize};
use std::path::Path;
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
}

impl Charge {
    fn is_same_peer(&self, other: &Charge) -> bool {
        self.peer == other.peer || self.fingerprint == other.fingerprint
    }

    fn is_same_source(&self, other: &Charge) -> bool {
        self.source == other.source || self.input == other.input
    }
}

/// What a peer has spent so far of the budgets that a charge would draw on.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Spent {
    /// Runs of the job today.
    pub runs_today: u64,
    /// Rows of the source, in all.
    pub rows: u64,
    /// Numbers over all common keys of the source, in all.
    pub aggregates: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
enum Entry {
    Charge(Charge),
    Refund { run: String },
}

/// The charges of a service.
pub struct Ledger {
    lines: Lines,
    charges: Vec<Charge>,
    /// The hash of all lines so far.
    chain: [u8; 32],
    /// The latest time of a charge: a clock that is put back does not make a day new.
    latest: u64,
}

const CHAIN: &str = "tacit 1 ledger chain";

fn chained(before: &[u8; 32], entry: &str) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new_derive_key(CHAIN);
    hasher.update(before);
    hasher.update(entry.as_bytes());
    *hasher.finalize().as_bytes()
}

impl Ledger {
    /// Opens the ledger at `path`, or begins one; no other process may have it.
    ///
    /// Errors: a file that cannot be read, and a line that does not follow from those before it.
    pub fn open(path: &Path) -> Result<Self> {
        let (lines, found) = Lines::open_alone(path)?;
        let mut ledger = Ledger { lines, charges: Vec::new(), chain: [0; 32], latest: 0 };
        for (at, line) in found.iter().enumerate() {
            let entry = line.split_once(' ').and_then(|(hash, entry)| {
                let chain = chained(&ledger.chain, entry);
                (json::from_hex(hash) == Some(chain)).then_some((chain, entry))
            });
            let read = entry.and_then(|(chain, entry)| Some((chain, serde_json::from_str(entry).ok()?)));
            let Some((chain, entry)) = read else {
                return Err(Error::Input(format!(
                    "{}, line {}: the ledger was changed or is damaged; put back what is right from where you keep \
                     copies, or move it away and know that every budget starts anew",
                    shown(path),
                    at + 1
                )));
            };
            ledger.chain = chain;
            ledger.book(entry);
        }
        Ok(ledger)
    }

    fn book(&mut self, entry: Entry) {
        match entry {
            Entry::Charge(charge) => {
                self.latest = self.latest.max(charge.time);
                self.charges.push(charge);
            }
            Entry::Refund { run } => self.charges.retain(|charge| charge.run != run),
        }
    }

    fn write(&mut self, entry: Entry) -> Result<()> {
        let text = serde_json::to_string(&entry).map_err(|e| Error::Other(format!("the ledger: {e}")))?;
        let chain = chained(&self.chain, &text);
        self.lines.append(&format!("{} {text}", json::hex(&chain)))?;
        self.chain = chain;
        self.book(entry);
        Ok(())
    }

    /// The time to go by: never before that of a charge.
    pub fn now(&self, clock: Time) -> Time {
        Time(clock.0.max(self.latest))
    }

    /// What the peer of `charge` has spent of the budgets that it draws on.
    pub fn spent(&self, charge: &Charge) -> Spent {
        let mut spent = Spent::default();
        for one in self.charges.iter().filter(|one| one.is_same_peer(charge)) {
            if one.job == charge.job && Time(one.time).day() == Time(charge.time).day() {
                spent.runs_today += 1;
            }
            if one.is_same_source(charge) {
                spent.rows = spent.rows.saturating_add(one.rows);
                spent.aggregates += u64::from(one.aggregate);
            }
        }
        spent
    }

    /// The last charge of the job of this name.
    pub fn latest_of(&self, job: &str) -> Option<&Charge> {
        self.charges.iter().rev().find(|charge| charge.job == job)
    }

    /// Charges a run; the charge is on the disk when this returns.
    ///
    /// Errors: a run that is charged already, and those of the file.
    pub fn charge(&mut self, charge: Charge) -> Result<()> {
        if self.charges.iter().any(|one| one.run == charge.run) {
            return Err(Error::Other(format!("run {} was charged already", charge.run)));
        }
        self.write(Entry::Charge(charge))
    }

    /// Takes back the charge of a run that ended before anything of our table left.
    pub fn refund(&mut self, run: &str) -> Result<()> {
        self.write(Entry::Refund { run: run.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn charge(run: &str, time: u64, rows: u64) -> Charge {
        Charge {
            run: run.into(),
            time,
            job: "match".into(),
            source: "customers".into(),
            input: "customers.csv".into(),
            peer: "bob".into(),
            fingerprint: "f".into(),
            rows,
            aggregate: rows == 0,
        }
    }

    #[test]
    fn charges_outlive_the_process_and_names_do_not_reset_them() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger");
        let mut ledger = Ledger::open(&path).unwrap();
        ledger.charge(charge("a", 10, 100)).unwrap();
        ledger.charge(charge("b", 86_400, 7)).unwrap();
        ledger.charge(charge("c", 86_500, 0)).unwrap();
        assert!(ledger.charge(charge("a", 90_000, 1)).is_err(), "a run is charged once");
        drop(ledger);
        let mut ledger = Ledger::open(&path).unwrap();
        let spent = ledger.spent(&charge("d", 90_000, 0));
        assert_eq!(spent, Spent { runs_today: 2, rows: 107, aggregates: 1 });
        // A new key under the old label, and an old key under a new one; a source renamed, and one whose file
        // moved.
        let mut other = charge("d", 90_000, 0);
        (other.fingerprint, other.source) = ("g".into(), "clients".into());
        assert_eq!(ledger.spent(&other), spent);
        other = charge("d", 90_000, 0);
        (other.peer, other.input) = ("carol".into(), "new.csv".into());
        assert_eq!(ledger.spent(&other), spent);
        other.fingerprint = "g".into();
        assert_eq!(ledger.spent(&other), Spent::default());
        ledger.refund("b").unwrap();
        drop(ledger);
        let ledger = Ledger::open(&path).unwrap();
        assert_eq!(ledger.spent(&charge("d", 90_000, 0)), Spent { runs_today: 1, rows: 100, aggregates: 1 });
        // A clock that was put back.
        assert_eq!(ledger.now(Time(5)), Time(86_500));
    }

    #[test]
    fn a_changed_ledger_is_no_ledger() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger");
        let mut ledger = Ledger::open(&path).unwrap();
        (0..3).for_each(|i| ledger.charge(charge(&i.to_string(), i, i)).unwrap());
        drop(ledger);
        let honest = std::fs::read(&path).unwrap();
        for at in 0..honest.len() - 1 {
            let mut bytes = honest.clone();
            bytes[at] ^= 1;
            std::fs::write(&path, &bytes).unwrap();
            assert!(Ledger::open(&path).is_err(), "byte {at}");
        }
        let text = String::from_utf8(honest.clone()).unwrap();
        let without: Vec<&str> =
            text.lines().enumerate().filter(|(at, _)| *at != 1).map(|(_, l)| l).collect();
        std::fs::write(&path, without.join("\n") + "\n").unwrap();
        assert!(Ledger::open(&path).is_err(), "a line taken out");
        // What a crash leaves of a charge that never returned.
        for end in 0..honest.len() {
            std::fs::write(&path, &honest[..end]).unwrap();
            let whole = honest[..end].iter().filter(|byte| **byte == b'\n').count();
            assert_eq!(Ledger::open(&path).unwrap().charges.len(), whole, "{end}");
        }
    }
}
