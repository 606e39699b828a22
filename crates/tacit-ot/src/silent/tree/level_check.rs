//! The level check, Ferret's: it weighs no leaf with a random element.
//!
//! Of each level of each tree it takes Σ (n + i)·left child of node i, which XORs alone make, and a random
//! combination of these. That shows the same: a correction determines all of a level's nodes but the path's
//! children, and two paths for which the sums agree agree on the level (see docs/security-notes.md). The
//! receiver shows the combination once all corrections are there: two sets of points agree in it with
//! probability 2^-128, and a sender passes with at most 2^-64 more than its best guess, all trees of a batch
//! together.

use super::half::{Moments, PerTree, TILES};
use super::opening::{CheckMessage, DIGEST, check_digest, fold_powers};
use super::shape::Shape;
use crate::Result;
use tacit_crypto::ggm::LANES;
use tacit_crypto::transcript::Transcript;
use tacit_crypto::{Block, Prg, gf128};
use tacit_net::Channel;
use zeroize::ZeroizeOnDrop;

const TREES: usize = TILES * LANES;
/// Moments that are weighed at a time.
const PIECE: usize = 512;

/// The sender's side of the check of a round of Ferret's: the moments of its levels, until the receiver
/// opens.
#[derive(ZeroizeOnDrop)]
pub(crate) struct SenderCheck {
    #[zeroize(skip)]
    context: Transcript,
    #[zeroize(skip)]
    round: u64,
    /// Those of the group at work.
    pub(super) of_group: Vec<PerTree>,
    /// Those of all trees, group by group, level by level, tree by tree; zero for trees that only fill up a
    /// group.
    pub(super) moments: Vec<Block>,
}

impl SenderCheck {
    /// The check of round `round` for trees of `shape`.
    pub(crate) fn new(context: &Transcript, round: u64, shape: Shape) -> Self {
        let of_group = vec![[Block::ZERO; TREES]; shape.depth];
        let moments = Vec::with_capacity(shape.groups() * TREES * (shape.depth - 1));
        SenderCheck { context: context.clone(), round, of_group, moments }
    }

    /// Binds the digest to a seed that was not known before, as if it had stood in the context.
    pub(crate) fn bind(&mut self, joint: &[u8; 32]) {
        self.context.append("joint seed", joint);
    }

    /// Keeps the moments of a group of `tiles` tiles.
    pub(super) fn take(&mut self, tiles: usize) {
        only_of(tiles, &mut self.of_group);
        self.moments.extend(self.of_group[1..].as_flattened());
    }

    /// Figure 6, step 8, after all trees: receives x', sends the digest.
    pub(crate) fn answer(self, channel: &mut Channel, delta: Block, cots: &[Block]) -> Result<()> {
        // proof: ferret 2.5
        let opening = CheckMessage::receive(channel)?;
        channel.send(&self.digest_for(&opening, delta, cots))?;
        channel.flush()?;
        Ok(())
    }

    pub(crate) fn digest_for(&self, opening: &CheckMessage, delta: Block, cots: &[Block]) -> [u8; DIGEST] {
        let mut coefficients = Prg::from_seed(opening.seed);
        let mut buffer = [Block::ZERO; PIECE];
        let mut sum = gf128::Accumulator::new();
        for moments in self.moments.chunks(PIECE) {
            let buffer = &mut buffer[..moments.len()];
            coefficients.fill_blocks(buffer);
            sum.add(buffer, moments);
        }
        check_digest(&self.context, self.round, sum.finish() ^ opening.sender_mask(delta, cots))
    }
}

/// Makes all zero but what is of a group's `tiles` tiles.
fn only_of(tiles: usize, moments: &mut [PerTree]) {
    moments.iter_mut().for_each(|level| level[tiles * LANES..].fill(Block::ZERO));
}

