//! BDGM19 over channels, its wire's digests, and cheaters against it.

use crate::base;
use crate::wire;
use tacit_bench::base::bdgm19::{self, Bdgm19};
use tacit_crypto::ring::XofBlocks;
use tacit_crypto::{Block, Prg};
use tacit_ot::base::roted::ParameterSet;
use tacit_roted::set::MODULE;
use tacit_roted::{Instance, Role};

const SETS: [ParameterSet; 3] = [ParameterSet::Module, ParameterSet::Large, ParameterSet::Paper];

#[test]
fn wire_and_outputs_are_as_recorded() {
    wire::assert_base_ot_is_as_recorded(|set| Bdgm19 { set }, &SETS, include_str!("../bdgm19.digests"));
}

#[test]
fn every_backend_writes_the_recorded_bytes() {
    wire::assert_passes_on_every_backend("bdgm19::wire_and_outputs_are_as_recorded");
}

#[test]
fn every_set_transfers_over_channels_and_checks_its_caller_and_its_peer() {
    for set in SETS {
        base::assert_transfers(&Bdgm19 { set }, 129);
    }
    // More than one batch of messages.
    base::assert_transfers(&Bdgm19::default(), 1030);
    for n in base::SIZES {
        base::assert_transfers(&Bdgm19::default(), n);
    }
    base::assert_length_is_checked(&Bdgm19::default());
    base::assert_a_leaving_peer_is_noticed(&Bdgm19::default());
    base::assert_polynomials_are_checked(&Bdgm19::default(), 64 + 2 * MODULE.public_len());
}

fn bdgm(role: Role) -> Instance<256, 3> {
    Instance::new(&MODULE, bdgm19::NAME, b"cheaters", role)
}

fn stream() -> XofBlocks {
    XofBlocks::from_prg(&mut Prg::from_os())
}

#[test]
fn it_catches_a_receiver_without_an_answer() {
    // A receiver that cannot finish either exchange has to guess the response; the bits behind it do not
    // matter.
    let (ours, mut a) = (bdgm(Role::Sender), stream());
    for attempt in 0..100u8 {
        let (_, first) = bdgm19::Receiver::offer(&bdgm(Role::Receiver), &[0, 1], &mut stream());
        let (sender, _) = bdgm19::Sender::challenge(&ours, 2, &first, &mut a).unwrap();
        let mut out = [[Block::ZERO; 2]; 2];
        let result = sender.finish(&[attempt; 33], &mut out);
        assert!(matches!(result, Err(tacit_roted::Error::Cheated(_))));
        assert!(out == [[Block::ZERO; 2]; 2]);
    }
}

#[test]
fn it_catches_every_changed_byte_of_what_the_proof_covers() {
    let (ours, theirs, mut a, mut b) = (bdgm(Role::Sender), bdgm(Role::Receiver), stream(), stream());
    for attempt in 0..200usize {
        let choices = [(attempt & 1) as u8, (attempt >> 1 & 1) as u8];
        let (receiver, first) = bdgm19::Receiver::offer(&theirs, &choices, &mut b);
        let (_, mut second) = bdgm19::Sender::challenge(&ours, 2, &first, &mut a).unwrap();
        let at = attempt * 7919 % second.len();
        second[at] ^= 1 << (attempt % 8);
        let mut out = [Block::ZERO; 2];
        let result = receiver.respond(&theirs, &second, &mut b, &mut out);
        assert!(result.is_err(), "byte {at}");
        assert!(out == [Block::ZERO; 2], "nothing comes out of a failed check");
    }
}
