//! What costs are told in: a link, a machine's rates, and what a protocol takes of both.
//!
//! Computing is counted in nanoseconds of the reference machine, on which the entries' figures were fitted;
//! rates carry them to another.

use super::Entry;
use crate::limits::{self, Limit};
use std::fmt;
use std::time::Duration;
use tacit_net::LinkModel;
use tacit_ot::Security;
use tacit_ot::silent::ferret::cost::CACHE;

/// What the planner must know of a link.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Link {
    /// Millions of bits a second in each direction, above zero.
    pub megabits: f64,
    /// From one side to the other and back.
    pub round_trip: Duration,
}

impl From<LinkModel> for Link {
    /// An unshaped link counts as loopback: 20 Gbit/s and 30 µs.
    fn from(model: LinkModel) -> Self {
        Link {
            megabits: model.megabits().min(20_000.0),
            round_trip: (model.delay() * 2).max(Duration::from_micros(30)),
        }
    }
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.0} Mbit/s, round trip {:.2} ms", self.megabits, self.round_trip.as_secs_f64() * 1e3)
    }
}

impl Link {
    /// Nanoseconds in which `bytes` pass.
    pub(crate) fn pass(&self, bytes: f64) -> f64 {
        bytes * 8e3 / self.megabits
    }

    /// Nanoseconds of `trips` round trips.
    pub(crate) fn wait(&self, trips: f64) -> f64 {
        trips * self.round_trip.as_secs_f64() * 1e9
    }
}

/// The rates of a machine that predictions rest on, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Machine {
    /// AES of a block under a fixed key.
    pub aes: f64,
    /// A product in GF(2^128) added to a sum.
    pub multiply_add: f64,
    /// A block read at random from a table of a mebibyte.
    pub gather: f64,
    /// A Ristretto point times a scalar.
    pub point: f64,
    /// Bytes of a core's second-level cache.
    pub cache: usize,
}

impl Machine {
    /// The machine that the weights were fitted on: AMD Zen 4 with AVX-512.
    pub const REFERENCE: Machine =
        Machine { aes: 0.6, multiply_add: 0.6, gather: 1.15, point: 7_000.0, cache: CACHE };

    /// Measures this machine; takes some ten milliseconds.
    pub fn measure() -> Machine {
        Machine {
            aes: Limit::AesFixed.rough(),
            multiply_add: Limit::MultiplyAdd.rough(),
            gather: Limit::Gather(1 << 20).rough(),
            point: Limit::PointMultiply.rough(),
            cache: limits::second_level_cache().unwrap_or(CACHE),
        }
    }
}

/// A protocol that could serve, and what it would cost.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The protocol's short name.
    pub protocol: &'static str,
    /// Its parameters in one word; empty where it has none to choose.
    pub variant: String,
    /// What it protects against.
    pub security: Security,
    /// Setup and run together.
    pub time: Duration,
    /// In both directions together.
    pub bytes: u64,
    /// Batches of base OTs among all that; [`default`](tacit_ot::base::default) ones until
    /// [`with_base`](Candidate::with_base).
    pub base_batches: u64,
    /// Times that a party waits for the other.
    pub rounds: u64,
    /// What its security rests on.
    pub assumptions: Vec<&'static str>,
}

impl Entry {
    /// The candidate of this entry that takes so many nanoseconds, bytes and round trips.
    pub(crate) fn candidate(
        &self,
        security: Security,
        nanoseconds: f64,
        bytes: u64,
        rounds: u64,
    ) -> Candidate {
        Candidate {
            protocol: self.name,
            variant: String::new(),
            security,
            time: Duration::from_secs_f64((nanoseconds / 1e9).min(1e15)),
            bytes,
            base_batches: u64::from(self.needs_base_ot),
            rounds,
            assumptions: self.assumption_names(),
        }
    }
}

/// Base OTs of a batch that starts an extension.
pub(super) const SETUP_OTS: usize = 127;
/// Points of [`SETUP_OTS`] on the slower side, both sides' shares in turn, and their bytes: a point, 80 bytes
/// an OT, and the head of a frame each way. By the default base OT.
pub(crate) const SETUP_POINTS: f64 = 420.0;
pub(crate) const SETUP_BYTES: f64 = 40.0 + SETUP_OTS as f64 * 80.0;
