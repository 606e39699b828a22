//! BLAKE3's keyed hash of many messages of one block, side by side: the words of a message in each lane.

use super::Backend;
use zeroize::Zeroizing;

/// BLAKE3's initial state, of which one block under a key uses the first half.
const IV: [u32; 4] = [0x6a09_e667, 0xbb67_ae85, 0x3c6e_f372, 0xa54f_f53a];
/// How a round permutes the message's words for the next one.
const PERMUTATION: [usize; 16] = [2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8];
/// Keyed, and the first, last and root block at once.
const FLAGS: u32 = 16 | 1 | 2 | 8;

/// 32-bit words, one of each of some messages.
///
/// # Safety
/// Every method needs the features of its register.
trait Words: Copy {
    /// Messages side by side.
    const LANES: usize;
    /// Words 4·`part` to 4·`part` + 3 of as many messages.
    ///
    /// # Safety
    /// That many messages from `from` on, and `part` below 4.
    unsafe fn load(from: *const [u8; 64], part: usize) -> [Self; 4];
    /// Half `half` of as many digests.
    ///
    /// # Safety
    /// Room for that many digests from `to` on, and `half` below 2.
    unsafe fn store(words: [Self; 4], to: *mut [u8; 32], half: usize);
    unsafe fn splat(word: u32) -> Self;
    unsafe fn add(self, other: Self) -> Self;
    unsafe fn xor(self, other: Self) -> Self;
    /// Rotates right by `R`; `L` is 32 − `R`.
    unsafe fn rotate<const R: i32, const L: i32>(self) -> Self;
}

/// The most lanes there are.
const MOST: usize = 16;

/// G of the specification, on the state's words a, b, c and d.
#[inline(always)]
unsafe fn mix<W: Words>(v: &mut [W; 16], [a, b, c, d]: [usize; 4], x: W, y: W) {
    // SAFETY: the caller has the features of `W`.
    unsafe {
        v[a] = v[a].add(v[b]).add(x);
        v[d] = v[d].xor(v[a]).rotate::<16, 16>();
        v[c] = v[c].add(v[d]);
        v[b] = v[b].xor(v[c]).rotate::<12, 20>();
        v[a] = v[a].add(v[b]).add(y);
        v[d] = v[d].xor(v[a]).rotate::<8, 24>();
        v[c] = v[c].add(v[d]);
        v[b] = v[b].xor(v[c]).rotate::<7, 25>();
    }
}

#[inline(always)]
unsafe fn round<W: Words>(v: &mut [W; 16], m: &[W; 16]) {
    // SAFETY: the caller has the features of `W`.
    unsafe {
        for i in 0..4 {
            mix(v, [i, 4 + i, 8 + i, 12 + i], m[2 * i], m[2 * i + 1]);
        }
        for i in 0..4 {
            let diagonal = [i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4];
            mix(v, diagonal, m[8 + 2 * i], m[9 + 2 * i]);
        }
    }
}

#[inline(always)]
fn permuted<W: Copy>(m: [W; 16]) -> [W; 16] {
    let mut out = m;
    for (out, from) in out.iter_mut().zip(PERMUTATION) {
        *out = m[from];
    }
    out
}

/// As [`keyed`], as many messages as `W` has words.
///
/// # Safety
/// The features of `W`, that many messages from `from` on, and room for as many digests from `to` on.
#[inline(always)]
unsafe fn lanes<W: Words>(key: &[u32; 8], len: usize, from: *const [u8; 64], to: *mut [u8; 32]) {
    // SAFETY: passed on to the caller.
    unsafe {
        let mut m = [W::splat(0); 16];
        for (part, m) in m.as_chunks_mut::<4>().0.iter_mut().enumerate() {
            if 16 * part < len {
                *m = W::load(from, part);
            }
        }
        let mut v = [W::splat(0); 16];
        for (v, word) in v.iter_mut().zip(key.iter().chain(&IV)) {
            *v = W::splat(*word);
        }
        (v[14], v[15]) = (W::splat(len as u32), W::splat(FLAGS));
        // Unrolled, so that a permutation is a renaming.
        macro_rules! rounds {
            ($($round:literal)*) => {
                $(if $round > 0 {
                    m = permuted(m);
                }
                round(&mut v, &m);)*
            };
        }
        rounds!(0 1 2 3 4 5 6);
        for half in 0..2 {
            let mut words = [W::splat(0); 4];
            for (i, word) in words.iter_mut().enumerate() {
                *word = v[4 * half + i].xor(v[8 + 4 * half + i]);
            }
            W::store(words, to, half);
        }
    }
}

