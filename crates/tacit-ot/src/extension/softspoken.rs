//! SoftSpoken: correlated OT for an eighth to a half of KOS' bytes, as little or as much of it as is wanted.
//!
//! - Source: Roy, "SoftSpokenOT" (CRYPTO 2022, 2022/192), binary, with the repetition code and k = 2, 4 or 8; its
//!   check is replaced by that of [KOS](super::kos), column by column.
//! - Realises: correlated OT, against parties that keep to the protocol or malicious ones with abort; a
//!   cheating receiver that passes learns c bits of Δ with probability at most 2^-c. From a base OT of the
//!   same security, a PRG (AES-128 in counter mode) and, malicious, a universal hash with χ from a random
//!   oracle.
//! - Rounds: one message of the receiver. Bytes an OT: 16/k, malicious 0.26 + 16.2/k, and once for the trees 2,016
//!   (k = 2), 3,040 or 3,552. AES blocks an OT and party: 2^k/k.
//!
//! # Steps
//!
//! Δ_0 = 1 as everywhere; its other bits are the choices of 127 base OTs and are cut into groups of k.
//!
//! 1. The receiver makes for each group a tree of depth k whose levels' sums travel under the base OTs'
//!    seeds. So the sender has the leaf of every x but x = Δ_g, its k bits.
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
//! the columns W^D that the sender has if its k bits are D; all of them stand before χ is known, since χ
//! hashes all that determines them. Let S be the set of those Δ that pass. Two of them that agree in bit i of
//! a group have W_i that hash alike; two that differ in it have W_i whose difference hashes to x. There are 127·2^k
//! columns and 127·4^(k-1) such differences; that two different ones of these vectors hash alike has probability
//! 2^-128 a pair, so with q trials of Fiat and Shamir q·2^-101 for k = 4. But
//! for that there are V and r with w_i = V_i ⊕ Δ_i·r for all Δ in S: outputs are as in an honest run, and
//! passing has told that Δ is in S, which has probability |S|/2^127.
//!
//! A sender cheats at nothing: it sends no message, and of each group one stream stays unknown to it, so r is
//! hidden by u_g.

use super::Setup;
use super::columns::{Direct, Each, Rows, Scratch, scratch, stride_for};
use super::iknp::{COLUMNS, Choices, Pairs, TILE, receiver_seeds, sender_seeds};
use super::kos::{Binding, History, binding, require_malicious, weights};
use crate::spent::Spent;
use crate::{BaseOt, ChosenCotReceiver, CotReceiver, CotSender, Error, Result, Security};
use core::ops::Range;
use tacit_crypto::{BitVec, Block, KAPPA, Leaves, Prg, gf128::ColumnSums, transpose::columns_to_rows};
use tacit_net::{Channel, Recording};
use zeroize::{Zeroize, Zeroizing};

/// The protocol's short name.
pub const NAME: &str = "softspoken";
const STRIDE: usize = stride_for(TILE);

/// Into groups of how many bits Δ is cut: with more of them fewer bytes travel and more is computed.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Groups {
    /// Of two bits: 8 bytes and 2 blocks of AES an OT.
    Two,
    /// Of four bits: 4 bytes and 4 blocks of AES an OT.
    #[default]
    Four,
    /// Of eight bits: 2 bytes and 32 blocks of AES an OT.
    Eight,
}

impl Groups {
    /// Every way of cutting.
    pub const ALL: [Groups; 3] = [Groups::Two, Groups::Four, Groups::Eight];

    /// Bits of Δ in a group, but for the last one, which has what is left of 127.
    // proof: softspoken 5.1
    pub const fn bits(self) -> usize {
        match self {
            Groups::Two => 2,
            Groups::Four => 4,
            Groups::Eight => 8,
        }
    }

