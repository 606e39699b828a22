//! `tacit audit`: verifies and shows the signed records of requests.

use crate::cli::Context;
use crate::cli::keys::files;
use crate::cli::output::{Output, name};
use clap::Subcommand;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::{Path, PathBuf};
use tacit::crypto::text::counted;
use tacit::net::{PublicKey, PublicKeys, escaped, shown};
use tacit::{Error, Result};
use tacit_serve::audit::{self, Chain, Compared, Line, Party, Peer, Record};
use tacit_serve::clock::Time;
use tacit_serve::terms::Side;

const AFTER: &str = "\
Examples:
  tacit audit verify state/records --key alice.pub
  tacit audit verify bob.records --key bob.pub --against alice-records.jsonl --against-key alice.pub
  tacit audit export state/records --peer bob.pub --output for-bob.jsonl
  tacit audit verify bob.records --run 1f… --input kunden.csv
  tacit audit show bob.records

A record proves what both sides claimed and signed: the terms, each side's number of keys, and its \
commitments. It does not prove that an input was true. Pass on the file that `export` writes: it has the \
records with one peer, and a digest of every other record, so the chain verifies and reveals nothing \
about other peers. Never pass on private.jsonl: its salts would let others test guessed inputs against \
the commitments. With several peers, --against needs the keys of both parties: --key and --against-key. A \
party with a certificate may sign its records with another key in each run: name its certificate with \
--name and --against-name. --peers lists the keys that signed as peers.";

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
    /// Checks signatures and the chain, and optionally the peer's records and an input
    Verify(VerifyArgs),
    /// Prints records for people
    Show(ShowArgs),
    /// Writes the chain for one peer: its records, and a digest of every other one
    Export(ExportArgs),
}

/// What is verified.
#[derive(clap::Args)]
struct VerifyArgs {
    /// A directory of records, or a file records.jsonl
    #[arg(value_name = "RECORDS")]
    records: PathBuf,
    /// A public key that the chain's owner may have, with its successors; repeat it for more. Without it the
    /// owner is only printed
    #[arg(long, value_name = "PUBFILE")]
    key: Vec<PathBuf>,
    /// A name in the owner's certificate, if it has one; repeat it for more
    #[arg(long, value_name = "NAME")]
    name: Vec<String>,
    /// The peer's records: every run of both sides must be in both, and the same
    #[arg(long, value_name = "RECORDS")]
    against: Option<PathBuf>,
    /// A public key of the peer, with its successors; repeat it for more. Without it every run in RECORDS
    /// must be in the peer's
    #[arg(long, value_name = "PUBFILE")]
    against_key: Vec<PathBuf>,
    /// A name in the peer's certificate, if it has one; repeat it for more
    #[arg(long, value_name = "NAME")]
    against_name: Vec<String>,
    /// Lists the keys that signed as peers, the names in their records, and which of them --against-key and
    /// --against-name name
    #[arg(long)]
    peers: bool,
    /// Authorities, in a PEM file, that every certificate in the records must lead to
    #[arg(long, value_name = "FILE")]
    authority: Option<PathBuf>,
    /// The run that --input is about: its name, or an unambiguous start of it
    #[arg(long, value_name = "RUN", requires = "input")]
    run: Option<String>,
    /// The table of the owner, repeated if the run had several files; needs the directory with the private
    /// part
    #[arg(long, value_name = "FILE", requires = "run", num_args = 1)]
    input: Vec<PathBuf>,
}

/// What is shown.
#[derive(clap::Args)]
struct ShowArgs {
    /// A directory of records, or a file records.jsonl
    #[arg(value_name = "RECORDS")]
    records: PathBuf,
    /// Only this run
    #[arg(long, value_name = "RUN")]
    run: Option<String>,
}

/// What is exported.
#[derive(clap::Args)]
struct ExportArgs {
    /// A directory of records, or a file records.jsonl
    #[arg(value_name = "RECORDS")]
    records: PathBuf,
    /// The peer's public key file, with its successors, or a fingerprint
    #[arg(long, value_name = "KEY", conflicts_with = "peer_name")]
    peer: Option<PathBuf>,
    /// The name in the peer's certificate
    #[arg(long, value_name = "NAME")]
    peer_name: Option<String>,
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

/// A party as the user names it: its keys, and names in its certificates.
struct Named {
    keys: Vec<PublicKeys>,
    certificates: Vec<String>,
}

impl Named {
    fn of(files: &[PathBuf], certificates: &[String]) -> Result<Self> {
        Ok(Named { keys: key_files(files)?, certificates: certificates.to_vec() })
    }

    fn party<'a>(&'a self, chain: &'a Chain, name: &'a str) -> Party<'a> {
        Party { chain, keys: &self.keys, certificates: &self.certificates, name }
    }

    fn is_anyone(&self) -> bool {
        self.keys.is_empty() && self.certificates.is_empty()
    }

    /// Whether this is the party with this key, and this name in its certificate.
    fn has(&self, key: &PublicKey, certificate: Option<&str>) -> bool {
        let is_named = certificate.is_some_and(|name| self.certificates.iter().any(|known| known == name));
        is_named || self.keys.iter().any(|keys| keys.contains(key))
    }
}

