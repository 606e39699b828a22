//! `tacit query`: a question in SQL about both sides' joined tables.

mod shown;

pub(super) use shown::{Table, noise};

use super::psi::{Gets, THE_PEER, flipped};
use crate::cli::Context;
use crate::cli::keys::{self, Columns, KeyArgs, column_list};
use crate::cli::output::Output;
use crate::cli::peer::{PeerArgs, Security};
use crate::cli::plan::{self, Picked};
use crate::cli::report::ReportArgs;
use crate::cli::table::Dialect;
use crate::cmd::available_memory;
use serde_json::json;
use std::io::Read;
use std::path::{Path, PathBuf};
use tacit::crypto::text::counted;
use tacit::crypto::workers;
use tacit::data::records::KeySpec;
use tacit::data::table::Source;
use tacit::data::values;
use tacit::job::Ran;
use tacit::job::psi::Own;
use tacit::job::query::{Answer, Job, Purpose, Question, Rows, Side, USUAL_LEAST};
use tacit::net::small;
use tacit::plan::Machine;
use tacit::query::MOST_TEXT_BYTES;
use tacit::{Error, Result, security_name};

const AFTER: &str = "\
Examples:
  tacit query --listen 0.0.0.0:7700 --identity shop.key --peer club.pub --input orders.csv \\
      --sql-file question.sql --security semi-honest --result peer
  tacit query --connect shop.example:7700 --identity club.key --peer shop.pub --input members.csv \\
      --sql-file question.sql --security semi-honest --result me --output answer.csv
  tacit query --explain --sql-file question.sql --result peer

A question joins the table of each side, once each, and asks for numbers of the joined rows:

  SELECT b.segment, COUNT(*) AS buyers, SUM(CLIP(a.cents, 0, 100000)) AS spent
  FROM ours a JOIN theirs b ON a.email = b.email
  WHERE a.cents > 1000 AND b.country = 'DE' AND b.segment IN ('basic', 'plus')
  GROUP BY b.segment
  HAVING COUNT(*) >= 50
  WITH NOISE EPSILON 0.5

ours is the table of the side that listens, theirs that of the side that connects; both sides give the
same text. What names one side's columns alone is computed by that side on its own rows. Numbers that go
into a sum, and groups, have bounds in the text: CLIP(number, least, most), and IN (...) or CASE for a
group. A key, a date or an amount has its type in its name, in double quotes: a.\"tel:phone:NL\",
a.\"born:date\", a.\"amount:decimal2\". The last line adds noise that neither side knows, so that no
number reveals a single key; ROUND TO 10 in front of it would round the numbers. Both are optional. docs/use/query.md has the whole language.

Nobody sees a row, or which keys match. Your peer learns how many distinct keys you have; who gets the
result learns that, and which groups are not in it. It is secure against a peer that follows the
protocol, which --security semi-honest says that you know.";

