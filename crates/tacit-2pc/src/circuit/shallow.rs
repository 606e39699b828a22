//! The arithmetic of shallow circuits; see [`Form`] for what it takes.

use super::{Bit, Builder, Form};

/// From this width on products of a shallow circuit are Karatsuba's: a level more of additions for a quarter fewer
/// gates.
const SHALLOW_KARATSUBA_FROM: usize = 128;

impl Builder {
    /// As [`add_slices`](Builder::add_slices), with carries by a prefix network.
    pub(super) fn add_by_prefixes(&mut self, x: &[Bit], y: &[Bit], carry: Bit) -> (Vec<Bit>, Bit) {
        let halves: Vec<Bit> = x.iter().zip(y).map(|(&a, &b)| self.xor(a, b)).collect();
        let mut passes = halves.clone();
        let mut makes: Vec<Bit> = x.iter().zip(y).map(|(&a, &b)| self.and(a, b)).collect();
        if let (Some(makes), Some(passes)) = (makes.first_mut(), passes.first_mut()) {
            *makes = self.majority(x[0], y[0], carry);
            *passes = Bit::ZERO;
        }
        self.prefixes(x.len(), |b, i, j| {
            // What is made and what is passed on exclude each other.
            let passed = b.and(passes[i], makes[j]);
            makes[i] = b.xor(makes[i], passed);
            passes[i] = b.and(passes[i], passes[j]);
        });
        let carries = std::iter::once(carry).chain(makes.iter().copied());
        let sum = halves.iter().zip(carries).map(|(&half, carry)| self.xor(half, carry)).collect();
        (sum, makes.last().copied().unwrap_or(carry))
    }

    /// Of each bit whether it, or one before it, is set.
    pub(super) fn running_any(&mut self, bits: &[Bit]) -> Vec<Bit> {
        let mut any = bits.to_vec();
        match self.form() {
            Form::Small => (1..any.len()).for_each(|i| any[i] = self.or(any[i - 1], any[i])),
            Form::Shallow => self.prefixes(bits.len(), |b, i, j| any[i] = b.or(any[i], any[j])),
        }
        any
    }

    /// Sklansky's network over n places: `join` adds to place i all that place j has gathered, level by level.
    fn prefixes(&mut self, n: usize, mut join: impl FnMut(&mut Self, usize, usize)) {
        let mut width = 1;
        while width < n {
            for i in (0..n).filter(|i| i & width != 0) {
                join(self, i, (i & !(width - 1)) - 1);
            }
            width *= 2;
        }
    }

    /// As [`sum_columns`](Builder::sum_columns): adders of three bits, and few of two, level by level until each column
    /// has two bits, and one addition. How many a level takes is Dadda's (1965): the heights 2, 3, 4, 6, 9, 13, …
    pub(super) fn sum_by_tree(&mut self, mut columns: Vec<Vec<Bit>>) -> Vec<Bit> {
        for column in &mut columns {
            column.retain(|bit| *bit != Bit::ZERO);
        }
        let most = columns.iter().map(Vec::len).max().unwrap_or(0);
        let heights: Vec<usize> =
            std::iter::successors(Some(2), |height| Some(height * 3 / 2)).take_while(|h| *h < most).collect();
        for &height in heights.iter().rev() {
            columns = self.lowered(&columns, height);
        }
        while columns.iter().any(|column| column.len() > 2) {
            columns = self.lowered(&columns, 2);
        }
        let row = |place: usize| -> Vec<Bit> {
            columns.iter().map(|column| column.get(place).copied().unwrap_or(Bit::ZERO)).collect()
        };
        let (one, other) = (row(0), row(1));
        // Below the first column of two bits there is nothing to add.
        let done = other.iter().take_while(|bit| **bit == Bit::ZERO).count();
        let high = self.add_by_prefixes(&one[done..], &other[done..], Bit::ZERO).0;
        [&one[..done], &high].concat()
    }

