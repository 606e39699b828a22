//! `tacit psi`: which rows of our file have a key that the peer's file has too.

mod large;
mod number;

pub(in crate::cmd) use large::{key_size, size};

use crate::cli::Context;
use crate::cli::identifiers::{self, MatchedByArgs, OrKeyArgs};
use crate::cli::keys::{self, Columns, KeyArgs, column_list};
use crate::cli::output::Output;
use crate::cli::peer::{PeerArgs, Security};
use crate::cli::plan::Picked;
use crate::cli::report::{Report, ReportArgs};
use crate::cli::results::{Put, ResultArgs};
use crate::cli::table::Dialect;
use crate::cmd::available_memory;
use crate::cmd::eval::program::{self, ProgramArgs};
use crate::cmd::eval::{self, AggregateArg};
use crate::cmd::tags::{self, QueryArgs, TableArgs};
use number::{Number, digits};
use serde_json::json;
use std::path::{Path, PathBuf};
use tacit::crypto::text::counted;
use tacit::crypto::workers;
use tacit::data::records::Counts;
use tacit::data::table::Source;
use tacit::job::Ran;
use tacit::job::eval::layout::{Inputs, Layout};
use tacit::job::psi::{
    self as job, Duplicates, Each, Job, Learns, Own, Owned, Reveal, Revealed, refuse_variants,
};
use tacit::lang::Program;
use tacit::two_pc::Owner;
use tacit::{Error, Result, security_name};

/// Where nothing but the protocol bounds what the peer may announce.
const UNKNOWN_MEMORY: &str = "note: this system does not say how much memory is free; --max-peer-rows sets a limit for the \
    other side's keys";

/// What the peer is called in a sentence about what this side learns.
pub(in crate::cmd) const THE_PEER: &str = "the peer";

const AFTER: &str = "\
Examples:
  tacit psi --listen 0.0.0.0:7700 --identity alice.key --peer bob.pub \\
      --input customers.csv --key email --result peer
  tacit psi --connect alice.example:7700 --identity bob.key --peer alice.pub \\
      --input kunden.csv --key email --result me --output both.csv
  tacit psi --config job.toml --key last_name,birthdate

Your peer learns how many distinct keys you have and, with --result peer or both, which of its
own keys you have too; nothing else. A cheating peer that gets the result can test more keys
than it announces, up to a bound that --dry-run and the result print. With --security
semi-honest this is true only for a peer that follows the protocol.
Use the same number of key columns, of the same types (`tacit check --help` lists them) and in
the same order on both sides; their names may differ.
With --key email --or-key phone:NL a row matches if either is common. The side with the result then
learns for each of its e-mail addresses and each of its phone numbers whether the peer has it, not
only which rows match; the peer learns how many you have of all together. Works with rows and payload.

Kinds of results (--reveal; the same on both sides, with the owner's name of a column):
  rows            which of your rows have a key that the peer has (the default)
  payload:COL,..  the same, with these columns of the peer's rows; the side that sends them uses
                  --reveal payload --give COL,.. and sends no other column
  count           how many keys match, but not which
  sum:COL         the sum of COL over the rows of matching keys; the column's owner adds --give COL
  mean:COL        the same, with the number of rows and the mean
  max:COL, min:COL, over:N:COL  the largest or smallest number of a matching key, or how many have
                  one above N, in its unit and with a point; up to 4,194,304 keys on each side
  shares          the inputs of the function of --eval, whose results over all matching keys are
                  shown as --aggregate; up to 4,194,304 keys on each side
Against a peer that may cheat, a count, sum or mean supports at most 16,384 keys on each side
(seconds and a gigabyte for 4,096; --dry-run estimates); max, min, over and shares need
--security semi-honest. --min-matches N withholds an aggregate unless N keys match. Two ways to
abuse aggregates remain: padding a file with keys known to be the peer's, and running twice
with files that differ in one key.
A side that chooses a column's numbers and gets their sum can read 64 memberships and more from
one result, so the result goes to the other side. --result-to-owner on both sides allows it for
the owner, with --bounds that leave fewer bits.

--output - writes to standard output; the result in words then goes to standard error.";

/// `--result`, as the command line has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Gets {
    /// Only this side learns the matches; the peer uses `--result peer`
    Me,
    /// Only the peer learns the matches; it uses `--result me`
    Peer,
    /// Both learn the matches; both use `--result both`
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
pub(super) enum Protocol {
    /// vole if the receiving side has at most 1,024 keys; else the faster one for the sets' sizes and the
    /// link: vole from about 10,000 keys on both sides together, over slow links from 2,000
    Auto,
    /// Key-value store and OT extension
    Paxos,
    /// Key-value store and vector oblivious linear evaluation: the fastest, on newer assumptions
    Vole,
    /// Queries to a tag file that the peer published: needs --tags
    Oprf,
}

impl Protocol {
    /// The job's protocol; queries to a published file are a job of their own.
    fn of_job(self) -> Option<job::Protocol> {
        match self {
            Protocol::Auto => Some(job::Protocol::Auto),
            Protocol::Paxos => Some(job::Protocol::Paxos),
            Protocol::Vole => Some(job::Protocol::Vole),
            Protocol::Oprf => None,
        }
    }
}

/// `--duplicates`, as the command line has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Several {
    /// The run ends before anything is sent
    Refuse,
    /// The first row is sent
    First,
    /// All are sent; the peer learns how many rows the most frequent key has
    All,
}

