//! Every base OT through its trait, over channels.

use tacit_crypto::{BitVec, Block, Prg};
use tacit_net::memory;
use tacit_ot::base::rot_from_ot;
use tacit_ot::{Error, Extraction, RotReceiver, RotSender, Security, base};

const SIZES: [usize; 7] = [0, 1, 2, 127, 128, 129, 768];

fn run_once(name: &str, n: usize, seed: u128) -> (Vec<[Block; 2]>, Vec<Block>, BitVec) {
    let ot = base::by_name(name).unwrap();
    let choices = BitVec::random(n, &mut Prg::from_seed(Block::new(seed)));
    let mut pairs = vec![[Block::ZERO; 2]; n];
    let mut chosen = vec![Block::ZERO; n];
    let (sent, received) = memory::run(
        |channel| ot.send(channel, &mut Prg::from_seed(Block::new(seed + 1)), &mut pairs),
        |channel| ot.receive(channel, &mut Prg::from_seed(Block::new(seed + 2)), &choices, &mut chosen),
    );
    sent.unwrap();
    received.unwrap();
    (pairs, chosen, choices)
}

#[test]
fn every_protocol_transfers_the_chosen_message_and_no_other() {
    for name in base::NAMES {
        assert_eq!(base::by_name(name).unwrap().name(), name);
        for n in SIZES {
            let (pairs, chosen, choices) = run_once(name, n, 77 + n as u128);
            for i in 0..n {
                assert!(chosen[i] == pairs[i][choices.get(i) as usize], "{name}: OT {i} of {n}");
                assert!(chosen[i] != pairs[i][!choices.get(i) as usize], "{name}: OT {i} of {n}");
            }
            let mut all: Vec<_> = pairs.as_flattened().iter().map(|b| b.to_u128()).collect();
            all.sort_unstable();
            all.dedup();
            assert_eq!(all.len(), 2 * n, "{name}: messages repeat");
        }
    }
    assert!(base::by_name("none such").is_none());
    assert!(base::NAMES.contains(&base::DEFAULT));
}

#[test]
fn choice_bits_of_another_length_are_the_callers_error() {
    for name in base::NAMES {
        let ot = base::by_name(name).unwrap();
        let (mut channel, _peer) = memory::pair();
        let mut out = vec![Block::ZERO; 4];
        let result = ot.receive(&mut channel, &mut Prg::from_os(), &BitVec::zeros(3), &mut out);
        assert!(matches!(result, Err(Error::Usage { .. })), "{name}");
    }
}

#[test]
fn a_peer_that_leaves_is_an_error() {
    for name in base::NAMES {
        let ot = base::by_name(name).unwrap();
        let (mut channel, peer) = memory::pair();
        drop(peer);
        let mut out = vec![Block::ZERO; 4];
        assert!(ot.receive(&mut channel, &mut Prg::from_os(), &BitVec::zeros(4), &mut out).is_err());
        let (mut channel, peer) = memory::pair();
        drop(peer);
        assert!(ot.send(&mut channel, &mut Prg::from_os(), &mut [[Block::ZERO; 2]; 4]).is_err());
        assert!(out.iter().all(|b| *b == Block::ZERO), "{name}: output without a peer");
    }
}

#[test]
fn standard_ot_delivers_the_chosen_blocks() {
    for name in base::NAMES {
        let ot = base::by_name(name).unwrap();
        for n in [0, 1, 129] {
            let mut prg = Prg::from_seed(Block::new(5));
            let choices = BitVec::random(n, &mut prg);
            let mut messages = vec![[Block::ZERO; 2]; n];
            prg.fill_blocks(messages.as_flattened_mut());
            let mut out = vec![Block::ZERO; n];
            let (sent, received) = memory::run(
                |c| base::standard::send(&*ot, c, &mut Prg::from_os(), &messages),
                |c| base::standard::receive(&*ot, c, &mut Prg::from_os(), &choices, &mut out),
            );
            sent.unwrap();
            received.unwrap();
            assert!((0..n).all(|i| out[i] == messages[i][choices.get(i) as usize]), "{name}");
        }
    }
}

