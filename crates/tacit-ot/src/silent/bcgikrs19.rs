//! Silent OT with low traffic (Boyle–Couteau–Gilboa–Ishai–Kohl–Rindal–Scholl, CCS '19), over correlated OTs of KOS (IKNP
//! where the peer is semi-honest).
//!
//! - **Realises** random correlated OT with a fixed Δ, by the paper's generator for subfield VOLE over GF(2^128) with
//!   p = 2 (section 4): puncturable PRFs hold the sparse noise times Δ, a public code compresses it. Against semi-honest
//!   or malicious parties, in the random-oracle and ideal-permutation models, under dual LPN with regular noise and, for
//!   malicious security, static leakage (a cheating sender learns one bit of the noise on average or is caught).
//! - **Messages** of a request, whatever its size: t·ℓ base correlations, one correction of 16 bytes a tree level from
//!   the second on, and with malicious security a check of 64 bytes; about 110 kB in total for 10^7 correlations, base
//!   OTs included.
//! - **Rounds** from nothing: five messages in turn (base OTs that cross, base correlations, corrections, the check's opening
//!   and its digest), three where the peer is semi-honest.
//!
//! Deviations from the paper, each of which keeps its proof: half-trees (2022/1431) in place of GGM trees, since with
//! p = 2 all noise values are 1 and the trees' sums are then Δ itself; base correlations of the same Δ in place of base
//! OTs; one check of all trees at once (see `spcot`) in place of figure 13's hash and figure 16's combination; the leaf
//! whose position the quasi-cyclic code does not have, if a noisy one, is lost, for which four more trees are made.

use super::code::{BlockAccumulate, LinearCode, QuasiCyclic};
use super::ferret::Spent;
use super::half_tree::HalfTrees;
use super::source::{self, SourceReceiver, SourceSender};
use super::spcot::{self, CheckMessage, SEGMENT, Shape, Trees, Weights};
use crate::extension::Setup;
use crate::{BaseOt, CotReceiver, CotSender, Result, Security};
use tacit_crypto::ggm::LANES;
use tacit_crypto::transcript::Transcript;
use tacit_crypto::{Block, Buffer, KAPPA, Prg};
use tacit_net::Channel;
use zeroize::{Zeroize, Zeroizing};

/// The protocol's short name.
pub const NAME: &str = "silent";
/// Correlations of one run at most; larger requests take several. A run's traffic hardly grows with its size.
pub const LARGEST_RUN: usize = 1 << 24;
/// Requests below this take all that a run makes and keep the rest for later.
const SMALL: usize = 1 << 15;
const DEPTHS: core::ops::RangeInclusive<usize> = 8..=20;
/// What a base correlation costs, in leaves: with it, 10^7 correlations stay below 130 kB.
const LEAVES_PER_COT: usize = 2000;

/// The public matrix of dual LPN.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Code {
    /// The paper's, with t = 128 at N/n = 2: at least 128 bits for n from 10^4 to 10^7 (its table 1).
    QuasiCyclic,
    /// Block-accumulate 3x32, linear time, with t = 176: 128 bits against linear tests at the estimated distance.
    Linear,
}

impl Code {
    /// The code called `name`: `quasi-cyclic` or `linear`.
    pub fn by_name(name: &str) -> Option<Code> {
        [Code::QuasiCyclic, Code::Linear].into_iter().find(|code| code.name() == name)
    }

    /// The name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Code::QuasiCyclic => "quasi-cyclic",
            Code::Linear => "linear",
        }
    }

    /// The least number of noisy positions.
    pub const fn weight(self) -> usize {
        match self {
            // Four more than 128: the last tile may lose positions.
            Code::QuasiCyclic => 132,
            Code::Linear => linear_weight(2),
        }
    }

    /// The matrix of `seed` on `len` positions.
    pub fn instance(self, seed: Block, len: usize) -> Box<dyn LinearCode> {
        match self {
            Code::QuasiCyclic => Box::new(QuasiCyclic::new(seed, len)),
            Code::Linear => Box::new(BlockAccumulate::new(seed, len)),
        }
    }

    /// The noise for `count` results.
    pub(crate) fn noise(self, count: usize) -> Noise {
        Noise::new(self.weight(), count, 16)
    }

    /// The trees for `count` results.
    pub(crate) fn shape(self, count: usize) -> Shape {
        self.noise(count).shape
    }
}

