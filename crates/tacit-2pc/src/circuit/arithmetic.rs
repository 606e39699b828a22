//! Arithmetic of integers over a [`Builder`].
//!
//! Bits stand lowest first. AND counts, for n bits: addition and subtraction n−1 (n with carry), comparison
//! n, equality n−1, multiplexer n, full multiplication at most 2n²−n (Karatsuba below that from 20 bits on),
//! squaring about half of it, division n²+3n, Montgomery multiplication by a public modulus the product plus
//! n²+2n.

use super::{Bit, Builder, Int, Integer, Uint};
use std::collections::VecDeque;

/// A public odd modulus, for Montgomery arithmetic.
#[derive(Clone, Debug)]
pub struct Modulus {
    bits: Vec<bool>,
}

impl Modulus {
    /// From bits, lowest first; `None` unless odd and at least 3.
    pub fn new(mut bits: Vec<bool>) -> Option<Modulus> {
        while bits.last() == Some(&false) {
            bits.pop();
        }
        (bits.len() >= 2 && bits[0]).then_some(Modulus { bits })
    }

    /// The number of bits n; residues have n bits, and the Montgomery factor is 2^n.
    pub fn width(&self) -> usize {
        self.bits.len()
    }

    /// Its bits, lowest first.
    pub(super) fn bits(&self) -> &[bool] {
        &self.bits
    }

    /// 2^exponent modulo this.
    pub(super) fn power_of_two(&self, exponent: usize) -> Vec<bool> {
        let n = self.bits.len();
        let mut x = vec![false; n + 1];
        x[0] = true;
        for _ in 0..exponent {
            x.pop();
            x.insert(0, false);
            let mut difference = vec![false; n + 1];
            let mut borrow = false;
            for (i, d) in difference.iter_mut().enumerate() {
                let m = self.bits.get(i).copied().unwrap_or(false);
                *d = x[i] ^ m ^ borrow;
                borrow = (!x[i] & (m | borrow)) | (m & borrow);
            }
            if !borrow {
                x = difference;
            }
        }
        x.truncate(n);
        x
    }
}

pub(super) fn constant_bits(bits: &[bool]) -> Vec<Bit> {
    bits.iter().map(|&b| Bit::constant(b)).collect()
}

/// From this width on the three half-size products of Karatsuba need fewer AND gates than the school method.
const KARATSUBA_FROM: usize = 20;

/// Up to this width a stream's parts of long products are components: their plans are small, and wide enough
/// to fill the vectors.
const COMPONENT_UP_TO: usize = 96;

/// Addition and comparison.
impl Builder {
    /// Bit by bit `x ⊕ y`. Panics when the widths differ.
    pub fn xor_bits<I: Integer>(&mut self, x: &I, y: &I) -> I {
        self.zip(x, y, Self::xor)
    }

    /// Bit by bit `x ∧ y`. Panics when the widths differ.
    pub fn and_bits<I: Integer>(&mut self, x: &I, y: &I) -> I {
        self.zip(x, y, Self::and)
    }

    /// Bit by bit `x ∨ y`. Panics when the widths differ.
    pub fn or_bits<I: Integer>(&mut self, x: &I, y: &I) -> I {
        self.zip(x, y, Self::or)
    }

    /// Bit by bit `¬x`.
    pub fn not_bits<I: Integer>(&mut self, x: &I) -> I {
        I::from_bits(x.bits().iter().map(|&b| !b).collect())
    }

    fn zip<I: Integer>(&mut self, x: &I, y: &I, op: impl Fn(&mut Self, Bit, Bit) -> Bit) -> I {
        assert_eq!(x.width(), y.width(), "operands of different widths");
        I::from_bits(x.bits().iter().zip(y.bits()).map(|(&a, &b)| op(self, a, b)).collect())
    }

