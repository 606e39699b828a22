//! Non-interactive OT with silent preprocessing (BCGIKRS19, sections 3, 5 and 6.6; figures 10, 11 and 17).
//!
//! The receiver publishes a key as a file, any number of senders answer with a file, and both expand later,
//! alone, to many random OTs. Chosen messages then take one more message each way, or none at all: the
//! receiver can send its question along with the key, the sender its reply along with the answer, which makes
//! a two-message OT extension.
//!
//! | paper | here |
//! | --- | --- |
//! | R.Gen | [`ReceiverKey::generate`] |
//! | R.Expand_in | [`ReceiverKey::expand_in`] |
//! | S.Gen | [`SenderKey::answer`] |
//! | S.Expand | [`SenderKey::expand`] |
//! | R.Expand_out | [`ReceiverKey::expand_out`] |
//! | R.Msg | [`ReceiverKey::ask`] |
//! | S.Msg | [`reply`] |
//! | R.Dec | [`open`] |
//!
//! - **Security**: malicious by Fiat–Shamir (or semi-honest, where [`Params`] say so) in the random-oracle
//!   and ideal-permutation models, under dual LPN with one bit of adaptive leakage: a sender that guesses
//!   bits of the noise is caught when wrong. The receiver's choice bits are the same towards every sender
//!   that answers one key, so **one key takes one question**: two questions under one key tell the XOR of
//!   their inputs.
//! - **A failed check spends the key.** Whether an answer passes tells its sender whether it guessed bits of
//!   the noise, one bit and more a try, and the noise is the same for all senders. So [`ReceiverKey`] takes
//!   no answer after the first one that fails, and `ReceiverFile` of `tacit-store` makes the file say so, on
//!   the disk, before it reports the failure. Anybody can spend a key by a bad answer; a receiver that takes
//!   signed messages only (module [`signed`](super::signed)) knows who did.
//! - **Bytes**: 80 an OT of the key's t·ℓ from the receiver, 32 an OT and 64 a tree from the sender: about
//!   210 kB and 95 kB for 10^7 OTs.
//!
//! The base OT is that of [`mrr21`], whose two messages do not wait for one another. Deviations from the
//! paper: those of the module `tpprf`.

mod two_round;

pub use two_round::TwoRound;

use super::params::{Code, LARGEST_RUN};
use super::tpprf::{self, Blocks, Challenge, Received, SenderTrees, Setup, message_len};
use crate::base::{Run, mrr21};
use crate::silent::tree::ggm::equal;
use crate::silent::tree::shape::Shape;
use crate::spent::Spent;
use crate::{Error, Result, Security};
use tacit_crypto::ggm::LANES;
use tacit_crypto::hash::Mitccrh;
use tacit_crypto::transcript::Transcript;
use tacit_crypto::{BitVec, Block, Buffer, Prg};
use tacit_net::{Party, SessionId};
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

/// The name in errors.
pub const NAME: &str = "silent nisc";
const MAGIC: [u8; 9] = *b"tacitnisc";
/// In place of the magic where a check failed under the receiver's key.
const BURNT: [u8; 9] = *b"tacitburn";
/// Version 3 had fewer noisy positions.
const VERSION: u8 = 4;
/// Bytes of one base OT's part of a key, and of the sender's one point.
const BASE_MESSAGE: usize = 80;
const POINT: usize = 32;
const HEADER: usize = MAGIC.len() + 4 + 8 + 32;

/// What a message is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    PublicKey = 1,
    ReceiverKey = 2,
    Answer = 3,
    SenderKey = 4,
    Question = 5,
    Reply = 6,
}

/// What the receiver chooses when it makes a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Params {
    /// The public matrix.
    pub code: Code,
    /// Whether the sender proves that it did as told.
    pub security: Security,
    /// Number of OTs, from 1 to 2^24.
    pub count: usize,
}

