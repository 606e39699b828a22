//! What a table's keys came to: how many values were refused and why, and samples for those who ask.

use super::Reason;
use std::collections::BTreeMap;
use zeroize::Zeroize;

/// A part of a key and why its values were refused.
pub type Refusal = (usize, Reason);

/// A value that is no key, for the eyes of who owns it.
#[derive(Clone, PartialEq, Eq)]
pub struct Sample {
    /// The row, from 1.
    pub row: u64,
    /// The key's part, from 0.
    pub part: usize,
    /// Why.
    pub reason: Reason,
    /// The value.
    pub text: String,
}

impl std::fmt::Debug for Sample {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sample").field("row", &self.row).field("text", &"[secret]").finish_non_exhaustive()
    }
}

/// Refused values by part and reason. A row counts once, by the first of its parts that is refused.
#[derive(Default)]
pub struct Tally {
    /// How often.
    pub refused: BTreeMap<Refusal, u64>,
    /// The first refused values, empty ones aside, as many as were asked for; they never leave this machine.
    pub samples: Vec<Sample>,
    /// The first rows' normal forms, as many as were asked for.
    pub forms: Vec<Vec<String>>,
}

impl Tally {
    /// Rows that were refused although no part of their key is empty.
    pub fn unfit(&self) -> u64 {
        self.refused.iter().filter(|((_, reason), _)| *reason != Reason::Empty).map(|(_, rows)| rows).sum()
    }
}

impl Drop for Tally {
    fn drop(&mut self) {
        self.samples.iter_mut().for_each(|sample| sample.text.zeroize());
        self.forms.iter_mut().for_each(Zeroize::zeroize);
    }
}
