//! What every subcommand shares: the configuration file, the peer's options, plans, shares and messages in
//! files, and whom a run waits for.

pub(crate) mod config;
pub(crate) mod files;
pub(crate) mod help;
pub(crate) mod keys;
pub(crate) mod messages;
pub(crate) mod own;
mod pdf;
pub(crate) mod peer;
pub(crate) mod plan;
pub(crate) mod report;
pub(crate) mod results;
pub(crate) mod share;
pub(crate) mod table;
pub(crate) mod verbose;
pub(crate) mod waiting;

pub(crate) use tacit_console::{Context, fault, output, progress};
