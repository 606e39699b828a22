//! Vectors of one, two and four blocks over x86-64 registers.
//!
//! The kernels are written once over [`Vector`] and inlined into entry points that switch the features on.

use crate::Block;
use core::arch::x86_64::*;

/// A register of blocks ("lanes").
///
/// # Safety
/// Every method needs the features of its register: `sse4.1,ssse3,aes,pclmulqdq` for [`V128`];
/// `avx2,vaes,vpclmulqdq` too for [`V256`]; and all those of `Level::Avx512` for [`V512`]. Pointers must be
/// valid for the lanes that are read or written; they need no alignment.
pub(super) trait Vector: Copy {
    const LANES: usize;
    unsafe fn load(from: *const Block) -> Self;
    unsafe fn store(self, to: *mut Block);
    /// Lane `i` from `from + i * stride`.
    unsafe fn gather(from: *const Block, stride: usize) -> Self;
    /// Lane `i` to `to + i * stride`.
    unsafe fn scatter(self, to: *mut Block, stride: usize);
    /// Lane `i` from `place(i)`.
    unsafe fn collect(place: impl Fn(usize) -> *const Block) -> Self;
    /// Lane `i` to `place(i)`.
    unsafe fn spread(self, place: impl Fn(usize) -> *mut Block);
    /// The lanes of both in turns, two vectors long.
    unsafe fn interleave(self, other: Self) -> [Self; 2];
    /// Undoes [`interleave`](Self::interleave).
    unsafe fn deinterleave(pair: [Self; 2]) -> [Self; 2];
    unsafe fn splat(block: Block) -> Self;
    unsafe fn zero() -> Self;
    unsafe fn xor(self, other: Self) -> Self;
    unsafe fn and(self, other: Self) -> Self;
    /// All ones in each lane whose lowest bit is one, else zeros.
    unsafe fn lsb_mask(self) -> Self;
    /// Adds `i` to the low half of lane `i`.
    unsafe fn add_lane_index(self) -> Self;
    /// Adds `count` to the low half of every lane.
    unsafe fn add_low(self, count: u64) -> Self;
    /// σ of `hash::sigma`.
    unsafe fn sigma(self) -> Self;
    /// The XOR of a lane's halves, in both halves.
    unsafe fn half_sum(self) -> Self;
    unsafe fn aes_round(self, key: Self) -> Self;
    unsafe fn aes_last(self, key: Self) -> Self;
    /// The next AES-128 round key of each lane; `rcon` is the round constant in every 32-bit word.
    ///
    /// S-box, rotation and constant come from one last AES round over four copies of the rotated last word:
    /// with equal columns its row shift does nothing.
    unsafe fn next_key(self, rcon: Self) -> Self;
    /// In each lane, four blocks as a 4×4 matrix of 32-bit words, transposed; its own inverse.
    unsafe fn transpose_words(rows: [Self; 4]) -> [Self; 4];
    /// Every 32-bit word rotated, put through the S-box and XORed with that of `sum`: the key schedule's
    /// function on the last words of four keys. The shuffle rotates and undoes the row shift of the last AES
    /// round that follows.
    unsafe fn schedule_words(self, sum: Self) -> Self;
    /// The round constant in every 32-bit word.
    unsafe fn splat_word(word: i32) -> Self;
    /// Carry-less product of the halves: `HALVES` bit 0 picks the high half of `self`, bit 4 that of `other`.
    unsafe fn clmul<const HALVES: i32>(self, other: Self) -> Self;
    /// In each lane, the 32-bit words in the order that `_mm_shuffle_epi32` takes.
    unsafe fn words<const ORDER: i32>(self) -> Self;
    /// In each lane, the bytes that `pattern` names.
    unsafe fn bytes(self, pattern: Self) -> Self;
    /// The products of the bytes in GF(2^8) modulo x^8 + x^4 + x^3 + x + 1.
    unsafe fn mul_bytes(self, other: Self) -> Self;
    /// Shifts each lane left by 8 bytes.
    unsafe fn up(self) -> Self;
    /// Shifts each lane right by 8 bytes.
    unsafe fn down(self) -> Self;
    /// The XOR of the lanes.
    unsafe fn fold(self) -> Block;
}

