//! What no implementation of a protocol can do without: a lower bound on its time, and no model of it.

use crate::Security;
use crate::limits::Limit;

/// One item of a run: an OT, an evaluated AND gate, a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Item {
    /// Whether a correlation is hashed into messages.
    pub hashed: bool,
    /// Against which peer it is protected.
    pub security: Security,
}

/// What the busier side computes for one item at least: which limits of the machine bind it, and how many
/// times.
pub type Floor = fn(Item) -> Vec<(Limit, f64)>;

/// Of what no floor is known.
pub(super) fn unknown(_: Item) -> Vec<(Limit, f64)> {
    Vec::new()
}

/// Two exponentiations of points that are not known ahead.
pub(super) fn two_points(_: Item) -> Vec<(Limit, f64)> {
    vec![(Limit::PointMultiply, 2.0)]
}

impl Item {
    /// 1 where a correlation is hashed, else 0.
    pub(super) fn hashes(self) -> f64 {
        f64::from(u8::from(self.hashed))
    }
}
