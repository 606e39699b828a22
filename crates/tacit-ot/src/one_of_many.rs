//! Random 1-out-of-p OT for p = 2, 4, 16 and 256 by the paper's generator (BCGIKRS19, figure 4): subfield
//! VOLE with u in the field of p elements, of which every OT takes one correlation.
//!
//! The sender's message x is H(i, v + x·Δ), the receiver's H(i, w) that of its choice u. H is MITCCRH with
//! one gid an OT, under which the receiver does not know p − 1 inputs. As secure as the VOLE, in the
//! ideal-cipher model (`docs/proofs/vole.md`, 4.7); traffic is that of the VOLE and 16 bytes at setup.

use crate::silent::bcgikrs19::{Code, Config, SilentReceiver, SilentSender};
use crate::vole::subfield::{Subfield, SubfieldReceiver, SubfieldSender};
use crate::{BaseOt, Error, Result, Security, VoleReceiver, VoleSender};
use tacit_crypto::hash::Mitccrh;
use tacit_crypto::transcript::Transcript;
use tacit_crypto::{Block, Prg, gf128};
use tacit_net::{Channel, Party};
use zeroize::{Zeroize, Zeroizing};

const NAME: &str = "1-out-of-p ot";
/// OTs hashed together.
const BATCH: usize = 256;

/// The fields of p elements, with the hash of a session and the number of the next OT.
struct Core {
    field: Subfield,
    hash: Mitccrh,
    next: u64,
}

fn field(p: usize) -> Result<Subfield> {
    let field = if p.is_power_of_two() { Subfield::new(p.ilog2() as usize) } else { None };
    field.ok_or(Error::Usage { protocol: NAME, what: "p must be 2, 4, 16 or 256" })
}

impl Core {
    fn new(channel: &Channel, field: Subfield, sends: bool, salt: Block) -> Self {
        let mut transcript = Transcript::new("tacit one-of-many ot v2");
        transcript.append("session", &channel.session_id().0);
        transcript.append_u64("sender", ((channel.party() == Party::First) == sends) as u64);
        transcript.append_u64("p", field.size() as u64);
        transcript.append_blocks("salt", &[salt]);
        Core { field, hash: Mitccrh::new(transcript.challenge_block("mitccrh start")), next: 0 }
    }

    fn take(&mut self, count: usize) -> u64 {
        let first = self.next;
        self.next += count as u64;
        first
    }
}

fn code(security: Security) -> Config {
    Config { code: Code::Linear, security }
}

/// The sender of random 1-out-of-p OT.
pub struct OneOfManySender {
    core: Core,
    vole: Box<dyn VoleSender<Block> + Send>,
}

enum ReceiverVole {
    Two(Box<SilentReceiver>),
    More(Box<SubfieldReceiver>),
}

/// The receiver of random 1-out-of-p OT.
pub struct OneOfManyReceiver {
    core: Core,
    vole: ReceiverVole,
}

impl OneOfManySender {
    /// Sets up from a base OT, in which this side receives 128. `Error::Usage` unless `p` is 2, 4, 16 or 256.
    pub fn setup(
        channel: &mut Channel,
        base: &dyn BaseOt,
        prg: &mut Prg,
        p: usize,
        security: Security,
    ) -> Result<Self> {
        let field = field(p)?;
        let vole: Box<dyn VoleSender<Block> + Send> = match p {
            2 => Box::new(SilentSender::setup(channel, base, prg, code(security))?),
            _ => Box::new(SubfieldSender::setup(channel, base, prg, field, security)?),
        };
        let salt = prg.block();
        channel.send_block(salt)?;
        channel.flush()?;
        Ok(OneOfManySender { core: Core::new(channel, field, true, salt), vole })
    }

    /// Number of messages of an OT.
    pub fn messages(&self) -> usize {
        self.core.field.size()
    }

