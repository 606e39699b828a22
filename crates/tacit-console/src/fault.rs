//! One line for every fault, in words or as JSON, an exit code for each kind, and nothing left behind.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use tacit::crypto::fence;
use tacit::data::csv::NUMBERED;
use tacit::data::values::{COMMA_SET, DECIMAL_COMMA};
use tacit::data::{csv, place};
use tacit::net::{self, Cancel, Difference};
use tacit::pool::PoolError;
use tacit::sealed::FileError;
use tacit::two_pc::{self, StateError};
use tacit::{Blame, Error, Security, psi};

/// The most bytes a key that an output to a workbook takes.
const WORKBOOK_CELL: u64 = 32_767;
/// Lines that titles above a header have, with what follows them.
const TITLE_LINES: u64 = 10;
/// Exit code of a run that a signal ended: 128 + SIGINT, as shells have it.
const INTERRUPTED: i32 = 130;

/// Files that must not outlive an unfinished run.
static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Remembers an unfinished file until [`finished`].
fn unfinished(path: &Path) {
    if let Ok(mut files) = UNFINISHED.lock() {
        files.push(path.to_owned());
    }
}

/// Forgets a file that was renamed to its name or removed.
fn finished(path: &Path) {
    if let Ok(mut files) = UNFINISHED.lock() {
        files.retain(|p| p != path);
    }
}

/// Remembers an unfinished file while it lives.
pub(crate) struct Unfinished(PathBuf);

impl Unfinished {
    /// The file at `path` must not outlive an interrupted run.
    pub(crate) fn new(path: &Path) -> Self {
        unfinished(path);
        Unfinished(path.to_owned())
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        finished(&self.0);
    }
}

fn remove_unfinished() {
    // A holder of the lock that panicked leaves a list that is still right.
    let files = UNFINISHED.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    for path in files.iter() {
        let _ = std::fs::remove_file(path);
    }
    tacit::data::object::abort_uploads();
}

/// What ends the sessions of this process at an interrupt, and whether the main thread has left them.
static SESSIONS: OnceLock<Cancel> = OnceLock::new();
static LEFT: (Mutex<bool>, Condvar) = (Mutex::new(false), Condvar::new());

/// How long an interrupt waits for the main thread to tell the peer.
const LEAVING: Duration = Duration::from_millis(500);

/// What ends a session when the user interrupts the command: for [`tacit::Session::cancel`], so that the peer hears
/// that it was an interrupt.
pub fn interrupt() -> Cancel {
    SESSIONS.get_or_init(Cancel::armed).clone()
}

/// Ends the sessions of the main thread, and waits a moment for it to leave them.
fn part() {
    let Some(sessions) = SESSIONS.get() else { return };
    sessions.interrupt();
    let left = LEFT.0.lock().unwrap_or_else(PoisonError::into_inner);
    let _ = LEFT.1.wait_timeout_while(left, LEAVING, |left| !*left);
}

/// For the main thread of a command that was interrupted: the thread that took the signal ends the process.
fn parted() -> ! {
    *LEFT.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
    LEFT.1.notify_all();
    loop {
        std::thread::park();
    }
}

/// Whether errors are JSON: the command line's `--json`, which holds for the whole process.
static JSON: AtomicBool = AtomicBool::new(false);

/// The long options of the subcommand that runs, without their dashes.
static OPTIONS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// From now on an error is one JSON object.
pub fn as_json() {
    JSON.store(true, Ordering::Relaxed);
}

/// Errors may name these options, whose names are without dashes: those of the subcommand that runs.
pub fn set_options(options: Vec<String>) {
    *OPTIONS.lock().unwrap_or_else(PoisonError::into_inner) = options;
}

/// Where this side has settings of the handshake from that nobody typed.
static ORIGINS: Mutex<Vec<(&str, String)>> = Mutex::new(Vec::new());

/// Errors say of this side's value of `setting` that it comes from there: `chosen automatically`, `from FILE`.
pub fn set_origin(setting: &'static str, origin: String) {
    ORIGINS.lock().unwrap_or_else(PoisonError::into_inner).push((setting, origin));
}

