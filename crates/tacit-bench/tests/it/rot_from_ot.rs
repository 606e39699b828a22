//! Chosen messages and uniform random OT out of every base OT.

use tacit_bench::base::{NAMES, bdgm19, by_name, pvw08, rot_from_ot, standard};
use tacit_crypto::{BitVec, Block, Prg};
use tacit_net::memory;
use tacit_ot::{Error, RotReceiver, RotSender, Security, base};

#[test]
fn standard_ot_delivers_the_chosen_blocks() {
    for name in base::NAMES.into_iter().chain(NAMES) {
        let ot = by_name(name).unwrap();
        for n in [0, 1, 129] {
            let mut prg = Prg::from_seed(Block::new(5));
            let choices = BitVec::random(n, &mut prg);
            let mut messages = vec![[Block::ZERO; 2]; n];
            prg.fill_blocks(messages.as_flattened_mut());
            let mut out = vec![Block::ZERO; n];
            let (sent, received) = memory::run(
                |c| standard::send(&*ot, c, &mut Prg::from_os(), &messages),
                |c| standard::receive(&*ot, c, &mut Prg::from_os(), &choices, &mut out),
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
        (pvw08::NAME, Security::Malicious),
        (bdgm19::NAME, Security::SemiHonest),
    ] {
        let ot = || by_name(name).unwrap();
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
    for name in [base::co15::NAME, base::csw20::NAME, bdgm19::NAME, base::roted::NAME] {
        let ot = || by_name(name).unwrap();
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
        let ot = || by_name(base::mr19::NAME).unwrap();
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
                standard::receive(&*ot(), c, &mut prg, &choices, &mut chosen).unwrap();
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
fn rot_from_ot_refuses_what_extracts_late() {
    // ROTed is malicious and composable; late extraction is the one reason.
    let roted = || by_name(base::roted::NAME).unwrap();
    let refused = rot_from_ot::Sender::new(roted(), Security::Malicious, Prg::from_os()).err().unwrap();
    assert!(refused.to_string().contains("early"), "{refused}");
    let refused = rot_from_ot::Receiver::new(roted(), Security::Malicious, Prg::from_os()).err().unwrap();
    assert!(refused.to_string().contains("early"), "{refused}");
    rot_from_ot::Sender::new(roted(), Security::SemiHonest, Prg::from_os()).unwrap();
}
