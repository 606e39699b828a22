//! Whether one of the streams of a setup has failed.

use crate::{Error, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A mark that all streams of one setup share: when one has failed, none of them goes on.
#[derive(Clone, Default)]
pub(crate) struct Spent(Arc<AtomicBool>);

impl Spent {
    /// Marks a failure: of a check, or of the link, which leaves the two sides out of step.
    pub(crate) fn set(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// [`set`](Self::set), if `result` is a failure.
    pub(crate) fn record<T>(&self, result: &Result<T>) {
        if result.is_err() {
            self.set();
        }
    }

    /// Refuses to begin a step of `protocol` after a failure.
    pub(crate) fn check(&self, protocol: &'static str) -> Result<()> {
        if self.0.load(Ordering::Acquire) { Err(Error::Spent(protocol)) } else { Ok(()) }
    }
}
