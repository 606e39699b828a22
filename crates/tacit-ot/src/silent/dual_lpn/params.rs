//! The codes of dual LPN, with the weight that their noise must have.

use super::code::{BlockAccumulate, LinearCode, QuasiCyclic};
use tacit_crypto::Block;

/// Correlations of one run at most; larger requests take several. A run's traffic hardly grows with its size.
pub const LARGEST_RUN: usize = 1 << 24;

/// The public matrix of dual LPN.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Code {
    /// The paper's, with t = 136 at N/n = 2, where its table 1 has 116 to 126: at least 136 bits,
    /// information-set decoding from several blocks of samples included (docs/lpn-security.md).
    QuasiCyclic,
    /// Block-accumulate 3x32, linear time, with t = 200: at least 136 bits against linear tests at the
    /// estimated distance and against whoever chooses blocks of the last accumulator.
    Linear,
}

impl Code {
    /// The code called `name`: `quasi-cyclic` or `linear`.
    pub fn by_name(name: &str) -> Option<Code> {
        [Code::QuasiCyclic, Code::Linear].into_iter().find(|code| code.name() == name)
    }

    /// The name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Code::QuasiCyclic => "quasi-cyclic",
            Code::Linear => "linear",
        }
    }

    /// The least number of noisy positions.
    pub const fn weight(self) -> usize {
        match self {
            // Four more than 136: the last tile may lose positions.
            Code::QuasiCyclic => 140,
            Code::Linear => linear_weight(2),
        }
    }

    /// The matrix of `seed` on `len` positions.
    pub fn instance(self, seed: Block, len: usize) -> Box<dyn LinearCode> {
        match self {
            Code::QuasiCyclic => Box::new(QuasiCyclic::new(seed, len)),
            Code::Linear => Box::new(BlockAccumulate::new(seed, len)),
        }
    }
}

/// The least number of noisy positions of [`Code::Linear`] where noise has values in a field of `q` elements:
/// a random nonzero value shrinks the bias of a linear test that meets the fraction d of all positions by 1 −
/// d·q/(q − 1), and with d = 0.20 136 bits are left at least.
pub const fn linear_weight(q: usize) -> usize {
    // proof: vole 5.2
    // proof: nisc 6.1
    match q {
        2 => 200,
        4 => 304,
        16 => 396,
        _ => 424,
    }
}
