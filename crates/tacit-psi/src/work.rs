//! What a party works at between two messages. Nothing outside tests: there the work of each kind moves a
//! virtual clock on, by which tests see whether a peer could tell from the pace what it should not know.

/// What is done.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    Hashed,
    Tagged,
    Held,
    LookedUp,
    Merged,
    Marked,
    Listed,
    Moved,
    Sealed,
    Opened,
    Read,
    Proved,
    Multiplied,
    Asked,
    Answered,
    Sought,
}

#[cfg(test)]
thread_local! {
    /// The time of the party on this thread.
    static CLOCK: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// Moves time on. Each kind has a weight of its own, so that no two courses of work take the same by chance.
#[inline(always)]
pub(crate) fn done(kind: Kind, amount: usize) {
    #[cfg(test)]
    {
        let kind = kind as u32;
        CLOCK.set(CLOCK.get() + 1_009u64.pow(kind % 4) * (1 + u64::from(kind)) * (1 + amount as u64));
    }
    #[cfg(not(test))]
    let _ = (kind, amount);
}

/// The time of the party on this thread.
#[cfg(test)]
pub(crate) fn clock() -> u64 {
    CLOCK.get()
}
