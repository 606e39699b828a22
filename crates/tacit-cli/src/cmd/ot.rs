//! `tacit ot`: n oblivious transfers between two processes, and on request each side's share in a file.

use crate::cli::Context;
use crate::cli::fault::set_origin;
use crate::cli::output::destination;
use crate::cli::own::{self, Taken};
use crate::cli::peer::{PeerArgs, Security};
use crate::cli::plan;
use crate::cli::report::ReportArgs;
use crate::cli::share::{Share, archive, note_none};
use crate::cmd::deal::{self, Seed};
use crate::cmd::pool;
use crate::cmd::psi::size;
use crate::cmd::vole;
use serde_json::json;
use std::path::{Path, PathBuf};
use tacit::crypto::text::counted;
use tacit::job::Ran;
use tacit::job::ot::{self as job, Job, Role as Side, Sink, Source};
use tacit::ot::{Choices, Kind, Layout, Own};
use tacit::plan::{Choice, Machine, Request};
use tacit::{Error, Result, ot, security_name};
use tacit_console::options::{KindArg, Role};

const AFTER: &str = "\
Examples:
  tacit ot --listen 127.0.0.1:7700 --identity alice.key --peer bob.pub \\
      --role sender --count 1000000 --out sender.npz
  tacit ot --connect 127.0.0.1:7700 --identity bob.key --peer alice.pub \\
      --role receiver --count 1000000 --out receiver.npz
  tacit ot --role sender --count 1000000 --link wan --dry-run

From each pair in messages.csv (columns m0 and m1) the receiver gets the one set in choices.csv (a
column choice of 0 and 1):
  tacit ot --listen 127.0.0.1:7700 --identity alice.key --peer bob.pub \\
      --role sender --kind ot --messages messages.csv
  tacit ot --connect 127.0.0.1:7700 --identity bob.key --peer alice.pub \\
      --role receiver --kind ot --choices choices.csv --out got.csv

