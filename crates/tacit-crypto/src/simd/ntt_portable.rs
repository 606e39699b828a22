//! The ring's inner loops, once for all vector widths.
//!
//! Every function is inlined into its caller: plain for [`Portable`], and in `ntt` into functions compiled
//! for wider vectors, so that all backends run the same arithmetic. `W` is the number of 16-bit lanes to take
//! at once.

use crate::ring::{Poly, Ring};

/// What a backend writes out: the transpose, and the butterflies of one twiddle, whose broadcast the compiler
/// would widen past 16 bits.
pub(crate) trait Arch {
    /// (a, b) ← (a + z·b, a − z·b), lane by lane; as many lanes, a multiple of 16.
    fn butterflies(a: &mut [i16], b: &mut [i16], z: (i16, i16), q: i16);
    /// (a, b) ← (a + b, z·(a − b)), the sums reduced by `r`.
    fn unbutterflies(a: &mut [i16], b: &mut [i16], z: (i16, i16), r: (i16, i16), q: i16);
    /// `to[r·N/16 + l] = from[16·l + r]`.
    fn to_rows<const N: usize>(from: &[i16; N], to: &mut [i16; N]);
    /// The inverse of [`to_rows`](Self::to_rows).
    fn to_runs<const N: usize>(from: &[i16; N], to: &mut [i16; N]);
}

/// Entries of the Gaussian's cumulative table.
pub(crate) const GAUSSIAN: usize = 13;

/// What the ring needs of a backend. See [`Ring`] for the ranges.
pub(crate) trait Kernels: Copy {
    fn forward<const N: usize>(self, ring: &Ring<N>, x: &mut [i16; N]);
    fn inverse<const N: usize>(self, ring: &Ring<N>, x: &mut [i16; N], scale: (i16, i16));
    fn dot<const N: usize>(self, ring: &Ring<N>, a: &[Poly<N>], b: &[Poly<N>], out: &mut [i16; N]);
    fn add_reduced<const N: usize>(self, ring: &Ring<N>, a: &mut [i16; N], b: &[i16; N]);
    fn subtract_masked<const N: usize>(self, ring: &Ring<N>, a: &mut [i16; N], b: &[i16; N], mask: i16);
    fn pack<const N: usize>(self, ring: &Ring<N>, x: &[i16; N], out: &mut [u8]);
    fn unpack<const N: usize>(self, ring: &Ring<N>, bytes: &[u8], out: &mut [i16; N]) -> bool;
    fn reject<const N: usize>(
        self,
        ring: &Ring<N>,
        bytes: &[u8],
        out: &mut [i16; N],
        filled: usize,
    ) -> (usize, usize);
    fn signal<const N: usize>(
        self,
        ring: &Ring<N>,
        x: &[i16; N],
        coins: &[u16],
        signal: &mut [u16],
        key: &mut [u16],
    );
    fn extract<const N: usize>(self, ring: &Ring<N>, x: &[i16; N], signal: &[u16], key: &mut [u16]);
    fn binomial2<const N: usize>(self, random: &[u16], out: &mut [i16; N]);
    fn cumulative<const N: usize>(self, table: &[i32; GAUSSIAN], random: &[i32], out: &mut [i16; N]);
}

/// (a·b)·2^-16 modulo q, at most q/2 + |a·b|/2^16 in size; `b_q` = b·q^-1 modulo 2^16.
#[inline(always)]
pub(crate) fn montgomery(a: i16, b: i16, b_q: i16, q: i16) -> i16 {
    let low = a.wrapping_mul(b_q);
    high(a, b).wrapping_sub(high(low, q))
}

#[inline(always)]
fn high(a: i16, b: i16) -> i16 {
    ((a as i32 * b as i32) >> 16) as i16
}

/// `x` if negative plus q.
#[inline(always)]
fn to_positive(x: i16, q: i16) -> i16 {
    x.wrapping_add((x >> 15) & q)
}

/// From |x| < 3q/2 to [-(q-1)/2, (q-1)/2].
#[inline(always)]
fn centre(x: i16, q: i16) -> i16 {
    let half = q >> 1;
    let over = half.wrapping_sub(x) >> 15;
    let x = x.wrapping_sub(over & q);
    let under = x.wrapping_add(half) >> 15;
    x.wrapping_add(under & q)
}

