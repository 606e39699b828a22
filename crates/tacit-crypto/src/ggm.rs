//! Level-by-level expansion of many half-trees (Guo–Yang–Wang–Zhang–Xie–Liu–Zhao, 2022/1431).
//!
//! A half-tree is a GGM tree whose levels all XOR to one correlation Δ: left = CCR(parent), right = parent ⊕
//! left, and the two nodes of level 1 are (r, r ⊕ Δ). One AES makes two children. The receiver of a punctured
//! tree knows all nodes of a level but the one on its secret path.
//!
//! Four trees stand side by side in a *line* of four blocks; a *period* is one line or eight. Node `i` of a
//! level is the `period` blocks at `i * period`; its left child stays at `i`, its right child goes to `i + n`
//! where `n` is the number of nodes: the path's bit of level `m` is bit `m - 1` of the leaf's index.

pub use crate::simd::ggm::{Children, Fix};
use crate::simd::{self, Backend, ggm::view};
use crate::{Block, aes::Aes128};

/// Trees side by side in one line.
pub const LANES: usize = simd::ggm::LANES;

/// Expands a level of `n` nodes in place: `nodes[..n * period]` to `nodes[..2 * n * period]`.
///
/// `sums[p]` becomes the XOR of the left children of tree `p`. A node on a fixed path counts as zero, so that
/// its left child is CCR(0). `cipher` is the permutation of the CCR hash. Panics when a slice is too short.
pub fn expand_level(
    cipher: &Aes128,
    nodes: &mut [Block],
    n: usize,
    period: usize,
    fix: Option<&Fix<'_>>,
    sums: &mut [Block],
) {
    expand_level_on(Backend::active(), cipher, nodes, n, period, fix, sums);
}

/// [`expand_level`] on a backend of the caller's choice.
#[doc(hidden)]
pub fn expand_level_on(
    backend: Backend,
    cipher: &Aes128,
    nodes: &mut [Block],
    n: usize,
    period: usize,
    fix: Option<&Fix<'_>>,
    sums: &mut [Block],
) {
    assert!(
        period > 0 && sums.len() == period && nodes.len() >= 2 * n * period,
        "half-tree level out of bounds"
    );
    let view = fix.map(|f| view(f, period));
    simd::ggm::level(backend, cipher.round_keys(), nodes, n, period, view.as_ref(), sums);
}

/// Expands a last level, `n` nodes of each of four trees: those of `from`, every `stride`-th line of it, or
/// the first `n` lines of `nodes`.
///
/// With `fix`, its siblings take the values given there, and nodes on a path count as zero. Panics when a
/// slice is too short.
pub fn expand_last(
    cipher: &Aes128,
    from: Option<(&[Block], usize)>,
    nodes: &mut [Block],
    n: usize,
    fix: Option<&Fix<'_>>,
    children: Children<'_>,
) {
    expand_last_on(Backend::active(), cipher, from, nodes, n, fix, children);
}

/// [`expand_last`] on a backend of the caller's choice.
#[doc(hidden)]
pub fn expand_last_on(
    backend: Backend,
    cipher: &Aes128,
    from: Option<(&[Block], usize)>,
    nodes: &mut [Block],
    n: usize,
    fix: Option<&Fix<'_>>,
    children: Children<'_>,
) {
    let given = !matches!(children, Children::Leaves(None));
    assert!(fix.is_none() || given, "a path's leaves take values");
    let view = fix.map(|f| view(f, LANES));
    simd::ggm::lines(backend, cipher.round_keys(), from, nodes, n, view.as_ref(), children);
}

/// Expands the nodes of 32 trees, the first 32 blocks, by as many levels as there are `fixes`: node i of a
/// tree is the block at 32·i.
///
/// Of a fix, the siblings take the values given there; what the subtrees of a path's nodes become has no
/// meaning. Panics when `nodes` is too short.
pub fn expand_subtrees(cipher: &Aes128, nodes: &mut [Block], fixes: &[Option<Fix<'_>>]) {
    expand_subtrees_on(Backend::active(), cipher, nodes, fixes);
}

/// [`expand_subtrees`] on a backend of the caller's choice.
#[doc(hidden)]
pub fn expand_subtrees_on(backend: Backend, cipher: &Aes128, nodes: &mut [Block], fixes: &[Option<Fix<'_>>]) {
    simd::ggm::subtrees(backend, cipher.round_keys(), nodes, fixes);
}

/// `out[p]` = Σ (n + i)·node `i` of tree `p` over a level of `n` nodes, a power of two, in GF(2^128), where
/// the number n + i stands for the polynomial of its bits; `period` is a multiple of four. Panics when a
/// slice is too short.
///
/// Two levels whose sums over all nodes are equal and that differ in two nodes at most have equal moments
/// only if they are equal: the check of single-point COT rests on that.
pub fn moments(nodes: &[Block], n: usize, period: usize, out: &mut [Block]) {
    moments_on(Backend::active(), nodes, n, period, out);
}

/// [`moments`] on a backend of the caller's choice.
#[doc(hidden)]
pub fn moments_on(backend: Backend, nodes: &[Block], n: usize, period: usize, out: &mut [Block]) {
    assert!(
        n.is_power_of_two()
            && period.is_multiple_of(LANES)
            && out.len() == period
            && nodes.len() >= n * period,
        "half-tree level out of bounds"
    );
    simd::ggm::moments(backend, nodes, n, period, out);
}

/// Makes leaves ready as correlated OTs: bit 0 cleared everywhere, and on each fixed path the value
/// `punctured[p]` with bit 0 set.
pub fn finish_leaves(
    nodes: &mut [Block],
    n: usize,
    period: usize,
    fix: Option<&Fix<'_>>,
    punctured: &[Block],
) {
    finish_leaves_on(Backend::active(), nodes, n, period, fix, punctured);
}

/// [`finish_leaves`] on a backend of the caller's choice.
#[doc(hidden)]
pub fn finish_leaves_on(
    backend: Backend,
    nodes: &mut [Block],
    n: usize,
    period: usize,
    fix: Option<&Fix<'_>>,
    punctured: &[Block],
) {
    assert!(period > 0 && nodes.len() >= n * period, "half-tree leaves out of bounds");
    assert!(fix.is_none() || punctured.len() == period, "one punctured value a tree");
    let view = fix.map(|f| view(f, period));
    simd::ggm::finish(backend, nodes, n, period, view.as_ref(), punctured);
}

/// CCR under a chosen public key, the hash of the trees.
pub fn ccr_keyed(cipher: &Aes128, x: Block) -> Block {
    let s = crate::hash::sigma(x);
    cipher.encrypt(s) ^ s
}

/// Expands a level of a plain GGM tree in place: the left child of node `i`, CCR under `left`, stays at `i`,
/// the right one, CCR under `right`, goes to `i + n`; nodes of several trees stand side by side, so `len`
/// counts blocks.
///
/// `nodes[..len]` becomes `nodes[..2 * len]`. Panics when the slice is too short.
pub fn expand_plain_level(left: &Aes128, right: &Aes128, nodes: &mut [Block], len: usize) {
    let (parents, rights) = nodes[..2 * len].split_at_mut(len);
    let backend = Backend::active();
    simd::aes::ccr(backend, right.round_keys(), parents, rights);
    simd::aes::ccr_in_place(backend, left.round_keys(), parents);
}

/// CCR of each block of `input` under a chosen public key, into `out`. Panics when the lengths differ.
pub fn ccr_keyed_into(cipher: &Aes128, input: &[Block], out: &mut [Block]) {
    simd::aes::ccr(Backend::active(), cipher.round_keys(), input, out);
}
