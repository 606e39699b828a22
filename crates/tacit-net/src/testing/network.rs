//! Two parties in memory, with faults and with time of their own.

use crate::link::{Arrival, Interest, Link, gather};
use crate::{Channel, Error, Limits, Party, Result, SessionId, memory};
use std::collections::VecDeque;
use std::io::{IoSlice, IoSliceMut};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};
use tacit_crypto::{Block, Prg};

/// Bytes that one direction holds before its writer has to wait.
const CAPACITY: usize = 32 << 20;

/// What happens to a direction at a byte.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// This byte and all after it arrive so much later.
    Delay(Duration),
    /// So many bytes vanish.
    Drop(u64),
    /// One byte is XORed with this mask.
    Corrupt(u8),
    /// The connection breaks, both ways.
    Cut,
    /// From here on nothing arrives, and nobody is told.
    Stall,
}

/// A fault at a place: which bytes it meets does not depend on how the parties are scheduled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Strike {
    /// Whose bytes.
    pub from: Party,
    /// The number of the byte among all that this party sends, frames' headers counted.
    pub offset: u64,
    /// What happens there.
    pub fault: Fault,
}

/// A network for one session of two parties, with its faults.
#[derive(Clone, Debug)]
pub struct Network {
    seed: u64,
    strikes: Vec<Strike>,
    limits: Limits,
}

impl Network {
    /// A network without faults; the session's id follows from the seed.
    pub fn new(seed: u64) -> Self {
        Network { seed, strikes: Vec::new(), limits: Limits::default() }
    }

    /// A network with so many faults, drawn by the seed, of all kinds and among the first `bytes` bytes of
    /// either party.
    pub fn faulty(seed: u64, faults: usize, bytes: u64) -> Self {
        let mut prg = Prg::from_seed(Block::new(seed.into()));
        let strikes = (0..faults).map(|_| {
            let fault = match prg.below(5) {
                0 => Fault::Delay(Duration::from_millis(1 + prg.below(10_000))),
                1 => Fault::Drop(1 + prg.below(64)),
                2 => Fault::Corrupt(1 << prg.below(8)),
                3 => Fault::Cut,
                _ => Fault::Stall,
            };
            let from = if prg.below(2) == 0 { Party::First } else { Party::Second };
            Strike { from, offset: prg.below(bytes.max(1)), fault }
        });
        Network { strikes: strikes.collect(), ..Network::new(seed) }
    }

    /// The same with one more fault.
    pub fn with(mut self, from: Party, offset: u64, fault: Fault) -> Self {
        self.strikes.push(Strike { from, offset, fault });
        self
    }

    /// The same with other deadlines, which pass in the network's time.
    pub fn with_limits(self, limits: Limits) -> Self {
        Network { limits, ..self }
    }

    /// The faults.
    pub fn strikes(&self) -> &[Strike] {
        &self.strikes
    }

    /// The two ends.
    pub fn pair(&self) -> (Channel, Channel) {
        let ways = [Party::First, Party::Second].map(|party| {
            let mut strikes: Vec<_> = self.strikes.iter().filter(|s| s.from == party).copied().collect();
            strikes.sort_by_key(|strike| std::cmp::Reverse(strike.offset));
            Way { strikes, ..Way::default() }
        });
        let shared =
            Arc::new(Shared { state: Mutex::new(State { ways, ..State::default() }), moved: Condvar::new() });
        let mut id = [0; 32];
        Prg::from_seed(Block::new(u128::from(self.seed) | 1 << 64)).fill_bytes(&mut id);
        let end = |me: usize, party| {
            let link = Box::new(End { shared: shared.clone(), me, sent: 0, received: 0 });
            Channel::with_limits(link, party, SessionId(id), self.limits)
        };
        (end(0, Party::First), end(1, Party::Second))
    }

    /// Runs the two parties in two threads and returns what each returned; a panic of either goes on.
    pub fn run<A: Send, B: Send>(
        &self,
        first: impl FnOnce(&mut Channel) -> A + Send,
        second: impl FnOnce(&mut Channel) -> B + Send,
    ) -> (A, B) {
        let (a, b) = self.pair();
        memory::join(a, b, first, second)
    }
}

/// One direction.
#[derive(Default)]
struct Way {
    /// Chunks with when they arrive.
    chunks: VecDeque<(Duration, VecDeque<u8>)>,
    held: usize,
    /// Bytes written so far.
    written: u64,
    /// Faults to come, the last one first.
    strikes: Vec<Strike>,
    delay: Duration,
    /// Bytes that still vanish.
    dropping: u64,
    stalled: bool,
    closed: bool,
}

#[derive(Default)]
struct State {
    /// The network's time.
    now: Duration,
    /// By the party that writes.
    ways: [Way; 2],
    /// What each party sleeps for, and until when.
    asleep: [Option<(Interest, Duration)>; 2],
    gone: [bool; 2],
    cut: bool,
}

struct Shared {
    state: Mutex<State>,
    moved: Condvar,
}

impl State {
    /// When the next bytes for `me` arrive.
    fn due(&self, me: usize) -> Option<Duration> {
        self.ways[1 - me].chunks.front().map(|(due, _)| *due)
    }

    fn is_ready(&self, me: usize, interest: Interest) -> bool {
        let (incoming, outgoing) = (&self.ways[1 - me], &self.ways[me]);
        let ended = incoming.closed && incoming.chunks.is_empty() && !incoming.stalled;
        let reads = ended || self.due(me).is_some_and(|due| due <= self.now);
        self.cut
            || interest.reads() && reads
            || interest.writes() && (outgoing.closed || outgoing.held < CAPACITY)
    }

