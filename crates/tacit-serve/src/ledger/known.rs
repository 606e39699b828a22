//! Which runs a ledger knows, against the chain of records beside it: a ledger that lacks runs of the records
//! is gone, cut or an older copy, and would give their budgets again.
//!
//! A run is charged before its record begins, so the ledger knows every run of the chain: by the charge in one
//! of its lines, or, once the file was made shorter, because its record stands before the ledger's [`Mark`].

use super::book::{Entry, Mark};
use super::{Charge, Ledger};
use crate::clock::Time;
use crate::file::{Lines, shown};
use crate::json::{from_hex, hex};
use crate::records::{NO_HEAD, PENDING, PRIVATE_PART, RECORDS, head_of, number_after};
use crate::terms::Side;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use tacit::crypto::text::counted;
use tacit::{Error, Result};

/// What helps where there is no other ledger, for the command to name its option.
pub const ACCEPT: &str = "accept the ledger as it is";

/// The runs that a ledger knows.
#[derive(Default)]
pub(super) struct Known {
    /// By name, and whether the chain has to have a record of it behind the mark.
    runs: BTreeMap<String, bool>,
    mark: Option<Mark>,
    /// The latest charge of a ledger that an earlier release made shorter, without a mark.
    since: Option<u64>,
    /// The folder of the records, once the ledger was compared with them.
    folder: Option<PathBuf>,
}

/// A run of the records that the ledger does not know.
struct Lacking {
    run: String,
    peer: String,
    job: String,
    started: u64,
    /// What it was charged, if its private part says.
    charge: Option<Charge>,
}

/// What a ledger and the records beside it lack of each other.
pub struct Compared {
    folder: PathBuf,
    /// The records now.
    records: u64,
    head: [u8; 32],
    lacking: Vec<Lacking>,
    /// Runs whose records are there.
    recorded: BTreeSet<String>,
    /// What the records lack, in words.
    missing: Option<String>,
}

impl Known {
    /// Takes note of an entry as it is read or written.
    pub(super) fn note(&mut self, entry: &Entry) {
        match entry {
            Entry::Charge(charge) => _ = self.runs.insert(charge.run.clone(), true),
            Entry::Returned(charge) => _ = self.runs.insert(charge.run.clone(), false),
            Entry::Refund { run } => _ = self.runs.insert(run.clone(), false),
            Entry::Since { latest, .. } => self.since = Some(*latest),
            Entry::Mark(mark) => {
                self.runs.values_mut().for_each(|expected| *expected = false);
                self.runs.extend(mark.runs.iter().map(|run| (run.clone(), true)));
                self.mark = Some(mark.clone());
            }
            _ => {}
        }
    }

    /// The record of this run is in the chain.
    pub(super) fn recorded(&mut self, run: &str) {
        if self.folder.is_some() {
            self.runs.remove(run);
        }
    }

    /// The mark of the chain as it is now, if the ledger was compared with one: all its runs are known.
    pub(super) fn mark(&self) -> Result<Option<Mark>> {
        let Some(folder) = &self.folder else { return Ok(None) };
        // Locked while it is read: what is being written may still not come to stay.
        let (_lock, last) = Lines::open_last(&folder.join(RECORDS))?;
        let records = last.as_deref().map_or(Some(0), number_after).unwrap_or_default();
        let head = last.map_or(NO_HEAD, |line| head_of(&line));
        Ok(Some(Mark { records, head: hex(&head), runs: self.runs.keys().cloned().collect() }))
    }

    /// How many records at the chain's beginning are of runs that the ledger knows by its mark; and the chain's
    /// length and head.
    fn covered(&self, path: &Path) -> Result<(u64, u64, [u8; 32])> {
        let head_of_mark = self.mark.as_ref().and_then(|mark| from_hex(&mark.head)).unwrap_or(NO_HEAD);
        let (mut records, mut head, mut covered) = (0, NO_HEAD, (head_of_mark == NO_HEAD).then_some(0));
        Lines::each(path, |line| {
            (records, head) = (records + 1, head_of(line));
            if head == head_of_mark {
                covered = Some(records);
            }
        })?;
        // Of a chain that is shorter than it was nothing is new.
        let shorter = self.mark.as_ref().is_some_and(|mark| records < mark.records);
        Ok((covered.unwrap_or(if shorter { records } else { 0 }), records, head))
    }

    fn knows(&self, run: &str, started: u64) -> bool {
        // A charge is never of an earlier time than its record.
        let is_before = self.mark.is_none() && self.since.is_some_and(|latest| started <= latest);
        is_before || self.runs.contains_key(run)
    }
}

impl Ledger {
    /// Compares the ledger with the chain of records in `folder`; writes nothing.
    ///
    /// Errors: files that cannot be read.
    pub fn compare(&self, folder: &Path) -> Result<Compared> {
        let path = folder.join(RECORDS);
        let (covered, records, head) = self.known.covered(&path)?;
        let (mut at, mut lacking, mut recorded) = (0, Vec::new(), BTreeSet::new());
        Lines::each(&path, |line| {
            at += 1;
            if at <= covered {
                return;
            }
            let record: Value = serde_json::from_str(line).unwrap_or_default();
            let common = &record["common"];
            let (Some(run), Some(started)) = (common["run"].as_str(), common["started"].as_u64()) else {
                return;
            };
            let of_service = record["side"] == Side::Service.name();
            // Of a run that did not begin the charge was taken back.
            if of_service && common["outcome"] != "not begun" && !self.known.knows(run, started) {
                let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                let (peer, job) = (text(&common["terms"]["client_name"]), text(&common["terms"]["job"]));
                lacking.push(Lacking { run: run.to_owned(), peer, job, started, charge: None });
            }
            recorded.insert(run.to_owned());
        })?;
        if !lacking.is_empty() {
            find_charges(folder, &mut lacking)?;
        }
        let missing = self.missing(folder, records, covered, &recorded);
        Ok(Compared { folder: folder.to_owned(), records, head, lacking, recorded, missing })
    }

