//! What a function takes of a preparation.

use super::alike::COMPARED;
use super::buckets::{self, Level};
use crate::{Owner, Prepared};
use tacit_net::LinkModel;
use tacit_ot::Security;
use tacit_ot::silent::ferret::Config;
use tacit_ot::silent::ferret::cost::CACHE;

/// Labels of inputs that rows which run side by side have, at most: 8 MB.
const LABELS: usize = 1 << 19;

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

    /// Whether a preparation for this serves `other` as well: no number of it is larger.
    pub fn covers(&self, other: Demand) -> bool {
        self.ands >= other.ands
            && self.garbler_inputs >= other.garbler_inputs
            && self.evaluator_inputs >= other.evaluator_inputs
    }

    /// What `rows` runs need.
    pub fn times(self, rows: usize) -> Self {
        Demand {
            ands: self.ands * rows,
            garbler_inputs: self.garbler_inputs * rows,
            evaluator_inputs: self.evaluator_inputs * rows,
        }
    }

    /// The windows in which triples are made: the buckets of each, and the triples in a bucket.
    pub fn windows(&self, level: Level) -> impl Iterator<Item = (usize, usize)> {
        level
            .windows(self.ands)
            .map(|gates| gates.max(buckets::LEAST))
            .map(move |buckets| (buckets, level.size(buckets)))
    }

    /// Correlations of either direction that a preparation takes, at most.
    pub fn correlations(&self, level: Level) -> u64 {
        let of_window = |(buckets, size)| 3 * buckets * size + COMPARED * level.checks(buckets, false);
        let triples: usize = self.windows(level).map(of_window).sum();
        (triples + self.ands + self.garbler_inputs.max(self.evaluator_inputs)) as u64
    }

    /// Rows of this size whose preparations are made together, and which then run side by side.
    pub fn rows_together(&self) -> usize {
        let inputs = self.garbler_inputs + self.evaluator_inputs;
        (buckets::WINDOW / self.ands.max(1)).min(LABELS / inputs.max(1)).max(1)
    }

    /// Ferret's parameters for a session of `level` that makes this once, over `link`: both parties reach the same.
    pub fn ferret(&self, link: &LinkModel, level: Level) -> Config {
        // The triples pass through the cache as well, and leave Ferret's table half of it.
        Config::choose_exactly(self.correlations(level), Security::Malicious, link, CACHE / 2)
    }

    /// Input bits of `owner`'s.
    pub fn inputs(&self, owner: Owner) -> usize {
        match owner {
            Owner::Garbler => self.garbler_inputs,
            Owner::Evaluator => self.evaluator_inputs,
        }
    }
}
