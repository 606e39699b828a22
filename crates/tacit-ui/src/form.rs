//! What the page asks for, as the arguments of a command.
//!
//! Each value goes into an argument of its own behind its option's name and an equals sign, `--key=email`, so
//! that no value can become an option. Whether values fit together, the command itself says.

use crate::folder::Folder;
use crate::shell;
use serde_json::{Map, Value, json};
use std::ffi::OsString;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use tacit::data::keys::quoted;

/// The rows of a run's result, the answer of a question, and the page about a run.
const RESULT_FILE: &str = "result.csv";
const REPORT_FILE: &str = "report.html";
/// The file of a run that has its question.
const QUESTION_FILE: &str = "question.sql";
/// The file of a policy that was written in the page.
const POLICY_FILE: &str = "policy.toml";
/// The most bytes of one text of a form, and of a question or a policy.
const LONGEST_TEXT: usize = 4096;
const LONGEST_SQL: usize = 64 << 10;
/// The most columns of a form.
const MOST_FORM_COLUMNS: usize = 500;

/// What can be asked for.
const KINDS: [&str; 11] = [
    "check",
    "keygen",
    "fingerprint",
    "invite",
    "join",
    "terms",
    "run",
    "jobs",
    "offer",
    "request",
    "verify",
];
/// What a policy can be asked for.
const SERVICE_KINDS: [&str; 2] = ["serve-check", "serve"];

/// A command, and what it leaves behind.
pub(crate) struct Plan {
    pub kind: &'static str,
    pub words: Vec<OsString>,
    /// Of an earlier page: the command as it was shown.
    text: Option<String>,
    /// Names of files in the run's folder.
    pub outputs: Vec<String>,
    /// Files that are written before it starts.
    pub files: Vec<(PathBuf, String)>,
    /// A partner's key that replaces another: where the new one comes, and where the old one is.
    replaces: Option<[PathBuf; 2]>,
    /// The form, for the history.
    pub about: Value,
}

type Refusable<T> = Result<T, String>;

impl Plan {
    /// The command that a form asks for. `run` is the folder of its run, if it is one.
    ///
    /// Errors: one line about what is missing or cannot be.
    pub(crate) fn of_form(form: &Value, folder: &Folder, run: &Path) -> Refusable<Self> {
        let object = form.as_object().ok_or("a form is a JSON object")?;
        let given = object.get("kind").and_then(Value::as_str).unwrap_or_default();
        let kind =
            known(given).ok_or_else(|| format!("`{}` is not a kind of form", tacit::net::shown(given)))?;
        let mut plan = Plan {
            kind,
            words: Vec::new(),
            text: None,
            outputs: Vec::new(),
            files: Vec::new(),
            replaces: None,
            about: form.clone(),
        };
        let form = Form { fields: object, folder };
        match kind {
            "check" => plan.check(&form)?,
            "keygen" => plan.words(["keygen"]).path("out", &folder.identity()),
            "fingerprint" => plan.words = vec!["fingerprint".into(), "--".into(), form.file("file")?.into()],
            "invite" | "join" => plan.meet(&form)?,
            "terms" | "run" => plan.job(&form, run)?,
            "jobs" | "offer" | "request" => plan.request(&form, run)?,
            "verify" => plan.words(["audit", "verify"]).word(folder.records()),
            _ => plan.serve(&form)?,
        }
        Ok(plan)
    }

    /// What an earlier page wrote down of a run.
    pub(crate) fn of_record(record: &Value) -> Option<Self> {
        let outputs = record["outputs"].as_array()?.iter();
        Some(Plan {
            kind: known(record["kind"].as_str()?)?,
            words: Vec::new(),
            text: Some(record["command"].as_str()?.to_owned()),
            outputs: outputs
                .filter_map(|one| Some(one["name"].as_str()?.to_owned()))
                .filter(|name| is_output(name))
                .collect(),
            files: Vec::new(),
            replaces: None,
            about: record["about"].clone(),
        })
    }

