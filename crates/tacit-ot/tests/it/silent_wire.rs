//! What comes over the wire of a malicious silent protocol is changed, taken from another session or played
//! again: an error and no output, or outputs that are right all the same.

use crate::common::{Dealer, prg};
use crate::tamper::{self, Protocol};
use tacit_crypto::field::{F61, F128, Field};
use tacit_crypto::{Block, gf128};
use tacit_net::Channel;
use tacit_ot::one_of_many::{OneOfManyReceiver, OneOfManySender};
use tacit_ot::silent::bcgikrs19::{self, Code, SHORT, SilentReceiver, SilentSender};
use tacit_ot::silent::ferret::setup::{
    receivers, receivers_ahead, senders, senders_ahead, uni_receivers, uni_senders,
};
use tacit_ot::silent::ferret::{self, Lanes};
use tacit_ot::silent::ferret::{UniConfig, UniParams};
use tacit_ot::silent::nisc::TwoRound;
use tacit_ot::vole::subfield::{Subfield, SubfieldReceiver, SubfieldSender};
use tacit_ot::vole::{SilentVoleReceiver, SilentVoleSender};
use tacit_ot::{
    CotReceiver, CotSender, Error, Result, RotReceiver, RotSender, Security, VoleReceiver, VoleSender,
};

const N: usize = 40;
const MALICIOUS: Security = Security::Malicious;
const TINY: ferret::Params = ferret::Params { name: "tiny", k: 256, t: 21, depth: 7, security_bits: 0 };
const TINY_UNI: UniParams = UniParams {
    name: "tiny",
    k: 256,
    t: 26,
    m: 39,
    q: 40,
    depth: 7,
    level: 2,
    lanes: Lanes::One,
    security_bits: 0,
};

/// After an error everything is zero, and the state is of no use any more.
fn spent<T: Copy + PartialEq>(result: &Result<()>, out: &[T], zero: T, again: impl FnOnce() -> Result<()>) {
    if result.is_err() {
        assert!(out.iter().all(|x| *x == zero), "something was put out beside an error");
        assert!(matches!(again(), Err(Error::Spent(_))), "goes on after a failure");
    }
}

fn cot<S: CotSender, R: CotReceiver>(
    name: &'static str,
    n: usize,
    sender: impl Fn(&mut Channel, u128) -> Result<S> + Sync + 'static,
    receiver: impl Fn(&mut Channel, u128) -> Result<R> + Sync + 'static,
) -> Protocol {
    let send = move |ch: &mut Channel, seed| {
        let mut s = sender(ch, seed)?;
        let mut v = vec![Block::ONES; n];
        s.extend(ch, &mut v)?;
        v.push(s.delta());
        Ok(v)
    };
    let receive = move |ch: &mut Channel, seed| {
        let mut r = receiver(ch, seed)?;
        let mut w = vec![Block::ONES; n];
        let result = r.extend(ch, &mut w);
        spent(&result, &w.clone(), Block::ZERO, || r.extend(ch, &mut w));
        result.map(|()| w)
    };
    let fits = move |sent: &[Block], w: &[Block]| {
        let delta = sent[n];
        w.iter().zip(sent).all(|(w, v)| *w == *v ^ (delta & Block::mask(w.lsb())))
    };
    Protocol { name, send: Box::new(send), receive: Box::new(receive), fits: Box::new(fits) }
}

fn ferret() -> [Protocol; 3] {
    let config = |lanes| ferret::Config { params: TINY, lanes, security: MALICIOUS };
    let on_demand = |name, lanes| {
        cot(
            name,
            N,
            move |ch, seed| Ok(senders(ch, &Dealer(1), &mut prg(seed), config(lanes), 1)?.remove(0)),
            move |ch, seed| Ok(receivers(ch, &Dealer(1), &mut prg(seed), config(lanes), 1)?.remove(0)),
        )
    };
    let ahead = cot(
        "ferret ahead",
        N,
        move |ch, seed| Ok(senders_ahead(ch, &Dealer(1), &mut prg(seed), config(Lanes::One), 1, 3)?.remove(0)),
        move |ch, seed| {
            Ok(receivers_ahead(ch, &Dealer(1), &mut prg(seed), config(Lanes::One), 1, 3)?.remove(0))
        },
    );
    [on_demand("ferret", Lanes::One), on_demand("ferret by four lanes", Lanes::Four), ahead]
}

