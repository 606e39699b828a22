//! What a ledger says: the entries of its lines, and what they add up to.

use super::names::Names;
use super::{Charge, Spent};
use crate::clock::Time;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// One line of a ledger.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub(super) enum Entry {
    /// A run is about to begin.
    Charge(Charge),
    /// The charge of a run is taken back: as earlier builds wrote it.
    Refund { run: String },
    /// The charge of a run is taken back; it stays an attempt.
    Returned(Charge),
    /// A run broke off after it began, and stays charged.
    Broken(Charge),
    /// An offer is about to be made.
    Offer(Charge),
    /// Names of one peer, or of one source, that are in force together.
    Same(Vec<String>),
    /// The first line of a ledger that was made shorter: the latest time in it.
    Since { version: u64, latest: u64 },
    /// All that a peer has spent of a source.
    Account { peer: String, source: String, totals: Totals },
    /// A peer's requests for a job on one day.
    Day { peer: String, job: String, day: Day },
    /// How far the records are of runs that the ledger knows.
    Mark(Mark),
    /// A question is about to be answered in which such keys pass the service's filter.
    Filter { charge: Charge, filter: String },
    /// Filters of a peer's questions about a source.
    Filters { peer: String, source: String, filters: Vec<String> },
}

/// A place in the chain of records: the ledger knows all runs before it.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Mark {
    /// How many records stand before it.
    pub(super) records: u64,
    /// The head of the chain there.
    pub(super) head: String,
    /// Runs that were charged before and had no record yet.
    pub(super) runs: Vec<String>,
    /// The time of the latest charge before.
    pub(super) until: u64,
    /// The heads of chains that were away when another one began, up to where the ledger knows their runs.
    pub(super) earlier: Vec<String>,
}

/// The version of a ledger that was made shorter.
const VERSION: u64 = 2;

#[derive(Clone, Copy, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Totals {
    rows: u64,
    aggregates: u64,
    broken: u64,
    #[serde(default, skip_serializing_if = "super::is_zero")]
    epsilon: u64,
}

impl Totals {
    fn add(&mut self, other: &Totals) {
        self.rows = self.rows.saturating_add(other.rows);
        self.aggregates = self.aggregates.saturating_add(other.aggregates);
        self.broken = self.broken.saturating_add(other.broken);
        self.epsilon = self.epsilon.saturating_add(other.epsilon);
    }
}

#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Day {
    /// Counted from 1970.
    day: u64,
    runs: u64,
    offers: u64,
    returned: u64,
    /// The source of the latest charge.
    source: String,
}

/// What the lines of a ledger add up to: as many numbers as there are peers, sources and jobs.
#[derive(Default)]
pub(super) struct Book {
    peers: Names,
    sources: Names,
    totals: BTreeMap<(usize, usize), Totals>,
    days: BTreeMap<(usize, String), Day>,
    /// The names of filters.
    filters: BTreeMap<(usize, usize), BTreeSet<String>>,
    pub(super) latest: u64,
}

impl Charge {
    fn peer_names(&self) -> [String; 2] {
        [super::peer_name(&self.peer), super::key_name(&self.fingerprint)]
    }

    fn source_names(&self) -> [String; 2] {
        [super::source_name(&self.source), super::place_name(&self.input)]
    }
}

fn texts(names: &[String]) -> impl Iterator<Item = &str> {
    names.iter().map(String::as_str)
}

