//! Two sides that cannot reach each other meet at a relay that both can reach.
//!
//! Each side calls the relay, proves its identity key over a challenge of the relay's, and names the keys that it
//! wants to meet. The relay joins two connections whose keys want each other, and passes bytes from then on: what
//! it passes is TLS between the two, by the same pinned keys as everywhere. It sees both public keys, when and how
//! much they speak, and can only keep them apart.
//!
//! A call: the relay sends `MAGIC` and a challenge of 32 bytes; the caller `MAGIC`, its part (`Part`), how
//! many fingerprints of 16 bytes follow, its public key, the fingerprints, and its signature over challenge and
//! call. Then the relay sends a byte now and then that says nothing (`WAITS`), until the pair is there: then
//! `LISTENS` to the side that listens and `CONNECTS` to the other. Or it sends `REFUSED`, a length and a reason.

use crate::address::resolve;
use crate::cancel::Cancel;
use crate::error::printable;
use crate::keys::{PublicKey, SIGNATURE};
use crate::setup::{Options, Protection, later, left};
use crate::tls::Tls;
use crate::waiting::{Event, News, Observer};
use crate::wake::{self, Wake, Woken};
use crate::{Error, Party, Proxy, Result, proxy};
use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

pub(crate) const MAGIC: [u8; 16] = *b"tacit relay 1\r\n\0";
pub(crate) const CONTEXT: &str = "tacit 1 call at a relay";
pub(crate) const CALL_CHALLENGE: usize = 32;
pub(crate) const WAITS: u8 = b'.';
pub(crate) const LISTENS: u8 = b'1';
pub(crate) const CONNECTS: u8 = b'2';
pub(crate) const REFUSED: u8 = b'!';
/// The reason for who would wait alone where another does.
pub(crate) const TAKEN: &[u8] = b"taken";
/// The reason for a key that is not among those that a relay serves.
pub(crate) const NOT_SERVED: &[u8] = b"this relay does not serve your key; ask who runs it to add it";
/// The reason for who wants to meet none of these.
pub(crate) const PEER_NOT_SERVED: &[u8] =
    b"this relay does not serve the other side's key; ask who runs it to add it";
/// The reasons that pass.
pub(crate) const REASONS_THAT_PASS: [&str; 2] =
    ["too many wait here; try again later", "too many pairs speak here; try again later"];
/// The most fingerprints that a call names; none are named where any key is welcome.
pub(crate) const MOST_WANTED: usize = 8;
/// How often the relay says that a caller still waits.
pub(crate) const STILL_WAITS: Duration = Duration::from_secs(15);
/// A relay that says nothing for so long is gone.
const SILENCE: Duration = Duration::from_secs(50);
/// Longest wait for one address to answer, and for the relay's first words.
const ATTEMPT: Duration = Duration::from_secs(10);
/// Pauses before the relay is called again, each twice the one before.
const CALL_PAUSES: [Duration; 2] = [Duration::from_millis(250), Duration::from_secs(8)];
/// Connections that have come and wait to be taken, from which on the relay is not called for more.
const CALLS_HELD: usize = 64;
/// Calls that a side that listens has at the relay at once, where it serves many.
const CALLS_AT_ONCE: usize = 4;

/// Which part a caller takes when it meets the other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Part {
    /// Whichever is left: of two such the one that came first listens.
    Either,
    /// To listen.
    Listening,
    /// To connect.
    Connecting,
    /// To listen, if nobody else with this key waits.
    Alone,
}

impl Part {
    pub(crate) fn byte(self) -> u8 {
        match self {
            Part::Either => 0,
            Part::Listening => 1,
            Part::Connecting => 2,
            Part::Alone => 3,
        }
    }

    pub(crate) fn of(byte: u8) -> Option<Self> {
        [Part::Either, Part::Listening, Part::Connecting, Part::Alone]
            .into_iter()
            .find(|part| part.byte() == byte)
    }
}

/// What of a call is signed.
pub(crate) fn signed(challenge: &[u8; CALL_CHALLENGE], part: u8, wanted: &[[u8; 16]]) -> Vec<u8> {
    [challenge.as_slice(), &[part, wanted.len() as u8], wanted.as_flattened()].concat()
}

