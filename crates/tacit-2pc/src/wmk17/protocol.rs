//! The protocol of figures 3 and 4, step by step; see the [module](super) for what it is.

use super::deviation::deviate;
use super::function::{Function, Walk, compute, pieces, slots_of};
use super::probe::ProbeMatrix;
use super::recovery::{Elements, Trapdoor, point, sanitize};
use super::schedule::{Work, note};
use super::secrets::{Digest, Hidden, Messages, Oracle, Seeds, Start, differences, encryption};
use super::transfer::{Decoder, Encoder, Hashes, by_copy, by_gate, column_length, split, tables_of};
use super::{Copies, Job, PROTOCOL};
use crate::circuit::Piece;
use crate::garble::{Copy, Evaluate, Garble, HalfGatesEvaluator, HalfGatesGarbler, instance_start};
use crate::semi_honest::{OutputTo, Owner};
use crate::{Error, Result};
use std::collections::VecDeque;
use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};
use tacit_crypto::group::{Encoding, POINT_BYTES, Points};
use tacit_crypto::hash::Mitccrh;
use tacit_crypto::transcript::Transcript;
use tacit_crypto::{BitVec, Block, KAPPA, Prg};
use tacit_net::{Channel, Party, Recording};
use tacit_ot::extension::kos::{KosReceiver, KosSender, SEEDS, Setup};
use tacit_ot::{BaseOt, CotReceiver, CotSender};
use zeroize::{Zeroize, Zeroizing};

pub(super) type Blocks = Zeroizing<Vec<Block>>;

/// Correlations sacrificed to prove that the committing OT is opened with the offset it was made with.
pub(super) const OPENING_CHECKS: usize = KAPPA;
/// Input rows worked on at a time.
const ROWS: usize = 128;
/// AND gates in a piece, whose copies are hashed each for itself: whole chunks of the hash, as many as run side by side.
const PIECE: usize = 512;
/// Blocks of tables that P1 holds from when it has committed to them until it sends them: 1 MiB, which stays in cache. If there are more it
/// garbles anew: pages of fresh memory cost more.
const HELD: usize = 1 << 16;
/// AND gates after which P1, garbling what it is going to commit to, lets P2 know that it is there.
const BEAT: u64 = 1 << 22;
/// Blocks of garbled tables that P1 sends before step 4 and P2 keeps: 8 MiB.
const EARLY: usize = 1 << 19;
/// What P1 says while P2's opening is on its way: a piece of tables follows, or step 4.
const TABLES: u8 = 1;
const COMMITMENTS: u8 = 0;
/// Bytes of P2's opening.
const OPENING: usize = 48;
/// All that P2 says of a failed check.
const CAUGHT: &str = "a check of the garbler's messages failed";
/// Hash numbers of outputs: past every gate's.
const OUTPUT_GID: u64 = 1 << 63;
const RETURNED_GID: u64 = 3 << 62;

pub(super) fn zeros(n: usize) -> Blocks {
    Zeroizing::new(vec![Block::ZERO; n])
}

pub(super) fn usage<T>(what: &'static str) -> Result<T> {
    Err(Error::Usage { protocol: PROTOCOL, what })
}

pub(super) fn cheated<T>(what: &'static str) -> Result<T> {
    Err(Error::Cheated { protocol: PROTOCOL, what })
}

/// What both parties know of a run.
pub(super) struct Terms<'a> {
    pub(super) function: &'a dyn Function,
    pub(super) output_to: OutputTo,
    pub(super) copies: Copies,
    own: Vec<u32>,
    peer: Vec<u32>,
    pub(super) outputs: usize,
    pub(super) matrix: ProbeMatrix,
    /// [`OPENING_CHECKS`], but in a test of what they are worth.
    pub(super) opening_checks: usize,
    pub(super) oracle: Oracle,
}

/// Whether a run goes to its end, or stops before inputs are known.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Single,
    Offline,
}

impl<'a> Terms<'a> {
    /// Tells the peer what is to be computed; what it says itself is compared later.
    fn announce(channel: &mut Channel, role: Owner, job: &Job<'a>, mode: Mode) -> Result<(Self, Announced)> {
        let mut transcript = Transcript::new("tacit wmk17 v2");
        transcript.append("session", &channel.session_id().0);
        transcript.append_u64("instance", channel.next_instance());
        let garbler = (channel.party() == Party::First) == (role == Owner::Garbler);
        transcript.append_u64("first party garbles", garbler as u64);
        transcript.append("job", &job.digest());
        transcript.append_u64("offline", (mode == Mode::Offline) as u64);
        let (mut digest, mut key) = ([0u8; 32], [0u8; 32]);
        transcript.challenge_bytes("terms", &mut digest);
        transcript.challenge_bytes("oracle", &mut key);
        let what = "the function, its sizes, the owners of its inputs, who learns the outputs, or the copies";
        let mut terms = Self::with_key(job, key);
        deviate(|script| script.terms(&mut terms.matrix, &mut terms.opening_checks));
        Ok((terms, Announced::send(channel, role, digest, what)?))
    }

    /// The terms of a run whose hashes have this key.
    pub(super) fn with_key(job: &Job<'a>, key: [u8; 32]) -> Self {
        let function = job.function;
        let (own, peer) = (slots_of(function, Owner::Garbler), slots_of(function, Owner::Evaluator));
        Terms {
            function,
            output_to: job.output_to,
            copies: job.copies,
            outputs: function.shape().output_bits(),
            matrix: ProbeMatrix::new(peer.len()),
            opening_checks: OPENING_CHECKS,
            own,
            peer,
            oracle: Oracle::new(key),
        }
    }

    /// Bits that P1 puts in: its input, and the mask of outputs that it alone learns.
    pub(super) fn committed(&self) -> usize {
        self.own.len() + self.masks()
    }

    fn masks(&self) -> usize {
        if self.output_to == OutputTo::Garbler { self.outputs } else { 0 }
    }

    /// The kinds of table that translate outputs.
    pub(super) fn kinds(&self) -> &'static [Hidden] {
        if self.output_to.garbler() { &[Hidden::Tables, Hidden::Returned] } else { &[Hidden::Tables] }
    }
}

/// A role and a digest that went to the peer, to be compared with the peer's.
pub(super) struct Announced {
    role: Owner,
    digest: Digest,
    /// What differs where the digests do.
    what: &'static str,
}

impl Announced {
    pub(super) fn send(
        channel: &mut Channel,
        role: Owner,
        digest: Digest,
        what: &'static str,
    ) -> Result<Self> {
        channel.send(&[&[(role == Owner::Garbler) as u8][..], &digest].concat())?;
        Ok(Announced { role, digest, what })
    }

    /// Waits for the peer's, which it sends without waiting for ours.
    pub(super) fn confirm(&self, channel: &mut Channel) -> Result<()> {
        let mut theirs = [0u8; 33];
        channel.recv(&mut theirs)?;
        if theirs[0] == (self.role == Owner::Garbler) as u8 {
            return Err(Error::Mismatch { protocol: PROTOCOL, what: "who garbles and who evaluates" });
        }
        if theirs[1..] != self.digest {
            return Err(Error::Mismatch { protocol: PROTOCOL, what: self.what });
        }
        Ok(())
    }
}

#[cfg(test)]
pub(super) fn agree_only(channel: &mut Channel, garbler: bool, job: &Job<'_>) -> Result<()> {
    let role = if garbler { Owner::Garbler } else { Owner::Evaluator };
    Terms::announce(channel, role, job, Mode::Single)?.1.confirm(channel)
}

/// The start points of some copies; one re-keying a garbled circuit.
fn starts(start: Block, copies: &[usize]) -> Vec<Block> {
    copies.iter().map(|&j| instance_start(start, j as u64)).collect()
}

fn first_gid(kind: Hidden) -> u64 {
    if matches!(kind, Hidden::Returned) { RETURNED_GID } else { OUTPUT_GID }
}

/// T_{i,b} = Enc_{Z_{i,b}}(token_{i,b}) of one copy, the label of colour 0 first.
fn output_table(
    start: Block,
    kind: Hidden,
    delta: Block,
    z: &[Block],
    tokens: &[[Block; 2]],
    out: &mut [Block],
) {
    for (z, out) in z.iter().zip(out.as_chunks_mut::<2>().0) {
        out[0] = *z ^ (delta & Block::mask(z.lsb()));
        out[1] = out[0] ^ delta;
    }
    Mitccrh::new(start).hash_blocks(first_gid(kind), 2, out);
    for ((z, [zero, one]), out) in z.iter().zip(tokens).zip(out.as_chunks_mut::<2>().0) {
        let swap = (*zero ^ *one) & Block::mask(z.lsb());
        out[0] ^= *zero ^ swap;
        out[1] ^= *one ^ swap;
    }
}

/// The offset and the rows of the committing OT at its sender, P2: M_{i,b} = H(i, v_i ⊕ b·Γ).
fn committing_labels(hash: &Mitccrh, first: usize, offset: Block, v: &[Block]) -> Zeroizing<Vec<[Block; 2]>> {
    let mut out = Zeroizing::new(vec![[Block::ZERO; 2]; v.len()]);
    hash.cot_to_rot_sender(first as u64, offset, v, &mut out);
    out
}

/// The pairs (R_b, A_b) of one input bit in one copy, the label of colour 0 first.
fn committed_pairs(a: Block, delta: Block, prf: Block, m: &[Block; 2]) -> [(Block, Block); 2] {
    let colour = Block::mask(a.lsb());
    let flip = (m[0] ^ m[1]) & colour;
    let first = a ^ (delta & colour);
    [(prf ^ m[0] ^ flip, first), (prf ^ m[1] ^ flip, first ^ delta)]
}

// ---------------------------------------------------------------------------------------------------------------------

/// An OT extension that is set up, or about to be.
struct Ot<C> {
    cot: Option<C>,
    setup: Option<Setup<C>>,
}

impl<C> Ot<C> {
    fn ready(&mut self, channel: &mut Channel) -> Result<&mut C> {
        if let Some(setup) = self.setup.take() {
            self.cot = Some(setup(channel)?);
        }
        let Some(cot) = &mut self.cot else { return usage("a setup that failed: set up again") };
        Ok(cot)
    }
}

/// P1, the garbler, over a sender of correlated OT.
pub struct Garbler<C> {
    ot: Ot<C>,
    spent: bool,
}

impl Garbler<KosSender> {
    /// Begins to set up KOS, by Fiat–Shamir, from a malicious base OT: one batch of 128, in which P1 receives, serves every OT of every
    /// run. The first run ends it, with what else it has to do meanwhile.
    pub fn setup(channel: &mut Channel, base: &dyn BaseOt, prg: &mut Prg) -> Result<Self> {
        Ok(Self::begun(KosSender::begin_by_hash(channel, base, prg)?))
    }
}

