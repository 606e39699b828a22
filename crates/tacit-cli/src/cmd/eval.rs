//! `tacit eval`: a circuit, or a function by name, on both parties' inputs.

pub(super) mod batch;
mod dry_run;
pub(super) mod form;
mod halves;
mod long;
mod pool;
pub(super) mod program;
pub(crate) mod total;

use crate::cli::Context;
use crate::cli::output::{Output, destination, open};
use crate::cli::peer::{PeerArgs, Security, learned};
use crate::cli::report::{Report, ReportArgs};
use form::Form;
use serde_json::json;
use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tacit::catalogue::{self, AUTHENTICATED, FunctionEntry, WMK17, computations, fields_in_words, functions};
use tacit::crypto::BitVec;
use tacit::crypto::hex;
use tacit::crypto::text::counted;
use tacit::job::eval::layout::Inputs;
use tacit::job::eval::{Evaluated, Job, Options, memory};
use tacit::net::Stats;
use tacit::two_pc::Owner;
use tacit::two_pc::circuit::value::{self, Field, Format};
use tacit::two_pc::circuit::{LongFunction, named};
use tacit::two_pc::wmk17::Copies;
use tacit::{Error, Result, ot, security_name};
use tacit_console::options::{OutputArg, output_to};
use total::Total;
use zeroize::Zeroizing;

const AFTER: &str = "\
Examples:
  tacit eval millionaires --listen 127.0.0.1:7700 --identity alice.key --peer bob.pub \\
      --role garbler --input 5000000
  tacit eval millionaires --connect 127.0.0.1:7700 --identity bob.key --peer alice.pub \\
      --role evaluator --input 4000000
  tacit eval add32 --batch --listen 127.0.0.1:7700 --identity alice.key --peer bob.pub --role garbler \\
      --input salaries.csv --columns salary --output totals.csv --security semi-honest
  tacit eval bid.garble.rs --batch --aggregate sum --listen 127.0.0.1:7700 --identity alice.key --peer bob.pub \\
      --role garbler --input bids.csv --columns bid
  tacit eval circuit.txt --dry-run --rows 1000 --link wan
  tacit eval aes128 --listen 127.0.0.1:7700 --identity alice.key --peer bob.pub --role garbler --offline aes.state
  tacit eval aes128 --listen 127.0.0.1:7700 --identity alice.key --peer bob.pub --role garbler --online aes.state \
      --input 0x2b7e151628aed2a6abf7158809cf4f3c
  tacit eval auction.garble.rs --listen 127.0.0.1:7700 --identity alice.key --peer bob.pub --role garbler \
      --input 'Seller { reserve: 100, offers: [120, 90, 0, 0] }'
  tacit eval modexp1024 --dry-run --link lan
  tacit eval --list

Values are 0x… hex, most significant digit first, or decimal integers; several are separated by
commas. Negative ones are for functions of signed numbers (--list), or any with --format
signed. Outputs are hex unless --format is set. A program's values are literals of its
language, in and out.
A batch reads a table (CSV, Parquet or Arrow), with one evaluation per row. --columns lists the
columns with the inputs, in the function's order: one for each input, or one for each value of
all inputs. Both sides' tables need the same number of rows. --output has your rows with the
outputs after them, with types if the file has types.

--offline does the work that needs no inputs in advance, and --online uses it up: one
evaluation, with few bytes and rounds left. tacit eval pool make prepares gates for any
function, and --pool uses them up. Both files are encrypted with the identity key, or with
--pool-key. Never restore one from a backup.";

/// `--role`, as the command line has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub(super) enum Role {
    /// Garbles the circuit
    Garbler,
    /// Evaluates the garbled circuit
    Evaluator,
}

/// `--format`, as the command line has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub(super) enum FormatArg {
    /// 0x… and all digits, the most significant first
    Hex,
    /// Decimal integers, negative if the function's numbers are signed
    Decimal,
    /// Decimal integers in two's complement, your inputs too, whatever the function's own type is
    Signed,
}

impl FormatArg {
    /// The function's fields as they are to be read and written.
    pub(super) fn fields(self, fields: &[Field]) -> Vec<Field> {
        match self {
            FormatArg::Signed => fields.iter().map(|field| field.in_twos_complement()).collect(),
            FormatArg::Hex | FormatArg::Decimal => fields.to_vec(),
        }
    }
}

/// `--aggregate`, as the command line has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum AggregateArg {
    /// The sum
    Sum,
    /// How many are not zero
    Count,
}

impl AggregateArg {
    fn name(self) -> &'static str {
        match self {
            AggregateArg::Sum => "sum",
            AggregateArg::Count => "count",
        }
    }
}

