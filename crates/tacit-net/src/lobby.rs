//! Where a listener receives whoever calls: the peer is let in, strangers are turned away, and the waiting
//! goes on.
//!
//! Each connection is received on a thread of its own, which ends TLS and hears the greeting, so nobody has
//! to wait for anybody else. A connection is the peer's when it proved the peer's key (or certificate) and
//! greeted properly; without TLS a proper greeting is all there is. What such a peer says ends the waiting, a
//! difference in the settings too. Everything else is a stranger: it is counted, closed, and named when the
//! waiting ends in vain.
//!
//! At most [`PLACES`] connections are received at once, each for at most [`GREETING`] and with at most some
//! 300 kB of its bytes held. When all places are taken, the oldest connection of the address that holds most
//! of them makes room, but never one that has proved the peer's key. So who opens many connections and says
//! nothing drives out its own.

use crate::crowd::makes_room;
use crate::emulate::Pace;
use crate::handshake::{self, Agreement, Hello, Purpose};
use crate::listener::Listener;
use crate::setup::{Options, Prepared, later, prepare};
use crate::tcp::{SharedPace, poll_until};
use crate::waiting::{Event, Vigil};
use crate::wake::{self, Wake, Woken};
use crate::{Channel, Error, Party, PublicKey, Result, SessionId};
use rustix::event::{PollFd, PollFlags};
use std::collections::{BTreeMap, VecDeque};
use std::io::ErrorKind;
use std::net::{IpAddr, Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, mpsc};
use std::time::{Duration, Instant};
use tacit_crypto::fence::fenced;
use tacit_crypto::text::counted;

/// Connections that are received at once.
const PLACES: usize = 64;
/// Time for a connection's TLS handshake and greeting, without an emulated link's delays.
const GREETING: Duration = Duration::from_secs(10);
/// Delays of an emulated link that pass until a connection has greeted, with room.
const DELAYS: u32 = 8;
/// Failures of the operating system to hand over connections, one after the other, that end the waiting.
const FAILURES: u32 = 500;

/// What the threads that receive share.
struct Desk {
    options: Options,
    terms: Agreement,
    pace: SharedPace,
    /// Whether a session is open already, so that further ones are refused.
    taken: AtomicBool,
    reports: mpsc::Sender<Report>,
    wake: Wake,
}

/// A connection being received.
struct Place {
    number: u64,
    from: IpAddr,
    stream: TcpStream,
    deadline: Instant,
    /// Who it is, once it has proved the peer's key.
    known: Arc<OnceLock<Proved>>,
}

/// What a connection has proved to be, as TLS shows it.
#[derive(Clone, Default)]
struct Proved {
    key: Option<PublicKey>,
    name: Option<String>,
}

struct Report {
    number: u64,
    outcome: Result<Guest>,
}

/// A connection that greeted properly.
enum Guest {
    /// It opened a session.
    Opened(Box<Prepared>, SessionId),
    /// It says that it is a further channel of one.
    Joining(Box<Joining>),
}

struct Joining {
    from: IpAddr,
    prepared: Prepared,
    hello: Hello,
}

/// A listener's waiting for the connections of one session.
pub(crate) struct Lobby<'a> {
    listener: &'a Listener,
    desk: Arc<Desk>,
    reported: mpsc::Receiver<Report>,
    woken: Woken,
    places: VecDeque<Place>,
    /// Further channels that came before the session they belong to was known here.
    parked: VecDeque<Joining>,
    strangers: Strangers,
    /// Where the connection came from that ended the waiting last, and who it was.
    last: Option<(IpAddr, Proved)>,
    next_number: u64,
    failures: u32,
}

impl<'a> Lobby<'a> {
    pub(crate) fn new(listener: &'a Listener, options: &Options, terms: Agreement) -> Result<Self> {
        let (woken, wake) = wake::pair()?;
        let (reports, reported) = mpsc::channel();
        let pace = Arc::new(Mutex::new(Pace::new(options.link)));
        let taken = AtomicBool::new(false);
        let desk = Arc::new(Desk { options: options.clone(), terms, pace, taken, reports, wake });
        Ok(Lobby {
            listener,
            desk,
            reported,
            woken,
            places: VecDeque::new(),
            parked: VecDeque::new(),
            strangers: Strangers::default(),
            last: None,
            next_number: 0,
            failures: 0,
        })
    }

