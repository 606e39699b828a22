//! Ferret from nothing: base OT, KOS, a small set, the main one; its wire with fixed seeds; its streams; its
//! memory.

use crate::common::{self, Dealer, assert_correlated, assert_random_choices, prg};
use crate::wire;
use std::collections::HashSet;
use tacit_crypto::Block;
use tacit_net::Channel;
use tacit_ot::silent::ferret::setup::{receivers, senders, uni_receivers, uni_senders};
use tacit_ot::silent::ferret::{Config, FerretReceiver, FerretSender, Lanes, Params};
use tacit_ot::silent::ferret::{UniConfig, UniParams};
use tacit_ot::{CotReceiver, CotSender, Result, Security};

fn config(params: Params, lanes: Lanes, security: Security) -> Config {
    Config { params, lanes, security }
}

/// `n` correlations as bytes.
fn made(n: usize, extend: impl FnOnce(&mut [Block]) -> Result<()>) -> Result<Vec<u8>> {
    let mut out = vec![Block::ZERO; n];
    extend(&mut out)?;
    Ok(Block::as_bytes(&out).to_vec())
}

fn sender(channel: &mut Channel, config: Config, n: usize) -> Result<Vec<u8>> {
    let mut sender = senders(channel, &Dealer(1), &mut prg(2), config, 1)?.remove(0);
    made(n, |out| sender.extend(channel, out))
}

fn receiver(channel: &mut Channel, config: Config, n: usize) -> Result<Vec<u8>> {
    let mut receiver = receivers(channel, &Dealer(1), &mut prg(3), config, 1)?.remove(0);
    made(n, |out| receiver.extend(channel, out))
}

/// Three iterations made ahead, straight from KOS; of four lanes two.
fn ahead(name: &str, config: Config) -> String {
    let iterations = if config.lanes == Lanes::One { 3 } else { 2 };
    let total = config.total_ahead(iterations);
    wire::line(
        name,
        |ch| {
            let mut kos = tacit_ot::extension::KosSender::setup(ch, &Dealer(1), &mut prg(2))?;
            let mut s = FerretSender::setup_ahead(ch, prg(4), config, iterations, &mut kos)?;
            made(total, |out| s.extend(ch, out))
        },
        |ch| {
            let mut kos = tacit_ot::extension::KosReceiver::setup(ch, &Dealer(1), &mut prg(3))?;
            let mut r = FerretReceiver::setup_ahead(ch, prg(5), config, iterations, &mut kos)?;
            made(total, |out| r.extend(ch, out))
        },
    )
}

#[test]
fn wire_and_outputs_are_as_recorded() {
    let mut lines = String::new();
    for (name, config, n) in [
        ("ferret-e1 1000", config(Params::E, Lanes::One, Security::Malicious), 1000),
        ("ferret-d4 1000000", config(Params::D, Lanes::Four, Security::Malicious), 1_000_000),
        ("ferret-d4-semi-honest 1000", config(Params::D, Lanes::Four, Security::SemiHonest), 1000),
        ("ferret-b1 1000", config(Params::B, Lanes::One, Security::Malicious), 1000),
        ("ferret-e1-semi-honest 1000", config(Params::E, Lanes::One, Security::SemiHonest), 1000),
        ("ferret-c4 1000", config(Params::C, Lanes::Four, Security::Malicious), 1000),
        ("ferret-a1 1000", config(Params::A, Lanes::One, Security::Malicious), 1000),
        ("ferret-paper1 1000", config(Params::PAPER, Lanes::One, Security::Malicious), 1000),
    ] {
        lines += &wire::line(name, |ch| sender(ch, config, n), |ch| receiver(ch, config, n));
    }
    for (name, lanes, security) in [
        ("ferret-ahead-e1 3", Lanes::One, Security::Malicious),
        ("ferret-ahead-e4-semi-honest 2", Lanes::Four, Security::SemiHonest),
    ] {
        lines += &ahead(name, config(Params::E, lanes, security));
    }
    for (name, params, security) in [
        ("ferret-uni-setup 1000", UniParams::SETUP, Security::Malicious),
        ("ferret-uni-setup-semi-honest 1000", UniParams::SETUP, Security::SemiHonest),
        ("ferret-uni-b 1000", UniParams::B, Security::Malicious),
        ("ferret-uni-main 1000", UniParams::MAIN, Security::Malicious),
    ] {
        let config = UniConfig { params, security };
        lines += &wire::line(
            name,
            |ch| made(1000, |out| uni_senders(ch, &Dealer(1), &mut prg(2), config, 1)?[0].extend(ch, out)),
            |ch| made(1000, |out| uni_receivers(ch, &Dealer(1), &mut prg(3), config, 1)?[0].extend(ch, out)),
        );
    }
    let recorded = include_str!("../ferret.digests");
    assert!(lines == recorded, "the wire or the outputs changed; all lines now:\n{lines}");
}

/// What the unit tests leave out: semi-honest peers, the sets of the tables, ten iterations, and choice bits
/// in bulk.
#[test]
fn every_set_and_security_at_every_size() {
    let small = [1, 1000, 1_000_001];
    let mut runs: Vec<(Config, Vec<usize>)> = Vec::new();
    for params in [Params::E, Params::D, Params::C, Params::B, Params::PAPER_SETUP] {
        runs.push((config(params, Lanes::Four, Security::SemiHonest), small.into()));
    }
    for params in [Params::A, Params::PAPER, Params::PAPER_SETUP] {
        runs.push((config(params, Lanes::One, Security::Malicious), small.into()));
    }
    for (lanes, security) in [(Lanes::One, Security::Malicious), (Lanes::Four, Security::SemiHonest)] {
        let config = config(Params::E, lanes, security);
        runs.push((config, vec![10 * config.net() + 1]));
    }
    for (config, sizes) in runs {
        let total = sizes.iter().sum();
        let (delta_and_v, w) = common::run(
            |ch| {
                let mut s = senders(ch, &Dealer(1), &mut prg(2), config, 1)?.remove(0);
                let mut out = vec![Block::ONES; total];
                let mut rest = &mut out[..];
                for n in &sizes {
                    s.extend(ch, rest.split_off_mut(..*n).unwrap())?;
                }
                Ok((s.delta(), out))
            },
            |ch| {
                let mut r = receivers(ch, &Dealer(1), &mut prg(3), config, 1)?.remove(0);
                let mut out = vec![Block::ONES; total];
                let mut rest = &mut out[..];
                for n in &sizes {
                    r.extend(ch, rest.split_off_mut(..*n).unwrap())?;
                }
                Ok(out)
            },
        );
        let (delta, v) = delta_and_v;
        assert_correlated(delta, &v, &w);
        assert_random_choices(&w);
    }
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
