//! Ferret: bootstrapped silent correlated OT from primal LPN (Yang–Weng–Lan–Zhang–Wang 2020/924, figure 9).
//!
//! - **Realises** random correlated OT with a fixed Δ (figure 1), against semi-honest or malicious parties, in the
//!   random-oracle and ideal-permutation models, under LPN with regular noise and, for malicious security, static
//!   leakage (a cheating sender learns one bit of the noise on average or is caught).
//! - **Rounds**: an iteration takes two messages, four with the check, of which two go with the next iteration's. **Bytes**: 16·t·(log(N/t) − 1) a lane from the sender
//!   and an eighth of a byte a level from the receiver; 16 more for a seed and 64 for the check.
//! - **Setup**: correlations from any [`CotSender`]/[`CotReceiver`] pair of the same Δ, KOS as a rule, or a smaller
//!   Ferret (the two-level setup of section 6.2).
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

use crate::silent::engine::seeds::{Pledge, Toss};
use crate::silent::engine::stock::Stock;
use crate::silent::tree::half::{HalfTrees, TILES};
use crate::silent::tree::spcot::{
    self, ReceiverCheck, ReceiverTrees, SenderCheck, SenderTrees, Shape, Trees,
};
use crate::{CotReceiver, CotSender, Error, Result, Security};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tacit_crypto::ggm::LANES;
use tacit_crypto::lpn::LocalCode;
use tacit_crypto::transcript::Transcript;
use tacit_crypto::{Block, Buffer, KAPPA, Prg};
use tacit_net::Channel;
use zeroize::{Zeroize, Zeroizing};

const NAME: &str = "ferret";
/// Rows that are encoded at a time, while they are in cache.
const ROWS: usize = 512;
/// Correlations encoded before their leaves are there, at most, when the caller takes them piece by piece.
const AHEAD: usize = 1 << 20;

/// An LPN parameter set with regular noise: N = t·2^depth samples, a secret of k bits, t noisy positions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Params {
    /// The set's name on the command line.
    pub name: &'static str,
    /// Length of the LPN secret.
    pub k: usize,
    /// Number of noisy positions, one in each block of 2^depth.
    pub t: usize,
    /// Depth of a tree.
    pub depth: usize,
    /// Estimated security in bits, four lanes of one iteration sharing a matrix: the least of the attacks
    /// counted in docs/lpn-security.md, that on a 10-local matrix included.
    pub security_bits: u32,
}

/// Sets below this protect nobody: no session takes them and nothing reports them as secure.
pub const LEAST_SECURITY_BITS: u32 = 128;

impl Params {
    /// About 10^7 correlations an iteration, the least traffic.
    pub const A: Params = Params { name: "a", k: 31 << 15, t: 1360, depth: 13, security_bits: 137 };
    /// About 10^6 an iteration.
    pub const B: Params = Params { name: "b", k: 1 << 17, t: 1200, depth: 10, security_bits: 138 };
    /// Small requests, and the setup of larger sets.
    pub const C: Params = Params { name: "c", k: 1 << 16, t: 1180, depth: 9, security_bits: 136 };
    /// Fast on a LAN: 4 bits a correlation.
    pub const D: Params = Params { name: "d", k: 1 << 15, t: 1080, depth: 8, security_bits: 136 };
    /// Fastest: 7 bits a correlation.
    pub const E: Params = Params { name: "e", k: 9 << 11, t: 2100, depth: 7, security_bits: 136 };
    /// The main iteration of the paper's table 2. For measuring alone: A is 10-local, which the paper does
    /// not count.
    pub const PAPER: Params = Params { name: "paper", k: 589_760, t: 1319, depth: 13, security_bits: 90 };
    /// The setup iteration of the paper's table 2, for measuring alone. k is raised from 36,288, which gives
    /// 127 bits only even against what the paper counts, and N to whole trees, for which k = 37,888 would
    /// give 127 again.
    pub const PAPER_SETUP: Params =
        Params { name: "paper-setup", k: 39_936, t: 1269, depth: 9, security_bits: 88 };

    /// Every set that a session may use, by name.
    pub const ALL: [Params; 5] = [Self::A, Self::B, Self::C, Self::D, Self::E];
    /// Sets that reproduce the paper's tables and protect nobody: for [measuring](Self::for_measuring) alone.
    pub const PAPERS: [Params; 2] = [Self::PAPER, Self::PAPER_SETUP];

    /// The set called `name` among [`ALL`](Self::ALL).
    pub fn by_name(name: &str) -> Option<Params> {
        Self::ALL.into_iter().find(|p| p.name == name)
    }

