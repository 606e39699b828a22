//! Secrets in files that outlive a process: what was used up or wiped stays so, whatever happens in between.
//!
//! - [`sealed`]: files sealed with a key of this machine, open in one process at a time.
//! - [`pool`]: correlations made ahead, each used at most once.
//! - [`nisc`]: a receiver's key in its file, which a failed check wipes.
#![forbid(unsafe_code)]

pub mod nisc;
pub mod pool;
pub mod sealed;