impl Params {
    fn check(self) -> Result<Self> {
        if (1..=LARGEST_RUN).contains(&self.count) {
            Ok(self)
        } else {
            Err(Error::Usage { protocol: NAME, what: "the number of OTs must be from 1 to 2^24" })
        }
    }

    fn shape(self) -> Shape {
        self.code.shape(self.count)
    }

    fn malicious(self) -> bool {
        self.security == Security::Malicious
    }

    /// Bytes of a public key, an answer, a question and a reply.
    pub fn message_bytes(&self) -> [u64; 4] {
        let public_key = HEADER + self.code.noise(self.count).shape.cots() * BASE_MESSAGE;
        let question = HEADER + self.count.div_ceil(8);
        let reply = HEADER + self.count * 2 * size_of::<Block>();
        [public_key, self.answer_len(), question, reply].map(|bytes| bytes as u64)
    }

    fn answer_len(self) -> usize {
        let proof = if self.malicious() { 32 } else { 0 };
        HEADER + POINT + message_len(self.shape(), self.malicious()) + proof
    }
}

/// The start of every message: what it is, for which parameters, and to what it belongs.
struct Header {
    kind: Kind,
    params: Params,
    id: [u8; 32],
}

fn malformed(what: &'static str) -> Error {
    Error::Malformed { protocol: NAME, what }
}

impl Header {
    fn write(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        let code = match self.params.code {
            Code::QuasiCyclic => 0,
            Code::Linear => 1,
        };
        out.extend_from_slice(&[VERSION, self.kind as u8, code, self.params.malicious() as u8]);
        out.extend_from_slice(&(self.params.count as u64).to_le_bytes());
        out.extend_from_slice(&self.id);
        out
    }

    /// Reads the header of a message of `kind`; returns what follows it.
    fn read(message: &[u8], kind: Kind) -> Result<(Header, &[u8])> {
        let cut = message.split_first_chunk::<HEADER>();
        let Some((head, body)) = cut else { return Err(malformed("the message is cut short")) };
        let (magic, head) = head.split_at(MAGIC.len());
        if magic != MAGIC {
            return Err(malformed("this is no message of silent NISC"));
        }
        if head[0] < VERSION {
            return Err(malformed(
                "of an older version, whose parameters are refused now; make new keys with tacit nisc keygen",
            ));
        }
        if head[0] > VERSION {
            return Err(malformed("of a newer version; update this side"));
        }
        if head[1] != kind as u8 {
            return Err(malformed("the message is of another kind"));
        }
        let code = match head[2] {
            0 => Code::QuasiCyclic,
            1 => Code::Linear,
            _ => return Err(malformed("an unknown code")),
        };
        let security = match head[3] {
            0 => Security::SemiHonest,
            1 => Security::Malicious,
            _ => return Err(malformed("an unknown security")),
        };
        let (mut count, mut id) = ([0; 8], [0; 32]);
        count.copy_from_slice(&head[4..12]);
        id.copy_from_slice(&head[12..]);
        let count = usize::try_from(u64::from_le_bytes(count)).unwrap_or(usize::MAX);
        let params = Params { code, security, count };
        params.check().map_err(|_| malformed("the number of OTs is out of range"))?;
        Ok((Header { kind, params, id }, body))
    }

    /// As [`read`](Self::read), for a message that must belong to `id` and have `params`.
    fn read_for<'a>(message: &'a [u8], kind: Kind, params: Params, id: &[u8; 32]) -> Result<&'a [u8]> {
        let (header, body) = Header::read(message, kind)?;
        if header.params != params {
            return Err(malformed("the message has other parameters"));
        }
        if header.id != *id {
            return Err(malformed("the message belongs to another session"));
        }
        Ok(body)
    }
}

/// All that follows from a public key and the context in which it is used.
struct Public {
    params: Params,
    setup: Setup,
    id: [u8; 32],
}