    /// `x + y + carry` in as many bits as `x`, and the carry out (whose gate is left out if it is not used).
    pub(crate) fn add_slices(&mut self, x: &[Bit], y: &[Bit], carry: Bit) -> (Vec<Bit>, Bit) {
        assert_eq!(x.len(), y.len(), "operands of different widths");
        let mut carry = carry;
        let mut sum = Vec::with_capacity(x.len());
        for (&a, &b) in x.iter().zip(y) {
            let half = self.xor(a, b);
            sum.push(self.xor(half, carry));
            carry = self.majority(a, b, carry);
        }
        (sum, carry)
    }

    fn sub_slices(&mut self, x: &[Bit], y: &[Bit]) -> (Vec<Bit>, Bit) {
        let negated: Vec<Bit> = y.iter().map(|&b| !b).collect();
        let (difference, carry) = self.add_slices(x, &negated, Bit::ONE);
        (difference, !carry)
    }

    /// `x + y` modulo 2^n: n−1 AND gates.
    pub fn add<I: Integer>(&mut self, x: &I, y: &I) -> I {
        I::from_bits(self.add_slices(x.bits(), y.bits(), Bit::ZERO).0)
    }

    /// `x + y` in n+1 bits: n AND gates.
    pub fn add_wide<I: Integer>(&mut self, x: &I, y: &I) -> I {
        let width = x.width() + 1;
        self.add(&x.resize(width), &y.resize(width))
    }

    /// `x − y` modulo 2^n: n−1 AND gates.
    pub fn sub<I: Integer>(&mut self, x: &I, y: &I) -> I {
        I::from_bits(self.sub_slices(x.bits(), y.bits()).0)
    }

    /// `−x` modulo 2^n.
    pub fn neg<I: Integer>(&mut self, x: &I) -> I {
        let zero = I::constant(0, x.width());
        self.sub(&zero, x)
    }

    /// `if negate { −x } else { x }`: n−1 AND gates.
    pub(crate) fn negate_if<I: Integer>(&mut self, negate: Bit, x: &I) -> I {
        let flipped: Vec<Bit> = x.bits().iter().map(|&b| self.xor(b, negate)).collect();
        let zero = vec![Bit::ZERO; flipped.len()];
        I::from_bits(self.add_slices(&flipped, &zero, negate).0)
    }

    /// The absolute value, as an unsigned number.
    pub fn abs(&mut self, x: &Int) -> Uint {
        self.negate_if(x.sign(), x).as_uint()
    }

    /// The sum of all `terms` modulo 2^width, column by column: fewer AND gates and less depth than adders in
    /// a row.
    pub fn sum<I: Integer>(&mut self, terms: &[I], width: usize) -> I {
        let mut columns = vec![Vec::new(); width];
        for term in terms {
            for (column, &bit) in columns.iter_mut().zip(term.resize(width).bits()) {
                column.push(bit);
            }
        }
        I::from_bits(self.sum_columns(columns))
    }

    /// Adds columns of bits of equal weight, lowest first; carries past the last column are dropped.
    pub(crate) fn sum_columns(&mut self, columns: Vec<Vec<Bit>>) -> Vec<Bit> {
        let width = columns.len();
        let mut carries: Vec<Bit> = Vec::new();
        let mut sum = Vec::with_capacity(width);
        for (i, column) in columns.into_iter().enumerate() {
            let last = i + 1 == width;
            let mut queue: VecDeque<Bit> = VecDeque::new();
            let mut one = false;
            let mut next = Vec::new();
            for bit in column.into_iter().chain(carries.drain(..)) {
                match bit.known() {
                    None => queue.push_back(bit),
                    Some(false) => {}
                    Some(true) => {
                        if one {
                            next.push(Bit::ONE);
                        }
                        one = !one;
                    }
                }
            }
            if last {
                let parity = queue.into_iter().fold(Bit::constant(one), |acc, bit| self.xor(acc, bit));
                sum.push(parity);
                continue;
            }
            while queue.len() >= 3 || (queue.len() == 2) {
                let a = queue.pop_front().unwrap_or(Bit::ZERO);
                let b = queue.pop_front().unwrap_or(Bit::ZERO);
                // A constant one goes last: it is free beside a single bit.
                let c = match queue.pop_front() {
                    Some(c) => c,
                    None => Bit::constant(core::mem::take(&mut one)),
                };
                next.push(self.majority(a, b, c));
                let half = self.xor(a, b);
                queue.push_back(self.xor(half, c));
            }
            match (queue.pop_front(), one) {
                (Some(bit), true) => {
                    next.push(bit);
                    sum.push(!bit);
                }
                (Some(bit), false) => sum.push(bit),
                (None, one) => sum.push(Bit::constant(one)),
            }
            carries = next;
        }
        sum
    }

