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
//! To win in a window takes a leak in each row of its first check, the first row and those that are
//! [made with it](rows_at_once), k of them, so whoever tries and goes on without having won passed with chance
//! 2^-k. Shifts of these rows are known then, and a cheater whose leaks do not meet leaks nothing more in this
//! window. Where every window is broken with chance C·(1 − 2^-k) at most, one of any number is with chance C
//! at most. Of what a session's [`Level`] allows, C is all but the chance of a wrong product and that of a wrong
//! half of a MAC or label, once a session each.

use super::bits::{Gates, GatesMut, zeros};
use super::opening::Openings;
use super::reduced::reduced;
use crate::Result;
use std::collections::VecDeque;
use std::ops::Range;
use tacit_crypto::{BitVec, Block, Buffer, Prg};
use tacit_net::Channel;

/// Statistical security in bits of a job.
pub const STATISTICAL: u32 = 40;
/// Buckets of a window, at most.
pub const WINDOW: usize = 500_000;
/// Buckets of a window, at least: fewer are filled up.
pub const LEAST: usize = 449;
/// Bits of the other's Δ that a wrong half of a MAC or label lacks: one guess at them a session.
pub(super) const HALVES: u32 = 63;
/// Triples in a bucket, at most.
const MOST: u32 = 8;

/// How sure a session is.
///
/// A job is as sure as [`STATISTICAL`] says. Where it has several sessions, each of which may be tried whatever
/// becomes of the others, each is surer by as much.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Level {
    bits: u32,
}

impl Level {
    /// Of a job's only session.
    pub const ALONE: Level = Level { bits: STATISTICAL };

    /// Of one of so many sessions of a job; more than 2^19 are not foreseen.
    pub fn among(sessions: usize) -> Level {
        // proof: authenticated 6.4
        let more = sessions.max(1).next_power_of_two().trailing_zeros();
        Level { bits: STATISTICAL + more.min(19) }
    }

    /// A session is broken with chance 2^-bits at most.
    pub fn bits(self) -> u32 {
        self.bits
    }

    /// Bits of a triple's message, two of which are whole bytes. A wrong product passes if all of them are
    /// guessed of Δ but the lowest, which takes an eighth at most of what may be.
    pub fn message_bits(self) -> u32 {
        (self.bits + 4).next_multiple_of(4)
    }

    /// Triples in each of `buckets` buckets, at least [`LEAST`].
    pub fn size(self, buckets: usize) -> usize {
        let guessed = self.message_bits() - 1;
        // proof: authenticated 6.2, 6.3
        let enough = |b: u32| {
            let first_checked = b.min(1 + rows_at_once(buckets, false) as u32);
            // 2^-b / buckets^(b-1) ≤ (2^-bits − 2^-guessed − 2^-HALVES)·(1 − 2^-first_checked)
            let left = (1u128 << (HALVES - self.bits)) - (1 << (HALVES - guessed)) - 1;
            let left = left * ((1 << first_checked) - 1);
            (buckets as u128).saturating_pow(b - 1).saturating_mul(left) >= 1 << (HALVES + first_checked - b)
        };
        reduced().bucket.unwrap_or_else(|| (3..MOST).find(|&b| enough(b)).unwrap_or(MOST) as usize)
    }

    /// Checks of a window of so many buckets.
    pub fn checks(self, buckets: usize, far: bool) -> usize {
        (self.size(buckets) - 1).div_ceil(rows_at_once(buckets, far))
    }

    /// Gates of each window for `ands` gates but the last: as many in each, where each then has small buckets,
    /// else as many as a window has at most.
    pub(super) fn window(self, ands: usize) -> usize {
        let count = ands.div_ceil(WINDOW).max(1);
        let even = ands.div_ceil(count);
        if count > 1 && self.size(even - count) == self.size(WINDOW) { even } else { WINDOW }
    }

    /// The windows in which triples for `ands` gates are made: how many gates each serves.
    pub(super) fn windows(self, ands: usize) -> impl Iterator<Item = usize> {
        let most = self.window(ands);
        (0..ands).step_by(most).map(move |start| most.min(ands - start))
    }
}

