//! Products of polynomials over GF(2) with millions of coefficients, for 128 columns at once, one factor
//! prepared.
//!
//! The columns stand side by side: coefficient k of all of them is one block. A block is four elements of
//! GF(2^32), by which polynomials with binary coefficients multiply as by themselves, so the columns are
//! never transposed nor packed. Both factors are evaluated at points of GF(2^32) by an additive FFT
//! (Lin–Chung–Han, FOCS '14, in the Cantor basis of Gao–Mateer 2010, where the change of basis is XOR only),
//! multiplied there, and interpolated.
//!
//! Coefficients are split into *units* of 2^16: in the novel basis the polynomial is one in s = x^65536 + x
//! whose coefficients are units. Columns of units are transformed first, as many points as are needed and no
//! more, then each unit for itself while it is in cache: forward, product, inverse.

use crate::simd::Backend;
use crate::simd::gf2x::{self as kernel, Coset, Factor, MAX_LOG, MIN_LOG, Twiddles};
use crate::{BitVec, Block, Buffer};

/// Coefficients of a unit that are transformed together across units.
const CHUNK: usize = 64;

/// A factor with binary coefficients, of many products, evaluated once.
pub struct Prepared {
    values: Buffer,
    twiddles: Box<Twiddles>,
    shape: Shape,
    factor_len: usize,
}

/// Polynomials of `units` units of 2^`log` coefficients.
struct Shape {
    log: u32,
    units: usize,
    /// The factors of the transforms across units.
    factors: Vec<Factor>,
}

impl Prepared {
    /// Prepares the factor with the coefficients `bits` *in the novel basis*, for products with up to
    /// `other_len` coefficients. That basis has one polynomial of each degree with coefficients in GF(2), so
    /// a random factor may be drawn in it as well as in powers of x. Panics when the product passes 2^31
    /// coefficients.
    pub fn new(bits: &BitVec, other_len: usize) -> Self {
        let len = (bits.len() + other_len).max(1);
        assert!(len <= 1 << 31, "product too long");
        let log = len.next_power_of_two().ilog2().clamp(MIN_LOG, MAX_LOG);
        let units = len.div_ceil(1 << log);
        let factors = (0..units.next_power_of_two() / 2).map(kernel::factor).collect();
        let shape = Shape { log, units, factors };
        let twiddles = Twiddles::new();
        let values = evaluate_bits(bits, &shape, &twiddles);
        Prepared { values, twiddles, shape, factor_len: bits.len() }
    }

    /// Blocks that [`multiply`](Self::multiply) works on.
    pub fn len(&self) -> usize {
        self.shape.units << self.shape.log
    }

    /// Whether there is nothing to multiply with: never.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Multiplies the polynomials with the coefficients `data[..len]` in place; what follows them must be
    /// zero.
    ///
    /// Panics unless `data` has [`len`](Self::len) blocks and the product fits.
    pub fn multiply(&self, data: &mut [Block], len: usize) {
        let Shape { log, units, .. } = self.shape;
        assert!(data.len() == self.len() && self.factor_len + len <= data.len().max(1), "product shapes");
        let backend = Backend::active();
        let used = len.div_ceil(1 << log);
        split(&mut data[..used << log], log);
        data[..used << log].chunks_exact_mut(1 << log).for_each(|unit| to_novel(unit, 1));
        self.shape.columns(data, |shape, rows| shape.forward(rows, used, CHUNK));
        let values = self.values.chunks_exact(1 << (log - 2));
        for (v, (unit, values)) in data.chunks_exact_mut(1 << log).zip(values).enumerate() {
            let coset = Coset::new(v);
            kernel::forward(backend, unit, &self.twiddles, &coset);
            kernel::multiply(backend, unit, values);
            kernel::inverse(backend, unit, &self.twiddles, &coset);
        }
        self.shape.columns(data, |shape, rows| shape.inverse(rows, CHUNK));
        data.chunks_exact_mut(1 << log).for_each(|unit| from_novel(unit, 1));
        debug_assert_eq!(data.len(), units << log);
        unsplit(data, log);
    }
}

