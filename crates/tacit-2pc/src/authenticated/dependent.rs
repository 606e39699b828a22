//! The second phase: masks for every wire of a function, and of every AND gate's product of masks.

use super::bits::{Gates, GatesMut, Share, Shares, Stock, zeros};
use super::demand::Demand;
use super::deviation::deviate;
use super::independent::Independent;
use super::opening::Openings;
use super::oracle::Oracle;
use super::stretch::Stretch;
use super::{mismatch, usage};
use crate::circuit::{FIRST_INPUT, Piece, Shape};
use crate::parties::slots_of;
use crate::{OutputTo, Owner, Prepared, Result};
use std::collections::VecDeque;
use std::ops::Range;
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
    /// With masks, in the order of the plan.
    pub(super) gates: Stock,
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
    /// The second phase: binds the preparation to `function`, the same on both sides, and to who learns the
    /// outputs.
    ///
    /// Errors: `Usage` when the function needs other numbers than were prepared; `Mismatch` when the peer has
    /// another function or rule; `Cheated` when a check failed; those of the link.
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
        let Independent { role, delta, ahead, .. } = independent;
        let oracle = agree(channel, &independent.oracle, &Terms::of(function, output_to))?;
        let plan = function.plan(1);
        let mut gates = std::mem::replace(&mut independent.gates, Stock::zeros(0));
        let masks = std::mem::replace(&mut independent.masks, Shares::zeros(0, 0));
        let ands = plan.ands() as usize;
        let mut wires = Wires::new((function.circuit().shape(), function.owners()), role, ands, &masks);
        let party = Party { garbler: role == Owner::Garbler, delta, ahead };
        multiply(channel, &oracle, party, &Stretch::whole(plan), gates.gates_mut(), &masks, &mut wires)?;
        let (outputs, prg) = (wires.of(plan.outputs()), independent.prg.fork());
        Ok(Dependent { role, delta, oracle, function, output_to, gates, masks, outputs, prg })
    }

    /// The gates.
    pub(super) fn gates(&self) -> Gates<'_> {
        self.gates.gates().part(0..self.function.plan(1).ands() as usize)
    }
}

/// What the parties must agree on of a run.
pub(super) struct Terms<'a> {
    /// A circuit or a program.
    pub(super) kind: &'static str,
    pub(super) digest: [u8; 32],
    pub(super) owners: &'a [Owner],
    pub(super) output_to: OutputTo,
}

impl<'a> Terms<'a> {
    pub(super) fn of(function: &'a Prepared, output_to: OutputTo) -> Self {
        Terms { kind: "circuit", digest: function.digest(), owners: function.owners(), output_to }
    }
}

/// Compares function and rule, which every later hash is bound to.
pub(super) fn agree(channel: &mut Channel, oracle: &Oracle, terms: &Terms<'_>) -> Result<Oracle> {
    let mut transcript = oracle.transcript("function");
    transcript.append(terms.kind, &terms.digest);
    for &owner in terms.owners {
        transcript.append_u64("owner", (owner == Owner::Garbler) as u64);
    }
    transcript.append_u64("output to garbler", terms.output_to.garbler() as u64);
    transcript.append_u64("output to evaluator", terms.output_to.evaluator() as u64);
    let (mut mine, mut theirs) = ([0u8; 32], [0u8; 32]);
    transcript.challenge_bytes("terms", &mut mine);
    channel.send(&mine)?;
    channel.recv(&mut theirs)?;
    if theirs != mine {
        return mismatch("the function, the owners of its inputs, or who learns the outputs");
    }
    Ok(oracle.bound_to(&mut transcript))
}

/// The masks of wires, in a plan's slots.
pub(super) struct Wires(Zeroizing<Vec<Share>>);

impl Wires {
    /// Those of the inputs, which stand behind the masks of `ands` gates. Constants have none, and an input's
    /// is its owner's alone.
    pub(super) fn new((shape, owners): (&Shape, &[Owner]), role: Owner, ands: usize, masks: &Shares) -> Self {
        let mut wires = Zeroizing::new(vec![Share::default(); FIRST_INPUT as usize + shape.input_bits()]);
        for (&slot, &mac) in slots_of(shape, owners, role).iter().zip(&masks.macs[ands..]) {
            wires[slot as usize].mac = mac;
        }
        for (&slot, &key) in slots_of(shape, owners, role.other()).iter().zip(&masks.keys[ands..]) {
            wires[slot as usize].key = key;
        }
        Wires(wires)
    }

    /// Those in `slots`.
    pub(super) fn of(&self, slots: &[u32]) -> Zeroizing<Vec<Share>> {
        Zeroizing::new(slots.iter().map(|&slot| self.0[slot as usize]).collect())
    }

    fn reserve(&mut self, slots: usize) {
        if self.0.len() < slots {
            // Not where they stand, for what has to move leaves copies behind.
            let mut more = Zeroizing::new(vec![Share::default(); slots]);
            more[..self.0.len()].copy_from_slice(&self.0);
            self.0 = more;
        }
    }
}

