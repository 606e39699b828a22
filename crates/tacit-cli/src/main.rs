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
use std::io::Write;
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

Exit codes: 0 success, 1 any other error, 2 usage error, 3 bad local input,
  4 a problem with the peer or the link (detected cheating included), 130 interrupted.
Results go to standard output, progress and errors to standard error.
A TOML file given by --config can set any of these options; the command line takes precedence.";

/// What `tacit` alone prints.
const WELCOME: &str = "\
Two parties compute on data that neither may see.

What you can do:
  tacit psi              find the rows of your table that a peer's table has too
  tacit link             give rows identifiers that match on both sides, to join later
  tacit query            ask a question in SQL of both tables: counts and sums by group
  tacit eval             compute a function of both sides' numbers, such as who bids more
  tacit request          ask a peer's service for an intersection; `tacit serve` runs one
  tacit check            see how a run would read your table; nothing is sent
  tacit ui               do this on a page in your browser, without typing commands
  tacit ot, vole, triples, nisc
                         make transfers and correlations, for your own protocols

Examples:
  tacit demo                            # both sides on this machine, in seconds
  tacit check customers.csv             # describe your table, and print the command to run
  tacit invite --listen 0.0.0.0:7700    # exchange keys: your peer types `tacit join CODE`

Where to start: `tacit init` asks six questions and writes your configuration. `tacit -h` lists every
command, `tacit psi -h` the options of one; docs/start.md sets up two machines in ten minutes.";

#[derive(Parser)]
#[command(name = "tacit", bin_name = "tacit", version, about = ABOUT, after_help = AFTER, max_term_width = 110)]
struct Cli {
    /// Prints each result as one JSON object per line
    #[arg(long, global = true)]
    json: bool,
    /// Prints no progress and no notes
    #[arg(long, short, global = true, overrides_with = "quiet")]
    quiet: bool,
    /// Prints details on standard error: kernels, handshake, phases with their times and bytes
    #[arg(long, short, global = true, overrides_with = "verbose")]
    verbose: bool,
    /// Overwrites existing outputs, but never a key or a one-time file
    #[arg(long, global = true)]
    overwrite: bool,
    /// Takes options from a TOML file; see docs/configuration.md
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Progress as lines for a program
    #[arg(long, global = true, hide = true)]
    progress_lines: bool,
    /// Notes, and progress as JSON objects, for a page
    #[arg(long, global = true, hide = true)]
    progress_objects: bool,
    #[command(subcommand)]
    command: cmd::Command,
}

fn main() {
    fault::install_hooks();
    if let Err(error) = run(&[]) {
        fault::exit_with(&error);
    }
}

/// The command as it is parsed, and shown in help.
fn command() -> clap::Command {
    cli::help::arrange(Cli::command())
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
    if arguments.len() == 1 {
        return tacit_console::print(WELCOME);
    }
    let mut command = command();
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
        _ if cli.progress_objects => Mode::Objects,
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

/// A command's own words behind `tacit`, each after a blank.
fn path(command: &clap::Command) -> String {
    command.get_bin_name().and_then(|name| name.strip_prefix("tacit")).unwrap_or_default().to_owned()
}

/// Help and version are what was asked for; anything else is one line.
fn usage(error: &clap::Error, command: &clap::Command, arguments: &[String]) -> Result<()> {
    // A shell puts the names of many files where a pattern stood.
    let innermost = arguments.iter().skip(1).fold(command, |at, word| at.find_subcommand(word).unwrap_or(at));
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        let is_short = arguments.iter().any(|word| word == "-h") && innermost.get_bin_name() != Some("tacit");
        // Whoever closed the pipe, as `head` does, has read enough.
        let _ = match is_short {
            true => std::io::stdout().lock().write_all(cli::help::short(innermost).as_bytes()),
            false => error.print(),
        };
        return Ok(());
    }
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        let names: Vec<&str> =
            innermost.get_subcommands().map(clap::Command::get_name).filter(|name| *name != "help").collect();
        let names = match innermost.get_bin_name() {
            Some("tacit") | None => String::new(),
            Some(_) => format!(": {}", names.join(", ")),
        };
        return Err(Error::Usage(format!(
            "a subcommand is missing{names}; see `tacit help{}`",
            path(innermost)
        )));
    }
    let of = path(innermost);
    let cause = fault::cause(error);
    let takes_files = innermost.get_arguments().any(|arg| arg.get_long() == Some("input"));
    let file = match error.kind() {
        ErrorKind::UnknownArgument | ErrorKind::ArgumentConflict => cause
            .split_once(" '")
            .and_then(|(_, rest)| rest.split('\'').next())
            .filter(|word| !word.starts_with('-')),
        _ => None,
    };
    // A shell cut a list at the blank behind its comma.
    let before = file.and_then(|file| arguments.iter().position(|word| word == file)?.checked_sub(1));
    if let (Some(word), Some(list)) =
        (file, before.map(|at| &arguments[at]).filter(|list| list.ends_with(',')))
    {
        let list = tacit::crypto::text::shown(list);
        let word = tacit::crypto::text::shown(word);
        let what = format!("{}; here {list}{word}", cli::keys::GAP);
        return Err(Error::Usage(format!("{what}; see `tacit help{of}`")));
    }
    if let Some(file) = file.filter(|file| takes_files && innermost.find_subcommand(file).is_none()) {
        return Err(Error::Usage(format!(
            "unexpected argument '{file}' found; quote a pattern of files, or repeat --input"
        )));
    }
    Err(Error::Usage(format!("{cause}; see `tacit help{of}`")))
}
