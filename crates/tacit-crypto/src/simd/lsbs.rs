//! The lowest bits of blocks, packed into words.

use super::Backend;
#[cfg(target_arch = "x86_64")]
use super::Level;
use crate::Block;

/// The lowest bit of each block, 64 blocks a word, lowest first. Panics unless there is a word for every 64.
pub fn pack(backend: Backend, blocks: &[Block], out: &mut [u64]) {
    assert_eq!(blocks.len(), 64 * out.len(), "64 blocks a word");
    match backend.level() {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: this level exists only where AVX-512 was detected.
        Level::Avx512 => unsafe { x86::wide512(blocks, out) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: this level exists only where AVX2 was detected.
        Level::Avx2 => unsafe { x86::wide256(blocks, out) },
        _ => portable(blocks, out),
    }
}

fn portable(blocks: &[Block], out: &mut [u64]) {
    for (word, blocks) in out.iter_mut().zip(blocks.as_chunks::<64>().0) {
        *word = (0..64).fold(0, |packed, i| packed | (blocks[i].low() & 1) << i);
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use crate::Block;
    use core::arch::x86_64::*;

    #[target_feature(enable = "avx2,avx512f,avx512bw,avx512vl,avx512dq")]
    pub(super) fn wide512(blocks: &[Block], out: &mut [u64]) {
        let low_halves = _mm512_setr_epi64(0, 2, 4, 6, 8, 10, 12, 14);
        let one = _mm512_set1_epi64(1);
        for (word, blocks) in out.iter_mut().zip(blocks.as_chunks::<64>().0) {
            *word = 0;
            for (at, eight) in blocks.as_chunks::<8>().0.iter().enumerate() {
                let from = eight.as_ptr().cast::<__m512i>();
                // SAFETY: eight blocks are two vectors, which may lie anywhere.
                let [first, second] = unsafe { [_mm512_loadu_si512(from), _mm512_loadu_si512(from.add(1))] };
                let halves = _mm512_permutex2var_epi64(first, low_halves, second);
                *word |= u64::from(_mm512_test_epi64_mask(halves, one)) << (8 * at);
            }
        }
    }

    #[target_feature(enable = "avx2")]
    pub(super) fn wide256(blocks: &[Block], out: &mut [u64]) {
        for (word, blocks) in out.iter_mut().zip(blocks.as_chunks::<64>().0) {
            *word = 0;
            for (at, four) in blocks.as_chunks::<4>().0.iter().enumerate() {
                let from = four.as_ptr().cast::<__m256i>();
                // SAFETY: four blocks are two vectors, which may lie anywhere.
                let [first, second] = unsafe { [_mm256_loadu_si256(from), _mm256_loadu_si256(from.add(1))] };
                // Low halves of blocks 0, 2, 1, 3, put in order.
                let halves = _mm256_unpacklo_epi64(first, second);
                let halves = _mm256_permute4x64_epi64::<0b11_01_10_00>(halves);
                let signs = _mm256_castsi256_pd(_mm256_slli_epi64::<63>(halves));
                *word |= (_mm256_movemask_pd(signs) as u64) << (4 * at);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Prg;

    #[test]
    fn every_backend_packs_bit_by_bit() {
        let mut prg = Prg::from_seed(Block::new(5));
        for words in [0, 1, 3, 8] {
            let mut blocks = vec![Block::ZERO; 64 * words];
            prg.fill_blocks(&mut blocks);
            for backend in Backend::available() {
                let mut out = vec![u64::MAX; words];
                pack(backend, &blocks, &mut out);
                for (i, block) in blocks.iter().enumerate() {
                    assert_eq!(out[i / 64] >> (i % 64) & 1 == 1, block.lsb(), "{} {i}", backend.name());
                }
            }
        }
    }
}
