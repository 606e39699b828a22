//! What happened of late, as an operator wants to see it: kept in memory, bounded, and forgotten with the
//! process. What must not be forgotten stands in ledger and records.

use crate::clock::Time;
use crate::log::{Event, Figures};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Requests that are kept.
const MOST_RUNS: usize = 50;
/// Refusals that are kept, and faults of the policy file.
const MOST_REFUSALS: usize = 20;
/// Minutes that are counted one by one.
pub(crate) const MINUTES: u64 = 60;
/// Peers that are counted, those that a policy does not name any more among them.
const MOST_PEERS: usize = 4096;
/// Longest name or text that is kept: some are the client's.
const LONGEST: usize = 200;

/// A request that got an offer, or broke off.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub run: String,
    pub peer: String,
    pub job: String,
    pub began: Time,
    /// When it came to its end, if it has.
    pub ended: Option<Time>,
    /// The last event: `offered`, `granted`, `done`, `declined`, `failed`.
    pub state: &'static str,
    pub words: String,
    pub figures: Figures,
}

/// A request that was refused.
#[derive(Clone, Debug)]
pub(crate) struct Refused {
    pub time: Time,
    pub run: String,
    pub peer: String,
    pub job: String,
    pub rule: &'static str,
    pub words: String,
}

/// What came of one peer's requests.
#[derive(Clone, Default, Debug)]
pub(crate) struct Tally {
    pub granted: u64,
    pub done: u64,
    pub failed: u64,
    pub refused: u64,
    pub sent: u64,
    pub received: u64,
    /// The last time that it was heard of.
    pub last: Option<Time>,
}

/// One minute's work, or more.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Work {
    pub done: u64,
    pub refused: u64,
    pub bytes: u64,
}

#[derive(Default)]
pub(crate) struct Seen {
    /// Oldest first.
    pub runs: VecDeque<Run>,
    /// Oldest first.
    pub refusals: VecDeque<Refused>,
    pub peers: BTreeMap<String, Tally>,
    /// How often each rule said no, and when it last did.
    pub rules: BTreeMap<&'static str, (u64, Option<Time>)>,
    /// By the number of the minute since 1970.
    pub minutes: BTreeMap<u64, Work>,
    pub total: Work,
    pub started: Option<Time>,
    /// When the policy was read that is in force.
    pub policy_read: Option<Time>,
    /// What was wrong with the policy file when it was last read, if anything.
    pub faults: Vec<String>,
}

/// What happened of late.
#[derive(Default)]
pub(crate) struct Board(Mutex<Seen>);

