//! ρ-probe-resistant encodings of P2's input, in chunks (section 4.1 of the paper).
//!
//! A chunk of k bits y is carried by w + k random bits y' = (a ‖ b) with y = M·a ⊕ b, M a random k × w
//! matrix. The XOR of any i of the k rows of [M ‖ I] has weight at least i from the identity, so M has only
//! to add ρ − i. [`width`] is the least w for which the union bound over all sets of rows leaves a bad matrix
//! with a chance of at most 2^-ρ. The matrix of a size is fixed once for all by a public seed; nobody chooses
//! it. `tools/probe-matrix` computes the same bound in exact arithmetic.

use std::sync::Arc;
use tacit_crypto::simd::{Backend, halfgates};
use tacit_crypto::{BitVec, Block, Prg, RHO};

/// The chunk size that the paper found to be the best, with as many random columns as rows.
const CHUNK: usize = 232;
/// A guess of the evaluated copies and labels spoilt in them add up. So many bits more for the labels keep both, and the
/// chance of a bad matrix, below what is promised for either.
pub const LABEL_MARGIN: usize = 4;

/// The chance, at most, that a random matrix of `k` rows and `w` columns, beside the identity, is not ρ-probe
/// resistant.
pub fn failure(k: usize, w: usize, rho: usize) -> f64 {
    // below[t] = Pr[Bin(w, 1/2) ≤ t]
    let mut term = 0.5f64.powi(w as i32);
    let mut below = vec![0f64; rho];
    let mut sum = 0.0;
    for (t, slot) in below.iter_mut().enumerate() {
        sum += term;
        *slot = sum;
        term = if t < w { term * (w - t) as f64 / (t + 1) as f64 } else { 0.0 };
    }
    let (mut sets, mut total) = (1f64, 0.0);
    for i in 1..rho.min(k + 1) {
        sets = sets * (k + 1 - i) as f64 / i as f64;
        total += sets * below[rho - 1 - i];
    }
    total
}

/// The least number of random columns for `k` rows at which [`failure`] is at most 2^-ρ.
pub fn width(k: usize, rho: usize) -> usize {
    // proof: wmk17 3.4
    let bound = 0.5f64.powi(rho as i32);
    let (mut low, mut high) = (0, 8 * rho + 2 * k);
    while low < high {
        let middle = (low + high) / 2;
        if failure(k, middle, rho) <= bound { high = middle } else { low = middle + 1 }
    }
    low
}

/// One chunk: its rows' random columns, packed.
struct Chunk {
    rows: Vec<BitVec>,
    width: usize,
    /// For each group of columns, row after row, which of the group's columns the row has.
    picks: Vec<u8>,
}

impl Chunk {
    fn new(k: usize, rho: usize) -> Chunk {
        let width = width(k, rho);
        let rows = random_rows(k, width);
        let pick = |row: &BitVec, first: usize| {
            (first..width.min(first + GROUP)).fold(0, |pick, c| pick | (row.get(c) as u8) << (c - first))
        };
        let picks = (0..width)
            .step_by(GROUP)
            .flat_map(|first| rows.iter().map(move |row| pick(row, first)))
            .collect();
        Chunk { rows, width, picks }
    }
}

/// The encoding of an input of some length.
pub struct ProbeMatrix {
    chunks: Vec<Arc<Chunk>>,
    inputs: usize,
    encoded: usize,
}

impl ProbeMatrix {
    /// The encoding of `inputs` bits for a session of 40 bits: chunks of nearly equal size, near the paper's 232.
    pub fn new(inputs: usize) -> Self {
        Self::with(inputs, RHO)
    }

    /// As [`new`](Self::new) for a session of so many bits, so ρ is [`LABEL_MARGIN`] more: ρ encoded bits tell nothing but with
    /// chance 2^-ρ of being guessed.
    pub fn with(inputs: usize, bits: usize) -> Self {
        let rho = bits + LABEL_MARGIN;
        let count = if inputs == 0 { 0 } else { ((inputs + CHUNK / 2) / CHUNK).max(1) };
        let mut matrix = ProbeMatrix { chunks: Vec::with_capacity(count), inputs, encoded: 0 };
        for c in 0..count {
            let k = inputs * (c + 1) / count - inputs * c / count;
            let same = matrix.chunks.iter().find(|chunk| chunk.rows.len() == k).cloned();
            let chunk = same.unwrap_or_else(|| Arc::new(Chunk::new(k, rho)));
            matrix.encoded += k + chunk.width;
            matrix.chunks.push(chunk);
        }
        matrix
    }

