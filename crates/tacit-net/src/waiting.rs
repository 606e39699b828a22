//! What a party that waits for its peer can be told meanwhile: [`Event`]s, to an [`Observer`].

use crate::{Error, Party, PublicKey};
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often an observer hears that the waiting goes on.
const TICK: Duration = Duration::from_secs(1);
/// So long a connecting party's attempts may fail before that is waiting: two that start together miss each
/// other briefly.
const MOMENT: Duration = Duration::from_millis(300);

/// What a side hears that calls a relay.
pub(crate) enum News<'a> {
    /// The relay has let it in and the other side is not there: again and again while that lasts.
    Waits,
    /// A call came to nothing and is made again.
    Failed(&'a Error),
}

/// Something that happened while a party waited for its peer, or when it had come. Nothing in it is secret.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Event {
    /// The party waits: told when it begins to and about every second from then on. A connecting party has
    /// begun to when its attempts have failed for a moment, one at a relay when the relay has let it in or has
    /// not been reached.
    Waiting {
        /// Which end waits: the first listens or is at a relay, the second connects.
        party: Party,
        /// How the peer will prove who it is: `fingerprint 0123-…`, `by certificate` or `no TLS`.
        proof: String,
        /// Where: the address that is listened at or connected to, or `the relay` and its address.
        address: String,
        /// For how long already.
        waited: Duration,
        /// For how long at most; `None` for ever.
        patience: Option<Duration>,
        /// What the last attempt to connect met.
        obstacle: Option<String>,
    },
    /// A connection came that was not the peer's, and was closed. The waiting goes on.
    Stranger {
        /// Where it came from.
        from: IpAddr,
        /// The kind of what was wrong with it, one of few.
        reason: &'static str,
        /// What was wrong with it; printable, cut to a line.
        what: String,
        /// Such connections so far.
        count: u64,
    },
    /// A service's peer proved who it is, and wants another session than the service has.
    Disagreed {
        /// Where it came from.
        from: IpAddr,
        /// The key that it proved, where it came raw.
        key: Option<PublicKey>,
        /// The name that its certificate is for, where it came in one.
        name: Option<String>,
        /// What differs; printable, cut to a line.
        what: String,
    },
    /// Nobody has been at the place of an invitation's code for a while: told once, and the waiting goes on.
    Vacant {
        /// The relay's address.
        address: String,
        /// The code's number, which names the place.
        number: u32,
        /// For how long nobody has been there.
        vacant: Duration,
    },
    /// The waiting is over, well or not.
    Over,
    /// A side that is called at a relay can be reached there from now on, or cannot any more. It goes on trying.
    Relay {
        /// The relay's address.
        address: String,
        /// Why it cannot be reached.
        lost: Option<String>,
    },
    /// The session is open: both sides have shown who they are, and agree.
    Opened {
        /// How the peer has shown who it is: `fingerprint 0123-…`, `by certificate` or `no TLS`.
        proof: String,
        /// Key exchange group and cipher suite of TLS; `None` without TLS.
        tls: Option<(String, String)>,
        /// The protocol, and what both sides said alike, by name.
        terms: Vec<(String, String)>,
    },
}

/// Whom to tell of [`Event`]s: nobody unless made with [`new`](Self::new).
#[derive(Clone, Default)]
pub struct Observer(Option<Arc<Tell>>);

type Tell = dyn Fn(&Event) + Send + Sync;

impl Observer {
    /// Calls `tell` with every event, on the thread that waits. It should return at once.
    pub fn new(tell: impl Fn(&Event) + Send + Sync + 'static) -> Self {
        Observer(Some(Arc::new(tell)))
    }

    /// Tells of `event`.
    pub fn tell(&self, event: &Event) {
        if let Some(tell) = &self.0 {
            tell(event);
        }
    }
}

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Observer(..)" } else { "Observer(nobody)" })
    }
}

/// One waiting, reported to an observer while it lasts.
pub(crate) struct Vigil {
    observer: Observer,
    party: Party,
    proof: String,
    address: String,
    patience: Option<Duration>,
    /// How long a relay is tried that has not been reached yet.
    reach: Option<Duration>,
    since: Instant,
    /// How long the waiting lasts until it is worth telling.
    moment: Duration,
    told: Option<Instant>,
}

impl Vigil {
    pub(crate) fn new(
        observer: &Observer,
        party: Party,
        proof: String,
        address: String,
        since: Instant,
        patience: Option<Duration>,
    ) -> Self {
        let moment = if party == Party::First { Duration::ZERO } else { MOMENT };
        Vigil {
            observer: observer.clone(),
            party,
            proof,
            address,
            patience,
            reach: None,
            since,
            moment,
            told: None,
        }
    }

    /// The same at a relay, which is tried no longer than this until it has been reached.
    pub(crate) fn until_reached(mut self, first: Duration) -> Self {
        self.reach = Some(first);
        self
    }

    /// The same, of a peer that is about to come.
    pub(crate) fn of_one_at_hand(mut self) -> Self {
        self.moment = MOMENT;
        self
    }

    /// Tells that the waiting goes on, unless it was told just before.
    pub(crate) fn go_on(&mut self, obstacle: Option<&str>) {
        if self.since.elapsed() < self.moment || self.told.is_some_and(|told| told.elapsed() < TICK) {
            return;
        }
        self.told = Some(Instant::now());
        self.observer.tell(&Event::Waiting {
            party: self.party,
            proof: self.proof.clone(),
            address: self.address.clone(),
            waited: self.since.elapsed(),
            patience: self.patience.map(|all| self.reach.map_or(all, |first| first.min(all))),
            obstacle: obstacle.map(str::to_owned),
        });
    }

    /// The relay has been reached.
    pub(crate) fn reached(&mut self) {
        self.reach = None;
    }

    /// Tells what a side at a relay hears.
    pub(crate) fn hear(&mut self, news: &News<'_>) {
        match news {
            News::Waits => {
                self.reached();
                self.go_on(None);
            }
            News::Failed(error) => self.go_on(Some(&error.to_string())),
        }
    }

    /// When to tell again.
    pub(crate) fn due(&self) -> Duration {
        self.told.map_or(Duration::ZERO, |told| TICK.saturating_sub(told.elapsed()))
    }
}

impl Drop for Vigil {
    fn drop(&mut self) {
        if self.told.is_some() {
            self.observer.tell(&Event::Over);
        }
    }
}
