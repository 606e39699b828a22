//! Scripted cheaters against KOS and OOS. The cheating receivers are written here from the protocols'
//! descriptions, so their honest form is a second implementation of the receiver as well.

mod common;

use common::{Dealer, prg};
use std::sync::Arc;
use tacit_crypto::{BitVec, Block, KAPPA, Prg, gf128, transcript::Transcript};
use tacit_net::{Channel, Recording, memory};
use tacit_ot::convert::CotToRot;
use tacit_ot::extension::code::{LinearCode, MatrixCode};
use tacit_ot::extension::{IknpSender, KosReceiver, KosSender, OosSender};
use tacit_ot::{BaseOt, CotReceiver, CotSender, Error, Result, RotSender};

/// What a cheater does to one column: the error it adds to u_i, and the Δ_i that it hopes for.
#[derive(Clone)]
struct Wrong {
    column: usize,
    error: Vec<Block>,
    guess: bool,
}

/// The answer to χ: every column's hash, the last block with weight 1.
fn hash(challenge: Block, column: &[Block]) -> Block {
    let mut weights = vec![Block::ZERO; column.len()];
    Prg::from_seed(challenge).fill_blocks(&mut weights);
    weights[column.len() - 1] = Block::ONE;
    gf128::inner_product(&weights, column)
}

/// Sends columns u_i = PRG(k_i^0) ⊕ PRG(k_i^1) ⊕ word_i ⊕ error_i, and answers χ with x and the t_i, each
/// corrected for the guess. `seeds`, `words` and `first` (the number of the first column that travels) say
/// which protocol this is.
fn cheat(
    channel: &mut Channel,
    seeds: &[[Block; 2]],
    words: &[Vec<Block>],
    x: &[Vec<Block>],
    first: usize,
    wrong: &[Wrong],
    challenge: impl FnOnce(&mut Channel, &[Block]) -> Result<Block>,
) -> Result<()> {
    let len = words[0].len();
    let (mut columns, mut sent) = (Vec::new(), Vec::new());
    for (i, [zero, one]) in seeds.iter().enumerate() {
        let (mut t, mut u) = (vec![Block::ZERO; len], vec![Block::ZERO; len]);
        Prg::from_seed(*zero).fill_blocks(&mut t);
        Prg::from_seed(*one).fill_blocks(&mut u);
        let error = wrong.iter().find(|w| w.column == i + first);
        for j in 0..len {
            u[j] ^= t[j] ^ words[i][j] ^ error.map_or(Block::ZERO, |w| w.error[j]);
        }
        channel.send_blocks(&u)?;
        columns.push(t);
        sent.extend(u);
    }
    let challenge = challenge(channel, &sent)?;
    for x in x {
        channel.send_block(hash(challenge, x))?;
    }
    for (i, t) in columns.iter().enumerate() {
        let mut answer = hash(challenge, t);
        if let Some(w) = wrong.iter().find(|w| w.column == i + first && w.guess) {
            answer ^= hash(challenge, &w.error);
        }
        channel.send_block(answer)?;
    }
    channel.flush()?;
    Ok(())
}

const N: usize = 300;
const LEN: usize = N.div_ceil(128) + 1;

/// χ from the sender.
fn asked(channel: &mut Channel, _: &[Block]) -> Result<Block> {
    Ok(channel.recv_block()?)
}

