//! BDGM19: OT from one-round key exchange (Branco, Ding, Goulão, Mateus 2019), the sibling of ROTed's section
//! 4, over module-RLWE.
//!
//! Realises: OT whose messages a malicious sender chooses, and whose choice bits it may guess:
//! `SelectiveFailure`. Security: malicious up to that, in the random-oracle model; a receiver is bound to its
//! bit before the sender outputs anything (a proof of timely decryption, Barreto et al. 2017/993).
//! Assumptions: decisional module-RLWE. Rounds: three messages for every 1,024 OTs. Bytes of them with the
//! default set: 1,248 an OT and 32 to the sender, 1,312 an OT and 32 back, then 1/8 an OT and 32; chosen
//! messages by [`standard`](super::standard) are one message more.
//!
//! Built from ROTed's account in words, which has no figure (section 4: standard OT, two key exchanges of
//! which the receiver can finish one, a proof of timely decryption that adds a message); the paper calls the
//! original UC-secure, and what is here is declared weaker than that, for the reason below. e'_S is drawn per
//! slot and hashes bind the [`Run`], as in [`roted`](tacit_ot::base::roted).
//!
//! **The proof of timely decryption.** With ρ_i = H(i, sk_i) and y_i = H(i, ρ_i), where i is the slot and
//! each hash binds the OT's number as well, the sender's second message holds the challenge y_0 ⊕ y_1 of each
//! OT and a proof: H(H(y_0 of all OTs)). The receiver computes y_0 = y_c ⊕ c·(y_0 ⊕ y_1) whatever its c,
//! *checks the proof*, and only then sends the response H(y_0 of all OTs), which the sender has already. So
//! the response tells the sender nothing; all that the sender learns is whether the receiver went on. As the
//! slot and the OT's number stand in every hash, no two images coincide, and the receiver refuses a challenge
//! of zero, or one twice.
//!
//! **What a malicious sender can do.** If it spoils a slot, or sends another challenge than y_0 ⊕ y_1, the
//! receiver's y_0 depends on its bit, and the proof holds for one value at most: the sender guesses the bits
//! of those OTs, all of them right with probability 2^-k for k OTs, and otherwise the run ends with nothing
//! sent. (By the noise of the exchange a slot may also be right with a probability that the sender sets; that
//! is a guess made with that probability.) The bits that it guesses are masks: the receiver runs the exchange
//! with random bits c and sends choice ⊕ c with its response. So a guess that was wrong tells nothing of a
//! choice; one that was right tells that choice, undetected. Every view of every other bit is the same. This
//! is what remains of any proof of decryption, since the receiver cannot test the slot that it must not open;
//! to share each choice among ρ OTs would take it away for ρ times the cost.
//! [`Roted`](tacit_ot::base::roted::Roted) has no such step and costs no more.
//!
//! Deviations: the encryptions of the proof are one-time pads. The original's order, in which the response
//! comes first and the sender then opens H(ρ_0) and H(ρ_1), is not kept: it gives choice bits away
//! (`bdgm19_cheats.rs` has the equation and the attack), and the openings show the receiver nothing that the
//! proof does not.

use subtle::ConstantTimeEq;
use tacit_crypto::ring::{Poly, RandomBlocks, Vector, XofBlocks};
use tacit_crypto::{BitVec, Block, Prg};
use tacit_net::Channel;
use tacit_ot::base::Run;
use tacit_ot::base::roted::{ParameterSet, fault, instance};
use tacit_ot::with_set;
use tacit_ot::{BaseOt, Error, Extraction, Functionality, Result, Security};
use tacit_roted::exchange::{self, Scratch};
use tacit_roted::set::Set;
use tacit_roted::{Instance, Role};
use zeroize::{Zeroize, Zeroizing};

/// The protocol's short name.
pub const NAME: &str = "bdgm19";

