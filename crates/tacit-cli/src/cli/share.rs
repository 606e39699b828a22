//! A side's share of what was made, in a NumPy archive.

use crate::cli::Context;
use crate::cli::output::{Output, name, write_fault};
use std::path::{Path, PathBuf};
use tacit::crypto::{BitVec, Block};
use tacit::data::npz::{self, Array, Element, Writer};
use tacit::data::values;
use tacit::job::ot::{Role, Sink};
use tacit::ot::{Kind, Sent};
use tacit::{Error, Result};
use zeroize::Zeroizing;

/// Says before the run that what it makes is thrown away, where no file was named for it.
pub(crate) fn note_none(out: Option<&Path>, context: &Context) {
    if out.is_none() {
        context.note("note: no --out: the result is discarded at the end");
    }
}

/// An archive of arrays while it is being written.
pub(crate) struct Arrays {
    writer: Writer<Output>,
    target: PathBuf,
}

impl Arrays {
    /// Lays out `arrays`, for which there must be room.
    pub(crate) fn new(mut out: Output, arrays: &[Array]) -> Result<Self> {
        out.reserve(npz::length(arrays))?;
        let target = out.target().to_owned();
        let writer = Writer::new(out, arrays).map_err(|e| write_fault(&target, e))?;
        Ok(Arrays { writer, target })
    }

    /// Puts `bytes` behind what this array has, counted in the order in which they were laid out.
    pub(crate) fn append(&mut self, array: usize, bytes: &[u8]) -> Result<()> {
        self.writer.append(array, bytes).map_err(|e| write_fault(&self.target, e))
    }

    /// Puts the whole archive in its place.
    pub(crate) fn finish(self) -> Result<()> {
        self.settle()?.commit()
    }

    /// The whole archive on the disk, but not yet in its place.
    pub(crate) fn settle(self) -> Result<Output> {
        let mut out = self.writer.finish().map_err(|e| write_fault(&self.target, e))?;
        out.settle()?;
        Ok(out)
    }
}

/// The share of transfers while it is being written.
pub(crate) struct Share {
    arrays: Arrays,
    delta_written: bool,
}

/// Indices of the arrays, in the order in which [`Share::new`] lays them out.
const FIRST: usize = 0;
const SECOND: usize = 1;

/// An archive for a share, whose name must not promise a table.
pub(crate) fn archive(target: &Path) -> Result<Output> {
    if values::is_table(target) {
        let what = format!("a share is an archive of arrays; name {} .npz", name(target));
        return Err(Error::Parameter { name: "out", what });
    }
    Output::create_archive(target)
}

impl Share {
    /// Lays out the share of `n` transfers of `kind`, for which there must be room.
    pub(crate) fn new(out: Output, kind: Kind, n: u64, role: Role) -> Result<Self> {
        let blocks = |name| Array::new(name, Element::U64, &[n, 2]);
        let choices = Array::new("u", Element::U8, &[n]);
        let correlated = kind == Kind::Cot;
        let arrays = match (role, correlated) {
            (Role::Sender, true) => [Array::new("delta", Element::U64, &[2]), blocks("v")],
            (Role::Sender, false) => [blocks("m0"), blocks("m1")],
            (Role::Receiver, true) => [choices, blocks("w")],
            (Role::Receiver, false) => [choices, blocks("m")],
        };
        Ok(Share { arrays: Arrays::new(out, &arrays)?, delta_written: false })
    }

    /// Puts the whole share in its place.
    pub(crate) fn finish(self) -> Result<()> {
        self.arrays.finish()
    }

    /// The whole share on the disk, but not yet in its place.
    pub(crate) fn settle(self) -> Result<Output> {
        self.arrays.settle()
    }
}

impl Sink for Share {
    fn sent(&mut self, part: Sent<'_>) -> Result<()> {
        match part {
            Sent::Cot(delta, v) => {
                if !self.delta_written {
                    self.delta_written = true;
                    self.arrays.append(FIRST, &delta.to_bytes())?;
                }
                self.arrays.append(SECOND, Block::as_bytes(v))
            }
            Sent::Pairs(pairs) => {
                for pieces in pairs.chunks(4096) {
                    for (side, array) in [FIRST, SECOND].into_iter().enumerate() {
                        let messages: Zeroizing<Vec<Block>> =
                            Zeroizing::new(pieces.iter().map(|pair| pair[side]).collect());
                        self.arrays.append(array, Block::as_bytes(&messages))?;
                    }
                }
                Ok(())
            }
            // The user has them already.
            Sent::Own(_) => Ok(()),
        }
    }

    fn received(&mut self, choices: &BitVec, messages: &[Block]) -> Result<()> {
        let bytes: Zeroizing<Vec<u8>> = Zeroizing::new(choices.iter().map(u8::from).collect());
        self.arrays.append(FIRST, &bytes)?;
        self.arrays.append(SECOND, Block::as_bytes(messages))
    }
}