/// The difference of a setting with where this side's value comes from.
fn with_origin(one: &Difference, mut named: Difference) -> Difference {
    let origins = ORIGINS.lock().unwrap_or_else(PoisonError::into_inner);
    if let (Some(ours), Some((_, origin))) =
        (&mut named.ours, origins.iter().find(|(setting, _)| *setting == one.setting))
    {
        *ours += &format!(" ({origin})");
    }
    named
}

/// A difference as the options have it that set it on the two sides.
pub fn by_options(one: &Difference) -> Difference {
    let options = OPTIONS.lock().unwrap_or_else(PoisonError::into_inner).clone();
    set_by(&options, one)
}

/// Ends the process after printing the fault on one line.
pub fn exit_with(error: &Error) -> ! {
    if SESSIONS.get().is_some_and(Cancel::is_cancelled) {
        parted();
    }
    remove_unfinished();
    let options = OPTIONS.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let explained = Explained { error, options: &options };
    say(&explained.message(), explained.object());
    std::process::exit(exit_code(error));
}

/// One line on standard error: the message, or with `--json` the object.
fn say(message: &str, object: Value) {
    match JSON.load(Ordering::Relaxed) {
        true => crate::say(&redacted(object.to_string())),
        false => crate::say(&redacted(format!("error: {message}"))),
    }
}

/// A line without the passwords of our command line, which an error about its words may repeat.
fn redacted(mut line: String) -> String {
    let words: Vec<String> = std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    let of_proxy = words.iter().enumerate().filter_map(|(at, word)| {
        let value = match at.checked_sub(1).map(|before| &*words[before]) {
            Some("--proxy") => word,
            _ => word.strip_prefix("--proxy=")?,
        };
        net::Proxy::password(value)
    });
    for password in words.iter().filter_map(|word| place::password(word)).chain(of_proxy) {
        let quoted = json!(password).to_string();
        for form in [password, quoted.trim_matches('"')] {
            line = line.replace(&format!("{form}@"), "[redacted]@");
        }
    }
    line
}

/// What another run of this command, whose standard error was `err`, gave as its fault, in words or as JSON.
pub fn said(err: &str) -> String {
    let last = err.lines().last().unwrap_or_default();
    let object: Option<Value> = serde_json::from_str(last).ok();
    let message = object.as_ref().and_then(|object| object["error"]["message"].as_str());
    message.unwrap_or_else(|| last.trim_start_matches("error: ")).trim().to_owned()
}

/// The exit code: who can mend the fault.
pub(crate) fn exit_code(error: &Error) -> i32 {
    match error.blame() {
        Blame::Usage => 2,
        Blame::Input => 3,
        Blame::Peer => 4,
        Blame::Other => 1,
    }
}

/// Who can mend the fault, in a word.
fn blame_name(error: &Error) -> &'static str {
    match error.blame() {
        Blame::Usage => "usage",
        Blame::Input => "input",
        Blame::Peer => "peer",
        Blame::Other => "other",
    }
}

/// Settings of the handshake whose option is called otherwise: the option, and how a line has it.
const OTHER_NAMES: [(&str, &str, &str); 5] = [
    ("identifiers", "or-key", "identifiers of --key and --or-key"),
    ("channels", "threads", "--threads"),
    ("key columns", "key", "--key columns"),
    ("key types", "key", "--key types"),
    ("key labels", "key", "--key labels"),
];

/// Settings of the handshake that an option turns off.
const TURNED_OFF: [(&str, &str); 3] = [("case-fold", "no-case-fold"), ("nfc", "no-nfc"), ("trim", "no-trim")];

fn has(options: &[String], option: &str) -> bool {
    options.iter().any(|known| known == option)
}

/// Settings of the handshake that only follow from others: where one of these differs, those say nothing.
const CAUSES: [(&[&str], &[&str]); 3] = [
    (&["security", "protocol"], &["wiring"]),
    (&["aggregate"], &["function", "rows"]),
    (
        &["aggregate", "function", "program", "rows"],
        &["garbler-inputs", "input widths", "output widths", "wiring"],
    ),
];

/// Settings that no option of the same name sets.
const NO_OPTIONS: [&str; 2] = ["function", "rows"];

