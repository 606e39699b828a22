//! `tacit request`: asks a service for an intersection, for lookups or for an answer to a question, shows its
//! terms, and runs if they are taken.

mod lookup;
mod question;

use crate::cli::identifiers::{MatchedByArgs, OrKeyArgs};
use crate::cli::keys::{self, Columns, all, column_list, key_list, word_list};
use crate::cli::output::{Output, name};
use crate::cli::peer::{Security, followed};
use crate::cli::report::{ReportArgs, Sides};
use crate::cli::results::{ResultArgs, Results};
use crate::cli::table::Dialect;
use crate::cli::{Context, verbose, waiting};
use crate::cmd::psi::{Gets, Several, report, tell_matched_by};
use crate::cmd::{available_memory, check_memory};
use serde_json::json;
use std::io::{BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tacit::crypto::text::counted;
use tacit::data::keys::{Named, quoted};
use tacit::data::records::{KeySpec, Normalisation};
use tacit::data::table::Source;
use tacit::job::psi::{Job, Learns, Own, Owned, Reveal, owner};
use tacit::net::{Identity, Limits, Observer};
use tacit::{Error, Result, Session};
use tacit_serve::json::{from_hex, hex};
use tacit_serve::listed::Listed;
use tacit_serve::records::{RECORDS, Records};
use tacit_serve::request::{self, Ask, Floor, Offered, ToOwner};
use tacit_serve::terms::Side;

const AFTER: &str = "\
Examples:
  tacit request match --connect alice.example:7700 --identity bob.key --peer alice.pub \\
      --input kunden.csv --key mail --output both.csv
  tacit request known --connect alice.example:7700 --identity bob.key --peer alice.pub \\
      --tags customers.tags --key mail --value ann@example.com
  tacit request spending --connect alice.example:7700 --identity bob.key --peer alice.pub \\
      --input kunden.csv --question by_segment --set least=100 --security semi-honest \\
      --output answer.csv
  tacit request --list --connect alice.example:7700 --identity bob.key --peer alice.pub

The service offers terms: what each side will learn, the protocol, the sizes, and the remaining budgets. \
They are shown first, and nothing about your file is sent until you accept them, at the terminal or with \
--yes. An offer that does not match the request is rejected. For a scheduler, review the terms once and \
pin them with --terms, and limit the service with --max-peer-rows. Use the same number of key columns as \
the service, in the same order; the terms set how keys are normalised.

--list shows which jobs you may ask for, when, and their remaining budgets. --dry-run shows any terms of \
a job, and why this command would reject them, if so.

For a job that answers lookups, give the service's tag file with --tags, and a table, or single keys with \
--value. Each distinct key is a query, and queries are counted for as long as the tags are current.

For a job that answers questions in SQL, take one of its own with --question, which --list shows, and give \
each of its parameters a value with --set; or give the text with --sql or --sql-file: ours is the service's \
table, theirs is yours.

Each run writes a signed record to --records, which `tacit audit` verifies and shows.";

/// Asks a service for an intersection, for lookups or for an answer in SQL: shows its terms, and runs if they are taken.
#[derive(clap::Args)]
#[command(after_help = AFTER)]
pub(crate) struct Args {
    /// The job's name
    #[arg(required_unless_present = "list", conflicts_with = "list")]
    job: Option<String>,
    /// Lists the jobs that you may ask for, with times and remaining budgets; starts none
    #[arg(long)]
    list: bool,
    /// The service's address
    #[arg(long, value_name = "ADDR")]
    connect: Option<String>,
    /// The relay, HOST:PORT, at which the service waits, if it is not reachable directly
    #[arg(long, value_name = "RELAY", conflicts_with_all = ["connect", "authority"])]
    via: Option<String>,
    /// Your private key, from `tacit keygen`
    #[arg(long, value_name = "FILE")]
    identity: PathBuf,
    /// The service's public key
    #[arg(long, value_name = "PUBFILE", required_unless_present = "authority")]
    peer: Option<PathBuf>,
    /// Trusts the certificate authorities of this PEM file instead of a pinned key; --identity signs your
    /// records then
    #[arg(long, value_name = "FILE", requires_all = ["certificate", "certificate_key", "peer_name"], conflicts_with = "peer")]
    authority: Option<PathBuf>,
    /// Your certificate chain, in PEM, with --authority
    #[arg(long, value_name = "FILE", requires = "authority")]
    certificate: Option<PathBuf>,
    /// The private key of your certificate, in PEM, with --authority
    #[arg(long, value_name = "FILE", requires = "authority")]
    certificate_key: Option<PathBuf>,
    /// The name in the service's certificate, with --authority
    #[arg(long, value_name = "NAME", requires = "authority")]
    peer_name: Option<String>,
    /// Your table: a file, a directory or pattern of files, or an address as in tacit psi; repeat it for
    /// several files as one table
    #[arg(long, value_name = "FILE", num_args = 1, required_unless_present_any = ["value", "list"], conflicts_with_all = ["value", "list"])]
    input: Vec<PathBuf>,
    /// The service's tag file, for a job that answers lookups
    #[arg(long, value_name = "FILE.tags", conflicts_with_all = ["reveal", "result", "give", "sql", "sql_file"])]
    tags: Option<PathBuf>,
    /// A question in SQL, for a job that answers them: ours is the service's table, theirs is yours
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["list", "sql_file"])]
    sql: Option<String>,
    /// The file with the question; - for standard input
    #[arg(long, value_name = "FILE", conflicts_with = "list")]
    sql_file: Option<PathBuf>,
    /// The service's own question of this name, with the values of --set
    #[arg(long, value_name = "NAME", conflicts_with_all = ["list", "sql", "sql_file", "tags"])]
    question: Option<String>,
    /// A parameter of --question and its value, without quotes; repeat it for more
    #[arg(long, value_name = "NAME=VALUE", value_parser = setting, requires = "question", allow_hyphen_values = true)]
    set: Vec<(String, String)>,
    /// What each of your columns may be used for in a question: join, filter, group or aggregate; without it,
    /// as the question says
    #[arg(long, value_name = "COL:USE,..", num_args = 1, value_parser = column_list)]
    allow: Vec<Columns<String>>,
    /// Rejects a question that can show a group of fewer than N joined rows (default: 10)
    #[arg(long, value_name = "N")]
    min_group: Option<u64>,
    /// A key to look up, instead of a table; repeat it for more
    #[arg(long, value_name = "KEY", requires = "tags", conflicts_with_all = ["output", "output_rest", "output_all"])]
    value: Vec<String>,
    /// The column, or several, that make a row's key, each with its type as in COL:TYPE unless it is text;
    /// repeat it or separate by commas
    #[arg(long, value_name = "COL", required_unless_present_any = ["list", "sql", "sql_file", "question"], num_args = 1, value_parser = key_list)]
    key: Vec<Columns<Named>>,
    #[command(flatten)]
    or_key: OrKeyArgs,
    /// Words that mean an empty cell in your file, such as NULL,\N,n/a
    #[arg(long, value_name = "TEXT", num_args = 1, value_parser = word_list, allow_hyphen_values = true)]
    null: Vec<Columns<String>>,
    #[command(flatten)]
    results: ResultArgs,
    #[command(flatten)]
    matched_by: MatchedByArgs,
    #[command(flatten)]
    report: ReportArgs,
    /// Who learns the result, if the job leaves that open
    #[arg(long, value_enum)]
    result: Option<Gets>,
    /// What the result reveals, if the job leaves that open: as --reveal of tacit psi
    #[arg(long, value_name = "KIND", value_parser = clap::value_parser!(Reveal))]
    reveal: Option<Reveal>,
    /// Your columns that may be sent
    #[arg(long, value_name = "COL", num_args = 1, value_parser = column_list)]
    give: Vec<Columns<String>>,
    /// What happens if several rows to send have the same key
    #[arg(long, value_enum, default_value = "refuse")]
    duplicates: Several,
    /// The most bytes that the service's columns may take for each of its keys, such as 128KiB; at most 1MiB
    #[arg(long, value_name = "SIZE", default_value = "64KiB", value_parser = super::psi::key_size)]
    max_cell: u64,
    /// Also sends cells of more than one line, which otherwise end the run before it starts, because they
    /// often mean that a file was read wrongly
    #[arg(long, requires = "give")]
    allow_line_ends: bool,
    /// The least security that you accept
    #[arg(long, value_enum, default_value = "malicious")]
    security: Security,
    /// Rejects terms that a quantum computer breaks
    #[arg(long)]
    post_quantum: bool,
    /// Accepts a service with up to N distinct keys; without it, any number
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    max_peer_rows: Option<u64>,
    /// Accepts that the owner of a column gets its aggregate, and can read from it which keys match: of a number
    /// with --yes and --bounds, of an answer in SQL always
    #[arg(long)]
    result_to_owner: bool,
    /// With --result-to-owner: the widest bounds of what one key adds that you accept
    #[arg(long, value_name = "LEAST..MOST", value_parser = owner::is_bounds, allow_hyphen_values = true, requires = "result_to_owner")]
    bounds: Option<String>,
    /// Accepts only terms with this hash, which --dry-run prints; run, budgets and sizes may differ
    #[arg(long, value_name = "HASH", value_parser = terms_hash)]
    terms: Option<[u8; 32]>,
    /// Accepts the terms without asking; needed without a terminal. Without --result, rejects terms by which
    /// the service learns rows or you nothing
    #[arg(long, conflicts_with = "dry_run")]
    yes: bool,
    /// Shows the terms, whatever --security and --give accept, and declines them
    #[arg(long)]
    dry_run: bool,
    /// The directory of your signed records (default: next to the file of --identity)
    #[arg(long, value_name = "DIR")]
    records: Option<PathBuf>,
    #[command(flatten)]
    table: Dialect,
    /// The HTTP proxy that leads to the service or the relay: HOST:PORT, or http://USER:PASSWORD@HOST:PORT (default:
    /// that of HTTPS_PROXY, unless NO_PROXY has the host)
    #[arg(long, value_name = "ADDR")]
    proxy: Option<String>,
    /// Seconds to wait for the service to appear
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    connect_timeout: u64,
    /// Seconds without a byte from the service before giving up
    #[arg(long, value_name = "SECONDS", default_value_t = 120, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    timeout: u64,
}

