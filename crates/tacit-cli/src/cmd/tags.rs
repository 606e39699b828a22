//! `tacit tags`: a large set published once as a file of tags, and small sets intersected with it.

use crate::cli::Context;
use crate::cli::keys::KeyArgs;
use crate::cli::output::{self, Output};
use crate::cli::peer::{PeerArgs, Security};
use crate::cli::table::Dialect;
use clap::Subcommand;
use serde_json::{Value, json};
use std::fs::File;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Instant;
use tacit::catalogue::{OPRF, VOLE};
use tacit::crypto::Prg;
use tacit::data::records::{KeySet, KeySpec};
use tacit::data::table::Source;
use tacit::net::{Agreement, Identity};
use tacit::psi::oprf;
use tacit::psi::oprf::private::{self, Private};
use tacit::psi::oprf::tags::{self, Publication, TagFile, Terms};
use tacit::sealed::FileKey;
use tacit::{Error, Result};

const AFTER: &str = "\
Examples, Alice has ten million customers and Bob a thousand:
  alice  tacit tags publish --input customers.csv --key email --identity alice.key \\
             --out customers.tags --private customers.oprf
  bob    tacit tags info customers.tags
  alice  tacit tags serve --listen 0.0.0.0:7700 --identity alice.key --peer bob.pub --private customers.oprf
  bob    tacit tags query --connect alice.example:7700 --identity bob.key --peer alice.pub \\
             --tags customers.tags --input kunden.csv --key email --output both.csv
  alice  tacit tags rotate --input customers.csv --key email --identity alice.key \\
             --out customers.tags --private customers.oprf

Bob learns how many distinct keys Alice has and which of his own are among them; Alice learns how many
queries Bob makes. Clients of one publication should compare its digest, which `tacit tags info` prints: a
publisher could give each of them a file of its own. Never put an old copy of the private file back: it
would answer again what it has answered since.";

/// Most queries of a key's lifetime, and for one client, unless said otherwise.
const LIFETIME: u64 = 1 << 16;
const PER_CLIENT: u64 = 1 << 12;

/// A file of tags of a large set: published once, queried by those who have small ones.
#[derive(clap::Args)]
#[command(after_help = AFTER, subcommand_required = true, arg_required_else_help = true)]
pub struct Args {
    #[command(subcommand)]
    command: TagsCommand,
}

/// The subcommands of `tacit tags`.
#[derive(Subcommand)]
enum TagsCommand {
    /// Makes the file of tags of our file, and the private file that answers queries on it
    Publish(Box<PublishArgs>),
    /// Publishes anew with a new key; the old file of tags is void then
    Rotate(Box<RotateArgs>),
    /// Shows what a file of tags, or a private file, says about itself
    Info(InfoArgs),
    /// Answers the queries of one client
    Serve(Box<ServeArgs>),
    /// Intersects our file with a published one: which of our rows have a key that is in it
    Query(Box<QueryArgs>),
}

/// Our table, and what makes a row's key.
#[derive(clap::Args)]
pub(super) struct TableArgs {
    /// Our table: CSV (plain or packed by gzip or zstd), Parquet or Arrow; - for standard input
    #[arg(long, value_name = "FILE")]
    pub(super) input: PathBuf,
    #[command(flatten)]
    pub(super) key: KeyArgs,
    #[command(flatten)]
    pub(super) table: Dialect,
}

/// What the private file is sealed with.
#[derive(clap::Args)]
struct SealArgs {
    /// Our private key, from `tacit keygen`: the private file is sealed with it
    #[arg(long, value_name = "FILE")]
    identity: Option<PathBuf>,
    /// Seals the private file with the bytes of this file, 32 at least, instead of the identity key
    #[arg(long, value_name = "FILE")]
    seal_key: Option<PathBuf>,
}

