//! Functions written with the builder: ciphers, hashes, sorting, search, arithmetic that says when it
//! overflows.
//!
//! Ciphers and hashes read byte strings as numbers whose first byte is the most significant, as their
//! standards write them.

pub mod aes;
pub mod checked;
pub mod keccak;
pub mod modexp;
pub mod search;
pub mod sha1;
pub mod sha2;
pub mod sort;

use super::{Bit, Uint};

/// The bytes of a number, most significant first; each byte's bits stand lowest first.
pub(crate) fn bytes_of(x: &Uint) -> Vec<Vec<Bit>> {
    x.bits().rchunks(8).map(<[Bit]>::to_vec).collect()
}

/// The number whose bytes, most significant first, are `bytes`.
pub(crate) fn from_bytes(bytes: &[Vec<Bit>]) -> Uint {
    Uint::from_bits(bytes.iter().rev().flatten().copied().collect())
}

/// The words of `width` bits of a number, most significant first.
pub(crate) fn words_of(x: &Uint, width: usize) -> Vec<Uint> {
    x.bits().rchunks(width).map(|w| Uint::from_bits(w.to_vec())).collect()
}

/// The number whose words, most significant first, are `words`.
pub(crate) fn from_words(words: &[Uint]) -> Uint {
    Uint::from_bits(words.iter().rev().flat_map(|w| w.bits().to_vec()).collect())
}
