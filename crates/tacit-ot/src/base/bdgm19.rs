//! BDGM19: OT from one-round key exchange (Branco, Ding, Goulão, Mateus 2019), the sibling of ROTed's section 4, over
//! module-RLWE.
//!
//! Realises: OT whose messages a malicious sender chooses, and whose choice bits it may guess: `SelectiveFailure`. Security:
//! malicious up to that, in the random-oracle model; a receiver is bound to its bit before the sender's last message (a proof of timely
//! decryption, Barreto et al. 2017/993). Assumptions: decisional module-RLWE. Rounds: four messages. Bytes with the default
//! set: 1,248 and 32 an OT to the sender, 1,312, 32 and 64 to the receiver; chosen messages by [`standard`](super::standard) ride on the
//! last message.
//!
//! Built from ROTed's account in words, which has no figure (section 4: standard OT, two key exchanges of which the receiver
//! can finish one, a proof of timely decryption that adds a message); the paper calls the original UC-secure, and what
//! is here is declared weaker than that, for the reason below. The encryptions of the proof are one-time pads here, so that it becomes
//! challenge and response: with ρ_i = H(sk_i) and y_i = H(H(ρ_i)), the challenge is y_0 ⊕ y_1, the response y_0 whatever
//! the choice, and the sender then opens both H(ρ_i). e'_S is drawn per slot and hashes bind the [`Run`], as in
//! [`roted`](super::roted).
//!
//! Why only `SelectiveFailure`: a sender that spoils slot 1 (or the challenge) gets the right response where the choice is 0 and
//! a wrong one where it is 1, so that it learns the bit before the receiver can know; the run then ends without output.
//! No proof of decryption in four messages avoids that, since the receiver cannot test the slot that it must not open. [`Roted`](super::roted::Roted)
//! has no such step and costs no more.

use super::Run;
use super::roted::{ParameterSet, fault, instance, with_set};
use crate::{BaseOt, Error, Functionality, Result, Security};
use subtle::ConstantTimeEq;
use tacit_crypto::ring::{Poly, RandomBlocks, Vector, XofBlocks};
use tacit_crypto::{BitVec, Block, Prg};
use tacit_net::Channel;
use tacit_roted::exchange::{self, Scratch};
use tacit_roted::set::{self, Set};
use tacit_roted::{Instance, Role};
use zeroize::{Zeroize, Zeroizing};

/// The protocol's short name.
pub const NAME: &str = "bdgm19";

const PROTOCOL: &str = "bdgm19 1";
const ROOT: u8 = 128;
const STEP: u8 = 129;
const PAD: u8 = 130;
const RESPONSE: u8 = 131;
const BATCH: usize = 1024;

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

/// `b` if `bit` is 1, else `a`, without a branch.
fn select(a: &Digest, b: &Digest, bit: u8) -> Digest {
    let mask = (bit & 1).wrapping_neg();
    std::array::from_fn(|i| a[i] ^ (mask & (a[i] ^ b[i])))
}

/// What a key gives: the root ρ, H(ρ) to be opened, y = H(H(ρ)), and the message.
struct Derived {
    opening: Digest,
    image: Digest,
    message: Block,
}

fn step<const N: usize, const K: usize>(instance: &Instance<N, K>, index: u64, x: &Digest) -> Digest {
    *instance.hash(STEP, index, &[x]).finalize().as_bytes()
}

fn derive<const N: usize, const K: usize>(
    instance: &Instance<N, K>,
    index: u64,
    first: &Digest,
    public: &[u8],
    sk: &[u16],
) -> Derived {
    // ρ binds the first message and the sender's public value and signals of this transfer.
    let mut root = *instance
        .hash(ROOT, index, &[first, blake3::hash(public).as_bytes(), bytemuck::cast_slice(sk)])
        .finalize()
        .as_bytes();
    let opening = step(instance, index, &root);
    let mut message = [0; 16];
    instance.hash(PAD, index, &[&root]).finalize_xof().fill(&mut message);
    root.zeroize();
    let image = step(instance, index, &opening);
    Derived { opening, image, message: Block::from_bytes(message) }
}

