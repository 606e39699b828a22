//! Yao's protocol with half-gates, pipelined.
//!
//! Source: Yao 1986 as proved by Lindell and Pinkas (2004/175), with half-gates (2014/756). Realises secure
//! evaluation of a circuit against semi-honest parties. Assumptions: the OT below, and those of
//! [`HalfGates`].
//!
//! The garbler's Δ is that of the correlated OT, so an input bit of the evaluator's costs one correlation and
//! one bit: with w = v ⊕ u·Δ and the correction d = u ⊕ y, v ⊕ d·Δ is a zero-label whose label of y the
//! evaluator already holds. Tables stream in pieces as they are made: garbler, link and evaluator work at the
//! same time, and memory holds one piece. Many rows of one function run [`ROWS_AT_ONCE`] side by side.
//!
//! Outputs to the evaluator are decoded by one bit each; outputs to the garbler come back as labels, of which
//! an evaluator holds only the right one, so even then it cannot flip a bit unnoticed. Before anything secret
//! is sent the parties compare a hash of the protocol, the session, the function, who owns which input, who
//! learns outputs and the number of rows.
//!
//! Rounds: the comparison (both ways at once), the OT's own, the corrections, the tables, and the labels back
//! if the garbler learns outputs. Bytes: 32 an AND gate, 16 an input bit of the garbler's, the OT's, 1 bit an
//! input bit of the evaluator's, 1 bit or 16 bytes an output bit.

use crate::circuit::{Order, Piece, Program, ProgramPlan, Shape};
use crate::garble::{
    Copy, Evaluate, Garble, GarblingScheme, HalfGates, HalfGatesEvaluator, HalfGatesGarbler, instance_start,
    output,
};
use crate::parties::slots_of;
use crate::{Error, OutputTo, Owner, Prepared, Result};
use tacit_crypto::transcript::Transcript;
use tacit_crypto::{BitVec, Block, Prg};
use tacit_net::Channel;
use tacit_ot::{CotReceiver, CotSender, Security};
use zeroize::{Zeroize, Zeroizing};

const PROTOCOL: &str = "yao";

/// The security of this protocol.
pub const SECURITY: Security = Security::SemiHonest;

/// Rows of one function that run side by side, at most.
pub const ROWS_AT_ONCE: usize = 16;

/// Output labels that an evaluator holds back for a garbler that learns the outputs: they go in one message
/// as long as they are fewer, so that many rows cost no more rounds than one.
const LABELS_HELD: usize = 1 << 20;

/// Ciphertext blocks of a piece: enough to fill a message, few enough to stay in the nearest caches.
pub(crate) const PIECE_BLOCKS: usize = 1 << 12;

fn usage<T>(what: &'static str) -> Result<T> {
    Err(Error::Usage { protocol: PROTOCOL, what })
}

/// One party's input bits of every row, row after row. Errors unless each row has that party's inputs in
/// their widths.
fn flatten(shape: &Shape, owners: &[Owner], owner: Owner, rows: &[Vec<BitVec>]) -> Result<BitVec> {
    flatten_for(PROTOCOL, shape, owners, owner, rows)
}

/// As [`flatten`], for a protocol of this name.
pub(crate) fn flatten_for(
    protocol: &'static str,
    shape: &Shape,
    owners: &[Owner],
    owner: Owner,
    rows: &[Vec<BitVec>],
) -> Result<BitVec> {
    let widths: Vec<usize> = shape
        .inputs
        .iter()
        .zip(owners)
        .filter(|(_, o)| **o == owner)
        .map(|(&width, _)| width as usize)
        .collect();
    let bits: usize = widths.iter().sum();
    let mut flat = BitVec::zeros(bits * rows.len());
    let mut at = 0;
    for row in rows {
        if row.len() != widths.len() || row.iter().zip(&widths).any(|(input, &w)| input.len() != w) {
            let what = "a row has other inputs than the function takes from this party";
            return Err(Error::Usage { protocol, what });
        }
        for bit in row.iter().flat_map(BitVec::iter) {
            flat.set(at, bit);
            at += 1;
        }
    }
    Ok(flat)
}

