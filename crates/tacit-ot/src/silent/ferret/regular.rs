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
use crate::silent::tree::opening::{DIGEST, check_cots};
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
        // proof: ferret 2.2
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
pub(super) fn context(config: Config, channel: &mut Channel, ahead: usize) -> Transcript {
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
    delta: Zeroizing<Block>,
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

/// What the sender's answer to the check of an iteration takes.
pub(super) struct Asked(Option<(SenderCheck, Correlations)>);

/// What the receiver has of an iteration whose bits are on their way, perhaps while the one before is
/// checked.
struct Begun {
    trees: ReceiverTrees,
    cots: Correlations,
    check_cots: Correlations,
}

pub(super) fn checked_delta(delta: Block) -> Result<Block> {
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
        let delta = checked_delta(source.delta())?;
        let context = context(config, channel, 0);
        // proof: ferret 2.1
        let toss = Toss::receive(channel, &context, &mut prg, NAME)?;
        let mut reserve = Buffer::zeros(config.reserve());
        source.extend(channel, &mut reserve)?;
        toss.contribute(channel)?;
        let joint = toss.finish(channel)?;
        Ok(Self::with(config, context, joint, reserve, delta, prg))
    }

    /// The sender behind its setup.
    pub(super) fn with(
        config: Config,
        context: Transcript,
        joint: [u8; 32],
        reserve: Buffer,
        delta: Block,
        prg: Prg,
    ) -> Self {
        let engine = Engine::new(NAME, context, joint);
        let delta = Zeroizing::new(delta);
        FerretSender { core: Core::new(config, engine, reserve), delta, prg, begun: None }
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
        let delta = checked_delta(source.delta())?;
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
        Ok(FerretSender { core, delta: Zeroizing::new(delta), prg, begun: None })
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
    fn iterate(&mut self, channel: &mut Channel, sink: &mut Cots<'_>) -> Result<()> {
        let asked = self.deal(channel, sink)?;
        self.answer(channel, sink, asked)
    }

    /// An iteration up to its last correction; gives what the check takes.
    ///
    /// The trees that are expanded for their corrections give the outputs and the check's sum too.
    pub(super) fn deal(&mut self, channel: &mut Channel, sink: &mut Cots<'_>) -> Result<Asked> {
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
            *self.delta,
            shape,
            &cots,
            check.as_mut(),
            Some(&mut each),
        )?;
        self.core.keep_trees(trees);
        Ok(Asked(check.map(|check| (check, check_cots))))
    }

    /// The rest of it.
    pub(super) fn answer(&mut self, channel: &mut Channel, sink: &mut Cots<'_>, asked: Asked) -> Result<()> {
        if let Some((check, cots)) = asked.0 {
            if sink.left() > 0 {
                self.begun = Some(self.core.begin());
                self.core.rows.encode_while_waiting(channel, ReceiverCheck::OPENING, sink)?;
            }
            check.answer(channel, *self.delta, &cots)?;
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
        Ok(Self::with(config, context, pledge.toss(channel)?, reserve, prg))
    }

    /// The receiver behind its setup.
    pub(super) fn with(
        config: Config,
        context: Transcript,
        joint: [u8; 32],
        reserve: Buffer,
        prg: Prg,
    ) -> Self {
        let engine = Engine::new(NAME, context, joint);
        FerretReceiver { core: Core::new(config, engine, reserve), prg, begun: None }
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
            core.engine.receive_digest(channel, &expected)?;
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

    /// One iteration, which serves `sink` as far as it reaches.
    fn iterate(&mut self, channel: &mut Channel, sink: &mut Cots<'_>) -> Result<()> {
        self.choose(channel)?;
        let expected = self.solve(channel, sink)?;
        // proof: ferret 3.4
        if expected.is_some() && sink.left() > 0 {
            self.choose(channel)?;
        }
        self.compare(channel, sink, expected)
    }

    /// Begins an iteration, unless it has begun.
    pub(super) fn choose(&mut self, channel: &mut Channel) -> Result<()> {
        if self.begun.is_none() {
            self.begun = Some(self.begin(channel)?);
        }
        Ok(())
    }

    /// An iteration that has begun, up to the opening of its check; gives what the sender has to answer.
    ///
    /// Trees are expanded as their corrections come, for the outputs and the check together.
    pub(super) fn solve(
        &mut self,
        channel: &mut Channel,
        sink: &mut Cots<'_>,
    ) -> Result<Option<[u8; DIGEST]>> {
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
        check.map(|check| check.open(channel, &check_cots)).transpose()
    }

    /// The rest of it, while the next one may have begun.
    pub(super) fn compare(
        &mut self,
        channel: &mut Channel,
        sink: &mut Cots<'_>,
        expected: Option<[u8; DIGEST]>,
    ) -> Result<()> {
        let Some(expected) = expected else { return Ok(()) };
        if self.begun.is_some() {
            self.core.rows.encode_while_waiting(channel, DIGEST, sink)?;
        }
        // proof: ferret 2.6
        self.core.engine.receive_digest(channel, &expected)
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
        *self.delta
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
mod tests;