    /// The set called `name` among all there are, [the papers'](Self::PAPERS) included.
    pub fn for_measuring(name: &str) -> Option<Params> {
        Self::ALL.into_iter().chain(Self::PAPERS).find(|p| p.name == name)
    }

    /// N, the LPN samples of one iteration.
    pub const fn samples(&self) -> usize {
        self.t << self.depth
    }
}

/// How many iterations run in lockstep.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lanes {
    /// One at a time: least latency, for small requests.
    One,
    /// Four, interleaved: most throughput.
    Four,
}

impl Lanes {
    /// The number of lanes.
    pub const fn count(self) -> usize {
        match self {
            Lanes::One => 1,
            Lanes::Four => LANES,
        }
    }
}

/// What both parties must agree on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// The LPN parameters.
    pub params: Params,
    /// Iterations in lockstep.
    pub lanes: Lanes,
    /// Whether the consistency check runs.
    pub security: Security,
}

impl Config {
    /// What a run with these parameters protects against; `None` if the set has too few bits for any peer.
    pub fn protects(&self) -> Option<Security> {
        (self.params.security_bits >= LEAST_SECURITY_BITS).then_some(self.security)
    }

    fn shape(&self) -> Shape {
        let trees = self.params.t * self.lanes.count();
        Shape { tiles: trees.div_ceil(LANES), depth: self.params.depth }
    }

    fn check_cots(&self) -> usize {
        match self.security {
            Security::SemiHonest => 0,
            Security::Malicious => KAPPA,
        }
    }

    /// The shape of the trees of `iterations` iterations together.
    fn shape_of(&self, iterations: usize) -> Result<Shape> {
        let shape = self.shape();
        let usable = iterations > 0 && iterations.saturating_mul(shape.cots()) <= 1 << 28;
        if !usable {
            return Err(Error::Usage {
                protocol: NAME,
                what: "no such number of iterations can be made ahead",
            });
        }
        Ok(Shape { tiles: shape.tiles * iterations, ..shape })
    }

    fn secret(&self) -> usize {
        self.params.k * self.lanes.count()
    }

    /// Bytes on the wire of an iteration, the check apart.
    pub(super) fn tree_bytes(&self) -> usize {
        self.shape().bytes()
    }

    /// Correlations that a setup consumes, and that every iteration keeps for the next.
    pub fn reserve(&self) -> usize {
        (self.secret() + self.shape().cots() + self.check_cots()).next_multiple_of(self.lanes.count())
    }

    /// Correlations that an iteration (of all lanes) makes for the caller.
    pub fn net(&self) -> usize {
        self.params.samples() * self.lanes.count() - self.reserve()
    }

    /// Correlations that a setup of `iterations` iterations ahead consumes.
    pub fn reserve_ahead(&self, iterations: usize) -> usize {
        self.secret() + self.shape().cots() * iterations + self.check_cots()
    }

    /// Correlations that `iterations` iterations made ahead give in all.
    pub fn total_ahead(&self, iterations: usize) -> usize {
        iterations * self.params.samples() * self.lanes.count() - iterations.saturating_sub(1) * self.secret()
    }

    fn validate(&self) -> Result<()> {
        let p = &self.params;
        let usable = p.t > 0 && (2..=24).contains(&p.depth) && p.k > 0 && p.k <= 1 << 31;
        if !usable || self.params.samples() * self.lanes.count() <= self.reserve() {
            return Err(Error::Usage { protocol: NAME, what: "the parameter set makes no correlations" });
        }
        Ok(())
    }
}

/// Whether any stream of one setup has failed; then none of them goes on.
#[derive(Clone, Default)]
pub(crate) struct Spent(Arc<AtomicBool>);

impl Spent {
    pub(crate) fn set(&self) {
        self.0.store(true, Ordering::Release);
    }

    pub(crate) fn check(&self, protocol: &'static str) -> Result<()> {
        if self.0.load(Ordering::Acquire) { Err(Error::Spent(protocol)) } else { Ok(()) }
    }
}

/// What both parties do alike.
struct Core<T> {
    config: Config,
    /// Session and parameters.
    context: Transcript,
    /// What both parties contributed to and neither chose.
    joint: [u8; 32],
    expander: HalfTrees,
    rows: Rows,
    /// The trees of the iteration at work while some of its groups are still to be served.
    trees: Option<T>,
    ahead: Option<Ahead>,
    round: u64,
    spent: Spent,
}

