//! [`Session`]: two parties joined by one or more connections.

use crate::address::resolve;
use crate::certificate::Certified;
use crate::emulate::Pace;
use crate::handshake;
use crate::listener::Listener;
use crate::lobby::Lobby;
use crate::meeting::{Calls, Part, Route};
use crate::proxy::{self, Answer};
use crate::setup::{Options, Prepared, later, left, prepare};
use crate::tcp::SharedPace;
use crate::tls::Negotiated;
use crate::waiting::{Event, Vigil};
use crate::{Agreement, Cause, Channel, Error, Party, Proxy, PublicKey, Result, SessionId, Stats};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Two parties joined by one or more authenticated channels of one session.
///
/// The first channel carries the session's id; each further one, meant for a thread of its own, an id derived
/// from it.
pub struct Session {
    channels: Vec<Channel>,
    id: SessionId,
    tls: Option<Negotiated>,
}

impl Session {
    /// A session whose channels have all greeted.
    pub(crate) fn opened(
        mut channels: Vec<Channel>,
        id: SessionId,
        tls: Option<Negotiated>,
        options: &Options,
    ) -> Self {
        channels.iter_mut().for_each(|channel| channel.set_limits(options.limits));
        let own = [("protocol", options.agreement.protocol()), ("role", options.agreement.role())];
        let own = own.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let shared = options.agreement.parameters().iter().map(|(name, value)| (name.clone(), value.clone()));
        options.observer.tell(&Event::Opened {
            proof: options.protection.proof(),
            tls: tls.as_ref().map(|tls| (tls.group.clone(), tls.suite.clone())),
            terms: own.into_iter().chain(shared).collect(),
        });
        Session { channels, id, tls }
    }

    /// Key exchange group and cipher suite of TLS, such as `X25519MLKEM768` and `TLS13_AES_128_GCM_SHA256`.
    pub fn tls(&self) -> Option<(&str, &str)> {
        self.tls.as_ref().map(|tls| (tls.group.as_str(), tls.suite.as_str()))
    }

    /// A hash of the public key that the peer proved to have, pinned or out of its certificate; `None`
    /// without TLS, where the peer can be anybody. The same key gives the same hash in every session.
    pub fn peer(&self) -> Option<[u8; 32]> {
        self.tls.as_ref().map(|tls| tls.peer)
    }

    /// The public key that the peer proved to have; `None` without TLS and with certificates.
    pub fn peer_key(&self) -> Option<PublicKey> {
        self.tls.as_ref().and_then(|tls| tls.key)
    }

    /// The name in the certificate that the peer proved to have, out of those that are trusted; `None`
    /// without TLS and with raw keys.
    pub fn peer_name(&self) -> Option<&str> {
        self.tls.as_ref().and_then(|tls| tls.name.as_deref())
    }

    /// What signs by the certificates' keys, where the sides know each other by certificates.
    pub fn certified(&self) -> Option<&Certified> {
        self.tls.as_ref().and_then(|tls| tls.certified.as_ref())
    }

    /// Agrees anew over the session's first channel, as a handshake does: both sides call it at the same
    /// place, after all that was sent has been received, and a difference is an error on both. The id that
    /// the session has from then on binds the old one and the new agreement.
    ///
    /// For a session of one channel; others would keep their ids.
    pub fn agree_anew(&mut self, agreement: &Agreement) -> Result<()> {
        let [channel] = self.channels.as_mut_slice() else {
            return Err(Error::Usage("only a session of one channel agrees anew".to_owned()));
        };
        agreement.fits()?;
        channel.flush()?;
        let binding = self.id.0;
        self.id = match channel.party() {
            Party::First => {
                let hello = handshake::hear(channel, agreement)?;
                handshake::answer_anew(channel, agreement, &hello, &binding)?
            }
            Party::Second => handshake::open(channel, agreement, &binding)?,
        };
        Ok(())
    }

    /// The id that both parties contributed to.
    pub fn id(&self) -> SessionId {
        self.id
    }

    /// Which end this is.
    pub fn party(&self) -> Party {
        self.channels.first().map_or(Party::First, Channel::party)
    }

    /// All channels; there is at least one until the session was ended.
    pub fn channels(&mut self) -> &mut [Channel] {
        &mut self.channels
    }

