//! `tacit psi`: which rows of our file have a key that the peer's file has too.

use crate::cli::Context;
use crate::cli::fault;
use crate::cli::peer::{PeerArgs, Security};
use crate::cli::progress::Progress;
use serde_json::json;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tacit::crypto::Prg;
use tacit::net::Stats;
use tacit::psi::csv::{Delimiter, EmptyKeys, Options, Output, Source};
use tacit::psi::paxos::{self, Learns, MAX_ELEMENTS, Outcome, Phase};
use tacit::psi::records::{KeySet, KeySpec, Normalisation};
use tacit::psi::vole_psi;
use tacit::{Error, Result, psi_agreement, security_name};

const AFTER: &str = "\
Examples:
  tacit psi --listen 0.0.0.0:7700 --identity alice.key --peer bob.pub \\
      --input customers.csv --key email --result peer
  tacit psi --connect alice.example:7700 --identity bob.key --peer alice.pub \\
      --input kunden.csv --key email --result me --output both.csv
  tacit psi --config job.toml --key last_name,birthdate

The other side learns how many distinct keys we have, and with --result peer or both also
which of its own keys we have; nothing else. Keys must be as many and in the same order on both
sides; their names may differ.";

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
    /// The planner's choice: paxos
    Auto,
    /// Key-value store and OT extension
    Paxos,
    /// Key-value store and vector oblivious linear evaluation: the fastest, on newer assumptions
    Vole,
}

impl Protocol {
    fn name(self) -> &'static str {
        match self {
            Protocol::Auto | Protocol::Paxos => paxos::NAME,
            Protocol::Vole => vole_psi::NAME,
        }
    }
}

/// Private set intersection of two files: who is in both.
#[derive(clap::Args)]
#[command(after_help = AFTER)]
pub struct Args {
    /// Our CSV file, UTF-8 with a header
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
    /// The base OT: mrr21 (default), mr19, csw20, pvw08, roted (post-quantum) or bdgm19; both
    /// sides must say the same
    #[arg(long, value_name = "NAME")]
    base_ot: Option<String>,
    /// The most distinct keys that the peer may have
    #[arg(long, value_name = "N", default_value_t = MAX_ELEMENTS as u64)]
    max_peer_rows: u64,
    /// Compares keys without Unicode normalisation (NFC); both sides must do so
    #[arg(long)]
    no_nfc: bool,
    /// Compares keys with the white space at their ends; both sides must do so
    #[arg(long)]
    no_trim: bool,
    /// Compares keys in upper and lower case as they are; both sides must do so
    #[arg(long)]
    no_case_fold: bool,
    /// What separates the fields of our file: one character, or auto for the most frequent of , ; | and tab
    #[arg(long, value_name = "CHAR", default_value = "auto", value_parser = delimiter)]
    delimiter: Delimiter,
    /// Refuses a row with an empty key column, where otherwise it matches nothing
    #[arg(long)]
    refuse_empty_keys: bool,
    /// Reads our file and prints what the run would cost on the --link given with a peer's file of the same size; starts nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    peer: PeerArgs,
}

/// Reads `--delimiter`.
pub fn delimiter(text: &str) -> std::result::Result<Delimiter, String> {
    match (text, text.as_bytes()) {
        ("auto", _) => Ok(Delimiter::Auto),
        ("tab" | "\\t", _) => Ok(Delimiter::Byte(b'\t')),
        (_, [byte]) if byte.is_ascii() && *byte != b'"' => Ok(Delimiter::Byte(*byte)),
        _ => Err("give auto, tab or one ASCII character".into()),
    }
}

/// Bytes that a party holds for sets of `count` elements, from the peaks of runs of 2^17 and 2^19 elements.
pub fn memory(count: u64, security: Security) -> u64 {
    let (base, each) = match security {
        Security::Malicious => (18 << 20, 335),
        Security::SemiHonest => (14 << 20, 263),
    };
    base + each * count
}

/// Runs the subcommand.
pub fn run(args: Args, context: &Context) -> Result<()> {
    if args.output.is_some() && args.result == Gets::Peer {
        return Err(Error::Usage(
            "--output has nothing to hold with --result peer; leave one of the two out".into(),
        ));
    }
    if args.dry_run {
        return dry_run(&args, context);
    }
    let mut session = args.peer.session(args.security, context)?;
    if let Some(name) = &args.base_ot {
        session = session.base_ot(name);
    }
    let protocol = args.protocol.name();
    session.allow(protocol)?;
    let base = session.base()?;
    let table = Table::read(&args, context)?;
    let keys = table.keys.elements().len();
    let what = format!("an intersection with {keys} keys");
    crate::cmd::check_memory(&what, memory(keys as u64, args.security), "split the file")?;
    let output = args.output.as_deref().map(Output::create).transpose()?;
    let unfinished = output.as_ref().map(|output| fault::Unfinished::new(output.temporary()));

    let learns = Learns::from(args.result);
    let agreement = psi_agreement(protocol, &*base, learns, Some(&table.spec));
    let progress = context.progress("waiting", 0, "keys");
    let options = paxos::Options {
        learns,
        security: args.security.into(),
        max_peer_elements: args.max_peer_rows,
        base: &*base,
    };
    let ((outcome, wall), stats) = session.run(agreement, |opened| {
        let start = Instant::now();
        let elements = table.keys.elements();
        let mut told = |phase, done, total| progress.phase(phase_name(phase), done, total);
        let run = if args.protocol == Protocol::Vole { vole_psi::run } else { paxos::run };
        let outcome = run(opened.channel(), &mut Prg::from_os(), elements, &options, &mut told)?;
        Ok((outcome, start.elapsed()))
    })?;
    progress.finish();

    let mut rows = None;
    if let (Some(output), Some(matches)) = (output, &outcome.matches) {
        rows = Some(table.source.write_matches(&table.keys, matches, output)?);
    }
    drop(unfinished);
    report(&args, context, &table, &outcome, rows, wall, &stats)
}

