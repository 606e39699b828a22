//! How rows are cut: both parties come to the same from the circuit's plan and the number of rows.

use crate::circuit::Plan;
use crate::{OutputTo, Owner};

/// Rows of a batch, and batches of a group.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Layout {
    slots: usize,
    /// AND gates of each level that has any.
    levels: Vec<u64>,
    rows: usize,
    batch: usize,
    group: usize,
}

/// Bytes of the place that a message begins with.
const PLACE_BYTES: u64 = 8;
/// Rows of a batch, at most: a level of one gate then fills a message.
const MOST_BATCH_ROWS: usize = 1 << 16;
/// Rows of a batch of the largest circuits.
const LEAST_BATCH_ROWS: usize = 64;
/// Bits of a batch's wires, about, and of those of all batches that are under way.
const BATCH_BITS: usize = 1 << 25;
const GROUP_BITS: usize = 1 << 29;

impl Layout {
    /// For so many rows of a circuit with this plan.
    pub fn new(plan: &Plan, rows: usize) -> Self {
        let slots = plan.slots();
        let steps = || plan.windows().iter().flat_map(|window| window.whole().steps);
        // What a level opens counts as well: three bits of triples and two of openings a gate.
        let widest = steps().map(|step| step.ands as usize).max().unwrap_or(0);
        let levels = steps().map(|step| u64::from(step.ands)).filter(|&ands| ands > 0).collect();
        Layout::of(slots, widest, levels, rows)
    }

    /// For so many rows of a circuit that is known by its numbers: AND gates, levels and the most AND gates of a level,
    /// and input bits. Of the levels only their mean is known.
    pub fn estimated([ands, levels, widest]: [u64; 3], inputs: u64, rows: u64) -> Self {
        let fits = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
        let whole = ands.checked_div(levels).unwrap_or(0);
        let levels = (0..levels).map(|level| whole + u64::from(level < ands - whole * levels)).collect();
        Layout::of(fits(inputs.saturating_add(widest)), fits(widest), levels, fits(rows))
    }

    fn of(slots: usize, widest: usize, levels: Vec<u64>, rows: usize) -> Self {
        let live = slots.saturating_add(widest.saturating_mul(5)).max(1);
        let fitting = (BATCH_BITS / live).clamp(LEAST_BATCH_ROWS, MOST_BATCH_ROWS);
        let batch = 1 << fitting.ilog2();
        let group = (GROUP_BITS / live / batch).max(1) * batch;
        Layout { slots: live, levels, rows, batch, group }
    }

    /// The same with batches of so many rows, and so many batches a group.
    #[cfg(test)]
    pub(super) fn cut(self, batch: usize, batches: usize) -> Self {
        Layout { batch, group: batch * batches, ..self }
    }

    /// Rows of a batch; the last one may have fewer.
    pub fn batch(&self) -> usize {
        self.batch
    }

    /// Rows that are under way at the same time, in batches.
    pub fn group(&self) -> usize {
        self.group
    }

    /// Levels with AND gates, and the most AND gates of one of them: more and narrower ones than by the circuit's depth
    /// where the plan has several windows.
    pub fn levels(&self) -> [u64; 2] {
        [self.levels.len() as u64, self.levels.iter().copied().max().unwrap_or(0)]
    }

    /// Levels that all rows go through, one group after the other.
    pub fn rounds(&self) -> u64 {
        self.levels.len() as u64 * self.rows.div_ceil(self.group) as u64
    }

    /// Messages of openings that a party sends.
    pub fn messages(&self) -> u64 {
        self.levels.len() as u64 * self.rows.div_ceil(self.batch) as u64
    }

    /// Bytes that the party `role` sends in messages of openings and of `outputs` output bits a row.
    pub fn opened(&self, role: Owner, to: OutputTo, outputs: u64) -> u64 {
        let full = (self.rows / self.batch) as u64;
        let of_batch = |rows: u64| {
            let halves: u64 =
                self.levels.iter().map(|&ands| PLACE_BYTES + 2 * (ands * rows).div_ceil(8)).sum();
            let shown = to.learned_by(role.other()).then(|| PLACE_BYTES + (outputs * rows).div_ceil(8));
            halves + shown.unwrap_or(0)
        };
        let rest = (self.rows % self.batch) as u64;
        full * of_batch(self.batch as u64) + if rest > 0 { of_batch(rest) } else { 0 }
    }

    /// Triples that all rows use up.
    pub fn triples(&self) -> u64 {
        self.levels.iter().sum::<u64>().saturating_mul(self.rows as u64)
    }

    /// Bytes of the wires and openings of the rows that are under way.
    pub fn bytes(&self) -> u64 {
        let rows = self.rows.min(self.group).next_multiple_of(64);
        (self.slots as u64).saturating_mul(rows as u64) / 8
    }
}
