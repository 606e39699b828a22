//! What either party holds from when the OTs are done to the end of its run.

use super::secrets::{Digest, Seeds, differences};
use super::terms::Blocks;
use super::trapdoor::Trapdoor;
use tacit_crypto::group::Points;
use tacit_crypto::{BitVec, Block};
use zeroize::Zeroizing;

/// What P1 holds before inputs are known.
pub(super) struct GarblerState {
    pub(super) keys: Blocks,
    pub(super) seeds: Seeds,
    pub(super) h: Points,
    pub(super) g1: Points,
    /// The random OTs' messages for P2's encoded input.
    pub(super) pads: Zeroizing<Vec<[Block; 2]>>,
    /// Correlations for P1's input bits and for the opening's proof.
    pub(super) rows: Blocks,
    /// The start points of the committing OT's hash and of the circuits'.
    pub(super) labels: Block,
    pub(super) start: Block,
}

impl GarblerState {
    pub(super) fn all(&self) -> Vec<usize> {
        (0..self.seeds.len()).collect()
    }
}

/// What P2 holds before inputs are known.
pub(super) struct EvaluatorState {
    /// Evaluation copies and their keys; check copies and their seeds.
    pub(super) evaluated: Vec<usize>,
    pub(super) keys: Blocks,
    pub(super) checked: Vec<usize>,
    pub(super) seeds: Seeds,
    pub(super) trapdoor: Trapdoor,
    /// The random OTs for the encoded input.
    pub(super) pads: Blocks,
    pub(super) choices: BitVec,
    /// The committing OT: offset Γ and rows.
    pub(super) offset: Block,
    pub(super) rows: Blocks,
    /// The start points of the committing OT's hash and of the circuits'.
    pub(super) labels: Block,
    pub(super) start: Block,
    /// Whether some check failed. P1 learns nothing of it before the end.
    pub(super) failed: bool,
}

impl EvaluatorState {
    pub(super) fn total(&self) -> usize {
        self.evaluated.len() + self.checked.len()
    }

    pub(super) fn check(&mut self, holds: bool) {
        self.failed |= !holds;
    }

    /// Checks that all digests are those they are compared with, all of them always.
    pub(super) fn check_digests<'d>(&mut self, pairs: impl Iterator<Item = (&'d Digest, &'d Digest)>) {
        let wrong = pairs.fold(Block::ZERO, |wrong, (x, y)| wrong | differences(x, y));
        self.check(wrong == Block::ZERO);
    }
}