    /// The next moment at which anything happens for a sleeping party.
    fn wake(&self, me: usize, (interest, deadline): (Interest, Duration)) -> Duration {
        self.due(me).filter(|_| interest.reads()).map_or(deadline, |due| due.min(deadline))
    }

    /// Takes the bytes that party `me` writes, with the faults that meet them.
    fn take(&mut self, me: usize, bytes: &[u8]) {
        let now = self.now;
        let way = &mut self.ways[me];
        for &byte in bytes {
            let mut byte = byte;
            while let Some(strike) = way.strikes.pop_if(|strike| strike.offset <= way.written) {
                match strike.fault {
                    Fault::Delay(more) => way.delay += more,
                    Fault::Drop(bytes) => way.dropping += bytes,
                    Fault::Corrupt(mask) => byte ^= mask,
                    Fault::Cut => self.cut = true,
                    Fault::Stall => way.stalled = true,
                }
            }
            way.written += 1;
            if self.cut || way.stalled {
                continue;
            }
            if way.dropping > 0 {
                way.dropping -= 1;
                continue;
            }
            let due = now + way.delay;
            match way.chunks.back_mut().filter(|(last, _)| *last == due) {
                Some((_, chunk)) => chunk.push_back(byte),
                None => way.chunks.push_back((due, VecDeque::from([byte]))),
            }
            way.held += 1;
        }
    }
}

impl Shared {
    fn lock(&self) -> Result<MutexGuard<'_, State>> {
        self.state.lock().map_err(|_| Error::lost("because the other party panicked"))
    }
}

/// One party's end.
struct End {
    shared: Arc<Shared>,
    me: usize,
    sent: u64,
    received: u64,
}

impl Link for End {
    fn try_write(&mut self, slices: &[IoSlice<'_>]) -> Result<usize> {
        let mut state = self.shared.lock()?;
        let way = &state.ways[self.me];
        if state.cut || way.closed {
            return Err(Error::lost("while sending"));
        }
        if way.held >= CAPACITY {
            return Ok(0);
        }
        let bytes = gather(slices);
        state.take(self.me, &bytes);
        drop(state);
        self.shared.moved.notify_all();
        self.sent += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn try_read(&mut self, slices: &mut [IoSliceMut<'_>]) -> Result<Arrival> {
        let mut state = self.shared.lock()?;
        if state.cut {
            return Err(Error::lost("while receiving"));
        }
        let now = state.now;
        let way = &mut state.ways[1 - self.me];
        let mut n = 0;
        for place in slices.iter_mut().flat_map(|slice| slice.iter_mut()) {
            let Some((_, chunk)) = way.chunks.front_mut().filter(|(due, _)| *due <= now) else { break };
            if let Some(byte) = chunk.pop_front() {
                *place = byte;
                n += 1;
            }
            if chunk.is_empty() {
                way.chunks.pop_front();
            }
        }
        way.held -= n;
        let ended = way.closed && way.chunks.is_empty() && !way.stalled;
        drop(state);
        self.shared.moved.notify_all();
        self.received += n as u64;
        Ok(match n {
            0 if ended => Arrival::End,
            0 => Arrival::Nothing,
            n => Arrival::Bytes(n),
        })
    }

    fn wait(&mut self, interest: Interest, timeout: Duration) -> Result<bool> {
        let (me, other, started) = (self.me, 1 - self.me, Instant::now());
        let mut state = self.shared.lock()?;
        let deadline = state.now + timeout;
        loop {
            // Of two parties whose deadlines pass at one moment, both are late, whoever wakes first and
            // leaves.
            let late = state.asleep[me].is_some() && state.now >= deadline;
            if !late && state.is_ready(me, interest) {
                state.asleep[me] = None;
                return Ok(true);
            }
            // A party that neither waits nor ends holds the network's time up for no longer than it may.
            if state.now >= deadline || started.elapsed() >= timeout {
                state.asleep[me] = None;
                return Ok(false);
            }
            state.asleep[me] = Some((interest, deadline));
            let mine = state.wake(me, (interest, deadline));
            let theirs = match state.asleep[other] {
                _ if state.gone[other] => Some(mine),
                // Awake, or about to be.
                None => None,
                Some((interest, until)) if state.is_ready(other, interest) || until <= state.now => None,
                Some(sleep) => Some(state.wake(other, sleep)),
            };
            match theirs {
                // Nobody has anything to do: time passes.
                Some(theirs) => {
                    state.now = mine.min(theirs);
                    self.shared.moved.notify_all();
                }
                None => {
                    let patience = timeout.saturating_sub(started.elapsed());
                    let waited = self.shared.moved.wait_timeout(state, patience);
                    state = waited.map_err(|_| Error::lost("because the other party panicked"))?.0;
                }
            }
        }
    }

    fn wire_bytes(&self) -> (u64, u64) {
        (self.sent, self.received)
    }

    fn finish(&mut self) {
        if let Ok(mut state) = self.shared.lock() {
            state.ways[self.me].closed = true;
        }
        self.shared.moved.notify_all();
    }
}

impl Drop for End {
    fn drop(&mut self) {
        if let Ok(mut state) = self.shared.lock() {
            state.gone[self.me] = true;
            state.ways[self.me].closed = true;
            state.ways[1 - self.me].closed = true;
        }
        self.shared.moved.notify_all();
    }
}
