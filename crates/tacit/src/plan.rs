//! The planner: what each protocol that could serve would cost on a link, and which is the fastest.
//!
//! A prediction adds what a run computes, from the machine's measured rates, to what the link takes: bytes at
//! its rate, which pass while the parties compute, and a delay for every message that must be waited for.
//! What a protocol takes of each, its entry in the [`catalogue`] says.

pub mod cluster;

use crate::catalogue::{self, extensions, protocol};
pub use crate::catalogue::{Candidate, Choice, EvalCandidate, EvalRequest, Link, Machine, Pick};
use crate::ot::Kind;
use crate::{Error, Result, security_name};
use std::time::Duration;
use tacit_net::{Channel, Party};
use tacit_ot::Security;

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

impl Request<'_> {
    fn cost(&self, pick: &Pick, link: &Link, machine: &Machine) -> Candidate {
        pick.predict((self.count, self.kind, self.security, self.threads), link, machine)
    }
}

/// Every way of running every protocol that gives the security asked for and that `request` does not exclude;
/// at least one.
fn variants(request: &Request<'_>) -> Result<Vec<Pick>> {
    let Request { security, choice, .. } = *request;
    protocol(choice.protocol.unwrap_or("auto"), security)?;
    let named = |name: &str| choice.protocol.is_none_or(|named| named == name);
    let all: Vec<_> = extensions().filter(|entry| named(entry.name)).collect();
    catalogue::check_names(&all, &choice)?;
    let enough =
        all.into_iter().filter(|entry| security == Security::SemiHonest || entry.security == security);
    let share = request.count.div_ceil(request.threads.max(1) as u64);
    Ok(enough.flat_map(|entry| entry.ways(share, security, &choice)).collect())
}

/// Every OT extension that gives at least the security asked for, each with its best parameters, the fastest
/// first.
///
/// An error if `request` names what there is not.
pub fn ot(request: &Request<'_>, link: &Link, machine: &Machine) -> Result<Vec<Candidate>> {
    let mut candidates: Vec<Candidate> =
        variants(request)?.iter().map(|way| request.cost(way, link, machine)).collect();
    candidates.sort_by(|a, b| a.time.cmp(&b.time).then(a.bytes.cmp(&b.bytes)));
    let mut seen = Vec::new();
    candidates.retain(|c| {
        let new = !seen.contains(&c.protocol);
        seen.push(c.protocol);
        new
    });
    Ok(candidates)
}

/// The fastest way to serve `request`. Both parties come to the same only if they give the same link and
/// machine: see [`agree`].
pub fn pick(request: &Request<'_>, link: &Link, machine: &Machine) -> Result<Pick> {
    fastest(variants(request)?, request, link, machine)
}

/// Of `all` the fastest; an error if there are none.
fn fastest(all: Vec<Pick>, request: &Request<'_>, link: &Link, machine: &Machine) -> Result<Pick> {
    let timed = all.into_iter().map(|way| (request.cost(&way, link, machine).time, way));
    let best = timed.reduce(|best, next| if next.0 < best.0 { next } else { best });
    best.map(|(_, way)| way).ok_or_else(none_agreed)
}

fn none_agreed() -> Error {
    Error::Other("no protocol was agreed on; name one".into())
}

/// Every way to evaluate with at least the security asked for, with all that is left open of it, the fastest
/// first.
///
/// Times fit circuits whose AND gates are many to a level, as most are.
pub fn eval(request: &EvalRequest, link: &Link, machine: &Machine) -> Vec<EvalCandidate> {
    catalogue::evaluations(request, link, machine)
}

/// Links of every kind.
fn every_link() -> impl Iterator<Item = Link> {
    [1.0, 10.0, 100.0, 1e3, 1e4].into_iter().flat_map(|megabits| {
        [0.03, 1.0, 10.0, 80.0, 300.0]
            .map(|ms| Link { megabits, round_trip: Duration::from_secs_f64(ms / 1e3) })
    })
}

/// Seconds that measuring `link` costs: a connection of its own, some round trips and some bytes.
fn probing(link: &Link) -> f64 {
    const TRIPS: f64 = 7.0;
    const BYTES: f64 = 131_072.0;
    TRIPS * link.round_trip.as_secs_f64() + BYTES * 8e-6 / link.megabits
}

/// What serves well enough wherever it is run: nothing that could be had by measuring the link is worth the
/// measuring.
///
/// Both parties come to the same answer without a message.
fn on_any_link(request: &Request<'_>) -> Result<Option<Pick>> {
    let all = variants(request)?;
    let seconds = |way: &Pick, link: &Link| request.cost(way, link, &Machine::REFERENCE).time.as_secs_f64();
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
    Ok(least.map(|(_, pick)| pick.clone()))
}

