//! What makes a row's key, as the options say it, and what a file's keys came to.

use super::Context;
use super::output::name;
use super::table::Dialect;
use serde_json::{Value, json};
use std::path::PathBuf;
use tacit::Result;
use tacit::crypto::text::counted;
use tacit::data::keys::{KeyType, Named, Reason, Tally, listed, plain, quoted};
use tacit::data::records::{KeySet, KeySpec, Normalisation, Shown};
use tacit::data::table::Source;

/// What the help of a subcommand says of types.
pub(crate) const TYPES: &str = "\
Keys (--key COL[:TYPE]) are text if no type follows; use the same types in the same order on both sides:
  text, text:nfkc                as written; in compatibility form, without invisible characters
  email, email:gmail             an address; with gmail, without dots and anything after a plus
  phone:REGION, phone            a phone number as in REGION (such as NL), or as +31 ...
  date, date:DMY|MDY|YMD         2024-01-31, or in the order named
  int, uuid, name                a whole number; a UUID; a name without accents and punctuation
  decimal, decimal:comma         an exact decimal: 1.50 is 1.5; with a comma before the fraction
  postcode:COUNTRY, postcode     a postcode
  name~1, date~1, int~N          near matches: a character of a name, a digit of a date or day and
                                 month exchanged, numbers up to N apart; a row is several keys
  TYPE:sha256                    your clear values are hashed (SHA-256 of their normal form)
  sha256-hex:TYPE, sha256-hex    your values are already such hashes
Hashing protects nothing: anyone who can guess a value can hash it. LABEL=COL:TYPE gives the column a name
that must match on both sides. The rules are published: docs/keys.md.";

/// What makes a row's key.
#[derive(clap::Args)]
pub(crate) struct KeyArgs {
    /// The column, or several, that make a row's key, with their types; repeat it or separate by commas
    #[arg(long, value_name = "[LABEL=]COL[:TYPE]", required = true, num_args = 1, value_parser = key_list)]
    key: Vec<Columns<Named>>,
    /// Compares keys of text without Unicode normalisation (NFC); must match on both sides
    #[arg(long)]
    no_nfc: bool,
    /// Compares keys of text with the white space at their ends; must match on both sides
    #[arg(long)]
    no_trim: bool,
    /// Compares keys of text with case distinguished; must match on both sides
    #[arg(long)]
    no_case_fold: bool,
    /// Words that mean an empty cell in your file, such as NULL,\N,n/a
    #[arg(long, value_name = "TEXT", num_args = 1, value_parser = word_list, allow_hyphen_values = true)]
    null: Vec<Columns<String>>,
    /// Shows up to N values that are not valid keys of their type, on this machine only
    #[arg(long, value_name = "N", default_value_t = 0)]
    show_refused: u16,
}

/// Columns of one value of an option, which may be repeated.
#[derive(Clone, Debug)]
pub(crate) struct Columns<T>(Vec<T>);

/// All of an option's columns.
pub(crate) fn all<T: Clone>(lists: &[Columns<T>]) -> Vec<T> {
    lists.iter().flat_map(|list| list.0.iter().cloned()).collect()
}

/// Reads columns of a key; a name in double quotes may hold commas and colons.
pub(crate) fn key_list(text: &str) -> std::result::Result<Columns<Named>, String> {
    let parts = names(text)?.into_iter().map(Named::parse);
    Ok(Columns(parts.collect::<std::result::Result<_, _>>().map_err(|error| error.to_string())?))
}

/// What to do about a list that a shell has cut.
pub(crate) const GAP: &str =
    "a name is missing beside a comma: write a,b without a blank, or quote the list, as in 'a, b'";

/// The parts of a list of names, none of them empty: a shell cuts a list at its blanks.
fn names(text: &str) -> std::result::Result<Vec<&str>, String> {
    let parts = listed(text);
    match parts.iter().any(|part| part.trim().is_empty()) {
        true => Err(GAP.into()),
        false => Ok(parts),
    }
}