/// A setting as its option, where the subcommand has one for it.
fn dashed(options: &[String], setting: &str) -> String {
    if has(options, setting) && !NO_OPTIONS.contains(&setting) {
        return format!("--{setting}");
    }
    // Those of the second identifier and of further ones, such as `identifier 2 types`.
    if setting.starts_with("identifier ") && has(options, "or-key") {
        return format!("--or-key {setting}");
    }
    let other = OTHER_NAMES.iter().find(|(name, option, _)| *name == setting && has(options, option));
    other.map_or(setting, |(.., called)| called).to_owned()
}

/// A difference as the options have it that set it on the two sides.
fn set_by(options: &[String], one: &Difference) -> Difference {
    let off = |value: &Option<String>| match value.as_deref() {
        Some("true") => Some(None),
        Some("false") => Some(Some("given".to_owned())),
        _ => None,
    };
    let option = TURNED_OFF.iter().find(|(name, option)| *name == one.setting && has(options, option));
    match (option, off(&one.ours), off(&one.theirs)) {
        (Some((_, option)), Some(ours), Some(theirs)) => {
            Difference { setting: format!("--{option}"), ours, theirs }
        }
        _ => {
            // The base OT that another option implies.
            let resists = |name: &String| tacit::catalogue::require_post_quantum(name).is_ok();
            let is_implied =
                one.setting == "base-ot" && [&one.ours, &one.theirs].into_iter().flatten().any(resists);
            let by = if is_implied && has(options, "post-quantum") { " or --post-quantum" } else { "" };
            Difference { setting: dashed(options, &one.setting) + by, ..one.clone() }
        }
    }
}

/// An error of the library, which knows no options, for a user who has some.
struct Explained<'a> {
    error: &'a Error,
    options: &'a [String],
}

