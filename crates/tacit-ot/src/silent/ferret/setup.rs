//! Ferret's one-time setup from nothing: base OT, KOS by hash (IKNP when semi-honest), where it pays a small
//! Ferret in between, then the main set (Yang–Weng–Lan–Zhang–Wang 2020/924, section 6.2).

use super::params::{Config, UniConfig};
use super::regular::{FerretReceiver, FerretSender};
use super::uniform::{FerretUniReceiver, FerretUniSender};
use crate::silent::engine::source::{SourceReceiver, SourceSender};
use crate::{BaseOt, CotReceiver, CotSender, Result, Security};
use tacit_crypto::Prg;
use tacit_net::Channel;

/// Correlated OT on one side, as an object.
trait Side {
    /// From a base OT, by KOS or IKNP.
    fn source(
        channel: &mut Channel,
        base: &dyn BaseOt,
        prg: &mut Prg,
        security: Security,
    ) -> Result<Box<Self>>;
}

impl Side for dyn CotSender {
    fn source(
        channel: &mut Channel,
        base: &dyn BaseOt,
        prg: &mut Prg,
        security: Security,
    ) -> Result<Box<Self>> {
        Ok(Box::new(SourceSender::begin(channel, base, prg, security)?(channel)?))
    }
}

impl Side for dyn CotReceiver {
    fn source(
        channel: &mut Channel,
        base: &dyn BaseOt,
        prg: &mut Prg,
        security: Security,
    ) -> Result<Box<Self>> {
        Ok(Box::new(SourceReceiver::begin(channel, base, prg, security)?(channel)?))
    }
}

/// One party of either form.
trait Party: Sized {
    /// What both parties must agree on.
    type Config;
    /// Correlated OT on this party's side.
    type Cots: Side + ?Sized;

    /// This form's own setup.
    fn from_cots(
        channel: &mut Channel,
        prg: Prg,
        config: Self::Config,
        source: &mut Self::Cots,
    ) -> Result<Self>;

    /// This stream as a source of others.
    fn into_cots(self) -> Box<Self::Cots>;

    /// When one of the two fails, both are spent.
    fn tie_to(&mut self, other: &Self);
}

/// A party that can make all of its iterations at once.
trait Ahead: Party {
    /// [`from_cots`](Party::from_cots) for `iterations` iterations.
    fn ahead(
        channel: &mut Channel,
        prg: Prg,
        config: Self::Config,
        iterations: usize,
        source: &mut Self::Cots,
    ) -> Result<Self>;
}

/// The streams of one setup, `make` being the setup of one: from a base OT, where there is a `small` set
/// through that.
fn streams<P: Party>(
    channel: &mut Channel,
    base: &dyn BaseOt,
    prg: &mut Prg,
    security: Security,
    small: Option<P::Config>,
    count: usize,
    make: impl Fn(&mut Channel, Prg, &mut P::Cots) -> Result<P>,
) -> Result<Vec<P>> {
    let mut source = P::Cots::source(channel, base, prg, security)?;
    if let Some(small) = small {
        source = P::from_cots(channel, prg.fork(), small, &mut *source)?.into_cots();
    }
    let mut all: Vec<P> = Vec::with_capacity(count);
    for _ in 0..count {
        let mut next = make(channel, prg.fork(), &mut *source)?;
        if let Some(first) = all.first() {
            next.tie_to(first);
        }
        all.push(next);
    }
    Ok(all)
}

impl Party for FerretSender {
    type Config = Config;
    type Cots = dyn CotSender;

    fn from_cots(channel: &mut Channel, prg: Prg, config: Config, source: &mut Self::Cots) -> Result<Self> {
        Self::setup(channel, prg, config, source)
    }

    fn into_cots(self) -> Box<Self::Cots> {
        Box::new(self)
    }

    fn tie_to(&mut self, other: &Self) {
        self.tie(other);
    }
}

impl Party for FerretReceiver {
    type Config = Config;
    type Cots = dyn CotReceiver;

    fn from_cots(channel: &mut Channel, prg: Prg, config: Config, source: &mut Self::Cots) -> Result<Self> {
        Self::setup(channel, prg, config, source)
    }

    fn into_cots(self) -> Box<Self::Cots> {
        Box::new(self)
    }

    fn tie_to(&mut self, other: &Self) {
        self.tie(other);
    }
}

