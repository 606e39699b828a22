//! [`Channel`]: framed, buffered, metered, with deadlines.
//!
//! On the link travel frames: one byte of kind, three of length (little-endian, at most [`MAX_FRAME`]), the
//! payload. Frames are cut where buffers end and mean nothing to a protocol; they let a receiver notice bytes
//! that were lost, added or made up, and tell an orderly end from a broken connection.
//!
//! One thread a party: while a write finds no room the channel takes in what the peer sends meanwhile, so two
//! parties that both send first never lock each other, whatever the volume.

use crate::error::printable;
use crate::inbox::{CHUNK, Inbox};
use crate::link::{Arrival, Gone, Interest, Link};
use crate::patience::{End, Progress, Spell, slowest};
use crate::{Cause, Error, Result};
use std::io::{IoSlice, IoSliceMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tacit_crypto::Block;
use tacit_crypto::text::counted;

/// Names one run between two parties; every hash of a protocol binds it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SessionId(pub [u8; 32]);

/// Which end of the channel this is. Protocol roles (sender, receiver, garbler …) are independent of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Party {
    /// The end that listened, or the first of an in-memory pair.
    First,
    /// The end that connected, or the second of an in-memory pair.
    Second,
}

/// What passed over a channel so far.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Stats {
    /// Bytes sent, framing included, TLS not.
    pub bytes_sent: u64,
    /// Bytes received and consumed, framing included, TLS not.
    pub bytes_received: u64,
    /// Messages sent: runs of sends without a receive between them.
    pub messages_sent: u64,
    /// Messages received: runs of receives without a send between them.
    pub messages_received: u64,
    /// Changes from sending to receiving: the rounds this party waited for.
    pub rounds: u64,
    /// Time spent waiting for the peer.
    pub wait: Duration,
    /// Bytes that left at the socket: framing, handshakes and TLS included.
    pub wire_sent: u64,
    /// Bytes that arrived at the socket, whether consumed yet or not.
    pub wire_received: u64,
}

impl Stats {
    /// What passed since `earlier`, a copy of the same channel's stats.
    pub fn since(&self, earlier: &Stats) -> Stats {
        Stats {
            bytes_sent: self.bytes_sent.saturating_sub(earlier.bytes_sent),
            bytes_received: self.bytes_received.saturating_sub(earlier.bytes_received),
            messages_sent: self.messages_sent.saturating_sub(earlier.messages_sent),
            messages_received: self.messages_received.saturating_sub(earlier.messages_received),
            rounds: self.rounds.saturating_sub(earlier.rounds),
            wait: self.wait.saturating_sub(earlier.wait),
            wire_sent: self.wire_sent.saturating_sub(earlier.wire_sent),
            wire_received: self.wire_received.saturating_sub(earlier.wire_received),
        }
    }

    /// What passed over two connections, one after the other.
    pub fn and(&self, later: &Stats) -> Stats {
        Stats {
            bytes_sent: self.bytes_sent + later.bytes_sent,
            bytes_received: self.bytes_received + later.bytes_received,
            messages_sent: self.messages_sent + later.messages_sent,
            messages_received: self.messages_received + later.messages_received,
            rounds: self.rounds + later.rounds,
            wait: self.wait + later.wait,
            wire_sent: self.wire_sent + later.wire_sent,
            wire_received: self.wire_received + later.wire_received,
        }
    }
}

/// Bytes that pass over channels, counted while they do: both directions together, framing included, TLS not.
///
/// Every copy is the same count. Another thread can read it while a protocol runs: to show that it goes on.
#[derive(Clone, Default, Debug)]
pub struct Traffic(Arc<AtomicU64>);

