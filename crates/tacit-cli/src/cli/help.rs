//! Help: options under headings, and `-h` on one screen.

use clap::builder::StyledStr;
use clap::{Arg, ArgAction, Command};

/// What a command cannot run without, or hardly.
const GIVE: &str = "Required";
/// The options of the program, which every command takes.
const EVERY_COMMAND: &str = "For every command";
const LESS: &str = "Less often";
/// A command with more options of its own than these has them under headings.
const FEW_OPTIONS: usize = 8;
/// The most lines of `-h`.
const SCREEN: usize = 60;
/// The columns of `-h`, and those of its options.
const HELP_WIDTH: usize = 96;
const OPTION_WIDTH: usize = 32;

/// Where an option belongs that is not required. Those in front of the empty name are also in a `-h` that has no
/// room for all.
const HEADINGS: [(&str, &[&str]); 5] = [
    (
        GIVE,
        &["input", "key", "sql", "sql-file", "role", "count", "listen", "connect", "via", "identity", "peer"],
    ),
    (
        "Result",
        &[
            "result",
            "reveal",
            "give",
            "output",
            "output-rest",
            "output-all",
            "output-to",
            "out",
            "id-column",
            "format",
            "report",
            "",
            "min-matches",
            "min-group",
            "allow",
            "side",
            "aggregate",
            "eval",
            "duplicates",
            "unfit",
            "allow-line-ends",
            "show-refused",
            "show-keys",
            "records",
        ],
    ),
    (
        "Protection",
        &[
            "security",
            "post-quantum",
            "max-peer-rows",
            "terms",
            "yes",
            "",
            "protocol",
            "base-ot",
            "max-cell",
            "max-message",
            "bounds",
            "result-to-owner",
            "authority",
            "certificate",
            "certificate-key",
            "peer-name",
            "insecure-plaintext",
            "i-understand",
        ],
    ),
    (
        "Table",
        &[
            "columns",
            "null",
            "delimiter",
            "encoding",
            "no-header",
            "skip-lines",
            "",
            "quote",
            "escape",
            "decimal-comma",
            "binary-as-text",
            "max-row",
            "error-cells",
            "refuse-empty-keys",
            "no-nfc",
            "no-trim",
            "no-case-fold",
        ],
    ),
    ("Network", &["proxy", "threads", "connect-timeout", "timeout", "", "link"]),
];

/// In a short `-h` although they are in no list above.
const ALSO_SHORT: [&str; 6] = ["dry-run", "explain", "list", "rows", "memory", "batch"];

/// The command with its options under headings, and with texts that are wrapped once, where they are shown.
pub(crate) fn arrange(command: Command) -> Command {
    let help = Arg::new("help")
        .short('h')
        .long("help")
        .global(true)
        .action(ArgAction::Help)
        .help("Prints help: -h the most used options, --help all of them");
    let globals = |arg: Arg| if arg.is_global_set() { arg.help_heading(EVERY_COMMAND) } else { arg };
    command.disable_help_flag(true).arg(help).mut_args(globals).mut_subcommands(arrange_one)
}

fn arrange_one(command: Command) -> Command {
    let named = command.get_arguments().filter(|arg| arg.get_long().is_some() && !arg.is_hide_set()).count();
    let command = match command.get_after_help().map(StyledStr::to_string) {
        Some(text) => command.after_help(flowing(&text)),
        None => command,
    };
    let command = if named > FEW_OPTIONS { command.mut_args(under_heading) } else { command };
    let has = |name: &str| command.get_arguments().any(|arg| arg.get_long() == Some(name));
    let command = match OUTPUT_NAMES.map(has) {
        [true, true] | [false, false] => command,
        _ => command.mut_args(with_both_names),
    };
    command.mut_subcommands(arrange_one)
}

/// The two names that options for an output have: a command has one of them, and takes the other too.
pub(crate) const OUTPUT_NAMES: [&str; 2] = ["out", "output"];

fn with_both_names(arg: Arg) -> Arg {
    let other = OUTPUT_NAMES.into_iter().find(|other| {
        OUTPUT_NAMES.contains(&arg.get_long().unwrap_or_default()) && arg.get_long() != Some(other)
    });
    match other {
        Some(other) => arg.alias(other),
        None => arg,
    }
}

