//! Bit-matrix transpose between 128 columns of n bits and n rows of 128 bits.

use crate::Block;
use crate::simd::{Backend, transpose::tiles};

/// Rows that go through all slices of a wide matrix before the next ones do.
const WIDE_TILES: usize = 8;

/// Transposes 128 bit columns into rows.
///
/// Column `i` is the `out.len()` bits that start at `columns[i * stride]`, packed lowest bit first (`stride`
/// in blocks, `stride * 128 >= out.len()`). `out[j]` gets bit `j` of column `i` as its bit `i`. Panics when
/// `columns` is too short.
pub fn columns_to_rows(columns: &[Block], stride: usize, out: &mut [Block]) {
    columns_to_wide_rows(columns, stride, 1, out);
}

/// Transposes `128 * width` bit columns into rows of `width` blocks.
///
/// Columns as in [`columns_to_rows`]; row `j` is `out[j * width..][..width]`, and column `i` is bit `i % 128`
/// of block `i / 128` in it. Panics when `width` is zero, when `out` holds a broken row, or when `columns` is
/// too short.
pub fn columns_to_wide_rows(columns: &[Block], stride: usize, width: usize, out: &mut [Block]) {
    assert!(width > 0 && out.len().is_multiple_of(width), "whole rows");
    let rows = out.len() / width;
    assert!(stride >= rows.div_ceil(128) && columns.len() / 128 / width >= stride, "columns too short");
    let backend = Backend::active();
    let whole = rows / 128;
    for first in (0..whole).step_by(WIDE_TILES) {
        let count = WIDE_TILES.min(whole - first);
        for slice in 0..width {
            let input = &columns[slice * 128 * stride + first..];
            let out = &mut out[first * 128 * width + slice..];
            tiles(backend, input, [stride, 1], out, [width, 128 * width], count);
        }
    }
    let rest = &mut out[whole * 128 * width..];
    if !rest.is_empty() {
        let mut tile = [Block::ZERO; 128];
        for slice in 0..width {
            tiles(backend, &columns[slice * 128 * stride + whole..], [stride, 0], &mut tile, [1, 0], 1);
            for (row, block) in rest.chunks_exact_mut(width).zip(tile) {
                row[slice] = block;
            }
        }
    }
}

/// Transposes rows of 128 bits into 128 bit columns, the inverse of [`columns_to_rows`].
///
/// Column `i` takes the `rows.len().div_ceil(128)` blocks from `columns[i * stride]` on; bits past
/// `rows.len()` are zero, and blocks between the columns are left alone. Panics when `columns` is too short.
pub fn rows_to_columns(rows: &[Block], columns: &mut [Block], stride: usize) {
    let blocks = rows.len().div_ceil(128);
    if blocks == 0 {
        return;
    }
    assert!(stride >= blocks && columns.len() >= 127 * stride + blocks, "columns too short");
    let backend = Backend::active();
    let (whole, rest) = rows.split_at(rows.len() / 128 * 128);
    tiles(backend, whole, [1, 128], columns, [stride, 1], whole.len() / 128);
    if !rest.is_empty() {
        let mut tile = [Block::ZERO; 128];
        tile[..rest.len()].copy_from_slice(rest);
        tiles(backend, &tile, [1, 0], &mut columns[blocks - 1..], [stride, 0], 1);
    }
}
