//! SoftSpoken: correlated OT for a quarter of IKNP's bytes, of which a session makes few.
//!
//! - Source: Roy, "SoftSpokenOT" (CRYPTO 2022, 2022/192), k = 4, binary; its check is replaced by that of
//!   [KOS](super::kos), column by column.
//! - Realises: correlated OT, against parties that keep to the protocol or malicious ones with abort; a
//!   cheating receiver that passes learns c bits of Δ with probability at most 2^-c. From a base OT of the
//!   same security, a PRG (AES-128 in counter mode) and, malicious, a universal hash with χ from a random
//!   oracle.
//! - Rounds: one message of the receiver. Bytes: 4 an OT, malicious 4.3, and once 3,040 for the trees.
//!
//! # Steps
//!
//! Δ_0 = 1 as everywhere; its other bits are the choices of 127 base OTs and are cut into groups of four.
//!
//! 1. The receiver makes for each group a tree of depth 4 whose levels' sums travel under the base OTs'
//!    seeds. So the sender has the leaf of every x but x = Δ_g, its four bits.
//! 2. Each leaf s_x is a stream. The receiver has u_g = ⊕_x s_x and for bit i of the group the column
//!    v_i = ⊕_{x_i = 1} s_x; the sender has w_i = ⊕_{x_i ≠ Δ_i} s_x = v_i ⊕ Δ_i·u_g.
//! 3. The receiver's choices r are the same for all groups: it sends d_g = r ⊕ u_g, and the sender adds
//!    Δ_i·d_g to w_i. Now w_i = v_i ⊕ Δ_i·r, as in IKNP, where a column travels for each bit.
//!
//! # The check
//!
//! As in KOS with χ by hash: the last block of a batch has random choices and the weight 1, the receiver
//! sends x = hash(r) and every column's hash t_i, and the sender checks t_i = hash(w_i) ⊕ Δ_i·x.
//!
//! Whatever a cheating receiver sends, corrections of trees that do not fit included, fixes for each group
//! the columns W^D that the sender has if its four bits are D; all of them stand before χ is known, since χ
//! hashes all that determines them. Let S be the set of those Δ that pass. Two of them that agree in bit i of
//! a group have W_i that hash alike; two that differ in it have W_i whose difference hashes to x. A group has
//! 16 values D, so the columns and their differences are at most 127·16²/2 < 2^14 vectors; that two different
//! ones of them hash alike has probability 2^27·2^-128, and with q trials of Fiat and Shamir q·2^-101. But
//! for that there are V and r with w_i = V_i ⊕ Δ_i·r for all Δ in S: outputs are as in an honest run, and
//! passing has told that Δ is in S, which has probability |S|/2^127.
//!
//! A sender cheats at nothing: it sends no message, and of each group one stream stays unknown to it, so r is
//! hidden by u_g.

use super::Setup;
use super::columns::{Scratch, masked_into, scratch, stride_for, xor_into};
use super::iknp::{COLUMNS, Choices, Pairs, TILE, receiver_seeds, sender_seeds};
use super::kos::{Binding, History, binding, require_malicious, weights};
use crate::spent::Spent;
use crate::{BaseOt, ChosenCotReceiver, CotReceiver, CotSender, Error, Result, Security};
use core::ops::Range;
use tacit_crypto::{BitVec, Block, KAPPA, Prg, gf128::ColumnSums, transpose::columns_to_rows};
use tacit_net::{Channel, Recording};
use zeroize::{Zeroize, Zeroizing};

/// The protocol's short name.
pub const NAME: &str = "softspoken";
/// Bits of Δ in a group.
// proof: softspoken 5.1
pub const DEPTH: usize = 4;
const GROUPS: usize = COLUMNS.div_ceil(DEPTH);
/// Two sums for each level of each tree but the first.
const CORRECTIONS: usize = 2 * (COLUMNS - GROUPS);
const STRIDE: usize = stride_for(TILE);
const DOMAIN: &str = "tacit softspoken v1";

/// Bytes of both directions for `n` correlations asked for at once, the base OTs left out; the first request
/// of a session sends [`TREES_BYTES`] more.
pub fn bytes(n: usize, security: Security) -> u64 {
    let blocks = match security {
        Security::Malicious => History::batches(n).map(|(_, data)| (data + 1) * GROUPS + KAPPA).sum(),
        Security::SemiHonest => n.div_ceil(128) * GROUPS,
    };
    (blocks * size_of::<Block>()) as u64
}

/// Bytes of the trees' corrections.
pub const TREES_BYTES: u64 = (CORRECTIONS * size_of::<Block>()) as u64;

/// The columns of each group, counted from column 1.
fn groups() -> impl Iterator<Item = Range<usize>> {
    (0..COLUMNS).step_by(DEPTH).map(|start| start..(start + DEPTH).min(COLUMNS))
}

