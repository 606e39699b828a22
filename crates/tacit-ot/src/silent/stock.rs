//! Correlations made in one go, handed out once each.

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

    /// Adds to them; there must be room, for what has to move leaves copies behind.
    pub(crate) fn add(&mut self, more: &[Block]) {
        assert!(self.blocks.capacity() - self.blocks.len() >= more.len(), "no room in the stock");
        self.blocks.extend_from_slice(more);
    }

    /// How many are left.
    pub(crate) fn left(&self) -> usize {
        self.blocks.len() - self.next
    }

    /// Fills `out` as far as they reach; returns how many.
    pub(crate) fn serve(&mut self, out: &mut [Block]) -> usize {
        let n = out.len().min(self.left());
        let taken = &mut self.blocks[self.next..][..n];
        out[..n].copy_from_slice(taken);
        taken.zeroize();
        self.next += n;
        n
    }

    /// Fills `out`; `Exhausted` when there are fewer.
    pub(crate) fn take(&mut self, out: &mut [Block]) -> Result<()> {
        let left = self.left();
        if out.len() > left {
            return Err(Error::Exhausted { protocol: self.protocol, left });
        }
        self.serve(out);
        Ok(())
    }
}