/// The way to the other side by a relay, as one side calls it.
#[derive(Clone)]
pub(crate) struct Route {
    address: String,
    /// What the relay's name, or the proxy's, stood for when it was looked up last.
    targets: Arc<Mutex<Vec<SocketAddr>>>,
    proxy: Option<Proxy>,
    tls: Tls,
    key: PublicKey,
    wanted: Vec<[u8; 16]>,
    cancel: Cancel,
}

/// Why a call came to nothing.
enum Failure {
    /// It may be made again.
    Later(Error),
    /// It will not succeed.
    Never(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Later(error)
    }
}

/// What the `options` sign calls by, and the keys for which they call.
fn trusted(options: &Options) -> Result<(Tls, PublicKey, Vec<[u8; 16]>)> {
    let keys = "a relay knows both sides by their keys: give both sides' key files";
    let Protection::Tls(tls) = &options.protection else { return Err(Error::Usage(keys.to_owned())) };
    let (key, wanted) = tls.raw_keys().ok_or_else(|| Error::Usage(keys.to_owned()))?;
    Ok((tls.clone(), key, if wanted.len() > MOST_WANTED { Vec::new() } else { wanted }))
}

impl Route {
    /// The relay at `address`, called by the key of the `options`' protection for the keys that these trust.
    /// `unfound` hears why a name is not found and is looked up again. Errors: no raw keys, and an address that is
    /// none.
    pub(crate) fn new(address: &str, options: &Options, unfound: &mut dyn FnMut(&str)) -> Result<Self> {
        let (tls, key, wanted) = trusted(options)?;
        let targets = match &options.proxy {
            Some(proxy) => {
                proxy::check(address)?;
                resolve(&proxy.address()?, options.limits.connect, unfound)?
            }
            None => resolve(address, options.limits.connect, unfound)?,
        };
        let (targets, proxy, cancel) =
            (Arc::new(Mutex::new(targets)), options.proxy.clone(), options.cancel.clone());
        Ok(Route { address: address.to_owned(), targets, proxy, tls, key, wanted, cancel })
    }

    /// The same relay, called for the keys that these `options` trust.
    fn by(&self, options: &Options) -> Result<Self> {
        let (tls, key, wanted) = trusted(options)?;
        Ok(Route { tls, key, wanted, ..self.clone() })
    }

    /// Calls once and waits until the other side is there, as long as `halt` lets it; `waits` hears again and
    /// again that the relay has let us in. What comes before that is over by `end`.
    fn call(
        &self,
        part: Part,
        end: Instant,
        halt: &dyn Fn() -> bool,
        waits: &mut dyn FnMut(),
    ) -> std::result::Result<(TcpStream, Party), Failure> {
        let end = later(Instant::now(), ATTEMPT).min(end);
        let gone = |error: std::io::Error| self.gone(&error.to_string());
        let mut stream = self.dial(end)?;
        stream.set_nodelay(true).map_err(gone)?;
        stream.set_write_timeout(Some(ATTEMPT)).map_err(gone)?;
        let (mut magic, mut challenge) = ([0; MAGIC.len()], [0; CALL_CHALLENGE]);
        fill(&mut stream, &mut magic, end).map_err(|error| match error.kind() {
            // So does one that waits for TLS.
            ErrorKind::TimedOut | ErrorKind::WouldBlock => {
                Failure::Later(Error::NotRelay { address: self.address.clone(), saw: String::new() })
            }
            ErrorKind::UnexpectedEof => self.gone("it closed the connection at once"),
            _ => gone(error),
        })?;
        if magic != MAGIC {
            let (address, saw) = (self.address.clone(), printable(&magic));
            return Err(Failure::Never(Error::NotRelay { address, saw }));
        }
        fill(&mut stream, &mut challenge, end).map_err(gone)?;
        let message = signed(&challenge, part.byte(), &self.wanted);
        let signature = self.tls.sign(CONTEXT, &message)?;
        let call = [
            &MAGIC,
            &message[CALL_CHALLENGE..][..2],
            &self.key.to_bytes(),
            self.wanted.as_flattened(),
            &signature,
        ]
        .concat();
        stream.write_all(&call).map_err(gone)?;
        let party = self.wait(&mut stream, halt, waits)?;
        stream.set_read_timeout(None).map_err(gone)?;
        stream.set_write_timeout(None).map_err(gone)?;
        Ok((stream, party))
    }