/// What P1 holds before inputs are known.
pub(super) struct GarblerState {
    pub(super) keys: Blocks,
    pub(super) seeds: Seeds,
    pub(super) h: Points,
    pub(super) g1: Points,
    /// The random OTs' messages for P2's encoded input.
    pub(super) pads: Zeroizing<Vec<[Block; 2]>>,
    /// Correlations for P1's input bits and for the opening's proof.
    pub(super) rows: Blocks,
    /// The start points of the committing OT's hash and of the circuits'.
    pub(super) labels: Block,
    pub(super) start: Block,
}

/// Δ, the tokens Δ_{i,b}, and those of the outputs that come back.
pub(super) struct Tokens {
    pub(super) delta: Block,
    pub(super) tables: Zeroizing<Vec<[Block; 2]>>,
    pub(super) returned: Zeroizing<Vec<[Block; 2]>>,
}

impl Drop for Tokens {
    fn drop(&mut self) {
        self.delta.zeroize();
    }
}

impl Tokens {
    fn random(terms: &Terms<'_>, prg: &mut Prg) -> Self {
        let delta = prg.block();
        let mut pairs = |linked: bool| -> Zeroizing<Vec<[Block; 2]>> {
            let pair = |_| {
                let (zero, other) = (prg.block(), prg.block());
                [zero, if linked { zero ^ delta } else { other }]
            };
            Zeroizing::new((0..terms.outputs).map(pair).collect())
        };
        let mut tokens = Tokens { delta, tables: pairs(true), returned: pairs(false) };
        deviate(|script| script.tokens(&mut tokens.tables));
        tokens
    }

    fn of(&self, kind: Hidden) -> &[[Block; 2]] {
        if matches!(kind, Hidden::Returned) { &self.returned } else { &self.tables }
    }
}

impl<C: CotSender> Garbler<C> {
    /// P1 over a sender of correlated OT that is secure against malicious receivers.
    pub fn new(cot: C) -> Self {
        Garbler { ot: Ot { cot: Some(cot), setup: None }, spent: false }
    }

    /// As [`new`](Self::new), of a setup that has begun; the peer's has as well.
    pub fn begun(setup: Setup<C>) -> Self {
        Garbler { ot: Ot { cot: None, setup: Some(setup) }, spent: false }
    }

    /// Runs `job` with P1's input bits; returns the outputs if P1 learns them.
    ///
    /// Errors as `cheated` when P2 is caught or refuses the result; this value makes no run after an error.
    pub fn run(
        &mut self,
        channel: &mut Channel,
        job: &Job<'_>,
        input: &BitVec,
        prg: &mut Prg,
    ) -> Result<Option<BitVec>> {
        if input.len() != slots_of(job.function, Owner::Garbler).len() {
            return usage("as many input bits as the function takes from the garbler");
        }
        begin(&mut self.spent)?;
        let result = self.single(channel, job, input, prg)?;
        self.spent = false;
        Ok(result)
    }

    /// One execution from nothing to the output.
    fn single(
        &mut self,
        channel: &mut Channel,
        job: &Job<'_>,
        input: &BitVec,
        prg: &mut Prg,
    ) -> Result<Option<BitVec>> {
        let (terms, announced) = Terms::announce(channel, Owner::Garbler, job, Mode::Single)?;
        let terms = &terms;
        let GarblerStart { state, asked, labels, mut circuits } =
            self.prepare(channel, terms, &announced, terms.matrix.encoded(), prg)?;
        let masked = with_mask(terms, input, prg);
        state.send_input(channel, &masked)?;
        state.send_labels(channel, &asked, &labels)?;
        drop(labels);
        let tokens = Tokens::random(terms, prg);
        state.send_token_hashes(channel, terms, &tokens)?;
        let tables = state.commit(channel, terms, &mut circuits, &tokens)?;
        circuits.send_early(channel, terms)?;
        let offset = state.recv_opening(channel, terms, masked.len())?;
        channel.send(&[COMMITMENTS])?;
        state.send_commitments(channel, terms, &masked, offset)?;
        circuits.send(channel, terms)?;
        send_tables(channel, tables)?;
        state.reveal(channel, terms, &tokens)?;
        state.take_output(channel, terms, &masked, &tokens)
    }

    /// Everything that does not hang on inputs: what is left is one use of the state.
    pub(super) fn offline<'a>(
        &mut self,
        channel: &mut Channel,
        job: &Job<'a>,
        prg: &mut Prg,
    ) -> Result<(Terms<'a>, GarblerState, Tokens)> {
        begin(&mut self.spent)?;
        let (terms, announced) = Terms::announce(channel, Owner::Garbler, job, Mode::Offline)?;
        let GarblerStart { state, mut circuits, .. } = self.prepare(channel, &terms, &announced, 0, prg)?;
        let tokens = Tokens::random(&terms, prg);
        state.send_token_hashes(channel, &terms, &tokens)?;
        let tables = state.commit(channel, &terms, &mut circuits, &tokens)?;
        circuits.send(channel, &terms)?;
        send_tables(channel, tables)?;
        self.spent = false;
        Ok((terms, state, tokens))
    }

    /// Everything before inputs: h and g_1, all OTs, and step 1. Of the choices of step 2 `asked` come with the rest.
    ///
    /// P1's seeds, and with them its circuits, hang on nothing that P2 says; so they are made while P2's messages are on their way.
    fn prepare<'f>(
        &mut self,
        channel: &mut Channel,
        terms: &Terms<'f>,
        announced: &Announced,
        asked: usize,
        prg: &mut Prg,
    ) -> Result<GarblerStart<'f>> {
        let total = terms.copies.total;
        channel.flush()?;
        let own_salt = prg.block();
        let start = terms.oracle.start(Start::Circuits, own_salt);
        let mut pairs = Zeroizing::new(vec![[Block::ZERO; 2]; total]);
        prg.fill_blocks(pairs.as_flattened_mut());
        let keys = Zeroizing::new(pairs.iter().map(|pair| pair[1]).collect());
        let seeds = Seeds::new(pairs.iter().map(|pair| pair[0]).collect());
        let labels = peer_labels(terms, &seeds);
        let mut circuits = Circuits::new(terms, &seeds, start, &labels);
        circuits.make_ahead(channel, terms)?;
        let cot = self.ot.ready(channel)?;
        announced.confirm(channel)?;
        let mut public = [[0u8; POINT_BYTES]; 2];
        channel.recv(public.as_flattened_mut())?;
        let salt = channel.recv_block()?;
        let (Some(h), Some(g1)) = (point(&public[0]), point(&public[1])) else {
            return cheated("h or g_1 is no group element");
        };
        circuits.make_ahead(channel, terms)?;
        let mut cots = zeros(SEEDS + total + terms.matrix.encoded());
        let mut passed = Recording::new(channel);
        channel.record(&mut passed, |channel| cot.extend(channel, &mut cots))?;
        let corrections = recv_bits(channel, total)?;
        let asked = recv_bits(channel, asked)?;
        let mut pads = Zeroizing::new(vec![[Block::ZERO; 2]; cots.len()]);
        let hash = Mitccrh::new(terms.oracle.start(Start::Pads, own_salt));
        hash.cot_to_rot_sender(0, cot.delta(), &cots, &mut pads);
        let encoded = Zeroizing::new(pads.split_off(SEEDS + total));
        channel.send_block(own_salt)?;
        let (reversed, pads) = pads.split_at_mut(SEEDS);
        let made = reversed_seeds(terms, [salt, own_salt], &passed, &corrections);
        let mut reverse = KosReceiver::from_seeds(reversed, &made, prg)?.by_hash(channel);
        let mut rows = zeros(terms.committed() + terms.opening_checks);
        reverse.extend(channel, &mut rows)?;
        // Step 1: key_j for choice 1, an evaluation copy, and seed_j for choice 0.
        deviate(|script| script.keys(&mut pairs));
        for (j, (pad, pair)) in pads.iter_mut().zip(pairs.iter()).enumerate() {
            let swap = (pad[0] ^ pad[1]) & Block::mask(corrections.get(j));
            pad[0] ^= swap ^ pair[0];
            pad[1] ^= swap ^ pair[1];
        }
        channel.send_blocks(pads.as_flattened())?;
        let committing = terms.oracle.start(Start::Labels, salt);
        let state = GarblerState { keys, seeds, h, g1, pads: encoded, rows, labels: committing, start };
        Ok(GarblerStart { state, asked, labels, circuits })
    }
}

/// What P1 holds when it learns what P2 asks for.
struct GarblerStart<'f> {
    state: GarblerState,
    /// The choices of step 2.
    asked: BitVec,
    /// The zero-labels of P2's encoded input.
    labels: Blocks,
    circuits: Circuits<'f>,
}

/// What determines the seeds of the reversed extension, once P1 has fixed its salt: the correlated OTs by
/// what `passed` for them, which holds P2's fresh randomness, and both `salts`; the `corrections` of P2's
/// came after P1's part of those OTs was done.
fn reversed_seeds(terms: &Terms<'_>, salts: [Block; 2], passed: &Recording, corrections: &BitVec) -> Digest {
    let mut transcript = Transcript::new("tacit wmk17 reversed seeds v1");
    transcript.append("terms", terms.oracle.key());
    transcript.append("correlated OTs", &passed.digest());
    transcript.append_blocks("salts of P2 and P1", &salts);
    transcript.append("corrections", corrections.as_bytes());
    let mut out = [0; 32];
    transcript.challenge_bytes("seeds", &mut out);
    out
}

/// A value that a failed run leaves spent begins another.
fn begin(spent: &mut bool) -> Result<()> {
    if std::mem::replace(spent, true) { usage("an earlier run failed: set up again") } else { Ok(()) }
}

/// P1's input, and after it the random mask of outputs that it alone learns.
fn with_mask(terms: &Terms<'_>, input: &BitVec, prg: &mut Prg) -> BitVec {
    let mut masked = BitVec::random(terms.committed(), prg);
    (0..input.len()).for_each(|i| masked.set(i, input.get(i)));
    masked
}

fn recv_bits(channel: &mut Channel, n: usize) -> Result<BitVec> {
    let mut bytes = vec![0u8; n.div_ceil(8)];
    channel.recv(&mut bytes)?;
    Ok(BitVec::from_bytes(&bytes, n))
}

/// Step 2: asks for the labels of the encoded input.
fn send_choices(channel: &mut Channel, choices: &BitVec, encoded: &BitVec) -> Result<()> {
    let mut corrections = choices.clone();
    corrections.xor_assign(encoded);
    Ok(channel.send(corrections.as_bytes())?)
}

