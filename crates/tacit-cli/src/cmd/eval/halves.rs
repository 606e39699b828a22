//! `tacit eval --offline` and `--online`: an evaluation in two halves, with a file between them.

use super::Args;
use crate::cli::Context;
use crate::cli::output::Output;
use crate::cmd::pool::key;
use serde_json::json;
use std::path::Path;
use std::time::Instant;
use tacit::job::eval::{Job, protocol_name};
use tacit::two_pc::Owner;
use tacit::two_pc::circuit::named;
use tacit::two_pc::wmk17::State;
use tacit::{Error, Result, security_name};

/// A fault of a state with the file's name in front.
pub(super) fn named(file: &Path, error: Error) -> Error {
    match error {
        Error::TwoPc(tacit::two_pc::Error::State(fault)) => {
            Error::Input(format!("{}: {fault}", file.display()))
        }
        other => other,
    }
}

/// Opens the state that --online names, for our side.
pub(super) fn open(args: &Args, path: &Path, role: Owner) -> Result<State> {
    let key = key(args.pool_key.as_deref(), args.peer.identity())?;
    let state = State::open(path, &key).map_err(|e| named(path, e.into()))?;
    if state.header().role != role {
        return Err(Error::Input(format!(
            "{}: the state is the {}'s; name the right file, or the other --role",
            path.display(),
            name(state.header().role)
        )));
    }
    Ok(state)
}

/// The name of a role.
pub(super) fn name(role: Owner) -> &'static str {
    match role {
        Owner::Garbler => "garbler",
        Owner::Evaluator => "evaluator",
    }
}

/// Runs `tacit eval --offline`.
pub(super) fn offline(
    args: &Args,
    path: &Path,
    function: &named::Function,
    job: &Job<'_>,
    context: &Context,
) -> Result<()> {
    let key = key(args.pool_key.as_deref(), args.peer.identity())?;
    let mut out = Output::create_secret(path)?;
    let session = args.peer.session(args.security, context)?;
    let start = Instant::now();
    let (header, stats) = session.prepare_evaluation(job, &key, &mut out).map_err(|e| named(path, e))?;
    out.commit()?;
    let wall = start.elapsed();
    let object = json!({
        "name": "eval",
        "mode": "offline",
        "function": function.name,
        "protocol": protocol_name(job.security),
        "security": security_name(job.security),
        "role": name(job.role),
        "and": job.function.circuit().stats().and,
        "file": path,
        "id": header.short_id(),
        "copies": header.copies.name(),
        "wall_ms": wall.as_secs_f64() * 1e3,
        "bytes_sent": stats.bytes_sent,
        "bytes_received": stats.bytes_received,
        "rounds": stats.rounds,
    });
    let text = format!(
        "state {} of {} ({} copies) made in {:.3} s; the {}'s half is in {}",
        header.short_id(),
        function.name,
        header.copies.name(),
        wall.as_secs_f64(),
        name(job.role),
        path.display()
    );
    context.result(&object, &text)
}
