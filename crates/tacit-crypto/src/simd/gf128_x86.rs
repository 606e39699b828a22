//! GF(2^128) with PCLMULQDQ and VPCLMULQDQ.

use super::x86::{V128, V256, V512, Vector};
use crate::Block;

/// x^128 = x^7 + x^2 + x + 1.
const FOLD: Block = Block::new(0x87);

/// Unreduced sums of products after Karatsuba: of the low halves, of the halves' sums, of the high halves.
///
/// Carry-less multiplication is what bounds these kernels, so three products beat four although the operands'
/// halves must be added first; for a factor in common that is done once.
#[derive(Clone, Copy)]
struct Sums<V> {
    low: V,
    cross: V,
    high: V,
}

/// An element with the sum of its halves.
#[derive(Clone, Copy)]
pub(super) struct Factor<V> {
    value: V,
    half_sum: V,
}

impl<V: Vector> Factor<V> {
    #[inline(always)]
    pub(super) unsafe fn new(value: V) -> Self {
        // SAFETY: the caller has the features of `V`.
        unsafe { Factor { value, half_sum: value.half_sum() } }
    }
}

impl<V: Vector> Sums<V> {
    #[inline(always)]
    unsafe fn zero() -> Self {
        // SAFETY: the caller has the features of `V`.
        unsafe { Sums { low: V::zero(), cross: V::zero(), high: V::zero() } }
    }

    /// Adds the product of `a` and `b`.
    #[inline(always)]
    unsafe fn add(&mut self, a: V, b: Factor<V>) {
        // SAFETY: the caller has the features of `V`.
        unsafe {
            self.low = self.low.xor(a.clmul::<0x00>(b.value));
            self.cross = self.cross.xor(a.half_sum().clmul::<0x00>(b.half_sum));
            self.high = self.high.xor(a.clmul::<0x11>(b.value));
        }
    }

    /// The sum of the crossed halves' products.
    #[inline(always)]
    unsafe fn middle(self) -> V {
        // SAFETY: the caller has the features of `V`.
        unsafe { self.cross.xor(self.low).xor(self.high) }
    }

    /// Reduces each lane.
    #[inline(always)]
    unsafe fn reduce(self) -> V {
        // SAFETY: the caller has the features of `V`.
        unsafe {
            let fold = V::splat(FOLD);
            let middle = self.middle();
            let (low, high) = (self.low.xor(middle.up()), self.high.xor(middle.down()));
            // The top 64 bits land 64 bits above the bottom; what runs over joins the next 64.
            let top = high.clmul::<0x01>(fold);
            let (low, high) = (low.xor(top.up()), high.xor(top.down()));
            low.xor(high.clmul::<0x00>(fold))
        }
    }

    #[inline(always)]
    unsafe fn fold(self) -> [Block; 3] {
        // SAFETY: the caller has the features of `V`.
        unsafe { [self.low.fold(), self.middle().fold(), self.high.fold()] }
    }
}

#[inline(always)]
pub(super) unsafe fn multiply<V: Vector>(a: V, b: Factor<V>) -> V {
    // SAFETY: the caller has the features of `V`.
    unsafe {
        let mut sums = Sums::<V>::zero();
        sums.add(a, b);
        sums.reduce()
    }
}

/// Adds Σ a_k·b_k of `len` blocks for `N` columns `a`, `stride` blocks apart, to `sums`.
///
/// # Safety
/// The features of `V`, `len` blocks in every column and from `b` on, `N` sums from `sums` on.
#[inline(always)]
unsafe fn accumulate<V: Vector, const N: usize>(
    a: *const Block,
    stride: usize,
    b: *const Block,
    len: usize,
    sums: *mut [Block; 3],
) {
    // SAFETY: passed on to the caller.
    unsafe {
        let mut wide = [Sums::<V>::zero(); N];
        let whole = len / V::LANES * V::LANES;
        let mut at = 0;
        while at < whole {
            let weight = Factor::new(V::load(b.add(at)));
            for (i, wide) in wide.iter_mut().enumerate() {
                wide.add(V::load(a.add(i * stride + at)), weight);
            }
            at += V::LANES;
        }
        for (i, wide) in wide.iter().enumerate() {
            let mut rest = Sums::<V128>::zero();
            for at in whole..len {
                rest.add(V128::load(a.add(i * stride + at)), Factor::new(V128::load(b.add(at))));
            }
            let sum = &mut *sums.add(i);
            for (sum, (wide, rest)) in sum.iter_mut().zip(wide.fold().into_iter().zip(rest.fold())) {
                *sum ^= wide ^ rest;
            }
        }
    }
}

/// `out[i] = out[i] · factor`, or with `ADD` `out[i] ⊕ input[i] · factor`.
///
/// # Safety
/// The features of `V`, and `len` blocks behind both pointers, which may be equal.
#[inline(always)]
unsafe fn scale<V: Vector, const ADD: bool>(out: *mut Block, input: *const Block, len: usize, factor: Block) {
    // SAFETY: passed on to the caller.
    unsafe {
        let mut at = 0;
        while len - at >= V::LANES {
            scale_step::<V, ADD>(out.add(at), input.add(at), factor);
            at += V::LANES;
        }
        while at < len {
            scale_step::<V128, ADD>(out.add(at), input.add(at), factor);
            at += 1;
        }
    }
}

