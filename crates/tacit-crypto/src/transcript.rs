//! Fiat–Shamir transcripts over BLAKE3.

use crate::{Block, Prg};

/// What an item of the history is; its first byte.
#[derive(Clone, Copy)]
enum Kind {
    Absorbed = 0,
    Drawn = 1,
}

/// A running hash of everything both parties have seen, from which public challenges are drawn.
///
/// Every item is framed by its kind, its label's and its data's length, so that no two different histories
/// hash alike: not even one in which a challenge was drawn and one in which data of the same label was
/// absorbed.
#[derive(Clone)]
pub struct Transcript {
    hasher: blake3::Hasher,
}

impl Transcript {
    /// Starts a transcript for the protocol named by `domain` (name and version).
    pub fn new(domain: &str) -> Self {
        let mut transcript =
            Transcript { hasher: blake3::Hasher::new_derive_key("tacit 2026 transcript v1") };
        transcript.append("domain", domain.as_bytes());
        transcript
    }

    /// Absorbs `data` under `label`.
    pub fn append(&mut self, label: &str, data: &[u8]) {
        self.absorb(Kind::Absorbed, label, data.len());
        self.hasher.update(data);
    }

    /// Absorbs the frame of an item: all of it but the data.
    fn absorb(&mut self, kind: Kind, label: &str, len: usize) {
        self.hasher.update(&[kind as u8]);
        self.hasher.update(&(label.len() as u64).to_le_bytes());
        self.hasher.update(label.as_bytes());
        self.hasher.update(&(len as u64).to_le_bytes());
    }

    /// Absorbs a number under `label`.
    pub fn append_u64(&mut self, label: &str, value: u64) {
        self.append(label, &value.to_le_bytes());
    }

    /// Absorbs blocks under `label`.
    pub fn append_blocks(&mut self, label: &str, blocks: &[Block]) {
        self.append(label, Block::as_bytes(blocks));
    }

    /// Draws `out.len()` challenge bytes under `label`; the transcript then continues from a state that binds
    /// the draw.
    pub fn challenge_bytes(&mut self, label: &str, out: &mut [u8]) {
        self.absorb(Kind::Drawn, label, out.len());
        self.hasher.finalize_xof().fill(out);
    }

    /// Draws one challenge block.
    pub fn challenge_block(&mut self, label: &str) -> Block {
        let mut bytes = [0u8; 16];
        self.challenge_bytes(label, &mut bytes);
        Block::from_bytes(bytes)
    }

    /// Draws the seed of a public PRG, for many challenges at once.
    pub fn challenge_prg(&mut self, label: &str) -> Prg {
        Prg::from_seed(self.challenge_block(label))
    }
}
