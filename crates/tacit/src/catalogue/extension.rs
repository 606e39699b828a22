//! OT extensions: what all of them answer, and the parameters that are left open.

use super::cost::{Candidate, Link, Machine, SETUP_BYTES, SETUP_POINTS};
use super::{ENTRIES, Entry, Runs, floor};
use crate::{Error, Result, security_name};
use std::fmt::Debug;
use std::sync::Arc;
use tacit_crypto::near::{nearest, one_of};
use tacit_crypto::text::counted;
use tacit_crypto::{Block, Prg};
use tacit_net::{Agreement, Channel, Party};
use tacit_ot::extension::kos::Setup;
use tacit_ot::silent::ferret::LEAST_SECURITY_BITS;
use tacit_ot::silent::ferret::cost::Cost;
use tacit_ot::{BaseOt, CotReceiver, CotSender, Security};

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
    /// Of all sets those that may be named.
    pub(super) fn of<P: Copy>(self, all: &[P], papers: &[P]) -> Vec<P> {
        if self == Sets::Measuring { [all, papers].concat() } else { all.to_vec() }
    }
}

/// The names that a user insists on; nothing by default.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct Choice<'a> {
    /// The protocol; `None` is `auto`.
    pub protocol: Option<&'a str>,
    /// The LPN set of Ferret or Ferret-Uni.
    pub set: Option<&'a str>,
    /// The code of silent OT.
    pub code: Option<&'a str>,
    /// Which LPN sets may be named at all.
    pub sets: Sets,
}

/// What a setup starts from.
pub struct Start<'a> {
    /// Over which the base OTs run.
    pub channel: &'a mut Channel,
    /// The base OT.
    pub base: &'a dyn BaseOt,
    /// Where randomness comes from.
    pub prg: &'a mut Prg,
}

