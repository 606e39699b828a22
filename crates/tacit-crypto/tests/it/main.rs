//! The integration tests of `tacit-crypto`, one binary: a module is a file.

mod common;

mod backends;
mod framing;
mod group;
mod silent_kernels;
mod vectors;