    /// The number of ones among `bits`.
    pub fn count_ones(&mut self, bits: &[Bit]) -> Uint {
        let width = usize::BITS as usize - bits.len().leading_zeros() as usize;
        let mut columns = vec![Vec::new(); width.max(1)];
        columns[0] = bits.to_vec();
        Uint::from_bits(self.sum_columns(columns))
    }

    /// The number of places where `x` and `y` differ.
    pub fn hamming_distance<I: Integer>(&mut self, x: &I, y: &I) -> Uint {
        let difference = self.xor_bits(x, y);
        self.count_ones(difference.bits())
    }

    /// `x = y`: n−1 AND gates.
    pub fn eq<I: Integer>(&mut self, x: &I, y: &I) -> Bit {
        let same: Vec<Bit> = self.xor_bits(x, y).bits().iter().map(|&b| !b).collect();
        self.all(&same)
    }

    /// `x < y`: n AND gates.
    pub fn lt<I: Integer>(&mut self, x: &I, y: &I) -> Bit {
        let (mut x, mut y) = (x.bits().to_vec(), y.bits().to_vec());
        if I::SIGNED
            && let (Some(a), Some(b)) = (x.last_mut(), y.last_mut())
        {
            (*a, *b) = (!*a, !*b);
        }
        self.sub_slices(&x, &y).1
    }

    /// `x ≤ y`: n AND gates.
    pub fn le<I: Integer>(&mut self, x: &I, y: &I) -> Bit {
        !self.lt(y, x)
    }

    /// `if choice { then } else { otherwise }`: n AND gates.
    pub fn mux<I: Integer>(&mut self, choice: Bit, then: &I, otherwise: &I) -> I {
        self.zip(then, otherwise, |b, t, o| b.mux_bit(choice, t, o))
    }

    /// The smaller of the two.
    pub fn min<I: Integer>(&mut self, x: &I, y: &I) -> I {
        let less = self.lt(x, y);
        self.mux(less, x, y)
    }

    /// The larger of the two.
    pub fn max<I: Integer>(&mut self, x: &I, y: &I) -> I {
        let less = self.lt(x, y);
        self.mux(less, y, x)
    }

    /// The smaller and the larger of the two: 2n AND gates.
    pub fn compare_exchange<I: Integer>(&mut self, x: &I, y: &I) -> (I, I) {
        let swap = self.lt(y, x);
        let difference = self.xor_bits(x, y);
        let masked = I::from_bits(difference.bits().iter().map(|&d| self.and(d, swap)).collect());
        (self.xor_bits(x, &masked), self.xor_bits(y, &masked))
    }
}

/// Shifts.
impl Builder {
    /// `x · 2^by`, the same width.
    pub fn shl<I: Integer>(&mut self, x: &I, by: usize) -> I {
        let n = x.width();
        I::from_bits((0..n).map(|i| if i >= by { x.bits()[i - by] } else { Bit::ZERO }).collect())
    }

    /// `x / 2^by`, rounded down: signed numbers keep their sign.
    pub fn shr<I: Integer>(&mut self, x: &I, by: usize) -> I {
        let wide = x.resize(x.width() + by);
        I::from_bits(wide.bits()[by..].to_vec())
    }