/// (a, b) ← (a + z·b, a − z·b).
#[inline(always)]
fn butterfly(a: &mut i16, b: &mut i16, z: i16, z_q: i16, q: i16) {
    let (t, u) = (montgomery(*b, z, z_q, q), *a);
    *a = u.wrapping_add(t);
    *b = u.wrapping_sub(t);
}

/// (a, b) ← (a + b, z·(a − b)), the sum brought under 3q/4.
#[inline(always)]
fn unbutterfly(a: &mut i16, b: &mut i16, (z, z_q): (i16, i16), (r, r_q): (i16, i16), q: i16) {
    let (sum, difference) = (a.wrapping_add(*b), a.wrapping_sub(*b));
    *a = montgomery(sum, r, r_q, q);
    *b = montgomery(difference, z, z_q, q);
}

/// [`butterfly`] of whole vectors, twiddle by twiddle.
#[inline(always)]
fn butterflies<const W: usize>(a: &mut [i16; W], b: &mut [i16; W], z: &[i16; W], z_q: &[i16; W], q: i16) {
    for i in 0..W {
        let (t, u) = (montgomery(b[i], z[i], z_q[i], q), a[i]);
        a[i] = u.wrapping_add(t);
        b[i] = u.wrapping_sub(t);
    }
}

/// [`unbutterfly`] of whole vectors, twiddle by twiddle.
#[inline(always)]
fn unbutterflies<const W: usize>(
    a: &mut [i16; W],
    b: &mut [i16; W],
    (z, z_q): (&[i16; W], &[i16; W]),
    (r, r_q): (i16, i16),
    q: i16,
) {
    for i in 0..W {
        let (sum, difference) = (a[i].wrapping_add(b[i]), a[i].wrapping_sub(b[i]));
        a[i] = montgomery(sum, r, r_q, q);
        b[i] = montgomery(difference, z[i], z_q[i], q);
    }
}

// The narrow layers' loops come twice: over whole vectors of `W` lanes, and, where `W` is [`NARROW`], lane by
// lane, which the compiler turns into 16-bit products for the oldest processors, as it does not with
// fixed-size loops.

/// The `W` of processors without wide vectors.
pub(crate) const NARROW: usize = 8;

/// Brings every lane under 3q/4 in size.
#[inline(always)]
fn reduce_all<const N: usize>(x: &mut [i16; N]) {
    let (q, (r, r_q)) = (Ring::<N>::Q, Ring::<N>::REDUCE);
    for v in x {
        *v = montgomery(*v, r, r_q, q);
    }
}

/// A wide layer: pairs `len` apart, one twiddle a block.
#[inline(always)]
fn wide_layer<const N: usize, T: Arch>(ring: &Ring<N>, x: &mut [i16; N], len: usize) {
    let first = N / (2 * len);
    for (block, run) in x.chunks_exact_mut(2 * len).enumerate() {
        let z = (ring.twiddle[first + block], ring.twiddle_q[first + block]);
        let (a, b) = run.split_at_mut(len);
        T::butterflies(a, b, z, Ring::<N>::Q);
    }
}

#[inline(always)]
fn wide_layer_inverse<const N: usize, T: Arch>(ring: &Ring<N>, x: &mut [i16; N], len: usize) {
    let first = N / (2 * len);
    for (block, run) in x.chunks_exact_mut(2 * len).enumerate() {
        let z = (ring.untwiddle[first + block], ring.untwiddle_q[first + block]);
        let (a, b) = run.split_at_mut(len);
        T::unbutterflies(a, b, z, Ring::<N>::REDUCE, Ring::<N>::Q);
    }
}

/// A narrow layer on transposed rows of N/16 lanes: pairs of rows `len` apart, one twiddle a lane.
#[inline(always)]
fn narrow_layer<const N: usize, const W: usize>(ring: &Ring<N>, x: &mut [i16; N], len: usize) {
    let (width, q) = (N / 16, Ring::<N>::Q);
    for (group, rows) in x.chunks_exact_mut(2 * len * width).enumerate() {
        let table = width * (8 / len + group);
        let (z, z_q) = (&ring.twiddle[table..][..width], &ring.twiddle_q[table..][..width]);
        let (a, b) = rows.split_at_mut(len * width);
        for (a, b) in a.chunks_exact_mut(width).zip(b.chunks_exact_mut(width)) {
            if W == NARROW {
                for ((a, b), (z, z_q)) in a.iter_mut().zip(b).zip(z.iter().zip(z_q)) {
                    butterfly(a, b, *z, *z_q, q);
                }
                continue;
            }
            let pairs = a.as_chunks_mut::<W>().0.iter_mut().zip(b.as_chunks_mut::<W>().0);
            let twiddles = z.as_chunks::<W>().0.iter().zip(z_q.as_chunks::<W>().0);
            for ((a, b), (z, z_q)) in pairs.zip(twiddles) {
                butterflies(a, b, z, z_q, q);
            }
        }
    }
}

