//! The first phase: triples and masks for so many gates, whatever the function.

use super::bits::{Cots, Gates, GatesMut, Shares, Stock, ample};
use super::buckets;
use super::demand::Demand;
use super::deviation::{deviate, passes};
use super::leaky::{self, Maker};
use super::opening::{FIRST_AHEAD, LONG, MOST_AHEAD, MacHash, Openings};
use super::oracle::Oracle;
use super::{Result, cheated};
use crate::Owner;
use std::time::Duration;
use subtle::ConstantTimeEq;
use tacit_crypto::commit::{Commitment, Opening, commit, verify};
use tacit_crypto::hash::Mitccrh;
use tacit_crypto::{Block, Prg};
use tacit_net::Channel;
use zeroize::Zeroize;

/// One party's side of a preparation that serves one run of one function of its size.
pub struct Independent {
    pub(super) role: Owner,
    pub(super) delta: Block,
    pub(super) oracle: Oracle,
    pub(super) demand: Demand,
    /// With triples, for as many gates as the windows had, or more.
    pub(super) gates: Stock,
    /// The masks: of the gates' results, and behind them of the own inputs MACs, of the peer's keys.
    pub(super) masks: Shares,
    pub(super) prg: Prg,
    /// Batches of openings that the link holds, as far as that was found.
    pub(super) ahead: usize,
}

impl Drop for Independent {
    fn drop(&mut self) {
        self.delta.zeroize();
    }
}

impl Independent {
    /// The parts for `count` rows alike, each of the demand `one`: the whole, where there is one.
    pub(super) fn rows(self, one: Demand, count: usize) -> impl Iterator<Item = Independent> {
        let mut whole = Some(self);
        (0..count).map_while(move |number| match count {
            1 => whole.take(),
            _ => Some(whole.as_mut()?.row(one, number)),
        })
    }

    /// The part that a run of the demand `one` takes, none of whose numbers is larger: the first gates, and
    /// the first of either side's input masks.
    pub(super) fn cut(mut self, one: Demand) -> Independent {
        if one == self.demand { self } else { self.row(one, 0) }
    }

    /// The part for row `number` of several.
    fn row(&mut self, one: Demand, number: usize) -> Independent {
        let part = |of: &[Block], start: usize, each: usize, ahead: usize, out: &mut [Block]| {
            let from = start + number * each;
            out[ahead..].copy_from_slice(&of[from..from + each]);
        };
        let mut gates = Stock::zeros(one.ands);
        gates.gates_mut().copy_from(self.gates.gates().part(number * one.ands..(number + 1) * one.ands));
        let (own, peer) = (one.inputs(self.role), one.inputs(self.role.other()));
        let mut masks = Shares::zeros(one.ands + own, one.ands + peer);
        let sides = [(&self.masks.macs, &mut masks.macs, own), (&self.masks.keys, &mut masks.keys, peer)];
        for (of, out, inputs) in sides {
            part(of, 0, one.ands, 0, &mut out[..one.ands]);
            part(of, self.demand.ands, inputs, one.ands, out);
        }
        let (role, delta, oracle) = (self.role, self.delta, self.oracle.row(number));
        let (prg, ahead) = (self.prg.fork(), self.ahead);
        Independent { role, delta, oracle, demand: one, gates, masks, prg, ahead }
    }
}

/// Memory that serves one preparation after the other.
pub(super) struct Room {
    bits: Shares,
    gates: Shares,
    masks: Shares,
    rows: leaky::Room,
    ahead: usize,
}

impl Default for Room {
    fn default() -> Self {
        let [bits, gates, masks] = [0; 3].map(|n| Shares::zeros(n, n));
        Room { bits, gates, masks, rows: leaky::Room::default(), ahead: FIRST_AHEAD }
    }
}

impl Room {
    /// Takes back what a preparation was made in, and what it found of the link.
    pub(super) fn put(&mut self, of: &mut Independent) {
        self.ahead = of.ahead;
        std::mem::swap(&mut self.gates, &mut of.gates.bits);
        std::mem::swap(&mut self.masks, &mut of.masks);
    }

