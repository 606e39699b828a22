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
//! | R.Expand_in, R.Expand_out | [`ReceiverKey::expand_in`], [`ReceiverKey::expand_out`] |
//! | S.Gen, S.Expand | [`SenderKey::answer`], [`SenderKey::expand`] |
//! | R.Msg, S.Msg | [`ReceiverKey::ask`], [`SenderKey::reply`] |
//! | R.Dec | [`ReceiverKey::receive`], [`open`] |
//!
//! - **Security**: malicious by Fiat–Shamir (or semi-honest, where [`Params`] say so) in the random-oracle and
//!   ideal-permutation models, under dual LPN with one bit of adaptive leakage: a sender that guesses bits of the noise
//!   is caught when wrong. The receiver's choice bits are the same towards every sender that answers one key, so **one
//!   key takes one question**: two questions under one key tell the XOR of their inputs.
//! - **Random or chosen, not both.** A question tells how inputs and random choices differ, so a key whose random
//!   transfers were taken asks nothing, and one that asked gives none ([`ReceiverKey`], [`SenderKey`]; their files say
//!   so on the disk). The pads of a reply are hashed apart from the random messages all the same, and are bound to the
//!   question.
//! - **A failed check spends the key.** Whether an answer passes tells its sender whether it guessed bits of the noise,
//!   one bit and more a try, and the noise is the same for all senders. So [`ReceiverKey`] takes no answer after the
//!   first one that fails, and `ReceiverFile` of `tacit-store` makes the file say so, on the disk, before it reports
//!   the failure. Anybody can spend a key by a bad answer; a receiver that takes signed messages only (module
//!   [`signed`](super::signed)) knows who did.
//! - **Whose a message is** ([`Parties`]): the challenges, the hash that makes the random OTs, and the names of answers
//!   and replies bind sender and receiver. So a proof that was made for one sender fails in the name of another, who
//!   knows nothing of the pads under it: messages cannot be taken over, changed or not.
//! - **A reply is authentic**: it ends with a MAC of all of it under a key that an exchange of Diffie and Hellman
//!   gives, one point in the public key and one in the answer. That key depends on no choice; under the keys of the
//!   single OTs, a sender could spoil one of two MACs and learn from a refusal which message was taken.
//! - **Bytes**: 80 an OT of the key's t·ℓ from the receiver, 32 an OT and 64 a tree from the sender: about 210 kB and
//!   95 kB for 10^7 OTs. A reply: 32 an OT, and 32.
//!
//! The base OT is that of [`mrr21`], whose two messages do not wait for one another. Deviations from the
//! paper: those of the module `tpprf`.

mod intact;
mod kind;
mod outputs;
mod reply;
mod two_round;

pub use kind::Kind;
pub use outputs::{ReceiverOutput, SenderOutput};
pub use reply::{Asked, Chosen, Width, long_reply_len, long_reply_width, open};
pub use two_round::TwoRound;

use super::params::{Code, LARGEST_RUN};
use super::tpprf::{self, Blocks, Challenge, Received, SenderTrees, Setup, message_len};
use crate::base::{Run, mrr21};
use crate::silent::tree::ggm::equal;
use crate::silent::tree::shape::Shape;
use crate::spent::Spent;
use crate::{Error, Result, Security};
use intact::{DIGEST, RECEIVER_DAMAGED, SENDER_DAMAGED, receiver_digest, sender_digest};
use reply::{question_bits, reply_id, reply_start};
use std::sync::{Arc, OnceLock};
use tacit_crypto::ggm::LANES;
use tacit_crypto::group::{POINT_BYTES as POINT, Points, Scalars};
use tacit_crypto::hash::Mitccrh;
use tacit_crypto::transcript::Transcript;
use tacit_crypto::{BitVec, Block, Buffer, Prg};
use tacit_net::{Party, PublicKey, SessionId};
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

