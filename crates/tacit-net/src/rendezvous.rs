//! The relay at which two sides meet ([`meeting`](crate::meeting)): it joins connections whose keys want each
//! other, and passes bytes.
//!
//! Who calls proves a key, so nobody can wait in another's place; whom a key belongs to the relay need not know,
//! unless it is told to serve some keys alone. What it holds is bounded: connections that have not said who they
//! are, callers that wait, pairs, each of an address and in all, and of each pair bytes at a time, bytes in all
//! and time. When all places are taken, those of the address that holds most make room. Whoever has one address
//! of IPv6 has 2^64, so those that share 64 bits count as one.

use crate::cancel::Cancel;
use crate::crowd::{makes_room, network};
use crate::keys::{PublicKey, SIGNATURE, fingerprint_bytes};
use crate::meeting::{
    CALL_CHALLENGE, CALL_HEAD, CONNECTS, CONTEXT, LISTENS, MAGIC, MOST_WANTED, NOT_SERVED, PEER_NOT_SERVED,
    Part, REASONS_THAT_PASS, REFUSED, STILL_WAITS, TAKEN, WAITS, fill, signed, tail,
};
use crate::relay::relay;
use crate::tcp::{TcpLink, await_fd};
use crate::{Error, Result, link::Interest};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{ErrorKind, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
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
    /// Pairs that speak at once. A quarter of so many connections in pairs, or 8, may be of one address.
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

impl Bounds {
    /// Connections in pairs that one address has at most: who fills a relay needs several.
    fn share(&self) -> usize {
        (self.pairs / 4).max(8)
    }
}

/// Time for a connection to say who it is.
const GREETING: Duration = Duration::from_secs(10);
/// How often callers that wait are looked at.
const LOOK_AT_CALLERS: Duration = Duration::from_millis(500);
/// What is sent to a caller that waits arrives within this time, or it is gone: a machine that was cut off
/// says no goodbye.
const UNHEARD: Duration = Duration::from_secs(30);
/// Failures of the operating system to hand over connections, one after the other, that end a relay where
/// nobody speaks.
const FAILURES: u32 = 500;
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
    /// Where the ends of the pairs that speak are.
    speaking: Vec<[IpAddr; 2]>,
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

impl State {
    /// Counts a call of an address; false if it has made more than `rate` in its minute.
    fn counts(&mut self, from: IpAddr, bounds: &Bounds) -> bool {
        let now = Instant::now();
        let most = 4 * bounds.waiting.max(16);
        if self.calls.len() >= most && !self.calls.contains_key(&from) {
            self.calls.retain(|_, (began, _)| now.duration_since(*began) < MINUTE);
            // Counting begins anew where it would take more room, and more time for each call.
            if self.calls.len() > most / 2 {
                self.calls.clear();
            }
        }
        let (began, calls) = self.calls.entry(from).or_insert((now, 0));
        if now.duration_since(*began) >= MINUTE {
            (*began, *calls) = (now, 0);
        }
        *calls = calls.saturating_add(1);
        *calls <= bounds.rate
    }

    /// Connections of an address that are in pairs.
    fn ends(&self, of: IpAddr) -> usize {
        self.speaking.iter().flatten().filter(|address| **address == of).count()
    }

    /// Whether these two may be a pair beside those that speak; why not.
    fn has_room(&self, two: [IpAddr; 2], bounds: &Bounds) -> std::result::Result<(), &'static str> {
        if self.speaking.len() >= bounds.pairs {
            return Err("too many pairs speak");
        }
        let more = 1 + usize::from(two[0] == two[1]);
        match two.iter().any(|of| self.ends(*of) + more > bounds.share()) {
            true => Err("too many pairs of its address speak"),
            false => Ok(()),
        }
    }

    /// The caller that is joined with this one: of those that may be, the key that came first, and of its
    /// callers the newest, because older ones may be of a machine that is gone.
    fn partner(&self, caller: &Caller) -> Option<usize> {
        let mut fitting = self.waiting.iter().filter(|other| other.joins(caller).is_some());
        let key = fitting.next()?.fingerprint;
        self.waiting.iter().rposition(|other| other.fingerprint == key && other.joins(caller).is_some())
    }

    /// Puts the other callers of a key behind everybody: whoever calls again and again keeps nobody waiting.
    fn had_its_turn(&mut self, fingerprint: &[u8; 16]) {
        self.waiting.sort_by_key(|caller| caller.fingerprint == *fingerprint);
    }

    /// Closes a connection of the address that holds most; false if none is held that has not met another.
    fn make_room(&mut self) -> bool {
        if let Some((_, _, stream)) = most(&mut self.unknown, |(_, from, _)| *from) {
            close(&stream);
            return true;
        }
        most(&mut self.waiting, |caller| caller.from).is_some()
    }
}

