//! Setup of t puncturable PRFs with one offset (BCGIKRS19, figures 6, 13 and 16), as functions from message
//! to message.
//!
//! The sender's message holds the level sums of every tree under pads from OTs, the corrections and, against
//! a malicious sender, the sum of each tree's right leaves γ and a hash of them all. It is then challenged by
//! τ, shows X = χ + τ·Δ, and then V, so that all trees have one Δ: with an anchor, that of the
//! correlations it was made of. How pads and challenges come about is the caller's business, and so is the
//! order: a sender must not know τ before its message is sent.
//!
//! Deviations from the paper: one hash over all trees in place of one a tree; the t combinations of figure 16
//! are added up under random weights, which keeps its proof, since message and X, and by them all errors, are
//! fixed before the weights are drawn; weights are monomials of few random elements, so that the receiver
//! finds those of its points without a secret index (soundness (ℓ + 5)/2^128).

use super::noise::Noise;
use super::params::Code;
use crate::silent::tree::ggm::{Ggm, Leaves, Line, Punctured, equal};
use crate::silent::tree::leaf_check::Weights;
use crate::silent::tree::shape::Shape;
use crate::{Error, Result, Security};
use subtle::{Choice, ConstantTimeEq};
use tacit_crypto::ggm::LANES;
use tacit_crypto::transcript::Transcript;
use tacit_crypto::{BitVec, Block, Buffer, KAPPA, Prg, gf128};
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

/// The public part of a setup.
pub struct Setup {
    pub(crate) protocol: &'static str,
    pub(crate) noise: Noise,
    pub(crate) malicious: bool,
    /// All that both parties agree on.
    pub context: Transcript,
}

/// τ of figure 16, and what the weights are drawn from once X is known too.
pub struct Challenge {
    pub(crate) tau: Block,
    transcript: Transcript,
}

impl Challenge {
    /// The check of figure 16 for the sender's X.
    pub(crate) fn check(mut self, x: Block, shape: Shape) -> Check {
        self.transcript.append_blocks("x", &[x]);
        let weights = Weights::new(self.transcript.challenge_block("weights"), shape);
        let mut anchored = [Block::ZERO; KAPPA];
        self.transcript.challenge_prg("anchor").fill_blocks(&mut anchored);
        Check { tau: self.tau, x, weights, anchored }
    }
}

/// τ, X and the weights of figure 16: of the leaves, and of the correlations of an [`Anchor`].
pub(crate) struct Check {
    tau: Block,
    x: Block,
    weights: Weights,
    anchored: [Block; KAPPA],
}

impl Check {
    /// What the anchor adds to a party's sum.
    fn of_anchor(&self, anchor: &Anchor) -> Block {
        let mut combined = anchor.omega;
        gf128::multiply_add(&mut combined, &anchor.w, self.tau);
        let sum = gf128::inner_product(&self.anchored, &combined);
        combined.zeroize();
        sum
    }
}

/// 128 correlated OTs of the source's Δ as 128 more leaves of which each is noisy with probability 1/2: w is
/// the correlation itself, and ω one of the two hashes that make it a random OT, which the sender brings to
/// the offset χ by d = H(v) ⊕ H(v ⊕ Δ) ⊕ χ. Trees of another Δ would fit only a sender that guesses all 128
/// choices.
#[derive(Zeroize, ZeroizeOnDrop)]
pub(crate) struct Anchor {
    omega: [Block; KAPPA],
    w: [Block; KAPPA],
}

impl Anchor {
    /// Bytes of the d.
    pub(crate) const BYTES: usize = KAPPA * size_of::<Block>();

    /// The sender's, from its halves `v` and the `pads` that they hash to.
    pub(crate) fn of_sender(v: &[Block], pads: &[[Block; 2]]) -> Self {
        Anchor { omega: core::array::from_fn(|i| pads[i][0]), w: core::array::from_fn(|i| v[i]) }
    }

    /// The receiver's, from its halves `w`, their choices being the lowest bits, their `pads` and the
    /// sender's d.
    pub(crate) fn of_receiver(w: &[Block], pads: &[Block], d: &[u8]) -> Self {
        let mut d = Blocks(d);
        let omega = core::array::from_fn(|i| pads[i] ^ (d.next() & Block::mask(w[i].lsb())));
        Anchor { omega, w: core::array::from_fn(|i| w[i]) }
    }

