//! A fold: a circuit on every row of shared bits, what it makes of all rows combined into one, and a circuit on that,
//! whose outputs alone are opened.
//!
//! The parties hold XOR shares of the rows, and of everything between them and the last circuit. What a row makes are
//! [numbers](Part), each of which is added up over all rows, or of which the largest is kept:
//!
//! - A sum uses carry-save adders over rows: three bits of one weight become one bit of that weight and one of the
//!   next, for one AND gate, until two bits of each weight are left. All adders of a step are rows of one circuit, so
//!   a step is a level, and there are about log₁.₅ of the number of rows. n rows of b bits take about n·b AND gates.
//! - The largest of n numbers is found by halving: ⌊n/2⌋ pairs are compared side by side, and an odd one waits.
//!
//! The last circuit can have coins too: bits that each party draws half of, so that they are uniform and known to neither
//! as long as one of them draws its half at random.
//!
//! Sizes and order of all steps follow from the number of rows and the circuits. Security, rounds and bytes are those of
//! [rows side by side](super), with one comparison of terms for the whole.

use super::packed::{Packed, transpose};
use super::triples::Triples;
use super::{Batch, Compared, Engine, Layout, PROTOCOL, Streams, Terms, agree_for, fitting, levels};
use crate::circuit::{Bit, Builder, Circuit, FIRST_INPUT, Form, InvalidCircuit, Uint};
use crate::{Error, OutputTo, Owner, Prepared, Result};
use tacit_crypto::transcript::Transcript;
use tacit_crypto::{BitVec, Prg};
use tacit_net::Channel;
use zeroize::Zeroizing;

const FOLD_TERMS: Compared =
    Compared { protocol: PROTOCOL, sizes: "tacit fold sizes v1", rest: "tacit fold v1", scheme: "gmw" };

/// What is made of a number of every row.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Part {
    /// Their sum, of unsigned ones, in as many bits more as the number of rows has.
    Sum(Uint),
    /// Their sum, of ones in two's complement, in as many bits more.
    SignedSum(Uint),
    /// The largest of unsigned ones.
    Largest(Uint),
}

/// A kind of [`Part`], and its bits in a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Sum { signed: bool },
    Largest,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Field {
    kind: Kind,
    width: usize,
}

/// A party's share of the rows: of a row the bits from 64 times the second number on, lowest first.
pub type Words<'a> = dyn Fn(usize, usize) -> u64 + 'a;

/// What a row of so many shared bits makes; the same in either form.
pub type Row<'a> = dyn Fn(&mut Builder, &Uint) -> Vec<Part> + 'a;

/// What is opened of all rows' parts, in the order in which a row makes them: sums of as many bits more as the number
/// of rows has.
pub type Last<'a> = dyn Fn(&mut Builder, &[Uint]) -> Vec<Uint> + 'a;

/// The same, of parts and coins.
pub type LastOfCoins<'a> = dyn Fn(&mut Builder, &[Uint], &Uint) -> Vec<Uint> + 'a;

/// A fold made ready for a number of rows.
pub struct Fold {
    rows: usize,
    bits: usize,
    row: Prepared,
    fields: Vec<Field>,
    adder: Prepared,
    /// Of each field the larger of two, where that is kept.
    larger: Vec<Option<Prepared>>,
    last: Prepared,
    coins: usize,
}

/// Bits that a count of so many rows has.
fn count_bits(rows: usize) -> usize {
    (usize::BITS - rows.leading_zeros()) as usize
}

/// A circuit with one input, in both forms.
fn prepared(bits: usize, body: &mut dyn FnMut(&mut Builder, &Uint) -> Vec<Uint>) -> Result<Prepared> {
    let mut build = |form| -> std::result::Result<Circuit, InvalidCircuit> {
        let mut builder = Builder::with_form(form);
        let input = builder.input(bits as u32);
        let outputs = body(&mut builder, &input);
        Ok(builder.finish(&outputs)?.pruned())
    };
    let fault = |_| Error::Usage { protocol: PROTOCOL, what: "a part of the fold has no circuit" };
    let (small, shallow) = (build(Form::Small).map_err(fault)?, build(Form::Shallow).map_err(fault)?);
    Prepared::new(small, vec![Owner::Garbler])?.with_shallow(shallow)
}

