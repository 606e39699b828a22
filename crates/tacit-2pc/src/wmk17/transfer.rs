//! Garbled tables over slow links: P2 regarbles its check copies anyway, so P1 sends only as many
//! combinations of the copies' tables as copies are evaluated.
//!
//! Combination p is Σ_j α_j^p·table_j over GF(2^8), byte by byte, with distinct α_j, so any set of copies as
//! large as the number of combinations follows from the others (Reed–Solomon). P1 has committed to each
//! copy's tables by a hash before it sends any: P2 compares it with what it garbled or recovered. A recovered
//! table that misses its hash counts as a failed check, which shows at the end and depends on P1's messages
//! and the evaluation set alone: so what is evaluated is what was hashed, and errors in the combinations,
//! however they cancel, only make P2 fail. Merely treating that copy as invalid would not be enough: P1 could
//! spoil the combinations so that, of a set, only a copy it prepared is recovered.

use super::schedule::{Work, note};
use super::secrets::{Digest, Oracle};
use tacit_crypto::Block;
use tacit_crypto::gf256::{self, Matrix};

/// α_j; there are fewer than 255 copies.
fn node(copy: usize) -> u8 {
    copy as u8 + 1
}

/// 1, α, …, α^(n−1).
fn powers(alpha: u8, n: usize) -> Vec<u8> {
    std::iter::successors(Some(1), |power| Some(gf256::mul(*power, alpha))).take(n).collect()
}

/// Hashes of some copies' tables, of which rows hold one pair of blocks a copy.
pub(super) struct Hashes {
    hashers: Vec<blake3::Hasher>,
    columns: Vec<Block>,
}

impl Hashes {
    /// Of the copies for which there is a hasher each.
    pub(super) fn new(hashers: impl Iterator<Item = blake3::Hasher>) -> Self {
        Hashes { hashers: hashers.collect(), columns: Vec::new() }
    }

    /// Of the garbled tables of `copies`.
    pub(super) fn of_circuits(oracle: &Oracle, copies: impl Iterator<Item = usize>) -> Self {
        Hashes::new(copies.map(|j| oracle.circuit(j)))
    }

    /// Takes in rows: gate by gate, in a gate copy by copy. Returns the columns that they make.
    pub(super) fn rows(&mut self, tables: &[Block]) -> &mut [Block] {
        self.arrange(tables);
        let columns = std::mem::take(&mut self.columns);
        self.columns(&columns);
        self.columns = columns;
        &mut self.columns
    }

    /// The columns of rows of which no hash is taken.
    pub(super) fn arrange(&mut self, tables: &[Block]) -> &mut [Block] {
        by_copy(tables, self.hashers.len(), &mut self.columns);
        &mut self.columns
    }

    /// Takes in columns.
    pub(super) fn columns(&mut self, columns: &[Block]) {
        note(Work::Hash, columns.len());
        let columns = columns.chunks(columns.len().checked_div(self.hashers.len()).unwrap_or(0).max(1));
        for (hasher, column) in self.hashers.iter_mut().zip(columns) {
            hasher.update(Block::as_bytes(tables_of(column)));
        }
    }

    pub(super) fn finish(&self) -> Vec<Digest> {
        self.hashers.iter().map(|h| *h.finalize().as_bytes()).collect()
    }
}

/// Blocks behind each column, zeros: with columns of 2^k bytes after each other, all copies' tables of a gate
/// would fight for the same few lines of the cache.
const PAD: usize = 4;

/// Blocks of a column of so many pairs.
pub(super) fn column_length(pairs: usize) -> usize {
    2 * pairs + PAD
}

/// The tables of a column.
pub(super) fn tables_of(column: &[Block]) -> &[Block] {
    &column[..column.len().saturating_sub(PAD)]
}

