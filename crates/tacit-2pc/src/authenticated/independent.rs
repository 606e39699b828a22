//! The first phase: triples and masks for so many gates, whatever the function.

use super::Result;
use super::alike::{COMPARED, agree_alike};
use super::bits::{Cots, Gates, GatesMut, Shares, Stock, ample, zeros};
use super::buckets::{self, Level};
use super::demand::Demand;
use super::deviation::deviate;
use super::hash::MacHash;
use super::leaky::{self, Maker};
use super::opening::{FIRST_AHEAD, LONG, LONG_AHEAD, Openings};
use super::oracle::Oracle;
use super::spent::Spent;
use crate::{OutputTo, Owner, Prepared};
use std::time::Duration;
use tacit_crypto::hash::Mitccrh;
use tacit_crypto::{BitVec, Block, Prg};
use tacit_net::Channel;
use zeroize::{Zeroize, Zeroizing};

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
    pub(super) spent: Spent,
}

impl Drop for Independent {
    fn drop(&mut self) {
        self.delta.zeroize();
    }
}

impl Independent {
    /// The part for `rows` runs of the demand `one`, out of one for as many of the demand `each` or more, none of
    /// whose numbers is smaller: of each row the first gates, and the first of either side's input masks.
    pub(super) fn cut(mut self, each: Demand, one: Demand, rows: usize) -> Independent {
        let demand = one.times(rows);
        if demand == self.demand {
            return self;
        }
        let mut gates = Stock::zeros(demand.ands);
        for row in 0..rows {
            let (from, to) = (row * each.ands, row * one.ands);
            let part = self.gates.gates().part(from..from + one.ands);
            gates.gates_mut().part(to..to + one.ands).copy_from(part);
        }
        let [own, peer] = [self.role, self.role.other()];
        let mut masks = Shares::zeros(demand.ands + demand.inputs(own), demand.ands + demand.inputs(peer));
        let behind = self.demand.ands;
        let sides = [(own, &self.masks.macs, &mut masks.macs), (peer, &self.masks.keys, &mut masks.keys)];
        for (owner, of, out) in sides {
            let mut copy =
                |from: usize, to: usize, n: usize| out[to..to + n].copy_from_slice(&of[from..from + n]);
            for row in 0..rows {
                copy(row * each.ands, row * one.ands, one.ands);
                let (from, inputs) = (behind + row * each.inputs(owner), one.inputs(owner));
                copy(from, demand.ands + row * inputs, inputs);
            }
        }
        let Independent { role, delta, ahead, .. } = self;
        let (oracle, prg, spent) = (self.oracle.clone(), self.prg.fork(), self.spent.clone());
        Independent { role, delta, oracle, demand, gates, masks, prg, ahead, spent }
    }

    /// The phases that follow, for rows that go side by side: the outputs of each if this party learns them,
    /// else none.
    pub(super) fn run_rows(
        self,
        channel: &mut Channel,
        function: &Prepared,
        output_to: OutputTo,
        rows: &[BitVec],
    ) -> Result<Vec<BitVec>> {
        let input = BitVec::concat(rows);
        let ready = self.dependent_rows(channel, function, output_to, rows.len())?;
        let outputs = ready.online(channel, &input)?;
        let width = function.circuit().shape().outputs.iter().map(|&width| width as usize).sum();
        Ok(outputs.map_or_else(Vec::new, |bits| bits.split(rows.iter().map(|_| width))))
    }
}

/// Memory that serves one preparation after the other.
pub(super) struct Room {
    bits: Shares,
    gates: Shares,
    masks: Shares,
    rows: leaky::Room,
    ahead: usize,
    /// Whether the link is known to be long.
    far: bool,
}

impl Default for Room {
    fn default() -> Self {
        let [bits, gates, masks] = [0; 3].map(|n| Shares::zeros(n, n));
        Room { bits, gates, masks, rows: leaky::Room::default(), ahead: FIRST_AHEAD, far: false }
    }
}

impl Room {
    /// Memory for a preparation that keeps it, with what was found of the link.
    pub(super) fn alone(&self) -> Room {
        Room { ahead: self.ahead, far: self.far, ..Room::default() }
    }

    /// Takes back what a preparation was made in, and what it found of the link.
    pub(super) fn put(&mut self, of: &mut Independent) {
        self.ahead = of.ahead;
        std::mem::swap(&mut self.gates, &mut of.gates.bits);
        std::mem::swap(&mut self.masks, &mut of.masks);
    }

