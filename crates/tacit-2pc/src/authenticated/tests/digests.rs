//! What authenticated garbling writes on the wire and returns, with fixed seeds, against a recorded baseline.
//!
//! To take the baseline anew: the test's message holds all lines of `tests/authenticated.digests`.

use super::*;

#[path = "../../../../tacit-ot/tests/common/wire.rs"]
mod wire;

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

#[test]
fn wire_and_outputs_are_as_recorded() {
    let mut lines = String::new();
    for output_to in [OutputTo::Garbler, OutputTo::Evaluator, OutputTo::Both] {
        lines += &line("add8", output_to);
    }
    lines += &line("aes128", OutputTo::Evaluator);
    let recorded = include_str!("../../../tests/authenticated.digests");
    assert!(lines == recorded, "the wire or the outputs changed; all lines now:\n{lines}");
}
