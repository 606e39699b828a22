//! Standard 1-out-of-2 OT on chosen blocks from any base OT: the random messages pad the chosen ones.
//!
//! Realises: OT on chosen messages, with the base OT's security. It does not matter that the base OT may let
//! parties bias random messages (Masny–Rindal, 2019/706, section 4): a sender chooses its messages anyway,
//! and a receiver's influence on the pad of the message it gets hides nothing that it should not learn.
//! Bytes: 32 an OT more; the sender's last message.

use tacit_crypto::{BitVec, Block, Prg};
use tacit_net::Channel;
use tacit_ot::{BaseOt, Result};
use zeroize::Zeroizing;

/// Sends one of each pair of `messages`.
pub fn send(ot: &dyn BaseOt, channel: &mut Channel, prg: &mut Prg, messages: &[[Block; 2]]) -> Result<()> {
    let mut padded = Zeroizing::new(vec![[Block::ZERO; 2]; messages.len()]);
    ot.send(channel, prg, &mut padded)?;
    for (pad, message) in padded.as_flattened_mut().iter_mut().zip(messages.as_flattened()) {
        *pad ^= *message;
    }
    channel.send_blocks(padded.as_flattened())?;
    Ok(channel.flush()?)
}

/// Receives the message of each choice: `out[i]` becomes the sender's `messages[i][choices[i]]`.
///
/// Errors when `choices.len() != out.len()`.
pub fn receive(
    ot: &dyn BaseOt,
    channel: &mut Channel,
    prg: &mut Prg,
    choices: &BitVec,
    out: &mut [Block],
) -> Result<()> {
    let mut pads = Zeroizing::new(vec![Block::ZERO; out.len()]);
    ot.receive(channel, prg, choices, &mut pads)?;
    let mut padded = vec![[Block::ZERO; 2]; out.len()];
    channel.recv_blocks(padded.as_flattened_mut())?;
    for (i, (out, pair)) in out.iter_mut().zip(&padded).enumerate() {
        let chosen = pair[0] ^ ((pair[0] ^ pair[1]) & Block::mask(choices.get(i)));
        *out = chosen ^ pads[i];
    }
    Ok(())
}