    /// The sum of the weights of the receiver's choices.
    fn chosen(&self, check: &Check) -> Block {
        let on = |sum: Block, (weight, w): (&Block, &Block)| sum ^ (*weight & Block::mask(w.lsb()));
        check.anchored.iter().zip(&self.w).fold(Block::ZERO, on)
    }
}

impl Setup {
    /// Trees for `count` correlations of `code`. `context` is all that both parties agree on, their session
    /// included; `protocol` stands in errors.
    pub fn new(
        protocol: &'static str,
        code: Code,
        count: usize,
        security: Security,
        context: Transcript,
    ) -> Self {
        Setup { protocol, noise: code.noise(count), malicious: security == Security::Malicious, context }
    }

    /// How many OTs carry the trees.
    pub fn ots(&self) -> usize {
        self.noise.shape.cots()
    }

    /// Bytes of the sender's message, what answers the challenge apart.
    pub fn message_len(&self) -> usize {
        message_len(self.noise.shape, self.malicious)
    }

    /// The receiver's secret: the noisy leaf of each tree.
    pub fn points(&self, prg: &mut Prg) -> Zeroizing<Vec<u32>> {
        Zeroizing::new(self.noise.points(prg))
    }

    /// Fig. 13, step 5: the receiver's choices in the OTs, away from its `points`.
    pub fn choices(&self, points: &[u32]) -> BitVec {
        choices(points, self.noise.shape)
    }

    /// Maps leaves, which are of this setup, by `code` to the first `count` correlations; `each` gets them in
    /// order, in pieces.
    pub fn encode(&self, code: Code, mut leaves: Buffer, count: usize, each: &mut dyn FnMut(&mut [Block])) {
        let seed = self.context.clone().challenge_block("code");
        let code = code.instance(seed, self.noise.positions());
        code.absorb(&mut Block::ZERO.clone(), &mut leaves);
        code.encode(leaves, count, each);
    }

    fn ggm(&self) -> Ggm {
        Ggm::new(&self.context, self.noise.shape.depth)
    }

    fn tile_len(&self) -> usize {
        LANES << self.noise.shape.depth
    }

