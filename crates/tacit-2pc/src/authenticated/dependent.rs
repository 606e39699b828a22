//! The second phase: masks for every wire of a function, and of every AND gate's product of masks.

use super::bits::{Share, Shares, zeros};
use super::deviation::deviate;
use super::independent::{GateStock, Independent};
use super::online;
use super::opening::Openings;
use super::session::{Demand, Oracle};
use super::{PIECE, mismatch, usage};
use crate::parties::slots_of;
use crate::{OutputTo, Owner, Prepared, Result};
use tacit_crypto::{BitVec, Block, Prg};
use tacit_net::Channel;
use zeroize::{Zeroize, Zeroizing};

/// The masks of an AND gate: of its first operand, of its second, and λ_1·λ_2 ⊕ the result's.
pub(super) type GateMasks = [Share; 3];

/// One party's side of a run that lacks only the inputs.
pub struct Dependent<'a> {
    pub(super) role: Owner,
    pub(super) delta: Block,
    pub(super) oracle: Oracle,
    pub(super) function: &'a Prepared,
    pub(super) output_to: OutputTo,
    /// In the order of the plan.
    pub(super) gates: Zeroizing<Vec<GateMasks>>,
    /// Of the own inputs MACs, of the peer's keys.
    pub(super) inputs: Shares,
    pub(super) outputs: Zeroizing<Vec<Share>>,
    pub(super) prg: Prg,
}

impl Drop for Dependent<'_> {
    fn drop(&mut self) {
        self.delta.zeroize();
    }
}

impl<'a> Dependent<'a> {
    pub(super) fn make(
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
        let garbler = role == Owner::Garbler;
        let mut openings = Openings::new(&oracle, "products of masks", garbler, delta);
        let mut stock = std::mem::take(&mut independent.gates);
        let inputs = std::mem::replace(&mut independent.inputs, Shares { macs: zeros(0), keys: zeros(0) });
        let mut masks = WireMasks::new(function, role, &inputs);
        let mut gates = Zeroizing::new(Vec::with_capacity(stock.len()));
        let mut left = stock.iter_mut();
        // Gates whose differences are opened together: as many as gather, since the masks of wires take no message.
        for piece in function.plan(1).pieces(PIECE) {
            masks.follow(piece, &mut left, &mut gates);
        }
        let outputs = function.plan(1).outputs().iter().map(|&slot| masks.wires[slot as usize]).collect();
        let outputs = Zeroizing::new(outputs);
        multiply(channel, &mut openings, &stock, &mut gates)?;
        openings.check(channel)?;
        let prg = independent.prg.fork();
        Ok(Dependent { role, delta, oracle, function, output_to, gates, inputs, outputs, prg })
    }

    /// The last phase: runs on `input`, this party's input bits. Returns the outputs if this party learns them.
    ///
    /// Errors: `Usage` for another number of bits; `Cheated` when a check failed; those of the link.
    pub fn online(self, channel: &mut Channel, input: &BitVec) -> Result<Option<BitVec>> {
        online::run(self, channel, input)
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

/// The masks of the wires in a plan's slots. Constants have none.
struct WireMasks {
    wires: Zeroizing<Vec<Share>>,
}

impl WireMasks {
    fn new(function: &Prepared, role: Owner, inputs: &Shares) -> Self {
        let plan = function.plan(1);
        let mut wires = Zeroizing::new(vec![Share::default(); plan.slots()]);
        let shape = function.circuit().shape();
        let peer = if role == Owner::Garbler { Owner::Evaluator } else { Owner::Garbler };
        // An input's mask is its owner's alone.
        let own_slots = slots_of(shape, function.owners(), role);
        for (&slot, &mac) in own_slots.iter().zip(inputs.macs.iter()) {
            wires[slot as usize].mac = mac;
        }
        let peer_slots = slots_of(shape, function.owners(), peer);
        for (&slot, &key) in peer_slots.iter().zip(inputs.keys.iter()) {
            wires[slot as usize].key = key;
        }
        WireMasks { wires }
    }

    /// Follows a piece: each AND gate takes its mask from the stock, which is all that is put into `gates` for the product.
    fn follow<'s>(
        &mut self,
        piece: crate::circuit::Piece<'_>,
        stock: &mut impl Iterator<Item = &'s mut GateStock>,
        gates: &mut Vec<GateMasks>,
    ) {
        for step in piece.one_by_one() {
            let (xors, ands) = step.ops.split_at(step.ops.len() - step.ands);
            for op in xors {
                self.wires[op.out as usize] = self.wires[op.a as usize].xor(self.wires[op.b as usize]);
            }
            for (op, stock) in ands.iter().zip(stock.by_ref()) {
                gates.push([self.wires[op.a as usize], self.wires[op.b as usize], stock.mask]);
                self.wires[op.out as usize] = stock.mask;
            }
        }
    }
}

/// Beaver's products: with d = a ⊕ λ_1 and e = b ⊕ λ_2 open, λ_1·λ_2 = c ⊕ e·a ⊕ d·λ_2.
fn multiply(
    channel: &mut Channel,
    openings: &mut Openings,
    stock: &[GateStock],
    gates: &mut [GateMasks],
) -> Result<()> {
    /// Gates a message: bounds what is held beside the gates.
    const TOGETHER: usize = 1 << 17;
    for (stock, gates) in stock.chunks(TOGETHER).zip(gates.chunks_mut(TOGETHER)) {
        let n = 2 * gates.len();
        let mut differences = Shares { macs: zeros(n), keys: zeros(n) };
        let both = differences.macs.iter_mut().zip(differences.keys.iter_mut());
        let shares = gates
            .iter()
            .zip(stock)
            .flat_map(|(gate, stock)| [gate[0].xor(stock.triple[0]), gate[1].xor(stock.triple[1])]);
        for ((mac, key), share) in both.zip(shares) {
            (*mac, *key) = (share.mac, share.key);
        }
        let opened = openings.open(channel, differences)?;
        for (i, (gate, stock)) in gates.iter_mut().zip(stock).enumerate() {
            let (d, e) = (opened.mask(2 * i), opened.mask(2 * i + 1));
            let [a, _, c] = stock.triple;
            gate[2] = gate[2].xor(c).xor(a.and(e)).xor(gate[1].and(d));
        }
    }
    deviate(|script| script.gate_masks(gates));
    Ok(())
}
