//! What authenticated garbling writes on the wire and returns, with fixed seeds, against a recorded baseline.
//!
//! To take the baseline anew: the test's message holds all lines of `tests/authenticated.digests`.

use super::*;
use crate::wire;
use tacit_ot::silent::ferret::{Config, Lanes, Params};

fn line(name: &str, output_to: OutputTo) -> String {
    let function = prepared(name);
    let (inputs, _) = example(&function, 4);
    let party = |channel: &mut Channel, role: Owner, input: &BitVec| {
        let output = session(channel, role, 4).run(channel, &function, output_to, input).unwrap();
        Ok(output.map_or_else(Vec::new, |output| output.as_bytes().to_vec()))
    };
    wire::line(
        &format!("authenticated {name} {output_to:?}"),
        |channel| party(channel, Owner::Garbler, &inputs[0]),
        |channel| party(channel, Owner::Evaluator, &inputs[1]),
    )
}

/// A session set up from a base OT over Ferret, and one run.
fn from_base_ot(name: &str) -> String {
    let function = prepared(name);
    let (inputs, _) = example(&function, 4);
    let config = Config { params: Params::E, lanes: Lanes::One, security: tacit_ot::Security::Malicious };
    let party = |channel: &mut Channel, role: Owner, input: &BitVec| {
        let mut prg = Prg::from_seed(Block::from_halves(4, 1 + (role == Owner::Garbler) as u64));
        let base = tacit_ot::base::default();
        let mut session = Session::setup(channel, role, &*base, config, &mut prg).unwrap();
        let output = session.run(channel, &function, OutputTo::Both, input).unwrap();
        Ok(output.map_or_else(Vec::new, |output| output.as_bytes().to_vec()))
    };
    wire::line(
        &format!("authenticated {name} from base OT"),
        |channel| party(channel, Owner::Garbler, &inputs[0]),
        |channel| party(channel, Owner::Evaluator, &inputs[1]),
    )
}

#[test]
fn wire_and_outputs_are_as_recorded() {
    let mut lines = String::new();
    for output_to in [OutputTo::Garbler, OutputTo::Evaluator, OutputTo::Both] {
        lines += &line("add8", output_to);
    }
    lines += &line("aes128", OutputTo::Evaluator);
    lines += &from_base_ot("add8");
    let recorded = include_str!("../../../tests/authenticated.digests");
    assert!(lines == recorded, "the wire or the outputs changed; all lines now:\n{lines}");
}