impl GarblerState {
    fn all(&self) -> Vec<usize> {
        (0..self.seeds.len()).collect()
    }

    /// P1's second half of a run whose circuits are at P2's already.
    pub(super) fn online(
        &self,
        channel: &mut Channel,
        terms: &Terms<'_>,
        tokens: &Tokens,
        input: &BitVec,
        prg: &mut Prg,
    ) -> Result<Option<BitVec>> {
        let masked = with_mask(terms, input, prg);
        self.send_input(channel, &masked)?;
        channel.flush()?;
        let asked = recv_bits(channel, terms.matrix.encoded())?;
        self.send_labels(channel, &asked, &peer_labels(terms, &self.seeds))?;
        let offset = self.recv_opening(channel, terms, masked.len())?;
        self.send_commitments(channel, terms, &masked, offset)?;
        self.reveal(channel, terms, tokens)?;
        self.take_output(channel, terms, &masked, tokens)
    }

    /// Step 2: transfers the labels of P2's encoded input, by the difference of its bits to the random choices.
    fn send_labels(&self, channel: &mut Channel, corrections: &BitVec, labels: &[Block]) -> Result<()> {
        let lanes = self.seeds.len();
        let deltas = self.seeds.deltas();
        let mut message = zeros(2 * lanes);
        for (i, row) in labels.chunks_exact(lanes).enumerate() {
            let (zero, one) = message.split_at_mut(lanes);
            zero.copy_from_slice(row);
            one.iter_mut()
                .zip(row)
                .zip(deltas.iter())
                .for_each(|((one, label), delta)| *one = *label ^ *delta);
            deviate(|script| script.evaluator_labels(i, zero, one));
            let [mut pad, mut other] = self.pads[i];
            let swap = (pad ^ other) & Block::mask(corrections.get(i));
            (pad, other) = (pad ^ swap, other ^ swap);
            Prg::from_seed(pad).xor_blocks(zero);
            Prg::from_seed(other).xor_blocks(one);
            channel.send_blocks(&message)?;
        }
        Ok(channel.flush()?)
    }

    /// Step 3: puts the input `x` into F_cOT, and sends R encrypted.
    fn send_input(&self, channel: &mut Channel, x: &BitVec) -> Result<()> {
        let (lanes, n) = (self.seeds.len(), x.len());
        // The rows hold random choices; their difference to x goes to P2.
        let mut correction = BitVec::from_lsbs(&self.rows[..n]);
        correction.xor_assign(x);
        channel.send(correction.as_bytes())?;
        let mut received = zeros(n);
        Mitccrh::new(self.labels).cot_to_rot_receiver(0, &self.rows[..n], &mut received);
        let (mut masks, mut cipher) = (self.seeds.masks(), encryption(&self.keys, Hidden::Commitments));
        let mut block = zeros(ROWS * lanes);
        for first in (0..n).step_by(ROWS) {
            let rows = &mut block[..ROWS.min(n - first) * lanes];
            masks.fill(rows);
            for (i, row) in (first..).zip(rows.chunks_exact_mut(lanes)) {
                row.iter_mut().for_each(|r| *r ^= received[i]);
                deviate(|script| script.masked_input(i, row));
            }
            cipher.xor(rows);
            channel.send_blocks(rows)?;
        }
        Ok(())
    }

    /// Step 3: P2 opens both labels of every bit, all at once by their offset Γ.
    ///
    /// For another Γ′ it would have to know P1's random choices of the sacrificed correlations.
    fn recv_opening(&self, channel: &mut Channel, terms: &Terms<'_>, n: usize) -> Result<Block> {
        let offset = channel.recv_block()?;
        let mut proof = [0u8; 32];
        channel.recv(&mut proof)?;
        let checks: Blocks =
            Zeroizing::new(self.rows[n..].iter().map(|w| *w ^ (offset & Block::mask(w.lsb()))).collect());
        if !bool::from(terms.oracle.opening(&checks).ct_eq(&proof)) {
            return cheated("the committing OT was opened to other labels");
        }
        Ok(offset)
    }

    /// Step 4: commitments to (R, A) of both values, ordered by the labels' colours, and the openings of x.
    fn send_commitments(
        &self,
        channel: &mut Channel,
        terms: &Terms<'_>,
        x: &BitVec,
        offset: Block,
    ) -> Result<()> {
        let (lanes, n) = (self.seeds.len(), x.len());
        let deltas = self.seeds.deltas();
        let (mut labels, mut masks) = (self.seeds.own_labels(), self.seeds.masks());
        let mut cipher = encryption(&self.keys, Hidden::Openings);
        // v_i = w_i ⊕ x_i·Γ gives M_{i,0} and M_{i,1}.
        let v: Blocks = Zeroizing::new(
            self.rows[..n].iter().zip(x.iter()).map(|(w, bit)| *w ^ (offset & Block::mask(bit))).collect(),
        );
        let (mut a, mut r, mut opened) = (zeros(ROWS * lanes), zeros(ROWS * lanes), zeros(ROWS * lanes));
        let mut pairs = Zeroizing::new(vec![[(Block::ZERO, Block::ZERO); 2]; lanes]);
        let (mut messages, mut digests) = (Messages::new(2 * lanes, 2), Vec::new());
        let hash = Mitccrh::new(self.labels);
        for first in (0..n).step_by(ROWS) {
            let count = ROWS.min(n - first);
            let (a, r, opened) =
                (&mut a[..count * lanes], &mut r[..count * lanes], &mut opened[..count * lanes]);
            labels.fill(a);
            masks.fill(r);
            let m = committing_labels(&hash, first, offset, &v[first..first + count]);
            for row in 0..count {
                let i = first + row;
                let (a, r) = (&a[row * lanes..][..lanes], &r[row * lanes..][..lanes]);
                for j in 0..lanes {
                    pairs[j] = committed_pairs(a[j], deltas[j], r[j], &m[row]);
                }
                deviate(|script| script.committed(i, &mut pairs));
                for (j, pair) in pairs.iter().enumerate() {
                    pair.iter().for_each(|(r, a)| Oracle::label(&mut messages, j, i, *r, *a));
                }
                terms.oracle.digests(&mut messages, &mut digests);
                channel.send(digests.as_flattened())?;
                let open = &mut opened[row * lanes..][..lanes];
                for j in 0..lanes {
                    open[j] = a[j] ^ (deltas[j] & Block::mask(x.get(i)));
                }
                deviate(|script| script.opened(i, &deltas, open));
            }
            cipher.xor(opened);
            channel.send_blocks(opened)?;
        }
        Ok(())
    }

    /// Step 5: {H(Δ_{i,b})}.
    fn send_token_hashes(&self, channel: &mut Channel, terms: &Terms<'_>, tokens: &Tokens) -> Result<()> {
        for &kind in terms.kinds() {
            let mut hashes = terms.oracle.tokens(kind, 0, tokens.of(kind));
            if matches!(kind, Hidden::Returned) {
                deviate(|script| script.returned_hashes(&mut hashes));
            }
            channel.send(hashes.as_flattened().as_flattened())?;
        }
        Ok(())
    }

    /// Step 5: commits to the garbled tables and the output tables of every copy, before any of them is sent. Returns the output tables as
    /// they are going to be sent, encrypted, by kind.
    ///
    /// P2's work on tables takes P1's time, however it is arranged. Bound to all of them, P1 has nothing left to choose by what it sees.
    fn commit<'f>(
        &self,
        channel: &mut Channel,
        terms: &Terms<'f>,
        circuits: &mut Circuits<'f>,
        tokens: &Tokens,
    ) -> Result<Vec<Blocks>> {
        let (mut hashes, z) = circuits.finish(channel, terms, self)?;
        deviate(|script| script.table_hashes(&mut hashes));
        channel.send(hashes.as_flattened())?;
        let lanes = self.seeds.len();
        let deltas = self.seeds.deltas();
        let starts = starts(self.start, &self.all());
        let (mut column, mut table) = (zeros(terms.outputs), zeros(2 * terms.outputs));
        let mut all = Vec::new();
        for &kind in terms.kinds() {
            let mut cipher = encryption(&self.keys, kind);
            let mut columns = zeros(column_length(terms.outputs) * lanes);
            for j in 0..lanes {
                (0..terms.outputs).for_each(|i| column[i] = z[i * lanes + j]);
                output_table(starts[j], kind, deltas[j], &column, tokens.of(kind), &mut table);
                deviate(|script| script.output_table(j, kind, &mut table));
                let mut commitment = terms.oracle.tables(kind, j, &table);
                deviate(|script| script.table_commitment(j, &mut commitment));
                channel.send(&commitment)?;
                cipher.xor_one(j, &mut table);
                columns[column_length(terms.outputs) * j..][..2 * terms.outputs].copy_from_slice(&table);
            }
            let mut rows = zeros(2 * terms.outputs * lanes);
            by_gate(&columns, lanes, &mut rows);
            all.push(rows);
        }
        Ok(all)
    }

    /// Step 7: on h_1, reveals Δ and the tokens, and offers every seed to one who knew Δ before.
    fn reveal(&self, channel: &mut Channel, terms: &Terms<'_>, tokens: &Tokens) -> Result<()> {
        // While P2 evaluates: what does not hang on h_1.
        let elements = Elements::new(&self.seeds, &self.h, &self.g1);
        let mut h1 = [0u8; POINT_BYTES];
        channel.recv(&mut h1)?;
        let Some(h1) = point(&h1) else { return cheated("h_1 is no group element") };
        let mut delta = tokens.delta;
        let mut zero_tokens: Blocks = Zeroizing::new(tokens.tables.iter().map(|pair| pair[0]).collect());
        deviate(|script| script.revealed(&mut delta, &mut zero_tokens));
        channel.send_block(delta)?;
        channel.send_blocks(&zero_tokens)?;
        let mut c = elements.c.clone();
        let mut sealed = elements.seal(&terms.oracle, &self.all(), &self.seeds, &h1, tokens.delta);
        deviate(|script| script.recovery(&mut c, &mut sealed));
        channel.send(c.as_flattened())?;
        channel.send_blocks(&sealed)?;
        Ok(channel.flush()?)
    }

    /// P1's outputs: P2 commits to their tokens, P1 reveals all tokens, P2 checks them and opens.
    fn take_output(
        &self,
        channel: &mut Channel,
        terms: &Terms<'_>,
        masked: &BitVec,
        tokens: &Tokens,
    ) -> Result<Option<BitVec>> {
        if !terms.output_to.garbler() {
            return Ok(None);
        }
        let mut commitment = [0u8; 32];
        channel.recv(&mut commitment)?;
        let mut revealed = tokens.returned.clone();
        deviate(|script| script.revealed_returned(&mut revealed));
        channel.send_blocks(revealed.as_flattened())?;
        let mut verdict = [0u8; 1];
        channel.recv(&mut verdict)?;
        if verdict != [1] {
            return cheated("the evaluator refused the result");
        }
        let mut opening = [0u8; 32];
        channel.recv(&mut opening)?;
        let mut returned = zeros(terms.outputs);
        channel.recv_blocks(&mut returned)?;
        if !bool::from(terms.oracle.returned(&opening, &returned).ct_eq(&commitment)) {
            return cheated("the evaluator's commitment to its output labels does not open");
        }
        let mut out = BitVec::zeros(terms.outputs);
        for (i, (token, [zero, one])) in returned.iter().zip(tokens.returned.iter()).enumerate() {
            let bit = token.ct_eq(one);
            if !bool::from(bit | token.ct_eq(zero)) {
                return cheated("the evaluator returned a label that is neither of an output's two");
            }
            let mask = terms.masks() > 0 && masked.get(terms.own.len() + i);
            out.set(i, bool::from(bit) ^ mask);
        }
        Ok(Some(out))
    }
}

