//! The additive FFT with carry-less multiplication: two levels a pass, the last two within registers.

use super::gf2x::Twiddles;
use super::gf128_x86::{Factor, multiply as product};
use super::x86::{V128, V256, V512, Vector};
use crate::Block;

/// log2 of the points that fit the first-level cache.
const LOCAL: u32 = 10;

/// a += t·b, then b += a.
#[inline(always)]
unsafe fn butterfly<V: Vector>(a: &mut V, b: &mut V, t: Factor<V>) {
    // SAFETY: the caller has the features of `V`.
    unsafe {
        *a = a.xor(product(*b, t));
        *b = b.xor(*a);
    }
}

/// Undoes [`butterfly`].
#[inline(always)]
unsafe fn unbutterfly<V: Vector>(a: &mut V, b: &mut V, t: Factor<V>) {
    // SAFETY: the caller has the features of `V`.
    unsafe {
        *b = b.xor(*a);
        *a = a.xor(product(*b, t));
    }
}

#[inline(always)]
unsafe fn splat<V: Vector>(twiddles: &Twiddles, b: usize) -> Factor<V> {
    // SAFETY: the caller has the features of `V`.
    unsafe { Factor::new(V::splat(twiddles.at(b))) }
}

/// Two levels of block `b` of 2^`log` points, `log` at least 4.
///
/// # Safety
/// The features of `V`; 2^`log` points from `data` on.
#[inline(always)]
unsafe fn two_levels<V: Vector, const FORWARD: bool>(data: *mut Block, log: u32, b: usize, tw: &Twiddles) {
    // SAFETY: every access stays below 4 · 2^(log-2) points; vectors divide a quarter, which has 4 points or more.
    unsafe {
        let quarter = 1usize << (log - 2);
        let (t, t0, t1) = (splat::<V>(tw, b), splat::<V>(tw, 2 * b), splat::<V>(tw, 2 * b + 1));
        let mut i = 0;
        while i < quarter {
            let at = [0, 1, 2, 3].map(|k| data.add(k * quarter + i));
            let mut x = at.map(|p| V::load(p));
            let [a, b, c, d] = &mut x;
            if FORWARD {
                butterfly(a, c, t);
                butterfly(b, d, t);
                butterfly(a, b, t0);
                butterfly(c, d, t1);
            } else {
                unbutterfly(a, b, t0);
                unbutterfly(c, d, t1);
                unbutterfly(a, c, t);
                unbutterfly(b, d, t);
            }
            for (p, x) in at.into_iter().zip(x) {
                x.store(p);
            }
            i += V::LANES;
        }
    }
}

/// One level of block `b` of eight points.
///
/// # Safety
/// As [`two_levels`], with 8 points.
#[inline(always)]
unsafe fn one_level<V: Vector, const FORWARD: bool>(data: *mut Block, b: usize, tw: &Twiddles) {
    // SAFETY: every access stays below 8 points.
    unsafe {
        let t = splat::<V>(tw, b);
        let mut i = 0;
        while i < 4 {
            let (mut left, mut right) = (V::load(data.add(i)), V::load(data.add(4 + i)));
            if FORWARD {
                butterfly(&mut left, &mut right, t);
            } else {
                unbutterfly(&mut left, &mut right, t);
            }
            left.store(data.add(i));
            right.store(data.add(4 + i));
            i += V::LANES;
        }
    }
}

/// The last two levels of the blocks of four points from `b` on, as many as `V` has lanes.
///
/// # Safety
/// As [`two_levels`], with 4 · LANES points; `b` a multiple of LANES.
#[inline(always)]
unsafe fn last_levels<V: Vector, const FORWARD: bool>(data: *mut Block, b: usize, tw: &Twiddles) {
    // SAFETY: gathers and scatters touch 4 · LANES points; `run` checks the table's bounds.
    unsafe {
        let (table, add) = tw.run(b, V::LANES);
        let t = Factor::new(V::load(table).xor(V::splat(add)));
        let (table, add) = tw.run(2 * b, 2 * V::LANES);
        let t0 = Factor::new(V::gather(table, 2).xor(V::splat(add)));
        let t1 = Factor::new(V::gather(table.add(1), 2).xor(V::splat(add)));
        let mut x = [0, 1, 2, 3].map(|k| V::gather(data.add(k), 4));
        let [a, b, c, d] = &mut x;
        if FORWARD {
            butterfly(a, c, t);
            butterfly(b, d, t);
            butterfly(a, b, t0);
            butterfly(c, d, t1);
        } else {
            unbutterfly(a, b, t0);
            unbutterfly(c, d, t1);
            unbutterfly(a, c, t);
            unbutterfly(b, d, t);
        }
        for (k, x) in x.into_iter().enumerate() {
            x.scatter(data.add(k), 4);
        }
    }
}

