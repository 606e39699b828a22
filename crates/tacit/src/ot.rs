//! Oblivious transfer between two parties: which protocols there are, and running them over any number of channels.

use crate::{Error, Result};
use tacit_crypto::{BitVec, Block, Buffer, Prg};
use tacit_net::LinkModel;
use tacit_net::{Agreement, Channel};
pub use tacit_ot::convert::{CotToRot, RotToOt};
use tacit_ot::extension::{IknpReceiver, IknpSender, KosReceiver, KosSender};
use tacit_ot::silent::bcgikrs19::{Code, Config as SilentConfig, LARGEST_RUN, SilentReceiver, SilentSender};
use tacit_ot::silent::ferret::cost::CACHE;
use tacit_ot::silent::ferret::setup as ferret_setup;
use tacit_ot::silent::ferret::{Config as FerretConfig, LEAST_SECURITY_BITS, Params as FerretParams};
use tacit_ot::silent::ferret::{UniConfig, UniParams};
pub use tacit_ot::{BaseOt, CotReceiver, CotSender, OtReceiver, OtSender, RotReceiver, RotSender, Security};

/// What kind of OT a run makes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Correlated: v at the sender, w = v ⊕ u·Δ at the receiver.
    Cot,
    /// Random: two random messages at the sender, one of them at the receiver.
    Rot,
    /// Chosen: the sender's messages and the receiver's choices come from outside.
    Ot,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Kind; 3] = [Kind::Cot, Kind::Rot, Kind::Ot];

    /// The short name.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Cot => "cot",
            Kind::Rot => "rot",
            Kind::Ot => "ot",
        }
    }
}

/// The sender of correlated OT of any protocol.
pub struct AnySender(Box<dyn CotSender + Send>);

impl AnySender {
    /// Any sender at all.
    pub fn new(sender: impl CotSender + Send + 'static) -> Self {
        AnySender(Box::new(sender))
    }
}

impl CotSender for AnySender {
    fn delta(&self) -> Block {
        self.0.delta()
    }

    fn extend(&mut self, channel: &mut Channel, out: &mut [Block]) -> tacit_ot::Result<()> {
        self.0.extend(channel, out)
    }

    fn extend_each(
        &mut self,
        channel: &mut Channel,
        n: usize,
        each: &mut dyn FnMut(&[Block]),
    ) -> tacit_ot::Result<()> {
        self.0.extend_each(channel, n, each)
    }
}

/// The receiver of correlated OT of any protocol.
pub struct AnyReceiver(Box<dyn CotReceiver + Send>);

impl AnyReceiver {
    /// Any receiver at all.
    pub fn new(receiver: impl CotReceiver + Send + 'static) -> Self {
        AnyReceiver(Box::new(receiver))
    }
}

impl CotReceiver for AnyReceiver {
    fn extend(&mut self, channel: &mut Channel, out: &mut [Block]) -> tacit_ot::Result<()> {
        self.0.extend(channel, out)
    }

    fn is_answered(&self) -> bool {
        self.0.is_answered()
    }

    fn extend_each(
        &mut self,
        channel: &mut Channel,
        n: usize,
        each: &mut dyn FnMut(&[Block]),
    ) -> tacit_ot::Result<()> {
        self.0.extend_each(channel, n, each)
    }
}

/// An OT extension: its name, what it protects against, and how its two sides are set up.
pub struct Protocol {
    /// The short name.
    pub name: &'static str,
    /// What it is proved to protect against.
    pub security: Security,
    /// OTs that one thread makes at a time: the memory a run needs, and how often a link's delay is waited for.
    piece: usize,
    /// For so many OTs begun a request takes a stream; with 0, as many as there are channels.
    stream: u64,
    sender: fn(&mut Channel, &dyn BaseOt, &mut Prg, &Streams) -> tacit_ot::Result<Vec<AnySender>>,
    receiver: fn(&mut Channel, &dyn BaseOt, &mut Prg, &Streams) -> tacit_ot::Result<Vec<AnyReceiver>>,
}

