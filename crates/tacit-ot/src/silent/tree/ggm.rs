//! The plain GGM puncturable PRF of BCGIKRS19 with its malicious variant (figures 6, 13 and 16), many trees
//! at once.
//!
//! Trees stand in tiles of four, one a lane, and are expanded level by level. Every tree has one level more
//! than there are bits in α: a leaf gives ω, which the consistency check sacrifices, w, the output, and γ of
//! 256 bits, which both parties hash. The left child of node `i` of a level of n nodes stays at `i`, the
//! right one goes to `i + n`, so that bit m − 1 of a leaf's index is the turn at level m.
//!
//! The holder of a punctured key replaces the nodes on its path by comparing every index with it: no address
//! and no branch depends on α.

use tacit_crypto::aes::Aes128;
use tacit_crypto::ggm::{LANES, ccr_keyed, ccr_keyed_into, expand_plain_level};
use tacit_crypto::transcript::Transcript;
use tacit_crypto::{Block, Buffer};
use zeroize::{Zeroize, ZeroizeOnDrop};

const CHUNK: usize = 1024;
/// Outputs of a leaf: ω, w and the two halves of γ.
const OUTPUTS: usize = 4;

/// One block for each tree of a tile.
pub(crate) type Line = [Block; LANES];

/// What a tile's leaves sum to, output by output.
pub(crate) type LeafSums = [Line; OUTPUTS];

/// A piece of a tile's leaves, lane by lane: ω, w and γ.
pub(crate) struct Leaves<'a> {
    /// The blocks' offset in the tile.
    pub start: usize,
    pub omega: &'a mut [Block],
    pub w: &'a mut [Block],
    pub gamma: [&'a [Block]; 2],
}

/// What the receiver has of a tile: its points, a key a level, and what the last level needs.
#[derive(Zeroize, ZeroizeOnDrop)]
pub(crate) struct Punctured {
    pub alpha: [u32; LANES],
    /// K^m on the side away from the path, level by level.
    pub keys: Vec<Line>,
    /// c, as (ω, w).
    pub correction: [Line; 2],
    /// The sum of all γ.
    pub gamma: [Line; 2],
}

/// The expander of trees of one depth, with its buffers.
pub(crate) struct Ggm {
    depth: usize,
    left: Aes128,
    right: Aes128,
    outputs: [Aes128; OUTPUTS],
    nodes: Buffer,
    chunk: [Buffer; OUTPUTS],
}

impl Ggm {
    /// Trees of 2^`depth` leaves under public keys drawn from `context`; `depth` from 1 to 30.
    pub(crate) fn new(context: &Transcript, depth: usize) -> Self {
        assert!((1..=30).contains(&depth), "tree depth out of range");
        let mut context = context.clone();
        context.append_u64("ggm depth", depth as u64);
        let mut key = |label| Aes128::new(context.challenge_block(label));
        Ggm {
            depth,
            left: key("left"),
            right: key("right"),
            outputs: ["omega", "w", "gamma 0", "gamma 1"].map(key),
            nodes: Buffer::zeros(LANES << depth),
            chunk: core::array::from_fn(|_| Buffer::zeros(CHUNK)),
        }
    }

