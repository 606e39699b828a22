//! Runs that a client left without its last signature: counted by the day that they are charged to, so that nobody
//! makes a habit of it.

use crate::clock::Time;
use crate::file::Lines;
use crate::records::RECORDS;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use tacit::Result;

/// Days, and on each the clients with how many runs they did not sign at their end.
#[derive(Default)]
pub(crate) struct Unsigned(Mutex<BTreeMap<(u64, String), u64>>);

/// What names the client of a run, from the common part of its record: its certificate's name, or its key.
fn client(common: &Value) -> Option<&str> {
    let client = &common["client"];
    client["certificate"]["name"].as_str().or_else(|| client["key"].as_str())
}

fn is_unsigned(outcome: &str) -> bool {
    outcome.starts_with("not signed by") || outcome == "broken off"
}

impl Unsigned {
    /// Those of the records in `folder` that count for today: the day by the `clock`, and the one that charges are
    /// `counted` by, which is never before it. A record has the time of the clock alone.
    pub(crate) fn of(folder: &Path, clock: u64, counted: u64) -> Result<Self> {
        let unsigned = Unsigned::default();
        Lines::each(&folder.join(RECORDS), |line| {
            // Most lines are of other days, or of runs that were signed.
            if line.contains("\"not signed by") || line.contains("\"broken off\"") {
                let record: Value = serde_json::from_str(line).unwrap_or_default();
                let common = &record["common"];
                let day = common["started"].as_u64().map_or(0, |started| Time(started).day());
                if day >= clock && is_unsigned(common["outcome"].as_str().unwrap_or_default()) {
                    unsigned.add(common, counted);
                }
            }
        })?;
        Ok(unsigned)
    }

    /// Counts a run whose record is of this common part, and that is charged to this day.
    pub(crate) fn add(&self, common: &Value, day: u64) {
        let Some(client) = client(common) else { return };
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Yesterday's are of no use any more.
        counts.retain(|(known, _), _| *known + 1 >= day);
        *counts.entry((day, client.to_owned())).or_default() += 1;
    }

    /// How many runs of this day the client did not sign.
    pub(crate) fn count(&self, day: u64, client: &str) -> u64 {
        let counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        counts.get(&(day, client.to_owned())).copied().unwrap_or(0)
    }
}