impl std::fmt::Debug for Protocol {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// How many streams a setup makes, one a channel, and with what parameters.
struct Streams {
    count: usize,
    tuning: Tuning,
}

/// What the silent protocols are told beyond their name; both parties must say the same.
#[derive(Clone, Copy, Debug)]
pub struct Tuning {
    /// The parameters of Ferret.
    pub ferret: FerretConfig,
    /// The parameters of Ferret under uniform noise.
    pub ferret_uni: UniConfig,
    /// The parameters of silent OT.
    pub silent: SilentConfig,
    /// With Ferret, how many iterations a stream makes ahead; unless given, they are made on demand.
    pub up_front: Option<usize>,
}

impl Default for Tuning {
    /// A million OTs a stream against a malicious peer, on a fast link.
    fn default() -> Self {
        let (count, link, cache) = (1 << 20, LinkModel::LOOPBACK, CACHE);
        let security = Security::Malicious;
        Tuning {
            ferret: FerretConfig::choose(count, security, &link, cache),
            ferret_uni: UniConfig::choose(count, security, &link, cache),
            silent: SilentConfig { code: Code::Linear, security },
            up_front: None,
        }
    }
}

impl Tuning {
    /// The parameters that make `count` OTs a stream soonest on `link`; `set` forces an LPN set by its name, with
    /// whichever of Ferret and Ferret-Uni has one of that name.
    ///
    /// An error if neither has, or if the set is for `tacit bench` alone.
    pub fn choose(set: Option<&str>, count: u64, security: Security, link: &LinkModel) -> Result<Self> {
        Tuning::choose_among(Sets::Session, set, count, security, link)
    }

    /// [`choose`](Self::choose) where `sets` says which names are known.
    pub(crate) fn choose_among(
        sets: Sets,
        set: Option<&str>,
        count: u64,
        security: Security,
        link: &LinkModel,
    ) -> Result<Self> {
        let cache = CACHE;
        let regular = set.and_then(|name| sets.regular(name));
        let uniform = set.and_then(|name| sets.uniform(name));
        if let (Some(name), None, None) = (set, regular, uniform) {
            return Err(no_set(sets, name, None));
        }
        let ferret = match regular {
            None => FerretConfig::choose(count, security, link, cache),
            Some(params) => FerretConfig::with_set(params, count, security, link, cache),
        };
        let ferret_uni = match uniform {
            None => UniConfig::choose(count, security, link, cache),
            Some(params) => UniConfig { params, security },
        };
        let silent = SilentConfig { code: Code::Linear, security };
        Ok(Tuning { ferret, ferret_uni, silent, up_front: None })
    }

    /// The code of silent OT by its name, `None` for the default; `protocol` is what runs it, where that is known.
    ///
    /// An error if there is no code of that name, or if the protocol has none.
    pub fn with_code(mut self, code: Option<&str>, protocol: Option<&Protocol>) -> Result<Self> {
        let Some(name) = code else { return Ok(self) };
        if protocol.is_none_or(|protocol| protocol.name != "silent") {
            return Err(Error::Usage("--code goes with --protocol silent".into()));
        }
        self.silent.code = Code::by_name(name).ok_or_else(|| {
            Error::Usage(format!("there is no code `{name}`; choose quasi-cyclic or linear"))
        })?;
        Ok(self)
    }
}

/// Which LPN sets may be named.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Sets {
    /// Those that protect: at least 128 bits against every attack that is counted.
    #[default]
    Session,
    /// With them those of the papers' tables, which have fewer: for `tacit bench`, where nothing is
    /// protected.
    Measuring,
}

impl Sets {
    fn regular(self, name: &str) -> Option<FerretParams> {
        match self {
            Sets::Session => FerretParams::by_name(name),
            Sets::Measuring => FerretParams::for_measuring(name),
        }
    }

    fn uniform(self, name: &str) -> Option<UniParams> {
        match self {
            Sets::Session => UniParams::by_name(name),
            Sets::Measuring => UniParams::for_measuring(name),
        }
    }

    /// Those of Ferret.
    pub(crate) fn of_ferret(self) -> Vec<FerretParams> {
        let papers: &[FerretParams] = if self == Sets::Measuring { &FerretParams::PAPERS } else { &[] };
        [&FerretParams::ALL[..], papers].concat()
    }

