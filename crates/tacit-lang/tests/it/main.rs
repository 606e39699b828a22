//! The integration tests of `tacit-lang`, one binary: a module is a file.

mod programs;
