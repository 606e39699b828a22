//! Ferret: bootstrapped silent correlated OT from primal LPN (Yang–Weng–Lan–Zhang–Wang 2020/924, figure 9).
//!
//! - **Realises** random correlated OT with a fixed Δ (figure 1), against semi-honest or malicious parties,
//!   in the random-oracle and ideal-permutation models, under LPN with regular noise and, for malicious
//!   security, static leakage (a cheating sender learns one bit of the noise on average or is caught).
//! - **Rounds**: an iteration takes two messages, four with the check, of which two go with the next
//!   iteration's. **Bytes**: 16·t·(log(N/t) − 1) a lane from the sender and an eighth of a byte a level from
//!   the receiver; 16 more for a seed and 64 for the check.
//! - **Setup**: correlations from any [`CotSender`]/[`CotReceiver`] pair of the same Δ, KOS as a rule, or a
//!   smaller Ferret (the two-level setup of section 6.2).
//!
//! Deviations from the paper: half-trees and one check a round (see `spcot`); four iterations run in lockstep
//! with their secrets interleaved, so that one cache line read serves all four (section 6.2 allows one matrix
//! for many iterations; noise and secrets stay independent, and the sets are chosen for four instances of one
//! matrix). Beyond its lanes an iteration has a matrix of its own, from the round's number and a seed that
//! neither party chose (`seeds`), for A is 10-local, and who solves a part of one instance has solved that
//! part of all that share the matrix; half-trees are hashed under a key for each round and group of 32 trees;
//! where a request needs another iteration, its bits leave with the check's opening (they are uniform
//! whatever the sender did), while outputs wait for the check; trees of which nobody has asked for all are
//! expanded again later instead of being stored, so that memory holds the LPN secret and one group of trees,
//! whatever the number of outputs.

use super::params::{Config, REGULAR as NAME};
use super::rows::Rows;
use crate::silent::engine::seeds::{Pledge, Toss};
use crate::silent::engine::sink::{Cots, Sink};
use crate::silent::engine::{Engine, Stream};
use crate::silent::tree::half::{HalfTrees, TILES};
use crate::silent::tree::level_check::{ReceiverCheck, SenderCheck};
use crate::silent::tree::opening::{DIGEST, check_cots, receive_digest};
use crate::silent::tree::shape::Shape;
use crate::silent::tree::spcot::{self, ReceiverTrees, SenderTrees, Trees};
use crate::{CotReceiver, CotSender, Error, Result, Security};
use tacit_crypto::transcript::Transcript;
use tacit_crypto::{Block, Buffer, Prg};
use tacit_net::Channel;
use zeroize::Zeroizing;

/// What the paper calls a run.
pub(super) const ROUND: &str = "round";

type Correlations = Zeroizing<Vec<Block>>;

/// What both parties do alike.
struct Core<T> {
    config: Config,
    engine: Engine,
    expander: HalfTrees,
    rows: Rows,
    /// The trees of the iteration at work while some of its groups are still to be served.
    trees: Option<T>,
    ahead: Option<Ahead>,
}

/// What is left of the iterations whose trees were all made ahead.
struct Ahead {
    /// Iterations after the one at work.
    iterations: usize,
    /// Correlations to come, in all.
    left: usize,
}

impl<T: Trees> Core<T> {
    /// [`advance`](Self::advance) draws a round's matrix, which needs the joint seed, and
    /// [`renew_trees`](Self::renew_trees) its hash keys, which do not.
    fn new(config: Config, engine: Engine, reserve: Buffer) -> Self {
        let expander = HalfTrees::new(config.params.depth, Block::ZERO);
        Core { config, engine, expander, rows: Rows::new(config, reserve), trees: None, ahead: None }
    }

    /// Takes what the last iteration kept: its secret for the code, the correlations for trees and for the
    /// check.
    fn begin(&mut self) -> [Correlations; 2] {
        self.advance();
        self.renew_trees();
        let (config, shape) = (self.config, self.config.shape());
        self.rows.carry.split(config.secret(), shape.cots(), check_cots(config.security))
    }

    /// Goes on to the next iteration, which has a matrix of its own: those who share one share what it costs
    /// to solve a part of it.
    fn advance(&mut self) {
        self.engine.next();
        let mut context = self.engine.of_run(ROUND);
        self.engine.append_seed(&mut context);
        self.rows.advance(context.challenge_block("matrix"));
    }

    /// The trees to come are hashed under keys of their own.
    fn renew_trees(&mut self) {
        self.expander.renew(self.engine.of_run(ROUND).challenge_block("tree"));
    }

    fn exhausted(&self) -> bool {
        self.rows.ready.left() == 0 && self.trees.is_none()
    }

    /// Keeps the trees of an iteration of which not all groups were made.
    fn keep_trees(&mut self, trees: T) {
        if self.rows.next_group < self.config.shape().groups() {
            self.trees = Some(trees);
        }
    }

