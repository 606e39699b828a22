//! The fold of a local linear code: every output XORs ten entries of a table.

use super::{Backend, Level};
use crate::Block;

/// Entries of the secret that one output adds.
pub(crate) const LOCALITY: usize = 10;

/// Rows that one call folds at most.
pub(crate) const ROWS: usize = 64;

/// Maps 32 public random bits to an index below `k`; for a power of two these are the highest bits.
#[inline(always)]
pub(crate) fn index(word: u32, k: u32) -> u32 {
    ((word as u64 * k as u64) >> 32) as u32
}

/// Folds on `backend`: `out[j] ^= Σ table[index(words[10 j + i])]`, entries of `lanes` blocks. Panics unless the table
/// has `k` entries, `out` at most 64 rows, and `words` ten a row.
pub(crate) fn fold(
    backend: Backend,
    words: &[u32],
    k: u32,
    table: &[Block],
    lanes: usize,
    out: &mut [Block],
) {
    let rows = out.len() / lanes;
    assert!(rows <= ROWS && words.len() >= rows * LOCALITY && table.len() == k as usize * lanes);
    match (backend.level(), lanes) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: this level exists only where AVX-512 was detected; the shapes were asserted above.
        (Level::Avx512, 4) => unsafe { x86::fold4(words, k, table, out) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        (Level::Avx512, 1) => unsafe { x86::fold1(words, k, table, out) },
        _ => fold_portable(words, k, table, lanes, out),
    }
}

/// Portable twin for any number of interleaved lanes.
fn fold_portable(words: &[u32], k: u32, table: &[Block], lanes: usize, out: &mut [Block]) {
    for (line, row) in out.chunks_exact_mut(lanes).zip(words.chunks_exact(LOCALITY)) {
        for &word in row {
            let entry = &table[index(word, k) as usize * lanes..][..lanes];
            for (o, e) in line.iter_mut().zip(entry) {
                *o ^= *e;
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::*;
    use core::arch::x86_64::*;

    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw")]
    fn indices(words: &[u32], k: u32) -> [u32; ROWS * LOCALITY] {
        let mut out = [0u32; ROWS * LOCALITY];
        if k.is_power_of_two() {
            let bits = k.trailing_zeros();
            for (o, w) in out.iter_mut().zip(words) {
                *o = (*w as u64 >> (32 - bits)) as u32;
            }
        } else {
            for (o, w) in out.iter_mut().zip(words) {
                *o = index(*w, k);
            }
        }
        out
    }

    /// Four lanes, one cache line an entry.
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw")]
    pub(super) unsafe fn fold4(words: &[u32], k: u32, table: &[Block], out: &mut [Block]) {
        let indices = indices(words, k);
        for (line, row) in out.chunks_exact_mut(4).zip(indices.as_chunks::<LOCALITY>().0) {
            // SAFETY: `line` is four blocks; every index is below k, and the table has k entries of four blocks.
            unsafe {
                let entry = |i: usize| _mm512_loadu_si512(table.as_ptr().add(row[i] as usize * 4).cast());
                let mut a = _mm512_loadu_si512(line.as_ptr().cast());
                let mut b = entry(0);
                a = _mm512_ternarylogic_epi64(a, entry(1), entry(2), 0x96);
                b = _mm512_ternarylogic_epi64(b, entry(3), entry(4), 0x96);
                a = _mm512_ternarylogic_epi64(a, entry(5), entry(6), 0x96);
                b = _mm512_ternarylogic_epi64(b, entry(7), entry(8), 0x96);
                a = _mm512_ternarylogic_epi64(a, b, entry(9), 0x96);
                _mm512_storeu_si512(line.as_mut_ptr().cast(), a);
            }
        }
    }

    /// One lane, 16 bytes an entry.
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw")]
    pub(super) unsafe fn fold1(words: &[u32], k: u32, table: &[Block], out: &mut [Block]) {
        let indices = indices(words, k);
        for (slot, row) in out.iter_mut().zip(indices.as_chunks::<LOCALITY>().0) {
            // SAFETY: every index is below k, the table's length; blocks are 16-byte aligned.
            unsafe {
                let entry = |i: usize| _mm_load_si128(table.as_ptr().add(row[i] as usize).cast());
                let mut a = _mm_load_si128((slot as *const Block).cast());
                let mut b = entry(0);
                a = _mm_ternarylogic_epi64(a, entry(1), entry(2), 0x96);
                b = _mm_ternarylogic_epi64(b, entry(3), entry(4), 0x96);
                a = _mm_ternarylogic_epi64(a, entry(5), entry(6), 0x96);
                b = _mm_ternarylogic_epi64(b, entry(7), entry(8), 0x96);
                a = _mm_ternarylogic_epi64(a, b, entry(9), 0x96);
                _mm_store_si128((slot as *mut Block).cast(), a);
            }
        }
    }
}