/// The values of the factor `bits` at all points: element e of block i of a unit is the value at its point 4
/// i + e.
fn evaluate_bits(bits: &BitVec, shape: &Shape, twiddles: &Twiddles) -> Buffer {
    let quarter = 1 << (shape.log - 2);
    let mut values = Buffer::zeros(shape.units * quarter);
    for (two, byte) in values.chunks_mut(2).zip(bits.as_bytes()) {
        for (half, block) in two.iter_mut().enumerate() {
            let spread = (0..4).fold(0, |word, e| word | (*byte as u128 >> (4 * half + e) & 1) << (8 * e));
            *block = Block::new(spread);
        }
    }
    let used = bits.len().div_ceil(1 << shape.log);
    shape.columns_of(&mut values, quarter, |shape, rows| shape.forward_novel(rows, used, CHUNK));
    // Four units at a time, one an element.
    let mut scratch = Buffer::zeros(1 << shape.log);
    for (f, four) in values.chunks_mut(4 * quarter).enumerate() {
        for (i, points) in scratch.as_chunks_mut::<4>().0.iter_mut().enumerate() {
            *points = core::array::from_fn(|u| four.get(u * quarter + i).copied().unwrap_or(Block::ZERO));
            swap_elements(points);
        }
        kernel::forward(Backend::active(), &mut scratch, twiddles, &Coset::four(4 * f));
        for (i, points) in scratch.as_chunks_mut::<4>().0.iter_mut().enumerate() {
            swap_elements(points);
            for (u, unit) in four.chunks_mut(quarter).enumerate() {
                unit[i] = points[u];
            }
        }
    }
    values
}

/// Element e of block u becomes element u of block e.
fn swap_elements(blocks: &mut [Block; 4]) {
    const EVEN: u128 = 0x00ff_00ff_00ff_00ff_00ff_00ff_00ff_00ff;
    const LOW: u128 = 0x0000_ffff_0000_ffff_0000_ffff_0000_ffff;
    let mut x = blocks.map(Block::to_u128);
    for (a, b, shift, mask) in [(0, 1, 8, EVEN), (2, 3, 8, EVEN), (0, 2, 16, LOW), (1, 3, 16, LOW)] {
        let t = (x[a] >> shift ^ x[b]) & mask;
        x[b] ^= t;
        x[a] ^= t << shift;
    }
    *blocks = x.map(Block::new);
}

impl Shape {
    /// Runs `work` on the columns across the units of `data`, a chunk of each unit at a time.
    fn columns(&self, data: &mut [Block], work: impl Fn(&Self, &mut [Block])) {
        self.columns_of(data, 1 << self.log, work);
    }

    /// [`columns`](Self::columns), a unit being `stride` blocks: a multiple of [`CHUNK`] if there are
    /// several.
    fn columns_of(&self, data: &mut [Block], stride: usize, work: impl Fn(&Self, &mut [Block])) {
        if self.units == 1 {
            return;
        }
        // A copy, for the chunks of all units fall on the same lines of a cache.
        let mut rows = Buffer::zeros(self.units.next_power_of_two() * CHUNK);
        for start in (0..stride).step_by(CHUNK) {
            for (row, unit) in rows.chunks_exact_mut(CHUNK).zip(data.chunks_exact(stride)) {
                row.copy_from_slice(&unit[start..start + CHUNK]);
            }
            rows[self.units * CHUNK..].fill(Block::ZERO);
            work(self, &mut rows);
            for (row, unit) in rows.chunks_exact(CHUNK).zip(data.chunks_exact_mut(stride)) {
                unit[start..start + CHUNK].copy_from_slice(row);
            }
        }
    }

    /// From the first `used` coefficients, rows of `row` blocks, to values.
    fn forward(&self, rows: &mut [Block], used: usize, row: usize) {
        to_novel(&mut rows[..used.next_power_of_two() * row], row);
        self.forward_novel(rows, used, row);
    }

    /// [`forward`](Self::forward) from the novel basis.
    fn forward_novel(&self, rows: &mut [Block], used: usize, row: usize) {
        evaluate(&self.factors, rows, row, 0, used, self.units);
    }

    /// From values to coefficients.
    fn inverse(&self, rows: &mut [Block], row: usize) {
        interpolate(&self.factors, rows, row, 0, self.units);
        from_novel(rows, row);
    }
}

/// The first `wanted` values of block `b` from its first `used` coefficients, the others being zero.
fn evaluate(factors: &[Factor], rows: &mut [Block], row: usize, b: usize, used: usize, wanted: usize) {
    let count = rows.len() / row;
    if wanted == 0 || count == 1 {
        return;
    }
    let half = count / 2;
    let (left, right) = rows.split_at_mut(half * row);
    let both = used.saturating_sub(half) * row;
    kernel::add_product(Backend::active(), &mut left[..both], &right[..both], &factors[b]);
    evaluate_right(left, right, both, used.min(half) * row, wanted > half);
    evaluate(factors, left, row, 2 * b, used.min(half), wanted.min(half));
    evaluate(factors, right, row, 2 * b + 1, used.min(half), wanted.saturating_sub(half));
}

