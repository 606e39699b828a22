//! Which protocol evaluates, where the link decides: the evaluator measures it, and picks.

use crate::catalogue::{AUTHENTICATED, Entry, WMK17, computations, find};
use crate::plan::{EvalCandidate, Link};
use crate::{Error, Result, Security};
use std::time::{Duration, Instant};
use tacit_2pc::Owner;
use tacit_2pc::wmk17::Copies;
use tacit_crypto::text::counted;
use tacit_net::{Channel, LinkModel};

/// What was picked.
pub(in crate::job) struct Settled {
    /// The protocol.
    pub protocol: &'static Entry,
    /// Its copies, of cut-and-choose.
    pub copies: Option<Copies>,
    /// The link, as both sides take it: none, where it was not measured.
    pub link: LinkModel,
    /// Why, in words.
    pub why: String,
}

/// The evaluator measures the link by the garbler's pieces of `piece` bytes and picks the first of `ways`;
/// the garbler takes that, if it is what both `asked` for or they asked for none. `size` is what is evaluated,
/// in words.
pub(in crate::job) fn by_link(
    channel: &mut Channel,
    role: Owner,
    asked: Option<&Entry>,
    piece: usize,
    size: &str,
    ways: impl FnOnce(&Link) -> Vec<EvalCandidate>,
) -> Result<Settled> {
    if role == Owner::Garbler {
        let piece = vec![0; piece];
        let start = Instant::now();
        let mut said = channel.recv_u64()?;
        let (mut in_time, mut shown) = (start.elapsed() > LATE, false);
        for _ in 0..QUESTIONS {
            if said != ASKED {
                break;
            }
            channel.send(&[u8::from(in_time)])?;
            if in_time && !std::mem::replace(&mut shown, true) {
                (0..PIECES).try_for_each(|_| channel.send(&piece))?;
            }
            channel.flush()?;
            in_time = true;
            said = channel.recv_u64()?;
        }
        if said != PICKED {
            return Err(Error::Peer("the evaluator measures the link and never picks a protocol".into()));
        }
        let (name, mut copies) = (channel.recv_sized(64)?, [0]);
        channel.recv(&mut copies)?;
        let known = computations().find(|entry| entry.name.as_bytes() == name);
        let copies = Copies::ALL.get(usize::from(copies[0])).copied();
        let known = known.filter(|known| asked.is_none_or(|asked| asked.name == known.name));
        return match known {
            Some(protocol) if protocol.security == Security::Malicious => {
                let copies = copies.filter(|_| protocol.name == WMK17.name);
                let link = receive_link(channel)?;
                Ok(Settled { protocol, copies, link, why: format!("picked by the evaluator for {size}") })
            }
            _ => Err(Error::Peer(
                "the evaluator chose a protocol that is unknown or was not asked for; use the same release on both sides"
                    .into(),
            )),
        };
    }
    let (mut round_trip, mut rate) = (Duration::MAX, None);
    // One for a garbler that comes late, one with its pieces behind it, and one more where that costs nothing.
    for _ in 0..QUESTIONS {
        let (start, mut in_time) = (Instant::now(), [0]);
        channel.send_u64(ASKED)?;
        channel.flush()?;
        channel.recv(&mut in_time)?;
        round_trip = round_trip.min(start.elapsed());
        if rate.is_some() {
            break;
        }
        if in_time == [1] {
            rate = Some(receive_rate(channel, piece)?);
            if round_trip > NEAR {
                break;
            }
        }
    }
    let rate = rate.ok_or_else(|| {
        Error::Peer(
            "the garbler's answer is not valid in this release; use the same release on both sides".into(),
        )
    })?;
    let link = Link { megabits: rate * 8e-6, round_trip };
    let best = ways(&link).into_iter().next();
    let picked = best.and_then(|best| Some((find(best.candidate.protocol)?, best.copies)));
    let (protocol, copies) =
        picked.ok_or_else(|| Error::Other("no protocol evaluates with this security".into()))?;
    let number = copies.and_then(|copies| Copies::ALL.iter().position(|known| *known == copies));
    channel.send_u64(PICKED)?;
    channel.send_sized(protocol.name.as_bytes())?;
    channel.send(&[number.map_or(u8::MAX, |at| at as u8)])?;
    let why = format!("picked for {size} over this link ({link})");
    Ok(Settled { protocol, copies, link: send_link(channel, &link)?, why })
}

