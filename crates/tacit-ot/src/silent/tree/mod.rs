//! Puncturable trees, many at once.
//!
//! [`half`] and [`ggm`] expand half-trees and GGM trees, [`puncture`] one tree that is punctured at many
//! points; [`spcot`] is the protocol by which two parties come to share half-trees, which [`level_check`] or
//! [`leaf_check`] makes malicious.

pub(crate) mod ggm;
pub(crate) mod half;
pub(crate) mod leaf_check;
pub(crate) mod level_check;
pub(crate) mod opening;
pub(crate) mod parts;
pub(crate) mod puncture;
pub(crate) mod shape;
pub(crate) mod spcot;
pub(crate) mod subtrees;
