//! The key exchange of Ding, Xie and Lin (2012/688) over modules: key pairs, shared values, reconciliation.
//!
//! With A the public matrix and all small values from the set's noise, the sender's p_S = Aᵀ·s_S + 2·e_S
//! meets the receiver's p_R = A·s_R + 2·e_R: s_S·p_R and s_R·p_S differ by small even noise, and the sender's
//! signal tells the receiver how to round to the same bits.

use crate::{Error, Instance};
use alloc::vec;
use alloc::vec::Vec;
use tacit_crypto::Block;
use tacit_crypto::ring::{Poly, RandomBlocks, Vector};
use zeroize::Zeroize;

/// Buffers for randomness and polynomials, reused from one transfer to the next and wiped at the end.
pub struct Scratch<const N: usize> {
    random: Vec<Block>,
    noise: Poly<N>,
    product: Poly<N>,
}

impl<const N: usize> Scratch<N> {
    /// Buffers for `instance`'s set.
    pub fn new<const K: usize>(instance: &Instance<N, K>) -> Self {
        let blocks = instance.set.noise.blocks(N).max(instance.set.key_bits / 128);
        Scratch { random: vec![Block::ZERO; blocks], noise: Poly::ZERO, product: Poly::ZERO }
    }
}

impl<const N: usize> Drop for Scratch<N> {
    fn drop(&mut self) {
        self.random.zeroize();
        self.noise.zeroize();
        self.product.zeroize();
    }
}

/// Draws a secret and its public value, both in the transform domain: `public` = A·secret + 2·e, in [0, q).
pub fn generate<const N: usize, const K: usize>(
    instance: &Instance<N, K>,
    random: &mut impl RandomBlocks,
    scratch: &mut Scratch<N>,
    secret: &mut Vector<N, K>,
    public: &mut Vector<N, K>,
) {
    let set = &instance.set;
    for s in &mut secret.0 {
        set.noise.sample(random, &mut scratch.random, s);
        set.ring.forward(s);
    }
    for (row, p) in instance.matrix.iter().zip(&mut public.0) {
        set.noise.sample(random, &mut scratch.random, &mut scratch.noise);
        *p = Poly::ZERO;
        set.ring.add_twice(p, &scratch.noise);
        set.ring.forward(p);
        set.ring.dot(&row.0, &secret.0, &mut scratch.product);
        set.ring.add(p, &scratch.product);
    }
}

/// secret·peer + 2·e' with fresh e', out of the transform domain, in `scratch`.
fn shared<const N: usize, const K: usize>(
    instance: &Instance<N, K>,
    random: &mut impl RandomBlocks,
    scratch: &mut Scratch<N>,
    secret: &Vector<N, K>,
    peer: &Vector<N, K>,
) {
    let set = &instance.set;
    set.noise.sample(random, &mut scratch.random, &mut scratch.noise);
    set.ring.dot(&secret.0, &peer.0, &mut scratch.product);
    set.ring.inverse_product(&mut scratch.product);
    set.ring.add_twice(&mut scratch.product, &scratch.noise);
}

/// The sender's shared value with `peer`, its signal to send (public) and its key bits (secret).
///
/// Panics unless both have [`key_words`](crate::set::Set::key_words) words.
pub fn signal<const N: usize, const K: usize>(
    instance: &Instance<N, K>,
    random: &mut impl RandomBlocks,
    scratch: &mut Scratch<N>,
    secret: &Vector<N, K>,
    peer: &Vector<N, K>,
    (signal, key): (&mut [u16], &mut [u16]),
) {
    shared(instance, random, scratch, secret, peer);
    let coins = &mut scratch.random[..instance.set.key_bits / 128];
    random.fill_blocks(coins);
    let coins = bytemuck::cast_slice(Block::as_bytes(coins));
    instance.set.ring.signal(&scratch.product, coins, signal, key);
}

/// The receiver's key bits from its secret, the sender's public value and signal.
///
/// Panics unless both have [`key_words`](crate::set::Set::key_words) words.
pub fn extract<const N: usize, const K: usize>(
    instance: &Instance<N, K>,
    random: &mut impl RandomBlocks,
    scratch: &mut Scratch<N>,
    secret: &Vector<N, K>,
    peer: &Vector<N, K>,
    (signal, key): (&[u16], &mut [u16]),
) {
    shared(instance, random, scratch, secret, peer);
    instance.set.ring.extract(&scratch.product, signal, key);
}

/// Packs a public value into `out`, of [`public_len`](crate::set::Set::public_len) bytes.
pub fn pack<const N: usize, const K: usize>(
    instance: &Instance<N, K>,
    public: &Vector<N, K>,
    out: &mut [u8],
) {
    let length = instance.set.ring.packed_len();
    for (poly, bytes) in public.0.iter().zip(out.chunks_exact_mut(length)) {
        instance.set.ring.pack(poly, bytes);
    }
}

/// Unpacks a public value; refuses coefficients ≥ q and other lengths.
pub fn unpack<const N: usize, const K: usize>(
    instance: &Instance<N, K>,
    bytes: &[u8],
    public: &mut Vector<N, K>,
) -> Result<(), Error> {
    if bytes.len() != instance.set.public_len() {
        return Err(Error::Malformed("a public value of the wrong length"));
    }
    let length = instance.set.ring.packed_len();
    for (poly, bytes) in public.0.iter_mut().zip(bytes.chunks_exact(length)) {
        instance.set.ring.unpack(bytes, poly)?;
    }
    Ok(())
}

/// Takes the receiver's own public value for slot `choice` (0 or 1) to p⁰: subtracts `offset` if the choice
/// is 1, without a branch.
pub fn hide_choice<const N: usize, const K: usize>(
    instance: &Instance<N, K>,
    public: &mut Vector<N, K>,
    offset: &[Poly<N>; K],
    choice: u8,
) {
    for (p, h) in public.0.iter_mut().zip(offset) {
        instance.set.ring.subtract_masked(p, h, -((choice & 1) as i16));
    }
}

/// p¹ = p⁰ + offset, in place.
pub fn second_slot<const N: usize, const K: usize>(
    instance: &Instance<N, K>,
    public: &mut Vector<N, K>,
    offset: &[Poly<N>; K],
) {
    for (p, h) in public.0.iter_mut().zip(offset) {
        instance.set.ring.add(p, h);
    }
}