/// The name in errors.
pub const NAME: &str = "silent nisc";
const MAGIC: [u8; 9] = *b"tacitnisc";
/// In place of the magic where a check failed under the receiver's key.
const BURNT: [u8; 9] = *b"tacitburn";
/// Version 3 had fewer noisy positions; in version 4 nothing bound the parties, and replies could be changed;
/// in version 5 the pads of a reply were the random messages.
const VERSION: u8 = 6;
/// Bytes of one base OT's part of a key.
const BASE_MESSAGE: usize = 80;
/// Bytes of a party's name, if it has one.
const PARTY: usize = 1 + 32;
/// Bytes of a reply's MAC.
const MAC: usize = 32;
/// Bytes of a message that say which version and what it is.
pub const BEGIN: usize = MAGIC.len() + 2;
const HEADER: usize = BEGIN + 2 + 8 + ID;
/// Bytes at a header's end that say to what the message belongs; of a receiver's key, its digest.
const ID: usize = 32;

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
        let question = HEADER + self.count.div_ceil(8);
        [self.public_key_len(), self.answer_len(), question, self.reply_len()].map(|bytes| bytes as u64)
    }

    /// What the receiver chose, by its public key or the first bytes of it.
    ///
    /// Errors: `Malformed` for what is no public key of this version.
    pub fn of(public_key: &[u8]) -> Result<Self> {
        Header::read(public_key, Kind::PublicKey).map(|(header, _)| header.params)
    }

    fn public_key_len(self) -> usize {
        HEADER + self.shape().cots() * BASE_MESSAGE + POINT
    }

    fn answer_len(self) -> usize {
        let proof = if self.malicious() { 32 } else { 0 };
        HEADER + 2 * POINT + message_len(self.shape(), self.malicious()) + proof
    }

    fn reply_len(self) -> usize {
        HEADER + self.count * 2 * size_of::<Block>() + MAC
    }
}

/// Between whom an exchange is: the keys that sign its messages, where they are signed.
///
/// What a sender answers as `sender` to `receiver` opens for that receiver alone, and as that sender's alone.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Parties {
    /// Who answers.
    pub sender: Option<PublicKey>,
    /// Who published the key.
    pub receiver: Option<PublicKey>,
}

impl Parties {
    fn append(&self, transcript: &mut Transcript) {
        for (role, name) in [("sender", &self.sender), ("receiver", &self.receiver)] {
            transcript.append(role, &party(name));
        }
    }
}

/// A party's name in a hash or a file.
fn party(name: &Option<PublicKey>) -> [u8; PARTY] {
    let mut out = [0; PARTY];
    if let Some(name) = name {
        out[0] = 1;
        out[1..].copy_from_slice(&name.to_bytes());
    }
    out
}

fn party_of(bytes: &[u8; PARTY]) -> Result<Option<PublicKey>> {
    let [named, key @ ..] = bytes;
    match named {
        0 if *key == [0; 32] => Ok(None),
        1 => Ok(Some(PublicKey::from_bytes(*key))),
        _ => Err(malformed(RECEIVER_DAMAGED)),
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
        let (begin, _) = head.split_at(BEGIN);
        Header::begins(begin, kind)?;
        let (_, head) = head.split_at(MAGIC.len());
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

    /// Whether the first [`BEGIN`] bytes are those of a message of `kind` and of this version.
    fn begins(bytes: &[u8], kind: Kind) -> Result<()> {
        let Some(&[version, found]) = bytes.strip_prefix(&MAGIC) else {
            return Err(malformed("this is not a NISC message"));
        };
        if version < VERSION {
            return Err(malformed(
                "of an older version, whose parameters are refused now; make new keys with tacit nisc keygen",
            ));
        }
        if version > VERSION {
            return Err(malformed("of a newer version; update this side"));
        }
        if found != kind as u8 {
            return Err(malformed("the message is of another kind"));
        }
        Ok(())
    }

    /// As [`read`](Self::read), for a message that must belong to `id` and have `params`.
    fn read_for<'a>(message: &'a [u8], kind: Kind, params: Params, id: &[u8; 32]) -> Result<&'a [u8]> {
        let (header, body) = Header::read(message, kind)?;
        if header.params != params {
            return Err(malformed("the message has other parameters"));
        }
        if header.id != *id {
            return Err(malformed(
                "belongs to another session, or to other parties than those whose keys sign it; use the files of one \
                 session",
            ));
        }
        Ok(body)
    }
}

