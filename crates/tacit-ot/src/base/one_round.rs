//! Base OTs of one round: both messages cross, so that either party can send before it has heard anything.

use super::Run;
use crate::{BaseOt, Error, Extraction, Rest, Result, Security};
use tacit_crypto::{BitVec, Block, Prg};
use tacit_net::Channel;
use zeroize::{Zeroize, Zeroizing};

/// A protocol of two messages that do not wait for one another, malicious; that makes it a [`BaseOt`].
pub trait OneRound {
    /// The protocol's short name.
    const NAME: &'static str;
    /// When a malicious receiver's choice is extracted.
    const EXTRACTION: Extraction;
    /// Bytes of the sender's message, whatever the batch.
    const SENDER_BYTES: usize;
    /// Bytes of the receiver's message, for each OT.
    const RECEIVER_BYTES: usize;
    /// The sender between its message and its output.
    type Sender: Send + 'static;
    /// The receiver between its message and its output.
    type Receiver: Send + 'static;

    /// The sender's message.
    fn start_sender(run: &Run, prg: &mut Prg) -> (Self::Sender, Vec<u8>);
    /// The receiver's message; an error when `choices` does not have the batch's length.
    fn start_receiver(run: &Run, choices: &BitVec, prg: &mut Prg) -> Result<(Self::Receiver, Vec<u8>)>;
    /// The sender's output from the receiver's message; `out` is untouched on an error.
    fn finish_sender(sender: Self::Sender, from_receiver: &[u8], out: &mut [[Block; 2]]) -> Result<()>;
    /// The receiver's output from the sender's message; `out` is untouched on an error.
    fn finish_receiver(receiver: Self::Receiver, from_sender: &[u8], out: &mut [Block]) -> Result<()>;
}

/// Sends `message`, and leaves the peer's, `reply` bytes, and `finish` of it and `n` messages.
fn crossing<T: Clone + Send + Zeroize + 'static>(
    channel: &mut Channel,
    message: &[u8],
    reply: usize,
    n: usize,
    zero: T,
    finish: impl FnOnce(&[u8], &mut [T]) -> Result<()> + Send + 'static,
) -> Result<Rest<T>>
where
    Vec<T>: Zeroize,
{
    channel.send(message)?;
    Ok(Box::new(move |channel| {
        let (mut theirs, mut out) = (vec![0u8; reply], Zeroizing::new(vec![zero; n]));
        channel.recv(&mut theirs)?;
        finish(&theirs, &mut out)?;
        Ok(out)
    }))
}

impl<P: OneRound> BaseOt for P {
    fn name(&self) -> &'static str {
        P::NAME
    }

    fn security(&self) -> Security {
        Security::Malicious
    }

    fn extraction(&self) -> Extraction {
        P::EXTRACTION
    }

    fn bytes(&self, n: usize) -> Option<[usize; 2]> {
        Some([P::SENDER_BYTES, n * P::RECEIVER_BYTES])
    }

    fn send(&self, channel: &mut Channel, prg: &mut Prg, out: &mut [[Block; 2]]) -> Result<()> {
        out.copy_from_slice(&self.begin_send(channel, prg, out.len())?(channel)?);
        Ok(())
    }

    fn receive(
        &self,
        channel: &mut Channel,
        prg: &mut Prg,
        choices: &BitVec,
        out: &mut [Block],
    ) -> Result<()> {
        if choices.len() != out.len() {
            return Err(Error::Usage { protocol: P::NAME, what: "as many choices as messages are needed" });
        }
        out.copy_from_slice(&self.begin_receive(channel, prg, choices)?(channel)?);
        Ok(())
    }

    fn begin_send(&self, channel: &mut Channel, prg: &mut Prg, n: usize) -> Result<Rest<[Block; 2]>> {
        let (sender, message) = P::start_sender(&Run::sending(P::NAME, channel, n), prg);
        crossing(channel, &message, n * P::RECEIVER_BYTES, n, [Block::ZERO; 2], |reply, out| {
            P::finish_sender(sender, reply, out)
        })
    }

    fn begin_receive(&self, channel: &mut Channel, prg: &mut Prg, choices: &BitVec) -> Result<Rest<Block>> {
        let n = choices.len();
        let (receiver, message) = P::start_receiver(&Run::receiving(P::NAME, channel, n), choices, prg)?;
        crossing(channel, &message, P::SENDER_BYTES, n, Block::ZERO, |reply, out| {
            P::finish_receiver(receiver, reply, out)
        })
    }
}
