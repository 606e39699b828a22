//! [`BitVec`]: packed bits, for choice bits and matrices' rows.

use crate::simd::{Backend, lsbs};
use crate::{Block, Prg};
use zeroize::{Zeroize, ZeroizeOnDrop};

/// A vector of bits, packed into blocks, bit `i` at bit `i % 128` of block `i / 128`. Bits past the end are
/// zero.
#[derive(Clone, Default, PartialEq, Eq, Zeroize, ZeroizeOnDrop)]
pub struct BitVec {
    blocks: Vec<Block>,
    len: usize,
}

impl core::fmt::Debug for BitVec {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "BitVec({} bits, [secret])", self.len)
    }
}

impl BitVec {
    /// `len` zero bits.
    pub fn zeros(len: usize) -> Self {
        BitVec { blocks: vec![Block::ZERO; len.div_ceil(128)], len }
    }

    /// `len` random bits.
    pub fn random(len: usize, prg: &mut Prg) -> Self {
        let mut bits = Self::zeros(len);
        prg.fill_blocks(&mut bits.blocks);
        bits.clear_tail();
        bits
    }

    /// From one `bool` a bit.
    pub fn from_bools(bools: &[bool]) -> Self {
        let mut bits = Self::zeros(bools.len());
        for (i, &b) in bools.iter().enumerate() {
            bits.set(i, b);
        }
        bits
    }

    /// From packed bytes, lowest bit first; bits of `bytes` past `len` are dropped, missing ones are zero.
    pub fn from_bytes(bytes: &[u8], len: usize) -> Self {
        let mut bits = Self::zeros(len);
        let n = bytes.len().min(len.div_ceil(8));
        Block::as_bytes_mut(&mut bits.blocks)[..n].copy_from_slice(&bytes[..n]);
        bits.clear_tail();
        bits
    }

    /// The lowest bit of each block, as the choice bits of random correlated OTs.
    pub fn from_lsbs(blocks: &[Block]) -> Self {
        let mut bits = Self::zeros(blocks.len());
        for (word, chunk) in bits.blocks.iter_mut().zip(blocks.chunks(128)) {
            let (low, high) = chunk.split_at(chunk.len().min(64));
            *word = Block::from_halves(pack_lsbs(low), pack_lsbs(high));
        }
        bits
    }

    /// Sets bits `start..start + blocks.len()` to the blocks' lowest bits; panics when out of range.
    pub fn set_lsbs(&mut self, start: usize, blocks: &[Block]) {
        assert!(start + blocks.len() <= self.len, "bit index out of range");
        let head = blocks.len().min((128 - start % 128) % 128);
        for (i, block) in blocks[..head].iter().enumerate() {
            self.set(start + i, block.lsb());
        }
        let whole = blocks[head..].chunks(128);
        for (slot, chunk) in self.blocks[(start + head) / 128..].iter_mut().zip(whole) {
            let (low, high) = chunk.split_at(chunk.len().min(64));
            // Bits after the chunk keep their value.
            let keep = if chunk.len() == 128 { 0 } else { u128::MAX << chunk.len() };
            let packed = Block::from_halves(pack_lsbs(low), pack_lsbs(high));
            *slot = Block::new(slot.to_u128() & keep) | packed;
        }
    }

    /// The bits of all parts, one after the other.
    pub fn concat(parts: &[BitVec]) -> Self {
        let mut bits = Self::zeros(parts.iter().map(BitVec::len).sum());
        let mut start = 0;
        for part in parts {
            bits.or_at(start, part);
            start += part.len;
        }
        bits
    }

    /// Adds the bits of `part` to those from `start` on, which are zeros.
    fn or_at(&mut self, start: usize, part: &BitVec) {
        let (first, shift) = (start / 128, (start % 128) as u32);
        for (at, block) in (first..).zip(&part.blocks) {
            self.blocks[at] ^= Block::new(block.to_u128() << shift);
            // What a block has beyond its part's end are zeros, which may have no block here.
            if shift > 0
                && let Some(next) = self.blocks.get_mut(at + 1)
            {
                *next ^= Block::new(block.to_u128() >> (128 - shift));
            }
        }
    }