/// Turns leaves and the LPN secret into correlations, tile by tile.
struct Rows {
    config: Config,
    code: LocalCode,
    /// What the last iteration put aside: the LPN secret of the one at work first, lanes interleaved.
    current: Buffer,
    /// What the iteration at work puts aside for the next, its first `keep` correlations: its secret, then correlations
    /// for trees and check.
    kept: Buffer,
    keep: usize,
    /// The first tile of the iteration at work, and its next group of tiles.
    first_tile: usize,
    next_group: usize,
    /// Correlations of the iteration at work that hold A·u already and lack their leaves, in whole tiles.
    encoded: usize,
    /// A·u of the last of them, for a caller who takes correlations piece by piece and has no memory for it.
    ahead: Zeroizing<Vec<Block>>,
    /// Correlations of a group of which nobody has asked for all.
    ready: Stock,
}

/// Where the correlations of a group go, but those that are kept.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// To the caller, all of them.
    Caller,
    /// To the buffer, for the caller takes a part.
    Buffer,
    /// Nowhere yet.
    Later,
}

/// What is left of the iterations whose trees were all made ahead.
struct Ahead {
    /// Iterations after the one at work.
    iterations: usize,
    /// Correlations to come, in all.
    left: usize,
}

impl Rows {
    /// Goes on to the next iteration, with what the last one kept and the matrix of `seed`.
    fn advance(&mut self, seed: Block) {
        self.code = LocalCode::new(seed, self.config.params.k);
        std::mem::swap(&mut self.current, &mut self.kept);
        self.next_group = 0;
        self.encoded = 0;
    }

    /// Correlations of an iteration, those it keeps included.
    fn total(&self) -> usize {
        self.config.params.samples() * self.config.lanes.count()
    }

    /// Correlations of a tile.
    fn tile(&self) -> usize {
        LANES << self.config.params.depth
    }

    /// Correlations of the groups that were made.
    fn made(&self) -> usize {
        self.total().min(self.next_group * TILES * self.tile())
    }

    /// Where the next group goes when the caller's memory takes `room` correlations of it and the following ones.
    fn place(&self, room: usize) -> Place {
        let to = self.total().min(self.made() + TILES * self.tile());
        let (served, ready) = (self.made().max(self.keep), to.max(self.keep));
        match ready - served {
            n if n <= room => Place::Caller,
            _ if room > 0 => Place::Buffer,
            _ => Place::Later,
        }
    }

    /// Begins the next group: makes room in the buffer if it goes there.
    fn begin_group(&mut self, place: Place) {
        if place == Place::Buffer {
            self.ready = Stock::new(NAME, Vec::with_capacity(TILES * self.tile()));
        }
    }

    /// Adds A·u to `rows`, a stretch of the iteration's correlations from `first` on.
    fn encode(&self, first: usize, rows: &mut [Block]) {
        let lanes = self.config.lanes.count();
        self.code.add_rows((first / lanes) as u64, &self.current[..self.config.secret()], lanes, rows);
    }

    /// Fig. 9, step 5, for one tile of the next group. `sink` takes what follows the groups made so far.
    fn add(&mut self, tile: usize, leaves: &mut [Block], sink: &mut Sink<'_>) {
        let lanes = self.config.lanes.count();
        let first = (tile - self.first_tile) * self.tile();
        let leaves = trim(leaves, self.tile().min(self.total() - first), self.config.lanes);
        let encoded = first < self.encoded;
        let secret = &self.current[..self.config.secret()];
        let put = |first: usize, leaves: &[Block], slots: &mut [Block]| match encoded {
            true => xor_into(slots, leaves),
            false => self.code.rows_added_to((first / lanes) as u64, secret, lanes, leaves, slots),
        };
        let (aside, rest) = leaves.split_at_mut(self.keep.saturating_sub(first).min(leaves.len()));
        let from = first.max(self.keep);
        put(first, aside, &mut self.kept[first.min(self.keep)..][..aside.len()]);
        let at = from - self.made().max(self.keep);
        match (sink.place, &mut sink.to) {
            (Place::Caller, Taker::Memory(out)) => {
                put(from, rest, &mut out[sink.filled + at..][..rest.len()]);
            }
            (Place::Caller, Taker::Each(each)) if encoded => {
                let left = self.ahead.len() - (self.encoded.max(self.keep) - from);
                xor_into(rest, &self.ahead[left..][..rest.len()]);
                if left + rest.len() == self.ahead.len() {
                    self.ahead.clear();
                }
                each(rest);
            }
            (Place::Caller, Taker::Each(each)) => {
                for (i, rows) in rest.chunks_mut(ROWS * lanes).enumerate() {
                    self.encode(from + i * ROWS * lanes, rows);
                    each(rows);
                }
            }
            _ => {
                self.encode(from, rest);
                self.ready.add(rest);
            }
        }
    }