pub(super) fn run(args: Args, context: &Context) -> Result<()> {
    if args.connect.is_none() && args.via.is_none() {
        return Err(Error::Usage("give --connect ADDR or --via RELAY".into()));
    }
    let is_stream =
        |input: &PathBuf| input.as_os_str() == "-" || input.exists() && !input.is_file() && !input.is_dir();
    if args.input.iter().any(is_stream) {
        let what = "a record commits to the file's content, so it needs a file that can be read twice".into();
        return Err(Error::Parameter { name: "input", what });
    }
    if args.list || args.tags.is_some() {
        args.report.refuse("lists and lookups")?;
    }
    if args.list {
        return list(&args, context);
    }
    let identity = Identity::load(&args.identity)?;
    let tags = args.tags.as_deref().map(lookup::open).transpose()?;
    let asked = question::of(&args, context)?;
    if asked.is_none() && args.result_to_owner && args.bounds.is_none() {
        let what =
            "--result-to-owner needs --bounds LEAST..MOST: the widest bounds of a number that you accept";
        return Err(Error::Usage(what.into()));
    }
    let ask = Ask { question: asked.as_ref().map(|question| question.text.clone()), ..args.ask() };
    let offered = request::ask(connect(&args, context)?, &ask, &identity)?;
    match tags {
        _ if args.input.is_empty() && args.value.is_empty() => Err(Error::Usage("give --input FILE".into())),
        None if asked.is_some() => question::run(&args, offered, &identity, context),
        Some(tags) => lookup::run(&args, tags, offered, &identity, context),
        None => intersect(&args, offered, &identity, context),
    }
}

