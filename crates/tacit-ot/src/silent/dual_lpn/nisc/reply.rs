//! Chosen messages: the reply to a question (S.Msg), and its opening (R.Dec).

use super::{Blocks, HEADER, Header, Kind, MAC, NAME, Params, SenderKey, malformed};
use crate::{Error, Result};
use subtle::ConstantTimeEq;
use tacit_crypto::transcript::Transcript;
use tacit_crypto::{BitVec, Block};
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

/// The start of the hash that makes a reply's pads, apart from that of the random messages.
pub(super) fn reply_start(start: Block, reply_id: &[u8; 32]) -> Block {
    let mut hasher = blake3::Hasher::new_derive_key("tacit silent nisc reply pads v6");
    hasher.update(Block::as_bytes(&[start])).update(reply_id);
    let mut bytes = [0; size_of::<Block>()];
    hasher.finalize_xof().fill(&mut bytes);
    Block::from_bytes(bytes)
}

struct Replying {
    id: [u8; 32],
    /// Where the question differs from the random choices.
    swaps: BitVec,
    mac_key: Zeroizing<[u8; 32]>,
    pads: Zeroizing<Vec<[Block; 2]>>,
}

/// How long every message of a [`reply_long`](SenderKey::reply_long) is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Width {
    /// One bit: eight messages of one choice are a byte, the first in its lowest bit, and the bits past the last
    /// one are zero.
    Bit,
    /// So many bytes, at least one.
    Bytes(u32),
}

impl Width {
    fn code(self) -> u64 {
        match self {
            Width::Bit => 0,
            Width::Bytes(bytes) => bytes.into(),
        }
    }

    fn from_code(code: u64) -> Option<Self> {
        match u32::try_from(code).ok()? {
            0 => Some(Width::Bit),
            bytes => Some(Width::Bytes(bytes)),
        }
    }

    /// Bytes of `count` messages; `None` where no length fits.
    pub fn plane(self, count: usize) -> Option<usize> {
        match self {
            Width::Bit => Some(count.div_ceil(8)),
            Width::Bytes(0) => None,
            Width::Bytes(bytes) => count.checked_mul(usize::try_from(bytes).ok()?),
        }
    }

    /// Bytes of a reply.
    fn reply_len(self, params: Params, attached: usize) -> Option<usize> {
        let planes = self.plane(params.count)?.checked_mul(2)?;
        (HEADER + LENGTHS + MAC).checked_add(planes)?.checked_add(attached)
    }

    /// Whether bits past the last one are zero.
    fn ends(self, count: usize, messages: [&[u8]; 2]) -> bool {
        let past = count % 8;
        let ends = |message: &[u8]| message.last().is_none_or(|last| last >> past == 0);
        self != Width::Bit || past == 0 || messages.into_iter().all(ends)
    }

    /// Adds to each message what its pad stands for.
    fn mask(self, messages: &mut [u8], pad: impl Fn(usize) -> Block) {
        match self {
            Width::Bit => {
                for (i, byte) in messages.iter_mut().enumerate() {
                    // Past the last message nothing is masked.
                    (0..8).for_each(|bit| *byte ^= (pad(8 * i + bit).to_bytes()[0] & 1) << bit);
                }
            }
            Width::Bytes(bytes) => {
                let mut stream = Zeroizing::new(vec![0; bytes as usize]);
                for (i, message) in messages.chunks_exact_mut(bytes as usize).enumerate() {
                    long_pad(pad(i), i as u64, &mut stream);
                    message.iter_mut().zip(stream.iter()).for_each(|(byte, pad)| *byte ^= pad);
                }
            }
        }
    }
}

/// How long the messages of a [`reply_long`](SenderKey::reply_long) say that they are; `None` for what is none.
pub fn long_reply_width(reply: &[u8]) -> Option<Width> {
    let (_, body) = Header::read(reply, Kind::LongReply).ok()?;
    Width::from_code(u64::from_le_bytes(*body.first_chunk()?))
}

/// Bytes of a [`reply_long`](SenderKey::reply_long) with so many bytes attached; `None` where they do not fit.
pub fn long_reply_len(params: Params, width: Width, attached: usize) -> Option<usize> {
    width.reply_len(params, attached)
}

/// The pad of message `i`: the block itself as far as it goes, else what it is the key of.
fn long_pad(pad: Block, i: u64, out: &mut [u8]) {
    if out.len() <= size_of::<Block>() {
        out.copy_from_slice(&pad.to_bytes()[..out.len()]);
        return;
    }
    let mut hasher = blake3::Hasher::new_derive_key("tacit silent nisc long pads v1");
    hasher.update(Block::as_bytes(&[pad])).update(&i.to_le_bytes());
    hasher.finalize_xof().fill(out);
}

