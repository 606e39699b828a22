//! Products of integers over a [`Builder`].
//!
//! AND counts, for n bits: a full product at most 2n²−n (Karatsuba's fewer from 20 bits on), modulo 2^n at most
//! n²−n+1, squares about half of that; by a constant n for each digit of its non-adjacent form but the first.
//! Whether a product overflows takes 4n more. Bits that are known to be zero at a factor's top cost nothing.

use super::{Bit, Builder, Integer, Uint};

/// From this width on the three half-size products of Karatsuba need fewer AND gates than the school method.
const KARATSUBA_FROM: usize = 20;

/// Up to this width a stream's parts of long products are components: their plans are small, and wide enough
/// to fill the vectors.
const COMPONENT_UP_TO: usize = 96;

impl Builder {
    /// The full product, as wide as both factors together.
    pub fn mul_wide<I: Integer>(&mut self, x: &I, y: &I) -> I {
        let (n, m) = (x.width(), y.width());
        if let Some(product) = self.by_constant(x, y, n + m) {
            return I::from_bits(product);
        }
        if !I::SIGNED {
            return I::from_bits(self.fitted_product(x.bits(), y.bits()));
        }
        let is_square = x.bits() == y.bits();
        let karatsuba = self.karatsuba_from(KARATSUBA_FROM);
        if n.min(m) < if is_square { 2 * karatsuba } else { karatsuba } && n > 0 && m > 0 {
            return I::from_bits(match is_square {
                true => self.signed_square(x.bits()),
                false => self.signed_product(x.bits(), y.bits()),
            });
        }
        // Two's complement: the top bit weighs −2^(n−1), so subtract each factor where the other is negative.
        let product = self.fitted_product(x.bits(), y.bits());
        let correction = |b: &mut Self, of: &I, sign: &I| {
            let sign = sign.bits().last().copied().unwrap_or(Bit::ZERO);
            of.bits().iter().map(|&bit| b.and(bit, sign)).collect::<Vec<_>>()
        };
        let (cx, cy) = (correction(self, x, y), correction(self, y, x));
        let mut out = product;
        for (term, at) in [(cx, m), (cy, n)] {
            let high = self.sub_slices(&out[at..], &term).0;
            out.truncate(at);
            out.extend(high);
        }
        debug_assert_eq!(out.len(), n + m);
        I::from_bits(out)
    }

    /// `x · y` modulo 2^n. Panics when the widths differ.
    pub fn mul<I: Integer>(&mut self, x: &I, y: &I) -> I {
        assert_eq!(x.width(), y.width(), "operands of different widths");
        let n = x.width();
        match self.by_constant(x, y, n) {
            Some(product) => I::from_bits(product),
            None => I::from_bits(self.low(x.bits(), y.bits(), n)),
        }
    }

    /// `x · y` modulo 2^n, and whether that is another number than `x · y`. Panics when the widths differ.
    ///
    /// Of unsigned factors: where ones of x and y at places i and j have i + j ≥ n, the product is 2^n at
    /// least. Where none have, it is below 2^(n+1), and its bit n tells the rest. Of signed ones take −x−1 for a
    /// negative x, whose highest one at place i says |x| > 2^i, where x ≥ 0 says x ≥ 2^i. Ones with i + j ≥ n−1
    /// give a product of more than 2^(n−1), or 2^(n−1) of equal signs. Where none have, it is 2^n at most, and
    /// fits if bits n and n−1 are alike.
    pub(super) fn mul_checked<I: Integer>(&mut self, x: &I, y: &I) -> (I, Bit) {
        assert_eq!(x.width(), y.width(), "operands of different widths");
        let n = x.width();
        let Some(top) = n.checked_sub(1) else { return (x.clone(), Bit::ZERO) };
        let sign = |v: &I| if I::SIGNED { v.bits()[top] } else { Bit::ZERO };
        let (sx, sy) = (sign(x), sign(y));
        let mut sizes = |v: &I, sign: Bit| -> Vec<Bit> {
            v.bits()[..n - usize::from(I::SIGNED)].iter().map(|&bit| self.xor(bit, sign)).collect()
        };
        let (ax, ay) = (sizes(x, sx), sizes(y, sy));
        let mut product = match self.by_constant(x, y, n + 1) {
            Some(product) => product,
            None => {
                let mut product = self.low(x.bits(), y.bits(), n + 1);
                if I::SIGNED {
                    // Column n without the products of ax and ay, none of which is one where it matters: x and
                    // y go on with their signs above, and each bit of x is one of ax plus the sign.
                    let parity =
                        |b: &mut Self, bits: &[Bit]| bits.iter().fold(Bit::ZERO, |p, &bit| b.xor(p, bit));
                    let (px, mut py) = (parity(self, &ax), parity(self, &ay));
                    if top % 2 == 1 {
                        py = self.xor(py, sy);
                    }
                    let terms =
                        if sx == sy { vec![(sx, self.xor(px, py))] } else { vec![(sx, py), (sy, px)] };
                    for (sign, parity) in terms {
                        let term = self.and(sign, parity);
                        product[n] = self.xor(product[n], term);
                    }
                }
                product
            }
        };
        let mut signs = self.large(&ax, &ay);
        let beyond = product.pop().unwrap_or(Bit::ZERO);
        signs.push(if I::SIGNED { self.xor(beyond, product[top]) } else { beyond });
        (I::from_bits(product), self.any(&signs))
    }