/// Asks a question in SQL about both sides' tables: counts and sums by group
#[derive(clap::Args)]
#[command(after_help = AFTER, mut_arg("key", |key| key.required(false).hide(true)))]
pub(crate) struct Args {
    /// The question; must match on both sides
    #[arg(long, value_name = "TEXT", required_unless_present = "sql_file", conflicts_with = "sql_file")]
    sql: Option<String>,
    /// The file with the question; - for standard input
    #[arg(long, value_name = "FILE")]
    sql_file: Option<PathBuf>,
    /// Your table: CSV or JSON lines (plain or compressed), Parquet, Arrow or Excel (FILE.xlsx#SHEET!A1:D9); - for
    /// standard input; a directory or pattern of files; or on another machine:
    /// postgresql://HOST/DATABASE#QUERY, adbc:DRIVER?uri=...#QUERY, s3://BUCKET/KEY, https://HOST/FILE.
    /// Repeat it for several files as one table
    #[arg(long, value_name = "FILE", required_unless_present = "dry_run", num_args = 1)]
    input: Vec<PathBuf>,
    /// Which of the question's tables is yours (default: ours if you listen, theirs if you connect); needed with
    /// --via
    #[arg(long, value_enum, value_name = "ours|theirs", hide_possible_values = true)]
    side: Option<SideArg>,
    /// What each of your columns may be used for: join, filter, group or aggregate; a question that uses one
    /// otherwise is refused. Without it your columns may be used as the question says
    #[arg(long, value_name = "COL:USE,..", num_args = 1, value_parser = column_list)]
    allow: Vec<Columns<String>>,
    /// Who gets the result
    #[arg(long, value_enum, default_value = "me")]
    result: Gets,
    /// Refuses a question that can show a group of fewer than N joined rows: it says so by HAVING COUNT(*) >= N
    #[arg(long, value_name = "N", default_value_t = USUAL_LEAST)]
    min_group: u64,
    /// Lets a side get sums and other numbers of its own columns. It can choose the numbers such that the result
    /// reveals which keys match. Must match on both sides
    #[arg(long)]
    result_to_owner: bool,
    /// What happens if several of your rows that pass your side's part of WHERE have the same key
    #[arg(long, value_enum, default_value = "refuse")]
    duplicates: DuplicatesArg,
    /// What kind of peer to protect against; questions are semi-honest only. Must match on both sides
    #[arg(long, value_enum, default_value = "malicious")]
    security: Security,
    /// Writes the result as a table to this file: CSV, Parquet, Arrow or Excel, by its name
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// The base OT: mrr21 (default), mr19, csw20 or roted (post-quantum); must match on both sides
    #[arg(long, value_name = "NAME")]
    base_ot: Option<String>,
    /// The most distinct keys that the peer may have (default, and maximum: what this machine's memory
    /// allows)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    max_peer_rows: Option<u64>,
    /// Prints who computes what, what each side learns, and what a run would cost on the --link given, and starts
    /// nothing
    #[arg(long = "explain")]
    dry_run: bool,
    #[command(flatten)]
    key: KeyArgs,
    #[command(flatten)]
    report: ReportArgs,
    #[command(flatten)]
    table: Dialect,
    #[command(flatten)]
    peer: PeerArgs,
}

/// `--side`, as the command line has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub(super) enum SideArg {
    Ours,
    Theirs,
}

impl From<SideArg> for Side {
    fn from(side: SideArg) -> Self {
        match side {
            SideArg::Ours => Side::Ours,
            SideArg::Theirs => Side::Theirs,
        }
    }
}

/// `--duplicates`, as the command line has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub(super) enum DuplicatesArg {
    /// The run ends before anything is sent
    Refuse,
    /// The first row counts
    First,
}

pub(super) fn run(args: Args, context: &Context) -> Result<()> {
    workers::limited(args.peer.workers(), || ask(args, context))
}

fn ask(args: Args, context: &Context) -> Result<()> {
    let sql = text(args.sql.as_deref(), args.sql_file.as_deref())?.unwrap_or_default();
    let question =
        tacit::query::parse(&sql).map_err(|fault| Error::Usage(format!("the question: {fault}")))?;
    let job = args.job(question)?;
    if args.dry_run {
        return explain(&args, &job, context);
    }
    job.check()?;
    if args.output.is_some() && args.result == Gets::Peer {
        let what = "the peer gets the result; leave it out".to_owned();
        return Err(Error::Parameter { name: "output", what });
    }
    let mut session = args.peer.session(args.security, context)?;
    if let Some(name) = &args.base_ot {
        session = session.base_ot(name);
    }
    let base = session.base()?.name();
    if let Some(target) = args.output.as_deref().filter(|target| *target != Path::new("-")) {
        values::admits_alone(target)?;
    }
    let output = args.output.as_deref().map(Output::create).transpose()?;
    let page = args.report.open(|| args.peer.sides(&args.input))?;
    let (own, rows) = read(&args, &job, context)?;
    let keys = own.count();
    let what = format!("a question over {}", counted(keys, "key"));
    let room = job.room(keys)?;
    crate::cmd::check_memory(&what, room.memory(0), "split the file, or ask for fewer groups")?;
    let most = room.most_peer_keys(available_memory());
    let progress = context.progress("waiting", 0, "keys");
    let ran = session.run_query(&job, own.keys().elements(), &rows, most, &progress)?;
    progress.finish();
    let table = shown::Table::of(&job.question, &ran.result);
    if let (Some(table), Some(output)) = (&table, output) {
        table.write(output)?;
    }
    report(&args, &job, (&own, &rows), &ran, table, (base, page), context)
}

