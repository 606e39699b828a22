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
//!   of a multilinear polynomial in random field elements times a random element a tile, and the receiver computes
//!   the weights of its secret leaves without a secret index.
//! - Weights are drawn once all corrections are fixed ([`CheckMessage`], used by the protocols of one batch), so soundness is
//!   (depth + 3)/2^128; or batch of tiles by batch of tiles from a hash chain over the corrections ([`Check`], Ferret's), so it
//!   is q·(depth + 3)/2^128 against a sender that asks the random oracle q times, and each party weighs leaves while
//!   they are in cache.

use super::half_tree::{HalfTrees, Node, PerTree, Punctured, TILES};
use crate::{Error, Result};
use subtle::ConstantTimeEq;
use tacit_crypto::ggm::LANES;
use tacit_crypto::transcript::Transcript;
use tacit_crypto::{BitVec, Block, Buffer, KAPPA, Prg, gf128};
use tacit_net::Channel;
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

const TREES: usize = TILES * LANES;
/// What is summed without a tile's weights at a time: a tile's leaves, or its first ones, come in a multiple of it.
pub(crate) const SEGMENT: usize = 512;
/// Corrections leave after so many leaves: the receiver works on them while the sender expands the next trees.
const FLUSH: usize = 1 << 15;
/// Leaves that one draw of [`Check`] weighs, unless a tile has more: few draws, and the leaves stay in second-level cache.
const DRAW: usize = 1 << 13;
/// Bytes of a draw's corrections up to which they are hashed as whole chunks.
const PADDED: usize = 4 * blake3::CHUNK_LEN;

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

    /// Tiles that are weighed with one draw of [`Check`]: a divisor of a group's.
    fn tiles_a_draw(self) -> usize {
        (DRAW >> (self.depth + LANES.ilog2() as usize)).clamp(1, TILES)
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

/// One party's half of a batch of trees, of which single subtrees can be expanded.
pub(crate) trait Parts {
    /// The two nodes of level 1 of each tree of a group, as far as they are known.
    fn tops(&self, group: usize) -> [PerTree; 2];
    /// What is punctured in a group.
    fn punctured(&self, group: usize) -> Option<&Punctured>;
}

impl Parts for SenderTrees {
    fn tops(&self, group: usize) -> [PerTree; 2] {
        let left = self.roots(group * TILES, self.shape.tiles_in(group));
        [left, left.map(|root| root ^ self.delta)]
    }

    fn punctured(&self, _: usize) -> Option<&Punctured> {
        None
    }
}

impl Parts for Vec<Punctured> {
    fn tops(&self, _: usize) -> [PerTree; 2] {
        [[Block::ZERO; TREES]; 2]
    }

    fn punctured(&self, group: usize) -> Option<&Punctured> {
        Some(&self[group])
    }
}

/// A batch of trees with all nodes of one level, from which it is expanded subtree by subtree.
pub(crate) struct Subtrees<T> {
    trees: T,
    shape: Shape,
    level: usize,
    /// By index, then by tree.
    nodes: Buffer,
}

impl<T: Parts> Subtrees<T> {
    /// Expands all trees down to `level`.
    pub(crate) fn new(trees: T, expander: &mut HalfTrees, shape: Shape, level: usize) -> Self {
        let mut nodes = Buffer::zeros((shape.groups() * TREES) << level);
        for group in 0..shape.groups() {
            let (punctured, tiles) = (trees.punctured(group), shape.tiles_in(group));
            for (side, roots) in trees.tops(group).iter().enumerate() {
                let top = Node { level: 1, index: side };
                expander.expand_below(top, level, roots, punctured, tiles, |t, lines| {
                    for (i, line) in lines.chunks_exact(LANES).enumerate() {
                        let tree = ((side + 2 * i) * shape.groups() + group) * TREES + t * LANES;
                        nodes[tree..][..LANES].copy_from_slice(line);
                    }
                });
            }
        }
        Subtrees { trees, shape, level, nodes }
    }

    /// Expands the subtree of node `index` of every tree; `each` gets a tile's index in the batch and the leaves.
    pub(crate) fn expand(
        &self,
        expander: &mut HalfTrees,
        index: usize,
        mut each: impl FnMut(usize, &mut [Block]),
    ) {
        let groups = self.shape.groups();
        let nodes = self.nodes[index * groups * TREES..].as_chunks::<TREES>().0;
        for (group, roots) in nodes[..groups].iter().enumerate() {
            let (node, tiles) = (Node { level: self.level, index }, self.shape.tiles_in(group));
            let punctured = self.trees.punctured(group);
            expander.expand_below(node, self.shape.depth, roots, punctured, tiles, |t, leaves| {
                each(group * TILES + t, leaves)
            });
        }
    }
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
        expander.expand(self.delta, &roots, tiles, &mut sums, |t, leaves, _| {
            tile_by_tile(self.shape, first + t, leaves, each);
        });
        sums.zeroize();
    }
}

