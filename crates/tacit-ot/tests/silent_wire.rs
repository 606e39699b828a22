//! What comes over the wire of a malicious silent protocol is changed, taken from another session or played
//! again: an error and no output, or outputs that are right all the same.

mod common;

use common::{Dealer, prg};
use std::io::{IoSlice, IoSliceMut};
use std::time::Duration;
use tacit_crypto::field::{F61, F128, Field};
use tacit_crypto::{Block, gf128};
use tacit_net::link::{Arrival, Interest};
use tacit_net::memory::{self, Record};
use tacit_net::{Channel, Link, LinkModel, Party, SessionId};
use tacit_ot::convert::CotToRot;
use tacit_ot::extension::{KosReceiver, KosSender};
use tacit_ot::one_of_many::{OneOfManyReceiver, OneOfManySender};
use tacit_ot::silent::bcgikrs19::{self, Code, SHORT, SilentReceiver, SilentSender};
use tacit_ot::silent::ferret::setup::{
    receivers, receivers_ahead, senders, senders_ahead, uni_receivers, uni_senders,
};
use tacit_ot::silent::ferret::{self, Lanes};
use tacit_ot::silent::ferret::{UniConfig, UniParams};
use tacit_ot::silent::nisc::TwoRound;
use tacit_ot::silent::paper::{self, PaperReceiver, PaperSender, Rounds};
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

type Fits = Box<dyn Fn(&[Block], &[Block]) -> bool + Sync>;
type Side = Box<dyn Fn(&mut Channel, u128) -> Result<Vec<Block>> + Sync>;

/// Both sides of a protocol from a seed, and whether what they have put out fits together.
struct Protocol {
    name: &'static str,
    send: Side,
    receive: Side,
    fits: Fits,
}

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

