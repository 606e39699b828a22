//! What P2 does between its receives, which P1 can time: noted in tests, where it must be the same for all
//! evaluation sets and inputs.

/// A kind of work whose amount a party could be timed by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Work {
    /// Blocks hashed.
    Hash,
    /// Blocks encrypted or expanded.
    Cipher,
    /// Gates garbled, times copies.
    Garble,
    /// Gates evaluated, times copies.
    Evaluate,
    /// Blocks copied or compared.
    Move,
    /// Points multiplied or decoded.
    Group,
    /// Gates computed in the clear.
    Compute,
}

/// Notes work of the party on this thread.
#[cfg(not(test))]
#[inline(always)]
pub(super) fn note(_work: Work, _amount: usize) {}

#[cfg(test)]
pub(super) use noted::{clock, note, start};

#[cfg(test)]
mod noted {
    use super::Work;
    use std::cell::RefCell;

    thread_local! {
        /// The party's virtual time, if this thread has one.
        static CLOCK: RefCell<Option<u64>> = const { RefCell::new(None) };
    }

    /// Moves this thread's virtual time on. Each kind has a weight of its own, so that no two amounts of work
    /// are the same by chance.
    pub(crate) fn note(work: Work, amount: usize) {
        let weight = [1, 1_009, 1_000_003, 2_000_029, 11, 100_000_007, 100_003][work as usize];
        CLOCK.with_borrow_mut(|clock| clock.iter_mut().for_each(|clock| *clock += weight * amount as u64));
    }

    /// Begins this thread's virtual time.
    pub(crate) fn start() {
        CLOCK.set(Some(0));
    }

    /// This thread's virtual time.
    pub(crate) fn clock() -> u64 {
        CLOCK.with_borrow(|clock| clock.unwrap_or_default())
    }
}
