use super::super::kos::weights;
use super::*;
use crate::{Error, base};
use tacit_crypto::gf128::ColumnSums;
use tacit_net::memory;

const BOTH: [Security; 2] = [Security::Malicious, Security::SemiHonest];

/// Blocks of a batch in which a test cheats.
const LEN: usize = 4;

/// Where χ come from.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Chi {
    Hashed,
    Drawn,
}

/// A sender whose base OTs were dealt, and what its receiver has of them.
fn sender(
    channel: &mut Channel,
    seed: u128,
    security: Security,
    groups: Groups,
    chi: Chi,
) -> (SoftSender, Vec<[Block; 2]>) {
    let mut prg = Prg::from_seed(Block::new(seed));
    let pairs: Vec<[Block; 2]> = (0..COLUMNS).map(|_| [prg.block(), prg.block()]).collect();
    let delta = prg.block().with_lsb(true);
    let seeds = pairs.iter().enumerate().map(|(i, pair)| pair[usize::from(delta.bit(i + 1))]);
    let columns = SoftColumns::new(delta, &seeds.collect::<Vec<_>>(), groups);
    let form = match (security, chi) {
        (Security::SemiHonest, _) => Either::SemiHonest(IknpSender::with(columns).into()),
        (Security::Malicious, Chi::Drawn) => {
            Either::Malicious(KosSender::with(columns, Some(prg), [7; 32]).into())
        }
        (Security::Malicious, Chi::Hashed) => {
            let history = History::of(groups.domain().unwrap(), channel, true);
            Either::Malicious(KosSender::with(columns, None, [7; 32]).with_history(history).into())
        }
    };
    (SoftSender(form), pairs)
}

fn parties(
    a: &mut Channel,
    b: &mut Channel,
    seed: u128,
    (groups, security, chi): (Groups, Security, Chi),
) -> (SoftSender, SoftReceiver) {
    let (sender, pairs) = sender(a, seed, security, groups, chi);
    let (columns, prg) = (SoftChoices::new(&pairs, groups), Prg::from_seed(Block::new(seed + 1)));
    let form = match (security, chi) {
        (Security::SemiHonest, _) => Either::SemiHonest(IknpReceiver::with(columns, prg).into()),
        (Security::Malicious, Chi::Drawn) => {
            Either::Malicious(KosReceiver::with(columns, prg, [7; 32]).into())
        }
        (Security::Malicious, Chi::Hashed) => {
            let history = History::of(groups.domain().unwrap(), b, false);
            Either::Malicious(KosReceiver::with(columns, prg, [7; 32]).with_history(history).into())
        }
    };
    (sender, SoftReceiver(form))
}

fn correlated(delta: Block, v: &[Block], w: &[Block]) -> bool {
    v.iter().zip(w).all(|(v, w)| *w == *v ^ (delta & Block::mask(w.lsb())))
}

fn each_shape() -> impl Iterator<Item = (Groups, Security, Chi)> {
    let forms = [
        (Security::Malicious, Chi::Hashed),
        (Security::Malicious, Chi::Drawn),
        (Security::SemiHonest, Chi::Drawn),
    ];
    let all =
        Groups::ALL.into_iter().flat_map(move |groups| forms.map(|(security, chi)| (groups, security, chi)));
    all.filter(|(groups, _, chi)| is_there(*groups, *chi))
}

/// Groups of eight bits take no hash.
fn is_there(groups: Groups, chi: Chi) -> bool {
    chi == Chi::Drawn || groups.domain().is_some()
}

/// Where χ by hash would have too little, [`SoftSender::begin`] draws them.
#[test]
fn few_ots_by_any_groups() {
    for (groups, security) in
        Groups::ALL.into_iter().flat_map(|groups| BOTH.map(|security| (groups, security)))
    {
        let (sent, w) = memory::run(
            |channel| {
                let base = base::default();
                let setup =
                    SoftSender::begin(channel, &*base, &mut Prg::from_os(), security, groups).unwrap();
                let (mut sender, mut v) = (setup(channel).unwrap(), vec![Block::ZERO; 300]);
                sender.extend(channel, &mut v).unwrap();
                (sender.delta(), v)
            },
            |channel| {
                let base = base::default();
                let setup =
                    SoftReceiver::begin(channel, &*base, &mut Prg::from_os(), security, groups).unwrap();
                let (mut receiver, mut w) = (setup(channel).unwrap(), vec![Block::ZERO; 300]);
                let drawn = security == Security::Malicious && groups == Groups::Eight;
                assert_eq!(receiver.is_answered(), drawn);
                receiver.extend(channel, &mut w).unwrap();
                w
            },
        );
        assert!(correlated(sent.0, &sent.1, &w), "{groups:?} {security:?}");
    }
}