/// From gate by gate, in a gate copy by copy, to columns: copy by copy.
pub(super) fn by_copy(tables: &[Block], copies: usize, out: &mut Vec<Block>) {
    let tables = tables.as_chunks::<2>().0;
    let stride = column_length(tables.len().checked_div(copies).unwrap_or(0)) / 2;
    out.resize(2 * stride * copies, Block::ZERO);
    let out = out.as_chunks_mut::<2>().0;
    for (g, gate) in tables.chunks_exact(copies.max(1)).enumerate() {
        gate.iter().enumerate().for_each(|(j, table)| out[j * stride + g] = *table);
    }
    // What was there before, if it was longer.
    out.chunks_exact_mut(stride).for_each(|column| column[stride - PAD / 2..].fill([Block::ZERO; 2]));
}

/// The converse of [`by_copy`].
pub(super) fn by_gate(columns: &[Block], copies: usize, out: &mut [Block]) {
    let (columns, out) = (columns.as_chunks::<2>().0, out.as_chunks_mut::<2>().0);
    let stride = columns.len().checked_div(copies).unwrap_or(0);
    for (g, gate) in out.chunks_exact_mut(copies.max(1)).enumerate() {
        gate.iter_mut().enumerate().for_each(|(j, table)| *table = columns[j * stride + g]);
    }
}

/// Takes `first` and `second`, which are all lanes of a row together, out of rows of pairs: `first` to `out`,
/// row after row, `second` to `rest`, which serves every row anew.
///
/// Every line of a row is read, and as many are written, whichever lanes are in which set: which they are
/// shows in no count.
pub(super) fn split(tables: &[Block], first: &[usize], second: &[usize], out: &mut [Block]) {
    note(Work::Move, tables.len());
    let (tables, out) = (tables.as_chunks::<2>().0, out.as_chunks_mut::<2>().0);
    let mut rest = vec![[Block::ZERO; 2]; second.len()];
    let rows = tables.chunks_exact((first.len() + second.len()).max(1));
    for (row, out) in rows.zip(out.chunks_exact_mut(first.len().max(1))) {
        out.iter_mut().zip(first).for_each(|(out, &j)| *out = row[j]);
        rest.iter_mut().zip(second).for_each(|(rest, &j)| *rest = row[j]);
        // So that the copies left out are read all the same.
        std::hint::black_box(&mut rest);
    }
}

/// P1's side.
pub(super) struct Encoder {
    code: Matrix,
    evaluated: usize,
    copies: usize,
    combinations: Vec<Block>,
}

impl Encoder {
    pub(super) fn new(copies: usize, evaluated: usize) -> Self {
        let powers: Vec<Vec<u8>> = (0..copies).map(|j| powers(node(j), evaluated)).collect();
        let entries = (0..evaluated).flat_map(|p| powers.iter().map(move |powers| powers[p])).collect();
        Encoder { code: Matrix::new(evaluated, entries), evaluated, copies, combinations: Vec::new() }
    }

    /// The combinations of a piece's columns, as columns.
    pub(super) fn piece(&mut self, columns: &[Block]) -> &mut [Block] {
        self.combinations.resize(columns.len() / self.copies * self.evaluated, Block::ZERO);
        self.code.apply(columns, &mut self.combinations);
        &mut self.combinations
    }
}

/// P2's side.
pub(super) struct Decoder {
    /// From the combinations and the check copies to the evaluation copies.
    code: Matrix,
    evaluated: Hashes,
    checked: Hashes,
    known: Vec<Block>,
    recovered: Vec<Block>,
}