const PROTOCOL: &str = "bdgm19 2";
const ROOT: u8 = 128;
const IMAGE: u8 = 129;
const PAD: u8 = 130;
const RESPONSE: u8 = 131;
const PROOF: u8 = 132;
const BATCH: usize = 1024;
const CHALLENGE: usize = size_of::<Digest>();

/// The protocol of this module.
#[derive(Clone, Copy, Default, Debug)]
pub struct Bdgm19 {
    /// Its parameters, those of ROTed.
    pub set: ParameterSet,
}

type Digest = [u8; 32];

fn xor(a: &Digest, b: &Digest) -> Digest {
    std::array::from_fn(|i| a[i] ^ b[i])
}

/// What the key of a slot gives: the image y and the message.
struct Derived {
    image: Digest,
    message: Block,
}

/// `slot` may be secret; `answer` is the transfer's p_S, σ_0 and σ_1.
fn derive<const N: usize, const K: usize>(
    instance: &Instance<N, K>,
    (index, slot): (u64, u8),
    first: &Digest,
    answer: &[u8],
    sk: &[u16],
) -> Derived {
    let slot = [slot];
    // ρ binds the first message and the sender's public value and signals of this transfer.
    let mut root = *instance
        .hash(ROOT, index, &[&slot, first, blake3::hash(answer).as_bytes(), bytemuck::cast_slice(sk)])
        .finalize()
        .as_bytes();
    let mut message = [0; 16];
    instance.hash(PAD, index, &[&slot, &root]).finalize_xof().fill(&mut message);
    let image = *instance.hash(IMAGE, index, &[&slot, &root]).finalize().as_bytes();
    root.zeroize();
    Derived { image, message: Block::from_bytes(message) }
}

/// The batch's response, one hash of all y_0 and of what was sent, and the proof that its sender knows it.
fn response_and_proof<const N: usize, const K: usize>(
    instance: &Instance<N, K>,
    first: &Digest,
    answers: &[u8],
    zeros: &[Digest],
) -> (Digest, Digest) {
    let (count, sent) = (zeros.len() as u64, blake3::hash(answers));
    let response = *instance
        .hash(RESPONSE, count, &[first, sent.as_bytes(), zeros.as_flattened()])
        .finalize()
        .as_bytes();
    let proof = *instance.hash(PROOF, count, &[&response]).finalize().as_bytes();
    (response, proof)
}

/// Refuses challenges that only a cheat sends: honest ones are zero, or equal, with probability 2^-256 a
/// pair.
fn check_challenges(answers: &[u8], len: usize) -> std::result::Result<(), tacit_roted::Error> {
    let mut challenges: Vec<&[u8]> = answers.chunks_exact(len).map(|a| &a[len - CHALLENGE..]).collect();
    challenges.sort_unstable();
    let zero = challenges.first().is_some_and(|c| c.iter().all(|byte| *byte == 0));
    if zero || challenges.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(tacit_roted::Error::Cheated("a challenge is zero or stands twice"));
    }
    Ok(())
}

fn answer_len<const N: usize, const K: usize>(instance: &Instance<N, K>) -> usize {
    instance.set().public_len() + 2 * instance.set().key_bits / 8
}

/// Bytes of the three messages of `count` OTs.
pub fn lengths<const N: usize, const K: usize>(instance: &Instance<N, K>, count: usize) -> [usize; 3] {
    let answers = count * (answer_len(instance) + CHALLENGE);
    [32 + count * instance.set().public_len(), answers + 32, 32 + count.div_ceil(8)]
}

/// The receiver between its first message and its response.
pub struct Receiver<const N: usize, const K: usize> {
    choices: Zeroizing<Vec<u8>>,
    /// The random bits that the exchange runs with.
    masks: Zeroizing<Vec<u8>>,
    secrets: Vec<Vector<N, K>>,
    first: Digest,
}

