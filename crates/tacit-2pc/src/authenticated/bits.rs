//! Authenticated bits: shares of a bit, each with a MAC under the peer's Δ.
//!
//! Of a bit b = b_A ⊕ b_B a party holds the MAC of its own share and the key of the peer's: M = K ⊕ share·Δ,
//! Δ the key holder's. As correlated OT gives them, a key's lowest bit is 0 and Δ's is 1, so the lowest bit
//! of a MAC is the share. All is linear: shares, MACs and keys of a sum are the sums.

use crate::Result;
use tacit_crypto::{BitVec, Block, Buffer};
use tacit_net::Channel;

/// `n` zero blocks, wiped on drop.
pub(super) fn zeros(n: usize) -> Buffer {
    Buffer::zeros(n)
}

/// Rounded up by a sixteenth at most, so that stretches of about one size share their memory.
pub(super) fn ample(blocks: usize) -> usize {
    blocks.next_multiple_of((blocks.next_power_of_two() / 32).max(1))
}

/// Hands each of `items` with a mask, all ones where the bit of `bits` is 1, to `each`.
#[inline(always)]
pub(super) fn with_masks<T>(items: &mut [T], bits: &BitVec, mut each: impl FnMut(&mut T, Block)) {
    for (items, byte) in items.chunks_mut(8).zip(bits.as_bytes()) {
        for (i, item) in items.iter_mut().enumerate() {
            each(item, Block::mask(byte >> i & 1 == 1));
        }
    }
}

/// One party's part of one authenticated bit.
#[derive(Clone, Copy, Default)]
pub(super) struct Share {
    /// The MAC of the own share, which is its lowest bit.
    pub(super) mac: Block,
    /// The key of the peer's share.
    pub(super) key: Block,
}

impl zeroize::DefaultIsZeroes for Share {}

impl Share {
    /// The sum of two bits.
    #[inline(always)]
    pub(super) fn xor(self, other: Share) -> Share {
        Share { mac: self.mac ^ other.mac, key: self.key ^ other.key }
    }

    /// The share that stands in two blocks, MAC and key.
    #[inline(always)]
    pub(super) fn of(blocks: &[Block; 2]) -> Share {
        Share { mac: blocks[0], key: blocks[1] }
    }

    /// The converse of [`of`](Self::of).
    #[inline(always)]
    pub(super) fn blocks(self) -> [Block; 2] {
        [self.mac, self.key]
    }

    /// The bit, or zero: `mask` is all ones or all zeros.
    #[inline(always)]
    pub(super) fn and(self, mask: Block) -> Share {
        Share { mac: self.mac & mask, key: self.key & mask }
    }

    /// The sum of the bit and a public one, all ones in `mask` or all zeros: the garbler's share changes, of
    /// which the evaluator holds the key.
    #[inline(always)]
    pub(super) fn plus(self, mask: Block, garbler: bool, delta: Block) -> Share {
        match garbler {
            true => Share { mac: self.mac ^ (Block::ONE & mask), ..self },
            false => Share { key: self.key ^ ((delta ^ Block::ONE) & mask), ..self },
        }
    }

    /// This party's share of the product of the bit and its own Δ, of which the peer's is its MAC.
    #[inline(always)]
    pub(super) fn times_delta(self, delta: Block) -> Block {
        self.key ^ (delta & Block::mask(self.mac.lsb()))
    }
}

/// What a party holds for one AND gate, MACs before keys: of a triple, whose third is the product of the
/// others; later, of the masks of the operands, and of their product's sum with the result's.
pub(super) type Gate = [Block; BLOCKS];
pub(super) const BLOCKS: usize = 6;

/// What a gate holds of three bits.
#[inline(always)]
pub(super) fn shares(gate: &Gate) -> [Share; 3] {
    let [a, b, c, d, e, f] = *gate;
    [[a, b], [c, d], [e, f]].map(|blocks| Share::of(&blocks))
}

type Extend<'a> = &'a mut dyn FnMut(&mut Channel, &mut [Block], &mut [Block]) -> Result<()>;

/// Correlated OT both ways.
pub(super) struct Cots<'a> {
    /// The Δ of the keys.
    pub(super) delta: Block,
    /// Fills keys, of the peer's bits, and MACs, of own ones.
    pub(super) extend: Extend<'a>,
}

/// One party's parts of many authenticated bits: MACs and keys apart, as correlated OT makes them.
pub(super) struct Shares {
    pub(super) macs: Buffer,
    pub(super) keys: Buffer,
}

impl Shares {
    /// Room for `own` bits of this party's with MACs and `peer` of the peer's with keys.
    pub(super) fn zeros(own: usize, peer: usize) -> Self {
        Shares { macs: zeros(own), keys: zeros(peer) }
    }

    /// Makes the first `own` and the first `peer` of them anew.
    pub(super) fn make(
        &mut self,
        channel: &mut Channel,
        cots: &mut Cots<'_>,
        [own, peer]: [usize; 2],
    ) -> Result<()> {
        (cots.extend)(channel, &mut self.keys[..peer], &mut self.macs[..own])
    }

    #[inline(always)]
    pub(super) fn get(&self, i: usize) -> Share {
        Share { mac: self.macs[i], key: self.keys[i] }
    }
}