    /// Those of Ferret-Uni.
    pub(crate) fn of_ferret_uni(self) -> Vec<UniParams> {
        let papers: &[UniParams] = if self == Sets::Measuring { &UniParams::PAPERS } else { &[] };
        [&UniParams::ALL[..], papers].concat()
    }
}

/// That no LPN set is called `name`, or none of `protocol`'s, or that a session must not use it.
pub(crate) fn no_set(sets: Sets, name: &str, protocol: Option<&str>) -> Error {
    let names = |names: Vec<&str>| names.join(", ");
    let all = [
        ("ferret", names(sets.of_ferret().iter().map(|p| p.name).collect())),
        ("ferret-uni", names(sets.of_ferret_uni().iter().map(|p| p.name).collect())),
    ];
    let known = all.iter().filter(|(of, _)| protocol.is_none_or(|name| name == *of));
    let known: Vec<_> = known.map(|(of, names)| format!("{of} has {names}")).collect();
    let regular = Sets::Measuring.regular(name).map(|p| p.security_bits);
    let uniform = Sets::Measuring.uniform(name).map(|p| p.security_bits);
    let bits = if protocol == Some("ferret-uni") { uniform } else { regular.or(uniform) };
    match bits.filter(|bits| *bits < LEAST_SECURITY_BITS) {
        Some(bits) => Error::Usage(format!(
            "the LPN set `{name}` has {bits} bits of security and is for `tacit bench` alone; {}",
            known.join(", ")
        )),
        None => Error::Usage(format!("there is no LPN set `{name}`; {}", known.join(", "))),
    }
}

impl Job {
    /// The same job with all traffic up front: every stream makes ahead what it will need, and the rest needs no peer.
    ///
    /// An error unless the protocol is Ferret and the kind takes no messages of its own.
    pub fn up_front(mut self, streams: usize) -> Result<Self> {
        if self.protocol.name != "ferret" || self.kind == Kind::Ot {
            return Err(Error::Usage(
                "--up-front goes with --protocol ferret and correlated or random OT".into(),
            ));
        }
        let piece = self.piece(streams) as u64;
        let most = self.count.div_ceil((piece * streams as u64).max(1)) * piece;
        self.tuning.up_front = Some(self.tuning.ferret.iterations_ahead(most));
        Ok(self)
    }

    /// How many OTs each of `streams` makes at a time.
    pub(crate) fn piece(&self, streams: usize) -> usize {
        self.count.div_ceil(streams.max(1) as u64).min(self.protocol.piece as u64) as usize
    }
}

/// Independent streams of one setup, one a channel.
macro_rules! streams {
    ($type:ident, $any:ident) => {
        |channel, base, prg, streams| {
            let lanes = streams.count;
            let mut first = $type::setup(channel, base, prg)?;
            let mut streams = Vec::with_capacity(lanes);
            for _ in 1..lanes {
                streams.push($any(Box::new(first.fork())));
            }
            streams.insert(0, $any(Box::new(first)));
            Ok(streams)
        }
    };
}

/// Streams of silent OT, each with trees and codes of its own.
macro_rules! silent {
    ($type:ident, $any:ident) => {
        |channel, base, prg, streams| {
            let mut first = $type::setup(channel, base, prg, streams.tuning.silent)?;
            let forks = (1..streams.count).map(|_| $any(Box::new(first.fork()))).collect::<Vec<_>>();
            Ok(std::iter::once($any(Box::new(first))).chain(forks).collect())
        }
    };
}

/// Streams of Ferret, each with seeds of its own; by the second setup, if there is one, when all traffic is up front.
macro_rules! ferret {
    ($setup:ident $(| $ahead:ident)?, $config:ident, $any:ident) => {
        |channel, base, prg, streams| {
            let config = streams.tuning.$config;
            let all = match streams.tuning.up_front {
                $(Some(n) => ferret_setup::$ahead(channel, base, prg, config, streams.count, n)?,)?
                _ => ferret_setup::$setup(channel, base, prg, config, streams.count)?,
            };
            Ok(all.into_iter().map(|one| $any(Box::new(one))).collect())
        }
    };
}

