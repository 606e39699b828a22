//! Ristretto, eight points side by side, on AVX-512 IFMA. Its portable twin is curve25519-dalek (see
//! [`crate::group`]).
//!
//! Field elements are five limbs in radix 2^51, one vector a limb, one point a lane. A *tight* element has
//! limbs below 2^51 + 2^15; every function here gives tight elements and takes them, and multiplication also
//! takes limbs up to 2^52, which is all that the multiplier reads. Points are complete extended twisted
//! Edwards (a = −1, Hisil–Wong–Carter–Dawson 2008), scalars signed radix-16 digits, lookups masked scans or
//! in-register permutations.

// Limbs of several elements are walked side by side by index.
#![allow(clippy::needless_range_loop)]

use super::Backend;
use core::arch::x86_64::*;
use std::sync::OnceLock;
use zeroize::Zeroize;

type V = __m512i;
type Encoding = [u8; 32];
type Digits = [[i8; 8]; 64];

/// Lanes of a vector, so points of a chunk.
const LANES: usize = 8;
const MASK51: u64 = (1 << 51) - 1;

// Constants of RFC 9496, section 4.1, in limbs.
const D: [u64; 5] = [0x34dca135978a3, 0x1a8283b156ebd, 0x5e7a26001c029, 0x739c663a03cbb, 0x52036cee2b6ff];
const D2: [u64; 5] = [0x69b9426b2f159, 0x35050762add7a, 0x3cf44c0038052, 0x6738cc7407977, 0x2406d9dc56dff];
const SQRT_M1: [u64; 5] =
    [0x61b274a0ea0b0, 0xd5a5fc8f189d, 0x7ef5e9cbd0c60, 0x78595a6804c9e, 0x2b8324804fc1d];
const SQRT_AD_MINUS_ONE: [u64; 5] =
    [0x7f6a0497b2e1b, 0x1836f0a97afd2, 0x7d747f6be7638, 0x456079e7e6498, 0x376931bf2b834];
const INVSQRT_A_MINUS_D: [u64; 5] =
    [0xfdaa805d40ea, 0x2eb482e57d339, 0x7610274bc58, 0x6510b613dc8ff, 0x786c8905cfaff];
const ONE_MINUS_D_SQ: [u64; 5] =
    [0x409c1945fc176, 0x719abc6a1fc4f, 0x1c37f90b20684, 0x6bccca55eedf, 0x29072a8b2b3e];
const D_MINUS_ONE_SQ: [u64; 5] =
    [0x55aaa44ed4d20, 0x59603c3332635, 0x26d3baf4a7928, 0x120a66e6997a9, 0x5968b37af66c2];
/// The generator's affine coordinates: y = 4/5, x even.
const BASE_X: [u64; 5] =
    [0x62d608f25d51a, 0x412a4b4f6592a, 0x75b7171a4b31d, 0x1ff60527118fe, 0x216936d3cd6e5];
const BASE_Y: [u64; 5] =
    [0x6666666666658, 0x4cccccccccccc, 0x1999999999999, 0x3333333333333, 0x6666666666666];
/// 2p, limb by limb: what a subtraction adds so that no limb goes below zero.
const TWO_P: [u64; 5] = [0xfffffffffffda, 0xffffffffffffe, 0xffffffffffffe, 0xffffffffffffe, 0xffffffffffffe];

/// Proof that the processor runs this kernel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ifma(());

impl Ifma {
    /// The proof, where `backend` is of 512 bits and the processor has IFMA.
    pub(crate) fn detect(backend: Backend) -> Option<Self> {
        backend.ifma().then_some(Ifma(()))
    }
}