    /// The first connection that opens a session as the peer, within the options' time to accept from
    /// `start`.
    pub(crate) fn first(&mut self, start: Instant) -> Result<(Prepared, SessionId)> {
        let patience = self.desk.options.limits.accept;
        let address = self.listener.place();
        let options = &self.desk.options;
        let mut vigil =
            Vigil::new(&options.observer, Party::First, options.protection.proof(), address, start, patience);
        let end = patience.map(|patience| later(start, patience));
        loop {
            match self.next(end, Some(&mut vigil))? {
                Some(Guest::Opened(prepared, id)) => {
                    self.desk.taken.store(true, Ordering::Relaxed);
                    return Ok((*prepared, id));
                }
                Some(Guest::Joining(guest)) => {
                    if self.parked.len() == PLACES
                        && let Some(oldest) = self.parked.pop_front()
                    {
                        self.turn_away(oldest.from, &OTHER_SESSION);
                    }
                    self.parked.push_back(*guest);
                }
                None => {
                    return Err(Error::NoPeer {
                        address: self.listener.address().to_owned(),
                        after: patience.unwrap_or_default(),
                        callers: self.strangers.summary(),
                    });
                }
            }
        }
    }

    /// Channel `index` of the session, before `end`.
    pub(crate) fn further(&mut self, session: SessionId, index: u16, end: Instant) -> Result<Channel> {
        let start = Instant::now();
        // What came before the session was known is turned away as what comes later is.
        let is_ours = |guest: &Joining| handshake::is_channel_of(&guest.hello, session, index);
        let (ours, others) = std::mem::take(&mut self.parked).into_iter().partition(is_ours);
        self.parked = ours;
        others.into_iter().for_each(|guest: Joining| self.turn_away(guest.from, &OTHER_SESSION));
        loop {
            let found = self
                .parked
                .iter()
                .position(|guest| handshake::is_channel_of(&guest.hello, session, index))
                .and_then(|at| self.parked.remove(at));
            if let Some(Joining { from, prepared: Prepared { mut channel, binding, .. }, .. }) = found {
                match handshake::admit(&mut channel, session, index, &binding) {
                    Ok(()) => return Ok(channel),
                    // The peer calls again when its connection was lost.
                    Err(error @ (Error::Lost { .. } | Error::Closed { .. })) => self.turn_away(from, &error),
                    Err(error) => return Err(error),
                }
            }
            match self.next(Some(end), None)? {
                Some(Guest::Joining(guest)) if handshake::is_channel_of(&guest.hello, session, index) => {
                    self.parked.push_back(*guest);
                }
                Some(Guest::Joining(guest)) => self.turn_away(guest.from, &OTHER_SESSION),
                // It greeted before the session's first channel was found, and has no place in this session.
                Some(Guest::Opened(..)) => {}
                None => {
                    let callers = self.strangers.summary();
                    let awaited = format!("the peer's connection number {}{callers}", index + 1);
                    return Err(Error::Timeout { after: start.elapsed(), awaited });
                }
            }
        }
    }

    /// The next connection that opens a session, whoever's of those trusted, or `None` after `patience`. One
    /// that ends in a difference of terms is turned away as others are.
    pub(crate) fn next_opened(&mut self, patience: Duration) -> Result<Option<(Prepared, SessionId)>> {
        let end = later(Instant::now(), patience);
        loop {
            match self.next(Some(end), None) {
                Ok(Some(Guest::Opened(prepared, id))) => return Ok(Some((*prepared, id))),
                Ok(Some(Guest::Joining(guest))) => self.turn_away(guest.from, &OTHER_SESSION),
                Ok(None) => return Ok(None),
                // Its place is free already.
                Err(error) if is_of_the_peer(&error) => self.tell_disagreed(&error),
                Err(error) => return Err(error),
            }
        }
    }

    /// From now on receives by `options` and their terms; connections that are being received are not
    /// touched.
    pub(crate) fn receive_by(&mut self, options: &Options, terms: Agreement) -> Result<()> {
        let desk = &self.desk;
        let taken = AtomicBool::new(desk.taken.load(Ordering::Relaxed));
        let (reports, wake) = (desk.reports.clone(), desk.wake.try_clone()?);
        self.listener.receive_by(options)?;
        let (options, pace) = (options.clone(), desk.pace.clone());
        self.desk = Arc::new(Desk { options, terms, pace, taken, reports, wake });
        Ok(())
    }

    /// Tells of a connection of the peer's that ended in a difference of terms. Without TLS it is a stranger.
    fn tell_disagreed(&mut self, error: &Error) {
        let Some((from, Proved { key, name })) = self.last.take() else { return };
        if key.is_none() && name.is_none() {
            return self.turn_away(from, error);
        }
        let what = tacit_crypto::text::shown(&error.to_string());
        self.desk.options.observer.tell(&Event::Disagreed { from, key, name, what });
    }