impl Fold {
    /// The fold of `rows` rows of `bits` shared bits.
    ///
    /// Errors without rows, and where a circuit cannot be built.
    pub fn new(rows: usize, bits: usize, row: &Row<'_>, last: &Last<'_>) -> Result<Self> {
        Self::with_coins(rows, bits, row, 0, &|builder, totals, _| last(builder, totals))
    }

    /// The same, whose last circuit has so many coins.
    ///
    /// Errors as [`new`](Self::new).
    pub fn with_coins(
        rows: usize,
        bits: usize,
        row: &Row<'_>,
        coins: usize,
        last: &LastOfCoins<'_>,
    ) -> Result<Self> {
        if rows == 0 {
            return Err(Error::Usage { protocol: PROTOCOL, what: "a fold of no rows" });
        }
        let mut fields = Vec::new();
        let row = prepared(bits, &mut |builder, input| {
            let parts = row(builder, input);
            fields.clear();
            let numbers = parts.into_iter().map(|part| {
                let (kind, number) = match part {
                    Part::Sum(number) => (Kind::Sum { signed: false }, number),
                    Part::SignedSum(number) => (Kind::Sum { signed: true }, number),
                    Part::Largest(number) => (Kind::Largest, number),
                };
                fields.push(Field { kind, width: number.bits().len() });
                // Moved by half its range: what that adds to the sum is known.
                if kind == (Kind::Sum { signed: true }) { flipped(&number) } else { number }
            });
            numbers.collect()
        })?;
        let adder = prepared(3, &mut |builder, input| {
            let [a, b, c] = [0, 1, 2].map(|at| input.bits()[at]);
            let half = builder.xor(a, b);
            let sum = builder.xor(half, c);
            let carry = builder.majority(a, b, c);
            vec![Uint::from_bits(vec![sum]), Uint::from_bits(vec![carry])]
        })?;
        let larger = fields.iter().map(|field| {
            let pair = |builder: &mut Builder, input: &Uint| {
                let halves = [0..field.width, field.width..2 * field.width].map(|half| input.slice(half));
                vec![builder.max(&halves[0], &halves[1])]
            };
            (field.kind == Kind::Largest).then(|| prepared(2 * field.width, &mut { pair })).transpose()
        });
        let larger = larger.collect::<Result<_>>()?;
        let left = left(rows, &fields);
        let last = prepared(left.iter().flatten().sum::<usize>() + coins, &mut |builder, input| {
            let mut bits = input.bits().iter().copied();
            let mut totals = Vec::with_capacity(fields.len());
            for (field, columns) in fields.iter().zip(&left) {
                let columns: Vec<Vec<Bit>> =
                    columns.iter().map(|&length| bits.by_ref().take(length).collect()).collect();
                totals.push(field.total(builder, rows, &columns));
            }
            last(builder, &totals, &Uint::from_bits(bits.collect()))
        })?;
        Ok(Fold { rows, bits, row, fields, adder, larger, last, coins })
    }

    /// What both parties compare of it: the number of rows, and all circuits.
    pub fn digest(&self) -> [u8; 32] {
        let mut transcript = Transcript::new("tacit fold circuits v1");
        transcript.append_u64("rows", self.rows as u64);
        for field in &self.fields {
            let kind = match field.kind {
                Kind::Sum { signed } => u64::from(signed),
                Kind::Largest => 2,
            };
            transcript.append_u64("kind", kind);
            transcript.append_u64("width", field.width as u64);
        }
        // Either form, whichever runs.
        for function in [Some(&self.row), self.row.shallow(), Some(&self.last), self.last.shallow()] {
            transcript.append("circuit", &function.map_or([0; 32], Prepared::digest));
        }
        let mut digest = [0; 32];
        transcript.challenge_bytes("digest", &mut digest);
        digest
    }