macro_rules! kernel_fns {
    ($($(#[$meta:meta])* $vis:vis fn $name:ident $(<const $c:ident: bool>)? ($($args:tt)*) $(-> $ret:ty)? $body:block)*) => {
        $($(#[$meta])* #[target_feature(enable = "avx512f,avx512dq,avx512ifma")]
        $vis fn $name $(<const $c: bool>)? ($($args)*) $(-> $ret)? $body)*
    };
}

/// Eight field elements.
#[derive(Clone, Copy)]
#[repr(C)]
struct Fe([V; 5]);

/// Eight points (X : Y : Z : T) with XY = ZT.
#[derive(Clone, Copy)]
#[repr(C)]
struct Chunk {
    x: Fe,
    y: Fe,
    z: Fe,
    t: Fe,
}

/// Eight points made ready to be added: (Y + X, Y − X, 2Z, 2dT).
#[derive(Clone, Copy)]
#[repr(C)]
struct Cached {
    ypx: Fe,
    ymx: Fe,
    z2: Fe,
    t2d: Fe,
}

/// Eight affine points made ready to be added: (y + x, y − x, 2dxy).
#[derive(Clone, Copy)]
#[repr(C)]
struct Niels {
    ypx: Fe,
    ymx: Fe,
    xy2d: Fe,
}

// The field.
kernel_fns! {
    #[inline]
    fn splat(limbs: [u64; 5]) -> Fe {
        let mut out = [_mm512_setzero_si512(); 5];
        for i in 0..5 {
            out[i] = _mm512_set1_epi64(limbs[i] as i64);
        }
        Fe(out)
    }

    #[inline]
    fn small(value: u64) -> Fe {
        splat([value, 0, 0, 0, 0])
    }

    #[inline]
    fn lanes(v: V) -> [u64; LANES] {
        // SAFETY: both types are 64 bytes of plain integers.
        unsafe { core::mem::transmute::<V, [u64; LANES]>(v) }
    }

    #[inline]
    fn from_lanes(lanes: [u64; LANES]) -> V {
        // SAFETY: both types are 64 bytes of plain integers.
        unsafe { core::mem::transmute::<[u64; LANES], V>(lanes) }
    }

    /// One parallel carry: limbs below 2^62 become tight.
    #[inline]
    fn carry(r: [V; 5]) -> Fe {
        let mask = _mm512_set1_epi64(MASK51 as i64);
        let c0 = _mm512_srli_epi64::<51>(r[0]);
        let c1 = _mm512_srli_epi64::<51>(r[1]);
        let c2 = _mm512_srli_epi64::<51>(r[2]);
        let c3 = _mm512_srli_epi64::<51>(r[3]);
        let c4 = _mm512_srli_epi64::<51>(r[4]);
        Fe([
            _mm512_madd52lo_epu64(_mm512_and_si512(r[0], mask), c4, _mm512_set1_epi64(19)),
            _mm512_add_epi64(_mm512_and_si512(r[1], mask), c0),
            _mm512_add_epi64(_mm512_and_si512(r[2], mask), c1),
            _mm512_add_epi64(_mm512_and_si512(r[3], mask), c2),
            _mm512_add_epi64(_mm512_and_si512(r[4], mask), c3),
        ])
    }

    #[inline]
    fn add(a: &Fe, b: &Fe) -> Fe {
        let mut r = [_mm512_setzero_si512(); 5];
        for i in 0..5 {
            r[i] = _mm512_add_epi64(a.0[i], b.0[i]);
        }
        carry(r)
    }

    #[inline]
    fn sub(a: &Fe, b: &Fe) -> Fe {
        let mut r = [_mm512_setzero_si512(); 5];
        for i in 0..5 {
            let biased = _mm512_add_epi64(a.0[i], _mm512_set1_epi64(TWO_P[i] as i64));
            r[i] = _mm512_sub_epi64(biased, b.0[i]);
        }
        carry(r)
    }

    /// 2a − b.
    #[inline]
    fn double_sub(a: &Fe, b: &Fe) -> Fe {
        let mut r = [_mm512_setzero_si512(); 5];
        for i in 0..5 {
            let doubled = _mm512_add_epi64(a.0[i], a.0[i]);
            let biased = _mm512_add_epi64(doubled, _mm512_set1_epi64(TWO_P[i] as i64));
            r[i] = _mm512_sub_epi64(biased, b.0[i]);
        }
        carry(r)
    }

    /// 2p − a, whose limbs are below 2^52 but not tight: only for a multiplication.
    #[inline]
    fn loose_neg(a: &Fe) -> Fe {
        let mut r = [_mm512_setzero_si512(); 5];
        for i in 0..5 {
            r[i] = _mm512_sub_epi64(_mm512_set1_epi64(TWO_P[i] as i64), a.0[i]);
        }
        Fe(r)
    }

    #[inline]
    fn neg(a: &Fe) -> Fe {
        carry(loose_neg(a).0)
    }

    /// From columns: low halves `lo[k]` weigh 2^(51k), high halves `hi[k]` twice that (2^52 = 2·2^51).
    ///
    /// With at most five products a column, a sum is below 300·2^52 < 2^61 after 2^255 = 19 is folded in.
    #[inline]
    fn fold(lo: [V; 10], hi: [V; 10]) -> Fe {
        let nineteen = _mm512_set1_epi64(19);
        let mut z = [_mm512_setzero_si512(); 10];
        for k in 0..10 {
            z[k] = _mm512_add_epi64(lo[k], _mm512_add_epi64(hi[k], hi[k]));
        }
        let mut r = [_mm512_setzero_si512(); 5];
        for k in 0..5 {
            r[k] = _mm512_add_epi64(z[k], _mm512_mullo_epi64(z[k + 5], nineteen));
        }
        carry(r)
    }

    #[inline]
    fn mul(a: &Fe, b: &Fe) -> Fe {
        let (a, b) = (a.0, b.0);
        let mut lo = [_mm512_setzero_si512(); 10];
        let mut hi = [_mm512_setzero_si512(); 10];
        for i in 0..5 {
            for j in 0..5 {
                lo[i + j] = _mm512_madd52lo_epu64(lo[i + j], a[i], b[j]);
                hi[i + j + 1] = _mm512_madd52hi_epu64(hi[i + j + 1], a[i], b[j]);
            }
        }
        fold(lo, hi)
    }

    #[inline]
    fn square(a: &Fe) -> Fe {
        let a = a.0;
        let mut lo = [_mm512_setzero_si512(); 10];
        let mut hi = [_mm512_setzero_si512(); 10];
        for i in 0..5 {
            for j in i + 1..5 {
                lo[i + j] = _mm512_madd52lo_epu64(lo[i + j], a[i], a[j]);
                hi[i + j + 1] = _mm512_madd52hi_epu64(hi[i + j + 1], a[i], a[j]);
            }
        }
        for k in 1..9 {
            lo[k] = _mm512_add_epi64(lo[k], lo[k]);
            hi[k] = _mm512_add_epi64(hi[k], hi[k]);
        }
        for i in 0..5 {
            lo[2 * i] = _mm512_madd52lo_epu64(lo[2 * i], a[i], a[i]);
            hi[2 * i + 1] = _mm512_madd52hi_epu64(hi[2 * i + 1], a[i], a[i]);
        }
        fold(lo, hi)
    }

    fn square_times(a: &Fe, n: usize) -> Fe {
        let mut r = *a;
        for _ in 0..n {
            r = square(&r);
        }
        r
    }

    /// a^(2^250 − 1) and a^11, from which both exponents below are made.
    fn power_chain(a: &Fe) -> (Fe, Fe) {
        let a2 = square(a);
        let a9 = mul(a, &square_times(&a2, 2));
        let a11 = mul(&a9, &a2);
        let e5 = mul(&square(&a11), &a9);
        let e10 = mul(&square_times(&e5, 5), &e5);
        let e20 = mul(&square_times(&e10, 10), &e10);
        let e40 = mul(&square_times(&e20, 20), &e20);
        let e50 = mul(&square_times(&e40, 10), &e10);
        let e100 = mul(&square_times(&e50, 50), &e50);
        let e200 = mul(&square_times(&e100, 100), &e100);
        (mul(&square_times(&e200, 50), &e50), a11)
    }

    /// a^((p − 5)/8) = a^(2^252 − 3).
    fn pow_p58(a: &Fe) -> Fe {
        mul(&square_times(&power_chain(a).0, 2), a)
    }

    /// a^(p − 2) = a^(2^255 − 21): the inverse, 0 for 0.
    fn invert(a: &Fe) -> Fe {
        let (e250, a11) = power_chain(a);
        mul(&square_times(&e250, 5), &a11)
    }

    /// The least residue, limbs below 2^51.
    #[inline]
    fn freeze(a: &Fe) -> Fe {
        let mask = _mm512_set1_epi64(MASK51 as i64);
        let nineteen = _mm512_set1_epi64(19);
        // Tight elements are below 2p, so q, the carry out of a + 19, says whether p must go.
        let mut q = _mm512_srli_epi64::<51>(_mm512_add_epi64(a.0[0], nineteen));
        for i in 1..5 {
            q = _mm512_srli_epi64::<51>(_mm512_add_epi64(a.0[i], q));
        }
        let mut l = a.0;
        l[0] = _mm512_madd52lo_epu64(l[0], q, nineteen);
        for i in 0..4 {
            l[i + 1] = _mm512_add_epi64(l[i + 1], _mm512_srli_epi64::<51>(l[i]));
            l[i] = _mm512_and_si512(l[i], mask);
        }
        l[4] = _mm512_and_si512(l[4], mask);
        Fe(l)
    }

    #[inline]
    fn is_negative(a: &Fe) -> __mmask8 {
        _mm512_test_epi64_mask(freeze(a).0[0], _mm512_set1_epi64(1))
    }

    #[inline]
    fn is_zero(a: &Fe) -> __mmask8 {
        let l = freeze(a).0;
        let any = _mm512_or_si512(_mm512_or_si512(_mm512_or_si512(l[0], l[1]), _mm512_or_si512(l[2], l[3])), l[4]);
        _mm512_testn_epi64_mask(any, any)
    }

    /// `b` in the lanes of `mask`, else `a`.
    #[inline]
    fn blend(mask: __mmask8, a: &Fe, b: &Fe) -> Fe {
        let mut r = a.0;
        for i in 0..5 {
            r[i] = _mm512_mask_mov_epi64(r[i], mask, b.0[i]);
        }
        Fe(r)
    }

    #[inline]
    fn abs(a: &Fe) -> Fe {
        blend(is_negative(a), a, &neg(a))
    }

    /// SQRT_RATIO_M1 (RFC 9496, section 4.2): the lanes where u/v is a square, and the non-negative root of
    /// u/v or i·u/v.
    fn sqrt_ratio(u: &Fe, v: &Fe) -> (__mmask8, Fe) {
        let sqrt_m1 = splat(SQRT_M1);
        let v3 = mul(&square(v), v);
        let v7 = mul(&square(&v3), v);
        let r = mul(&mul(u, &v3), &pow_p58(&mul(u, &v7)));
        let check = mul(v, &square(&r));
        let correct = is_zero(&sub(&check, u));
        let flipped = is_zero(&add(&check, u));
        let flipped_i = is_zero(&add(&check, &mul(u, &sqrt_m1)));
        let r = blend(flipped | flipped_i, &r, &mul(&r, &sqrt_m1));
        (correct | flipped, abs(&r))
    }
}

// The curve.
kernel_fns! {
    #[inline]
    fn identity() -> Chunk {
        Chunk { x: small(0), y: small(1), z: small(1), t: small(0) }
    }

    /// 2P; T only where the next step reads it.
    #[inline]
    fn double<const WITH_T: bool>(p: &Chunk) -> Chunk {
        let xx = square(&p.x);
        let yy = square(&p.y);
        let zz = square(&p.z);
        let sum = square(&add(&p.x, &p.y));
        let h = add(&yy, &xx);
        let g = sub(&yy, &xx);
        let e = sub(&sum, &h);
        let f = double_sub(&zz, &g);
        Chunk {
            x: mul(&e, &f),
            y: mul(&g, &h),
            z: mul(&f, &g),
            t: if WITH_T { mul(&e, &h) } else { p.t },
        }
    }

    #[inline]
    fn add_cached<const WITH_T: bool>(p: &Chunk, q: &Cached) -> Chunk {
        let pp = mul(&add(&p.y, &p.x), &q.ypx);
        let mm = mul(&sub(&p.y, &p.x), &q.ymx);
        let tt = mul(&p.t, &q.t2d);
        let zz = mul(&p.z, &q.z2);
        let (e, h) = (sub(&pp, &mm), add(&pp, &mm));
        let (g, f) = (add(&zz, &tt), sub(&zz, &tt));
        Chunk {
            x: mul(&e, &f),
            y: mul(&g, &h),
            z: mul(&f, &g),
            t: if WITH_T { mul(&e, &h) } else { p.t },
        }
    }

    #[inline]
    fn add_niels(p: &Chunk, q: &Niels) -> Chunk {
        let pp = mul(&add(&p.y, &p.x), &q.ypx);
        let mm = mul(&sub(&p.y, &p.x), &q.ymx);
        let tt = mul(&p.t, &q.xy2d);
        let zz = add(&p.z, &p.z);
        let (e, h) = (sub(&pp, &mm), add(&pp, &mm));
        let (g, f) = (add(&zz, &tt), sub(&zz, &tt));
        Chunk { x: mul(&e, &f), y: mul(&g, &h), z: mul(&f, &g), t: mul(&e, &h) }
    }

    #[inline]
    fn to_cached(p: &Chunk) -> Cached {
        Cached {
            ypx: add(&p.y, &p.x),
            ymx: sub(&p.y, &p.x),
            z2: add(&p.z, &p.z),
            t2d: mul(&p.t, &splat(D2)),
        }
    }

    #[inline]
    fn negate(p: &Chunk) -> Chunk {
        Chunk { x: neg(&p.x), y: p.y, z: p.z, t: neg(&p.t) }
    }

    fn add_points(p: &Chunk, q: &Chunk) -> Chunk {
        add_cached::<true>(p, &to_cached(q))
    }

    fn sub_points(p: &Chunk, q: &Chunk) -> Chunk {
        add_cached::<true>(p, &to_cached(&negate(q)))
    }

    fn blend_points(mask: u8, p: &Chunk, q: &Chunk) -> Chunk {
        Chunk {
            x: blend(mask, &p.x, &q.x),
            y: blend(mask, &p.y, &q.y),
            z: blend(mask, &p.z, &q.z),
            t: blend(mask, &p.t, &q.t),
        }
    }

    fn splat_first(p: &Chunk) -> Chunk {
        Chunk { x: first_lane(&p.x), y: first_lane(&p.y), z: first_lane(&p.z), t: first_lane(&p.t) }
    }

    #[inline]
    fn first_lane(a: &Fe) -> Fe {
        let mut r = a.0;
        for limb in &mut r {
            *limb = _mm512_broadcastq_epi64(_mm512_castsi512_si128(*limb));
        }
        Fe(r)
    }
}

// Scalar multiplication.
kernel_fns! {
    /// The digits of one window: the lanes where they are negative, and their absolute values.
    #[inline]
    fn window(digits: &[i8; 8]) -> (__mmask8, V) {
        let packed = _mm_cvtsi64_si128(i64::from_le_bytes(digits.map(|d| d as u8)));
        let d = _mm512_cvtepi8_epi64(packed);
        (_mm512_cmplt_epi64_mask(d, _mm512_setzero_si512()), _mm512_abs_epi64(d))
    }

    /// The table's multiple that each lane's digit names, by a scan of the whole table.
    #[inline]
    fn lookup(table: &[Cached; 8], digits: &[i8; 8]) -> Cached {
        let (negative, magnitude) = window(digits);
        let mut r = Cached { ypx: small(1), ymx: small(1), z2: small(2), t2d: small(0) };
        for (j, entry) in table.iter().enumerate() {
            let hit = _mm512_cmpeq_epi64_mask(magnitude, _mm512_set1_epi64(j as i64 + 1));
            r.ypx = blend(hit, &r.ypx, &entry.ypx);
            r.ymx = blend(hit, &r.ymx, &entry.ymx);
            r.z2 = blend(hit, &r.z2, &entry.z2);
            r.t2d = blend(hit, &r.t2d, &entry.t2d);
        }
        Cached {
            ypx: blend(negative, &r.ypx, &r.ymx),
            ymx: blend(negative, &r.ymx, &r.ypx),
            z2: r.z2,
            t2d: blend(negative, &r.t2d, &loose_neg(&r.t2d)),
        }
    }

    fn multiples(p: &Chunk) -> [Chunk; 8] {
        let cached = to_cached(p);
        let mut out = [*p; 8];
        out[1] = double::<true>(p);
        for j in 2..8 {
            out[j] = add_cached::<true>(&out[j - 1], &cached);
        }
        out
    }

    /// Each lane's point times its scalar.
    fn mul_chunk(p: &Chunk, digits: &Digits) -> Chunk {
        let mut table = [to_cached(p); 8];
        for (entry, multiple) in table.iter_mut().zip(&multiples(p)) {
            *entry = to_cached(multiple);
        }
        let mut acc = add_cached::<false>(&identity(), &lookup(&table, &digits[63]));
        for k in (0..63).rev() {
            acc = double::<false>(&acc);
            acc = double::<false>(&acc);
            acc = double::<false>(&acc);
            acc = double::<true>(&acc);
            let entry = lookup(&table, &digits[k]);
            acc = if k == 0 { add_cached::<true>(&acc, &entry) } else { add_cached::<false>(&acc, &entry) };
        }
        acc
    }

    /// Each lane's sum of its points times their scalars; the doublings are shared (Straus).
    fn combine_chunks(points: &[Chunk], digits: &[Digits]) -> Chunk {
        let mut tables = Vec::with_capacity(points.len());
        for point in points {
            let mut table = [to_cached(point); 8];
            for (entry, multiple) in table.iter_mut().zip(&multiples(point)) {
                *entry = to_cached(multiple);
            }
            tables.push(table);
        }
        let mut acc = identity();
        for k in (0..64).rev() {
            if k != 63 {
                acc = double::<false>(&acc);
                acc = double::<false>(&acc);
                acc = double::<false>(&acc);
                acc = double::<true>(&acc);
            }
            for (table, digits) in tables.iter().zip(digits) {
                acc = add_cached::<true>(&acc, &lookup(table, &digits[k]));
            }
        }
        acc
    }

    #[inline]
    fn rotated(a: &Fe, by: usize) -> Fe {
        let mut r = a.0;
        for limb in &mut r {
            let mut lane = lanes(*limb);
            lane.rotate_left(by);
            *limb = from_lanes(lane);
        }
        Fe(r)
    }

    /// The sum of all eight lanes, in every lane.
    fn sum_lanes(p: &Chunk) -> Chunk {
        let mut sum = *p;
        for by in [4, 2, 1] {
            let other = Chunk {
                x: rotated(&sum.x, by),
                y: rotated(&sum.y, by),
                z: rotated(&sum.z, by),
                t: rotated(&sum.t, by),
            };
            sum = add_points(&sum, &other);
        }
        sum
    }

    /// The multiples of one shared point that each lane's digit names: a table row's lane j holds multiple
    /// j + 1.
    #[inline]
    fn lookup_shared(row: &Row, digits: &[i8; 8]) -> Niels {
        let (negative, magnitude) = window(digits);
        let index = _mm512_sub_epi64(magnitude, _mm512_set1_epi64(1));
        let some = _mm512_test_epi64_mask(magnitude, magnitude);
        let mut r = [small(1), small(1), small(0)];
        for (coordinate, row) in r.iter_mut().zip(&row.0) {
            for i in 0..5 {
                coordinate.0[i] = _mm512_mask_permutexvar_epi64(coordinate.0[i], some, index, row.0[i]);
            }
        }
        Niels {
            ypx: blend(negative, &r[0], &r[1]),
            ymx: blend(negative, &r[1], &r[0]),
            xy2d: blend(negative, &r[2], &loose_neg(&r[2])),
        }
    }

    /// The table's point times each lane's scalar.
    fn mul_table(table: &[Row], digits: &Digits) -> Chunk {
        let stride = 64 / table.len();
        let mut acc = identity();
        for r in (0..stride).rev() {
            if r + 1 != stride {
                acc = double::<false>(&acc);
                acc = double::<false>(&acc);
                acc = double::<false>(&acc);
                acc = double::<true>(&acc);
            }
            for (k, row) in table.iter().enumerate() {
                acc = add_niels(&acc, &lookup_shared(row, &digits[k * stride + r]));
            }
        }
        acc
    }

    /// Rows for 16^(stride·k) times the first lane's point, k < 64 / stride.
    fn table_of(p: &Chunk, stride: usize) -> Vec<Row> {
        let rows = 64 / stride;
        let mut base = splat_first(p);
        let mut bases = vec![identity(); rows / LANES];
        for k in 0..rows {
            bases[k / LANES] = blend_points(1 << (k % LANES), &bases[k / LANES], &base);
            for _ in 0..4 * stride {
                base = double::<true>(&base);
            }
        }
        let all: Vec<[Chunk; 8]> = bases.iter().map(|b| multiples(b)).collect();
        let affine = to_affine(all.as_flattened());
        let mut table = vec![Row([small(0); 3]); rows];
        for (k, row) in table.iter_mut().enumerate() {
            for c in 0..3 {
                for i in 0..5 {
                    let mut entries = [0; LANES];
                    for (j, entry) in entries.iter_mut().enumerate() {
                        *entry = lanes(affine[k / LANES * 8 + j][c].0[i])[k % LANES];
                    }
                    row.0[c].0[i] = from_lanes(entries);
                }
            }
        }
        table
    }

    /// (y + x, y − x, 2dxy) of every point, with one inversion for all (lane by lane).
    fn to_affine(points: &[Chunk]) -> Vec<[Fe; 3]> {
        let mut prefix = Vec::with_capacity(points.len());
        let mut product = small(1);
        for p in points {
            prefix.push(product);
            product = mul(&product, &p.z);
        }
        let mut inverse = invert(&product);
        let mut out = vec![[small(0); 3]; points.len()];
        for ((p, before), out) in points.iter().zip(&prefix).zip(&mut out).rev() {
            let z_inverse = mul(&inverse, before);
            inverse = mul(&inverse, &p.z);
            let (x, y) = (mul(&p.x, &z_inverse), mul(&p.y, &z_inverse));
            *out = [add(&y, &x), sub(&y, &x), mul(&mul(&x, &y), &splat(D2))];
        }
        out
    }
}

// Encodings (RFC 9496, section 4.3).
kernel_fns! {
    /// Eight elements from little-endian bytes; the top bit of each is dropped.
    fn load(bytes: &[Encoding; LANES]) -> Fe {
        let mut limbs = [[0u64; LANES]; 5];
        for (lane, bytes) in bytes.iter().enumerate() {
            let w = words(bytes);
            limbs[0][lane] = w[0] & MASK51;
            limbs[1][lane] = (w[0] >> 51 | w[1] << 13) & MASK51;
            limbs[2][lane] = (w[1] >> 38 | w[2] << 26) & MASK51;
            limbs[3][lane] = (w[2] >> 25 | w[3] << 39) & MASK51;
            limbs[4][lane] = w[3] >> 12 & MASK51;
        }
        let mut out = [_mm512_setzero_si512(); 5];
        for i in 0..5 {
            out[i] = from_lanes(limbs[i]);
        }
        Fe(out)
    }

    fn store(a: &Fe) -> [Encoding; LANES] {
        let frozen = freeze(a).0;
        let mut limbs = [[0u64; LANES]; 5];
        for i in 0..5 {
            limbs[i] = lanes(frozen[i]);
        }
        let mut out = [[0u8; 32]; LANES];
        for (lane, out) in out.iter_mut().enumerate() {
            let l = [limbs[0][lane], limbs[1][lane], limbs[2][lane], limbs[3][lane], limbs[4][lane]];
            let w = [l[0] | l[1] << 51, l[1] >> 13 | l[2] << 38, l[2] >> 26 | l[3] << 25, l[3] >> 39 | l[4] << 12];
            for (bytes, word) in out.as_chunks_mut::<8>().0.iter_mut().zip(w) {
                *bytes = word.to_le_bytes();
            }
        }
        out
    }

    /// Eight points, and the lanes that hold a valid encoding.
    fn decode_chunk(bytes: &[Encoding; LANES]) -> (u8, Chunk) {
        let s = load(bytes);
        let mut canonical = 0;
        for (lane, (bytes, least)) in bytes.iter().zip(&store(&s)).enumerate() {
            canonical |= ((bytes == least && bytes[0] & 1 == 0) as u8) << lane;
        }
        let one = small(1);
        let ss = square(&s);
        let (u1, u2) = (sub(&one, &ss), add(&one, &ss));
        let u2_sqr = square(&u2);
        let v = sub(&neg(&mul(&splat(D), &square(&u1))), &u2_sqr);
        let (was_square, invsqrt) = sqrt_ratio(&one, &mul(&v, &u2_sqr));
        let den_x = mul(&invsqrt, &u2);
        let den_y = mul(&mul(&invsqrt, &den_x), &v);
        let x = abs(&mul(&add(&s, &s), &den_x));
        let y = mul(&u1, &den_y);
        let t = mul(&x, &y);
        let valid = canonical & was_square & !is_negative(&t) & !is_zero(&y);
        (valid, Chunk { x, y, z: one, t })
    }

    fn encode_chunk(p: &Chunk) -> [Encoding; LANES] {
        let u1 = mul(&add(&p.z, &p.y), &sub(&p.z, &p.y));
        let u2 = mul(&p.x, &p.y);
        let (_, invsqrt) = sqrt_ratio(&small(1), &mul(&u1, &square(&u2)));
        let (den1, den2) = (mul(&invsqrt, &u1), mul(&invsqrt, &u2));
        let z_inv = mul(&mul(&den1, &den2), &p.t);
        let rotate = is_negative(&mul(&p.t, &z_inv));
        let sqrt_m1 = splat(SQRT_M1);
        let x = blend(rotate, &p.x, &mul(&p.y, &sqrt_m1));
        let y = blend(rotate, &p.y, &mul(&p.x, &sqrt_m1));
        let den_inv = blend(rotate, &den2, &mul(&den1, &splat(INVSQRT_A_MINUS_D)));
        let y = blend(is_negative(&mul(&x, &z_inv)), &y, &neg(&y));
        store(&abs(&mul(&den_inv, &sub(&p.z, &y))))
    }

    /// MAP of section 4.3.4: Elligator 2 composed with the isogeny.
    fn elligator(t: &Fe) -> Chunk {
        let one = small(1);
        let r = mul(&splat(SQRT_M1), &square(t));
        let u = mul(&add(&r, &one), &splat(ONE_MINUS_D_SQ));
        let minus_one = neg(&one);
        let d = splat(D);
        let v = mul(&sub(&minus_one, &mul(&r, &d)), &add(&r, &d));
        let (was_square, s) = sqrt_ratio(&u, &v);
        let s_prime = neg(&abs(&mul(&s, t)));
        let s = blend(was_square, &s_prime, &s);
        let c = blend(was_square, &r, &minus_one);
        let n = sub(&mul(&mul(&c, &sub(&r, &one)), &splat(D_MINUS_ONE_SQ)), &v);
        let sv = mul(&s, &v);
        let w0 = add(&sv, &sv);
        let w1 = mul(&n, &splat(SQRT_AD_MINUS_ONE));
        let ss = square(&s);
        let (w2, w3) = (sub(&one, &ss), add(&one, &ss));
        Chunk { x: mul(&w0, &w3), y: mul(&w2, &w1), z: mul(&w1, &w3), t: mul(&w0, &w2) }
    }

    fn uniform_chunk(low: &[Encoding; LANES], high: &[Encoding; LANES]) -> Chunk {
        add_points(&elligator(&load(low)), &elligator(&load(high)))
    }

    fn base_chunk() -> Chunk {
        let (x, y) = (splat(BASE_X), splat(BASE_Y));
        Chunk { x, y, z: small(1), t: mul(&x, &y) }
    }
}

/// Chunks whose multiples stand side by side in a combination: 330 kB of them, which the second cache level
/// holds.
const COMBINED: usize = 32;

fn words(bytes: &Encoding) -> [u64; 4] {
    let mut out = [0; 4];
    for (word, bytes) in out.iter_mut().zip(bytes.as_chunks::<8>().0) {
        *word = u64::from_le_bytes(*bytes);
    }
    out
}

/// Multiples 1 to 8 of a point, affine and ready to be added, one a lane.
#[derive(Clone, Copy)]
#[repr(C)]
struct Row([Fe; 3]);

/// Signed radix-16 digits in [−8, 8] of up to eight scalars below 2^255; missing scalars are 0.
fn recode(scalars: &[[u8; 32]]) -> Digits {
    let mut digits = [[0i8; 8]; 64];
    for (lane, scalar) in scalars.iter().enumerate() {
        let mut carry = 0;
        for (k, digit) in digits.iter_mut().enumerate() {
            let nibble = (scalar[k / 2] >> (4 * (k % 2)) & 15) as i8 + carry;
            // The last digit keeps its carry: a scalar below 2^255 leaves at most 8 there.
            carry = if k == 63 { 0 } else { (nibble + 8) >> 4 };
            digit[lane] = nibble - (carry << 4);
        }
    }
    digits
}

/// A batch of points, eight to a chunk; lanes past the end are the identity or of no meaning.
#[derive(Clone)]
pub(crate) struct Batch {
    ifma: Ifma,
    len: usize,
    chunks: Vec<Chunk>,
}

impl Drop for Batch {
    fn drop(&mut self) {
        let limbs = self.chunks.len() * size_of::<Chunk>() / size_of::<u64>();
        // SAFETY: a chunk is `repr(C)` over vectors of integers without padding, so its memory may be viewed
        // as `u64`s.
        unsafe { core::slice::from_raw_parts_mut(self.chunks.as_mut_ptr().cast::<u64>(), limbs) }.zeroize();
    }
}

impl Ifma {
    fn batch(self, len: usize, chunks: Vec<Chunk>) -> Batch {
        Batch { ifma: self, len, chunks }
    }

    /// Decodes every encoding, or names the first that is invalid.
    pub(crate) fn decode(self, encodings: &[Encoding]) -> Result<Batch, usize> {
        let mut chunks = Vec::with_capacity(encodings.len().div_ceil(LANES));
        for (k, group) in encodings.chunks(LANES).enumerate() {
            // SAFETY: `self` proves that the features were detected.
            let (valid, chunk) = unsafe { decode_chunk(&pad(group)) };
            if valid != u8::MAX {
                return Err(k * LANES + valid.trailing_ones() as usize);
            }
            chunks.push(chunk);
        }
        Ok(self.batch(encodings.len(), chunks))
    }

    /// Maps each 64 uniform bytes to a point.
    pub(crate) fn map_uniform(self, uniform: &[[u8; 64]]) -> Batch {
        let mut chunks = Vec::with_capacity(uniform.len().div_ceil(LANES));
        for group in uniform.chunks(LANES) {
            let (mut low, mut high) = ([[0u8; 32]; LANES], [[0u8; 32]; LANES]);
            for (u, (low, high)) in group.iter().zip(low.iter_mut().zip(&mut high)) {
                low.copy_from_slice(&u[..32]);
                high.copy_from_slice(&u[32..]);
            }
            // SAFETY: `self` proves that the features were detected.
            chunks.push(unsafe { uniform_chunk(&low, &high) });
        }
        self.batch(uniform.len(), chunks)
    }

    /// `n` times the identity.
    pub(crate) fn identity(self, n: usize) -> Batch {
        // SAFETY: `self` proves that the features were detected.
        let chunk = unsafe { identity() };
        self.batch(n, vec![chunk; n.div_ceil(LANES)])
    }

    /// Each scalar (little-endian, below 2^255) times the generator.
    pub(crate) fn mul_base(self, scalars: &[[u8; 32]]) -> Batch {
        static TABLE: OnceLock<Table> = OnceLock::new();
        // SAFETY: `self` proves that the features were detected.
        let table = TABLE.get_or_init(|| Table { ifma: self, rows: unsafe { table_of(&base_chunk(), 1) } });
        table.mul(scalars)
    }
}

fn pad(group: &[Encoding]) -> [Encoding; LANES] {
    let mut out = [[0u8; 32]; LANES];
    out[..group.len()].copy_from_slice(group);
    out
}

impl Batch {
    /// Number of points.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The points' encodings.
    pub(crate) fn encode(&self) -> Vec<Encoding> {
        let mut out = Vec::with_capacity(self.chunks.len() * LANES);
        for chunk in &self.chunks {
            // SAFETY: a batch can only be had by `Ifma`, which proves that the features were detected.
            out.extend_from_slice(&unsafe { encode_chunk(chunk) });
        }
        out.truncate(self.len);
        out
    }

    /// Point `i` times scalar `i` (little-endian, below 2^255); as many scalars as points.
    pub(crate) fn mul(&self, scalars: &[[u8; 32]]) -> Batch {
        debug_assert_eq!(scalars.len(), self.len);
        let mut chunks = Vec::with_capacity(self.chunks.len());
        for (chunk, scalars) in self.chunks.iter().zip(scalars.chunks(LANES)) {
            let mut digits = recode(scalars);
            // SAFETY: a batch can only be had by `Ifma`, which proves that the features were detected.
            chunks.push(unsafe { mul_chunk(chunk, &digits) });
            digits.zeroize();
        }
        self.ifma.batch(self.len, chunks)
    }

    /// The sum of point `i` times scalar `i` (little-endian, below 2^255); as many scalars as points.
    pub(crate) fn combine(&self, scalars: &[[u8; 32]]) -> Batch {
        debug_assert_eq!(scalars.len(), self.len);
        let digits: Vec<Digits> = scalars.chunks(LANES).map(recode).collect();
        // SAFETY: a batch can only be had by `Ifma`, which proves that the features were detected.
        let mut sum = unsafe { identity() };
        for (chunks, digits) in self.chunks.chunks(COMBINED).zip(digits.chunks(COMBINED)) {
            // SAFETY: as above.
            sum = unsafe { add_points(&sum, &combine_chunks(chunks, digits)) };
        }
        // SAFETY: as above.
        self.ifma.batch(1, vec![unsafe { sum_lanes(&sum) }])
    }

    /// Every point times the one scalar.
    pub(crate) fn mul_same(&self, scalar: &[u8; 32]) -> Batch {
        let mut same = [*scalar; LANES];
        let mut digits = recode(&same);
        // SAFETY: a batch can only be had by `Ifma`, which proves that the features were detected.
        let chunks = self.chunks.iter().map(|chunk| unsafe { mul_chunk(chunk, &digits) }).collect();
        same.zeroize();
        digits.zeroize();
        self.ifma.batch(self.len, chunks)
    }

    /// Sums.
    pub(crate) fn add(&self, other: &Batch) -> Batch {
        let pairs = self.chunks.iter().zip(&other.chunks);
        // SAFETY: a batch can only be had by `Ifma`, which proves that the features were detected.
        self.ifma.batch(self.len, pairs.map(|(a, b)| unsafe { add_points(a, b) }).collect())
    }

    /// Differences.
    pub(crate) fn sub(&self, other: &Batch) -> Batch {
        let pairs = self.chunks.iter().zip(&other.chunks);
        // SAFETY: a batch can only be had by `Ifma`, which proves that the features were detected.
        self.ifma.batch(self.len, pairs.map(|(a, b)| unsafe { sub_points(a, b) }).collect())
    }

    /// Inverses.
    pub(crate) fn neg(&self) -> Batch {
        // SAFETY: a batch can only be had by `Ifma`, which proves that the features were detected.
        self.ifma.batch(self.len, self.chunks.iter().map(|a| unsafe { negate(a) }).collect())
    }

    /// `n` copies of the first point; the identity of an empty batch is not asked for.
    pub(crate) fn repeat(&self, n: usize) -> Batch {
        // SAFETY: a batch can only be had by `Ifma`, which proves that the features were detected.
        let chunk = unsafe { splat_first(&self.chunks[0]) };
        self.ifma.batch(n, vec![chunk; n.div_ceil(LANES)])
    }

    /// Point `i` of `self`, or of `other` where bit `i` of `bits` is set (lowest bit of byte 0 first, zero
    /// past the end).
    pub(crate) fn select(&self, other: &Batch, bits: &[u8]) -> Batch {
        let triples = self.chunks.iter().zip(&other.chunks).zip(bits);
        // SAFETY: a batch can only be had by `Ifma`, which proves that the features were detected.
        let chunks = triples.map(|((a, b), bits)| unsafe { blend_points(*bits, a, b) }).collect();
        self.ifma.batch(self.len, chunks)
    }

    /// Multiples of the first point, for many multiplications of it.
    pub(crate) fn table(&self) -> Table {
        // SAFETY: a batch can only be had by `Ifma`, which proves that the features were detected.
        Table { ifma: self.ifma, rows: unsafe { table_of(&self.chunks[0], 2) } }
    }
}

/// Multiples of one point.
pub(crate) struct Table {
    ifma: Ifma,
    rows: Vec<Row>,
}

impl Table {
    /// Each scalar (little-endian, below 2^255) times the table's point.
    pub(crate) fn mul(&self, scalars: &[[u8; 32]]) -> Batch {
        let mut chunks = Vec::with_capacity(scalars.len().div_ceil(LANES));
        for group in scalars.chunks(LANES) {
            let mut digits = recode(group);
            // SAFETY: a table can only be had by `Ifma`, which proves that the features were detected.
            chunks.push(unsafe { mul_table(&self.rows, &digits) });
            digits.zeroize();
        }
        self.ifma.batch(scalars.len(), chunks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Prg;

    /// The number that a lane's limbs stand for, modulo p, as 32-bit digits.
    fn value(limbs: [u64; 5]) -> [u64; 8] {
        let mut wide = [0u128; 9];
        for (i, limb) in limbs.iter().enumerate() {
            for bit in (0..64).filter(|b| limb >> b & 1 == 1) {
                let at = 51 * i + bit;
                // Bits from 2^256 on come down as 38 = 2^256 mod p.
                if at < 256 {
                    wide[at / 32] += 1 << (at % 32)
                } else {
                    wide[(at - 256) / 32] += 38 << ((at - 256) % 32)
                }
            }
        }
        reduce(wide)
    }

    /// Carries, folds 2^256 = 38 and subtracts p until the number is least.
    fn reduce(mut wide: [u128; 9]) -> [u64; 8] {
        for _ in 0..4 {
            for i in 0..8 {
                wide[i + 1] += wide[i] >> 32;
                wide[i] &= 0xffff_ffff;
            }
            wide[0] += 38 * wide[8];
            wide[8] = 0;
        }
        let mut out: [u64; 8] = core::array::from_fn(|i| wide[i] as u64);
        let p: [u64; 8] = core::array::from_fn(|i| match i {
            0 => 0xffff_ffed,
            7 => 0x7fff_ffff,
            _ => 0xffff_ffff,
        });
        while out.iter().rev().ge(p.iter().rev()) {
            let mut borrow = 0;
            for i in 0..8 {
                let digit = out[i] as i64 - p[i] as i64 - borrow;
                borrow = (digit < 0) as i64;
                out[i] = (digit + (borrow << 32)) as u64;
            }
        }
        out
    }

    fn product(a: [u64; 8], b: [u64; 8]) -> [u64; 8] {
        let mut columns = [0u128; 16];
        for i in 0..8 {
            for j in 0..8 {
                columns[i + j] += a[i] as u128 * b[j] as u128;
            }
        }
        let mut wide = [0u128; 9];
        for (i, column) in columns.iter().enumerate() {
            wide[i % 8] += if i < 8 { *column } else { 38 * column };
        }
        reduce(wide)
    }

    fn combine(a: [u64; 8], b: [u64; 8], subtract: bool) -> [u64; 8] {
        let minus_one = value([MASK51 - 19, MASK51, MASK51, MASK51, MASK51]);
        let b = if subtract { product(b, minus_one) } else { b };
        let mut wide = [0u128; 9];
        for i in 0..8 {
            wide[i] = a[i] as u128 + b[i] as u128;
        }
        reduce(wide)
    }

    /// Limbs at and about every bound: zero, one, tight, p, 2^51, the multiplier's 2^52 − 1, and random.
    fn limbs(kind: usize, limit: u64, prg: &mut Prg) -> [u64; 5] {
        match kind {
            0 => [0; 5],
            1 => [1, 0, 0, 0, 0],
            2 => [limit - 1; 5],
            3 => [MASK51 - 18, MASK51, MASK51, MASK51, MASK51],
            4 => [MASK51 + 1; 5],
            5 => [MASK51; 5],
            6 => [MASK51 - 19, MASK51, MASK51, MASK51, MASK51],
            _ => core::array::from_fn(|_| prg.below(limit)),
        }
    }

    fn lane(a: &Fe, k: usize) -> [u64; 5] {
        // SAFETY: both types are 320 bytes of plain integers.
        let limbs = unsafe { core::mem::transmute::<[V; 5], [[u64; LANES]; 5]>(a.0) };
        limbs.map(|limb| limb[k])
    }

    fn element(lanes: &[[u64; 5]; LANES]) -> Fe {
        Fe(core::array::from_fn(|i| {
            let limb: [u64; LANES] = core::array::from_fn(|k| lanes[k][i]);
            // SAFETY: both types are 64 bytes of plain integers.
            unsafe { core::mem::transmute::<[u64; LANES], V>(limb) }
        }))
    }

    #[test]
    fn field_arithmetic_holds_at_the_bounds() {
        let tight = (1u64 << 51) + (1 << 15);
        let Some(_proof) = Backend::available().into_iter().find_map(Ifma::detect) else { return };
        let mut prg = Prg::from_seed(crate::Block::ONE);
        for round in 0..64 {
            let make = |shift: usize, limit: u64, prg: &mut Prg| -> [[u64; 5]; LANES] {
                core::array::from_fn(|k| limbs((k + shift) % (9 + (round > 8) as usize), limit, prg))
            };
            let (a, b) = (make(round, tight, &mut prg), make(0, tight, &mut prg));
            let (c, d) = (make(round, 1 << 52, &mut prg), make(0, 1 << 52, &mut prg));
            let [fa, fb, fc, fd] = [&a, &b, &c, &d].map(element);
            // SAFETY: the features were detected above.
            let (results, frozen, zero) = unsafe {
                let results = [
                    mul(&fc, &fd),
                    square(&fc),
                    add(&fa, &fb),
                    sub(&fa, &fb),
                    neg(&fa),
                    double_sub(&fa, &fb),
                ];
                (results, freeze(&fa), is_zero(&sub(&fa, &fa)))
            };
            assert_eq!(zero, u8::MAX);
            for k in 0..LANES {
                let (va, vb, vc, vd) = (value(a[k]), value(b[k]), value(c[k]), value(d[k]));
                let expected = [
                    product(vc, vd),
                    product(vc, vc),
                    combine(va, vb, false),
                    combine(va, vb, true),
                    combine([0; 8], va, true),
                    combine(combine(va, va, false), vb, true),
                ];
                for (which, (result, expected)) in results.iter().zip(expected).enumerate() {
                    let result = lane(result, k);
                    assert_eq!(value(result), expected, "operation {which}, lane {k}, round {round}");
                    assert!(result.iter().all(|l| *l < tight), "operation {which} is not tight");
                }
                let least = lane(&frozen, k);
                assert_eq!(value(least), va);
                assert!(least.iter().all(|l| *l <= MASK51));
                assert!(least != [MASK51 - 18, MASK51, MASK51, MASK51, MASK51], "p is not its least residue");
            }
        }
    }

    #[test]
    fn digits_sum_up_to_the_scalar() {
        let mut prg = Prg::from_seed(crate::Block::ONE);
        let mut scalars = [[0u8; 32]; 64];
        prg.fill_bytes(scalars.as_flattened_mut());
        (scalars[0], scalars[1], scalars[2], scalars[3]) = ([0; 32], [0xff; 32], [0x88; 32], [0x77; 32]);
        for s in &mut scalars {
            s[31] &= 0x7f;
        }
        for group in scalars.chunks(8) {
            let digits = recode(group);
            for (k, scalar) in group.iter().enumerate() {
                assert!(digits.iter().all(|d| (-8..=8).contains(&d[k])));
                // Horner from the top, modulo 2^256: digits may be negative.
                let mut sum = [0i64; 32];
                for (i, d) in digits.iter().enumerate() {
                    sum[i / 2] += (d[k] as i64) << (4 * (i % 2));
                }
                let mut carry = 0;
                let bytes: [u8; 32] = core::array::from_fn(|i| {
                    let v = sum[i] + carry;
                    carry = v >> 8;
                    v as u8
                });
                assert_eq!(bytes, *scalar);
                assert_eq!(carry, 0);
            }
        }
    }
}
