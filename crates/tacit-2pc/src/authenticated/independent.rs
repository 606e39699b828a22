//! The first phase: triples and masks for so many gates, whatever the function.

use super::bits::{BLOCKS, Cots, Shares, ample, zeros};
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
use tacit_crypto::{Block, Buffer, Prg};
use tacit_net::Channel;
use zeroize::Zeroize;

/// One party's side of a preparation that serves one run of one function of its size.
pub struct Independent {
    pub(super) role: Owner,
    pub(super) delta: Block,
    pub(super) oracle: Oracle,
    pub(super) demand: Demand,
    /// [`Gate`]s, with triples.
    pub(super) gates: Buffer,
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
        let mut gates = zeros(BLOCKS * one.ands);
        part(&self.gates, 0, BLOCKS * one.ands, 0, &mut gates);
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
    gates: Buffer,
    masks: Shares,
    rows: leaky::Room,
    ahead: usize,
}

impl Default for Room {
    fn default() -> Self {
        let [bits, masks] = [0; 2].map(|n| Shares::zeros(n, n));
        Room { bits, gates: zeros(0), masks, rows: leaky::Room::default(), ahead: FIRST_AHEAD }
    }
}

impl Room {
    /// Takes back what a preparation was made in, and what it found of the link.
    pub(super) fn put(&mut self, of: &mut Independent) {
        self.ahead = of.ahead;
        std::mem::swap(&mut self.gates, &mut of.gates);
        std::mem::swap(&mut self.masks, &mut of.masks);
    }

    /// Expects a link of such a delay.
    pub(super) fn expect(&mut self, delay: Duration) {
        if delay >= LONG {
            self.ahead = MOST_AHEAD;
        }
    }

    // What is too small goes before its successor comes.
    fn gates(&mut self, blocks: usize) -> Buffer {
        if self.gates.len() < blocks {
            self.gates = zeros(0);
            self.gates = zeros(ample(blocks));
        }
        std::mem::replace(&mut self.gates, zeros(0))
    }

    fn masks(&mut self, own: usize, peer: usize) -> Shares {
        if self.masks.macs.len() < own || self.masks.keys.len() < peer {
            self.masks = Shares::zeros(0, 0);
            self.masks = Shares::zeros(ample(own), ample(peer));
        }
        std::mem::replace(&mut self.masks, Shares::zeros(0, 0))
    }

    fn bits(&mut self, n: usize) -> &mut Shares {
        if self.bits.macs.len() < n {
            self.bits = Shares::zeros(0, 0);
            self.bits = Shares::zeros(ample(n), ample(n));
        }
        &mut self.bits
    }
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
    let windows: Vec<usize> = buckets::windows(demand.ands).map(|gates| gates.max(buckets::LEAST)).collect();
    let mut gates = room.gates(BLOCKS * windows.iter().sum::<usize>());
    let mut left = gates.as_chunks_mut::<6>().0;
    let inputs = [demand.garbler_inputs, demand.evaluator_inputs];
    let [own_masks, peer_masks] =
        if garbler { inputs } else { [inputs[1], inputs[0]] }.map(|inputs| demand.ands + inputs);
    let mut masks = room.masks(own_masks, peer_masks);
    let rows = |n: usize| buckets::rows_at_once(n).min(buckets::size(n));
    let bits = room.bits(windows.iter().map(|&n| 3 * n * rows(n)).max().unwrap_or(0));
    let mut checks = 0;
    for n in windows {
        let size = buckets::size(n);
        let (sums, rest) = left.split_at_mut(n);
        left = rest;
        for row in (0..size).step_by(buckets::rows_at_once(n)) {
            let rows = buckets::rows_at_once(n).min(size - row);
            bits.make(channel, cots, [3 * rows * n; 2])?;
            deviate(|script| script.bits(&mut bits.macs));
            let mut alike = MacHash::new(&oracle, &format!("triples {checks}"), true);
            maker.make(channel, bits, rows * n, &mut alike)?;
            let mut shifts = agree_alike(channel, &oracle, garbler, checks, alike.digest(), prg)?;
            checks += 1;
            let shifted = rows - usize::from(row == 0);
            let shifts: Vec<usize> = (0..shifted).map(|_| buckets::shift(&mut shifts, n)).collect();
            buckets::combine(channel, &mut openings, bits, rows, &shifts, sums)?;
        }
    }
    room.rows = std::mem::take(&mut maker.room);
    masks.make(channel, cots, [own_masks, peer_masks])?;
    deviate(|script| script.masks(&mut masks.macs));
    let ahead = openings.on_the_way();
    room.ahead = ahead;
    openings.check(channel)?;
    Ok(Independent { role, delta, oracle, demand, gates, masks, prg: prg.fork(), ahead })
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
