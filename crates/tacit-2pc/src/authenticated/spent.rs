//! Whether a session has failed.

use super::usage;
use crate::{Error, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether a check of a session failed, or anything else that leaves the two sides out of step: a party that
/// cheated may have learnt a bit of a Δ, which then serves no more.
#[derive(Clone, Default)]
pub(super) struct Spent(Arc<AtomicBool>);

impl Spent {
    /// Refuses to begin a step after a failure.
    pub(super) fn check(&self) -> Result<()> {
        match self.0.load(Ordering::Acquire) {
            true => usage("the session failed before; set up a new one"),
            false => Ok(()),
        }
    }

    /// Hands on a step's `result`, and takes note of a failure; a step that is refused for its arguments has not
    /// begun. A step that passed gives nothing if another one failed while it was on its way.
    pub(super) fn record<T>(&self, result: Result<T>) -> Result<T> {
        let failed = result.as_ref().is_err_and(|error| !matches!(error, Error::Usage { .. }));
        self.0.fetch_or(failed, Ordering::AcqRel);
        if result.is_ok() {
            self.check()?;
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_that_passed_gives_nothing_once_another_has_failed() {
        let spent = Spent::default();
        assert!(spent.record(Ok(1)).is_ok());
        assert!(usage::<()>("an argument").is_err_and(|error| spent.record::<()>(Err(error)).is_err()));
        assert!(spent.record(Ok(1)).is_ok(), "a step that was refused has not failed");
        let other = spent.clone();
        assert!(other.record::<()>(Err(Error::Cheated { protocol: "test", what: "a check" })).is_err());
        assert!(spent.record(Ok(1)).is_err());
    }
}
