//! Puncturable trees, many at once: half-trees and GGM trees, and the protocols by which parties come to share
//! them.

pub(crate) mod ggm;
pub(crate) mod half;
pub(crate) mod puncture;
pub(crate) mod spcot;
