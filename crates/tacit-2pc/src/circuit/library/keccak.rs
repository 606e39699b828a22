//! The permutation Keccak-f\[1600\] of SHA-3 (FIPS 202): 38,400 AND gates.
//!
//! The state is 1,600 bits; bit z of lane (x, y) is bit 64·(5y + x) + z, as FIPS 202 orders them, so byte i
//! of the standard's byte strings is bits 8i to 8i+7.

use crate::circuit::{Builder, Integer, Uint};

/// Keccak-f\[1600\]. Panics unless the state has 1,600 bits.
pub fn permute(b: &mut Builder, state: &Uint) -> Uint {
    assert_eq!(state.bits().len(), 1600, "Keccak-f[1600] takes 1,600 bits");
    let mut lanes: Vec<Uint> = (0..25).map(|i| state.slice(64 * i..64 * i + 64)).collect();
    let mut register = 1u8;
    for _ in 0..24 {
        lanes = round(b, &lanes);
        let constant = Uint::constant(round_constant(&mut register).into(), 64);
        lanes[0] = b.xor_bits(&lanes[0], &constant);
    }
    Uint::from_bits(lanes.iter().flat_map(|l| l.bits().to_vec()).collect())
}

/// θ, ρ, π and χ.
fn round(b: &mut Builder, lanes: &[Uint]) -> Vec<Uint> {
    let parity: Vec<Uint> =
        (0..5).map(|x| (1..5).fold(lanes[x].clone(), |acc, y| b.xor_bits(&acc, &lanes[5 * y + x]))).collect();
    let theta: Vec<Uint> = (0..5)
        .map(|x| {
            let turned = b.rotate_left(&parity[(x + 1) % 5], 1);
            b.xor_bits(&parity[(x + 4) % 5], &turned)
        })
        .collect();
    let mut moved = vec![Uint::constant(0, 64); 25];
    moved[0] = b.xor_bits(&lanes[0], &theta[0]);
    let (mut x, mut y) = (1, 0);
    for t in 0..24 {
        let lane = b.xor_bits(&lanes[5 * y + x], &theta[x]);
        let offset = (t + 1) * (t + 2) / 2 % 64;
        (x, y) = (y, (2 * x + 3 * y) % 5);
        // π moves lane (x, y) to (y, 2x + 3y), which is where the walk of ρ goes next.
        moved[5 * y + x] = b.rotate_left(&lane, offset);
    }
    (0..25)
        .map(|i| {
            let (x, y) = (i % 5, i / 5);
            let next = b.not_bits(&moved[5 * y + (x + 1) % 5]);
            let both = b.and_bits(&next, &moved[5 * y + (x + 2) % 5]);
            b.xor_bits(&moved[i], &both)
        })
        .collect()
}

/// The next round constant, from the linear feedback shift register of the standard.
fn round_constant(register: &mut u8) -> u64 {
    let mut constant = 0;
    for j in 0..7 {
        if *register & 1 == 1 {
            constant |= 1u64 << ((1 << j) - 1);
        }
        *register = (*register << 1) ^ ((*register >> 7) * 0x71);
    }
    constant
}
