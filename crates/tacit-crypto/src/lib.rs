//! The ground floor: what two-party protocols compute with.
//!
//! Blocks of 128 bits, fixed-key AES and the hash functions built on it, a counter-mode PRG, arithmetic in
//! GF(2^128), the 128×n bit transpose, a prime-order group, transcripts and commitments. Every intrinsic and
//! every `unsafe` of the workspace stands in [`simd`]; each kernel there has a portable twin that gives the
//! same bytes.
//!
//! Without the feature `std` only [`block`], [`ring`] and what they need are built, for devices without an
//! operating system.
#![cfg_attr(not(feature = "std"), no_std)]
#![deny(unsafe_code)]

extern crate alloc;

#[cfg(feature = "std")]
pub mod accumulate;
#[cfg(feature = "std")]
pub mod aes;
#[cfg(feature = "std")]
pub mod base64;
#[cfg(feature = "std")]
pub mod bits;
pub mod block;
#[cfg(feature = "std")]
pub mod commit;
#[cfg(feature = "std")]
mod digests;
#[cfg(feature = "std")]
pub mod fence;
#[cfg(feature = "std")]
pub mod field;
#[cfg(feature = "std")]
pub mod gf128;
#[cfg(feature = "std")]
pub mod gf256;
#[cfg(feature = "std")]
pub mod gf2x;
#[cfg(feature = "std")]
pub mod ggm;
#[cfg(feature = "std")]
pub mod group;
#[cfg(feature = "std")]
pub mod hash;
#[cfg(feature = "std")]
mod indices;
#[cfg(feature = "std")]
mod leaves;
#[cfg(feature = "std")]
pub mod lpn;
pub mod near;
#[cfg(feature = "std")]
pub mod prg;
pub mod ring;
#[allow(unsafe_code)]
pub mod simd;
#[cfg(feature = "std")]
pub mod text;
#[cfg(feature = "std")]
pub mod transcript;
#[cfg(feature = "std")]
pub mod transpose;
#[cfg(feature = "std")]
mod wiped;
#[cfg(feature = "std")]
pub mod workers;

#[cfg(feature = "std")]
pub use bits::BitVec;
pub use block::{Block, hex};
#[cfg(feature = "std")]
pub use digests::Digests;
#[cfg(feature = "std")]
pub use indices::Indices;
#[cfg(feature = "std")]
pub use leaves::Leaves;
#[cfg(feature = "std")]
pub use prg::Prg;
#[cfg(feature = "std")]
pub use simd::pages::Buffer;
#[cfg(feature = "std")]
pub use wiped::Wiped;

/// Computational security parameter κ, in bits.
pub const KAPPA: usize = 128;
/// Statistical security parameter ρ, in bits.
pub const RHO: usize = 40;