/// The right half of a butterfly: the sum where both halves have coefficients, else a copy.
fn evaluate_right(left: &[Block], right: &mut [Block], both: usize, used: usize, wanted: bool) {
    if wanted {
        kernel::add(Backend::active(), &mut right[..both], &left[..both]);
        right[both..used].copy_from_slice(&left[both..used]);
    }
}

/// The inverse of [`evaluate`]: `rows` are `known` values, then coefficients; all become coefficients.
fn interpolate(factors: &[Factor], rows: &mut [Block], row: usize, b: usize, known: usize) {
    let count = rows.len() / row;
    if known == 0 || count == 1 {
        return;
    }
    let backend = Backend::active();
    let half = count / 2;
    let (left, right) = rows.split_at_mut(half * row);
    if known <= half {
        // The right half has coefficients only; take them out of the left half and put them back.
        let rest = known * row..;
        kernel::add_product(backend, &mut left[rest.clone()], &right[rest], &factors[b]);
        interpolate(factors, left, row, 2 * b, known);
    } else {
        interpolate(factors, left, row, 2 * b, half);
        let split = (known - half) * row;
        kernel::add(backend, &mut right[split..], &left[split..]);
        interpolate(factors, right, row, 2 * b + 1, known - half);
        kernel::add(backend, right, left);
    }
    kernel::add_product(backend, left, right, &factors[b]);
}

/// Adds `len` blocks from `from` on to those from `to` on, which are before them.
fn add(data: &mut [Block], to: usize, from: usize, len: usize) {
    let (low, high) = data.split_at_mut(from);
    kernel::add(Backend::active(), &mut low[to..to + len], &high[..len]);
}

/// Splits a polynomial of whole units by the powers of s = x^(2^`log`) + x, highest power of two first.
fn split(data: &mut [Block], log: u32) {
    let levels = (data.len() >> log).next_power_of_two().ilog2();
    for level in (0..levels).rev() {
        let (half, step) = (1 << (log + level), 1 << level);
        for block in data.chunks_mut(2 * half).filter(|block| block.len() > half) {
            let over = (block.len() - half + step).saturating_sub(half);
            let from = block.len() - over;
            add(block, half, from, over);
            add(block, step, half, from - half);
        }
    }
}

/// The inverse of [`split`].
fn unsplit(data: &mut [Block], log: u32) {
    let levels = (data.len() >> log).next_power_of_two().ilog2();
    for level in 0..levels {
        let (half, step) = (1 << (log + level), 1 << level);
        for block in data.chunks_mut(2 * half).filter(|block| block.len() > half) {
            let over = (block.len() - half + step).saturating_sub(half);
            let from = block.len() - over;
            add(block, step, half, from - half);
            add(block, half, from, over);
        }
    }
}

/// log2 of q, where elements are split by powers of x^q + x: the largest 2^k below `log`.
fn split_log(log: u32) -> u32 {
    (log - 1).checked_ilog2().map_or(0, |k| 1 << k)
}

/// From monomials to products of subspace polynomials, which are x^(2^2^k) + x at the levels that are split
/// here. A coefficient is `unit` blocks.
fn to_novel(data: &mut [Block], unit: usize) {
    if let (1, Ok(small)) = (unit, <&mut [Block; 16]>::try_from(&mut *data)) {
        return to_novel_16(small);
    }
    let log = (data.len() / unit).ilog2();
    if log <= 1 {
        return;
    }
    let q_log = split_log(log);
    to_powers(data, unit << q_log, q_log);
    for row in data.chunks_exact_mut(unit << q_log) {
        to_novel(row, unit);
    }
    to_novel(data, unit << q_log);
}

/// Splits by the powers of x^q + x, `q` blocks being q coefficients; depth first, so that small blocks are
/// done in cache.
fn to_powers(data: &mut [Block], q: usize, q_log: u32) {
    if data.len() > q {
        let half = data.len() / 2;
        let step = half >> q_log;
        add(data, half, 2 * half - step, step);
        add(data, step, half, half - step);
        let (left, right) = data.split_at_mut(half);
        to_powers(left, q, q_log);
        to_powers(right, q, q_log);
    }
}

