//! Set intersection by a key-value store and vector oblivious linear evaluation, and what stands on it.

use super::cost::{Candidate, Link, Machine, SETUP_BYTES, SETUP_POINTS};
use super::intersection::{Intersection, Sizes, Testing};
use super::{Assumption, Entry, Runs, floor};
use crate::Result;
use crate::limits::Limit;
use tacit_ot::Security;
use tacit_ot::extension::softspoken::Groups;
use tacit_ot::vole::gf128;
use tacit_psi::okvs::Store;
use tacit_psi::paxos::Learns;
use tacit_psi::vole_psi::circuit::{Traffic, traffic};
use tacit_psi::vole_psi::{NAME, Parameters, link, tested_at_most};

/// VOLE-PSI of Rindal and Schoppmann: the fastest, on newer assumptions.
pub static VOLE: Entry = Entry {
    name: NAME,
    security: Security::Malicious,
    assumptions: &[Assumption::DualLpn, Assumption::IdealCipher, Assumption::RandomOracle],
    needs_base_ot: true,
    instead: "",
    note: "",
    // Of 1.29 slots, the code over two positions each: two permutations of rows that lie far apart.
    floor: |_| vec![(Limit::Gather(64 << 20), 2.0 * 2.0 * 1.29)],
    runs: Runs::Intersection(&INTERSECTION),
};

static INTERSECTION: Intersection = Intersection {
    phases: &[
        ("setting up", "", 0.02),
        ("encoding", "keys", 0.72),
        ("transferring", "slots", 0.05),
        ("tagging", "keys", 0.18),
        ("comparing", "tags", 0.03),
    ],
    memory,
    cost,
    tested: Some(Testing {
        effort: [60, 80],
        never_more: false,
        bound: |outcome, own, effort| tested_at_most(outcome, own, effort.into()),
    }),
};

/// The peer's columns of matching rows.
pub(super) static PAYLOAD: Entry =
    Entry { name: "payload", note: "the peer's columns of matching rows, on vole", ..VOLE };

/// The share of a run's time of each step of a direction.
const SHARE: [f64; 4] = [0.02, 0.37, 0.03, 0.08];

/// Identifiers that match where keys do: its oblivious function in both directions.
pub static LINK: Entry = Entry {
    name: link::NAME,
    note: "identifiers that match where keys do, on vole",
    floor: |_| vec![(Limit::Gather(64 << 20), 2.0 * 2.0 * 2.0 * 1.29)],
    runs: Runs::Intersection(&Intersection {
        phases: &[
            ("setting up", "", SHARE[0]),
            ("encoding", "keys", SHARE[1]),
            ("transferring", "slots", SHARE[2]),
            ("tagging", "keys", SHARE[3]),
            ("setting up again", "", SHARE[0]),
            ("encoding", "keys", SHARE[1]),
            ("transferring", "slots", SHARE[2]),
            ("tagging", "keys", SHARE[3]),
        ],
        memory: link_memory,
        cost: link_cost,
        tested: Some(Testing {
            effort: [60, 80],
            never_more: false,
            bound: |outcome, own, effort| link::named_at_most(outcome.peer_elements, own, effort.into()),
        }),
    }),
    ..VOLE
};

/// Two directions, whose tags do not pass.
fn link_cost(count: u64, security: Security, link: &Link, machine: &Machine) -> Result<Candidate> {
    let elements = usize::try_from(count).unwrap_or(usize::MAX);
    let parameters = link::parameters(elements, elements, security)?;
    let tags = parameters.tags_bytes();
    let direction = cost_of(count, security, &parameters, link, machine);
    let bytes = 2 * direction.bytes.saturating_sub(tags as u64);
    let unsent = link.pass(2.0 * tags as f64);
    let nanoseconds = (2.0 * direction.time.as_secs_f64() * 1e9 - unsent).max(0.0);
    let candidate = LINK.candidate(security, nanoseconds, bytes, 2 * direction.rounds);
    Ok(Candidate { base_batches: 2 * candidate.base_batches, ..candidate })
}

/// A direction's, beside both functions' values; 32 bytes of a key are the caller's element.
fn link_memory(sizes: &Sizes) -> u64 {
    let run = 170u64.saturating_mul(sizes.own.max(sizes.peer)).min(90 << 20);
    (72 + 32) * sizes.own + run
}

/// Circuit PSI: numbers over all common keys, between parties that keep to the protocol.
pub static CIRCUIT: Entry = Entry {
    name: "circuit",
    security: Security::SemiHonest,
    assumptions: &[Assumption::Lpn, Assumption::DualLpn, Assumption::IdealCipher, Assumption::RandomOracle],
    note: "counts, sums, means and shares, on vole",
    floor: floor::unknown,
    runs: Runs::Intersection(&Intersection {
        phases: &[
            ("setting up", "", 0.02),
            ("encoding", "keys", 0.08),
            ("transferring", "slots", 0.01),
            ("tagging", "keys", 0.04),
            ("comparing", "bins", 0.85),
        ],
        memory: circuit_memory,
        cost: circuit_cost,
        tested: None,
    }),
    ..VOLE
};

/// Blocks of AES whose time an element takes, fitted at 2^20 on the reference machine over loopback: 0.33 s.
const ELEMENT_AES: f64 = 530.0;
/// What the noise costs whatever the sets' sizes: 25 ms at 2^16, less what its elements take.
const NOISE_AES: f64 = 1e7;

