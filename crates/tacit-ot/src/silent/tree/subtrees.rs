//! Trees that are expanded subtree by subtree.

use super::half::{HalfTrees, Node, PerTree, Punctured, TILES};
use super::shape::Shape;
use super::spcot::SenderTrees;
use tacit_crypto::ggm::LANES;
use tacit_crypto::{Block, Buffer};

const TREES: usize = TILES * LANES;

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

    /// Expands the subtree of node `index` of every tree; `each` gets a tile's index in the batch and the
    /// leaves.
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
