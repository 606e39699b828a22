//! Steps 5 and 6: the tokens Δ_{i,b} of the outputs, and the tables T that translate labels to them; with the
//! check of step 9 (c).

use super::circuits::{Circuits, Commitments};
use super::deviation::deviate;
use super::garbling::starts;
use super::secrets::{Digest, Hidden, encryption};
use super::state::{EvaluatorState, GarblerState};
use super::terms::{Blocks, ROWS, Terms, zeros};
use super::transfer::{Hashes, by_copy, by_gate, column_length, split};
use crate::Result;
use tacit_crypto::hash::Mitccrh;
use tacit_crypto::{Block, Prg};
use tacit_net::Channel;
use zeroize::{Zeroize, Zeroizing};

/// Hash numbers of outputs: past every gate's.
const OUTPUT_GID: u64 = 1 << 63;
const RETURNED_GID: u64 = 3 << 62;

pub(super) fn first_gid(kind: Hidden) -> u64 {
    if matches!(kind, Hidden::Returned) { RETURNED_GID } else { OUTPUT_GID }
}

/// T_{i,b} = Enc_{Z_{i,b}}(token_{i,b}) of one copy, the label of colour 0 first.
fn output_table(
    start: Block,
    kind: Hidden,
    delta: Block,
    z: &[Block],
    tokens: &[[Block; 2]],
    out: &mut [Block],
) {
    for (z, out) in z.iter().zip(out.as_chunks_mut::<2>().0) {
        out[0] = *z ^ (delta & Block::mask(z.lsb()));
        out[1] = out[0] ^ delta;
    }
    Mitccrh::new(start).hash_blocks(first_gid(kind), 2, out);
    for ((z, [zero, one]), out) in z.iter().zip(tokens).zip(out.as_chunks_mut::<2>().0) {
        let swap = (*zero ^ *one) & Block::mask(z.lsb());
        out[0] ^= *zero ^ swap;
        out[1] ^= *one ^ swap;
    }
}

/// Δ, the tokens Δ_{i,b}, and those of the outputs that come back.
pub(super) struct Tokens {
    pub(super) delta: Block,
    pub(super) tables: Zeroizing<Vec<[Block; 2]>>,
    pub(super) returned: Zeroizing<Vec<[Block; 2]>>,
}

impl Drop for Tokens {
    fn drop(&mut self) {
        self.delta.zeroize();
    }
}

impl Tokens {
    pub(super) fn random(terms: &Terms<'_>, prg: &mut Prg) -> Self {
        let delta = prg.block();
        let mut pairs = |linked: bool| -> Zeroizing<Vec<[Block; 2]>> {
            let pair = |_| {
                let (zero, other) = (prg.block(), prg.block());
                [zero, if linked { zero ^ delta } else { other }]
            };
            Zeroizing::new((0..terms.outputs).map(pair).collect())
        };
        let mut tokens = Tokens { delta, tables: pairs(true), returned: pairs(false) };
        deviate(|script| script.tokens(&mut tokens.tables));
        tokens
    }

    fn of(&self, kind: Hidden) -> &[[Block; 2]] {
        if matches!(kind, Hidden::Returned) { &self.returned } else { &self.tables }
    }
}

impl GarblerState {
    /// Step 5: {H(Δ_{i,b})}.
    pub(super) fn send_token_hashes(
        &self,
        channel: &mut Channel,
        terms: &Terms<'_>,
        tokens: &Tokens,
    ) -> Result<()> {
        for &kind in terms.kinds() {
            let mut hashes = terms.oracle.tokens(kind, 0, tokens.of(kind));
            if matches!(kind, Hidden::Returned) {
                deviate(|script| script.returned_hashes(&mut hashes));
            }
            channel.send(hashes.as_flattened().as_flattened())?;
        }
        Ok(())
    }

    /// Step 5: commits to the garbled tables and the output tables of every copy, before any of them is sent.
    /// Returns the output tables as they are going to be sent, encrypted, by kind.
    ///
    /// P2's work on tables takes P1's time, however it is arranged. Bound to all of them, P1 has nothing left
    /// to choose by what it sees.
    pub(super) fn commit<'f>(
        &self,
        channel: &mut Channel,
        terms: &Terms<'f>,
        circuits: &mut Circuits<'f>,
        tokens: &Tokens,
    ) -> Result<Vec<Blocks>> {
        let (mut hashes, z) = circuits.finish(channel, terms, self)?;
        deviate(|script| script.table_hashes(&mut hashes));
        channel.send(hashes.as_flattened())?;
        let lanes = self.seeds.len();
        let deltas = self.seeds.deltas();
        let starts = starts(self.start, &self.all());
        let (mut column, mut table) = (zeros(terms.outputs), zeros(2 * terms.outputs));
        let mut all = Vec::new();
        for &kind in terms.kinds() {
            let mut cipher = encryption(&self.keys, kind);
            let mut columns = zeros(column_length(terms.outputs) * lanes);
            for j in 0..lanes {
                (0..terms.outputs).for_each(|i| column[i] = z[i * lanes + j]);
                output_table(starts[j], kind, deltas[j], &column, tokens.of(kind), &mut table);
                deviate(|script| script.output_table(j, kind, &mut table));
                let mut commitment = terms.oracle.tables(kind, j, &table);
                deviate(|script| script.table_commitment(j, &mut commitment));
                channel.send(&commitment)?;
                cipher.xor_one(j, &mut table);
                columns[column_length(terms.outputs) * j..][..2 * terms.outputs].copy_from_slice(&table);
            }
            let mut rows = zeros(2 * terms.outputs * lanes);
            by_gate(&columns, lanes, &mut rows);
            all.push(rows);
        }
        Ok(all)
    }
}

