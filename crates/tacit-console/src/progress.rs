//! Progress on standard error: a bar for a person, lines for a program, or nothing.

use indicatif::{
    BinaryBytes, HumanCount, HumanDuration, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle,
};
use serde_json::{Value, json};
use std::fmt::Write;
use std::io::IsTerminal;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tacit::crypto::text::counted;
use tacit::job::psi::Widths;
use tacit::job::{Observer, Step};
use tacit::net::Traffic;

/// How progress is shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// A bar with what is done and the time left.
    Bar,
    /// Notes, but no bar: standard error is not a terminal.
    Notes,
    /// Lines `progress LABEL DONE TOTAL`, for a program that draws the bar itself.
    Lines,
    /// Notes, and progress as lines that are JSON objects, for a page.
    Objects,
    /// Only for whom a side waits: results are for a program.
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

/// The longest line of a bar, in columns; one less than a terminal has, so that no cursor moves on.
const COLUMNS: usize = 79;
/// Columns of the label in front, and of the bar itself.
const LABEL: usize = 16;
const BAR: usize = 20;
/// The share that must be done before the time left is shown.
const FORESEEABLE: f64 = 0.02;
/// Between two lines for a program, and two looks at what has passed.
const LINE_EVERY: Duration = Duration::from_millis(100);
const TICK: Duration = Duration::from_millis(250);

/// What is done of a task, and what there is to say of it.
#[derive(Clone, Debug, Default)]
struct View {
    done: u64,
    total: u64,
    unit: &'static str,
    /// The share of the whole task, where its steps are not all there is.
    fraction: Option<f64>,
    /// Bytes over the network, and those expected in all, or 0.
    passed: u64,
    expected: u64,
    elapsed: Duration,
}

impl View {
    /// The share that is done. What still runs is not done, whatever its steps say.
    fn fraction(&self) -> f64 {
        let share = |done: u64, total: u64| if total == 0 { 0.0 } else { done as f64 / total as f64 };
        let steps = self.fraction.unwrap_or_else(|| share(self.done, self.total));
        steps.max(share(self.passed, self.expected)).clamp(0.0, Step::LAST)
    }

    /// The seconds that are left, once enough is done to tell.
    fn seconds_left(&self) -> Option<f64> {
        let fraction = self.fraction();
        let left = self.elapsed.as_secs_f64() * (1.0 - fraction) / fraction;
        (fraction >= FORESEEABLE).then_some(left.clamp(1.0, 1e9))
    }

    /// The bar, the percentage, and as many figures as `columns` have room for: the most telling first.
    fn drawn(&self, columns: usize) -> String {
        let fraction = self.fraction();
        let filled = (fraction * BAR as f64) as usize;
        let mut line = String::from("[");
        line.extend((0..BAR).map(|at| match at.cmp(&filled) {
            std::cmp::Ordering::Less => '=',
            std::cmp::Ordering::Equal => '>',
            std::cmp::Ordering::Greater => ' ',
        }));
        // A failed write leaves the line without figures.
        let _ = write!(line, "] {:>3}%", (fraction * 100.0) as u64);
        let mut figures = Vec::new();
        if let Some(left) = self.seconds_left() {
            figures.push(format!("{:#} left", HumanDuration(Duration::from_secs_f64(left))));
        }
        if self.passed > 0 {
            figures.push(format!("{} passed", BinaryBytes(self.passed)));
        }
        if self.total > 0 {
            let (done, total) = (self.done.min(self.total), self.total);
            figures.push(match self.unit {
                "B" => format!("{}/{}", BinaryBytes(done), BinaryBytes(total)),
                unit => format!("{}/{} {unit}", HumanCount(done), HumanCount(total)).trim_end().to_owned(),
            });
        }
        for figure in figures {
            let gap = if line.ends_with('%') { "  " } else { ", " };
            if line.chars().count() + gap.len() + figure.chars().count() <= columns {
                line.push_str(gap);
                line.push_str(&figure);
            }
        }
        line
    }
}

/// The style of a bar whose steps another process counts; its message stands in front.
pub fn style(unit: &'static str) -> ProgressStyle {
    let label = COLUMNS / 3;
    let drawn = move |state: &ProgressState, out: &mut dyn Write| {
        let (done, total, elapsed) = (state.pos(), state.len().unwrap_or(0), state.elapsed());
        let view = View { done, total, unit, elapsed, ..View::default() };
        let _ = out.write_str(&view.drawn(COLUMNS - label - 1));
    };
    let style = ProgressStyle::with_template(&format!("{{msg:>{label}!}} {{drawn}}"))
        .unwrap_or_else(|_| ProgressStyle::default_bar());
    style.with_key("drawn", drawn)
}

