//! The additive FFT by products of bytes: two levels a pass, the last four within registers.

use super::gf2x_tables::{BOTTOM, Coset, Factor, LOW, Parts, SPREAD, Twiddles, UNITS};
use super::x86::{V128, V256, V512, Vector};
use crate::Block;

/// log2 of the points that fit the first-level cache.
const LOCAL: u32 = 10;
/// Permutations of four words by XOR of their indices with 1, 2 and 3.
const ORDERS: [i32; 4] = [0xe4, 0xb1, 0x4e, 0x1b];

/// x·t, of which the first `R` parts are not zero.
#[inline(always)]
unsafe fn times<V: Vector, const R: usize>(x: V, t: &[V; 4]) -> V {
    // SAFETY: the caller has the features of `V`.
    unsafe {
        let mut product = x.mul_bytes(t[0]);
        if R > 1 {
            product = product.xor(x.words::<{ ORDERS[1] }>().mul_bytes(t[1]));
        }
        if R > 2 {
            product = product.xor(x.words::<{ ORDERS[2] }>().mul_bytes(t[2]));
            product = product.xor(x.words::<{ ORDERS[3] }>().mul_bytes(t[3]));
        }
        product
    }
}

/// Forward: a += t·b, then b += a. Backward: the inverse.
#[inline(always)]
unsafe fn butterfly<V: Vector, const R: usize, const FORWARD: bool>(a: &mut V, b: &mut V, t: &[V; 4]) {
    // SAFETY: the caller has the features of `V`.
    unsafe {
        if FORWARD {
            *a = a.xor(times::<V, R>(*b, t));
            *b = b.xor(*a);
        } else {
            *b = b.xor(*a);
            *a = a.xor(times::<V, R>(*b, t));
        }
    }
}

#[inline(always)]
unsafe fn splat<V: Vector>(parts: &Parts) -> [V; 4] {
    // SAFETY: the caller has the features of `V`.
    unsafe { [V::splat(parts[0]), V::splat(parts[1]), V::splat(parts[2]), V::splat(parts[3])] }
}

/// The tables that a transform reads.
#[derive(Clone, Copy)]
struct Tables<'a> {
    twiddles: &'a Twiddles,
    coset: &'a Coset,
}

impl Tables<'_> {
    /// The factor of block 2^`scale`·`b` of `level`.
    #[inline(always)]
    fn at(&self, level: u32, scale: usize, b: usize) -> Parts {
        let table = &self.twiddles.scales[scale];
        let coset = &self.coset.levels[level as usize];
        let (low, high) = (b & ((1 << LOW) - 1), b >> LOW);
        core::array::from_fn(|r| table.low[r][low] ^ table.high[r][high] ^ coset[r])
    }

    /// What block `j` of a few adds to a factor: an element of GF(2^8), so only to the first part.
    #[inline(always)]
    fn small(&self, j: usize) -> Block {
        self.twiddles.scales[0].low[0][j]
    }
}

/// Two levels of block `b` of `level`, which has 2^`log` points, `log` at least 4.
///
/// # Safety
/// The features of `V`; 2^`log` points from `data` on.
#[inline(always)]
unsafe fn two_levels<V: Vector, const R: usize, const FORWARD: bool>(
    data: *mut Block,
    log: u32,
    level: u32,
    block: usize,
    tables: Tables<'_>,
) {
    // SAFETY: every access stays below 4 · 2^(log-2) points; vectors divide a quarter, which has 4 points or
    // more.
    unsafe {
        let quarter = 1usize << (log - 2);
        let t = splat::<V>(&tables.at(level, 0, block));
        let t0 = splat::<V>(&tables.at(level + 1, 1, block));
        let mut t1 = t0;
        t1[0] = t0[0].xor(V::splat(tables.small(1)));
        let mut i = 0;
        while i < quarter {
            let at = [0, 1, 2, 3].map(|k| data.add(k * quarter + i));
            let mut x = at.map(|p| V::load(p));
            let [a, b, c, d] = &mut x;
            if FORWARD {
                butterfly::<V, R, true>(a, c, &t);
                butterfly::<V, R, true>(b, d, &t);
            }
            butterfly::<V, R, FORWARD>(a, b, &t0);
            butterfly::<V, R, FORWARD>(c, d, &t1);
            if !FORWARD {
                butterfly::<V, R, false>(a, c, &t);
                butterfly::<V, R, false>(b, d, &t);
            }
            for (p, x) in at.into_iter().zip(x) {
                x.store(p);
            }
            i += V::LANES;
        }
    }
}

