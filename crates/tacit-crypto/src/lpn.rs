//! A local linear code over GF(2): each output of a long vector adds ten entries of a short one.
//!
//! This is the map A of primal LPN, drawn from a public seed: row `i` has ten indices below k (with repetition), cut
//! from AES in counter mode.

use crate::simd::{self, Backend};
use crate::{Block, aes::Aes128};

/// Ones a row (d of the Ferret paper, section 5).
pub const LOCALITY: usize = simd::lpn::LOCALITY;

const ROWS: usize = simd::lpn::ROWS;
// Two rows take twenty 32-bit fields, five AES blocks.
const BLOCKS: usize = ROWS / 2 * 5;

/// A public 10-local matrix with `k` columns and as many rows as are asked for.
#[derive(Clone)]
pub struct LocalCode {
    cipher: Aes128,
    k: u32,
}

impl LocalCode {
    /// The matrix of `seed` with `k` columns. Panics unless 0 < k ≤ 2^31.
    pub fn new(seed: Block, k: usize) -> Self {
        assert!(k > 0 && k <= 1 << 31, "columns out of range");
        LocalCode { cipher: Aes128::new(seed), k: k as u32 }
    }

    /// Number of columns.
    pub fn columns(&self) -> usize {
        self.k as usize
    }

    /// Adds rows `first_row …` of A·`secret` to `out`, in place: `out[j] ^= (A·secret)[first_row + j]`.
    ///
    /// `lanes` secrets may be interleaved (1 or 4, entry by entry): `secret` has `k * lanes` blocks, `out` a multiple
    /// of `lanes`, and every lane uses the same rows. Which addresses are read depends on public values alone.
    pub fn add_rows(&self, first_row: u64, secret: &[Block], lanes: usize, out: &mut [Block]) {
        self.add_rows_on(Backend::active(), first_row, secret, lanes, out);
    }

    /// [`add_rows`](Self::add_rows) on a backend of the caller's choice.
    #[doc(hidden)]
    pub fn add_rows_on(
        &self,
        backend: Backend,
        first_row: u64,
        secret: &[Block],
        lanes: usize,
        out: &mut [Block],
    ) {
        assert!(
            secret.len() == self.k as usize * lanes && out.len().is_multiple_of(lanes),
            "shapes do not match"
        );
        let mut row = first_row;
        let mut rest = out;
        while !rest.is_empty() {
            let skip = (row % 2) as usize;
            let rows = (ROWS - skip).min(rest.len() / lanes);
            let (now, later) = rest.split_at_mut(rows * lanes);
            let words = self.words(backend, row / 2);
            let words: &[u32] = bytemuck::cast_slice(&words);
            simd::lpn::fold(backend, &words[skip * LOCALITY..], self.k, secret, lanes, now);
            row += rows as u64;
            rest = later;
        }
    }

    /// The ten indices of one row, for tests against a naive product.
    pub fn row(&self, row: u64) -> [u32; LOCALITY] {
        let words = self.words(Backend::active(), row / 2);
        let words: &[u32] = bytemuck::cast_slice(&words);
        let start = (row % 2) as usize * LOCALITY;
        core::array::from_fn(|i| simd::lpn::index(words[start + i], self.k))
    }

    fn words(&self, backend: Backend, pair: u64) -> [Block; BLOCKS] {
        let mut blocks = [Block::ZERO; BLOCKS];
        simd::aes::counter(backend, self.cipher.round_keys(), 5 * pair, &mut blocks);
        blocks
    }
}
