//! The planner: what each protocol that could serve would cost on a link, and which is the fastest.
//!
//! A prediction adds what a run computes, from the machine's measured rates, to what the link takes: bytes at its rate,
//! which pass while the parties compute, and a delay for every message that must be waited for. The weights are those
//! of the implementation, fitted on one machine; rates carry them to
//! another. A protocol without a model here is never picked.

mod eval;

pub use eval::{EvalCandidate, EvalRequest, eval};

use crate::limits::{self, Limit};
use crate::ot::{self, Kind, PROTOCOLS, Protocol, Sets, Tuning};
use crate::{Result, assumptions, security_name};
use std::fmt;
use std::time::Duration;
use tacit_net::{Channel, LinkModel, Party};
use tacit_ot::Security;
use tacit_ot::extension::{iknp, kos, oos};
use tacit_ot::silent::bcgikrs19::{Code, Config as SilentConfig, LARGEST_RUN};
use tacit_ot::silent::ferret::cost::{CACHE, Cost};
use tacit_ot::silent::ferret::{Config as FerretConfig, Lanes, Params as FerretParams};
use tacit_ot::silent::ferret::{UniConfig, UniParams};

/// What the planner must know of a link.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Link {
    /// Millions of bits a second in each direction, above zero.
    pub megabits: f64,
    /// From one side to the other and back.
    pub round_trip: Duration,
}

impl From<LinkModel> for Link {
    /// An unshaped link counts as loopback: 20 Gbit/s and 30 µs.
    fn from(model: LinkModel) -> Self {
        Link {
            megabits: model.megabits().min(20_000.0),
            round_trip: (model.delay() * 2).max(Duration::from_micros(30)),
        }
    }
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.0} Mbit/s, round trip {:.2} ms", self.megabits, self.round_trip.as_secs_f64() * 1e3)
    }
}

/// The rates of a machine that predictions rest on, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Machine {
    /// AES of a block under a fixed key.
    pub aes: f64,
    /// A product in GF(2^128) added to a sum.
    pub multiply_add: f64,
    /// A block read at random from a table of a mebibyte.
    pub gather: f64,
    /// A Ristretto point times a scalar.
    pub point: f64,
    /// Bytes of a core's second-level cache.
    pub cache: usize,
}

impl Machine {
    /// The machine that the weights were fitted on: AMD Zen 4 with AVX-512.
    pub const REFERENCE: Machine =
        Machine { aes: 0.6, multiply_add: 0.6, gather: 1.15, point: 7_000.0, cache: CACHE };

    /// Measures this machine; takes some ten milliseconds.
    pub fn measure() -> Machine {
        Machine {
            aes: Limit::AesFixed.rough(),
            multiply_add: Limit::MultiplyAdd.rough(),
            gather: Limit::Gather(1 << 20).rough(),
            point: Limit::PointMultiply.rough(),
            cache: limits::second_level_cache().unwrap_or(CACHE),
        }
    }
}

/// What is asked for.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Request<'a> {
    /// How many OTs.
    pub count: u64,
    /// Of which kind.
    pub kind: Kind,
    /// Against which peer at least.
    pub security: Security,
    /// Computing threads of each party.
    pub threads: usize,
    /// The protocol and its parameters, as far as they are settled already.
    pub choice: Choice<'a>,
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

/// A protocol that could serve, and what it would cost.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The protocol's short name.
    pub protocol: &'static str,
    /// Its parameters in one word; empty where it has none to choose.
    pub variant: String,
    /// What it protects against.
    pub security: Security,
    /// Setup and run together.
    pub time: Duration,
    /// In both directions together.
    pub bytes: u64,
    /// Times that a party waits for the other.
    pub rounds: u64,
    /// What its security rests on.
    pub assumptions: Vec<&'static str>,
}

/// A protocol with its parameters: what both parties run in the end.
#[derive(Clone, Copy, Debug)]
pub struct Pick {
    /// The protocol.
    pub protocol: &'static Protocol,
    /// Its parameters.
    pub tuning: Tuning,
}

/// What a run costs beside the base OTs, on the reference machine.
struct Work {
    /// Computing of one party for all of its OTs, in nanoseconds, by what it consists of.
    aes: f64,
    multiply_add: f64,
    gather: f64,
    /// What of it no byte passes with.
    alone: f64,
    /// Bytes that pass while the parties compute, and bytes that they wait for.
    streamed: f64,
    awaited: f64,
    /// Round trips waited for.
    trips: f64,
}

/// Points of 127 base OTs on the slower side, both sides' shares in turn, and their bytes: a point, and 80 each.
const SETUP_POINTS: f64 = 420.0;
const SETUP_BYTES: f64 = 40.0 + 127.0 * 80.0;
/// Round trips of the base OTs.
const SETUP_TRIPS: f64 = 0.6;
/// OTs that a thread makes at a time, and messages of chosen OT that go together.
const PIECE: u64 = 1 << 20;
const CHOSEN_PIECE: u64 = 1 << 18;

