//! Ferret-Uni: Ferret under LPN with uniform noise (Yang–Weng–Lan–Zhang–Wang 2020/924, figures 7 and 9).
//!
//! - **Realises** random correlated OT with a fixed Δ, against semi-honest or malicious parties, in the
//!   random-oracle and ideal-permutation models, under LPN with uniform noise, a weaker assumption than the
//!   regular noise of `ferret`; for malicious security with static leakage, here through the cuckoo mapping.
//! - **MPCOT**: the t noisy positions are placed by cuckoo hashing in m = 1.5·t buckets of a public partition
//!   with three functions; each bucket is a single-point correlated OT with one slot more, for buckets that
//!   stay empty.
//! - **Rounds and bytes**: an iteration takes two messages, four with the check; 16·m·(depth − 1) bytes from
//!   the sender.
//! - **Computing**: trees are expanded twice: once for corrections and check, in pieces that stay in
//!   first-level cache and without writing a leaf; then one subtree of each after the other, which together
//!   give a *range* of the outputs, small enough for the second-level cache.
//! - **Lanes**: sets with four run four iterations in lockstep, as `ferret` does: the same code and the same
//!   buckets, secrets and noise of their own. A bucket's four trees stand side by side, and so do the samples
//!   that they stand for.
//! - **Memory**: the LPN secret, what is kept for the next iteration, a level of the trees (16·m·2^level
//!   bytes a lane) and one range: about 48 MB with the main set, 46 MB with set A, 26 MB with set B, whatever
//!   the number of outputs.
//!
//! Deviations from the paper: those of `spcot` and the lanes; functions that make buckets of one size (see
//! `cuckoo`), and the number of samples raised to a multiple of m; positions that find no place are drawn
//! anew (probability at most 2^-40).

use super::cuckoo::{Buckets, HASHES};
use super::params::{UNIFORM as NAME, UniConfig, UniParams};
use super::regular::{ROUND, checked_delta};
use crate::silent::engine::carry::Carry;
use crate::silent::engine::seeds::{Pledge, Toss};
use crate::silent::engine::sink::{Memory, Sink};
use crate::silent::engine::stock::Stock;
use crate::silent::engine::{Engine, Stream};
use crate::silent::tree::half::{HalfTrees, Punctured};
use crate::silent::tree::level_check::{ReceiverCheck, SenderCheck};
use crate::silent::tree::opening::{DIGEST, check_cots};
use crate::silent::tree::spcot::{self, SenderTrees};
use crate::silent::tree::subtrees::{Parts, Subtrees};
use crate::{CotReceiver, CotSender, Result, Security};
use tacit_crypto::ggm::LANES;
use tacit_crypto::lpn::LocalCode;
use tacit_crypto::simd::{Backend, scatter};
use tacit_crypto::transcript::Transcript;
use tacit_crypto::{Block, Buffer, Prg};
use tacit_net::Channel;
use zeroize::{Zeroize, Zeroizing};

/// Correlations that are encoded at a time, while the peer's message is waited for.
const ROWS: usize = 1024;
/// Blocks from which on a buffer is on huge pages.
const HUGE: usize = 1 << 17;
/// What A·u is added to while there is no noise.
static NOTHING: [Block; ROWS] = [Block::ZERO; ROWS];

/// All that the parties must agree on.
fn context(config: UniConfig, channel: &mut Channel) -> Transcript {
    let p = config.params;
    let mut context = Transcript::new("tacit ferret-uni v5");
    context.append("session", &channel.session_id().0);
    context.append_u64("instance", channel.next_instance());
    for (label, value) in [
        ("k", p.k),
        ("t", p.t),
        ("m", p.m),
        ("q", p.q),
        ("depth", p.depth),
        ("level", p.level),
        ("lanes", p.lanes.count()),
    ] {
        context.append_u64(label, value as u64);
    }
    context.append_u64("malicious", (config.security == Security::Malicious) as u64);
    context
}

