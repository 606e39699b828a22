//! The relay at which two sides meet ([`meeting`](crate::meeting)): it joins connections whose keys want each
//! other, and passes bytes.
//!
//! Who calls proves a key, so nobody can wait in another's place; whom a key belongs to the relay need not know,
//! unless it is told to serve some keys alone. What it holds is bounded: connections that have not said who they
//! are, callers that wait, of each address and in all, pairs, and of each pair bytes at a time, bytes in all and
//! time. When all places are taken, those of the address that holds most make room.

use crate::cancel::Cancel;
use crate::keys::{PublicKey, SIGNATURE, fingerprint_bytes};
use crate::meeting::{
    CALL_CHALLENGE, CALL_HEAD, CONNECTS, CONTEXT, LISTENS, MAGIC, MOST_WANTED, Part, REFUSED, STILL_WAITS,
    WAITS, signed, tail,
};
use crate::relay::relay;
use crate::tcp::{TcpLink, await_fd};
use crate::{Error, Result, link::Interest};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What a relay holds at most.
#[derive(Clone, Debug)]
pub struct Bounds {
    /// Connections that have not said who they are.
    pub unknown: usize,
    /// Callers that wait for another.
    pub waiting: usize,
    /// Connections of one address, of either kind.
    pub of_address: usize,
    /// Calls of one address in a minute.
    pub rate: u32,
    /// Pairs that speak at once.
    pub pairs: usize,
    /// Bytes that a pair may pass, both ways together.
    pub bytes: u64,
    /// How long a pair may speak.
    pub time: Duration,
    /// How long a pair may be silent.
    pub idle: Duration,
}

impl Default for Bounds {
    fn default() -> Self {
        Bounds {
            unknown: 64,
            waiting: 1024,
            of_address: 64,
            rate: 600,
            pairs: 256,
            bytes: 1 << 40,
            time: Duration::from_secs(24 * 3600),
            idle: Duration::from_secs(3600),
        }
    }
}

/// Time for a connection to say who it is.
const GREETING: Duration = Duration::from_secs(10);
/// How often callers that wait are looked at.
const LOOK_AT_CALLERS: Duration = Duration::from_millis(500);
/// Over this time calls of an address are counted.
const MINUTE: Duration = Duration::from_secs(60);

/// Something that happened at a relay. Nothing in it is secret.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Event {
    /// Two sides have met; the fingerprints of their keys.
    Met([String; 2]),
    /// Two sides have parted: theirs, the bytes that passed and for how long, and what ended it if not they.
    Parted([String; 2], u64, Duration, Option<String>),
    /// A connection was turned away: where it came from, why, and how many were so far.
    TurnedAway(IpAddr, String, u64),
}

/// A relay that listens.
pub struct Relay {
    listener: TcpListener,
    house: Arc<House>,
}

struct House {
    bounds: Bounds,
    /// The fingerprints that are served; anybody's where there are none.
    served: Option<BTreeSet<[u8; 16]>>,
    state: Mutex<State>,
    pairs: AtomicUsize,
    cancel: Cancel,
    tell: Box<dyn Fn(&Event) + Send + Sync>,
}

#[derive(Default)]
struct State {
    /// Connections that have not said who they are.
    unknown: Vec<(u64, IpAddr, TcpStream)>,
    waiting: Vec<Caller>,
    /// When each address's minute began, and its calls since.
    calls: BTreeMap<IpAddr, (Instant, u32)>,
    next: u64,
    turned_away: u64,
}

struct Caller {
    stream: TcpStream,
    from: IpAddr,
    part: Part,
    fingerprint: [u8; 16],
    wanted: Vec<[u8; 16]>,
    /// When it was last told that it waits.
    told: Instant,
}

impl Caller {
    fn wants(&self, other: &Caller) -> bool {
        self.wanted.is_empty() || self.wanted.contains(&other.fingerprint)
    }

    /// Whether the two may be joined, and whether this one listens then; `other` comes later.
    fn joins(&self, other: &Caller) -> Option<bool> {
        if !self.wants(other) || !other.wants(self) {
            return None;
        }
        match (self.part, other.part) {
            (Part::Listening | Part::Alone, Part::Either | Part::Connecting) => Some(true),
            (Part::Either, Part::Either | Part::Connecting) => Some(true),
            (Part::Connecting, Part::Either | Part::Listening | Part::Alone) => Some(false),
            (Part::Either, Part::Listening | Part::Alone) => Some(false),
            _ => None,
        }
    }

