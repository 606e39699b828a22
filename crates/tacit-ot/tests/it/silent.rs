//! Silent OT: correlations, choice bits, random and chosen OTs, for every code and security.

use crate::common::{self, assert_correlated, assert_random_choices, prg};
use tacit_crypto::{BitVec, Block};
use tacit_net::Channel;
use tacit_ot::convert::{CotToRot, RotToOt};
use tacit_ot::extension::{iknp, kos};
use tacit_ot::silent::bcgikrs19::{Code, Config, SHORT, SilentReceiver, SilentSender};
use tacit_ot::{CotReceiver, CotSender, Error, OtReceiver, OtSender, RotReceiver, RotSender, Security, base};

fn configs() -> [Config; 4] {
    [Code::QuasiCyclic, Code::Linear]
        .map(|code| [Security::SemiHonest, Security::Malicious].map(|security| Config { code, security }))
        .concat()
        .try_into()
        .unwrap()
}

fn setup(
    config: Config,
) -> (impl FnOnce(&mut Channel) -> SilentSender, impl FnOnce(&mut Channel) -> SilentReceiver) {
    (
        move |ch: &mut Channel| SilentSender::setup(ch, &*base::default(), &mut prg(1), config).unwrap(),
        move |ch: &mut Channel| SilentReceiver::setup(ch, &*base::default(), &mut prg(2), config).unwrap(),
    )
}

fn correlate(config: Config, sizes: &[usize]) {
    let (s, r) = setup(config);
    let ((delta, v), w) = common::run(
        |ch| {
            let mut s = s(ch);
            let mut out = Vec::new();
            for &n in sizes {
                let mut v = vec![Block::ONES; n];
                s.extend(ch, &mut v)?;
                out.extend(v);
            }
            Ok((s.delta(), out))
        },
        |ch| {
            let mut r = r(ch);
            let mut out = Vec::new();
            for &n in sizes {
                let mut w = vec![Block::ONES; n];
                r.extend(ch, &mut w)?;
                out.extend(w);
            }
            Ok(out)
        },
    );
    assert_correlated(delta, &v, &w);
    let distinct: std::collections::HashSet<_> = v.iter().take(5000).map(|b| b.to_u128()).collect();
    assert_eq!(distinct.len(), v.len().min(5000), "rows repeat");
    assert_random_choices(&w);
}

#[test]
fn small_requests() {
    for config in configs() {
        correlate(config, &[1, 0, 1000, 20_000, 30_000, 5, 7]);
    }
}

/// Malicious runs up to `SHORT` are short, all others long: alone, and in turn with one Δ.
#[test]
fn both_forms() {
    for config in configs().into_iter().filter(|config| config.security == Security::Malicious) {
        for sizes in [&[SHORT - 1][..], &[SHORT], &[SHORT + 1], &[1, 200_000, 1000, SHORT, SHORT + 20_000, 5]]
        {
            correlate(config, sizes);
        }
    }
}

#[test]
fn a_million_and_one() {
    for config in configs() {
        correlate(config, &[1_000_001]);
    }
}

#[test]
fn random_and_chosen_messages() {
    for config in configs() {
        let (s, r) = setup(config);
        let n = 40_000;
        let messages: Vec<[Block; 2]> = (0..n).map(|i| [Block::new(2 * i), Block::new(2 * i + 1)]).collect();
        let choices = BitVec::random(n as usize, &mut prg(9));
        let (pairs, (bits, rots, got)) = common::run(
            |ch| {
                let mut rot = CotToRot::new(s(ch));
                let mut pairs = vec![[Block::ZERO; 2]; 777];
                rot.extend(ch, &mut pairs)?;
                RotToOt::new(rot).send(ch, &messages)?;
                Ok(pairs)
            },
            |ch| {
                let mut rot = CotToRot::new(r(ch));
                let mut rots = vec![Block::ZERO; 777];
                let bits = rot.extend(ch, &mut rots)?;
                let mut got = vec![Block::ZERO; n as usize];
                RotToOt::new(rot).receive(ch, &choices, &mut got)?;
                Ok((bits, rots, got))
            },
        );
        for i in 0..777 {
            assert!(rots[i] == pairs[i][bits.get(i) as usize] && rots[i] != pairs[i][!bits.get(i) as usize]);
        }
        assert!((0..n as usize).all(|i| got[i] == messages[i][choices.get(i) as usize]));
    }
}