/// The next round's words of AES-128 keys, four in a lane, transposed; `rcon` is the round constant.
#[inline(always)]
pub(super) unsafe fn next_words<V: Vector>([w0, w1, w2, w3]: [V; 4], rcon: i32) -> [V; 4] {
    // SAFETY: the caller has the features of `V`.
    unsafe {
        let w0 = w3.schedule_words(w0.xor(V::splat_word(rcon)));
        let w1 = w1.xor(w0);
        let w2 = w2.xor(w1);
        [w0, w1, w2, w3.xor(w2)]
    }
}

#[derive(Clone, Copy)]
pub(super) struct V128(pub __m128i);
#[derive(Clone, Copy)]
pub(super) struct V256(pub __m256i);
#[derive(Clone, Copy)]
pub(super) struct V512(pub __m512i);

/// For every byte of a lane, the byte of the last word, rotated, that the key schedule wants there.
const ROTATED_LAST_WORD: u128 = 0x0c0f_0e0d_0c0f_0e0d_0c0f_0e0d_0c0f_0e0d;
/// For every byte, the byte of `schedule_words`'s operand that belongs there.
const ROTATED_WORDS: u128 = 0x0007_0a0d_0c03_0609_080f_0205_040b_0e01;
const HIGH_HALF: u128 = (u64::MAX as u128) << 64;

