//! From one kind of OT to the next, once for all generators: correlated → random → chosen messages.
//!
//! - [`CotToRot`]: random OT from correlated OT, by hashing with MITCCRH (Guo, Katz, Weng, Yu, 2019/1168). No
//!   messages.
//! - [`RotToOt`]: OT on blocks and on strings of any length from random OT (Beaver, CRYPTO '95): the receiver
//!   sends the difference of its choices to the random ones, the sender its messages under the pads. 1 bit
//!   and two messages an OT.
//! - [`Derandomised`]: correlated OT with chosen choice bits from correlated OT with random ones. 1 bit an
//!   OT.
//!
//! All are as secure as what they start from; MITCCRH is modelled in the ideal-cipher model. Every OT has a
//! gid of its own: a malicious receiver of an OT extension can make rows of the sender equal, so two OTs must
//! never share a hash.

use crate::{
    ChosenCotReceiver, ChosenCotSender, CotReceiver, CotSender, Error, OtReceiver, OtSender, Result,
    RotReceiver, RotSender,
};
use tacit_crypto::{BitVec, Block, Prg, hash::Mitccrh, transcript::Transcript};
use tacit_net::{Channel, Party};
use zeroize::{Zeroize, Zeroizing};

/// Random OTs made at a time for chosen messages: the scratch of a transfer of any size.
const CHUNK: usize = 1 << 18;

/// Random OT from correlated OT.
///
/// The sender's messages are H(gid, v) and H(gid, v ⊕ Δ). The hash's start point S is itself a hash: of the
/// session's id, of the sender's end of the channel and of the run's number on it, which no two values of
/// this type share (the channels of one session have ids of their own). Nothing is sent for it. The bound of
/// 2019/1168 lets the adversary know S before all else and asks that S be random and S ⊕ gid not repeat over
/// sessions; the id holds a random number of each party, so S is random if one of them is honest. A party
/// that tries many numbers chooses among as many S as it can hash, too few to meet a key that was used
/// before.
pub struct CotToRot<C> {
    cot: C,
    hash: Option<Mitccrh>,
    next: u64,
}

impl<C> CotToRot<C> {
    /// Wraps a sender or a receiver of correlated OT.
    pub fn new(cot: C) -> Self {
        CotToRot { cot, hash: None, next: 0 }
    }

    /// The parts, the hash begun, and the gid of the first of `n` OTs.
    fn begin(&mut self, channel: &mut Channel, sender: Party, n: usize) -> (&mut C, &Mitccrh, u64) {
        let first = self.next;
        self.next += n as u64;
        let hash = self.hash.get_or_insert_with(|| started(channel, "tacit cot-to-rot v2", sender));
        (&mut self.cot, hash, first)
    }
}

/// The hash of a conversion called `name`, of OTs that `sender` sends; see [`CotToRot`].
pub(crate) fn started(channel: &mut Channel, name: &'static str, sender: Party) -> Mitccrh {
    let mut transcript = Transcript::new(name);
    transcript.append("session", &channel.session_id().0);
    transcript.append_u64("sender", (sender == Party::Second) as u64);
    transcript.append_u64("instance", channel.next_instance());
    // proof: kos 6.1
    Mitccrh::new(transcript.challenge_block("mitccrh start"))
}

impl<C: CotSender> RotSender for CotToRot<C> {
    fn extend(&mut self, channel: &mut Channel, out: &mut [[Block; 2]]) -> Result<()> {
        let sender = channel.party();
        let (cot, hash, first) = self.begin(channel, sender, out.len());
        let delta = cot.delta();
        let mut at = 0;
        let result = cot.extend_each(channel, out.len(), &mut |rows| {
            hash.cot_to_rot_sender(first + at as u64, delta, rows, &mut out[at..at + rows.len()]);
            at += rows.len();
        });
        result.inspect_err(|_| out.as_flattened_mut().zeroize())
    }
}

impl<C: CotReceiver> RotReceiver for CotToRot<C> {
    fn extend(&mut self, channel: &mut Channel, out: &mut [Block]) -> Result<BitVec> {
        let sender = match channel.party() {
            Party::First => Party::Second,
            Party::Second => Party::First,
        };
        let (cot, hash, first) = self.begin(channel, sender, out.len());
        let mut choices = BitVec::zeros(out.len());
        let mut at = 0;
        let result = cot.extend_each(channel, out.len(), &mut |rows| {
            choices.set_lsbs(at, rows);
            hash.cot_to_rot_receiver(first + at as u64, rows, &mut out[at..at + rows.len()]);
            at += rows.len();
        });
        result.inspect_err(|_| out.zeroize())?;
        Ok(choices)
    }
}