    /// The name.
    pub const fn name(self) -> &'static str {
        match self {
            Groups::Two => "groups-2",
            Groups::Four => "groups-4",
            Groups::Eight => "groups-8",
        }
    }

    /// That of a name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|groups| groups.name() == name)
    }

    /// Groups of 127 bits.
    pub const fn count(self) -> usize {
        COLUMNS.div_ceil(self.bits())
    }

    /// Two sums for each level of each tree but the first.
    const fn corrections(self) -> usize {
        2 * (COLUMNS - self.count())
    }

    /// What χ is drawn for.
    const fn domain(self) -> &'static str {
        match self {
            Groups::Two => "tacit softspoken groups-2 v1",
            Groups::Four => "tacit softspoken v1",
            Groups::Eight => "tacit softspoken groups-8 v1",
        }
    }

    /// The columns of each group, counted from column 1.
    fn ranges(self) -> impl Iterator<Item = Range<usize>> {
        let bits = self.bits();
        (0..COLUMNS).step_by(bits).map(move |start| start..(start + bits).min(COLUMNS))
    }

    /// Bytes of both directions for `n` correlations asked for at once, the base OTs left out; the first request
    /// of a session sends [`trees_bytes`](Self::trees_bytes) more.
    pub fn bytes(self, n: usize, security: Security) -> u64 {
        let blocks = match security {
            Security::Malicious => {
                History::batches(n).map(|(_, data)| (data + 1) * self.count() + KAPPA).sum()
            }
            Security::SemiHonest => n.div_ceil(128) * self.count(),
        };
        (blocks * size_of::<Block>()) as u64
    }

    /// Bytes of a stream's state: the leaves' round keys above all.
    pub const fn held(self) -> u64 {
        let keys = self.count() << self.bits();
        ((keys * 11 + self.count() * TILE + (KAPPA + 1) * STRIDE) * size_of::<Block>()) as u64
    }

    /// Bytes of the trees' corrections.
    pub const fn trees_bytes(self) -> u64 {
        (self.corrections() * size_of::<Block>()) as u64
    }
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

/// A group's columns and its streams: of the receiver's every leaf, of the sender's all but one.
struct Group {
    columns: Range<usize>,
    leaves: Leaves,
}

impl Group {
    /// The next `total.len()` blocks of this group's columns, in `all`, whose first is column 1, with what is given
    /// under the columns' masks. XORs the sum of all streams into `total`.
    fn sum(&mut self, total: &mut [Block], all: &mut [Block], given: Option<(&[Block], &[Block])>) {
        let columns = self.columns.start * STRIDE..self.columns.end * STRIDE;
        let given = given.map(|(blocks, masks)| (blocks, &masks[self.columns.clone()]));
        self.leaves.sum(total, &mut all[columns], STRIDE, given);
    }