/// [`keyed`] of any number of messages.
///
/// # Safety
/// The features of `W`, and as many digests as messages.
#[inline(always)]
unsafe fn all<W: Words>(key: &[u32; 8], len: usize, messages: &[[u8; 64]], out: &mut [[u8; 32]]) {
    let whole = messages.len() - messages.len() % W::LANES;
    let (messages, rest) = messages.split_at(whole);
    let (out, rest_out) = out.split_at_mut(whole);
    // SAFETY: passed on to the caller; the last messages go through arrays that hold enough.
    unsafe {
        for (messages, out) in messages.chunks_exact(W::LANES).zip(out.chunks_exact_mut(W::LANES)) {
            lanes::<W>(key, len, messages.as_ptr(), out.as_mut_ptr());
        }
        if !rest.is_empty() {
            let (mut last, mut digests) = (Zeroizing::new([[0; 64]; MOST]), [[0; 32]; MOST]);
            last[..rest.len()].copy_from_slice(rest);
            lanes::<W>(key, len, last.as_ptr(), digests.as_mut_ptr());
            rest_out.copy_from_slice(&digests[..rest.len()]);
        }
    }
}

/// BLAKE3's keyed hash of the first `len` bytes of each message, which must be followed by zeros.
///
/// Panics when the lengths differ or `len` is more than 64.
pub(crate) fn keyed(
    backend: Backend,
    key: &[u8; 32],
    len: usize,
    messages: &[[u8; 64]],
    out: &mut [[u8; 32]],
) {
    assert!(messages.len() == out.len() && len <= 64, "a hash for every message of one block");
    debug_assert!(
        messages.iter().all(|m| m[len..].iter().all(|&byte| byte == 0)),
        "zeros behind the message"
    );
    let mut words = [0u32; 8];
    words.iter_mut().zip(key.as_chunks::<4>().0).for_each(|(word, bytes)| *word = u32::from_le_bytes(*bytes));
    #[cfg(target_arch = "x86_64")]
    match backend.level() {
        // SAFETY: a backend of this level exists only where all its features were detected.
        super::Level::Avx512 => return unsafe { x86::wide512(&words, len, messages, out) },
        // SAFETY: as above.
        super::Level::Avx2 => return unsafe { x86::wide256(&words, len, messages, out) },
        // SAFETY: as above.
        super::Level::AesNi => return unsafe { x86::wide128(&words, len, messages, out) },
        super::Level::Portable => {}
    }
    let _ = backend;
    // SAFETY: arrays need no features.
    unsafe { all::<[u32; 4]>(&words, len, messages, out) }
}

