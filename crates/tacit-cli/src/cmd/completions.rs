//! `tacit completions`: what a shell needs to complete the command's words.

use crate::cli::Context;
use clap_complete::Shell;
use std::io::Write;
use tacit::Result;

const AFTER: &str = "\
Examples:
  tacit completions bash > ~/.local/share/bash-completion/completions/tacit
  tacit completions zsh > \"${fpath[1]}/_tacit\"
  tacit completions fish > ~/.config/fish/completions/tacit.fish";

/// Prints a script that completes the command's words in a shell.
#[derive(clap::Args)]
#[command(after_help = AFTER)]
pub(crate) struct Args {
    /// The shell
    #[arg(value_name = "SHELL", value_enum)]
    shell: Shell,
}

pub(super) fn run(args: Args, _: &Context) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut crate::command(), "tacit", &mut script);
    let mut out = std::io::stdout().lock();
    let fault = |e| tacit_console::stdout_fault(&e);
    out.write_all(&script).and_then(|()| out.flush()).map_err(fault)
}
