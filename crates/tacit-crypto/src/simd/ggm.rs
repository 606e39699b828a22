//! One level of many half-trees (correlated GGM): left = CCR(parent), right = parent ⊕ left.

use super::Backend;
#[cfg(target_arch = "x86_64")]
use super::Level;
use super::pages::Buffer;
use crate::Block;

/// Lanes of one node: the blocks of four trees that stand side by side.
pub(crate) const LANES: usize = 4;
const CHUNK: usize = 64;

type Line = [Block; LANES];

/// The two nodes of each tree whose stored value must be replaced before use; see [`Fix`].
pub(crate) struct FixView<'a> {
    pub path: &'a [u64],
    pub sibling: &'a [Block],
    pub top_bit: u64,
}

/// What the holder of punctured trees replaces when it reads a level: nodes on the path count as zero, and
/// their siblings, whose values came from the peer, take those. Compared against every index, so that no
/// address depends on the path.
pub struct Fix<'a> {
    /// Each tree's index of the punctured node at this level; `period` of them.
    pub path: &'a [u64],
    /// Each tree's value of the punctured node's sibling.
    pub sibling: &'a [Block],
    /// The highest bit of an index at this level: n / 2.
    pub top_bit: u64,
}

/// What becomes of the children that `expand_last` makes.
pub enum Children<'a> {
    /// Leaves ready as correlated OTs, see `finish_leaves`, which take the place of their parents, the right
    /// ones after the left ones: with these values of the left and of the right child of each path's node,
    /// where there are paths, whose lowest bits stay.
    Leaves(Option<&'a [[Block; LANES]; 2]>),
    /// Nothing is written but each tree's XOR of its left children, and with `moments` also their `moments`,
    /// where there is a power of two of them.
    Summed {
        /// Each tree's XOR of the left children.
        sums: &'a mut [Block; LANES],
        /// Each tree's moment of the left children.
        moments: Option<&'a mut [Block; LANES]>,
    },
}

pub(crate) fn view<'a>(fix: &Fix<'a>, period: usize) -> FixView<'a> {
    assert!(fix.path.len() == period && fix.sibling.len() == period, "one fix a tree");
    FixView { path: fix.path, sibling: fix.sibling, top_bit: fix.top_bit }
}

/// Trees whose nodes stand side by side in groups.
const PERIOD: usize = 32;

/// Expands `n` lines on `backend`, those of `from` or the first ones of `nodes`.
pub(crate) fn lines(
    backend: Backend,
    cipher: &[Block; 11],
    from: Option<(&[Block], usize)>,
    nodes: &mut [Block],
    n: usize,
    fix: Option<&FixView<'_>>,
    children: Children<'_>,
) {
    let weighed = matches!(children, Children::Summed { moments: Some(_), .. });
    let written = match children {
        Children::Leaves(_) => n.checked_mul(2),
        Children::Summed { .. } => Some(if from.is_some() { 0 } else { n }),
    };
    let fits =
        |lines: Option<usize>, nodes: &[Block]| lines.is_some_and(|lines| lines <= nodes.len() / LANES);
    let last = |stride: usize| n.checked_sub(1)?.checked_mul(stride)?.checked_add(1);
    assert!(
        fits(written, nodes) && from.is_none_or(|(lines, stride)| stride > 0 && fits(last(stride), lines)),
        "half-tree level out of bounds"
    );
    assert!(n.is_power_of_two() || n > 0 && !weighed, "a level is weighed as a whole");
    #[cfg(target_arch = "x86_64")]
    if backend.level() == Level::Avx512 && n.is_multiple_of(8) {
        return x86::lines(cipher, from, nodes, n, fix, children);
    }
    lines_portable(backend, cipher, from, nodes, n, fix, children);
}

