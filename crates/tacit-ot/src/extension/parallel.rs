//! Many streams of one setup, each over a channel of its own in a thread of its own.
//!
//! Streams are forks of one sender or receiver ([`KosSender::fork`](super::KosSender::fork) and its like),
//! with independent PRG streams and the same Δ; a wrapper such as [`CotToRot`](crate::convert::CotToRot) goes
//! around each. Both sides use the same number of streams in the same order. The result does not depend on
//! timing.

use crate::{Error, Result};
use tacit_crypto::{BitVec, Block};
use tacit_net::Channel;

/// Runs `extend` on every stream with its channel and its part of `out`, each in a thread of its own.
///
/// The parts are contiguous, in order, and as long as 128·⌈n / 128·threads⌉, the last ones shorter.
/// `Error::Usage` unless there is one channel a stream and at least one stream. If a stream fails, nothing is
/// left in `out`.
pub fn extend_parallel<S: Send, T: Copy + Send + Default>(
    streams: &mut [S],
    channels: &mut [Channel],
    out: &mut [T],
    extend: impl Fn(&mut S, &mut Channel, &mut [T]) -> Result<()> + Sync,
) -> Result<()> {
    in_parallel(streams, channels, out, extend).map(|_| ())
}

/// [`extend_parallel`] for random OT's receiver, whose choices come back in one piece.
pub fn extend_parallel_choices<S: Send>(
    streams: &mut [S],
    channels: &mut [Channel],
    out: &mut [Block],
    extend: impl Fn(&mut S, &mut Channel, &mut [Block]) -> Result<BitVec> + Sync,
) -> Result<BitVec> {
    let n = out.len();
    let parts = in_parallel(streams, channels, out, extend)?;
    let mut bytes = Vec::with_capacity(n.div_ceil(8));
    // All parts but the last that is not empty are whole blocks long.
    parts.iter().for_each(|part| bytes.extend_from_slice(part.as_bytes()));
    Ok(BitVec::from_bytes(&bytes, n))
}

fn in_parallel<S: Send, T: Copy + Send + Default, R: Send>(
    streams: &mut [S],
    channels: &mut [Channel],
    out: &mut [T],
    extend: impl Fn(&mut S, &mut Channel, &mut [T]) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    if streams.is_empty() || streams.len() != channels.len() {
        return Err(Error::Usage {
            protocol: "parallel extension",
            what: "one channel a stream, at least one",
        });
    }
    let part = out.len().div_ceil(128 * streams.len()) * 128;
    let extend = &extend;
    let result: Result<Vec<R>> = std::thread::scope(|scope| {
        let mut rest = &mut *out;
        let mut threads = Vec::with_capacity(streams.len());
        for (stream, channel) in streams.iter_mut().zip(channels) {
            let (mine, others) = rest.split_at_mut(part.min(rest.len()));
            rest = others;
            threads.push(scope.spawn(move || extend(stream, channel, mine)));
        }
        // All threads end before the first error goes on.
        let results: Vec<Result<R>> = threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect();
        results.into_iter().collect()
    });
    if result.is_err() {
        out.fill(T::default());
    }
    result
}
