//! The ring's kernels for AVX2 and AVX-512: the loops of [`crate::ring`] compiled for wider vectors, with the
//! 16×16 transpose and the rejection of candidates written out.

use super::ntt_portable::{self as kernel, Arch, Portable, kernels};
use super::{Backend, Level};
use crate::ring::{Poly, Ring};
use core::arch::x86_64::*;

/// Proof that the processor has AVX2: only [`of`] makes one, from a backend of that level.
#[derive(Clone, Copy)]
pub(crate) struct Avx2(());

/// Proof that the processor has AVX-512 F, BW, VL and DQ: only [`of`] makes one, from a backend of that
/// level.
#[derive(Clone, Copy)]
pub(crate) struct Avx512(());

/// The kernels of a backend.
#[derive(Clone, Copy)]
pub(crate) enum Active {
    /// Plain Rust.
    Portable(Portable),
    /// 16 lanes.
    Avx2(Avx2),
    /// 32 lanes.
    Avx512(Avx512),
}

/// The kernels of the backend in use.
#[inline]
pub(crate) fn active() -> Active {
    of(Backend::active())
}

/// The kernels of `backend`.
#[inline]
pub(crate) fn of(backend: Backend) -> Active {
    match backend.level() {
        Level::Avx512 => Active::Avx512(Avx512(())),
        Level::Avx2 => Active::Avx2(Avx2(())),
        Level::AesNi | Level::Portable => Active::Portable(Portable),
    }
}

macro_rules! avx512 {
    ($name:ident($($arg:ident: $type:ty),*) $(-> $result:ty)? => $call:path) => {
        #[inline]
        fn $name<const N: usize>(self, $($arg: $type),*) $(-> $result)? {
            #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq")]
            fn run<const N: usize>($($arg: $type),*) $(-> $result)? {
                $call($($arg),*)
            }
            // SAFETY: `self` exists only where AVX-512 F, BW, VL and DQ were detected.
            unsafe { run::<N>($($arg),*) }
        }
    };
}

macro_rules! avx2 {
    ($name:ident($($arg:ident: $type:ty),*) $(-> $result:ty)? => $call:path) => {
        #[inline]
        fn $name<const N: usize>(self, $($arg: $type),*) $(-> $result)? {
            #[target_feature(enable = "avx2")]
            fn run<const N: usize>($($arg: $type),*) $(-> $result)? {
                $call($($arg),*)
            }
            // SAFETY: `self` exists only where AVX2 was detected.
            unsafe { run::<N>($($arg),*) }
        }
    };
}

// `Wide256`, `Wide512` and `reject` are only named here, inside functions compiled for AVX2 or AVX-512.
kernels!(Avx2, 16, Wide256, kernel::reject, avx2);
kernels!(Avx512, 32, Wide512, reject, avx512);

/// What AVX2 writes out.
struct Wide256;

/// What AVX-512 writes out.
struct Wide512;

macro_rules! arch {
    ($type:ident, $butterflies:ident, $unbutterflies:ident) => {
        impl Arch for $type {
            #[inline(always)]
            fn butterflies(a: &mut [i16], b: &mut [i16], z: (i16, i16), q: i16) {
                // SAFETY: this type is named only in functions whose callers hold the proof of its features.
                unsafe { $butterflies(a, b, z, q) }
            }

            #[inline(always)]
            fn unbutterflies(a: &mut [i16], b: &mut [i16], z: (i16, i16), r: (i16, i16), q: i16) {
                // SAFETY: as in `butterflies`.
                unsafe { $unbutterflies(a, b, z, r, q) }
            }

            #[inline(always)]
            fn to_rows<const N: usize>(from: &[i16; N], to: &mut [i16; N]) {
                for lane in (0..N / 16).step_by(16) {
                    // SAFETY: as in `butterflies`; AVX-512 includes AVX2.
                    unsafe { transpose(&from[16 * lane..], 16, &mut to[lane..], N / 16) }
                }
            }

            #[inline(always)]
            fn to_runs<const N: usize>(from: &[i16; N], to: &mut [i16; N]) {
                for lane in (0..N / 16).step_by(16) {
                    // SAFETY: as in `to_rows`.
                    unsafe { transpose(&from[lane..], N / 16, &mut to[16 * lane..], 16) }
                }
            }
        }
    };
}
arch!(Wide256, butterflies256, unbutterflies256);
arch!(Wide512, butterflies512, unbutterflies512);

