//! Single-point correlated OT, many at once (Ferret, figure 6), on half-trees.
//!
//! Realises the paper's functionality of figure 3: for each tree the receiver has one secret leaf α, the sender random
//! v, and the receiver w with w = v but at α, where w = v ⊕ Δ. A malicious sender may guess bits of the α and is caught
//! when a guess is wrong (the leakage of LPN with static leakage).
//!
//! Deviations from the figure, each of which keeps its proof:
//! - Half-trees (2022/1431) in place of GGM trees: every level XORs to Δ, so one correction a level suffices, masked by
//!   the correlated OT itself, and the last correction c falls away.
//! - The first level needs no correction either, for its two nodes are a correlated OT as it is. A malicious receiver may
//!   have made correlations equal, and two equal trees punctured on different sides would show Δ, so the sender adds
//!   a random block to each root, from a seed that it sends once the correlations and the receiver's bits are fixed.
//! - One check for all trees of a round in place of one a tree: 128 correlations a round. Its weights are the monomials
//!   of a multilinear polynomial in random field elements times a random element a tile, so soundness is
//!   (depth + 4)/2^128, and the receiver computes the weights of its secret leaves without a secret index.
//! - The receiver draws the weights' seed before the corrections arrive and reveals it after all of them did; the sender
//!   sees what it would see had the seed been drawn then.

use super::half_tree::{HalfTrees, PerTree, TILES};
use crate::{Error, Result};
use subtle::ConstantTimeEq;
use tacit_crypto::ggm::LANES;
use tacit_crypto::transcript::Transcript;
use tacit_crypto::{BitVec, Block, KAPPA, Prg, gf128};
use tacit_net::Channel;
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

const TREES: usize = TILES * LANES;
const SEGMENT: usize = 512;
/// Corrections leave after so many leaves: the receiver works on them while the sender expands the next trees.
const FLUSH: usize = 1 << 15;

/// How many trees of which depth: `tiles` tiles of four.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Shape {
    pub tiles: usize,
    pub depth: usize,
}

impl Shape {
    /// Correlations that the trees consume, the check apart.
    pub(crate) fn cots(self) -> usize {
        self.tiles * LANES * self.depth
    }

    /// Which of them is that of `level` of tree `tree`.
    pub(crate) fn cot(self, tree: usize, level: usize) -> usize {
        (tree / LANES * self.depth + level) * LANES + tree % LANES
    }

    /// Blocks of corrections: none for the first level.
    pub(crate) fn corrections(self) -> usize {
        self.tiles * LANES * (self.depth - 1)
    }

    /// [`corrections`](Self::corrections) of one group.
    pub(crate) fn corrections_in(self, group: usize) -> usize {
        self.tiles_in(group) * LANES * (self.depth - 1)
    }

    /// Bytes on the wire: the corrections, and a bit from the receiver for each correlation.
    pub(crate) fn bytes(self) -> usize {
        16 * self.corrections() + self.cots() / 8
    }

    pub(crate) fn groups(self) -> usize {
        self.tiles.div_ceil(TILES)
    }

    pub(crate) fn tiles_in(self, group: usize) -> usize {
        TILES.min(self.tiles - group * TILES)
    }
}

/// One party's half of a batch of trees, compact: expanding it needs no peer.
pub(crate) trait Trees {
    /// The batch's shape.
    fn shape(&self) -> Shape;
    /// Expands `tiles` tiles, at most eight, from tile `first` on; `each` gets a tile's index in the batch and its leaves.
    fn expand_tiles(
        &self,
        expander: &mut HalfTrees,
        first: usize,
        tiles: usize,
        each: &mut dyn FnMut(usize, &mut [Block]),
    );
    /// Expands one group of up to eight tiles.
    fn expand(&self, expander: &mut HalfTrees, group: usize, each: &mut dyn FnMut(usize, &mut [Block])) {
        self.expand_tiles(expander, group * TILES, self.shape().tiles_in(group), each);
    }
}

/// Σ χ·leaf over all trees: runs over them for the check alone.
pub(crate) fn check_sum(trees: &dyn Trees, expander: &mut HalfTrees, weights: &Weights) -> Block {
    let mut sum = Block::ZERO;
    for group in 0..trees.shape().groups() {
        trees.expand(expander, group, &mut |tile, leaves| sum ^= weights.sum(tile, leaves));
    }
    sum
}

