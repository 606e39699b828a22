//! Shares of products of random factors: the sums, what passes, and what is refused.

use crate::common::{self, Dealer, prg};
use crate::wire;
use std::collections::HashSet;
use tacit_crypto::field::{F61, F128};
use tacit_crypto::{Block, gf128};
use tacit_net::{Channel, memory};
use tacit_ot::convert::CotToRot;
use tacit_ot::extension::{KosReceiver, KosSender};
use tacit_ot::ole::{Bit, Gf128, OleReceiver, OleSender, Ring, Word};
use tacit_ot::{Error, Result};

fn sender(channel: &mut Channel) -> Result<OleSender<CotToRot<KosSender>>> {
    Ok(OleSender::new(CotToRot::new(KosSender::setup(channel, &Dealer(1), &mut prg(2))?)))
}

fn receiver(channel: &mut Channel) -> Result<OleReceiver<CotToRot<KosReceiver>>> {
    Ok(OleReceiver::new(CotToRot::new(KosReceiver::setup(channel, &Dealer(1), &mut prg(3))?)))
}

/// Fills factors and shares.
type Extend<'a, R> = dyn FnMut(&mut [R], &mut [R]) -> Result<()> + 'a;

/// Both sides' factors and shares, of several requests one after the other.
fn products<R: Ring>(sizes: &[usize]) -> ([Vec<R>; 2], [Vec<R>; 2]) {
    let of = |extend: &mut Extend<'_, R>| {
        let mut all = [Vec::new(), Vec::new()];
        for n in sizes {
            let mut made = [vec![R::default(); *n], vec![R::default(); *n]];
            let [factors, shares] = &mut made;
            extend(factors, shares)?;
            all.iter_mut().zip(made).for_each(|(all, made)| all.extend(made));
        }
        Ok(all)
    };
    common::run(
        |channel| {
            let mut ole = sender(channel)?;
            of(&mut |x, s| ole.extend(channel, x, s))
        },
        |channel| {
            let mut ole = receiver(channel)?;
            of(&mut |y, t| ole.extend(channel, y, t))
        },
    )
}

fn written<R: Ring>(elements: &[R]) -> Vec<u8> {
    let mut bytes = vec![0; elements.len() * R::BYTES];
    elements.iter().zip(bytes.chunks_exact_mut(R::BYTES)).for_each(|(element, out)| element.write(out));
    bytes
}

fn hold<R: Ring>(name: &str) {
    let ([x, s], [y, t]) = products::<R>(&[1, 0, 7, 8, 65, 127, 128, 129]);
    assert_eq!((x.len(), y.len()), (465, 465));
    for (i, ((x, y), (s, t))) in x.iter().zip(&y).zip(s.iter().zip(&t)).enumerate() {
        assert!(*s + *t == *x * *y, "{name}: product {i}");
    }
    for (what, all) in [("x", x), ("s", s), ("y", y), ("t", t)] {
        let bytes = written(&all);
        let seen: HashSet<&[u8]> = bytes.chunks(R::BYTES).collect();
        assert_eq!(seen.len(), if R::BITS == 1 { 2 } else { all.len() }, "{name}: values of {what} repeat");
        // Bits of uniform numbers, within seven standard deviations.
        let ones: u32 = bytes.iter().map(|byte| byte.count_ones()).sum();
        let bits = (all.len() * R::BITS) as f64;
        assert!((f64::from(ones) - bits / 2.0).abs() < 3.5 * bits.sqrt(), "{name}: {ones} ones in {what}");
    }
}

#[test]
fn shares_add_up_to_products_over_every_ring() {
    hold::<Bit>("bits");
    hold::<Word>("words");
    hold::<Gf128>("GF(2^128)");
    hold::<F61>("2^61 - 1");
    hold::<F128>("2^128 - 159");
}

/// Against integers of twice the width, and schoolbook multiplication by shifts.
#[test]
fn the_rings_compute_as_they_say() {
    let mut prg = prg(5);
    for _ in 0..200 {
        let [a, b] = [prg.block(), prg.block()];
        let (x, y) = (a.low(), b.low());
        let wide = u128::from(x) * u128::from(y);
        assert!(Word(x) * Word(y) == Word(wide as u64) && Word(x).twice() == Word(x) + Word(x));
        assert!((Word(x) - Word(y)) + Word(y) == Word(x));
        let two = Gf128(Block::new(2));
        assert!(Gf128(a).twice() == Gf128(a) * two && Gf128(a) * Gf128(b) == Gf128(gf128::mul(a, b)));
        assert!(Gf128(a) - Gf128(b) == Gf128(a) + Gf128(b));
    }
    for (a, b) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        assert!(Bit(a) + Bit(b) == Bit((a + b) % 2) && Bit(a) * Bit(b) == Bit(a * b));
    }
}

