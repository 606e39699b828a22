//! Codes of dual LPN: maps from a long sparse-noise vector to a short pseudorandom one.
//!
//! Each is the multiplication by a public matrix H over GF(2), drawn from a seed that both parties agree on:
//! the sender maps its leaves, the receiver maps leaves whose lowest bits are the noise, and the correlation
//! passes through.
//!
//! - [`BlockAccumulate`]: linear time; the fastest here. Its distance is an estimate, not a proof.
//! - [`FieldAccumulate`]: the same shape over a prime field.
//! - [`QuasiCyclic`]: the code of the BCGIKRS19 paper, one product in GF(2)\[x\]/(x^n − 1) a bit column.

mod block_accumulate;
mod field_accumulate;
mod quasi_cyclic;
mod scaled_accumulate;

pub use block_accumulate::BlockAccumulate;
pub use field_accumulate::FieldAccumulate;
pub use quasi_cyclic::QuasiCyclic;
pub use scaled_accumulate::ScaledAccumulate;

use tacit_crypto::{Block, Buffer};

/// A public matrix H over GF(2) with more rows than columns, applied to blocks: noise · H.
pub trait LinearCode: Send + Sync {
    /// Length of the noise vector.
    fn input_len(&self) -> usize;
    /// Length of the result.
    fn output_len(&self) -> usize;
    /// Looks at the next piece of the noise, in order and while it is hot in cache, before it is stored.
    ///
    /// `carry` is zero before the first piece. All of the noise must pass through here before
    /// [`encode`](Self::encode).
    fn absorb(&self, carry: &mut Block, piece: &mut [Block]);
    /// Maps the absorbed noise, at least [`input_len`](Self::input_len) blocks; `each` gets the first `count`
    /// results in order, in pieces. Panics when `count` exceeds [`output_len`](Self::output_len) or the noise
    /// is too short.
    fn encode(&self, noise: Buffer, count: usize, each: &mut dyn FnMut(&mut [Block]));
}

/// All results at once, for callers that keep them.
pub fn encode_all(code: &dyn LinearCode, noise: &[Block]) -> Vec<Block> {
    let mut kept = Buffer::zeros(noise.len());
    kept.copy_from_slice(noise);
    code.absorb(&mut Block::ZERO.clone(), &mut kept);
    let mut out = Vec::with_capacity(code.output_len());
    code.encode(kept, code.output_len(), &mut |piece| out.extend_from_slice(piece));
    out
}
