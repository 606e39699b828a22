//! The subcommands, one file each.

mod audit;
mod check;
mod circuit;
mod completions;
mod deal;
mod demo;
mod doctor;
mod eval;
mod fingerprint;
mod gateway;
mod init;
mod invite;
mod keygen;
mod link;
mod man;
mod nisc;
mod ot;
mod pair;
mod plan;
mod pool;
mod psi;
mod query;
mod relay;
mod request;
mod serve;
mod tags;
mod triples;
mod ui;
mod vole;

use crate::cli::Context;
use clap::Subcommand;
use tacit::Result;
use tacit_console::machine::{available_memory, check_memory, free_address};

/// The commit that the command was built from.
pub(crate) const COMMIT: &str = env!("TACIT_COMMIT");

/// What `tacit` can do.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Makes a key pair that names one party
    Keygen(keygen::Args),
    /// Shows the fingerprint of a key file
    Fingerprint(fingerprint::Args),
    /// Asks six questions and writes a configuration, or a service's policy, with comments
    Init(init::Args),
    /// Exchanges public keys with a peer: prints a code for you to tell the peer
    Invite(invite::InviteArgs),
    /// Exchanges public keys with the peer who gave you the code
    Join(invite::JoinArgs),
    /// Private set intersection of two files: who is in both
    Psi(psi::Args),
    /// Gives your rows and the peer's random identifiers that match where keys do
    Link(Box<link::Args>),
    /// Asks a question in SQL about both sides' tables: counts and sums by group
    Query(Box<query::Args>),
    /// Opens a page for people who do not type commands, on this machine
    Ui(ui::Args),
    /// Runs a service that answers requests for intersections by the rules of a policy file
    Serve(serve::Args),
    /// Connects the tasks of two parties' clusters, with one gateway per party
    Gateway(Box<gateway::Args>),
    /// Runs a relay where two sides meet that cannot reach each other
    Relay(relay::Args),
    /// Asks a service for an intersection: shows its terms, and runs if you accept them
    Request(Box<request::Args>),
    /// Verifies and shows the signed records of requests
    Audit(audit::Args),
    /// Describes a file: its columns, or with --key what a run would see
    Check(check::Args),
    /// Publishes a tag file of a large set once, for queries by clients with small sets
    Tags(tags::Args),
    /// Matches people for advertising in clean rooms, by IAB Tech Lab's PAIR 1.1
    Pair(pair::Args),
    /// Makes n oblivious transfers with the peer
    Ot(Box<ot::Args>),
    /// Makes correlations w = v + u·Δ over a field with the peer
    Vole(Box<vole::Args>),
    /// Makes Beaver triples with the peer: shares of a, b and c = a·b
    Triples(Box<triples::Args>),
    /// Oblivious transfers whose messages are files
    Nisc(nisc::Args),
    /// Evaluates a circuit, or a function by name, on both parties' inputs
    Eval(eval::Args),
    /// Describes a function's circuit: numbers, a Bristol file, a picture
    Circuit(circuit::Args),
    /// Intersects two generated files in two processes and checks the result
    Demo(demo::Args),
    /// Measures a protocol between two processes on this machine
    Bench(tacit_bench::Args),
    /// Estimates what a run would cost, without contacting the peer
    Plan(plan::Args),
    /// Shows CPU features and chosen kernels; with a peer, the link's delay and bandwidth
    Doctor(doctor::Args),
    /// Prints a script that completes the command's words in a shell
    Completions(completions::Args),
    /// Prints the manual's first page, or writes every page to a directory
    Man(man::Args),
}

impl Command {
    /// Whether the peer's command has to be given again as well, once this one was interrupted.
    fn has_peer(&self) -> bool {
        use Command as C;
        matches!(
            self,
            C::Invite(_)
                | C::Join(_)
                | C::Psi(_)
                | C::Link(_)
                | C::Query(_)
                | C::Gateway(_)
                | C::Ot(_)
                | C::Vole(_)
                | C::Triples(_)
                | C::Eval(_)
        )
    }
}

pub(crate) fn run(command: Command, context: &Context) -> Result<()> {
    match &command {
        Command::Serve(_) | Command::Ui(_) => {}
        Command::Relay(_) => tacit_console::fault::stop_on_signals("relay: stopped"),
        command if command.has_peer() => tacit_console::fault::end_on_signals(
            "interrupted; nothing was written; run the command again on both sides",
        ),
        _ => {
            tacit_console::fault::end_on_signals("interrupted; nothing was written; run the command again");
        }
    }
    match command {
        Command::Serve(args) => serve::run(args, context),
        Command::Ui(args) => ui::run(args, context),
        Command::Gateway(args) => gateway::run(*args, context),
        Command::Relay(args) => relay::run(args, context),
        Command::Request(args) => request::run(*args, context),
        Command::Audit(args) => audit::run(args, context),
        Command::Keygen(args) => keygen::run(args, context),
        Command::Init(args) => init::run(args, context),
        Command::Invite(args) => invite::invite(args, context),
        Command::Join(args) => invite::join(args, context),
        Command::Fingerprint(args) => fingerprint::run(args, context),
        Command::Psi(args) => psi::run(args, context),
        Command::Link(args) => link::run(*args, context),
        Command::Query(args) => query::run(*args, context),
        Command::Check(args) => check::run(args, context),
        Command::Tags(args) => tags::run(args, context),
        Command::Pair(args) => pair::run(args, context),
        Command::Ot(args) => ot::run(*args, context),
        Command::Vole(args) => vole::run(*args, context),
        Command::Triples(args) => triples::run(*args, context),
        Command::Nisc(args) => nisc::run(args, context),
        Command::Eval(args) => eval::run(args, context),
        Command::Circuit(args) => circuit::run(args, context),
        Command::Demo(args) => demo::run(args, context),
        Command::Bench(args) => {
            let context = tacit_bench::Context { console: *context, commit: COMMIT, again: crate::run };
            tacit_bench::run(args, &context)
        }
        Command::Plan(args) => plan::run(args, context),
        Command::Doctor(args) => doctor::run(args, context),
        Command::Completions(args) => completions::run(args, context),
        Command::Man(args) => man::run(args, context),
    }
}
