//! Puncturable PRF by half-trees (2022/1431), many trees at once.
//!
//! The trees of a batch stand in *tiles* of four, one tree a lane. Up to eight tiles are expanded together
//! while they are small, each one alone once a level fills the vector registers. Nothing but the tiles at
//! work is ever in memory.

use core::ops::Range;
use tacit_crypto::aes::Aes128;
use tacit_crypto::ggm::{self, Children, Fix, LANES};
use tacit_crypto::{Block, Buffer, gf128};
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

/// Tiles that one call expands.
pub(crate) const TILES: usize = 8;
const TREES: usize = TILES * LANES;
// After four levels a tile has 16 lines, enough to fill the pipelines alone.
const SHARED_LEVELS: usize = 4;
/// Levels of the subtrees in which trees are summed up: eight nodes' are half of a first-level cache.
const BLOCK_LEVELS: usize = 6;
/// Nodes whose subtrees are expanded together, line by line.
const BLOCK: usize = 8;
const BLOCK_LOG: usize = BLOCK.ilog2() as usize;
type Line = [Block; LANES];

/// One block for each tree of up to eight tiles, tile by tile.
pub(crate) type PerTree = [Block; TREES];

/// A node of every tree: which one of `level`, at least 1.
#[derive(Clone, Copy)]
pub(crate) struct Node {
    pub level: usize,
    pub index: usize,
}

/// What a run over up to eight tiles of punctured trees finds out. With it, subtrees can be expanded alone.
#[derive(Zeroize, ZeroizeOnDrop)]
pub(crate) struct Punctured {
    /// Each tree's punctured leaf.
    pub alpha: [u32; TREES],
    /// `siblings[m - 1]`: the sibling of the punctured path's node of level m.
    pub siblings: Vec<PerTree>,
    /// The value at each punctured leaf.
    pub leaf: PerTree,
}

impl Punctured {
    /// Each path's place among the nodes `below` levels under `node`, no index at all where it does not go
    /// through `node`, and the bit by which its sibling's place differs.
    fn paths(&self, node: Node, below: usize) -> ([u64; TREES], u64) {
        let Node { level, index } = node;
        let astray = |alpha: u32| (alpha as u64 ^ index as u64) & ((1 << level) - 1);
        match below {
            0 => (self.alpha.map(astray), 1 << (level - 1)),
            _ => {
                let place = |alpha: u32| (alpha >> level) as u64 & ((1 << below) - 1);
                (self.alpha.map(|alpha| astray(alpha) << 32 | place(alpha)), 1 << (below - 1))
            }
        }
    }
}

/// What the check of punctured trees takes of each level from the second on: entry m - 1 is for level m.
#[derive(Zeroize, ZeroizeOnDrop)]
pub(crate) struct Moments {
    /// Σ (n + i)·left child of node i, over the n nodes of the level above.
    pub known: Vec<PerTree>,
    /// What the left child of the path's node lacks in them.
    pub lacking: Vec<PerTree>,
}

impl Moments {
    pub(crate) fn new(depth: usize) -> Self {
        let empty = vec![[Block::ZERO; TREES]; depth];
        Moments { known: empty.clone(), lacking: empty }
    }
}

/// Hash keys of a round, one for each group of up to eight tiles, so that no key hashes more than 32 trees of
/// one round: what an attacker on a fixed key gains with every further instance stays within a group.
pub(crate) struct GroupKeys(Aes128);

impl GroupKeys {
    /// The keys that follow from the round's public `seed`.
    pub(crate) fn new(seed: Block) -> Self {
        GroupKeys(Aes128::new(seed))
    }

    /// Distinct for distinct groups, as a permutation's values are.
    pub(crate) fn cipher(&self, group: usize) -> Aes128 {
        Aes128::new(self.0.encrypt(Block::new(group as u128)))
    }
}