    /// Makes the next group's correlations, as far as they fit into `sink`.
    fn make_group(&mut self, sink: &mut Cots<'_>) {
        let Some(trees) = self.trees.take() else { return };
        let Core { expander, rows, config, .. } = self;
        rows.begin_group(sink);
        let (first, tiles) =
            (rows.first_tile + rows.next_group * TILES, config.shape().tiles_in(rows.next_group));
        trees.expand_tiles(expander, first, tiles, &mut |tile, leaves| rows.add(tile, leaves, sink));
        rows.end_group(sink);
        if rows.next_group < config.shape().groups() || self.next_ahead() {
            self.trees = Some(trees);
        }
    }

    /// After an iteration's last group: goes on to the next one made ahead, if there is one.
    fn next_ahead(&mut self) -> bool {
        let Some(ahead) = self.ahead.as_mut().filter(|ahead| ahead.iterations > 0) else { return false };
        ahead.iterations -= 1;
        let last = ahead.iterations == 0;
        self.advance();
        self.rows.first_tile += self.config.shape().tiles;
        self.rows.keep = if last { 0 } else { self.config.secret() };
        true
    }

    /// Begins the first of `iterations` iterations made ahead.
    fn start_ahead(&mut self, iterations: usize) {
        self.engine.restart();
        self.advance();
        self.renew_trees();
        self.rows.keep = if iterations == 1 { 0 } else { self.config.secret() };
        let left = self.config.total_ahead(iterations);
        self.ahead = Some(Ahead { iterations: iterations - 1, left });
    }

    /// Fills `sink` as far as the iteration at work reaches, without the peer.
    ///
    /// Errors: `Exhausted`, taking nothing, where all iterations were made ahead and less is left.
    fn serve(&mut self, sink: &mut Cots<'_>) -> Result<()> {
        if let Some(ahead) = &mut self.ahead {
            if sink.left() > ahead.left {
                return Err(Error::Exhausted { protocol: NAME, left: ahead.left });
            }
            ahead.left -= sink.left();
        }
        while sink.left() > 0 && !self.exhausted() {
            match self.rows.ready.left() {
                0 => self.make_group(sink),
                _ => self.rows.ready.serve(sink),
            }
        }
        Ok(())
    }

    /// After a failure: nothing provisional stays anywhere.
    fn wipe(&mut self) {
        self.trees = None;
        self.rows.wipe();
    }
}

/// All that the parties must agree on, with the number of iterations made ahead, 0 where they are made on
/// demand.
fn context(config: Config, channel: &mut Channel, ahead: usize) -> Transcript {
    let mut context = Transcript::new("tacit ferret v4");
    context.append("session", &channel.session_id().0);
    context.append_u64("instance", channel.next_instance());
    context.append_u64("k", config.params.k as u64);
    context.append_u64("t", config.params.t as u64);
    context.append_u64("depth", config.params.depth as u64);
    context.append_u64("lanes", config.lanes.count() as u64);
    context.append_u64("malicious", (config.security == Security::Malicious) as u64);
    context.append_u64("ahead", ahead as u64);
    context
}

/// Splits what a setup made for iterations ahead: the first secret, the correlations of all trees, those of
/// the check.
fn split_ahead(config: Config, shape: Shape, all: &[Block]) -> (Buffer, Zeroizing<Vec<Block>>, &[Block]) {
    let (secret, rest) = all.split_at(config.secret());
    let (trees, check) = rest.split_at(shape.cots());
    let mut first = Buffer::zeros(secret.len());
    first.copy_from_slice(secret);
    (first, Zeroizing::new(trees.to_vec()), &check[..check_cots(config.security)])
}

/// The sender, who holds Δ.
pub struct FerretSender {
    core: Core<SenderTrees>,
    delta: Block,
    prg: Prg,
    /// The correlations for trees and check of an iteration that has begun while the one before is checked.
    begun: Option<[Correlations; 2]>,
}

/// The receiver, whose choice bits are random.
pub struct FerretReceiver {
    core: Core<ReceiverTrees>,
    prg: Prg,
    begun: Option<Begun>,
}

/// What the receiver has of an iteration whose bits are on their way, perhaps while the one before is
/// checked.
struct Begun {
    trees: ReceiverTrees,
    cots: Correlations,
    check_cots: Correlations,
}

pub(super) fn checked_delta(source: &dyn CotSender) -> Result<Block> {
    let delta = source.delta();
    if !delta.lsb() {
        return Err(Error::Usage { protocol: NAME, what: "the lowest bit of delta must be 1" });
    }
    Ok(delta)
}