#[test]
fn random_ot_from_standard_ot_is_correct_and_fresh() {
    for (name, security) in [
        (base::mr19::NAME, Security::Malicious),
        (base::mrr21::NAME, Security::Malicious),
        (base::pvw08::NAME, Security::Malicious),
        (base::bdgm19::NAME, Security::SemiHonest),
    ] {
        let ot = || base::by_name(name).unwrap();
        let prg = |seed| Prg::from_seed(Block::new(seed));
        let mut sender = rot_from_ot::Sender::new(ot(), security, prg(1)).unwrap();
        let mut receiver = rot_from_ot::Receiver::new(ot(), security, prg(2)).unwrap();
        let sizes = [0, 1, 128, 129];
        let (sent, received) = memory::run(
            |c| {
                sizes.map(|n| {
                    let mut out = vec![[Block::ZERO; 2]; n];
                    sender.extend(c, &mut out).unwrap();
                    out
                })
            },
            |c| {
                sizes.map(|n| {
                    let mut out = vec![Block::ZERO; n];
                    let choices = receiver.extend(c, &mut out).unwrap();
                    (out, choices)
                })
            },
        );
        let mut ones = 0;
        for (pairs, (out, choices)) in sent.iter().zip(&received) {
            for i in 0..pairs.len() {
                assert!(out[i] == pairs[i][choices.get(i) as usize], "{name}");
                assert!(out[i] != pairs[i][!choices.get(i) as usize], "{name}");
                ones += choices.get(i) as usize;
            }
        }
        // 258 fair bits: eight standard deviations either side.
        assert!((65..=193).contains(&ones), "{name}: {ones} ones");
    }
    for name in [base::co15::NAME, base::csw20::NAME, base::bdgm19::NAME, base::roted::NAME] {
        let ot = || base::by_name(name).unwrap();
        let refused = rot_from_ot::Sender::new(ot(), Security::Malicious, Prg::from_os());
        assert!(matches!(refused.err(), Some(Error::Usage { .. })), "{name}");
        let refused = rot_from_ot::Receiver::new(ot(), Security::Malicious, Prg::from_os());
        assert!(matches!(refused.err(), Some(Error::Usage { .. })), "{name}");
    }
}

#[test]
fn rot_from_ot_catches_a_receiver_that_opens_other_strings() {
    // The receiver commits, learns its messages, then opens strings that would force the result it likes.
    for attempt in 0..16 {
        let n = 4;
        let ot = || base::by_name(base::mr19::NAME).unwrap();
        let mut sender = rot_from_ot::Sender::new(ot(), Security::Malicious, Prg::from_os()).unwrap();
        let mut out = vec![[Block::ZERO; 2]; n];
        let (result, ()) = memory::run(
            |c| sender.extend(c, &mut out),
            |c| {
                let mut prg = Prg::from_os();
                c.next_instance();
                c.send(&[attempt; 32]).unwrap();
                let mut chosen = vec![Block::ZERO; n];
                let choices = BitVec::zeros(n);
                base::standard::receive(&*ot(), c, &mut prg, &choices, &mut chosen).unwrap();
                c.recv(&mut [0]).unwrap();
                c.send(&[0; 32]).unwrap();
                let strings: Vec<_> = chosen.iter().map(|m| [*m, *m]).collect();
                c.send_blocks(strings.as_flattened()).unwrap();
            },
        );
        assert!(matches!(result, Err(Error::Cheated { .. })));
        assert!(out.as_flattened().iter().all(|b| *b == Block::ZERO));
    }
}

#[test]
fn what_extracts_late_is_named_and_refused_where_the_bit_is_needed_early() {
    for name in base::NAMES {
        let ot = base::by_name(name).unwrap();
        let late = [base::co15::NAME, base::roted::NAME].contains(&name);
        assert_eq!(ot.extraction() == Extraction::Late, late, "{name}");
    }
    // ROTed is malicious and composable; late extraction is the one reason.
    let roted = || base::by_name(base::roted::NAME).unwrap();
    let refused = rot_from_ot::Sender::new(roted(), Security::Malicious, Prg::from_os()).err().unwrap();
    assert!(refused.to_string().contains("early"), "{refused}");
    let refused = rot_from_ot::Receiver::new(roted(), Security::Malicious, Prg::from_os()).err().unwrap();
    assert!(refused.to_string().contains("early"), "{refused}");
    rot_from_ot::Sender::new(roted(), Security::SemiHonest, Prg::from_os()).unwrap();
}
