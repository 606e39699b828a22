//! Ending a session's waiting from another thread.

use crate::{Error, Result};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

/// Ends the session that it is given to (as [`Options::cancel`](crate::Options::cancel)): waiting for the
/// peer, connecting, and every send and receive of its channels, whose connections are closed.
///
/// The peer notices by the end of its connection, and after [`interrupt`](Self::interrupt) by a reason as well. Copies
/// end the same session; one that was never [`armed`](Self::armed) ends nothing and costs nothing.
#[derive(Clone, Default, Debug)]
pub struct Cancel(Option<Arc<State>>);

#[derive(Default, Debug)]
struct State {
    cancelled: AtomicBool,
    streams: Mutex<Vec<Weak<TcpStream>>>,
}

/// How late a wait that no connection ends hears of it, at most.
const LATENESS: Duration = Duration::from_millis(50);

impl Cancel {
    /// One that can end a session.
    pub fn armed() -> Self {
        Cancel(Some(Arc::default()))
    }

    /// Ends the session, for good: what uses it later ends at once.
    pub fn cancel(&self) {
        self.end(Shutdown::Both);
    }

    /// As [`cancel`](Self::cancel), but the thread that uses the session still tells the peer why it ends, if it
    /// gives [`Cause::Interrupted`](crate::Cause::Interrupted) to [`Session::stop`](crate::Session::stop).
    pub fn interrupt(&self) {
        // Elsewhere a wait does not hear of an end of reading alone.
        self.end(if cfg!(unix) { Shutdown::Read } else { Shutdown::Both });
    }

    fn end(&self, how: Shutdown) {
        let Some(state) = &self.0 else { return };
        state.cancelled.store(true, Ordering::SeqCst);
        let mut streams = state.streams.lock().unwrap_or_else(PoisonError::into_inner);
        for stream in streams.drain(..).filter_map(|stream| stream.upgrade()) {
            // One that is gone already needs no closing.
            let _ = stream.shutdown(how);
        }
    }

    /// Whether [`cancel`](Self::cancel) was called.
    pub fn is_cancelled(&self) -> bool {
        self.0.as_ref().is_some_and(|state| state.cancelled.load(Ordering::SeqCst))
    }

    /// An error if it was.
    pub(crate) fn check(&self) -> Result<()> {
        if self.is_cancelled() { Err(Error::Cancelled) } else { Ok(()) }
    }

    /// Closes `stream` with the session, if it is still there then.
    pub(crate) fn watch(&self, stream: &Arc<TcpStream>) -> Result<()> {
        if let Some(state) = &self.0 {
            let mut streams = state.streams.lock().unwrap_or_else(PoisonError::into_inner);
            streams.retain(|stream| stream.strong_count() > 0);
            streams.push(Arc::downgrade(stream));
            drop(streams);
            // Whoever cancelled between the two took the list without it.
            if self.is_cancelled() {
                self.cancel();
            }
        }
        self.check()
    }

    /// The pause after which a wait of `pause` must [`check`](Self::check) again.
    pub(crate) fn pause(&self, pause: Duration) -> Duration {
        if self.0.is_some() { pause.min(LATENESS) } else { pause }
    }

    /// `error`, or that the session was cancelled where that caused it.
    pub(crate) fn cause(&self, error: Error) -> Error {
        if self.is_cancelled() { Error::Cancelled } else { error }
    }
}