/// Tells the garbler which link was measured, rounded to kilobits a second and microseconds.
fn send_link(channel: &mut Channel, link: &Link) -> Result<LinkModel> {
    let kilobits = (link.megabits * 1e3).clamp(1.0, MOST_KILOBITS as f64) as u64;
    let micros = (link.round_trip.as_micros() / 2).min(MOST_MICROS as u128) as u64;
    channel.send_u64(kilobits)?;
    channel.send_u64(micros)?;
    model(kilobits, micros)
}

fn receive_link(channel: &mut Channel) -> Result<LinkModel> {
    let (kilobits, micros) = (channel.recv_u64()?, channel.recv_u64()?);
    model(kilobits.clamp(1, MOST_KILOBITS), micros.min(MOST_MICROS))
}

/// What is told of a link, at most: a terabit and a minute.
const MOST_KILOBITS: u64 = 1_000_000_000;
const MOST_MICROS: u64 = 60_000_000;

fn model(kilobits: u64, micros: u64) -> Result<LinkModel> {
    Ok(LinkModel::new(kilobits as f64 * 1e-3, Duration::from_micros(micros))?)
}

/// Whether the link is measured although `protocol` is settled, for what the protocol picks by it: the
/// correlated OT of many gates, which then take far longer than measuring.
pub(in crate::job) fn measures(protocol: &Entry, ands: u64) -> bool {
    protocol.name == AUTHENTICATED.name && ands >= 1 << 18
}

/// So many AND gates in so many rows, in words.
pub(in crate::job) fn size(ands: u64, rows: u64) -> String {
    let rows =
        if rows == 1 { String::new() } else { format!(" in each of {rows}", rows = counted(rows, "row")) };
    format!("{ands}{rows}", ands = counted(ands, "AND gate"))
}

/// What the evaluator says: that it measures a round trip, or that its pick follows.
pub(in crate::job) const ASKED: u64 = 0;
pub(in crate::job) const PICKED: u64 = 1;
/// Round trips that are measured, at most.
const QUESTIONS: usize = 3;
/// A garbler that waited so long for the question was there before it came: what the evaluator then measures
/// is the link alone.
const LATE: Duration = Duration::from_millis(1);
/// A round trip up to this is measured twice, for a machine that is busy for a moment is no slow link; a longer
/// one is not worth another.
const NEAR: Duration = Duration::from_millis(5);

/// Pieces by which the link is measured.
pub(in crate::job) const PIECES: usize = 4;

/// Bytes of a piece of the garbler's to measure the link with: all of them a hundredth of the tables that
/// cut-and-choose sends for so many AND gates, within reason.
pub(in crate::job) fn probe(ands: u64) -> usize {
    let tables = (ands as usize).saturating_mul(Copies::STANDARD.total() * 32);
    (tables / 100 / PIECES).clamp(1 << 11, 1 << 16)
}

/// Bytes a second from the peer, which sends [`PIECES`] of `piece` bytes: from the first one on, so that the
/// delay does not count.
pub(in crate::job) fn receive_rate(channel: &mut Channel, piece: usize) -> Result<f64> {
    let mut buffer = vec![0; piece];
    channel.recv(&mut buffer)?;
    let start = Instant::now();
    (1..PIECES).try_for_each(|_| channel.recv(&mut buffer))?;
    Ok(((PIECES - 1) * piece) as f64 / start.elapsed().as_secs_f64().max(1e-9))
}