#[test]
fn correlations_hold_request_after_request_and_bytes_are_those_told() {
    for shape in each_shape() {
        let (groups, security, chi) = shape;
        let (mut a, mut b) = memory::pair();
        let (mut sender, mut receiver) = parties(&mut a, &mut b, 7, shape);
        // The two ends of a channel greet each other once.
        let greeting = 32;
        let (mut told, mut ones, mut all) = (groups.trees_bytes() + 2 * greeting, 0, 0);
        for n in [1, 127, 128, 129, 8_063, 8_064, 8_065, 65_409, 20_000, 0] {
            let (mut v, mut w) = (vec![Block::ONES; n], vec![Block::ONES; n]);
            std::thread::scope(|scope| {
                let sent = scope.spawn(|| sender.extend(&mut a, &mut v));
                receiver.extend(&mut b, &mut w).unwrap();
                sent.join().unwrap().unwrap();
            });
            assert!(correlated(sender.delta(), &v, &w), "{n} {shape:?}");
            told += match chi {
                Chi::Hashed => groups.bytes_by_hash(n, security),
                Chi::Drawn => groups.bytes(n, security),
            };
            ones += BitVec::from_lsbs(&w).iter().filter(|bit| *bit).count();
            all += n;
        }
        // Messages travel in frames, each with a header of its own.
        let sent = a.stats().bytes_sent + b.stats().bytes_sent;
        assert!((told - 2 * greeting..=told + told / 1024).contains(&sent), "{shape:?}: {sent}, not {told}");
        // Choices are random, and both columns of a pair differ.
        assert!(ones.abs_diff(all / 2) < 5 * (all as f64).sqrt() as usize, "{ones} of {all}");
        let alone = security == Security::SemiHonest || chi == Chi::Hashed;
        assert_eq!(a.stats().bytes_sent <= greeting, alone, "the sender says nothing but χ");
    }
}

#[test]
fn bytes_an_ot_are_those_of_the_table() {
    let an_ot = |groups: Groups, security| groups.bytes(1 << 20, security) as f64 / f64::from(1 << 20);
    let found =
        Groups::ALL.map(|groups| BOTH.map(|security| (an_ot(groups, security) * 100.0).round() / 100.0));
    assert_eq!(found, [[8.05, 8.0], [4.04, 4.0], [2.04, 2.0]]);
    let hashed =
        |groups: Groups| groups.bytes_by_hash(1 << 20, Security::Malicious) as f64 / f64::from(1 << 20);
    assert_eq!(Groups::ALL.map(|groups| (hashed(groups) * 100.0).round() / 100.0), [8.38, 4.32, 2.29]);
    assert_eq!(Groups::ALL.map(Groups::trees_bytes), [2_016, 3_040, 3_552]);
}

#[test]
fn a_real_base_ot_serves_and_forks_are_streams_of_one_setup() {
    for (groups, security) in
        Groups::ALL.into_iter().flat_map(|groups| BOTH.map(|security| (groups, security)))
    {
        let requests = [(1000, false), (300, true), (9000, true), (5, false)];
        let (sent, received) = memory::run(
            |channel| {
                let base = base::default();
                let mut sender =
                    SoftSender::setup(channel, &*base, &mut Prg::from_os(), security, groups).unwrap();
                let mut fork = sender.fork();
                assert!(fork.delta() == sender.delta());
                let all = requests.map(|(n, forked)| {
                    let mut v = vec![Block::ZERO; n];
                    let from = if forked { &mut fork } else { &mut sender };
                    from.extend(channel, &mut v).unwrap();
                    v
                });
                (sender.delta(), all)
            },
            |channel| {
                let base = base::default();
                let mut receiver =
                    SoftReceiver::setup(channel, &*base, &mut Prg::from_os(), security, groups).unwrap();
                let mut fork = receiver.fork();
                requests.map(|(n, forked)| {
                    let mut w = vec![Block::ZERO; n];
                    let from = if forked { &mut fork } else { &mut receiver };
                    from.extend(channel, &mut w).unwrap();
                    w
                })
            },
        );
        for (v, w) in sent.1.iter().zip(&received) {
            assert!(correlated(sent.0, v, w), "{groups:?} {security:?} {}", v.len());
        }
        assert!(received[0][..300] != received[1][..], "a fork has streams of its own");
    }
}