/// The fingerprints of a chain's owners, each of which `party` must name, if it names anyone.
fn owners(chain: &Chain, party: &Named, file: &Path, option: &str) -> Result<Vec<String>> {
    let mut owners: Vec<String> = Vec::new();
    for (at, line) in chain.lines().iter().enumerate() {
        let Line::Record(record) = line else { continue };
        let owner = record.owner.fingerprint();
        if !party.is_anyone() && !party.has(&record.owner, record.certificate_of(record.side)) {
            return Err(Error::Input(format!(
                "{}: record {} has the key {owner}, which no {option} names",
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
            "{}: has no records; there is nothing to verify",
            name(&args.records)
        )));
    }
    let own = Named::of(&args.key, &args.name)?;
    let theirs = Named::of(&args.against_key, &args.against_name)?;
    if args.against.is_none() && !args.peers && !theirs.is_anyone() {
        let what = "--against-key and --against-name go with --against or --peers; give one of them";
        return Err(Error::Usage(what.into()));
    }
    let owners = owners(&chain, &own, &args.records, "--key")?;
    let compared =
        args.against.as_ref().map(|other| against(args, &chain, [&own, &theirs], other)).transpose()?;
    let peers = args.peers.then(|| peers(&chain, &theirs));
    if let Some(run) = &args.run {
        check_input(args, &chain, run)?;
    }
    let certificates = args.authority.as_ref().map(|authority| certified(&chain, authority)).transpose()?;
    let (count, digests) = (chain.records().count(), chain.withheld());
    let both = chain.records().filter(|record| record.both_signed).count();
    let object = json!({
        "name": "audit", "records": count, "digests": digests, "signed_by_both": both, "owners": owners,
        "compared": compared.map(|found| found.runs), "interrupted": compared.map(|found| found.interrupted),
        "excused": compared.map(|found| found.excused),
        "peers": peers.as_ref().map(|peers| peers.iter().map(SignedPeer::object).collect::<Vec<_>>()), "certificates": certificates, "input": !args.input.is_empty(),
    });
    let mut text = format!("records in a whole chain: {count}, signed by both sides: {both}");
    if digests > 0 {
        text += &format!("\nrecords that are digests only: {digests}");
    }
    for owner in &owners {
        text += &format!("\nowner's key: {owner}");
    }
    text += &compared.map_or_else(String::new, compared_words);
    for peer in peers.iter().flatten() {
        text += &format!("\n{}", peer.words(theirs.is_anyone()));
    }
    if let Some(certificates) = certificates {
        text += &format!("\ncertificates of that authority: {certificates}");
    }
    if !args.input.is_empty() {
        text += "\nthe input is the one committed to";
    }
    context.result(&object, &text)
}

/// The record of the run whose name begins so.
fn the_run<'a>(chain: &'a Chain, start: &str) -> Result<&'a Record> {
    let start = start.trim_end_matches('…').to_ascii_lowercase();
    if start.is_empty() {
        return Err(Error::Parameter {
            name: "run",
            what: "is empty; give the start of a run's name".into(),
        });
    }
    let mut found = chain.records().filter(|record| record.run().starts_with(&start));
    match (found.next(), found.next()) {
        (Some(record), None) => Ok(record),
        (None, _) => Err(Error::Input(format!("there is no record of run {}", shown(&start)))),
        (Some(one), Some(other)) => Err(Error::Input(format!(
            "several runs begin with {}, such as {} and {}; give more of the name",
            shown(&start),
            shown(one.run()),
            shown(other.run())
        ))),
    }
}

/// Whether the input is what the owner put into this run.
fn check_input(args: &VerifyArgs, chain: &Chain, run: &str) -> Result<()> {
    let record = the_run(chain, run)?;
    match audit::opens_input(&args.records, record, &args.input)? {
        true => Ok(()),
        false => Err(Error::Input(format!(
            "{} is not the file that run {} was made with",
            files(&args.input),
            shown(record.run())
        ))),
    }
}

/// How many certificates there are, all of which lead to an authority in the file.
fn certified(chain: &Chain, authority: &Path) -> Result<usize> {
    match chain.records().map(|record| record.certified_by(authority)).sum::<Result<usize>>()? {
        0 => {
            let what = "no record has a certificate, so --authority has no effect; leave it out";
            Err(Error::Input(what.into()))
        }
        count => Ok(count),
    }
}

/// Compares the chain with the other side's.
fn against(args: &VerifyArgs, chain: &Chain, [own, theirs]: [&Named; 2], other: &Path) -> Result<Compared> {
    let their_chain = audit::load(other)?;
    owners(&their_chain, theirs, other, "--against-key")?;
    let (own_name, their_name) = (name(&args.records).to_string(), name(other).to_string());
    audit::compare(own.party(chain, &own_name), theirs.party(&their_chain, &their_name))
}

