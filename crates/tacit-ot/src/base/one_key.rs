//! What base OTs from Diffie–Hellman with one key of the sender's a batch have in common: A = a·G, and pads
//! that hash multiples of group elements, both messages, the OT's index and its branch.

use super::{Oracle, Run};
use crate::Result;
use tacit_crypto::group::{Points, Scalars, Table};
use tacit_crypto::{BitVec, Block, Prg};
use zeroize::Zeroizing;

/// The sender's key a, and its message A.
pub(super) struct SenderKey {
    pub run: Run,
    pub public: Points,
    secret: Scalars,
    message: Vec<u8>,
}

impl SenderKey {
    /// A fresh key for this batch, and the message.
    pub(super) fn draw(run: &Run, prg: &mut Prg) -> (Self, Vec<u8>) {
        // proof: base-ot 2.1
        let secret = Scalars::random(1, prg);
        let public = Points::mul_base(&secret);
        let message = public.encode().concat();
        (SenderKey { run: run.clone(), public, secret, message: message.clone() }, message)
    }

    /// a times each of `points`.
    pub(super) fn multiples(&self, points: &Points) -> Points {
        points.mul_same(&self.secret)
    }

    /// The pads of this batch, whose hash binds both messages.
    pub(super) fn pads(&self, from_receiver: &[u8]) -> Oracle {
        // proof: base-ot 2.4, 4.3
        self.run.oracle_over("pad", &[&self.message, from_receiver])
    }
}

/// The receiver's secrets b_i, its choices and its message.
pub(super) struct ReceiverKeys {
    run: Run,
    secrets: Scalars,
    choices: BitVec,
    message: Vec<u8>,
}

impl ReceiverKeys {
    pub(super) fn new(run: &Run, secrets: Scalars, choices: &BitVec, message: &[u8]) -> Self {
        ReceiverKeys { run: run.clone(), secrets, choices: choices.clone(), message: message.to_vec() }
    }

    /// The messages: hashes of b_i·A.
    ///
    /// Errors when `from_sender` is not one canonical group element; `out` is untouched then.
    pub(super) fn finish(&self, from_sender: &[u8], out: &mut [Block]) -> Result<()> {
        self.run.expect_buffer(out.len())?;
        let big_a = self.run.decode(from_sender, 1)?;
        let pads = self.run.oracle_over("pad", &[from_sender, &self.message]);
        let keys = Zeroizing::new(Table::new(&big_a, self.run.len()).mul(&self.secrets).encode());
        for (i, (out, key)) in out.iter_mut().zip(keys.iter()).enumerate() {
            *out = pads.block(i, self.choices.get(i) as u8, key);
        }
        Ok(())
    }
}