impl From<Several> for Duplicates {
    fn from(several: Several) -> Self {
        match several {
            Several::Refuse => Duplicates::Refuse,
            Several::First => Duplicates::First,
            Several::All => Duplicates::All,
        }
    }
}

/// `--reveal`: a kind that says all by itself, or shares for a function.
fn reveal(text: &str) -> std::result::Result<Reveal, String> {
    match text {
        "shares" => Ok(Reveal::Shares),
        kind => kind.parse().map_err(|what| format!("{what}; or shares, with --eval")),
    }
}

/// Private set intersection of two files: who is in both.
#[derive(clap::Args)]
#[command(after_help = AFTER)]
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
    #[command(flatten)]
    results: ResultArgs,
    #[command(flatten)]
    matched_by: MatchedByArgs,
    #[command(flatten)]
    report: ReportArgs,
    /// Who learns the matches
    #[arg(long, value_enum, default_value = "me")]
    result: Gets,
    /// What the result reveals: rows, payload[:COL,..], count, sum:COL, mean:COL, max:COL, min:COL,
    /// over:N:COL, or with --eval: shares
    #[arg(long, value_name = "KIND", default_value = "rows", value_parser = reveal)]
    reveal: Reveal,
    /// With --reveal shares: the function that is evaluated for every matching key, on the columns that both
    /// sides send, as in `tacit eval`, with the listening side as the garbler. Must match on both sides
    #[arg(long, value_name = "CIRCUIT|NAME|PROGRAM", requires = "aggregate")]
    eval: Option<String>,
    /// With --eval: the aggregate of all results that is shown; must match on both sides
    #[arg(long, value_enum, requires = "eval")]
    aggregate: Option<AggregateArg>,
    #[command(flatten)]
    program: ProgramArgs,
    /// Your columns that are sent: those that the peer may request, or the one that is added up
    #[arg(long, value_name = "COL", num_args = 1, value_parser = column_list)]
    give: Vec<Columns<String>>,
    /// Withholds a number unless at least N keys match, of max, min and over N with a number; must match on both
    /// sides
    #[arg(long, value_name = "N", default_value_t = 0)]
    min_matches: u64,
    /// The least and the most that one key adds to a sum, mean, max, min or over, in the column's unit
    /// and with a point (0.50..7.25 for COL:decimal2): numbers outside count as the nearer bound, and a key's rows as
    /// one number. Must match on both sides
    #[arg(long, value_name = "LEAST..MOST", value_parser = job::owner::is_bounds, allow_hyphen_values = true)]
    bounds: Option<String>,
    /// Lets the owner of a column get its aggregate. The owner can choose the column's numbers such that the
    /// result reveals which keys match; needs --bounds. Must match on both sides
    #[arg(long)]
    result_to_owner: bool,
    /// What happens if several rows to send have the same key
    #[arg(long, value_enum, default_value = "refuse")]
    duplicates: Several,
    /// The protocol; must match on both sides
    #[arg(long, value_enum, default_value = "auto")]
    protocol: Protocol,
    /// What kind of peer to protect against; must match on both sides
    #[arg(long, value_enum, default_value = "malicious")]
    security: Security,
    /// The tag file that the peer published (`tacit tags publish`) and now serves: the cost depends only on
    /// your file, whatever the size of the peer's
    #[arg(long, value_name = "FILE.tags")]
    tags: Option<PathBuf>,
    /// The base OT: mrr21 (default), mr19, csw20 or roted (post-quantum);
    /// must match on both sides
    #[arg(long, value_name = "NAME")]
    base_ot: Option<String>,
    /// The most distinct keys that the peer may have (default, and maximum: what this machine's memory
    /// allows)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    max_peer_rows: Option<u64>,
    /// The most bytes that the peer's columns may take for each of its keys, all columns and rows together,
    /// such as 128KiB; at most 1MiB. The peer chooses the width, and your side reserves as much memory for
    /// each possible match
    #[arg(long, value_name = "SIZE", default_value = "64KiB", value_parser = large::key_size)]
    max_cell: u64,
    /// Also sends cells of more than one line, which otherwise end the run before it starts, because they
    /// often mean that a file was read wrongly
    #[arg(long, requires = "give")]
    allow_line_ends: bool,
    /// For tables whose keys do not fit in memory: uses at most SIZE of it, such as 2GiB, and puts keys into
    /// encrypted buckets on disk, which are intersected one by one. Must be set on both sides
    #[arg(long, value_name = "SIZE", value_parser = large::size)]
    memory: Option<u64>,
    /// With --memory: the directory for the buckets, at most 120 bytes per row and identifier (default: the output's
    /// directory)
    #[arg(long, value_name = "DIR", requires = "memory")]
    spill: Option<PathBuf>,
    /// With --memory: the least number of buckets, a power of two
    #[arg(long, value_name = "N", default_value_t = 1, requires = "memory")]
    buckets: u64,
    /// With --memory: stores the progress of the run in this directory, encrypted, so that the same command
    /// continues it after a crash on either side. Must be set on both sides
    #[arg(long, value_name = "DIR", requires = "memory", conflicts_with = "dry_run")]
    resume: Option<PathBuf>,
    /// With --resume: encrypts its files with the bytes of this file, at least 32, instead of the identity
    /// key
    #[arg(long, value_name = "FILE", requires = "resume")]
    seal_key: Option<PathBuf>,
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
    workers::limited(args.peer.workers(), || intersect(args, context))
}

