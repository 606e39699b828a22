//! Buckets: several leaky triples make one of which nothing leaks.
//!
//! Of each leaky triple (x, y, z) a cheater may have learnt x, at the price of being caught with chance 1/2.
//! The triples stand in B rows of ℓ. Bucket j takes from row i the triple j + s_i mod ℓ; s_0 = 0, each other
//! shift is drawn by both parties once the triples of its row are checked. The sum of a bucket's x is unknown
//! unless all its triples leaked. Let F_i be the number of buckets of which all triples of rows 0 to i
//! leaked. With k_i leaked triples in row i, chosen however the rows before went, the expected F_i is
//! F_{i−1}·k_i / ℓ, as each pair of a bucket and a leaked triple meets with chance 1/ℓ, and nothing is caught
//! with chance 2^-k_i; F_0 = k_0, and k·2^-k ≤ 1/2. So a window is broken, all its rows passed, with chance
//! at most 2^-B·ℓ^-(B−1).
//!
//! Rows are made and added up a few at a time, so that their memory serves again.
//!
//! A cheater that wins in no window of a session and goes on must have passed each with at least B leaked
//! triples, with chance 2^-3 at most: over any number of windows the chance grows by a factor below 8/7,
//! which [`size`] takes into account.

use super::bits::{Gate, Shares, zeros};
use super::opening::Openings;
use crate::Result;
use tacit_crypto::{BitVec, Block, Prg};
use tacit_net::Channel;

/// Statistical security in bits of a session.
pub const STATISTICAL: u32 = 40;
/// Buckets of a window, at most.
pub const WINDOW: usize = 409_600;
/// Buckets of a window, at least: fewer are filled up.
pub const LEAST: usize = 446;
/// Triples in a bucket, at most.
const MOST: u32 = 5;

/// Triples in each of `buckets` buckets, for [`STATISTICAL`] bits of a session; `buckets` is at least
/// [`LEAST`].
pub fn size(buckets: usize) -> usize {
    let enough = |b: u32| {
        let chance = (buckets as u128).saturating_pow(b - 1).saturating_mul(7) >> (3 + STATISTICAL - b);
        chance > 0
    };
    (3..MOST).find(|&b| enough(b)).unwrap_or(MOST) as usize
}

/// The windows in which triples for `ands` gates are made: how many gates each serves.
pub(super) fn windows(ands: usize) -> impl Iterator<Item = usize> {
    (0..ands).step_by(WINDOW).map(move |start| WINDOW.min(ands - start))
}

/// A row's shift; uniform but for 2^-64·ℓ.
pub(super) fn shift(prg: &mut Prg, buckets: usize) -> usize {
    prg.below(buckets as u64) as usize
}

/// Buckets whose differences cross at a time.
const BATCH: usize = 1 << 14;

/// Rows of a window that are made at a time.
pub fn rows_at_once(buckets: usize) -> usize {
    /// Triples: each check takes a round, and more than so many take time by their memory.
    const TRIPLES: usize = 1 << 16;
    (TRIPLES / buckets).clamp(1, MOST as usize)
}

/// Adds rows of triples, which stand one after the other as all x, all y, all z, to the buckets' sums: x, y
/// and z. The first row of a window is where the sums begin, and has no shift.
pub(super) fn combine(
    channel: &mut Channel,
    openings: &mut Openings,
    triples: &Shares,
    rows: usize,
    shifts: &[usize],
    sums: &mut [Gate],
) -> Result<()> {
    let buckets = sums.len();
    let of = |part: usize, row: usize, place: usize| triples.get((part * rows + row) * buckets + place);
    let first = rows - shifts.len();
    if first > 0 {
        for (j, sum) in sums.iter_mut().enumerate() {
            let [x, y, z] = [0, 1, 2].map(|part| of(part, 0, j).blocks());
            *sum = [x[0], x[1], y[0], y[1], z[0], z[1]];
        }
    }
    let turned = |j: usize, shift: usize| if j + shift < buckets { j + shift } else { j + shift - buckets };
    let batch = |i: usize| i * BATCH..buckets.min((i + 1) * BATCH);
    let batches = if shifts.is_empty() { 0 } else { buckets.div_ceil(BATCH) };
    let room = shifts.len() * BATCH.min(buckets);
    let (mut macs, mut keys, mut last) = (zeros(room), zeros(room), zeros(room));
    let mut shown = BitVec::default();
    // Each batch's shares are on their way while the batch before is added up.
    for i in 0..batches + usize::from(batches > 0) {
        let mine = std::mem::take(&mut shown);
        std::mem::swap(&mut keys, &mut last);
        if i < batches {
            let len = batch(i).len();
            for (row, &shift) in shifts.iter().enumerate() {
                let places = macs[row * len..].iter_mut().zip(&mut keys[row * len..]);
                for ((mac, key), (j, sum)) in places.zip(batch(i).zip(&sums[batch(i)])) {
                    let y = of(1, first + row, turned(j, shift));
                    (*mac, *key) = (sum[2] ^ y.mac, sum[3] ^ y.key);
                }
            }
            shown = openings.offer(channel, &macs[..shifts.len() * len])?;
        }
        if i > 0 {
            let range = batch(i - 1);
            let opened = openings.take(channel, mine, &mut last[..shifts.len() * range.len()])?;
            for (row, &shift) in shifts.iter().enumerate() {
                for (i, j) in range.clone().enumerate() {
                    let place = turned(j, shift);
                    let [x, z] = [0, 2].map(|part| of(part, first + row, place));
                    let mask = Block::mask(opened.get(row * range.len() + i));
                    let sum = &mut sums[j];
                    sum[0] ^= x.mac;
                    sum[1] ^= x.key;
                    sum[4] ^= z.mac ^ (x.mac & mask);
                    sum[5] ^= z.key ^ (x.key & mask);
                }
            }
        }
    }
    Ok(())
}
