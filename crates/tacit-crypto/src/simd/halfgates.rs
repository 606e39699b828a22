//! Half-gates (Zahur, Rosulek and Evans, 2014/756) on many AND gates at once, hashed with MITCCRH.
//!
//! Gate i hashes its first operand's labels under the key `keys[i]` and the second's under `keys[i] ⊕ 1`; callers give
//! `keys[i]` = S ⊕ 2g for the gate's number g. The gates of a call are independent; each has its own key and its own Δ,
//! so they may be gates of one circuit or one gate of many circuits.

use super::{Backend, dispatch};
use crate::Block;

/// Garbles: from the operands' zero-labels `a`, `b` to the results' zero-labels `out` and the two ciphertexts a gate.
///
/// Panics when the lengths differ.
pub fn garble(
    backend: Backend,
    keys: &[Block],
    deltas: &[Block],
    a: &[Block],
    b: &[Block],
    out: &mut [Block],
    tables: &mut [[Block; 2]],
) {
    let n = keys.len();
    let same = [deltas.len(), a.len(), b.len(), out.len(), tables.len()].iter().all(|&len| len == n);
    assert!(same, "every gate has a key, a Δ, two operands, a result and a table");
    dispatch!(backend, halfgates_portable, halfgates_x86, garble(keys, deltas, a, b, out, tables))
}

/// Evaluates: from the operands' labels `a`, `b` and the ciphertexts to the results' labels `out`.
///
/// Panics when the lengths differ.
pub fn evaluate(
    backend: Backend,
    keys: &[Block],
    a: &[Block],
    b: &[Block],
    tables: &[[Block; 2]],
    out: &mut [Block],
) {
    let n = keys.len();
    let same = [a.len(), b.len(), out.len(), tables.len()].iter().all(|&len| len == n);
    assert!(same, "every gate has a key, two operands, a result and a table");
    dispatch!(backend, halfgates_portable, halfgates_x86, evaluate(keys, a, b, tables, out))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Prg;
    use crate::hash::Mitccrh;

    /// The paper's figure, gate by gate, over the public hash.
    fn reference(start: Block, gate: u64, delta: Block, a: Block, b: Block) -> (Block, [Block; 2]) {
        let hash = Mitccrh::new(start);
        let (ha0, ha1) = (hash.hash(2 * gate, a), hash.hash(2 * gate, a ^ delta));
        let (hb0, hb1) = (hash.hash(2 * gate + 1, b), hash.hash(2 * gate + 1, b ^ delta));
        let tg = ha0 ^ ha1 ^ (delta & Block::mask(b.lsb()));
        let te = hb0 ^ hb1 ^ a;
        let wg = ha0 ^ (tg & Block::mask(a.lsb()));
        let we = hb0 ^ ((te ^ a) & Block::mask(b.lsb()));
        (wg ^ we, [tg, te])
    }

    #[test]
    fn every_backend_garbles_as_the_paper_and_evaluates_all_four_rows() {
        for backend in Backend::available() {
            for n in [0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 40, 67] {
                let mut prg = Prg::from_seed(Block::new(n as u128));
                let mut random = || {
                    let mut blocks = vec![Block::ZERO; n];
                    prg.fill_blocks(&mut blocks);
                    blocks
                };
                let (starts, a, b) = (random(), random(), random());
                let deltas: Vec<Block> = random().iter().map(|d| d.with_lsb(true)).collect();
                let gate = |i: usize| 1_000_000_007 * i as u64;
                let keys: Vec<Block> =
                    (0..n).map(|i| starts[i] ^ Block::new(2 * u128::from(gate(i)))).collect();
                let (mut out, mut tables) = (random(), vec![[Block::ZERO; 2]; n]);
                garble(backend, &keys, &deltas, &a, &b, &mut out, &mut tables);
                for i in 0..n {
                    let (label, table) = reference(starts[i], gate(i), deltas[i], a[i], b[i]);
                    assert!(out[i] == label && tables[i] == table, "{} gate {i} of {n}", backend.name());
                }
                for (x, y) in [(false, false), (false, true), (true, false), (true, true)] {
                    let active = |labels: &[Block], bit: bool| -> Vec<Block> {
                        labels.iter().zip(&deltas).map(|(&l, &d)| l ^ (d & Block::mask(bit))).collect()
                    };
                    let mut result = vec![Block::ZERO; n];
                    evaluate(backend, &keys, &active(&a, x), &active(&b, y), &tables, &mut result);
                    assert!(result == active(&out, x & y), "{} {x} and {y}", backend.name());
                }
            }
        }
    }
}
