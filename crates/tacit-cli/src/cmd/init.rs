//! `tacit init`: six questions, and a configuration or a policy with comments.

use super::check::suggest::{PHONE_OF_A_REGION, hints, is_plain, part, shell, suggested};
use crate::cli::Context;
use crate::cli::keys::key_list;
use crate::cli::output::{Output, name};
use serde_json::json;
use std::collections::HashMap;
use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};
use tacit::crypto::near::nearest;
use tacit::crypto::text::{counted, escaped, shown};
use tacit::data::columns::{self, Column, Columns, FirstLine, Names, Oddity};
use tacit::data::csv::{Header, Options};
use tacit::data::keys::{Named as NamedKey, listed, quoted as quoted_column};
use tacit::net::{Identity, PublicKeys};
use tacit::{Error, Result};
use tacit_console::files::{Kind, Named, check_outputs};
use tacit_console::say;

const AFTER: &str = "\
Examples:
  tacit init
  tacit init --policy --out policy.toml

An empty answer accepts the value in brackets. Nothing is sent; the table is read to list its
columns. Each line of the file that you may want to change has a comment: docs/configuration.md
and docs/serve.md describe all settings.";

/// Keys on a side up to which a number holds against a peer that cheats.
const CHECKED_KEYS: u64 = 16_384;

/// Asks six questions and writes a configuration, or a service's policy, with comments
#[derive(clap::Args)]
#[command(after_help = AFTER)]
pub(crate) struct Args {
    /// Writes the policy of a service (`tacit serve`) instead of a configuration for `tacit psi`
    #[arg(long)]
    policy: bool,
    /// The file to write (default: job.toml, or policy.toml)
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

pub(super) fn run(args: Args, context: &Context) -> Result<()> {
    let out = args.out.unwrap_or_else(|| if args.policy { "policy.toml" } else { "job.toml" }.into());
    Output::check(&out, false)?;
    let mut questions = Questions { answers: std::io::stdin().lock(), asked: 0, out: &out };
    let answers = questions.all(args.policy)?;
    let text = if args.policy { answers.policy(&out) } else { answers.config() };
    let mut file = Output::create(&out)?;
    file.write_all(text.as_bytes()).map_err(|e| Error::file(&out, "writing the answers", e))?;
    file.commit()?;
    let shown = shell(&name(&out));
    let next = match args.policy {
        true => format!("tacit serve --policy {shown} --check\n  tacit serve --policy {shown}"),
        false => format!("tacit psi --config {shown} --dry-run\n  tacit psi --config {shown}"),
    };
    let mut text = format!("{} written; read it, then run\n  {next}", name(&out));
    let missing = [&answers.identity, &answers.peer].into_iter().any(|file| !Path::new(file).exists());
    if missing {
        let keys = format!("--identity {} --out {}", shell(&answers.identity), shell(&answers.peer));
        let (how, address) = &answers.reach;
        text += &match how.as_str() {
            "connect" => format!(
                "\nfirst exchange keys: your peer runs `tacit invite` and tells you a code; then `tacit join \
                 CODE {keys}`"
            ),
            how => format!(
                "\nfirst exchange keys: `tacit invite --{how} {} {keys}`, and `tacit join CODE` on the \
                 peer's side",
                shell(address)
            ),
        };
    }
    let kind = if args.policy { "policy" } else { "configuration" };
    context.result(&json!({ "name": "init", "file": out, "kind": kind, "keys_missing": missing }), &text)
}

/// Who asks, and how often.
struct Questions<'o, R> {
    answers: R,
    asked: u32,
    /// The file to write, which no answer may name.
    out: &'o Path,
}

/// What was answered.
struct Answers {
    input: String,
    /// How the table is read.
    options: Options,
    rows: u64,
    key: Vec<String>,
    learns: String,
    reach: (String, String),
    identity: String,
    peer: String,
}

