//! Cheaters against BCGIKRS19, in both forms.

use super::super::short::{Part, challenge, setup};
use super::super::tpprf;
use super::*;
use crate::base;
use crate::extension::kos;
use crate::silent::tree::shape::Shape;
use crate::silent::tree::spcot::SenderTrees;
use core::sync::atomic::{AtomicU32, Ordering};
use std::sync::Mutex;
use tacit_crypto::ggm::LANES;
use tacit_crypto::{BitVec, KAPPA};
use tacit_net::testing::{Outcome, Tally, duel};
use tacit_net::{LinkModel, Party, SessionId, memory};

const CONFIGS: [Config; 2] = [malicious(Code::QuasiCyclic), malicious(Code::Linear)];

const fn malicious(code: Code) -> Config {
    Config { code, security: Security::Malicious }
}

/// What a sender does to its corrections, to the leaves of a tile that it weighs and to its digest, and the Δ
/// that it uses in its trees.
struct Cheater<'a> {
    corrections: &'a (dyn Fn(&mut [Block]) + Sync),
    leaves: &'a (dyn Fn(usize, &mut [Block]) + Sync),
    digest: &'a (dyn Fn(&mut [u8; 32]) + Sync),
    delta: Block,
    /// Gets the receiver's points before it weighs.
    points: &'a (dyn Fn(&[u32]) + Sync),
}

const HONEST: Cheater<'static> = Cheater {
    corrections: &|_| {},
    leaves: &|_, _| {},
    digest: &|_| {},
    delta: Block::ZERO,
    points: &|_| {},
};

/// Trees with a cheater's leaves.
struct Claimed<'a>(SenderTrees, &'a (dyn Fn(usize, &mut [Block]) + Sync));

impl Trees for Claimed<'_> {
    fn shape(&self) -> Shape {
        self.0.shape()
    }

    fn expand_part(
        &self,
        expander: &mut HalfTrees,
        first: usize,
        tiles: usize,
        each: &mut dyn FnMut(usize, &mut [Block]),
    ) {
        self.0.expand_part(expander, first, tiles, &mut |tile, leaves| {
            (self.1)(tile, leaves);
            each(tile, leaves);
        });
    }
}

impl Cheater<'_> {
    /// One long run, following the protocol but for that.
    fn run(&self, s: &mut SilentSender, ch: &mut Channel) -> Result<Vec<Block>> {
        let mut run = s.begin(ch, 1)?;
        s.core.engine.join(ch, &mut run.context)?;
        let (layout, mut expander, code) = (run.noise, run.expander(), run.code());
        let shape = layout.shape;
        let mut cots = vec![Block::ZERO; shape.cots() + KAPPA];
        CotSender::extend(&mut s.source, ch, &mut cots)?;
        let (level, check) = cots.split_at(shape.cots());
        let mut bits = vec![0u8; shape.cots().div_ceil(8)];
        ch.recv(&mut bits)?;
        // The honest message is caught on its way out.
        let (mut a, mut b) = memory::pair_with(ch.session_id());
        a.send(&bits)?;
        a.flush()?;
        let delta = s.source.delta() ^ self.delta;
        let trees = spcot::send(&mut b, &mut s.prg, &mut expander, delta, shape, level)?;
        ch.send_block(a.recv_block()?)?;
        let mut message = vec![Block::ZERO; shape.corrections()];
        a.recv_blocks(&mut message)?;
        (self.corrections)(&mut message);
        ch.send_blocks(&message)?;
        ch.flush()?;
        let opening = CheckMessage::receive(ch)?;
        let weights = Weights::new(opening.seed, shape);
        let trees = Claimed(trees, self.leaves);
        let (_, sum) = expand(&trees, &mut expander, &*code, layout, Some(&weights));
        let value = sum ^ opening.sender_mask(s.source.delta(), check);
        let mut digest = check_digest(&run.context, s.core.engine.number(), value);
        (self.digest)(&mut digest);
        ch.send(&digest)?;
        ch.flush()?;
        Ok(Vec::new())
    }

    fn is_caught(&self, config: Config, seed: u128) -> bool {
        is_caught(config, 0, 1, seed, self.points, |s, ch| self.run(s, ch))
    }
}