/// The two nodes under one.
fn double(node: Block) -> [Block; 2] {
    let mut nodes = [Block::ZERO; 2];
    Prg::from_seed(node).fill_blocks(&mut nodes);
    nodes
}

/// The tree of `pairs`: its leaves, and two corrections for each level but the first.
fn tree(pairs: &[[Block; 2]], corrections: &mut Vec<Block>) -> Scratch {
    let mut nodes = Zeroizing::new(pairs[0].to_vec());
    for (level, [zero, one]) in pairs.iter().enumerate().skip(1) {
        let mut next = scratch(nodes.len() * 2);
        let mut sums = [*zero, *one];
        for (x, node) in nodes.iter().enumerate() {
            for (bit, child) in double(*node).into_iter().enumerate() {
                next[x | bit << level] = child;
                sums[bit] ^= child;
            }
        }
        corrections.extend(sums);
        nodes = next;
    }
    nodes
}

/// The leaves of a tree that its other side knows by `keys`, one of each pair as `choices` say. Leaf y
/// differs from the one that is not known, of all choices inverted, in the bits of y; leaf 0 is zero.
fn punctured(keys: &[Block], choices: &[bool], corrections: &[Block]) -> Scratch {
    let mut nodes = scratch(2);
    nodes[1] = keys[0];
    for (level, (key, &choice)) in keys.iter().zip(choices).enumerate().skip(1) {
        let mut next = scratch(nodes.len() * 2);
        let [zero, one] = [corrections[2 * level - 2], corrections[2 * level - 1]];
        let mut missing = *key ^ zero ^ ((zero ^ one) & Block::mask(choice));
        for (y, node) in nodes.iter().enumerate().skip(1) {
            // The child on the unknown leaf's side is that of the inverted choice.
            let [zero, one] = double(*node);
            let swap = (zero ^ one) & Block::mask(!choice);
            next[y] = zero ^ swap;
            next[y | 1 << level] = one ^ swap;
            missing ^= one ^ swap;
        }
        next[1 << level] = missing;
        nodes = next;
    }
    nodes
}

/// A column's streams, of one group: of the receiver's every leaf, of the sender's but one.
struct Group {
    columns: Range<usize>,
    streams: Vec<Prg>,
}

/// Whether the extension is checked, and what χ comes of.
enum Check {
    None,
    Hash(Box<History>),
}

impl Check {
    /// The blocks of rows that are made at once for `n` correlations: the first row, the blocks, and those
    /// thrown away.
    fn batches(&self, n: usize) -> Vec<(usize, usize, usize)> {
        match self {
            Check::Hash(_) => History::batches(n).map(|(start, data)| (start, data, 1)).collect(),
            Check::None => {
                let blocks = n.div_ceil(128);
                let starts = (0..blocks).step_by(TILE);
                starts.map(|start| (start * 128, (blocks - start).min(TILE), 0)).collect()
            }
        }
    }

    fn begin(
        channel: &mut Channel,
        base: &dyn BaseOt,
        security: Security,
        sender: bool,
    ) -> Result<Option<History>> {
        match security {
            Security::SemiHonest => Ok(None),
            Security::Malicious => {
                require_malicious(base, NAME)?;
                Ok(Some(History::of(DOMAIN, channel, sender)))
            }
        }
    }

    fn bound(history: Option<History>, seeds: &Binding) -> Self {
        history.map_or(Check::None, |history| Check::Hash(Box::new(history.bind(seeds))))
    }

    fn corrected(&mut self, corrections: &[Block]) {
        if let Check::Hash(history) = self {
            history.corrected(corrections);
        }
    }
}

/// The sender of SoftSpoken.
pub struct SoftSender {
    delta: Zeroizing<Block>,
    choices: Zeroizing<Vec<bool>>,
    masks: Zeroizing<Vec<u8>>,
    seeds: Scratch,
    /// Empty until the corrections have come.
    groups: Vec<Group>,
    u: Scratch,
    q: Scratch,
    check: Check,
    spent: Spent,
}

impl SoftSender {
    /// Begins to set up from a base OT of at least `security`, in which this side receives; the receiver
    /// begins likewise, see [`BaseOt::begin_receive`].
    ///
    /// Errors: those of the link and the base OT; `Usage` for a base OT that protects less.
    pub fn begin(
        channel: &mut Channel,
        base: &dyn BaseOt,
        prg: &mut Prg,
        security: Security,
    ) -> Result<Setup<Self>> {
        // proof: softspoken 2.1
        let history = Check::begin(channel, base, security, true)?;
        let mut passed = Recording::new(channel);
        let (delta, rest) = channel.record(&mut passed, |channel| sender_seeds(channel, base, prg))?;
        let (delta, name) = (Zeroizing::new(delta), base.name());
        Ok(Box::new(move |channel| {
            let seeds = channel.record(&mut passed, rest)?;
            let check = Check::bound(history, &binding("base", &[name.as_bytes(), &passed.digest()]));
            Ok(SoftSender::with(delta, seeds, check))
        }))
    }

