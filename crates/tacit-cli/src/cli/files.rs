//! Which options name files, and the check before a run that no output would cost a file that is needed or in
//! use.

use clap::builder::ValueParser;
use clap::{Arg, ArgMatches, Command};
use std::any::TypeId;
use std::path::PathBuf;
use tacit::Result;
use tacit::job::psi::Resume;
use tacit_console::files::{Kind, Named, check_outputs};

/// Every option that names an output: the subcommand, the option's long name, and what it holds.
const OUTPUTS: &[(&str, &str, Kind)] = &[
    ("keygen", "out", Kind::KeyPair),
    ("init", "out", Kind::Result),
    ("invite", "out", Kind::Secret),
    ("join", "out", Kind::Secret),
    ("psi", "output", Kind::Result),
    ("psi", "output-rest", Kind::Result),
    ("psi", "output-all", Kind::Result),
    ("psi", "report", Kind::Result),
    ("psi", "spill", Kind::Folder),
    ("psi", "resume", Kind::Folder),
    ("link", "output", Kind::Result),
    ("link", "report", Kind::Result),
    ("query", "output", Kind::Result),
    ("query", "report", Kind::Result),
    ("request", "output", Kind::Result),
    ("request", "output-rest", Kind::Result),
    ("request", "output-all", Kind::Result),
    ("request", "report", Kind::Result),
    ("audit export", "output", Kind::Result),
    ("ot", "out", Kind::Result),
    ("ot", "report", Kind::Result),
    ("ot pool make", "file", Kind::Secret),
    ("ot deal", "sender", Kind::Secret),
    ("ot deal", "receiver", Kind::Secret),
    ("ot expand", "out", Kind::Result),
    ("vole", "out", Kind::Result),
    ("vole", "report", Kind::Result),
    ("triples", "out", Kind::Result),
    ("triples", "report", Kind::Result),
    ("nisc keygen", "out", Kind::KeyPair),
    ("nisc answer", "key", Kind::Secret),
    ("nisc answer", "out", Kind::Result),
    ("nisc expand", "out", Kind::Result),
    ("nisc ask", "out", Kind::Result),
    ("nisc reply", "out", Kind::Result),
    ("nisc open", "out", Kind::Result),
    ("nisc eval ask", "key", Kind::Secret),
    ("nisc eval ask", "out", Kind::Result),
    ("nisc eval reply", "out", Kind::Result),
    ("tags publish", "out", Kind::Result),
    ("tags publish", "private", Kind::Secret),
    ("tags rotate", "out", Kind::Result),
    ("tags query", "output", Kind::Result),
    ("tags query", "output-rest", Kind::Result),
    ("tags query", "output-all", Kind::Result),
    ("pair keygen", "out", Kind::Secret),
    ("pair keygen", "salt-out", Kind::Secret),
    ("pair encrypt", "output", Kind::Result),
    ("pair match", "output", Kind::Result),
    ("pair ids", "output", Kind::Result),
    ("eval", "output", Kind::Result),
    ("eval", "report", Kind::Result),
    ("eval", "offline", Kind::Secret),
    ("eval pool make", "file", Kind::Secret),
    ("circuit export", "output", Kind::Result),
    ("circuit draw", "output", Kind::Result),
    ("gateway", "state", Kind::Folder),
    ("demo", "dir", Kind::Folder),
    ("ui", "folder", Kind::Folder),
    ("man", "dir", Kind::Folder),
    ("bench report", "output", Kind::Result),
    ("bench report", "svg", Kind::Folder),
];

/// Options whose value is not a path by type, but may name a file to read.
const MAY_NAME_A_FILE: &[(&str, &str)] = &[
    ("eval", "function"),
    ("eval", "input"),
    ("nisc eval ask", "function"),
    ("nisc eval ask", "input"),
    ("nisc eval reply", "function"),
    ("nisc eval reply", "input"),
    ("nisc eval open", "function"),
    ("circuit stats", "function"),
    ("circuit export", "function"),
    ("circuit draw", "function"),
];

/// Refuses, before anything is done, a command line whose outputs would replace a file of the same command
/// line, or what stands at their place, or that cannot be written. True if an output goes to standard output.
pub(crate) fn check(command: &Command, matches: &ArgMatches) -> Result<bool> {
    let (mut outputs, mut inputs, mut goes_on) = (Vec::new(), Vec::new(), false);
    let (mut command, mut matches, mut words) = (command, matches, String::new());
    loop {
        for arg in command.get_arguments() {
            let (what, is_input) = match use_of(&words, arg) {
                Use::Output(kind) => (Some(kind), false),
                Use::Input => (None, true),
                Use::None => continue,
            };
            for path in values(matches, arg) {
                goes_on |= what == Some(Kind::Folder) && Resume::may_have_result(&path);
                match what {
                    Some(kind) => outputs.push((Named::new(&label(arg), &path), kind)),
                    None if is_input => inputs.push(Named::new(&label(arg), &path)),
                    None => {}
                }
            }
        }
        let Some((word, inner)) = matches.subcommand() else { break };
        let Some(found) = command.find_subcommand(word) else { break };
        words = if words.is_empty() { word.to_owned() } else { format!("{words} {word}") };
        (command, matches) = (found, inner);
    }
    outputs.retain(|(_, kind)| *kind != Kind::Folder);
    // A run that was killed when its result was there already, and goes on: what stands there is its own.
    if goes_on {
        outputs.retain(|(named, _)| named.is_stdout());
    }
    check_outputs(&outputs, &inputs)
}