    /// Makes `out.len() / p` OTs of p random messages each. `Error::Usage` unless p divides; nothing is left
    /// on an error.
    pub fn send(&mut self, channel: &mut Channel, out: &mut [Block]) -> Result<()> {
        let p = self.messages();
        if !out.len().is_multiple_of(p) {
            return Err(Error::Usage { protocol: NAME, what: "the buffer must hold p messages an OT" });
        }
        let mut at = 0;
        let sent = self.send_each(channel, out.len() / p, |messages| {
            out[at..at + messages.len()].copy_from_slice(messages);
            at += messages.len();
            Ok(())
        });
        sent.inspect_err(|_| out.zeroize())
    }

    /// Makes `count` OTs of p random messages each, as one run of VOLE, and hands the messages on, those of some OTs at
    /// a time. An error of `each` ends it.
    pub fn send_each<E: From<Error>>(
        &mut self,
        channel: &mut Channel,
        count: usize,
        mut each: impl FnMut(&[Block]) -> core::result::Result<(), E>,
    ) -> core::result::Result<(), E> {
        let p = self.messages();
        let mut v = Zeroizing::new(vec![Block::ZERO; count]);
        self.vole.extend(channel, &mut v)?;
        let delta = self.vole.delta();
        let mut first = self.core.take(count);
        let mut rows = Zeroizing::new([Block::ZERO; BATCH]);
        let mut pairs = Zeroizing::new([[Block::ZERO; 2]; BATCH]);
        let mut messages = Zeroizing::new(vec![Block::ZERO; BATCH.min(count) * p]);
        for v in v.chunks(BATCH) {
            let (rows, pairs) = (&mut rows[..v.len()], &mut pairs[..v.len()]);
            let messages = &mut messages[..v.len() * p];
            // Elements x and x + 1 differ by one, so their messages are those of a correlated OT.
            for x in (0..p).step_by(2) {
                let offset = gf128::mul(self.core.field.embed(x as u8), delta);
                for (row, v) in rows.iter_mut().zip(v) {
                    *row = *v ^ offset;
                }
                self.core.hash.cot_to_rot_sender(first, delta, rows, pairs);
                for (out, pair) in messages.chunks_mut(p).zip(&*pairs) {
                    out[x..x + 2].copy_from_slice(pair);
                }
            }
            each(messages)?;
            first += v.len() as u64;
        }
        Ok(())
    }
}

impl OneOfManyReceiver {
    /// Sets up from a base OT, in which this side sends 128. `Error::Usage` unless `p` is 2, 4, 16 or 256.
    pub fn setup(
        channel: &mut Channel,
        base: &dyn BaseOt,
        prg: &mut Prg,
        p: usize,
        security: Security,
    ) -> Result<Self> {
        let field = field(p)?;
        let vole = match p {
            2 => ReceiverVole::Two(Box::new(SilentReceiver::setup(channel, base, prg, code(security))?)),
            _ => ReceiverVole::More(Box::new(SubfieldReceiver::setup(channel, base, prg, field, security)?)),
        };
        let salt = channel.recv_block()?;
        Ok(OneOfManyReceiver { core: Core::new(channel, field, false, salt), vole })
    }

    /// Number of messages of an OT.
    pub fn messages(&self) -> usize {
        self.core.field.size()
    }

    /// Makes `out.len()` OTs; returns the random choices, `out[i]` being the message of choice `i`.
    pub fn receive(&mut self, channel: &mut Channel, out: &mut [Block]) -> Result<Zeroizing<Vec<u8>>> {
        let mut w = Zeroizing::new(vec![Block::ZERO; out.len()]);
        let mut choices = Zeroizing::new(vec![0u8; out.len()]);
        match &mut self.vole {
            ReceiverVole::Two(vole) => {
                let mut bits = Zeroizing::new(vec![false; out.len()]);
                vole.extend(channel, &mut bits, &mut w)?;
                for (choice, bit) in choices.iter_mut().zip(bits.iter()) {
                    *choice = (*bit).into();
                }
            }
            ReceiverVole::More(vole) => vole.extend(channel, &mut choices, &mut w)?,
        }
        let first = self.core.take(out.len());
        self.core.hash.cot_to_rot_receiver(first, &w, out);
        Ok(choices)
    }
}
