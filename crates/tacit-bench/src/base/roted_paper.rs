//! ROTed's figure 1 as printed: INSECURE, for reproducing the paper's tables and for showing the attacks on
//! it.
//!
//! A malicious sender fixes the receiver's bit (see the tests), and the paper's parameters are under 128
//! bits. There is no channel version, and no session can select it. [`roted`](tacit_ot::base::roted) is the
//! protocol to use.
//!
//! Source: Branco et al., TCHES 2021, figure 1. Realises nothing against a malicious sender. Rounds: three
//! messages. Kept from the repaired protocol: the pads and oracles bind the session and the index.

use tacit_crypto::ring::{Poly, Vector};
use tacit_crypto::{Block, Prg};
use tacit_roted::exchange::{self, Scratch};
use tacit_roted::{Error, Instance};

/// The name under which benchmarks know it.
pub const NAME: &str = "roted-paper";

const COMMITMENT: u8 = 128;
const CONFIRM: u8 = 129;
const PAD: u8 = 130;

/// (p⁰_R, r, H_1(t_0), H_1(t_1)).
pub struct First {
    /// p⁰_R, packed.
    pub public: Vec<u8>,
    /// The offset's seed.
    pub r: [u8; 32],
    /// The commitments.
    pub commitments: [[u8; 32]; 2],
}

/// (p_S, K_a, K_{1−a}, σ_0, σ_1, u).
pub struct Second {
    /// p_S, packed.
    pub public: Vec<u8>,
    /// K_a, then K_{1−a}.
    pub confirmations: [Block; 2],
    /// σ_0, σ_1.
    pub signals: [Vec<u16>; 2],
    /// The sender's share of the pads.
    pub u: Block,
}

/// H_2(sk): what the figure sends as K.
pub fn confirm<const N: usize, const K: usize>(instance: &Instance<N, K>, index: u64, sk: &[u16]) -> Block {
    block(instance.hash(CONFIRM, index, &[bytemuck::cast_slice(sk)]))
}

fn block(hasher: blake3::Hasher) -> Block {
    let mut out = [0; 16];
    hasher.finalize_xof().fill(&mut out);
    Block::from_bytes(out)
}

fn pad<const N: usize, const K: usize>(
    instance: &Instance<N, K>,
    index: u64,
    sk: &[u16],
    t: Block,
    u: Block,
) -> Block {
    block(instance.hash(PAD, index, &[&t.to_bytes(), &u.to_bytes(), bytemuck::cast_slice(sk)]))
}

fn commit<const N: usize, const K: usize>(instance: &Instance<N, K>, index: u64, t: Block) -> [u8; 32] {
    *instance.hash(COMMITMENT, index, &[&t.to_bytes()]).finalize().as_bytes()
}

/// The receiver between its messages.
pub struct Receiver<const N: usize, const K: usize> {
    index: u64,
    c: u8,
    t: [Block; 2],
    secret: Vector<N, K>,
}

impl<const N: usize, const K: usize> Receiver<N, K> {
    /// The figure's first message.
    pub fn offer(instance: &Instance<N, K>, index: u64, prg: &mut Prg) -> (Self, First) {
        let mut scratch = Scratch::new(instance);
        let (mut secret, mut public) = (Vector::ZERO, Vector::ZERO);
        exchange::generate(instance, prg, &mut scratch, &mut secret, &mut public);
        let (c, t) = (prg.bit() as u8, [prg.block(), prg.block()]);
        let mut r = [0; 32];
        prg.fill_bytes(&mut r);
        let mut h = [const { Poly::ZERO }; K];
        instance.offset(index, &r, &mut h);
        exchange::hide_choice(instance, &mut public, &h, c);
        let mut packed = vec![0; instance.set().public_len()];
        exchange::pack(instance, &public, &mut packed);
        let commitments = t.map(|t| commit(instance, index, t));
        (Receiver { index, c, t, secret }, First { public: packed, r, commitments })
    }

    /// From the second message: (b, M_b), and (t_0, t_1) to send.
    pub fn open(
        self,
        instance: &Instance<N, K>,
        second: &Second,
        prg: &mut Prg,
    ) -> Result<((u8, Block), [Block; 2]), Error> {
        let mut peer = Vector::ZERO;
        exchange::unpack(instance, &second.public, &mut peer)?;
        let mut sk = vec![0; instance.set().key_words()];
        let signal = &second.signals[self.c as usize];
        if signal.len() != sk.len() {
            return Err(Error::Malformed("a signal of the wrong length"));
        }
        let mut scratch = Scratch::new(instance);
        exchange::extract(instance, prg, &mut scratch, &self.secret, &peer, (signal, &mut sk));
        // The figure's rules for b: where K_c stands, or c where it stands nowhere. This is what the sender
        // plays on.
        let k_c = confirm(instance, self.index, &sk);
        let b = match second.confirmations {
            [first, _] if first == k_c => 0,
            [_, second] if second == k_c => 1,
            _ => self.c,
        };
        Ok(((b, pad(instance, self.index, &sk, self.t[self.c as usize], second.u)), self.t))
    }
}

/// The sender between its message and its output.
pub struct Sender {
    index: u64,
    a: usize,
    u: Block,
    keys: [Vec<u16>; 2],
    commitments: [[u8; 32]; 2],
}

impl Sender {
    /// The figure's second message.
    pub fn answer<const N: usize, const K: usize>(
        instance: &Instance<N, K>,
        index: u64,
        first: &First,
        prg: &mut Prg,
    ) -> Result<(Self, Second), Error> {
        let mut peer = Vector::ZERO;
        exchange::unpack(instance, &first.public, &mut peer)?;
        let mut scratch = Scratch::new(instance);
        let (mut secret, mut public) = (Vector::ZERO, Vector::ZERO);
        exchange::generate(instance, prg, &mut scratch, &mut secret, &mut public);
        let words = instance.set().key_words();
        let mut signals = [vec![0; words], vec![0; words]];
        let mut keys = signals.clone();
        let mut h = [const { Poly::ZERO }; K];
        instance.offset(index, &first.r, &mut h);
        for (slot, (signal, key)) in signals.iter_mut().zip(&mut keys).enumerate() {
            if slot == 1 {
                exchange::second_slot(instance, &mut peer, &h);
            }
            exchange::signal(instance, prg, &mut scratch, &secret, &peer, (signal, key));
        }
        let mut packed = vec![0; instance.set().public_len()];
        exchange::pack(instance, &public, &mut packed);
        let (a, u) = (prg.bit() as usize, prg.block());
        let confirmations = [a, 1 - a].map(|slot| confirm(instance, index, &keys[slot]));
        let second = Second { public: packed, confirmations, signals, u };
        Ok((Sender { index, a, u, keys, commitments: first.commitments }, second))
    }

    /// (M_0, M_1) from the opened (t_0, t_1).
    pub fn finish<const N: usize, const K: usize>(
        self,
        instance: &Instance<N, K>,
        t: [Block; 2],
    ) -> Result<[Block; 2], Error> {
        if t.map(|t| commit(instance, self.index, t)) != self.commitments {
            return Err(Error::Cheated("t_0 and t_1 do not open their commitments"));
        }
        Ok([self.a, 1 - self.a].map(|slot| pad(instance, self.index, &self.keys[slot], t[slot], self.u)))
    }
}
