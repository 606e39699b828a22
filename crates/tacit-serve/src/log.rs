//! What a service tells of itself while it runs: never a row, a key or a secret.
//!
//! Each [`Event`] goes to `tracing`, target `tacit::serve`, with what it holds as fields; what goes on inside
//! a request follows at the level `DEBUG`, on the client's side too, by the run's name that both sides share.

use crate::clock::Time;
use crate::rules;
use std::sync::{Mutex, PoisonError};
use tacit::job::{Observer, Step};
use tracing::Level;

/// Something that happened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Event {
    /// When.
    pub time: Time,
    /// What: `started`, `refused`, `offered`, `granted`, `done`, `failed`, `reloaded` and so on.
    pub what: &'static str,
    /// The run, by the name that both sides have for it.
    pub run: Option<String>,
    /// The peer's label.
    pub peer: Option<String>,
    /// The job.
    pub job: Option<String>,
    /// The rule of a refusal.
    pub rule: Option<&'static str>,
    /// More, on one line.
    pub words: String,
    /// The same in numbers, where there are any.
    pub figures: Figures,
}

/// What a run took, as far as it is known.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Figures {
    /// Distinct keys that the client announced.
    pub client_keys: Option<u64>,
    /// Distinct keys of the service.
    pub service_keys: Option<u64>,
    /// The most rows that the run can reveal.
    pub most_rows: Option<u64>,
    /// How long it took.
    pub milliseconds: Option<u64>,
    /// Bytes to the peer.
    pub sent: Option<u64>,
    /// Bytes from the peer.
    pub received: Option<u64>,
}

impl Figures {
    /// These, and those of `other` where these have none.
    pub fn or(self, other: Figures) -> Figures {
        Figures {
            client_keys: self.client_keys.or(other.client_keys),
            service_keys: self.service_keys.or(other.service_keys),
            most_rows: self.most_rows.or(other.most_rows),
            milliseconds: self.milliseconds.or(other.milliseconds),
            sent: self.sent.or(other.sent),
            received: self.received.or(other.received),
        }
    }
}

impl Event {
    /// An event at the system's time.
    pub fn new(what: &'static str, words: impl Into<String>) -> Self {
        Event {
            time: Time::now(),
            what,
            run: None,
            peer: None,
            job: None,
            rule: None,
            words: words.into(),
            figures: Figures::default(),
        }
    }

    /// How much it matters.
    pub fn level(&self) -> Level {
        match self.what {
            "policy fault" | "not reloaded" | "panicked" | "not stored" | "not charging" => Level::ERROR,
            "refused" if matches!(self.rule, Some(rules::UNCHARGED | rules::UNRECORDED)) => Level::ERROR,
            "refused" | "failed" | "unsigned" | "refunded" | "broken off" | "turned away" | "recovered"
            | "cancelled" | "strangers" | "mismatch" | "clock" | "ledger" | "relay lost" | "unbounded" => {
                Level::WARN
            }
            _ => Level::INFO,
        }
    }

    /// Tells the subscriber of `tracing`, if there is one, at `level`.
    pub fn trace(&self, level: Level) {
        macro_rules! trace {
            ($level:expr) => {
                tracing::event!(
                    target: TARGET,
                    $level,
                    time = self.time.text(),
                    event = self.what,
                    run = self.run.as_deref(),
                    peer = self.peer.as_deref(),
                    job = self.job.as_deref(),
                    rule = self.rule,
                    client_keys = self.figures.client_keys,
                    // As earlier releases called it: programs read the log.
                    asker_keys = self.figures.client_keys,
                    service_keys = self.figures.service_keys,
                    most_rows = self.figures.most_rows,
                    milliseconds = self.figures.milliseconds,
                    bytes_sent = self.figures.sent,
                    bytes_received = self.figures.received,
                    message = self.words.as_str(),
                )
            };
        }
        match level {
            Level::ERROR => trace!(Level::ERROR),
            Level::WARN => trace!(Level::WARN),
            Level::INFO => trace!(Level::INFO),
            _ => trace!(Level::DEBUG),
        }
    }
}

/// What `tracing` knows these events by.
pub(crate) const TARGET: &str = "tacit::serve";

/// Tells how a run goes on, at the level `DEBUG`; `run` is the name that both sides have for it.
pub(crate) fn detail(what: &'static str, run: &str, words: impl Into<String>) {
    if tracing::enabled!(target: TARGET, Level::DEBUG) {
        let mut event = Event::new(what, words);
        event.run = Some(run.to_owned());
        event.trace(Level::DEBUG);
    }
}

/// Tells of each phase of a run as it begins.
pub(crate) struct Phases<'a> {
    run: &'a str,
    latest: Mutex<&'static str>,
}

impl<'a> Phases<'a> {
    pub(crate) fn of(run: &'a str) -> Self {
        Phases { run, latest: Mutex::new("") }
    }
}

impl Observer for Phases<'_> {
    fn step(&self, step: &Step) {
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        if *latest != step.phase {
            *latest = step.phase;
            detail("phase", self.run, step.phase);
        }
    }
}

/// Whom a service tells.
pub type Log = dyn Fn(&Event) + Send + Sync;