impl Explained<'_> {
    /// Cause and remedy on one line, with the options that set what is wrong.
    fn message(&self) -> String {
        let text = match self.error {
            Error::Parameter { name, what } => format!("{}: {what}", self.dashed(name)),
            Error::Net(net::Error::Mismatch { differences }) => other_job(differences).unwrap_or_else(|| {
                let told = self.told().into_iter();
                let told = told.map(|one| with_origin(one, set_by(self.options, one)));
                net::Error::Mismatch { differences: told.collect() }.to_string()
            }),
            Error::Net(net::Error::Role { ours, wanted, theirs }) => {
                let [ours, wanted, theirs] = [ours, wanted, theirs].map(|role| self.role(role));
                // Both sides read this, and only one is to change something.
                if ours == theirs {
                    let both =
                        if ours == "--result me" { ", or use --result both on both sides" } else { "" };
                    format!("both sides have {ours}; change it to {wanted} on one of them{both}")
                } else {
                    net::Error::Role { ours, wanted, theirs }.to_string()
                }
            }
            Error::Net(net::Error::NotRelay { address, .. }) if self.has("via") => format!(
                "something answers at {address} but is not a relay; if the peer listens there, use --connect instead \
                 of --via"
            ),
            Error::Net(net::Error::NotTacit { saw })
                if self.has("minutes") && !saw.contains("tacit relay ") =>
            {
                format!("no `tacit invite` answers there: it sent {saw}; check the host and the port")
            }
            Error::Net(net::Error::NotTacit { saw })
                if saw.starts_with("\"tacit relay ") && self.has("via") =>
            {
                "a relay answers there: give its address as --via instead of --connect".to_owned()
            }
            other => other.to_string(),
        };
        let remedy = self.remedy().map_or(String::new(), |remedy| format!("; {remedy}"));
        one_line(&(text + &remedy))
    }

    /// The error as `--json` has it.
    fn object(&self) -> Value {
        let mut object = json!({
            "code": exit_code(self.error),
            "blame": blame_name(self.error),
            "message": self.message(),
        });
        let differences = self.differences();
        if !differences.is_empty() {
            let told = |Difference { setting, ours, theirs }| json!({ "setting": setting, "here": ours, "there": theirs });
            object["differences"] = differences.into_iter().map(told).collect();
        }
        json!({ "error": object })
    }

    fn has(&self, option: &str) -> bool {
        has(self.options, option)
    }

    fn dashed(&self, setting: &str) -> String {
        dashed(self.options, setting)
    }

    /// A role as the options that give it.
    fn role(&self, role: &str) -> String {
        match role.split_once(' ') {
            Some(("result", _)) if self.has("result") && self.has("give") => format!("--{role}")
                .replace(" and gives the column", " and --give")
                .replace(" and gives no column", " without --give"),
            Some(("result", _)) if self.has("result") => format!("--{role}"),
            None if self.has("role") => format!("--role {role}"),
            _ => role.to_owned(),
        }
    }

    fn differences(&self) -> Vec<Difference> {
        self.told().into_iter().map(|one| set_by(self.options, one)).collect()
    }

    /// The differences that do not only follow from others.
    fn told(&self) -> Vec<&Difference> {
        let Error::Net(net::Error::Mismatch { differences }) = self.error else { return Vec::new() };
        let differs = |setting: &str| differences.iter().any(|one| one.setting == setting);
        let is_implied = |value: &Option<String>| {
            value.as_deref().is_some_and(|name| {
                tacit::catalogue::find(name).is_some_and(|entry| entry.security == Security::SemiHonest)
            })
        };
        let follows = |one: &&Difference| {
            if one.setting == "protocol"
                && differs("security")
                && (is_implied(&one.ours) || is_implied(&one.theirs))
            {
                return true;
            }
            CAUSES.iter().any(|(causes, all)| {
                all.contains(&&*one.setting) && causes.iter().any(|cause| differs(cause))
            })
        };
        differences.iter().filter(|one| !follows(one)).collect()
    }

    /// The options that help, where the error is not about one.
    fn remedy(&self) -> Option<String> {
        let remedy = match self.error {
            Error::Parameter { name: "insecure-plaintext", .. } => {
                "give --identity and --peer, or add --i-understand"
            }
            Error::Net(net::Error::Mismatch { differences })
                if differences.iter().any(|one| one.setting == "rows")
                    && !differences.iter().any(|one| one.setting == "aggregate") =>
            {
                "both tables need the same number of rows, in the same order"
            }
            Error::Net(net::Error::Mismatch { differences })
                if differences.iter().any(|one| one.setting == "program") =>
            {
                "the programs' texts differ, or --function, --constant or --garbler-inputs do"
            }
            Error::Net(net::Error::Mismatch { .. })
                if self.has("bits") && self.differences().iter().any(|one| one.setting == "wiring") =>
            {
                "the circuits' files differ, or --bits does"
            }
            // Not the same on both sides, but the converse.
            Error::Net(net::Error::Mismatch { differences })
                if differences.iter().any(|one| one.setting == "reveal" && is_payload(one))
                    && self.has("give") =>
            {
                "for columns, one side sets --reveal payload:COL and --result me, the other --reveal payload, --give COL \
                 and --result peer"
            }
            Error::Psi(psi::Error::NotGiven { .. }) => {
                "you ask with --reveal payload:COL, the peer gives with --give"
            }
            Error::Psi(psi::Error::AskedForMore { .. }) if self.has("give") => "see --give",
            Error::Psi(psi::Error::PeerSetTooLarge { .. }) => {
                "with --max-peer-rows, if there is memory for them"
            }
            Error::Psi(psi::Error::PeerRowsTooWide { allowed: WORKBOOK_CELL, .. }) if self.has("unfit") => {
                "cells of Excel cannot have more; name the output .csv or .parquet, or give --unfit null"
            }
            Error::Psi(psi::Error::PeerRowsTooWide { .. }) => "raise --max-cell, or ask for fewer columns",
            Error::Table(csv::Error::Title { skipped, .. }) if self.has("skip-lines") => {
                return Some(format!("--skip-lines {skipped} leaves them out"));
            }
            Error::Table(csv::Error::Unfit { .. }) if self.has("unfit") => {
                "give --unfit null to leave such cells empty"
            }
            Error::Table(csv::Error::SheetCell { what, .. })
                if self.has("error-cells") && what.contains("count as empty") =>
            {
                "--error-cells null does that"
            }
            Error::Table(csv::Error::Cell { what, .. }) | Error::Input(what)
                if self.has("decimal-comma") && what.contains(COMMA_SET) =>
            {
                "it is set by --decimal-comma"
            }
            Error::Table(csv::Error::Cell { what, .. }) | Error::Input(what)
                if self.has("decimal-comma") && what.contains(DECIMAL_COMMA) =>
            {
                "--decimal-comma does that"
            }
            Error::Input(what)
                if self.has("allow-line-ends") && what.ends_with("allow that if it is right") =>
            {
                "--allow-line-ends does that"
            }
            Error::Table(csv::Error::Empty(_)) => "see --no-header",
            Error::Table(csv::Error::Misquoted { .. }) => {
                "if quotes are data or written otherwise, see --quote and --escape"
            }
            Error::Table(csv::Error::LongRow { .. }) if self.has("max-row") => "see --max-row, and --quote",
            Error::Table(csv::Error::NoMemory { .. }) if self.has("memory") => {
                "see --memory, which takes exact types"
            }
            Error::Table(csv::Error::InvalidUtf8 { looks_like: Some(encoding), .. })
            | Error::Table(csv::Error::Encoded { encoding, .. })
                if self.has("encoding") =>
            {
                return Some(format!("try --encoding {encoding}"));
            }
            Error::Table(csv::Error::InvalidUtf8 { .. }) if self.has("encoding") => "see --encoding",
            Error::Table(csv::Error::UnequalRow { line, expected, found, .. })
                if found > expected && *line <= TITLE_LINES && self.has("skip-lines") =>
            {
                "if a title precedes the header, see --skip-lines"
            }
            Error::Table(error @ csv::Error::UnknownColumn { .. })
                if self.has("no-header") && error.to_string().contains(NUMBERED) =>
            {
                "`tacit check FILE` lists the names; --no-header reads the first line as data"
            }
            Error::Table(csv::Error::UnknownColumn { near: None, .. })
                if self.has("columns") && !self.has("key") =>
            {
                "see --columns and --delimiter"
            }
            Error::Table(csv::Error::UnknownColumn { near: None, .. }) if self.has("skip-lines") => {
                "see --key, --delimiter, and --skip-lines if lines precede the header"
            }
            Error::Table(csv::Error::UnknownColumn { near: None, .. }) => {
                "see `--key` and `--delimiter` in `tacit help psi`"
            }
            Error::TwoPc(two_pc::Error::State(
                StateError::Used | StateError::File(FileError::Other { .. }),
            )) => "see --offline",
            Error::Psi(psi::Error::DuplicateRow) => "see --duplicates",
            Error::Net(net::Error::WrongPeer { .. }) => {
                "see --peer, and ask for a new .pub file if its key changed"
            }
            Error::Net(net::Error::NoPeer { callers, .. }) if callers.contains("wrong key") => {
                "is --peer the right file?"
            }
            Error::Net(net::Error::Unreachable { reason, .. } | net::Error::NoRelay { reason, .. })
                if reason.starts_with("the proxy ") && self.has("proxy") =>
            {
                "see --proxy, HTTPS_PROXY and NO_PROXY"
            }
            Error::Net(net::Error::Unreachable { .. }) if self.has("minutes") => {
                "check the host, the port and the firewalls, and that `tacit invite --listen` still waits there: it \
                 ends after one use of its code"
            }
            Error::Net(net::Error::Timeout { .. }) if self.has("minutes") => {
                "something accepts connections there and may not be `tacit invite`: check the host and the port"
            }
            Error::Net(net::Error::Unreachable { .. }) => "is the peer listening there (--listen)?",
            Error::Ot(error) => match PoolError::of(error) {
                Some(PoolError::Position { ours, theirs }) => {
                    return Some(format!("tacit ot pool skip FILE --to {}", ours.max(theirs)));
                }
                _ => return None,
            },
            _ => return None,
        };
        Some(remedy.to_owned())
    }
}