/// A parameter of a question and its value.
fn setting(text: &str) -> std::result::Result<(String, String), String> {
    let split = text.split_once('=').filter(|(name, _)| !name.is_empty());
    let (name, value) = split.ok_or("write NAME=VALUE, such as least=100")?;
    Ok((name.trim_start_matches(':').to_owned(), value.to_owned()))
}

/// What we may ask for.
fn list(args: &Args, context: &Context) -> Result<()> {
    let jobs = request::list(connect(args, context)?)?;
    let mut lines: Vec<String> = jobs.iter().flat_map(Listed::words).collect();
    if jobs.is_empty() {
        lines.push("the service offers you no job".to_owned());
    }
    let objects = jobs.iter().map(Listed::object).collect::<std::result::Result<Vec<_>, _>>();
    let objects = objects.map_err(|error| Error::Other(format!("a list of jobs: {error}")))?;
    context.result(&json!({ "name": "jobs", "jobs": objects }), &lines.join("\n"))
}

/// Our chain of records, and its folder.
fn open_records(args: &Args, identity: &Identity, context: &Context) -> Result<(PathBuf, Records)> {
    let folder = args.records.clone().unwrap_or_else(|| args.identity.with_extension("records"));
    let (records, interrupted) = Records::open(&folder, identity, Side::Client)?;
    if interrupted > 0 {
        context.note(&format!(
            "note: recorded as interrupted: {interrupted}",
            interrupted = counted(interrupted, "earlier run")
        ));
    }
    Ok((folder, records))
}

