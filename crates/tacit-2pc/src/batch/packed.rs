//! Bits of many rows, packed one piece after the other without gaps.

use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

/// Packed bits, lowest first; bits past the end are zero.
#[derive(Clone, Default, Zeroize, ZeroizeOnDrop)]
pub(super) struct Packed {
    words: Vec<u64>,
    bits: usize,
}

impl Packed {
    /// Without bits, and with room for so many.
    pub(super) fn with_room(bits: usize) -> Self {
        // A word more for what a push shifts past the end: words that moved would leave a copy behind.
        Packed { words: Vec::with_capacity(bits.div_ceil(64) + 1), bits: 0 }
    }

    /// So many zeros.
    pub(super) fn zeros(bits: usize) -> Self {
        Packed { words: vec![0; bits.div_ceil(64)], bits }
    }

    pub(super) fn words(&self) -> &[u64] {
        &self.words
    }

    pub(super) fn words_mut(&mut self) -> &mut [u64] {
        &mut self.words
    }

    pub(super) fn bits(&self) -> usize {
        self.bits
    }

    /// Bytes of a message.
    pub(super) fn bytes(&self) -> usize {
        self.bits.div_ceil(8)
    }

    /// Appends the `bits` bits of `from` from `at` on.
    pub(super) fn push_from(&mut self, from: &Packed, at: usize, bits: usize) {
        if at.is_multiple_of(64) {
            return self.push(&from.words[at / 64..], bits);
        }
        let mut part = Zeroizing::new(vec![0; bits.div_ceil(64)]);
        from.read(at, bits, &mut part);
        self.push(&part, bits);
    }

    /// The values of AND gates: c ⊕ d·b ⊕ e·a, and ⊕ d·e where `both` is all ones. All are of one length.
    pub(super) fn combine(&mut self, [d, e, a, b]: [&Packed; 4], both: u64) {
        let (opened, masks) = (d.words.iter().zip(&e.words), a.words.iter().zip(&b.words));
        for ((c, (d, e)), (a, b)) in self.words.iter_mut().zip(opened).zip(masks) {
            *c ^= d & b ^ e & a ^ d & e & both;
        }
    }

    /// Appends the first `bits` bits of `from`.
    pub(super) fn push(&mut self, from: &[u64], bits: usize) {
        let from = &from[..bits.div_ceil(64)];
        let shift = self.bits % 64;
        if shift == 0 {
            self.words.extend_from_slice(from);
        } else {
            for &word in from {
                if let Some(last) = self.words.last_mut() {
                    *last |= word << shift;
                }
                self.words.push(word >> (64 - shift));
            }
        }
        self.bits += bits;
        self.end();
    }

    /// The `bits` bits from `at` on, into the first words of `out`.
    pub(super) fn read(&self, at: usize, bits: usize, out: &mut [u64]) {
        let (first, shift) = (at / 64, at % 64);
        let out = &mut out[..bits.div_ceil(64)];
        if shift == 0 {
            out.copy_from_slice(&self.words[first..first + out.len()]);
        } else {
            for (i, out) in out.iter_mut().enumerate() {
                let high = self.words.get(first + i + 1).map_or(0, |word| word << (64 - shift));
                *out = self.words[first + i] >> shift | high;
            }
        }
        if let (Some(last), 1..) = (out.last_mut(), bits % 64) {
            *last &= !(u64::MAX << (bits % 64));
        }
    }

    /// XORs `other`, of the same length, in.
    pub(super) fn xor(&mut self, other: &Packed) {
        self.words.iter_mut().zip(&other.words).for_each(|(a, b)| *a ^= b);
    }

    /// The bytes of a message, lowest bit first.
    pub(super) fn to_bytes(&self, out: &mut Vec<u8>) {
        out.clear();
        out.extend(self.words.iter().flat_map(|word| word.to_le_bytes()));
        out.truncate(self.bytes());
    }

