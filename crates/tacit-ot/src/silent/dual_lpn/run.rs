//! The public parts of a run of BCGIKRS19.

use super::code::LinearCode;
use super::noise::Noise;
use super::params::Code;
use crate::silent::tree::half::HalfTrees;
use tacit_crypto::transcript::Transcript;

/// The protocol's short name.
pub const NAME: &str = "silent";

/// In which form a run makes its noise.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Form {
    /// By half-trees.
    Long,
    /// By GGM trees, in one message and its proof.
    Short,
}

/// One run: codes and hashes wait until the joint seed is in the context.
pub(super) struct Run {
    pub code: Code,
    pub noise: Noise,
    pub form: Form,
    pub context: Transcript,
}

impl Run {
    pub(super) fn expander(&self) -> HalfTrees {
        HalfTrees::new(self.noise.shape.depth, self.context.clone().challenge_block("tree"))
    }

    pub(super) fn code(&self) -> Box<dyn LinearCode> {
        self.code.instance(self.context.clone().challenge_block("code"), self.noise.positions())
    }
}
