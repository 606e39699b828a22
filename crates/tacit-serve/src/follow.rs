//! The records of a service as they grow, read for a look and never written.

use crate::clock::Time;
use crate::json::hex;
use crate::records::{NO_HEAD, head_of};
use serde_json::Value;
use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::PathBuf;

/// Records that are kept to be shown.
const MOST: usize = 20;
/// Longest line that is a record.
const LONGEST_RECORD: u64 = 1 << 20;

/// What is shown of a record: nothing that opens a commitment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Short {
    pub number: u64,
    pub run: String,
    pub job: String,
    pub started: Option<Time>,
    pub outcome: String,
    pub signatures: usize,
}

/// A file of records, as far as it was read.
pub(crate) struct Follower {
    path: PathBuf,
    /// Bytes of whole lines that were read.
    read: u64,
    pub count: u64,
    pub head: [u8; 32],
    /// Oldest first.
    pub latest: VecDeque<Short>,
    pub outcomes: BTreeMap<String, u64>,
}

impl Follower {
    pub(crate) fn new(path: PathBuf) -> Self {
        Follower {
            path,
            read: 0,
            count: 0,
            head: NO_HEAD,
            latest: VecDeque::new(),
            outcomes: BTreeMap::new(),
        }
    }

    /// Reads what was added since. A file that cannot be read, or is not there yet, has nothing new.
    pub(crate) fn look(&mut self) {
        let Ok(mut file) = File::open(&self.path) else { return };
        let length = file.metadata().map_or(0, |about| about.len());
        if length < self.read {
            // Another file has taken its place.
            *self = Follower::new(std::mem::take(&mut self.path));
        }
        if length == self.read || file.seek(SeekFrom::Start(self.read)).is_err() {
            return;
        }
        let mut lines = BufReader::new(file);
        let mut line = Vec::new();
        loop {
            line.clear();
            let Ok(n) = (&mut lines).take(LONGEST_RECORD).read_until(b'\n', &mut line) else { return };
            if line.pop() != Some(b'\n') {
                // It is still being written, or is no record.
                return;
            }
            self.read += n as u64;
            self.count += 1;
            let Ok(text) = std::str::from_utf8(&line) else { continue };
            self.head = head_of(text);
            self.take(text);
        }
    }

    fn take(&mut self, text: &str) {
        let Ok(record) = serde_json::from_str::<Value>(text) else { return };
        let common = &record["common"];
        let text = |value: &Value| value.as_str().unwrap_or_default().chars().take(200).collect::<String>();
        let outcome = text(&common["outcome"]);
        *self.outcomes.entry(outcome.clone()).or_default() += 1;
        self.latest.push_back(Short {
            number: record["number"].as_u64().unwrap_or(self.count - 1),
            run: text(&common["run"]),
            job: text(&common["terms"]["job"]),
            started: common["started"].as_u64().map(Time),
            outcome,
            signatures: record["signatures"].as_object().map_or(0, |signatures| signatures.len()),
        });
        if self.latest.len() > MOST {
            self.latest.pop_front();
        }
    }

    /// The head of the chain, as records and `tacit audit` write it.
    pub(crate) fn head(&self) -> String {
        hex(&self.head)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn lines_are_taken_once_and_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("records.jsonl");
        let mut follower = Follower::new(path.clone());
        follower.look();
        assert_eq!((follower.count, follower.head), (0, NO_HEAD));
        let line = |number: usize| {
            format!(
                "{{\"common\":{{\"outcome\":\"complete\",\"run\":\"{number:x}\",\"started\":{number},\
                 \"terms\":{{\"job\":\"match\"}}}},\"number\":{number},\"signatures\":{{\"asker\":\"\"}}}}"
            )
        };
        let mut file = File::create(&path).unwrap();
        for number in 0..2 * MOST {
            let text = line(number);
            // Half a line is none.
            file.write_all(&text.as_bytes()[..20]).unwrap();
            follower.look();
            assert_eq!(follower.count, number as u64);
            file.write_all(&text.as_bytes()[20..]).unwrap();
            file.write_all(b"\n").unwrap();
            follower.look();
            assert_eq!((follower.count, follower.head), (number as u64 + 1, head_of(&text)));
        }
        assert_eq!((follower.latest.len(), follower.outcomes["complete"]), (MOST, 2 * MOST as u64));
        let last = follower.latest.back().unwrap();
        assert_eq!((last.number, last.job.as_str(), last.signatures), (2 * MOST as u64 - 1, "match", 1));
        // No record, but a line of the chain; then another file.
        file.write_all(b"\xff\xfe\n[]\n").unwrap();
        follower.look();
        assert_eq!(follower.count, 2 * MOST as u64 + 2);
        std::fs::write(&path, line(0) + "\n").unwrap();
        follower.look();
        assert_eq!((follower.count, follower.head), (1, head_of(&line(0))));
    }
}