    /// A call that no relay answered, or not to the end.
    fn gone(&self, reason: &str) -> Failure {
        let (address, reason) = (self.address.clone(), reason.to_owned());
        Failure::Later(Error::NoRelay { address, after: Duration::ZERO, reason })
    }

    /// Waits for the other side.
    fn wait(
        &self,
        stream: &mut TcpStream,
        halt: &dyn Fn() -> bool,
        waits: &mut dyn FnMut(),
    ) -> std::result::Result<Party, Failure> {
        let gone = |error: std::io::Error| self.gone(&error.to_string());
        stream.set_read_timeout(Some(Duration::from_millis(100))).map_err(gone)?;
        let start = Instant::now();
        let (mut heard, mut said) = (start, 0);
        loop {
            if said > 0 {
                waits();
            }
            if halt() || self.cancel.is_cancelled() {
                return Err(Failure::Never(Error::Cancelled));
            }
            let mut byte = [0];
            match stream.read(&mut byte) {
                Ok(0) => return Err(self.gone("it closed the connection")),
                Ok(_) => heard = Instant::now(),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    if heard.elapsed() > SILENCE {
                        return Err(self.gone("it fell silent"));
                    }
                    continue;
                }
                Err(error) => return Err(gone(error)),
            }
            match byte[0] {
                // One at once and one every few seconds; a stream of them would keep us busy.
                WAITS if said < 16 + start.elapsed().as_secs() => {
                    said += 1;
                }
                LISTENS => return Ok(Party::First),
                CONNECTS => return Ok(Party::Second),
                REFUSED => return Err(self.refused(stream)),
                _ => return Err(Error::Malformed("the relay's answer is not valid").into()),
            }
        }
    }

    /// Why the relay sends us away.
    fn refused(&self, stream: &mut TcpStream) -> Failure {
        let end = later(Instant::now(), ATTEMPT);
        let mut length = [0];
        let heard = fill(stream, &mut length, end).and_then(|()| {
            let mut reason = vec![0; length[0].into()];
            fill(stream, &mut reason, end).map(|()| reason)
        });
        let reason = match heard {
            Ok(reason) => reason,
            Err(error) => return self.gone(&error.to_string()),
        };
        let address = self.address.clone();
        if reason == TAKEN {
            return Failure::Never(Error::AddressInUse { address });
        }
        if reason == NOT_SERVED {
            return Failure::Never(Error::NotServed { address, key: Some(self.key.fingerprint()) });
        }
        if reason == PEER_NOT_SERVED {
            return Failure::Never(Error::PeerNotServed { address });
        }
        match REASONS_THAT_PASS.iter().find(|full| full.as_bytes() == reason) {
            Some(full) => Failure::Later(Error::TurnedAway { address, reason: (*full).to_owned() }),
            None => Failure::Never(Error::TurnedAway { address, reason: printable(&reason) }),
        }
    }

    /// Waits for the other side at a relay that says what is on the `stream`.
    #[cfg(feature = "fuzzing")]
    pub(crate) fn fuzzed(identity: &crate::Identity, stream: &mut TcpStream) -> Result<Party> {
        let route = Route {
            address: "relay.example:7700".to_owned(),
            targets: Arc::default(),
            proxy: None,
            tls: Tls::pinned(identity, identity.public())?,
            key: identity.public(),
            wanted: Vec::new(),
            cancel: Cancel::default(),
        };
        route.wait(stream, &|| false, &mut || ()).map_err(|failure| match failure {
            Failure::Later(error) | Failure::Never(error) => error,
        })
    }

    fn dial(&self, end: Instant) -> std::result::Result<TcpStream, Failure> {
        let mut reason = "the name has no address".to_owned();
        let targets = self.targets.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for target in &targets {
            let mut stream = match TcpStream::connect_timeout(target, left(end).max(Duration::from_millis(1)))
            {
                Ok(stream) => stream,
                Err(error) => {
                    reason = proxy::failed(self.proxy.as_ref(), &error);
                    continue;
                }
            };
            let Some(proxy) = &self.proxy else { return Ok(stream) };
            match proxy::open(proxy, &mut stream, &self.address, end) {
                Ok(proxy::Answer::Open) => return Ok(stream),
                Ok(proxy::Answer::Later(why)) => reason = why,
                Ok(proxy::Answer::Never(reason)) => {
                    let (address, after) = (self.address.clone(), Duration::ZERO);
                    return Err(Failure::Never(Error::NoRelay { address, after, reason }));
                }
                Err(error) => reason = proxy::failed(self.proxy.as_ref(), &error),
            }
        }
        // The name may stand for another machine by now.
        let first = self.proxy.as_ref().map_or(Ok(self.address.clone()), Proxy::address);
        if let Ok(found) = first.and_then(|first| resolve(&first, Duration::ZERO, &mut |_| ())) {
            *self.targets.lock().unwrap_or_else(PoisonError::into_inner) = found;
        }
        Err(self.gone(&reason))
    }

    /// A connection to the other side and which end this is, by the `deadline`. A call that fails is made again
    /// until then, or until `first` as long as the relay has let us in never.
    pub(crate) fn meet(
        &self,
        part: Part,
        (first, deadline): (Instant, Instant),
        news: &mut dyn FnMut(News<'_>),
    ) -> Result<(TcpStream, Party)> {
        let start = Instant::now();
        let (mut pause, mut end, mut reached) = (CALL_PAUSES[0], first.min(deadline), None);
        loop {
            self.cancel.check()?;
            let waits = &mut || {
                (end, reached) = (deadline, Some(Instant::now()));
                news(News::Waits);
            };
            let error = match self.call(part, deadline, &|| left(deadline).is_zero(), waits) {
                Ok(met) => return Ok(met),
                Err(Failure::Never(error)) => return Err(self.ended(error, start)),
                // A relay greets at once. One that was reached may be slow later.
                Err(Failure::Later(error @ Error::NotRelay { .. })) if reached.is_none() => {
                    return Err(error);
                }
                Err(Failure::Later(error)) => error,
            };
            if left(end).is_zero() {
                return Err(match (self.ended(error, start), reached) {
                    (Error::NoRelay { address, reason, .. }, Some(reached)) => {
                        Error::RelayLost { address, after: reached.elapsed(), reason }
                    }
                    (error, _) => error,
                });
            }
            news(News::Failed(&error));
            std::thread::sleep(pause.min(left(end)));
            pause = (pause * 2).min(CALL_PAUSES[1]);
        }
    }

    /// The same by one call that is not made again; `waits` hears again and again that the place at the relay is
    /// ours.
    pub(crate) fn meet_once(
        &self,
        part: Part,
        deadline: Instant,
        waits: &mut dyn FnMut(),
    ) -> Result<(TcpStream, Party)> {
        let start = Instant::now();
        match self.call(part, deadline, &|| left(deadline).is_zero(), waits) {
            Ok(met) => Ok(met),
            Err(Failure::Never(error) | Failure::Later(error)) => Err(self.ended(error, start)),
        }
    }

    /// The error of calls since `start`.
    fn ended(&self, error: Error, start: Instant) -> Error {
        let after = start.elapsed();
        match error {
            Error::Cancelled if !self.cancel.is_cancelled() => {
                Error::NobodyMet { address: self.address.clone(), after }
            }
            Error::NoRelay { address, reason, .. } => Error::NoRelay { address, after, reason },
            other => other,
        }
    }
}