Three lines of Python check a correlated OT:
  import numpy as np
  s, r = np.load(\"sender.npz\"), np.load(\"receiver.npz\")
  assert (r[\"w\"] == s[\"v\"] ^ r[\"u\"][:, None] * s[\"delta\"]).all()";

/// What `tacit ot` does besides transfers.
#[derive(clap::Subcommand)]
enum Command {
    /// Correlations made in advance, stored in an encrypted file
    #[command(subcommand, after_help = pool::AFTER)]
    Pool(pool::PoolCommand),
    /// A trusted dealer's step: a short seed for each side, which expands to correlated OTs
    #[command(after_help = deal::AFTER)]
    Deal(deal::DealArgs),
    /// Expands a dealer's seed to your share of its correlated OTs, without the network
    Expand(deal::ExpandArgs),
}

/// Makes n oblivious transfers with the peer.
#[derive(clap::Args)]
#[command(after_help = AFTER, after_long_help = long_help())]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    /// Which side of the transfers this is
    #[arg(long, value_enum, required = true)]
    role: Option<Role>,
    /// How many transfers; must match on both sides. With --choices or --messages: the number in the file
    #[arg(long, value_name = "N", required_unless_present_any = ["choices", "messages"], value_parser = clap::value_parser!(u64).range(1..=1 << 40))]
    count: Option<u64>,
    #[arg(long, value_name = "P", default_value = "auto", help = protocols())]
    protocol: String,
    /// The LPN set of ferret, a, b, c, d or e, or of ferret-uni, main, a, b or setup; without it, what suits
    /// count and link
    #[arg(long, value_name = "SET")]
    set: Option<String>,
    /// With ferret, all traffic comes first and the rest needs no peer; must match on both sides
    #[arg(long, conflicts_with_all = ["pool", "seed"])]
    up_front: bool,
    /// The code: of silent linear (default) or quasi-cyclic, of softspoken groups-2, groups-4 or groups-8 (default:
    /// the fastest for count and link, which the result names; groups-4 for a pool); must match on both sides
    #[arg(long, value_name = "CODE")]
    code: Option<String>,
    /// What is made; must match on both sides
    #[arg(long, value_enum, default_value = "cot")]
    kind: KindArg,
    /// What kind of peer to protect against; must match on both sides
    #[arg(long, value_enum, default_value = "malicious")]
    security: Security,
    /// The base OT: mrr21 (default), mr19, csw20, roted (post-quantum), or co15 (semi-honest only);
    /// must match on both sides
    #[arg(long, value_name = "NAME")]
    base_ot: Option<String>,
    /// With --kind ot, the sender's own messages: a table with columns m0 and m1, arrays of these names
    /// (.npz), or the bytes of all pairs (.bin). Without it they are drawn at random
    #[arg(long, value_name = "FILE")]
    messages: Option<PathBuf>,
    /// With --kind ot, the receiver's own choices: a table with a column choice of 0 and 1, an array u (.npz),
    /// or bits (.bin). Without it they are drawn at random
    #[arg(long, value_name = "FILE", conflicts_with = "messages")]
    choices: Option<PathBuf>,
    /// The longest message that a receiver with --choices accepts
    #[arg(long, value_name = "SIZE", default_value = "1MiB", value_parser = size)]
    max_message: u64,
    /// Random 1-out-of-P transfers instead: P messages each, 2, 4, 16 or 256, of which one is received; must match
    /// on both sides
    #[arg(long, value_name = "P", conflicts_with_all = ["kind", "protocol", "set", "code", "up_front", "pool", "seed", "messages", "choices"])]
    of: Option<usize>,
    /// Writes your share to this file, which only its owner can read. With --kind ot a receiver's file can
    /// also be a table (.csv, .parquet, .arrow, .xlsx)
    #[arg(long, value_name = "SHARE.npz", conflicts_with = "messages")]
    out: Option<PathBuf>,
    /// Uses the transfers of this pool of `tacit ot pool make` instead of running a protocol
    #[arg(long, value_name = "FILE.pool", conflicts_with_all = ["protocol", "set", "code", "base_ot", "post_quantum"])]
    pool: Option<PathBuf>,
    /// Uses the transfers of this seed of `tacit ot deal` instead of running a protocol
    #[arg(long, value_name = "SEED", conflicts_with_all = ["pool", "protocol", "set", "code", "base_ot", "post_quantum"])]
    seed: Option<PathBuf>,
    /// The key file of the pool, if it was not made with the identity key
    #[arg(long, value_name = "FILE", requires = "pool")]
    pool_key: Option<PathBuf>,
    /// Prints what each protocol would cost on the --link given, and starts nothing
    #[arg(long, conflicts_with_all = ["pool", "seed"])]
    dry_run: bool,
    #[command(flatten)]
    report: ReportArgs,
    #[command(flatten)]
    peer: PeerArgs,
}

/// What `--protocol` takes, for the help.
fn protocols() -> String {
    let weaker = |entry: &tacit::catalogue::Entry| entry.security == tacit::Security::SemiHonest;
    let word = |entry: &tacit::catalogue::Entry| {
        format!("{}{}", entry.name, if weaker(entry) { " (semi-honest)" } else { "" })
    };
    let names: Vec<String> = ot::extensions().map(word).collect();
    format!("The protocol: auto, {}; must match on both sides", names.join(", "))
}

/// The help's end at full length: with what every protocol rests on.
fn long_help() -> String {
    format!(
        "{AFTER}\n\nWhat protocols rest on, and what --post-quantum refuses:\n\n{}",
        tacit::catalogue::table()
    )
}

pub(super) fn run(args: Args, context: &Context) -> Result<()> {
    match args.command {
        None => {}
        Some(Command::Pool(command)) => return pool::run(command, context),
        Some(Command::Deal(args)) => return deal::deal(&args, context),
        Some(Command::Expand(args)) => return deal::expand(&args, context),
    }
    let own = own(&args)?;
    let Some(count) = args.count.or(own.len()) else {
        return Err(Error::Usage("give --role and --count; see `tacit help ot`".into()));
    };
    if let (Some(p), Some(role), Some(count)) = (args.of, args.role, args.count) {
        let (kind, security) = (tacit::job::vole::Kind::OneOf(p), args.security);
        let job = tacit::job::vole::Job { role: vole::side(role), kind, count, security: security.into() };
        let (base_ot, out) = (args.base_ot.as_deref(), args.out.as_deref());
        let (peer, report) = (&args.peer, &args.report);
        let run = vole::Run { job, name: "ot", peer, report, base_ot, security, out };
        return if args.dry_run { run.foresee(context) } else { run.make(context) };
    }
    // A name that does not serve is refused before anything else.
    let named = ot::protocol(&args.protocol, args.security.into())?;
    let protocol = Some(args.protocol.as_str()).filter(|name| *name != "auto");
    let (set, code) = (args.set.as_deref(), args.code.as_deref());
    let choice = Choice { protocol, set, code, ..Choice::default() };
    ot::check(named, &choice)?;
    if args.dry_run {
        return dry_run(&args, count, &own, choice, context);
    }
    let Some(role) = args.role else {
        return Err(Error::Usage("give --role and --count; see `tacit help ot`".into()));
    };
    let role = role.into();
    let (security, kind, threads) = (args.security.into(), args.kind.into(), args.peer.threads());
    let source = match (&args.pool, &args.seed) {
        (Some(file), _) => {
            let pool = pool::open(file, args.pool_key.as_deref(), &args.peer, args.security, count)?;
            Source::Pool(Box::new(pool))
        }
        (None, Some(file)) => Seed::open(file, role, threads, count)?.source(),
        (None, None) => Source::Protocol,
    };
    // Whoever sends messages of their own has nothing to keep.
    if args.messages.is_none() {
        note_none(args.out.as_deref(), context);
    }
    untyped(&args, protocol.is_some());
    let mut session = args.peer.session(args.security, context)?;
    if let Some(name) = &args.base_ot {
        session = session.base_ot(name);
    }
    // The pool goes to the protocol; what burns it when a check fails stays here.
    let fuse = match &source {
        Source::Pool(pool) => Some(pool.fuse()),
        _ => None,
    };
    let made_by = match &source {
        Source::Pool(pool) => pool::made_by(pool.header()).map(|maker| format!("made by {maker}")),
        _ => None,
    };
    let base = session.base()?;
    let page = args.report.open(|| args.peer.sides(&[]))?;
    let mut share = match &args.out {
        Some(out) => Shares::create(out, kind, count, role)?,
        None => Shares::Nowhere(()),
    };
    let job = match Job::from_source(role, kind, count, &source, security) {
        Some(job) => job,
        None => {
            let pick = session.choose_ot(kind, count, choice)?;
            session.allow(pick.protocol.name)?;
            let mut job = Job::new(role, kind, count, pick, security);
            if args.up_front {
                job.transfers = job.transfers.up_front(threads)?;
            }
            job
        }
    };
    let what =
        format!("making {count} by {}", job.transfers.pick.protocol.name, count = counted(count, "OT"));
    crate::cmd::check_memory(&what, job.memory(threads), "use fewer threads, or make them in several runs")?;

    share.is_of(&job, threads);
    let progress = context.progress("OT", count, "OT");
    let ran = session.run_own_ot(&job, source, &own, share.sink(), &progress);
    // Not told by the error: what ends a run may be the peer's choice.
    if ran.is_err() && progress.has_begun() && matches!(own, Own::Messages(_)) {
        context.note(
            "note: the peer may have one message of each pair; in a second run of the same messages it could choose \
             the others",
        );
    }
    let Ran { wall, stats, .. } = pool::watch(args.pool.as_deref().zip(fuse.as_ref()), ran)?;
    progress.finish();
    share.finish()?;

    let (protocol, kind) = (job.transfers.pick.protocol.name, job.transfers.kind.name());
    let variant = made_by.unwrap_or_else(|| job.transfers.pick.extension().variant());
    let other_learns = job.has_learned(&own);
    let ns_per_item = wall.as_nanos() as f64 / count.max(1) as f64;
    let object = json!({
        "name": "ot",
        "protocol": protocol,
        "variant": (!variant.is_empty()).then_some(&variant),
        "base_ot": base.name(),
        "kind": kind,
        "role": job.role.name(),
        "security": security_name(security),
        "count": count,
        "wall_ms": wall.as_secs_f64() * 1e3,
        "ns_per_item": ns_per_item,
        "bytes_sent": stats.bytes_sent,
        "bytes_received": stats.bytes_received,
        "rounds": stats.rounds,
        "other_side_learned": other_learns,
        "out": args.out,
    });
    let what = match job.role {
        Side::Receiver if job.transfers.kind == Kind::Ot => "your choices and their messages are",
        _ => "your share is",
    };
    let text = format!(
        "{count} {kind} by {protocol}{} ({}) in {:.3} s, {ns_per_item:.1} ns each; {} sent, {} received, \
         {}{}; the other side learned {other_learns}",
        if variant.is_empty() { String::new() } else { format!(", {variant}") },
        security_name(security),
        wall.as_secs_f64(),
        counted(stats.bytes_sent, "byte"),
        stats.bytes_received,
        counted(stats.rounds, "round"),
        args.out.as_ref().map_or_else(String::new, |out| format!("; {what} in {}", destination(out))),
    );
    if let Some(page) = page {
        page.write(&object, context)?;
    }
    context.result(&object, &text)
}

/// Says of the settings that nobody typed where they come from, for an error about their values.
fn untyped(args: &Args, is_named: bool) {
    let file = args.messages.as_ref().or(args.choices.as_ref());
    if let (None, Some(file)) = (args.count, file) {
        set_origin("count", format!("from {}", crate::cli::output::name(file)));
    }
    let chosen = [("protocol", is_named), ("set", args.set.is_some()), ("code", args.code.is_some())];
    for (setting, _) in chosen.into_iter().filter(|(_, is_named)| !is_named) {
        set_origin(setting, "chosen automatically".to_owned());
    }
}

/// Where what was made goes.
enum Shares {
    Nowhere(()),
    Laid(Box<Share>),
    Taken(Box<Taken>),
}

impl Shares {
    /// Makes the file, before anybody is called.
    fn create(out: &Path, kind: Kind, count: u64, role: Side) -> Result<Self> {
        if kind == Kind::Ot && role == Side::Receiver {
            return Ok(Shares::Taken(Box::new(Taken::create(out)?)));
        }
        Ok(Shares::Laid(Box::new(Share::new(archive(out)?, kind, count, role)?)))
    }

    /// What fills it.
    fn is_of(&mut self, job: &Job, threads: usize) {
        if let Shares::Taken(taken) = self {
            taken.is_of(job, threads);
        }
    }

    fn sink(&mut self) -> &mut dyn Sink {
        match self {
            Shares::Nowhere(nothing) => nothing,
            Shares::Laid(share) => &mut **share,
            Shares::Taken(taken) => &mut **taken,
        }
    }

    fn finish(self) -> Result<()> {
        match self {
            Shares::Nowhere(()) => Ok(()),
            Shares::Laid(share) => share.finish(),
            Shares::Taken(taken) => taken.finish(),
        }
    }
}

/// The largest `--max-message`.
const MOST: u64 = 1 << 32;

/// What a limit of messages would not be for.
fn drawn(args: &Args) -> Result<()> {
    if args.max_message == tacit::ot::MOST_MESSAGE {
        return Ok(());
    }
    let what = "needs --choices: with random choices messages have at most 1 MiB".to_owned();
    Err(Error::Parameter { name: "max-message", what })
}

/// The user's own messages or choices.
fn own(args: &Args) -> Result<Own> {
    let (file, name, whose) = match (&args.messages, &args.choices) {
        (Some(file), _) => (file, "messages", Role::Sender),
        (_, Some(file)) => (file, "choices", Role::Receiver),
        _ => return drawn(args).map(|()| Own::Drawn),
    };
    if args.choices.is_none() {
        drawn(args)?;
    }
    let refuse = |what: String| Err(Error::Parameter { name, what });
    if args.kind != KindArg::Ot {
        return refuse("needs --kind ot: the other kinds transfer random messages".into());
    }
    if args.role != Some(whose) {
        let whose = if whose == Role::Sender { "sender" } else { "receiver" };
        return refuse(format!("needs --role {whose}"));
    }
    if args.max_message > MOST {
        return Err(Error::Parameter { name: "max-message", what: "4GiB at most".into() });
    }
    let own = match whose {
        Role::Sender => Own::Messages(own::messages(file, args.count)?),
        Role::Receiver => {
            Own::Choices(Choices { bits: own::choices(file, args.count)?, most: args.max_message })
        }
    };
    match (own.len(), args.count) {
        (Some(len), Some(count)) if len != count => {
            refuse(format!("{} has {len}, but --count is {count}", crate::cli::output::name(file)))
        }
        _ => Ok(own),
    }
}

/// The candidates for what was asked.
fn dry_run(args: &Args, count: u64, own: &Own, choice: Choice<'_>, context: &Context) -> Result<()> {
    let request = Request {
        count,
        kind: args.kind.into(),
        security: args.security.into(),
        threads: args.peer.threads(),
        choice,
    };
    let link = args.peer.link().into();
    let layout = match own {
        Own::Messages(messages) => messages.layout(),
        _ => Layout::BLOCKS,
    };
    let base = args.peer.base(args.base_ot.as_deref(), args.security)?;
    let machine = Machine::measure();
    let candidates = job::estimate_own(&request, layout, &link, &machine)?;
    let candidates = plan::from_base(candidates, &args.peer, &*base, &link, &machine)?;
    let learns = job::will_learn(args.kind.into(), args.security.into());
    plan::show(context, "ot", count, &link, &candidates, choice.protocol.into(), &learns)
}