/// Pieces are the rows of one request.
#[test]
fn rows_handed_on_piece_by_piece_are_those_of_a_request() {
    for shape in each_shape() {
        let run = |pieces: bool| {
            let (mut a, mut b) = memory::pair();
            let (mut sender, mut receiver) = parties(&mut a, &mut b, 11, shape);
            let (mut v, mut w) = (vec![Block::ZERO; 20_000], vec![Block::ZERO; 20_000]);
            std::thread::scope(|scope| {
                let sent = scope.spawn(|| match pieces {
                    false => sender.extend(&mut a, &mut v),
                    true => {
                        v.clear();
                        sender.extend_each(&mut a, 20_000, &mut |rows| v.extend_from_slice(rows))
                    }
                });
                if pieces {
                    w.clear();
                    receiver.extend_each(&mut b, 20_000, &mut |rows| w.extend_from_slice(rows)).unwrap();
                } else {
                    receiver.extend(&mut b, &mut w).unwrap();
                }
                sent.join().unwrap().unwrap();
            });
            (v, w, b.stats().bytes_sent)
        };
        assert!(run(true) == run(false), "{shape:?}");
    }
}

/// What the sender makes of a receiver that changes its trees' corrections, its message for a group, or its
/// answer, in as many groups as guesses are right at a time.
fn cheat(
    groups: Groups,
    chi: Chi,
    seed: u128,
    change: impl FnOnce(&mut [Block], &mut [Block], &mut [Block; KAPPA]),
) -> (bool, Block) {
    let (mut a, mut b) = memory::pair();
    let (mut sender, pairs) = sender(&mut a, seed, Security::Malicious, groups, chi);
    // An honest receiver's request, by hand.
    let mut columns = SoftChoices::new(&pairs, groups);
    let mut corrections = columns.grow();
    let mut t = vec![Block::ZERO; KAPPA * STRIDE + LEN];
    Prg::from_seed(Block::new(seed + 1)).fill_blocks(&mut t[..LEN]);
    columns.columns(&mut t, STRIDE, 0, LEN);
    let mut u = columns.sent(LEN).to_vec();
    // The hash is linear: what `change` puts here are vectors' hashes, of its one error in U.
    let mut error = [Block::ZERO; KAPPA];
    change(&mut corrections, &mut u, &mut error);
    let mut out = vec![Block::ONES; 300];
    let mut history =
        (chi == Chi::Hashed).then(|| History::of(groups.domain().unwrap(), &mut b, false).bind(&[7; 32]));
    let result = std::thread::scope(|scope| {
        let running = scope.spawn(|| sender.extend(&mut a, &mut out));
        b.send_blocks(&corrections).unwrap();
        b.send_blocks(&u).unwrap();
        b.flush().unwrap();
        let challenge = match &mut history {
            Some(history) => {
                history.corrected(&corrections);
                history.challenge(&u)
            }
            None => b.recv_block().unwrap(),
        };
        let mut all = Vec::new();
        weights(challenge, LEN - 1, &mut all);
        let mut sums = ColumnSums::new(KAPPA);
        sums.add(&t, STRIDE, &all);
        let mut answer = sums.finish();
        for (answer, error) in answer.iter_mut().zip(error) {
            // An error of 1 in the first row's block weighs its weight.
            *answer ^= Block::mask(error.lsb()) & all[0];
        }
        b.send_blocks(&answer).unwrap();
        b.flush().unwrap();
        running.join().unwrap()
    });
    if let Err(error) = &result {
        assert!(matches!(error, Error::Cheated { protocol: NAME, .. }), "{error}");
        assert!(out.iter().all(|block| *block == Block::ZERO), "nothing is left");
        assert!(sender.extend(&mut a, &mut out).is_err(), "who was cheated stops");
    }
    (result.is_ok(), sender.delta())
}

fn each_cheat() -> impl Iterator<Item = (Groups, Chi)> {
    let all = Groups::ALL.into_iter().flat_map(|groups| [Chi::Hashed, Chi::Drawn].map(|chi| (groups, chi)));
    all.filter(|(groups, chi)| is_there(*groups, *chi))
}

#[test]
fn an_honest_receiver_by_hand_passes() {
    each_cheat().for_each(|(groups, chi)| assert!(cheat(groups, chi, 1, |_, _, _| ()).0));
}