/// Portable twin.
fn lines_portable(
    backend: Backend,
    cipher: &[Block; 11],
    from: Option<(&[Block], usize)>,
    nodes: &mut [Block],
    n: usize,
    fix: Option<&FixView<'_>>,
    children: Children<'_>,
) {
    let mut parents = Buffer::zeros(n * LANES);
    let (lines, stride) = from.unwrap_or((nodes, 1));
    for (parent, line) in parents.chunks_exact_mut(LANES).zip(lines.chunks(stride * LANES)) {
        parent.copy_from_slice(&line[..LANES]);
    }
    if let Some(fix) = fix {
        replace(&mut parents, n, LANES, fix, None);
    }
    let mut lefts = Buffer::zeros(n * LANES);
    super::aes::ccr(backend, cipher, &parents, &mut lefts);
    match children {
        Children::Summed { sums, moments } => {
            *sums = [Block::ZERO; LANES];
            for line in lefts.as_chunks::<LANES>().0 {
                sums.iter_mut().zip(line).for_each(|(sum, left)| *sum ^= *left);
            }
            if let Some(moments) = moments {
                moments_portable(&lefts, n, LANES, moments);
            }
        }
        Children::Leaves(values) => {
            write(&parents, &lefts, nodes);
            for (i, leaf) in nodes[..2 * n * LANES].iter_mut().enumerate() {
                *leaf = leaf.with_lsb(false);
                if let (Some(fix), Some(values)) = (fix, values) {
                    let on_path = equal(fix.path[i % LANES], (i / LANES % n) as u64);
                    *leaf = *leaf & !on_path | values[i / LANES / n][i % LANES] & on_path;
                }
            }
        }
    }
}

/// The children of `parents`, whose left ones are `lefts`.
fn write(parents: &[Block], lefts: &[Block], nodes: &mut [Block]) {
    let (to_left, to_right) = nodes[..2 * lefts.len()].split_at_mut(lefts.len());
    to_left.copy_from_slice(lefts);
    to_right.iter_mut().zip(parents).zip(lefts).for_each(|((right, p), l)| *right = *p ^ *l);
}

fn replace_siblings(nodes: &mut [Block], period: usize, fix: &FixView<'_>) {
    for (i, node) in nodes.chunks_mut(period).enumerate() {
        for (p, value) in node.iter_mut().enumerate() {
            let sibling = equal(fix.path[p] ^ fix.top_bit, i as u64);
            *value = *value & !sibling | fix.sibling[p] & sibling;
        }
    }
}

