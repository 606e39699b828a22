//! GF(2^8) = GF(2)\[x\]/(x^8 + x^4 + x^3 + x + 1), on bytes, and matrices over it.
//!
//! ```
//! use tacit_crypto::gf256;
//! assert_eq!(gf256::mul(0x57, 0x83), 0xc1);
//! assert_eq!(gf256::mul(0x57, gf256::inverse(0x57)), 1);
//! ```

use crate::Block;
use crate::simd::{self, Backend};
use zeroize::{Zeroize, ZeroizeOnDrop};

/// The product of `a` and `b`, in constant time.
pub const fn mul(a: u8, b: u8) -> u8 {
    let (mut product, mut power, mut i) = (0, a, 0);
    while i < 8 {
        product ^= power & (b >> i & 1).wrapping_neg();
        power = (power << 1) ^ ((power >> 7) * 0x1b);
        i += 1;
    }
    product
}

/// 1/a as a^254, in constant time; 0 for 0.
pub fn inverse(a: u8) -> u8 {
    let (mut out, mut power) = (1, a);
    for _ in 1..8 {
        power = mul(power, power);
        out = mul(out, power);
    }
    out
}

/// A matrix that takes rows of blocks to rows of blocks, byte by byte. Its entries may be secret.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct Matrix {
    rows: usize,
    columns: usize,
    entries: Vec<u8>,
    /// Of every entry its products with 0 … 15, then with the multiples of 16.
    tables: Vec<[u8; 32]>,
}

impl core::fmt::Debug for Matrix {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Matrix({} by {}, [secret])", self.rows, self.columns)
    }
}

impl Matrix {
    /// The matrix of so many rows with these entries, row by row. Panics when they do not fill the rows.
    pub fn new(rows: usize, entries: Vec<u8>) -> Self {
        let columns = entries.len().checked_div(rows).unwrap_or(0);
        assert_eq!(rows * columns, entries.len(), "rows of different lengths");
        let table = |&entry: &u8| {
            core::array::from_fn(|i| mul(entry, if i < 16 { i as u8 } else { (i as u8 - 16) << 4 }))
        };
        let tables = entries.iter().map(table).collect();
        Matrix { rows, columns, entries, tables }
    }

    /// `out` = self · `input`: as many rows of blocks as the matrix has, from as many as it has columns, of
    /// one length, one after the other. Panics when the lengths do not fit.
    pub fn apply(&self, input: &[Block], out: &mut [Block]) {
        self.apply_on(Backend::active(), input, out);
    }

    /// [`apply`](Self::apply) on `backend`.
    pub(crate) fn apply_on(&self, backend: Backend, input: &[Block], out: &mut [Block]) {
        let Matrix { rows, columns, ref entries, ref tables } = *self;
        simd::gf256::apply(backend, simd::gf256::Table { rows, columns, entries, tables }, input, out);
    }
}