/// The expander of trees of one depth, with the buffers it reuses.
pub(crate) struct HalfTrees {
    depth: usize,
    keys: GroupKeys,
    /// The group whose key `cipher` has.
    group: usize,
    cipher: Aes128,
    hashed_zero: Block,
    shared: Buffer,
    tile: Buffer,
    blocks: Blocks,
    /// Where paths run in the subtrees at work.
    paths: Vec<([u64; TREES], u64)>,
}

/// Sums up trees from a level of theirs on, which is called the cut: the subtrees of eight nodes at a time,
/// in first-level cache, and of the last level nothing is written.
struct Blocks {
    /// Where the cut is.
    cut: usize,
    /// Levels under it.
    levels: usize,
    nodes: Buffer,
    /// The sums of all blocks: by level, then by block.
    parts: Buffer,
    /// Of the tree under a node of value zero, under the group's key: each level's sum and moment of left
    /// children; empty until they are wanted.
    under_zero: Vec<[Block; 2]>,
    zeros: Buffer,
}

impl Blocks {
    fn new(depth: usize) -> Self {
        let cut = depth.min(SHARED_LEVELS.max(depth.saturating_sub(BLOCK_LEVELS)));
        let levels = depth - cut;
        let nodes = Buffer::zeros((LANES * BLOCK) << levels.saturating_sub(1));
        Blocks {
            cut,
            levels,
            nodes,
            parts: Buffer::zeros((LANES * levels) << (cut - BLOCK_LOG.min(cut))),
            under_zero: Vec::with_capacity(levels),
            zeros: Buffer::zeros(LANES << levels),
        }
    }

    /// Fills `under_zero`, unless the group's is there.
    fn expand_zero(&mut self, cipher: &Aes128) {
        let Blocks { levels, under_zero, zeros, .. } = self;
        zeros[..LANES].fill(Block::ZERO);
        for level in under_zero.len()..*levels {
            let (mut sums, mut moments) = ([Block::ZERO; LANES], [Block::ZERO; LANES]);
            ggm::expand_level(cipher, zeros, 1 << level, LANES, None, &mut sums);
            ggm::moments(zeros, 1 << level, LANES, &mut moments);
            under_zero.push([sums[0], moments[0]]);
        }
    }

