//! BDGM19 over channels, its wire's digests, and cheaters against it.

#[path = "../../tacit-ot/tests/common/base.rs"]
mod base;
#[path = "../../tacit-ot/tests/common/wire.rs"]
mod wire;

use tacit_bench::base::bdgm19::{self, Bdgm19};
use tacit_crypto::ring::XofBlocks;
use tacit_crypto::simd::Backend;
use tacit_crypto::{Block, Prg};
use tacit_ot::base::roted::ParameterSet;
use tacit_roted::set::MODULE;
use tacit_roted::{Instance, Role};

const SETS: [ParameterSet; 3] = [ParameterSet::Module, ParameterSet::Large, ParameterSet::Paper];

#[test]
fn wire_and_outputs_are_as_recorded() {
    let mut lines = String::new();
    for set in SETS {
        for n in [1, 128] {
            lines += &wire::base_ot_line(&Bdgm19 { set }, set, n);
        }
    }
    let recorded = include_str!("bdgm19.digests");
    assert_eq!(lines, recorded, "the wire format changed; if on purpose, raise the version");
}

#[test]
fn every_backend_writes_the_recorded_bytes() {
    // The backend is chosen once a process.
    for backend in Backend::available() {
        let mut again = std::process::Command::new(std::env::current_exe().unwrap());
        again.args(["--exact", "wire_and_outputs_are_as_recorded"]).env("TACIT_SIMD", backend.name());
        let said = again.output().unwrap();
        let text = String::from_utf8_lossy(&said.stdout);
        assert!(said.status.success() && text.contains("1 passed"), "{}: {text}", backend.name());
    }
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
