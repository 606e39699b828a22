//! The command `tacit`: see `tacit help`.
#![forbid(unsafe_code)]
// They panic where nobody reads any more: `tacit_console::say` and `Context::result` do not.
#![deny(clippy::print_stderr, clippy::print_stdout)]

mod cli;
mod cmd;

use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches, Parser};
use cli::progress::Mode;
use cli::{Context, config, fault, files, output};
use std::path::PathBuf;
use tacit::{Error, Result};
use tacit_console::log;

const ABOUT: &str = "Two parties compute on data that neither may see";

const AFTER: &str = "\
Examples:
  tacit keygen --out alice.key
  tacit psi --listen 0.0.0.0:7700 --identity alice.key --peer bob.pub \\
      --input customers.csv --key email --result peer
  tacit psi --connect alice.example:7700 --identity bob.key --peer alice.pub \\
      --input kunden.csv --key email --result me --output both.csv
  tacit demo

Exit codes: 0 success, 1 anything not named here, 2 usage error, 3 bad local input,
  4 the peer's or the link's fault (a detected cheat included), 130 interrupted.
Results go to standard output, progress and errors to standard error.
A file given by --config holds any of these options in TOML; the command line wins.";

#[derive(Parser)]
#[command(name = "tacit", version, about = ABOUT, after_help = AFTER, max_term_width = 110)]
struct Cli {
    /// Prints every result as one JSON object a line
    #[arg(long, global = true)]
    json: bool,
    /// Shows no progress and no notes
    #[arg(long, short, global = true, overrides_with = "quiet")]
    quiet: bool,
    /// Tells on standard error how the run goes: kernels, handshake, phases with their times and bytes
    #[arg(long, short, global = true, overrides_with = "verbose")]
    verbose: bool,
    /// Lets outputs replace files that stand there, but never one that holds a key or serves once
    #[arg(long, global = true)]
    overwrite: bool,
    /// Takes options from a TOML file; see docs/configuration.md
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Progress as lines for a program
    #[arg(long, global = true, hide = true)]
    progress_lines: bool,
    #[command(subcommand)]
    command: cmd::Command,
}

fn main() {
    fault::install_hooks();
    if let Err(error) = run(&[]) {
        fault::exit_with(&error);
    }
}

/// Runs the command line with `more` at its end.
fn run(more: &[String]) -> Result<()> {
    let mut arguments = Vec::new();
    for argument in std::env::args_os() {
        arguments.push(argument.into_string().map_err(|raw| {
            Error::Usage(format!("{}: an argument must be UTF-8; rename the file", raw.to_string_lossy()))
        })?);
    }
    arguments.extend_from_slice(more);
    // Before anything is understood, a fault is told in the form asked for.
    if arguments.iter().skip(1).take_while(|word| *word != "--").any(|word| word == "--json") {
        fault::as_json();
    }
    let mut command = Cli::command();
    command.build();
    let merged = config::merge(&command, arguments)?;
    obey(&command, &merged.arguments).map_err(|error| merged.place(error))
}

/// Does what the `arguments` say, those of the configuration file among them.
fn obey(command: &clap::Command, arguments: &[String]) -> Result<()> {
    let parsed = command
        .clone()
        .try_get_matches_from(arguments)
        .and_then(|matches| Ok((Cli::from_arg_matches(&matches)?, matches)));
    let (cli, matches) = match parsed {
        Ok(parsed) => parsed,
        Err(error) => return usage(&error, command, arguments),
    };
    if cli.json {
        fault::as_json();
    }
    fault::set_options(options_of(command, &matches));
    if cli.overwrite {
        output::allow_overwrite();
    }
    let stdout_taken = files::check(command, &matches)?;
    // A wrong choice of kernels is said aloud; the library would pass it over.
    tacit::crypto::simd::select_from_env().map_err(|e| Error::Usage(e.to_string()))?;
    let progress = match (cli.progress_lines, cli.quiet || cli.json) {
        (true, _) => Mode::Lines,
        (false, true) if cli.quiet => Mode::Quiet,
        (false, true) => Mode::Silent,
        (false, false) => Mode::detect(),
    };
    let context = Context { json: cli.json, progress, stdout_taken, verbose: cli.verbose };
    if cli.verbose && !matches!(cli.command, cmd::Command::Serve(_)) {
        log::install(log::Level::Debug, log::Form::Text);
    }
    let backend = tacit::crypto::simd::Backend::active();
    let kernels: Vec<String> =
        backend.kernels().iter().map(|(kernel, which)| format!("{kernel} {which}")).collect();
    context.detail(&format!(
        "tacit {} ({}); kernels of {}: {}",
        env!("CARGO_PKG_VERSION"),
        cmd::COMMIT,
        backend.name(),
        kernels.join(", ")
    ));
    cmd::run(cli.command, &context)
}

/// The long options of the subcommand that `matches` name.
fn options_of(command: &clap::Command, matches: &clap::ArgMatches) -> Vec<String> {
    let (mut command, mut matches) = (command, matches);
    while let Some((name, below)) = matches.subcommand() {
        let Some(found) = command.find_subcommand(name) else { break };
        (command, matches) = (found, below);
    }
    command.get_arguments().filter_map(|arg| arg.get_long().map(str::to_owned)).collect()
}

/// Help and version are what was asked for; anything else is one line.
fn usage(error: &clap::Error, command: &clap::Command, arguments: &[String]) -> Result<()> {
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        // Whoever closed the pipe, as `head` does, has read enough.
        let _ = error.print();
        return Ok(());
    }
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return Err(Error::Usage("a subcommand is missing; see `tacit help`".into()));
    }
    let subcommand = arguments.iter().skip(1).find(|word| command.find_subcommand(word).is_some());
    let of = subcommand.map_or(String::new(), |name| format!(" {name}"));
    let cause = fault::cause(error);
    // A shell puts the names of many files where a pattern stood.
    let innermost = arguments.iter().skip(1).fold(command, |at, word| at.find_subcommand(word).unwrap_or(at));
    let takes_files = innermost.get_arguments().any(|arg| arg.get_long() == Some("input"));
    let file = match error.kind() {
        ErrorKind::UnknownArgument | ErrorKind::ArgumentConflict => cause
            .split_once(" '")
            .and_then(|(_, rest)| rest.split('\'').next())
            .filter(|word| !word.starts_with('-')),
        _ => None,
    };
    if let Some(file) = file.filter(|file| takes_files && innermost.find_subcommand(file).is_none()) {
        return Err(Error::Usage(format!(
            "unexpected argument '{file}' found; quote a pattern of files, or repeat --input"
        )));
    }
    Err(Error::Usage(format!("{cause}; see `tacit help{of}`")))
}