/// The garbling of some copies.
struct Garbling {
    garbler: HalfGatesGarbler,
    /// Zero-labels of the outputs' masks.
    masks: Blocks,
}

impl Garbling {
    /// Of the copies with these seeds and start points, from the zero-labels of P2's encoded input.
    fn new(terms: &Terms<'_>, seeds: &Seeds, starts: &[Block], peer: &[Block]) -> Self {
        let (lanes, n) = (seeds.len(), terms.committed());
        let deltas = seeds.deltas();
        let copies: Vec<Copy> =
            deltas.iter().zip(starts).map(|(&delta, &start)| Copy { delta, start }).collect();
        let mut garbler = HalfGatesGarbler::new(&copies);
        garbler.reserve(terms.function.slots());
        let mut inputs = zeros(terms.peer.len() * lanes);
        terms.matrix.combine(lanes, peer, &mut inputs);
        for (slot, row) in terms.peer.iter().zip(inputs.chunks_exact(lanes)) {
            garbler.set_zero_labels(*slot, row);
        }
        let (mut labels, mut a) = (seeds.own_labels(), zeros(ROWS * lanes));
        let mut masks = zeros(terms.masks() * lanes);
        for first in (0..n).step_by(ROWS) {
            let a = &mut a[..ROWS.min(n - first) * lanes];
            labels.fill(a);
            for (i, row) in (first..).zip(a.chunks_exact_mut(lanes)) {
                deviate(|script| script.garbled_input(i, &deltas, row));
                match terms.own.get(i) {
                    Some(&slot) => garbler.set_zero_labels(slot, row),
                    None => masks[(i - terms.own.len()) * lanes..][..lanes].copy_from_slice(row),
                }
            }
        }
        Garbling { garbler, masks }
    }

    /// Garbles a piece into `tables`.
    fn garble(&mut self, piece: Piece<'_>, tables: &mut Vec<Block>) {
        let gates = piece.ands * self.garbler.lanes();
        note(Work::Garble, gates);
        tables.resize(2 * gates, Block::ZERO);
        self.garbler.garble(piece, tables);
    }

    /// The zero-labels of the outputs, whose slots are given.
    fn outputs(&self, terms: &Terms<'_>, slots: &[u32]) -> Blocks {
        let lanes = self.garbler.lanes();
        output_rows(terms, lanes, slots, &self.masks, |slot| self.garbler.zero_labels(slot))
    }
}

/// The zero-labels of P2's encoded input.
fn peer_labels(terms: &Terms<'_>, seeds: &Seeds) -> Blocks {
    let mut labels = zeros(terms.matrix.encoded() * seeds.len());
    seeds.peer_labels().fill(&mut labels);
    labels
}

/// The garbled circuits on their way to P2: made and hashed first, then sent.
struct Circuits<'f> {
    garbling: Garbling,
    walk: Box<dyn Walk + 'f>,
    encoder: Option<Encoder>,
    hashes: Hashes,
    /// Of a copy, gates made, and those after which P2 was told.
    gates: u64,
    told: u64,
    /// Pieces that are made and not sent, and the blocks they take; nothing once they are too many to be held.
    made: Option<VecDeque<Vec<Block>>>,
    held: usize,
    /// Room for a piece whose combinations are sent, and for a message.
    room: Vec<Block>,
    spare: Vec<Block>,
}

/// Whether circuits are garbled for the first time, or once more to be sent.
#[derive(Clone, Copy)]
enum Pass {
    Committing,
    Again,
}

impl<'f> Circuits<'f> {
    /// Of all copies, from their seeds and start point and the zero-labels of P2's encoded input.
    fn new(terms: &Terms<'f>, seeds: &Seeds, start: Block, peer: &[Block]) -> Self {
        let copies = terms.copies;
        Circuits {
            garbling: Self::garbling(terms, seeds, start, peer),
            walk: terms.function.walk(),
            encoder: copies.coded().then(|| Encoder::new(copies.total, copies.evaluated)),
            hashes: Hashes::of_circuits(&terms.oracle, 0..copies.total),
            gates: 0,
            told: 0,
            made: Some(VecDeque::new()),
            held: 0,
            room: Vec::new(),
            spare: Vec::new(),
        }
    }

    fn garbling(terms: &Terms<'_>, seeds: &Seeds, start: Block, peer: &[Block]) -> Garbling {
        let starts = starts(start, &(0..seeds.len()).collect::<Vec<_>>());
        Garbling::new(terms, seeds, &starts, peer)
    }

    /// Garbles the next piece into `message`: its tables, or their combinations, and hashes what is to be committed to. `false` after
    /// the last.
    fn make(&mut self, terms: &Terms<'_>, message: &mut Vec<Block>, pass: Pass) -> bool {
        let Some(piece) = self.walk.next_piece(PIECE) else { return false };
        let lanes = terms.copies.total;
        self.gates += piece.ands as u64;
        let garbled = if self.encoder.is_some() { &mut self.room } else { &mut *message };
        self.garbling.garble(piece, garbled);
        deviate(|script| script.tables(lanes, garbled));
        let columns = match pass {
            Pass::Committing => self.hashes.rows(garbled),
            Pass::Again if self.encoder.is_none() => return true,
            Pass::Again => self.hashes.arrange(garbled),
        };
        // What is going to be made again is combined then.
        let dropped = matches!(pass, Pass::Committing) && self.made.is_none();
        if let Some(encoder) = self.encoder.as_mut().filter(|_| !dropped) {
            let combinations = encoder.piece(columns);
            let length = combinations.len() / terms.copies.evaluated;
            message.clear();
            combinations.chunks_exact(length).for_each(|c| message.extend_from_slice(tables_of(c)));
            deviate(|script| script.combination(message));
        }
        true
    }

    /// Makes the next piece of those to commit to, and keeps it if there is room. `false` after the last.
    fn make_held(&mut self, terms: &Terms<'_>) -> bool {
        let mut message = std::mem::take(&mut self.spare);
        if !self.make(terms, &mut message, Pass::Committing) {
            return false;
        }
        match &mut self.made {
            Some(made) if self.held + message.len() <= HELD => {
                self.held += message.len();
                made.push_back(message);
            }
            _ => (self.made, self.spare) = (None, message),
        }
        true
    }

    /// Makes pieces until something comes from P2.
    fn make_ahead(&mut self, channel: &mut Channel, terms: &Terms<'_>) -> Result<()> {
        while !channel.has_come(1)? && self.make_held(terms) {}
        Ok(())
    }

    /// Makes what is left, and goes back to the first piece. Returns the hashes of the copies' tables, and the zero-labels of the outputs.
    fn finish(
        &mut self,
        channel: &mut Channel,
        terms: &Terms<'f>,
        state: &GarblerState,
    ) -> Result<(Vec<Digest>, Blocks)> {
        loop {
            while self.told + BEAT <= self.gates {
                self.told += BEAT;
                channel.send(&[TABLES])?;
                channel.flush()?;
            }
            if !self.make_held(terms) {
                break;
            }
        }
        let z = self.garbling.outputs(terms, self.walk.outputs());
        if self.made.is_none() {
            let peer = peer_labels(terms, &state.seeds);
            self.garbling = Self::garbling(terms, &state.seeds, state.start, &peer);
            self.walk = terms.function.walk();
        }
        Ok((self.hashes.finish(), z))
    }

    /// The next piece's message, held or made anew; `None` after the last.
    fn next(&mut self, terms: &Terms<'_>) -> Option<Vec<Block>> {
        let mut message = match &mut self.made {
            Some(made) => made.pop_front()?,
            None => {
                let mut message = std::mem::take(&mut self.spare);
                self.make(terms, &mut message, Pass::Again).then_some(message)?
            }
        };
        deviate(|script| script.sent(&mut message));
        Some(message)
    }

    /// Step 5: sends tables until P2's opening is here, which they do not hang on.
    fn send_early(&mut self, channel: &mut Channel, terms: &Terms<'_>) -> Result<()> {
        let mut sent = 0;
        loop {
            let mut more = sent < EARLY && !channel.has_come(OPENING)?;
            deviate(|script| script.early(&mut more));
            if !more {
                return Ok(());
            }
            let Some(message) = self.next(terms) else { return Ok(()) };
            sent += message.len();
            channel.send(&[TABLES])?;
            channel.send_blocks(&message)?;
            self.spare = message;
        }
    }

    /// Step 5: sends what is left of the tables.
    fn send(mut self, channel: &mut Channel, terms: &Terms<'_>) -> Result<()> {
        while let Some(message) = self.next(terms) {
            channel.send_blocks(&message)?;
            self.spare = message;
        }
        Ok(())
    }
}

/// Step 5: the output tables, of every output all copies' together.
fn send_tables(channel: &mut Channel, tables: Vec<Blocks>) -> Result<()> {
    for rows in tables {
        channel.send_blocks(&rows)?;
    }
    Ok(channel.flush()?)
}

/// The labels of the outputs, output by output, with their masks' labels added.
fn output_rows<'a>(
    terms: &Terms<'_>,
    lanes: usize,
    slots: &[u32],
    masks: &[Block],
    label: impl Fn(u32) -> &'a [Block],
) -> Blocks {
    let mut rows = zeros(terms.outputs * lanes);
    for (slot, row) in slots.iter().zip(rows.chunks_exact_mut(lanes.max(1))) {
        row.copy_from_slice(label(*slot));
    }
    rows.iter_mut().zip(masks).for_each(|(row, mask)| *row ^= *mask);
    rows
}

// ---------------------------------------------------------------------------------------------------------------------