    /// Bits of which one is set if, and only if, ones of x and y, n bits each, have places whose sum is n or
    /// more.
    fn large(&mut self, x: &[Bit], y: &[Bit]) -> Vec<Bit> {
        let n = x.len();
        if x == y {
            return x[n.div_ceil(2)..].to_vec();
        }
        let above: Vec<Bit> = (1..n).map(|i| y[n - i]).collect();
        let any = self.running_any(&above);
        x.iter().skip(1).zip(any).map(|(&bit, any)| self.and(bit, any)).collect()
    }

    /// x², full width: about half a product.
    pub fn square_wide(&mut self, x: &Uint) -> Uint {
        Uint::from_bits(self.square_slice(x.bits()))
    }

    /// The products of bits of x and y, n each, whose weights lie below 2^n, added up modulo 2^width: with
    /// `width` = n, `x · y` modulo 2^n. `width` is n, or n + 1.
    fn low(&mut self, x: &[Bit], y: &[Bit], width: usize) -> Vec<Bit> {
        let n = x.len();
        if n >= 2 * self.karatsuba_from(KARATSUBA_FROM) {
            // Low half in full, the two cross products modulo 2^(n−h); h ≥ n/2, so the high halves' product
            // is gone.
            let h = n.div_ceil(2);
            let ((x0, x1), (y0, y1)) = (x.split_at(h), y.split_at(h));
            let low = self.fitted_product(x0, y0);
            let cross = self.low(&x0[..n - h], y1, width - h);
            let cross2 = self.low(x1, &y0[..n - h], width - h);
            let terms = [low[h..].to_vec(), cross, cross2].map(Uint::from_bits);
            let high = self.sum(&terms, width - h);
            return [&low[..h], high.bits()].concat();
        }
        let mut columns = vec![Vec::new(); width];
        for (i, &a) in x.iter().enumerate() {
            // Each product of two different places comes twice in a square.
            let (from, to) = if x == y { (i + 1, (n - i).max(i + 1)) } else { (0, n - i) };
            if x == y && 2 * i < n {
                columns[2 * i].push(a);
            }
            for (j, &b) in y.iter().enumerate().take(to).skip(from) {
                let at = i + j + usize::from(x == y);
                if at < width {
                    columns[at].push(self.and(a, b));
                }
            }
        }
        self.sum_columns(columns)
    }

    /// `x · y` modulo 2^width if one of them is known: a row for each digit of its non-adjacent form, or of the
    /// binary one where that has no more. Not in a stream, whose parts are alike.
    fn by_constant<I: Integer>(&mut self, x: &I, y: &I, width: usize) -> Option<Vec<Bit>> {
        if self.in_region() {
            return None;
        }
        let known =
            |v: &I| v.resize(width + 1).bits().iter().map(|bit| bit.known()).collect::<Option<Vec<bool>>>();
        let (x, factor) = known(y).map(|y| (x, y)).or_else(|| known(x).map(|x| (y, x)))?;
        let x = x.resize(width);
        // Digits −1, 0 and 1, of which no two in a row are not zero.
        let mut carry = false;
        let mut digits = Vec::new();
        for (&bit, &next) in factor.iter().zip(&factor[1..]) {
            let odd = bit != carry;
            digits.push((odd, odd && next));
            carry = if odd { next } else { bit };
        }
        let rows = |digits: &[(bool, bool)]| digits.iter().filter(|(some, _)| *some).count();
        let binary: Vec<_> = factor[..width].iter().map(|&bit| (bit, false)).collect();
        if rows(&binary) <= rows(&digits) {
            digits = binary;
        }
        let mut columns = vec![Vec::new(); width];
        for (k, &(_, negative)) in digits.iter().enumerate().filter(|(_, (some, _))| *some) {
            for (column, &bit) in columns[k..].iter_mut().zip(x.bits()) {
                column.push(if negative { !bit } else { bit });
            }
            if negative {
                columns[k].push(Bit::ONE);
            }
        }
        Some(self.sum_columns(columns))
    }