/// All levels of block `b` of 2^`log` points, pass by pass.
///
/// # Safety
/// As [`two_levels`].
#[inline(always)]
unsafe fn local<V: Vector, const FORWARD: bool>(data: *mut Block, log: u32, b: usize, tw: &Twiddles) {
    // SAFETY: blocks of every level lie within the 2^log points.
    unsafe {
        let points = 1usize << log;
        let passes = (log - 2) / 2;
        let odd = log % 2 == 1;
        if FORWARD {
            for pass in 0..passes {
                let l = log - 2 * pass;
                for i in 0..points >> l {
                    two_levels::<V, true>(data.add(i << l), l, (b << (2 * pass)) + i, tw);
                }
            }
            if odd {
                for i in 0..points >> 3 {
                    one_level::<V, true>(data.add(8 * i), (b << (log - 3)) + i, tw);
                }
            }
            for i in (0..points / 4).step_by(V::LANES) {
                last_levels::<V, true>(data.add(4 * i), (b << (log - 2)) + i, tw);
            }
        } else {
            for i in (0..points / 4).step_by(V::LANES) {
                last_levels::<V, false>(data.add(4 * i), (b << (log - 2)) + i, tw);
            }
            if odd {
                for i in 0..points >> 3 {
                    one_level::<V, false>(data.add(8 * i), (b << (log - 3)) + i, tw);
                }
            }
            for pass in (0..passes).rev() {
                let l = log - 2 * pass;
                for i in 0..points >> l {
                    two_levels::<V, false>(data.add(i << l), l, (b << (2 * pass)) + i, tw);
                }
            }
        }
    }
}

macro_rules! entry_points {
    ($module:ident, $vector:ident, $features:literal) => {
        pub(super) mod $module {
            use super::*;

            #[target_feature(enable = $features)]
            pub fn forward(data: &mut [Block], twiddles: &Twiddles) {
                // SAFETY: this function's features are the vector's; the slice has 2^log points, 16 at least.
                unsafe { recurse::<true>(data.as_mut_ptr(), data.len().ilog2(), 0, twiddles) }
            }

            #[target_feature(enable = $features)]
            pub fn inverse(data: &mut [Block], twiddles: &Twiddles) {
                // SAFETY: as above.
                unsafe { recurse::<false>(data.as_mut_ptr(), data.len().ilog2(), 0, twiddles) }
            }

            /// Depth first, so that small blocks are done while they are in the nearest cache.
            #[target_feature(enable = $features)]
            unsafe fn recurse<const FORWARD: bool>(data: *mut Block, log: u32, b: usize, tw: &Twiddles) {
                // SAFETY: the four quarters lie within the 2^log points.
                unsafe {
                    if log <= LOCAL {
                        return local::<$vector, FORWARD>(data, log, b, tw);
                    }
                    if FORWARD {
                        two_levels::<$vector, true>(data, log, b, tw);
                    }
                    for i in 0..4 {
                        recurse::<FORWARD>(data.add(i << (log - 2)), log - 2, 4 * b + i, tw);
                    }
                    if !FORWARD {
                        two_levels::<$vector, false>(data, log, b, tw);
                    }
                }
            }

            #[target_feature(enable = $features)]
            pub fn multiply(data: &mut [Block], factors: &[Block]) {
                let whole = data.len().min(factors.len()) / $vector::LANES * $vector::LANES;
                // SAFETY: this function's features are the vector's; both slices have `whole` blocks.
                unsafe {
                    for i in (0..whole).step_by($vector::LANES) {
                        let factor = Factor::new($vector::load(factors.as_ptr().add(i)));
                        let at = data.as_mut_ptr().add(i);
                        product($vector::load(at), factor).store(at);
                    }
                }
                for (value, factor) in data[whole..].iter_mut().zip(&factors[whole..]) {
                    *value = super::super::gf128_x86::$module::mul(*value, *factor);
                }
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