    /// Expects a link of such a delay.
    pub(super) fn expect(&mut self, delay: Duration) {
        if delay >= LONG {
            (self.ahead, self.far) = (LONG_AHEAD, true);
        }
    }

    /// Whether the link is known to be long.
    pub(super) fn is_far(&self) -> bool {
        self.far
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
    (demand, level): (Demand, Level),
    oracle: Oracle,
    room: &mut Room,
    spent: &Spent,
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
    let (rows, far) = (std::mem::take(&mut room.rows), room.far);
    let width = level.message_bits();
    let mut maker = Maker { garbler, delta: triples_delta, width, own, peer, made: 0, room: rows };
    let mut openings = Openings::new(&oracle, "buckets", garbler, delta, room.ahead);
    let windows: Vec<usize> = level.windows(demand.ands).map(|gates| gates.max(buckets::least())).collect();
    let mut gates = room.gates(windows.iter().sum());
    let mut left = gates.gates_mut();
    let inputs = [demand.garbler_inputs, demand.evaluator_inputs];
    let [own_masks, peer_masks] =
        if garbler { inputs } else { [inputs[1], inputs[0]] }.map(|inputs| demand.ands + inputs);
    let mut masks = taken(&mut room.masks, own_masks, peer_masks);
    let mut unmade = Some((&mut masks.macs[..own_masks], &mut masks.keys[..peer_masks]));
    let held = |n: usize| 3 * n * buckets::rows_at_once(n, far).min(level.size(n) - 1);
    let held = windows.iter().map(|&n| held(n)).max().unwrap_or(0);
    let mut bits = taken(&mut room.bits, held, held);
    // MACs of the garbler's, which are the evaluator's keys.
    let mut compared = zeros(COMPARED);
    let mut checks = 0;
    let mut start = 0;
    for n in windows {
        let mut sums = left.part(start..start + n);
        start += n;
        let size = level.size(n);
        for row in (1..size).step_by(buckets::rows_at_once(n, far)) {
            let rows = buckets::rows_at_once(n, far).min(size - row);
            let (macs, keys) = (&mut bits.macs[..3 * n * rows], &mut bits.keys[..3 * n * rows]);
            // The first row is where the sums begin.
            let first = (row == 1).then(|| sums.part(0..n));
            let further = macs.chunks_mut(3 * n).zip(keys.chunks_mut(3 * n));
            let further = further.map(|(macs, keys)| GatesMut::of(macs, keys));
            let mut made: Vec<GatesMut<'_>> = first.into_iter().chain(further).collect();
            let mut of_nobody = [];
            let compared_by = match garbler {
                true => (&mut compared[..], &mut of_nobody[..]),
                false => (&mut of_nobody[..], &mut compared[..]),
            };
            let others = unmade.take().into_iter().chain([compared_by]);
            // proof: authenticated 2.1
            extend(channel, cots, &mut made, others)?;
            made.iter_mut().for_each(|row| deviate(|script| script.bits(&mut row.macs)));
            let mut alike = MacHash::new(&oracle, &format!("triples {checks}"), true);
            // proof: authenticated 2.2
            maker.make(channel, &mut made, &mut alike)?;
            let digest = Zeroizing::new(alike.digest());
            let mut shifts =
                agree_alike(channel, &oracle, (garbler, delta), checks, digest, &mut compared, prg)?;
            checks += 1;
            let shifts: Vec<usize> = (0..rows).map(|_| buckets::shift(&mut shifts, n)).collect();
            deviate(|script| script.shifts(&shifts));
            let further = macs.chunks(3 * n).zip(keys.chunks(3 * n));
            let further: Vec<Gates<'_>> = further.map(|(macs, keys)| Gates::of(macs, keys)).collect();
            // proof: authenticated 2.8
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
    let (prg, spent) = (prg.fork(), spent.clone());
    Ok(Independent { role, delta, oracle, demand, gates, masks, prg, ahead, spent })
}

/// Makes the bits of rows of triples, and those others, in one request: one that ends within an iteration of
/// Ferret's has the trees behind its end expanded twice.
fn extend<'a>(
    channel: &mut Channel,
    cots: &mut Cots<'_>,
    rows: &'a mut [GatesMut<'_>],
    others: impl IntoIterator<Item = (&'a mut [Block], &'a mut [Block])>,
) -> Result<()> {
    let (mut macs, mut keys): (Vec<_>, Vec<_>) = others.into_iter().unzip();
    for row in rows {
        macs.extend(row.macs.each_mut().map(|part| &mut **part));
        keys.extend(row.keys.each_mut().map(|part| &mut **part));
    }
    (cots.extend)(channel, keys, macs)
}
