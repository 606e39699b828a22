//! ROTed (Branco, Fiolhais, Goulão, Martins, Mateus, Sousa, TCHES 2021), figure 1 with its repair, in
//! batches.
//!
//! - **Realises** random OT: the sender ends with M_0, M_1, the receiver with b and M_b. In [`Mode::Random`]
//!   b is uniform whatever the sender does; in [`Mode::Chosen`] the receiver brings b.
//! - **Security**: malicious, UC, static corruption, in the programmable random-oracle model. Against a
//!   malicious sender under decisional (module) RLWE; against a malicious receiver under an assumption of its
//!   own, with the signal of a slot that the receiver chose (`docs/proofs/roted.md`, 4.3). A malicious
//!   *receiver* may choose b itself: once a is in the clear, the simulator can only say which slot such a
//!   receiver opens when it asks for the pad. Nothing above relies on b against the receiver.
//! - **Rounds**: three messages. **Bytes** with the default set: 1,248 + 1,312 + 32 an OT, and 96 a batch.
//!
//! Deviations from the figure:
//!
//! - K_a and K_{1−a} are left out, and a travels in the clear, because by them a sender fixes b: it sends p_S
//!   = 0 and zero signals, or garbage in one slot. b = c ⊕ a leaves it no such hold.
//! - e'_S is drawn afresh for each slot, so that the signals of the two slots have independent errors.
//! - The parties share m, r, u and one commitment to all t over a batch; every oracle binds the index, and
//!   p_S, s_S and t are fresh for every OT.
//! - The pads hash the whole of sk, t, the index and (by way of their key) both first messages, hence u.
//! - The sender refuses t_0 = t_1: a receiver can make the keys of both slots equal (`docs/proofs/roted.md`,
//!   4.4), and the pads would be too.
//! - In [`Mode::Chosen`] a is left out and c is the receiver's choice: a protects b's uniformity only.

use crate::exchange::{self, Scratch};
use crate::instance::Oracle;
use crate::{Error, Instance};
use alloc::vec;
use alloc::vec::Vec;
use subtle::ConstantTimeEq;
use tacit_crypto::Block;
use tacit_crypto::ring::{Poly, RandomBlocks, Vector};
use zeroize::Zeroize;

/// Who decides the receiver's bits. Parties must agree on it; its name belongs in the instance's binding.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// Nobody: b is uniform, as in the figure.
    Random,
    /// The receiver.
    Chosen,
}

/// The receiver's bits: to be drawn, or given (one a byte, 0 or 1).
#[derive(Clone, Copy)]
pub enum Choices<'a> {
    /// Uniform bits, known after the second message.
    Random,
    /// These bits, one in the lowest bit of each byte.
    Given(&'a [u8]),
}

impl Choices<'_> {
    /// The mode that the parties must agree on.
    pub fn mode(self) -> Mode {
        match self {
            Choices::Random => Mode::Random,
            Choices::Given(_) => Mode::Chosen,
        }
    }
}

/// Bytes of r, of u and of the commitment.
const SEED: usize = 32;

/// Bytes of the first message.
pub fn first_len<const N: usize, const K: usize>(instance: &Instance<N, K>, count: usize) -> usize {
    2 * SEED + count * instance.set.public_len()
}

/// Bytes of the second message.
pub fn second_len<const N: usize, const K: usize>(
    instance: &Instance<N, K>,
    mode: Mode,
    count: usize,
) -> usize {
    SEED + bit_bytes(mode, count) + count * answer_len(instance)
}

/// Bytes of the third message.
pub const fn third_len(count: usize) -> usize {
    count * 32
}

fn answer_len<const N: usize, const K: usize>(instance: &Instance<N, K>) -> usize {
    instance.set.public_len() + 2 * instance.set.key_bits / 8
}

fn bit_bytes(mode: Mode, count: usize) -> usize {
    if mode == Mode::Random { count.div_ceil(8) } else { 0 }
}

/// The receiver between its first and its last message.
pub struct Receiver<const N: usize, const K: usize> {
    mode: Mode,
    secrets: Vec<Vector<N, K>>,
    c: Vec<u8>,
    t: Vec<[Block; 2]>,
    first: [u8; 32],
}

