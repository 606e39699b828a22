//! Scripted cheaters against KOS and OOS. The cheating receivers are written here from the protocols'
//! descriptions, so their honest form is a second implementation of the receiver as well.

use crate::common::{Dealer, prg};
use std::sync::{Arc, Barrier};
use tacit_crypto::{BitVec, Block, KAPPA, Prg, gf128, transcript::Transcript};
use tacit_net::testing::{Outcome, Tally, duel};
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

/// One run of KOS against a cheater, χ from the sender or by hash. Checks what must hold whether the sender
/// is satisfied or not.
fn kos_run(seed: u64, wrong: &[Wrong], by_hash: bool) -> Outcome {
    let mut choices = vec![Block::ZERO; LEN];
    prg(u128::from(seed) + 1).fill_blocks(&mut choices);
    let cheater = |channel: &mut Channel| {
        // Nothing passes for the dealer's OTs.
        let mut made = Transcript::new("tacit kos seeds v1");
        made.append("base", b"dealer");
        made.append("base", &Recording::new(channel).digest());
        let mut seeds_binding = [0; 32];
        made.challenge_bytes("binding", &mut seeds_binding);
        let mut history = Transcript::new("tacit kos v2");
        history.append("session", &channel.session_id().0);
        history.append_u64("instance", 0);
        history.append_u64("first party sends", 0);
        history.append("seeds", &seeds_binding);
        history.append_u64("stream", 1);
        let challenge = |channel: &mut Channel, u: &[Block]| {
            if !by_hash {
                return asked(channel, u);
            }
            history.append_blocks("U", u);
            Ok(history.challenge_block("weights"))
        };
        let mut pairs = vec![[Block::ZERO; 2]; KAPPA - 1];
        Dealer(seed.into()).send(channel, &mut prg(0), &mut pairs).unwrap();
        // The seeds that the fork drew are the first blocks of the streams.
        let seeds: Vec<[Block; 2]> =
            pairs.iter().map(|pair| pair.map(|k| Prg::from_seed(k).block())).collect();
        let (words, x) = (vec![choices.clone(); KAPPA - 1], [choices.clone()]);
        cheat(channel, &seeds, &words, &x, 1, wrong, challenge).unwrap();
        seeds
    };
    let honest = |channel: &mut Channel| {
        let mut sender =
            KosSender::setup(channel, &Dealer(seed.into()), &mut prg(u128::from(seed) + 2)).unwrap();
        if by_hash {
            sender = sender.by_hash(channel);
        }
        let mut fork = sender.fork();
        let mut out = vec![Block::ONES; N];
        let result = fork.extend(channel, &mut out);
        if result.is_err() {
            assert!(out.iter().all(|block| *block == Block::ZERO), "something was left in out");
            // The fork's failure spends the stream that it came from, too.
            for state in [&mut sender, &mut fork] {
                assert!(matches!(state.extend(channel, &mut out), Err(Error::Spent("kos"))));
            }
        }
        (sender.delta(), result, out)
    };
    let (seeds, (delta, result, out)) = duel(seed, cheater, honest);
    let right = wrong.iter().all(|w| delta.bit(w.column) == w.guess);
    assert_eq!(result.is_ok(), right, "the check passes exactly when every guess is right");
    if let Err(error) = result {
        assert!(matches!(error, Error::Cheated { protocol: "kos", .. }));
        return Outcome::Caught;
    }
    // q_j = t_j ⊕ r_j·Δ, and where a column was wrong, its error times Δ_i on top.
    for (i, [zero, _]) in seeds.iter().enumerate() {
        let mut t = vec![Block::ZERO; LEN];
        Prg::from_seed(*zero).fill_blocks(&mut t);
        let error = wrong.iter().find(|w| w.column == i + 1);
        for (j, q) in out.iter().enumerate().step_by(37) {
            let bit = |column: &[Block]| column[j / 128].bit(j % 128);
            let r = bit(&choices) ^ error.is_some_and(|w| bit(&w.error));
            assert_eq!(q.bit(i + 1), bit(&t) ^ (r & delta.bit(i + 1)));
        }
    }
    Outcome::Won
}

fn one_bit(column: usize, guess: bool) -> Wrong {
    let mut error = vec![Block::ZERO; LEN];
    error[1] = Block::new(1 << 77);
    Wrong { column, error, guess }
}

fn whole_column(column: usize, guess: bool) -> Wrong {
    Wrong { column, error: vec![Block::ONES; LEN], guess }
}

