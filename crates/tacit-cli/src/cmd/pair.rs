//! `tacit pair`: IAB Tech Lab's PAIR, one clean room's steps, whose messages are tables.

use crate::cli::keys::{self, KeyArgs, TYPES};
use crate::cli::output::{Output, destination, name};
use crate::cli::table::Dialect;
use crate::cli::{Context, keys::files};
use clap::Subcommand;
use serde_json::{Value, json};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use tacit::crypto::Prg;
use tacit::crypto::text::counted;
use tacit::data::records::{KeySet, KeySpec};
use tacit::data::table::Source;
use tacit::job::pair::{
    self, KEY_DAYS, Key, LEAST_LISTED, List, Matched, People, Role, SALT_DAYS, Salt, rate,
};
use tacit::net::calendar::today;
use tacit::{Error, Result};

const AFTER: &str = "\
Examples, the publisher's clean room is PC and the advertiser's AC:
  PC$ tacit pair keygen --role publisher --out pub.key --salt-out s.salt
  AC$ tacit pair keygen --role advertiser --out adv.key
  PC$ tacit pair encrypt --input members.csv --key mail:email --salt s.salt \\
          --pair-key pub.key --output pub.parquet
  AC$ tacit pair encrypt --input clients.csv --key mail:email --salt s.salt \\
          --pair-key adv.key --output adv.parquet
  AC$ tacit pair encrypt --list pub.parquet --salt s.salt --pair-key adv.key \\
          --output pub-both.parquet
  PC$ tacit pair encrypt --list adv.parquet --salt s.salt --pair-key pub.key \\
          --output adv-both.parquet
  AC$ tacit pair match --publisher pub-both.parquet --advertiser adv-both.parquet \\
          --output common.parquet
  AC$ tacit pair ids --list common.parquet --salt s.salt --pair-key adv.key \\
          --output target.csv
  PC$ tacit pair ids --input members.csv --key mail:email --salt s.salt \\
          --pair-key pub.key --output ids.csv

PC gives s.salt to AC in secret, and nobody else gets it. Protects against parties that follow the protocol,
and against nothing else: see docs/use/pair.md. `tacit psi` matches two tables without clean rooms, against
peers that cheat.";

/// Matches people for advertising in clean rooms, by IAB Tech Lab's PAIR 1.1.
#[derive(clap::Args)]
#[command(after_help = AFTER, subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: PairCommand,
}

/// The subcommands of `tacit pair`.
#[derive(Subcommand)]
enum PairCommand {
    /// Makes the key of a side, or the salt of both
    Keygen(KeygenArgs),
    /// Encrypts your people, or encrypts the other side's list again
    Encrypt(Box<EncryptArgs>),
    /// Compares two lists that both sides have encrypted: match rates, the common list
    Match(MatchArgs),
    /// Writes the publisher's identifiers for bid requests: all, or the matched ones
    Ids(Box<IdsArgs>),
}

/// What is made, and for how long.
#[derive(clap::Args)]
struct KeygenArgs {
    /// Whose key is made
    #[arg(long, value_enum, requires = "out")]
    role: Option<RoleArg>,
    /// The file for the key, which stays in your room
    #[arg(long, value_name = "FILE", requires = "role", required_unless_present = "salt_out")]
    out: Option<PathBuf>,
    /// The file for a new salt, which the publisher's room makes and gives to the advertiser's
    #[arg(long, value_name = "FILE")]
    salt_out: Option<PathBuf>,
    /// Days that the key serves
    #[arg(long, value_name = "DAYS", default_value_t = KEY_DAYS, value_parser = clap::value_parser!(u64).range(1..=KEY_DAYS))]
    days: u64,
    /// Days that the salt serves
    #[arg(long, value_name = "DAYS", default_value_t = SALT_DAYS, value_parser = clap::value_parser!(u64).range(1..=SALT_DAYS))]
    salt_days: u64,
}

/// `--role`, as the command line has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
enum RoleArg {
    /// Who sends bid requests
    Publisher,
    /// Who answers them
    Advertiser,
}

impl RoleArg {
    fn role(self) -> Role {
        match self {
            RoleArg::Publisher => Role::Publisher,
            RoleArg::Advertiser => Role::Advertiser,
        }
    }
}

