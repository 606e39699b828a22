//! Single-point correlated OT, many at once (Ferret, figure 6), on half-trees.
//!
//! Realises the paper's functionality of figure 3: for each tree the receiver has one secret leaf α, the
//! sender random v, and the receiver w with w = v but at α, where w = v ⊕ Δ. A malicious sender may guess
//! bits of the α and is caught when a guess is wrong (the leakage of LPN with static leakage).
//!
//! Deviations from the figure, each of which keeps its proof:
//! - Half-trees (2022/1431) in place of GGM trees: every level XORs to Δ, so one correction a level suffices,
//!   masked by the correlated OT itself, and the last correction c falls away.
//! - The first level needs no correction either, for its two nodes are a correlated OT as it is. A malicious
//!   receiver may have made correlations equal, and two equal trees punctured on different sides would show
//!   Δ, so the sender adds a random block to each root, from a seed that it sends once the correlations and
//!   the receiver's bits are fixed.
//! - One check for all trees of a round in place of one a tree: 128 correlations a round. It is `level_check`
//!   for Ferret, and `leaf_check` for protocols whose check is over leaves and noise values.

use super::half::{HalfTrees, PerTree, Punctured, TILES};
use super::level_check::{ReceiverCheck, SenderCheck};
use super::parts::{each_part, parts, places};
use super::shape::Shape;
use crate::Result;
use tacit_crypto::ggm::LANES;
use tacit_crypto::{BitVec, Block, Prg, workers};
use tacit_net::Channel;
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

const TREES: usize = TILES * LANES;
/// Corrections leave after so many leaves: the receiver works on them while the sender expands the next
/// trees.
const FLUSH: usize = 1 << 15;
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

/// The sender's roots.
#[derive(Zeroize, ZeroizeOnDrop)]
pub(crate) struct SenderTrees {
    #[zeroize(skip)]
    pub(super) shape: Shape,
    pub(super) delta: Block,
    roots: Vec<Block>,
    #[zeroize(skip)]
    seed: Block,
}

impl SenderTrees {
    /// A public block for each tree, which the receiver learns once its choices are fixed.
    pub(crate) fn shifts(&self) -> Vec<Block> {
        shifts(self.seed, self.shape)
    }

    pub(super) fn roots(&self, first: usize, tiles: usize) -> PerTree {
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
    #[zeroize(skip)]
    seed: Block,
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

/// Figure 6, steps 3 and 4: takes the receiver's bits, answers with a seed and one correction a level from
/// the second on.
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

/// [`send`], where `each`, if there is one, gets every tile and its leaves, as they are expanded for the
/// corrections, and `check`, for malicious security, the moments of their levels.
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
    let trees = SenderTrees { shape, delta, roots, seed };
    if check.is_none() && each.is_none() && workers::count() > 1 {
        send_corrections(channel, &trees, expander, &masked)?;
        return Ok(trees);
    }
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
            // proof: ferret 2.3
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

/// The corrections of all groups, where workers make them: the same message.
fn send_corrections(
    channel: &mut Channel,
    trees: &SenderTrees,
    expander: &mut HalfTrees,
    masked: &(dyn Fn(usize) -> Block + Sync),
) -> Result<()> {
    let shape = trees.shape;
    let parts = parts(shape);
    let mut message = vec![Block::ZERO; shape.corrections()];
    let places = places(&parts, &mut message, LANES * (shape.depth - 1));
    each_part(expander, parts.iter().zip(places), |expander, (part, message)| {
        let mut sums = Zeroizing::new(vec![[Block::ZERO; TREES]; shape.depth]);
        let roots = Zeroizing::new(trees.roots(part.first, part.tiles));
        expander.expand(part.group(), trees.delta, &roots, part.tiles, &mut sums, None, None::<Each<'_>>);
        let lines = message.chunks_exact_mut(LANES);
        let levels = (0..part.tiles).flat_map(|tile| (1..shape.depth).map(move |level| (tile, level)));
        for (line, (tile, level)) in lines.zip(levels) {
            for (lane, block) in line.iter_mut().enumerate() {
                let tree = tile * LANES + lane;
                *block = sums[level][tree] ^ masked(shape.cot(part.first * LANES + tree, level));
            }
        }
    });
    channel.send_blocks(&message)?;
    channel.flush()?;
    Ok(())
}

/// What the sender adds to the root of each tree.
fn offsets(seed: Block, shape: Shape) -> impl Iterator<Item = Block> {
    let mut offsets = vec![Block::ZERO; shape.tiles * LANES];
    Prg::from_seed(seed).fill_blocks(&mut offsets);
    offsets.into_iter()
}

/// As many blocks of the same stream after the [`offsets`].
fn shifts(seed: Block, shape: Shape) -> Vec<Block> {
    let trees = shape.tiles * LANES;
    let mut all = vec![Block::ZERO; 2 * trees];
    Prg::from_seed(seed).fill_blocks(&mut all);
    all.split_off(trees)
}

/// A uniform point for each tree of `shape`.
pub(crate) fn points(prg: &mut Prg, shape: Shape) -> Vec<u32> {
    let mut bytes = Zeroizing::new(vec![0u8; shape.tiles * LANES * 4]);
    prg.fill_bytes(&mut bytes);
    let mask = (1u32 << shape.depth) - 1;
    bytes.chunks_exact(4).map(|c| u32::from_le_bytes([c[0], c[1], c[2], c[3]]) & mask).collect()
}

/// Figure 6, step 4: draws a point for each tree and sends the bits b = r ⊕ ᾱ. Returns the trees, still
/// without keys.
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
    // proof: vole 2.3
    let trees = ReceiverTrees { shape, alpha, keys: Vec::new(), seed: Block::ZERO };
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
    /// The sender's [`SenderTrees::shifts`]; after [`receive`](Self::receive).
    pub(crate) fn shifts(&self) -> Vec<Block> {
        shifts(self.seed, self.shape)
    }

    /// Each tree's secret leaf.
    pub(crate) fn points(&self) -> &[u32] {
        &self.alpha
    }

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

    /// [`Trees::expand`] with what `check` takes of it, group by group; also gives what it takes to expand
    /// parts of the group.
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
        self.seed = seed;
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

        /// What `check` takes of the honest trees, but for what `claim` changes, which finds a moment for
        /// each correction, group by group, level by level.
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
    use super::super::opening::{DIGEST, check_digests};
    use super::*;
    use crate::Error;
    use tacit_crypto::ggm::ccr_keyed;
    use tacit_crypto::transcript::Transcript;
    use tacit_crypto::{KAPPA, gf128};
    use tacit_net::memory;

    /// A receiver whose correlations are all equal, and that takes two trees' bits apart, holds two
    /// corrections of equal level sums; without offsets at the roots they differ by Δ.
    ///
    /// proof: vole 4.1
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

    /// A sender adds errors to the corrections at the given places and to its moments at others; all points
    /// are [`ALPHA`].
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
                let mut digest = [0; DIGEST];
                ch.recv(&mut digest)?;
                check_digests("test", &digest, &expected)
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

    /// At the last level a bent correction bends the path's two children and nothing below, so the moment by
    /// the error times the number of the path's node: whoever knows it passes, and nobody else.
    ///
    /// proof: ferret 2.6, 3.2
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
    ///
    /// proof: ferret 2.6
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
    ///
    /// proof: ferret 3.3
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
}