/// What both parties do alike.
struct Core<T> {
    config: UniConfig,
    engine: Engine,
    expander: HalfTrees,
    code: LocalCode,
    buckets: Buckets,
    /// f_i(b) of every i and b, in blocks.
    offsets: [Vec<u32>; HASHES],
    /// An iteration puts its first ranges aside: what the next one needs, the LPN secret first, and a rest
    /// for the caller.
    carry: Carry,
    /// The trees of the iteration at work while some of its ranges are still to be made, from `next` on.
    trees: Option<Subtrees<T>>,
    next: usize,
    /// Blocks of the iteration at work that hold A·u already and lack their noise.
    encoded: usize,
    /// A range in the making: it stays in cache, where the caller's memory has to come first. On a huge page,
    /// as a column's lines are many pages apart.
    range: Buffer,
    /// Correlations of a range of which nobody has asked for all.
    ready: Stock,
}

impl<T: Parts> Core<T> {
    /// [`begin`](Self::begin) draws a round's matrix, buckets and hash keys.
    fn new(config: UniConfig, engine: Engine, reserve: Buffer) -> Self {
        let (p, unused) = (config.params, Block::ZERO);
        Core {
            config,
            engine,
            expander: HalfTrees::new(p.depth, unused),
            code: LocalCode::new(unused, p.k),
            buckets: Buckets::new(unused, p.m, p.q, p.level),
            offsets: core::array::from_fn(|_| vec![0; p.q]),
            carry: Carry::new(reserve),
            trees: None,
            next: 0,
            encoded: 0,
            range: Buffer::zeros(p.range(0).len().max(HUGE)),
            ready: Stock::empty(NAME),
        }
    }

    /// Draws what is public and new in every round: the matrix, for those who share one share what it costs
    /// to solve a part of it; the buckets; the trees' hash keys.
    fn renew(&mut self) {
        let p = self.config.params;
        let mut context = self.engine.of_run(ROUND);
        self.engine.append_seed(&mut context);
        self.code = LocalCode::new(context.challenge_block("matrix"), p.k);
        self.expander.renew(context.challenge_block("tree"));
        self.buckets = Buckets::new(context.challenge_block("buckets"), p.m, p.q, p.level);
        let lanes = p.lanes.count() as u32;
        for b in 0..p.q {
            let of_b = self.buckets.offsets(b as u64);
            self.offsets.iter_mut().zip(of_b).for_each(|(offsets, f)| offsets[b] = lanes * f as u32);
        }
    }

    /// Takes what the last iteration kept: the correlations for trees and for the check.
    fn begin(&mut self) -> [Zeroizing<Vec<Block>>; 2] {
        self.carry.advance();
        self.engine.next();
        self.renew();
        self.encoded = 0;
        let (config, shape) = (self.config, self.config.shape());
        self.carry.split(config.params.secret(), shape.cots(), check_cots(config.security))
    }

    /// After the first run over the trees.
    fn plant(&mut self, trees: T) {
        let config = &self.config;
        self.trees = Some(Subtrees::new(trees, &mut self.expander, config.shape(), config.params.level));
        self.next = 0;
    }

    /// Where `out` takes the first range that is not kept: after the rest of the kept ones.
    fn skip(&self) -> usize {
        self.carry.kept.len() - self.config.reserve()
    }

    /// Computes until `bytes` bytes of the peer's are there, for the kept ranges and those that fit whole
    /// into `out`: figure 9, step 5, begins with A·u, which needs no tree; once there are trees, ranges can
    /// be made. All of it is provisional until the check.
    fn work_while_waiting(&mut self, channel: &mut Channel, bytes: usize, out: &mut [Block]) -> Result<()> {
        let (keep, params) = (self.carry.kept.len(), self.config.params);
        let room = keep + out.len().saturating_sub(self.skip());
        let whole = (self.config.kept_ranges()..params.ranges()).take_while(|r| params.range(*r).end <= room);
        let ranges = whole.last().map_or(self.config.kept_ranges(), |r| r + 1);
        let end = params.range(ranges - 1).end;
        while self.encoded < end && !channel.has_come(bytes)? {
            let from = self.encoded;
            let to = (from + ROWS).min(if from < keep { keep } else { end });
            let rows = match from < keep {
                true => &mut self.carry.kept[from..to],
                false => &mut out[self.carry.kept.len() - self.config.reserve() + from - keep..][..to - from],
            };
            let (lanes, secret) = (params.lanes.count(), &self.carry.current[..params.secret()]);
            self.code.rows_added_to((from / lanes) as u64, secret, lanes, &NOTHING[..to - from], rows);
            self.encoded = to;
        }
        while self.trees.is_some() && self.next < ranges && !channel.has_come(bytes)? {
            self.make_next(out);
        }
        Ok(())
    }