/// One's own people, or a list of the other side's.
#[derive(clap::Args)]
struct FromArgs {
    /// Your people: CSV or JSON lines (plain or compressed), Parquet, Arrow or Excel (FILE.xlsx#SHEET!A1:D9); - for
    /// standard input; a directory or pattern of files; or on another machine:
    /// postgresql://HOST/DATABASE#QUERY, adbc:DRIVER?uri=...#QUERY, s3://BUCKET/KEY, https://HOST/FILE.
    /// Repeat it for several files as one table
    #[arg(long, value_name = "FILE", num_args = 1, required_unless_present = "list")]
    input: Vec<PathBuf>,
    /// In place of --input: a list that tacit pair wrote. Repeat it for several files as one list
    #[arg(long, value_name = "FILE", num_args = 1, conflicts_with_all = ["input", "key"])]
    list: Vec<PathBuf>,
    #[command(flatten)]
    key: KeyArgs,
    #[command(flatten)]
    table: Dialect,
}

/// The secrets, and how the work is done.
#[derive(clap::Args)]
struct SecretArgs {
    /// The salt, which both sides have
    #[arg(long, value_name = "FILE")]
    salt: PathBuf,
    /// Uses a key or a salt that has expired, for instance to write a publisher's identifiers of the last period
    #[arg(long)]
    allow_expired: bool,
    /// Computing threads
    #[arg(long, value_name = "T", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    threads: u16,
}

/// What is encrypted, with what, and where to.
#[derive(clap::Args)]
#[command(after_help = TYPES, mut_arg("key", |key| key.required(false)))]
struct EncryptArgs {
    #[command(flatten)]
    from: FromArgs,
    /// Your side's key. A single clean room that has both sides' keys gives it twice, the side's own first
    #[arg(long, value_name = "FILE", required = true, num_args = 1)]
    pair_key: Vec<PathBuf>,
    #[command(flatten)]
    secrets: SecretArgs,
    /// The list, in an order that tells nothing: .parquet, .arrow, .csv ...
    #[arg(long, value_name = "FILE")]
    output: PathBuf,
    /// Names the relationship of the two sides, the same in both lists
    #[arg(long, value_name = "TEXT", conflicts_with = "list", value_parser = relation)]
    adv_pub_id: Option<String>,
    /// The fewest distinct identifiers that a list may have; PAIR asks for 1000
    #[arg(long, value_name = "N", default_value_t = LEAST_LISTED)]
    min_list: u64,
}

/// The two lists, and where the common one goes.
#[derive(clap::Args)]
struct MatchArgs {
    /// The publisher's list, encrypted by both sides
    #[arg(long, value_name = "FILE", required = true, num_args = 1)]
    publisher: Vec<PathBuf>,
    /// The advertiser's list, encrypted by both sides
    #[arg(long, value_name = "FILE", required = true, num_args = 1)]
    advertiser: Vec<PathBuf>,
    /// The common list, for the advertiser's room: it stays there
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// The fewest distinct identifiers that a list may have; PAIR asks for 1000
    #[arg(long, value_name = "N", default_value_t = LEAST_LISTED)]
    min_list: u64,
}

/// Whose identifiers are written, and where to.
#[derive(clap::Args)]
#[command(after_help = TYPES, mut_arg("key", |key| key.required(false)))]
struct IdsArgs {
    #[command(flatten)]
    from: FromArgs,
    /// The publisher's key with --input, the advertiser's with --list
    #[arg(long, value_name = "FILE")]
    pair_key: PathBuf,
    #[command(flatten)]
    secrets: SecretArgs,
    /// With --input your rows that have an identifier, with it in a column; with --list the identifiers alone
    #[arg(long, value_name = "FILE")]
    output: PathBuf,
}

fn relation(text: &str) -> std::result::Result<String, String> {
    pair::check_relation(text)?;
    match text.is_empty() {
        true => Err("the name of a relationship is not empty".to_owned()),
        false => Ok(text.to_owned()),
    }
}

pub(super) fn run(args: Args, context: &Context) -> Result<()> {
    match args.command {
        PairCommand::Keygen(args) => keygen(&args, context),
        PairCommand::Encrypt(args) => encrypt(&args, context),
        PairCommand::Match(args) => compare(&args, context),
        PairCommand::Ids(args) => ids(&args, context),
    }
}