/// What a task was last told.
struct State {
    label: String,
    view: View,
    traffic: Option<Traffic>,
    start: Instant,
    printed: Option<Instant>,
    /// The phase under way, when it began, and what had passed.
    phase: Option<(&'static str, Instant, u64)>,
}

impl State {
    /// What is done now.
    fn view(&self) -> View {
        let passed = self.traffic.as_ref().map_or(0, Traffic::bytes);
        View { passed, elapsed: self.start.elapsed(), ..self.view.clone() }
    }

    /// The line for a page.
    fn object(&self, is_over: bool) -> Value {
        let view = self.view();
        let share = if is_over { 1.0 } else { view.fraction() };
        json!({ "progress": {
            "phase": self.label, "done": view.done, "total": view.total, "unit": view.unit, "share": share,
            "seconds_left": view.seconds_left().filter(|_| !is_over), "bytes": view.passed,
        } })
    }

    fn drawn(&self) -> String {
        let view = self.view();
        let label: String = self.label.chars().take(LABEL).collect();
        format!("{label:>LABEL$} {}", view.drawn(COLUMNS - LABEL - 1))
    }
}

/// One task under way.
pub struct Progress {
    mode: Mode,
    state: Arc<Mutex<State>>,
    bar: ProgressBar,
    verbose: bool,
}

/// A holder of the lock that panicked leaves a state that is still right.
fn locked(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Progress {
    /// Whether the two sides met and agreed, so that the job began.
    pub fn has_begun(&self) -> bool {
        locked(&self.state).traffic.is_some()
    }

    /// Starts a task of `total` steps called `unit`.
    pub fn new(mode: Mode, label: &str, total: u64, unit: &'static str) -> Self {
        let target = match mode {
            Mode::Bar => ProgressDrawTarget::stderr(),
            _ => ProgressDrawTarget::hidden(),
        };
        let state = Arc::new(Mutex::new(State {
            label: label.to_owned(),
            view: View { total, unit, ..View::default() },
            traffic: None,
            start: Instant::now(),
            printed: None,
            phase: None,
        }));
        let shared = state.clone();
        let drawn = move |_: &ProgressState, out: &mut dyn Write| {
            let _ = out.write_str(&locked(&shared).drawn());
        };
        let style = ProgressStyle::with_template("{drawn}").unwrap_or_else(|_| ProgressStyle::default_bar());
        // Nothing is drawn before the first step: until then a side may be waiting for the other, and say so
        // itself.
        let bar = ProgressBar::with_draw_target(None, target).with_style(style.with_key("drawn", drawn));
        Progress { mode, state, bar, verbose: false }
    }

    /// Whether to tell the log what each phase took, in any mode.
    pub fn verbose(self, verbose: bool) -> Self {
        Progress { verbose, ..self }
    }

    /// Ends the phase under way, and begins `next` if there is one.
    fn turn(&self, state: &mut State, next: Option<&'static str>) {
        let passed = state.traffic.as_ref().map_or(0, Traffic::bytes);
        if let Some((name, since, before)) = state.phase.take()
            && self.verbose
        {
            let (took, bytes) = (since.elapsed().as_secs_f64(), passed.saturating_sub(before));
            tracing::debug!(target: "tacit", "phase {name}: {took:.3} s, {} passed", counted(bytes, "byte"));
        }
        state.phase = next.map(|name| (name, Instant::now(), passed));
    }

    /// The task stands at `done`.
    pub fn set(&self, done: u64) {
        locked(&self.state).view.done = done;
        self.bar.tick();
        self.line(false);
    }

    /// The task is done; the bar goes away.
    pub fn finish(&self) {
        {
            let mut state = locked(&self.state);
            state.view.done = state.view.total;
            self.turn(&mut state, None);
        }
        self.line(true);
        self.bar.finish_and_clear();
    }

    fn line(&self, always: bool) {
        if !matches!(self.mode, Mode::Lines | Mode::Objects) {
            return;
        }
        let (now, mut state) = (Instant::now(), locked(&self.state));
        if always || state.printed.is_none_or(|last| now - last >= LINE_EVERY) {
            state.printed = Some(now);
            if self.mode == Mode::Objects {
                return crate::say(&state.object(always).to_string());
            }
            let View { done, total, .. } = state.view;
            crate::say(&format!("progress {} {done} {total}", state.label.replace(' ', "-")));
        }
    }
}

impl Observer for Progress {
    fn opened(&self, traffic: &Traffic, expected: u64) {
        {
            let mut state = locked(&self.state);
            state.traffic = Some(traffic.clone());
            state.view.expected = expected;
            // The wait for the peer says nothing of the time left.
            state.start = Instant::now();
        }
        if self.mode == Mode::Bar {
            self.bar.enable_steady_tick(TICK);
        }
    }

    fn interrupted(&self, why: &tacit::Error) {
        if !matches!(self.mode, Mode::Silent | Mode::Quiet) {
            self.bar.suspend(|| crate::say(&format!("note: {why}; waiting for the peer to reconnect")));
        }
    }

    fn columns(&self, widths: &Widths) {
        if !matches!(self.mode, Mode::Silent | Mode::Quiet) {
            let Widths { key, held, .. } = widths;
            self.bar.suspend(|| {
                crate::say(&format!(
                    "the peer's columns: {key} per key; possible matches need {held} of memory",
                    key = counted(key, "byte"),
                    held = counted(held, "byte")
                ))
            });
        }
    }

    fn step(&self, step: &Step) {
        {
            let mut state = locked(&self.state);
            if state.phase.is_none_or(|(name, ..)| name != step.phase) {
                self.turn(&mut state, Some(step.phase));
            }
            if state.label != step.phase {
                state.label = step.phase.to_owned();
                state.printed = None;
            }
            let View { expected, .. } = state.view;
            let (done, total, unit, fraction) = (step.done, step.total, step.unit, Some(step.fraction));
            state.view = View { done, total, unit, fraction, expected, ..View::default() };
        }
        self.bar.tick();
        self.line(false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn percent(line: &str) -> u64 {
        let before = line.split('%').next().unwrap();
        before.rsplit(' ').next().unwrap().parse().unwrap()
    }

    #[test]
    fn a_line_fits_80_columns_and_never_says_that_all_is_done() {
        let sizes = [0, 1, 999, 1_048_576, 16_777_216, 1 << 40, u64::MAX];
        for done in sizes {
            for total in sizes {
                for (passed, expected) in [(0, 0), (done, total), (u64::MAX, 1), (1 << 44, 1 << 45)] {
                    for (fraction, unit) in [(None, "B"), (Some(1.0), "slots"), (Some(0.3), "")] {
                        let elapsed = Duration::from_secs(100_000);
                        let view = View { done, total, unit, fraction, passed, expected, elapsed };
                        let start = Instant::now();
                        let label = "a label longer than its columns".to_owned();
                        let state = State {
                            label,
                            view: view.clone(),
                            traffic: None,
                            start,
                            printed: None,
                            phase: None,
                        };
                        for line in [state.drawn(), view.drawn(50)] {
                            assert!(line.chars().count() < 80 && percent(&line) <= 99, "{line}");
                            assert!(!line.contains('\n') && line.contains(']'), "{line}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn bytes_move_the_bar_where_steps_say_nothing() {
        let view = |passed, fraction| View {
            fraction: Some(fraction),
            passed,
            expected: 1000,
            elapsed: Duration::from_secs(10),
            ..View::default()
        };
        assert_eq!(view(250, 0.0).fraction(), 0.25);
        assert_eq!(view(250, 0.5).fraction(), 0.5);
        assert_eq!(view(5000, 0.5).fraction(), Step::LAST);
        let line = view(250, 0.0).drawn(60);
        assert!(line.starts_with("[=====>              ]  25%"), "{line}");
        assert!(line.contains("30s left") && line.contains("250 B passed"), "{line}");
    }

    #[test]
    fn a_page_gets_what_the_bar_shows() {
        let progress = Progress::new(Mode::Objects, "waiting", 0, "keys");
        progress.opened(&Traffic::default(), 0);
        let told = |is_over| locked(&progress.state).object(is_over)["progress"].clone();
        assert_eq!((&told(false)["share"], &told(false)["seconds_left"]), (&json!(0.0), &Value::Null));
        let step =
            Step { phase: "encoding", done: 1_500, total: 3_000, unit: "keys", fraction: 0.4, bytes: 7 };
        progress.step(&step);
        let now = told(false);
        let figures = ["phase", "done", "total", "unit", "share"].map(|name| now[name].clone());
        assert_eq!(figures, [json!("encoding"), json!(1_500), json!(3_000), json!("keys"), json!(0.4)]);
        assert!(now["seconds_left"].as_f64().is_some_and(|left| left >= 1.0), "{now}");
        assert_eq!((&told(true)["share"], &told(true)["seconds_left"]), (&json!(1.0), &Value::Null));
    }

    #[test]
    fn a_job_s_steps_are_shown_with_their_phase_and_its_count() {
        let progress = Progress::new(Mode::Silent, "waiting", 0, "keys");
        let traffic = Traffic::default();
        assert!(!progress.has_begun());
        progress.opened(&traffic, 0);
        assert!(progress.has_begun());
        let step =
            Step { phase: "encoding", done: 1_500, total: 3_000, unit: "keys", fraction: 0.4, bytes: 7 };
        progress.step(&step);
        let line = locked(&progress.state).drawn();
        assert!(line.starts_with("        encoding [========>"), "{line}");
        assert!(line.contains(" 40%") && line.contains("1,500/3,000 keys"), "{line}");
        // The last phase's last step is not the end of the job.
        progress.step(&Step { phase: "comparing", done: 9, total: 9, fraction: Step::LAST, ..step });
        let line = locked(&progress.state).drawn();
        assert!(line.contains(" 99%") && line.contains("9/9 keys"), "{line}");
    }
}
