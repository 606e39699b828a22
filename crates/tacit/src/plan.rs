//! The planner: what each protocol that could serve would cost on a link, and which is the fastest.
//!
//! A prediction adds what a run computes, from the machine's measured rates, to what the link takes: bytes at its rate,
//! which pass while the parties compute, and a delay for every message that must be waited for. The weights are those
//! of the implementation, fitted on one machine; rates carry them to
//! another. A protocol without a model here is never picked.

use crate::limits::Limit;
use crate::ot::{self, Kind, PROTOCOLS, Protocol};
use crate::{Result, assumptions, security_name};
use std::fmt;
use std::time::Duration;
use tacit_net::{Channel, LinkModel, Party};
use tacit_ot::Security;

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
    /// A Ristretto point times a scalar.
    pub point: f64,
}

impl Machine {
    /// The machine that the weights were fitted on: AMD Zen 4 with AVX-512.
    pub const REFERENCE: Machine = Machine { aes: 0.55, multiply_add: 0.75, point: 12_000.0 };

    /// Measures this machine; takes some tens of milliseconds.
    pub fn measure() -> Machine {
        Machine {
            aes: Limit::AesFixed.quick(),
            multiply_add: Limit::MultiplyAdd.quick(),
            point: Limit::PointMultiply.quick(),
        }
    }
}

/// What is asked for.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Request {
    /// How many OTs.
    pub count: u64,
    /// Of which kind.
    pub kind: Kind,
    /// Against which peer at least.
    pub security: Security,
    /// Computing threads of each party.
    pub threads: usize,
}

/// A protocol that could serve, and what it would cost.
#[derive(Clone, PartialEq, Debug)]
pub struct Candidate {
    /// The protocol's short name.
    pub protocol: &'static str,
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

/// The weights of one OT extension, for one OT.
struct Weights {
    name: &'static str,
    /// AES blocks' worth of computing for correlated OT; random and chosen OT add to it.
    aes: f64,
    multiply_add: f64,
    random: f64,
    /// Bytes of correlated and random OT.
    bytes: f64,
    /// Round trips waited for: in a piece of 2^20 OTs, and, of chosen OT, for each 2^18 of them.
    piece_trips: f64,
    chosen_trips: f64,
}

/// Points of 128 base OTs on the slower side, both sides' shares in turn, and their bytes.
const SETUP_POINTS: f64 = 256.0;
const SETUP_BYTES: f64 = 128.0 * 96.0;
/// Round trips of the base OTs.
const SETUP_TRIPS: f64 = 0.5;
/// OTs that a thread makes at a time, and messages of chosen OT that go together.
const PIECE: u64 = 1 << 20;
const CHOSEN_PIECE: u64 = 1 << 18;

/// Fitted at 2^23 on the reference machine: IKNP 7.8 and 9.9 ns, KOS 11.1 and 14.4 ns.
const WEIGHTS: &[Weights] = &[
    Weights {
        name: "iknp",
        aes: 14.2,
        multiply_add: 0.0,
        random: 3.8,
        bytes: 15.875,
        piece_trips: 1.0,
        chosen_trips: 0.75,
    },
    Weights {
        name: "kos",
        aes: 15.0,
        multiply_add: 3.8,
        random: 6.0,
        bytes: 15.94,
        piece_trips: 2.0,
        chosen_trips: 1.7,
    },
];

/// Every OT extension that gives at least the security asked for, the fastest first.
pub fn ot(request: &Request, link: &Link, machine: &Machine) -> Vec<Candidate> {
    let mut candidates: Vec<Candidate> = PROTOCOLS
        .iter()
        .filter(|p| request.security == Security::SemiHonest || p.security == Security::Malicious)
        .filter_map(|p| predict(p, request, link, machine))
        .collect();
    candidates.sort_by(|a, b| a.time.cmp(&b.time).then(a.bytes.cmp(&b.bytes)));
    candidates
}

fn predict(protocol: &Protocol, request: &Request, link: &Link, machine: &Machine) -> Option<Candidate> {
    let weights = WEIGHTS.iter().find(|w| w.name == protocol.name)?;
    let (count, threads) = (request.count as f64, request.threads.max(1) as f64);
    let (random, chosen) = match request.kind {
        Kind::Cot => (0.0, 0.0),
        Kind::Rot => (weights.random, 0.0),
        // The receiver sends a bit, the sender both messages under their pads.
        Kind::Ot => (weights.random * 1.5, 32.125),
    };
    let compute = count
        * ((weights.aes + random) * machine.aes + weights.multiply_add * machine.multiply_add)
        / threads;
    let bytes = count * (weights.bytes + chosen) + SETUP_BYTES;
    let transfer = bytes * 8e3 / link.megabits;
    let pieces =
        |size: u64| request.count.div_ceil(size.saturating_mul(request.threads.max(1) as u64)) as f64;
    let mut rounds = SETUP_TRIPS + pieces(PIECE) * weights.piece_trips;
    if chosen > 0.0 {
        rounds += pieces(CHOSEN_PIECE) * weights.chosen_trips;
    }
    let waiting = rounds * link.round_trip.as_secs_f64() * 1e9;
    // Bytes pass while both compute, so the longer of the two counts.
    let nanoseconds = SETUP_POINTS * machine.point + compute.max(transfer) + waiting;
    Some(Candidate {
        protocol: protocol.name,
        security: protocol.security,
        time: Duration::from_secs_f64((nanoseconds / 1e9).min(1e15)),
        bytes: bytes as u64,
        rounds: rounds.ceil() as u64,
        assumptions: names(protocol.name),
    })
}

/// The intersection of two sets of `count` elements each, by every protocol that there is, the fastest first.
pub fn psi(count: u64, security: Security, link: &Link, machine: &Machine) -> Vec<Candidate> {
    // Of PaXoS, fitted at 2^20 on the reference machine: 2.05 s and 1.74 s, over loopback.
    let (aes, bytes) = match security {
        Security::Malicious => (3_500.0, 229.7),
        Security::SemiHonest => (2_950.0, 142.7),
    };
    const TRIPS: f64 = 6.5;
    let (n, setup) = (count as f64, 4.0 * SETUP_BYTES);
    let bytes = n * bytes + setup;
    // The steps follow one another: transfer and computing add.
    let nanoseconds = n * aes * machine.aes
        + bytes * 8e3 / link.megabits
        + TRIPS * link.round_trip.as_secs_f64() * 1e9
        + SETUP_POINTS * machine.point;
    vec![Candidate {
        protocol: tacit_psi::paxos::NAME,
        security,
        time: Duration::from_secs_f64((nanoseconds / 1e9).min(1e15)),
        bytes: bytes as u64,
        rounds: TRIPS.ceil() as u64,
        assumptions: names(tacit_psi::paxos::NAME),
    }]
}

/// What the protocol called `name` rests on, by its own declaration.
pub fn names(name: &str) -> Vec<&'static str> {
    let declarations = assumptions::declarations();
    let found = declarations.into_iter().find(|declaration| declaration.name == name);
    found.map_or_else(Vec::new, |d| d.assumptions.iter().map(|a| a.name()).collect())
}