/// Cuts one row's output bits into outputs.
fn split(shape: &Shape, bits: impl IntoIterator<Item = bool>) -> Vec<BitVec> {
    let mut bits = bits.into_iter();
    let take = |&width: &u32| {
        let mut out = BitVec::zeros(width as usize);
        for i in 0..width as usize {
            out.set(i, bits.next().unwrap_or(false));
        }
        out
    };
    shape.outputs.iter().map(take).collect()
}

/// What the parties must agree on.
pub(crate) struct Terms<'a> {
    pub(crate) function: &'a [u8],
    pub(crate) shape: &'a Shape,
    pub(crate) owners: &'a [Owner],
    pub(crate) output_to: OutputTo,
    pub(crate) rows: usize,
}

/// A protocol whose terms are compared: its name, and those of the hashes of sizes and of the rest.
pub(crate) struct Compared {
    pub(crate) protocol: &'static str,
    pub(crate) sizes: &'static str,
    pub(crate) rest: &'static str,
    pub(crate) scheme: &'static str,
}

const YAO_TERMS: Compared = Compared {
    protocol: PROTOCOL,
    sizes: "tacit yao sizes v1",
    rest: "tacit yao v1",
    scheme: HalfGates::NAME,
};

/// Compares terms with the peer; both sides send first, so this takes one trip.
fn agree(channel: &mut Channel, role: Owner, terms: &Terms<'_>) -> Result<()> {
    agree_for(&YAO_TERMS, channel, role, terms)
}

/// As [`agree`], for another protocol.
pub(crate) fn agree_for(
    compared: &Compared,
    channel: &mut Channel,
    role: Owner,
    terms: &Terms<'_>,
) -> Result<()> {
    let mut shape = Transcript::new(compared.sizes);
    shape.append_u64("rows", terms.rows as u64);
    for (label, widths) in [("inputs", &terms.shape.inputs), ("outputs", &terms.shape.outputs)] {
        shape.append_u64(label, widths.len() as u64);
        widths.iter().for_each(|&width| shape.append_u64("width", width.into()));
    }
    let mut rest = Transcript::new(compared.rest);
    rest.append("session", &channel.session_id().0);
    rest.append("scheme", compared.scheme.as_bytes());
    rest.append("function", terms.function);
    terms.owners.iter().for_each(|&owner| rest.append_u64("owner", u64::from(owner == Owner::Garbler)));
    let mut mine = [0u8; 49];
    mine[0] = u8::from(role == Owner::Garbler)
        | u8::from(terms.output_to.garbler()) << 1
        | u8::from(terms.output_to.evaluator()) << 2;
    shape.challenge_bytes("sizes", &mut mine[1..17]);
    rest.challenge_bytes("terms", &mut mine[17..]);
    channel.send(&mine)?;
    let mut theirs = [0u8; 49];
    channel.recv(&mut theirs)?;
    let differ = |what| Err(Error::Mismatch { protocol: compared.protocol, what });
    if theirs[0] & 1 == mine[0] & 1 {
        return differ("who garbles and who evaluates");
    }
    if theirs[0] >> 1 != mine[0] >> 1 {
        return differ("who learns the outputs");
    }
    if theirs[1..17] != mine[1..17] {
        return differ("the sizes of inputs, outputs or rows");
    }
    if theirs[17..] != mine[17..] {
        return differ("the function, the owners of its inputs, or the session");
    }
    Ok(())
}