/// The receiver's side, with its coefficients from the start, of which the sender learns after its last
/// correction.
#[derive(ZeroizeOnDrop)]
pub(crate) struct ReceiverCheck {
    #[zeroize(skip)]
    context: Transcript,
    #[zeroize(skip)]
    round: u64,
    seed: Block,
    #[zeroize(skip)]
    coefficients: Prg,
    pub(super) of_group: Moments,
    buffer: Vec<Block>,
    /// Σ of coefficients times moments.
    sum: gf128::Accumulator,
    /// Σ of coefficients times weights of paths' nodes that go left, whose left child is the sender's less Δ.
    phi: Block,
}

impl ReceiverCheck {
    /// The check of round `round` for trees of `shape`, with coefficients from `prg`.
    pub(crate) fn new(context: &Transcript, round: u64, shape: Shape, prg: &mut Prg) -> Self {
        let seed = prg.block();
        let (coefficients, of_group) = (Prg::from_seed(seed), Moments::new(shape.depth));
        let (buffer, sum, phi) = (Vec::new(), gf128::Accumulator::new(), Block::ZERO);
        ReceiverCheck { context: context.clone(), round, seed, coefficients, of_group, buffer, sum, phi }
    }

    /// Bytes that open it.
    pub(crate) const OPENING: usize = CheckMessage::BYTES;

    /// Weighs the moments of a group of `tiles` tiles with paths to `alpha`.
    pub(super) fn take(&mut self, tiles: usize, alpha: &[u32; TREES]) {
        // proof: ferret 2.4
        let Moments { known, lacking } = &mut self.of_group;
        only_of(tiles, known);
        only_of(tiles, lacking);
        let (known, lacking) = (known[1..].as_flattened(), lacking[1..].as_flattened());
        self.buffer.resize(2 * known.len(), Block::ZERO);
        let (coefficients, weights) = self.buffer.split_at_mut(known.len());
        self.coefficients.fill_blocks(coefficients);
        self.sum.add(coefficients, known);
        // The weight n + i of each path's node.
        for (level, weights) in weights.as_chunks_mut::<TREES>().0.iter_mut().enumerate() {
            let n = 2 << level;
            *weights = alpha.map(|alpha| Block::new((n | alpha & (n - 1)) as u128));
        }
        gf128::multiply_each(weights, coefficients);
        self.sum.add(weights, lacking);
        let trees = tiles * LANES;
        for (level, weights) in weights.as_chunks::<TREES>().0.iter().enumerate() {
            for (weight, alpha) in weights[..trees].iter().zip(alpha) {
                self.phi ^= *weight & Block::mask(alpha >> (level + 1) & 1 == 0);
            }
        }
    }

    /// Figure 6, step 7, after all trees: sends the coefficients' seed and x' = φ ⊕ x*, where `cots` are the
    /// 128 correlations of the check. Returns the digest that the sender has to send.
    pub(crate) fn open(self, channel: &mut Channel, cots: &[Block]) -> Result<[u8; DIGEST]> {
        CheckMessage::send(channel, self.seed, self.phi, cots)?;
        channel.flush()?;
        Ok(check_digest(&self.context, self.round, self.sum.finish() ^ fold_powers(cots)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tacit_crypto::KAPPA;

    const SHAPE: Shape = Shape { tiles: 2 * TILES + 1, depth: 5 };

    #[test]
    fn the_digest_is_of_session_round_and_coefficients() {
        let digest = |session: u8, round: u64, seed: u128| {
            let mut context = Transcript::new("test");
            context.append("session", &[session]);
            let mut check = SenderCheck::new(&context, round, SHAPE);
            check.moments.resize(SHAPE.groups() * TREES * (SHAPE.depth - 1), Block::ONE);
            let opening = CheckMessage { seed: Block::new(seed), masked: Block::ZERO };
            check.digest_for(&opening, Block::ONE, &[Block::ZERO; KAPPA])
        };
        let digests = [digest(0, 1, 2), digest(1, 1, 2), digest(0, 2, 2), digest(0, 1, 3)];
        assert_eq!(std::collections::HashSet::from(digests).len(), 4);
    }
}
