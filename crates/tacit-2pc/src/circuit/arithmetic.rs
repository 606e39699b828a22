//! Arithmetic of integers over a [`Builder`].
//!
//! Bits stand lowest first. AND counts, for n bits: addition and subtraction n−1 (n with carry), comparison
//! n, equality n−1, multiplexer n, Montgomery multiplication by a public modulus the product plus n²+2n. Those of
//! shallow circuits are in [`Form`](super::Form)'s module.

use super::{Bit, Builder, Form, Int, Integer, Uint};
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
        if self.form() == Form::Shallow {
            return self.add_by_prefixes(x, y, carry);
        }
        let mut carry = carry;
        let mut sum = Vec::with_capacity(x.len());
        for (&a, &b) in x.iter().zip(y) {
            let half = self.xor(a, b);
            sum.push(self.xor(half, carry));
            carry = self.majority(a, b, carry);
        }
        (sum, carry)
    }

    pub(super) fn sub_slices(&mut self, x: &[Bit], y: &[Bit]) -> (Vec<Bit>, Bit) {
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
        if self.form() == Form::Shallow {
            return self.sum_by_tree(columns);
        }
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