    /// Whether it is still there: who waits says nothing.
    fn is_there(&self) -> bool {
        self.stream.set_nonblocking(true).is_ok()
            && matches!(self.stream.peek(&mut [0]), Err(error) if error.kind() == ErrorKind::WouldBlock)
    }

    /// Says a byte; false if it is gone.
    fn say(&mut self, byte: u8) -> bool {
        self.told = Instant::now();
        matches!((&self.stream).write(&[byte]), Ok(1))
    }
}

/// A fingerprint as people read it.
fn shown(fingerprint: &[u8; 16]) -> String {
    let groups = fingerprint.chunks(2).map(|pair| format!("{:02x}{:02x}", pair[0], pair[1]));
    groups.collect::<Vec<_>>().join("-")
}

fn bytes_of(key: &PublicKey) -> [u8; 16] {
    fingerprint_bytes(&key.fingerprint()).unwrap_or_default()
}

impl Relay {
    /// Listens at `address`. Serves the keys `served` alone if there are any, until `cancel`; `tell` hears what
    /// happens, from any thread.
    pub fn bind(
        address: &str,
        bounds: Bounds,
        served: &[PublicKey],
        cancel: Cancel,
        tell: impl Fn(&Event) + Send + Sync + 'static,
    ) -> Result<Self> {
        let listener = crate::setup::bound(address)?;
        let served = (!served.is_empty()).then(|| served.iter().map(bytes_of).collect());
        let house = House {
            bounds,
            served,
            state: Mutex::default(),
            pairs: AtomicUsize::new(0),
            cancel,
            tell: Box::new(tell),
        };
        Ok(Relay { listener, house: Arc::new(house) })
    }

    /// Where it listens.
    pub fn local_addr(&self) -> Result<SocketAddr> {
        Ok(self.listener.local_addr()?)
    }

    /// Serves until it is cancelled. Errors: a port that fails again and again.
    pub fn serve(&self) -> Result<()> {
        let mut failures = 0;
        while !self.house.cancel.is_cancelled() {
            await_fd(&self.listener, Interest::Read, self.house.cancel.pause(LOOK_AT_CALLERS))?;
            self.house.look();
            match self.listener.accept() {
                Ok((stream, from)) => {
                    failures = 0;
                    receive(&self.house, stream, from.ip().to_canonical());
                }
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
                Err(error) if failures >= 500 => return Err(Error::Io(error)),
                Err(_) => {
                    failures += 1;
                    std::thread::sleep(Duration::from_millis(10));
                }
            }
        }
        let mut state = self.house.lock();
        state.unknown.iter().for_each(|(_, _, stream)| close(stream));
        state.waiting.clear();
        Ok(())
    }
}

/// Receives one connection on a thread of its own.
fn receive(house: &Arc<House>, stream: TcpStream, from: IpAddr) {
    let number = match house.admit(&stream, from) {
        Ok(number) => number,
        Err(why) => return house.turn_away(from, why),
    };
    let theirs = house.clone();
    let started = std::thread::Builder::new().name("tacit-caller".to_owned()).spawn(move || {
        let greeted = theirs.greet(stream, from);
        theirs.lock().unknown.retain(|(other, ..)| *other != number);
        match greeted {
            Ok(caller) => theirs.seat(caller),
            Err(why) => theirs.turn_away(from, &why),
        }
    });
    if started.is_err() {
        house.lock().unknown.retain(|(other, ..)| *other != number);
        house.turn_away(from, "there is no thread for it");
    }
}

fn close(stream: &TcpStream) {
    // One that is gone already needs no closing.
    let _ = stream.shutdown(Shutdown::Both);
}

/// Tells a caller why it is turned away.
fn refuse(mut stream: &TcpStream, why: &str) {
    let why = &why.as_bytes()[..why.len().min(255)];
    let _ = stream.write_all(&[&[REFUSED, why.len() as u8], why].concat());
}

