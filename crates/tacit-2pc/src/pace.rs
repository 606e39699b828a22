//! A party's link as its peer sees it: the harness is that of every crate.

pub(crate) use tacit_net::testing::{Note, paced};