/// Every OT extension; a new one is one more entry.
pub static PROTOCOLS: &[Protocol] = &[
    Protocol {
        name: "iknp",
        security: Security::SemiHonest,
        piece: PIECE,
        stream: 0,
        sender: streams!(IknpSender, AnySender),
        receiver: streams!(IknpReceiver, AnyReceiver),
    },
    Protocol {
        name: "kos",
        security: Security::Malicious,
        piece: PIECE,
        stream: 0,
        sender: streams!(KosSender, AnySender),
        receiver: streams!(KosReceiver, AnyReceiver),
    },
    Protocol {
        name: "ferret",
        security: Security::Malicious,
        piece: PIECE,
        stream: 0,
        sender: ferret!(senders | senders_ahead, ferret, AnySender),
        receiver: ferret!(receivers | receivers_ahead, ferret, AnyReceiver),
    },
    Protocol {
        name: "ferret-uni",
        security: Security::Malicious,
        piece: PIECE,
        stream: 0,
        sender: ferret!(uni_senders, ferret_uni, AnySender),
        receiver: ferret!(uni_receivers, ferret_uni, AnyReceiver),
    },
    Protocol {
        name: "silent",
        security: Security::Malicious,
        piece: LARGEST_RUN,
        stream: 1 << 18,
        sender: silent!(SilentSender, AnySender),
        receiver: silent!(SilentReceiver, AnyReceiver),
    },
];

/// Correlations that were made ahead: the caller opens the pool and hands it to [`Job::send_from`] or
/// [`Job::receive_from`]; there is nothing to set up.
pub static POOL: Protocol = ready("pool");

/// Correlations from a dealer's seed, which the caller opens as it would a pool.
pub static DEALT: Protocol = ready("dealt");

const fn ready(name: &'static str) -> Protocol {
    Protocol {
        name,
        security: Security::Malicious,
        piece: PIECE,
        stream: 0,
        sender: |_, _, _, _| Err(no_setup()),
        receiver: |_, _, _, _| Err(no_setup()),
    }
}

fn no_setup() -> tacit_ot::Error {
    tacit_ot::Error::Usage {
        protocol: "pool",
        what: "what was made ahead is opened from its file, not set up",
    }
}

/// An error if `set` is named and `protocol` has none of that name among `sets`.
pub fn check_set(sets: Sets, set: Option<&str>, protocol: &Protocol) -> Result<()> {
    let Some(name) = set else { return Ok(()) };
    let known = match protocol.name {
        "ferret" => sets.regular(name).is_some(),
        "ferret-uni" => sets.uniform(name).is_some(),
        _ => return Err(Error::Usage("--set goes with --protocol ferret or ferret-uni".into())),
    };
    if known { Ok(()) } else { Err(no_set(sets, name, Some(protocol.name))) }
}

/// The names that `--protocol` takes.
pub fn names() -> Vec<&'static str> {
    std::iter::once("auto").chain(PROTOCOLS.iter().map(|protocol| protocol.name)).collect()
}

/// The protocol of that name; `auto` is the fastest that gives `security`.
///
/// An error if there is none, or if it does not protect as much as asked.
pub fn protocol(name: &str, security: Security) -> Result<&'static Protocol> {
    let name = match (name, security) {
        ("auto", Security::SemiHonest) => "iknp",
        ("auto", Security::Malicious) => "kos",
        (name, _) => name,
    };
    let found = PROTOCOLS.iter().find(|protocol| protocol.name == name);
    let found = found.ok_or_else(|| {
        Error::Usage(format!("there is no OT protocol `{name}`; choose one of {}", names().join(", ")))
    })?;
    if security == Security::Malicious && found.security == Security::SemiHonest {
        let what = format!(
            "{name} protects against a semi-honest peer only; add --security semi-honest or choose kos"
        );
        return Err(Error::Usage(what));
    }
    Ok(found)
}

