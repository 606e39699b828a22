//! Input recovery (step 7): who knows Δ decrypts every seed, who does not learns nothing.

use super::schedule::{Work, note};
use super::secrets::{Oracle, Seeds};
use tacit_crypto::group::{DecodeError, Encoding, POINT_BYTES, Points, Scalars, Table};
use tacit_crypto::{BitVec, Block, Prg};
use zeroize::Zeroizing;

/// P2's secrets ω and r, with what it sends of them.
pub(super) struct Trapdoor {
    pub(super) h: Points,
    pub(super) g1: Points,
    pub(super) scalars: Zeroizing<[[u8; 32]; 2]>,
}

impl Trapdoor {
    pub(super) fn new(prg: &mut Prg) -> Self {
        let drawn = Scalars::random(2, prg).to_bytes();
        Self::from_scalars(Zeroizing::new([drawn[0], drawn[1]]))
    }

    pub(super) fn from_scalars(scalars: Zeroizing<[[u8; 32]; 2]>) -> Self {
        let of = |i: usize| Points::mul_base(&Scalars::from_bytes(&[scalars[i]]));
        Trapdoor { h: of(0), g1: of(1), scalars }
    }

    fn r(&self) -> Scalars {
        Scalars::from_bytes(&[self.scalars[1]])
    }

    /// h and g_1, which depend on nothing else and are sent first of all.
    pub(super) fn public(&self) -> [Encoding; 2] {
        [self.h.encode()[0], self.g1.encode()[0]]
    }

    /// h_1 = h^r·Ω, Ω being the element of `omega` if it is `known`, else the identity; the same work for
    /// both.
    pub(super) fn blind(&self, oracle: &Oracle, known: bool, omega: Block) -> Points {
        note(Work::Group, 3);
        let element = oracle.element(omega);
        let chosen = Points::select(&Points::identity(1), &element, &BitVec::from_bools(&[known]));
        self.h.mul_same(&self.r()).add(&chosen)
    }

    /// seed'_j of every evaluation copy from C_j, [sanitized](sanitize), and Enc_{D_j}(seed_j).
    pub(super) fn decrypt(
        &self,
        oracle: &Oracle,
        copies: &[usize],
        c: &[Encoding],
        sealed: &[Block],
    ) -> Vec<Block> {
        note(Work::Group, 2 * copies.len());
        let c = Points::decode(c.as_flattened()).unwrap_or_else(|_| Points::identity(c.len()));
        let d = Zeroizing::new(c.mul_same(&self.r()).encode());
        copies.iter().zip(d.iter()).zip(sealed).map(|((&j, d), sealed)| *sealed ^ oracle.pad(j, d)).collect()
    }
}

/// C_j and the part of D_j that does not depend on h_1, of some copies.
pub(super) struct Elements {
    pub(super) c: Vec<Encoding>,
    left: Points,
    t: Scalars,
}

impl Elements {
    /// C_j = g^{s_j}·h^{t_j} and g_1^{s_j}.
    pub(super) fn new(seeds: &Seeds, h: &Points, g1: &Points) -> Self {
        note(Work::Group, 3 * seeds.len());
        let (s, t) = seeds.scalars();
        let c = Points::mul_base(&s).add(&Table::new(h, t.len()).mul(&t));
        Elements { c: c.encode(), left: Table::new(g1, s.len()).mul(&s), t }
    }

    /// Enc_{D_j}(seed_j) with D_j = g_1^{s_j}·(h_1/Δ)^{t_j}.
    pub(super) fn seal(
        &self,
        oracle: &Oracle,
        copies: &[usize],
        seeds: &Seeds,
        h1: &Points,
        delta: Block,
    ) -> Vec<Block> {
        note(Work::Group, 2 * copies.len());
        let quotient = h1.sub(&oracle.element(delta));
        let d = self.left.add(&Table::new(&quotient, self.t.len()).mul(&self.t));
        let d = Zeroizing::new(d.encode());
        copies.iter().zip(d.iter()).zip(seeds.all()).map(|((&j, d), seed)| *seed ^ oracle.pad(j, d)).collect()
    }
}

/// Decodes one point; `None` where the encoding is not canonical.
pub(super) fn point(encoding: &Encoding) -> Option<Points> {
    Points::decode(encoding).ok()
}

/// Puts the identity in place of encodings that are not canonical; the flags tell which were. All copies' are
/// looked at, also those of which no point is needed, so that what is done depends on P1's message alone.
pub(super) fn sanitize(encodings: &mut [Encoding]) -> Vec<bool> {
    let mut sound = vec![true; encodings.len()];
    while let Err(DecodeError::Invalid(i)) = Points::decode(encodings.as_flattened()) {
        note(Work::Group, encodings.len());
        (sound[i], encodings[i]) = (false, [0; POINT_BYTES]);
    }
    sound
}