/// Holds a script's rate against its 2^-columns from both sides, errors of one in a billion allowed.
fn assert_rate(tally: Tally, columns: i32) {
    let bound = 0.5f64.powi(columns);
    tally.assert_won_at_most(bound, 1.0 - 1e-9);
    tally.assert_won_at_least(bound, 1.0 - 1e-9);
}

#[test]
fn honest_script_passes_kos() {
    assert_eq!(Tally::of(20, |run| kos_run(10 * run, &[], run % 2 == 1)).won, 20);
}

/// proof: kos 2.5, 3.1
#[test]
fn kos_catches_wrong_columns_as_analysed() {
    const RUNS: u64 = 1000;
    let scripts: [(Vec<Wrong>, i32); 6] = [
        (vec![one_bit(5, false)], 1),
        (vec![one_bit(5, true)], 1),
        (vec![whole_column(127, true)], 1),
        (vec![one_bit(1, true), whole_column(64, false)], 2),
        (vec![one_bit(1, true), whole_column(64, false), one_bit(126, false)], 3),
        ((0..64).map(|i| whole_column(2 * i + 1, i % 2 == 0)).collect(), 64),
    ];
    for (s, (wrong, columns)) in scripts.iter().enumerate() {
        let first = (s as u64 + 1) * 100_000;
        assert_rate(Tally::of(RUNS, |run| kos_run(first + 10 * run, wrong, run % 2 == 1)), *columns);
    }
}

/// One run of OOS against a cheater.
fn oos_run(code: &Arc<dyn LinearCode>, seed: u64, wrong: &[Wrong]) -> Outcome {
    let (n, base) = (code.length(), Dealer(seed.into()));
    let prg = |more: u128| prg(u128::from(seed) + more);
    let cheater = |channel: &mut Channel| {
        let kos = KosSender::setup(channel, &base, &mut prg(3)).unwrap();
        let mut pairs = vec![[Block::ZERO; 2]; n];
        CotToRot::new(kos).extend(channel, &mut pairs).unwrap();
        let mut message = vec![Block::ZERO; code.dimension() * LEN];
        prg(1).fill_blocks(&mut message);
        let mut words = vec![Block::ZERO; n * LEN];
        code.encode_columns(&message, LEN, LEN, &mut words);
        let words: Vec<Vec<Block>> = words.chunks(LEN).map(<[Block]>::to_vec).collect();
        let message: Vec<Vec<Block>> = message.chunks(LEN).map(<[Block]>::to_vec).collect();
        cheat(channel, &pairs, &words, &message, 0, wrong, asked).unwrap();
    };
    let honest = |channel: &mut Channel| {
        let mut sender = OosSender::<2, 6>::setup(channel, &base, code.clone(), &mut prg(2)).unwrap();
        let mut rows = vec![[Block::ONES; 6]; N];
        let result = sender.extend(channel, &mut rows);
        if result.is_err() {
            assert!(rows.iter().flatten().all(|block| *block == Block::ZERO), "something was left in rows");
            assert!(matches!(sender.extend(channel, &mut rows), Err(Error::Spent("oos"))));
        }
        let right = wrong.iter().all(|w| sender.delta()[w.column / 128].bit(w.column % 128) == w.guess);
        (right, result)
    };
    let ((), (right, result)) = duel(seed, cheater, honest);
    assert_eq!(result.is_ok(), right, "the check passes exactly when every guess is right");
    match result {
        Ok(()) => Outcome::Won,
        Err(error) => {
            assert!(matches!(error, Error::Cheated { protocol: "oos", .. }));
            Outcome::Caught
        }
    }
}

/// proof: paxos 2.6, 3.1
#[test]
fn oos_catches_wrong_columns_as_analysed() {
    const RUNS: u64 = 200;
    let code: Arc<dyn LinearCode> = Arc::new(MatrixCode::concatenated(64));
    assert_eq!(Tally::of(5, |run| oos_run(&code, 10 * run, &[])).won, 5);
    let scripts: [(Vec<Wrong>, i32); 4] = [
        (vec![one_bit(0, false)], 1),
        (vec![whole_column(767, true)], 1),
        (vec![one_bit(300, true), whole_column(64, false)], 2),
        ((0..384).map(|i| whole_column(2 * i, i % 2 == 0)).collect(), 384),
    ];
    for (s, (wrong, columns)) in scripts.iter().enumerate() {
        let first = (s as u64 + 1) * 100_000;
        assert_rate(Tally::of(RUNS, |run| oos_run(&code, first + 10 * run, wrong)), *columns);
    }
}

