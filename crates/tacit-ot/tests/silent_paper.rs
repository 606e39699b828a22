//! Silent OT as the paper has it: over random OTs of KOS, two and four rounds, every code and security.

mod common;
#[path = "common/wire.rs"]
mod wire;

use common::{Dealer, assert_correlated, prg};
use tacit_crypto::Block;
use tacit_net::{Channel, memory};
use tacit_ot::convert::CotToRot;
use tacit_ot::extension::{KosReceiver, KosSender};
use tacit_ot::silent::bcgikrs19::Code;
use tacit_ot::silent::paper::{Config, PaperReceiver, PaperSender, Rounds};
use tacit_ot::{CotReceiver, CotSender, Error, Result, Security};

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

fn sender(channel: &mut Channel, config: Config) -> Result<(Block, Vec<Block>)> {
    let mut rot = CotToRot::new(KosSender::setup(channel, &Dealer(1), &mut prg(2))?);
    let mut s = PaperSender::make(channel, &mut rot, config, &mut prg(4))?;
    let mut out = vec![Block::ONES; config.count];
    let (one, rest) = out.split_at_mut(config.count / 3);
    s.extend(channel, one)?;
    s.extend(channel, rest)?;
    assert!(matches!(s.extend(channel, &mut [Block::ZERO]), Err(Error::Exhausted { left: 0, .. })));
    Ok((s.delta(), out))
}

fn receiver(channel: &mut Channel, config: Config) -> Result<Vec<Block>> {
    let mut rot = CotToRot::new(KosReceiver::setup(channel, &Dealer(1), &mut prg(5))?);
    let mut r = PaperReceiver::make(channel, &mut rot, config, &mut prg(7))?;
    let mut out = vec![Block::ONES; config.count];
    r.extend(channel, &mut out)?;
    Ok(out)
}

#[test]
fn batches_correlate() {
    for (count, every) in [(1, 1), (1000, 1), (60_001, 1), (1_000_001, 4)] {
        for config in configs(count).into_iter().step_by(every) {
            let ((delta, v), w) = common::run(|ch| sender(ch, config), |ch| receiver(ch, config));
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
            memory::run(|ch| sender(ch, all[a]).map(|_| ()), |ch| receiver(ch, all[b]).map(|_| ()));
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
            |ch| sender(ch, config).map(|(_, v)| Block::as_bytes(&v).to_vec()),
            |ch| receiver(ch, config).map(|w| Block::as_bytes(&w).to_vec()),
        );
    }
    let recorded = include_str!("silent_paper.digests");
    assert!(lines == recorded, "the wire or the outputs changed; all lines now:\n{lines}");
}
