//! Silent OT with low traffic (Boyle–Couteau–Gilboa–Ishai–Kohl–Rindal–Scholl, CCS '19), over correlated OTs
//! of KOS (IKNP where the peer is semi-honest).
//!
//! - **Realises** random correlated OT with a fixed Δ, by the paper's generator for subfield VOLE over
//!   GF(2^128) with p = 2 (section 4): puncturable PRFs hold the sparse noise times Δ, a public code
//!   compresses it. Against semi-honest or malicious parties, in the random-oracle and ideal-permutation
//!   models, under dual LPN with regular noise and, for malicious security, static leakage (a cheating sender
//!   learns one bit of the noise on average or is caught).
//! - **Two forms** of a run. The *long* one, by half-trees, is the smaller and faster one. Against a
//!   malicious peer a run of at most [`SHORT`] results takes the *short* one, by GGM trees, which spares two
//!   messages in turn.
//! - **Messages** of a request, whatever its size: t·ℓ base correlations, then by the long form one
//!   correction of 16 bytes a tree level from the second on, and with malicious security a check of 64 bytes;
//!   about 110 kB in total for 10^7 correlations, base OTs included. By the short form 32 bytes a tree level,
//!   64 a tree and 2,112 of checks.
//! - **Seeds** of codes and hashes come from both parties, who commit along with the base OTs and open in a
//!   stream's first run, 32 bytes each way and no message to wait for.
//! - **Rounds** from nothing: three messages in turn (base OTs that cross, base correlations, the trees), by
//!   the long form and against a malicious peer five (the check's opening and its digest).
//!
//! Deviations from the paper, each of which keeps its proof. The long form: half-trees (2022/1431) in place
//! of GGM trees, since with p = 2 all noise values are 1 and the trees' sums are then Δ itself; base
//! correlations of the same Δ in place of base OTs; one check of all trees at once (see `spcot`) in place of
//! figure 13's hash and figure 16's combination. The short form: figures 13 and 16 by Fiat–Shamir, over
//! random OTs that are hashes of base correlations, with an anchor that holds the trees to these
//! correlations' Δ (see `tpprf` and docs/security-notes.md), as both forms of all runs must have one. Both:
//! the leaf whose position the quasi-cyclic code does not have, if a noisy one, is lost, for which four more
//! trees are made.

use super::code::LinearCode;
use super::noise::Noise;
pub use super::params::{Code, LARGEST_RUN, linear_weight};
pub use super::run::NAME;
use super::run::{Form, Run};
use super::{short, tpprf};
use crate::silent::engine::sink::{Blocks, Cots, Sink};
use crate::silent::engine::source::{SourceReceiver, SourceSender};
use crate::silent::engine::stock::Stock;
use crate::silent::engine::{Engine, Stream};
use crate::silent::tree::half::HalfTrees;
use crate::silent::tree::leaf_check::Weights;
use crate::silent::tree::opening::{CheckMessage, check_cots, check_digest, fold_powers};
use crate::silent::tree::spcot::{self, Trees};
use crate::{BaseOt, CotReceiver, CotSender, Error, Result, Security, VoleReceiver, VoleSender};
use tacit_crypto::transcript::Transcript;
use tacit_crypto::{Block, Buffer, Prg};
use tacit_net::Channel;
use zeroize::{Zeroize, Zeroizing};

/// Results of a malicious run of the short form at most. GGM trees take 45 to 65 ns a result more: here as
/// long as two messages of 4 ms each, which the form spares; from 10^6 on, its factor would fall on slow
/// links too.
// proof: silent-ot 7.1
pub const SHORT: usize = 1 << 17;
/// Requests below this take all that a run makes and keep the rest for later.
const SMALL: usize = 1 << 15;

/// What both parties must agree on.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Config {
    /// The code.
    pub code: Code,
    /// Whether the consistency check runs.
    pub security: Security,
}

impl Config {
    /// Whether a request of `count` takes the short form.
    pub fn is_short(&self, count: usize) -> bool {
        self.is_within(run_size(count), SHORT)
    }

