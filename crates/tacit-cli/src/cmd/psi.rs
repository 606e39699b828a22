//! `tacit psi`: which rows of our file have a key that the peer's file has too.

use crate::cli::Context;
use crate::cli::output::{Output, name};
use crate::cli::peer::{PeerArgs, Security, learned};
use crate::cli::progress::Progress;
use serde_json::json;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tacit::crypto::Prg;
use tacit::data::csv::{Delimiter, EmptyKeys, Options, Source};
use tacit::data::records::{KeySet, KeySpec, Normalisation};
use tacit::net::Stats;
use tacit::psi::paxos::{self, Learns, MAX_ELEMENTS, Outcome, Phase};
use tacit::psi::vole_psi;
use tacit::{Error, Result, psi_agreement, psi_memory, security_name};

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

    /// Keys that a cheating peer can have tested, with hash calls that somebody might make and with more: 2^80
    /// and 2^128, of VOLE-PSI 2^60 and 2^80.
    fn tested_at_most(self, outcome: &Outcome, own: usize) -> Result<[u64; 2]> {
        Ok(match self {
            Protocol::Auto | Protocol::Paxos => {
                [outcome.tested_at_most(own, 80.0)?, outcome.tested_at_most(own, 128.0)?]
            }
            Protocol::Vole => {
                [vole_psi::tested_at_most(outcome, own, 60.0)?, vole_psi::tested_at_most(outcome, own, 80.0)?]
            }
        })
    }

    /// What [`tested_at_most`](Self::tested_at_most) found, in words.
    fn tested_words(self, [likely, most]: [u64; 2]) -> String {
        match self {
            Protocol::Auto | Protocol::Paxos => {
                format!("{likely} with 2^80 hash calls, and never more than {most}")
            }
            Protocol::Vole => format!("{likely} with 2^60 hash calls, and {most} with 2^80"),
        }
    }
}

/// Private set intersection of two files: who is in both.
#[derive(clap::Args)]
#[command(after_help = AFTER)]
pub struct Args {
    /// Our CSV file, UTF-8, whose first line names the columns
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

/// The most keys that the peer may have: those asked for, but no more than `available` bytes of memory have
/// room for.
fn most_peer_keys(
    asked: Option<u64>,
    own: u64,
    learns: Learns,
    security: Security,
    available: Option<u64>,
) -> u64 {
    let asked = asked.unwrap_or(u64::MAX).min(MAX_ELEMENTS as u64);
    let Some(available) = available else { return asked };
    // What is needed never falls as the peer's set grows.
    let (mut fits, mut too_many) = (0, asked + 1);
    while too_many - fits > 1 {
        let middle = fits.midpoint(too_many);
        if psi_memory(own, middle, learns, security.into()) <= available {
            fits = middle
        } else {
            too_many = middle
        }
    }
    fits
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
    let mut output = args.output.as_deref().map(Output::create).transpose()?;
    let table = Table::read(&args, context)?;
    if let Some(output) = &mut output {
        // Every row may match, and one without a line's end gets one.
        output.reserve(table.source.bytes().saturating_add(2))?;
    }
    let learns = Learns::from(args.result);
    let keys = table.keys.elements().len() as u64;
    let what = format!("an intersection with {keys} keys");
    crate::cmd::check_memory(&what, psi_memory(keys, 0, learns, args.security.into()), "split the file")?;
    let most = args.most_peer_keys(keys);

    let agreement = psi_agreement(protocol, &*base, learns, Some(&table.spec));
    let progress = context.progress("waiting", 0, "keys");
    let options =
        paxos::Options { learns, security: args.security.into(), max_peer_elements: most, base: &*base };
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
    if let (Some(mut output), Some(matches)) = (output, &outcome.matches) {
        let target = output.target().to_owned();
        rows = Some(table.source.write_matches(&table.keys, matches, &target, &mut output)?);
        output.commit()?;
    }
    report(&args, context, &table, &outcome, most, rows, wall, &stats)
}

impl Args {
    fn most_peer_keys(&self, own: u64) -> u64 {
        let available = crate::cmd::available_memory();
        most_peer_keys(self.max_peer_rows, own, self.result.into(), self.security, available)
    }

