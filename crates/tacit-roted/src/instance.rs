//! What the parties of a session share before the first message: the hash key and the public matrix.

use crate::set::Set;
use alloc::boxed::Box;
use tacit_crypto::ring::{Poly, Vector};
use zeroize::Zeroize;

/// The two ends of a transfer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// Ends with both messages.
    Sender,
    /// Ends with one message and its place.
    Receiver,
}

/// Domain separation of the random oracles, all keyed by the session.
#[derive(Clone, Copy)]
#[repr(u8)]
pub(crate) enum Oracle {
    Matrix,
    Offset,
    Commitment,
    Transcript,
    Pad,
}

/// A parameter set in one session: the key of all hashes, and the public m, which is a matrix of rank K.
///
/// Both ends must be made with the same set, protocol and binding.
pub struct Instance<const N: usize, const K: usize> {
    pub(crate) set: Set<N, K>,
    key: [u8; 32],
    /// Row j holds what output j is made of; the sender's is the transpose of the receiver's.
    pub(crate) matrix: Box<[Vector<N, K>; K]>,
}

impl<const N: usize, const K: usize> Instance<N, K> {
    /// The instance of `set` for `protocol` (name and version) in the session that `binding` names, which
    /// must say the session id and who sends.
    pub fn new(set: &Set<N, K>, protocol: &str, binding: &[u8], role: Role) -> Self {
        // proof: roted 2.1
        let mut hasher = blake3::Hasher::new_derive_key("tacit 2026 roted v1");
        for part in [protocol.as_bytes(), set.name.as_bytes(), binding] {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        let key = *hasher.finalize().as_bytes();
        let mut drawn = Box::new([const { Vector::ZERO }; K]);
        let mut reader = oracle(&key, Oracle::Matrix, 0, &[]).finalize_xof();
        for row in drawn.iter_mut() {
            set.ring.uniform(&mut reader, &mut row.0);
        }
        if role == Role::Sender {
            for i in 0..K {
                for j in 0..i {
                    let (above, below) = drawn.split_at_mut(i);
                    core::mem::swap(&mut above[j].0[i], &mut below[0].0[j]);
                }
            }
        }
        Instance { set: *set, key, matrix: drawn }
    }

    /// The parameter set.
    pub fn set(&self) -> &Set<N, K> {
        &self.set
    }

    /// A hash of the session under a label of the protocol's own, of `index` and `data`.
    ///
    /// Labels from 128 up are for protocols outside this crate.
    pub fn hash(&self, label: u8, index: u64, data: &[&[u8]]) -> blake3::Hasher {
        assert!(label >= 128, "labels below 128 are taken");
        keyed(&self.key, label, index, data)
    }

    pub(crate) fn oracle(&self, label: Oracle, index: u64, data: &[&[u8]]) -> blake3::Hasher {
        oracle(&self.key, label, index, data)
    }

    /// H_1(index, r): uniform polynomials in the transform domain.
    pub fn offset(&self, index: u64, r: &[u8; 32], out: &mut [Poly<N>; K]) {
        let mut reader = self.oracle(Oracle::Offset, index, &[r]).finalize_xof();
        self.set.ring.uniform(&mut reader, out);
    }
}

fn oracle(key: &[u8; 32], label: Oracle, index: u64, data: &[&[u8]]) -> blake3::Hasher {
    keyed(key, label as u8, index, data)
}

/// Callers give data of one length for one label, so that the concatenation is unambiguous.
fn keyed(key: &[u8; 32], label: u8, index: u64, data: &[&[u8]]) -> blake3::Hasher {
    let mut hasher = blake3::Hasher::new_keyed(key);
    let mut head = [label; 9];
    head[1..].copy_from_slice(&index.to_le_bytes());
    hasher.update(&head);
    for part in data {
        hasher.update(part);
    }
    hasher
}

impl<const N: usize, const K: usize> Drop for Instance<N, K> {
    fn drop(&mut self) {
        self.key.zeroize();
    }
}
