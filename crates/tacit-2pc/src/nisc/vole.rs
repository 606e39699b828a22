//! Reverse VOLE (BCGIKRS19, figure 8 and theorem 11): the sender gives Δ and v, the receiver u and gets w = v + u·Δ.
//!
//! By Gilboa's product (CRYPTO '99) on chosen transfers, one for each bit of u: of bit i the messages are r_i and r_i +
//! g_i·Δ, where g_i is what the bit counts, and the r_i of an element add up to v. Over GF(2) these are the paper's v
//! and v + Δ. Over other fields the paper has a subfield VOLE of its own, which sends about an element of the field
//! for each of u; this sends two for each bit of one.

use tacit_crypto::field::{F61, F128, Field};
use tacit_crypto::{BitVec, Block, Prg, gf128};
use tacit_ot::vole::subfield::Subfield;
use zeroize::{Zeroize, Zeroizing};

/// The field of u, v and w. Over GF(2^k) with k below 128, u is in the subfield and the rest in GF(2^128).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum VoleField {
    /// u in GF(2).
    Gf2,
    /// u in GF(2^2).
    Gf4,
    /// u in GF(2^4).
    Gf16,
    /// u in GF(2^8).
    Gf256,
    /// GF(2^128) for all.
    Gf128,
    /// Integers modulo 2^61 − 1.
    P61,
    /// Integers modulo 2^128 − 159.
    P128,
}

impl VoleField {
    const ALL: [VoleField; 7] = [
        VoleField::Gf128,
        VoleField::Gf2,
        VoleField::Gf4,
        VoleField::Gf16,
        VoleField::Gf256,
        VoleField::P61,
        VoleField::P128,
    ];

    /// `gf128`, `gf2`, `gf4`, `gf16`, `gf256`, `p61` or `p128`.
    pub fn name(self) -> &'static str {
        match self {
            VoleField::Gf128 => "gf128",
            VoleField::Gf2 => "gf2",
            VoleField::Gf4 => "gf4",
            VoleField::Gf16 => "gf16",
            VoleField::Gf256 => "gf256",
            VoleField::P61 => "p61",
            VoleField::P128 => "p128",
        }
    }

    /// The field called `name`.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|field| field.name() == name)
    }

    /// Bits of an element of u. A number that is not below the prime counts modulo it.
    pub fn input_bits(self) -> u32 {
        match self {
            VoleField::Gf2 => 1,
            VoleField::Gf4 => 2,
            VoleField::Gf16 => 4,
            VoleField::Gf256 => 8,
            VoleField::Gf128 | VoleField::P128 => 128,
            VoleField::P61 => 61,
        }
    }

    /// Bits of Δ and of an element of v and w.
    pub fn element_bits(self) -> u32 {
        if self == VoleField::P61 { 61 } else { 128 }
    }

    /// Bytes of a message.
    pub(super) fn message_bytes(self) -> usize {
        if self == VoleField::P61 { 8 } else { 16 }
    }

    /// g_i: what each bit of u counts.
    fn basis(self) -> Vec<Block> {
        let bits = self.input_bits();
        let subfield = Subfield::new(bits as usize);
        (0..bits).map(|i| subfield.as_ref().map_or(Block::new(1 << i), |field| field.embed(1 << i))).collect()
    }

    fn multiply(self, a: Block, b: Block) -> Block {
        match self {
            VoleField::P61 => (F61::from_block(a) * F61::from_block(b)).to_block(),
            VoleField::P128 => (F128::from_block(a) * F128::from_block(b)).to_block(),
            _ => gf128::mul(a, b),
        }
    }

    fn add(self, a: Block, b: Block) -> Block {
        match self {
            VoleField::P61 => (F61::from_block(a) + F61::from_block(b)).to_block(),
            VoleField::P128 => (F128::from_block(a) + F128::from_block(b)).to_block(),
            _ => a ^ b,
        }
    }

    fn subtract(self, a: Block, b: Block) -> Block {
        match self {
            VoleField::P61 => (F61::from_block(a) - F61::from_block(b)).to_block(),
            VoleField::P128 => (F128::from_block(a) - F128::from_block(b)).to_block(),
            _ => a ^ b,
        }
    }

    /// A number of so many bits or any block as an element, written in one way alone.
    fn element(self, block: Block) -> Block {
        self.add(block, Block::ZERO)
    }

    /// Both messages of each bit of u, row after row; a row of `mine` is Δ and then v.
    pub(super) fn messages(self, rows: usize, mine: &BitVec, prg: &mut Prg) -> [Zeroizing<Vec<u8>>; 2] {
        let (bits, width) = (self.input_bits() as usize, self.message_bytes());
        // Room for all from the start: a list that grows leaves copies behind.
        let mut planes = [(); 2].map(|()| Zeroizing::new(Vec::with_capacity(rows * bits * width)));
        let parts = Zeroizing::new(mine.split(vec![self.element_bits() as usize; 2 * rows]));
        let mut masks = Zeroizing::new(vec![Block::ZERO; bits]);
        let basis = self.basis();
        for row in parts.chunks_exact(2) {
            let [delta, v] = [&row[0], &row[1]].map(|bits| Zeroizing::new(self.element(block(bits))));
            prg.fill_blocks(&mut masks);
            let mut rest = v.clone();
            for mask in &mut masks[1..] {
                *mask = self.element(*mask);
                *rest = self.subtract(*rest, *mask);
            }
            masks[0] = *rest;
            for (mask, counts) in masks.iter().zip(&basis) {
                let product = Zeroizing::new(self.multiply(*counts, *delta));
                let mut pair = [*mask, self.add(*mask, *product)].map(Block::to_bytes);
                for (plane, message) in planes.iter_mut().zip(&pair) {
                    plane.extend_from_slice(&message[..width]);
                }
                pair.zeroize();
            }
        }
        planes
    }

    /// w of each row, from the messages that the receiver's bits chose. Whatever a message is counts as an element.
    pub(super) fn outputs(self, messages: &[u8]) -> Vec<Vec<BitVec>> {
        let (bits, width) = (self.input_bits() as usize, self.message_bytes());
        let sum = |row: &[u8]| {
            let mut sum = Block::ZERO;
            for message in row.chunks_exact(width) {
                let mut bytes = [0; 16];
                bytes[..width].copy_from_slice(message);
                sum = self.add(sum, Block::from_bytes(bytes));
                bytes.zeroize();
            }
            let all = self.element_bits() as usize;
            vec![BitVec::from_bytes(&sum.to_bytes()[..all.div_ceil(8)], all)]
        };
        messages.chunks_exact(bits * width).map(sum).collect()
    }
}

/// The number of up to 128 bits.
fn block(bits: &BitVec) -> Block {
    let mut bytes = [0; 16];
    bytes[..bits.len().div_ceil(8)].copy_from_slice(bits.as_bytes());
    let block = Block::from_bytes(bytes);
    bytes.zeroize();
    block
}