#[inline(always)]
fn narrow_layer_inverse<const N: usize, const W: usize>(ring: &Ring<N>, x: &mut [i16; N], len: usize) {
    let (width, q) = (N / 16, Ring::<N>::Q);
    for (group, rows) in x.chunks_exact_mut(2 * len * width).enumerate() {
        let table = width * (8 / len + group);
        let (z, z_q) = (&ring.untwiddle[table..][..width], &ring.untwiddle_q[table..][..width]);
        let (a, b) = rows.split_at_mut(len * width);
        for (a, b) in a.chunks_exact_mut(width).zip(b.chunks_exact_mut(width)) {
            if W == NARROW {
                for ((a, b), (z, z_q)) in a.iter_mut().zip(b).zip(z.iter().zip(z_q)) {
                    unbutterfly(a, b, (*z, *z_q), Ring::<N>::REDUCE, q);
                }
                continue;
            }
            let pairs = a.as_chunks_mut::<W>().0.iter_mut().zip(b.as_chunks_mut::<W>().0);
            let twiddles = z.as_chunks::<W>().0.iter().zip(z_q.as_chunks::<W>().0);
            for ((a, b), (z, z_q)) in pairs.zip(twiddles) {
                unbutterflies(a, b, (z, z_q), Ring::<N>::REDUCE, q);
            }
        }
    }
}

/// Bounds, in units of q ≤ 13313 with 2^15 > 2.46 q: an input below 1 grows by at most 0.5 + 0.102·size a
/// layer, so two layers stay under 2.27; after a reduction (0.73 at most, 0.54 for q = 13313) three layers
/// stay under 2.4.
#[inline(always)]
pub(crate) fn forward<const N: usize, const W: usize, T: Arch>(ring: &Ring<N>, x: &mut [i16; N]) {
    let mut layer = 1;
    let mut len = N / 2;
    while len >= 16 {
        if layer % 3 == 0 {
            reduce_all::<N>(x);
        }
        wide_layer::<N, T>(ring, x, len);
        len /= 2;
        layer += 1;
    }
    let mut rows = [0i16; N];
    T::to_rows(x, &mut rows);
    for len in [8, 4, 2, 1] {
        if layer % 3 == 0 {
            reduce_all::<N>(&mut rows);
        }
        if N / 16 >= W {
            narrow_layer::<N, W>(ring, &mut rows, len);
        } else {
            narrow_layer::<N, 16>(ring, &mut rows, len);
        }
        layer += 1;
    }
    for (out, v) in x.iter_mut().zip(&rows) {
        *out =
            to_positive(montgomery(*v, Ring::<N>::REDUCE.0, Ring::<N>::REDUCE.1, Ring::<N>::Q), Ring::<N>::Q);
    }
}

/// Bounds: inputs below 1 (in units of q) give sums and differences below 2, which come out of their products
/// below 0.75; so every layer's inputs are below 1.
#[inline(always)]
pub(crate) fn inverse<const N: usize, const W: usize, T: Arch>(
    ring: &Ring<N>,
    x: &mut [i16; N],
    scale: (i16, i16),
) {
    let mut rows = *x;
    for len in [1, 2, 4, 8] {
        if N / 16 >= W {
            narrow_layer_inverse::<N, W>(ring, &mut rows, len);
        } else {
            narrow_layer_inverse::<N, 16>(ring, &mut rows, len);
        }
    }
    T::to_runs(&rows, x);
    let mut len = 16;
    while len < N {
        wide_layer_inverse::<N, T>(ring, x, len);
        len *= 2;
    }
    for v in x.iter_mut() {
        *v = montgomery(*v, scale.0, scale.1, Ring::<N>::Q);
    }
}