    /// The next guest, or `None` at the `end`. What a peer says that ends the waiting is an error.
    fn next(&mut self, end: Option<Instant>, mut vigil: Option<&mut Vigil>) -> Result<Option<Guest>> {
        loop {
            self.desk.options.cancel.check()?;
            while let Ok(Report { number, outcome }) = self.reported.try_recv() {
                let Some(at) = self.places.iter().position(|place| place.number == number) else { continue };
                let Some(place) = self.places.remove(at) else { continue };
                match outcome {
                    Ok(guest) => return Ok(Some(guest)),
                    Err(error) if is_of_the_peer(&error) => {
                        self.last = Some((place.from, place.known.get().cloned().unwrap_or_default()));
                        return Err(error);
                    }
                    Err(error) => self.turn_away(place.from, &error),
                }
            }
            self.receive_all()?;
            self.close_late();
            let now = Instant::now();
            if end.is_some_and(|end| end <= now) {
                return Ok(None);
            }
            let mut pause = Duration::from_secs(60);
            if let Some(vigil) = &mut vigil {
                vigil.go_on(None);
                pause = pause.min(vigil.due());
            }
            let deadlines = self.places.iter().map(|place| place.deadline).chain(end);
            let pause = deadlines.map(|at| at.saturating_duration_since(now)).fold(pause, Duration::min);
            self.sleep(self.desk.options.cancel.pause(pause))?;
        }
    }

    /// Waits for a connection or a report.
    fn sleep(&mut self, pause: Duration) -> Result<()> {
        let Lobby { listener, woken, .. } = self;
        let door = listener.descriptor();
        let mut fds = [PollFd::new(&door, PollFlags::IN), PollFd::new(&woken.0, PollFlags::IN)];
        poll_until(&mut fds, pause)?;
        if fds[0].revents().contains(PollFlags::IN) {
            listener.noted()?;
        }
        if fds[1].revents().contains(PollFlags::IN) {
            self.woken.clear()?;
        }
        Ok(())
    }

