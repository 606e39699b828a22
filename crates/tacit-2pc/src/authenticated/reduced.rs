//! Sizes that tests make smaller, so that what passes once in 2^40 times passes often enough to be counted.
//!
//! Outside the crate's own tests nothing is, and no code is left of it.

/// What is smaller for the party on this thread: nothing, where it does not say.
#[derive(Clone, Copy, Default)]
pub(super) struct Reduced {
    /// Bits that count of the messages of leaky triples.
    pub(super) counted: Option<u32>,
    /// Buckets of a window, at least.
    pub(super) least: Option<usize>,
    /// Triples in a bucket.
    pub(super) bucket: Option<usize>,
    /// Rows of a window that are held at a time.
    pub(super) rows: Option<usize>,
    /// Whether as many batches are on the way as at first, however long one is waited for.
    pub(super) patient: bool,
}

/// What is smaller here.
#[cfg(not(test))]
#[inline(always)]
pub(super) fn reduced() -> Reduced {
    Reduced::default()
}

#[cfg(test)]
pub(super) use thread::{reduced, with_reduced};

#[cfg(test)]
mod thread {
    use super::Reduced;
    use std::cell::Cell;

    thread_local! {
        static REDUCED: Cell<Reduced> = const {
            Cell::new(Reduced { counted: None, least: None, bucket: None, rows: None, patient: false })
        };
    }

    /// What is smaller for the party on this thread.
    pub(crate) fn reduced() -> Reduced {
        REDUCED.get()
    }

    /// Runs a party on this thread with smaller sizes, which its peer must have as well.
    pub(crate) fn with_reduced<T>(sizes: Reduced, party: impl FnOnce() -> T) -> T {
        REDUCED.set(sizes);
        let result = party();
        REDUCED.set(Reduced::default());
        result
    }
}
