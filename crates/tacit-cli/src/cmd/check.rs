//! `tacit check`: the columns of a file, what a run would see in it, and a rehearsal with another one.

mod rehearsed;
pub(super) mod suggest;

use crate::cli::Context;
use crate::cli::identifiers::{self, OrKeyArgs};
use crate::cli::keys::{self, Columns, KeyArgs, TYPES, key_list};
use crate::cli::table::Dialect;
use crate::cmd::query::{DuplicatesArg, SideArg};
use serde_json::json;
use std::path::PathBuf;
use suggest::{Commands, few, hints, suggested};
use tacit::crypto::text::{counted, escaped};
use tacit::data::columns::{self, Column, FirstLine, Names};
use tacit::data::csv::Header;
use tacit::data::keys::{Named, quoted};
use tacit::data::records::{Counts, KeySet, KeySpec, Shown, plain_join};
use tacit::job::psi::check_variants;
use tacit::{Error, Result};

const AFTER: &str = "\
Examples:
  tacit check customers.csv
  tacit check --input customers.csv --key mail:email --show-refused 10
  tacit check --input customers.csv --key mail:email --against kunden.csv --against-key adresse:email
  tacit check orders.csv --sql-file question.sql --against members.csv

Without --key it lists the columns: the type that each seems to have, an example with letters and digits \
masked, and the number of empty cells. Nothing is sent: with --against both files are read on this \
machine and joined in the clear, for test data or for two files of your own.";

/// What a file holds: its columns, or what a run would see with a key
#[derive(clap::Args)]
#[command(after_help = const_format(), mut_arg("key", |key| key.required(false)))]
pub(crate) struct Args {
    /// Your table, as --input has it
    #[arg(value_name = "FILE", conflicts_with = "input", required_unless_present = "input")]
    files: Vec<PathBuf>,
    /// Your table: CSV or JSON lines (plain or compressed), Parquet, Arrow or Excel (FILE.xlsx#SHEET!A1:D9); - for
    /// standard input; a directory or pattern of files; or on another machine:
    /// postgresql://HOST/DATABASE#QUERY, adbc:DRIVER?uri=...#QUERY, s3://BUCKET/KEY, https://HOST/FILE.
    /// Repeat it for several files as one table
    #[arg(long, value_name = "FILE", num_args = 1)]
    input: Vec<PathBuf>,
    #[command(flatten)]
    key: KeyArgs,
    #[command(flatten)]
    or_key: OrKeyArgs,
    /// The first line has the columns' names, although it looks like data or a title
    #[arg(long, conflicts_with = "no_header")]
    header: bool,
    /// Shows the normal forms of the first N rows that have a key
    #[arg(long, value_name = "N", default_value_t = 0)]
    show_keys: u16,
    /// Another table, as the peer's: counts the keys in both
    #[arg(long, value_name = "FILE")]
    against: Option<PathBuf>,
    /// The other table's columns and types (default: those of --key)
    #[arg(long, value_name = "[LABEL=]COL[:TYPE]", num_args = 1, value_parser = key_list, requires = "against")]
    against_key: Vec<Columns<Named>>,
    /// The other table's further identifiers, one for each --or-key (default: those of --or-key)
    #[arg(long, value_name = "[LABEL=]COL[:TYPE],..", num_args = 1, value_parser = key_list, requires = "against_key")]
    against_or_key: Vec<Columns<Named>>,
    /// A question in SQL, as `tacit query` has it: answers it on both files in the clear
    #[arg(long, value_name = "TEXT", requires = "against", conflicts_with = "sql_file")]
    sql: Option<String>,
    /// The file with the question; - for standard input
    #[arg(long, value_name = "FILE", requires = "against")]
    sql_file: Option<PathBuf>,
    /// Which of a question's tables is yours, ours unless you say so; --against is the other
    #[arg(long, value_enum, value_name = "ours|theirs", hide_possible_values = true, requires = "against")]
    side: Option<SideArg>,
    /// What happens if several rows of one side with the same key pass its part of a question's WHERE
    #[arg(long, value_enum, value_name = "refuse|first", hide_possible_values = true, requires = "against")]
    duplicates: Option<DuplicatesArg>,
    #[command(flatten)]
    table: Dialect,
}

fn const_format() -> String {
    format!("{AFTER}\n\n{TYPES}")
}