macro_rules! block_vector {
    (
        $vector:ident, $lanes:literal, $lane_index:expr,
        load: $load:ident, store: $store:ident, splat: $splat:expr, zero: $zero:ident, xor: $xor:ident, and: $and:ident,
        add: $add:ident, sub32: $sub32:ident, set32: $set32:ident, shuffle32: $shuffle32:ident,
        shuffle8: $shuffle8:ident, up: $up:ident, down: $down:ident, aes: $aes:ident, last: $last:ident,
        clmul: $clmul:ident, mul_bytes: $mul_bytes:ident, unpack: [$low32:ident, $high32:ident, $low64:ident, $high64:ident], gather: $gather:expr, scatter: $scatter:expr, collect: $collect:expr, spread: $spread:expr,
        interleave: $interleave:expr, deinterleave: $deinterleave:expr, fold: $fold:expr
    ) => {
        impl Vector for $vector {
            const LANES: usize = $lanes;
            #[inline(always)]
            unsafe fn load(from: *const Block) -> Self {
                // SAFETY: the caller answers for the pointer and the features.
                unsafe { Self($load(from.cast())) }
            }
            #[inline(always)]
            unsafe fn store(self, to: *mut Block) {
                // SAFETY: the caller answers for the pointer and the features.
                unsafe { $store(to.cast(), self.0) }
            }
            #[inline(always)]
            unsafe fn gather(from: *const Block, stride: usize) -> Self {
                // SAFETY: the caller answers for the pointer and the features.
                unsafe { Self($gather(from, stride)) }
            }
            #[inline(always)]
            unsafe fn scatter(self, to: *mut Block, stride: usize) {
                // SAFETY: the caller answers for the pointer and the features.
                unsafe { $scatter(self.0, to, stride) }
            }
            #[inline(always)]
            unsafe fn collect(place: impl Fn(usize) -> *const Block) -> Self {
                // SAFETY: the caller answers for the pointers and the features.
                unsafe { Self($collect(place)) }
            }
            #[inline(always)]
            unsafe fn spread(self, place: impl Fn(usize) -> *mut Block) {
                // SAFETY: the caller answers for the pointers and the features.
                unsafe { $spread(self.0, place) }
            }
            #[inline(always)]
            unsafe fn interleave(self, other: Self) -> [Self; 2] {
                // SAFETY: the caller has the features.
                unsafe { $interleave(self.0, other.0).map(Self) }
            }
            #[inline(always)]
            unsafe fn deinterleave(pair: [Self; 2]) -> [Self; 2] {
                // SAFETY: the caller has the features.
                unsafe { $deinterleave(pair[0].0, pair[1].0).map(Self) }
            }
            #[inline(always)]
            unsafe fn splat(block: Block) -> Self {
                // SAFETY: the caller has the features; the load reads the block at hand.
                unsafe { Self($splat(_mm_loadu_si128((&raw const block).cast()))) }
            }
            #[inline(always)]
            unsafe fn zero() -> Self {
                // SAFETY: the caller has the features.
                unsafe { Self($zero()) }
            }
            #[inline(always)]
            unsafe fn xor(self, other: Self) -> Self {
                // SAFETY: the caller has the features.
                unsafe { Self($xor(self.0, other.0)) }
            }
            #[inline(always)]
            unsafe fn and(self, other: Self) -> Self {
                // SAFETY: the caller has the features.
                unsafe { Self($and(self.0, other.0)) }
            }
            #[inline(always)]
            unsafe fn lsb_mask(self) -> Self {
                // SAFETY: the caller has the features.
                unsafe { Self($sub32($zero(), $and($shuffle32::<0>(self.0), $set32(1)))) }
            }
            #[inline(always)]
            unsafe fn add_lane_index(self) -> Self {
                let index: [u64; 2 * $lanes] = $lane_index;
                // SAFETY: the caller has the features; the load reads the array at hand.
                unsafe { Self($add(self.0, $load(index.as_ptr().cast()))) }
            }
            #[inline(always)]
            unsafe fn add_low(self, count: u64) -> Self {
                // SAFETY: the caller has the features.
                unsafe { Self($add(self.0, Self::splat(Block::new(count as u128)).0)) }
            }
            #[inline(always)]
            unsafe fn sigma(self) -> Self {
                // SAFETY: the caller has the features.
                unsafe {
                    let swapped = $shuffle32::<0x4e>(self.0);
                    Self($xor(swapped, $and(self.0, Self::splat(Block::new(HIGH_HALF)).0)))
                }
            }
            #[inline(always)]
            unsafe fn half_sum(self) -> Self {
                // SAFETY: the caller has the features.
                unsafe { Self($xor($shuffle32::<0x4e>(self.0), self.0)) }
            }
            #[inline(always)]
            unsafe fn aes_round(self, key: Self) -> Self {
                // SAFETY: the caller has the features.
                unsafe { Self($aes(self.0, key.0)) }
            }
            #[inline(always)]
            unsafe fn aes_last(self, key: Self) -> Self {
                // SAFETY: the caller has the features.
                unsafe { Self($last(self.0, key.0)) }
            }
            #[inline(always)]
            unsafe fn next_key(self, rcon: Self) -> Self {
                // SAFETY: the caller has the features.
                unsafe {
                    let word = $shuffle8(self.0, Self::splat(Block::new(ROTATED_LAST_WORD)).0);
                    let word = $last(word, rcon.0);
                    let sums = $xor(self.0, $up::<4>(self.0));
                    let sums = $xor(sums, $up::<8>(sums));
                    Self($xor(sums, word))
                }
            }
            #[inline(always)]
            unsafe fn transpose_words(rows: [Self; 4]) -> [Self; 4] {
                let [a, b, c, d] = rows;
                // SAFETY: the caller has the features.
                unsafe {
                    let (ab_low, ab_high) = ($low32(a.0, b.0), $high32(a.0, b.0));
                    let (cd_low, cd_high) = ($low32(c.0, d.0), $high32(c.0, d.0));
                    [
                        Self($low64(ab_low, cd_low)),
                        Self($high64(ab_low, cd_low)),
                        Self($low64(ab_high, cd_high)),
                        Self($high64(ab_high, cd_high)),
                    ]
                }
            }
            #[inline(always)]
            unsafe fn schedule_words(self, sum: Self) -> Self {
                // SAFETY: the caller has the features.
                unsafe {
                    let words = $shuffle8(self.0, Self::splat(Block::new(ROTATED_WORDS)).0);
                    Self($last(words, sum.0))
                }
            }
            #[inline(always)]
            unsafe fn splat_word(word: i32) -> Self {
                // SAFETY: the caller has the features.
                unsafe { Self($set32(word)) }
            }
            #[inline(always)]
            unsafe fn clmul<const HALVES: i32>(self, other: Self) -> Self {
                // SAFETY: the caller has the features.
                unsafe { Self($clmul::<HALVES>(self.0, other.0)) }
            }
            #[inline(always)]
            unsafe fn words<const ORDER: i32>(self) -> Self {
                // SAFETY: the caller has the features.
                unsafe { Self($shuffle32::<ORDER>(self.0)) }
            }
            #[inline(always)]
            unsafe fn bytes(self, pattern: Self) -> Self {
                // SAFETY: the caller has the features.
                unsafe { Self($shuffle8(self.0, pattern.0)) }
            }
            #[inline(always)]
            unsafe fn mul_bytes(self, other: Self) -> Self {
                // SAFETY: the caller has the features.
                unsafe { Self($mul_bytes(self.0, other.0)) }
            }
            #[inline(always)]
            unsafe fn up(self) -> Self {
                // SAFETY: the caller has the features.
                unsafe { Self($up::<8>(self.0)) }
            }
            #[inline(always)]
            unsafe fn down(self) -> Self {
                // SAFETY: the caller has the features.
                unsafe { Self($down::<8>(self.0)) }
            }
            #[inline(always)]
            unsafe fn fold(self) -> Block {
                let mut block = Block::ZERO;
                // SAFETY: the caller has the features; the store writes the block at hand.
                unsafe { _mm_storeu_si128((&raw mut block).cast(), $fold(self.0)) }
                block
            }
        }
    };
}

