//! The integration tests of `tacit-store`, one binary: a module is a file.

#[path = "../../../tacit-ot/tests/it/common/mod.rs"]
mod common;

mod nisc;
mod pool;
