//! How a command talks to its user: results, progress, files, faults, and options that commands share.
#![forbid(unsafe_code)]

pub mod fault;
pub mod files;
pub mod log;
pub mod machine;
pub mod options;
mod os;
pub mod output;
pub mod progress;

use progress::Progress;
use std::io::Write;
use tacit::{Error, Result};

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
            false => (Box::new(std::io::stdout().lock()), "standard output"),
            true => (Box::new(std::io::stderr().lock()), "standard error"),
        };
        writeln!(out, "{line}")
            .and_then(|()| out.flush())
            .map_err(|e| Error::Other(format!("{name}: {e}; is the reader of the pipe gone?")))
    }

    /// Tells the user something on standard error, unless the mode is silent or quiet.
    pub fn note(&self, text: &str) {
        if !matches!(self.progress, progress::Mode::Silent | progress::Mode::Quiet) {
            eprintln!("{text}");
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
