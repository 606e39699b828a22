//! The last phase, in the order of its messages.
//!
//! 1. The evaluator sends its masked inputs.
//! 2. The garbler sends the labels of all inputs' masked values, and the tables.
//! 3. The evaluator sends the masked values of all AND gates' results, piece by piece as it has them, and a
//!    hash of their labels. The garbler recomputes the hash, while it garbles what follows: no other masked
//!    values have labels that the evaluator can hold.
//! 4. The garbler sends a hash of its MACs of (Λ_1 ⊕ λ_1)(Λ_2 ⊕ λ_2) ⊕ Λ_3 ⊕ λ_3 of every gate. These must be
//!    zero, so the evaluator knows the MACs: of a wrong table it sees a wrong hash.
//! 5. Masks of outputs are shown with their MACs, by the garbler with step 4, by the evaluator after it.

use super::bits::Gates;
use super::dependent::Dependent;
use super::evaluator::Evaluating;
use super::garbler::Garbling;
use super::masked::{Begin, End};
use super::oracle::Oracle;
use super::stretch::Stretch;
use super::{OTHER_INPUT, usage};
use crate::{Owner, Result};
use tacit_crypto::{BitVec, Prg};
use tacit_net::Channel;

/// Either party in the last phase.
pub(super) enum Online {
    Garbler(Garbling),
    Evaluator(Evaluating),
}

impl Online {
    /// Up to the labels of the inputs.
    pub(super) fn begin(role: Owner, begin: Begin<'_>, channel: &mut Channel, prg: &mut Prg) -> Result<Self> {
        Ok(match role {
            Owner::Garbler => Online::Garbler(Garbling::begin(begin, channel, prg)?),
            Owner::Evaluator => Online::Evaluator(Evaluating::begin(begin, channel)?),
        })
    }

    /// The next stretch, whose gates have these masks.
    pub(super) fn stretch(
        &mut self,
        channel: &mut Channel,
        stretch: &Stretch<'_>,
        gates: Gates<'_>,
        oracle: &Oracle,
    ) -> Result<()> {
        match self {
            Online::Garbler(garbling) => garbling.stretch(channel, stretch, gates, oracle),
            Online::Evaluator(evaluating) => evaluating.stretch(channel, stretch, gates, oracle),
        }
    }

    /// Puts a row's inputs into their slots, where no stretch does.
    pub(super) fn begin_row(&mut self, row: usize) {
        match self {
            Online::Garbler(garbling) => garbling.begin_row(row),
            Online::Evaluator(evaluating) => evaluating.begin_row(row),
        }
    }

    /// Takes a row's outputs from these slots, where no stretch does.
    pub(super) fn end_row(&mut self, slots: &[u32]) {
        match self {
            Online::Garbler(garbling) => garbling.end_row(slots),
            Online::Evaluator(evaluating) => evaluating.end_row(slots),
        }
    }

    /// The outputs of all rows, if this party learns them.
    pub(super) fn end(&self, end: End<'_>, channel: &mut Channel) -> Result<Option<BitVec>> {
        match self {
            Online::Garbler(garbling) => garbling.end(end, channel),
            Online::Evaluator(evaluating) => evaluating.end(end, channel),
        }
    }
}

impl Dependent<'_> {
    /// The last phase: runs on `input`, this party's input bits. Returns the outputs if this party learns
    /// them.
    ///
    /// Errors: `Usage` for another number of bits; `Cheated` when a check failed; those of the link.
    pub fn online(mut self, channel: &mut Channel, input: &BitVec) -> Result<Option<BitVec>> {
        let spent = self.spent.clone();
        spent.check()?;
        let output = self.run(channel, input);
        spent.record(output)
    }

    /// The inputs of all rows and their outputs, row after row.
    fn run(&mut self, channel: &mut Channel, input: &BitVec) -> Result<Option<BitVec>> {
        let function = (self.function.circuit().shape(), self.function.owners());
        let stretch = self.stretch();
        let (rows, macs) = ((self.rows, self.ahead), &self.masks.macs[stretch.ands()..]);
        let Some(begin) = Begin::new(self.delta, &self.oracle, function, self.role, rows, macs, input) else {
            return usage(OTHER_INPUT);
        };
        let mut online = Online::begin(self.role, begin, channel, &mut self.prg)?;
        online.stretch(channel, &stretch, self.gates(), &self.oracle)?;
        let (delta, output_to) = (self.delta, self.output_to);
        let end = End { delta, oracle: &self.oracle, output_to, masks: &self.outputs };
        online.end(end, channel)
    }
}