    /// Expects a link of such a delay.
    pub(super) fn expect(&mut self, delay: Duration) {
        if delay >= LONG {
            self.ahead = MOST_AHEAD;
        }
    }

    fn gates(&mut self, gates: usize) -> Stock {
        Stock::within(taken(&mut self.gates, 3 * gates, 3 * gates), gates)
    }
}

/// At least so much of `room`, whatever it holds; what is too small goes before its successor comes.
fn taken(room: &mut Shares, own: usize, peer: usize) -> Shares {
    if room.macs.len() < own || room.keys.len() < peer {
        *room = Shares::zeros(0, 0);
        *room = Shares::zeros(ample(own), ample(peer));
    }
    std::mem::replace(room, Shares::zeros(0, 0))
}

/// Makes it, over correlated OT that this party sends and receives, in memory of `room` as far as that
/// reaches.
pub(super) fn make(
    channel: &mut Channel,
    role: Owner,
    cots: &mut Cots<'_>,
    prg: &mut Prg,
    demand: Demand,
    oracle: Oracle,
    room: &mut Room,
) -> Result<Independent> {
    let garbler = role == Owner::Garbler;
    let delta = cots.delta;
    if !delta.lsb() {
        return super::usage("correlated OT whose Δ has lowest bit 0 serves no authenticated bits");
    }
    let [own, peer] = [garbler, !garbler].map(|garbler| {
        let label = if garbler { "hash of the garbler's keys" } else { "hash of the evaluator's keys" };
        Mitccrh::new(oracle.block(label))
    });
    let mut triples_delta = delta;
    deviate(|script| script.triples_delta(&mut triples_delta));
    let rows = std::mem::take(&mut room.rows);
    let mut maker = Maker { garbler, delta: triples_delta, own, peer, made: 0, room: rows };
    let mut openings = Openings::new(&oracle, "buckets", garbler, delta, room.ahead);
    let windows: Vec<usize> =
        buckets::windows(demand.ands).map(|gates| gates.max(buckets::least())).collect();
    let mut gates = room.gates(windows.iter().sum());
    let mut left = gates.gates_mut();
    let inputs = [demand.garbler_inputs, demand.evaluator_inputs];
    let [own_masks, peer_masks] =
        if garbler { inputs } else { [inputs[1], inputs[0]] }.map(|inputs| demand.ands + inputs);
    let mut masks = taken(&mut room.masks, own_masks, peer_masks);
    let mut unmade = Some((&mut masks.macs[..own_masks], &mut masks.keys[..peer_masks]));
    let held = |n: usize| 3 * n * buckets::rows_at_once(n).min(buckets::size(n) - 1);
    let held = windows.iter().map(|&n| held(n)).max().unwrap_or(0);
    let mut bits = taken(&mut room.bits, held, held);
    let mut checks = 0;
    let mut start = 0;
    for n in windows {
        let mut sums = left.part(start..start + n);
        start += n;
        let size = buckets::size(n);
        for row in (1..size).step_by(buckets::rows_at_once(n)) {
            let rows = buckets::rows_at_once(n).min(size - row);
            let (macs, keys) = (&mut bits.macs[..3 * n * rows], &mut bits.keys[..3 * n * rows]);
            // The first row is where the sums begin.
            let first = (row == 1).then(|| sums.part(0..n));
            let further = macs.chunks_mut(3 * n).zip(keys.chunks_mut(3 * n));
            let further = further.map(|(macs, keys)| GatesMut::of(macs, keys));
            let mut made: Vec<GatesMut<'_>> = first.into_iter().chain(further).collect();
            extend(channel, cots, &mut made, unmade.take())?;
            made.iter_mut().for_each(|row| deviate(|script| script.bits(&mut row.macs)));
            let mut alike = MacHash::new(&oracle, &format!("triples {checks}"), true);
            maker.make(channel, &mut made, &mut alike)?;
            let mut shifts = agree_alike(channel, &oracle, garbler, checks, alike.digest(), prg)?;
            checks += 1;
            let shifts: Vec<usize> = (0..rows).map(|_| buckets::shift(&mut shifts, n)).collect();
            deviate(|script| script.shifts(&shifts));
            let further = macs.chunks(3 * n).zip(keys.chunks(3 * n));
            let further: Vec<Gates<'_>> = further.map(|(macs, keys)| Gates::of(macs, keys)).collect();
            buckets::combine(channel, &mut openings, &further, &shifts, &mut sums)?;
        }
    }
    if unmade.is_some() {
        extend(channel, cots, &mut [], unmade)?;
    }
    room.rows = std::mem::take(&mut maker.room);
    room.bits = bits;
    deviate(|script| script.masks(&mut masks.macs));
    let ahead = openings.on_the_way();
    room.ahead = ahead;
    openings.check(channel)?;
    Ok(Independent { role, delta, oracle, demand, gates, masks, prg: prg.fork(), ahead })
}

