//! PaXoS: set intersection by a key-value store and OT extension.

use super::cost::{Candidate, Link, Machine, SETUP_BYTES, SETUP_POINTS};
use super::intersection::{Intersection, Sizes, Testing};
use super::{Assumption, Entry, Runs};
use crate::Result;
use crate::limits::Limit;
use tacit_ot::Security;
use tacit_ot::extension::{kos, oos};
use tacit_psi::okvs::paxos::Shape;
use tacit_psi::paxos::{CHUNK, Learns, MAX_ELEMENTS, NAME, Parameters};

/// PaXoS of Pinkas, Rosulek, Trieu and Yanai.
pub static PAXOS: Entry = Entry {
    name: NAME,
    security: Security::Malicious,
    assumptions: &[Assumption::IdealCipher, Assumption::RandomOracle],
    needs_base_ot: true,
    instead: "",
    note: "",
    // Both seeds of each column of the store's rows.
    floor: |item| {
        let columns = if item.security == Security::Malicious { 768.0 } else { 512.0 };
        vec![(Limit::AesFixed, 2.0 * 2.0 * columns / 128.0)]
    },
    runs: Runs::Intersection(&Intersection {
        phases: &[
            ("setting up", "", 0.02),
            ("encoding", "keys", 0.45),
            ("transferring", "slots", 0.25),
            ("tagging", "keys", 0.26),
            ("comparing", "tags", 0.02),
        ],
        memory,
        cost,
        tested: Some(Testing {
            effort: [80, 128],
            never_more: true,
            bound: |outcome, own, effort| outcome.tested_at_most(own, effort.into()),
        }),
    }),
};

/// Blocks of AES whose time an element takes, fitted at 2^20 on the reference machine over loopback: 1.74 µs
/// and 1.47 µs.
const STRICT_AES: f64 = 2_900.0;
const LOOSE_AES: f64 = 2_450.0;

fn cost(count: u64, security: Security, link: &Link, machine: &Machine) -> Result<Candidate> {
    let aes = if security == Security::Malicious { STRICT_AES } else { LOOSE_AES };
    let elements = usize::try_from(count).unwrap_or(usize::MAX);
    let parameters = Parameters::new(elements, elements, security)?;
    let (slots, length) = (parameters.shape().slots(), parameters.code_length());
    let n = count as f64;
    // Each chunk of the store waits once for its check.
    let trips = 6.0 + slots.div_ceil(CHUNK) as f64;
    // The seeds of the code's columns come of KOS.
    let store = oos::bytes(slots, length, parameters.code_dimension()) + kos::bytes(length);
    let bytes = SETUP_BYTES + store as f64 + n * parameters.tag_bytes() as f64;
    // The steps follow one another: transfer and computing add.
    let nanoseconds =
        n * aes * machine.aes + link.pass(bytes) + link.wait(trips) + 2.0 * SETUP_POINTS * machine.point;
    Ok(PAXOS.candidate(security, nanoseconds, bytes as u64, trips as u64))
}

/// From the peaks of runs of 2^10 and 2^19 keys, of one side and of both, and 16 for a table that has just
/// grown: a sender holds a row of the code for each slot of the receiver's store.
fn memory(sizes: &Sizes) -> u64 {
    let Sizes { own, peer, .. } = *sizes;
    let (receiving, row) = match sizes.security {
        Security::Malicious => (395, 96),
        Security::SemiHonest => (295, 64),
    };
    // What it holds while rows come, and while it compares: the peer's tags, up to sixteen for each of its own, with a place
    // for what is found at each of them.
    let receiver = (receiving * own).max(110 * own + 40 * peer.min(16 * own));
    let sender = |peer: u64| {
        let keys = usize::try_from(peer).unwrap_or(usize::MAX).min(MAX_ELEMENTS);
        let slots = Shape::for_keys(keys).map_or(0, |shape| shape.slots() as u64);
        165 * own + row * slots
    };
    match sizes.learns {
        Learns::Me => receiver,
        Learns::Peer => sender(peer),
        // The smaller set's owner receives.
        Learns::Both => receiver.max(sender(peer.min(own))),
    }
}