    /// Whether a run of `size` has the short form, if those up to `limit` have.
    fn is_within(&self, size: usize, limit: usize) -> bool {
        self.security == Security::Malicious && size <= limit
    }

    /// Bytes of both directions for a request of `count`, at most [`LARGEST_RUN`], beside the base
    /// correlations.
    pub fn bytes(&self, count: usize) -> usize {
        let shape = self.code.shape(run_size(count));
        if self.is_short(count) {
            // The points' bits, the trees, the anchor, X and V.
            let proof = tpprf::Anchor::BYTES + 2 * size_of::<Block>();
            return shape.cots().div_ceil(8) + tpprf::message_len(shape, true) + proof;
        }
        // The check's seed, its masked weights, and a digest.
        let check = if check_cots(self.security) > 0 { 2 * size_of::<Block>() + 32 } else { 0 };
        size_of::<Block>() + shape.bytes() + check
    }

    /// Base correlations that a request of `count` takes, at most [`LARGEST_RUN`].
    pub fn base_cots(&self, count: usize) -> usize {
        self.code.shape(run_size(count)).cots() + check_cots(self.security)
    }
}

/// How many results a run must give for a request that lacks `wanted`.
fn run_size(wanted: usize) -> usize {
    wanted.clamp(SMALL / 2, LARGEST_RUN)
}

/// What both parties do alike.
struct Core {
    config: Config,
    engine: Engine,
    /// Results of a run of the short form at most: [`SHORT`].
    short: usize,
    /// What earlier runs made and nobody asked for.
    left: Stock,
}

impl Core {
    fn new(config: Config, engine: Engine) -> Self {
        Core { config, engine, short: SHORT, left: Stock::empty(NAME) }
    }

    /// Another stream: its trees and codes have seeds of their own.
    fn fork(&mut self) -> Self {
        Core { short: self.short, ..Core::new(self.config, self.engine.fork()) }
    }

    /// The public parts of the next run, for a request that lacks `wanted`; codes and hashes wait for the
    /// joint seed.
    fn begin(&mut self, wanted: usize) -> Run {
        self.engine.next();
        let (size, code) = (run_size(wanted), self.config.code);
        let (noise, short) = (code.noise(size), self.config.is_within(size, self.short));
        let mut context = self.engine.of_run("run");
        context.append_u64("short", short as u64);
        context.append_u64("depth", noise.shape.depth as u64);
        context.append_u64("tiles", noise.shape.tiles as u64);
        context.append_u64("block", noise.block as u64);
        Run { code, noise, form: if short { Form::Short } else { Form::Long }, context }
    }

    /// Compresses the noise for `sink`; a small request's rest is kept.
    fn compress(&mut self, code: &dyn LinearCode, noise: Buffer, sink: &mut Cots<'_>) {
        let wanted = sink.left();
        let here = wanted.min(code.output_len());
        let made = if wanted < SMALL { code.output_len() } else { here };
        self.left = Stock::with_room(NAME, made - here);
        let mut lacking = here;
        code.encode(noise, made, &mut |piece| {
            let (now, later) = piece.split_at(piece.len().min(lacking));
            if !now.is_empty() {
                sink.put(now);
            }
            self.left.add(later);
            lacking -= now.len();
        });
    }
}