impl<const N: usize, const K: usize> Receiver<N, K> {
    /// The first message: r and p⁰_R of each OT. `choices` are bits, one a byte.
    pub fn offer(
        instance: &Instance<N, K>,
        choices: &[u8],
        random: &mut impl RandomBlocks,
    ) -> (Self, Vec<u8>) {
        let count = choices.len();
        let mut message = vec![0; lengths(instance, count)[0]];
        let (r, offers) = message.split_at_mut(32);
        let mut blocks = [Block::ZERO; 2];
        random.fill_blocks(&mut blocks);
        r.copy_from_slice(Block::as_bytes(&blocks));
        let seed: Digest = std::array::from_fn(|i| r[i]);
        let mut bits = Zeroizing::new(vec![Block::ZERO; count.div_ceil(128)]);
        random.fill_blocks(&mut bits);
        let masks = Zeroizing::new((0..count).map(|i| bits[i / 128].bit(i % 128) as u8).collect::<Vec<u8>>());
        let mut secrets = vec![Vector::ZERO; count];
        let (mut public, mut h) = (Vector::ZERO, [const { Poly::ZERO }; K]);
        let mut scratch = Scratch::new(instance);
        let offers = offers.chunks_exact_mut(instance.set().public_len());
        for (i, ((secret, mask), offer)) in secrets.iter_mut().zip(&*masks).zip(offers).enumerate() {
            exchange::generate(instance, random, &mut scratch, secret, &mut public);
            instance.offset(i as u64, &seed, &mut h);
            exchange::hide_choice(instance, &mut public, &h, *mask);
            exchange::pack(instance, &public, offer);
        }
        public.zeroize();
        let first = *blake3::hash(&message).as_bytes();
        (Receiver { choices: Zeroizing::new(choices.to_vec()), masks, secrets, first }, message)
    }

    /// Checks the second message and its proof, fills `out`, and gives the response with the bits that turn
    /// masks into choices.
    ///
    /// When a check fails, `out` is untouched and nothing may be sent. `out` is as long as the batch.
    pub fn respond(
        self,
        instance: &Instance<N, K>,
        second: &[u8],
        random: &mut impl RandomBlocks,
        out: &mut [Block],
    ) -> std::result::Result<Vec<u8>, tacit_roted::Error> {
        let count = self.masks.len();
        if second.len() != lengths(instance, count)[1] {
            return Err(tacit_roted::Error::Malformed("a second message of the wrong length"));
        }
        let (answers, given) = second.split_at(second.len() - 32);
        let len = answer_len(instance) + CHALLENGE;
        check_challenges(answers, len)?;
        let words = instance.set().key_words();
        let (mut scratch, mut peer) = (Scratch::new(instance), Vector::ZERO);
        let (mut signal, mut sk) = (Zeroizing::new(vec![0; words]), Zeroizing::new(vec![0; words]));
        let mut zeros = Zeroizing::new(Vec::with_capacity(count));
        let mut messages = Zeroizing::new(Vec::with_capacity(count));
        for (i, answer) in answers.chunks_exact(len).enumerate() {
            let (answer, challenge) = answer.split_at(len - CHALLENGE);
            let (public, signals) = answer.split_at(instance.set().public_len());
            exchange::unpack(instance, public, &mut peer)?;
            let mask = (self.masks[i] as u16).wrapping_neg();
            let (zero, one) = signals.split_at(2 * words);
            let pairs = zero.as_chunks::<2>().0.iter().zip(one.as_chunks::<2>().0);
            for (s, (zero, one)) in signal.iter_mut().zip(pairs) {
                let (zero, one) = (u16::from_le_bytes(*zero), u16::from_le_bytes(*one));
                *s = zero ^ (mask & (zero ^ one));
            }
            exchange::extract(instance, random, &mut scratch, &self.secrets[i], &peer, (&signal, &mut sk));
            let derived = derive(instance, (i as u64, self.masks[i]), &self.first, answer, &sk);
            // y_0 = y_c ⊕ c·(y_0 ⊕ y_1), without a branch.
            let byte = self.masks[i].wrapping_neg();
            zeros.push(std::array::from_fn(|i| derived.image[i] ^ (byte & challenge[i])));
            messages.push(derived.message);
        }
        let (response, proof) = response_and_proof(instance, &self.first, answers, &zeros);
        if !bool::from(proof[..].ct_eq(given)) {
            return Err(tacit_roted::Error::Cheated("the sender's proof does not fit its challenges"));
        }
        out.copy_from_slice(&messages);
        let flips = self.choices.chunks(8).zip(self.masks.chunks(8)).map(|(choices, masks)| {
            let bits = choices.iter().zip(masks).rev();
            bits.fold(0, |byte, (choice, mask)| byte << 1 | ((choice ^ mask) & 1))
        });
        Ok(response.into_iter().chain(flips).collect())
    }
}