/// What IKNP and KOS compute for one correlated OT, in ns on the reference machine.
const IKNP_NS: f64 = 8.3;
const KOS_NS: f64 = 9.8;
const KOS_CHECK_NS: f64 = 1.5;
/// A run of silent OT, and each of its OTs, in ns.
const SILENT_RUN_NS: f64 = 1.0e6;
const SILENT_LINEAR_NS: f64 = 52.0;
const SILENT_QUASI_CYCLIC_NS: f64 = 128.0;
/// What the short form adds to each.
const SILENT_SHORT_NS: f64 = 50.0;
/// Of the time of Ferret, the share that waits for memory; the rest is AES.
const FERRET_GATHERS: f64 = 0.6;

/// Every way of running every protocol that gives the security asked for and that `request` does not exclude; at least one.
fn variants(request: &Request<'_>) -> Result<Vec<Pick>> {
    ot::protocol(request.choice.protocol.unwrap_or("auto"), request.security)?;
    let share = request.count.div_ceil(request.threads.max(1) as u64);
    let security = request.security;
    let loopback = LinkModel::LOOPBACK;
    let Choice { set, sets, .. } = request.choice;
    let default = Tuning::choose_among(sets, set, share, security, &loopback)?
        .with_code(request.choice.code, PROTOCOLS.iter().find(|p| p.name == "silent"))?;
    let mut all = Vec::new();
    for protocol in PROTOCOLS {
        let enough = security == Security::SemiHonest || protocol.security == Security::Malicious;
        if !enough || request.choice.protocol.is_some_and(|name| name != protocol.name) {
            continue;
        }
        let mut add = |tuning| all.push(Pick { protocol, tuning });
        match protocol.name {
            "ferret" => {
                let all = if set.is_some() { sets.of_ferret() } else { FerretParams::ALL.to_vec() };
                for params in all.into_iter().filter(|p| set.is_none_or(|set| set == p.name)) {
                    for lanes in [Lanes::One, Lanes::Four] {
                        add(Tuning { ferret: FerretConfig { params, lanes, security }, ..default });
                    }
                }
            }
            "ferret-uni" => {
                // What only the papers' tables need is taken by name alone.
                let all = if set.is_some() { sets.of_ferret_uni() } else { UniParams::ALL.to_vec() };
                for params in all.into_iter().filter(|p| set.is_none_or(|set| set == p.name)) {
                    add(Tuning { ferret_uni: UniConfig { params, security }, ..default });
                }
            }
            "silent" => {
                let wanted = |code: &Code| request.choice.code.is_none_or(|name| name == code.name());
                for code in [Code::Linear, Code::QuasiCyclic].into_iter().filter(wanted) {
                    add(Tuning { silent: SilentConfig { code, security }, ..default });
                }
            }
            _ => add(default),
        }
    }
    match (all.is_empty(), set) {
        (true, Some(set)) => Err(ot::no_set(sets, set, request.choice.protocol)),
        _ => Ok(all),
    }
}

impl Pick {
    /// The parameters in one word; empty where there are none to choose.
    pub fn variant(&self) -> String {
        let Tuning { ferret, ferret_uni, silent, .. } = &self.tuning;
        match self.protocol.name {
            "ferret" => format!("set {}, {} lanes", ferret.params.name, ferret.lanes.count()),
            "ferret-uni" => format!("set {}", ferret_uni.params.name),
            "silent" => format!("code {}", silent.code.name()),
            _ => String::new(),
        }
    }

    /// How many streams the request falls into.
    fn streams(&self, request: &Request<'_>) -> usize {
        self.protocol.streams(request.count, request.threads.max(1))
    }

    /// The work of each of the streams for its share of the OTs; `None` for a protocol without a model.
    fn work(&self, request: &Request<'_>, cache: usize) -> Option<Work> {
        let threads = self.streams(request);
        let share = request.count.div_ceil(threads as u64);
        let n = share as f64;
        let pieces = share.div_ceil(PIECE) as f64;
        let silent = |cost: Cost| Work {
            aes: cost.ns * (1.0 - FERRET_GATHERS),
            multiply_add: 0.0,
            gather: cost.ns * FERRET_GATHERS,
            alone: cost.alone,
            streamed: cost.streamed,
            awaited: cost.awaited,
            trips: cost.trips,
        };
        let extension = |ns: f64, check: f64, bytes: fn(usize) -> u64, trips: f64| Work {
            aes: n * (ns - check),
            multiply_add: n * check,
            gather: 0.0,
            alone: 0.0,
            streamed: (share / PIECE * bytes(PIECE as usize) + bytes((share % PIECE) as usize)) as f64,
            awaited: 0.0,
            trips: trips * pieces,
        };
        let mut work = match self.protocol.name {
            "iknp" => extension(IKNP_NS, 0.0, iknp::bytes, 0.5),
            "kos" => extension(KOS_NS, KOS_CHECK_NS, kos::bytes, 1.5),
            "ferret" => silent(self.tuning.ferret.cost(share, threads, cache)),
            "ferret-uni" => silent(self.tuning.ferret_uni.cost(share, threads, cache)),
            "silent" => silent(dual_lpn(self.tuning.silent, share, request.kind)),
            _ => return None,
        };
        if request.kind != Kind::Cot {
            work.aes += n * hashing_ns(self.protocol.name);
        }
        if request.kind == Kind::Ot {
            // The receiver sends a bit, the sender both messages under their pads.
            work.aes += n * CHOSEN_NS;
            work.streamed += n * 32.125;
            work.trips += share.div_ceil(CHOSEN_PIECE) as f64;
        }
        Some(work)
    }

