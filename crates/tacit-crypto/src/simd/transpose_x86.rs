//! The 128×128 bit transpose with SSE2 and AVX2 (bit swaps between registers, then byte unpacking) and with
//! AVX-512 (one GFNI instruction for eight 8×8 bit transposes, byte permutations around it).

use super::x86::{gather512, scatter512};
use crate::Block;
use core::arch::x86_64::*;

/// Panics unless `count` tiles at these strides and steps lie within the slices.
fn check(input: &[Block], from: [usize; 2], out: &[Block], to: [usize; 2], count: usize) {
    assert!(super::transpose_portable::fits(input.len(), from, count), "input too short for its tiles");
    assert!(super::transpose_portable::fits(out.len(), to, count), "output too short for its tiles");
}

macro_rules! unpacking {
    (
        $module:ident, $features:literal, $register:ident, $tiles:literal, load: $load:expr, store: $store:expr,
        and: $and:ident, xor: $xor:ident, set: $set:ident, zero: $zero:ident, right: $right:ident, left: $left:ident,
        low: $low:ident, high: $high:ident
    ) => {
        pub(super) mod $module {
            use super::*;

            /// Transposes the 8×8 bits at each byte of eight registers.
            #[inline]
            #[target_feature(enable = $features)]
            fn exchange(x: &mut [$register; 8]) {
                macro_rules! round {
                    ($shift:literal, $mask:expr, $pairs:expr) => {
                        for (a, b) in $pairs {
                            let t = $and($xor($right::<$shift>(x[a]), x[b]), $set($mask));
                            x[b] = $xor(x[b], t);
                            x[a] = $xor(x[a], $left::<$shift>(t));
                        }
                    };
                }
                round!(1, 0x55, [(0, 1), (2, 3), (4, 5), (6, 7)]);
                round!(2, 0x33, [(0, 2), (1, 3), (4, 6), (5, 7)]);
                round!(4, 0x0f, [(0, 4), (1, 5), (2, 6), (3, 7)]);
            }

            /// Transposes the 16×16 bytes of sixteen registers, in each 128-bit lane: a round moves the top
            /// bit of the register's number to the bottom of the byte's, and the byte's top bit to the
            /// register's bottom.
            #[inline]
            #[target_feature(enable = $features)]
            fn transpose_bytes(mut x: [$register; 16]) -> [$register; 16] {
                for _ in 0..4 {
                    let old = x;
                    for i in 0..8 {
                        x[2 * i] = $low(old[i], old[i + 8]);
                        x[2 * i + 1] = $high(old[i], old[i + 8]);
                    }
                }
                x
            }

            /// As many tiles side by side as the register has lanes.
            ///
            /// # Safety
            /// The tiles lie within what the pointers point to.
            #[inline]
            #[target_feature(enable = $features)]
            unsafe fn transpose(input: *const Block, from: [usize; 2], out: *mut Block, to: [usize; 2]) {
                let mut groups = [[$zero(); 16]; 8];
                for g in 0..16 {
                    let mut x = [$zero(); 8];
                    for (c, x) in x.iter_mut().enumerate() {
                        // SAFETY: the caller answers for the tile.
                        *x = unsafe { $load(input.add((8 * g + c) * from[0]), from[1]) };
                    }
                    exchange(&mut x);
                    for (r, x) in x.iter().enumerate() {
                        groups[r][g] = *x;
                    }
                }
                for (r, groups) in groups.iter().enumerate() {
                    for (p, row) in transpose_bytes(*groups).iter().enumerate() {
                        // SAFETY: the caller answers for the tile.
                        unsafe { $store(*row, out.add((8 * p + r) * to[0]), to[1]) }
                    }
                }
            }

            #[target_feature(enable = $features)]
            pub(crate) fn tiles(
                input: &[Block],
                from: [usize; 2],
                out: &mut [Block],
                to: [usize; 2],
                count: usize,
            ) {
                check(input, from, out, to, count);
                let whole = count / $tiles * $tiles;
                for tile in (0..whole).step_by($tiles) {
                    // SAFETY: `check` found every tile within the slices.
                    unsafe {
                        transpose(
                            input.as_ptr().add(tile * from[1]),
                            from,
                            out.as_mut_ptr().add(tile * to[1]),
                            to,
                        );
                    }
                }
                if whole < count {
                    super::wide128::tiles(
                        &input[whole * from[1]..],
                        from,
                        &mut out[whole * to[1]..],
                        to,
                        count - whole,
                    );
                }
            }
        }
    };
}

/// # Safety
/// `from` is readable.
#[inline(always)]
unsafe fn load128(from: *const Block, _step: usize) -> __m128i {
    // SAFETY: passed on to the caller.
    unsafe { _mm_loadu_si128(from.cast()) }
}

/// # Safety
/// `to` is writable.
#[inline(always)]
unsafe fn store128(x: __m128i, to: *mut Block, _step: usize) {
    // SAFETY: passed on to the caller.
    unsafe { _mm_storeu_si128(to.cast(), x) }
}

use super::x86::{gather256, scatter256};

unpacking!(
    wide128, "sse2", __m128i, 1, load: load128, store: store128, and: _mm_and_si128,
    xor: _mm_xor_si128, set: _mm_set1_epi8, zero: _mm_setzero_si128, right: _mm_srli_epi64, left: _mm_slli_epi64,
    low: _mm_unpacklo_epi8, high: _mm_unpackhi_epi8
);
unpacking!(
    wide256, "avx2", __m256i, 2, load: gather256, store: scatter256, and: _mm256_and_si256, xor: _mm256_xor_si256,
    set: _mm256_set1_epi8, zero: _mm256_setzero_si256, right: _mm256_srli_epi64, left: _mm256_slli_epi64,
    low: _mm256_unpacklo_epi8, high: _mm256_unpackhi_epi8
);

