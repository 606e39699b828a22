//! Keys on their way to their bins from several workers at once: each sorts a piece of them by bin, then each
//! appends to bins of its own, so that a bin has its keys in the order in which they came.

use super::{BATCH, Binned, Shape};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use tacit_crypto::{Block, hash, workers};
use zeroize::Zeroizing;

/// Keys of a piece.
pub(crate) const PIECE: usize = 1 << 14;

/// A bin's keys, to put something in their place; what stands in the place of their values; their elements.
pub(crate) type Bin<'b> = (&'b mut [Block], &'b mut [Block], &'b [u32]);

/// A piece of keys with their values and elements, bin by bin; its memory serves one piece after the other.
pub(crate) struct Piece {
    keys: Zeroizing<Vec<Block>>,
    values: Zeroizing<Vec<Block>>,
    elements: Zeroizing<Vec<u32>>,
    bins: Zeroizing<Vec<u16>>,
    /// Where each bin's keys end.
    ends: Vec<u32>,
}

impl Piece {
    pub(crate) fn new(shape: &Shape) -> Self {
        let [keys, values] = [(); 2].map(|()| Zeroizing::new(vec![Block::ZERO; PIECE]));
        let (elements, bins) = (Zeroizing::new(vec![0; PIECE]), Zeroizing::new(vec![0; PIECE]));
        Piece { keys, values, elements, bins, ends: vec![0; shape.bins()] }
    }

    /// Takes keys with their values, at most [`PIECE`]; they are the elements from `first` on.
    pub(crate) fn sort(&mut self, shape: &Shape, keys: &[Block], values: &[Block], first: u32) {
        let mut hashed = Zeroizing::new([Block::ZERO; BATCH]);
        let mut next = vec![0u32; self.ends.len() + 1];
        for (keys, bins) in keys.chunks(BATCH).zip(self.bins.chunks_mut(BATCH)) {
            let hashed = &mut hashed[..keys.len()];
            hash::ccr_into(keys, hashed);
            for (bin, hashed) in bins.iter_mut().zip(hashed.iter()) {
                *bin = shape.bin(*hashed) as u16;
                next[usize::from(*bin) + 1] += 1;
            }
        }
        (1..next.len()).for_each(|bin| next[bin] += next[bin - 1]);
        self.ends.copy_from_slice(&next[1..]);
        for ((key, value), (bin, element)) in keys.iter().zip(values).zip(self.bins.iter().zip(first..)) {
            let at = next[usize::from(*bin)] as usize;
            next[usize::from(*bin)] += 1;
            (self.keys[at], self.values[at], self.elements[at]) = (*key, *value, element);
        }
    }

    fn bin(&self, bin: usize) -> Range<usize> {
        let start = bin.checked_sub(1).map_or(0, |before| self.ends[before]);
        start as usize..self.ends[bin] as usize
    }
}

impl Binned {
    /// Appends the keys of `pieces`, in their order; `false` when a bin has no room for them, which hashes of
    /// distinct elements do once in 2^128.
    pub(crate) fn append(&mut self, pieces: &[Piece]) -> bool {
        let (room, share) = (self.room, workers::share(self.lens.len(), 1));
        let has_room = AtomicBool::new(true);
        let keys = self.keys.chunks_mut(share * room).zip(self.values.chunks_mut(share * room));
        let owners = keys.zip(self.elements.chunks_mut(share * room)).zip(self.lens.chunks_mut(share));
        workers::each(owners.enumerate(), |(owner, (((keys, values), elements), lens))| {
            let bins = keys.chunks_mut(room).zip(values.chunks_mut(room)).zip(elements.chunks_mut(room));
            for (i, (((keys, values), elements), len)) in bins.zip(lens).enumerate() {
                for piece in pieces {
                    let from = piece.bin(owner * share + i);
                    let to = *len..*len + from.len();
                    if to.end > room {
                        has_room.store(false, Ordering::Relaxed);
                        return;
                    }
                    keys[to.clone()].copy_from_slice(&piece.keys[from.clone()]);
                    values[to.clone()].copy_from_slice(&piece.values[from.clone()]);
                    elements[to.clone()].copy_from_slice(&piece.elements[from]);
                    *len = to.end;
                }
            }
        });
        has_room.into_inner()
    }

    /// Puts in the place of the values of the bins from `first` on what their `slots` give to the keys; with
    /// `factor`, plus the values times it.
    pub(crate) fn sum_bins(&mut self, shape: &Shape, first: usize, slots: &[Block], factor: Option<Block>) {
        let (room, size) = (self.room, shape.bin_slots());
        let Binned { keys, values, lens, .. } = self;
        let part = if workers::count() > 1 { 8 * BATCH } else { usize::MAX };
        let keys = keys.chunks(room).zip(values.chunks_mut(room)).zip(lens.iter()).skip(first);
        let parts = slots.chunks_exact(size).zip(keys).flat_map(|(slots, ((keys, values), len))| {
            let parts = keys[..*len].chunks(part).zip(values[..*len].chunks_mut(part));
            parts.map(move |(keys, values)| (slots, keys, values))
        });
        workers::each(parts, |(slots, keys, values)| shape.sum(slots, keys, values, factor));
    }

    /// All bins.
    pub(crate) fn bins_mut(&mut self) -> impl Iterator<Item = Bin<'_>> {
        let Binned { keys, values, elements, lens, room } = self;
        let values = values.chunks_mut(*room).zip(elements.chunks(*room));
        keys.chunks_mut(*room).zip(values).zip(lens.iter()).map(|((keys, (values, elements)), len)| {
            (&mut keys[..*len], &mut values[..*len], &elements[..*len])
        })
    }

    /// What took the place of each bin's keys, and its elements.
    pub(crate) fn bins(&self) -> impl Iterator<Item = (&[Block], &[u32])> {
        let Binned { keys, elements, lens, room, .. } = self;
        let bins = keys.chunks(*room).zip(elements.chunks(*room)).zip(lens);
        bins.map(|((keys, elements), len)| (&keys[..*len], &elements[..*len]))
    }
}