impl Public {
    fn new(key: &[u8], context: &[u8]) -> Result<Self> {
        let (header, body) = Header::read(key, Kind::PublicKey)?;
        let params = header.params;
        if body.len() != params.shape().cots() * BASE_MESSAGE {
            return Err(malformed("the key's length is not that of its parameters"));
        }
        let mut transcript = Transcript::new("tacit silent nisc v4");
        transcript.append("context", context);
        transcript.append("public key", key);
        let mut id = [0; 32];
        transcript.challenge_bytes("id", &mut id);
        let setup = Setup::new(NAME, params.code, params.count, params.security, transcript);
        Ok(Public { params, setup, id })
    }

    fn encode(&self, noise: Buffer, each: &mut dyn FnMut(&mut [Block])) {
        self.setup.encode(self.params.code, noise, self.params.count, each);
    }

    /// Binds the answer up to its proof: the challenges of Fig. 17.
    fn challenge(&self, answer: &[u8]) -> Challenge {
        let mut transcript = self.setup.context.clone();
        transcript.append("answer", answer);
        self.setup.challenge(transcript)
    }

    /// Binds the whole answer: what it is called, and the hash of its OTs.
    fn answered(&self, answer: &[u8]) -> ([u8; 32], Block) {
        let mut transcript = self.setup.context.clone();
        transcript.append("whole answer", answer);
        let mut id = [0; 32];
        transcript.challenge_bytes("id", &mut id);
        (id, transcript.challenge_block("mitccrh start"))
    }
}

/// The base OTs' run: bound to the nonce, the parameters and the context.
fn base_run(header: &[u8], context: &[u8], len: usize) -> Run {
    let mut transcript = Transcript::new("tacit silent nisc base v3");
    transcript.append("context", context);
    transcript.append("header", header);
    let mut session = [0; 32];
    transcript.challenge_bytes("session", &mut session);
    Run::new(mrr21::NAME, SessionId(session), Party::First, 0, len)
}

/// The receiver's secret key: a seed and the parameters it was made for.
#[derive(Clone)]
pub struct ReceiverKey {
    params: Params,
    seed: Block,
    context: Vec<u8>,
    /// Whether an answer failed its check, under this key or a clone of it.
    spent: Spent,
}

impl Drop for ReceiverKey {
    fn drop(&mut self) {
        self.seed.zeroize();
    }
}

impl core::fmt::Debug for ReceiverKey {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "ReceiverKey({:?}, [secret])", self.params)
    }
}

/// What the seed of a receiver's key stands for.
struct ReceiverState {
    public_key: Vec<u8>,
    alpha: Zeroizing<Vec<u32>>,
    base: mrr21::Receiver,
}

impl ReceiverKey {
    /// Bytes of [`to_bytes`](Self::to_bytes).
    pub const LEN: usize = HEADER + size_of::<Block>();

    /// R.Gen: a secret key and the public key that goes with it. `context` is bound to both, and senders give
    /// the same.
    ///
    /// Errors when the number of OTs is out of range.
    pub fn generate(params: Params, context: &[u8], prg: &mut Prg) -> Result<(Self, Vec<u8>)> {
        let (params, context, spent) = (params.check()?, context.to_vec(), Spent::default());
        let key = ReceiverKey { params, seed: prg.block(), context, spent };
        let public_key = key.state()?.public_key;
        Ok((key, public_key))
    }

    /// The secret key as bytes for a file that only its owner can read.
    pub fn to_bytes(&self) -> Zeroizing<Vec<u8>> {
        let header = Header { kind: Kind::ReceiverKey, params: self.params, id: [0; 32] };
        let mut out = Zeroizing::new(header.write());
        out.extend_from_slice(&self.seed.to_bytes());
        out
    }