impl<R: BufRead> Questions<'_, R> {
    fn all(&mut self, policy: bool) -> Result<Answers> {
        let (input, table, key) = loop {
            self.asked = 0;
            let (input, table) = self.table()?;
            if let Some(key) = self.key(&table)? {
                break (input, table, key);
            }
        };
        let learns = if policy {
            let question = "What a run reveals to your peer: its matching rows, or their count";
            self.ask(question, "rows", |answer| one_of(answer, &["rows", "count"]))?
        } else {
            let question = "Who learns which keys match: me, peer or both (your peer answers accordingly)";
            self.ask(question, "me", |answer| one_of(answer, &["me", "peer", "both"]))?
        };
        let (question, default) = match policy {
            true => ("Where peers reach you: listen ADDRESS, or via RELAY", "listen 0.0.0.0:7700"),
            false => ("How you meet: listen ADDRESS, connect HOST:PORT, or via RELAY", "listen 0.0.0.0:7700"),
        };
        let reach = self.ask(question, default, |answer| reached(answer, policy))?;
        let out = self.out;
        let identity = self.ask("The file of your private key", "tacit.key", |file| {
            is_not(out, file).and_then(|()| is_key_file(file, |path| Identity::load(path).map(drop)))
        })?;
        let peer = self.ask("The file of your peer's public key", "peer.pub", |file| {
            is_not(out, file).and_then(|()| is_key_file(file, |path| PublicKeys::load(path).map(drop)))
        })?;
        Ok(Answers { input, options: table.options, rows: table.rows, key, learns, reach, identity, peer })
    }

    /// The columns of the key; `None` where another table is to be read.
    fn key(&mut self, table: &Columns) -> Result<Option<Vec<String>>> {
        let default = suggested(table);
        hints(table, default.as_deref()).iter().for_each(|hint| tell(&format!("    {hint}")));
        let columns = &table.columns;
        let default = default.filter(|key| is_plain(key) && is_key(key, columns).is_ok()).unwrap_or_default();
        let is_column = columns.iter().any(|column| column.name == ANOTHER_TABLE);
        let back = if is_column { String::new() } else { format!("; {ANOTHER_TABLE} for another table") };
        let question =
            format!("The column, or columns with commas, to match by ({}{back})", listing(columns));
        self.ask(&question, &default, |key| match key {
            ANOTHER_TABLE if !is_column => Ok(None),
            key => is_key(key, columns).map(Some),
        })
    }

    /// The table, and what it holds. Where its first line may be no header, that is a question of its own: without the
    /// answer no cell of that line is shown.
    fn table(&mut self) -> Result<(String, Columns)> {
        let look = |path: &str, options, first| {
            columns::look(&[PathBuf::from(path)], options, first).map_err(|error| error.to_string())
        };
        let out = self.out;
        self.asked += 1;
        loop {
            let input = self.again("Your table, such as customers.csv", "", |path| match path {
                // The answers come from there.
                "-" => Err("a table on standard input cannot be read here; name a file".to_owned()),
                path => {
                    is_not(out, path)?;
                    look(path, Options::default(), FirstLine::Judged).map(|found| (path.to_owned(), found))
                }
            })?;
            let (path, found) = input;
            let options = found.options;
            let title = found.oddities.iter().find_map(|oddity| match oddity {
                Oddity::Title(lines) => Some(*lines),
                _ => None,
            });
            let mut judged = Ok(found);
            if let Some(lines) = title {
                let question = format!("Skip the first {} as a title? y or n", counted(lines, "line"));
                if !self.again(&question, "y", yes)? {
                    judged = look(&path, Options { skip_lines: 0, ..options }, FirstLine::Header);
                }
            }
            if let Ok(found) = &judged
                && found.oddities.contains(&Oddity::NoHeader)
            {
                let fields = counted(found.columns.len(), "field");
                let question =
                    format!("Is the first line ({fields}) a header, with the columns' names? y or n");
                let (header, first) = match self.again(&question, "", yes)? {
                    true => (Header::Names, FirstLine::Header),
                    false => (Header::None, FirstLine::Judged),
                };
                let guessed = found.guessed;
                judged = look(&path, Options { header, ..found.options }, first)
                    .map(|found| Columns { guessed, ..found });
            } else if let Ok(found) = &judged
                && found.names == Names::Doubtful
            {
                judged = Err("a column's name looks like data; rename it in the file first".to_owned());
            }
            if let Ok(found) = &judged
                && !has_own_name(&found.columns)
            {
                judged = Err(
                    "every column shares its name with another, so none can be the key; rename them in the \
                              file, or name another table"
                        .to_owned(),
                );
            }
            match judged {
                Ok(found) => return Ok((path, found)),
                Err(what) => tell(&format!("    {what}")),
            }
        }
    }

    /// The next question.
    fn ask<T>(
        &mut self,
        question: &str,
        default: &str,
        read: impl FnMut(&str) -> std::result::Result<T, String>,
    ) -> Result<T> {
        self.asked += 1;
        self.again(question, default, read)
    }

    /// Asks until `read` takes the answer.
    fn again<T>(
        &mut self,
        question: &str,
        default: &str,
        mut read: impl FnMut(&str) -> std::result::Result<T, String>,
    ) -> Result<T> {
        let bracket = if default.is_empty() { String::new() } else { format!(" [{default}]") };
        loop {
            tell(&format!("{}/6 {question}{bracket}:", self.asked));
            let mut line = String::new();
            let read_line = self.answers.read_line(&mut line);
            let got = read_line.map_err(|e| Error::Input(format!("standard input: cannot be read: {e}")))?;
            if got == 0 {
                let what = format!(
                    "the answers end at question {} of 6; nothing was written; run `tacit init` again and answer all six",
                    self.asked
                );
                return Err(Error::Usage(what));
            }
            let answer = match line.trim() {
                "" => default,
                answer => answer,
            };
            if answer.is_empty() {
                tell("    this question has no default; type an answer");
                continue;
            }
            match read(answer) {
                Ok(answer) => return Ok(answer),
                Err(what) => tell(&format!("    {what}")),
            }
        }
    }
}