impl<const N: usize, const K: usize> Drop for Receiver<N, K> {
    fn drop(&mut self) {
        self.secrets.iter_mut().for_each(Zeroize::zeroize);
    }
}

/// The sender between its message and the receiver's response.
pub struct Sender {
    expected: Digest,
    messages: Zeroizing<Vec<[Block; 2]>>,
}

impl Sender {
    /// The second message: p_S, σ_0, σ_1 and the challenge of each OT, then the proof.
    pub fn challenge<const N: usize, const K: usize>(
        instance: &Instance<N, K>,
        count: usize,
        first: &[u8],
        random: &mut impl RandomBlocks,
    ) -> std::result::Result<(Self, Vec<u8>), tacit_roted::Error> {
        if first.len() != lengths(instance, count)[0] {
            return Err(tacit_roted::Error::Malformed("a first message of the wrong length"));
        }
        let digest = *blake3::hash(first).as_bytes();
        let (r, offers) = first.split_at(32);
        let r: Digest = std::array::from_fn(|i| r[i]);
        let words = instance.set().key_words();
        let (mut scratch, mut secret) = (Scratch::new(instance), Vector::ZERO);
        let (mut public, mut peer, mut h) = (Vector::ZERO, Vector::ZERO, [const { Poly::ZERO }; K]);
        let (mut signal, mut keys) = (vec![0u16; words], Zeroizing::new(vec![0u16; 2 * words]));
        let mut message = Vec::with_capacity(lengths(instance, count)[1]);
        let mut zeros = Zeroizing::new(Vec::with_capacity(count));
        let mut messages = Zeroizing::new(Vec::with_capacity(count));
        for (i, offer) in offers.chunks_exact(instance.set().public_len()).enumerate() {
            exchange::unpack(instance, offer, &mut peer)?;
            exchange::generate(instance, random, &mut scratch, &mut secret, &mut public);
            let start = message.len();
            message.resize(start + instance.set().public_len(), 0);
            exchange::pack(instance, &public, &mut message[start..]);
            instance.offset(i as u64, &r, &mut h);
            for (slot, key) in keys.chunks_exact_mut(words).enumerate() {
                if slot == 1 {
                    exchange::second_slot(instance, &mut peer, &h);
                }
                exchange::signal(instance, random, &mut scratch, &secret, &peer, (&mut signal, key));
                message.extend(signal.iter().flat_map(|w| w.to_le_bytes()));
            }
            let (zero, one) = keys.split_at(words);
            let [zero, one] = [(0, zero), (1, one)]
                .map(|(slot, sk)| derive(instance, (i as u64, slot), &digest, &message[start..], sk));
            message.extend(xor(&zero.image, &one.image));
            zeros.push(zero.image);
            messages.push([zero.message, one.message]);
        }
        secret.zeroize();
        let (expected, proof) = response_and_proof(instance, &digest, &message, &zeros);
        message.extend(proof);
        Ok((Sender { expected, messages }, message))
    }

