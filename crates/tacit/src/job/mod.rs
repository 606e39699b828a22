//! Jobs: what two parties do together, each one type that holds the job's parameters.
//!
//! A job says what both sides must agree on, what it needs of memory, what it will cost, and what the other
//! side learns; and it runs over the channels of a session, telling an [`Observer`] how far it is.
//!
//! - [`eval`]: a function of both parties' inputs.
//! - [`long`]: one too large to hold.
//! - [`psi`]: which of our keys the peer has too.
//! - [`query`]: a question in SQL about both sides' joined tables.
//! - [`mod@ot`]: oblivious transfers, by a protocol or out of what was made ahead.
//! - [`link`]: identifiers that match where keys do.
//! - [`pair`]: the advertising industry's PAIR, whose messages are tables.
//! - [`pool`]: correlations made ahead, and kept.
//! - [`nisc`]: oblivious transfers whose messages are files.
//! - [`tags`]: a large set published once, and small ones intersected with it.
//!
//! [`agreed`] shows what two sides' keys have in common.

pub mod agreed;
pub mod eval;
pub mod link;
pub mod long;
pub mod nisc;
pub mod ot;
pub mod pair;
pub mod pool;
pub mod psi;
pub mod query;
pub mod tags;
pub mod triples;
pub mod vole;

use crate::{Error, Result};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tacit_net::{Channel, Stats, Traffic};
use tacit_ot::Security;

/// How far a job is.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Step {
    /// What it does at the moment, in a word or two, such as `encoding`.
    pub phase: &'static str,
    /// How much of the phase is done.
    pub done: u64,
    /// How much there is; 0 where that is not known.
    pub total: u64,
    /// What is counted, such as `keys`.
    pub unit: &'static str,
    /// The share of the whole job that is done: from 0 to [`Step::LAST`], and never falls.
    pub fraction: f64,
    /// Bytes that have passed, both directions together.
    pub bytes: u64,
}

impl Step {
    /// The largest [`fraction`](Self::fraction): a job that still runs is not done.
    pub const LAST: f64 = 0.99;
}

/// Who is told how a job goes on.
pub trait Observer: Sync {
    /// The channels are there. `traffic` counts their bytes while they pass, `expected` of them in all, or 0
    /// where that is not known: what to look at where steps are far between.
    fn opened(&self, traffic: &Traffic, expected: u64) {
        let _ = (traffic, expected);
    }

    /// The connection was lost, and the job goes on over another as soon as the peer is there again.
    fn interrupted(&self, why: &Error) {
        let _ = why;
    }

    /// The peer announced how much it sends for each of its keys; what is taken of that is decided next.
    fn columns(&self, widths: &psi::Widths) {
        let _ = widths;
    }

    /// The job is so far.
    fn step(&self, step: &Step) {
        let _ = step;
    }
}

/// Nobody is told.
impl Observer for () {}

/// What a job gave over a connection, and what that took.
#[derive(Clone, Debug)]
pub struct Ran<T> {
    /// What it gave.
    pub result: T,
    /// From the handshake's end to the result.
    pub wall: Duration,
    /// What passed.
    pub stats: Stats,
}

/// What the other side learns, said for the level of security: `what` holds of a semi-honest peer alone if no
/// other was asked for.
pub fn learned(security: Security, what: &str) -> String {
    match security {
        Security::Malicious => what.to_owned(),
        Security::SemiHonest => {
            format!("{what}, if it follows the protocol; if it cheats, nothing is promised")
        }
    }
}

/// The party that a sentence on what the other one learns is about: the local one, which is called `you`, or one
/// called by its name, as in everything that is stored or sent.
#[derive(Clone, Copy)]
pub(crate) enum About<'a> {
    Local,
    Party(&'a str),
}

impl About<'_> {
    /// With its verb: `you have`, or `NAME has`.
    pub(crate) fn does(self, plural: &str, singular: &str) -> String {
        match self {
            About::Local => format!("you {plural}"),
            About::Party(name) => format!("{name} {singular}"),
        }
    }

    /// What is its own: `of yours`, or `of NAME`.
    pub(crate) fn of(self) -> String {
        match self {
            About::Local => "of yours".to_owned(),
            About::Party(name) => format!("of {name}"),
        }
    }

    /// Its own things: `your rows`, or `rows of NAME`.
    pub(crate) fn own(self, things: &str) -> String {
        match self {
            About::Local => format!("your {things}"),
            About::Party(name) => format!("{things} of {name}"),
        }
    }
}

