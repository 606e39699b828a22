//! A link's delay and bandwidth, measured between the two sides.

use crate::{Error, Result};
use std::time::{Duration, Instant};
use tacit_net::{Channel, Party};

/// Bytes that pass each way in one measurement, at most.
const MEASURED: usize = 1 << 26;

/// The round trip, and the megabits a second to the peer and from it; both sides call it at the same time.
pub fn measure_link(channel: &mut Channel) -> Result<(Duration, f64, f64)> {
    let delay = round_trip(channel)?;
    let (first, second) = (transfer(channel, Party::First)?, transfer(channel, Party::Second)?);
    Ok(match channel.party() {
        Party::First => (delay, first, second),
        Party::Second => (delay, second, first),
    })
}

/// The fastest of some round trips, seen from this side.
pub fn round_trip(channel: &mut Channel) -> Result<Duration> {
    const TRIES: usize = 10;
    let mut best = Duration::MAX;
    for asker in [Party::First, Party::Second] {
        for _ in 0..TRIES {
            if channel.party() == asker {
                let start = Instant::now();
                channel.send_u64(0)?;
                channel.recv_u64()?;
                best = best.min(start.elapsed());
            } else {
                channel.recv_u64()?;
                channel.send_u64(0)?;
                channel.flush()?;
            }
        }
    }
    Ok(best)
}

/// Megabits a second from `sender` to the other side, measured by the receiver and told to the sender.
fn transfer(channel: &mut Channel, sender: Party) -> Result<f64> {
    const STEP: usize = 1 << 16;
    const ENOUGH: Duration = Duration::from_millis(700);
    // The receiver says how long a volume took, and can draw no more than these: 6 volumes.
    let mut left = MEASURED;
    let piece = vec![0u8; STEP];
    let mut buffer = vec![0u8; STEP];
    // The volume grows until it takes long enough, as the receiver says.
    let mut volume = STEP;
    loop {
        left -= volume;
        if channel.party() == sender {
            for _ in 0..volume / STEP {
                channel.send(&piece)?;
            }
            let nanoseconds = channel.recv_u64()?;
            if nanoseconds > ENOUGH.as_nanos() as u64 || left == 0 {
                return rate(volume, nanoseconds);
            }
        } else {
            // From the first byte on, so that the delay does not count.
            channel.recv(&mut buffer[..1])?;
            let start = Instant::now();
            channel.recv(&mut buffer[1..])?;
            for _ in 1..volume / STEP {
                channel.recv(&mut buffer)?;
            }
            let nanoseconds = (start.elapsed().as_nanos() as u64).max(1);
            channel.send_u64(nanoseconds)?;
            channel.flush()?;
            if nanoseconds > ENOUGH.as_nanos() as u64 || left == 0 {
                return rate(volume, nanoseconds);
            }
        }
        volume = (volume * 4).min(left);
    }
}

fn rate(bytes: usize, nanoseconds: u64) -> Result<f64> {
    if nanoseconds == 0 {
        return Err(Error::Peer(
            "the peer's measurement is not valid; use the same release on both sides".into(),
        ));
    }
    Ok(bytes as f64 * 8e3 / nanoseconds as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tacit_net::memory;

    /// A receiver that says of every volume that it took no time draws 64 MiB, and the measurement ends; so does a
    /// sender's, of a receiver that says the same.
    #[test]
    fn a_peer_draws_no_more_than_a_measurement_takes() {
        let (sent, got) = memory::run(
            |channel| {
                transfer(channel, Party::First).unwrap();
                channel.stats().bytes_sent
            },
            |channel| {
                let (mut got, mut volume, mut piece) = (0, 1 << 16, vec![0; 1 << 16]);
                // As long as something comes.
                while channel.recv(&mut piece).is_ok() {
                    got += piece.len();
                    volume -= piece.len();
                    if volume == 0 {
                        if channel.send_u64(1).and_then(|()| channel.flush()).is_err() {
                            break;
                        }
                        volume = got * 3 + (1 << 16);
                        volume = volume.min(MEASURED.saturating_sub(got).max(1 << 16));
                    }
                }
                got
            },
        );
        // What is sent is framed, four bytes a piece.
        let frames = 4 * (MEASURED >> 16) as u64;
        assert_eq!((sent, got), (MEASURED as u64 + frames, MEASURED));
    }
}
