//! What Yao's protocol writes on the wire and returns, with fixed seeds, against a recorded baseline. To take
//! it anew: the test's message holds all lines of `yao.digests`.

use crate::common::{Dealer, prg};
use crate::wire;
use tacit_2pc::circuit::{Builder, Integer, Repeat, Shape, Uint, named};
use tacit_2pc::semi_honest;
use tacit_2pc::{OutputTo, Owner, Prepared};
use tacit_crypto::BitVec;
use tacit_ot::extension::iknp::{IknpReceiver, IknpSender};

/// The bits of a party's rows, or of what it learns, as bytes.
fn bytes(rows: Option<Vec<Vec<BitVec>>>) -> Vec<u8> {
    rows.into_iter().flatten().flatten().flat_map(|value| value.as_bytes().to_vec()).collect()
}

/// Random inputs of one party for so many rows.
fn inputs(function: &Prepared, owner: Owner, rows: usize, seed: u128) -> Vec<Vec<BitVec>> {
    let mut prg = prg(seed);
    let own = function.circuit().shape().inputs.iter().zip(function.owners());
    let widths: Vec<usize> = own.filter(|(_, o)| **o == owner).map(|(&width, _)| width as usize).collect();
    (0..rows).map(|_| widths.iter().map(|&width| BitVec::random(width, &mut prg)).collect()).collect()
}

fn rows(name: &str, rows: usize, output_to: OutputTo) -> String {
    let function = Prepared::from_function(&named::find(name).unwrap()).unwrap();
    let [mine, theirs] =
        [Owner::Garbler, Owner::Evaluator].map(|owner| inputs(&function, owner, rows, 7 + owner as u128));
    wire::line(
        &format!("yao {name} x{rows} {output_to:?}"),
        |channel| {
            let mut prg = prg(2);
            let mut cot = IknpSender::setup(channel, &Dealer(1), &mut prg)?;
            let out = semi_honest::garble(channel, &mut cot, &function, &mine, output_to, &mut prg);
            Ok(bytes(out.unwrap()))
        },
        |channel| {
            let mut cot = IknpReceiver::setup(channel, &Dealer(1), &mut prg(3))?;
            let out = semi_honest::evaluate(channel, &mut cot, &function, &theirs, output_to);
            Ok(bytes(out.unwrap()))
        },
    )
}

fn program(output_to: OutputTo) -> String {
    let make = || {
        let shape = Shape { inputs: vec![32, 32], outputs: vec![32, 32] };
        Repeat::new("mixing", shape, 40, |b: &mut Builder, i, state: &[Uint], inputs: &[Uint]| {
            let product = b.mul(&state[0], &inputs[1]);
            vec![b.add(&product, &Uint::constant(i as i128, 32)), b.not_bits(&state[0])]
        })
    };
    let owners = [Owner::Garbler, Owner::Evaluator];
    let word = |seed| [BitVec::random(32, &mut prg(seed))];
    wire::line(
        &format!("yao program {output_to:?}"),
        |channel| {
            let mut prg = prg(2);
            let mut cot = IknpSender::setup(channel, &Dealer(1), &mut prg)?;
            let (program, word) = (make(), word(7));
            let run =
                semi_honest::garble_program(channel, &mut cot, program, &owners, &word, output_to, &mut prg);
            Ok(bytes(run.unwrap().map(|out| vec![out])))
        },
        |channel| {
            let mut cot = IknpReceiver::setup(channel, &Dealer(1), &mut prg(3))?;
            let run = semi_honest::evaluate_program(channel, &mut cot, make(), &owners, &word(8), output_to);
            Ok(bytes(run.unwrap().map(|out| vec![out])))
        },
    )
}

#[test]
fn wire_and_outputs_are_as_recorded() {
    let mut lines = String::new();
    for output_to in [OutputTo::Garbler, OutputTo::Evaluator, OutputTo::Both] {
        for (name, count) in [("add8", 0), ("add8", 1), ("add8", 35), ("aes128", 1), ("aes128", 3)] {
            lines += &rows(name, count, output_to);
        }
        lines += &program(output_to);
    }
    let recorded = include_str!("../yao.digests");
    assert!(lines == recorded, "the wire or the outputs changed; all lines now:\n{lines}");
}