/// All that the parties must agree on.
fn context(channel: &mut Channel, config: Config) -> Transcript {
    let mut context = Transcript::new("tacit silent bcgikrs19 v5");
    context.append("session", &channel.session_id().0);
    context.append_u64("instance", channel.next_instance());
    context.append("code", config.code.name().as_bytes());
    context.append_u64("malicious", (config.security == Security::Malicious) as u64);
    context
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
    /// Errors: those of the link and the base OT; `Usage` for a base OT that protects less than the
    /// configuration.
    pub fn setup(channel: &mut Channel, base: &dyn BaseOt, prg: &mut Prg, config: Config) -> Result<Self> {
        let source = SourceSender::begin(channel, base, prg, config.security)?;
        let context = context(channel, config);
        let (engine, source) = Engine::agree(channel, NAME, context, source, prg, true)?;
        Ok(SilentSender { core: Core::new(config, engine), source, prg: prg.fork() })
    }

    /// An independent stream with the same Δ, for another channel; the receiver forks in step. When one
    /// stream fails, all are spent.
    pub fn fork(&mut self) -> Self {
        SilentSender { core: self.core.fork(), source: self.source.fork(), prg: self.prg.fork() }
    }

    /// The public parts of the next run; this party's seed is on its way, if the peer does not have it yet.
    fn begin(&mut self, channel: &mut Channel, wanted: usize) -> Result<Run> {
        let run = self.core.begin(wanted);
        self.core.engine.open(channel)?;
        channel.flush()?;
        Ok(run)
    }

    /// The base correlations of a run, those of its check last.
    fn cots(&mut self, channel: &mut Channel, run: &Run) -> Result<Zeroizing<Vec<Block>>> {
        // proof: silent-ot 2.1
        let n = run.noise.shape.cots() + check_cots(self.core.config.security);
        let mut cots = Zeroizing::new(vec![Block::ZERO; n]);
        self.source.extend(channel, &mut cots)?;
        Ok(cots)
    }

    /// The code, and the noise by half-trees.
    fn long(&mut self, channel: &mut Channel, run: &mut Run) -> Result<(Box<dyn LinearCode>, Buffer)> {
        self.core.engine.join(channel, &mut run.context)?;
        let (code, mut expander) = (run.code(), run.expander());
        let cots = self.cots(channel, run)?;
        let (level, check) = cots.split_at(run.noise.shape.cots());
        let delta = self.source.delta();
        // proof: silent-ot 2.2
        let trees = spcot::send(channel, &mut self.prg, &mut expander, delta, run.noise.shape, level)?;
        if self.core.config.security == Security::SemiHonest {
            let noise = expand(&trees, &mut expander, &*code, run.noise, None).0;
            return Ok((code, noise));
        }
        let message = CheckMessage::receive(channel)?;
        let weights = Weights::new(message.seed, run.noise.shape);
        let (noise, sum) = expand(&trees, &mut expander, &*code, run.noise, Some(&weights));
        let value = sum ^ message.sender_mask(delta, check);
        channel.send(&check_digest(&run.context, self.core.engine.number(), value))?;
        channel.flush()?;
        Ok((code, noise))
    }
}

impl Stream for SilentSender {
    type Sink<'a> = Cots<'a>;

    fn engine(&self) -> &Engine {
        &self.core.engine
    }

    fn serve(&mut self, sink: &mut Cots<'_>) -> Result<()> {
        self.core.left.serve_last(sink);
        Ok(())
    }

    /// Section 4 with the setup of section 5.
    fn run(&mut self, channel: &mut Channel, sink: &mut Cots<'_>) -> Result<()> {
        let mut run = self.begin(channel, sink.left())?;
        let (code, noise) = match run.form {
            Form::Long => self.long(channel, &mut run)?,
            Form::Short => {
                let SilentSender { core, source, prg } = self;
                let delta = source.delta();
                short::send(channel, &mut core.engine, source, prg, &mut run, delta, |_, _| ())?
            }
        };
        self.core.compress(&*code, noise, sink);
        Ok(())
    }

    fn wipe(&mut self) {
        self.core.left.zeroize();
    }
}

impl SilentReceiver {
    /// Sets up from a base OT, in which this side sends 128.
    ///
    /// Errors: as for [`SilentSender::setup`].
    pub fn setup(channel: &mut Channel, base: &dyn BaseOt, prg: &mut Prg, config: Config) -> Result<Self> {
        let source = SourceReceiver::begin(channel, base, prg, config.security)?;
        let context = context(channel, config);
        let (engine, source) = Engine::agree(channel, NAME, context, source, prg, false)?;
        Ok(SilentReceiver { core: Core::new(config, engine), source, prg: prg.fork() })
    }

