//! A GGM tree punctured at many points at once (BCGIKRS19, appendix B, figure 18), for a dealer who knows the
//! points.
//!
//! The punctured key holds the fewest nodes from which all leaves but the t points follow: those whose parent
//! lies on the path to a point and that do not themselves. That is t·log(n/t) nodes at most, against t·log n
//! for t trees of n leaves.
//!
//! The tree has a root with few children and is binary below. Node `i` of a level of n nodes has its left
//! child at `i` and its right child at `i + n`, so that the node above leaf `l` is `l mod n`. Points are
//! secret: labels are found by comparing all pairs of points, nodes by walking to every point, and a level's
//! labels reach their places by routing them over fixed distances (Goodrich–Mitzenmacher 2011), so that no
//! address and no branch depends on them.

use tacit_crypto::aes::Aes128;
use tacit_crypto::ggm::{LANES, ccr_keyed, expand_plain_level};
use tacit_crypto::simd::{Backend, route::Slots};
use tacit_crypto::transcript::Transcript;
use tacit_crypto::{Block, Buffer, Prg};
use zeroize::{Zeroize, Zeroizing};

/// Children of the root at most.
const WIDEST: usize = 7 * LANES;

/// A label's place in its level, counted from 1, and its value; place 0 is none.
#[derive(Clone, Copy, Default)]
pub(crate) struct Label {
    place: u32,
    value: Block,
}

impl Zeroize for Label {
    fn zeroize(&mut self) {
        self.place.zeroize();
        self.value.zeroize();
    }
}

type Labels = Zeroizing<Vec<Label>>;

/// Trees of one size under public keys.
pub(crate) struct Tree {
    top: usize,
    depth: usize,
    left: Aes128,
    right: Aes128,
}

/// All ones where the numbers are equal, without a branch.
fn same(a: u32, b: u32) -> u32 {
    let x = a ^ b;
    ((x | x.wrapping_neg()) >> 31).wrapping_sub(1)
}

/// All ones where a < b, both below 2^31.
fn less(a: u32, b: u32) -> u32 {
    (a.wrapping_sub(b) >> 31).wrapping_neg()
}

fn choose(mask: u32, a: Block, b: Block) -> Block {
    let mask = Block::mask(mask != 0);
    a & mask | b & !mask
}

impl Tree {
    /// A tree of `leaves` leaves or a quarter more at most; from 64 to 2^30. Its hash keys come from
    /// `context`.
    pub(crate) fn new(context: &Transcript, leaves: usize) -> Self {
        assert!((64..=1 << 30).contains(&leaves), "tree size out of range");
        let top = |depth: usize| leaves.div_ceil(LANES << depth) * LANES;
        let depth = (0..30).find(|&depth| top(depth) <= WIDEST).unwrap_or(30);
        let mut context = context.clone();
        context.append_u64("tree top", top(depth) as u64);
        context.append_u64("tree depth", depth as u64);
        let [left, right] = ["left", "right"].map(|label| Aes128::new(context.challenge_block(label)));
        Tree { top: top(depth), depth, left, right }
    }

    pub(crate) fn leaves(&self) -> usize {
        self.top << self.depth
    }

    /// Nodes of the punctured key with t points: its length tells nothing of the points.
    pub(crate) fn key_len(&self, t: usize) -> usize {
        self.top + (1..=self.depth).map(|level| self.most(t, level)).sum::<usize>()
    }

    /// Labels at `level` at most: one a node of the level above that has a point below it.
    fn most(&self, t: usize, level: usize) -> usize {
        t.min(self.top << (level - 1))
    }

    /// All leaves of `key`.
    pub(crate) fn full(&self, key: Block) -> Buffer {
        let mut nodes = Buffer::zeros(self.leaves());
        Prg::from_seed(key).fill_blocks(&mut nodes[..self.top]);
        for level in 0..self.depth {
            expand_plain_level(&self.left, &self.right, &mut nodes, self.top << level);
        }
        nodes
    }