/// Products of bytes in GF(2^8), a bit of `y` at a time, for processors without an instruction.
macro_rules! mul_bytes {
    ($name:ident, $register:ident, $zero:ident, $set:ident, $add:ident, $greater:ident, $and:ident, $xor:ident) => {
        #[inline(always)]
        unsafe fn $name(x: $register, mut y: $register) -> $register {
            // SAFETY: the caller has the features.
            unsafe {
                let zero = $zero();
                let mut product = zero;
                for _ in 0..8 {
                    let carries = $and($greater(zero, product), $set(0x1b));
                    product = $xor($add(product, product), carries);
                    product = $xor(product, $and($greater(zero, y), x));
                    y = $add(y, y);
                }
                product
            }
        }
    };
}
mul_bytes!(
    mul_bytes128,
    __m128i,
    _mm_setzero_si128,
    _mm_set1_epi8,
    _mm_add_epi8,
    _mm_cmpgt_epi8,
    _mm_and_si128,
    _mm_xor_si128
);
mul_bytes!(
    mul_bytes256,
    __m256i,
    _mm256_setzero_si256,
    _mm256_set1_epi8,
    _mm256_add_epi8,
    _mm256_cmpgt_epi8,
    _mm256_and_si256,
    _mm256_xor_si256
);

#[inline(always)]
unsafe fn same(x: __m128i) -> __m128i {
    x
}

#[inline(always)]
unsafe fn collect128(place: impl Fn(usize) -> *const Block) -> __m128i {
    // SAFETY: the caller answers for the pointer.
    unsafe { _mm_loadu_si128(place(0).cast()) }
}

#[inline(always)]
unsafe fn spread128(x: __m128i, place: impl Fn(usize) -> *mut Block) {
    // SAFETY: the caller answers for the pointer.
    unsafe { _mm_storeu_si128(place(0).cast(), x) }
}

#[inline(always)]
unsafe fn gather128(from: *const Block, _stride: usize) -> __m128i {
    // SAFETY: the caller answers for the pointer.
    unsafe { collect128(|_| from) }
}

#[inline(always)]
unsafe fn scatter128(x: __m128i, to: *mut Block, _stride: usize) {
    // SAFETY: the caller answers for the pointer.
    unsafe { spread128(x, |_| to) }
}