    /// No encoding at all, to see what it is there for.
    #[cfg(test)]
    pub(super) fn plain(inputs: usize) -> Self {
        let chunk = Chunk { rows: vec![BitVec::zeros(0); inputs], width: 0, picks: Vec::new() };
        ProbeMatrix { chunks: vec![Arc::new(chunk)], inputs, encoded: inputs }
    }

    /// The encoded bits whose sum is bit `input` of the first chunk, its own one first.
    #[cfg(test)]
    pub(super) fn support(&self, input: usize) -> Vec<usize> {
        let chunk = &self.chunks[0];
        let columns = (0..chunk.width).filter(|&c| chunk.rows[input].get(c));
        std::iter::once(chunk.width + input).chain(columns).collect()
    }

    /// Bits of the input.
    pub fn inputs(&self) -> usize {
        self.inputs
    }

    /// Bits m of the encoding.
    pub fn encoded(&self) -> usize {
        self.encoded
    }

    /// A random encoding of `input`. Panics when its length is not [`inputs`](Self::inputs).
    pub fn encode(&self, input: &BitVec, prg: &mut Prg) -> BitVec {
        assert_eq!(input.len(), self.inputs, "an input of another length");
        let mut out = BitVec::random(self.encoded, prg);
        let (mut row, mut at) = (0, 0);
        for chunk in &self.chunks {
            let mut a = BitVec::zeros(chunk.width);
            (0..chunk.width).for_each(|c| a.set(c, out.get(at + c)));
            for (r, columns) in chunk.rows.iter().enumerate() {
                let product =
                    columns.blocks().iter().zip(a.blocks()).fold(Block::ZERO, |s, (m, a)| s ^ (*m & *a));
                let odd = product.to_u128().count_ones() & 1 == 1;
                out.set(at + chunk.width + r, input.get(row + r) ^ odd);
            }
            row += chunk.rows.len();
            at += chunk.width + chunk.rows.len();
        }
        out
    }

    /// The labels of the input's wires from those of the encoding's: XORs of rows of `lanes` labels each.
    ///
    /// `encoded` holds m rows; `out` gets one row an input bit. Panics when the lengths differ.
    pub fn combine(&self, lanes: usize, encoded: &[Block], out: &mut [Block]) {
        assert_eq!((encoded.len(), out.len()), (self.encoded * lanes, self.inputs * lanes), "rows of labels");
        let (mut encoded, mut out) = (encoded, out);
        let mut sums = vec![Block::ZERO; lanes << GROUP];
        for chunk in &self.chunks {
            let (columns, rest) = encoded.split_at(chunk.width * lanes);
            let (identity, rest) = rest.split_at(chunk.rows.len() * lanes);
            let (here, later) = out.split_at_mut(chunk.rows.len() * lanes);
            here.copy_from_slice(identity);
            let groups = columns.chunks(GROUP * lanes).zip(chunk.picks.chunks(chunk.rows.len()));
            for (columns, picks) in groups {
                all_sums(lanes, columns, &mut sums);
                halfgates::xor_picked(Backend::active(), lanes, &sums, picks, here);
            }
            (encoded, out) = (rest, later);
        }
    }
}

/// Columns whose sums are made ahead: 2^GROUP of them a group.
const GROUP: usize = 5;

/// All sums of the rows of `columns`, by the bits of their index.
fn all_sums(lanes: usize, columns: &[Block], sums: &mut [Block]) {
    sums[..lanes].fill(Block::ZERO);
    for (c, column) in columns.chunks_exact(lanes).enumerate() {
        let (known, new) = sums.split_at_mut(lanes << c);
        for (known, new) in known.chunks_exact(lanes).zip(new.chunks_exact_mut(lanes)) {
            new.copy_from_slice(known);
            xor_row(new, column);
        }
    }
}

fn xor_row(out: &mut [Block], row: &[Block]) {
    for (out, row) in out.iter_mut().zip(row) {
        *out ^= *row;
    }
}

