//! Functions too large to hold: what the documents and the planner tell of them.

use tacit::catalogue::AUTHENTICATED;
use tacit::crypto::BitVec;
use tacit::job::long::{Job, table};
use tacit::net::{Channel, LinkModel, memory};
use tacit::plan::Machine;
use tacit::two_pc::circuit::LongFunction;
use tacit::two_pc::{OutputTo, Owner};
use tacit::{Security, ot};

#[test]
fn the_documents_hold_the_table_of_long_functions() {
    let docs = include_str!("../../../../docs/circuits.md");
    let table = table();
    assert!(docs.contains(&table), "docs/circuits.md should hold this table:\n{table}");
}

/// What the planner tells of a stream is what passes.
#[test]
fn the_bytes_told_are_about_those_that_pass() {
    let function = LongFunction::find("modexp96").unwrap();
    let side = |role, value: u64, channel: &mut Channel| {
        let (output_to, security) = (OutputTo::Both, Security::Malicious);
        let protocol = Some(&AUTHENTICATED);
        let job = Job { function: &function, role, output_to, security, protocol };
        let base = ot::base_ot(None, security).unwrap();
        let mut row = BitVec::zeros(96);
        (0..64).for_each(|i| row.set(i, value >> i & 1 == 1));
        let told = job.estimate(&LinkModel::LOOPBACK.into(), &Machine::REFERENCE)[0].candidate.bytes;
        let done = job.run(std::slice::from_mut(channel), &*base, &[row], &()).unwrap();
        let stats = channel.stats();
        let ratio = told as f64 / (stats.bytes_sent + stats.bytes_received) as f64;
        assert!((0.9..1.1).contains(&ratio), "told {told}: {ratio} of what passed");
        done.outputs.unwrap().remove(0).remove(0)
    };
    let (garbler, evaluator) = memory::run(
        |channel| side(Owner::Garbler, 2, channel),
        |channel| side(Owner::Evaluator, 100, channel),
    );
    // 2^96 is 17 modulo 2^96 − 17.
    assert_eq!(garbler.as_bytes()[..2], [16, 1]);
    assert!(garbler == evaluator);
}