fn under_heading(arg: Arg) -> Arg {
    let Some(name) = arg.get_long().map(str::to_owned) else { return arg };
    let listed = HEADINGS.iter().find(|(_, names)| names.contains(&&*name));
    match listed {
        _ if arg.is_required_set() => arg.help_heading(GIVE),
        Some((heading, _)) => arg.help_heading(*heading),
        None => arg.help_heading(LESS),
    }
}

/// A text whose paragraphs are one line each, as far as they are prose: who shows it wraps it, and once.
fn flowing(text: &str) -> String {
    let mut out = String::new();
    let mut before = "";
    for line in text.lines() {
        let is_prose = |line: &str| !line.is_empty() && !line.starts_with(' ');
        let joins = is_prose(before) && is_prose(line) && !before.ends_with(':');
        out.push_str(if out.is_empty() {
            ""
        } else if joins {
            " "
        } else {
            "\n"
        });
        out.push_str(line);
        before = line;
    }
    out
}

/// What `-h` prints of a command below the program.
pub(crate) fn short(command: &Command) -> String {
    let all = render(command, |_| true);
    if all.lines().count() <= SCREEN { all } else { render(command, is_common) }
}

fn is_common(arg: &Arg) -> bool {
    let Some(name) = arg.get_long() else { return true };
    let often = |names: &[&'static str]| names.iter().take_while(|name| !name.is_empty()).any(|n| *n == name);
    arg.is_required_set() || ALSO_SHORT.contains(&name) || HEADINGS.iter().any(|(_, names)| often(names))
}

fn render(command: &Command, shown: impl Fn(&Arg) -> bool) -> String {
    let about = command.get_about().map(StyledStr::to_string).unwrap_or_default();
    let mut out = format!("{about}\n\n{}\n", command.clone().render_usage());
    let below: Vec<&Command> =
        command.get_subcommands().filter(|c| !c.is_hide_set() && c.get_name() != "help").collect();
    if !below.is_empty() {
        out += "\nCommands:\n";
        let width = below.iter().map(|c| c.get_name().len()).max().unwrap_or(0);
        for one in below {
            let about = one.get_about().map(StyledStr::to_string).unwrap_or_default();
            out += &format!("  {:width$}  {}\n", one.get_name(), brief(&about, HELP_WIDTH - width - 4));
        }
    }
    let own: Vec<&Arg> =
        command.get_arguments().filter(|arg| !arg.is_hide_set() && !arg.is_global_set()).collect();
    let heading = |arg: &Arg| match arg.get_help_heading() {
        _ if arg.is_positional() => GIVE.to_owned(),
        Some(heading) => heading.to_owned(),
        None => "Options".to_owned(),
    };
    let headings = HEADINGS.iter().map(|(heading, _)| *heading).chain(["Options", LESS]);
    let width =
        own.iter().filter(|arg| shown(arg)).map(|arg| spec(arg).len()).max().unwrap_or(0).min(OPTION_WIDTH);
    for title in headings {
        let of: Vec<&&Arg> = own.iter().filter(|arg| heading(arg) == title && shown(arg)).collect();
        if !of.is_empty() {
            out += &format!("\n{title}:\n");
        }
        for arg in of {
            let help = arg.get_help().map(StyledStr::to_string).unwrap_or_default();
            let spec = spec(arg);
            let room = HELP_WIDTH - 4 - spec.chars().count().max(width);
            out += &format!("  {spec:width$}  {}\n", brief(&help, room));
        }
    }
    let rest: Vec<String> = own
        .iter()
        .filter(|arg| !shown(arg))
        .filter_map(|arg| Some(format!("--{}", arg.get_long()?)))
        .collect();
    if !rest.is_empty() {
        out += &format!("\nAlso:\n{}", wrapped(&rest));
    }
    let after = command.get_after_help().map(StyledStr::to_string).unwrap_or_default();
    if let Some((_, examples)) = after.split_once("Examples:\n") {
        let lines: Vec<&str> = examples.lines().take_while(|line| !line.is_empty()).collect();
        // As many whole ones as there is room for.
        let mut room = SCREEN.saturating_sub(out.lines().count() + 4);
        let whole = lines.split_inclusive(|line| !line.ends_with('\\')).take_while(|one| {
            let fits = one.len() <= room;
            room = room.saturating_sub(one.len());
            fits
        });
        let shown: Vec<&str> = whole.flatten().copied().collect();
        if !shown.is_empty() {
            out += &format!("\nExamples:\n{}\n", shown.join("\n"));
        }
    }
    let name = command.get_bin_name().unwrap_or(command.get_name());
    out + &format!("\n`{name} --help` describes every option; `tacit -h` has those of every command.\n")
}

/// An option as a line has it: `--result <me|peer|both>`.
fn spec(arg: &Arg) -> String {
    let possible: Vec<String> =
        arg.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect();
    let names = arg.get_value_names().unwrap_or_default().iter().map(ToString::to_string).collect::<Vec<_>>();
    let takes = arg.get_action().takes_values();
    let value = match possible.join("|") {
        list if takes && !list.is_empty() && list.len() <= 22 => format!("<{list}>"),
        _ if takes && !names.is_empty() => format!("<{}>", names.join("> <")),
        _ => String::new(),
    };
    match (arg.get_long(), arg.get_short()) {
        (None, None) => value,
        (Some(long), _) if value.is_empty() => format!("--{long}"),
        (Some(long), _) => format!("--{long} {value}"),
        (None, Some(short)) => format!("-{short} {value}"),
    }
}

/// As much of a text as one line of `room` characters holds, up to the end of a clause where there is one.
fn brief(text: &str, room: usize) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if text.chars().count() <= room {
        return text;
    }
    let end = text.char_indices().nth(room).map_or(text.len(), |(at, _)| at);
    let head = &text[..end];
    let clause = [". ", "; ", ": "].iter().filter_map(|mark| head.rfind(mark)).max();
    match clause.or_else(|| head.rfind(" (")).or_else(|| head.rfind(", ")) {
        Some(at) => head[..at].to_owned(),
        None => format!("{} …", &head[..head.rfind(' ').unwrap_or(head.len())]),
    }
}

