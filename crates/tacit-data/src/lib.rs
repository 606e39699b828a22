//! Data as users have it, without a protocol and without a socket.
//!
//! - [`records`], [`csv`]: tables of records, their keys, and the files they come from.
//! - [`generate`]: realistic test data from a seed.
//! - [`npz`]: NumPy archives, written as a stream.
#![forbid(unsafe_code)]

pub mod csv;
pub mod generate;
pub mod npz;
pub mod records;