fn ferret_uni(name: &'static str, lanes: Lanes) -> Protocol {
    let config = UniConfig { params: UniParams { lanes, ..TINY_UNI }, security: MALICIOUS };
    cot(
        name,
        N,
        move |ch, seed| Ok(uni_senders(ch, &Dealer(1), &mut prg(seed), config, 1)?.remove(0)),
        move |ch, seed| Ok(uni_receivers(ch, &Dealer(1), &mut prg(seed), config, 1)?.remove(0)),
    )
}

fn silent(name: &'static str, code: Code, n: usize) -> Protocol {
    let config = bcgikrs19::Config { code, security: MALICIOUS };
    cot(
        name,
        n,
        move |ch, seed| SilentSender::setup(ch, &Dealer(1), &mut prg(seed), config),
        move |ch, seed| SilentReceiver::setup(ch, &Dealer(1), &mut prg(seed), config),
    )
}

fn nisc(name: &'static str, code: Code) -> Protocol {
    let send = move |ch: &mut Channel, seed| {
        let mut pairs = vec![[Block::ZERO; 2]; N];
        RotSender::extend(&mut TwoRound::new(code, MALICIOUS, &mut prg(seed)), ch, &mut pairs)?;
        Ok(pairs.concat())
    };
    let receive = move |ch: &mut Channel, seed| {
        let mut got = vec![Block::ZERO; N];
        let result = RotReceiver::extend(&mut TwoRound::new(code, MALICIOUS, &mut prg(seed)), ch, &mut got);
        assert!(result.is_ok() || got == vec![Block::ZERO; N], "something was put out beside an error");
        Ok(result?.iter().zip(got).flat_map(|(bit, got)| [Block::new(bit as u128), got]).collect())
    };
    let fits = |sent: &[Block], got: &[Block]| {
        let pairs = sent.chunks_exact(2).zip(got.chunks_exact(2));
        pairs.into_iter().all(|(pair, got)| pair[(got[0] == Block::ONE) as usize] == got[1])
    };
    Protocol { name, send: Box::new(send), receive: Box::new(receive), fits: Box::new(fits) }
}

fn subfield(name: &'static str, degree: usize) -> Protocol {
    let field = Subfield::new(degree).unwrap();
    let send = move |ch: &mut Channel, seed| {
        let mut s = SubfieldSender::setup(ch, &Dealer(1), &mut prg(seed), field, MALICIOUS)?;
        let mut v = vec![Block::ONES; N];
        s.extend(ch, &mut v)?;
        v.push(s.delta());
        Ok(v)
    };
    let receive = move |ch: &mut Channel, seed| {
        let mut r = SubfieldReceiver::setup(ch, &Dealer(1), &mut prg(seed), field, MALICIOUS)?;
        let (mut u, mut w) = (vec![255; N], vec![Block::ONES; N]);
        let result = r.extend(ch, &mut u, &mut w);
        assert!(result.is_ok() || u == vec![0; N], "something was put out beside an error");
        spent(&result, &w.clone(), Block::ZERO, || r.extend(ch, &mut u, &mut w));
        result.map(|()| u.into_iter().map(|u| field.embed(u)).zip(w).flat_map(|(u, w)| [u, w]).collect())
    };
    let fits = |sent: &[Block], got: &[Block]| {
        let (delta, got) = (sent[N], got.chunks_exact(2));
        got.zip(sent).all(|(uw, v)| uw[1] == *v ^ gf128::mul(uw[0], delta))
    };
    Protocol { name, send: Box::new(send), receive: Box::new(receive), fits: Box::new(fits) }
}