    /// Fig. 13, steps 2 to 4: expands a tile of the sender; `sums[m - 1]` becomes the pair (K_0, K_1) of
    /// level m. Returns the sums over the leaves.
    pub(crate) fn expand(
        &mut self,
        roots: &Line,
        sums: &mut [[Line; 2]],
        mut each: impl FnMut(Leaves<'_>),
    ) -> LeafSums {
        self.levels(roots, sums);
        let mut totals = LeafSums::default();
        self.leaves(OUTPUTS, None, &mut |leaves| {
            let Leaves { omega, w, gamma: [g0, g1], .. } = &leaves;
            for (total, part) in totals.iter_mut().zip([&omega[..], &w[..], g0, g1]) {
                add_lanes(total, part);
            }
            each(leaves);
        });
        totals
    }

    /// [`expand`](Self::expand) for ω and w alone, without any sums; the γ that `each` gets are empty.
    pub(crate) fn expand_outputs(&mut self, roots: &Line, mut each: impl FnMut(Leaves<'_>)) {
        self.nodes[..LANES].copy_from_slice(roots);
        for level in 0..self.depth {
            expand_plain_level(&self.left, &self.right, &mut self.nodes, LANES << level);
        }
        self.leaves(OUTPUTS - 2, None, &mut each);
    }

    /// [`expand`](Self::expand) for w alone: `each` gets the blocks' offset in the tile and the blocks.
    pub(crate) fn expand_w(
        &mut self,
        roots: &Line,
        sums: &mut [[Line; 2]],
        each: impl FnMut(usize, &[Block]),
    ) {
        self.levels(roots, sums);
        self.w(each);
    }

    /// [`expand_punctured`](Self::expand_punctured) for w alone, by the points and the keys of the levels. At
    /// α, `each` sees nothing of use.
    pub(crate) fn expand_punctured_w(
        &mut self,
        alpha: &[u32; LANES],
        keys: &[Line],
        each: impl FnMut(usize, &[Block]),
    ) {
        self.punctured_levels(alpha, keys);
        self.w(each);
    }

    /// Fig. 13, step 8: expands a punctured tile. At α, `each` sees the ω and w that the correction gives.
    pub(crate) fn expand_punctured(&mut self, key: &Punctured, mut each: impl FnMut(Leaves<'_>)) {
        self.punctured_levels(&key.alpha, &key.keys);
        let zeros = self.outputs.each_ref().map(|cipher| ccr_keyed(cipher, Block::ZERO));
        let mut sums = LeafSums::default();
        self.leaves(OUTPUTS, None, &mut |leaves| {
            let Leaves { omega, w, gamma: [g0, g1], .. } = &leaves;
            for (sum, part) in sums.iter_mut().zip([&omega[..], &w[..], g0, g1]) {
                add_lanes(sum, part);
            }
        });
        let given = [&key.correction[0], &key.correction[1], &key.gamma[0], &key.gamma[1]];
        for o in 0..OUTPUTS {
            for p in 0..LANES {
                sums[o][p] ^= zeros[o] ^ given[o][p];
            }
        }
        self.leaves(OUTPUTS, Some((&key.alpha, &sums)), &mut each);
        sums.zeroize();
    }

    /// All levels of a tile of the sender.
    fn levels(&mut self, roots: &Line, sums: &mut [[Line; 2]]) {
        self.nodes[..LANES].copy_from_slice(roots);
        for level in 0..self.depth {
            sums[level] = self.level(level);
        }
    }

    /// All levels of a punctured tile, but for the leaves at α.
    fn punctured_levels(&mut self, alpha: &[u32; LANES], keys: &[Line]) {
        let zeros = [&self.left, &self.right].map(|cipher| ccr_keyed(cipher, Block::ZERO));
        self.nodes[..LANES].fill(Block::ZERO);
        for level in 0..self.depth {
            let [left, right] = self.level(level);
            let mut sibling = Line::default();
            let mut path = [0u32; LANES];
            for p in 0..LANES {
                // The node on the path counted as zero, so its children are known and taken off.
                let away = Block::mask(alpha[p] >> level & 1 == 0);
                let known = (left[p] ^ zeros[0]) & !away | (right[p] ^ zeros[1]) & away;
                sibling[p] = keys[level][p] ^ known;
                path[p] = alpha[p] & ((2u32 << level) - 1);
            }
            let top = 1u32 << level;
            for (i, node) in self.nodes[..(2 * LANES) << level].chunks_exact_mut(LANES).enumerate() {
                for (p, value) in node.iter_mut().enumerate() {
                    let (on, beside) = (equal(path[p], i as u32), equal(path[p] ^ top, i as u32));
                    *value = *value & !(on | beside) | sibling[p] & beside;
                }
            }
        }
    }

    /// Expands one level; returns the sums over left and right children.
    fn level(&mut self, level: usize) -> [Line; 2] {
        let len = LANES << level;
        expand_plain_level(&self.left, &self.right, &mut self.nodes, len);
        let mut sums = [Line::default(); 2];
        let (left, right) = self.nodes[..2 * len].split_at(len);
        add_lanes(&mut sums[0], left);
        add_lanes(&mut sums[1], right);
        sums
    }

    /// w of every leaf, piece by piece.
    fn w(&mut self, mut each: impl FnMut(usize, &[Block])) {
        let Ggm { nodes, outputs: [_, cipher, ..], chunk: [_, chunk, ..], .. } = self;
        for (c, parents) in nodes.chunks(CHUNK).enumerate() {
            let w = &mut chunk[..parents.len()];
            ccr_keyed_into(cipher, parents, w);
            each(c * CHUNK, w);
        }
    }

    /// The first `wanted` outputs of G' of every leaf, piece by piece; with `at`, those of the points are
    /// replaced.
    fn leaves(
        &mut self,
        wanted: usize,
        at: Option<(&[u32; LANES], &LeafSums)>,
        each: &mut dyn FnMut(Leaves<'_>),
    ) {
        let Ggm { nodes, outputs, chunk, .. } = self;
        for (c, parents) in nodes.chunks(CHUNK).enumerate() {
            for (o, (cipher, chunk)) in outputs.iter().zip(chunk.iter_mut()).take(wanted).enumerate() {
                let chunk = &mut chunk[..parents.len()];
                ccr_keyed_into(cipher, parents, chunk);
                let Some((alpha, values)) = at else { continue };
                for (i, line) in chunk.chunks_exact_mut(LANES).enumerate() {
                    for p in 0..LANES {
                        let on = equal(alpha[p], (c * CHUNK / LANES + i) as u32);
                        line[p] = line[p] & !on | values[o][p] & on;
                    }
                }
            }
            let [omega, w, g0, g1] = chunk;
            let n = parents.len();
            let hashed = if wanted == OUTPUTS { n } else { 0 };
            let gamma = [&g0[..hashed], &g1[..hashed]];
            each(Leaves { start: c * CHUNK, omega: &mut omega[..n], w: &mut w[..n], gamma });
        }
    }
}

fn add_lanes(sums: &mut Line, blocks: &[Block]) {
    for line in blocks.chunks_exact(LANES) {
        for (sum, block) in sums.iter_mut().zip(line) {
            *sum ^= *block;
        }
    }
}

/// All ones where `a == b`, without a branch.
#[inline(always)]
pub(crate) fn equal(a: u32, b: u32) -> Block {
    let x = a ^ b;
    Block::mask((x | x.wrapping_neg()) >> 31 == 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tacit_crypto::Prg;

    #[test]
    fn punctured_trees_agree_with_whole_ones() {
        let mut prg = Prg::from_seed(Block::new(4));
        for depth in 1..=10 {
            let mut ggm = Ggm::new(&Transcript::new("test"), depth);
            let mut roots = Line::default();
            prg.fill_blocks(&mut roots);
            let mut sums = vec![[Line::default(); 2]; depth];
            let mut whole: [Vec<Block>; 4] = Default::default();
            let totals = ggm.expand(&roots, &mut sums, |l| {
                for (out, part) in whole.iter_mut().zip([&*l.omega, &*l.w, l.gamma[0], l.gamma[1]]) {
                    out.extend_from_slice(part);
                }
            });
            // The leaves from the definition, one path at a time.
            for (leaf, lane) in [(0usize, 0), ((1 << depth) - 1, 1), (1 << (depth - 1), 3)] {
                let node = (0..depth).fold(roots[lane], |node, m| {
                    ccr_keyed(if leaf >> m & 1 == 0 { &ggm.left } else { &ggm.right }, node)
                });
                for (out, cipher) in whole.iter().zip(&ggm.outputs) {
                    assert!(out[LANES * leaf + lane] == ccr_keyed(cipher, node));
                }
            }
            let alpha: [u32; LANES] = core::array::from_fn(|_| prg.below(1 << depth) as u32);
            let beta = [prg.block(), prg.block()];
            let keys =
                (0..depth).map(|m| core::array::from_fn(|p| sums[m][(alpha[p] >> m & 1 == 0) as usize][p]));
            let key = Punctured {
                alpha,
                keys: keys.collect(),
                correction: [0, 1].map(|o| totals[o].map(|t| t ^ beta[o])),
                gamma: [totals[2], totals[3]],
            };
            let mut seen: [Vec<Block>; 4] = Default::default();
            ggm.expand_punctured(&key, |l| {
                assert_eq!(l.start, seen[0].len());
                for (out, part) in seen.iter_mut().zip([&*l.omega, &*l.w, l.gamma[0], l.gamma[1]]) {
                    out.extend_from_slice(part);
                }
            });
            assert!(whole[2] == seen[2] && whole[3] == seen[3], "γ differ at depth {depth}");
            for o in 0..2 {
                for (i, (v, w)) in whole[o].iter().zip(&seen[o]).enumerate() {
                    let at = alpha[i % LANES] as usize == i / LANES;
                    assert!(*w == *v ^ (beta[o] & Block::mask(at)), "depth {depth}, output {o}, block {i}");
                }
            }
        }
    }
}