    fn with(delta: Zeroizing<Block>, seeds: Scratch, check: Check) -> Self {
        let choices: Zeroizing<Vec<bool>> = Zeroizing::new((1..KAPPA).map(|i| delta.bit(i)).collect());
        let masks = Zeroizing::new(choices.iter().map(|&bit| u8::from(bit).wrapping_neg()).collect());
        let (u, q) = (scratch(GROUPS * TILE), scratch(KAPPA * STRIDE));
        SoftSender { delta, choices, masks, seeds, groups: Vec::new(), u, q, check, spent: Spent::default() }
    }

    /// Step 1, once.
    fn open(&mut self, channel: &mut Channel) -> Result<()> {
        let mut corrections = vec![Block::ZERO; CORRECTIONS];
        channel.recv_blocks(&mut corrections)?;
        self.check.corrected(&corrections);
        let mut rest = &corrections[..];
        for columns in groups() {
            let (ours, more) = rest.split_at(2 * (columns.len() - 1));
            rest = more;
            let leaves = punctured(&self.seeds[columns.clone()], &self.choices[columns.clone()], ours);
            let streams = leaves[1..].iter().map(|leaf| Prg::from_seed(*leaf)).collect();
            self.groups.push(Group { columns, streams });
        }
        self.seeds.zeroize();
        Ok(())
    }

    /// Steps 2 and 3 for `len` blocks of rows: Q's columns.
    fn tile(&mut self, channel: &mut Channel, len: usize) -> Result<()> {
        let u = &mut self.u[..GROUPS * len];
        channel.recv_blocks(u)?;
        let mut stream = scratch(len);
        for (Group { columns, streams }, u) in self.groups.iter_mut().zip(u.chunks_exact(len)) {
            let at = |column: usize| (column + 1) * STRIDE..(column + 1) * STRIDE + len;
            for column in columns.clone() {
                masked_into(&mut self.q[at(column)], u, self.masks[column]);
            }
            for (y, leaf) in streams.iter_mut().enumerate().map(|(at, leaf)| (at + 1, leaf)) {
                leaf.fill_blocks(&mut stream);
                for (bit, column) in columns.clone().enumerate() {
                    if y >> bit & 1 == 1 {
                        xor_into(&mut self.q[at(column)], &stream);
                    }
                }
            }
        }
        Ok(())
    }

    fn run(&mut self, channel: &mut Channel, out: &mut [Block]) -> Result<()> {
        if self.groups.is_empty() {
            self.open(channel)?;
        }
        let n = out.len();
        let mut all = Vec::new();
        for (start, data, more) in self.check.batches(n) {
            let len = data + more;
            self.tile(channel, len)?;
            if let Check::Hash(history) = &mut self.check {
                weights(history.challenge(&self.u[..GROUPS * len]), data, &mut all);
                let mut sums = ColumnSums::new(KAPPA);
                sums.add(&self.q, STRIDE, &all);
                let hashes = Zeroizing::new(sums.finish());
                let mut answer = [Block::ZERO; KAPPA];
                channel.recv_blocks(&mut answer)?;
                let (x, delta) = (answer[0], *self.delta);
                // proof: softspoken 2.4
                self.spent.settle(NAME, || {
                    let wrong = (1..KAPPA).fold(Block::ZERO, |wrong, i| {
                        wrong | (answer[i] ^ hashes[i] ^ (x & Block::mask(delta.bit(i))))
                    });
                    if wrong == Block::ZERO {
                        return Ok(());
                    }
                    Err(Error::Cheated { protocol: NAME, what: "the receiver's columns do not agree" })
                })?;
                history.answered(&answer);
            }
            let here = (n - start).min(data * 128);
            columns_to_rows(&self.q, STRIDE, &mut out[start..start + here]);
        }
        Ok(())
    }
}

impl CotSender for SoftSender {
    fn delta(&self) -> Block {
        *self.delta
    }

    fn extend(&mut self, channel: &mut Channel, out: &mut [Block]) -> Result<()> {
        self.spent.check(NAME)?;
        let result = self.run(channel, out);
        let result = self.spent.record(NAME, result);
        result.inspect_err(|_| out.zeroize())
    }
}

/// The receiver of SoftSpoken.
pub struct SoftReceiver {
    seeds: Pairs,
    /// Empty until the corrections have been sent.
    groups: Vec<Group>,
    t: Scratch,
    u: Scratch,
    prg: Prg,
    check: Check,
    spent: Spent,
}

