//! One level of many half-trees (correlated GGM): left = CCR(parent), right = parent ⊕ left.

use super::{Backend, Level};
use crate::{Block, aes::Aes128};

/// Lanes of one node: the blocks of four trees that stand side by side.
pub(crate) const LANES: usize = 4;
const CHUNK: usize = 64;

type Line = [Block; LANES];

/// The two nodes of each tree whose stored value must be replaced before use; see [`crate::ggm::Fix`].
pub(crate) struct FixView<'a> {
    pub path: &'a [u64],
    pub sibling: &'a [Block],
    pub top_bit: u64,
}

/// Expands a level on `backend`.
pub(crate) fn level(
    backend: Backend,
    cipher: &Aes128,
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

/// Portable twin. A counter in the nodes' order: where bit b of the number of nodes so far carries, the right half of 2^(b+1)
/// nodes is complete, whose sum is for bit b.
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

/// Portable twin; the hash itself runs on `backend`. `nodes[..n * period]` holds the level, `nodes[..2 * n * period]` gets the next one.
fn level_portable(
    backend: Backend,
    cipher: &Aes128,
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
        super::aes::ccr(backend, cipher.round_keys(), parents, hashed);
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

    /// Safe entry of the AVX-512 kernel. Serves periods of 4 blocks (with `n` a multiple of 8) and of 32 blocks.
    pub(crate) fn level(
        cipher: &Aes128,
        nodes: &mut [Block],
        n: usize,
        period: usize,
        fix: Option<&FixView<'_>>,
        sums: &mut [Block],
    ) {
        assert!(nodes.len() >= 2 * n * period && sums.len() == period);
        check_fix(fix, period);
        // SAFETY: the dispatcher calls this only where the AVX-512 level (F, BW, VL, DQ, VAES) was detected; the asserts above bound
        // every pointer that the kernel forms: lines below 2 * n * period / 4 of `nodes`, `period` entries elsewhere.
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
        cipher: &Aes128,
        nodes: &mut [Block],
        n: usize,
        fix: Option<&FixView<'_>>,
        sums: &mut [Block],
    ) {
        let base = nodes.as_mut_ptr();
        let half = n * G * LANES;
        let high = _mm512_set_epi64(-1, 0, -1, 0, -1, 0, -1, 0);
        let keys: [__m512i; 11] =
            core::array::from_fn(|i| _mm512_broadcast_i32x4(block128(cipher.round_keys()[i])));
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
                let swapped = _mm512_shuffle_epi32(p, 0x4E);
                let s = _mm512_xor_si512(swapped, _mm512_and_si512(p, high));
                whitened[j] = s;
                state[j] = _mm512_xor_si512(s, keys[0]);
            }
            for key in &keys[1..10] {
                for s in &mut state {
                    *s = _mm512_aesenc_epi128(*s, *key);
                }
            }
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

    /// Safe entry of the AVX-512 weighing. Serves periods of 4 and of 32 blocks.
    pub(crate) fn moments(nodes: &[Block], n: usize, period: usize, out: &mut [Block]) {
        assert!(n.is_power_of_two() && nodes.len() >= n * period && out.len() == period);
        // SAFETY: the dispatcher calls this only where the AVX-512 level was detected; the asserts bound lines and `out`, and the number of
        // lines added up in registers is at most n.
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
        let add = |a, b| _mm512_xor_si512(a, b);
        let zero = _mm512_setzero_si512();
        let low = N.ilog2() as usize;
        let high = n.ilog2() as usize - low;
        for first in (0..PERIOD).step_by(LANES) {
            let mut inner = [zero; 4];
            let mut set = [MaybeUninit::<__m512i>::uninit(); u32::BITS as usize];
            let mut halves = set;
            set[..high].fill(MaybeUninit::new(zero));
            for c in 0..n / N {
                // SAFETY: line i begins at first + i * PERIOD, at most n * PERIOD - 4 blocks in.
                let line = |j: usize| unsafe { load(nodes.as_ptr().add(first + (c * N + j) * PERIOD)) };
                let mut x: [__m512i; N] = core::array::from_fn(line);
                for b in (0..low).rev() {
                    let (left, right) = x.split_at_mut(1 << b);
                    for (left, right) in left.iter_mut().zip(right) {
                        inner[b] = add(inner[b], *right);
                        *left = add(*left, *right);
                    }
                }
                let mut sum = x[0];
                let carries = c.trailing_ones() as usize;
                for b in 0..carries {
                    // SAFETY: bit b of c is set, so b < high, and halves[b] was written where it became so.
                    unsafe {
                        set[b].write(add(set[b].assume_init(), sum));
                        sum = add(sum, halves[b].assume_init());
                    }
                }
                halves[carries].write(sum);
            }
            // SAFETY: the last c is all ones, `high` of them, and as many sets were filled above; `out` has PERIOD blocks.
            unsafe {
                let mut sum = halves[high].assume_init();
                for set in set[..high].iter().rev() {
                    sum = add(double_lanes(sum), set.assume_init());
                }
                sum = inner[..low].iter().rev().fold(sum, |sum, set| add(double_lanes(sum), *set));
                _mm512_storeu_si512(out.as_mut_ptr().add(first).cast(), sum);
            }
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
