//! What a function takes of a preparation.

use super::buckets;
use crate::{Owner, Prepared};

/// How much a preparation serves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Demand {
    /// AND gates.
    pub ands: usize,
    /// Input bits of the garbler's.
    pub garbler_inputs: usize,
    /// Input bits of the evaluator's.
    pub evaluator_inputs: usize,
}

impl Demand {
    /// What `function` needs.
    pub fn of(function: &Prepared) -> Self {
        let bits = |owner| -> usize {
            let inputs = function.circuit().shape().inputs.iter().zip(function.owners());
            inputs.filter(|(_, o)| **o == owner).map(|(&width, _)| width as usize).sum()
        };
        Demand {
            ands: function.plan(1).ands() as usize,
            garbler_inputs: bits(Owner::Garbler),
            evaluator_inputs: bits(Owner::Evaluator),
        }
    }

    /// What `rows` runs need.
    pub fn times(self, rows: usize) -> Self {
        Demand {
            ands: self.ands * rows,
            garbler_inputs: self.garbler_inputs * rows,
            evaluator_inputs: self.evaluator_inputs * rows,
        }
    }

    /// Correlations of either direction that a preparation takes, at most.
    pub fn correlations(&self) -> u64 {
        let triples: usize = buckets::windows(self.ands)
            .map(|gates| gates.max(buckets::LEAST))
            .map(|n| n * buckets::size(n))
            .sum();
        (3 * triples + self.ands + self.garbler_inputs.max(self.evaluator_inputs)) as u64
    }

    /// Input bits of `owner`'s.
    pub fn inputs(&self, owner: Owner) -> usize {
        match owner {
            Owner::Garbler => self.garbler_inputs,
            Owner::Evaluator => self.evaluator_inputs,
        }
    }
}
