//! What rows side by side write on the wire and return, with fixed seeds, against a recorded baseline. To take it anew:
//! the test's message holds all lines of `batch.digests`.

use crate::common::{Dealer, prg};
use crate::wire;
use tacit_2pc::circuit::named;
use tacit_2pc::{OutputTo, Owner, Prepared, batch};
use tacit_crypto::BitVec;
use tacit_net::{Channel, Party};
use tacit_ot::extension::iknp::{IknpReceiver, IknpSender};

/// The bits of a party's rows, or of what it learns, as bytes.
fn bytes(rows: Option<Vec<Vec<BitVec>>>) -> Vec<u8> {
    rows.into_iter().flatten().flatten().flat_map(|value| value.as_bytes().to_vec()).collect()
}

fn party(
    channel: &mut Channel,
    function: &Prepared,
    role: Owner,
    rows: usize,
    to: OutputTo,
) -> tacit_2pc::Result<Vec<u8>> {
    let mut random = prg(7 + role as u128);
    let own = function.circuit().shape().inputs.iter().zip(function.owners());
    let widths: Vec<usize> = own.filter(|(_, o)| **o == role).map(|(&width, _)| width as usize).collect();
    let inputs: Vec<Vec<BitVec>> =
        (0..rows).map(|_| widths.iter().map(|&width| BitVec::random(width, &mut random)).collect()).collect();
    let (mut sender, mut receiver) = match channel.party() {
        Party::First => {
            let sender = IknpSender::setup(channel, &Dealer(1), &mut prg(2))?;
            (sender, IknpReceiver::setup(channel, &Dealer(1), &mut prg(3))?)
        }
        Party::Second => {
            let receiver = IknpReceiver::setup(channel, &Dealer(1), &mut prg(4))?;
            (IknpSender::setup(channel, &Dealer(1), &mut prg(5))?, receiver)
        }
    };
    let streams: batch::Streams<'_> = (&mut sender, &mut receiver);
    Ok(bytes(batch::run(channel, streams, function, role, &inputs, to, |_| ())?))
}

#[test]
fn wire_and_outputs_are_as_recorded() {
    let mut lines = String::new();
    for to in [OutputTo::Garbler, OutputTo::Evaluator, OutputTo::Both] {
        for (name, rows) in [("add8", 0), ("add8", 1), ("add8", 64), ("add8", 131), ("aes128", 3)] {
            let function = Prepared::from_function(&named::find(name).unwrap()).unwrap();
            lines += &wire::line(
                &format!("batch {name} x{rows} {to:?}"),
                |channel| Ok(party(channel, &function, Owner::Garbler, rows, to).unwrap()),
                |channel| Ok(party(channel, &function, Owner::Evaluator, rows, to).unwrap()),
            );
        }
    }
    let recorded = include_str!("../batch.digests");
    assert!(lines == recorded, "the wire or the outputs changed; all lines now:\n{lines}");
}
