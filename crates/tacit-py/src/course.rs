//! A job on a thread of its own: the interpreter goes on, hears of progress, and can end the job.

use crate::fault;
use pyo3::prelude::*;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;
use tacit::Result;
use tacit::job::{Observer, Step};
use tacit_net::{Cancel, Event};

/// How often the interpreter looks for signals and hears of progress.
const TICK: Duration = Duration::from_millis(50);

/// What a job's thread leaves for the interpreter: the last step, and lines for the log.
#[derive(Clone, Default)]
pub struct Desk(Arc<Mutex<Notes>>);

#[derive(Default)]
struct Notes {
    step: Option<Step>,
    lines: Vec<(&'static str, String)>,
}

impl Desk {
    fn take(&self) -> Notes {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Keeps what happened while the two sides met.
    pub fn note(&self, event: &Event) {
        let line = match event {
            Event::Waiting { address, proof, waited, obstacle, .. } => {
                let obstacle = obstacle.as_ref().map_or(String::new(), |met| format!("; last: {met}"));
                let text = format!("waiting for the peer ({proof}) at {address} for {waited:.0?}{obstacle}");
                ("debug", text)
            }
            Event::Stranger { from, what, .. } => {
                ("warning", format!("turned away a caller from {from}: {what}"))
            }
            Event::Opened { proof, tls, .. } => {
                let tls = tls.as_ref().map_or(String::new(), |(group, suite)| format!(", {group}, {suite}"));
                ("info", format!("met the peer ({proof}{tls})"))
            }
            _ => return,
        };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).lines.push(line);
    }
}

impl Observer for Desk {
    fn step(&self, step: &Step) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).step = Some(*step);
    }
}

/// Who is told in Python: a logger, and what is called with each step.
pub(crate) struct Listener {
    logger: Py<PyAny>,
    progress: Option<Py<PyAny>>,
}

impl Listener {
    pub(crate) fn new(py: Python<'_>, progress: Option<Py<PyAny>>) -> PyResult<Self> {
        let logger = py.import("logging")?.call_method1("getLogger", ("tacit",))?.unbind();
        Ok(Listener { logger, progress })
    }

    fn tell(&self, py: Python<'_>, notes: Notes) -> PyResult<()> {
        for (level, line) in notes.lines {
            self.logger.call_method1(py, level, (line,))?;
        }
        if let (Some(progress), Some(step)) = (&self.progress, notes.step) {
            progress.call1(py, (step.phase, step.done, step.total, step.unit, step.fraction, step.bytes))?;
        }
        Ok(())
    }
}

/// Runs `job` on a thread of its own until it ends, or the interpreter has a signal or an exception of
/// `listener`. Either of these ends the session of `cancel`; the thread then ends at its next message, and
/// what it holds is dropped with it.
pub(crate) fn run<T: Send + 'static>(
    py: Python<'_>,
    listener: &Listener,
    desk: &Desk,
    cancel: &Cancel,
    job: impl FnOnce(&Desk) -> Result<T> + Send + 'static,
) -> PyResult<T> {
    let (done, result) = channel();
    let theirs = desk.clone();
    let worker = thread::Builder::new().name("tacit-job".to_owned()).spawn(move || {
        // Nobody waits for it any more once the interpreter was interrupted.
        let _ = done.send(job(&theirs));
    });
    worker?;
    let outcome = wait(py, listener, desk, result);
    if outcome.is_err() {
        cancel.interrupt();
    }
    outcome?.map_err(|error| fault::raise(py, &error))
}

fn wait<T: Send>(
    py: Python<'_>,
    listener: &Listener,
    desk: &Desk,
    result: Receiver<Result<T>>,
) -> PyResult<Result<T>> {
    // One thread at a time looks into a receiver; the lock shows that to the compiler.
    let result = Mutex::new(result);
    loop {
        let next = py.detach(|| result.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(TICK));
        listener.tell(py, desk.take())?;
        py.check_signals()?;
        match next {
            Ok(outcome) => return Ok(outcome),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Err(fault::internal("the job's thread broke off")),
        }
    }
}