    fn fork(&mut self) -> Self {
        Group { columns: self.columns.clone(), leaves: self.leaves.fork() }
    }
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
        groups: Groups,
        sender: bool,
    ) -> Result<Option<History>> {
        match security {
            Security::SemiHonest => Ok(None),
            Security::Malicious => {
                require_malicious(base, NAME)?;
                Ok(Some(History::of(groups.domain(), channel, sender)))
            }
        }
    }

    fn bound(history: Option<History>, seeds: &Binding) -> Self {
        history.map_or(Check::None, |history| Check::Hash(Box::new(history.bind(seeds))))
    }

    fn fork(&mut self) -> Self {
        match self {
            Check::None => Check::None,
            Check::Hash(history) => Check::Hash(Box::new(history.fork())),
        }
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
    masks: Scratch,
    seeds: Scratch,
    shape: Groups,
    /// Empty until the corrections have come.
    groups: Vec<Group>,
    u: Scratch,
    q: Scratch,
    /// Of a group the sum of all streams but one, which is of no use here.
    total: Scratch,
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
        groups: Groups,
    ) -> Result<Setup<Self>> {
        // proof: softspoken 2.1
        let history = Check::begin(channel, base, security, groups, true)?;
        let mut passed = Recording::new(channel);
        let (delta, rest) = channel.record(&mut passed, |channel| sender_seeds(channel, base, prg))?;
        let (delta, name) = (Zeroizing::new(delta), base.name());
        Ok(Box::new(move |channel| {
            let seeds = channel.record(&mut passed, rest)?;
            let check = Check::bound(history, &binding("base", &[name.as_bytes(), &passed.digest()]));
            Ok(SoftSender::with(delta, seeds, groups, check))
        }))
    }

    /// Sets up, the trees included, so that [`fork`](Self::fork) may follow; the receiver does likewise.
    pub fn setup(
        channel: &mut Channel,
        base: &dyn BaseOt,
        prg: &mut Prg,
        security: Security,
        groups: Groups,
    ) -> Result<Self> {
        let mut sender = Self::begin(channel, base, prg, security, groups)?(channel)?;
        sender.open(channel)?;
        Ok(sender)
    }

    fn with(delta: Zeroizing<Block>, seeds: Scratch, shape: Groups, check: Check) -> Self {
        let choices: Zeroizing<Vec<bool>> = Zeroizing::new((1..KAPPA).map(|i| delta.bit(i)).collect());
        let masks = Zeroizing::new(choices.iter().map(|&bit| Block::mask(bit)).collect());
        let (u, q, total) = (scratch(shape.count() * TILE), scratch(KAPPA * STRIDE), scratch(TILE));
        let (groups, spent) = (Vec::new(), Spent::default());
        SoftSender { delta, choices, masks, seeds, shape, groups, u, q, total, check, spent }
    }

    /// An independent stream with the same Δ, for another channel; the receiver forks in step. When one stream
    /// fails, all are spent, those with a check on its way included.
    ///
    /// Panics unless this comes of [`setup`](Self::setup) or has been used.
    pub fn fork(&mut self) -> Self {
        assert!(!self.groups.is_empty(), "the trees are open before a stream is forked");
        let mut fork = Self::with(self.delta.clone(), scratch(0), self.shape, self.check.fork());
        fork.groups = self.groups.iter_mut().map(Group::fork).collect();
        fork.spent = self.spent.clone();
        fork
    }

    /// Step 1, once.
    fn open(&mut self, channel: &mut Channel) -> Result<()> {
        let mut corrections = vec![Block::ZERO; self.shape.corrections()];
        channel.recv_blocks(&mut corrections)?;
        self.check.corrected(&corrections);
        let mut rest = &corrections[..];
        for columns in self.shape.ranges() {
            let (ours, more) = rest.split_at(2 * (columns.len() - 1));
            rest = more;
            let leaves = punctured(&self.seeds[columns.clone()], &self.choices[columns.clone()], ours);
            let leaves = Leaves::new(&leaves[1..], columns.len());
            self.groups.push(Group { columns, leaves });
        }
        self.seeds.zeroize();
        Ok(())
    }

    /// Steps 2 and 3 for `len` blocks of rows: Q's columns.
    fn tile(&mut self, channel: &mut Channel, len: usize) -> Result<()> {
        let u = &mut self.u[..self.shape.count() * len];
        channel.recv_blocks(u)?;
        let columns = &mut self.q[STRIDE..];
        for (group, u) in self.groups.iter_mut().zip(u.chunks_exact(len)) {
            group.sum(&mut self.total[..len], columns, Some((u, &self.masks)));
        }
        Ok(())
    }

    fn run(&mut self, channel: &mut Channel, n: usize, rows: &mut dyn Rows) -> Result<()> {
        self.spent.check(NAME)?;
        let result = self.batches(channel, n, rows);
        self.spent.record(NAME, result)
    }

    fn batches(&mut self, channel: &mut Channel, n: usize, rows: &mut dyn Rows) -> Result<()> {
        if self.groups.is_empty() {
            self.open(channel)?;
        }
        let mut all = Vec::new();
        for (start, data, more) in self.check.batches(n) {
            let len = data + more;
            self.tile(channel, len)?;
            if let Check::Hash(history) = &mut self.check {
                weights(history.challenge(&self.u[..self.shape.count() * len]), data, &mut all);
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
            columns_to_rows(&self.q, STRIDE, rows.place(start, here));
            rows.done(start, here);
        }
        Ok(())
    }
}

impl CotSender for SoftSender {
    fn delta(&self) -> Block {
        *self.delta
    }

    fn extend(&mut self, channel: &mut Channel, out: &mut [Block]) -> Result<()> {
        self.run(channel, out.len(), &mut Direct(out)).inspect_err(|_| out.zeroize())
    }

    fn extend_each(&mut self, channel: &mut Channel, n: usize, each: &mut dyn FnMut(&[Block])) -> Result<()> {
        self.run(channel, n, &mut Each::new(each))
    }
}

