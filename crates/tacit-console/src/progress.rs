//! Progress on standard error: a bar for a person, lines for a program, or nothing.

use indicatif::{
    BinaryBytes, HumanCount, HumanDuration, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle,
};
use std::cell::{Cell, RefCell};
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// How progress is shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// A bar with rate and time left.
    Bar,
    /// Notes, but no bar: standard error is not a terminal.
    Notes,
    /// Lines `progress LABEL DONE TOTAL`, for a program that draws the bar itself.
    Lines,
    /// Nothing but for whom a side waits: results are for a program.
    Silent,
    /// Nothing at all.
    Quiet,
}

impl Mode {
    /// A bar where a person looks on, else notes alone.
    pub fn detect() -> Self {
        if std::io::stderr().is_terminal() { Mode::Bar } else { Mode::Notes }
    }
}

/// The style of every bar, for steps called `unit`. Figures stand only where there is something to take them from.
pub fn style(unit: &str) -> ProgressStyle {
    let bytes = unit == "B";
    let figures = move |state: &ProgressState, out: &mut dyn std::fmt::Write| {
        let (done, total) = (state.pos(), state.len().unwrap_or(0));
        // A failed write leaves the bar without figures.
        let _ = match (total, bytes) {
            (0, _) => Ok(()),
            (_, true) => write!(out, "{}/{}", BinaryBytes(done), BinaryBytes(total)),
            (_, false) => write!(out, "{}/{}", HumanCount(done), HumanCount(total)),
        };
        if done == 0 || done < total / 50 {
            return;
        }
        let left = HumanDuration(state.eta());
        let _ = match bytes {
            true => write!(out, " {}/s {left:#} left", BinaryBytes(state.per_sec() as u64)),
            false => write!(out, " {}/s {left:#} left", HumanCount(state.per_sec() as u64)),
        };
    };
    let style = ProgressStyle::with_template("{msg:>16} [{bar:32}] {percent:>3}% {figures}")
        .unwrap_or_else(|_| ProgressStyle::default_bar());
    style.with_key("figures", figures).progress_chars("=> ")
}

const LINE_EVERY: Duration = Duration::from_millis(100);

/// One task under way.
pub struct Progress {
    mode: Mode,
    label: RefCell<String>,
    bar: ProgressBar,
    printed: Cell<Option<Instant>>,
}

impl Progress {
    /// Starts a task of `total` steps called `unit`.
    pub fn new(mode: Mode, label: &str, total: u64, unit: &'static str) -> Self {
        let target = match mode {
            Mode::Bar => ProgressDrawTarget::stderr(),
            _ => ProgressDrawTarget::hidden(),
        };
        let bar = ProgressBar::with_draw_target(Some(total).filter(|t| *t > 0), target);
        bar.set_style(style(unit));
        // Nothing is drawn before the first step: until then a side may be waiting for the other, and say so itself.
        let bar = bar.with_message(label.to_owned());
        Progress { mode, label: RefCell::new(label.to_owned()), bar, printed: Cell::new(None) }
    }

    /// The task stands at `done`.
    pub fn set(&self, done: u64) {
        self.bar.set_position(done);
        self.line(done, false);
    }

    /// The task is in phase `name`, which stands at `done` of `total`.
    pub fn phase(&self, name: &str, done: u64, total: u64) {
        if *self.label.borrow() != name {
            self.label.replace(name.to_owned());
            self.printed.set(None);
            self.bar.set_message(name.to_owned());
            // Rate and time left are the phase's own.
            self.bar.reset();
        }
        self.bar.set_length(total);
        self.set(done);
    }

    /// The task is done; the bar goes away.
    pub fn finish(&self) {
        self.line(self.bar.length().unwrap_or(0), true);
        self.bar.finish_and_clear();
    }

    fn line(&self, done: u64, always: bool) {
        if self.mode != Mode::Lines {
            return;
        }
        let now = Instant::now();
        if always || self.printed.get().is_none_or(|last| now - last >= LINE_EVERY) {
            self.printed.set(Some(now));
            eprintln!(
                "progress {} {done} {}",
                self.label.borrow().replace(' ', "-"),
                self.bar.length().unwrap_or(0)
            );
        }
    }
}