    /// The circuits that run one after the other, each on so many rows.
    fn steps(&self) -> Vec<(&Prepared, usize)> {
        let mut steps = vec![(fitting(&self.row, self.rows), self.rows)];
        let mut lengths = lengths(self.rows, &self.fields);
        loop {
            let adders = adders(&lengths);
            if adders == 0 {
                break;
            }
            steps.push((&self.adder, adders));
            lengths = added(&lengths);
        }
        for larger in self.larger.iter().flatten() {
            let mut rows = self.rows;
            while rows > 1 {
                steps.push((fitting(larger, rows / 2), rows / 2));
                rows -= rows / 2;
            }
        }
        steps.push((fitting(&self.last, 1), 1));
        steps
    }

    fn layouts(&self) -> Vec<Layout> {
        self.steps().into_iter().map(|(function, rows)| Layout::new(function.plan(1), rows)).collect()
    }

    /// Gates of all circuits, in one form.
    pub fn gates(&self) -> u64 {
        self.steps().iter().map(|(function, _)| function.circuit().gates().len() as u64).sum()
    }

    /// AND gates of a row's circuit, in the form that runs.
    pub fn row_ands(&self) -> u64 {
        fitting(&self.row, self.rows).circuit().stats().and
    }

    /// Triples that it uses up.
    pub fn triples(&self) -> u64 {
        self.layouts().iter().map(Layout::triples).sum()
    }

    /// Rounds: levels that are opened one after the other, the comparison of terms and the outputs.
    pub fn rounds(&self) -> u64 {
        2 + self.layouts().iter().map(Layout::rounds).sum::<u64>()
    }

    /// Messages of openings that a party sends.
    pub fn messages(&self) -> u64 {
        self.layouts().iter().map(Layout::messages).sum()
    }

    /// Bytes that the party `role` sends beside triples.
    pub fn opened(&self, role: Owner, to: OutputTo) -> u64 {
        let own = if role == Owner::Garbler { OutputTo::Garbler } else { OutputTo::Evaluator };
        let layouts = self.layouts();
        let outputs: u32 = self.last.circuit().shape().outputs.iter().sum();
        let last = layouts.len() - 1;
        let of = |(at, layout): (usize, &Layout)| match at == last {
            true => layout.opened(role, to, outputs.into()),
            false => layout.opened(role, own, 0),
        };
        layouts.iter().enumerate().map(of).sum()
    }

    /// Bytes that a party holds at most: shares of what rows made, of a step's rows twice, and of the wires that are
    /// under way.
    pub fn bytes(&self) -> u64 {
        let state: u64 = self.fields.iter().map(|field| field.width as u64).sum();
        let wires = self.layouts().iter().map(Layout::bytes).max().unwrap_or(0);
        (3 * state).saturating_mul(self.rows as u64) / 8 + wires
    }

    /// Runs it on shares of its rows, of which this party has `share`, with triples out of correlated OT that this party
    /// sends and receives. `told` is called with the triples used so far and those of all.
    ///
    /// Returns the outputs if this party learns them. Errors if the peer runs anything else.
    pub fn run(
        &self,
        channel: &mut Channel,
        streams: Streams<'_>,
        role: Owner,
        share: &Words<'_>,
        output_to: OutputTo,
        told: &mut dyn FnMut(u64, u64),
    ) -> Result<Option<Vec<BitVec>>> {
        self.run_with(&mut Prg::from_os(), channel, streams, role, share, output_to, told)
    }