    /// Computes until `bytes` bytes of the peer's are there: A·u needs no tree, so it can be made first, for what is
    /// kept and for `sink`, which takes what follows the groups made so far.
    fn encode_while_waiting(
        &mut self,
        channel: &mut Channel,
        bytes: usize,
        sink: &mut Sink<'_>,
    ) -> Result<()> {
        let (lanes, keep, made) = (self.config.lanes.count(), self.keep, self.made());
        // A group that does not fit goes to the buffer later on.
        let room = made.max(keep) + sink.left();
        let end = if room < self.total() { room - room % (TILES * self.tile()) } else { self.total() };
        self.encoded = self.encoded.max(made);
        while self.encoded < end && !channel.has_come(bytes)? {
            let from = self.encoded;
            let to = end.min(from + self.tile());
            let ahead = from.max(keep)..to.max(keep);
            let out = match &mut sink.to {
                Taker::Memory(out) => {
                    let at = sink.filled + ahead.start - made.max(keep);
                    &mut out[at..at + ahead.len()]
                }
                Taker::Each(_) => {
                    let (at, wanted) = (self.ahead.len(), end.max(keep) - ahead.start);
                    let wanted = wanted.min(AHEAD.max(self.tile()));
                    if at == 0 && self.ahead.capacity() < wanted {
                        self.ahead = Zeroizing::new(Vec::with_capacity(wanted));
                    }
                    // Growing would leave copies behind.
                    if self.ahead.capacity() - at < ahead.len() {
                        break;
                    }
                    self.ahead.resize(at + ahead.len(), Block::ZERO);
                    &mut self.ahead[at..]
                }
            };
            let kept = &mut self.kept[from.min(keep)..to.min(keep)];
            let secret = &self.current[..self.config.secret()];
            for (first, place) in [(from, kept), (ahead.start, out)] {
                for (i, rows) in place.chunks_mut(ROWS * lanes).enumerate() {
                    rows.fill(Block::ZERO);
                    self.code.add_rows((first / lanes + i * ROWS) as u64, secret, lanes, rows);
                }
            }
            self.encoded = to;
        }
        Ok(())
    }
}

fn xor_into(slots: &mut [Block], leaves: &[Block]) {
    slots.iter_mut().zip(leaves).for_each(|(slot, leaf)| *slot ^= *leaf);
}

/// How the caller takes its correlations.
enum Taker<'a> {
    /// In memory of its own.
    Memory(&'a mut [Block]),
    /// Piece by piece, while they are in cache.
    Each(&'a mut dyn FnMut(&[Block])),
}

/// What a request's correlations fill as they come.
struct Sink<'a> {
    to: Taker<'a>,
    wanted: usize,
    filled: usize,
    place: Place,
}

impl<'a> Sink<'a> {
    fn memory(out: &'a mut [Block]) -> Self {
        Sink { wanted: out.len(), to: Taker::Memory(out), filled: 0, place: Place::Later }
    }

    fn each(wanted: usize, each: &'a mut dyn FnMut(&[Block])) -> Self {
        Sink { wanted, to: Taker::Each(each), filled: 0, place: Place::Later }
    }

    /// Correlations that are wanted still.
    fn left(&self) -> usize {
        self.wanted - self.filled
    }

    /// Before the first tile of a group.
    fn begin_group(&mut self, rows: &mut Rows) {
        self.place = rows.place(self.left());
        rows.begin_group(self.place);
    }

    fn add(&mut self, rows: &mut Rows, tile: usize, leaves: &mut [Block]) {
        if self.place != Place::Later {
            rows.add(tile, leaves, self);
        }
    }

    /// After the last tile of a group.
    fn end_group(&mut self, rows: &mut Rows) {
        if self.place == Place::Later {
            return;
        }
        let before = rows.made().max(rows.keep);
        rows.next_group += 1;
        match self.place {
            Place::Caller => self.filled += rows.made().max(rows.keep) - before,
            _ => self.serve(&mut rows.ready),
        }
    }

    /// Takes what there is of `stock`.
    fn serve(&mut self, stock: &mut Stock) {
        self.filled += match &mut self.to {
            Taker::Memory(out) => stock.serve(&mut out[self.filled..]),
            Taker::Each(each) => stock.serve_each(self.wanted - self.filled, *each),
        };
    }

    /// Nothing provisional stays in the caller's memory.
    fn wipe(&mut self) {
        if let Taker::Memory(out) = &mut self.to {
            out.zeroize();
        }
    }
}

impl<T: Trees> Core<T> {
    /// [`advance`](Self::advance) draws a round's matrix, which needs the `joint` seed, and
    /// [`renew_trees`](Self::renew_trees) its hash keys, which do not.
    fn new(config: Config, context: Transcript, joint: [u8; 32], reserve: Buffer) -> Self {
        let unused = Block::ZERO;
        Core {
            config,
            context,
            joint,
            expander: HalfTrees::new(config.params.depth, unused),
            rows: Rows {
                config,
                code: LocalCode::new(unused, config.params.k),
                current: Buffer::zeros(reserve.len()),
                keep: reserve.len(),
                kept: reserve,
                first_tile: 0,
                next_group: 0,
                encoded: 0,
                ahead: Zeroizing::default(),
                ready: Stock::new(NAME, Vec::new()),
            },
            trees: None,
            ahead: None,
            round: 0,
            spent: Spent::default(),
        }
    }

