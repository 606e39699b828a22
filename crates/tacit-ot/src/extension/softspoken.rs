//! SoftSpoken: correlated OT for an eighth to a half of KOS' bytes, as little or as much of it as is wanted.
//!
//! - Source: Roy, "SoftSpokenOT" (CRYPTO 2022, 2022/192), binary, with the repetition code and k = 2, 4 or 8; its
//!   check is replaced by that of [KOS](super::kos), column by column.
//! - Realises: correlated OT, against parties that keep to the protocol or malicious ones with abort; a
//!   cheating receiver that passes learns c bits of Δ with probability at most 2^-c. From a base OT of the
//!   same security, a PRG (AES-128 in counter mode) and, malicious, a universal hash with χ from a random
//!   oracle where it is a hash.
//! - Rounds: one message of the receiver; three where the sender draws χ. Bytes an OT: 16/k; malicious 0.04 more,
//!   by hash 0.3; and once for the trees 2,016 (k = 2), 3,040 or 3,552. AES blocks an OT and party: 2^k/k.
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
//! That of [KOS](super::kos), by its code: the last block of a batch has random choices and the weight 1, the
//! receiver sends x = hash(r) and every column's hash t_i, and the sender checks t_i = hash(w_i) ⊕ Δ_i·x. χ is
//! drawn by the sender ([`SoftSender::setup`]), or a hash of all that was sent ([`SoftSender::begin`]).
//!
//! Whatever a cheating receiver sends, corrections of trees that do not fit included, fixes for each group
//! the columns W^D that the sender has if its k bits are D; all of them stand before χ is known. Let S be the
//! set of those Δ that pass, and Δ one of them. Columns of others in S that agree with Δ in a bit have its hash
//! there, and sums of Δ's column and of those that differ hash to x. There are 2^(k-1) of either for each bit;
//! that two different ones of these vectors hash alike has probability 2^-128 a pair: 2^-113, 2^-109 or 2^-101
//! for k = 2, 4, 8, and q times that with q trials of a hash. But for that there are V and r with
//! w_i = V_i ⊕ Δ_i·r for all Δ in S: outputs are as in an honest run, and passing has told that Δ is in S, which
//! has probability |S|/2^127.
//!
//! A sender cheats at nothing: it sends no message but χ, and of each group one stream stays unknown to it, so r is
//! hidden by u_g.

use super::Setup;
use super::columns::{COLUMNS, ReceivingColumns, STRIDE, Scratch, SendingColumns, TILE, scratch};
use super::either::{Either, of_either};
use super::iknp::{IknpReceiver, IknpSender, Pairs, receiver_seeds, sender_seeds};
use super::kos::{self, History, KosReceiver, KosSender, bytes_by_hash_of, bytes_of};
use crate::{BaseOt, ChosenCotReceiver, CotReceiver, CotSender, Result, Security};
use core::ops::Range;
use tacit_crypto::{BitVec, Block, KAPPA, Leaves, Prg};
use tacit_net::Channel;
use zeroize::{Zeroize, Zeroizing};