    /// Reads what [`to_bytes`](Self::to_bytes) wrote; `context` is that of [`generate`](Self::generate).
    ///
    /// Errors: `Usage` for what [`burnt`](Self::burnt) left of a key under which a check failed, `Malformed`
    /// for anything else.
    pub fn from_bytes(bytes: &[u8], context: &[u8]) -> Result<Self> {
        if bytes.starts_with(&BURNT) {
            let what = "an answer failed its check under this key, which tells its sender bits of the key; \
                        make a new one with tacit nisc keygen, and give the senders its public key";
            return Err(Error::Usage { protocol: NAME, what });
        }
        let (header, body) = Header::read(bytes, Kind::ReceiverKey)?;
        let seed = body.try_into().map_err(|_| malformed("the key's length is wrong"))?;
        let (context, spent) = (context.to_vec(), Spent::default());
        Ok(ReceiverKey { params: header.params, seed: Block::from_bytes(seed), context, spent })
    }

    /// What takes the place of [`to_bytes`](Self::to_bytes) in the key's file, as long, once a check has
    /// failed: nothing secret, and [`from_bytes`](Self::from_bytes) refuses it.
    pub fn burnt(&self) -> Vec<u8> {
        let mut out = Header { kind: Kind::ReceiverKey, params: self.params, id: [0; 32] }.write();
        out[..BURNT.len()].copy_from_slice(&BURNT);
        out.resize(Self::LEN, 0);
        out
    }

    /// The number of OTs and the other parameters.
    pub fn params(&self) -> Params {
        self.params
    }

    /// Makes everything again from the seed.
    fn state(&self) -> Result<ReceiverState> {
        let noise = self.params.code.noise(self.params.count);
        let shape = noise.shape;
        let mut prg = Prg::from_seed(self.seed);
        let mut nonce = [0; 32];
        prg.fill_bytes(&mut nonce);
        let alpha = Zeroizing::new(noise.points(&mut prg));
        let choices = tpprf::choices(&alpha, shape);
        let mut public_key = Header { kind: Kind::PublicKey, params: self.params, id: nonce }.write();
        let run = base_run(&public_key, &self.context, shape.cots());
        let (base, message) = mrr21::Receiver::start(&run, &choices, &mut prg)?;
        public_key.extend_from_slice(&message);
        Ok(ReceiverState { public_key, alpha, base })
    }

    /// The public key again.
    pub fn public_key(&self) -> Result<Vec<u8>> {
        Ok(self.state()?.public_key)
    }

    /// R.Expand_in: the choice bits of the random OTs, which no answer changes.
    pub fn expand_in(&self) -> Result<BitVec> {
        let state = self.state()?;
        let public = Public::new(&state.public_key, &self.context)?;
        let layout = public.setup.noise;
        let mut noise = Buffer::zeros(layout.positions());
        for (tile, leaves) in noise.chunks_mut(layout.tile_len()).enumerate() {
            for (i, leaf) in leaves.iter_mut().enumerate() {
                *leaf = equal(state.alpha[tile * LANES + i % LANES], (i / LANES) as u32) & Block::ONE;
            }
        }
        let mut choices = BitVec::zeros(self.params.count);
        let mut at = 0;
        public.encode(noise, &mut |rows| {
            choices.set_lsbs(at, rows);
            at += rows.len();
        });
        Ok(choices)
    }

    /// R.Expand_out: checks a sender's answer and makes the receiver's half of the random OTs.
    ///
    /// Errors: `Malformed` for a message that is not an answer to this key, `Cheated` when a check fails, and
    /// `Spent` from then on. A key that lies in a file is used through `ReceiverFile` of `tacit-store`, which
    /// makes that last.
    pub fn expand_out(&self, answer: &[u8]) -> Result<ReceiverOutput> {
        self.spent.check(NAME)?;
        let result = self.expand(answer);
        if matches!(result, Err(Error::Cheated { .. })) {
            self.spent.set();
        }
        result
    }

