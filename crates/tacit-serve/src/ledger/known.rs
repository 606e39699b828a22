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
    /// Whether the chain has the ledger's mark.
    has_mark: bool,
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

    /// The mark of the chain as it is now, if the ledger was compared with one: all its runs are known. `until` is the
    /// time of the latest charge.
    pub(super) fn mark(&self, until: u64) -> Result<Option<Mark>> {
        let Some(folder) = &self.folder else { return Ok(None) };
        // Locked while it is read: what is being written may still not come to stay.
        let (_lock, last) = Lines::open_last(&folder.join(RECORDS))?;
        let records = last.as_deref().map_or(Some(0), number_after).unwrap_or_default();
        let head = hex(&last.map_or(NO_HEAD, |line| head_of(&line)));
        let earlier = self.mark.as_ref().map(|mark| mark.earlier.clone()).unwrap_or_default();
        Ok(Some(Mark { records, head, runs: self.runs.keys().cloned().collect(), until, earlier }))
    }

    /// The heads of chains whose runs up to there the ledger knows by its mark.
    fn heads(&self) -> BTreeSet<[u8; 32]> {
        let heads = self.mark.iter().flat_map(|mark| std::iter::once(&mark.head).chain(&mark.earlier));
        heads.filter_map(|head| from_hex(head)).collect()
    }

    /// How far the ledger knows the runs of the chain at `path` by its mark, and what the chain is.
    fn covered(&self, path: &Path) -> Result<Covered> {
        let heads = self.heads();
        let mut found = Covered { covered: None, records: 0, head: NO_HEAD };
        Lines::each(path, |line| {
            (found.records, found.head) = (found.records + 1, head_of(line));
            if heads.contains(&found.head) {
                found.covered = Some(found.records);
            }
        })?;
        Ok(found)
    }

    /// Whether the ledger knows a run that is not covered. A charge is never of an earlier time than its record, so
    /// of a chain that does not have the mark, what began before the mark's latest charge is known.
    fn knows(&self, run: &str, started: u64, has_mark: bool) -> bool {
        let by_time = match &self.mark {
            Some(_) => !has_mark && self.is_before_the_mark(started),
            None => self.since.is_some_and(|until| started <= until),
        };
        by_time || self.runs.contains_key(run)
    }

    fn is_before_the_mark(&self, started: u64) -> bool {
        self.mark.as_ref().is_some_and(|mark| started <= mark.until)
    }
}

/// A chain of records against the mark of a ledger.
struct Covered {
    /// How many records at its beginning are of runs before the mark; `None` where it does not have the mark.
    covered: Option<u64>,
    records: u64,
    head: [u8; 32],
}

impl Ledger {
    /// Compares the ledger with the chain of records in `folder`; writes nothing.
    ///
    /// Errors: files that cannot be read.
    pub fn compare(&self, folder: &Path) -> Result<Compared> {
        let path = folder.join(RECORDS);
        let Covered { covered: found, records, head } = self.known.covered(&path)?;
        let (has_mark, covered) = (found.is_some(), found.unwrap_or(0));
        let (mut at, mut lacking, mut recorded) = (0, Vec::new(), BTreeSet::new());
        let mut by_time = 0;
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
            if of_service && common["outcome"] != "not begun" && !self.known.knows(run, started, has_mark) {
                let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                let (peer, job) = (text(&common["terms"]["client_name"]), text(&common["terms"]["job"]));
                lacking.push(Lacking { run: run.to_owned(), peer, job, started, charge: None });
            }
            // Of a chain that was cut some runs before the mark are still there.
            by_time += u64::from(!has_mark && self.known.is_before_the_mark(started));
            recorded.insert(run.to_owned());
        })?;
        if !lacking.is_empty() {
            find_charges(folder, &mut lacking)?;
        }
        let missing = self.missing(folder, records, covered + by_time, &recorded);
        let folder = folder.to_owned();
        Ok(Compared { folder, records, head, has_mark, lacking, recorded, missing })
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
            (0, 0) if older => Some(format!("a new chain starts in {chain}; the ledger has earlier runs")),
            (0, _) => None,
            (_, 0) => Some(format!(
                "a new chain starts in {chain}; the ledger has {}: if you have their records, stop the \
                 service and restore them, because peers miss them when they compare",
                counted(missing, "run")
            )),
            _ => Some(format!(
                "{chain} has no record of {} that the ledger has charged; the charges stay",
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
                    "; NOT charged, because their records do not have the charge: {} ({})",
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
            let mut earlier = self.known.mark.as_ref().map(|mark| mark.earlier.clone()).unwrap_or_default();
            // A chain that is away now may be put back.
            let away = self.known.mark.as_ref().filter(|mark| mark.records > 0 && !found.has_mark);
            earlier.extend(away.map(|mark| mark.head.clone()).filter(|head| !earlier.contains(head)));
            let (records, head, until) = (found.records, hex(&found.head), self.book.latest());
            self.write(&Entry::Mark(Mark { records, head, runs, until, earlier }))?;
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
            "the ledger lacks {runs} that {folder} has ({latest}), and would allow their budgets to be spent \
             again; restore the newest ledger, or {ACCEPT}, which charges {charges} of them again",
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