    /// Of four trees, whose nodes at the cut are `tile`, for each level below it: the sums of the left
    /// children, and their moments where they are wanted. With the paths of `paths`, the paths' nodes at the
    /// cut count as zero.
    fn sum_up(
        &mut self,
        cipher: &Aes128,
        tile: &[Block],
        paths: Option<(&[u32; LANES], &Line)>,
        lanes: Range<usize>,
        sums: &mut [PerTree],
        moments: Option<&mut [PerTree]>,
    ) {
        let Blocks { cut, levels, nodes, parts, .. } = self;
        if *levels == 0 {
            return;
        }
        // The nodes of a block are so far apart that their children's numbers are the block's plus multiples
        // of this.
        let shift = *cut - BLOCK_LOG;
        let count = 1usize << shift;
        let mut of_block = Zeroizing::new(vec![[Block::ZERO; LANES]; *levels]);
        let parts = parts.as_chunks_mut::<LANES>().0;
        for block in 0..count {
            let astray = |alpha: u32| (alpha as u64 ^ block as u64) & (count as u64 - 1);
            let place = |alpha: u32| (alpha >> shift) as u64 & (BLOCK as u64 - 1);
            let path = |alpha: u32| astray(alpha) << 32 | place(alpha);
            let path = Zeroizing::new(paths.map_or([0; LANES], |(alpha, _)| alpha.map(path)));
            let top_bit = BLOCK as u64 / 2;
            let fix = paths.map(|(_, sibling)| Fix { path: &*path, sibling, top_bit });
            let of_tile = tile.chunks_exact(LANES).skip(block).step_by(count);
            for (line, node) in nodes.chunks_exact_mut(LANES).zip(of_tile).take(BLOCK) {
                line.copy_from_slice(node);
            }
            for level in 0..*levels {
                let (n, sums) = (BLOCK << level, &mut parts[level * count + block]);
                let fix = fix.as_ref().filter(|_| level == 0);
                let mut moment = [Block::ZERO; LANES];
                let moments = moments.is_some().then_some(&mut moment);
                if level + 1 == *levels {
                    ggm::expand_last(cipher, None, nodes, n, fix, Children::Summed { sums, moments });
                } else {
                    ggm::expand_level(cipher, nodes, n, LANES, fix, sums);
                    if let Some(moments) = moments {
                        ggm::moments(nodes, n, LANES, moments);
                    }
                }
                add(&mut of_block[level], &moment);
            }
        }
        for (level, parts) in parts.chunks_exact(count).take(*levels).enumerate() {
            let mut sum = [Block::ZERO; LANES];
            parts.iter().for_each(|part| add(&mut sum, part));
            sums[*cut + level][lanes.clone()].copy_from_slice(&sum);
        }
        let Some(moments) = moments else { return };
        // Node i of a level is number p of block b where i = b + count·p, so n + i = count·(n/count + p) + b.
        let times_count = Block::new(count as u128);
        for (level, parts) in parts.chunks_exact(count).take(*levels).enumerate() {
            let to = &mut moments[*cut + level][lanes.clone()];
            ggm::moments(parts.as_flattened(), count, LANES, to);
            for ((to, of_block), sum) in
                to.iter_mut().zip(&of_block[level]).zip(&sums[*cut + level][lanes.clone()])
            {
                *to ^= gf128::mul(*of_block ^ *sum, times_count);
            }
        }
    }
}

fn add(to: &mut Line, line: &Line) {
    to.iter_mut().zip(line).for_each(|(to, block)| *to ^= *block);
}

impl HalfTrees {
    /// Trees of 2^`depth` leaves, hashed under keys that follow from the public `seed`; `depth` from 1 to 30.
    pub(crate) fn new(depth: usize, seed: Block) -> Self {
        assert!((1..=30).contains(&depth), "tree depth out of range");
        Self::with_keys(depth, GroupKeys::new(seed))
    }

    /// Another expander of the same round, for another thread.
    pub(crate) fn beside(&self) -> Self {
        Self::with_keys(self.depth, GroupKeys(self.keys.0.clone()))
    }

    fn with_keys(depth: usize, keys: GroupKeys) -> Self {
        let cipher = keys.cipher(0);
        let hashed_zero = ggm::ccr_keyed(&cipher, Block::ZERO);
        let blocks = Blocks::new(depth);
        let shared = Buffer::zeros(TREES << depth.min(SHARED_LEVELS).max(blocks.levels));
        HalfTrees {
            depth,
            keys,
            group: 0,
            cipher,
            hashed_zero,
            shared,
            tile: Buffer::zeros(LANES << depth),
            blocks,
            paths: Vec::new(),
        }
    }

    /// Takes the keys of another round.
    pub(crate) fn renew(&mut self, seed: Block) {
        self.keys = GroupKeys::new(seed);
        self.take_key(0);
    }

    /// Hashes under the key of `group` from here on.
    fn enter(&mut self, group: usize) {
        if self.group != group {
            self.take_key(group);
        }
    }

    fn take_key(&mut self, group: usize) {
        self.group = group;
        self.cipher = self.keys.cipher(group);
        self.hashed_zero = ggm::ccr_keyed(&self.cipher, Block::ZERO);
        self.blocks.under_zero.clear();
    }