/// The text of a question that is given as it is, or in a file.
pub(super) fn text(sql: Option<&str>, file: Option<&Path>) -> Result<Option<String>> {
    let Some(path) = file else { return Ok(sql.map(str::to_owned)) };
    let most = MOST_TEXT_BYTES as u64;
    let bytes = match path == Path::new("-") {
        true => {
            let mut bytes = Vec::new();
            let read = std::io::stdin().lock().take(most + 1).read_to_end(&mut bytes);
            read.map(|_| bytes)
        }
        false => small::read(path, most).map(|(bytes, _)| bytes.to_vec()),
    };
    let bytes = bytes.map_err(|error| Error::file(path, "reading the question", error))?;
    let fault = |what: &str| Error::Input(format!("{}: {what}", crate::cli::output::name(path)));
    if bytes.len() as u64 > most {
        return Err(fault(&format!("longer than the {} that a question may have", counted(most, "byte"))));
    }
    let text = String::from_utf8(bytes).map_err(|_| fault("a question is text in UTF-8"))?;
    Ok(Some(text))
}

impl Args {
    fn job(&self, question: Question) -> Result<Job> {
        if self.security == Security::Malicious && !self.dry_run {
            return Err(Error::Parameter {
                name: "security",
                what: "a question is secure only against a peer that follows the protocol; set semi-honest on both sides"
                    .to_owned(),
            });
        }
        if self.key.is_given() {
            let what = "the question names the key: ON a.column = b.column; leave it out".to_owned();
            return Err(Error::Parameter { name: "key", what });
        }
        let allowed = keys::all(&self.allow).iter().map(|text| allowed(text)).collect::<Result<Vec<_>>>()?;
        let spec = self.key.spec();
        let job = Job::new(question, self.side()?, self.result.into(), spec.normalisation)?;
        Ok(Job {
            result_to_owner: self.result_to_owner,
            least: self.min_group,
            allowed: (!allowed.is_empty()).then_some(allowed),
            key: KeySpec { nulls: spec.nulls, shown: spec.shown, ..job.key.clone() },
            most_peer_keys: self.max_peer_rows,
            ..job
        })
    }

    /// Which of the tables is ours.
    fn side(&self) -> Result<Side> {
        match self.side {
            Some(side) => Ok(side.into()),
            None if self.peer.is_given() => match self.peer.listens() {
                Ok(true) => Ok(Side::Ours),
                Ok(false) => Ok(Side::Theirs),
                Err(_) => {
                    let what = "say which of the question's tables is yours: ours or theirs".to_owned();
                    Err(Error::Parameter { name: "side", what })
                }
            },
            None => Ok(Side::Ours),
        }
    }
}

/// Reads `COL:USE`.
pub(super) fn allowed(text: &str) -> Result<(String, Purpose)> {
    let found = text.rsplit_once(':');
    match found.and_then(|(column, name)| Some((column, Purpose::named(name.trim())?))) {
        Some((column, purpose)) => Ok((column.trim().to_owned(), purpose)),
        None => {
            let text = tacit::net::shown(text);
            let what = format!("`{text}`: write COL:USE, where USE is join, filter, group or aggregate");
            Err(Error::Parameter { name: "allow", what })
        }
    }
}

/// Our table, with its keys and what its rows put in.
fn read(args: &Args, job: &Job, context: &Context) -> Result<(Own, Rows)> {
    let source = Source::open_all(&args.input, job.key.clone(), args.table.options())?;
    keys::note_errors(&source, &args.input, context);
    if let Some(output) = &args.output {
        source.admits(output)?;
    }
    let progress = context.progress("reading", source.bytes(), "B");
    let path = keys::files(&args.input);
    let first = args.duplicates == DuplicatesArg::First;
    let read = job.read(source, Path::new(&path), first, |done| progress.set(done))?;
    progress.finish();
    Ok(read)
}

