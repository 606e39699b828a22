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
use tacit_crypto::Prg;
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

/// Combines rows of triples, which stand one after the other as all x, all y, all z, and hands (x, y, z) of bucket
/// after bucket to `each`.
pub(super) fn combine(
    channel: &mut Channel,
    openings: &mut Openings,
    triples: &Shares,
    buckets: usize,
    shifts: &[usize],
    mut each: impl FnMut(usize, [Share; 3]),
) -> Result<()> {
    let size = shifts.len() + 1;
    let of = |part: usize, row: usize, place: usize| triples.get((part * size + row) * buckets + place);
    let turned = |j: usize, shift: usize| if j + shift < buckets { j + shift } else { j + shift - buckets };
    let n = shifts.len() * buckets;
    let mut differences = Shares { macs: zeros(n), keys: zeros(n) };
    for (i, &shift) in shifts.iter().enumerate() {
        for j in 0..buckets {
            let share = of(1, 0, j).xor(of(1, i + 1, turned(j, shift)));
            differences.macs[i * buckets + j] = share.mac;
            differences.keys[i * buckets + j] = share.key;
        }
    }
    let opened = openings.open(channel, differences)?;
    for j in 0..buckets {
        let mut sum = [of(0, 0, j), of(1, 0, j), of(2, 0, j)];
        for (i, &shift) in shifts.iter().enumerate() {
            let place = turned(j, shift);
            let x = of(0, i + 1, place);
            sum[0] = sum[0].xor(x);
            let mask = opened.mask(i * buckets + j);
            sum[2] = sum[2].xor(of(2, i + 1, place)).xor(x.and(mask));
        }
        each(j, sum);
    }
    Ok(())
}