/// Makes the bits of rows of triples, and those masks, in one request: one that ends within an iteration of
/// Ferret's has the trees behind its end expanded twice.
fn extend(
    channel: &mut Channel,
    cots: &mut Cots<'_>,
    rows: &mut [GatesMut<'_>],
    masks: Option<(&mut [Block], &mut [Block])>,
) -> Result<()> {
    let (mut macs, mut keys): (Vec<_>, Vec<_>) = masks.into_iter().unzip();
    for row in rows {
        macs.extend(row.macs.each_mut().map(|part| &mut **part));
        keys.extend(row.keys.each_mut().map(|part| &mut **part));
    }
    (cots.extend)(channel, keys, macs)
}

/// Compares what must be alike, and draws randomness that neither party chose, after all that it is for was
/// fixed.
///
/// The garbler commits to its digest and its part of the randomness before it sees the evaluator's, so a
/// party that cheated learns what the other's was only when both are shown, and then cannot change its own.
fn agree_alike(
    channel: &mut Channel,
    oracle: &Oracle,
    garbler: bool,
    number: usize,
    digest: [u8; 32],
    prg: &mut Prg,
) -> Result<Prg> {
    let mut context = [0u8; 32];
    let mut transcript = oracle.transcript("equality");
    transcript.append_u64("check", number as u64);
    transcript.challenge_bytes("context", &mut context);
    let mut mine = [0u8; 64];
    let mut shown = digest;
    deviate(|script| script.alike(&mut shown));
    mine[..32].copy_from_slice(&shown);
    prg.fill_bytes(&mut mine[32..]);
    let mut theirs = [0u8; 64];
    let alike = |theirs: &[u8; 64]| passes(theirs[..32].ct_eq(&digest));
    const UNLIKE: &str = "a triple is wrong, or a bit of it was guessed";
    if garbler {
        let (commitment, opening) = commit(&context, &mine, prg);
        channel.send(&commitment.0)?;
        channel.recv(&mut theirs)?;
        if !alike(&theirs) {
            return cheated(UNLIKE);
        }
        deviate(|script| script.opened_commitment(&mut mine));
        channel.send(&mine)?;
        channel.send(&opening.0)?;
    } else {
        let (mut commitment, mut opening) = (Commitment([0; 32]), Opening([0; 32]));
        channel.recv(&mut commitment.0)?;
        channel.send(&mine)?;
        channel.recv(&mut theirs)?;
        channel.recv(&mut opening.0)?;
        if !verify(&context, &theirs, &commitment, &opening) {
            return cheated("a commitment is opened to something else");
        }
        if !alike(&theirs) {
            return cheated(UNLIKE);
        }
    }
    let (of_garbler, of_evaluator) = if garbler { (&mine, &theirs) } else { (&theirs, &mine) };
    transcript.append("garbler", of_garbler);
    transcript.append("evaluator", of_evaluator);
    Ok(transcript.challenge_prg("shifts"))
}
