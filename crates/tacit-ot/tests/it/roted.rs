//! ROTed over channels.

use crate::base as of_base;
use crate::wire;
use tacit_crypto::{BitVec, Block, Prg};
use tacit_net::memory;
use tacit_ot::base::roted::{self, ParameterSet, Roted};
use tacit_ot::{BaseOt, RotReceiver, RotSender};
use tacit_roted::set;

const SETS: [ParameterSet; 3] = [ParameterSet::Module, ParameterSet::Large, ParameterSet::Paper];

#[test]
fn wire_and_outputs_are_as_recorded() {
    wire::assert_base_ot_is_as_recorded(|set| Roted { set }, &SETS, include_str!("../roted.digests"));
}

#[test]
fn every_backend_writes_the_recorded_bytes() {
    wire::assert_passes_on_every_backend("roted::wire_and_outputs_are_as_recorded");
}

#[test]
fn every_set_transfers_over_channels() {
    for set in SETS {
        of_base::assert_transfers(&Roted { set }, 129);
    }
    // More than one batch of messages.
    of_base::assert_transfers(&Roted::default(), 1030);
}

#[test]
fn random_ot_has_uniform_bits() {
    let mut ones = 0;
    for set in SETS {
        let mut sender = roted::Sender { set, prg: Prg::from_os() };
        let mut receiver = roted::Receiver { set, prg: Prg::from_os() };
        let n = 1030;
        let (mut pairs, mut chosen) = (vec![[Block::ZERO; 2]; n], vec![Block::ZERO; n]);
        let (sent, bits) = memory::run(
            |channel| sender.extend(channel, &mut pairs),
            |channel| receiver.extend(channel, &mut chosen),
        );
        sent.unwrap();
        let bits = bits.unwrap();
        for i in 0..n {
            assert!(chosen[i] == pairs[i][bits.get(i) as usize]);
            ones += bits.get(i) as u64;
        }
    }
    of_base::assert_fair(ones, 3 * 1030);
}

#[test]
fn ends_that_disagree_on_the_set_or_the_mode_get_an_error() {
    let (mut pairs, mut chosen) = ([[Block::ZERO; 2]; 4], [Block::ZERO; 4]);
    let (sent, received) = memory::run(
        |channel| Roted { set: ParameterSet::Paper }.send(channel, &mut Prg::from_os(), &mut pairs),
        |channel| {
            let choices = BitVec::zeros(4);
            Roted::default().receive(channel, &mut Prg::from_os(), &choices, &mut chosen)
        },
    );
    assert!(sent.is_err() || received.is_err());
    assert!(pairs == [[Block::ZERO; 2]; 4]);
}

#[test]
fn malformed_polynomials_are_refused_over_channels() {
    of_base::assert_polynomials_are_checked(&Roted::default(), 64 + 2 * set::MODULE.public_len());
}
