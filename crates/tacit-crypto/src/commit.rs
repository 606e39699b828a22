//! Hash commitments: BLAKE3 over a label, 256 bits of randomness and the message.

use crate::Prg;
use subtle::ConstantTimeEq;
use zeroize::{Zeroize, ZeroizeOnDrop};

/// A commitment: hiding (its opening holds 256 random bits) and binding (collision resistance of BLAKE3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Commitment(pub [u8; 32]);

/// What opens a [`Commitment`], beside the message.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct Opening(pub [u8; 32]);

impl core::fmt::Debug for Opening {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Opening([secret])")
    }
}

/// Commits to `message` under `context`, which must name the session and the place in the protocol.
pub fn commit(context: &[u8], message: &[u8], prg: &mut Prg) -> (Commitment, Opening) {
    let mut opening = Opening([0; 32]);
    prg.fill_bytes(&mut opening.0);
    (compute(context, message, &opening), opening)
}

/// Whether `opening` opens `commitment` to `message` under `context`.
#[must_use]
pub fn verify(context: &[u8], message: &[u8], commitment: &Commitment, opening: &Opening) -> bool {
    compute(context, message, opening).0.ct_eq(&commitment.0).into()
}

/// Injective: the context is framed by its length, the opening has a fixed one, and the message ends the
/// input.
fn compute(context: &[u8], message: &[u8], opening: &Opening) -> Commitment {
    let mut hasher = blake3::Hasher::new_derive_key("tacit 2026 commitment v1");
    hasher.update(&(context.len() as u64).to_le_bytes());
    hasher.update(context);
    hasher.update(&opening.0);
    hasher.update(message);
    Commitment(*hasher.finalize().as_bytes())
}