/// The fastest protocol on links of every kind, if it is the same on all of them: then no link need be measured.
///
/// Both parties come to the same answer without a message.
fn on_any_link(request: &Request) -> Option<&'static str> {
    let links = [1.0, 10.0, 100.0, 1e3, 1e4, 1e5]
        .into_iter()
        .flat_map(|megabits| [0, 10, 300].map(|ms| Link { megabits, round_trip: Duration::from_millis(ms) }));
    let mut picks =
        links.filter_map(|link| ot(request, &link, &Machine::REFERENCE).first().map(|c| c.protocol));
    let first = picks.next()?;
    picks.all(|pick| pick == first).then_some(first)
}

/// The protocol that both parties use for `request`.
///
/// Where the link decides, `probe` opens a channel to the peer for a moment: the first party measures, picks and says so, and the
/// other refuses what gives less than was asked for. An error if no protocol serves, or the peer names one that does not.
pub fn agree<T>(
    request: &Request,
    probe: impl FnOnce(&mut dyn FnMut(&mut Channel) -> Result<&'static Protocol>) -> Result<T>,
) -> Result<&'static Protocol> {
    if let Some(name) = on_any_link(request) {
        return ot::protocol(name, request.security);
    }
    let mut picked = None;
    probe(&mut |channel| {
        let protocol = settle(request, channel)?;
        picked = Some(protocol);
        Ok(protocol)
    })?;
    picked.ok_or_else(|| crate::Error::Other("no protocol was agreed on; name one by --protocol".into()))
}

/// Measures `channel`; the first party picks.
fn settle(request: &Request, channel: &mut Channel) -> Result<&'static Protocol> {
    let link = measure(channel)?;
    if channel.party() == Party::First {
        let candidates = ot(request, &link, &Machine::measure());
        let pick = candidates.first().map_or("kos", |candidate| candidate.protocol);
        let protocol = ot::protocol(pick, request.security)?;
        channel.send_sized(protocol.name.as_bytes())?;
        channel.flush()?;
        return Ok(protocol);
    }
    let name = channel.recv_sized(64)?;
    let known = PROTOCOLS.iter().find(|p| p.name.as_bytes() == name);
    match known.filter(|p| request.security == Security::SemiHonest || p.security == Security::Malicious) {
        Some(protocol) => Ok(protocol),
        None => Err(crate::Error::Peer(format!(
            "the peer picked a protocol that is unknown here or does not give {} security; name one by --protocol on both sides",
            security_name(request.security)
        ))),
    }
}