/// Reads columns whose names have an end that says what their text means: names stay in their quotes.
pub(crate) fn typed_list(text: &str) -> std::result::Result<Columns<String>, String> {
    Ok(Columns(names(text)?.into_iter().map(str::to_owned).collect()))
}

/// Reads columns.
pub(crate) fn column_list(text: &str) -> std::result::Result<Columns<String>, String> {
    Ok(Columns(names(text)?.into_iter().map(plain).collect()))
}

/// Reads words of cells, of which one may be empty.
pub(crate) fn word_list(text: &str) -> std::result::Result<Columns<String>, String> {
    Ok(Columns(listed(text).into_iter().map(plain).collect()))
}

impl KeyArgs {
    /// The words for nothing that were given, as they stand on a command line.
    pub(crate) fn nulls(&self) -> Vec<String> {
        all(&self.null).iter().flat_map(|word| ["--null".to_owned(), quoted(word)]).collect()
    }

    /// Whether a column was named.
    pub(crate) fn is_given(&self) -> bool {
        !self.key.is_empty()
    }

    /// The key of our rows.
    pub(crate) fn spec(&self) -> KeySpec {
        let normalisation =
            Normalisation { nfc: !self.no_nfc, trim: !self.no_trim, case_fold: !self.no_case_fold };
        let shown = Shown { refused: self.show_refused.into(), forms: 0 };
        KeySpec { shown, nulls: all(&self.null), ..KeySpec::named(all(&self.key), normalisation) }
    }

    /// Opens the table `input` and reads its keys.
    pub(crate) fn read(
        &self,
        input: &[PathBuf],
        table: &Dialect,
        context: &Context,
    ) -> Result<(Source, KeySet)> {
        read(input, self.spec(), table, context)
    }
}

/// Opens the table `input` and reads the keys that `spec` makes of its rows.
pub(crate) fn read(
    input: &[PathBuf],
    spec: KeySpec,
    table: &Dialect,
    context: &Context,
) -> Result<(Source, KeySet)> {
    let source = Source::open_all(input, spec, table.options())?;
    note_errors(&source, input, context);
    let progress = context.progress("reading", source.bytes(), "B");
    let keys = source.read_keys(|done| progress.set(done))?;
    progress.finish();
    Ok((source, keys))
}

/// What was refused, for programs: how often by column, type and reason, and the samples that were asked for.
pub(crate) fn refused(spec: &KeySpec, tally: &Tally, object: &mut Value) {
    let each = |((part, reason), rows): (&(usize, _), &u64)| {
        let reason: &Reason = reason;
        json!({"column": column(spec, *part), "type": kind(spec, *part), "reason": reason.word(), "rows": rows})
    };
    object["refused"] = tally.refused.iter().map(each).collect();
    object["hints"] = json!(hints(spec, tally));
    let Normalisation { nfc, trim, case_fold } = spec.normalisation;
    object["normalisation"] = json!({ "nfc": nfc, "trim": trim, "case_fold": case_fold });
    if spec.shown.refused > 0 {
        let each = |sample: &tacit::data::keys::Sample| {
            let column = column(spec, sample.part);
            json!({"row": sample.row, "column": column, "reason": sample.reason.word(), "value": sample.text})
        };
        object["refused_samples"] = tally.samples.iter().map(each).collect();
    }
}

/// The same for people, a line each; nothing where nothing but empty keys was refused. Hints only if asked for.
pub(crate) fn refused_text(spec: &KeySpec, tally: &Tally, has_hints: bool) -> String {
    let mut text = String::new();
    if tally.unfit() > 0 {
        for ((part, reason), rows) in &tally.refused {
            text += &format!(
                "refused: {}, column {} as {}: {}\n",
                counted(*rows, "row"),
                column(spec, *part),
                kind(spec, *part),
                why(spec, *part, *reason)
            );
        }
    }
    for hint in if has_hints { hints(spec, tally) } else { Vec::new() } {
        text += &format!("note: {hint}\n");
    }
    for sample in &tally.samples {
        // Escaped, so that an invisible character is seen and none moves the terminal's cursor.
        let (column, value) = (column(spec, sample.part), sample.text.escape_debug());
        let why = why(spec, sample.part, sample.reason);
        text += &format!("  row {}, {column}: \"{value}\": {why}\n", sample.row);
    }
    text
}