fn keygen(args: &KeygenArgs, context: &Context) -> Result<()> {
    let (mut object, mut text) = (json!({ "name": "pair keygen" }), String::new());
    let (today, prg) = (today(), &mut Prg::from_os());
    let usage = |fault: pair::KeyFault| Error::Usage(fault.to_string());
    if let (Some(role), Some(out)) = (args.role, &args.out) {
        let key = Key::generate(role.role(), today, args.days, prg).map_err(usage)?;
        pair::save(out, &key.to_text())?;
        let expires = key.lifetime().expires();
        text += &format!(
            "{} is the {}'s key {}: keep it in this room; it serves until {expires}\n",
            name(out),
            key.role(),
            key.id()
        );
        object["key"] =
            json!({ "file": out, "role": key.role().name(), "id": key.id().to_string(), "expires": expires });
    }
    if let Some(out) = &args.salt_out {
        let salt = Salt::generate(today, args.salt_days, prg).map_err(usage)?;
        pair::save(out, &salt.to_text())?;
        let expires = salt.lifetime().expires();
        text += &format!(
            "{} is the salt {}: give it to the other room in secret; it serves until {expires}\n",
            name(out),
            salt.id()
        );
        object["salt"] = json!({ "file": out, "id": salt.id().to_string(), "expires": expires });
    }
    context.result(&object, text.trim_end())
}

impl SecretArgs {
    fn threads(&self) -> NonZeroUsize {
        NonZeroUsize::new(self.threads.into()).unwrap_or(NonZeroUsize::MIN)
    }

    fn salt(&self, context: &Context) -> Result<Salt> {
        let salt = pair::load_salt(&self.salt)?;
        self.check(&self.salt, salt.lifetime(), context)?;
        Ok(salt)
    }

    fn key(&self, path: &Path, context: &Context) -> Result<Key> {
        let key = pair::load_key(path)?;
        self.check(path, key.lifetime(), context)?;
        Ok(key)
    }

    /// Errors: it does not serve today, unless that is wanted.
    fn check(&self, path: &Path, lifetime: &pair::Lifetime, context: &Context) -> Result<()> {
        match pair::check_lifetime(path, lifetime, today()) {
            Err(error) if self.allow_expired && lifetime.is_over(today()) => {
                context.note(&format!("note: {error}"))
            }
            checked => checked?,
        }
        Ok(())
    }
}

/// One's own people, as they were read.
struct Own {
    source: Source,
    keys: KeySet,
    spec: KeySpec,
    people: People,
}

impl FromArgs {
    /// Reads the table of people; nothing where there is a list in place of it.
    fn people(&self, salt: &Salt, rows: bool, context: &Context) -> Result<Option<Own>> {
        if !self.list.is_empty() {
            return Ok(None);
        }
        if !self.key.is_given() {
            let what = "the column of identifiers is missing; give one, such as mail:email".to_owned();
            return Err(Error::Parameter { name: "key", what });
        }
        let spec = pair::match_keys(self.key.spec())?;
        let (source, keys) = keys::read(&self.input, spec.clone(), &self.table, context)?;
        let count = keys.elements().len() as u64;
        let what = format!("a list of {}", counted(count, "identifier"));
        super::check_memory(
            &what,
            People::memory(count, rows),
            "split the table, or use a machine with more",
        )?;
        let people = People::read(&source, &keys, &spec, salt)?;
        Ok(Some(Own { source, keys, spec, people }))
    }

    fn list(&self) -> Result<List> {
        List::read(&self.list, self.table.options())
    }
}

impl Own {
    /// What was read, for programs and for people.
    fn report(&self, object: &mut Value) -> String {
        let (keys, tally) = (&self.keys, self.keys.tally());
        object["rows"] = json!(keys.rows());
        object["rows_without_identifier"] = json!(keys.rows_without_key());
        object["duplicate_rows"] = json!(keys.duplicate_rows());
        keys::refused(&self.spec, tally, object);
        let refused = keys::refused_text(&self.spec, tally, true);
        format!(
            "{}, {} without an identifier, {}\n{refused}",
            counted(keys.rows(), "row"),
            keys.rows_without_key(),
            counted(keys.duplicate_rows(), "duplicate")
        )
    }
}

fn encrypt(args: &EncryptArgs, context: &Context) -> Result<()> {
    let mut output = Output::create(&args.output)?;
    let (secrets, salt) = (&args.secrets, args.secrets.salt(context)?);
    let keys: Vec<Key> =
        args.pair_key.iter().map(|path| secrets.key(path, context)).collect::<Result<_>>()?;
    let (mut object, mut text) = (json!({ "name": "pair encrypt" }), String::new());
    let list = match args.from.people(&salt, false, context)? {
        Some(own) => {
            pair::check_length(&files(&args.from.input), own.people.len(), args.min_list)?;
            text += &own.report(&mut object);
            let progress = context.progress("encrypting", own.people.len(), "identifiers");
            let keys: Vec<&Key> = keys.iter().collect();
            let list = own.people.list(&keys, args.adv_pub_id.clone(), secrets.threads(), &progress)?;
            progress.finish();
            list
        }
        None => {
            let [key] = &keys[..] else {
                return Err(Error::Usage(
                    "a list is encrypted by one key; give that of the side that has not".into(),
                ));
            };
            let list = args.from.list()?;
            pair::check_length(list.name(), list.len(), args.min_list)?;
            let progress = context.progress("encrypting", list.len(), "identifiers");
            let again = list.again(&salt, key, secrets.threads(), &progress)?;
            progress.finish();
            text += &duplicates(&again, &mut object, "duplicates");
            again
        }
    };
    list.write(&args.output, &mut output)?;
    output.commit()?;
    object["identifiers"] = json!(list.len());
    object["keys"] = json!(list.layers.to_string());
    object["output"] = json!(args.output);
    text += &format!(
        "{} of the {}'s, encrypted by {}, written to {}",
        counted(list.len(), "identifier"),
        list.layers.owner(),
        if list.layers.is_double() { "both sides" } else { "one side" },
        destination(&args.output)
    );
    context.result(&object, &text)
}