/// How a message of `kind` begins that others than this module write.
pub fn beginning(kind: Kind) -> [u8; BEGIN] {
    let mut out = [0; BEGIN];
    out[..MAGIC.len()].copy_from_slice(&MAGIC);
    out[MAGIC.len()..].copy_from_slice(&[VERSION, kind as u8]);
    out
}

/// What follows the [`beginning`] of a message of `kind`.
///
/// Errors: `Malformed` for a message of another kind or version.
pub fn after_beginning(message: &[u8], kind: Kind) -> Result<&[u8]> {
    let (begin, rest) = message.split_at_checked(BEGIN).ok_or(malformed("the message is cut short"))?;
    Header::begins(begin, kind).map(|()| rest)
}

/// All that follows from a public key and the context in which it is used.
struct Public {
    params: Params,
    setup: Setup,
    id: [u8; 32],
    /// The receiver's part of what replies are authenticated with.
    point: Points,
}

/// One element of a message, which must be none that makes a key a constant.
fn point(bytes: &[u8]) -> Result<Points> {
    let point = Points::decode(bytes).ok().filter(|_| bytes.iter().any(|byte| *byte != 0));
    point.ok_or(malformed("not a canonical group element"))
}

/// The key of a reply's MAC, from the other side's `point` and the own `secret`.
fn mac_key(answer_id: &[u8; 32], point: &Points, secret: &Scalars) -> [u8; 32] {
    let shared = Zeroizing::new(point.mul_same(secret).encode());
    let mut hasher = blake3::Hasher::new_derive_key("tacit silent nisc reply key v6");
    hasher.update(answer_id).update(shared.as_flattened());
    *hasher.finalize().as_bytes()
}

impl Public {
    fn new(key: &[u8], context: &[u8]) -> Result<Self> {
        let (header, body) = Header::read(key, Kind::PublicKey)?;
        let params = header.params;
        if key.len() != params.public_key_len() {
            return Err(malformed("the key's length is not that of its parameters"));
        }
        let point = point(&body[body.len() - POINT..])?;
        let mut transcript = Transcript::new("tacit silent nisc v6");
        transcript.append("context", context);
        transcript.append("public key", key);
        let mut id = [0; 32];
        transcript.challenge_bytes("id", &mut id);
        let setup = Setup::new(NAME, params.code, params.count, params.security, transcript);
        Ok(Public { params, setup, id, point })
    }

    /// The header of an answer, which names key, context and parties.
    fn answer_header(&self, parties: &Parties) -> Header {
        let mut transcript = self.setup.context.clone();
        parties.append(&mut transcript);
        let mut id = [0; 32];
        transcript.challenge_bytes("answer id", &mut id);
        Header { kind: Kind::Answer, params: self.params, id }
    }

    fn encode(&self, noise: Buffer, each: &mut dyn FnMut(&mut [Block])) {
        self.setup.encode(self.params.code, noise, self.params.count, each);
    }

    /// Binds the answer up to its proof: the challenges of Fig. 17.
    fn challenge(&self, parties: &Parties, answer: &[u8]) -> Challenge {
        let mut transcript = self.setup.context.clone();
        parties.append(&mut transcript);
        transcript.append("answer", answer);
        self.setup.challenge(transcript)
    }

    /// Binds the whole answer: what it is called, and the hash of its OTs.
    fn answered(&self, parties: &Parties, answer: &[u8]) -> ([u8; 32], Block) {
        let mut transcript = self.setup.context.clone();
        parties.append(&mut transcript);
        transcript.append("whole answer", answer);
        // proof: nisc 2.4
        let mut id = [0; 32];
        transcript.challenge_bytes("id", &mut id);
        (id, transcript.challenge_block("mitccrh start"))
    }
}

/// The base OTs' run: bound to the nonce, the parameters and the context.
fn base_run(header: &[u8], context: &[u8], len: usize) -> Run {
    let mut transcript = Transcript::new("tacit silent nisc base v6");
    transcript.append("context", context);
    transcript.append("header", header);
    let mut session = [0; 32];
    transcript.challenge_bytes("session", &mut session);
    Run::new(mrr21::NAME, SessionId(session), Party::First, 0, len)
}

