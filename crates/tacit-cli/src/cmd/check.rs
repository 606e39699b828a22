//! `tacit check`: the columns of a file, what a run would see in it, and a rehearsal with another one.

use crate::cli::Context;
use crate::cli::keys::{self, Columns, KeyArgs, TYPES, key_list};
use crate::cli::table::Dialect;
use serde_json::json;
use std::path::PathBuf;
use tacit::crypto::text::counted;
use tacit::data::columns::{self, Column, Oddity, masked};
use tacit::data::keys::{Named, quoted};
use tacit::data::records::{KeySet, KeySpec, Shown, plain_join};
use tacit::{Error, Result};

const AFTER: &str = "\
Examples:
  tacit check customers.csv
  tacit check --input customers.csv --key mail:email --show-refused 10
  tacit check --input customers.csv --key mail:email --against kunden.csv --against-key adresse:email

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
    /// Shows the normal forms of the first N rows that have a key
    #[arg(long, value_name = "N", default_value_t = 0)]
    show_keys: u16,
    /// Another table, as the peer's: counts the keys in both
    #[arg(long, value_name = "FILE")]
    against: Option<PathBuf>,
    /// The other table's columns and types (default: those of --key)
    #[arg(long, value_name = "[LABEL=]COL[:TYPE]", num_args = 1, value_parser = key_list, requires = "against")]
    against_key: Vec<Columns<Named>>,
    #[command(flatten)]
    table: Dialect,
}

fn const_format() -> String {
    format!("{AFTER}\n\n{TYPES}")
}

