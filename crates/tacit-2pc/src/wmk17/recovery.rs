//! Steps 7 and 8: P1 reveals Δ and the tokens; of a P1 that two evaluated copies convict, P2 recovers the
//! input. With the check of step 9 (d).

use super::decoding::bits;
use super::deviation::deviate;
use super::function::compute;
use super::garbler_input::committing_labels;
use super::outputs::{Received, Tokens};
use super::schedule::{Work, note};
use super::secrets::{Hidden, Seeds};
use super::state::{EvaluatorState, GarblerState};
use super::terms::{Blocks, Terms, cheated, zeros};
use super::trapdoor::{Elements, point, sanitize};
use crate::Result;
use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};
use tacit_crypto::group::{Encoding, POINT_BYTES, Points};
use tacit_crypto::hash::Mitccrh;
use tacit_crypto::{BitVec, Block};
use tacit_net::Channel;
use zeroize::Zeroizing;

impl GarblerState {
    /// Step 7: on h_1, reveals Δ and the tokens, and offers every seed to one who knew Δ before.
    pub(super) fn reveal(&self, channel: &mut Channel, terms: &Terms<'_>, tokens: &Tokens) -> Result<()> {
        // While P2 evaluates: what does not depend on h_1.
        let elements = Elements::new(&self.seeds, &self.h, &self.g1);
        let mut h1 = [0u8; POINT_BYTES];
        channel.recv(&mut h1)?;
        let Some(h1) = point(&h1) else { return cheated("h_1 is no group element") };
        let mut delta = tokens.delta;
        let mut zero_tokens: Blocks = Zeroizing::new(tokens.tables.iter().map(|pair| pair[0]).collect());
        deviate(|script| script.revealed(&mut delta, &mut zero_tokens));
        channel.send_block(delta)?;
        channel.send_blocks(&zero_tokens)?;
        let mut c = elements.c.clone();
        let mut sealed = elements.seal(&terms.oracle, &self.all(), &self.seeds, &h1, tokens.delta);
        deviate(|script| script.recovery(&mut c, &mut sealed));
        channel.send(c.as_flattened())?;
        channel.send_blocks(&sealed)?;
        Ok(channel.flush()?)
    }
}

impl EvaluatorState {
    /// Step 7 and the checks of step 9 (c) and (d); returns seed'_j of the evaluation copies.
    pub(super) fn check_recovery(
        &mut self,
        channel: &mut Channel,
        terms: &Terms<'_>,
        received: &Received,
        h1: &Points,
    ) -> Result<Blocks> {
        let total = self.total();
        let elements = Elements::new(&self.seeds, &self.trapdoor.h, &self.trapdoor.g1);
        let delta = channel.recv_block()?;
        let mut zero_tokens = vec![Block::ZERO; terms.outputs];
        channel.recv_blocks(&mut zero_tokens)?;
        let mut c: Vec<Encoding> = vec![[0; POINT_BYTES]; total];
        channel.recv(c.as_flattened_mut())?;
        let mut sealed = vec![Block::ZERO; total];
        channel.recv_blocks(&mut sealed)?;
        // The tokens are those that were hashed, and all differ by Δ.
        let tokens: Vec<[Block; 2]> = zero_tokens.iter().map(|&zero| [zero, zero ^ delta]).collect();
        self.check_tokens(terms, Hidden::Tables, &tokens, &received.hashes[0]);
        self.check_tables(terms, Hidden::Tables, &tokens, &received.z, &received.commitments[0]);
        // Step 9 (d)
        let expected = elements.seal(&terms.oracle, &self.checked, &self.seeds, h1, delta);
        let copies = self.checked.clone();
        self.check_digests(elements.c.iter().zip(copies.iter().map(|&j| &c[j])));
        let wrong = expected.iter().zip(&copies).fold(Block::ZERO, |wrong, (e, &j)| wrong | (*e ^ sealed[j]));
        self.check(wrong == Block::ZERO);
        let sound = sanitize(&mut c);
        let sound = self.evaluated.iter().fold(true, |all, &j| all & sound[j]);
        self.check(sound);
        let c: Vec<Encoding> = self.evaluated.iter().map(|&j| c[j]).collect();
        let sealed: Vec<Block> = self.evaluated.iter().map(|&j| sealed[j]).collect();
        Ok(Zeroizing::new(self.trapdoor.decrypt(&terms.oracle, &self.evaluated, &c, &sealed)))
    }

    /// Step 8: P1's committed bits, and whether the decrypted seeds explain R by exactly one input. The same
    /// steps whatever they explain.
    pub(super) fn recover(&self, terms: &Terms<'_>, r: &[Block], seeds: Blocks) -> (BitVec, Choice) {
        let (n, active) = (terms.committed(), self.evaluated.len());
        let mut prf = zeros(n * active);
        Seeds::new(seeds.to_vec()).masks().fill(&mut prf);
        let m = committing_labels(&Mitccrh::new(self.labels), 0, self.offset, &self.rows[..n]);
        let (mut found, mut x) = (Zeroizing::new(vec![0u8; n]), Zeroizing::new(vec![0u8; n]));
        let (mut any, mut several) = (Choice::from(0), Choice::from(0));
        for e in 0..active {
            let (mut valid, mut other) = (Choice::from(1), 0);
            for i in 0..n {
                let label = r[i * active + e] ^ prf[i * active + e];
                let one = label.ct_eq(&m[i][1]);
                valid &= one | label.ct_eq(&m[i][0]);
                x[i] = one.unwrap_u8();
                other |= x[i] ^ found[i];
            }
            several |= valid & any & !other.ct_eq(&0);
            found.iter_mut().zip(x.iter()).for_each(|(found, x)| found.conditional_assign(x, valid));
            any |= valid;
        }
        (bits(&found), any & !several)
    }

    /// f(x, y) in the clear, under the mask if P1 alone learns it.
    pub(super) fn compute(&self, terms: &Terms<'_>, x: &BitVec, y: &BitVec) -> BitVec {
        let own = terms.own.iter().copied().zip(x.iter());
        let bits: Vec<(u32, bool)> = own.chain(terms.peer.iter().copied().zip(y.iter())).collect();
        note(Work::Compute, bits.len());
        let mut z = compute(terms.function, &bits);
        for i in 0..terms.masks() {
            z.set(i, z.get(i) ^ x.get(terms.own.len() + i));
        }
        z
    }
}