/// Whether one side of the two reveals columns.
fn is_payload(one: &Difference) -> bool {
    [&one.ours, &one.theirs].into_iter().any(|value| value.as_deref() == Some("payload"))
}

/// What to run instead, where the two sides run different subcommands.
fn other_job(differences: &[Difference]) -> Option<String> {
    let value = |setting: &str| {
        let one = differences.iter().find(|one| one.setting == setting)?;
        Some((one.ours.as_deref()?, one.theirs.as_deref()?))
    };
    let ((ours, theirs), (our_role, their_role)) = (value(Difference::JOB)?, value(Difference::ROLE)?);
    Some(match (ours, theirs) {
        (_, "request") if their_role == "service" => {
            format!("a service answers there; use `tacit request` instead of `tacit {ours}`")
        }
        ("request", _) if our_role == "client" => {
            format!("no service answers there, but `tacit {theirs}`; use that on this side too")
        }
        _ => format!("the peer runs `tacit {theirs}`, you run `tacit {ours}`; use the same on both sides"),
    })
}

/// Longest line of an error, in characters; more is cut out of its middle.
const LONGEST_LINE: usize = 2000;

/// The text with every run of white space made one space, other characters that do not show escaped, and cut
/// if it is very long: what a peer or a file had a say in cannot fake a second line, steer the terminal or
/// fill it.
pub fn one_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let line = tacit::net::escaped(&words.join(" "));
    let count = line.chars().count();
    if count <= LONGEST_LINE {
        return line;
    }
    let half = LONGEST_LINE / 2;
    let [start, end]: [String; 2] =
        [line.chars().take(half).collect(), line.chars().skip(count - half).collect()];
    format!("{start}…{end}")
}