    /// The bits moved up cyclically.
    pub fn rotate_left<I: Integer>(&mut self, x: &I, by: usize) -> I {
        let mut bits = x.bits().to_vec();
        let n = bits.len();
        bits.rotate_right(if n == 0 { 0 } else { by % n });
        I::from_bits(bits)
    }

    /// `x · 2^by` for a secret `by`; zero once everything is shifted out.
    pub fn shl_by<I: Integer>(&mut self, x: &I, by: &Uint) -> I {
        let zero = I::constant(0, x.width());
        self.shift_by(x, by, &zero, Self::shl)
    }

    /// `x / 2^by` for a secret `by`, rounded down.
    pub fn shr_by<I: Integer>(&mut self, x: &I, by: &Uint) -> I {
        let gone = x.resize(0).resize(x.width());
        let gone = if I::SIGNED { self.shr(x, x.width()) } else { gone };
        self.shift_by(x, by, &gone, Self::shr)
    }

    fn shift_by<I: Integer>(
        &mut self,
        x: &I,
        by: &Uint,
        gone: &I,
        shift: impl Fn(&mut Self, &I, usize) -> I,
    ) -> I {
        let n = x.width();
        let stages = by.width().min(usize::BITS as usize - n.leading_zeros() as usize);
        let mut out = x.clone();
        for stage in 0..stages {
            let moved = shift(self, &out, 1 << stage);
            out = self.mux(by.bits()[stage], &moved, &out);
        }
        let beyond = self.any(&by.bits()[stages..]);
        self.mux(beyond, gone, &out)
    }
}

/// Multiplication and division.
impl Builder {
    /// The full product, as wide as both factors together.
    pub fn mul_wide<I: Integer>(&mut self, x: &I, y: &I) -> I {
        let width = x.width() + y.width();
        if !I::SIGNED {
            return I::from_bits(self.product(x.bits(), y.bits()));
        }
        // Two's complement: the top bit weighs −2^(n−1), so subtract each factor where the other is negative.
        let product = self.product(x.bits(), y.bits());
        let correction = |b: &mut Self, of: &I, sign: &I| {
            let sign = sign.bits().last().copied().unwrap_or(Bit::ZERO);
            of.bits().iter().map(|&bit| b.and(bit, sign)).collect::<Vec<_>>()
        };
        let (cx, cy) = (correction(self, x, y), correction(self, y, x));
        let mut out = product;
        for (term, at) in [(cx, y.width()), (cy, x.width())] {
            let high = self.sub_slices(&out[at..], &term).0;
            out.truncate(at);
            out.extend(high);
        }
        debug_assert_eq!(out.len(), width);
        I::from_bits(out)
    }

    /// `x · y` modulo 2^n. Panics when the widths differ.
    pub fn mul<I: Integer>(&mut self, x: &I, y: &I) -> I {
        assert_eq!(x.width(), y.width(), "operands of different widths");
        let n = x.width();
        if n >= 2 * KARATSUBA_FROM {
            // Low half in full, the two cross products modulo 2^(n−h); h ≥ n/2, so the high halves' product
            // is gone.
            let h = n.div_ceil(2);
            let split =
                |v: &I| (Uint::from_bits(v.bits()[..h].to_vec()), Uint::from_bits(v.bits()[h..].to_vec()));
            let ((x0, x1), (y0, y1)) = (split(x), split(y));
            let low = self.product(x0.bits(), y0.bits());
            let cross = self.mul(&x0.resize(n - h), &y1);
            let cross2 = self.mul(&x1, &y0.resize(n - h));
            let mut above = low[h..].to_vec();
            above.resize(n - h, Bit::ZERO);
            let high = self.sum(&[Uint::from_bits(above), cross, cross2], n - h);
            return I::from_bits([&low[..h], high.bits()].concat());
        }
        let mut columns = vec![Vec::new(); n];
        for (i, &a) in x.bits().iter().enumerate() {
            for (j, &b) in y.bits()[..n - i].iter().enumerate() {
                columns[i + j].push(self.and(a, b));
            }
        }
        I::from_bits(self.sum_columns(columns))
    }

