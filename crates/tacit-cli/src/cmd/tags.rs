//! `tacit tags`: a large set published once as a file of tags, and small sets intersected with it.

use crate::cli::keys::{self, KeyArgs};
use crate::cli::output::{self, Output, name};
use crate::cli::peer::{PeerArgs, Security};
use crate::cli::plan::Picked;
use crate::cli::results::ResultArgs;
use crate::cli::table::Dialect;
use crate::cli::{Context, fault};
use clap::Subcommand;
use serde_json::{Value, json};
use std::fs::File;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;
use tacit::catalogue::OPRF;
use tacit::crypto::hex;
use tacit::crypto::text::counted;
use tacit::data::records::{KeySet, KeySpec};
use tacit::data::table::Source;
use tacit::job::psi::refuse_variants;
use tacit::job::tags::{
    self as job, Answering, Private, Publication, Publishing, Querying, Refusal, TagFile, Terms,
};
use tacit::job::{Ran, agreed};
use tacit::net::Identity;
use tacit::psi::oprf::{self, tags::TagsError};
use tacit::sealed::FileKey;
use tacit::{Error, Result};

const AFTER: &str = "\
Examples, Alice has ten million customers and Bob a thousand:
  alice$ tacit tags publish --input customers.csv --key email \\
             --identity alice.key --out customers.tags --private customers.oprf
  bob$   tacit tags info customers.tags
  alice$ tacit tags serve --listen 0.0.0.0:7700 --identity alice.key \\
             --peer bob.pub --private customers.oprf
  bob$   tacit tags query --connect alice.example:7700 --identity bob.key \\
             --peer alice.pub --tags customers.tags --input kunden.csv \\
             --key email --output both.csv
  alice$ tacit tags rotate --input customers.csv --key email \\
             --identity alice.key --out customers.tags \\
             --private customers.oprf --overwrite

Bob learns how many distinct keys Alice has and which of his own are among them; Alice learns how many
queries Bob makes. Clients of one publication should compare its digest, which `tacit tags info` prints: a
publisher could give each of them a file of its own. Never restore an old copy of the private file: it
would answer again what it has answered since.";

/// Most queries of a key's lifetime, and for one client, unless said otherwise.
const LIFETIME: u64 = 1 << 16;
const PER_CLIENT: u64 = 1 << 12;

/// Publishes a tag file of a large set once, for queries by clients with small sets.
#[derive(clap::Args)]
#[command(after_help = AFTER, subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: TagsCommand,
}

/// The subcommands of `tacit tags`.
#[derive(Subcommand)]
enum TagsCommand {
    /// Makes the tag file of your file, and the private file that answers queries on it
    Publish(Box<PublishArgs>),
    /// Publishes again with a new key; queries on the old tag file are then no longer answered
    Rotate(Box<RotateArgs>),
    /// Shows the facts of a tag file, or of a private file
    Info(InfoArgs),
    /// Answers the queries of one client
    Serve(Box<ServeArgs>),
    /// Intersects your file with a published one: which of your rows have a key that is in it
    Query(Box<QueryArgs>),
}

/// Our table, and what makes a row's key.
#[derive(clap::Args)]
pub(super) struct TableArgs {
    /// Your table: CSV or JSON lines (plain or compressed), Parquet, Arrow or Excel (FILE.xlsx#SHEET!A1:D9); - for
    /// standard input; a directory or pattern of files; or on another machine:
    /// postgresql://HOST/DATABASE#QUERY, adbc:DRIVER?uri=...#QUERY, s3://BUCKET/KEY, https://HOST/FILE.
    /// Repeat it for several files as one table
    #[arg(long, value_name = "FILE", required = true, num_args = 1)]
    pub(super) input: Vec<PathBuf>,
    #[command(flatten)]
    pub(super) key: KeyArgs,
    #[command(flatten)]
    pub(super) table: Dialect,
}

