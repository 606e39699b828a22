use super::*;
use crate::base;
use tacit_crypto::BitVec;
use tacit_net::memory;

const BOTH: [Security; 2] = [Security::Malicious, Security::SemiHonest];

fn parties(a: &mut Channel, b: &mut Channel, seed: u128, security: Security) -> (SoftSender, SoftReceiver) {
    let mut prg = Prg::from_seed(Block::new(seed));
    let pairs: Vec<[Block; 2]> = (0..COLUMNS).map(|_| [prg.block(), prg.block()]).collect();
    let delta = prg.block().with_lsb(true);
    let chosen = pairs.iter().enumerate().map(|(i, pair)| pair[usize::from(delta.bit(i + 1))]).collect();
    let check = |channel: &mut Channel, sender| {
        let history = (security == Security::Malicious).then(|| History::of(DOMAIN, channel, sender));
        Check::bound(history, &[7; 32])
    };
    let sender = SoftSender::with(Zeroizing::new(delta), Zeroizing::new(chosen), check(a, true));
    (sender, SoftReceiver::with(Zeroizing::new(pairs), prg, check(b, false)))
}

fn correlated(delta: Block, v: &[Block], w: &[Block]) -> bool {
    v.iter().zip(w).all(|(v, w)| *w == *v ^ (delta & Block::mask(w.lsb())))
}

#[test]
fn correlations_hold_request_after_request_and_bytes_are_those_told() {
    for security in BOTH {
        let (mut a, mut b) = memory::pair();
        let (mut sender, mut receiver) = parties(&mut a, &mut b, 7, security);
        // The two ends of a channel greet each other once.
        let greeting = 32;
        let (mut told, mut ones, mut all) = (TREES_BYTES + greeting, 0, 0);
        for n in [1, 127, 128, 129, 8_063, 8_064, 8_065, 20_000, 0] {
            let (mut v, mut w) = (vec![Block::ONES; n], vec![Block::ONES; n]);
            std::thread::scope(|scope| {
                let sent = scope.spawn(|| sender.extend(&mut a, &mut v));
                receiver.extend(&mut b, &mut w).unwrap();
                sent.join().unwrap().unwrap();
            });
            assert!(correlated(sender.delta(), &v, &w), "{n} {security:?}");
            told += bytes(n, security);
            ones += BitVec::from_lsbs(&w).iter().filter(|bit| *bit).count();
            all += n;
        }
        assert_eq!(b.stats().bytes_sent, told);
        // Choices are random, and both columns of a pair differ.
        assert!(ones.abs_diff(all / 2) < 5 * (all as f64).sqrt() as usize, "{ones} of {all}");
        assert!(a.stats().bytes_sent <= greeting, "the sender says nothing else");
    }
}

#[test]
fn a_real_base_ot_serves() {
    let (sent, received) = memory::run(
        |channel| {
            let mut sender =
                SoftSender::begin(channel, &*base::default(), &mut Prg::from_os(), Security::Malicious)?(
                    channel,
                )?;
            let mut v = vec![Block::ZERO; 1000];
            sender.extend(channel, &mut v).map(|()| (sender.delta(), v))
        },
        |channel| {
            let mut receiver =
                SoftReceiver::begin(channel, &*base::default(), &mut Prg::from_os(), Security::Malicious)?(
                    channel,
                )?;
            let mut w = vec![Block::ZERO; 1000];
            receiver.extend(channel, &mut w).map(|()| w)
        },
    );
    let (delta, v) = sent.unwrap();
    assert!(correlated(delta, &v, &received.unwrap()));
}