fn cost(count: u64, security: Security, link: &Link, machine: &Machine) -> Result<Candidate> {
    let elements = usize::try_from(count).unwrap_or(usize::MAX);
    Ok(cost_of(count, security, &Parameters::new(elements, elements, security)?, link, machine))
}

/// Of a run with these parameters.
fn cost_of(
    count: u64,
    security: Security,
    parameters: &Parameters,
    link: &Link,
    machine: &Machine,
) -> Candidate {
    let slots = parameters.shape().slots();
    let base: u64 =
        gf128::base_cots(slots, security).map(|run| Groups::default().bytes_by_hash(run, security)).sum();
    let store = gf128::bytes(slots, security) + 16 * slots + parameters.tags_bytes();
    let bytes = SETUP_BYTES + (Groups::default().trees_bytes() + base) as f64 + store as f64;
    let trips = 4.0 + 3.0 * slots.div_ceil(gf128::run_size(slots)) as f64;
    // A store of one slot an element takes some three products to solve for each two elements, and one to look
    // them up on either side.
    let products = if parameters.shape().is_dense() { 5.0 * (count as f64).powi(2) } else { 0.0 };
    // The steps follow one another: transfer and computing add.
    let nanoseconds = (count as f64 * ELEMENT_AES + NOISE_AES) * machine.aes
        + products * machine.multiply_add
        + link.pass(bytes)
        + link.wait(trips)
        + 2.0 * SETUP_POINTS * machine.point;
    VOLE.candidate(security, nanoseconds, bytes as u64, trips as u64)
}

/// Peaks of runs of 2^16 to 2^24 keys: 32 bytes of a key are the caller's element; a run of the receiver's
/// store is what both hold at most, whatever the sets' sizes.
fn memory(sizes: &Sizes) -> u64 {
    let Sizes { own, peer, learns, .. } = *sizes;
    let proofs = if sizes.columns || learns == Learns::Both { 16 } else { 0 };
    let receivers = match learns {
        Learns::Me => own,
        Learns::Peer => peer,
        Learns::Both => own.max(peer),
    };
    let running = (72 + proofs) * own + 170u64.saturating_mul(receivers).min(90 << 20);
    // Who learns holds the peer's tags beside its own, up to sixteen for each, with a place for what is found at each
    // of them, and the bitmap that all of them begin with.
    let held = peer.min(16 * own);
    let comparing = (81 + proofs) * own + 16 * held + 8 * held.saturating_sub(own) + peer / 4;
    running.max(if learns == Learns::Peer { 0 } else { comparing })
}

/// A sum at 2^16 on the reference machine over loopback: 0.24 s.
const COUNTED_AES: f64 = 6_000.0;
/// What a number takes beside sharing: a product's OT and answer for each bin, and a small circuit.
const OPENED_BYTES: f64 = 40.0;
const OPENING_TRIPS: f64 = 3.0;
/// Before shares are computed on: what both sides say of their numbers and of the function.
const SHARING_TRIPS: f64 = 2.0;

/// VOLE-PSI and what circuit PSI does beside it.
fn circuit_cost(count: u64, _: Security, link: &Link, machine: &Machine) -> Result<Candidate> {
    shared_cost(count, 1, (OPENED_BYTES, OPENING_TRIPS), link, machine)
}

/// What shares of the intersection cost whose numbers a side shares by hints, or the holder of the table knows.
pub(crate) fn sharing(count: u64, link: &Link, machine: &Machine) -> Result<Candidate> {
    shared_cost(count, 2, (0.0, SHARING_TRIPS), link, machine)
}

/// With so many hints, and bytes for each key and trips of what follows.
fn shared_cost(
    count: u64,
    hints: usize,
    (more, then): (f64, f64),
    link: &Link,
    machine: &Machine,
) -> Result<Candidate> {
    let elements = usize::try_from(count).unwrap_or(usize::MAX);
    let oblivious = cost(count, Security::SemiHonest, link, machine)?;
    // No tags pass.
    let tags = Parameters::new(elements, elements, Security::SemiHonest)?.tags_bytes() as f64;
    let Traffic { bytes, trips } = traffic(elements, elements, hints)?;
    let (bytes, trips) = (bytes + SETUP_BYTES + count as f64 * more - tags, trips + then);
    let nanoseconds = count as f64 * COUNTED_AES * machine.aes + link.pass(bytes.max(0.0)) + link.wait(trips);
    let (bytes, rounds) = (oblivious.bytes as f64 + bytes, oblivious.rounds + trips.ceil() as u64);
    let candidate = CIRCUIT.candidate(Security::SemiHonest, nanoseconds, bytes as u64, rounds);
    Ok(Candidate { protocol: NAME, time: oblivious.time + candidate.time, ..candidate })
}

/// Bytes that a number over all common keys takes whatever the sets' sizes, and for each key of the larger
/// set: together above every peak of the command that was measured at 2^14 to 2^22 keys a side.
const AGGREGATE_BASE: u64 = 30 << 20;
const AGGREGATE: u64 = 470;
/// Bytes of a key in a statistic, whose circuit is held whole.
const SHARED_KEY: u64 = 100_000;

/// By the larger set: whoever has it holds three places a key, the other a bin for each of its own.
fn circuit_memory(sizes: &Sizes) -> u64 {
    let each = if sizes.whole_circuit { SHARED_KEY } else { AGGREGATE };
    AGGREGATE_BASE + each * sizes.own.max(sizes.peer)
}