    /// The first channel; only until the session was ended.
    pub fn channel(&mut self) -> &mut Channel {
        &mut self.channels[0]
    }

    /// Ends the session, as dropping it does, and returns what passed; no channel is left. For who still works
    /// on what it received: the peer sees when a session ends, and so how long that takes.
    pub fn end(&mut self) -> Stats {
        let stats = self.stats();
        self.channels.clear();
        stats
    }

    /// Gives `cause` as the reason where the session ends before the protocol has; see [`Channel::stop`].
    pub fn stop(&mut self, cause: Cause) {
        self.channels.iter_mut().for_each(|channel| channel.stop(cause));
    }

    /// The channels themselves, for threads that own them.
    pub fn into_channels(self) -> Vec<Channel> {
        self.channels
    }

    /// What passed over all channels: bytes and messages added up, rounds and waiting of the channel with
    /// most.
    pub fn stats(&self) -> Stats {
        self.channels.iter().map(Channel::stats).fold(Stats::default(), |sum, one| Stats {
            bytes_sent: sum.bytes_sent + one.bytes_sent,
            bytes_received: sum.bytes_received + one.bytes_received,
            messages_sent: sum.messages_sent + one.messages_sent,
            messages_received: sum.messages_received + one.messages_received,
            rounds: sum.rounds.max(one.rounds),
            wait: sum.wait.max(one.wait),
            wire_sent: sum.wire_sent + one.wire_sent,
            wire_received: sum.wire_received + one.wire_received,
        })
    }
}

impl Listener {
    /// Waits for the peer and opens a session with it, for at most [`Limits::accept`](crate::Limits::accept).
    ///
    /// Only the peer can end the waiting: connections of others are closed and counted, up to 64 of them are
    /// received at once, and the peer is served beside them. A peer of other settings, another role or
    /// another release ends it with that error on both sides. Without TLS everybody who greets properly is
    /// the peer. When nobody came in time, `Error::NoPeer` says who came instead.
    pub fn accept(&self, options: &Options) -> Result<Session> {
        self.accept_since(Instant::now(), options)
    }

    fn accept_since(&self, start: Instant, options: &Options) -> Result<Session> {
        let mut lobby = Lobby::new(self, options, options.terms()?)?;
        let (Prepared { channel, tls, .. }, id) = lobby.first(start)?;
        let deadline = later(Instant::now(), options.limits.connect);
        let mut channels = vec![channel];
        for index in 1..options.channels as u16 {
            channels.push(lobby.further(id, index, deadline)?);
        }
        Ok(Session::opened(channels, id, tls, options))
    }
}

/// Listens at `address` and opens a session with the peer, as [`Listener::accept`] does.
///
/// A name in the address that is not found is looked up again until then.
pub fn listen(address: &str, options: &Options) -> Result<Session> {
    let start = Instant::now();
    let patience = options.limits.accept;
    let targets = {
        let mut vigil = vigil(options, Party::First, address, start, patience);
        resolve(address, patience.unwrap_or(Duration::MAX), &mut |reason| vigil.go_on(Some(reason)))?
    };
    Listener::bind_at(address, &targets)?.accept_since(start, options)
}

/// Connects to `address`, trying until the connect deadline while nobody listens there, and opens a session.
///
/// A name that is not found is looked up again, and a connection that ends before the listener greeted is
/// made again, until that deadline.
pub fn connect(address: &str, options: &Options) -> Result<Session> {
    by(Caller::new(address, options)?, options)
}

/// Calls a service that waits at the relay of the `options`, and opens a session with it.
pub fn call(options: &Options) -> Result<Session> {
    through(options, None)
}

/// Opens a session by the relay of the `options`, over `stream` first if there is one already.
fn through(options: &Options, stream: Option<TcpStream>) -> Result<Session> {
    let address = options.via.as_deref().unwrap_or_default();
    let mut caller = Caller::to(address, options, Vec::new());
    let (start, patience) = (Instant::now(), Some(options.limits.connect));
    caller.vigil = vigil(options, Party::First, &place(address), start, patience).of_one_at_hand();
    let relay = Route::new(address, options, &mut |reason| caller.vigil.go_on(Some(reason)))?;
    caller.relay = Some((relay, stream));
    by(caller, options)
}

