//! What a service tells of itself while it runs: never a row, a key or a secret.

use crate::clock::Time;
use serde_json::{Value, json};

/// Something that happened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Event {
    /// When.
    pub time: Time,
    /// What: `started`, `refused`, `offered`, `granted`, `done`, `failed`, `reloaded` and so on.
    pub what: &'static str,
    /// The run, by the name that both sides have for it.
    pub run: Option<String>,
    /// The peer's label.
    pub peer: Option<String>,
    /// The job.
    pub job: Option<String>,
    /// The rule of a refusal.
    pub rule: Option<&'static str>,
    /// More, on one line.
    pub words: String,
    /// The same in numbers, where there are any.
    pub figures: Figures,
}

/// What a run took, as far as it is known.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Figures {
    /// Distinct keys that the asker announced.
    pub asker_keys: Option<u64>,
    /// Distinct keys of the service.
    pub service_keys: Option<u64>,
    /// The most rows that the run can reveal.
    pub most_rows: Option<u64>,
    /// How long it took.
    pub milliseconds: Option<u64>,
    /// Bytes to the peer.
    pub sent: Option<u64>,
    /// Bytes from the peer.
    pub received: Option<u64>,
}

impl Figures {
    /// These, and those of `other` where these have none.
    pub fn or(self, other: Figures) -> Figures {
        Figures {
            asker_keys: self.asker_keys.or(other.asker_keys),
            service_keys: self.service_keys.or(other.service_keys),
            most_rows: self.most_rows.or(other.most_rows),
            milliseconds: self.milliseconds.or(other.milliseconds),
            sent: self.sent.or(other.sent),
            received: self.received.or(other.received),
        }
    }
}

impl Event {
    /// An event of now.
    pub fn new(what: &'static str, words: impl Into<String>) -> Self {
        Event {
            time: Time::now(),
            what,
            run: None,
            peer: None,
            job: None,
            rule: None,
            words: words.into(),
            figures: Figures::default(),
        }
    }

    /// As one line for people.
    pub fn text(&self) -> String {
        let about = [("run", &self.run), ("peer", &self.peer), ("job", &self.job)];
        let mut line = format!("{} {}", self.time.text(), self.what);
        for (name, value) in about {
            if let Some(value) = value {
                line += &format!(" {name} {}", tacit::net::shown(value));
            }
        }
        if let Some(rule) = self.rule {
            line += &format!(" rule {rule}");
        }
        if !self.words.is_empty() {
            line += &format!(": {}", tacit::net::escaped(&self.words));
        }
        line
    }

    /// As an object for programs.
    pub fn object(&self) -> Value {
        let mut object = json!({ "name": "serve", "time": self.time.text(), "event": self.what });
        let rule = self.rule.map(str::to_owned);
        let about = [("run", &self.run), ("peer", &self.peer), ("job", &self.job), ("rule", &rule)];
        for (name, value) in about {
            if let Some(value) = value {
                object[name] = json!(value);
            }
        }
        if !self.words.is_empty() {
            object["message"] = json!(self.words);
        }
        object
    }
}

/// Whom a service tells.
pub type Log = dyn Fn(&Event) + Send + Sync;
