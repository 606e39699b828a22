//! A local linear code over GF(2): each output of a long vector adds ten entries of a short one.
//!
//! This is the map A of primal LPN, drawn from a public seed: row `i` has ten indices below k (with
//! repetition), cut from AES in counter mode.

use crate::simd::lpn::{FAR, Indices, fold};
use crate::simd::{self, Backend};
use crate::{Block, aes::Aes128};

/// Ones a row (d of the Ferret paper, section 5).
pub const LOCALITY: usize = simd::lpn::LOCALITY;

const ROWS: usize = simd::lpn::ROWS;

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
    /// `lanes` secrets may be interleaved (1 or 4, entry by entry): `secret` has `k * lanes` blocks, `out` a
    /// multiple of `lanes`, and every lane uses the same rows. Which addresses are read depends on public
    /// values alone.
    pub fn add_rows(&self, first_row: u64, secret: &[Block], lanes: usize, out: &mut [Block]) {
        self.rows_on(Backend::active(), first_row, secret, lanes, None, out);
    }

    /// [`add_rows`](Self::add_rows) to `addend`, whatever `out` held:
    /// `out[j] = addend[j] ⊕ (A·secret)[first_row + j]`. Panics when the lengths differ.
    pub fn rows_added_to(
        &self,
        first_row: u64,
        secret: &[Block],
        lanes: usize,
        addend: &[Block],
        out: &mut [Block],
    ) {
        self.rows_on(Backend::active(), first_row, secret, lanes, Some(addend), out);
    }

    /// [`rows_added_to`](Self::rows_added_to), or [`add_rows`](Self::add_rows), on a backend of the caller's
    /// choice.
    #[doc(hidden)]
    pub fn rows_on(
        &self,
        backend: Backend,
        first_row: u64,
        secret: &[Block],
        lanes: usize,
        mut addend: Option<&[Block]>,
        out: &mut [Block],
    ) {
        assert!(
            secret.len() == self.k as usize * lanes
                && out.len().is_multiple_of(lanes)
                && addend.is_none_or(|addend| addend.len() == out.len()),
            "shapes do not match"
        );
        let far = size_of_val(secret) > FAR;
        let (mut row, mut rest) = (first_row, out);
        let (mut now, mut next) = (&mut Indices::new(self.k), &mut Indices::new(self.k));
        self.indices(backend, row / 2, next);
        if far {
            next.ask(secret, lanes);
        }
        while !rest.is_empty() {
            core::mem::swap(&mut now, &mut next);
            let skip = (row % 2) as usize;
            let rows = (ROWS - skip).min(rest.len() / lanes);
            let (out, later) = rest.split_at_mut(rows * lanes);
            let added = addend.as_mut().and_then(|addend| addend.split_off(..out.len()));
            row += rows as u64;
            rest = later;
            if !rest.is_empty() {
                self.indices(backend, row / 2, next);
            }
            let ahead = (far && !rest.is_empty()).then_some(&*next);
            fold(backend, now, skip, secret, lanes, added, out, ahead);
        }
    }

    /// The ten indices of one row, for tests against a naive product.
    pub fn row(&self, row: u64) -> [u32; LOCALITY] {
        let mut indices = Indices::new(self.k);
        self.indices(Backend::active(), row / 2, &mut indices);
        indices.row((row % 2) as usize)
    }

    /// Two rows take twenty 32-bit words, five AES blocks.
    fn indices(&self, backend: Backend, pair: u64, out: &mut Indices) {
        out.draw(backend, self.cipher.round_keys(), 5 * pair);
    }
}
