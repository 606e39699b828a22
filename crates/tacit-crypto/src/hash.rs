//! Correlation-robust hash functions from AES (Guo–Katz–Wang–Yu, 2019/074 and 2019/1168).

pub use crate::simd::aes::sigma;
use crate::simd::{self, Backend};
use crate::{Block, aes::Aes128};
use std::sync::LazyLock;

static PI: LazyLock<Aes128> = LazyLock::new(|| Aes128::new(Block::ZERO));

/// CCR(x) = π(σ(x)) ⊕ σ(x), circular correlation robust in the ideal-permutation model.
pub fn ccr(x: Block) -> Block {
    let mut out = [x];
    ccr_blocks(&mut out);
    out[0]
}

/// [`ccr`] of each block, in place.
pub(crate) fn ccr_blocks(blocks: &mut [Block]) {
    simd::aes::ccr_in_place(Backend::active(), PI.round_keys(), blocks);
}

/// [`ccr`] of each block of `input`, into `out`; panics when the lengths differ.
pub fn ccr_into(input: &[Block], out: &mut [Block]) {
    simd::aes::ccr(Backend::active(), PI.round_keys(), input, out);
}

/// TCCR(x, i) = π(π(x) ⊕ i) ⊕ π(x), tweakable circular correlation robust.
pub fn tccr(x: Block, tweak: Block) -> Block {
    let mut out = [x];
    tccr_blocks(&mut out, tweak.to_u128());
    out[0]
}

/// [`tccr`] of each block, in place; `blocks[j]` takes the tweak `first_tweak + j` (as a little-endian
/// number).
pub(crate) fn tccr_blocks(blocks: &mut [Block], first_tweak: u128) {
    simd::aes::tccr(Backend::active(), PI.round_keys(), blocks, first_tweak);
}

/// MITCCRH(x, gid) = AES_{S ⊕ gid}(σ(x)) ⊕ σ(x): re-keyed, so that concrete security does not fall as
/// instances add up.
///
/// `S` is fresh, public and random per session (per circuit in cut-and-choose); a `gid` never repeats under
/// one `S` except for the inputs that one gate or one OT hashes together. The adversary's advantage grows in
/// proportion to μ, the greatest number of unknown inputs under any one gid (2019/1168), so every doubling of
/// μ costs about one bit.
#[derive(Clone)]
pub struct Mitccrh {
    start: Block,
}

impl Mitccrh {
    /// The hash of the session whose public random start point is `start`.
    pub fn new(start: Block) -> Self {
        Mitccrh { start }
    }

    /// Hashes `blocks` in place, `per_gid` consecutive blocks under each gid, gids counting up from
    /// `first_gid`.
    ///
    /// Quickest with 1, 2, 4 or 8 blocks a gid; the last gid may have fewer. Panics when `per_gid` is zero.
    pub fn hash_blocks(&self, first_gid: u64, per_gid: usize, blocks: &mut [Block]) {
        simd::aes::mitccrh(Backend::active(), self.start, first_gid, per_gid, blocks);
    }

    /// Hashes many blocks under one `gid`, in place: one key schedule for all, and μ is their number.
    pub fn hash_group(&self, gid: u64, blocks: &mut [Block]) {
        let keys = simd::aes::expand(Backend::active(), self.start ^ Block::new(gid.into()));
        simd::aes::ccr_in_place(Backend::active(), &keys, blocks);
    }

    /// Hashes one block under `gid`.
    pub fn hash(&self, gid: u64, block: Block) -> Block {
        let mut out = [block];
        self.hash_blocks(gid, 1, &mut out);
        out[0]
    }

    /// The pads of random OTs, from the sender's side of correlated ones: `out[i]` gets the hashes of `v[i]`
    /// and of `v[i] ⊕ delta`, both under gid `first_gid + i`.
    ///
    /// The peer knows one of the two, so μ = 1. Panics when the lengths differ.
    pub fn cot_to_rot_sender(&self, first_gid: u64, delta: Block, v: &[Block], out: &mut [[Block; 2]]) {
        simd::aes::cot_sender(Backend::active(), self.start, first_gid, delta, v, out);
    }

    /// The pads of random OTs, from the receiver's side of correlated ones: `out[i]` gets the hash of `w[i]`
    /// under gid `first_gid + i`. Panics when the lengths differ.
    pub fn cot_to_rot_receiver(&self, first_gid: u64, w: &[Block], out: &mut [Block]) {
        simd::aes::cot_receiver(Backend::active(), self.start, first_gid, w, out);
    }
}
/// BLAKE3's keyed hash of the first `len` bytes of each message, at most 64, behind which there are zeros;
/// many messages side by side fill vectors.
///
/// Panics when there is not one result a message, or `len` is more than 64.
pub fn blake3_keyed(key: &[u8; 32], len: usize, messages: &[[u8; 64]], out: &mut [[u8; 32]]) {
    simd::blake3::keyed(Backend::active(), key, len, messages, out);
}