    /// Takes what the last iteration kept: its secret for the code, the correlations for trees and for the check.
    fn begin(&mut self) -> (Cots, Cots) {
        self.advance();
        self.renew_trees();
        let (trees, check) = self.rows.current[self.config.secret()..].split_at(self.config.shape().cots());
        (Zeroizing::new(trees.to_vec()), Zeroizing::new(check[..self.config.check_cots()].to_vec()))
    }

    /// Goes on to the next iteration, which has a matrix of its own: those who share one share what it costs
    /// to solve a part of it.
    fn advance(&mut self) {
        self.round += 1;
        let mut context = self.of_round();
        context.append("joint seed", &self.joint);
        self.rows.advance(context.challenge_block("matrix"));
    }

    /// The trees to come are hashed under keys of their own.
    fn renew_trees(&mut self) {
        self.expander.renew(self.of_round().challenge_block("tree"));
    }

    fn of_round(&self) -> Transcript {
        let mut context = self.context.clone();
        context.append_u64("round", self.round);
        context
    }

    /// The check of the round at work, for malicious security.
    fn check<C>(&self, new: impl FnOnce(&Transcript, u64) -> C) -> Option<C> {
        let malicious = self.config.security == Security::Malicious;
        malicious.then(|| {
            let mut context = self.context.clone();
            context.append("joint seed", &self.joint);
            new(&context, self.round)
        })
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
    fn make_group(&mut self, sink: &mut Sink<'_>) {
        let Some(trees) = self.trees.take() else { return };
        let Core { expander, rows, config, .. } = self;
        sink.begin_group(rows);
        let (first, tiles) =
            (rows.first_tile + rows.next_group * TILES, config.shape().tiles_in(rows.next_group));
        trees.expand_tiles(expander, first, tiles, &mut |tile, leaves| sink.add(rows, tile, leaves));
        sink.end_group(rows);
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
        self.round = 0;
        self.advance();
        self.renew_trees();
        self.rows.keep = if iterations == 1 { 0 } else { self.config.secret() };
        let left = self.config.total_ahead(iterations);
        self.ahead = Some(Ahead { iterations: iterations - 1, left });
    }

    /// Fills `sink` from what was made ahead; an error that takes nothing when less is left.
    fn serve_ahead(&mut self, sink: &mut Sink<'_>) -> Option<Result<()>> {
        let ahead = self.ahead.as_mut()?;
        if sink.left() > ahead.left {
            return Some(Err(Error::Exhausted { protocol: NAME, left: ahead.left }));
        }
        ahead.left -= sink.left();
        self.serve(sink);
        debug_assert_eq!(sink.left(), 0);
        Some(Ok(()))
    }

    /// Fills `sink` as far as the iteration at work reaches, without the peer.
    fn serve(&mut self, sink: &mut Sink<'_>) {
        while sink.left() > 0 && !self.exhausted() {
            match self.rows.ready.left() {
                0 => self.make_group(sink),
                _ => sink.serve(&mut self.rows.ready),
            }
        }
    }

    /// Fails for good, with all streams of the setup: nothing provisional stays anywhere.
    fn fail(&mut self, sink: &mut Sink<'_>) {
        self.spent.set();
        self.trees = None;
        self.rows.kept.zeroize();
        self.rows.current.zeroize();
        self.rows.ready.zeroize();
        self.rows.ahead.zeroize();
        sink.wipe();
    }
}

type Cots = Zeroizing<Vec<Block>>;

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

/// Splits what a setup made for iterations ahead: the first secret, the correlations of all trees, those of the check.
fn split_ahead(config: Config, shape: Shape, all: &[Block]) -> (Buffer, Zeroizing<Vec<Block>>, &[Block]) {
    let (secret, rest) = all.split_at(config.secret());
    let (trees, check) = rest.split_at(shape.cots());
    let mut first = Buffer::zeros(secret.len());
    first.copy_from_slice(secret);
    (first, Zeroizing::new(trees.to_vec()), &check[..config.check_cots()])
}

/// Drops the leaves of trees that only fill up the last tile of a single lane.
fn trim(leaves: &mut [Block], wanted: usize, lanes: Lanes) -> &mut [Block] {
    if wanted < leaves.len() && lanes == Lanes::One {
        let trees = wanted * LANES / leaves.len();
        for leaf in 0..leaves.len() / LANES {
            leaves.copy_within(leaf * LANES..leaf * LANES + trees, leaf * trees);
        }
    }
    &mut leaves[..wanted]
}

/// The sender, who holds Δ.
pub struct FerretSender {
    core: Core<SenderTrees>,
    delta: Block,
    prg: Prg,
    /// The correlations for trees and check of an iteration that has begun while the one before is checked.
    begun: Option<(Cots, Cots)>,
}

/// The receiver, whose choice bits are random.
pub struct FerretReceiver {
    core: Core<ReceiverTrees>,
    prg: Prg,
    begun: Option<Begun>,
}

/// What the receiver has of an iteration whose bits are on their way, perhaps while the one before is checked.
struct Begun {
    trees: ReceiverTrees,
    cots: Cots,
    check_cots: Cots,
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
        Ok(FerretSender { core: Core::new(config, context, joint, reserve), delta, prg, begun: None })
    }

