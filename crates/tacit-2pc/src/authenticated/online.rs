//! The last phase, in the order of its messages.
//!
//! 1. The evaluator sends its masked inputs.
//! 2. The garbler sends the labels of all inputs' masked values, and the tables.
//! 3. The evaluator sends the masked values of all AND gates' results, and a hash of their labels. The garbler
//!    recomputes the hash: no other masked values have labels that the evaluator can hold.
//! 4. The garbler sends a hash of its MACs of (Λ_1 ⊕ λ_1)(Λ_2 ⊕ λ_2) ⊕ Λ_3 ⊕ λ_3 of every gate. These must be zero, so
//!    the evaluator knows the MACs: of a wrong table it sees a wrong hash.
//! 5. Masks of outputs are shown with their MACs, by the garbler with step 4, by the evaluator after it.

use super::dependent::Dependent;
use super::{evaluator, garbler, usage};
use crate::{Owner, Result};
use tacit_crypto::BitVec;
use tacit_net::Channel;

impl Dependent<'_> {
    /// The last phase: runs on `input`, this party's input bits. Returns the outputs if this party learns them.
    ///
    /// Errors: `Usage` for another number of bits; `Cheated` when a check failed; those of the link.
    pub fn online(self, channel: &mut Channel, input: &BitVec) -> Result<Option<BitVec>> {
        let own = self.slots(self.role);
        if input.len() != own.len() {
            return usage("as many input bits as the function takes from this party");
        }
        match self.role {
            Owner::Garbler => garbler::run(self, channel, input),
            Owner::Evaluator => evaluator::run(self, channel, input),
        }
    }
}