    /// x², full width: about half a product.
    pub fn square_wide(&mut self, x: &Uint) -> Uint {
        Uint::from_bits(self.square_slice(x.bits()))
    }

    fn product(&mut self, x: &[Bit], y: &[Bit]) -> Vec<Bit> {
        if x == y {
            return self.square_slice(x);
        }
        let (n, m) = (x.len(), y.len());
        if n == m && n >= KARATSUBA_FROM {
            return self.part(x, y);
        }
        let mut columns = vec![Vec::new(); n + m];
        for (i, &a) in x.iter().enumerate() {
            for (j, &b) in y.iter().enumerate() {
                columns[i + j].push(self.and(a, b));
            }
        }
        self.sum_columns(columns)
    }

    fn square_slice(&mut self, x: &[Bit]) -> Vec<Bit> {
        let n = x.len();
        if n >= 2 * KARATSUBA_FROM {
            return self.part(x, x);
        }
        let mut columns = vec![Vec::new(); 2 * n];
        for i in 0..n {
            columns[2 * i].push(x[i]);
            for j in i + 1..n {
                let both = self.and(x[i], x[j]);
                columns[i + j + 1].push(both);
            }
        }
        self.sum_columns(columns)
    }

    /// A part of a long product. In a stream the same gates serve all parts of a width, and what larger parts
    /// leave behind is given back at once.
    fn part(&mut self, x: &[Bit], y: &[Bit]) -> Vec<Bit> {
        if !self.in_region() {
            return self.karatsuba(x, y);
        }
        if x.len() > COMPONENT_UP_TO {
            return self.region(|b| b.karatsuba(x, y));
        }
        let factors = [x, y].map(|bits| Uint::from_bits(bits.to_vec()));
        let product = self.component("product", &factors, |b, factors| {
            vec![Uint::from_bits(b.karatsuba(factors[0].bits(), factors[1].bits()))]
        });
        product.into_iter().flat_map(|product| product.bits).collect()
    }

    /// (x₁·2^h + x₀)(y₁·2^h + y₀) with the middle term (x₀+x₁)(y₀+y₁) − x₀y₀ − x₁y₁.
    fn karatsuba(&mut self, x: &[Bit], y: &[Bit]) -> Vec<Bit> {
        let n = x.len();
        let h = n.div_ceil(2);
        let (x0, x1) = x.split_at(h);
        let (y0, y1) = y.split_at(h);
        let low = self.product(x0, y0);
        let high = self.product(x1, y1);
        let folded = |b: &mut Self, low: &[Bit], high: &[Bit]| {
            let mut high = high.to_vec();
            high.resize(low.len(), Bit::ZERO);
            let (mut sum, carry) = b.add_slices(low, &high, Bit::ZERO);
            sum.push(carry);
            sum
        };
        let xs = folded(self, x0, x1);
        let ys = folded(self, y0, y1);
        let middle = self.product(&xs, &ys);
        let widen = |v: &[Bit], width: usize| {
            let mut v = v.to_vec();
            v.resize(width, Bit::ZERO);
            v
        };
        let outer = self.add_slices(&widen(&low, 2 * h + 1), &widen(&high, 2 * h + 1), Bit::ZERO).0;
        // The difference is below 2^(2h+1), so the top bit of the middle product cancels.
        let middle = self.sub_slices(&middle[..2 * h + 1], &outer).0;
        let joined = [low.as_slice(), &high].concat();
        let above = &joined[h..];
        let sum = self.add_slices(above, &widen(&middle, above.len())[..above.len()], Bit::ZERO).0;
        [&joined[..h], &sum].concat()
    }

