//! Puncturable PRF by half-trees (2022/1431), many trees at once.
//!
//! The trees of a batch stand in *tiles* of four, one tree a lane. Up to eight tiles are expanded together while they are small,
//! each one alone once a level fills the vector registers. Nothing but the tiles at work is ever in memory.

use core::ops::Range;
use tacit_crypto::aes::Aes128;
use tacit_crypto::ggm::{self, Fix, LANES};
use tacit_crypto::{Block, Buffer};
use zeroize::{Zeroize, ZeroizeOnDrop};

/// Tiles that one call expands.
pub(crate) const TILES: usize = 8;
const TREES: usize = TILES * LANES;
// After four levels a tile has 16 lines, enough to fill the pipelines alone.
const SHARED_LEVELS: usize = 4;

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
    /// Each path's place among the nodes `below` levels under `node`, no index at all where it does not go through
    /// `node`, and the bit by which its sibling's place differs.
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

/// The expander of trees of one depth, with the buffers it reuses.
pub(crate) struct HalfTrees {
    depth: usize,
    cipher: Aes128,
    hashed_zero: Block,
    shared: Buffer,
    tile: Buffer,
}

impl HalfTrees {
    /// Trees of 2^`depth` leaves, hashed under the public `key`; `depth` from 1 to 30.
    pub(crate) fn new(depth: usize, key: Block) -> Self {
        assert!((1..=30).contains(&depth), "tree depth out of range");
        let cipher = Aes128::new(key);
        let hashed_zero = ggm::ccr_keyed(&cipher, Block::ZERO);
        let shared = Buffer::zeros(TREES << depth.min(SHARED_LEVELS));
        HalfTrees { depth, cipher, hashed_zero, shared, tile: Buffer::zeros(LANES << depth) }
    }

    /// Expands the sender's trees with left roots `roots`: `sums[m - 1]` becomes each tree's XOR of the left nodes of
    /// level m, and `moments[m - 1]`, from the second level on, its Σ (n + i)·left child of node i. `each(tile, leaves)` gets the leaves of the first `tiles` tiles, leaf
    /// by leaf, lane by lane.
    pub(crate) fn expand(
        &mut self,
        delta: Block,
        roots: &PerTree,
        tiles: usize,
        sums: &mut [PerTree],
        mut moments: Option<&mut [PerTree]>,
        mut each: Option<impl FnMut(usize, &mut [Block])>,
    ) {
        let HalfTrees { depth, cipher, shared, tile, .. } = self;
        let (depth, shared_depth) = (*depth, (*depth).min(SHARED_LEVELS));
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
            for level in shared_depth..depth {
                let sums = &mut sums[level][lanes.clone()];
                ggm::expand_level(cipher, tile, 1 << level, LANES, None, sums);
                weigh(&mut moments, level, tile, lanes.clone());
            }
            if let Some(each) = &mut each {
                ggm::finish_leaves(tile, 1 << depth, LANES, None, &[]);
                each(t, &mut tile[..LANES << depth]);
            }
        }
    }

    /// Expands the receiver's trees, punctured at the leaves `alpha`, from `keys[m - 1]`: the XOR of the nodes of level
    /// m on the side away from the path. `each` gets the leaves, the punctured one being the XOR of all others.
    ///
    /// In the end `keys` holds the siblings of the paths' nodes; returns the values at the punctured leaves.
    pub(crate) fn expand_punctured(
        &mut self,
        alpha: &[u32; TREES],
        keys: &mut [PerTree],
        tiles: usize,
        moments: Option<&mut Moments>,
        mut each: Option<impl FnMut(usize, &mut [Block])>,
    ) -> PerTree {
        let HalfTrees { depth, cipher, hashed_zero, shared, tile, .. } = self;
        let (depth, shared_depth) = (*depth, (*depth).min(SHARED_LEVELS));
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
            for level in shared_depth..depth {
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
            let Some(each) = &mut each else { continue };
            let fix = Fix {
                path: &path[lanes.clone()],
                sibling: &sibling[lanes.clone()],
                top_bit: 1 << (depth - 1),
            };
            ggm::finish_leaves(tile, 1 << depth, LANES, Some(&fix), &known[lanes]);
            each(t, &mut tile[..LANES << depth]);
        }
        sibling.zeroize();
        path.zeroize();
        known
    }

    /// Expands the subtrees of `node`, whose values are `roots`, down to level `to`: `each(tile, nodes)` gets what lies
    /// under it, leaves if `to` is the depth. Of a node on a punctured path, or a path's sibling, no value is read but
    /// what `punctured` says; nodes above the leaves are handed out without it.
    pub(crate) fn expand_below(
        &mut self,
        node: Node,
        to: usize,
        roots: &PerTree,
        punctured: Option<&Punctured>,
        tiles: usize,
        mut each: impl FnMut(usize, &mut [Block]),
    ) {
        let HalfTrees { depth, cipher, shared, tile, .. } = self;
        let levels = to - node.level;
        let shared_levels = levels.min(SHARED_LEVELS);
        let paths_of =
            |punctured: &Punctured| (0..=levels).map(|below| punctured.paths(node, below)).collect();
        let mut paths: Vec<_> = punctured.map_or(Vec::new(), paths_of);
        let fix = |below: usize, lanes: Range<usize>| {
            punctured.map(|punctured| Fix {
                path: &paths[below].0[lanes.clone()],
                sibling: &punctured.siblings[node.level + below - 1][lanes],
                top_bit: paths[below].1,
            })
        };
        let mut sums = [Block::ZERO; TREES];
        shared[..TREES].copy_from_slice(roots);
        for below in 0..shared_levels {
            ggm::expand_level(cipher, shared, 1 << below, TREES, fix(below, 0..TREES).as_ref(), &mut sums);
        }
        for t in 0..tiles {
            let lanes = LANES * t..LANES * (t + 1);
            gather(shared, t, &mut tile[..LANES << shared_levels]);
            for below in shared_levels..levels {
                let fix = fix(below, lanes.clone());
                ggm::expand_level(cipher, tile, 1 << below, LANES, fix.as_ref(), &mut sums[lanes.clone()]);
            }
            if to == *depth {
                let leaf = punctured.map_or(&[][..], |punctured| &punctured.leaf[lanes.clone()]);
                ggm::finish_leaves(tile, 1 << levels, LANES, fix(levels, lanes).as_ref(), leaf);
            }
            each(t, &mut tile[..LANES << levels]);
        }
        sums.zeroize();
        paths.iter_mut().for_each(|(paths, _)| paths.zeroize());
    }
}

