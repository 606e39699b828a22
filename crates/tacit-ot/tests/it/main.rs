//! The integration tests of `tacit-ot`, one binary: a module is a file.

#[path = "common/base.rs"]
mod base;
mod common;
#[path = "common/tamper.rs"]
mod tamper;
#[path = "common/wire.rs"]
mod wire;

mod base_ot;
mod base_ot_messages;
mod dealer;
mod ferret;
mod kos_history;
mod ole;
mod one_of_many;
mod ot_extension;
mod ot_extension_cheaters;
mod ot_extension_digests;
mod roted;
mod silent;
mod silent_digests;
mod silent_nisc;
mod silent_wire;
mod vole;