/// Whether the last of `runs` runs of `cheat`, small ones of the form that `limit` gives, ends badly. What
/// comes out of it fits what the sender says it has, if it says it, or is nothing.
fn is_caught(
    config: Config,
    limit: usize,
    runs: usize,
    seed: u128,
    points: &(dyn Fn(&[u32]) + Sync),
    mut cheat: impl FnMut(&mut SilentSender, &mut Channel) -> Result<Vec<Block>> + Send,
) -> bool {
    const N: usize = 9;
    let (sent, received) = duel(
        seed as u64,
        |ch| {
            let mut prg = Prg::from_seed(Block::new(seed));
            let mut s = SilentSender::setup(ch, &*base::default(), &mut prg, config)?;
            s.core.short = limit;
            s.fork();
            for _ in 1..runs {
                cheat(&mut s, ch)?;
            }
            Ok::<_, Error>((CotSender::delta(&s), cheat(&mut s, ch)?))
        },
        |ch| {
            let mut prg = Prg::from_seed(Block::new(!seed));
            let mut r = SilentReceiver::setup(ch, &*base::default(), &mut prg, config)?;
            r.core.short = limit;
            let mut fork = r.fork();
            let mut out = [Block::ONES; N];
            for _ in 1..runs {
                CotReceiver::extend(&mut r, ch, &mut out)?;
                r.core.left = Stock::empty(NAME);
            }
            points(&config.code.noise(run_size(1)).points(&mut r.prg.clone()));
            let result = CotReceiver::extend(&mut r, ch, &mut out);
            if result.is_err() {
                assert!(out == [Block::ZERO; N] && r.core.left.left() == 0, "something was left");
                for stream in [&mut r, &mut fork] {
                    let again = CotReceiver::extend(stream, ch, &mut out);
                    assert!(matches!(again, Err(Error::Spent(NAME))));
                }
            }
            result.map(|()| out)
        },
    );
    match received {
        Ok(out) => {
            let (delta, v) = sent.unwrap();
            let fits = |(w, v): (&Block, &Block)| *w == *v ^ (delta & Block::mask(w.lsb()));
            assert!(out.iter().zip(&v).all(fits), "what passed is wrong");
            false
        }
        Err(Error::Cheated { protocol: NAME, .. }) => true,
        Err(other) => panic!("{other}; the sender: {:?}", sent.err()),
    }
}

/// One short run of a sender with `delta` added to the Δ of its trees, which changes what it says.
fn short_run(
    s: &mut SilentSender,
    ch: &mut Channel,
    delta: Block,
    change: &dyn Fn(Part, &mut [u8]),
) -> Result<Vec<Block>> {
    let (mut run, mut out, trees_delta) = (s.begin(ch, 1)?, vec![Block::ZERO; 9], s.source.delta() ^ delta);
    let (code, noise) =
        short::send(ch, &mut s.core.engine, &mut s.source, &mut s.prg, &mut run, trees_delta, change)?;
    s.core.compress(&*code, noise, &mut Cots::memory(&mut out));
    s.core.left = Stock::empty(NAME);
    Ok(out)
}

fn short_is_caught(
    config: Config,
    seed: u128,
    delta: Block,
    change: impl Fn(Part, &mut [u8]) + Sync,
) -> bool {
    is_caught(config, SHORT, 1, seed, &|_| (), |s, ch| short_run(s, ch, delta, &change))
}

/// Spoils a bit of byte `at` of a part.
fn spoil(part: Part, at: usize) -> impl Fn(Part, &mut [u8]) + Sync {
    move |said, bytes: &mut [u8]| {
        if said == part {
            bytes[at] ^= 0x20;
        }
    }
}

/// proof: silent-ot 3.5, 5.4
#[test]
fn what_no_guess_helps_is_caught_in_the_short_form() {
    for config in CONFIGS {
        assert!(!short_is_caught(config, 1, Block::ZERO, |_, _| ()), "honest");
        let shape = config.code.shape(run_size(1));
        let tails = 32 * shape.cots();
        let hash = tails + 64 * LANES * shape.tiles;
        // χ and Δ of one tree, the sums of γ, the hash.
        let places = [0, 16, 32, 48].map(|line| tails + LANES * line + 3);
        for (i, at) in places.into_iter().chain([hash, hash + 31]).enumerate() {
            let caught = short_is_caught(config, 10 + i as u128, Block::ZERO, spoil(Part::Trees, at));
            assert!(caught, "byte {at}");
        }
        for at in [0, 15] {
            for part in [Part::X, Part::V] {
                assert!(short_is_caught(config, 20, Block::ZERO, spoil(part, at)), "{part:?}");
            }
        }
        // Another Δ in all trees, which agree with each other, and all d with it.
        for (i, other) in [2, 1 << 127, 0xABCDEF << 60].map(Block::new).into_iter().enumerate() {
            assert!(short_is_caught(config, 30 + i as u128, other, |_, _| ()), "another Δ");
        }
    }
}