/// A phase of a job: its name, what it counts, and its share of the time, out of the sum of all shares.
pub(crate) type Phase = (&'static str, &'static str, f64);

/// A job's way through its phases, which may be left out but never come again.
pub(crate) struct Course<'a> {
    phases: &'a [Phase],
    observer: &'a dyn Observer,
    traffic: Traffic,
    furthest: Mutex<f64>,
}

impl<'a> Course<'a> {
    /// Counts what passes over `channels` from here on.
    pub(crate) fn begin(
        phases: &'a [Phase],
        channels: &mut [Channel],
        expected: u64,
        observer: &'a dyn Observer,
    ) -> Self {
        let traffic = Traffic::default();
        channels.iter_mut().for_each(|channel| channel.count_into(&traffic));
        observer.opened(&traffic, expected);
        Course { phases, observer, traffic, furthest: Mutex::new(0.0) }
    }

    /// Counts what passes over these channels too, of another connection of the same job.
    pub(crate) fn count(&self, channels: &mut [Channel]) {
        channels.iter_mut().for_each(|channel| channel.count_into(&self.traffic));
    }

    /// `done` of `total` of phase number `phase` are done.
    pub(crate) fn at(&self, phase: usize, done: u64, total: u64) {
        let Some(&(name, unit, share)) = self.phases.get(phase) else { return };
        let all: f64 = self.phases.iter().map(|phase| phase.2).sum();
        let before: f64 = self.phases[..phase].iter().map(|phase| phase.2).sum();
        let within = if total == 0 { 0.0 } else { (done as f64 / total as f64).min(1.0) };
        let bytes = self.traffic.bytes();
        // Held while the observer is told, so that it hears of several threads in order.
        let mut furthest = self.furthest.lock().unwrap_or_else(PoisonError::into_inner);
        let fraction = ((before + share * within) / all).min(Step::LAST).max(*furthest);
        *furthest = fraction;
        self.observer.step(&Step { phase: name, done, total, unit, fraction, bytes });
    }
}

/// The channel that a job's parties share a setup over.
pub(crate) fn first(channels: &mut [Channel]) -> Result<&mut Channel> {
    channels.first_mut().ok_or_else(|| Error::Other("a job needs at least one channel".into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keeps all that it is told.
    #[derive(Default)]
    struct Witness(Mutex<Vec<Step>>);

    impl Observer for Witness {
        fn step(&self, step: &Step) {
            self.0.lock().unwrap().push(*step);
        }
    }

    #[test]
    fn a_job_that_still_runs_is_never_done_and_never_goes_back() {
        let witness = Witness::default();
        let phases = [("first", "keys", 1.0), ("second", "slots", 3.0), ("third", "keys", 0.0)];
        let course = Course::begin(&phases, &mut [], 0, &witness);
        let steps = [(0, 0, 4), (0, 4, 4), (1, 1, 2), (1, 0, 0), (0, 4, 4), (1, 2, 2), (2, 9, 3), (7, 1, 1)];
        steps.into_iter().for_each(|(phase, done, total)| course.at(phase, done, total));
        let steps = witness.0.into_inner().unwrap();
        let fractions: Vec<f64> = steps.iter().map(|step| step.fraction).collect();
        assert_eq!(fractions, [0.0, 0.25, 0.625, 0.625, 0.625, Step::LAST, Step::LAST]);
        assert_eq!((steps[2].phase, steps[2].unit), ("second", "slots"));
    }

    #[test]
    fn bytes_are_counted_over_all_channels() {
        let witness = Witness::default();
        let (mut a, mut b) = tacit_net::memory::pair();
        let phases = [("only", "", 1.0)];
        let course = Course::begin(&phases, std::slice::from_mut(&mut a), 0, &witness);
        a.send(&[7; 1000]).unwrap();
        a.flush().unwrap();
        b.send(&[8; 500]).unwrap();
        b.flush().unwrap();
        a.recv(&mut [0; 500]).unwrap();
        course.at(0, 1, 2);
        let seen = a.stats();
        let bytes = witness.0.lock().unwrap()[0].bytes;
        assert_eq!(bytes, seen.bytes_sent + seen.bytes_received);
        assert!(bytes >= 1500, "{bytes}");
    }
}
