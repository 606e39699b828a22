//! What the owner of a table may want to do next: hints, the column to match by, and commands.

use crate::cli::table::Dialect;
use std::collections::HashMap;
use std::path::PathBuf;
use tacit::crypto::text::{escaped, shown};
use tacit::data::columns::{Column, Columns, Names, Oddity};
use tacit::data::keys::quoted;

/// The type of telephone numbers without a country, before one is named.
pub(crate) const PHONE_OF_A_REGION: &str = "phone:REGION";

/// Hints of one kind.
const HINTS: usize = 5;

/// The first few of some hints, and how many more there are: what `more` calls them.
pub(crate) fn few(mut hints: Vec<String>, more: &str) -> Vec<String> {
    let rest = hints.len().saturating_sub(HINTS);
    hints.truncate(HINTS);
    hints.extend((rest > 0).then(|| format!("{rest} {more}")));
    hints
}

/// What the owner of a table probably wants to change before a run, and why a number is not suggested as its key.
pub(crate) fn hints(found: &Columns, key: Option<&str>) -> Vec<String> {
    let mut hints = Vec::new();
    if let Some(encoding) = found.guessed {
        hints.push(format!(
            "the text is not UTF-8 and was read as {encoding}, which is a guess; if letters such as é come out wrong, \
             name the right encoding",
            encoding = encoding.name()
        ));
    }
    let mut twice = Vec::new();
    for oddity in &found.oddities {
        match oddity {
            Oddity::Title(lines) => hints.push(format!(
                "the first line seems to be a title and not the header, so that the table is read from line {} on; \
                 --skip-lines {lines} does that in a run",
                lines + 1
            )),
            Oddity::NoHeader => hints.push(
                "the first line may be data and not a header, so that it is not shown; with --no-header columns are \
                 named by their numbers, and without it the first line is not compared"
                    .to_owned(),
            ),
            Oddity::DataInName => hints.push(
                "a column's name looks like data, so that names are not shown; rename the column in the file".to_owned(),
            ),
            Oddity::Twice(name) => twice.push(format!(
                "several columns are called {}; rename them first",
                shown(&quoted(name))
            )),
            Oddity::NoRows => hints.push("the table has no rows, so nothing can match".to_owned()),
        }
    }
    hints.extend(few(twice, "more names are those of several columns"));
    let rising = found.columns.iter().filter(|column| column.rises).map(|column| {
        format!(
            "{} counts up from row to row, as numbers do that only your own system knows; it is a key only if your \
             peer's file has the same numbers",
            if column.name.trim().is_empty() { "a column without a name".to_owned() } else { shown(&quoted(&column.name)) }
        )
    });
    hints.extend(few(rising.collect(), "more columns count up"));
    let is_settled = found.names != Names::Doubtful && !has_twice(found);
    if found.rows > 0 && is_settled && key.is_none() {
        hints.push(
            "no column looks like a key; choose one that both files have, such as an e-mail address"
                .to_owned(),
        );
    }
    hints
}

fn has_twice(found: &Columns) -> bool {
    found.oddities.iter().any(|oddity| matches!(oddity, Oddity::Twice(_)))
}

/// The columns that most likely name a person or thing, as `--key` takes them: never a number that counts rows, an
/// amount, or a first name alone. `None` for a table with doubtful or repeated names.
pub(crate) fn suggested(found: &Columns) -> Option<String> {
    if found.names == Names::Doubtful || has_twice(found) {
        return None;
    }
    let is_number = |name: &str| name.trim().bytes().all(|byte| byte.is_ascii_digit());
    let mut counts: HashMap<&str, usize> = HashMap::new();
    found.columns.iter().for_each(|column| *counts.entry(column.name.trim()).or_default() += 1);
    let is_usable = |column: &&Column| {
        let is_name = found.names == Names::Numbers || !is_number(&column.name);
        counts[column.name.trim()] == 1 && is_name && !column.rises && !column.example.is_empty()
    };
    let usable: Vec<&Column> =
        found.columns.iter().filter(is_usable).filter(|column| !is_amount(column)).collect();
    let of = |kinds: &[&str], is_good: fn(&Column) -> bool| {
        usable.iter().copied().find(|column| kinds.contains(&column.key_type) && is_good(column))
    };
    let plain = of(&["email"], |_| true)
        .or_else(|| of(&["uuid"], |_| true))
        .or_else(|| of(&["phone", PHONE_OF_A_REGION], |_| true));
    if let Some(column) = plain {
        return Some(part(column));
    }
    let names: Vec<&Column> =
        usable.iter().copied().filter(|column| column.key_type == "text" && is_called_name(column)).collect();
    let born = of(&["date", "date:DMY", "date:MDY"], |_| true);
    match (&names[..], born) {
        ([], _) => {}
        // Many people share a name, and few a name and a day of birth.
        (names, Some(born)) if names.len() <= 3 => {
            let parts: Vec<String> = names.iter().chain([&born]).map(|column| part(column)).collect();
            return Some(parts.join(","));
        }
        ([one], _) if is_first_name(one) => return of_codes(&of),
        ([one], _) => return Some(part(one)),
        (names, _) if names.iter().any(|name| is_first_name(name)) && names.len() <= 3 => {
            let parts: Vec<String> = names.iter().map(|column| part(column)).collect();
            return Some(parts.join(","));
        }
        (names, _) => {
            return names.iter().find(|name| name.distinct).or(names.first()).map(|name| part(name));
        }
    }
    of_codes(&of).or_else(|| of(&["text", "int"], |_| true).map(part))
}

