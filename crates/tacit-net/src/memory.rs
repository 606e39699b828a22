//! Two parties in one process.

use crate::emulate::{LinkModel, Pace};
use crate::link::{Arrival, Interest, Link, cut, gather, total};
use crate::{Channel, Error, Limits, Party, Result, SessionId};
use std::collections::VecDeque;
use std::io::{IoSlice, IoSliceMut};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Bytes that one direction holds before its writer has to wait.
const CAPACITY: usize = 32 << 20;
/// A sleeping thread wakes so much late; the rest is waited for awake.
const SLACK: Duration = Duration::from_micros(70);

/// One direction.
#[derive(Default)]
struct Pipe {
    chunks: VecDeque<(Vec<u8>, Option<Instant>)>,
    held: usize,
    closed: bool,
}

#[derive(Default)]
struct Shared {
    pipes: Mutex<[Pipe; 2]>,
    moved: Condvar,
}

impl Shared {
    fn lock(&self) -> Result<MutexGuard<'_, [Pipe; 2]>> {
        self.pipes.lock().map_err(|_| Error::lost("because the other party panicked"))
    }
}

struct MemoryLink {
    shared: Arc<Shared>,
    /// Index of the pipe towards the peer; the other one comes from it.
    outgoing: usize,
    /// The chunk being read, taken out of the pipe, and how much of it is read.
    current: (Vec<u8>, usize),
    pace: Option<Pace>,
    sent: u64,
    received: u64,
}

impl MemoryLink {
    fn new(shared: Arc<Shared>, outgoing: usize, model: LinkModel) -> Self {
        let pace = (!model.is_unshaped()).then(|| Pace::new(model));
        MemoryLink { shared, outgoing, current: (Vec::new(), 0), pace, sent: 0, received: 0 }
    }

    fn take_current(&mut self, out: &mut [u8]) -> usize {
        let (chunk, start) = &mut self.current;
        let n = out.len().min(chunk.len() - *start);
        out[..n].copy_from_slice(&chunk[*start..*start + n]);
        *start += n;
        n
    }

    /// The next chunk that has arrived, or what stands in its place.
    fn next_chunk(&mut self) -> Result<Arrival> {
        let mut pipes = self.shared.lock()?;
        let pipe = &mut pipes[1 - self.outgoing];
        let arrived = match pipe.chunks.front() {
            None if pipe.closed => return Ok(Arrival::End),
            None => false,
            Some((_, due)) => due.is_none_or(|due| due <= Instant::now()),
        };
        if !arrived {
            return Ok(Arrival::Nothing);
        }
        let Some((chunk, _)) = pipe.chunks.pop_front() else { return Ok(Arrival::Nothing) };
        pipe.held -= chunk.len();
        drop(pipes);
        self.shared.moved.notify_all();
        let n = chunk.len();
        self.current = (chunk, 0);
        Ok(Arrival::Bytes(n))
    }
}