    /// The command as a shell takes it.
    pub(crate) fn shown(&self) -> String {
        let command = || shell::command("tacit", &self.words);
        let moved = self.replaces.iter().map(|paths| {
            let words: Vec<OsString> = paths.iter().map(|path| path.clone().into_os_string()).collect();
            format!(" && {}", shell::command("mv", &words))
        });
        self.text.clone().unwrap_or_else(|| command() + &moved.collect::<String>())
    }

    /// Takes away what an earlier command of this kind left behind.
    pub(crate) fn prepare(&self) {
        if let Some([new, _]) = &self.replaces {
            // The command itself says so if it is there still.
            let _ = std::fs::remove_file(new);
        }
    }

    /// Puts a partner's new key in the place of the old one.
    pub(crate) fn replace(&self) -> std::io::Result<()> {
        self.replaces.as_ref().map_or(Ok(()), |[new, old]| std::fs::rename(new, old))
    }

    /// Whether it gets a folder and a line in the history.
    pub(crate) fn is_run(&self) -> bool {
        matches!(self.kind, "run" | "request" | "serve")
    }

    fn words<const N: usize>(&mut self, words: [&str; N]) -> &mut Self {
        self.words.extend(words.map(OsString::from));
        self
    }

    fn word(&mut self, word: impl Into<OsString>) {
        self.words.push(word.into());
    }

    fn option(&mut self, name: &str, value: &str) {
        self.words.push(format!("--{name}={value}").into());
    }

    fn path(&mut self, name: &str, path: &Path) {
        let mut word = OsString::from(format!("--{name}="));
        word.push(path);
        self.words.push(word);
    }

    fn check(&mut self, form: &Form<'_>) -> Refusable<()> {
        self.words(["check"]).path("input", &form.file("file")?);
        if !form.list("key")?.is_empty() {
            self.identifiers(form)?;
        }
        self.table(form)
    }

    /// What identifies a row, or else each further identifier does.
    fn identifiers(&mut self, form: &Form<'_>) -> Refusable<()> {
        self.option("key", &form.keys("key")?);
        for columns in form.list("or_key")? {
            let columns = columns.as_array().and_then(|columns| key_columns(columns));
            let columns = columns.ok_or("choose the columns of each further identifier")?;
            self.option("or-key", &columns);
        }
        Ok(())
    }

    /// How the file is read.
    fn table(&mut self, form: &Form<'_>) -> Refusable<()> {
        for name in ["no_header", "decimal_comma"] {
            if form.is_set(name) {
                self.word(format!("--{}", name.replace('_', "-")));
            }
        }
        for name in ["encoding", "skip_lines"] {
            if let Some(value) = form.maybe(name)? {
                self.option(&name.replace('_', "-"), &value);
            }
        }
        Ok(())
    }

    /// An exchange of public keys.
    fn meet(&mut self, form: &Form<'_>) -> Refusable<()> {
        let name = form.text("name")?;
        let mut file = form.folder.partner(&name)?;
        if file.exists() {
            if !form.is_set("replace") {
                return Err(format!("there is a partner called {name} already; choose another name"));
            }
            let new = form.folder.replacement(&name)?;
            self.replaces = Some([new.clone(), std::mem::replace(&mut file, new)]);
        }
        self.words([self.kind]);
        let way =
            form.choice("way", if self.kind == "invite" { &["listen", "via"] } else { &["connect", "via"] })?;
        self.option(way, &form.text("address")?);
        self.path("identity", &form.identity()?);
        self.path("out", &file);
        if let Some(own) = form.maybe("own_name")? {
            self.option("comment", &own);
        }
        if self.kind == "join" {
            self.word("--");
            self.word(form.text("code")?);
        }
        Ok(())
    }