fn random_rows(k: usize, w: usize) -> Vec<BitVec> {
    // A public, fixed seed: what the bound speaks of is a matrix that neither party chose.
    let seed = blake3::derive_key(
        "tacit 2026 wmk17 probe matrix v1",
        &[k as u64, w as u64].map(u64::to_le_bytes).concat(),
    );
    let mut prg = Prg::from_seed(Block::from_bytes(seed.first_chunk().copied().unwrap_or_default()));
    (0..k).map(|_| BitVec::random(w, &mut prg)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths_are_those_of_the_exact_tool() {
        // k and w as `python3 tools/probe-matrix/bound.py` prints them.
        for (k, w) in EXACT {
            assert_eq!(width(k, RHO), w, "k = {k}");
        }
        // The paper's choice: k = 232 and c = 2.
        assert!(width(232, RHO) <= 232 && failure(232, 232, RHO) <= 2f64.powi(-40));
        // `bound.py --rho 41` and `--rho 44`.
        for (rho, k, w) in EXACT_SURER {
            assert_eq!(width(k, rho), w, "ρ = {rho}, k = {k}");
        }
    }

    #[test]
    fn an_encoding_decodes_and_labels_follow_it() {
        let mut prg = Prg::from_seed(Block::new(7));
        for n in [0, 1, 2, 31, 128, 256, 347, 348, 500] {
            let matrix = ProbeMatrix::new(n);
            let input = BitVec::random(n, &mut prg);
            let encoded = matrix.encode(&input, &mut prg);
            assert!(n == 0 || encoded != matrix.encode(&input, &mut prg), "encodings are random");
            let lanes = 3;
            let mut zero = vec![Block::ZERO; encoded.len() * lanes];
            prg.fill_blocks(&mut zero);
            let deltas: Vec<Block> = (0..lanes).map(|_| prg.block()).collect();
            let active = |zero: &[Block], bits: &BitVec| -> Vec<Block> {
                let at = |i: usize| zero[i] ^ (deltas[i % lanes] & Block::mask(bits.get(i / lanes)));
                (0..zero.len()).map(at).collect()
            };
            let (mut zeros_out, mut active_out) =
                (vec![Block::ZERO; n * lanes], vec![Block::ZERO; n * lanes]);
            matrix.combine(lanes, &zero, &mut zeros_out);
            matrix.combine(lanes, &active(&zero, &encoded), &mut active_out);
            assert!(active_out == active(&zeros_out, &input), "{n} bits");
        }
    }

    #[test]
    fn xors_of_few_rows_have_the_weight() {
        let weight = |bits: &BitVec| bits.blocks().iter().map(|b| b.to_u128().count_ones()).sum::<u32>();
        let surer = ProbeMatrix::with(8, 44 - LABEL_MARGIN);
        for (i, row) in surer.chunks[0].rows.iter().enumerate() {
            assert!(weight(row) + 1 >= 44, "row {i}");
            for other in &surer.chunks[0].rows[..i] {
                let mut pair = row.clone();
                pair.xor_assign(other);
                assert!(weight(&pair) + 2 >= 44, "row {i} and another");
            }
        }
        let matrix = ProbeMatrix::new(232);
        let rows = &matrix.chunks[0].rows;
        for i in 0..rows.len() {
            assert!(weight(&rows[i]) as usize + 1 >= RHO + LABEL_MARGIN, "row {i}");
            for j in 0..i {
                let mut pair = rows[i].clone();
                pair.xor_assign(&rows[j]);
                assert!(weight(&pair) as usize + 2 >= RHO + LABEL_MARGIN, "rows {i} and {j}");
                for l in (0..j).step_by(29) {
                    let mut triple = pair.clone();
                    triple.xor_assign(&rows[l]);
                    assert!(weight(&triple) as usize + 3 >= RHO + LABEL_MARGIN, "rows {i}, {j} and {l}");
                }
            }
        }
    }

    /// (k, w) by exact arithmetic.
    const EXACT: [(usize, usize); 18] = [
        (1, 166),
        (2, 168),
        (8, 173),
        (32, 184),
        (40, 187),
        (65, 195),
        (80, 200),
        (103, 206),
        (116, 209),
        (128, 211),
        (143, 214),
        (174, 220),
        (200, 225),
        (229, 229),
        (232, 230),
        (256, 233),
        (300, 239),
        (347, 244),
    ];

    /// (ρ, k, w) by exact arithmetic.
    const EXACT_SURER: [(usize, usize, usize); 10] = [
        (41, 1, 170),
        (41, 8, 177),
        (41, 128, 216),
        (41, 232, 235),
        (41, 347, 249),
        (44, 1, 183),
        (44, 8, 190),
        (44, 128, 230),
        (44, 232, 250),
        (44, 347, 265),
    ];
}