/// The least number of noisy positions of [`Code::Linear`] where noise has values in a field of `q` elements: a random nonzero
/// value shrinks the bias of a linear test that meets the fraction d of all positions by 1 − d·q/(q − 1), and with d = 0.20
/// 128 bits are left.
pub const fn linear_weight(q: usize) -> usize {
    match q {
        2 => 176,
        4 => 288,
        16 => 372,
        _ => 400,
    }
}

/// The cheapest trees for `count` results with at least `weight` noisy positions.
fn shape_of(weight: usize, count: usize) -> Shape {
    let wanted = wanted(count);
    let shapes =
        DEPTHS.map(|depth| Shape { tiles: weight.max(wanted.div_ceil(1 << depth)).div_ceil(LANES), depth });
    let cost = |shape: &Shape| positions(*shape) + LEAVES_PER_COT * shape.cots();
    shapes.min_by_key(cost).unwrap_or(Shape { tiles: weight.div_ceil(LANES), depth: *DEPTHS.start() })
}

/// Positions that `count` results take, with room for the search of a prime.
fn wanted(count: usize) -> usize {
    2 * (count + 1) + 4096
}

fn positions(shape: Shape) -> usize {
    (shape.tiles * LANES) << shape.depth
}

/// Regular noise with no more positions than the code takes: of each tree the first `block` leaves, one of which is noisy.
///
/// The trees must have 2^ℓ leaves, the positions need not: what is cut off costs its share of the trees, a small one, and
/// none of the code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Noise {
    pub shape: Shape,
    pub block: usize,
}

impl Noise {
    fn new(weight: usize, count: usize, grain: usize) -> Self {
        let shape = shape_of(weight, count);
        // The permutations want a length that a large power of two divides.
        let grain = grain.max(1 << (shape.depth - 6));
        let block = wanted(count).div_ceil(shape.tiles * LANES).next_multiple_of(grain);
        Noise { shape, block: block.clamp(1 << DEPTHS.start(), 1 << shape.depth) }
    }

    /// For the code [`Code::Linear`] and values in a field of `q` elements, in whole segments of the check's weights.
    pub(crate) fn of_field(q: usize, count: usize) -> Self {
        Noise::new(linear_weight(q), count, SEGMENT / LANES)
    }

    /// Blocks of a tile that are positions, its first ones.
    pub(crate) fn tile_len(self) -> usize {
        LANES * self.block
    }

    pub(crate) fn positions(self) -> usize {
        self.shape.tiles * self.tile_len()
    }

    /// A noisy leaf for each tree. The bias of the product of 64 bits is below 2^-40.
    pub(crate) fn points(self, prg: &mut Prg) -> Vec<u32> {
        let mut point = || ((prg.u64() as u128 * self.block as u128) >> 64) as u32;
        (0..self.shape.tiles * LANES).map(|_| point()).collect()
    }
}

/// What both parties must agree on.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Config {
    /// The code.
    pub code: Code,
    /// Whether the consistency check runs.
    pub security: Security,
}

impl Config {
    fn check_cots(&self) -> usize {
        match self.security {
            Security::SemiHonest => 0,
            Security::Malicious => KAPPA,
        }
    }

    /// Bytes of both directions for a request of `count`, at most [`LARGEST_RUN`], beside the base correlations.
    pub fn bytes(&self, count: usize) -> usize {
        // The check's seed, its masked weights, and a digest.
        let check = if self.check_cots() > 0 { 2 * size_of::<Block>() + 32 } else { 0 };
        size_of::<Block>() + self.code.shape(Core::run_size(count)).bytes() + check
    }