/// The protocol's short name.
pub const NAME: &str = "softspoken";

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

    /// What χ by hash are drawn for; nothing where that would leave less than others have, 2^-101 for each hash
    /// that is tried.
    const fn domain(self) -> Option<&'static str> {
        match self {
            Groups::Two => Some("tacit softspoken groups-2 v1"),
            Groups::Four => Some("tacit softspoken v1"),
            Groups::Eight => None,
        }
    }

    /// The history that χ by hash are of; nothing where there is no check or χ are drawn.
    fn history(self, channel: &mut Channel, security: Security, sender: bool) -> Option<History> {
        let domain = self.domain().filter(|_| security == Security::Malicious)?;
        Some(History::of(domain, channel, sender))
    }

    /// The columns of each group, counted from column 1.
    fn ranges(self) -> impl Iterator<Item = Range<usize>> {
        let bits = self.bits();
        (0..COLUMNS).step_by(bits).map(move |start| start..(start + bits).min(COLUMNS))
    }

    /// Bytes of both directions for `n` correlations asked for at once, of a set-up by `setup`, which itself sends
    /// [`trees_bytes`](Self::trees_bytes) beside the base OTs.
    pub fn bytes(self, n: usize, security: Security) -> u64 {
        match security {
            Security::Malicious => bytes_of(n, self.count()),
            Security::SemiHonest => (n.div_ceil(128) * self.count() * size_of::<Block>()) as u64,
        }
    }

    /// The same of a set-up by `begin`, where the first request sends the trees' bytes: all of them the
    /// receiver's.
    pub fn bytes_by_hash(self, n: usize, security: Security) -> u64 {
        match security {
            Security::Malicious => bytes_by_hash_of(n, self.count()),
            Security::SemiHonest => self.bytes(n, security),
        }
    }

    /// Bytes of a stream's state at most: round keys of leaves, and the columns that wait for their check.
    pub const fn held(self) -> u64 {
        let keys = self.count() << self.bits();
        ((keys * 11 + self.count() * TILE) * size_of::<Block>()) as u64 + kos::held()
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
    /// The next `total.len()` blocks of this group's columns, of which column 1 is the first in `all`, with what is
    /// given under the columns' masks. XORs the sum of all streams into `total`.
    fn sum(
        &mut self,
        total: &mut [Block],
        all: &mut [Block],
        stride: usize,
        given: Option<(&[Block], &[Block])>,
    ) {
        let given = given.map(|(blocks, masks)| (blocks, &masks[self.columns.clone()]));
        self.leaves.sum(total, &mut all[self.columns.start * stride..], stride, given);
    }

    fn fork(&mut self) -> Self {
        Group { columns: self.columns.clone(), leaves: self.leaves.fork() }
    }
}

/// The sender's columns.
pub struct SoftColumns {
    delta: Zeroizing<Block>,
    choices: Zeroizing<Vec<bool>>,
    masks: Scratch,
    /// Of base OT; none once the trees are open.
    seeds: Scratch,
    shape: Groups,
    /// Empty until the corrections have come.
    groups: Vec<Group>,
    u: Scratch,
    q: Scratch,
    /// Of a group the sum of all streams but one, which is of no use here.
    total: Scratch,
}

impl SoftColumns {
    fn new(delta: Block, seeds: &[Block], shape: Groups) -> Self {
        let choices: Zeroizing<Vec<bool>> = Zeroizing::new((1..KAPPA).map(|i| delta.bit(i)).collect());
        let masks = Zeroizing::new(choices.iter().map(|&bit| Block::mask(bit)).collect());
        let (u, q, total) = (scratch(shape.count() * TILE), scratch(KAPPA * STRIDE), scratch(TILE));
        let (delta, seeds) = (Zeroizing::new(delta), Zeroizing::new(seeds.to_vec()));
        SoftColumns { delta, choices, masks, seeds, shape, groups: Vec::new(), u, q, total }
    }
}

impl SendingColumns for SoftColumns {
    const PLAIN: &'static str = NAME;
    const CHECKED: &'static str = NAME;

    fn delta(&self) -> Block {
        *self.delta
    }

    /// Panics before the trees are open.
    fn fork(&mut self) -> Self {
        assert!(!self.groups.is_empty(), "the trees are open before a stream is forked");
        let groups = self.groups.iter_mut().map(Group::fork).collect();
        SoftColumns { groups, ..Self::new(*self.delta, &[], self.shape) }
    }

    /// Step 1: the trees' corrections.
    fn begin(&mut self, channel: &mut Channel) -> Result<Vec<Block>> {
        if !self.groups.is_empty() {
            return Ok(Vec::new());
        }
        let mut corrections = vec![Block::ZERO; self.shape.corrections()];
        channel.recv_blocks(&mut corrections)?;
        let mut rest = &corrections[..];
        for columns in self.shape.ranges() {
            let (ours, more) = rest.split_at(2 * (columns.len() - 1));
            rest = more;
            let leaves = punctured(&self.seeds[columns.clone()], &self.choices[columns.clone()], ours);
            let leaves = Leaves::new(&leaves[1..], columns.len());
            self.groups.push(Group { columns, leaves });
        }
        self.seeds.zeroize();
        Ok(corrections)
    }

    /// Steps 2 and 3.
    fn tile(&mut self, channel: &mut Channel, len: usize) -> Result<()> {
        let u = &mut self.u[..self.shape.count() * len];
        channel.recv_blocks(u)?;
        for (group, u) in self.groups.iter_mut().zip(u.chunks_exact(len)) {
            group.sum(&mut self.total[..len], &mut self.q[STRIDE..], STRIDE, Some((u, &self.masks)));
        }
        Ok(())
    }

