//! `tacit serve`: a service that answers requests by the rules of a policy file.

use crate::cli::output::name;
use crate::cli::{Context, fault};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use tacit::crypto::text::{counted, escaped};
use tacit::{Error, Result};
use tacit_console::log::{self, Form, Level};
use tacit_console::machine::available_memory;
use tacit_serve::check::{self, Checked};
use tacit_serve::clock::Time;
use tacit_serve::http::Port;
use tacit_serve::ledger::ACCEPT;
use tacit_serve::policy::{Policy, explain};
use tacit_serve::server::{self, Setup, Signal};

const AFTER: &str = "\
Examples:
  tacit serve --policy policy.toml --check
  tacit serve --policy policy.toml

The policy sets which runs each peer may ask for, when, how often, and how much all runs together may \
reveal to one peer; docs/serve.md lists every setting. A spent budget stays spent: the ledger in the \
policy's state directory records it, and a run is charged there before it starts.

SIGHUP reloads the policy: a file with a problem changes nothing, and runs keep the rules under which \
they started. After SIGTERM nothing new starts, and the service stops when all runs have ended; a second \
one aborts them. --dashboard serves a page at http://127.0.0.1:7780/, or at a given address; from another \
machine through `ssh -L 7780:127.0.0.1:7780`. The log goes to standard error, or with --json to standard \
output, one object per line.";

/// How the command accepts a ledger.
const ACCEPTED: &str = "start once with --accept-ledger";
/// Where the page is unless an address is given.
const DASHBOARD: &str = "127.0.0.1:7780";

/// Runs a service that answers requests for intersections by the rules of a policy file.
#[derive(clap::Args)]
#[command(after_help = AFTER)]
pub(crate) struct Args {
    /// The rules, in TOML
    #[arg(long, value_name = "FILE")]
    policy: PathBuf,
    /// Checks the policy and its tables, prints what it allows and for how many runs its budgets last, and
    /// starts nothing
    #[arg(long)]
    check: bool,
    /// Answers GET /metrics (for Prometheus) and GET /healthz over HTTP at this address of this machine
    #[arg(long, value_name = "ADDR", conflicts_with = "check")]
    metrics: Option<String>,
    /// Shows the operator a page at this address of this machine: runs, peers, budgets, refusals, records
    #[arg(
        long,
        value_name = "ADDR",
        num_args = 0..=1,
        default_missing_value = DASHBOARD,
        conflicts_with = "check"
    )]
    dashboard: Option<String>,
    /// Continues with a ledger that lacks runs of the records: charges them again if the records have their
    /// charge, and logs those that it could not charge
    #[arg(long, conflicts_with = "check")]
    accept_ledger: bool,
    /// The lowest level that is logged; with --verbose everything
    #[arg(long, value_enum, value_name = "LEVEL", default_value = "info")]
    log_level: Level,
}

pub(super) fn run(args: Args, context: &Context) -> Result<()> {
    let form = if context.json { Form::Json(*context) } else { Form::Text };
    log::install(if context.verbose { Level::Debug } else { args.log_level }, form);
    let policy = Policy::load(&args.policy).map_err(|unfit| {
        if let lines @ [_, _, ..] = unfit.lines().as_slice() {
            lines.iter().for_each(|line| tacit_console::say(&escaped(line)));
        }
        Error::from(unfit)
    })?;
    if args.check {
        return examine(&args.policy, &policy, context);
    }
    let bind = |name, address: &Option<String>| {
        address.as_deref().map(|address| Port::bind(name, address)).transpose()
    };
    let (metrics, dashboard) = (bind("metrics", &args.metrics)?, bind("dashboard", &args.dashboard)?);
    let signals = signals()?;
    fault::outlive_panics();
    server::serve(
        policy,
        Setup {
            path: args.policy,
            log: Box::new(|_| ()),
            available: available_memory,
            clock: Box::new(Time::now),
            signals,
            metrics,
            dashboard,
            accept_ledger: args.accept_ledger,
        },
    )
    .map_err(by_option)
}

/// Where the ledger may be accepted as it is, by which option.
fn by_option(error: Error) -> Error {
    match error {
        Error::Input(what) => Error::Input(what.replace(ACCEPT, ACCEPTED)),
        other => other,
    }
}

/// Says what a policy allows, and how far its budgets go with the tables as they are now.
fn examine(file: &Path, policy: &Policy, context: &Context) -> Result<()> {
    let allows = explain(policy);
    let Checked { lines, warnings, faults } = check::examine(policy, Time::now());
    let faults: Vec<String> = faults.iter().map(|fault| placed(file, fault)).collect();
    let told = warnings.iter().map(|warning| format!("warning: {warning}"));
    // Names of a policy and of its tables, of which none steers a terminal.
    let text: Vec<String> =
        allows.iter().chain(&lines).cloned().chain(told).map(|line| escaped(&line)).collect();
    let object = json!({
        "name": "serve check", "allows": allows, "tables": lines, "warnings": warnings, "faults": faults,
    });
    context.result(&object, &text.join("\n"))?;
    match faults.as_slice() {
        [] => Ok(()),
        [only] => Err(by_option(Error::Input(only.clone()))),
        all => {
            all.iter().for_each(|fault| tacit_console::say(&escaped(&fault.replace(ACCEPT, ACCEPTED))));
            Err(Error::Input(format!("{}: {}, listed above", name(file), counted(all.len(), "problem"))))
        }
    }
}

/// A fault of a table or a job, with the line of the policy where that begins.
fn placed(file: &Path, fault: &str) -> String {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let title = fault.split_inclusive(']').next().filter(|title| title.starts_with('['));
    let line = title.and_then(|title| text.lines().position(|line| line.trim_start().starts_with(title)));
    line.map_or_else(|| fault.to_owned(), |line| format!("{}, line {}: {fault}", name(file), line + 1))
}

/// What signals of the system mean to a service.
fn signals() -> Result<mpsc::Receiver<Signal>> {
    let fault = |e: std::io::Error| Error::Other(format!("signals cannot be received: {e}"));
    let (send, receive) = mpsc::channel();
    let listen = listener(send).map_err(fault)?;
    std::thread::Builder::new().name("tacit-signals".to_owned()).spawn(listen).map_err(fault)?;
    Ok(receive)
}

#[cfg(unix)]
fn listener(send: mpsc::Sender<Signal>) -> std::io::Result<impl FnOnce() + Send> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let mut signals = signal_hook::iterator::Signals::new([SIGHUP, SIGINT, SIGTERM])?;
    Ok(move || {
        for signal in signals.forever() {
            let meaning = if signal == SIGHUP { Signal::Reload } else { Signal::Drain };
            if send.send(meaning).is_err() {
                return;
            }
        }
    })
}

/// Where there is no SIGHUP, a policy is read again by a restart. Ctrl-C, Ctrl-Break and the end of the user's session
/// stop the service.
#[cfg(not(unix))]
fn listener(send: mpsc::Sender<Signal>) -> std::io::Result<impl FnOnce() + Send> {
    fault::on_signals(move || _ = send.send(Signal::Drain))?;
    Ok(|| {})
}