/// The protocol and the parameters that both parties use for `request`, which they must have in common.
///
/// Where the link decides, `probe` opens a channel to the peer for a moment: the first party measures, picks
/// and says so, and the other refuses what gives less than was asked for. An error if no protocol serves, or
/// the peer names one that does not.
pub fn agree<T>(
    request: &Request<'_>,
    probe: impl FnOnce(&mut dyn FnMut(&mut Channel) -> Result<Pick>) -> Result<T>,
) -> Result<Pick> {
    if let [only] = &variants(request)?[..] {
        return Ok(only.clone());
    }
    if let Some(pick) = on_any_link(request)? {
        return Ok(pick);
    }
    let mut picked = None;
    probe(&mut |channel| {
        let pick = settle(request, channel)?;
        picked = Some(pick.clone());
        Ok(pick)
    })?;
    picked.ok_or_else(none_agreed)
}

/// Measures `channel`; the first party picks.
fn settle(request: &Request<'_>, channel: &mut Channel) -> Result<Pick> {
    let link = measure(channel)?;
    let all = variants(request)?;
    if channel.party() == Party::First {
        let best = fastest(all, request, &link, &Machine::measure())?;
        channel.send_sized(best.protocol.name.as_bytes())?;
        channel.send_sized(best.extension().variant().as_bytes())?;
        channel.flush()?;
        return Ok(best);
    }
    let (protocol, variant) = (channel.recv_sized(64)?, channel.recv_sized(64)?);
    let same = |pick: &Pick| {
        pick.protocol.name.as_bytes() == protocol && pick.extension().variant().as_bytes() == variant
    };
    all.into_iter().find(same).ok_or_else(|| {
        Error::Peer(format!(
            "the peer picked a protocol that is unknown here, was not asked for or does not give {} security; \
             name one on both sides",
            security_name(request.security)
        ))
    })
}

