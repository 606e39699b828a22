//! Cut-and-choose with input recovery, by the messages of the table in [`tacit_2pc::wmk17`], row after row.

use super::evaluation::{BLOCK, Cost, EvalRequest, Evaluation};
use super::{Assumption, Entry, Runs};
use crate::limits::Limit;
use tacit_2pc::OutputTo;
use tacit_2pc::authenticated::buckets::Level;
use tacit_2pc::wmk17::Copies;
use tacit_2pc::wmk17::probe::ProbeMatrix;
use tacit_ot::Security;
use tacit_ot::extension::kos;

/// Cut-and-choose of Wang, Malozemoff and Katz, with input recovery.
pub static WMK17: Entry = Entry {
    name: "wmk17",
    security: Security::Malicious,
    assumptions: &[Assumption::DiffieHellman, Assumption::IdealCipher, Assumption::RandomOracle],
    needs_base_ot: true,
    instead: "authenticated",
    note: "recovers a cheater's input by Diffie–Hellman",
    // As of one garbled circuit in every copy, of which there are 44 at least.
    floor: |_| vec![(Limit::AesRekeyed, 2.0 * 44.0)],
    runs: Runs::Computation(&Evaluation {
        ways: |request| {
            let copies = request.copies.map_or(Copies::ALL.to_vec(), |copies| vec![copies]);
            copies.into_iter().map(|copies| cost(request, copies)).collect()
        },
    }),
};

/// An execution, an AND gate in all copies, with whole tables and with coded ones; bits in 44 copies.
const EXECUTION_NS: f64 = 3.4e6;
const GATE_NS: [f64; 2] = [1_320.0, 1_700.0];
const OWN_BITS_NS: f64 = 3_400.0;
const PEER_BITS_NS: f64 = 4_600.0;
const OUTPUT_NS: f64 = 4_500.0;
const ROW_TRIPS: f64 = 3.0;
/// Tables that are sent while P2 opens the committing OT, at most.
const EARLY: f64 = (8 << 20) as f64;
/// More where the garbler learns outputs.
const RETURN_TRIPS: f64 = 2.0;

/// Correlations that prove the opening of the committing OT.
const OPENING_CHECKS: usize = 128;
const POINT: u64 = 32;
const DIGEST: u64 = 32;

fn cost(request: &EvalRequest, kind: Copies) -> Cost {
    let EvalRequest { ands, inputs, outputs, rows, output_to, .. } = *request;
    let level = Level::among(request.threads);
    let copies = kind.at(level);
    let (total, sent) = (copies.total() as u64, copies.tables() as u64);
    let encoded = ProbeMatrix::with(inputs[1] as usize, level.bits() as usize).encoded() as u64;
    // Outputs for P1 alone are masked by further input bits of its.
    let own = inputs[0] + if output_to == OutputTo::Garbler { outputs } else { 0 };
    let kinds = 1 + u64::from(output_to.garbler());
    let terms = 1 + DIGEST;
    // The committing OT runs the other way, from random OTs of the first extension.
    let committing = kos::bytes_by_hash(own as usize + OPENING_CHECKS);
    let transfer = kos::bytes_by_hash(kos::SEEDS + (total + encoded) as usize);
    let garbler = terms
        + committing
        + BLOCK
        + 2 * BLOCK * total
        + 2 * BLOCK * total * encoded
        + own.div_ceil(8)
        + (2 * BLOCK + 2 * DIGEST) * total * own
        + kinds * (2 * DIGEST * outputs + total * (DIGEST + 2 * BLOCK * outputs))
        + 2 * BLOCK * sent * ands
        + DIGEST * total
        + BLOCK * (1 + outputs)
        + (POINT + BLOCK) * total;
    let evaluator = terms
        + 2 * POINT
        + BLOCK
        + transfer
        + total.div_ceil(8)
        + encoded.div_ceil(8)
        + BLOCK
        + DIGEST
        + POINT;
    let (back, answer) = match output_to {
        OutputTo::Evaluator => (0, 0),
        _ => (2 * BLOCK * outputs, 2 * DIGEST + 1 + BLOCK * outputs),
    };
    let copy = total as f64 / Copies::STANDARD.total() as f64;
    let ns = EXECUTION_NS
        + ands as f64 * GATE_NS[usize::from(copies.coded())]
        + copy * (own as f64 * OWN_BITS_NS + inputs[1] as f64 * PEER_BITS_NS)
        + copy * kinds as f64 * outputs as f64 * OUTPUT_NS;
    let each = rows.div_ceil(request.threads.max(1) as u64) as f64;
    Cost {
        copies: Some(kind),
        ns: each * ns,
        bytes: [(rows * (garbler + back)) as f64, (rows * (evaluator + answer)) as f64],
        trips: each * (ROW_TRIPS + if output_to.garbler() { RETURN_TRIPS } else { 0.0 }),
        early: [each, ((2 * BLOCK * sent * ands) as f64).min(EARLY)],
        both_ways: false,
    }
}