pub(super) fn run(args: Args, context: &Context) -> Result<()> {
    let args = Args { input: [args.input, args.files].concat(), files: Vec::new(), ..args };
    if let Some(text) = crate::cmd::query::text(args.sql.as_deref(), args.sql_file.as_deref())? {
        return rehearsed::rehearse(&args, &text, context);
    }
    for (name, is_given) in [("side", args.side.is_some()), ("duplicates", args.duplicates.is_some())] {
        if is_given {
            let what = "is for a question: give --sql or --sql-file too, or leave it out".to_owned();
            return Err(Error::Parameter { name, what });
        }
    }
    if !args.key.is_given() {
        args.or_key.refuse("is another identifier beside that of --key; give --key too")?;
        if args.against.is_some() {
            let what = "compares keys: name yours with --key";
            return Err(Error::Parameter { name: "against", what: what.into() });
        }
        return list(&args, context);
    }
    let mut spec = args.or_key.add(args.key.spec())?;
    spec.shown.forms = args.show_keys.into();
    let theirs = match (&args.against, args.against_key.is_empty()) {
        (None, _) => None,
        (Some(path), true) => Some((path, spec.clone())),
        (Some(path), false) => {
            let named = KeySpec::named(keys::all(&args.against_key), spec.normalisation);
            let named = identifiers::with_more("against-or-key", named, &args.against_or_key)?;
            Some((path, KeySpec { shown: spec.shown, nulls: spec.nulls.clone(), ..named }))
        }
    };
    if let Some((_, theirs)) = &theirs {
        agree(&spec, theirs)?;
    }
    check_variants(&spec)?;
    let (source, keys) = keys::read(&args.input, spec.clone(), &args.table, context)?;
    let (mut object, mut text) = told(&keys::files(&args.input), &spec, &keys);
    object["name"] = json!("check");
    let is_judged = !args.header && args.table.options().header == Header::Names;
    let names = match args.table.options().header {
        Header::None => Names::Numbers,
        Header::Names if is_judged && source.is_doubtful() => Names::Doubtful,
        Header::Names => Names::Given,
    };
    object["header"] = json!(names.word());
    if names == Names::Doubtful {
        text += "note: the first line may be data and not a header, so that it is not compared; if it is data, add \
                 --no-header and name columns by their numbers; if it is a header, --header says so\n";
    }
    if let Some((path, theirs)) = &theirs {
        let (_, other) = keys::read(std::slice::from_ref(path), theirs.clone(), &args.table, context)?;
        let (against, more) = told(&keys::files(std::slice::from_ref(path)), theirs, &other);
        let found = plain_join(keys.elements(), other.elements());
        let matches = found.len() as u64;
        let warning = keys::suspicious(matches, keys.elements().len() as u64, other.elements().len() as u64);
        object["against"] = against;
        object["matches"] = json!(matches);
        object["suspicious"] = json!(warning);
        text += &more;
        text += &match spec.is_open() {
            true => identifiers::matched(&spec, &keys.matched(&found), true, &mut object),
            false => counted(matches, "match") + "\n",
        };
        if let Some(warning) = warning {
            text += &format!("suspicious: {warning}\n");
        }
    }
    context.result(&object, text.trim_end())
}

/// Lists the columns, and what to run next.
fn list(args: &Args, context: &Context) -> Result<()> {
    let first = if args.header { FirstLine::Header } else { FirstLine::Judged };
    let found = columns::look(&args.input, args.table.options(), first)?;
    let file = keys::files(&args.input);
    let each = |column: &Column| {
        json!({
            "column": column.name,
            "type": (!column.key_type.is_empty()).then_some(column.key_type),
            "example": column.example,
            "empty": column.empty,
            "words_for_nothing": column.words,
            "rises": column.rises,
            "no_key": column.no_key,
        })
    };
    let key = suggested(&found);
    let hints = hints(&found, key.as_deref());
    let mut object = json!({ "name": "check", "file": file, "rows": found.rows });
    object["header"] = json!(found.names.word());
    object["skip_lines"] = json!(found.options.skip_lines);
    object["columns"] = found.columns.iter().map(each).collect();
    object["suggested_key"] = json!(key);
    object["guessed_encoding"] = json!(found.guessed.map(|encoding| encoding.name()));
    object["hints"] = json!(hints);
    let title = ["column", "seems to be", "example", "empty"].map(str::to_owned);
    let mut lines = vec![title];
    for column in &found.columns {
        let kind = match column.no_key {
            Some(what) => format!("no key ({what})"),
            None => column.key_type.to_owned(),
        };
        let mut name: String = column.name.chars().take(NAME_SHOWN).collect();
        if name.len() < column.name.len() {
            name += "…";
        }
        lines.push([escaped(&name), kind, column.example.clone(), share(column.empty, found.rows)]);
    }
    let width = |at: usize| lines.iter().map(|line| line[at].chars().count()).max().unwrap_or(0);
    let widths = [width(0), width(1), width(2)];
    let mut text = format!(
        "{file}: {}, {}\n",
        counted(found.rows, "row"),
        counted(found.columns.len() as u64, "column")
    );
    for line in &lines {
        let [name, kind, example] = [0, 1, 2].map(|at| format!("{:w$}", line[at], w = widths[at]));
        text += &format!("  {name}  {kind}  {example}  {}\n", line[3]);
    }
    let words = found.columns.iter().filter(|column| !column.words.is_empty()).map(|column| {
        let list: Vec<String> = column.words.iter().map(|word| quoted(word)).collect();
        let named = if found.names == Names::Doubtful { "" } else { "column " };
        escaped(&format!(
            "in {named}{}, {} may mean an empty cell; --null '{}' counts that as empty",
            column.name,
            column.words.join(", "),
            list.join(",")
        ))
    });
    few(words.collect(), "more columns have such words")
        .iter()
        .for_each(|note| text += &format!("note: {note}\n"));
    hints.iter().for_each(|hint| text += &format!("note: {hint}\n"));
    let commands = Commands::new(&args.input, &found, args.table, args.key.nulls());
    if let Some(commands) = commands.next(&found, key.as_deref()) {
        text += &format!("\n{commands}");
    }
    context.result(&object, text.trim_end())
}