/// Where the record of a run is, if it could be written.
fn record_text(signed: &Result<bool>, run: &str, folder: &Path) -> String {
    let by = match signed {
        Ok(true) => "signed by both sides",
        Ok(false) => "signed by you only",
        Err(_) => return String::new(),
    };
    format!("record of run {run} written to {}, {by}\n", name(&folder.join(RECORDS)))
}

/// The end of a run whose result is there: whether its record is, and both have signed it.
fn keep(signed: Result<bool>, folder: &Path) -> Result<()> {
    match signed {
        Ok(true) => Ok(()),
        Err(error) => Err(Error::Input(format!(
            "the run is complete, with its result, but its record could not be written: {error}; after a fix, \
             the next request records it"
        ))),
        Ok(false) => Err(Error::Peer(format!(
            "the run is complete, but the service did not sign its record; your record is in {}, without its signature",
            name(folder)
        ))),
    }
}

/// Everything that a run needs, once the terms are taken.
struct Ready {
    job: Job,
    own: Own,
    gift: Owned,
    results: Results,
}

/// Reads our table, and shows the terms; nothing where they are not taken.
fn prepare(args: &Args, offered: &Offered, context: &Context) -> Result<Option<Ready>> {
    let mut results = args.results.open(Output::create)?;
    let named = KeySpec::named(all(&args.key), Normalisation::default());
    let spec = args.or_key.add(KeySpec { nulls: all(&args.null), ..named })?;
    let mut job = offered.job(&spec)?;
    job.max_cell = args.results.most_cell(args.max_cell);
    job.line_ends = args.allow_line_ends;
    let admitted =
        offered.admit_types(&spec).and_then(|()| offered.admit(&job, &args.floor(&all(&args.give))));
    args.results.check(&job.reveal)?;
    args.matched_by.check(&args.results)?;
    if args.dry_run {
        let own = read(args, &job, context)?;
        // Cells that cannot be sent stop the run too.
        let sendable = admitted.and_then(|()| {
            let gift = own.gift(&job, args.duplicates.into())?;
            offered.admit_width(gift.bytes_a_key(own.count())?)
        });
        shown(offered, own.count(), sendable.err(), context)?;
        return Ok(None);
    }
    admitted?;
    if job.learns != Learns::Peer {
        if args.yes && !context.json {
            args.results.wanted(&job.reveal)?;
        }
        args.results.note_none(&job.reveal, context);
    }
    let own = read(args, &job, context)?;
    offered.admit_keys(own.count())?;
    if own.keys().rows() == 0 {
        let what = "has no rows: the run would count against your budgets and find nothing; was its export \
                    truncated?";
        return Err(Error::Input(format!("{}: {what}", keys::files(&args.input))));
    }
    results.reserve(own.bytes())?;
    let what = format!("an intersection with {}", counted(own.count(), "key"));
    let memory = job.memory(own.count(), offered.offer.service_keys);
    check_memory(&what, memory, "split the file")?;
    if let Some(available) = available_memory() {
        job.row_memory = available.saturating_sub(memory);
    }
    let gift = own.gift(&job, args.duplicates.into())?;
    offered.admit_width(gift.bytes_a_key(own.count())?)?;
    let is_taken = taken(args, offered, own.count(), context)?;
    Ok(is_taken.then_some(Ready { job, own, gift, results }))
}

