//! `tacit psi`: which rows of our file have a key that the peer's file has too.

use crate::cli::Context;
use crate::cli::output::{Output, name};
use crate::cli::peer::{PeerArgs, Security};
use crate::cli::table::Dialect;
use crate::cmd::available_memory;
use serde_json::json;
use std::path::PathBuf;
use tacit::data::records::{KeySet, KeySpec, Normalisation};
use tacit::data::table::Source;
use tacit::job::Ran;
use tacit::job::psi::{self as job, Job, Learns, MAX_ELEMENTS, Outcome};
use tacit::{Error, Result, security_name};

const AFTER: &str = "\
Examples:
  tacit psi --listen 0.0.0.0:7700 --identity alice.key --peer bob.pub \\
      --input customers.csv --key email --result peer
  tacit psi --connect alice.example:7700 --identity bob.key --peer alice.pub \\
      --input kunden.csv --key email --result me --output both.csv
  tacit psi --config job.toml --key last_name,birthdate

The other side learns how many distinct keys we have, and with --result peer or both also
which of its own keys we have; nothing else. A cheating one that gets the result can test more
keys than it announces, up to a bound that --dry-run and the result name. With --security
semi-honest all this holds for a peer that keeps to the protocol; if it deviates, nothing does.
Keys must be as many and in the same order on both sides; their names may differ.

--output - writes to standard output; the result in words then goes to standard error.";

/// `--result`, as the command line has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Gets {
    /// Only we learn the matches; the peer says `--result peer`
    Me,
    /// Only the peer learns the matches; it says `--result me`
    Peer,
    /// Both learn them; both say so
    Both,
}

impl From<Gets> for Learns {
    fn from(gets: Gets) -> Self {
        match gets {
            Gets::Me => Learns::Me,
            Gets::Peer => Learns::Peer,
            Gets::Both => Learns::Both,
        }
    }
}

/// `--protocol`, as the command line has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Protocol {
    /// By the sets' sizes: vole from 10,000 keys on both sides together, paxos below
    Auto,
    /// Key-value store and OT extension
    Paxos,
    /// Key-value store and vector oblivious linear evaluation: the fastest, on newer assumptions
    Vole,
}

impl From<Protocol> for job::Protocol {
    fn from(protocol: Protocol) -> Self {
        match protocol {
            Protocol::Auto => job::Protocol::Auto,
            Protocol::Paxos => job::Protocol::Paxos,
            Protocol::Vole => job::Protocol::Vole,
        }
    }
}

/// Private set intersection of two files: who is in both.
#[derive(clap::Args)]
#[command(after_help = AFTER)]
pub struct Args {
    /// Our table: CSV (plain or packed by gzip or zstd), Parquet or Arrow; - for standard input
    #[arg(long, value_name = "FILE")]
    input: PathBuf,
    /// The column, or several, that make a row's key; repeat it or separate by commas
    #[arg(long, value_name = "COL", required = true, value_delimiter = ',', num_args = 1)]
    key: Vec<String>,
    /// Writes our matching rows, with all their columns, to this file
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Who learns the matches
    #[arg(long, value_enum, default_value = "me")]
    result: Gets,
    /// The protocol; both sides must say the same
    #[arg(long, value_enum, default_value = "auto")]
    protocol: Protocol,
    /// Against which peer to protect; both sides must say the same
    #[arg(long, value_enum, default_value = "malicious")]
    security: Security,
    /// The base OT: mrr21 (default), mr19, csw20 or roted (post-quantum); both
    /// sides must say the same
    #[arg(long, value_name = "NAME")]
    base_ot: Option<String>,
    /// The most distinct keys that the peer may have; unless given, and at most, what this machine's memory
    /// allows
    #[arg(long, value_name = "N")]
    max_peer_rows: Option<u64>,
    /// Compares keys without Unicode normalisation (NFC); both sides must do so
    #[arg(long)]
    no_nfc: bool,
    /// Compares keys with the white space at their ends; both sides must do so
    #[arg(long)]
    no_trim: bool,
    /// Compares keys in upper and lower case as they are; both sides must do so
    #[arg(long)]
    no_case_fold: bool,
    #[command(flatten)]
    table: Dialect,
    /// Reads our file and prints what the run would cost on the --link given with a peer's file of the same size; starts nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    peer: PeerArgs,
}

/// Runs the subcommand.
pub fn run(args: Args, context: &Context) -> Result<()> {
    if args.output.is_some() && args.result == Gets::Peer {
        let what = "has nothing to hold with --result peer; leave one of the two out".into();
        return Err(Error::Parameter { name: "output", what });
    }
    let job = args.job();
    if args.dry_run {
        return dry_run(&args, &job, context);
    }
    let mut session = args.peer.session(args.security, context)?;
    if let Some(name) = &args.base_ot {
        session = session.base_ot(name);
    }
    for protocol in job.protocol.candidates() {
        session.allow(protocol)?;
    }
    session.base()?;
    let mut output = args.output.as_deref().map(Output::create).transpose()?;
    let table = Table::read(&args, &job, context)?;
    if let Some(output) = &mut output {
        // Every row may match, and one without a line's end gets one.
        output.reserve(table.source.bytes().saturating_add(2))?;
    }
    let keys = table.count();
    let what = format!("an intersection with {keys} keys");
    crate::cmd::check_memory(&what, job.memory(keys, 0), "split the file")?;
    let most = job.most_peer_keys(keys, available_memory());

    let progress = context.progress("waiting", 0, "keys");
    let ran = session.run_psi(&job, table.keys.elements(), most, &progress)?;
    progress.finish();

    let mut rows = None;
    if let (Some(mut output), Some(matches)) = (output, &ran.result.matches) {
        let target = output.target().to_owned();
        rows = Some(table.source.write_matches(&table.keys, matches, &target, &mut output)?);
        output.commit()?;
    }
    report(&args, &job, context, &table, &ran, most, rows)
}