/// The sender's roots.
#[derive(Zeroize, ZeroizeOnDrop)]
pub(crate) struct SenderTrees {
    #[zeroize(skip)]
    shape: Shape,
    delta: Block,
    roots: Vec<Block>,
}

impl SenderTrees {
    fn roots(&self, first: usize, tiles: usize) -> PerTree {
        let mut roots = [Block::ZERO; TREES];
        let n = tiles * LANES;
        roots[..n].copy_from_slice(&self.roots[first * LANES..][..n]);
        roots
    }
}

impl Trees for SenderTrees {
    fn shape(&self) -> Shape {
        self.shape
    }

    fn expand_tiles(
        &self,
        expander: &mut HalfTrees,
        first: usize,
        tiles: usize,
        each: &mut dyn FnMut(usize, &mut [Block]),
    ) {
        let mut sums = vec![[Block::ZERO; TREES]; self.shape.depth];
        let roots = self.roots(first, tiles);
        expander.expand(self.delta, &roots, tiles, &mut sums, |t, leaves| each(first + t, leaves));
        sums.zeroize();
    }
}

/// The receiver's points and its key of every level.
#[derive(Zeroize, ZeroizeOnDrop)]
pub(crate) struct ReceiverTrees {
    #[zeroize(skip)]
    shape: Shape,
    alpha: Vec<u32>,
    keys: Vec<Block>,
}

impl Trees for ReceiverTrees {
    fn shape(&self) -> Shape {
        self.shape
    }

    fn expand_tiles(
        &self,
        expander: &mut HalfTrees,
        first: usize,
        tiles: usize,
        each: &mut dyn FnMut(usize, &mut [Block]),
    ) {
        let depth = self.shape.depth;
        let mut alpha = [0u32; TREES];
        alpha[..tiles * LANES].copy_from_slice(&self.alpha[first * LANES..][..tiles * LANES]);
        let mut keys = vec![[Block::ZERO; TREES]; depth];
        let mine = &self.keys[first * LANES * depth..];
        for (i, line) in mine.chunks_exact(LANES).take(tiles * depth).enumerate() {
            keys[i % depth][i / depth * LANES..][..LANES].copy_from_slice(line);
        }
        expander.expand_punctured(&alpha, &keys, tiles, |t, leaves| each(first + t, leaves));
        keys.zeroize();
        alpha.zeroize();
    }
}

/// Figure 6, steps 3 and 4: takes the receiver's bits, answers with a seed and one correction a level from the second on.
pub(crate) fn send(
    channel: &mut Channel,
    prg: &mut Prg,
    expander: &mut HalfTrees,
    delta: Block,
    shape: Shape,
    cots: &[Block],
) -> Result<SenderTrees> {
    send_each(channel, prg, expander, delta, shape, cots, &mut |_, _| {})
}

/// [`send`], where `each` gets every tile and its leaves, as they are expanded for the corrections.
pub(crate) fn send_each(
    channel: &mut Channel,
    prg: &mut Prg,
    expander: &mut HalfTrees,
    delta: Block,
    shape: Shape,
    cots: &[Block],
    each: &mut dyn FnMut(usize, &mut [Block]),
) -> Result<SenderTrees> {
    assert_eq!(cots.len(), shape.cots(), "one correlation a level of each tree");
    let mut bits = vec![0u8; shape.cots().div_ceil(8)];
    channel.recv(&mut bits)?;
    let bits = BitVec::from_bytes(&bits, shape.cots());
    let masked = |i: usize| cots[i] ^ (delta & Block::mask(bits.get(i)));
    let seed = prg.block();
    channel.send_block(seed)?;
    let roots =
        offsets(seed, shape).enumerate().map(|(p, offset)| offset ^ masked(shape.cot(p, 0))).collect();
    let trees = SenderTrees { shape, delta, roots };
    let mut sums = vec![[Block::ZERO; TREES]; shape.depth];
    let mut message = Vec::with_capacity(TREES * shape.depth);
    let mut unsent = 0;
    for group in 0..shape.groups() {
        let (first, tiles) = (group * TILES, shape.tiles_in(group));
        expander
            .expand(delta, &trees.roots(first, tiles), tiles, &mut sums, |t, leaves| each(first + t, leaves));
        message.clear();
        for tile in 0..tiles {
            for (level, sums) in sums.iter().enumerate().skip(1) {
                let lanes = tile * LANES..(tile + 1) * LANES;
                message.extend(lanes.map(|p| sums[p] ^ masked(shape.cot(first * LANES + p, level))));
            }
        }
        channel.send_blocks(&message)?;
        unsent += (tiles * LANES) << shape.depth;
        if unsent >= FLUSH {
            channel.flush()?;
            unsent = 0;
        }
    }
    sums.zeroize();
    channel.flush()?;
    Ok(trees)
}

