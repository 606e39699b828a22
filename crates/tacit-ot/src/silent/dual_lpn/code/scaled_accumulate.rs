//! The block-accumulate code over GF(2^128): random public factors before each accumulation and before the
//! fold.
//!
//! The shape is that of [`BlockAccumulate`](crate::silent::code::BlockAccumulate): twice accumulate and
//! permute, then fold one half onto the other by random 32×32 blocks. Factors are what makes it fit for
//! noise with values in GF(2^128). Over a binary matrix the 128 bit-planes of such noise are 128 words of
//! one binary code with errors at the same positions, and more words than noisy positions in a subspace show
//! these by elimination (interleaved decoding). A factor mixes the planes differently at every position, so
//! that no plane is a word of any binary code. A test runs the elimination on both codes.
//!
//! Factors keep the weight of every word and make cancellations rarer, so the binary code's relative
//! distance of 0.20 (a pseudo-distance, not a proof) is taken here too: over a field extension a binary
//! code's distance is what it is over GF(2). The noise must then be heavier, see
//! [`linear_weight`](crate::silent::bcgikrs19::linear_weight).

use tacit_crypto::accumulate::{Permutation, SIGMA, add_diagonal};
use tacit_crypto::transcript::Transcript;
use tacit_crypto::{Block, Prg, gf128, workers};
use zeroize::Zeroizing;

/// Positions handled together, in first-level cache.
const PIECE: usize = 512;

/// Fewer entries than this are not shared by threads.
const ENTRIES_EACH: usize = 1 << 14;
/// Blocks of the stream that a matrix of the fold takes.
const DRAWN: usize = SIGMA * SIGMA / 128;

/// The code of one length and seed.
#[derive(Clone, Debug)]
pub struct ScaledAccumulate {
    outputs: usize,
    permutations: [Permutation; 2],
    factors: [Prg; 3],
    diagonal: Prg,
}

impl ScaledAccumulate {
    /// The code from `input_len` to half as many; `input_len` a multiple of 64 below 2^31. Panics otherwise.
    pub fn new(seed: Block, input_len: usize) -> Self {
        assert!(input_len > 0 && input_len.is_multiple_of(2 * SIGMA) && input_len < 1 << 31, "code length");
        let mut transcript = Transcript::new("tacit block-accumulate 3x32 scaled v1");
        transcript.append_blocks("seed", &[seed]);
        transcript.append_u64("length", input_len as u64);
        let mut prg = transcript.challenge_prg("permutations");
        ScaledAccumulate {
            outputs: input_len / 2,
            permutations: core::array::from_fn(|_| Permutation::new(input_len, &mut prg)),
            factors: ["first", "second", "fold"].map(|label| transcript.challenge_prg(label)),
            diagonal: transcript.challenge_prg("diagonal"),
        }
    }

    /// The first results of `input`, into `out`.
    ///
    /// `scratch` is as long as `input`; both hold secrets of no use afterwards. Panics when a length is wrong
    /// or too many results are asked for.
    pub fn encode(&self, input: &mut [Block], scratch: &mut [Block], out: &mut [Block]) {
        let (first, second) = (input.as_chunks_mut::<1>().0, scratch.as_chunks_mut().0);
        self.check(first, second);
        accumulate(&self.factors[0], first, |_, _| ());
        self.finish(first, second, [out]);
    }

    /// As [`encode`](Self::encode), of two inputs at once: what is drawn serves both, and one access to
    /// memory fetches an entry of each.
    ///
    /// `fill` makes the first input piece by piece, its entries from a multiple of 64 on, a multiple of 64 of
    /// them. The second stands in the first half of `scratch`, which is twice as long as it, as `first` is.
    pub(crate) fn encode_both(
        &self,
        fill: impl Fn(usize, &mut [Block]) + Sync,
        first: &mut [Block],
        scratch: &mut [Block],
        out: [&mut [Block]; 2],
    ) {
        let input = 2 * self.outputs;
        let first = first.as_chunks_mut::<2>().0;
        self.check(first, scratch.as_chunks::<2>().0);
        let second = &scratch[..input];
        accumulate(&self.factors[0], first, |start, sums| {
            let mut filled = Zeroizing::new([Block::ZERO; PIECE]);
            let filled = &mut filled[..sums.len()];
            fill(start, filled);
            for ((sum, one), other) in sums.iter_mut().zip(filled).zip(&second[start..]) {
                *sum = [*one, *other];
            }
        });
        self.finish(first, scratch.as_chunks_mut().0, out);
    }

