//! Silent OT with low traffic (Boyle–Couteau–Gilboa–Ishai–Kohl–Rindal–Scholl, CCS '19), over correlated OTs of KOS (IKNP
//! where the peer is semi-honest).
//!
//! - **Realises** random correlated OT with a fixed Δ, by the paper's generator for subfield VOLE over GF(2^128) with
//!   p = 2 (section 4): puncturable PRFs hold the sparse noise times Δ, a public code compresses it. Against semi-honest
//!   or malicious parties, in the random-oracle and ideal-permutation models, under dual LPN with regular noise and, for
//!   malicious security, static leakage (a cheating sender learns one bit of the noise on average or is caught).
//! - **Two forms** of a run. The *long* one, by half-trees, is the smaller and faster one. Against a malicious peer a run of at
//!   most [`SHORT`] results takes the *short* one, by GGM trees, which spares two messages in turn.
//! - **Messages** of a request, whatever its size: t·ℓ base correlations, then by the long form one correction of 16 bytes a tree
//!   level from the second on, and with malicious security a check of 64 bytes; about 110 kB in total for 10^7
//!   correlations, base OTs included. By the short form 32 bytes a tree level, 64 a tree and 2,112 of checks.
//! - **Seeds** of codes and hashes come from both parties, who commit along with the base OTs and open in a
//!   stream's first run, 32 bytes each way and no message to wait for.
//! - **Rounds** from nothing: three messages in turn (base OTs that cross, base correlations, the trees), by the long form and
//!   against a malicious peer five (the check's opening and its digest).
//!
//! Deviations from the paper, each of which keeps its proof. The long form: half-trees (2022/1431) in place of GGM
//! trees, since with p = 2 all noise values are 1 and the trees' sums are then Δ itself; base correlations of the same Δ
//! in place of base OTs; one check of all trees at once (see `spcot`) in place of figure 13's hash and figure 16's
//! combination. The short form: figures 13 and 16 by Fiat–Shamir, over random OTs that are hashes of base correlations, with
//! an anchor that holds the trees to these correlations' Δ (see `tpprf` and docs/security-notes.md), as both forms of all
//! runs must have one. Both: the leaf whose position the quasi-cyclic code does not have, if a noisy one, is lost, for which
//! four more trees are made.

use super::code::{BlockAccumulate, LinearCode, QuasiCyclic};
use super::tpprf::{self, Anchor, Challenge, Received};
use crate::extension::Setup;
use crate::silent::engine::seeds::Seeds;
use crate::silent::engine::source::{self, SourceReceiver, SourceSender};
use crate::silent::ferret::Spent;
use crate::silent::tree::half::HalfTrees;
use crate::silent::tree::spcot::{self, CheckMessage, SEGMENT, Shape, Trees, Weights};
use crate::vole::reverse;
use crate::{BaseOt, CotReceiver, CotSender, Result, Security};
use tacit_crypto::ggm::LANES;
use tacit_crypto::hash::Mitccrh;
use tacit_crypto::transcript::Transcript;
use tacit_crypto::{BitVec, Block, Buffer, KAPPA, Prg};
use tacit_net::Channel;
use zeroize::{Zeroize, Zeroizing};

/// The protocol's short name.
pub const NAME: &str = "silent";
/// Correlations of one run at most; larger requests take several. A run's traffic hardly grows with its size.
pub const LARGEST_RUN: usize = 1 << 24;
/// Results of a malicious run of the short form at most. GGM trees take 45 to 65 ns a result more: here as long as two
/// messages of 4 ms each, which the form spares; from 10^6 on, its factor would fall on slow links too.
pub const SHORT: usize = 1 << 17;
/// Requests below this take all that a run makes and keep the rest for later.
const SMALL: usize = 1 << 15;
const DEPTHS: core::ops::RangeInclusive<usize> = 8..=20;
/// What a base correlation costs, in leaves: with it, 10^7 correlations stay below 130 kB.
const LEAVES_PER_COT: usize = 2000;

