//! Where the tests' cheaters leave the protocol.
//!
//! At its steps a party lets [`deviate`] change what it is about to use or to send. Outside the crate's own
//! tests that does nothing, and no signature knows of it.

use super::bits::GatesMut;
use super::hash::MacHash;
use tacit_crypto::{BitVec, Block};

/// Changes to what a party computes; none, where a script says nothing.
pub(super) trait Script {
    /// The MACs of the own authenticated bits of a row: x, y and z of its triples.
    fn bits(&mut self, _macs: &mut [&mut [Block]; 3]) {}
    /// The MACs of the own shares of the masks: of gates' results, then of inputs.
    fn masks(&mut self, _macs: &mut [Block]) {}
    /// Some triples' messages G, and the own part of the sums S, before G is sent: two triples a block.
    fn leaky(&mut self, _messages: &mut [Block], _sums: &mut [Block]) {}
    /// Δ, as the triples are made with it.
    fn triples_delta(&mut self, _delta: &mut Block) {}
    /// What goes into the hash of what must be alike on both sides of triples, and that hash before.
    fn settled(&mut self, _alike: &MacHash, _sums: &[Block]) {}
    /// The hash of what must be alike: the garbler's before it pads it, the evaluator's after it saw that.
    fn alike(&mut self, _digest: &mut [u8; 32]) {}
    /// The MACs whose hash the garbler is about to show, and the digest that they are of, once it knows whether the
    /// evaluator's was right.
    fn second(&mut self, _right: bool, _macs: &mut [Block], _digest: &mut [u8; 32]) {}
    /// What shows the peer that it is alike.
    fn proof(&mut self, _proof: &mut [u8; 32]) {}
    /// What the garbler opens its commitment to: its random bytes.
    fn opened_commitment(&mut self, _message: &mut [u8; 32]) {}
    /// The own shares of d of some triples.
    fn products(&mut self, _bits: &mut BitVec) {}
    /// The shifts of the rows that a check was for, which are known by then.
    fn shifts(&mut self, _shifts: &[usize]) {}
    /// Own shares that are opened.
    fn opened(&mut self, _bits: &mut BitVec) {}
    /// The hash of the own MACs of what was opened.
    fn mac_digest(&mut self, _digest: &mut [u8; 32]) {}
    /// The masks of all gates before anything is garbled or evaluated.
    fn gate_masks(&mut self, _gates: &mut GatesMut<'_>) {}
    /// Own shares of outputs' masks and the hash of their MACs.
    fn shown(&mut self, _bits: &mut BitVec, _digest: &mut [u8; 32]) {}

    /// The labels of all inputs, the garbler's first.
    fn input_labels(&mut self, _labels: &mut [Block]) {}
    /// The tables of a piece, and the bits that results are read with.
    fn tables(&mut self, _delta: Block, _tables: &mut [Block], _colours: &mut BitVec) {}
    /// The masked values of a piece's results, as the garbler receives them.
    fn returned(&mut self, _results: &BitVec) {}
    /// The hash of the garbler's MACs of what must be zero of every gate.
    fn gates_digest(&mut self, _digest: &mut [u8; 32]) {}

    /// Whether what the peer showed is right: a cheater goes on whatever it saw.
    fn checked(&mut self, right: &mut bool) {
        *right = true;
    }
    /// The masked values of the results of a piece's gates.
    fn results(&mut self, _results: &mut BitVec) {}
    /// The hash of the labels of all gates' results.
    fn labels_digest(&mut self, _digest: &mut [u8; 32]) {}
}

/// Whether the party goes on after a check that came out as `right`: if it did, but for a cheater of the
/// tests.
pub(super) fn passes(right: subtle::Choice) -> bool {
    let mut right = bool::from(right);
    deviate(|script| script.checked(&mut right));
    right
}

/// Lets the script of the party on this thread make its change: none but in tests.
#[cfg(not(test))]
#[inline(always)]
pub(super) fn deviate(_change: impl FnOnce(&mut dyn Script)) {}

#[cfg(test)]
pub(super) use thread::{deviate, scripted};

#[cfg(test)]
mod thread {
    use super::Script;
    use std::cell::RefCell;

    thread_local! {
        static SCRIPT: RefCell<Option<Box<dyn Script>>> = const { RefCell::new(None) };
    }

    /// Lets the script of the party on this thread, if it has one, make its change.
    pub(crate) fn deviate(change: impl FnOnce(&mut dyn Script)) {
        SCRIPT.with_borrow_mut(|script| {
            if let Some(script) = script {
                change(&mut **script);
            }
        });
    }

    /// Runs a party on this thread with `script` at its side.
    pub(crate) fn scripted<T>(script: Option<Box<dyn Script>>, party: impl FnOnce() -> T) -> T {
        SCRIPT.set(script);
        let result = party();
        SCRIPT.set(None);
        result
    }
}