fn tile_by_tile(
    shape: Shape,
    first: usize,
    leaves: &mut [Block],
    each: &mut (impl FnMut(usize, &mut [Block]) + ?Sized),
) {
    for (t, leaves) in leaves.chunks_exact_mut(LANES << shape.depth).enumerate() {
        each(first + t, leaves);
    }
}

/// The receiver's points and its key of every level.
#[derive(Zeroize, ZeroizeOnDrop)]
pub(crate) struct ReceiverTrees {
    #[zeroize(skip)]
    shape: Shape,
    /// What was sent for the points.
    #[zeroize(skip)]
    bits: Vec<u8>,
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
        self.run(expander, first, tiles, each);
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
    send_each(channel, prg, expander, delta, shape, cots, None, &mut |_, _| {})
}

/// [`send`], where `each` gets every tile and its leaves, as they are expanded for the corrections, and `check`, for
/// malicious security, weighs them first.
pub(crate) fn send_each(
    channel: &mut Channel,
    prg: &mut Prg,
    expander: &mut HalfTrees,
    delta: Block,
    shape: Shape,
    cots: &[Block],
    mut check: Option<&mut Check>,
    each: &mut dyn FnMut(usize, &mut [Block]),
) -> Result<SenderTrees> {
    assert_eq!(cots.len(), shape.cots(), "one correlation a level of each tree");
    let mut message = vec![0u8; shape.cots().div_ceil(8)];
    channel.recv(&mut message)?;
    let bits = BitVec::from_bytes(&message, shape.cots());
    let masked = |i: usize| cots[i] ^ (delta & Block::mask(bits.get(i)));
    let seed = prg.block();
    channel.send_block(seed)?;
    if let Some(check) = &mut check {
        check.begin(&message, seed);
        expander.hold(shape.tiles_a_draw());
    }
    let roots =
        offsets(seed, shape).enumerate().map(|(p, offset)| offset ^ masked(shape.cot(p, 0))).collect();
    let trees = SenderTrees { shape, delta, roots };
    let mut sums = vec![[Block::ZERO; TREES]; shape.depth];
    let mut message = Vec::with_capacity(TREES * shape.depth);
    let mut unsent = 0;
    for group in 0..shape.groups() {
        let (first, tiles) = (group * TILES, shape.tiles_in(group));
        message.clear();
        let roots = trees.roots(first, tiles);
        expander.expand(delta, &roots, tiles, &mut sums, |t, leaves, sums| {
            let from = message.len();
            for tile in t..t + leaves.len() / (LANES << shape.depth) {
                for (level, sums) in sums.iter().enumerate().skip(1) {
                    let lanes = tile * LANES..(tile + 1) * LANES;
                    message.extend(lanes.map(|p| sums[p] ^ masked(shape.cot(first * LANES + p, level))));
                }
            }
            if let Some(check) = &mut check {
                check.draw(first + t, &message[from..]);
                tile_by_tile(shape, first + t, leaves, &mut |tile, leaves| check.add(tile, leaves));
            }
            tile_by_tile(shape, first + t, leaves, each);
        });
        channel.send_blocks(&message)?;
        unsent += (tiles * LANES) << shape.depth;
        if unsent >= FLUSH {
            channel.flush()?;
            unsent = 0;
        }
    }
    sums.zeroize();
    expander.hold(1);
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
    let mut trees = ReceiverTrees { shape, bits: Vec::new(), alpha, keys: Vec::new() };
    let mut bits = BitVec::zeros(shape.cots());
    for (i, cot) in cots.iter().enumerate() {
        let (tile, level, lane) = (i / LANES / shape.depth, i / LANES % shape.depth, i % LANES);
        let away = trees.alpha[tile * LANES + lane] >> level & 1 == 0;
        bits.set(i, cot.lsb() ^ away);
    }
    trees.bits = bits.as_bytes().to_vec();
    channel.send(&trees.bits)?;
    channel.flush()?;
    Ok(trees)
}

