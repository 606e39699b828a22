//! What our runs under valgrind share: requests to it, and the wire on which bytes become public.
//!
//! The binaries are built for these checks alone and are part of no release.
#![deny(unsafe_code)]

#[allow(unsafe_code)]
pub mod request;
pub mod wire;
