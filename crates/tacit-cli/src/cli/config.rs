//! The configuration file: every option of the command line, in TOML.
//!
//! Keys at the top hold for every subcommand that has the option; a table named like a subcommand (`[psi]`,
//! `[bench.ot]`) holds for that one. What stands on the command line wins, and an option there also hides
//! those that it excludes (`--connect` a `listen` in the file). The values become arguments before clap
//! sees them, so the file and the command line cannot differ in what they allow.

use crate::cli::help::OUTPUT_NAMES;
use crate::cli::{fault, output};
use clap::{Arg, ArgAction, Command};
use std::path::{Path, PathBuf};
use tacit::crypto::near::nearest;
use tacit::net::small;
use tacit::{Blame, Error, Result};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Largest file of options that is read, in bytes.
const LARGEST_CONFIG: u64 = 1 << 20;

/// Options of which a run takes one: any of them on the command line hides the others of the file.
const ALTERNATIVES: &[&[&str]] = &[
    &["listen", "connect", "via"],
    &["identity", "insecure-plaintext"],
    &["peer", "insecure-plaintext"],
    &OUTPUT_NAMES,
];

/// The arguments of a run, and which of them a file gave.
pub(crate) struct Merged {
    /// The user's own, with those of the file in front of them.
    pub arguments: Vec<String>,
    /// What the file gave: option, value and line.
    origins: Vec<Origin>,
    path: PathBuf,
}

/// One value of the file.
struct Origin {
    name: String,
    /// `None` for a switch.
    value: Option<String>,
    line: usize,
}

impl Merged {
    /// The fault, and if it is a usage fault that names an option or a value of the file, where that stands.
    pub(crate) fn place(&self, error: Error) -> Error {
        if error.blame() != Blame::Usage {
            return error;
        }
        let text = error.to_string();
        let by_name = |origin: &&Origin| has_word(&text, &format!("--{}", origin.name));
        let by_value = |origin: &&Origin| {
            origin.value.as_ref().is_some_and(|value| value.len() > 1 && has_word(&text, value))
        };
        match self.origins.iter().find(by_name).or_else(|| self.origins.iter().find(by_value)) {
            Some(Origin { name, line, .. }) => {
                Error::Usage(format!("{text}; `{name}` is set in {}, line {line}", self.path.display()))
            }
            None => error,
        }
    }
}

/// Whether `word` stands in `text` as a whole word.
fn has_word(text: &str, word: &str) -> bool {
    let part = |c: char| c.is_alphanumeric() || c == '-' || c == '_';
    text.match_indices(word)
        .any(|(at, _)| !text[..at].ends_with(part) && !text[at + word.len()..].starts_with(part))
}

/// The arguments with those of the file named by `--config` put in front of the user's own.
pub(crate) fn merge(command: &Command, arguments: Vec<String>) -> Result<Merged> {
    let Some(path) = config_path(&arguments)? else {
        return Ok(Merged { arguments, origins: Vec::new(), path: PathBuf::new() });
    };
    let fault = |what: String| Error::Input(format!("{}: {what}", path.display()));
    let (bytes, _) = small::read(&path, LARGEST_CONFIG).map_err(|error| {
        let is_stream = std::fs::metadata(&path).is_ok_and(|about| !about.is_file() && !about.is_dir());
        // Of a file, opening it says more.
        let opened = if is_stream { None } else { output::open(&path).err() };
        opened.unwrap_or_else(|| fault(format!("cannot be read: {error}")))
    })?;
    if bytes.len() as u64 > LARGEST_CONFIG {
        return Err(fault("larger than any configuration".into()));
    }
    let text = String::from_utf8(bytes.to_vec())
        .map_err(|e| fault(format!("cannot be read: {e}; it must be TOML in UTF-8")))?;
    let root = DeTable::parse(&text).map_err(|e| {
        let line = e.span().map_or(1, |span| line_of(&text, span.start));
        fault(format!("line {line}: {}; fix the TOML", e.message()))
    })?;
    let file = File { path: &path, text: &text };

    // The subcommand's words come first, so that what the file adds belongs to the same subcommand.
    let (depth, chain) = subcommands(command, &arguments);
    let mut origins = Vec::new();
    file.check(command, root.get_ref(), &mut Vec::new())?;
    let mut table = Some(root.get_ref());
    for (level, step) in chain.iter().enumerate() {
        if level > 0 {
            table = table.and_then(|t| sub_table(t, step.get_name()));
        }
        if let Some(table) = table {
            file.arguments(chain.last().unwrap_or(&command), table, &arguments, &mut origins)?;
        }
    }
    let own = origins.iter().map(|Origin { name, value, .. }| match value {
        None => format!("--{name}"),
        Some(value) => format!("--{name}={value}"),
    });
    let mut merged = arguments;
    merged.splice(depth..depth, own.collect::<Vec<_>>());
    Ok(Merged { arguments: merged, origins, path })
}