fn intersect(args: Args, context: &Context) -> Result<()> {
    if args.result == Gets::Peer {
        args.results.check_none()?;
    }
    let refuse = |name, what: &str| Err(Error::Parameter { name, what: what.to_owned() });
    match (&args.reveal, &args.eval) {
        (Reveal::Shares, None) => {
            return refuse(
                "reveal",
                "shares are the inputs of a function: set it with --eval, and the aggregate with --aggregate",
            );
        }
        (kind, Some(_)) if *kind != Reveal::Shares => {
            return refuse("eval", "needs --reveal shares, whose inputs the function takes");
        }
        _ => {}
    }
    let (function, mut job) = (args.function()?, args.job()?);
    job.each = function.as_ref().map(|(each, _)| each.clone());
    job.check()?;
    let gives_rows = matches!(job.reveal, Reveal::Payload(_) | Reveal::Shares) && !job.give.is_empty();
    if args.duplicates != Several::Refuse && !gives_rows {
        let what =
            "is about rows that you send: it needs --reveal payload or shares, and --give; leave it out"
                .into();
        return Err(Error::Parameter { name: "duplicates", what });
    }
    if args.tags.is_some() || args.protocol == Protocol::Oprf {
        return published(args, context);
    }
    args.results.check(&job.reveal)?;
    args.matched_by.check(&args.results)?;
    if let Some(memory) = args.memory {
        return large::run(&args, &job, memory, context);
    }
    if args.dry_run {
        return dry_run(&args, &job, function.as_ref(), context);
    }
    if args.result == Gets::Me {
        args.results.note_none(&job.reveal, context);
    }
    let mut session = args.peer.session(args.security, context)?;
    if let Some(name) = &args.base_ot {
        session = session.base_ot(name);
    }
    for protocol in job.protocol.candidates() {
        session.allow(protocol)?;
    }
    let base = session.base()?.name();
    let mut results = args.results.open(Output::create)?;
    let page = args.report.open(|| args.peer.sides(&args.input))?;
    let table = read(&args, &job, context)?;
    results.reserve(table.bytes())?;
    let keys = table.count();
    let what = format!("an intersection with {keys}", keys = counted(keys, "key"));
    crate::cmd::check_memory(&what, job.memory(keys, 0), "split the file")?;
    if let Some(note) = too_few(&job, keys) {
        context.note(&note);
    }
    let most = job.most_peer_keys(keys, available_memory());
    match available_memory() {
        Some(available) => job.row_memory = available.saturating_sub(job.memory(keys, keys)),
        None if args.max_peer_rows.is_none() => context.note(UNKNOWN_MEMORY),
        None => {}
    }

    let progress = context.progress("waiting", 0, "keys");
    let gift = sent(&args, &job, function.as_ref(), &table)?;
    let ran = session.run_psi_with(&job, table.keys().elements(), gift.borrowed(), most, &progress)?;
    progress.finish();

    let put = results.write(&table, &job, &ran.result)?;
    report((&args.results, &put), &job, context, &table, &ran, most, (&[("base_ot", json!(base))], "", page))
}

