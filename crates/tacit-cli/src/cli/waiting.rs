//! What a side says while it waits for the other: for whom, where, and since when.
//!
//! A line says so at the start. On a terminal one below it is kept up to date; elsewhere the first comes
//! again each minute. A page gets an object each second. Strangers are noted when their number has doubled,
//! so that thousands of them make few lines.

use crate::cli::fault::one_line;
use crate::cli::progress::Mode;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant, SystemTime};
use tacit::net::{Event, Observer, Party};

/// Between two lines where nothing can be written in place.
const EVERY: Duration = Duration::from_secs(60);

/// Says on standard error what happens while `peer` is awaited; nothing where `mode` is quiet or for a
/// program.
pub(crate) fn observer(mode: Mode, peer: &str) -> Observer {
    if matches!(mode, Mode::Quiet | Mode::Lines) {
        return Observer::default();
    }
    let (peer, in_place) = (one_line(peer), mode == Mode::Bar);
    let display = Mutex::new(Display::default());
    Observer::new(move |event| {
        let mut display = locked(&display);
        if mode == Mode::Objects
            && let Some(object) = object(event)
        {
            return tacit_console::say(&object.to_string());
        }
        match event {
            Event::Waiting { party, proof, address, waited, patience, obstacle } => {
                let begun = SystemTime::now().checked_sub(*waited).unwrap_or(SystemTime::UNIX_EPOCH);
                let since = display.since.get_or_insert_with(|| clock(begun)).clone();
                let what = match party {
                    Party::First => "at",
                    Party::Second => "to listen at",
                };
                let limit = patience.map_or("for ever".to_owned(), |p| format!("up to {}", in_words(p)));
                let met = obstacle.as_ref().map_or(String::new(), |o| format!(": {}", one_line(o)));
                let whom =
                    format!("waiting for {peer} ({proof}) {what} {address} since {since}, {limit}{met}");
                let still = format!("still waiting, for {}{met}", in_words(*waited));
                display.say(in_place, &whom, still);
            }
            Event::Stranger { from, what, count, .. } if count.is_power_of_two() => {
                let what = one_line(what);
                display.note(&format!(
                    "note: a connection from {from} was rejected ({count} so far): {what}; \
                                    still waiting"
                ));
            }
            Event::Vacant { address, number, vacant } => display.note(&format!(
                "note: nobody has answered with the number {number} at the relay {address} for {}: {peer} may not be there \
                 yet or be busy with another caller, or the code was mistyped, was used, has expired, or belongs to \
                 another relay; still waiting",
                in_words(*vacant)
            )),
            Event::Over => *display = Display::default(),
            _ => {}
        }
    })
}

/// What a page gets of the waiting: the peer's part in it, where, since when, and what the last attempt met; null when it
/// is over.
fn object(event: &Event) -> Option<Value> {
    let milliseconds = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    match event {
        Event::Waiting { party, address, waited, patience, obstacle, .. } => Some(json!({ "waiting": {
            "listens": *party == Party::First, "address": address, "waited_ms": milliseconds(*waited),
            "patience_ms": patience.map(milliseconds), "obstacle": obstacle.as_deref().map(one_line),
        } })),
        Event::Over => Some(json!({ "waiting": null })),
        _ => None,
    }
}

/// A holder of the lock that panicked leaves a display that is still right.
fn locked(display: &Mutex<Display>) -> MutexGuard<'_, Display> {
    display.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

#[derive(Default)]
struct Display {
    since: Option<String>,
    printed: Option<Instant>,
    bar: Option<ProgressBar>,
}

impl Display {
    fn say(&mut self, in_place: bool, whom: &str, still: String) {
        if self.is_due(in_place, Instant::now()) {
            self.printed = Some(Instant::now());
            tacit_console::say(whom);
        } else if in_place {
            let bar = self.bar.get_or_insert_with(|| {
                let style = ProgressStyle::with_template("{wide_msg}");
                let style = style.unwrap_or_else(|_| ProgressStyle::default_spinner());
                ProgressBar::new_spinner().with_style(style)
            });
            bar.set_message(still);
        }
    }

    /// Whether the whole line is to be written: at the start, and where nothing is kept up to date, again and
    /// again.
    fn is_due(&self, in_place: bool, now: Instant) -> bool {
        self.printed.is_none_or(|printed| !in_place && now.saturating_duration_since(printed) >= EVERY)
    }

    fn note(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| tacit_console::say(line)),
            None => tacit_console::say(line),
        }
    }
}

impl Drop for Display {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// The time of day, as all machines have it.
fn clock(at: SystemTime) -> String {
    let seconds = at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs() % 86_400;
    format!("{:02}:{:02}:{:02} UTC", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

fn in_words(time: Duration) -> String {
    match time.as_secs_f64().round() as u64 {
        0 => "less than 1 s".to_owned(),
        seconds if seconds >= 120 && seconds % 60 == 0 => format!("{} min", seconds / 60),
        seconds => format!("{seconds} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_comes_at_the_start_and_again_each_minute_where_it_cannot_be_kept_up_to_date() {
        let start = Instant::now();
        let mut display = Display::default();
        assert!(display.is_due(false, start) && display.is_due(true, start));
        display.printed = Some(start);
        for (seconds, due) in [(0, false), (59, false), (60, true), (600, true)] {
            let now = start + Duration::from_secs(seconds);
            assert_eq!((display.is_due(false, now), display.is_due(true, now)), (due, false), "{seconds} s");
        }
    }

    #[test]
    fn a_page_gets_whom_a_side_waits_for_and_why() {
        let waiting = Event::Waiting {
            party: Party::Second,
            proof: "no TLS".to_owned(),
            address: "shop.example:7700".to_owned(),
            waited: Duration::from_millis(1500),
            patience: None,
            obstacle: Some("Connection\nrefused".to_owned()),
        };
        let told = json!({ "waiting": {
            "listens": false, "address": "shop.example:7700", "waited_ms": 1500, "patience_ms": null,
            "obstacle": "Connection refused",
        } });
        assert_eq!(object(&waiting), Some(told));
        assert_eq!(object(&Event::Over), Some(json!({ "waiting": null })));
        let (address, number, vacant) = ("r:1".to_owned(), 7, Duration::from_secs(20));
        assert_eq!(object(&Event::Vacant { address, number, vacant }), None, "this one is a note");
    }

    #[test]
    fn times_are_told_as_people_do() {
        let noon = SystemTime::UNIX_EPOCH + Duration::from_secs(20_000 * 86_400 + 12 * 3600 + 61);
        assert_eq!(clock(noon), "12:01:01 UTC");
        for (seconds, words) in
            [(600, "10 min"), (90, "90 s"), (1, "1 s"), (0, "less than 1 s"), (3601, "3601 s")]
        {
            assert_eq!(in_words(Duration::from_secs(seconds)), words);
        }
    }
}