/// The OT extension that --ot names, which is called by the name of the other commands' option in the library.
fn extension(args: &Args) -> Result<&'static catalogue::Entry> {
    ot::protocol(&args.ot, args.security.into()).map_err(|error| match error {
        Error::Parameter { name: "protocol", what } => Error::Parameter { name: "ot", what },
        other => other,
    })
}

/// What `tacit eval` does besides evaluations.
#[derive(clap::Subcommand)]
enum Command {
    /// Gates made in advance, for any function, stored in an encrypted file for one use
    #[command(subcommand, after_help = pool::AFTER)]
    Pool(pool::PoolCommand),
}

/// Evaluates a circuit on both parties' inputs.
#[derive(clap::Args)]
#[command(after_help = after(), args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    /// The name of a function (see --list), a Bristol file, or a program (FILE.garble.rs);
    /// must match on both sides
    #[arg(value_name = "CIRCUIT|NAME|PROGRAM", required_unless_present = "list")]
    function: Option<String>,
    #[command(flatten)]
    program: program::ProgramArgs,
    /// Shows the functions there are
    #[arg(long)]
    list: bool,
    /// Which side this is
    #[arg(long, value_enum, required_unless_present_any = ["list", "dry_run"])]
    role: Option<Role>,
    #[command(flatten)]
    given: batch::InputArgs,
    /// Writes the table's rows with the outputs after them to this file, in the format of its name
    #[arg(long, value_name = "FILE", requires = "batch")]
    output: Option<PathBuf>,
    /// Shows only the sum of all rows' results, or how many of them are true or not zero; must match on both
    /// sides
    #[arg(long, value_enum, requires = "batch", conflicts_with_all = ["output", "dry_run"])]
    aggregate: Option<AggregateArg>,
    /// How outputs are written
    #[arg(long, value_enum, default_value = "hex")]
    format: FormatArg,
    /// Who learns the outputs; must match on both sides
    #[arg(long, value_enum, default_value = "both")]
    output_to: OutputArg,
    /// What kind of peer to protect against; must match on both sides
    #[arg(long, value_enum, default_value = "malicious")]
    security: Security,
    /// The protocol: wmk17 or authenticated against a cheating peer; yao, or batch for many rows in parallel,
    /// between sides that follow it; auto picks, and measures the link if needed. Must match on both sides
    #[arg(long, value_name = "P", default_value = "auto", value_parser = protocols())]
    protocol: String,
    /// The numbers of copies that cut-and-choose garbles and evaluates; auto measures the link. Must match on
    /// both sides
    #[arg(long, value_name = "COPIES", default_value = "auto", value_parser = ["auto", "44", "44/22", "47/16"], conflicts_with = "online")]
    copies: String,
    /// The OT extension; must match on both sides
    #[arg(long, value_name = "P", default_value = "auto", conflicts_with = "online")]
    ot: String,
    /// Does the work that needs no inputs in advance, and stores it in this new file
    #[arg(long, value_name = "FILE", conflicts_with_all = ["online", "input", "batch", "dry_run"])]
    offline: Option<PathBuf>,
    /// Finishes an evaluation started with --offline, and uses up its file
    #[arg(long, value_name = "FILE", conflicts_with_all = ["batch", "dry_run"])]
    online: Option<PathBuf>,
    /// Uses up this pool of `tacit eval pool make`, which leaves little to send
    #[arg(long, value_name = "FILE", conflicts_with_all = ["offline", "online", "copies", "ot", "dry_run"])]
    pool: Option<PathBuf>,
    /// With --offline, --online and --pool: the file is encrypted with the bytes of this one, at least 32,
    /// instead of the identity key
    #[arg(long, value_name = "FILE", conflicts_with = "dry_run")]
    pool_key: Option<PathBuf>,
    /// Only estimates the cost: over --link, or over the link to a peer that does a dry run too
    #[arg(long)]
    dry_run: bool,
    /// With --dry-run: how many evaluations to estimate; with --batch as many as the table has rows
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1 << 32), requires = "dry_run", conflicts_with = "batch")]
    rows: u64,
    #[command(flatten)]
    report: ReportArgs,
    #[command(flatten)]
    peer: PeerArgs,
}