    /// The places of the labels of a level from 1 on, each point's own; 0 for a point that has none.
    fn places(&self, points: &[u32], level: usize) -> Vec<u32> {
        let half = (self.top << (level - 1)) as u32;
        let node = |point: u32| point % (2 * half);
        let mut places = Vec::with_capacity(points.len());
        for (j, &point) in points.iter().enumerate() {
            let path = node(point);
            let upper = less(path, half);
            let sibling = path.wrapping_add(half & upper).wrapping_sub(half & !upper);
            let mut bad = 0;
            for (k, &other) in points.iter().enumerate() {
                // A point below the sibling, or an earlier point with the same one.
                bad |= same(node(other), sibling);
                if k < j {
                    bad |= same(node(other), path);
                }
            }
            places.push((sibling + 1) & !bad);
        }
        places
    }

    /// Fig. 18: the key that `points` puncture, and the leaves at the points.
    ///
    /// The points are distinct leaves.
    pub(crate) fn puncture(
        &self,
        key: Block,
        points: &[u32],
    ) -> (Zeroizing<Vec<Block>>, Zeroizing<Vec<Block>>) {
        let mut roots = Zeroizing::new(vec![Block::ZERO; self.top]);
        Prg::from_seed(key).fill_blocks(&mut roots);
        // The nodes on the paths, level by level.
        let mut path: Zeroizing<Vec<Block>> = Zeroizing::new(vec![Block::ZERO; points.len()]);
        let mut out = Zeroizing::new(Vec::with_capacity(self.key_len(points.len())));
        for (i, root) in roots.iter().enumerate() {
            let mut hidden = 0;
            for (node, point) in path.iter_mut().zip(points) {
                let on = same(point % self.top as u32, i as u32);
                *node = choose(on, *root, *node);
                hidden |= on;
            }
            out.push(choose(hidden, Block::ZERO, *root));
        }
        for level in 1..=self.depth {
            let half = (self.top << (level - 1)) as u32;
            let mut labels: Labels = Zeroizing::new(Vec::with_capacity(points.len()));
            for ((place, node), point) in
                self.places(points, level).into_iter().zip(path.iter_mut()).zip(points)
            {
                let [left, right] = [&self.left, &self.right].map(|cipher| ccr_keyed(cipher, *node));
                let goes_left = less(point % (2 * half), half);
                *node = choose(goes_left, left, right);
                // Without a place the sibling lies on a path itself and must not be told.
                let value = choose(same(place, 0), Block::ZERO, choose(goes_left, right, left));
                labels.push(Label { place, value });
            }
            let labels = sorted(&labels);
            out.extend(labels[..self.most(points.len(), level)].iter().map(|label| label.value));
        }
        (out, path)
    }

    /// All leaves from a punctured key of `points`; those at the points become `values`.
    ///
    /// The lowest bit of all others is cleared. Panics when the key's length is not
    /// [`key_len`](Self::key_len).
    pub(crate) fn punctured(&self, key: &[Block], points: &[u32], values: &[Block]) -> Buffer {
        assert!(key.len() == self.key_len(points.len()) && points.len() == values.len(), "key shapes");
        let mut nodes = Buffer::zeros(self.leaves());
        let (roots, mut key) = key.split_at(self.top);
        nodes[..self.top].copy_from_slice(roots);
        for level in 1..=self.depth {
            let len = self.top << level;
            expand_plain_level(&self.left, &self.right, &mut nodes, len / 2);
            let places = self.places(points, level);
            let labels: Labels =
                Zeroizing::new(places.iter().map(|&place| Label { place, value: Block::ZERO }).collect());
            let most = self.most(points.len(), level);
            let mut labels = sorted(&labels);
            labels.truncate(most);
            for (label, value) in labels.iter_mut().zip(key) {
                label.value = *value;
            }
            key = &key[most..];
            if level == self.depth {
                let ends = points.iter().zip(values).map(|(&p, &value)| Label { place: p + 1, value });
                for node in nodes.iter_mut() {
                    *node = node.with_lsb(false);
                }
                for label in labels.iter_mut() {
                    label.value = label.value.with_lsb(false);
                }
                labels.extend(ends);
                labels = sorted(&labels);
            }
            place(&labels, &mut nodes[..len]);
        }
        nodes
    }
}