    fn predict(&self, request: &Request<'_>, link: &Link, machine: &Machine) -> Option<Candidate> {
        let work = self.work(request, machine.cache)?;
        let threads = self.streams(request) as f64;
        let reference = Machine::REFERENCE;
        let compute = work.aes * machine.aes / reference.aes
            + work.multiply_add * machine.multiply_add / reference.multiply_add
            + work.gather * machine.gather / reference.gather;
        // All threads' bytes share the link.
        let pass = |bytes: f64| bytes * threads * 8e3 / link.megabits;
        let rounds = SETUP_TRIPS + work.trips;
        // Streamed bytes pass while both compute, but for what is computed alone, so the longer of the two counts.
        let alone = work.alone * machine.aes / reference.aes;
        let nanoseconds = SETUP_POINTS * machine.point
            + alone
            + (compute - alone).max(pass(work.streamed))
            + pass(work.awaited)
            + SETUP_BYTES * 8e3 / link.megabits
            + rounds * link.round_trip.as_secs_f64() * 1e9;
        Some(Candidate {
            protocol: self.protocol.name,
            variant: self.variant(),
            security: match self.protocol.name {
                // They leave their checks out where nobody asks for them.
                "ferret" | "ferret-uni" | "silent" => request.security,
                _ => self.protocol.security,
            },
            time: Duration::from_secs_f64((nanoseconds / 1e9).min(1e15)),
            bytes: ((work.streamed + work.awaited) * threads + SETUP_BYTES) as u64,
            rounds: rounds.ceil() as u64,
            assumptions: names(self.protocol.name),
        })
    }
}

/// Silent OT by dual LPN: a run for each request of at most 2^24, each with base correlations of its own.
fn dual_lpn(config: SilentConfig, share: u64, kind: Kind) -> Cost {
    let largest = if kind == Kind::Ot { CHOSEN_PIECE } else { LARGEST_RUN as u64 };
    let runs = share.div_ceil(largest.max(1)).max(1) as f64;
    let each = share.min(largest);
    let cots = config.base_cots(each as usize);
    let mut cost = Cost::of_source(cots as f64, config.security);
    let extension = if config.security == Security::Malicious { kos::bytes_by_hash } else { iknp::bytes };
    cost.awaited = extension(cots) as f64 + config.bytes(each as usize) as f64;
    let short = config.is_short(each as usize);
    let code_ns = match config.code {
        Code::Linear => SILENT_LINEAR_NS,
        Code::QuasiCyclic => SILENT_QUASI_CYCLIC_NS,
    };
    let short_ns = if short { SILENT_SHORT_NS } else { 0.0 };
    cost.ns += SILENT_RUN_NS + each.max(1 << 14) as f64 * (code_ns + short_ns);
    let opened = config.security == Security::Malicious && !short;
    cost.trips += if opened { 1.4 } else { 0.4 };
    // Along with the base OTs, the parties exchange parameters and commitments to seeds, which the first run
    // opens.
    let awaited = runs * cost.awaited + 160.0;
    Cost { ns: runs * cost.ns, awaited, trips: runs * cost.trips, ..cost }
}

/// Random from correlated OT, for each: the part that does not hide behind the rest.
fn hashing_ns(protocol: &str) -> f64 {
    match protocol {
        "iknp" => 2.5,
        _ => 4.0,
    }
}
/// Chosen from random OT.
const CHOSEN_NS: f64 = 9.0;

/// Every OT extension that gives at least the security asked for, each with its best parameters, the fastest first.
///
/// An error if `request` names what there is not.
pub fn ot(request: &Request<'_>, link: &Link, machine: &Machine) -> Result<Vec<Candidate>> {
    let mut candidates: Vec<Candidate> =
        variants(request)?.iter().filter_map(|v| v.predict(request, link, machine)).collect();
    candidates.sort_by(|a, b| a.time.cmp(&b.time).then(a.bytes.cmp(&b.bytes)));
    let mut seen = Vec::new();
    candidates.retain(|c| {
        let new = !seen.contains(&c.protocol);
        seen.push(c.protocol);
        new
    });
    Ok(candidates)
}

/// The fastest way to serve `request`. Both parties come to the same only if they give the same link and machine: see [`agree`].
pub fn pick(request: &Request<'_>, link: &Link, machine: &Machine) -> Result<Pick> {
    Ok(*fastest(&variants(request)?, request, link, machine))
}

/// Of `all`, which are not none, the fastest; a protocol without a model only where there is no other.
fn fastest<'a>(all: &'a [Pick], request: &Request<'_>, link: &Link, machine: &Machine) -> &'a Pick {
    let timed = all.iter().filter_map(|v| Some((v.predict(request, link, machine)?.time, v)));
    timed.reduce(|best, next| if next.0 < best.0 { next } else { best }).map_or(&all[0], |(_, best)| best)
}

