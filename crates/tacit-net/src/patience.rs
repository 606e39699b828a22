//! How long a channel waits: for a byte, for a receive, for a message.

use crate::{Error, Result};
use std::time::{Duration, Instant};

/// Bytes a second that a message under way must move, or it [drips](crate::Limits::idle).
pub const SLOWEST: u64 = 1 << 12;
/// How many times [`Limits::idle`](crate::Limits::idle) the receives or sends of one message may wait in all.
const WHOLE_MESSAGE: u32 = 10;

/// When everything on a channel has to be over, if ever, and how long that was from where it was said.
#[derive(Clone, Copy, Default)]
pub(crate) struct End(Option<(Instant, Duration)>);

impl End {
    /// After so much time from now on.
    pub(crate) fn within(whole: Duration) -> Self {
        End(Instant::now().checked_add(whole).map(|at| (at, whole)))
    }

    /// The time that is left; nothing where there is no end.
    pub(crate) fn left(&self) -> Result<Option<Duration>> {
        let Some((at, after)) = self.0 else { return Ok(None) };
        match at.saturating_duration_since(Instant::now()) {
            Duration::ZERO => Err(Error::Overtime { after }),
            left => Ok(Some(left)),
        }
    }
}

/// One receive under way: since when it waits, and how far it is.
pub(crate) struct Progress {
    pub start: Option<Instant>,
    pub wanted: usize,
    pub filled: usize,
}

/// What one message has taken so far: what passed one way since the last byte passed the other way.
#[derive(Default)]
pub(crate) struct Spell {
    pub waited: Duration,
    pub bytes: u64,
}

/// The time that so many bytes may take.
pub(crate) fn slowest(bytes: u64) -> Duration {
    Duration::from_millis(bytes.saturating_mul(1000) / SLOWEST)
}

impl Spell {
    /// How long the message may still wait.
    pub(crate) fn left(&self, idle: Duration) -> Duration {
        idle.saturating_mul(WHOLE_MESSAGE).saturating_add(slowest(self.bytes)).saturating_sub(self.waited)
    }
}

impl Progress {
    pub(crate) fn of(wanted: usize) -> Self {
        Progress { start: None, wanted, filled: 0 }
    }
}
