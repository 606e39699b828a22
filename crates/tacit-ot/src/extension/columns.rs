//! What IKNP, KOS and OOS share: columns of pseudo-random bits, and where the transposed rows go.
//!
//! The receiver holds two seeds a column, the sender the one that its Δ_i chose (KOS15, figure 3, COTe).
//! Everything here moves *tiles*: a few thousand rows of every column, small enough to stay in the
//! second-level cache from the PRG through the XOR and the wire to the transpose.

use crate::Result;
use tacit_crypto::{Block, KAPPA, Prg};
use tacit_net::Channel;
use zeroize::{Zeroize, Zeroizing};

/// The sender's columns before any check, made tile by tile: q_i = t_i ⊕ Δ_i·r (KOS15, figure 3, COTe).
pub trait SendingColumns: Send {
    /// The protocol's name without a check.
    const PLAIN: &'static str;
    /// And with one.
    const CHECKED: &'static str;

    /// The correlation Δ; its lowest bit is 1.
    fn delta(&self) -> Block;

    /// Independent columns with the same Δ; the receiver forks in step.
    fn fork(&mut self) -> Self;

    /// Receives once what the columns need beside their seeds; returns that, or nothing where nothing is needed.
    fn begin(&mut self, _channel: &mut Channel) -> Result<Vec<Block>> {
        Ok(Vec::new())
    }

    /// Receives U for `len` blocks of rows and makes Q's columns.
    fn tile(&mut self, channel: &mut Channel, len: usize) -> Result<()>;

    /// U of the last tile, of `len` blocks.
    fn received(&self, len: usize) -> &[Block];

    /// The last tile's columns, each [`STRIDE`] blocks after the one before.
    fn columns(&self) -> &[Block];
}

/// The receiver's counterpart of [`SendingColumns`].
pub trait ReceivingColumns: Send {
    /// The protocol's name without a check.
    const PLAIN: &'static str;
    /// And with one.
    const CHECKED: &'static str;

    /// Independent columns; the sender forks in step.
    fn fork(&mut self) -> Self;

    /// Sends once what the columns need beside their seeds; returns that, or nothing where nothing is needed.
    fn begin(&mut self, _channel: &mut Channel) -> Result<Vec<Block>> {
        Ok(Vec::new())
    }

    /// Makes T's columns 1 to 127 for `len` blocks of rows at `t[i * stride + at..]` and sends U. The choices
    /// stand already in column 0.
    fn tile(
        &mut self,
        channel: &mut Channel,
        t: &mut [Block],
        stride: usize,
        at: usize,
        len: usize,
    ) -> Result<()>;

    /// U of the last tile, of `len` blocks.
    fn sent(&self, len: usize) -> &[Block];
}

/// Blocks of 128 rows in a tile.
pub(super) const TILE: usize = 64;
/// Columns that need seeds: all but column 0.
pub(super) const COLUMNS: usize = KAPPA - 1;
/// From one column of a tile to the next.
pub(super) const STRIDE: usize = stride_for(TILE);

/// Scratch that is wiped when dropped.
pub(super) type Scratch = Zeroizing<Vec<Block>>;

/// `blocks` zero blocks that are wiped when dropped.
pub(super) fn scratch(blocks: usize) -> Scratch {
    Zeroizing::new(vec![Block::ZERO; blocks])
}

/// The distance in blocks between columns of `len` blocks: an odd number of cache lines, so that a walk
/// across the columns does not meet the same cache set at every step.
pub(super) const fn stride_for(len: usize) -> usize {
    (len.div_ceil(4) | 1) * 4
}

/// dst ⊕= a.
pub(super) fn xor_into(dst: &mut [Block], a: &[Block]) {
    // On bytes, because loops over 128-bit integers are not vectorised.
    for (d, a) in Block::as_bytes_mut(dst).iter_mut().zip(Block::as_bytes(a)) {
        *d ^= *a;
    }
}

/// dst = a ∧ mask, where every byte of `mask` is the same.
pub(super) fn masked_into(dst: &mut [Block], a: &[Block], mask: u8) {
    for (d, a) in Block::as_bytes_mut(dst).iter_mut().zip(Block::as_bytes(a)) {
        *d = *a & mask;
    }
}

/// The receiver's columns: two streams each.
pub(super) struct ReceiverColumns {
    streams: Vec<[Prg; 2]>,
}

impl ReceiverColumns {
    /// One column for each pair of seeds.
    pub(super) fn new(seeds: &[[Block; 2]]) -> Self {
        let streams = seeds.iter().map(|pair| pair.map(Prg::from_seed)).collect();
        ReceiverColumns { streams }
    }

    /// Independent columns with seeds drawn from these; the sender forks in step.
    pub(super) fn fork(&mut self) -> Self {
        let streams = self.streams.iter_mut().map(|[a, b]| [a.fork(), b.fork()]).collect();
        ReceiverColumns { streams }
    }

    /// The next `len` blocks of every column: t_i at `t[i * stride..]`, and u_i ⊕= t_i ⊕ PRG(k_i^1) at
    /// `u[i * len..]`, where the caller has put what column i encodes.
    pub(super) fn fill(&mut self, len: usize, t: &mut [Block], stride: usize, u: &mut [Block]) {
        for ((i, [zero, one]), u) in self.streams.iter_mut().enumerate().zip(u.chunks_exact_mut(len)) {
            let t = &mut t[i * stride..][..len];
            zero.fill_blocks(t);
            one.xor_blocks(u);
            xor_into(u, t);
        }
    }
}