impl<const N: usize, const K: usize> Receiver<N, K> {
    /// The first message of `count` transfers, appended to `message`.
    ///
    /// Panics when choices are given and are not `count`.
    pub fn offer(
        instance: &Instance<N, K>,
        choices: Choices<'_>,
        count: usize,
        random: &mut impl RandomBlocks,
        message: &mut Vec<u8>,
    ) -> Self {
        let c = match choices {
            Choices::Random => random_bits(count, random),
            Choices::Given(bits) => bits.iter().map(|b| b & 1).collect(),
        };
        assert_eq!(c.len(), count, "one choice a transfer");
        // proof: roted 2.2, 5.1
        let mut t = vec![[Block::ZERO; 2]; count];
        random.fill_blocks(t.as_flattened_mut());
        let r = random_seed(random);
        let start = message.len();
        message.reserve(first_len(instance, count));
        message.extend_from_slice(&r);
        message.extend_from_slice(&commit(instance, Block::as_bytes(t.as_flattened())));
        let mut secrets = vec![Vector::ZERO; count];
        let mut public = Vector::ZERO;
        let mut h = [const { Poly::ZERO }; K];
        let mut scratch = Scratch::new(instance);
        for (i, (secret, c)) in secrets.iter_mut().zip(&c).enumerate() {
            // p^c_R = m·s_R + 2·e_R; h = H_1(r) whatever c is; p^0_R = p^1_R − h if c = 1.
            exchange::generate(instance, random, &mut scratch, secret, &mut public);
            instance.offset(i as u64, &r, &mut h);
            exchange::hide_choice(instance, &mut public, &h, *c);
            let end = message.len();
            message.resize(end + instance.set.public_len(), 0);
            exchange::pack(instance, &public, &mut message[end..]);
        }
        public.zeroize();
        let first = *blake3::hash(&message[start..]).as_bytes();
        Receiver { mode: choices.mode(), secrets, c, t, first }
    }

    /// Takes the second message, fills `out` with M_b, appends the third message to `message`, and gives the
    /// bits b.
    ///
    /// Refuses a malformed message, and then leaves `out` and `message` as they were. Panics when `out` is
    /// not as long as the batch.
    pub fn open(
        mut self,
        instance: &Instance<N, K>,
        second: &[u8],
        random: &mut impl RandomBlocks,
        out: &mut [Block],
        message: &mut Vec<u8>,
    ) -> Result<Vec<u8>, Error> {
        let count = self.c.len();
        assert_eq!(out.len(), count, "one message a transfer");
        // proof: roted 2.5
        if second.len() != second_len(instance, self.mode, count) {
            return Err(Error::Malformed("a second message of the wrong length"));
        }
        let (a, answers) = second[SEED..].split_at(bit_bytes(self.mode, count));
        let mut keys = vec![0u16; count * instance.set.key_words()];
        let taken = self.take_answers(instance, answers, random, &mut keys);
        if taken.is_ok() {
            // proof: roted 2.6
            let pads = pad_key(instance, &self.first, second);
            let words = keys.chunks_exact(instance.set.key_words());
            for (i, (m, sk)) in out.iter_mut().zip(words).enumerate() {
                // M_b = H_2(sk_R, t_c, u).
                let [t0, t1] = self.t[i];
                *m = pad(&pads, i as u64, t0 ^ (Block::mask(self.c[i] == 1) & (t0 ^ t1)), sk);
            }
            message.extend_from_slice(Block::as_bytes(self.t.as_flattened()));
        }
        keys.zeroize();
        taken?;
        // b = c ⊕ a; a is all zeros where the bits are the receiver's.
        let mut b = core::mem::take(&mut self.c);
        for (i, bit) in b.iter_mut().enumerate() {
            *bit ^= a.get(i / 8).map_or(0, |byte| byte >> (i % 8) & 1);
        }
        Ok(b)
    }

    /// k_R = s_R·p_S + 2·e'_R and sk_R = Mod2(k_R, σ_c) of every answer.
    fn take_answers(
        &self,
        instance: &Instance<N, K>,
        answers: &[u8],
        random: &mut impl RandomBlocks,
        keys: &mut [u16],
    ) -> Result<(), Error> {
        let words = instance.set.key_words();
        let mut scratch = Scratch::new(instance);
        let mut peer = Vector::ZERO;
        let mut signal = vec![0u16; words];
        let answers = answers.chunks_exact(answer_len(instance));
        for (i, (answer, sk)) in answers.zip(keys.chunks_exact_mut(words)).enumerate() {
            let (public, signals) = answer.split_at(instance.set.public_len());
            // proof: roted 2.5
            exchange::unpack(instance, public, &mut peer)?;
            let (first, second) = signals.split_at(2 * words);
            let mask = (self.c[i] as u16).wrapping_neg();
            for (w, s) in signal.iter_mut().enumerate() {
                let word = |half: &[u8]| u16::from_le_bytes([half[2 * w], half[2 * w + 1]]);
                *s = word(first) ^ (mask & (word(first) ^ word(second)));
            }
            exchange::extract(instance, random, &mut scratch, &self.secrets[i], &peer, (&signal, sk));
        }
        // The chosen signals tell c.
        signal.zeroize();
        Ok(())
    }
}