/// P2, the evaluator, over a receiver of correlated OT.
pub struct Evaluator<C> {
    ot: Ot<C>,
    spent: bool,
}

impl Evaluator<KosReceiver> {
    /// Begins to set up KOS, by Fiat–Shamir, from a malicious base OT: one batch of 128, in which P2 sends, serves every OT of every
    /// run. The first run ends it, with what else it has to do meanwhile.
    pub fn setup(channel: &mut Channel, base: &dyn BaseOt, prg: &mut Prg) -> Result<Self> {
        Ok(Self::begun(KosReceiver::begin_by_hash(channel, base, prg)?))
    }
}

/// What P2 holds before inputs are known.
pub(super) struct EvaluatorState {
    /// Evaluation copies and their keys; check copies and their seeds.
    pub(super) evaluated: Vec<usize>,
    pub(super) keys: Blocks,
    pub(super) checked: Vec<usize>,
    pub(super) seeds: Seeds,
    pub(super) trapdoor: Trapdoor,
    /// The random OTs for the encoded input.
    pub(super) pads: Blocks,
    pub(super) choices: BitVec,
    /// The committing OT: offset Γ and rows.
    pub(super) offset: Block,
    pub(super) rows: Blocks,
    /// The start points of the committing OT's hash and of the circuits'.
    pub(super) labels: Block,
    pub(super) start: Block,
    /// Whether some check failed. P1 learns nothing of it before the end.
    pub(super) failed: bool,
}

/// The evaluation copies as their gates pass; nothing is done where there are none.
struct Evaluation {
    evaluator: Option<HalfGatesEvaluator>,
    /// The labels of the outputs' masks.
    masks: Blocks,
}

/// H(Δ_{i,b}), by kind.
pub(super) type TokenHashes = Vec<Vec<[Digest; 2]>>;

/// What P2 checks at the end of what it received with the circuits.
pub(super) struct Received {
    pub(super) hashes: TokenHashes,
    /// Commitments to T of the check copies, by kind.
    pub(super) commitments: Vec<Vec<Digest>>,
    /// Zero-labels of the outputs in the check copies.
    pub(super) z: Blocks,
}

impl<C: CotReceiver> Evaluator<C> {
    /// P2 over a receiver of correlated OT that is secure against malicious senders.
    pub fn new(cot: C) -> Self {
        Evaluator { ot: Ot { cot: Some(cot), setup: None }, spent: false }
    }

    /// As [`new`](Self::new), of a setup that has begun; the peer's has as well.
    pub fn begun(setup: Setup<C>) -> Self {
        Evaluator { ot: Ot { cot: None, setup: Some(setup) }, spent: false }
    }

    /// Runs `job` with P2's input bits; returns the outputs if P2 learns them.
    ///
    /// Errors as `cheated`, without saying which, when any check failed; this value makes no run after an error.
    pub fn run(
        &mut self,
        channel: &mut Channel,
        job: &Job<'_>,
        input: &BitVec,
        prg: &mut Prg,
    ) -> Result<Option<BitVec>> {
        if input.len() != slots_of(job.function, Owner::Evaluator).len() {
            return usage("as many input bits as the function takes from the evaluator");
        }
        begin(&mut self.spent)?;
        let result = self.single(channel, job, input, prg)?;
        self.spent = false;
        Ok(result)
    }

    fn single(
        &mut self,
        channel: &mut Channel,
        job: &Job<'_>,
        input: &BitVec,
        prg: &mut Prg,
    ) -> Result<Option<BitVec>> {
        let (terms, announced) = Terms::announce(channel, Owner::Evaluator, job, Mode::Single)?;
        let terms = &terms;
        let (mut state, encoded) = self.prepare(channel, terms, &announced, Some(input), prg)?;
        let r = state.receive_input(channel, terms)?;
        let expected = peer_labels(terms, &state.seeds);
        let mut evaluation = state.evaluation(terms);
        state.receive_labels(channel, terms, &encoded, &expected, &mut evaluation)?;
        let hashes = state.receive_token_hashes(channel, terms)?;
        let (mut circuits, known) = state.circuits(channel, terms, &expected)?;
        drop(expected);
        let early = circuits.receive_early(channel, terms, &state)?;
        state.check_commitments(channel, terms, &mut evaluation, &r)?;
        let mut walk = terms.function.walk();
        for tables in &early {
            walk.next_piece(PIECE).into_iter().for_each(|piece| evaluation.piece(piece, tables));
        }
        drop((walk, early));
        let mut tables = Vec::new();
        while let Some(piece) = circuits.receive(channel, terms, &state, &mut tables)? {
            evaluation.piece(piece, &tables);
        }
        let (outputs, z) = circuits.finish(terms, &mut state, &known);
        let labels = evaluation.outputs(terms, &outputs);
        drop(evaluation);
        let mut decoding = state.decoding(terms, labels);
        state.receive_tables(channel, terms, &known, |k, first, columns| {
            decoding.take(terms, &hashes, k, first, columns);
            Ok(())
        })?;
        let received = Received { hashes, commitments: state.checked_only(known), z };
        state.finish(channel, terms, input, &r, received, decoding.decoded, prg)
    }

    /// Everything that does not hang on inputs: circuits are checked, and what evaluation needs goes to `keep`. The caller
    /// adds what is returned.
    pub(super) fn offline(
        &mut self,
        channel: &mut Channel,
        job: &Job<'_>,
        prg: &mut Prg,
        keep: &mut dyn Keep,
    ) -> Result<Received> {
        begin(&mut self.spent)?;
        let (terms, announced) = Terms::announce(channel, Owner::Evaluator, job, Mode::Offline)?;
        let (mut state, _) = self.prepare(channel, &terms, &announced, None, prg)?;
        let hashes = state.receive_token_hashes(channel, &terms)?;
        keep.state(&terms, &state, &hashes)?;
        let (mut circuits, known) = state.circuits(channel, &terms, &peer_labels(&terms, &state.seeds))?;
        let mut tables = Vec::new();
        while circuits.receive(channel, &terms, &state, &mut tables)?.is_some() {
            keep.tables(&tables)?;
        }
        let (_, z) = circuits.finish(&terms, &mut state, &known);
        state.receive_tables(channel, &terms, &known, |_, _, columns| keep.tables(columns))?;
        // No input is known that an abort could tell of.
        if state.failed {
            return cheated(CAUGHT);
        }
        self.spent = false;
        Ok(Received { hashes, commitments: state.checked_only(known), z })
    }

    /// Everything before P1's input; the counterpart of the garbler's. Where P2's input is known, its choices go with the rest; its
    /// encoding is returned.
    fn prepare(
        &mut self,
        channel: &mut Channel,
        terms: &Terms<'_>,
        announced: &Announced,
        input: Option<&BitVec>,
        prg: &mut Prg,
    ) -> Result<(EvaluatorState, BitVec)> {
        let (total, m) = (terms.copies.total, terms.matrix.encoded());
        let trapdoor = Trapdoor::new(prg);
        channel.send(trapdoor.public().as_flattened())?;
        let salt = prg.block();
        channel.send_block(salt)?;
        channel.flush()?;
        // While P1 makes its base OTs.
        let mut set = terms.copies.draw(prg);
        deviate(|script| script.evaluated(&mut set));
        let encoded = input.map_or_else(BitVec::default, |input| terms.matrix.encode(input, prg));
        terms.function.slots();
        // What goes out before P1's terms are known hangs on choices that P1 does not know.
        let cot = self.ot.ready(channel)?;
        let answered = cot.is_answered();
        if answered {
            announced.confirm(channel)?;
        }
        let mut pads = zeros(SEEDS + total + m);
        let mut passed = Recording::new(channel);
        channel.record(&mut passed, |channel| cot.extend(channel, &mut pads))?;
        let choices = BitVec::from_lsbs(&pads);
        let choices = |from: usize, n: usize| {
            let mut out = BitVec::zeros(n);
            (0..n).for_each(|i| out.set(i, choices.get(from + i)));
            out
        };
        // Step 1: the evaluation set.
        let mut corrections = choices(SEEDS, total);
        corrections.xor_assign(&set);
        channel.send(corrections.as_bytes())?;
        let encoded_choices = choices(SEEDS + total, m);
        if input.is_some() {
            send_choices(channel, &encoded_choices, &encoded)?;
        }
        channel.flush()?;
        if !answered {
            announced.confirm(channel)?;
        }
        let own_salt = channel.recv_block()?;
        let cots = pads.clone();
        Mitccrh::new(terms.oracle.start(Start::Pads, own_salt)).cot_to_rot_receiver(0, &cots, &mut pads);
        let made = reversed_seeds(terms, [salt, own_salt], &passed, &corrections);
        let mut reverse =
            KosSender::from_seeds(&choices(0, SEEDS), &pads[..SEEDS], &made, prg)?.by_hash(channel);
        let mut rows = zeros(terms.committed() + terms.opening_checks);
        reverse.extend(channel, &mut rows)?;
        let mut sealed = vec![[Block::ZERO; 2]; total];
        channel.recv_blocks(sealed.as_flattened_mut())?;
        let (evaluated, checked): (Vec<usize>, Vec<usize>) = (0..total).partition(|&j| set.get(j));
        let open = |j: &usize| {
            pads[SEEDS + *j] ^ sealed[*j][0] ^ ((sealed[*j][0] ^ sealed[*j][1]) & Block::mask(set.get(*j)))
        };
        let state = EvaluatorState {
            keys: Zeroizing::new(evaluated.iter().map(open).collect()),
            seeds: Seeds::new(checked.iter().map(open).collect()),
            evaluated,
            checked,
            trapdoor,
            pads: Zeroizing::new(pads.split_off(SEEDS + total)),
            choices: encoded_choices,
            offset: reverse.delta(),
            rows,
            labels: terms.oracle.start(Start::Labels, salt),
            start: terms.oracle.start(Start::Circuits, own_salt),
            failed: false,
        };
        Ok((state, encoded))
    }
}

impl Evaluation {
    fn piece(&mut self, piece: Piece<'_>, tables: &[Block]) {
        if let Some(evaluator) = &mut self.evaluator {
            note(Work::Evaluate, piece.ands * evaluator.lanes());
            evaluator.evaluate(piece, tables);
        }
    }

    /// The labels of the outputs, whose slots are given.
    fn outputs(&self, terms: &Terms<'_>, slots: &[u32]) -> Blocks {
        let evaluator = self.evaluator.as_ref();
        evaluator.map_or_else(Blocks::default, |evaluator| {
            output_rows(terms, evaluator.lanes(), slots, &self.masks, |slot| evaluator.labels(slot))
        })
    }
}

