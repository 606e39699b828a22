//! Garbled tables over slow links: P2 regarbles its check copies anyway, so P1 sends only as many combinations of the copies'
//! tables as copies are evaluated.
//!
//! Combination p is Σ_j α_j^p·table_j over GF(2^128) with distinct α_j, so any set of copies as large as the number of combinations
//! follows from the others (Reed–Solomon). For each copy P1 also sends a hash of its tables, before it can know the evaluation set: P2
//! compares it with what it garbled or recovered. A recovered table that misses its hash counts as a failed check, which
//! shows at the end and depends on P1's messages and the evaluation set alone. Merely treating that copy as invalid would not be
//! enough: P1 could spoil the combinations so that, of a set, only a copy it prepared is recovered.

use super::secrets::{Digest, Oracle};
use tacit_crypto::Block;
use tacit_crypto::gf128::{self, ColumnSums};

/// α_j.
fn node(copy: usize) -> Block {
    Block::new(copy as u128 + 1)
}

/// 1, α, …, α^(n−1).
fn powers(alpha: Block, n: usize) -> Vec<Block> {
    let mut out = Vec::with_capacity(n);
    let mut power = Block::ONE;
    for _ in 0..n {
        out.push(power);
        power = gf128::mul(power, alpha);
    }
    out
}

/// 1/a as a^(2^128 − 2).
fn inverse(a: Block) -> Block {
    let mut out = Block::ONE;
    let mut square = a;
    for _ in 1..128 {
        square = gf128::mul(square, square);
        out = gf128::mul(out, square);
    }
    out
}

/// Hashes of some copies' tables.
struct Hashes {
    hashers: Vec<blake3::Hasher>,
    copy: Vec<Block>,
}

impl Hashes {
    fn new(oracle: &Oracle, copies: impl Iterator<Item = usize>) -> Self {
        Hashes { hashers: copies.map(|j| oracle.circuit(j)).collect(), copy: Vec::new() }
    }

    /// Takes in the tables of a piece, gate by gate, in a gate copy by copy.
    fn update(&mut self, tables: &[Block]) {
        let tables = tables.as_chunks::<2>().0;
        let lanes = self.hashers.len();
        for (j, hasher) in self.hashers.iter_mut().enumerate() {
            self.copy.clear();
            self.copy.extend(tables.iter().skip(j).step_by(lanes).flatten());
            hasher.update(Block::as_bytes(&self.copy));
        }
    }

    fn finish(&self) -> Vec<Digest> {
        self.hashers.iter().map(|h| *h.finalize().as_bytes()).collect()
    }
}

/// Columns of one row a ciphertext: from gate by gate, copy by copy, to ciphertext by ciphertext, copy by copy.
fn columns(tables: &[Block], lanes: usize, stride: usize, first: usize, out: &mut [Block]) {
    for (g, gate) in tables.as_chunks::<2>().0.chunks_exact(lanes.max(1)).enumerate() {
        for (j, [one, two]) in gate.iter().enumerate() {
            out[2 * g * stride + first + j] = *one;
            out[(2 * g + 1) * stride + first + j] = *two;
        }
    }
}

/// P1's side.
pub(super) struct Encoder {
    weights: Vec<Vec<Block>>,
    hashes: Hashes,
    columns: Vec<Block>,
}

impl Encoder {
    pub(super) fn new(oracle: &Oracle, copies: usize, evaluated: usize) -> Self {
        let powers: Vec<Vec<Block>> = (0..copies).map(|j| powers(node(j), evaluated)).collect();
        let weights = (0..evaluated).map(|p| powers.iter().map(|row| row[p]).collect()).collect();
        Encoder { weights, hashes: Hashes::new(oracle, 0..copies), columns: Vec::new() }
    }

    /// Calls `send` with each combination of a piece's tables.
    pub(super) fn piece<E>(
        &mut self,
        tables: &[Block],
        mut send: impl FnMut(&mut [Block]) -> Result<(), E>,
    ) -> Result<(), E> {
        let lanes = self.hashes.hashers.len();
        self.hashes.update(tables);
        self.columns.resize(tables.len(), Block::ZERO);
        columns(tables, lanes, lanes, 0, &mut self.columns);
        for weights in &self.weights {
            let mut sums = ColumnSums::new(tables.len() / lanes);
            sums.add(&self.columns, lanes, weights);
            send(&mut sums.finish())?;
        }
        Ok(())
    }

    /// The hashes of all copies' tables.
    pub(super) fn finish(&self) -> Vec<Digest> {
        self.hashes.finish()
    }
}

/// P2's side.
pub(super) struct Decoder {
    /// For each evaluation copy the weights of the combinations, then of the check copies.
    weights: Vec<Vec<Block>>,
    evaluated: Hashes,
    checked: Hashes,
    columns: Vec<Block>,
}

impl Decoder {
    pub(super) fn new(oracle: &Oracle, evaluated: &[usize], checked: &[usize]) -> Self {
        let weights = evaluated
            .iter()
            .map(|&e| {
                // The coefficients of Π (z − α_i)/(α_e − α_i) over the other evaluation copies i.
                let mut polynomial = vec![Block::ONE];
                let mut denominator = Block::ONE;
                for &i in evaluated.iter().filter(|&&i| i != e) {
                    polynomial.push(Block::ZERO);
                    for k in (0..polynomial.len()).rev() {
                        let lower = if k > 0 { polynomial[k - 1] } else { Block::ZERO };
                        polynomial[k] = gf128::mul(polynomial[k], node(i)) ^ lower;
                    }
                    denominator = gf128::mul(denominator, node(e) ^ node(i));
                }
                gf128::scale(&mut polynomial, inverse(denominator));
                let at = |c: &usize| gf128::inner_product(&polynomial, &powers(node(*c), polynomial.len()));
                let checks: Vec<Block> = checked.iter().map(at).collect();
                [polynomial, checks].concat()
            })
            .collect();
        Decoder {
            weights,
            evaluated: Hashes::new(oracle, evaluated.iter().copied()),
            checked: Hashes::new(oracle, checked.iter().copied()),
            columns: Vec::new(),
        }
    }

    /// The evaluation copies' tables of a piece from the combinations and the check copies' tables.
    pub(super) fn piece(&mut self, combinations: &[Block], garbled: &[Block], out: &mut [Block]) {
        let (active, checks) = (self.evaluated.hashers.len(), self.checked.hashers.len());
        let (stride, count) = (active + checks, combinations.len() / active.max(1));
        self.columns.resize(stride * count, Block::ZERO);
        for (p, combination) in combinations.chunks_exact(count.max(1)).enumerate() {
            combination.iter().enumerate().for_each(|(c, block)| self.columns[c * stride + p] = *block);
        }
        columns(garbled, checks, stride, active, &mut self.columns);
        for (e, weights) in self.weights.iter().enumerate() {
            let mut sums = ColumnSums::new(count);
            sums.add(&self.columns, stride, weights);
            for (g, pair) in sums.finish().as_chunks::<2>().0.iter().enumerate() {
                out[2 * (g * active + e)..][..2].copy_from_slice(pair);
            }
        }
        self.evaluated.update(out);
        self.checked.update(garbled);
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
            encoder
                .piece::<()>(&tables, |part| {
                    combinations.extend_from_slice(part);
                    Ok(())
                })
                .unwrap();
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
