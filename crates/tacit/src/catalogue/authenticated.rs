//! Authenticated garbling, by the messages of the phases in [`tacit_2pc::authenticated`].

use super::cost::{Candidate, Link, Machine, SETUP_BYTES, SETUP_POINTS};
use super::evaluation::{BLOCK, Cost, EvalRequest, Evaluation};
use super::{Assumption, Entry, Runs};
use crate::limits::Limit;
use tacit_2pc::authenticated::Demand;
use tacit_2pc::authenticated::buckets::{self, Level};
use tacit_net::LinkModel;
use tacit_ot::Security;
use tacit_ot::extension::kos;
use tacit_ot::silent::ferret::cost::CACHE;

/// Authenticated garbling of Katz, Ranellucci, Rosulek and Wang.
pub static AUTHENTICATED: Entry = Entry {
    name: "authenticated",
    security: Security::Malicious,
    assumptions: &[Assumption::Lpn, Assumption::IdealCipher, Assumption::RandomOracle],
    needs_base_ot: true,
    instead: "",
    note: "",
    // One garbled circuit, and the three hashes that a side makes of each triple, at least three of them.
    floor: |_| vec![(Limit::AesRekeyed, 2.0 + 3.0 * 3.0)],
    runs: Runs::Computation(&Evaluation {
        // Copies are cut-and-choose's.
        ways: |request| if request.copies.is_some() { Vec::new() } else { vec![cost(request)] },
    }),
};

/// On the reference machine: a session, a correlation of both directions, a triple, an AND gate beside its
/// triples, and an input or output bit.
const SESSION_NS: f64 = 2.5e6;
const CORRELATION_NS: f64 = 24.0;
const TRIPLE_NS: f64 = 17.0;
const MASKED_GATE_NS: f64 = 80.0;
const BIT_NS: f64 = 60.0;

/// Round trips, counted by messages and measured over lines of much delay: of a check of triples its G, d,
/// comparison and differences; of a preparation and the runs that it serves what frames the checks, the products
/// of masks and the last phase; of outputs for the garbler.
const CHECK_TRIPS: f64 = 3.0;
const RUN_TRIPS: f64 = 4.5;
const ANSWER_TRIPS: f64 = 0.5;
const DIGEST: u64 = 32;

/// What a party sends of `bits` that both show.
fn shown(bits: u64) -> u64 {
    bits.div_ceil(8)
}

/// What `count` triples for a protocol of the user's own cost, base OTs included.
pub(crate) fn triples(count: u64, link: &Link, machine: &Machine) -> Candidate {
    let level = Level::ALONE;
    let count = usize::try_from(count).unwrap_or(usize::MAX / 1024);
    let config = Demand::of_triples(count).ferret(&LinkModel::LOOPBACK, level);
    let (mut made, mut correlations, mut checks, mut runs) = (0u64, 0u64, 0u64, 0u64);
    let mut piece = |ands: usize, times: u64| {
        let demand = Demand::of_triples(ands);
        correlations = correlations.saturating_add(times.saturating_mul(demand.correlations(level)));
        runs += times;
        for (buckets, size) in demand.windows(level) {
            made = made.saturating_add(times.saturating_mul((buckets * size) as u64));
            checks += times * level.checks(buckets, false) as u64;
        }
    };
    piece(buckets::WINDOW, (count / buckets::WINDOW) as u64);
    piece(count % buckets::WINDOW, 1);
    let ferret = config.cost(correlations, 1, CACHE / 2);
    let [of_triples, of_checks] = [of_triples(made, level), checks * 7 * DIGEST];
    let bytes = 2.0 * (ferret.awaited + ferret.streamed)
        + (kos::bytes_by_hash(kos::SEEDS) + 2 * of_triples + of_checks + runs * 6 * DIGEST) as f64
        + SETUP_BYTES;
    let computing = SESSION_NS + correlations as f64 * CORRELATION_NS + made as f64 * TRIPLE_NS;
    let computing = computing * machine.aes / Machine::REFERENCE.aes;
    let trips = ferret.trips + CHECK_TRIPS * checks as f64 + RUN_TRIPS * runs as f64;
    let nanoseconds = SETUP_POINTS * machine.point + computing.max(link.pass(bytes / 2.0)) + link.wait(trips);
    AUTHENTICATED.candidate(Security::Malicious, nanoseconds, bytes as u64, trips.ceil() as u64)
}