impl Words for [u32; 4] {
    const LANES: usize = 4;
    #[inline(always)]
    unsafe fn load(from: *const [u8; 64], part: usize) -> [Self; 4] {
        // SAFETY: the caller answers for the messages.
        let messages = unsafe { &*from.cast::<[[u8; 64]; 4]>() };
        let word = |lane: usize, i: usize| messages[lane].as_chunks::<4>().0[4 * part + i];
        core::array::from_fn(|i| core::array::from_fn(|lane| u32::from_le_bytes(word(lane, i))))
    }
    #[inline(always)]
    unsafe fn store(words: [Self; 4], to: *mut [u8; 32], half: usize) {
        // SAFETY: the caller answers for the digests.
        let digests = unsafe { &mut *to.cast::<[[u8; 32]; 4]>() };
        for (lane, digest) in digests.iter_mut().enumerate() {
            let part = &mut digest.as_chunks_mut::<4>().0[4 * half..];
            part.iter_mut().zip(words).for_each(|(bytes, word)| *bytes = word[lane].to_le_bytes());
        }
    }
    #[inline(always)]
    unsafe fn splat(word: u32) -> Self {
        [word; 4]
    }
    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        core::array::from_fn(|i| self[i].wrapping_add(other[i]))
    }
    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        core::array::from_fn(|i| self[i] ^ other[i])
    }
    #[inline(always)]
    unsafe fn rotate<const R: i32, const L: i32>(self) -> Self {
        self.map(|word| word.rotate_right(R as u32))
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::super::x86::{V128, V256, V512, Vector};
    use super::{Words, all};
    use crate::Block;
    use core::arch::x86_64::*;

    macro_rules! words {
        (
            $entry:ident, $features:literal, $vector:ident, $splat:ident, $add:ident,
            |$x:ident, $r:ident, $l:ident| $rotate:expr
        ) => {
            impl Words for $vector {
                const LANES: usize = 4 * <$vector as Vector>::LANES;
                #[inline(always)]
                unsafe fn load(from: *const [u8; 64], part: usize) -> [Self; 4] {
                    // SAFETY: the caller answers for the messages, of four blocks each, and the features.
                    unsafe {
                        let from = from.cast::<Block>().add(part);
                        let mut rows = [Self::zero(); 4];
                        for (i, row) in rows.iter_mut().enumerate() {
                            *row = Vector::gather(from.add(4 * i), 16);
                        }
                        Vector::transpose_words(rows)
                    }
                }
                #[inline(always)]
                unsafe fn store(words: [Self; 4], to: *mut [u8; 32], half: usize) {
                    // SAFETY: the caller answers for the digests, of two blocks each, and the features.
                    unsafe {
                        let to = to.cast::<Block>().add(half);
                        for (i, row) in Vector::transpose_words(words).iter().enumerate() {
                            row.scatter(to.add(2 * i), 8);
                        }
                    }
                }
                #[inline(always)]
                unsafe fn splat(word: u32) -> Self {
                    // SAFETY: the caller has the features.
                    unsafe { Self($splat(word as i32)) }
                }
                #[inline(always)]
                unsafe fn add(self, other: Self) -> Self {
                    // SAFETY: the caller has the features.
                    unsafe { Self($add(self.0, other.0)) }
                }
                #[inline(always)]
                unsafe fn xor(self, other: Self) -> Self {
                    // SAFETY: the caller has the features.
                    unsafe { Vector::xor(self, other) }
                }
                #[inline(always)]
                unsafe fn rotate<const $r: i32, const $l: i32>(self) -> Self {
                    let $x = self.0;
                    // SAFETY: the caller has the features.
                    unsafe { Self($rotate) }
                }
            }

            #[target_feature(enable = $features)]
            pub(super) fn $entry(key: &[u32; 8], len: usize, messages: &[[u8; 64]], out: &mut [[u8; 32]]) {
                // SAFETY: this function's features are the register's.
                unsafe { all::<$vector>(key, len, messages, out) }
            }
        };
    }
    words!(wide128, "sse2", V128, _mm_set1_epi32, _mm_add_epi32, |x, R, L| _mm_or_si128(
        _mm_srli_epi32::<R>(x),
        _mm_slli_epi32::<L>(x)
    ));
    words!(wide256, "avx2", V256, _mm256_set1_epi32, _mm256_add_epi32, |x, R, L| _mm256_or_si256(
        _mm256_srli_epi32::<R>(x),
        _mm256_slli_epi32::<L>(x)
    ));
    words!(wide512, "avx512f", V512, _mm512_set1_epi32, _mm512_add_epi32, |x, R, L| _mm512_ror_epi32::<R>(x));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::CASES;
    use crate::{Block, Prg};

    #[test]
    fn every_backend_hashes_as_the_blake3_crate() {
        let mut prg = Prg::from_seed(Block::new(1));
        let shapes = [(3, 1), (0, 5), (1, 0), (4, 48), (17, 64), (40, 32), (80, 63)];
        for (n, len) in shapes.into_iter().take(CASES) {
            let mut key = [0u8; 32];
            prg.fill_bytes(&mut key);
            let mut messages = vec![[0u8; 64]; n];
            messages.iter_mut().for_each(|message| prg.fill_bytes(&mut message[..len]));
            let expected: Vec<[u8; 32]> =
                messages.iter().map(|m| *blake3::keyed_hash(&key, &m[..len]).as_bytes()).collect();
            for backend in Backend::available() {
                let mut out = vec![[0u8; 32]; n];
                keyed(backend, &key, len, &messages, &mut out);
                assert!(out == expected, "{} of {n} messages of {len} bytes", backend.name());
            }
        }
    }
}