/// One run of KOS against a cheater, χ from the sender or by hash; whether the sender was satisfied. Checks
/// what else must hold either way.
fn kos_run(seed: u128, wrong: &[Wrong], by_hash: bool) -> bool {
    let (mut a, mut b) = memory::pair();
    // Nothing passes for the dealer's OTs.
    let mut made = Transcript::new("tacit kos seeds v1");
    made.append("base", b"dealer");
    made.append("base", &Recording::new(&b).digest());
    let mut seeds_binding = [0; 32];
    made.challenge_bytes("binding", &mut seeds_binding);
    let mut history = Transcript::new("tacit kos v2");
    history.append("session", &b.session_id().0);
    history.append_u64("instance", 0);
    history.append_u64("first party sends", 1);
    history.append("seeds", &seeds_binding);
    history.append_u64("stream", 1);
    let challenge = |channel: &mut Channel, u: &[Block]| {
        if !by_hash {
            return asked(channel, u);
        }
        history.append_blocks("U", u);
        Ok(history.challenge_block("weights"))
    };
    let mut seeds = vec![[Block::ZERO; 2]; KAPPA - 1];
    Dealer(seed).send(&mut b, &mut prg(0), &mut seeds).unwrap();
    let mut choices = vec![Block::ZERO; LEN];
    prg(seed + 1).fill_blocks(&mut choices);
    let mut sender = KosSender::setup(&mut a, &Dealer(seed), &mut prg(seed + 2)).unwrap();
    if by_hash {
        sender = sender.by_hash(&mut a);
    }
    let mut fork = sender.fork();
    // The seeds that the fork drew are the first blocks of the streams.
    let mut out = vec![Block::ONES; N];
    let seeds: Vec<[Block; 2]> = seeds.iter().map(|pair| pair.map(|k| Prg::from_seed(k).block())).collect();
    let (words, x) = (vec![choices.clone(); KAPPA - 1], [choices.clone()]);
    let (result, ()) = std::thread::scope(|scope| {
        let cheater = scope.spawn(|| cheat(&mut b, &seeds, &words, &x, 1, wrong, challenge).unwrap());
        (fork.extend(&mut a, &mut out), cheater.join().unwrap())
    });
    let right = wrong.iter().all(|w| sender.delta().bit(w.column) == w.guess);
    assert_eq!(result.is_ok(), right, "the check passes exactly when every guess is right");
    match result {
        Ok(()) => {
            // q_j = t_j ⊕ r_j·Δ, and where a column was wrong, its error times Δ_i on top.
            for (j, q) in out.iter().enumerate() {
                for (i, [zero, _]) in seeds.iter().enumerate() {
                    let mut t = vec![Block::ZERO; LEN];
                    if j % 37 != 0 {
                        continue;
                    }
                    Prg::from_seed(*zero).fill_blocks(&mut t);
                    let error = wrong.iter().find(|w| w.column == i + 1);
                    let bit = |column: &[Block]| column[j / 128].bit(j % 128);
                    let r = bit(&choices) ^ error.is_some_and(|w| bit(&w.error));
                    assert_eq!(q.bit(i + 1), bit(&t) ^ (r & sender.delta().bit(i + 1)));
                }
            }
        }
        Err(error) => {
            assert!(matches!(error, Error::Cheated { protocol: "kos", .. }));
            assert!(out.iter().all(|block| *block == Block::ZERO), "something was left in out");
            // The fork's failure spends the stream that it came from, too.
            for state in [&mut sender, &mut fork] {
                assert!(matches!(state.extend(&mut a, &mut out), Err(Error::Spent("kos"))));
            }
        }
    }
    right
}

fn one_bit(column: usize, guess: bool) -> Wrong {
    let mut error = vec![Block::ZERO; LEN];
    error[1] = Block::new(1 << 77);
    Wrong { column, error, guess }
}

fn whole_column(column: usize, guess: bool) -> Wrong {
    Wrong { column, error: vec![Block::ONES; LEN], guess }
}

/// `passed` of `runs` is within six standard deviations of probability 2^-columns.
fn assert_rate(passed: usize, runs: usize, columns: i32) {
    let p = 0.5f64.powi(columns);
    let (mean, deviation) = (runs as f64 * p, (runs as f64 * p * (1.0 - p)).sqrt());
    assert!((passed as f64 - mean).abs() <= 6.0 * deviation, "{passed} of {runs} passed, expected {mean:.0}");
}

#[test]
fn honest_script_passes_kos() {
    assert!((0..20).all(|run| kos_run(10 * run, &[], run % 2 == 1)));
}

#[test]
fn kos_catches_wrong_columns_as_analysed() {
    const RUNS: usize = 1000;
    let scripts: [(Vec<Wrong>, i32); 6] = [
        (vec![one_bit(5, false)], 1),
        (vec![one_bit(5, true)], 1),
        (vec![whole_column(127, true)], 1),
        (vec![one_bit(1, true), whole_column(64, false)], 2),
        (vec![one_bit(1, true), whole_column(64, false), one_bit(126, false)], 3),
        ((0..64).map(|i| whole_column(2 * i + 1, i % 2 == 0)).collect(), 64),
    ];
    for (s, (wrong, columns)) in scripts.iter().enumerate() {
        let one = |run: &usize| kos_run(((s + 1) * 100_000 + 10 * run) as u128, wrong, run % 2 == 1);
        let passed = (0..RUNS).filter(one).count();
        assert_rate(passed, RUNS, *columns);
    }
}

