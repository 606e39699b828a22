//! The second phase: masks for every wire of a function, and of every AND gate's product of masks.

use super::bits::{Gates, GatesMut, Share, Shares, Stock, zeros};
use super::demand::Demand;
use super::deviation::deviate;
use super::independent::Independent;
use super::opening::Openings;
use super::oracle::Oracle;
use super::spent::Spent;
use super::stretch::{Part, Stretch};
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
    /// Runs that go side by side.
    pub(super) rows: usize,
    /// With masks, in the order of the plan, row after row.
    pub(super) gates: Stock,
    /// As the first phase left them.
    pub(super) masks: Shares,
    /// The masks of the outputs, row after row.
    pub(super) outputs: Zeroizing<Vec<Share>>,
    pub(super) prg: Prg,
    /// Batches that the link holds, as far as that was found.
    pub(super) ahead: usize,
    pub(super) spent: Spent,
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
        self.dependent_rows(channel, function, output_to, 1)
    }

    /// As [`dependent`](Self::dependent), for so many runs that go side by side.
    pub(super) fn dependent_rows<'a>(
        self,
        channel: &mut Channel,
        function: &'a Prepared,
        output_to: OutputTo,
        rows: usize,
    ) -> Result<Dependent<'a>> {
        let spent = self.spent.clone();
        spent.check()?;
        let made = Dependent::make(self, channel, function, output_to, rows);
        spent.record(made)
    }
}

impl<'a> Dependent<'a> {
    fn make(
        mut independent: Independent,
        channel: &mut Channel,
        function: &'a Prepared,
        output_to: OutputTo,
        rows: usize,
    ) -> Result<Self> {
        if Demand::of(function).times(rows) != independent.demand {
            return usage("the preparation is for other numbers of gates or inputs than the function has");
        }
        let Independent { role, delta, ahead, .. } = independent;
        let terms = Terms { rows, ..Terms::of(function, output_to) };
        let oracle = agree(channel, &independent.oracle, &terms)?;
        let stretch = Stretch::Rows(function.plan(1), rows);
        let mut gates = std::mem::replace(&mut independent.gates, Stock::zeros(0));
        let masks = std::mem::replace(&mut independent.masks, Shares::zeros(0, 0));
        let mut wires = Wires::new((function.circuit().shape(), function.owners()), role);
        let party = Party { garbler: role == Owner::Garbler, delta, ahead };
        let ahead = multiply(channel, &oracle, party, &stretch, gates.gates_mut(), &masks, &mut wires)?;
        let (outputs, prg) = (std::mem::take(&mut wires.outputs), independent.prg.fork());
        let spent = independent.spent.clone();
        Ok(Dependent {
            role,
            delta,
            oracle,
            function,
            output_to,
            rows,
            gates,
            masks,
            outputs,
            prg,
            ahead,
            spent,
        })
    }

    /// All rows.
    pub(super) fn stretch(&self) -> Stretch<'a> {
        Stretch::Rows(self.function.plan(1), self.rows)
    }

    /// The gates.
    pub(super) fn gates(&self) -> Gates<'_> {
        self.gates.gates().part(0..self.stretch().ands())
    }
}

/// What the parties must agree on of a run.
pub(super) struct Terms<'a> {
    /// A circuit or a program.
    pub(super) kind: &'static str,
    pub(super) digest: [u8; 32],
    pub(super) owners: &'a [Owner],
    pub(super) output_to: OutputTo,
    /// Runs that go side by side.
    pub(super) rows: usize,
}

impl<'a> Terms<'a> {
    /// Of one run.
    pub(super) fn of(function: &'a Prepared, output_to: OutputTo) -> Self {
        Terms { kind: "circuit", digest: function.digest(), owners: function.owners(), output_to, rows: 1 }
    }
}

/// Compares function and rule, which every later hash is bound to.
pub(super) fn agree(channel: &mut Channel, oracle: &Oracle, terms: &Terms<'_>) -> Result<Oracle> {
    // proof: authenticated-run 2.1
    let mut transcript = oracle.transcript("function");
    transcript.append(terms.kind, &terms.digest);
    for &owner in terms.owners {
        transcript.append_u64("owner", (owner == Owner::Garbler) as u64);
    }
    transcript.append_u64("output to garbler", terms.output_to.garbler() as u64);
    transcript.append_u64("output to evaluator", terms.output_to.evaluator() as u64);
    transcript.append_u64("rows", terms.rows as u64);
    let (mut mine, mut theirs) = ([0u8; 32], [0u8; 32]);
    transcript.challenge_bytes("terms", &mut mine);
    channel.send(&mine)?;
    channel.recv(&mut theirs)?;
    if theirs != mine {
        return mismatch("the function, the owners of its inputs, who learns the outputs, or the rows");
    }
    Ok(oracle.bound_to(&mut transcript))
}