    /// How to reach the partner, and who it must be.
    fn peer(&mut self, form: &Form<'_>, ways: &[&'static str]) -> Refusable<()> {
        self.option(form.choice("way", ways)?, &form.text("address")?);
        self.path("identity", &form.identity()?);
        self.path("peer", &form.peer()?);
        Ok(())
    }

    /// An intersection or a question, or what it would tell each side.
    fn job(&mut self, form: &Form<'_>, run: &Path) -> Refusable<()> {
        let is_question = form.choice("ask", &ASKS)? == "question";
        self.words([if is_question { "query" } else { "psi" }]);
        self.peer(form, &["listen", "connect", "via"])?;
        self.path("input", &form.file("file")?);
        self.table(form)?;
        if let Some(which) = form.maybe_choice("duplicates", &["refuse", "first"])? {
            self.option("duplicates", which);
        }
        if is_question {
            self.question(form, run)?;
        } else {
            self.identifiers(form)?;
            self.intersection(form)?;
        }
        let (is_run, gets) = (self.kind == "run", form.choice("result", &["me", "peer", "both"])?);
        self.option("result", gets);
        if let Some(security) = form.maybe_choice("security", &["malicious", "semi-honest"])? {
            self.option("security", security);
        }
        if let Some(link) = form.maybe("link")? {
            self.option("link", &link);
        }
        if !is_run {
            self.word(if is_question { "--explain" } else { "--dry-run" });
            return Ok(());
        }
        let has_rows = is_question || matches!(form.choice("ask", &ASKS)?, "rows" | "columns");
        // The side that sends columns without a result gets no rows.
        if has_rows && gets != "peer" {
            self.output(run, "output", RESULT_FILE);
        }
        self.output(run, "report", REPORT_FILE);
        Ok(())
    }

    fn output(&mut self, run: &Path, option: &str, name: &str) {
        self.path(option, &run.join(name));
        self.outputs.push(name.to_owned());
    }

    /// What is revealed of the matching keys.
    fn intersection(&mut self, form: &Form<'_>) -> Refusable<()> {
        let ask = form.choice("ask", &ASKS)?;
        match ask {
            "rows" | "count" => self.option("reveal", ask),
            "columns" if form.choice("owner", &OWNERS)? == "me" => {
                self.option("reveal", "payload");
                self.option("give", &form.columns("columns")?);
            }
            "columns" => self.option("reveal", &format!("payload:{}", form.columns("columns")?)),
            number => {
                let column = quoted(&form.text("column")?);
                let digits =
                    form.maybe_choice("digits", &["decimal1", "decimal2", "decimal3", "decimal4"])?;
                let column = digits.map_or(column.clone(), |digits| format!("{column}:{digits}"));
                self.option("reveal", &format!("{number}:{column}"));
                if form.choice("owner", &OWNERS)? == "me" {
                    self.option("give", &column);
                }
            }
        }
        for name in ["min_matches", "bounds"] {
            if let Some(value) = form.maybe(name)? {
                self.option(&name.replace('_', "-"), &value);
            }
        }
        Ok(())
    }

    fn question(&mut self, form: &Form<'_>, run: &Path) -> Refusable<()> {
        self.sql(form, run)?;
        self.option("side", form.choice("side", &["ours", "theirs"])?);
        if let Some(least) = form.maybe("min_group")? {
            self.option("min-group", &least);
        }
        Ok(())
    }

    /// The text of a question.
    fn sql(&mut self, form: &Form<'_>, run: &Path) -> Refusable<()> {
        let sql = form.long_text("sql")?;
        match self.kind {
            // The text is part of what is shown, and of a run's folder.
            "run" | "request" => {
                let file = run.join(QUESTION_FILE);
                self.path("sql-file", &file);
                self.files.push((file, sql));
            }
            _ => self.option("sql", &sql),
        }
        Ok(())
    }

    /// A question to a service: one of its own by name with the values of its parameters, or a text.
    fn service_question(&mut self, form: &Form<'_>, run: &Path) -> Refusable<()> {
        match form.maybe("question")? {
            None => self.sql(form, run)?,
            Some(name) => {
                self.option("question", &name);
                for one in form.list("set")? {
                    let (name, value) = (one["name"].as_str(), one["value"].as_str());
                    let set = name.zip(value).map(|(name, value)| format!("{name}={value}"));
                    let set = set.filter(|set| is_line(set) && !set.starts_with('='));
                    self.option("set", &set.ok_or("give a value for each parameter of the question")?);
                }
            }
        }
        if let Some(least) = form.maybe("min_group")? {
            self.option("min-group", &least);
        }
        self.option("security", "semi-honest");
        Ok(())
    }

    /// A lookup in a service's tag file: of single keys, or of the rows of a table.
    fn lookup(&mut self, form: &Form<'_>) -> Refusable<()> {
        self.path("tags", &form.file("tags")?);
        for value in form.list("values")? {
            let value = value.as_str().filter(|value| is_line(value));
            self.option("value", value.ok_or("write one key a line")?);
        }
        Ok(())
    }

    /// A request to a partner's service: its jobs, an offer, or a run by its terms.
    fn request(&mut self, form: &Form<'_>, run: &Path) -> Refusable<()> {
        self.words(["request"]);
        self.peer(form, &["connect", "via"])?;
        if self.kind == "jobs" {
            self.word("--list");
            return Ok(());
        }
        let is_lookup = form.maybe("tags")?.is_some();
        let is_question = form.is_set("asks");
        let has_table = !is_lookup || form.list("values")?.is_empty();
        if has_table {
            self.path("input", &form.file("file")?);
            self.table(form)?;
        }
        if !is_question {
            self.identifiers(form)?;
        }
        // What a lookup shows, and to whom, leaves no choice.
        let gets = if is_lookup { None } else { form.maybe_choice("result", &["me", "peer", "both"])? };
        if let Some(gets) = gets {
            self.option("result", gets);
        }
        if is_lookup {
            self.lookup(form)?;
        } else if is_question {
            self.service_question(form, run)?;
        } else {
            if let Some(reveal) = form.maybe("reveal")? {
                self.option("reveal", &reveal);
            }
            if let Some(security) = form.maybe_choice("security", &["malicious", "semi-honest"])? {
                self.option("security", security);
            }
        }
        if self.kind == "offer" {
            self.word("--dry-run");
        } else {
            // Exactly the terms that were shown are accepted.
            self.option("terms", &form.text("terms")?);
            self.word("--yes");
            self.path("records", &form.folder.records());
            let is_plain = !is_lookup && !is_question;
            let is_number =
                form.maybe("reveal")?.is_some_and(|kind| kind != "rows" && !kind.starts_with("payload"));
            if has_table && gets != Some("peer") && !(is_plain && is_number) {
                self.output(run, "output", RESULT_FILE);
            }
            if is_plain {
                self.output(run, "report", REPORT_FILE);
            }
        }
        self.word("--");
        self.word(form.text("job")?);
        Ok(())
    }

    /// A policy file: its check, or a service by it with a page of its own.
    fn serve(&mut self, form: &Form<'_>) -> Refusable<()> {
        let file = match form.maybe("policy")? {
            Some(_) => form.file("policy")?,
            // One that was written in the page is where its next version will be, too.
            None => {
                let file = form.folder.path().join(POLICY_FILE);
                self.files.push((file.clone(), form.long_text("text")?));
                file
            }
        };
        self.words(["serve"]).path("policy", &file);
        if self.kind == "serve-check" {
            self.word("--check");
            return Ok(());
        }
        let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let page = free.map_err(|error| format!("no port of this machine is free: {error}"))?;
        self.option("dashboard", &page.to_string());
        self.about = json!({ "kind": "serve", "policy": file, "dashboard": format!("http://{page}/") });
        Ok(())
    }
}

