//! [`Session`]: two parties joined by one or more connections.

use crate::emulate::{LinkModel, Pace};
use crate::handshake::{self, Agreement};
use crate::link::{Interest, Link};
use crate::tcp::{ShapedLink, SharedPace, TcpLink, await_fd};
use crate::tls::{Negotiated, Tls};
use crate::{Channel, Error, Limits, Party, Result, SessionId, Stats};
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How the bytes between the parties are protected.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Protection {
    /// Not at all. For loopback and for measurements.
    Plaintext,
    /// TLS 1.3 with both sides authenticated.
    Tls(Tls),
}

/// How to set up a session.
#[derive(Clone, Debug)]
pub struct Options {
    /// What both parties must agree on.
    pub agreement: Agreement,
    /// How the bytes are protected.
    pub protection: Protection,
    /// Deadlines and bounds.
    pub limits: Limits,
    /// Connections of the session, 1 to 256; both sides must say the same.
    pub channels: usize,
    /// The link to emulate; both sides must say the same.
    pub link: LinkModel,
}

impl Options {
    /// One channel with the default limits over the link as it is.
    pub fn new(agreement: Agreement, protection: Protection) -> Self {
        Options { agreement, protection, limits: Limits::default(), channels: 1, link: LinkModel::LOOPBACK }
    }

    fn terms(&self) -> Result<Agreement> {
        if !(1..=256).contains(&self.channels) {
            return Err(Error::Usage(format!("{} channels: a session has 1 to 256", self.channels)));
        }
        Ok(self.agreement.clone().with("channels", self.channels).with("link", self.link))
    }
}

/// Two parties joined by one or more authenticated channels of one session.
///
/// The first channel carries the session's id; each further one, meant for a thread of its own, an id derived from it.
pub struct Session {
    channels: Vec<Channel>,
    id: SessionId,
    tls: Option<Negotiated>,
}

impl Session {
    /// Key exchange group and cipher suite of TLS, such as `X25519MLKEM768` and `TLS13_AES_128_GCM_SHA256`.
    pub fn tls(&self) -> Option<(&str, &str)> {
        self.tls.as_ref().map(|tls| (tls.group.as_str(), tls.suite.as_str()))
    }

    /// A hash of the public key that the peer proved to have, pinned or out of its certificate; `None` without TLS, where the peer can be
    /// anybody. The same key gives the same hash in every session.
    pub fn peer(&self) -> Option<[u8; 32]> {
        self.tls.as_ref().map(|tls| tls.peer)
    }

    /// The id that both parties contributed to.
    pub fn id(&self) -> SessionId {
        self.id
    }

    /// Which end this is.
    pub fn party(&self) -> Party {
        self.channels.first().map_or(Party::First, Channel::party)
    }

    /// All channels; there is at least one.
    pub fn channels(&mut self) -> &mut [Channel] {
        &mut self.channels
    }

    /// The first channel.
    pub fn channel(&mut self) -> &mut Channel {
        &mut self.channels[0]
    }

    /// The channels themselves, for threads that own them.
    pub fn into_channels(self) -> Vec<Channel> {
        self.channels
    }

    /// What passed over all channels: bytes and messages added up, rounds and waiting of the channel with most.
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

/// A port that waits for its peer.
pub struct Listener {
    socket: TcpListener,
    address: String,
}

impl Listener {
    /// Listens at `address`, such as `127.0.0.1:7000` or `[::]:7000`; port 0 picks a free one.
    pub fn bind(address: &str) -> Result<Self> {
        let socket = TcpListener::bind(resolve(address)?.as_slice()).map_err(|error| match error.kind() {
            ErrorKind::AddrInUse => Error::AddressInUse { address: address.to_owned() },
            ErrorKind::PermissionDenied => Error::Address {
                address: address.to_owned(),
                reason: "no permission to listen there; use a port above 1023".to_owned(),
            },
            ErrorKind::AddrNotAvailable => Error::Address {
                address: address.to_owned(),
                reason: "no interface of this machine has that address".to_owned(),
            },
            _ => Error::Io(error),
        })?;
        socket.set_nonblocking(true)?;
        Ok(Listener { socket, address: address.to_owned() })
    }

    /// Where it really listens.
    pub fn local_addr(&self) -> Result<SocketAddr> {
        Ok(self.socket.local_addr()?)
    }

    /// Waits for the peer and opens a session with it.
    pub fn accept(&self, options: &Options) -> Result<Session> {
        let terms = options.terms()?;
        let stream = self.next(options.limits.accept)?;
        let deadline = Instant::now() + options.limits.connect;
        let pace = shared_pace(options);
        let opened = |stream| prepare(stream, Party::First, options, &pace, deadline);
        open(opened(stream)?, &terms, options, |_| opened(self.next(Some(left(deadline)))?))
    }

