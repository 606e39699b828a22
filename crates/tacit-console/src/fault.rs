//! One line for every fault, an exit code for each kind, and nothing left behind.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use tacit::{Blame, Error};

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
pub struct Unfinished(PathBuf);

impl Unfinished {
    /// The file at `path` must not outlive an interrupted run.
    pub fn new(path: &Path) -> Self {
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
}

/// Ends the process after printing the fault on one line.
pub fn exit_with(error: &Error) -> ! {
    remove_unfinished();
    eprintln!("error: {}", one_line(&error.to_string()));
    std::process::exit(exit_code(error));
}

/// The exit codes of the command's contract.
pub fn exit_code(error: &Error) -> i32 {
    match error.blame() {
        Blame::Usage => 2,
        Blame::Input => 3,
        Blame::Peer => 4,
        Blame::Other => 1,
    }
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

/// What is wrong with a command line, on one line without the usage behind it.
pub fn cause(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let cause: Vec<&str> = text.lines().take_while(|line| !line.starts_with("Usage:")).collect();
    let cause = cause.join(" ");
    let cause = cause.trim_start_matches("error: ").split(" For more information").next().unwrap_or_default();
    one_line(cause)
}

/// Makes a bug one clear line, and a signal a clean end.
pub fn install_hooks() {
    std::panic::set_hook(Box::new(|info| {
        // The payload may have been formatted from data, so only the place is shown.
        let place = info.location().map_or_else(String::new, |l| format!(" at {}:{}", l.file(), l.line()));
        remove_unfinished();
        eprintln!(
            "error: internal fault{place}; nothing was written; please report it with the command you ran"
        );
        std::process::exit(1);
    }));
    // A second handler cannot be set by anyone else, so the only failure is a system without signals.
    let _ = ctrlc::set_handler(|| {
        remove_unfinished();
        eprintln!("error: interrupted; nothing was written; run the command again on both sides");
        std::process::exit(INTERRUPTED);
    });
}
