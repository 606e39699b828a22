//! The integration tests of `tacit-psi`, one binary: a module is a file.

#[path = "../../../tacit-ot/tests/it/common/mod.rs"]
mod common;
#[path = "../../../tacit-ot/tests/it/common/wire.rs"]
mod wire;

mod circuit_psi;
mod clustered;
mod link;
mod okvs;
mod paxos;
mod payload;
mod reveal_digests;
mod vole_psi;
mod vole_psi_digests;