/// What the sender adds to the root of each tree.
fn offsets(seed: Block, shape: Shape) -> impl Iterator<Item = Block> {
    let mut offsets = vec![Block::ZERO; shape.tiles * LANES];
    Prg::from_seed(seed).fill_blocks(&mut offsets);
    offsets.into_iter()
}

/// A uniform point for each tree of `shape`.
pub(crate) fn points(prg: &mut Prg, shape: Shape) -> Vec<u32> {
    let mut bytes = Zeroizing::new(vec![0u8; shape.tiles * LANES * 4]);
    prg.fill_bytes(&mut bytes);
    let mask = (1u32 << shape.depth) - 1;
    bytes.chunks_exact(4).map(|c| u32::from_le_bytes([c[0], c[1], c[2], c[3]]) & mask).collect()
}

/// Figure 6, step 4: draws a point for each tree and sends the bits b = r ⊕ ᾱ. Returns the trees, still without keys.
pub(crate) fn choose(
    channel: &mut Channel,
    prg: &mut Prg,
    shape: Shape,
    cots: &[Block],
) -> Result<ReceiverTrees> {
    choose_points(channel, points(prg, shape), shape, cots)
}

/// [`choose`] with the points given.
pub(crate) fn choose_points(
    channel: &mut Channel,
    alpha: Vec<u32>,
    shape: Shape,
    cots: &[Block],
) -> Result<ReceiverTrees> {
    assert_eq!(cots.len(), shape.cots(), "one correlation a level of each tree");
    let trees = ReceiverTrees { shape, alpha, keys: Vec::new() };
    let mut bits = BitVec::zeros(shape.cots());
    for (i, cot) in cots.iter().enumerate() {
        let (tile, level, lane) = (i / LANES / shape.depth, i / LANES % shape.depth, i % LANES);
        let away = trees.alpha[tile * LANES + lane] >> level & 1 == 0;
        bits.set(i, cot.lsb() ^ away);
    }
    channel.send(bits.as_bytes())?;
    channel.flush()?;
    Ok(trees)
}

impl ReceiverTrees {
    /// Figure 6, step 5 (a): receives seed and corrections and takes off the masks.
    pub(crate) fn receive(&mut self, channel: &mut Channel, cots: &[Block]) -> Result<()> {
        self.receive_seed(channel, cots)?;
        (0..self.shape.groups()).try_for_each(|group| self.receive_group(channel, group))
    }

    /// Step 5 (a) for the roots; [`receive_group`](Self::receive_group) of every group in turn follows.
    pub(crate) fn receive_seed(&mut self, channel: &mut Channel, cots: &[Block]) -> Result<()> {
        let seed = channel.recv_block()?;
        self.keys = cots.to_vec();
        for (p, offset) in offsets(seed, self.shape).enumerate() {
            self.keys[self.shape.cot(p, 0)] ^= offset;
        }
        Ok(())
    }

    /// Step 5 (a) for the trees of one group.
    pub(crate) fn receive_group(&mut self, channel: &mut Channel, group: usize) -> Result<()> {
        let mut corrections = vec![Block::ZERO; self.shape.corrections_in(group)];
        channel.recv_blocks(&mut corrections)?;
        let tile = self.shape.depth * LANES;
        let keys = self.keys[group * TILES * tile..].chunks_exact_mut(tile);
        for (keys, corrections) in keys.zip(corrections.chunks_exact(tile - LANES)) {
            keys[LANES..].iter_mut().zip(corrections).for_each(|(key, correction)| *key ^= *correction);
        }
        Ok(())
    }
}

