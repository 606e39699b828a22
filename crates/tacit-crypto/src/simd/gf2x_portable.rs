//! The additive FFT one butterfly at a time.

use super::gf2x_tables::{Coset, Factor, LOW, Parts, Twiddles, UNITS};
use crate::Block;

const BYTES: u128 = 0x0101_0101_0101_0101_0101_0101_0101_0101;

/// The products in GF(2^8) of the bytes of `x` and `y`, in constant time.
fn mul_bytes(x: Block, y: Block) -> Block {
    let (x, y) = (x.to_u128(), y.to_u128());
    let mut product = 0u128;
    for i in (0..8).rev() {
        let carries = product >> 7 & BYTES;
        product = ((product & !(BYTES << 7)) << 1) ^ (carries * 0x1b);
        product ^= x & ((y >> i & BYTES) * 0xff);
    }
    Block::new(product)
}

/// The block with the 32-bit words `i ^ r` for i from 0 to 3.
fn permute(x: Block, r: usize) -> Block {
    let [a, b] = if r & 2 == 0 { [x.low(), x.high()] } else { [x.high(), x.low()] };
    let turn = if r & 1 == 0 { 0 } else { 32 };
    Block::from_halves(a.rotate_left(turn), b.rotate_left(turn))
}

fn times(x: Block, t: &Parts, rank: u32) -> Block {
    (0..rank as usize).fold(Block::ZERO, |sum, r| sum ^ mul_bytes(permute(x, r), t[r]))
}

/// The factor of block `b` of `level`.
fn at(twiddles: &Twiddles, coset: &Coset, level: u32, b: usize) -> Parts {
    // At scale 0 the tables reach over 2^12 blocks, at scale 3 over the other bits of a block's index.
    let [unit, .., eight] = &twiddles.scales;
    let (m, rest) = (b >> 3, b & 7);
    core::array::from_fn(|r| {
        let known = eight.low[r][m & ((1 << LOW) - 1)] ^ eight.high[r][m >> LOW];
        known ^ unit.low[r][rest] ^ coset.levels[level as usize][r]
    })
}

pub(super) fn forward(data: &mut [Block], twiddles: &Twiddles, coset: &Coset) {
    let log = data.len().ilog2();
    for level in 0..log {
        let rank = coset.rank(level);
        for (b, block) in data.chunks_mut(1 << (log - level)).enumerate() {
            let t = at(twiddles, coset, level, b);
            let (left, right) = block.split_at_mut(1 << (log - level - 1));
            for (l, r) in left.iter_mut().zip(right) {
                *l ^= times(*r, &t, rank);
                *r ^= *l;
            }
        }
    }
}

pub(super) fn inverse(data: &mut [Block], twiddles: &Twiddles, coset: &Coset) {
    let log = data.len().ilog2();
    for level in (0..log).rev() {
        let rank = coset.rank(level);
        for (b, block) in data.chunks_mut(1 << (log - level)).enumerate() {
            let t = at(twiddles, coset, level, b);
            let (left, right) = block.split_at_mut(1 << (log - level - 1));
            for (l, r) in left.iter_mut().zip(right) {
                *r ^= *l;
                *l ^= times(*r, &t, rank);
            }
        }
    }
}

pub(super) fn multiply(data: &mut [Block], values: &[Block]) {
    for (data, value) in data.as_chunks_mut::<4>().0.iter_mut().zip(values) {
        let bytes = value.to_bytes();
        for (e, x) in data.iter_mut().enumerate() {
            let mut t = [Block::ZERO; 4];
            for (unit, coordinate) in UNITS.iter().zip(bytes.chunks_exact(4)) {
                let spread = Block::from_bytes([coordinate[e]; 16]);
                t = core::array::from_fn(|r| t[r] ^ mul_bytes(spread, unit[r]));
            }
            *x = times(*x, &t, 4);
        }
    }
}

pub(super) fn add_product(left: &mut [Block], right: &[Block], t: &Factor) {
    for (l, r) in left.iter_mut().zip(right) {
        *l ^= times(*r, &t.parts, t.rank);
    }
}

pub(super) fn add(to: &mut [Block], from: &[Block]) {
    to.iter_mut().zip(from).for_each(|(a, b)| *a ^= *b);
}