/// A line on standard error, which may have words of a file: none of them steers a terminal.
fn tell(line: &str) {
    say(&escaped(line));
}

/// Whether some column shares its name with no other.
fn has_own_name(columns: &[Column]) -> bool {
    let mut counts: HashMap<&str, usize> = HashMap::new();
    columns.iter().for_each(|column| *counts.entry(column.name.trim()).or_default() += 1);
    counts.is_empty() || counts.values().any(|count| *count == 1)
}

/// Refuses an answer that names the file to write, or would have it read as a part of the table.
fn is_not(out: &Path, file: &str) -> std::result::Result<(), String> {
    let written = (Named::new("--out", out), Kind::Result);
    let needed = [Named::new("--input", Path::new(file))];
    check_outputs(&[written], &needed).map(drop).map_err(|error| error.to_string())
}

fn yes(answer: &str) -> std::result::Result<bool, String> {
    match &*answer.to_lowercase() {
        "y" | "yes" => Ok(true),
        "n" | "no" => Ok(false),
        _ => Err("answer y or n".to_owned()),
    }
}

/// The answer that asks for the table once more.
const ANOTHER_TABLE: &str = "back";

/// Columns that a question lists.
const LISTED_COLUMNS: usize = 20;

/// Columns with their types, of which the first are listed.
fn listing(columns: &[Column]) -> String {
    let mut listed: Vec<String> =
        columns.iter().take(LISTED_COLUMNS).map(|column| shown(&part(column))).collect();
    let rest = columns.len().saturating_sub(LISTED_COLUMNS);
    listed.extend((rest > 0).then(|| format!("… and {rest} more")));
    listed.join(", ")
}

