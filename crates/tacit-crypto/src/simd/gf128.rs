//! GF(2^128) kernels.

#[cfg(target_arch = "x86_64")]
use super::gf128_x86 as x86;
use super::{Backend, dispatch, gf128_portable as portable};
use crate::Block;

pub use portable::reduce;

/// How many powers are found one by one before the rest follows from them in vectors.
const FIRST_POWERS: usize = 16;

/// The product of `a` and `b`.
pub fn mul(backend: Backend, a: Block, b: Block) -> Block {
    dispatch!(backend, mul(a, b))
}

/// Σ a\[i\]·b\[i\] unreduced: the sums over the low, the crossed and the high halves. Panics when the lengths
/// differ.
pub fn accumulate(backend: Backend, a: &[Block], b: &[Block]) -> [Block; 3] {
    assert_eq!(a.len(), b.len(), "inner product of different lengths");
    dispatch!(backend, accumulate(a, b))
}

/// Adds Σ weights\[j\]·columns[i * stride + j] to `sums[i]`, unreduced, for every `i`. Panics when a column
/// is too short.
pub fn accumulate_columns(
    backend: Backend,
    columns: &[Block],
    stride: usize,
    weights: &[Block],
    sums: &mut [[Block; 3]],
) {
    assert!(portable::columns_fit(columns.len(), stride, weights.len(), sums.len()), "columns too short");
    dispatch!(backend, accumulate_columns(columns, stride, weights, sums))
}

/// Multiplies every block by `factor`.
pub fn scale(backend: Backend, blocks: &mut [Block], factor: Block) {
    dispatch!(backend, scale(blocks, factor))
}

/// Adds `input[i] * factor` to `out[i]`; panics when the lengths differ.
pub fn multiply_add(backend: Backend, out: &mut [Block], input: &[Block], factor: Block) {
    assert_eq!(out.len(), input.len(), "one output an input");
    dispatch!(backend, multiply_add(out, input, factor))
}

/// Multiplies every block by the factor at its place; panics when the lengths differ.
pub fn multiply_each(backend: Backend, blocks: &mut [Block], factors: &[Block]) {
    assert_eq!(blocks.len(), factors.len(), "one factor a block");
    dispatch!(backend, multiply_each(blocks, factors))
}

/// `out[q] = Π variables[i]` over the bits i of q; panics unless there is a place for each product.
pub fn monomials(backend: Backend, variables: &[Block], out: &mut [Block]) {
    assert_eq!(out.len(), 1 << variables.len(), "one product a subset");
    out[0] = Block::ONE;
    for (i, &x) in variables.iter().enumerate() {
        let known = 1 << i;
        if known < 4 {
            (0..known).for_each(|q| out[known + q] = mul(backend, out[q], x));
        } else {
            let out = &mut out[..2 * known];
            dispatch!(backend, progress(out, known, x))
        }
    }
}

/// `out[i] = base^(i+1)`.
pub fn powers(backend: Backend, base: Block, out: &mut [Block]) {
    let mut power = Block::ONE;
    for slot in out.iter_mut().take(FIRST_POWERS) {
        power = mul(backend, power, base);
        *slot = power;
    }
    if out.len() > FIRST_POWERS {
        dispatch!(backend, progress(out, FIRST_POWERS, power))
    }
}