impl FerretSender {
    /// Sets up from `config.reserve()` correlations of `source`, whose Δ stays.
    ///
    /// Errors: those of the link and of `source`; `Usage` when Δ has bit 0 clear; `Malformed` when the peer's
    /// parameters are others, `Cheated` when it opens another seed than it committed to.
    pub fn setup(
        channel: &mut Channel,
        mut prg: Prg,
        config: Config,
        source: &mut dyn CotSender,
    ) -> Result<Self> {
        config.validate()?;
        let delta = checked_delta(source)?;
        let context = context(config, channel, 0);
        let toss = Toss::receive(channel, &context, &mut prg, NAME)?;
        let mut reserve = Buffer::zeros(config.reserve());
        source.extend(channel, &mut reserve)?;
        toss.contribute(channel)?;
        let joint = toss.finish(channel)?;
        let engine = Engine::new(NAME, context, joint);
        Ok(FerretSender { core: Core::new(config, engine, reserve), delta, prg, begun: None })
    }

    /// Sets up and does all interaction of `iterations` iterations at once, four messages whatever their
    /// number, from `config.reserve_ahead(iterations)` correlations. What follows needs no peer:
    /// `config.total_ahead(iterations)` correlations, then [`Error::Exhausted`].
    pub fn setup_ahead(
        channel: &mut Channel,
        mut prg: Prg,
        config: Config,
        iterations: usize,
        source: &mut dyn CotSender,
    ) -> Result<Self> {
        config.validate()?;
        let shape = config.shape_of(iterations)?;
        let delta = checked_delta(source)?;
        let context = context(config, channel, iterations);
        let toss = Toss::receive(channel, &context, &mut prg, NAME)?;
        let mut all = Buffer::zeros(config.reserve_ahead(iterations));
        source.extend(channel, &mut all)?;
        let (secret, cots, check_cots) = split_ahead(config, shape, &all);
        toss.contribute(channel)?;
        // The trees need no joint seed, which comes once the receiver has this side's part.
        let mut core = Core::new(config, Engine::new(NAME, context.clone(), [0; 32]), secret);
        core.engine.next();
        core.renew_trees();
        let malicious = config.security == Security::Malicious;
        let mut check = malicious.then(|| SenderCheck::new(&context, core.engine.number(), shape));
        let expander = &mut core.expander;
        let trees = spcot::send_each(channel, &mut prg, expander, delta, shape, &cots, check.as_mut(), None)?;
        let joint = toss.finish(channel)?;
        core.engine.joined(joint);
        if let Some(mut check) = check {
            check.bind(&joint);
            check.answer(channel, delta, check_cots)?;
        }
        core.start_ahead(iterations);
        core.trees = Some(trees);
        Ok(FerretSender { core, delta, prg, begun: None })
    }

    /// Ties this stream to `other`: when one fails, both are spent.
    pub(super) fn tie(&mut self, other: &Self) {
        self.core.engine.tie(&other.core.engine);
    }

    /// Correlations that are left of those made ahead; `None` when an iteration is made on demand.
    pub fn left(&self) -> Option<usize> {
        self.core.ahead.as_ref().map(|ahead| ahead.left)
    }

    /// One iteration, which serves `sink` as far as it reaches.
    ///
    /// The trees that are expanded for their corrections give the outputs and the check's sum too.
    fn iterate(&mut self, channel: &mut Channel, sink: &mut Cots<'_>) -> Result<()> {
        let shape = self.core.config.shape();
        let [cots, check_cots] = self.begun.take().unwrap_or_else(|| self.core.begin());
        let mut check = self
            .core
            .engine
            .check(self.core.config.security, |context, round| SenderCheck::new(context, round, shape));
        let Core { rows, expander, .. } = &mut self.core;
        rows.encode_while_waiting(channel, shape.cots().div_ceil(8), sink)?;
        let mut each = |tile: usize, leaves: &mut [Block]| {
            if tile.is_multiple_of(TILES) {
                rows.begin_group(sink);
            }
            rows.add(tile, leaves, sink);
            if tile % TILES == TILES - 1 || tile == shape.tiles - 1 {
                rows.end_group(sink);
            }
        };
        let prg = &mut self.prg;
        let trees = spcot::send_each(
            channel,
            prg,
            expander,
            self.delta,
            shape,
            &cots,
            check.as_mut(),
            Some(&mut each),
        )?;
        self.core.keep_trees(trees);
        if let Some(check) = check {
            if sink.left() > 0 {
                self.begun = Some(self.core.begin());
                self.core.rows.encode_while_waiting(channel, ReceiverCheck::OPENING, sink)?;
            }
            check.answer(channel, self.delta, &check_cots)?;
        }
        Ok(())
    }
}