#[test]
fn ten_runs_of_two_streams() {
    for config in configs() {
        let (s, r) = setup(config);
        // Of either form, where there are two.
        let sizes = (0..20).map(|i| if i % 9 == 4 { SHORT + 1 } else { 20_000 });
        let outputs = || sizes.clone().map(|n| vec![Block::ONES; n]).collect::<Vec<_>>();
        let (sent, received) = common::run(
            |ch| {
                let mut first = s(ch);
                let mut all = [first.fork(), first];
                let mut out = outputs();
                for (i, out) in out.iter_mut().enumerate() {
                    all[i % 2].extend(ch, out)?;
                }
                Ok((all[0].delta(), out.concat()))
            },
            |ch| {
                let mut first = r(ch);
                let mut all = [first.fork(), first];
                let mut out = outputs();
                for (i, out) in out.iter_mut().enumerate() {
                    all[i % 2].extend(ch, out)?;
                }
                Ok(out.concat())
            },
        );
        assert_correlated(sent.0, &sent.1, &received);
        let distinct: std::collections::HashSet<_> = sent.1.iter().map(|b| b.to_u128()).collect();
        assert_eq!(distinct.len(), sizes.sum::<usize>(), "runs or streams repeat");
    }
}

#[test]
fn different_parameters_are_a_clear_error() {
    let [a, _, b, _] = configs();
    let (left, right) = tacit_net::memory::run(
        |ch| SilentSender::setup(ch, &*base::default(), &mut prg(1), a).map(|_| ()),
        |ch| SilentReceiver::setup(ch, &*base::default(), &mut prg(2), b).map(|_| ()),
    );
    for error in [left.unwrap_err(), right.unwrap_err()] {
        assert!(matches!(error, Error::Malformed { protocol: "silent", .. }), "{error}");
    }
}

#[test]
fn a_weak_base_serves_where_the_peer_is_semi_honest() {
    let code = Code::Linear;
    for security in [Security::SemiHonest, Security::Malicious] {
        let (s, r) = tacit_net::memory::run(
            |ch| {
                let mut s =
                    SilentSender::setup(ch, &base::co15::Co15, &mut prg(1), Config { code, security })?;
                let mut v = [Block::ZERO; 9];
                CotSender::extend(&mut s, ch, &mut v).map(|()| (CotSender::delta(&s), v))
            },
            |ch| {
                let mut r =
                    SilentReceiver::setup(ch, &base::co15::Co15, &mut prg(2), Config { code, security })?;
                let mut w = [Block::ZERO; 9];
                CotReceiver::extend(&mut r, ch, &mut w).map(|()| w)
            },
        );
        match security {
            Security::SemiHonest => {
                let ((delta, v), w) = (s.unwrap(), r.unwrap());
                assert_correlated(delta, &v, &w);
            }
            Security::Malicious => {
                assert!(matches!(s, Err(Error::Usage { .. })) && matches!(r, Err(Error::Usage { .. })));
            }
        }
    }
}

#[test]
fn bytes_and_messages_are_those_that_are_announced() {
    for config in configs() {
        for (n, rounds) in [(1000, 1), (SHORT, 1), (SHORT + 1, 2)] {
            let (s, r) = setup(config);
            let (stats, _) = common::run(
                |ch| {
                    let (mut s, before) = (s(ch), ch.stats());
                    s.extend_each(ch, n, &mut |_| {})?;
                    Ok(ch.stats().since(&before))
                },
                |ch| r(ch).extend_each(ch, n, &mut |_| {}),
            );
            let (cots, bytes) = (config.base_cots(n), stats.bytes_sent + stats.bytes_received);
            let (extension, rounds) = match config.security {
                Security::SemiHonest => (iknp::bytes(cots), 1),
                Security::Malicious => (kos::bytes_by_hash(cots), rounds),
            };
            let expected = extension + config.bytes(n) as u64;
            assert!(bytes.abs_diff(expected) * 100 < expected, "{config:?}, {n}: {bytes}, not {expected}");
            // A stream's first run opens the sender's seed before.
            assert_eq!(stats.messages_sent, rounds + 1, "{config:?}, {n}");
        }
    }
}

#[test]
fn two_million_take_less_than_130_kilobytes() {
    for config in configs() {
        let (s, r) = setup(config);
        let (stats, _) = common::run(
            |ch| {
                let mut s = s(ch);
                s.extend_each(ch, 2_000_000, &mut |_| {})?;
                Ok(ch.stats())
            },
            |ch| r(ch).extend_each(ch, 2_000_000, &mut |_| {}),
        );
        let bytes = stats.bytes_sent + stats.bytes_received;
        assert!(bytes < 130_000, "{config:?}: {bytes} bytes");
    }
}