    /// Expands the sender's trees of a group with left roots `roots`: `sums[m - 1]` becomes each tree's XOR
    /// of the left nodes of level m, and `moments[m - 1]`, from the second level on, its Σ (n + i)·left child
    /// of node i. `each(tile, leaves)` gets the leaves of the first `tiles` tiles, leaf by leaf, lane by
    /// lane.
    pub(crate) fn expand(
        &mut self,
        group: usize,
        delta: Block,
        roots: &PerTree,
        tiles: usize,
        sums: &mut [PerTree],
        mut moments: Option<&mut [PerTree]>,
        mut each: Option<impl FnMut(usize, &mut [Block])>,
    ) {
        self.enter(group);
        let HalfTrees { depth, cipher, shared, tile, blocks, .. } = self;
        let (depth, shared_depth) = (*depth, (*depth).min(SHARED_LEVELS));
        let end = if each.is_some() { depth } else { blocks.cut };
        shared[..TREES].copy_from_slice(roots);
        for (right, root) in shared[TREES..2 * TREES].iter_mut().zip(roots) {
            *right = *root ^ delta;
        }
        sums[0] = *roots;
        for level in 1..shared_depth {
            ggm::expand_level(cipher, shared, 1 << level, TREES, None, &mut sums[level]);
            weigh(&mut moments, level, shared, 0..TREES);
        }
        for t in 0..tiles {
            let lanes = LANES * t..LANES * (t + 1);
            gather(shared, t, tile);
            for level in shared_depth..end {
                let sums = &mut sums[level][lanes.clone()];
                ggm::expand_level(cipher, tile, 1 << level, LANES, None, sums);
                weigh(&mut moments, level, tile, lanes.clone());
            }
            if let Some(each) = &mut each {
                ggm::finish_leaves(tile, 1 << depth, LANES, None, &[]);
                each(t, &mut tile[..LANES << depth]);
            } else {
                blocks.sum_up(cipher, tile, None, lanes, sums, moments.as_deref_mut());
            }
        }
    }

