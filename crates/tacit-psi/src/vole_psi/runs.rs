//! What a party does with slots that come run by run, so that no more than a run of them is held at once.

use crate::Result;
use crate::okvs::clustered::{BinEncoder, Binned, Shape};
use tacit_crypto::{Block, Buffer, Prg, workers};

/// The receiver's store, from the first slot to the last.
pub(super) trait Masking {
    /// Adds the next slots of the store to `u`.
    fn mask(&mut self, prg: &mut Prg, u: &mut [Block]) -> Result<()>;

    /// Takes w of the next slots.
    fn take(&mut self, w: &[Block]);
}

/// The receiver's slots of the last run, which are dealt with only when nobody waits for it.
pub(super) struct Last {
    slots: Buffer,
    len: usize,
}

impl Last {
    /// The first `len` of `slots`.
    pub(super) fn new(slots: Buffer, len: usize) -> Self {
        Last { slots, len }
    }

    pub(super) fn slots(&self) -> &[Block] {
        &self.slots[..self.len]
    }
}

/// Elements bin by bin, whose values give way to their sums as the slots come.
pub(super) struct Summing {
    shape: Shape,
    digests: Binned,
    /// The sender's Δ, with which H(x)·Δ is added.
    delta: Option<Block>,
    /// Bins that have their sums.
    done: usize,
    /// The first slots of the bin after them.
    head: Buffer,
    filled: usize,
    last: Option<Last>,
}

impl Summing {
    pub(super) fn new(shape: Shape, digests: Binned, delta: Option<Block>) -> Self {
        let head = Buffer::zeros(shape.bin_slots());
        Summing { shape, digests, delta, done: 0, head, filled: 0, last: None }
    }

    /// Sums for the bins that the next slots complete.
    pub(super) fn take(&mut self, mut slots: &[Block]) {
        let size = self.shape.bin_slots();
        if self.filled > 0 {
            let (more, rest) = slots.split_at(slots.len().min(size - self.filled));
            self.head[self.filled..][..more.len()].copy_from_slice(more);
            (self.filled, slots) = (self.filled + more.len(), rest);
            if self.filled < size {
                return;
            }
            self.digests.sum_bins(&self.shape, self.done, &self.head, self.delta);
            (self.done, self.filled) = (self.done + 1, 0);
        }
        let (bins, rest) = slots.split_at(slots.len() - slots.len() % size);
        self.digests.sum_bins(&self.shape, self.done, bins, self.delta);
        self.done += bins.len() / size;
        if !rest.is_empty() {
            self.head[..rest.len()].copy_from_slice(rest);
            self.filled = rest.len();
        }
    }

    pub(super) fn ends_with(self, last: Last) -> Self {
        Summing { last: Some(last), ..self }
    }

    /// All elements with their sums in the place of values.
    pub(super) fn finish(mut self) -> Binned {
        if let Some(last) = self.last.take() {
            self.take(last.slots());
        }
        self.digests
    }
}

/// The receiver's elements, whose store is made a few bins at a time: one for each thread.
pub(super) struct Filling {
    sums: Summing,
    encoders: Vec<BinEncoder>,
    /// The bins at work, and how many of their slots there are and are on their way.
    table: Buffer,
    filled: usize,
    used: usize,
    /// Bins made so far.
    made: usize,
}

impl Filling {
    pub(super) fn new(sums: Summing) -> Self {
        let at_once = workers::count().min(sums.shape.bins());
        let table = Buffer::zeros(at_once * sums.shape.bin_slots());
        let encoders = (0..at_once).map(|_| BinEncoder::default()).collect();
        Filling { sums, encoders, table, filled: 0, used: 0, made: 0 }
    }

    pub(super) fn ends_with(self, last: Last) -> Summing {
        self.sums.ends_with(last)
    }

    /// Makes the next bins.
    fn make(&mut self, prg: &mut Prg) -> Result<()> {
        let Summing { shape, digests, .. } = &self.sums;
        let (first, size) = (self.made, shape.bin_slots());
        let bins = self.encoders.len().min(shape.bins() - first);
        (self.filled, self.used, self.made) = (bins * size, 0, first + bins);
        let table = &mut self.table[..bins * size];
        prg.fill_blocks(table);
        let parts = (first..).zip(table.chunks_exact_mut(size).zip(&mut self.encoders));
        let encode = |(bin, (table, encoder)): (usize, (&mut [Block], &mut BinEncoder))| {
            encoder.encode_bin(shape, digests, bin, table)
        };
        workers::map(parts, encode).into_iter().collect()
    }
}

impl Masking for Filling {
    fn mask(&mut self, prg: &mut Prg, mut u: &mut [Block]) -> Result<()> {
        while !u.is_empty() {
            if self.used == self.filled {
                self.make(prg)?;
            }
            let (now, later) = u.split_at_mut(u.len().min(self.filled - self.used));
            now.iter_mut().zip(&self.table[self.used..]).for_each(|(u, slot)| *u ^= *slot);
            (self.used, u) = (self.used + now.len(), later);
        }
        Ok(())
    }

    fn take(&mut self, w: &[Block]) {
        self.sums.take(w);
    }
}

/// A store made as a whole, whose slots give way to w.
pub(super) struct Whole {
    slots: Buffer,
    masked: usize,
    taken: usize,
}

impl Whole {
    pub(super) fn new(slots: Buffer) -> Self {
        Whole { slots, masked: 0, taken: 0 }
    }

    /// w of all slots.
    pub(super) fn ends_with(mut self, last: Last) -> Buffer {
        self.take(last.slots());
        self.slots
    }

    /// The slots, all of which were taken.
    pub(super) fn into_slots(self) -> Buffer {
        self.slots
    }
}

impl Masking for Whole {
    fn mask(&mut self, _: &mut Prg, u: &mut [Block]) -> Result<()> {
        u.iter_mut().zip(&self.slots[self.masked..]).for_each(|(u, slot)| *u ^= *slot);
        self.masked += u.len();
        Ok(())
    }

    fn take(&mut self, w: &[Block]) {
        self.slots[self.taken..][..w.len()].copy_from_slice(w);
        self.taken += w.len();
    }
}