    /// The converse of [`concat`](Self::concat), for parts of these lengths; panics where they are more bits
    /// than there are.
    pub fn split(&self, lengths: impl IntoIterator<Item = usize>) -> Vec<BitVec> {
        let mut start = 0;
        let part = |length: usize| {
            assert!(length <= self.len - start, "bit index out of range");
            let mut part = BitVec::zeros(length);
            let (first, shift) = (start / 128, (start % 128) as u32);
            for (at, block) in (first..).zip(&mut part.blocks) {
                let low = self.blocks[at].to_u128() >> shift;
                let next = self.blocks.get(at + 1).filter(|_| shift > 0);
                *block = Block::new(low | next.map_or(0, |next| next.to_u128() << (128 - shift)));
            }
            part.clear_tail();
            start += length;
            part
        };
        lengths.into_iter().map(part).collect()
    }

    /// Number of bits.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no bits.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bit `index`; panics when out of range.
    #[inline]
    pub fn get(&self, index: usize) -> bool {
        assert!(index < self.len, "bit index out of range");
        self.blocks[index / 128].bit(index % 128)
    }

    /// Sets bit `index`; panics when out of range. Takes the same time for both values.
    #[inline]
    pub fn set(&mut self, index: usize, bit: bool) {
        assert!(index < self.len, "bit index out of range");
        let block = &mut self.blocks[index / 128];
        let shift = index % 128;
        *block = Block::new(block.to_u128() & !(1 << shift) | (bit as u128) << shift);
    }

    /// The packed blocks; the last one is padded with zeros.
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// The packed bytes, `len.div_ceil(8)` of them.
    pub fn as_bytes(&self) -> &[u8] {
        &Block::as_bytes(&self.blocks)[..self.len.div_ceil(8)]
    }

    /// The bits one by one.
    pub fn iter(&self) -> impl Iterator<Item = bool> + '_ {
        (0..self.len).map(|i| self.get(i))
    }

    /// XORs `other` in; panics when the lengths differ.
    pub fn xor_assign(&mut self, other: &BitVec) {
        assert_eq!(self.len, other.len, "bit vectors of different lengths");
        for (a, b) in self.blocks.iter_mut().zip(&other.blocks) {
            *a ^= *b;
        }
    }

    fn clear_tail(&mut self) {
        let used = self.len % 128;
        if used != 0 {
            let last = self.blocks.len() - 1;
            self.blocks[last] &= Block::new((1u128 << used) - 1);
        }
    }
}

/// The lowest bit of each block, packed lowest first, 64 blocks a word. Panics unless there is a word for every 64.
pub fn pack_words(blocks: &[Block], out: &mut [u64]) {
    lsbs::pack(Backend::active(), blocks, out);
}

/// The lowest bits of up to 64 blocks.
#[inline]
fn pack_lsbs(blocks: &[Block]) -> u64 {
    match <&[Block; 64]>::try_from(blocks) {
        // With the length known, the shifts are constants.
        Ok(all) => (0..64).fold(0, |packed, i| packed | (all[i].low() & 1) << i),
        Err(_) => blocks.iter().rev().fold(0, |packed, block| packed << 1 | (block.low() & 1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of lengths within and across blocks: bit by bit the same.
    #[test]
    fn parts_are_joined_and_cut_where_they_begin() {
        let mut prg = Prg::from_seed(Block::new(1));
        for lens in [vec![0, 1, 127, 0, 128, 129, 3], vec![64; 9], vec![256, 1, 500, 12], vec![0], vec![]] {
            let parts: Vec<BitVec> = lens.iter().map(|len| BitVec::random(*len, &mut prg)).collect();
            let all = BitVec::concat(&parts);
            assert!(
                all.len() == lens.iter().sum::<usize>() && all.iter().eq(parts.iter().flat_map(BitVec::iter))
            );
            assert!(all.split(lens.iter().copied()) == parts);
            assert!(
                all.split([all.len() / 2]).iter().all(|half| half.iter().eq(all.iter().take(all.len() / 2)))
            );
        }
    }

    #[test]
    #[should_panic(expected = "out of range")]
    fn more_bits_than_there_are_are_not_cut_off() {
        BitVec::zeros(7).split([3, 5]);
    }
}
