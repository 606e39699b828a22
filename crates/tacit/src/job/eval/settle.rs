//! Which protocol evaluates, where the link decides: the evaluator measures it, and picks.

use crate::catalogue::{AUTHENTICATED, Entry, WMK17, computations, find};
use crate::plan::{EvalCandidate, Link};
use crate::{Error, Result, Security};
use std::time::{Duration, Instant};
use tacit_2pc::Owner;
use tacit_2pc::wmk17::Copies;
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
/// the garbler takes that. `size` is what is evaluated, in words.
pub(in crate::job) fn by_link(
    channel: &mut Channel,
    role: Owner,
    piece: usize,
    size: &str,
    ways: impl FnOnce(&Link) -> Vec<EvalCandidate>,
) -> Result<Settled> {
    if role == Owner::Garbler {
        let piece = vec![0; piece];
        for _ in 0..PINGS {
            channel.recv_u64()?;
            channel.send(&[0])?;
            channel.flush()?;
        }
        (0..PIECES).try_for_each(|_| channel.send(&piece))?;
        channel.flush()?;
        let (name, mut copies) = (channel.recv_sized(64)?, [0]);
        channel.recv(&mut copies)?;
        let known = computations().find(|entry| entry.name.as_bytes() == name);
        let copies = Copies::ALL.get(usize::from(copies[0])).copied();
        return match known {
            Some(protocol) if protocol.security == Security::Malicious => {
                let copies = copies.filter(|_| protocol.name == WMK17.name);
                let link = receive_link(channel)?;
                Ok(Settled { protocol, copies, link, why: format!("picked by the evaluator for {size}") })
            }
            _ => Err(Error::Peer(
                "the evaluator chose a protocol that there is not; both sides must be of one release".into(),
            )),
        };
    }
    let mut round_trip = Duration::MAX;
    for _ in 0..PINGS {
        let start = Instant::now();
        channel.send_u64(0)?;
        channel.flush()?;
        channel.recv(&mut [0])?;
        round_trip = round_trip.min(start.elapsed());
    }
    let rate = receive_rate(channel, piece)?;
    let link = Link { megabits: rate * 8e-6, round_trip };
    let best = ways(&link).into_iter().next();
    let picked = best.and_then(|best| Some((find(best.candidate.protocol)?, best.copies)));
    let (protocol, copies) =
        picked.ok_or_else(|| Error::Other("no protocol evaluates with this security".into()))?;
    let number = copies.and_then(|copies| Copies::ALL.iter().position(|known| *known == copies));
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
    let rows = if rows == 1 { String::new() } else { format!(" in each of {rows} rows") };
    format!("{ands} AND gates{rows}")
}

/// Round trips, of which the fastest counts: a machine that is busy for a moment is no slow link.
pub(in crate::job) const PINGS: usize = 2;

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