/// The columns of a key that the table has, each with the type that its cells have unless the answer names one.
fn is_key(key: &str, columns: &[Column]) -> std::result::Result<Vec<String>, String> {
    let parts = listed(key).into_iter().map(str::trim).map(|written| {
        let name = NamedKey::parse(written).map_err(|e| e.to_string())?.column;
        let mut found = columns.iter().filter(|column| column.name == name);
        let column = match (found.next(), found.next()) {
            (Some(column), None) => column,
            (Some(_), Some(_)) => {
                let name = shown(&name);
                return Err(format!(
                    "the table has several columns `{name}`; choose another column, or another table by `{ANOTHER_TABLE}`"
                ));
            }
            (None, _) => {
                let name = shown(&name);
                return Err(match nearest(&name, columns.iter().map(|column| column.name.as_str())) {
                    Some(near) => format!("there is no column `{name}`; did you mean `{}`?", shown(near)),
                    None => format!("there is no column `{name}`; the columns are {}", listing(columns)),
                });
            }
        };
        let is_untyped = written == quoted_column(&name) || written == name;
        if is_untyped && column.key_type == PHONE_OF_A_REGION {
            let name = shown(&quoted_column(&name));
            return Err(format!(
                "telephone numbers without a country need one, such as `{name}:phone:NL`; `{name}:text` compares them as \
                 they are"
            ));
        }
        Ok(if is_untyped { part(column) } else { written.to_owned() })
    });
    let parts = parts.collect::<std::result::Result<Vec<_>, _>>()?;
    key_list(&parts.join(","))?;
    Ok(parts)
}

/// A file of a key that exists already holds one.
fn is_key_file(
    file: &str,
    load: impl FnOnce(&Path) -> tacit::net::Result<()>,
) -> std::result::Result<String, String> {
    let path = Path::new(file);
    if path.exists() {
        load(path).map_err(|e| e.to_string())?;
    }
    Ok(file.to_owned())
}

fn one_of(answer: &str, all: &[&str]) -> std::result::Result<String, String> {
    match all.contains(&answer) {
        true => Ok(answer.to_owned()),
        false => Err(format!("answer {}", either(all))),
    }
}

/// Several words as a choice.
fn either(words: &[&str]) -> String {
    match words {
        [first @ .., before, last] => {
            let mut listed: Vec<&str> = first.to_vec();
            let end = format!("{before} or {last}");
            listed.push(&end);
            listed.join(", ")
        }
        words => words.concat(),
    }
}

fn reached(answer: &str, policy: bool) -> std::result::Result<(String, String), String> {
    let (how, address) = answer.split_once(' ').unwrap_or((answer, ""));
    let known = matches!(how, "listen" | "via") || (how == "connect" && !policy);
    let address = address.trim();
    let is_address = address.rsplit_once(':').is_some_and(|(host, port)| {
        !host.is_empty() && !host.contains(char::is_whitespace) && port.parse::<u16>().is_ok()
    });
    match known && is_address {
        true => Ok((how.to_owned(), address.to_owned())),
        false => Err("such as `listen 0.0.0.0:7700`: a word, a blank, and HOST:PORT".to_owned()),
    }
}

/// A text as TOML has it.
fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

impl Answers {
    fn keys(&self) -> String {
        let keys: Vec<String> = self.key.iter().map(|key| quoted(key)).collect();
        format!("[{}]", keys.join(", "))
    }

    /// The lines that say how the table is read, where that is not the usual way; with the names of a policy, or the
    /// command's.
    fn written(&self, is_policy: bool) -> String {
        let mut lines = String::new();
        let mut line = |setting: String, why: &str| lines += &format!("{setting:<34} # {why}\n");
        if let Some(encoding) = self.options.encoding {
            line(format!("encoding = {}", quoted(encoding.name())), "a guess, as the table is not UTF-8");
        }
        let skipped = self.options.skip_lines;
        match is_policy {
            _ if skipped == 0 => {}
            true => line(format!("skip_lines = {skipped}"), "lines above the header"),
            false => line(format!("skip-lines = {skipped}"), "lines above the header"),
        }
        match is_policy {
            _ if self.options.header == Header::Names => {}
            true => line("header = false".to_owned(), "columns are named by their numbers, from 1"),
            false => line("no-header = true".to_owned(), "columns are named by their numbers, from 1"),
        }
        lines
    }