/// A column of codes: no two cells are the same.
fn of_codes<'c>(of: &impl Fn(&[&str], fn(&Column) -> bool) -> Option<&'c Column>) -> Option<String> {
    of(&["text", "int"], |column| column.distinct && !is_called_name(column)).map(part)
}

/// A column as `--key` takes it.
pub(crate) fn part(column: &Column) -> String {
    let name = quoted(&column.name);
    if column.key_type == "text" { name } else { format!("{name}:{}", column.key_type) }
}

/// Words of a column's name.
fn is_called(column: &Column, words: &[&str]) -> bool {
    let called = column.name.to_lowercase();
    called.split(|c: char| !c.is_alphabetic()).any(|word| words.contains(&word))
}

/// Whether a column's name says that its cells are names.
fn is_called_name(column: &Column) -> bool {
    let words = ["nom", "nombre", "nome", "naam", "navn", "namn", "imię", "nazwisko", "prénom", "prenom"];
    let called = column.name.to_lowercase();
    called.contains("name") && !called.contains("username")
        || is_called(column, &words)
        || called.ends_with("naam")
}

/// Whether its cells are names that very many people share.
fn is_first_name(column: &Column) -> bool {
    let called = column.name.to_lowercase().replace([' ', '_', '-'], "");
    let words = ["vorname", "firstname", "givenname", "forename", "voornaam", "prénom", "prenom", "imię"];
    words.iter().any(|word| called.contains(word))
}

/// Whether a column's name says that its cells are amounts, of which many are the same by chance.
fn is_amount(column: &Column) -> bool {
    let words = [
        "amount", "sum", "summe", "betrag", "total", "price", "preis", "salary", "gehalt", "income",
        "revenue", "umsatz", "cost", "costs", "kosten", "quantity", "qty", "menge", "anzahl", "count", "age",
        "alter", "balance", "saldo", "score", "year", "jahr",
    ];
    column.key_type == "int" && is_called(column, &words)
}

/// The words of commands that read the same table.
pub(crate) struct Commands {
    /// Nothing where no command can name the table: standard input, or a name that would steer a terminal.
    inputs: Option<String>,
    table: String,
}

impl Commands {
    /// For these files, read as `found` says.
    pub(crate) fn new(files: &[PathBuf], found: &Columns, table: Dialect, nulls: Vec<String>) -> Self {
        let mut words = table.words_of(&found.options);
        words.extend(nulls);
        let file = |path: &PathBuf| {
            let name = path.to_str().filter(|name| *name != "-" && is_plain(name))?;
            let from_here = if name.starts_with('-') { format!("./{name}") } else { name.to_owned() };
            Some(format!("--input {}", shell(&from_here)))
        };
        let inputs: Option<Vec<String>> = files.iter().map(file).collect();
        let inputs = inputs.filter(|_| words.iter().all(|word| is_plain(word)));
        let table = words.iter().map(|word| format!(" {}", shell(word))).collect();
        Commands { inputs: inputs.map(|inputs| inputs.join(" ")), table }
    }

    /// What to run next: a key that is suggested, or a look without a header.
    pub(crate) fn next(&self, found: &Columns, key: Option<&str>) -> Option<String> {
        let (inputs, table) = (self.inputs.as_ref()?, &self.table);
        if found.oddities.contains(&Oddity::NoHeader) {
            return Some(format!(
                "if it is data:         tacit check {inputs}{table} --no-header\nif it is a header:      tacit check \
                 {inputs}{table} --header"
            ));
        }
        let key = key.filter(|key| is_plain(key)).map(|key| match key.starts_with('-') {
            true => format!("{}{table}", shell(&format!("--key={key}"))),
            false => format!("--key {}{table}", shell(key)),
        })?;
        Some(format!(
            "to check the keys:      tacit check {inputs} {key}\nto run with a peer:     tacit psi --connect \
             HOST:7700 --identity tacit.key --peer peer.pub \\\n      {inputs} {key} --output matches.csv"
        ))
    }
}

/// Whether a terminal shows a text as it is.
pub(crate) fn is_plain(text: &str) -> bool {
    escaped(text) == text
}

/// A word quoted for the shell; on Windows for PowerShell, and for its predecessor if the word has no quotes.
pub(crate) fn shell(word: &str) -> String {
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
