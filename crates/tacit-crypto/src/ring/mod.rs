//! Polynomials modulo X^N + 1 over Z_q, for key exchange from (module) ring learning with errors.
//!
//! A ring is a [`Ring<N>`]: its modulus and the tables of its number-theoretic transform. Coefficients are 16-bit
//! lanes, products are Montgomery's with R = 2^16, and every operation is written so that it runs straight down
//! vectors of lanes: polynomials travel and are reconciled in *planes*, where bit or coefficient `16·…` of a lane
//! stands in another plane. All of it is constant time in its data, but for [`Ring::unpack`] and
//! [`Ring::uniform`], which read public values.
//!
//! The transform is negacyclic, of Cooley–Tukey and Gentleman–Sande butterflies. The transform domain's order is
//! the transposed bit-reversed one (16 rows of N/16 lanes), which is part of the wire format.

mod noise;
mod params;
#[cfg(test)]
mod tests;

pub use noise::{Noise, RandomBlocks, XofBlocks};
pub use params::{Poly, RING_256_7681, RING_512_13313, RING_1024_12289, Ring};

use crate::simd::ntt_portable::Kernels;
use zeroize::Zeroize;

/// Runs `$body` with `$k` bound to the kernels in use.
macro_rules! dispatch {
    ($k:ident => $body:expr) => {{
        #[cfg(all(feature = "std", target_arch = "x86_64"))]
        {
            match crate::simd::ntt::active() {
                crate::simd::ntt::Active::Avx512($k) => $body,
                crate::simd::ntt::Active::Avx2($k) => $body,
                crate::simd::ntt::Active::Portable($k) => $body,
            }
        }
        #[cfg(not(all(feature = "std", target_arch = "x86_64")))]
        {
            let $k = crate::simd::ntt_portable::Portable;
            $body
        }
    }};
}
use dispatch;

/// K polynomials of N coefficients: an element of a module of rank K.
#[derive(Clone, PartialEq, Eq, Debug)]
#[repr(C, align(64))]
pub struct Vector<const N: usize, const K: usize>(pub [Poly<N>; K]);

impl<const N: usize, const K: usize> Vector<N, K> {
    /// The zero vector.
    pub const ZERO: Self = Vector([Poly::ZERO; K]);
}

impl<const N: usize, const K: usize> Zeroize for Vector<N, K> {
    fn zeroize(&mut self) {
        self.0.iter_mut().for_each(Zeroize::zeroize);
    }
}

/// A received polynomial has a coefficient outside [0, q), or the wrong length.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MalformedPoly;

impl<const N: usize> Ring<N> {
    /// The modulus q.
    pub const fn modulus(&self) -> u32 {
        Self::Q as u32
    }

    /// Bytes of a packed polynomial.
    pub const fn packed_len(&self) -> usize {
        N * Self::BITS as usize / 8
    }

    /// The transform, in place. Takes |coefficient| < q, gives [0, q).
    pub fn forward(&self, poly: &mut Poly<N>) {
        dispatch!(k => k.forward(self, &mut poly.0))
    }

    /// The inverse transform, in place. Takes |value| < q, gives |coefficient| < q.
    pub fn inverse(&self, poly: &mut Poly<N>) {
        dispatch!(k => k.inverse(self, &mut poly.0, self.scale))
    }

    /// The inverse transform of a sum made by [`dot`](Self::dot), whose Montgomery factor it takes out.
    pub fn inverse_product(&self, poly: &mut Poly<N>) {
        dispatch!(k => k.inverse(self, &mut poly.0, self.scale_product))
    }

    /// Σ a_i·b_i·2^-16, lane by lane in the transform domain. Takes |value| < q, gives |value| < q.
    ///
    /// Panics when the two differ in length.
    pub fn dot(&self, a: &[Poly<N>], b: &[Poly<N>], out: &mut Poly<N>) {
        assert_eq!(a.len(), b.len(), "as many left as right factors");
        dispatch!(k => k.dot(self, a, b, &mut out.0))
    }

    /// `into` += 2·`noise` + … no reduction: `noise` small (at most 64 in size), |into| < q.
    pub fn add_twice(&self, into: &mut Poly<N>, noise: &Poly<N>) {
        for (x, e) in into.0.iter_mut().zip(&noise.0) {
            *x = x.wrapping_add(e.wrapping_add(*e));
        }
    }