    /// Takes the connections that wait at the port.
    fn receive_all(&mut self) -> Result<()> {
        for _ in 0..PLACES {
            match self.listener.take() {
                Ok((stream, from)) => {
                    self.failures = 0;
                    self.receive(stream, from.ip().to_canonical());
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // The relay serves us no more.
                Err(error) if self.listener.local_addr().is_err() => {
                    return Err(error.downcast::<Error>().unwrap_or_else(Error::Io));
                }
                // Most are faults of the connection at hand, or files run short for a moment.
                Err(error) => {
                    self.failures += 1;
                    if self.failures >= FAILURES {
                        return Err(Error::Io(error));
                    }
                    self.make_room();
                    std::thread::sleep(Duration::from_millis(10));
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Receives one connection on a thread of its own.
    fn receive(&mut self, stream: TcpStream, from: IpAddr) {
        if self.places.len() >= PLACES {
            self.make_room();
        }
        let number = self.next_number;
        self.next_number += 1;
        let options = &self.desk.options;
        let deadline = Instant::now()
            + (GREETING + options.link.delay().saturating_mul(DELAYS)).min(options.limits.connect);
        let known = Arc::new(OnceLock::new());
        let started = stream.try_clone().and_then(|own| {
            let (desk, known) = (self.desk.clone(), known.clone());
            std::thread::Builder::new().name("tacit-lobby".to_owned()).spawn(move || {
                let outcome = fenced(|| desk.greet(own, from, deadline, &known));
                let outcome =
                    outcome.unwrap_or_else(|panicked| Err(Error::Io(std::io::Error::other(panicked))));
                // Nobody waits for the report any more once the session is open.
                let _ = desk.reports.send(Report { number, outcome });
                desk.wake.wake();
            })
        });
        match started {
            Ok(_) => self.places.push_back(Place { number, from, stream, deadline, known }),
            Err(error) => self.turn_away(from, &Error::Io(error)),
        }
    }

    /// Closes the oldest connection of the address that holds most places, of those that have proved nothing.
    fn make_room(&mut self) {
        let is_unknown = |(_, place): &(usize, &Place)| place.known.get().is_none();
        let unknown: Vec<(usize, IpAddr)> =
            self.places.iter().enumerate().filter(is_unknown).map(|(at, place)| (at, place.from)).collect();
        let at = makes_room(unknown.iter().map(|(_, from)| *from)).map_or(0, |of| unknown[of].0);
        // If all have the peer's key, the peer has opened too many itself.
        if let Some(place) = self.places.remove(at) {
            place.close();
            self.turn_away(place.from, &DRIVEN_OUT);
        }
    }

    /// Closes what still drips in after its deadline: its thread gives each read that time again.
    fn close_late(&mut self) {
        let now = Instant::now();
        while let Some(at) = self.places.iter().position(|place| place.deadline <= now) {
            if let Some(place) = self.places.remove(at) {
                place.close();
                let after = GREETING;
                self.turn_away(place.from, &Error::Timeout { after, awaited: String::new() });
            }
        }
    }

    fn turn_away(&mut self, from: IpAddr, error: &Error) {
        let (reason, what) = self.strangers.count(error);
        let count = self.strangers.total;
        self.desk.options.observer.tell(&Event::Stranger { from, reason, what, count });
    }
}

impl Place {
    /// Ends the connection; the thread that receives it sees its end.
    fn close(&self) {
        // One that is gone already needs no closing.
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

impl Drop for Lobby<'_> {
    fn drop(&mut self) {
        self.places.iter().for_each(Place::close);
    }
}

impl Desk {
    /// TLS, then the greeting, and with a new session its confirmation.
    fn greet(
        &self,
        stream: TcpStream,
        from: IpAddr,
        deadline: Instant,
        known: &OnceLock<Proved>,
    ) -> Result<Guest> {
        let mut prepared = prepare(stream, Party::First, &self.options, &self.pace, deadline)?;
        if let Some(tls) = &prepared.tls {
            // This thread alone sets it.
            let _ = known.set(Proved { key: tls.key, name: tls.name.clone() });
        }
        let hello = handshake::hear(&mut prepared.channel, &self.terms)?;
        match hello.purpose {
            Purpose::Joining => Ok(Guest::Joining(Box::new(Joining { from, prepared, hello }))),
            Purpose::Opening if self.taken.load(Ordering::Relaxed) => Err(OTHER_SESSION),
            Purpose::Opening => {
                let Prepared { channel, binding, .. } = &mut prepared;
                let id = handshake::answer(channel, &self.terms, &hello, binding)?;
                Ok(Guest::Opened(Box::new(prepared), id))
            }
        }
    }
}

/// Whether the error is one that only a peer with a proper greeting can cause, so that waiting on would be in
/// vain.
fn is_of_the_peer(error: &Error) -> bool {
    matches!(error, Error::Mismatch { .. } | Error::Role { .. } | Error::Release { .. })
}

const OTHER_SESSION: Error = Error::Malformed("it belongs to another session");
const DRIVEN_OUT: Error = Error::Malformed("it was too slow, and all places were in use");

/// What was wrong with a connection, the more telling first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Flaw {
    Key,
    Refused,
    Tls,
    Foreign,
    Garbled,
    Silent,
    Left,
}

impl Flaw {
    /// As figures call it.
    fn name(self) -> &'static str {
        match self {
            Flaw::Key => "unknown key",
            Flaw::Refused => "key refused",
            Flaw::Tls => "tls failed",
            Flaw::Foreign => "not tacit",
            Flaw::Garbled => "malformed",
            Flaw::Silent => "silent",
            Flaw::Left => "left",
        }
    }
}

/// Who called in vain: how many of each kind, and what the last of it was like.
#[derive(Default)]
struct Strangers {
    total: u64,
    kinds: BTreeMap<Flaw, (u64, String)>,
}

impl Strangers {
    /// Counts a stranger and returns what was wrong with it: the kind, and on a line.
    fn count(&mut self, error: &Error) -> (&'static str, String) {
        let (flaw, what) = match error {
            Error::WrongPeer { found, .. } => (Flaw::Key, format!("wrong key {found}")),
            Error::Refused { .. } => {
                (Flaw::Refused, "it rejected your key: does the peer have your current .pub file?".to_owned())
            }
            Error::Tls(reason) => (Flaw::Tls, format!("TLS failed: {reason}")),
            Error::NotTacit { saw } => {
                (Flaw::Foreign, format!("not Tacit: {saw}; do both sides use TLS or neither?"))
            }
            Error::Malformed(reason) => (Flaw::Garbled, (*reason).to_owned()),
            Error::Timeout { .. } => (Flaw::Silent, "no handshake in time".to_owned()),
            Error::Lost { .. } | Error::Closed { .. } => {
                (Flaw::Left, "closed before the handshake".to_owned())
            }
            error => (Flaw::Garbled, error.to_string()),
        };
        self.total += 1;
        let kind = self.kinds.entry(flaw).or_default();
        kind.0 += 1;
        kind.1.clone_from(&what);
        (flaw.name(), what)
    }

    /// The strangers for the end of an error's line; empty when nobody came.
    fn summary(&self) -> String {
        let kinds = self.kinds.values().map(|(count, last)| match self.kinds.len() {
            1 => last.clone(),
            _ => format!("{count}: {last}"),
        });
        match self.total {
            0 => String::new(),
            total => {
                let kinds = kinds.collect::<Vec<_>>().join(", ");
                format!("; rejected {} ({kinds})", counted(total, "connection"))
            }
        }
    }
}
