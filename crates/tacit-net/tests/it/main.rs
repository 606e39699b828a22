//! The integration tests of `tacit-net`, one binary: a module is a file.

mod channel;
mod faults;
mod reception;
mod relay;
mod session;
mod strangers;
mod testing;
mod tls;