/// [`kernel::montgomery`] of 16 lanes.
#[inline]
#[target_feature(enable = "avx2")]
fn montgomery256(a: __m256i, z: __m256i, z_q: __m256i, q: __m256i) -> __m256i {
    let low = _mm256_mullo_epi16(a, z_q);
    _mm256_sub_epi16(_mm256_mulhi_epi16(a, z), _mm256_mulhi_epi16(low, q))
}

#[inline]
#[target_feature(enable = "avx2")]
fn butterflies256(a: &mut [i16], b: &mut [i16], z: (i16, i16), q: i16) {
    let [z, z_q, q] = [z.0, z.1, q].map(|v| _mm256_set1_epi16(v));
    for (a, b) in a.as_chunks_mut::<16>().0.iter_mut().zip(b.as_chunks_mut::<16>().0) {
        let (u, t) = (load(a), montgomery256(load(b), z, z_q, q));
        store(a, _mm256_add_epi16(u, t));
        store(b, _mm256_sub_epi16(u, t));
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn unbutterflies256(a: &mut [i16], b: &mut [i16], z: (i16, i16), r: (i16, i16), q: i16) {
    let [z, z_q, r, r_q, q] = [z.0, z.1, r.0, r.1, q].map(|v| _mm256_set1_epi16(v));
    for (a, b) in a.as_chunks_mut::<16>().0.iter_mut().zip(b.as_chunks_mut::<16>().0) {
        let (u, v) = (load(a), load(b));
        store(a, montgomery256(_mm256_add_epi16(u, v), r, r_q, q));
        store(b, montgomery256(_mm256_sub_epi16(u, v), z, z_q, q));
    }
}

/// [`kernel::montgomery`] of 32 lanes.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq")]
fn montgomery512(a: __m512i, z: __m512i, z_q: __m512i, q: __m512i) -> __m512i {
    let low = _mm512_mullo_epi16(a, z_q);
    _mm512_sub_epi16(_mm512_mulhi_epi16(a, z), _mm512_mulhi_epi16(low, q))
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq")]
fn butterflies512(a: &mut [i16], b: &mut [i16], z: (i16, i16), q: i16) {
    if a.len() < 32 {
        return butterflies256(a, b, z, q);
    }
    let [z, z_q, q] = [z.0, z.1, q].map(|v| _mm512_set1_epi16(v));
    for (a, b) in a.as_chunks_mut::<32>().0.iter_mut().zip(b.as_chunks_mut::<32>().0) {
        let (u, t) = (load512(a), montgomery512(load512(b), z, z_q, q));
        store512(a, _mm512_add_epi16(u, t));
        store512(b, _mm512_sub_epi16(u, t));
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq")]
fn unbutterflies512(a: &mut [i16], b: &mut [i16], z: (i16, i16), r: (i16, i16), q: i16) {
    if a.len() < 32 {
        return unbutterflies256(a, b, z, r, q);
    }
    let [z, z_q, r, r_q, q] = [z.0, z.1, r.0, r.1, q].map(|v| _mm512_set1_epi16(v));
    for (a, b) in a.as_chunks_mut::<32>().0.iter_mut().zip(b.as_chunks_mut::<32>().0) {
        let (u, v) = (load512(a), load512(b));
        store512(a, montgomery512(_mm512_add_epi16(u, v), r, r_q, q));
        store512(b, montgomery512(_mm512_sub_epi16(u, v), z, z_q, q));
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq")]
fn load512(from: &[i16; 32]) -> __m512i {
    // SAFETY: `from` is 64 readable bytes; the load needs no alignment.
    unsafe { _mm512_loadu_si512(from.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq")]
fn store512(to: &mut [i16; 32], v: __m512i) {
    // SAFETY: `to` is 64 writable bytes; the store needs no alignment.
    unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), v) }
}

/// Transposes the 16 rows of 16 lanes that stand `from_stride` apart into rows `to_stride` apart.
#[inline]
#[target_feature(enable = "avx2")]
fn transpose(from: &[i16], from_stride: usize, to: &mut [i16], to_stride: usize) {
    let mut halves = [[_mm256_setzero_si256(); 8]; 2];
    for (half, out) in halves.iter_mut().enumerate() {
        let mut rows = [_mm256_setzero_si256(); 8];
        for (i, row) in rows.iter_mut().enumerate() {
            *row = load(&from[(8 * half + i) * from_stride..]);
        }
        *out = transpose_lanes(rows);
    }
    let [top, bottom] = halves;
    for column in 0..8 {
        let low = _mm256_permute2x128_si256::<0x20>(top[column], bottom[column]);
        let high = _mm256_permute2x128_si256::<0x31>(top[column], bottom[column]);
        store(&mut to[column * to_stride..], low);
        store(&mut to[(column + 8) * to_stride..], high);
    }
}

/// The 8×8 transpose in both 128-bit halves.
#[inline]
#[target_feature(enable = "avx2")]
fn transpose_lanes(a: [__m256i; 8]) -> [__m256i; 8] {
    let mut b = a;
    for i in 0..4 {
        b[2 * i] = _mm256_unpacklo_epi16(a[2 * i], a[2 * i + 1]);
        b[2 * i + 1] = _mm256_unpackhi_epi16(a[2 * i], a[2 * i + 1]);
    }
    let mut c = b;
    for i in [0, 4] {
        c[i] = _mm256_unpacklo_epi32(b[i], b[i + 2]);
        c[i + 1] = _mm256_unpackhi_epi32(b[i], b[i + 2]);
        c[i + 2] = _mm256_unpacklo_epi32(b[i + 1], b[i + 3]);
        c[i + 3] = _mm256_unpackhi_epi32(b[i + 1], b[i + 3]);
    }
    let mut d = c;
    for i in 0..4 {
        d[2 * i] = _mm256_unpacklo_epi64(c[i], c[i + 4]);
        d[2 * i + 1] = _mm256_unpackhi_epi64(c[i], c[i + 4]);
    }
    d
}

#[inline]
#[target_feature(enable = "avx2")]
fn load(from: &[i16]) -> __m256i {
    let from: &[i16; 16] = from.first_chunk().expect("a whole row");
    // SAFETY: `from` is 32 readable bytes; the load needs no alignment.
    unsafe { _mm256_loadu_si256(from.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn store(to: &mut [i16], v: __m256i) {
    let to: &mut [i16; 16] = to.first_chunk_mut().expect("a whole row");
    // SAFETY: `to` is 32 writable bytes; the store needs no alignment.
    unsafe { _mm256_storeu_si256(to.as_mut_ptr().cast(), v) }
}

/// [`kernel::reject`], sixteen candidates at a time while sixteen places are free.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq")]
fn reject<const N: usize>(ring: &Ring<N>, bytes: &[u8], out: &mut [i16; N], filled: usize) -> (usize, usize) {
    let mask = _mm512_set1_epi32((1 << Ring::<N>::BITS) - 1);
    let q = _mm512_set1_epi32(Ring::<N>::Q as i32);
    let (mut at, mut taken) = (filled, 0);
    for chunk in bytes.as_chunks::<32>().0 {
        let Some(place) = out.get_mut(at..).and_then(|rest| rest.first_chunk_mut::<16>()) else { break };
        // SAFETY: `chunk` is 32 readable bytes; the load needs no alignment.
        let candidates = unsafe { _mm256_loadu_si256(chunk.as_ptr().cast()) };
        let candidates = _mm512_and_si512(_mm512_cvtepu16_epi32(candidates), mask);
        let good = _mm512_cmplt_epi32_mask(candidates, q);
        let packed = _mm512_cvtepi32_epi16(_mm512_maskz_compress_epi32(good, candidates));
        // SAFETY: `place` is 32 writable bytes; the store needs no alignment.
        unsafe { _mm256_storeu_si256(place.as_mut_ptr().cast(), packed) };
        at += good.count_ones() as usize;
        taken += 32;
    }
    let (more_taken, more) = kernel::reject(ring, &bytes[taken..], out, at);
    (taken + more_taken, at - filled + more)
}