struct File<'a> {
    path: &'a Path,
    text: &'a str,
}

impl File<'_> {
    fn fault(&self, at: usize, what: &str) -> Error {
        Error::Usage(format!("{}: line {}: {what}", self.path.display(), line_of(self.text, at)))
    }

    /// Refuses keys that no option has and values that none of them takes, wherever they stand.
    fn check(&self, command: &Command, table: &DeTable<'_>, path: &mut Vec<String>) -> Result<()> {
        for (key, value) in table {
            let name: &str = key.get_ref().as_ref();
            if let DeValue::Table(inner) = value.get_ref() {
                let Some(sub) = command.find_subcommand(name) else {
                    let known: Vec<&str> = command.get_subcommands().map(Command::get_name).collect();
                    let what = format!("unknown table [{name}]; {}", meant(name, &known, "tables"));
                    return Err(self.fault(key.span().start, &what));
                };
                path.push(name.to_owned());
                self.check(sub, inner, path)?;
                path.pop();
            } else if !has_option(command, name) {
                let place = if path.is_empty() {
                    "any subcommand".to_owned()
                } else {
                    format!("[{}]", path.join("."))
                };
                let mut known = options(command);
                known.sort();
                known.dedup();
                let what =
                    format!("unknown setting `{name}` for {place}; {}", meant(name, &known, "settings"));
                return Err(self.fault(key.span().start, &what));
            } else {
                // Of the options of that name below, one must take the value.
                let mut found = Vec::new();
                options_named(command, name, &mut found);
                let mut faults = Vec::new();
                for arg in &found {
                    faults.extend(self.values(arg, name, value, &mut Vec::new()).err());
                }
                if faults.len() == found.len()
                    && let Some(fault) = faults.into_iter().next()
                {
                    return Err(fault);
                }
            }
        }
        Ok(())
    }

    /// The arguments of one table for `command`, less what the user gave or what a deeper table overrides.
    fn arguments(
        &self,
        command: &Command,
        table: &DeTable<'_>,
        given: &[String],
        own: &mut Vec<Origin>,
    ) -> Result<()> {
        for (key, value) in table {
            let name: &str = key.get_ref().as_ref();
            // A subcommand may be called as an option below it is: `tags`, and `--tags` of `tags query`.
            if matches!(value.get_ref(), DeValue::Table(_)) {
                continue;
            }
            let Some(arg) = command.get_arguments().find(|a| a.get_long() == Some(name)) else { continue };
            let alternatives =
                ALTERNATIVES.iter().filter(|set| set.contains(&name)).flat_map(|set| set.iter());
            if is_given(given, name) || alternatives.clone().any(|other| is_given(given, other)) {
                continue;
            }
            // A deeper table comes later and replaces what an upper one said.
            own.retain(|origin| origin.name != name);
            self.values(arg, name, value, own)?;
        }
        Ok(())
    }

    /// What the file gives for an option, each value checked.
    fn values(
        &self,
        arg: &Arg,
        name: &str,
        value: &Spanned<DeValue<'_>>,
        own: &mut Vec<Origin>,
    ) -> Result<()> {
        let at = value.span().start;
        let flag = matches!(arg.get_action(), ArgAction::SetTrue);
        let text = match (value.get_ref(), flag) {
            (DeValue::Boolean(true), true) => None,
            (DeValue::Boolean(false), true) => return Ok(()),
            (_, true) => return Err(self.fault(at, &format!("`{name}` must be true or false"))),
            (DeValue::Array(list), false) => {
                return list.iter().try_for_each(|item| self.values(arg, name, item, own));
            }
            (DeValue::String(text), false) => Some(text.to_string()),
            (DeValue::Integer(number), false) => Some(number.to_string()),
            (DeValue::Float(number), false) => Some(number.to_string()),
            _ => {
                return Err(self.fault(at, &format!("`{name}` must be a string, a number or a list of them")));
            }
        };
        if let Some(text) = &text
            && let Err(error) = alone(arg).try_get_matches_from(["--", text.as_str()])
        {
            return Err(self.fault(at, &format!("`{name}`: {}", fault::cause(&error))));
        }
        own.push(Origin { name: name.to_owned(), value: text, line: line_of(self.text, at) });
        Ok(())
    }
}

