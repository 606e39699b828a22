//! The additive FFT one butterfly at a time.

use super::gf2x::Twiddles;
use super::gf128_portable::mul;
use crate::Block;

pub(super) fn forward(data: &mut [Block], twiddles: &Twiddles) {
    for level in (0..data.len().ilog2()).rev() {
        for (b, block) in data.chunks_mut(2 << level).enumerate() {
            let (left, right) = block.split_at_mut(1 << level);
            for (l, r) in left.iter_mut().zip(right) {
                *l ^= mul(twiddles.at(b), *r);
                *r ^= *l;
            }
        }
    }
}

pub(super) fn inverse(data: &mut [Block], twiddles: &Twiddles) {
    for level in 0..data.len().ilog2() {
        for (b, block) in data.chunks_mut(2 << level).enumerate() {
            let (left, right) = block.split_at_mut(1 << level);
            for (l, r) in left.iter_mut().zip(right) {
                *r ^= *l;
                *l ^= mul(twiddles.at(b), *r);
            }
        }
    }
}

pub(super) fn multiply(data: &mut [Block], factors: &[Block]) {
    for (value, factor) in data.iter_mut().zip(factors) {
        *value = mul(*value, *factor);
    }
}