fn intersect(args: &Args, offered: Offered, identity: &Identity, context: &Context) -> Result<()> {
    // What keeps it from being written shows before the run is charged.
    let page = args.report.open(|| {
        let keys = (args.authority.is_none().then_some(&*args.identity), args.peer.as_deref());
        let certificates = (args.certificate.as_deref(), args.peer_name.as_deref());
        Sides::new(keys, certificates, &args.input)
    })?;
    let Some(Ready { job, own, gift, results }) = prepare(args, &offered, context)? else {
        return offered.decline();
    };

    let (folder, records) = open_records(args, identity, context)?;
    let offer = offered.offer.clone();
    let progress = context.progress("running", 0, "keys");
    let digest = own.digest()?;
    let ours = (own.keys(), gift.borrowed());
    let mut done = offered.run(&job, &digest, ours, (identity, &records), &progress)?;
    progress.finish();
    let learned = done.service_learned();
    // The run is over and charged: a record that cannot be written takes no result away.
    let signed = done.record();
    let put = results.write(&own, &job, &done.ran.result)?;
    let record = record_text(&signed, &offer.run, &folder);
    let more = [
        ("name", json!("request")),
        ("job", json!(offer.job)),
        ("run", json!(offer.run)),
        ("terms_hash", json!(hex(&offer.hash()?))),
        ("records", json!(folder)),
        ("service_name", json!(offer.service_name)),
        ("client_name", json!(offer.client_name)),
        ("purpose", json!(offer.purpose)),
        ("agreement", json!(offer.agreement)),
        ("signed_by_both", json!(matches!(signed, Ok(true)))),
        ("other_side_learned", json!(learned)),
    ];
    report((&args.results, &put), &job, context, &own, &done.ran, done.service_keys, (&more, &record, page))?;
    keep(signed, &folder)
}

fn connect(args: &Args, context: &Context) -> Result<tacit::net::Session> {
    let stem = |file: &PathBuf| file.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let label = args.peer_name.clone().or_else(|| stem(args.peer.as_ref()?)).unwrap_or_default();
    let waiting = waiting::observer(context.progress, &label);
    let is_verbose = context.verbose;
    let observer = Observer::new(move |event| {
        waiting.tell(event);
        if is_verbose {
            verbose::handshake(event);
        }
    });
    let limits = Limits {
        connect: Duration::from_secs(args.connect_timeout),
        idle: Duration::from_secs(args.timeout),
        ..Limits::default()
    };
    let session = match (&args.connect, &args.via) {
        (Some(address), _) => Session::connect(address),
        (None, Some(relay)) => Session::call(relay),
        (None, None) => return Err(Error::Usage("give --connect ADDR or --via RELAY".into())),
    };
    let session = session.limits(limits).observer(observer).cancel(tacit_console::fault::interrupt());
    let session = match &args.proxy {
        Some(proxy) => session.proxy(proxy),
        None => session.proxy_from_environment(),
    };
    let session =
        match (&args.authority, &args.certificate, &args.certificate_key, &args.peer_name, &args.peer) {
            (Some(authority), Some(chain), Some(key), Some(name), _) => {
                session.certificates(authority, chain, key, name)?
            }
            (.., Some(peer)) => {
                followed(peer, context)?;
                session.keys(&args.identity, peer)?
            }
            _ => return Err(Error::Usage("give --peer PUBFILE".into())),
        };
    session.open(request::agreement())
}