fn of_the_paper(name: &'static str, rounds: Rounds) -> Protocol {
    let config = paper::Config { code: Code::Linear, security: MALICIOUS, rounds, count: N };
    cot(
        name,
        N,
        move |ch, seed| {
            let mut rot = CotToRot::new(KosSender::setup(ch, &Dealer(1), &mut prg(seed))?);
            PaperSender::make(ch, &mut rot, config, &mut prg(seed + 1))
        },
        move |ch, seed| {
            let mut rot = CotToRot::new(KosReceiver::setup(ch, &Dealer(1), &mut prg(seed))?);
            PaperReceiver::make(ch, &mut rot, config, &mut prg(seed + 1))
        },
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
        of_the_paper("paper, two rounds", Rounds::Two),
        of_the_paper("paper, four rounds", Rounds::Four),
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

/// A link that flips a bit of the `at`-th byte of the protocol that is written to it.
struct Flip {
    link: Box<dyn Link>,
    at: usize,
    bit: u8,
    /// The frame's head as far as it has come, what is left of its payload, and the payload that has passed.
    head: Vec<u8>,
    left: usize,
    passed: usize,
}

impl Flip {
    const DATA: u8 = 0xD7;

    fn pass(&mut self, byte: u8) -> u8 {
        if self.left == 0 {
            self.head.push(byte);
            if let [_, a, b, c] = self.head[..] {
                self.left = u32::from_le_bytes([a, b, c, 0]) as usize;
                if self.left == 0 {
                    self.head.clear();
                }
            }
            return byte;
        }
        self.left -= 1;
        let data = self.head[0] == Flip::DATA;
        let flipped = data && self.passed == self.at;
        self.passed += data as usize;
        if self.left == 0 {
            self.head.clear();
        }
        byte ^ if flipped { 1 << self.bit } else { 0 }
    }
}

impl Link for Flip {
    fn try_write(&mut self, slices: &[IoSlice<'_>]) -> tacit_net::Result<usize> {
        let before = (self.head.clone(), self.left, self.passed);
        let bytes: Vec<u8> = slices
            .iter()
            .flat_map(|s| s.to_vec())
            .collect::<Vec<_>>()
            .into_iter()
            .map(|b| self.pass(b))
            .collect();
        let n = self.link.try_write(&[IoSlice::new(&bytes)])?;
        if n < bytes.len() {
            // The rest comes again.
            (self.head, self.left, self.passed) = before;
            let taken: Vec<u8> = slices.iter().flat_map(|s| s.to_vec()).take(n).collect();
            taken.into_iter().for_each(|b| _ = self.pass(b));
        }
        Ok(n)
    }

    fn try_flush(&mut self) -> tacit_net::Result<bool> {
        self.link.try_flush()
    }

    fn try_read(&mut self, slices: &mut [IoSliceMut<'_>]) -> tacit_net::Result<Arrival> {
        self.link.try_read(slices)
    }

    fn wait(&mut self, interest: Interest, timeout: Duration) -> tacit_net::Result<bool> {
        self.link.wait(interest, timeout)
    }

    fn wire_bytes(&self) -> (u64, u64) {
        self.link.wire_bytes()
    }

    fn finish(&mut self) {
        self.link.finish();
    }
}

/// Whether an error says that the peer did wrong.
fn blames(error: &Error) -> bool {
    let oversized = matches!(error, Error::Net(tacit_net::Error::Oversized { .. }));
    oversized || matches!(error, Error::Cheated { .. } | Error::Malformed { .. })
}

/// Whether a run ended with that: the other side may only see that its peer is gone.
fn noticed<A, B>(sent: &Result<A>, received: &Result<B>) -> bool {
    let [sent, received] = [sent.as_ref().err(), received.as_ref().err()];
    received.is_some_and(|e| blames(e) || matches!(e, Error::Net(_)) && sent.is_some_and(blames))
}

/// Runs a protocol whose two sides believe in the sessions `ids`, over links that `wrap` changes.
fn run(
    protocol: &Protocol,
    ids: [u8; 2],
    wrap: impl FnOnce(Box<dyn Link>, Box<dyn Link>) -> (Box<dyn Link>, Box<dyn Link>),
) -> (Result<Vec<Block>>, Result<Vec<Block>>) {
    let (a, b) = memory::links(LinkModel::LOOPBACK);
    let (a, b) = wrap(a, b);
    memory::join(
        Channel::new(a, Party::First, SessionId([ids[0]; 32])),
        Channel::new(b, Party::Second, SessionId([ids[1]; 32])),
        |ch| (protocol.send)(ch, 1000),
        |ch| (protocol.receive)(ch, 2000),
    )
}

/// What the sender and the receiver of an honest run write.
fn written(protocol: &Protocol) -> [Vec<u8>; 2] {
    let records: [Record; 2] = Default::default();
    let (sent, received) = run(protocol, [1, 1], |a, b| (records[0].of(a), records[1].of(b)));
    assert!((protocol.fits)(&sent.unwrap(), &received.unwrap()), "{}: an honest run", protocol.name);
    let data = |(kind, payload)| (kind == Flip::DATA).then_some(payload);
    records.map(|record| record.frames().into_iter().filter_map(data).flatten().collect())
}

#[test]
fn a_flipped_bit_is_caught_or_does_no_harm() {
    const PLACES: usize = 24;
    for protocol in protocols() {
        for (side, stream) in written(&protocol).into_iter().enumerate() {
            let mut seeds = prg(side as u128 + 5);
            let spread =
                (0..PLACES).map(|i| (i * stream.len() + seeds.below(stream.len() as u64) as usize) / PLACES);
            let mut caught = 0;
            let places: Vec<usize> = spread.chain([0, stream.len() - 1, stream.len() - 33]).collect();
            for &at in &places {
                let bit = seeds.below(8) as u8;
                let flip = |link| -> Box<dyn Link> {
                    Box::new(Flip { link, at, bit, head: Vec::new(), left: 0, passed: 0 })
                };
                let (sent, received) = run(&protocol, [1, 1], |a, b| match side {
                    0 => (flip(a), b),
                    _ => (a, flip(b)),
                });
                let what = format!("{}: byte {at} of {} of side {side}", protocol.name, stream.len());
                caught += noticed(&sent, &received) as usize;
                match (sent, received) {
                    (Ok(sent), Ok(received)) => assert!((protocol.fits)(&sent, &received), "{what}"),
                    (sent, received) => {
                        assert!(noticed(&sent, &received), "{what}: {:?}, {:?}", sent.err(), received.err());
                    }
                }
            }
            // Two kinds of change do no harm half of the time: of a message of an OT that the receiver does
            // not take (VOLE's trees and the short form's hang on such OTs), and of a column of KOS where Δ
            // has a 0.
            let of_ots = protocol.name.starts_with("vole") || protocol.name.ends_with("short form");
            let half = side == 1 || of_ots;
            let least = if half { places.len() / 4 } else { places.len() };
            assert!(caught >= least, "{} side {side}: {caught} of {}", protocol.name, places.len());
        }
    }
}

#[test]
fn sessions_cannot_be_swapped() {
    for protocol in protocols() {
        let (sent, received) = run(&protocol, [1, 2], |a, b| (a, b));
        assert!(noticed(&sent, &received), "{}: {:?}, {:?}", protocol.name, sent.err(), received.err());
    }
}

/// A sender that says word by word what an honest one said in another session.
#[test]
fn a_recorded_sender_serves_no_other_session() {
    for protocol in protocols() {
        let [stream, _] = written(&protocol);
        let (a, b) = memory::links(LinkModel::LOOPBACK);
        let (_, received) = memory::join(
            Channel::new(a, Party::First, SessionId([2; 32])),
            Channel::new(b, Party::Second, SessionId([2; 32])),
            |ch| {
                ch.send(&stream)?;
                ch.flush()?;
                let mut byte = [0];
                while ch.recv(&mut byte).is_ok() {}
                Ok::<(), Error>(())
            },
            |ch| (protocol.receive)(ch, 3000),
        );
        assert!(noticed(&Ok(()), &received), "{}: {:?}", protocol.name, received.err());
    }
}