impl Args {
    fn job(&self) -> Job {
        let normalisation =
            Normalisation { nfc: !self.no_nfc, trim: !self.no_trim, case_fold: !self.no_case_fold };
        Job {
            protocol: self.protocol.into(),
            key: Some(KeySpec { columns: self.key.clone(), normalisation }),
            most_peer_keys: self.max_peer_rows,
            ..Job::new(self.result.into(), self.security.into())
        }
    }
}

/// The candidates for our file, as if the peer had as many keys.
fn dry_run(args: &Args, job: &Job, context: &Context) -> Result<()> {
    let keys = Table::read(args, job, context)?.count();
    let link = args.peer.link().into();
    let candidates = job.estimate(keys, &link, &tacit::plan::Machine::measure())?;
    crate::cli::plan::show(context, "psi", keys, &link, &candidates, None, &job.will_learn(keys)?)?;
    if !context.json {
        let most = job.most_peer_keys(keys, available_memory());
        context.result(&json!(null), &format!("the other side may have at most {most} distinct keys"))?;
    }
    Ok(())
}

/// Our file: what a row's key is, and the keys themselves.
struct Table {
    source: Source,
    keys: KeySet,
}

impl Table {
    fn read(args: &Args, job: &Job, context: &Context) -> Result<Self> {
        let spec = job.key.clone().ok_or_else(|| Error::Usage("--key names no column".into()))?;
        let source = Source::open(&args.input, spec, args.table.options())?;
        if let Some(target) = &args.output {
            source.admits(target)?;
        }
        let progress = context.progress("reading", source.bytes(), "B");
        let keys = source.read_keys(|done| progress.set(done))?;
        progress.finish();
        if keys.elements().len() > MAX_ELEMENTS {
            return Err(Error::Input(format!(
                "{}: {} distinct keys, more than the {MAX_ELEMENTS} that a run can take; split the file",
                name(&args.input),
                keys.elements().len()
            )));
        }
        Ok(Table { source, keys })
    }

    /// Its distinct keys.
    fn count(&self) -> u64 {
        self.keys.elements().len() as u64
    }
}

fn report(
    args: &Args,
    job: &Job,
    context: &Context,
    table: &Table,
    ran: &Ran<Outcome>,
    most_peer_keys: u64,
    rows: Option<u64>,
) -> Result<()> {
    let Ran { result: outcome, wall, stats } = ran;
    let keys = &table.keys;
    let distinct = table.count();
    let matches = outcome.matches.as_ref().map(Vec::len);
    let announced = outcome.peer_elements;
    let (protocol, why) = job.picked(distinct, announced);
    let (protocol, security) = (protocol.name(), security_name(job.security));
    let bound = job.tested(outcome, distinct)?.map(|tested| tested.most);
    let other_learns = job.has_learned(distinct, outcome)?;
    let mut object = json!({
        "name": "psi",
        "protocol": protocol,
        "protocol_why": why,
        "security": security,
        "result": job.result_name(),
        "reveal": job.reveal.name(),
        "own_rows": keys.rows(),
        "own_keys": distinct,
        "duplicates": keys.duplicate_rows(),
        "rows_without_key": keys.rows_without_key(),
        "peer_keys": announced,
        "peer_keys_tested_at_most": bound,
        "max_peer_rows": most_peer_keys,
        "wall_ms": wall.as_secs_f64() * 1e3,
        "bytes_sent": stats.bytes_sent,
        "bytes_received": stats.bytes_received,
        "rounds": stats.rounds,
        "other_side_learned": other_learns,
    });
    let mut text = match matches {
        Some(matches) => {
            object["matches"] = json!(matches);
            format!("{matches} matches\n")
        }
        None => "the peer has the result\n".to_owned(),
    };
    if let (Some(path), Some(rows)) = (&args.output, rows) {
        object["output"] = json!(path);
        object["output_rows"] = json!(rows);
        text += &format!("{rows} rows of ours written to {}\n", name(path));
    }
    text += &format!(
        "our file: {} rows, {distinct} distinct keys, {} rows with the key of an earlier row, {} rows without a key\n\
         the peer: {announced} distinct keys, of at most {most_peer_keys} allowed\n\
         {:.3} s, {} bytes sent, {} received, {} rounds; {protocol} ({security}){}\n\
         the other side learned {other_learns}",
        keys.rows(),
        keys.duplicate_rows(),
        keys.rows_without_key(),
        wall.as_secs_f64(),
        stats.bytes_sent,
        stats.bytes_received,
        stats.rounds,
        why.map_or_else(String::new, |why| format!(", {why}")),
    );
    context.result(&object, &text)
}
