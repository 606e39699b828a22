//! The integration tests of `tacit-2pc`, one binary: a module is a file.

#[path = "../../../tacit-ot/tests/it/common/mod.rs"]
mod common;
#[path = "../../../tacit-ot/tests/it/common/wire.rs"]
mod wire;

mod batch_digests;
mod bristol_fuzz;
mod circuits;
mod files_and_plans;
mod garbling;
mod yao;
mod yao_digests;