/// An OT extension with its parameters settled.
pub trait Extension: Debug + Send + Sync {
    /// Senders of one setup, with the same Δ, one for each of `streams` channels; the base OTs run over the
    /// channel that is given.
    fn senders(&self, at: Start<'_>, streams: usize) -> tacit_ot::Result<Vec<AnySender>>;

    /// The counterpart of [`senders`](Self::senders).
    fn receivers(&self, at: Start<'_>, streams: usize) -> tacit_ot::Result<Vec<AnyReceiver>>;

    /// One sender for few OTs, set up in few messages rather than few bytes, as far as that goes without
    /// waiting.
    fn begin_sender(&self, at: Start<'_>) -> tacit_ot::Result<Setup<AnySender>> {
        let sender = self.senders(at, 1)?.remove(0);
        Ok(Box::new(move |_| Ok(sender)))
    }

    /// The counterpart of [`begin_sender`](Self::begin_sender).
    fn begin_receiver(&self, at: Start<'_>) -> tacit_ot::Result<Setup<AnyReceiver>> {
        let receiver = self.receivers(at, 1)?.remove(0);
        Ok(Box::new(move |_| Ok(receiver)))
    }

    /// What it protects against; `None` for an LPN set that protects against nobody.
    fn protects(&self) -> Option<Security>;

    /// Bytes that a stream's state takes at most, whatever it makes, beside what each OT of a piece takes.
    fn held(&self) -> u64 {
        0
    }

    /// Bits of security against computing: fewer for an LPN set that protects against nobody.
    fn security_bits(&self) -> u32 {
        128
    }

    /// The parameters in one word; empty where there are none to choose.
    fn variant(&self) -> String {
        String::new()
    }

    /// The agreement with the parameters that both parties must say alike.
    fn terms(&self, agreement: Agreement) -> Agreement {
        agreement
    }

    /// What one of `streams` streams costs for `share` OTs on a core with `cache` bytes of cache, chosen OT
    /// apart.
    fn work(&self, share: u64, streams: usize, kind: Kind, cache: usize) -> Work;

    /// The same with what `most` OTs a stream need made ahead; `None` where a protocol cannot.
    fn up_front(&self, _most: u64) -> Option<Arc<dyn Extension>> {
        None
    }
}

/// What a run costs beside the base OTs, on the reference machine.
pub struct Work {
    /// One party's computing for all of its OTs, in nanoseconds: what goes by AES.
    pub aes: f64,
    /// And by products in GF(2^128).
    pub multiply_add: f64,
    /// And waiting for memory.
    pub gather: f64,
    /// The part of all this during which no bytes pass.
    pub alone: f64,
    /// Bytes that pass while the parties compute.
    pub streamed: f64,
    /// Bytes that they wait for.
    pub awaited: f64,
    /// Round trips waited for.
    pub trips: f64,
}

impl Work {
    /// That of a protocol whose computing waits for memory by the part `gathers`.
    pub(super) fn silent(cost: Cost, gathers: f64) -> Work {
        Work {
            aes: cost.ns * (1.0 - gathers),
            multiply_add: 0.0,
            gather: cost.ns * gathers,
            alone: cost.alone,
            streamed: cost.streamed,
            awaited: cost.awaited,
            trips: cost.trips,
        }
    }
}

/// Of the time of silent protocols, the share that waits for memory; the rest is AES.
pub(super) const GATHERS: f64 = 0.6;

/// What a family of parameters has in common: an OT extension before they are settled.
#[derive(Debug)]
pub struct Family {
    /// OTs that one thread makes at a time: the memory a run needs, and how often a link's delay is waited
    /// for.
    pub piece: usize,
    /// A request takes one stream for this many OTs or part of them; with 0, every channel.
    pub stream: u64,
    /// Bytes that a party works with for each OT of a piece, beside the results.
    pub working: u64,
    /// Whether a setup takes the same time for any number of streams.
    pub shares_setup: bool,
    /// What random OT adds to correlated OT for each, in ns: the part that does not hide behind the rest.
    pub hashing_ns: f64,
    /// The names of its LPN sets, and their bits of security.
    pub sets: fn(Sets) -> Vec<(&'static str, u32)>,
    /// The names of its codes.
    pub codes: &'static [&'static str],
    /// What makes so many OTs a stream soonest in a fast network, of what is left open.
    pub soonest: fn(u64, Security, &Choice<'_>) -> Arc<dyn Extension>,
    /// Everything that is left open, given how many OTs a stream makes.
    pub ways: fn(u64, Security, &Choice<'_>) -> Vec<Arc<dyn Extension>>,
}

impl Family {
    /// A family without parameters, by what makes its only member.
    pub(super) const fn plain(
        soonest: fn(u64, Security, &Choice<'_>) -> Arc<dyn Extension>,
        ways: fn(u64, Security, &Choice<'_>) -> Vec<Arc<dyn Extension>>,
    ) -> Family {
        Family {
            piece: PIECE,
            stream: 0,
            working: 16,
            shares_setup: true,
            hashing_ns: 4.0,
            sets: |_| Vec::new(),
            codes: &[],
            soonest,
            ways,
        }
    }
}

/// OTs that a thread makes at a time, and messages of chosen OT that go together.
pub(super) const PIECE: usize = 1 << 20;
pub(super) const CHOSEN_PIECE: u64 = 1 << 18;
/// Chosen from random OT, each.
const CHOSEN_NS: f64 = 9.0;
/// Round trips of the base OTs.
const SETUP_TRIPS: f64 = 0.6;

/// A protocol with its parameters: what both parties run in the end.
#[derive(Clone, Debug)]
pub struct Pick {
    /// The protocol.
    pub protocol: &'static Entry,
    family: &'static Family,
    parameters: Arc<dyn Extension>,
}

/// Every OT extension that a run can name.
pub fn extensions() -> impl Iterator<Item = &'static Entry> {
    ENTRIES.iter().copied().filter(|entry| entry.family().is_some())
}

/// The names of OT extensions that a user may give.
pub fn names() -> Vec<&'static str> {
    std::iter::once("auto").chain(extensions().map(|protocol| protocol.name)).collect()
}

/// The OT extension of that name; `auto` is the one that computes least and gives `security`.
///
/// An error if there is none, or if it does not protect as much as asked.
pub fn protocol(name: &str, security: Security) -> Result<&'static Entry> {
    let enough = |entry: &Entry| security == Security::SemiHonest || entry.security == Security::Malicious;
    let found = match name {
        "auto" => extensions().find(|entry| enough(entry)),
        name => extensions().find(|entry| entry.name == name),
    };
    let refuse = |what| Err(Error::Parameter { name: "protocol", what });
    match found {
        Some(entry) if enough(entry) => Ok(entry),
        Some(_) => refuse(format!(
            "{name} protects against a semi-honest peer only; ask for semi-honest security or choose {}",
            protocol("auto", security)?.name
        )),
        None => refuse(format!("there is no OT protocol `{name}`; {}", one_of(name, names()))),
    }
}

impl Entry {
    /// Whether the protocol has LPN sets to choose from, which follow the size and the link.
    pub fn has_sets(&self) -> bool {
        self.family().is_some_and(|family| !(family.sets)(Sets::Session).is_empty())
    }

    fn family(&self) -> Option<&'static Family> {
        match self.runs {
            Runs::Extension(family) => family,
            _ => None,
        }
    }

    fn with(&'static self, parameters: Arc<dyn Extension>) -> Option<Pick> {
        Some(Pick { protocol: self, family: self.family()?, parameters })
    }

    /// This OT extension with the parameters that make `count` OTs a stream soonest in a fast network;
    /// `choice` says which of them are settled.
    ///
    /// An error if it names what this protocol has not, or if this is no OT extension.
    pub fn pick(&'static self, count: u64, security: Security, choice: &Choice<'_>) -> Result<Pick> {
        check(self, choice)?;
        let pick = self.family().and_then(|family| self.with((family.soonest)(count, security, choice)));
        pick.ok_or_else(|| Error::Usage(format!("{} makes no OTs by itself", self.name)))
    }

    /// Every way of running this OT extension that `choice` leaves open.
    pub(crate) fn ways(&'static self, count: u64, security: Security, choice: &Choice<'_>) -> Vec<Pick> {
        let all = self.family().map(|family| (family.ways)(count, security, choice)).unwrap_or_default();
        all.into_iter().filter_map(|parameters| self.with(parameters)).collect()
    }
}

/// An error if `choice` names a set or a code that `protocol` has not; [`Choice::protocol`] does not
/// count.
pub fn check(protocol: &Entry, choice: &Choice<'_>) -> Result<()> {
    check_names(&[protocol], choice)
}

/// An error if `choice` names a set or a code that none of `protocols` has.
pub(crate) fn check_names(protocols: &[&Entry], choice: &Choice<'_>) -> Result<()> {
    let refuse = |name, what| Err(Error::Parameter { name, what });
    let families = || protocols.iter().filter_map(|entry| entry.family());
    let having = |has: fn(&Family) -> bool| {
        let of = |entry: &&Entry| entry.family().is_some_and(has);
        extensions().filter(of).map(|entry| entry.name).collect::<Vec<_>>().join(" or ")
    };
    if let Some(name) = choice.set {
        if families().all(|family| (family.sets)(Sets::Measuring).is_empty()) {
            let what = format!("goes with protocol {}", having(|f| !(f.sets)(Sets::Session).is_empty()));
            return refuse("set", what);
        }
        if !families().any(|family| (family.sets)(choice.sets).iter().any(|(set, _)| *set == name)) {
            return refuse("set", no_set(protocols, choice.sets, name));
        }
    }
    if let Some(name) = choice.code {
        if families().all(|family| family.codes.is_empty()) {
            return refuse("code", format!("goes with protocol {}", having(|f| !f.codes.is_empty())));
        }
        if !families().any(|family| family.codes.contains(&name)) {
            let known: Vec<_> = families().flat_map(|family| family.codes).copied().collect();
            return refuse("code", format!("there is no code `{name}`; {}", one_of(name, known)));
        }
    }
    Ok(())
}

/// That no LPN set of `protocols` is called `name`, or that a session must not use it.
fn no_set(protocols: &[&Entry], sets: Sets, name: &str) -> String {
    let of = |entry: &&Entry, sets| entry.family().map(|f| (f.sets)(sets)).unwrap_or_default();
    let mut known = Vec::new();
    for entry in protocols {
        let names: Vec<_> = of(entry, sets).into_iter().map(|(set, _)| set).collect();
        if !names.is_empty() {
            known.push(format!("{} has {}", entry.name, names.join(", ")));
        }
    }
    let known = known.join("; ");
    let found = protocols.iter().flat_map(|e| of(e, Sets::Measuring)).find(|(set, _)| *set == name);
    match found.filter(|(_, bits)| *bits < LEAST_SECURITY_BITS) {
        Some((_, bits)) => {
            format!(
                "the LPN set `{name}` has {bits} of security and is for `tacit bench` alone; {known}",
                bits = counted(bits, "bit")
            )
        }
        None => {
            let names: Vec<_> = protocols.iter().flat_map(|e| of(e, sets)).map(|(set, _)| set).collect();
            let near = nearest(name, names).map(|near| format!("did you mean `{near}`? "));
            format!("there is no LPN set `{name}`; {}{known}", near.unwrap_or_default())
        }
    }
}

impl Pick {
    /// What was made ahead and is opened from its file: nothing to set up, under the name of what opens it.
    pub(crate) fn ready(protocol: &'static Entry) -> Pick {
        Pick { protocol, family: &READY_FAMILY, parameters: Arc::new(Ready) }
    }

    /// How many of `channels` channels a request of `count` OTs uses, one stream each: where a stream costs
    /// much beside its OTs, as with silent OT, which has trees of its own for each, a small request takes
    /// few.
    pub fn streams(&self, count: u64, channels: usize) -> usize {
        match self.family.stream {
            0 => channels,
            each => channels.min(count.div_ceil(each).max(1) as usize),
        }
    }

    /// How many of `count` OTs each of `streams` makes at a time.
    pub fn piece(&self, count: u64, streams: usize) -> usize {
        count.div_ceil(streams.max(1) as u64).min(self.family.piece as u64) as usize
    }

    /// Bytes that a stream's state takes whatever it makes: see [`Extension::held`].
    pub fn held(&self) -> u64 {
        self.parameters.held()
    }

    /// Bytes that a party works with for each OT of a piece, beside the results.
    pub fn working(&self) -> u64 {
        self.family.working
    }

    /// Whether a setup takes the same time for any number of streams.
    pub fn shares_setup(&self) -> bool {
        self.family.shares_setup
    }

    /// `streams` senders of one setup, with the same Δ, one for each channel; the base OTs run over
    /// `channel`.
    pub fn senders(
        &self,
        channel: &mut Channel,
        base: &dyn BaseOt,
        prg: &mut Prg,
        streams: usize,
    ) -> Result<Vec<AnySender>> {
        Ok(self.parameters.senders(Start { channel, base, prg }, streams)?)
    }

    /// `streams` senders and as many receivers, as [`senders`](Self::senders) and [`receivers`](Self::receivers) set
    /// them up; the party that listens sends first.
    pub(crate) fn both_ways(
        &self,
        channel: &mut Channel,
        base: &dyn BaseOt,
        prg: &mut Prg,
        streams: usize,
    ) -> Result<(Vec<AnySender>, Vec<AnyReceiver>)> {
        Ok(match channel.party() {
            Party::First => {
                let senders = self.senders(channel, base, prg, streams)?;
                (senders, self.receivers(channel, base, prg, streams)?)
            }
            Party::Second => {
                let receivers = self.receivers(channel, base, prg, streams)?;
                (self.senders(channel, base, prg, streams)?, receivers)
            }
        })
    }

    /// As [`both_ways`](Self::both_ways), one of each.
    pub(crate) fn each_way(
        &self,
        channel: &mut Channel,
        base: &dyn BaseOt,
        prg: &mut Prg,
    ) -> Result<(AnySender, AnyReceiver)> {
        let (senders, receivers) = self.both_ways(channel, base, prg, 1)?;
        let streams = senders.into_iter().next().zip(receivers.into_iter().next());
        streams.ok_or_else(|| Error::Other("no stream was made".into()))
    }

    /// `streams` receivers of one setup, one for each channel; the base OTs run over `channel`.
    pub fn receivers(
        &self,
        channel: &mut Channel,
        base: &dyn BaseOt,
        prg: &mut Prg,
        streams: usize,
    ) -> Result<Vec<AnyReceiver>> {
        Ok(self.parameters.receivers(Start { channel, base, prg }, streams)?)
    }

    /// The protocol with its parameters, as it runs.
    pub fn extension(&self) -> &dyn Extension {
        &*self.parameters
    }

    /// The same with what `most` OTs a stream need made ahead; `None` where the protocol cannot.
    pub(crate) fn up_front(&self, most: u64) -> Option<Pick> {
        Some(Pick { parameters: self.parameters.up_front(most)?, ..*self })
    }

    /// What `count` OTs of `kind` by `threads` threads cost; `security` is what was asked for.
    pub(crate) fn predict(
        &self,
        (count, kind, security, threads): (u64, Kind, Security, usize),
        link: &Link,
        machine: &Machine,
    ) -> Candidate {
        let streams = self.streams(count, threads.max(1));
        let share = count.div_ceil(streams as u64);
        let mut work = self.parameters.work(share, streams, kind, machine.cache);
        if kind != Kind::Cot {
            work.aes += share as f64 * self.family.hashing_ns;
        }
        if kind == Kind::Ot {
            // The receiver sends a bit, the sender both messages under their pads.
            work.aes += share as f64 * CHOSEN_NS;
            work.streamed += share as f64 * 32.125;
            work.trips += share.div_ceil(CHOSEN_PIECE) as f64;
        }
        let reference = Machine::REFERENCE;
        let compute = work.aes * machine.aes / reference.aes
            + work.multiply_add * machine.multiply_add / reference.multiply_add
            + work.gather * machine.gather / reference.gather;
        let streams = streams as f64;
        let rounds = SETUP_TRIPS + work.trips;
        // Streamed bytes pass while both compute, but for what is computed alone, so the longer of the two
        // counts; all threads' bytes share the link.
        let alone = work.alone * machine.aes / reference.aes;
        let nanoseconds = SETUP_POINTS * machine.point
            + alone
            + (compute - alone).max(link.pass(work.streamed * streams))
            + link.pass(work.awaited * streams)
            + link.pass(SETUP_BYTES)
            + link.wait(rounds);
        let bytes = ((work.streamed + work.awaited) * streams + SETUP_BYTES) as u64;
        let security = self.parameters.protects().unwrap_or(security);
        let variant = self.parameters.variant();
        let candidate = self.protocol.candidate(security, nanoseconds, bytes, rounds.ceil() as u64);
        Candidate { variant, ..candidate }
    }
}

/// Correlations that were made ahead, which the caller opens.
#[derive(Debug)]
struct Ready;

static READY_FAMILY: Family = Family::plain(|_, _, _| Arc::new(Ready), |_, _, _| Vec::new());

const READY: Entry = Entry {
    name: "pool",
    security: Security::Malicious,
    assumptions: &[],
    needs_base_ot: false,
    instead: "",
    note: "",
    floor: floor::unknown,
    runs: Runs::Extension(None),
};

/// Correlations of a pool.
pub(crate) static POOL: Entry = READY;

/// Correlations from a dealer's seed.
pub(crate) static DEALT: Entry = Entry { name: "dealt", ..READY };

const NO_SETUP: tacit_ot::Error = tacit_ot::Error::Usage {
    protocol: "pool",
    what: "what was made ahead is opened from its file, not set up",
};

impl Extension for Ready {
    fn senders(&self, _: Start<'_>, _: usize) -> tacit_ot::Result<Vec<AnySender>> {
        Err(NO_SETUP)
    }

    fn receivers(&self, _: Start<'_>, _: usize) -> tacit_ot::Result<Vec<AnyReceiver>> {
        Err(NO_SETUP)
    }

    fn protects(&self) -> Option<Security> {
        Some(Security::Malicious)
    }

    fn work(&self, _: u64, _: usize, _: Kind, _: usize) -> Work {
        Work { aes: 0.0, multiply_add: 0.0, gather: 0.0, alone: 0.0, streamed: 0.0, awaited: 0.0, trips: 0.0 }
    }
}

/// The agreement with a level of security beside its other parameters.
pub(super) fn with_security(agreement: Agreement, security: Security) -> Agreement {
    agreement.with("security", security_name(security))
}