impl Book {
    /// Adds an entry; false where it makes no sense. `open` finds the charges that older entries take back.
    pub(super) fn add(&mut self, entry: &Entry, open: &mut BTreeMap<String, Charge>) -> bool {
        match entry {
            Entry::Charge(charge) => {
                let (totals, day) = self.at(charge);
                totals.rows = totals.rows.saturating_add(charge.rows);
                totals.aggregates = totals.aggregates.saturating_add(u64::from(charge.aggregate));
                totals.epsilon = totals.epsilon.saturating_add(charge.epsilon);
                day.runs = day.runs.saturating_add(1);
                day.source.clone_from(&charge.source);
                open.insert(charge.run.clone(), charge.clone());
            }
            Entry::Refund { run } => {
                if let Some(charge) = open.remove(run) {
                    self.give_back(&charge);
                }
            }
            Entry::Returned(charge) => {
                open.remove(&charge.run);
                self.give_back(charge);
            }
            Entry::Broken(charge) => {
                open.remove(&charge.run);
                let (totals, _) = self.at(charge);
                totals.broken = totals.broken.saturating_add(1);
            }
            Entry::Offer(charge) => {
                let (_, day) = self.at(charge);
                day.offers = day.offers.saturating_add(1);
            }
            Entry::Same(names) => return self.same(names),
            Entry::Since { version, latest } => {
                self.latest = self.latest.max(*latest);
                return *version == VERSION;
            }
            Entry::Account { peer, source, totals } => {
                let at = (self.peers.join([peer.as_str()]), self.sources.join([source.as_str()]));
                self.totals.insert(at, *totals);
            }
            Entry::Day { peer, job, day } => {
                let peer = self.peers.join([peer.as_str()]);
                self.days.insert((peer, job.clone()), day.clone());
            }
            Entry::Mark(_) => {}
            Entry::Filter { charge, filter } => {
                let peer = self.peers.join(texts(&charge.peer_names()));
                let source = self.sources.join(texts(&charge.source_names()));
                self.filters.entry((peer, source)).or_default().insert(filter.clone());
            }
            Entry::Filters { peer, source, filters } => {
                let at = (self.peers.join([peer.as_str()]), self.sources.join([source.as_str()]));
                self.filters.entry(at).or_default().extend(filters.iter().cloned());
            }
        }
        true
    }

    fn give_back(&mut self, charge: &Charge) {
        let (totals, day) = self.at(charge);
        totals.rows = totals.rows.saturating_sub(charge.rows);
        totals.aggregates = totals.aggregates.saturating_sub(u64::from(charge.aggregate));
        totals.epsilon = totals.epsilon.saturating_sub(charge.epsilon);
        if day.day == Time(charge.time).day() {
            day.runs = day.runs.saturating_sub(1);
        }
        day.returned = day.returned.saturating_add(1);
    }

    /// The numbers that an entry about `charge` changes. A new day begins with its first entry.
    fn at(&mut self, charge: &Charge) -> (&mut Totals, &mut Day) {
        let peer = self.peers.join(texts(&charge.peer_names()));
        let source = self.sources.join(texts(&charge.source_names()));
        self.latest = self.latest.max(charge.time);
        let day = self.days.entry((peer, charge.job.clone())).or_default();
        if day.day < Time(charge.time).day() {
            *day = Day {
                day: Time(charge.time).day(),
                source: std::mem::take(&mut day.source),
                ..Day::default()
            };
        }
        (self.totals.entry((peer, source)).or_default(), day)
    }

    fn same(&mut self, names: &[String]) -> bool {
        let of_peers = names.iter().filter(|name| super::is_of_peer(name)).count();
        match of_peers {
            0 => _ = self.sources.join(texts(names)),
            some if some == names.len() => _ = self.peers.join(texts(names)),
            _ => return false,
        }
        true
    }

    /// Whether these names are known as one peer's, or one source's.
    pub(super) fn are_one(&self, names: &[String]) -> bool {
        self.peers.are_one(names) || self.sources.are_one(names)
    }

    /// All places of sources.
    pub(super) fn places(&self) -> Vec<String> {
        self.sources.all().into_values().flatten().map(str::to_owned).collect()
    }

    pub(super) fn spent(&self, charge: &Charge) -> Spent {
        let peers = self.peers.groups(texts(&charge.peer_names()));
        let sources = self.sources.groups(texts(&charge.source_names()));
        let mut sum = Totals::default();
        for ((peer, source), totals) in &self.totals {
            if peers.contains(&self.peers.now(*peer)) && sources.contains(&self.sources.now(*source)) {
                sum.add(totals);
            }
        }
        let Totals { rows, aggregates, broken, epsilon } = sum;
        let mut spent = Spent { rows, aggregates, broken, epsilon, ..Spent::default() };
        for ((peer, job), day) in &self.days {
            let is_today = day.day == Time(charge.time).day();
            if is_today && *job == charge.job && peers.contains(&self.peers.now(*peer)) {
                spent.runs_today = spent.runs_today.saturating_add(day.runs);
                spent.offers_today = spent.offers_today.saturating_add(day.offers);
                spent.returned_today = spent.returned_today.saturating_add(day.returned);
            }
        }
        spent
    }

