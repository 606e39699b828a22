//! The 128×128 bit transpose in plain Rust: seven rounds of swaps between rows (Eklundh's method).

use crate::Block;

/// Swaps, in every pair of rows `S` apart, the high bits of one with the low bits of the other.
#[inline(always)]
fn round<const S: usize>(rows: &mut [u128; 128]) {
    // In each run of 2·S bits, the low S.
    let mask = u128::MAX / ((1u128 << S) + 1);
    for pair in rows.chunks_exact_mut(2 * S) {
        let (low, high) = pair.split_at_mut(S);
        for (a, b) in low.iter_mut().zip(high) {
            let t = ((*a >> S) ^ *b) & mask;
            *b ^= t;
            *a ^= t << S;
        }
    }
}

fn transpose(rows: &mut [u128; 128]) {
    round::<64>(rows);
    round::<32>(rows);
    round::<16>(rows);
    round::<8>(rows);
    round::<4>(rows);
    round::<2>(rows);
    round::<1>(rows);
}

pub(super) fn tiles(
    input: &[Block],
    [in_stride, in_step]: [usize; 2],
    out: &mut [Block],
    [out_stride, out_step]: [usize; 2],
    count: usize,
) {
    let mut rows = [0u128; 128];
    for tile in 0..count {
        for (i, row) in rows.iter_mut().enumerate() {
            *row = input[tile * in_step + i * in_stride].to_u128();
        }
        transpose(&mut rows);
        for (i, row) in rows.iter().enumerate() {
            out[tile * out_step + i * out_stride] = Block::new(*row);
        }
    }
}

/// Whether `count` tiles lie within `len` blocks.
pub(super) fn fits(len: usize, [stride, step]: [usize; 2], count: usize) -> bool {
    let Some(last_tile) = count.checked_sub(1) else { return true };
    let last =
        127usize.checked_mul(stride).zip(last_tile.checked_mul(step)).and_then(|(a, b)| a.checked_add(b));
    last.is_some_and(|last| last < len)
}
