//! Whether one of the streams of a setup has failed.

use crate::{Error, Result};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A mark that all streams of one setup share: when one has failed, none of them goes on.
///
/// Checks of several streams may be open at the same time, and each is a guess at what the streams share. So
/// verdicts are passed one after the other ([`settle`](Self::settle)): after the first failed check no other
/// one passes, and a peer with T streams has the guesses of a peer with one.
#[derive(Clone, Default)]
pub(crate) struct Spent(Arc<Mutex<bool>>);

impl Spent {
    fn lock(&self) -> MutexGuard<'_, bool> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Marks a failure: of a check, or of the link, which leaves the two sides out of step.
    pub(crate) fn set(&self) {
        *self.lock() = true;
    }

    /// What a step of `protocol` ends with: a failure leaves the mark, and a success is none if another
    /// stream has left it meanwhile.
    pub(crate) fn record<T>(&self, protocol: &'static str, result: Result<T>) -> Result<T> {
        match result {
            Err(error) => {
                self.set();
                Err(error)
            }
            Ok(made) => self.check(protocol).map(|()| made),
        }
    }

    /// Passes the verdict of one check, which receives nothing and takes as long whether it passes or fails.
    ///
    /// The order of verdicts does not depend on any of them. Errors:
    /// `Spent` after a failure of any stream, else those of `verdict`, which leave the mark.
    pub(crate) fn settle<T>(&self, protocol: &'static str, verdict: impl FnOnce() -> Result<T>) -> Result<T> {
        let mut spent = self.lock();
        if *spent {
            return Err(Error::Spent(protocol));
        }
        // A verdict that panics has not passed.
        *spent = true;
        let result = verdict();
        *spent = result.is_err();
        result
    }

    /// Refuses to begin a step of `protocol` after a failure.
    pub(crate) fn check(&self, protocol: &'static str) -> Result<()> {
        if *self.lock() { Err(Error::Spent(protocol)) } else { Ok(()) }
    }
}