enum Use {
    Output(Kind),
    Input,
    None,
}

fn use_of(words: &str, arg: &Arg) -> Use {
    let long = arg.get_long().unwrap_or(arg.get_id().as_str());
    if let Some((_, _, kind)) = OUTPUTS.iter().find(|(w, l, _)| *w == words && *l == long) {
        return Use::Output(*kind);
    }
    if is_path(arg.get_value_parser()) || MAY_NAME_A_FILE.contains(&(words, long)) {
        return Use::Input;
    }
    Use::None
}

fn is_path(parser: &ValueParser) -> bool {
    parser.type_id() == TypeId::of::<PathBuf>()
}

/// The paths that an option was given.
fn values(matches: &ArgMatches, arg: &Arg) -> Vec<PathBuf> {
    let id = arg.get_id().as_str();
    if let Ok(found) = matches.try_get_many::<PathBuf>(id) {
        return found.into_iter().flatten().cloned().collect();
    }
    let texts = matches.try_get_many::<String>(id).ok().flatten().into_iter().flatten();
    texts
        .flat_map(|text| [Some(text.as_str()), text.strip_prefix('@')])
        .flatten()
        .map(PathBuf::from)
        .collect()
}

/// What a user calls the option.
fn label(arg: &Arg) -> String {
    match (arg.get_long(), arg.get_value_names()) {
        (Some(long), _) => format!("--{long}"),
        (None, Some([value, ..])) => value.to_string(),
        _ => arg.get_id().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Every option that names a file to read, or one that is read and written in place.
    const INPUTS: &[&str] = &[
        "config",
        "identity",
        "peer",
        "authority",
        "certificate",
        "certificate-key",
        "successor-of",
        "pool-key", // every command with a peer
        "seal-key",
        "private", // of a publication that is made already
        "sql-file",
        "tags",
        "tags-in", // which the benchmark hands to its other process
        "input",
        "pool",
        "seed",
        "public",
        "answer",
        "choices",
        "question",
        "reply",
        "messages",
        "online",
        "file",
        "files",
        "old",
        "new",
        "key",
        "peer-keys",
        "policy",
        "records", // read, and added to
        "against",
        "against-key",
        "allow",
        "list",
        "salt",
        "pair-key",
        "publisher",
        "advertiser",
    ];

    /// Whoever adds an option that names a file says here or in `OUTPUTS` what becomes of the file.
    #[test]
    fn every_option_that_names_a_file_is_known_as_input_or_output() {
        let mut command = crate::command();
        command.build();
        let (mut rest, mut outputs) = (vec![(String::new(), &command)], BTreeSet::new());
        while let Some((words, command)) = rest.pop() {
            for arg in command.get_arguments() {
                match use_of(&words, arg) {
                    Use::Output(_) => {
                        let name = arg.get_long().unwrap_or(arg.get_id().as_str());
                        outputs.insert((words.clone(), name.to_owned()));
                    }
                    Use::Input if is_path(arg.get_value_parser()) => {
                        let name = arg.get_long().unwrap_or(arg.get_id().as_str());
                        assert!(INPUTS.contains(&name), "tacit {words}: is {name} read or written?");
                        assert!(
                            !["out", "output", "offline", "svg"].contains(&name),
                            "tacit {words}: {name}"
                        );
                    }
                    Use::Input | Use::None => {}
                }
            }
            for inner in command.get_subcommands().filter(|inner| inner.get_name() != "help") {
                let name = inner.get_name();
                let words = if words.is_empty() { name.to_owned() } else { format!("{words} {name}") };
                rest.push((words, inner));
            }
        }
        let listed = OUTPUTS.iter().map(|(words, long, _)| (words.to_string(), long.to_string()));
        assert_eq!(outputs, listed.collect(), "an output that no command has");
    }

    #[test]
    fn every_output_is_in_the_manual() {
        let manual = include_str!("../../../../docs/cli.md");
        for (words, long, _) in OUTPUTS {
            let usage = manual.lines().filter(|line| line.starts_with("tacit") || line.starts_with("    "));
            let found = usage.collect::<Vec<_>>().join("\n");
            assert!(found.contains(&format!("--{long}")), "tacit {words} --{long}");
        }
    }
}