#[inline(always)]
unsafe fn pair128(x: __m128i, y: __m128i) -> [__m128i; 2] {
    [x, y]
}

#[inline(always)]
unsafe fn collect256(place: impl Fn(usize) -> *const Block) -> __m256i {
    // SAFETY: the caller answers for the pointers and has AVX2.
    unsafe {
        let low = _mm256_castsi128_si256(collect128(&place));
        _mm256_inserti128_si256::<1>(low, collect128(|_| place(1)))
    }
}

#[inline(always)]
unsafe fn spread256(x: __m256i, place: impl Fn(usize) -> *mut Block) {
    // SAFETY: the caller answers for the pointers and has AVX2.
    unsafe {
        spread128(_mm256_castsi256_si128(x), &place);
        spread128(_mm256_extracti128_si256::<1>(x), |_| place(1));
    }
}

#[inline(always)]
pub(super) unsafe fn gather256(from: *const Block, stride: usize) -> __m256i {
    // SAFETY: the caller answers for the pointers and has AVX2; `wrapping_add` stays within what it answers
    // for.
    unsafe { collect256(|i| from.wrapping_add(i * stride)) }
}

#[inline(always)]
pub(super) unsafe fn scatter256(x: __m256i, to: *mut Block, stride: usize) {
    // SAFETY: the caller answers for the pointers and has AVX2; `wrapping_add` stays within what it answers
    // for.
    unsafe { spread256(x, |i| to.wrapping_add(i * stride)) }
}

/// Of two lanes each: the low lanes, then the high lanes; its own inverse.
#[inline(always)]
unsafe fn pair256(x: __m256i, y: __m256i) -> [__m256i; 2] {
    // SAFETY: the caller has AVX2.
    unsafe { [_mm256_permute2x128_si256::<0x20>(x, y), _mm256_permute2x128_si256::<0x31>(x, y)] }
}

#[inline(always)]
unsafe fn fold256(x: __m256i) -> __m128i {
    // SAFETY: the caller has AVX2.
    unsafe { _mm_xor_si128(_mm256_castsi256_si128(x), _mm256_extracti128_si256::<1>(x)) }
}

#[inline(always)]
unsafe fn collect512(place: impl Fn(usize) -> *const Block) -> __m512i {
    // SAFETY: the caller answers for the pointers and has AVX-512.
    unsafe {
        let low = _mm512_castsi256_si512(collect256(&place));
        _mm512_inserti64x4::<1>(low, collect256(|i| place(i + 2)))
    }
}

#[inline(always)]
unsafe fn spread512(x: __m512i, place: impl Fn(usize) -> *mut Block) {
    // SAFETY: the caller answers for the pointers and has AVX-512.
    unsafe {
        spread256(_mm512_castsi512_si256(x), &place);
        spread256(_mm512_extracti64x4_epi64::<1>(x), |i| place(i + 2));
    }
}

#[inline(always)]
pub(super) unsafe fn gather512(from: *const Block, stride: usize) -> __m512i {
    // SAFETY: the caller answers for the pointers and has AVX-512; `wrapping_add` stays within what it
    // answers for.
    unsafe { collect512(|i| from.wrapping_add(i * stride)) }
}

#[inline(always)]
pub(super) unsafe fn scatter512(x: __m512i, to: *mut Block, stride: usize) {
    // SAFETY: the caller answers for the pointers and has AVX-512; `wrapping_add` stays within what it
    // answers for.
    unsafe { spread512(x, |i| to.wrapping_add(i * stride)) }
}

#[inline(always)]
unsafe fn interleave512(x: __m512i, y: __m512i) -> [__m512i; 2] {
    // SAFETY: the caller has AVX-512.
    unsafe {
        let low = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11);
        let high = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
        [_mm512_permutex2var_epi64(x, low, y), _mm512_permutex2var_epi64(x, high, y)]
    }
}

