//! Carry-less multiplication in plain Rust, constant time where integer multiplication is.
//!
//! An operand is cut into four parts of every fourth bit. In the integer product of two parts, up to 15
//! products of bits add up at a position before they would reach the next bit in use, so the lowest bit of
//! each nibble is the carry-less sum; to stay at 15, the top four bits of one operand are handled apart.

use crate::Block;

const HOLES: u64 = 0x1111_1111_1111_1111;
/// The bits of the operand that may take part in a product with holes: 15 of every class.
const LOW_60: u64 = (1 << 60) - 1;

/// The carry-less product of two 64-bit polynomials.
fn clmul(a: u64, b: u64) -> u128 {
    let a_parts = [0, 1, 2, 3].map(|i| (a & LOW_60 & HOLES << i) as u128);
    let b_parts = [0, 1, 2, 3].map(|i| (b & HOLES << i) as u128);
    let holes = HOLES as u128 | (HOLES as u128) << 64;
    let mut product = 0;
    for class in 0..4 {
        let sum = (0..4).fold(0, |sum, i| sum ^ (a_parts[i] * b_parts[(class + 4 - i) % 4]));
        product |= sum & holes << class;
    }
    (60..64).fold(product, |product, i| product ^ ((b & (a >> i & 1).wrapping_neg()) as u128) << i)
}

/// The product of two blocks, as the low, middle and high sums of `gf128::Accumulator`.
fn product(a: Block, b: Block) -> [u128; 3] {
    let (low, high) = (clmul(a.low(), b.low()), clmul(a.high(), b.high()));
    let cross = clmul(a.low() ^ a.high(), b.low() ^ b.high());
    [low, cross ^ low ^ high, high]
}

pub(super) fn accumulate(a: &[Block], b: &[Block]) -> [Block; 3] {
    let mut sums = [0u128; 3];
    for (&a, &b) in a.iter().zip(b) {
        for (sum, part) in sums.iter_mut().zip(product(a, b)) {
            *sum ^= part;
        }
    }
    sums.map(Block::new)
}

pub(super) fn accumulate_columns(
    columns: &[Block],
    stride: usize,
    weights: &[Block],
    sums: &mut [[Block; 3]],
) {
    for (i, sum) in sums.iter_mut().enumerate() {
        let part = accumulate(&columns[i * stride..][..weights.len()], weights);
        for (sum, part) in sum.iter_mut().zip(part) {
            *sum ^= part;
        }
    }
}

pub(super) fn mul(a: Block, b: Block) -> Block {
    reduce(product(a, b).map(Block::new))
}

pub(super) fn scale(blocks: &mut [Block], factor: Block) {
    for block in blocks {
        *block = mul(*block, factor);
    }
}

pub(super) fn multiply_each(blocks: &mut [Block], factors: &[Block]) {
    for (block, &factor) in blocks.iter_mut().zip(factors) {
        *block = mul(*block, factor);
    }
}

pub(super) fn multiply_add(out: &mut [Block], input: &[Block], factor: Block) {
    for (out, &input) in out.iter_mut().zip(input) {
        *out ^= mul(input, factor);
    }
}

pub(super) fn progress(out: &mut [Block], known: usize, step: Block) {
    for i in known..out.len() {
        out[i] = mul(out[i - known], step);
    }
}

/// Whether `count` columns of `len` blocks, `stride` apart, lie within `total` blocks.
pub(super) fn columns_fit(total: usize, stride: usize, len: usize, count: usize) -> bool {
    let Some(last) = count.checked_sub(1) else { return true };
    last.checked_mul(stride).and_then(|start| start.checked_add(len)).is_some_and(|end| end <= total)
}

/// The element that unreduced sums stand for.
pub fn reduce([low, middle, high]: [Block; 3]) -> Block {
    let low = low.to_u128() ^ middle.to_u128() << 64;
    let high = high.to_u128() ^ middle.to_u128() >> 64;
    // x^128 = x^7 + x^2 + x + 1; what the shifts push out is folded in once more.
    let over = high >> 127 ^ high >> 126 ^ high >> 121;
    let fold = |x: u128| x ^ x << 1 ^ x << 2 ^ x << 7;
    Block::new(low ^ fold(high) ^ fold(over))
}
