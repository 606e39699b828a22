//! Reverse VOLE with chosen inputs (BCGIKRS19, figure 8), from random OT by Gilboa's product (CRYPTO '99).
//!
//! The sender puts in x, the receiver y_1 … y_n; the sender gets random b_j, the receiver c_j with b_j + c_j
//! = x·y_j. Semi-honest: a malicious sender could take another x for each bit. One random OT a bit of every
//! y_j; an eighth of a byte a bit from the receiver, then an element (16 bytes) a bit from the sender.

use crate::convert::{chosen_messages, chosen_pairs};
use crate::{Error, Result, RotReceiver, RotSender};
use tacit_crypto::field::Field;
use tacit_crypto::{BitVec, Block};
use tacit_net::Channel;
use zeroize::Zeroize;

const NAME: &str = "reverse vole";

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
