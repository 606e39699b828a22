//! What silent OT and VOLE write on the wire and return, with fixed seeds, against a recorded baseline.

use crate::common::{Dealer, prg};
use crate::wire;
use tacit_crypto::Block;
use tacit_crypto::field::{F61, F128, Field};
use tacit_net::Channel;
use tacit_ot::convert::CotToRot;
use tacit_ot::extension::{KosReceiver, KosSender};
use tacit_ot::one_of_many::{OneOfManyReceiver, OneOfManySender};
use tacit_ot::silent::bcgikrs19::{Code, Config, SHORT, SilentReceiver, SilentSender};
use tacit_ot::silent::dealer::{Params, deal};
use tacit_ot::vole::{SilentVoleReceiver, SilentVoleSender, reverse};
use tacit_ot::{CotReceiver, CotSender, Result, Security, VoleReceiver, VoleSender};

const N: usize = 300;

fn bytes(blocks: &[Block]) -> Vec<u8> {
    Block::as_bytes(blocks).to_vec()
}

fn elements<F: Field>(x: &[F]) -> Vec<u8> {
    x.iter().flat_map(|x| x.to_block().to_bytes()).collect()
}

/// A stream and one forked from it, with requests of `n`.
fn silent(name: &str, config: Config, n: usize) -> String {
    let mut out = vec![vec![Block::ZERO; n]; 4];
    let (sent, received) = out.split_at_mut(2);
    wire::line(
        name,
        |ch| {
            let mut s = SilentSender::setup(ch, &Dealer(1), &mut prg(2), config)?;
            let mut fork = s.fork();
            CotSender::extend(&mut s, ch, &mut sent[0])?;
            CotSender::extend(&mut fork, ch, &mut sent[1])?;
            Ok(bytes(&sent.concat()))
        },
        |ch| {
            let mut r = SilentReceiver::setup(ch, &Dealer(1), &mut prg(3), config)?;
            let mut fork = r.fork();
            CotReceiver::extend(&mut r, ch, &mut received[0])?;
            CotReceiver::extend(&mut fork, ch, &mut received[1])?;
            Ok(bytes(&received.concat()))
        },
    )
}

fn vole<F: Field>(name: &str, security: Security) -> String {
    let delta = F::from_block(prg(9).block());
    let sender = |ch: &mut Channel| -> Result<Vec<u8>> {
        let mut v = [F::ZERO; N];
        SilentVoleSender::setup(ch, &Dealer(1), &mut prg(2), delta, security)?.extend(ch, &mut v)?;
        Ok(elements(&v))
    };
    let receiver = |ch: &mut Channel| -> Result<Vec<u8>> {
        let (mut u, mut w) = ([F::ZERO; N], [F::ZERO; N]);
        SilentVoleReceiver::setup(ch, &Dealer(1), &mut prg(3), security)?.extend(ch, &mut u, &mut w)?;
        Ok([elements(&u), elements(&w)].concat())
    };
    wire::line(name, sender, receiver)
}

/// Chosen inputs: over random OTs, and over a silent VOLE.
fn reversed<F: Field>(name: &str, security: Security) -> String {
    let [x, y] = [1, 2].map(|seed| F::from_block(prg(seed).block()));
    let sender = |ch: &mut Channel| -> Result<Vec<u8>> {
        let mut b = [F::ZERO; 40];
        let mut rot = CotToRot::new(KosSender::setup(ch, &Dealer(1), &mut prg(4))?);
        reverse::send(ch, &mut rot, x, &mut b[..20])?;
        SilentVoleSender::setup(ch, &Dealer(2), &mut prg(6), x, security)?.reverse(ch, &mut b[20..])?;
        Ok(elements(&b))
    };
    let receiver = |ch: &mut Channel| -> Result<Vec<u8>> {
        let mut c = [F::ZERO; 40];
        let mut rot = CotToRot::new(KosReceiver::setup(ch, &Dealer(1), &mut prg(7))?);
        reverse::receive(ch, &mut rot, &[y; 20], &mut c[..20])?;
        SilentVoleReceiver::setup(ch, &Dealer(2), &mut prg(9), security)?.reverse(
            ch,
            &[y; 20],
            &mut c[20..],
        )?;
        Ok(elements(&c))
    };
    wire::line(name, sender, receiver)
}

fn one_of_many(p: usize, security: Security) -> String {
    let sender = |ch: &mut Channel| -> Result<Vec<u8>> {
        let mut out = vec![Block::ZERO; 50 * p];
        OneOfManySender::setup(ch, &Dealer(1), &mut prg(2), p, security)?.send(ch, &mut out)?;
        Ok(bytes(&out))
    };
    let receiver = |ch: &mut Channel| -> Result<Vec<u8>> {
        let mut out = vec![Block::ZERO; 50];
        let mut ot = OneOfManyReceiver::setup(ch, &Dealer(1), &mut prg(3), p, security)?;
        let choices = ot.receive(ch, &mut out)?;
        Ok([choices.to_vec(), bytes(&out)].concat())
    };
    wire::line(&format!("1-of-{p} {security:?}"), sender, receiver)
}

#[test]
fn wire_and_outputs_are_as_recorded() {
    let mut lines = String::new();
    for security in [Security::SemiHonest, Security::Malicious] {
        for code in [Code::QuasiCyclic, Code::Linear] {
            let (config, name) = (Config { code, security }, format!("silent {} {security:?}", code.name()));
            lines += &silent(&name, config, N);
            if config.is_short(N) {
                lines += &silent(&format!("{name} long"), config, SHORT + 1);
            }
        }
        lines += &vole::<F61>(&format!("vole f61 {security:?}"), security);
        lines += &vole::<F128>(&format!("vole f128 {security:?}"), security);
        lines += &reversed::<F61>(&format!("reverse f61 {security:?}"), security);
        lines += &reversed::<F128>(&format!("reverse f128 {security:?}"), security);
        for p in [2, 4, 16, 256] {
            lines += &one_of_many(p, security);
        }
    }
    for code in [Code::QuasiCyclic, Code::Linear] {
        let (s, r) = deal(Params { code, count: N }, &mut prg(4)).unwrap();
        let mut hasher = blake3::Hasher::new();
        for part in [&s.to_bytes()[..], &r.to_bytes(), &bytes(&s.expand()), &bytes(&r.expand())] {
            hasher.update(&(part.len() as u64).to_le_bytes()).update(part);
        }
        let lens = [s.to_bytes().len(), r.to_bytes().len()];
        let name = code.name();
        lines += &format!("dealt {name} {}+{} {}\n", lens[0], lens[1], hasher.finalize().to_hex());
    }
    let recorded = include_str!("../silent.digests");
    assert!(lines == recorded, "the wire or the outputs changed; all lines now:\n{lines}");
}
