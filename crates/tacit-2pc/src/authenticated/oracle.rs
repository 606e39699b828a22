//! What hashes are bound to: to a preparation, to its function.

use super::DOMAIN;
use tacit_crypto::Block;
use tacit_crypto::transcript::Transcript;

/// What every hash of one preparation is bound to.
#[derive(Clone)]
pub(super) struct Oracle(pub(super) [u8; 32]);

impl Oracle {
    /// A hash for `label`, of what the garbler shows or the evaluator.
    pub(super) fn hasher(&self, label: &str, garbler: bool) -> blake3::Hasher {
        let mut transcript = self.transcript(label);
        transcript.append_u64("garbler", garbler as u64);
        let mut key = [0u8; 32];
        transcript.challenge_bytes("key", &mut key);
        blake3::Hasher::new_keyed(&key)
    }

    /// A transcript for `label`.
    pub(super) fn transcript(&self, label: &str) -> Transcript {
        let mut transcript = Transcript::new(DOMAIN);
        transcript.append("run", &self.0);
        transcript.append("step", label.as_bytes());
        transcript
    }

    /// What later hashes are bound to once `transcript`, which began here, was compared.
    pub(super) fn bound_to(&self, transcript: &mut Transcript) -> Oracle {
        let mut oracle = Oracle([0; 32]);
        transcript.challenge_bytes("oracle", &mut oracle.0);
        oracle
    }

    /// A public block for `label`.
    pub(super) fn block(&self, label: &str) -> Block {
        self.transcript(label).challenge_block("block")
    }
}