    /// Checks the response and fills `out`, which is untouched if the check fails; the bits behind the
    /// response say which pairs are swapped. `out` is as long as the batch.
    pub fn finish(
        self,
        response: &[u8],
        out: &mut [[Block; 2]],
    ) -> std::result::Result<(), tacit_roted::Error> {
        let count = self.messages.len();
        if response.len() != 32 + count.div_ceil(8) {
            return Err(tacit_roted::Error::Malformed("a response of the wrong length"));
        }
        let (response, flips) = response.split_at(32);
        if !bool::from(self.expected[..].ct_eq(response)) {
            return Err(tacit_roted::Error::Cheated("the response to the challenge is wrong"));
        }
        let flips = BitVec::from_bytes(flips, count);
        for (i, (out, [zero, one])) in out.iter_mut().zip(self.messages.iter()).enumerate() {
            let swap = (*zero ^ *one) & Block::mask(flips.get(i));
            *out = [*zero ^ swap, *one ^ swap];
        }
        Ok(())
    }
}

fn send<const N: usize, const K: usize>(
    set: &Set<N, K>,
    channel: &mut Channel,
    prg: &mut Prg,
    out: &mut [[Block; 2]],
) -> Result<()> {
    let run = Run::sending(NAME, channel, out.len());
    let random = &mut XofBlocks::from_prg(prg);
    let result = out.chunks_mut(BATCH).enumerate().try_for_each(|(batch, out)| {
        let instance = instance(set, &run, PROTOCOL, batch, Role::Sender);
        let mut first = vec![0; lengths(&instance, out.len())[0]];
        channel.recv(&mut first)?;
        let (state, second) =
            Sender::challenge(&instance, out.len(), &first, random).map_err(|e| fault(NAME, e))?;
        channel.send(&second)?;
        let mut response = vec![0; lengths(&instance, out.len())[2]];
        channel.recv(&mut response)?;
        state.finish(&response, out).map_err(|e| fault(NAME, e))
    });
    if result.is_err() {
        out.iter_mut().flatten().for_each(Zeroize::zeroize);
    }
    result
}

fn receive<const N: usize, const K: usize>(
    set: &Set<N, K>,
    channel: &mut Channel,
    prg: &mut Prg,
    choices: &BitVec,
    out: &mut [Block],
) -> Result<()> {
    if choices.len() != out.len() {
        return Err(Error::Usage { protocol: NAME, what: "as many choices as messages are needed" });
    }
    let run = Run::receiving(NAME, channel, out.len());
    let random = &mut XofBlocks::from_prg(prg);
    let result = out.chunks_mut(BATCH).enumerate().try_for_each(|(batch, out)| {
        let from = batch * BATCH;
        let bits: Zeroizing<Vec<u8>> =
            Zeroizing::new((0..out.len()).map(|i| choices.get(from + i) as u8).collect());
        let instance = instance(set, &run, PROTOCOL, batch, Role::Receiver);
        let (state, first) = Receiver::offer(&instance, &bits, random);
        channel.send(&first)?;
        let mut second = vec![0; lengths(&instance, out.len())[1]];
        channel.recv(&mut second)?;
        let response = state.respond(&instance, &second, random, out).map_err(|e| fault(NAME, e))?;
        Ok(channel.send(&response)?)
    });
    if result.is_err() {
        out.zeroize();
    }
    result.and_then(|()| Ok(channel.flush()?))
}

impl BaseOt for Bdgm19 {
    fn name(&self) -> &'static str {
        NAME
    }

    fn security(&self) -> Security {
        Security::Malicious
    }

    fn functionality(&self) -> Functionality {
        Functionality::SelectiveFailure
    }

    fn extraction(&self) -> Extraction {
        Extraction::Early
    }

    fn send(&self, channel: &mut Channel, prg: &mut Prg, out: &mut [[Block; 2]]) -> Result<()> {
        with_set!(self.set, set => send(set, channel, prg, out))
    }

    fn receive(
        &self,
        channel: &mut Channel,
        prg: &mut Prg,
        choices: &BitVec,
        out: &mut [Block],
    ) -> Result<()> {
        with_set!(self.set, set => receive(set, channel, prg, choices, out))
    }
}

#[cfg(test)]
#[path = "bdgm19_cheats.rs"]
mod cheats;
