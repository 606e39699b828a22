//! The fold of a local linear code: every output XORs ten entries of a table.

use super::accumulate::prefetch;
use super::{Backend, Level};
use crate::Block;

/// Entries of the secret that one output adds.
pub(crate) const LOCALITY: usize = 10;

/// Rows that one call folds at most.
pub(crate) const ROWS: usize = 64;

/// Bytes of a table above which lines are asked for ahead: up to twice a second-level cache that costs more than it gains.
pub(crate) const FAR: usize = 2 << 20;

/// Where the rows of a call read: ten indices below k a row.
pub(crate) struct Indices {
    k: u32,
    rows: [[u32; LOCALITY]; ROWS],
}

impl Indices {
    /// All zero.
    pub(crate) fn new(k: u32) -> Self {
        assert!(k > 0, "no columns");
        Indices { k, rows: [[0; LOCALITY]; ROWS] }
    }

    /// Maps public random words, ten a row, to indices; for a power of two these are the highest bits.
    pub(crate) fn set(&mut self, backend: Backend, words: &[u32]) {
        match backend.level() {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: this level exists only where AVX-512 was detected.
            Level::Avx512 => unsafe { x86::reduce(words, self.k, self.rows.as_flattened_mut()) },
            _ => reduce(words, self.k, self.rows.as_flattened_mut()),
        }
    }

    /// The indices of one row.
    pub(crate) fn row(&self, row: usize) -> [u32; LOCALITY] {
        self.rows[row]
    }

    /// Asks for the lines of all rows.
    pub(crate) fn ask(&self, table: &[Block], lanes: usize) {
        self.rows.iter().for_each(|row| ask(table, lanes, row));
    }
}

#[inline(always)]
fn reduce(words: &[u32], k: u32, out: &mut [u32]) {
    for (o, w) in out.iter_mut().zip(words) {
        *o = ((*w as u64 * k as u64) >> 32) as u32;
    }
}

/// Asks for the lines of a row, into the second-level cache (see [`prefetch`](super::accumulate::prefetch)).
#[inline(always)]
fn ask(table: &[Block], lanes: usize, row: &[u32; LOCALITY]) {
    match lanes {
        4 => prefetch(table.as_chunks::<4>().0, row),
        _ => prefetch(table, row),
    }
}

/// Folds on `backend` rows `from` … of `indices`: `out[j] ^= Σ table[row[i]]`, entries of `lanes` blocks, 1 or 4. Meanwhile
/// asks for what `next` reads. Panics unless the table has k entries and there are as many rows as `out` takes.
pub(crate) fn fold(
    backend: Backend,
    indices: &Indices,
    from: usize,
    table: &[Block],
    lanes: usize,
    out: &mut [Block],
    next: Option<&Indices>,
) {
    let rows = &indices.rows[from..from + out.len() / lanes];
    assert!(table.len() == indices.k as usize * lanes);
    let next = next.map_or(&[][..], |next| &next.rows);
    match (backend.level(), lanes) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: this level exists only where AVX-512 was detected; the table has k entries, and indices are below k.
        (Level::Avx512, 4) => unsafe { x86::fold4(rows, table, out, next) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        (Level::Avx512, 1) => unsafe { x86::fold1(rows, table, out, next) },
        _ => fold_portable(rows, table, lanes, out, next),
    }
}

type Rows<'a> = &'a [[u32; LOCALITY]];

/// Portable twin for any number of interleaved lanes.
fn fold_portable(rows: Rows<'_>, table: &[Block], lanes: usize, out: &mut [Block], next: Rows<'_>) {
    for (j, (line, row)) in out.chunks_exact_mut(lanes).zip(rows).enumerate() {
        for &index in row {
            let entry = &table[index as usize * lanes..][..lanes];
            for (o, e) in line.iter_mut().zip(entry) {
                *o ^= *e;
            }
        }
        if let Some(next) = next.get(j) {
            ask(table, lanes, next);
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::*;
    use core::arch::x86_64::*;

    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw")]
    pub(super) fn reduce(words: &[u32], k: u32, out: &mut [u32]) {
        super::reduce(words, k, out);
    }

    /// Four lanes, one cache line an entry.
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw")]
    pub(super) unsafe fn fold4(rows: Rows<'_>, table: &[Block], out: &mut [Block], next: Rows<'_>) {
        for (j, (line, row)) in out.chunks_exact_mut(4).zip(rows).enumerate() {
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
            if let Some(next) = next.get(j) {
                ask(table, 4, next);
            }
        }
    }

    /// One lane, 16 bytes an entry.
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw")]
    pub(super) unsafe fn fold1(rows: Rows<'_>, table: &[Block], out: &mut [Block], next: Rows<'_>) {
        for (j, (slot, row)) in out.iter_mut().zip(rows).enumerate() {
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
            if let Some(next) = next.get(j) {
                ask(table, 1, next);
            }
        }
    }
}