/// One run of OOS against a cheater; whether the sender was satisfied.
fn oos_run(code: &Arc<dyn LinearCode>, seed: u128, wrong: &[Wrong]) -> bool {
    let (mut a, mut b) = memory::pair();
    let n = code.length();
    let (sender, seeds) = std::thread::scope(|scope| {
        let b = &mut b;
        let cheater = scope.spawn(move || {
            let kos = KosSender::setup(b, &Dealer(seed), &mut prg(seed + 3)).unwrap();
            let mut pairs = vec![[Block::ZERO; 2]; n];
            CotToRot::new(kos).extend(b, &mut pairs).unwrap();
            pairs
        });
        let sender = OosSender::<2, 6>::setup(&mut a, &Dealer(seed), code.clone(), &mut prg(seed + 2));
        (sender, cheater.join().unwrap())
    });
    let mut sender = sender.unwrap();
    let mut message = vec![Block::ZERO; code.dimension() * LEN];
    prg(seed + 1).fill_blocks(&mut message);
    let mut words = vec![Block::ZERO; n * LEN];
    code.encode_columns(&message, LEN, LEN, &mut words);
    let words: Vec<Vec<Block>> = words.chunks(LEN).map(<[Block]>::to_vec).collect();
    let message: Vec<Vec<Block>> = message.chunks(LEN).map(<[Block]>::to_vec).collect();
    let mut rows = vec![[Block::ONES; 6]; N];
    let (result, ()) = std::thread::scope(|scope| {
        let cheater = scope.spawn(|| cheat(&mut b, &seeds, &words, &message, 0, wrong, asked).unwrap());
        (sender.extend(&mut a, &mut rows), cheater.join().unwrap())
    });
    let right = wrong.iter().all(|w| sender.delta()[w.column / 128].bit(w.column % 128) == w.guess);
    assert_eq!(result.is_ok(), right, "the check passes exactly when every guess is right");
    if let Err(error) = result {
        assert!(matches!(error, Error::Cheated { protocol: "oos", .. }));
        assert!(rows.iter().flatten().all(|block| *block == Block::ZERO), "something was left in rows");
        assert!(matches!(sender.extend(&mut a, &mut rows), Err(Error::Spent("oos"))));
    }
    right
}

#[test]
fn oos_catches_wrong_columns_as_analysed() {
    const RUNS: usize = 200;
    let code: Arc<dyn LinearCode> = Arc::new(MatrixCode::concatenated(64));
    assert!((0..5).all(|run| oos_run(&code, 10 * run, &[])));
    let scripts: [(Vec<Wrong>, i32); 4] = [
        (vec![one_bit(0, false)], 1),
        (vec![whole_column(767, true)], 1),
        (vec![one_bit(300, true), whole_column(64, false)], 2),
        ((0..384).map(|i| whole_column(2 * i, i % 2 == 0)).collect(), 384),
    ];
    for (s, (wrong, columns)) in scripts.iter().enumerate() {
        let seed = |run: usize| ((s + 1) * 100_000 + 10 * run) as u128;
        let passed = (0..RUNS).filter(|run| oos_run(&code, seed(*run), wrong)).count();
        assert_rate(passed, RUNS, *columns);
    }
}

/// A wrong answer in any batch fails the whole request: here the receiver lies in the last of nine batches.
#[test]
fn a_late_failure_wipes_everything() {
    const MANY: usize = 8 * 65_408 + 100;
    let (mut a, b) = memory::pair();
    let liar = Liar { inner: Some(b), seen: 0 };
    let mut sender = KosSender::setup(&mut a, &Dealer(1), &mut prg(2)).unwrap();
    let mut out = vec![Block::ONES; MANY];
    let result = std::thread::scope(|scope| {
        scope.spawn(move || liar.run(MANY));
        sender.extend(&mut a, &mut out)
    });
    assert!(matches!(result, Err(Error::Cheated { .. })));
    assert!(out.iter().all(|block| *block == Block::ZERO));
}

/// An honest receiver behind a relay that flips one bit of the last answer.
struct Liar {
    inner: Option<Channel>,
    seen: usize,
}