/// Correlated OT with chosen choice bits from correlated OT with random ones.
///
/// The receiver sends d = c ⊕ u and the sender takes v ⊕ d·(Δ ⊕ 1), the receiver w ⊕ d: the choice bit stays
/// in the lowest bit.
pub struct Derandomised<C>(C);

impl<C> Derandomised<C> {
    /// Wraps a sender or a receiver of correlated OT.
    pub fn new(cot: C) -> Self {
        Derandomised(cot)
    }
}

impl<C: CotSender> ChosenCotSender for Derandomised<C> {
    fn delta(&self) -> Block {
        self.0.delta()
    }

    fn extend_chosen(&mut self, channel: &mut Channel, out: &mut [Block]) -> Result<()> {
        self.0.extend(channel, out)?;
        let flip = self.0.delta().with_lsb(false);
        let mut bits = [0u8; 1024];
        for start in (0..out.len()).step_by(8 * bits.len()) {
            let here = (out.len() - start).min(8 * bits.len());
            let bits = &mut bits[..here.div_ceil(8)];
            channel.recv(bits).inspect_err(|_| out.zeroize())?;
            for (j, v) in out[start..start + here].iter_mut().enumerate() {
                *v ^= flip & Block::mask(bits[j / 8] >> (j % 8) & 1 == 1);
            }
        }
        Ok(())
    }
}

impl<C: CotReceiver> ChosenCotReceiver for Derandomised<C> {
    fn extend_chosen(&mut self, channel: &mut Channel, choices: &BitVec, out: &mut [Block]) -> Result<()> {
        if choices.len() != out.len() {
            return Err(Error::Usage { protocol: "derandomised cot", what: "one choice bit an OT" });
        }
        self.0.extend(channel, out)?;
        let mut difference = BitVec::from_lsbs(out);
        difference.xor_assign(choices);
        let sent = channel.send(difference.as_bytes()).and_then(|()| channel.flush());
        sent.inspect_err(|_| out.zeroize())?;
        for (j, w) in out.iter_mut().enumerate() {
            *w ^= Block::new(difference.get(j) as u128);
        }
        Ok(())
    }
}

/// Random OTs swapped so that the receiver holds the message of its chosen bit: the sender's side. Also
/// returns the bits that the receiver sent for it.
pub fn chosen_pairs(
    channel: &mut Channel,
    rot: &mut dyn RotSender,
    n: usize,
) -> Result<(Zeroizing<Vec<[Block; 2]>>, BitVec)> {
    let mut pairs = Zeroizing::new(vec![[Block::ZERO; 2]; n]);
    rot.extend(channel, &mut pairs)?;
    let mut bits = vec![0; n.div_ceil(8)];
    channel.recv(&mut bits)?;
    let bits = BitVec::from_bytes(&bits, n);
    swap_pairs(&mut pairs, &bits);
    Ok((pairs, bits))
}

/// Swaps the pairs whose bit is set.
pub(crate) fn swap_pairs(pairs: &mut [[Block; 2]], bits: &BitVec) {
    for (i, pair) in pairs.iter_mut().enumerate() {
        let swap = (pair[0] ^ pair[1]) & Block::mask(bits.get(i));
        pair[0] ^= swap;
        pair[1] ^= swap;
    }
}

/// The receiver's side of [`chosen_pairs`]: the messages of its `choices`, and the bits that it sent.
pub fn chosen_messages(
    channel: &mut Channel,
    rot: &mut dyn RotReceiver,
    choices: &BitVec,
) -> Result<(Zeroizing<Vec<Block>>, BitVec)> {
    let mut messages = Zeroizing::new(vec![Block::ZERO; choices.len()]);
    let mut difference = rot.extend(channel, &mut messages)?;
    difference.xor_assign(choices);
    channel.send(difference.as_bytes())?;
    channel.flush()?;
    Ok((messages, difference))
}

/// OT on the sender's messages from random OT.
///
/// A transfer of any size uses 8 MiB of scratch: it goes in chunks of 262,144 OTs, each with its own
/// extension.
pub struct RotToOt<R>(R);

impl<R> RotToOt<R> {
    /// Wraps a sender or a receiver of random OT.
    pub fn new(rot: R) -> Self {
        RotToOt(rot)
    }
}

