//! What the kernels of half-gates work through: XORs and ANDs on slots, in steps.

use crate::Block;

/// One operation on slots: `out = a ⊕ b` or `out = a ∧ b`. `out` is never one of `a` and `b`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Op {
    /// Slot of the first operand.
    pub a: u32,
    /// Slot of the second operand.
    pub b: u32,
    /// Slot of the result.
    pub out: u32,
}

/// A run of XORs, each of which may read the ones before, then a run of ANDs independent of each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step {
    /// Number of XORs.
    pub xors: u32,
    /// Number of ANDs.
    pub ands: u32,
}

/// Steps with their operations, one step after the other.
#[derive(Clone, Copy)]
pub struct Gates<'a> {
    /// The steps.
    pub steps: &'a [Step],
    /// Their operations.
    pub ops: &'a [Op],
    /// The number of the first AND gate.
    pub first: u64,
}

impl<'a> Gates<'a> {
    /// AND gates among them.
    pub(super) fn ands(&self) -> usize {
        self.steps.iter().map(|step| step.ands as usize).sum()
    }

    /// The XORs and the ANDs of each step.
    #[inline(always)]
    pub(super) fn runs(&self) -> impl Iterator<Item = (&'a [Op], &'a [Op])> + use<'a> {
        let mut ops = self.ops;
        self.steps.iter().map(move |step| {
            let (xors, rest) = ops.split_at(step.xors as usize);
            let (ands, rest) = rest.split_at(step.ands as usize);
            ops = rest;
            (xors, ands)
        })
    }

    /// Panics unless the labels are whole slots, all slots have labels, and no result is an operand.
    ///
    /// Inlined into each kernel, whose vectors it fills: gate by gate it took a sixth of evaluating.
    #[inline(always)]
    pub(super) fn check(&self, lanes: usize, labels: &[Block]) {
        assert!(lanes > 0 && labels.len().is_multiple_of(lanes), "a label for every slot and copy");
        let (mut most, mut same) = (0, false);
        for op in self.ops {
            most = op.a.max(op.b).max(op.out).max(most);
            same |= (op.out == op.a) | (op.out == op.b);
        }
        let slots = labels.len() / lanes;
        assert!(self.ops.is_empty() || ((most as usize) < slots && !same), "slots without labels");
    }
}
