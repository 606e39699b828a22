//! A small set against a large one that publishes a file of tags once.

pub mod rfc9497;

/// The protocol's short name.
pub const NAME: &str = "oprf";
