//! Vector oblivious linear evaluation: w = v + u·Δ over a field, one party holding Δ and v, the other u and
//! w.
//!
//! - [`prime`]: many random correlations from little traffic, over prime fields (BCGIKRS19).
//! - [`gf128`]: the same over GF(2^128) with u in the whole field; its code is
//!   [`ScaledAccumulate`](crate::silent::code::ScaledAccumulate). With u in GF(2) the correlated OTs of
//!   [`bcgikrs19`](crate::silent::bcgikrs19) are that correlation, and [`subfield`] has u in GF(4), GF(16) or
//!   GF(256).
//! - [`reverse`]: chosen inputs on both sides, by bits of one side's input; what `prime` is set up with.

mod cope;
pub mod gf128;
mod hashed;
pub mod prime;
pub mod reverse;
pub mod subfield;

pub use gf128::{Gf128Receiver, Gf128Sender};
pub use prime::{SilentVoleReceiver, SilentVoleSender};