    /// Base correlations that a request of `count` takes, at most [`LARGEST_RUN`].
    pub fn base_cots(&self, count: usize) -> usize {
        self.code.shape(Core::run_size(count)).cots() + self.check_cots()
    }
}

/// What both parties do alike.
struct Core {
    config: Config,
    context: Transcript,
    run: u64,
    streams: u64,
    left: Vec<Block>,
    spent: Spent,
}

impl Drop for Core {
    fn drop(&mut self) {
        self.left.zeroize();
    }
}

impl Core {
    /// Agrees on seed and parameters; `Error::Malformed` when the peer's parameters differ.
    fn agree<S>(
        channel: &mut Channel,
        config: Config,
        source: Setup<S>,
        prg: &mut Prg,
        sends: bool,
    ) -> Result<(Self, S)> {
        let mut context = Transcript::new("tacit silent bcgikrs19 v3");
        context.append("session", &channel.session_id().0);
        context.append("code", config.code.name().as_bytes());
        context.append_u64("malicious", (config.security == Security::Malicious) as u64);
        let source = source::agree(channel, source, &mut context, prg, sends, NAME)?;
        let spent = Spent::default();
        Ok((Core { config, context, run: 0, streams: 0, left: Vec::new(), spent }, source))
    }

    /// Another stream: its trees and codes have seeds of their own.
    fn fork(&mut self) -> Self {
        self.streams += 1;
        let mut context = self.context.clone();
        context.append_u64("stream", self.streams);
        let (config, spent) = (self.config, self.spent.clone());
        Core { config, context, run: 0, streams: 0, left: Vec::new(), spent }
    }

    /// The public parts of the next run.
    fn begin(&mut self, count: usize) -> (Noise, HalfTrees, Box<dyn LinearCode>) {
        self.run += 1;
        let noise = self.config.code.noise(count);
        let shape = noise.shape;
        let mut context = self.context.clone();
        context.append_u64("run", self.run);
        context.append_u64("depth", shape.depth as u64);
        context.append_u64("tiles", shape.tiles as u64);
        context.append_u64("block", noise.block as u64);
        let trees = HalfTrees::new(shape.depth, context.challenge_block("tree"));
        (noise, trees, self.config.code.instance(context.challenge_block("code"), noise.positions()))
    }

    /// How many results the next run must give for a request that lacks `wanted`.
    fn run_size(wanted: usize) -> usize {
        wanted.clamp(SMALL / 2, LARGEST_RUN)
    }

    /// Takes what is left of earlier runs.
    fn serve(&mut self, n: usize, each: &mut dyn FnMut(&[Block])) -> usize {
        let n = n.min(self.left.len());
        let from = self.left.len() - n;
        if n > 0 {
            each(&self.left[from..]);
            self.left[from..].zeroize();
            self.left.truncate(from);
        }
        n
    }

    /// Compresses the noise; `each` gets the first `wanted` results, a small request's rest is kept.
    fn compress(
        &mut self,
        code: &dyn LinearCode,
        noise: Buffer,
        wanted: usize,
        each: &mut dyn FnMut(&[Block]),
    ) -> usize {
        let here = wanted.min(code.output_len());
        let made = if wanted < SMALL { code.output_len() } else { here };
        let mut done = 0;
        let left = &mut self.left;
        left.reserve_exact(made - here);
        code.encode(noise, made, &mut |piece| {
            let now = piece.len().min(here - done);
            if now > 0 {
                each(&piece[..now]);
            }
            left.extend_from_slice(&piece[now..]);
            done += now;
        });
        here
    }
}

