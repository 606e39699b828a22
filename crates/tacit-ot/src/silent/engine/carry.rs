//! What an iteration puts aside for the next one.

use tacit_crypto::{Block, Buffer};
use zeroize::Zeroize;

/// The secrets of the iteration at work, and those that it makes for the next.
pub(crate) struct Carry {
    /// What the last iteration put aside.
    pub current: Buffer,
    /// What the iteration at work puts aside.
    pub kept: Buffer,
}

impl Carry {
    /// Before the first iteration, for which a setup made `reserve`.
    pub(crate) fn new(reserve: Buffer) -> Self {
        Carry { current: Buffer::zeros(reserve.len()), kept: reserve }
    }

    /// Goes on to the next iteration.
    pub(crate) fn advance(&mut self) {
        std::mem::swap(&mut self.current, &mut self.kept);
    }

    /// The secrets of the iteration at work from `from` on: those of its trees, `trees` of them, and the
    /// rest.
    pub(crate) fn split(
        &self,
        from: usize,
        trees: usize,
        check: usize,
    ) -> [zeroize::Zeroizing<Vec<Block>>; 2] {
        let (trees, rest) = self.current[from..].split_at(trees);
        [trees, &rest[..check]].map(|part| zeroize::Zeroizing::new(part.to_vec()))
    }

    pub(crate) fn wipe(&mut self) {
        self.current.zeroize();
        self.kept.zeroize();
    }
}
