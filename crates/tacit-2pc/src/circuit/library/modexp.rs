//! Modular exponentiation: moduli by width, and a program for widths whose circuit would be too large to
//! hold.

use crate::circuit::arithmetic::constant_bits;
use crate::circuit::{Bit, Builder, Integer, Modulus, Program, Shape, Uint};

/// c of the largest prime 2^n − c of widths past 64 bits.
const BELOW_POWER: [(u32, u32); 10] = [
    (96, 17),
    (128, 159),
    (192, 237),
    (256, 189),
    (384, 317),
    (512, 569),
    (768, 825),
    (1024, 105),
    (1536, 3453),
    (2048, 1557),
];

/// The largest prime below 2^n, for 8 ≤ n ≤ 64 and for n = 96, 128, 192, 256, 384, 512, 768, 1024, 1536 and
/// 2048.
pub fn largest_prime(n: u32) -> Option<Modulus> {
    let bits = |c: u64| {
        // 2^n − c, as the complement of c − 1.
        let below = c - 1;
        Modulus::new((0..n).map(|i| i >= 64 || below >> i & 1 == 0).collect())
    };
    if n > 64 {
        let (_, c) = BELOW_POWER.iter().find(|(width, _)| *width == n)?;
        return bits(u64::from(*c));
    }
    if n < 8 {
        return None;
    }
    let top = 1u128 << n;
    bits((1u64..).step_by(2).find(|&c| is_prime((top - u128::from(c)) as u64))?)
}

/// Miller–Rabin with the bases that decide every number below 2^64 (Sorenson and Webster).
fn is_prime(n: u64) -> bool {
    const BASES: [u64; 12] = [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37];
    if n < 2 || BASES.iter().any(|&p| n != p && n.is_multiple_of(p)) {
        return false;
    }
    let mul = |a: u64, b: u64| (u128::from(a) * u128::from(b) % u128::from(n)) as u64;
    let odd = (n - 1) >> (n - 1).trailing_zeros();
    BASES.iter().filter(|&&a| a != n).all(|&a| {
        let mut x = (0..64).rev().fold(1, |x, i| {
            let square = mul(x, x);
            if odd >> i & 1 == 1 { mul(square, a) } else { square }
        });
        if x == 1 || x == n - 1 {
            return true;
        }
        for _ in 1..(n - 1).trailing_zeros() {
            x = mul(x, x);
            if x == n - 1 {
                return true;
            }
        }
        false
    })
}

/// Rows of a reduction that go together: carries of one run beside those of the next, so that many AND gates
/// are independent.
const ROWS: usize = 16;

/// The garbler's number to the power of the evaluator's, modulo a public modulus, by Montgomery's method:
/// square and multiply from the exponent's top bit on. A step is a product or some rows of a reduction, so
/// that the wires alive stay few.
pub struct ModExp {
    modulus: Modulus,
    exponent_bits: usize,
    /// Exponent bits done.
    done: usize,
    /// Both in Montgomery form.
    base: Uint,
    power: Uint,
    stage: Stage,
    reduction: Option<Reduction>,
}

/// What is being multiplied.
enum Stage {
    /// The base by R², which brings it into Montgomery form.
    Base,
    Square,
    /// The square, by the base.
    Times(Uint),
    /// The power by 1, which brings it back.
    Last,
}

/// A product, and how far it is reduced.
struct Reduction {
    t: Vec<Bit>,
    carry: Bit,
    row: usize,
}

impl ModExp {
    /// The program for exponents of so many bits; the base has the modulus's width.
    pub fn new(modulus: Modulus, exponent_bits: usize) -> Self {
        let nothing = || Uint::from_bits(Vec::new());
        let (base, power) = (nothing(), nothing());
        ModExp { modulus, exponent_bits, done: 0, base, power, stage: Stage::Base, reduction: None }
    }

    /// The same from its beginning, for exponents of another width.
    pub fn with_exponent(&self, bits: usize) -> Self {
        Self::new(self.modulus.clone(), bits)
    }

    /// The present product, of twice the modulus's width.
    fn product(&self, b: &mut Builder, inputs: &[Uint]) -> Vec<Bit> {
        let n = self.modulus.width();
        let product = match &self.stage {
            Stage::Base => {
                let square_of_r = Uint::from_bits(constant_bits(&self.modulus.power_of_two(2 * n)));
                b.region(|b| b.mul_wide(&inputs[0], &square_of_r))
            }
            Stage::Square => b.region(|b| b.mul_wide(&self.power, &self.power)),
            Stage::Times(square) => b.region(|b| b.mul_wide(square, &self.base)),
            Stage::Last => self.power.resize(2 * n),
        };
        product.bits().to_vec()
    }

    /// Gives `old` back, except what `new` and the values between products hold.
    fn replace(&self, b: &mut Builder, old: Vec<Bit>, new: &[Bit]) {
        let square = if let Stage::Times(square) = &self.stage { square.bits() } else { &[] };
        let kept = [new, self.base.bits(), self.power.bits(), square].concat();
        b.discard_except(old, &kept);
    }

