//! Silent OT: correlations from a short interaction and much local computing.
//!
//! - [`ferret`]: from primal LPN, bootstrapped, in two forms (regular and uniform noise).
//! - [`bcgikrs19`]: from dual LPN, with the least traffic; [`nisc`] is its non-interactive form, whose
//!   messages [`signed`] signs, and [`dealer`] the form in which a third party hands out seeds.
//! - [`tpprf`]: the trees of one batch from message to message, over OTs of any source; [`code`]: the public
//!   matrices of dual LPN.

mod dual_lpn;
pub(crate) mod engine;
pub mod ferret;
pub(crate) mod tree;

pub(crate) use dual_lpn::noise;
pub use dual_lpn::{bcgikrs19, code, dealer, nisc, signed, tpprf};
