//! The integration tests of `tacit-fuzz`, one binary: a module is a file.

mod replay;