/// The first level of a transform of 2^`log` points.
///
/// # Safety
/// As [`two_levels`].
#[inline(always)]
unsafe fn one_level<V: Vector, const FORWARD: bool>(data: *mut Block, log: u32, tables: Tables<'_>) {
    // SAFETY: every access stays below 2 · 2^(log-1) points.
    unsafe {
        let half = 1usize << (log - 1);
        let t = splat::<V>(&tables.at(0, 0, 0));
        for i in (0..half).step_by(V::LANES) {
            let (mut left, mut right) = (V::load(data.add(i)), V::load(data.add(half + i)));
            butterfly::<V, 4, FORWARD>(&mut left, &mut right, &t);
            left.store(data.add(i));
            right.store(data.add(half + i));
        }
    }
}

/// The last four levels of the blocks of 16 points from `m` on, as many as `V` has lanes; the first of them
/// is `level`.
///
/// # Safety
/// As [`two_levels`], with 16 · LANES points; `m` a multiple of LANES.
#[inline(always)]
unsafe fn bottom<V: Vector, const R: usize, const FORWARD: bool>(
    data: *mut Block,
    level: u32,
    m: usize,
    tables: Tables<'_>,
) {
    // SAFETY: gathers and scatters touch 16 · LANES points; `m` and the lanes after it stay within a low
    // table.
    unsafe {
        let mut x = [V::zero(); 16];
        for (i, x) in x.iter_mut().enumerate() {
            *x = V::gather(data.add(i), 16);
        }
        for step in 0..BOTTOM as usize {
            let s = if FORWARD { step } else { BOTTOM as usize - 1 - step };
            let table = &tables.twiddles.scales[s];
            let coset = &tables.coset.levels[level as usize + s];
            let mut t = [V::zero(); 4];
            for r in 0..R {
                let low = V::load(table.low[r][m & ((1 << LOW) - 1)..][..V::LANES].as_ptr());
                t[r] = low.xor(V::splat(table.high[r][m >> LOW] ^ coset[r]));
            }
            let first = t[0];
            let half = 8 >> s;
            for j in 0..1 << s {
                t[0] = first.xor(V::splat(tables.small(j)));
                let (left, right) = x[2 * half * j..2 * half * (j + 1)].split_at_mut(half);
                for (a, b) in left.iter_mut().zip(right) {
                    butterfly::<V, R, FORWARD>(a, b, &t);
                }
            }
        }
        for (i, x) in x.into_iter().enumerate() {
            x.scatter(data.add(i), 16);
        }
    }
}

/// `left[i] += t·right[i]` for a factor with `R` parts that are not zero.
///
/// # Safety
/// The features of `V`.
#[inline(always)]
unsafe fn add_product<V: Vector, const R: usize>(left: &mut [Block], right: &[Block], t: &Parts) {
    let count = left.len().min(right.len());
    let whole = count / V::LANES * V::LANES;
    let (left, right) = (left.as_mut_ptr(), right.as_ptr());
    // SAFETY: the caller has the features; every access stays below `count` blocks.
    unsafe {
        let wide = splat::<V>(t);
        for i in (0..whole).step_by(V::LANES) {
            V::load(left.add(i)).xor(times::<V, R>(V::load(right.add(i)), &wide)).store(left.add(i));
        }
        let narrow = splat::<V128>(t);
        for i in whole..count {
            V128::load(left.add(i))
                .xor(times::<V128, R>(V128::load(right.add(i)), &narrow))
                .store(left.add(i));
        }
    }
}