    fn received(&self, len: usize) -> &[Block] {
        &self.u[..self.shape.count() * len]
    }

    fn columns(&self) -> &[Block] {
        &self.q
    }
}

/// The receiver's columns.
pub struct SoftChoices {
    /// Of base OT; none once the trees are sent.
    seeds: Pairs,
    shape: Groups,
    /// Empty until the corrections have been sent.
    groups: Vec<Group>,
    u: Scratch,
}

impl SoftChoices {
    fn new(seeds: &[[Block; 2]], shape: Groups) -> Self {
        let (seeds, u) = (Zeroizing::new(seeds.to_vec()), scratch(shape.count() * TILE));
        SoftChoices { seeds, shape, groups: Vec::new(), u }
    }

    /// The trees, and their corrections.
    fn grow(&mut self) -> Vec<Block> {
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

    fn columns(&mut self, t: &mut [Block], stride: usize, at: usize, len: usize) {
        let (choices, columns) = t.split_at_mut(stride);
        for (group, u) in self.groups.iter_mut().zip(self.u.chunks_exact_mut(len)) {
            u.copy_from_slice(&choices[at..at + len]);
            group.sum(u, &mut columns[at..], stride, None);
        }
    }
}

impl ReceivingColumns for SoftChoices {
    const PLAIN: &'static str = NAME;
    const CHECKED: &'static str = NAME;

    /// Panics before the trees are sent.
    fn fork(&mut self) -> Self {
        assert!(!self.groups.is_empty(), "the trees are sent before a stream is forked");
        let groups = self.groups.iter_mut().map(Group::fork).collect();
        SoftChoices { groups, ..Self::new(&[], self.shape) }
    }

    /// Step 1: the trees' corrections.
    fn begin(&mut self, channel: &mut Channel) -> Result<Vec<Block>> {
        if !self.groups.is_empty() {
            return Ok(Vec::new());
        }
        // proof: softspoken 2.2
        let corrections = self.grow();
        channel.send_blocks(&corrections)?;
        Ok(corrections)
    }

    /// Steps 2 and 3.
    fn tile(
        &mut self,
        channel: &mut Channel,
        t: &mut [Block],
        stride: usize,
        at: usize,
        len: usize,
    ) -> Result<()> {
        // proof: softspoken 2.3
        self.columns(t, stride, at, len);
        Ok(channel.send_blocks(self.sent(len))?)
    }

    fn sent(&self, len: usize) -> &[Block] {
        &self.u[..self.shape.count() * len]
    }
}

/// The sender of SoftSpoken.
pub struct SoftSender(Either<IknpSender<SoftColumns>, KosSender<SoftColumns>>);

impl SoftSender {
    /// Begins to set up from a base OT of at least `security`, in which this side receives; the receiver
    /// begins likewise, see [`BaseOt::begin_receive`]. χ is a hash of what was sent, so that a request is one
    /// message, but for groups of eight bits, where the sender draws it: for few OTs.
    ///
    /// Errors: those of the link and the base OT; `Usage` for a base OT that protects less.
    pub fn begin(
        channel: &mut Channel,
        base: &dyn BaseOt,
        prg: &mut Prg,
        security: Security,
        groups: Groups,
    ) -> Result<Setup<Self>> {
        let history = groups.history(channel, security, true);
        Self::begin_with(channel, base, prg, security, groups, history)
    }

    /// Sets up, the trees included, so that [`fork`](Self::fork) may follow; the receiver does likewise. χ are
    /// drawn by the sender as in KOS: for many OTs.
    ///
    /// Errors: as for [`begin`](Self::begin).
    pub fn setup(
        channel: &mut Channel,
        base: &dyn BaseOt,
        prg: &mut Prg,
        security: Security,
        groups: Groups,
    ) -> Result<Self> {
        let mut sender = Self::begin_with(channel, base, prg, security, groups, None)?(channel)?;
        of_either!(&mut sender.0, party => party.open(channel))?;
        Ok(sender)
    }