pub(super) fn run(mut args: Args, context: &Context) -> Result<()> {
    if let Some(Command::Pool(command)) = args.command.take() {
        return pool::run(command, context);
    }
    if args.list {
        return list(context);
    }
    let name = args.function.as_deref().unwrap_or_default();
    let program = args.program.load(name)?;
    if let (None, Some(function)) = (&program, LongFunction::find(name)) {
        return long::run(&args, &function, context);
    }
    let function = match &program {
        Some(program) => program::function(name, program),
        None => args.program.circuit(name)?,
    };
    let form = Form::new(&function, args.format, program);
    check_memory(&args, &function)?;
    let prepared = program::prepared(&function, form.program.as_ref())?;
    // Rows side by side take a circuit of few levels where they are few.
    let prepared = match args.program.shallow(name, &args.protocol)? {
        Some(circuit) => prepared.with_shallow(circuit)?,
        None => prepared,
    };
    if args.pool_key.is_some() && args.offline.is_none() && args.online.is_none() && args.pool.is_none() {
        return Err(Error::Usage(
            "--pool-key encrypts a file: add --offline FILE, --online FILE or --pool FILE".into(),
        ));
    }
    args.given.check()?;
    let output_to = output_to(args.output_to);
    let ot = if args.ot == "auto" { None } else { Some(extension(&args)?) };
    let protocol = catalogue::find(&args.protocol);
    let options = Options { protocol, copies: Copies::by_name(&args.copies), ot };
    let role = match args.role {
        Some(Role::Garbler) => Owner::Garbler,
        Some(Role::Evaluator) => Owner::Evaluator,
        None if args.dry_run => Owner::Garbler,
        None => return Err(Error::Usage("--role is missing".into())),
    };
    let job = Job { function: &prepared, role, output_to, security: args.security.into(), options };
    job.check()?;
    if protocol.is_some_and(|entry| entry.name != WMK17.name)
        && (args.offline.is_some() || args.online.is_some())
    {
        let what = format!("an evaluation in two halves works only with {}; leave the other out", WMK17.name);
        return Err(Error::Parameter { name: "protocol", what });
    }
    if args.pool.is_some()
        && (args.security == Security::SemiHonest
            || protocol.is_some_and(|entry| entry.name != AUTHENTICATED.name))
    {
        let what = format!(
            "a pool works only with {}, against a malicious peer; leave the other out",
            AUTHENTICATED.name
        );
        return Err(Error::Parameter { name: "pool", what });
    }
    let fields = args.format.fields(function.fields(role));
    let inputs = match &form.program {
        Some(program) => Inputs::Literals(program, role),
        None => Inputs::Numbers(&fields),
    };
    let read_table = || args.given.batch.then(|| batch::Table::read(&args.given, inputs)).transpose();
    if args.dry_run {
        // Without a role it is not known which columns are this side's.
        let table = if args.role.is_some() { read_table()? } else { None };
        if args.role.is_some() && !args.given.batch && !args.given.input.is_empty() {
            single(inputs, &args.given.input)?;
        }
        let rows = table.map_or(args.rows, |table| table.rows().len().max(1) as u64);
        return dry_run::run(&args, rows, &function, &job, context);
    }
    if let Some(entry) = protocol {
        args.peer.allow(entry.name)?;
    }
    if let Some(path) = &args.offline {
        args.report.refuse("the half of an evaluation that has no inputs")?;
        return halves::offline(&args, path, &function, &job, context);
    }
    if args.output.is_some() && !job.tells(role) {
        return Err(Error::Usage(
            "--output is empty: with --output-to only the peer gets the outputs; leave one of the two out"
                .into(),
        ));
    }
    let table = read_table()?;
    let rows = match &table {
        Some(table) => table.rows(),
        None => &[single(inputs, &args.given.input)?][..],
    };
    let total = match (args.aggregate, &table) {
        (Some(which), Some(table)) => Some(Total::new(which, &function, &form, table)?),
        _ => None,
    };
    let (function, form, job, rows) = match &total {
        Some(total) => {
            let job = Job { function: &total.prepared, ..job };
            (&total.function, &total.form, job, &total.rows[..])
        }
        None => (&function, &form, job.fitted(rows.len()), rows),
    };
    refuse_memory(function, job.memory(rows.len(), args.peer.threads()))?;
    if args.peer.threads() > rows.len().max(1) {
        return Err(Error::Usage(format!(
            "--threads {}: each thread needs a row, and there are {}; use fewer threads",
            args.peer.threads(),
            rows.len()
        )));
    }
    if let (Some(table), Some(path)) = (&table, &args.output) {
        table.admits(path)?;
    }
    let mut output = args.output.as_deref().map(Output::create).transpose()?;
    if let (Some(table), Some(output)) = (&table, &mut output) {
        output.reserve(table.length(form))?;
    }
    let state = args.online.as_deref().map(|path| halves::open(&args, path, role)).transpose()?;
    let pool = match args.pool.as_deref() {
        Some(path) => Some((path, pool::open(&args, path)?)),
        None => None,
    };
    if let Some((path, pool)) = &pool {
        job.fits(pool, rows.len()).map_err(|e| pool::blamed(path, e))?;
        refuse_memory(function, job.memory_with(pool))?;
    }
    let page = args.page()?;
    let session = args.peer.session(args.security, context)?;
    let start = Instant::now();
    let progress = context.progress("waiting", 0, "rows");
    let (evaluated, stats) = match (state, &args.online) {
        (Some(state), Some(path)) => {
            let done = session.finish_evaluation(&job, state, &rows[0]);
            let (outputs, stats) = done.map_err(|e| halves::named(path, e))?;
            (Evaluated { outputs, protocol: WMK17.name, why: None }, stats)
        }
        _ => match pool {
            Some((path, pool)) => {
                session.evaluate_with(&job, pool, rows, &progress).map_err(|e| pool::blamed(path, e))?
            }
            None => session.evaluate(&job, rows, &progress)?,
        },
    };
    progress.finish();
    let wall = start.elapsed();
    if let (Some(table), Some(mut output), Some(outputs)) = (&table, output, &evaluated.outputs) {
        table.write(form, outputs, &mut output)?;
        output.commit()?;
    }
    let subject = Subject {
        function: &function.name,
        digest: Some(hex(&job.function.digest())),
        form,
        role,
        ands: job.function.circuit().stats().and,
        mode: match (&args.online, &args.pool) {
            (Some(_), _) => "online",
            (_, Some(_)) => "pool",
            _ => "single",
        },
        rows: rows.len(),
        learns: job.learns(job.peer()),
    };
    report((&args, page), context, &subject, &evaluated, wall, &stats)
}

