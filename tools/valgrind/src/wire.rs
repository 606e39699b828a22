//! Two parties in one process, whose bytes become public where they are sent.

use crate::request;
use std::io::{IoSlice, IoSliceMut};
use std::time::Duration;
use tacit_crypto::workers;
use tacit_net::link::{Arrival, Interest};
use tacit_net::memory::{join, links};
use tacit_net::{Channel, Link, LinkModel, Party, Result, SessionId};

/// A link that declares what is sent: the peer sees it, and so does whoever is between.
struct Public(Box<dyn Link>);

impl Link for Public {
    fn try_write(&mut self, slices: &[IoSlice<'_>]) -> Result<usize> {
        slices.iter().for_each(|slice| request::defined(slice));
        self.0.try_write(slices)
    }

    fn try_read(&mut self, slices: &mut [IoSliceMut<'_>]) -> Result<Arrival> {
        self.0.try_read(slices)
    }

    fn wait(&mut self, interest: Interest, timeout: Duration) -> Result<bool> {
        self.0.wait(interest, timeout)
    }

    fn wire_bytes(&self) -> (u64, u64) {
        self.0.wire_bytes()
    }

    fn finish(&mut self) {
        self.0.finish();
    }
}

/// Runs both parties, each on a thread of its own, in a session that is always the same.
pub fn run<A: Send, B: Send>(
    first: impl FnOnce(&mut Channel) -> A + Send,
    second: impl FnOnce(&mut Channel) -> B + Send,
) -> (A, B) {
    let (a, b) = links(LinkModel::LOOPBACK);
    let channel = |link, party| Channel::new(Box::new(Public(link)), party, SessionId([7; 32]));
    join(
        channel(a, Party::First),
        channel(b, Party::Second),
        |channel| workers::limited(1, || first(channel)),
        |channel| workers::limited(1, || second(channel)),
    )
}