/// Garbles `rows` rows of a prepared function, one vector of this party's inputs a row, with the Δ of `cot`.
///
/// Returns the outputs of each row if this party learns them. Errors if the peer runs anything else, and as
/// `cheated` if it returns a label that is not one of an output's two.
pub fn garble(
    channel: &mut Channel,
    cot: &mut dyn CotSender,
    function: &Prepared,
    inputs: &[Vec<BitVec>],
    output_to: OutputTo,
    prg: &mut Prg,
) -> Result<Option<Vec<Vec<BitVec>>>> {
    let shape = function.circuit().shape();
    let mine = Zeroizing::new(flatten(shape, function.owners(), Owner::Garbler, inputs)?);
    let rows = inputs.len();
    let terms = Terms { function: &function.digest(), shape, owners: function.owners(), output_to, rows };
    agree(channel, Owner::Garbler, &terms)?;
    let my_slots = slots_of(shape, function.owners(), Owner::Garbler);
    let their_slots = slots_of(shape, function.owners(), Owner::Evaluator);
    let theirs = evaluator_zero_labels(channel, cot, their_slots.len() * rows)?;
    let session = prg.block();
    channel.send_block(session)?;
    let mut results = Vec::new();
    let mut tables = Vec::new();
    let mut held = HeldLabels::default();
    for first in (0..rows).step_by(ROWS_AT_ONCE) {
        let lanes = ROWS_AT_ONCE.min(rows - first);
        let plan = function.plan(lanes);
        let mut garbler = new_garbler(cot.delta(), session, first, lanes);
        set_rows(&their_slots, &theirs, first, lanes, |slot, labels| garbler.set_zero_labels(slot, labels));
        send_own_labels(channel, &mut garbler, &my_slots, &mine, first, prg)?;
        for piece in plan.pieces(PIECE_BLOCKS / 2 / lanes) {
            send_piece(channel, &mut garbler, piece, &mut tables)?;
        }
        finish_garbler(channel, &garbler, plan.outputs(), output_to, &mut held)?;
        if held.is_due(first + lanes == rows) {
            let bits = held.decode(channel, cot.delta())?;
            results.extend(held.groups(shape, &bits));
            held = HeldLabels::default();
        }
    }
    Ok(output_to.garbler().then(|| results.into_iter().flatten().collect()))
}

/// Evaluates; the counterpart of [`garble`].
pub fn evaluate(
    channel: &mut Channel,
    cot: &mut dyn CotReceiver,
    function: &Prepared,
    inputs: &[Vec<BitVec>],
    output_to: OutputTo,
) -> Result<Option<Vec<Vec<BitVec>>>> {
    let shape = function.circuit().shape();
    let mine = Zeroizing::new(flatten(shape, function.owners(), Owner::Evaluator, inputs)?);
    let rows = inputs.len();
    let terms = Terms { function: &function.digest(), shape, owners: function.owners(), output_to, rows };
    agree(channel, Owner::Evaluator, &terms)?;
    let my_slots = slots_of(shape, function.owners(), Owner::Evaluator);
    let their_slots = slots_of(shape, function.owners(), Owner::Garbler);
    let labels = evaluator_labels(channel, cot, &mine)?;
    let session = channel.recv_block()?;
    let mut results = Vec::new();
    let mut tables = Vec::new();
    let mut held = HeldLabels::default();
    for first in (0..rows).step_by(ROWS_AT_ONCE) {
        let lanes = ROWS_AT_ONCE.min(rows - first);
        let plan = function.plan(lanes);
        let starts: Vec<Block> = (first..first + lanes).map(|r| instance_start(session, r as u64)).collect();
        let mut evaluator = HalfGatesEvaluator::new(&starts);
        set_rows(&my_slots, &labels, first, lanes, |slot, labels| evaluator.set_labels(slot, labels));
        receive_labels(channel, &mut evaluator, &their_slots)?;
        for piece in plan.pieces(PIECE_BLOCKS / 2 / lanes) {
            receive_piece(channel, &mut evaluator, piece, &mut tables)?;
        }
        let decoded = finish_evaluator(channel, &evaluator, plan.outputs(), output_to, &mut held)?;
        results.extend(decoded.map(|bits| rows_of(shape, &bits, lanes)));
        if held.is_due(first + lanes == rows) {
            channel.send_blocks(&held.labels)?;
            held = HeldLabels::default();
        }
    }
    channel.flush()?;
    Ok(output_to.evaluator().then(|| results.into_iter().flatten().collect()))
}

