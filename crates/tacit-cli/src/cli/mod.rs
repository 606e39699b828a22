//! What every subcommand shares: the configuration file, the peer's options, plans, shares and messages in
//! files, and whom a run waits for.

pub mod config;
pub mod files;
pub mod keys;
pub mod messages;
pub mod peer;
pub mod plan;
pub mod share;
pub mod table;
pub mod verbose;
pub mod waiting;

pub use tacit_console::{Context, fault, output, progress};