    fn next(&self, patience: Option<Duration>) -> Result<TcpStream> {
        let start = Instant::now();
        loop {
            match self.socket.accept() {
                Ok((stream, _)) => return Ok(stream),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error)
                    if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::ConnectionAborted) => {}
                Err(error) => return Err(Error::Io(error)),
            }
            let timeout = match patience {
                Some(patience) => patience.checked_sub(start.elapsed()),
                None => Some(Duration::from_secs(60)),
            };
            if timeout.is_none_or(|timeout| timeout.is_zero()) {
                let awaited = format!("the peer to connect to {}", self.address);
                return Err(Error::Timeout { after: patience.unwrap_or_default(), awaited });
            }
            await_fd(&self.socket, Interest::Read, timeout.unwrap_or_default())?;
        }
    }
}

/// Listens at `address` and opens a session with the first peer that connects.
pub fn listen(address: &str, options: &Options) -> Result<Session> {
    Listener::bind(address)?.accept(options)
}

/// Connects to `address`, trying until the connect deadline while nobody listens there, and opens a session.
pub fn connect(address: &str, options: &Options) -> Result<Session> {
    let terms = options.terms()?;
    let targets = resolve(address)?;
    let start = Instant::now();
    let stream = dial(address, &targets, options.limits.connect)?;
    // The deadline bounds the whole, but a listener found late still gets a moment to answer.
    let deadline = (start + options.limits.connect).max(Instant::now() + options.limits.connect / 4);
    let pace = shared_pace(options);
    let opened = |stream| prepare(stream, Party::Second, options, &pace, deadline);
    open(opened(stream)?, &terms, options, |_| opened(dial(address, &targets, left(deadline))?))
}

/// Whether every address that `address` stands for is this machine's loopback.
pub fn is_loopback(address: &str) -> Result<bool> {
    Ok(resolve(address)?.iter().all(|address| address.ip().to_canonical().is_loopback()))
}

fn resolve(address: &str) -> Result<Vec<SocketAddr>> {
    let wrong = |reason: String| Error::Address { address: address.to_owned(), reason };
    if !address.contains(':') {
        return Err(wrong("give HOST:PORT, such as 127.0.0.1:7000".to_owned()));
    }
    let found: Vec<_> = address.to_socket_addrs().map_err(|error| wrong(error.to_string()))?.collect();
    if found.is_empty() { Err(wrong("the name has no address".to_owned())) } else { Ok(found) }
}

fn left(deadline: Instant) -> Duration {
    deadline.saturating_duration_since(Instant::now())
}

fn dial(address: &str, targets: &[SocketAddr], patience: Duration) -> Result<TcpStream> {
    let start = Instant::now();
    let mut pause = Duration::from_millis(5);
    loop {
        let mut reason = "no time left".to_owned();
        for target in targets {
            let left = patience.saturating_sub(start.elapsed()).max(Duration::from_millis(1));
            match TcpStream::connect_timeout(target, left) {
                Ok(stream) => return Ok(stream),
                Err(error) => reason = error.to_string(),
            }
        }
        if start.elapsed() + pause >= patience {
            return Err(Error::Unreachable { address: address.to_owned(), after: patience, reason });
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(200));
    }
}

/// A connection that is ready for the handshake, with what binds it to its protection.
struct Prepared {
    channel: Channel,
    binding: Vec<u8>,
    tls: Option<Negotiated>,
}

fn shared_pace(options: &Options) -> SharedPace {
    Arc::new(Mutex::new(Pace::new(options.link)))
}

fn prepare(
    stream: TcpStream,
    party: Party,
    options: &Options,
    pace: &SharedPace,
    deadline: Instant,
) -> Result<Prepared> {
    let link: Box<dyn Link> = match options.link.is_unshaped() {
        true => Box::new(TcpLink::new(stream)?),
        false => Box::new(ShapedLink::new(stream, options.link, pace.clone())?),
    };
    let (link, binding, tls): (Box<dyn Link>, _, _) = match &options.protection {
        Protection::Plaintext => (link, Vec::new(), None),
        Protection::Tls(tls) => {
            let link = tls.open(link, party, deadline)?;
            let (binding, negotiated) = (link.exporter()?, link.negotiated()?);
            (Box::new(link), binding, Some(negotiated))
        }
    };
    let patience = left(deadline);
    let limits = Limits { read: patience, idle: patience, ..options.limits };
    Ok(Prepared { channel: Channel::with_limits(link, party, SessionId([0; 32]), limits), binding, tls })
}

/// Runs the handshake over the first connection, then makes and joins the others.
fn open(
    first: Prepared,
    terms: &Agreement,
    options: &Options,
    mut further: impl FnMut(u16) -> Result<Prepared>,
) -> Result<Session> {
    let Prepared { mut channel, binding, tls } = first;
    let id = handshake::open(&mut channel, terms, &binding)?;
    let mut channels = vec![channel];
    for index in 1..options.channels as u16 {
        let Prepared { mut channel, binding, .. } = further(index)?;
        handshake::join(&mut channel, id, index, &binding)?;
        channels.push(channel);
    }
    for channel in &mut channels {
        channel.set_limits(options.limits);
    }
    Ok(Session { channels, id, tls })
}