    /// Expands the receiver's trees of a group, punctured at the leaves `alpha`, from `keys[m - 1]`: the XOR
    /// of the nodes of level m on the side away from the path. `each` gets the leaves, the punctured one
    /// being the XOR of all others.
    ///
    /// In the end `keys` holds the siblings of the paths' nodes; returns the values at the punctured leaves.
    pub(crate) fn expand_punctured(
        &mut self,
        group: usize,
        alpha: &[u32; TREES],
        keys: &mut [PerTree],
        tiles: usize,
        moments: Option<&mut Moments>,
        mut each: Option<impl FnMut(usize, &mut [Block])>,
    ) -> PerTree {
        self.enter(group);
        let HalfTrees { depth, cipher, hashed_zero, shared, tile, blocks, .. } = self;
        let (depth, shared_depth) = (*depth, (*depth).min(SHARED_LEVELS));
        let end = if each.is_some() { depth } else { blocks.cut };
        let mut below = Zeroizing::new(vec![[Block::ZERO; TREES]; if end < depth { depth } else { 0 }]);
        let (mut moments, mut lacking) =
            moments.map(|m| (m.known.as_mut_slice(), m.lacking.as_mut_slice())).unzip();
        let mut sibling = keys[0];
        // XOR of all known nodes of the level: of all leaves but the punctured one, at the end.
        let mut known = keys[0];
        let mut path: [u64; TREES] = core::array::from_fn(|p| (alpha[p] & 1) as u64);
        let mut left = [Block::ZERO; TREES];
        for level in 1..shared_depth {
            let fix = Fix { path: &path, sibling: &sibling, top_bit: 1 << (level - 1) };
            ggm::expand_level(cipher, shared, 1 << level, TREES, Some(&fix), &mut left);
            weigh(&mut moments, level, shared, 0..TREES);
            for p in 0..TREES {
                descend(
                    level,
                    alpha[p],
                    keys[level][p],
                    left[p] ^ *hashed_zero,
                    &mut sibling[p],
                    &mut known[p],
                );
                keys[level][p] = sibling[p];
                path[p] = (alpha[p] as u64) & ((2 << level) - 1);
            }
            lack(&mut lacking, level, alpha, &sibling, &known, *hashed_zero, 0..TREES);
        }
        for t in 0..tiles {
            let lanes = LANES * t..LANES * (t + 1);
            gather(shared, t, tile);
            for level in shared_depth..end {
                let fix = Fix {
                    path: &path[lanes.clone()],
                    sibling: &sibling[lanes.clone()],
                    top_bit: 1 << (level - 1),
                };
                ggm::expand_level(cipher, tile, 1 << level, LANES, Some(&fix), &mut left[lanes.clone()]);
                weigh(&mut moments, level, tile, lanes.clone());
                for p in lanes.clone() {
                    let left = left[p] ^ *hashed_zero;
                    descend(level, alpha[p], keys[level][p], left, &mut sibling[p], &mut known[p]);
                    keys[level][p] = sibling[p];
                    path[p] = (alpha[p] as u64) & ((2 << level) - 1);
                }
                lack(&mut lacking, level, alpha, &sibling, &known, *hashed_zero, lanes.clone());
            }
            let Some(each) = &mut each else {
                let (alpha, sibling) = (&alpha.as_chunks().0[t], &sibling.as_chunks().0[t]);
                let moments = moments.as_deref_mut();
                blocks.sum_up(cipher, tile, Some((alpha, sibling)), lanes, &mut below, moments);
                continue;
            };
            let fix = Fix {
                path: &path[lanes.clone()],
                sibling: &sibling[lanes.clone()],
                top_bit: 1 << (depth - 1),
            };
            ggm::finish_leaves(tile, 1 << depth, LANES, Some(&fix), &known[lanes]);
            each(t, &mut tile[..LANES << depth]);
        }
        // What is left are the subtrees of the paths' nodes at the cut, in whose place those of zero nodes
        // were summed up.
        shared[..TREES].fill(Block::ZERO);
        if end < depth {
            blocks.expand_zero(cipher);
        }
        let (cut, above) = (end, Block::new(1 << end));
        for level in cut..depth {
            let under = level - cut;
            path = alpha.map(|alpha| (alpha >> cut) as u64 & ((1 << under) - 1));
            let fix = Fix { path: &path, sibling: &sibling, top_bit: (1 << under) / 2 };
            let fix = (under > 0).then_some(&fix);
            ggm::expand_level(cipher, shared, 1 << under, TREES, fix, &mut left);
            let [sum_under_zero, moment_under_zero] = blocks.under_zero[under];
            if let Some(moments) = &mut moments {
                let mut here = [Block::ZERO; TREES];
                ggm::moments(shared, 1 << under, TREES, &mut here);
                for p in 0..TREES {
                    let first = Block::new((alpha[p] & ((1 << cut) - 1)) as u128);
                    moments[level][p] ^= gf128::mul(here[p] ^ moment_under_zero, above)
                        ^ gf128::mul(left[p] ^ sum_under_zero, first);
                }
            }
            for p in 0..TREES {
                let left = below[level][p] ^ sum_under_zero ^ left[p] ^ *hashed_zero;
                descend(level, alpha[p], keys[level][p], left, &mut sibling[p], &mut known[p]);
                keys[level][p] = sibling[p];
            }
            lack(&mut lacking, level, alpha, &sibling, &known, *hashed_zero, 0..TREES);
        }
        sibling.zeroize();
        path.zeroize();
        known
    }

