//! Kernels of products in GF(2)\[x\] for 128 columns at once: an additive FFT over GF(2^32) in a Cantor basis.
//!
//! A block is four elements of GF(2^8) ⊂ GF(2^16) ⊂ GF(2^32) side by side: byte 4 i + e is coordinate i of element e, which
//! is (x_0 + x_1·Y) + (x_2 + x_3·Y)·Z with Y² = Y + κ and Z² = Z + κ·Y. In these coordinates an element of a subfield
//! multiplies with one or two products of bytes in place of four, and most factors of a transform lie in one.

#[cfg(target_arch = "x86_64")]
use super::gf2x_x86 as x86;
use super::{Backend, dispatch, gf2x_portable as portable};
use crate::Block;

pub use super::gf2x_tables::{BASIS, Coset, Factor, MAX_LOG, MIN_LOG, Parts, Twiddles, factor, mul, parts};

/// From coefficients in the novel basis to values at the points of `coset`; `data.len()` from 2^6 to 2^16.
pub fn forward(backend: Backend, data: &mut [Block], twiddles: &Twiddles, coset: &Coset) {
    check(data);
    dispatch!(backend, forward(data, twiddles, coset))
}

/// The inverse of [`forward`].
pub fn inverse(backend: Backend, data: &mut [Block], twiddles: &Twiddles, coset: &Coset) {
    check(data);
    dispatch!(backend, inverse(data, twiddles, coset))
}

fn check(data: &[Block]) {
    let n = data.len();
    assert!(n.is_power_of_two() && (1 << MIN_LOG..=1 << MAX_LOG).contains(&n), "transform length");
}

/// Multiplies all four elements of `data[i]` by element i mod 4 of `values[i / 4]`. Panics unless there are as many.
pub fn multiply(backend: Backend, data: &mut [Block], values: &[Block]) {
    assert_eq!(data.len(), 4 * values.len(), "one factor a block");
    dispatch!(backend, multiply(data, values))
}

/// `left[i] += t·right[i]`. Panics when the lengths differ.
pub(crate) fn add_product(backend: Backend, left: &mut [Block], right: &[Block], t: &Factor) {
    assert_eq!(left.len(), right.len(), "slices of one length");
    dispatch!(backend, add_product(left, right, t))
}

/// `to[i] += from[i]`. Panics when the lengths differ.
pub fn add(backend: Backend, to: &mut [Block], from: &[Block]) {
    assert_eq!(to.len(), from.len(), "slices of one length");
    dispatch!(backend, add(to, from))
}