impl FerretReceiver {
    /// Sets up from `config.reserve()` correlations of `source`.
    pub fn setup(
        channel: &mut Channel,
        mut prg: Prg,
        config: Config,
        source: &mut dyn CotReceiver,
    ) -> Result<Self> {
        config.validate()?;
        let context = context(config, channel, 0);
        let pledge = Pledge::send(channel, &context, &mut prg, false, NAME)?;
        let mut reserve = Buffer::zeros(config.reserve());
        source.extend(channel, &mut reserve)?;
        let joint = pledge.toss(channel)?;
        let engine = Engine::new(NAME, context, joint);
        Ok(FerretReceiver { core: Core::new(config, engine, reserve), prg, begun: None })
    }

    /// Sets up and does all interaction of `iterations` iterations at once; see
    /// [`FerretSender::setup_ahead`].
    pub fn setup_ahead(
        channel: &mut Channel,
        mut prg: Prg,
        config: Config,
        iterations: usize,
        source: &mut dyn CotReceiver,
    ) -> Result<Self> {
        config.validate()?;
        let shape = config.shape_of(iterations)?;
        let context = context(config, channel, iterations);
        let pledge = Pledge::send(channel, &context, &mut prg, false, NAME)?;
        let mut all = Buffer::zeros(config.reserve_ahead(iterations));
        source.extend(channel, &mut all)?;
        let (secret, cots, check_cots) = split_ahead(config, shape, &all);
        let mut trees = spcot::choose(channel, &mut prg, shape, &cots)?;
        let engine = Engine::new(NAME, context, pledge.toss(channel)?);
        let mut core = Core::new(config, engine, secret);
        core.start_ahead(iterations);
        let mut check = core
            .engine
            .check(config.security, |context, round| ReceiverCheck::new(context, round, shape, &mut prg));
        trees.receive_seed(channel, &cots)?;
        for group in 0..shape.groups() {
            trees.receive_group(channel, group)?;
            if check.is_some() {
                trees.solve(&mut core.expander, group, check.as_mut(), None);
            }
        }
        if let Some(check) = check {
            let expected = check.open(channel, check_cots)?;
            receive_digest(channel, NAME, &expected)?;
        }
        core.trees = Some(trees);
        Ok(FerretReceiver { core, prg, begun: None })
    }

    /// Ties this stream to `other`: when one fails, both are spent.
    pub(super) fn tie(&mut self, other: &Self) {
        self.core.engine.tie(&other.core.engine);
    }

    /// Correlations that are left of those made ahead; `None` when an iteration is made on demand.
    pub fn left(&self) -> Option<usize> {
        self.core.ahead.as_ref().map(|ahead| ahead.left)
    }

    /// One iteration, which serves `sink` as far as it reaches. Trees are expanded as their corrections
    /// come, for the outputs and the check together.
    fn iterate(&mut self, channel: &mut Channel, sink: &mut Cots<'_>) -> Result<()> {
        let shape = self.core.config.shape();
        let Begun { mut trees, cots, check_cots } = match self.begun.take() {
            Some(begun) => begun,
            None => self.begin(channel)?,
        };
        let mut check = self.core.engine.check(self.core.config.security, |context, round| {
            ReceiverCheck::new(context, round, shape, &mut self.prg)
        });
        let Core { rows, expander, .. } = &mut self.core;
        rows.encode_while_waiting(channel, size_of::<Block>(), sink)?;
        trees.receive_seed(channel, &cots)?;
        for group in 0..shape.groups() {
            let bytes = size_of::<Block>() * shape.corrections_in(group);
            rows.encode_while_waiting(channel, bytes, sink)?;
            trees.receive_group(channel, group)?;
            let wanted = rows.begin_group(sink);
            if check.is_none() && !wanted {
                continue;
            }
            let each: spcot::Each<'_> = &mut |tile, leaves| rows.add(tile, leaves, sink);
            trees.solve(expander, group, check.as_mut(), Some(each));
            rows.end_group(sink);
        }
        self.core.keep_trees(trees);
        if let Some(check) = check {
            let expected = check.open(channel, &check_cots)?;
            if sink.left() > 0 {
                self.begun = Some(self.begin(channel)?);
                self.core.rows.encode_while_waiting(channel, DIGEST, sink)?;
            }
            receive_digest(channel, NAME, &expected)?;
        }
        Ok(())
    }

    /// Begins an iteration: sends its points' bits.
    fn begin(&mut self, channel: &mut Channel) -> Result<Begun> {
        let [cots, check_cots] = self.core.begin();
        let trees = spcot::choose(channel, &mut self.prg, self.core.config.shape(), &cots)?;
        Ok(Begun { trees, cots, check_cots })
    }
}
impl Stream for FerretSender {
    type Sink<'a> = Cots<'a>;

    fn engine(&self) -> &Engine {
        &self.core.engine
    }

    fn serve(&mut self, sink: &mut Cots<'_>) -> Result<()> {
        self.core.serve(sink)
    }

    fn run(&mut self, channel: &mut Channel, sink: &mut Cots<'_>) -> Result<()> {
        self.iterate(channel, sink)
    }