    /// What the other side learns, or learned, of our `keys`; `tested` is about a peer that cheats.
    fn learns(&self, keys: u64, tested: &str) -> String {
        let what = match self.result {
            Gets::Me => format!("that we have {keys} distinct keys; nothing else"),
            _ => format!(
                "that we have {keys} distinct keys, and which of its own keys are among them; nothing else{tested}"
            ),
        };
        learned(self.security, &what)
    }
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
    let tested = match args.security {
        Security::Malicious => {
            let cheats = Outcome { matches: None, peer_elements: keys, peer_received: true };
            let tested = args.protocol.tested_at_most(&cheats, keys as usize)?;
            let words = args.protocol.tested_words(tested);
            format!(". If it announces {keys} keys and cheats, it can test {words}")
        }
        Security::SemiHonest => String::new(),
    };
    let learns = args.learns(keys, &tested);
    crate::cli::plan::show(context, "psi", keys, &link, &candidates, None, &learns)?;
    if !context.json {
        let most = args.most_peer_keys(keys);
        context.result(&json!(null), &format!("the other side may have at most {most} distinct keys"))?;
    }
    Ok(())
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
                name(&args.input),
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

#[expect(clippy::too_many_arguments, reason = "what a report says")]
fn report(
    args: &Args,
    context: &Context,
    table: &Table,
    outcome: &Outcome,
    most_peer_keys: u64,
    rows: Option<u64>,
    wall: Duration,
    stats: &Stats,
) -> Result<()> {
    let keys = &table.keys;
    let distinct = keys.elements().len();
    let matches = outcome.matches.as_ref().map(Vec::len);
    let security = security_name(args.security.into());
    let announced = outcome.peer_elements;
    let tested = args.protocol.tested_at_most(outcome, distinct)?;
    let most = tested[1];
    // Where the protocol promises nothing of a peer that deviates, there is no bound either.
    let bound = (args.security == Security::Malicious && args.result != Gets::Me).then_some(most);
    let tested = match bound {
        None => String::new(),
        Some(most) if most == announced => {
            format!(". It can have tested no more than the {announced} keys that it announced")
        }
        Some(_) => {
            let words = args.protocol.tested_words(tested);
            format!(". It announced {announced} keys; if it cheated, it can have tested {words}")
        }
    };
    let other_learns = args.learns(distinct as u64, &tested);
    let mut object = json!({
        "name": "psi",
        "protocol": args.protocol.name(),
        "security": security,
        "result": match args.result { Gets::Me => "me", Gets::Peer => "peer", Gets::Both => "both" },
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
         {:.3} s, {} bytes sent, {} received, {} rounds; {} ({security})\n\
         the other side learned {other_learns}",
        keys.rows(),
        keys.duplicate_rows(),
        keys.rows_without_key(),
        wall.as_secs_f64(),
        stats.bytes_sent,
        stats.bytes_received,
        stats.rounds,
        args.protocol.name(),
    );
    context.result(&object, &text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEARNS: [Learns; 3] = [Learns::Me, Learns::Peer, Learns::Both];

    /// The search for the largest set that fits rests on it.
    #[test]
    fn more_keys_never_need_less_memory() {
        for security in [Security::Malicious, Security::SemiHonest] {
            for learns in LEARNS {
                let mut last = 0;
                for keys in (0..24).flat_map(|log| [1u64 << log, (1 << log) + (1 << log) / 2]) {
                    let needed = psi_memory(100_000, keys, learns, security.into());
                    assert!(needed >= last, "{learns:?}, {keys}");
                    assert!(needed <= psi_memory(100_001, keys, learns, security.into()));
                    last = needed;
                }
            }
        }
    }

    #[test]
    fn the_peer_may_have_what_memory_has_room_for() {
        let most =
            |asked, learns, available| most_peer_keys(asked, 1000, learns, Security::Malicious, available);
        for learns in LEARNS {
            assert_eq!(most(None, learns, None), MAX_ELEMENTS as u64);
            assert_eq!(most(Some(77), learns, None), 77);
            assert_eq!(most(Some(77), learns, Some(1 << 40)), 77);
            assert_eq!(most(Some(u64::MAX), learns, Some(1 << 40)), MAX_ELEMENTS as u64);
            assert_eq!(most(None, learns, Some(1 << 20)), 0);
        }
        // A sender holds rows for the peer's store; a receiver holds nothing of the peer's.
        let limited = most(None, Learns::Peer, Some(100 << 20));
        assert!((100_000..1_000_000).contains(&limited), "{limited}");
        assert!(psi_memory(1000, limited, Learns::Peer, Security::Malicious.into()) <= 100 << 20);
        assert!(psi_memory(1000, limited + 1, Learns::Peer, Security::Malicious.into()) > 100 << 20);
        assert_eq!(most(Some(10), Learns::Peer, Some(100 << 20)), 10);
        assert_eq!(most(Some(10_000_000), Learns::Peer, Some(100 << 20)), limited);
        assert_eq!(most(None, Learns::Me, Some(100 << 20)), MAX_ELEMENTS as u64);
    }
}
