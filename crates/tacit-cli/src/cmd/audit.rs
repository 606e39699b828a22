//! `tacit audit`: verifies and shows the signed records of requests.

use crate::cli::Context;
use crate::cli::output::{Output, name};
use clap::Subcommand;
use serde_json::json;
use std::io::Write;
use std::path::{Path, PathBuf};
use tacit::net::{PublicKey, PublicKeys, escaped, shown};
use tacit::{Error, Result};
use tacit_serve::audit::{self, Chain, Line, Party, Peer, Record};
use tacit_serve::clock::Time;
use tacit_serve::terms::Side;

const AFTER: &str = "\
Examples:
  tacit audit verify state/records --key alice.pub
  tacit audit verify bob.records --key bob.pub --against alice-records.jsonl --against-key alice.pub
  tacit audit export state/records --peer bob.pub --output for-bob.jsonl
  tacit audit verify bob.records --run 1f… --input kunden.csv
  tacit audit show bob.records

A record proves what both sides claimed and signed: the terms, how many keys each said it had, and what it
committed to. It does not prove that an input was true. Pass on what `export` writes: it holds the
records with one peer, and a digest of every other record, so the chain verifies and shows nothing of
other peers. Never pass on private.jsonl: its salts would let others try inputs against the commitments.
With several peers, --against takes the keys of both parties: --key and --against-key.";

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
    /// Writes the chain for one peer: its records, and every other one as a digest
    Export(ExportArgs),
}