/// What is published, and where.
#[derive(clap::Args)]
struct PublishArgs {
    #[command(flatten)]
    table: TableArgs,
    #[command(flatten)]
    seal: SealArgs,
    /// The file of tags, to pass on
    #[arg(long, value_name = "FILE.tags")]
    out: PathBuf,
    /// The private file, which answers queries; must not exist
    #[arg(long, value_name = "FILE.oprf")]
    private: PathBuf,
    /// The most queries that the key answers, of all clients together: it decides how long a tag is
    #[arg(long, value_name = "N", default_value_t = LIFETIME)]
    lifetime: u64,
    /// The most queries that the key answers for one client
    #[arg(long, value_name = "N", default_value_t = PER_CLIENT)]
    max_queries: u64,
    /// Computing threads
    #[arg(long, value_name = "T", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    threads: u16,
}

/// What is published anew, and where.
#[derive(clap::Args)]
struct RotateArgs {
    #[command(flatten)]
    table: TableArgs,
    #[command(flatten)]
    seal: SealArgs,
    /// The new file of tags; replaces one of that name if --overwrite is given
    #[arg(long, value_name = "FILE.tags")]
    out: PathBuf,
    /// The private file, in which the new key takes the old one's place
    #[arg(long, value_name = "FILE.oprf")]
    private: PathBuf,
    /// The most queries that the new key answers, of all clients together; as before unless given
    #[arg(long, value_name = "N")]
    lifetime: Option<u64>,
    /// The most queries that the new key answers for one client; as before unless given
    #[arg(long, value_name = "N")]
    max_queries: Option<u64>,
    /// Computing threads
    #[arg(long, value_name = "T", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    threads: u16,
}

/// Names a file of tags or a private file.
#[derive(clap::Args)]
struct InfoArgs {
    /// The file of tags; or the private file, with the key that it was sealed with
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Reads and checks every block of a file of tags
    #[arg(long)]
    check: bool,
    #[command(flatten)]
    seal: SealArgs,
}

/// Names the private file and the client.
#[derive(clap::Args)]
struct ServeArgs {
    /// The private file
    #[arg(long, value_name = "FILE.oprf")]
    private: PathBuf,
    /// The key file that the private file was sealed with, if it was not the identity key
    #[arg(long, value_name = "FILE")]
    seal_key: Option<PathBuf>,
    #[command(flatten)]
    peer: PeerArgs,
}

/// Names our table, the file of tags and the server.
#[derive(clap::Args)]
pub(super) struct QueryArgs {
    #[command(flatten)]
    pub(super) table: TableArgs,
    /// The publisher's file of tags
    #[arg(long, value_name = "FILE.tags")]
    pub(super) tags: PathBuf,
    /// Writes our matching rows, with all their columns, to this file
    #[arg(long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
    #[command(flatten)]
    pub(super) peer: PeerArgs,
}

/// Runs the subcommand.
pub fn run(args: Args, context: &Context) -> Result<()> {
    match args.command {
        TagsCommand::Publish(args) => publish(&args, context),
        TagsCommand::Rotate(args) => rotate(&args, context),
        TagsCommand::Info(args) => info(&args, context),
        TagsCommand::Serve(args) => serve(&args, context),
        TagsCommand::Query(args) => query(&args, context),
    }
}