macro_rules! entry_points {
    ($module:ident, $vector:ident, $features:literal) => {
        pub(super) mod $module {
            use super::*;

            #[target_feature(enable = $features)]
            pub(crate) fn forward(data: &mut [Block], twiddles: &Twiddles, coset: &Coset) {
                transform::<true>(data, Tables { twiddles, coset });
            }

            #[target_feature(enable = $features)]
            pub(crate) fn inverse(data: &mut [Block], twiddles: &Twiddles, coset: &Coset) {
                transform::<false>(data, Tables { twiddles, coset });
            }

            #[target_feature(enable = $features)]
            fn transform<const FORWARD: bool>(data: &mut [Block], tables: Tables<'_>) {
                let log = data.len().ilog2();
                let data = data.as_mut_ptr();
                // SAFETY: this function's features are the vector's; the slice has 2^log points, 2^6 at
                // least.
                unsafe {
                    if log % 2 == 0 {
                        return recurse::<FORWARD>(data, log, 0, 0, tables);
                    }
                    if FORWARD {
                        one_level::<$vector, true>(data, log, tables);
                    }
                    for b in 0..2 {
                        recurse::<FORWARD>(data.add(b << (log - 1)), log - 1, 1, b, tables);
                    }
                    if !FORWARD {
                        one_level::<$vector, false>(data, log, tables);
                    }
                }
            }

            /// Block `b` of `level`, depth first, so that small blocks are done while they are in the nearest
            /// cache.
            #[target_feature(enable = $features)]
            unsafe fn recurse<const FORWARD: bool>(
                data: *mut Block,
                log: u32,
                level: u32,
                b: usize,
                tables: Tables<'_>,
            ) {
                // SAFETY: the four quarters lie within the 2^log points.
                unsafe {
                    if log <= LOCAL {
                        return local::<FORWARD>(data, log, level, b, tables);
                    }
                    if FORWARD {
                        pass::<true>(data, log, level, b, 1, tables);
                    }
                    for i in 0..4 {
                        recurse::<FORWARD>(data.add(i << (log - 2)), log - 2, level + 2, 4 * b + i, tables);
                    }
                    if !FORWARD {
                        pass::<false>(data, log, level, b, 1, tables);
                    }
                }
            }

            /// All levels of block `b`, pass by pass.
            #[target_feature(enable = $features)]
            unsafe fn local<const FORWARD: bool>(
                data: *mut Block,
                log: u32,
                level: u32,
                b: usize,
                tables: Tables<'_>,
            ) {
                let passes = (log - BOTTOM) / 2;
                // SAFETY: blocks of every level lie within the 2^log points.
                unsafe {
                    if FORWARD {
                        for p in 0..passes {
                            pass::<true>(
                                data,
                                log - 2 * p,
                                level + 2 * p,
                                b << (2 * p),
                                1 << (2 * p),
                                tables,
                            );
                        }
                    }
                    bottoms::<FORWARD>(data, log, level + 2 * passes, b << (2 * passes), tables);
                    if !FORWARD {
                        for p in (0..passes).rev() {
                            pass::<false>(
                                data,
                                log - 2 * p,
                                level + 2 * p,
                                b << (2 * p),
                                1 << (2 * p),
                                tables,
                            );
                        }
                    }
                }
            }

            /// Two levels of `count` blocks from `b` on.
            #[target_feature(enable = $features)]
            unsafe fn pass<const FORWARD: bool>(
                data: *mut Block,
                log: u32,
                level: u32,
                b: usize,
                count: usize,
                tables: Tables<'_>,
            ) {
                // SAFETY: the caller answers for `count` blocks of 2^log points.
                unsafe {
                    for i in 0..count {
                        let data = data.add(i << log);
                        match tables.coset.rank(level + 1) {
                            1 => two_levels::<$vector, 1, FORWARD>(data, log, level, b + i, tables),
                            2 => two_levels::<$vector, 2, FORWARD>(data, log, level, b + i, tables),
                            _ => two_levels::<$vector, 4, FORWARD>(data, log, level, b + i, tables),
                        }
                    }
                }
            }

            #[target_feature(enable = $features)]
            unsafe fn bottoms<const FORWARD: bool>(
                data: *mut Block,
                log: u32,
                level: u32,
                b: usize,
                tables: Tables<'_>,
            ) {
                // SAFETY: the caller answers for 2^log points; 2^log is a multiple of 16 · LANES.
                unsafe {
                    for i in (0..1usize << (log - BOTTOM)).step_by($vector::LANES) {
                        let data = data.add(i << BOTTOM);
                        match tables.coset.rank(level + BOTTOM - 1) {
                            1 => bottom::<$vector, 1, FORWARD>(data, level, b + i, tables),
                            2 => bottom::<$vector, 2, FORWARD>(data, level, b + i, tables),
                            _ => bottom::<$vector, 4, FORWARD>(data, level, b + i, tables),
                        }
                    }
                }
            }

            #[target_feature(enable = $features)]
            pub(crate) fn multiply(data: &mut [Block], values: &[Block]) {
                let units = &*UNITS;
                for (data, value) in data.as_chunks_mut::<4>().0.iter_mut().zip(values) {
                    // SAFETY: this function's features are the vector's; four blocks are whole vectors.
                    unsafe {
                        let value = $vector::splat(*value);
                        for i in (0..4).step_by($vector::LANES) {
                            let mut t = [$vector::zero(); 4];
                            for (spread, unit) in SPREAD.iter().zip(units) {
                                let spread = value.bytes($vector::load(spread.as_ptr().add(i)));
                                for (t, unit) in t.iter_mut().zip(unit) {
                                    *t = t.xor(spread.mul_bytes($vector::splat(*unit)));
                                }
                            }
                            let at = data.as_mut_ptr().add(i);
                            times::<$vector, 4>($vector::load(at), &t).store(at);
                        }
                    }
                }
            }

            #[target_feature(enable = $features)]
            pub(crate) fn add_product(left: &mut [Block], right: &[Block], t: &Factor) {
                // SAFETY: this function's features are the vector's.
                unsafe {
                    match t.rank {
                        1 => super::add_product::<$vector, 1>(left, right, &t.parts),
                        2 => super::add_product::<$vector, 2>(left, right, &t.parts),
                        _ => super::add_product::<$vector, 4>(left, right, &t.parts),
                    }
                }
            }

            #[target_feature(enable = $features)]
            pub(crate) fn add(to: &mut [Block], from: &[Block]) {
                let (to, rest) = to.as_chunks_mut::<{ $vector::LANES }>();
                let (from, others) = from.as_chunks::<{ $vector::LANES }>();
                for (to, from) in to.iter_mut().zip(from) {
                    // SAFETY: this function's features are the vector's; a chunk is a vector.
                    unsafe {
                        $vector::load(to.as_ptr()).xor($vector::load(from.as_ptr())).store(to.as_mut_ptr())
                    };
                }
                rest.iter_mut().zip(others).for_each(|(a, b)| *a ^= *b);
            }
        }
    };
}
entry_points!(wide128, V128, "sse2,ssse3,sse4.1,aes,pclmulqdq");
entry_points!(wide256, V256, "sse2,ssse3,sse4.1,aes,pclmulqdq,avx2,vaes,vpclmulqdq");
entry_points!(
    wide512,
    V512,
    "sse2,ssse3,sse4.1,aes,pclmulqdq,avx2,vaes,vpclmulqdq,avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi,gfni"
);
