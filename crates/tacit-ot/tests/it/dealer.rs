//! Seeds of a trusted dealer: what they expand to, how they travel, and what is refused.

use crate::common::{self, assert_correlated, prg};
use tacit_crypto::{BitVec, Block};
use tacit_net::memory;
use tacit_ot::convert::{CotToRot, RotToOt};
use tacit_ot::silent::bcgikrs19::Code;
use tacit_ot::silent::dealer::{DealtReceiver, DealtSender, Params, ReceiverSeed, SenderSeed, deal, used};
use tacit_ot::{CotReceiver, CotSender, Error, OtReceiver, OtSender, Result};

fn dealt(code: Code, count: usize, seed: u128) -> (SenderSeed, ReceiverSeed) {
    deal(Params { code, count }, &mut prg(seed)).unwrap()
}

#[test]
fn both_expand_to_one_correlation() {
    let lens = [1, 2, 1000, 4097, 1_000_001]
        .map(|count| [Code::QuasiCyclic, Code::Linear].map(|code| (code, count)));
    for (code, count) in lens.concat() {
        let (s, r) = dealt(code, count, count as u128);
        let (s, r) = (
            SenderSeed::from_bytes(&s.to_bytes()).unwrap(),
            ReceiverSeed::from_bytes(&r.to_bytes()).unwrap(),
        );
        assert_eq!((s.params().count, r.params()), (count, s.params()));
        let w = r.expand();
        assert_eq!(w.len(), count);
        assert_correlated(s.delta(), &s.expand(), &w);
        let ones = BitVec::from_lsbs(&w).iter().filter(|bit| *bit).count();
        assert!(count < 1000 || ones.abs_diff(count / 2) < 3 * count.isqrt(), "{ones} of {count}");
    }
}

#[test]
fn ten_million_take_a_short_seed() {
    for (code, most) in [(Code::QuasiCyclic, 46_000), (Code::Linear, 62_000)] {
        let (s, r) = dealt(code, 10_000_000, 1);
        assert_eq!(s.to_bytes().len(), 84 + 32);
        assert!(r.to_bytes().len() < most, "{} bytes", r.to_bytes().len());
    }
}

#[test]
fn a_used_seed_says_so() {
    let (s, r) = dealt(Code::Linear, 10, 1);
    for seed in [s.to_bytes(), r.to_bytes()] {
        let left = used(&seed);
        assert_eq!(left.len(), seed.len());
        for bytes in [&left[..], &used(&left)] {
            let errors = [SenderSeed::from_bytes(bytes).err(), ReceiverSeed::from_bytes(bytes).err()];
            assert!(errors.into_iter().all(|e| e.unwrap().to_string().contains("used before")));
        }
    }
    assert!(matches!(SenderSeed::from_bytes(&used(b"")), Err(Error::Usage { .. })));
}

#[test]
fn seeds_serve_as_any_other_source() {
    let (s, r) = dealt(Code::Linear, 1000, 5);
    let choices = BitVec::random(900, &mut prg(6));
    let messages: Vec<[Block; 2]> = (0..900).map(|i| [Block::new(2 * i), Block::new(2 * i + 1)]).collect();
    let ((), got) = common::run(
        |ch| RotToOt::new(CotToRot::new(DealtSender::setup(ch, s)?)).send(ch, &messages),
        |ch| {
            let mut got = vec![Block::ZERO; 900];
            let mut ot = RotToOt::new(CotToRot::new(DealtReceiver::setup(ch, r)?));
            ot.receive(ch, &choices, &mut got)?;
            Ok(got)
        },
    );
    assert!((0..900).all(|i| got[i] == messages[i][choices.get(i) as usize]));
}

#[test]
fn no_correlation_is_handed_out_twice() {
    let (s, r) = dealt(Code::Linear, 1000, 5);
    let (v, w) = common::run(
        |ch| {
            let mut s = DealtSender::setup(ch, s)?;
            let mut out = [vec![Block::ONES; 600], vec![Block::ONES; 400]];
            s.extend(ch, &mut out[0])?;
            assert!(matches!(s.extend(ch, &mut [Block::ZERO; 401]), Err(Error::Exhausted { left: 400, .. })));
            s.extend(ch, &mut out[1])?;
            Ok((s.delta(), out.concat()))
        },
        |ch| {
            let mut r = DealtReceiver::setup(ch, r)?;
            let mut out = vec![Block::ONES; 1000];
            r.extend(ch, &mut out)?;
            assert!(matches!(r.extend(ch, &mut [Block::ZERO]), Err(Error::Exhausted { left: 0, .. })));
            Ok(out)
        },
    );
    assert_correlated(v.0, &v.1, &w);
}

#[track_caller]
fn malformed<T>(result: Result<T>, what: &str) {
    match result {
        Err(Error::Malformed { protocol: "dealt", what: said }) => assert!(said.contains(what), "{said}"),
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("accepted"),
    }
}

#[test]
fn damaged_and_foreign_seeds_are_clear_errors() {
    let (s, r) = dealt(Code::Linear, 300, 1);
    let (sender, receiver) = (s.to_bytes(), r.to_bytes());
    for cut in [0, 5, 9, 11, 20, 30, 51, 52, 60, sender.len() - 1] {
        malformed(SenderSeed::from_bytes(&sender[..cut]), "cut short");
        malformed(ReceiverSeed::from_bytes(&receiver[..cut]), "cut short");
    }
    malformed(ReceiverSeed::from_bytes(&receiver[..receiver.len() - 1]), "cut short");
    malformed(SenderSeed::from_bytes(&[&sender[..], &[0]].concat()), "damaged");
    malformed(SenderSeed::from_bytes(&receiver), "other role");
    malformed(ReceiverSeed::from_bytes(&sender), "other role");
    malformed(SenderSeed::from_bytes(&[7; 200]), "not a dealer's seed");
    for at in (12..receiver.len()).step_by(97) {
        let mut changed = receiver.to_vec();
        changed[at] ^= 4;
        malformed(ReceiverSeed::from_bytes(&changed), "");
    }
    let older = "older version, whose parameters are refused now; ask the dealer";
    for (version, words) in [(0, older), (sender[9] - 1, older), (sender[9] + 1, "newer version; update")] {
        let [mut sender, mut receiver] = [sender.to_vec(), receiver.to_vec()];
        (sender[9], receiver[9]) = (version, version);
        malformed(SenderSeed::from_bytes(&sender), words);
        malformed(ReceiverSeed::from_bytes(&receiver), words);
    }
    let mut huge = sender.to_vec();
    huge[12..20].fill(0xff);
    malformed(SenderSeed::from_bytes(&huge), "out of range");
    for count in [0, (1 << 24) + 1] {
        assert!(matches!(deal(Params { code: Code::Linear, count }, &mut prg(1)), Err(Error::Usage { .. })));
    }
}

#[test]
fn seeds_of_two_deals_are_refused_on_both_sides() {
    let (s, _) = dealt(Code::Linear, 300, 1);
    let (_, r) = dealt(Code::Linear, 300, 2);
    let (a, b) =
        memory::run(|ch| DealtSender::setup(ch, s).map(|_| ()), |ch| DealtReceiver::setup(ch, r).map(|_| ()));
    malformed(a, "another deal");
    malformed(b, "another deal");
}