    fn expand(&self, answer: &[u8]) -> Result<ReceiverOutput> {
        let state = self.state()?;
        let public = Public::new(&state.public_key, &self.context)?;
        let body = Header::read_for(answer, Kind::Answer, self.params, &public.id)?;
        if answer.len() != self.params.answer_len() {
            return Err(malformed("the answer's length is not that of its parameters"));
        }
        let (point, body) = body.split_at(POINT);
        let shape = public.setup.noise.shape;
        let mut pads = Zeroizing::new(vec![Block::ZERO; shape.cots()]);
        state.base.finish(point, &mut pads)?;
        let (message, proof) = body.split_at(message_len(shape, self.params.malicious()));
        let received = Received::new(&public.setup, &state.alpha, &pads, message);
        let noise = if self.params.malicious() {
            let challenge = public.challenge(&answer[..answer.len() - proof.len()]);
            let mut proof = Blocks(proof);
            received.checked(&public.setup, challenge, [proof.next(), proof.next()])?
        } else {
            received.trusted(&public.setup)
        };
        let (id, start) = public.answered(answer);
        let hash = Mitccrh::new(start);
        let mut choices = BitVec::zeros(self.params.count);
        let mut pads = vec![Block::ZERO; self.params.count];
        let mut at = 0;
        public.encode(noise, &mut |rows| {
            choices.set_lsbs(at, rows);
            hash.cot_to_rot_receiver(at as u64, rows, &mut pads[at..at + rows.len()]);
            at += rows.len();
        });
        Ok(ReceiverOutput { params: self.params, question_id: public.id, id, choices, messages: pads })
    }

    /// R.Msg: the question that turns the random choice bits `random` of [`expand_in`](Self::expand_in) into
    /// `inputs`.
    ///
    /// Ask once with a key. Errors when a length is not the number of OTs.
    pub fn ask(&self, random: &BitVec, inputs: &BitVec) -> Result<Vec<u8>> {
        if random.len() != self.params.count || inputs.len() != self.params.count {
            return Err(Error::Usage { protocol: NAME, what: "one choice bit an OT" });
        }
        let public = Public::new(&self.public_key()?, &self.context)?;
        let mut out = Header { kind: Kind::Question, params: self.params, id: public.id }.write();
        let mut difference = random.clone();
        difference.xor_assign(inputs);
        out.extend_from_slice(difference.as_bytes());
        Ok(out)
    }
}

/// The sender's secret key: a seed, and to which answer it belongs.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct SenderKey {
    #[zeroize(skip)]
    params: Params,
    seed: Block,
    public_id: [u8; 32],
    answer_id: [u8; 32],
    start: Block,
}

impl core::fmt::Debug for SenderKey {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "SenderKey({:?}, [secret])", self.params)
    }
}

/// What the seed of a sender's key stands for.
fn trees(seed: Block, shape: Shape) -> (SenderTrees, Prg) {
    let mut prg = Prg::from_seed(seed);
    let delta = prg.block().with_lsb(true);
    (SenderTrees::new(delta, &mut prg, shape), prg)
}

impl SenderKey {
    /// Bytes of [`to_bytes`](Self::to_bytes).
    pub const LEN: usize = HEADER + 32 + 2 * size_of::<Block>();

    /// S.Gen: answers a public key. `context` is the receiver's.
    ///
    /// Errors: `Malformed` for bytes that are no public key of this version.
    pub fn answer(public_key: &[u8], context: &[u8], prg: &mut Prg) -> Result<(Self, Vec<u8>)> {
        Self::answer_with(public_key, context, prg, |_| ())
    }

    /// [`answer`](Self::answer); `change` sees the message before its challenges are drawn.
    fn answer_with(
        public_key: &[u8],
        context: &[u8],
        prg: &mut Prg,
        change: impl FnOnce(&mut [u8]),
    ) -> Result<(Self, Vec<u8>)> {
        let public = Public::new(public_key, context)?;
        let (params, shape) = (public.params, public.setup.noise.shape);
        let seed = prg.block();
        let (trees, mut prg) = trees(seed, shape);
        let (header, phi) = public_key.split_at(HEADER);
        let run = base_run(header, context, shape.cots());
        let (base, point) = mrr21::Sender::start(&run, &mut prg);
        let mut pads = Zeroizing::new(vec![[Block::ZERO; 2]; shape.cots()]);
        base.finish(phi, &mut pads)?;

        let mut answer = Header { kind: Kind::Answer, params, id: public.id }.write();
        answer.extend_from_slice(&point);
        answer.extend_from_slice(&trees.message(&public.setup, &pads));
        change(&mut answer);
        if params.malicious() {
            let proof = trees.prove(&public.setup, public.challenge(&answer));
            answer.extend_from_slice(Block::as_bytes(&proof));
        }
        let (answer_id, start) = public.answered(&answer);
        let key = SenderKey { params, seed, public_id: public.id, answer_id, start };
        Ok((key, answer))
    }