/// Words in lines of at most the width of `-h`.
fn wrapped(words: &[String]) -> String {
    let mut out = String::new();
    let mut line = String::from(" ");
    for word in words {
        if line.len() + 1 + word.len() > HELP_WIDTH {
            out += &line;
            out.push('\n');
            line = " ".to_owned();
        }
        line.push(' ');
        line += word;
    }
    out + &line + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_fits_on_a_screen_and_no_line_is_cut() {
        let mut command = crate::command();
        command.build();
        let (mut rest, mut wide): (Vec<&Command>, Vec<String>) =
            (command.get_subcommands().collect(), Vec::new());
        while let Some(one) = rest.pop() {
            rest.extend(one.get_subcommands().filter(|inner| inner.get_name() != "help"));
            let text = short(one);
            let name = one.get_bin_name().unwrap_or_default();
            assert!(text.lines().count() <= SCREEN, "{name}: {}\n{text}", text.lines().count());
            for line in text.lines().filter(|line| !line.starts_with("Usage:")) {
                assert!(line.chars().count() <= 110, "{name}: {line}");
            }
            // Each option is named, the program's own aside.
            for arg in one.get_arguments().filter(|arg| !arg.is_hide_set() && arg.get_long().is_some()) {
                let option = format!("--{}", arg.get_long().unwrap());
                let own = text.split("\nExamples:").next().unwrap();
                let named = own.split_whitespace().any(|word| word == option);
                let listed = own.lines().any(|line| line.trim_start().split(' ').next() == Some(&option));
                let right = if arg.is_global_set() { !listed } else { named };
                assert!(right, "{name}: {option}\n{text}");
            }
            // What is wrapped by hand, tables, is not wrapped again.
            let after = one.get_after_help().map(StyledStr::to_string).unwrap_or_default();
            let long = |line: &&str| {
                let is_table = line.starts_with(' ') && !line.starts_with("  tacit ");
                is_table && line.chars().count() > 100
            };
            wide.extend(after.lines().filter(long).map(|line| format!("{name}: {line}")));
        }
        assert!(wide.is_empty(), "{}", wide.join("\n"));
    }

    #[test]
    fn a_text_is_cut_at_the_end_of_a_clause() {
        assert_eq!(brief("Your table: CSV or more", 15), "Your table");
        assert_eq!(brief("The column, or several; repeat it", 30), "The column, or several");
        assert_eq!(brief("short", 5), "short");
        assert_eq!(brief("no end of a clause here", 12), "no end of a …");
        assert_eq!(flowing("a\nb\n\nc:\n  d\n  e\nf"), "a b\n\nc:\n  d\n  e\nf");
    }
}