/// The weights of the consistency check, all from one public seed.
pub(crate) struct Weights {
    variables: Vec<Block>,
    within: Vec<Block>,
    segments: Vec<Block>,
    tiles: Vec<Block>,
}

impl Weights {
    /// The weights of `seed` for trees of `shape`.
    pub(crate) fn new(seed: Block, shape: Shape) -> Self {
        let mut prg = Prg::from_seed(seed);
        let mut variables = vec![Block::ZERO; shape.depth + LANES.ilog2() as usize];
        prg.fill_blocks(&mut variables);
        let inner = variables.len().min(SEGMENT.ilog2() as usize);
        let (low, high) = variables.split_at(inner);
        let (within, segments) = (monomials(low), monomials(high));
        let mut tiles = vec![Block::ZERO; shape.tiles];
        prg.fill_blocks(&mut tiles);
        Weights { variables, within, segments, tiles }
    }

    /// Σ χ·leaf over one tile.
    pub(crate) fn sum(&self, tile: usize, leaves: &[Block]) -> Block {
        let mut sum = Block::ZERO;
        for (segment, weight) in leaves.chunks_exact(self.within.len()).zip(&self.segments) {
            sum ^= gf128::mul(gf128::inner_product(&self.within, segment), *weight);
        }
        gf128::mul(sum, self.tiles[tile])
    }

    /// χ of leaf `alpha` of tree `lane` in `tile`, the same steps for every alpha.
    fn of_leaf(&self, tile: usize, lane: usize, alpha: u32) -> Block {
        let position = ((alpha as u64) << LANES.ilog2()) | lane as u64;
        let mut weight = self.tiles[tile];
        for (i, x) in self.variables.iter().enumerate() {
            let bit = Block::mask(position >> i & 1 == 1);
            weight = gf128::mul(weight, (*x & bit) | (Block::ONE & !bit));
        }
        weight
    }

    /// Figure 6, step 7: φ = Σ χ_α over all trees.
    pub(crate) fn of_points(&self, trees: &ReceiverTrees) -> Block {
        self.of_leaves(&trees.alpha)
    }

    /// The sum of the weights of the points, each times the value of its tree.
    pub(crate) fn of_values(&self, trees: &ReceiverTrees, values: impl Iterator<Item = Block>) -> Block {
        let points = trees.alpha.iter().zip(values).enumerate();
        points.fold(Block::ZERO, |sum, (i, (&a, value))| {
            sum ^ gf128::mul(self.of_leaf(i / LANES, i % LANES, a), value)
        })
    }

    /// The sum of the weights of one leaf a tree.
    pub(crate) fn of_leaves(&self, alpha: &[u32]) -> Block {
        let weights = alpha.iter().enumerate().map(|(i, &a)| self.of_leaf(i / LANES, i % LANES, a));
        weights.fold(Block::ZERO, |acc, w| acc ^ w)
    }
}

/// All products of subsets of `variables`: entry q is the product of those whose bit is set in q.
fn monomials(variables: &[Block]) -> Vec<Block> {
    let mut out = vec![Block::ONE];
    for x in variables {
        for i in 0..out.len() {
            out.push(gf128::mul(out[i], *x));
        }
    }
    out
}

/// What the receiver sends to open the check: the weights' seed and x' = φ ⊕ x*.
pub(crate) struct CheckMessage {
    pub seed: Block,
    pub masked: Block,
}

impl CheckMessage {
    /// Bytes on the wire.
    pub(crate) const BYTES: usize = 32;

    /// Figure 6, step 7; `cots` are the 128 correlations of the check.
    pub(crate) fn send(channel: &mut Channel, seed: Block, phi: Block, cots: &[Block]) -> Result<()> {
        let x = cots.iter().enumerate().fold(0u128, |acc, (i, c)| acc | (c.lsb() as u128) << i);
        channel.send_block(seed)?;
        channel.send_block(phi ^ Block::new(x))?;
        Ok(())
    }