    fn config(&self) -> String {
        let (how, address) = &self.reach;
        let output = match self.learns.as_str() {
            "peer" => "# output = \"matches.csv\"           # only your peer gets a result".to_owned(),
            _ => {
                "output = \"matches.csv\"             # your matching rows, with all their columns".to_owned()
            }
        };
        format!(
            "# A job for `tacit psi --config FILE`, written by `tacit init`. Each line is an option of the command\n\
             # (`tacit psi --help`), and an option on the command line wins.\n\
             [psi]\n\
             input = {}\n\
             {}\
             key = {}          # COL or COL:TYPE; types must match on both sides: `tacit check --help` lists them\n\
             result = {}                     # me, peer or both; with `me` here, `peer` on your peer's side\n\
             {output}\n\
             reveal = \"rows\"                   # or count, or sum:COL and others: the same on both sides\n\
             \n\
             {how} = {}\n\
             identity = {}\n\
             peer = {}\n\
             \n\
             # security = \"semi-honest\"        # faster for some jobs, without protection against a peer that cheats\n\
             # max-peer-rows = 1000000         # the most distinct keys that your peer may have\n",
            quoted(&self.input),
            self.written(false),
            self.keys(),
            quoted(&self.learns),
            quoted(address),
            quoted(&self.identity),
            quoted(&self.peer),
        )
    }

    fn policy(&self, out: &Path) -> String {
        let (how, address) = &self.reach;
        // Paths in a policy are seen from its folder.
        let elsewhere = out.parent().is_some_and(|folder| !folder.as_os_str().is_empty());
        let path = |file: &str| match std::path::absolute(file) {
            Ok(whole) if elsewhere && !file.contains("://") => quoted(&whole.to_string_lossy()),
            _ => quoted(file),
        };
        let mut most_keys = 1_000_000;
        let (allowed, job) = match self.learns.as_str() {
            "count" => {
                let small = self.rows <= CHECKED_KEYS;
                let (charged, why, security) = match small {
                    true => (
                        64,
                        "one for each bit of a number",
                        "# security = \"semi-honest\"         # needed for more than 16,384 keys on a side",
                    ),
                    false => (
                        self.rows,
                        "all of the table",
                        "security = \"semi-honest\"           # needed for more than 16,384 keys on a side",
                    ),
                };
                most_keys = if small { CHECKED_KEYS } else { most_keys };
                (
                    format!(
                        "rows_in_total = {:<18} # for 12 runs, of which each is charged {}: {why}\n\
                         aggregate_runs = 12                # how many numbers one peer may get from it, in all",
                        charged.saturating_mul(12),
                        counted(charged, "row")
                    ),
                    format!(
                        "reveal = [\"count\"]\n\
                         min_matches = 50                   # a smaller number is withheld\n{security}"
                    ),
                )
            }
            _ => (
                format!(
                    "rows_in_total = {:<18} # the table's rows today: as many matches may all runs together\n\
                     {:<34} # reveal to one peer; choose what you can answer for",
                    self.rows.max(1),
                    ""
                ),
                "reveal = [\"rows\"]".to_owned(),
            ),
        };
        format!(
            "# The policy of a service, written by `tacit init` for a table of {rows}. `tacit serve --policy FILE\n\
             # --check` prints in words what it allows; docs/serve.md lists every setting.\n\
             version = 1\n\
             {how} = {address}\n\
             identity = {identity}\n\
             state = \"state\"                    # the directory of budgets and signed records: back it up\n\
             \n\
             [peers.partner]                    # the name that logs and records use\n\
             key = {peer}\n\
             \n\
             [sources.table]\n\
             input = {input}\n\
             {written}\
             key = {keys}\n\
             {allowed}\n\
             \n\
             [jobs.match]                       # your peer runs `tacit request match`\n\
             source = \"table\"\n\
             allow = [\"partner\"]\n\
             {job}\n\
             result = [\"peer\"]                  # who gets the result, seen from here\n\
             min_peer_keys = 100                # fewer keys say too much about single persons\n\
             max_peer_keys = {most_keys}\n\
             runs_a_day = 1\n\
             # purpose = \"common customers\"     # what it is for, in the terms and in every record\n\
             # agreement = \"contract 2026-17\"\n\
             # expires = 2027-12-31\n",
            rows = counted(self.rows, "row"),
            address = quoted(address),
            identity = path(&self.identity),
            peer = path(&self.peer),
            input = path(&self.input),
            written = self.written(true),
            keys = self.keys(),
        )
    }
}