    fn check<const W: usize>(&self, one: &[[Block; W]], other: &[[Block; W]]) {
        assert!([one.len(), other.len()] == [2 * self.outputs; 2], "code shapes");
    }

    /// What follows the first accumulation, of `W` words side by side.
    fn finish<const W: usize>(
        &self,
        first: &[[Block; W]],
        second: &mut [[Block; W]],
        out: [&mut [Block]; W],
    ) {
        let count = out[0].len();
        assert!(count <= self.outputs && out.iter().all(|out| out.len() == count), "code shapes");
        accumulate(&self.factors[1], second, |start, sums| {
            self.permutations[0].gather(start, first, sums, |to, from| *to = from);
        });
        let (second, share) = (&*second, share(count));
        let mut outs = out.map(|out| out.chunks_mut(share));
        let parts = (0..count).step_by(share).map(|start| (start, outs.each_mut().map(|out| out.next())));
        workers::each(parts, |(start, out)| self.fold(second, start, out.map(Option::unwrap_or_default)));
    }

    /// The results from `start` on, a multiple of [`PIECE`].
    fn fold<const W: usize>(&self, second: &[[Block; W]], first: usize, mut out: [&mut [Block]; W]) {
        let count = out[0].len();
        let mut stage = Stage::new(&self.factors[2], first);
        let mut diagonal = self.diagonal.clone();
        diagonal.skip(first / SIGMA * DRAWN);
        let [mut upper, mut lower] = [(); 2].map(|()| Zeroizing::new([[Block::ZERO; W]; PIECE]));
        let [mut sums, mut terms] = [(); 2].map(|()| Zeroizing::new([Block::ZERO; PIECE]));
        for start in (0..count).step_by(PIECE) {
            let len = PIECE.min(count - start);
            let whole = len.next_multiple_of(SIGMA);
            let (upper, lower) = (&mut upper[..whole], &mut lower[..whole]);
            let at = first + start;
            self.permutations[1].gather(at, second, upper, |to, from| *to = from);
            self.permutations[1].gather(self.outputs + at, second, lower, |to, from| *to = from);
            stage.scale(lower);
            let matrices = diagonal.clone();
            for (word, out) in out.iter_mut().enumerate() {
                let (sums, terms) = (&mut sums[..whole], &mut terms[..whole]);
                sums.iter_mut().zip(upper.iter()).for_each(|(sum, words)| *sum = words[word]);
                terms.iter_mut().zip(lower.iter()).for_each(|(term, words)| *term = words[word]);
                diagonal = matrices.clone();
                add_diagonal(&mut diagonal, terms, sums);
                out[start..][..len].copy_from_slice(&sums[..len]);
            }
        }
    }
}

/// Entries that a thread handles of `len`.
fn share(len: usize) -> usize {
    workers::share(len, ENTRIES_EACH).next_multiple_of(PIECE)
}

/// Multiplies entries by factors and accumulates them; `fill` makes them, piece by piece. Each thread has a share,
/// to which the sum of those in front is added when all have theirs.
fn accumulate<const W: usize>(
    factors: &Prg,
    entries: &mut [[Block; W]],
    fill: impl Fn(usize, &mut [[Block; W]]) + Sync,
) {
    let share = share(entries.len());
    let sums = workers::map(entries.chunks_mut(share).enumerate(), |(i, entries)| {
        let mut stage = Stage::new(factors, i * share);
        for (j, entries) in entries.chunks_mut(PIECE).enumerate() {
            fill(i * share + j * PIECE, entries);
            stage.accumulate(entries);
        }
        stage.sums
    });
    let mut in_front = Zeroizing::new([Block::ZERO; W]);
    let in_front = sums.iter().map(|sums| {
        let before = in_front.clone();
        in_front.iter_mut().zip(sums.iter()).for_each(|(sum, of)| *sum ^= *of);
        before
    });
    workers::each(entries.chunks_mut(share).zip(in_front).skip(1), |(entries, in_front)| {
        for entry in entries {
            entry.iter_mut().zip(in_front.iter()).for_each(|(entry, sum)| *entry ^= *sum);
        }
    });
}