impl Traffic {
    /// Bytes so far.
    pub fn bytes(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn add(&self, bytes: usize) {
        self.0.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

/// How long a channel waits and how much it holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Connecting: TCP, TLS and handshake together. 30 s.
    pub connect: Duration,
    /// A listener waits so long for its peer; `None` waits for ever. 10 min.
    pub accept: Option<Duration>,
    /// One receive at most, however many bytes it has. 1 h.
    pub read: Duration,
    /// No byte moves in the direction that is waited for. 2 min. Bytes that drip are no excuse: a receive that
    /// waits for its bytes longer than this, and the time that they take at [`SLOWEST`](crate::SLOWEST) bytes a second, ends,
    /// and so does a message, whatever number of calls it is sent or received by, that waits ten times as long.
    pub idle: Duration,
    /// Bytes held that the peer sent before they were asked for. 1 GiB.
    pub inbox: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            connect: Duration::from_secs(30),
            accept: Some(Duration::from_secs(600)),
            read: Duration::from_secs(3600),
            idle: Duration::from_secs(120),
            inbox: 1 << 30,
        }
    }
}

/// The longest payload of a frame.
pub const MAX_FRAME: usize = 1 << 20;

const HEADER: usize = 4;
/// Smaller sends gather up to so many bytes; larger ones go straight from the caller's slice.
const BATCH: usize = 1 << 17;
const LARGE: usize = 1 << 16;
/// Longest wait for room when a channel is dropped with bytes still to send.
const FAREWELL: Duration = Duration::from_secs(5);

/// The kinds of frame. Fixed for all versions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Hello = 0xA7,
    Data = 0xD7,
    Bye = 0xB7,
}

fn header(kind: Kind, length: usize) -> [u8; HEADER] {
    let length = (length as u32).to_le_bytes();
    [kind as u8, length[0], length[1], length[2]]
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Sent,
    Received,
}

/// Hashes of what passed; see [`Channel::audit`] and [`Recording`].
#[derive(Default)]
struct Audit {
    sent: blake3::Hasher,
    received: blake3::Hasher,
}

/// A hash of what passed during some steps of a protocol, for Fiat–Shamir: what later challenges have to
/// bind.
///
/// Each direction is hashed by itself. So both ends get the same digest when their steps send and receive the
/// same, whatever order the directions interleave in, and however the steps are cut. Recordings may stand
/// within each other.
pub struct Recording {
    party: Party,
    passed: Audit,
}

impl Recording {
    /// An empty recording of `channel`; [`Channel::record`] adds to it.
    pub fn new(channel: &Channel) -> Self {
        Recording { party: channel.party, passed: Audit::default() }
    }

    /// The digest of both directions.
    pub fn digest(&self) -> [u8; blake3::OUT_LEN] {
        let Audit { sent, received } = &self.passed;
        let directions = match self.party {
            Party::First => [sent, received],
            Party::Second => [received, sent],
        };
        let mut both = blake3::Hasher::new_derive_key("tacit 2026 recording v1");
        for direction in directions {
            both.update(&direction.count().to_le_bytes());
            both.update(direction.finalize().as_bytes());
        }
        *both.finalize().as_bytes()
    }
}

/// One ordered, reliable connection to the peer.
///
/// Sends are buffered and leave at the latest when the party next receives, flushes or drops the channel.
/// After an error the channel stays unusable.
pub struct Channel {
    link: Box<dyn Link>,
    party: Party,
    session: SessionId,
    limits: Limits,
    /// When everything has to be over.
    end: End,
    /// A frame in the making: room for its header, then its payload.
    outgoing: Vec<u8>,
    inbox: Inbox,
    /// Bytes of the current incoming frame still to come.
    frame_left: usize,
    greeted: bool,
    broken: bool,
    /// Whether bytes are on their way out, of which some may have left: an error leaves it set.
    sending: bool,
    /// What the farewell gives as the reason.
    cause: Option<Cause>,
    /// Whether everything sent has left this process.
    flushed: bool,
    stats: Stats,
    traffic: Option<Traffic>,
    last: Option<Direction>,
    spell: Spell,
    instances: u64,
    audit: Option<Box<Audit>>,
    /// The steps under way that are recorded, each within the one before.
    recordings: Vec<Audit>,
}

