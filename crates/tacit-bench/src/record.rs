//! A measured result as one JSON line: what every benchmark writes and every reader of results reads.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use tacit::{Error, Result};

/// One result. Fields that a file lacks are zero or empty.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Record {
    pub name: String,
    pub protocol: String,
    pub security: String,
    pub kind: String,
    /// Parameters of the protocol in a word, where it has any to choose.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub variant: String,
    pub count: u64,
    pub threads: u16,
    pub link: String,
    pub tls: bool,
    /// `processes` or `threads`.
    pub parties: String,
    pub repeat: u64,
    /// Whether every run began from nothing.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub fresh: bool,
    /// Once for all runs.
    pub setup_ms: f64,
    /// Bytes of both directions that this took.
    #[serde(skip_serializing_if = "is_zero")]
    pub setup_bytes: u64,
    /// Of each run, the part that needs no input.
    pub offline_ms: f64,
    /// Of each run, the part that waits for an input.
    pub online_ms: f64,
    pub wall_ms: f64,
    pub wall_ms_min: f64,
    pub wall_ms_max: f64,
    pub ns_per_item: f64,
    pub cpu_ms_local: f64,
    pub cpu_ms_peer: f64,
    pub bytes_sent: u64,
    pub bytes_received: u64,
    pub messages_sent: u64,
    pub messages_received: u64,
    pub rounds: u64,
    /// The larger of the two.
    pub peak_rss_bytes: u64,
    pub peak_rss_bytes_local: u64,
    pub peak_rss_bytes_peer: u64,
    pub kernels: String,
    pub commit: String,
    /// The machine's kind; results of different machines are not compared.
    pub machine: String,
    /// The limit of this machine that comes closest to the result, where one is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<String>,
    /// What the limit allows, in nanoseconds an item.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit_ns_per_item: Option<f64>,
    /// The result over the limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub times_limit: Option<f64>,
    /// Fields of one benchmark alone.
    #[serde(flatten)]
    pub more: BTreeMap<String, Value>,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Record {
    /// What was measured, apart from when and how well.
    pub(crate) fn key(&self) -> String {
        let tls = if self.tls { " tls" } else { "" };
        let parties = if self.parties == "threads" { " in threads" } else { "" };
        let fresh = if self.fresh { " fresh" } else { "" };
        let variant = if self.variant.is_empty() { String::new() } else { format!(" ({})", self.variant) };
        format!(
            "{} {}{variant} {} {} count {} threads {} link {}{tls}{parties}{fresh} kernels {}",
            self.name,
            self.protocol,
            self.security,
            self.kind,
            self.count,
            self.threads,
            self.link,
            self.kernels
        )
    }
}

/// The results in a file of JSON lines; blank lines are passed over.
pub(crate) fn read(path: &Path) -> Result<Vec<Record>> {
    let fault = |what: String| Error::Input(format!("{}: {what}", path.display()));
    let mut text = String::new();
    tacit_console::output::open(path)?
        .read_to_string(&mut text)
        .map_err(|e| fault(format!("cannot be read: {e}; it must be JSON lines in UTF-8")))?;
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(index, line)| {
            let record: Record = serde_json::from_str(line).map_err(|e| {
                fault(format!("line {}: {e}; one result of `tacit bench --json` a line", index + 1))
            })?;
            let sound = [record.wall_ms, record.wall_ms_min, record.wall_ms_max, record.ns_per_item];
            if record.name.is_empty() || sound.iter().any(|v| !v.is_finite() || *v < 0.0) {
                return Err(fault(format!("line {}: not a result of `tacit bench --json`", index + 1)));
            }
            Ok(record)
        })
        .collect()
}

/// The machine's kind in one word: the processor's maker, name, family and model, and how many threads it
/// has.
pub(crate) fn machine() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |name: &str| {
        let line = info.lines().find(|line| line.split(':').next().is_some_and(|key| key.trim() == name))?;
        line.split_once(':').map(|(_, value)| value.trim().to_owned())
    };
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
    let mut words = vec![field("model name").unwrap_or_else(|| std::env::consts::ARCH.to_owned())];
    if let (Some(family), Some(model)) = (field("cpu family"), field("model")) {
        words.push(format!("f{family}m{model}"));
    }
    words.push(format!("{threads}t"));
    let slug: String = words
        .join("-")
        .chars()
        .map(|c| if c.is_alphanumeric() { c.to_ascii_lowercase() } else { '-' })
        .collect();
    let parts: Vec<&str> = slug.split('-').filter(|part| !part.is_empty()).collect();
    parts.join("-")
}

/// Refuses a benchmark whose parties together hold `needed` bytes, where the system has fewer to give.
pub(crate) fn check_memory(what: &str, needed: u64) -> Result<()> {
    tacit_console::machine::check_memory(
        &format!("{what} with both its parties"),
        needed,
        "use a smaller --count",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A line that lacks several fields: what is stored must stay readable.
    const STORED: &str = r#"{"name":"ot","protocol":"kos","security":"malicious","kind":"cot","count":8388608,"threads":1,"link":"loopback","tls":false,"repeat":5,"setup_ms":12.5,"wall_ms":100.0,"wall_ms_min":90.0,"wall_ms_max":120.0,"ns_per_item":11.9,"cpu_ms_local":98.0,"cpu_ms_peer":99.0,"bytes_sent":10,"bytes_received":134217728,"rounds":2,"peak_rss_bytes":300000000,"kernels":"avx512","commit":"d7be8e71a9aa","gigabytes_per_second":1.5}"#;

    #[test]
    fn a_stored_line_still_reads_and_comes_back_whole() {
        let record: Record = serde_json::from_str(STORED).unwrap();
        assert_eq!((record.protocol.as_str(), record.count, record.wall_ms_max), ("kos", 8_388_608, 120.0));
        assert_eq!(record.more["gigabytes_per_second"], 1.5);
        let written: Value = serde_json::to_value(&record).unwrap();
        let stored: Value = serde_json::from_str(STORED).unwrap();
        for (field, value) in stored.as_object().unwrap() {
            assert_eq!(&written[field], value, "{field}");
        }
    }

    #[test]
    fn every_recorded_result_still_reads() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../benches/record");
        let mut results = 0;
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "jsonl") {
                results += super::read(&path).unwrap().len();
            }
        }
        assert!(results > 100, "{results}");
    }

    #[test]
    fn the_machine_is_one_plain_word() {
        let machine = machine();
        assert!(
            !machine.is_empty() && machine.chars().all(|c| c.is_ascii_alphanumeric() || c == '-'),
            "{machine}"
        );
    }
}