/// The batch's response: one hash of all y_0.
fn respond<const N: usize, const K: usize>(instance: &Instance<N, K>, images: &[Digest]) -> Digest {
    *instance.hash(RESPONSE, images.len() as u64, &[images.as_flattened()]).finalize().as_bytes()
}

fn answer_len<const N: usize, const K: usize>(instance: &Instance<N, K>) -> usize {
    instance.set().public_len() + 2 * instance.set().key_bits / 8
}

/// Bytes of the first and of the second message of `count` OTs.
pub fn lengths<const N: usize, const K: usize>(instance: &Instance<N, K>, count: usize) -> [usize; 2] {
    [32 + count * instance.set().public_len(), count * (answer_len(instance) + 32)]
}

/// The receiver between its first message and its response.
pub struct Receiver<const N: usize, const K: usize> {
    choices: Zeroizing<Vec<u8>>,
    secrets: Vec<Vector<N, K>>,
    first: Digest,
}

/// The receiver that has responded and waits for the openings.
pub struct Responded {
    challenges: Vec<Digest>,
    images: Zeroizing<Vec<Digest>>,
    choices: Zeroizing<Vec<u8>>,
    messages: Zeroizing<Vec<Block>>,
}

impl<const N: usize, const K: usize> Receiver<N, K> {
    /// The first message: r and p⁰_R of each OT. `choices` are bits, one a byte.
    pub fn offer(
        instance: &Instance<N, K>,
        choices: &[u8],
        random: &mut impl RandomBlocks,
    ) -> (Self, Vec<u8>) {
        let mut message = vec![0; lengths(instance, choices.len())[0]];
        let (r, offers) = message.split_at_mut(32);
        let mut blocks = [Block::ZERO; 2];
        random.fill_blocks(&mut blocks);
        r.copy_from_slice(Block::as_bytes(&blocks));
        let seed: Digest = std::array::from_fn(|i| r[i]);
        let mut secrets = vec![Vector::ZERO; choices.len()];
        let (mut public, mut h) = (Vector::ZERO, [const { Poly::ZERO }; K]);
        let mut scratch = Scratch::new(instance);
        let offers = offers.chunks_exact_mut(instance.set().public_len());
        for (i, ((secret, choice), offer)) in secrets.iter_mut().zip(choices).zip(offers).enumerate() {
            exchange::generate(instance, random, &mut scratch, secret, &mut public);
            instance.offset(i as u64, &seed, &mut h);
            exchange::hide_choice(instance, &mut public, &h, *choice);
            exchange::pack(instance, &public, offer);
        }
        public.zeroize();
        let first = *blake3::hash(&message).as_bytes();
        (Receiver { choices: Zeroizing::new(choices.to_vec()), secrets, first }, message)
    }