    /// The challenge that `transcript`, which holds the sender's message, gives.
    pub fn challenge(&self, mut transcript: Transcript) -> Challenge {
        let tau = transcript.challenge_block("tau");
        Challenge { tau, transcript }
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
pub struct SenderTrees {
    pub(crate) delta: Block,
    chi: Block,
    roots: Vec<Line>,
}

impl SenderTrees {
    /// Trees of `setup` with Δ = `delta`, whose lowest bit is 1.
    pub fn draw(setup: &Setup, delta: Block, prg: &mut Prg) -> Self {
        Self::new(delta, prg, setup.noise.shape)
    }

    pub(crate) fn new(delta: Block, prg: &mut Prg, shape: Shape) -> Self {
        let chi = prg.block();
        let mut roots = vec![Line::default(); shape.tiles];
        prg.fill_blocks(roots.as_flattened_mut());
        SenderTrees { delta, chi, roots }
    }

    /// Fig. 13, steps 2 to 7: the level sums under the pads, corrections, sums and hash of γ.
    pub fn message(&self, setup: &Setup, pads: &[[Block; 2]]) -> Vec<u8> {
        let mut message = self.bare_message(setup);
        mask(&mut message, pads);
        core::mem::take(&mut *message)
    }

    /// The message without its pads, which [`mask`] puts on: what takes long depends on nothing of the
    /// receiver's.
    pub(crate) fn bare_message(&self, setup: &Setup) -> Zeroizing<Vec<u8>> {
        let (mut ggm, mut gamma) = (setup.ggm(), GammaHash::new(setup));
        let mut message = Zeroizing::new(Vec::with_capacity(message_len(setup.noise.shape, setup.malicious)));
        let mut tails = Vec::new();
        let mut sums = vec![[Line::default(); 2]; setup.noise.shape.depth];
        for roots in &self.roots {
            let [omega, w, g0, g1] = ggm.expand(roots, &mut sums, |leaves| {
                if setup.malicious {
                    gamma.add(&leaves);
                }
            });
            for [left, right] in &sums {
                for pair in left.iter().zip(right) {
                    message.extend_from_slice(Block::as_bytes(&[*pair.0, *pair.1]));
                }
            }
            let lines = [omega.map(|t| t ^ self.chi), w.map(|t| t ^ self.delta), g0, g1];
            for line in if setup.malicious { &lines[..] } else { &lines[1..2] } {
                tails.extend_from_slice(Block::as_bytes(line));
            }
        }
        sums.as_flattened_mut().as_flattened_mut().zeroize();
        message.extend_from_slice(&tails);
        if setup.malicious {
            message.extend_from_slice(&gamma.finish());
        }
        message
    }

    /// What brings the ω of an [`Anchor`] to the offset χ: its d.
    pub(crate) fn anchoring(&self, pads: &[[Block; 2]]) -> Vec<u8> {
        pads.iter().flat_map(|[zero, one]| (*zero ^ *one ^ self.chi).to_bytes()).collect()
    }

    /// Fig. 16: X.
    pub(crate) fn x(&self, challenge: &Challenge) -> Block {
        self.chi ^ gf128::mul(challenge.tau, self.delta)
    }

    /// Fig. 16: X and V, the latter summed over the trees.
    pub fn prove(&self, setup: &Setup, challenge: Challenge) -> [Block; 2] {
        let x = self.x(&challenge);
        let check = challenge.check(x, setup.noise.shape);
        [x, self.weigh(setup, &check, |_, _| ())]
    }

    /// [`prove`](Self::prove) and [`expand`](Self::expand) in one pass over the trees: V with what the anchor
    /// adds, and the leaves.
    pub(crate) fn prove_and_expand(&self, setup: &Setup, check: &Check, anchor: &Anchor) -> (Block, Buffer) {
        let mut noise = Buffer::zeros(setup.noise.positions());
        let v = self.weigh(setup, check, |tile, leaves| keep(setup, &mut noise, tile, leaves));
        (v ^ check.of_anchor(anchor), noise)
    }

    /// V, summed over the trees; `each` sees a tile's leaves too.
    fn weigh(&self, setup: &Setup, check: &Check, mut each: impl FnMut(usize, &Leaves<'_>)) -> Block {
        let (mut ggm, mut combined) = (setup.ggm(), Buffer::zeros(setup.tile_len()));
        let mut v = Block::ZERO;
        for (tile, roots) in self.roots.iter().enumerate() {
            ggm.expand_outputs(roots, |leaves| {
                each(tile, &leaves);
                combine(&leaves, check.tau, &mut combined);
            });
            v ^= check.weights.sum(tile, &combined);
        }
        v
    }

    /// The leaves w with their lowest bits cleared.
    pub fn expand(&self, setup: &Setup) -> Buffer {
        let (mut ggm, mut noise) = (setup.ggm(), Buffer::zeros(setup.noise.positions()));
        for (tile, roots) in self.roots.iter().enumerate() {
            ggm.expand_outputs(roots, |leaves| keep(setup, &mut noise, tile, &leaves));
        }
        noise
    }
}

/// Puts the pads on the level sums of a [bare message](SenderTrees::bare_message).
pub(crate) fn mask(message: &mut [u8], pads: &[[Block; 2]]) {
    for (sum, pad) in message.chunks_exact_mut(size_of::<Block>()).zip(pads.as_flattened()) {
        sum.iter_mut().zip(pad.to_bytes()).for_each(|(sum, pad)| *sum ^= pad);
    }
}

/// Puts those of the leaves w that are positions where they stand, with their lowest bits cleared.
fn keep(setup: &Setup, noise: &mut [Block], tile: usize, leaves: &Leaves<'_>) {
    let kept = setup.noise.tile_len();
    let place = &mut noise[tile * kept..][..kept];
    for (to, w) in place.iter_mut().skip(leaves.start).zip(&*leaves.w) {
        *to = w.with_lsb(false);
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
pub struct Received {
    tiles: Vec<Punctured>,
    gamma: [u8; 32],
}

impl Received {
    /// Fig. 13, step 8: takes the pads of the receiver's choices off `message`, which has its
    /// [length](Setup::message_len).
    pub fn new(setup: &Setup, alpha: &[u32], pads: &[Block], message: &[u8]) -> Self {
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

    /// The leaves w, the lowest bits being the noise, nothing being checked.
    pub fn trusted(&self, setup: &Setup) -> Buffer {
        self.leaves(setup, |_| (), |_| ())
    }

    /// The leaves w, the lowest bits being the noise; `Cheated` unless the sender's X and V answer the
    /// `challenge`.
    pub fn checked(&self, setup: &Setup, challenge: Challenge, [x, v]: [Block; 2]) -> Result<Buffer> {
        let (noise, claim) = self.expand(setup, &challenge.check(x, setup.noise.shape), None);
        claim.check(v)?;
        Ok(noise)
    }

    /// The leaves w, the lowest bits being the noise, and what must be [checked](Claim::check) before
    /// anything comes of them.
    pub(crate) fn expand(&self, setup: &Setup, check: &Check, anchor: Option<&Anchor>) -> (Buffer, Claim) {
        let mut gamma = GammaHash::new(setup);
        let combined = core::cell::RefCell::new(Buffer::zeros(setup.tile_len()));
        let mut sum = Block::ZERO;
        let noise = self.leaves(
            setup,
            |leaves| {
                gamma.add(leaves);
                combine(leaves, check.tau, &mut combined.borrow_mut());
            },
            |tile| sum ^= check.weights.sum(tile, &combined.borrow()),
        );
        // Fig. 16: V_R + V_S = X·τ_α, summed over the trees.
        let alpha: Zeroizing<Vec<u32>> =
            Zeroizing::new(self.tiles.iter().flat_map(|key| key.alpha).collect());
        let mut noisy = check.weights.of_leaves(&alpha);
        if let Some(anchor) = anchor {
            noisy ^= anchor.chosen(check);
            sum ^= check.of_anchor(anchor);
        }
        let v = gf128::mul(check.x, noisy) ^ sum;
        let gamma = self.gamma.ct_eq(&gamma.finish());
        (noise, Claim { protocol: setup.protocol, v, gamma })
    }

    /// The leaves w; `each` sees all that a leaf gives, `after` the number of a tile that is through.
    fn leaves(
        &self,
        setup: &Setup,
        mut each: impl FnMut(&Leaves<'_>),
        mut after: impl FnMut(usize),
    ) -> Buffer {
        let mut ggm = setup.ggm();
        let (mut noise, kept) = (Buffer::zeros(setup.noise.positions()), setup.noise.tile_len());
        for (tile, key) in self.tiles.iter().enumerate() {
            let noise = &mut noise[tile * kept..][..kept];
            ggm.expand_punctured(key, |leaves| {
                each(&leaves);
                for (i, (to, w)) in noise.iter_mut().skip(leaves.start).zip(&*leaves.w).enumerate() {
                    let at = leaves.start + i;
                    let on = equal(key.alpha[at % LANES], (at / LANES) as u32) & Block::ONE;
                    *to = w.with_lsb(false) | on;
                }
            });
            after(tile);
        }
        noise
    }
}

/// What the receiver's leaves say of the sender's message and V.
#[must_use]
pub(crate) struct Claim {
    protocol: &'static str,
    v: Block,
    gamma: Choice,
}

impl Claim {
    /// `Cheated` when the hash of the γ or V, `theirs`, is not right.
    pub(crate) fn check(&self, theirs: Block) -> Result<()> {
        if bool::from(self.v.ct_eq(&theirs) & self.gamma) {
            return Ok(());
        }
        Err(Error::Cheated { protocol: self.protocol, what: "the sender's trees do not agree" })
    }
}

#[cfg(test)]
mod tests {
    use super::super::params::Code;
    use super::*;

    /// With weights that it knew, a sender could choose X.
    ///
    /// proof: silent-ot 3.4
    #[test]
    fn weights_follow_x() {
        let noise = Code::Linear.noise(1);
        let setup = Setup { protocol: "test", noise, malicious: true, context: Transcript::new("test") };
        let drawn = |x: u128| {
            let check = setup.challenge(setup.context.clone()).check(Block::new(x), noise.shape);
            (check.tau, check.weights.of_leaves(&[0, 1, 2, 3]), check.anchored)
        };
        let (one, two) = (drawn(1), drawn(2));
        assert!(one == drawn(1), "a party comes to other weights");
        assert!(one.0 == two.0 && one.1 != two.1);
        assert!(one.2.iter().zip(&two.2).all(|(a, b)| a != b));
    }
}