/// Connections that come to a side that listens at a relay, in the place of a port's.
pub(crate) struct Calls {
    address: String,
    woken: Woken,
    come: Arc<Come>,
}

/// What the threads that call share with the side that listens.
struct Come {
    /// Connections, or what a call met that no other will mend.
    come: Mutex<VecDeque<Result<TcpStream>>>,
    /// The relay as it is called now, and how often that has changed.
    relay: Mutex<(Route, u64)>,
    reach: Mutex<Reach>,
    observer: Observer,
    over: AtomicBool,
}

/// Whether the relay lets us in.
#[derive(Default)]
struct Reach {
    /// Calls that wait there.
    waiting: usize,
    /// What the observer heard last.
    told: Option<bool>,
}

impl Come {
    fn lock(&self) -> MutexGuard<'_, VecDeque<Result<TcpStream>>> {
        self.come.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn reach(&self) -> MutexGuard<'_, Reach> {
        self.reach.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, address: &str, lost: Option<&Error>) {
        let mut reach = self.reach();
        // One call of several that fails takes nothing away.
        if (lost.is_some() && reach.waiting > 0) || reach.told == Some(lost.is_none()) {
            return;
        }
        reach.told = Some(lost.is_none());
        drop(reach);
        let (address, lost) = (address.to_owned(), lost.map(Error::to_string));
        self.observer.tell(&Event::Relay { address, lost });
    }

    fn relay(&self) -> MutexGuard<'_, (Route, u64)> {
        self.relay.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Calls {
    /// Calls `relay` again and again until this is dropped, so that several can come at once where the side
    /// serves `many`. The `observer` hears when the relay is found and lost.
    pub(crate) fn at(relay: Route, many: bool, observer: Observer) -> Result<Self> {
        let (woken, wake) = wake::pair()?;
        let address = relay.address.clone();
        let (relay, over) = (Mutex::new((relay, 0)), AtomicBool::new(false));
        let (come, reach) = (Mutex::default(), Mutex::default());
        let come = Arc::new(Come { come, relay, reach, observer, over });
        for _ in 0..if many { CALLS_AT_ONCE } else { 1 } {
            let (come, wake) = (come.clone(), wake.try_clone()?);
            let calling = move || calling(&come, &wake);
            std::thread::Builder::new().name("tacit-relay".to_owned()).spawn(calling)?;
        }
        Ok(Calls { address, woken, come })
    }

    /// The same, where a first connection has come already.
    pub(crate) fn with(relay: Route, first: TcpStream) -> Result<Self> {
        let calls = Calls::at(relay, false, Observer::default())?;
        calls.come.lock().push_front(Ok(first));
        Ok(calls)
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// From now on calls for the keys that these `options` trust.
    pub(crate) fn call_by(&self, options: &Options) -> Result<()> {
        let mut relay = self.come.relay();
        let changed = relay.0.by(options)?;
        if changed.key != relay.0.key || changed.wanted != relay.0.wanted {
            *relay = (changed, relay.1 + 1);
        }
        Ok(())
    }

    /// What can be waited for.
    pub(crate) fn woken(&self) -> &Woken {
        &self.woken
    }

    /// The next connection, or `WouldBlock`.
    pub(crate) fn accept(&self) -> std::io::Result<(TcpStream, SocketAddr)> {
        loop {
            let next = self.come.lock().pop_front().ok_or(ErrorKind::WouldBlock)?;
            let stream = next.map_err(std::io::Error::other)?;
            // One that was reset meanwhile comes from nowhere.
            if let Ok(from) = stream.peer_addr() {
                return Ok((stream, from));
            }
        }
    }
}

impl Drop for Calls {
    fn drop(&mut self) {
        self.come.over.store(true, Ordering::Relaxed);
    }
}

/// Calls the relay until nobody wants connections any more.
fn calling(come: &Come, wake: &Wake) {
    let (mut pause, mut has_met) = (CALL_PAUSES[0], false);
    loop {
        let (relay, change) = come.relay().clone();
        let is_over = || come.over.load(Ordering::Relaxed) || relay.cancel.is_cancelled();
        if is_over() {
            return;
        }
        if come.lock().len() >= CALLS_HELD {
            std::thread::sleep(CALL_PAUSES[0]);
            continue;
        }
        let mut waits = false;
        let halt = || is_over() || come.relay().1 != change;
        let called = relay.call(Part::Listening, later(Instant::now(), ATTEMPT), &halt, &mut || {
            if !std::mem::replace(&mut waits, true) {
                come.reach().waiting += 1;
                come.tell(&relay.address, None);
            }
        });
        come.reach().waiting -= usize::from(waits);
        has_met |= waits;
        match called {
            Ok((stream, _)) => {
                come.tell(&relay.address, None);
                (pause, has_met) = (CALL_PAUSES[0], true);
                come.lock().push_back(Ok(stream));
                wake.wake();
            }
            // Over, or called for other keys from now on.
            Err(Failure::Never(Error::Cancelled)) => {}
            // From the start: a relay that does not serve us, or none. Later it may be full for a while.
            Err(Failure::Never(error)) if !has_met => {
                come.lock().push_back(Err(error));
                wake.wake();
                return;
            }
            Err(Failure::Never(error) | Failure::Later(error)) => {
                come.tell(&relay.address, Some(&error));
                std::thread::sleep(pause);
                pause = (pause * 2).min(CALL_PAUSES[1]);
            }
        }
    }
}

/// Length of a call after the magic: part, number of fingerprints, key.
pub(crate) const CALL_HEAD: usize = 2 + 32;
/// Length of what follows for so many fingerprints.
pub(crate) fn tail(wanted: usize) -> usize {
    16 * wanted + SIGNATURE
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