    /// Sets up and does all interaction of `iterations` iterations at once, four messages whatever their number, from
    /// `config.reserve_ahead(iterations)` correlations. What follows needs no peer: `config.total_ahead(iterations)`
    /// correlations, then [`Error::Exhausted`].
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
        let mut core = Core::new(config, context, [0; 32], secret);
        core.round = 1;
        core.renew_trees();
        let malicious = config.security == Security::Malicious;
        let mut check = malicious.then(|| SenderCheck::new(&core.context, core.round, shape));
        let expander = &mut core.expander;
        let trees = spcot::send_each(channel, &mut prg, expander, delta, shape, &cots, check.as_mut(), None)?;
        core.joint = toss.finish(channel)?;
        if let Some(mut check) = check {
            check.bind(&core.joint);
            check.answer(channel, delta, check_cots)?;
        }
        core.start_ahead(iterations);
        core.trees = Some(trees);
        Ok(FerretSender { core, delta, prg, begun: None })
    }

    /// Ties this stream to `other`: when one fails, both are spent.
    pub(super) fn tie(&mut self, other: &Self) {
        self.core.spent = other.core.spent.clone();
    }

    /// Correlations that are left of those made ahead; `None` when an iteration is made on demand.
    pub fn left(&self) -> Option<usize> {
        self.core.ahead.as_ref().map(|ahead| ahead.left)
    }

    /// One iteration, which serves `sink` as far as it reaches.
    ///
    /// The trees that are expanded for their corrections give the outputs and the check's sum too.
    fn iterate(&mut self, channel: &mut Channel, sink: &mut Sink<'_>) -> Result<()> {
        let shape = self.core.config.shape();
        let (cots, check_cots) = self.begun.take().unwrap_or_else(|| self.core.begin());
        let mut check = self.core.check(|context, round| SenderCheck::new(context, round, shape));
        let Core { rows, expander, .. } = &mut self.core;
        rows.encode_while_waiting(channel, shape.cots().div_ceil(8), sink)?;
        let mut each = |tile: usize, leaves: &mut [Block]| {
            if tile.is_multiple_of(TILES) {
                sink.begin_group(rows);
            }
            sink.add(rows, tile, leaves);
            if tile % TILES == TILES - 1 || tile == shape.tiles - 1 {
                sink.end_group(rows);
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
        Ok(FerretReceiver { core: Core::new(config, context, joint, reserve), prg, begun: None })
    }

    /// Sets up and does all interaction of `iterations` iterations at once; see [`FerretSender::setup_ahead`].
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
        let mut core = Core::new(config, context, pledge.toss(channel)?, secret);
        core.start_ahead(iterations);
        let mut check = core.check(|context, round| ReceiverCheck::new(context, round, shape, &mut prg));
        trees.receive_seed(channel, &cots)?;
        for group in 0..shape.groups() {
            trees.receive_group(channel, group)?;
            if check.is_some() {
                trees.solve(&mut core.expander, group, check.as_mut(), None);
            }
        }
        if let Some(check) = check {
            let expected = check.open(channel, check_cots)?;
            spcot::receive_digest(channel, NAME, &expected)?;
        }
        core.trees = Some(trees);
        Ok(FerretReceiver { core, prg, begun: None })
    }

    /// Ties this stream to `other`: when one fails, both are spent.
    pub(super) fn tie(&mut self, other: &Self) {
        self.core.spent = other.core.spent.clone();
    }

    /// Correlations that are left of those made ahead; `None` when an iteration is made on demand.
    pub fn left(&self) -> Option<usize> {
        self.core.ahead.as_ref().map(|ahead| ahead.left)
    }

    /// One iteration, which serves `sink` as far as it reaches. Trees are expanded as their corrections
    /// come, for the outputs and the check together.
    fn iterate(&mut self, channel: &mut Channel, sink: &mut Sink<'_>) -> Result<()> {
        let shape = self.core.config.shape();
        let Begun { mut trees, cots, check_cots } = match self.begun.take() {
            Some(begun) => begun,
            None => self.begin(channel)?,
        };
        let mut check =
            self.core.check(|context, round| ReceiverCheck::new(context, round, shape, &mut self.prg));
        let Core { rows, expander, .. } = &mut self.core;
        rows.encode_while_waiting(channel, size_of::<Block>(), sink)?;
        trees.receive_seed(channel, &cots)?;
        for group in 0..shape.groups() {
            let bytes = size_of::<Block>() * shape.corrections_in(group);
            rows.encode_while_waiting(channel, bytes, sink)?;
            trees.receive_group(channel, group)?;
            sink.begin_group(rows);
            if check.is_none() && sink.place == Place::Later {
                continue;
            }
            let each: spcot::Each<'_> = &mut |tile, leaves| sink.add(rows, tile, leaves);
            trees.solve(expander, group, check.as_mut(), Some(each));
            sink.end_group(rows);
        }
        self.core.keep_trees(trees);
        if let Some(check) = check {
            let expected = check.open(channel, &check_cots)?;
            if sink.left() > 0 {
                self.begun = Some(self.begin(channel)?);
                self.core.rows.encode_while_waiting(channel, spcot::DIGEST, sink)?;
            }
            spcot::receive_digest(channel, NAME, &expected)?;
        }
        Ok(())
    }

    /// Begins an iteration: sends its points' bits.
    fn begin(&mut self, channel: &mut Channel) -> Result<Begun> {
        let (cots, check_cots) = self.core.begin();
        let trees = spcot::choose(channel, &mut self.prg, self.core.config.shape(), &cots)?;
        Ok(Begun { trees, cots, check_cots })
    }
}