/// What the private file is sealed with.
#[derive(clap::Args)]
struct SealArgs {
    /// Your private key, from `tacit keygen`: the private file is encrypted with it
    #[arg(long, value_name = "FILE")]
    identity: Option<PathBuf>,
    /// Encrypts the private file with the bytes of this file, at least 32, instead of the identity key
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
    /// The tag file, to pass on
    #[arg(long, value_name = "FILE.tags")]
    out: PathBuf,
    /// The private file, which answers queries; must not exist
    #[arg(long, value_name = "FILE.oprf")]
    private: PathBuf,
    /// The most queries that the key answers, of all clients together; it sets the length of a tag
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
    /// The new tag file; replaces an existing one with --overwrite
    #[arg(long, value_name = "FILE.tags")]
    out: PathBuf,
    /// The private file, in which the new key replaces the old one
    #[arg(long, value_name = "FILE.oprf")]
    private: PathBuf,
    /// The most queries that the new key answers, of all clients together (default: as before)
    #[arg(long, value_name = "N")]
    lifetime: Option<u64>,
    /// The most queries that the new key answers for one client (default: as before)
    #[arg(long, value_name = "N")]
    max_queries: Option<u64>,
    /// Computing threads
    #[arg(long, value_name = "T", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    threads: u16,
}

/// Names a file of tags or a private file.
#[derive(clap::Args)]
struct InfoArgs {
    /// The tag file; or the private file, with the key that it is encrypted with
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Reads and checks every block of a tag file
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
    /// The key file that the private file is encrypted with, if it is not the identity key
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
    /// The publisher's tag file
    #[arg(long, value_name = "FILE.tags")]
    pub(super) tags: PathBuf,
    #[command(flatten)]
    pub(super) results: ResultArgs,
    #[command(flatten)]
    pub(super) peer: PeerArgs,
}

pub(super) fn run(args: Args, context: &Context) -> Result<()> {
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
    let of_file = of_file(file);
    move |error| of_file(error.into())
}

/// As [`named`], of what a job returns.
fn of_file(file: &Path) -> impl Fn(Error) -> Error {
    move |error| match error {
        Error::Psi(tacit::psi::Error::Tags(fault)) => Error::Input(format!("{}: {fault}", file.display())),
        Error::Psi(tacit::psi::Error::File(fault)) => Error::Input(format!("{}: {fault}", file.display())),
        other => other,
    }
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
        refuse_variants(&spec, "a tag file has")?;
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
    let files = Files { out: &args.out, private: &args.private, make: Output::create_secret };
    let terms = |key| Terms { lifetime: args.lifetime, per_client: args.max_queries, key };
    make("tags publish", &args.table, &files, &args.seal.key()?, terms, args.threads, context)
}

fn rotate(args: &RotateArgs, context: &Context) -> Result<()> {
    let key = args.seal.key()?;
    // Held until the new one has taken its place: nothing is answered with the old key meanwhile.
    let old = Private::open(&args.private, &key).map_err(named(&args.private))?;
    let files = Files { out: &args.out, private: &args.private, make: Output::next_state };
    let terms = |spec| job::terms_after(&old, args.lifetime, args.max_queries, spec);
    make("tags rotate", &args.table, &files, &key, terms, args.threads, context)
}

/// Where a publication goes.
struct Files<'a> {
    out: &'a Path,
    private: &'a Path,
    /// How the private file comes to be.
    make: fn(&Path) -> Result<Output>,
}