#[inline(always)]
unsafe fn scale_step<V: Vector, const ADD: bool>(out: *mut Block, input: *const Block, factor: Block) {
    // SAFETY: passed on to the caller.
    unsafe {
        let product = multiply(V::load(input), Factor::new(V::splat(factor)));
        if ADD { product.xor(V::load(out)).store(out) } else { product.store(out) }
    }
}

/// `blocks[i] = blocks[i] · factors[i]`.
///
/// # Safety
/// The features of `V`, and `len` blocks behind both pointers.
#[inline(always)]
unsafe fn multiply_each<V: Vector>(blocks: *mut Block, factors: *const Block, len: usize) {
    // SAFETY: passed on to the caller.
    unsafe {
        let mut at = 0;
        while len - at >= V::LANES {
            let factor = Factor::new(V::load(factors.add(at)));
            multiply(V::load(blocks.add(at)), factor).store(blocks.add(at));
            at += V::LANES;
        }
        while at < len {
            let factor = Factor::new(V128::load(factors.add(at)));
            multiply(V128::load(blocks.add(at)), factor).store(blocks.add(at));
            at += 1;
        }
    }
}

macro_rules! entry_points {
    ($module:ident, $vector:ident, $features:literal) => {
        pub(super) mod $module {
            use super::*;

            #[target_feature(enable = $features)]
            pub(crate) fn mul(a: Block, b: Block) -> Block {
                // SAFETY: every width has the features of the 128-bit one.
                unsafe { multiply(V128::splat(a), Factor::new(V128::splat(b))).fold() }
            }

            #[target_feature(enable = $features)]
            pub(crate) fn accumulate(a: &[Block], b: &[Block]) -> [Block; 3] {
                assert_eq!(a.len(), b.len(), "inner product of different lengths");
                let mut sums = [Block::ZERO; 3];
                // SAFETY: this function's features are the vector's; the lengths are equal.
                unsafe { super::accumulate::<$vector, 1>(a.as_ptr(), 0, b.as_ptr(), a.len(), &mut sums) }
                sums
            }

            #[target_feature(enable = $features)]
            pub(crate) fn accumulate_columns(
                columns: &[Block],
                stride: usize,
                weights: &[Block],
                sums: &mut [[Block; 3]],
            ) {
                let len = weights.len();
                assert!(
                    super::super::gf128_portable::columns_fit(columns.len(), stride, len, sums.len()),
                    "columns too short"
                );
                let (columns, weights) = (columns.as_ptr(), weights.as_ptr());
                let whole = sums.len() / 4 * 4;
                // SAFETY: this function's features are the vector's; every column lies within the slice.
                unsafe {
                    for i in (0..whole).step_by(4) {
                        let sums = sums.as_mut_ptr().add(i);
                        super::accumulate::<$vector, 4>(columns.add(i * stride), stride, weights, len, sums);
                    }
                    for i in whole..sums.len() {
                        let sums = sums.as_mut_ptr().add(i);
                        super::accumulate::<$vector, 1>(columns.add(i * stride), stride, weights, len, sums);
                    }
                }
            }

            #[target_feature(enable = $features)]
            pub(crate) fn scale(blocks: &mut [Block], factor: Block) {
                let (out, len) = (blocks.as_mut_ptr(), blocks.len());
                // SAFETY: this function's features are the vector's; each block is read before it is written.
                unsafe { super::scale::<$vector, false>(out, out, len, factor) }
            }

            #[target_feature(enable = $features)]
            pub(crate) fn multiply_add(out: &mut [Block], input: &[Block], factor: Block) {
                assert_eq!(out.len(), input.len(), "one output an input");
                // SAFETY: this function's features are the vector's; the lengths are equal.
                unsafe { super::scale::<$vector, true>(out.as_mut_ptr(), input.as_ptr(), out.len(), factor) }
            }

            #[target_feature(enable = $features)]
            pub(crate) fn multiply_each(blocks: &mut [Block], factors: &[Block]) {
                assert_eq!(blocks.len(), factors.len(), "one factor a block");
                let (blocks, len) = (blocks.as_mut_ptr(), blocks.len());
                // SAFETY: this function's features are the vector's; the lengths are equal.
                unsafe { super::multiply_each::<$vector>(blocks, factors.as_ptr(), len) }
            }

            #[target_feature(enable = $features)]
            pub(crate) fn progress(out: &mut [Block], known: usize, step: Block) {
                assert!(known >= 4, "a vector must not read what it writes");
                let len = out.len().saturating_sub(known);
                let out = out.as_mut_ptr();
                // SAFETY: this function's features are the vector's; blocks are read `known` places before
                // they are written, so a step reads only what is there already.
                unsafe { super::scale::<$vector, false>(out.add(known), out, len, step) }
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