/// A level's sum that the receiver takes or not, and a d of the anchor that counts or not: a guess of one
/// bit.
///
/// proof: silent-ot 5.1, 5.2
#[test]
fn guessing_one_bit_of_the_short_form_succeeds_half_of_the_time() {
    const TRIALS: u64 = 36;
    for config in CONFIGS {
        let shape = config.code.shape(run_size(1));
        let sum = |trial: usize| {
            // The top level, one within and the last one, of one tree after the other.
            let level = [0, shape.depth / 2, shape.depth - 1][trial % 3];
            32 * shape.cot(trial % (LANES * shape.tiles), level) + 16 * (trial / 3 % 2)
        };
        let d = |trial: usize| tpprf::message_len(shape, true) + 16 * (trial * 29 % KAPPA);
        let tally = |place: &dyn Fn(usize) -> usize| {
            let change = |trial| spoil(Part::Trees, place(trial as usize) + 5);
            let caught = |trial| short_is_caught(config, 100 + u128::from(trial), Block::ZERO, change(trial));
            Tally::of(TRIALS, |trial| outcome(caught(trial)))
        };
        for tally in [tally(&sum), tally(&d)] {
            assert_half(tally);
        }
    }
}

/// A guess that was caught, or came true.
fn outcome(caught: bool) -> Outcome {
    if caught { Outcome::Caught } else { Outcome::Won }
}

/// Holds guesses of one bit against the half of them that the analysis says, errors of one in a million
/// allowed.
fn assert_half(tally: Tally) {
    tally.assert_won_at_most(0.5, 1.0 - 1e-6);
    tally.assert_won_at_least(0.5, 1.0 - 1e-6);
}

/// Hashes of base correlations and challenges are never the same in two runs, streams, sessions or forms.
#[test]
fn every_short_run_has_hashes_and_challenges_of_its_own() {
    let core = |session: u8| {
        let (a, b) = memory::links(LinkModel::LOOPBACK);
        let (s, _) = memory::join(
            Channel::new(a, Party::First, SessionId([session; 32])),
            Channel::new(b, Party::Second, SessionId([session; 32])),
            |ch| {
                let mut prg = Prg::from_seed(Block::new(1));
                SilentSender::setup(ch, &*base::default(), &mut prg, CONFIGS[0]).unwrap().core.fork()
            },
            |ch| {
                let mut prg = Prg::from_seed(Block::new(2));
                SilentReceiver::setup(ch, &*base::default(), &mut prg, CONFIGS[0]).map(|_| ()).unwrap()
            },
        );
        s
    };
    let (mut first, mut again, mut other) = (core(1), core(1), core(2));
    let mut fork = first.fork();
    again.short = 0;
    let runs = [first.begin(1), first.begin(1), fork.begin(1), again.begin(1), other.begin(1)];
    let mut drawn: Vec<Block> = runs
        .iter()
        .flat_map(|run| {
            let tau = challenge(run, &setup(run), &BitVec::zeros(8), b"the same").tau;
            let own = |label| run.context.clone().challenge_block(label);
            [tau, own("mitccrh start"), own("code"), own("tree")]
        })
        .collect();
    drawn.sort_by_key(|block| block.to_bytes());
    assert!(drawn.windows(2).all(|two| two[0] != two[1]), "two runs share a challenge or a hash");
}

/// The sender has its trees before it knows that the columns of KOS agree; none of it leaves until then.
///
/// proof: silent-ot 3.2
#[test]
fn a_receiver_whose_columns_do_not_agree_gets_nothing() {
    for config in CONFIGS {
        let (sent, got) = memory::run(
            |ch| {
                let mut prg = Prg::from_seed(Block::new(1));
                let mut s = SilentSender::setup(ch, &*base::default(), &mut prg, config)?;
                CotSender::extend(&mut s, ch, &mut [Block::ZERO; 9])
            },
            |ch| {
                let mut prg = Prg::from_seed(Block::new(2));
                let mut r = SilentReceiver::setup(ch, &*base::default(), &mut prg, config).unwrap();
                let mut run = r.core.begin(1);
                r.core.engine.open(ch).unwrap();
                let (n, (mut a, mut b)) =
                    (run.noise.shape.cots() + KAPPA, memory::pair_with(ch.session_id()));
                CotReceiver::extend(&mut r.source, &mut b, &mut vec![Block::ZERO; n]).unwrap();
                let mut columns = vec![0; kos::bytes_by_hash(n) as usize];
                a.recv(&mut columns).unwrap();
                // Each column costs a guess of its bit of Δ.
                columns.iter_mut().step_by(97).for_each(|byte| *byte ^= 1);
                ch.send(&columns).unwrap();
                ch.send(&vec![0; run.noise.shape.cots().div_ceil(8)]).unwrap();
                ch.flush().unwrap();
                r.core.engine.join(ch, &mut run.context).unwrap();
                ch.recv(&mut [0])
            },
        );
        assert!(matches!(sent, Err(Error::Cheated { protocol: "kos", .. })), "{sent:?}");
        assert!(got.is_err(), "something left");
    }
}

