//! Both roles at once: two channels of one session, one a direction, with setups and extensions overlapped.

use crate::Result;
use tacit_net::{Channel, Party};

/// Runs `send` over one channel and `receive` over the other at the same time, and returns what both
/// returned.
///
/// The first party sends over `channels[0]` and receives over `channels[1]`, the second party the other way
/// round; so both sides call this alike, for setups as for extensions. If one direction fails, the other
/// still runs to its end.
pub fn both_ways<A: Send, B: Send>(
    channels: &mut [Channel; 2],
    send: impl FnOnce(&mut Channel) -> Result<A> + Send,
    receive: impl FnOnce(&mut Channel) -> Result<B> + Send,
) -> Result<(A, B)> {
    let [first, second] = channels;
    let (out, back) = match first.party() {
        Party::First => (first, second),
        Party::Second => (second, first),
    };
    let (sent, received) = std::thread::scope(|scope| {
        let receiver = scope.spawn(move || receive(back));
        let sent = send(out);
        (sent, receiver.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    });
    Ok((sent?, received?))
}
