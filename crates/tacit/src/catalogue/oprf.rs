//! Queries to a published file of tags, by a verifiable oblivious pseudorandom function.

use super::cost::{Candidate, Link, Machine};
use super::intersection::Intersection;
use super::{Assumption, Entry, Runs, floor};
use crate::Result;
use tacit_ot::Security;
use tacit_psi::oprf::NAME;

/// The verifiable oblivious pseudorandom function of RFC 9497.
pub static OPRF: Entry = Entry {
    name: NAME,
    security: Security::Malicious,
    assumptions: &[Assumption::DiffieHellman, Assumption::RandomOracle],
    needs_base_ot: false,
    instead: "paxos",
    note: "",
    // Blinded, and the blind taken off.
    floor: floor::two_points,
    runs: Runs::Intersection(&Intersection { phases: &[], memory: |_| 0, cost, tested: None }),
};

/// A blinded point there and an evaluated one back, and one proof for all.
const QUERY_BYTES: f64 = 64.0;
const FIXED_BYTES: f64 = 400.0;
/// Of both sides, one after the other: hashing to the group, blinding, evaluating, unblinding, and the proof.
const QUERY_POINTS: f64 = 8.0;
const QUERY_TRIPS: u64 = 2;

fn cost(count: u64, _: Security, link: &Link, machine: &Machine) -> Result<Candidate> {
    let bytes = FIXED_BYTES + count as f64 * QUERY_BYTES;
    let computing = count as f64 * QUERY_POINTS * machine.point;
    let nanoseconds = computing + link.pass(bytes) + link.wait(QUERY_TRIPS as f64);
    Ok(OPRF.candidate(Security::Malicious, nanoseconds, bytes as u64, QUERY_TRIPS))
}
