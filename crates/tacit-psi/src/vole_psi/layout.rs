//! How the cells of a key are laid out in a text that is sealed.

use super::sealing::{MARK, MAX_SEALED};

/// A matching element and the peer's rows of it.
#[derive(Clone, PartialEq, Eq)]
pub struct Match {
    /// The element, an index into this side's set.
    pub element: u32,
    /// The peer's rows, one unless it gives all of a key; cells in the order asked for, `None` for a null.
    pub rows: Vec<Vec<Option<Vec<u8>>>>,
}

impl core::fmt::Debug for Match {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Match([secret])")
    }
}

/// What a run gave to the side that asked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Received {
    /// Matches by ascending element.
    pub matches: Vec<Match>,
    /// Elements whose tag was among the peer's and whose cells did not open: the peer cheated. They count
    /// as no matches. The peer must not learn this number, for it can make it depend on single elements.
    pub unopened: u64,
}

impl Received {
    pub(super) fn none() -> Self {
        Received { matches: Vec::new(), unopened: 0 }
    }
}

/// How the cells of a key are laid out, the same for all keys.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Layout {
    pub(super) widths: Vec<usize>,
    pub(super) rows: usize,
}

impl Layout {
    /// Bytes of a row: whether there is one, and each cell's length and bytes.
    pub(super) fn row(&self) -> usize {
        1 + self.widths.iter().map(|width| 4 + width).sum::<usize>()
    }

    /// Bytes of a ciphertext with its mark.
    pub(super) fn sealed(&self) -> usize {
        self.rows * self.row() + MARK
    }

    pub(super) fn is_too_large(&self) -> bool {
        let row = self.widths.iter().try_fold(1usize, |sum, width| sum.checked_add(width.checked_add(4)?));
        let sealed = row.and_then(|row| row.checked_mul(self.rows));
        sealed.is_none_or(|sealed| sealed > MAX_SEALED - MARK)
    }

    /// Writes the cells of `rows` into `out`, zeros behind each; `cell` gives that of a row and a column.
    pub(super) fn fill<'c>(
        &self,
        cell: impl Fn(u32, usize) -> Option<&'c [u8]>,
        columns: &[usize],
        rows: &[u32],
        out: &mut [u8],
    ) {
        out.fill(0);
        for (row, out) in rows.iter().zip(out.chunks_exact_mut(self.row())) {
            out[0] = 1;
            let mut at = 1;
            for (column, width) in columns.iter().zip(&self.widths) {
                if let Some(cell) = cell(*row, *column) {
                    // One more than the length, as zero stands for a null.
                    out[at..at + 4].copy_from_slice(&(cell.len() as u32 + 1).to_le_bytes());
                    out[at + 4..at + 4 + cell.len()].copy_from_slice(cell);
                }
                at += 4 + width;
            }
        }
    }

    /// Reads what [`fill`](Self::fill) wrote; `None` where it did not.
    pub(super) fn read(&self, plain: &[u8]) -> Option<Vec<Vec<Option<Vec<u8>>>>> {
        let mut rows = Vec::new();
        let mut ended = false;
        for bytes in plain.chunks_exact(self.row()) {
            match bytes[0] {
                1 if !ended => {}
                0 if bytes.iter().all(|byte| *byte == 0) => {
                    ended = true;
                    continue;
                }
                _ => return None,
            }
            let mut cells = Vec::with_capacity(self.widths.len());
            let mut rest = &bytes[1..];
            for width in &self.widths {
                let (length, after) = rest.split_first_chunk::<4>()?;
                let (cell, after) = after.split_at_checked(*width)?;
                rest = after;
                let length = u32::from_le_bytes(*length) as usize;
                let (cell, filling) = cell.split_at_checked(length.saturating_sub(1))?;
                if filling.iter().any(|byte| *byte != 0) {
                    return None;
                }
                cells.push((length > 0).then(|| cell.to_vec()));
            }
            rows.push(cells);
        }
        Some(rows)
    }

    /// Whether [`read`](Self::read) reads this, found out in as many steps whatever it is: 1 or 0.
    pub(super) fn is_rows(&self, plain: &[u8]) -> u8 {
        let not_zero = |byte: u8| (byte | byte.wrapping_neg()) >> 7;
        let (mut wrong, mut ended) = (0, 0);
        for row in plain.chunks_exact(self.row()) {
            let [absent, there] = [1 ^ not_zero(row[0]), 1 ^ not_zero(row[0] ^ 1)];
            wrong |= 1 ^ (absent | there);
            wrong |= there & ended;
            ended |= absent;
            wrong |= absent & not_zero(row.iter().fold(0, |all, byte| all | byte));
            let mut rest = &row[1..];
            for width in &self.widths {
                let (length, after) = rest.split_at(4);
                let (cell, after) = after.split_at(*width);
                rest = after;
                let length = u64::from(u32::from_le_bytes([length[0], length[1], length[2], length[3]]));
                // One more than the length, as zero stands for a null.
                let length = length - u64::from(length > 0);
                wrong |= u8::from(length > *width as u64);
                let past = (0u64..)
                    .zip(cell)
                    .fold(0, |past, (at, byte)| past | (byte & u8::from(at >= length).wrapping_neg()));
                wrong |= not_zero(past);
            }
        }
        1 ^ wrong
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tacit_crypto::{Block, Prg};

    #[test]
    fn what_is_rows_is_what_can_be_read() {
        let mut prg = Prg::from_seed(Block::new(77));
        let layout = Layout { widths: vec![8, 0, 16], rows: 3 };
        let mut read = 0;
        for _ in 0..20_000 {
            let mut plain = vec![0; layout.sealed() - MARK];
            for row in plain.chunks_exact_mut(layout.row()).take(prg.below(4) as usize) {
                row[0] = 1;
                let mut at = 1;
                for width in &layout.widths {
                    let length = prg.below(*width as u64 + 2);
                    row[at] = length as u8;
                    let bytes = (length.saturating_sub(1) as usize).min(*width);
                    prg.fill_bytes(&mut row[at + 4..at + 4 + bytes]);
                    at += 4 + width;
                }
            }
            // Honest texts, and those in which a byte or two differ.
            for _ in 0..prg.below(3) {
                let at = prg.below(plain.len() as u64) as usize;
                plain[at] = [0, 1, 2, 9, 18, 255][prg.below(6) as usize];
            }
            let expected = layout.read(&plain).is_some();
            read += u32::from(expected);
            assert_eq!(layout.is_rows(&plain) == 1, expected, "{plain:?}");
        }
        assert!((6_000..18_000).contains(&read), "{read}");
    }
}