/// Publishes `table` with the `terms` that its kind of key has.
fn make(
    name: &'static str,
    table: &TableArgs,
    files: &Files<'_>,
    seal: &FileKey,
    terms: impl FnOnce(String) -> Terms,
    threads: u16,
    context: &Context,
) -> Result<()> {
    let (mut out, mut private) =
        (Output::create_archive(files.out)?.for_everyone()?, (files.make)(files.private)?);
    let table = table.read(context)?;
    let elements = table.keys.elements();
    let threads = NonZeroUsize::new(threads.into()).unwrap_or(NonZeroUsize::MIN);
    let job = Publishing { terms: terms(table.spec.agreement()), threads };
    let (count, start) = (elements.len() as u64, Instant::now());
    let what = format!("a publication of {count}", count = counted(count, "key"));
    super::check_memory(&what, job.memory(count), "use a machine with more")?;
    let progress = context.progress("publishing", count, "keys");
    let made = job.run(elements, &mut out, &mut private, seal, &progress).map_err(of_file(files.out))?;
    progress.finish();
    // Both on the disk before either takes its place.
    out.settle()?;
    private.settle()?;
    out.commit()?;
    private.commit()?;
    let mut object = facts(&made.publication, &made.digest);
    object["name"] = json!(name);
    object["out"] = json!(files.out);
    object["private"] = json!(files.private);
    object["wall_ms"] = json!(start.elapsed().as_secs_f64() * 1e3);
    let text = format!(
        "{} is the tag file: send it to the clients\n\
         {} is the private file: keep it, and never restore an old copy\n{}",
        files.out.display(),
        files.private.display(),
        text(&made.publication, &made.digest)
    );
    context.result(&object, &text)
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
        "{} ({}), tags of {}\nat most {} per client and {} in total; chance of a wrong match in all of them: \
         2^{:.1}\ndigest {}",
        counted(publication.count, "key"),
        agreed::words(&terms.key),
        counted(publication.bits, "bit"),
        counted(terms.per_client, "query"),
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
        return context.result(
            &object,
            &format!(
                "{facts}\n{answered} answered, of {clients}",
                answered = counted(answered, "query"),
                clients = counted(clients, "client")
            ),
        );
    }
    let mut file = TagFile::open(output::open(&args.file)?).map_err(|error| match error {
        tacit::psi::Error::Tags(TagsError::Private) => Error::Usage(format!(
            "{} is a private file; give its key with --identity or --seal-key",
            name(&args.file)
        )),
        other => named(&args.file)(other),
    })?;
    if args.check {
        file.check().map_err(named(&args.file))?;
    }
    let mut object = facts(file.publication(), file.digest());
    object["name"] = json!("tags info");
    object["checked"] = json!(args.check);
    context.result(&object, &text(file.publication(), file.digest()))
}

fn session(peer: &PeerArgs, context: &Context) -> Result<tacit::Session> {
    let session = peer.session(Security::Malicious, context)?;
    session.allow_tags()?;
    Ok(session)
}

fn serve(args: &ServeArgs, context: &Context) -> Result<()> {
    let session = session(&args.peer, context)?;
    let client = job::client(args.peer.peer_name()?.as_deref());
    let key = seal(args.seal_key.as_deref(), args.peer.identity())?;
    let private = Mutex::new(Private::open(&args.private, &key).map_err(named(&args.private))?);
    let job = Answering { private: &private, client, most: u64::MAX };
    let progress = context.progress("answering", 0, "queries");
    let ran = session.answer_tags(&job, &progress).map_err(of_file(&args.private))?;
    progress.finish();
    let Ran { result: queries, wall, stats } = ran;
    let (left, learns) = (job.left(), job.learns());
    let answered = private.lock().unwrap_or_else(PoisonError::into_inner).answered();
    let object = json!({
        "name": "tags serve",
        "protocol": oprf::NAME,
        "security": "malicious",
        "queries": queries,
        "queries_left": left,
        "answered": answered,
        "wall_ms": wall.as_secs_f64() * 1e3,
        "bytes_sent": stats.bytes_sent,
        "bytes_received": stats.bytes_received,
        "rounds": stats.rounds,
        "other_side_learned": learns,
    });
    let text = format!(
        "{queries} answered in {:.3} s, {left} left for this client\nthe other side learned {learns}",
        wall.as_secs_f64(),
        queries = counted(queries, "query")
    );
    context.result(&object, &text)
}