    /// Makes the next range, a kept one or one that `out`, which begins after what is kept, takes whole.
    fn make_next(&mut self, out: &mut [Block]) {
        let range = self.config.params.range(self.next);
        let keep = self.carry.kept.len();
        if range.start < keep {
            let mut kept = std::mem::replace(&mut self.carry.kept, Buffer::zeros(0));
            self.make_range(&mut kept[range]);
            self.carry.kept = kept;
        } else {
            let first = self.skip() + range.start - keep;
            self.make_range(&mut out[first..first + range.len()]);
        }
    }

    /// Figure 7, the last step, v\[x\] = Σ_i s_i\[x's place\], and figure 9, step 5, for the next range.
    fn make_range(&mut self, rows: &mut [Block]) {
        let Core { expander, offsets, config, code, carry, .. } = self;
        let params = &config.params;
        let Some(trees) = &self.trees else { return };
        let range = params.range(self.next);
        let noise = &mut self.range[..range.len()];
        noise.fill(Block::ZERO);
        trees.expand(expander, self.next, |tile, leaves| {
            spread(params, offsets, range.start / params.row(), tile, leaves, noise);
        });
        let encoded = self.encoded.clamp(range.start, range.end);
        let (noise_done, noise) = noise.split_at(encoded - range.start);
        let (done, rest) = rows.split_at_mut(noise_done.len());
        done.iter_mut().zip(noise_done).for_each(|(row, noise)| *row ^= *noise);
        let lanes = params.lanes.count();
        code.rows_added_to((encoded / lanes) as u64, &carry.current[..params.secret()], lanes, noise, rest);
        self.next += 1;
        if self.next == params.ranges() {
            self.trees = None;
        }
    }

    /// After the check: what the next iteration needs is put aside first; then `sink` is served.
    fn passed(&mut self, sink: &mut Memory<'_, Block>) {
        while self.next < self.config.kept_ranges() {
            self.make_next(&mut []);
        }
        let made = self.config.params.range(self.next - 1).end - self.carry.kept.len();
        let rest = &mut self.carry.kept[self.config.reserve()..];
        self.ready = Stock::new(NAME, rest.to_vec());
        rest.zeroize();
        self.ready.serve(sink);
        sink.advance(made);
        self.serve(sink);
    }

    /// Fills `sink` as far as the iteration at work reaches, without the peer.
    fn serve(&mut self, sink: &mut Memory<'_, Block>) {
        self.ready.serve(sink);
        while sink.left() > 0 && self.trees.is_some() {
            let len = self.config.params.range(self.next).len();
            if len <= sink.left() {
                self.make_range(&mut sink.rest()[..len]);
                sink.advance(len);
            } else {
                let mut range = vec![Block::ZERO; len];
                self.make_range(&mut range);
                self.ready = Stock::new(NAME, range);
                self.ready.serve(sink);
            }
        }
    }

    /// After a failure: nothing provisional stays anywhere.
    fn wipe(&mut self) {
        self.trees = None;
        self.ready.zeroize();
        self.carry.wipe();
        self.range.zeroize();
    }
}

