//! Integer arithmetic that says when its result is not the true one: each function returns the result modulo
//! 2^n, and behind it a bit for each thing that can go wrong. What results are then is what plain Rust's
//! `overflowing_…` gives; division by zero is [`div_rem`](Builder::div_rem)'s.

use crate::circuit::{Bit, Builder, Int, Integer, Uint};

/// `x + y` modulo 2^n, and whether it overflowed: n AND gates.
pub fn add<I: Integer>(b: &mut Builder, x: &I, y: &I) -> (I, Bit) {
    let sum = b.add_wide(x, y);
    narrowed(b, &sum, x.width())
}

/// `x − y` modulo 2^n, and whether it overflowed, which of unsigned numbers is that y is the larger: n AND
/// gates.
pub fn sub<I: Integer>(b: &mut Builder, x: &I, y: &I) -> (I, Bit) {
    let width = x.width() + 1;
    let difference = b.sub(&x.resize(width), &y.resize(width));
    narrowed(b, &difference, x.width())
}

/// `x · y` modulo 2^n, and whether it overflowed: some 4n AND gates more than the product. Factors of which so
/// few bits are unknown that their full product has fewer are multiplied in these.
pub fn mul<I: Integer>(b: &mut Builder, x: &I, y: &I) -> (I, Bit) {
    let (n, kx, ky) = (x.width(), x.significant(), y.significant());
    if 2 * kx * ky > n * n {
        return b.mul_checked(x, y);
    }
    let product = b.mul_wide(&x.resize(kx), &y.resize(ky));
    narrowed(b, &product, n)
}

/// The quotient, the remainder, and whether y is zero: a division and n − 1 AND gates.
pub fn div_rem<I: Integer>(b: &mut Builder, x: &I, y: &I) -> (I, I, Bit) {
    let (quotient, remainder) = b.div_rem(x, y);
    let divisor = b.any(y.bits());
    (quotient, remainder, !divisor)
}

/// Of signed numbers whether the quotient `q` of `x / y` overflowed: only the lowest number by −1 does, and
/// then two negative numbers have a negative quotient.
pub fn quotient_overflow(b: &mut Builder, x: &Int, y: &Int, q: &Int) -> Bit {
    let sign = |v: &Int| v.bits().last().copied().unwrap_or(Bit::ZERO);
    let both = b.and(sign(x), sign(y));
    b.and(both, sign(q))
}

/// `exact` in `width` bits, and whether it does not fit.
pub fn narrowed<I: Integer>(b: &mut Builder, exact: &I, width: usize) -> (I, Bit) {
    let narrow = exact.resize(width);
    // What extending the narrow one again would put above it.
    let same = narrow.resize(exact.width().max(width));
    let above = same.bits().iter().zip(exact.bits()).skip(width);
    let lost: Vec<Bit> = above.map(|(&same, &bit)| b.xor(same, bit)).collect();
    let overflow = b.any(&lost);
    (narrow, overflow)
}

/// A function's outputs: the number, and the flags behind it.
pub fn outputs<I: Integer>(number: &I, flags: &[Bit]) -> Vec<Uint> {
    let number = Uint::from_bits(number.bits().to_vec());
    std::iter::once(number).chain(flags.iter().map(|&flag| Uint::from_bits(vec![flag]))).collect()
}
