//! Setup of t puncturable PRFs with one offset (BCGIKRS19, figures 6, 13 and 16), as functions from message to message.
//!
//! The sender's message holds the level sums of every tree under pads from OTs, the corrections and, against a malicious
//! sender, the sum of each tree's right leaves γ and a hash of them all. It is then challenged and shows X = χ + τ·Δ and V, so
//! that all trees have one Δ. How pads and challenges come about is the caller's business.
//!
//! Deviations from the paper: one hash over all trees in place of one a tree; the t combinations of figure 16 are added up
//! under random weights, which keeps its proof, since errors are fixed before the weights are drawn; weights are monomials
//! of few random elements, so that the receiver finds those of its points without a secret index (soundness (ℓ + 5)/2^128).

use super::bcgikrs19::Noise;
use super::pprf::{Ggm, LeafSums, Leaves, Line, Punctured, equal};
use super::spcot::{Shape, Weights};
use crate::{Error, Result};
use subtle::ConstantTimeEq;
use tacit_crypto::ggm::LANES;
use tacit_crypto::transcript::Transcript;
use tacit_crypto::{BitVec, Block, Buffer, Prg, gf128};
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

/// The public part of a setup.
pub(crate) struct Setup {
    pub protocol: &'static str,
    pub noise: Noise,
    pub malicious: bool,
    /// All that both parties agree on.
    pub context: Transcript,
}

/// τ and the weights of figure 16.
pub(crate) struct Challenge {
    tau: Block,
    weights: Weights,
}

impl Setup {
    fn ggm(&self) -> Ggm {
        Ggm::new(&self.context, self.noise.shape.depth)
    }

    fn tile_len(&self) -> usize {
        LANES << self.noise.shape.depth
    }

    /// The challenge that `transcript`, which holds the sender's message, gives.
    pub(crate) fn challenge(&self, mut transcript: Transcript) -> Challenge {
        let tau = transcript.challenge_block("tau");
        Challenge { tau, weights: Weights::new(transcript.challenge_block("weights"), self.noise.shape) }
    }
}

/// Bytes of the sender's message, what answers the challenge apart.
pub(crate) fn message_len(shape: Shape, malicious: bool) -> usize {
    let (outputs, hash) = if malicious { (4, 32) } else { (1, 0) };
    32 * shape.cots() + 16 * LANES * outputs * shape.tiles + hash
}

/// Tile, level and lane of the `i`-th OT.
pub(crate) fn place(i: usize, shape: Shape) -> (usize, usize, usize) {
    (i / LANES / shape.depth, i / LANES % shape.depth, i % LANES)
}

/// Fig. 13, step 5: the receiver's choices, away from its points.
pub(crate) fn choices(alpha: &[u32], shape: Shape) -> BitVec {
    let mut choices = BitVec::zeros(shape.cots());
    for i in 0..shape.cots() {
        let (tile, level, lane) = place(i, shape);
        choices.set(i, alpha[tile * LANES + lane] >> level & 1 == 0);
    }
    choices
}

/// The hash of all γ, fed in pieces.
struct GammaHash(blake3::Hasher);

impl GammaHash {
    fn new(setup: &Setup) -> Self {
        let mut key = [0; 32];
        setup.context.clone().challenge_bytes("gamma", &mut key);
        GammaHash(blake3::Hasher::new_keyed(&key))
    }

    fn add(&mut self, leaves: &Leaves<'_>) {
        for half in leaves.gamma {
            self.0.update(Block::as_bytes(half));
        }
    }

    fn finish(&self) -> [u8; 32] {
        *self.0.finalize().as_bytes()
    }
}

/// ω + τ·w of a piece, put where it stands in the tile.
fn combine(leaves: &Leaves<'_>, tau: Block, tile: &mut [Block]) {
    let place = &mut tile[leaves.start..][..leaves.w.len()];
    place.copy_from_slice(leaves.omega);
    gf128::multiply_add(place, leaves.w, tau);
}