macro_rules! streams {
    ($party:ident) => {
        impl $party {
            /// Serves what is left of the last iteration first.
            fn stream(&mut self, channel: &mut Channel, mut sink: Sink<'_>) -> Result<()> {
                self.core.spent.check(NAME)?;
                if let Some(served) = self.core.serve_ahead(&mut sink) {
                    return served;
                }
                self.core.serve(&mut sink);
                while sink.left() > 0 {
                    self.iterate(channel, &mut sink).inspect_err(|_| {
                        self.begun = None;
                        self.core.fail(&mut sink);
                    })?;
                }
                Ok(())
            }
        }
    };
}
streams!(FerretSender);
streams!(FerretReceiver);

macro_rules! extend {
    () => {
        fn extend(&mut self, channel: &mut Channel, out: &mut [Block]) -> Result<()> {
            self.stream(channel, Sink::memory(out))
        }

        fn extend_each(
            &mut self,
            channel: &mut Channel,
            n: usize,
            each: &mut dyn FnMut(&[Block]),
        ) -> Result<()> {
            self.stream(channel, Sink::each(n, each))
        }
    };
}

impl CotSender for FerretSender {
    fn delta(&self) -> Block {
        self.delta
    }

    extend!();
}

impl CotReceiver for FerretReceiver {
    extend!();
}

#[cfg(test)]
pub(super) mod dealer {
    use super::*;

    /// A trusted dealer for the setup's correlations: both ends draw from one seed.
    pub(crate) struct Dealer {
        prg: Prg,
        delta: Block,
        receives: bool,
    }

    impl Dealer {
        pub(crate) fn pair(seed: u128) -> (Dealer, Dealer) {
            let mut prg = Prg::from_seed(Block::new(seed));
            let delta = prg.block().with_lsb(true);
            (Dealer { prg: prg.clone(), delta, receives: false }, Dealer { prg, delta, receives: true })
        }

        fn deal(&mut self, out: &mut [Block]) {
            for slot in out {
                let (v, u) = (self.prg.block().with_lsb(false), self.prg.bit());
                *slot = if self.receives { v ^ (self.delta & Block::mask(u)) } else { v };
            }
        }
    }

    impl CotSender for Dealer {
        fn delta(&self) -> Block {
            self.delta
        }
        fn extend(&mut self, _: &mut Channel, out: &mut [Block]) -> Result<()> {
            self.deal(out);
            Ok(())
        }
    }