impl ReceiverTrees {
    /// Expands `tiles` tiles from tile `first` on, as [`Trees::expand_tiles`], and returns what it takes to expand parts
    /// of them.
    fn run(
        &self,
        expander: &mut HalfTrees,
        first: usize,
        tiles: usize,
        each: &mut dyn FnMut(usize, &mut [Block]),
    ) -> Punctured {
        let depth = self.shape.depth;
        let mut alpha = [0u32; TREES];
        alpha[..tiles * LANES].copy_from_slice(&self.alpha[first * LANES..][..tiles * LANES]);
        let mut siblings = vec![[Block::ZERO; TREES]; depth];
        let mine = &self.keys[first * LANES * depth..];
        for (i, line) in mine.chunks_exact(LANES).take(tiles * depth).enumerate() {
            siblings[i % depth][i / depth * LANES..][..LANES].copy_from_slice(line);
        }
        let leaf =
            expander.expand_punctured(&alpha, &mut siblings, tiles, |t, leaves| each(first + t, leaves));
        Punctured { alpha, siblings, leaf }
    }

    /// [`Trees::expand`], which also gives what it takes to expand parts of the group.
    pub(crate) fn solve(
        &self,
        expander: &mut HalfTrees,
        group: usize,
        each: &mut dyn FnMut(usize, &mut [Block]),
    ) -> Punctured {
        self.run(expander, group * TILES, self.shape.tiles_in(group), each)
    }

    /// Figure 6, step 5 (a): receives seed and corrections and takes off the masks.
    pub(crate) fn receive(&mut self, channel: &mut Channel, cots: &[Block]) -> Result<()> {
        self.receive_seed(channel, cots, None)?;
        (0..self.shape.groups()).try_for_each(|group| self.receive_group(channel, group, None))
    }

    /// Step 5 (a) for the roots; [`receive_group`](Self::receive_group) of every group in turn follows, with the same check.
    pub(crate) fn receive_seed(
        &mut self,
        channel: &mut Channel,
        cots: &[Block],
        check: Option<&mut Check>,
    ) -> Result<()> {
        let seed = channel.recv_block()?;
        if let Some(check) = check {
            check.begin(&self.bits, seed);
        }
        self.keys = cots.to_vec();
        for (p, offset) in offsets(seed, self.shape).enumerate() {
            self.keys[self.shape.cot(p, 0)] ^= offset;
        }
        Ok(())
    }

