//! Step 6: what the evaluation copies' output labels tell.

use super::circuits::Commitments;
use super::garbling::starts;
use super::outputs::{TokenHashes, first_gid};
use super::schedule::{Work, note};
use super::secrets::Hidden;
use super::state::EvaluatorState;
use super::terms::{Blocks, ROWS, Terms, zeros};
use super::transfer::{column_length, tables_of};
use crate::Result;
use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};
use tacit_crypto::hash::Mitccrh;
use tacit_crypto::{BitVec, Block};
use tacit_net::Channel;
use zeroize::Zeroizing;

/// Looks the evaluation copies' output labels up.
pub(super) struct Decoding {
    starts: Vec<Block>,
    /// The labels, output by output.
    z: Blocks,
    labels: Blocks,
    pub(super) decoded: Decoded,
}

impl EvaluatorState {
    pub(super) fn decoding(&self, terms: &Terms<'_>, z: Blocks) -> Decoding {
        let decoded = Decoded::new(self.evaluated.len(), terms.outputs);
        Decoding { starts: starts(self.start, &self.evaluated), z, labels: zeros(ROWS), decoded }
    }

    /// Step 6: opens T of the evaluation copies as it comes, and looks up what their output labels `z` tell.
    pub(super) fn decode(
        &mut self,
        channel: &mut Channel,
        terms: &Terms<'_>,
        known: &Commitments,
        hashes: &TokenHashes,
        z: Blocks,
    ) -> Result<Decoded> {
        let mut decoding = self.decoding(terms, z);
        self.receive_tables(channel, terms, known, |k, first, columns| {
            decoding.take(terms, hashes, k, first, columns);
            Ok(())
        })?;
        Ok(decoding.decoded)
    }
}

impl Decoding {
    /// Opens outputs from `first` on with the tables of the kind numbered `k`, which stand copy by copy.
    pub(super) fn take(
        &mut self,
        terms: &Terms<'_>,
        hashes: &TokenHashes,
        k: usize,
        first: usize,
        columns: &[Block],
    ) {
        let (kind, active) = (terms.kinds()[k], self.starts.len());
        let count = tables_of(&columns[..columns.len() / active.max(1)]).len() / 2;
        let labels = &mut self.labels[..count];
        for (e, table) in columns.chunks_exact(column_length(count)).enumerate() {
            (0..count).for_each(|i| labels[i] = self.z[(first + i) * active + e]);
            let colours = BitVec::from_lsbs(labels);
            note(Work::Hash, count);
            Mitccrh::new(self.starts[e]).hash_blocks(first_gid(kind) + first as u64, 1, labels);
            for (i, (label, pair)) in labels.iter_mut().zip(table.as_chunks::<2>().0).enumerate() {
                *label ^= pair[0] ^ ((pair[0] ^ pair[1]) & Block::mask(colours.get(i)));
            }
            let found = terms.oracle.tokens(kind, first, labels.as_chunks::<1>().0);
            for (i, ([hash], known)) in found.iter().zip(&hashes[k][first..]).enumerate() {
                let [zero, one] = known.map(|known| known.ct_eq(hash));
                let values = [zero & !one, one & !zero].map(|value| value.unwrap_u8());
                self.decoded.take(kind, e, first + i, labels[i], values);
            }
        }
    }
}

/// The evaluation copies' outputs. What they are may depend on y: everything here takes the same steps
/// whatever they are.
pub(super) struct Decoded {
    outputs: usize,
    /// Of each copy's outputs, whether it is 0 and whether it is 1; neither, where a label is invalid.
    values: Zeroizing<Vec<[u8; 2]>>,
    tokens: Blocks,
    returned: Blocks,
}

impl Decoded {
    fn new(copies: usize, outputs: usize) -> Self {
        let n = copies * outputs;
        Decoded { outputs, values: Zeroizing::new(vec![[0; 2]; n]), tokens: zeros(n), returned: zeros(n) }
    }

    /// Records copy `e`'s token of one kind for output `i`; both kinds must tell the same value.
    fn take(&mut self, kind: Hidden, e: usize, i: usize, token: Block, values: [u8; 2]) {
        let at = e * self.outputs + i;
        if matches!(kind, Hidden::Returned) {
            self.returned[at] = token;
            (0..2).for_each(|b| self.values[at][b] &= values[b]);
        } else {
            self.tokens[at] = token;
            self.values[at] = values;
        }
    }

    /// Step 6.
    pub(super) fn verdict(&self) -> Verdict {
        let n = self.outputs;
        note(Work::Move, self.values.len());
        // Invalid circuits
        let valid = |copy: &[[u8; 2]]| copy.iter().fold(1, |all, [zero, one]| all & (zero | one));
        let copies = self.tokens.len().checked_div(n).unwrap_or(0);
        let some = (0..copies).fold(0, |some, e| some | valid(&self.values[e * n..][..n]));
        let mut sure = Choice::from(some | u8::from(n == 0));
        let (mut known, mut omega, mut z) = (Choice::from(0), Block::ZERO, Zeroizing::new(vec![0; n]));
        for i in 0..n {
            let (mut tokens, mut has) = ([Block::ZERO; 2], [0; 2]);
            for at in (i..self.values.len()).step_by(n) {
                for b in 0..2 {
                    tokens[b].conditional_assign(&self.tokens[at], Choice::from(self.values[at][b]));
                    has[b] |= self.values[at][b];
                }
            }
            // Inconsistent output labels
            let (both, difference) = (Choice::from(has[0] & has[1]), tokens[0] ^ tokens[1]);
            sure &= !(both & known & !difference.ct_eq(&omega));
            omega.conditional_assign(&difference, both);
            known |= both;
            // Consistent output labels
            z[i] = has[1];
        }
        Verdict { z, omega, known: known & Choice::from(some), sure }
    }

    /// The tokens of P1's outputs of a copy that computed `z`, and whether there is one.
    pub(super) fn tokens_of(&self, z: &[u8]) -> (Blocks, Choice) {
        let n = self.outputs;
        note(Work::Move, self.values.len());
        let (mut returned, mut found) = (zeros(n), Choice::from(u8::from(n == 0)));
        for (values, tokens) in self.values.chunks_exact(n.max(1)).zip(self.returned.chunks_exact(n.max(1))) {
            let equal =
                values.iter().zip(z).fold(1, |equal, ([zero, one], z)| equal & ((zero & !z) | (one & z)));
            let matches = Choice::from(equal & 1);
            returned.iter_mut().zip(tokens).for_each(|(out, token)| out.conditional_assign(token, matches));
            found |= matches;
        }
        (returned, found)
    }
}

/// What step 6 concludes.
pub(super) struct Verdict {
    /// The outputs, where no two copies contradict each other.
    pub(super) z: Zeroizing<Vec<u8>>,
    /// Δ, and whether two copies contradict each other and so tell it.
    pub(super) omega: Block,
    pub(super) known: Choice,
    /// Whether there is an output at all.
    pub(super) sure: Choice,
}

/// Bits that stand in bytes of their own.
pub(super) fn bits(bytes: &[u8]) -> BitVec {
    let mut out = BitVec::zeros(bytes.len());
    bytes.iter().enumerate().for_each(|(i, byte)| out.set(i, *byte == 1));
    out
}
