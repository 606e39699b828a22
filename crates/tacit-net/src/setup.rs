//! What a session is set up from: options, a port to listen at, and connections that are ready for the
//! handshake.

use crate::address::resolve;
use crate::cancel::Cancel;
use crate::emulate::LinkModel;
use crate::handshake::Agreement;
use crate::link::Link;
use crate::tcp::{ShapedLink, SharedPace, TcpLink};
use crate::tls::{Negotiated, Tls};
use crate::waiting::Observer;
use crate::{Channel, Error, Limits, Party, Proxy, Result, SessionId};
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};
use tacit_crypto::text::counted;

/// How the bytes between the parties are protected.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Protection {
    /// Not at all. For loopback and for measurements.
    Plaintext,
    /// TLS 1.3 with both sides authenticated.
    Tls(Tls),
}

impl Protection {
    /// How the peer proves who it is, for people.
    pub(crate) fn proof(&self) -> String {
        match self {
            Protection::Plaintext => "no TLS".to_owned(),
            Protection::Tls(tls) => tls.proof(),
        }
    }
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
    /// Whom to tell while this party waits for the other, and when they have met.
    pub observer: Observer,
    /// What ends the session from another thread; nothing unless said otherwise.
    pub cancel: Cancel,
    /// An HTTP proxy that a connecting party asks for a tunnel to the listener; none unless said otherwise. It sees
    /// the listener's address, and of the rest what anybody on the way sees.
    pub proxy: Option<Proxy>,
    /// A relay, as `HOST:PORT`, where the sides meet instead of at the listener's address; none unless said
    /// otherwise. See [`meeting`](crate::meeting).
    pub via: Option<String>,
}

impl Options {
    /// One channel with the default limits over the link as it is.
    pub fn new(agreement: Agreement, protection: Protection) -> Self {
        Options {
            agreement,
            protection,
            limits: Limits::default(),
            channels: 1,
            link: LinkModel::LOOPBACK,
            observer: Observer::default(),
            cancel: Cancel::default(),
            proxy: None,
            via: None,
        }
    }

    pub(crate) fn terms(&self) -> Result<Agreement> {
        if !(1..=256).contains(&self.channels) {
            return Err(Error::Usage(format!(
                "{}: a session has 1 to 256",
                counted(self.channels, "channel")
            )));
        }
        let terms = self.agreement.clone().with("channels", self.channels).with("link", self.link);
        terms.fits()?;
        Ok(terms)
    }
}

/// A port at `address` that does not block.
pub(crate) fn bound(address: &str) -> Result<TcpListener> {
    bound_at(address, &resolve(address, Duration::ZERO, &mut |_| ())?)
}

pub(crate) fn bound_at(address: &str, targets: &[SocketAddr]) -> Result<TcpListener> {
    let socket = TcpListener::bind(targets).map_err(|error| match error.kind() {
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
    Ok(socket)
}

/// When `patience` from `start` is over; a time beyond what the clock can hold is years away.
pub(crate) fn later(start: Instant, patience: Duration) -> Instant {
    const YEARS: Duration = Duration::from_secs(1 << 30);
    start + patience.min(YEARS)
}

pub(crate) fn left(deadline: Instant) -> Duration {
    deadline.saturating_duration_since(Instant::now())
}

/// A connection that is ready for the handshake, with what binds it to its protection.
pub(crate) struct Prepared {
    pub(crate) channel: Channel,
    pub(crate) binding: Vec<u8>,
    pub(crate) tls: Option<Negotiated>,
}

pub(crate) fn prepare(
    stream: TcpStream,
    party: Party,
    options: &Options,
    pace: &SharedPace,
    deadline: Instant,
) -> Result<Prepared> {
    let link = TcpLink::watched(stream, &options.cancel)?;
    let link: Box<dyn Link> = match options.link.is_unshaped() {
        true => Box::new(link),
        false => Box::new(ShapedLink::new(link, options.link, pace.clone())?),
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