/// What the senders of as many streams of one setup make of cheating receivers that hold their answers back
/// until every stream waits for one: `cheat` gets the stream's number and what holds it back.
fn in_flight<S: Send>(
    streams: Vec<S>,
    extend: impl Fn(&mut S, &mut Channel) -> Result<()> + Sync,
    cheat: impl Fn(usize, &mut Channel, &dyn Fn()) -> Result<()> + Sync,
) -> Vec<Result<()>> {
    let barrier = Barrier::new(streams.len());
    std::thread::scope(|scope| {
        let (cheat, extend, barrier) = (&cheat, &extend, &barrier);
        let run = |(i, mut stream): (usize, S)| {
            let (mut mine, mut theirs) = memory::pair();
            scope.spawn(move || {
                cheat(i, &mut theirs, &|| {
                    barrier.wait();
                })
            });
            scope.spawn(move || extend(&mut stream, &mut mine))
        };
        let runs: Vec<_> = streams.into_iter().enumerate().map(run).collect();
        runs.into_iter().map(|run| run.join().unwrap()).collect()
    })
}

const STREAMS: usize = 8;

/// The seed that fork `i` drew from the stream of `key`.
fn forked(key: Block, i: usize) -> Block {
    let mut stream = Prg::from_seed(key);
    for _ in 0..i {
        stream.block();
    }
    stream.block()
}

/// Stream `i`'s guess of Δ's bits at three columns: each stream has another one.
fn guesses(i: usize) -> Vec<Wrong> {
    [1, 64, 126].into_iter().enumerate().map(|(bit, column)| one_bit(column, i >> bit & 1 == 1)).collect()
}

/// One stream of all passes at most, and only if no other one failed before.
fn outcome(protocol: &'static str, results: &[Result<()>]) -> Outcome {
    let told = |error: &Error| matches!(error, Error::Cheated { protocol: p, .. } | Error::Spent(p) if *p == protocol);
    assert!(results.iter().filter_map(|result| result.as_ref().err()).all(told));
    assert!(results.iter().any(|result| matches!(result, Err(Error::Cheated { .. }))));
    if results.iter().any(Result::is_ok) { Outcome::Won } else { Outcome::Caught }
}

/// Eight streams of one setup guess three bits of Δ in all eight ways at the same time. One of the guesses is
/// right, and it must not pass more often than the single guess of a single stream.
///
/// proof: kos 2.6, 3.4
#[test]
fn streams_of_one_setup_have_the_guesses_of_one_stream() {
    let choices = vec![Block::new(7); LEN];
    let kos = |run: u64| {
        let seed = u128::from(run) + 1;
        let mut pairs = vec![[Block::ZERO; 2]; KAPPA - 1];
        let (mut idle, _peer) = memory::pair();
        Dealer(seed).send(&mut idle, &mut prg(0), &mut pairs).unwrap();
        let mut sender = KosSender::setup(&mut idle, &Dealer(seed), &mut prg(seed + 2)).unwrap();
        let forks = (0..STREAMS).map(|_| sender.fork()).collect();
        let extend = |fork: &mut KosSender, channel: &mut Channel| {
            let mut out = vec![Block::ONES; N];
            let result = fork.extend(channel, &mut out);
            assert!(result.is_ok() || out.iter().all(|block| *block == Block::ZERO), "something is left");
            result
        };
        let results = in_flight(forks, extend, |i, channel, hold| {
            let seeds: Vec<_> = pairs.iter().map(|pair| pair.map(|key| forked(key, i))).collect();
            let (words, x) = (vec![choices.clone(); KAPPA - 1], [choices.clone()]);
            cheat(channel, &seeds, &words, &x, 1, &guesses(i), |channel, u| {
                let challenge = asked(channel, u)?;
                hold();
                Ok(challenge)
            })
        });
        outcome("kos", &results)
    };
    assert_rate(Tally::of(400, kos), 3);

    let code: Arc<dyn LinearCode> = Arc::new(MatrixCode::concatenated(64));
    let n = code.length();
    let oos = |run: u64| {
        let (base, seed) = (Dealer(run.into()), u128::from(run));
        let (pairs, forks) = duel(
            run,
            |channel| {
                let kos = KosSender::setup(channel, &base, &mut prg(seed + 3)).unwrap();
                let mut pairs = vec![[Block::ZERO; 2]; n];
                CotToRot::new(kos).extend(channel, &mut pairs).unwrap();
                pairs
            },
            |channel| {
                let mut sender =
                    OosSender::<2, 6>::setup(channel, &base, code.clone(), &mut prg(seed + 2)).unwrap();
                (0..STREAMS).map(|_| sender.fork()).collect::<Vec<_>>()
            },
        );
        let extend = |fork: &mut OosSender<2, 6>, channel: &mut Channel| {
            fork.extend(channel, &mut vec![[Block::ONES; 6]; N])
        };
        let results = in_flight(forks, extend, |i, channel, hold| {
            let seeds: Vec<_> = pairs.iter().map(|pair| pair.map(|key| forked(key, i))).collect();
            let zero = vec![Block::ZERO; LEN];
            let (words, x) = (vec![zero.clone(); n], vec![zero; code.dimension()]);
            cheat(channel, &seeds, &words, &x, 0, &guesses(i), |channel, u| {
                let challenge = asked(channel, u)?;
                hold();
                Ok(challenge)
            })
        });
        outcome("oos", &results)
    };
    assert_rate(Tally::of(80, oos), 3);
}

