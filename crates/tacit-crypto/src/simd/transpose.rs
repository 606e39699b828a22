//! The 128×128 bit transpose, over tiles at any distance from one another.

#[cfg(target_arch = "x86_64")]
use super::Level;
#[cfg(target_arch = "x86_64")]
use super::transpose_x86 as x86;
use super::{Backend, transpose_portable as portable};
use crate::Block;

/// Transposes `count` tiles of 128×128 bits.
///
/// Line `i` of tile `t` is `input[i * from[0] + t * from[1]]`, and likewise with `to` in `out`: bit `j` of an
/// input's line `i` becomes bit `i` of the output's line `j`. Panics when a tile lies outside its slice.
pub fn tiles(
    backend: Backend,
    input: &[Block],
    from: [usize; 2],
    out: &mut [Block],
    to: [usize; 2],
    count: usize,
) {
    assert!(portable::fits(input.len(), from, count), "input too short for its tiles");
    assert!(portable::fits(out.len(), to, count), "output too short for its tiles");
    match backend.level() {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a backend of this level exists only where all its features were detected.
        Level::Avx512 => unsafe { x86::wide512::tiles(input, from, out, to, count) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        Level::Avx2 => unsafe { x86::wide256::tiles(input, from, out, to, count) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        Level::AesNi => unsafe { x86::wide128::tiles(input, from, out, to, count) },
        _ => portable::tiles(input, from, out, to, count),
    }
}