    /// The number of OTs and the other parameters.
    pub fn params(&self) -> Params {
        self.params
    }

    /// S.Expand: the sender's half of the random OTs. `public_key` and `context` are those that were
    /// answered.
    ///
    /// Errors when they are not.
    pub fn expand(&self, public_key: &[u8], context: &[u8]) -> Result<SenderOutput> {
        let public = Public::new(public_key, context)?;
        if public.id != self.public_id || public.params != self.params {
            return Err(malformed("the key belongs to another session"));
        }
        let (trees, _) = trees(self.seed, public.setup.noise.shape);
        let noise = trees.expand(&public.setup);
        let hash = Mitccrh::new(self.start);
        let mut messages = vec![[Block::ZERO; 2]; self.params.count];
        let mut at = 0;
        public.encode(noise, &mut |rows| {
            hash.cot_to_rot_sender(at as u64, trees.delta, rows, &mut messages[at..at + rows.len()]);
            at += rows.len();
        });
        let (params, question_id, id) = (self.params, self.public_id, self.answer_id);
        Ok(SenderOutput { params, question_id, id, messages })
    }

    /// The secret key as bytes for a file that only its owner can read.
    pub fn to_bytes(&self) -> Zeroizing<Vec<u8>> {
        let header = Header { kind: Kind::SenderKey, params: self.params, id: self.public_id };
        let mut out = Zeroizing::new(header.write());
        out.extend_from_slice(&self.answer_id);
        out.extend_from_slice(Block::as_bytes(&[self.start, self.seed]));
        out
    }

    /// Reads what [`to_bytes`](Self::to_bytes) wrote.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let (header, body) = Header::read(bytes, Kind::SenderKey)?;
        let cut = body.split_first_chunk::<32>().filter(|(_, rest)| rest.len() == 32);
        let Some((answer_id, rest)) = cut else { return Err(malformed("the key's length is wrong")) };
        let mut rest = Blocks(rest);
        let (start, seed) = (rest.next(), rest.next());
        let (params, public_id) = (header.params, header.id);
        Ok(SenderKey { params, seed, public_id, answer_id: *answer_id, start })
    }
}

/// The sender's half of the random OTs.
#[derive(Zeroize, ZeroizeOnDrop)]
pub struct SenderOutput {
    #[zeroize(skip)]
    params: Params,
    question_id: [u8; 32],
    id: [u8; 32],
    messages: Vec<[Block; 2]>,
}

impl SenderOutput {
    /// The random messages.
    pub fn messages(&self) -> &[[Block; 2]] {
        &self.messages
    }
}

/// The receiver's half of the random OTs.
#[derive(Zeroize, ZeroizeOnDrop)]
pub struct ReceiverOutput {
    #[zeroize(skip)]
    params: Params,
    question_id: [u8; 32],
    id: [u8; 32],
    choices: BitVec,
    messages: Vec<Block>,
}

impl ReceiverOutput {
    /// The random choice bits, those of [`ReceiverKey::expand_in`].
    pub fn choices(&self) -> &BitVec {
        &self.choices
    }

    /// The message of each choice.
    pub fn messages(&self) -> &[Block] {
        &self.messages
    }
}

/// Binds a reply to the answer and to the question.
fn reply_id(answer: &[u8; 32], question: &[u8]) -> [u8; 32] {
    let mut transcript = Transcript::new("tacit silent nisc reply v3");
    transcript.append("answer", answer);
    transcript.append("question", question);
    let mut id = [0; 32];
    transcript.challenge_bytes("id", &mut id);
    id
}