impl Args {
    /// The function of every common key, and the program that it comes from.
    fn function(&self) -> Result<Option<(Each, Option<Program>)>> {
        let (Some(name), Some(which)) = (&self.eval, self.aggregate) else {
            return self.program.refuse().map(|()| None);
        };
        let program = self.program.load(name)?;
        let function = match &program {
            Some(program) => program::function(name, program),
            None => self.program.circuit(name)?,
        };
        let signed = eval::total::is_signed(program.as_ref())?;
        let each = Each::new(function, program.as_ref().map(Program::digest), which.into(), signed)?;
        Ok(Some((each, program)))
    }

    fn job(&self) -> Result<Job> {
        let bounds = self.bounds.as_deref().map(|text| job::owner::bounds(text, self.reveal.form()));
        let bounds = bounds.transpose().map_err(|what| Error::Parameter { name: "bounds", what })?;
        Ok(Job {
            protocol: self.protocol.of_job().unwrap_or_default(),
            key: Some(self.or_key.add(self.key.spec())?),
            most_peer_keys: self.max_peer_rows,
            max_cell: self.results.most_cell(self.max_cell),
            line_ends: self.allow_line_ends,
            reveal: self.reveal.clone(),
            give: keys::all(&self.give),
            min_matches: self.min_matches,
            bounds,
            result_to_owner: self.result_to_owner,
            ..Job::new(self.result.into(), self.security.into())
        })
    }
}

/// What this side sends of its columns, with every cell read.
fn sent(args: &Args, job: &Job, function: Option<&(Each, Option<Program>)>, table: &Own) -> Result<Owned> {
    match function {
        // A dry run without an address is for either side.
        Some(function) if args.dry_run && !args.peer.is_given() => {
            inputs(args, table, function, true).or_else(|_| inputs(args, table, function, false))
        }
        Some(function) => inputs(args, table, function, args.peer.listens()?),
        None => table.gift(job, args.duplicates.into()),
    }
}

/// What the function of each common key takes of our columns, on the side that `listens` or not.
fn inputs(
    args: &Args,
    table: &Own,
    (each, program): &(Each, Option<Program>),
    listens: bool,
) -> Result<Owned> {
    let role = if listens { Owner::Garbler } else { Owner::Evaluator };
    let fields = each.function().fields(role);
    let inputs = match program.as_ref() {
        Some(program) => Inputs::Literals(program, role),
        None => Inputs::Numbers(fields),
    };
    let give = keys::all(&args.give);
    let columns: Vec<usize> = (0..give.len()).collect();
    let layout = Layout::new(inputs, &columns, &give).map_err(|error| {
        let side = if listens { "listens" } else { "connects" };
        Error::Parameter { name: "give", what: format!("of the side that {side}: {error}") }
    })?;
    if columns.is_empty() {
        return Ok(Owned::None);
    }
    table.numbers(&give, args.duplicates.into(), |cells| layout.read(cells).map(|row| Each::packed(&row)))
}