/// What the keys of our file look like that we did not say: words for nothing, and text with a type of its own.
fn hints(spec: &KeySpec, tally: &Tally) -> Vec<String> {
    let mut hints = Vec::new();
    if tally.rows == 0 {
        hints.push("your table has no rows; was its export truncated?".to_owned());
    }
    let words = tally.signs.words(tally.rows);
    for part in 0..spec.columns.len() {
        let of: Vec<_> = words.iter().filter(|(at, ..)| *at == part).collect();
        if of.is_empty() {
            continue;
        }
        let told: Vec<String> = of
            .iter()
            .map(|(_, word, rows)| format!("`{word}` ({rows})", rows = counted(rows, "row")))
            .collect();
        let list: Vec<String> = of.iter().map(|(_, word, _)| quoted(word)).collect();
        hints.push(format!(
            "in column {} keys look like words for an empty cell and match as such: {}; --null '{}' leaves \
             them out",
            column(spec, part),
            told.join(", "),
            list.join(",")
        ));
    }
    for (part, name) in tally.signs.looks() {
        let column = column(spec, part);
        let example = if name == "phone" { "phone:REGION" } else { name };
        hints.push(format!(
            "column {column} looks like the type {name} and is compared as text; named {}:{example} on both \
             sides it matches other spellings too",
            quoted(column)
        ));
    }
    hints
}

fn column(spec: &KeySpec, part: usize) -> &str {
    spec.columns.get(part).map_or("", |column| column.trim())
}

fn why(spec: &KeySpec, part: usize, reason: Reason) -> String {
    spec.types.get(part).unwrap_or(&KeyType::TEXT).refusal(reason)
}

fn kind(spec: &KeySpec, part: usize) -> String {
    spec.types.get(part).unwrap_or(&KeyType::TEXT).to_string()
}

/// From so many keys on, on the smaller side, a rate of matches can be suspicious.
const ENOUGH: u64 = 100;

/// What is suspicious about so many matches of these keys of ours and of the peer's, if anything.
pub(crate) fn suspicious(matches: u64, own: u64, peer: u64) -> Option<String> {
    let smaller = own.min(peer);
    if smaller < ENOUGH {
        return None;
    }
    if matches == 0 {
        return Some(format!(
            "no match among your {own} and the peer's {peer}: do both columns have the same kind of key? tacit check shows what yours has",
            own = counted(own, "key")
        ));
    }
    // Over 99 %, in whole numbers.
    (u128::from(matches) * 100 > u128::from(smaller) * 99).then(|| {
        format!(
            "{matches} of {smaller} of the smaller side match, more than 99 %: \
             did one side get its file from the other?",
            smaller = counted(smaller, "key")
        )
    })
}

/// The names of a table's files, as errors and results have them.
pub(crate) fn files(paths: &[PathBuf]) -> String {
    match paths {
        [] => String::new(),
        [one] => name(one),
        [first, more @ ..] => format!("{} and {} more", name(first), more.len()),
    }
}

/// Says that cells of a workbook held errors and count as empty.
pub(crate) fn note_errors(source: &Source, input: &[PathBuf], context: &Context) {
    let cells = source.error_cells();
    if cells > 0 {
        context.note(&format!(
            "note: {cells} of {} with an error, read as empty",
            files(input),
            cells = counted(cells, "cell")
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::suspicious;

    #[test]
    fn nothing_and_nearly_everything_are_suspicious_of_many_keys() {
        assert!(suspicious(0, 100, 100).is_some() && suspicious(0, 99, 1000).is_none());
        assert!(suspicious(1, 1000, 1000).is_none() && suspicious(99, 100, 5000).is_none());
        assert!(suspicious(100, 5000, 100).is_some() && suspicious(991, 1000, 1000).is_some());
        assert!(suspicious(u64::MAX, u64::MAX, u64::MAX).is_some());
    }
}