/// Bounds, in units of q: a product is below 0.71, three of them or a reduced sum (0.74) and two below 2.2.
#[inline(always)]
pub(crate) fn dot<const N: usize>(_: &Ring<N>, a: &[Poly<N>], b: &[Poly<N>], out: &mut [i16; N]) {
    let (q, (r, r_q), last) = (Ring::<N>::Q, Ring::<N>::REDUCE, a.len());
    out.fill(0);
    for (i, (a, b)) in a.iter().zip(b).enumerate() {
        for (out, (a, b)) in out.iter_mut().zip(a.0.iter().zip(&b.0)) {
            let b_q = b.wrapping_mul(Ring::<N>::Q_INVERSE);
            *out = out.wrapping_add(montgomery(*a, *b, b_q, q));
        }
        if i + 1 == last || (i > 0 && i % 2 == 0) {
            for v in out.iter_mut() {
                *v = montgomery(*v, r, r_q, q);
            }
        }
    }
}

#[inline(always)]
pub(crate) fn add_reduced<const N: usize>(_: &Ring<N>, a: &mut [i16; N], b: &[i16; N]) {
    for (a, b) in a.iter_mut().zip(b) {
        *a = to_positive(
            montgomery(a.wrapping_add(*b), Ring::<N>::REDUCE.0, Ring::<N>::REDUCE.1, Ring::<N>::Q),
            Ring::<N>::Q,
        );
    }
}

#[inline(always)]
pub(crate) fn subtract_masked<const N: usize>(_: &Ring<N>, a: &mut [i16; N], b: &[i16; N], mask: i16) {
    for (a, b) in a.iter_mut().zip(b) {
        let difference = a.wrapping_sub(*b & mask);
        *a = to_positive(
            montgomery(difference, Ring::<N>::REDUCE.0, Ring::<N>::REDUCE.1, Ring::<N>::Q),
            Ring::<N>::Q,
        );
    }
}

/// Words of `BITS`-bit values in 16 planes of N/16 lanes: lane by lane, the 16 values make a string of BITS
/// words.
#[inline(always)]
fn pack_planes<const N: usize, const BITS: usize>(x: &[i16; N], out: &mut [u8]) {
    let width = N / 16;
    for (k, word) in out.chunks_exact_mut(2 * width).enumerate() {
        let (value, offset) = (16 * k / BITS, 16 * k % BITS);
        let plane = |v: usize| &x[(v.min(15)) * width..][..width];
        let (a, b, c) = (plane(value), plane(value + 1), plane(value + 2));
        let (second, third) = (BITS - offset, 2 * BITS - offset);
        let keep_b = if value + 1 < 16 && second < 16 { u16::MAX } else { 0 };
        let keep_c = if value + 2 < 16 && third < 16 { u16::MAX } else { 0 };
        let planes = a.iter().zip(b).zip(c);
        for (out, ((a, b), c)) in word.as_chunks_mut::<2>().0.iter_mut().zip(planes) {
            let b = ((*b as u16) << (second & 15)) & keep_b;
            let c = ((*c as u16) << (third & 15)) & keep_c;
            *out = (*a as u16 >> offset | b | c).to_le_bytes();
        }
    }
}

#[inline(always)]
fn unpack_planes<const N: usize, const BITS: usize>(q: i16, bytes: &[u8], out: &mut [i16; N]) -> bool {
    let width = N / 16;
    let words = bytes.as_chunks::<2>().0;
    let mask = (1u16 << BITS) - 1;
    let mut in_range = -1i16;
    for (value, out) in out.chunks_exact_mut(width).enumerate() {
        let (k, offset) = (value * BITS / 16, value * BITS % 16);
        let low = &words[k * width..][..width];
        let high = &words[(k + 1).min(BITS - 1) * width..][..width];
        // Where the value ends inside its first word, the second word's bits all fall to the mask.
        let (up, keep) = if offset + BITS > 16 { (16 - offset, u16::MAX) } else { (0, 0) };
        for (out, (low, high)) in out.iter_mut().zip(low.iter().zip(high)) {
            let high = (u16::from_le_bytes(*high) << up) & keep;
            *out = ((u16::from_le_bytes(*low) >> offset | high) & mask) as i16;
            in_range &= out.wrapping_sub(q) >> 15;
        }
    }
    in_range == -1
}