    /// Expands the subtrees of `node` in the trees of a group, whose values are `roots`, down to level `to`:
    /// `each(tile, nodes)` gets what lies under it, leaves if `to` is the depth. Of a node on a punctured
    /// path, or a path's sibling, no value is read but what `punctured` says; nodes above the leaves are
    /// handed out without it.
    pub(crate) fn expand_below(
        &mut self,
        group: usize,
        node: Node,
        to: usize,
        roots: &PerTree,
        punctured: Option<&Punctured>,
        tiles: usize,
        mut each: impl FnMut(usize, &mut [Block]),
    ) {
        self.enter(group);
        let HalfTrees { depth, cipher, shared, tile, paths, .. } = self;
        let levels = to - node.level;
        let last = (to == *depth && levels > BLOCK_LOG).then(|| levels - 1);
        let shared_levels = last.unwrap_or(levels);
        if shared.len() < TREES << shared_levels {
            *shared = Buffer::zeros(TREES << shared_levels);
        }
        paths.clear();
        if let Some(punctured) = punctured {
            paths.extend((0..=levels).map(|below| punctured.paths(node, below)));
        }
        let fix = |below: usize, lanes: Range<usize>| {
            punctured.map(|punctured| Fix {
                path: &paths[below].0[lanes.clone()],
                sibling: &punctured.siblings[node.level + below - 1][lanes],
                top_bit: paths[below].1,
            })
        };
        shared[..TREES].copy_from_slice(roots);
        let fixes: Vec<_> = (0..shared_levels).map(|below| fix(below, 0..TREES)).collect();
        ggm::expand_subtrees(cipher, shared, &fixes);
        for t in 0..tiles {
            let lanes = LANES * t..LANES * (t + 1);
            if let Some(below) = last {
                // The children of each path's node at the last level but one: the punctured leaf, and its
                // sibling.
                let values = punctured.map(|punctured| {
                    let mut values = Zeroizing::new([[Block::ZERO; LANES]; 2]);
                    let [left, right] = &mut *values;
                    for (p, (left, right)) in lanes.clone().zip(left.iter_mut().zip(right)) {
                        let goes_right = Block::mask(punctured.alpha[p] >> (*depth - 1) & 1 == 1);
                        let leaf = punctured.leaf[p].with_lsb(true);
                        let sibling = punctured.siblings[*depth - 1][p].with_lsb(false);
                        let both = leaf ^ sibling;
                        (*left, *right) = (leaf ^ (both & goes_right), sibling ^ (both & goes_right));
                    }
                    values
                });
                let from = Some((&shared[LANES * t..], TILES));
                let children = Children::Leaves(values.as_deref());
                ggm::expand_last(cipher, from, tile, 1 << below, fix(below, lanes).as_ref(), children);
            } else {
                gather(shared, t, &mut tile[..LANES << levels]);
                if to == *depth {
                    let leaf = punctured.map_or(&[][..], |punctured| &punctured.leaf[lanes.clone()]);
                    ggm::finish_leaves(tile, 1 << levels, LANES, fix(levels, lanes).as_ref(), leaf);
                }
            }
            each(t, &mut tile[..LANES << levels]);
        }
        paths.iter_mut().for_each(|(paths, _)| paths.zeroize());
    }
}

/// From the siblings of level `level` to those of the next: the key is the XOR of one side of the next level,
/// from which the known nodes of that side are taken off.
#[inline]
fn descend(level: usize, alpha: u32, key: Block, left: Block, sibling: &mut Block, known: &mut Block) {
    let away_is_right = Block::mask(alpha >> level & 1 == 0);
    *sibling = key ^ left ^ (*known & away_is_right);
    *known ^= *sibling;
}

/// The moments of the left children of a level's nodes, where they are wanted.
fn weigh(moments: &mut Option<&mut [PerTree]>, level: usize, nodes: &[Block], lanes: Range<usize>) {
    if let Some(moments) = moments {
        ggm::moments(nodes, 1 << level, lanes.len(), &mut moments[level][lanes]);
    }
}