/// What a receiver makes of an answer: its id with the key of the reply's MAC, the choices, the random ones or those
/// of the question, and a pad each.
type Expanded = (([u8; 32], [u8; 32]), BitVec, Zeroizing<Vec<Block>>);

/// What a receiver's key, with its clones, serves for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    /// Random transfers, with any number of senders.
    Random,
    /// Chosen ones, for the question of this hash.
    Question([u8; 32]),
}

/// The receiver's secret key: a seed, the parameters it was made for, and whose it is.
///
/// It serves for random transfers or for one question, with its clones. A key that lies in a file is used through
/// `ReceiverFile` of `tacit-store`, which holds every later process to it too.
#[derive(Clone)]
pub struct ReceiverKey {
    params: Params,
    owner: Option<PublicKey>,
    seed: Block,
    context: Vec<u8>,
    /// Whether an answer failed its check, under this key or a clone of it.
    spent: Spent,
    used: Arc<OnceLock<Use>>,
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
    /// For the key of replies' MACs.
    secret: Scalars,
}

impl ReceiverKey {
    /// Bytes of [`to_bytes`](Self::to_bytes).
    pub const LEN: usize = HEADER + PARTY + size_of::<Block>();

    /// R.Gen: a secret key of `owner`, and the public key that goes with it. `context` is bound to both, and
    /// senders give the same.
    ///
    /// Errors when the number of OTs is out of range.
    pub fn generate(
        params: Params,
        context: &[u8],
        owner: Option<PublicKey>,
        prg: &mut Prg,
    ) -> Result<(Self, Vec<u8>)> {
        let key = Self::with(params.check()?, owner, prg.block(), context);
        let public_key = key.state()?.public_key;
        Ok((key, public_key))
    }

    fn with(params: Params, owner: Option<PublicKey>, seed: Block, context: &[u8]) -> Self {
        let (context, spent, used) = (context.to_vec(), Spent::default(), Arc::default());
        ReceiverKey { params, owner, seed, context, spent, used }
    }

    /// The secret key as bytes for a file that only its owner can read.
    pub fn to_bytes(&self) -> Zeroizing<Vec<u8>> {
        let header = Header { kind: Kind::ReceiverKey, params: self.params, id: [0; 32] };
        let mut out = Zeroizing::new(header.write());
        out.extend_from_slice(&party(&self.owner));
        out.extend_from_slice(&self.seed.to_bytes());
        let digest = receiver_digest(&out);
        out[HEADER - ID..HEADER].copy_from_slice(&digest);
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
        // A damaged seed is that of another key, to which no honest answer belongs.
        let fits = || bytes[HEADER - ID..HEADER] == receiver_digest(bytes);
        let (header, body) = Header::read_key(bytes, (Kind::ReceiverKey, Self::LEN), fits, RECEIVER_DAMAGED)?;
        let cut = body.split_first_chunk().and_then(|(owner, seed)| Some((owner, seed.try_into().ok()?)));
        let Some((owner, seed)) = cut else { return Err(malformed(RECEIVER_DAMAGED)) };
        Ok(Self::with(header.params, party_of(owner)?, Block::from_bytes(seed), context))
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
        let secret = Scalars::random(1, &mut prg);
        let alpha = Zeroizing::new(noise.points(&mut prg));
        let choices = tpprf::choices(&alpha, shape);
        let mut public_key = Header { kind: Kind::PublicKey, params: self.params, id: nonce }.write();
        let run = base_run(&public_key, &self.context, shape.cots());
        // proof: nisc 2.1
        let (base, message) = mrr21::Receiver::start(&run, &choices, &mut prg)?;
        public_key.extend_from_slice(&message);
        public_key.extend_from_slice(Points::mul_base(&secret).encode().as_flattened());
        Ok(ReceiverState { public_key, alpha, base, secret })
    }

    /// The public key again.
    pub fn public_key(&self) -> Result<Vec<u8>> {
        Ok(self.state()?.public_key)
    }