    impl CotReceiver for Dealer {
        fn extend(&mut self, _: &mut Channel, out: &mut [Block]) -> Result<()> {
            self.deal(out);
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::dealer::Dealer;
    use super::*;
    use crate::silent::tree::spcot::{CheckMessage, cheat::Caught};
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

    /// Where the peer's messages are long on their way, A·u of all that is asked for is there before them, and of a part of it when
    /// they come sooner.
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

    fn ahead(config: Config, iterations: usize, seed: u128) -> (Vec<Block>, Vec<Block>, Block) {
        let (mut ds, mut dr) = Dealer::pair(seed);
        let delta = ds.delta();
        let total = config.total_ahead(iterations);
        let sizes = [1, 0, total / 3, 5000.min(total / 4)];
        let prg = |n: u128| Prg::from_seed(Block::new(seed + n));
        macro_rules! party {
            ($type:ident, $n:expr, $dealer:ident) => {
                |ch| {
                    let mut p =
                        $type::setup_ahead(ch, prg($n), config, iterations, &mut $dealer).unwrap();
                    let mut out = vec![Block::ONES; total];
                    let (before, mut at) = (ch.stats(), 0);
                    for size in sizes {
                        p.extend(ch, &mut out[at..at + size]).unwrap();
                        at += size;
                    }
                    assert_eq!(p.left(), Some(total - at));
                    // Too much is refused and takes nothing; the rest is there to the last one.
                    let mut more = vec![Block::ONES; total - at + 1];
                    let error = p.extend(ch, &mut more).unwrap_err();
                    assert!(matches!(error, Error::Exhausted { left, .. } if left == total - at), "{error}");
                    assert!(more.iter().all(|b| *b == Block::ONES));
                    p.extend(ch, &mut out[at..]).unwrap();
                    assert!(matches!(p.extend(ch, &mut more[..1]), Err(Error::Exhausted { left: 0, .. })));
                    let after = ch.stats();
                    assert_eq!(before.bytes_sent, after.bytes_sent, "extension sends nothing");
                    assert_eq!(before.bytes_received, after.bytes_received);
                    out
                }
            };
        }
        let (v, w) = memory::run(party!(FerretSender, 1, ds), party!(FerretReceiver, 2, dr));
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

    /// Both parties draw the same, and no iteration, stream or session draws what another has drawn.
    /// Iterations made ahead share their trees' keys, which are those of one batch, and nothing else.
    #[test]
    fn every_iteration_has_a_matrix_and_hash_keys_of_its_own() {
        let config = TINY_MALICIOUS;
        let prg = |n: u128| Prg::from_seed(Block::new(n));
        macro_rules! party {
            ($type:ident, $seed:expr, $dealer:expr) => {
                |ch: &mut Channel| {
                    let mut all = Vec::new();
                    for mut dealer in $dealer {
                        let mut p = $type::setup(ch, prg($seed), config, &mut dealer).unwrap();
                        for _ in 0..3 {
                            p.extend(ch, &mut vec![Block::ZERO; config.net()]).unwrap();
                            all.push(shown(&mut p.core));
                        }
                    }
                    let mut dealer = $dealer.remove(0);
                    let mut p = $type::setup_ahead(ch, prg($seed), config, 3, &mut dealer).unwrap();
                    for _ in 0..3 {
                        // The leaf is that of the batch's key.
                        all.push(shown(&mut p.core)[..6 * LOCALITY].to_vec());
                        p.extend(ch, &mut vec![Block::ZERO; config.params.samples() - 256]).unwrap();
                    }
                    all
                }
            };
        }
        let dealers = |first: bool| -> Vec<Dealer> {
            let pick = |seed| {
                let (s, r) = Dealer::pair(seed);
                if first { s } else { r }
            };
            vec![pick(81), pick(82)]
        };
        let (sent, received) =
            memory::run(party!(FerretSender, 1, dealers(true)), party!(FerretReceiver, 2, dealers(false)));
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
            let (cots, check_cots) = s.core.begin();
            let mut check =
                s.core.check(|context, round| SenderCheck::new(context, round, shape)).expect("malicious");
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

    /// Whether it is caught when one iteration is asked for, and surely when two are, so that the second begins before the
    /// answer to the check of the first.
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
        // Another Δ in one tree: its corrections shift by the difference where the receiver's bit is set, here everywhere.
        let other_delta =
            |m: &mut Vec<Block>| (0..TINY.depth - 1).for_each(|l| m[4 * l] ^= Block::new(1 << 99));
        assert!(caught(&Cheater { corrections: &other_delta, ..HONEST }, 3));
        assert!(caught(&Cheater { claim: &|moments| moments[last - 9] ^= Block::ONE, ..HONEST }, 4));
        assert!(caught(&Cheater { digest: &|d| d[31] ^= 1, ..HONEST }, 5));
    }

    /// The selective failure that the functionality grants: a bent correction of the last level bends the punctured leaf and
    /// its sibling, so a sender that knows their place up to one bit learns that bit, or is caught.
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
                // The guess: bit 0 of the first tree's point is zero, so leaves 0 and 2 are bent, the children of node 2 + 0.
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