/// Garbles a program as it is made: memory holds one window of it, however long it is. As [`garble`] with one
/// row.
pub fn garble_program<P: Program>(
    channel: &mut Channel,
    cot: &mut dyn CotSender,
    program: P,
    owners: &[Owner],
    inputs: &[BitVec],
    output_to: OutputTo,
    prg: &mut Prg,
) -> Result<Option<Vec<BitVec>>> {
    let mut plan = ProgramPlan::new(program, Order::Layered);
    let shape = plan.shape().clone();
    let mine = Zeroizing::new(program_input(&shape, owners, Owner::Garbler, inputs)?);
    let identity = plan.identity();
    let terms = Terms { function: identity.as_bytes(), shape: &shape, owners, output_to, rows: 1 };
    agree(channel, Owner::Garbler, &terms)?;
    let my_slots = slots_of(&shape, owners, Owner::Garbler);
    let their_slots = slots_of(&shape, owners, Owner::Evaluator);
    let theirs = evaluator_zero_labels(channel, cot, their_slots.len())?;
    let session = prg.block();
    channel.send_block(session)?;
    let mut garbler = new_garbler(cot.delta(), session, 0, 1);
    set_rows(&their_slots, &theirs, 0, 1, |slot, labels| garbler.set_zero_labels(slot, labels));
    send_own_labels(channel, &mut garbler, &my_slots, &mine, 0, prg)?;
    let mut tables = Vec::new();
    while let Some(window) = plan.next_window() {
        for piece in window.pieces(PIECE_BLOCKS / 2) {
            send_piece(channel, &mut garbler, piece, &mut tables)?;
        }
    }
    channel.send_u64(plan.gates())?;
    let outputs = plan.outputs().unwrap_or_default();
    let mut held = HeldLabels::default();
    finish_garbler(channel, &garbler, outputs, output_to, &mut held)?;
    if !output_to.garbler() {
        return Ok(None);
    }
    let bits = held.decode(channel, cot.delta())?;
    Ok(Some(split(&shape, bits.iter())))
}

/// Evaluates a program as it is made; the counterpart of [`garble_program`].
pub fn evaluate_program<P: Program>(
    channel: &mut Channel,
    cot: &mut dyn CotReceiver,
    program: P,
    owners: &[Owner],
    inputs: &[BitVec],
    output_to: OutputTo,
) -> Result<Option<Vec<BitVec>>> {
    let mut plan = ProgramPlan::new(program, Order::Layered);
    let shape = plan.shape().clone();
    let mine = Zeroizing::new(program_input(&shape, owners, Owner::Evaluator, inputs)?);
    let identity = plan.identity();
    let terms = Terms { function: identity.as_bytes(), shape: &shape, owners, output_to, rows: 1 };
    agree(channel, Owner::Evaluator, &terms)?;
    let my_slots = slots_of(&shape, owners, Owner::Evaluator);
    let their_slots = slots_of(&shape, owners, Owner::Garbler);
    let labels = evaluator_labels(channel, cot, &mine)?;
    let session = channel.recv_block()?;
    let mut evaluator = HalfGatesEvaluator::new(&[instance_start(session, 0)]);
    set_rows(&my_slots, &labels, 0, 1, |slot, labels| evaluator.set_labels(slot, labels));
    receive_labels(channel, &mut evaluator, &their_slots)?;
    let mut tables = Vec::new();
    while let Some(window) = plan.next_window() {
        for piece in window.pieces(PIECE_BLOCKS / 2) {
            receive_piece(channel, &mut evaluator, piece, &mut tables)?;
        }
    }
    if channel.recv_u64()? != plan.gates() {
        return Err(Error::Mismatch { protocol: PROTOCOL, what: "the number of gates of the program" });
    }
    let outputs = plan.outputs().unwrap_or_default();
    let mut held = HeldLabels::default();
    let decoded = finish_evaluator(channel, &evaluator, outputs, output_to, &mut held)?;
    channel.send_blocks(&held.labels)?;
    channel.flush()?;
    Ok(decoded.map(|bits| split(&shape, bits.iter())))
}

fn program_input(shape: &Shape, owners: &[Owner], owner: Owner, inputs: &[BitVec]) -> Result<BitVec> {
    if owners.len() != shape.inputs.len() {
        return usage("one owner an input");
    }
    flatten(shape, owners, owner, &[inputs.to_vec()])
}

fn new_garbler(delta: Block, session: Block, first: usize, lanes: usize) -> HalfGatesGarbler {
    let copy = |row| Copy { delta, start: instance_start(session, row as u64) };
    let copies: Zeroizing<Vec<Copy>> = Zeroizing::new((first..first + lanes).map(copy).collect());
    HalfGatesGarbler::new(&copies)
}