/// Adds the leaves under a range's nodes of four trees to the positions that they stand for, whose b counts
/// from `first` on. The trees are those of four buckets, and their positions neighbours but for the turn at
/// m, or one bucket's of four lanes.
fn spread(
    params: &UniParams,
    offsets: &[Vec<u32>; HASHES],
    first: usize,
    tile: usize,
    leaves: &mut [Block],
    rows: &mut [Block],
) {
    let width = params.row();
    let column = tile * LANES;
    let lines = leaves.as_chunks_mut::<LANES>().0;
    // Trees that only fill up the last tile stand for nothing.
    if width - column < LANES {
        lines.iter_mut().for_each(|line| line[width - column..].fill(Block::ZERO));
    }
    let values = rows.len() / width;
    for (offsets, lines) in offsets.iter().zip(lines.chunks_exact(params.width())) {
        let offsets = &offsets[first..first + values];
        scatter::add_lines(Backend::active(), rows, width, column, offsets, &lines[..values]);
    }
}

/// The sender, who holds Δ.
pub struct FerretUniSender {
    core: Core<SenderTrees>,
    delta: Zeroizing<Block>,
    prg: Prg,
}

/// The receiver, whose choice bits are random.
pub struct FerretUniReceiver {
    core: Core<Vec<Punctured>>,
    prg: Prg,
}

impl FerretUniSender {
    /// Sets up from `config.reserve()` correlations of `source`, whose Δ stays.
    ///
    /// Errors: those of the link and of `source`; `Usage` when Δ has bit 0 clear; `Malformed` when the peer's
    /// parameters are others, `Cheated` when it opens another seed than it committed to.
    pub fn setup(
        channel: &mut Channel,
        mut prg: Prg,
        config: UniConfig,
        source: &mut dyn CotSender,
    ) -> Result<Self> {
        config.validate()?;
        let delta = checked_delta(source.delta())?;
        let context = context(config, channel);
        let toss = Toss::receive(channel, &context, &mut prg, NAME)?;
        let mut reserve = Buffer::zeros(config.kept());
        source.extend(channel, &mut reserve[..config.reserve()])?;
        toss.contribute(channel)?;
        let joint = toss.finish(channel)?;
        let engine = Engine::new(NAME, context, joint);
        let delta = Zeroizing::new(delta);
        Ok(FerretUniSender { core: Core::new(config, engine, reserve), delta, prg })
    }

    /// Ties this stream to `other`: when one fails, both are spent.
    pub(super) fn tie(&mut self, other: &Self) {
        self.core.engine.tie(&other.core.engine);
    }

    /// One iteration, which serves `sink`.
    fn iterate(&mut self, channel: &mut Channel, sink: &mut Memory<'_, Block>) -> Result<()> {
        let out = sink.rest();
        let FerretUniSender { core, delta, prg } = self;
        let shape = core.config.shape();
        let [cots, check_cots] = core.begin();
        core.work_while_waiting(channel, shape.cots().div_ceil(8), out)?;
        let security = core.config.security;
        let mut check = core.engine.check(security, |context, round| SenderCheck::new(context, round, shape));
        let expander = &mut core.expander;
        let trees = spcot::send_each(channel, prg, expander, **delta, shape, &cots, check.as_mut(), None)?;
        core.plant(trees);
        if let Some(check) = check {
            core.work_while_waiting(channel, ReceiverCheck::OPENING, out)?;
            check.answer(channel, **delta, &check_cots)?;
        }
        core.passed(sink);
        Ok(())
    }
}

impl FerretUniReceiver {
    /// Sets up from `config.reserve()` correlations of `source`.
    pub fn setup(
        channel: &mut Channel,
        mut prg: Prg,
        config: UniConfig,
        source: &mut dyn CotReceiver,
    ) -> Result<Self> {
        config.validate()?;
        let context = context(config, channel);
        let pledge = Pledge::send(channel, &context, &mut prg, false, NAME)?;
        let mut reserve = Buffer::zeros(config.kept());
        source.extend(channel, &mut reserve[..config.reserve()])?;
        let joint = pledge.toss(channel)?;
        let engine = Engine::new(NAME, context, joint);
        Ok(FerretUniReceiver { core: Core::new(config, engine, reserve), prg })
    }

    /// Ties this stream to `other`: when one fails, both are spent.
    pub(super) fn tie(&mut self, other: &Self) {
        self.core.engine.tie(&other.core.engine);
    }

