//! Where the tests' cheaters leave the protocol.
//!
//! At the steps of figures 3 and 4 a party lets [`deviate`] change what it is about to use or to send.
//! Outside the crate's own tests that does nothing, and no signature knows of it. In a test, the script that
//! [`scripted`] puts at the side of the party on this thread makes its change.

use super::probe::ProbeMatrix;
use super::secrets::Hidden;
use tacit_crypto::group::Encoding;
use tacit_crypto::{BitVec, Block};

/// Changes to what a party computes, at the steps of figures 3 and 4; none, where a script says nothing.
/// Lanes are the garbled copies.
pub(super) trait Script {
    /// Step 1: the pairs (key_j, seed_j) that go into the OT.
    fn keys(&mut self, _pairs: &mut [[Block; 2]]) {}
    /// Step 2: the labels of encoded input `i`, for 0 and for 1, of every copy.
    fn evaluator_labels(&mut self, _i: usize, _zero: &mut [Block], _one: &mut [Block]) {}
    /// Step 3: R of P1's input `i` in every copy.
    fn masked_input(&mut self, _i: usize, _r: &mut [Block]) {}
    /// Step 4: the pairs (R, A) of P1's input `i` that the commitments of every copy hold, the label of
    /// colour 0 first.
    fn committed(&mut self, _i: usize, _pairs: &mut [[(Block, Block); 2]]) {}
    /// Step 4: the labels that are opened for P1's input `i`.
    fn opened(&mut self, _i: usize, _deltas: &[Block], _labels: &mut [Block]) {}
    /// Step 5: the zero-labels of P1's input `i` that garbling starts from.
    fn garbled_input(&mut self, _i: usize, _deltas: &[Block], _labels: &mut [Block]) {}
    /// Step 5: garbled tables, gate by gate, in a gate copy by copy.
    fn tables(&mut self, _lanes: usize, _tables: &mut [Block]) {}
    /// Step 5: whether another piece of tables goes before P2's opening is taken.
    fn early(&mut self, _more: &mut bool) {}
    /// Step 5, coded transfer: the combinations of a piece's tables.
    fn combination(&mut self, _combinations: &mut [Block]) {}
    /// Step 5: the commitments to the copies' garbled tables.
    fn table_hashes(&mut self, _hashes: &mut [[u8; 32]]) {}
    /// Step 5: a piece of what travels of the tables, all of which are committed to.
    fn sent(&mut self, _message: &mut [Block]) {}
    /// Step 5: copy `j`'s table T, before it is committed to.
    fn output_table(&mut self, _j: usize, _kind: Hidden, _table: &mut [Block]) {}
    /// Step 5: copy `j`'s commitment to T.
    fn table_commitment(&mut self, _j: usize, _commitment: &mut [u8; 32]) {}
    /// Step 5: the tokens Δ_{i,0} and Δ_{i,1}.
    fn tokens(&mut self, _tokens: &mut [[Block; 2]]) {}
    /// Step 5: the hashes of the tokens of P1's outputs.
    fn returned_hashes(&mut self, _hashes: &mut [[[u8; 32]; 2]]) {}
    /// Step 7: Δ and {Δ_{i,0}} as they are revealed.
    fn revealed(&mut self, _delta: &mut Block, _tokens: &mut [Block]) {}
    /// Step 7: C_j and Enc_{D_j}(seed_j).
    fn recovery(&mut self, _c: &mut [Encoding], _seeds: &mut [Block]) {}
    /// After step 8: the tokens of P1's outputs as they are revealed.
    fn revealed_returned(&mut self, _tokens: &mut [[Block; 2]]) {}

    /// Before all: what both parties of a test change alike, to see what it is there for.
    fn terms(&mut self, _matrix: &mut ProbeMatrix, _opening_checks: &mut usize) {}
    /// Step 1: P2's evaluation set.
    fn evaluated(&mut self, _set: &mut BitVec) {}
    /// Step 3: the offset that P2 opens M with, and the rows by which it proves it.
    fn opening(&mut self, _offset: &mut Block, _rows: &mut [Block]) {}
    /// Step 7: whether P2 claims to know Δ, and as what.
    fn omega(&mut self, _known: &mut bool, _omega: &mut Block) {}
    /// Step 8: the seeds that P2 decrypts for its evaluation copies.
    fn decrypted(&mut self, _seeds: &[Block]) {}
    /// Step 9: the tokens that P2 returns for P1's outputs.
    fn returned(&mut self, _tokens: &mut [Block]) {}
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
    use std::rc::Rc;

    thread_local! {
        static SCRIPT: RefCell<Option<Rc<RefCell<dyn Script>>>> = const { RefCell::new(None) };
    }

    /// Lets the script of the party on this thread, if it has one, make its change.
    pub(crate) fn deviate(change: impl FnOnce(&mut dyn Script)) {
        if let Some(script) = SCRIPT.with_borrow(Clone::clone) {
            change(&mut *script.borrow_mut());
        }
    }

    /// Runs a party on this thread with `script` at its side, which has noted what it saw when this returns.
    pub(crate) fn scripted<S: Script + Default + 'static, T>(script: &mut S, party: impl FnOnce() -> T) -> T {
        let shared = Rc::new(RefCell::new(std::mem::take(script)));
        let before = SCRIPT.replace(Some(shared.clone()));
        assert!(before.is_none(), "one script a party");
        let result = party();
        SCRIPT.set(None);
        *script = shared.take();
        result
    }
}
