//! Half-trees with hashed leaves: what VOLE over GF(2^128) and its subfields do alike (BCGIKRS19, sections 4
//! and 6).
//!
//! A noisy leaf must differ by y·Δ with the y of its tree and not by Δ, so leaves are hashed, and one
//! correction a tree puts the parties' shares of y·Δ in place. The check is the leaf check with its weights
//! times y.

use crate::silent::engine::Engine;
use crate::silent::noise::Noise;
use crate::silent::tree::half::{GroupKeys, HalfTrees};
use crate::silent::tree::leaf_check::Weights;
use crate::silent::tree::opening::{CheckMessage, check_cots, check_digest, fold_powers};
use crate::silent::tree::parts::{Part, each_part, parts, places};
use crate::silent::tree::spcot::{ReceiverTrees, Trees};
use crate::{Result, Security};
use tacit_crypto::ggm::{LANES, ccr_keyed_into};
use tacit_crypto::transcript::Transcript;
use tacit_crypto::{BitVec, Block, Prg, workers};
use tacit_net::Channel;
use zeroize::Zeroizing;

/// Begins a run over a field of `q` elements: the noise for `count` correlations. Opens this party's seed.
pub(super) fn begin(engine: &mut Engine, channel: &mut Channel, q: usize, count: usize) -> Result<Noise> {
    engine.next();
    engine.open(channel)?;
    Ok(Noise::of_field(q, count))
}

/// What a run consists of, once its seed is known.
pub(super) struct Run {
    /// Its number.
    number: u64,
    context: Transcript,
    layout: Noise,
    pub expander: HalfTrees,
    pub leaf: GroupKeys,
    /// What the code is drawn from.
    pub code: Block,
}

/// Base correlations of a run with `layout` by their use: for the levels, for the values of `bits` bits, for
/// the check.
pub(super) fn cots(security: Security, layout: Noise, bits: usize) -> [usize; 3] {
    [layout.shape.cots(), bits * layout.trees(), check_cots(security)]
}

/// Cuts `cots` in these three.
pub(super) fn split(cots: &[Block], lens: [usize; 3]) -> [&[Block]; 3] {
    let (levels, rest) = cots.split_at(lens[0]);
    let (values, check) = rest.split_at(lens[1]);
    [levels, values, check]
}

fn add_lanes(sums: &mut [Block], blocks: &[Block]) {
    for line in blocks.chunks_exact(LANES) {
        for (sum, block) in sums.iter_mut().zip(line) {
            *sum ^= *block;
        }
    }
}

impl Run {
    /// The rest of a run's public parts, for which a stream's first run receives the peer's seed.
    pub(super) fn join(
        engine: &mut Engine,
        channel: &mut Channel,
        layout: Noise,
        count: usize,
    ) -> Result<Self> {
        let mut context = engine.of_run("run");
        context.append_u64("count", count as u64);
        engine.join(channel, &mut context)?;
        Ok(Run {
            number: engine.number(),
            layout,
            expander: HalfTrees::new(layout.shape.depth, context.challenge_block("tree")),
            leaf: GroupKeys::new(context.challenge_block("leaf")),
            code: context.challenge_block("code"),
            context,
        })
    }

    /// The sender's leaves into `noise`, and their sum over each tree. A leaf that is no position has no
    /// part.
    pub(super) fn leaves(
        &mut self,
        trees: &(impl Trees + Sync),
        noise: &mut [Block],
    ) -> Zeroizing<Vec<Block>> {
        let Run { layout, expander, leaf, .. } = self;
        let tile_len = layout.tile_len();
        let mut sums = Zeroizing::new(vec![Block::ZERO; layout.trees()]);
        let parts = parts(layout.shape);
        let places = places(&parts, noise, tile_len).into_iter().zip(places(&parts, &mut sums, LANES));
        let work = |expander: &mut HalfTrees, part: &Part, noise: &mut [Block], sums: &mut [Block]| {
            let leaf = leaf.cipher(part.group());
            trees.expand_part(expander, part.first, part.tiles, &mut |tile, leaves| {
                let place = &mut noise[(tile - part.first) * tile_len..][..tile_len];
                ccr_keyed_into(&leaf, &leaves[..tile_len], place);
                add_lanes(&mut sums[(tile - part.first) * LANES..][..LANES], place);
            });
        };
        each_part(expander, parts.iter().zip(places), |expander, (part, (noise, sums))| {
            work(expander, part, noise, sums);
        });
        sums
    }