    /// The filters of the questions that the peer of `charge` was answered of its source.
    pub(super) fn filters(&self, charge: &Charge) -> BTreeSet<String> {
        let peers = self.peers.groups(texts(&charge.peer_names()));
        let sources = self.sources.groups(texts(&charge.source_names()));
        let is_theirs = |(peer, source): &(usize, usize)| {
            peers.contains(&self.peers.now(*peer)) && sources.contains(&self.sources.now(*source))
        };
        self.filters.iter().filter(|(at, _)| is_theirs(at)).flat_map(|(_, names)| names.clone()).collect()
    }

    /// The filters of all questions, of all peers.
    pub(super) fn all_filters(&self) -> impl Iterator<Item = &String> {
        self.filters.values().flatten()
    }

    /// Whether any question was answered whose filter was kept.
    pub(super) fn has_filters(&self) -> bool {
        !self.filters.is_empty()
    }

    /// The time of the latest charge.
    pub(super) fn latest(&self) -> u64 {
        self.latest
    }

    /// The source of the latest charge of the job of this name.
    pub(super) fn latest_source(&self, job: &str) -> Option<&str> {
        let days = self.days.iter().filter(|((_, name), day)| name == job && !day.source.is_empty());
        days.max_by_key(|(_, day)| day.day).map(|(_, day)| day.source.as_str())
    }

    /// The entries of a shorter ledger that adds up to the same.
    pub(super) fn entries(&self) -> Vec<Entry> {
        let mut entries = vec![Entry::Since { version: VERSION, latest: self.latest }];
        let mut first: [BTreeMap<usize, String>; 2] = Default::default();
        for (names, first) in [&self.peers, &self.sources].into_iter().zip(&mut first) {
            for (group, names) in names.all() {
                first.insert(group, names.first().map_or(String::new(), |name| (*name).to_owned()));
                // A line is never long.
                let (one, others) = names.split_at(1.min(names.len()));
                entries.extend(others.chunks(64).map(|some| {
                    Entry::Same(one.iter().chain(some).map(|name| (*name).to_owned()).collect())
                }));
            }
        }
        let [peers, sources] = first;
        let mut totals: BTreeMap<(usize, usize), Totals> = BTreeMap::new();
        for ((peer, source), one) in &self.totals {
            totals.entry((self.peers.now(*peer), self.sources.now(*source))).or_default().add(one);
        }
        let mut days: BTreeMap<(usize, &str), Day> = BTreeMap::new();
        for ((peer, job), one) in &self.days {
            let sum = days.entry((self.peers.now(*peer), job)).or_default();
            if one.day > sum.day {
                *sum = one.clone();
            } else if one.day == sum.day {
                sum.runs = sum.runs.saturating_add(one.runs);
                sum.offers = sum.offers.saturating_add(one.offers);
                sum.returned = sum.returned.saturating_add(one.returned);
            }
        }
        for ((peer, source), names) in &self.filters {
            let at = (peers.get(&self.peers.now(*peer)), sources.get(&self.sources.now(*source)));
            let (Some(peer), Some(source)) = at else { continue };
            let names: Vec<String> = names.iter().cloned().collect();
            entries.extend(names.chunks(64).map(|some| Entry::Filters {
                peer: peer.clone(),
                source: source.clone(),
                filters: some.to_vec(),
            }));
        }
        entries.extend(totals.into_iter().filter_map(|((peer, source), totals)| {
            let (peer, source) = (peers.get(&peer)?.clone(), sources.get(&source)?.clone());
            Some(Entry::Account { peer, source, totals })
        }));
        entries.extend(days.into_iter().filter_map(|((peer, job), day)| {
            Some(Entry::Day { peer: peers.get(&peer)?.clone(), job: job.to_owned(), day })
        }));
        entries
    }
}