    /// XORs the bits of a message in, as long as [`to_bytes`](Self::to_bytes) makes it.
    pub(super) fn xor_bytes(&mut self, bytes: &[u8]) {
        let (whole, rest) = bytes.as_chunks::<8>();
        self.words.iter_mut().zip(whole).for_each(|(word, bytes)| *word ^= u64::from_le_bytes(*bytes));
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        if let Some(word) = self.words.get_mut(whole.len()) {
            *word ^= u64::from_le_bytes(last);
        }
        self.end();
    }

    /// Drops what lies past the end.
    fn end(&mut self) {
        self.words.truncate(self.bits.div_ceil(64));
        if let (Some(last), 1..) = (self.words.last_mut(), self.bits % 64) {
            *last &= !(u64::MAX << (self.bits % 64));
        }
    }
}

/// Turns 64 words of 64 bits about: bit j of word i becomes bit i of word j.
pub(super) fn transpose(square: &mut [u64; 64]) {
    let (mut width, mut mask) = (32, 0x0000_0000_ffff_ffff_u64);
    while width > 0 {
        let mut i = 0;
        while i < 64 {
            for j in i..i + width {
                let swap = (square[j] >> width ^ square[j + width]) & mask;
                square[j] ^= swap << width;
                square[j + width] ^= swap;
            }
            i += 2 * width;
        }
        width /= 2;
        mask ^= mask << width;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tacit_crypto::Prg;

    fn words(prg: &mut Prg, n: usize) -> Vec<u64> {
        (0..n).map(|_| prg.block().low()).collect()
    }

    #[test]
    fn pieces_of_any_length_come_out_as_they_went_in() {
        let mut prg = Prg::from_os();
        for bits in [1usize, 5, 63, 64, 65, 128, 1000] {
            let pieces: Vec<Vec<u64>> = (0..7).map(|_| words(&mut prg, bits.div_ceil(64))).collect();
            let mut packed = Packed::with_room(0);
            pieces.iter().for_each(|piece| packed.push(piece, bits));
            let mut bytes = Vec::new();
            packed.to_bytes(&mut bytes);
            assert_eq!(bytes.len(), (7 * bits).div_ceil(8));
            let mut other = Packed::zeros(7 * bits);
            // Bits past the end count for nothing.
            if let (Some(last), 1..) = (bytes.last_mut(), 7 * bits % 8) {
                *last |= 0x80;
            }
            other.xor_bytes(&bytes);
            let mut out = vec![0; bits.div_ceil(64)];
            for (i, piece) in pieces.iter().enumerate() {
                other.read(i * bits, bits, &mut out);
                for bit in 0..64 * out.len() {
                    let expected = bit < bits && piece[bit / 64] >> (bit % 64) & 1 == 1;
                    assert_eq!(out[bit / 64] >> (bit % 64) & 1 == 1, expected, "{bits} {i} {bit}");
                }
            }
            assert_eq!(packed.words(), other.words());
        }
    }

    /// Shares that moved would stay in memory that nobody wipes.
    #[test]
    fn words_stay_where_they_are_while_there_is_room() {
        for bits in [1usize, 63, 64, 65, 100, 129] {
            for pieces in 1..130 {
                let mut packed = Packed::with_room(pieces * bits);
                let (place, room) = (packed.words.as_ptr(), packed.words.capacity());
                (0..pieces).for_each(|_| packed.push(&[u64::MAX; 3], bits));
                assert_eq!(
                    (packed.words.as_ptr(), packed.words.capacity()),
                    (place, room),
                    "{bits} {pieces}"
                );
            }
        }
    }

    #[test]
    fn a_square_is_turned_about() {
        let mut prg = Prg::from_os();
        let before: [u64; 64] = words(&mut prg, 64).try_into().unwrap();
        let mut after = before;
        transpose(&mut after);
        for (i, j) in (0..64).flat_map(|i| (0..64).map(move |j| (i, j))) {
            assert_eq!(before[i] >> j & 1, after[j] >> i & 1);
        }
    }
}
