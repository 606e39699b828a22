//! TCP, plain or shaped.

use crate::cancel::Cancel;
use crate::emulate::{LinkModel, Pace};
use crate::link::{Arrival, Interest, Link, cut, total};
use crate::{Error, Result};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, BorrowedFd};
use std::collections::VecDeque;
use std::io::{ErrorKind, IoSlice, IoSliceMut, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Waits for a file descriptor; false when `timeout` passed first.
pub(crate) fn await_fd(fd: impl AsFd, interest: Interest, timeout: Duration) -> Result<bool> {
    let mut flags = PollFlags::empty();
    flags.set(PollFlags::IN, interest.reads());
    flags.set(PollFlags::OUT, interest.writes());
    poll_until(&mut [PollFd::new(&fd, flags)], timeout)
}

/// Waits for any of the file descriptors; false when `timeout` passed first.
pub(crate) fn poll_until(fds: &mut [PollFd<'_>], timeout: Duration) -> Result<bool> {
    let deadline = Instant::now() + timeout;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let left = Timespec { tv_sec: left.as_secs() as _, tv_nsec: left.subsec_nanos() as _ };
        match poll(fds, Some(&left)) {
            Ok(ready) => return Ok(ready > 0),
            Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(Error::Io(errno.into())),
        }
    }
}

/// A TCP connection. The operating system sizes its buffers: it does so better than fixed sizes would.
pub struct TcpLink {
    stream: Arc<TcpStream>,
    sent: u64,
    received: u64,
    cancel: Cancel,
}

impl TcpLink {
    /// Takes over a connected stream: non-blocking from here on, and without Nagle's delay.
    pub fn new(stream: TcpStream) -> Result<Self> {
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        Ok(TcpLink { stream: Arc::new(stream), sent: 0, received: 0, cancel: Cancel::default() })
    }

    /// As [`new`](Self::new), for as long as `cancel` lets it.
    pub(crate) fn watched(stream: TcpStream, cancel: &Cancel) -> Result<Self> {
        let link = TcpLink { cancel: cancel.clone(), ..Self::new(stream)? };
        cancel.watch(&link.stream)?;
        Ok(link)
    }
}

/// Repeats an interrupted call; `None` when it would block.
fn attempt(mut call: impl FnMut() -> std::io::Result<usize>) -> std::io::Result<Option<usize>> {
    loop {
        match call() {
            Ok(n) => return Ok(Some(n)),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

impl Link for TcpLink {
    fn try_write(&mut self, slices: &[IoSlice<'_>]) -> Result<usize> {
        let written = attempt(|| (&*self.stream).write_vectored(slices));
        let n = written.map_err(|error| Error::socket(error, "while sending"))?.unwrap_or(0);
        self.sent += n as u64;
        Ok(n)
    }

    fn try_read(&mut self, slices: &mut [IoSliceMut<'_>]) -> Result<Arrival> {
        let read = attempt(|| (&*self.stream).read_vectored(slices));
        Ok(match read.map_err(|error| Error::socket(error, "while receiving"))? {
            None => Arrival::Nothing,
            Some(0) => Arrival::End,
            Some(n) => {
                self.received += n as u64;
                Arrival::Bytes(n)
            }
        })
    }

    fn wait(&mut self, interest: Interest, timeout: Duration) -> Result<bool> {
        await_fd(&*self.stream, interest, timeout)
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.stream.as_fd())
    }

    fn is_cancelled(&self) -> bool {
        self.cancel.is_cancelled()
    }

    fn wire_bytes(&self) -> (u64, u64) {
        (self.sent, self.received)
    }

    fn finish(&mut self) {
        // A connection that is gone already needs no goodbye.
        let _ = self.stream.shutdown(Shutdown::Write);
    }
}

/// The clock of an emulated link, shared by all connections that go over it: together they have its rate.
pub(crate) type SharedPace = Arc<Mutex<Pace>>;

/// A TCP connection whose outgoing bytes wait in a queue until the emulated link would have delivered them.
pub(crate) struct ShapedLink {
    tcp: TcpLink,
    model: LinkModel,
    pace: SharedPace,
    queue: Arc<Queue>,
    pump: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Queue {
    state: Mutex<Backlog>,
    moved: Condvar,
}

#[derive(Default)]
struct Backlog {
    pieces: VecDeque<(Vec<u8>, Instant)>,
    held: usize,
    finished: bool,
    failed: bool,
}

impl Queue {
    fn lock(&self) -> Result<MutexGuard<'_, Backlog>> {
        self.state.lock().map_err(|_| Error::lost("in the link emulator"))
    }

    /// Writes each piece when it is due, until the queue is finished and empty or the connection fails.
    fn pump(&self, mut stream: TcpStream) -> Result<()> {
        // The kernel rounds sleeps up by 50 µs unless told not to; without this permission delays are a
        // little long.
        #[cfg(any(target_os = "linux", target_os = "android"))]
        let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
        loop {
            let mut backlog = self.lock()?;
            let (piece, due) = loop {
                if let Some(front) = backlog.pieces.pop_front() {
                    break front;
                }
                if backlog.finished {
                    let _ = stream.shutdown(Shutdown::Write);
                    return Ok(());
                }
                backlog = self.moved.wait(backlog).map_err(|_| Error::lost("in the link emulator"))?;
            };
            drop(backlog);
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            let mut rest = piece.as_slice();
            while !rest.is_empty() {
                match attempt(|| stream.write(rest)).map_err(|error| Error::socket(error, "while sending"))? {
                    Some(n) => rest = &rest[n..],
                    None => _ = await_fd(&stream, Interest::Write, Duration::from_secs(1))?,
                }
                if self.lock()?.failed {
                    return Ok(());
                }
            }
            self.lock()?.held -= piece.len();
            self.moved.notify_all();
        }
    }
}

impl ShapedLink {
    /// Shapes what `tcp` sends over the link of `pace`; the peer shapes its direction.
    pub(crate) fn new(tcp: TcpLink, model: LinkModel, pace: SharedPace) -> Result<Self> {
        let writer = tcp.stream.try_clone()?;
        let queue = Arc::new(Queue::default());
        let theirs = queue.clone();
        let pump = std::thread::Builder::new().name("tacit-link".to_owned()).spawn(move || {
            if theirs.pump(writer).is_err()
                && let Ok(mut backlog) = theirs.lock()
            {
                backlog.failed = true;
                backlog.pieces.clear();
            }
            theirs.moved.notify_all();
        })?;
        Ok(ShapedLink { tcp, model, pace, queue, pump: Some(pump) })
    }
}

impl Link for ShapedLink {
    fn try_write(&mut self, slices: &[IoSlice<'_>]) -> Result<usize> {
        let mut backlog = self.queue.lock()?;
        if backlog.failed {
            return Err(Error::lost("while sending"));
        }
        if backlog.held >= self.model.backlog() {
            return Ok(0);
        }
        let n = total(slices);
        let mut pace = self.pace.lock().map_err(|_| Error::lost("in the link emulator"))?;
        for piece in cut(slices, self.model.piece()) {
            let due = pace.arrival(piece.len());
            backlog.pieces.push_back((piece, due));
        }
        drop(pace);
        backlog.held += n;
        drop(backlog);
        self.queue.moved.notify_all();
        self.tcp.sent += n as u64;
        Ok(n)
    }

    fn try_read(&mut self, slices: &mut [IoSliceMut<'_>]) -> Result<Arrival> {
        self.tcp.try_read(slices)
    }

    fn wait(&mut self, interest: Interest, timeout: Duration) -> Result<bool> {
        if !interest.writes() {
            return self.tcp.wait(interest, timeout);
        }
        // Room appears when the pump has written the piece in front: look again by then.
        let deadline = Instant::now() + timeout;
        loop {
            let backlog = self.queue.lock()?;
            if backlog.failed || backlog.held < self.model.backlog() {
                return Ok(true);
            }
            let next = backlog.pieces.front().map(|(_, due)| due.saturating_duration_since(Instant::now()));
            drop(backlog);
            let left = deadline.saturating_duration_since(Instant::now());
            let pause = next.unwrap_or_default().max(Duration::from_millis(1)).min(left);
            if interest.reads() {
                if self.tcp.wait(Interest::Read, pause)? {
                    return Ok(true);
                }
            } else {
                std::thread::sleep(pause);
            }
            if left.is_zero() {
                return Ok(false);
            }
        }
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.tcp.descriptor()
    }

    fn is_cancelled(&self) -> bool {
        self.tcp.is_cancelled()
    }

    fn wire_bytes(&self) -> (u64, u64) {
        self.tcp.wire_bytes()
    }

    fn finish(&mut self) {
        if let Ok(mut backlog) = self.queue.lock() {
            backlog.finished = true;
        }
        self.queue.moved.notify_all();
    }
}

impl Drop for ShapedLink {
    fn drop(&mut self) {
        self.finish();
        // What was sent arrives before the connection closes, unless the peer takes nothing any more.
        let mut deadline = Instant::now() + Duration::from_secs(5) + self.model.delay();
        if let Ok(backlog) = self.queue.lock() {
            deadline += backlog
                .pieces
                .back()
                .map_or(Duration::ZERO, |(_, due)| due.saturating_duration_since(Instant::now()));
        }
        while let Some(pump) = &self.pump
            && !pump.is_finished()
            && Instant::now() < deadline
        {
            let Ok(backlog) = self.queue.lock() else { break };
            if self.queue.moved.wait_timeout(backlog, Duration::from_millis(1)).is_err() {
                break;
            }
        }
        if let Ok(mut backlog) = self.queue.lock() {
            backlog.failed = true;
        }
    }
}
