//! Random 1-out-of-p OT for p = 4, 16 and 256 (BCGIKRS19, figure 4) from log2 p random OTs each.
//!
//! Deviation from the figure: instead of a subfield VOLE over a field of p elements, whose reverse VOLE needs more than OT,
//! an OT's p messages are hashes of one message of each of log2 p random OTs: message j takes those of j's bits. The receiver
//! holds one of each pair, so every message but one has an input it does not know. As secure as the random OT, in
//! the random-oracle model; log2 p times its work.

use crate::{Error, Result, RotReceiver, RotSender};
use tacit_crypto::{BitVec, Block};
use tacit_net::{Channel, Party};
use zeroize::Zeroizing;

const NAME: &str = "1-out-of-p ot";

/// Random 1-out-of-p OT over a sender or a receiver of random OT.
pub struct OneOfMany<R> {
    rot: R,
    bits: usize,
    next: u64,
}

impl<R> OneOfMany<R> {
    /// `p` is 2, 4, 16 or 256, or else `Error::Usage`.
    pub fn new(rot: R, p: usize) -> Result<Self> {
        if ![2, 4, 16, 256].contains(&p) {
            return Err(Error::Usage { protocol: NAME, what: "p must be 2, 4, 16 or 256" });
        }
        Ok(OneOfMany { rot, bits: p.ilog2() as usize, next: 0 })
    }

    /// Number of messages of an OT.
    pub fn messages(&self) -> usize {
        1 << self.bits
    }

    /// The hash of a session, a direction and p, with the number of the next OT.
    fn oracle(&mut self, channel: &Channel, sends: bool, count: usize) -> (blake3::Hasher, u64) {
        let mut hasher = blake3::Hasher::new_derive_key("tacit 2026 one-of-many ot v1");
        hasher.update(&channel.session_id().0);
        hasher.update(&[((channel.party() == Party::First) == sends) as u8, self.bits as u8]);
        let first = self.next;
        self.next += count as u64;
        (hasher, first)
    }
}

fn hash(oracle: &blake3::Hasher, index: u64, parts: &[Block]) -> Block {
    let mut hasher = oracle.clone();
    hasher.update(&index.to_le_bytes());
    hasher.update(Block::as_bytes(parts));
    let mut out = [0; 16];
    hasher.finalize_xof().fill(&mut out);
    Block::from_bytes(out)
}

impl<R: RotSender> OneOfMany<R> {
    /// Makes `out.len() / p` OTs of p random messages each. `Error::Usage` unless p divides; nothing is left on an error.
    pub fn send(&mut self, channel: &mut Channel, out: &mut [Block]) -> Result<()> {
        if !out.len().is_multiple_of(self.messages()) {
            return Err(Error::Usage { protocol: NAME, what: "the buffer must hold p messages an OT" });
        }
        let (bits, count) = (self.bits, out.len() / self.messages());
        let (oracle, first) = self.oracle(channel, true, count);
        let mut pairs = Zeroizing::new(vec![[Block::ZERO; 2]; count * bits]);
        self.rot.extend(channel, &mut pairs)?;
        let mut parts = Zeroizing::new([Block::ZERO; 8]);
        let ots = out.chunks_mut(1 << bits).zip(pairs.chunks(bits));
        for (index, (messages, pairs)) in (first..).zip(ots) {
            for (j, message) in messages.iter_mut().enumerate() {
                for (b, pair) in pairs.iter().enumerate() {
                    parts[b] = pair[j >> b & 1];
                }
                *message = hash(&oracle, index, &parts[..bits]);
            }
        }
        Ok(())
    }
}

impl<R: RotReceiver> OneOfMany<R> {
    /// Makes `out.len()` OTs; returns the random choices, `out[i]` being the message of choice `i`.
    pub fn receive(&mut self, channel: &mut Channel, out: &mut [Block]) -> Result<Zeroizing<Vec<u8>>> {
        let bits = self.bits;
        let (oracle, first) = self.oracle(channel, false, out.len());
        let mut messages = Zeroizing::new(vec![Block::ZERO; out.len() * bits]);
        let choices: BitVec = self.rot.extend(channel, &mut messages)?;
        for (index, (out, parts)) in (first..).zip(out.iter_mut().zip(messages.chunks(bits))) {
            *out = hash(&oracle, index, parts);
        }
        let number = |i| (0..bits).fold(0u8, |n, b| n | (choices.get(i * bits + b) as u8) << b);
        Ok(Zeroizing::new((0..out.len()).map(number).collect()))
    }
}