/// The labels by their places, those without one last: every pair is compared.
fn sorted(labels: &[Label]) -> Labels {
    // 0 counts as the largest place.
    let before = |a: &Label, b: &Label| {
        let [a, b] = [a, b].map(|label| label.place.wrapping_sub(1) as u64);
        (a.wrapping_sub(b) >> 63) as u32
    };
    let mut out: Labels = Zeroizing::new(vec![Label::default(); labels.len()]);
    for (j, label) in labels.iter().enumerate() {
        let mut rank = 0u32;
        for (k, other) in labels.iter().enumerate() {
            rank += before(other, label) | same(other.place, label.place) & (k < j) as u32;
        }
        for (i, slot) in out.iter_mut().enumerate() {
            let here = same(rank, i as u32);
            slot.place = slot.place & !here | label.place & here;
            slot.value = choose(here, label.value, slot.value);
        }
    }
    out
}

/// Nodes that the last steps of routing treat together, in cache.
const BLOCK: usize = 1 << 12;

/// Puts sorted labels into `nodes` at their places.
///
/// Before a step of distance d, labels stand only where they began plus multiples of 2·d. So as long as a
/// step spans whole blocks, all labels of a block are among its first c nodes, and no more of it is kept.
fn place(labels: &[Label], nodes: &mut [Block]) {
    let (n, c) = (nodes.len(), labels.len().min(nodes.len()));
    let block = BLOCK.max(c.next_power_of_two());
    let blocks = n.div_ceil(block);
    let mut heads: Labels = Zeroizing::new(vec![Label::default(); blocks * c]);
    heads[..c].copy_from_slice(&labels[..c]);
    for log in (0..blocks.next_power_of_two().ilog2()).rev() {
        let distance = 1usize << log;
        for base in (0..blocks - distance).step_by(2 * distance) {
            let (from, to) = heads[base * c..].split_at_mut(distance * c);
            let to = to[..c].iter_mut().zip((base + distance) * block..);
            for (from, (to, at)) in from.iter_mut().zip(to) {
                let moves = less(at as u32, from.place);
                let mask = Block::mask(moves != 0);
                *to = Label { place: from.place & moves, value: from.value & mask };
                *from = Label { place: from.place & !moves, value: from.value & !mask };
            }
        }
    }
    // A label may end up to c nodes behind its block.
    let shortest = c.next_power_of_two();
    let (mut slots, mut spare) = (Slots::new(block + c, shortest), Slots::new(block + c, shortest));
    let backend = Backend::active();
    for (k, head) in heads.chunks(c).enumerate() {
        let start = k * block;
        slots.clear();
        for (i, label) in head.iter().enumerate() {
            // Counted from this block's start; what is no label stays 0.
            slots.set(i, label.place.wrapping_sub(start as u32) & !same(label.place, 0), label.value);
        }
        for log in (0..block.ilog2()).rev() {
            // Labels stand where they began, below c, plus multiples of twice the distance.
            if 1 << log >= c {
                slots.step_apart(backend, 1 << log, c, block);
            } else {
                slots.step(backend, 1 << log, &mut spare);
                core::mem::swap(&mut slots, &mut spare);
            }
        }
        slots.merge(&mut nodes[start..]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn tree(leaves: usize) -> Tree {
        Tree::new(&Transcript::new("test"), leaves)
    }

    fn points(prg: &mut Prg, t: usize, leaves: usize) -> Vec<u32> {
        let mut points = BTreeSet::new();
        while points.len() < t {
            points.insert(prg.below(leaves as u64) as u32);
        }
        // In no order.
        let mut points: Vec<u32> = points.into_iter().collect();
        for i in (1..t).rev() {
            points.swap(i, prg.below(i as u64 + 1) as usize);
        }
        points
    }

    /// Figure 18 to the letter, on nodes (level, index).
    fn figure_18(tree: &Tree, points: &[u32]) -> BTreeSet<(usize, usize)> {
        let node = |leaf: u32, level: usize| (level, leaf as usize % (tree.top << level));
        let mut points = points.to_vec();
        points.sort();
        // Before the first step, the whole tree: the children of its root.
        let mut labels: BTreeSet<_> = (0..tree.top).map(|i| (0, i)).collect();
        for point in points {
            let root = (0..=tree.depth).map(|level| node(point, level)).find(|n| labels.contains(n)).unwrap();
            labels.remove(&root);
            for level in root.0 + 1..=tree.depth {
                let half = tree.top << (level - 1);
                labels.insert((level, (node(point, level).1 + half) % (2 * half)));
            }
        }
        labels
    }

    #[test]
    fn labels_are_those_of_the_figure_and_few() {
        let mut prg = Prg::from_seed(Block::new(1));
        for (t, leaves) in [(1, 64), (2, 64), (5, 100), (40, 300), (63, 64), (132, 5000), (300, 4096)] {
            let tree = tree(leaves);
            let points = points(&mut prg, t, leaves);
            let expected = figure_18(&tree, &points);
            let mut found = BTreeSet::new();
            for i in 0..tree.top as u32 {
                if !points.iter().any(|p| p % tree.top as u32 == i) {
                    found.insert((0, i as usize));
                }
            }
            for level in 1..=tree.depth {
                let places = tree.places(&points, level);
                let labels: Vec<_> = places.into_iter().filter(|&place| place != 0).collect();
                assert!(labels.len() <= tree.most(t, level));
                found.extend(labels.into_iter().map(|place| (level, place as usize - 1)));
            }
            assert_eq!(found, expected, "{t} of {leaves}");
            // The cover is exact: every leaf but the points lies below one label.
            let below = |leaf: usize| found.iter().filter(|(l, i)| leaf % (tree.top << l) == *i).count();
            for leaf in 0..tree.leaves() {
                assert_eq!(below(leaf), !points.contains(&(leaf as u32)) as usize);
            }
            // No two labels are siblings, so no smaller cover exists.
            for (level, i) in &found {
                let half = tree.top << (level.max(&1) - 1);
                assert!(*level == 0 || !found.contains(&(*level, (i + half) % (2 * half))));
            }
            let bound = t as f64 * ((tree.leaves() as f64 / t as f64).log2() + 2.0) + WIDEST as f64;
            assert!(tree.key_len(t) as f64 <= bound, "{} nodes", tree.key_len(t));
        }
    }

    #[test]
    fn punctured_keys_give_all_other_leaves() {
        let mut prg = Prg::from_seed(Block::new(2));
        for (t, leaves) in [(1, 64), (3, 200), (64, 64), (50, 1000), (176, 20_000), (400, 500)] {
            let tree = tree(leaves);
            let points = points(&mut prg, t, leaves);
            let whole = tree.full(Block::new(7));
            let (key, ends) = tree.puncture(Block::new(7), &points);
            let values: Vec<Block> = (0..t).map(|_| prg.block()).collect();
            let seen = tree.punctured(&key, &points, &values);
            for (leaf, (a, b)) in whole.iter().zip(seen.iter()).enumerate() {
                match points.iter().position(|&p| p as usize == leaf) {
                    Some(j) => assert!(*b == values[j] && *a == ends[j], "point {leaf}"),
                    None => assert!(*b == a.with_lsb(false), "leaf {leaf} of {leaves}"),
                }
            }
            assert!(key.iter().all(|node| !ends.contains(node)));
        }
    }
}
