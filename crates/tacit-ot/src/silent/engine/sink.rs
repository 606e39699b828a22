//! What a request's correlations fill as they come.

use crate::{Error, Result};
use tacit_crypto::Block;
use zeroize::Zeroize;

/// A request on its way.
pub(crate) trait Sink {
    /// Correlations that are wanted still.
    fn left(&self) -> usize;
    /// Leaves nothing provisional in the caller's memory.
    fn wipe(&mut self);
}

/// A request of blocks.
pub(crate) trait Blocks: Sink {
    /// Takes `rows`, no more than are wanted.
    fn put(&mut self, rows: &[Block]);
}

/// Elements of whatever field, in memory of the caller's.
pub(crate) struct Memory<'a, T> {
    out: &'a mut [T],
    filled: usize,
}

impl<'a, T> Memory<'a, T> {
    pub(crate) fn new(out: &'a mut [T]) -> Self {
        Memory { out, filled: 0 }
    }

    /// Length of the whole request.
    pub(crate) fn wanted(&self) -> usize {
        self.out.len()
    }

    /// Where the next elements go.
    pub(crate) fn rest(&mut self) -> &mut [T] {
        &mut self.out[self.filled..]
    }

    /// `n` more elements are there.
    pub(crate) fn advance(&mut self, n: usize) {
        self.filled += n;
    }
}

impl<T: Zeroize> Sink for Memory<'_, T> {
    fn left(&self) -> usize {
        self.out.len() - self.filled
    }

    fn wipe(&mut self) {
        self.out.iter_mut().for_each(Zeroize::zeroize);
    }
}

impl Blocks for Memory<'_, Block> {
    fn put(&mut self, rows: &[Block]) {
        self.rest()[..rows.len()].copy_from_slice(rows);
        self.advance(rows.len());
    }
}

/// A VOLE receiver's u and w, equally long.
pub(crate) struct Halves<'a, U, W> {
    pub u: Memory<'a, U>,
    pub w: Memory<'a, W>,
}

impl<'a, U, W> Halves<'a, U, W> {
    /// `Usage` unless there are as many u as w.
    pub(crate) fn new(protocol: &'static str, u: &'a mut [U], w: &'a mut [W]) -> Result<Self> {
        if u.len() != w.len() {
            return Err(Error::Usage { protocol, what: "as many u as w" });
        }
        Ok(Halves { u: Memory::new(u), w: Memory::new(w) })
    }

    /// `n` more correlations are there.
    pub(crate) fn advance(&mut self, n: usize) {
        self.u.advance(n);
        self.w.advance(n);
    }
}

impl<U: Zeroize, W: Zeroize> Sink for Halves<'_, U, W> {
    fn left(&self) -> usize {
        self.w.left()
    }

    fn wipe(&mut self) {
        self.u.wipe();
        self.w.wipe();
    }
}

/// How a caller takes correlated OTs.
pub(crate) enum Taker<'a> {
    /// In memory of its own.
    Memory(&'a mut [Block]),
    /// Piece by piece, while they are in cache.
    Each(&'a mut dyn FnMut(&[Block])),
}

/// Correlated OTs, taken either way.
pub(crate) struct Cots<'a> {
    pub to: Taker<'a>,
    wanted: usize,
    pub filled: usize,
}

impl<'a> Cots<'a> {
    pub(crate) fn memory(out: &'a mut [Block]) -> Self {
        Cots { wanted: out.len(), to: Taker::Memory(out), filled: 0 }
    }

    pub(crate) fn each(wanted: usize, each: &'a mut dyn FnMut(&[Block])) -> Self {
        Cots { wanted, to: Taker::Each(each), filled: 0 }
    }
}

impl Blocks for Cots<'_> {
    fn put(&mut self, rows: &[Block]) {
        match &mut self.to {
            Taker::Memory(out) => out[self.filled..][..rows.len()].copy_from_slice(rows),
            Taker::Each(each) => each(rows),
        }
        self.filled += rows.len();
    }
}

impl Sink for Cots<'_> {
    fn left(&self) -> usize {
        self.wanted - self.filled
    }

    fn wipe(&mut self) {
        if let Taker::Memory(out) = &mut self.to {
            out.zeroize();
        }
    }
}