/// The intersection of two sets of `count` elements each, by every protocol that there is and gives at least `security`, the fastest
/// first.
///
/// An error if the sets are larger than any protocol takes.
pub fn psi(count: u64, security: Security, link: &Link, machine: &Machine) -> Result<Vec<Candidate>> {
    let enough = match security {
        Security::Malicious => &[Security::Malicious][..],
        Security::SemiHonest => &[Security::SemiHonest, Security::Malicious],
    };
    enough.iter().map(|&security| paxos(count, security, link, machine)).collect()
}

fn paxos(count: u64, security: Security, link: &Link, machine: &Machine) -> Result<Candidate> {
    use tacit_psi::paxos::{CHUNK, NAME, Parameters};
    // Fitted at 2^20 on the reference machine: 1.74 s and 1.47 s, over loopback.
    let aes = match security {
        Security::Malicious => 2_900.0,
        Security::SemiHonest => 2_450.0,
    };
    let elements = usize::try_from(count).unwrap_or(usize::MAX);
    let parameters = Parameters::new(elements, elements, security)?;
    let (slots, length) = (parameters.shape().slots(), parameters.code_length());
    let n = count as f64;
    // Each chunk of the store waits once for its check.
    let trips = 6.0 + slots.div_ceil(CHUNK) as f64;
    // The seeds of the code's columns come of KOS.
    let store = oos::bytes(slots, length, parameters.code_dimension()) + kos::bytes(length);
    let bytes = SETUP_BYTES + store as f64 + n * parameters.tag_bytes() as f64;
    // The steps follow one another: transfer and computing add.
    let nanoseconds = n * aes * machine.aes
        + bytes * 8e3 / link.megabits
        + trips * link.round_trip.as_secs_f64() * 1e9
        + 2.0 * SETUP_POINTS * machine.point;
    Ok(Candidate {
        protocol: NAME,
        variant: String::new(),
        security,
        time: Duration::from_secs_f64((nanoseconds / 1e9).min(1e15)),
        bytes: bytes as u64,
        rounds: trips as u64,
        assumptions: names(NAME),
    })
}

/// The intersection of two sets of `count` elements each by VOLE-PSI. An error if the sets are larger than it takes.
pub fn vole_psi(count: u64, security: Security, link: &Link, machine: &Machine) -> Result<Candidate> {
    use tacit_ot::vole::gf128;
    use tacit_psi::okvs::Store;
    use tacit_psi::vole_psi::{NAME, Parameters};
    // Fitted at 2^20 on the reference machine: 0.33 s, over loopback.
    const ELEMENT_AES: f64 = 530.0;
    // What the noise costs whatever the sets' sizes: 25 ms at 2^16, less what its elements take.
    const NOISE_AES: f64 = 1e7;
    let elements = usize::try_from(count).unwrap_or(usize::MAX);
    let parameters = Parameters::new(elements, elements, security)?;
    let slots = parameters.shape().slots();
    let extension = if security == Security::Malicious { kos::bytes_by_hash } else { iknp::bytes };
    let base: u64 = gf128::base_cots(slots, security).map(extension).sum();
    let store = gf128::bytes(slots, security) + 16 * slots + parameters.tags_bytes();
    let bytes = SETUP_BYTES + base as f64 + store as f64;
    let trips = 4.0 + 3.0 * slots.div_ceil(gf128::run_size(slots)) as f64;
    // The steps follow one another: transfer and computing add.
    let nanoseconds = (count as f64 * ELEMENT_AES + NOISE_AES) * machine.aes
        + bytes * 8e3 / link.megabits
        + trips * link.round_trip.as_secs_f64() * 1e9
        + 2.0 * SETUP_POINTS * machine.point;
    Ok(Candidate {
        protocol: NAME,
        variant: String::new(),
        security,
        time: Duration::from_secs_f64((nanoseconds / 1e9).min(1e15)),
        bytes: bytes as u64,
        rounds: trips as u64,
        assumptions: names(NAME),
    })
}

/// Queries of `count` keys to a published file of tags, whatever its size.
pub fn oprf(count: u64, link: &Link, machine: &Machine) -> Candidate {
    // A blinded point there and an evaluated one back, and one proof for all.
    const QUERY_BYTES: f64 = 64.0;
    const FIXED_BYTES: f64 = 400.0;
    // Of both sides, one after the other: hashing to the group, blinding, evaluating, unblinding, and the proof.
    const QUERY_POINTS: f64 = 8.0;
    const QUERY_TRIPS: u64 = 2;
    let bytes = FIXED_BYTES + count as f64 * QUERY_BYTES;
    let nanoseconds = count as f64 * QUERY_POINTS * machine.point
        + bytes * 8e3 / link.megabits
        + QUERY_TRIPS as f64 * link.round_trip.as_secs_f64() * 1e9;
    Candidate {
        protocol: tacit_psi::oprf::NAME,
        variant: String::new(),
        security: Security::Malicious,
        time: Duration::from_secs_f64((nanoseconds / 1e9).min(1e15)),
        bytes: bytes as u64,
        rounds: QUERY_TRIPS,
        assumptions: names(tacit_psi::oprf::NAME),
    }
}