    /// Quotient and remainder, rounded towards zero. Unsigned division by zero gives a quotient of all ones
    /// and the dividend as remainder; signed division by zero likewise on the absolute values, with the signs
    /// put back.
    pub fn div_rem<I: Integer>(&mut self, x: &I, y: &I) -> (I, I) {
        assert_eq!(x.width(), y.width(), "operands of different widths");
        if !I::SIGNED {
            let (q, r) = self.div_rem_slices(x.bits(), y.bits());
            return (I::from_bits(q), I::from_bits(r));
        }
        let sign = |v: &I| v.bits().last().copied().unwrap_or(Bit::ZERO);
        let (sx, sy) = (sign(x), sign(y));
        let (ax, ay) = (self.negate_if(sx, x), self.negate_if(sy, y));
        let (q, r) = self.div_rem_slices(ax.bits(), ay.bits());
        let differ = self.xor(sx, sy);
        (self.negate_if(differ, &I::from_bits(q)), self.negate_if(sx, &I::from_bits(r)))
    }

    /// Restoring division; the remainder grows by a bit a step, so early steps are short.
    fn div_rem_slices(&mut self, x: &[Bit], y: &[Bit]) -> (Vec<Bit>, Vec<Bit>) {
        let n = x.len().max(y.len());
        let mut divisor = y.to_vec();
        divisor.resize(n, Bit::ZERO);
        // high[i]: whether the divisor has a one at or above bit i.
        let mut high = vec![Bit::ZERO; n + 1];
        for i in (0..n).rev() {
            high[i] = self.or(high[i + 1], divisor[i]);
        }
        let mut quotient = vec![Bit::ZERO; x.len()];
        let mut remainder: Vec<Bit> = Vec::new();
        for step in (0..x.len()).rev() {
            remainder.insert(0, x[step]);
            let len = remainder.len();
            let known = len.min(n);
            let mut subtrahend = divisor[..known].to_vec();
            subtrahend.resize(len, Bit::ZERO);
            let (difference, borrow) = self.sub_slices(&remainder, &subtrahend);
            let fits = self.and(!borrow, !high[known]);
            quotient[step] = fits;
            remainder = self.mux(fits, &Uint::from_bits(difference), &Uint::from_bits(remainder)).bits;
            remainder.truncate(y.len());
        }
        remainder.resize(y.len(), Bit::ZERO);
        (quotient, remainder)
    }

    /// `x / y`, rounded towards zero; see [`div_rem`](Self::div_rem).
    pub fn div<I: Integer>(&mut self, x: &I, y: &I) -> I {
        self.div_rem(x, y).0
    }

    /// The remainder of `x / y`, with the sign of `x`; see [`div_rem`](Self::div_rem).
    pub(crate) fn rem<I: Integer>(&mut self, x: &I, y: &I) -> I {
        self.div_rem(x, y).1
    }
}

/// Modular arithmetic.
impl Builder {
    /// `x + y` modulo `modulus`, for `x`, `y` below it.
    pub fn mod_add(&mut self, x: &Uint, y: &Uint, modulus: &Uint) -> Uint {
        let sum = self.add_wide(x, y);
        self.reduce_once(sum.bits(), modulus.bits())
    }

    /// `x · y` modulo a secret `modulus` (any number but zero), all of one width.
    pub(crate) fn mod_mul(&mut self, x: &Uint, y: &Uint, modulus: &Uint) -> Uint {
        let product = self.mul_wide(x, y);
        Uint::from_bits(self.div_rem_slices(product.bits(), modulus.bits()).1)
    }