/// The small side of an unbalanced intersection: queries to a published file.
fn published(args: Args, context: &Context) -> Result<()> {
    args.report.refuse("queries to a file of tags")?;
    args.or_key.refuse("a tag file has one key; leave it out")?;
    refuse_variants(&args.key.spec(), "a tag file has")?;
    let refuse = |name, what: &str| Err(Error::Parameter { name, what: what.to_owned() });
    let Some(tags) = args.tags else {
        return refuse("protocol", "oprf queries a tag file that the peer published: name it with --tags");
    };
    match args.protocol {
        Protocol::Auto | Protocol::Oprf => {}
        Protocol::Paxos | Protocol::Vole => {
            return refuse("protocol", "tag files are queried by oprf; leave one of the two out");
        }
    }
    if args.result != Gets::Me || args.reveal != Reveal::Rows {
        return refuse("tags", "only the client of a tag file gets a result, its own matching rows");
    }
    if args.base_ot.is_some() {
        return refuse("base-ot", "queries to a tag file use no oblivious transfer; leave it out");
    }
    if args.security != Security::Malicious {
        return refuse(
            "security",
            "queries to a tag file are always secure against a cheating server; leave it out",
        );
    }
    if args.max_peer_rows.is_some() {
        return refuse("max-peer-rows", "the tag file has its number of keys; leave it out");
    }
    let table = TableArgs { input: args.input, key: args.key, table: args.table };
    let query = QueryArgs { table, tags, results: args.results, peer: args.peer };
    match args.dry_run {
        true => tags::dry_query(&query, context),
        false => tags::query(&query, context),
    }
}

/// The candidates for our file, as if the peer had as many keys; what it can learn, as if it had no more than it
/// may have.
fn dry_run(
    args: &Args,
    job: &Job,
    function: Option<&(Each, Option<Program>)>,
    context: &Context,
) -> Result<()> {
    let table = read(args, job, context)?;
    // A cell that cannot be sent would otherwise be found only after the peer has connected.
    sent(args, job, function, &table)?;
    let keys = table.count();
    let link = args.peer.link().into();
    let base = args.peer.base(args.base_ot.as_deref(), args.security)?;
    let machine = tacit::plan::Machine::measure();
    let candidates = job.estimate(keys, &link, &machine)?;
    let candidates = crate::cli::plan::from_base(candidates, &args.peer, &*base, &link, &machine)?;
    let announced = args.max_peer_rows.map_or(keys, |most| most.min(keys));
    let learns = job.will_learn(keys, announced)?;
    let gains = as_peer(job).will_learn_of(THE_PEER, keys, announced)?;
    let only = candidates.first().map_or("", |first| first.protocol);
    let why = job.why(job::Protocol::named(only).unwrap_or_default(), [keys, keys], Some(&link));
    // No reason is needed for one that was named, which is the only candidate.
    let chosen = why.map_or(Picked::Named(only), Picked::Because);
    crate::cli::plan::show(context, "psi", keys, &link, &candidates, chosen, [&*learns, &*gains])?;
    if let (false, Reveal::Payload(columns)) = (context.json, &job.reveal)
        && !columns.is_empty()
    {
        let held = args.max_cell.saturating_mul(announced).div_ceil(1 << 20);
        let most = args.max_cell;
        context.result(
            &json!(null),
            &format!(
                "the peer's columns may have {most} per key, and need up to {held} MiB of memory",
                most = counted(most, "byte")
            ),
        )?;
    }
    if let (false, Some(note)) = (context.json, too_few(job, keys)) {
        context.result(&json!(null), &note)?;
    }
    if let (false, Some(warning)) = (context.json, job.reveal.warning(job.min_matches)) {
        context.result(&json!(null), &format!("note: {warning}"))?;
    }
    if !context.json {
        let most = job.most_peer_keys(keys, available_memory());
        context.result(
            &json!(null),
            &format!(
                "the other side may have at most {most}",
                most = counted(most, identifiers::noun(job.key.as_ref()))
            ),
        )?;
    }
    Ok(())
}

/// Who gets the result, as the peer says it.
pub(in crate::cmd) fn flipped(learns: Learns) -> Learns {
    match learns {
        Learns::Me => Learns::Peer,
        Learns::Peer => Learns::Me,
        Learns::Both => Learns::Both,
    }
}

/// The job as the peer sees it.
fn as_peer(job: &Job) -> Job {
    let give = match (&job.reveal, job.give.is_empty()) {
        (Reveal::Payload(columns), true) => columns.clone(),
        (Reveal::Sum(column) | Reveal::Mean(column) | Reveal::Of(_, column), true) => vec![column.clone()],
        _ => Vec::new(),
    };
    let reveal = match &job.reveal {
        // Only the side that takes columns names them there.
        Reveal::Payload(_) => Reveal::Payload(Vec::new()),
        other => other.clone(),
    };
    Job { learns: flipped(job.learns), reveal, give, ..job.clone() }
}