/// The inverse of [`to_novel`].
fn from_novel(data: &mut [Block], unit: usize) {
    if let (1, Ok(small)) = (unit, <&mut [Block; 16]>::try_from(&mut *data)) {
        return from_novel_16(small);
    }
    let log = (data.len() / unit).ilog2();
    if log <= 1 {
        return;
    }
    let q_log = split_log(log);
    from_novel(data, unit << q_log);
    for row in data.chunks_exact_mut(unit << q_log) {
        from_novel(row, unit);
    }
    from_powers(data, unit << q_log, q_log);
}

/// The inverse of [`to_powers`].
fn from_powers(data: &mut [Block], q: usize, q_log: u32) {
    if data.len() > q {
        let half = data.len() / 2;
        let (left, right) = data.split_at_mut(half);
        from_powers(left, q, q_log);
        from_powers(right, q, q_log);
        let step = half >> q_log;
        add(data, step, half, half - step);
        add(data, half, 2 * half - step, step);
    }
}

/// The XORs of a block of 16, target and source, in order.
const STEPS_16: [(usize, usize); 32] = {
    let mut steps = [(0, 0); 32];
    let mut n = 0;
    // By powers of x^4 + x: 16 coefficients, then twice 8.
    let mut i = 0;
    while i < 8 {
        // Target 8 + j takes 14 + j first, then target 2 + j takes 8 + j.
        steps[n] = if i < 2 { (8 + i, 14 + i) } else { (i, 6 + i) };
        n += 1;
        i += 1;
    }
    let mut block = 0;
    while block < 16 {
        let mut i = 0;
        while i < 4 {
            steps[n] = if i == 0 { (block + 4, block + 7) } else { (block + i, block + 3 + i) };
            n += 1;
            i += 1;
        }
        block += 8;
    }
    // Fours by powers of x^2 + x, within rows and across them.
    let mut row = 0;
    while row < 16 {
        steps[n] = (row + 2, row + 3);
        steps[n + 1] = (row + 1, row + 2);
        n += 2;
        row += 4;
    }
    let mut i = 0;
    while i < 4 {
        steps[n] = (8 + i, 12 + i);
        n += 1;
        i += 1;
    }
    let mut i = 0;
    while i < 4 {
        steps[n] = (4 + i, 8 + i);
        n += 1;
        i += 1;
    }
    assert!(n == 32);
    steps
};

fn to_novel_16(data: &mut [Block; 16]) {
    let mut x = *data;
    for (to, from) in &STEPS_16 {
        x[*to] ^= x[*from];
    }
    *data = x;
}