/// The sender's columns: the stream that Δ_i chose, and Δ_i as a mask.
pub(super) struct SenderColumns {
    streams: Vec<Prg>,
    masks: Vec<u8>,
}

impl Drop for SenderColumns {
    fn drop(&mut self) {
        self.masks.zeroize();
    }
}

impl SenderColumns {
    /// One column for each seed, with its bit of Δ.
    pub(super) fn new(seeds: &[Block], delta: impl Iterator<Item = bool>) -> Self {
        SenderColumns {
            streams: seeds.iter().map(|seed| Prg::from_seed(*seed)).collect(),
            masks: delta.map(|bit| (bit as u8).wrapping_neg()).collect(),
        }
    }

    /// Independent columns with seeds drawn from these; the receiver forks in step.
    pub(super) fn fork(&mut self) -> Self {
        SenderColumns { streams: self.streams.iter_mut().map(Prg::fork).collect(), masks: self.masks.clone() }
    }

    /// The next `len` blocks of every column: q_i = PRG(k_i^Δi) ⊕ Δ_i·u_i at `q[i * stride..]`.
    pub(super) fn fill(&mut self, len: usize, u: &[Block], q: &mut [Block], stride: usize) {
        let columns = self.streams.iter_mut().zip(&self.masks).zip(u.chunks_exact(len));
        for (i, ((stream, mask), u)) in columns.enumerate() {
            let q = &mut q[i * stride..][..len];
            masked_into(q, u, *mask);
            stream.xor_blocks(q);
        }
    }
}

/// The sender's columns with their tile buffers.
pub struct CoteSender {
    delta: Zeroizing<Block>,
    columns: SenderColumns,
    u: Scratch,
    q: Scratch,
}

impl CoteSender {
    pub(super) fn new(delta: Block, seeds: &[Block]) -> Self {
        Self::with(delta, SenderColumns::new(seeds, (1..KAPPA).map(|i| delta.bit(i))))
    }

    fn with(delta: Block, columns: SenderColumns) -> Self {
        CoteSender {
            delta: Zeroizing::new(delta),
            columns,
            u: scratch(COLUMNS * TILE),
            q: scratch(KAPPA * STRIDE),
        }
    }
}

impl SendingColumns for CoteSender {
    const PLAIN: &'static str = "iknp";
    const CHECKED: &'static str = "kos";

    fn delta(&self) -> Block {
        *self.delta
    }

    fn fork(&mut self) -> Self {
        Self::with(*self.delta, self.columns.fork())
    }

    fn tile(&mut self, channel: &mut Channel, len: usize) -> Result<()> {
        let u = &mut self.u[..COLUMNS * len];
        channel.recv_blocks(u)?;
        // Column 0 of Q stays zero.
        self.columns.fill(len, u, &mut self.q[STRIDE..], STRIDE);
        Ok(())
    }

    fn received(&self, len: usize) -> &[Block] {
        &self.u[..COLUMNS * len]
    }

    fn columns(&self) -> &[Block] {
        &self.q
    }
}

/// The receiver's columns with the buffer of one tile's U.
pub struct CoteReceiver {
    columns: ReceiverColumns,
    u: Scratch,
}

impl CoteReceiver {
    pub(super) fn new(seeds: &[[Block; 2]]) -> Self {
        CoteReceiver { columns: ReceiverColumns::new(seeds), u: scratch(COLUMNS * TILE) }
    }
}

impl ReceivingColumns for CoteReceiver {
    const PLAIN: &'static str = "iknp";
    const CHECKED: &'static str = "kos";

    fn fork(&mut self) -> Self {
        CoteReceiver { columns: self.columns.fork(), u: scratch(COLUMNS * TILE) }
    }

    fn tile(
        &mut self,
        channel: &mut Channel,
        t: &mut [Block],
        stride: usize,
        at: usize,
        len: usize,
    ) -> Result<()> {
        let (zero, rest) = t.split_at_mut(stride);
        let u = &mut self.u[..COLUMNS * len];
        for u in u.chunks_exact_mut(len) {
            u.copy_from_slice(&zero[at..at + len]);
        }
        self.columns.fill(len, &mut rest[at..], stride, u);
        Ok(channel.send_blocks(u)?)
    }

    fn sent(&self, len: usize) -> &[Block] {
        &self.u[..COLUMNS * len]
    }
}

/// Where an extension puts its rows, tile by tile and in order.
pub(super) trait Rows {
    /// Room for rows `start..start + n`.
    fn place(&mut self, start: usize, n: usize) -> &mut [Block];
    /// Rows `start..start + n` are there.
    fn done(&mut self, _start: usize, _n: usize) {}
}

/// Rows straight into the caller's buffer.
pub(super) struct Direct<'a>(pub(super) &'a mut [Block]);

impl Rows for Direct<'_> {
    fn place(&mut self, start: usize, n: usize) -> &mut [Block] {
        &mut self.0[start..start + n]
    }
}

/// Rows handed on while they are hot in cache.
pub(super) struct Each<'a> {
    rows: Scratch,
    each: &'a mut dyn FnMut(&[Block]),
}

impl<'a> Each<'a> {
    /// Calls `each` with every piece.
    pub(super) fn new(each: &'a mut dyn FnMut(&[Block])) -> Self {
        Each { rows: scratch(0), each }
    }
}

impl Rows for Each<'_> {
    fn place(&mut self, _start: usize, n: usize) -> &mut [Block] {
        if self.rows.len() < n {
            self.rows = scratch(n);
        }
        &mut self.rows[..n]
    }

    fn done(&mut self, _start: usize, n: usize) {
        (self.each)(&self.rows[..n]);
    }
}