pub(super) fn run(args: Args, context: &Context) -> Result<()> {
    let args = Args { input: [args.input, args.files].concat(), files: Vec::new(), ..args };
    if !args.key.is_given() {
        if args.against.is_some() {
            let what = "compares keys: name yours with --key";
            return Err(Error::Parameter { name: "against", what: what.into() });
        }
        return list(&args, context);
    }
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

/// Lists the columns, and what to run next.
fn list(args: &Args, context: &Context) -> Result<()> {
    let found = columns::look(&args.input, args.table.options())?;
    let file = keys::files(&args.input);
    let is_data = found.oddities.contains(&Oddity::NoHeader);
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
    let key = suggested(&found.columns);
    let hints = hints(&found);
    let mut object = json!({ "name": "check", "file": file, "rows": found.rows });
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
        if is_data {
            name = masked(&name);
        }
        let name = name.escape_debug().to_string();
        lines.push([name, kind, column.example.clone(), share(column.empty, found.rows)]);
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
    for column in found.columns.iter().filter(|column| !column.words.is_empty()) {
        text += &format!(
            "note: in column {}, {} may mean an empty cell; --null '{}' counts that as empty\n",
            quoted(&column.name),
            column.words.join(", "),
            column.words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(",")
        );
    }
    hints.iter().for_each(|hint| text += &format!("note: {hint}\n"));
    let inputs: Vec<String> =
        args.input.iter().map(|path| format!("--input {}", shell(&path.to_string_lossy()))).collect();
    let encoding = found.guessed.map(|encoding| ["--encoding".to_owned(), encoding.name().to_owned()]);
    let written =
        args.table.words().into_iter().chain(encoding.into_iter().flatten()).chain(args.key.nulls());
    let written: String = written.map(|word| format!(" {}", shell(&word))).collect();
    let inputs = inputs.join(" ");
    let again = match &found.oddities[..] {
        [Oddity::Title, ..] => Some(format!("--skip-lines {}", args.table.options().skip_lines + 1)),
        [Oddity::NoHeader, ..] => Some("--no-header".to_owned()),
        _ => None,
    };
    if let Some(again) = again {
        text += &format!("\nto look again:          tacit check {inputs}{written} {again}");
    } else if let Some(key) = key {
        let key = shell(&key) + &written;
        text += &format!(
            "\nto check the keys:      tacit check {inputs} --key {key}\nto run with a peer:     tacit psi --connect \
             HOST:7700 --identity tacit.key --peer peer.pub \\\n      {inputs} --key {key} --output matches.csv"
        );
    }
    context.result(&object, text.trim_end())
}

/// What the owner of a table probably wants to change before a run, and why a number is not suggested as its key.
pub(super) fn hints(found: &columns::Columns) -> Vec<String> {
    let mut hints = Vec::new();
    if let Some(encoding) = found.guessed {
        hints.push(format!(
            "the text is not UTF-8 and was read as {encoding}, which is a guess; if letters such as é come out wrong, \
             name the right encoding",
            encoding = encoding.name()
        ));
    }
    hints.extend(found.oddities.iter().map(|oddity| match oddity {
        Oddity::Title => {
            "the first line seems to be a title and not the header; skip it (--skip-lines), or remove it".to_owned()
        }
        Oddity::NoHeader => {
            "the first line seems to be data and not a header, so it is masked here and would not be compared; \
             with --no-header columns are named by their numbers"
                .to_owned()
        }
        Oddity::Twice(name) => {
            format!("several columns are called {}; rename them to use one of them", quoted(name))
        }
        Oddity::NoRows => "the table has no rows, so nothing can match".to_owned(),
    }));
    let rising = found.columns.iter().filter(|column| column.rises);
    hints.extend(rising.map(|column| {
        format!(
            "{} counts up from row to row, as numbers do that only your own system knows; it is a key only if your \
             peer's file has the same numbers",
            quoted(&column.name)
        )
    }));
    if found.rows > 0 && suggested(&found.columns).is_none() {
        hints.push(
            "no column looks like a key; choose one that both files have, such as an e-mail address"
                .to_owned(),
        );
    }
    hints
}

/// Characters of a column's name in the list.
const NAME_SHOWN: usize = 40;

/// The column that most likely names a person or thing, as `--key` takes it. A number that counts rows is none.
pub(super) fn suggested(columns: &[Column]) -> Option<String> {
    let is_one = |column: &Column| columns.iter().filter(|other| other.name == column.name).count() == 1;
    let usable: Vec<&Column> = columns
        .iter()
        .filter(|column| {
            is_one(column) && !column.rises && !column.example.is_empty() && !column.name.is_empty()
        })
        .collect();
    let of = |kinds: &[&str], is_good: fn(&Column) -> bool| {
        usable.iter().copied().find(|column| kinds.contains(&column.key_type) && is_good(column))
    };
    let found = of(&["email"], |_| true)
        .or_else(|| of(&["uuid"], |_| true))
        .or_else(|| of(&["phone", "phone:REGION"], |_| true))
        .or_else(|| of(&["text"], |column| column.distinct && is_called_name(column)))
        .or_else(|| of(&["text", "int"], |column| column.distinct))
        .or_else(|| of(&["text"], is_called_name))
        .or_else(|| of(&["text", "int"], |_| true))?;
    let name = quoted(&found.name);
    Some(if found.key_type == "text" { name } else { format!("{name}:{}", found.key_type) })
}

/// Whether a column's name says that its cells are names.
fn is_called_name(column: &Column) -> bool {
    let called = column.name.to_lowercase();
    let words = ["nom", "nombre", "nome", "naam", "navn", "namn", "imię", "nazwisko"];
    called.contains("name") || called.split(|c: char| !c.is_alphabetic()).any(|word| words.contains(&word))
}

fn share(part: u64, whole: u64) -> String {
    match (part, whole) {
        (0, _) | (_, 0) => "-".to_owned(),
        _ if part == whole => "all".to_owned(),
        _ => format!("{:.1} %", (part as f64 / whole as f64 * 100.0).max(0.1)),
    }
}

/// A word quoted for the shell; on Windows for PowerShell, and for its predecessor if the word has no quotes.
pub(super) fn shell(word: &str) -> String {
    if cfg!(windows) {
        let plain = |c: char| c.is_alphanumeric() || "_-./:=+\\".contains(c);
        return if word.chars().all(plain) {
            word.to_owned()
        } else {
            format!("\"{}\"", word.replace('"', "`\""))
        };
    }
    let plain = |c: char| c.is_alphanumeric() || "_-./:=@+,".contains(c);
    if word.chars().all(plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', "'\\''")) }
}

/// What a handshake would say, without the peer.
fn agree(ours: &KeySpec, theirs: &KeySpec) -> Result<()> {
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
        "{file}: {}, {} ({}), {}, {} with an empty key, {} refused\n{}",
        counted(keys.rows(), "row"),
        counted(distinct, "distinct key"),
        spec.agreed_types(),
        counted(keys.duplicate_rows(), "duplicate"),
        counted(keys.rows_without_key() - keys.tally().unfit(), "row"),
        keys.tally().unfit(),
        keys::refused_text(spec, keys.tally(), true),
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