    /// The response to the second message.
    pub fn respond(
        mut self,
        instance: &Instance<N, K>,
        second: &[u8],
        random: &mut impl RandomBlocks,
    ) -> std::result::Result<(Responded, Digest), tacit_roted::Error> {
        let count = self.choices.len();
        if second.len() != lengths(instance, count)[1] {
            return Err(tacit_roted::Error::Malformed("a second message of the wrong length"));
        }
        let words = instance.set().key_words();
        let (mut scratch, mut peer) = (Scratch::new(instance), Vector::ZERO);
        let (mut signal, mut sk) = (Zeroizing::new(vec![0; words]), Zeroizing::new(vec![0; words]));
        let mut zeros = Zeroizing::new(Vec::with_capacity(count));
        let mut state = Responded {
            challenges: Vec::with_capacity(count),
            images: Zeroizing::new(Vec::with_capacity(count)),
            choices: std::mem::take(&mut self.choices),
            messages: Zeroizing::new(Vec::with_capacity(count)),
        };
        for (i, answer) in second.chunks_exact(answer_len(instance) + 32).enumerate() {
            let (answer, challenge) = answer.split_at(answer_len(instance));
            let (public, signals) = answer.split_at(instance.set().public_len());
            exchange::unpack(instance, public, &mut peer)?;
            let mask = (state.choices[i] as u16).wrapping_neg();
            let (zero, one) = signals.split_at(2 * words);
            let pairs = zero.as_chunks::<2>().0.iter().zip(one.as_chunks::<2>().0);
            for (s, (zero, one)) in signal.iter_mut().zip(pairs) {
                let (zero, one) = (u16::from_le_bytes(*zero), u16::from_le_bytes(*one));
                *s = zero ^ (mask & (zero ^ one));
            }
            exchange::extract(instance, random, &mut scratch, &self.secrets[i], &peer, (&signal, &mut sk));
            let derived = derive(instance, i as u64, &self.first, answer, &sk);
            // y_0 = y_c ⊕ c·(y_0 ⊕ y_1).
            let challenge: Digest = std::array::from_fn(|i| challenge[i]);
            zeros.push(select(&derived.image, &xor(&derived.image, &challenge), state.choices[i]));
            state.challenges.push(challenge);
            state.images.push(derived.image);
            state.messages.push(derived.message);
        }
        let response = respond(instance, &zeros);
        Ok((state, response))
    }
}

impl<const N: usize, const K: usize> Drop for Receiver<N, K> {
    fn drop(&mut self) {
        self.secrets.iter_mut().for_each(Zeroize::zeroize);
    }
}

impl Responded {
    /// Checks the openings H(ρ_0), H(ρ_1) of each OT and fills `out`, which is untouched if a check fails.
    pub fn finish<const N: usize, const K: usize>(
        self,
        instance: &Instance<N, K>,
        openings: &[[Digest; 2]],
        out: &mut [Block],
    ) -> std::result::Result<(), tacit_roted::Error> {
        let mut good = subtle::Choice::from((openings.len() == self.messages.len()) as u8);
        for (i, opened) in openings.iter().enumerate().take(self.messages.len()) {
            let [zero, one] = [0, 1].map(|slot| step(instance, i as u64, &opened[slot]));
            good &= xor(&zero, &one).ct_eq(&self.challenges[i]);
            good &= select(&zero, &one, self.choices[i]).ct_eq(&self.images[i]);
        }
        if !bool::from(good) {
            return Err(tacit_roted::Error::Cheated("the openings do not match the challenge"));
        }
        out.copy_from_slice(&self.messages);
        Ok(())
    }
}

/// The sender between its two messages.
pub struct Sender {
    expected: Digest,
    openings: Zeroizing<Vec<[Digest; 2]>>,
    messages: Zeroizing<Vec<[Block; 2]>>,
}