impl<R: RotSender> RotToOt<R> {
    /// Makes pads for up to [`CHUNK`] OTs in the order of the receiver's choices: `pads[j][b]` hides message
    /// `b`.
    fn pads(&mut self, channel: &mut Channel, pads: &mut [[Block; 2]]) -> Result<()> {
        self.0.extend(channel, pads)?;
        let mut bits = vec![0u8; pads.len().div_ceil(8)];
        channel.recv(&mut bits)?;
        for (j, pair) in pads.iter_mut().enumerate() {
            let swap = (pair[0] ^ pair[1]) & Block::mask(bits[j / 8] >> (j % 8) & 1 == 1);
            pair[0] ^= swap;
            pair[1] ^= swap;
        }
        Ok(())
    }

    /// Transfers one string of each pair; both strings of a pair have one length, which the receiver knows.
    ///
    /// `Error::Usage` when they have not.
    pub fn send_strings<S: AsRef<[u8]>>(&mut self, channel: &mut Channel, messages: &[[S; 2]]) -> Result<()> {
        if messages.iter().any(|[a, b]| a.as_ref().len() != b.as_ref().len()) {
            return Err(Error::Usage { protocol: "ot", what: "the strings of a pair differ in length" });
        }
        let mut pads = Zeroizing::new(vec![[Block::ZERO; 2]; messages.len().min(CHUNK)]);
        let mut masked = Zeroizing::new(Vec::new());
        for messages in messages.chunks(CHUNK) {
            let pads = &mut pads[..messages.len()];
            self.pads(channel, pads)?;
            for (pair, pads) in messages.iter().zip(pads) {
                for (message, pad) in pair.iter().zip(pads) {
                    masked.clear();
                    masked.extend_from_slice(message.as_ref());
                    xor_pad(*pad, &mut masked);
                    channel.send(&masked)?;
                }
            }
        }
        channel.flush()?;
        Ok(())
    }

    /// As [`send_strings`](Self::send_strings), of strings of `width` bytes each: `rows` has both of a pair
    /// one after the other, pair by pair.
    ///
    /// `Error::Usage` unless `rows` are whole pairs of a width of at least 1.
    pub fn send_rows(&mut self, channel: &mut Channel, width: usize, rows: &[u8]) -> Result<()> {
        if width == 0 || !rows.len().is_multiple_of(2 * width) {
            return Err(Error::Usage { protocol: "ot", what: "two messages a pair" });
        }
        let pairs: Vec<[&[u8]; 2]> = rows.chunks(2 * width).map(|pair| pair.split_at(width).into()).collect();
        self.send_strings(channel, &pairs)
    }
}

impl<R: RotReceiver> RotToOt<R> {
    /// Makes the pads of the messages that the choices from `start` on name, of up to [`CHUNK`] OTs.
    fn chosen_pads(
        &mut self,
        channel: &mut Channel,
        choices: &BitVec,
        start: usize,
        pads: &mut [Block],
    ) -> Result<()> {
        let random = self.0.extend(channel, pads)?;
        // Chunks begin at whole blocks, and bits past the end are zero in both.
        let chosen = &choices.as_bytes()[start / 8..];
        let difference: Vec<u8> = random.as_bytes().iter().zip(chosen).map(|(u, c)| u ^ c).collect();
        channel.send(&difference)?;
        Ok(())
    }

    /// Receives the string of each choice; `lengths[j]` is the length of pair j, at most what the caller will
    /// hold.
    ///
    /// `choices.len() == lengths.len()`, or `Error::Usage`.
    pub fn receive_strings(
        &mut self,
        channel: &mut Channel,
        choices: &BitVec,
        lengths: &[usize],
    ) -> Result<Vec<Vec<u8>>> {
        if choices.len() != lengths.len() {
            return Err(Error::Usage { protocol: "ot", what: "one choice bit a string" });
        }
        let mut out = Vec::with_capacity(lengths.len());
        let mut other = Vec::new();
        let mut pads = Zeroizing::new(vec![Block::ZERO; lengths.len().min(CHUNK)]);
        for start in (0..lengths.len()).step_by(CHUNK) {
            let lengths = &lengths[start..lengths.len().min(start + CHUNK)];
            let pads = &mut pads[..lengths.len()];
            self.chosen_pads(channel, choices, start, pads)?;
            for (j, (length, pad)) in lengths.iter().zip(pads).enumerate() {
                let mut string = vec![0u8; *length];
                receive_string(channel, choices.get(start + j), *pad, &mut string, &mut other)?;
                out.push(string);
            }
        }
        Ok(out)
    }

