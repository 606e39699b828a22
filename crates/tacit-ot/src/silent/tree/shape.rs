//! How many trees of which depth are made together.

use super::half::TILES;
use tacit_crypto::ggm::LANES;

/// How many trees of which depth: `tiles` tiles of four.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Shape {
    pub tiles: usize,
    pub depth: usize,
}

impl Shape {
    /// Correlations that the trees consume, the check apart.
    pub(crate) fn cots(self) -> usize {
        self.tiles * LANES * self.depth
    }

    /// Which of them is that of `level` of tree `tree`.
    pub(crate) fn cot(self, tree: usize, level: usize) -> usize {
        (tree / LANES * self.depth + level) * LANES + tree % LANES
    }

    /// Blocks of corrections: none for the first level.
    pub(crate) fn corrections(self) -> usize {
        self.tiles * LANES * (self.depth - 1)
    }

    /// [`corrections`](Self::corrections) of one group.
    pub(crate) fn corrections_in(self, group: usize) -> usize {
        self.tiles_in(group) * LANES * (self.depth - 1)
    }

    /// Bytes on the wire: the corrections, and a bit from the receiver for each correlation.
    pub(crate) fn bytes(self) -> usize {
        16 * self.corrections() + self.cots() / 8
    }

    pub(crate) fn groups(self) -> usize {
        self.tiles.div_ceil(TILES)
    }

    pub(crate) fn tiles_in(self, group: usize) -> usize {
        TILES.min(self.tiles - group * TILES)
    }
}
