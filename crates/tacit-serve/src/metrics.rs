//! Figures of a running service for Prometheus, and whether it is well, over HTTP on this machine alone.
//!
//! `GET /metrics` and `GET /healthz`, one answer a connection, nothing else: no figure names a peer, a run or
//! a job.

use crate::http::{self, Answer, Port, Question};
use crate::log::Event;
use crate::slots::Slots;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// What Prometheus knows its text format by.
const EXPOSITION: &str = "text/plain; version=0.0.4; charset=utf-8";

/// What is counted.
#[derive(Default)]
pub struct Metrics {
    counts: Mutex<Counts>,
    /// Whether the service takes nothing new any more.
    pub draining: AtomicBool,
    /// Whether no run can be charged.
    pub stuck: AtomicBool,
    /// Seconds that the clock is behind the latest charge.
    pub behind: AtomicU64,
    /// Whether the relay can be reached, of a service that waits at one.
    relay: Mutex<Option<bool>>,
}

#[derive(Default)]
struct Counts {
    events: BTreeMap<&'static str, u64>,
    refusals: BTreeMap<&'static str, u64>,
    strangers: BTreeMap<&'static str, u64>,
}

impl Metrics {
    /// Counts an event.
    pub fn count(&self, event: &Event) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        *counts.events.entry(event.what).or_default() += 1;
        if let Some(rule) = event.rule {
            *counts.refusals.entry(rule).or_default() += 1;
        }
    }

    /// Counts a connection that was no peer's. Says something when their number has doubled: how many, of
    /// which kinds.
    pub(crate) fn count_stranger(&self, reason: &'static str) -> Option<String> {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        *counts.strangers.entry(reason).or_default() += 1;
        let total: u64 = counts.strangers.values().sum();
        let kinds: Vec<String> =
            counts.strangers.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
        total.is_power_of_two().then(|| format!("{total} so far: {}", kinds.join(", ")))
    }

    /// Notes whether the relay can be reached at which the service waits.
    pub(crate) fn relay(&self, is_reached: bool) {
        *self.relay.lock().unwrap_or_else(PoisonError::into_inner) = Some(is_reached);
    }

    /// All figures, in the text format of Prometheus.
    fn text(&self, slots: &Slots) -> String {
        let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let mut out = String::new();
        let head =
            |name: &str, kind: &str, help: &str| format!("# HELP {name} {help}\n# TYPE {name} {kind}\n");
        out += &head("tacit_events_total", "counter", "Lines of the log, by event.");
        for (what, count) in &counts.events {
            out += &format!("tacit_events_total{{event=\"{what}\"}} {count}\n");
        }
        out += &head("tacit_refusals_total", "counter", "Requests that were refused, by rule.");
        for (rule, count) in &counts.refusals {
            out += &format!("tacit_refusals_total{{rule=\"{rule}\"}} {count}\n");
        }
        let help = "Connections that were not a peer's, by reason.";
        out += &head("tacit_strangers_total", "counter", help);
        for (reason, count) in &counts.strangers {
            out += &format!("tacit_strangers_total{{reason=\"{reason}\"}} {count}\n");
        }
        out += &head("tacit_requests", "gauge", "Requests being served.");
        out += &format!("tacit_requests {}\n", slots.visits());
        let words = "Seconds that the clock is behind the latest charge.";
        out += &head("tacit_clock_behind_seconds", "gauge", words);
        out += &format!("tacit_clock_behind_seconds {}\n", self.behind.load(Ordering::SeqCst));
        if let Some(reached) = *self.relay.lock().unwrap_or_else(PoisonError::into_inner) {
            out += &head("tacit_relay_reached", "gauge", "1 while the service waits at its relay.");
            out += &format!("tacit_relay_reached {}\n", u8::from(reached));
        }
        out += &head("tacit_draining", "gauge", "1 if no new requests are accepted.");
        out += &format!("tacit_draining {}\n", u8::from(self.draining.load(Ordering::SeqCst)));
        out
    }

    /// Answers at `port`, on the calling thread, until `over`.
    pub fn answer(&self, port: &Port, slots: &Slots, over: &AtomicBool) {
        http::answer(port, over, &|asked| self.respond(asked, slots));
    }

    fn respond(&self, asked: &Question, slots: &Slots) -> Answer {
        let is = |flag: &AtomicBool| flag.load(Ordering::SeqCst);
        match asked.target.as_str() {
            "/metrics" => Answer { kind: EXPOSITION, ..Answer::text("200 OK", self.text(slots)) },
            "/healthz" if is(&self.draining) => Answer::text("503 Service Unavailable", "draining\n"),
            "/healthz" if is(&self.stuck) => {
                Answer::text("503 Service Unavailable", "no run can be charged: the log has the reason\n")
            }
            "/healthz" => Answer::text("200 OK", "ok\n"),
            _ => Answer::text("404 Not Found", "there are /metrics and /healthz\n"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads the text format of Prometheus as its description has it, strictly: the samples by name and
    /// labels.
    fn parse(text: &str) -> BTreeMap<String, f64> {
        assert!(text.ends_with('\n') && !text.contains('\r'), "lines end in one byte, the last one too");
        let is_name = |name: &str| {
            name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
                && !name.starts_with(|c: char| c.is_ascii_digit())
        };
        let (mut found, mut families) = (BTreeMap::new(), Vec::new());
        let mut described = None;
        for line in text.lines() {
            if let Some(help) = line.strip_prefix("# HELP ") {
                let (name, words) = help.split_once(' ').unwrap();
                assert!(is_name(name) && !name.is_empty() && !words.is_empty(), "{line}");
                described = Some(name);
            } else if let Some(kind) = line.strip_prefix("# TYPE ") {
                let (name, kind) = kind.split_once(' ').unwrap();
                assert_eq!(described.take(), Some(name), "each family has its words");
                assert!(["counter", "gauge"].contains(&kind), "{line}");
                assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
                assert!(!families.contains(&name), "a family twice: {line}");
                families.push(name);
            } else {
                let (sample, value) = line.rsplit_once(' ').unwrap();
                let (name, labels) = match sample.split_once('{') {
                    Some((name, rest)) => (name, rest.strip_suffix('}').unwrap()),
                    None => (sample, ""),
                };
                assert_eq!(families.last(), Some(&name), "samples stand together below their family: {line}");
                for label in labels.split(',').filter(|label| !label.is_empty()) {
                    let (name, value) = label.split_once('=').unwrap();
                    let value = value.strip_prefix('"').and_then(|value| value.strip_suffix('"')).unwrap();
                    assert!(is_name(name) && !value.contains(['"', '\\', '\n']), "{line}");
                }
                let value: f64 = value.parse().unwrap();
                assert!(value.is_finite() && value >= 0.0, "{line}");
                assert!(found.insert(sample.to_owned(), value).is_none(), "a sample twice: {line}");
            }
        }
        found
    }

    #[test]
    fn questions_get_their_answers() {
        let (metrics, slots) = (Metrics::default(), Slots::default());
        let mut refused = Event::new("refused", "");
        refused.rule = Some("hours");
        metrics.count(&refused);
        metrics.count(&Event::new("done", ""));
        let told: Vec<Option<String>> = (0..4).map(|_| metrics.count_stranger("silent")).collect();
        assert_eq!(told.iter().filter(|told| told.is_some()).count(), 3, "as 1, as 2 and as 4: {told:?}");
        assert_eq!(metrics.count_stranger("unknown key"), None);
        let _visit = slots.visit(9);
        let ask = |target: &str| metrics.respond(&Question { target: target.into(), host: None }, &slots);
        let said = ask("/metrics");
        assert_eq!((said.code, said.kind), ("200 OK", EXPOSITION));
        let wanted = [
            ("tacit_clock_behind_seconds", 0.0),
            ("tacit_draining", 0.0),
            ("tacit_events_total{event=\"done\"}", 1.0),
            ("tacit_events_total{event=\"refused\"}", 1.0),
            ("tacit_refusals_total{rule=\"hours\"}", 1.0),
            ("tacit_requests", 1.0),
            ("tacit_strangers_total{reason=\"silent\"}", 4.0),
            ("tacit_strangers_total{reason=\"unknown key\"}", 1.0),
        ];
        let wanted: BTreeMap<String, f64> =
            wanted.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        assert_eq!(parse(&said.body), wanted);
        assert_eq!(ask("/healthz").body, "ok\n");
        for (reached, figure) in [(false, 0.0), (true, 1.0)] {
            metrics.relay(reached);
            assert_eq!(parse(&ask("/metrics").body)["tacit_relay_reached"], figure);
        }
        metrics.stuck.store(true, Ordering::SeqCst);
        assert_eq!(ask("/healthz").code, "503 Service Unavailable");
        metrics.stuck.store(false, Ordering::SeqCst);
        assert_eq!(ask("/healthz").body, "ok\n");
        metrics.draining.store(true, Ordering::SeqCst);
        assert!(ask("/healthz").code.starts_with("503 "));
        assert!(ask("/elsewhere").code.starts_with("404 "));
    }
}