pub(super) mod wide512 {
    use super::*;

    /// From four columns in each of two registers to eight columns' bytes side by side, for eight byte
    /// positions from `first` on; a group of eight stands in reverse, which is how GF2P8AFFINEQB reads its
    /// matrix.
    const fn gather_bytes(first: usize) -> [u8; 64] {
        let mut index = [0; 64];
        let mut i = 0;
        while i < 64 {
            let column = 7 - i % 8;
            index[i] = (column * 16 + first + i / 8) as u8;
            i += 1;
        }
        index
    }

    /// From 16 groups' bytes for eight rows to rows of 16 bytes, four rows from `first` on.
    const fn gather_rows(first: usize) -> [u8; 64] {
        let mut index = [0; 64];
        let mut i = 0;
        while i < 64 {
            index[i] = (i % 16 * 8 + first + i / 16) as u8;
            i += 1;
        }
        index
    }

    const BYTES: [[u8; 64]; 2] = [gather_bytes(0), gather_bytes(8)];
    const ROWS: [[u8; 64]; 2] = [gather_rows(0), gather_rows(4)];

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn constant(bytes: &[u8; 64]) -> __m512i {
        // SAFETY: the load reads the array at hand.
        unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
    }

    /// Transposes the 8×8 quadwords of eight registers.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn transpose_quadwords(x: [__m512i; 8]) -> [__m512i; 8] {
        let mut even = [_mm512_setzero_si512(); 4];
        let mut odd = even;
        for i in 0..4 {
            even[i] = _mm512_unpacklo_epi64(x[2 * i], x[2 * i + 1]);
            odd[i] = _mm512_unpackhi_epi64(x[2 * i], x[2 * i + 1]);
        }
        let [q0, q2, q4, q6] = transpose_lanes(even);
        let [q1, q3, q5, q7] = transpose_lanes(odd);
        [q0, q1, q2, q3, q4, q5, q6, q7]
    }

    /// Transposes the 4×4 lanes of four registers.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn transpose_lanes(x: [__m512i; 4]) -> [__m512i; 4] {
        let a = _mm512_shuffle_i64x2::<0x88>(x[0], x[1]);
        let b = _mm512_shuffle_i64x2::<0xdd>(x[0], x[1]);
        let c = _mm512_shuffle_i64x2::<0x88>(x[2], x[3]);
        let d = _mm512_shuffle_i64x2::<0xdd>(x[2], x[3]);
        [
            _mm512_shuffle_i64x2::<0x88>(a, c),
            _mm512_shuffle_i64x2::<0x88>(b, d),
            _mm512_shuffle_i64x2::<0xdd>(a, c),
            _mm512_shuffle_i64x2::<0xdd>(b, d),
        ]
    }

    /// One tile.
    ///
    /// # Safety
    /// The tile lies within what the pointers point to.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi,gfni")]
    unsafe fn transpose<const CONTIGUOUS: bool>(
        input: *const Block,
        in_stride: usize,
        out: *mut Block,
        out_stride: usize,
    ) {
        let bits = _mm512_set1_epi64(0x8040_2010_0804_0201u64 as i64);
        let (low_bytes, high_bytes) = (constant(&BYTES[0]), constant(&BYTES[1]));
        let mut halves = [[_mm512_setzero_si512(); 16]; 2];
        let [low, high] = &mut halves;
        for (g, (low, high)) in low.iter_mut().zip(high).enumerate() {
            // SAFETY: the caller answers for the tile and has AVX-512.
            let (a, b) = unsafe {
                let columns = input.add(8 * g * in_stride);
                (gather512(columns, in_stride), gather512(columns.add(4 * in_stride), in_stride))
            };
            *low = _mm512_gf2p8affine_epi64_epi8::<0>(bits, _mm512_permutex2var_epi8(a, low_bytes, b));
            *high = _mm512_gf2p8affine_epi64_epi8::<0>(bits, _mm512_permutex2var_epi8(a, high_bytes, b));
        }
        let rows = [constant(&ROWS[0]), constant(&ROWS[1])];
        for (h, half) in halves.iter().enumerate() {
            let (left, right) = half.split_at(8);
            let left =
                transpose_quadwords([left[0], left[1], left[2], left[3], left[4], left[5], left[6], left[7]]);
            let right = transpose_quadwords([
                right[0], right[1], right[2], right[3], right[4], right[5], right[6], right[7],
            ]);
            for p in 0..8 {
                for (q, rows) in rows.iter().enumerate() {
                    let row = 64 * h + 8 * p + 4 * q;
                    let x = _mm512_permutex2var_epi8(left[p], *rows, right[p]);
                    // SAFETY: the caller answers for the tile and has AVX-512.
                    unsafe {
                        if CONTIGUOUS {
                            _mm512_storeu_si512(out.add(row).cast(), x);
                        } else {
                            scatter512(x, out.add(row * out_stride), out_stride);
                        }
                    }
                }
            }
        }
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi,gfni")]
    pub(crate) fn tiles(input: &[Block], from: [usize; 2], out: &mut [Block], to: [usize; 2], count: usize) {
        check(input, from, out, to, count);
        for tile in 0..count {
            // SAFETY: `check` found every tile within the slices.
            unsafe {
                let (input, out) = (input.as_ptr().add(tile * from[1]), out.as_mut_ptr().add(tile * to[1]));
                if to[0] == 1 {
                    transpose::<true>(input, from[0], out, 1);
                } else {
                    transpose::<false>(input, from[0], out, to[0]);
                }
            }
        }
    }
}