/// A triple's message, its d, and for all but the first of a bucket a difference: what a party sends.
fn of_triples(triples: u64, level: Level) -> u64 {
    shown(triples.saturating_mul(u64::from(level.message_bits())))
        + shown(triples)
        + shown(triples.saturating_mul(3) / 4)
}

pub(super) fn cost(request: &EvalRequest) -> Cost {
    let EvalRequest { ands, inputs, outputs, rows, output_to, .. } = *request;
    let threads = request.threads.max(1) as u64;
    let each = rows.div_ceil(threads);
    let level = Level::among(threads as usize);
    let one = Demand {
        ands: ands as usize,
        garbler_inputs: inputs[0] as usize,
        evaluator_inputs: inputs[1] as usize,
    };
    let config = one.times(each as usize).ferret(&LinkModel::LOOPBACK, level);

    // Preparations, each of as many rows as go together.
    let together = one.rows_together() as u64;
    let (mut triples, mut correlations, mut checks, mut runs) = (0u64, 0u64, 0u64, 0u64);
    let mut preparation = |rows: u64| {
        let demand = one.times(rows as usize);
        correlations += demand.correlations(level);
        // A function of more gates than a window goes through all phases window by window.
        runs += demand.ands.div_ceil(buckets::WINDOW).max(1) as u64;
        for (buckets, size) in demand.windows(level) {
            triples += (buckets * size) as u64;
            // Where the link is not long, a check more is not seen.
            checks += level.checks(buckets, true) as u64;
        }
    };
    (0..each / together).for_each(|_| preparation(together));
    if each % together > 0 {
        preparation(each % together);
    }

    // Each direction of correlated OT is one party's trees and the other's bits, so both send the same, but
    // for what makes the second direction's seeds.
    let ferret = config.cost(correlations, 1, CACHE / 2);
    let cots = (ferret.awaited + ferret.streamed) as u64;
    let seeds = kos::bytes_by_hash(kos::SEEDS);
    let of_triples = of_triples(triples, level);
    let of_checks = |parts: u64| checks * parts * DIGEST;
    // Two messages that compare what both want, and hashes: of two phases' openings, and one in the last phase,
    // one more with outputs.
    let of_runs = |learns: bool| runs * (6 + u64::from(learns)) * DIGEST;
    let inputs_shown = |side: usize| shown(inputs[side]);
    let opened = |learns: bool| if learns { shown(outputs) } else { 0 };
    let gates = shown(2 * ands) + shown(ands);
    let [to_garbler, to_evaluator] = [output_to.garbler(), output_to.evaluator()];
    let tables = BLOCK * (inputs[0] + inputs[1]) + 2 * BLOCK * ands;
    let garbler = gates + inputs_shown(0) + tables + opened(to_evaluator);
    let evaluator = gates + inputs_shown(1) + opened(to_garbler);
    let side = |row: u64, parts: u64, learns: bool, seeds: u64| {
        threads * (cots + seeds + of_triples + of_checks(parts) + of_runs(learns)) + rows * row
    };
    let row = ands as f64 * MASKED_GATE_NS + (inputs[0] + inputs[1] + outputs) as f64 * BIT_NS;
    Cost {
        copies: None,
        ns: SESSION_NS
            + correlations as f64 * CORRELATION_NS
            + triples as f64 * TRIPLE_NS
            + each as f64 * row,
        bytes: [side(garbler, 5, to_evaluator, 0) as f64, side(evaluator, 2, to_garbler, seeds) as f64],
        trips: ferret.trips
            + CHECK_TRIPS * checks as f64
            + RUN_TRIPS * runs as f64
            + if to_garbler { ANSWER_TRIPS } else { 0.0 },
        early: [0.0; 2],
        both_ways: false,
    }
}
