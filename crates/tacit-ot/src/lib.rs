//! Oblivious transfer in every flavour, behind a few traits.
//!
//! - [`BaseOt`]: from nothing to a hundred or so OTs, by public-key cryptography.
//! - [`CotSender`] / [`CotReceiver`]: random correlated OT with a fixed Δ, extended any number of times.
//! - [`ChosenCotSender`] / [`ChosenCotReceiver`]: the same with the receiver's choice bits.
//! - [`RotSender`] / [`RotReceiver`]: random OT.
//! - [`OtSender`] / [`OtReceiver`]: OT on messages that the sender chooses.
//! - [`VoleSender`] / [`VoleReceiver`]: vector oblivious linear evaluation over other fields.
//!
//! Everything above takes a trait, so a faster generator is one new file.
#![forbid(unsafe_code)]

pub mod base;
pub mod bit_triples;
pub mod convert;
mod error;
pub mod extension;
pub mod ole;
pub mod one_of_many;
pub mod silent;
mod spent;
mod traits;
pub mod vole;

pub use error::{Error, Result};
pub use traits::*;
