//! How a command talks to its user: results, progress, files, faults, and options that commands share.
#![forbid(unsafe_code)]
// They panic where nobody reads any more: `say` and `Context::result` do not.
#![deny(clippy::print_stderr, clippy::print_stdout)]

pub mod fault;
pub mod files;
pub mod log;
pub mod machine;
pub mod options;
mod os;
pub mod output;
pub mod progress;

use progress::Progress;
use std::io::{self, Write};
use tacit::{Error, Result};

/// What standard output is called in an error.
const STDOUT: &str = "standard output";

/// One line on standard error, dropped where it cannot be written: what has nobody who reads it is no reason to
/// end a run.
pub fn say(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}

/// One line on standard output, as it is.
pub fn print(line: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).map_err(|e| stdout_fault(&e))
}

/// The error of a write to standard output.
pub fn stdout_fault(source: &io::Error) -> Error {
    stream_fault(STDOUT, source)
}

fn stream_fault(name: &str, source: &io::Error) -> Error {
    let remedy = match source.kind() {
        _ if os::is_reader_gone(source) => "is the reader of the pipe gone?",
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            "free space on its disk, or choose another one"
        }
        _ => "is it open and writable?",
    };
    Error::Other(format!("{name}: cannot be written ({source}); {remedy}"))
}

/// How this run talks to the user.
#[derive(Clone, Copy, Debug)]
pub struct Context {
    /// Results as JSON, one object a line.
    pub json: bool,
    /// How progress is shown.
    pub progress: progress::Mode,
    /// Standard output carries an output file: results go to standard error.
    pub stdout_taken: bool,
    /// Whether the user wants to know how it goes: see [`detail`](Self::detail).
    pub verbose: bool,
}

impl Context {
    /// Prints one result: the object with `--json`, else the text.
    pub fn result(&self, object: &serde_json::Value, text: &str) -> Result<()> {
        let line = if self.json { object.to_string() } else { text.to_owned() };
        let (mut out, name): (Box<dyn Write>, _) = match self.stdout_taken {
            false => (Box::new(io::stdout().lock()), STDOUT),
            true => (Box::new(io::stderr().lock()), "standard error"),
        };
        writeln!(out, "{line}").and_then(|()| out.flush()).map_err(|e| stream_fault(name, &e))
    }

    /// Whether the user wants notes: not where the mode is silent or quiet.
    pub fn has_notes(&self) -> bool {
        !matches!(self.progress, progress::Mode::Silent | progress::Mode::Quiet)
    }

    /// Tells the user something on standard error that can be missed: see [`has_notes`](Self::has_notes).
    pub fn note(&self, text: &str) {
        if self.has_notes() {
            say(text);
        }
    }

    /// Tells the user on standard error that a result is not what it seems, in a quiet run as well; with `--json` the
    /// object says so.
    pub fn warn(&self, text: &str) {
        if !self.json {
            say(text);
        }
    }

    /// Tells how the run goes, at the level that the user asks for with `--verbose`; see [`log`].
    pub fn detail(&self, text: &str) {
        tracing::debug!(target: "tacit", "{text}");
    }

    /// A progress display of `total` steps called `unit`.
    pub fn progress(&self, label: &str, total: u64, unit: &'static str) -> Progress {
        Progress::new(self.progress, label, total, unit).verbose(self.verbose)
    }
}
