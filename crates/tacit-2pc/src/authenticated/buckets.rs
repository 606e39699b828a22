//! Buckets: several leaky triples make one of which nothing leaks.
//!
//! Of each leaky triple (x, y, z) a cheater may have learnt x, at the price of being caught with chance 1/2. The triples
//! stand in B rows of ℓ. Bucket j takes from row i the triple j + s_i mod ℓ; s_0 = 0, the other shifts are drawn by both
//! parties once all triples are checked. The sum of a bucket's x is unknown unless all its triples leaked. With k_i leaked
//! triples in row i, the expected number of buckets full of them is ∏k_i / ℓ^(B−1), as each choice of one leaked triple
//! a row meets in a bucket with chance ℓ^-(B−1); nothing is caught with chance 2^-Σk_i, and k·2^-k ≤ 1/2. So a
//! window is broken with chance at most 2^-B·ℓ^-(B−1).
//!
//! A cheater that wins in no window of a session and goes on must have passed each with at least B leaked triples, with
//! chance 2^-3 at most: over any number of windows the chance grows by a factor below 8/7, which
//! [`size`] takes into account.

use super::bits::{Share, Shares, zeros};
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

/// Triples in each of `buckets` buckets, for [`STATISTICAL`] bits of a session; `buckets` is at least [`LEAST`].
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
const BATCH: usize = 1 << 15;

/// Combines rows of triples, which stand one after the other as all x, all y, all z, and writes the first of the buckets'
/// sums, x, y and z, to `out`. All buckets are opened.
pub(super) fn combine(
    channel: &mut Channel,
    openings: &mut Openings,
    triples: &Shares,
    buckets: usize,
    shifts: &[usize],
    out: &mut [[Block; 6]],
) -> Result<()> {
    let size = shifts.len() + 1;
    let of = |part: usize, row: usize, place: usize| triples.get((part * size + row) * buckets + place);
    let turned = |j: usize, shift: usize| if j + shift < buckets { j + shift } else { j + shift - buckets };
    let batch = |i: usize| i * BATCH..buckets.min((i + 1) * BATCH);
    let batches = buckets.div_ceil(BATCH);
    let room = shifts.len() * BATCH.min(buckets);
    let (mut macs, mut keys, mut last) = (zeros(room), zeros(room), zeros(room));
    let mut shown = BitVec::default();
    // Each batch's shares are on their way while the batch before is summed up.
    for i in 0..=batches {
        let mine = std::mem::take(&mut shown);
        std::mem::swap(&mut keys, &mut last);
        if i < batches {
            let pairs = macs.iter_mut().zip(keys.iter_mut());
            let differences = batch(i).flat_map(|j| {
                let first = of(1, 0, j);
                shifts.iter().enumerate().map(move |(i, &shift)| first.xor(of(1, i + 1, turned(j, shift))))
            });
            pairs.zip(differences).for_each(|((mac, key), share)| (*mac, *key) = (share.mac, share.key));
            shown = openings.offer(channel, &macs[..shifts.len() * batch(i).len()])?;
        }
        if i > 0 {
            let range = batch(i - 1);
            let opened = openings.take(channel, mine, &mut last[..shifts.len() * range.len()])?;
            let used = range.start.min(out.len())..range.end.min(out.len());
            for ((at, j), out) in range.enumerate().zip(&mut out[used]) {
                let mut sum = [of(0, 0, j), of(1, 0, j), of(2, 0, j)];
                for (i, &shift) in shifts.iter().enumerate() {
                    let place = turned(j, shift);
                    let x = of(0, i + 1, place);
                    sum[0] = sum[0].xor(x);
                    let mask = Block::mask(opened.get(at * shifts.len() + i));
                    sum[2] = sum[2].xor(of(2, i + 1, place)).xor(x.and(mask));
                }
                let [x, y, z] = sum.map(Share::blocks);
                *out = [x[0], x[1], y[0], y[1], z[0], z[1]];
            }
        }
    }
    Ok(())
}
