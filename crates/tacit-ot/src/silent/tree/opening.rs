//! What opens either check of a batch of trees, and what answers it: figure 6, steps 7 to 9.

use crate::{Error, Result, Security};
use subtle::ConstantTimeEq;
use tacit_crypto::transcript::Transcript;
use tacit_crypto::{Block, KAPPA, gf128};
use tacit_net::Channel;

/// Correlations that a check takes.
pub(crate) fn check_cots(security: Security) -> usize {
    match security {
        Security::SemiHonest => 0,
        Security::Malicious => KAPPA,
    }
}

/// What the receiver sends to open a check with weights of its own: the weights' seed and x' = φ ⊕ x*.
pub(crate) struct CheckMessage {
    pub seed: Block,
    pub masked: Block,
}

impl CheckMessage {
    /// Its length.
    pub(crate) const BYTES: usize = 2 * size_of::<Block>();

    /// Figure 6, step 7; `cots` are the 128 correlations of the check.
    pub(crate) fn send(channel: &mut Channel, seed: Block, phi: Block, cots: &[Block]) -> Result<()> {
        channel.send_block(seed)?;
        channel.send_block(phi ^ fold_bits(cots))?;
        Ok(())
    }

    pub(crate) fn receive(channel: &mut Channel) -> Result<Self> {
        Ok(CheckMessage { seed: channel.recv_block()?, masked: channel.recv_block()? })
    }

    /// Figure 6, step 8: Y = Σ (y*_i ⊕ x'_i·Δ)·X^i.
    pub(crate) fn sender_mask(&self, delta: Block, cots: &[Block]) -> Block {
        fold_powers(cots) ^ gf128::mul(self.masked, delta)
    }
}

/// x* = Σ x*_i·X^i, the choice bits.
fn fold_bits(cots: &[Block]) -> Block {
    Block::new(cots.iter().enumerate().fold(0, |acc, (i, c)| acc | (c.lsb() as u128) << i))
}

/// Σ cots[i]·X^i: figure 6, step 9.
pub(crate) fn fold_powers(cots: &[Block]) -> Block {
    assert_eq!(cots.len(), KAPPA, "the check takes 128 correlations");
    let powers: [Block; KAPPA] = core::array::from_fn(|i| Block::new(1 << i));
    gf128::inner_product(cots, &powers)
}

/// Bytes of H'.
pub(crate) const DIGEST: usize = 32;

/// H' of steps 8 and 9: 256 bits, bound to the session and the round.
pub(crate) fn check_digest(context: &Transcript, round: u64, value: Block) -> [u8; DIGEST] {
    let mut transcript = context.clone();
    transcript.append_u64("round", round);
    transcript.append("check", &value.to_bytes());
    let mut digest = [0u8; DIGEST];
    transcript.challenge_bytes("digest", &mut digest);
    digest
}

/// Step 9, in the name of `protocol`: compares what the sender sent with what it should be.
pub(crate) fn check_digests(
    protocol: &'static str,
    digest: &[u8; DIGEST],
    expected: &[u8; DIGEST],
) -> Result<()> {
    if bool::from(digest.ct_eq(expected)) {
        Ok(())
    } else {
        Err(Error::Cheated { protocol, what: "the single-point correlations do not fit Δ" })
    }
}