/// From the siblings of level `level` to those of the next: the key is the XOR of one side of the next level, from
/// which the known nodes of that side are taken off.
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

/// What is lacking in them: where a path goes right, its node's left child is the path's sibling, else the XOR of all
/// known nodes; in their place stands H(0).
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
        for depth in 1..=9 {
            let key = prg.block();
            let mut delta = prg.block();
            delta = delta.with_lsb(true);
            let mut roots = [Block::ZERO; TREES];
            prg.fill_blocks(&mut roots);
            let mut trees = HalfTrees::new(depth, key);
            let mut sums = vec![[Block::ZERO; TREES]; depth];
            let mut leaves: Vec<Vec<Block>> = Vec::new();
            let mut moments = sums.clone();
            trees.expand(
                delta,
                &roots,
                TILES,
                &mut sums,
                Some(&mut moments),
                Some(|_, l: &mut [Block]| leaves.push(l.to_vec())),
            );
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
            let mut taken = Moments::new(depth);
            let each = Some(|_, l: &mut [Block]| punctured.push(l.to_vec()));
            let leaf = trees.expand_punctured(&alpha, &mut keys, TILES, Some(&mut taken), each);
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
                parts(&mut trees, [&roots, &right], level, None, &leaves);
                parts(&mut trees, [&zero, &zero], level, Some(&found), &punctured);
            }
        }
    }

    /// Goes from both nodes of level 1 to `level` and from every node there to the leaves, which must be `whole`'s.
    fn parts(
        trees: &mut HalfTrees,
        first: [&PerTree; 2],
        level: usize,
        punctured: Option<&Punctured>,
        whole: &[Vec<Block>],
    ) {
        let depth = trees.depth;
        let mut nodes = vec![[Block::ZERO; TREES]; 1 << level];
        for (side, roots) in first.into_iter().enumerate() {
            trees.expand_below(Node { level: 1, index: side }, level, roots, punctured, TILES, |t, lines| {
                for (i, line) in lines.chunks_exact(LANES).enumerate() {
                    nodes[side + 2 * i][LANES * t..][..LANES].copy_from_slice(line);
                }
            });
        }
        for (index, roots) in nodes.iter().enumerate() {
            trees.expand_below(Node { level, index }, depth, roots, punctured, TILES, |t, leaves| {
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