/// Step 5: the output tables, of every output all copies' together.
pub(super) fn send_tables(channel: &mut Channel, tables: Vec<Blocks>) -> Result<()> {
    for rows in tables {
        channel.send_blocks(&rows)?;
    }
    Ok(channel.flush()?)
}

/// H(Δ_{i,b}), by kind.
pub(super) type TokenHashes = Vec<Vec<[Digest; 2]>>;

/// What P2 checks at the end of what it received with the circuits.
pub(super) struct Received {
    pub(super) hashes: TokenHashes,
    /// Commitments to T of the check copies, by kind.
    pub(super) commitments: Vec<Vec<Digest>>,
    /// Zero-labels of the outputs in the check copies.
    pub(super) z: Blocks,
}

impl EvaluatorState {
    /// Step 5: {H(Δ_{i,b})}.
    pub(super) fn receive_token_hashes(
        &self,
        channel: &mut Channel,
        terms: &Terms<'_>,
    ) -> Result<TokenHashes> {
        let mut hashes = Vec::new();
        for _ in terms.kinds() {
            let mut kind = vec![[[0u8; 32]; 2]; terms.outputs];
            channel.recv(kind.as_flattened_mut().as_flattened_mut())?;
            hashes.push(kind);
        }
        Ok(hashes)
    }

    /// Step 6: opens T of the evaluation copies, so many outputs of all copies at a time; `each` is given
    /// them copy by copy, with the numbers of the kind and of the first output.
    ///
    /// Nothing is done for one copy while another's table is still to come: P1 would see by P2's pace which
    /// copies are opened.
    pub(super) fn receive_tables(
        &mut self,
        channel: &mut Channel,
        terms: &Terms<'_>,
        known: &Commitments,
        mut each: impl FnMut(usize, usize, &[Block]) -> Result<()>,
    ) -> Result<()> {
        let (total, active) = (self.total(), self.evaluated.len());
        let (mut rows, mut opened, mut columns) = (zeros(0), zeros(0), zeros(0));
        for (k, &kind) in terms.kinds().iter().enumerate() {
            let mut cipher = encryption(&self.keys, kind);
            let mut hashes = Hashes::new(self.evaluated.iter().map(|&j| terms.oracle.table_hasher(kind, j)));
            for first in (0..terms.outputs).step_by(ROWS) {
                let count = ROWS.min(terms.outputs - first);
                rows.resize(2 * count * total, Block::ZERO);
                opened.resize(2 * count * active, Block::ZERO);
                channel.recv_blocks(&mut rows)?;
                split(&rows, &self.evaluated, &self.checked, &mut opened);
                by_copy(&opened, active, &mut columns);
                for (e, table) in columns.chunks_exact_mut(column_length(count)).enumerate() {
                    cipher.xor_one(e, &mut table[..2 * count]);
                }
                hashes.columns(&columns);
                each(k, first, &columns)?;
            }
            let found = hashes.finish();
            self.check_digests(found.iter().zip(self.evaluated.clone().iter().map(|&j| &known.tables[k][j])));
        }
        Ok(())
    }

    /// The check copies' commitments to T.
    pub(super) fn checked_only(&self, known: Commitments) -> Vec<Vec<Digest>> {
        known.tables.iter().map(|kind| self.checked.iter().map(|&j| kind[j]).collect()).collect()
    }

    pub(super) fn check_tokens(
        &mut self,
        terms: &Terms<'_>,
        kind: Hidden,
        tokens: &[[Block; 2]],
        hashes: &[[Digest; 2]],
    ) {
        let found = terms.oracle.tokens(kind, 0, tokens);
        self.check_digests(found.as_flattened().iter().zip(hashes.as_flattened()));
    }

    /// Step 9 (c): the check copies' commitments to T, from their labels and the tokens.
    pub(super) fn check_tables(
        &mut self,
        terms: &Terms<'_>,
        kind: Hidden,
        tokens: &[[Block; 2]],
        z: &[Block],
        commitments: &[Digest],
    ) {
        let (checks, deltas) = (self.checked.len(), self.seeds.deltas());
        let starts = starts(self.start, &self.checked);
        let (mut column, mut table) = (zeros(terms.outputs), zeros(2 * terms.outputs));
        let mut found = Vec::with_capacity(checks);
        for c in 0..checks {
            (0..terms.outputs).for_each(|i| column[i] = z[i * checks + c]);
            output_table(starts[c], kind, deltas[c], &column, tokens, &mut table);
            found.push(terms.oracle.tables(kind, self.checked[c], &table));
        }
        self.check_digests(found.iter().zip(commitments));
    }
}