    /// Step 5 (a) for the trees of one group, and step 7 for them: `check` is then ready to weigh their leaves.
    pub(crate) fn receive_group(
        &mut self,
        channel: &mut Channel,
        group: usize,
        check: Option<&mut Check>,
    ) -> Result<()> {
        let mut corrections = vec![Block::ZERO; self.shape.corrections_in(group)];
        channel.recv_blocks(&mut corrections)?;
        if let Some(check) = check {
            check.draw(group * TILES, &corrections);
            check.add_points(&self.alpha);
        }
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
        let (within, segments) = (gf128::monomials(low), gf128::monomials(high));
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

    /// χ of one leaf a tree, from the first on, the same steps for every alpha.
    fn of_each(&self, alpha: &[u32]) -> Zeroizing<Vec<Block>> {
        let lanes = LANES.ilog2() as usize;
        let first = |tree: usize| gf128::mul(self.tiles[tree / LANES], self.within[tree % LANES]);
        let mut weights = Zeroizing::new((0..alpha.len()).map(first).collect::<Vec<_>>());
        let mut factors = Zeroizing::new(Vec::with_capacity(alpha.len() * self.variables.len()));
        for (i, x) in self.variables[lanes..].iter().enumerate() {
            let unless = *x ^ Block::ONE;
            factors.extend(alpha.iter().map(|a| Block::ONE ^ (unless & Block::mask(a >> i & 1 == 1))));
        }
        for factors in factors.chunks_exact(alpha.len().max(1)) {
            gf128::multiply_each(&mut weights, factors);
        }
        weights
    }

    /// Figure 6, step 7: φ = Σ χ_α over all trees.
    pub(crate) fn of_points(&self, trees: &ReceiverTrees) -> Block {
        self.of_leaves(&trees.alpha)
    }

    /// The sum of the weights of the points, each times the value of its tree.
    pub(crate) fn of_values(&self, trees: &ReceiverTrees, values: impl Iterator<Item = Block>) -> Block {
        let weights = self.of_each(&trees.alpha);
        weights.iter().zip(values).fold(Block::ZERO, |sum, (w, value)| sum ^ gf128::mul(*w, value))
    }

    /// The sum of the weights of one leaf a tree.
    pub(crate) fn of_leaves(&self, alpha: &[u32]) -> Block {
        self.of_each(alpha).iter().fold(Block::ZERO, |sum, w| sum ^ *w)
    }
}

/// The check of a round by Fiat–Shamir, as both parties do it while trees come: [`draw`](Self::draw), then
/// [`add`](Self::add) for each tile drawn for.
///
/// The weights of a batch of tiles are a hash of the context, the round, the receiver's bits, the seed of the offsets and all corrections
/// so far. The chain is what makes it sound: were a batch's weights a hash of its own corrections alone, a sender
/// could try errors of each batch by itself until the weighted errors of two cancel, in 2^64 steps, or those of more in
/// fewer (generalised birthdays). In the chain a batch's error meets a sum that was fixed before its weights were.
///
/// The sender's trees are fixed by what the chain hashes and by the correlations under it, which are older than it.
#[derive(ZeroizeOnDrop)]
pub(crate) struct Check {
    #[zeroize(skip)]
    history: Transcript,
    /// The chain's end.
    #[zeroize(skip)]
    state: [u8; 32],
    #[zeroize(skip)]
    shape: Shape,
    /// The weights in use, and the first tile that they are for.
    #[zeroize(skip)]
    weights: Vec<Weights>,
    #[zeroize(skip)]
    first: usize,
    /// Σ χ·leaf.
    sum: Block,
    /// Σ χ_α, the receiver's.
    phi: Block,
}

impl Check {
    /// The check of round `round` for trees of `shape`.
    pub(crate) fn new(context: &Transcript, round: u64, shape: Shape) -> Self {
        let mut history = context.clone();
        history.append_u64("round", round);
        let (weights, sum, phi) = (Vec::new(), Block::ZERO, Block::ZERO);
        Check { history, state: [0; 32], shape, weights, first: 0, sum, phi }
    }

    /// Bytes that the receiver sends to open it.
    pub(crate) const OPENING: usize = 16;

    /// Begins the chain with the receiver's bits and the offsets' seed.
    pub(crate) fn begin(&mut self, bits: &[u8], seed: Block) {
        self.history.append("bits", bits);
        self.history.append_blocks("offsets", &[seed]);
        self.history.challenge_bytes("chain", &mut self.state);
    }

    /// Goes on with `corrections`, whose number is fixed by the place in the chain; the seed of their weights.
    fn link(&mut self, corrections: &[Block]) -> Block {
        // BLAKE3 hashes chunks side by side if their number is a power of two.
        let bytes = Block::as_bytes(corrections);
        let chunks = bytes.len().div_ceil(blake3::CHUNK_LEN).next_power_of_two();
        let mut padded = [0; PADDED];
        let bytes = match chunks {
            2.. if chunks * blake3::CHUNK_LEN <= PADDED => {
                padded[..bytes.len()].copy_from_slice(bytes);
                &padded[..chunks * blake3::CHUNK_LEN]
            }
            _ => bytes,
        };
        let mut out = blake3::Hasher::new_keyed(&self.state).update(bytes).finalize_xof();
        let mut seed = [0; 16];
        out.fill(&mut self.state);
        out.fill(&mut seed);
        Block::from_bytes(seed)
    }

    /// Draws the weights of the tiles whose `corrections` these are, from tile `first` on.
    pub(crate) fn draw(&mut self, first: usize, corrections: &[Block]) {
        let tiles = self.shape.tiles_a_draw();
        self.first = first;
        self.weights.clear();
        for corrections in corrections.chunks(tiles * LANES * (self.shape.depth - 1)) {
            let seed = self.link(corrections);
            self.weights.push(Weights::new(seed, Shape { tiles, ..self.shape }));
        }
    }

