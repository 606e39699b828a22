//! Ferret from nothing: base OT, KOS, a small set, the main one; its wire with fixed seeds; its streams; its memory.

mod common;
#[path = "common/wire.rs"]
mod wire;

use common::{Dealer, assert_correlated, prg};
use std::collections::HashSet;
use tacit_crypto::Block;
use tacit_net::Channel;
use tacit_ot::silent::ferret::{Config, FerretReceiver, FerretSender, Lanes, Params};
use tacit_ot::silent::ferret_setup::{receivers, senders, uni_receivers, uni_senders};
use tacit_ot::silent::ferret_uni::{UniConfig, UniParams};
use tacit_ot::{CotReceiver, CotSender, Result, Security};

fn config(params: Params, lanes: Lanes, security: Security) -> Config {
    Config { params, lanes, security }
}

fn sender(channel: &mut Channel, config: Config, n: usize) -> Result<Vec<u8>> {
    let mut sender = senders(channel, &Dealer(1), &mut prg(2), config, 1)?.remove(0);
    let mut out = vec![Block::ZERO; n];
    sender.extend(channel, &mut out)?;
    Ok(Block::as_bytes(&out).to_vec())
}

fn receiver(channel: &mut Channel, config: Config, n: usize) -> Result<Vec<u8>> {
    let mut receiver = receivers(channel, &Dealer(1), &mut prg(3), config, 1)?.remove(0);
    let mut out = vec![Block::ZERO; n];
    receiver.extend(channel, &mut out)?;
    Ok(Block::as_bytes(&out).to_vec())
}

#[test]
fn wire_and_outputs_are_as_recorded() {
    let mut lines = String::new();
    for (name, config, n) in [
        ("ferret-e1 1000", config(Params::E, Lanes::One, Security::Malicious), 1000),
        ("ferret-d4 1000000", config(Params::D, Lanes::Four, Security::Malicious), 1_000_000),
        ("ferret-d4-semi-honest 1000", config(Params::D, Lanes::Four, Security::SemiHonest), 1000),
        ("ferret-b1 1000", config(Params::B, Lanes::One, Security::Malicious), 1000),
    ] {
        lines += &wire::line(name, |ch| sender(ch, config, n), |ch| receiver(ch, config, n));
    }
    let ahead = config(Params::E, Lanes::One, Security::Malicious);
    lines += &wire::line(
        "ferret-ahead-e1 3",
        |ch| {
            let mut kos = tacit_ot::extension::KosSender::setup(ch, &Dealer(1), &mut prg(2))?;
            let mut s = FerretSender::setup_ahead(ch, prg(4), ahead, 3, &mut kos)?;
            let mut out = vec![Block::ZERO; ahead.total_ahead(3)];
            s.extend(ch, &mut out)?;
            Ok(Block::as_bytes(&out).to_vec())
        },
        |ch| {
            let mut kos = tacit_ot::extension::KosReceiver::setup(ch, &Dealer(1), &mut prg(3))?;
            let mut r = FerretReceiver::setup_ahead(ch, prg(5), ahead, 3, &mut kos)?;
            let mut out = vec![Block::ZERO; ahead.total_ahead(3)];
            r.extend(ch, &mut out)?;
            Ok(Block::as_bytes(&out).to_vec())
        },
    );
    for (name, params) in [("ferret-uni-setup 1000", UniParams::SETUP), ("ferret-uni-b 1000", UniParams::B)] {
        let uni = UniConfig { params, security: Security::Malicious };
        lines += &wire::line(
            name,
            |ch| {
                let mut s = uni_senders(ch, &Dealer(1), &mut prg(2), uni, 1)?.remove(0);
                let mut out = vec![Block::ZERO; 1000];
                s.extend(ch, &mut out)?;
                Ok(Block::as_bytes(&out).to_vec())
            },
            |ch| {
                let mut r = uni_receivers(ch, &Dealer(1), &mut prg(3), uni, 1)?.remove(0);
                let mut out = vec![Block::ZERO; 1000];
                r.extend(ch, &mut out)?;
                Ok(Block::as_bytes(&out).to_vec())
            },
        );
    }
    let recorded = include_str!("ferret.digests");
    assert!(lines == recorded, "the wire or the outputs changed; all lines now:\n{lines}");
}

#[test]
fn streams_of_one_setup_share_delta_and_nothing_else() {
    for params in [Params::E, Params::B] {
        let config = config(params, Lanes::One, Security::Malicious);
        let n = 5000;
        let (sent, received) = common::run(
            |ch| {
                let mut all = senders(ch, &Dealer(1), &mut prg(2), config, 3)?;
                let delta = all[0].delta();
                let mut out = vec![vec![Block::ZERO; n]; 3];
                for (stream, out) in all.iter_mut().zip(&mut out) {
                    assert_eq!(stream.delta(), delta);
                    stream.extend(ch, out)?;
                }
                Ok((delta, out.concat()))
            },
            |ch| {
                let mut all = receivers(ch, &Dealer(1), &mut prg(3), config, 3)?;
                let mut out = vec![vec![Block::ZERO; n]; 3];
                for (stream, out) in all.iter_mut().zip(&mut out) {
                    stream.extend(ch, out)?;
                }
                Ok(out.concat())
            },
        );
        assert_correlated(sent.0, &sent.1, &received);
        let distinct: HashSet<u128> = sent.1.iter().map(|v| v.to_u128()).collect();
        assert_eq!(distinct.len(), 3 * n);
    }
}

#[test]
fn when_one_stream_fails_all_are_spent() {
    let config = config(Params::E, Lanes::One, Security::Malicious);
    let (a, b) = tacit_net::memory::run(
        |ch| {
            // A sender that goes away within an iteration.
            senders(ch, &Dealer(1), &mut prg(2), config, 2).map(drop)
        },
        |ch| {
            let mut all = receivers(ch, &Dealer(1), &mut prg(3), config, 2)?;
            let mut out = vec![Block::ONES; 100];
            assert!(all[0].extend(ch, &mut out).is_err());
            assert!(out.iter().all(|b| *b == Block::ZERO));
            assert!(matches!(all[1].extend(ch, &mut out), Err(tacit_ot::Error::Spent(_))));
            Ok::<_, tacit_ot::Error>(())
        },
    );
    a.unwrap();
    b.unwrap();
}