/// S.Msg: the reply to a question: the sender's messages under its pads, swapped as the question says.
///
/// The output is consumed: pads serve once. Errors: `Malformed` for a question to another key, `Usage` for a
/// wrong number of messages.
pub fn reply(output: SenderOutput, question: &[u8], messages: &[[Block; 2]]) -> Result<Vec<u8>> {
    let params = output.params;
    if messages.len() != params.count {
        return Err(Error::Usage { protocol: NAME, what: "one pair of messages an OT" });
    }
    let bits = Header::read_for(question, Kind::Question, params, &output.question_id)?;
    if bits.len() != params.count.div_ceil(8) {
        return Err(malformed("the question's length is not that of its parameters"));
    }
    let swaps = BitVec::from_bytes(bits, params.count);
    let mut out = Header { kind: Kind::Reply, params, id: reply_id(&output.id, question) }.write();
    for ((i, pads), pair) in output.messages.iter().enumerate().zip(messages) {
        let swap = (pads[0] ^ pads[1]) & Block::mask(swaps.get(i));
        out.extend_from_slice(Block::as_bytes(&[pads[0] ^ swap ^ pair[0], pads[1] ^ swap ^ pair[1]]));
    }
    Ok(out)
}

/// R.Dec: opens a reply to `question`, which asked for `inputs`.
///
/// Errors: `Malformed` for a reply of another sender, to another question, or of a wrong length.
pub fn open(output: &ReceiverOutput, inputs: &BitVec, question: &[u8], reply: &[u8]) -> Result<Vec<Block>> {
    let params = output.params;
    if inputs.len() != params.count {
        return Err(Error::Usage { protocol: NAME, what: "one choice bit an OT" });
    }
    Header::read_for(question, Kind::Question, params, &output.question_id)?;
    let body = Header::read_for(reply, Kind::Reply, params, &reply_id(&output.id, question))?;
    if body.len() != 32 * params.count {
        return Err(malformed("the reply's length is not that of its parameters"));
    }
    let mut body = Blocks(body);
    let opened = output.messages.iter().zip(inputs.iter()).map(|(pad, input)| {
        let (zero, one) = (body.next(), body.next());
        zero ^ ((zero ^ one) & Block::mask(input)) ^ *pad
    });
    Ok(opened.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prg(seed: u128) -> Prg {
        Prg::from_seed(Block::new(seed))
    }

    fn key(seed: u128) -> (ReceiverKey, Vec<u8>) {
        let params = Params { code: Code::Linear, security: Security::Malicious, count: 1 };
        ReceiverKey::generate(params, b"test", &mut prg(seed)).unwrap()
    }

    /// Runs a sender that changes its message before it draws the challenges, as one that knows the hash
    /// would.
    fn cheat(
        receiver: &ReceiverKey,
        public: &[u8],
        change: impl FnOnce(&mut [u8]),
    ) -> Result<ReceiverOutput> {
        let (_, answer) = SenderKey::answer_with(public, b"test", &mut prg(7), change).unwrap();
        // What rates are taken of: a receiver that can be asked again, which the key itself does not allow.
        ReceiverKey::from_bytes(&receiver.to_bytes(), b"test").unwrap().expand_out(&answer)
    }

    /// Spoils the first message of the pair of base OTs `i`: whoever takes the second does not see it.
    fn spoilt_pair(public: &[u8], i: usize) -> Vec<u8> {
        let change = |answer: &mut [u8]| answer[HEADER + POINT + 32 * i] ^= 1;
        SenderKey::answer_with(public, b"test", &mut prg(7), change).unwrap().1
    }

    /// A cheater that asks one key for bit after bit learns each bit until its first wrong guess, and nothing
    /// after it, though the receiver is started anew for each answer: bits are uniform, so k of them come
    /// with 2^-k.
    #[test]
    fn a_cheater_learns_nothing_more_after_its_first_wrong_guess() {
        let (trials, mut learnt, mut long) = (60, 0, 0);
        for trial in 0..trials {
            let (receiver, public) = key(1000 + trial);
            // What the key's file holds.
            let mut stored = receiver.to_bytes().to_vec();
            let mut right = 0;
            let burnt = (0..12).any(|i| {
                let opened = ReceiverKey::from_bytes(&stored, b"test").unwrap();
                let answer = spoilt_pair(&public, 2 * i);
                match opened.expand_out(&answer) {
                    Ok(_) => right += 1,
                    Err(Error::Cheated { .. }) => {
                        assert!(matches!(opened.expand_out(&answer), Err(Error::Spent(NAME))));
                        stored = opened.burnt();
                        return true;
                    }
                    Err(other) => panic!("{other}"),
                }
                false
            });
            if burnt {
                // Another process, an honest answer: the key is gone, and its seed with it.
                let error = ReceiverKey::from_bytes(&stored, b"test").unwrap_err().to_string();
                assert!(error.contains("failed its check") && error.contains("tacit nisc keygen"), "{error}");
                assert!(stored.len() == ReceiverKey::LEN && stored[HEADER..].iter().all(|byte| *byte == 0));
            }
            learnt += right;
            long += usize::from(right >= 6);
        }
        // Right guesses before the first wrong one: 1 on average with variance 2, six and more once in 64.
        let deviation = (learnt as f64 - trials as f64) / (2.0 * trials as f64).sqrt();
        assert!(deviation.abs() < 4.5, "{learnt} bits of {trials} keys");
        assert!(long <= 6, "{long} of {trials} keys told six bits");
    }

    #[test]
    fn a_wrong_level_sum_is_a_guess_of_one_bit() {
        let (receiver, public) = key(1);
        let alpha = receiver.state().unwrap().alpha;
        let shape = receiver.params.shape();
        let (mut passed, trials) = (0, 40);
        for trial in 0..trials {
            let i = (trial * 37) % shape.cots();
            let (tile, level, lane) = tpprf::place(i, shape);
            let result = cheat(&receiver, &public, |answer| {
                answer[HEADER + POINT + 32 * i + trial % 16] ^= 1 << (trial % 8)
            });
            // The first message of the pair was spoilt; who takes the second does not see it.
            let takes_second = alpha[tile * LANES + lane] >> level & 1 == 0;
            assert_eq!(result.is_ok(), takes_second, "trial {trial}");
            if let Err(error) = &result {
                assert!(matches!(error, Error::Cheated { .. }), "{error}");
            }
            passed += result.is_ok() as usize;
        }
        assert!((8..=32).contains(&passed), "{passed} of {trials} guesses were right");
    }

    #[test]
    fn another_delta_in_one_tree_is_caught() {
        let (receiver, public) = key(2);
        let shape = receiver.params.shape();
        let tails = HEADER + POINT + 32 * shape.cots();
        for trial in 0..12 {
            // The correction of w, then that of ω, of some tree.
            let (tile, lane, output) = (trial * 5 % shape.tiles, trial % LANES, 1 - trial % 2);
            let at = tails + 16 * (LANES * (4 * tile + output) + lane);
            let result = cheat(&receiver, &public, |answer| answer[at] ^= 2);
            assert!(matches!(result, Err(Error::Cheated { .. })), "trial {trial}");
        }
    }

    #[test]
    fn wrong_sums_and_hashes_of_gamma_are_caught() {
        let (receiver, public) = key(3);
        let shape = receiver.params.shape();
        let tails = HEADER + POINT + 32 * shape.cots();
        let hash = tails + 64 * LANES * shape.tiles;
        for at in [tails + 32 * LANES, tails + 48 * LANES + 17, hash, hash + 31] {
            let result = cheat(&receiver, &public, |answer| answer[at] ^= 0x40);
            assert!(matches!(result, Err(Error::Cheated { .. })), "byte {at}");
        }
    }
}
