//! Half-gates (Zahur, Rosulek and Evans, 2014/756) on many AND gates at once, hashed with MITCCRH, straight
//! on a table of labels, with the XOR gates between them.
//!
//! Labels of slot s stand at `s · lanes + copy`, a copy a start point. Gate number g of a copy with start
//! point S hashes its first operand's labels under the key S ⊕ 2g and the second's under S ⊕ (2g + 1). With
//! one copy the AND gates of a call fill the vectors, and must be independent; with several the copies do,
//! gate by gate.

#[cfg(target_arch = "x86_64")]
use super::halfgates_x86 as x86;
use super::{Backend, dispatch, halfgates_portable as portable};
use crate::Block;

pub use super::gates::{Gates, Op, Step};

/// Garbles `gates`: from the operands' zero-labels to the results', and the two ciphertexts an AND gate and
/// copy, gate by gate.
///
/// Panics when lengths differ or a slot has no label.
pub fn garble(
    backend: Backend,
    gates: Gates<'_>,
    starts: &[Block],
    deltas: &[Block],
    labels: &mut [Block],
    tables: &mut [[Block; 2]],
) {
    let lanes = starts.len();
    assert!(
        deltas.len() == lanes && tables.len() == gates.ands() * lanes,
        "a Δ a copy, a table a gate and copy"
    );
    dispatch!(backend, garble(gates, starts, deltas, labels, tables))
}

/// Evaluates `gates`: from the operands' labels and the ciphertexts to the results' labels.
///
/// Panics when lengths differ or a slot has no label.
pub fn evaluate(
    backend: Backend,
    gates: Gates<'_>,
    starts: &[Block],
    labels: &mut [Block],
    tables: &[[Block; 2]],
) {
    assert!(tables.len() == gates.ands() * starts.len(), "a table a gate and copy");
    dispatch!(backend, evaluate(gates, starts, labels, tables))
}

/// Adds to row r of `out` row `picks[r]` of `rows`; rows have `lanes` labels.
///
/// Panics when a row is missing.
pub fn xor_picked(backend: Backend, lanes: usize, rows: &[Block], picks: &[u8], out: &mut [Block]) {
    let most = picks.iter().max().map_or(0, |&pick| usize::from(pick) + 1);
    assert!(out.len() == picks.len() * lanes && most * lanes <= rows.len(), "a row for every pick");
    dispatch!(backend, xor_picked(lanes, rows, picks, out))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Prg;
    use crate::hash::Mitccrh;
    use crate::simd::CASES;

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
    fn random_gates(n: usize, prg: &mut Prg) -> (Vec<Op>, usize) {
        let inputs = 5;
        let mut slot = || prg.below(inputs as u64) as u32;
        let ops = (0..n).map(|i| Op { a: slot(), b: slot(), out: (inputs + i) as u32 }).collect();
        (ops, inputs + n)
    }

    #[test]
    fn every_backend_garbles_as_the_paper_and_evaluates_all_four_rows() {
        let mut prg = Prg::from_seed(Block::new(1));
        for (lanes, n) in
            [(1, 1), (1, 0), (1, 2), (1, 3), (1, 4), (1, 5), (1, 7), (1, 8), (1, 9), (1, 15), (1, 67)]
                .into_iter()
                .chain((2..=20).chain([40, 47]).map(|lanes| (lanes, 3)))
                .take(CASES)
        {
            let (ops, slots) = random_gates(n, &mut prg);
            let steps = [Step { xors: 0, ands: n as u32 }];
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
                let gates = Gates { steps: &steps, ops: &ops, first };
                garble(backend, gates, &starts, &deltas, &mut labels, &mut tables);
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
                    evaluate(backend, gates, &starts, &mut held, &tables);
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
        for lanes in (1..=20).chain([40]).take(CASES) {
            let mut before = vec![Block::ZERO; 6 * lanes];
            prg.fill_blocks(&mut before);
            let ops =
                [(0, 1, 2), (2, 1, 3), (3, 3, 4), (2, 3, 5), (5, 1, 2)].map(|(a, b, out)| Op { a, b, out });
            for backend in Backend::available() {
                let mut labels = before.clone();
                let gates = Gates { steps: &[Step { xors: 5, ands: 0 }], ops: &ops, first: 0 };
                evaluate(backend, gates, &before[..lanes], &mut labels, &[]);
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
        for lanes in (1..=20).chain([40]).take(CASES) {
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

    /// One gate among three slots of two copies, which kernel `backend` must refuse.
    fn refused(op: Op, backend: Backend) -> bool {
        let gates = Gates { steps: &[Step { xors: 0, ands: 1 }], ops: &[op], first: 0 };
        let (starts, mut labels, tables) = ([Block::ZERO; 2], [Block::ZERO; 6], [[Block::ZERO; 2]; 2]);
        std::panic::catch_unwind(move || evaluate(backend, gates, &starts, &mut labels, &tables)).is_err()
    }

    #[test]
    fn slots_past_the_end_and_results_over_operands_are_refused() {
        for backend in Backend::available() {
            assert!(!refused(Op { a: 0, b: 1, out: 2 }, backend));
            for (a, b, out) in [(0, 1, 3), (0, 3, 2), (3, 0, 2), (u32::MAX, 0, 1), (0, 1, 1), (2, 1, 2)] {
                assert!(refused(Op { a, b, out }, backend), "{} {a} {b} {out}", backend.name());
            }
        }
    }
}