impl Channel {
    /// A channel over `link` with the default [`Limits`].
    pub fn new(link: Box<dyn Link>, party: Party, session: SessionId) -> Self {
        Self::with_limits(link, party, session, Limits::default())
    }

    /// A channel over `link`.
    pub fn with_limits(link: Box<dyn Link>, party: Party, session: SessionId, limits: Limits) -> Self {
        let mut outgoing = Vec::with_capacity(HEADER + BATCH);
        outgoing.resize(HEADER, 0);
        Channel {
            link,
            party,
            session,
            limits,
            end: End::default(),
            outgoing,
            inbox: Inbox::default(),
            frame_left: 0,
            greeted: true,
            broken: false,
            sending: false,
            cause: None,
            flushed: true,
            stats: Stats::default(),
            traffic: None,
            last: None,
            spell: Spell::default(),
            instances: 0,
            audit: None,
            recordings: Vec::new(),
        }
    }

    /// A channel over a `link` out of [`into_link`](Self::into_link), from which these bytes had come.
    pub fn go_on(link: Box<dyn Link>, come: &[u8], party: Party, session: SessionId, limits: Limits) -> Self {
        let mut channel = Self::with_limits(link, party, session, limits);
        for part in come.chunks(CHUNK) {
            let mut buffer = channel.inbox.buffer();
            buffer[..part.len()].copy_from_slice(part);
            channel.inbox.append(buffer, part.len());
        }
        channel
    }

    /// The session that both ends agreed on.
    pub fn session_id(&self) -> SessionId {
        self.session
    }

    /// Which end this is.
    pub fn party(&self) -> Party {
        self.party
    }

    /// Numbers the protocol runs of this channel: 0, 1, 2, … Each run takes one number at its start, on both
    /// ends alike.
    ///
    /// A hash that binds it, the session and the direction tells every two runs of one session apart.
    pub fn next_instance(&mut self) -> u64 {
        let instance = self.instances;
        self.instances += 1;
        instance
    }

    /// Adds what passes from here on to `traffic`, which several channels can share.
    pub fn count_into(&mut self, traffic: &Traffic) {
        self.traffic = Some(traffic.clone());
    }

    fn count(&self, bytes: usize) {
        if let Some(traffic) = &self.traffic {
            traffic.add(bytes);
        }
    }

    /// Hashes what passes from here on, on both ends alike, until [`confirm`](Self::confirm).
    ///
    /// For a channel without TLS, where damage on the way would otherwise show only if a protocol's own
    /// checks meet it. It is no protection against a person: who can change bytes can change the confirmation
    /// too.
    pub fn audit(&mut self) {
        self.audit = Some(Box::default());
    }

    /// Compares with the peer what was sent and what arrived since [`audit`](Self::audit); nothing without
    /// it.
    pub fn confirm(&mut self) -> Result<()> {
        let Some(audit) = self.audit.take() else { return Ok(()) };
        self.send(audit.sent.finalize().as_bytes())?;
        let mut theirs = [0u8; blake3::OUT_LEN];
        self.recv(&mut theirs)?;
        let damaged = Err(Error::Malformed("the data was changed in transit; the connection damages data"));
        if audit.received.finalize() != theirs {
            return damaged;
        }
        // What we computed may depend on what the peer made of damaged bytes, so it must be content as well.
        const CONTENT: u64 = 0x0074_6e65_746e_6f63;
        self.send_u64(CONTENT)?;
        if self.recv_u64()? == CONTENT { Ok(()) } else { damaged }
    }

    /// Runs `step` and adds to `recording` all that it sends and receives.
    pub fn record<T>(&mut self, recording: &mut Recording, step: impl FnOnce(&mut Self) -> T) -> T {
        self.recordings.push(std::mem::take(&mut recording.passed));
        let result = step(self);
        recording.passed = self.recordings.pop().unwrap_or_default();
        result
    }

