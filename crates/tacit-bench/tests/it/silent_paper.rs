//! Silent OT as the paper has it: over random OTs of KOS, two and four rounds, every code and security.

use crate::common::{self, Dealer, assert_correlated, prg};
use crate::tamper::{self, Protocol};
use crate::wire;
use tacit_bench::silent_paper::{self, Config, Rounds};
use tacit_crypto::Block;
use tacit_net::{Channel, memory};
use tacit_ot::convert::CotToRot;
use tacit_ot::extension::{KosReceiver, KosSender};
use tacit_ot::silent::bcgikrs19::Code;
use tacit_ot::{Error, Result, Security};

fn configs(count: usize) -> Vec<Config> {
    let mut all = Vec::new();
    for code in [Code::QuasiCyclic, Code::Linear] {
        let of = |security, rounds| Config { code, security, rounds, count };
        all.push(of(Security::SemiHonest, Rounds::Two));
        all.push(of(Security::Malicious, Rounds::Two));
        all.push(of(Security::Malicious, Rounds::Four));
    }
    all
}

fn sender(channel: &mut Channel, config: Config, seed: u128) -> Result<(Block, Vec<Block>)> {
    let mut rot = CotToRot::new(KosSender::setup(channel, &Dealer(1), &mut prg(seed))?);
    silent_paper::send(channel, &mut rot, config, &mut prg(seed + 2))
}

fn receiver(channel: &mut Channel, config: Config, seed: u128) -> Result<Vec<Block>> {
    let mut rot = CotToRot::new(KosReceiver::setup(channel, &Dealer(1), &mut prg(seed))?);
    silent_paper::receive(channel, &mut rot, config, &mut prg(seed + 2))
}

#[test]
fn batches_correlate() {
    for (count, every) in [(1, 1), (1000, 1), (60_001, 1), (1_000_001, 4)] {
        for config in configs(count).into_iter().step_by(every) {
            let ((delta, v), w) = common::run(|ch| sender(ch, config, 2), |ch| receiver(ch, config, 5));
            assert_correlated(delta, &v, &w);
            let ones = w.iter().filter(|w| w.lsb()).count();
            assert!(count < 1000 || ones.abs_diff(count / 2) < 3 * count.isqrt(), "{ones} of {count}");
        }
    }
}

#[test]
fn another_configuration_is_a_clear_error() {
    let all = configs(100);
    for (a, b) in [(0, 1), (1, 2), (1, 4)] {
        let (left, right) =
            memory::run(|ch| sender(ch, all[a], 2).map(|_| ()), |ch| receiver(ch, all[b], 5).map(|_| ()));
        let error = left.unwrap_err();
        assert!(
            matches!(error, Error::Malformed { .. }) && error.to_string().contains("parameters"),
            "{error}"
        );
        assert!(right.is_err());
    }
}

#[test]
fn wire_and_outputs_are_as_recorded() {
    let mut lines = String::new();
    for config in configs(500) {
        let name = format!("{} {:?} {:?}", config.code.name(), config.security, config.rounds);
        lines += &wire::line(
            &name,
            |ch| sender(ch, config, 2).map(|(_, v)| Block::as_bytes(&v).to_vec()),
            |ch| receiver(ch, config, 5).map(|w| Block::as_bytes(&w).to_vec()),
        );
    }
    let recorded = include_str!("../silent_paper.digests");
    assert!(lines == recorded, "the wire or the outputs changed; all lines now:\n{lines}");
}

fn malicious(name: &'static str, rounds: Rounds) -> Protocol {
    let config = Config { code: Code::Linear, security: Security::Malicious, rounds, count: 40 };
    Protocol {
        name,
        send: Box::new(move |ch, seed| {
            let (delta, mut v) = sender(ch, config, seed)?;
            v.push(delta);
            Ok(v)
        }),
        receive: Box::new(move |ch, seed| receiver(ch, config, seed)),
        fits: Box::new(move |sent, w| {
            let delta = sent[config.count];
            w.iter().zip(sent).all(|(w, v)| *w == *v ^ (delta & Block::mask(w.lsb())))
        }),
    }
}

#[test]
fn what_is_changed_swapped_or_played_again_is_noticed() {
    let protocols =
        [malicious("paper, two rounds", Rounds::Two), malicious("paper, four rounds", Rounds::Four)];
    tamper::assert_flips_are_caught(&protocols);
    tamper::assert_sessions_cannot_be_swapped(&protocols);
    tamper::assert_no_replay(&protocols);
}