/// That the number of a file with so few keys is withheld whatever the peer has.
fn too_few(job: &Job, keys: u64) -> Option<String> {
    let least = job.min_matches;
    (least > keys).then(|| {
        let keys = counted(keys, identifiers::noun(job.key.as_ref()));
        format!("note: your file has {keys}, fewer than --min-matches {least}: the result will be withheld")
    })
}

/// Our file, with its keys read.
fn read(args: &Args, job: &Job, context: &Context) -> Result<Own> {
    let spec = job.key.clone().ok_or_else(|| Error::Usage("--key names no column".into()))?;
    let source = Source::open_all(&args.input, spec, args.table.options())?;
    keys::note_errors(&source, &args.input, context);
    args.results.admit(&source)?;
    let progress = context.progress("reading", source.bytes(), "B");
    let mut own = Own::read(source, Path::new(&keys::files(&args.input)), job, |done| progress.set(done))?;
    progress.finish();
    tell_matched_by(&mut own, &args.matched_by, job)?;
    args.results.prove_job(&own, job)?;
    Ok(own)
}

/// Has `own` write the column that says by which identifier a row matches, if there is to be one.
pub(super) fn tell_matched_by(own: &mut Own, args: &MatchedByArgs, job: &Job) -> Result<()> {
    match (&args.matched_by, &job.key) {
        (Some(column), Some(spec)) => own.tell_matched_by(column, spec.identifier_names()),
        _ => Ok(()),
    }
}

/// How many keys match, and whether that is suspicious.
fn suspicious_text(matches: u64, own: u64, peer: u64, object: &mut serde_json::Value) -> String {
    object["union_keys"] = json!(own.saturating_add(peer).saturating_sub(matches));
    let warning = keys::suspicious(matches, own, peer);
    object["suspicious"] = json!(warning);
    let warning = warning.map_or_else(String::new, |warning| format!("suspicious: {warning}\n"));
    format!("{matches}\n{warning}", matches = counted(matches, "match"))
}

/// How many distinct keys both sides have together, where that is known.
fn union(object: &serde_json::Value) -> String {
    object["union_keys"].as_u64().map_or_else(String::new, |keys| format!(", {keys} on both sides together"))
}

/// Which columns the run was about, as this side names them.
fn columns(job: &Job, object: &mut serde_json::Value) {
    if let Some(spec) = &job.key {
        object["key_columns"] = json!(spec.columns);
    }
    match &job.reveal {
        Reveal::Payload(columns) if !columns.is_empty() => object["received_columns"] = json!(columns),
        Reveal::Sum(column) | Reveal::Mean(column) | Reveal::Of(_, column) => {
            object["column"] = json!(column);
            if digits(&job.reveal) > 0 {
                object["decimal_digits"] = json!(digits(&job.reveal));
            }
        }
        _ => {}
    }
    if !job.give.is_empty() {
        object["given_columns"] = json!(job.give);
    }
}

/// A field of the result's object.
pub(super) type Field<'a> = (&'a str, serde_json::Value);