/// The base OT of that name (`None`: the default), refused if it protects less than `security`.
pub fn base_ot(name: Option<&str>, security: Security) -> Result<Box<dyn BaseOt + Send + Sync>> {
    use tacit_ot::base::{DEFAULT, NAMES, by_name};
    let name = name.unwrap_or(DEFAULT);
    let base = by_name(name).ok_or_else(|| {
        Error::Usage(format!("there is no base OT `{name}`; choose one of {}", NAMES.join(", ")))
    })?;
    protects(&*base, security)?;
    Ok(base)
}

/// Refuses a base OT that protects less than `security`.
pub fn protects(base: &dyn BaseOt, security: Security) -> Result<()> {
    if security == Security::Malicious && base.security() == Security::SemiHonest {
        return Err(Error::Usage(format!(
            "base OT {} protects against a semi-honest peer only; choose another or add --security semi-honest",
            base.name()
        )));
    }
    Ok(())
}

impl Protocol {
    /// How many of `channels` channels a request of `count` OTs uses, one stream each: where a stream costs much beside its
    /// OTs, as with silent OT, which has trees of its own for each, a small request takes few.
    pub fn streams(&self, count: u64, channels: usize) -> usize {
        match self.stream {
            0 => channels,
            each => channels.min(count.div_ceil(each).max(1) as usize),
        }
    }

    /// `lanes` senders of one setup, with the same Δ, one for each channel; the base OTs run over `channel`.
    pub fn senders(
        &self,
        channel: &mut Channel,
        base: &dyn BaseOt,
        prg: &mut Prg,
        lanes: usize,
    ) -> Result<Vec<AnySender>> {
        self.senders_with(channel, base, prg, lanes, Tuning::default())
    }

    /// [`senders`](Self::senders) with chosen parameters of the silent protocols.
    pub fn senders_with(
        &self,
        channel: &mut Channel,
        base: &dyn BaseOt,
        prg: &mut Prg,
        lanes: usize,
        tuning: Tuning,
    ) -> Result<Vec<AnySender>> {
        Ok((self.sender)(channel, base, prg, &Streams { count: lanes, tuning })?)
    }

    /// `lanes` receivers of one setup, one for each channel; the base OTs run over `channel`.
    pub fn receivers(
        &self,
        channel: &mut Channel,
        base: &dyn BaseOt,
        prg: &mut Prg,
        lanes: usize,
    ) -> Result<Vec<AnyReceiver>> {
        self.receivers_with(channel, base, prg, lanes, Tuning::default())
    }

    /// [`receivers`](Self::receivers) with chosen parameters of the silent protocols.
    pub fn receivers_with(
        &self,
        channel: &mut Channel,
        base: &dyn BaseOt,
        prg: &mut Prg,
        lanes: usize,
        tuning: Tuning,
    ) -> Result<Vec<AnyReceiver>> {
        Ok((self.receiver)(channel, base, prg, &Streams { count: lanes, tuning })?)
    }
}

/// A run that both parties agreed on: which protocol, which kind, how many.
#[derive(Clone, Copy, Debug)]
pub struct Job {
    /// The protocol.
    pub protocol: &'static Protocol,
    /// What it makes.
    pub kind: Kind,
    /// How many.
    pub count: u64,
    /// Parameters of the silent protocols.
    pub tuning: Tuning,
}