    /// An independent stream, for another channel; the sender forks in step.
    pub fn fork(&mut self) -> Self {
        SilentReceiver { core: self.core.fork(), source: self.source.fork(), prg: self.prg.fork() }
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
        self.core.engine.join(channel, &mut run.context)?;
        let (code, mut expander) = (run.code(), run.expander());
        trees.receive(channel, level)?;
        if self.core.config.security == Security::SemiHonest {
            let noise = expand(&trees, &mut expander, &*code, run.noise, None).0;
            return Ok((code, noise));
        }
        // proof: silent-ot 2.3
        let seed = self.prg.block();
        let weights = Weights::new(seed, run.noise.shape);
        CheckMessage::send(channel, seed, weights.of_leaves(trees.points()), check)?;
        channel.flush()?;
        let (noise, sum) = expand(&trees, &mut expander, &*code, run.noise, Some(&weights));
        let value = sum ^ fold_powers(check);
        // proof: silent-ot 2.4
        let expected = check_digest(&run.context, self.core.engine.number(), value);
        self.core.engine.receive_digest(channel, &expected)?;
        Ok((code, noise))
    }
}

impl Stream for SilentReceiver {
    type Sink<'a> = Cots<'a>;

    fn engine(&self) -> &Engine {
        &self.core.engine
    }

    fn serve(&mut self, sink: &mut Cots<'_>) -> Result<()> {
        self.core.left.serve_last(sink);
        Ok(())
    }

    fn run(&mut self, channel: &mut Channel, sink: &mut Cots<'_>) -> Result<()> {
        let mut run = self.core.begin(sink.left());
        self.core.engine.open(channel)?;
        let n = run.noise.shape.cots() + check_cots(self.core.config.security);
        let mut cots = Zeroizing::new(vec![Block::ZERO; n]);
        self.source.extend(channel, &mut cots)?;
        let points = Zeroizing::new(run.noise.points(&mut self.prg));
        let (code, noise) = match run.form {
            Form::Long => self.long(channel, &mut run, &cots, points.to_vec())?,
            Form::Short => short::receive(channel, &mut self.core.engine, &mut run, &cots, &points)?,
        };
        self.core.compress(&*code, noise, sink);
        Ok(())
    }

    fn wipe(&mut self) {
        self.core.left.zeroize();
    }
}

impl CotSender for SilentSender {
    fn delta(&self) -> Block {
        self.source.delta()
    }

    fn extend(&mut self, channel: &mut Channel, out: &mut [Block]) -> Result<()> {
        self.fill(channel, Cots::memory(out))
    }

    /// One run makes up to 2^24 at once; what `each` sees has passed that run's check.
    fn extend_each(&mut self, channel: &mut Channel, n: usize, each: &mut dyn FnMut(&[Block])) -> Result<()> {
        self.fill(channel, Cots::each(n, each))
    }
}

impl CotReceiver for SilentReceiver {
    fn extend(&mut self, channel: &mut Channel, out: &mut [Block]) -> Result<()> {
        self.fill(channel, Cots::memory(out))
    }

    /// One run makes up to 2^24 at once; what `each` sees has passed that run's check.
    fn extend_each(&mut self, channel: &mut Channel, n: usize, each: &mut dyn FnMut(&[Block])) -> Result<()> {
        self.fill(channel, Cots::each(n, each))
    }
}

/// Over GF(2^128) with u in GF(2).
impl VoleSender<Block> for SilentSender {
    fn delta(&self) -> Block {
        CotSender::delta(self)
    }

    fn extend(&mut self, channel: &mut Channel, out: &mut [Block]) -> Result<()> {
        CotSender::extend(self, channel, out)
    }
}

/// As for the sender; u is the lowest bit of w.
impl VoleReceiver<bool, Block> for SilentReceiver {
    fn extend(&mut self, channel: &mut Channel, u: &mut [bool], w: &mut [Block]) -> Result<()> {
        if u.len() != w.len() {
            return Err(Error::Usage { protocol: NAME, what: "as many u as w" });
        }
        CotReceiver::extend(self, channel, w)?;
        for (u, w) in u.iter_mut().zip(w) {
            *u = w.lsb();
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "bcgikrs19_cheats.rs"]
mod tests;