fn by(mut caller: Caller<'_>, options: &Options) -> Result<Session> {
    let terms = options.terms()?;
    let (Prepared { channel, tls, .. }, id) =
        caller.call(|Prepared { channel, binding, .. }| handshake::open(channel, &terms, binding))?;
    let mut channels = vec![channel];
    for index in 1..options.channels as u16 {
        let (Prepared { channel, .. }, ()) =
            caller.call(|Prepared { channel, binding, .. }| handshake::join(channel, id, index, binding))?;
        channels.push(channel);
    }
    Ok(Session::opened(channels, id, tls, options))
}

/// Meets the peer at the relay of the `options` and opens a session with it: which side listens is settled
/// there. Both sides must name a relay, and the same one.
pub fn meet(options: &Options) -> Result<Session> {
    let start = Instant::now();
    let (address, patience) = (options.via.as_deref().unwrap_or_default(), options.limits.connect);
    // Until the session is open, so that nothing is told twice.
    let mut vigil = vigil(options, Party::First, &place(address), start, Some(patience));
    let relay = Route::new(address, options, &mut |reason| vigil.go_on(Some(reason)))?;
    let end = later(start, patience);
    let (stream, party) = relay.meet(Part::Either, (end, end), &mut |news| vigil.hear(&news))?;
    match party {
        Party::First => {
            let calls = Calls::with(relay, stream)?;
            Listener::of_calls(calls)?.accept_since(start, options)
        }
        Party::Second => through(options, Some(stream)),
    }
}

/// A relay as an observer is told of it.
fn place(relay: &str) -> String {
    format!("the relay {relay}")
}

/// Whether every address that `address` stands for is this machine's loopback. A name is looked up until
/// `patience` is over.
pub fn is_loopback(address: &str, patience: Duration) -> Result<bool> {
    let found = resolve(address, patience, &mut |_| ())?;
    Ok(found.iter().all(|address| address.ip().to_canonical().is_loopback()))
}

fn vigil(
    options: &Options,
    party: Party,
    address: &str,
    since: Instant,
    patience: Option<Duration>,
) -> Vigil {
    Vigil::new(&options.observer, party, options.protection.proof(), address.to_owned(), since, patience)
}

/// The side that connects, and tries again.
struct Caller<'a> {
    address: &'a str,
    options: &'a Options,
    targets: Vec<SocketAddr>,
    /// The relay in the place of these, and a connection that it has made already.
    relay: Option<(Route, Option<TcpStream>)>,
    pace: SharedPace,
    deadline: Instant,
    /// Whether somebody listens at the address.
    found: bool,
    vigil: Vigil,
}

impl<'a> Caller<'a> {
    fn new(address: &'a str, options: &'a Options) -> Result<Self> {
        let start = Instant::now();
        let patience = options.limits.connect;
        let mut vigil = vigil(options, Party::Second, address, start, Some(patience));
        if options.proxy.is_some() {
            proxy::check(address)?;
        }
        // Behind a proxy it is the proxy that looks the name up.
        let first = options.proxy.as_ref().map_or(Ok(address.to_owned()), Proxy::address)?;
        let targets = resolve(&first, patience, &mut |reason| vigil.go_on(Some(reason)))?;
        drop(vigil);
        Ok(Self::to(address, options, targets))
    }

    fn to(address: &'a str, options: &'a Options, targets: Vec<SocketAddr>) -> Self {
        let (start, patience) = (Instant::now(), options.limits.connect);
        let vigil = vigil(options, Party::Second, address, start, Some(patience));
        let pace = Arc::new(Mutex::new(Pace::new(options.link)));
        let deadline = later(start, patience);
        Caller { address, options, targets, relay: None, pace, deadline, found: false, vigil }
    }

    fn left(&self) -> Duration {
        left(self.deadline)
    }