    /// Adds χ·leaf for the leaves of a tile that weights were drawn for.
    pub(crate) fn add(&mut self, tile: usize, leaves: &[Block]) {
        let (tile, tiles) = (tile - self.first, self.shape.tiles_a_draw());
        self.sum ^= self.weights[tile / tiles].sum(tile % tiles, leaves);
    }

    /// Figure 6, step 7, for the trees that weights were drawn for: φ += χ_α. `alpha` holds the points of all trees.
    fn add_points(&mut self, alpha: &[u32]) {
        let points = alpha[self.first * LANES..].chunks(self.shape.tiles_a_draw() * LANES);
        for (weights, alpha) in self.weights.iter().zip(points) {
            self.phi ^= weights.of_leaves(alpha);
        }
    }

    /// Figure 6, step 7, at the receiver, after all trees: sends x' = φ ⊕ x*; `cots` are the 128 correlations of the check.
    pub(crate) fn open(&self, channel: &mut Channel, cots: &[Block]) -> Result<()> {
        channel.send_block(self.phi ^ fold_bits(cots))?;
        channel.flush()?;
        Ok(())
    }

    /// Figure 6, step 8, at the sender, after all trees: receives x', sends the digest.
    pub(crate) fn answer(mut self, channel: &mut Channel, delta: Block, cots: &[Block]) -> Result<()> {
        let masked = channel.recv_block()?;
        channel.send(&self.digest_for(masked, delta, cots))?;
        channel.flush()?;
        Ok(())
    }

    pub(crate) fn digest_for(&mut self, masked: Block, delta: Block, cots: &[Block]) -> [u8; DIGEST] {
        self.digest(self.sum ^ fold_powers(cots) ^ gf128::mul(masked, delta))
    }

    /// Figure 6, step 9, at the receiver: an error in the name of `protocol` when the sender has cheated.
    pub(crate) fn verify(
        mut self,
        channel: &mut Channel,
        protocol: &'static str,
        cots: &[Block],
    ) -> Result<()> {
        let expected = self.digest(self.sum ^ fold_powers(cots));
        receive_digest_of(channel, protocol, &expected)
    }