fn from_novel_16(data: &mut [Block; 16]) {
    let mut x = *data;
    for (to, from) in STEPS_16.iter().rev() {
        x[*to] ^= x[*from];
    }
    *data = x;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Prg;

    fn random(len: usize, prg: &mut Prg) -> Vec<Block> {
        let mut blocks = vec![Block::ZERO; len];
        prg.fill_blocks(&mut blocks);
        blocks
    }

    #[test]
    fn the_basis_is_cantors() {
        let basis = &*kernel::BASIS;
        for (i, pair) in basis.windows(2).enumerate() {
            assert_eq!(kernel::mul(pair[1], pair[1]) ^ pair[1], pair[0]);
            // Subfields come first, which is what a factor's rank counts on.
            assert!(i + 1 >= 8 || pair[1] < 1 << 8);
            assert!(i + 1 >= 16 || pair[1] < 1 << 16);
        }
    }

    #[test]
    fn conversions_invert_each_other() {
        let mut prg = Prg::from_seed(Block::new(1));
        for log in 4..14 {
            let before = random(1 << log, &mut prg);
            let mut data = before.clone();
            to_novel(&mut data, 1);
            assert!(data != before);
            from_novel(&mut data, 1);
            assert!(data == before, "2^{log}");
        }
        for units in 1..12 {
            let before = random(units << 8, &mut prg);
            let mut data = before.clone();
            split(&mut data, 8);
            assert!(units == 1 || data != before);
            unsplit(&mut data, 8);
            assert!(data == before, "{units} units");
        }
    }

    /// The factor's coefficients in powers of x.
    fn monomials(bits: &BitVec) -> Vec<usize> {
        let log = bits.len().next_power_of_two().ilog2().clamp(4, MAX_LOG);
        let units = bits.len().div_ceil(1 << log);
        let mut data = vec![Block::ZERO; units.next_power_of_two() << log];
        (0..bits.len()).for_each(|i| data[i] = Block::new(bits.get(i) as u128));
        from_novel(&mut data, 1 << log);
        data.chunks_exact_mut(1 << log).for_each(|unit| from_novel(unit, 1));
        data.truncate(units << log);
        unsplit(&mut data, log);
        (0..data.len()).filter(|&i| data[i].lsb()).collect()
    }

    fn check_product(bits: &BitVec, other_len: usize, prg: &mut Prg) {
        let other = random(other_len, prg);
        let prepared = Prepared::new(bits, other_len);
        let mut data = vec![Block::ZERO; prepared.len()];
        data[..other_len].copy_from_slice(&other);
        prepared.multiply(&mut data, other_len);
        let mut expected = vec![Block::ZERO; data.len()];
        for i in monomials(bits) {
            expected[i..i + other_len].iter_mut().zip(&other).for_each(|(sum, x)| *sum ^= *x);
        }
        assert!(data == expected, "{} by {other_len}", bits.len());
    }

    #[test]
    fn products_equal_the_schoolbook() {
        let mut prg = Prg::from_seed(Block::new(2));
        for (a, b) in [(1, 1), (3, 5), (40, 70), (128, 128), (700, 1700), (2500, 1000)] {
            let bits = BitVec::random(a, &mut prg);
            check_product(&bits, b, &mut prg);
        }
    }

    /// Several units: a factor of few terms in powers of x cannot be had, so of few rows in the novel basis.
    #[test]
    fn products_of_many_units_equal_the_schoolbook() {
        let mut prg = Prg::from_seed(Block::new(4));
        for (a, b) in [(3 << 16, 100), (100, 3 << 16), (131_100, 70_000), (66_000, 66_000), (300_000, 200)] {
            let mut bits = BitVec::zeros(a);
            for _ in 0..6 {
                bits.set(prg.below(a as u64) as usize, true);
            }
            bits.set(a - 1, true);
            check_product(&bits, b, &mut prg);
        }
    }

    #[test]
    fn every_backend_gives_the_same_values() {
        let mut prg = Prg::from_seed(Block::new(3));
        let twiddles = Twiddles::new();
        for (log, v) in [(6, 0), (6, 5), (7, 3), (8, 200), (9, 0), (10, 77), (11, 1), (12, 0), (13, 300)] {
            let coset = Coset::new(v);
            let data = random(1 << log, &mut prg);
            let values = random(1 << (log - 2), &mut prg);
            let (mut points, mut products) = (data.clone(), data.clone());
            kernel::forward(Backend::PORTABLE, &mut points, &twiddles, &coset);
            kernel::multiply(Backend::PORTABLE, &mut products, &values);
            for backend in Backend::available() {
                let mut mine = data.clone();
                kernel::forward(backend, &mut mine, &twiddles, &coset);
                assert!(mine == points, "{} 2^{log} coset {v}", backend.name());
                kernel::inverse(backend, &mut mine, &twiddles, &coset);
                assert!(mine == data, "{} 2^{log} coset {v} back", backend.name());
                kernel::multiply(backend, &mut mine, &values);
                assert!(mine == products, "{} products", backend.name());
                for b in [0, 100, 1000, 100_000] {
                    let t = kernel::factor(b);
                    let (mut mine, mut expected) = (data[..13].to_vec(), data[..13].to_vec());
                    kernel::add_product(backend, &mut mine, &points[..13], &t);
                    kernel::add_product(Backend::PORTABLE, &mut expected, &points[..13], &t);
                    kernel::add(backend, &mut mine, &data[1..14]);
                    kernel::add(Backend::PORTABLE, &mut expected, &data[1..14]);
                    assert!(mine == expected, "{} factor {b}", backend.name());
                }
            }
        }
    }

    /// The products of coordinates against the field's own.
    #[test]
    fn blocks_multiply_as_elements() {
        let mut prg = Prg::from_seed(Block::new(5));
        let element = |x: Block, e: usize| {
            let bytes = x.to_bytes();
            u32::from_le_bytes([bytes[e], bytes[4 + e], bytes[8 + e], bytes[12 + e]])
        };
        for _ in 0..20 {
            let (values, data) = (random(1, &mut prg), random(4, &mut prg));
            let mut product = data.clone();
            kernel::multiply(Backend::PORTABLE, &mut product, &values);
            for i in 0..4 {
                for e in 0..4 {
                    assert_eq!(
                        element(product[i], e),
                        kernel::mul(element(data[i], e), element(values[0], i))
                    );
                }
            }
        }
    }
}