    /// Goes on from a finished product to the next one; returns the last result.
    fn advance(&mut self, b: &mut Builder, inputs: &[Uint], result: Uint) -> Option<Uint> {
        let n = self.modulus.width();
        match std::mem::replace(&mut self.stage, Stage::Square) {
            Stage::Base => {
                self.base = result;
                self.power = Uint::from_bits(constant_bits(&self.modulus.power_of_two(n)));
            }
            Stage::Square => {
                let old = std::mem::replace(&mut self.power, result.clone());
                self.replace(b, old.bits().to_vec(), &[]);
                self.stage = Stage::Times(result);
                return None;
            }
            Stage::Times(square) => {
                let bit = inputs[1].bits()[self.exponent_bits - 1 - self.done];
                self.power = b.region(|b| b.mux(bit, &result, &square));
                self.replace(b, [result.bits(), square.bits()].concat(), &[]);
                self.done += 1;
            }
            Stage::Last => return Some(result),
        }
        if self.done == self.exponent_bits {
            self.stage = Stage::Last;
        }
        None
    }
}

impl Program for ModExp {
    fn identity(&self) -> String {
        let modulus: String =
            self.modulus.bits().iter().rev().map(|&bit| if bit { '1' } else { '0' }).collect();
        format!("modular exponentiation, exponents of {} bits, modulus {modulus}", self.exponent_bits)
    }

    fn shape(&self) -> Shape {
        let n = self.modulus.width() as u32;
        Shape { inputs: vec![n, self.exponent_bits as u32], outputs: vec![n] }
    }

    fn step(&mut self, b: &mut Builder, inputs: &[Uint]) -> Option<Vec<Uint>> {
        let Some(Reduction { t, mut carry, row }) = self.reduction.take() else {
            let t = self.product(b, inputs);
            self.reduction = Some(Reduction { t, carry: Bit::ZERO, row: 0 });
            return None;
        };
        let n = self.modulus.width();
        if row < n {
            let rows = ROWS.min(n - row);
            let arguments = [
                Uint::from_bits(t[row..row + rows + n].to_vec()),
                Uint::from_bits(vec![carry]),
                Uint::from_bits(constant_bits(self.modulus.bits())),
            ];
            let reduced = b.region(|b| {
                b.component("rows", &arguments, |b, arguments| {
                    let (mut t, mut carry) = (arguments[0].bits().to_vec(), arguments[1].bits()[0]);
                    (0..rows).for_each(|row| b.montgomery_row(&mut t, &mut carry, row, &self.modulus));
                    vec![Uint::from_bits(t), Uint::from_bits(vec![carry])]
                })
            });
            let mut next = t.clone();
            next[row..row + rows + n].copy_from_slice(reduced[0].bits());
            let old_carry = std::mem::replace(&mut carry, reduced[1].bits()[0]);
            self.replace(b, [t.as_slice(), &[old_carry]].concat(), &[next.as_slice(), &[carry]].concat());
            self.reduction = Some(Reduction { t: next, carry, row: row + rows });
            return None;
        }
        let result = b.region(|b| b.montgomery_end(&t, carry, &self.modulus));
        self.replace(b, [t.as_slice(), &[carry]].concat(), result.bits());
        self.advance(b, inputs, result).map(|result| vec![result])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::circuit::{Order, ProgramPlan};

    #[test]
    fn the_program_agrees_with_arithmetic_and_reuses_its_wires() {
        for (width, exponent_bits) in [(8, 8), (16, 5), (40, 3), (64, 6)] {
            let modulus = largest_prime(width).unwrap();
            let n = modulus.bits().iter().rev().fold(0u128, |n, &bit| n << 1 | bit as u128);
            for (base, exponent) in [(0u64, 0u64), (1, 5), (u64::MAX, 7), (0x1234_5678_9abc_def0, 6)] {
                let (base, exponent) = (base >> (64 - width), exponent % (1 << exponent_bits));
                let bits = |x: u64, n: u32| (0..n).map(move |i| [x >> i & 1]);
                let inputs: Vec<[u64; 1]> = bits(base, width).chain(bits(exponent, exponent_bits)).collect();
                let plan =
                    ProgramPlan::new(ModExp::new(modulus.clone(), exponent_bits as usize), Order::Sequential);
                let out = plan.evaluate_words(&inputs);
                let result = out.iter().rev().fold(0u128, |x, [bit]| x << 1 | u128::from(bit & 1));
                let expected = (0..exponent).fold(1u128, |x, _| x * u128::from(base) % n);
                assert_eq!(result, expected, "{base}^{exponent} of {width} bits");
            }
        }
        let mut plan = ProgramPlan::new(ModExp::new(largest_prime(96).unwrap(), 2), Order::Sequential);
        let mut slots = 0;
        while let Some(window) = plan.next_window() {
            slots = slots.max(window.slots());
        }
        assert!(slots < 10_000 && plan.gates() > 20 * slots as u64, "{slots} slots, {} gates", plan.gates());
    }

    #[test]
    fn moduli_have_the_width_asked_for() {
        for width in [8, 31, 32, 63, 64, 96, 1024, 2048] {
            assert_eq!(largest_prime(width).unwrap().width(), width as usize);
        }
        assert!(largest_prime(7).is_none() && largest_prime(65).is_none() && largest_prime(4096).is_none());
    }
}
