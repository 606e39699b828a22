//! The second phase: masks for every wire of a function, and of every AND gate's product of masks.

use super::bits::{Gate, Share, Shares, shares, zeros};
use super::demand::Demand;
use super::deviation::deviate;
use super::independent::Independent;
use super::opening::Openings;
use super::oracle::Oracle;
use super::{PIECE, mismatch, usage};
use crate::circuit::Piece;
use crate::parties::slots_of;
use crate::{OutputTo, Owner, Prepared, Result};
use tacit_crypto::{BitVec, Block, Buffer, Prg};
use tacit_net::Channel;
use zeroize::{Zeroize, Zeroizing};

/// One party's side of a run that lacks only the inputs.
pub struct Dependent<'a> {
    pub(super) role: Owner,
    pub(super) delta: Block,
    pub(super) oracle: Oracle,
    pub(super) function: &'a Prepared,
    pub(super) output_to: OutputTo,
    /// [`Gate`]s with masks, in the order of the plan.
    pub(super) gates: Buffer,
    /// As the first phase left them.
    pub(super) masks: Shares,
    pub(super) outputs: Zeroizing<Vec<Share>>,
    pub(super) prg: Prg,
}

impl Drop for Dependent<'_> {
    fn drop(&mut self) {
        self.delta.zeroize();
    }
}

impl Independent {
    /// The second phase: binds the preparation to `function`, the same on both sides, and to who learns the outputs.
    ///
    /// Errors: `Usage` when the function needs other numbers than were prepared; `Mismatch` when the peer has another
    /// function or rule; `Cheated` when a check failed; those of the link.
    pub fn dependent<'a>(
        self,
        channel: &mut Channel,
        function: &'a Prepared,
        output_to: OutputTo,
    ) -> Result<Dependent<'a>> {
        Dependent::make(self, channel, function, output_to)
    }
}

impl<'a> Dependent<'a> {
    fn make(
        mut independent: Independent,
        channel: &mut Channel,
        function: &'a Prepared,
        output_to: OutputTo,
    ) -> Result<Self> {
        if Demand::of(function) != independent.demand {
            return usage("the preparation is for other numbers of gates or inputs than the function has");
        }
        let Independent { role, delta, .. } = independent;
        let oracle = agree(channel, &independent.oracle, function, output_to)?;
        let mut openings = Openings::new(&oracle, "products of masks", role == Owner::Garbler, delta);
        let mut gates = std::mem::replace(&mut independent.gates, zeros(0));
        let masks = std::mem::replace(&mut independent.masks, Shares::zeros(0, 0));
        let wires = multiply(channel, &mut openings, &independent, function, &mut gates, &masks)?;
        let outputs = function.plan(1).outputs().iter().map(|&slot| wires[slot as usize]).collect();
        let outputs = Zeroizing::new(outputs);
        openings.check(channel)?;
        let prg = independent.prg.fork();
        Ok(Dependent { role, delta, oracle, function, output_to, gates, masks, outputs, prg })
    }

    /// The gates.
    pub(super) fn gates(&self) -> &[Gate] {
        &self.gates.as_chunks::<6>().0[..self.function.plan(1).ands() as usize]
    }
}

/// Compares function and rule, which every later hash is bound to.
fn agree(channel: &mut Channel, oracle: &Oracle, function: &Prepared, output_to: OutputTo) -> Result<Oracle> {
    let mut transcript = oracle.transcript("function");
    transcript.append("circuit", &function.digest());
    for &owner in function.owners() {
        transcript.append_u64("owner", (owner == Owner::Garbler) as u64);
    }
    transcript.append_u64("output to garbler", output_to.garbler() as u64);
    transcript.append_u64("output to evaluator", output_to.evaluator() as u64);
    let (mut mine, mut theirs) = ([0u8; 32], [0u8; 32]);
    transcript.challenge_bytes("terms", &mut mine);
    channel.send(&mine)?;
    channel.recv(&mut theirs)?;
    if theirs != mine {
        return mismatch("the function, the owners of its inputs, or who learns the outputs");
    }
    Ok(oracle.bound_to(&mut transcript))
}

/// The masks of the inputs, in a plan's slots. Constants have none, and an input's is its owner's alone.
fn input_masks(function: &Prepared, role: Owner, masks: &Shares) -> Zeroizing<Vec<Share>> {
    let plan = function.plan(1);
    let mut wires = Zeroizing::new(vec![Share::default(); plan.slots()]);
    let (shape, ands) = (function.circuit().shape(), plan.ands() as usize);
    let peer = if role == Owner::Garbler { Owner::Evaluator } else { Owner::Garbler };
    let own_slots = slots_of(shape, function.owners(), role);
    for (&slot, &mac) in own_slots.iter().zip(&masks.macs[ands..]) {
        wires[slot as usize].mac = mac;
    }
    let peer_slots = slots_of(shape, function.owners(), peer);
    for (&slot, &key) in peer_slots.iter().zip(&masks.keys[ands..]) {
        wires[slot as usize].key = key;
    }
    wires
}