/// A number over the common keys of two sets of `count` each: [`vole_psi`] and what circuit PSI does beside it.
/// An error if the sets are larger than it takes.
pub fn circuit_psi(count: u64, link: &Link, machine: &Machine) -> Result<Candidate> {
    // A sum at 2^16 on the reference machine over loopback: 0.24 s and 15.8 MB; at 2^20 4.3 s and 217 MB.
    const COUNTED_AES: f64 = 6_000.0;
    const COUNTED_BYTES: f64 = 205.0;
    const COUNTING_TRIPS: u64 = 12;
    let oblivious = vole_psi(count, Security::SemiHonest, link, machine)?;
    let bytes = count as f64 * COUNTED_BYTES;
    let nanoseconds = count as f64 * COUNTED_AES * machine.aes
        + bytes * 8e3 / link.megabits
        + COUNTING_TRIPS as f64 * link.round_trip.as_secs_f64() * 1e9;
    Ok(Candidate {
        time: oblivious.time + Duration::from_secs_f64((nanoseconds / 1e9).min(1e15)),
        bytes: oblivious.bytes + bytes as u64,
        rounds: oblivious.rounds + COUNTING_TRIPS,
        ..oblivious
    })
}

/// What the protocol called `name` rests on, by its own declaration.
pub fn names(name: &str) -> Vec<&'static str> {
    let declarations = assumptions::declarations();
    let found = declarations.into_iter().find(|declaration| declaration.name == name);
    found.map_or_else(Vec::new, |d| d.assumptions.iter().map(|a| a.name()).collect())
}

/// Links of every kind.
fn every_link() -> impl Iterator<Item = Link> {
    [1.0, 10.0, 100.0, 1e3, 1e4].into_iter().flat_map(|megabits| {
        [0.03, 1.0, 10.0, 80.0, 300.0]
            .map(|ms| Link { megabits, round_trip: Duration::from_secs_f64(ms / 1e3) })
    })
}

/// What measuring `link` costs: a connection of its own, some round trips and some bytes.
fn probing(link: &Link) -> f64 {
    const TRIPS: f64 = 7.0;
    const BYTES: f64 = 131_072.0;
    TRIPS * link.round_trip.as_secs_f64() + BYTES * 8e-6 / link.megabits
}

/// What serves well enough wherever it is run: nothing that could be had by measuring the link is worth the measuring.
///
/// Both parties come to the same answer without a message.
fn on_any_link(request: &Request<'_>) -> Result<Option<Pick>> {
    let all = variants(request)?;
    let seconds = |v: &Pick, link: &Link| {
        v.predict(request, link, &Machine::REFERENCE).map_or(f64::INFINITY, |c| c.time.as_secs_f64())
    };
    let mut losses = vec![f64::NEG_INFINITY; all.len()];
    for link in every_link() {
        let times: Vec<f64> = all.iter().map(|v| seconds(v, &link)).collect();
        let best = times.iter().copied().fold(f64::INFINITY, f64::min);
        for (loss, time) in losses.iter_mut().zip(&times) {
            *loss = loss.max(time - best - probing(&link));
        }
    }
    let settled = losses.iter().zip(&all).filter(|(loss, _)| **loss <= 0.0);
    let least = settled.reduce(|best, next| if next.0 < best.0 { next } else { best });
    Ok(least.map(|(_, pick)| *pick))
}

/// The protocol and the parameters that both parties use for `request`, which they must have in common.
///
/// Where the link decides, `probe` opens a channel to the peer for a moment: the first party measures, picks and says so, and the
/// other refuses what gives less than was asked for. An error if no protocol serves, or the peer names one that does not.
pub fn agree<T>(
    request: &Request<'_>,
    probe: impl FnOnce(&mut dyn FnMut(&mut Channel) -> Result<Pick>) -> Result<T>,
) -> Result<Pick> {
    if let [only] = &variants(request)?[..] {
        return Ok(*only);
    }
    if let Some(pick) = on_any_link(request)? {
        return Ok(pick);
    }
    let mut picked = None;
    probe(&mut |channel| {
        let pick = settle(request, channel)?;
        picked = Some(pick);
        Ok(pick)
    })?;
    picked.ok_or_else(|| crate::Error::Other("no protocol was agreed on; name one by --protocol".into()))
}

/// Measures `channel`; the first party picks.
fn settle(request: &Request<'_>, channel: &mut Channel) -> Result<Pick> {
    let link = measure(channel)?;
    let all = variants(request)?;
    if channel.party() == Party::First {
        let best = fastest(&all, request, &link, &Machine::measure());
        channel.send_sized(best.protocol.name.as_bytes())?;
        channel.send_sized(best.variant().as_bytes())?;
        channel.flush()?;
        return Ok(*best);
    }
    let (protocol, variant) = (channel.recv_sized(64)?, channel.recv_sized(64)?);
    let same = |p: &&Pick| p.protocol.name.as_bytes() == protocol && p.variant().as_bytes() == variant;
    all.iter().find(same).copied().ok_or_else(|| {
        crate::Error::Peer(format!(
            "the peer picked a protocol that is unknown here, was not asked for or does not give {} security; name one by --protocol on both sides",
            security_name(request.security)
        ))
    })
}

