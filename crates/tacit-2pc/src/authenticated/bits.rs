//! Authenticated bits: shares of a bit, each with a MAC under the peer's Δ.
//!
//! Of a bit b = b_A ⊕ b_B a party holds the MAC of its own share and the key of the peer's: M = K ⊕ share·Δ, Δ the key
//! holder's. As correlated OT gives them, a key's lowest bit is 0 and Δ's is 1, so the lowest bit of a MAC is the share.
//! All is linear: shares, MACs and keys of a sum are the sums.

use crate::Result;
use tacit_crypto::Block;
use tacit_net::Channel;
use tacit_ot::{CotReceiver, CotSender};
use zeroize::{Zeroize, Zeroizing};

/// Blocks that are wiped.
pub(super) type Blocks = Zeroizing<Vec<Block>>;

pub(super) fn zeros(n: usize) -> Blocks {
    Zeroizing::new(vec![Block::ZERO; n])
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

    /// This party's share of the product of the bit and its own Δ, of which the peer's is its MAC.
    #[inline(always)]
    pub(super) fn times_delta(self, delta: Block) -> Block {
        self.key ^ (delta & Block::mask(self.mac.lsb()))
    }
}

/// One party's parts of many authenticated bits: MACs and keys apart, as correlated OT makes them.
pub(super) struct Shares {
    pub(super) macs: Blocks,
    pub(super) keys: Blocks,
}

impl Shares {
    /// Makes `own` bits of this party's with MACs and `peer` of the peer's with keys. The party that `first` holds for
    /// receives first.
    pub(super) fn make(
        channel: &mut Channel,
        sender: &mut dyn CotSender,
        receiver: &mut dyn CotReceiver,
        first: bool,
        own: usize,
        peer: usize,
    ) -> Result<Self> {
        let mut shares = Shares { macs: zeros(own), keys: zeros(peer) };
        for receives in [first, !first] {
            match receives {
                true if own > 0 => receiver.extend(channel, &mut shares.macs)?,
                false if peer > 0 => sender.extend(channel, &mut shares.keys)?,
                _ => (),
            }
        }
        Ok(shares)
    }

    pub(super) fn get(&self, i: usize) -> Share {
        Share { mac: self.macs[i], key: self.keys[i] }
    }
}

impl Zeroize for Shares {
    fn zeroize(&mut self) {
        self.macs.zeroize();
        self.keys.zeroize();
    }
}