/// The receiver of SoftSpoken.
pub struct SoftReceiver {
    seeds: Pairs,
    shape: Groups,
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
        groups: Groups,
    ) -> Result<Setup<Self>> {
        let history = Check::begin(channel, base, security, groups, false)?;
        let mut passed = Recording::new(channel);
        let rest = channel.record(&mut passed, |channel| receiver_seeds(channel, base, prg))?;
        let (prg, name) = (prg.fork(), base.name());
        Ok(Box::new(move |channel| {
            let seeds = channel.record(&mut passed, rest)?;
            let check = Check::bound(history, &binding("base", &[name.as_bytes(), &passed.digest()]));
            Ok(SoftReceiver::with(seeds, groups, prg, check))
        }))
    }

    /// Sets up, the trees included; see [`SoftSender::setup`].
    pub fn setup(
        channel: &mut Channel,
        base: &dyn BaseOt,
        prg: &mut Prg,
        security: Security,
        groups: Groups,
    ) -> Result<Self> {
        let mut receiver = Self::begin(channel, base, prg, security, groups)?(channel)?;
        receiver.send_trees(channel)?;
        channel.flush()?;
        Ok(receiver)
    }

    fn with(seeds: Pairs, shape: Groups, prg: Prg, check: Check) -> Self {
        let (t, u) = (scratch((KAPPA + 1) * STRIDE), scratch(shape.count() * TILE));
        SoftReceiver { seeds, shape, groups: Vec::new(), t, u, prg, check, spent: Spent::default() }
    }

    /// An independent stream, for another channel; the sender forks in step.
    ///
    /// Panics unless this comes of [`setup`](Self::setup) or has been used.
    pub fn fork(&mut self) -> Self {
        assert!(!self.groups.is_empty(), "the trees are sent before a stream is forked");
        let mut fork = Self::with(Pairs::default(), self.shape, self.prg.fork(), self.check.fork());
        fork.groups = self.groups.iter_mut().map(Group::fork).collect();
        fork.spent = self.spent.clone();
        fork
    }

    /// Step 1, once; gives the corrections that are to be sent.
    fn open(&mut self) -> Vec<Block> {
        // proof: softspoken 2.2
        let mut corrections = Vec::with_capacity(self.shape.corrections());
        for columns in self.shape.ranges() {
            let mut leaves = tree(&self.seeds[columns.clone()], &mut corrections);
            // s_x is the leaf of x inverted, so that the sender misses that of its own bits.
            leaves.reverse();
            let leaves = Leaves::new(&leaves, columns.len());
            self.groups.push(Group { columns, leaves });
        }
        self.seeds.zeroize();
        corrections
    }

    /// Steps 2 and 3 for `len` blocks of rows, whose choices stand in column 0: T's other columns, and U.
    fn tile(&mut self, len: usize) {
        let (choices, columns) = self.t.split_at_mut(STRIDE);
        for (group, u) in self.groups.iter_mut().zip(self.u.chunks_exact_mut(len)) {
            u.copy_from_slice(&choices[..len]);
            group.sum(u, columns, None);
        }
    }

    fn send_trees(&mut self, channel: &mut Channel) -> Result<()> {
        let corrections = self.open();
        self.check.corrected(&corrections);
        Ok(channel.send_blocks(&corrections)?)
    }

    fn run(
        &mut self,
        channel: &mut Channel,
        choices: &Choices<'_>,
        n: usize,
        rows: &mut dyn Rows,
    ) -> Result<()> {
        self.spent.check(NAME)?;
        let result = self.batches(channel, choices, n, rows);
        self.spent.record(NAME, result)
    }

    fn batches(
        &mut self,
        channel: &mut Channel,
        choices: &Choices<'_>,
        n: usize,
        rows: &mut dyn Rows,
    ) -> Result<()> {
        if self.groups.is_empty() {
            self.send_trees(channel)?;
        }
        let mut all = Vec::new();
        for (start, data, more) in self.check.batches(n) {
            let len = data + more;
            // proof: softspoken 2.3
            choices.fill(start / 128, &mut self.prg, &mut self.t[..data]);
            self.prg.fill_blocks(&mut self.t[data..len]);
            self.tile(len);
            let u = &self.u[..self.shape.count() * len];
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
            columns_to_rows(&self.t, STRIDE, rows.place(start, here));
            rows.done(start, here);
        }
        channel.flush()?;
        Ok(())
    }
}

impl CotReceiver for SoftReceiver {
    fn is_answered(&self) -> bool {
        false
    }

    fn extend(&mut self, channel: &mut Channel, out: &mut [Block]) -> Result<()> {
        self.run(channel, &Choices::Random, out.len(), &mut Direct(out)).inspect_err(|_| out.zeroize())
    }

    fn extend_each(&mut self, channel: &mut Channel, n: usize, each: &mut dyn FnMut(&[Block])) -> Result<()> {
        self.run(channel, &Choices::Random, n, &mut Each::new(each))
    }
}

impl ChosenCotReceiver for SoftReceiver {
    fn extend_chosen(&mut self, channel: &mut Channel, choices: &BitVec, out: &mut [Block]) -> Result<()> {
        if choices.len() != out.len() {
            return Err(Error::Usage { protocol: NAME, what: "one choice bit an OT" });
        }
        self.run(channel, &Choices::Chosen(choices), out.len(), &mut Direct(out))
            .inspect_err(|_| out.zeroize())
    }
}

#[cfg(test)]
mod tests;
