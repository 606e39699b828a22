//! NISC's messages over a channel: OT in two messages.

use super::{Code, HEADER, Header, Kind, NAME, Params, Parties, ReceiverKey, SenderKey, open};
use crate::{Error, OtReceiver, OtSender, Result, RotReceiver, RotSender, Security};
use tacit_crypto::{BitVec, Block, Prg};
use tacit_net::{Channel, Party};

/// The two-message protocols over a channel, for either role: random OT, and OT on chosen blocks with chosen
/// bits.
///
/// Every call is a run of its own, with base OTs; the first message goes from the receiver to the sender.
/// Figures 10 and 17.
pub struct TwoRound {
    code: Code,
    security: Security,
    prg: Prg,
}

impl TwoRound {
    /// Both parties give the same code and security.
    pub fn new(code: Code, security: Security, prg: &mut Prg) -> Self {
        TwoRound { code, security, prg: prg.fork() }
    }

    /// What the channel adds to all hashes: its session, which end receives, and the number of the run.
    fn context(channel: &mut Channel, receives: bool) -> Vec<u8> {
        let mut context = channel.session_id().0.to_vec();
        context.push(((channel.party() == Party::First) == receives) as u8);
        context.extend_from_slice(&channel.next_instance().to_le_bytes());
        context
    }

    fn params(&self, count: usize) -> Params {
        Params { code: self.code, security: self.security, count }
    }

    /// Receives a key of the parameters at hand.
    fn receive_key(&self, channel: &mut Channel, count: usize) -> Result<Vec<u8>> {
        let params = self.params(count).check()?;
        let key = channel.recv_sized(params.public_key_len())?;
        let (header, _) = Header::read(&key, Kind::PublicKey)?;
        if header.params != params {
            return Err(Error::mismatch(NAME));
        }
        Ok(key)
    }
}

impl RotSender for TwoRound {
    fn extend(&mut self, channel: &mut Channel, out: &mut [[Block; 2]]) -> Result<()> {
        if out.is_empty() {
            return Ok(());
        }
        let context = Self::context(channel, false);
        let key = self.receive_key(channel, out.len())?;
        let (secret, answer) = SenderKey::answer(&key, &context, &Parties::default(), &mut self.prg)?;
        channel.send_sized(&answer)?;
        channel.flush()?;
        out.copy_from_slice(secret.expand(&key, &context)?.messages());
        Ok(())
    }
}

impl RotReceiver for TwoRound {
    fn extend(&mut self, channel: &mut Channel, out: &mut [Block]) -> Result<BitVec> {
        if out.is_empty() {
            return Ok(BitVec::default());
        }
        let params = self.params(out.len());
        let context = Self::context(channel, true);
        let (secret, key) = ReceiverKey::generate(params, &context, None, &mut self.prg)?;
        channel.send_sized(&key)?;
        channel.flush()?;
        let output = secret.expand_out(&channel.recv_sized(params.answer_len())?, None)?;
        out.copy_from_slice(output.messages());
        Ok(output.choices().clone())
    }
}

impl OtSender for TwoRound {
    fn send(&mut self, channel: &mut Channel, messages: &[[Block; 2]]) -> Result<()> {
        if messages.is_empty() {
            return Ok(());
        }
        let context = Self::context(channel, false);
        let key = self.receive_key(channel, messages.len())?;
        let question = channel.recv_sized(HEADER + messages.len().div_ceil(8))?;
        let (secret, answer) = SenderKey::answer(&key, &context, &Parties::default(), &mut self.prg)?;
        let reply = secret.reply(&key, &context, &question, messages)?;
        channel.send_sized(&answer)?;
        channel.send_sized(&reply)?;
        channel.flush()?;
        Ok(())
    }
}

impl OtReceiver for TwoRound {
    fn receive(&mut self, channel: &mut Channel, choices: &BitVec, out: &mut [Block]) -> Result<()> {
        if choices.len() != out.len() {
            return Err(Error::Usage { protocol: NAME, what: "one choice bit an OT" });
        }
        if out.is_empty() {
            return Ok(());
        }
        let params = self.params(out.len());
        let context = Self::context(channel, true);
        let (secret, key) = ReceiverKey::generate(params, &context, None, &mut self.prg)?;
        let question = secret.ask(choices)?;
        channel.send_sized(&key)?;
        channel.send_sized(&question)?;
        channel.flush()?;
        let answer = channel.recv_sized(params.answer_len())?;
        let reply = channel.recv_sized(params.reply_len())?;
        let asked = secret.receive(&answer, None, &question)?;
        out.copy_from_slice(&open(&asked, choices, &reply)?);
        Ok(())
    }
}
