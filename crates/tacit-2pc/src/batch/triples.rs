//! The stock of triples that a run's AND gates use up.

use super::packed::Packed;
use crate::Result;
use tacit_net::Channel;
use tacit_ot::bit_triples::BitTriples;
use tacit_ot::{CotReceiver, CotSender};

/// Triples that are made at a time, unless a level needs more.
pub(super) const PIECE: usize = 1 << 22;

/// Triples made in pieces: as many as a run needs, rounded up to whole words.
pub(super) struct Triples<'a> {
    source: BitTriples<&'a mut dyn CotSender, &'a mut dyn CotReceiver>,
    stock: [Packed; 3],
    /// Bits of the stock that are used up.
    used: usize,
    made: usize,
    /// How many the run needs that are not yet made.
    left: u128,
}

impl<'a> Triples<'a> {
    /// For `count` triples in all.
    pub(super) fn new(sender: &'a mut dyn CotSender, receiver: &'a mut dyn CotReceiver, count: u128) -> Self {
        let source = BitTriples::new(sender, receiver);
        Triples { source, stock: Default::default(), used: 0, made: 0, left: count }
    }

    /// Whether the stock has fewer than `bits`.
    pub(super) fn are_missing(&self, bits: usize) -> bool {
        self.made - self.used < bits
    }

    /// Makes more, so that there are `bits` at least.
    pub(super) fn make(&mut self, channel: &mut Channel, bits: usize) -> Result<()> {
        let kept = self.made - self.used;
        let piece = usize::try_from(self.left).unwrap_or(usize::MAX).min(PIECE).max(bits - kept);
        let words = piece.div_ceil(64);
        let mut fresh = [(); 3].map(|()| Packed::zeros(64 * words));
        self.source.extend(channel, fresh.each_mut().map(Packed::words_mut))?;
        channel.flush()?;
        for (stock, fresh) in self.stock.iter_mut().zip(fresh) {
            if kept == 0 {
                *stock = fresh;
                continue;
            }
            let mut all = Packed::with_room(kept + 64 * words);
            all.push_from(stock, self.used, kept);
            all.push(fresh.words(), 64 * words);
            *stock = all;
        }
        (self.used, self.made) = (0, kept + 64 * words);
        self.left = self.left.saturating_sub(64 * words as u128);
        Ok(())
    }

    /// The next `bits` triples: a, b and c. Panics if they were not made.
    pub(super) fn take(&mut self, bits: usize) -> [Packed; 3] {
        assert!(!self.are_missing(bits), "triples are made before they are used");
        let taken = self.stock.each_ref().map(|stock| {
            let mut part = Packed::with_room(bits);
            part.push_from(stock, self.used, bits);
            part
        });
        self.used += bits;
        taken
    }
}