    /// a + b, reduced to [0, q). Takes |value| < q.
    pub fn add(&self, a: &mut Poly<N>, b: &Poly<N>) {
        dispatch!(k => k.add_reduced(self, &mut a.0, &b.0))
    }

    /// a − (mask & b), reduced to [0, q); `mask` is 0 or −1. Takes |value| < q.
    pub fn subtract_masked(&self, a: &mut Poly<N>, b: &Poly<N>, mask: i16) {
        dispatch!(k => k.subtract_masked(self, &mut a.0, &b.0, mask))
    }

    /// Packs values in [0, q) into [`packed_len`](Self::packed_len) bytes.
    ///
    /// Panics when `out` has another length.
    pub fn pack(&self, poly: &Poly<N>, out: &mut [u8]) {
        assert_eq!(out.len(), self.packed_len(), "the packed length");
        dispatch!(k => k.pack(self, &poly.0, out))
    }

    /// Unpacks what [`pack`](Self::pack) made; refuses values ≥ q and other lengths.
    pub fn unpack(&self, bytes: &[u8], out: &mut Poly<N>) -> Result<(), MalformedPoly> {
        if bytes.len() != self.packed_len() {
            return Err(MalformedPoly);
        }
        if dispatch!(k => k.unpack(self, bytes, &mut out.0)) { Ok(()) } else { Err(MalformedPoly) }
    }

    /// Fills `out` with uniform values in [0, q), by rejection from the stream of `reader`: each candidate is the
    /// low bits of two bytes. The time depends on the stream alone, which must be public.
    pub fn uniform(&self, reader: &mut blake3::OutputReader, out: &mut [Poly<N>]) {
        dispatch!(k => self.uniform_by(k, reader, out))
    }

    /// [`uniform`](Self::uniform) by the kernels `k`.
    fn uniform_by(&self, k: impl Kernels, reader: &mut blake3::OutputReader, out: &mut [Poly<N>]) {
        // The first draw covers all polynomials but for a chance of some 2^-20; 64 bytes is BLAKE3's block.
        let wanted = out.len() * N;
        let rate = Self::Q as usize;
        let first = (wanted << (Self::BITS + 1)).div_ceil(rate) + 6 * isqrt(wanted);
        let mut remaining = first.div_ceil(64);
        let mut buffer = [0u8; 1024];
        let mut filled = 0;
        while filled < wanted {
            let blocks = remaining.clamp(1, 16);
            remaining = remaining.saturating_sub(blocks);
            let bytes = &mut buffer[..64 * blocks];
            reader.fill(bytes);
            let mut rest = &*bytes;
            while filled < wanted && !rest.is_empty() {
                let poly = &mut out[filled / N];
                let (taken, got) = k.reject(self, rest, &mut poly.0, filled % N);
                rest = &rest[taken..];
                filled += got;
            }
        }
    }

    /// The sender's half of the reconciliation: Sig and Mod2 of `lanes`·16 coefficients of `poly` (|coefficient| < q
    /// + 64). `coins` randomises Sig's interval, one bit a coefficient; bits stand in planes of `lanes` words.
    ///
    /// Panics unless the three slices have equal lengths, a multiple of 16 and at most N/16.
    pub fn signal(&self, poly: &Poly<N>, coins: &[u16], signal: &mut [u16], key: &mut [u16]) {
        check_lanes::<N>(coins.len(), signal.len(), key.len());
        dispatch!(k => k.signal(self, &poly.0, coins, signal, key))
    }

    /// The receiver's half: Mod2 of `poly` by the received `signal`.
    ///
    /// Panics unless the two slices have equal lengths, a multiple of 16 and at most N/16.
    pub fn extract(&self, poly: &Poly<N>, signal: &[u16], key: &mut [u16]) {
        check_lanes::<N>(signal.len(), signal.len(), key.len());
        dispatch!(k => k.extract(self, &poly.0, signal, key))
    }
}

fn check_lanes<const N: usize>(a: usize, b: usize, c: usize) {
    assert!(a == b && b == c && a.is_multiple_of(16) && a <= N / 16, "planes of as many lanes");
}

const fn isqrt(n: usize) -> usize {
    n.isqrt()
}