/// The sender's secrets.
#[derive(Zeroize, ZeroizeOnDrop)]
pub(crate) struct SenderTrees {
    pub delta: Block,
    chi: Block,
    roots: Vec<Line>,
}

impl SenderTrees {
    pub(crate) fn new(delta: Block, prg: &mut Prg, shape: Shape) -> Self {
        let chi = prg.block();
        let mut roots = vec![Line::default(); shape.tiles];
        prg.fill_blocks(roots.as_flattened_mut());
        SenderTrees { delta, chi, roots }
    }

    /// Expands tile by tile; `each` gets a tile's number and its leaves piece by piece, `after` its sums.
    fn tiles(
        &self,
        setup: &Setup,
        mut each: impl FnMut(usize, Leaves<'_>),
        mut after: impl FnMut(usize, &[[Line; 2]], LeafSums),
    ) {
        let mut ggm = setup.ggm();
        let mut sums = vec![[Line::default(); 2]; setup.noise.shape.depth];
        for (tile, roots) in self.roots.iter().enumerate() {
            let totals = ggm.expand(roots, &mut sums, |leaves| each(tile, leaves));
            after(tile, &sums, totals);
        }
        sums.as_flattened_mut().as_flattened_mut().zeroize();
    }

    /// Fig. 13, steps 2 to 7: the level sums under the pads, corrections, sums and hash of γ.
    pub(crate) fn message(&self, setup: &Setup, pads: &[[Block; 2]]) -> Vec<u8> {
        let mut gamma = GammaHash::new(setup);
        let mut message = Vec::with_capacity(message_len(setup.noise.shape, setup.malicious));
        let mut tails = Vec::new();
        let tile_pads = LANES * setup.noise.shape.depth;
        self.tiles(
            setup,
            |_, leaves| {
                if setup.malicious {
                    gamma.add(&leaves);
                }
            },
            |tile, sums, [omega, w, g0, g1]| {
                for (i, pad) in pads[tile * tile_pads..][..tile_pads].iter().enumerate() {
                    let [left, right] = &sums[i / LANES];
                    let masked = [left[i % LANES] ^ pad[0], right[i % LANES] ^ pad[1]];
                    message.extend_from_slice(Block::as_bytes(&masked));
                }
                let lines = [omega.map(|t| t ^ self.chi), w.map(|t| t ^ self.delta), g0, g1];
                for line in if setup.malicious { &lines[..] } else { &lines[1..2] } {
                    tails.extend_from_slice(Block::as_bytes(line));
                }
            },
        );
        message.extend_from_slice(&tails);
        if setup.malicious {
            message.extend_from_slice(&gamma.finish());
        }
        message
    }

    /// Fig. 16: X and V, the latter summed over the trees.
    pub(crate) fn prove(&self, setup: &Setup, challenge: &Challenge) -> [Block; 2] {
        let combined = core::cell::RefCell::new(Buffer::zeros(setup.tile_len()));
        let mut v = Block::ZERO;
        self.tiles(
            setup,
            |_, leaves| combine(&leaves, challenge.tau, &mut combined.borrow_mut()),
            |tile, _, _| v ^= challenge.weights.sum(tile, &combined.borrow()),
        );
        [self.chi ^ gf128::mul(challenge.tau, self.delta), v]
    }

    /// The leaves w with their lowest bits cleared.
    pub(crate) fn expand(&self, setup: &Setup) -> Buffer {
        let (mut noise, kept) = (Buffer::zeros(setup.noise.positions()), setup.noise.tile_len());
        self.tiles(
            setup,
            |tile, leaves| {
                let place = &mut noise[tile * kept..][..kept];
                for (to, w) in place.iter_mut().skip(leaves.start).zip(&*leaves.w) {
                    *to = w.with_lsb(false);
                }
            },
            |_, _, _| (),
        );
        noise
    }
}

/// Reads a message block by block; its length was checked before.
pub(crate) struct Blocks<'a>(pub &'a [u8]);

