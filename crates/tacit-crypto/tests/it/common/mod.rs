//! Slow second implementations, written from the definitions, to hold the kernels against.
#![allow(dead_code)]

use tacit_crypto::Block;

fn xtime(a: u8) -> u8 {
    (a << 1) ^ ((a >> 7) * 0x1b)
}

fn gf256_mul(mut a: u8, mut b: u8) -> u8 {
    let mut product = 0;
    while b != 0 {
        if b & 1 == 1 {
            product ^= a;
        }
        a = xtime(a);
        b >>= 1;
    }
    product
}

/// The S-box of FIPS 197, section 5.1.1: inverse by search, then the affine map.
fn sbox() -> &'static [u8; 256] {
    static TABLE: std::sync::OnceLock<[u8; 256]> = std::sync::OnceLock::new();
    TABLE.get_or_init(|| {
        std::array::from_fn(|x| {
            let inverse = (1..=255).find(|&y| gf256_mul(x as u8, y) == 1).unwrap_or(0);
            (0..5).fold(0x63, |acc, i| acc ^ inverse.rotate_left(i))
        })
    })
}

/// AES-128 as FIPS 197 describes it.
pub(crate) fn aes128(key: Block, block: Block) -> Block {
    let sbox = sbox();
    let key = key.to_bytes();
    let mut words: Vec<[u8; 4]> = key.chunks(4).map(|w| w.try_into().unwrap()).collect();
    let mut rcon = 1;
    for i in 4..44 {
        let mut t = words[i - 1];
        if i % 4 == 0 {
            t = [t[1], t[2], t[3], t[0]].map(|b| sbox[b as usize]);
            t[0] ^= rcon;
            rcon = xtime(rcon);
        }
        words.push(std::array::from_fn(|j| words[i - 4][j] ^ t[j]));
    }
    let mut state = block.to_bytes();
    for round in 0..11 {
        if round > 0 {
            let old = state.map(|b| sbox[b as usize]);
            state = std::array::from_fn(|i| old[(i + 4 * (i % 4)) % 16]);
        }
        if round > 0 && round < 10 {
            let old = state;
            state = std::array::from_fn(|i| {
                let at = |r: usize| old[i / 4 * 4 + (i + r) % 4];
                gf256_mul(at(0), 2) ^ gf256_mul(at(1), 3) ^ at(2) ^ at(3)
            });
        }
        for (i, byte) in state.iter_mut().enumerate() {
            *byte ^= words[4 * round + i / 4][i % 4];
        }
    }
    Block::from_bytes(state)
}

pub(crate) fn sigma(x: Block) -> Block {
    let bytes = x.to_bytes();
    let mut out = [0; 16];
    for i in 0..8 {
        out[i] = bytes[8 + i];
        out[8 + i] = bytes[i] ^ bytes[8 + i];
    }
    Block::from_bytes(out)
}

pub(crate) fn ccr(x: Block) -> Block {
    aes128(Block::ZERO, sigma(x)) ^ sigma(x)
}

pub(crate) fn tccr(x: Block, tweak: u128) -> Block {
    let once = aes128(Block::ZERO, x);
    aes128(Block::ZERO, once ^ Block::new(tweak)) ^ once
}

pub(crate) fn mitccrh(start: Block, gid: u64, x: Block) -> Block {
    aes128(start ^ Block::new(gid as u128), sigma(x)) ^ sigma(x)
}

/// The product in GF(2^128), bit by bit.
pub(crate) fn gf128_mul(a: Block, b: Block) -> Block {
    let mut product = Block::ZERO;
    let mut shifted = a.to_u128();
    for i in 0..128 {
        if b.bit(i) {
            product ^= Block::new(shifted);
        }
        let carry = shifted >> 127;
        shifted <<= 1;
        if carry == 1 {
            shifted ^= 0x87;
        }
    }
    product
}

/// `count` blocks that follow from `seed` (splitmix64: no kernel under test takes part).
pub(crate) fn blocks(seed: u64, count: usize) -> Vec<Block> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    };
    (0..count).map(|_| Block::from_halves(next(), next())).collect()
}

pub(crate) fn hex(blocks: &[Block]) -> Vec<String> {
    blocks.iter().map(|b| b.to_hex()).collect()
}

/// Sizes around every boundary of the kernels.
pub(crate) const SIZES: [usize; 22] =
    [0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 300];