impl<const N: usize, const K: usize> Drop for Receiver<N, K> {
    fn drop(&mut self) {
        self.secrets.iter_mut().for_each(Zeroize::zeroize);
        self.c.zeroize();
        self.t.iter_mut().flatten().for_each(Zeroize::zeroize);
    }
}

/// The sender between its only message and the receiver's last.
pub struct Sender {
    keys: Vec<u16>,
    a: Vec<u8>,
    commitment: [u8; 32],
    pads: [u8; 32],
}

impl Sender {
    /// Takes the first message of `count` transfers and appends the second to `message`.
    ///
    /// Refuses a malformed message, and then leaves `message` as it was.
    pub fn answer<const N: usize, const K: usize>(
        instance: &Instance<N, K>,
        mode: Mode,
        count: usize,
        first: &[u8],
        random: &mut impl RandomBlocks,
        message: &mut Vec<u8>,
    ) -> Result<Self, Error> {
        // proof: roted 2.3
        if first.len() != first_len(instance, count) {
            return Err(Error::Malformed("a first message of the wrong length"));
        }
        let (seeds, offers) = first.split_at(2 * SEED);
        let (r, commitment) = seeds.split_at(SEED);
        let r: [u8; SEED] = r.try_into().map_err(|_| Error::Malformed("no r"))?;
        let commitment = commitment.try_into().map_err(|_| Error::Malformed("no commitment"))?;
        let start = message.len();
        message.reserve(second_len(instance, mode, count));
        message.extend_from_slice(&random_seed(random));
        let a = match mode {
            Mode::Random => random_bits(count, random),
            Mode::Chosen => vec![0; count],
        };
        let packed = a.chunks(8).map(|bits| bits.iter().rev().fold(0, |byte, bit| byte << 1 | bit));
        message.extend(packed.take(bit_bytes(mode, count)));
        let mut keys = vec![0u16; 2 * count * instance.set.key_words()];
        let mut state = Answering::new(instance);
        let offers = offers.chunks_exact(instance.set.public_len());
        for (i, (offer, sk)) in offers.zip(keys.chunks_exact_mut(2 * instance.set.key_words())).enumerate() {
            if let Err(error) = state.one(instance, i as u64, &r, offer, random, sk, message) {
                message.truncate(start);
                keys.zeroize();
                return Err(error);
            }
        }
        let pads = pad_key(instance, blake3::hash(first).as_bytes(), &message[start..]);
        Ok(Sender { keys, a, commitment, pads })
    }

    /// Takes the third message and fills `out` with M_0, M_1 of each transfer.
    ///
    /// Refuses openings that do not match the commitment, or whose t_0 and t_1 are equal, and then leaves
    /// `out` as it was. Panics when `out` is not as long as the batch.
    pub fn finish<const N: usize, const K: usize>(
        self,
        instance: &Instance<N, K>,
        third: &[u8],
        out: &mut [[Block; 2]],
    ) -> Result<(), Error> {
        assert_eq!(out.len(), self.a.len(), "one pair a transfer");
        if third.len() != third_len(out.len()) {
            return Err(Error::Malformed("a third message of the wrong length"));
        }
        // Abort unless t_0, t_1 match the commitment.
        // proof: roted 2.7
        if !bool::from(commit(instance, third).ct_eq(&self.commitment)) {
            return Err(Error::Cheated("t_0 and t_1 do not open their commitment"));
        }
        // Equal t would leave it to the keys to tell a transfer's pads apart, and a receiver can make keys
        // equal far more often than by chance. The openings are public by now.
        if third.as_chunks::<32>().0.iter().any(|t| t[..16] == t[16..]) {
            return Err(Error::Cheated("t_0 and t_1 of a transfer are equal"));
        }
        let words = instance.set.key_words();
        let slots = self.keys.chunks_exact(2 * words).zip(third.as_chunks::<32>().0);
        for (i, (pair, (keys, t))) in out.iter_mut().zip(slots).enumerate() {
            // proof: roted 2.8
            // M_0 = H_2(sk^a, t_a, u), M_1 = H_2(sk^{1−a}, t_{1−a}, u); a is public.
            for (place, m) in pair.iter_mut().enumerate() {
                let slot = place ^ self.a[i] as usize;
                let mut opening = [0; 16];
                opening.copy_from_slice(&t[16 * slot..][..16]);
                *m = pad(&self.pads, i as u64, Block::from_bytes(opening), &keys[words * slot..][..words]);
            }
        }
        Ok(())
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        self.keys.zeroize();
        self.pads.zeroize();
    }
}