    fn wipe(&mut self) {
        self.begun = None;
        self.core.wipe();
    }
}

impl Stream for FerretReceiver {
    type Sink<'a> = Cots<'a>;

    fn engine(&self) -> &Engine {
        &self.core.engine
    }

    fn serve(&mut self, sink: &mut Cots<'_>) -> Result<()> {
        self.core.serve(sink)
    }

    fn run(&mut self, channel: &mut Channel, sink: &mut Cots<'_>) -> Result<()> {
        self.iterate(channel, sink)
    }

    fn wipe(&mut self) {
        self.begun = None;
        self.core.wipe();
    }
}

impl CotSender for FerretSender {
    fn delta(&self) -> Block {
        self.delta
    }

    fn extend(&mut self, channel: &mut Channel, out: &mut [Block]) -> Result<()> {
        self.fill(channel, Cots::memory(out))
    }

    fn extend_each(&mut self, channel: &mut Channel, n: usize, each: &mut dyn FnMut(&[Block])) -> Result<()> {
        self.fill(channel, Cots::each(n, each))
    }
}

impl CotReceiver for FerretReceiver {
    fn extend(&mut self, channel: &mut Channel, out: &mut [Block]) -> Result<()> {
        self.fill(channel, Cots::memory(out))
    }

    fn extend_each(&mut self, channel: &mut Channel, n: usize, each: &mut dyn FnMut(&[Block])) -> Result<()> {
        self.fill(channel, Cots::each(n, each))
    }
}

#[cfg(test)]
mod tests {
    use super::super::dealing::Dealer;
    use super::super::params::{Lanes, Params};
    use super::*;
    use crate::silent::tree::opening::CheckMessage;
    use crate::silent::tree::spcot::cheat::Caught;
    use tacit_crypto::ggm::LANES;
    use tacit_crypto::lpn::LOCALITY;
    use tacit_net::{LinkModel, memory};

    const TINY: Params = Params { name: "tiny", k: 256, t: 21, depth: 7, security_bits: 0 };

    fn correlate(config: Config, sizes: &[usize]) {
        correlate_over(LinkModel::LOOPBACK, config, sizes);
    }

    fn in_memory(n: usize, extend: impl FnOnce(&mut [Block]) -> Result<()>) -> Vec<Block> {
        let mut out = vec![Block::ONES; n];
        extend(&mut out).unwrap();
        out
    }

    fn in_pieces(n: usize, extend: impl FnOnce(&mut dyn FnMut(&[Block])) -> Result<()>) -> Vec<Block> {
        let mut out = Vec::with_capacity(n);
        extend(&mut |piece| out.extend_from_slice(piece)).unwrap();
        assert_eq!(out.len(), n);
        out
    }

    /// What one party takes whole the other takes in pieces, in turns.
    fn correlate_over(link: LinkModel, config: Config, sizes: &[usize]) {
        let (mut ds, mut dr) = Dealer::pair(11);
        let delta = ds.delta();
        let (v, w) = memory::run_over(
            link,
            |ch| {
                let mut s = FerretSender::setup(ch, Prg::from_seed(Block::new(1)), config, &mut ds).unwrap();
                let extend = |(i, &n): (usize, &usize)| match i % 2 {
                    0 => in_memory(n, |out| s.extend(ch, out)),
                    _ => in_pieces(n, |each| s.extend_each(ch, n, each)),
                };
                sizes.iter().enumerate().map(extend).collect::<Vec<_>>()
            },
            |ch| {
                let mut r =
                    FerretReceiver::setup(ch, Prg::from_seed(Block::new(2)), config, &mut dr).unwrap();
                let extend = |(i, &n): (usize, &usize)| match i % 2 {
                    0 => in_pieces(n, |each| r.extend_each(ch, n, each)),
                    _ => in_memory(n, |out| r.extend(ch, out)),
                };
                sizes.iter().enumerate().map(extend).collect::<Vec<_>>()
            },
        );
        let (v, w) = (v.concat(), w.concat());
        assert_eq!(v.len(), sizes.iter().sum::<usize>());
        let mut ones = 0usize;
        for (i, (v, w)) in v.iter().zip(&w).enumerate() {
            assert!(!v.lsb(), "bit 0 of v[{i}]");
            ones += w.lsb() as usize;
            assert_eq!(w.to_hex(), (*v ^ (delta & Block::mask(w.lsb()))).to_hex(), "correlation {i}");
        }
        if v.len() > 10_000 {
            let deviation = (ones as f64 - v.len() as f64 / 2.0).abs() / (v.len() as f64 / 4.0).sqrt();
            assert!(deviation < 6.0, "choice bits are off balance by {deviation} standard deviations");
        }
    }

