//! Private set intersection from oblivious key-value stores.
//!
//! - [`okvs`]: key-value stores.
//! - [`paxos`]: the PaXoS intersection protocol.
//! - [`records`], [`csv`]: tables of records, their keys, and the files they come from.
//! - [`generate`]: realistic test data from a seed.
#![forbid(unsafe_code)]

mod bch;
pub mod csv;
mod error;
pub mod generate;
pub mod okvs;
pub mod paxos;
pub mod records;

pub use error::{Error, Result};
