//! After step 8: P1's outputs. P2 commits to their tokens, P1 reveals all, P2 checks them and opens, or
//! refuses.

use super::decoding::Decoded;
use super::deviation::deviate;
use super::outputs::{Received, Tokens};
use super::secrets::Hidden;
use super::state::{EvaluatorState, GarblerState};
use super::terms::{Terms, cheated, zeros};
use crate::Result;
use subtle::ConstantTimeEq;
use tacit_crypto::{BitVec, Block, Prg};
use tacit_net::Channel;
use zeroize::Zeroizing;

impl GarblerState {
    /// P1's outputs: P2 commits to their tokens, P1 reveals all tokens, P2 checks them and opens.
    pub(super) fn take_output(
        &self,
        channel: &mut Channel,
        terms: &Terms<'_>,
        masked: &BitVec,
        tokens: &Tokens,
    ) -> Result<Option<BitVec>> {
        if !terms.output_to.garbler() {
            return Ok(None);
        }
        let mut commitment = [0u8; 32];
        channel.recv(&mut commitment)?;
        let mut revealed = tokens.returned.clone();
        deviate(|script| script.revealed_returned(&mut revealed));
        channel.send_blocks(revealed.as_flattened())?;
        let mut verdict = [0u8; 1];
        channel.recv(&mut verdict)?;
        // proof: wmk17 2.10
        if verdict != [1] {
            return cheated("the evaluator refused the result");
        }
        let mut opening = [0u8; 32];
        channel.recv(&mut opening)?;
        let mut returned = zeros(terms.outputs);
        channel.recv_blocks(&mut returned)?;
        if !bool::from(terms.oracle.returned(&opening, &returned).ct_eq(&commitment)) {
            return cheated("the evaluator's commitment to its output labels does not open");
        }
        let mut out = BitVec::zeros(terms.outputs);
        for (i, (token, [zero, one])) in returned.iter().zip(tokens.returned.iter()).enumerate() {
            let bit = token.ct_eq(one);
            if !bool::from(bit | token.ct_eq(zero)) {
                return cheated("the evaluator returned a label that is neither of an output's two");
            }
            let mask = terms.masks() > 0 && masked.get(terms.own.len() + i);
            out.set(i, bool::from(bit) ^ mask);
        }
        Ok(Some(out))
    }
}

impl EvaluatorState {
    /// P1's outputs: commits to their tokens, checks that P1's are sound, and opens.
    pub(super) fn return_output(
        &mut self,
        channel: &mut Channel,
        terms: &Terms<'_>,
        received: &Received,
        decoded: &Decoded,
        z: &[u8],
        prg: &mut Prg,
    ) -> Result<()> {
        // The tokens of a copy that computed z; a good one is among the evaluation copies.
        let (mut returned, found) = decoded.tokens_of(z);
        self.check(found.into());
        deviate(|script| script.returned(&mut returned));
        let mut opening = Zeroizing::new([0u8; 32]);
        prg.fill_bytes(&mut opening[..]);
        channel.send(&terms.oracle.returned(&opening, &returned))?;
        let mut tokens = vec![[Block::ZERO; 2]; terms.outputs];
        channel.recv_blocks(tokens.as_flattened_mut())?;
        self.check_tokens(terms, Hidden::Returned, &tokens, &received.hashes[1]);
        self.check_tables(terms, Hidden::Returned, &tokens, &received.z, &received.commitments[1]);
        channel.send(&[u8::from(!self.failed)])?;
        if !self.failed {
            channel.send(&opening[..])?;
            channel.send_blocks(&returned)?;
        }
        Ok(channel.flush()?)
    }
}