/// Expands all trees into the noise vector, ready for `code`; with weights, also the check's sum.
fn expand(
    trees: &dyn Trees,
    expander: &mut HalfTrees,
    code: &dyn LinearCode,
    layout: Noise,
    weights: Option<&Weights>,
) -> (Buffer, Block) {
    let (shape, tile_len) = (layout.shape, layout.tile_len());
    let mut noise = Buffer::zeros(layout.positions());
    let (mut carry, mut sum) = (Block::ZERO, Block::ZERO);
    for group in 0..shape.groups() {
        trees.expand(expander, group, &mut |tile, leaves| {
            if let Some(weights) = weights {
                sum ^= weights.sum(tile, leaves);
            }
            let place = &mut noise[tile * tile_len..][..tile_len];
            place.copy_from_slice(&leaves[..tile_len]);
            code.absorb(&mut carry, place);
        });
    }
    (noise, sum)
}

/// The sender, who holds Δ.
pub struct SilentSender {
    core: Core,
    source: SourceSender,
    prg: Prg,
}

/// The receiver, whose choice bits are random.
pub struct SilentReceiver {
    core: Core,
    source: SourceReceiver,
    prg: Prg,
}

impl SilentSender {
    /// Sets up from a base OT, in which this side receives 128.
    ///
    /// Errors: those of the link and the base OT; `Usage` for a base OT that protects less than the configuration.
    pub fn setup(channel: &mut Channel, base: &dyn BaseOt, prg: &mut Prg, config: Config) -> Result<Self> {
        let source = SourceSender::begin(channel, base, prg, config.security)?;
        let (core, source) = Core::agree(channel, config, source, prg, true)?;
        Ok(SilentSender { core, source, prg: prg.fork() })
    }

    /// An independent stream with the same Δ, for another channel; the receiver forks in step. When one stream
    /// fails, all are spent.
    pub fn fork(&mut self) -> Self {
        SilentSender { core: self.core.fork(), source: self.source.fork(), prg: self.prg.fork() }
    }

    /// One run: section 4 with the setup of section 5.
    fn run(&mut self, channel: &mut Channel, n: usize, each: &mut dyn FnMut(&[Block])) -> Result<usize> {
        let (layout, mut expander, code) = self.core.begin(Core::run_size(n));
        let shape = layout.shape;
        let mut cots = Zeroizing::new(vec![Block::ZERO; shape.cots() + self.core.config.check_cots()]);
        self.source.extend(channel, &mut cots)?;
        let (level, check) = cots.split_at(shape.cots());
        let delta = self.source.delta();
        let trees = spcot::send(channel, &mut self.prg, &mut expander, delta, shape, level)?;
        let noise = if self.core.config.security == Security::Malicious {
            let message = CheckMessage::receive(channel)?;
            let weights = Weights::new(message.seed, shape);
            let (noise, sum) = expand(&trees, &mut expander, &*code, layout, Some(&weights));
            let value = sum ^ message.sender_mask(delta, check);
            channel.send(&spcot::check_digest(&self.core.context, self.core.run, value))?;
            channel.flush()?;
            noise
        } else {
            expand(&trees, &mut expander, &*code, layout, None).0
        };
        drop(expander);
        Ok(self.core.compress(&*code, noise, n, each))
    }
}

impl SilentReceiver {
    /// Sets up from a base OT, in which this side sends 128.
    ///
    /// Errors: as for [`SilentSender::setup`].
    pub fn setup(channel: &mut Channel, base: &dyn BaseOt, prg: &mut Prg, config: Config) -> Result<Self> {
        let source = SourceReceiver::begin(channel, base, prg, config.security)?;
        let (core, source) = Core::agree(channel, config, source, prg, false)?;
        Ok(SilentReceiver { core, source, prg: prg.fork() })
    }

    /// An independent stream, for another channel; the sender forks in step.
    pub fn fork(&mut self) -> Self {
        SilentReceiver { core: self.core.fork(), source: self.source.fork(), prg: self.prg.fork() }
    }