#[inline(always)]
unsafe fn deinterleave512(x: __m512i, y: __m512i) -> [__m512i; 2] {
    // SAFETY: the caller has AVX-512.
    unsafe {
        let even = _mm512_setr_epi64(0, 1, 4, 5, 8, 9, 12, 13);
        let odd = _mm512_setr_epi64(2, 3, 6, 7, 10, 11, 14, 15);
        [_mm512_permutex2var_epi64(x, even, y), _mm512_permutex2var_epi64(x, odd, y)]
    }
}

#[inline(always)]
unsafe fn fold512(x: __m512i) -> __m128i {
    // SAFETY: the caller has AVX-512.
    unsafe { fold256(_mm256_xor_si256(_mm512_castsi512_si256(x), _mm512_extracti64x4_epi64::<1>(x))) }
}

block_vector!(
    V128, 1, [0, 0],
    load: _mm_loadu_si128, store: _mm_storeu_si128, splat: same, zero: _mm_setzero_si128, xor: _mm_xor_si128,
    and: _mm_and_si128, add: _mm_add_epi64, sub32: _mm_sub_epi32, set32: _mm_set1_epi32,
    shuffle32: _mm_shuffle_epi32, shuffle8: _mm_shuffle_epi8, up: _mm_slli_si128, down: _mm_srli_si128,
    aes: _mm_aesenc_si128, last: _mm_aesenclast_si128, clmul: _mm_clmulepi64_si128, mul_bytes: mul_bytes128,
    unpack: [_mm_unpacklo_epi32, _mm_unpackhi_epi32, _mm_unpacklo_epi64, _mm_unpackhi_epi64],
    gather: gather128, scatter: scatter128, collect: collect128, spread: spread128, interleave: pair128,
    deinterleave: pair128, fold: same
);
block_vector!(
    V256, 2, [0, 0, 1, 0],
    load: _mm256_loadu_si256, store: _mm256_storeu_si256, splat: _mm256_broadcastsi128_si256,
    zero: _mm256_setzero_si256, xor: _mm256_xor_si256, and: _mm256_and_si256, add: _mm256_add_epi64,
    sub32: _mm256_sub_epi32, set32: _mm256_set1_epi32, shuffle32: _mm256_shuffle_epi32,
    shuffle8: _mm256_shuffle_epi8, up: _mm256_bslli_epi128, down: _mm256_bsrli_epi128, aes: _mm256_aesenc_epi128,
    last: _mm256_aesenclast_epi128, clmul: _mm256_clmulepi64_epi128, mul_bytes: mul_bytes256,
    unpack: [_mm256_unpacklo_epi32, _mm256_unpackhi_epi32, _mm256_unpacklo_epi64, _mm256_unpackhi_epi64],
    gather: gather256, scatter: scatter256, collect: collect256, spread: spread256, interleave: pair256,
    deinterleave: pair256, fold: fold256
);
block_vector!(
    V512, 4, [0, 0, 1, 0, 2, 0, 3, 0],
    load: _mm512_loadu_si512, store: _mm512_storeu_si512, splat: _mm512_broadcast_i32x4,
    zero: _mm512_setzero_si512, xor: _mm512_xor_si512, and: _mm512_and_si512, add: _mm512_add_epi64,
    sub32: _mm512_sub_epi32, set32: _mm512_set1_epi32, shuffle32: _mm512_shuffle_epi32,
    shuffle8: _mm512_shuffle_epi8, up: _mm512_bslli_epi128, down: _mm512_bsrli_epi128, aes: _mm512_aesenc_epi128,
    last: _mm512_aesenclast_epi128, clmul: _mm512_clmulepi64_epi128, mul_bytes: _mm512_gf2p8mul_epi8,
    unpack: [_mm512_unpacklo_epi32, _mm512_unpackhi_epi32, _mm512_unpacklo_epi64, _mm512_unpackhi_epi64],
    gather: gather512, scatter: scatter512, collect: collect512, spread: spread512, interleave: interleave512,
    deinterleave: deinterleave512, fold: fold512
);