/// What a run would do, and cost.
fn explain(args: &Args, job: &Job, context: &Context) -> Result<()> {
    /// Keys for which a question without a table is planned.
    const PLANNED_KEYS: u64 = 1_000_000;
    job.check()?;
    let keys = match args.input.is_empty() {
        true => PLANNED_KEYS,
        false => read(args, job, context)?.0.count(),
    };
    let (link, machine) = (args.peer.link().into(), Machine::measure());
    let base = args.peer.base(args.base_ot.as_deref(), args.security)?;
    let work = job.work(keys)?;
    if !context.json {
        context.result(&json!(null), &shown::explained(&job.question, &work))?;
    }
    let candidates =
        plan::from_base(vec![job.estimate(keys, &link, &machine)?], &args.peer, &*base, &link, &machine)?;
    let why = "picked because no other protocol answers questions".to_owned();
    let as_peer = Job { side: job.side.other(), learns: flipped(job.learns), ..job.clone() };
    let learns = [job.will_learn(keys), as_peer.will_learn_of(THE_PEER, keys)];
    let learns = [&*learns[0], &*learns[1]];
    plan::show(context, "query", keys, &link, &candidates, Picked::Because(why), learns)?;
    if !context.json {
        context.result(&json!(null), &format!("note: {}", job.warning()))?;
    }
    Ok(())
}

/// Tells the result of a run.
fn report(
    args: &Args,
    job: &Job,
    (own, rows): (&Own, &Rows),
    ran: &Ran<Answer>,
    table: Option<shown::Table>,
    (base, page): (&str, Option<crate::cli::report::Report>),
    context: &Context,
) -> Result<()> {
    let Ran { result, wall, stats } = ran;
    let security = security_name(tacit::Security::SemiHonest);
    let other_learns = job.will_learn(own.count());
    let mut object = json!({
        "name": "query",
        "question": job.question.text,
        "table": job.side.name(),
        "security": security,
        "result": job.learns.name(),
        "result_to_owner": job.result_to_owner,
        "base_ot": base,
        "min_group": job.question.least,
        "epsilon": job.question.epsilon_text(),
        "round_to": job.question.step,
        "mean_noise": job.question.outputs.iter().map(|(_, output)| job.question.mean_noise(output)).collect::<Vec<_>>(),
        "own_rows": own.keys().rows(),
        "own_keys": own.count(),
        "own_keys_passing": rows.passing,
        "own_rows_left_out": rows.left_out,
        "own_rows_unfit": rows.unfit,
        "rows_without_key": own.keys().rows_without_key(),
        "peer_keys": result.peer_keys,
        "groups": job.question.group_count(),
        "wall_ms": wall.as_secs_f64() * 1e3,
        "bytes_sent": stats.bytes_sent,
        "bytes_received": stats.bytes_received,
        "rounds": stats.rounds,
        "other_side_learned": other_learns,
        "warning": job.warning(),
        "output": args.output,
    });
    keys::refused(&job.key, own.keys().tally(), &mut object);
    let groups = job.question.group_count();
    let mut text = match &table {
        Some(table) => table.tell(groups, args.output.as_deref(), &mut object),
        None => "the peer has the result\n".to_owned(),
    };
    if let Some(noise) = noise(&job.question).filter(|_| table.is_some()) {
        text += &format!("{noise}\n");
    }
    if context.has_notes() {
        text += &format!("note: {}\n", job.warning());
    }
    text += &left_out(rows);
    text += &keys::refused_text(&job.key, own.keys().tally(), context.has_notes());
    text += &format!(
        "your file: {}, {}, {} of them with a row that passes your part of WHERE, {} without a key\nthe peer: {}\n{:.3} s, \
         {} sent, {} received, {}; {security}\nthe other side learned {other_learns}",
        counted(own.keys().rows(), "row"),
        counted(own.count(), "distinct key"),
        rows.passing,
        counted(own.keys().rows_without_key(), "row"),
        counted(result.peer_keys, "distinct key"),
        wall.as_secs_f64(),
        counted(stats.bytes_sent, "byte"),
        stats.bytes_received,
        counted(stats.rounds, "round"),
    );
    if let Some(page) = page {
        page.write(&object, context)?;
    }
    context.result(&object, &text)
}

/// Which of our rows do not count, in notes.
pub(super) fn left_out(rows: &Rows) -> String {
    let were = |rows: u64| format!("{} {}", counted(rows, "row"), if rows == 1 { "was" } else { "were" });
    let mut notes = String::new();
    if rows.left_out > 0 {
        notes += &format!("note: {} left out, as an earlier row has the same key\n", were(rows.left_out));
    }
    if rows.unfit > 0 {
        let them = if rows.unfit == 1 { "it" } else { "them" };
        notes += &format!(
            "note: {} left out, as what the question computes of {them} does not fit\n",
            were(rows.unfit)
        );
    }
    notes
}