/// Tells the result of a run; `more` are fields that go into the object as well, `record` is the line that names the
/// run's record, if there is one.
pub(super) fn report(
    (results, put): (&ResultArgs, &Put),
    job: &Job,
    context: &Context,
    table: &Own,
    ran: &Ran<Revealed>,
    most_peer_keys: u64,
    (more, record, page): (&[Field<'_>], &str, Option<Report>),
) -> Result<()> {
    let Ran { result, wall, stats } = ran;
    let outcome = &result.outcome(job.learns);
    let own = table.keys();
    let distinct = table.count();
    let matches = outcome.matches.as_ref().map(Vec::len);
    let announced = outcome.peer_elements;
    let why = match result {
        Revealed::Rows(_, why) => why.clone(),
        _ => job.leaves_no_choice(),
    };
    let (protocol, security) = (outcome.protocol, security_name(job.security));
    let bound = job.tested(outcome, distinct)?.map(|tested| tested.most);
    let variant = job.variant(distinct, announced);
    let other_learns = job.has_learned(distinct, outcome)?;
    let mut object = json!({
        "name": "psi",
        "protocol": protocol,
        "protocol_why": why,
        "variant": variant,
        "security": security,
        "result": job.result_name(),
        "reveal": job.reveal.name(),
        "own_rows": own.rows(),
        "own_keys": distinct,
        "duplicates": own.duplicate_rows(),
        "rows_without_key": own.rows_without_key(),
        "peer_keys": announced,
        "peer_keys_tested_at_most": bound,
        "max_peer_rows": most_peer_keys,
        "wall_ms": wall.as_secs_f64() * 1e3,
        "bytes_sent": stats.bytes_sent,
        "bytes_received": stats.bytes_received,
        "rounds": stats.rounds,
        "other_side_learned": other_learns,
    });
    for (name, value) in more {
        object[*name] = value.clone();
    }
    // A service's record says it in a sentence of its own.
    let said =
        more.iter().find(|(name, _)| *name == "other_side_learned").and_then(|(_, said)| said.as_str());
    let other_learns = said.map_or(format!("the other side learned {other_learns}"), str::to_owned);
    let spec = job.key.as_ref();
    if let Some(spec) = spec {
        object["key"] = json!(spec.agreed_types());
        keys::refused(spec, own.tally(), &mut object);
    }
    columns(job, &mut object);
    let several = spec.filter(|spec| spec.is_open());
    if let Some(spec) = several {
        object["variants"] = json!(spec.has_variants());
        let [rows, values] = [|of: &Counts| of.rows, |of: &Counts| of.distinct]
            .map(|of| own.counts().iter().map(of).collect::<Vec<_>>());
        object["identifiers"] = identifiers::object(spec, &rows, Some(&values));
    }
    let mut text = match (matches, result) {
        (Some(matches), _) => {
            object["matches"] = json!(matches);
            let said = suspicious_text(matches as u64, distinct, announced, &mut object);
            match several.zip(table.matched(outcome)) {
                Some((spec, matched)) => {
                    let text = identifiers::matched(spec, &matched, true, &mut object);
                    text + said.split_once('\n').map_or("", |(_, suspicious)| suspicious)
                }
                None => said,
            }
        }
        (None, Revealed::Statistic(Some(found), _)) => {
            let told = Number::of_statistic(*found, job);
            told.put_into(&mut object);
            told.text
        }
        (None, Revealed::Total(Some(found), _)) => {
            let told = Number::of_total(found, job);
            told.put_into(&mut object);
            told.text
        }
        (None, Revealed::Aggregate(job::AggregateOutcome { result: Some(found), .. })) => {
            let told = Number::of(found, job);
            told.put_into(&mut object);
            if let job::Aggregate::Count(common) = found {
                object["union_keys"] = json!((distinct + announced).saturating_sub(*common));
            }
            told.text
        }
        _ => "the peer has the result\n".to_owned(),
    };
    if job.reveal.is_aggregate() {
        number::agreed(job, &mut object);
    }
    if let Some(warning) = job.reveal.warning(job.min_matches) {
        object["warning"] = json!(warning);
        if context.has_notes() {
            text += &format!("note: {warning}\n");
        }
    }
    text += &put.report(results, &mut object);
    text += record;
    text += &spec.map_or_else(String::new, |spec| keys::refused_text(spec, own.tally(), context.has_notes()));
    // A service's terms have said how many it has.
    let allowed = match more.iter().any(|(field, _)| *field == "terms_hash") {
        true => String::new(),
        false => format!(", of at most {most_peer_keys} allowed"),
    };
    let noun = identifiers::noun(spec);
    text += &format!(
        "your file: {}, {}, {}, {} without a key\n\
         the peer: {}{}\n\
         {:.3} s, {} sent, {} received, {}; {protocol} ({security}){}{}\n\
         {other_learns}",
        counted(own.rows(), "row"),
        counted(distinct, noun),
        counted(own.duplicate_rows(), "duplicate"),
        counted(own.rows_without_key(), "row"),
        counted(announced, noun),
        union(&object) + &allowed,
        wall.as_secs_f64(),
        counted(stats.bytes_sent, "byte"),
        stats.bytes_received,
        counted(stats.rounds, "round"),
        variant.map_or_else(String::new, |variant| format!(", {variant}")),
        why.map_or_else(String::new, |why| format!(", {why}")),
    );
    if let Some(page) = page {
        page.write(&object, context)?;
    }
    context.result(&object, &text)
}