fn compared_words(found: Compared) -> String {
    let Compared { runs, interrupted, excused } = found;
    let mut text = format!("\nruns compared with the peer's records: {runs}; none missing or changed");
    if interrupted > 0 {
        text +=
            &format!("\nruns that a record marks as interrupted: {interrupted}; ask what ended the process");
    }
    if excused > 0 {
        text += &format!(
            "\nruns whose end both sides signed in only one side's records: {excused}; the cause is a \
             connection lost at the last message, a process that ended then, or a record that was sealed \
             again"
        );
    }
    text
}

/// A key that signed as a peer, and what the records call its owner.
struct SignedPeer {
    fingerprint: String,
    names: BTreeSet<String>,
    certificates: BTreeSet<String>,
    runs: usize,
    is_known: bool,
}

/// Who signed the chain's runs as a peer, at their start or their end, and whether `known` names it.
fn peers(chain: &Chain, known: &Named) -> Vec<SignedPeer> {
    let mut found: BTreeMap<String, SignedPeer> = BTreeMap::new();
    for record in chain.records().filter(|record| record.both_signed || record.both_began) {
        let side = record.side.other();
        let certificate = record.certificate_of(side);
        let fingerprint = record.peer.fingerprint();
        let peer = found.entry(fingerprint.clone()).or_insert_with(|| SignedPeer {
            fingerprint,
            names: BTreeSet::new(),
            certificates: BTreeSet::new(),
            runs: 0,
            is_known: true,
        });
        peer.names.extend(record.name_of(side).map(shown));
        peer.certificates.extend(certificate.map(shown));
        peer.runs += 1;
        peer.is_known &= known.has(&record.peer, certificate);
    }
    found.into_values().collect()
}

impl SignedPeer {
    fn object(&self) -> serde_json::Value {
        let SignedPeer { fingerprint, names, certificates, runs, is_known } = self;
        json!({ "key": fingerprint, "names": names, "certificates": certificates, "runs": runs, "known": is_known })
    }

    /// The peer on a line; whether it is known only where the user names somebody.
    fn words(&self, names_nobody: bool) -> String {
        let list = |names: &BTreeSet<String>| names.iter().cloned().collect::<Vec<_>>().join(", ");
        let called = if self.names.is_empty() { String::new() } else { format!(" ({})", list(&self.names)) };
        let certificates = match self.certificates.is_empty() {
            true => String::new(),
            false => format!(", certificate {}", list(&self.certificates)),
        };
        let known = match (names_nobody, self.is_known) {
            (true, _) => "",
            (_, true) => "; known",
            (_, false) => "; NOT known: no --against-key or --against-name names it",
        };
        let runs = counted(self.runs, "run");
        format!("peer's key {}{called}{certificates}, signed {runs}{known}", self.fingerprint)
    }
}

fn export(args: &ExportArgs, context: &Context) -> Result<()> {
    let peer = match (&args.peer, &args.peer_name) {
        (_, Some(name)) => Peer::Certificate(name.clone()),
        (Some(peer), None) if peer.is_file() => Peer::Keys(PublicKeys::of_file(peer)?),
        (Some(peer), None) => Peer::Fingerprint(peer.to_string_lossy().into_owned()),
        (None, None) => return Err(Error::Usage("give --peer KEY or --peer-name NAME".into())),
    };
    let (text, whole) = audit::export(&args.records, &peer)?;
    if whole == 0 {
        return Err(Error::Input(format!(
            "{}: has no runs with that peer; give its .pub file, fingerprint or the name in its certificate",
            name(&args.records)
        )));
    }
    let digests = text.lines().count() - whole;
    let mut output = Output::create(&args.output)?;
    output.write_all(text.as_bytes()).map_err(|e| Error::file(&args.output, "cannot be written", e))?;
    output.commit()?;
    let object = json!({ "name": "export", "output": args.output, "records": whole, "digests": digests });
    let text = format!(
        "{} has the peer's records: {whole}; records of others, as digests: {digests}",
        name(&args.output)
    );
    context.result(&object, &text)
}

fn show(args: &ShowArgs, context: &Context) -> Result<()> {
    let chain = audit::load(&args.records)?;
    let wanted = |record: &&Record| {
        args.run.as_ref().is_none_or(|run| record.run().starts_with(&run.to_ascii_lowercase()))
    };
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
    let question = &terms["question"];
    if !question.is_null() {
        lines.push(format!("  question: {}", text(&question["text"])));
    }
    for (label, member) in [("purpose", "purpose"), ("agreement", "agreement"), ("last day", "expires")] {
        if !terms[member].is_null() {
            lines.push(format!("  {label}: {}", text(&terms[member])));
        }
    }
    for side in [Side::Service, Side::Client] {
        let result = record.of(side, "result");
        let has = if result.is_null() { "no result" } else { "a result" };
        lines.push(format!(
            "  {}{}, key {}, had {} and committed to {has}",
            party(side),
            record
                .certificate_of(side)
                .map_or(String::new(), |name| format!(", certificate {}", shown(name))),
            key(side),
            counted(record.of(side, "keys"), "distinct key")
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
        (false, true) => "signed by both sides when the run started, but not at its end".to_owned(),
        (false, false) => format!("signed by {} only", party(record.side)),
    }
}