    fn begin_with(
        channel: &mut Channel,
        base: &dyn BaseOt,
        prg: &mut Prg,
        security: Security,
        groups: Groups,
        history: Option<History>,
    ) -> Result<Setup<Self>> {
        // proof: softspoken 2.1
        let columns = move |delta, seeds: &[Block]| SoftColumns::new(delta, seeds, groups);
        Ok(match security {
            Security::SemiHonest => {
                let (delta, rest) = sender_seeds(channel, base, prg)?;
                let delta = Zeroizing::new(delta);
                Box::new(move |channel| {
                    let sender = IknpSender::with(columns(*delta, &rest(channel)?));
                    Ok(SoftSender(Either::SemiHonest(sender.into())))
                })
            }
            Security::Malicious => {
                let setup = KosSender::begin_with(channel, base, prg, history, columns)?;
                Box::new(|channel| Ok(SoftSender(Either::Malicious(setup(channel)?.into()))))
            }
        })
    }

    /// An independent stream with the same Δ, for another channel; the receiver forks in step. When one stream
    /// fails, all are spent, those with a check on its way included.
    ///
    /// Panics unless this comes of [`setup`](Self::setup) or has been used.
    pub fn fork(&mut self) -> Self {
        SoftSender(self.0.fork())
    }
}

impl CotSender for SoftSender {
    fn delta(&self) -> Block {
        self.0.delta()
    }

    fn extend(&mut self, channel: &mut Channel, out: &mut [Block]) -> Result<()> {
        self.0.extend(channel, out)
    }

    fn extend_each(&mut self, channel: &mut Channel, n: usize, each: &mut dyn FnMut(&[Block])) -> Result<()> {
        of_either!(&mut self.0, party => party.extend_each(channel, n, each))
    }
}

/// The receiver of SoftSpoken.
pub struct SoftReceiver(Either<IknpReceiver<SoftChoices>, KosReceiver<SoftChoices>>);

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
        let history = groups.history(channel, security, false);
        Self::begin_with(channel, base, prg, security, groups, history)
    }

    /// Sets up, the trees included; see [`SoftSender::setup`].
    pub fn setup(
        channel: &mut Channel,
        base: &dyn BaseOt,
        prg: &mut Prg,
        security: Security,
        groups: Groups,
    ) -> Result<Self> {
        let mut receiver = Self::begin_with(channel, base, prg, security, groups, None)?(channel)?;
        of_either!(&mut receiver.0, party => party.open(channel))?;
        Ok(receiver)
    }

    fn begin_with(
        channel: &mut Channel,
        base: &dyn BaseOt,
        prg: &mut Prg,
        security: Security,
        groups: Groups,
        history: Option<History>,
    ) -> Result<Setup<Self>> {
        let columns = move |seeds: &[[Block; 2]]| SoftChoices::new(seeds, groups);
        Ok(match security {
            Security::SemiHonest => {
                let (rest, prg) = (receiver_seeds(channel, base, prg)?, prg.fork());
                Box::new(move |channel| {
                    let receiver = IknpReceiver::with(columns(&rest(channel)?), prg);
                    Ok(SoftReceiver(Either::SemiHonest(receiver.into())))
                })
            }
            Security::Malicious => {
                let setup = KosReceiver::begin_with(channel, base, prg, history, columns)?;
                Box::new(|channel| Ok(SoftReceiver(Either::Malicious(setup(channel)?.into()))))
            }
        })
    }

    /// An independent stream, for another channel; the sender forks in step.
    ///
    /// Panics unless this comes of [`setup`](Self::setup) or has been used.
    pub fn fork(&mut self) -> Self {
        SoftReceiver(self.0.fork())
    }
}

impl CotReceiver for SoftReceiver {
    fn is_answered(&self) -> bool {
        match &self.0 {
            Either::SemiHonest(_) => false,
            Either::Malicious(receiver) => receiver.is_answered(),
        }
    }

    fn extend(&mut self, channel: &mut Channel, out: &mut [Block]) -> Result<()> {
        self.0.extend(channel, out)
    }

    fn extend_each(&mut self, channel: &mut Channel, n: usize, each: &mut dyn FnMut(&[Block])) -> Result<()> {
        of_either!(&mut self.0, party => party.extend_each(channel, n, each))
    }
}

impl ChosenCotReceiver for SoftReceiver {
    fn extend_chosen(&mut self, channel: &mut Channel, choices: &BitVec, out: &mut [Block]) -> Result<()> {
        of_either!(&mut self.0, party => party.extend_chosen(channel, choices, out))
    }
}

#[cfg(test)]
mod tests;
