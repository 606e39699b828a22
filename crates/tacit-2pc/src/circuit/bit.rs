//! The bits that circuits are built of, and values made of them.

use super::{Wire, ZERO};

/// A bit of a circuit under construction: a constant, a wire or a wire's negation.
///
/// Copying it costs nothing; it belongs to the builder that made it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Bit {
    /// Twice the wire, plus one if negated.
    pub(super) literal: u32,
    /// Which use of the wire is meant, where regions give wires back.
    pub(super) generation: u32,
}

impl Bit {
    /// The constant zero.
    pub const ZERO: Bit = Bit { literal: 0, generation: 0 };
    /// The constant one.
    pub const ONE: Bit = Bit { literal: 1, generation: 0 };

    /// A constant.
    pub const fn constant(value: bool) -> Bit {
        if value { Bit::ONE } else { Bit::ZERO }
    }

    /// The value, where it is known while the circuit is built.
    pub fn known(self) -> Option<bool> {
        (self.wire() == ZERO).then_some(self.literal & 1 == 1)
    }

    pub(super) fn wire(self) -> Wire {
        self.literal >> 1
    }

    pub(super) fn negated(self) -> bool {
        self.literal & 1 == 1
    }

    pub(super) fn plain(self) -> Bit {
        Bit { literal: self.literal & !1, ..self }
    }

    pub(super) fn negate_if(self, negate: bool) -> Bit {
        Bit { literal: self.literal ^ negate as u32, ..self }
    }
}

impl core::ops::Not for Bit {
    type Output = Bit;
    fn not(self) -> Bit {
        self.negate_if(true)
    }
}

/// Values made of bits: what a [`Builder::region`](super::Builder::region) may return.
pub trait Wires {
    /// Calls `visit` on every bit.
    fn visit(&self, visit: &mut dyn FnMut(Bit));
}

impl Wires for Bit {
    fn visit(&self, visit: &mut dyn FnMut(Bit)) {
        visit(*self);
    }
}

impl Wires for () {
    fn visit(&self, _visit: &mut dyn FnMut(Bit)) {}
}

impl<T: Wires> Wires for Vec<T> {
    fn visit(&self, visit: &mut dyn FnMut(Bit)) {
        self.iter().for_each(|x| x.visit(visit));
    }
}

impl<T: Wires, const N: usize> Wires for [T; N] {
    fn visit(&self, visit: &mut dyn FnMut(Bit)) {
        self.iter().for_each(|x| x.visit(visit));
    }
}

impl<A: Wires, B: Wires> Wires for (A, B) {
    fn visit(&self, visit: &mut dyn FnMut(Bit)) {
        self.0.visit(visit);
        self.1.visit(visit);
    }
}