/// A fault of a file of tags or a private file, with the file's name in front.
fn named(file: &Path) -> impl Fn(tacit::psi::Error) -> Error {
    move |error| match error {
        tacit::psi::Error::Tags(fault) => Error::Input(format!("{}: {fault}", file.display())),
        tacit::psi::Error::File(fault) => Error::Input(format!("{}: {fault}", file.display())),
        other => other.into(),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Our table's keys.
struct Table {
    source: Source,
    spec: KeySpec,
    keys: KeySet,
}

impl TableArgs {
    fn read(&self, context: &Context) -> Result<Table> {
        let spec = self.key.spec();
        let (source, keys) = self.key.read(&self.input, &self.table, context)?;
        Ok(Table { source, spec, keys })
    }
}

/// What a private file is sealed with.
fn seal(seal_key: Option<&Path>, identity: Option<&Path>) -> Result<FileKey> {
    match (seal_key, identity) {
        (Some(file), _) => {
            FileKey::from_file(file).map_err(|fault| Error::Input(format!("{}: {fault}", file.display())))
        }
        (None, Some(file)) => Ok(FileKey::from_identity(&Identity::load(file)?)),
        (None, None) => {
            Err(Error::Usage("the private file needs a key: give --identity FILE or --seal-key FILE".into()))
        }
    }
}

impl SealArgs {
    fn key(&self) -> Result<FileKey> {
        seal(self.seal_key.as_deref(), self.identity.as_deref())
    }
}

fn publish(args: &PublishArgs, context: &Context) -> Result<()> {
    let job = Job {
        name: "tags publish",
        table: &args.table,
        out: &args.out,
        private: (&args.private, Output::create_secret),
        lifetime: args.lifetime,
        max_queries: args.max_queries,
        threads: args.threads,
    };
    job.run(&args.seal.key()?, context)
}

fn rotate(args: &RotateArgs, context: &Context) -> Result<()> {
    let key = args.seal.key()?;
    // Held until the new one has taken its place: nothing is answered with the old key meanwhile.
    let old = Private::open(&args.private, &key).map_err(named(&args.private))?;
    let terms = &old.publication().terms;
    let lifetime = args.lifetime.unwrap_or(terms.lifetime);
    let job = Job {
        name: "tags rotate",
        table: &args.table,
        out: &args.out,
        private: (&args.private, Output::next_state),
        lifetime,
        max_queries: args.max_queries.unwrap_or(terms.per_client.min(lifetime)),
        threads: args.threads,
    };
    job.run(&key, context)
}

/// A publication under way.
struct Job<'a> {
    name: &'static str,
    table: &'a TableArgs,
    out: &'a Path,
    /// The private file, and how it comes to be.
    private: (&'a Path, fn(&Path) -> Result<Output>),
    lifetime: u64,
    max_queries: u64,
    threads: u16,
}

impl Job<'_> {
    fn run(&self, seal: &FileKey, context: &Context) -> Result<()> {
        let (path, make) = self.private;
        let (mut out, mut private) = (Output::create_archive(self.out)?, make(path)?);
        let table = self.table.read(context)?;
        let elements = table.keys.elements();
        let what = format!("a publication of {} keys", elements.len());
        super::check_memory(&what, 16 * elements.len() as u64, "take a machine with more")?;
        let terms =
            Terms { lifetime: self.lifetime, per_client: self.max_queries, key: table.spec.agreement() };
        let threads = NonZeroUsize::new(self.threads.into()).unwrap_or(NonZeroUsize::MIN);
        let progress = context.progress("publishing", elements.len() as u64, "keys");
        let (start, mut prg) = (Instant::now(), Prg::from_os());
        let published =
            tags::publish(&mut out, elements, terms, threads, &mut prg, &mut |done| progress.set(done))
                .map_err(named(self.out))?;
        private::create(&mut private, &published, seal, &mut prg).map_err(named(path))?;
        progress.finish();
        // Both on the disk before either takes its place.
        out.settle()?;
        private.settle()?;
        out.commit()?;
        private.commit()?;
        let wall = start.elapsed();
        let mut object = facts(&published.publication, &published.digest);
        object["name"] = json!(self.name);
        object["out"] = json!(self.out);
        object["private"] = json!(path);
        object["wall_ms"] = json!(wall.as_secs_f64() * 1e3);
        let text = format!(
            "{} is the file of tags: give it to the clients\n\
             {} is the private file: keep it, and never put an old copy of it back\n{}",
            self.out.display(),
            path.display(),
            text(&published.publication, &published.digest)
        );
        context.result(&object, &text)
    }
}

fn facts(publication: &Publication, digest: &[u8; 32]) -> Value {
    json!({
        "protocol": oprf::NAME,
        "id": hex(&publication.id),
        "digest": hex(digest),
        "public_key": hex(&publication.public),
        "keys": publication.count,
        "tag_bits": publication.bits,
        "lifetime": publication.terms.lifetime,
        "max_queries": publication.terms.per_client,
        "chance_log2": publication.chance_log2(),
        "key": publication.terms.key,
    })
}

fn text(publication: &Publication, digest: &[u8; 32]) -> String {
    let terms = &publication.terms;
    format!(
        "{} keys ({}), tags of {} bits\n\
         at most {} queries a client and {} in all; a wrong match in all of them: 2^{:.1}\n\
         digest {}",
        publication.count,
        terms.key,
        publication.bits,
        terms.per_client,
        terms.lifetime,
        publication.chance_log2(),
        hex(digest)
    )
}

fn open_tags(path: &Path) -> Result<TagFile<File>> {
    TagFile::open(output::open(path)?).map_err(named(path))
}

fn info(args: &InfoArgs, context: &Context) -> Result<()> {
    if args.seal.identity.is_some() || args.seal.seal_key.is_some() {
        let private = Private::open(&args.file, &args.seal.key()?).map_err(named(&args.file))?;
        let mut object = facts(private.publication(), private.digest());
        object["name"] = json!("tags info");
        object["answered"] = json!(private.answered());
        object["clients"] = json!(private.clients());
        let facts = text(private.publication(), private.digest());
        let (answered, clients) = (private.answered(), private.clients());
        return context
            .result(&object, &format!("{facts}\n{answered} queries answered, of {clients} clients"));
    }
    let mut file = open_tags(&args.file)?;
    if args.check {
        file.check().map_err(named(&args.file))?;
    }
    let mut object = facts(file.publication(), file.digest());
    object["name"] = json!("tags info");
    object["checked"] = json!(args.check);
    context.result(&object, &text(file.publication(), file.digest()))
}

/// What both sides must agree on: the publication, and with it everything that stands in its file.
fn agreement(role: &str, peer: &str, digest: &[u8; 32]) -> Agreement {
    Agreement::new("tags", role, peer).with("protocol", oprf::NAME).with("publication", hex(digest))
}

fn session(peer: &PeerArgs, context: &Context) -> Result<tacit::Session> {
    let session = peer.session(Security::Malicious, context)?;
    session.allow(oprf::NAME)?;
    if peer.threads() != 1 {
        return Err(Error::Usage("tacit tags runs on one thread a side; leave --threads out".into()));
    }
    Ok(session)
}

fn serve(args: &ServeArgs, context: &Context) -> Result<()> {
    let session = session(&args.peer, context)?;
    let client = private::client(args.peer.peer_name()?.as_deref());
    let key = seal(args.seal_key.as_deref(), args.peer.identity())?;
    let mut private = Private::open(&args.private, &key).map_err(named(&args.private))?;
    let agreement = agreement("serve", "query", private.digest());
    let progress = context.progress("answering", 0, "queries");
    let ((queries, wall), stats) = session.run(agreement, |opened| {
        let (start, mut prg) = (Instant::now(), Prg::from_os());
        let told = &mut |done| progress.set(done);
        let queries = oprf::serve(opened.channel(), &mut prg, &mut private, &client, told);
        Ok((queries.map_err(named(&args.private))?, start.elapsed()))
    })?;
    progress.finish();
    let left = private.left(&client);
    let learns = format!(
        "that we have {} distinct keys, and which of its own keys are among them; nothing else",
        private.publication().count
    );
    let object = json!({
        "name": "tags serve",
        "protocol": oprf::NAME,
        "security": "malicious",
        "queries": queries,
        "queries_left": left,
        "answered": private.answered(),
        "wall_ms": wall.as_secs_f64() * 1e3,
        "bytes_sent": stats.bytes_sent,
        "bytes_received": stats.bytes_received,
        "rounds": stats.rounds,
        "other_side_learned": learns,
    });
    let text = format!(
        "{queries} queries answered in {:.3} s, {left} left for this client\nthe other side learned {learns}",
        wall.as_secs_f64()
    );
    context.result(&object, &text)
}

/// What the queries of [`query`] would cost, and beside it an intersection that needs no published file;
/// starts nothing.
pub(super) fn dry_query(args: &QueryArgs, context: &Context) -> Result<()> {
    session(&args.peer, context)?;
    let file = open_tags(&args.tags)?;
    let publication = file.publication();
    let table = args.table.read(context)?;
    args.check(publication, &table)?;
    let asked = table.keys.elements().len() as u64;
    let link = args.peer.link().into();
    let machine = tacit::plan::Machine::measure();
    let mut candidates = vec![OPRF.intersection_cost(asked, OPRF.security, &link, &machine)?];
    // Of both whole sets, as large as the larger; a publication may hold more than such a run takes.
    let all = asked.max(publication.count);
    candidates.extend(VOLE.intersection_cost(all, tacit::Security::Malicious, &link, &machine));
    let learns = format!("that we made {asked} queries; nothing else");
    crate::cli::plan::show(context, "psi", asked, &link, &candidates, Some(OPRF.name), &learns)?;
    if !context.json {
        let (count, left) = (publication.count, publication.terms.per_client);
        let text = format!(
            "the published file holds {count} keys, which an intersection by vole would work through; a client has \
             {left} queries over its lifetime"
        );
        context.result(&json!(null), &text)?;
    }
    Ok(())
}

impl QueryArgs {
    /// An error where our keys are not of the publication's kind, or more than it answers.
    fn check(&self, publication: &Publication, table: &Table) -> Result<()> {
        let spec = table.spec.agreement();
        if spec != publication.terms.key {
            return Err(Error::Usage(format!(
                "{}: was made with `{}`, and this run has `{spec}`; give as many columns and the same \
                 --no- options",
                self.tags.display(),
                publication.terms.key
            )));
        }
        let asked = table.keys.elements().len() as u64;
        if asked > publication.terms.per_client {
            return Err(Error::Input(format!(
                "{}: {asked} distinct keys, and a client of this publication has {} queries; take fewer rows",
                self.table.input.display(),
                publication.terms.per_client
            )));
        }
        Ok(())
    }
}

/// Intersects our file with a published one.
pub(super) fn query(args: &QueryArgs, context: &Context) -> Result<()> {
    let session = session(&args.peer, context)?;
    let mut file = open_tags(&args.tags)?;
    let (publication, digest) = (file.publication().clone(), *file.digest());
    let table = args.table.read(context)?;
    if let Some(target) = &args.output {
        table.source.admits(target)?;
    }
    args.check(&publication, &table)?;
    let elements = table.keys.elements();
    let asked = elements.len() as u64;
    let mut output = args.output.as_deref().map(Output::create).transpose()?;
    if let Some(output) = &mut output {
        // Every row may match, and one without a line's end gets one.
        output.reserve(table.source.bytes().saturating_add(2))?;
    }
    let progress = context.progress("querying", asked, "keys");
    let ((matches, wall), stats) = session.run(agreement("query", "serve", &digest), |opened| {
        let (start, mut prg) = (Instant::now(), Prg::from_os());
        let told = &mut |done| progress.set(done);
        let tags = oprf::query(opened.channel(), &mut prg, &publication, &digest, elements, told)?;
        let found = file.contains(&tags).map_err(named(&args.tags))?;
        Ok((oprf::matches(&found), start.elapsed()))
    })?;
    progress.finish();
    let mut rows = None;
    if let Some(mut output) = output {
        let target = output.target().to_owned();
        rows = Some(table.source.write_matches(&table.keys, &matches, &target, &mut output)?);
        output.commit()?;
    }

    let keys = &table.keys;
    let learns = format!("that we made {asked} queries; nothing else");
    let mut object = json!({
        "name": "tags query",
        "protocol": oprf::NAME,
        "protocol_why": "a published file of tags is there: only our side's keys cost time and bytes",
        "security": "malicious",
        "result": "me",
        "reveal": "rows",
        "own_rows": keys.rows(),
        "own_keys": asked,
        "duplicates": keys.duplicate_rows(),
        "rows_without_key": keys.rows_without_key(),
        "peer_keys": publication.count,
        "matches": matches.len(),
        "wall_ms": wall.as_secs_f64() * 1e3,
        "bytes_sent": stats.bytes_sent,
        "bytes_received": stats.bytes_received,
        "rounds": stats.rounds,
        "other_side_learned": learns,
    });
    let mut text = format!("{} matches\n", matches.len());
    if let (Some(path), Some(rows)) = (&args.output, rows) {
        object["output"] = json!(path);
        object["output_rows"] = json!(rows);
        text += &format!("{rows} rows of ours written to {}\n", path.display());
    }
    text += &format!(
        "our file: {} rows, {asked} distinct keys; the peer: {} distinct keys\n\
         {:.3} s, {} bytes sent, {} received; {} (malicious)\nthe other side learned {learns}",
        keys.rows(),
        publication.count,
        wall.as_secs_f64(),
        stats.bytes_sent,
        stats.bytes_received,
        oprf::NAME,
    );
    context.result(&object, &text)
}