/// What was said in one run is no answer in the next.
#[test]
fn an_earlier_short_run_cannot_be_played_again() {
    for config in CONFIGS {
        let said: Mutex<Vec<Vec<u8>>> = Mutex::default();
        let mut runs = 0;
        let caught = is_caught(config, SHORT, 2, 7, &|_| (), |s, ch| {
            runs += 1;
            let second = runs == 2;
            short_run(s, ch, Block::ZERO, &|_, bytes| {
                let mut said = said.lock().unwrap();
                match second {
                    true => bytes.copy_from_slice(&said.remove(0)),
                    false => said.push(bytes.to_vec()),
                }
            })
        });
        assert!(caught && said.lock().unwrap().is_empty());
    }
}

/// proof: silent-ot 2.4
#[test]
fn a_sender_that_lies_is_caught_and_nothing_comes_out() {
    for config in CONFIGS {
        assert!(!HONEST.is_caught(config, 1));
        let shape = config.code.shape(SMALL / 2);
        let (levels, last) = (shape.depth - 1, shape.corrections() - 1);
        // A level's sum, at the top, within and at the leaves.
        for place in [0, 5, 4 * levels - 1, last] {
            let flip = |m: &mut [Block]| m[place] ^= Block::new(1 << 55);
            assert!(Cheater { corrections: &flip, ..HONEST }.is_caught(config, 2), "correction {place}");
        }
        // Another Δ in one tree, and in all of them.
        let one = |m: &mut [Block]| (0..levels).for_each(|l| m[4 * l + 2] ^= Block::new(1 << 99));
        assert!(Cheater { corrections: &one, ..HONEST }.is_caught(config, 3));
        assert!(Cheater { delta: Block::new(2), ..HONEST }.is_caught(config, 4));
        assert!(Cheater { digest: &|d| d[0] ^= 0x80, ..HONEST }.is_caught(config, 5));
    }
}

/// Of half-trees: a bent correction of the last level bends the punctured leaf and its sibling: a sender that
/// knows their place up to one bit learns that bit, or is caught. Here all but one are told to it.
///
/// proof: silent-ot 4.1
#[test]
fn guessing_one_bit_of_a_point_succeeds_half_of_the_time() {
    const TRIALS: u64 = 32;
    for config in CONFIGS {
        let depth = config.code.shape(SMALL / 2).depth;
        let error = Block::new(0x1234_5678 << 40);
        let bend = |m: &mut [Block]| m[LANES * (depth - 2)] ^= error;
        let tally = Tally::of(TRIALS, |trial| {
            let point = AtomicU32::new(0);
            let claim = |tile: usize, leaves: &mut [Block]| {
                let guess = point.load(Ordering::SeqCst) as usize & !1;
                for leaf in [guess, guess ^ 1 << (depth - 1)].into_iter().filter(|_| tile == 0) {
                    leaves[LANES * leaf] ^= error;
                }
            };
            let told = |points: &[u32]| point.store(points[0], Ordering::SeqCst);
            let cheater = Cheater { corrections: &bend, leaves: &claim, points: &told, ..HONEST };
            let caught = cheater.is_caught(config, 100 + u128::from(trial));
            assert_eq!(caught, point.load(Ordering::SeqCst) & 1 == 1, "trial {trial}");
            outcome(caught)
        });
        assert_half(tally);
    }
}

#[test]
fn sessions_cannot_be_swapped() {
    for config in CONFIGS {
        let (a, b) = memory::links(LinkModel::LOOPBACK);
        let a = Channel::new(a, Party::First, SessionId([1; 32]));
        let b = Channel::new(b, Party::Second, SessionId([2; 32]));
        let (left, right) = memory::join(
            a,
            b,
            |a| {
                let mut prg = Prg::from_seed(Block::new(1));
                SilentSender::setup(a, &*base::default(), &mut prg, config).map(|_| ())
            },
            |b| {
                let mut prg = Prg::from_seed(Block::new(2));
                SilentReceiver::setup(b, &*base::default(), &mut prg, config).map(|_| ())
            },
        );
        for error in [left.unwrap_err(), right.unwrap_err()] {
            assert!(matches!(error, Error::Malformed { protocol: NAME, .. }), "{error}");
        }
    }
}

#[test]
fn weights_leave_136_bits() {
    for q in [2, 4, 16, 256, 1 << 60] {
        let bias = 1.0 - 0.20 * q as f64 / (q as f64 - 1.0);
        let bits = -(linear_weight(q) as f64) * bias.log2();
        assert!((136.0..148.0).contains(&bits) && linear_weight(q).is_multiple_of(LANES), "{bits} at {q}");
    }
}
