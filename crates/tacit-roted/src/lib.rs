//! ROTed: random oblivious transfer from (module) ring learning with errors, from message to message.
//!
//! The crate is `no_std` with `alloc` (turn the feature `std` off), holds no table over 8 KiB, and runs one
//! transfer in some tens of KiB, so that small devices can take part; `tacit-ot` runs the same code over its
//! channels.
//!
//! - [`roted`]: the protocol, with the repair that its figure needs.
//! - [`exchange`]: the key exchange under it, which BDGM19 shares.
//! - [`set`]: parameter sets, and the probability that the two sides disagree.
//!
//! ```
//! use tacit_crypto::Block;
//! use tacit_crypto::ring::XofBlocks;
//! use tacit_roted::roted::{Choices, Receiver, Sender};
//! use tacit_roted::{Instance, Role, set};
//!
//! // Seeds must come from a true random source; a test may take constants.
//! let (mut sender_random, mut receiver_random) = (XofBlocks::new(&[1; 32]), XofBlocks::new(&[2; 32]));
//! let for_sender = Instance::new(&set::MODULE, "example", b"session", Role::Sender);
//! let for_receiver = Instance::new(&set::MODULE, "example", b"session", Role::Receiver);
//!
//! let (mut m1, mut m2, mut m3) = (vec![], vec![], vec![]);
//! let receiver = Receiver::offer(&for_receiver, Choices::Random, 1, &mut receiver_random, &mut m1);
//! let sender = Sender::answer(&for_sender, Choices::Random.mode(), 1, &m1, &mut sender_random, &mut m2)?;
//! let mut received = [Block::ZERO];
//! let choices = receiver.open(&for_receiver, &m2, &mut receiver_random, &mut received, &mut m3)?;
//! let mut sent = [[Block::ZERO; 2]];
//! sender.finish(&for_sender, &m3, &mut sent)?;
//! assert!(received[0] == sent[0][choices[0] as usize]);
//! # Ok::<(), tacit_roted::Error>(())
//! ```
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod exchange;
mod instance;
pub mod roted;
pub mod set;

pub use instance::{Instance, Role};

/// What the peer did wrong. Never contains a secret.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Error {
    /// A message is not of the protocol's form.
    Malformed(&'static str),
    /// A check failed: the peer deviated from the protocol.
    Cheated(&'static str),
}

impl core::fmt::Display for Error {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Error::Malformed(what) => write!(f, "malformed message: {what}"),
            Error::Cheated(what) => write!(f, "the peer cheated: {what}"),
        }
    }
}

impl core::error::Error for Error {}

impl From<tacit_crypto::ring::MalformedPoly> for Error {
    fn from(_: tacit_crypto::ring::MalformedPoly) -> Self {
        Error::Malformed("a polynomial with a coefficient out of range")
    }
}