/// Ends the process for a reason that is no [`Error`].
fn end(code: i32, blame: &str, message: &str) -> ! {
    say(message, json!({ "error": { "code": code, "blame": blame, "message": message } }));
    std::process::exit(code);
}

/// What is wrong with a command line, on one line without the usage behind it.
pub fn cause(error: &clap::Error) -> String {
    if error.kind() == ErrorKind::MissingRequiredArgument
        && let Some(ContextValue::Strings(missing)) = error.get(ContextKind::InvalidArg)
    {
        return one_line(&match &missing[..] {
            [one] => format!("{one} is missing"),
            several => format!("missing: {}", several.join(", ")),
        });
    }
    if error.kind() == ErrorKind::UnknownArgument
        && let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidArg)
        && word.strip_prefix('-').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    {
        return one_line(&format!(
            "{} is negative; numbers of the command line are 0 or more",
            net::shown(word)
        ));
    }
    let text = error.render().to_string();
    let lines = text.lines().map(str::trim).take_while(|line| !line.starts_with("Usage:"));
    let lines = lines.filter(|line| {
        !line.is_empty() && !line.starts_with("For more information") && !line.contains(" as a value, use ")
    });
    let mut cause = String::new();
    for line in lines {
        let choices = line.strip_prefix("[possible values: ").and_then(|line| line.strip_suffix(']'));
        match choices {
            Some(choices) => cause += &format!(": use one of {choices}"),
            None if cause.is_empty() => cause += &in_bounds(line.trim_start_matches("error: ")),
            None => {
                let part = if cause.ends_with(':') { " " } else { "; " };
                cause += &format!("{part}{}", line.trim_start_matches("tip: "));
            }
        }
    }
    // A value of the command line may be of any length.
    let long = match (error.get(ContextKind::InvalidValue), error.get(ContextKind::InvalidArg)) {
        (Some(ContextValue::String(value)), _) | (_, Some(ContextValue::String(value))) => value.as_str(),
        _ => "",
    };
    if long.chars().count() > 100 {
        cause = cause.replace(long, &net::shown(long));
    }
    one_line(&cause)
}

/// Bounds as people say them: `0 is not in 1..=9` is `must be from 1 to 9`.
fn in_bounds(text: &str) -> String {
    let said = || {
        let (before, bounds) = text.rsplit_once(" is not in ")?;
        let (least, most) = bounds.split_once("..")?;
        let words = match (least, most.strip_prefix('=')) {
            ("", most) => format!("must be at most {}", most?),
            (_, Some(most)) => format!("must be from {least} to {most}"),
            (_, None) => format!("must be at least {least}"),
        };
        Some(format!("{}: {words}", before.rsplit_once(": ")?.0))
    };
    said().or_else(|| unread(text)).unwrap_or_else(|| text.to_owned())
}

/// What the standard library says of numbers that it cannot read, and what users read instead.
const UNREAD: [(&str, &str); 6] = [
    ("invalid digit found in string", "must be a whole number in digits, such as 1000"),
    ("cannot parse integer from empty string", "must be a whole number, and is empty"),
    ("number too large to fit in target type", "is too large a number"),
    ("number too small to fit in target type", "is too small a number"),
    ("invalid float literal", "must be a number, such as 0.5"),
    ("cannot parse float from empty string", "must be a number, and is empty"),
];

fn unread(text: &str) -> Option<String> {
    UNREAD.iter().find_map(|(said, words)| Some(format!("{}{words}", text.strip_suffix(said)?)))
}

