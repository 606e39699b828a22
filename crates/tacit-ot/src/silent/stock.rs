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

    /// Fills `out`; `Exhausted` when there are fewer.
    pub(crate) fn take(&mut self, out: &mut [Block]) -> Result<()> {
        let left = self.blocks.len() - self.next;
        if out.len() > left {
            return Err(Error::Exhausted { protocol: self.protocol, left });
        }
        let taken = &mut self.blocks[self.next..][..out.len()];
        out.copy_from_slice(taken);
        taken.zeroize();
        self.next += out.len();
        Ok(())
    }
}
