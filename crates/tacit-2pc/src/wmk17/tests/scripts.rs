//! What the parties of the tests do otherwise than the protocol says.

use super::*;
use crate::wmk17::secrets::Hidden;
use tacit_crypto::group::Encoding;

/// A P1 that sends all tables before it takes P2's opening, or none.
#[derive(Default)]
pub(super) struct Hasty {
    pub(super) early: bool,
}

impl Script for Hasty {
    fn early(&mut self, more: &mut bool) {
        *more = self.early;
    }
}

/// What a cheating P1 spoils.
#[derive(Clone, Copy, Default, PartialEq, Debug)]
pub(super) enum Fault {
    /// Nothing.
    #[default]
    Nothing,
    /// Step 1: another key or seed goes into the OT than the one used.
    Key,
    Seed,
    /// Step 2: the labels for 1 of the encoded input bits that `wires` names, in all copies.
    Selective,
    /// Step 3: R.
    R,
    /// Step 4: a label that is opened is wrong; is the other value's; is the other value's and committed to
    /// as this one's.
    Opened,
    OtherLabel,
    Inconsistent,
    /// Step 4: a commitment is to another label.
    Committed,
    /// Step 5: ciphertexts; the circuit computes with a flipped input bit; T; its commitment; a token; T of
    /// P1's outputs.
    Tables,
    Flipped,
    T,
    TCommitment,
    Token,
    ReturnedT,
    /// Step 5: the hash of a copy's tables; tables that are not those which were hashed.
    TableHash,
    OtherTables,
    /// Step 5, coded: a combination; two, so that their share in copy 0 may vanish, whose circuit has a
    /// flipped input bit.
    Combination,
    Vanishing,
    /// Step 7: Δ, a token, C_j, no group element, Enc(seed_j).
    Delta,
    RevealedToken,
    C,
    NoElement,
    EncSeed,
    /// The last step: the hash of a token of P1's outputs; the token as it is revealed.
    ReturnedHash,
    ReturnedToken,
}

/// A P1 that spoils one thing in the copies below `copies`.
#[derive(Default)]
pub(super) struct Cheater {
    pub(super) fault: Fault,
    pub(super) copies: usize,
    /// Encoded input bits.
    pub(super) wires: Vec<usize>,
    pub(super) flipped: bool,
    /// Whether the tables go before P2's opening.
    pub(super) early: bool,
    /// The encoding in place of the right one.
    pub(super) matrix: Option<probe::ProbeMatrix>,
}

impl Cheater {
    pub(super) fn new(fault: Fault, copies: usize) -> Self {
        Cheater { fault, copies, ..Cheater::default() }
    }
}

pub(super) fn spoil(blocks: &mut [Block]) {
    blocks.iter_mut().for_each(|b| *b ^= Block::new(4));
}

pub(super) fn shift(labels: &mut [Block], deltas: &[Block]) {
    labels.iter_mut().zip(deltas).for_each(|(label, delta)| *label ^= *delta);
}