/// A piece of the sender's output, in order; secret.
pub enum Sent<'a> {
    /// Of correlated OT: Δ and the next v.
    Cot(Block, &'a [Block]),
    /// Of random and chosen OT: the next pairs of messages.
    Pairs(&'a [[Block; 2]]),
}

/// Takes a piece of `WIDTH` blocks an OT, and the choices.
type Take<'a, const WIDTH: usize> = dyn FnMut(&[[Block; WIDTH]], &BitVec) -> Result<()> + 'a;

const PIECE: usize = 1 << 20;

impl Job {
    /// What it protects against; `None` for an LPN set that protects against nobody.
    pub fn protects(&self) -> Option<Security> {
        match self.protocol.name {
            "ferret" => self.tuning.ferret.protects(),
            "ferret-uni" => self.tuning.ferret_uni.protects(),
            "silent" => Some(self.tuning.silent.security),
            _ => Some(self.protocol.security),
        }
    }

    /// What both parties must agree on; `role` is `sender` or `receiver`.
    pub fn agreement(&self, base: &dyn BaseOt, sender: bool) -> Agreement {
        let (role, peer) = if sender { ("sender", "receiver") } else { ("receiver", "sender") };
        let agreement = Agreement::new("ot", role, peer)
            .with("protocol", self.protocol.name)
            .with("base-ot", base.name())
            .with("kind", self.kind.name())
            .with("count", self.count);
        match self.protocol.name {
            "ferret" => {
                let FerretConfig { params, lanes, security } = self.tuning.ferret;
                agreement
                    .with("set", params.name)
                    .with("lanes", lanes.count())
                    .with("up-front", self.tuning.up_front.unwrap_or(0))
                    .with("security", crate::security_name(security))
            }
            "ferret-uni" => {
                let UniConfig { params, security } = self.tuning.ferret_uni;
                agreement.with("set", params.name).with("security", crate::security_name(security))
            }
            "silent" => {
                let SilentConfig { code, security } = self.tuning.silent;
                agreement.with("code", code.name()).with("security", crate::security_name(security))
            }
            _ => agreement,
        }
    }

    /// Runs the sender over `channels`, or as many of them as [serve](Protocol::streams), one thread each, and hands the output
    /// on piece by piece. For chosen OT the messages are drawn at random.
    pub fn send(
        &self,
        channels: &mut [Channel],
        base: &dyn BaseOt,
        each: &mut dyn FnMut(Sent<'_>) -> Result<()>,
    ) -> Result<()> {
        let mut prg = Prg::from_os();
        let lanes = self.protocol.streams(self.count, channels.len());
        let channels = &mut channels[..lanes];
        let Some(first) = channels.first_mut() else { return Err(no_channel()) };
        let cots = self.protocol.senders_with(first, base, &mut prg, lanes, self.tuning)?;
        self.send_from(channels, cots, &mut prg, each)
    }

    /// As [`send`](Self::send), out of correlations that are set up already, one source for each channel.
    pub fn send_from(
        &self,
        channels: &mut [Channel],
        cots: Vec<AnySender>,
        prg: &mut Prg,
        each: &mut dyn FnMut(Sent<'_>) -> Result<()>,
    ) -> Result<()> {
        let delta = cots.first().map_or(Block::ZERO, |cot| cot.delta());
        if self.kind == Kind::Cot {
            // Even a run of none has a Δ.
            each(Sent::Cot(delta, &[]))?;
        }
        match self.kind {
            Kind::Cot => self.pieces(
                channels,
                cots,
                |cot, channel, out: &mut [[Block; 1]]| {
                    Ok(cot.extend(channel, out.as_flattened_mut()).map(|()| BitVec::default())?)
                },
                &mut |v, _| each(Sent::Cot(delta, v.as_flattened())),
            ),
            Kind::Rot => self.pieces(
                channels,
                cots.into_iter().map(CotToRot::new).collect(),
                |rot, channel, out: &mut [[Block; 2]]| {
                    Ok(rot.extend(channel, out).map(|()| BitVec::default())?)
                },
                &mut |pairs, _| each(Sent::Pairs(pairs)),
            ),
            Kind::Ot => self.pieces(
                channels,
                cots.into_iter().map(|cot| (RotToOt::new(CotToRot::new(cot)), prg.fork())).collect(),
                |(ot, prg), channel, out: &mut [[Block; 2]]| {
                    prg.fill_blocks(out.as_flattened_mut());
                    Ok(ot.send(channel, out).map(|()| BitVec::default())?)
                },
                &mut |pairs, _| each(Sent::Pairs(pairs)),
            ),
        }
    }

    /// Runs the receiver over `channels`, or as many of them as [serve](Protocol::streams), one thread each, and hands choices
    /// and messages on piece by piece. For chosen OT the choices are drawn at random.
    pub fn receive(
        &self,
        channels: &mut [Channel],
        base: &dyn BaseOt,
        each: &mut dyn FnMut(&BitVec, &[Block]) -> Result<()>,
    ) -> Result<()> {
        let mut prg = Prg::from_os();
        let lanes = self.protocol.streams(self.count, channels.len());
        let channels = &mut channels[..lanes];
        let Some(first) = channels.first_mut() else { return Err(no_channel()) };
        let cots = self.protocol.receivers_with(first, base, &mut prg, lanes, self.tuning)?;
        self.receive_from(channels, cots, &mut prg, each)
    }

    /// As [`receive`](Self::receive), out of correlations that are set up already, one source for each channel.
    pub fn receive_from(
        &self,
        channels: &mut [Channel],
        cots: Vec<AnyReceiver>,
        prg: &mut Prg,
        each: &mut dyn FnMut(&BitVec, &[Block]) -> Result<()>,
    ) -> Result<()> {
        let mut each = |messages: &[[Block; 1]], choices: &BitVec| each(choices, messages.as_flattened());
        match self.kind {
            Kind::Cot => self.pieces(
                channels,
                cots,
                |cot, channel, out: &mut [[Block; 1]]| {
                    let out = out.as_flattened_mut();
                    cot.extend(channel, out)?;
                    Ok(BitVec::from_lsbs(out))
                },
                &mut each,
            ),
            Kind::Rot => self.pieces(
                channels,
                cots.into_iter().map(CotToRot::new).collect(),
                |rot, channel, out: &mut [[Block; 1]]| Ok(rot.extend(channel, out.as_flattened_mut())?),
                &mut each,
            ),
            Kind::Ot => self.pieces(
                channels,
                cots.into_iter().map(|cot| (RotToOt::new(CotToRot::new(cot)), prg.fork())).collect(),
                |(ot, prg), channel, out: &mut [[Block; 1]]| {
                    let choices = BitVec::random(out.len(), prg);
                    ot.receive(channel, &choices, out.as_flattened_mut())?;
                    Ok(choices)
                },
                &mut each,
            ),
        }
    }

    /// Every lane fills a piece at the same time, `WIDTH` blocks an OT; then the pieces are handed on in order.
    fn pieces<S: Send, const WIDTH: usize>(
        &self,
        channels: &mut [Channel],
        states: Vec<S>,
        fill: impl Fn(&mut S, &mut Channel, &mut [[Block; WIDTH]]) -> Result<BitVec> + Sync,
        each: &mut Take<'_, WIDTH>,
    ) -> Result<()> {
        struct Lane<'a, S> {
            channel: &'a mut Channel,
            state: S,
            piece: Buffer,
        }
        let share = self.piece(channels.len());
        let mut lanes: Vec<_> = channels
            .iter_mut()
            .zip(states)
            .map(|(channel, state)| Lane { channel, state, piece: Buffer::zeros(share * WIDTH) })
            .collect();
        let mut left = self.count;
        while left > 0 {
            let mut sizes = Vec::with_capacity(lanes.len());
            for _ in &lanes {
                let size = left.min(share as u64);
                left -= size;
                sizes.push(size as usize);
            }
            let choices = in_parallel(&mut lanes, |index, lane| {
                let piece = &mut lane.piece.as_chunks_mut().0[..sizes[index]];
                let choices = fill(&mut lane.state, lane.channel, piece)?;
                lane.channel.flush()?;
                Ok(choices)
            })?;
            for ((lane, choices), size) in lanes.iter().zip(&choices).zip(sizes) {
                each(&lane.piece.as_chunks().0[..size], choices)?;
            }
        }
        Ok(())
    }
}

fn no_channel() -> Error {
    Error::Usage("a run needs at least one channel".into())
}

/// Runs `work` on every item in a thread of its own; on a single item in the caller's thread.
pub fn in_parallel<T: Send, R: Send>(
    items: &mut [T],
    work: impl Fn(usize, &mut T) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    if let [only] = items {
        return Ok(vec![work(0, only)?]);
    }
    let work = &work;
    std::thread::scope(|scope| {
        let threads: Vec<_> =
            items.iter_mut().enumerate().map(|(i, item)| scope.spawn(move || work(i, item))).collect();
        let results = threads.into_iter().map(|thread| {
            let bug = |_| Err(Error::Other("a thread ended unexpectedly; please report it".into()));
            thread.join().unwrap_or_else(bug)
        });
        results.collect()
    })
}
