//! Objects in stores that speak S3, in a build that reads and writes none.

use crate::fault::{Error, Result};
use bytes::Bytes;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

/// See the module with the feature `s3`.
pub(crate) enum Object {}

impl Object {
    pub(crate) fn open(path: &Path) -> Result<Self> {
        Err(absent(path))
    }

    pub(crate) fn bytes(&self) -> u64 {
        match *self {}
    }

    pub(crate) fn stream(self: &Arc<Self>) -> io::Empty {
        match **self {}
    }

    pub(crate) fn read_at(self: &Arc<Self>, _: u64, _: &mut [u8]) -> io::Result<usize> {
        match **self {}
    }

    pub(crate) fn bytes_at(self: &Arc<Self>, _: u64, _: usize) -> io::Result<Bytes> {
        match **self {}
    }

    pub(crate) fn fault(&self) -> Option<Error> {
        match *self {}
    }
}

/// An object that is being written; see the module with the feature `s3`.
pub enum Upload {}

impl Upload {
    /// Refuses: this build writes no objects.
    pub fn check(path: &Path, _: bool) -> Result<()> {
        Err(absent(path))
    }

    /// Refuses: this build writes no objects.
    pub fn begin(path: &Path, _: bool) -> Result<Self> {
        Err(absent(path))
    }

    /// There is none to make room for.
    pub fn expect(&mut self, _: u64) {}

    /// There is none to finish.
    pub fn finish(self) -> Result<()> {
        match self {}
    }
}

impl Write for Upload {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        match *self {}
    }

    fn flush(&mut self) -> io::Result<()> {
        match *self {}
    }
}

/// There are none.
pub fn abort_uploads() {}

fn absent(path: &Path) -> Error {
    Error::NotBuilt { path: crate::place::shown(path), kind: "objects in S3" }
}
