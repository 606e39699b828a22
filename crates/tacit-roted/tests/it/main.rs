//! The integration tests of `tacit-roted`, one binary: a module is a file.

mod roted;
mod sets;