    /// Figure 7, steps 1 to 3, for each lane: t uniform positions, placed; the punctured leaf of every
    /// bucket's tree.
    fn points(&mut self) -> Vec<u32> {
        let FerretUniReceiver { core, prg } = self;
        let lanes = core.config.params.lanes.count();
        // Trees that only fill up the last tile keep the first leaf.
        let mut points = vec![0; core.config.shape().tiles * LANES];
        for lane in 0..lanes {
            let leaves = core.buckets.place(prg, core.config.params.t);
            points.iter_mut().skip(lane).step_by(lanes).zip(leaves).for_each(|(point, leaf)| *point = leaf);
        }
        points
    }

    /// One iteration, which serves `sink`. The first run over the trees goes on as their corrections come,
    /// for the check.
    fn iterate(&mut self, channel: &mut Channel, sink: &mut Memory<'_, Block>) -> Result<()> {
        let out = sink.rest();
        let shape = self.core.config.shape();
        let [cots, check_cots] = self.core.begin();
        let points = self.points();
        let core = &mut self.core;
        let mut trees = spcot::choose_points(channel, points, shape, &cots)?;
        let security = core.config.security;
        let check = |context: &Transcript, round| ReceiverCheck::new(context, round, shape, &mut self.prg);
        let mut check = core.engine.check(security, check);
        core.work_while_waiting(channel, size_of::<Block>(), out)?;
        trees.receive_seed(channel, &cots)?;
        let mut punctured = Vec::with_capacity(shape.groups());
        for group in 0..shape.groups() {
            core.work_while_waiting(channel, size_of::<Block>() * shape.corrections_in(group), out)?;
            trees.receive_group(channel, group)?;
            punctured.push(trees.solve(&mut core.expander, group, check.as_mut(), None));
        }
        let opened = check.map(|check| check.open(channel, &check_cots)).transpose()?;
        core.plant(punctured);
        if let Some(expected) = opened {
            core.work_while_waiting(channel, DIGEST, out)?;
            core.engine.receive_digest(channel, &expected)?;
        }
        core.passed(sink);
        Ok(())
    }
}

impl Stream for FerretUniSender {
    type Sink<'a> = Memory<'a, Block>;

    fn engine(&self) -> &Engine {
        &self.core.engine
    }

    fn serve(&mut self, sink: &mut Memory<'_, Block>) -> Result<()> {
        self.core.serve(sink);
        Ok(())
    }

    fn run(&mut self, channel: &mut Channel, sink: &mut Memory<'_, Block>) -> Result<()> {
        self.iterate(channel, sink)
    }

    fn wipe(&mut self) {
        self.core.wipe();
    }
}

impl Stream for FerretUniReceiver {
    type Sink<'a> = Memory<'a, Block>;

    fn engine(&self) -> &Engine {
        &self.core.engine
    }

    fn serve(&mut self, sink: &mut Memory<'_, Block>) -> Result<()> {
        self.core.serve(sink);
        Ok(())
    }

    fn run(&mut self, channel: &mut Channel, sink: &mut Memory<'_, Block>) -> Result<()> {
        self.iterate(channel, sink)
    }

    fn wipe(&mut self) {
        self.core.wipe();
    }
}

impl CotSender for FerretUniSender {
    fn delta(&self) -> Block {
        *self.delta
    }

    fn extend(&mut self, channel: &mut Channel, out: &mut [Block]) -> Result<()> {
        self.fill(channel, Memory::new(out))
    }
}

impl CotReceiver for FerretUniReceiver {
    fn extend(&mut self, channel: &mut Channel, out: &mut [Block]) -> Result<()> {
        self.fill(channel, Memory::new(out))
    }
}

#[cfg(test)]
mod tests {
    use super::super::dealing::Dealer;
    use super::super::params::Lanes;
    use super::*;
    use crate::Error;
    use crate::silent::tree::spcot::cheat::Caught;
    use tacit_net::{LinkModel, memory};

    const TINY: UniParams = UniParams {
        name: "tiny",
        k: 256,
        t: 26,
        m: 39,
        q: 40,
        depth: 7,
        level: 2,
        lanes: Lanes::One,
        security_bits: 0,
    };
    const SHAPES: [UniParams; 2] = [TINY, UniParams { lanes: Lanes::Four, ..TINY }];

