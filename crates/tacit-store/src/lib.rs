//! What outlives a process: files sealed with a key of this machine, and what is used up on the disk before
//! it is used.
//!
//! - [`sealed`]: files sealed with a key of this machine, open in one process at a time.
//! - [`pool`]: correlations made ahead, each used at most once.
//! - [`nisc`]: a receiver's key in its file, which a failed check wipes.
#![forbid(unsafe_code)]

pub mod nisc;
pub mod pool;
pub mod sealed;