impl Liar {
    fn run(mut self, n: usize) {
        let (mut c, mut d) = memory::pair();
        let mut outer = self.inner.take().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let mut receiver = KosReceiver::setup(&mut c, &Dealer(1), &mut prg(3)).unwrap();
                let _ = receiver.extend(&mut c, &mut vec![Block::ZERO; n]);
            });
            let blocks = |n: usize| 127 * (n.div_ceil(128) + 1);
            let sizes: Vec<usize> = (0..9).map(|b| blocks((n - b * 65_408).min(65_408))).collect();
            for (batch, size) in sizes.iter().enumerate() {
                if batch >= 4 {
                    self.answer(&mut outer, &mut d, false);
                }
                let mut u = vec![Block::ZERO; *size];
                d.recv_blocks(&mut u).unwrap();
                outer.send_blocks(&u).unwrap();
                outer.flush().unwrap();
            }
            (5..9).for_each(|batch| self.answer(&mut outer, &mut d, batch == 8));
        });
    }

    fn answer(&mut self, outer: &mut Channel, inner: &mut Channel, lie: bool) {
        inner.send_block(outer.recv_block().unwrap()).unwrap();
        let mut answer = [Block::ZERO; KAPPA];
        inner.recv_blocks(&mut answer).unwrap();
        answer[99] ^= Block::new(lie as u128);
        outer.send_blocks(&answer).unwrap();
        outer.flush().unwrap();
        self.seen += 1;
    }
}

/// A peer that leaves in the middle: an error, nothing in out, and the state is spent.
#[test]
fn a_peer_that_leaves_leaves_nothing() {
    for (sent, received) in [(0, 0), (100, 0), (127 * 3 * 16, 0), (127 * 3 * 16, 17)] {
        let (mut a, mut b) = memory::pair();
        let mut sender = KosSender::setup(&mut a, &Dealer(1), &mut prg(2)).unwrap();
        let mut out = vec![Block::ONES; 200];
        b.send(&vec![0; sent]).unwrap();
        if received > 0 {
            b.send(&vec![0; received]).unwrap();
        }
        drop(b);
        assert!(matches!(sender.extend(&mut a, &mut out), Err(Error::Net(_))));
        assert!(out.iter().all(|block| *block == Block::ZERO));
        assert!(matches!(sender.extend(&mut a, &mut out), Err(Error::Spent(_))));

        let (mut a, b) = memory::pair();
        let mut sender = IknpSender::setup(&mut a, &Dealer(1), &mut prg(2)).unwrap();
        drop(b);
        let mut out = vec![Block::ONES; 200];
        assert!(matches!(sender.extend(&mut a, &mut out), Err(Error::Net(_))));
        assert!(out.iter().all(|block| *block == Block::ZERO));
        assert!(matches!(sender.extend(&mut a, &mut out), Err(Error::Spent(_))));

        let (mut a, b) = memory::pair();
        let mut receiver = KosReceiver::setup(&mut a, &Dealer(1), &mut prg(2)).unwrap();
        drop(b);
        let mut out = vec![Block::ONES; 200];
        assert!(matches!(receiver.extend(&mut a, &mut out), Err(Error::Net(_))));
        assert!(out.iter().all(|block| *block == Block::ZERO));
        assert!(matches!(receiver.extend(&mut a, &mut out), Err(Error::Spent(_))));
    }
}

/// The choice bits stay hidden in what the receiver sends: equal seeds and different choices differ only
/// under a pad that the sender lacks. Here: every Δ_i·u_i but one column's is what the sender can take off,
/// and x is masked.
#[test]
fn the_answer_is_masked() {
    let mut seen = Vec::new();
    for seed in 0..50u128 {
        let (mut a, mut b) = memory::pair();
        let mut receiver = KosReceiver::setup(&mut b, &Dealer(1), &mut prg(seed)).unwrap();
        let x = std::thread::scope(|scope| {
            scope.spawn(move || {
                use tacit_ot::ChosenCotReceiver;
                let choices = BitVec::zeros(100);
                receiver.extend_chosen(&mut b, &choices, &mut [Block::ZERO; 100]).unwrap();
            });
            let mut u = vec![Block::ZERO; 127 * 2];
            a.recv_blocks(&mut u).unwrap();
            a.send_block(Block::new(5)).unwrap();
            let mut answer = [Block::ZERO; KAPPA];
            a.recv_blocks(&mut answer).unwrap();
            answer[0]
        });
        // All choices are zero, so x is the mask alone.
        assert!(!seen.contains(&x) && x != Block::ZERO, "the mask repeats");
        seen.push(x);
    }
}