    /// The same, with this party's half of the coins from `prg`.
    #[expect(clippy::too_many_arguments, reason = "run() and where coins come from")]
    pub(super) fn run_with(
        &self,
        prg: &mut Prg,
        channel: &mut Channel,
        (sender, receiver): Streams<'_>,
        role: Owner,
        share: &Words<'_>,
        output_to: OutputTo,
        told: &mut dyn FnMut(u64, u64),
    ) -> Result<Option<Vec<BitVec>>> {
        let (shape, function, rows) = (self.row.circuit().shape(), &self.digest(), self.rows);
        let terms = Terms { function, shape, owners: self.row.owners(), output_to, rows };
        agree_for(&FOLD_TERMS, channel, role, &terms)?;
        let all = self.triples();
        let triples = Triples::new(sender, receiver, all.into());
        let mut run =
            Run { channel, triples, role, output_to, step: 0, used: 0, told: &mut |used| told(used, all) };
        let made = run.through(fitting(&self.row, rows), rows, &mut |batch, first| {
            batch.put_words(self.bits, first, share);
        })?;
        let mut made = made.into_iter();
        let mut parts: Vec<Vec<Packed>> =
            self.fields.iter().map(|field| made.by_ref().take(field.width).collect()).collect();
        let sums = self.fields.iter().zip(&mut parts).filter(|(field, _)| field.is_sum());
        let mut sums: Vec<&mut Vec<Packed>> = sums.map(|(_, columns)| columns).collect();
        for columns in &mut sums {
            columns.resize_with(columns.len() + count_bits(rows), Packed::default);
        }
        run.add_up(&self.adder, &mut sums)?;
        for (larger, numbers) in self.larger.iter().zip(&mut parts) {
            if let Some(larger) = larger {
                run.keep_largest(larger, numbers, rows)?;
            }
        }
        let mut last =
            Packed::with_room(parts.iter().flatten().map(Packed::bits).sum::<usize>() + self.coins);
        for column in parts.iter().flatten() {
            last.push(column.words(), column.bits());
        }
        let mut coins = Zeroizing::new(vec![0u64; self.coins.div_ceil(64)]);
        coins.iter_mut().for_each(|word| *word = prg.block().low());
        last.push(&coins, self.coins);
        drop(parts);
        let outputs = run.open(fitting(&self.last, 1), &last)?;
        run.channel.flush()?;
        Ok(output_to.learned_by(role).then_some(outputs))
    }
}

/// The number with its highest bit negated.
fn flipped(number: &Uint) -> Uint {
    let mut bits = number.bits().to_vec();
    if let Some(sign) = bits.last_mut() {
        *sign = !*sign;
    }
    Uint::from_bits(bits)
}

impl Field {
    fn is_sum(self) -> bool {
        matches!(self.kind, Kind::Sum { .. })
    }

    /// The number that is left, from what is left of each weight.
    fn total(self, builder: &mut Builder, rows: usize, columns: &[Vec<Bit>]) -> Uint {
        let row = |place: usize| -> Uint {
            Uint::from_bits(columns.iter().map(|c| c.get(place).copied().unwrap_or(Bit::ZERO)).collect())
        };
        let Kind::Sum { signed } = self.kind else { return row(0) };
        let mut terms = vec![row(0), row(1)];
        if signed && self.width > 0 {
            // Each row was moved by half its range.
            let moved = (rows as i128) << (self.width - 1);
            terms.push(crate::circuit::Integer::constant(-moved, columns.len()));
        }
        builder.sum(&terms, columns.len())
    }
}

/// Of each field that is added up, how many bits there are of each weight when all rows have one.
fn lengths(rows: usize, fields: &[Field]) -> Vec<Vec<usize>> {
    let of = |field: &Field| [vec![rows; field.width], vec![0; count_bits(rows)]].concat();
    fields.iter().filter(|field| field.is_sum()).map(of).collect()
}

/// Full adders of a step.
fn adders(lengths: &[Vec<usize>]) -> usize {
    lengths.iter().flatten().map(|length| length / 3).sum()
}

