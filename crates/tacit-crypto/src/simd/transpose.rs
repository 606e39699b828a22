//! The 128×128 bit transpose, over tiles at any distance from one another.

#[cfg(target_arch = "x86_64")]
use super::transpose_x86;
use super::{Backend, transpose_portable};
use crate::Block;

/// Transposes `count` tiles of 128×128 bits.
///
/// Line `i` of tile `t` is `input[i * from[0] + t * from[1]]`, and likewise with `to` in `out`: bit `j` of an input's
/// line `i` becomes bit `i` of the output's line `j`. Panics when a tile lies outside its slice.
pub fn tiles(
    backend: Backend,
    input: &[Block],
    from: [usize; 2],
    out: &mut [Block],
    to: [usize; 2],
    count: usize,
) {
    assert!(fits(input.len(), from, count), "input too short for its tiles");
    assert!(fits(out.len(), to, count), "output too short for its tiles");
    match backend.level() {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a backend of this level exists only where all its features were detected.
        super::Level::Avx512 => unsafe { transpose_x86::wide512::tiles(input, from, out, to, count) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        super::Level::Avx2 => unsafe { transpose_x86::wide256::tiles(input, from, out, to, count) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        super::Level::AesNi => unsafe { transpose_x86::wide128::tiles(input, from, out, to, count) },
        _ => transpose_portable::tiles(input, from, out, to, count),
    }
}

/// Whether `count` tiles lie within `len` blocks.
pub(super) fn fits(len: usize, [stride, step]: [usize; 2], count: usize) -> bool {
    let Some(last_tile) = count.checked_sub(1) else { return true };
    let last =
        127usize.checked_mul(stride).zip(last_tile.checked_mul(step)).and_then(|(a, b)| a.checked_add(b));
    last.is_some_and(|last| last < len)
}
