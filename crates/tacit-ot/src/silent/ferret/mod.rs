//! Ferret: bootstrapped silent correlated OT from primal LPN (Yang–Weng–Lan–Zhang–Wang 2020/924).

mod cuckoo;
mod regular;
pub mod setup;
mod uniform;

pub(crate) use regular::Spent;
pub use regular::{Config, FerretReceiver, FerretSender, LEAST_SECURITY_BITS, Lanes, Params};
pub use uniform::{FerretUniReceiver, FerretUniSender, UniConfig, UniParams};