/// What a step leaves: of three bits one, and one of the next weight. No sum has a carry out of its highest bit.
fn added(lengths: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let of = |columns: &Vec<usize>| {
        let carries = std::iter::once(0).chain(columns.iter().map(|length| length / 3));
        columns.iter().zip(carries).map(|(length, carries)| length - 2 * (length / 3) + carries).collect()
    };
    lengths.iter().map(of).collect()
}

/// What all steps leave, of each field by weight.
fn left(rows: usize, fields: &[Field]) -> Vec<Vec<usize>> {
    let mut sums = lengths(rows, fields);
    while adders(&sums) > 0 {
        sums = added(&sums);
    }
    let mut sums = sums.into_iter();
    let of = |field: &Field| match field.kind {
        Kind::Sum { .. } => sums.next().unwrap_or_default(),
        Kind::Largest => vec![1; field.width],
    };
    fields.iter().map(of).collect()
}

/// A fold on its way.
struct Run<'r, 'a> {
    channel: &'r mut Channel,
    triples: Triples<'a>,
    role: Owner,
    output_to: OutputTo,
    /// Steps begun so far: messages of different ones have different heads.
    step: u32,
    /// Triples used so far.
    used: u64,
    told: &'r mut dyn FnMut(u64),
}

/// Bits of a message's head that count batches of a group; the step's number is above.
const STEP_SHIFT: u32 = 20;

/// Puts a batch's inputs into its wires; the batch begins with the row of this number.
type Put<'a> = dyn FnMut(&mut Batch, usize) + 'a;