fn vole<F: Field>(name: &'static str) -> Protocol {
    let send = move |ch: &mut Channel, seed| {
        let delta = F::from_block(prg(seed).block());
        let mut v = vec![F::ONE; N];
        SilentVoleSender::setup(ch, &Dealer(1), &mut prg(seed), delta, MALICIOUS)?.extend(ch, &mut v)?;
        v.push(delta);
        Ok(v.iter().map(|x| x.to_block()).collect())
    };
    let receive = move |ch: &mut Channel, seed| {
        let mut r = SilentVoleReceiver::setup(ch, &Dealer(1), &mut prg(seed), MALICIOUS)?;
        let (mut u, mut w) = (vec![F::ONE; N], vec![F::ONE; N]);
        let result = r.extend(ch, &mut u, &mut w);
        assert!(result.is_ok() || u == vec![F::ZERO; N], "something was put out beside an error");
        spent(&result, &w.clone(), F::ZERO, || r.extend(ch, &mut u, &mut w));
        result.map(|()| u.iter().zip(&w).flat_map(|(u, w)| [u.to_block(), w.to_block()]).collect())
    };
    let fits = |sent: &[Block], got: &[Block]| {
        let (field, delta) = (F::from_block, F::from_block(sent[N]));
        let got = got.chunks_exact(2);
        got.zip(sent).all(|(uw, v)| field(uw[1]) == field(*v) + field(uw[0]) * delta)
    };
    Protocol { name, send: Box::new(send), receive: Box::new(receive), fits: Box::new(fits) }
}

fn one_of_many(name: &'static str, p: usize) -> Protocol {
    let send = move |ch: &mut Channel, seed| {
        let mut messages = vec![Block::ZERO; N * p];
        OneOfManySender::setup(ch, &Dealer(1), &mut prg(seed), p, MALICIOUS)?.send(ch, &mut messages)?;
        Ok(messages)
    };
    let receive = move |ch: &mut Channel, seed| {
        let mut ot = OneOfManyReceiver::setup(ch, &Dealer(1), &mut prg(seed), p, MALICIOUS)?;
        let mut got = vec![Block::ZERO; N];
        let result = ot.receive(ch, &mut got).map(|choices| choices.to_vec());
        assert!(result.is_ok() || got == vec![Block::ZERO; N], "something was put out beside an error");
        Ok(result?.iter().zip(got).flat_map(|(choice, got)| [Block::new(*choice as u128), got]).collect())
    };
    let fits = move |sent: &[Block], got: &[Block]| {
        let got = got.chunks_exact(2);
        sent.chunks_exact(p).zip(got).all(|(m, got)| m[got[0].low() as usize] == got[1])
    };
    Protocol { name, send: Box::new(send), receive: Box::new(receive), fits: Box::new(fits) }
}

fn protocols() -> Vec<Protocol> {
    let mut all: Vec<Protocol> = ferret().into();
    all.extend([
        ferret_uni("ferret-uni", Lanes::One),
        ferret_uni("ferret-uni by four lanes", Lanes::Four),
        silent("silent linear, short form", Code::Linear, N),
        silent("silent quasi-cyclic, short form", Code::QuasiCyclic, N),
        silent("silent linear", Code::Linear, SHORT + 1),
        nisc("nisc linear", Code::Linear),
        nisc("nisc quasi-cyclic", Code::QuasiCyclic),
        subfield("subfield 4", 2),
        subfield("subfield 256", 8),
        vole::<F61>("vole f61"),
        vole::<F128>("vole f128"),
        one_of_many("1-of-16", 16),
    ]);
    all
}

#[test]
fn a_flipped_bit_is_caught_or_does_no_harm() {
    tamper::assert_flips_are_caught(&protocols());
}

#[test]
fn sessions_cannot_be_swapped() {
    tamper::assert_sessions_cannot_be_swapped(&protocols());
}

#[test]
fn a_recorded_sender_serves_no_other_session() {
    tamper::assert_no_replay(&protocols());
}