/// What the queries of [`query`] would cost, and beside it an intersection that needs no published file;
/// starts nothing.
pub(super) fn dry_query(args: &QueryArgs, context: &Context) -> Result<()> {
    session(&args.peer, context)?;
    let file = open_tags(&args.tags)?;
    let publication = file.publication();
    let job = Querying { publication, digest: file.digest() };
    let table = args.table.read(context)?;
    args.check(&job, &table)?;
    let asked = table.keys.elements().len() as u64;
    let link = args.peer.link().into();
    let machine = tacit::plan::Machine::measure();
    let candidates = job.estimate(asked, &link, &machine)?;
    let learns = job.learns(asked);
    crate::cli::plan::show(context, "psi", asked, &link, &candidates, Picked::Named(OPRF.name), &learns)?;
    if !context.json {
        let (count, left) = (publication.count, publication.terms.per_client);
        let text = format!(
            "the tag file has {count}, all of which an intersection by vole would process; a client has \
             {left} over its lifetime",
            count = counted(count, "key"),
            left = counted(left, "query")
        );
        context.result(&json!(null), &text)?;
    }
    Ok(())
}

impl QueryArgs {
    /// An error where our keys are not of the publication's kind, or more than it answers.
    fn check(&self, job: &Querying<'_>, table: &Table) -> Result<()> {
        let asked = table.keys.elements().len() as u64;
        job.check(&table.spec, asked).map_err(|refusal| match &refusal {
            Refusal::Keys { differences, with_types } => {
                let differences: Vec<String> =
                    differences.iter().map(|one| fault::by_options(one).against("the file's")).collect();
                let remedy = with_types.as_ref().map(|key| format!("use --key {key}"));
                let remedy = remedy.unwrap_or_else(|| "use the same as the tag file".to_owned());
                Error::Usage(format!(
                    "{}: keys differ: {}; {remedy}",
                    name(&self.tags),
                    differences.join(", ")
                ))
            }
            Refusal::TooMany { .. } => Error::Input(format!("{}: {refusal}", keys::files(&self.table.input))),
        })
    }
}

/// Intersects our file with a published one.
pub(super) fn query(args: &QueryArgs, context: &Context) -> Result<()> {
    let session = session(&args.peer, context)?;
    let mut file = open_tags(&args.tags)?;
    let (publication, digest) = (file.publication().clone(), *file.digest());
    let job = Querying { publication: &publication, digest: &digest };
    let table = args.table.read(context)?;
    args.results.admit(&table.source)?;
    args.results.prove(&table.source)?;
    args.check(&job, &table)?;
    let elements = table.keys.elements();
    let asked = elements.len() as u64;
    let mut results = args.results.open(Output::create)?;
    results.reserve(table.source.bytes())?;
    let progress = context.progress("querying", asked, "keys");
    let ran = session.query_tags(&job, &mut file, elements, &progress).map_err(of_file(&args.tags))?;
    let Ran { result: matches, wall, stats } = ran;
    progress.finish();
    let put = results.write_matches(&table.source, &table.keys, &matches)?;

    let keys = &table.keys;
    let learns = job.learns(asked);
    let mut object = json!({
        "name": "tags query",
        "protocol": oprf::NAME,
        "protocol_why": "with a tag file only your keys cost time and traffic",
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
    let mut text = format!("{}\n", counted(matches.len(), "match"));
    text += &put.report(&args.results, &mut object);
    text += &format!(
        "your file: {}, {asked}; the peer: {}\n\
         {:.3} s, {} sent, {} received; {} (malicious)\nthe other side learned {learns}",
        counted(keys.rows(), "row"),
        counted(publication.count, "distinct key"),
        wall.as_secs_f64(),
        counted(stats.bytes_sent, "byte"),
        stats.bytes_received,
        oprf::NAME,
        asked = counted(asked, "distinct key"),
    );
    context.result(&object, &text)
}
