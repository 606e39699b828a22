//! Counts and sums of common keys against malicious peers: sorted lists, merged in a circuit.

use super::authenticated::AUTHENTICATED;
use super::cost::{Candidate, Link, Machine};
use super::evaluation::EvalRequest;
use super::intersection::{Intersection, Sizes, Testing};
use super::{Entry, Runs, authenticated, floor};
use crate::{Error, Result};
use tacit_2pc::OutputTo;
use tacit_ot::Security;
use tacit_psi::circuit::Reveal;
use tacit_psi::sorted::{MAX_ELEMENTS, NAME, ands, input_bits, tested_at_most};

/// Sort–compare–shuffle on authenticated garbling, without the shuffle.
pub static SORTED: Entry = Entry {
    name: NAME,
    note: "counts, sums and means, on authenticated",
    floor: floor::unknown,
    runs: Runs::Intersection(&Intersection {
        phases: &[
            ("setting up", "", 0.01),
            ("hashing", "keys", 0.01),
            ("transferring", "", 0.0),
            ("tagging", "", 0.0),
            ("evaluating", "AND gates", 0.98),
        ],
        memory,
        cost,
        tested: Some(Testing {
            effort: [60, 80],
            never_more: false,
            bound: |outcome, _, effort| Ok(tested_at_most(outcome.peer_elements, effort)),
        }),
    }),
    ..AUTHENTICATED
};

/// Nanoseconds of an AND gate beside authenticated garbling's own: three XOR gates and more for each, and
/// making the circuit.
const CIRCUIT_NS: f64 = 260.0;

/// A count; a sum or a mean takes a fourteenth more.
fn cost(count: u64, _: Security, link: &Link, machine: &Machine) -> Result<Candidate> {
    if count > MAX_ELEMENTS as u64 {
        return Err(too_many());
    }
    let sizes = [count as usize; 2];
    let request = EvalRequest {
        ands: ands(sizes, &Reveal::Count),
        inputs: input_bits(sizes, &Reveal::Count),
        outputs: 16,
        output_to: OutputTo::Evaluator,
        rows: 1,
        threads: 1,
        security: Security::Malicious,
        copies: None,
        protocol: Some(AUTHENTICATED.name),
        levels: 0,
        width: 0,
        ot: None,
    };
    let cost = authenticated::cost(&request);
    let cost = super::Cost { ns: cost.ns + request.ands as f64 * CIRCUIT_NS, ..cost };
    Ok(cost.over(&SORTED, &request, link, machine).candidate)
}

/// What is said of a set that is too large.
pub(crate) fn too_many() -> Error {
    Error::Input(format!(
        "a number over all common keys accepts at most {MAX_ELEMENTS} keys per side against a malicious peer; give fewer, or set semi-honest security on both sides"
    ))
}

/// What a stretch of the circuit takes, and each key of either side: 128 wires, their labels, masks and
/// places, and the circuit's own record of them.
const STRETCH: u64 = 272 << 20;
const KEY: u64 = 34_000;

fn memory(sizes: &Sizes) -> u64 {
    STRETCH + KEY.saturating_mul(sizes.own.saturating_add(sizes.peer))
}