impl Sender {
    /// The second message: p_S, σ_0, σ_1 and the challenge of each OT.
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
        let mut openings = Zeroizing::new(Vec::with_capacity(count));
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
            let derived = [zero, one].map(|sk| derive(instance, i as u64, &digest, &message[start..], sk));
            message.extend(xor(&derived[0].image, &derived[1].image));
            zeros.push(derived[0].image);
            openings.push([derived[0].opening, derived[1].opening]);
            messages.push([derived[0].message, derived[1].message]);
        }
        secret.zeroize();
        let expected = respond(instance, &zeros);
        Ok((Sender { expected, openings, messages }, message))
    }

    /// Checks the response, fills `out` and gives the openings to send.
    pub fn finish(
        self,
        response: &Digest,
        out: &mut [[Block; 2]],
    ) -> std::result::Result<Zeroizing<Vec<[Digest; 2]>>, tacit_roted::Error> {
        if !bool::from(response.ct_eq(&self.expected)) {
            return Err(tacit_roted::Error::Cheated("the response to the challenge is wrong"));
        }
        out.copy_from_slice(&self.messages);
        Ok(self.openings)
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
        let mut response = [0; 32];
        channel.recv(&mut response)?;
        let openings = state.finish(&response, out).map_err(|e| fault(NAME, e))?;
        Ok(channel.send(openings.as_flattened().as_flattened())?)
    });
    if result.is_err() {
        out.iter_mut().flatten().for_each(Zeroize::zeroize);
    }
    result.and_then(|()| Ok(channel.flush()?))
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
    out.chunks_mut(BATCH).enumerate().try_for_each(|(batch, out)| {
        let from = batch * BATCH;
        let bits: Zeroizing<Vec<u8>> =
            Zeroizing::new((0..out.len()).map(|i| choices.get(from + i) as u8).collect());
        let instance = instance(set, &run, PROTOCOL, batch, Role::Receiver);
        let (state, first) = Receiver::offer(&instance, &bits, random);
        channel.send(&first)?;
        let mut second = vec![0; lengths(&instance, out.len())[1]];
        channel.recv(&mut second)?;
        let (state, response) = state.respond(&instance, &second, random).map_err(|e| fault(NAME, e))?;
        channel.send(&response)?;
        let mut openings = vec![[[0; 32]; 2]; out.len()];
        channel.recv(openings.as_flattened_mut().as_flattened_mut())?;
        state.finish(&instance, &openings, out).map_err(|e| fault(NAME, e))
    })
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
mod tests {
    use super::*;

    /// A sender that knows how to finish slot 0 only: its second message, and the response it gets for choice 0.
    fn spoilt(instance: &Instance<256, 3>, first: &[u8], random: &mut XofBlocks) -> (Vec<u8>, Digest) {
        let mut scratch = Scratch::new(instance);
        let [mut peer, mut secret, mut public] = [const { Vector::ZERO }; 3];
        exchange::unpack(instance, &first[32..], &mut peer).unwrap();
        exchange::generate(instance, random, &mut scratch, &mut secret, &mut public);
        let mut message = vec![0; answer_len(instance)];
        let (packed, signals) = message.split_at_mut(instance.set().public_len());
        exchange::pack(instance, &public, packed);
        let (mut signal, mut key) = ([0; 16], [0; 16]);
        exchange::signal(instance, random, &mut scratch, &secret, &peer, (&mut signal, &mut key));
        signals.fill(0x5a);
        signals[..32].copy_from_slice(bytemuck::cast_slice(&signal));
        let zero = derive(instance, 0, blake3::hash(first).as_bytes(), &message, &key);
        message.extend(xor(&zero.image, &[0x33; 32]));
        (message, respond(instance, &[zero.image]))
    }

    #[test]
    fn a_sender_may_guess_bits_as_the_functionality_says() {
        let [ours, theirs] =
            [Role::Sender, Role::Receiver].map(|role| Instance::new(&set::MODULE, "test", b"", role));
        let (mut a, mut b) =
            (XofBlocks::from_prg(&mut Prg::from_os()), XofBlocks::from_prg(&mut Prg::from_os()));
        for attempt in 0..200 {
            let choice = attempt & 1;
            let (receiver, first) = Receiver::offer(&theirs, &[choice], &mut b);
            let (second, expected) = spoilt(&ours, &first, &mut a);
            let (receiver, response) = receiver.respond(&theirs, &second, &mut b).unwrap();
            // The response tells the choice; but the receiver then gets no openings that it would accept.
            assert_eq!(response == expected, choice == 0);
            let mut out = [Block::ZERO];
            assert!(receiver.finish(&theirs, &[[[7; 32]; 2]], &mut out).is_err());
            assert!(out == [Block::ZERO]);
        }
        assert_eq!(Bdgm19::default().functionality(), Functionality::SelectiveFailure);
    }
}
