//! Every intrinsic and every `unsafe` of the workspace: one file a kernel, each with its portable twin.
//!
//! A kernel takes a [`Backend`] first, which proves that the processor has what the kernel's code needs: a
//! backend can only be had by detection. Library code passes [`Backend::active`]; tests run every
//! [`Backend::available`].
//!
//! Kernels name nothing of the rest of their crate but plain types: blocks, and the ring's polynomials and
//! tables.

#[cfg(feature = "std")]
pub(crate) mod accumulate;
#[cfg(feature = "std")]
#[doc(hidden)]
pub mod aes;
#[cfg(feature = "std")]
mod aes_portable;
#[cfg(all(feature = "std", target_arch = "x86_64"))]
mod aes_x86;
#[cfg(feature = "std")]
mod backend;
#[cfg(feature = "std")]
pub(crate) mod blake3;
#[cfg(all(test, feature = "std"))]
mod every_kernel;
#[cfg(feature = "std")]
mod gates;
#[cfg(feature = "std")]
#[doc(hidden)]
pub mod gf128;
#[cfg(feature = "std")]
mod gf128_portable;
#[cfg(all(feature = "std", target_arch = "x86_64"))]
mod gf128_x86;
#[cfg(feature = "std")]
pub(crate) mod gf256;
#[cfg(feature = "std")]
#[doc(hidden)]
pub mod gf2x;
#[cfg(feature = "std")]
mod gf2x_portable;
#[cfg(feature = "std")]
mod gf2x_tables;
#[cfg(all(feature = "std", target_arch = "x86_64"))]
mod gf2x_x86;
#[cfg(feature = "std")]
pub(crate) mod ggm;
#[cfg(feature = "std")]
#[doc(hidden)]
pub mod halfgates;
#[cfg(feature = "std")]
mod halfgates_portable;
#[cfg(all(feature = "std", target_arch = "x86_64"))]
mod halfgates_x86;
pub(crate) mod hidden;
#[cfg(feature = "std")]
pub(crate) mod lpn;
#[cfg(feature = "std")]
#[doc(hidden)]
pub mod lsbs;
#[cfg(all(feature = "std", target_arch = "x86_64"))]
pub(crate) mod ntt;
pub(crate) mod ntt_portable;
#[cfg(feature = "std")]
pub(crate) mod pages;
mod pod;
#[cfg(all(feature = "std", target_arch = "x86_64"))]
pub(crate) mod ristretto_ifma;
#[cfg(feature = "std")]
#[doc(hidden)]
pub mod route;
#[cfg(feature = "std")]
#[doc(hidden)]
pub mod scan;
#[cfg(feature = "std")]
#[doc(hidden)]
pub mod scatter;
#[cfg(feature = "std")]
#[doc(hidden)]
pub mod transpose;
#[cfg(feature = "std")]
mod transpose_portable;
#[cfg(all(feature = "std", target_arch = "x86_64"))]
mod transpose_x86;
#[cfg(all(feature = "std", target_arch = "x86_64"))]
mod x86;
#[cfg(all(test, feature = "std"))]
mod zeroising;

#[cfg(feature = "std")]
use backend::dispatch;
#[cfg(feature = "std")]
pub use backend::{Backend, Feature, Level, SelectError, features, select, select_from_env};

/// Cases of a kernel's test: Miri takes a thousand times as long for each.
#[cfg(test)]
const CASES: usize = if cfg!(miri) { 2 } else { usize::MAX };