/// What is verified.
#[derive(clap::Args)]
struct VerifyArgs {
    /// A folder of records, or a file records.jsonl
    #[arg(value_name = "RECORDS")]
    records: PathBuf,
    /// A public key that the chain's owner may have, with its successors; repeat it for more. Without it the
    /// owner is only printed
    #[arg(long, value_name = "PUBFILE")]
    key: Vec<PathBuf>,
    /// The other side's records: every run that both took part in must be in both, and the same
    #[arg(long, value_name = "RECORDS")]
    against: Option<PathBuf>,
    /// A public key of the other side, with its successors; repeat it for more. Without it every run in RECORDS
    /// must be in the other side's
    #[arg(long, value_name = "PUBFILE", requires = "against")]
    against_key: Vec<PathBuf>,
    /// Authorities, in a PEM file, that every certificate in the records must lead to
    #[arg(long, value_name = "FILE")]
    authority: Option<PathBuf>,
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

/// What is exported.
#[derive(clap::Args)]
struct ExportArgs {
    /// A folder of records, or a file records.jsonl
    #[arg(value_name = "RECORDS")]
    records: PathBuf,
    /// The peer's public key file, with its successors, or a fingerprint
    #[arg(long, value_name = "KEY")]
    peer: PathBuf,
    /// The file for the peer
    #[arg(long, value_name = "FILE")]
    output: PathBuf,
}

pub(super) fn run(args: Args, context: &Context) -> Result<()> {
    match args.command {
        AuditCommand::Verify(args) => verify(&args, context),
        AuditCommand::Show(args) => show(&args, context),
        AuditCommand::Export(args) => export(&args, context),
    }
}

fn key_files(files: &[PathBuf]) -> Result<Vec<PublicKeys>> {
    files.iter().map(|path| Ok(PublicKeys::of_file(path)?)).collect()
}

/// The fingerprints of a chain's owners, each of which one of `keys` must name, if there are any.
fn owners(chain: &Chain, keys: &[PublicKeys], file: &Path, option: &str) -> Result<Vec<String>> {
    let mut owners: Vec<String> = Vec::new();
    for (at, line) in chain.lines().iter().enumerate() {
        let Line::Record(record) = line else { continue };
        let owner = record.owner.fingerprint();
        if !keys.is_empty() && !keys.iter().any(|keys| keys.contains(&record.owner)) {
            return Err(Error::Input(format!(
                "{}: record {} is of the key {owner}, which no {option} names",
                name(file),
                at + 1
            )));
        }
        if !owners.contains(&owner) {
            owners.push(owner);
        }
    }
    Ok(owners)
}

fn verify(args: &VerifyArgs, context: &Context) -> Result<()> {
    let chain = audit::load(&args.records)?;
    if chain.lines().is_empty() {
        return Err(Error::Input(format!(
            "{}: holds no record; there is nothing to verify",
            name(&args.records)
        )));
    }
    let keys = key_files(&args.key)?;
    let owners = owners(&chain, &keys, &args.records, "--key")?;
    let compared = args.against.as_ref().map(|other| against(args, &chain, &keys, other)).transpose()?;
    if let (Some(run), Some(input)) = (&args.run, &args.input) {
        let found = chain.records().find(|record| record.run() == run);
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
    let of = |authority: &PathBuf| -> Result<usize> {
        chain.records().map(|record| record.certified_by(authority)).sum()
    };
    let certificates = args.authority.as_ref().map(of).transpose()?;
    if certificates == Some(0) {
        let what = "no record holds a certificate, so --authority shows nothing; leave it out";
        return Err(Error::Input(what.into()));
    }
    let (count, digests) = (chain.records().count(), chain.withheld());
    let both = chain.records().filter(|record| record.both_signed).count();
    let object = json!({
        "name": "audit", "records": count, "digests": digests, "signed_by_both": both, "owners": owners,
        "compared": compared, "certificates": certificates, "input": args.input.is_some(),
    });
    let mut text = format!("records in a whole chain: {count}, signed by both sides: {both}");
    if digests > 0 {
        text += &format!("\nrecords that are digests only: {digests}");
    }
    for owner in &owners {
        text += &format!("\nowner's key: {owner}");
    }
    if let Some(compared) = compared {
        text +=
            &format!("\nruns compared with the other side's records: {compared}; none is missing or changed");
    }
    if let Some(certificates) = certificates {
        text += &format!("\ncertificates of that authority: {certificates}");
    }
    if args.input.is_some() {
        text += "\nthe input is the one that was committed to";
    }
    context.result(&object, &text)
}

/// Compares the chain with the other side's; returns how many runs are in both.
fn against(args: &VerifyArgs, chain: &Chain, keys: &[PublicKeys], other: &Path) -> Result<usize> {
    let (theirs, their_keys) = (audit::load(other)?, key_files(&args.against_key)?);
    owners(&theirs, &their_keys, other, "--against-key")?;
    let (ours_name, theirs_name) = (name(&args.records).to_string(), name(other).to_string());
    let ours = Party { chain, keys, name: &ours_name };
    audit::compare(ours, Party { chain: &theirs, keys: &their_keys, name: &theirs_name })
}

fn export(args: &ExportArgs, context: &Context) -> Result<()> {
    let peer = match args.peer.is_file() {
        true => Peer::Keys(PublicKeys::of_file(&args.peer)?),
        false => Peer::Fingerprint(args.peer.to_string_lossy().into_owned()),
    };
    let (text, whole) = audit::export(&args.records, &peer)?;
    if whole == 0 {
        return Err(Error::Input(format!(
            "{}: holds no run with that peer; give its .pub file or fingerprint",
            name(&args.records)
        )));
    }
    let digests = text.lines().count() - whole;
    let mut output = Output::create(&args.output)?;
    output.write_all(text.as_bytes()).map_err(|e| Error::file(&args.output, "cannot be written", e))?;
    output.commit()?;
    let object = json!({ "name": "export", "output": args.output, "records": whole, "digests": digests });
    let text = format!(
        "{} holds the peer's records: {whole}; records of others, as digests: {digests}",
        name(&args.output)
    );
    context.result(&object, &text)
}

fn show(args: &ShowArgs, context: &Context) -> Result<()> {
    let chain = audit::load(&args.records)?;
    let wanted = |record: &&Record| args.run.as_ref().is_none_or(|run| record.run() == run);
    let found: Vec<&Record> = chain.records().filter(wanted).collect();
    if let (Some(run), []) = (&args.run, found.as_slice()) {
        return Err(Error::Input(format!("there is no record of run {}", shown(run))));
    }
    found.into_iter().try_for_each(|record| context.result(&record.value, &words(record)))
}

/// What was revealed, in sentences that name both parties. Records of version 1 have a sentence's rest, in the
/// words of the side that it is about.
fn revealed(record: &Record, party: &dyn Fn(Side) -> String) -> Vec<String> {
    let common = &record.value["common"];
    let said = |name: &str| escaped(common["revealed"][name].as_str().unwrap_or_default());
    if record.is_named() {
        return ["to_service", "to_client"].map(|name| format!("  {}", said(name))).to_vec();
    }
    let old = |to: Side, name: &str| {
        let words = format!("{} learns: \"{}\"", party(to), said(name));
        format!("  {words}, in the words of {}", party(to.other()))
    };
    vec![old(Side::Service, "to_service"), old(Side::Client, "to_asker")]
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
    let party = |side: Side| match record.name_of(side) {
        Some(called) => format!("{} ({})", shown(called), side.name()),
        None => format!("the {}", side.name()),
    };
    let gets = match terms["result"].as_str() {
        Some("service") => party(Side::Service),
        Some("client" | "asker") => party(Side::Client),
        _ => "both".to_owned(),
    };
    let mut lines = vec![
        format!("run {}: {}, started {started}", text(&common["run"]), text(&common["outcome"])),
        format!("  job {}: {} to {gets}", text(&terms["job"]), text(&terms["reveal"])),
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
    for side in [Side::Service, Side::Client] {
        let result = record.of(side, "result");
        let has = if result.is_null() { "no result" } else { "a result" };
        lines.push(format!(
            "  {}{}, key {}, had {} distinct keys and committed to {has}",
            party(side),
            record
                .certificate_of(side)
                .map_or(String::new(), |name| format!(", certificate {}", shown(name))),
            key(side),
            record.of(side, "keys")
        ));
    }
    lines.extend(revealed(record, &party));
    lines.push(format!("  {}", signed(record, &party)));
    lines.join("\n")
}

/// Who signed the record, and when.
fn signed(record: &Record, party: &dyn Fn(Side) -> String) -> String {
    match (record.both_signed, record.both_began) {
        (true, _) => "signed by both sides".to_owned(),
        (false, true) => "signed by both sides when the run began, and not at its end".to_owned(),
        (false, false) => format!("signed by {} only", party(record.side)),
    }
}
