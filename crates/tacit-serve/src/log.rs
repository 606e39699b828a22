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
}

impl Event {
    /// An event of now.
    pub fn new(what: &'static str, words: impl Into<String>) -> Self {
        Event { time: Time::now(), what, run: None, peer: None, job: None, rule: None, words: words.into() }
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
