//! Uniform random OT from standard OT (ROTed, figure 2).
//!
//! Realises: random OT with uniform messages and uniform choice bits, whoever cheats. Security: malicious,
//! universally composable, if the OT beneath is. ROTed says that the transform does not apply to random OTs
//! of the endemic kind; it is therefore run on *standard* OT, which [`standard`] makes of them. Protocols
//! that are not composable, or whose sender may guess choice bits, or that extract the receiver's bit late
//! ([`Extraction::Late`]), are refused, unless the peer is only semi-honest. Rounds: the standard OT's, with
//! the commitment before it and the sender's bits in its last message, and one message more. Bytes: 64 and 32
//! an OT to the sender, 32 and 1/8 an OT to the receiver, beside the base OT.
//!
//! What the proof needs: the receiver is bound to r before it sees anything of the sender's messages, so it
//! biases none; the sender fixes its messages by the OT before r is opened; the choice bit b is fixed by the
//! OT before the sender's c is known. The simulator has to know it there: it picks c such that b ⊕ c is the
//! functionality's bit. Deviation: one commitment for the whole batch, since all of it is opened at once.

use super::standard;
use tacit_crypto::commit::{Commitment, Opening, commit, verify};
use tacit_crypto::{BitVec, Block, Prg};
use tacit_net::Channel;
use tacit_ot::base::Run;
use tacit_ot::{BaseOt, Error, Extraction, Functionality, Result, RotReceiver, RotSender, Security};
use zeroize::Zeroizing;

/// The transform's short name.
pub const NAME: &str = "rot-from-ot";

const COMMITMENT_BYTES: usize = 32;
const OPENING_BYTES: usize = 32;

fn check(ot: &dyn BaseOt, security: Security) -> Result<()> {
    let composable =
        !matches!(ot.functionality(), Functionality::Standalone | Functionality::SelectiveFailure);
    if security == Security::SemiHonest {
        Ok(())
    } else if !composable || ot.security() != Security::Malicious {
        Err(Error::Usage { protocol: NAME, what: "the transform needs a composable, malicious base OT" })
    } else if ot.extraction() != Extraction::Early {
        let what = "the transform needs a base OT that extracts the receiver's choice early: take mrr21";
        Err(Error::Usage { protocol: NAME, what })
    } else {
        Ok(())
    }
}

fn context(run: &Run) -> [u8; 32] {
    let mut context = [0u8; 32];
    run.oracle("commitment").fill(0, 0, b"", &mut context);
    context
}

/// The sender of uniform random OT. Each call of `extend` is a batch of its own.
pub struct Sender {
    ot: Box<dyn BaseOt + Send + Sync>,
    prg: Prg,
}

impl Sender {
    /// A sender over `ot`; errors when with it the transform does not give `security`.
    pub fn new(ot: Box<dyn BaseOt + Send + Sync>, security: Security, prg: Prg) -> Result<Self> {
        check(&*ot, security)?;
        Ok(Sender { ot, prg })
    }
}

impl RotSender for Sender {
    fn extend(&mut self, channel: &mut Channel, out: &mut [[Block; 2]]) -> Result<()> {
        let n = out.len();
        let run = Run::sending(NAME, channel, n);
        // Fig. 2: the receiver's commitment to its strings.
        let mut commitment = Commitment([0; COMMITMENT_BYTES]);
        channel.recv(&mut commitment.0)?;
        // Fig. 2: standard OT of random messages.
        let mut messages = Zeroizing::new(vec![[Block::ZERO; 2]; n]);
        self.prg.fill_blocks(messages.as_flattened_mut());
        standard::send(&*self.ot, channel, &mut self.prg, &messages)?;
        // Fig. 2: the sender's bits, then the receiver's opening.
        let flips = BitVec::random(n, &mut self.prg);
        channel.send(flips.as_bytes())?;
        let mut opening = Opening([0; OPENING_BYTES]);
        let mut strings = vec![[Block::ZERO; 2]; n];
        channel.recv(&mut opening.0)?;
        channel.recv_blocks(strings.as_flattened_mut())?;
        let opened = Block::as_bytes(strings.as_flattened());
        if !verify(&context(&run), opened, &commitment, &opening) {
            return Err(run.cheated("the receiver opened another string than it committed to"));
        }
        // Fig. 2: outputs, swapped where the sender's bit is 1.
        for (i, out) in out.iter_mut().enumerate() {
            let zero = messages[i][0] ^ strings[i][0];
            let one = messages[i][1] ^ strings[i][1];
            let swap = (zero ^ one) & Block::mask(flips.get(i));
            *out = [zero ^ swap, one ^ swap];
        }
        Ok(())
    }
}

/// The receiver of uniform random OT. Each call of `extend` is a batch of its own.
pub struct Receiver {
    ot: Box<dyn BaseOt + Send + Sync>,
    prg: Prg,
}

impl Receiver {
    /// A receiver over `ot`; errors as for [`Sender::new`].
    pub fn new(ot: Box<dyn BaseOt + Send + Sync>, security: Security, prg: Prg) -> Result<Self> {
        check(&*ot, security)?;
        Ok(Receiver { ot, prg })
    }
}

impl RotReceiver for Receiver {
    fn extend(&mut self, channel: &mut Channel, out: &mut [Block]) -> Result<BitVec> {
        let n = out.len();
        let run = Run::receiving(NAME, channel, n);
        // Fig. 2: two random strings an OT, and a commitment to them.
        let mut strings = Zeroizing::new(vec![[Block::ZERO; 2]; n]);
        self.prg.fill_blocks(strings.as_flattened_mut());
        let bytes = Block::as_bytes(strings.as_flattened());
        let (commitment, opening) = commit(&context(&run), bytes, &mut self.prg);
        channel.send(&commitment.0)?;
        // Fig. 2: standard OT with random choices.
        let mut choices = BitVec::random(n, &mut self.prg);
        let mut received = Zeroizing::new(vec![Block::ZERO; n]);
        standard::receive(&*self.ot, channel, &mut self.prg, &choices, &mut received)?;
        // Fig. 2: the sender's bits, then the opening.
        let mut flips = vec![0u8; n.div_ceil(8)];
        channel.recv(&mut flips)?;
        let flips = BitVec::from_bytes(&flips, n);
        channel.send(&opening.0)?;
        channel.send_blocks(strings.as_flattened())?;
        channel.flush()?;
        // Fig. 2: outputs.
        for (i, out) in out.iter_mut().enumerate() {
            let [zero, one] = strings[i];
            *out = received[i] ^ zero ^ ((zero ^ one) & Block::mask(choices.get(i)));
        }
        choices.xor_assign(&flips);
        Ok(choices)
    }
}