impl Decoder {
    pub(super) fn new(oracle: &Oracle, evaluated: &[usize], checked: &[usize]) -> Self {
        let row = |&e: &usize| {
            // The coefficients of Π (z − α_i)/(α_e − α_i) over the other evaluation copies i.
            let mut polynomial = vec![1];
            let mut denominator = 1;
            for &i in evaluated.iter().filter(|&&i| i != e) {
                polynomial.push(0);
                for k in (0..polynomial.len()).rev() {
                    let lower = if k > 0 { polynomial[k - 1] } else { 0 };
                    polynomial[k] = gf256::mul(polynomial[k], node(i)) ^ lower;
                }
                denominator = gf256::mul(denominator, node(e) ^ node(i));
            }
            let scale = gf256::inverse(denominator);
            polynomial.iter_mut().for_each(|c| *c = gf256::mul(*c, scale));
            let at = |c: &usize| {
                let powers = powers(node(*c), polynomial.len());
                polynomial.iter().zip(powers).fold(0, |sum, (c, power)| sum ^ gf256::mul(*c, power))
            };
            let checks: Vec<u8> = checked.iter().map(at).collect();
            [polynomial, checks].concat()
        };
        Decoder {
            code: Matrix::new(evaluated.len(), evaluated.iter().flat_map(row).collect()),
            evaluated: Hashes::of_circuits(oracle, evaluated.iter().copied()),
            checked: Hashes::of_circuits(oracle, checked.iter().copied()),
            known: Vec::new(),
            recovered: Vec::new(),
        }
    }

    /// The evaluation copies' tables of a piece from the combinations, one after the other, and the check
    /// copies' tables.
    pub(super) fn piece(&mut self, combinations: &[Block], garbled: &[Block], out: &mut [Block]) {
        note(Work::Move, combinations.len() + garbled.len() + out.len());
        let active = self.evaluated.hashers.len();
        let length = combinations.len().checked_div(active).unwrap_or(0);
        self.known.clear();
        for combination in combinations.chunks_exact(length.max(1)) {
            self.known.extend_from_slice(combination);
            self.known.extend_from_slice(&[Block::ZERO; PAD]);
        }
        self.known.extend_from_slice(self.checked.rows(garbled));
        self.recovered.resize((length + PAD) * active, Block::ZERO);
        self.code.apply(&self.known, &mut self.recovered);
        self.evaluated.columns(&self.recovered);
        by_gate(&self.recovered, active, out);
    }

    /// The hashes of the evaluation copies' tables, and of the check copies'.
    pub(super) fn finish(&self) -> (Vec<Digest>, Vec<Digest>) {
        (self.evaluated.finish(), self.checked.finish())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tacit_crypto::Prg;

    #[test]
    fn any_evaluation_set_is_recovered() {
        let mut prg = Prg::from_seed(Block::new(1));
        let oracle = Oracle::new([1; 32]);
        for (copies, active) in [(2, 1), (6, 3), (44, 22), (47, 16)] {
            let gates = 5;
            let mut tables = vec![Block::ZERO; 2 * gates * copies];
            prg.fill_blocks(&mut tables);
            let mut hashes = Hashes::of_circuits(&oracle, 0..copies);
            let mut encoder = Encoder::new(copies, active);
            let columns = encoder.piece(hashes.rows(&tables)).chunks_exact(column_length(gates));
            let combinations: Vec<Block> = columns.flat_map(tables_of).copied().collect();
            assert_eq!(combinations.len(), 2 * gates * active);
            for _ in 0..4 {
                let set =
                    super::super::Copies { total: copies, evaluated: active, coded: true }.draw(&mut prg);
                let (evaluated, checked): (Vec<usize>, Vec<usize>) = (0..copies).partition(|&j| set.get(j));
                assert_eq!(evaluated.len(), active);
                let take = |lanes: &[usize]| -> Vec<Block> {
                    let pairs = tables.as_chunks::<2>().0;
                    pairs.chunks_exact(copies).flat_map(|row| lanes.iter().flat_map(|&j| row[j])).collect()
                };
                let mut decoder = Decoder::new(&oracle, &evaluated, &checked);
                let mut out = vec![Block::ZERO; 2 * gates * active];
                decoder.piece(&combinations, &take(&checked), &mut out);
                assert!(out == take(&evaluated));
                let (all, (e, c)) = (hashes.finish(), decoder.finish());
                assert!(
                    evaluated.iter().zip(&e).chain(checked.iter().zip(&c)).all(|(&j, hash)| all[j] == *hash)
                );
            }
        }
    }
}
