//! The points and factors of the additive FFT over GF(2^32), see `gf2x`.

use crate::Block;
use std::sync::LazyLock;

/// Of trace 1 over GF(2), so that both extensions are fields.
const TRACE_ONE: u8 = 0x20;
/// The bottom of a transform: blocks of 16 points, whose four levels are done within registers.
pub(super) const BOTTOM: u32 = 4;
/// The least transform: 2^6 points.
pub const MIN_LOG: u32 = 6;
/// The largest: 2^16 points.
pub const MAX_LOG: u32 = 16;
/// log2 of the entries of a low table of [`Twiddles`].
pub(super) const LOW: u32 = 5;
const HIGH: u32 = MAX_LOG - BOTTOM - LOW;
/// Levels of the largest transform, and one more that is read but not used.
const LEVELS: usize = MAX_LOG as usize + 1;

/// β_0 = 1 and β_{i+1}² + β_{i+1} = β_i: the elements of GF(2^32) by coordinates, byte i the i-th.
pub static BASIS: LazyLock<[u32; 32]> = LazyLock::new(|| {
    // Row-reduce y ↦ y² + y, each image beside what it came from.
    let mut rows: Vec<(u32, u32)> = Vec::new();
    for i in 0..32 {
        let y = 1u32 << i;
        let mut row = (mul(y, y) ^ y, y);
        for &(image, source) in &rows {
            if row.0 ^ image < row.0 {
                row = (row.0 ^ image, row.1 ^ source);
            }
        }
        if row.0 != 0 {
            rows.push(row);
            rows.sort_by_key(|row| std::cmp::Reverse(row.0));
        }
    }
    let mut basis = [1; 32];
    for i in 1..32 {
        let (mut rest, mut solution) = (basis[i - 1], 0);
        for &(image, source) in &rows {
            if rest ^ image < rest {
                (rest, solution) = (rest ^ image, solution ^ source);
            }
        }
        assert_eq!(rest, 0, "the trace of a basis element is zero");
        basis[i] = solution;
    }
    basis
});

/// The product in GF(2^8) modulo x^8 + x^4 + x^3 + x + 1; of public values only.
fn mul_bytes(a: u8, b: u8) -> u8 {
    (0..8).rev().fold(0, |product: u8, i| {
        let doubled = (product << 1) ^ ((product >> 7) * 0x1b);
        doubled ^ (a * (b >> i & 1))
    })
}

/// The product in GF(2^16), of public values only.
fn mul_pairs([a, b]: [u8; 2], [c, d]: [u8; 2]) -> [u8; 2] {
    let high = mul_bytes(b, d);
    [mul_bytes(a, c) ^ mul_bytes(TRACE_ONE, high), mul_bytes(a, d) ^ mul_bytes(b, c) ^ high]
}

/// The product in GF(2^32), of public values only.
pub fn mul(x: u32, y: u32) -> u32 {
    let ([a0, a1, b0, b1], [c0, c1, d0, d1]) = (x.to_le_bytes(), y.to_le_bytes());
    let (a, b, c, d) = ([a0, a1], [b0, b1], [c0, c1], [d0, d1]);
    let add = |x: [u8; 2], y: [u8; 2]| [x[0] ^ y[0], x[1] ^ y[1]];
    let high = mul_pairs(b, d);
    let low = add(mul_pairs(a, c), mul_pairs([0, TRACE_ONE], high));
    let middle = add(add(mul_pairs(a, d), mul_pairs(b, c)), high);
    u32::from_le_bytes([low[0], low[1], middle[0], middle[1]])
}

/// A factor as the four vectors with which coordinates, permuted by XOR of their indices with 0 to 3, are
/// multiplied. It is linear in the factor.
pub type Parts = [Block; 4];

/// The parts of the element `t`.
pub fn parts(t: u32) -> Parts {
    let columns = [0, 8, 16, 24].map(|shift| mul(t, 1 << shift).to_le_bytes());
    core::array::from_fn(|r| {
        Block::from_bytes(core::array::from_fn(|byte| columns[(byte / 4) ^ r][byte / 4]))
    })
}