/// Measures the link under `channel` for the first party: two round trips, then bytes towards it, more of
/// them as long as they pass too fast to be timed. The second party learns nothing of it, and gets a link
/// without bounds.
pub fn measure(channel: &mut Channel) -> Result<Link> {
    const FIRST: usize = 1 << 16;
    const MOST: usize = 1 << 23;
    const ENOUGH: Duration = Duration::from_millis(4);
    /// Questions and bytes of one measurement: this release asks six times, for 13 MB.
    const MEASURINGS: usize = 8;
    const MEASURED: usize = 1 << 26;
    /// From the first question to the last.
    const MEASURING: Duration = Duration::from_secs(300);
    let mut piece = vec![0u8; FIRST];
    if channel.party() == Party::Second {
        let (mut left, begun) = (MEASURED, std::time::Instant::now());
        for asked in 0..=MEASURINGS {
            let wanted = usize::try_from(channel.recv_u64()?).unwrap_or(usize::MAX);
            match wanted {
                0 => return Ok(Link { megabits: f64::INFINITY, round_trip: Duration::ZERO }),
                _ if asked == MEASURINGS || begun.elapsed() > MEASURING => break,
                1 => channel.send_u64(0)?,
                _ if wanted <= MOST.min(left) => {
                    left -= wanted;
                    (0..wanted.div_ceil(FIRST)).try_for_each(|_| channel.send(&piece))?;
                }
                _ => break,
            }
            channel.flush()?;
        }
        return Err(Error::Peer(
            "the peer's measurement asks for too much; use the same release on both sides".into(),
        ));
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
    use crate::catalogue::{PAXOS, VOLE};
    use crate::ot;
    use tacit_net::LinkModel;

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
        let seconds = ((1u64 << 20) as f64 * 15.875 + catalogue::SETUP_BYTES) / 1e6
            + catalogue::SETUP_POINTS * REFERENCE.point * 1e-9;
        assert!((slow.time.as_secs_f64() - seconds).abs() < 1e-6, "{slow:?}");
        let far = find(&link(8.0, 100), Kind::Cot);
        assert!(((far.time - slow.time).as_secs_f64() - 0.11).abs() < 1e-6, "{far:?}");
        let chosen = find(&link(8.0, 0), Kind::Ot);
        // The receiver's corrections, and both messages.
        assert_eq!(chosen.bytes, ((1u64 << 20) as f64 * (15.875 + 32.125) + catalogue::SETUP_BYTES) as u64);
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
                let options = Options {
                    learns,
                    security,
                    min_peer_elements: 0,
                    max_peer_elements: count,
                    base: &*base,
                };
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
            for (entry, vole) in [(&VOLE, true), (&PAXOS, false)] {
                let told = entry.intersection_cost(count, security, &link(100.0, 1), &REFERENCE).unwrap();
                assert_eq!(told.security, security);
                let (told, sent) = (told.bytes, sent(vole));
                let off = told as f64 / sent as f64 - 1.0;
                assert!(off.abs() < 0.02, "{}, {count} {security:?}: told {told}, sent {sent}", entry.name);
            }
        }
        for entry in [&VOLE, &PAXOS] {
            let too_many = entry.intersection_cost(1 << 40, Security::Malicious, &link(1.0, 1), &REFERENCE);
            assert!(too_many.is_err());
        }
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
            let mut cot = pick.senders(channel, &*base, &mut prg, 1).unwrap().remove(0);
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
            let mut cot = pick.receivers(channel, &*base, &mut prg, 1).unwrap().remove(0);
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
                    let variant = pick.extension().variant();
                    let small = ["set d", "set e"].iter().any(|set| variant.starts_with(set));
                    if variant.starts_with("set ") && !small {
                        continue;
                    }
                    let told = wanted.cost(&pick, &link(100.0, 1), &REFERENCE).bytes;
                    let sent = sent(&pick, &wanted);
                    let off = told as f64 / sent as f64 - 1.0;
                    let name = (pick.protocol.name, variant, kind, count, security);
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
            assert_eq!(pick(security, 1 << 20, link(2e4, 0)), "softspoken");
            assert_eq!(pick(security, 1 << 23, link(500.0, 1)), "ferret");
            assert_ne!(pick(security, 1 << 23, link(10.0, 80)), plain);
        }
    }

    #[test]
    fn a_slower_machine_sends_more() {
        let wanted = request(Security::Malicious, Kind::Cot, 1 << 23);
        let slow = Machine { aes: 11.0, multiply_add: 1.5, gather: 60.0, point: 200_000.0, ..REFERENCE };
        let pick = |machine: &Machine| ot(&wanted, &link(3000.0, 1), machine).unwrap()[0].protocol;
        assert_eq!((pick(&REFERENCE), pick(&slow)), ("ferret", "softspoken"));
    }

    #[test]
    fn what_was_named_is_kept_and_its_parameters_follow_the_link() {
        let named = |set| Request {
            choice: Choice { protocol: Some("ferret"), set, ..Choice::default() },
            ..request(Security::Malicious, Kind::Cot, 50_000_000)
        };
        let set = |set, link: Link, machine: &Machine| {
            pick(&named(set), &link, machine).unwrap().extension().variant()[..5].to_owned()
        };
        assert_eq!(set(None, link(10.0, 10), &REFERENCE), "set a");
        assert_eq!(set(Some("e"), link(10.0, 10), &REFERENCE), "set e");
        // The sets' tables grow from e to a.
        let ample = set(None, link(2e4, 0), &REFERENCE);
        assert_ne!(ample, "set a");
        let cramped = Machine { cache: REFERENCE.cache / 16, ..REFERENCE };
        assert!(set(None, link(2e4, 0), &cramped) > ample);
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
        let settled = |pick: Pick| (pick.protocol.name, pick.extension().variant());
        assert_eq!(settled(a), settled(b));
        let strict = request(Security::Malicious, Kind::Cot, 1 << 20);
        for (protocol, variant) in [("iknp", ""), ("ferret", "set z, 4 lanes"), ("", "")] {
            let cheat = |channel: &mut Channel| {
                measure(channel).unwrap();
                channel.send_sized(protocol.as_bytes()).unwrap();
                channel.send_sized(variant.as_bytes()).unwrap();
                channel.flush().unwrap();
            };
            let ((), refused) =
                memory::run(cheat, |channel| settle(&strict, channel).map(|p| p.protocol.name));
            assert!(refused.unwrap_err().to_string().contains("malicious"));
        }
    }

    #[test]
    fn a_measurement_that_asks_for_too_much_is_refused() {
        use tacit_net::memory;
        // Once for a lot, for ever for a little, for ever for nothing but an answer.
        for (wanted, most) in [(1u64 << 40, 0), (1 << 23, 1 << 26), (1 << 16, 8 << 16), (1, 8 * 8)] {
            let greedy = |channel: &mut Channel| {
                let mut got = 0;
                for _ in 0..10_000 {
                    if channel.send_u64(wanted).and_then(|()| channel.flush()).is_err() {
                        break;
                    }
                    let mut answer = vec![0; if wanted == 1 { 8 } else { (wanted as usize).min(1 << 23) }];
                    if channel.recv(&mut answer).is_err() {
                        break;
                    }
                    got += answer.len();
                }
                got
            };
            let (got, refused) = memory::run(greedy, |channel| measure(channel).map(|link| link.megabits));
            assert!(matches!(refused, Err(Error::Peer(_))), "{wanted}");
            assert!(got <= most, "{wanted}: {got} bytes");
        }
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