/// What a run can be for.
const ASKS: [&str; 8] = ["rows", "columns", "count", "sum", "mean", "max", "min", "question"];
/// Whose columns are sent, or added up.
const OWNERS: [&str; 2] = ["me", "peer"];

fn known(kind: &str) -> Option<&'static str> {
    KINDS.iter().chain(&SERVICE_KINDS).find(|one| **one == kind).copied()
}

fn is_output(name: &str) -> bool {
    [RESULT_FILE, REPORT_FILE].contains(&name)
}

/// The fields of a form.
struct Form<'a> {
    fields: &'a Map<String, Value>,
    folder: &'a Folder,
}

impl Form<'_> {
    /// A text of one line that may be missing or empty.
    fn maybe(&self, name: &str) -> Refusable<Option<String>> {
        let text = match self.fields.get(name) {
            None | Some(Value::Null) => return Ok(None),
            Some(Value::String(text)) => text.trim(),
            Some(_) => return Err(format!("{name} is not a text")),
        };
        if text.len() > LONGEST_TEXT || text.chars().any(char::is_control) {
            return Err(format!(
                "{name} is longer than a line of {LONGEST_TEXT} bytes, or has control characters"
            ));
        }
        Ok(Some(text.to_owned()).filter(|text| !text.is_empty()))
    }

    fn text(&self, name: &str) -> Refusable<String> {
        self.maybe(name)?.ok_or_else(|| format!("{} is missing", name.replace('_', " ")))
    }

    /// A text of many lines.
    fn long_text(&self, name: &str) -> Refusable<String> {
        match self.fields.get(name) {
            Some(Value::String(text)) if text.trim().is_empty() => Err(format!("{name} is missing")),
            Some(Value::String(text)) if text.len() > LONGEST_SQL => {
                Err(format!("{name} is longer than {LONGEST_SQL} bytes"))
            }
            Some(Value::String(text)) => Ok(text.trim().to_owned()),
            _ => Err(format!("{name} is missing")),
        }
    }

    fn maybe_choice(&self, name: &str, choices: &[&'static str]) -> Refusable<Option<&'static str>> {
        let Some(given) = self.maybe(name)? else { return Ok(None) };
        match choices.iter().find(|one| **one == given) {
            Some(found) => Ok(Some(found)),
            None => Err(format!("{} is one of {}", name.replace('_', " "), choices.join(", "))),
        }
    }

    fn choice(&self, name: &str, choices: &[&'static str]) -> Refusable<&'static str> {
        let chosen = self.maybe_choice(name, choices)?;
        chosen.ok_or_else(|| format!("choose {}: {}", name.replace('_', " "), choices.join(", ")))
    }

    fn is_set(&self, name: &str) -> bool {
        self.fields.get(name) == Some(&Value::Bool(true))
    }

    fn list(&self, name: &str) -> Refusable<&[Value]> {
        match self.fields.get(name) {
            None | Some(Value::Null) => Ok(&[]),
            Some(Value::Array(list)) if list.len() <= MOST_FORM_COLUMNS => Ok(list),
            Some(Value::Array(_)) => Err(format!("{name} has more than {MOST_FORM_COLUMNS} columns")),
            Some(_) => Err(format!("{name} is not a list")),
        }
    }

    /// A path on this machine, absolute, so that the command is the same in every directory.
    fn file(&self, name: &str) -> Refusable<PathBuf> {
        let text = self.text(name)?;
        // Some systems copy a path with quotes around it.
        let text = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(&text);
        if text == "-" || text.contains("://") || text.starts_with("adbc:") {
            return Err(format!(
                "{name}: name a file of this machine; the command itself reads other places"
            ));
        }
        std::path::absolute(text).map_err(|error| format!("{name}: {error}"))
    }

    fn identity(&self) -> Refusable<PathBuf> {
        match self.maybe("identity")? {
            Some(_) => self.file("identity"),
            None => Ok(self.folder.identity()),
        }
    }

    /// The partner's public key: of one in the folder, or a file.
    fn peer(&self) -> Refusable<PathBuf> {
        match self.maybe("partner")? {
            Some(name) => self.folder.partner(&name),
            None => self.file("peer_file").map_err(|_| "choose a partner".to_owned()),
        }
    }

    /// Columns as a list of an option.
    fn columns(&self, name: &str) -> Refusable<String> {
        let names = self.list(name)?.iter().map(|column| column.as_str().map(quoted));
        let names: Option<Vec<String>> = names.collect();
        match names {
            Some(names) if !names.is_empty() && names.iter().all(|name| is_line(name)) => Ok(names.join(",")),
            _ => Err("choose at least one column".to_owned()),
        }
    }

    /// Columns with their types.
    fn keys(&self, name: &str) -> Refusable<String> {
        key_columns(self.list(name)?)
            .ok_or_else(|| "choose the column that both files have in common".to_owned())
    }
}

/// Columns of a key with their types, as an option has them; nothing where one is not a column with a type, or none is.
fn key_columns(columns: &[Value]) -> Option<String> {
    let one = |key: &Value| {
        let column = quoted(key["column"].as_str()?);
        let kind = key["type"].as_str().unwrap_or_default();
        let is_type = kind.bytes().all(|byte| byte.is_ascii_alphanumeric() || b":-_~".contains(&byte));
        let text = if kind.is_empty() || kind == "text" { column } else { format!("{column}:{kind}") };
        (is_type && is_line(&text)).then_some(text)
    };
    let columns: Option<Vec<String>> = columns.iter().map(one).collect();
    columns.filter(|columns| !columns.is_empty()).map(|columns| columns.join(","))
}

fn is_line(text: &str) -> bool {
    !text.is_empty() && text.len() <= LONGEST_TEXT && !text.chars().any(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_folder(test: impl FnOnce(&Folder)) {
        let home = tempfile::tempdir().unwrap();
        test(&Folder::open(&home.path().join("ui")).unwrap());
    }

    fn words(form: Value, folder: &Folder) -> Refusable<Vec<String>> {
        let plan = Plan::of_form(&form, folder, Path::new("/run"))?;
        Ok(plan.words.iter().map(|word| word.to_string_lossy().into_owned()).collect())
    }

    fn run(more: Value) -> Value {
        let mut form = json!({
            "kind": "run", "way": "listen", "address": "127.0.0.1:7700", "partner": "shop", "file": "/t/a.csv",
            "ask": "rows", "key": [{ "column": "mail, own", "type": "email" }], "result": "me",
        });
        form.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        form
    }

    #[test]
    fn a_form_is_a_command() {
        with_folder(|folder| {
            let own = folder.identity().display().to_string();
            let shop = folder.partner("shop").unwrap().display().to_string();
            let start = [
                "psi".to_owned(),
                "--listen=127.0.0.1:7700".to_owned(),
                format!("--identity={own}"),
                format!("--peer={shop}"),
                "--input=/t/a.csv".to_owned(),
                "--key=\"mail, own\":email".to_owned(),
            ];
            let end = |words: &[&str]| {
                let words = words.iter().map(ToString::to_string);
                Ok(start.iter().cloned().chain(words).collect::<Vec<String>>())
            };
            assert_eq!(
                words(run(json!({})), folder),
                end(&[
                    "--reveal=rows",
                    "--result=me",
                    "--output=/run/result.csv",
                    "--report=/run/report.html"
                ])
            );
            assert_eq!(
                words(
                    run(json!({ "kind": "terms", "ask": "count", "min_matches": "5", "result": "both" })),
                    folder
                ),
                end(&["--reveal=count", "--min-matches=5", "--result=both", "--dry-run"])
            );
            let sum = json!({ "ask": "sum", "owner": "me", "column": "amount", "digits": "decimal2", "result": "peer" });
            assert_eq!(
                words(run(sum), folder),
                end(&[
                    "--reveal=sum:amount:decimal2",
                    "--give=amount:decimal2",
                    "--result=peer",
                    "--report=/run/report.html"
                ])
            );
            let read = json!({ "no_header": true, "decimal_comma": true, "encoding": "windows-1252", "duplicates": "first" });
            let found = words(run(read), folder).unwrap();
            assert_eq!(
                found[5..9],
                ["--no-header", "--decimal-comma", "--encoding=windows-1252", "--duplicates=first"]
            );
            let columns = json!({ "ask": "columns", "owner": "peer", "columns": ["a", "b:c"] });
            let found = words(run(columns), folder).unwrap();
            assert!(found.contains(&"--reveal=payload:a,\"b:c\"".to_owned()), "{found:?}");
        });
    }

    #[test]
    fn a_service_is_asked_for_lookups_and_for_answers() {
        with_folder(|folder| {
            let of = |more: Value| {
                let form = run(json!({ "way": "connect", "job": "j", "terms": "ab", "kind": "request" }));
                let mut form = form.as_object().unwrap().clone();
                form.extend(more.as_object().unwrap().clone());
                let plan = Plan::of_form(&json!(form), folder, Path::new("/run"))?;
                let words: Vec<String> =
                    plan.words.iter().skip(4).map(|word| word.to_string_lossy().into_owned()).collect();
                Ok::<_, String>((words, plan))
            };
            let end = [
                "--terms=ab".to_owned(),
                "--yes".to_owned(),
                format!("--records={}", folder.records().display()),
            ];
            let (words, plan) = of(json!({
                "asks": true, "question": "by_town", "result": "me", "min_group": "50", "reveal": "question",
                "set": [{ "name": "least", "value": "-5" }, { "name": "town", "value": "Bonn = B" }],
            }))
            .unwrap();
            let asked = [
                "--input=/t/a.csv",
                "--result=me",
                "--question=by_town",
                "--set=least=-5",
                "--set=town=Bonn = B",
                "--min-group=50",
                "--security=semi-honest",
            ];
            let all = [
                &asked.map(str::to_owned)[..],
                &end,
                &["--output=/run/result.csv", "--", "j"].map(str::to_owned),
            ]
            .concat();
            assert_eq!((words, plan.outputs), (all, vec![RESULT_FILE.to_owned()]));
            let (words, plan) =
                of(json!({ "asks": true, "sql": "SELECT 1;\n--x", "result": "peer" })).unwrap();
            assert!(words.contains(&"--sql-file=/run/question.sql".to_owned()), "{words:?}");
            assert!(plan.outputs.is_empty() && plan.files[0].1 == "SELECT 1;\n--x");
            let key = "--key=\"mail, own\":email";
            let (words, plan) =
                of(json!({ "tags": "/t/x.tags", "values": ["a@x.example", "--yes"] })).unwrap();
            let asked = [key, "--tags=/t/x.tags", "--value=a@x.example", "--value=--yes"];
            let all = [&asked.map(str::to_owned)[..], &end, &["--", "j"].map(str::to_owned)].concat();
            assert_eq!((words, plan.outputs.len()), (all, 0));
            let (words, plan) = of(json!({ "tags": "/t/x.tags", "values": [] })).unwrap();
            assert_eq!(words[..3], ["--input=/t/a.csv", key, "--tags=/t/x.tags"]);
            assert_eq!(plan.outputs, [RESULT_FILE]);
            for wrong in [
                json!({ "asks": true }),
                json!({ "asks": true, "question": "q", "set": [{ "name": "", "value": "1" }] }),
                json!({ "asks": true, "question": "q", "set": [{ "name": "a", "value": "1\n" }] }),
                json!({ "asks": true, "question": "q", "set": [{ "name": "a" }] }),
                json!({ "tags": "/t/x.tags", "values": [""] }),
                json!({ "tags": "/t/x.tags", "values": "a" }),
            ] {
                assert!(of(wrong.clone()).is_err(), "{wrong}");
            }
        });
    }

    #[test]
    fn each_further_identifier_is_an_option_of_its_own() {
        with_folder(|folder| {
            let more = json!([
                [{ "column": "tel", "type": "phone:NL" }],
                [{ "column": "last", "type": "name~1" }, { "column": "a,b", "type": "text" }],
            ]);
            let options = ["--or-key=tel:phone:NL", "--or-key=last:name~1,\"a,b\""];
            for kind in ["run", "terms", "check", "request"] {
                let form =
                    run(json!({ "kind": kind, "or_key": more, "way": "connect", "job": "j", "terms": "0" }));
                let found = words(form, folder).unwrap();
                let at = found.iter().position(|word| word == "--key=\"mail, own\":email").unwrap();
                assert_eq!(found[at + 1..at + 3], options, "{kind}");
            }
            let wrong = json!([[], [{ "column": "a", "type": "name;x" }], "tel", [{ "type": "name" }]]);
            for one in wrong.as_array().unwrap() {
                let said = words(run(json!({ "or_key": [one] })), folder).unwrap_err();
                assert_eq!(said, "choose the columns of each further identifier", "{one}");
            }
        });
    }

    #[test]
    fn a_partner_s_key_is_replaced_only_on_purpose_and_by_one_that_came() {
        with_folder(|folder| {
            let old = folder.partner("Corner shop").unwrap();
            std::fs::write(&old, "old").unwrap();
            let form = |more: Value| {
                let mut form = json!({ "kind": "join", "name": "Corner shop", "way": "via", "address": "r:1", "code": "c" });
                form.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
                Plan::of_form(&form, folder, Path::new("/run"))
            };
            for more in [json!({}), json!({ "replace": false }), json!({ "replace": "true" })] {
                assert!(form(more).is_err_and(|said| said.contains("already")));
            }
            let plan = form(json!({ "replace": true })).unwrap();
            let new = folder.replacement("Corner shop").unwrap();
            assert!(plan.words.contains(&format!("--out={}", new.display()).into()), "{:?}", plan.words);
            assert!(plan.shown().ends_with(&format!(" && mv '{}' '{}'", new.display(), old.display())));
            std::fs::write(&new, "of a try before").unwrap();
            plan.prepare();
            assert!(!new.exists() && plan.replace().is_err());
            assert_eq!(std::fs::read(&old).unwrap(), b"old");
            std::fs::write(&new, "new").unwrap();
            plan.replace().unwrap();
            assert_eq!((std::fs::read(&old).unwrap(), new.exists()), (b"new".to_vec(), false));
        });
    }

    #[test]
    fn no_value_becomes_an_option_or_leads_out_of_the_folder() {
        with_folder(|folder| {
            for hostile in ["--overwrite", "-q", "$(touch x)", "; rm -rf /", "a' b", "--config=/etc/passwd"] {
                for field in ["address", "file", "column", "job", "code", "min_matches", "bounds"] {
                    let mut form = run(json!({ "ask": "sum", "owner": "peer", "column": "c" }));
                    form[field] = json!(hostile);
                    let found = words(form, folder).unwrap();
                    let is_own = |word: &String| {
                        word.starts_with("--") && word.contains('=') || !word.contains(hostile)
                    };
                    assert!(found.iter().all(is_own), "{found:?}");
                    assert!(found.iter().all(|word| word != hostile), "{found:?}");
                }
            }
            let join = |code: &str| {
                let form = json!({ "kind": "join", "name": "shop", "way": "connect", "address": "h:1", "code": code });
                words(form, folder).unwrap()
            };
            // Behind two hyphens nothing is an option.
            let found = join("--overwrite");
            assert_eq!(found[found.len() - 2..], ["--", "--overwrite"]);
            let partner = run(json!({ "partner": "../../x" }));
            assert!(words(partner, folder).is_err());
        });
    }

    #[test]
    fn what_is_missing_or_impossible_is_said_in_a_line() {
        with_folder(|folder| {
            for (more, what) in [
                (json!({ "kind": "rm" }), "`rm` is not a kind of form"),
                (json!({ "key": [] }), "choose the column that both files have in common"),
                (json!({ "key": [{ "column": "a", "type": "email;x" }] }), "choose the column that"),
                (json!({ "file": "" }), "file is missing"),
                (json!({ "file": "-" }), "name a file of this machine"),
                (json!({ "file": "postgresql://u:secret@h/d#q" }), "name a file of this machine"),
                (json!({ "file": "a\nb" }), "control characters"),
                (json!({ "file": 7 }), "file is not a text"),
                (json!({ "way": "insecure-plaintext" }), "way is one of listen, connect, via"),
                (json!({ "ask": "everything" }), "ask is one of"),
                (json!({ "ask": "columns", "owner": "me" }), "choose at least one column"),
                (json!({ "ask": "sum", "owner": "me" }), "column is missing"),
                (json!({ "ask": "question", "side": "ours" }), "sql is missing"),
                (json!({ "partner": null }), "choose a partner"),
            ] {
                let said = words(run(more.clone()), folder).unwrap_err();
                assert!(said.contains(what) && !said.contains("secret"), "{more}: {said}");
            }
            assert!(Plan::of_form(&json!([]), folder, Path::new("/run")).is_err());
        });
    }

    #[test]
    fn a_question_is_a_file_of_its_run() {
        with_folder(|folder| {
            let form = run(
                json!({ "ask": "question", "sql": "SELECT 1\n", "side": "theirs", "security": "semi-honest" }),
            );
            let plan = Plan::of_form(&form, folder, Path::new("/run")).unwrap();
            assert_eq!(plan.files, [(PathBuf::from("/run/question.sql"), "SELECT 1".to_owned())]);
            assert!(plan.shown().contains("--sql-file=/run/question.sql --side=theirs"), "{}", plan.shown());
            assert_eq!(plan.outputs, ["result.csv", "report.html"]);
        });
    }
}
