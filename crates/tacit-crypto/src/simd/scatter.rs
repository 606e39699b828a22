//! Adding a column of lines to a matrix, each row at a place of its own.

use super::Backend;
#[cfg(target_arch = "x86_64")]
use super::Level;
use crate::Block;

/// Blocks of a line.
pub(crate) const LINE: usize = 4;

/// Adds `lines[r]` to row r of `matrix`, which has `width` blocks a row, from the column `first - offsets[r]`
/// modulo `width` on, and on to the row's start where it ends. Offsets are public and below `width`.
///
/// Panics unless `width` is at least a line, `first` below it, and there are a row and an offset for each
/// line.
pub fn add_lines(
    backend: Backend,
    matrix: &mut [Block],
    width: usize,
    first: usize,
    offsets: &[u32],
    lines: &[[Block; LINE]],
) {
    let rows = lines.len();
    let fits = width >= LINE && first < width && offsets.len() == rows;
    assert!(fits && rows.checked_mul(width).is_some_and(|n| n <= matrix.len()), "shapes do not match");
    match backend.level() {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: this level exists only where AVX-512 was detected; the shapes were asserted above.
        Level::Avx512 => unsafe { x86::add_lines(matrix, width, first, offsets, lines) },
        _ => {
            for ((row, offset), line) in matrix.chunks_exact_mut(width).zip(offsets).zip(lines) {
                add_line(row, column(first, *offset, width), line);
            }
        }
    }
}

#[inline(always)]
fn column(first: usize, offset: u32, width: usize) -> usize {
    let ahead = (first + width).wrapping_sub(offset as usize);
    if ahead >= width { ahead - width } else { ahead }
}

fn add_line(row: &mut [Block], start: usize, line: &[Block; LINE]) {
    let width = row.len();
    for (lane, block) in line.iter().enumerate() {
        row[(start + lane) % width] ^= *block;
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::*;
    use core::arch::x86_64::*;

    #[target_feature(enable = "avx512f")]
    pub(super) unsafe fn add_lines(
        matrix: &mut [Block],
        width: usize,
        first: usize,
        offsets: &[u32],
        lines: &[[Block; LINE]],
    ) {
        for (r, (offset, line)) in offsets.iter().zip(lines).enumerate() {
            let start = column(first, *offset, width);
            if start <= width - LINE {
                // SAFETY: the row lies within the matrix, as the caller checked, and the line within the row.
                unsafe {
                    let slots = matrix.as_mut_ptr().add(r * width + start).cast();
                    let sum =
                        _mm512_xor_si512(_mm512_loadu_si512(slots), _mm512_loadu_si512(line.as_ptr().cast()));
                    _mm512_storeu_si512(slots.cast(), sum);
                    // The next tile's line, as a rule.
                    _mm_prefetch::<_MM_HINT_T0>(slots.cast::<i8>().wrapping_add(64));
                }
            } else {
                add_line(&mut matrix[r * width..][..width], start, line);
            }
        }
    }
}
