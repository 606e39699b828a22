//! Half-gates in plain Rust.

use super::aes_portable::rekeyed;
use crate::Block;
use crate::hash::sigma;
use zeroize::Zeroize;

/// Gates handled at once.
const GATES: usize = 8;

/// Hashes each `inputs[j]` under the key of its gate, `per_half` of them under the first key and as many under the second.
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

pub(super) fn garble(
    keys: &[Block],
    deltas: &[Block],
    a: &[Block],
    b: &[Block],
    out: &mut [Block],
    tables: &mut [[Block; 2]],
) {
    for first in (0..keys.len()).step_by(GATES) {
        let end = keys.len().min(first + GATES);
        let mut hashes = [[Block::ZERO; 4]; GATES];
        for (h, i) in hashes.iter_mut().zip(first..end) {
            *h = [a[i], a[i] ^ deltas[i], b[i], b[i] ^ deltas[i]];
        }
        hash(&keys[first..end], &mut hashes[..end - first]);
        for (h, i) in hashes.iter().zip(first..end) {
            let te = h[2] ^ h[3] ^ a[i];
            let tg = h[0] ^ h[1] ^ (deltas[i] & Block::mask(b[i].lsb()));
            let wg = h[0] ^ (tg & Block::mask(a[i].lsb()));
            let we = h[2] ^ ((h[2] ^ h[3]) & Block::mask(b[i].lsb()));
            out[i] = wg ^ we;
            tables[i] = [tg, te];
        }
        hashes.zeroize();
    }
}

pub(super) fn evaluate(keys: &[Block], a: &[Block], b: &[Block], tables: &[[Block; 2]], out: &mut [Block]) {
    for first in (0..keys.len()).step_by(GATES) {
        let end = keys.len().min(first + GATES);
        let mut hashes = [[Block::ZERO; 2]; GATES];
        for (h, i) in hashes.iter_mut().zip(first..end) {
            *h = [a[i], b[i]];
        }
        hash(&keys[first..end], &mut hashes[..end - first]);
        for (h, i) in hashes.iter().zip(first..end) {
            let [tg, te] = tables[i];
            out[i] = h[0] ^ (tg & Block::mask(a[i].lsb())) ^ h[1] ^ ((te ^ a[i]) & Block::mask(b[i].lsb()));
        }
        hashes.zeroize();
    }
}