    /// The receiver's leaves into `noise`, and which of them are noisy. In `z` stand the sender's corrections
    /// less this party's shares of y·Δ.
    pub(super) fn punctured_leaves(
        &mut self,
        trees: &ReceiverTrees,
        z: &mut [Block],
        noise: &mut [Block],
    ) -> BitVec {
        // proof: vole 2.5
        let Run { layout, expander, leaf, .. } = self;
        let tile_len = layout.tile_len();
        let parts = parts(layout.shape);
        let mut noisy: Vec<BitVec> = parts.iter().map(|part| BitVec::zeros(part.tiles * tile_len)).collect();
        let places =
            places(&parts, noise, tile_len).into_iter().zip(places(&parts, z, LANES)).zip(&mut noisy);
        let work = |expander: &mut HalfTrees,
                    part: &Part,
                    noise: &mut [Block],
                    z: &mut [Block],
                    noisy: &mut BitVec| {
            let leaf = leaf.cipher(part.group());
            trees.expand_part(expander, part.first, part.tiles, &mut |tile, leaves| {
                let at = (tile - part.first) * tile_len;
                let (leaves, place) = (&leaves[..tile_len], &mut noise[at..][..tile_len]);
                ccr_keyed_into(&leaf, leaves, place);
                // The lowest bit of a half-tree's leaf tells the noisy one.
                noisy.set_lsbs(at, leaves);
                for (place, leaf) in place.iter_mut().zip(leaves) {
                    *place &= !Block::mask(leaf.lsb());
                }
                let z = &mut z[(tile - part.first) * LANES..][..LANES];
                add_lanes(z, place);
                for (place, leaves) in place.chunks_exact_mut(LANES).zip(leaves.chunks_exact(LANES)) {
                    for ((place, leaf), z) in place.iter_mut().zip(leaves).zip(z.iter()) {
                        *place ^= *z & Block::mask(leaf.lsb());
                    }
                }
            });
        };
        let all = parts.iter().zip(places);
        each_part(expander, all, |expander, (part, ((noise, z), noisy))| {
            work(expander, part, noise, z, noisy);
        });
        BitVec::concat(&noisy)
    }

    /// Positions from `start` on, a multiple of 64, of the vector that has the values `y` of the trees at the
    /// `noisy` positions, and zeros.
    pub(super) fn sparse(&self, noisy: &BitVec, y: &[Block], start: usize, out: &mut [Block]) {
        let tile_len = self.layout.tile_len();
        let blocks = &noisy.blocks()[start / 128..];
        let words = blocks.iter().flat_map(|block| [block.low(), block.high()]).skip(start / 64 % 2);
        for ((i, out), word) in out.chunks_exact_mut(64).enumerate().zip(words) {
            for (row, out) in out.as_chunks_mut::<LANES>().0.iter_mut().enumerate() {
                let at = start + 64 * i + LANES * row;
                let (bits, y) = (word >> (LANES * row), &y[at / tile_len * LANES..][..LANES]);
                for (lane, (out, y)) in out.iter_mut().zip(y).enumerate() {
                    *out = *y & Block::mask(bits >> lane & 1 == 1);
                }
            }
        }
    }

    /// Σ weights·leaves over all tiles.
    fn weigh(&self, weights: &Weights, noise: &[Block]) -> Block {
        let (tile_len, share) = (self.layout.tile_len(), workers::share(self.layout.shape.tiles, 1));
        let sums = workers::map(noise.chunks(share * tile_len).enumerate(), |(i, noise)| {
            let tiles = (i * share..).zip(noise.chunks(tile_len));
            Zeroizing::new(tiles.fold(Block::ZERO, |sum, (tile, leaves)| sum ^ weights.sum(tile, leaves)))
        });
        sums.iter().fold(Block::ZERO, |sum, part| sum ^ **part)
    }

    /// The sender's side of the check of its `noise`.
    pub(super) fn answer(
        &self,
        channel: &mut Channel,
        delta: Block,
        noise: &[Block],
        cots: &[Block],
    ) -> Result<()> {
        // proof: vole 2.7
        let message = CheckMessage::receive(channel)?;
        let sum = self.weigh(&Weights::new(message.seed, self.layout.shape), noise);
        let value = sum ^ message.sender_mask(delta, cots);
        channel.send(&check_digest(&self.context, self.number, value))?;
        channel.flush()?;
        Ok(())
    }

    /// The receiver's side, of a run of `engine`: `Cheated` when the sender's noise is of another Δ.
    pub(super) fn check(
        &self,
        channel: &mut Channel,
        engine: &Engine,
        prg: &mut Prg,
        trees: &ReceiverTrees,
        values: impl Iterator<Item = Block>,
        noise: &[Block],
        cots: &[Block],
    ) -> Result<()> {
        // proof: vole 2.6
        let seed = prg.block();
        let weights = Weights::new(seed, self.layout.shape);
        CheckMessage::send(channel, seed, weights.of_values(trees.points(), values), cots)?;
        channel.flush()?;
        let value = self.weigh(&weights, noise) ^ fold_powers(cots);
        engine.receive_digest(channel, &check_digest(&self.context, self.number, value))
    }
}
