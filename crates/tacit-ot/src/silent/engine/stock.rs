//! Correlations made in one go, handed out once each.

use super::sink::{Blocks, Memory};
use crate::{Error, Result};
use tacit_crypto::Block;
use zeroize::{Zeroize, ZeroizeOnDrop};

/// What is left of them.
#[derive(Zeroize, ZeroizeOnDrop)]
pub(crate) struct Stock {
    #[zeroize(skip)]
    protocol: &'static str,
    blocks: Vec<Block>,
    next: usize,
}

impl Stock {
    pub(crate) fn new(protocol: &'static str, blocks: Vec<Block>) -> Self {
        Stock { protocol, blocks, next: 0 }
    }

    /// An empty one.
    pub(crate) fn empty(protocol: &'static str) -> Self {
        Stock::new(protocol, Vec::new())
    }

    /// An empty one with room for `n`.
    pub(crate) fn with_room(protocol: &'static str, n: usize) -> Self {
        Stock::new(protocol, Vec::with_capacity(n))
    }

    /// Adds to them; there must be room, for what has to move leaves copies behind.
    pub(crate) fn add(&mut self, more: &[Block]) {
        assert!(self.blocks.capacity() - self.blocks.len() >= more.len(), "no room in the stock");
        self.blocks.extend_from_slice(more);
    }

    /// How many are left.
    pub(crate) fn left(&self) -> usize {
        self.blocks.len() - self.next
    }

    /// Serves `sink` as far as they reach, the first ones first.
    pub(crate) fn serve(&mut self, sink: &mut impl Blocks) {
        let n = sink.left().min(self.left());
        let taken = &mut self.blocks[self.next..][..n];
        sink.put(taken);
        taken.zeroize();
        self.next += n;
    }

    /// [`serve`](Self::serve) with the last ones, in order.
    pub(crate) fn serve_last(&mut self, sink: &mut impl Blocks) {
        let n = sink.left().min(self.left());
        let from = self.blocks.len() - n;
        if n > 0 {
            sink.put(&self.blocks[from..]);
            self.blocks[from..].zeroize();
            self.blocks.truncate(from);
        }
    }

    /// Fills `out`; `Exhausted` when there are fewer.
    pub(crate) fn take(&mut self, out: &mut [Block]) -> Result<()> {
        let left = self.left();
        if out.len() > left {
            return Err(Error::Exhausted { protocol: self.protocol, left });
        }
        self.serve(&mut Memory::new(out));
        Ok(())
    }
}
