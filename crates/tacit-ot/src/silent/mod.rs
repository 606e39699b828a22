//! Silent OT: correlations from a short interaction and much local computing.

pub mod bcgikrs19;
pub mod code;
pub(crate) mod cuckoo;
pub mod dealer;
pub mod ferret;
pub mod ferret_setup;
pub mod ferret_uni;
pub(crate) mod half_tree;
pub mod nisc;
pub mod paper;
pub(crate) mod pprf;
pub(crate) mod puncture;
pub(crate) mod seeds;
pub mod signed;
pub(crate) mod source;
pub(crate) mod spcot;
pub(crate) mod stock;
pub mod subfield;
pub(crate) mod tpprf;