    /// Holds the key and its clones to `wanted`.
    fn take(&self, wanted: Use) -> Result<()> {
        match (*self.used.get_or_init(|| wanted), wanted) {
            (found, wanted) if found == wanted => Ok(()),
            (Use::Question(_), Use::Question(_)) => Err(Error::Usage {
                protocol: NAME,
                what: "this key asked before; another question under it would reveal how the choices differ; make a new key",
            }),
            _ => Err(Error::Usage {
                protocol: NAME,
                what: "a key serves for random transfers or for one question, and this one has served for the other; \
                       make a new key",
            }),
        }
    }

    /// R.Expand_in: the choice bits of the random OTs, which no answer changes.
    ///
    /// Errors: `Usage` for a key that asked a question.
    pub fn expand_in(&self) -> Result<BitVec> {
        self.take(Use::Random)?;
        let state = self.state()?;
        Ok(self.choices(&state, &Public::new(&state.public_key, &self.context)?))
    }

    fn choices(&self, state: &ReceiverState, public: &Public) -> BitVec {
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
        choices
    }

    /// R.Expand_out: checks the answer of `sender` and makes the receiver's half of the random OTs.
    ///
    /// Errors: `Malformed` for a message that is not an answer to this key, `Cheated` when a check fails, and
    /// `Spent` from then on; `Usage` for a key that asked a question. A key that lies in a file is used through
    /// `ReceiverFile` of `tacit-store`, which makes that last.
    pub fn expand_out(&self, answer: &[u8], sender: Option<PublicKey>) -> Result<ReceiverOutput> {
        let (_, choices, mut messages) = self.checked(answer, sender, None)?;
        let output = ReceiverOutput { choices, messages: core::mem::take(&mut *messages) };
        self.take(Use::Random).map(|()| output)
    }

    /// R.Dec up to the reply: checks the answer of `sender`, and makes what opens its reply to `question`.
    ///
    /// Errors: as [`expand_out`](Self::expand_out), and `Usage` for another question than this key asked.
    pub fn receive(&self, answer: &[u8], sender: Option<PublicKey>, question: &[u8]) -> Result<Asked> {
        let ((id, mac_key), choices, mut pads) = self.checked(answer, sender, Some(question))?;
        let pads = core::mem::take(&mut *pads);
        let asked = Asked { params: self.params, reply_id: reply_id(&id, question), mac_key, choices, pads };
        self.take(Use::Question(*blake3::hash(question).as_bytes())).map(|()| asked)
    }

    /// The choices that `question` asks for, one an OT.
    ///
    /// Errors: `Malformed` for what is no question of this key.
    pub fn asked(&self, question: &[u8]) -> Result<BitVec> {
        let state = self.state()?;
        let public = Public::new(&state.public_key, &self.context)?;
        let mut choices = question_bits(question, self.params, &public.id)?;
        choices.xor_assign(&self.choices(&state, &public));
        Ok(choices)
    }

    fn checked(&self, answer: &[u8], sender: Option<PublicKey>, question: Option<&[u8]>) -> Result<Expanded> {
        self.spent.check(NAME)?;
        let made = self.expand(answer, Parties { sender, receiver: self.owner }, question)?;
        // Answers that are looked at side by side are decided one after the other.
        self.spent.check(NAME).map(|()| made)
    }