/// What the sender makes of a receiver that changes its trees' corrections, its message for a group, or its
/// answer, in as many groups as guesses are right at a time.
fn cheat(seed: u128, change: impl FnOnce(&mut [Block], &mut [Block], &mut [Block; KAPPA])) -> (bool, Block) {
    let (mut a, mut b) = memory::pair();
    let (mut sender, mut receiver) = parties(&mut a, &mut b, seed, Security::Malicious);
    let (n, len) = (300, 4);
    // An honest receiver's request, by hand.
    let honest = receiver.open();
    let mut corrections = honest.clone();
    receiver.prg.fill_blocks(&mut receiver.t[..len]);
    receiver.tile(len);
    let mut u = receiver.u[..GROUPS * len].to_vec();
    let mut answer = [Block::ZERO; KAPPA];
    // The hash is linear: what `change` puts into `answer` are vectors' hashes, of its one error in U.
    let mut error = [Block::ZERO; KAPPA];
    change(&mut corrections, &mut u, &mut error);
    let Check::Hash(history) = &mut receiver.check else { panic!("a malicious receiver has a history") };
    history.corrected(&corrections);
    let mut all = Vec::new();
    weights(history.challenge(&u), len - 1, &mut all);
    let mut sums = ColumnSums::new(KAPPA);
    sums.add(&receiver.t, STRIDE, &all);
    answer.copy_from_slice(&sums.finish());
    for (answer, error) in answer.iter_mut().zip(error) {
        // An error of 1 in the first row's block weighs its weight.
        *answer ^= Block::mask(error.lsb()) & all[0];
    }
    let mut out = vec![Block::ONES; n];
    b.send_blocks(&corrections).unwrap();
    b.send_blocks(&u).unwrap();
    b.send_blocks(&answer).unwrap();
    b.flush().unwrap();
    let result = sender.extend(&mut a, &mut out);
    if let Err(error) = &result {
        assert!(matches!(error, Error::Cheated { protocol: NAME, .. }), "{error}");
        assert!(out.iter().all(|block| *block == Block::ZERO), "nothing is left");
        assert!(sender.extend(&mut a, &mut out).is_err(), "who was cheated stops");
    }
    (result.is_ok(), sender.delta())
}

#[test]
fn an_honest_receiver_by_hand_passes() {
    assert!(cheat(1, |_, _, _| ()).0);
}

/// A group's message that is wrong passes if the guess of all its bits of Δ is right: 1 in 16.
///
/// proof: softspoken 2.4, 3.2
#[test]
fn a_wrong_message_costs_a_guess_of_four_bits() {
    let (mut passed, runs) = (0, 800);
    for seed in 0..runs {
        let (group, guess) = (seed as usize % GROUPS, seed as usize / GROUPS % 16);
        let columns = groups().nth(group).unwrap();
        let (ok, delta) = cheat(10 * seed + 1000, |_, u, error| {
            u[group * 4] ^= Block::ONE;
            for (bit, column) in columns.clone().enumerate() {
                error[column + 1] = Block::mask(guess >> bit & 1 == 1);
            }
        });
        let right = columns.clone().enumerate().all(|(bit, i)| delta.bit(i + 1) == (guess >> bit & 1 == 1));
        assert_eq!(ok, right, "the check passes exactly when the guess is right");
        passed += u32::from(ok);
    }
    // 50 are expected, 7 more or less.
    assert!((20..=85).contains(&passed), "{passed} of {runs}");
}

/// A correction of a tree that does not fit passes if the sender's bit takes the other one: 1 in 2, and tells
/// that bit; two in a level never do.
///
/// proof: softspoken 2.4, 3.1
#[test]
fn a_wrong_correction_of_a_tree_costs_a_guess_of_a_bit() {
    let (mut passed, runs) = (0, 200);
    for seed in 0..runs {
        // Group 5, level 1 to 3, either side.
        let (level, side) = (1 + seed as usize % 3, seed as usize / 3 % 2);
        let (ok, delta) = cheat(10 * seed + 100_000, |corrections, _, _| {
            corrections[5 * 2 * (DEPTH - 1) + 2 * (level - 1) + side] ^= Block::ONE;
        });
        let taken = delta.bit(1 + 5 * DEPTH + level) == (side == 1);
        assert_eq!(ok, !taken);
        passed += u32::from(ok);
        let (both, _) = cheat(10 * seed + 200_000, |corrections, _, _| {
            let at = 5 * 2 * (DEPTH - 1) + 2 * (level - 1);
            corrections[at] ^= Block::ONE;
            corrections[at + 1] ^= Block::ONE;
        });
        assert!(!both);
    }
    assert!((70..=130).contains(&passed), "{passed} of {runs}");
}

/// The leaves that a punctured tree gives are those of the whole one, but for the one of all choices
/// inverted.
#[test]
fn punctured_trees_know_all_leaves_but_one() {
    let mut prg = Prg::from_seed(Block::new(3));
    for depth in 1..=5 {
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