/// Characters of a column's name in the list.
const NAME_SHOWN: usize = 40;

fn share(part: u64, whole: u64) -> String {
    match (part, whole) {
        (0, _) | (_, 0) => "-".to_owned(),
        _ if part == whole => "all".to_owned(),
        _ => format!("{:.1} %", (part as f64 / whole as f64 * 100.0).max(0.1)),
    }
}

/// What a handshake would say, without the peer.
fn agree(ours: &KeySpec, theirs: &KeySpec) -> Result<()> {
    if ours.identifiers() != theirs.identifiers() {
        let [here, there] = [ours, theirs].map(|spec| counted(spec.identifiers(), "identifier"));
        let what = format!("your rows have {here}, the other file's {there}; give the same number for both");
        return Err(Error::Parameter { name: "against-or-key", what });
    }
    let settings = [
        ("types", ours.agreed_types(), theirs.agreed_types()),
        ("labels", ours.agreed_labels(), theirs.agreed_labels()),
    ];
    if ours.columns.len() != theirs.columns.len() {
        let [here, there] = [ours, theirs].map(|spec| counted(spec.columns.len(), "column"));
        let what = format!("your key has {here}, the other file's {there}");
        return Err(Error::Parameter { name: "against-key", what });
    }
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
    });
    let several = spec.has_several();
    if spec.is_open() {
        let [rows, values] = [|of: &Counts| of.rows, |of: &Counts| of.distinct]
            .map(|of| keys.counts().iter().map(of).collect::<Vec<_>>());
        object["identifiers"] = identifiers::object(spec, &rows, Some(&values));
    }
    if !several {
        object["empty"] = json!(keys.rows_without_key() - keys.tally().unfit());
    }
    keys::refused(spec, keys.tally(), &mut object);
    let longest = keys.tally().longest;
    let told = |what: &str, many: u64, line: u64| (many > 0).then(|| json!({what: many, "line": line}));
    object["longest_quoted"] = json!(told("bytes", longest.bytes, longest.line));
    object["most_lines"] = json!(told("lines", longest.lines, longest.lines_at));
    let Shown { forms, .. } = spec.shown;
    if forms > 0 {
        object["normal_forms"] = json!(keys.tally().forms);
    }
    let (rows, types) = (counted(keys.rows(), "row"), spec.agreed_types());
    let all = format!("{file}: {rows}, {} ({types})", counted(distinct, identifiers::noun(Some(spec))));
    let repeated = counted(keys.duplicate_rows(), "duplicate");
    let mut text = match several {
        true => {
            let none = counted(keys.rows_without_key(), "row");
            let mut text = format!("{all}, {repeated}, {none} with none of them\n");
            for (name, of) in spec.identifier_names().iter().zip(keys.counts()) {
                text += &format!("  {name}: {}, {} distinct\n", counted(of.rows, "row"), of.distinct);
            }
            text
        }
        false => format!(
            "{all}, {repeated}, {} with an empty key, {} refused\n",
            counted(keys.rows_without_key() - keys.tally().unfit(), "row"),
            keys.tally().unfit(),
        ),
    };
    if spec.has_variants() {
        text += &identifiers::likeness(spec, keys, &mut object);
    }
    text += &keys::refused_text(spec, keys.tally(), true);
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