impl Args {
    /// The page about the run, if it was asked for. Values of the command line are no file, and stay out of it.
    fn page(&self) -> Result<Option<Report>> {
        let tables: Vec<PathBuf> = match self.given.batch {
            true => self.given.input.iter().map(PathBuf::from).collect(),
            false => Vec::new(),
        };
        self.report.open(|| self.peer.sides(&tables))
    }

    /// The protocol, if it is not left to the planner.
    fn named(&self) -> Option<&str> {
        Some(&*self.protocol).filter(|name| *name != "auto")
    }
}

/// What `--protocol` takes.
fn protocols() -> clap::builder::PossibleValuesParser {
    let names = std::iter::once("auto").chain(computations().map(|entry| entry.name));
    clap::builder::PossibleValuesParser::new(names)
}

/// Refuses a function that needs more memory than there is, by the sizes that its file declares.
fn check_memory(args: &Args, function: &named::Function) -> Result<()> {
    let (gates, shape) = (function.circuit.stats().gates, function.circuit.shape());
    let bits = (shape.input_bits() + shape.output_bits()) as u64;
    refuse_memory(function, memory(args.security.into(), gates, bits, args.peer.threads() as u64))
}

fn refuse_memory(function: &named::Function, needed: u64) -> Result<()> {
    let what = format!("evaluating {}", function.name);
    crate::cmd::check_memory(&what, needed, "use a smaller circuit or fewer threads")
}

/// What was evaluated.
struct Subject<'a> {
    function: &'a str,
    /// Of its circuit, which both sides compared; a function too large to hold has none.
    digest: Option<String>,
    form: &'a Form,
    role: Owner,
    ands: u64,
    mode: &'static str,
    rows: usize,
    /// What the other side learns.
    learns: &'static str,
}