impl House {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn turn_away(&self, from: IpAddr, why: &str) {
        let mut state = self.lock();
        state.turned_away += 1;
        let count = state.turned_away;
        drop(state);
        (self.tell)(&Event::TurnedAway(from, why.to_owned(), count));
    }

    /// A place for a connection that has not said who it is.
    fn admit(&self, stream: &TcpStream, from: IpAddr) -> std::result::Result<u64, &'static str> {
        let mut state = self.lock();
        let now = Instant::now();
        if state.calls.len() > 4 * self.bounds.waiting {
            state.calls.retain(|_, (began, _)| now.duration_since(*began) < MINUTE);
        }
        let (began, calls) = state.calls.entry(from).or_insert((now, 0));
        if now.duration_since(*began) >= MINUTE {
            (*began, *calls) = (now, 0);
        }
        *calls += 1;
        if *calls > self.bounds.rate {
            return Err("too many calls of its address in a minute");
        }
        let unknown = state.unknown.iter().filter(|(_, other, _)| *other == from).count();
        let waiting = state.waiting.iter().filter(|caller| caller.from == from).count();
        if unknown + waiting >= self.bounds.of_address {
            return Err("too many connections of its address");
        }
        if state.unknown.len() >= self.bounds.unknown
            && let Some((_, _, stream)) = most(&mut state.unknown, |(_, from, _)| *from)
        {
            close(&stream);
        }
        let own = stream.try_clone().map_err(|_| "the system has no room for it")?;
        state.next += 1;
        let number = state.next;
        state.unknown.push((number, from, own));
        Ok(number)
    }

    /// Hears who a caller is and whom it wants.
    fn greet(&self, mut stream: TcpStream, from: IpAddr) -> std::result::Result<Caller, String> {
        let said = |error: std::io::Error| match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut => "it said nothing in time".to_owned(),
            _ => "it left before it had said who it is".to_owned(),
        };
        let end = Instant::now() + GREETING;
        let mut challenge = [0; CALL_CHALLENGE];
        tacit_crypto::Prg::from_os().fill_bytes(&mut challenge);
        stream.set_nodelay(true).map_err(said)?;
        stream.set_write_timeout(Some(GREETING)).map_err(said)?;
        stream.write_all(&[MAGIC.as_slice(), &challenge].concat()).map_err(said)?;
        let (mut magic, mut head) = ([0; MAGIC.len()], [0; CALL_HEAD]);
        fill(&mut stream, &mut magic, end).map_err(said)?;
        if magic != MAGIC {
            return Err("it does not speak to a relay".to_owned());
        }
        fill(&mut stream, &mut head, end).map_err(said)?;
        let part = Part::of(head[0]).filter(|_| head[1] as usize <= MOST_WANTED);
        let Some(part) = part else { return Err("what it says is malformed".to_owned()) };
        let mut key = [0; 32];
        key.copy_from_slice(&head[2..]);
        let key = PublicKey::from_bytes(key);
        let mut rest = vec![0; tail(head[1].into())];
        fill(&mut stream, &mut rest, end).map_err(said)?;
        let (wanted, signature) = rest.split_at(rest.len() - SIGNATURE);
        let (wanted, _) = wanted.as_chunks::<16>();
        let mut proof = [0; SIGNATURE];
        proof.copy_from_slice(signature);
        if !key.verify(CONTEXT, &signed(&challenge, head[0], wanted), &proof) {
            return Err("it has not the key that it shows".to_owned());
        }
        let fingerprint = bytes_of(&key);
        if self.served.as_ref().is_some_and(|served| !served.contains(&fingerprint)) {
            refuse(&stream, "this relay does not serve your key; ask who runs it to add it");
            return Err(format!("a key that is not served, {}", shown(&fingerprint)));
        }
        let told = Instant::now();
        Ok(Caller { stream, from, part, fingerprint, wanted: wanted.to_vec(), told })
    }

    /// Joins a caller with one that waits for it, or lets it wait.
    fn seat(self: &Arc<Self>, mut caller: Caller) {
        let from = caller.from;
        let turned_away = |why: &str| self.turn_away(from, why);
        let mut state = self.lock();
        loop {
            let same =
                |other: &Caller| other.fingerprint == caller.fingerprint && other.part != Part::Connecting;
            if caller.part == Part::Alone && state.waiting.iter().any(|other| same(other) && other.is_there())
            {
                drop(state);
                refuse(&caller.stream, "taken");
                return turned_away("somebody waits there already");
            }
            let Some(at) = state.waiting.iter().position(|other| other.joins(&caller).is_some()) else {
                break;
            };
            let mut other = state.waiting.remove(at);
            if !other.is_there() {
                continue;
            }
            if self.pairs.load(Ordering::SeqCst) >= self.bounds.pairs {
                drop(state);
                for of in [&caller, &other] {
                    refuse(&of.stream, "too many pairs speak here; try again later");
                }
                return turned_away("too many pairs speak");
            }
            let first = other.joins(&caller).unwrap_or(true);
            let [mine, theirs] = if first { [CONNECTS, LISTENS] } else { [LISTENS, CONNECTS] };
            if !other.say(theirs) {
                continue;
            }
            drop(state);
            let _ = caller.stream.set_nonblocking(true);
            if caller.say(mine) {
                self.pass(if first { [other, caller] } else { [caller, other] });
            }
            return;
        }
        if state.waiting.len() >= self.bounds.waiting
            && let Some(caller) = most(&mut state.waiting, |caller| caller.from)
        {
            let _ = caller.stream.set_nonblocking(false);
            refuse(&caller.stream, "too many wait here; try again later");
        }
        let _ = caller.stream.set_nonblocking(true);
        caller.say(WAITS);
        state.waiting.push(caller);
    }

    /// Passes bytes between two callers until they part.
    fn pass(&self, pair: [Caller; 2]) {
        let names = [&pair[0], &pair[1]].map(|caller| shown(&caller.fingerprint));
        self.pairs.fetch_add(1, Ordering::SeqCst);
        (self.tell)(&Event::Met(names.clone()));
        let start = Instant::now();
        let bytes = std::cell::Cell::new(0u64);
        let passed = || -> Result<()> {
            let [one, two] = pair;
            let ends = [one, two].map(|caller| TcpLink::watched(caller.stream, &self.cancel));
            let [one, two] = ends;
            let ends = [(Box::new(one?) as _, Vec::new()), (Box::new(two?) as _, Vec::new())];
            relay(ends, self.bounds.idle, &mut |count| bytes.set(bytes.get() + count as u64), &mut || {
                bytes.get() > self.bounds.bytes || start.elapsed() > self.bounds.time
            })
        };
        let ended = tacit_crypto::fence::fenced(passed);
        self.pairs.fetch_sub(1, Ordering::SeqCst);
        let why = match ended {
            Ok(Ok(()) | Err(Error::Lost { .. } | Error::Closed)) => None,
            Ok(Err(Error::Cancelled)) if self.cancel.is_cancelled() => Some("the relay ends".to_owned()),
            Ok(Err(Error::Cancelled)) if bytes.get() > self.bounds.bytes => Some("too many bytes".to_owned()),
            Ok(Err(Error::Cancelled)) => Some("too long".to_owned()),
            Ok(Err(error)) => Some(error.to_string()),
            Err(panicked) => Some(panicked.to_string()),
        };
        (self.tell)(&Event::Parted(names, bytes.get(), start.elapsed(), why));
    }

    /// Tells those that wait that they wait, and forgets those that are gone.
    fn look(&self) {
        let mut state = self.lock();
        state.waiting.retain_mut(|caller| {
            caller.is_there() && (caller.told.elapsed() < STILL_WAITS || caller.say(WAITS))
        });
    }
}

/// Reads exactly as many bytes, by the `end`.
pub(crate) fn fill(stream: &mut TcpStream, mut bytes: &mut [u8], end: Instant) -> std::io::Result<()> {
    while !bytes.is_empty() {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(bytes) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(read) => bytes = &mut bytes[read..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Takes out the oldest of the address that has most.
fn most<T>(of: &mut Vec<T>, from: impl Fn(&T) -> IpAddr) -> Option<T> {
    let mut held: BTreeMap<IpAddr, usize> = BTreeMap::new();
    of.iter().for_each(|one| *held.entry(from(one)).or_default() += 1);
    let (address, _) = held.into_iter().max_by_key(|(_, count)| *count)?;
    let at = of.iter().position(|one| from(one) == address)?;
    Some(of.remove(at))
}