    /// As [`receive_strings`](Self::receive_strings), of strings of `width` bytes each, into `out` one after
    /// the other; nothing is left there on an error.
    ///
    /// `out.len() == choices.len() * width` with a width of at least 1, or `Error::Usage`.
    pub fn receive_rows(
        &mut self,
        channel: &mut Channel,
        width: usize,
        choices: &BitVec,
        out: &mut [u8],
    ) -> Result<()> {
        if width == 0 || choices.len().checked_mul(width) != Some(out.len()) {
            return Err(Error::Usage { protocol: "ot", what: "one choice bit a row" });
        }
        let mut other = Vec::new();
        let mut pads = Zeroizing::new(vec![Block::ZERO; choices.len().min(CHUNK)]);
        let mut run = || {
            for (start, rows) in (0..).step_by(CHUNK).zip(out.chunks_mut(CHUNK.saturating_mul(width))) {
                let pads = &mut pads[..rows.len() / width];
                self.chosen_pads(channel, choices, start, pads)?;
                for (j, (row, pad)) in rows.chunks_mut(width).zip(pads).enumerate() {
                    receive_string(channel, choices.get(start + j), *pad, row, &mut other)?;
                }
            }
            Ok(())
        };
        let result = run();
        result.inspect_err(|_| out.zeroize())
    }
}

/// Receives both masked strings of a pair, the second into `other`, and opens that of the choice in `string`.
fn receive_string(
    channel: &mut Channel,
    choice: bool,
    pad: Block,
    string: &mut [u8],
    other: &mut Vec<u8>,
) -> Result<()> {
    other.clear();
    other.resize(string.len(), 0);
    channel.recv(string)?;
    channel.recv(other)?;
    let take = Block::mask(choice).low() as u8;
    for (a, b) in string.iter_mut().zip(&*other) {
        *a ^= (*a ^ b) & take;
    }
    xor_pad(pad, string);
    Ok(())
}

/// XORs the pad in: the block itself up to 16 bytes, else the PRG stream that it seeds.
fn xor_pad(pad: Block, message: &mut [u8]) {
    if message.len() <= 16 {
        message.iter_mut().zip(pad.to_bytes()).for_each(|(m, p)| *m ^= p);
        return;
    }
    let mut prg = Prg::from_seed(pad);
    let mut stream = Zeroizing::new([0u8; 4096]);
    for piece in message.chunks_mut(4096) {
        let stream = &mut stream[..piece.len()];
        prg.fill_bytes(stream);
        piece.iter_mut().zip(stream).for_each(|(m, p)| *m ^= *p);
    }
}

impl<R: RotSender> OtSender for RotToOt<R> {
    fn send(&mut self, channel: &mut Channel, messages: &[[Block; 2]]) -> Result<()> {
        let mut pads = Zeroizing::new(vec![[Block::ZERO; 2]; messages.len().min(CHUNK)]);
        for messages in messages.chunks(CHUNK) {
            let pads = &mut pads[..messages.len()];
            self.pads(channel, pads)?;
            for (pads, pair) in pads.iter_mut().zip(messages) {
                pads[0] ^= pair[0];
                pads[1] ^= pair[1];
            }
            channel.send_blocks(pads.as_flattened())?;
        }
        channel.flush()?;
        Ok(())
    }
}

impl<R: RotReceiver> OtReceiver for RotToOt<R> {
    fn receive(&mut self, channel: &mut Channel, choices: &BitVec, out: &mut [Block]) -> Result<()> {
        if choices.len() != out.len() {
            return Err(Error::Usage { protocol: "ot", what: "one choice bit a message" });
        }
        let result = self.receive_blocks(channel, choices, out);
        result.inspect_err(|_| out.zeroize())
    }
}

impl<R: RotReceiver> RotToOt<R> {
    fn receive_blocks(&mut self, channel: &mut Channel, choices: &BitVec, out: &mut [Block]) -> Result<()> {
        let mut masked = [[Block::ZERO; 2]; 512];
        for (c, out) in out.chunks_mut(CHUNK).enumerate() {
            let start = c * CHUNK;
            self.chosen_pads(channel, choices, start, out)?;
            for (p, pads) in out.chunks_mut(masked.len()).enumerate() {
                let first = start + p * masked.len();
                let masked = &mut masked[..pads.len()];
                channel.recv_blocks(masked.as_flattened_mut())?;
                for (j, (pad, [zero, one])) in pads.iter_mut().zip(masked).enumerate() {
                    *pad ^= *zero ^ ((*zero ^ *one) & Block::mask(choices.get(first + j)));
                }
            }
        }
        Ok(())
    }
}