    /// What passed so far; bytes that still wait in a buffer count as sent.
    pub fn stats(&self) -> Stats {
        let mut stats = self.stats;
        if self.outgoing.len() > HEADER {
            stats.bytes_sent += self.outgoing.len() as u64;
        }
        (stats.wire_sent, stats.wire_received) = self.link.wire_bytes();
        stats
    }

    /// The deadlines and bounds in force.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// Sets other deadlines and bounds from here on.
    pub fn set_limits(&mut self, limits: Limits) {
        self.limits = limits;
    }

    /// Gives all that follows so much time: whatever is sent or received later is [`Error::Overtime`], however
    /// well each message keeps to the [`limits`](Self::limits).
    pub fn end_within(&mut self, whole: Duration) {
        self.end = End::within(whole);
    }

    /// Sends bytes whose number the peer knows.
    pub fn send(&mut self, bytes: &[u8]) -> Result<()> {
        for audit in self.audit.as_deref_mut().into_iter().chain(&mut self.recordings) {
            audit.sent.update(bytes);
        }
        if self.last != Some(Direction::Sent) {
            self.last = Some(Direction::Sent);
            self.spell = Spell::default();
            self.stats.messages_sent += 1;
        }
        self.flushed = false;
        if bytes.len() >= LARGE {
            return self.guarded(|channel| channel.ship(bytes));
        }
        if self.outgoing.len() + bytes.len() > HEADER + BATCH {
            self.guarded(|channel| channel.ship(&[]))?;
        }
        self.outgoing.extend_from_slice(bytes);
        Ok(())
    }

    /// Receives exactly `out.len()` bytes; flushes first. On an error the content of `out` is unspecified.
    pub fn recv(&mut self, out: &mut [u8]) -> Result<()> {
        self.flush()?;
        if self.last != Some(Direction::Received) {
            if self.last == Some(Direction::Sent) {
                self.stats.rounds += 1;
            }
            self.last = Some(Direction::Received);
            self.spell = Spell::default();
            self.stats.messages_received += 1;
        }
        self.guarded(|channel| channel.fill(out))?;
        for audit in self.audit.as_deref_mut().into_iter().chain(&mut self.recordings) {
            audit.received.update(out);
        }
        Ok(())
    }

    /// What follows counts as a message of its own, though it passes the same way: for a peer that says now and
    /// then, a bounded number of times, that it is still at work.
    pub fn next_message(&mut self) {
        self.spell = Spell::default();
    }

    /// Whether a receive of `bytes` bytes would find them here: takes in what has come without waiting for
    /// more, so that a party can compute until its peer's message is there. Flushes first.
    ///
    /// Heads of frames count, so the last bytes may still be on their way; an end of the stream is left to
    /// the receive.
    pub fn has_come(&mut self, bytes: usize) -> Result<bool> {
        self.flush()?;
        self.guarded(|channel| {
            while channel.inbox.held < bytes {
                let mut buffer = channel.inbox.buffer();
                match channel.link.try_read(&mut [IoSliceMut::new(&mut buffer)])? {
                    Arrival::Bytes(n) => channel.inbox.append(buffer, n),
                    Arrival::End => break,
                    Arrival::Nothing => {
                        channel.inbox.keep(buffer);
                        return Ok(false);
                    }
                }
            }
            Ok(true)
        })
    }

    /// Hands everything buffered to the link and returns once the operating system has it: what follows is
    /// computed while the bytes travel.
    pub fn flush(&mut self) -> Result<()> {
        if self.flushed && !self.broken {
            return Ok(());
        }
        self.guarded(|channel| {
            channel.ship(&[])?;
            channel.push()?;
            channel.flushed = true;
            Ok(())
        })
    }

    /// Sends blocks whose number the peer knows.
    pub fn send_blocks(&mut self, blocks: &[Block]) -> Result<()> {
        self.send(Block::as_bytes(blocks))
    }