    fn run(&mut self, channel: &mut Channel, n: usize, each: &mut dyn FnMut(&[Block])) -> Result<usize> {
        let (layout, mut expander, code) = self.core.begin(Core::run_size(n));
        let shape = layout.shape;
        let mut cots = Zeroizing::new(vec![Block::ZERO; shape.cots() + self.core.config.check_cots()]);
        self.source.extend(channel, &mut cots)?;
        let (level, check) = cots.split_at(shape.cots());
        let points = layout.points(&mut self.prg);
        let mut trees = spcot::choose_points(channel, points, shape, level)?;
        trees.receive(channel, level)?;
        let noise = if self.core.config.security == Security::Malicious {
            let seed = self.prg.block();
            let weights = Weights::new(seed, shape);
            CheckMessage::send(channel, seed, weights.of_points(&trees), check)?;
            channel.flush()?;
            let (noise, sum) = expand(&trees, &mut expander, &*code, layout, Some(&weights));
            let value = sum ^ spcot::fold_powers(check);
            let expected = spcot::check_digest(&self.core.context, self.core.run, value);
            spcot::receive_digest(channel, NAME, &expected)?;
            noise
        } else {
            expand(&trees, &mut expander, &*code, layout, None).0
        };
        drop(expander);
        Ok(self.core.compress(&*code, noise, n, each))
    }
}

macro_rules! extend {
    () => {
        fn extend(&mut self, channel: &mut Channel, out: &mut [Block]) -> Result<()> {
            let mut at = 0;
            let result = self.extend_each(channel, out.len(), &mut |rows| {
                out[at..at + rows.len()].copy_from_slice(rows);
                at += rows.len();
            });
            result.inspect_err(|_| out.zeroize())
        }

        /// One run makes up to 2^24 at once; what `each` sees has passed that run's check.
        fn extend_each(
            &mut self,
            channel: &mut Channel,
            n: usize,
            each: &mut dyn FnMut(&[Block]),
        ) -> Result<()> {
            self.core.spent.check(NAME)?;
            let mut made = self.core.serve(n, each);
            while made < n {
                match self.run(channel, n - made, each) {
                    Ok(more) => made += more,
                    Err(error) => {
                        self.core.spent.set();
                        self.core.left.zeroize();
                        return Err(error);
                    }
                }
            }
            Ok(())
        }
    };
}

impl CotSender for SilentSender {
    fn delta(&self) -> Block {
        self.source.delta()
    }

    extend!();
}

impl CotReceiver for SilentReceiver {
    extend!();
}

#[cfg(test)]
mod tests {
    use super::super::spcot::SenderTrees;
    use super::*;
    use crate::Error;
    use crate::base;
    use core::sync::atomic::{AtomicU32, Ordering};
    use tacit_net::{LinkModel, Party, SessionId, memory};

    const CONFIGS: [Config; 2] = [malicious(Code::QuasiCyclic), malicious(Code::Linear)];

    const fn malicious(code: Code) -> Config {
        Config { code, security: Security::Malicious }
    }

    /// What a sender does to its corrections, to the leaves of a tile that it weighs and to its digest, and the Δ that it
    /// uses in its trees.
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