impl Caller {
    /// Whether a place that one of the two has alone keeps the other from waiting.
    fn excludes(&self, other: &Caller) -> bool {
        let waits = [self, other].iter().all(|caller| caller.part != Part::Connecting);
        let alone = [self, other].iter().any(|caller| caller.part == Part::Alone);
        self.fingerprint == other.fingerprint && waits && alone
    }

    fn wants(&self, other: &Caller) -> bool {
        self.wanted.is_empty() || self.wanted.contains(&other.fingerprint)
    }

    /// Whether the two may be joined, and whether this one listens then; `other` comes later.
    fn joins(&self, other: &Caller) -> Option<bool> {
        // Of two that take anybody neither was looked for by the other.
        let is_named = !self.wanted.is_empty() || !other.wanted.is_empty();
        if !is_named || !self.wants(other) || !other.wants(self) {
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
        let house = House { bounds, served, state: Mutex::default(), cancel, tell: Box::new(tell) };
        Ok(Relay { listener, house: Arc::new(house) })
    }

    /// Where it listens.
    pub fn local_addr(&self) -> Result<SocketAddr> {
        Ok(self.listener.local_addr()?)
    }

    /// Serves until it is cancelled. Errors: a port that fails again and again while nobody speaks.
    pub fn serve(&self) -> Result<()> {
        let mut failures = 0;
        let mut looked = Instant::now();
        while !self.house.cancel.is_cancelled() {
            await_fd(&self.listener, Interest::Read, self.house.cancel.pause(LOOK_AT_CALLERS))?;
            if looked.elapsed() >= LOOK_AT_CALLERS {
                self.house.look();
                looked = Instant::now();
            }
            match self.listener.accept() {
                Ok((stream, from)) => {
                    failures = 0;
                    receive(&self.house, stream, from.ip().to_canonical());
                }
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
                // Most are faults of the connection at hand, or files run short for a moment.
                Err(error) => {
                    let short = rustix::io::Errno::from_io_error(&error) == Some(rustix::io::Errno::MFILE);
                    let mut state = self.house.lock();
                    failures = if short && state.make_room() { 0 } else { failures + 1 };
                    if failures >= FAILURES && state.speaking.is_empty() {
                        return Err(Error::Io(error));
                    }
                    drop(state);
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

/// Whether the caller on the `stream` is one that a relay would let in.
#[cfg(feature = "fuzzing")]
pub(crate) fn fuzzed(stream: TcpStream) -> bool {
    let (bounds, state, cancel) = (Bounds::default(), Mutex::default(), Cancel::default());
    let house = House { bounds, served: None, state, cancel, tell: Box::new(|_| ()) };
    house.greet(stream, IpAddr::from([127, 0, 0, 1])).is_ok()
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

/// Sets how long what is sent may stay unheard until the connection is lost; the system's own time for zero.
fn unheard(stream: &TcpStream, patience: Duration) {
    // Where that cannot be set, those that are gone are found later.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    let _ = rustix::net::sockopt::set_tcp_user_timeout(stream, patience.as_millis() as u32);
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    let _ = (stream, patience);
}

/// The place of a pair that speaks.
struct Speaking<'h> {
    house: &'h House,
    networks: [IpAddr; 2],
}

impl Drop for Speaking<'_> {
    fn drop(&mut self) {
        let mut state = self.house.lock();
        if let Some(at) = state.speaking.iter().position(|pair| *pair == self.networks) {
            state.speaking.swap_remove(at);
        }
    }
}

/// Tells a caller why it is turned away.
fn refuse(mut stream: &TcpStream, why: &[u8]) {
    let why = &why[..why.len().min(255)];
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
        let of = network(from);
        if !state.counts(of, &self.bounds) {
            return Err("too many calls of its address in a minute");
        }
        let unknown = state.unknown.iter().filter(|(_, other, _)| network(*other) == of).count();
        let waiting = state.waiting.iter().filter(|caller| network(caller.from) == of).count();
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
        // Some systems give it the listener's way of not waiting.
        stream.set_nonblocking(false).map_err(said)?;
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
            return Err("it does not have the key that it shows".to_owned());
        }
        let fingerprint = bytes_of(&key);
        if self.served.as_ref().is_some_and(|served| !served.contains(&fingerprint)) {
            refuse(&stream, NOT_SERVED);
            return Err(format!("a key that is not served, {}", shown(&fingerprint)));
        }
        // Whoever wants only keys that can never come would wait until its time is over.
        if let Some(served) = &self.served
            && !wanted.is_empty()
            && !wanted.iter().any(|wanted| served.contains(wanted))
        {
            refuse(&stream, PEER_NOT_SERVED);
            return Err(format!("it waits for a key that is not served, {}", shown(&wanted[0])));
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
            if state.waiting.iter().any(|other| other.excludes(&caller) && other.is_there()) {
                drop(state);
                refuse(&caller.stream, TAKEN);
                return turned_away("another side waits there already");
            }
            let Some(at) = state.partner(&caller) else { break };
            let mut other = state.waiting.remove(at);
            if !other.is_there() {
                continue;
            }
            let networks = [&caller, &other].map(|of| network(of.from));
            if let Err(why) = state.has_room(networks, &self.bounds) {
                drop(state);
                for of in [&caller, &other] {
                    refuse(&of.stream, REASONS_THAT_PASS[1].as_bytes());
                }
                return turned_away(why);
            }
            let first = other.joins(&caller).unwrap_or(true);
            let [mine, theirs] = if first { [CONNECTS, LISTENS] } else { [LISTENS, CONNECTS] };
            if !other.say(theirs) {
                continue;
            }
            state.speaking.push(networks);
            state.had_its_turn(&other.fingerprint);
            drop(state);
            let _place = Speaking { house: self, networks };
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
            refuse(&caller.stream, REASONS_THAT_PASS[0].as_bytes());
        }
        let _ = caller.stream.set_nonblocking(true);
        unheard(&caller.stream, UNHEARD);
        caller.say(WAITS);
        state.waiting.push(caller);
    }

    /// Passes bytes between two callers until they part.
    fn pass(&self, pair: [Caller; 2]) {
        let names = [&pair[0], &pair[1]].map(|caller| shown(&caller.fingerprint));
        (self.tell)(&Event::Met(names.clone()));
        let start = Instant::now();
        let bytes = std::cell::Cell::new(0u64);
        let passed = || -> Result<()> {
            let [one, two] = pair;
            // Whoever takes nothing for a while now may have its hands full.
            [&one, &two].iter().for_each(|caller| unheard(&caller.stream, Duration::ZERO));
            let ends = [one, two].map(|caller| TcpLink::watched(caller.stream, &self.cancel));
            let [one, two] = ends;
            let ends = [(Box::new(one?) as _, Vec::new()), (Box::new(two?) as _, Vec::new())];
            let (idle, passed) = (self.bounds.idle, &mut |count| bytes.set(bytes.get() + count as u64));
            relay(ends, idle, idle, passed, &mut || {
                bytes.get() > self.bounds.bytes || start.elapsed() > self.bounds.time
            })
        };
        let ended = tacit_crypto::fence::fenced(passed);
        let why = match ended {
            Ok(Ok(()) | Err(Error::Lost { .. } | Error::Closed { .. })) => None,
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

/// Takes out the one that makes room.
fn most<T>(of: &mut Vec<T>, from: impl Fn(&T) -> IpAddr) -> Option<T> {
    makes_room(of.iter().map(from)).map(|at| of.remove(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_counted_in_bounded_room() {
        let bounds = Bounds { waiting: 16, rate: 2, ..Bounds::default() };
        let mut state = State::default();
        let of = |number: u32| IpAddr::V4(number.into());
        assert_eq!([7; 4].map(|from| state.counts(of(from), &bounds)), [true, true, false, false]);
        for number in 0..10_000 {
            state.counts(of(number), &bounds);
            assert!(state.calls.len() <= 4 * bounds.waiting);
        }
    }

    #[test]
    fn pairs_of_an_address_are_bounded() {
        let bounds = Bounds { pairs: 16, ..Bounds::default() };
        let [one, two] = [1, 2].map(|last| IpAddr::from([192, 0, 2, last]));
        let mut state = State::default();
        for _ in 0..4 {
            assert!(state.has_room([one, one], &bounds).is_ok());
            state.speaking.push([one, one]);
        }
        assert_eq!((state.ends(one), state.ends(two)), (8, 0));
        assert!(state.has_room([one, two], &bounds).is_err_and(|why| why.contains("of its address")));
        assert!(state.has_room([two, two], &bounds).is_ok());
        state.speaking.extend([[two, two]; 12]);
        assert!(state.has_room([[9, 9, 9, 9], [8, 8, 8, 8]].map(IpAddr::from), &bounds).is_err());
    }
}