impl Ahead for FerretSender {
    fn ahead(
        channel: &mut Channel,
        prg: Prg,
        config: Config,
        iterations: usize,
        source: &mut Self::Cots,
    ) -> Result<Self> {
        Self::setup_ahead(channel, prg, config, iterations, source)
    }
}

impl Party for FerretUniSender {
    type Config = UniConfig;
    type Cots = dyn CotSender;

    fn from_cots(
        channel: &mut Channel,
        prg: Prg,
        config: UniConfig,
        source: &mut Self::Cots,
    ) -> Result<Self> {
        Self::setup(channel, prg, config, source)
    }

    fn into_cots(self) -> Box<Self::Cots> {
        Box::new(self)
    }

    fn tie_to(&mut self, other: &Self) {
        self.tie(other);
    }
}

impl Ahead for FerretReceiver {
    fn ahead(
        channel: &mut Channel,
        prg: Prg,
        config: Config,
        iterations: usize,
        source: &mut Self::Cots,
    ) -> Result<Self> {
        Self::setup_ahead(channel, prg, config, iterations, source)
    }
}

impl Party for FerretUniReceiver {
    type Config = UniConfig;
    type Cots = dyn CotReceiver;

    fn from_cots(
        channel: &mut Channel,
        prg: Prg,
        config: UniConfig,
        source: &mut Self::Cots,
    ) -> Result<Self> {
        Self::setup(channel, prg, config, source)
    }

    fn into_cots(self) -> Box<Self::Cots> {
        Box::new(self)
    }

    fn tie_to(&mut self, other: &Self) {
        self.tie(other);
    }
}

/// `count` senders of one Δ, each with seeds of its own, from a base OT in which this side receives; one for
/// each of as many channels. All interaction of the setup is on `channel`. When one stream fails, all are
/// spent.
pub fn senders(
    channel: &mut Channel,
    base: &dyn BaseOt,
    prg: &mut Prg,
    config: Config,
    count: usize,
) -> Result<Vec<FerretSender>> {
    let small = config.small(count);
    streams(channel, base, prg, config.security, small, count, |channel, prg, source| {
        Party::from_cots(channel, prg, config, source)
    })
}

/// `count` receivers; see [`senders`].
pub fn receivers(
    channel: &mut Channel,
    base: &dyn BaseOt,
    prg: &mut Prg,
    config: Config,
    count: usize,
) -> Result<Vec<FerretReceiver>> {
    let small = config.small(count);
    streams(channel, base, prg, config.security, small, count, |channel, prg, source| {
        Party::from_cots(channel, prg, config, source)
    })
}

/// `count` senders that each make `iterations` iterations ahead: all traffic is in here, on `channel`. See
/// [`senders`] and [`FerretSender::setup_ahead`].
pub fn senders_ahead(
    channel: &mut Channel,
    base: &dyn BaseOt,
    prg: &mut Prg,
    config: Config,
    count: usize,
    iterations: usize,
) -> Result<Vec<FerretSender>> {
    let small = config.small_ahead(count, iterations);
    streams(channel, base, prg, config.security, small, count, |channel, prg, source| {
        Ahead::ahead(channel, prg, config, iterations, source)
    })
}

/// `count` receivers; see [`senders_ahead`].
pub fn receivers_ahead(
    channel: &mut Channel,
    base: &dyn BaseOt,
    prg: &mut Prg,
    config: Config,
    count: usize,
    iterations: usize,
) -> Result<Vec<FerretReceiver>> {
    let small = config.small_ahead(count, iterations);
    streams(channel, base, prg, config.security, small, count, |channel, prg, source| {
        Ahead::ahead(channel, prg, config, iterations, source)
    })
}

/// `count` senders of Ferret-Uni; see [`senders`].
pub fn uni_senders(
    channel: &mut Channel,
    base: &dyn BaseOt,
    prg: &mut Prg,
    config: UniConfig,
    count: usize,
) -> Result<Vec<FerretUniSender>> {
    let small = config.small(count);
    streams(channel, base, prg, config.security, small, count, |channel, prg, source| {
        Party::from_cots(channel, prg, config, source)
    })
}

/// `count` receivers of Ferret-Uni; see [`senders`].
pub fn uni_receivers(
    channel: &mut Channel,
    base: &dyn BaseOt,
    prg: &mut Prg,
    config: UniConfig,
    count: usize,
) -> Result<Vec<FerretUniReceiver>> {
    let small = config.small(count);
    streams(channel, base, prg, config.security, small, count, |channel, prg, source| {
        Party::from_cots(channel, prg, config, source)
    })
}