/// What is lacking in them: where a path goes right, its node's left child is the path's sibling, else the
/// XOR of all known nodes; in their place stands H(0).
fn lack(
    lacking: &mut Option<&mut [PerTree]>,
    level: usize,
    alpha: &[u32; TREES],
    sibling: &PerTree,
    known: &PerTree,
    hashed_zero: Block,
    lanes: Range<usize>,
) {
    let Some(lacking) = lacking else { return };
    for p in lanes {
        let away_is_left = Block::mask(alpha[p] >> level & 1 == 1);
        lacking[level][p] = hashed_zero ^ known[p] ^ (away_is_left & (known[p] ^ sibling[p]));
    }
}

fn gather(shared: &[Block], t: usize, tile: &mut [Block]) {
    for (line, group) in tile.chunks_exact_mut(LANES).zip(shared.chunks_exact(TREES)) {
        line.copy_from_slice(&group[LANES * t..][..LANES]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tacit_crypto::{Prg, gf128};

    /// One tree, one node at a time, straight from the definition.
    fn naive_leaves(cipher: &Aes128, delta: Block, root: Block, depth: usize) -> Vec<Block> {
        let mut nodes = vec![root, root ^ delta];
        for _ in 1..depth {
            let left: Vec<_> = nodes.iter().map(|p| ggm::ccr_keyed(cipher, *p)).collect();
            let right: Vec<_> = nodes.iter().zip(&left).map(|(p, l)| *p ^ *l).collect();
            nodes = [left, right].concat();
        }
        nodes
    }

    #[test]
    fn trees_equal_the_definition_and_their_punctured_copies() {
        let mut prg = Prg::from_seed(Block::new(7));
        for depth in (1..=9).chain([12]) {
            let key = prg.block();
            let mut delta = prg.block();
            delta = delta.with_lsb(true);
            let mut roots = [Block::ZERO; TREES];
            prg.fill_blocks(&mut roots);
            let (seed, group) = (key, depth % 3);
            let key = Aes128::new(seed).encrypt(Block::new(group as u128));
            let mut trees = HalfTrees::new(depth, seed);
            let mut sums = vec![[Block::ZERO; TREES]; depth];
            let mut leaves: Vec<Vec<Block>> = Vec::new();
            let mut moments = sums.clone();
            trees.expand(
                group,
                delta,
                &roots,
                TILES,
                &mut sums,
                Some(&mut moments),
                Some(|_, l: &mut [Block]| leaves.push(l.to_vec())),
            );
            let (mut quick_sums, mut quick_moments) = (moments.clone(), sums.clone());
            let none = None::<fn(usize, &mut [Block])>;
            trees.expand(group, delta, &roots, TILES, &mut quick_sums, Some(&mut quick_moments), none);
            assert!(quick_sums == sums, "depth {depth}");
            assert!(quick_moments[1..] == moments[1..], "depth {depth}");
            for p in 0..TREES {
                for (i, leaf) in naive_leaves(&Aes128::new(key), delta, roots[p], depth).iter().enumerate() {
                    assert_eq!(leaves[p / 4][4 * i + p % 4].to_hex(), leaf.with_lsb(false).to_hex());
                }
            }
            let alpha: [u32; TREES] = core::array::from_fn(|_| prg.below(1 << depth) as u32);
            let mut keys: Vec<PerTree> = (0..depth)
                .map(|m| core::array::from_fn(|p| sums[m][p] ^ (delta & Block::mask(alpha[p] >> m & 1 == 0))))
                .collect();
            let mut punctured = Vec::new();
            let (mut taken, mut quick) = (Moments::new(depth), Moments::new(depth));
            let mut quick_keys = keys.clone();
            let quick_leaf =
                trees.expand_punctured(group, &alpha, &mut quick_keys, TILES, Some(&mut quick), none);
            let each = Some(|_, l: &mut [Block]| punctured.push(l.to_vec()));
            let leaf = trees.expand_punctured(group, &alpha, &mut keys, TILES, Some(&mut taken), each);
            assert!(quick_leaf == leaf && quick_keys == keys, "depth {depth}");
            assert!(quick.known[1..] == taken.known[1..], "depth {depth}");
            assert!(quick.lacking[1..] == taken.lacking[1..], "depth {depth}");
            for (level, moments) in moments.iter().enumerate().skip(1) {
                for p in 0..TREES {
                    let (n, side) = (1 << level, alpha[p] >> level & 1);
                    let weight = Block::new((n | alpha[p] & (n - 1)) as u128);
                    let share = taken.lacking[level][p] ^ (delta & Block::mask(side == 0));
                    let whole = taken.known[level][p] ^ gf128::mul(weight, share);
                    assert_eq!(moments[p].to_hex(), whole.to_hex(), "depth {depth}, level {level}, tree {p}");
                }
            }
            for p in 0..TREES {
                for i in 0..1 << depth {
                    let (v, w) = (leaves[p / 4][4 * i + p % 4], punctured[p / 4][4 * i + p % 4]);
                    let expected = v ^ (delta & Block::mask(alpha[p] as usize == i));
                    assert_eq!(w.to_hex(), expected.to_hex(), "depth {depth}, tree {p}, leaf {i}");
                }
            }
            let found = Punctured { alpha, siblings: keys, leaf };
            let right = roots.map(|root| root ^ delta);
            let zero = [Block::ZERO; TREES];
            for level in 1..=depth {
                parts(&mut trees, group, [&roots, &right], level, None, &leaves);
                parts(&mut trees, group, [&zero, &zero], level, Some(&found), &punctured);
            }
        }
    }

    /// One tree under the keys of two groups and of two rounds: nothing below the roots is the same, and each
    /// group's leaves come again whatever was expanded in between.
    #[test]
    fn every_group_and_round_has_a_key_of_its_own() {
        let (mut trees, delta) = (HalfTrees::new(4, Block::new(5)), Block::ONES);
        let mut leaves = |seed: u128, group| {
            trees.renew(Block::new(seed));
            let mut out = Vec::new();
            let each = Some(|_, leaves: &mut [Block]| out.extend_from_slice(leaves));
            let mut sums = vec![[Block::ZERO; TREES]; 4];
            trees.expand(group, delta, &[Block::ONE; TREES], 1, &mut sums, None, each);
            out
        };
        let made = [leaves(5, 0), leaves(5, 1), leaves(6, 0), leaves(6, 1), leaves(5, 1 << 40)];
        for (i, one) in made.iter().enumerate() {
            for other in &made[..i] {
                assert!(one.iter().zip(other).all(|(a, b)| a != b));
            }
        }
        assert!(leaves(5, 1) == made[1] && leaves(5, 0) == made[0]);
    }

    /// Goes from both nodes of level 1 to `level` and from every node there to the leaves, which must be
    /// `whole`'s.
    fn parts(
        trees: &mut HalfTrees,
        group: usize,
        first: [&PerTree; 2],
        level: usize,
        punctured: Option<&Punctured>,
        whole: &[Vec<Block>],
    ) {
        let depth = trees.depth;
        let mut nodes = vec![[Block::ZERO; TREES]; 1 << level];
        for (side, roots) in first.into_iter().enumerate() {
            trees.expand_below(
                group,
                Node { level: 1, index: side },
                level,
                roots,
                punctured,
                TILES,
                |t, lines| {
                    for (i, line) in lines.chunks_exact(LANES).enumerate() {
                        nodes[side + 2 * i][LANES * t..][..LANES].copy_from_slice(line);
                    }
                },
            );
        }
        for (index, roots) in nodes.iter().enumerate() {
            trees.expand_below(group, Node { level, index }, depth, roots, punctured, TILES, |t, leaves| {
                for (i, line) in leaves.chunks_exact(LANES).enumerate() {
                    let leaf = index + (i << level);
                    assert_eq!(
                        line,
                        &whole[t][LANES * leaf..][..LANES],
                        "level {level}, tile {t}, leaf {leaf}"
                    );
                }
            });
        }
    }
}