/// Bytes that say how long messages are, and what is attached.
const LENGTHS: usize = 16;

/// The sender's messages of any length.
#[derive(Clone, Copy)]
pub struct Chosen<'a> {
    /// How long each is.
    pub width: Width,
    /// Those of choice 0 one after the other, and those of choice 1.
    pub messages: [&'a [u8]; 2],
    /// What goes with them, readable by all, and changed by nobody unnoticed.
    pub attached: &'a [u8],
}

impl SenderKey {
    /// S.Msg: the reply to a question: the sender's messages under its pads, swapped as the question says.
    /// `public_key` and `context` are those that were answered.
    ///
    /// The key is consumed: pads serve once. Errors: `Malformed` for a question to another key, `Usage` for a
    /// wrong number of messages.
    pub fn reply(
        self,
        public_key: &[u8],
        context: &[u8],
        question: &[u8],
        messages: &[[Block; 2]],
    ) -> Result<Vec<u8>> {
        let params = self.params;
        if messages.len() != params.count {
            return Err(Error::Usage { protocol: NAME, what: "one pair of messages an OT" });
        }
        let Replying { id, swaps, mac_key, pads } = self.replying(public_key, context, question)?;
        let mut out = Header { kind: Kind::Reply, params, id }.write();
        for ((i, pads), pair) in pads.iter().enumerate().zip(messages) {
            let swap = (pads[0] ^ pads[1]) & Block::mask(swaps.get(i));
            out.extend_from_slice(Block::as_bytes(&[pads[0] ^ swap ^ pair[0], pads[1] ^ swap ^ pair[1]]));
        }
        let mac = blake3::keyed_hash(&mac_key, &out);
        out.extend_from_slice(mac.as_bytes());
        Ok(out)
    }

    /// S.Msg for messages of any length, with what else the MAC is to cover.
    ///
    /// As [`reply`](Self::reply), of which it stands in place. Errors: `Usage` where the messages do not have
    /// the length that they say.
    pub fn reply_long(
        self,
        public_key: &[u8],
        context: &[u8],
        question: &[u8],
        chosen: &Chosen<'_>,
    ) -> Result<Vec<u8>> {
        let Chosen { width, messages: [zero, one], attached } = *chosen;
        let (params, plane) = (self.params, width.plane(self.params.count));
        let fits =
            plane == Some(zero.len()) && plane == Some(one.len()) && width.ends(params.count, [zero, one]);
        let len = width.reply_len(params, attached.len()).filter(|_| fits);
        let Some(len) = len else {
            return Err(Error::Usage { protocol: NAME, what: "one pair of messages of one length an OT" });
        };
        let Replying { id, swaps, mac_key, pads } = self.replying(public_key, context, question)?;
        let mut out = Vec::with_capacity(len);
        out.extend_from_slice(&Header { kind: Kind::LongReply, params, id }.write());
        out.extend_from_slice(&width.code().to_le_bytes());
        out.extend_from_slice(&(attached.len() as u64).to_le_bytes());
        for (choice, message) in [zero, one].into_iter().enumerate() {
            let start = out.len();
            out.extend_from_slice(message);
            let pad = |i: usize| {
                let Some(pads) = pads.get(i) else { return Block::ZERO };
                pads[choice] ^ ((pads[0] ^ pads[1]) & Block::mask(swaps.get(i)))
            };
            width.mask(&mut out[start..], pad);
        }
        out.extend_from_slice(attached);
        let mac = blake3::keyed_hash(&mac_key, &out);
        out.extend_from_slice(mac.as_bytes());
        Ok(out)
    }

    /// What a reply is made of.
    fn replying(&self, public_key: &[u8], context: &[u8], question: &[u8]) -> Result<Replying> {
        let public = self.public(public_key, context)?;
        let swaps = question_bits(question, self.params, &self.public_id)?;
        let id = reply_id(&self.answer_id, question);
        let (mac_key, pads) = self.pads(&public, reply_start(self.start, &id));
        Ok(Replying { id, swaps, mac_key: Zeroizing::new(mac_key), pads: Zeroizing::new(pads) })
    }
}

/// What opens one sender's reply to the one question.
#[derive(Zeroize, ZeroizeOnDrop)]
pub struct Asked {
    #[zeroize(skip)]
    pub(super) params: Params,
    pub(super) reply_id: [u8; 32],
    pub(super) mac_key: [u8; 32],
    pub(super) choices: BitVec,
    pub(super) pads: Vec<Block>,
}

impl Asked {
    /// The choices that the question asks for.
    pub fn choices(&self) -> &BitVec {
        &self.choices
    }

