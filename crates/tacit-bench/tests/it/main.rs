//! The integration tests of `tacit-bench`, one binary: a module is a file.

#[path = "../../../tacit-ot/tests/it/common/base.rs"]
mod base;
#[path = "../../../tacit-ot/tests/it/common/mod.rs"]
mod common;
#[path = "../../../tacit-ot/tests/it/common/tamper.rs"]
mod tamper;
#[path = "../../../tacit-ot/tests/it/common/wire.rs"]
mod wire;

mod bdgm19;
mod pvw08;
mod rot_from_ot;
mod roted_paper;
mod silent_paper;