impl Run<'_, '_> {
    fn engine<'e>(&self, function: &'e Prepared, rows: usize) -> Engine<'e> {
        let plan = function.plan(1);
        Engine {
            levels: levels(plan),
            plan,
            layout: Layout::new(plan, rows),
            role: self.role,
            output_to: self.output_to,
            own_slots: Vec::new(),
            widths: &function.circuit().shape().outputs,
        }
    }

    /// The batches of the group that begins with row `first`.
    fn group(
        &mut self,
        engine: &Engine<'_>,
        (first, end): (usize, usize),
        put: &mut Put<'_>,
    ) -> Result<Vec<Batch>> {
        let starts = (first..end).step_by(engine.layout.batch()).enumerate();
        let mut batches: Vec<Batch> = starts
            .map(|(number, start)| {
                let rows = (end - start).min(engine.layout.batch());
                let mut batch = Batch::blank(self.step << STEP_SHIFT | number as u32, engine, rows);
                put(&mut batch, start);
                batch
            })
            .collect();
        engine.through(self.channel, &mut self.triples, &mut batches)?;
        self.used += engine.plan.ands() * (end - first) as u64;
        (self.told)(self.used);
        Ok(batches)
    }

    /// Takes so many rows through a circuit: shares of its output bits, of all rows each.
    fn through(&mut self, function: &Prepared, rows: usize, put: &mut Put<'_>) -> Result<Vec<Packed>> {
        self.step += 1;
        let engine = self.engine(function, rows);
        let slots = engine.plan.outputs();
        let mut outputs: Vec<Packed> = slots.iter().map(|_| Packed::with_room(rows)).collect();
        for first in (0..rows).step_by(engine.layout.group()) {
            let end = rows.min(first + engine.layout.group());
            for batch in self.group(&engine, (first, end), put)? {
                for (output, &slot) in outputs.iter_mut().zip(slots) {
                    output.push(&batch.shares[slot as usize * batch.words..][..batch.words], batch.rows);
                }
            }
        }
        Ok(outputs)
    }

    /// Adds up columns of bits, by weight, until two of each are left.
    fn add_up(&mut self, adder: &Prepared, sums: &mut [&mut Vec<Packed>]) -> Result<()> {
        loop {
            let lengths: Vec<Vec<usize>> =
                sums.iter().map(|columns| columns.iter().map(Packed::bits).collect()).collect();
            let count = adders(&lengths);
            if count == 0 {
                return Ok(());
            }
            let mut inputs = [(); 3].map(|()| Packed::with_room(count));
            for column in sums.iter().flat_map(|columns| columns.iter()) {
                let third = column.bits() / 3;
                for (at, input) in inputs.iter_mut().enumerate() {
                    input.push_from(column, at * third, third);
                }
            }
            let made = self.through(adder, count, &mut |batch, first| batch.put_bits(&inputs, first))?;
            drop(inputs);
            let [total, carry] = &made[..] else { unreachable!("an adder has two outputs") };
            let mut at = 0;
            for columns in sums.iter_mut() {
                let mut carries = Packed::default();
                for column in columns.iter_mut() {
                    let (bits, third) = (column.bits(), column.bits() / 3);
                    let mut next = Packed::with_room(bits - 2 * third + carries.bits());
                    next.push_from(total, at, third);
                    next.push_from(column, 3 * third, bits - 3 * third);
                    next.push(carries.words(), carries.bits());
                    carries = Packed::with_room(third);
                    carries.push_from(carry, at, third);
                    at += third;
                    *column = next;
                }
            }
        }
    }

    /// Keeps the largest of so many numbers, which are given bit by bit.
    fn keep_largest(&mut self, larger: &Prepared, numbers: &mut Vec<Packed>, mut rows: usize) -> Result<()> {
        while rows > 1 {
            let half = rows / 2;
            let mut inputs = Vec::with_capacity(2 * numbers.len());
            for first in [0, half] {
                inputs.extend(numbers.iter().map(|bit| {
                    let mut part = Packed::with_room(half);
                    part.push_from(bit, first, half);
                    part
                }));
            }
            let put: &mut Put<'_> = &mut |batch, first| batch.put_bits(&inputs, first);
            let mut made = self.through(fitting(larger, half), half, put)?;
            for (made, bit) in made.iter_mut().zip(numbers.iter()) {
                made.push_from(bit, 2 * half, rows - 2 * half);
            }
            *numbers = made;
            rows -= half;
        }
        Ok(())
    }

    /// Takes one row of these bits through a circuit and opens its outputs.
    fn open(&mut self, function: &Prepared, input: &Packed) -> Result<Vec<BitVec>> {
        self.step += 1;
        let engine = self.engine(function, 1);
        let put: &mut Put<'_> = &mut |batch, _| {
            let mut bit = [0];
            for at in 0..input.bits() {
                input.read(at, 1, &mut bit);
                batch.slot(FIRST_INPUT + at as u32).copy_from_slice(&bit);
            }
        };
        let mut batches = self.group(&engine, (0, 1), put)?;
        Ok(engine.open(self.channel, &mut batches)?.into_iter().next().unwrap_or_default())
    }
}

impl Batch {
    /// Puts a share of every row of `bits` bits in, the first of the batch being row `first`.
    fn put_words(&mut self, bits: usize, first: usize, share: &Words<'_>) {
        let mut square = Zeroizing::new([0; 64]);
        for word in 0..self.words {
            let rows = 64.min(self.rows - 64 * word);
            for from in (0..bits).step_by(64) {
                square.fill(0);
                for (row, slot) in square[..rows].iter_mut().enumerate() {
                    *slot = share(first + 64 * word + row, from / 64);
                }
                transpose(&mut square);
                for (bit, &value) in (from..bits).zip(square.iter()) {
                    self.shares[(FIRST_INPUT as usize + bit) * self.words + word] = value;
                }
            }
        }
    }

    /// Puts bits in that are there input by input, each of all rows, from row `first` on.
    fn put_bits(&mut self, inputs: &[Packed], first: usize) {
        let rows = self.rows;
        for (at, input) in (FIRST_INPUT..).zip(inputs) {
            input.read(first, rows, self.slot(at));
        }
    }
}