impl EvaluatorState {
    /// P2's second half of a run whose circuits were checked before: `kept` gives what [`Keep`] was given.
    pub(super) fn online(
        mut self,
        channel: &mut Channel,
        terms: &Terms<'_>,
        input: &BitVec,
        prg: &mut Prg,
        hashes: TokenHashes,
        kept: &mut dyn Kept,
    ) -> Result<Option<BitVec>> {
        let encoded = terms.matrix.encode(input, prg);
        send_choices(channel, &self.choices, &encoded)?;
        channel.flush()?;
        let r = self.receive_input(channel, terms)?;
        let expected = peer_labels(terms, &self.seeds);
        let mut evaluation = self.evaluation(terms);
        self.receive_labels(channel, terms, &encoded, &expected, &mut evaluation)?;
        drop(expected);
        self.check_commitments(channel, terms, &mut evaluation, &r)?;
        let active = self.evaluated.len();
        let mut tables = Vec::new();
        let outputs = pieces(terms.function, PIECE, |piece| {
            tables.resize(piece.ands * active * 2, Block::ZERO);
            kept.tables(&mut tables)?;
            evaluation.piece(piece, &tables);
            Ok(())
        })?;
        let z = evaluation.outputs(terms, &outputs);
        drop(evaluation);
        let mut decoding = self.decoding(terms, z);
        let mut columns = zeros(0);
        for k in 0..terms.kinds().len() {
            for first in (0..terms.outputs).step_by(ROWS) {
                columns.resize(column_length(ROWS.min(terms.outputs - first)) * active, Block::ZERO);
                kept.tables(&mut columns)?;
                decoding.take(terms, &hashes, k, first, &columns);
            }
        }
        let received = kept.received(terms, hashes, self.checked.len())?;
        self.finish(channel, terms, input, &r, received, decoding.decoded, prg)
    }

    fn evaluation(&self, terms: &Terms<'_>) -> Evaluation {
        let starts = starts(self.start, &self.evaluated);
        let mut evaluator = (!starts.is_empty()).then(|| HalfGatesEvaluator::new(&starts));
        evaluator.iter_mut().for_each(|evaluator| evaluator.reserve(terms.function.slots()));
        Evaluation { evaluator, masks: zeros(0) }
    }