/// One pass of factors over `W` words side by side, with their sums so far.
struct Stage<const W: usize> {
    factors: Prg,
    drawn: [Block; PIECE],
    /// Each factor once a word.
    spread: [[Block; W]; PIECE],
    sums: Zeroizing<[Block; W]>,
}

impl<const W: usize> Stage<W> {
    /// The pass over entries from `first` on.
    fn new(factors: &Prg, first: usize) -> Self {
        let (drawn, spread) = ([Block::ZERO; PIECE], [[Block::ZERO; W]; PIECE]);
        let mut factors = factors.clone();
        factors.skip(first);
        Stage { factors, drawn, spread, sums: Zeroizing::new([Block::ZERO; W]) }
    }

    /// Multiplies the next entries.
    fn scale(&mut self, entries: &mut [[Block; W]]) {
        let (drawn, spread) = (&mut self.drawn[..entries.len()], &mut self.spread[..entries.len()]);
        self.factors.fill_blocks(drawn);
        spread.iter_mut().zip(drawn).for_each(|(spread, factor)| *spread = [*factor; W]);
        gf128::multiply_each(entries.as_flattened_mut(), spread.as_flattened());
    }

    /// Multiplies the next entries and accumulates.
    fn accumulate(&mut self, entries: &mut [[Block; W]]) {
        self.scale(entries);
        let mut sums = *self.sums;
        for entry in entries {
            for (entry, sum) in entry.iter_mut().zip(&mut sums) {
                *sum ^= *entry;
                *entry = *sum;
            }
        }
        *self.sums = sums;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::silent::code::{BlockAccumulate, encode_all};

    fn encode(code: &ScaledAccumulate, input: &[Block]) -> Vec<Block> {
        let mut out = vec![Block::ZERO; code.outputs];
        code.encode(&mut input.to_vec(), &mut input.to_vec(), &mut out);
        out
    }

    /// Straight from the definition.
    fn naive(code: &ScaledAccumulate, input: &[Block]) -> Vec<Block> {
        let n = input.len();
        let mut values = input.to_vec();
        let draw = |prg: &Prg, len: usize| {
            let mut blocks = vec![Block::ZERO; len];
            prg.clone().fill_blocks(&mut blocks);
            blocks
        };
        for (permutation, factors) in code.permutations.iter().zip(&code.factors) {
            let factors = draw(factors, n);
            let mut sum = Block::ZERO;
            let sums: Vec<Block> = values
                .iter()
                .zip(&factors)
                .map(|(x, r)| {
                    sum ^= gf128::mul(*x, *r);
                    sum
                })
                .collect();
            let mut image = [0; 1];
            values = (0..n)
                .map(|i| {
                    permutation.images(i, &mut image);
                    sums[image[0] as usize]
                })
                .collect();
        }
        let (upper, lower) = values.split_at(n / 2);
        let factors = draw(&code.factors[2], n / 2);
        let lower: Vec<Block> = lower.iter().zip(&factors).map(|(x, r)| gf128::mul(*x, *r)).collect();
        let mut out = upper.to_vec();
        add_diagonal(&mut code.diagonal.clone(), &lower, &mut out);
        out
    }

    #[test]
    fn encoding_is_the_matrix_product() {
        let mut prg = Prg::from_seed(Block::new(12));
        for n in [64, 192, 704, 2 * PIECE, 11 << 8] {
            let code = ScaledAccumulate::new(prg.block(), n);
            let mut input = vec![Block::ZERO; n];
            prg.fill_blocks(&mut input);
            let expected = naive(&code, &input);
            assert!(encode(&code, &input) == expected, "length {n}");
            for count in [n / 2, 7] {
                let [mut out, mut first, mut second] = [(); 3].map(|()| vec![Block::ZERO; count]);
                let mut scratch = vec![Block::ONES; n];
                code.encode(&mut input.clone(), &mut scratch, &mut out);
                assert!(out == expected[..count], "length {n}");
                let [mut sums, mut scratch] = [(); 2].map(|()| vec![Block::ONES; 2 * n]);
                let other: Vec<Block> = input.iter().rev().copied().collect();
                scratch[..n].copy_from_slice(&other);
                let fill =
                    |at: usize, piece: &mut [Block]| piece.copy_from_slice(&input[at..][..piece.len()]);
                code.encode_both(fill, &mut sums, &mut scratch, [&mut first, &mut second]);
                let others = naive(&code, &other);
                assert!(first == expected[..count] && second == others[..count], "length {n}");
            }
        }
    }

    #[test]
    fn many_threads_encode_what_one_does() {
        let mut prg = Prg::from_seed(Block::new(13));
        let n = 3 * ENTRIES_EACH + 704;
        let code = ScaledAccumulate::new(prg.block(), n);
        let mut input = vec![Block::ZERO; n];
        prg.fill_blocks(&mut input);
        let of = |threads| {
            workers::limited(threads, || {
                let [mut one, mut first, mut second] = [(); 3].map(|()| vec![Block::ZERO; n / 2 - 5]);
                code.encode(&mut input.clone(), &mut vec![Block::ONES; n], &mut one);
                let [mut sums, mut scratch] = [(); 2].map(|()| vec![Block::ONES; 2 * n]);
                scratch[..n].copy_from_slice(&input);
                let fill = |at: usize, piece: &mut [Block]| piece.fill(Block::new(at as u128 + 1));
                code.encode_both(fill, &mut sums, &mut scratch, [&mut first, &mut second]);
                [one, first, second]
            })
        };
        let alone = of(1);
        assert!(alone[0] == alone[2] && [2, 3, 8].into_iter().all(|threads| of(threads) == alone));
    }

    /// A subspace of GF(2)^n, spanned by rows in echelon form.
    #[derive(Default)]
    struct Space(Vec<Vec<bool>>);

    impl Space {
        /// Reduces a vector by the subspace; `true` where something is left.
        fn reduce(&self, vector: &mut [bool]) -> bool {
            for row in &self.0 {
                let pivot = row.iter().position(|bit| *bit).unwrap();
                if vector[pivot] {
                    vector.iter_mut().zip(row).for_each(|(bit, other)| *bit ^= other);
                }
            }
            vector.iter().any(|bit| *bit)
        }

        fn add(&mut self, mut vector: Vec<bool>) {
            if self.reduce(&mut vector) {
                self.0.push(vector);
            }
        }
    }

    fn plane(blocks: &[Block], bit: usize) -> Vec<bool> {
        blocks.iter().map(|block| block.bit(bit)).collect()
    }

    /// Interleaved decoding: which positions does it call noisy, and what rank do the bit-planes of the
    /// output have? `encode` is linear over GF(2^128).
    fn eliminate(
        len: usize,
        noisy: &[usize],
        encode: impl Fn(&[Block]) -> Vec<Block>,
    ) -> (usize, Vec<usize>) {
        let mut prg = Prg::from_seed(Block::new(3));
        let mut noise = vec![Block::ZERO; len];
        noisy.iter().for_each(|at| noise[*at] = prg.block());
        let output = encode(&noise);
        let mut space = Space::default();
        (0..128).for_each(|bit| space.add(plane(&output, bit)));
        let found = (0..len).filter(|&at| {
            let mut unit = vec![Block::ZERO; len];
            unit[at] = Block::ONE;
            let row = encode(&unit);
            // Over a binary code planes but the lowest are zero, and zero is no evidence.
            let planes = (0..128).map(|bit| plane(&row, bit)).filter(|plane| plane.contains(&true));
            planes.into_iter().any(|mut plane| !space.reduce(&mut plane))
        });
        (space.0.len(), found.collect())
    }

    #[test]
    fn interleaved_decoding_breaks_the_binary_code_and_not_this_one() {
        let (len, seed) = (512, Block::new(77));
        let noisy: Vec<usize> = (0..40).map(|i| 12 * i + i * i % 11).collect();
        let binary = BlockAccumulate::new(seed, len);
        let (rank, found) = eliminate(len, &noisy, |noise| encode_all(&binary, noise));
        assert_eq!((rank, found), (40, noisy.clone()));
        let ours = ScaledAccumulate::new(seed, len);
        let (rank, found) = eliminate(len, &noisy, |noise| encode(&ours, noise));
        assert_eq!((rank, found), (128, Vec::new()));
    }
}