        fn expand_tiles(
            &self,
            expander: &mut HalfTrees,
            first: usize,
            tiles: usize,
            each: &mut dyn FnMut(usize, &mut [Block]),
        ) {
            self.0.expand_tiles(expander, first, tiles, &mut |tile, leaves| {
                (self.1)(tile, leaves);
                each(tile, leaves);
            });
        }
    }

    impl Cheater<'_> {
        /// One run, following the protocol but for that.
        fn run(&self, s: &mut SilentSender, ch: &mut Channel) -> Result<()> {
            let (layout, mut expander, code) = s.core.begin(Core::run_size(1));
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
            let mut digest = spcot::check_digest(&s.core.context, s.core.run, value);
            (self.digest)(&mut digest);
            ch.send(&digest)?;
            ch.flush()?;
            Ok(())
        }

        fn is_caught(&self, config: Config, seed: u128) -> bool {
            let (sent, result) = memory::run(
                |ch| {
                    let mut prg = Prg::from_seed(Block::new(seed));
                    let mut s = SilentSender::setup(ch, &*base::default(), &mut prg, config)?;
                    s.fork();
                    self.run(&mut s, ch)
                },
                |ch| {
                    let mut prg = Prg::from_seed(Block::new(!seed));
                    let mut r = SilentReceiver::setup(ch, &*base::default(), &mut prg, config)?;
                    let mut fork = r.fork();
                    let mut out = [Block::ONES; 9];
                    (self.points)(&config.code.noise(Core::run_size(1)).points(&mut r.prg.clone()));
                    let result = CotReceiver::extend(&mut r, ch, &mut out);
                    if result.is_err() {
                        assert!(out == [Block::ZERO; 9], "something was left");
                        for stream in [&mut r, &mut fork] {
                            let again = CotReceiver::extend(stream, ch, &mut out);
                            assert!(matches!(again, Err(Error::Spent(NAME))));
                        }
                    }
                    result
                },
            );
            match result {
                Ok(()) => false,
                Err(Error::Cheated { protocol: NAME, .. }) => true,
                Err(other) => panic!("{other}; the sender: {sent:?}"),
            }
        }
    }

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

    /// A bent correction of the last level bends the punctured leaf and its sibling: a sender that knows their place up to
    /// one bit learns that bit, or is caught. Here all but one are told to it.
    #[test]
    fn guessing_one_bit_of_a_point_succeeds_half_of_the_time() {
        const TRIALS: u128 = 32;
        for config in CONFIGS {
            let depth = config.code.shape(SMALL / 2).depth;
            let error = Block::new(0x1234_5678 << 40);
            let bend = |m: &mut [Block]| m[LANES * (depth - 2)] ^= error;
            let mut passed = 0;
            for trial in 0..TRIALS {
                let point = AtomicU32::new(0);
                let claim = |tile: usize, leaves: &mut [Block]| {
                    let guess = point.load(Ordering::SeqCst) as usize & !1;
                    for leaf in [guess, guess ^ 1 << (depth - 1)].into_iter().filter(|_| tile == 0) {
                        leaves[LANES * leaf] ^= error;
                    }
                };
                let told = |points: &[u32]| point.store(points[0], Ordering::SeqCst);
                let cheater = Cheater { corrections: &bend, leaves: &claim, points: &told, ..HONEST };
                let caught = cheater.is_caught(config, 100 + trial);
                assert_eq!(caught, point.load(Ordering::SeqCst) & 1 == 1, "trial {trial}");
                passed += !caught as usize;
            }
            assert!((8..=24).contains(&passed), "{passed} of {TRIALS} guesses were right");
        }
    }

    #[test]
    fn sessions_cannot_be_swapped() {
        for config in CONFIGS {
            let (a, b) = memory::links(LinkModel::LOOPBACK);
            let mut a = Channel::new(a, Party::First, SessionId([1; 32]));
            let mut b = Channel::new(b, Party::Second, SessionId([2; 32]));
            let (left, right) = std::thread::scope(|scope| {
                let other = scope.spawn(move || {
                    let mut prg = Prg::from_seed(Block::new(1));
                    SilentSender::setup(&mut a, &*base::default(), &mut prg, config).map(|_| ())
                });
                let mut prg = Prg::from_seed(Block::new(2));
                let mine = SilentReceiver::setup(&mut b, &*base::default(), &mut prg, config).map(|_| ());
                drop(b);
                (mine, other.join().unwrap())
            });
            for error in [left.unwrap_err(), right.unwrap_err()] {
                assert!(matches!(error, Error::Malformed { protocol: NAME, .. }), "{error}");
            }
        }
    }

    #[test]
    fn weights_leave_128_bits() {
        for q in [2, 4, 16, 256, 1 << 60] {
            let bias = 1.0 - 0.20 * q as f64 / (q as f64 - 1.0);
            let bits = -(linear_weight(q) as f64) * bias.log2();
            assert!(
                (128.0..131.0).contains(&bits) && linear_weight(q).is_multiple_of(LANES),
                "{bits} at {q}"
            );
        }
    }
}