    /// An error unless the reply ends with the MAC of all before.
    fn check(&self, reply: &[u8]) -> Result<()> {
        let (signed, mac) = reply.split_at(reply.len().saturating_sub(MAC));
        // proof: nisc 2.5
        if bool::from(blake3::keyed_hash(&self.mac_key, signed).as_bytes().ct_eq(mac)) {
            return Ok(());
        }
        Err(malformed("the reply was changed after it was written, or is another sender's; ask for it again"))
    }

    /// R.Dec for messages of any length, which must be `width` long: those chosen, one after the other, and what
    /// the sender attached.
    ///
    /// Errors: as [`open`].
    pub fn open_long<'a>(&self, width: Width, reply: &'a [u8]) -> Result<(Zeroizing<Vec<u8>>, &'a [u8])> {
        let count = self.params.count;
        let body = Header::read_for(reply, Kind::LongReply, self.params, &self.reply_id)?;
        let (lengths, body) =
            body.split_first_chunk::<LENGTHS>().ok_or(malformed("the reply is cut short"))?;
        let [found, attached] = [0, 8].map(|at| {
            let mut number = [0; 8];
            number.copy_from_slice(&lengths[at..at + 8]);
            u64::from_le_bytes(number)
        });
        if Width::from_code(found) != Some(width) {
            return Err(malformed("the reply has messages of another length"));
        }
        let attached = usize::try_from(attached).unwrap_or(usize::MAX);
        let (Some(plane), Some(len)) = (width.plane(count), width.reply_len(self.params, attached)) else {
            return Err(malformed("the reply's length is not that of its parameters"));
        };
        if reply.len() != len {
            return Err(malformed("the reply's length is not that of its parameters"));
        }
        self.check(reply)?;
        let (zero, rest) = body.split_at(plane);
        let (one, rest) = rest.split_at(plane);
        if !width.ends(count, [zero, one]) {
            return Err(malformed("the reply has bits past its last message"));
        }
        let mut opened = Zeroizing::new(zero.to_vec());
        let choice = |i: usize| Block::mask(self.choices.get(i)).to_bytes()[0];
        for (i, (byte, one)) in opened.iter_mut().zip(one).enumerate() {
            let mask = match width {
                Width::Bit => self.choices.as_bytes()[i],
                Width::Bytes(bytes) => choice(i / bytes as usize),
            };
            *byte ^= (*byte ^ one) & mask;
        }
        width.mask(&mut opened, |i| self.pads.get(i).copied().unwrap_or(Block::ZERO));
        Ok((opened, &rest[..attached]))
    }
}

/// What a question of the key called `id` says, one bit an OT.
pub(super) fn question_bits(question: &[u8], params: Params, id: &[u8; 32]) -> Result<BitVec> {
    let bits = Header::read_for(question, Kind::Question, params, id)?;
    if bits.len() != params.count.div_ceil(8) {
        return Err(malformed("the question's length is not that of its parameters"));
    }
    let past = params.count % 8;
    if past > 0 && bits.last().is_some_and(|last| last >> past != 0) {
        return Err(malformed("the question has bits past its last one"));
    }
    Ok(BitVec::from_bytes(bits, params.count))
}

/// Binds a reply to the answer and to the question.
pub(super) fn reply_id(answer: &[u8; 32], question: &[u8]) -> [u8; 32] {
    let mut transcript = Transcript::new("tacit silent nisc reply v6");
    transcript.append("answer", answer);
    transcript.append("question", question);
    let mut id = [0; 32];
    transcript.challenge_bytes("id", &mut id);
    id
}

/// R.Dec: opens a sender's reply to the question, which asked for `inputs`.
///
/// Errors: `Malformed` for a reply of another sender, to another question, of a wrong length, or changed since
/// its sender wrote it; `Usage` where the question asks for something else.
pub fn open(asked: &Asked, inputs: &BitVec, reply: &[u8]) -> Result<Vec<Block>> {
    let params = asked.params;
    if inputs.len() != params.count {
        return Err(Error::Usage { protocol: NAME, what: "one choice bit an OT" });
    }
    if !bool::from(asked.choices.as_bytes().ct_eq(inputs.as_bytes())) {
        return Err(Error::Usage { protocol: NAME, what: "the question asks for other choices" });
    }
    let body = Header::read_for(reply, Kind::Reply, params, &asked.reply_id)?;
    if reply.len() != params.reply_len() {
        return Err(malformed("the reply's length is not that of its parameters"));
    }
    asked.check(reply)?;
    let mut body = Blocks(&body[..body.len() - MAC]);
    let opened = asked.pads.iter().zip(inputs.iter()).map(|(pad, input)| {
        let (zero, one) = (body.next(), body.next());
        zero ^ ((zero ^ one) & Block::mask(input)) ^ *pad
    });
    Ok(opened.collect())
}
