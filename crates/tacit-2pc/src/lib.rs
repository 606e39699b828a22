//! Boolean circuits, garbling and two-party computation.
//!
//! - [`circuit`]: gates, Bristol files, a builder with integers, a library of functions, plans for fast
//!   execution.
//! - [`garble`]: half-gates over a plan, many independent gates or many copies of one circuit at a time.
//! - [`authenticated`]: authenticated garbling, secure against malicious parties with few bytes a gate.
//! - [`wmk17`]: WMK17, secure against malicious parties.
//! - [`semi_honest`]: Yao's protocol, pipelined.
//! - [`batch`]: many rows side by side on XOR shares, a round a level of the circuit.
//! - [`nisc`]: functions by two messages that are files.
#![forbid(unsafe_code)]

pub mod authenticated;
pub mod batch;
pub mod circuit;
mod error;
pub mod garble;
pub mod nisc;
mod once;
#[cfg(test)]
mod pace;
mod parties;
mod prepared;
pub mod semi_honest;
#[cfg(test)]
#[path = "../../tacit-ot/tests/it/common/wire.rs"]
mod wire;
pub mod wmk17;

pub use error::{Error, Result, StateError};
pub use parties::{OutputTo, Owner};
pub use prepared::Prepared;
