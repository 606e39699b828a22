//! Set intersection: what a protocol answers beside running.

use super::cost::{Candidate, Link, Machine};
use super::{Entry, Runs};
use crate::{Error, Result, Security};
use tacit_psi::paxos::{Learns, Outcome};

/// A phase of a run: what is done, in which units, and its share of the time.
pub type Phase = (&'static str, &'static str, f64);

/// What intersects sets of keys.
#[derive(Debug)]
pub struct Intersection {
    /// The phases of a run, with their shares of the time of 2^17 and 2^19 keys in memory.
    pub phases: &'static [Phase],
    /// Bytes that a party holds at most, beside the process itself; 0 for one that streams.
    pub memory: fn(&Sizes) -> u64,
    /// What two sets of so many keys each cost. An error if they are larger than the protocol takes.
    pub cost: fn(u64, Security, &Link, &Machine) -> Result<Candidate>,
    /// How many keys a cheating peer can have tested; `None` where nothing is promised of it.
    pub tested: Option<Testing>,
}

/// How many keys a cheating peer can have tested, for the hash calls that it makes.
#[derive(Debug)]
pub struct Testing {
    /// log2 of the hash calls that somebody might make, and of more than that.
    pub effort: [u32; 2],
    /// Whether nobody makes the second, so that its bound holds always.
    pub never_more: bool,
    /// The bound, of an outcome with so many keys of ours, for log2 of the hash calls.
    pub bound: fn(&Outcome, usize, u32) -> tacit_psi::Result<u64>,
}

/// What the memory of a run depends on.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Sizes {
    /// Our distinct keys.
    pub own: u64,
    /// The peer's.
    pub peer: u64,
    /// Who gets a result.
    pub learns: Learns,
    /// Against which peer.
    pub security: Security,
    /// Whether columns of matching rows travel too.
    pub columns: bool,
    /// Whether the circuit over the common keys is held whole.
    pub whole_circuit: bool,
}

impl Entry {
    /// How this protocol intersects; an error of the caller's if it does not.
    pub(crate) fn intersection(&self) -> Result<&'static Intersection> {
        match self.runs {
            Runs::Intersection(intersection) => Ok(intersection),
            _ => Err(Error::Usage(format!("{} intersects no sets", self.name))),
        }
    }

    /// What intersecting two sets of `count` keys each by this protocol costs; of queries to a published file
    /// of tags, `count` of them.
    ///
    /// An error if the sets are larger than the protocol takes, or if it intersects none.
    pub fn intersection_cost(
        &self,
        count: u64,
        security: Security,
        link: &Link,
        machine: &Machine,
    ) -> Result<Candidate> {
        (self.intersection()?.cost)(count, security, link, machine)
    }
}
