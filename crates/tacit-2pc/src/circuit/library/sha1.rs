//! SHA-1 (FIPS 180-4), for compatibility with published circuit benchmarks; it is no longer collision resistant.

use super::{from_words, words_of};
use crate::circuit::{Builder, Integer, Uint};

/// The standard initial state as a number of 160 bits.
pub fn initial_state() -> Uint {
    let words = [0x67452301u32, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0];
    from_words(&words.map(|w| Uint::constant(w.into(), 32)))
}

/// The compression function: a state of 160 bits and a block of 512 bits to the next state. Panics on other widths.
pub fn compress(b: &mut Builder, state: &Uint, block: &Uint) -> Uint {
    assert_eq!((state.bits().len(), block.bits().len()), (160, 512), "SHA-1 takes 160 and 512 bits");
    let initial = words_of(state, 32);
    let mut w = words_of(block, 32);
    for t in 16..80 {
        let x = b.xor_bits(&w[t - 3], &w[t - 8]);
        let y = b.xor_bits(&w[t - 14], &w[t - 16]);
        let x = b.xor_bits(&x, &y);
        w.push(b.rotate_left(&x, 1));
    }
    let mut s = initial.clone();
    for (t, word) in w.into_iter().enumerate() {
        let (f, k) = match t / 20 {
            0 => (b.mux_each(&s[1], &s[2], &s[3]), 0x5a827999u32),
            2 => (b.majority_each(&s[1], &s[2], &s[3]), 0x8f1bbcdc),
            phase => {
                let x = b.xor_bits(&s[1], &s[2]);
                (b.xor_bits(&x, &s[3]), if phase == 1 { 0x6ed9eba1 } else { 0xca62c1d6 })
            }
        };
        let rotated = b.rotate_left(&s[0], 5);
        let next = b.sum(&[rotated, f, s[4].clone(), word, Uint::constant(k.into(), 32)], 32);
        s = vec![next, s[0].clone(), b.rotate_left(&s[1], 30), s[2].clone(), s[3].clone()];
    }
    let sums: Vec<Uint> = initial.iter().zip(&s).map(|(x, y)| b.add(x, y)).collect();
    from_words(&sums)
}

impl Builder {
    /// Bit by bit `if choice { then } else { otherwise }`: the "choose" function of the SHA family.
    pub(crate) fn mux_each(&mut self, choice: &Uint, then: &Uint, otherwise: &Uint) -> Uint {
        let bits = choice.bits().iter().zip(then.bits()).zip(otherwise.bits());
        Uint::from_bits(bits.map(|((&c, &t), &o)| self.mux_bit(c, t, o)).collect())
    }

    /// Bit by bit the majority of three.
    pub(crate) fn majority_each(&mut self, x: &Uint, y: &Uint, z: &Uint) -> Uint {
        let bits = x.bits().iter().zip(y.bits()).zip(z.bits());
        Uint::from_bits(bits.map(|((&x, &y), &z)| self.majority(x, y, z)).collect())
    }
}
