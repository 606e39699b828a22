//! Reverse VOLE with chosen inputs (BCGIKRS19, figure 8), from random OT by Gilboa's product (CRYPTO '99).
//!
//! The sender puts in x, the receiver y_1 … y_n; the sender gets random b_j, the receiver c_j with b_j + c_j = x·y_j. Semi-honest:
//! a malicious sender could take another x for each bit. One random OT a bit of every y_j; an eighth of a byte a
//! bit from the receiver, then an element (16 bytes) a bit from the sender.

use crate::{Error, Result, RotReceiver, RotSender};
use tacit_crypto::field::Field;
use tacit_crypto::{BitVec, Block};
use tacit_net::Channel;
use zeroize::{Zeroize, Zeroizing};

const NAME: &str = "reverse vole";

/// Random OTs swapped so that the receiver holds the message of its chosen bit: the sender's side. Also returns the bits that
/// the receiver sent for it.
pub(crate) fn chosen_pairs(
    channel: &mut Channel,
    rot: &mut dyn RotSender,
    n: usize,
) -> Result<(Zeroizing<Vec<[Block; 2]>>, BitVec)> {
    let mut pairs = Zeroizing::new(vec![[Block::ZERO; 2]; n]);
    rot.extend(channel, &mut pairs)?;
    let mut bits = vec![0; n.div_ceil(8)];
    channel.recv(&mut bits)?;
    let bits = BitVec::from_bytes(&bits, n);
    swap(&mut pairs, &bits);
    Ok((pairs, bits))
}

/// Swaps the pairs whose bit is set.
pub(crate) fn swap(pairs: &mut [[Block; 2]], bits: &BitVec) {
    for (i, pair) in pairs.iter_mut().enumerate() {
        let swap = (pair[0] ^ pair[1]) & Block::mask(bits.get(i));
        pair[0] ^= swap;
        pair[1] ^= swap;
    }
}

/// The receiver's side of [`chosen_pairs`].
pub(crate) fn chosen_messages(
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

/// The sender, with input `x`; fills `b`.
pub fn send<F: Field>(channel: &mut Channel, rot: &mut dyn RotSender, x: F, b: &mut [F]) -> Result<()> {
    let (pairs, _) = chosen_pairs(channel, rot, b.len() * F::BITS)?;
    let mut message = Vec::with_capacity(pairs.len());
    for (b, pairs) in b.iter_mut().zip(pairs.chunks(F::BITS)) {
        *b = F::ZERO;
        let mut power = x;
        for [zero, one] in pairs {
            let zero = F::from_block(*zero);
            message.push((zero + power - F::from_block(*one)).to_block());
            *b = *b - zero;
            power = power + power;
        }
    }
    channel.send_blocks(&message)?;
    channel.flush()?;
    Ok(())
}

/// The receiver, with inputs `y`; fills `c`. `Error::Malformed` when the peer sends what is no field element.
pub fn receive<F: Field>(
    channel: &mut Channel,
    rot: &mut dyn RotReceiver,
    y: &[F],
    c: &mut [F],
) -> Result<()> {
    if y.len() != c.len() {
        return Err(Error::Usage { protocol: NAME, what: "as many inputs as outputs" });
    }
    let mut choices = BitVec::zeros(y.len() * F::BITS);
    for (i, y) in y.iter().enumerate() {
        for bit in 0..F::BITS {
            choices.set(i * F::BITS + bit, y.to_block().bit(bit));
        }
    }
    let (messages, _) = chosen_messages(channel, rot, &choices)?;
    let mut corrections = vec![Block::ZERO; messages.len()];
    channel.recv_blocks(&mut corrections)?;
    for (j, c) in c.iter_mut().enumerate() {
        *c = F::ZERO;
        for i in j * F::BITS..(j + 1) * F::BITS {
            let correction = F::from_canonical(corrections[i])
                .ok_or(Error::Malformed { protocol: NAME, what: "a number beyond the field" })?;
            *c = *c + F::from_block(messages[i]) + correction.masked(Block::mask(choices.get(i)));
        }
    }
    corrections.zeroize();
    Ok(())
}