    /// What P2 does while P1 makes its circuits, which it then commits to: garbles the check copies, of which `peer` are the zero-labels of
    /// P2's encoded input, and hashes them. With the coded transfer they are garbled when the combinations come, which take them.
    fn circuits<'f>(
        &self,
        channel: &mut Channel,
        terms: &Terms<'f>,
        peer: &[Block],
    ) -> Result<(Incoming<'f>, Commitments)> {
        let oracle = &terms.oracle;
        let mut garbling = Garbling::new(terms, &self.seeds, &starts(self.start, &self.checked), peer);
        let mut checked = Hashes::of_circuits(oracle, self.checked.iter().copied());
        let (mut walk, mut garbled) = (terms.function.walk(), Vec::new());
        let (mut gates, mut told) = (0, 0);
        while let Some(piece) = walk.next_piece(PIECE) {
            gates += piece.ands as u64;
            if !terms.copies.coded() {
                garbling.garble(piece, &mut garbled);
                checked.rows(&garbled);
            }
            if told + BEAT <= gates {
                told += BEAT;
                channel.recv(&mut [0])?;
            }
        }
        let mut known = Commitments { circuits: vec![[0; 32]; terms.copies.total], tables: Vec::new() };
        channel.recv(known.circuits.as_flattened_mut())?;
        for _ in terms.kinds() {
            let mut kind = vec![[0; 32]; terms.copies.total];
            channel.recv(kind.as_flattened_mut())?;
            known.tables.push(kind);
        }
        let copies = if terms.copies.coded() {
            Arriving::Coded(garbling, Box::new(Decoder::new(oracle, &self.evaluated, &self.checked)))
        } else {
            let z = garbling.outputs(terms, walk.outputs());
            let evaluated = Hashes::of_circuits(oracle, self.evaluated.iter().copied());
            Arriving::Whole { evaluated, checked: checked.finish(), z }
        };
        let incoming = Incoming { copies, walk: terms.function.walk(), tables: Vec::new(), garbled };
        Ok((incoming, known))
    }

    fn decoding(&self, terms: &Terms<'_>, z: Blocks) -> Decoding {
        let decoded = Decoded::new(self.evaluated.len(), terms.outputs);
        Decoding { starts: starts(self.start, &self.evaluated), z, labels: zeros(ROWS), decoded }
    }

    /// The check copies' commitments to T.
    fn checked_only(&self, known: Commitments) -> Vec<Vec<Digest>> {
        known.tables.iter().map(|kind| self.checked.iter().map(|&j| kind[j]).collect()).collect()
    }

    fn total(&self) -> usize {
        self.evaluated.len() + self.checked.len()
    }

    fn check(&mut self, holds: bool) {
        self.failed |= !holds;
    }

    /// Checks that all digests are those they are compared with, all of them always.
    fn check_digests<'d>(&mut self, pairs: impl Iterator<Item = (&'d Digest, &'d Digest)>) {
        let wrong = pairs.fold(Block::ZERO, |wrong, (x, y)| wrong | differences(x, y));
        self.check(wrong == Block::ZERO);
    }

    /// Step 2, with the check of step 9 (a).
    fn receive_labels(
        &mut self,
        channel: &mut Channel,
        terms: &Terms<'_>,
        encoded: &BitVec,
        expected: &[Block],
        evaluation: &mut Evaluation,
    ) -> Result<()> {
        let (total, m) = (self.total(), encoded.len());
        let (active, checks) = (self.evaluated.len(), self.checked.len());
        let deltas = self.seeds.deltas();
        let mut labels = zeros(m * active);
        let (mut message, mut wrong) = (zeros(2 * total), Block::ZERO);
        for i in 0..m {
            channel.recv_blocks(&mut message)?;
            let choice = Block::mask(encoded.get(i));
            let (zero, one) = message.split_at_mut(total);
            zero.iter_mut().zip(one).for_each(|(zero, one)| *zero ^= (*zero ^ *one) & choice);
            Prg::from_seed(self.pads[i]).xor_blocks(zero);
            for (label, &j) in labels[i * active..][..active].iter_mut().zip(&self.evaluated) {
                *label = zero[j];
            }
            // Step 9 (a)
            for ((label, delta), &j) in expected[i * checks..].iter().zip(deltas.iter()).zip(&self.checked) {
                wrong = wrong | (*label ^ (*delta & choice) ^ zero[j]);
            }
        }
        self.check(wrong == Block::ZERO);
        if let Some(evaluator) = &mut evaluation.evaluator {
            let mut inputs = zeros(terms.peer.len() * active);
            terms.matrix.combine(active, &labels, &mut inputs);
            let rows = terms.peer.iter().zip(inputs.chunks_exact(active));
            rows.for_each(|(slot, row)| evaluator.set_labels(*slot, row));
        }
        Ok(())
    }

    /// Step 3; returns R of the evaluation copies.
    fn receive_input(&mut self, channel: &mut Channel, terms: &Terms<'_>) -> Result<Blocks> {
        let (total, n, active) = (self.total(), terms.committed(), self.evaluated.len());
        // P1's choices are x once P2 has moved its rows.
        let correction = recv_bits(channel, n)?;
        for (i, v) in self.rows[..n].iter_mut().enumerate() {
            *v ^= self.offset & Block::mask(correction.get(i));
        }
        let mut cipher = encryption(&self.keys, Hidden::Commitments);
        let (mut block, mut r) = (zeros(ROWS * total), zeros(n * active));
        for first in (0..n).step_by(ROWS) {
            let count = ROWS.min(n - first);
            let rows = &mut block[..count * total];
            channel.recv_blocks(rows)?;
            let kept = &mut r[first * active..][..count * active];
            pick(rows, total, &self.evaluated, kept);
            cipher.xor(kept);
        }
        // Open.
        let (mut offset, mut rows) = (self.offset, Zeroizing::new(self.rows[n..].to_vec()));
        deviate(|script| script.opening(&mut offset, &mut rows));
        channel.send_block(offset)?;
        channel.send(&terms.oracle.opening(&rows))?;
        channel.flush()?;
        Ok(r)
    }

    /// Step 4, with the check of step 9 (e): opens the evaluation copies' commitments, and recomputes those of the check copies.
    fn check_commitments(
        &mut self,
        channel: &mut Channel,
        terms: &Terms<'_>,
        evaluation: &mut Evaluation,
        r: &[Block],
    ) -> Result<()> {
        let (total, n) = (self.total(), terms.committed());
        let (active, checks) = (self.evaluated.len(), self.checked.len());
        let deltas = self.seeds.deltas();
        let (mut labels, mut masks) = (self.seeds.own_labels(), self.seeds.masks());
        let mut cipher = encryption(&self.keys, Hidden::Openings);
        let mut digests = vec![[[0u8; 32]; 2]; ROWS * total];
        let (mut sealed, mut opened) = (zeros(ROWS * total), zeros(ROWS * active));
        let (mut a, mut prf) = (zeros(ROWS * checks), zeros(ROWS * checks));
        evaluation.masks = zeros(terms.masks() * active);
        let hash = Mitccrh::new(self.labels);
        let (mut messages, mut hashes) = (Messages::new(2 * total, 2), Vec::new());
        let mut wrong = Block::ZERO;
        for first in (0..n).step_by(ROWS) {
            let count = ROWS.min(n - first);
            let digests = &mut digests[..count * total];
            let (a, prf) = (&mut a[..count * checks], &mut prf[..count * checks]);
            labels.fill(a);
            masks.fill(prf);
            let m = committing_labels(&hash, first, self.offset, &self.rows[first..first + count]);
            channel.recv(digests.as_flattened_mut().as_flattened_mut())?;
            let sealed = &mut sealed[..count * total];
            channel.recv_blocks(sealed)?;
            let opened = &mut opened[..count * active];
            pick(sealed, total, &self.evaluated, opened);
            cipher.xor(opened);
            for row in 0..count {
                let i = first + row;
                let digests = &digests[row * total..][..total];
                let open = &opened[row * active..][..active];
                for (e, &j) in self.evaluated.iter().enumerate() {
                    Oracle::label(&mut messages, j, i, r[i * active + e], open[e]);
                }
                let a = &a[row * checks..][..checks];
                for (c, &j) in self.checked.iter().enumerate() {
                    let pairs = committed_pairs(a[c], deltas[c], prf[row * checks + c], &m[row]);
                    pairs.iter().for_each(|(r, a)| Oracle::label(&mut messages, j, i, *r, *a));
                }
                terms.oracle.digests(&mut messages, &mut hashes);
                let opened = self.evaluated.iter().zip(open).map(|(&j, a)| &digests[j][a.lsb() as usize]);
                let known = opened.chain(self.checked.iter().flat_map(|&j| &digests[j]));
                wrong = hashes.iter().zip(known).fold(wrong, |wrong, (x, y)| wrong | differences(x, y));
                match (terms.own.get(i), &mut evaluation.evaluator) {
                    (Some(&slot), Some(evaluator)) => evaluator.set_labels(slot, open),
                    (Some(_), None) => {}
                    (None, _) => {
                        let at = i - terms.own.len();
                        evaluation.masks[at * active..][..active].copy_from_slice(open);
                    }
                }
            }
        }
        self.check(wrong == Block::ZERO);
        Ok(())
    }

    /// Step 5: {H(Δ_{i,b})}.
    fn receive_token_hashes(&self, channel: &mut Channel, terms: &Terms<'_>) -> Result<TokenHashes> {
        let mut hashes = Vec::new();
        for _ in terms.kinds() {
            let mut kind = vec![[[0u8; 32]; 2]; terms.outputs];
            channel.recv(kind.as_flattened_mut().as_flattened_mut())?;
            hashes.push(kind);
        }
        Ok(hashes)
    }

    /// Step 6: opens T of the evaluation copies, so many outputs of all copies at a time; `each` is given them copy by copy, with the numbers
    /// of the kind and of the first output.
    ///
    /// Nothing is done for one copy while another's table is still to come: P1 would see by P2's pace which copies are opened.
    fn receive_tables(
        &mut self,
        channel: &mut Channel,
        terms: &Terms<'_>,
        known: &Commitments,
        mut each: impl FnMut(usize, usize, &[Block]) -> Result<()>,
    ) -> Result<()> {
        let (total, active) = (self.total(), self.evaluated.len());
        let (mut rows, mut opened, mut columns) = (zeros(0), zeros(0), zeros(0));
        for (k, &kind) in terms.kinds().iter().enumerate() {
            let mut cipher = encryption(&self.keys, kind);
            let mut hashes = Hashes::new(self.evaluated.iter().map(|&j| terms.oracle.table_hasher(kind, j)));
            for first in (0..terms.outputs).step_by(ROWS) {
                let count = ROWS.min(terms.outputs - first);
                rows.resize(2 * count * total, Block::ZERO);
                opened.resize(2 * count * active, Block::ZERO);
                channel.recv_blocks(&mut rows)?;
                split(&rows, &self.evaluated, &self.checked, &mut opened);
                by_copy(&opened, active, &mut columns);
                for (e, table) in columns.chunks_exact_mut(column_length(count)).enumerate() {
                    cipher.xor_one(e, &mut table[..2 * count]);
                }
                hashes.columns(&columns);
                each(k, first, &columns)?;
            }
            let found = hashes.finish();
            self.check_digests(found.iter().zip(self.evaluated.clone().iter().map(|&j| &known.tables[k][j])));
        }
        Ok(())
    }

    /// The end of step 6, and steps 7 to 9.
    fn finish(
        &mut self,
        channel: &mut Channel,
        terms: &Terms<'_>,
        input: &BitVec,
        r: &[Block],
        received: Received,
        decoded: Decoded,
        prg: &mut Prg,
    ) -> Result<Option<BitVec>> {
        let verdict = decoded.verdict();
        let (mut known, mut omega) = (verdict.known.into(), verdict.omega);
        deviate(|script| script.omega(&mut known, &mut omega));
        // Step 7
        let h1 = self.trapdoor.blind(&terms.oracle, known, omega);
        channel.send(&h1.encode()[0])?;
        channel.flush()?;
        let seeds = self.check_recovery(channel, terms, &received, &h1)?;
        deviate(|script| script.decrypted(&seeds));
        // Step 8, all of it always: the time of P2's answer, of its next row or of its leaving must not tell whether copies disagreed,
        // which may depend on y.
        let (x, recovered) = self.recover(terms, r, seeds);
        let computed = self.compute(terms, &x, input);
        let mut z = verdict.z;
        for (z, computed) in z.iter_mut().zip(computed.iter()) {
            z.conditional_assign(&u8::from(computed), verdict.known);
        }
        self.check((verdict.sure & (recovered | !verdict.known)).into());
        if terms.output_to.garbler() {
            self.return_output(channel, terms, &received, &decoded, &z, prg)?;
        }
        // Step 9
        if self.failed {
            return cheated(CAUGHT);
        }
        Ok(terms.output_to.evaluator().then(|| bits(&z)))
    }

    /// Step 7 and the checks of step 9 (c) and (d); returns seed'_j of the evaluation copies.
    fn check_recovery(
        &mut self,
        channel: &mut Channel,
        terms: &Terms<'_>,
        received: &Received,
        h1: &Points,
    ) -> Result<Blocks> {
        let total = self.total();
        let elements = Elements::new(&self.seeds, &self.trapdoor.h, &self.trapdoor.g1);
        let delta = channel.recv_block()?;
        let mut zero_tokens = vec![Block::ZERO; terms.outputs];
        channel.recv_blocks(&mut zero_tokens)?;
        let mut c: Vec<Encoding> = vec![[0; POINT_BYTES]; total];
        channel.recv(c.as_flattened_mut())?;
        let mut sealed = vec![Block::ZERO; total];
        channel.recv_blocks(&mut sealed)?;
        // The tokens are those that were hashed, and all differ by Δ.
        let tokens: Vec<[Block; 2]> = zero_tokens.iter().map(|&zero| [zero, zero ^ delta]).collect();
        self.check_tokens(terms, Hidden::Tables, &tokens, &received.hashes[0]);
        self.check_tables(terms, Hidden::Tables, &tokens, &received.z, &received.commitments[0]);
        // Step 9 (d)
        let expected = elements.seal(&terms.oracle, &self.checked, &self.seeds, h1, delta);
        let copies = self.checked.clone();
        self.check_digests(elements.c.iter().zip(copies.iter().map(|&j| &c[j])));
        let wrong = expected.iter().zip(&copies).fold(Block::ZERO, |wrong, (e, &j)| wrong | (*e ^ sealed[j]));
        self.check(wrong == Block::ZERO);
        let sound = sanitize(&mut c);
        let sound = self.evaluated.iter().fold(true, |all, &j| all & sound[j]);
        self.check(sound);
        let c: Vec<Encoding> = self.evaluated.iter().map(|&j| c[j]).collect();
        let sealed: Vec<Block> = self.evaluated.iter().map(|&j| sealed[j]).collect();
        Ok(Zeroizing::new(self.trapdoor.decrypt(&terms.oracle, &self.evaluated, &c, &sealed)))
    }

    fn check_tokens(
        &mut self,
        terms: &Terms<'_>,
        kind: Hidden,
        tokens: &[[Block; 2]],
        hashes: &[[Digest; 2]],
    ) {
        let found = terms.oracle.tokens(kind, 0, tokens);
        self.check_digests(found.as_flattened().iter().zip(hashes.as_flattened()));
    }

    /// Step 9 (c): the check copies' commitments to T, from their labels and the tokens.
    fn check_tables(
        &mut self,
        terms: &Terms<'_>,
        kind: Hidden,
        tokens: &[[Block; 2]],
        z: &[Block],
        commitments: &[Digest],
    ) {
        let (checks, deltas) = (self.checked.len(), self.seeds.deltas());
        let starts = starts(self.start, &self.checked);
        let (mut column, mut table) = (zeros(terms.outputs), zeros(2 * terms.outputs));
        let mut found = Vec::with_capacity(checks);
        for c in 0..checks {
            (0..terms.outputs).for_each(|i| column[i] = z[i * checks + c]);
            output_table(starts[c], kind, deltas[c], &column, tokens, &mut table);
            found.push(terms.oracle.tables(kind, self.checked[c], &table));
        }
        self.check_digests(found.iter().zip(commitments));
    }

    /// Step 8: P1's committed bits, and whether the decrypted seeds explain R by exactly one input. The same steps whatever they explain.
    fn recover(&self, terms: &Terms<'_>, r: &[Block], seeds: Blocks) -> (BitVec, Choice) {
        let (n, active) = (terms.committed(), self.evaluated.len());
        let mut prf = zeros(n * active);
        Seeds::new(seeds.to_vec()).masks().fill(&mut prf);
        let m = committing_labels(&Mitccrh::new(self.labels), 0, self.offset, &self.rows[..n]);
        let (mut found, mut x) = (Zeroizing::new(vec![0u8; n]), Zeroizing::new(vec![0u8; n]));
        let (mut any, mut several) = (Choice::from(0), Choice::from(0));
        for e in 0..active {
            let (mut valid, mut other) = (Choice::from(1), 0);
            for i in 0..n {
                let label = r[i * active + e] ^ prf[i * active + e];
                let one = label.ct_eq(&m[i][1]);
                valid &= one | label.ct_eq(&m[i][0]);
                x[i] = one.unwrap_u8();
                other |= x[i] ^ found[i];
            }
            several |= valid & any & !other.ct_eq(&0);
            found.iter_mut().zip(x.iter()).for_each(|(found, x)| found.conditional_assign(x, valid));
            any |= valid;
        }
        (bits(&found), any & !several)
    }

    /// f(x, y) in the clear, under the mask if P1 alone learns it.
    fn compute(&self, terms: &Terms<'_>, x: &BitVec, y: &BitVec) -> BitVec {
        let own = terms.own.iter().copied().zip(x.iter());
        let bits: Vec<(u32, bool)> = own.chain(terms.peer.iter().copied().zip(y.iter())).collect();
        note(Work::Compute, bits.len());
        let mut z = compute(terms.function, &bits);
        for i in 0..terms.masks() {
            z.set(i, z.get(i) ^ x.get(terms.own.len() + i));
        }
        z
    }

    /// P1's outputs: commits to their tokens, checks that P1's are sound, and opens.
    fn return_output(
        &mut self,
        channel: &mut Channel,
        terms: &Terms<'_>,
        received: &Received,
        decoded: &Decoded,
        z: &[u8],
        prg: &mut Prg,
    ) -> Result<()> {
        // The tokens of a copy that computed z; a good one is among the evaluation copies.
        let (mut returned, found) = decoded.tokens_of(z);
        self.check(found.into());
        deviate(|script| script.returned(&mut returned));
        let mut opening = Zeroizing::new([0u8; 32]);
        prg.fill_bytes(&mut opening[..]);
        channel.send(&terms.oracle.returned(&opening, &returned))?;
        let mut tokens = vec![[Block::ZERO; 2]; terms.outputs];
        channel.recv_blocks(tokens.as_flattened_mut())?;
        self.check_tokens(terms, Hidden::Returned, &tokens, &received.hashes[1]);
        self.check_tables(terms, Hidden::Returned, &tokens, &received.z, &received.commitments[1]);
        channel.send(&[u8::from(!self.failed)])?;
        if !self.failed {
            channel.send(&opening[..])?;
            channel.send_blocks(&returned)?;
        }
        Ok(channel.flush()?)
    }
}