#[inline(always)]
pub(crate) fn pack<const N: usize>(_: &Ring<N>, x: &[i16; N], out: &mut [u8]) {
    if Ring::<N>::BITS == 13 { pack_planes::<N, 13>(x, out) } else { pack_planes::<N, 14>(x, out) }
}

#[inline(always)]
pub(crate) fn unpack<const N: usize>(_: &Ring<N>, bytes: &[u8], out: &mut [i16; N]) -> bool {
    if Ring::<N>::BITS == 13 {
        unpack_planes::<N, 13>(Ring::<N>::Q, bytes, out)
    } else {
        unpack_planes::<N, 14>(Ring::<N>::Q, bytes, out)
    }
}

/// Takes candidates from `bytes` until they end or `out` is full; gives the bytes taken and the values got.
#[inline(always)]
pub(crate) fn reject<const N: usize>(
    _: &Ring<N>,
    bytes: &[u8],
    out: &mut [i16; N],
    filled: usize,
) -> (usize, usize) {
    let mask = (1u16 << Ring::<N>::BITS) - 1;
    let (mut at, mut taken) = (filled, 0);
    for pair in bytes.as_chunks::<2>().0 {
        if at >= N {
            break;
        }
        let candidate = (u16::from_le_bytes(*pair) & mask) as i16;
        out[at] = candidate;
        at += (candidate < Ring::<N>::Q) as usize;
        taken += 2;
    }
    (taken, at - filled)
}

/// σ_coin(x) (0 in ±⌊q/4⌋ shifted by the coin, else 1) and Mod2(x, σ), plane by plane.
#[inline(always)]
pub(crate) fn signal<const N: usize>(
    _: &Ring<N>,
    x: &[i16; N],
    coins: &[u16],
    signal: &mut [u16],
    key: &mut [u16],
) {
    let (q, width) = (Ring::<N>::Q, coins.len());
    let quarter = q >> 2;
    signal.fill(0);
    key.fill(0);
    for (plane, x) in x.chunks_exact(width).take(16).enumerate() {
        let out = signal.iter_mut().zip(key.iter_mut());
        for ((x, coin), (signal, key)) in x.iter().zip(coins).zip(out) {
            let v = centre(*x, q);
            let shifted = v.wrapping_sub((coin >> plane & 1) as i16);
            let outside = (quarter.wrapping_sub(shifted) | shifted.wrapping_add(quarter)) as u16 >> 15;
            *signal |= outside << plane;
            *key |= mod2(v, outside as i16, q) << plane;
        }
    }
}

/// Mod2(v, s) = (v + s·(q−1)/2 mods q) mod 2, for v in ±(q−1)/2.
#[inline(always)]
fn mod2(v: i16, s: i16, q: i16) -> u16 {
    let half = q >> 1;
    let w = v.wrapping_add(s.wrapping_neg() & half);
    let w = w.wrapping_sub((half.wrapping_sub(w) >> 15) & q);
    (w & 1) as u16
}

#[inline(always)]
pub(crate) fn extract<const N: usize>(_: &Ring<N>, x: &[i16; N], signal: &[u16], key: &mut [u16]) {
    let (q, width) = (Ring::<N>::Q, signal.len());
    key.fill(0);
    for (plane, x) in x.chunks_exact(width).take(16).enumerate() {
        for (key, (x, signal)) in key.iter_mut().zip(x.iter().zip(signal)) {
            let s = (signal >> plane & 1) as i16;
            *key |= mod2(centre(*x, q), s, q) << plane;
        }
    }
}

/// Centred binomial of η = 2: four random bits a coefficient, one plane after another.
#[inline(always)]
pub(crate) fn binomial2<const N: usize>(random: &[u16], out: &mut [i16; N]) {
    let quarter = N / 4;
    for (plane, out) in out.chunks_exact_mut(quarter).enumerate() {
        for (v, r) in out.iter_mut().zip(random) {
            let pairs = (r & 0x5555) + (r >> 1 & 0x5555);
            let nibble = pairs >> (4 * plane);
            *v = (nibble & 3) as i16 - (nibble >> 2 & 3) as i16;
        }
    }
}

