//! `tacit link`: a random identifier for each row, the same on both sides where keys match.

use crate::cli::Context;
use crate::cli::identifiers::OrKeyArgs;
use crate::cli::keys::{self, KeyArgs};
use crate::cli::output::{Output, destination};
use crate::cli::peer::{PeerArgs, Security};
use crate::cli::plan::{self, Picked};
use crate::cli::report::{Report, ReportArgs};
use crate::cli::results::Unfit;
use crate::cli::table::Dialect;
use crate::cmd::available_memory;
use serde_json::json;
use std::path::PathBuf;
use tacit::crypto::text::counted;
use tacit::crypto::{hex, workers};
use tacit::data::records::{KeySet, KeySpec};
use tacit::data::table::Source;
use tacit::job::Ran;
use tacit::job::link::{self as job, ID_COLUMN, Job, Linked};
use tacit::plan::Machine;
use tacit::{Error, Result, security_name};

const AFTER: &str = "\
Examples:
  tacit link --listen 0.0.0.0:7700 --identity alice.key --peer bob.pub \\
      --input customers.csv --key email --output linked.parquet
  tacit link --connect alice.example:7700 --identity bob.key --peer alice.pub \\
      --input kunden.csv --key mail --output linked.parquet

Both sides get their own table with a first column of random identifiers: rows with one key have one
identifier, and it is the same on both sides. Neither side learns which of its rows match. A row without a
key gets an identifier that no other row has.
Your peer learns how many distinct keys you have, and nothing else. Anyone who sees both sides' identifiers
can tell which rows match. If the peer shows you identifiers of its rows, you can tell which of them are in
your table.
Identifiers are new in every run, so both sides use the outputs of one run; both print its number. They are
keys for later runs: `tacit psi --key link_id`, or a question with ON a.link_id = b.link_id.
Use the same number of key columns, of the same types (`tacit check --help` lists them) and in the same
order on both sides; their names may differ.

--output - writes to standard output; the result in words then goes to standard error.";

/// Gives your rows and the peer's random identifiers that match where keys do
#[derive(clap::Args)]
#[command(after_help = AFTER, mut_arg("or_key", |or_key| or_key.hide(true)))]
pub(crate) struct Args {
    /// Your table: CSV or JSON lines (plain or compressed), Parquet, Arrow or Excel (FILE.xlsx#SHEET!A1:D9); - for
    /// standard input; a directory or pattern of files; or on another machine:
    /// postgresql://HOST/DATABASE#QUERY, adbc:DRIVER?uri=...#QUERY, s3://BUCKET/KEY, https://HOST/FILE.
    /// Repeat it for several files as one table
    #[arg(long, value_name = "FILE", required = true, num_args = 1)]
    input: Vec<PathBuf>,
    #[command(flatten)]
    key: KeyArgs,
    #[command(flatten)]
    or_key: OrKeyArgs,
    /// Writes all of your rows to this file, with their identifiers in a first column
    #[arg(long, value_name = "FILE", required_unless_present = "dry_run")]
    output: Option<PathBuf>,
    /// The name of the column of identifiers
    #[arg(long, value_name = "NAME", default_value = ID_COLUMN)]
    id_column: String,
    /// What happens to a cell of yours that does not fit into the output: the run does not start, or such cells are
    /// left empty and counted
    #[arg(long, value_enum, default_value = "refuse")]
    unfit: Unfit,
    #[command(flatten)]
    report: ReportArgs,
    /// What kind of peer to protect against; must match on both sides
    #[arg(long, value_enum, default_value = "malicious")]
    security: Security,
    /// The base OT: mrr21 (default), mr19, csw20 or roted (post-quantum);
    /// must match on both sides
    #[arg(long, value_name = "NAME")]
    base_ot: Option<String>,
    /// The most distinct keys that the peer may have (default, and maximum: what this machine's memory
    /// allows)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    max_peer_rows: Option<u64>,
    #[command(flatten)]
    table: Dialect,
    /// Prints what the run would cost, and starts nothing: with your file, a peer's file of the same size, and
    /// the --link given
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    peer: PeerArgs,
}

pub(super) fn run(args: Args, context: &Context) -> Result<()> {
    workers::limited(args.peer.workers(), || match args.dry_run {
        true => dry_run(&args, context),
        false => link(&args, context),
    })
}

/// Our table, with its keys read.
struct Own {
    source: Source,
    keys: KeySet,
    spec: KeySpec,
}

impl Own {
    fn count(&self) -> u64 {
        self.keys.elements().len() as u64
    }
}

impl Args {
    fn job(&self) -> Result<Job> {
        let key = Some(self.or_key.add(self.key.spec())?);
        let job = Job { key, most_peer_keys: self.max_peer_rows, ..Job::new(self.security.into()) };
        job.check()?;
        Ok(job)
    }

    /// Our file, with its keys read; whatever keeps its rows from being written shows here.
    fn read(&self, job: &Job, context: &Context) -> Result<Own> {
        let spec = job.key.clone().ok_or_else(|| Error::Usage("--key names no column".into()))?;
        let source = Source::open_all(&self.input, spec.clone(), self.table.options())?;
        keys::note_errors(&source, &self.input, context);
        self.unfit.tell(&source);
        job::check_column(&source, &self.id_column, self.output.as_deref())?;
        if let Some(output) = &self.output {
            source.admits(output)?;
        }
        let progress = context.progress("reading", source.bytes(), "B");
        let keys = source.read_keys(|done| progress.set(done))?;
        progress.finish();
        let own = Own { source, keys, spec };
        if own.count() > job::MAX_ELEMENTS as u64 {
            return Err(Error::Input(format!(
                "{}: {}, more than the {} that a run accepts; split the file",
                keys::files(&self.input),
                counted(own.count(), "distinct key"),
                job::MAX_ELEMENTS
            )));
        }
        if let Some(output) = &self.output {
            own.source.prove(output)?;
        }
        Ok(own)
    }
}

