//! What a request's correlations fill as they come.

use crate::{Error, Result};
use tacit_crypto::Block;
use zeroize::{Zeroize, Zeroizing};

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

/// The caller's memory, in parts that are filled one after the other.
pub(crate) struct Parts<'a>(Vec<&'a mut [Block]>);

impl Parts<'_> {
    /// The `n` places from `at` on, in as many pieces as parts that they lie in.
    fn pieces(&mut self, mut at: usize, mut n: usize) -> impl Iterator<Item = &mut [Block]> {
        self.0.iter_mut().filter_map(move |part| {
            let from = at.min(part.len());
            let here = n.min(part.len() - from);
            (at, n) = (at - from, n - here);
            (here > 0).then(|| &mut part[from..from + here])
        })
    }

    /// Lets `change` have the `n` places from `at` on as one.
    pub(crate) fn change(&mut self, at: usize, n: usize, change: impl FnOnce(&mut [Block])) {
        if let Some(piece) = self.pieces(at, n).next()
            && piece.len() == n
        {
            return change(piece);
        }
        let mut whole = Zeroizing::new(Vec::with_capacity(n));
        self.pieces(at, n).for_each(|piece| whole.extend_from_slice(piece));
        change(&mut whole);
        let mut from = &whole[..];
        for piece in self.pieces(at, n) {
            let (these, rest) = from.split_at(piece.len());
            piece.copy_from_slice(these);
            from = rest;
        }
    }
}

/// How a caller takes correlated OTs.
pub(crate) enum Taker<'a> {
    /// In memory of its own.
    Memory(Parts<'a>),
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
        Self::parts(vec![out])
    }

    pub(crate) fn parts(parts: Vec<&'a mut [Block]>) -> Self {
        let wanted = parts.iter().map(|part| part.len()).sum();
        Cots { wanted, to: Taker::Memory(Parts(parts)), filled: 0 }
    }

    pub(crate) fn each(wanted: usize, each: &'a mut dyn FnMut(&[Block])) -> Self {
        Cots { wanted, to: Taker::Each(each), filled: 0 }
    }
}

impl Blocks for Cots<'_> {
    fn put(&mut self, rows: &[Block]) {
        match &mut self.to {
            Taker::Memory(parts) => parts.change(self.filled, rows.len(), |out| out.copy_from_slice(rows)),
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
        if let Taker::Memory(parts) = &mut self.to {
            parts.0.iter_mut().for_each(|part| part.zeroize());
        }
    }
}