/// A wrong answer in any batch fails the whole request: here the receiver lies in the last of nine batches.
#[test]
fn a_late_failure_wipes_everything() {
    const MANY: usize = 8 * 65_408 + 100;
    let honest = |channel: &mut Channel| {
        let mut sender = KosSender::setup(channel, &Dealer(1), &mut prg(2)).unwrap();
        let mut out = vec![Block::ONES; MANY];
        (sender.extend(channel, &mut out), out)
    };
    let ((), (result, out)) = duel(1, |channel| relay(channel, MANY), honest);
    assert!(matches!(result, Err(Error::Cheated { .. })));
    assert!(out.iter().all(|block| *block == Block::ZERO));
}

/// An honest receiver behind a relay that flips one bit of the last answer.
fn relay(outer: &mut Channel, n: usize) {
    let (c, d) = memory::pair();
    let receive = |inner: &mut Channel| {
        let mut receiver = KosReceiver::setup(inner, &Dealer(1), &mut prg(3)).unwrap();
        let _ = receiver.extend(inner, &mut vec![Block::ZERO; n]);
    };
    memory::join(c, d, receive, |inner| {
        let blocks = |n: usize| 127 * (n.div_ceil(128) + 1);
        let sizes: Vec<usize> = (0..9).map(|b| blocks((n - b * 65_408).min(65_408))).collect();
        for (batch, size) in sizes.iter().enumerate() {
            if batch >= 4 {
                answer(outer, inner, false);
            }
            let mut u = vec![Block::ZERO; *size];
            inner.recv_blocks(&mut u).unwrap();
            outer.send_blocks(&u).unwrap();
            outer.flush().unwrap();
        }
        (5..9).for_each(|batch| answer(outer, inner, batch == 8));
    });
}

fn answer(outer: &mut Channel, inner: &mut Channel, lie: bool) {
    inner.send_block(outer.recv_block().unwrap()).unwrap();
    let mut answer = [Block::ZERO; KAPPA];
    inner.recv_blocks(&mut answer).unwrap();
    answer[99] ^= Block::new(lie as u128);
    outer.send_blocks(&answer).unwrap();
    outer.flush().unwrap();
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
///
/// proof: kos 4.2
#[test]
fn the_answer_is_masked() {
    let mut seen = Vec::new();
    for seed in 0..50 {
        let curious = |channel: &mut Channel| {
            let mut u = vec![Block::ZERO; 127 * 2];
            channel.recv_blocks(&mut u).unwrap();
            channel.send_block(Block::new(5)).unwrap();
            let mut answer = [Block::ZERO; KAPPA];
            channel.recv_blocks(&mut answer).unwrap();
            answer[0]
        };
        let honest = |channel: &mut Channel| {
            use tacit_ot::ChosenCotReceiver;
            let mut receiver = KosReceiver::setup(channel, &Dealer(1), &mut prg(seed.into())).unwrap();
            receiver.extend_chosen(channel, &BitVec::zeros(100), &mut [Block::ZERO; 100]).unwrap();
        };
        let (x, ()) = duel(seed, curious, honest);
        // All choices are zero, so x is the mask alone.
        assert!(!seen.contains(&x) && x != Block::ZERO, "the mask repeats");
        seen.push(x);
    }
}