    #[test]
    fn tiny_iterations_of_every_kind() {
        for security in [Security::SemiHonest, Security::Malicious] {
            for lanes in [Lanes::One, Lanes::Four] {
                let config = Config { params: TINY, lanes, security };
                correlate(config, &[0, 1, 2, 100, config.net(), 3, 10 * config.net() + 17, 5000]);
            }
        }
    }

    /// Where the peer's messages are long on their way, A·u of all that is asked for is there before them,
    /// and of a part of it when they come sooner.
    #[test]
    fn what_is_encoded_while_waiting_is_right() {
        for (delay, megabits) in [(3000, 1e6), (0, 20.0), (200, 100.0)] {
            let link = LinkModel::new(megabits, std::time::Duration::from_micros(delay)).unwrap();
            for security in [Security::SemiHonest, Security::Malicious] {
                for lanes in [Lanes::One, Lanes::Four] {
                    let config = Config { params: TINY, lanes, security };
                    let net = config.net();
                    correlate_over(link, config, &[1, net - 1, net, net + 1, 100, 3 * net + 17, net / 2]);
                }
            }
        }
    }

    #[test]
    fn shipped_sets() {
        for params in [Params::E, Params::D, Params::C, Params::B] {
            for lanes in [Lanes::One, Lanes::Four] {
                correlate(Config { params, lanes, security: Security::Malicious }, &[1, 1000, 1_000_001]);
            }
        }
    }

