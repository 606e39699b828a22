//! Half-gates (Zahur, Rosulek and Evans, 2014/756) on many AND gates at once, hashed with MITCCRH, straight on a table of
//! labels; and XOR gates on many copies.
//!
//! Labels of slot s stand at `s · lanes + copy`, a copy a start point. Gate number g of a copy with start point S hashes its first
//! operand's labels under the key S ⊕ 2g and the second's under S ⊕ (2g + 1). With one copy the AND gates of a call fill the
//! vectors, and must be independent; with several the copies do, gate by gate.

use super::{Backend, dispatch};
use crate::Block;

/// One operation on slots: `out = a ⊕ b` or `out = a ∧ b`. `out` is never one of `a` and `b`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Op {
    /// Slot of the first operand.
    pub a: u32,
    /// Slot of the second operand.
    pub b: u32,
    /// Slot of the result.
    pub out: u32,
}

impl Op {
    /// Whether all slots are among the first `slots` and the result is none of the operands.
    #[inline(always)]
    fn fits(&self, slots: usize) -> bool {
        let [a, b, out] = [self.a, self.b, self.out].map(|slot| slot as usize);
        (a < slots) & (b < slots) & (out < slots) & (out != a) & (out != b)
    }
}

/// Panics unless the labels are whole slots and every operation fits them.
fn check(ops: &[Op], lanes: usize, labels: &[Block]) {
    assert!(lanes > 0 && labels.len().is_multiple_of(lanes), "a label for every slot and copy");
    let slots = labels.len() / lanes;
    assert!(ops.iter().fold(true, |fit, op| fit & op.fits(slots)), "slots without labels");
}

/// Garbles the AND gates `ops`, numbered from `first` on: from the operands' zero-labels to the results' and the two ciphertexts
/// a gate and copy, gate by gate.
///
/// Panics when lengths differ or a slot has no label.
pub fn garble(
    backend: Backend,
    ops: &[Op],
    first: u64,
    starts: &[Block],
    deltas: &[Block],
    labels: &mut [Block],
    tables: &mut [[Block; 2]],
) {
    let lanes = starts.len();
    check(ops, lanes, labels);
    assert!(
        deltas.len() == lanes && tables.len() == ops.len() * lanes,
        "a Δ a copy, a table a gate and copy"
    );
    dispatch!(backend, halfgates_portable, halfgates_x86, garble(ops, first, starts, deltas, labels, tables))
}

/// Evaluates the AND gates `ops`, numbered from `first` on: from the operands' labels and the ciphertexts to the results' labels.
///
/// Panics when lengths differ or a slot has no label.
pub fn evaluate(
    backend: Backend,
    ops: &[Op],
    first: u64,
    starts: &[Block],
    labels: &mut [Block],
    tables: &[[Block; 2]],
) {
    let lanes = starts.len();
    check(ops, lanes, labels);
    assert!(tables.len() == ops.len() * lanes, "a table a gate and copy");
    dispatch!(backend, halfgates_portable, halfgates_x86, evaluate(ops, first, starts, labels, tables))
}

/// The XOR gates `ops` one after the other, in every one of `lanes` copies.
///
/// Panics when a slot has no label.
pub fn xor(backend: Backend, ops: &[Op], lanes: usize, labels: &mut [Block]) {
    check(ops, lanes, labels);
    dispatch!(backend, halfgates_portable, halfgates_x86, xor(ops, lanes, labels))
}