/// The public matrix of dual LPN.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Code {
    /// The paper's, with t = 136 at N/n = 2, where its table 1 has 116 to 126: at least 136 bits,
    /// information-set decoding from several blocks of samples included (docs/lpn-security.md).
    QuasiCyclic,
    /// Block-accumulate 3x32, linear time, with t = 200: at least 136 bits against linear tests at the
    /// estimated distance and against whoever chooses blocks of the last accumulator.
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
            // Four more than 136: the last tile may lose positions.
            Code::QuasiCyclic => 140,
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
/// 136 bits are left at least.
pub const fn linear_weight(q: usize) -> usize {
    match q {
        2 => 200,
        4 => 304,
        16 => 396,
        _ => 424,
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

    /// Whether a request of `count` takes the short form.
    pub fn is_short(&self, count: usize) -> bool {
        self.is_within(Core::run_size(count), SHORT)
    }

    /// Whether a run of `size` has the short form, if those up to `limit` have.
    fn is_within(&self, size: usize, limit: usize) -> bool {
        self.security == Security::Malicious && size <= limit
    }

    /// Bytes of both directions for a request of `count`, at most [`LARGEST_RUN`], beside the base correlations.
    pub fn bytes(&self, count: usize) -> usize {
        let shape = self.code.shape(Core::run_size(count));
        if self.is_short(count) {
            // The points' bits, the trees, the anchor, X and V.
            let proof = Anchor::BYTES + 2 * size_of::<Block>();
            return shape.cots().div_ceil(8) + tpprf::message_len(shape, true) + proof;
        }
        // The check's seed, its masked weights, and a digest.
        let check = if self.check_cots() > 0 { 2 * size_of::<Block>() + 32 } else { 0 };
        size_of::<Block>() + shape.bytes() + check
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
    seeds: Seeds,
    run: u64,
    streams: u64,
    /// Results of a run of the short form at most: [`SHORT`].
    short: usize,
    left: Vec<Block>,
    spent: Spent,
}

/// The public parts of a run.
struct Run {
    code: Code,
    noise: Noise,
    short: bool,
    context: Transcript,
}

impl Run {
    fn expander(&self) -> HalfTrees {
        HalfTrees::new(self.noise.shape.depth, self.context.clone().challenge_block("tree"))
    }

    fn code(&self) -> Box<dyn LinearCode> {
        self.code.instance(self.context.clone().challenge_block("code"), self.noise.positions())
    }

    /// Of the short form, before the run is [joined](Core::join) to its seed: the trees, which the sender
    /// makes first. A hash key of a party's choosing would give it nothing in the ideal-cipher model.
    fn setup(&self) -> tpprf::Setup {
        tpprf::Setup { protocol: NAME, noise: self.noise, malicious: true, context: self.context.clone() }
    }

    /// Of the short form: what makes random OTs of the base correlations, numbered from 0 on.
    fn hash(&self) -> Mitccrh {
        Mitccrh::new(self.context.clone().challenge_block("mitccrh start"))
    }

    /// Of the short form: the challenge that follows the receiver's bits and the sender's trees and anchor.
    fn challenge(&self, setup: &tpprf::Setup, bits: &BitVec, message: &[u8]) -> Challenge {
        let mut transcript = self.context.clone();
        transcript.append("choices", bits.as_bytes());
        transcript.append("message", message);
        setup.challenge(transcript)
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        self.left.zeroize();
    }
}

impl Core {
    /// Agrees on parameters and commits to seeds; `Error::Malformed` when the peer's parameters differ.
    fn agree<S>(
        channel: &mut Channel,
        config: Config,
        source: Setup<S>,
        prg: &mut Prg,
        sends: bool,
    ) -> Result<(Self, S)> {
        let mut context = Transcript::new("tacit silent bcgikrs19 v5");
        context.append("session", &channel.session_id().0);
        context.append_u64("instance", channel.next_instance());
        context.append("code", config.code.name().as_bytes());
        context.append_u64("malicious", (config.security == Security::Malicious) as u64);
        let (source, seeds) = source::agree(channel, source, &context, prg, sends, NAME)?;
        let (left, spent) = (Vec::new(), Spent::default());
        Ok((Core { config, context, seeds, run: 0, streams: 0, short: SHORT, left, spent }, source))
    }

    /// Another stream: its trees and codes have seeds of their own.
    fn fork(&mut self) -> Self {
        self.streams += 1;
        let mut context = self.context.clone();
        context.append_u64("stream", self.streams);
        let Core { config, ref seeds, short, ref spent, .. } = *self;
        let (seeds, spent) = (seeds.clone(), spent.clone());
        Core { config, context, seeds, run: 0, streams: 0, short, left: Vec::new(), spent }
    }

    /// The public parts of the next run, for a request that lacks `wanted`; codes and hashes wait for
    /// [`join`](Self::join).
    fn begin(&mut self, wanted: usize) -> Run {
        self.run += 1;
        let (size, code) = (Self::run_size(wanted), self.config.code);
        let (noise, short) = (code.noise(size), self.config.is_within(size, self.short));
        let mut context = self.context.clone();
        context.append_u64("run", self.run);
        context.append_u64("short", short as u64);
        context.append_u64("depth", noise.shape.depth as u64);
        context.append_u64("tiles", noise.shape.tiles as u64);
        context.append_u64("block", noise.block as u64);
        Run { code, noise, short, context }
    }

    /// Binds `run` to the joint seed, for which a stream's first run receives the peer's part. It must have
    /// [opened](Seeds::open) its own.
    fn join(&mut self, channel: &mut Channel, run: &mut Run) -> Result<()> {
        self.seeds.join(channel, &mut run.context)
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
        let mut run = self.begin(channel, n)?;
        let (code, noise) = match run.short {
            true => self.short(channel, &mut run, self.source.delta(), |_, _| ())?,
            false => self.long(channel, &mut run)?,
        };
        Ok(self.core.compress(&*code, noise, n, each))
    }

    /// The public parts of the next run; this party's seed is on its way, if the peer does not have it yet.
    fn begin(&mut self, channel: &mut Channel, n: usize) -> Result<Run> {
        let run = self.core.begin(n);
        self.core.seeds.open(channel)?;
        channel.flush()?;
        Ok(run)
    }

    /// The base correlations of a run, those of its check last.
    fn cots(&mut self, channel: &mut Channel, run: &Run) -> Result<Zeroizing<Vec<Block>>> {
        let n = run.noise.shape.cots() + self.core.config.check_cots();
        let mut cots = Zeroizing::new(vec![Block::ZERO; n]);
        self.source.extend(channel, &mut cots)?;
        Ok(cots)
    }

    /// The code, and the noise by half-trees.
    fn long(&mut self, channel: &mut Channel, run: &mut Run) -> Result<(Box<dyn LinearCode>, Buffer)> {
        self.core.join(channel, run)?;
        let (code, mut expander) = (run.code(), run.expander());
        let cots = self.cots(channel, run)?;
        let (level, check) = cots.split_at(run.noise.shape.cots());
        let delta = self.source.delta();
        let trees = spcot::send(channel, &mut self.prg, &mut expander, delta, run.noise.shape, level)?;
        if self.core.config.security == Security::SemiHonest {
            let noise = expand(&trees, &mut expander, &*code, run.noise, None).0;
            return Ok((code, noise));
        }
        let message = CheckMessage::receive(channel)?;
        let weights = Weights::new(message.seed, run.noise.shape);
        let (noise, sum) = expand(&trees, &mut expander, &*code, run.noise, Some(&weights));
        let value = sum ^ message.sender_mask(delta, check);
        channel.send(&spcot::check_digest(&run.context, self.core.run, value))?;
        channel.flush()?;
        Ok((code, noise))
    }

    /// The code, and the noise by figures 13 and 16 in one message, with `delta` in the trees. `change` sees each part of
    /// it before it goes.
    fn short(
        &mut self,
        channel: &mut Channel,
        run: &mut Run,
        delta: Block,
        change: impl Fn(Part, &mut [u8]),
    ) -> Result<(Box<dyn LinearCode>, Buffer)> {
        let (setup, shape) = (run.setup(), run.noise.shape);
        // The trees are ready when the receiver's message is there, and the code is made while the receiver is at them.
        let trees = tpprf::SenderTrees::new(delta, &mut self.prg, shape);
        let mut message = trees.bare_message(&setup);
        self.core.join(channel, run)?;
        let cots = self.cots(channel, run)?;
        let mut bits = vec![0; shape.cots().div_ceil(8)];
        channel.recv(&mut bits)?;
        let bits = BitVec::from_bytes(&bits, shape.cots());
        let mut pads = Zeroizing::new(vec![[Block::ZERO; 2]; cots.len()]);
        run.hash().cot_to_rot_sender(0, self.source.delta(), &cots, &mut pads);
        let (level, last) = pads.split_at_mut(shape.cots());
        reverse::swap(level, &bits);
        tpprf::mask(&mut message, level);
        let anchor = Anchor::of_sender(&cots[shape.cots()..], last);
        message.extend(trees.anchoring(last));
        change(Part::Trees, &mut message);
        channel.send(&message)?;
        let challenge = run.challenge(&setup, &bits, &message);
        let mut x = trees.x(&challenge);
        change(Part::X, Block::as_bytes_mut(core::slice::from_mut(&mut x)));
        channel.send_block(x)?;
        channel.flush()?;
        let code = run.code();
        let (mut v, mut noise) = trees.prove_and_expand(&setup, &challenge.check(x, shape), &anchor);
        change(Part::V, Block::as_bytes_mut(core::slice::from_mut(&mut v)));
        channel.send_block(v)?;
        channel.flush()?;
        code.absorb(&mut Block::ZERO.clone(), &mut noise);
        Ok((code, noise))
    }
}

/// What the sender says in the short form.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Part {
    /// Level sums, corrections, γ and the anchor's d.
    Trees,
    /// The answer to the challenge.
    X,
    V,
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
        let mut run = self.core.begin(n);
        self.core.seeds.open(channel)?;
        let mut cots =
            Zeroizing::new(vec![Block::ZERO; run.noise.shape.cots() + self.core.config.check_cots()]);
        self.source.extend(channel, &mut cots)?;
        let points = Zeroizing::new(run.noise.points(&mut self.prg));
        let (code, noise) = match run.short {
            true => self.short(channel, &mut run, &cots, &points)?,
            false => self.long(channel, &mut run, &cots, points.to_vec())?,
        };
        Ok(self.core.compress(&*code, noise, n, each))
    }

    /// The code, made while the peer is at work, and the noise by half-trees.
    fn long(
        &mut self,
        channel: &mut Channel,
        run: &mut Run,
        cots: &[Block],
        points: Vec<u32>,
    ) -> Result<(Box<dyn LinearCode>, Buffer)> {
        let (level, check) = cots.split_at(run.noise.shape.cots());
        let mut trees = spcot::choose_points(channel, points, run.noise.shape, level)?;
        self.core.join(channel, run)?;
        let (code, mut expander) = (run.code(), run.expander());
        trees.receive(channel, level)?;
        if self.core.config.security == Security::SemiHonest {
            let noise = expand(&trees, &mut expander, &*code, run.noise, None).0;
            return Ok((code, noise));
        }
        let seed = self.prg.block();
        let weights = Weights::new(seed, run.noise.shape);
        CheckMessage::send(channel, seed, weights.of_points(&trees), check)?;
        channel.flush()?;
        let (noise, sum) = expand(&trees, &mut expander, &*code, run.noise, Some(&weights));
        let value = sum ^ spcot::fold_powers(check);
        let expected = spcot::check_digest(&run.context, self.core.run, value);
        spcot::receive_digest(channel, NAME, &expected)?;
        Ok((code, noise))
    }

    /// The code, made while the peer is at work, and the noise by figures 13 and 16.
    fn short(
        &mut self,
        channel: &mut Channel,
        run: &mut Run,
        cots: &[Block],
        points: &[u32],
    ) -> Result<(Box<dyn LinearCode>, Buffer)> {
        let (setup, shape) = (run.setup(), run.noise.shape);
        let mut bits = tpprf::choices(points, shape);
        bits.xor_assign(&BitVec::from_lsbs(&cots[..shape.cots()]));
        channel.send(bits.as_bytes())?;
        channel.flush()?;
        self.core.join(channel, run)?;
        let code = run.code();
        let mut pads = Zeroizing::new(vec![Block::ZERO; cots.len()]);
        run.hash().cot_to_rot_receiver(0, cots, &mut pads);
        let (level, last) = pads.split_at(shape.cots());
        let mut message = vec![0; tpprf::message_len(shape, true) + Anchor::BYTES];
        channel.recv(&mut message)?;
        let check = run.challenge(&setup, &bits, &message).check(channel.recv_block()?, shape);
        let (trees, d) = message.split_at(message.len() - Anchor::BYTES);
        let anchor = Anchor::of_receiver(&cots[shape.cots()..], last, d);
        let received = Received::new(&setup, points, level, trees);
        let (mut noise, claim) = received.expand(&setup, &check, Some(&anchor));
        claim.check(channel.recv_block()?)?;
        code.absorb(&mut Block::ZERO.clone(), &mut noise);
        Ok((code, noise))
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
    use super::*;
    use crate::Error;
    use crate::base;
    use crate::extension::kos;
    use crate::silent::tree::spcot::SenderTrees;
    use core::sync::atomic::{AtomicU32, Ordering};
    use std::sync::Mutex;
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
            s.core.join(ch, &mut run)?;
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
            let mut digest = spcot::check_digest(&run.context, s.core.run, value);
            (self.digest)(&mut digest);
            ch.send(&digest)?;
            ch.flush()?;
            Ok(Vec::new())
        }

        fn is_caught(&self, config: Config, seed: u128) -> bool {
            is_caught(config, 0, 1, seed, self.points, |s, ch| self.run(s, ch))
        }
    }

    /// Whether the last of `runs` runs of `cheat`, small ones of the form that `limit` gives, ends badly. What comes out of it
    /// fits what the sender says it has, if it says it, or is nothing.
    fn is_caught(
        config: Config,
        limit: usize,
        runs: usize,
        seed: u128,
        points: &(dyn Fn(&[u32]) + Sync),
        mut cheat: impl FnMut(&mut SilentSender, &mut Channel) -> Result<Vec<Block>> + Send,
    ) -> bool {
        const N: usize = 9;
        let (sent, received) = memory::run(
            |ch| {
                let mut prg = Prg::from_seed(Block::new(seed));
                let mut s = SilentSender::setup(ch, &*base::default(), &mut prg, config)?;
                s.core.short = limit;
                s.fork();
                for _ in 1..runs {
                    cheat(&mut s, ch)?;
                }
                Ok::<_, Error>((s.delta(), cheat(&mut s, ch)?))
            },
            |ch| {
                let mut prg = Prg::from_seed(Block::new(!seed));
                let mut r = SilentReceiver::setup(ch, &*base::default(), &mut prg, config)?;
                r.core.short = limit;
                let mut fork = r.fork();
                let mut out = [Block::ONES; N];
                for _ in 1..runs {
                    CotReceiver::extend(&mut r, ch, &mut out)?;
                    r.core.left.clear();
                }
                points(&config.code.noise(Core::run_size(1)).points(&mut r.prg.clone()));
                let result = CotReceiver::extend(&mut r, ch, &mut out);
                if result.is_err() {
                    assert!(out == [Block::ZERO; N] && r.core.left.is_empty(), "something was left");
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
        let (mut run, mut out) = (s.begin(ch, 1)?, Vec::new());
        let (code, noise) = s.short(ch, &mut run, s.source.delta() ^ delta, change)?;
        s.core.compress(&*code, noise, 9, &mut |rows| out.extend_from_slice(rows));
        s.core.left.clear();
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

    #[test]
    fn what_no_guess_helps_is_caught_in_the_short_form() {
        for config in CONFIGS {
            assert!(!short_is_caught(config, 1, Block::ZERO, |_, _| ()), "honest");
            let shape = config.code.shape(Core::run_size(1));
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

    /// A level's sum that the receiver takes or not, and a d of the anchor that counts or not: a guess of one bit.
    #[test]
    fn guessing_one_bit_of_the_short_form_succeeds_half_of_the_time() {
        const TRIALS: usize = 36;
        for config in CONFIGS {
            let shape = config.code.shape(Core::run_size(1));
            let sum = |trial: usize| {
                // The top level, one within and the last one, of one tree after the other.
                let level = [0, shape.depth / 2, shape.depth - 1][trial % 3];
                32 * shape.cot(trial % (LANES * shape.tiles), level) + 16 * (trial / 3 % 2)
            };
            let d = |trial: usize| tpprf::message_len(shape, true) + 16 * (trial * 29 % KAPPA);
            let (mut sums, mut anchors) = (0, 0);
            for trial in 0..TRIALS {
                let passes = |at| {
                    !short_is_caught(config, 100 + trial as u128, Block::ZERO, spoil(Part::Trees, at + 5))
                };
                sums += passes(sum(trial)) as usize;
                anchors += passes(d(trial)) as usize;
            }
            // 18 expected, with a standard deviation of 3.
            for passed in [sums, anchors] {
                assert!((9..=27).contains(&passed), "{passed} of {TRIALS} guesses were right");
            }
        }
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
                let tau = run.challenge(&run.setup(), &BitVec::zeros(8), b"the same").tau;
                let own = |label| run.context.clone().challenge_block(label);
                [tau, own("mitccrh start"), own("code"), own("tree")]
            })
            .collect();
        drawn.sort_by_key(|block| block.to_bytes());
        assert!(drawn.windows(2).all(|two| two[0] != two[1]), "two runs share a challenge or a hash");
    }

    /// The sender has its trees before it knows that the columns of KOS agree; none of it leaves until then.
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
                    r.core.seeds.open(ch).unwrap();
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
                    r.core.join(ch, &mut run).unwrap();
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

    /// Of half-trees: a bent correction of the last level bends the punctured leaf and its sibling: a sender that knows their place up to
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
    fn weights_leave_136_bits() {
        for q in [2, 4, 16, 256, 1 << 60] {
            let bias = 1.0 - 0.20 * q as f64 / (q as f64 - 1.0);
            let bits = -(linear_weight(q) as f64) * bias.log2();
            assert!(
                (136.0..148.0).contains(&bits) && linear_weight(q).is_multiple_of(LANES),
                "{bits} at {q}"
            );
        }
    }
}