    /// The full product of bits in two's complement, neither empty (Baugh and Wooley 1973): products with one
    /// sign weigh less than nothing, so their complements are added, and constants for what that adds too much.
    fn signed_product(&mut self, x: &[Bit], y: &[Bit]) -> Vec<Bit> {
        let (n, m) = (x.len(), y.len());
        let mut columns = vec![Vec::new(); n + m];
        for (i, &a) in x.iter().enumerate() {
            for (j, &b) in y.iter().enumerate() {
                let both = self.and(a, b);
                let negative = (i + 1 == n) != (j + 1 == m);
                columns[i + j].push(if negative { !both } else { both });
            }
        }
        // −2^(n−1)·(2^(m−1) − 1) − 2^(m−1)·(2^(n−1) − 1) modulo 2^(n+m).
        for at in [n - 1, m - 1, n + m - 1] {
            columns[at].push(Bit::ONE);
        }
        self.sum_columns(columns)
    }

    /// As [`signed_product`](Self::signed_product) of x and x, whose products of two places come twice.
    fn signed_square(&mut self, x: &[Bit]) -> Vec<Bit> {
        let n = x.len();
        let mut columns = vec![Vec::new(); 2 * n];
        for (i, &a) in x.iter().enumerate() {
            columns[2 * i].push(a);
            for (j, &b) in x.iter().enumerate().skip(i + 1) {
                let both = self.and(a, b);
                columns[i + j + 1].push(if j + 1 == n { !both } else { both });
            }
        }
        // −2^n·(2^(n−1) − 1) modulo 2^(2n).
        for at in [n, 2 * n - 1] {
            columns[at].push(Bit::ONE);
        }
        self.sum_columns(columns)
    }

    /// The full product without what is known of the factors' upper bits. Not in a stream, whose parts are alike.
    fn fitted_product(&mut self, x: &[Bit], y: &[Bit]) -> Vec<Bit> {
        if self.in_region() {
            return self.product(x, y);
        }
        let (short_x, short_y) = (without_zeros(x), without_zeros(y));
        let mut product = self.uneven(short_x, short_y);
        product.resize(x.len() + y.len(), Bit::ZERO);
        product
    }

    /// Of factors of two widths the longer in pieces of the shorter one's.
    fn uneven(&mut self, x: &[Bit], y: &[Bit]) -> Vec<Bit> {
        let (short, long) = if x.len() < y.len() { (x, y) } else { (y, x) };
        if short.len() == long.len() || short.len() < self.karatsuba_from(KARATSUBA_FROM) {
            return self.product(x, y);
        }
        let (low, high) = long.split_at(short.len());
        let (low, high) = (self.product(short, low), self.uneven(short, high));
        let (done, mut above) = (&low[..short.len()], low[short.len()..].to_vec());
        above.resize(high.len(), Bit::ZERO);
        let sum = self.add_slices(&above, &high, Bit::ZERO).0;
        [done, &sum].concat()
    }

    pub(super) fn product(&mut self, x: &[Bit], y: &[Bit]) -> Vec<Bit> {
        if x == y {
            return self.square_slice(x);
        }
        let (n, m) = (x.len(), y.len());
        if n == m && n >= self.karatsuba_from(KARATSUBA_FROM) {
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
        if n >= 2 * self.karatsuba_from(KARATSUBA_FROM) {
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
}

/// Without the bits at the top that are known to be zero.
pub(super) fn without_zeros(x: &[Bit]) -> &[Bit] {
    &x[..x.len() - x.iter().rev().take_while(|&&bit| bit == Bit::ZERO).count()]
}
