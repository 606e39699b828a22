//! `tacit audit`: verifies and shows the signed records of requests.

use crate::cli::Context;
use crate::cli::output::name;
use clap::Subcommand;
use serde_json::json;
use std::path::PathBuf;
use tacit::net::{PublicKey, PublicKeys, escaped, shown};
use tacit::{Error, Result};
use tacit_serve::audit::{self, Record};
use tacit_serve::clock::Time;
use tacit_serve::terms::Side;

const AFTER: &str = "\
Examples:
  tacit audit verify state/records --key alice.pub
  tacit audit verify bob.records --against alice-records.jsonl
  tacit audit verify bob.records --run 1f… --input kunden.csv
  tacit audit show bob.records

A record proves what both sides claimed and signed: the terms, how many keys each said it had, and what it
committed to. It does not prove that an input was true. Pass on the file records.jsonl, and never the
file private.jsonl beside it: its salts would let others try inputs against the commitments.";

/// Verifies and shows the signed records of requests.
#[derive(clap::Args)]
#[command(after_help = AFTER, subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: AuditCommand,
}

/// The subcommands of `tacit audit`.
#[derive(Subcommand)]
enum AuditCommand {
    /// Checks signatures and the chain, and if they are given the other side's records and an input
    Verify(VerifyArgs),
    /// Prints records for people
    Show(ShowArgs),
}

/// What is verified.
#[derive(clap::Args)]
struct VerifyArgs {
    /// A folder of records, or a file records.jsonl
    #[arg(value_name = "RECORDS")]
    records: PathBuf,
    /// A public key that the chain's owner may have, or one that it follows; without it, whose it is is only
    /// told
    #[arg(long, value_name = "PUBFILE")]
    key: Vec<PathBuf>,
    /// The other side's records of the same runs
    #[arg(long, value_name = "RECORDS")]
    against: Option<PathBuf>,
    /// The run that --input is about
    #[arg(long, value_name = "RUN", requires = "input")]
    run: Option<String>,
    /// The file that the owner put in; needs the folder with the private part
    #[arg(long, value_name = "FILE", requires = "run")]
    input: Option<PathBuf>,
}

/// What is shown.
#[derive(clap::Args)]
struct ShowArgs {
    /// A folder of records, or a file records.jsonl
    #[arg(value_name = "RECORDS")]
    records: PathBuf,
    /// One run alone
    #[arg(long, value_name = "RUN")]
    run: Option<String>,
}

pub(super) fn run(args: Args, context: &Context) -> Result<()> {
    match args.command {
        AuditCommand::Verify(args) => verify(&args, context),
        AuditCommand::Show(args) => show(&args, context),
    }
}

fn verify(args: &VerifyArgs, context: &Context) -> Result<()> {
    let records = audit::load(&args.records)?;
    let keys = args.key.iter().map(|path| Ok(PublicKeys::of_file(path)?)).collect::<Result<Vec<_>>>()?;
    let mut owners: Vec<String> = Vec::new();
    for (at, record) in records.iter().enumerate() {
        if !keys.is_empty() && !keys.iter().any(|keys| keys.contains(&record.owner)) {
            let owner = record.owner.fingerprint();
            return Err(Error::Input(format!(
                "{}: record {} is of the key {owner}, which no --key names",
                name(&args.records),
                at + 1
            )));
        }
        let owner = record.owner.fingerprint();
        if !owners.contains(&owner) {
            owners.push(owner);
        }
    }
    if let Some(other) = &args.against {
        audit::compare(&records, &audit::load(other)?)?;
    }
    if let (Some(run), Some(input)) = (&args.run, &args.input) {
        let found = records.iter().find(|record| record.run() == run);
        let record =
            found.ok_or_else(|| Error::Input(format!("there is no record of run {}", shown(run))))?;
        if !audit::opens_input(&args.records, record, input)? {
            return Err(Error::Input(format!(
                "{} is not the file that run {} was made with",
                name(input),
                shown(run)
            )));
        }
    }
    let (count, both) = (records.len(), records.iter().filter(|record| record.both_signed).count());
    let object = json!({
        "name": "audit", "records": count, "signed_by_both": both, "owners": owners,
        "compared": args.against.is_some(), "input": args.input.is_some(),
    });
    let mut text = format!("{count} records in a whole chain, {both} signed by both sides");
    for owner in &owners {
        text += &format!("\nof the key {owner}");
    }
    if args.against.is_some() {
        text += "\nnothing is missing that the other side's records show";
    }
    if args.input.is_some() {
        text += "\nthe input is the one that was committed to";
    }
    context.result(&object, &text)
}

fn show(args: &ShowArgs, context: &Context) -> Result<()> {
    let records = audit::load(&args.records)?;
    let wanted = |record: &&Record| args.run.as_ref().is_none_or(|run| record.run() == run);
    let found: Vec<&Record> = records.iter().filter(wanted).collect();
    if let (Some(run), []) = (&args.run, found.as_slice()) {
        return Err(Error::Input(format!("there is no record of run {}", shown(run))));
    }
    found.into_iter().try_for_each(|record| context.result(&record.value, &words(record)))
}

fn words(record: &Record) -> String {
    let common = &record.value["common"];
    let text = |value: &serde_json::Value| value.as_str().map_or_else(|| value.to_string(), escaped);
    let terms = &common["terms"];
    let started = Time(common["started"].as_u64().unwrap_or_default()).text();
    let key = |side| {
        let bytes = record.of(side, "key").as_str().and_then(tacit_serve::json::from_hex);
        bytes.map_or_else(String::new, |bytes| PublicKey::from_bytes(bytes).fingerprint())
    };
    let mut lines = vec![
        format!("run {}: {}, started {started}", text(&common["run"]), text(&common["outcome"])),
        format!("  job {}: {} to {}", text(&terms["job"]), text(&terms["reveal"]), text(&terms["result"])),
        format!(
            "  protocol {}, security {}, base OT {}",
            text(&terms["protocol"]),
            text(&terms["security"]),
            text(&terms["base_ot"])
        ),
    ];
    for (label, member) in [("purpose", "purpose"), ("agreement", "agreement"), ("last day", "expires")] {
        if !terms[member].is_null() {
            lines.push(format!("  {label}: {}", text(&terms[member])));
        }
    }
    for side in [Side::Service, Side::Asker] {
        let result = record.of(side, "result");
        let has = if result.is_null() { "no result" } else { "a result" };
        lines.push(format!(
            "  the {} (key {}) had {} distinct keys, and committed to {has}",
            side.name(),
            key(side),
            record.of(side, "keys")
        ));
    }
    let revealed = &common["revealed"];
    lines.push(format!("  the service was to learn {}", text(&revealed["to_service"])));
    lines.push(format!("  the asker was to learn, in the service's words, {}", text(&revealed["to_asker"])));
    lines.push(format!("  signed by {}", if record.both_signed { "both sides" } else { "this side alone" }));
    lines.join("\n")
}