fn read(args: &Args, job: &Job, context: &Context) -> Result<Own> {
    let spec = job.key.clone().ok_or_else(|| Error::Usage("--key names no column".into()))?;
    let source = Source::open_all_pinned(&args.input, spec, args.table.options())?;
    keys::note_errors(&source, &args.input, context);
    args.results.admit(&source)?;
    let progress = context.progress("reading", source.bytes(), "B");
    let mut own = Own::read(source, Path::new(&keys::files(&args.input)), job, |done| progress.set(done))?;
    progress.finish();
    tell_matched_by(&mut own, &args.matched_by, job)?;
    args.results.prove_job(&own, job)?;
    Ok(own)
}

/// Shows the terms as a result of its own, and why we would not take them, if so.
fn shown(offered: &Offered, keys: u64, admitted: Option<Error>, context: &Context) -> Result<()> {
    let mut words = offered.offer.words(keys)?;
    let refused = admitted.or_else(|| offered.admit_keys(keys).err()).map(|error| error.to_string());
    let refused = refused.or_else(|| offered.offer.size_refused(keys));
    words.extend(refused.iter().map(|why| format!("this command would reject them: {why}")));
    let object = json!({
        "name": "terms", "own_keys": keys, "offer": offered.offer, "words": words,
        "fits": offered.offer.fits(keys), "refused": refused, "terms_hash": hex(&offered.offer.hash()?),
    });
    context.result(&object, &words.join("\n"))
}

/// Shows the terms, and whether the user takes them.
fn taken(args: &Args, offered: &Offered, keys: u64, context: &Context) -> Result<bool> {
    let words = offered.offer.words(keys)?;
    if args.yes {
        words.iter().for_each(|line| context.note(line));
        return Ok(true);
    }
    words.iter().for_each(|line| tacit_console::say(line));
    if !std::io::stdin().is_terminal() {
        return Err(Error::Usage("no terminal to confirm the terms; give --yes to accept them".into()));
    }
    let _ = write!(std::io::stderr().lock(), "Accept these terms? [y/N] ");
    let mut answer = String::new();
    let read = std::io::stdin().lock().read_line(&mut answer);
    read.map_err(|e| Error::Other(format!("the answer cannot be read: {e}")))?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}

fn terms_hash(text: &str) -> std::result::Result<[u8; 32], &'static str> {
    from_hex(text).ok_or("a hash of terms is 64 hexadecimal digits, as --dry-run prints")
}

impl Args {
    /// What the user takes at least.
    fn floor<'a>(&'a self, gives: &'a [String]) -> Floor<'a> {
        Floor {
            security: self.security.into(),
            gives,
            result_to_owner: match (self.yes, self.bounds.as_deref()) {
                (false, _) => ToOwner::AsOffered,
                (true, Some(bounds)) => ToOwner::Within(bounds),
                (true, None) => ToOwner::Never,
            },
            post_quantum: self.post_quantum,
            most_service_keys: self.max_peer_rows,
            terms: self.terms,
            unattended: self.yes && self.result.is_none(),
        }
    }

    fn ask(&self) -> Ask {
        let result = self.result.map(|gets| match gets {
            Gets::Me => "client",
            Gets::Peer => "service",
            Gets::Both => "both",
        });
        let reveal = self.reveal.as_ref().map(|reveal| match reveal {
            Reveal::Payload(columns) if !columns.is_empty() => {
                format!("payload:{}", columns.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(","))
            }
            other => other.terms(),
        });
        let job = self.job.clone().unwrap_or_default();
        Ask { job, reveal, result: result.map(str::to_owned), key: None, question: None }
    }
}