/// Adds to row r of `out` row `picks[r]` of `rows`; rows have `lanes` labels.
///
/// Panics when a row is missing.
pub fn xor_picked(backend: Backend, lanes: usize, rows: &[Block], picks: &[u8], out: &mut [Block]) {
    let most = picks.iter().max().map_or(0, |&pick| usize::from(pick) + 1);
    assert!(out.len() == picks.len() * lanes && most * lanes <= rows.len(), "a row for every pick");
    dispatch!(backend, halfgates_portable, halfgates_x86, xor_picked(lanes, rows, picks, out))
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

    /// Inputs in the first slots, in a random order, and a result of every gate behind them.
    fn gates(n: usize, prg: &mut Prg) -> (Vec<Op>, usize) {
        let inputs = 5;
        let mut slot = || prg.below(inputs as u64) as u32;
        let ops = (0..n).map(|i| Op { a: slot(), b: slot(), out: (inputs + i) as u32 }).collect();
        (ops, inputs + n)
    }

    #[test]
    fn every_backend_garbles_as_the_paper_and_evaluates_all_four_rows() {
        let mut prg = Prg::from_seed(Block::new(1));
        for (lanes, n) in
            [(1, 0), (1, 1), (1, 2), (1, 3), (1, 4), (1, 5), (1, 7), (1, 8), (1, 9), (1, 15), (1, 67)]
                .into_iter()
                .chain((2..=20).chain([40, 47]).map(|lanes| (lanes, 3)))
        {
            let (ops, slots) = gates(n, &mut prg);
            let mut random = |n: usize| {
                let mut blocks = vec![Block::ZERO; n];
                prg.fill_blocks(&mut blocks);
                blocks
            };
            let (starts, before, first) = (random(lanes), random(slots * lanes), 1_000_000_007);
            let deltas: Vec<Block> = random(lanes).iter().map(|d| d.with_lsb(true)).collect();
            for backend in Backend::available() {
                let name = backend.name();
                let (mut labels, mut tables) = (before.clone(), vec![[Block::ZERO; 2]; n * lanes]);
                garble(backend, &ops, first, &starts, &deltas, &mut labels, &mut tables);
                for (g, op) in ops.iter().enumerate() {
                    for l in 0..lanes {
                        let [a, b, out] = [op.a, op.b, op.out].map(|slot| labels[slot as usize * lanes + l]);
                        let expected = reference(starts[l], first + g as u64, deltas[l], a, b);
                        assert!(
                            (out, tables[g * lanes + l]) == expected,
                            "{name} gate {g} copy {l} of {lanes}"
                        );
                    }
                }
                for values in 0..32u32 {
                    let active = |slot: usize, bit: bool| -> Vec<Block> {
                        let zero = labels[slot * lanes..][..lanes].iter().zip(&deltas);
                        zero.map(|(&l, &d)| l ^ (d & Block::mask(bit))).collect()
                    };
                    let value = |slot: u32| values >> slot & 1 == 1;
                    let mut held = before.clone();
                    (0..5).for_each(|s| {
                        held[s * lanes..][..lanes].copy_from_slice(&active(s, value(s as u32)))
                    });
                    evaluate(backend, &ops, first, &starts, &mut held, &tables);
                    for op in &ops {
                        let expected = active(op.out as usize, value(op.a) & value(op.b));
                        assert!(
                            held[op.out as usize * lanes..][..lanes] == expected,
                            "{name} {op:?} of {lanes}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn xors_see_the_results_before_them() {
        let mut prg = Prg::from_seed(Block::new(2));
        for lanes in (1..=20).chain([40]) {
            let mut before = vec![Block::ZERO; 6 * lanes];
            prg.fill_blocks(&mut before);
            let ops =
                [(0, 1, 2), (2, 1, 3), (3, 3, 4), (2, 3, 5), (5, 1, 2)].map(|(a, b, out)| Op { a, b, out });
            for backend in Backend::available() {
                let mut labels = before.clone();
                xor(backend, &ops, lanes, &mut labels);
                for l in 0..lanes {
                    let mut expected: Vec<Block> = (0..6).map(|s| before[s * lanes + l]).collect();
                    for op in &ops {
                        expected[op.out as usize] = expected[op.a as usize] ^ expected[op.b as usize];
                    }
                    let found: Vec<Block> = (0..6).map(|s| labels[s * lanes + l]).collect();
                    assert!(found == expected, "{} copy {l} of {lanes}", backend.name());
                }
            }
        }
    }

    #[test]
    fn picked_rows_are_added() {
        let mut prg = Prg::from_seed(Block::new(3));
        for lanes in (1..=20).chain([40]) {
            let (mut rows, mut before) = (vec![Block::ZERO; 4 * lanes], vec![Block::ZERO; 6 * lanes]);
            prg.fill_blocks(&mut rows);
            prg.fill_blocks(&mut before);
            let picks = [3, 0, 2, 2, 1, 0];
            let row = |i: usize| &rows[picks[i / lanes] as usize * lanes..][..lanes];
            let expected: Vec<Block> =
                before.iter().enumerate().map(|(i, &x)| x ^ row(i)[i % lanes]).collect();
            for backend in Backend::available() {
                let mut out = before.clone();
                xor_picked(backend, lanes, &rows, &picks, &mut out);
                assert!(out == expected, "{} of {lanes}", backend.name());
            }
        }
    }

    #[test]
    #[should_panic(expected = "slots without labels")]
    fn slots_past_the_end_are_refused() {
        xor(Backend::best(), &[Op { a: 0, b: 1, out: 2 }], 4, &mut [Block::ZERO; 8]);
    }

    #[test]
    #[should_panic(expected = "slots without labels")]
    fn results_over_operands_are_refused() {
        let starts = [Block::ZERO; 2];
        evaluate(
            Backend::best(),
            &[Op { a: 0, b: 1, out: 1 }],
            0,
            &starts,
            &mut [Block::ZERO; 4],
            &[[Block::ZERO; 2]; 2],
        );
    }
}
