//! Garbled tables over slow links: P2 regarbles its check copies anyway, so P1 sends only as many combinations of the copies'
//! tables as copies are evaluated.
//!
//! Combination p is Σ_j α_j^p·table_j over GF(2^8), byte by byte, with distinct α_j, so any set of copies as large as the number of
//! combinations follows from the others (Reed–Solomon). For each copy P1 also sends a hash of its tables, before it can know the
//! evaluation set: P2 compares it with what it garbled or recovered. A recovered table that misses its hash counts as a failed check,
//! which shows at the end and depends on P1's messages and the evaluation set alone: so what is evaluated is what was hashed, and errors in
//! the combinations, however they cancel, only make P2 fail. Merely treating that copy as invalid would not be enough: P1 could
//! spoil the combinations so that, of a set, only a copy it prepared is recovered.

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

/// Hashes of some copies' tables.
struct Hashes(Vec<blake3::Hasher>);

impl Hashes {
    fn new(oracle: &Oracle, copies: impl Iterator<Item = usize>) -> Self {
        Hashes(copies.map(|j| oracle.circuit(j)).collect())
    }

    /// Takes in the tables of a piece, copy by copy.
    fn update(&mut self, tables: &[Block]) {
        let length = tables.len().checked_div(self.0.len()).unwrap_or(0);
        for (hasher, tables) in self.0.iter_mut().zip(tables.chunks(length.max(1))) {
            hasher.update(Block::as_bytes(tables));
        }
    }

    fn finish(&self) -> Vec<Digest> {
        self.0.iter().map(|h| *h.finalize().as_bytes()).collect()
    }
}

/// From gate by gate, in a gate copy by copy, to copy by copy.
fn by_copy(tables: &[Block], copies: usize, out: &mut [Block]) {
    let (tables, out) = (tables.as_chunks::<2>().0, out.as_chunks_mut::<2>().0);
    let gates = tables.len().checked_div(copies).unwrap_or(0);
    for (g, gate) in tables.chunks_exact(copies.max(1)).enumerate() {
        gate.iter().enumerate().for_each(|(j, table)| out[j * gates + g] = *table);
    }
}

/// The converse of [`by_copy`].
fn by_gate(tables: &[Block], copies: usize, out: &mut [Block]) {
    let (tables, out) = (tables.as_chunks::<2>().0, out.as_chunks_mut::<2>().0);
    let gates = tables.len().checked_div(copies).unwrap_or(0);
    for (g, gate) in out.chunks_exact_mut(copies.max(1)).enumerate() {
        gate.iter_mut().enumerate().for_each(|(j, table)| *table = tables[j * gates + g]);
    }
}

/// P1's side.
pub(super) struct Encoder {
    code: Matrix,
    evaluated: usize,
    hashes: Hashes,
    tables: Vec<Block>,
    combinations: Vec<Block>,
}

impl Encoder {
    pub(super) fn new(oracle: &Oracle, copies: usize, evaluated: usize) -> Self {
        let powers: Vec<Vec<u8>> = (0..copies).map(|j| powers(node(j), evaluated)).collect();
        let entries = (0..evaluated).flat_map(|p| powers.iter().map(move |powers| powers[p])).collect();
        Encoder {
            code: Matrix::new(evaluated, entries),
            evaluated,
            hashes: Hashes::new(oracle, 0..copies),
            tables: Vec::new(),
            combinations: Vec::new(),
        }
    }

    /// The combinations of a piece's tables, one after the other.
    pub(super) fn piece(&mut self, tables: &[Block]) -> &mut [Block] {
        let copies = self.hashes.0.len();
        self.tables.resize(tables.len(), Block::ZERO);
        by_copy(tables, copies, &mut self.tables);
        self.hashes.update(&self.tables);
        self.combinations.resize(tables.len() / copies * self.evaluated, Block::ZERO);
        self.code.apply(&self.tables, &mut self.combinations);
        &mut self.combinations
    }

    /// The hashes of all copies' tables.
    pub(super) fn finish(&self) -> Vec<Digest> {
        self.hashes.finish()
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
            evaluated: Hashes::new(oracle, evaluated.iter().copied()),
            checked: Hashes::new(oracle, checked.iter().copied()),
            known: Vec::new(),
            recovered: Vec::new(),
        }
    }

    /// The evaluation copies' tables of a piece from the combinations and the check copies' tables.
    pub(super) fn piece(&mut self, combinations: &[Block], garbled: &[Block], out: &mut [Block]) {
        self.known.resize(combinations.len() + garbled.len(), Block::ZERO);
        self.recovered.resize(out.len(), Block::ZERO);
        let (first, checked) = self.known.split_at_mut(combinations.len());
        first.copy_from_slice(combinations);
        by_copy(garbled, self.checked.0.len(), checked);
        self.checked.update(checked);
        self.code.apply(&self.known, &mut self.recovered);
        self.evaluated.update(&self.recovered);
        by_gate(&self.recovered, self.evaluated.0.len(), out);
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
            let mut encoder = Encoder::new(&oracle, copies, active);
            let mut combinations = Vec::new();
            combinations.extend_from_slice(encoder.piece(&tables));
            assert_eq!(combinations.len(), 2 * gates * active);
            for _ in 0..4 {
                let set = super::super::Copies { total: copies, evaluated: active }.draw(&mut prg);
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
                let (all, (e, c)) = (encoder.finish(), decoder.finish());
                assert!(
                    evaluated.iter().zip(&e).chain(checked.iter().zip(&c)).all(|(&j, hash)| all[j] == *hash)
                );
            }
        }
    }
}