    /// Receives exactly `out.len()` blocks.
    pub fn recv_blocks(&mut self, out: &mut [Block]) -> Result<()> {
        self.recv(Block::as_bytes_mut(out))
    }

    /// Sends one block.
    pub fn send_block(&mut self, block: Block) -> Result<()> {
        self.send(&block.to_bytes())
    }

    /// Receives one block.
    pub fn recv_block(&mut self) -> Result<Block> {
        let mut bytes = [0u8; 16];
        self.recv(&mut bytes)?;
        Ok(Block::from_bytes(bytes))
    }

    /// Sends a number.
    pub fn send_u64(&mut self, value: u64) -> Result<()> {
        self.send(&value.to_le_bytes())
    }

    /// Receives a number. It is the peer's word: check it before allocating by it.
    pub fn recv_u64(&mut self) -> Result<u64> {
        let mut bytes = [0u8; 8];
        self.recv(&mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }

    /// Sends bytes whose number the peer does not know: a length of 8 bytes, then the bytes.
    pub fn send_sized(&mut self, bytes: &[u8]) -> Result<()> {
        self.send_u64(bytes.len() as u64)?;
        self.send(bytes)
    }

    /// Receives what [`send_sized`](Self::send_sized) sent, `Error::Oversized` past `max` bytes.
    pub fn recv_sized(&mut self, max: usize) -> Result<Vec<u8>> {
        let announced = self.recv_u64()?;
        if announced > max as u64 {
            // What follows is in the middle of a message.
            self.broken = true;
            return Err(Error::Oversized { announced, allowed: max as u64 });
        }
        let mut out = Vec::new();
        while (out.len() as u64) < announced {
            let start = out.len();
            let step = (announced - start as u64).min(1 << 20) as usize;
            out.resize(start + step, 0);
            self.recv(&mut out[start..])?;
        }
        Ok(out)
    }

    fn guarded<T>(&mut self, operation: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.broken {
            return Err(Error::Broken);
        }
        let result = operation(self).map_err(|error| match self.link.is_cancelled() {
            true => Error::Cancelled,
            false => error,
        });
        self.broken = result.is_err();
        result
    }

    /// An error if this side was told to end.
    fn go_ahead(&self) -> Result<()> {
        if self.link.is_cancelled() { Err(Error::Cancelled) } else { Ok(()) }
    }

    /// Hands what was written on to the operating system.
    fn push(&mut self) -> Result<()> {
        self.sending = true;
        while !self.link.try_flush()? {
            self.stalled()?;
        }
        self.sending = false;
        Ok(())
    }

    /// Writes the frame in the making, then `large` as frames of its own, straight from the caller's memory.
    fn ship(&mut self, large: &[u8]) -> Result<()> {
        self.end.left()?;
        self.go_ahead()?;
        let mut batch = std::mem::take(&mut self.outgoing);
        let pending = batch.len() - HEADER;
        batch[..HEADER].copy_from_slice(&header(Kind::Data, pending));
        let mut first: &[u8] = if pending > 0 { &batch } else { &[] };
        let mut pieces = large.chunks(MAX_FRAME).peekable();
        let mut outcome = Ok(());
        while outcome.is_ok() && (!first.is_empty() || pieces.peek().is_some()) {
            let piece = pieces.next().unwrap_or_default();
            let head = header(Kind::Data, piece.len());
            let head: &[u8] = if piece.is_empty() { &[] } else { &head };
            outcome = self.write_parts([first, head, piece]);
            first = &[];
        }
        batch.truncate(HEADER);
        self.outgoing = batch;
        outcome
    }

    /// Writes all parts, taking in what the peer sends while there is no room.
    fn write_parts(&mut self, mut parts: [&[u8]; 3]) -> Result<()> {
        let mut left: usize = parts.iter().map(|part| part.len()).sum();
        self.stats.bytes_sent += left as u64;
        self.sending = true;
        while left > 0 {
            let mut written = match self.link.try_write(&parts.map(IoSlice::new)) {
                Err(error) => return Err(self.last_words(error)),
                Ok(written) => written,
            };
            if written == 0 {
                self.stalled()?;
            }
            self.count(written);
            self.spell.bytes += written as u64;
            left -= written;
            for part in &mut parts {
                let step = written.min(part.len());
                *part = &part[step..];
                written -= step;
            }
        }
        self.sending = false;
        Ok(())
    }

    /// A write failed because the peer is gone: it may have said why before it went.
    fn last_words(&mut self, error: Error) -> Error {
        const LONGEST: usize = HEADER + 1;
        let mut buffer = self.inbox.buffer();
        let mut tail = self.inbox.last(LONGEST);
        if !matches!(error, Error::Lost { .. }) {
            return error;
        }
        loop {
            match self.link.try_read(&mut [IoSliceMut::new(&mut buffer)]) {
                Ok(Arrival::Bytes(n)) => {
                    tail.extend_from_slice(&buffer[n.saturating_sub(LONGEST)..n]);
                    tail.drain(..tail.len().saturating_sub(LONGEST));
                }
                Ok(_) | Err(Error::Lost { .. }) => break,
                Err(reason) => return reason,
            }
        }
        if let [head @ .., code] = tail.as_slice()
            && head == header(Kind::Bye, 1)
        {
            return Error::Closed { cause: Cause::of(*code) };
        }
        if tail.ends_with(&header(Kind::Bye, 0)) { Error::Closed { cause: None } } else { error }
    }

    /// The link has no room: takes in a chunk if there is one, otherwise waits for either direction.
    fn stalled(&mut self) -> Result<()> {
        let mut buffer = self.inbox.buffer();
        match self.link.try_read(&mut [IoSliceMut::new(&mut buffer)])? {
            Arrival::Bytes(n) => {
                self.inbox.append(buffer, n);
                if self.inbox.held > self.limits.inbox {
                    let (held, allowed) = (self.inbox.held as u64, self.limits.inbox as u64);
                    return Err(Error::Flooded { held, allowed });
                }
                Ok(())
            }
            Arrival::End => Err(self.last_words(Error::lost("while sending"))),
            Arrival::Nothing => {
                self.inbox.keep(buffer);
                let left = self.spell.left(self.limits.idle);
                let idle = self.limits.idle;
                let after = if left < idle { self.spell.waited + left } else { idle };
                self.await_link(Interest::Both, left.min(idle), || "the peer to take what is sent".to_owned())
                    .map_err(|error| timed_out(error, after))
            }
        }
    }

    fn await_link(
        &mut self,
        interest: Interest,
        timeout: Duration,
        awaited: impl FnOnce() -> String,
    ) -> Result<()> {
        let timeout = self.end.left()?.map_or(timeout, |left| left.min(timeout));
        let start = Instant::now();
        let ready = if timeout.is_zero() { Ok(false) } else { self.link.wait(interest, timeout) };
        let waited = start.elapsed();
        self.stats.wait += waited;
        self.spell.waited += waited;
        let ready = ready?;
        self.end.left()?;
        if ready { Ok(()) } else { Err(Error::Timeout { after: timeout, awaited: awaited() }) }
    }

    fn fill(&mut self, out: &mut [u8]) -> Result<()> {
        let mut progress = Progress::of(out.len());
        while progress.filled < out.len() {
            if self.frame_left == 0 {
                self.frame_left = self.next_frame(Kind::Data, &mut progress)?;
            }
            let start = progress.filled;
            let end = out.len().min(start + self.frame_left);
            let n = self.pull(&mut out[start..end], &mut progress)?;
            progress.filled += n;
            self.frame_left -= n;
        }
        Ok(())
    }

    /// Reads the header of a frame of the wanted kind and returns its length, at least 1.
    fn next_frame(&mut self, wanted: Kind, progress: &mut Progress) -> Result<usize> {
        self.end.left()?;
        self.go_ahead()?;
        let mut head = [0u8; HEADER];
        let mut filled = 0;
        while filled < HEADER {
            filled += match self.pull(&mut head[filled..], progress) {
                Err(Error::Lost { .. }) if filled > 0 => {
                    return Err(Error::lost("in the middle of a frame's header"));
                }
                other => other?,
            };
        }
        let length = usize::from(head[1]) | usize::from(head[2]) << 8 | usize::from(head[3]) << 16;
        if head[0] == Kind::Bye as u8 && length <= 1 {
            let mut code = [0u8; 1];
            // A connection that breaks here has ended all the same.
            let cause = match length == 1 && self.pull(&mut code, progress).is_ok() {
                true => Cause::of(code[0]),
                false => None,
            };
            return Err(Error::Closed { cause });
        }
        if head[0] != wanted as u8 {
            if self.greeted {
                return Err(Error::Malformed("a frame of unknown kind: the bytes were damaged or forged"));
            }
            return Err(self.stranger(&head));
        }
        if length > MAX_FRAME {
            return Err(Error::Oversized { announced: length as u64, allowed: MAX_FRAME as u64 });
        }
        if length == 0 {
            return Err(Error::Malformed("an empty frame"));
        }
        Ok(length)
    }

    /// The error about an end that does not greet as we do, with what it said so far.
    pub(crate) fn stranger(&mut self, said: &[u8]) -> Error {
        let mut more = [0u8; 64];
        let n = self.inbox.take(&mut more);
        let saw = [said, &more[..n]].concat();
        let saw = match saw.as_slice() {
            [0x16, 0x03, ..] => "a TLS greeting".to_owned(),
            [0x15, 0x03, ..] => "a TLS alert, so it wants TLS".to_owned(),
            bytes => printable(bytes),
        };
        Error::NotTacit { saw }
    }

    /// At least one byte of the stream, from the inbox or the link.
    fn pull(&mut self, out: &mut [u8], progress: &mut Progress) -> Result<usize> {
        loop {
            let n = self.inbox.take(out);
            if n > 0 {
                self.arrived(n);
                return Ok(n);
            }
            // Large pieces are read in place, and what follows them in the same call goes to the inbox.
            let direct = if out.len() >= LARGE { out.len() } else { 0 };
            let mut spill = self.inbox.buffer();
            let arrival = {
                let mut slices = [IoSliceMut::new(&mut out[..direct]), IoSliceMut::new(&mut spill)];
                self.link.try_read(&mut slices[usize::from(direct == 0)..])?
            };
            match arrival {
                Arrival::Bytes(n) => {
                    let placed = n.min(direct);
                    if n > placed {
                        self.inbox.append(spill, n - placed);
                    } else {
                        self.inbox.keep(spill);
                    }
                    if placed > 0 {
                        self.arrived(placed);
                        return Ok(placed);
                    }
                }
                Arrival::End => return Err(self.ended()),
                Arrival::Nothing => {
                    self.inbox.keep(spill);
                    self.await_bytes(progress)?;
                }
            }
        }
    }

    fn arrived(&mut self, bytes: usize) {
        self.stats.bytes_received += bytes as u64;
        self.spell.bytes += bytes as u64;
        self.count(bytes);
    }

    fn ended(&self) -> Error {
        Error::lost(match (self.greeted, self.frame_left) {
            (false, _) => "before it greeted",
            (true, 0) => "while waiting for its message",
            (true, _) => "in the middle of a message",
        })
    }

    fn await_bytes(&mut self, progress: &mut Progress) -> Result<()> {
        let limits = self.limits;
        let start = *progress.start.get_or_insert_with(Instant::now);
        let whole = match progress.filled {
            0 => limits.read,
            _ => limits.read.min(limits.idle.saturating_add(slowest(progress.wanted as u64))),
        };
        let left = whole.saturating_sub(start.elapsed());
        let of_message = self.spell.left(limits.idle);
        let (timeout, after) = [(left, whole), (of_message, self.spell.waited + of_message)]
            .into_iter()
            .fold((limits.idle, limits.idle), |least, other| if other.0 < least.0 { other } else { least });
        let greeted = self.greeted;
        let awaited = || match (greeted, progress.filled) {
            (false, _) => "the peer's greeting".to_owned(),
            (true, 0) => "the peer's next message".to_owned(),
            (true, filled) => {
                format!(
                    "a message of the peer, of which {filled} of {} arrived",
                    counted(progress.wanted, "byte")
                )
            }
        };
        self.await_link(Interest::Read, timeout, awaited).map_err(|error| timed_out(error, after))
    }

    /// Sends one frame of the handshake.
    pub(crate) fn send_hello(&mut self, bytes: &[u8]) -> Result<()> {
        let head = header(Kind::Hello, bytes.len());
        self.guarded(|channel| {
            channel.write_parts([&head, bytes, &[]])?;
            channel.push()
        })
    }

    /// A last frame of the handshake to an end that we part with, also after what it said broke the channel.
    pub(crate) fn part_with_hello(&mut self, bytes: &[u8]) {
        self.broken = false;
        // Who does not take it goes without.
        let _ = self.send_hello(bytes);
        self.broken = true;
    }

    /// Receives one frame of the handshake; until then any other bytes mean that the peer is a stranger.
    pub(crate) fn recv_hello(&mut self, max: usize) -> Result<Vec<u8>> {
        self.guarded(|channel| {
            channel.greeted = false;
            let length = channel.next_frame(Kind::Hello, &mut Progress::of(HEADER))?;
            if length > max {
                return Err(Error::Oversized { announced: length as u64, allowed: max as u64 });
            }
            let mut out = vec![0; length];
            channel.frame_left = length;
            channel.fill(&mut out)?;
            channel.greeted = true;
            Ok(out)
        })
    }

    /// Gives `cause` as the reason where the channel ends before the protocol has. The peer reads it in its error;
    /// what was to be sent before is sent first.
    pub fn stop(&mut self, cause: Cause) {
        self.cause = Some(cause);
    }

    pub(crate) fn set_session(&mut self, session: SessionId) {
        self.session = session;
    }

    /// Sends what waits, and hands over the link for bytes that mean nothing to this end from here on, with
    /// what of them has come already.
    pub fn into_link(mut self) -> Result<(Box<dyn Link>, Vec<u8>)> {
        self.flush()?;
        if self.frame_left > 0 {
            return Err(Error::Malformed("a message that was not requested"));
        }
        let mut come = vec![0; self.inbox.held];
        let mut filled = 0;
        while filled < come.len() {
            filled += self.inbox.take(&mut come[filled..]);
        }
        // Nothing of the channel's own follows.
        self.broken = true;
        Ok((std::mem::replace(&mut self.link, Box::new(Gone)), come))
    }
}

/// A wait that was too long, told by the bound that it had.
fn timed_out(error: Error, after: Duration) -> Error {
    match error {
        Error::Timeout { awaited, .. } => Error::Timeout { after, awaited },
        other => other,
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        // After what it received broke the channel, a side still sends whole frames.
        if self.broken && (self.sending || self.cause.is_none()) {
            return self.link.finish();
        }
        let was_broken = std::mem::take(&mut self.broken);
        // The peer notices a farewell that fails by itself: its read ends.
        self.limits.idle = self.limits.idle.min(FAREWELL);
        let code = self.cause.map(|cause| [cause.code()]);
        let code = code.as_ref().map_or(&[][..], |code| code.as_slice());
        let _ = self.guarded(|channel| {
            if !was_broken {
                channel.ship(&[])?;
            }
            channel.write_parts([&header(Kind::Bye, code.len()), code, &[]])?;
            channel.push()
        });
        self.link.finish();
    }
}
