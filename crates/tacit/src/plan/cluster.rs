//! What an intersection of two clusters costs: time, traffic and money.
//!
//! Both sides are alike in this model: so many keys, so many cores that run tasks, one link between the two
//! gateways. Three things add up: what a job takes whatever its size, what the engine does with rows, and the
//! buckets, which are computed, passed on by a gateway and sent at the same time, so that the slowest counts.

use super::{Link, Machine};
use crate::catalogue::VOLE;
use crate::job::psi::bucket_places;
use crate::{Error, Result};
use tacit_crypto::text::counted;
use tacit_ot::Security;

/// Seconds that a job takes whatever its size: reading what is written, stages of the engine, the gateways'
/// meeting. This and the next two are fitted to runs of 10^5, 10^6 and 10^7 rows in 64 buckets
/// (`tools/spark/long_spark.py`), whose parts that no row changes took 18 s.
const JOB_SECONDS: f64 = 7.4;
/// Core-seconds of the engine for each of a side's rows: two readings of the table, keys made, told apart,
/// written, thrown, joined, and the result written.
const ROW_SECONDS: f64 = 10.6e-6;
/// Core-seconds of a task, beside the protocol: the engine's start of it, the interpreter's, three
/// connections, and what is forced to the gateway's disk.
const TASK_SECONDS: f64 = 0.16;
/// Bytes that a bucket takes beside the protocol's: two handshakes' share and the gateways' events.
const TASK_BYTES: f64 = 12_000.0;

/// Core-seconds of a gateway for each byte that a bucket sends in either direction.
const RELAY_SECONDS: f64 = 2.4e-9;
/// Cores of a gateway.
pub const GATEWAY_CORES: f64 = 4.0;

/// Two clusters of one kind, and what is between them.
#[derive(Clone, Copy, Debug)]
pub struct Clusters {
    /// Distinct keys of a side.
    pub keys: u64,
    /// Tasks that run at a time on each side, with one core each.
    pub executors: u64,
    /// Between the two gateways.
    pub link: Link,
    /// Against which peer.
    pub security: Security,
    /// A core.
    pub machine: Machine,
    /// The number of buckets, a power of two; the one that the package picks if none is said.
    pub buckets: Option<u64>,
}

/// What that takes.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Bill {
    /// Buckets.
    pub buckets: u64,
    /// Places in a bucket.
    pub places: u64,
    /// From the first stage to the result.
    pub seconds: f64,
    /// Of them the engine's; the rest is the most of the three that follow.
    pub engine_seconds: f64,
    /// The buckets' computing, all waves of tasks.
    pub computing_seconds: f64,
    /// The bytes passed on by a gateway, which takes them apart and seals them anew.
    pub relay_seconds: f64,
    /// The bytes at the link's rate.
    pub link_seconds: f64,
    /// Of a side: its executors, a core for the driver and [`GATEWAY_CORES`], for as long as it takes.
    pub core_hours: f64,
    /// Bytes between the gateways, both directions together.
    pub bytes: u64,
    /// Bytes of memory that a task takes.
    pub task_memory: u64,
}

impl Bill {
    /// What a side pays, for what a core costs an hour and a gigabyte (10^9 bytes) that leaves it; half of
    /// the bytes leave either side.
    pub fn price(&self, core_hour: f64, gigabyte: f64) -> f64 {
        self.core_hours * core_hour + self.bytes as f64 / 2.0 / 1e9 * gigabyte
    }
}

/// What intersecting `clusters` takes. An error where the keys do not fit the most buckets that there may be.
pub fn psi(clusters: &Clusters) -> Result<Bill> {
    let Clusters { keys, executors, link, security, machine, buckets } = *clusters;
    let executors = executors.max(1);
    let picked = crate::job::psi::gateway::buckets_for(keys, executors);
    let buckets = buckets.unwrap_or(picked);
    let places = bucket_places(keys, buckets);
    if places > crate::job::psi::gateway::MOST_PLACES {
        let what = format!(
            "{keys} do not fit {buckets}: {places} in each",
            keys = counted(keys, "key"),
            buckets = counted(buckets, "bucket")
        );
        return Err(Error::Parameter { name: "rows", what });
    }
    // The link is counted over all buckets at once, so that each one's is left out.
    let free = Link { megabits: 1e9, round_trip: link.round_trip };
    let one = VOLE.intersection_cost(places, security, &free, &machine)?;
    let waves = buckets.div_ceil(executors) as f64;
    let bytes = buckets as f64 * (one.bytes as f64 + TASK_BYTES);
    let engine_seconds = JOB_SECONDS + keys as f64 * ROW_SECONDS / executors as f64;
    let computing_seconds = waves * (TASK_SECONDS + one.time.as_secs_f64());
    // Both directions at once; the larger is some three fifths of it.
    let link_seconds = link.pass(bytes * LARGER_DIRECTION) / 1e9;
    let relay_seconds = bytes * RELAY_SECONDS / GATEWAY_CORES;
    let seconds = engine_seconds + computing_seconds.max(relay_seconds).max(link_seconds);
    let job = crate::job::psi::Job::new(crate::job::psi::Learns::Both, security);
    Ok(Bill {
        buckets,
        places,
        seconds,
        engine_seconds,
        computing_seconds,
        relay_seconds,
        link_seconds,
        core_hours: (executors as f64 + 1.0 + GATEWAY_CORES) * seconds / 3600.0,
        bytes: bytes as u64,
        task_memory: job.memory(places, places) + 66 * places,
    })
}

/// The share of a bucket's bytes that passes in the direction that has more.
const LARGER_DIRECTION: f64 = 0.62;

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn clusters(keys: u64, executors: u64, megabits: f64) -> Clusters {
        let link = Link { megabits, round_trip: Duration::from_millis(10) };
        let (security, machine) = (Security::Malicious, Machine::REFERENCE);
        Clusters { keys, executors, link, security, machine, buckets: None }
    }

    #[test]
    fn more_keys_cost_more_and_more_executors_take_less_time() {
        let mut last = 0.0;
        for keys in [10_u64.pow(5), 10_u64.pow(6), 10_u64.pow(7), 10_u64.pow(8), 10_u64.pow(9)] {
            let bill = psi(&clusters(keys, 100, 10_000.0)).unwrap();
            assert!(bill.seconds > last && bill.places * bill.buckets >= keys);
            assert!(bill.buckets.is_power_of_two());
            last = bill.seconds;
        }
        let few = psi(&clusters(10_u64.pow(9), 10, 10_000.0)).unwrap();
        let many = psi(&clusters(10_u64.pow(9), 100, 10_000.0)).unwrap();
        assert!(few.seconds > 5.0 * many.seconds && few.bytes == many.bytes);
        // A slow link is what then counts, and nothing that a core could mend.
        let slow = psi(&clusters(10_u64.pow(9), 100, 100.0)).unwrap();
        assert!(slow.link_seconds > slow.computing_seconds.max(slow.relay_seconds));
        assert!((slow.seconds - slow.engine_seconds - slow.link_seconds).abs() < 1e-6);
        assert!((slow.price(0.0, 1.0) - slow.bytes as f64 / 2e9).abs() < 1e-9);
        assert!((slow.price(1.0, 0.0) - 105.0 * slow.seconds / 3600.0).abs() < 1e-9);
        assert!(psi(&clusters(1 << 40, 100, 100.0)).is_err());
    }
}
