//! Private set intersection from oblivious key-value stores and from oblivious functions.
//!
//! - [`okvs`]: key-value stores.
//! - [`paxos`]: the PaXoS intersection protocol.
//! - [`vole_psi`]: intersection from VOLE, faster and smaller; on top of it [`payload`], matches with the
//!   peer's columns, [`link`], identifiers that match where elements do, and [`circuit`], counts, sums and shares
//!   of what is common.
//! - [`sorted`]: counts and sums against malicious peers, by a circuit over sorted lists.
//! - [`oprf`]: a small set against a file of tags of a large one.
//! - [`pair`]: the advertising industry's PAIR, for clean rooms.
#![forbid(unsafe_code)]

mod bch;
pub mod cuckoo;
mod equality;
mod error;
mod limits;
mod matching;
pub mod okvs;
pub mod oprf;
#[cfg(test)]
mod pace;
pub mod pair;
pub mod paxos;
mod room;
pub mod sorted;
mod terms;
pub mod vole_psi;
mod work;

pub use error::{Error, Result};
pub use limits::{Bounds, Limits};
pub use vole_psi::{circuit, link, payload};
