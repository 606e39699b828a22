//! Masked values and what is computed from them, alike for both parties of the last phase.

use super::bits::{Share, zeros};
use super::oracle::Oracle;
use crate::circuit::{FIRST_INPUT, ONE, Piece, Shape};
use crate::parties::slots_of;
use crate::{OutputTo, Owner};
use tacit_crypto::{BitVec, Block, Buffer};

pub(super) const GARBLERS_MASKS: &str = "the garbler's masks of outputs";
pub(super) const EVALUATORS_MASKS: &str = "the evaluator's masks of outputs";

/// A party's run of the last phase, before its first stretch.
pub(super) struct Begin<'a> {
    pub(super) delta: Block,
    pub(super) oracle: &'a Oracle,
    pub(super) own: Vec<u32>,
    pub(super) peer: Vec<u32>,
    pub(super) rows: usize,
    /// Batches that the link holds, as far as that was found.
    pub(super) ahead: usize,
    /// The own inputs, masked, row after row.
    pub(super) masked: BitVec,
}

impl<'a> Begin<'a> {
    /// The party `role` with `input` of so many rows, of whose masks it has these MACs; `None` where the function
    /// takes another number of bits from it.
    pub(super) fn new(
        delta: Block,
        oracle: &'a Oracle,
        (shape, owners): (&Shape, &[Owner]),
        role: Owner,
        (rows, ahead): (usize, usize),
        macs: &[Block],
        input: &BitVec,
    ) -> Option<Self> {
        let [own, peer] = [role, role.other()].map(|owner| slots_of(shape, owners, owner));
        if input.len() != rows * own.len() {
            return None;
        }
        let mut masked = BitVec::from_lsbs(macs.get(..rows * own.len())?);
        masked.xor_assign(input);
        Some(Begin { delta, oracle, own, peer, rows, ahead, masked })
    }

    /// Slots that constants and inputs take.
    pub(super) fn slots(&self) -> usize {
        FIRST_INPUT as usize + self.own.len() + self.peer.len()
    }

    /// The hash of AND gates' keys, S of MITCCRH.
    pub(super) fn start(&self) -> Block {
        self.oracle.block("hash of gates")
    }
}

/// A run behind its last stretch.
pub(super) struct End<'a> {
    pub(super) delta: Block,
    pub(super) oracle: &'a Oracle,
    pub(super) output_to: OutputTo,
    /// The masks of the outputs, row after row.
    pub(super) masks: &'a [Share],
}

impl End<'_> {
    /// MACs of the own shares of the outputs' masks.
    pub(super) fn macs(&self) -> Buffer {
        let mut macs = zeros(self.masks.len());
        macs.iter_mut().zip(self.masks).for_each(|(mac, share)| *mac = share.mac);
        macs
    }

    /// Keys of the peer's shares of the outputs' masks.
    pub(super) fn keys(&self) -> Buffer {
        let mut keys = zeros(self.masks.len());
        keys.iter_mut().zip(self.masks).for_each(|(key, share)| *key = share.key);
        keys
    }

    /// The outputs: masked values, without both shares of their masks.
    pub(super) fn unmask(&self, mut masked: BitVec, peers: &BitVec) -> BitVec {
        masked.xor_assign(&BitVec::from_lsbs(&self.macs()));
        masked.xor_assign(peers);
        masked
    }
}

/// What a gate's check adds up, but for the public part: Λ_1·λ_2 ⊕ Λ_2·λ_1 ⊕ λ_1·λ_2 ⊕ λ_3.
#[inline(always)]
pub(super) fn check_share(masks: &[Share; 3], first: Block, second: Block) -> Share {
    masks[1].and(first).xor(masks[0].and(second)).xor(masks[2])
}

/// Masked values in the slots of a plan, a byte each.
pub(super) struct Masked {
    slots: Vec<u8>,
}

impl Masked {
    pub(super) fn new(slots: usize) -> Self {
        let mut masked = Masked { slots: vec![0; slots] };
        masked.slots[ONE as usize] = 1;
        masked
    }

    /// Makes room for so many slots.
    pub(super) fn reserve(&mut self, slots: usize) {
        self.slots.resize(slots.max(self.slots.len()), 0);
    }

    pub(super) fn set(&mut self, slot: u32, bit: bool) {
        self.slots[slot as usize] = bit as u8;
    }

    pub(super) fn get(&self, slot: u32) -> bool {
        self.slots[slot as usize] == 1
    }

    /// Follows a piece whose AND gates' results are given, and hands each gate's three values to `each`.
    pub(super) fn follow(
        &mut self,
        piece: Piece<'_>,
        results: &mut impl Iterator<Item = bool>,
        mut each: impl FnMut([bool; 3]),
    ) {
        for step in piece.one_by_one() {
            let (xors, ands) = step.ops.split_at(step.ops.len() - step.ands);
            for op in xors {
                self.slots[op.out as usize] = self.slots[op.a as usize] ^ self.slots[op.b as usize];
            }
            for (op, result) in ands.iter().zip(results.by_ref()) {
                each([self.get(op.a), self.get(op.b), result]);
                self.set(op.out, result);
            }
        }
    }
}