/// The sender's buffers for answering.
struct Answering<const N: usize, const K: usize> {
    scratch: Scratch<N>,
    secret: Vector<N, K>,
    public: Vector<N, K>,
    peer: Vector<N, K>,
    h: [Poly<N>; K],
    signals: Vec<u16>,
}

impl<const N: usize, const K: usize> Answering<N, K> {
    fn new(instance: &Instance<N, K>) -> Self {
        Answering {
            scratch: Scratch::new(instance),
            secret: Vector::ZERO,
            public: Vector::ZERO,
            peer: Vector::ZERO,
            h: [const { Poly::ZERO }; K],
            signals: vec![0; instance.set.key_words()],
        }
    }

    /// One transfer: p_S, σ_0, σ_1 go to `message`, sk^0 and sk^1 to `keys`.
    #[allow(clippy::too_many_arguments)]
    fn one(
        &mut self,
        instance: &Instance<N, K>,
        index: u64,
        r: &[u8; SEED],
        offer: &[u8],
        random: &mut impl RandomBlocks,
        keys: &mut [u16],
        message: &mut Vec<u8>,
    ) -> Result<(), Error> {
        // proof: roted 2.3
        exchange::unpack(instance, offer, &mut self.peer)?;
        // proof: roted 2.4, 5.1
        // p_S = m·s_S + 2·e_S, fresh for every transfer: a second use would give s_S away.
        exchange::generate(instance, random, &mut self.scratch, &mut self.secret, &mut self.public);
        let end = message.len();
        message.resize(end + instance.set.public_len(), 0);
        exchange::pack(instance, &self.public, &mut message[end..]);
        // p^1_R = p^0_R + H_1(r); for each slot k_S = s_S·p_R + 2·e'_S, σ = Sig(k_S), sk = Mod2(k_S, σ).
        for (slot, key) in keys.chunks_exact_mut(instance.set.key_words()).enumerate() {
            if slot == 1 {
                instance.offset(index, r, &mut self.h);
                exchange::second_slot(instance, &mut self.peer, &self.h);
            }
            let out = (&mut self.signals[..], key);
            exchange::signal(instance, random, &mut self.scratch, &self.secret, &self.peer, out);
            message.extend(self.signals.iter().flat_map(|w| w.to_le_bytes()));
        }
        Ok(())
    }
}

impl<const N: usize, const K: usize> Drop for Answering<N, K> {
    fn drop(&mut self) {
        self.secret.zeroize();
    }
}

fn random_bits(count: usize, random: &mut impl RandomBlocks) -> Vec<u8> {
    let mut blocks = vec![Block::ZERO; count.div_ceil(128)];
    random.fill_blocks(&mut blocks);
    let bits = (0..count).map(|i| blocks[i / 128].bit(i % 128) as u8).collect();
    blocks.zeroize();
    bits
}

fn random_seed(random: &mut impl RandomBlocks) -> [u8; SEED] {
    let mut blocks = [Block::ZERO; 2];
    random.fill_blocks(&mut blocks);
    let mut out = [0; SEED];
    out.copy_from_slice(Block::as_bytes(&blocks));
    out
}

/// The commitment to all t of a batch, which hold at least 256 random bits.
fn commit<const N: usize, const K: usize>(instance: &Instance<N, K>, t: &[u8]) -> [u8; 32] {
    *instance.oracle(Oracle::Commitment, t.len() as u64, &[t]).finalize().as_bytes()
}

/// The key of H_2 in one batch: it binds the session, and both messages before the pads are due.
fn pad_key<const N: usize, const K: usize>(
    instance: &Instance<N, K>,
    first: &[u8; 32],
    second: &[u8],
) -> [u8; 32] {
    let second = blake3::hash(second);
    *instance.oracle(Oracle::Transcript, 0, &[first, second.as_bytes()]).finalize().as_bytes()
}

/// H_2(index, t, sk).
// proof: roted 5.2
fn pad(key: &[u8; 32], index: u64, t: Block, sk: &[u16]) -> Block {
    let mut input = [0u8; 1 + 8 + 16 + 128];
    input[0] = Oracle::Pad as u8;
    input[1..9].copy_from_slice(&index.to_le_bytes());
    input[9..25].copy_from_slice(&t.to_bytes());
    let end = 25 + 2 * sk.len();
    for (bytes, word) in input[25..end].as_chunks_mut::<2>().0.iter_mut().zip(sk) {
        *bytes = word.to_le_bytes();
    }
    let hash = blake3::keyed_hash(key, &input[..end]);
    let mut out = [0; 16];
    out.copy_from_slice(&hash.as_bytes()[..16]);
    input.zeroize();
    Block::from_bytes(out)
}
