//! Forms of a circuit: with few gates, or with few levels of AND gates.
//!
//! Garbling pays for gates, shares pay for levels too: each is a round trip. Of n bits the shallow forms take
//!
//! - additions, subtractions and comparisons log₂ n + 1 levels by Sklansky's prefix network (1960): n·log₂ n + n AND
//!   gates at most, where a chain of carries has n of both; a comparison 3n,
//! - sums of many terms, and so products, a tree of carry-save adders and one such addition: a level for each factor
//!   of 3/2 in the number of terms (Dadda 1965).
//!
//! Equality, multiplexers, conjunctions and shifts are trees in either form.

/// What a [`Builder`](super::Builder) saves.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub enum Form {
    /// AND gates.
    #[default]
    Small,
    /// Levels of AND gates.
    Shallow,
}