/// A group's message that is wrong passes if the guess of all its bits of Δ is right: 1 in 2^k.
///
/// proof: softspoken 2.4, 3.2
#[test]
fn a_wrong_message_costs_a_guess_of_all_bits_of_a_group() {
    // Runs, and how many of them may pass: the mean and four and a half deviations either way.
    for (groups, runs, expected) in
        [(Groups::Two, 400, 61..=139), (Groups::Four, 800, 20..=81), (Groups::Eight, 1200, 0..=15)]
    {
        let mut passed = 0;
        for seed in 0..runs {
            let (group, guess) = (seed as usize % groups.count(), seed as usize / groups.count());
            let guess = guess & ((1 << groups.bits()) - 1);
            let columns = groups.ranges().nth(group).unwrap();
            let chi = if seed % 2 == 0 && is_there(groups, Chi::Hashed) { Chi::Hashed } else { Chi::Drawn };
            let (ok, delta) = cheat(groups, chi, 10 * seed + 1000, |_, u, error| {
                u[group * LEN] ^= Block::ONE;
                for (bit, column) in columns.clone().enumerate() {
                    error[column + 1] = Block::mask(guess >> bit & 1 == 1);
                }
            });
            let right =
                columns.clone().enumerate().all(|(bit, i)| delta.bit(i + 1) == (guess >> bit & 1 == 1));
            assert_eq!(ok, right, "the check passes exactly when the guess is right");
            passed += u32::from(ok);
        }
        assert!(expected.contains(&passed), "{groups:?}: {passed} of {runs}");
    }
}

/// A correction of a tree that does not fit passes if the sender's bit takes the other one: 1 in 2, and tells
/// that bit; two in a level never do.
///
/// proof: softspoken 2.4, 3.1
#[test]
fn a_wrong_correction_of_a_tree_costs_a_guess_of_a_bit() {
    for (groups, chi) in each_cheat() {
        let (depth, runs) = (groups.bits(), 120);
        let mut passed = 0;
        for seed in 0..runs {
            // Group 5, each level but the first, either side.
            let (level, side) = (1 + seed as usize % (depth - 1), seed as usize / (depth - 1) % 2);
            let at = 5 * 2 * (depth - 1) + 2 * (level - 1);
            let (ok, delta) = cheat(groups, chi, 10 * seed + 100_000, |corrections, _, _| {
                corrections[at + side] ^= Block::ONE;
            });
            let taken = delta.bit(1 + 5 * depth + level) == (side == 1);
            assert_eq!(ok, !taken);
            passed += u32::from(ok);
            let (both, _) = cheat(groups, chi, 10 * seed + 200_000, |corrections, _, _| {
                corrections[at] ^= Block::ONE;
                corrections[at + 1] ^= Block::ONE;
            });
            assert!(!both);
        }
        assert!((35..=85).contains(&passed), "{groups:?}: {passed} of {runs}");
    }
}

/// A check that fails in one stream ends all of them, and no verdict is passed afterwards.
///
/// proof: softspoken 3.4
#[test]
fn a_failed_check_ends_all_forks() {
    for (groups, chi) in each_cheat() {
        let (mut a, mut b) = memory::pair();
        let (mut sender, mut receiver) = parties(&mut a, &mut b, 9, (groups, Security::Malicious, chi));
        let mut out = vec![Block::ZERO; 200];
        std::thread::scope(|scope| {
            scope.spawn(|| receiver.extend(&mut b, &mut [Block::ZERO; 200]).unwrap());
            sender.extend(&mut a, &mut out).unwrap();
        });
        let mut fork = sender.fork();
        let result = std::thread::scope(|scope| {
            let running = scope.spawn(|| fork.extend(&mut a, &mut out));
            b.send_blocks(&vec![Block::ONES; groups.count() * 3]).unwrap();
            b.send_blocks(&[Block::ONES; KAPPA]).unwrap();
            b.flush().unwrap();
            running.join().unwrap()
        });
        assert!(matches!(result, Err(Error::Cheated { protocol: NAME, .. })), "{result:?}");
        assert!(matches!(sender.extend(&mut a, &mut out), Err(Error::Spent(NAME))));
        assert!(matches!(sender.fork().extend(&mut a, &mut out), Err(Error::Spent(NAME))));
    }
}

/// The leaves that a punctured tree gives are those of the whole one, but for the one of all choices
/// inverted.
#[test]
fn punctured_trees_know_all_leaves_but_one() {
    let mut prg = Prg::from_seed(Block::new(3));
    for depth in 1..=8 {
        for choice in 0..1usize << depth {
            let pairs: Vec<[Block; 2]> = (0..depth).map(|_| [prg.block(), prg.block()]).collect();
            let choices: Vec<bool> = (0..depth).map(|bit| choice >> bit & 1 == 1).collect();
            let keys: Vec<Block> =
                pairs.iter().zip(&choices).map(|(pair, &bit)| pair[usize::from(bit)]).collect();
            let mut corrections = Vec::new();
            let leaves = tree(&pairs, &mut corrections);
            let known = punctured(&keys, &choices, &corrections);
            let missing = (1 << depth) - 1 - choice;
            for y in 1..1 << depth {
                assert_eq!(known[y], leaves[missing ^ y], "depth {depth}, choice {choice}, {y}");
            }
        }
    }
}
