//! Errors as the package's exceptions.

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use tacit::{Blame, Error, net};

/// The exception for `error`: its class says whose fault it is, `differences` how two sides' settings differ.
pub(crate) fn raise(py: Python<'_>, error: &Error) -> PyErr {
    let class = match (error, error.blame()) {
        _ if error.is_failed_check() => "Cheated",
        (Error::Net(net::Error::Mismatch { .. } | net::Error::Role { .. }), _) => "Mismatch",
        (_, Blame::Usage) => "UsageError",
        (_, Blame::Input) => "InputError",
        (_, Blame::Peer) => "PeerError",
        (_, Blame::Other) => "Error",
    };
    let differences = match error {
        Error::Net(net::Error::Mismatch { differences }) => &differences[..],
        _ => &[],
    };
    let list: Vec<_> = differences.iter().map(|one| (&one.setting, &one.ours, &one.theirs)).collect();
    let made = py.import("tacit.errors").and_then(|module| {
        let exception = module.getattr(class)?.call1((error.to_string(),))?;
        if class == "Mismatch" {
            exception.setattr("differences", list)?;
        }
        Ok(PyErr::from_value(exception))
    });
    made.unwrap_or_else(|other| other)
}

/// A fault of the caller.
pub(crate) fn usage(py: Python<'_>, what: impl Into<String>) -> PyErr {
    raise(py, &Error::Usage(what.into()))
}

/// A fault of the data that the caller gave.
pub(crate) fn input(py: Python<'_>, what: impl Into<String>) -> PyErr {
    raise(py, &Error::Input(what.into()))
}

/// What only a bug brings about.
pub(crate) fn internal(what: &str) -> PyErr {
    PyRuntimeError::new_err(format!("internal fault: {what}"))
}

/// A dictionary of what passed over the connection, and how long the job took.
pub(crate) fn passed<'py>(
    py: Python<'py>,
    stats: &net::Stats,
    seconds: Option<f64>,
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("bytes_sent", stats.bytes_sent)?;
    dict.set_item("bytes_received", stats.bytes_received)?;
    dict.set_item("rounds", stats.rounds)?;
    if let Some(seconds) = seconds {
        dict.set_item("seconds", seconds)?;
    }
    Ok(dict)
}