/// Measures the link under `channel` for the first party: two round trips, then bytes towards it, more of them as long as they
/// pass too fast to be timed. The second party learns nothing of it.
pub fn measure(channel: &mut Channel) -> Result<Link> {
    const FIRST: usize = 1 << 16;
    const MOST: usize = 1 << 23;
    const ENOUGH: Duration = Duration::from_millis(4);
    let mut piece = vec![0u8; FIRST];
    if channel.party() == Party::Second {
        loop {
            let wanted = channel.recv_u64()?;
            if wanted == 0 {
                return Ok(Link { megabits: f64::INFINITY, round_trip: Duration::ZERO });
            }
            if wanted == 1 {
                channel.send_u64(0)?;
            } else if wanted as usize <= MOST {
                (0..(wanted as usize).div_ceil(FIRST)).try_for_each(|_| channel.send(&piece))?;
            } else {
                return Err(crate::Error::Peer("the peer's measurement asks for too much".into()));
            }
            channel.flush()?;
        }
    }
    let mut round_trip = Duration::MAX;
    for _ in 0..2 {
        let start = std::time::Instant::now();
        channel.send_u64(1)?;
        channel.recv_u64()?;
        round_trip = round_trip.min(start.elapsed());
    }
    let mut bytes = FIRST;
    loop {
        channel.send_u64(bytes as u64)?;
        // From the first byte on, so that the delay does not count.
        channel.recv(&mut piece[..1])?;
        let start = std::time::Instant::now();
        channel.recv(&mut piece[1..])?;
        (1..bytes / FIRST).try_for_each(|_| channel.recv(&mut piece))?;
        let took = start.elapsed();
        if took < ENOUGH && bytes < MOST {
            bytes = (bytes * 8).min(MOST);
            continue;
        }
        channel.send_u64(0)?;
        channel.flush()?;
        let megabits = bytes as f64 * 8.0 / took.as_secs_f64().max(1e-6) / 1e6;
        return Ok(Link { megabits, round_trip });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REFERENCE: Machine = Machine::REFERENCE;

    fn request(security: Security, kind: Kind, count: u64) -> Request<'static> {
        Request { count, kind, security, threads: 1, choice: Choice::default() }
    }

    fn link(megabits: f64, ms: u64) -> Link {
        Link { megabits, round_trip: Duration::from_millis(ms) }
    }

    #[test]
    fn security_is_never_traded_for_speed() {
        for megabits in [1.0, 100.0, 1e4] {
            for count in [0, 1, 1000, 1 << 23, 1 << 40] {
                let strict =
                    ot(&request(Security::Malicious, Kind::Cot, count), &link(megabits, 1), &REFERENCE)
                        .unwrap();
                assert!(!strict.is_empty() && strict.iter().all(|c| c.security == Security::Malicious));
                assert!(strict.windows(2).all(|two| two[0].time <= two[1].time));
            }
        }
        let loose = ot(&request(Security::SemiHonest, Kind::Cot, 1 << 20), &link(1e4, 0), &REFERENCE);
        assert!(loose.unwrap().iter().any(|c| c.security == Security::SemiHonest));
    }

    #[test]
    fn predictions_follow_the_arithmetic_of_the_link() {
        let find = |link: &Link, kind| {
            let all = ot(&request(Security::SemiHonest, kind, 1 << 20), link, &REFERENCE).unwrap();
            all.into_iter().find(|c| c.protocol == "iknp").unwrap()
        };
        // 2^20 OTs of 15.875 bytes at a megabyte a second, after the base OTs.
        let slow = find(&link(8.0, 0), Kind::Cot);
        let seconds =
            ((1u64 << 20) as f64 * 15.875 + SETUP_BYTES) / 1e6 + SETUP_POINTS * REFERENCE.point * 1e-9;
        assert!((slow.time.as_secs_f64() - seconds).abs() < 1e-6, "{slow:?}");
        let far = find(&link(8.0, 100), Kind::Cot);
        assert!(((far.time - slow.time).as_secs_f64() - 0.11).abs() < 1e-6, "{far:?}");
        let chosen = find(&link(8.0, 0), Kind::Ot);
        // The receiver's corrections, and both messages.
        assert_eq!(chosen.bytes, ((1u64 << 20) as f64 * (15.875 + 32.125) + SETUP_BYTES) as u64);
        assert!(slow.assumptions.iter().all(|name| !name.is_empty()) && !slow.assumptions.is_empty());
    }

    #[test]
    fn predicted_bytes_of_an_intersection_are_those_that_are_sent() {
        use tacit_crypto::Prg;
        use tacit_psi::paxos::{Learns, Options};
        use tacit_psi::{paxos, vole_psi};
        for (count, security) in
            [(300, Security::SemiHonest), (20_000, Security::SemiHonest), (20_000, Security::Malicious)]
        {
            let base = ot::base_ot(None, security).unwrap();
            let elements: Vec<[u8; 8]> = (0..count).map(u64::to_le_bytes).collect();
            let side = |vole: bool, learns, channel: &mut Channel| {
                let options = Options { learns, security, max_peer_elements: count, base: &*base };
                let run = if vole { vole_psi::run } else { paxos::run };
                run(channel, &mut Prg::from_os(), &elements, &options, &mut |_, _, _| ()).unwrap();
                channel.flush().unwrap();
                channel.stats().bytes_sent
            };
            let sent = |vole| {
                let (a, b) = tacit_net::memory::run(
                    |channel| side(vole, Learns::Me, channel),
                    |channel| side(vole, Learns::Peer, channel),
                );
                a + b
            };
            let told = super::vole_psi(count, security, &link(100.0, 1), &REFERENCE).unwrap().bytes;
            let off = told as f64 / sent(true) as f64 - 1.0;
            assert!(off.abs() < 0.02, "vole, {count} {security:?}: told {told}, sent {}", sent(true));
            let all = psi(count, security, &link(100.0, 1), &REFERENCE).unwrap();
            let told = all.iter().find(|c| c.security == security).unwrap().bytes;
            let off = told as f64 / sent(false) as f64 - 1.0;
            assert!(off.abs() < 0.02, "{count} {security:?}: told {told}, sent {}", sent(false));
            assert!(all[0].security == security && all.last().unwrap().security == Security::Malicious);
        }
        assert!(psi(1 << 40, Security::Malicious, &link(100.0, 1), &REFERENCE).is_err());
    }

    /// Bytes of both directions for `request` by `pick`, base OTs included.
    fn sent(pick: &Pick, request: &Request<'_>) -> u64 {
        use tacit_crypto::{BitVec, Block, Prg};
        use tacit_ot::convert::{CotToRot, RotToOt};
        use tacit_ot::{CotReceiver, CotSender, OtReceiver, OtSender, RotReceiver, RotSender};
        let base = ot::base_ot(None, request.security).unwrap();
        let n = request.count as usize;
        let send = |channel: &mut Channel| {
            let mut prg = Prg::from_os();
            let mut cot =
                pick.protocol.senders_with(channel, &*base, &mut prg, 1, pick.tuning).unwrap().remove(0);
            let mut pairs = vec![[Block::ZERO; 2]; n];
            match request.kind {
                Kind::Cot => cot.extend(channel, &mut vec![Block::ZERO; n]),
                Kind::Rot => CotToRot::new(cot).extend(channel, &mut pairs),
                Kind::Ot => RotToOt::new(CotToRot::new(cot)).send(channel, &pairs),
            }
            .unwrap();
            channel.flush().unwrap();
        };
        let receive = |channel: &mut Channel| {
            let mut prg = Prg::from_os();
            let mut cot =
                pick.protocol.receivers_with(channel, &*base, &mut prg, 1, pick.tuning).unwrap().remove(0);
            let mut out = vec![Block::ZERO; n];
            match request.kind {
                Kind::Cot => cot.extend(channel, &mut out),
                Kind::Rot => CotToRot::new(cot).extend(channel, &mut out).map(|_| ()),
                Kind::Ot => RotToOt::new(CotToRot::new(cot)).receive(channel, &BitVec::zeros(n), &mut out),
            }
            .unwrap();
            channel.flush().unwrap();
            let stats = channel.stats();
            stats.bytes_sent + stats.bytes_received
        };
        tacit_net::memory::run(send, receive).1
    }

    #[test]
    fn predicted_bytes_are_those_that_are_sent() {
        for (kind, count) in [(Kind::Cot, 1000), (Kind::Rot, 100_000), (Kind::Ot, 300_000)] {
            for security in [Security::SemiHonest, Security::Malicious] {
                let wanted = request(security, kind, count);
                for pick in variants(&wanted).unwrap() {
                    // The larger sets make many millions at a time.
                    let Tuning { ferret, .. } = pick.tuning;
                    let large = pick.protocol.name == "ferret" && !matches!(ferret.params.name, "d" | "e");
                    if large || pick.protocol.name == "ferret-uni" {
                        continue;
                    }
                    let told = pick.predict(&wanted, &link(100.0, 1), &REFERENCE).unwrap().bytes;
                    let sent = sent(&pick, &wanted);
                    let off = told as f64 / sent as f64 - 1.0;
                    let name = (pick.protocol.name, pick.variant(), kind, count, security);
                    assert!(off.abs() < 0.01, "{name:?}: told {told}, sent {sent}");
                }
            }
        }
    }

    #[test]
    fn the_pick_on_fixed_links() {
        let pick = |security, count, link: Link| {
            ot(&request(security, Kind::Cot, count), &link, &REFERENCE).unwrap()[0].protocol
        };
        // Few OTs, or bytes for nothing: what computes least. Else what sends least.
        for security in [Security::SemiHonest, Security::Malicious] {
            let plain = if security == Security::Malicious { "kos" } else { "iknp" };
            assert_eq!(pick(security, 1000, link(1e4, 0)), plain);
            assert_eq!(pick(security, 1 << 20, link(2e4, 0)), plain);
            assert_eq!(pick(security, 1 << 23, link(500.0, 1)), "ferret");
            assert_ne!(pick(security, 1 << 23, link(10.0, 80)), plain);
        }
    }

    #[test]
    fn a_slower_machine_sends_more() {
        let wanted = request(Security::Malicious, Kind::Cot, 1 << 23);
        let slow = Machine { aes: 11.0, multiply_add: 1.5, gather: 60.0, point: 200_000.0, ..REFERENCE };
        let pick = |machine: &Machine| ot(&wanted, &link(3000.0, 1), machine).unwrap()[0].protocol;
        assert_eq!((pick(&REFERENCE), pick(&slow)), ("ferret", "kos"));
    }

    #[test]
    fn what_was_named_is_kept_and_its_parameters_follow_the_link() {
        let named = |set| Request {
            choice: Choice { protocol: Some("ferret"), set, ..Choice::default() },
            ..request(Security::Malicious, Kind::Cot, 50_000_000)
        };
        let set = |set, link: Link| pick(&named(set), &link, &REFERENCE).unwrap().tuning.ferret.params.name;
        assert_eq!((set(None, link(10.0, 10)), set(Some("e"), link(10.0, 10))), ("a", "e"));
        assert_ne!(set(None, link(2e4, 0)), "a");
        let cramped = Machine { cache: CACHE / 16, ..REFERENCE };
        let cramped = pick(&named(None), &link(2e4, 0), &cramped).unwrap().tuning.ferret.params;
        assert!(cramped.k < pick(&named(None), &link(2e4, 0), &REFERENCE).unwrap().tuning.ferret.params.k);
        assert!(pick(&named(Some("none such")), &link(1.0, 1), &REFERENCE).is_err());
        let unknown = Choice { protocol: Some("none such"), ..Choice::default() };
        assert!(ot(&Request { choice: unknown, ..named(None) }, &link(1.0, 1), &REFERENCE).is_err());
    }

    #[test]
    fn a_link_is_measured_only_where_that_can_pay() {
        let anywhere = |security, count| {
            on_any_link(&request(security, Kind::Cot, count)).unwrap().map(|p| p.protocol.name)
        };
        assert_eq!(anywhere(Security::Malicious, 128), Some("kos"));
        assert_eq!(anywhere(Security::SemiHonest, 128), Some("iknp"));
        assert_eq!(anywhere(Security::Malicious, 10_000_000), None);
    }

    #[test]
    fn two_parties_settle_on_one_protocol_and_refuse_too_little() {
        use tacit_net::memory;
        let loose = request(Security::SemiHonest, Kind::Cot, 1 << 22);
        let (a, b) = memory::run(
            |channel| settle(&loose, channel).unwrap(),
            |channel| settle(&loose, channel).unwrap(),
        );
        assert_eq!((a.protocol.name, a.tuning.ferret), (b.protocol.name, b.tuning.ferret));
        let strict = request(Security::Malicious, Kind::Cot, 1 << 20);
        for (protocol, variant) in [("iknp", ""), ("ferret", "set z, 4 lanes"), ("", "")] {
            let cheat = |channel: &mut Channel| {
                measure(channel).unwrap();
                channel.send_sized(protocol.as_bytes()).unwrap();
                channel.send_sized(variant.as_bytes()).unwrap();
                channel.flush().unwrap();
            };
            let ((), refused) = memory::run(cheat, |channel| settle(&strict, channel).map(|p| p.protocol));
            assert!(refused.unwrap_err().to_string().contains("malicious"));
        }
    }

    #[test]
    fn a_measurement_that_asks_for_too_much_is_refused() {
        use tacit_net::memory;
        let greedy = |channel: &mut Channel| {
            channel.send_u64(1 << 40).unwrap();
            channel.flush().unwrap();
        };
        let ((), refused) = memory::run(greedy, |channel| measure(channel).map(|link| link.megabits));
        assert!(refused.is_err());
    }

    #[test]
    fn a_measured_link_is_the_emulated_one() {
        use tacit_net::{Limits, SessionId, memory};
        let model = LinkModel::new(50.0, Duration::from_millis(5)).unwrap();
        // A busy machine wakes late: one of several measurements has to be right.
        let seen: Vec<Link> = (0..10)
            .map(|_| {
                let (mut a, mut b) = memory::pair_over(model, Limits::default(), SessionId([7; 32]));
                std::thread::scope(|scope| {
                    let other = scope.spawn(move || measure(&mut b).unwrap());
                    let seen = measure(&mut a).unwrap();
                    other.join().unwrap();
                    seen
                })
            })
            .collect();
        let right =
            |l: &Link| (40.0..60.0).contains(&l.megabits) && (10..25).contains(&l.round_trip.as_millis());
        assert!(seen.iter().any(right), "{seen:?}");
    }
}