impl Blocks<'_> {
    pub(crate) fn next(&mut self) -> Block {
        match self.0.split_first_chunk() {
            Some((bytes, rest)) => {
                self.0 = rest;
                Block::from_bytes(*bytes)
            }
            None => Block::ZERO,
        }
    }

    fn line(&mut self) -> Line {
        core::array::from_fn(|_| self.next())
    }
}

/// What the receiver has once the sender's message is there.
pub(crate) struct Received {
    tiles: Vec<Punctured>,
    gamma: [u8; 32],
}

impl Received {
    /// Fig. 13, step 8: takes the pads of the receiver's choices off `message`, which has its
    /// [length](message_len).
    pub(crate) fn new(setup: &Setup, alpha: &[u32], pads: &[Block], message: &[u8]) -> Self {
        let shape = setup.noise.shape;
        let mut body = Blocks(message);
        let mut keys = Zeroizing::new(vec![Line::default(); shape.tiles * shape.depth]);
        for (i, pad) in pads.iter().enumerate() {
            let (tile, level, lane) = place(i, shape);
            let (zero, one) = (body.next(), body.next());
            let away = Block::mask(alpha[tile * LANES + lane] >> level & 1 == 0);
            keys[i / LANES][lane] = (zero & !away | one & away) ^ *pad;
        }
        let mut tiles = Vec::with_capacity(shape.tiles);
        for (alpha, keys) in alpha.as_chunks::<LANES>().0.iter().zip(keys.chunks(shape.depth)) {
            let mut lines = [Line::default(); 4];
            for line in if setup.malicious { &mut lines[..] } else { &mut lines[1..2] } {
                *line = body.line();
            }
            let [omega, w, g0, g1] = lines;
            let (correction, gamma) = ([omega, w], [g0, g1]);
            tiles.push(Punctured { alpha: *alpha, keys: keys.to_vec(), correction, gamma });
        }
        Received { tiles, gamma: body.0.first_chunk().copied().unwrap_or_default() }
    }

    /// The leaves w, the lowest bits being the noise; `proof` is the sender's answer to the challenge, if there was one.
    ///
    /// `Cheated` when the hash or the answer is not right.
    pub(crate) fn expand(&self, setup: &Setup, proof: Option<(&Challenge, [Block; 2])>) -> Result<Buffer> {
        let mut ggm = setup.ggm();
        let mut gamma = GammaHash::new(setup);
        let (mut noise, kept) = (Buffer::zeros(setup.noise.positions()), setup.noise.tile_len());
        let mut combined = Buffer::zeros(setup.tile_len());
        let mut sum = Block::ZERO;
        for (tile, key) in self.tiles.iter().enumerate() {
            let noise = &mut noise[tile * kept..][..kept];
            ggm.expand_punctured(key, |leaves| {
                if let Some((challenge, _)) = &proof {
                    gamma.add(&leaves);
                    combine(&leaves, challenge.tau, &mut combined);
                }
                for (i, (to, w)) in noise.iter_mut().skip(leaves.start).zip(&*leaves.w).enumerate() {
                    let at = leaves.start + i;
                    let on = equal(key.alpha[at % LANES], (at / LANES) as u32) & Block::ONE;
                    *to = w.with_lsb(false) | on;
                }
            });
            if let Some((challenge, _)) = &proof {
                sum ^= challenge.weights.sum(tile, &combined);
            }
        }
        if let Some((challenge, [x, v])) = proof {
            // Fig. 16: V_R + V_S = X·τ_α, summed over the trees.
            let alpha: Zeroizing<Vec<u32>> =
                Zeroizing::new(self.tiles.iter().flat_map(|key| key.alpha).collect());
            let expected = gf128::mul(x, challenge.weights.of_leaves(&alpha)) ^ sum;
            if !bool::from(expected.ct_eq(&v) & self.gamma.ct_eq(&gamma.finish())) {
                let (protocol, what) = (setup.protocol, "the sender's trees do not agree");
                return Err(Error::Cheated { protocol, what });
            }
        }
        Ok(noise)
    }
}