/// The party that multiplies.
#[derive(Clone, Copy)]
pub(super) struct Party {
    pub(super) garbler: bool,
    pub(super) delta: Block,
    /// Batches of openings that the link holds, as far as that was found.
    pub(super) ahead: usize,
}

/// Gates whose differences cross at a time, at least: they stay in the second-level cache.
const BATCH: usize = 1 << 12;

/// Beaver's products of the masks of the operands of a stretch's AND gates, by the triples that `gates`
/// holds; gives all its wires their masks. Returns, with every opening checked, how many batches of
/// them the link holds.
///
/// With d = a ⊕ λ_1 and e = b ⊕ λ_2 open, λ_1·λ_2 = c ⊕ e·λ_1 ⊕ d·λ_2 ⊕ d·e.
pub(super) fn multiply(
    channel: &mut Channel,
    oracle: &Oracle,
    Party { garbler, delta, ahead }: Party,
    stretch: &Stretch<'_>,
    mut gates: GatesMut<'_>,
    masks: &Shares,
    wires: &mut Wires,
) -> Result<usize> {
    wires.reserve(stretch.slots());
    let wires = &mut wires.0[..];
    let mut openings = Openings::new(oracle, "products of masks", garbler, delta, ahead);
    let mut gates = gates.part(0..stretch.ands());
    let room = 2 * BATCH.max(stretch.largest_piece()).min(gates.len());
    let mut macs = zeros(room);
    let mut spare: Vec<Buffer> = Vec::new();
    // What was shown, of which gates, and the keys of what the peer shows.
    let mut waiting: VecDeque<(BitVec, Range<usize>, Buffer)> = VecDeque::new();
    let mut begun = 0;
    let mut pieces = stretch.pieces().peekable();
    // Batches' shares are on their way while the gates behind them are followed.
    while begun < gates.len() || !waiting.is_empty() {
        let start = begun;
        if begun < gates.len() {
            let mut keys = spare.pop().unwrap_or_else(|| zeros(room));
            while let Some(piece) = pieces.next_if(|piece| begun - start + piece.ands <= room / 2) {
                let (first, at) = (begun, 2 * (begun - start));
                begun += piece.ands;
                let differences = (&mut macs[at..], &mut keys[at..]);
                follow(wires, piece, masks, first, gates.part(first..begun), differences);
            }
            let mine = openings.offer(channel, &macs[..2 * (begun - start)])?;
            waiting.push_back((mine, start..begun, keys));
        }
        if begun < gates.len() && waiting.len() < openings.on_the_way() {
            continue;
        }
        if let Some((mine, range, mut keys)) = waiting.pop_front() {
            let opened = openings.take(channel, mine, &mut keys[..2 * range.len()])?;
            spare.push(keys);
            for (i, [first, second, product]) in gates.part(range).iter_mut().enumerate() {
                let [d, e] = [2 * i, 2 * i + 1].map(|i| Block::mask(opened.get(i)));
                let sum = product.get().xor(first.get().and(e)).xor(second.get().and(d));
                product.set(sum.plus(d & e, garbler, delta));
            }
        }
    }
    // XOR gates behind the last AND gate.
    for piece in pieces {
        follow(wires, piece, masks, begun, gates.part(0..0), (&mut [], &mut []));
    }
    deviate(|script| script.gate_masks(&mut gates));
    let ahead = openings.on_the_way();
    openings.check(channel)?;
    Ok(ahead)
}

/// Follows a piece, the first of whose AND gates is number `first`: each gives its result its mask and takes
/// its operands' masks; the differences of those to the triple go to `macs` and `keys`, two a gate.
fn follow(
    wires: &mut [Share],
    piece: Piece<'_>,
    masks: &Shares,
    first: usize,
    mut gates: GatesMut<'_>,
    (macs, keys): (&mut [Block], &mut [Block]),
) {
    let pairs = macs.as_chunks_mut::<2>().0.iter_mut().zip(keys.as_chunks_mut::<2>().0);
    let mut left = gates.iter_mut().zip(pairs).zip(first..);
    for step in piece.one_by_one() {
        let (xors, ands) = step.ops.split_at(step.ops.len() - step.ands);
        for op in xors {
            wires[op.out as usize] = wires[op.a as usize].xor(wires[op.b as usize]);
        }
        for (op, (([a, b, c], (macs, keys)), number)) in ands.iter().zip(left.by_ref()) {
            let operands = [wires[op.a as usize], wires[op.b as usize]];
            let differences = [a.get().xor(operands[0]), b.get().xor(operands[1])];
            *macs = differences.map(|share| share.mac);
            *keys = differences.map(|share| share.key);
            let mask = masks.get(number);
            let product = c.get().xor(mask);
            a.set(operands[0]);
            b.set(operands[1]);
            c.set(product);
            wires[op.out as usize] = mask;
        }
    }
}
