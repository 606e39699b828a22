//! Two processes that run a job in step, and what each of them measures.

use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};
use tacit::Result;
use tacit::net::{Channel, Party, Stats};
use tacit::ot::in_parallel;

/// What one side measured.
#[derive(Clone, Default, Debug, Serialize, Deserialize)]
pub(crate) struct Side {
    /// Whether every run began from nothing.
    #[serde(default)]
    pub fresh: bool,
    /// Making the state that all repeats use.
    pub setup_ms: f64,
    /// Bytes of both directions that this took.
    #[serde(default)]
    pub setup_bytes: u64,
    /// Each repeat, warm-up left out.
    pub wall_ms: Vec<f64>,
    /// Of each repeat, what passed before an input was needed; empty where nobody says.
    #[serde(default)]
    pub offline_ms: Vec<f64>,
    /// This process's computing time in each repeat.
    pub cpu_ms: Vec<f64>,
    /// Bytes of one repeat, on average: a silent protocol makes more at a time than one repeat may want.
    pub bytes_sent: u64,
    /// Bytes of one repeat, on average.
    pub bytes_received: u64,
    /// Runs of sends without a receive between them, in one repeat.
    #[serde(default)]
    pub messages_sent: u64,
    /// Runs of receives without a send between them, in one repeat.
    #[serde(default)]
    pub messages_received: u64,
    /// Rounds of one repeat, on average.
    pub rounds: u64,
    /// Most memory this process ever held.
    pub peak_rss_bytes: u64,
}

/// How runs follow each other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Runs {
    /// Measured ones, after a warm-up.
    pub repeat: usize,
    /// Whether each begins from nothing, with a setup of its own that counts.
    pub fresh: bool,
}

/// Runs `setup`, one warm-up and `repeat` measured runs of `once` on every channel at the same time, each
/// lane with a state of its own. Both sides start every run together.
pub(crate) fn measure<S: Send>(
    channels: &mut [Channel],
    repeat: usize,
    setup: impl Fn(usize, &mut Channel) -> Result<S> + Sync,
    once: impl Fn(usize, &mut S, &mut Channel) -> Result<()> + Sync,
) -> Result<Side> {
    let runs = Runs { repeat, fresh: false };
    measure_phases(channels, runs, by_lane(setup), |lane, state, channel, _| once(lane, state, channel))
}

/// A setup in which every lane makes a state of its own, all at the same time.
pub(crate) fn by_lane<S: Send>(
    setup: impl Fn(usize, &mut Channel) -> Result<S> + Sync,
) -> impl Fn(&mut [Channel], Vec<S>) -> Result<Vec<S>> {
    move |channels, _| in_parallel(channels, |lane, channel| setup(lane, channel))
}

/// As [`measure`], where `setup` makes all lanes' states, and `once` says when it first needs an input: what
/// passed before is offline. A setup of a fresh run gets the last run's states, for their memory, which would
/// otherwise be asked of the system again.
pub(crate) fn measure_phases<S: Send>(
    channels: &mut [Channel],
    runs: Runs,
    setup: impl Fn(&mut [Channel], Vec<S>) -> Result<Vec<S>>,
    once: impl Fn(usize, &mut S, &mut Channel, &mut dyn FnMut()) -> Result<()> + Sync,
) -> Result<Side> {
    let mut side = Side { fresh: runs.fresh, ..Side::default() };
    let mut states = Vec::new();
    if !runs.fresh {
        meet(channels)?;
        let (before, start) = (total(channels), Instant::now());
        states = setup(channels, states)?;
        side.setup_ms = milliseconds(start);
        let passed = total(channels).since(&before);
        side.setup_bytes = passed.bytes_sent + passed.bytes_received;
    }
    let mut passed = [0u64; 5];
    for run in 0..=runs.repeat {
        meet(channels)?;
        let (before, cpu, start) = (total(channels), cpu_ms(), Instant::now());
        if runs.fresh {
            states = setup(channels, states)?;
        }
        let mut work: Vec<_> = channels.iter_mut().zip(&mut states).collect();
        let offline = in_parallel(&mut work, |lane, (channel, state)| {
            let mut needed = None;
            once(lane, state, channel, &mut || _ = needed.get_or_insert_with(|| milliseconds(start)))?;
            channel.flush()?;
            Ok(needed)
        })?;
        if run > 0 {
            side.wall_ms.push(milliseconds(start));
            side.cpu_ms.push(cpu_ms() - cpu);
            side.offline_ms.extend(offline.into_iter().flatten().reduce(f64::max));
            let run = total(channels).since(&before);
            let counted =
                [run.bytes_sent, run.bytes_received, run.messages_sent, run.messages_received, run.rounds];
            passed.iter_mut().zip(counted).for_each(|(sum, more)| *sum += more);
        }
    }
    let one = passed.map(|sum| sum.div_ceil(runs.repeat.max(1) as u64));
    [side.bytes_sent, side.bytes_received, side.messages_sent, side.messages_received, side.rounds] = one;
    side.peak_rss_bytes = peak_rss();
    Ok(side)
}

/// Both sides arrive here before either goes on, and go on at the same moment: the first party says when, and
/// waits for as long as its word is on the way. Otherwise the one that had ended first would begin by a
/// link's delay later or earlier.
fn meet(channels: &mut [Channel]) -> Result<()> {
    for channel in channels.iter_mut() {
        channel.send_u64(0)?;
        channel.recv_u64()?;
    }
    let Some(channel) = channels.first_mut() else { return Ok(()) };
    if channel.party() == Party::Second {
        channel.recv_u64()?;
        channel.send_u64(0)?;
        channel.flush()?;
        channel.recv_u64()?;
        return Ok(());
    }
    let start = Instant::now();
    channel.send_u64(0)?;
    channel.recv_u64()?;
    let delay = start.elapsed() / 2;
    let said = Instant::now();
    channel.send_u64(0)?;
    channel.flush()?;
    std::thread::sleep(delay.saturating_sub(WAKING));
    while said.elapsed() < delay {
        std::hint::spin_loop();
    }
    Ok(())
}

/// A sleeping thread may wake so much late, so that the last of a delay is waited for awake.
const WAKING: Duration = Duration::from_millis(1);

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

/// Computing time of this process, all threads together; 0 where the system does not tell.
#[cfg(unix)]
pub(crate) fn cpu_ms() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 * 1e3 + time.tv_nsec as f64 / 1e6
}

#[cfg(not(unix))]
pub(crate) fn cpu_ms() -> f64 {
    0.0
}

/// The most memory this process ever held; 0 where the system does not tell.
pub(crate) fn peak_rss() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kibibytes = line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    kibibytes.map_or(0, |n| n * 1024)
}

/// The middle value; the mean of the two middle ones of an even number.
pub(crate) fn median(values: &[f64]) -> f64 {
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