impl Script for Cheater {
    fn terms(&mut self, matrix: &mut probe::ProbeMatrix, _opening_checks: &mut usize) {
        self.matrix.take().into_iter().for_each(|other| *matrix = other);
    }
    fn keys(&mut self, pairs: &mut [[Block; 2]]) {
        for pair in &mut pairs[..self.copies] {
            match self.fault {
                Fault::Key => pair[1] ^= Block::ONE,
                Fault::Seed => pair[0] ^= Block::ONE,
                _ => {}
            }
        }
    }
    fn evaluator_labels(&mut self, i: usize, _zero: &mut [Block], one: &mut [Block]) {
        if self.fault == Fault::Selective && self.wires.contains(&i) {
            spoil(one);
        }
    }
    fn masked_input(&mut self, i: usize, r: &mut [Block]) {
        if self.fault == Fault::R && i == 2 {
            spoil(&mut r[..self.copies]);
        }
    }
    fn committed(&mut self, i: usize, pairs: &mut [[(Block, Block); 2]]) {
        for pair in &mut pairs[..self.copies] {
            match self.fault {
                Fault::Inconsistent if i == 2 => (pair[0].0, pair[1].0) = (pair[1].0, pair[0].0),
                Fault::Committed if i == 2 => pair[0].1 ^= Block::new(4),
                _ => {}
            }
        }
    }
    fn opened(&mut self, i: usize, deltas: &[Block], labels: &mut [Block]) {
        let labels = &mut labels[..self.copies];
        match self.fault {
            Fault::Opened if i == 2 => spoil(labels),
            Fault::OtherLabel | Fault::Inconsistent if i == 2 => shift(labels, deltas),
            _ => {}
        }
    }
    fn garbled_input(&mut self, i: usize, deltas: &[Block], labels: &mut [Block]) {
        if matches!(self.fault, Fault::Flipped | Fault::Vanishing) && i == 2 {
            shift(&mut labels[..self.copies], deltas);
        }
    }
    fn tables(&mut self, _lanes: usize, tables: &mut [Block]) {
        if self.fault == Fault::Tables && !std::mem::replace(&mut self.flipped, true) {
            spoil(&mut tables[..2 * self.copies]);
        }
    }
    fn early(&mut self, more: &mut bool) {
        *more = self.early;
    }
    fn combination(&mut self, combination: &mut [Block]) {
        if self.fault == Fault::Combination && !std::mem::replace(&mut self.flipped, true) {
            spoil(&mut combination[..1]);
        }
        if self.fault == Fault::Vanishing && !std::mem::replace(&mut self.flipped, true) {
            let second = combination.len() / Copies::SPARSE.evaluated;
            [0, second].iter().for_each(|&at| combination[at] ^= Block::ONE);
        }
    }
    fn sent(&mut self, message: &mut [Block]) {
        if self.fault == Fault::OtherTables && !std::mem::replace(&mut self.flipped, true) {
            spoil(&mut message[..2 * self.copies]);
        }
    }
    fn table_hashes(&mut self, hashes: &mut [[u8; 32]]) {
        if self.fault == Fault::TableHash {
            hashes[0][0] ^= 1;
        }
    }
    fn output_table(&mut self, j: usize, kind: Hidden, table: &mut [Block]) {
        let returned = matches!(kind, Hidden::Returned);
        if (self.fault == Fault::T || self.fault == Fault::ReturnedT && returned) && j < self.copies {
            spoil(table);
        }
    }
    fn returned_hashes(&mut self, hashes: &mut [[[u8; 32]; 2]]) {
        hashes[1][0][0] ^= u8::from(self.fault == Fault::ReturnedHash);
    }
    fn revealed_returned(&mut self, tokens: &mut [[Block; 2]]) {
        if self.fault == Fault::ReturnedToken {
            spoil(&mut tokens[1][..1]);
        }
    }
    fn table_commitment(&mut self, j: usize, commitment: &mut [u8; 32]) {
        commitment[0] ^= (self.fault == Fault::TCommitment && j < self.copies) as u8;
    }
    fn tokens(&mut self, tokens: &mut [[Block; 2]]) {
        if self.fault == Fault::Token {
            spoil(&mut tokens[1][1..]);
        }
    }
    fn revealed(&mut self, delta: &mut Block, tokens: &mut [Block]) {
        match self.fault {
            Fault::Delta => spoil(std::slice::from_mut(delta)),
            Fault::RevealedToken => spoil(tokens),
            _ => {}
        }
    }
    fn recovery(&mut self, c: &mut [Encoding], seeds: &mut [Block]) {
        match self.fault {
            Fault::C => (0..self.copies).for_each(|j| c[j] = c[j + 20]),
            Fault::NoElement => c[..self.copies].fill([0xff; 32]),
            Fault::EncSeed => spoil(&mut seeds[..self.copies]),
            _ => {}
        }
    }
}

/// A P2 that follows the protocol and notes whether it recovered P1's input; its set may be fixed.
#[derive(Default)]
pub(super) struct Watch {
    pub(super) set: Option<BitVec>,
    pub(super) recovers: bool,
    pub(super) matrix: Option<probe::ProbeMatrix>,
}

impl Watch {
    pub(super) fn with(set: BitVec) -> Self {
        Watch { set: Some(set), ..Watch::default() }
    }
}

impl Script for Watch {
    fn terms(&mut self, matrix: &mut probe::ProbeMatrix, _opening_checks: &mut usize) {
        self.matrix.take().into_iter().for_each(|other| *matrix = other);
    }
    fn evaluated(&mut self, set: &mut BitVec) {
        if let Some(fixed) = &self.set {
            *set = fixed.clone();
        }
    }
    fn omega(&mut self, known: &mut bool, _omega: &mut Block) {
        self.recovers = *known;
    }
}

/// A set of [`Copies::STANDARD`] that holds the copies below `copies` or not, and of the others the even ones
/// before the odd ones.
pub(super) fn set(first: bool, copies: usize) -> BitVec {
    let Copies { total, evaluated, .. } = Copies::STANDARD;
    let left = if first { evaluated - copies } else { evaluated };
    let others = (copies..total).filter(|j| j % 2 == 0).chain((copies..total).filter(|j| j % 2 == 1));
    let mut set = BitVec::zeros(total);
    (0..copies).for_each(|j| set.set(j, first));
    others.take(left).for_each(|j| set.set(j, true));
    set
}

/// (fault, is the output right if the copies are evaluated, if they are checked, is the input recovered)
pub(super) const CASES: &[(Fault, bool, bool, bool)] = &[
    (Fault::Key, false, true, false),
    (Fault::Seed, true, false, false),
    (Fault::R, false, true, false),
    (Fault::Opened, false, true, false),
    (Fault::OtherLabel, false, true, true),
    (Fault::Inconsistent, true, false, true),
    (Fault::Committed, true, false, false),
    (Fault::Tables, true, false, false),
    (Fault::Flipped, true, false, true),
    (Fault::T, true, false, false),
    (Fault::TCommitment, false, false, false),
    (Fault::Token, false, false, false),
    (Fault::TableHash, false, false, false),
    (Fault::OtherTables, false, true, false),
    (Fault::Delta, false, false, false),
    (Fault::RevealedToken, false, false, false),
    (Fault::C, true, false, false),
    (Fault::NoElement, false, false, false),
    (Fault::EncSeed, true, false, false),
];