fn kept(text: &str) -> String {
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

fn kept_if(text: &Option<String>) -> String {
    text.as_deref().map(kept).unwrap_or_default()
}

impl Board {
    /// What was seen; events wait while the caller holds it.
    pub(crate) fn seen(&self) -> MutexGuard<'_, Seen> {
        // What is shown is no base for decisions: half an event does no harm.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes note of an event.
    pub(crate) fn note(&self, event: &Event) {
        let mut seen = self.seen();
        match event.what {
            "started" => (seen.started, seen.policy_read) = (Some(event.time), Some(event.time)),
            "reloaded" => {
                seen.policy_read = Some(event.time);
                seen.faults.clear();
            }
            // Faults come before the line that says that nothing was reloaded.
            "policy fault" if seen.faults.len() < MOST_REFUSALS => seen.faults.push(kept(&event.words)),
            _ => {}
        }
        // A list of jobs is no request for one.
        if event.run.is_some() && event.what != "listed" {
            seen.request(event);
        }
    }

    /// Forgets the faults of an earlier reading, before another one.
    pub(crate) fn reading(&self) {
        self.seen().faults.clear();
    }
}

impl Seen {
    fn request(&mut self, event: &Event) {
        let run = kept_if(&event.run);
        let peer = kept_if(&event.peer);
        if self.peers.len() < MOST_PEERS || self.peers.contains_key(&peer) {
            let Figures { sent, received, .. } = event.figures;
            let tally = self.peers.entry(peer.clone()).or_default();
            tally.last = Some(event.time);
            match event.what {
                "granted" => tally.granted += 1,
                "done" => tally.done += 1,
                "failed" | "panicked" => tally.failed += 1,
                "refused" => tally.refused += 1,
                _ => {}
            }
            tally.sent += sent.unwrap_or(0);
            tally.received += received.unwrap_or(0);
        }
        self.count(event);
        let known = self.runs.iter().position(|one| one.run == run);
        if let ("refused", Some(rule)) = (event.what, event.rule) {
            if let Some(at) = known {
                self.runs.remove(at);
            }
            let count = self.rules.entry(rule).or_default();
            *count = (count.0 + 1, Some(event.time));
            let (job, words) = (kept_if(&event.job), kept(&event.words));
            self.refusals.push_back(Refused { time: event.time, run, peer, job, rule, words });
            if self.refusals.len() > MOST_REFUSALS {
                self.refusals.pop_front();
            }
            return;
        }
        let at = known.unwrap_or_else(|| {
            self.runs.push_back(Run {
                run,
                peer,
                job: kept_if(&event.job),
                began: event.time,
                ended: None,
                state: event.what,
                words: String::new(),
                figures: Figures::default(),
            });
            self.runs.len() - 1
        });
        if let Some(one) = self.runs.get_mut(at) {
            // A charge that was taken back is told before the failure.
            if !matches!(event.what, "offered" | "granted") {
                one.ended = Some(event.time);
            }
            one.state = event.what;
            one.words = kept(&event.words);
            one.figures = one.figures.or(event.figures);
        }
        // What is over goes first; those under way are as few as the service has places.
        while self.runs.len() > MOST_RUNS
            && let Some(oldest) = self.runs.iter().position(|one| one.ended.is_some())
        {
            self.runs.remove(oldest);
        }
    }

    fn count(&mut self, event: &Event) {
        let bytes = event.figures.sent.unwrap_or(0) + event.figures.received.unwrap_or(0);
        let minute = event.time.0 / 60;
        for work in [self.minutes.entry(minute).or_default(), &mut self.total] {
            work.done += u64::from(event.what == "done");
            work.refused += u64::from(event.what == "refused");
            work.bytes += bytes;
        }
        // Bounded by their number alone: where the clock is put back, minutes of the future stay.
        while self.minutes.len() as u64 > MINUTES {
            self.minutes.pop_first();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(what: &'static str, run: usize, rule: Option<&'static str>) -> Event {
        let mut event = Event::new(what, "words");
        event.run = Some(format!("{run:032x}"));
        event.peer = Some("bob".into());
        event.job = Some("match".into());
        event.rule = rule;
        event
    }

    #[test]
    fn a_run_is_followed_from_offer_to_end() {
        let board = Board::default();
        board.note(&Event::new("started", ""));
        board.note(&event("offered", 1, None));
        let mut granted = event("granted", 1, None);
        granted.figures = Figures { client_keys: Some(30), most_rows: Some(30), ..Figures::default() };
        board.note(&granted);
        let state = board.seen().runs[0].clone();
        assert_eq!((state.state, state.ended), ("granted", None));
        let mut done = event("done", 1, None);
        done.figures = Figures { sent: Some(5), received: Some(7), ..Figures::default() };
        board.note(&done);
        board.note(&event("offered", 2, None));
        board.note(&event("refused", 2, Some("memory")));
        let seen = board.seen();
        assert_eq!(seen.runs.len(), 1, "a refused one is a refusal");
        let run = &seen.runs[0];
        assert!(run.state == "done" && run.ended.is_some());
        assert_eq!((run.figures.client_keys, run.figures.sent), (Some(30), Some(5)));
        let bob = &seen.peers["bob"];
        assert_eq!((bob.granted, bob.done, bob.refused, bob.sent, bob.received), (1, 1, 1, 5, 7));
        assert_eq!((seen.total.done, seen.total.refused, seen.total.bytes), (1, 1, 12));
        assert_eq!(seen.rules["memory"].0, 1);
    }

    #[test]
    fn what_strangers_and_the_years_bring_stays_bounded() {
        let board = Board::default();
        board.note(&event("granted", 0, None));
        for number in 1..500 {
            let mut refused = event("refused", number, Some("allow"));
            refused.time = Time(60 * number as u64);
            refused.job = Some("x".repeat(1 << 16));
            refused.peer = Some(format!("peer {}", number * 20));
            board.note(&refused);
            board.note(&event("failed", 1000 + number, None));
            board.note(&Event::new("policy fault", "y".repeat(1 << 16)));
        }
        let seen = board.seen();
        assert_eq!((seen.runs.len(), seen.refusals.len()), (MOST_RUNS, MOST_REFUSALS));
        assert!(seen.minutes.len() as u64 <= MINUTES && seen.faults.len() <= MOST_REFUSALS);
        assert!(seen.refusals.iter().all(|one| one.job.len() < 2 * LONGEST));
        assert_eq!(seen.runs[0].state, "granted", "what is under way is not pushed out");
        assert_eq!(seen.rules["allow"].0, 499);
    }
}