/// A command line that has the option's value and nothing else, to see whether the option takes it.
fn alone(arg: &Arg) -> Command {
    let mut value = Arg::new("value").action(ArgAction::Append).num_args(1);
    value = value.value_parser(arg.get_value_parser().clone());
    if let Some(delimiter) = arg.get_value_delimiter() {
        value = value.value_delimiter(delimiter);
    }
    if let Some(names) = arg.get_value_names() {
        value = value.value_names(names.iter().take(1).cloned().collect::<Vec<_>>());
    }
    Command::new("tacit").no_binary_name(true).disable_help_flag(true).arg(value)
}

fn sub_table<'t, 'i>(table: &'t DeTable<'i>, name: &str) -> Option<&'t DeTable<'i>> {
    table.iter().find_map(|(key, value)| match value.get_ref() {
        DeValue::Table(inner) if key.get_ref() == name => Some(inner),
        _ => None,
    })
}

/// The long names that `command` or anything below it takes, `config` itself left out.
fn options(command: &Command) -> Vec<String> {
    let own = command.get_arguments().filter(|a| !a.is_hide_set()).filter_map(|a| a.get_long());
    let mut names: Vec<String> =
        own.filter(|n| !["config", "help", "version"].contains(n)).map(str::to_owned).collect();
    names.extend(command.get_subcommands().flat_map(options));
    names
}

/// The options called `name` of `command` and of what is below it.
fn options_named<'c>(command: &'c Command, name: &str, found: &mut Vec<&'c Arg>) {
    found.extend(command.get_arguments().filter(|arg| arg.get_long() == Some(name)));
    command.get_subcommands().for_each(|inner| options_named(inner, name, found));
}

fn has_option(command: &Command, name: &str) -> bool {
    options(command).iter().any(|n| n == name)
}

fn config_path(arguments: &[String]) -> Result<Option<PathBuf>> {
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        if argument == "--" {
            break;
        }
        if let Some(path) = argument.strip_prefix("--config=") {
            return Ok(Some(path.into()));
        }
        if argument == "--config" {
            let missing = || Error::Usage("--config needs a file; see `tacit help`".into());
            return rest.next().map(|p| Some(p.into())).ok_or_else(missing);
        }
    }
    Ok(None)
}

/// How many arguments lead up to the innermost subcommand, and the commands on the way, the root first.
fn subcommands<'c>(command: &'c Command, arguments: &[String]) -> (usize, Vec<&'c Command>) {
    let mut chain = vec![command];
    let mut depth = 1;
    let mut index = 1;
    let mut current = command;
    while let Some(word) = arguments.get(index) {
        if word == "--config" {
            index += 2;
            continue;
        }
        if word == "--" {
            break;
        }
        if let Some(sub) = current.find_subcommand(word) {
            chain.push(sub);
            current = sub;
            depth = index + 1;
        } else if !word.starts_with('-') {
            break;
        }
        index += 1;
    }
    (depth, chain)
}

fn is_given(arguments: &[String], name: &str) -> bool {
    let flag = format!("--{name}");
    let with_value = format!("--{name}=");
    arguments.iter().take_while(|a| *a != "--").any(|a| *a == flag || a.starts_with(&with_value))
}