    /// Columns with the same sum, of this height at most, by one level of adders; they have 3/2 of it before.
    fn lowered(&mut self, columns: &[Vec<Bit>], height: usize) -> Vec<Vec<Bit>> {
        let mut carries = Vec::new();
        let mut lowered = Vec::with_capacity(columns.len());
        for (at, column) in columns.iter().enumerate() {
            let (mut made, mut rest) = (std::mem::take(&mut carries), &column[..]);
            while made.len() + rest.len() > height {
                let of_three = made.len() + rest.len() > height + 1;
                let Some((&[a, b], others)) = rest.split_first_chunk() else { break };
                rest = others;
                let c = match rest.split_first() {
                    Some((&c, others)) if of_three => {
                        rest = others;
                        c
                    }
                    _ => Bit::ZERO,
                };
                let half = self.xor(a, b);
                made.push(self.xor(half, c));
                if at + 1 < columns.len() {
                    carries.push(self.majority(a, b, c));
                }
            }
            made.extend_from_slice(rest);
            lowered.push(made);
        }
        lowered
    }

    /// The width from which products are Karatsuba's, where those of a small circuit are from `small` on.
    pub(super) fn karatsuba_from(&self, small: usize) -> usize {
        match self.form() {
            Form::Small => small,
            Form::Shallow => SHALLOW_KARATSUBA_FROM,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Circuit, Integer, Uint, named, plain::evaluate};
    use super::*;
    use tacit_crypto::{BitVec, Block, Prg};

    fn depth_and_ands(name: &str) -> [(u32, u64); 2] {
        [Form::Small, Form::Shallow].map(|form| {
            let stats = named::find_in(name, form).unwrap().circuit.stats();
            (stats.and_depth, stats.and)
        })
    }

    #[test]
    fn functions_in_both_forms_give_the_same_result() {
        let mut prg = Prg::from_seed(Block::new(1));
        let names = ["add", "sub", "mul", "mulwide", "div", "mod", "min", "max", "eq", "lt", "millionaires"];
        let sized = |width: u32| names.map(|name| format!("{name}{width}"));
        let widths = [1, 2, 3, 7, 16, 33, 64];
        let others = ["checked-add16", "checked-mul9", "signed-lt8", "hamming40", "sha1", "modexp8"];
        let all: Vec<String> = widths.into_iter().flat_map(sized).chain(others.map(str::to_owned)).collect();
        for name in all {
            let Some(small) = named::find(&name) else { panic!("{name}") };
            let shallow = named::find_in(&name, Form::Shallow).unwrap();
            assert_eq!(small.circuit.shape(), shallow.circuit.shape());
            for round in 0..20 {
                let inputs: Vec<BitVec> = small
                    .circuit
                    .shape()
                    .inputs
                    .iter()
                    .map(|&width| match round {
                        0 => BitVec::zeros(width as usize),
                        1 => BitVec::from_bools(&vec![true; width as usize]),
                        _ => BitVec::random(width as usize, &mut prg),
                    })
                    .collect();
                assert!(evaluate(&small.circuit, &inputs) == evaluate(&shallow.circuit, &inputs), "{name}");
            }
        }
    }

    #[test]
    fn levels_grow_as_the_logarithm() {
        // Depth and AND gates of both forms; a change of these is a change of cost.
        let [small, shallow] = depth_and_ands("add64");
        assert_eq!((small, shallow.0), ((63, 63), 7));
        assert!(shallow.1 < 64 * 6, "{shallow:?}");
        let [small, shallow] = depth_and_ands("lt64");
        assert_eq!((small, shallow.0), ((64, 64), 7));
        assert!(shallow.1 < 3 * 64, "{shallow:?}");
        let [small, shallow] = depth_and_ands("mul32");
        assert!(shallow.0 <= 16 && small.0 > 30, "{small:?} {shallow:?}");
        let [small, shallow] = depth_and_ands("hamming64");
        assert!(shallow.0 < small.0.max(15), "{small:?} {shallow:?}");
        // What is a tree already stays.
        assert_eq!(depth_and_ands("eq64"), [(6, 63); 2]);
    }

    #[test]
    fn carries_in_and_constants_count() {
        for (x, y, carry) in [(3i128, 12, 1), (0, 15, 1), (9, 9, 0)] {
            let build = |form| -> Circuit {
                let mut b = Builder::with_form(form);
                let input = b.input(4);
                let constant = Uint::constant(y, 4);
                let (mut sum, out) = b.add_slices(input.bits(), constant.bits(), Bit::constant(carry == 1));
                sum.push(out);
                b.finish(&[Uint::from_bits(sum)]).unwrap()
            };
            let input = [BitVec::from_bytes(&[x as u8], 4)];
            let [small, shallow] = [Form::Small, Form::Shallow].map(|form| evaluate(&build(form), &input));
            assert!(small == shallow && small[0].as_bytes()[0] == (x + y + carry) as u8);
        }
    }
}