impl SoftReceiver {
    /// Begins to set up from a base OT of at least `security`, in which this side sends; see
    /// [`SoftSender::begin`].
    pub fn begin(
        channel: &mut Channel,
        base: &dyn BaseOt,
        prg: &mut Prg,
        security: Security,
    ) -> Result<Setup<Self>> {
        let history = Check::begin(channel, base, security, false)?;
        let mut passed = Recording::new(channel);
        let rest = channel.record(&mut passed, |channel| receiver_seeds(channel, base, prg))?;
        let (prg, name) = (prg.fork(), base.name());
        Ok(Box::new(move |channel| {
            let seeds = channel.record(&mut passed, rest)?;
            let check = Check::bound(history, &binding("base", &[name.as_bytes(), &passed.digest()]));
            Ok(SoftReceiver::with(seeds, prg, check))
        }))
    }

    fn with(seeds: Pairs, prg: Prg, check: Check) -> Self {
        let (t, u) = (scratch((KAPPA + 1) * STRIDE), scratch(GROUPS * TILE));
        SoftReceiver { seeds, groups: Vec::new(), t, u, prg, check, spent: Spent::default() }
    }

    /// Step 1, once; gives the corrections that are to be sent.
    fn open(&mut self) -> Vec<Block> {
        // proof: softspoken 2.2
        let mut corrections = Vec::with_capacity(CORRECTIONS);
        for columns in groups() {
            let leaves = tree(&self.seeds[columns.clone()], &mut corrections);
            // s_x is the leaf of x inverted, so that the sender misses that of its own four bits.
            let streams = leaves.iter().rev().map(|leaf| Prg::from_seed(*leaf)).collect();
            self.groups.push(Group { columns, streams });
        }
        self.seeds.zeroize();
        corrections
    }

    /// Steps 2 and 3 for `len` blocks of rows, whose choices stand in column 0: T's other columns, and U.
    fn tile(&mut self, len: usize) {
        let mut stream = scratch(len);
        let (choices, rest) = self.t.split_at_mut(STRIDE);
        for (Group { columns, streams }, u) in self.groups.iter_mut().zip(self.u.chunks_exact_mut(len)) {
            let at = |column: usize| column * STRIDE..column * STRIDE + len;
            u.copy_from_slice(&choices[..len]);
            columns.clone().for_each(|column| rest[at(column)].fill(Block::ZERO));
            for (x, leaf) in streams.iter_mut().enumerate() {
                leaf.fill_blocks(&mut stream);
                xor_into(u, &stream);
                for (bit, column) in columns.clone().enumerate() {
                    if x >> bit & 1 == 1 {
                        xor_into(&mut rest[at(column)], &stream);
                    }
                }
            }
        }
    }

    fn run(&mut self, channel: &mut Channel, choices: &Choices<'_>, out: &mut [Block]) -> Result<()> {
        if self.groups.is_empty() {
            let corrections = self.open();
            self.check.corrected(&corrections);
            channel.send_blocks(&corrections)?;
        }
        let n = out.len();
        let mut all = Vec::new();
        for (start, data, more) in self.check.batches(n) {
            let len = data + more;
            // proof: softspoken 2.3
            choices.fill(start / 128, &mut self.prg, &mut self.t[..data]);
            self.prg.fill_blocks(&mut self.t[data..len]);
            self.tile(len);
            let u = &self.u[..GROUPS * len];
            channel.send_blocks(u)?;
            if let Check::Hash(history) = &mut self.check {
                weights(history.challenge(u), data, &mut all);
                let mut sums = ColumnSums::new(KAPPA);
                sums.add(&self.t, STRIDE, &all);
                let answer = sums.finish();
                channel.send_blocks(&answer)?;
                history.answered(&answer);
            }
            let here = (n - start).min(data * 128);
            columns_to_rows(&self.t, STRIDE, &mut out[start..start + here]);
        }
        channel.flush()?;
        Ok(())
    }

    fn extend_by(&mut self, channel: &mut Channel, choices: &Choices<'_>, out: &mut [Block]) -> Result<()> {
        self.spent.check(NAME)?;
        let result = self.run(channel, choices, out);
        let result = self.spent.record(NAME, result);
        result.inspect_err(|_| out.zeroize())
    }
}

impl CotReceiver for SoftReceiver {
    fn is_answered(&self) -> bool {
        false
    }

    fn extend(&mut self, channel: &mut Channel, out: &mut [Block]) -> Result<()> {
        self.extend_by(channel, &Choices::Random, out)
    }
}

impl ChosenCotReceiver for SoftReceiver {
    fn extend_chosen(&mut self, channel: &mut Channel, choices: &BitVec, out: &mut [Block]) -> Result<()> {
        if choices.len() != out.len() {
            return Err(Error::Usage { protocol: NAME, what: "one choice bit an OT" });
        }
        self.extend_by(channel, &Choices::Chosen(choices), out)
    }
}

#[cfg(test)]
mod tests;
