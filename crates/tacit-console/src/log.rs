//! What a program tells of itself while it runs, by `tracing`: lines of text or JSON, each of its level.
//!
//! An event with the field `event` is one of a service's log or of a request's course: its line of text has
//! time, level, run, peer, job and rule, out of its own fields or of the spans around it. Any other event's
//! is its message alone. An object of JSON has all fields, the level and a name.

use crate::Context;
use serde_json::{Map, Value};
use std::fmt::{Debug, Write as _};
use std::io::Write as _;
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id};
use tracing::{Event, Metadata, Subscriber};
use tracing_subscriber::layer::{self, Layer, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;

/// How much is told.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, clap::ValueEnum)]
pub enum Level {
    /// What keeps a service from doing its work.
    Error,
    /// Refusals and failures too.
    Warn,
    /// Every request too.
    #[default]
    Info,
    /// How each request goes on too.
    Debug,
}

impl From<Level> for LevelFilter {
    fn from(level: Level) -> Self {
        match level {
            Level::Error => LevelFilter::ERROR,
            Level::Warn => LevelFilter::WARN,
            Level::Info => LevelFilter::INFO,
            Level::Debug => LevelFilter::DEBUG,
        }
    }
}

/// Where lines go.
#[derive(Clone, Copy)]
pub enum Form {
    /// Text to standard error.
    Text,
    /// One JSON object a line, where results go.
    Json(Context),
}

/// Tells from now on what our crates say at `level` and above. Only the first call has an effect.
pub fn install(level: Level, form: Form) {
    let lines = Lines { most: level.into(), form };
    let _ = tracing::subscriber::set_global_default(tracing_subscriber::registry().with(lines));
}

/// The names of the fields that a line begins with, in their order.
const FIRST: [&str; 4] = ["run", "peer", "job", "rule"];

struct Lines {
    most: LevelFilter,
    form: Form,
}

/// The fields of a span or an event.
#[derive(Default)]
struct Fields(Map<String, Value>);

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().to_owned(), value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.0.insert(field.name().to_owned(), value.into());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}").into());
    }
}

impl Fields {
    fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).and_then(Value::as_str).filter(|text| !text.is_empty())
    }

    /// One line for people.
    fn line(&self, level: &str) -> String {
        let message = self.text("message").unwrap_or_default();
        let Some(event) = self.text("event") else { return message.to_owned() };
        let mut line = format!("{} {level} {event}", self.text("time").unwrap_or_default());
        for name in FIRST {
            if let Some(value) = self.text(name) {
                let _ = write!(line, " {name} {}", tacit::net::shown(value));
            }
        }
        if !message.is_empty() {
            let _ = write!(line, ": {}", tacit::net::escaped(message));
        }
        line
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Lines {
    fn enabled(&self, about: &Metadata<'_>, _: layer::Context<'_, S>) -> bool {
        about.level() <= &self.most && about.target().starts_with("tacit")
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(self.most)
    }

    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: layer::Context<'_, S>) {
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        if let Some(span) = context.span(id) {
            span.extensions_mut().insert(fields);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: layer::Context<'_, S>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        for span in context.event_scope(event).into_iter().flatten() {
            if let Some(Fields(around)) = span.extensions().get() {
                for (name, value) in around {
                    fields.0.entry(name).or_insert_with(|| value.clone());
                }
            }
        }
        let level = event.metadata().level().as_str().to_lowercase();
        // A log that nobody reads any more is no reason to end.
        match self.form {
            Form::Text => _ = writeln!(std::io::stderr().lock(), "{}", fields.line(&level)),
            Form::Json(out) => {
                if fields.text("message").is_none() {
                    fields.0.remove("message");
                }
                fields.0.insert("level".into(), level.into());
                let name = event.metadata().target().rsplit("::").next().unwrap_or_default();
                fields.0.insert("name".into(), name.into());
                let _ = out.result(&Value::Object(fields.0), "");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_what_its_event_has_and_stays_one_line() {
        let of = |pairs: &[(&str, &str)]| {
            Fields(pairs.iter().map(|(name, value)| ((*name).to_owned(), Value::from(*value))).collect())
        };
        let plain = of(&[("message", "handshake: TLS 1.3")]);
        assert_eq!(plain.line("debug"), "handshake: TLS 1.3");
        let refused = of(&[
            ("event", "refused"),
            ("time", "2026-11-23T08:45:00Z"),
            ("run", "00ff"),
            ("peer", "bob"),
            ("job", "a\nb"),
            ("rule", "allow"),
            ("message", "one\ntwo"),
        ]);
        let line = refused.line("warn");
        assert!(line.starts_with("2026-11-23T08:45:00Z warn refused run 00ff peer bob job "), "{line}");
        assert!(line.contains(" rule allow: one") && !line.contains('\n'), "{line}");
    }
}
