//! The two parties of a computation: whose an input is, and who learns the outputs.

use crate::circuit::{FIRST_INPUT, Shape};

/// Which party an input belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Owner {
    /// The party that garbles.
    Garbler,
    /// The party that evaluates.
    Evaluator,
}

impl Owner {
    /// The other party.
    pub(crate) fn other(self) -> Owner {
        match self {
            Owner::Garbler => Owner::Evaluator,
            Owner::Evaluator => Owner::Garbler,
        }
    }
}

/// Who learns the outputs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OutputTo {
    /// The garbler alone.
    Garbler,
    /// The evaluator alone.
    Evaluator,
    /// Both.
    Both,
}

impl OutputTo {
    /// Whether the garbler learns the outputs.
    pub fn garbler(self) -> bool {
        self != OutputTo::Evaluator
    }

    /// Whether `party` learns the outputs.
    pub fn learned_by(self, party: Owner) -> bool {
        match party {
            Owner::Garbler => self.garbler(),
            Owner::Evaluator => self.evaluator(),
        }
    }

    /// Whether the evaluator learns the outputs.
    pub fn evaluator(self) -> bool {
        self != OutputTo::Garbler
    }
}

/// Slots of the input bits that belong to `owner`, in order.
pub(crate) fn slots_of(shape: &Shape, owners: &[Owner], owner: Owner) -> Vec<u32> {
    let all = (0..shape.inputs.len()).filter(|&i| owners[i] == owner).flat_map(|i| shape.input_range(i));
    all.map(|bit| FIRST_INPUT + bit as u32).collect()
}
