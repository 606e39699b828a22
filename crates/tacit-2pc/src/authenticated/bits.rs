//! Authenticated bits: shares of a bit, each with a MAC under the peer's Δ.
//!
//! Of a bit b = b_A ⊕ b_B a party holds the MAC of its own share and the key of the peer's: M = K ⊕ share·Δ,
//! Δ the key holder's. As correlated OT gives them, a key's lowest bit is 0 and Δ's is 1, so the lowest bit
//! of a MAC is the share. All is linear: shares, MACs and keys of a sum are the sums.

use crate::Result;
use std::ops::Range;
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

/// A [`Share`] where it stands.
pub(super) struct ShareMut<'a> {
    mac: &'a mut Block,
    key: &'a mut Block,
}

impl ShareMut<'_> {
    #[inline(always)]
    pub(super) fn get(&self) -> Share {
        Share { mac: *self.mac, key: *self.key }
    }

    #[inline(always)]
    pub(super) fn add(self, share: Share) {
        *self.mac ^= share.mac;
        *self.key ^= share.key;
    }

    #[inline(always)]
    pub(super) fn set(self, share: Share) {
        (*self.mac, *self.key) = (share.mac, share.key);
    }
}

/// What a party holds for many AND gates, three bits each: of a triple, whose third is the product of the
/// others; later, of the masks of the operands, and of their product's sum with the result's.
///
/// The first bits of all gates stand before all second and all third ones, as correlated OT makes them.
#[derive(Clone, Copy)]
pub(super) struct Gates<'a> {
    pub(super) macs: [&'a [Block]; 3],
    pub(super) keys: [&'a [Block]; 3],
}

impl<'a> Gates<'a> {
    /// In blocks for three bits of each gate.
    pub(super) fn of(macs: &'a [Block], keys: &'a [Block]) -> Self {
        let third = |blocks: &'a [Block], i: usize| &blocks[i * blocks.len() / 3..(i + 1) * blocks.len() / 3];
        Gates { macs: [0, 1, 2].map(|i| third(macs, i)), keys: [0, 1, 2].map(|i| third(keys, i)) }
    }

    /// Of some of the gates.
    pub(super) fn part(&self, range: Range<usize>) -> Gates<'a> {
        let part = |of: [&'a [Block]; 3]| of.map(|blocks| &blocks[range.clone()]);
        Gates { macs: part(self.macs), keys: part(self.keys) }
    }

    /// What it holds of each gate.
    pub(super) fn iter(&self) -> impl Iterator<Item = [Share; 3]> + use<'a> {
        let of = |i: usize| self.macs[i].iter().zip(self.keys[i]);
        let share = |(&mac, &key)| Share { mac, key };
        of(0).zip(of(1)).zip(of(2)).map(move |((first, second), third)| [first, second, third].map(share))
    }
}

/// Memory for [`Gates`].
pub(super) struct Stock {
    pub(super) bits: Shares,
    gates: usize,
}

impl Stock {
    pub(super) fn zeros(gates: usize) -> Self {
        Stock::within(Shares::zeros(3 * gates, 3 * gates), gates)
    }

    /// For `gates` gates, in three shares for each or more.
    pub(super) fn within(bits: Shares, gates: usize) -> Self {
        Stock { bits, gates }
    }

    pub(super) fn gates(&self) -> Gates<'_> {
        let all = 3 * self.gates;
        Gates::of(&self.bits.macs[..all], &self.bits.keys[..all])
    }

    pub(super) fn gates_mut(&mut self) -> GatesMut<'_> {
        let all = 3 * self.gates;
        GatesMut::of(&mut self.bits.macs[..all], &mut self.bits.keys[..all])
    }
}

/// [`Gates`] that change.
pub(super) struct GatesMut<'a> {
    pub(super) macs: [&'a mut [Block]; 3],
    pub(super) keys: [&'a mut [Block]; 3],
}

impl<'a> GatesMut<'a> {
    /// In blocks for three bits of each gate.
    pub(super) fn of(macs: &'a mut [Block], keys: &'a mut [Block]) -> Self {
        let thirds = |blocks: &'a mut [Block]| {
            let gates = blocks.len() / 3;
            let (first, rest) = blocks.split_at_mut(gates);
            let (second, third) = rest.split_at_mut(gates);
            [first, second, third]
        };
        GatesMut { macs: thirds(macs), keys: thirds(keys) }
    }

    pub(super) fn len(&self) -> usize {
        self.macs[0].len()
    }

    pub(super) fn copy_from(&mut self, gates: Gates<'_>) {
        for (to, from) in [(&mut self.macs, gates.macs), (&mut self.keys, gates.keys)] {
            to.iter_mut().zip(from).for_each(|(to, from)| to.copy_from_slice(from));
        }
    }

    pub(super) fn shared(&self) -> Gates<'_> {
        Gates { macs: self.macs.each_ref().map(|b| &**b), keys: self.keys.each_ref().map(|b| &**b) }
    }

    /// Of some of the gates.
    pub(super) fn part(&mut self, range: Range<usize>) -> GatesMut<'_> {
        GatesMut {
            macs: self.macs.each_mut().map(|blocks| &mut blocks[range.clone()]),
            keys: self.keys.each_mut().map(|blocks| &mut blocks[range.clone()]),
        }
    }

    /// What it holds of each gate.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = [ShareMut<'_>; 3]> {
        let [a, b, c] = self.macs.each_mut().map(|blocks| blocks.iter_mut());
        let [d, e, f] = self.keys.each_mut().map(|blocks| blocks.iter_mut());
        let all = a.zip(d).zip(b.zip(e)).zip(c.zip(f));
        let share = |(mac, key)| ShareMut { mac, key };
        all.map(move |((first, second), third)| [first, second, third].map(share))
    }
}

type Extend<'a> = &'a mut dyn FnMut(&mut Channel, Vec<&mut [Block]>, Vec<&mut [Block]>) -> Result<()>;

/// Correlated OT both ways.
pub(super) struct Cots<'a> {
    /// The Δ of the keys.
    pub(super) delta: Block,
    /// Fills keys, of the peer's bits, and MACs, of own ones, part after part.
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

    #[inline(always)]
    pub(super) fn get(&self, i: usize) -> Share {
        Share { mac: self.macs[i], key: self.keys[i] }
    }
}
