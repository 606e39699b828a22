//! What VOLE-PSI and the VOLE below it write on the wire and return, with fixed seeds, against a recorded
//! baseline.

use crate::common::{Dealer, prg};
use crate::wire;
use tacit_crypto::{Block, workers};
use tacit_net::Channel;
use tacit_ot::vole::{Gf128Receiver, Gf128Sender};
use tacit_ot::{Result, Security, VoleReceiver, VoleSender};
use tacit_psi::vole_psi::{self, Learns, Options, Outcome};

fn set(range: std::ops::Range<u64>) -> Vec<[u8; 8]> {
    range.map(u64::to_le_bytes).collect()
}

fn outcome(outcome: Outcome) -> Vec<u8> {
    let matches = outcome.matches.unwrap_or_default();
    matches.iter().chain(&[outcome.peer_elements as u32]).flat_map(|number| number.to_le_bytes()).collect()
}

fn intersection(security: Security, learns: [Learns; 2], sizes: [u64; 2], threads: usize) -> String {
    let party = |channel: &mut Channel, party: usize| {
        let base = Dealer(1);
        let options = Options {
            learns: learns[party],
            security,
            min_peer_elements: 0,
            max_peer_elements: 1 << 20,
            base: &base,
        };
        // Half of the smaller set is common.
        let common = sizes[0].min(sizes[1]) / 2;
        let elements =
            if party == 0 { set(0..sizes[0]) } else { set(sizes[0] - common..sizes[0] - common + sizes[1]) };
        let mut prg = prg(2 + party as u128);
        let run = workers::limited(threads, || {
            vole_psi::run(channel, &mut prg, &elements, &options, &mut |_, _, _| ())
        });
        Ok(outcome(run.expect("both are honest")))
    };
    let name = format!("vole {security:?} {:?} {}x{}", learns[0], sizes[0], sizes[1]);
    wire::line(&name, |channel| party(channel, 0), |channel| party(channel, 1))
}

fn correlations(security: Security, count: usize) -> String {
    let bytes = |blocks: &[Block]| Block::as_bytes(blocks).to_vec();
    let sender = |channel: &mut Channel| -> Result<Vec<u8>> {
        let mut v = vec![Block::ZERO; count];
        Gf128Sender::setup(channel, &Dealer(1), &mut prg(2), security)?.extend(channel, &mut v)?;
        Ok(bytes(&v))
    };
    let receiver = |channel: &mut Channel| -> Result<Vec<u8>> {
        let (mut u, mut w) = (vec![Block::ZERO; count], vec![Block::ZERO; count]);
        Gf128Receiver::setup(channel, &Dealer(1), &mut prg(3), security)?.extend(channel, &mut u, &mut w)?;
        Ok(bytes(&[u, w].concat()))
    };
    wire::line(&format!("vole gf128 {security:?} {count}"), sender, receiver)
}

#[test]
fn wire_and_outputs_are_as_recorded() {
    let mut lines = String::new();
    for security in [Security::SemiHonest, Security::Malicious] {
        lines += &correlations(security, 300);
        for learns in [[Learns::Me, Learns::Peer], [Learns::Peer, Learns::Me], [Learns::Both, Learns::Both]] {
            lines += &intersection(security, learns, [300, 200], 1);
        }
        // More bins than one, and no power of two.
        lines += &intersection(security, [Learns::Me, Learns::Peer], [140_000, 9_001], 1);
    }
    let recorded = include_str!("../vole_psi.digests");
    assert!(lines == recorded, "the wire or the outputs changed; all lines now:\n{lines}");
}

/// How many threads a party uses is its own affair: nothing on the wire shows it, and nothing that comes out.
#[test]
fn any_number_of_threads_sends_the_same_bytes() {
    for (security, learns) in [
        (Security::Malicious, [Learns::Both, Learns::Both]),
        (Security::SemiHonest, [Learns::Me, Learns::Peer]),
    ] {
        // Several bins, and runs of VOLE; both sides hash in pieces.
        let [one, others @ ..] =
            [1, 2, 3, 8].map(|threads| intersection(security, learns, [400_000, 130_001], threads));
        assert!(others.iter().all(|line| *line == one), "{one}{}", others.concat());
    }
}
