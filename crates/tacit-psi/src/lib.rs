//! Private set intersection from oblivious key-value stores and from oblivious functions.
//!
//! - [`okvs`]: key-value stores.
//! - [`paxos`]: the PaXoS intersection protocol.
//! - [`vole_psi`]: intersection from VOLE, faster and smaller; on top of it [`payload`], matches with the
//!   peer's columns, and [`circuit`], counts, sums and shares of what is common.
//! - [`oprf`]: a small set against a file of tags of a large one.
//! - [`records`], [`csv`]: tables of records, their keys, and the files they come from.
//! - [`generate`]: realistic test data from a seed.
#![forbid(unsafe_code)]

mod bch;
pub mod csv;
pub mod cuckoo;
mod equality;
mod error;
pub mod generate;
pub mod okvs;
pub mod oprf;
pub mod paxos;
pub mod records;
pub mod vole_psi;

pub use error::{Error, Result};
pub use vole_psi::{circuit, payload};
