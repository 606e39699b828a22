//! The byte stream under a channel.

use crate::{Error, Result};
use rustix::fd::BorrowedFd;
use std::io::{IoSlice, IoSliceMut};
use std::time::Duration;

/// What to wait for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Interest {
    /// Bytes from the peer.
    Read,
    /// Room for bytes to the peer.
    Write,
    /// Either.
    Both,
}

impl Interest {
    /// Whether reading is of interest.
    pub fn reads(self) -> bool {
        self != Interest::Write
    }

    /// Whether writing is of interest.
    pub fn writes(self) -> bool {
        self != Interest::Read
    }
}

/// What a read found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arrival {
    /// So many bytes, at least one.
    Bytes(usize),
    /// Nothing just now.
    Nothing,
    /// The end of the stream.
    End,
}

/// A duplex byte stream that never blocks but in [`wait`](Link::wait), so that one thread can send and
/// receive at the same time and two parties that both send first never lock each other.
pub trait Link: Send {
    /// Takes bytes from the front of `slices`; returns how many, 0 when there is no room just now.
    fn try_write(&mut self, slices: &[IoSlice<'_>]) -> Result<usize>;

    /// Moves what was taken on towards the peer; true once nothing needs this side's attention any more.
    fn try_flush(&mut self) -> Result<bool> {
        Ok(true)
    }

    /// Fills `slices` from the front with what is there.
    fn try_read(&mut self, slices: &mut [IoSliceMut<'_>]) -> Result<Arrival>;

    /// Sleeps until the interest may be served; false when `timeout` passed first. May wake early.
    fn wait(&mut self, interest: Interest, timeout: Duration) -> Result<bool>;

    /// What the operating system can wait for together with others of its kind; nothing where there is none.
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Whether this side was told to end, by its [`Cancel`](crate::Cancel).
    fn is_cancelled(&self) -> bool {
        false
    }

    /// Bytes that really left and arrived at the lowest layer that this side sees.
    fn wire_bytes(&self) -> (u64, u64);

    /// Tells the peer that no more bytes follow. Called once, after the last flush.
    fn finish(&mut self) {}
}

/// Total length of `slices`.
pub(crate) fn total(slices: &[IoSlice<'_>]) -> usize {
    slices.iter().map(|slice| slice.len()).sum()
}

/// The bytes of `slices` in one piece.
pub(crate) fn gather(slices: &[IoSlice<'_>]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(total(slices));
    for slice in slices {
        bytes.extend_from_slice(slice);
    }
    bytes
}

/// The bytes of `slices` in pieces of at most `size`.
pub(crate) fn cut(slices: &[IoSlice<'_>], size: usize) -> Vec<Vec<u8>> {
    let mut left = total(slices);
    let mut pieces: Vec<Vec<u8>> = Vec::with_capacity(left.div_ceil(size));
    let mut room = 0;
    for slice in slices {
        let mut rest: &[u8] = slice;
        while !rest.is_empty() {
            if room == 0 {
                room = size.min(left);
                pieces.push(Vec::with_capacity(room));
            }
            let (head, tail) = rest.split_at(room.min(rest.len()));
            if let Some(piece) = pieces.last_mut() {
                piece.extend_from_slice(head);
            }
            room -= head.len();
            left -= head.len();
            rest = tail;
        }
    }
    pieces
}

/// What is left of a channel whose link went elsewhere.
pub(crate) struct Gone;

impl Link for Gone {
    fn try_write(&mut self, _: &[IoSlice<'_>]) -> Result<usize> {
        Err(Error::Broken)
    }

    fn try_read(&mut self, _: &mut [IoSliceMut<'_>]) -> Result<Arrival> {
        Err(Error::Broken)
    }

    fn wait(&mut self, _: Interest, _: Duration) -> Result<bool> {
        Err(Error::Broken)
    }

    fn wire_bytes(&self) -> (u64, u64) {
        (0, 0)
    }
}
