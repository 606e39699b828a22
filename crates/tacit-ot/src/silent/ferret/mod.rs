//! Ferret: bootstrapped silent correlated OT from primal LPN (Yang–Weng–Lan–Zhang–Wang 2020/924).
//!
//! Two forms: [`FerretSender`] and [`FerretReceiver`] with regular noise, [`FerretUniSender`] and
//! [`FerretUniReceiver`] with uniform noise, a weaker assumption. [`setup`] makes them from nothing but a
//! base OT; [`cost`] chooses a set.

mod both;
pub mod cost;
mod cuckoo;
#[cfg(test)]
mod dealing;
mod params;
mod regular;
mod rows;
pub mod setup;
mod uniform;

pub use both::{ExtendBothWays, extend_both_ways, setup_both_ways};
pub use params::{Config, LEAST_SECURITY_BITS, Lanes, Params, UniConfig, UniParams};
pub use regular::{FerretReceiver, FerretSender};
pub use uniform::{FerretUniReceiver, FerretUniSender};