/// AND gates of the largest piece, which one step may be.
pub(super) fn largest_piece(function: &Prepared) -> usize {
    function.plan(1).pieces(PIECE).map(|piece| piece.ands).max().unwrap_or(0)
}

/// Gates whose differences cross at a time, at least.
const BATCH: usize = 1 << 15;

/// Beaver's products of the masks of AND gates' operands, by the triples that `gates` holds; returns the masks of all wires.
///
/// With d = a ⊕ λ_1 and e = b ⊕ λ_2 open, λ_1·λ_2 = c ⊕ e·λ_1 ⊕ d·λ_2 ⊕ d·e.
fn multiply(
    channel: &mut Channel,
    openings: &mut Openings,
    of: &Independent,
    function: &Prepared,
    gates: &mut [Block],
    masks: &Shares,
) -> Result<Zeroizing<Vec<Share>>> {
    let (garbler, delta, plan) = (of.role == Owner::Garbler, of.delta, function.plan(1));
    let mut wires = input_masks(function, of.role, masks);
    let gates = &mut gates.as_chunks_mut::<6>().0[..plan.ands() as usize];
    let room = 2 * BATCH.max(largest_piece(function)).min(gates.len());
    let (mut macs, mut keys, mut last) = (zeros(room), zeros(room), zeros(room));
    let (mut shown, mut waiting, mut begun) = (BitVec::default(), 0..0, 0);
    let mut pieces = plan.pieces(PIECE).peekable();
    // Each batch's shares are on their way while the gates behind it are followed.
    while begun < gates.len() || !waiting.is_empty() {
        let (mine, before) = (std::mem::take(&mut shown), waiting);
        std::mem::swap(&mut keys, &mut last);
        waiting = begun..begun;
        while let Some(piece) = pieces.next_if(|piece| waiting.len() + piece.ands <= room / 2) {
            let here = (&mut macs[2 * waiting.len()..], &mut keys[2 * waiting.len()..]);
            begun += piece.ands;
            follow(&mut wires, piece, masks, waiting.end, &mut gates[waiting.end..begun], here);
            waiting.end = begun;
        }
        if !waiting.is_empty() {
            shown = openings.offer(channel, &macs[..2 * waiting.len()])?;
        }
        if !before.is_empty() {
            let opened = openings.take(channel, mine, &mut last[..2 * before.len()])?;
            for (i, gate) in gates[before].iter_mut().enumerate() {
                let [d, e] = [2 * i, 2 * i + 1].map(|i| Block::mask(opened.get(i)));
                let [first, second, product] = shares(gate);
                let sum = product.xor(first.and(e)).xor(second.and(d)).plus(d & e, garbler, delta);
                gate[4..].copy_from_slice(&sum.blocks());
            }
        }
    }
    // XOR gates behind the last AND gate.
    for piece in pieces {
        follow(&mut wires, piece, masks, begun, &mut [], (&mut [], &mut []));
    }
    deviate(|script| script.gate_masks(gates));
    Ok(wires)
}

/// Follows a piece, the first of whose AND gates is number `first`: each gives its result its mask and takes its operands' masks; the
/// differences of those to the triple go to `macs` and `keys`, two a gate.
fn follow(
    wires: &mut [Share],
    piece: Piece<'_>,
    masks: &Shares,
    first: usize,
    gates: &mut [Gate],
    (macs, keys): (&mut [Block], &mut [Block]),
) {
    let pairs = macs.as_chunks_mut::<2>().0.iter_mut().zip(keys.as_chunks_mut::<2>().0);
    let mut left = gates.iter_mut().zip(pairs).zip(first..);
    for step in piece.one_by_one() {
        let (xors, ands) = step.ops.split_at(step.ops.len() - step.ands);
        for op in xors {
            wires[op.out as usize] = wires[op.a as usize].xor(wires[op.b as usize]);
        }
        for (op, ((gate, (macs, keys)), number)) in ands.iter().zip(left.by_ref()) {
            let [a, b, c] = shares(gate);
            let operands = [wires[op.a as usize], wires[op.b as usize]];
            let differences = [a.xor(operands[0]), b.xor(operands[1])];
            *macs = differences.map(|share| share.mac);
            *keys = differences.map(|share| share.key);
            let mask = masks.get(number);
            let product = c.xor(mask);
            let [first, second] = operands;
            *gate = [first.mac, first.key, second.mac, second.key, product.mac, product.key];
            wires[op.out as usize] = mask;
        }
    }
}