    /// `base^exponent` modulo a secret `modulus` of the base's width (not zero); square and multiply, always
    /// both.
    pub fn mod_pow_secret(&mut self, base: &Uint, exponent: &Uint, modulus: &Uint) -> Uint {
        let one = Uint::constant(1, base.width());
        let mut power = self.rem(&one, modulus);
        let base = self.rem(base, modulus);
        for &bit in exponent.bits().iter().rev() {
            let square = self.mod_mul(&power, &power, modulus);
            let times = self.mod_mul(&square, &base, modulus);
            power = self.mux(bit, &times, &square);
        }
        power
    }

    /// `base^exponent` modulo a public odd modulus, by Montgomery's method; `base` is of the modulus's width
    /// and may be any number of that width.
    pub fn mod_pow(&mut self, base: &Uint, exponent: &Uint, modulus: &Modulus) -> Uint {
        let n = modulus.width();
        let square_of_r = Uint::from_bits(constant_bits(&modulus.power_of_two(2 * n)));
        let base = self.montgomery_mul(&base.resize(n), &square_of_r, modulus);
        let mut power = Uint::from_bits(constant_bits(&modulus.power_of_two(n)));
        for &bit in exponent.bits().iter().rev() {
            power = self.mod_pow_step(&power, &base, bit, modulus);
        }
        self.montgomery_reduce(power.resize(2 * n).bits(), modulus)
    }

    /// One step of square and multiply in Montgomery form: `power² · base^bit`.
    pub(crate) fn mod_pow_step(&mut self, power: &Uint, base: &Uint, bit: Bit, modulus: &Modulus) -> Uint {
        let square = self.montgomery_mul(power, power, modulus);
        let times = self.montgomery_mul(&square, base, modulus);
        self.mux(bit, &times, &square)
    }

    /// `x · y · 2^−n` modulo the modulus; one factor must be below it.
    pub(crate) fn montgomery_mul(&mut self, x: &Uint, y: &Uint, modulus: &Modulus) -> Uint {
        let product = self.product(x.bits(), y.bits());
        self.montgomery_reduce(&product, modulus)
    }

    /// `t · 2^−n` modulo the modulus N, for t below 2^n·N: adds multiples of N until the low half vanishes.
    fn montgomery_reduce(&mut self, t: &[Bit], modulus: &Modulus) -> Uint {
        let mut t = t.to_vec();
        let mut carry = Bit::ZERO;
        (0..modulus.width()).for_each(|row| self.montgomery_row(&mut t, &mut carry, row, modulus));
        self.montgomery_end(&t, carry, modulus)
    }

    /// Adds the multiple of N·2^row to `t` that makes bit `row` vanish; `carry` has the weight of bit n +
    /// row.
    pub(super) fn montgomery_row(&mut self, t: &mut [Bit], carry: &mut Bit, row: usize, modulus: &Modulus) {
        let n = modulus.width();
        let q = t[row];
        let multiple: Vec<Bit> = modulus.bits.iter().map(|&m| if m { q } else { Bit::ZERO }).collect();
        let (sum, out) = self.add_slices(&t[row..row + n], &multiple, Bit::ZERO);
        t[row..row + n].copy_from_slice(&sum);
        let top = t[row + n];
        let half = self.xor(top, out);
        t[row + n] = self.xor(half, *carry);
        *carry = self.majority(top, out, *carry);
    }

    /// The result after the last row.
    pub(super) fn montgomery_end(&mut self, t: &[Bit], carry: Bit, modulus: &Modulus) -> Uint {
        let mut result = t[modulus.width()..].to_vec();
        result.push(carry);
        self.reduce_once(&result, &constant_bits(&modulus.bits))
    }

    /// `x` of n+1 bits, below twice the modulus, modulo the modulus of n bits.
    fn reduce_once(&mut self, x: &[Bit], modulus: &[Bit]) -> Uint {
        let mut wide = modulus.to_vec();
        wide.push(Bit::ZERO);
        let (difference, borrow) = self.sub_slices(x, &wide);
        let n = modulus.len();
        self.mux(borrow, &Uint::from_bits(x[..n].to_vec()), &Uint::from_bits(difference[..n].to_vec()))
    }
}
