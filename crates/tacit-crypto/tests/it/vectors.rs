//! Published vectors, on every backend of this processor.

use crate::common;
use tacit_crypto::simd::{self, Backend};
use tacit_crypto::{Block, aes::Aes128, hash};

fn block(hex: &str) -> Block {
    Block::new(u128::from_str_radix(hex, 16).unwrap().swap_bytes())
}

#[test]
fn aes_fips_197() {
    let key = block("000102030405060708090a0b0c0d0e0f");
    let plain = block("00112233445566778899aabbccddeeff");
    let expected = "69c4e0d86a7b0430d8cdb78070b4c55a";
    assert_eq!(Aes128::new(key).encrypt(plain).to_hex(), expected);
    assert_eq!(common::aes128(key, plain).to_hex(), expected);
    for backend in Backend::available() {
        let mut out = [plain; 37];
        simd::aes::encrypt_blocks(backend, &simd::aes::expand(backend, key), &mut out);
        assert!(out.iter().all(|b| b.to_hex() == expected), "{}", backend.name());
        let mut out = [plain; 37];
        simd::aes::rekeyed(backend, &[key; 37], &mut out);
        assert!(out.iter().all(|b| b.to_hex() == expected), "{}", backend.name());
    }
}

#[test]
fn aes_key_expansion_of_fips_197() {
    let key = block("2b7e151628aed2a6abf7158809cf4f3c");
    for backend in Backend::available() {
        let round_keys = simd::aes::expand(backend, key);
        assert_eq!(round_keys[1].to_hex(), "a0fafe1788542cb123a339392a6c7605", "{}", backend.name());
        assert_eq!(round_keys[10].to_hex(), "d014f9a8c9ee2589e13f0cc8b6630ca6", "{}", backend.name());
    }
}

#[test]
fn aes_ecb_of_sp_800_38a() {
    let key = block("2b7e151628aed2a6abf7158809cf4f3c");
    let plain = [
        "6bc1bee22e409f96e93d7e117393172a",
        "ae2d8a571e03ac9c9eb76fac45af8e51",
        "30c81c46a35ce411e5fbc1191a0a52ef",
        "f69f2445df4f9b17ad2b417be66c3710",
    ];
    let expected = [
        "3ad77bb40d7a3660a89ecaf32466ef97",
        "f5d3d58503b9699de785895a96fdbaaf",
        "43b1cd7f598ece23881b00e3ed030688",
        "7b0c785e27e8ad3f8223207104725dd4",
    ];
    for backend in Backend::available() {
        let mut blocks = plain.map(block);
        simd::aes::encrypt_blocks(backend, &simd::aes::expand(backend, key), &mut blocks);
        assert_eq!(blocks.map(Block::to_hex), expected, "{}", backend.name());
    }
}

/// The counter block of SP 800-38A counts in big-endian order, so it is taken block by block.
#[test]
fn aes_ctr_of_sp_800_38a() {
    let aes = Aes128::new(block("2b7e151628aed2a6abf7158809cf4f3c"));
    let first = aes.encrypt(block("f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff"));
    assert_eq!(first.to_hex(), "ec8cdf7398607cb0f2d21675ea9ea1e4");
    let second = aes.encrypt(block("f0f1f2f3f4f5f6f7f8f9fafbfcfdff00"));
    assert_eq!(second.to_hex(), "362b7c3c6773516318a077d7fc5073ae");
}

#[test]
fn hashes_of_zero_and_of_counting_bytes() {
    let x = block("000102030405060708090a0b0c0d0e0f");
    assert_eq!(hash::ccr(Block::ZERO).to_hex(), "66e94bd4ef8a2c3b884cfa59ca342b2e");
    assert_eq!(hash::ccr(x).to_hex(), "e7aaec1f96cd392fcc9e3f36bc5305f2");
    assert_eq!(hash::tccr(x, Block::ONE).to_hex(), "c86a8569723e30fb6ec279addf4dfb17");
    assert_eq!(common::ccr(x), hash::ccr(x));
    assert_eq!(common::tccr(x, 1), hash::tccr(x, Block::ONE));
}

/// BLAKE3 of nothing and of "abc".
#[test]
fn blake3_published() {
    let empty = blake3::hash(b"").to_hex();
    assert_eq!(empty.as_str(), "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262");
    let abc = blake3::hash(b"abc").to_hex();
    assert_eq!(abc.as_str(), "6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85");
}