#[test]
fn corrections_of_words_come_back_as_far_as_they_count() {
    let mut prg = prg(6);
    for _ in 0..100 {
        let corrections: Vec<Word> = (1..64).map(|_| Word(prg.block().low())).collect();
        let mut packed = [0; Word::CORRECTION_BYTES];
        Word::pack(&corrections, &mut packed);
        let mut back = [Word(0); 63];
        Word::unpack(&packed, &mut back).unwrap();
        for (i, (sent, got)) in (1..).zip(corrections.iter().zip(back)) {
            assert!(sent.0 << i == got.0 << i, "bit {i}");
        }
    }
    assert!(Word::unpack(&[0; 10], &mut [Word(0); 63]).is_none());
}

#[test]
fn traffic_and_outputs_are_as_recorded() {
    fn line<R: Ring>(name: &str) -> String {
        let both =
            |mut made: [Vec<R>; 2]| made.iter_mut().flat_map(|made| written(made)).collect::<Vec<u8>>();
        let room = || [vec![R::default(); 65], vec![R::default(); 65]];
        wire::line(
            name,
            |channel| {
                let mut made = room();
                let [x, s] = &mut made;
                sender(channel)?.extend(channel, x, s)?;
                Ok(both(made))
            },
            |channel| {
                let mut made = room();
                let [y, t] = &mut made;
                receiver(channel)?.extend(channel, y, t)?;
                Ok(both(made))
            },
        )
    }
    let lines = [
        line::<Bit>("bits"),
        line::<Word>("words"),
        line::<Gf128>("gf128"),
        line::<F61>("p61"),
        line::<F128>("p128"),
    ]
    .concat();
    let recorded = include_str!("../ole.digests");
    assert!(lines == recorded, "the wire or the outputs changed; all lines now:\n{lines}");
}

/// A sender that goes on as it likes after the OTs of two products.
fn against<R: Ring>(bytes: Vec<u8>) -> (Error, bool) {
    let (_, (error, wiped)) = memory::run(
        |channel| {
            use tacit_ot::RotSender;
            let mut rot = CotToRot::new(KosSender::setup(channel, &Dealer(1), &mut prg(2)).unwrap());
            rot.extend(channel, &mut vec![[Block::ZERO; 2]; 2 * R::BITS]).unwrap();
            channel.send(&bytes).unwrap();
            channel.flush().unwrap();
        },
        |channel| {
            let (mut y, mut t) = (vec![R::default(); 2], vec![R::default(); 2]);
            let error = receiver(channel).unwrap().extend(channel, &mut y, &mut t).unwrap_err();
            (error, y.iter().chain(&t).all(|element| *element == R::default()))
        },
    );
    (error, wiped)
}

#[test]
fn a_peer_that_sends_other_numbers_or_too_few_leaves_nothing() {
    let (error, wiped) = against::<F61>(vec![255; 2 * F61::CORRECTION_BYTES]);
    assert!(matches!(error, Error::Malformed { .. }) && wiped, "{error}");
    let (error, wiped) = against::<F128>(vec![255; 2 * F128::CORRECTION_BYTES]);
    assert!(matches!(error, Error::Malformed { .. }) && wiped, "{error}");
    // The first product is whole.
    let (error, wiped) = against::<Word>(vec![7; 2 * Word::CORRECTION_BYTES - 1]);
    assert!(matches!(error, Error::Net(_)) && wiped, "{error}");
    let (error, wiped) = against::<Gf128>(vec![7; Gf128::CORRECTION_BYTES]);
    assert!(matches!(error, Error::Net(_)) && wiped, "{error}");
    // Numbers of shares and factors that differ, and OTs that have served.
    let bad = |result| assert!(matches!(result, Err(Error::Usage { .. })));
    memory::run(
        |channel| {
            let mut ole = sender(channel).unwrap();
            bad(ole.extend(channel, &mut [Word(1); 2], &mut [Word(1)]));
            ole.extend(channel, &mut [Word(1)], &mut [Word(1)]).unwrap();
            bad(ole.finish(channel, &mut [Word(1)], &mut [Word(1)]));
        },
        |channel| {
            let mut ole = receiver(channel).unwrap();
            bad(ole.extend(channel, &mut [Word(1); 2], &mut [Word(1)]));
            ole.extend(channel, &mut [Word(1)], &mut [Word(1)]).unwrap();
            bad(ole.finish(channel, &mut [Word(1)], &mut [Word(1)]));
        },
    );
}