    /// A connection to the listener on which `greet` succeeded.
    ///
    /// One that is lost before that may have met a listener that was just ending, or one with its hands full:
    /// it is made again, and what happened last is told when time is over.
    fn call<T>(&mut self, mut greet: impl FnMut(&mut Prepared) -> Result<T>) -> Result<(Prepared, T)> {
        let mut pause = Pause::default();
        let mut lost: Option<Error> = None;
        loop {
            let stream = self.dial().map_err(|error| lost.take().unwrap_or(error))?;
            if !self.found {
                // The deadline bounds the whole, but a listener found late still gets a moment to answer.
                self.found = true;
                self.deadline = self.deadline.max(later(Instant::now(), self.options.limits.connect / 4));
            }
            let deadline = self.handshake();
            let outcome = prepare(stream, Party::Second, self.options, &self.pace, deadline)
                .and_then(|mut prepared| greet(&mut prepared).map(|greeted| (prepared, greeted)));
            let error = match outcome {
                Err(error @ (Error::Lost { .. } | Error::Closed { .. })) => error,
                Err(error) if self.options.cancel.is_cancelled() => {
                    return Err(self.options.cancel.cause(error));
                }
                // A relay may have joined us with a side that is gone.
                Err(error @ Error::Timeout { .. }) if !self.left().is_zero() && self.relay.is_some() => error,
                Err(error @ Error::Timeout { .. }) => return Err(lost.unwrap_or(error)),
                outcome => return outcome,
            };
            if self.left() <= pause.next() {
                return Err(error);
            }
            self.vigil.go_on(Some(&error.to_string()));
            pause.sleep();
            lost = Some(error);
        }
    }

    /// When a connection that was just made must have greeted.
    fn handshake(&self) -> Instant {
        if self.relay.is_none() {
            return self.deadline;
        }
        let share = (self.options.limits.connect / 4).clamp(HANDSHAKE / 10, HANDSHAKE);
        self.deadline.min(later(Instant::now(), share + self.options.link.delay().saturating_mul(8)))
    }

    /// The connection, through the proxy if there is one; or why there is none just now.
    fn tunnel(&self, mut stream: TcpStream) -> Result<std::result::Result<TcpStream, String>> {
        let Some(proxy) = &self.options.proxy else { return Ok(Ok(stream)) };
        let deadline = later(Instant::now(), self.left().min(ATTEMPT));
        Ok(match proxy::open(proxy, &mut stream, self.address, deadline) {
            Ok(Answer::Open) => Ok(stream),
            Ok(Answer::Later(reason)) => Err(reason),
            Ok(Answer::Never(reason)) => {
                let (address, after) = (self.address.to_owned(), Duration::ZERO);
                return Err(Error::Unreachable { address, after, reason });
            }
            Err(error) => Err(proxy::failed(Some(proxy), &error)),
        })
    }

    fn dial(&mut self) -> Result<TcpStream> {
        if let Some((relay, stream)) = &mut self.relay {
            if let Some(stream) = stream.take() {
                return Ok(stream);
            }
            let (deadline, vigil) = (self.deadline, &mut self.vigil);
            let met = relay.meet(Part::Connecting, (deadline, deadline), &mut |news| vigil.hear(&news));
            return Ok(met?.0);
        }
        let mut pause = Pause::default();
        loop {
            self.options.cancel.check()?;
            let mut reason = "no time left".to_owned();
            for target in &self.targets {
                let patience = self.left().clamp(Duration::from_millis(1), ATTEMPT);
                match TcpStream::connect_timeout(target, patience) {
                    Ok(stream) => match self.tunnel(stream)? {
                        Ok(stream) => return Ok(stream),
                        Err(why) => reason = why,
                    },
                    Err(error) => reason = proxy::failed(self.options.proxy.as_ref(), &error),
                }
            }
            if self.left() <= pause.next() {
                let (address, after) = (self.address.to_owned(), Duration::ZERO);
                return Err(Error::Unreachable { address, after, reason });
            }
            self.vigil.go_on(Some(&reason));
            pause.sleep();
        }
    }
}

/// Longest wait for one address to answer, so that one that swallows everything does not stand before the
/// others.
const ATTEMPT: Duration = Duration::from_secs(10);

/// Longest wait for a side that a relay joined with us: one that listens gives it less.
const HANDSHAKE: Duration = Duration::from_secs(20);

/// Pauses between attempts, each twice the one before up to 200 ms.
struct Pause(Duration);

impl Default for Pause {
    fn default() -> Self {
        Pause(Duration::from_millis(5))
    }
}

impl Pause {
    fn next(&self) -> Duration {
        self.0
    }

    fn sleep(&mut self) {
        std::thread::sleep(self.0);
        self.0 = (self.0 * 2).min(Duration::from_millis(200));
    }
}