/// [`LEAST`], but in tests of smaller windows.
#[inline(always)]
pub(super) fn least() -> usize {
    reduced().least.unwrap_or(LEAST)
}

/// A row's shift.
pub(super) fn shift(prg: &mut Prg, buckets: usize) -> usize {
    prg.below(buckets as u64) as usize
}

/// Buckets whose differences cross at a time: a batch with all that is read of it stays in the second-level
/// cache.
const BATCH: usize = 1 << 12;

/// Rows of a window that are held at a time, but for the first one, which becomes the sums; `far` where the
/// link's delay costs more than memory does. Both parties hold as many.
pub fn rows_at_once(buckets: usize, far: bool) -> usize {
    /// Triples: each check takes a round, and rows made together are read and added up at once. As many as make
    /// all three rows of one check where fewer in it would not do.
    const TRIPLES: usize = 920_000;
    let triples = if far { 2 * WINDOW } else { TRIPLES };
    reduced().rows.unwrap_or((triples / buckets).clamp(1, MOST as usize - 1))
}

/// Where a row's triples for the buckets `range` stand, `shift` places on: up to the row's end, and from its
/// beginning on.
fn turned(range: &Range<usize>, shift: usize, buckets: usize) -> [Range<usize>; 2] {
    let start = (range.start + shift) % buckets;
    let end = buckets.min(start + range.len());
    [start..end, 0..range.len() - (end - start)]
}

/// The sums of blocks.
fn added(one: &[Block], other: &[Block], out: &mut [Block]) {
    for ((one, other), out) in one.iter().zip(other).zip(out) {
        *out = *one ^ *other;
    }
}

/// Adds rows of triples to the buckets' sums, which began as the first row: x, y and z. Each row has its
/// shift.
pub(super) fn combine(
    channel: &mut Channel,
    openings: &mut Openings,
    rows: &[Gates<'_>],
    shifts: &[usize],
    sums: &mut GatesMut<'_>,
) -> Result<()> {
    let buckets = sums.len();
    let room = rows.len() * BATCH.min(buckets);
    let mut macs = zeros(room);
    let mut spare: Vec<Buffer> = Vec::new();
    // What was shown, of which buckets, and the keys of what the peer shows.
    let mut waiting: VecDeque<(BitVec, Range<usize>, Buffer)> = VecDeque::new();
    let mut begun = 0;
    // Batches' shares are on their way while those before them are added up.
    while begun < buckets || !waiting.is_empty() {
        if begun < buckets {
            let range = begun..buckets.min(begun + BATCH);
            begun = range.end;
            let mut keys = spare.pop().unwrap_or_else(|| zeros(room));
            let y = sums.shared().part(range.clone());
            let mut at = 0;
            for (row, &shift) in rows.iter().zip(shifts) {
                let mut from = 0;
                for place in turned(&range, shift, buckets) {
                    let (next, n) = (at + place.len(), place.len());
                    added(&row.macs[1][place.clone()], &y.macs[1][from..from + n], &mut macs[at..next]);
                    added(&row.keys[1][place], &y.keys[1][from..from + n], &mut keys[at..next]);
                    (at, from) = (next, from + n);
                }
            }
            let mine = openings.offer(channel, &macs[..rows.len() * range.len()])?;
            waiting.push_back((mine, range, keys));
            if begun < buckets && waiting.len() < openings.on_the_way() {
                continue;
            }
        }
        let Some((mine, range, mut keys)) = waiting.pop_front() else { continue };
        let opened = openings.take(channel, mine, &mut keys[..rows.len() * range.len()])?;
        spare.push(keys);
        let mut at = 0;
        for (row, &shift) in rows.iter().zip(shifts) {
            let mut sums = sums.part(range.clone());
            let mut sums = sums.iter_mut();
            for place in turned(&range, shift, buckets) {
                for ([x, _, z], [sum_of_x, _, sum_of_z]) in row.part(place).iter().zip(sums.by_ref()) {
                    let with_x = x.and(Block::mask(opened.get(at)));
                    at += 1;
                    sum_of_x.add(x);
                    sum_of_z.add(z.xor(with_x));
                }
            }
        }
    }
    Ok(())
}