/// What P1 commits to before it sends tables, of all copies.
pub(super) struct Commitments {
    /// Hashes of the garbled tables.
    circuits: Vec<Digest>,
    /// Hashes of the output tables, by kind.
    tables: Vec<Vec<Digest>>,
}

/// The garbled circuits as they come.
struct Incoming<'f> {
    copies: Arriving,
    walk: Box<dyn Walk + 'f>,
    tables: Vec<Block>,
    garbled: Vec<Block>,
}

/// What becomes of the tables that come.
enum Arriving {
    /// The evaluation copies' are hashed. The check copies' hashes and zero-labels of the outputs are known.
    Whole { evaluated: Hashes, checked: Vec<Digest>, z: Blocks },
    /// The check copies are garbled, to solve for the others.
    Coded(Garbling, Box<Decoder>),
}

impl Incoming<'_> {
    /// Steps 5 and 6 with the check of step 9 (b): the next piece, of which `kept` becomes the evaluation copies' tables; `None` after
    /// the last.
    fn receive(
        &mut self,
        channel: &mut Channel,
        terms: &Terms<'_>,
        state: &EvaluatorState,
        kept: &mut Vec<Block>,
    ) -> Result<Option<Piece<'_>>> {
        let Some(piece) = self.walk.next_piece(PIECE) else { return Ok(None) };
        let tables = &mut self.tables;
        tables.resize(piece.ands * terms.copies.tables() * 2, Block::ZERO);
        channel.recv_blocks(tables)?;
        kept.resize(piece.ands * state.evaluated.len() * 2, Block::ZERO);
        match &mut self.copies {
            Arriving::Whole { evaluated, .. } => {
                split(tables, &state.evaluated, &state.checked, kept);
                evaluated.rows(kept);
            }
            Arriving::Coded(garbling, decoder) => {
                garbling.garble(piece, &mut self.garbled);
                decoder.piece(tables, &self.garbled, kept);
            }
        }
        Ok(Some(piece))
    }

    /// The pieces that P1 sent before it had P2's opening, the evaluation copies' tables of each. They wait for labels.
    fn receive_early(
        &mut self,
        channel: &mut Channel,
        terms: &Terms<'_>,
        state: &EvaluatorState,
    ) -> Result<Vec<Vec<Block>>> {
        let (mut early, mut held) = (Vec::new(), 0);
        loop {
            let mut next = [0];
            channel.recv(&mut next)?;
            if next == [COMMITMENTS] {
                return Ok(early);
            }
            let mut kept = Vec::new();
            if next != [TABLES] || held >= EARLY || self.receive(channel, terms, state, &mut kept)?.is_none()
            {
                return cheated("more tables before P1's input than there are or may be");
            }
            held += self.tables.len();
            early.push(kept);
        }
    }

    /// The end of step 5 for the circuits: compares them with what was committed to. Returns the outputs' slots, and their zero-labels in
    /// the check copies.
    fn finish(
        self,
        terms: &Terms<'_>,
        state: &mut EvaluatorState,
        known: &Commitments,
    ) -> (Vec<u32>, Blocks) {
        let slots = self.walk.outputs().to_vec();
        let (evaluated, checked, z) = match self.copies {
            Arriving::Whole { evaluated, checked, z } => (evaluated.finish(), checked, z),
            Arriving::Coded(garbling, decoder) => {
                let (evaluated, checked) = decoder.finish();
                (evaluated, checked, garbling.outputs(terms, &slots))
            }
        };
        let copies: Vec<usize> = state.evaluated.iter().chain(&state.checked).copied().collect();
        let found = evaluated.iter().chain(&checked);
        state.check_digests(found.zip(copies.iter().map(|&j| &known.circuits[j])));
        (slots, z)
    }
}

/// Where P2 keeps, between the two halves of a run, what evaluation needs.
pub(super) trait Keep {
    /// The state before any table.
    fn state(&mut self, terms: &Terms<'_>, state: &EvaluatorState, hashes: &TokenHashes) -> Result<()>;
    /// The evaluation copies' garbled tables, then their output tables.
    fn tables(&mut self, tables: &[Block]) -> Result<()>;
}

/// What [`Keep`] was given, in that order.
pub(super) trait Kept {
    /// Fills in the next tables.
    fn tables(&mut self, tables: &mut [Block]) -> Result<()>;
    /// What stands behind the tables.
    fn received(&mut self, terms: &Terms<'_>, hashes: TokenHashes, checks: usize) -> Result<Received>;
}

/// Looks the evaluation copies' output labels up.
struct Decoding {
    starts: Vec<Block>,
    /// The labels, output by output.
    z: Blocks,
    labels: Blocks,
    decoded: Decoded,
}

impl Decoding {
    /// Opens outputs from `first` on with the tables of the kind numbered `k`, which stand copy by copy.
    fn take(&mut self, terms: &Terms<'_>, hashes: &TokenHashes, k: usize, first: usize, columns: &[Block]) {
        let (kind, active) = (terms.kinds()[k], self.starts.len());
        let count = tables_of(&columns[..columns.len() / active.max(1)]).len() / 2;
        let labels = &mut self.labels[..count];
        for (e, table) in columns.chunks_exact(column_length(count)).enumerate() {
            (0..count).for_each(|i| labels[i] = self.z[(first + i) * active + e]);
            let colours = BitVec::from_lsbs(labels);
            note(Work::Hash, count);
            Mitccrh::new(self.starts[e]).hash_blocks(first_gid(kind) + first as u64, 1, labels);
            for (i, (label, pair)) in labels.iter_mut().zip(table.as_chunks::<2>().0).enumerate() {
                *label ^= pair[0] ^ ((pair[0] ^ pair[1]) & Block::mask(colours.get(i)));
            }
            let found = terms.oracle.tokens(kind, first, labels.as_chunks::<1>().0);
            for (i, ([hash], known)) in found.iter().zip(&hashes[k][first..]).enumerate() {
                let [zero, one] = known.map(|known| known.ct_eq(hash));
                let values = [zero & !one, one & !zero].map(|value| value.unwrap_u8());
                self.decoded.take(kind, e, first + i, labels[i], values);
            }
        }
    }
}

/// The evaluation copies' outputs. What they are may hang on y: everything here takes the same steps whatever they are.
struct Decoded {
    outputs: usize,
    /// Of each copy's outputs, whether it is 0 and whether it is 1; neither, where a label is invalid.
    values: Zeroizing<Vec<[u8; 2]>>,
    tokens: Blocks,
    returned: Blocks,
}

impl Decoded {
    fn new(copies: usize, outputs: usize) -> Self {
        let n = copies * outputs;
        Decoded { outputs, values: Zeroizing::new(vec![[0; 2]; n]), tokens: zeros(n), returned: zeros(n) }
    }

    /// Records copy `e`'s token of one kind for output `i`; both kinds must tell the same value.
    fn take(&mut self, kind: Hidden, e: usize, i: usize, token: Block, values: [u8; 2]) {
        let at = e * self.outputs + i;
        if matches!(kind, Hidden::Returned) {
            self.returned[at] = token;
            (0..2).for_each(|b| self.values[at][b] &= values[b]);
        } else {
            self.tokens[at] = token;
            self.values[at] = values;
        }
    }

    /// Step 6.
    fn verdict(&self) -> Verdict {
        let n = self.outputs;
        note(Work::Move, self.values.len());
        // Invalid circuits
        let valid = |copy: &[[u8; 2]]| copy.iter().fold(1, |all, [zero, one]| all & (zero | one));
        let copies = self.tokens.len().checked_div(n).unwrap_or(0);
        let some = (0..copies).fold(0, |some, e| some | valid(&self.values[e * n..][..n]));
        let mut sure = Choice::from(some | u8::from(n == 0));
        let (mut known, mut omega, mut z) = (Choice::from(0), Block::ZERO, Zeroizing::new(vec![0; n]));
        for i in 0..n {
            let (mut tokens, mut has) = ([Block::ZERO; 2], [0; 2]);
            for at in (i..self.values.len()).step_by(n) {
                for b in 0..2 {
                    tokens[b].conditional_assign(&self.tokens[at], Choice::from(self.values[at][b]));
                    has[b] |= self.values[at][b];
                }
            }
            // Inconsistent output labels
            let (both, difference) = (Choice::from(has[0] & has[1]), tokens[0] ^ tokens[1]);
            sure &= !(both & known & !difference.ct_eq(&omega));
            omega.conditional_assign(&difference, both);
            known |= both;
            // Consistent output labels
            z[i] = has[1];
        }
        Verdict { z, omega, known: known & Choice::from(some), sure }
    }

    /// The tokens of P1's outputs of a copy that computed `z`, and whether there is one.
    fn tokens_of(&self, z: &[u8]) -> (Blocks, Choice) {
        let n = self.outputs;
        note(Work::Move, self.values.len());
        let (mut returned, mut found) = (zeros(n), Choice::from(u8::from(n == 0)));
        for (values, tokens) in self.values.chunks_exact(n.max(1)).zip(self.returned.chunks_exact(n.max(1))) {
            let equal =
                values.iter().zip(z).fold(1, |equal, ([zero, one], z)| equal & ((zero & !z) | (one & z)));
            let matches = Choice::from(equal & 1);
            returned.iter_mut().zip(tokens).for_each(|(out, token)| out.conditional_assign(token, matches));
            found |= matches;
        }
        (returned, found)
    }
}

/// What step 6 concludes.
struct Verdict {
    /// The outputs, where no two copies contradict each other.
    z: Zeroizing<Vec<u8>>,
    /// Δ, and whether two copies contradict each other and so tell it.
    omega: Block,
    known: Choice,
    /// Whether there is an output at all.
    sure: Choice,
}

/// Bits that stand in bytes of their own.
fn bits(bytes: &[u8]) -> BitVec {
    let mut out = BitVec::zeros(bytes.len());
    bytes.iter().enumerate().for_each(|(i, byte)| out.set(i, *byte == 1));
    out
}

/// Takes the lanes named by `lanes` out of rows of `total`.
fn pick(rows: &[Block], total: usize, lanes: &[usize], out: &mut [Block]) {
    note(Work::Move, out.len());
    for (row, out) in rows.chunks_exact(total).zip(out.chunks_exact_mut(lanes.len().max(1))) {
        out.iter_mut().zip(lanes).for_each(|(out, &j)| *out = row[j]);
    }
}
