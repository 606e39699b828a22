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
//! - One check for all trees of a round in place of one a tree: 128 correlations a round.
//! - [`SenderCheck`] and [`ReceiverCheck`], Ferret's, weigh no leaf with a random element. Of each level of
//!   each tree they take Σ (n + i)·left child of node i, which XORs alone make, and a random combination of
//!   these. It shows the same: a correction determines all of a level's nodes but the path's children, and
//!   two paths for which the sums agree agree on the level (see docs/security-notes.md). The receiver shows
//!   the combination once all corrections are there: two sets of points agree in it with probability 2^-128,
//!   and a sender passes with at most 2^-64 more than its best guess, all trees of a batch together.
//! - [`Weights`], for protocols whose check is over leaves and noise values: the monomials of a multilinear polynomial in random field
//!   elements times a random element a tile, soundness (depth + 3)/2^128. The receiver computes the weights of its
//!   secret leaves without a secret index.

use super::half::{HalfTrees, Moments, Node, PerTree, Punctured, TILES};
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

/// What takes a tile's index and its leaves.
pub(crate) type Each<'a> = &'a mut dyn FnMut(usize, &mut [Block]);

/// One party's half of a batch of trees, compact: expanding it needs no peer.
pub(crate) trait Trees {
    /// The batch's shape.
    fn shape(&self) -> Shape;
    /// Expands `tiles` tiles from tile `first` on, all of one group; `each` gets a tile's index in the batch
    /// and its leaves.
    fn expand_part(
        &self,
        expander: &mut HalfTrees,
        first: usize,
        tiles: usize,
        each: &mut dyn FnMut(usize, &mut [Block]),
    );
    /// [`expand_part`](Self::expand_part) of tiles that may be those of two groups.
    fn expand_tiles(
        &self,
        expander: &mut HalfTrees,
        first: usize,
        tiles: usize,
        each: &mut dyn FnMut(usize, &mut [Block]),
    ) {
        let (mut from, end) = (first, first + tiles);
        while from < end {
            let to = end.min((from / TILES + 1) * TILES);
            self.expand_part(expander, from, to - from, each);
            from = to;
        }
    }
    /// Expands one group of up to eight tiles.
    fn expand(&self, expander: &mut HalfTrees, group: usize, each: &mut dyn FnMut(usize, &mut [Block])) {
        self.expand_part(expander, group * TILES, self.shape().tiles_in(group), each);
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
                expander.expand_below(group, top, level, roots, punctured, tiles, |t, lines| {
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
            expander.expand_below(group, node, self.shape.depth, roots, punctured, tiles, |t, leaves| {
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

    fn expand_part(
        &self,
        expander: &mut HalfTrees,
        first: usize,
        tiles: usize,
        each: &mut dyn FnMut(usize, &mut [Block]),
    ) {
        let mut sums = vec![[Block::ZERO; TREES]; self.shape.depth];
        let roots = self.roots(first, tiles);
        let each = Some(|t, leaves: &mut [Block]| each(first + t, leaves));
        expander.expand(first / TILES, self.delta, &roots, tiles, &mut sums, None, each);
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

    fn expand_part(
        &self,
        expander: &mut HalfTrees,
        first: usize,
        tiles: usize,
        each: &mut dyn FnMut(usize, &mut [Block]),
    ) {
        self.run(expander, first, tiles, None, Some(each));
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
    send_each(channel, prg, expander, delta, shape, cots, None, None)
}

/// [`send`], where `each`, if there is one, gets every tile and its leaves, as they are expanded for the corrections, and `check`, for
/// malicious security, the moments of their levels.
pub(crate) fn send_each(
    channel: &mut Channel,
    prg: &mut Prg,
    expander: &mut HalfTrees,
    delta: Block,
    shape: Shape,
    cots: &[Block],
    mut check: Option<&mut SenderCheck>,
    mut each: Option<Each<'_>>,
) -> Result<SenderTrees> {
    assert_eq!(cots.len(), shape.cots(), "one correlation a level of each tree");
    let mut message = vec![0u8; shape.cots().div_ceil(8)];
    channel.recv(&mut message)?;
    let bits = BitVec::from_bytes(&message, shape.cots());
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
        let roots = trees.roots(first, tiles);
        let moments = check.as_mut().map(|check| check.of_group.as_mut_slice());
        let each = each.as_mut().map(|each| |t, leaves: &mut [Block]| each(first + t, leaves));
        expander.expand(group, delta, &roots, tiles, &mut sums, moments, each);
        if let Some(check) = &mut check {
            check.take(tiles);
        }
        message.clear();
        for tile in 0..tiles {
            for (level, sums) in sums.iter().enumerate().skip(1) {
                let lanes = tile * LANES..(tile + 1) * LANES;
                message.extend(lanes.map(|p| sums[p] ^ masked(shape.cot(first * LANES + p, level))));
            }
        }
        channel.send_blocks(&message)?;
        unsent += (tiles * LANES) << shape.depth;
        if group == 0 || unsent >= FLUSH {
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
    /// Expands `tiles` tiles from tile `first` on, as [`Trees::expand_part`], and returns what it takes to
    /// expand parts of them.
    fn run(
        &self,
        expander: &mut HalfTrees,
        first: usize,
        tiles: usize,
        check: Option<&mut ReceiverCheck>,
        each: Option<Each<'_>>,
    ) -> Punctured {
        let depth = self.shape.depth;
        let mut alpha = [0u32; TREES];
        alpha[..tiles * LANES].copy_from_slice(&self.alpha[first * LANES..][..tiles * LANES]);
        let mut siblings = vec![[Block::ZERO; TREES]; depth];
        let mine = &self.keys[first * LANES * depth..];
        for (i, line) in mine.chunks_exact(LANES).take(tiles * depth).enumerate() {
            siblings[i % depth][i / depth * LANES..][..LANES].copy_from_slice(line);
        }
        let each = each.map(|each| move |t, leaves: &mut [Block]| each(first + t, leaves));
        let group = first / TILES;
        let leaf = match check {
            None => expander.expand_punctured(group, &alpha, &mut siblings, tiles, None, each),
            Some(check) => {
                let moments = Some(&mut check.of_group);
                let leaf = expander.expand_punctured(group, &alpha, &mut siblings, tiles, moments, each);
                check.take(tiles, &alpha);
                leaf
            }
        };
        Punctured { alpha, siblings, leaf }
    }

    /// [`Trees::expand`] with what `check` takes of it, group by group; also gives what it takes to expand parts of the group.
    pub(crate) fn solve(
        &self,
        expander: &mut HalfTrees,
        group: usize,
        check: Option<&mut ReceiverCheck>,
        each: Option<Each<'_>>,
    ) -> Punctured {
        self.run(expander, group * TILES, self.shape.tiles_in(group), check, each)
    }

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

/// The sender's side of the check of a round of Ferret's: the moments of its levels, until the receiver opens.
#[derive(ZeroizeOnDrop)]
pub(crate) struct SenderCheck {
    #[zeroize(skip)]
    context: Transcript,
    #[zeroize(skip)]
    round: u64,
    /// Those of the group at work.
    of_group: Vec<PerTree>,
    /// Those of all trees, group by group, level by level, tree by tree; zero for trees that only fill up a group.
    moments: Vec<Block>,
}

impl SenderCheck {
    /// The check of round `round` for trees of `shape`.
    pub(crate) fn new(context: &Transcript, round: u64, shape: Shape) -> Self {
        let of_group = vec![[Block::ZERO; TREES]; shape.depth];
        let moments = Vec::with_capacity(shape.groups() * TREES * (shape.depth - 1));
        SenderCheck { context: context.clone(), round, of_group, moments }
    }

    /// Binds the digest to a seed that was not known before, as if it had stood in the context.
    pub(crate) fn bind(&mut self, joint: &[u8; 32]) {
        self.context.append("joint seed", joint);
    }

    /// Keeps the moments of a group of `tiles` tiles.
    fn take(&mut self, tiles: usize) {
        only_of(tiles, &mut self.of_group);
        self.moments.extend(self.of_group[1..].as_flattened());
    }

    /// Figure 6, step 8, after all trees: receives x', sends the digest.
    pub(crate) fn answer(self, channel: &mut Channel, delta: Block, cots: &[Block]) -> Result<()> {
        let opening = CheckMessage::receive(channel)?;
        channel.send(&self.digest_for(&opening, delta, cots))?;
        channel.flush()?;
        Ok(())
    }

    pub(crate) fn digest_for(&self, opening: &CheckMessage, delta: Block, cots: &[Block]) -> [u8; DIGEST] {
        let mut coefficients = Prg::from_seed(opening.seed);
        let mut buffer = [Block::ZERO; SEGMENT];
        let mut sum = gf128::Accumulator::new();
        for moments in self.moments.chunks(SEGMENT) {
            let buffer = &mut buffer[..moments.len()];
            coefficients.fill_blocks(buffer);
            sum.add(buffer, moments);
        }
        check_digest(&self.context, self.round, sum.finish() ^ opening.sender_mask(delta, cots))
    }
}

/// Makes all zero but what is of a group's `tiles` tiles.
fn only_of(tiles: usize, moments: &mut [PerTree]) {
    moments.iter_mut().for_each(|level| level[tiles * LANES..].fill(Block::ZERO));
}

/// The receiver's side, with its coefficients from the start, of which the sender learns after its last correction.
#[derive(ZeroizeOnDrop)]
pub(crate) struct ReceiverCheck {
    #[zeroize(skip)]
    context: Transcript,
    #[zeroize(skip)]
    round: u64,
    seed: Block,
    #[zeroize(skip)]
    coefficients: Prg,
    of_group: Moments,
    buffer: Vec<Block>,
    /// Σ of coefficients times moments.
    sum: gf128::Accumulator,
    /// Σ of coefficients times weights of paths' nodes that go left, whose left child is the sender's less Δ.
    phi: Block,
}

impl ReceiverCheck {
    /// The check of round `round` for trees of `shape`, with coefficients from `prg`.
    pub(crate) fn new(context: &Transcript, round: u64, shape: Shape, prg: &mut Prg) -> Self {
        let seed = prg.block();
        let (coefficients, of_group) = (Prg::from_seed(seed), Moments::new(shape.depth));
        let (buffer, sum, phi) = (Vec::new(), gf128::Accumulator::new(), Block::ZERO);
        ReceiverCheck { context: context.clone(), round, seed, coefficients, of_group, buffer, sum, phi }
    }

    /// Bytes that open it.
    pub(crate) const OPENING: usize = CheckMessage::BYTES;

    /// Weighs the moments of a group of `tiles` tiles with paths to `alpha`.
    fn take(&mut self, tiles: usize, alpha: &[u32; TREES]) {
        let Moments { known, lacking } = &mut self.of_group;
        only_of(tiles, known);
        only_of(tiles, lacking);
        let (known, lacking) = (known[1..].as_flattened(), lacking[1..].as_flattened());
        self.buffer.resize(2 * known.len(), Block::ZERO);
        let (coefficients, weights) = self.buffer.split_at_mut(known.len());
        self.coefficients.fill_blocks(coefficients);
        self.sum.add(coefficients, known);
        // The weight n + i of each path's node.
        for (level, weights) in weights.as_chunks_mut::<TREES>().0.iter_mut().enumerate() {
            let n = 2 << level;
            *weights = alpha.map(|alpha| Block::new((n | alpha & (n - 1)) as u128));
        }
        gf128::multiply_each(weights, coefficients);
        self.sum.add(weights, lacking);
        let trees = tiles * LANES;
        for (level, weights) in weights.as_chunks::<TREES>().0.iter().enumerate() {
            for (weight, alpha) in weights[..trees].iter().zip(alpha) {
                self.phi ^= *weight & Block::mask(alpha >> (level + 1) & 1 == 0);
            }
        }
    }

    /// Figure 6, step 7, after all trees: sends the coefficients' seed and x' = φ ⊕ x*, where `cots` are the 128
    /// correlations of the check. Returns what [`receive_digest`] must get.
    pub(crate) fn open(self, channel: &mut Channel, cots: &[Block]) -> Result<[u8; DIGEST]> {
        CheckMessage::send(channel, self.seed, self.phi, cots)?;
        channel.flush()?;
        Ok(check_digest(&self.context, self.round, self.sum.finish() ^ fold_powers(cots)))
    }
}

/// What the receiver sends to open a check with weights of its own: the weights' seed and x' = φ ⊕ x*.
pub(crate) struct CheckMessage {
    pub seed: Block,
    pub masked: Block,
}

impl CheckMessage {
    /// Its length.
    pub(crate) const BYTES: usize = 2 * size_of::<Block>();

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

/// Step 9, in the name of `protocol`: compares what the sender sent with what it should be.
pub(crate) fn receive_digest(
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
            Ok(Caught { trees, seed, corrections })
        }

        /// Sends it on, with `corrections` in place of its own.
        pub(crate) fn send(&self, channel: &mut Channel, corrections: &[Block]) -> Result<()> {
            channel.send_block(self.seed)?;
            channel.send_blocks(corrections)?;
            channel.flush()?;
            Ok(())
        }

        /// What `check` takes of the honest trees, but for what `claim` changes, which finds a moment for each correction,
        /// group by group, level by level.
        pub(crate) fn weigh(
            &self,
            expander: &mut HalfTrees,
            check: &mut SenderCheck,
            claim: &dyn Fn(&mut [Block]),
        ) {
            let shape = self.trees.shape;
            let mut sums = vec![[Block::ZERO; TREES]; shape.depth];
            for group in 0..shape.groups() {
                let (first, tiles) = (group * TILES, shape.tiles_in(group));
                let roots = self.trees.roots(first, tiles);
                let moments = Some(check.of_group.as_mut_slice());
                expander.expand(group, self.trees.delta, &roots, tiles, &mut sums, moments, None::<Each<'_>>);
                check.take(tiles);
            }
            claim(&mut check.moments);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::half::GroupKeys;
    use super::*;
    use tacit_crypto::ggm::ccr_keyed;
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
    /// A point: its path's parents of the levels from the second on are 1, 01, 101, 1101.
    const ALPHA: u32 = 0b01101;

    /// Where the correction of `level` from 2 on is for the first tree of `tile`.
    fn place(tile: usize, level: usize) -> usize {
        (tile * (SHAPE.depth - 1) + level - 2) * LANES
    }

    /// Where its moment is.
    fn moment(tile: usize, level: usize) -> usize {
        (tile / TILES * (SHAPE.depth - 1) + level - 2) * TREES + tile % TILES * LANES
    }

    /// Errors by their places: what a cheater adds to its corrections, and to its moments.
    type Errors = Vec<(usize, Block)>;
    /// Makes them of Δ and the trees' roots.
    type Cheat<'a> = dyn Fn(Block, &[Block]) -> (Errors, Errors) + Sync + 'a;

    /// A sender adds errors to the corrections at the given places and to its moments at others; all points are
    /// [`ALPHA`].
    fn bend(corrections: &[(usize, Block)], claims: &[(usize, Block)]) -> Result<()> {
        let alpha = vec![ALPHA; SHAPE.tiles * LANES];
        cheat_with(alpha, 31, &|_, _| (corrections.to_vec(), claims.to_vec()))
    }

    /// A sender adds the errors that `errors` makes of Δ and the trees' roots; the points are `alpha`.
    fn cheat_with(alpha: Vec<u32>, seed: u128, errors: &Cheat<'_>) -> Result<()> {
        let mut prg = Prg::from_seed(Block::new(seed));
        let delta = prg.block().with_lsb(true);
        let mut v = vec![Block::ZERO; SHAPE.cots() + KAPPA];
        prg.fill_blocks(&mut v);
        let deal = |v: &Block| (v.with_lsb(false), v.with_lsb(false) ^ (delta & Block::mask(v.lsb())));
        let (v, w): (Vec<_>, Vec<_>) = v.iter().map(deal).unzip();
        let context = Transcript::new("test");
        let (_, result) = memory::run(
            |ch| -> Result<()> {
                let mut expander = HalfTrees::new(SHAPE.depth, Block::new(2));
                let (cots, check_cots) = v.split_at(SHAPE.cots());
                let prg = &mut Prg::from_seed(Block::new(3));
                let message = cheat::Caught::honest(ch, prg, &mut expander, delta, SHAPE, cots)?;
                let add = |to: &mut [Block], errors: &[(usize, Block)]| {
                    errors.iter().for_each(|(place, error)| to[*place] ^= *error);
                };
                let (corrections, claims) = errors(delta, &message.trees.roots);
                let mut bent = message.corrections.clone();
                add(&mut bent, &corrections);
                message.send(ch, &bent)?;
                let mut check = SenderCheck::new(&context, 1, SHAPE);
                message.weigh(&mut expander, &mut check, &|moments| add(moments, &claims));
                check.answer(ch, delta, check_cots)
            },
            |ch| {
                let mut expander = HalfTrees::new(SHAPE.depth, Block::new(2));
                let (cots, check_cots) = w.split_at(SHAPE.cots());
                let prg = &mut Prg::from_seed(Block::new(4));
                let mut check = ReceiverCheck::new(&context, 1, SHAPE, prg);
                let mut trees = choose_points(ch, alpha.clone(), SHAPE, cots)?;
                trees.receive(ch, cots)?;
                for group in 0..SHAPE.groups() {
                    trees.solve(&mut expander, group, Some(&mut check), None);
                }
                let expected = check.open(ch, check_cots)?;
                receive_digest(ch, "test", &expected)
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

    const ERROR: Block = Block::new(0x1234_5678 << 90);

    /// At the last level a bent correction bends the path's two children and nothing below, so the moment by the error
    /// times the number of the path's node: whoever knows it passes, and nobody else.
    #[test]
    fn a_bent_correction_passes_with_the_moment_of_the_right_path_only() {
        assert!(!cheated(bend(&[], &[])), "honest");
        let (last, claimed) = (place(SHAPE.tiles - 1, SHAPE.depth), moment(SHAPE.tiles - 1, SHAPE.depth));
        for node in 16..32 {
            let claim = (claimed, gf128::mul(ERROR, Block::new(node)));
            let right = node == 16 | (ALPHA & 15) as u128;
            assert_eq!(cheated(bend(&[(last, ERROR)], &[claim])), !right, "node {node}");
        }
        assert!(cheated(bend(&[(last, ERROR)], &[])), "no claim");
        assert!(cheated(bend(&[], &[(claimed, ERROR)])), "no error");
    }

    /// At the levels above, it spoils what lies below the sibling too, whatever is claimed for its own level.
    #[test]
    fn every_level_of_every_tree_is_checked() {
        for tile in [0, TILES, SHAPE.tiles - 1] {
            for level in 2..=SHAPE.depth {
                for lane in 0..LANES {
                    let (place, moment) = (place(tile, level) + lane, moment(tile, level) + lane);
                    let n = 1 << (level - 1);
                    let claim = gf128::mul(ERROR, Block::new((n | ALPHA & (n - 1)) as u128));
                    assert!(cheated(bend(&[(place, ERROR)], &[])), "tile {tile}, level {level}");
                    let passes = !cheated(bend(&[(place, ERROR)], &[(moment, claim)]));
                    assert_eq!(passes, level == SHAPE.depth, "tile {tile}, level {level}");
                }
            }
        }
    }

    /// Where a cheater bends one tree: both children of node `node` of the level above `level`, by `error`.
    #[derive(Clone, Copy)]
    struct Guess {
        tree: usize,
        level: usize,
        node: usize,
        error: Block,
    }

    impl Guess {
        /// Whether the point's path goes through the node: a guess of `level - 1` bits.
        fn is_right(&self, alpha: &[u32]) -> bool {
            alpha[self.tree] as usize & ((1 << (self.level - 1)) - 1) == self.node
        }

        /// The XOR of the left children of each level from the second on, and their moment, in a tree that is
        /// bent there, straight from the definition.
        fn levels(&self, delta: Block, root: Block, bent: bool) -> Vec<[Block; 2]> {
            let cipher = GroupKeys::new(Block::new(2)).cipher(self.tree / TREES);
            let (mut nodes, mut out) = (vec![root, root ^ delta], Vec::new());
            for level in 2..=SHAPE.depth {
                let n = nodes.len();
                let mut left: Vec<_> = nodes.iter().map(|p| ccr_keyed(&cipher, *p)).collect();
                let mut right: Vec<_> = nodes.iter().zip(&left).map(|(p, l)| *p ^ *l).collect();
                if bent && level == self.level {
                    left[self.node] ^= self.error;
                    right[self.node] ^= self.error;
                }
                let weighed = |(i, l): (usize, &Block)| gf128::mul(*l, Block::new((n + i) as u128));
                let sum = left.iter().fold(Block::ZERO, |sum, l| sum ^ *l);
                out.push([sum, left.iter().enumerate().map(weighed).fold(Block::ZERO, |sum, l| sum ^ l)]);
                nodes = [left, right].concat();
            }
            out
        }

        /// What the cheater adds to corrections and moments, so that both are those of the bent tree on all
        /// levels.
        fn errors(&self, delta: Block, roots: &[Block]) -> (Errors, Errors) {
            let root = roots[self.tree];
            let [honest, bent] = [false, true].map(|bent| self.levels(delta, root, bent));
            let (tile, lane) = (self.tree / LANES, self.tree % LANES);
            let differences = honest.iter().zip(&bent).enumerate().map(|(i, (honest, bent))| {
                let at = |place: fn(usize, usize) -> usize, of: usize| {
                    (place(tile, i + 2) + lane, honest[of] ^ bent[of])
                };
                (at(place, 0), at(moment, 1))
            });
            differences.unzip()
        }
    }

    /// Whether a sender that bends trees by all of `guesses` passes.
    fn guesses_pass(alpha: &[u32], seed: u128, guesses: &[Guess]) -> bool {
        !cheated(cheat_with(alpha.to_vec(), seed, &|delta, roots| {
            let (corrections, claims): (Vec<_>, Vec<_>) =
                guesses.iter().map(|guess| guess.errors(delta, roots)).unzip();
            (corrections.concat(), claims.concat())
        }))
    }

    /// The best guess of an upper level: the sender goes on from the bent nodes as if its tree had always
    /// been so, corrections and claims of all levels below included. Whoever knows the path down to there
    /// passes, and nobody else.
    #[test]
    fn a_right_guess_on_an_upper_level_passes() {
        let alpha = vec![ALPHA; SHAPE.tiles * LANES];
        for level in 2..=SHAPE.depth {
            for tree in [0, TREES + 5, SHAPE.tiles * LANES - 1] {
                for node in 0..1 << (level - 1) {
                    let guess = Guess { tree, level, node, error: ERROR };
                    let passes = guesses_pass(&alpha, 32, &[guess]);
                    assert_eq!(passes, guess.is_right(&alpha), "level {level}, tree {tree}, node {node}");
                }
            }
        }
    }

    /// Guesses of b bits, of one tree or of several, pass in 2^-b of all runs, and in those alone in which
    /// they are right.
    #[test]
    fn guesses_of_b_bits_pass_at_two_to_the_minus_b() {
        const RUNS: u128 = 600;
        // One level a tree: level m is a guess of m - 1 bits.
        for (kind, levels) in [&[2][..], &[3], &[4], &[2, 2], &[2, 3]].into_iter().enumerate() {
            let bits: usize = levels.iter().map(|level| level - 1).sum();
            let passed = (0..RUNS).filter(|run| {
                let seed = 1000 * (kind as u128 + 1) + run;
                let mut prg = Prg::from_seed(Block::new(!seed));
                let alpha = points(&mut prg, SHAPE);
                let guess = |(i, &level): (usize, &usize)| {
                    let node = prg.below(1 << (level - 1)) as usize;
                    Guess { tree: 3 + 40 * i, level, node, error: prg.block() }
                };
                let guesses: Vec<_> = levels.iter().enumerate().map(guess).collect();
                let passes = guesses_pass(&alpha, seed, &guesses);
                assert_eq!(passes, guesses.iter().all(|guess| guess.is_right(&alpha)));
                passes
            });
            let (passed, rate) = (passed.count() as f64, 0.5f64.powi(bits as i32));
            let (expected, variance) = (RUNS as f64 * rate, RUNS as f64 * rate * (1.0 - rate));
            // An honest count is further off once in 100,000 tests.
            assert!((passed - expected).abs() < 4.5 * variance.sqrt(), "{bits} bits: {passed} of {RUNS}");
        }
    }

    /// Two trees are bent alike. Claims that are right for each of them pass; claims that have the same sum,
    /// both trees' on one of them or each on the other one, do not, and neither does one that is right beside
    /// one that is wrong.
    #[test]
    fn claims_must_match_in_each_of_two_trees() {
        let mut alpha = vec![ALPHA; SHAPE.tiles * LANES];
        for (one, other) in [(1, 2), (1, LANES + 1), (3, TREES + 3)] {
            alpha[other] = ALPHA ^ 3;
            let guess = |tree: usize| Guess {
                tree,
                level: SHAPE.depth,
                node: alpha[tree] as usize & ((1 << (SHAPE.depth - 1)) - 1),
                error: ERROR,
            };
            let right = [guess(one), guess(other)];
            assert!(guesses_pass(&alpha, 33, &right), "trees {one} and {other}");
            for wrong in 0..2 {
                let mut guesses = right;
                guesses[wrong].node ^= 1;
                assert!(!guesses_pass(&alpha, 33, &guesses), "trees {one} and {other}");
            }
            type Change = fn(&mut [(usize, Block)]);
            let swapped: Change = |claims| (claims[0].0, claims[1].0) = (claims[1].0, claims[0].0);
            let on_one: Change = |claims| claims[1].0 = claims[0].0;
            let on_other: Change = |claims| claims[0].0 = claims[1].0;
            for change in [swapped, on_one, on_other] {
                let moved = cheat_with(alpha.clone(), 33, &|delta, roots| {
                    let [a, b] = right.map(|guess| guess.errors(delta, roots));
                    let last = |claims: Errors| claims[SHAPE.depth - 2];
                    let mut claims = vec![last(a.1), last(b.1)];
                    change(&mut claims);
                    ([a.0, b.0].concat(), claims)
                });
                assert!(cheated(moved), "trees {one} and {other}");
            }
            alpha[other] = ALPHA;
        }
    }

    #[test]
    fn errors_of_two_trees_do_not_cancel() {
        for tiles in [[1, TILES + 1], [1, 2]] {
            let errors = tiles.map(|tile| (place(tile, SHAPE.depth), ERROR));
            assert!(cheated(bend(&errors, &[])), "{tiles:?}");
        }
    }

    #[test]
    fn the_digest_is_of_session_round_and_coefficients() {
        let digest = |session: u8, round: u64, seed: u128| {
            let mut context = Transcript::new("test");
            context.append("session", &[session]);
            let mut check = SenderCheck::new(&context, round, SHAPE);
            check.moments.resize(SHAPE.groups() * TREES * (SHAPE.depth - 1), Block::ONE);
            let opening = CheckMessage { seed: Block::new(seed), masked: Block::ZERO };
            check.digest_for(&opening, Block::ONE, &[Block::ZERO; KAPPA])
        };
        let digests = [digest(0, 1, 2), digest(1, 1, 2), digest(0, 2, 2), digest(0, 1, 3)];
        assert_eq!(std::collections::HashSet::from(digests).len(), 4);
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
