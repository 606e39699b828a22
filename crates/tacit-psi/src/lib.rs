//! Private set intersection from oblivious key-value stores.
//!
//! - [`okvs`]: key-value stores.
//! - [`paxos`]: the PaXoS intersection protocol.
//! - [`vole_psi`]: intersection from VOLE, faster and smaller.
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
pub mod vole_psi;

pub use error::{Error, Result};