fn report(
    (args, page): (&Args, Option<Report>),
    context: &Context,
    subject: &Subject<'_>,
    Evaluated { outputs, protocol, why }: &Evaluated,
    wall: Duration,
    stats: &Stats,
) -> Result<()> {
    let Subject { form, rows, .. } = *subject;
    let outputs = outputs.as_ref();
    let written =
        |format| outputs.map(|rows| rows.iter().map(|row| form.written(row, format)).collect::<Vec<_>>());
    let other_learns = learned(args.security, subject.learns);
    context.note(&format!(
        "{} by {protocol} ({}{}) in {:.3} s with connecting and setup; {} sent, {} received, {}; \
         the other side learned {other_learns}",
        tacit::net::shown(subject.function),
        security_name(args.security.into()),
        why.as_ref().map_or_else(String::new, |why| format!(", {why}")),
        wall.as_secs_f64(),
        counted(stats.bytes_sent, "byte"),
        stats.bytes_received,
        counted(stats.rounds, "round"),
    ));
    let flags: Vec<(&str, usize)> = outputs.into_iter().flat_map(|rows| form.flags(rows)).collect();
    for (flag, set) in flags.iter().filter(|(_, set)| *set > 0) {
        let of = if args.given.batch {
            format!(" in {set} of {rows}", rows = counted(rows, "row"))
        } else {
            String::new()
        };
        context.warn(&format!("note: {flag}{of}: the result there is wrong"));
    }
    // Of a batch a list, else the one row.
    let shown = |format| match (written(format), args.given.batch) {
        (rows, true) => json!(rows),
        (rows, false) => json!(rows.and_then(|rows| rows.into_iter().next())),
    };
    let mut object = json!({
        "name": "eval",
        "function": subject.function,
        "circuit_digest": subject.digest,
        "protocol": protocol,
        "protocol_why": why,
        "security": security_name(args.security.into()),
        "role": halves::name(subject.role),
        "mode": subject.mode,
        "and": subject.ands,
        "rows": rows,
        "outputs": shown(Format::Hex),
        "decimals": shown(Format::Decimal),
        "output_names": form.names(),
        "learned": outputs.is_some(),
        "aggregate": args.aggregate.map(AggregateArg::name),
        "flags": flags.into_iter().collect::<BTreeMap<_, _>>(),
        "wall_ms": wall.as_secs_f64() * 1e3,
        "bytes_sent": stats.bytes_sent,
        "bytes_received": stats.bytes_received,
        "rounds": stats.rounds,
        "other_side_learned": other_learns,
    });
    let rows_written = written(form.format);
    let mut text = rows_written.iter().flatten().map(|row| row.join(" ")).collect::<Vec<_>>().join("\n");
    if let Some(path) = &args.output {
        // They stand in the file.
        object["outputs"] = json!(null);
        object["decimals"] = json!(null);
        object["output"] = json!(path);
        text = format!("{rows} written to {}", destination(path), rows = counted(rows, "row"));
    }
    if let Some(page) = page {
        page.write(&object, context)?;
    }
    context.result(&object, &text)
}

/// Our one row of inputs.
pub(super) fn single(inputs: Inputs<'_>, given: &[String]) -> Result<Vec<BitVec>> {
    let text = Zeroizing::new(match given {
        [] => String::new(),
        [_, _, ..] => return Err(Error::Usage("several --input are one table, which needs --batch".into())),
        [value] => match value.strip_prefix('@') {
            None => value.to_owned(),
            Some(path) => {
                let path = Path::new(path);
                let mut text = String::new();
                let read = open(path)?.read_to_string(&mut text);
                read.map_err(|e| Error::file(path, "reading the input", e))?;
                text
            }
        },
    });
    match inputs {
        Inputs::Numbers(fields) => value::parse(fields, &text).map_err(|e| refused(given, &e)),
        Inputs::Literals(program, role) => program.parse(role, &text).map_err(|e| refused(given, &e)),
    }
}

/// Why the values of `--input` do not serve: first of all, that there are none.
fn refused(given: &[String], what: &dyn std::fmt::Display) -> Error {
    match given {
        [] => Error::Usage("--input is missing".into()),
        _ => Error::Input(format!("--input: {what}")),
    }
}

/// Shows the functions as the catalogue has them.
fn list(context: &Context) -> Result<()> {
    for entry in functions() {
        let FunctionEntry { name, size, largest, about } = entry;
        let Some(function) = entry.build(name) else { continue };
        let [garbler, evaluator, outputs] =
            [&function.garbler, &function.evaluator, &function.outputs].map(|fields| fields_in_words(fields));
        let and = function.circuit.stats().and;
        let sizes = size
            .map_or(String::new(), |size| format!(" (size {size} unless written behind, at most {largest})"));
        let object = json!({
            "name": name,
            "size": size,
            "limit": size.map(|_| largest),
            "about": about,
            "garbler": garbler,
            "evaluator": evaluator,
            "outputs": outputs,
            "and": and,
        });
        let text = format!(
            "{name:14} {about}{sizes}\n{:14} garbler: {garbler}; evaluator: {evaluator}; out: {outputs}; {and}",
            "",
            and = counted(and, "AND gate")
        );
        context.result(&object, &text)?;
    }
    long::list(context)
}

/// What `--help` says behind the options: the names of the functions and the examples.
fn after() -> String {
    let mut names = String::from("Functions (--list has more):");
    let mut line = names.len();
    for entry in functions() {
        if line + 1 + entry.name.len() > 80 {
            names.push_str("\n ");
            line = 1;
        }
        names.push(' ');
        names.push_str(entry.name);
        line += 1 + entry.name.len();
    }
    format!("{names}\n\n{AFTER}")
}