fn line_of(text: &str, at: usize) -> usize {
    text.bytes().take(at).filter(|b| *b == b'\n').count() + 1
}

/// The name that was meant, where one is near, else all of `what` there are.
fn meant<N: AsRef<str>>(name: &str, known: &[N], what: &str) -> String {
    let names = || known.iter().map(AsRef::as_ref);
    let other = names().find(|other| OUTPUT_NAMES.contains(&name) && OUTPUT_NAMES.contains(other));
    match other.or_else(|| nearest(name, names())) {
        Some(near) => format!("did you mean `{near}`?"),
        None => {
            let known: Vec<&str> = known.iter().map(AsRef::as_ref).collect();
            format!("the {what} are {}", known.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A value that the option takes, as TOML; candidates are tried, as only the option knows.
    fn value_for(arg: &Arg) -> Option<String> {
        if matches!(arg.get_action(), ArgAction::SetTrue) {
            return Some("true".to_owned());
        }
        let possible: Vec<String> =
            arg.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect();
        let hash = "0".repeat(64);
        let candidates = [
            "1",
            "64",
            "a",
            "127.0.0.1:1",
            "lan",
            "lan:1000",
            "A::B=1",
            "rows",
            "0..1",
            "utf-8",
            "gf128",
            &hash,
        ]
        .map(str::to_owned);
        let taken = |text: &String| alone(arg).try_get_matches_from(["--", text.as_str()]).is_ok();
        possible.into_iter().chain(candidates).find(taken).map(|text| format!("\"{text}\""))
    }

    /// Every long option of every subcommand is a key of the same name, in that subcommand's table and at the
    /// top.
    #[test]
    fn every_long_option_is_a_key() {
        let mut command = crate::command();
        command.build();
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("job.toml");
        let config = format!("--config={}", file.display());
        let (mut rest, mut tried) = (vec![(Vec::<String>::new(), &command)], 0);
        while let Some((words, current)) = rest.pop() {
            for inner in current.get_subcommands().filter(|inner| inner.get_name() != "help") {
                rest.push(([&words[..], &[inner.get_name().to_owned()]].concat(), inner));
            }
            for arg in current.get_arguments().filter(|arg| !arg.is_hide_set()) {
                let Some(name) = arg.get_long().filter(|n| !["help", "version", "config"].contains(n)) else {
                    continue;
                };
                let value = value_for(arg).unwrap_or_else(|| panic!("{words:?} --{name} takes none"));
                let table = if words.is_empty() { String::new() } else { format!("[{}]\n", words.join(".")) };
                for text in [format!("{table}{name} = {value}\n"), format!("{name} = {value}\n")] {
                    std::fs::write(&file, &text).unwrap();
                    let line = [&["tacit".to_owned()][..], &words, std::slice::from_ref(&config)].concat();
                    let merged = merge(&command, line).unwrap_or_else(|e| panic!("{words:?}: {text}: {e}"));
                    // A flag, and not an option that takes the word.
                    let expected = match value.as_str() {
                        "true" => format!("--{name}"),
                        text => format!("--{name}={}", text.trim_matches('"')),
                    };
                    assert!(
                        merged.arguments.contains(&expected),
                        "{words:?}: {text}: {:?}",
                        merged.arguments
                    );
                    tried += 1;
                }
            }
        }
        assert!(tried > 200, "{tried}");
    }

    /// No option takes its value from the environment.
    #[test]
    fn nothing_is_read_from_environment_variables() {
        let mut command = crate::command();
        command.build();
        let mut rest = vec![&command];
        while let Some(current) = rest.pop() {
            rest.extend(current.get_subcommands());
            for arg in current.get_arguments() {
                assert!(arg.get_env().is_none(), "{} {}", current.get_name(), arg.get_id());
            }
        }
    }

    #[test]
    fn words_are_found_whole() {
        assert!(has_word("--ot: no such protocol", "--ot") && has_word("`kso` is none", "kso"));
        assert!(!has_word("--other is wrong", "--ot") && !has_word("ksos", "kso"));
    }
}
