//! Two processes that run a job in step, and what each of them measures.

use serde::{Deserialize, Serialize};
use std::time::Instant;
use tacit::Result;
use tacit::net::{Channel, Stats};
use tacit::ot::in_parallel;

/// What one side measured.
#[derive(Clone, Default, Debug, Serialize, Deserialize)]
pub struct Side {
    /// Making the state that all repeats use.
    pub setup_ms: f64,
    /// Each repeat, warm-up left out.
    pub wall_ms: Vec<f64>,
    /// This process's computing time in each repeat.
    pub cpu_ms: Vec<f64>,
    /// Bytes of one repeat.
    pub bytes_sent: u64,
    /// Bytes of one repeat.
    pub bytes_received: u64,
    /// Runs of sends without a receive between them, in one repeat.
    #[serde(default)]
    pub messages_sent: u64,
    /// Runs of receives without a send between them, in one repeat.
    #[serde(default)]
    pub messages_received: u64,
    /// Rounds of one repeat.
    pub rounds: u64,
    /// Most memory this process ever held.
    pub peak_rss_bytes: u64,
}

/// Runs `setup`, one warm-up and `repeat` measured runs of `once` on every channel at the same time, each lane with a
/// state of its own. Both sides start every run together.
pub fn measure<S: Send>(
    channels: &mut [Channel],
    repeat: usize,
    setup: impl Fn(usize, &mut Channel) -> Result<S> + Sync,
    once: impl Fn(usize, &mut S, &mut Channel) -> Result<()> + Sync,
) -> Result<Side> {
    meet(channels)?;
    let start = Instant::now();
    let mut states = in_parallel(channels, |lane, channel| setup(lane, channel))?;
    let setup_ms = milliseconds(start);
    let mut side = Side {
        setup_ms,
        wall_ms: Vec::new(),
        cpu_ms: Vec::new(),
        bytes_sent: 0,
        bytes_received: 0,
        messages_sent: 0,
        messages_received: 0,
        rounds: 0,
        peak_rss_bytes: 0,
    };
    for run in 0..=repeat {
        meet(channels)?;
        let (before, cpu, start) = (total(channels), cpu_ms(), Instant::now());
        let mut work: Vec<_> = channels.iter_mut().zip(states.iter_mut()).collect();
        in_parallel(&mut work, |lane, (channel, state)| {
            once(lane, state, channel)?;
            Ok(channel.flush()?)
        })?;
        if run > 0 {
            side.wall_ms.push(milliseconds(start));
            side.cpu_ms.push(cpu_ms() - cpu);
        }
        let after = total(channels);
        side.bytes_sent = after.bytes_sent - before.bytes_sent;
        side.bytes_received = after.bytes_received - before.bytes_received;
        side.messages_sent = after.messages_sent - before.messages_sent;
        side.messages_received = after.messages_received - before.messages_received;
        side.rounds = after.rounds - before.rounds;
    }
    side.peak_rss_bytes = peak_rss();
    Ok(side)
}

/// Both sides arrive here before either goes on.
fn meet(channels: &mut [Channel]) -> Result<()> {
    for channel in channels {
        channel.send_u64(0)?;
        channel.recv_u64()?;
    }
    Ok(())
}

fn total(channels: &[Channel]) -> Stats {
    channels.iter().fold(Stats::default(), |mut sum, channel| {
        let stats = channel.stats();
        sum.bytes_sent += stats.bytes_sent;
        sum.bytes_received += stats.bytes_received;
        sum.messages_sent += stats.messages_sent;
        sum.messages_received += stats.messages_received;
        sum.rounds = sum.rounds.max(stats.rounds);
        sum
    })
}

fn milliseconds(start: Instant) -> f64 {
    start.elapsed().as_secs_f64() * 1e3
}

/// Computing time of this process, all threads together.
pub fn cpu_ms() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 * 1e3 + time.tv_nsec as f64 / 1e6
}

/// The most memory this process ever held; 0 where the system does not tell.
pub fn peak_rss() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kibibytes = line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    kibibytes.map_or(0, |n| n * 1024)
}

/// The middle value; the mean of the two middle ones of an even number.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => 0.0,
        n if n % 2 == 1 => sorted[n / 2],
        n => (sorted[n / 2 - 1] + sorted[n / 2]) / 2.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians() {
        assert_eq!(median(&[]), 0.0);
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
    }
}