/// Measures the link under `channel` from both ends at once: a few round trips and half a megabyte towards the first party.
pub fn measure(channel: &mut Channel) -> Result<Link> {
    const TRIPS: usize = 5;
    const PIECE: usize = 1 << 16;
    const PIECES: usize = 8;
    let first = channel.party() == Party::First;
    let mut best = Duration::MAX;
    for _ in 0..TRIPS {
        let start = std::time::Instant::now();
        if first {
            channel.send_u64(0)?;
            channel.recv_u64()?;
            best = best.min(start.elapsed());
        } else {
            channel.recv_u64()?;
            channel.send_u64(0)?;
            channel.flush()?;
        }
    }
    let mut piece = vec![0u8; PIECE];
    if !first {
        (0..PIECES).try_for_each(|_| channel.send(&piece))?;
        channel.flush()?;
        return Ok(Link { megabits: f64::INFINITY, round_trip: best });
    }
    // From the first piece on, so that the delay does not count.
    channel.recv(&mut piece)?;
    let start = std::time::Instant::now();
    (1..PIECES).try_for_each(|_| channel.recv(&mut piece))?;
    let seconds = start.elapsed().as_secs_f64().max(1e-6);
    Ok(Link { megabits: ((PIECES - 1) * PIECE) as f64 * 8.0 / seconds / 1e6, round_trip: best })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(security: Security, kind: Kind, count: u64) -> Request {
        Request { count, kind, security, threads: 1 }
    }

    fn link(megabits: f64, ms: u64) -> Link {
        Link { megabits, round_trip: Duration::from_millis(ms) }
    }

    #[test]
    fn security_is_never_traded_for_speed() {
        for megabits in [1.0, 100.0, 1e4] {
            for count in [0, 1, 1000, 1 << 23, u64::MAX] {
                let strict = ot(
                    &request(Security::Malicious, Kind::Cot, count),
                    &link(megabits, 1),
                    &Machine::REFERENCE,
                );
                assert!(!strict.is_empty() && strict.iter().all(|c| c.security == Security::Malicious));
                assert!(strict.windows(2).all(|two| two[0].time <= two[1].time));
            }
        }
        let loose =
            ot(&request(Security::SemiHonest, Kind::Cot, 1 << 20), &link(1e4, 0), &Machine::REFERENCE);
        assert!(loose.iter().any(|c| c.security == Security::SemiHonest));
    }

    #[test]
    fn predictions_follow_the_arithmetic_of_the_link() {
        let machine = Machine::REFERENCE;
        let find = |link: &Link, kind| {
            let all = ot(&request(Security::SemiHonest, kind, 1 << 20), link, &machine);
            all.into_iter().find(|c| c.protocol == "iknp").unwrap()
        };
        // 2^20 OTs of 15.875 bytes at a megabyte a second.
        let slow = find(&link(8.0, 0), Kind::Cot);
        let seconds = ((1u64 << 20) as f64 * 15.875 + SETUP_BYTES) / 1e6;
        assert!((slow.time.as_secs_f64() - seconds).abs() < 0.01, "{slow:?}");
        let far = find(&link(8.0, 100), Kind::Cot);
        assert!(((far.time - slow.time).as_secs_f64() - 0.15).abs() < 1e-6, "{far:?}");
        let chosen = find(&link(8.0, 0), Kind::Ot);
        assert_eq!(chosen.bytes, ((1u64 << 20) as f64 * (15.875 + 32.125) + SETUP_BYTES) as u64);
        assert!(slow.assumptions.iter().all(|name| !name.is_empty()) && !slow.assumptions.is_empty());
    }

    #[test]
    fn the_pick_on_fixed_links() {
        let pick = |security, link: Link| {
            ot(&request(security, Kind::Rot, 1 << 22), &link, &Machine::REFERENCE)[0].protocol
        };
        assert_eq!(pick(Security::SemiHonest, link(1e4, 0)), "iknp");
        let far = ot(&request(Security::Malicious, Kind::Rot, 1 << 22), &link(10.0, 80), &Machine::REFERENCE);
        assert!(far.iter().all(|c| c.time >= far[0].time));
    }

    #[test]
    fn two_parties_settle_on_one_protocol_and_refuse_too_little() {
        use tacit_net::memory;
        let loose = request(Security::SemiHonest, Kind::Cot, 1 << 20);
        let (a, b) = memory::run(
            |channel| settle(&loose, channel).unwrap().name,
            |channel| settle(&loose, channel).unwrap().name,
        );
        assert_eq!(a, b);
        let strict = request(Security::Malicious, Kind::Cot, 1 << 20);
        let cheat = |channel: &mut Channel| {
            measure(channel).unwrap();
            channel.send_sized(b"iknp").unwrap();
            channel.flush().unwrap();
        };
        let ((), refused) = memory::run(cheat, |channel| settle(&strict, channel).map(|p| p.name));
        assert!(refused.unwrap_err().to_string().contains("malicious"));
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
