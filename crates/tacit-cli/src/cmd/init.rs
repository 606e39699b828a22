//! `tacit init`: six questions, and a configuration or a policy with comments.

use super::check::{hints, shell, suggested};
use crate::cli::Context;
use crate::cli::keys::key_list;
use crate::cli::output::{Output, name};
use serde_json::json;
use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};
use tacit::crypto::text::counted;
use tacit::data::columns::{self, Columns, Oddity};
use tacit::data::csv::{Encoding, Options};
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
    let mut questions = Questions { answers: std::io::stdin().lock(), asked: 0 };
    let answers = questions.all(args.policy)?;
    let written = (Named::new("--out", &out), Kind::Result);
    let needed = [&answers.input, &answers.identity, &answers.peer];
    check_outputs(&[written], &needed.map(|file| Named::new("--input", Path::new(file))))?;
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
struct Questions<R> {
    answers: R,
    asked: u32,
}

/// What was answered.
struct Answers {
    input: String,
    /// The encoding that was guessed, where the table is not UTF-8.
    encoding: Option<Encoding>,
    rows: u64,
    key: Vec<String>,
    learns: String,
    reach: (String, String),
    identity: String,
    peer: String,
}

impl<R: BufRead> Questions<R> {
    fn all(&mut self, policy: bool) -> Result<Answers> {
        let mut table = None;
        let input = self.ask("Your table, such as customers.csv", "", |path| {
            let found =
                columns::look(&[PathBuf::from(path)], Options::default()).map_err(|e| e.to_string())?;
            table = Some(found);
            Ok(path.to_owned())
        })?;
        let none = Columns { rows: 0, columns: Vec::new(), oddities: Vec::new(), guessed: None };
        let table = table.unwrap_or(none);
        hints(&table).iter().for_each(|hint| say(&format!("    {hint}")));
        let names: Vec<&str> = table.columns.iter().map(|column| &*column.name).collect();
        let has_names = !table.oddities.iter().any(|one| matches!(one, Oddity::Title | Oddity::NoHeader));
        let default = suggested(&table.columns).filter(|key| has_names && is_key(key, &names).is_ok());
        let default = default.unwrap_or_default();
        let listed: Vec<String> = names.iter().map(|name| quoted_column(name)).collect();
        let question = format!("The column, or columns with commas, to match by ({})", listed.join(", "));
        let key = self.ask(&question, &default, |key| is_key(key, &names))?;
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
        let identity = self.ask("The file of your private key", "tacit.key", |file| {
            is_key_file(file, |path| Identity::load(path).map(drop))
        })?;
        let peer = self.ask("The file of your peer's public key", "peer.pub", |file| {
            is_key_file(file, |path| PublicKeys::load(path).map(drop))
        })?;
        Ok(Answers { input, encoding: table.guessed, rows: table.rows, key, learns, reach, identity, peer })
    }

    /// Asks until `read` takes the answer.
    fn ask<T>(
        &mut self,
        question: &str,
        default: &str,
        mut read: impl FnMut(&str) -> std::result::Result<T, String>,
    ) -> Result<T> {
        self.asked += 1;
        let bracket = if default.is_empty() { String::new() } else { format!(" [{default}]") };
        loop {
            say(&format!("{}/6 {question}{bracket}:", self.asked));
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
                continue;
            }
            match read(answer) {
                Ok(answer) => return Ok(answer),
                Err(what) => say(&format!("    {what}")),
            }
        }
    }
}

/// The columns of a key that the table has.
fn is_key(key: &str, names: &[&str]) -> std::result::Result<Vec<String>, String> {
    key_list(key).map_err(|e| e.to_string())?;
    let parts = listed(key);
    for part in &parts {
        let column = NamedKey::parse(part).map_err(|e| e.to_string())?.column;
        match names.iter().filter(|name| **name == column).count() {
            1 => {}
            0 => return Err(format!("there is no column `{column}`; the columns are {}", names.join(", "))),
            _ => {
                return Err(format!(
                    "the table has several columns `{column}`; give them different names first"
                ));
            }
        }
    }
    Ok(parts.into_iter().map(str::to_owned).collect())
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
        false => Err(format!("answer {}", all.join(" or "))),
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

    /// The line that names the table's encoding, if there is one.
    fn encoding(&self) -> String {
        self.encoding.map_or_else(String::new, |encoding| {
            format!("encoding = {:<23} # a guess, as the table is not UTF-8\n", quoted(encoding.name()))
        })
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
            self.encoding(),
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
                let (charged, security) = match small {
                    true => (
                        64,
                        "# security = \"semi-honest\"         # needed for more than 16,384 keys on a side",
                    ),
                    false => (
                        self.rows,
                        "security = \"semi-honest\"           # needed for more than 16,384 keys on a side",
                    ),
                };
                most_keys = if small { CHECKED_KEYS } else { most_keys };
                (
                    format!(
                        "rows_in_total = {:<18} # 12 runs, of which each is charged {}\n\
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
                    "rows_in_total = {:<18} # matches that all runs together may reveal to one peer",
                    self.rows.max(1)
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
             {encoding}\
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
            encoding = self.encoding(),
            keys = self.keys(),
        )
    }
}
