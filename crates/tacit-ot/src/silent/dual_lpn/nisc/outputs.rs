//! What random OTs leave on either side.

use tacit_crypto::{BitVec, Block};
use zeroize::{Zeroize, ZeroizeOnDrop};

/// The sender's half of the random OTs.
#[derive(Zeroize, ZeroizeOnDrop)]
pub struct SenderOutput {
    pub(super) messages: Vec<[Block; 2]>,
}

impl SenderOutput {
    /// The random messages.
    pub fn messages(&self) -> &[[Block; 2]] {
        &self.messages
    }
}

/// The receiver's half of the random OTs.
#[derive(Zeroize, ZeroizeOnDrop)]
pub struct ReceiverOutput {
    pub(super) choices: BitVec,
    pub(super) messages: Vec<Block>,
}

impl ReceiverOutput {
    /// The random choice bits, those of [`ReceiverKey::expand_in`](super::ReceiverKey::expand_in).
    pub fn choices(&self) -> &BitVec {
        &self.choices
    }

    /// The message of each choice.
    pub fn messages(&self) -> &[Block] {
        &self.messages
    }
}