    /// H', of the end of the chain too.
    fn digest(&mut self, value: Block) -> [u8; DIGEST] {
        self.history.append("chain", &self.state);
        self.history.append("check", &value.to_bytes());
        let mut digest = [0u8; DIGEST];
        self.history.challenge_bytes("digest", &mut digest);
        digest
    }
}

/// What the receiver sends to open a check with weights of its own: the weights' seed and x' = φ ⊕ x*.
pub(crate) struct CheckMessage {
    pub seed: Block,
    pub masked: Block,
}

impl CheckMessage {
    /// Figure 6, step 7; `cots` are the 128 correlations of the check.
    pub(crate) fn send(channel: &mut Channel, seed: Block, phi: Block, cots: &[Block]) -> Result<()> {
        channel.send_block(seed)?;
        channel.send_block(phi ^ fold_bits(cots))?;
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

/// x* = Σ x*_i·X^i, the choice bits.
fn fold_bits(cots: &[Block]) -> Block {
    Block::new(cots.iter().enumerate().fold(0, |acc, (i, c)| acc | (c.lsb() as u128) << i))
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

/// What scripted cheaters share.
#[cfg(test)]
pub(crate) mod cheat {
    use super::*;
    use tacit_net::memory;

    /// The message of an honest sender, caught on its way out, with its trees.
    pub(crate) struct Caught {
        pub trees: SenderTrees,
        pub bits: Vec<u8>,
        pub seed: Block,
        pub corrections: Vec<Block>,
    }

    impl Caught {
        pub(crate) fn honest(
            channel: &mut Channel,
            prg: &mut Prg,
            expander: &mut HalfTrees,
            delta: Block,
            shape: Shape,
            cots: &[Block],
        ) -> Result<Self> {
            let mut bits = vec![0u8; shape.cots().div_ceil(8)];
            channel.recv(&mut bits)?;
            let (mut a, mut b) = memory::pair_with(channel.session_id());
            a.send(&bits)?;
            a.flush()?;
            let trees = send(&mut b, prg, expander, delta, shape, cots)?;
            let seed = a.recv_block()?;
            let mut corrections = vec![Block::ZERO; shape.corrections()];
            a.recv_blocks(&mut corrections)?;
            Ok(Caught { trees, bits, seed, corrections })
        }

        /// Sends it on, with `corrections` in place of its own.
        pub(crate) fn send(&self, channel: &mut Channel, corrections: &[Block]) -> Result<()> {
            channel.send_block(self.seed)?;
            channel.send_blocks(corrections)?;
            channel.flush()?;
            Ok(())
        }

        /// Weighs the honest trees, but for what `leaves` changes, by the chain over `corrections`.
        pub(crate) fn weigh(
            &self,
            expander: &mut HalfTrees,
            corrections: &[Block],
            check: &mut Check,
            leaves: &dyn Fn(usize, &mut [Block]),
        ) {
            check.begin(&self.bits, self.seed);
            let mut corrections = corrections;
            for group in 0..self.trees.shape.groups() {
                let (these, rest) = corrections.split_at(self.trees.shape.corrections_in(group));
                corrections = rest;
                check.draw(group * TILES, these);
                self.trees.expand(expander, group, &mut |tile, claimed| {
                    leaves(tile, claimed);
                    check.add(tile, claimed);
                });
            }
        }
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

    const SHAPE: Shape = Shape { tiles: 2 * TILES + 1, depth: 5 };
    /// Tiles of two draws in one group of messages, and of one draw.
    const APART: [usize; 2] = [1, TILES + 1];
    const TOGETHER: [usize; 2] = [1, 2];

    fn context(session: u8) -> Transcript {
        let mut context = Transcript::new("test");
        context.append("session", &[session]);
        context
    }

    /// A sender that knows all points bends the last corrections of one tree in each of `tiles` by `errors`; `claim`
    /// is what it adds to the two leaves that each spoils, and its chain is over the corrections that it sends or,
    /// with `old`, over the honest ones up to the second of the tiles.
    fn bend(tiles: &[usize], errors: &[Block], claim: &[Block], old: bool) -> Result<()> {
        let mut prg = Prg::from_seed(Block::new(31));
        let delta = prg.block().with_lsb(true);
        let mut v = vec![Block::ZERO; SHAPE.cots() + KAPPA];
        prg.fill_blocks(&mut v);
        let deal = |v: &Block| (v.with_lsb(false), v.with_lsb(false) ^ (delta & Block::mask(v.lsb())));
        let (v, w): (Vec<_>, Vec<_>) = v.iter().map(deal).unzip();
        let alpha = vec![0b01101; SHAPE.tiles * LANES];
        let (_, result) = memory::run(
            |ch| -> Result<()> {
                let mut expander = HalfTrees::new(SHAPE.depth, Block::new(2));
                let (cots, check_cots) = v.split_at(SHAPE.cots());
                let prg = &mut Prg::from_seed(Block::new(3));
                let message = cheat::Caught::honest(ch, prg, &mut expander, delta, SHAPE, cots)?;
                let mut bent = message.corrections.clone();
                for (tile, error) in tiles.iter().zip(errors) {
                    bent[(tile + 1) * LANES * (SHAPE.depth - 1) - LANES] ^= *error;
                }
                message.send(ch, &bent)?;
                let mut check = Check::new(&context(0), 1, SHAPE);
                let hashed = if old { &message.corrections } else { &bent };
                message.weigh(&mut expander, hashed, &mut check, &|tile, leaves| {
                    for (_, claim) in tiles.iter().zip(claim).filter(|(bent, _)| **bent == tile) {
                        let top = 1 << (SHAPE.depth - 1);
                        for leaf in [alpha[0] as usize, alpha[0] as usize ^ top] {
                            leaves[leaf * LANES] ^= *claim;
                        }
                    }
                });
                check.answer(ch, delta, check_cots)
            },
            |ch| {
                let mut expander = HalfTrees::new(SHAPE.depth, Block::new(2));
                let (cots, check_cots) = w.split_at(SHAPE.cots());
                let mut check = Check::new(&context(0), 1, SHAPE);
                let mut trees = choose_points(ch, alpha.clone(), SHAPE, cots)?;
                trees.receive_seed(ch, cots, Some(&mut check))?;
                for group in 0..SHAPE.groups() {
                    trees.receive_group(ch, group, Some(&mut check))?;
                    trees.expand(&mut expander, group, &mut |tile, leaves| check.add(tile, leaves));
                }
                check.open(ch, check_cots)?;
                check.verify(ch, "test", check_cots)
            },
        );
        result
    }

    fn cheated(result: Result<()>) -> bool {
        match result {
            Ok(()) => false,
            Err(Error::Cheated { .. }) => true,
            Err(other) => panic!("another failure: {other}"),
        }
    }

    #[test]
    fn the_weights_of_what_was_sent_are_the_only_ones_that_pass() {
        let error = Block::new(0x1234_5678 << 40);
        assert!(!cheated(bend(&[], &[], &[], false)), "honest");
        // Whoever knows the points may bend what it likes: the errors are those of its claim.
        for tiles in [APART, TOGETHER] {
            assert!(!cheated(bend(&tiles, &[error; 2], &[error; 2], false)), "{tiles:?}: a right guess");
            assert!(
                cheated(bend(&tiles, &[error; 2], &[error, Block::ZERO], false)),
                "{tiles:?}: half a guess"
            );
        }
        // Corrections are replaced after their weights, or those of later tiles, were seen.
        for tiles in [&APART[..1], &[SHAPE.tiles - 1]] {
            assert!(
                cheated(bend(tiles, &[error], &[error], true)),
                "{tiles:?}: chain over other corrections"
            );
        }
    }

    #[test]
    fn errors_of_two_tiles_do_not_cancel() {
        let error = Block::new(1 << 90);
        for tiles in [APART, TOGETHER] {
            assert!(cheated(bend(&tiles, &[error; 2], &[], false)), "{tiles:?}");
        }
    }

    /// A check that has begun, with weights for its first group.
    fn begun(session: u8, round: u64, bits: u8, seed: u128, first: u128, later: u128) -> Check {
        let mut check = Check::new(&context(session), round, SHAPE);
        check.begin(&[bits], Block::new(seed));
        for (group, fill) in [(0, first), (1, later)] {
            check.draw(group * TILES, &vec![Block::new(fill); SHAPE.corrections_in(group)]);
        }
        check
    }

    #[test]
    fn weights_depend_on_all_that_came_before() {
        let leaf = |check: &Check, tile: usize| {
            let mut leaves = vec![Block::ZERO; LANES << SHAPE.depth];
            leaves[0] = Block::ONE;
            check.weights[0].sum(tile % TILES, &leaves)
        };
        let changed = [
            begun(0, 1, 2, 3, 4, 5),
            begun(1, 1, 2, 3, 4, 5),
            begun(0, 2, 2, 3, 4, 5),
            begun(0, 1, 3, 3, 4, 5),
            begun(0, 1, 2, 4, 4, 5),
            begun(0, 1, 2, 3, 5, 5),
            begun(0, 1, 2, 3, 4, 6),
        ];
        let all: Vec<Block> =
            changed.iter().flat_map(|check| (0..TILES).map(|tile| leaf(check, tile))).collect();
        let distinct: std::collections::HashSet<u128> = all.iter().map(|w| w.to_u128()).collect();
        assert_eq!(distinct.len(), all.len());
        // The digest is of the chain as well.
        let digests: std::collections::HashSet<_> =
            changed.into_iter().map(|mut check| check.digest(Block::ONE)).collect();
        assert_eq!(digests.len(), 7);
    }

    /// The weights of points are those that leaves are weighed with.
    #[test]
    fn weights_of_points_are_those_of_the_sum() {
        let mut prg = Prg::from_seed(Block::new(5));
        for (tiles, depth) in [(1, 2), (3, 4), (2, 9)] {
            let weights = Weights::new(prg.block(), Shape { tiles, depth });
            let alpha: Vec<u32> = (0..tiles * LANES).map(|_| prg.below(1 << depth) as u32).collect();
            for (tree, weight) in weights.of_each(&alpha).iter().enumerate() {
                let mut leaves = vec![Block::ZERO; LANES << depth];
                leaves[alpha[tree] as usize * LANES + tree % LANES] = Block::ONE;
                assert_eq!(weight.to_hex(), weights.sum(tree / LANES, &leaves).to_hex());
            }
        }
    }
}
