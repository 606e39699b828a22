//! `tacit eval pool`: gates made ahead with the peer by authenticated garbling, whatever their function, kept
//! encrypted and used once; and `tacit eval --pool`, which uses them.

use super::{Args, Role, halves};
use crate::cli::Context;
use crate::cli::output::Output;
use crate::cli::peer::{PeerArgs, Security};
use crate::cmd::pool::key;
use clap::Subcommand;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::Instant;
use tacit::catalogue::AUTHENTICATED;
use tacit::crypto::text::counted;
use tacit::job::eval::pool::Pool;
use tacit::two_pc::Owner;
use tacit::two_pc::authenticated::{Demand, Header, Stored};
use tacit::{Error, Result, security_name};

pub(super) const AFTER: &str = "\
Examples:
  tacit eval pool make --listen 127.0.0.1:7700 --identity alice.key --peer bob.pub \\
      --role garbler --gates 6400 --rows 100 --file alice.pool
  tacit eval pool info alice.pool --identity alice.key
  tacit eval aes128 --listen 127.0.0.1:7700 --identity alice.key --peer bob.pub --role garbler \\
      --batch --input keys.csv --columns key --pool alice.pool

A pool can be used for one run of any function within its gates and inputs (tacit eval NAME
--dry-run prints them), with the peer that it was made with. It is encrypted with the identity
key, or with --pool-key, and marked as used, on the disk, before anything that depends on it is
sent. Never restore one from a backup.";

/// The subcommands of `tacit eval pool`.
#[derive(Subcommand)]
pub(super) enum PoolCommand {
    /// Makes a pool with the peer: gates for one later run
    Make(Box<MakeArgs>),
    /// Shows the limits of a pool
    Info(InfoArgs),
}

/// Makes a pool with the peer.
#[derive(clap::Args)]
pub(super) struct MakeArgs {
    /// Which side of the later run this is
    #[arg(long, value_enum)]
    role: Role,
    /// The most AND gates per row; must match on both sides
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1 << 28))]
    gates: u64,
    /// The most input bits of each side per row; must match on both sides
    #[arg(long, value_name = "BITS", default_value_t = 1024, value_parser = clap::value_parser!(u64).range(0..=1 << 24))]
    inputs: u64,
    /// The most rows of the run; must match on both sides
    #[arg(long, value_name = "R", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1 << 28))]
    rows: u64,
    /// The new pool; must not exist
    #[arg(long, value_name = "FILE")]
    file: PathBuf,
    /// Encrypts the pool with the bytes of this file, at least 32, instead of the identity key
    #[arg(long, value_name = "FILE")]
    pool_key: Option<PathBuf>,
    #[command(flatten)]
    peer: PeerArgs,
}

/// Names a pool and its key.
#[derive(clap::Args)]
pub(super) struct InfoArgs {
    /// The pool
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The private key that the pool was made with
    #[arg(long, value_name = "FILE")]
    identity: Option<PathBuf>,
    /// The key file that the pool was made with
    #[arg(long, value_name = "FILE")]
    pool_key: Option<PathBuf>,
}

pub(super) fn run(command: PoolCommand, context: &Context) -> Result<()> {
    match command {
        PoolCommand::Make(args) => make(&args, context),
        PoolCommand::Info(args) => info(&args, context),
    }
}

fn make(args: &MakeArgs, context: &Context) -> Result<()> {
    let role = match args.role {
        Role::Garbler => Owner::Garbler,
        Role::Evaluator => Owner::Evaluator,
    };
    let inputs = args.inputs as usize;
    let one = Demand { ands: args.gates as usize, garbler_inputs: inputs, evaluator_inputs: inputs };
    let pool = Pool { role, one, rows: args.rows as usize };
    pool.check()?;
    args.peer.allow(AUTHENTICATED.name)?;
    let key = key(args.pool_key.as_deref(), args.peer.identity())?;
    crate::cmd::check_memory("making the pool", pool.memory(), "make it smaller")?;
    let session = args.peer.session(Security::Malicious, context)?;
    let mut out = Output::create_secret(&args.file)?;
    out.reserve(pool.length().unwrap_or(0))?;
    let start = Instant::now();
    let progress = context.progress("waiting", 0, "gates");
    let made = session.prepare_gates(&pool, &key, &mut out, &progress);
    let (header, stats) = made.map_err(|e| halves::named(&args.file, e))?;
    progress.finish();
    out.commit()?;
    let wall = start.elapsed();
    let mut object = about(&args.file, &header);
    object["name"] = json!("eval pool make");
    object["protocol"] = json!(AUTHENTICATED.name);
    object["security"] = json!(security_name(tacit::Security::Malicious));
    object["wall_ms"] = json!(wall.as_secs_f64() * 1e3);
    object["bytes_sent"] = json!(stats.bytes_sent);
    object["bytes_received"] = json!(stats.bytes_received);
    object["rounds"] = json!(stats.rounds);
    object["other_side_learned"] = json!(pool.learns());
    let text = format!(
        "{}\nmade in {:.3} s; the {}'s half is in {}\nthe other side learned {}",
        in_words(&header),
        wall.as_secs_f64(),
        halves::name(header.role),
        args.file.display(),
        pool.learns(),
    );
    context.result(&object, &text)
}

fn info(args: &InfoArgs, context: &Context) -> Result<()> {
    let key = key(args.pool_key.as_deref(), args.identity.as_deref())?;
    let pool = Stored::open(&args.file, &key).map_err(|e| halves::named(&args.file, e.into()))?;
    context.result(&about(&args.file, pool.header()), &in_words(pool.header()))
}

fn about(file: &Path, header: &Header) -> serde_json::Value {
    json!({
        "name": "eval pool",
        "file": file,
        "id": header.short_id(),
        "role": halves::name(header.role),
        "gates": header.one.ands,
        "garbler_inputs": header.one.garbler_inputs,
        "evaluator_inputs": header.one.evaluator_inputs,
        "rows": header.rows,
    })
}

fn in_words(header: &Header) -> String {
    format!(
        "pool {}: the {}'s half for {} of at most {}, and {} and {} of garbler and \
         evaluator; not used",
        header.short_id(),
        halves::name(header.role),
        counted(header.rows, "row"),
        counted(header.one.ands, "AND gate"),
        header.one.garbler_inputs,
        counted(header.one.evaluator_inputs, "input bit"),
    )
}

/// Opens the pool that --pool names.
pub(super) fn open(args: &Args, path: &Path) -> Result<Stored> {
    let key = key(args.pool_key.as_deref(), args.peer.identity())?;
    let pool = Stored::open(path, &key).map_err(|e| halves::named(path, e.into()))?;
    if args.peer.threads() != 1 {
        let what = "a pool works with one thread; leave it out".into();
        return Err(Error::Parameter { name: "threads", what });
    }
    Ok(pool)
}

/// What went wrong with `path`, which a failed check has used up.
pub(super) fn blamed(path: &Path, error: Error) -> Error {
    if error.is_failed_check() {
        return Error::Peer(format!(
            "{error}; {} is used up: make a new pool on both sides with tacit eval pool make",
            path.display()
        ));
    }
    match error {
        Error::Input(what) => Error::Input(format!("{}: {what}", path.display())),
        other => halves::named(path, other),
    }
}