/// The masks of wires, in a plan's slots.
pub(super) struct Wires {
    slots: Zeroizing<Vec<Share>>,
    /// The slots of the own inputs and of the peer's.
    own: Vec<u32>,
    peer: Vec<u32>,
    /// The masks of the outputs of the rows that ended.
    outputs: Zeroizing<Vec<Share>>,
}

impl Wires {
    pub(super) fn new((shape, owners): (&Shape, &[Owner]), role: Owner) -> Self {
        let slots = Zeroizing::new(vec![Share::default(); FIRST_INPUT as usize + shape.input_bits()]);
        let [own, peer] = [role, role.other()].map(|owner| slots_of(shape, owners, owner));
        Wires { slots, own, peer, outputs: Zeroizing::default() }
    }

    /// Gives the inputs of a row their masks, which stand behind those of `ands` gates, row after row.
    /// Constants have none, and an input's is its owner's alone.
    pub(super) fn begin(&mut self, row: usize, ands: usize, masks: &Shares) {
        let behind = |inputs: &[u32]| ands + row * inputs.len();
        for (&slot, &mac) in self.own.iter().zip(&masks.macs[behind(&self.own)..]) {
            self.slots[slot as usize] = Share { mac, ..Share::default() };
        }
        for (&slot, &key) in self.peer.iter().zip(&masks.keys[behind(&self.peer)..]) {
            self.slots[slot as usize] = Share { key, ..Share::default() };
        }
    }

    /// Those in `slots`.
    pub(super) fn of(&self, slots: &[u32]) -> Zeroizing<Vec<Share>> {
        Zeroizing::new(slots.iter().map(|&slot| self.slots[slot as usize]).collect())
    }

    /// Makes room for a stretch's slots, and for the outputs of its rows.
    fn reserve(&mut self, stretch: &Stretch<'_>) {
        let slots = stretch.slots();
        if self.slots.len() < slots {
            // Not where they stand, for what has to move leaves copies behind.
            let mut more = Zeroizing::new(vec![Share::default(); slots]);
            more[..self.slots.len()].copy_from_slice(&self.slots);
            self.slots = more;
        }
        let (outputs, rows) = stretch.outputs();
        self.outputs = Zeroizing::new(Vec::with_capacity(outputs.len() * rows));
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
    wires.reserve(stretch);
    let (outputs, _) = stretch.outputs();
    // proof: authenticated-run 2.2
    let mut openings = Openings::new(oracle, "products of masks", garbler, delta, ahead);
    let mut gates = gates.part(0..stretch.ands());
    let room = 2 * BATCH.max(stretch.largest_batch()).min(gates.len());
    let mut macs = zeros(room);
    let mut spare: Vec<Buffer> = Vec::new();
    // What was shown, of which gates, and the keys of what the peer shows.
    let mut waiting: VecDeque<(BitVec, Range<usize>, Buffer)> = VecDeque::new();
    let mut begun = 0;
    let mut parts = stretch.parts().peekable();
    // The part whose first AND gate has this number.
    let mut pass = |part: Part<'_>, first: usize, gates: GatesMut<'_>, differences: Pair<'_>| {
        if let Some(row) = part.begins {
            wires.begin(row, stretch.ands(), masks);
        }
        follow(&mut wires.slots, part.piece, masks, first, gates, differences);
        if part.ends {
            wires.outputs.extend(outputs.iter().map(|&slot| wires.slots[slot as usize]));
        }
    };
    // Batches' shares are on their way while the gates behind them are followed.
    while begun < gates.len() || !waiting.is_empty() {
        let start = begun;
        if begun < gates.len() {
            let mut keys = spare.pop().unwrap_or_else(|| zeros(room));
            while let Some(part) = parts.next_if(|part| begun - start + part.piece.ands <= room / 2) {
                let (first, at) = (begun, 2 * (begun - start));
                begun += part.piece.ands;
                pass(part, first, gates.part(first..begun), (&mut macs[at..], &mut keys[at..]));
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
    for part in parts {
        pass(part, begun, gates.part(0..0), (&mut [], &mut []));
    }
    deviate(|script| script.gate_masks(&mut gates));
    let ahead = openings.on_the_way();
    openings.check(channel)?;
    Ok(ahead)
}

/// MACs and keys.
type Pair<'a> = (&'a mut [Block], &'a mut [Block]);

/// Follows a piece, the first of whose AND gates is number `first`: each gives its result its mask and takes
/// its operands' masks; the differences of those to the triple go to `macs` and `keys`, two a gate.
fn follow(
    wires: &mut [Share],
    piece: Piece<'_>,
    masks: &Shares,
    first: usize,
    mut gates: GatesMut<'_>,
    (macs, keys): Pair<'_>,
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
