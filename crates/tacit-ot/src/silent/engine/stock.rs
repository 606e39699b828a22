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
        self.serve_each(out.len(), &mut |taken| out[..taken.len()].copy_from_slice(taken))
    }

    /// Hands `each` up to `wanted` of them; returns how many.
    pub(crate) fn serve_each(&mut self, wanted: usize, each: &mut dyn FnMut(&[Block])) -> usize {
        let n = wanted.min(self.left());
        let taken = &mut self.blocks[self.next..][..n];
        each(taken);
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
