//! The configuration file: every option of the command line, in TOML.
//!
//! Keys at the top hold for every subcommand that has the option; a table named like a subcommand (`[psi]`,
//! `[bench.ot]`) holds for that one. What stands on the command line wins, and an option there also pushes aside the
//! ones it excludes (`--connect` a `listen` in the file). The values become arguments before clap sees them, so the
//! file and the command line cannot differ in what they allow.

use crate::cli::output;
use clap::{ArgAction, Command};
use std::io::Read;
use std::path::{Path, PathBuf};
use tacit::{Error, Result};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Options of which a run takes one: any of them on the command line hides the others of the file.
const ALTERNATIVES: &[&[&str]] =
    &[&["listen", "connect"], &["identity", "insecure-plaintext"], &["peer", "insecure-plaintext"]];

/// The arguments with those of the file named by `--config` put in front of the user's own.
pub fn merge(command: &Command, arguments: Vec<String>) -> Result<Vec<String>> {
    let Some(path) = config_path(&arguments)? else { return Ok(arguments) };
    let mut text = String::new();
    let fault = |what: String| Error::Input(format!("{}: {what}", path.display()));
    output::open(&path)?
        .read_to_string(&mut text)
        .map_err(|e| fault(format!("cannot be read: {e}; it must be TOML in UTF-8")))?;
    let root = DeTable::parse(&text).map_err(|e| {
        let line = e.span().map_or(1, |span| line_of(&text, span.start));
        fault(format!("line {line}: {}; mend the TOML", e.message()))
    })?;
    let file = File { path: &path, text: &text };

    // The subcommand's words come first, so that what the file adds belongs to the same subcommand.
    let (depth, chain) = subcommands(command, &arguments);
    let mut own = Vec::new();
    file.check(command, root.get_ref(), &mut Vec::new())?;
    let mut table = Some(root.get_ref());
    for (level, step) in chain.iter().enumerate() {
        if level > 0 {
            table = table.and_then(|t| sub_table(t, step.get_name()));
        }
        if let Some(table) = table {
            file.arguments(chain.last().unwrap_or(&command), table, &arguments, &mut own)?;
        }
    }
    let mut merged = arguments;
    merged.splice(depth..depth, own);
    Ok(merged)
}

struct File<'a> {
    path: &'a Path,
    text: &'a str,
}

impl File<'_> {
    fn fault(&self, at: usize, what: &str) -> Error {
        Error::Input(format!("{}: line {}: {what}", self.path.display(), line_of(self.text, at)))
    }

    /// Refuses keys that no option has, wherever they stand.
    fn check(&self, command: &Command, table: &DeTable<'_>, path: &mut Vec<String>) -> Result<()> {
        for (key, value) in table {
            let name: &str = key.get_ref().as_ref();
            if let DeValue::Table(inner) = value.get_ref() {
                let Some(sub) = command.find_subcommand(name) else {
                    let known: Vec<&str> = command.get_subcommands().map(Command::get_name).collect();
                    let what = format!("unknown table [{name}]; the tables are {}", known.join(", "));
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
                let what = format!("unknown key `{name}` for {place}; the keys are {}", known.join(", "));
                return Err(self.fault(key.span().start, &what));
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
        own: &mut Vec<String>,
    ) -> Result<()> {
        for (key, value) in table {
            let name: &str = key.get_ref().as_ref();
            let Some(arg) = command.get_arguments().find(|a| a.get_long() == Some(name)) else { continue };
            let alternatives =
                ALTERNATIVES.iter().filter(|set| set.contains(&name)).flat_map(|set| set.iter());
            if is_given(given, name) || alternatives.clone().any(|other| is_given(given, other)) {
                continue;
            }
            // A deeper table comes later and replaces what an upper one said.
            own.retain(|a| a != &format!("--{name}") && !a.starts_with(&format!("--{name}=")));
            let flag = matches!(arg.get_action(), ArgAction::SetTrue);
            self.values(name, flag, value, own)?;
        }
        Ok(())
    }

    fn values(
        &self,
        name: &str,
        flag: bool,
        value: &Spanned<DeValue<'_>>,
        own: &mut Vec<String>,
    ) -> Result<()> {
        let at = value.span().start;
        match (value.get_ref(), flag) {
            (DeValue::Boolean(true), true) => own.push(format!("--{name}")),
            (DeValue::Boolean(false), true) => {}
            (_, true) => return Err(self.fault(at, &format!("`{name}` must be true or false"))),
            (DeValue::Array(list), false) => {
                for item in list {
                    self.values(name, flag, item, own)?;
                }
            }
            (DeValue::String(text), false) => own.push(format!("--{name}={text}")),
            (DeValue::Integer(number), false) => own.push(format!("--{name}={number}")),
            (DeValue::Float(number), false) => own.push(format!("--{name}={number}")),
            _ => {
                return Err(self.fault(at, &format!("`{name}` must be a string, a number or a list of them")));
            }
        }
        Ok(())
    }
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