fn add_parts(a: Parts, b: Parts) -> Parts {
    core::array::from_fn(|r| a[r] ^ b[r])
}

/// How many parts are not zero for a factor that the first `bits` + 1 basis elements span: of GF(2^8),
/// GF(2^16) or all.
pub(super) fn rank(bits: u32) -> u32 {
    match bits {
        0..8 => 1,
        8..16 => 2,
        _ => 4,
    }
}

/// One factor, with the number of its parts that are not zero.
#[derive(Clone, Copy)]
pub struct Factor {
    pub(super) parts: Parts,
    pub(super) rank: u32,
}

/// The factor of block `b` of any level: Σ of β_{k+1} over the bits k of `b`.
pub fn factor(b: usize) -> Factor {
    let t = (0..usize::BITS).filter(|k| b >> k & 1 == 1).fold(0, |t, k| t ^ BASIS[k as usize + 1]);
    Factor { parts: parts(t), rank: rank(usize::BITS - b.leading_zeros()) }
}

/// Factors of the blocks 2^s·m, for s from 0 to 3, by the low and the high bits of m.
pub(super) struct Scale {
    pub low: [[Block; 1 << LOW]; 4],
    pub high: [[Block; 1 << HIGH]; 4],
}

/// The factors that all transforms share.
pub struct Twiddles {
    pub(super) scales: [Scale; 4],
}

impl Twiddles {
    /// The tables for transforms of up to 2^16 points.
    pub fn new() -> Box<Self> {
        fn table<const N: usize>(shift: usize) -> [[Block; N]; 4] {
            let mut table = [[Block::ZERO; N]; 4];
            for m in 0..N {
                for (row, part) in table.iter_mut().zip(factor(m << shift).parts) {
                    row[m] = part;
                }
            }
            table
        }
        let scale = |s: usize| Scale { low: table(s), high: table(s + LOW as usize) };
        Box::new(Twiddles { scales: [0, 1, 2, 3].map(scale) })
    }
}

/// What a coset adds to the factors of each level: transform `v` is on the points v·2^log + 0, 1, ….
pub struct Coset {
    pub(super) levels: [Parts; LEVELS],
    /// How many bits its index has.
    pub(super) bits: u32,
}

impl Coset {
    /// The coset of index `v`.
    pub fn new(v: usize) -> Self {
        Coset {
            levels: core::array::from_fn(|level| factor(v << level).parts),
            bits: v.checked_ilog2().map_or(0, |b| b + 1),
        }
    }

    /// For four elements of a block in as many cosets, `v` and the three after it; `v` a multiple of 4.
    pub fn four(v: usize) -> Self {
        let mask = |e: usize| Block::new(0x0000_00ff_0000_00ff_0000_00ff_0000_00ff << (8 * e));
        let mut all = Coset { levels: [[Block::ZERO; 4]; LEVELS], bits: 0 };
        for e in 0..4 {
            let one = Coset::new(v + e);
            for (all, one) in all.levels.iter_mut().zip(one.levels) {
                *all = add_parts(*all, one.map(|part| part & mask(e)));
            }
            all.bits = one.bits;
        }
        all
    }

    /// How many parts the factors down to `level` need.
    pub(super) fn rank(&self, level: u32) -> u32 {
        rank(self.bits + level)
    }
}

/// Parts of 1, Y, Z and YZ: what the coordinates of a factor are multiplied with to make its parts.
pub(super) static UNITS: LazyLock<[Parts; 4]> =
    LazyLock::new(|| [0, 8, 16, 24].map(|shift| parts(1 << shift)));

/// `SPREAD[i][e]` picks coordinate i of element e for all bytes.
#[cfg(target_arch = "x86_64")]
pub(super) static SPREAD: [[Block; 4]; 4] = {
    let mut table = [[Block::ZERO; 4]; 4];
    let mut k = 0;
    while k < 16 {
        table[k / 4][k % 4] = Block::from_bytes([k as u8; 16]);
        k += 1;
    }
    table
};
