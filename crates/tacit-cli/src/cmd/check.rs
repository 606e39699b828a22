//! `tacit check`: what a run would see in a file, and a rehearsal with another one.

use crate::cli::Context;
use crate::cli::keys::{self, Columns, KeyArgs, TYPES, key_list};
use crate::cli::table::Dialect;
use serde_json::json;
use std::path::PathBuf;
use tacit::crypto::text::counted;
use tacit::data::keys::Named;
use tacit::data::records::{KeySet, KeySpec, Shown, plain_join};
use tacit::{Error, Result};

const AFTER: &str = "\
Examples:
  tacit check --input customers.csv --key mail:email --show-refused 10
  tacit check --input customers.csv --key mail:email --against kunden.csv --against-key adresse:email

Nothing is sent: with --against both files are read here, and joined in the clear, for test data or for \
two files of one's own.";

/// What a run would see in our file: rows, keys, and what is no key.
#[derive(clap::Args)]
#[command(after_help = const_format())]
pub(crate) struct Args {
    /// Your table: CSV or JSON lines (plain or packed), Parquet, Arrow or Excel (FILE.xlsx#SHEET!A1:D9); - for standard
    /// input; a folder or pattern of files; or on another machine: postgresql://HOST/DATABASE#QUERY,
    /// adbc:DRIVER?uri=...#QUERY, s3://BUCKET/KEY, https://HOST/FILE. Repeat it for several files as one table
    #[arg(long, value_name = "FILE", required = true, num_args = 1)]
    input: Vec<PathBuf>,
    #[command(flatten)]
    key: KeyArgs,
    /// Shows the normal forms of the first N rows that have a key
    #[arg(long, value_name = "N", default_value_t = 0)]
    show_keys: u16,
    /// Another table, as the other side would have it: the keys in both are counted
    #[arg(long, value_name = "FILE")]
    against: Option<PathBuf>,
    /// The other table's columns and types; those of --key unless given
    #[arg(long, value_name = "[LABEL=]COL[:TYPE]", num_args = 1, value_parser = key_list, requires = "against")]
    against_key: Vec<Columns<Named>>,
    #[command(flatten)]
    table: Dialect,
}

fn const_format() -> String {
    format!("{AFTER}\n\n{TYPES}")
}

pub(super) fn run(args: Args, context: &Context) -> Result<()> {
    let mut spec = args.key.spec();
    spec.shown.forms = args.show_keys.into();
    let theirs = match (&args.against, args.against_key.is_empty()) {
        (None, _) => None,
        (Some(path), true) => Some((path, spec.clone())),
        (Some(path), false) => {
            let named = KeySpec::named(keys::all(&args.against_key), spec.normalisation);
            Some((path, KeySpec { shown: spec.shown, nulls: spec.nulls.clone(), ..named }))
        }
    };
    if let Some((_, theirs)) = &theirs {
        agree(&spec, theirs)?;
    }
    let (_, keys) = keys::read(&args.input, spec.clone(), &args.table, context)?;
    let (mut object, mut text) = told(&keys::files(&args.input), &spec, &keys);
    object["name"] = json!("check");
    if let Some((path, theirs)) = &theirs {
        let (_, other) = keys::read(std::slice::from_ref(path), theirs.clone(), &args.table, context)?;
        let (against, more) = told(&keys::files(std::slice::from_ref(path)), theirs, &other);
        let matches = plain_join(keys.elements(), other.elements()).len() as u64;
        let warning = keys::suspicious(matches, keys.elements().len() as u64, other.elements().len() as u64);
        object["against"] = against;
        object["matches"] = json!(matches);
        object["suspicious"] = json!(warning);
        text += &format!("{more}{matches}\n", matches = counted(matches, "match"));
        if let Some(warning) = warning {
            text += &format!("suspicious: {warning}\n");
        }
    }
    context.result(&object, text.trim_end())
}

/// What a handshake would say, without the peer.
fn agree(ours: &KeySpec, theirs: &KeySpec) -> Result<()> {
    let settings = [
        ("types", ours.agreed_types(), theirs.agreed_types()),
        ("labels", ours.agreed_labels(), theirs.agreed_labels()),
    ];
    for (what, here, there) in settings {
        if here != there {
            let what = format!("{what} differ (yours {here}, the other file's {there})");
            return Err(Error::Parameter { name: "against-key", what });
        }
    }
    Ok(())
}

/// A table's keys, for programs and for people.
fn told(file: &str, spec: &KeySpec, keys: &KeySet) -> (serde_json::Value, String) {
    let distinct = keys.elements().len();
    let mut object = json!({
        "file": file,
        "key": spec.agreed_types(),
        "rows": keys.rows(),
        "keys": distinct,
        "duplicates": keys.duplicate_rows(),
        "rows_without_key": keys.rows_without_key(),
        "empty": keys.rows_without_key() - keys.tally().unfit(),
    });
    keys::refused(spec, keys.tally(), &mut object);
    let longest = keys.tally().longest;
    let told = |what: &str, many: u64, line: u64| (many > 0).then(|| json!({what: many, "line": line}));
    object["longest_quoted"] = json!(told("bytes", longest.bytes, longest.line));
    object["most_lines"] = json!(told("lines", longest.lines, longest.lines_at));
    let Shown { forms, .. } = spec.shown;
    if forms > 0 {
        object["normal_forms"] = json!(keys.tally().forms);
    }
    let mut text = format!(
        "{file}: {}, {} ({}), {} with the key of an earlier row, \
         {} with an empty key, {} refused\n{}",
        counted(keys.rows(), "row"),
        counted(distinct, "distinct key"),
        spec.agreed_types(),
        counted(keys.duplicate_rows(), "row"),
        counted(keys.rows_without_key() - keys.tally().unfit(), "row"),
        keys.tally().unfit(),
        keys::refused_text(spec, keys.tally()),
    );
    if longest.bytes > 0 {
        text += &format!(
            "longest quoted cell: {}, in the row at line {}",
            counted(longest.bytes, "byte"),
            longest.line
        );
        if longest.lines > 0 {
            text += &format!("; most lines in one: {}, at line {}", longest.lines, longest.lines_at);
        }
        text.push('\n');
    }
    for form in &keys.tally().forms {
        let parts: Vec<String> = form.iter().map(|part| part.escape_debug().to_string()).collect();
        text += &format!("  {}\n", parts.join(" | "));
    }
    (object, text)
}