    fn expand(&self, answer: &[u8], parties: Parties, question: Option<&[u8]>) -> Result<Expanded> {
        let state = self.state()?;
        let public = Public::new(&state.public_key, &self.context)?;
        let differences =
            question.map(|question| question_bits(question, self.params, &public.id)).transpose()?;
        let expected = public.answer_header(&parties);
        let body = Header::read_for(answer, Kind::Answer, self.params, &expected.id)?;
        if answer.len() != self.params.answer_len() {
            return Err(malformed("the answer's length is not that of its parameters"));
        }
        let (point, body) = body.split_at(POINT);
        let (theirs, body) = body.split_at(POINT);
        let theirs = self::point(theirs)?;
        let shape = public.setup.noise.shape;
        let mut pads = Zeroizing::new(vec![Block::ZERO; shape.cots()]);
        state.base.finish(point, &mut pads)?;
        let (message, proof) = body.split_at(message_len(shape, self.params.malicious()));
        let received = Received::new(&public.setup, &state.alpha, &pads, message);
        let noise = if self.params.malicious() {
            let challenge = public.challenge(&parties, &answer[..answer.len() - proof.len()]);
            let mut proof = Blocks(proof);
            let (x, v) = (proof.next(), proof.next());
            let (noise, claim) = received.expand(&public.setup, &challenge.check(x, shape), None);
            // proof: nisc 2.3
            self.spent.settle(NAME, || claim.check(v))?;
            noise
        } else {
            received.trusted(&public.setup)
        };
        let (id, start) = public.answered(&parties, answer);
        let mac_key = mac_key(&id, &theirs, &state.secret);
        let hash =
            Mitccrh::new(question.map_or(start, |question| reply_start(start, &reply_id(&id, question))));
        let mut choices = BitVec::zeros(self.params.count);
        let mut pads = Zeroizing::new(vec![Block::ZERO; self.params.count]);
        let mut at = 0;
        public.encode(noise, &mut |rows| {
            choices.set_lsbs(at, rows);
            hash.cot_to_rot_receiver(at as u64, rows, &mut pads[at..at + rows.len()]);
            at += rows.len();
        });
        differences.iter().for_each(|differences| choices.xor_assign(differences));
        Ok(((id, mac_key), choices, pads))
    }

    /// R.Msg: the question for `inputs`, one choice bit an OT.
    ///
    /// A key asks one question, with its clones; a key that lies in a file asks through `ReceiverFile` of
    /// `tacit-store`. Errors: `Usage` for another question, for a key whose random transfers were taken, or when a
    /// length is not the number of OTs.
    pub fn ask(&self, inputs: &BitVec) -> Result<Vec<u8>> {
        if inputs.len() != self.params.count {
            return Err(Error::Usage { protocol: NAME, what: "one choice bit an OT" });
        }
        let state = self.state()?;
        let public = Public::new(&state.public_key, &self.context)?;
        let mut out = Header { kind: Kind::Question, params: self.params, id: public.id }.write();
        let mut difference = self.choices(&state, &public);
        difference.xor_assign(inputs);
        out.extend_from_slice(difference.as_bytes());
        self.take(Use::Question(*blake3::hash(&out).as_bytes()))?;
        Ok(out)
    }
}

/// The sender's secret key: a seed, and to which answer it belongs.
///
/// It serves once: for random transfers ([`expand`](Self::expand)) or for one [`reply`](SenderKey::reply). A key that
/// lies in a file is used through `SenderFile` of `tacit-store`, which holds every later process to it too.
#[derive(Zeroize, ZeroizeOnDrop)]
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

/// What the seed of a sender's key stands for: the trees, and the secret of the key of its reply's MAC.
fn trees(seed: Block, shape: Shape) -> (SenderTrees, Scalars, Prg) {
    let mut prg = Prg::from_seed(seed);
    let secret = Scalars::random(1, &mut prg);
    let delta = prg.block().with_lsb(true);
    (SenderTrees::new(delta, &mut prg, shape), secret, prg)
}

impl SenderKey {
    /// Bytes of [`to_bytes`](Self::to_bytes).
    pub const LEN: usize = HEADER + 32 + 2 * size_of::<Block>() + DIGEST;

    /// S.Gen: answers a public key, as and for those of `parties`. `context` is the receiver's.
    ///
    /// Errors: `Malformed` for bytes that are no public key of this version.
    pub fn answer(
        public_key: &[u8],
        context: &[u8],
        parties: &Parties,
        prg: &mut Prg,
    ) -> Result<(Self, Vec<u8>)> {
        Self::answer_with(public_key, context, parties, prg, |_| ())
    }

