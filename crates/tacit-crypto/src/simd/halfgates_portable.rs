//! Half-gates in plain Rust.

use super::aes_portable::{rekeyed, sigma};
use super::gates::{Gates, Op};
use crate::Block;
use zeroize::Zeroize;

/// Gates handled at once.
const GATES: usize = 8;

/// Hashes the operands of each gate in `inputs` under the gate's keys: half of them under the first, half
/// under the second.
fn hash<const BLOCKS: usize>(keys: &[Block], inputs: &mut [[Block; BLOCKS]]) {
    let mut wide_keys = [[Block::ZERO; BLOCKS]; GATES];
    let mut wide = [[Block::ZERO; BLOCKS]; GATES];
    for ((key, wide_key), (input, wide)) in
        keys.iter().zip(&mut wide_keys).zip(inputs.iter_mut().zip(&mut wide))
    {
        for j in 0..BLOCKS {
            wide_key[j] = *key ^ Block::new((2 * j / BLOCKS) as u128);
            input[j] = sigma(input[j]);
        }
        *wide = *input;
    }
    let used = BLOCKS * inputs.len();
    rekeyed(&wide_keys.as_flattened()[..used], &mut wide.as_flattened_mut()[..used]);
    for (input, output) in inputs.as_flattened_mut().iter_mut().zip(wide.as_flattened()) {
        *input ^= *output;
    }
    wide.zeroize();
}

/// Calls `each` with up to [`GATES`] gates at a time: their keys, the places of their operands and result,
/// and the first one's table.
fn groups(ops: &[Op], first: u64, starts: &[Block], mut each: impl FnMut(&[Block], &[[usize; 3]], usize)) {
    let lanes = starts.len();
    for from in (0..ops.len() * lanes).step_by(GATES) {
        let end = (ops.len() * lanes).min(from + GATES);
        let (mut keys, mut places) = ([Block::ZERO; GATES], [[0; 3]; GATES]);
        for (i, (key, place)) in (from..end).zip(keys.iter_mut().zip(&mut places)) {
            let (gate, lane) = (i / lanes, i % lanes);
            *key = starts[lane] ^ Block::from_halves(2 * (first + gate as u64), 0);
            let Op { a, b, out } = ops[gate];
            *place = [a, b, out].map(|slot| slot as usize * lanes + lane);
        }
        each(&keys[..end - from], &places[..end - from], from);
    }
}

/// Calls `each` with runs of AND gates that may go together, their first one's number, and the place of its
/// table; does the XORs between.
fn each_run(
    gates: Gates<'_>,
    lanes: usize,
    labels: &mut [Block],
    mut each: impl FnMut(&[Op], u64, usize, &mut [Block]),
) {
    gates.check(lanes, labels);
    let mut done = 0;
    for (xors, ands) in gates.runs() {
        for op in xors {
            let [a, b, out] = [op.a, op.b, op.out].map(|slot| slot as usize * lanes);
            for lane in 0..lanes {
                labels[out + lane] = labels[a + lane] ^ labels[b + lane];
            }
        }
        if !ands.is_empty() {
            each(ands, gates.first + done as u64, done * lanes, labels);
        }
        done += ands.len();
    }
}

pub(super) fn garble(
    gates: Gates<'_>,
    starts: &[Block],
    deltas: &[Block],
    labels: &mut [Block],
    tables: &mut [[Block; 2]],
) {
    each_run(gates, starts.len(), labels, |ops, first, at, labels| {
        garble_ands(ops, first, starts, deltas, labels, &mut tables[at..]);
    });
}

fn garble_ands(
    ops: &[Op],
    first: u64,
    starts: &[Block],
    deltas: &[Block],
    labels: &mut [Block],
    tables: &mut [[Block; 2]],
) {
    groups(ops, first, starts, |keys, places, from| {
        let mut hashes = [[Block::ZERO; 4]; GATES];
        let delta = |i: usize| deltas[(from + i) % deltas.len()];
        for (i, (h, &[a, b, _])) in hashes.iter_mut().zip(places).enumerate() {
            *h = [labels[a], labels[a] ^ delta(i), labels[b], labels[b] ^ delta(i)];
        }
        hash(keys, &mut hashes[..keys.len()]);
        for (i, (h, &[a, b, out])) in hashes.iter().zip(places).enumerate() {
            let (a, b) = (labels[a], labels[b]);
            let te = h[2] ^ h[3] ^ a;
            let tg = h[0] ^ h[1] ^ (delta(i) & Block::mask(b.lsb()));
            let wg = h[0] ^ (tg & Block::mask(a.lsb()));
            let we = h[2] ^ ((h[2] ^ h[3]) & Block::mask(b.lsb()));
            labels[out] = wg ^ we;
            tables[from + i] = [tg, te];
        }
        hashes.zeroize();
    });
}

pub(super) fn evaluate(gates: Gates<'_>, starts: &[Block], labels: &mut [Block], tables: &[[Block; 2]]) {
    each_run(gates, starts.len(), labels, |ops, first, at, labels| {
        evaluate_ands(ops, first, starts, labels, &tables[at..]);
    });
}

fn evaluate_ands(ops: &[Op], first: u64, starts: &[Block], labels: &mut [Block], tables: &[[Block; 2]]) {
    groups(ops, first, starts, |keys, places, from| {
        let mut hashes = [[Block::ZERO; 2]; GATES];
        for (h, &[a, b, _]) in hashes.iter_mut().zip(places) {
            *h = [labels[a], labels[b]];
        }
        hash(keys, &mut hashes[..keys.len()]);
        for (i, (h, &[a, b, out])) in hashes.iter().zip(places).enumerate() {
            let ([tg, te], a, b) = (tables[from + i], labels[a], labels[b]);
            labels[out] = h[0] ^ (tg & Block::mask(a.lsb())) ^ h[1] ^ ((te ^ a) & Block::mask(b.lsb()));
        }
        hashes.zeroize();
    });
}

pub(super) fn xor_picked(lanes: usize, rows: &[Block], picks: &[u8], out: &mut [Block]) {
    for (out, &pick) in out.chunks_exact_mut(lanes).zip(picks) {
        let row = &rows[usize::from(pick) * lanes..][..lanes];
        out.iter_mut().zip(row).for_each(|(out, row)| *out ^= *row);
    }
}