fn link(args: &Args, context: &Context) -> Result<()> {
    let (job, output) = (args.job()?, args.output.as_deref());
    let mut session = args.peer.session(args.security, context)?;
    if let Some(name) = &args.base_ot {
        session = session.base_ot(name);
    }
    let base = session.base()?.name();
    let mut output = output.map(Output::create).transpose()?;
    let page = args.report.open(|| args.peer.sides(&args.input))?;
    let own = args.read(&job, context)?;
    let keys = own.count();
    if let Some(output) = &mut output {
        // A row gets its identifier and a comma, and the last one maybe a line's end.
        let more = own.keys.rows().saturating_add(1).saturating_mul(33).saturating_add(2);
        output.reserve(own.source.bytes().saturating_add(more))?;
    }
    let what = format!("a link with {}", counted(keys, "key"));
    super::check_memory(&what, job.memory(keys, 0), "split the file")?;
    let most = job.most_peer_keys(keys, available_memory());

    let progress = context.progress("waiting", 0, "keys");
    let ran = session.run_link(&job, own.keys.elements(), most, &progress)?;
    progress.finish();

    let mut rows = 0;
    if let Some(mut output) = output {
        let target = output.target().to_owned();
        let column = &args.id_column;
        rows = job::write(&own.source, &own.keys, &ran.result.identifiers, column, &target, &mut output)?;
        output.commit()?;
    }
    report(args, &job, &own, &ran, (most, rows, base, page), context)
}

/// What a run would cost, as if the peer had as many keys.
fn dry_run(args: &Args, context: &Context) -> Result<()> {
    let job = args.job()?;
    let keys = args.read(&job, context)?.count();
    let (link, machine) = (args.peer.link().into(), Machine::measure());
    let base = args.peer.base(args.base_ot.as_deref(), args.security)?;
    let candidates =
        plan::from_base(vec![job.estimate(keys, &link, &machine)?], &args.peer, &*base, &link, &machine)?;
    let announced = args.max_peer_rows.map_or(keys, |most| most.min(keys));
    let learns = job.will_learn(keys, announced)?;
    let why = "picked because no other protocol makes identifiers".to_owned();
    plan::show(context, "link", keys, &link, &candidates, Picked::Because(why), &learns)?;
    if !context.json {
        let most = counted(job.most_peer_keys(keys, available_memory()), "distinct key");
        context.result(&json!(null), &format!("the other side may have at most {most}"))?;
    }
    Ok(())
}

/// Tells the result of a run.
fn report(
    args: &Args,
    job: &Job,
    own: &Own,
    ran: &Ran<Linked>,
    (most, rows, base, page): (u64, u64, &str, Option<Report>),
    context: &Context,
) -> Result<()> {
    let Ran { result, wall, stats } = ran;
    let (keys, spec, distinct) = (&own.keys, &own.spec, own.count());
    let (security, peer, run) = (security_name(job.security), result.peer_elements, hex(&result.run));
    let bound = job.tested(peer, distinct)?.map(|tested| tested.most);
    let other_learns = job.has_learned(distinct, peer)?;
    let column = args.id_column.trim();
    let emptied = own.source.left_empty();
    let mut object = json!({
        "name": "link",
        "protocol": tacit::psi::link::NAME,
        "security": security,
        "base_ot": base,
        "key": spec.agreed_types(),
        "key_columns": spec.columns,
        "link_run": run,
        "id_column": column,
        "own_rows": keys.rows(),
        "own_keys": distinct,
        "duplicates": keys.duplicate_rows(),
        "rows_without_key": keys.rows_without_key(),
        "peer_keys": peer,
        "peer_keys_tested_at_most": bound,
        "max_peer_rows": most,
        "wall_ms": wall.as_secs_f64() * 1e3,
        "bytes_sent": stats.bytes_sent,
        "bytes_received": stats.bytes_received,
        "rounds": stats.rounds,
        "other_side_learned": other_learns,
        "output": args.output,
        "output_rows": rows,
        "cells_left_empty": emptied,
    });
    keys::refused(spec, keys.tally(), &mut object);
    let written = args.output.as_deref().map(destination);
    let mut text = format!(
        "{} of yours written to {}, with identifiers in the column `{}`\n\
         run {run}: use this output with the peer's of the same run\n",
        counted(rows, "row"),
        written.unwrap_or_default(),
        tacit::net::shown(column),
    );
    if emptied > 0 {
        let emptied = counted(emptied, "cell");
        text += &format!("note: {emptied} of yours that do not fit into the output, left empty\n");
    }
    text += &keys::refused_text(spec, keys.tally(), context.has_notes());
    text += &format!(
        "your file: {}, {}, {}, {} without a key\n\
         the peer: {}, of at most {most} allowed\n\
         {:.3} s, {} sent, {} received, {}; {} ({security})\n\
         the other side learned {other_learns}",
        counted(keys.rows(), "row"),
        counted(distinct, "distinct key"),
        counted(keys.duplicate_rows(), "duplicate"),
        counted(keys.rows_without_key(), "row"),
        counted(peer, "distinct key"),
        wall.as_secs_f64(),
        counted(stats.bytes_sent, "byte"),
        stats.bytes_received,
        counted(stats.rounds, "round"),
        tacit::psi::link::NAME,
    );
    if let Some(page) = page {
        page.write(&object, context)?;
    }
    context.result(&object, &text)
}
