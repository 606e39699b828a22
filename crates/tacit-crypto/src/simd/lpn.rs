//! The fold of a local linear code: every output XORs ten entries of a table.

use super::Backend;
#[cfg(target_arch = "x86_64")]
use super::Level;
use super::accumulate::prefetch;
use crate::Block;

/// Entries of the secret that one output adds.
pub(crate) const LOCALITY: usize = 10;

/// Rows that one call folds at most.
pub(crate) const ROWS: usize = 64;

/// Bytes of a table above which lines are asked for ahead: up to twice a second-level cache that costs more
/// than it gains.
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

    /// Draws the indices of all rows from AES in counter mode, `first` on: 32-bit words mapped to numbers
    /// below k, for a power of two their highest bits.
    pub(crate) fn draw(&mut self, backend: Backend, round_keys: &[Block; 11], first: u64) {
        match backend.level() {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: this level exists only where AVX-512 was detected.
            Level::Avx512 => unsafe { x86::draw(round_keys, first, self.k, self.rows.as_flattened_mut()) },
            _ => {
                let mut blocks = [Block::ZERO; ROWS * LOCALITY / 4];
                super::aes::counter(backend, round_keys, first, &mut blocks);
                let words: &[u32] = bytemuck::cast_slice(&blocks);
                for (o, w) in self.rows.as_flattened_mut().iter_mut().zip(words) {
                    *o = ((*w as u64 * self.k as u64) >> 32) as u32;
                }
            }
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

/// Asks for the lines of a row, into the second-level cache (see [`prefetch`](super::accumulate::prefetch)).
#[inline(always)]
fn ask(table: &[Block], lanes: usize, row: &[u32; LOCALITY]) {
    match lanes {
        4 => prefetch(table.as_chunks::<4>().0, row),
        _ => prefetch(table, row),
    }
}

/// Folds on `backend` rows `from` … of `indices`: `out[j] = addend[j] ⊕ Σ table[row[i]]`, entries of `lanes`
/// blocks, 1 or 4; without an addend into what `out` holds. Meanwhile asks for what `next` reads. Panics
/// unless the table has k entries, the addend is as long as `out`, and there are as many rows as `out` takes.
pub(crate) fn fold(
    backend: Backend,
    indices: &Indices,
    from: usize,
    table: &[Block],
    lanes: usize,
    addend: Option<&[Block]>,
    out: &mut [Block],
    next: Option<&Indices>,
) {
    let rows = &indices.rows[from..from + out.len() / lanes];
    assert!(table.len() == indices.k as usize * lanes);
    assert!(addend.is_none_or(|addend| addend.len() == out.len()), "one addend an output");
    let next = next.map_or(&[][..], |next| &next.rows);
    match (backend.level(), lanes) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: this level exists only where AVX-512 was detected; the table has k entries, and indices are
        // below k.
        (Level::Avx512, 4) => unsafe { x86::fold4(rows, table, addend, out, next) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        (Level::Avx512, 1) => unsafe { x86::fold1(rows, table, addend, out, next) },
        _ => {
            if let Some(addend) = addend {
                out.copy_from_slice(addend);
            }
            fold_portable(rows, table, lanes, out, next);
        }
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

    /// Vectors of words that are encrypted together.
    const WIDE: usize = 5;

    /// AES and the map to indices in one pass.
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,vaes")]
    pub(super) fn draw(round_keys: &[Block; 11], first: u64, k: u32, out: &mut [u32]) {
        let keys: [__m512i; 11] = core::array::from_fn(|i| {
            // SAFETY: a block is 16 bytes to read.
            _mm512_broadcast_i32x4(unsafe { _mm_loadu_si128((&raw const round_keys[i]).cast()) })
        });
        let low = |x: u64| _mm512_maskz_set1_epi64(0x55, x as i64);
        let mut counter = _mm512_add_epi64(low(first), _mm512_set_epi64(0, 3, 0, 2, 0, 1, 0, 0));
        let k = _mm512_set1_epi64(k as i64);
        for out in out.as_chunks_mut::<{ 16 * WIDE }>().0 {
            let mut words = [_mm512_setzero_si512(); WIDE];
            for word in &mut words {
                *word = _mm512_xor_si512(counter, keys[0]);
                counter = _mm512_add_epi64(counter, low(4));
            }
            for key in &keys[1..10] {
                for word in &mut words {
                    *word = _mm512_aesenc_epi128(*word, *key);
                }
            }
            for (word, out) in words.iter().zip(out.as_chunks_mut::<16>().0) {
                let word = _mm512_aesenclast_epi128(*word, keys[10]);
                let even = _mm512_srli_epi64(_mm512_mul_epu32(word, k), 32);
                let odd = _mm512_mul_epu32(_mm512_srli_epi64(word, 32), k);
                // SAFETY: sixteen numbers.
                unsafe {
                    _mm512_storeu_si512(out.as_mut_ptr().cast(), _mm512_mask_blend_epi32(0xAAAA, even, odd))
                };
            }
        }
    }

    /// Four lanes, one cache line an entry.
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw")]
    pub(super) unsafe fn fold4(
        rows: Rows<'_>,
        table: &[Block],
        addend: Option<&[Block]>,
        out: &mut [Block],
        next: Rows<'_>,
    ) {
        let (lines, out) = (out.len() / 4, out.as_mut_ptr());
        let addend = addend.map_or(out.cast_const(), |addend| addend.as_ptr());
        for (j, row) in rows.iter().take(lines).enumerate() {
            // SAFETY: line j is four blocks of `out` and of the addend, which is as long or `out` itself;
            // every index is below k, and the table has k entries of four blocks.
            unsafe {
                let entry = |i: usize| _mm512_loadu_si512(table.as_ptr().add(row[i] as usize * 4).cast());
                let mut a = _mm512_loadu_si512(addend.add(4 * j).cast());
                let mut b = entry(0);
                a = _mm512_ternarylogic_epi64(a, entry(1), entry(2), 0x96);
                b = _mm512_ternarylogic_epi64(b, entry(3), entry(4), 0x96);
                a = _mm512_ternarylogic_epi64(a, entry(5), entry(6), 0x96);
                b = _mm512_ternarylogic_epi64(b, entry(7), entry(8), 0x96);
                a = _mm512_ternarylogic_epi64(a, b, entry(9), 0x96);
                _mm512_storeu_si512(out.add(4 * j).cast(), a);
            }
            if let Some(next) = next.get(j) {
                ask(table, 4, next);
            }
        }
    }

    /// One lane, 16 bytes an entry.
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw")]
    pub(super) unsafe fn fold1(
        rows: Rows<'_>,
        table: &[Block],
        addend: Option<&[Block]>,
        out: &mut [Block],
        next: Rows<'_>,
    ) {
        let (len, out) = (out.len(), out.as_mut_ptr());
        let addend = addend.map_or(out.cast_const(), |addend| addend.as_ptr());
        for (j, row) in rows.iter().take(len).enumerate() {
            // SAFETY: j is an index of `out` and of the addend, which is as long or `out` itself; every index
            // is below k, the table's length; blocks are 16-byte aligned.
            unsafe {
                let entry = |i: usize| _mm_load_si128(table.as_ptr().add(row[i] as usize).cast());
                let mut a = _mm_load_si128(addend.add(j).cast());
                let mut b = entry(0);
                a = _mm_ternarylogic_epi64(a, entry(1), entry(2), 0x96);
                b = _mm_ternarylogic_epi64(b, entry(3), entry(4), 0x96);
                a = _mm_ternarylogic_epi64(a, entry(5), entry(6), 0x96);
                b = _mm_ternarylogic_epi64(b, entry(7), entry(8), 0x96);
                a = _mm_ternarylogic_epi64(a, b, entry(9), 0x96);
                _mm_store_si128(out.add(j).cast(), a);
            }
            if let Some(next) = next.get(j) {
                ask(table, 1, next);
            }
        }
    }
}
