//! [`Run`]: what every hash of one batch binds, and the random oracles derived from it.

use crate::{Error, Result};
use tacit_crypto::Block;
use tacit_crypto::group::{DecodeError, POINT_BYTES, Points, UNIFORM_BYTES, is_identity_encoding};
use tacit_net::{Channel, Party, SessionId};

/// Version of the base OTs' wire format and hashes; part of every hash.
const VERSION: u64 = 1;

/// One batch of one protocol: its session, direction, number within the session, and size.
///
/// Every random oracle of the batch is derived from it, so no two batches share one.
#[derive(Clone, Debug)]
pub struct Run {
    protocol: &'static str,
    len: usize,
    key: [u8; 32],
}

impl Run {
    /// The batch of `len` OTs of `protocol` that `sender` sends as run number `instance` of `session`.
    ///
    /// `instance` never repeats within a session and a direction; both parties give the same.
    pub fn new(protocol: &'static str, session: SessionId, sender: Party, instance: u64, len: usize) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key("tacit 2026 base ot run v1");
        hasher.update(&session.0);
        hasher.update(&(protocol.len() as u64).to_le_bytes());
        hasher.update(protocol.as_bytes());
        let direction = match sender {
            Party::First => 1u64,
            Party::Second => 2,
        };
        for number in [VERSION, direction, instance, len as u64] {
            hasher.update(&number.to_le_bytes());
        }
        Run { protocol, len, key: *hasher.finalize().as_bytes() }
    }

    /// The next run of `channel`, this end being the OT's sender.
    pub fn sending(protocol: &'static str, channel: &mut Channel, len: usize) -> Self {
        let instance = channel.next_instance();
        Self::new(protocol, channel.session_id(), channel.party(), instance, len)
    }

    /// The next run of `channel`, this end being the OT's receiver.
    pub fn receiving(protocol: &'static str, channel: &mut Channel, len: usize) -> Self {
        let instance = channel.next_instance();
        let peer = match channel.party() {
            Party::First => Party::Second,
            Party::Second => Party::First,
        };
        Self::new(protocol, channel.session_id(), peer, instance, len)
    }

    /// Number of OTs in the batch.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the batch is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The batch's random oracle for the purpose named by `label`.
    pub fn oracle(&self, label: &str) -> Oracle {
        self.oracle_over(label, &[])
    }

    /// The batch's random oracle for `label`, which also binds `messages`: those exchanged so far, in order.
    pub fn oracle_over(&self, label: &str, messages: &[&[u8]]) -> Oracle {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        for part in std::iter::once(label.as_bytes()).chain(messages.iter().copied()) {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        Oracle { key: *hasher.finalize().as_bytes() }
    }

    /// Decodes exactly `n` group elements of a peer's message; refuses the identity.
    pub fn decode(&self, bytes: &[u8], n: usize) -> Result<Points> {
        self.expect_len(bytes, n * POINT_BYTES)?;
        let points = Points::decode(bytes).map_err(|e| match e {
            DecodeError::Length(_) => self.malformed("its length is not that of the batch"),
            _ => self.malformed("not a canonical group element"),
        })?;
        // proof: base-ot 2.3
        if bytes.as_chunks::<POINT_BYTES>().0.iter().any(is_identity_encoding) {
            return Err(self.malformed("the group's identity where none may stand"));
        }
        Ok(points)
    }

    /// Checks a message's length.
    pub fn expect_len(&self, bytes: &[u8], expected: usize) -> Result<()> {
        if bytes.len() == expected {
            Ok(())
        } else {
            Err(self.malformed("its length is not that of the batch"))
        }
    }

    /// Checks that the caller's buffer holds the batch.
    pub fn expect_buffer(&self, len: usize) -> Result<()> {
        if len == self.len {
            Ok(())
        } else {
            Err(Error::Usage {
                protocol: self.protocol,
                what: "the buffer or the choice bits do not have the batch's length",
            })
        }
    }

    /// The error for a peer's message of the wrong form.
    pub fn malformed(&self, what: &'static str) -> Error {
        Error::Malformed { protocol: self.protocol, what }
    }

    /// The error for a failed check.
    pub fn cheated(&self, what: &'static str) -> Error {
        Error::Cheated { protocol: self.protocol, what }
    }
}

/// A random oracle of one purpose of one [`Run`]; each query binds the OT's index and a branch (which of its
/// two messages).
#[derive(Clone)]
pub struct Oracle {
    key: [u8; 32],
}

impl Oracle {
    /// Fills `out` with the oracle's answer. Constant-time in everything but lengths.
    pub fn fill(&self, index: usize, branch: u8, data: &[u8], out: &mut [u8]) {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        hasher.update(&(index as u64).to_le_bytes());
        hasher.update(&[branch]);
        hasher.update(data);
        hasher.finalize_xof().fill(out);
    }

    /// The oracle's answer as one block.
    pub fn block(&self, index: usize, branch: u8, data: &[u8]) -> Block {
        let mut out = [0u8; 16];
        self.fill(index, branch, data, &mut out);
        Block::from_bytes(out)
    }

    /// The oracle's answer as the bytes that [`Points::from_uniform`] maps to a group element.
    pub fn uniform(&self, index: usize, branch: u8, data: &[u8]) -> [u8; UNIFORM_BYTES] {
        let mut out = [0u8; UNIFORM_BYTES];
        self.fill(index, branch, data, &mut out);
        out
    }
}

impl core::fmt::Debug for Oracle {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Oracle")
    }
}