    /// [`answer`](Self::answer); `change` sees the message before its challenges are drawn.
    fn answer_with(
        public_key: &[u8],
        context: &[u8],
        parties: &Parties,
        prg: &mut Prg,
        change: impl FnOnce(&mut [u8]),
    ) -> Result<(Self, Vec<u8>)> {
        let public = Public::new(public_key, context)?;
        let (params, shape) = (public.params, public.setup.noise.shape);
        let seed = prg.block();
        let (trees, secret, mut prg) = trees(seed, shape);
        let (header, body) = public_key.split_at(HEADER);
        let (phi, _) = body.split_at(body.len() - POINT);
        let run = base_run(header, context, shape.cots());
        let (base, point) = mrr21::Sender::start(&run, &mut prg);
        let mut pads = Zeroizing::new(vec![[Block::ZERO; 2]; shape.cots()]);
        base.finish(phi, &mut pads)?;

        let mut answer = public.answer_header(parties).write();
        answer.extend_from_slice(&point);
        answer.extend_from_slice(Points::mul_base(&secret).encode().as_flattened());
        answer.extend_from_slice(&trees.message(&public.setup, &pads));
        change(&mut answer);
        if params.malicious() {
            // proof: nisc 2.2
            let proof = trees.prove(&public.setup, public.challenge(parties, &answer));
            answer.extend_from_slice(Block::as_bytes(&proof));
        }
        let (answer_id, start) = public.answered(parties, &answer);
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
    pub fn expand(self, public_key: &[u8], context: &[u8]) -> Result<SenderOutput> {
        let (_, messages) = self.pads(&self.public(public_key, context)?, self.start);
        Ok(SenderOutput { messages })
    }

    /// An error where the key answered something else.
    pub fn check_public(&self, public_key: &[u8], context: &[u8]) -> Result<()> {
        self.public(public_key, context).map(|_| ())
    }

    /// What was answered. Errors where the key answered something else.
    fn public(&self, public_key: &[u8], context: &[u8]) -> Result<Public> {
        let public = Public::new(public_key, context)?;
        if public.id != self.public_id || public.params != self.params {
            return Err(malformed(
                "is of another session than this key; use the public key that was answered",
            ));
        }
        Ok(public)
    }

    /// The key of the reply's MAC, and the pads that the hash with this start makes.
    fn pads(&self, public: &Public, start: Block) -> ([u8; 32], Vec<[Block; 2]>) {
        let (trees, secret, _) = trees(self.seed, public.setup.noise.shape);
        let mac_key = mac_key(&self.answer_id, &public.point, &secret);
        let noise = trees.expand(&public.setup);
        let hash = Mitccrh::new(start);
        let mut pads = vec![[Block::ZERO; 2]; self.params.count];
        let mut at = 0;
        public.encode(noise, &mut |rows| {
            hash.cot_to_rot_sender(at as u64, trees.delta, rows, &mut pads[at..at + rows.len()]);
            at += rows.len();
        });
        (mac_key, pads)
    }

    /// The secret key as bytes for a file that only its owner can read.
    pub fn to_bytes(&self) -> Zeroizing<Vec<u8>> {
        let header = Header { kind: Kind::SenderKey, params: self.params, id: self.public_id };
        let mut out = Zeroizing::new(header.write());
        out.extend_from_slice(&self.answer_id);
        out.extend_from_slice(Block::as_bytes(&[self.start, self.seed]));
        let digest = sender_digest(&out);
        out.extend_from_slice(&digest);
        out
    }

    /// Reads what [`to_bytes`](Self::to_bytes) wrote.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        // A damaged seed makes a reply of other messages, whose MAC fits.
        let fits = || {
            let (signed, digest) = bytes.split_at(Self::LEN - DIGEST);
            sender_digest(signed) == digest
        };
        let (header, body) = Header::read_key(bytes, (Kind::SenderKey, Self::LEN), fits, SENDER_DAMAGED)?;
        let Some((answer_id, rest)) = body.split_first_chunk::<32>() else {
            return Err(malformed(SENDER_DAMAGED));
        };
        let mut rest = Blocks(&rest[..rest.len() - DIGEST]);
        let (start, seed) = (rest.next(), rest.next());
        let (params, public_id) = (header.params, header.id);
        Ok(SenderKey { params, seed, public_id, answer_id: *answer_id, start })
    }
}

#[cfg(test)]
mod tests;