impl Link for MemoryLink {
    fn try_write(&mut self, slices: &[IoSlice<'_>]) -> Result<usize> {
        let capacity = self.pace.map_or(CAPACITY, |pace| pace.model().backlog());
        {
            let pipes = self.shared.lock()?;
            if pipes[self.outgoing].closed {
                return Err(Error::lost("while sending"));
            }
            if pipes[self.outgoing].held >= capacity {
                return Ok(0);
            }
        }
        let chunks: Vec<_> = match &mut self.pace {
            None => vec![(gather(slices), None)],
            Some(pace) => {
                let pieces = cut(slices, pace.model().piece());
                pieces
                    .into_iter()
                    .map(|piece| (pace.arrival(piece.len()), piece))
                    .map(|(due, piece)| (piece, Some(due)))
                    .collect()
            }
        };
        let n = total(slices);
        let mut pipes = self.shared.lock()?;
        pipes[self.outgoing].chunks.extend(chunks);
        pipes[self.outgoing].held += n;
        drop(pipes);
        self.shared.moved.notify_all();
        self.sent += n as u64;
        Ok(n)
    }

    fn try_read(&mut self, slices: &mut [IoSliceMut<'_>]) -> Result<Arrival> {
        let mut n = 0;
        for slice in slices {
            let mut filled = 0;
            while filled < slice.len() {
                let step = self.take_current(&mut slice[filled..]);
                filled += step;
                n += step;
                if step == 0 {
                    match self.next_chunk()? {
                        Arrival::Bytes(_) => {}
                        _ if n > 0 => return Ok(self.count(n)),
                        other => return Ok(other),
                    }
                }
            }
        }
        Ok(if n > 0 { self.count(n) } else { Arrival::Nothing })
    }

    fn wait(&mut self, interest: Interest, timeout: Duration) -> Result<bool> {
        let deadline = Instant::now() + timeout;
        let capacity = self.pace.map_or(CAPACITY, |pace| pace.model().backlog());
        let mut pipes = self.shared.lock()?;
        loop {
            let (incoming, outgoing) = (&pipes[1 - self.outgoing], &pipes[self.outgoing]);
            let now = Instant::now();
            let due = incoming.chunks.front().map(|(_, due)| due.unwrap_or(now));
            if interest.reads() && (incoming.closed && due.is_none() || due.is_some_and(|due| due <= now)) {
                return Ok(true);
            }
            if interest.writes() && (outgoing.closed || outgoing.held < capacity) {
                return Ok(true);
            }
            if now >= deadline {
                return Ok(false);
            }
            let wake = due.filter(|_| interest.reads()).map_or(deadline, |due| due.min(deadline));
            let pause = wake - now;
            if pause > SLACK {
                let waited = self.shared.moved.wait_timeout(pipes, pause - SLACK);
                pipes = waited.map_err(|_| Error::lost("because the other party panicked"))?.0;
            } else {
                drop(pipes);
                std::thread::yield_now();
                pipes = self.shared.lock()?;
            }
        }
    }

    fn wire_bytes(&self) -> (u64, u64) {
        (self.sent, self.received)
    }

    fn finish(&mut self) {
        if let Ok(mut pipes) = self.shared.lock() {
            pipes[self.outgoing].closed = true;
        }
        self.shared.moved.notify_all();
    }
}

impl MemoryLink {
    fn count(&mut self, n: usize) -> Arrival {
        self.received += n as u64;
        Arrival::Bytes(n)
    }
}

impl Drop for MemoryLink {
    fn drop(&mut self) {
        // Nobody reads any more: the peer's writes shall fail, and what it has sent is let go.
        if let Ok(mut pipes) = self.shared.lock() {
            pipes[self.outgoing].closed = true;
            pipes[1 - self.outgoing] = Pipe { closed: true, ..Pipe::default() };
        }
        self.shared.moved.notify_all();
    }
}

/// Two joined links, the bare streams under [`pair`], shaped as `model` says.
pub fn links(model: LinkModel) -> (Box<dyn Link>, Box<dyn Link>) {
    let shared = Arc::new(Shared::default());
    (Box::new(MemoryLink::new(shared.clone(), 0, model)), Box::new(MemoryLink::new(shared, 1, model)))
}

/// What is written to a link, for tests of what goes over the wire; it outlives the link.
#[derive(Clone, Default)]
pub struct Record(Arc<Mutex<Vec<u8>>>);

struct Recorder {
    link: Box<dyn Link>,
    written: Record,
}

impl Record {
    fn lock(&self) -> MutexGuard<'_, Vec<u8>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `link`, from now on remembered here.
    pub fn of(&self, link: Box<dyn Link>) -> Box<dyn Link> {
        Box::new(Recorder { link, written: self.clone() })
    }

    /// The frames so far, in order: the byte of the kind and the payload.
    pub fn frames(&self) -> Vec<(u8, Vec<u8>)> {
        let (written, mut frames) = (self.lock(), Vec::new());
        let mut rest = &written[..];
        while let Some((&[kind, a, b, c], after)) = rest.split_first_chunk() {
            let length = u32::from_le_bytes([a, b, c, 0]) as usize;
            let (payload, after) = after.split_at(length.min(after.len()));
            frames.push((kind, payload.to_vec()));
            rest = after;
        }
        frames
    }
}

impl Link for Recorder {
    fn try_write(&mut self, slices: &[IoSlice<'_>]) -> Result<usize> {
        let n = self.link.try_write(slices)?;
        self.written.lock().extend(slices.iter().flat_map(|slice| slice.iter()).take(n));
        Ok(n)
    }

    fn try_flush(&mut self) -> Result<bool> {
        self.link.try_flush()
    }

    fn try_read(&mut self, slices: &mut [IoSliceMut<'_>]) -> Result<Arrival> {
        self.link.try_read(slices)
    }

    fn wait(&mut self, interest: Interest, timeout: Duration) -> Result<bool> {
        self.link.wait(interest, timeout)
    }

    fn wire_bytes(&self) -> (u64, u64) {
        self.link.wire_bytes()
    }

    fn finish(&mut self) {
        self.link.finish();
    }
}

/// Two joined channels of one session, whose id is random.
pub fn pair() -> (Channel, Channel) {
    pair_with(random_id())
}

/// Two joined channels of the session `id`.
pub fn pair_with(id: SessionId) -> (Channel, Channel) {
    pair_over(LinkModel::LOOPBACK, Limits::default(), id)
}

/// Two joined channels of the session `id` over an emulated link.
pub fn pair_over(model: LinkModel, limits: Limits, id: SessionId) -> (Channel, Channel) {
    let (first, second) = links(model);
    (
        Channel::with_limits(first, Party::First, id, limits),
        Channel::with_limits(second, Party::Second, id, limits),
    )
}

fn random_id() -> SessionId {
    let mut id = [0u8; 32];
    tacit_crypto::Prg::from_os().fill_bytes(&mut id);
    SessionId(id)
}

/// Runs the two parties of a protocol in two threads and returns what each returned; a panic of either goes
/// on.
pub fn run<A: Send, B: Send>(
    first: impl FnOnce(&mut Channel) -> A + Send,
    second: impl FnOnce(&mut Channel) -> B + Send,
) -> (A, B) {
    run_over(LinkModel::LOOPBACK, first, second)
}

/// As [`run`], over an emulated link.
pub fn run_over<A: Send, B: Send>(
    model: LinkModel,
    first: impl FnOnce(&mut Channel) -> A + Send,
    second: impl FnOnce(&mut Channel) -> B + Send,
) -> (A, B) {
    let (a, b) = pair_over(model, Limits::default(), random_id());
    join(a, b, first, second)
}

/// As [`run`], over channels that exist already, of whatever transport.
pub fn join<A: Send, B: Send>(
    mut a: Channel,
    mut b: Channel,
    first: impl FnOnce(&mut Channel) -> A + Send,
    second: impl FnOnce(&mut Channel) -> B + Send,
) -> (A, B) {
    std::thread::scope(|scope| {
        // Each closure owns its channel, so that a party that ends early closes it for the other.
        let other = scope.spawn(move || second(&mut b));
        let mine = scope.spawn(move || first(&mut a));
        let mine = mine.join();
        let other = other.join();
        match (mine, other) {
            (Ok(x), Ok(y)) => (x, y),
            (Err(panic), _) | (_, Err(panic)) => std::panic::resume_unwind(panic),
        }
    })
}