/// Whether a panic ends the thread it happens on and not the process.
static OUTLIVES: AtomicBool = AtomicBool::new(false);

/// From now on a panic ends its thread alone, whose work is over; the main thread's still ends the process.
pub fn outlive_panics() {
    OUTLIVES.store(true, Ordering::Relaxed);
}

/// Makes a panic one line on standard error, and the exit code 1, unless a fence catches it or the process
/// outlives it.
pub fn install_hooks() {
    std::panic::set_hook(Box::new(|info| {
        if fence::is_caught(info) {
            return;
        }
        // The payload may have been formatted from data, so only the place is shown.
        let place = fence::place(info);
        let is_main = std::thread::current().name() == Some("main");
        if OUTLIVES.load(Ordering::Relaxed) && !is_main {
            let message = format!("internal error at {place}; its request has ended; please report it");
            say(&message, json!({ "error": { "code": 1, "blame": "other", "message": message } }));
            return;
        }
        remove_unfinished();
        end(
            1,
            "other",
            &format!(
                "internal error at {place}; nothing was written; please report it with the command you ran"
            ),
        );
    }));
}

/// Whether this run has made a key pair, which stays whatever becomes of the run.
static MADE_A_KEY: AtomicBool = AtomicBool::new(false);

/// From now on an interrupt says that a key pair was made.
pub fn made_a_key() {
    MADE_A_KEY.store(true, Ordering::Relaxed);
}

/// Does `act` at each interrupt or termination. Errors: what else hears of them already.
pub fn on_signals(act: impl FnMut() + Send + 'static) -> std::io::Result<()> {
    ctrlc::set_handler(act).map_err(std::io::Error::other)
}

/// Makes an interrupt or a termination the usual end, with the exit code 130 and this `line`; for what runs until
/// then.
pub fn stop_on_signals(line: &'static str) {
    let _ = ctrlc::set_handler(move || {
        crate::say(line);
        std::process::exit(INTERRUPTED);
    });
}