    /// What the chain lacks of what the ledger knows, in words.
    fn missing(
        &self,
        folder: &Path,
        records: u64,
        covered: u64,
        recorded: &BTreeSet<String>,
    ) -> Option<String> {
        let before = self.known.mark.as_ref().map_or(0, |mark| mark.records.saturating_sub(covered));
        let expected = self.known.runs.iter().filter(|(run, expected)| {
            **expected && !recorded.contains(*run) && !pending(folder, run).exists()
        });
        let missing = before + expected.count() as u64;
        let chain = shown(folder);
        let older = self.known.mark.is_none() && self.known.since.is_some_and(|latest| latest > 0);
        match (missing, records) {
            (0, 0) if older => {
                Some(format!("a new chain begins in {chain}; the ledger knows of runs before it"))
            }
            (0, _) => None,
            (_, 0) => Some(format!(
                "a new chain begins in {chain}; the ledger knows of {}: if their records are elsewhere, stop the \
                 service and put them back, as peers miss them when they compare",
                counted(missing, "run")
            )),
            _ => Some(format!(
                "{chain} has no record of {} that the ledger has charged; what was charged stays charged",
                counted(missing, "run")
            )),
        }
    }

    /// Holds the ledger to the records that it was compared with, from now on. Where it lacks runs, and that is
    /// `accepted`, it charges them again as far as their records hold what was charged. Returns what there is
    /// to say about it.
    ///
    /// Errors: runs that the ledger lacks, if that is not accepted; those of the file.
    pub fn go_on(&mut self, found: Compared, accepted: bool) -> Result<Vec<String>> {
        let mut told = Vec::new();
        if !found.lacking.is_empty() {
            if !accepted {
                return Err(Error::Input(found.lacks()));
            }
            let (mut again, mut unknown) = (0, Vec::new());
            for lacking in &found.lacking {
                match &lacking.charge {
                    Some(charge) => {
                        self.charge(charge.clone())?;
                        self.settle(&lacking.run);
                        again += 1;
                    }
                    None => unknown.push(lacking.run.as_str()),
                }
            }
            let mut words = format!(
                "accepted although it lacked {} of the records; charged again: {again}",
                counted(found.lacking.len(), "run")
            );
            if !unknown.is_empty() {
                words += &format!(
                    "; NOT charged, as their records do not hold the charge: {} ({})",
                    unknown.len(),
                    unknown.join(", ")
                );
            }
            told.push(words);
        }
        self.known.folder = Some(found.folder.clone());
        let changed = !told.is_empty() || found.missing.is_some();
        self.known
            .runs
            .retain(|run, _| !found.recorded.contains(run) && pending(&found.folder, run).exists());
        if changed {
            let runs = self.known.runs.keys().cloned().collect();
            self.write(&Entry::Mark(Mark { records: found.records, head: hex(&found.head), runs }))?;
        }
        told.extend(found.missing);
        Ok(told)
    }
}

impl Compared {
    /// Whether the ledger lacks runs of the records.
    pub fn is_lacking(&self) -> bool {
        !self.lacking.is_empty()
    }

    /// Keeps of what the ledger lacks what another look at it lacked too.
    pub fn and(mut self, other: &Compared) -> Self {
        self.lacking.retain(|one| other.lacking.iter().any(|two| one.run == two.run));
        self
    }

    /// What the ledger lacks, and what helps.
    pub fn lacks(&self) -> String {
        let charges = self.lacking.iter().filter(|lacking| lacking.charge.is_some()).count();
        let latest = self.lacking.iter().max_by_key(|lacking| lacking.started);
        let latest = latest.map_or(String::new(), |latest| {
            format!(
                "the latest {} of {} for {}, {}",
                tacit::net::shown(&latest.run),
                tacit::net::shown(&latest.peer),
                tacit::net::shown(&latest.job),
                Time(latest.started).text()
            )
        });
        format!(
            "the ledger lacks {runs} that {folder} has ({latest}), and would give their budgets again; put back the \
             newest ledger, or {ACCEPT}, which charges {charges} of them again",
            runs = counted(self.lacking.len(), "run"),
            folder = shown(&self.folder),
        )
    }
}

fn pending(folder: &Path, run: &str) -> PathBuf {
    folder.join(PENDING).join(format!("{run}.json"))
}

/// Looks into the private part for what runs were charged.
fn find_charges(folder: &Path, lacking: &mut [Lacking]) -> Result<()> {
    let at: BTreeMap<String, usize> =
        lacking.iter().enumerate().map(|(at, lacking)| (lacking.run.clone(), at)).collect();
    Lines::each(&folder.join(PRIVATE_PART), |line| {
        let kept: Value = serde_json::from_str(line).unwrap_or_default();
        if let Some(at) = kept["run"].as_str().and_then(|run| at.get(run)) {
            let charge: Option<Charge> = serde_json::from_value(kept["charge"].clone()).ok();
            lacking[*at].charge = charge.filter(|charge| charge.run == lacking[*at].run);
        }
    })
}