/// The candidates for our file, as if the peer had as many keys.
fn dry_run(args: &Args, context: &Context) -> Result<()> {
    let keys = Table::read(args, context)?.keys.elements().len() as u64;
    let link = args.peer.link().into();
    let (security, machine) = (args.security.into(), tacit::plan::Machine::measure());
    let candidates = match args.protocol {
        Protocol::Vole => vec![tacit::plan::vole_psi(keys, security, &link, &machine)?],
        Protocol::Auto | Protocol::Paxos => tacit::plan::psi(keys, security, &link, &machine)?,
    };
    let learns = match args.result {
        Gets::Me => format!("that we have {keys} distinct keys; nothing else"),
        _ => format!(
            "that we have {keys} distinct keys, and which of its own keys are among them; nothing else"
        ),
    };
    crate::cli::plan::show(context, "psi", keys, &link, &candidates, None, &learns)
}

/// Our file: what a row's key is, and the keys themselves.
struct Table {
    source: Source,
    spec: KeySpec,
    keys: KeySet,
}

impl Table {
    fn read(args: &Args, context: &Context) -> Result<Self> {
        let normalisation =
            Normalisation { nfc: !args.no_nfc, trim: !args.no_trim, case_fold: !args.no_case_fold };
        let spec = KeySpec { columns: args.key.clone(), normalisation };
        let empty_keys = if args.refuse_empty_keys { EmptyKeys::Refuse } else { EmptyKeys::Skip };
        let options = Options { delimiter: args.delimiter, empty_keys };
        let source = Source::open(&args.input, spec.clone(), options)?;
        let progress: Progress = context.progress("reading", source.bytes(), "B");
        let keys = source.read_keys(|done| progress.set(done))?;
        progress.finish();
        if keys.elements().len() > MAX_ELEMENTS {
            return Err(Error::Input(format!(
                "{}: {} distinct keys, more than the {MAX_ELEMENTS} that a run can take; split the file",
                args.input.display(),
                keys.elements().len()
            )));
        }
        Ok(Table { source, spec, keys })
    }
}

fn phase_name(phase: Phase) -> &'static str {
    match phase {
        Phase::Setup => "setting up",
        Phase::Encode => "encoding",
        Phase::Transfer => "transferring",
        Phase::Tags => "tagging",
        Phase::Compare => "comparing",
    }
}

fn report(
    args: &Args,
    context: &Context,
    table: &Table,
    outcome: &Outcome,
    rows: Option<u64>,
    wall: Duration,
    stats: &Stats,
) -> Result<()> {
    let keys = &table.keys;
    let distinct = keys.elements().len();
    let matches = outcome.matches.as_ref().map(Vec::len);
    let security = security_name(args.security.into());
    let other_learns = match args.result {
        Gets::Me => format!("that we have {distinct} distinct keys; nothing else"),
        _ => format!(
            "that we have {distinct} distinct keys, and which of its own keys are among them; nothing else"
        ),
    };
    let mut object = json!({
        "name": "psi",
        "protocol": args.protocol.name(),
        "security": security,
        "result": match args.result { Gets::Me => "me", Gets::Peer => "peer", Gets::Both => "both" },
        "own_rows": keys.rows(),
        "own_keys": distinct,
        "duplicates": keys.duplicate_rows(),
        "rows_without_key": keys.rows_without_key(),
        "peer_keys": outcome.peer_elements,
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
        text += &format!("{rows} rows of ours written to {}\n", path.display());
    }
    text += &format!(
        "our file: {} rows, {distinct} distinct keys, {} rows with the key of an earlier row, {} rows without a key\n\
         the peer: {} distinct keys\n\
         {:.3} s, {} bytes sent, {} received, {} rounds; {} ({security})\n\
         the other side learned {other_learns}",
        keys.rows(),
        keys.duplicate_rows(),
        keys.rows_without_key(),
        outcome.peer_elements,
        wall.as_secs_f64(),
        stats.bytes_sent,
        stats.bytes_received,
        stats.rounds,
        args.protocol.name(),
    );
    context.result(&object, &text)
}