/// Expands the nodes of 32 trees by several levels on `backend`.
pub(crate) fn subtrees(
    backend: Backend,
    cipher: &[Block; 11],
    nodes: &mut [Block],
    fixes: &[Option<Fix<'_>>],
) {
    assert!(nodes.len() >= PERIOD << fixes.len(), "half-tree level out of bounds");
    for (level, fix) in fixes.iter().enumerate() {
        let (n, view) = (1 << level, fix.as_ref().map(|fix| view(fix, PERIOD)));
        #[cfg(target_arch = "x86_64")]
        if backend.level() == Level::Avx512 {
            x86::subtrees(cipher, nodes, n, view.as_ref());
            continue;
        }
        let mut parents = Buffer::zeros(n * PERIOD);
        parents.copy_from_slice(&nodes[..n * PERIOD]);
        if let Some(view) = &view {
            replace_siblings(&mut parents, PERIOD, view);
        }
        let mut lefts = Buffer::zeros(n * PERIOD);
        super::aes::ccr(backend, cipher, &parents, &mut lefts);
        write(&parents, &lefts, nodes);
    }
}

/// Expands a level on `backend`.
pub(crate) fn level(
    backend: Backend,
    cipher: &[Block; 11],
    nodes: &mut [Block],
    n: usize,
    period: usize,
    fix: Option<&FixView<'_>>,
    sums: &mut [Block],
) {
    #[cfg(target_arch = "x86_64")]
    if backend.level() == Level::Avx512 && (period == 32 || period == 4 && n.is_multiple_of(8)) {
        return x86::level(cipher, nodes, n, period, fix, sums);
    }
    level_portable(backend, cipher, nodes, n, period, fix, sums);
}

/// Touches leaves up on `backend`.
pub(crate) fn finish(
    backend: Backend,
    nodes: &mut [Block],
    n: usize,
    period: usize,
    fix: Option<&FixView<'_>>,
    punctured: &[Block],
) {
    #[cfg(target_arch = "x86_64")]
    if backend.level() == Level::Avx512 && period == LANES {
        return x86::finish(nodes, n, fix, punctured);
    }
    let _ = backend;
    finish_portable(nodes, n, period, fix, punctured);
}

/// Weighs a level by the nodes' numbers on `backend`; `n` is a power of two.
pub(crate) fn moments(backend: Backend, nodes: &[Block], n: usize, period: usize, out: &mut [Block]) {
    #[cfg(target_arch = "x86_64")]
    if backend.level() == Level::Avx512 && (period == 32 || period == LANES) {
        return x86::moments(nodes, n, period, out);
    }
    let _ = backend;
    moments_portable(nodes, n, period, out);
}

/// Portable twin. A counter in the nodes' order: where bit b of the number of nodes so far carries, the right
/// half of 2^(b+1) nodes is complete, whose sum is for bit b.
fn moments_portable(nodes: &[Block], n: usize, period: usize, out: &mut [Block]) {
    let levels = n.ilog2() as usize;
    let add = |a: &mut Line, b: &Line| a.iter_mut().zip(b).for_each(|(a, b)| *a ^= *b);
    for (g, out) in out.as_chunks_mut::<LANES>().0.iter_mut().enumerate() {
        let mut set = [[Block::ZERO; LANES]; usize::BITS as usize];
        let mut halves = set;
        for i in 0..n {
            let mut sum = nodes.as_chunks::<LANES>().0[i * period / LANES + g];
            let carries = i.trailing_ones() as usize;
            for (set, half) in set.iter_mut().zip(&halves).take(carries) {
                add(set, &sum);
                add(&mut sum, half);
            }
            halves[carries] = sum;
        }
        *out = halves[levels];
        for set in set[..levels].iter().rev() {
            *out = out.map(double);
            add(out, set);
        }
    }
}

/// Times x.
fn double(a: Block) -> Block {
    let a = a.to_u128();
    Block::new(a << 1 ^ (0x87 & (a >> 127).wrapping_neg()))
}

/// Portable twin; the hash itself runs on `backend`. `nodes[..n * period]` holds the level,
/// `nodes[..2 * n * period]` gets the next one.
fn level_portable(
    backend: Backend,
    cipher: &[Block; 11],
    nodes: &mut [Block],
    n: usize,
    period: usize,
    fix: Option<&FixView<'_>>,
    sums: &mut [Block],
) {
    sums.fill(Block::ZERO);
    if let Some(fix) = fix {
        replace(nodes, n, period, fix, None);
    }
    let (left, right) = nodes[..2 * n * period].split_at_mut(n * period);
    let mut hashed = [Block::ZERO; CHUNK];
    for (c, (parents, rights)) in left.chunks_mut(CHUNK).zip(right.chunks_mut(CHUNK)).enumerate() {
        let hashed = &mut hashed[..parents.len()];
        super::aes::ccr(backend, cipher, parents, hashed);
        for (j, ((p, r), l)) in parents.iter_mut().zip(rights).zip(hashed.iter()).enumerate() {
            sums[(c * CHUNK + j) % period] ^= *l;
            *r = *p ^ *l;
            *p = *l;
        }
    }
}

/// Portable twin of the last touch: bit 0 of every leaf is cleared, and set on the punctured ones.
fn finish_portable(
    nodes: &mut [Block],
    n: usize,
    period: usize,
    fix: Option<&FixView<'_>>,
    punctured: &[Block],
) {
    if let Some(fix) = fix {
        replace(nodes, n, period, fix, Some(punctured));
    }
    let on_path = |i: usize, p: usize| match fix {
        Some(fix) => equal(fix.path[p], i as u64) & Block::ONE,
        None => Block::ZERO,
    };
    for (i, node) in nodes[..n * period].chunks_mut(period).enumerate() {
        for (p, leaf) in node.iter_mut().enumerate() {
            *leaf = leaf.with_lsb(false) | on_path(i, p);
        }
    }
}

/// All ones where `a == b`, without a branch.
fn equal(a: u64, b: u64) -> Block {
    let x = a ^ b;
    Block::mask((x | x.wrapping_neg()) >> 63 == 0)
}

fn replace(nodes: &mut [Block], n: usize, period: usize, fix: &FixView<'_>, on_path: Option<&[Block]>) {
    for (i, node) in nodes[..n * period].chunks_mut(period).enumerate() {
        for (p, value) in node.iter_mut().enumerate() {
            let path = equal(fix.path[p], i as u64);
            let sibling = equal(fix.path[p] ^ fix.top_bit, i as u64);
            let new = on_path.map_or(Block::ZERO, |v| v[p]);
            *value = (*value & !(path | sibling)) | (new & path) | (fix.sibling[p] & sibling);
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::*;
    use core::arch::x86_64::*;
    use core::mem::MaybeUninit;

    const WIDE: usize = 8;

    /// Safe entry of the AVX-512 kernel. Serves periods of 4 blocks (with `n` a multiple of 8) and of 32
    /// blocks.
    pub(crate) fn level(
        cipher: &[Block; 11],
        nodes: &mut [Block],
        n: usize,
        period: usize,
        fix: Option<&FixView<'_>>,
        sums: &mut [Block],
    ) {
        assert!(nodes.len() >= 2 * n * period && sums.len() == period);
        check_fix(fix, period);
        // SAFETY: the dispatcher calls this only where the AVX-512 level (F, BW, VL, DQ, VAES) was detected;
        // the asserts above bound every pointer that the kernel forms: lines below 2 * n * period / 4 of
        // `nodes`, `period` entries elsewhere.
        unsafe {
            match period {
                4 => {
                    assert!(n.is_multiple_of(WIDE));
                    level_g::<1>(cipher, nodes, n, fix, sums)
                }
                32 => level_g::<8>(cipher, nodes, n, fix, sums),
                _ => panic!("no such period"),
            }
        }
    }

    /// Safe entry of the AVX-512 last touch.
    pub(crate) fn finish(nodes: &mut [Block], n: usize, fix: Option<&FixView<'_>>, punctured: &[Block]) {
        assert!(nodes.len() >= n * LANES && (fix.is_none() || punctured.len() == LANES));
        check_fix(fix, LANES);
        // SAFETY: as above; every pointer stays below `n * 4` blocks of `nodes`.
        unsafe { finish_lines(nodes, n, fix, punctured) }
    }

    fn check_fix(fix: Option<&FixView<'_>>, period: usize) {
        if let Some(fix) = fix {
            assert!(fix.path.len() == period && fix.sibling.len() == period);
        }
    }

    #[inline(always)]
    unsafe fn load(p: *const Block) -> __m512i {
        // SAFETY: the caller passes a pointer to four readable blocks; the load is unaligned.
        unsafe { _mm512_loadu_si512(p.cast()) }
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq")]
    #[inline]
    unsafe fn widen_path(path: *const u64) -> __m512i {
        // SAFETY: the caller passes a pointer to four readable numbers.
        let four = unsafe { _mm256_loadu_si256(path.cast()) };
        _mm512_permutexvar_epi64(_mm512_set_epi64(3, 3, 2, 2, 1, 1, 0, 0), _mm512_castsi256_si512(four))
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,vaes")]
    unsafe fn level_g<const G: usize>(
        cipher: &[Block; 11],
        nodes: &mut [Block],
        n: usize,
        fix: Option<&FixView<'_>>,
        sums: &mut [Block],
    ) {
        let base = nodes.as_mut_ptr();
        let half = n * G * LANES;
        let keys = four_times(cipher);
        let mut acc = [_mm512_setzero_si512(); G];
        let mut paths = [_mm512_setzero_si512(); G];
        let mut siblings = [_mm512_setzero_si512(); G];
        let mut top = _mm512_setzero_si512();
        if let Some(fix) = fix {
            top = _mm512_set1_epi64(fix.top_bit as i64);
            for g in 0..G {
                // SAFETY: `path` and `sibling` have 4 * G entries (checked by the safe entry).
                unsafe {
                    paths[g] = widen_path(fix.path.as_ptr().add(LANES * g));
                    siblings[g] = load(fix.sibling.as_ptr().add(LANES * g));
                }
            }
        }
        for chunk in 0..n * G / WIDE {
            // SAFETY: lines chunk * 8 … + 7 lie below n * G, their right children below 2 * n * G.
            let line = unsafe { base.add(chunk * WIDE * LANES) };
            let mut parent = [_mm512_setzero_si512(); WIDE];
            let mut state = [_mm512_setzero_si512(); WIDE];
            let mut whitened = [_mm512_setzero_si512(); WIDE];
            for j in 0..WIDE {
                // SAFETY: as above.
                let mut p = unsafe { load(line.add(LANES * j)) };
                if fix.is_some() {
                    let (g, index) = if G == 1 { (0, chunk * WIDE + j) } else { (j, chunk) };
                    let index = _mm512_set1_epi64(index as i64);
                    let on_path = _mm512_cmpeq_epi64_mask(paths[g], index);
                    let on_sibling = _mm512_cmpeq_epi64_mask(_mm512_xor_si512(paths[g], top), index);
                    p = _mm512_maskz_mov_epi64(!on_path, p);
                    p = _mm512_mask_mov_epi64(p, on_sibling, siblings[g]);
                }
                parent[j] = p;
                whitened[j] = sigma(p);
                state[j] = _mm512_xor_si512(whitened[j], keys[0]);
            }
            rounds(&keys, &mut state);
            for j in 0..WIDE {
                let left = _mm512_xor_si512(_mm512_aesenclast_epi128(state[j], keys[10]), whitened[j]);
                let g = if G == 1 { 0 } else { j };
                acc[g] = _mm512_xor_si512(acc[g], left);
                // SAFETY: as above.
                unsafe {
                    _mm512_storeu_si512(line.add(LANES * j).cast(), left);
                    _mm512_storeu_si512(line.add(LANES * j + half).cast(), _mm512_xor_si512(parent[j], left));
                }
            }
        }
        for (g, a) in acc.iter().enumerate() {
            // SAFETY: `sums` has 4 * G entries.
            unsafe { _mm512_storeu_si512(sums.as_mut_ptr().add(LANES * g).cast(), *a) };
        }
    }

    const LEAVES: u8 = 0;
    const SUMMED: u8 = 1;
    const WEIGHED: u8 = 2;

    /// Entry of the AVX-512 kernel for lines, of which there are a multiple of eight. Safe for what
    /// [`super::lines`] has checked.
    pub(super) fn lines(
        cipher: &[Block; 11],
        from: Option<(&[Block], usize)>,
        nodes: &mut [Block],
        n: usize,
        fix: Option<&FixView<'_>>,
        children: Children<'_>,
    ) {
        check_fix(fix, LANES);
        let mut unused = [Block::ZERO; LANES];
        let (to, values, sums, moments) = match children {
            Children::Leaves(values) => (LEAVES, values, &mut unused, None),
            Children::Summed { sums, moments: None } => (SUMMED, None, sums, None),
            Children::Summed { sums, moments } => (WEIGHED, None, sums, moments),
        };
        let work = Work { cipher, from, n, fix, values, sums, moments };
        // SAFETY: the dispatcher calls this only where the AVX-512 level was detected, and has bounded every
        // line read and written.
        unsafe {
            match (fix.is_some(), to) {
                (false, LEAVES) => lines_to::<false, LEAVES>(work, nodes),
                (true, LEAVES) => lines_to::<true, LEAVES>(work, nodes),
                (false, SUMMED) => lines_to::<false, SUMMED>(work, nodes),
                (true, SUMMED) => lines_to::<true, SUMMED>(work, nodes),
                (false, _) => lines_to::<false, WEIGHED>(work, nodes),
                (true, _) => lines_to::<true, WEIGHED>(work, nodes),
            }
        }
    }

    struct Work<'a> {
        cipher: &'a [Block; 11],
        from: Option<(&'a [Block], usize)>,
        n: usize,
        fix: Option<&'a FixView<'a>>,
        values: Option<&'a [Line; 2]>,
        sums: &'a mut Line,
        moments: Option<&'a mut Line>,
    }

    /// The round keys, each four times.
    #[target_feature(enable = "avx512f")]
    #[inline]
    fn four_times(cipher: &[Block; 11]) -> [__m512i; 11] {
        core::array::from_fn(|i| _mm512_broadcast_i32x4(block128(cipher[i])))
    }

    /// σ(p), which is hashed.
    #[target_feature(enable = "avx512f")]
    #[inline]
    fn sigma(p: __m512i) -> __m512i {
        let high = _mm512_set_epi64(-1, 0, -1, 0, -1, 0, -1, 0);
        _mm512_xor_si512(_mm512_shuffle_epi32(p, 0x4E), _mm512_and_si512(p, high))
    }

    /// The rounds but the first and the last.
    #[target_feature(enable = "avx512f,vaes")]
    #[inline]
    fn rounds(keys: &[__m512i; 11], state: &mut [__m512i; WIDE]) {
        for key in &keys[1..10] {
            for s in &mut *state {
                *s = _mm512_aesenc_epi128(*s, *key);
            }
        }
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,vaes")]
    unsafe fn lines_to<const FIXED: bool, const TO: u8>(work: Work<'_>, nodes: &mut [Block]) {
        let Work { cipher, from, n, fix, values, sums, moments } = work;
        let to = nodes.as_mut_ptr();
        let (from, stride) = from.map_or((to.cast_const(), 1), |(lines, stride)| (lines.as_ptr(), stride));
        let (one, zero) = (_mm512_set_epi64(0, 1, 0, 1, 0, 1, 0, 1), _mm512_setzero_si512());
        let keys = four_times(cipher);
        let (mut path, mut sibling_path, mut sibling) = (zero, zero, zero);
        let (mut left_value, mut right_value) = (zero, zero);
        if let Some(fix) = fix {
            // SAFETY: four entries each (checked by the safe entry).
            unsafe {
                path = widen_path(fix.path.as_ptr());
                sibling = load(fix.sibling.as_ptr());
                if let Some([left, right]) = values {
                    (left_value, right_value) = (load(left.as_ptr()), load(right.as_ptr()));
                }
            }
            sibling_path = _mm512_xor_si512(path, _mm512_set1_epi64(fix.top_bit as i64));
        }
        let mut weigher = Weigher::<WIDE>::new(if TO == WEIGHED { n } else { WIDE });
        let mut sum = zero;
        let mut index = zero;
        for first in (0..n).step_by(WIDE) {
            let (mut parent, mut state, mut whitened) = ([zero; WIDE], [zero; WIDE], [zero; WIDE]);
            let mut on_path = [0; WIDE];
            for j in 0..WIDE {
                // SAFETY: line first + j is below n.
                let mut p = unsafe { load(from.add((first + j) * stride * LANES)) };
                if FIXED {
                    on_path[j] = _mm512_cmpeq_epi64_mask(path, index);
                    if TO != LEAVES {
                        p = _mm512_mask_mov_epi64(p, on_path[j], zero);
                    }
                    p = _mm512_mask_mov_epi64(p, _mm512_cmpeq_epi64_mask(sibling_path, index), sibling);
                    index = _mm512_add_epi64(index, _mm512_set1_epi64(1));
                }
                parent[j] = p;
                whitened[j] = sigma(p);
                state[j] = _mm512_xor_si512(whitened[j], keys[0]);
            }
            rounds(&keys, &mut state);
            let mut lefts = [zero; WIDE];
            for j in 0..WIDE {
                let hashed = _mm512_aesenclast_epi128(state[j], keys[10]);
                if TO != LEAVES {
                    lefts[j] = _mm512_xor_si512(hashed, whitened[j]);
                    continue;
                }
                // The XOR of the first two, bit 0 cleared.
                let mut left = _mm512_ternarylogic_epi64::<0x14>(hashed, whitened[j], one);
                let mut right = _mm512_ternarylogic_epi64::<0x14>(left, parent[j], one);
                if FIXED {
                    left = _mm512_mask_mov_epi64(left, on_path[j], left_value);
                    right = _mm512_mask_mov_epi64(right, on_path[j], right_value);
                }
                // SAFETY: lines below 2 * n.
                unsafe {
                    _mm512_storeu_si512(to.add((first + j) * LANES).cast(), left);
                    _mm512_storeu_si512(to.add((first + j + n) * LANES).cast(), right);
                }
            }
            if TO == WEIGHED {
                // SAFETY: there are n / 8 chunks, which come in order.
                unsafe { weigher.add(first / WIDE, lefts) };
            } else if TO == SUMMED {
                for [a, b] in lefts.as_chunks::<2>().0 {
                    sum = _mm512_ternarylogic_epi64::<0x96>(sum, *a, *b);
                }
            }
        }
        // SAFETY: all chunks have come; four blocks each.
        unsafe {
            if let Some(moments) = moments {
                let (moment, total) = weigher.finish();
                sum = total;
                _mm512_storeu_si512(moments.as_mut_ptr().cast(), moment);
            }
            if TO != LEAVES {
                _mm512_storeu_si512(sums.as_mut_ptr().cast(), sum);
            }
        }
    }

    /// Safe entry of the AVX-512 kernel for a level of 32 trees without sums.
    pub(crate) fn subtrees(cipher: &[Block; 11], nodes: &mut [Block], n: usize, fix: Option<&FixView<'_>>) {
        assert!(nodes.len() >= 2 * n * PERIOD);
        check_fix(fix, PERIOD);
        // SAFETY: the caller has the AVX-512 level detected; the asserts bound every line and every entry of
        // the fix.
        unsafe {
            match fix {
                Some(fix) => subtrees_of::<true>(cipher, nodes, n, fix),
                None => {
                    subtrees_of::<false>(cipher, nodes, n, &FixView { path: &[], sibling: &[], top_bit: 0 })
                }
            }
        }
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,vaes")]
    unsafe fn subtrees_of<const FIXED: bool>(
        cipher: &[Block; 11],
        nodes: &mut [Block],
        n: usize,
        fix: &FixView<'_>,
    ) {
        let base = nodes.as_mut_ptr();
        let keys = four_times(cipher);
        let zero = _mm512_setzero_si512();
        let mut sibling_paths = [zero; WIDE];
        if FIXED {
            for (g, path) in sibling_paths.iter_mut().enumerate() {
                let top = _mm512_set1_epi64(fix.top_bit as i64);
                // SAFETY: `path` has 32 entries.
                *path = _mm512_xor_si512(unsafe { widen_path(fix.path.as_ptr().add(LANES * g)) }, top);
            }
        }
        for i in 0..n {
            let (mut parent, mut state, mut whitened) = ([zero; WIDE], [zero; WIDE], [zero; WIDE]);
            let index = _mm512_set1_epi64(i as i64);
            for g in 0..WIDE {
                // SAFETY: node i is below n, and `sibling` has 32 blocks.
                unsafe {
                    parent[g] = load(base.add(i * PERIOD + g * LANES));
                    if FIXED {
                        let on_sibling = _mm512_cmpeq_epi64_mask(sibling_paths[g], index);
                        let sibling = load(fix.sibling.as_ptr().add(g * LANES));
                        parent[g] = _mm512_mask_mov_epi64(parent[g], on_sibling, sibling);
                    }
                }
                whitened[g] = sigma(parent[g]);
                state[g] = _mm512_xor_si512(whitened[g], keys[0]);
            }
            rounds(&keys, &mut state);
            for g in 0..WIDE {
                let left = _mm512_xor_si512(_mm512_aesenclast_epi128(state[g], keys[10]), whitened[g]);
                // SAFETY: nodes below 2 * n.
                unsafe {
                    _mm512_storeu_si512(base.add(i * PERIOD + g * LANES).cast(), left);
                    let right = _mm512_xor_si512(parent[g], left);
                    _mm512_storeu_si512(base.add((i + n) * PERIOD + g * LANES).cast(), right);
                }
            }
        }
    }

    /// Σ (n + i)·line i, `N` lines at a time. A counter in the lines' order: where bit b of the number of
    /// chunks so far carries, a right half of 2^(b+1) chunks is complete, whose sum is for that bit.
    struct Weigher<const N: usize> {
        inner: [__m512i; 4],
        set: [MaybeUninit<__m512i>; 32],
        halves: [MaybeUninit<__m512i>; 32],
        high: usize,
    }

    impl<const N: usize> Weigher<N> {
        const LOW: usize = N.ilog2() as usize;

        /// For `n` lines, a power of two and at least N.
        #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq")]
        #[inline]
        fn new(n: usize) -> Self {
            let zero = _mm512_setzero_si512();
            let high = n.ilog2() as usize - Self::LOW;
            let mut set = [MaybeUninit::uninit(); 32];
            set[..high].fill(MaybeUninit::new(zero));
            Weigher { inner: [zero; 4], set, halves: [MaybeUninit::uninit(); 32], high }
        }

        /// Takes chunk `c`; they come in order.
        #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq")]
        #[inline]
        unsafe fn add(&mut self, c: usize, mut x: [__m512i; N]) {
            for b in (0..Self::LOW).rev() {
                let (left, right) = x.split_at_mut(1 << b);
                for (left, right) in left.iter_mut().zip(right) {
                    self.inner[b] = _mm512_xor_si512(self.inner[b], *right);
                    *left = _mm512_xor_si512(*left, *right);
                }
            }
            let mut sum = x[0];
            let carries = c.trailing_ones() as usize;
            for b in 0..carries {
                // SAFETY: bit b of c is set, so b < high, and halves[b] was written where it became so.
                unsafe {
                    self.set[b].write(_mm512_xor_si512(self.set[b].assume_init(), sum));
                    sum = _mm512_xor_si512(sum, self.halves[b].assume_init());
                }
            }
            self.halves[carries].write(sum);
        }

        /// The moment and the sum of all lines.
        #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq")]
        #[inline]
        unsafe fn finish(&self) -> (__m512i, __m512i) {
            // SAFETY: the last chunk's number is all ones, `high` of them, and as many sets were filled in
            // the beginning.
            unsafe {
                let total = self.halves[self.high].assume_init();
                let mut sum = total;
                for set in self.set[..self.high].iter().rev() {
                    sum = _mm512_xor_si512(double_lanes(sum), set.assume_init());
                }
                let inner = self.inner[..Self::LOW].iter().rev();
                (inner.fold(sum, |sum, set| _mm512_xor_si512(double_lanes(sum), *set)), total)
            }
        }
    }

    /// Safe entry of the AVX-512 weighing. Serves periods of 4 and of 32 blocks.
    pub(crate) fn moments(nodes: &[Block], n: usize, period: usize, out: &mut [Block]) {
        assert!(n.is_power_of_two() && nodes.len() >= n * period && out.len() == period);
        // SAFETY: the dispatcher calls this only where the AVX-512 level was detected; the asserts bound
        // lines and `out`, and the number of lines added up in registers is at most n.
        unsafe {
            match (period, n) {
                (4, 1) => weigh::<1, 4>(nodes, n, out),
                (4, 2) => weigh::<2, 4>(nodes, n, out),
                (4, 4) => weigh::<4, 4>(nodes, n, out),
                (4, 8) => weigh::<8, 4>(nodes, n, out),
                (4, _) => weigh::<16, 4>(nodes, n, out),
                (32, 1) => weigh::<1, 32>(nodes, n, out),
                (32, 2) => weigh::<2, 32>(nodes, n, out),
                (32, 4) => weigh::<4, 32>(nodes, n, out),
                (32, 8) => weigh::<8, 32>(nodes, n, out),
                (32, _) => weigh::<16, 32>(nodes, n, out),
                _ => panic!("no such period"),
            }
        }
    }

    /// Σ (n + i)·line i of `n` lines, `PERIOD` blocks apart, `N` of them in registers at a time.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq")]
    unsafe fn weigh<const N: usize, const PERIOD: usize>(nodes: &[Block], n: usize, out: &mut [Block]) {
        for first in (0..PERIOD).step_by(LANES) {
            let mut weigher = Weigher::<N>::new(n);
            for c in 0..n / N {
                // SAFETY: line i begins at first + i * PERIOD, at most n * PERIOD - 4 blocks in.
                let line = |j: usize| unsafe { load(nodes.as_ptr().add(first + (c * N + j) * PERIOD)) };
                // SAFETY: there are n / N chunks, which come in order.
                unsafe { weigher.add(c, core::array::from_fn(line)) };
            }
            // SAFETY: all have come; `out` has PERIOD blocks.
            unsafe { _mm512_storeu_si512(out.as_mut_ptr().add(first).cast(), weigher.finish().0) };
        }
    }

    /// Each block times x.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq")]
    #[inline]
    fn double_lanes(a: __m512i) -> __m512i {
        let carry = _mm512_set_epi64(1, 0x87, 1, 0x87, 1, 0x87, 1, 0x87);
        // Bit 63 goes into bit 64, bit 127 around.
        let tops = _mm512_srai_epi32::<31>(_mm512_shuffle_epi32::<0b01_01_01_11>(a));
        _mm512_xor_si512(_mm512_slli_epi64::<1>(a), _mm512_and_si512(tops, carry))
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq")]
    unsafe fn finish_lines(nodes: &mut [Block], n: usize, fix: Option<&FixView<'_>>, punctured: &[Block]) {
        let ones = _mm512_set_epi64(0, 1, 0, 1, 0, 1, 0, 1);
        let base = nodes.as_mut_ptr();
        let Some(fix) = fix else {
            for i in 0..n {
                // SAFETY: line i lies below n.
                unsafe {
                    let p = base.add(i * LANES);
                    _mm512_storeu_si512(p.cast(), _mm512_andnot_si512(ones, load(p)));
                }
            }
            return;
        };
        // SAFETY: `path`, `sibling` and `punctured` have four entries each.
        let (path, sibling, punctured) =
            unsafe { (widen_path(fix.path.as_ptr()), load(fix.sibling.as_ptr()), load(punctured.as_ptr())) };
        let sibling_path = _mm512_xor_si512(path, _mm512_set1_epi64(fix.top_bit as i64));
        let sibling = _mm512_andnot_si512(ones, sibling);
        let punctured = _mm512_or_si512(punctured, ones);
        for i in 0..n {
            let index = _mm512_set1_epi64(i as i64);
            // SAFETY: line i lies below n.
            unsafe {
                let p = base.add(i * LANES);
                let mut leaf = _mm512_andnot_si512(ones, load(p));
                leaf = _mm512_mask_mov_epi64(leaf, _mm512_cmpeq_epi64_mask(sibling_path, index), sibling);
                leaf = _mm512_mask_mov_epi64(leaf, _mm512_cmpeq_epi64_mask(path, index), punctured);
                _mm512_storeu_si512(p.cast(), leaf);
            }
        }
    }

    #[inline(always)]
    fn block128(block: Block) -> __m128i {
        // SAFETY: both are 16 plain bytes, and SSE2 is part of x86-64.
        unsafe { core::mem::transmute::<Block, __m128i>(block) }
    }
}
