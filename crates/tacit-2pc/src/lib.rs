//! Boolean circuits, garbling and two-party computation.
//!
//! - [`circuit`]: gates, Bristol files, a builder with integers, a library of functions, plans for fast execution.
//! - [`garble`]: half-gates over a plan, many independent gates or many copies of one circuit at a time.
//! - [`cut_and_choose`]: WMK17, secure against malicious parties.
//! - [`semi_honest`]: Yao's protocol, pipelined.
#![forbid(unsafe_code)]

pub mod circuit;
pub mod cut_and_choose;
mod error;
pub mod garble;
pub mod semi_honest;

pub use error::{Error, Result};