    pub(crate) fn receive(channel: &mut Channel) -> Result<Self> {
        Ok(CheckMessage { seed: channel.recv_block()?, masked: channel.recv_block()? })
    }

    /// Figure 6, step 8: Y = Σ (y*_i ⊕ x'_i·Δ)·X^i.
    pub(crate) fn sender_mask(&self, delta: Block, cots: &[Block]) -> Block {
        fold_powers(cots) ^ gf128::mul(self.masked, delta)
    }
}

/// The receiver's half of the check, made while the sender expands its trees and shown once all corrections are here.
pub(crate) struct Opening {
    pub weights: Weights,
    seed: Block,
    phi: Block,
}

impl Opening {
    pub(crate) fn draw(prg: &mut Prg, trees: &ReceiverTrees) -> Self {
        let seed = prg.block();
        let weights = Weights::new(seed, trees.shape);
        let phi = weights.of_points(trees);
        Opening { weights, seed, phi }
    }

    /// Figure 6, step 7; `cots` are the 128 correlations of the check.
    pub(crate) fn send(&self, channel: &mut Channel, cots: &[Block]) -> Result<()> {
        CheckMessage::send(channel, self.seed, self.phi, cots)?;
        channel.flush()?;
        Ok(())
    }
}

/// Σ cots[i]·X^i: figure 6, step 9.
pub(crate) fn fold_powers(cots: &[Block]) -> Block {
    assert_eq!(cots.len(), KAPPA, "the check takes 128 correlations");
    let powers: [Block; KAPPA] = core::array::from_fn(|i| Block::new(1 << i));
    gf128::inner_product(cots, &powers)
}

/// Bytes of H'.
pub(crate) const DIGEST: usize = 32;

/// H' of steps 8 and 9: 256 bits, bound to the session and the round.
pub(crate) fn check_digest(context: &Transcript, round: u64, value: Block) -> [u8; DIGEST] {
    let mut transcript = context.clone();
    transcript.append_u64("round", round);
    transcript.append("check", &value.to_bytes());
    let mut digest = [0u8; DIGEST];
    transcript.challenge_bytes("digest", &mut digest);
    digest
}

/// Step 9: compares what the sender sent with what it should be.
pub(crate) fn receive_digest(channel: &mut Channel, expected: &[u8; DIGEST]) -> Result<()> {
    receive_digest_of(channel, "ferret", expected)
}

/// [`receive_digest`] with the name of the protocol that a cheated check is reported for.
pub(crate) fn receive_digest_of(
    channel: &mut Channel,
    protocol: &'static str,
    expected: &[u8; DIGEST],
) -> Result<()> {
    let mut digest = [0u8; DIGEST];
    channel.recv(&mut digest)?;
    if bool::from(digest.ct_eq(expected)) {
        Ok(())
    } else {
        Err(Error::Cheated { protocol, what: "the single-point correlations do not fit Δ" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tacit_net::memory;

    /// A receiver whose correlations are all equal, and that takes two trees' bits apart, holds two corrections of equal
    /// level sums; without offsets at the roots they differ by Δ.
    #[test]
    fn equal_correlations_do_not_show_delta() {
        let shape = Shape { tiles: 1, depth: 4 };
        let delta = Prg::from_seed(Block::new(1)).block().with_lsb(true);
        let equal = vec![Block::new(7); shape.cots()];
        let (sent, corrections) = memory::run(
            |ch| {
                let mut expander = HalfTrees::new(shape.depth, Block::new(2));
                send(ch, &mut Prg::from_seed(Block::new(3)), &mut expander, delta, shape, &equal).map(|_| ())
            },
            |ch| {
                let mut bits = BitVec::zeros(shape.cots());
                (0..shape.depth).for_each(|level| bits.set(shape.cot(1, level), true));
                ch.send(bits.as_bytes()).unwrap();
                ch.recv_block().unwrap();
                let mut corrections = vec![Block::ZERO; shape.corrections()];
                ch.recv_blocks(&mut corrections).unwrap();
                corrections
            },
        );
        sent.unwrap();
        for (i, a) in corrections.iter().enumerate() {
            for b in &corrections[..i] {
                assert!(*a ^ *b != delta && a != b, "two trees are equal");
            }
        }
    }
}
