//! Slower links than the one at hand, for tests and benchmarks: bandwidth and one-way delay, without
//! privileges.
//!
//! Each end shapes what it sends. A byte leaves when all before it have passed at the given rate, and arrives
//! one delay later; the rate counts the bytes of the stream, without the headers of TCP and IP. Nothing is
//! lost or reordered, and the sender's queue stands for the buffers of its operating system.

use crate::{Error, Result};
use std::fmt;
use std::str::FromStr;
use std::time::{Duration, Instant};
use tacit_crypto::near::nearest;

/// A link by its bandwidth and its one-way delay, the same in both directions.
///
/// Parsed from `loopback` (no shaping), `lan` (10,000 Mbit/s, 0.1 ms), `wan` (100 Mbit/s, 40 ms) or
/// `MBPS/ONE-WAY-MS` such as `50/50`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LinkModel {
    megabits: f64,
    delay: Duration,
}

impl LinkModel {
    /// 10 Gbit/s and 0.1 ms: two machines in one rack.
    pub const LAN: LinkModel = LinkModel { megabits: 10_000.0, delay: Duration::from_micros(100) };
    /// 100 Mbit/s and 40 ms: two sites on one continent.
    pub const WAN: LinkModel = LinkModel { megabits: 100.0, delay: Duration::from_millis(40) };
    /// The link as it is.
    pub const LOOPBACK: LinkModel = LinkModel { megabits: f64::INFINITY, delay: Duration::ZERO };

    /// A link of `megabits` (10^6 bits a second) and a one-way `delay`; an error unless the rate is above
    /// zero and the delay at most a minute.
    pub fn new(megabits: f64, delay: Duration) -> Result<Self> {
        if megabits.is_nan() || megabits < 1e-3 || delay > Duration::from_secs(60) {
            return Err(Error::Usage(format!(
                "a link of {megabits} Mbit/s and {delay:?} cannot be emulated"
            )));
        }
        Ok(LinkModel { megabits, delay })
    }

    /// Millions of bits a second; infinite when the rate is not shaped.
    pub fn megabits(&self) -> f64 {
        self.megabits
    }

    /// One-way delay.
    pub fn delay(&self) -> Duration {
        self.delay
    }

    /// Whether nothing is shaped.
    pub fn is_unshaped(&self) -> bool {
        self.megabits.is_infinite() && self.delay.is_zero()
    }

    /// How long `bytes` take to pass at the rate alone.
    pub fn transfer(&self, bytes: usize) -> Duration {
        Duration::from_secs_f64(bytes as f64 * 8.0 / (self.megabits * 1e6))
    }

    /// Bytes that are scheduled together: half a millisecond of them, within a packet and a socket buffer.
    pub(crate) fn piece(&self) -> usize {
        (self.megabits * 1e6 / 8.0 * 0.0005).clamp(1500.0, 131_072.0) as usize
    }

    /// Bytes that may wait at the sender: a delay's worth, and what socket buffers would hold.
    pub(crate) fn backlog(&self) -> usize {
        (4 << 20) + (self.megabits * 1e6 / 8.0 * self.delay.as_secs_f64()).clamp(0.0, 2.68e8) as usize
    }
}

impl FromStr for LinkModel {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let usage = || {
            let near = nearest(text, ["loopback", "lan", "wan"]);
            let near = near.map(|near| format!("did you mean `{near}`? Or "));
            Error::Usage(format!(
                "link `{text}`: {}give loopback, lan, wan or MBPS/ONE-WAY-MS such as 50/50",
                near.unwrap_or_default()
            ))
        };
        match text {
            "loopback" => Ok(Self::LOOPBACK),
            "lan" => Ok(Self::LAN),
            "wan" => Ok(Self::WAN),
            _ => {
                let (rate, delay) = text.split_once('/').ok_or_else(usage)?;
                let rate: f64 = rate.trim().parse().map_err(|_| usage())?;
                let delay: f64 = delay.trim().parse().map_err(|_| usage())?;
                if !(0.0..=60_000.0).contains(&delay) || !rate.is_finite() {
                    return Err(usage());
                }
                Self::new(rate, Duration::from_secs_f64(delay / 1e3))
            }
        }
    }
}

impl fmt::Display for LinkModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::LOOPBACK => f.write_str("loopback"),
            Self::LAN => f.write_str("lan"),
            Self::WAN => f.write_str("wan"),
            _ => write!(f, "{}/{}", self.megabits, self.delay.as_secs_f64() * 1e3),
        }
    }
}

/// Says when bytes arrive. Works by its own clock, so that late wake-ups never add up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    model: LinkModel,
    free: Instant,
}

impl Pace {
    pub(crate) fn new(model: LinkModel) -> Self {
        Pace { model, free: Instant::now() }
    }

    pub(crate) fn model(&self) -> &LinkModel {
        &self.model
    }

    /// When the last of `bytes` handed over now arrives.
    pub(crate) fn arrival(&mut self, bytes: usize) -> Instant {
        self.free = self.free.max(Instant::now()) + self.model.transfer(bytes);
        self.free + self.model.delay
    }
}