/// The evaluator's zero-labels: v ⊕ d·Δ for its corrections d.
fn evaluator_zero_labels(
    channel: &mut Channel,
    cot: &mut dyn CotSender,
    count: usize,
) -> Result<Zeroizing<Vec<Block>>> {
    let mut labels = Zeroizing::new(vec![Block::ZERO; count]);
    if count == 0 {
        return Ok(labels);
    }
    cot.extend(channel, &mut labels)?;
    let mut corrections = vec![0u8; count.div_ceil(8)];
    channel.recv(&mut corrections)?;
    let corrections = BitVec::from_bytes(&corrections, count);
    let delta = cot.delta();
    for (label, correction) in labels.iter_mut().zip(corrections.iter()) {
        *label ^= delta & Block::mask(correction);
    }
    Ok(labels)
}

/// The evaluator's labels of its own input, and the corrections d = u ⊕ y sent.
fn evaluator_labels(
    channel: &mut Channel,
    cot: &mut dyn CotReceiver,
    input: &BitVec,
) -> Result<Zeroizing<Vec<Block>>> {
    let mut labels = Zeroizing::new(vec![Block::ZERO; input.len()]);
    if input.is_empty() {
        return Ok(labels);
    }
    cot.extend(channel, &mut labels)?;
    let mut corrections = BitVec::from_lsbs(&labels);
    corrections.xor_assign(input);
    channel.send(corrections.as_bytes())?;
    channel.flush()?;
    Ok(labels)
}

/// Gives each slot its labels of `lanes` rows; `labels` holds them row after row.
pub(crate) fn set_rows(
    slots: &[u32],
    labels: &[Block],
    first: usize,
    lanes: usize,
    mut set: impl FnMut(u32, &[Block]),
) {
    let mut column = [Block::ZERO; ROWS_AT_ONCE];
    for (i, &slot) in slots.iter().enumerate() {
        for (row, label) in column[..lanes].iter_mut().enumerate() {
            *label = labels[(first + row) * slots.len() + i];
        }
        set(slot, &column[..lanes]);
    }
    column.zeroize();
}

/// Draws the labels of the garbler's own input and sends the active ones.
fn send_own_labels(
    channel: &mut Channel,
    garbler: &mut HalfGatesGarbler,
    slots: &[u32],
    input: &BitVec,
    first: usize,
    prg: &mut Prg,
) -> Result<()> {
    let lanes = garbler.lanes();
    let mut zero = Zeroizing::new(vec![Block::ZERO; slots.len() * lanes]);
    prg.fill_blocks(&mut zero);
    for (i, (&slot, labels)) in slots.iter().zip(zero.chunks_mut(lanes)).enumerate() {
        garbler.set_zero_labels(slot, labels);
        for ((row, label), &delta) in labels.iter_mut().enumerate().zip(garbler.deltas()) {
            *label ^= delta & Block::mask(input.get((first + row) * slots.len() + i));
        }
    }
    Ok(channel.send_blocks(&zero)?)
}

fn receive_labels(channel: &mut Channel, evaluator: &mut HalfGatesEvaluator, slots: &[u32]) -> Result<()> {
    let lanes = evaluator.lanes();
    let mut labels = vec![Block::ZERO; slots.len() * lanes];
    channel.recv_blocks(&mut labels)?;
    for (&slot, labels) in slots.iter().zip(labels.chunks(lanes)) {
        evaluator.set_labels(slot, labels);
    }
    Ok(())
}

/// Garbles a piece and hands it to the link at once, which sends it while the next is made.
fn send_piece(
    channel: &mut Channel,
    garbler: &mut HalfGatesGarbler,
    piece: Piece<'_>,
    tables: &mut Vec<Block>,
) -> Result<()> {
    tables.resize(HalfGates::BLOCKS_PER_AND * piece.ands * garbler.lanes(), Block::ZERO);
    garbler.garble(piece, tables);
    channel.send_blocks(tables)?;
    Ok(channel.flush()?)
}

fn receive_piece(
    channel: &mut Channel,
    evaluator: &mut HalfGatesEvaluator,
    piece: Piece<'_>,
    tables: &mut Vec<Block>,
) -> Result<()> {
    tables.resize(HalfGates::BLOCKS_PER_AND * piece.ands * evaluator.lanes(), Block::ZERO);
    channel.recv_blocks(tables)?;
    evaluator.evaluate(piece, tables);
    Ok(())
}

/// Output labels for a garbler that learns the outputs: its zero-labels, or the evaluator's active ones.
/// Within a group of rows they stand output by output, within an output row by row.
#[derive(Default)]
struct HeldLabels {
    labels: Zeroizing<Vec<Block>>,
    /// The rows of each group.
    lanes: Vec<usize>,
}