/// That a list had identifiers twice, where it did.
fn duplicates(list: &List, object: &mut Value, field: &str) -> String {
    object[field] = json!(list.duplicates);
    match list.duplicates {
        0 => String::new(),
        more => format!("note: {} has {}, left out\n", list.name(), counted(more, "duplicate")),
    }
}

fn compare(args: &MatchArgs, context: &Context) -> Result<()> {
    let output = args.output.as_deref().map(Output::create).transpose()?;
    let read = |paths: &[PathBuf]| -> Result<List> {
        let list = List::read(paths, Default::default())?;
        pair::check_length(list.name(), list.len(), args.min_list)?;
        Ok(list)
    };
    let (publisher, advertiser) = (read(&args.publisher)?, read(&args.advertiser)?);
    let mut object = json!({ "name": "pair match" });
    let mut text = duplicates(&publisher, &mut object, "publisher_duplicates");
    text += &duplicates(&advertiser, &mut object, "advertiser_duplicates");
    let matched = Matched::of(publisher, advertiser)?;
    let common = matched.common.len();
    let rates = [rate(common, matched.publisher), rate(common, matched.advertiser)];
    object["publisher"] = json!(matched.publisher);
    object["advertiser"] = json!(matched.advertiser);
    object["common"] = json!(common);
    object["publisher_rate"] = json!(rates[0]);
    object["advertiser_rate"] = json!(rates[1]);
    if let (Some(mut output), Some(path)) = (output, &args.output) {
        matched.common.write(path, &mut output)?;
        output.commit()?;
        object["output"] = json!(path);
        text += &format!("{} written to {}\n", counted(common, "common identifier"), destination(path));
    }
    text += &format!(
        "for this room alone: {} of the publisher's {} and the advertiser's {}\n\
         to pass on: match rate of the publisher's list {}, of the advertiser's {}",
        common, matched.publisher, matched.advertiser, rates[0], rates[1]
    );
    context.result(&object, &text)
}

fn ids(args: &IdsArgs, context: &Context) -> Result<()> {
    let mut output = Output::create(&args.output)?;
    let (secrets, salt) = (&args.secrets, args.secrets.salt(context)?);
    let key = secrets.key(&args.pair_key, context)?;
    let (mut object, mut text) = (json!({ "name": "pair ids" }), String::new());
    let target = &args.output;
    let count = match args.from.people(&salt, true, context)? {
        Some(own) => {
            if key.role() != Role::Publisher {
                let what =
                    "bid requests have the publisher's identifiers; give the publisher's key".to_owned();
                return Err(Error::Parameter { name: "pair-key", what });
            }
            text += &own.report(&mut object);
            let progress = context.progress("encrypting", own.people.len(), "identifiers");
            let identifiers = own.people.encrypted(&[&key], secrets.threads(), &progress)?;
            progress.finish();
            let rows = pair::write_publisher(&own.source, &own.keys, &identifiers, target, &mut output)?;
            object["output_rows"] = json!(rows);
            own.people.len()
        }
        None => {
            let list = args.from.list()?;
            text += &duplicates(&list, &mut object, "duplicates");
            let progress = context.progress("decrypting", list.len(), "identifiers");
            let identifiers = list.publishers(&salt, &key, secrets.threads(), &progress)?;
            progress.finish();
            pair::write_target(&identifiers, target, &mut output)?;
            identifiers.len() as u64
        }
    };
    output.commit()?;
    object["identifiers"] = json!(count);
    let expires = salt.lifetime().expires().min(key.lifetime().expires());
    object["expires"] = json!(expires);
    object["output"] = json!(target);
    text += &format!(
        "{} of the publisher's written to {}; they are good until {}",
        counted(count, "identifier"),
        destination(target),
        expires
    );
    context.result(&object, &text)
}
