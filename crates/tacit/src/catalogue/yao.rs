//! Yao's protocol with half-gates, by the messages that it sends.

use super::evaluation::{BLOCK, Cost, EvalRequest, Evaluation};
use super::{Assumption, Entry, Runs};
use crate::limits::Limit;
use tacit_2pc::semi_honest::ROWS_AT_ONCE;
use tacit_ot::Security;
use tacit_ot::extension::iknp;

/// Yao's protocol: one garbled circuit.
pub static YAO: Entry = Entry {
    name: "yao",
    security: Security::SemiHonest,
    assumptions: &[Assumption::IdealCipher],
    needs_base_ot: true,
    instead: "",
    note: "",
    // Four hashes an AND gate at the garbler, and two at the evaluator, under two keys.
    floor: |_| vec![(Limit::AesRekeyed, 2.0)],
    runs: Runs::Computation(&Evaluation { ways: |request| vec![cost(request)] }),
};

/// On the reference machine, in nanoseconds: a run, an AND gate of one row and of many side by side, and
/// bits.
const YAO_NS: f64 = 0.2e6;
const ROW_NS: f64 = 27.0;
const ROWS_NS: f64 = 20.0;
const OWN_BIT_NS: f64 = 42.0;
const PEER_BIT_NS: f64 = 60.0;
const BIT_OUT_NS: f64 = 12.0;
const YAO_TRIPS: f64 = 2.0;

fn cost(request: &EvalRequest) -> Cost {
    let EvalRequest { ands, inputs, outputs, rows, output_to, .. } = *request;
    let threads = request.threads.max(1) as u64;
    let each = rows.div_ceil(threads);
    let bits = inputs[1] * each;
    // Terms, the hash's start, and what every row takes.
    let decoding = if output_to.evaluator() { outputs.div_ceil(8) } else { 0 };
    let garbler = threads * (49 + BLOCK) + rows * (2 * BLOCK * ands + BLOCK * inputs[0] + decoding);
    let labels = if output_to.garbler() { BLOCK * outputs * rows } else { 0 };
    let evaluator = threads * (49 + iknp::bytes(bits as usize) + bits.div_ceil(8)) + labels;
    let gate = if each >= ROWS_AT_ONCE as u64 { ROWS_NS } else { ROW_NS };
    let row = ands as f64 * gate
        + inputs[0] as f64 * OWN_BIT_NS
        + inputs[1] as f64 * PEER_BIT_NS
        + outputs as f64 * BIT_OUT_NS;
    Cost {
        copies: None,
        ns: YAO_NS + each as f64 * row,
        bytes: [garbler as f64, evaluator as f64],
        trips: YAO_TRIPS,
        early: [0.0; 2],
        both_ways: false,
    }
}
