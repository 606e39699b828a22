//! BLAKE3's keyed hash of many messages of one block, side by side: the words of a message in each lane.

use super::Backend;

/// BLAKE3's initial state, of which one block under a key uses the first half.
const IV: [u32; 4] = [0x6a09_e667, 0xbb67_ae85, 0x3c6e_f372, 0xa54f_f53a];
/// How a round permutes the message's words for the next one.
const PERMUTATION: [usize; 16] = [2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8];
/// Keyed, and the first, last and root block at once.
const FLAGS: u32 = 16 | 1 | 2 | 8;

/// 32-bit words, one of each of some messages.
///
/// # Safety
/// Every method needs the features of its register, and pointers valid for its lanes.
trait Words: Copy {
    unsafe fn load(from: *const u32) -> Self;
    unsafe fn store(self, to: *mut u32);
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

/// As [`keyed`], as many messages as `W` has words.
#[inline(always)]
unsafe fn lanes<W: Words>(key: &[u32; 8], len: usize, messages: &[[u8; 64]], out: &mut [[u8; 32]]) {
    let mut words = [[0u32; MOST]; 16];
    for (lane, message) in messages.iter().enumerate() {
        for (row, word) in words.iter_mut().zip(message.as_chunks::<4>().0).take(len.div_ceil(4)) {
            row[lane] = u32::from_le_bytes(*word);
        }
    }
    // SAFETY: the caller has the features of `W`; every row holds at least as many words as there are lanes.
    unsafe {
        let mut m = [W::splat(0); 16];
        for (m, row) in m.iter_mut().zip(&words) {
            *m = W::load(row.as_ptr());
        }
        let mut v = [W::splat(0); 16];
        (0..8).for_each(|i| v[i] = W::splat(key[i]));
        (0..4).for_each(|i| v[8 + i] = W::splat(IV[i]));
        (v[14], v[15]) = (W::splat(len as u32), W::splat(FLAGS));
        for round in 0..7 {
            for i in 0..4 {
                mix(&mut v, [i, 4 + i, 8 + i, 12 + i], m[2 * i], m[2 * i + 1]);
            }
            for i in 0..4 {
                let diagonal = [i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4];
                mix(&mut v, diagonal, m[8 + 2 * i], m[9 + 2 * i]);
            }
            if round < 6 {
                m = PERMUTATION.map(|from| m[from]);
            }
        }
        for i in 0..8 {
            v[i].xor(v[8 + i]).store(words[i].as_mut_ptr());
        }
    }
    for (lane, out) in out.iter_mut().enumerate() {
        for (row, word) in words.iter().zip(out.as_chunks_mut::<4>().0) {
            *word = row[lane].to_le_bytes();
        }
    }
}

/// BLAKE3's keyed hash of the first `len` bytes of each message, which must be followed by zeros.
///
/// Panics when the lengths differ or `len` is more than 64.
pub fn keyed(backend: Backend, key: &[u8; 32], len: usize, messages: &[[u8; 64]], out: &mut [[u8; 32]]) {
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
    for (messages, out) in messages.chunks(4).zip(out.chunks_mut(4)) {
        // SAFETY: arrays need no features.
        unsafe { lanes::<[u32; 4]>(&words, len, messages, out) }
    }
}

impl Words for [u32; 4] {
    #[inline(always)]
    unsafe fn load(from: *const u32) -> Self {
        // SAFETY: the caller answers for the pointer.
        unsafe { from.cast::<Self>().read_unaligned() }
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut u32) {
        // SAFETY: the caller answers for the pointer.
        unsafe { to.cast::<Self>().write_unaligned(self) }
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
    use super::{Words, lanes};
    use core::arch::x86_64::*;

    macro_rules! words {
        (
            $entry:ident, $features:literal, $register:ty, $lanes:literal, $load:ident, $store:ident, $splat:ident,
            $add:ident, $xor:ident, |$x:ident, $r:ident, $l:ident| $rotate:expr
        ) => {
            impl Words for $register {
                #[inline(always)]
                unsafe fn load(from: *const u32) -> Self {
                    // SAFETY: the caller answers for the pointer and the features.
                    unsafe { $load(from.cast()) }
                }
                #[inline(always)]
                unsafe fn store(self, to: *mut u32) {
                    // SAFETY: the caller answers for the pointer and the features.
                    unsafe { $store(to.cast(), self) }
                }
                #[inline(always)]
                unsafe fn splat(word: u32) -> Self {
                    // SAFETY: the caller has the features.
                    unsafe { $splat(word as i32) }
                }
                #[inline(always)]
                unsafe fn add(self, other: Self) -> Self {
                    // SAFETY: the caller has the features.
                    unsafe { $add(self, other) }
                }
                #[inline(always)]
                unsafe fn xor(self, other: Self) -> Self {
                    // SAFETY: the caller has the features.
                    unsafe { $xor(self, other) }
                }
                #[inline(always)]
                unsafe fn rotate<const $r: i32, const $l: i32>(self) -> Self {
                    let $x = self;
                    // SAFETY: the caller has the features.
                    unsafe { $rotate }
                }
            }

            #[target_feature(enable = $features)]
            pub(super) fn $entry(key: &[u32; 8], len: usize, messages: &[[u8; 64]], out: &mut [[u8; 32]]) {
                for (messages, out) in messages.chunks($lanes).zip(out.chunks_mut($lanes)) {
                    // SAFETY: this function's features are the register's.
                    unsafe { lanes::<$register>(key, len, messages, out) }
                }
            }
        };
    }
    words!(
        wide128,
        "sse2",
        __m128i,
        4,
        _mm_loadu_si128,
        _mm_storeu_si128,
        _mm_set1_epi32,
        _mm_add_epi32,
        _mm_xor_si128,
        |x, R, L| _mm_or_si128(_mm_srli_epi32::<R>(x), _mm_slli_epi32::<L>(x))
    );
    words!(
        wide256,
        "avx2",
        __m256i,
        8,
        _mm256_loadu_si256,
        _mm256_storeu_si256,
        _mm256_set1_epi32,
        _mm256_add_epi32,
        _mm256_xor_si256,
        |x, R, L| _mm256_or_si256(_mm256_srli_epi32::<R>(x), _mm256_slli_epi32::<L>(x))
    );
    words!(
        wide512,
        "avx512f",
        __m512i,
        16,
        _mm512_loadu_si512,
        _mm512_storeu_si512,
        _mm512_set1_epi32,
        _mm512_add_epi32,
        _mm512_xor_si512,
        |x, R, L| _mm512_ror_epi32::<R>(x)
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Block, Prg};

    #[test]
    fn every_backend_hashes_as_the_blake3_crate() {
        let mut prg = Prg::from_seed(Block::new(1));
        for (n, len) in [(0, 5), (1, 0), (3, 1), (4, 48), (17, 64), (40, 32), (80, 63)] {
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
