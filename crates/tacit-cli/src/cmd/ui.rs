//! `tacit ui`: a page for people who do not type commands.

use crate::cli::Context;
use crate::cli::output::name;
use serde_json::json;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tacit::{Error, Result};
use tacit_console::fault;
use tacit_ui::Ui;

const AFTER: &str = "\
Examples:
  tacit ui
  tacit ui --listen 127.0.0.1:7790 --folder work/tacit-ui

It prints an address for your browser, with a random token: whoever has the address can do what you can do \
with this command, so do not pass it on. The page answers only on this machine, loads nothing from elsewhere, \
and shows each command that it runs. Your keys, dropped files and results are in --folder, which only you can \
read. Closing the page ends nothing; Ctrl-C here ends the page and all that it started.";

/// Opens a page for people who do not type commands, on this machine.
#[derive(clap::Args)]
#[command(after_help = AFTER)]
pub(crate) struct Args {
    /// The address of this machine that the page is at; port 0 takes any free one
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:7790")]
    listen: String,
    /// The directory for keys, dropped files and results; created if it does not exist
    #[arg(long, value_name = "DIR", default_value = "tacit-ui")]
    folder: PathBuf,
}

pub(super) fn run(args: Args, context: &Context) -> Result<()> {
    let command = std::env::current_exe();
    let command = command.map_err(|e| Error::Other(format!("cannot find the command itself: {e}")))?;
    let over = Arc::new(AtomicBool::new(false));
    let end = over.clone();
    fault::on_signals(move || end.store(true, Ordering::SeqCst))
        .map_err(|e| Error::Other(format!("signals cannot be received: {e}")))?;
    let page = Ui::open(&args.listen, &args.folder, command)?;
    let text = format!(
        "open this address in your browser:\n  {}\nkeys, files and results are in {}; Ctrl-C ends the page",
        page.link(),
        name(page.folder())
    );
    context.result(&json!({ "name": "ui", "address": page.link(), "folder": page.folder() }), &text)?;
    fault::outlive_panics();
    page.serve(&over)
}