/// The number of `table`'s entries at or below 31 random bits, with a random sign: every entry is compared.
#[inline(always)]
pub(crate) fn cumulative<const N: usize>(table: &[i32; GAUSSIAN], random: &[i32], out: &mut [i16; N]) {
    for (random, out) in random.iter().zip(out) {
        let x = (*random as u32 >> 1) as i32;
        // Each difference's top bit tells whether the entry is above; the shift makes −1 of it.
        let above = table.iter().fold(0, |sum, bound| sum + ((x - bound) >> 31));
        let size = GAUSSIAN as i32 + above;
        let sign = -(*random & 1);
        *out = ((size ^ sign) - sign) as i16;
    }
}

/// Plain Rust for every processor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Portable;

impl Arch for Portable {
    #[inline(always)]
    fn butterflies(a: &mut [i16], b: &mut [i16], (z, z_q): (i16, i16), q: i16) {
        for (a, b) in a.iter_mut().zip(b) {
            butterfly(a, b, z, z_q, q);
        }
    }

    #[inline(always)]
    fn unbutterflies(a: &mut [i16], b: &mut [i16], z: (i16, i16), r: (i16, i16), q: i16) {
        for (a, b) in a.iter_mut().zip(b) {
            unbutterfly(a, b, z, r, q);
        }
    }

    #[inline(always)]
    fn to_rows<const N: usize>(from: &[i16; N], to: &mut [i16; N]) {
        for (lane, run) in from.as_chunks::<16>().0.iter().enumerate() {
            for (r, v) in run.iter().enumerate() {
                to[r * (N / 16) + lane] = *v;
            }
        }
    }

    #[inline(always)]
    fn to_runs<const N: usize>(from: &[i16; N], to: &mut [i16; N]) {
        for (lane, run) in to.as_chunks_mut::<16>().0.iter_mut().enumerate() {
            for (r, v) in run.iter_mut().enumerate() {
                *v = from[r * (N / 16) + lane];
            }
        }
    }
}

/// The methods of [`Kernels`] by the functions above, through `$run!`, which wraps each call.
macro_rules! kernels {
    ($type:ident, $width:literal, $transpose:ident, $reject:path, $run:ident) => {
        impl $crate::simd::ntt_portable::Kernels for $type {
            $run!(forward(ring: &Ring<N>, x: &mut [i16; N]) => kernel::forward::<N, $width, $transpose>);
            $run!(inverse(ring: &Ring<N>, x: &mut [i16; N], scale: (i16, i16)) => kernel::inverse::<N, $width, $transpose>);
            $run!(dot(ring: &Ring<N>, a: &[Poly<N>], b: &[Poly<N>], out: &mut [i16; N]) => kernel::dot::<N>);
            $run!(add_reduced(ring: &Ring<N>, a: &mut [i16; N], b: &[i16; N]) => kernel::add_reduced::<N>);
            $run!(subtract_masked(ring: &Ring<N>, a: &mut [i16; N], b: &[i16; N], mask: i16) => kernel::subtract_masked::<N>);
            $run!(pack(ring: &Ring<N>, x: &[i16; N], out: &mut [u8]) => kernel::pack::<N>);
            $run!(unpack(ring: &Ring<N>, bytes: &[u8], out: &mut [i16; N]) -> bool => kernel::unpack::<N>);
            $run!(reject(ring: &Ring<N>, bytes: &[u8], out: &mut [i16; N], filled: usize) -> (usize, usize) => $reject);
            $run!(signal(ring: &Ring<N>, x: &[i16; N], coins: &[u16], signal: &mut [u16], key: &mut [u16]) => kernel::signal::<N>);
            $run!(extract(ring: &Ring<N>, x: &[i16; N], signal: &[u16], key: &mut [u16]) => kernel::extract::<N>);
            $run!(binomial2(random: &[u16], out: &mut [i16; N]) => kernel::binomial2::<N>);
            $run!(cumulative(table: &[i32; kernel::GAUSSIAN], random: &[i32], out: &mut [i16; N]) => kernel::cumulative::<N>);
        }
    };
}
#[cfg(all(feature = "std", target_arch = "x86_64"))]
pub(crate) use kernels;

macro_rules! plain {
    ($name:ident($($arg:ident: $type:ty),*) $(-> $result:ty)? => $call:path) => {
        #[inline]
        fn $name<const N: usize>(self, $($arg: $type),*) $(-> $result)? {
            $call($($arg),*)
        }
    };
}

use crate::simd::ntt_portable as kernel;
kernels!(Portable, 8, Portable, kernel::reject, plain);