impl HeldLabels {
    fn hold(&mut self, labels: impl Iterator<Item = Block>, lanes: usize) {
        self.labels.extend(labels);
        self.lanes.push(lanes);
    }

    /// Whether the labels pass now: both parties say so after the same group.
    fn is_due(&self, last: bool) -> bool {
        !self.lanes.is_empty() && (last || self.labels.len() >= LABELS_HELD)
    }

    /// Reads the evaluator's labels and tells what they mean beside these zero-labels.
    fn decode(&self, channel: &mut Channel, delta: Block) -> Result<BitVec> {
        let mut labels = vec![Block::ZERO; self.labels.len()];
        channel.recv_blocks(&mut labels)?;
        let mut bits = BitVec::zeros(labels.len());
        let mut valid = true;
        for (i, (&label, &zero)) in labels.iter().zip(self.labels.iter()).enumerate() {
            let value = output::decode_label(label, zero, delta);
            valid &= value.is_some();
            bits.set(i, value.unwrap_or(false));
        }
        if valid {
            Ok(bits)
        } else {
            Err(Error::Cheated { protocol: PROTOCOL, what: "an output label is not valid" })
        }
    }

    /// The decoded bits as each group's rows.
    fn groups(&self, shape: &Shape, bits: &BitVec) -> Vec<Vec<Vec<BitVec>>> {
        let outputs = shape.output_bits();
        let mut start = 0;
        let group = |&lanes: &usize| {
            let part = BitVec::from_bools(
                &(start..start + outputs * lanes).map(|i| bits.get(i)).collect::<Vec<_>>(),
            );
            start += outputs * lanes;
            rows_of(shape, &part, lanes)
        };
        self.lanes.iter().map(group).collect()
    }
}

/// Sends the decoding bits to an evaluator that learns the outputs, and holds the zero-labels of a garbler
/// that does. Both stand output by output, within an output row by row.
fn finish_garbler(
    channel: &mut Channel,
    garbler: &HalfGatesGarbler,
    outputs: &[u32],
    output_to: OutputTo,
    held: &mut HeldLabels,
) -> Result<()> {
    let zero = || outputs.iter().flat_map(|&slot| garbler.zero_labels(slot).iter().copied());
    if output_to.evaluator() {
        channel.send(output::colours(zero()).as_bytes())?;
    }
    if output_to.garbler() {
        held.hold(zero(), garbler.lanes());
    }
    Ok(channel.flush()?)
}

fn finish_evaluator(
    channel: &mut Channel,
    evaluator: &HalfGatesEvaluator,
    outputs: &[u32],
    output_to: OutputTo,
    held: &mut HeldLabels,
) -> Result<Option<BitVec>> {
    let labels: Vec<Block> =
        outputs.iter().flat_map(|&slot| evaluator.labels(slot).iter().copied()).collect();
    let mut decoded = None;
    if output_to.evaluator() {
        let mut bytes = vec![0u8; labels.len().div_ceil(8)];
        channel.recv(&mut bytes)?;
        decoded = Some(output::decode_colours(&labels, &BitVec::from_bytes(&bytes, labels.len())));
    }
    if output_to.garbler() {
        held.hold(labels.into_iter(), evaluator.lanes());
    }
    Ok(decoded)
}

/// The outputs of `lanes` rows from bits that stand output by output, row by row within.
pub(crate) fn rows_of(shape: &Shape, bits: &BitVec, lanes: usize) -> Vec<Vec<BitVec>> {
    let outputs = bits.len() / lanes;
    (0..lanes).map(|row| split(shape, (0..outputs).map(|i| bits.get(i * lanes + row)))).collect()
}

/// Bytes that [`garble`] sends for `rows` rows, without the OT's: what a dry run prints.
pub fn garbler_bytes(function: &Prepared, rows: usize, output_to: OutputTo) -> u64 {
    let shape = function.circuit().shape();
    let own = slots_of(shape, function.owners(), Owner::Garbler).len() as u64;
    let outputs = if output_to.evaluator() { (shape.output_bits() as u64).div_ceil(8) } else { 0 };
    49 + 16 + rows as u64 * (32 * function.plan(1).ands() + 16 * own + outputs)
}