/// Makes an interrupt or a termination a clean end with the exit code 130 and this `message`; for commands that obey signals in
/// no way of their own.
pub fn end_on_signals(message: &'static str) {
    // A second handler cannot be set by anyone else, so the only failure is a system without signals.
    let _ = ctrlc::set_handler(move || {
        part();
        remove_unfinished();
        let message = match MADE_A_KEY.load(Ordering::Relaxed) {
            true => "interrupted; the key pair that was made stays; run the command again",
            false => message,
        };
        end(INTERRUPTED, "interrupted", message);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn explained(error: &Error, options: &[&str]) -> (String, Value) {
        let options: Vec<String> = options.iter().map(ToString::to_string).collect();
        let explained = Explained { error, options: &options };
        (explained.message(), explained.object())
    }

    #[test]
    fn an_error_of_each_blame_has_its_code_and_its_object() {
        let io = || std::io::Error::other("no room");
        for (error, code, blame) in [
            (Error::Usage("a".into()), 2, "usage"),
            (Error::Parameter { name: "set", what: "a".into() }, 2, "usage"),
            (Error::Input("a".into()), 3, "input"),
            (Error::file(Path::new("f"), "cannot be read", io()), 3, "input"),
            (Error::Peer("a".into()), 4, "peer"),
            (Error::Net(net::Error::Closed { cause: None }), 4, "peer"),
            (Error::Other("a".into()), 1, "other"),
        ] {
            let (message, object) = explained(&error, &[]);
            assert_eq!((exit_code(&error), object["error"]["code"].as_i64()), (code, Some(code.into())));
            assert_eq!(object["error"]["blame"], blame);
            assert_eq!(object["error"]["message"], message);
            assert!(object["error"].get("differences").is_none());
            // Another run of the command reads it again.
            let [words, object] = [format!("error: {message}"), object.to_string()];
            for line in [words, object] {
                assert_eq!(said(&format!("waiting for bob\n{line}\n")), message);
            }
        }
    }

    #[test]
    fn a_wrong_command_line_is_one_line_with_one_semicolon_at_most() {
        let command = || {
            clap::Command::new("tacit")
                .arg(clap::Arg::new("code").required(true))
                .arg(
                    clap::Arg::new("minutes")
                        .long("minutes")
                        .value_name("N")
                        .value_parser(clap::value_parser!(u64).range(1..=60)),
                )
                .arg(
                    clap::Arg::new("rows")
                        .long("rows")
                        .value_name("N")
                        .value_parser(clap::value_parser!(u64).range(1..)),
                )
                .arg(clap::Arg::new("who").long("who").value_name("WHO").value_parser(["me", "peer"]))
                .arg(clap::Arg::new("out").long("out").value_name("FILE").required(true))
        };
        let said = |line: &str| {
            let words = std::iter::once("tacit").chain(line.split(' '));
            cause(&command().try_get_matches_from(words).unwrap_err())
        };
        for (line, words) in [
            ("--out o", "<code> is missing"),
            ("--who me", "missing: --out <FILE>, <code>"),
            ("c --out o --minutes 0", "invalid value '0' for '--minutes <N>': must be from 1 to 60"),
            ("c --out o --rows 0", "invalid value '0' for '--rows <N>': must be at least 1"),
            (
                "c --out o --minutes x",
                "invalid value 'x' for '--minutes <N>': must be a whole number in digits, such as 1000",
            ),
            ("c --out o --who you", "invalid value 'you' for '--who <WHO>': use one of me, peer"),
            (
                "c --out o --minute 1",
                "unexpected argument '--minute' found; a similar argument exists: '--minutes'",
            ),
            (
                "c --out o --minutes=",
                "invalid value '' for '--minutes <N>': must be a whole number, and is empty",
            ),
            (
                "c --out o --minutes 99999999999999999999",
                "invalid value '99999999999999999999' for '--minutes <N>': is too large a number",
            ),
            ("c --out o --minutes -5", "-5 is negative; numbers of the command line are 0 or more"),
            ("c --out o --seconds", "unexpected argument '--seconds' found"),
            ("c d --out o", "unexpected argument 'd' found"),
        ] {
            assert_eq!(said(line), words);
        }
    }

    #[test]
    fn parameters_and_settings_are_called_as_the_options_that_set_them() {
        let error = Error::Parameter { name: "set", what: "goes with ferret".into() };
        assert_eq!(explained(&error, &["set"]).0, "--set: goes with ferret");
        assert_eq!(explained(&error, &[]).0, "set: goes with ferret");
        let one =
            |setting: &str| Difference { setting: setting.into(), ours: Some("1".into()), theirs: None };
        let differences = vec![one("count"), one("channels"), one("version of keys")];
        let error = Error::Net(net::Error::Mismatch { differences });
        let (message, object) = explained(&error, &["count", "threads"]);
        let said = "settings differ: --count (yours 1, peer's not given), --threads (yours 1, peer's not given), \
                    version of keys (yours 1, peer's not given); use the same on both sides";
        assert_eq!(message, said);
        let first = json!({ "setting": "--count", "here": "1", "there": null });
        assert_eq!(object["error"]["differences"][0], first);
        set_origin("up-front", "chosen automatically".to_owned());
        let error = Error::Net(net::Error::Mismatch { differences: vec![one("up-front")] });
        let (message, object) = explained(&error, &["up-front"]);
        assert!(
            message.contains("--up-front (yours 1 (chosen automatically), peer's not given);"),
            "{message}"
        );
        assert_eq!(object["error"]["differences"][0]["here"], "1");
        let role = |ours: &str, wanted: &str, theirs: &str| {
            let [ours, wanted, theirs] = [ours, wanted, theirs].map(str::to_owned);
            Error::Net(net::Error::Role { ours, wanted, theirs })
        };
        let (message, _) = explained(&role("result me", "result peer", "result me"), &["result"]);
        let said = "both sides have --result me; change it to --result peer on one of them, or use --result both on both \
                    sides";
        assert_eq!(message, said);
        let neither =
            role("result me and gives no column", "result peer and gives the column", "result peer");
        let (message, _) = explained(&neither, &["result", "give"]);
        assert!(message.contains("(yours --result me without --give, peer's"), "{message}");
        assert!(message.contains("restart the peer with --result peer and --give"), "{message}");
        let (message, _) = explained(&role("sender", "receiver", "sender"), &["role"]);
        assert_eq!(message, "both sides have --role sender; change it to --role receiver on one of them");
    }
}
