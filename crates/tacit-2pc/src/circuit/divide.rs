//! Quotients and remainders of integers over a [`Builder`].
//!
//! AND counts, of n bits by n: the quotient some n²/2 + n·√n + 2n, the remainder 2n more. Bits that are known to be
//! zero, at the top of either or at the bottom of the divisor, cost nothing.

use super::multiply::without_zeros;
use super::{Bit, Builder, Integer, Uint};

impl Builder {
    /// Quotient and remainder, rounded towards zero. Unsigned division by zero gives a quotient of all ones
    /// and the dividend as remainder; signed division by zero likewise on the absolute values, with the signs
    /// put back.
    pub fn div_rem<I: Integer>(&mut self, x: &I, y: &I) -> (I, I) {
        assert_eq!(x.width(), y.width(), "operands of different widths");
        if !I::SIGNED {
            let (q, r) = self.div_rem_by_any(x.bits(), y.bits());
            return (I::from_bits(q), I::from_bits(r));
        }
        let sign = |v: &I| v.bits().last().copied().unwrap_or(Bit::ZERO);
        let (sx, sy) = (sign(x), sign(y));
        let (ax, ay) = (self.size(sx, x), self.size(sy, y));
        let (q, r) = self.div_rem_by_any(&ax, &ay);
        let differ = self.xor(sx, sy);
        (self.signed(differ, &q), self.signed(sx, &r))
    }

    /// The absolute value of `x`, whose sign that is.
    fn size<I: Integer>(&mut self, sign: Bit, x: &I) -> Vec<Bit> {
        let mut bits = self.negate_if(sign, &x.resize(x.significant())).bits().to_vec();
        bits.resize(x.width(), Bit::ZERO);
        bits
    }

    /// The number of that absolute value and that sign.
    fn signed<I: Integer>(&mut self, sign: Bit, size: &[Bit]) -> I {
        let width = size.len().min(without_zeros(size).len() + 1);
        self.negate_if(sign, &I::from_bits(size[..width].to_vec())).resize(size.len())
    }

    /// As [`div_rem`](Self::div_rem), of unsigned numbers of one width.
    fn div_rem_by_any(&mut self, x: &[Bit], y: &[Bit]) -> (Vec<Bit>, Vec<Bit>) {
        let (quotient, remainder) = self.div_rem_slices(x, y);
        let whole = |v: &[Bit]| without_zeros(v).len() == v.len();
        if y.contains(&Bit::ONE) || whole(x) && whole(y) && y.first() != Some(&Bit::ZERO) {
            return (quotient, remainder);
        }
        let by_zero = !self.any(y);
        let quotient = quotient.into_iter().map(|bit| self.or(bit, by_zero)).collect();
        let (x, remainder) = (Uint::from_bits(x.to_vec()), Uint::from_bits(remainder));
        (quotient, self.mux(by_zero, &x, &remainder).bits)
    }

    /// Quotient and remainder of unsigned numbers, unless the divisor is zero. Of numbers of one width whose
    /// highest bits and the divisor's lowest are unknown also where it is, as [`div_rem`](Self::div_rem) says.
    pub(super) fn div_rem_slices(&mut self, x: &[Bit], y: &[Bit]) -> (Vec<Bit>, Vec<Bit>) {
        let even = y.iter().take_while(|&&bit| bit == Bit::ZERO).count();
        let (rest, digits) = x.split_at(even.min(x.len()));
        let (digits, divisor) = (without_zeros(digits), without_zeros(&y[even..]));
        let (mut quotient, above) = self.divided(digits, divisor);
        quotient.resize(x.len(), Bit::ZERO);
        let mut remainder = [rest, &above].concat();
        remainder.resize(y.len(), Bit::ZERO);
        (quotient, remainder)
    }

    /// Non-restoring division: a divisor that does not fit is taken away all the same, and the next step, which
    /// doubles what is left, adds it in place of taking it away. So a step is one addition.
    ///
    /// After t digits the remainder has t bits at most, and a divisor of more does not fit. So a block of steps
    /// takes as many bits of the divisor as its last step needs, or zeros if there is a one above them.
    fn divided(&mut self, x: &[Bit], y: &[Bit]) -> (Vec<Bit>, Vec<Bit>) {
        let m = y.len();
        // higher[i]: whether the divisor has a one at or above bit i.
        let mut higher = vec![Bit::ZERO; m + 1];
        for i in (0..m).rev() {
            higher[i] = self.or(higher[i + 1], y[i]);
        }
        let mut quotient = vec![Bit::ZERO; x.len()];
        // In two's complement, from −divisor to divisor − 1, with one bit more than the divisor.
        let (mut remainder, mut negative, mut divisor) = (Vec::new(), Bit::ZERO, Vec::new());
        let mut done = 0;
        for end in blocks(x.len(), m) {
            let width = end.min(m);
            let fits = !higher[width];
            divisor = y[..width].iter().map(|&bit| self.and(bit, fits)).collect();
            remainder.resize(width + 1, negative);
            for step in (x.len() - end..x.len() - done).rev() {
                remainder.insert(0, x[step]);
                remainder.truncate(width + 1);
                let mut term: Vec<Bit> = divisor.iter().map(|&bit| self.xor(bit, !negative)).collect();
                term.push(!negative);
                remainder = self.add_slices(&remainder, &term, !negative).0;
                negative = remainder[width];
                quotient[step] = self.and(!negative, fits);
            }
            done = end;
        }
        let back: Vec<Bit> = divisor.iter().map(|&bit| self.and(bit, negative)).collect();
        (quotient, self.add_slices(&remainder[..back.len()], &back, Bit::ZERO).0)
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

/// Where the blocks of a division of `digits` digits by `bits` bits end, so that it has the fewest AND gates: a
/// step to the end of its block's width, and for a block narrower than the divisor as many to take its bits, and
/// one a step.
fn blocks(digits: usize, bits: usize) -> Vec<usize> {
    let last = digits.min(bits);
    let mut best = vec![(0, 0); last + 1];
    for end in 1..=last {
        let narrow = usize::from(end < bits);
        let cost = |from: usize| best[from].0 + (end - from) * (end + narrow) + narrow * end;
        best[end] = (0..end).map(|from| (cost(from), from)).min().unwrap_or_default();
    }
    let mut ends = Vec::new();
    let mut at = last;
    while at > 0 {
        ends.push(at);
        at = best[at].1;
    }
    ends.reverse();
    match ends.last_mut() {
        Some(end) => *end = digits,
        None if digits > 0 => ends.push(digits),
        None => {}
    }
    ends
}