    fn correlate(config: UniConfig, sizes: &[usize]) {
        correlate_over(LinkModel::LOOPBACK, config, sizes);
    }

    fn taken<P: for<'a> Stream<Sink<'a> = Memory<'a, Block>>>(
        ch: &mut Channel,
        mut party: P,
        sizes: &[usize],
    ) -> Vec<Block> {
        let mut all = Vec::new();
        for &n in sizes {
            let mut out = vec![Block::ONES; n];
            party.fill(ch, Memory::new(&mut out)).unwrap();
            all.extend(out);
        }
        all
    }

    fn correlate_over(link: LinkModel, config: UniConfig, sizes: &[usize]) {
        let (mut ds, mut dr) = Dealer::pair(11);
        let delta = ds.delta();
        let prg = |seed: u128| Prg::from_seed(Block::new(seed));
        let (v, w) = memory::run_over(
            link,
            |ch| {
                let s = FerretUniSender::setup(ch, prg(1), config, &mut ds).unwrap();
                taken(ch, s, sizes)
            },
            |ch| {
                let r = FerretUniReceiver::setup(ch, prg(2), config, &mut dr).unwrap();
                taken(ch, r, sizes)
            },
        );
        assert_eq!(v.len(), sizes.iter().sum::<usize>());
        for (i, (v, w)) in v.iter().zip(&w).enumerate() {
            assert!(!v.lsb(), "bit 0 of v[{i}]");
            assert!(*w == *v ^ (delta & Block::mask(w.lsb())), "correlation {i}");
        }
        let ones = w.iter().filter(|w| w.lsb()).count() as f64;
        let deviation = (ones - v.len() as f64 / 2.0).abs() / (v.len() as f64 / 4.0).sqrt();
        assert!(v.len() < 10_000 || deviation < 6.0, "choice bits are off balance by {deviation}");
    }

    #[test]
    fn tiny_iterations() {
        for security in [Security::SemiHonest, Security::Malicious] {
            for params in SHAPES {
                let config = UniConfig { params, security };
                correlate(config, &[0, 1, 2, 100, config.net(), 3, 10 * config.net() + 17, 5000]);
            }
        }
    }

    #[test]
    fn what_is_encoded_while_waiting_is_right() {
        for (delay, megabits) in [(3000, 1e6), (0, 20.0), (200, 100.0)] {
            let link = LinkModel::new(megabits, std::time::Duration::from_micros(delay)).unwrap();
            for security in [Security::SemiHonest, Security::Malicious] {
                for params in SHAPES {
                    let config = UniConfig { params, security };
                    correlate_over(link, config, &[1, config.net(), 100, 3 * config.net() + 17]);
                }
            }
        }
    }

    #[test]
    fn shipped_sets() {
        let sizes: &[(UniParams, &[usize])] = &[
            (UniParams::SETUP, &[1, 1000, 1_000_001]),
            (UniParams::B, &[1, 1_000_001, 5_500_000]),
            (UniParams::A, &[1, 1_000_001]),
            (UniParams::MAIN, &[1, 1_000_001]),
        ];
        for (params, sizes) in sizes {
            correlate(UniConfig { params: *params, security: Security::Malicious }, sizes);
        }
    }

    /// The noise has weight t, and stands where the receiver put it: nowhere else do the two sums differ.
    #[test]
    fn noise_is_of_weight_t_in_every_lane() {
        SHAPES.into_iter().for_each(noise_of);
    }

    fn noise_of(params: UniParams) {
        let config = UniConfig { params, security: Security::Malicious };
        let (mut ds, mut dr) = Dealer::pair(12);
        let delta = ds.delta();
        let (v, w) = memory::run(
            |ch| {
                let prg = Prg::from_seed(Block::new(1));
                let mut s = FerretUniSender::setup(ch, prg, config, &mut ds).unwrap();
                let shape = config.shape();
                let [cots, _] = s.core.begin();
                let trees =
                    spcot::send(ch, &mut s.prg, &mut s.core.expander, *s.delta, shape, &cots).unwrap();
                s.core.plant(trees);
                noise(&mut s.core)
            },
            |ch| {
                let prg = Prg::from_seed(Block::new(2));
                let mut r = FerretUniReceiver::setup(ch, prg, config, &mut dr).unwrap();
                let [cots, _] = r.core.begin();
                let points = r.points();
                let mut trees = spcot::choose_points(ch, points, config.shape(), &cots).unwrap();
                trees.receive(ch, &cots).unwrap();
                let solve = |group| trees.solve(&mut r.core.expander, group, None, None);
                let punctured = (0..config.shape().groups()).map(solve).collect();
                r.core.plant(punctured);
                noise(&mut r.core)
            },
        );
        let lanes = params.lanes.count();
        for lane in 0..lanes {
            let of_lane = v.iter().zip(&w).skip(lane).step_by(lanes);
            let noisy: Vec<_> = of_lane.filter(|(v, w)| v != w).collect();
            assert_eq!(noisy.len(), params.t);
            assert!(noisy.iter().all(|(v, w)| **w == **v ^ delta));
        }
    }

    /// The ranges without A·u.
    fn noise<T: Parts>(core: &mut Core<T>) -> Vec<Block> {
        let params = core.config.params;
        let samples = params.row() * params.q;
        core.encoded = samples;
        let mut noise = vec![Block::ZERO; samples];
        (0..params.ranges()).for_each(|r| core.make_range(&mut noise[params.range(r)]));
        noise
    }

    /// A sender that gives a bucket the tree of another one: every run is caught, and nothing is put out.
    #[test]
    fn a_wrong_cuckoo_bucket_is_caught() {
        for (seed, params) in (0..20).flat_map(|seed| SHAPES.map(|params| (seed, params))) {
            let config = UniConfig { params, security: Security::Malicious };
            let (mut ds, mut dr) = Dealer::pair(100 + seed);
            let (_, (result, out)) = memory::run(
                |ch| -> Result<()> {
                    let prg = Prg::from_seed(Block::new(seed));
                    let mut s = FerretUniSender::setup(ch, prg, config, &mut ds)?;
                    let shape = config.shape();
                    let [cots, check_cots] = s.core.begin();
                    let mut check = s
                        .core
                        .engine
                        .check(config.security, |context, round| SenderCheck::new(context, round, shape))
                        .expect("malicious");
                    let expander = &mut s.core.expander;
                    let message = Caught::honest(ch, &mut s.prg, expander, *s.delta, shape, &cots)?;
                    let mut corrections = message.corrections.clone();
                    // What unmasks one bucket's corrections is put on another's: trees `seed % 39` and the
                    // next.
                    let place = |tree: usize, level| {
                        (tree / LANES * (shape.depth - 1) + level - 1) * LANES + tree % LANES
                    };
                    let one = seed as usize % TINY.m;
                    let other = (one + 1) % TINY.m;
                    for level in 1..shape.depth {
                        let (x, y) = (place(one, level), place(other, level));
                        let masks = cots[shape.cot(one, level)] ^ cots[shape.cot(other, level)];
                        corrections.swap(x, y);
                        corrections[x] ^= masks;
                        corrections[y] ^= masks;
                    }
                    message.send(ch, &corrections)?;
                    message.weigh(expander, &mut check, &|_| {});
                    check.answer(ch, *s.delta, &check_cots)
                },
                |ch| {
                    let prg = Prg::from_seed(Block::new(!seed));
                    let mut r = FerretUniReceiver::setup(ch, prg, config, &mut dr).unwrap();
                    let mut out = vec![Block::ONES; 10];
                    let result = r.extend(ch, &mut out);
                    assert!(matches!(r.extend(ch, &mut [Block::ONES]), Err(Error::Spent(_))));
                    (result, out)
                },
            );
            assert!(matches!(result, Err(Error::Cheated { .. })), "{result:?}");
            assert!(out.iter().all(|b| *b == Block::ZERO), "provisional outputs were left behind");
        }
    }
}