    /// Takes all of what `party` made ahead, `total` correlations, in pieces of `sizes` and a last one.
    fn all_of<P: for<'a> Stream<Sink<'a> = Cots<'a>>>(
        ch: &mut Channel,
        mut party: P,
        left: impl Fn(&P) -> Option<usize>,
        sizes: &[usize],
        total: usize,
    ) -> Vec<Block> {
        let before = ch.stats();
        let mut take = |party: &mut P, out: &mut [Block]| party.fill(ch, Cots::memory(out));
        let (mut out, mut at) = (vec![Block::ONES; total], 0);
        for size in sizes {
            take(&mut party, &mut out[at..at + size]).unwrap();
            at += size;
        }
        assert_eq!(left(&party), Some(total - at));
        // Too much is refused and takes nothing; the rest is there to the last one.
        let mut more = vec![Block::ONES; total - at + 1];
        let error = take(&mut party, &mut more).unwrap_err();
        assert!(matches!(error, Error::Exhausted { left, .. } if left == total - at), "{error}");
        assert!(more.iter().all(|b| *b == Block::ONES));
        take(&mut party, &mut out[at..]).unwrap();
        assert!(matches!(take(&mut party, &mut more[..1]), Err(Error::Exhausted { left: 0, .. })));
        let after = ch.stats();
        assert_eq!(before.bytes_sent, after.bytes_sent, "extension sends nothing");
        assert_eq!(before.bytes_received, after.bytes_received);
        out
    }

    fn ahead(config: Config, iterations: usize, seed: u128) -> (Vec<Block>, Vec<Block>, Block) {
        let (mut ds, mut dr) = Dealer::pair(seed);
        let delta = ds.delta();
        let total = config.total_ahead(iterations);
        let sizes = [1, 0, total / 3, 5000.min(total / 4)];
        let prg = |n: u128| Prg::from_seed(Block::new(seed + n));
        let (v, w) = memory::run(
            |ch| {
                let s = FerretSender::setup_ahead(ch, prg(1), config, iterations, &mut ds).unwrap();
                all_of(ch, s, FerretSender::left, &sizes, total)
            },
            |ch| {
                let r = FerretReceiver::setup_ahead(ch, prg(2), config, iterations, &mut dr).unwrap();
                all_of(ch, r, FerretReceiver::left, &sizes, total)
            },
        );
        (v, w, delta)
    }

    #[test]
    fn iterations_made_ahead_need_no_peer_and_end_with_a_clear_error() {
        for security in [Security::SemiHonest, Security::Malicious] {
            for lanes in [Lanes::One, Lanes::Four] {
                for iterations in [1, 2, 10] {
                    let config = Config { params: TINY, lanes, security };
                    let (v, w, delta) = ahead(config, iterations, 70);
                    let fits = |(v, w): (&Block, &Block)| *w == *v ^ (delta & Block::mask(w.lsb()));
                    assert!(v.iter().zip(&w).all(fits) && v.iter().all(|v| !v.lsb()));
                    let distinct: std::collections::HashSet<u128> = v.iter().map(|v| v.to_u128()).collect();
                    assert_eq!(distinct.len(), v.len(), "an iteration repeats another");
                }
            }
        }
    }

    /// What shows the matrix and the hash key of the round at work.
    fn shown<T: Trees>(core: &mut Core<T>) -> Vec<u128> {
        let rows = (0..6).flat_map(|i| core.rows.code.row(i)).map(u128::from);
        let mut shown: Vec<u128> = rows.collect();
        let mut sums = vec![[Block::ZERO; TILES * LANES]; TINY.depth];
        let each = Some(|_, leaves: &mut [Block]| shown.push(leaves[0].to_u128()));
        let roots = [Block::ONE; TILES * LANES];
        core.expander.expand(0, Block::ONES, &roots, 1, &mut sums, None, each);
        shown
    }

    /// What three iterations of each of two streams show, then three made ahead.
    fn drawn<P: for<'a> Stream<Sink<'a> = Cots<'a>>>(
        ch: &mut Channel,
        setup: impl Fn(&mut Channel, u128) -> P,
        ahead: impl FnOnce(&mut Channel) -> P,
        shown: impl Fn(&mut P) -> Vec<u128>,
    ) -> Vec<Vec<u128>> {
        let (config, mut all) = (TINY_MALICIOUS, Vec::new());
        for stream in [81, 82] {
            let mut party = setup(ch, stream);
            for _ in 0..3 {
                party.fill(ch, Cots::memory(&mut vec![Block::ZERO; config.net()])).unwrap();
                all.push(shown(&mut party));
            }
        }
        let mut party = ahead(ch);
        for _ in 0..3 {
            // The leaf is that of the batch's key.
            all.push(shown(&mut party)[..6 * LOCALITY].to_vec());
            let mut out = vec![Block::ZERO; config.params.samples() - 256];
            party.fill(ch, Cots::memory(&mut out)).unwrap();
        }
        all
    }

    /// Both parties draw the same, and no iteration, stream or session draws what another has drawn.
    /// Iterations made ahead share their trees' keys, which are those of one batch, and nothing else.
    #[test]
    fn every_iteration_has_a_matrix_and_hash_keys_of_its_own() {
        let config = TINY_MALICIOUS;
        let prg = |n: u128| Prg::from_seed(Block::new(n));
        let (sent, received) = memory::run(
            |ch| {
                let setup = |ch: &mut Channel, stream| {
                    FerretSender::setup(ch, prg(1), config, &mut Dealer::pair(stream).0).unwrap()
                };
                let ahead = |ch: &mut Channel| {
                    FerretSender::setup_ahead(ch, prg(1), config, 3, &mut Dealer::pair(81).0).unwrap()
                };
                drawn(ch, setup, ahead, |s| shown(&mut s.core))
            },
            |ch| {
                let setup = |ch: &mut Channel, stream| {
                    FerretReceiver::setup(ch, prg(2), config, &mut Dealer::pair(stream).1).unwrap()
                };
                let ahead = |ch: &mut Channel| {
                    FerretReceiver::setup_ahead(ch, prg(2), config, 3, &mut Dealer::pair(81).1).unwrap()
                };
                drawn(ch, setup, ahead, |r| shown(&mut r.core))
            },
        );
        assert!(sent == received, "the parties differ");
        for (i, one) in sent.iter().enumerate() {
            for other in &sent[..i] {
                assert!(one[..6 * LOCALITY] != other[..6 * LOCALITY], "two iterations have one matrix");
                assert!(one.len() != other.len() || one.last() != other.last(), "or one hash key");
            }
        }
    }

    /// A sender that follows the protocol but for what it changes.
    struct Cheater<'a> {
        /// Its corrections; gets those of the honest message.
        corrections: &'a (dyn Fn(&mut Vec<Block>) + Sync),
        /// What it claims in the check: a moment for each correction.
        claim: &'a (dyn Fn(&mut [Block]) + Sync),
        digest: &'a (dyn Fn(&mut [u8; 32]) + Sync),
    }

    impl Cheater<'_> {
        fn iterate(&self, ch: &mut Channel, s: &mut FerretSender) -> Result<()> {
            let shape = s.core.config.shape();
            let [cots, check_cots] = s.core.begin();
            let mut check = s
                .core
                .engine
                .check(Security::Malicious, |context, round| SenderCheck::new(context, round, shape))
                .expect("malicious");
            let message = Caught::honest(ch, &mut s.prg, &mut s.core.expander, s.delta, shape, &cots)?;
            let mut corrections = message.corrections.clone();
            (self.corrections)(&mut corrections);
            message.send(ch, &corrections)?;
            message.weigh(&mut s.core.expander, &mut check, self.claim);
            let opening = CheckMessage::receive(ch)?;
            let mut digest = check.digest_for(&opening, s.delta, &check_cots);
            (self.digest)(&mut digest);
            ch.send(&digest)?;
            ch.flush()?;
            Ok(())
        }

        /// Runs against an honest receiver that asks for `n` correlations; returns what the receiver says.
        fn run(&self, seed: u128, n: usize) -> (Result<()>, Vec<Block>) {
            let config = TINY_MALICIOUS;
            let (mut ds, mut dr) = Dealer::pair(seed);
            let (_, got) = memory::run(
                |ch| {
                    let prg = Prg::from_seed(Block::new(seed));
                    let mut s = FerretSender::setup(ch, prg, config, &mut ds)?;
                    let cheated = self.iterate(ch, &mut s);
                    // It stays, so that the receiver can send what it will before it reads the digest.
                    while ch.recv(&mut [0]).is_ok() {}
                    cheated
                },
                |ch| {
                    let prg = Prg::from_seed(Block::new(!seed));
                    let mut r = FerretReceiver::setup(ch, prg, config, &mut dr).unwrap();
                    let mut out = vec![Block::ONES; n];
                    let result = r.extend(ch, &mut out);
                    if result.is_err() {
                        assert!(
                            matches!(r.extend(ch, &mut out), Err(Error::Spent(_))),
                            "goes on after a failure"
                        );
                    }
                    (result, out)
                },
            );
            got
        }
    }

    const HONEST: Cheater<'static> = Cheater { corrections: &|_| {}, claim: &|_| {}, digest: &|_| {} };

    const TINY_MALICIOUS: Config = Config { params: TINY, lanes: Lanes::One, security: Security::Malicious };

    /// Whether it is caught when one iteration is asked for, and surely when two are, so that the second
    /// begins before the answer to the check of the first.
    fn caught(cheater: &Cheater<'_>, seed: u128) -> bool {
        let caught = caught_over(cheater, seed, 10);
        assert!(!caught || caught_over(cheater, seed, TINY_MALICIOUS.net() + 10));
        caught
    }

    fn caught_over(cheater: &Cheater<'_>, seed: u128, n: usize) -> bool {
        let (result, out) = cheater.run(seed, n);
        match result {
            Ok(()) => false,
            Err(Error::Cheated { .. }) => {
                assert!(out.iter().all(|b| *b == Block::ZERO), "provisional outputs were left behind");
                true
            }
            Err(other) => panic!("another failure: {other}"),
        }
    }

    #[test]
    fn a_sender_that_lies_is_caught_and_nothing_is_put_out() {
        assert!(!caught(&HONEST, 1));
        let last = TINY_MALICIOUS.shape().corrections() - 1;
        for place in [0, 1, last / 2, last - 4] {
            let flip = |m: &mut Vec<Block>| m[place] ^= Block::new(1 << 77);
            assert!(caught(&Cheater { corrections: &flip, ..HONEST }, 2), "correction {place}");
        }
        // Another Δ in one tree: its corrections shift by the difference where the receiver's bit is set,
        // here everywhere.
        let other_delta =
            |m: &mut Vec<Block>| (0..TINY.depth - 1).for_each(|l| m[4 * l] ^= Block::new(1 << 99));
        assert!(caught(&Cheater { corrections: &other_delta, ..HONEST }, 3));
        assert!(caught(&Cheater { claim: &|moments| moments[last - 9] ^= Block::ONE, ..HONEST }, 4));
        assert!(caught(&Cheater { digest: &|d| d[31] ^= 1, ..HONEST }, 5));
    }

    /// The selective failure that the functionality grants: a bent correction of the last level bends the
    /// punctured leaf and its sibling, so a sender that knows their place up to one bit learns that bit, or
    /// is caught.
    #[test]
    fn guessing_one_bit_of_a_point_succeeds_half_of_the_time() {
        const RUNS: u128 = 400;
        let passed = (0..RUNS).filter(|seed| guess_one_bit(1000 + seed)).count();
        // 200 expected, with a standard deviation of 10.
        assert!((150..=250).contains(&passed), "{passed} of {RUNS}");
    }

    fn guess_one_bit(seed: u128) -> bool {
        const SHALLOW: Params = Params { name: "shallow", k: 64, t: 200, depth: 2, security_bits: 0 };
        let config = Config { params: SHALLOW, lanes: Lanes::One, security: Security::Malicious };
        let (mut ds, mut dr) = Dealer::pair(seed);
        let (_, result) = memory::run(
            |ch| {
                let mut s = FerretSender::setup(ch, Prg::from_seed(Block::new(seed)), config, &mut ds)?;
                let error = Block::new(0x1234_5678 << 40);
                let corrections = |m: &mut Vec<Block>| m[0] ^= error;
                // The guess: bit 0 of the first tree's point is zero, so leaves 0 and 2 are bent, the
                // children of node 2 + 0.
                let claim = |moments: &mut [Block]| moments[0] ^= Block::new(error.to_u128() << 1);
                Cheater { corrections: &corrections, claim: &claim, ..HONEST }.iterate(ch, &mut s)
            },
            |ch| {
                let prg = Prg::from_seed(Block::new(!seed));
                let mut r = FerretReceiver::setup(ch, prg, config, &mut dr).unwrap();
                r.extend(ch, &mut [Block::ZERO; 3])
            },
        );
        match result {
            Ok(()) => true,
            Err(Error::Cheated { .. }) => false,
            Err(other) => panic!("another failure: {other}"),
        }
    }
}
