//! AES-128: one key over many blocks, and many keys side by side.

use crate::Block;
use crate::simd::{self, Backend};
use zeroize::Zeroize;

/// AES-128 with an expanded key.
#[derive(Clone)]
pub struct Aes128 {
    round_keys: [Block; 11],
}

impl core::fmt::Debug for Aes128 {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Aes128([secret])")
    }
}

impl Drop for Aes128 {
    fn drop(&mut self) {
        self.round_keys.zeroize();
    }
}

impl Aes128 {
    /// Expands `key`.
    pub fn new(key: Block) -> Self {
        Aes128 { round_keys: simd::aes::expand(Backend::active(), key) }
    }

    /// AES of one block.
    pub fn encrypt(&self, block: Block) -> Block {
        let mut out = [block];
        self.encrypt_blocks(&mut out);
        out[0]
    }

    /// AES of each block, in place.
    pub fn encrypt_blocks(&self, blocks: &mut [Block]) {
        simd::aes::encrypt_blocks(Backend::active(), &self.round_keys, blocks);
    }

    /// The key and the ten round keys that follow from it.
    pub(crate) fn round_keys(&self) -> &[Block; 11] {
        &self.round_keys
    }
}

/// AES of `blocks[i]` under `keys[i]`, in place, with the key schedules computed side by side.
///
/// Panics when the lengths differ.
pub fn encrypt_rekeyed(keys: &[Block], blocks: &mut [Block]) {
    simd::aes::rekeyed(Backend::active(), keys, blocks);
}
